//! Whether a command failed because of its sandbox, by what it said. A guess, and told as one: programs
//! say what they please.

use super::level::{Choice, Level};

/// What seems to have been in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tools::shell) enum Blocked {
    /// A file that may not be written or seen, or a system call that is forbidden.
    Files,
    /// The network, which is off.
    Network,
}

impl Blocked {
    /// Its name in the details of a result.
    pub(in crate::tools::shell) const fn name(self) -> &'static str {
        match self {
            Blocked::Files => "files",
            Blocked::Network => "network",
        }
    }
}

impl Blocked {
    /// For the model.
    pub(in crate::tools::shell) fn words(self, choice: Choice) -> String {
        let level = choice.told().level;
        match self {
            Blocked::Files => format!(
                "Note: this was probably the sandbox (level {level}): commands write in the workspace and in \
                 $TMPDIR alone, .git/config, .git/hooks and .agentd are read-only, and some places are hidden."
            ),
            Blocked::Network => {
                format!("Note: this was probably the sandbox (level {level}): commands have no network here.")
            }
        }
    }
}

const FILES: &[&str] =
    &["ermission denied", "peration not permitted", "ead-only file system", "EACCES", "EPERM", "EROFS"];

const NETWORK: &[&str] = &[
    "etwork is unreachable",
    "ould not resolve host",
    "emporary failure in name resolution",
    "ame or service not known",
    "emporary failure resolving",
    "ENETUNREACH",
    "EAI_AGAIN",
    "ENOTFOUND",
    "dns error",
    "etwork unreachable",
];

/// What seems to have kept a failed command from what it wanted.
pub(in crate::tools::shell) fn suspect(output: &str, choice: Choice) -> Option<Blocked> {
    let says = |words: &[&str]| words.iter().any(|word| output.contains(word));
    if choice.level < Level::Landlock {
        None
    } else if !choice.network && says(NETWORK) {
        Some(Blocked::Network)
    } else {
        says(FILES).then_some(Blocked::Files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_sandbox_can_do_is_put_on_it() {
        let check = |level, network, output: &str, expected| {
            assert_eq!(suspect(output, Choice { level, network }), expected, "{output}");
        };
        check(Level::Landlock, true, "touch: /etc/x: Permission denied", Some(Blocked::Files));
        check(Level::Bubblewrap, false, "bash: /x: Read-only file system", Some(Blocked::Files));
        check(Level::Bubblewrap, false, "curl: (6) Could not resolve host: a", Some(Blocked::Network));
        check(Level::Bubblewrap, true, "curl: (6) Could not resolve host: a", None);
        check(Level::Rlimits, true, "Permission denied", None);
        check(Level::Landlock, true, "assertion failed", None);
    }
}
