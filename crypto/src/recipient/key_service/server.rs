//! The side that answers: gRPC in front of a [`Keeper`], until the process is asked to end.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;
use tonic::body::Body;
use tonic::codegen::tokio_stream::Stream;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;

use super::message::{
    DECRYPT, DecryptRequest, DecryptResponse, ENCRYPT, EncryptRequest, EncryptResponse, Key,
    MESSAGE_BYTES_MAX,
};
use crate::recipient::{
    RecipientId, UnwrapError, UnwrapFailure, WRAPPED_KEY_BYTES_MAX, WrappedKey, check_to_wrap,
};
use crate::secret::SecretBytes;

/// How long requests that are being answered may go on once the process was asked to end.
const GRACE: Duration = Duration::from_secs(1);

/// How often an idle connection is asked whether its other end still lives.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Holds or reaches keys on behalf of those who ask. Called from several threads at a time.
pub trait Keeper: Send + Sync + 'static {
    /// Wraps `key`, the 32 bytes of a data key or the 33 of a share, for `recipient`.
    ///
    /// # Errors
    /// [`UnwrapError`] whose words are told to whoever asked.
    fn wrap(&self, recipient: &RecipientId, key: &SecretBytes) -> Result<String, UnwrapError>;

    /// Unwraps `wrapped` with whatever opens it.
    ///
    /// # Errors
    /// [`UnwrapError`] whose words are told to whoever asked.
    fn unwrap(&self, wrapped: &WrappedKey) -> Result<SecretBytes, UnwrapError>;
}

/// A bound socket.
#[derive(Debug)]
pub enum Listener {
    /// Of an address and a port.
    Tcp(std::net::TcpListener),
    /// Of a path.
    Unix(std::os::unix::net::UnixListener),
}

/// How much is done at a time, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests that are worked on at the same time; others wait.
    pub requests_max: usize,
    /// How long one request may take, waiting included.
    pub deadline: Duration,
}

/// What answers until the process is asked to end. It listens for SIGINT and SIGTERM from the start: one that comes
/// before, or while, a socket is made ends it in order as well, so that the socket's name does not stay behind.
#[derive(Debug)]
pub struct KeyServer {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
}

impl KeyServer {
    /// A server that nobody reaches yet.
    ///
    /// # Errors
    /// When the system refuses threads or signals.
    pub fn new() -> io::Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("key-service").enable_all().build()?;
        let context = runtime.enter();
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        drop(context);
        Ok(Self { runtime, interrupt, terminate })
    }

    /// Answers on `listener` with what `keeper` holds until SIGINT or SIGTERM comes, or came.
    ///
    /// # Errors
    /// When the system refuses the socket.
    pub fn serve(self, listener: Listener, keeper: Arc<dyn Keeper>, limits: Limits) -> io::Result<()> {
        let Self { runtime, mut interrupt, mut terminate } = self;
        let asked_to_end = async move {
            tokio::select! {
                _ = interrupt.recv() => (),
                _ = terminate.recv() => (),
            }
        };
        let outcome = runtime.block_on(run(listener, keeper, limits, asked_to_end));
        // A request may still wait for a person; the process does not wait with it.
        runtime.shutdown_background();
        outcome
    }
}

async fn run(
    listener: Listener,
    keeper: Arc<dyn Keeper>,
    limits: Limits,
    asked_to_end: impl Future<Output = ()>,
) -> io::Result<()> {
    let turns = Arc::new(Semaphore::new(limits.requests_max));
    let answering = Answering { keeper, turns, deadline: limits.deadline };
    let streams_max = u32::try_from(limits.requests_max).unwrap_or(u32::MAX);
    let server =
        Server::builder().max_concurrent_streams(streams_max).http2_keepalive_interval(Some(KEEPALIVE));
    let (tell, told) = tokio::sync::oneshot::channel::<()>();
    let ended = async {
        // A sender that is gone says the same.
        let _ = told.await;
    };
    let serving = async {
        match listener {
            Listener::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                let incoming = TcpIncoming::from(tokio::net::TcpListener::from_std(listener)?);
                server.serve_with_incoming_shutdown(answering, incoming, ended).await
            }
            Listener::Unix(listener) => {
                listener.set_nonblocking(true)?;
                let incoming = Accepted(UnixListener::from_std(listener)?);
                server.serve_with_incoming_shutdown(answering, incoming, ended).await
            }
        }
        .map_err(io::Error::other)
    };
    let mut serving = pin!(serving);
    tokio::select! {
        outcome = &mut serving => return outcome,
        () = asked_to_end => (),
    }
    let _ = tell.send(());
    // What is not done by then is cut off.
    tokio::time::timeout(GRACE, serving).await.unwrap_or(Ok(()))
}

/// The connections to a Unix socket.
struct Accepted(UnixListener);

impl Stream for Accepted {
    type Item = io::Result<UnixStream>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_accept(context).map(|accepted| Some(accepted.map(|(stream, _)| stream)))
    }
}

/// The service as HTTP sees it: two paths, and nothing else.
#[derive(Clone)]
struct Answering {
    keeper: Arc<dyn Keeper>,
    turns: Arc<Semaphore>,
    deadline: Duration,
}

impl Service<http::Request<Body>> for Answering {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            Ok(match request.uri().path() {
                ENCRYPT => {
                    let codec = ProstCodec::<EncryptResponse, EncryptRequest>::default();
                    limited(Grpc::new(codec)).unary(Wrapping(this), request).await
                }
                DECRYPT => {
                    let codec = ProstCodec::<DecryptResponse, DecryptRequest>::default();
                    limited(Grpc::new(codec)).unary(Unwrapping(this), request).await
                }
                _ => Status::unimplemented("a key service wraps and unwraps, and does nothing else")
                    .into_http(),
            })
        })
    }
}

fn limited<T: tonic::codec::Codec>(grpc: Grpc<T>) -> Grpc<T> {
    grpc.max_decoding_message_size(MESSAGE_BYTES_MAX).max_encoding_message_size(MESSAGE_BYTES_MAX)
}

impl Answering {
    /// Does `work`, which may block, within the deadline. Its turn lasts until it ends, also when nobody waits for it
    /// any more.
    async fn answer<T: Send + 'static>(
        self,
        work: impl FnOnce(&dyn Keeper) -> Result<T, UnwrapError> + Send + 'static,
    ) -> Result<T, Status> {
        let Self { keeper, turns, deadline } = self;
        let answer = async move {
            let turn = turns.acquire_owned().await.map_err(|_| Status::unavailable("the service ends"))?;
            let work = move || {
                let outcome = work(keeper.as_ref());
                drop(turn);
                outcome
            };
            let outcome = tokio::task::spawn_blocking(work).await;
            let outcome = outcome.map_err(|_| Status::internal("the request could not be worked on"))?;
            outcome.map_err(|error| Status::new(code(error.kind), error.reason))
        };
        let late = |_| Status::deadline_exceeded("the service did not get to an answer in time");
        tokio::time::timeout(deadline, answer).await.map_err(late)?
    }
}

struct Wrapping(Answering);

impl UnaryService<EncryptRequest> for Wrapping {
    type Response = EncryptResponse;
    type Future = BoxFuture<Response<EncryptResponse>, Status>;

    fn call(&mut self, request: Request<EncryptRequest>) -> Self::Future {
        let answering = self.0.clone();
        Box::pin(async move {
            let mut request = request.into_inner();
            let recipient = recipient(request.key.take())?;
            let key = SecretBytes::new(std::mem::take(&mut request.plaintext));
            check_to_wrap(&key).map_err(Status::invalid_argument)?;
            let enc = answering.answer(move |keeper| keeper.wrap(&recipient, &key)).await?;
            Ok(Response::new(EncryptResponse { ciphertext: enc.into_bytes() }))
        })
    }
}

struct Unwrapping(Answering);

impl UnaryService<DecryptRequest> for Unwrapping {
    type Response = DecryptResponse;
    type Future = BoxFuture<Response<DecryptResponse>, Status>;

    fn call(&mut self, request: Request<DecryptRequest>) -> Self::Future {
        let answering = self.0.clone();
        Box::pin(async move {
            let request = request.into_inner();
            let recipient = recipient(request.key)?;
            if request.ciphertext.len() > WRAPPED_KEY_BYTES_MAX {
                return Err(Status::invalid_argument("the wrapped key is larger than 64 KiB"));
            }
            let enc = String::from_utf8(request.ciphertext)
                .map_err(|_| Status::invalid_argument("the wrapped key is no text"))?;
            let wrapped = WrappedKey { recipient, enc, created_at: None };
            let key = answering.answer(move |keeper| keeper.unwrap(&wrapped)).await?;
            Ok(Response::new(DecryptResponse { plaintext: key.expose_secret().to_vec() }))
        })
    }
}

fn recipient(key: Option<Key>) -> Result<RecipientId, Status> {
    key.and_then(Key::into_recipient).ok_or_else(|| Status::not_found("no key of a known kind was named"))
}

fn code(failure: UnwrapFailure) -> Code {
    match failure {
        UnwrapFailure::Broken => Code::InvalidArgument,
        UnwrapFailure::Denied => Code::PermissionDenied,
        UnwrapFailure::Throttled => Code::ResourceExhausted,
        UnwrapFailure::Unreachable => Code::Unavailable,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::mpsc;
    use std::thread::JoinHandle;
    use std::time::Instant;

    use tokio::sync::oneshot;

    use super::*;

    /// A running service that ends with this.
    pub(crate) struct Served {
        address: String,
        end: Option<oneshot::Sender<()>>,
        thread: Option<JoinHandle<()>>,
        _folder: Option<tempfile::TempDir>,
    }

    impl Served {
        pub(crate) fn on_tcp(keeper: Arc<dyn Keeper>, limits: Limits) -> Self {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = format!("tcp://{}", listener.local_addr().unwrap());
            Self::start(Listener::Tcp(listener), address, keeper, limits)
        }

        pub(crate) fn on_socket(keeper: Arc<dyn Keeper>, limits: Limits) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a socket");
            let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
            let address = format!("unix://{}", path.display());
            let mut served = Self::start(Listener::Unix(listener), address, keeper, limits);
            served._folder = Some(folder);
            served
        }

        pub(crate) fn address(&self) -> &str {
            &self.address
        }

        fn start(listener: Listener, address: String, keeper: Arc<dyn Keeper>, limits: Limits) -> Self {
            let (end, ended) = oneshot::channel::<()>();
            let thread = std::thread::spawn(move || {
                let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
                let ended = async {
                    let _ = ended.await;
                };
                runtime.block_on(run(listener, keeper, limits, ended)).unwrap();
                runtime.shutdown_background();
            });
            Self { address, end: Some(end), thread: Some(thread), _folder: None }
        }
    }

    impl Drop for Served {
        fn drop(&mut self) {
            let _ = self.end.take().unwrap().send(());
            let outcome = self.thread.take().unwrap().join();
            assert!(std::thread::panicking() || outcome.is_ok());
        }
    }

    #[test]
    fn it_ends_also_while_a_request_waits_for_someone() {
        struct Waits(std::sync::Mutex<mpsc::Sender<()>>);
        impl Keeper for Waits {
            fn wrap(&self, _: &RecipientId, _: &SecretBytes) -> Result<String, UnwrapError> {
                unreachable!("nothing is wrapped here")
            }
            fn unwrap(&self, _: &WrappedKey) -> Result<SecretBytes, UnwrapError> {
                self.0.lock().unwrap().send(()).unwrap();
                std::thread::sleep(Duration::from_secs(20));
                Ok(SecretBytes::default())
            }
        }
        let (sender, asked) = mpsc::channel();
        let limits = Limits { requests_max: 1, deadline: Duration::from_secs(30) };
        let served = Served::on_tcp(Arc::new(Waits(sender.into())), limits);
        let address = super::super::ServiceAddress::parse(served.address()).unwrap();
        std::thread::spawn(move || {
            let wrapped = WrappedKey {
                recipient: RecipientId::Age("age1x".to_owned()),
                enc: "x".to_owned(),
                created_at: None,
            };
            let service = super::super::KeyService::new(address, Duration::from_secs(30));
            crate::recipient::Identity::unwrap(&service, &wrapped)
        });
        asked.recv().unwrap();
        let started = Instant::now();
        drop(served);
        assert!(started.elapsed() < Duration::from_secs(10));
    }
}
