//! The reasons of a command's failure, and the exit codes (`clients.md`).

use std::{fmt, io};

/// Exit codes. Scripts rely on them.
pub mod code {
    /// The command succeeded.
    pub const SUCCESS: u8 = 0;
    /// A permission was denied because no user could be asked, or because this client may not do that.
    pub const DENIED: u8 = 1;
    /// The model or its server failed.
    pub const MODEL: u8 = 2;
    /// The turn was aborted.
    pub const ABORTED: u8 = 3;
    /// An internal error, or the daemon refused the request.
    pub const INTERNAL: u8 = 4;
    /// A budget, a turn limit or the limit on repeated calls was reached.
    pub const BUDGET: u8 = 5;
    /// The output limit was reached, or the output does not match the schema.
    pub const OUTPUT: u8 = 6;
    /// The command line is invalid.
    pub const USAGE: u8 = 64;
    /// No daemon replies.
    pub const UNREACHABLE: u8 = 69;
}

/// The exit code for a turn's `result.subtype`. Unknown ones count as internal errors.
#[must_use]
pub fn code_of(subtype: &str) -> u8 {
    match subtype {
        "success" => code::SUCCESS,
        "llm_error" => code::MODEL,
        "aborted" => code::ABORTED,
        "permission_denied" => code::DENIED,
        "max_output_tokens" | "structured_output_invalid" => code::OUTPUT,
        "error_repeated_call" => code::BUDGET,
        limit if limit.starts_with("error_max_") => code::BUDGET,
        _ => code::INTERNAL,
    }
}

/// The end of a command: an exit code and a message for stderr (empty if everything was printed
/// already).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Exit code of the process.
    pub code: u8,
    /// The error and what the user can do; safe to print.
    pub message: String,
    /// Whether another attempt fails as well, although no daemon was reached.
    is_final: bool,
}

impl Failure {
    /// Fails with `code` and a message.
    #[must_use]
    pub fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), is_final: false }
    }

    /// Fails with `code`; the message was printed already.
    #[must_use]
    pub fn silent(code: u8) -> Self {
        Self::new(code, "")
    }

    /// Fails because the command was used wrongly.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(code::USAGE, message)
    }

    /// Fails with an internal error.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(code::INTERNAL, message)
    }

    /// Fails because no model is configured: says what to do.
    #[must_use]
    pub fn no_model() -> Self {
        Self::internal(
            "no model is configured yet. Two steps to the first turn:\n\
             \x20 agentctl login anthropic      asks for a key, stores it and tries it; also openai\n\
             \x20 agentctl                      begins a conversation in this folder\n\
             Instead of the first: export ANTHROPIC_API_KEY=… or OPENAI_API_KEY=… (OPENAI_BASE_URL for servers like it).\n\
             A local Ollama: export OLLAMA_HOST=127.0.0.1:11434, then agentctl run --model ollama/NAME \"…\"\n\
             Other servers: `[providers]` and `[models] main` in ~/.config/agentd/config.toml (docs/models.md).\n\
             To see it work without any of this: agentctl demo",
        )
    }

    /// Fails because no daemon answers.
    #[must_use]
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::new(code::UNREACHABLE, message)
    }

    /// The same failure, which lasts until the user changes something.
    pub(crate) fn into_final(self) -> Self {
        Self { is_final: true, ..self }
    }

    /// Whether no daemon was reached, and a later attempt may reach one.
    pub(crate) fn may_pass(&self) -> bool {
        self.code == code::UNREACHABLE && !self.is_final
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        // A reader such as `head` has closed the pipe. This is no error.
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::silent(code::SUCCESS);
        }
        Self::internal(format!("could not read or write: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::session::Subtype;

    #[test]
    fn turn_result_subtype_maps_to_exit_code() {
        let check = |subtype: Subtype, expected| assert_eq!(code_of(subtype.name()), expected);
        check(Subtype::Success, 0);
        check(Subtype::LlmError, 2);
        check(Subtype::Aborted, 3);
        check(Subtype::ErrorDuringExecution, 4);
        check(Subtype::ErrorMaxTurns, 5);
        check(Subtype::ErrorMaxBudgetUsd, 5);
        check(Subtype::ErrorMaxTokens, 5);
        check(Subtype::ErrorMaxTime, 5);
        check(Subtype::ErrorRepeatedCall, 5);
        check(Subtype::MaxOutputTokens, 6);
        assert_eq!(code_of("structured_output_invalid"), 6);
        assert_eq!(code_of("something_new"), 4);
    }
}
