//! The least client there can be: blocking, newline-delimited JSON, one session at a time.

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
use super::wire::{STAMP, micros};

/// How long anybody waits for a line.
const SOON: Duration = Duration::from_secs(60);

/// A connection to the daemon.
pub struct Client {
    write: UnixStream,
    read: BufReader<UnixStream>,
    line: Vec<u8>,
    calls: u64,
    bytes: usize,
}

/// What a line of the daemon says, as far as it matters here.
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
    /// Of a delta.
    #[serde(borrow, default)]
    pub text: Cow<'a, str>,
    /// Of a session's status.
    #[serde(borrow, default)]
    pub state: Cow<'a, str>,
    /// Of a completed turn.
    #[serde(borrow)]
    pub result: Option<&'a RawValue>,
}

impl Client {
    pub fn connect(socket: &Path) -> Outcome<Self> {
        let write = UnixStream::connect(socket)?;
        write.set_read_timeout(Some(SOON))?;
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

    /// Calls and waits for the answer; events that come before it are lost.
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

    /// The next line's bytes.
    pub fn raw(&mut self) -> Outcome<&[u8]> {
        self.line.clear();
        if self.read.read_until(b'\n', &mut self.line)? == 0 {
            return Err("the daemon closed the connection".into());
        }
        self.bytes += self.line.len();
        Ok(&self.line)
    }

    /// The next line; an error that the daemon answered is ours too.
    fn next(&mut self) -> Outcome<Line<'_>> {
        self.raw()?;
        let line: Line<'_> = serde_json::from_slice(&self.line)?;
        if let Some(error) = line.error {
            return Err(format!("the daemon answered {}", error.get()).into());
        }
        Ok(line)
    }

    /// Hands every event to `each` until the turn is completed, and checks that it went well.
    pub fn until_completed(&mut self, mut each: impl FnMut(&Event<'_>)) -> Outcome<()> {
        loop {
            let line = self.next()?;
            let Some(Params { result: event }) = &line.params else { continue };
            each(event);
            if event.kind == "turn.completed" {
                let result = event.result.map_or("", RawValue::get);
                if !result.contains("\"subtype\":\"success\"") {
                    return Err(format!("the turn ended with {result:.400}").into());
                }
                return Ok(());
            }
        }
    }

    /// A new session in `folder` that this connection follows.
    pub fn session(&mut self, folder: &Path) -> Outcome<String> {
        self.session_with(folder, "model")
    }

    /// The same, with a model that has a script of its own.
    pub fn session_with(&mut self, folder: &Path, model: &str) -> Outcome<String> {
        let params = json!({"cwd": folder, "model": format!("load/{model}")});
        let made = self.call("session.create", &params)?;
        let id = made["session"]["session_id"].as_str().ok_or("no session id")?.to_owned();
        self.call("session.subscribe", &json!({"session_id": id}))?;
        Ok(id)
    }

    /// One turn from the prompt to its end.
    pub fn turn(&mut self, session: &str) -> Outcome<()> {
        self.send("session.submit", &json!({"session_id": session, "input": "go on"}))?;
        self.until_completed(|_| {})
    }

    /// Submits to each of these sessions, without waiting for anything.
    pub fn submit_all(&mut self, sessions: &[String]) -> Outcome<()> {
        for session in sessions {
            self.send("session.submit", &json!({"session_id": session, "input": "go on"}))?;
        }
        Ok(())
    }

    /// Follows stamped answers until so many turns are completed.
    pub fn watch(&mut self, turns: usize) -> Outcome<DeltaTimes> {
        let mut seen = DeltaTimes::default();
        while seen.completed < turns {
            let line = self.next()?;
            let now = micros();
            let Some(Params { result: event }) = &line.params else { continue };
            match &*event.kind {
                "message.text_delta" => {
                    for stamp in event.text.as_bytes().chunks_exact(STAMP) {
                        let sent = std::str::from_utf8(stamp)?.parse()?;
                        seen.deltas.push((sent, now.saturating_sub(sent)));
                    }
                }
                "turn.completed" => {
                    let result = event.result.map_or("", RawValue::get);
                    if !result.contains("\"subtype\":\"success\"") {
                        return Err(format!("a turn ended with {result:.400}").into());
                    }
                    seen.completed += 1;
                }
                _ => {}
            }
        }
        Ok(seen)
    }

    /// Waits for the first event of any kind.
    pub fn until_event(&mut self) -> Outcome<()> {
        while self.next()?.params.is_none() {}
        Ok(())
    }

    /// Waits for an event of this kind.
    pub fn until_kind(&mut self, kind: &str) -> Outcome<()> {
        loop {
            if self.next()?.params.is_some_and(|params| params.result.kind == kind) {
                return Ok(());
            }
        }
    }

    /// The same connection twice: closing the socket ends it for both.
    pub fn shared(self) -> Outcome<(UnixStream, Self)> {
        Ok((self.write.try_clone()?, self))
    }

    /// Tells of every stamped delta: when it was sent and how long it took. Until the connection ends.
    pub fn tell_stamps(&mut self, tell: &Sender<(u64, u64)>) {
        while let Ok(line) = self.next() {
            let now = micros();
            let Some(Params { result: event }) = &line.params else { continue };
            if event.kind != "message.text_delta" {
                continue;
            }
            for stamp in event.text.as_bytes().chunks_exact(STAMP) {
                let sent = std::str::from_utf8(stamp).ok().and_then(|text| text.parse().ok());
                if let Some(sent) = sent {
                    let _ = tell.send((sent, now.saturating_sub(sent)));
                }
            }
        }
    }

    /// A client whose events are read by a thread, whatever the caller does meanwhile.
    pub fn host(self) -> Outcome<Host> {
        let calls = self.calls;
        let (write, mut client) = self.shared()?;
        let (tell, kinds) = channel();
        std::thread::spawn(move || {
            while let Ok(line) = client.next() {
                if let Some(Params { result: event }) = &line.params
                    && tell.send(event.kind.to_string()).is_err()
                {
                    return;
                }
            }
        });
        Ok(Host { write, kinds, calls })
    }

    /// Leaves the socket to somebody who will not read from it.
    pub fn into_socket(self) -> UnixStream {
        self.write
    }

    /// Bytes of lines read so far.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts lines until the session is idle again.
    pub fn count_until_idle(&mut self) -> Outcome<usize> {
        let mut lines = 0;
        loop {
            self.raw()?;
            lines += 1;
            // What ends the turn is the last for now: only such lines are worth a closer look.
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

/// A client that is read from all the time.
pub struct Host {
    write: UnixStream,
    kinds: Receiver<String>,
    calls: u64,
}

impl Drop for Host {
    fn drop(&mut self) {
        // Its reader has the same socket.
        let _ = self.write.shutdown(std::net::Shutdown::Both);
    }
}

impl Host {
    /// Sends a call; an answer that is an error ends the connection.
    pub fn send(&mut self, method: &str, params: &Value) -> Outcome<()> {
        self.calls += 1;
        let call = json!({"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params});
        Ok(self.write.write_all(format!("{call}\n").as_bytes())?)
    }

    /// Forgets the events so far.
    pub fn forget(&self) {
        while self.kinds.try_recv().is_ok() {}
    }

    /// Waits for an event of this kind.
    pub fn until(&self, kind: &str) -> Outcome<()> {
        loop {
            let next = self.kinds.recv_timeout(SOON).map_err(|error| format!("no {kind}: {error}"))?;
            if next == kind {
                return Ok(());
            }
        }
    }
}

/// What a client saw of stamped answers.
#[derive(Debug, Default)]
pub struct DeltaTimes {
    /// When each delta was sent and how long it took, in microseconds.
    pub deltas: Vec<(u64, u64)>,
    pub completed: usize,
}
