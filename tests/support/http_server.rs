//! A local HTTP server with JSON answers, for tests of embeddings and rankings.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

type Answer = Box<dyn Fn(&str, &Value) -> (u16, String) + Send>;

struct State {
    answer: Mutex<Answer>,
    requests: Mutex<Vec<(String, Value)>>,
}

/// The server. It ends when dropped.
pub struct HttpServer {
    url: String,
    state: Arc<State>,
    task: JoinHandle<()>,
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl HttpServer {
    /// Answers each request by its path and body with a status and a text.
    pub async fn start(answer: impl Fn(&str, &Value) -> (u16, String) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let state = Arc::new(State { answer: Mutex::new(Box::new(answer)), requests: Mutex::default() });
        let served = Arc::clone(&state);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let state = Arc::clone(&served);
                connections.spawn(async move { drop(serve(socket, &state).await) });
                while connections.try_join_next().is_some() {}
            }
        });
        Self { url, state, task }
    }

    /// The address with `/v1`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Replaces the answer function for all later requests.
    pub fn answer_with(&self, answer: impl Fn(&str, &Value) -> (u16, String) + Send + 'static) {
        *self.state.answer.lock().expect("no panic") = Box::new(answer);
    }

    /// Path and body of all requests so far.
    pub fn requests(&self) -> Vec<(String, Value)> {
        self.state.requests.lock().expect("no panic").clone()
    }
}

async fn serve(mut socket: TcpStream, state: &State) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        let mut buffer = [0; 16_384];
        let read = socket.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&buffer[..read]);
        let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length = head.lines().find_map(|line| {
            line.to_lowercase().strip_prefix("content-length:")?.trim().parse::<usize>().ok()
        });
        if bytes.len() >= end + 4 + length.unwrap_or(0) {
            break (head, bytes[end + 4..].to_vec());
        }
    };
    let path = head.split_whitespace().nth(1).unwrap_or("/").to_owned();
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let (status, text) = (state.answer.lock().expect("no panic"))(&path, &body);
    state.requests.lock().expect("no panic").push((path, body));
    let answer =
        format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}", text.len());
    socket.write_all(answer.as_bytes()).await
}
