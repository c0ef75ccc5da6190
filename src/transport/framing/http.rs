//! The HTTP that the socket accepts: the WebSocket upgrade, one call by POST, health and metrics. Every
//! answer except the upgrade closes the connection.

use std::io::Cursor;

use bytes::{Buf, Bytes, BytesMut};
use futures_util::FutureExt;
use httparse::{Header, Status};
use soketto::handshake::server::{Response, Server};
use tokio_util::compat::TokioAsyncReadCompatExt;

/// Maximum bytes of a request head.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Maximum number of header lines.
const MAX_HEADERS: usize = 64;

/// The request in a request head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpRequest {
    /// Send these bytes, then use WebSocket.
    WebSocket(Bytes),
    /// A body of this many bytes follows. If `wait` is set, the client expects [`CONTINUE`] first.
    Post {
        /// Bytes of the body.
        length: usize,
        /// Whether the client waits for [`CONTINUE`] before it sends the body.
        wait: bool,
    },
    /// The client requests the daemon's metrics.
    Metrics,
    /// Send these bytes and close the connection.
    Answer(Bytes),
}

/// Response to a client that asked to wait before it sends the body.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Takes a request head off the front of `buffer`; `None` means that more bytes are needed. Bodies may
/// have at most `max_bytes` bytes.
pub fn head(buffer: &mut BytesMut, max_bytes: usize) -> Option<HttpRequest> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let (request, length) = match request.parse(buffer) {
        Ok(Status::Complete(length)) if length <= MAX_HEAD_BYTES => {
            (classify_request(&request, max_bytes), length)
        }
        Ok(Status::Partial) if buffer.len() <= MAX_HEAD_BYTES => return None,
        Ok(_) | Err(httparse::Error::TooManyHeaders) => {
            (answer("431 Request Header Fields Too Large", "the request head is too long"), buffer.len())
        }
        Err(_) => (answer("400 Bad Request", "this is not HTTP that we understand"), buffer.len()),
    };
    buffer.advance(length);
    Some(request)
}

fn classify_request(request: &httparse::Request<'_, '_>, max_bytes: usize) -> HttpRequest {
    let headers: &[Header<'_>] = request.headers;
    let path = request.path.unwrap_or("/").split('?').next().unwrap_or("/");
    if header(headers, "origin").is_some() {
        return answer("403 Forbidden", "requests from web pages are refused");
    }
    match (request.method.unwrap_or(""), path) {
        ("GET", _) if names(headers, "upgrade", "websocket") => upgrade(request),
        ("GET" | "HEAD", "/healthz" | "/readyz") => answer("200 OK", "ok"),
        ("GET", "/metrics") => HttpRequest::Metrics,
        ("GET" | "HEAD", _) => answer("404 Not Found", "POST a JSON-RPC call here, or upgrade to WebSocket"),
        ("POST", _) => post(headers, max_bytes),
        _ => answer("405 Method Not Allowed", "POST a JSON-RPC call here, or upgrade to WebSocket"),
    }
}

fn upgrade(request: &httparse::Request<'_, '_>) -> HttpRequest {
    let headers: &[Header<'_>] = request.headers;
    let bad = |why| answer("400 Bad Request", why);
    if request.version != Some(1) || !names(headers, "connection", "upgrade") {
        return bad("a WebSocket upgrade needs HTTP/1.1 and Connection: Upgrade");
    }
    if header(headers, "sec-websocket-version") != Some(b"13") {
        return answer_with(
            "426 Upgrade Required",
            "Sec-WebSocket-Version: 13\r\n",
            "only version 13 is spoken",
        );
    }
    let key = header(headers, "sec-websocket-key").and_then(|key| <[u8; 24]>::try_from(key).ok());
    let Some(key) = key else { return bad("Sec-WebSocket-Key must have 24 characters") };
    match accept(key) {
        Some(accepted) => HttpRequest::WebSocket(accepted),
        None => answer("500 Internal Server Error", "the handshake failed"),
    }
}

/// The library's answer to a handshake, written into memory, where writing never waits.
fn accept(key: [u8; 24]) -> Option<Bytes> {
    let mut server = Server::new(Cursor::new(Vec::new()).compat());
    server.send_response(&Response::Accept { key, protocol: None }).now_or_never()?.ok()?;
    Some(server.into_inner().into_inner().into_inner().into())
}

fn post(headers: &[Header<'_>], max_bytes: usize) -> HttpRequest {
    if header(headers, "transfer-encoding").is_some() {
        return answer("411 Length Required", "send the body with a Content-Length");
    }
    let Some(length) = header(headers, "content-length") else {
        return answer("411 Length Required", "send the body with a Content-Length");
    };
    let digits = !length.is_empty() && length.iter().all(u8::is_ascii_digit);
    let length = std::str::from_utf8(length).ok().filter(|_| digits);
    let Some(length) = length else { return answer("400 Bad Request", "Content-Length is not a number") };
    match length.parse() {
        Ok(length) if length <= max_bytes => {
            HttpRequest::Post { length, wait: names(headers, "expect", "100-continue") }
        }
        _ => answer("413 Payload Too Large", &format!("the body may have at most {max_bytes} bytes")),
    }
}

/// Value of the first header with this name.
fn header<'a>(headers: &[Header<'a>], name: &str) -> Option<&'a [u8]> {
    headers.iter().find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
}

/// Whether the header `name`, which may be a list, contains `word`.
fn names(headers: &[Header<'_>], name: &str, word: &str) -> bool {
    headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case(name))
        .flat_map(|header| header.value.split(|&byte| byte == b','))
        .any(|value| value.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}

fn answer(status: &str, text: &str) -> HttpRequest {
    answer_with(status, "", text)
}

fn answer_with(status: &str, more: &str, text: &str) -> HttpRequest {
    let length = text.len() + 1;
    HttpRequest::Answer(Bytes::from(format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
         {more}Connection: close\r\n\r\n{text}\n"
    )))
}

/// Writes the response head before a JSON-RPC reply.
pub(super) fn reply_head(length: usize, out: &mut Vec<u8>) {
    use std::io::Write;
    let _ = write!(
        out,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
}

/// Response to a client whose call needs no reply.
pub fn no_content() -> Bytes {
    Bytes::from_static(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
}

/// The metrics page in Prometheus text format with its version, or an error if there is none.
/// <https://prometheus.io/docs/instrumenting/exposition_formats/>
pub fn metrics(text: Option<&str>) -> Bytes {
    let Some(text) = text else {
        return match answer("404 Not Found", "there are no metrics here for this client") {
            HttpRequest::Answer(bytes) => bytes,
            _ => Bytes::new(),
        };
    };
    let length = text.len();
    Bytes::from(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    ))
}

/// Response to a client whose body did not arrive in time.
pub fn timed_out() -> Bytes {
    match answer("408 Request Timeout", "the request did not arrive in time") {
        HttpRequest::Answer(bytes) => bytes,
        _ => Bytes::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

    fn read(text: &str) -> Option<HttpRequest> {
        head(&mut BytesMut::from(text.as_bytes()), 100)
    }

    #[test]
    fn http_requests_get_expected_status() {
        let check = |text: &str, status: &str| match read(text) {
            Some(HttpRequest::Answer(bytes)) | Some(HttpRequest::WebSocket(bytes)) => {
                let line = String::from_utf8_lossy(&bytes);
                assert!(line.starts_with(&format!("HTTP/1.1 {status} ")), "{text:?} got {line:?}");
            }
            other => panic!("{text:?} gave {other:?}"),
        };
        let upgrade =
            "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n";
        let version = "Sec-WebSocket-Version: 13\r\n";
        check("GET /healthz HTTP/1.1\r\n\r\n", "200");
        check("GET /readyz?x=1 HTTP/1.0\r\n\r\n", "200");
        check("GET / HTTP/1.1\r\n\r\n", "404");
        check("GET /metrics HTTP/1.1\r\nOrigin: http://evil.example\r\n\r\n", "403");
        assert_eq!(read("GET /metrics?a=b HTTP/1.1\r\n\r\n"), Some(HttpRequest::Metrics));
        check("DELETE / HTTP/1.1\r\n\r\n", "405");
        check("GET /healthz HTTP/1.1\r\nOrigin: http://evil.example\r\n\r\n", "403");
        check("POST / HTTP/1.1\r\norigin: null\r\nContent-Length: 2\r\n\r\n{}", "403");
        check(&format!("{upgrade}{version}{KEY}Origin: x\r\n\r\n"), "403");
        check("POST / HTTP/1.1\r\n\r\n", "411");
        check("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "411");
        check("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "400");
        check("POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n", "413");
        check("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", "413");
        check("GET nonsense\r\n\r\n", "400");
        check(&format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(100)), "431");
        check(&format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(20_000)), "431");
        check(&format!("{upgrade}{version}{KEY}\r\n"), "101");
        check(&format!("{upgrade}{KEY}\r\n"), "426");
        check(&format!("{upgrade}{version}\r\n"), "400");
        check(&format!("GET / HTTP/1.1\r\nUpgrade: websocket\r\n{version}{KEY}\r\n"), "400");
    }

    #[test]
    fn websocket_accept_key_matches_rfc_example() {
        let Some(bytes) = accept(*b"dGhlIHNhbXBsZSBub25jZQ==") else { panic!("no answer") };
        assert!(String::from_utf8_lossy(&bytes).contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    }

    #[test]
    fn request_body_stays_in_buffer() {
        let mut buffer =
            BytesMut::from(&b"POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n{}"[..]);
        assert_eq!(head(&mut buffer, 100), Some(HttpRequest::Post { length: 2, wait: true }));
        assert_eq!(&buffer[..], b"{}");
    }

    #[test]
    fn incomplete_request_head_needs_more_bytes() {
        assert_eq!(read("GET / HT"), None);
        assert_eq!(read("GET / HTTP/1.1\r\nA: b\r\n"), None);
    }
}
