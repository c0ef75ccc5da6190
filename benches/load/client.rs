//! A minimal client: blocking, with newline-delimited JSON.

use std::borrow::Cow;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Outcome;
use super::wire::{STAMP_DIGITS, now_micros};

/// Maximum wait for a line.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection to the daemon.
pub struct Client {
    write: UnixStream,
    read: BufReader<UnixStream>,
    line: Vec<u8>,
    calls: u64,
    bytes: usize,
}

/// The fields of a line from the daemon that the bench reads.
#[derive(Debug, Deserialize)]
pub struct Line<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Debug, Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    result: Event<'a>,
}

/// An event of a session.
#[derive(Debug, Deserialize)]
pub struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    /// Text of a delta.
    #[serde(borrow, default)]
    pub text: Cow<'a, str>,
    /// State in a `session.status`.
    #[serde(borrow, default)]
    pub state: Cow<'a, str>,
    /// Result of a completed turn.
    #[serde(borrow)]
    pub result: Option<&'a RawValue>,
}

impl Client {
    pub fn connect(socket: &Path) -> Outcome<Self> {
        let write = UnixStream::connect(socket)?;
        write.set_read_timeout(Some(READ_TIMEOUT))?;
        let read = BufReader::with_capacity(256 << 10, write.try_clone()?);
        Ok(Self { write, read, line: Vec::new(), calls: 0, bytes: 0 })
    }

    /// Sends a call without waiting for its answer.
    pub fn send(&mut self, method: &str, params: &Value) -> Outcome<u64> {
        self.calls += 1;
        let call = json!({"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params});
        let mut text = call.to_string();
        text.push('\n');
        self.write.write_all(text.as_bytes())?;
        Ok(self.calls)
    }

    /// Calls and waits for the answer. Events that arrive before it are lost.
    pub fn call(&mut self, method: &str, params: &Value) -> Outcome<Value> {
        let id = self.send(method, params)?;
        loop {
            let line = self.next()?;
            if line.id == Some(id) {
                let result = line.result.ok_or("an answer without a result")?;
                return Ok(serde_json::from_str(result.get())?);
            }
        }
    }

    /// Reads the next line.
    pub fn read_line(&mut self) -> Outcome<&[u8]> {
        self.line.clear();
        if self.read.read_until(b'\n', &mut self.line)? == 0 {
            return Err("the daemon closed the connection".into());
        }
        self.bytes += self.line.len();
        Ok(&self.line)
    }

    /// Reads and parses the next line. An error that the daemon answered is returned as an error.
    fn next(&mut self) -> Outcome<Line<'_>> {
        self.read_line()?;
        let line: Line<'_> = serde_json::from_slice(&self.line)?;
        if let Some(error) = line.error {
            return Err(format!("the daemon answered {}", error.get()).into());
        }
        Ok(line)
    }

    /// Calls `on_event` with each event until the turn is completed. Fails if it did not succeed.
    pub fn wait_for_turn_end(&mut self, mut on_event: impl FnMut(&Event<'_>)) -> Outcome<()> {
        loop {
            let line = self.next()?;
            let Some(Params { result: event }) = &line.params else { continue };
            on_event(event);
            if event.kind == "turn.completed" {
                let result = event.result.map_or("", RawValue::get);
                if !result.contains("\"subtype\":\"success\"") {
                    return Err(format!("the turn ended with {result:.400}").into());
                }
                return Ok(());
            }
        }
    }

    /// Creates a session in `folder` and subscribes to it.
    pub fn create_session(&mut self, folder: &Path) -> Outcome<String> {
        self.create_session_with_model(folder, "model")
    }

    /// Same as `create_session`, with a model that has its own script.
    pub fn create_session_with_model(&mut self, folder: &Path, model: &str) -> Outcome<String> {
        let params = json!({"cwd": folder, "model": format!("load/{model}")});
        let created = self.call("session.create", &params)?;
        let id = created["session"]["session_id"].as_str().ok_or("no session id")?.to_owned();
        self.call("session.subscribe", &json!({"session_id": id}))?;
        Ok(id)
    }

    /// Submits an input and waits for the end of the turn.
    pub fn run_turn(&mut self, session: &str) -> Outcome<()> {
        self.send("session.submit", &json!({"session_id": session, "input": "go on"}))?;
        self.wait_for_turn_end(|_| {})
    }

    /// Submits an input to each of these sessions, without waiting.
    pub fn submit_all(&mut self, sessions: &[String]) -> Outcome<()> {
        for session in sessions {
            self.send("session.submit", &json!({"session_id": session, "input": "go on"}))?;
        }
        Ok(())
    }

    /// Collects the deltas of stamped answers until this number of turns is completed.
    pub fn collect_deltas(&mut self, turns: usize) -> Outcome<DeltaTimes> {
        let mut seen = DeltaTimes::default();
        while seen.completed_turns < turns {
            let line = self.next()?;
            let now = now_micros();
            let Some(Params { result: event }) = &line.params else { continue };
            match &*event.kind {
                "message.text_delta" => {
                    for stamp in event.text.as_bytes().chunks_exact(STAMP_DIGITS) {
                        let sent = std::str::from_utf8(stamp)?.parse()?;
                        seen.deltas.push((sent, now.saturating_sub(sent)));
                    }
                }
                "turn.completed" => {
                    let result = event.result.map_or("", RawValue::get);
                    if !result.contains("\"subtype\":\"success\"") {
                        return Err(format!("a turn ended with {result:.400}").into());
                    }
                    seen.completed_turns += 1;
                }
                _ => {}
            }
        }
        Ok(seen)
    }

    /// Waits for the first event of any kind.
    pub fn wait_for_any_event(&mut self) -> Outcome<()> {
        while self.next()?.params.is_none() {}
        Ok(())
    }

    /// Waits for an event of this kind.
    pub fn wait_for_event(&mut self, kind: &str) -> Outcome<()> {
        loop {
            if self.next()?.params.is_some_and(|params| params.result.kind == kind) {
                return Ok(());
            }
        }
    }

    /// Returns the client with a second handle of its socket. Shutting down the socket ends both.
    pub fn share_socket(self) -> Outcome<(UnixStream, Self)> {
        Ok((self.write.try_clone()?, self))
    }

    /// Reports each stamped delta until the connection ends: when it was sent and how long it took, in microseconds.
    pub fn report_deltas(&mut self, sender: &Sender<(u64, u64)>) {
        while let Ok(line) = self.next() {
            let now = now_micros();
            let Some(Params { result: event }) = &line.params else { continue };
            if event.kind != "message.text_delta" {
                continue;
            }
            for stamp in event.text.as_bytes().chunks_exact(STAMP_DIGITS) {
                let sent = std::str::from_utf8(stamp).ok().and_then(|text| text.parse().ok());
                if let Some(sent) = sent {
                    let _ = sender.send((sent, now.saturating_sub(sent)));
                }
            }
        }
    }

    /// Starts a thread that reads the events all the time.
    pub fn into_background(self) -> Outcome<BackgroundClient> {
        let calls = self.calls;
        let (write, mut client) = self.share_socket()?;
        let (sender, kinds) = channel();
        std::thread::spawn(move || {
            while let Ok(line) = client.next() {
                if let Some(Params { result: event }) = &line.params
                    && sender.send(event.kind.to_string()).is_err()
                {
                    return;
                }
            }
        });
        Ok(BackgroundClient { write, kinds, calls })
    }

    /// Returns the socket, so that no events are read any more.
    pub fn into_socket(self) -> UnixStream {
        self.write
    }

    /// Bytes of lines read so far.
    pub fn bytes_read(&self) -> usize {
        self.bytes
    }

    /// Counts lines until the session is idle.
    pub fn count_lines_until_idle(&mut self) -> Outcome<usize> {
        let mut lines = 0;
        loop {
            self.read_line()?;
            lines += 1;
            // The event that ends the turn is the last one, so only parse a line if no other was received.
            if self.read.buffer().is_empty() {
                let line: Line<'_> = serde_json::from_slice(&self.line)?;
                let Some(Params { result: event }) = &line.params else { continue };
                if event.kind == "session.status" && event.state == "idle" {
                    return Ok(lines);
                }
            }
        }
    }
}

/// A client whose events a thread reads all the time.
pub struct BackgroundClient {
    write: UnixStream,
    kinds: Receiver<String>,
    calls: u64,
}

impl Drop for BackgroundClient {
    fn drop(&mut self) {
        // The reading thread has the same socket.
        let _ = self.write.shutdown(std::net::Shutdown::Both);
    }
}

impl BackgroundClient {
    /// Sends a call. The thread stops reading if the answer is an error.
    pub fn send(&mut self, method: &str, params: &Value) -> Outcome<()> {
        self.calls += 1;
        let call = json!({"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params});
        Ok(self.write.write_all(format!("{call}\n").as_bytes())?)
    }

    /// Discards the events received so far.
    pub fn discard_events(&self) {
        while self.kinds.try_recv().is_ok() {}
    }

    /// Waits for an event of this kind.
    pub fn wait_for_event(&self, kind: &str) -> Outcome<()> {
        loop {
            let next =
                self.kinds.recv_timeout(READ_TIMEOUT).map_err(|error| format!("no {kind}: {error}"))?;
            if next == kind {
                return Ok(());
            }
        }
    }
}

/// The result of [`Client::collect_deltas`].
#[derive(Debug, Default)]
pub struct DeltaTimes {
    /// When each delta was sent and how long it took, in microseconds.
    pub deltas: Vec<(u64, u64)>,
    pub completed_turns: usize,
}
