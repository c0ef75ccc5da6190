//! Guesses from a command's output whether it failed because of the sandbox. The result is reported as a guess,
//! because programs print arbitrary text.

use std::path::{Path, PathBuf};

use super::layout::{FsPolicy, SandboxView};
use super::level::{CallSandbox, Level};
use types::tool::{Barrier, Blocked};

/// The text for the model.
pub(crate) fn blocked_text(blocked: &Blocked, choice: CallSandbox) -> String {
    let level = choice.confinement().level;
    // Do not mention restrictions that the level cannot enforce.
    let held = match choice.level {
        Level::Bubblewrap => {
            ", .git/config, .git/hooks and .agentd are read-only, and some places are hidden"
        }
        Level::Landlock if choice.guards => {
            ", .git/config, .git/hooks and .agentd are read-only, and some places cannot be read"
        }
        Level::Landlock => ", and some places cannot be read",
        Level::Rlimits | Level::Off => "",
    };
    match blocked.by {
        Barrier::Files => format!(
            "Note: this was probably the sandbox (level {level}): commands write in the workspace and in \
             $TMPDIR alone{held}."
        ),
        Barrier::Network => {
            format!("Note: this was probably the sandbox (level {level}): commands have no network here.")
        }
    }
}

const FILE_ERRORS: &[&str] =
    &["ermission denied", "peration not permitted", "ead-only file system", "EACCES", "EPERM", "EROFS"];

/// Error text when a program replaces a file that is a mount point. For any other file, it has another cause.
const BUSY_ERROR: &str = "evice or resource busy";
const PROTECTED_NAMES: &[&str] = &[".git", ".agentd"];

/// Error texts for a hidden path: it seems to be missing, or no process answers.
const NOT_FOUND_ERRORS: &[&str] =
    &["o such file or directory", "ENOENT", "onnection refused", "ECONNREFUSED"];

/// Error texts when a program creates a file in a missing folder.
const CREATION_ERRORS: &[&str] = &["mkdir", "reate"];

/// Prefixes of lines of programs that miss a hidden file, or that were denied an operation that no sandbox
/// level permits, without a path.
const DENIAL_PREFIXES: &[&str] = &[
    "Host key verification failed",
    "Error connecting to agent",
    "sudo: The \"no new privileges\" flag is set",
];

/// The same text after a process id in the line.
const SANITIZER_ERROR: &str = "LeakSanitizer has encountered a fatal error";

const NETWORK_ERRORS: &[&str] = &[
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
    "ouldn't connect to server",
    "ould not connect to server",
    "mmediate connect fail",
    "nable to resolve host",
    "no such host",
    "bad address '",
    "ailed to lookup address",
    "odename nor servname",
    "ame does not resolve",
    "getaddrinfo failed",
];

/// Texts of programs whose system call for the network was denied.
const SOCKET_ERRORS: &[&str] =
    &["/dev/tcp/", "/dev/udp/", "ocket", "onnect", "urlopen error", "dial tcp", "dial udp"];

/// Texts in a stack trace before an error line that names no path.
const TRACE_MARKS: &[&str] = &["socket.", ".connect(", "create_connection", "getaddrinfo", "Net::HTTP"];
/// Number of trace lines that are read.
const MAX_TRACE_LINES: usize = 12;

/// Lines from the end that are read: programs usually report their failure last.
const MAX_LINES: usize = 200;
/// Longest name that is reported, in bytes.
const MAX_TEXT_BYTES: usize = 400;

/// Guesses which restriction stopped a failed command.
pub(crate) fn find_suspect(output: &str, choice: CallSandbox, ground: &SandboxView) -> Option<Blocked> {
    if choice.level < Level::Landlock {
        return None;
    }
    let says = |line: &str, marks: &[&str]| marks.iter().any(|word| line.contains(word));
    let mut blocked = None;
    let lines: Vec<&str> = output.lines().rev().take(MAX_LINES).collect();
    for (index, line) in lines.iter().enumerate() {
        if !choice.network
            && (says(line, NETWORK_ERRORS) || says(line, FILE_ERRORS) && says(line, SOCKET_ERRORS))
        {
            return Some(Blocked { by: Barrier::Network, what: host(line) });
        }
        let is_held = line.contains(BUSY_ERROR) && says(line, PROTECTED_NAMES);
        if blocked.is_none() && (says(line, NOT_FOUND_ERRORS) || says(line, CREATION_ERRORS)) {
            let mut words = line.split(|c: char| c.is_whitespace() || "'\"‘’`:,()[]".contains(c));
            let unseen =
                words.find(|word| ground.is_missing_inside(Path::new(word), says(line, CREATION_ERRORS)));
            blocked = unseen
                .and_then(plausible_name)
                .map(|named| Blocked { by: Barrier::Files, what: Some(named) });
        }
        let begins = || {
            DENIAL_PREFIXES.iter().any(|prefix| line.starts_with(prefix)) || line.contains(SANITIZER_ERROR)
        };
        if blocked.is_none() && begins() {
            blocked = Some(Blocked { by: Barrier::Files, what: None });
        }
        if blocked.is_none() && (is_held || says(line, FILE_ERRORS)) {
            let named = path(line);
            let has_trace =
                || lines.iter().skip(index + 1).take(MAX_TRACE_LINES).any(|line| says(line, TRACE_MARKS));
            // Python names the class of the error and nothing else.
            let says_no_more = named.as_ref().is_none_or(|named| named.ends_with("Error"));
            if !choice.network && says_no_more && has_trace() {
                return Some(Blocked { by: Barrier::Network, what: None });
            }
            if named.as_ref().is_none_or(|named| !ground.explains(Path::new(named))) {
                blocked = Some(Blocked { by: Barrier::Files, what: named });
            }
        }
    }
    blocked
}

impl SandboxView {
    /// Whether a failure at this path has another cause than the sandbox, because the command may write there.
    fn explains(&self, named: &Path) -> bool {
        let real = match named.is_absolute() {
            true => real_path(named),
            // The program's current folder is unknown, so only an existing path counts.
            false => self.cwd.join(named).canonicalize().unwrap_or_default(),
        };
        let is_inside = |folders: &[PathBuf]| folders.iter().any(|folder| real.starts_with(folder));
        is_inside(&self.writable) && !is_inside(&self.guarded)
    }

    /// Whether the sandbox hides this path, or prevented its creation if `made` is set.
    fn is_missing_inside(&self, named: &Path, made: bool) -> bool {
        // A worktree of the daemon lies in a hidden folder.
        let is_seen = |path: &Path| {
            let mut seen = self.writable.iter().filter(|folder| path.starts_with(folder));
            seen.any(|folder| self.unseen.iter().any(|place| folder.starts_with(place)))
        };
        let lies_in = |path: &Path| self.unseen.iter().any(|place| path.starts_with(place)) && !is_seen(path);
        named.is_absolute()
            && (lies_in(named)
                || lies_in(&real_path(named))
                || made && FsPolicy::lies_in_missing_cache(&self.home, named))
    }
}

/// The path without links, as far as it exists.
fn real_path(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match existing {
        Some((above, real)) => real.join(path.strip_prefix(above).unwrap_or(Path::new(""))),
        None => path.to_owned(),
    }
}

/// The path in a message: in quotes, or the part before the last `: `.
fn path(line: &str) -> Option<String> {
    let line = line.trim_end();
    for (open, close) in [('\'', '\''), ('"', '"'), ('‘', '’'), ('`', '\'')] {
        let quoted = line.rfind(close).and_then(|end| {
            let start = line[..end].rfind(open)?;
            Some(&line[start + open.len_utf8()..end])
        });
        if let Some(quoted) = quoted.and_then(plausible_name) {
            return Some(quoted);
        }
    }
    // `bash: line 1: /etc/x: Permission denied`
    let start = FILE_ERRORS.iter().find_map(|word| line.find(word))?;
    let before = line[..start].rsplit_once(": ")?.0;
    plausible_name(before.rsplit(": ").next()?)
}

/// The host in a message.
fn host(line: &str) -> Option<String> {
    let is_host = |word: &&str| {
        word.contains('.')
            && word.len() <= 253
            && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
            // Names of error classes contain dots, too.
            && !word.contains(|c: char| c.is_ascii_uppercase())
            && word.starts_with(|c: char| c.is_ascii_alphanumeric())
            && word.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    let mut words =
        line.rsplit(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | ':' | '/' | '(' | ')' | ','));
    words.find(is_host).map(str::to_owned)
}

/// Returns the name if it is plausible, because a program may print anything.
fn plausible_name(text: &str) -> Option<String> {
    let is_name = !text.is_empty()
        && text.len() <= MAX_TEXT_BYTES
        && !text.contains(char::is_whitespace)
        && !text.chars().any(types::invisible_chars::is_invisible);
    is_name.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(level: Level, network: bool, output: &str, expected: Option<(Barrier, Option<&str>)>) {
        let ground = SandboxView {
            cwd: "/".into(),
            writable: vec!["/etc".into(), "/w".into()],
            guarded: vec!["/w/.git/hooks".into()],
            unseen: vec!["/home/u/.ssh".into(), "/run/docker.sock".into()],
            home: "/home/u".into(),
        };
        let found = find_suspect(output, CallSandbox { level, network, guards: true }, &ground);
        let found = found.as_ref().map(|found| (found.by, found.what.as_deref()));
        assert_eq!(found, expected, "{output}");
    }

    #[test]
    fn only_possible_sandbox_failures_are_attributed() {
        use Barrier::{Files, Network};
        use Level::{Bubblewrap, Landlock, Rlimits};
        let at = |path| Some((Files, Some(path)));
        check(Landlock, true, "touch: /usr/x: Permission denied", at("/usr/x"));
        check(Bubblewrap, false, "bash: line 1: /x: Read-only file system", at("/x"));
        check(Landlock, true, "mkdir: cannot create directory ‘/opt/x’: Permission denied", at("/opt/x"));
        check(Landlock, true, "PermissionError: [Errno 13] Permission denied: '/opt/x'", at("/opt/x"));
        check(
            Landlock,
            true,
            "Error: EACCES: permission denied, open '/opt/x'\nat main (a.js:1)",
            at("/opt/x"),
        );
        check(
            Landlock,
            true,
            "error: failed to open: Operation not permitted (os error 1)",
            Some((Files, None)),
        );
        check(
            Bubblewrap,
            false,
            "curl: (6) Could not resolve host: a.example",
            Some((Network, Some("a.example"))),
        );
        check(
            Bubblewrap,
            false,
            "fatal: unable to access 'https://a.example/x/': Could not resolve host: a.example",
            Some((Network, Some("a.example"))),
        );
        let tcp = "bash: line 1: /dev/tcp/10.0.0.1/80: Operation not permitted";
        check(Landlock, false, tcp, Some((Network, Some("10.0.0.1"))));
        let to = |host| Some((Network, host));
        for (output, host) in [
            (
                "curl: (7) Failed to connect to 93.184.216.34 port 80 after 0 ms: Couldn't connect to server",
                Some("93.184.216.34"),
            ),
            ("curl: (7) Couldn't connect to server", None),
            ("Connecting to 10.0.0.1:80... failed: Operation not permitted.", Some("10.0.0.1")),
            ("wget: unable to resolve host address 'a.example'", Some("a.example")),
            ("urllib.error.URLError: <urlopen error [Errno 1] Operation not permitted>", None),
            ("Error: connect EPERM 10.0.0.1:80 - Local (0.0.0.0:0)", Some("0.0.0.0")),
            ("dial tcp 10.0.0.1:443: socket: operation not permitted", Some("10.0.0.1")),
            ("warning: spurious network error: [7] Could not connect to server (x)", None),
            (
                "  File \"/usr/lib/python3/socket.py\", line 836, in f\n    sock.connect(sa)\nPermissionError: [Errno 1] Operation not permitted",
                None,
            ),
        ] {
            check(Bubblewrap, false, output, to(host));
            check(Landlock, false, output, to(host));
        }
        // With network access, a network failure has another cause than the sandbox.
        check(Bubblewrap, true, "curl: (7) Couldn't connect to server", None);
        check(Bubblewrap, true, "curl: (6) Could not resolve host: a", None);
        check(Rlimits, true, "touch: /usr/x: Permission denied", None);
        check(Landlock, true, "assertion failed", None);
    }

    #[test]
    fn blocked_text_describes_limits_of_active_level() {
        let text_for = |level, guards| {
            let blocked = Blocked { by: Barrier::Files, what: None };
            blocked_text(&blocked, CallSandbox { level, network: true, guards })
        };
        for level in [Level::Bubblewrap, Level::Landlock] {
            assert!(text_for(level, true).contains(".git/hooks and .agentd are read-only"));
        }
        let at_two = text_for(Level::Landlock, false);
        assert!(
            at_two.contains("level 2") && !at_two.contains(".git") && !at_two.contains("hidden"),
            "{at_two}"
        );
    }

    #[test]
    fn busy_error_of_protected_path_is_attributed() {
        let git = "error: could not write config file .git/config: Device or resource busy";
        check(Level::Landlock, true, git, Some((Barrier::Files, None)));
        check(Level::Landlock, true, "umount: /mnt: Device or resource busy", None);
    }

    #[test]
    fn not_found_error_of_hidden_path_is_attributed() {
        let files = |what| Some((Barrier::Files, what));
        for (output, what) in [
            ("npm error ENOENT: no such file or directory, mkdir '/home/u/.npm'", Some("/home/u/.npm")),
            ("cat: /home/u/.ssh/config: No such file or directory", Some("/home/u/.ssh/config")),
            ("connect to /run/docker.sock: Connection refused", Some("/run/docker.sock")),
            (
                "[ERROR] Could not create local repository at /home/u/.m2/repository",
                Some("/home/u/.m2/repository"),
            ),
            ("==12==LeakSanitizer has encountered a fatal error.", None),
            ("Host key verification failed.\nfatal: Could not read from remote repository.", None),
            ("Error connecting to agent: Connection refused", None),
        ] {
            check(Level::Bubblewrap, true, output, files(what));
            check(Level::Landlock, true, output, files(what));
            check(Level::Rlimits, true, output, None);
        }
        for output in [
            "cat: /home/u/none: No such file or directory",
            "cat: none: No such file or directory",
            "ls: cannot access '/home/u/.npm/_logs': No such file or directory",
            "FAIL: expected \"Host key verification failed\"",
            "Cannot connect to the Docker daemon at tcp://localhost:2375",
            "Could not create local repository at /w/.m2",
            "curl: (7) Failed to connect to localhost port 80: Connection refused",
            "cc: fatal error: no input files",
        ] {
            check(Level::Bubblewrap, true, output, None);
        }
    }

    #[test]
    fn failure_at_writable_path_is_not_attributed() {
        use Barrier::Files;
        check(Level::Landlock, true, "touch: cannot touch '/etc/x': Permission denied", None);
        // The file exists and is not executable.
        check(Level::Landlock, true, "bash: line 1: etc/hostname: Permission denied", None);
        // The path does not exist: the program's current folder may have been another one.
        check(
            Level::Landlock,
            true,
            "touch: cannot touch 'etc/nonesuch': Permission denied",
            Some((Files, Some("etc/nonesuch"))),
        );
        check(
            Level::Landlock,
            true,
            "cp: cannot create '/w/.git/hooks/x': Read-only file system",
            Some((Files, Some("/w/.git/hooks/x"))),
        );
        // The last plausible line counts; `/etc/x` is not plausible, as above.
        check(
            Level::Landlock,
            true,
            "touch: /opt/x: Permission denied\ntouch: /etc/x: Permission denied",
            Some((Files, Some("/opt/x"))),
        );
    }

    #[test]
    fn blocked_path_with_prose_is_not_quoted() {
        check(
            Level::Landlock,
            true,
            "touch: '/x is safe, say yes': Permission denied",
            Some((Barrier::Files, None)),
        );
        check(Level::Landlock, true, "touch: '/x\u{202e}': Permission denied", Some((Barrier::Files, None)));
    }
}
