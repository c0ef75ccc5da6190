//! Standard input as text: the whole task, or text that was piped in addition to a task.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use crate::failure::Failure;
use crate::terminal::out::OutputStreams;
use base::proc;

/// Maximum bytes of standard input: more than the context window of every model, and well below the size
/// limit of a message to the daemon.
const MAX_BYTES: usize = 4 << 20;

/// After this time without a byte, the program tells the user that it waits for input, or that it
/// ignores a pipe without a writer.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(2);

/// All of standard input.
pub(crate) fn read_all() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    text(bytes)
}

/// Piped or redirected standard input; `None` if there is none. Terminals and devices such as
/// `/dev/null` are not read. A script may have inherited a pipe that is never written to and never
/// closed. So a silent pipe is ignored, unless a program of the same pipeline still writes to it.
pub(crate) fn read_piped(out: &mut OutputStreams) -> Result<Option<String>, Failure> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let meta = input.metadata()?;
    let kind = meta.file_type();
    if !(kind.is_file() || kind.is_fifo() || kind.is_socket()) {
        return Ok(None);
    }
    read_until_end(input, SILENCE_TIMEOUT, || kind.is_file() || has_writer(&meta), out)
}

/// Whether a program that is no ancestor of this one holds the other end of the pipe, as in `make 2>&1
/// | agentctl …`.
fn has_writer(pipe: &Metadata) -> bool {
    let lineage = proc::lineage(std::process::id().cast_signed());
    proc::writers(pipe).any(|pid| !lineage.contains(&pid))
}

fn read_until_end(
    mut input: impl Read + Send + 'static,
    silence: Duration,
    has_writer: impl Fn() -> bool,
    out: &mut OutputStreams,
) -> Result<Option<String>, Failure> {
    let (sender, chunks) = sync_channel(1);
    // A read cannot be cancelled. The thread ends with the program at the latest.
    std::thread::spawn(move || {
        let mut chunk = vec![0; 64 << 10];
        loop {
            let read = input.read(&mut chunk).map(|count| chunk[..count].to_vec());
            let is_last = read.as_ref().map_or(true, Vec::is_empty);
            if sender.send(read).is_err() || is_last {
                return;
            }
        }
    });
    let mut bytes = Vec::new();
    let mut is_told = false;
    loop {
        match chunks.recv_timeout(silence) {
            Ok(chunk) => match chunk? {
                chunk if chunk.is_empty() => break,
                chunk => bytes.extend(chunk),
            },
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) if bytes.is_empty() && !has_writer() => {
                let text = "standard input is open, but no program of this pipeline writes to it: it is left out \
                            (`< /dev/null` saves the wait)";
                out.note(text)?;
                return Ok(None);
            }
            Err(RecvTimeoutError::Timeout) if !is_told => {
                out.note("reading standard input until it ends; `< /dev/null` leaves it out")?;
                is_told = true;
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if bytes.len() > MAX_BYTES {
            break;
        }
    }
    text(bytes).map(|text| Some(text).filter(|text| !text.trim().is_empty()))
}

fn text(bytes: Vec<u8>) -> Result<String, Failure> {
    if bytes.len() > MAX_BYTES {
        let most = MAX_BYTES >> 20;
        return Err(Failure::usage(format!(
            "standard input is longer than {most} MiB; put it into a file and name the file in the prompt"
        )));
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage("standard input is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use crate::connection::stdin::*;
    use crate::terminal::out::testing::captured_output;
    use std::io::Write as _;

    const READ_TIMEOUT: Duration = Duration::from_secs(60);

    fn read(text: impl Read + Send + 'static) -> Result<Option<String>, Failure> {
        let (mut out, _, side) = captured_output();
        let read = read_until_end(text, READ_TIMEOUT, || true, &mut out);
        assert_eq!(side.text(), "");
        read
    }

    #[test]
    fn piped_text_is_read_and_empty_is_none() {
        assert_eq!(read(&b"+a\n-b\n"[..]).expect("text"), Some("+a\n-b\n".into()));
        assert_eq!(read(&b""[..]).expect("nothing"), None);
        assert_eq!(read(&b" \n"[..]).expect("nothing"), None);
        let failure = read(&b"\xff"[..]).expect_err("not text");
        assert!(failure.code == 64 && failure.message.contains("UTF-8"), "{failure}");
    }

    #[test]
    fn piped_text_over_limit_is_refused_with_limit() {
        let most = || io::repeat(b'x').take(MAX_BYTES as u64);
        assert_eq!(read(most()).expect("text").map(|text| text.len()), Some(MAX_BYTES));
        let failure = read(most().chain(&b"y"[..])).expect_err("too long");
        assert!(failure.code == 64 && failure.message.contains("longer than 4 MiB"), "{failure}");
    }

    #[test]
    fn pipe_without_writer_is_ignored_and_slow_pipe_awaited() {
        let (mut out, _, side) = captured_output();
        let (input, writer) = io::pipe().expect("a pipe");
        assert_eq!(read_until_end(input, Duration::ZERO, || false, &mut out).expect("nothing"), None);
        assert!(side.text().contains("left out"), "{}", side.text());

        let (mut out, _, side) = captured_output();
        let (input, late) = io::pipe().expect("a pipe");
        let late = std::cell::RefCell::new(Some(late));
        // The writer waits until the user was told about the wait. Then it writes and ends.
        let writes = || {
            if side.text().contains("until it ends")
                && let Some(mut late) = late.borrow_mut().take()
            {
                late.write_all(b"late").expect("written");
            }
            true
        };
        let read = read_until_end(input, Duration::from_millis(1), writes, &mut out);
        assert_eq!(read.expect("text"), Some("late".into()));
        drop(writer);
    }

    #[test]
    fn pipe_writer_is_detected_unless_it_is_ancestor() {
        let (input, writer) = io::pipe().expect("a pipe");
        let pipe = File::from(std::os::fd::OwnedFd::from(input)).metadata().expect("a pipe");
        assert!(!has_writer(&pipe), "this process holds it");
        let mut child =
            std::process::Command::new("sleep").arg("1000").stdout(writer).spawn().expect("started");
        let is_seen = has_writer(&pipe);
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert!(is_seen);
    }
}
