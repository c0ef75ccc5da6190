//! What works on this machine, found out by trying each level once: a command is started in it and has
//! to fail to read what is hidden from it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use nix::libc;
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::draft::Draft;
use super::layout::FsPolicy;
use super::level::{Choice, Level};
use crate::proc;
use crate::tools::shell::sandbox::spawn::Confined;

/// A start that takes longer is one that nobody wants to wait for.
const TRIED_WITHIN: Duration = Duration::from_secs(5);
/// The daemon's instance, once it is known: marks what is tried.
static INSTANCE: OnceLock<String> = OnceLock::new();

/// What the command says if it can read what it should not.
const SEES: i32 = 7;
/// The same if it can write what it should not.
const WRITES: i32 = 9;

/// What works here, or why it does not.
#[derive(Clone, Debug)]
pub struct Available {
    /// The version of Landlock; 0 for none.
    pub(super) abi: u32,
    /// Where bubblewrap is, not to be looked for again in folders that commands may change by then.
    pub(super) bwrap: PathBuf,
    landlock: Result<(), String>,
    guards: Result<(), String>,
    bubblewrap: Result<(), String>,
}

impl Available {
    /// Marks what is tried from now on as this instance's, for [`super::super::sweep`].
    pub(in crate::tools) fn mark(instance: &str) {
        if !instance.is_empty() {
            // Of several daemons in one process, as in tests, the first stands for all.
            let _ = INSTANCE.set(instance.to_owned());
        }
    }

    /// Tries at the first call; later ones get the same answer. Takes five seconds a level at most.
    pub async fn here() -> &'static Self {
        static HERE: OnceCell<Available> = OnceCell::const_new();
        HERE.get_or_init(Self::look).await
    }

    async fn look() -> Self {
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
        tracing::debug!(?here, "sandboxes tried");
        here
    }

    /// Whether level 2 works.
    pub(in crate::tools) fn landlock(&self) -> Result<(), &str> {
        self.landlock.as_ref().copied().map_err(String::as_str)
    }

    /// Whether level 2 can keep files of a folder that may be written from being changed.
    pub(in crate::tools) fn guards(&self) -> Result<(), &str> {
        self.guards.as_ref().copied().map_err(String::as_str)
    }

    /// Whether level 3 works.
    pub(in crate::tools) fn bubblewrap(&self) -> Result<(), &str> {
        self.bubblewrap.as_ref().copied().map_err(String::as_str)
    }

    #[cfg(test)]
    pub(super) fn pretend(bubblewrap: bool, landlock: bool) -> Self {
        let so = |works: bool| if works { Ok(()) } else { Err("not here".to_owned()) };
        Self {
            abi: 7,
            bwrap: PathBuf::new(),
            landlock: so(landlock),
            guards: so(landlock),
            bubblewrap: so(bubblewrap),
        }
    }
}

/// A program in the folders of PATH.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&path).map(|dir| dir.join(program));
    found.find(|file| file.is_absolute() && file.is_file())
}

/// The version of Landlock that the kernel offers, by the call that is for asking.
fn landlock_abi() -> u32 {
    const VERSION: u32 = 1;
    #[expect(unsafe_code, reason = "there is no other way to ask")]
    // SAFETY: with this flag the kernel reads no memory of ours and makes nothing.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0_usize, VERSION)
    };
    u32::try_from(version).unwrap_or(0)
}

/// A folder with a home that holds something hidden, and one to work in.
fn session_context() -> std::io::Result<tempfile::TempDir> {
    let dir = tempfile::tempdir()?;
    for name in ["home", "work", "temp"] {
        std::fs::create_dir(dir.path().join(name))?;
    }
    std::fs::write(dir.path().join("home/hidden"), "seen\n")?;
    std::fs::write(dir.path().join("work/guarded"), "")?;
    Ok(dir)
}

async fn try_level(level: Level, guards: bool, here: &Available) -> Result<(), String> {
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
    let choice = Choice { level, network: false, guards };
    let confined = Draft::of(choice, layout, &root, here)
        .and_then(|draft| Confined::by(draft, here, Path::new("/")))
        .map_err(|error| error.to_string())?;
    let mut script =
        format!("read -r line <\"$1\" && [ \"$line\" = seen ] && exit {SEES}; : >\"$2/made\" || exit 8; ");
    if guards {
        script.push_str(&format!("! (echo x >\"$2/guarded\") || exit {WRITES}"));
    }
    let mut command: Command = confined.command("/bin/sh");
    command.arg("-c").arg(script).arg("sh").arg(&hidden).arg(&work);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    // Nothing of ours is for it to know. A daemon that dies meanwhile may leave a part of it behind, which the
    // next one finds by its mark.
    command.env_clear().envs(confined.variables().iter().map(|(name, value)| (name, value)));
    command.envs(INSTANCE.get().map(|instance| ("AGENTD_INSTANCE", instance)));
    confined.enforce_in(&mut command, Vec::new(), None, None);
    let child = proc::spawn(&mut command).map_err(|error| format!("could not be started: {error}"))?;
    let output = timeout(TRIED_WITHIN, child.wait_with_output()).await;
    let output =
        output.map_err(|_| "it did not end in time".to_owned())?.map_err(|error| error.to_string())?;
    match output.status.code() {
        Some(0) => Ok(()),
        Some(SEES) => Err("it does not hide what it should".to_owned()),
        Some(WRITES) => Err("it does not guard what it should".to_owned()),
        _ => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(said.lines().next().unwrap_or("it failed without a word").chars().take(200).collect())
        }
    }
}
