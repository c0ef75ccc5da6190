//! A server that gets the messages about jobs.

use std::io::{Read as _, Write as _};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;

use super::daemon::{TestDaemon, TestDaemonBuilder};
use super::wait::DEADLINE;

/// The secret of the signatures: the bytes `geheim-secret-of-a-hook`.
pub const SECRET: &str = "whsec_Z2VoZWltLXNlY3JldC1vZi1hLWhvb2s=";

/// A message as the server got it.
pub struct Post {
    /// The request line and the headers.
    pub head: String,
    /// The JSON.
    pub body: String,
}

impl Post {
    /// The value of a header.
    pub fn header(&self, name: &str) -> &str {
        let start = format!("{name}: ");
        self.head
            .lines()
            .find_map(|line| line.strip_prefix(&start))
            .unwrap_or_else(|| panic!("{name}: {}", self.head))
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

/// A server that stores posts. It answers with these statuses in order, then with the last one for ever.
pub struct Inbox {
    /// Its address, whose path is a secret.
    pub url: String,
    posts: Receiver<Post>,
}

impl Inbox {
    /// Starts a server.
    pub fn start(statuses: &'static [u16]) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, posts) = channel();
        std::thread::spawn(move || {
            for (index, stream) in listener.incoming().enumerate() {
                let Ok(mut stream) = stream else { return };
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
                    head.push(byte[0]);
                }
                let head = String::from_utf8(head).expect("UTF-8").replace("\r\n", "\n");
                let length =
                    head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                let mut body = vec![0; length.unwrap_or(0)];
                stream.read_exact(&mut body).expect("a body");
                let status = statuses[index.min(statuses.len() - 1)];
                let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                // The daemon may have been killed.
                let _ = stream.write_all(answer.as_bytes());
                if sender.send(Post { head, body: String::from_utf8(body).expect("UTF-8") }).is_err() {
                    return;
                }
            }
        });
        Self { url: format!("http://{address}/hook/geheim-path"), posts }
    }

    /// The next post. Needs a runtime with several threads.
    #[expect(clippy::disallowed_methods, reason = "the test has several workers, and nothing else to do")]
    pub fn next(&self) -> Post {
        tokio::task::block_in_place(|| self.posts.recv_timeout(DEADLINE).expect("a post"))
    }

    /// A daemon with this server as `[jobs.notify.hook]`, and more lines of configuration.
    pub fn daemon(&self, more: &str) -> TestDaemonBuilder {
        let config =
            format!("[jobs.notify.hook]\nurl = {:?}\nsecret_env = \"HOOK_SECRET\"\n{more}", self.url);
        TestDaemon::builder().config(&config).environment("HOOK_SECRET", SECRET)
    }
}
