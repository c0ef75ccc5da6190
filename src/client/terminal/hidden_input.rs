//! Reads one line from the terminal without showing it.

use std::io::{Read as _, Write as _, stderr, stdin};

use nix::sys::termios::{LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr};

use crate::failure::{Failure, code};

/// Maximum bytes of a line.
const MAX_BYTES: usize = 64 << 10;

/// Restores the terminal when it is dropped.
struct HiddenInput(Termios);

impl HiddenInput {
    /// Turns off the echo, and signals by keys too: a signal would end the program before the terminal is restored.
    fn begin() -> Result<Self, Failure> {
        let failed = |error| Failure::internal(format!("could not hide the input: {error}"));
        let before = tcgetattr(stdin()).map_err(failed)?;
        let mut hidden = before.clone();
        hidden.local_flags.remove(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG);
        hidden.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        hidden.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        tcsetattr(stdin(), SetArg::TCSAFLUSH, &hidden).map_err(failed)?;
        Ok(Self(before))
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        // If the terminal was closed, there is nothing to restore.
        let _ = tcsetattr(stdin(), SetArg::TCSAFLUSH, &self.0);
    }
}

/// Asks for a line that is not shown. Standard input must be a terminal.
pub fn ask_hidden(question: &str) -> Result<String, Failure> {
    let mut err = stderr();
    // Before the question: what is typed as soon as it shows must not be echoed.
    let hidden = HiddenInput::begin()?;
    err.write_all(format!("{question} ").as_bytes())?;
    err.flush()?;
    let line = read_line(stdin().lock().bytes());
    drop(hidden);
    err.write_all(b"\n")?;
    line
}

fn read_line(bytes: impl Iterator<Item = std::io::Result<u8>>) -> Result<String, Failure> {
    let mut line = Vec::new();
    for byte in bytes {
        match byte? {
            b'\r' | b'\n' => {
                return String::from_utf8(line).map_err(|_| Failure::usage("the input is not UTF-8 text"));
            }
            0x03 | 0x04 | 0x1b => break,
            0x08 | 0x7f => {
                line.pop();
            }
            // Ctrl-U removes the line.
            0x15 => line.clear(),
            byte if line.len() < MAX_BYTES => line.push(byte),
            _ => return Err(Failure::usage(format!("the input is longer than {} KiB", MAX_BYTES >> 10))),
        }
    }
    Err(Failure::new(code::ABORTED, "nothing was changed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_line_is_edited_and_ends_or_is_aborted() {
        let read = |typed: &[u8]| read_line(typed.iter().copied().map(Ok));
        assert_eq!(read(b"sk-a\n").expect("a line"), "sk-a");
        assert_eq!(read(b"wrong\x15sk-x\x7fb\rrest").expect("a line"), "sk-b");
        for typed in [&b"sk\x03"[..], b"sk\x04", b"\x1b", b"sk"] {
            let failure = read(typed).expect_err("aborted");
            assert!(failure.code == code::ABORTED && failure.message == "nothing was changed", "{failure}");
        }
        assert_eq!(read(b"\xff\n").expect_err("no text").code, code::USAGE);
        assert_eq!(read(&vec![b'x'; MAX_BYTES + 1]).expect_err("too long").code, code::USAGE);
    }
}
