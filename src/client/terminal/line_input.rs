//! Lines of standard input.

use std::io::{self, IsTerminal as _};

use nix::sys::termios::{FlushArg, tcflush};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader, Lines};

/// Reads lines. Nothing is read before the first call of [`LineInput::next`].
pub(crate) struct LineInput {
    lines: Lines<BufReader<Box<dyn AsyncRead + Unpin + Send>>>,
    /// Whether a user types the lines. A pipe has no user who could have read a request.
    pub(crate) has_user: bool,
}

impl LineInput {
    pub(crate) fn stdin() -> Self {
        Self { has_user: io::stdin().is_terminal(), ..Self::from_pipe(tokio::io::stdin()) }
    }

    pub(crate) fn from_pipe(input: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let input: Box<dyn AsyncRead + Unpin + Send> = Box::new(input);
        Self { lines: BufReader::new(input).lines(), has_user: false }
    }

    #[cfg(test)]
    pub(crate) fn from_user(input: impl AsyncRead + Unpin + Send + 'static) -> Self {
        Self { has_user: true, ..Self::from_pipe(input) }
    }

    /// The next line; `None` at the end. Cancel-safe.
    pub(crate) async fn next(&mut self) -> io::Result<Option<String>> {
        self.lines.next_line().await
    }

    /// Discards what was typed before a request was shown, because it is no answer to the request.
    pub(crate) fn discard_typed(&self) {
        if self.has_user {
            // Without a terminal there is nothing to discard.
            let _ = tcflush(io::stdin(), FlushArg::TCIFLUSH);
        }
    }
}
