//! Selects the calls whose list begins with the cursor on "no". This is no verdict, because the rules have
//! judged the call already.

use types::permission::{Mode, RequestKind};
use types::session::PermissionRequest;
use types::tool::{PathSensitivity, Subject};

/// Programs that remove data for good, or act outside the folder.
const PROGRAMS: &[&str] = &[
    "chmod",
    "chown",
    "crontab",
    "dd",
    "doas",
    "kill",
    "killall",
    "kubectl",
    "mkfs",
    "mount",
    "pkill",
    "reboot",
    "rm",
    "rmdir",
    "rsync",
    "scp",
    "shred",
    "shutdown",
    "ssh",
    "su",
    "sudo",
    "systemctl",
    "terraform",
    "truncate",
    "unlink",
];

/// Subcommands of other programs that have such effects.
const SUBCOMMANDS: &[&str] =
    &["clean", "deploy", "destroy", "prune", "publish", "push", "release", "reset", "uninstall"];

/// Whether a wrong yes could do harm. A call is dangerous if it leaves the sandbox or the folder, or deletes
/// data. In `bypass`, every request is dangerous, because this mode makes no other requests.
pub(super) fn is_dangerous(request: &PermissionRequest, mode: Mode) -> bool {
    let parts = match &request.subject {
        Subject::Several { parts } => parts.as_slice(),
        subject => std::slice::from_ref(subject),
    };
    request.kind == RequestKind::Sandbox
        || mode == Mode::Bypass
        || parts.iter().any(is_dangerous_subject)
        || request.parts.iter().any(|part| is_dangerous_command(&part.words))
}

fn is_dangerous_subject(subject: &Subject) -> bool {
    match subject {
        Subject::Delete { .. } => true,
        Subject::Read { path } | Subject::Edit { path } => {
            !path.in_workspace || path.sensitivity != PathSensitivity::Ordinary
        }
        // Requests of older daemons have no parts, so split the command at blanks.
        Subject::Bash { command, .. } => {
            let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
            is_dangerous_command(&words)
        }
        _ => false,
    }
}

fn is_dangerous_command(words: &[String]) -> bool {
    let is_variable =
        |word: &&String| word.split_once('=').is_some_and(|(name, _)| !name.contains(['/', '-']));
    let mut words = words.iter().skip_while(is_variable);
    let Some(program) = words.next() else { return false };
    let program = program.rsplit('/').next().unwrap_or(program);
    let rest: Vec<&String> = words.collect();
    let is_asked = |word: &&&String| SUBCOMMANDS.contains(&word.as_str());
    PROGRAMS.contains(&program)
        || matches!(program, "git" | "cargo" | "npm" | "pnpm" | "yarn" | "docker" | "helm" | "gh" | "pip")
            && rest.iter().find(|word| !word.starts_with('-')).filter(is_asked).is_some()
        || program == "find"
            && rest.iter().any(|word| matches!(word.as_str(), "-delete" | "-exec" | "-execdir"))
}
