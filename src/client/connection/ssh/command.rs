//! The command line and the environment of ssh.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::SshHost;

/// The variable that names another program for ssh.
const PROGRAM_VARIABLE: &str = "AGENTD_SSH";

/// Longest path of a control socket: 107 bytes that the system allows, without the 17 that ssh adds while it makes it.
const MAX_CONTROL_PATH_BYTES: usize = 90;
/// Bytes of `%C` in a control path: a SHA-1 in hexadecimal digits.
const CONTROL_HASH_BYTES: usize = 40;

/// Options of every call. Nothing of this machine is forwarded, whatever the user's ssh configuration says for other
/// uses of the host: no agent, no display, no port. The intervals notice a dead network within 15 s.
const OPTIONS: [&str; 15] = [
    "-T",
    "-a",
    "-x",
    "-o",
    "ClearAllForwardings=yes",
    "-o",
    "RemoteCommand=none",
    "-o",
    "PermitLocalCommand=no",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
];

/// Whether the other side may start a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DaemonStart {
    Allowed,
    Forbidden,
    /// Only one that crashed: the user may have stopped it meanwhile.
    AfterCrash,
}

/// Whether ssh may ask the user on the terminal: for a password, or about the key of an unknown host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prompts {
    Allowed,
    Never,
}

/// The way to a daemon on another machine.
#[derive(Clone, Debug)]
pub(crate) struct SshRoute {
    pub(crate) host: SshHost,
    pub(crate) start: DaemonStart,
    pub(crate) prompts: Prompts,
    /// The folder for the sockets of shared connections. It is private to the user.
    pub(crate) control_dir: PathBuf,
}

impl SshRoute {
    /// The same way, for another connection to a daemon that runs. A screen may use the terminal by then.
    pub(crate) fn again(&self) -> Self {
        Self { start: DaemonStart::Forbidden, prompts: Prompts::Never, ..self.clone() }
    }

    /// `ssh … -- DESTINATION agentctl daemon dial-stdio`.
    pub(crate) fn command(&self) -> Command {
        let program = base::proc::variable(PROGRAM_VARIABLE).filter(|name| !name.is_empty());
        let mut command = Command::new(program.unwrap_or_else(|| "ssh".into()));
        command.args(self.arguments());
        // The configuration of many systems sends the language variables to every host (`SendEnv LANG LC_*`).
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(is_withheld) {
                command.env_remove(name);
            }
        }
        command
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> = OPTIONS.map(String::from).to_vec();
        let mut option = |text: String| arguments.extend(["-o".to_owned(), text]);
        if self.prompts == Prompts::Never {
            option("BatchMode=yes".into());
        }
        if let Some(path) = control_path(&self.control_dir) {
            // Further connections use the first one, which saves their handshakes and their questions.
            option("ControlMaster=auto".into());
            option(format!("ControlPath={path}"));
            option("ControlPersist=60".into());
        }
        if let Some(port) = self.host.port() {
            arguments.extend(["-p".to_owned(), port.to_string()]);
        }
        arguments.extend(["--".to_owned(), self.host.destination(), "agentctl".to_owned()]);
        if self.start == DaemonStart::Forbidden {
            arguments.push("--no-start".into());
        }
        if let Some(socket) = self.host.socket() {
            arguments.extend(["--socket".to_owned(), socket.to_owned()]);
        }
        arguments.extend(["daemon", "dial-stdio"].map(String::from));
        if self.start == DaemonStart::AfterCrash {
            arguments.push("--after-crash".into());
        }
        arguments
    }
}

/// The path of the control socket with ssh's own tokens; `None` if ssh could not use it.
fn control_path(dir: &Path) -> Option<String> {
    let dir = dir.to_str()?;
    // ssh expands tokens and variables in this option, and reads quotes and blanks.
    let is_plain =
        dir.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '.' | '-' | '+' | '@'));
    let bytes = dir.len() + "/ssh-".len() + CONTROL_HASH_BYTES;
    (is_plain && bytes <= MAX_CONTROL_PATH_BYTES).then(|| format!("{dir}/ssh-%C"))
}

/// Whether ssh does not get a variable, so that it cannot send it.
fn is_withheld(name: &str) -> bool {
    matches!(name, "LANG" | "LANGUAGE" | "COLORTERM" | "NO_COLOR")
        || ["LC_", "AGENTD_", "AGENTCTL_"].iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(url: &str, start: DaemonStart, prompts: Prompts) -> SshRoute {
        let host = SshHost::parse(url).expect("an address");
        SshRoute { host, start, prompts, control_dir: "/run/user/1000/agentd".into() }
    }

    #[test]
    fn command_ends_options_before_the_destination() {
        let words = route("ssh://ann@build:2222/a.sock", DaemonStart::Allowed, Prompts::Allowed).arguments();
        let end = words.iter().position(|word| word == "--").expect("the end of options");
        let there = ["--", "ann@build", "agentctl", "--socket", "/a.sock", "daemon", "dial-stdio"];
        assert_eq!(words[end..], there);
        assert_eq!(words[end - 2..end], ["-p", "2222"]);
        for option in ["-a", "-x", "ClearAllForwardings=yes", "ControlPath=/run/user/1000/agentd/ssh-%C"] {
            assert!(words[..end].iter().any(|word| word == option), "{option}: {words:?}");
        }
        assert!(!words.iter().any(|word| word == "BatchMode=yes"), "{words:?}");
    }

    #[test]
    fn further_connections_neither_ask_nor_start_a_daemon() {
        let first = route("ssh://build", DaemonStart::Allowed, Prompts::Allowed);
        let words = first.again().arguments();
        assert!(words.iter().any(|word| word == "BatchMode=yes"), "{words:?}");
        assert!(words.ends_with(&["agentctl", "--no-start", "daemon", "dial-stdio"].map(String::from)));
        let words = route("ssh://build", DaemonStart::AfterCrash, Prompts::Never).arguments();
        assert!(words.ends_with(&["agentctl", "daemon", "dial-stdio", "--after-crash"].map(String::from)));
    }

    #[test]
    fn connections_are_not_shared_if_the_control_path_is_unusable() {
        for dir in ["/with blank", "/per%cent", "/do$llar", &format!("/{}", "long/".repeat(20))] {
            assert_eq!(control_path(Path::new(dir)), None, "{dir}");
        }
    }

    #[test]
    fn language_and_own_variables_are_withheld_from_ssh() {
        for name in ["LANG", "LC_ALL", "AGENTD_HOST", "AGENTD_SSH"] {
            assert!(is_withheld(name), "{name}");
        }
        for name in ["PATH", "HOME", "SSH_AUTH_SOCK", "DISPLAY"] {
            assert!(!is_withheld(name), "{name}");
        }
    }
}
