//! Tests once which sandbox levels work on this machine. A command runs at each level and must fail to read a
//! hidden file.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use nix::libc;
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::layout::FsPolicy;
use super::level::{AvailableLevels, CallSandbox, Level};
use crate::shell::sandbox::spawn::CommandSandbox;
use base::proc;

/// Time limit of one test. A slower start counts as a failure, because every command would be as slow.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// The daemon's instance, once known; it marks the test processes.
static INSTANCE: OnceLock<String> = OnceLock::new();

/// Exit code of the command if it can read a hidden file.
const EXIT_READS_HIDDEN: i32 = 7;
/// Exit code of the command if it can write a protected file.
const EXIT_WRITES_PROTECTED: i32 = 9;

/// The result of the tests.
static AVAILABLE: OnceCell<AvailableLevels> = OnceCell::const_new();

/// Tests that run in the background. Dropping this value stops them.
#[derive(Debug)]
pub struct SandboxProbe(JoinHandle<()>);

impl Drop for SandboxProbe {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl AvailableLevels {
    /// Marks later test processes as this instance's, for [`super::super::sweep`].
    pub(crate) fn mark(instance: &str) {
        if !instance.is_empty() {
            // If several daemons run in one process, as in tests, the first one's name is used.
            let _ = INSTANCE.set(instance.to_owned());
        }
    }

    /// Runs the tests at the first call; later calls get the same result. Takes at most five seconds per level.
    pub async fn probe_once() -> &'static Self {
        AVAILABLE.get_or_init(Self::probe).await
    }

    /// The result of the tests, if they have ended.
    pub(crate) fn known() -> Option<&'static Self> {
        AVAILABLE.get()
    }

    /// Runs the tests in the background, so that the first command and `daemon.status` find their result.
    #[must_use]
    pub fn probe_in_background() -> SandboxProbe {
        SandboxProbe(tokio::spawn(async { _ = Self::probe_once().await }))
    }

    async fn probe() -> Self {
        let abi = landlock_abi();
        let bwrap = find("bwrap");
        let mut here = Self {
            abi,
            bwrap: bwrap.clone().unwrap_or_default(),
            landlock: Err("no Landlock in this kernel".into()),
            guards: Err("not tried".into()),
            bubblewrap: Ok(()),
        };
        let (landlock, guards, bubblewrap) = tokio::join!(
            try_level(Level::Landlock, false, &here),
            try_level(Level::Landlock, true, &here),
            try_level(Level::Bubblewrap, true, &here)
        );
        if abi > 0 {
            (here.landlock, here.guards) = (landlock, guards);
        }
        here.bubblewrap = if bwrap.is_some() { bubblewrap } else { Err("bwrap is not in PATH".into()) };
        tracing::debug!(?here, "tested the sandbox levels");
        here
    }
}

/// Finds a program in the folders of PATH.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&path).map(|dir| dir.join(program));
    found.find(|file| file.is_absolute() && file.is_file())
}

/// The Landlock version of the kernel, from the system call for this query.
fn landlock_abi() -> u32 {
    const GET_ABI_VERSION: u32 = 1;
    #[expect(unsafe_code, reason = "there is no other way to ask")]
    // SAFETY: with this flag, the kernel reads none of the daemon's memory and creates nothing.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            GET_ABI_VERSION,
        )
    };
    u32::try_from(version).unwrap_or(0)
}

/// Creates a home folder with a hidden file, and a workspace.
fn session_context() -> std::io::Result<tempfile::TempDir> {
    let dir = tempfile::tempdir()?;
    for name in ["home", "work", "temp"] {
        std::fs::create_dir(dir.path().join(name))?;
    }
    std::fs::write(dir.path().join("home/hidden"), "seen\n")?;
    std::fs::write(dir.path().join("work/guarded"), "")?;
    Ok(dir)
}

async fn try_level(level: Level, guards: bool, here: &AvailableLevels) -> Result<(), String> {
    let dir = session_context().map_err(|error| format!("no folder to try it with: {error}"))?;
    let path = dir.path().canonicalize().map_err(|error| error.to_string())?;
    let [home, work, temp, root] = ["home", "work", "temp", "root"].map(|name| path.join(name));
    let hidden = home.join("hidden");
    let layout = FsPolicy {
        home,
        guarded: vec![work.join("guarded")],
        writable: vec![work.clone()],
        temp,
        hidden: vec![hidden.clone()],
        ..FsPolicy::default()
    };
    let choice = CallSandbox { level, network: false, guards };
    let confined = CommandSandbox::new(choice, &layout, &root, here, Path::new("/"))
        .map_err(|error| error.to_string())?;
    let mut script = format!(
        "read -r line <\"$1\" && [ \"$line\" = seen ] && exit {EXIT_READS_HIDDEN}; : >\"$2/made\" || exit 8; "
    );
    if guards {
        script.push_str(&format!("! (echo x >\"$2/guarded\") || exit {EXIT_WRITES_PROTECTED}"));
    }
    let mut command: Command = confined.command("/bin/sh");
    command.arg("-c").arg(script).arg("sh").arg(&hidden).arg(&work);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    // The command gets no variables of the daemon. If the daemon is killed meanwhile, the next one finds
    // remaining processes by the mark.
    command.env_clear().envs(confined.variables().iter().map(|(name, value)| (name, value)));
    command.envs(INSTANCE.get().map(|instance| ("AGENTD_INSTANCE", instance)));
    confined.enforce_in(&mut command, Vec::new(), None, None);
    let child = proc::spawn(&mut command).map_err(|error| format!("could not be started: {error}"))?;
    let output = timeout(PROBE_TIMEOUT, child.wait_with_output()).await;
    let output =
        output.map_err(|_| "it did not end in time".to_owned())?.map_err(|error| error.to_string())?;
    match output.status.code() {
        Some(0) => Ok(()),
        Some(EXIT_READS_HIDDEN) => Err("it does not hide what it should".to_owned()),
        Some(EXIT_WRITES_PROTECTED) => Err("it does not guard what it should".to_owned()),
        _ => {
            let stderr_text = String::from_utf8_lossy(&output.stderr);
            Err(stderr_text.lines().next().unwrap_or("it failed without a word").chars().take(200).collect())
        }
    }
}
