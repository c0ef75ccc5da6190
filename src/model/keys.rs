//! API keys: their sources, and a type that hides their text.
//!
//! A key is read when a call needs it, so that a changed file or variable applies at once. It has no `Display`
//! or `Serialize`; in addition, its text is removed from faults.

use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use types::model::{FaultKind, ModelFault};

/// Prefix of the name of a systemd credential in place of a file.
pub const CREDENTIAL_PREFIX: &str = "credential:";
/// Time limit of a key command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
/// Variable with the folder in which systemd puts a service's credentials.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";
/// Maximum size of a key.
const MAX_KEY_BYTES: u64 = 64 << 10;

/// The source of a provider's key.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum KeySource {
    /// The provider needs no key.
    None,
    /// An environment variable.
    Env(String),
    /// An environment variable, if one is named and set; otherwise the file in which `agentctl login` stores the key.
    /// Without both, the provider needs no key unless it names a variable.
    Stored { variable: Option<String>, file: PathBuf },
    /// A file that only its owner may read or write; surrounding whitespace is ignored.
    File(PathBuf),
    /// The file with this name in `$CREDENTIALS_DIRECTORY`, where systemd puts credentials of a service
    /// (<https://systemd.io/CREDENTIALS/>). systemd controls its permissions.
    Credential(String),
    /// The output of this command, run by `sh -c` for at most 10 s.
    Command(String),
}

impl fmt::Debug for KeySource {
    /// A command may contain a secret, so it is not shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeySource::None => f.write_str("None"),
            KeySource::Env(name) => f.debug_tuple("Env").field(name).finish(),
            KeySource::Stored { variable, file } => {
                f.debug_tuple("Stored").field(variable).field(file).finish()
            }
            KeySource::File(path) => f.debug_tuple("File").field(path).finish(),
            KeySource::Credential(name) => f.debug_tuple("Credential").field(name).finish(),
            KeySource::Command(_) => f.write_str("Command(***)"),
        }
    }
}

/// The text of a key.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(String);

impl Secret {
    /// The text itself, for the one header that contains it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The name of an environment variable for error texts. Users write keys into `api_key_env` by mistake, so any other
/// text is not shown.
fn shown_variable(name: &str) -> &str {
    let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    if name.bytes().all(is_name) { name } else { "the variable that api_key_env names" }
}

impl KeySource {
    /// Reads the key; `Ok(None)` if the provider needs none. `variable` is the vendor's usual environment
    /// variable, for the error text. Cancel-safe: a running command is killed.
    pub(super) async fn read(&self, provider: &str, variable: &str) -> Result<Option<Secret>, ModelFault> {
        let missing = |why: String| {
            let set = match self {
                KeySource::Env(name) | KeySource::Stored { variable: Some(name), .. } => shown_variable(name),
                _ => variable,
            };
            ModelFault::new(
                FaultKind::NoKey,
                format!(
                    "no key for {provider}: {why}; set {set}, run `agentctl login {provider}`, or set api_key_env, \
                     api_key_file or api_key_command of [providers.{provider}]"
                ),
            )
        };
        let text = match self {
            KeySource::None => return Ok(None),
            KeySource::Env(name) => {
                std::env::var(name).map_err(|_| missing(format!("{} is not set", shown_variable(name))))?
            }
            KeySource::Stored { variable, file } => {
                let named = variable.as_ref().and_then(|name| std::env::var(name).ok());
                match named.filter(|text| !text.is_empty()) {
                    Some(text) => text,
                    // A file that cannot be looked at is no reason to send a request without a key.
                    None if tokio::fs::try_exists(file).await.unwrap_or(true) => {
                        from_private_file(file).await.map_err(missing)?
                    }
                    None => {
                        let Some(name) = variable else { return Ok(None) };
                        return Err(missing(format!("{} is not set", shown_variable(name))));
                    }
                }
            }
            KeySource::File(path) => from_private_file(path).await.map_err(missing)?,
            KeySource::Credential(name) => {
                let folder = std::env::var_os(CREDENTIALS);
                from_credentials(folder.map(PathBuf::from), name).await.map_err(missing)?
            }
            KeySource::Command(command) => {
                run(command).await.map_err(|why| missing(format!("api_key_command {why}")))?
            }
        };
        match text.trim() {
            "" => Err(missing("it is empty".into())),
            text => Ok(Some(Secret(text.to_owned()))),
        }
    }

    /// The variable of the environment that the key comes from, if it is not set.
    pub(super) fn missing_variable(&self) -> Option<String> {
        let name = match self {
            KeySource::Env(name) => name,
            KeySource::Stored { variable: Some(name), file } if !file.exists() => name,
            _ => return None,
        };
        let is_set = std::env::var_os(name).is_some_and(|value| !value.is_empty());
        (!is_set && shown_variable(name) == name).then(|| name.clone())
    }

    /// The key, if it can be read without running a command. A file that other users may read counts as well,
    /// because the key is only removed from texts.
    pub(super) async fn read_present(&self) -> Option<String> {
        let text = match self {
            KeySource::None | KeySource::Command(_) => return None,
            KeySource::Env(name) => std::env::var(name).ok(),
            KeySource::Stored { variable, file } => {
                let named = variable.as_ref().and_then(|name| std::env::var(name).ok());
                match named.filter(|text| !text.is_empty()) {
                    Some(text) => Some(text),
                    None => from_file(file).await.ok(),
                }
            }
            KeySource::File(path) => from_file(path).await.ok(),
            KeySource::Credential(name) => {
                from_credentials(std::env::var_os(CREDENTIALS).map(PathBuf::from), name).await.ok()
            }
        };
        text.map(|text| text.trim().to_owned())
    }
}

/// The content of a file with a secret, without blanks around it: a path, or `credential:NAME` for one of systemd. A file
/// that other users may read or write is refused.
///
/// # Errors
/// The file cannot be used, or is empty. The text never quotes the content.
pub async fn read_secret_file(path: &Path) -> Result<String, String> {
    let credential = path.to_str().and_then(|path| path.strip_prefix(CREDENTIAL_PREFIX));
    let text = match credential {
        Some(name) => from_credentials(std::env::var_os(CREDENTIALS).map(PathBuf::from), name).await?,
        None => from_private_file(path).await?,
    };
    match text.trim() {
        "" => Err(format!("{} is empty", path.display())),
        text => Ok(text.to_owned()),
    }
}

/// The text of a private file. A file that other users may read or write is refused, as in ssh.
async fn from_private_file(path: &Path) -> Result<String, String> {
    let failed = |error| read_failure(path, &error);
    let file = tokio::fs::File::open(path).await.map_err(failed)?;
    let mode = file.metadata().await.map_err(failed)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let path = path.display();
        return Err(format!(
            "{path} is open to others (mode {mode:04o}), so it is not used: chmod 600 {path}"
        ));
    }
    read_key(path, file).await
}

/// The text of a file, whatever its mode is.
async fn from_file(path: &Path) -> Result<String, String> {
    let file = tokio::fs::File::open(path).await.map_err(|error| read_failure(path, &error))?;
    read_key(path, file).await
}

async fn read_key(path: &Path, file: tokio::fs::File) -> Result<String, String> {
    let mut text = String::new();
    let read = file.take(MAX_KEY_BYTES).read_to_string(&mut text).await;
    read.map_err(|error| read_failure(path, &error))?;
    Ok(text)
}

fn read_failure(path: &Path, error: &std::io::Error) -> String {
    format!("could not read {} ({error})", path.display())
}

async fn from_credentials(folder: Option<PathBuf>, name: &str) -> Result<String, String> {
    let folder = folder.ok_or_else(|| {
        format!(
            "{CREDENTIALS} is not set, so there is no credential {name}: systemd sets it for a unit with \
             LoadCredential={name}:FILE"
        )
    })?;
    from_file(&folder.join(name)).await
}

/// Kills a command's process group when it is dropped.
struct ProcessGroup(Option<Pid>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // Ignore the error, because the group may have ended already.
            let _ = killpg(pid, Signal::SIGKILL);
        }
    }
}

/// The output of `sh -c command`. The error completes "api_key_command …" and never quotes output.
async fn run(command: &str) -> Result<String, String> {
    let mut program = Command::new("sh");
    program
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true);
    let mut child =
        base::proc::spawn(&mut program).map_err(|error| format!("could not be started ({error})"))?;
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    let mut group = ProcessGroup(pid);
    let output = child.stdout.take();
    let work = async {
        let mut text = String::new();
        if let Some(output) = output {
            output
                .take(MAX_KEY_BYTES)
                .read_to_string(&mut text)
                .await
                .map_err(|error| format!("gave no text ({error})"))?;
        }
        let status = child.wait().await.map_err(|error| format!("could not be waited for ({error})"))?;
        // The leader has ended; processes that it left running on purpose (such as an agent) are not killed.
        group.0 = None;
        if status.success() { Ok(text) } else { Err(format!("failed ({status})")) }
    };
    match tokio::time::timeout(COMMAND_TIMEOUT, work).await {
        Ok(done) => done,
        Err(_) => Err(format!("took longer than {} s", COMMAND_TIMEOUT.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(key: KeySource, expected: Result<&str, &str>) {
        match (key.read("acme", "ACME_API_KEY").await, expected) {
            (Ok(Some(secret)), Ok(text)) => assert_eq!(secret.reveal(), text),
            (Err(fault), Err(expected_text)) => {
                assert_eq!(fault.kind, FaultKind::NoKey);
                assert!(fault.message.contains(expected_text), "{:?} lacks {expected_text:?}", fault.message);
                assert!(fault.message.contains("[providers.acme]"), "{}", fault.message);
            }
            (got, wanted) => panic!("{got:?} instead of {wanted:?}"),
        }
    }

    #[tokio::test]
    async fn api_key_is_read_from_environment_file_or_command() {
        // Cargo sets this variable for every test. A test must not change the environment, because tests share it.
        check(KeySource::Env("CARGO_PKG_NAME".into()), Ok("model")).await;
        check(
            KeySource::Env("AGENTD_NO_SUCH_KEY".into()),
            Err("set AGENTD_NO_SUCH_KEY, run `agentctl login acme`, or set api_key_env"),
        )
        .await;

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        std::fs::write(&file, "  sk-file\n\n").unwrap();
        let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        for open in [0o644, 0o640, 0o604, 0o620, 0o601] {
            mode(open);
            let wanted = format!("chmod 600 {}", file.display());
            check(KeySource::File(file.clone()), Err(&wanted)).await;
        }
        mode(0o600);
        check(KeySource::File(file.clone()), Ok("sk-file")).await;
        mode(0o400);
        check(KeySource::File(file.clone()), Ok("sk-file")).await;
        mode(0o600);
        std::fs::write(&file, " \n").unwrap();
        check(KeySource::File(file), Err("it is empty")).await;
        check(KeySource::File(folder.path().join("absent")), Err("could not read")).await;

        check(KeySource::Command("printf 'sk-%s\\n' command".into()), Ok("sk-command")).await;
        check(KeySource::Command("echo sk-leak; exit 3".into()), Err("api_key_command failed")).await;
        let fault = KeySource::Command("echo sk-leak; exit 3".into()).read("acme", "X").await.unwrap_err();
        assert!(!fault.message.contains("sk-leak"), "{}", fault.message);
    }

    #[tokio::test]
    async fn stored_key_is_read_unless_named_variable_is_set() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("acme");
        let stored = |variable: Option<&str>| KeySource::Stored {
            variable: variable.map(String::from),
            file: file.clone(),
        };
        assert_eq!(stored(None).read("acme", "X").await, Ok(None), "a local server needs no key");
        let absent = Some("AGENTD_NO_SUCH_KEY");
        check(stored(absent), Err("set AGENTD_NO_SUCH_KEY, run `agentctl login acme`")).await;
        assert_eq!(stored(absent).missing_variable().as_deref(), absent);
        std::fs::write(&file, "sk-stored\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        check(stored(None), Err("chmod 600")).await;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        for source in [stored(None), stored(absent)] {
            assert_eq!(source.read_present().await.as_deref(), Some("sk-stored"));
            assert_eq!(source.missing_variable(), None);
            check(source, Ok("sk-stored")).await;
        }
        // Cargo sets this variable for every test.
        check(stored(Some("CARGO_PKG_NAME")), Ok("model")).await;
    }

    #[tokio::test]
    async fn dropped_key_command_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let command = format!("sleep 1000 & echo $! > {}; wait", file.display());
        let pid = {
            let mut key = Box::pin(run(&command));
            let read_pid = async {
                loop {
                    let text = std::fs::read_to_string(&file).unwrap_or_default();
                    if text.ends_with('\n') {
                        break text.trim().to_owned();
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::select! {
                done = &mut key => panic!("ended early: {done:?}"),
                pid = read_pid => pid,
            }
        };
        let child_end = async {
            // A zombie process counts as dead, like a missing one.
            let runs = || {
                let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                !stat.is_empty() && !stat.contains(") Z ")
            };
            while runs() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(COMMAND_TIMEOUT, child_end).await.expect("the child was stopped");
    }

    #[tokio::test]
    async fn systemd_credential_is_read_as_api_key() {
        let folder = tempfile::tempdir().unwrap();
        // With an access list for the service's user, systemd's files show group permission bits.
        let file = folder.path().join("acme");
        std::fs::write(&file, "sk-credential\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o440)).unwrap();
        let place = || Some(folder.path().to_owned());
        assert_eq!(from_credentials(place(), "acme").await.as_deref(), Ok("sk-credential\n"));
        assert!(from_credentials(place(), "other").await.unwrap_err().contains("could not read"));
        assert!(from_credentials(None, "acme").await.unwrap_err().contains("LoadCredential=acme:FILE"));
    }

    #[tokio::test]
    async fn provider_without_key_is_allowed() {
        assert_eq!(KeySource::None.read("acme", "X").await, Ok(None));
    }

    #[test]
    fn api_key_debug_output_is_redacted() {
        assert_eq!(format!("{:?}", Secret("sk".into())), "***");
        assert_eq!(format!("{:?}", KeySource::Command("echo sk".into())), "Command(***)");
    }
}
