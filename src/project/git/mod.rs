//! Calls git so that nothing of a repository runs: no hooks, fsmonitor, pager, signature check, external diff, network or
//! prompt. The filters and merge drivers of the repository's own configuration are switched off as well; those of the
//! user's configuration work, for example the ones of git-lfs.

mod call;
mod overrides;

pub(crate) use call::GitCall;
pub(crate) use overrides::RepositoryConfig;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

/// Time limit for reading a configuration.
const CONFIG_TIMEOUT: Duration = Duration::from_secs(10);
/// Options before every command. <https://git-scm.com/docs/git-config>
const SAFE_OPTIONS: [&str; 44] = [
    "--no-optional-locks",
    "--no-pager",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.pager=cat",
    "-c",
    "core.sshCommand=false",
    "-c",
    "core.askPass=",
    "-c",
    "credential.helper=",
    "-c",
    "diff.external=",
    "-c",
    "log.showSignature=false",
    "-c",
    "protocol.allow=never",
    "-c",
    "safe.bareRepository=explicit",
    "-c",
    "submodule.recurse=false",
    "-c",
    "status.submoduleSummary=false",
    "-c",
    "commit.gpgSign=false",
    "-c",
    "merge.verifySignatures=false",
    "-c",
    "merge.autoStash=false",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    "-c",
    "worktree.useRelativePaths=false",
    "-c",
    "core.editor=false",
    // Git still appends to a log that exists.
    "-c",
    "core.logAllRefUpdates=false",
    // An index is written as one file.
    "-c",
    "core.splitIndex=false",
];

/// A git command without arguments, with the safe options and a small environment.
pub(crate) fn safe_command() -> Command {
    let mut command = Command::new("git");
    command.args(SAFE_OPTIONS).env_clear();
    for name in ["PATH", "HOME", "XDG_CONFIG_HOME"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .envs([("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0")])
        .envs([
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_PAGER", "cat"),
            ("GIT_ASKPASS", "false"),
            ("SSH_ASKPASS", "false"),
        ])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// The same command for a folder, in which git looks for the repository.
pub(crate) fn safe_command_in(folder: &Path) -> Command {
    let mut command = safe_command();
    command.arg("-C").arg(folder);
    command
}

/// Why there is no answer of git. The text is for users.
#[derive(Debug)]
pub(crate) struct GitError(pub(crate) String);

/// Reads the configuration that applies in a repository. This runs nothing.
///
/// # Errors
/// Git cannot read the configuration, or it names too many programs.
pub(crate) async fn read_config(git_dir: &Path, common: &Path) -> Result<RepositoryConfig, GitError> {
    let call = GitCall::in_folder(common, CONFIG_TIMEOUT)
        .env("GIT_DIR", git_dir)
        .env("GIT_COMMON_DIR", common)
        .args(["config", "--list", "--show-scope", "--name-only", "-z"]);
    RepositoryConfig::parse(&call.output().await?)
}

/// A part of git's output as text, without line breaks at its end.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}

/// A part of git's output as a path.
pub(crate) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
