//! Just enough HTTP to ask a component on loopback whether it is ready and to set it up.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result};

/// How long one exchange may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// An answer: status, headers and body.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The line with the status, and the headers, as they came.
    pub head: String,
    /// The body, as text.
    pub body: String,
}

/// Sends one request to `127.0.0.1:port` and reads the answer to its end.
///
/// HTTP/1.0, so that no server answers in chunks.
///
/// # Errors
/// Nobody listens, or the answer is not HTTP.
pub fn request(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Result<Answer> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.set_write_timeout(Some(DEADLINE))?;
    let mut text =
        format!("{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{text}\r\n{body}").as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    parse(&String::from_utf8_lossy(&answer))
}

fn parse(answer: &str) -> Result<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer without end of headers")?;
    let status =
        head.split(' ').nth(1).and_then(|code| code.parse().ok()).context("an answer without status")?;
    Ok(Answer { status, head: head.to_owned(), body: body.to_owned() })
}
