//! Asks for confirmation before a command does something that cannot be undone.

use std::io::{BufRead as _, IsTerminal as _, Write as _, stderr, stdin};

use crate::failure::{Failure, code};

/// Asks the user to confirm; everything but `y` and `yes` is a no. Without a terminal nothing is asked, and
/// the command needs `flag`.
pub fn confirm(question: &str, flag: &str) -> Result<(), Failure> {
    if !stdin().is_terminal() {
        return Err(Failure::usage(format!("{question} No user can be asked here: say {flag}")));
    }
    // Use stderr, because the user sees it even if the output is redirected.
    let mut err = stderr();
    err.write_all(format!("{question} [y/N] ").as_bytes())?;
    err.flush()?;
    let mut line = String::new();
    stdin().lock().read_line(&mut line)?;
    match line.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::new(code::DENIED, "nothing was changed")),
    }
}
