//! Connections that cannot be held for ever: a request must have come within one time, an answer have gone within
//! another, as Go's servers count them. The HTTP library has no such clock of its own here.

use std::future::Future as _;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep, sleep_until};

/// How long connections may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For a whole request, from the connection's begin or the last answer on.
    pub read: Duration,
    /// For a whole answer, from the request's last piece on.
    pub write: Duration,
}

/// Takes connections and puts the clock on them.
pub struct TimedListener {
    /// Where they come from.
    pub listener: TcpListener,
    /// How long they may take.
    pub timeouts: Timeouts,
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub struct Client(pub IpAddr);

impl Connected<IncomingStream<'_, TimedListener>> for Client {
    fn connect_info(stream: IncomingStream<'_, TimedListener>) -> Self {
        // An IPv4 client of a listener for both families would otherwise have another name than it has.
        Self(stream.remote_addr().ip().to_canonical())
    }
}

impl Listener for TimedListener {
    type Io = TimedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TimedStream, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (TimedStream::new(stream, self.timeouts), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection with a clock.
pub struct TimedStream {
    stream: TcpStream,
    timeouts: Timeouts,
    reading: Pin<Box<Sleep>>,
    writing: Pin<Box<Sleep>>,
}

impl TimedStream {
    fn new(stream: TcpStream, timeouts: Timeouts) -> Self {
        let at = |limit| Box::pin(sleep_until(Instant::now() + limit));
        Self { stream, timeouts, reading: at(timeouts.read), writing: at(timeouts.write) }
    }
}

/// The answer of the stream, or an error when it has none and the time is over.
fn unless_over<T>(
    answer: Poll<io::Result<T>>,
    clock: Pin<&mut Sleep>,
    context: &mut Context<'_>,
) -> Poll<io::Result<T>> {
    if answer.is_pending() && clock.poll(context).is_ready() {
        return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
    }
    answer
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let answer = Pin::new(&mut self.stream).poll_read(context, buffer);
        if answer.is_ready() {
            let limit = Instant::now() + self.timeouts.write;
            self.writing.as_mut().reset(limit);
        }
        unless_over(answer, self.reading.as_mut(), context)
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let answer = Pin::new(&mut self.stream).poll_write(context, bytes);
        if answer.is_ready() {
            let limit = Instant::now() + self.timeouts.read;
            self.reading.as_mut().reset(limit);
        }
        unless_over(answer, self.writing.as_mut(), context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
