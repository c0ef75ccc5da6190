//! Whether a peer is a process that a tool of this daemon has started.
//!
//! Such a process has the daemon's user id, so the user id alone proves nothing. But the daemon is a child subreaper:
//! while it runs, the chain of parents of a tool's process leads to the daemon. Forking, a new process session and
//! lost parents do not change that. So the chain is read when a peer connects, while a handle (`SO_PEERPIDFD`,
//! unix(7)) prevents reuse of its pid.
//!
//! The marker in the environment of every tool process counts in addition. It identifies processes that
//! were started through another program, as long as they kept their environment. Tools of another
//! daemon of the same user count as tools here as well; otherwise two daemons could approve each
//! other's calls.
//!
//! If the origin cannot be determined, the peer counts as a tool's process.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use base::proc::{self, PeerHandle, is_alive, is_shortage};

/// Time limit of one inspection: a process can make its own environment unreadable for any time.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of concurrent inspections. Each inspection uses two descriptors, which may be scarce.
const MAX_LOOKUPS: usize = 4;
/// Wait between two attempts when no descriptor was free.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of parents that are followed.
const MAX_ANCESTORS: usize = 128;
/// Maximum number of walks that restart because a process in the chain ended.
const MAX_WALKS: usize = 16;

static LOOKUPS: Semaphore = Semaphore::const_new(MAX_LOOKUPS);

/// Result of the inspection of a peer when it connected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PeerOrigin {
    /// The program that the peer runs, for display. The process may have run another program before.
    pub exe: Option<PathBuf>,
    /// The reason why the peer counts as a process of a tool; `None` if it does not.
    pub tool: Option<String>,
}

impl PeerOrigin {
    fn from_tool(why: impl Into<String>) -> Self {
        Self { exe: None, tool: Some(why.into()) }
    }
}

/// Inspects the process on the other side of `socket`. `pid` comes from `SO_PEERCRED`; `mark` is the
/// `NAME=VALUE` in the environment of this daemon's tool processes.
pub(super) async fn inspect_peer(
    socket: &tokio::net::UnixStream,
    pid: Option<i32>,
    mark: Option<Arc<[u8]>>,
) -> PeerOrigin {
    let Some(pid) = pid.filter(|pid| *pid > 0) else {
        return PeerOrigin::from_tool("its process is not in the daemon's namespace");
    };
    if u32::try_from(pid) == Ok(std::process::id()) {
        return PeerOrigin { exe: std::env::current_exe().ok(), tool: None };
    }
    let look = async {
        loop {
            let permit = LOOKUPS.acquire().await.ok()?;
            let handle = match PeerHandle::open(socket.as_fd()) {
                Err(error) if is_shortage(&error) => {
                    drop(permit);
                    tokio::time::sleep(RETRY_INTERVAL).await;
                    continue;
                }
                handle => handle,
            };
            let mark = mark.clone();
            let look = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                match handle {
                    Ok(handle) => read_origin(pid, handle.as_ref(), mark.as_deref()),
                    Err(_) => Some(PeerOrigin::from_tool(ENDED)),
                }
            });
            match look.await.ok()? {
                Some(origin) => return Some(origin),
                None => tokio::time::sleep(RETRY_INTERVAL).await,
            }
        }
    };
    match tokio::time::timeout(LOOKUP_TIMEOUT, look).await {
        Ok(Some(origin)) => origin,
        Ok(None) | Err(_) => PeerOrigin::from_tool("could not read its process in time"),
    }
}

const ENDED: &str = "its process had ended before it could be looked at";

/// `None`: no descriptor was free.
fn read_origin(pid: i32, handle: Option<&PeerHandle>, mark: Option<&[u8]>) -> Option<PeerOrigin> {
    if !is_alive(pid, handle)? {
        return Some(PeerOrigin::from_tool(ENDED));
    }
    let own = i32::try_from(std::process::id()).unwrap_or(-1);
    let chain = match read_steady_chain(|| read_chain(pid, own)) {
        Ok(chain) => chain,
        Err(ChainError::Short) => return None,
        Err(ChainError::Unreadable(why)) => return Some(PeerOrigin::from_tool(why)),
        Err(ChainError::Changed) => {
            let why = "its parents cannot be read: they end too fast, or /proc hides them (hidepid)";
            return Some(PeerOrigin::from_tool(why));
        }
    };
    // A process that is not dumpable shows only its name to other processes of its user.
    let name = || proc::name(pid).ok();
    let exe = proc::program(pid).ok();
    let exe = exe.or_else(|| name().map(|name| PathBuf::from(format!("[{name}]"))));
    let others = OtherDaemons::without_parents(own);
    let carries = |entry: &dyn Fn(&[u8]) -> bool| {
        let has = |environ: Vec<u8>| environ.split(|byte| *byte == 0).any(entry);
        chain.links.iter().any(|link| proc::environ(link.pid).is_ok_and(has))
    };
    let tool = if chain.ends_here {
        Some(
            "it descends from this daemon: from a tool, or from a program that the configuration names"
                .to_owned(),
        )
    } else if chain.links.iter().any(|link| others.is_daemon(*link)) {
        Some("it descends from another process called agentd, as the tools of one do".to_owned())
    } else if mark.is_some_and(|mark| carries(&|entry| entry == mark)) {
        Some("it, or a process above it, carries the mark of this daemon's tools".to_owned())
    } else if carries(&|entry| others.is_mark(entry)) {
        Some("it, or a process above it, carries the mark of another agentd's tools".to_owned())
    } else if !is_alive(pid, handle)? {
        Some("its process ended while it was looked at".to_owned())
    } else {
        None
    };
    Some(PeerOrigin { exe, tool })
}

/// Prefix of the marker that a daemon's tools have in their environment.
const MARK: &[u8] = b"AGENTD_INSTANCE=";
/// Process name of a daemon, whatever its file is called. The daemon sets it at its start
/// ([`set_process_name`]), and no process below it can change it.
const NAME: &str = "agentd";

/// Makes this process recognisable as a daemon to other processes of its user.
pub fn set_process_name() {
    // If this fails, the marker still identifies the daemon.
    let _ = proc::set_own_name(NAME);
}

/// Other daemons, except the parents of this one: a client inside a tool of a parent daemon is an
/// ordinary client here.
struct OtherDaemons {
    lineage: Vec<Link>,
    inherited: Option<Vec<u8>>,
}

impl OtherDaemons {
    fn without_parents(own: i32) -> Self {
        // A process that ends meanwhile is not a parent of the peer.
        let lineage = read_chain(own, -1).map(|chain| chain.links).unwrap_or_default();
        // The daemon is not dumpable, so it cannot read its own environment through `/proc` either.
        let inherited = std::env::var_os("AGENTD_INSTANCE").map(|value| [MARK, value.as_bytes()].concat());
        Self { lineage, inherited }
    }

    fn is_daemon(&self, link: Link) -> bool {
        !self.lineage.contains(&link) && proc::name(link.pid).is_ok_and(|name| name == NAME)
    }

    fn is_mark(&self, entry: &[u8]) -> bool {
        entry.starts_with(MARK) && self.inherited.as_deref() != Some(entry)
    }
}

/// A process in a chain of parents, with its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link {
    pid: i32,
    started: u64,
}

/// A process, its parent, its parent's parent …
#[derive(Clone, Debug, PartialEq, Eq)]
struct ParentChain {
    links: Vec<Link>,
    /// Whether the chain ends at this daemon, not at the first process.
    ends_here: bool,
}

/// The reason why a chain could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChainError {
    /// A process in the chain ended meanwhile, so its children have another parent now.
    Changed,
    /// No descriptor was free.
    Short,
    /// A permanent failure.
    Unreadable(&'static str),
}

/// Reads a chain until two consecutive walks agree, so that no process changed its parent meanwhile.
fn read_steady_chain(read: impl Fn() -> Result<ParentChain, ChainError>) -> Result<ParentChain, ChainError> {
    let mut last: Option<ParentChain> = None;
    for _ in 0..MAX_WALKS {
        match read() {
            // If a process's chain of parents leads to this daemon once, the process descends from this
            // daemon for all of its life.
            Ok(chain) if chain.ends_here => return Ok(chain),
            Ok(chain) if last.as_ref() == Some(&chain) => return Ok(chain),
            Ok(chain) => last = Some(chain),
            Err(ChainError::Changed) => last = None,
            Err(other) => return Err(other),
        }
    }
    Err(ChainError::Changed)
}

fn read_chain(pid: i32, own: i32) -> Result<ParentChain, ChainError> {
    climb_parents(pid, own, |pid| match proc::read_process(pid) {
        Ok(process) => Ok((process.parent, process.started)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ChainError::Changed),
        Err(error) if is_shortage(&error) => Err(ChainError::Short),
        Err(_) => Err(ChainError::Unreadable("its parents could not be read")),
    })
}

/// Walks up from `pid`. `read` returns a process's parent and its start time.
fn climb_parents(
    pid: i32,
    own: i32,
    read: impl Fn(i32) -> Result<(i32, u64), ChainError>,
) -> Result<ParentChain, ChainError> {
    let mut links: Vec<Link> = Vec::new();
    let mut current = pid;
    while links.len() < MAX_ANCESTORS {
        if current == own {
            return Ok(ParentChain { links, ends_here: true });
        }
        let (parent, started) = read(current)?;
        // A process that is younger than its child is not its parent: it has only reused the pid.
        if links.last().is_some_and(|child| child.started < started) {
            return Err(ChainError::Changed);
        }
        links.push(Link { pid: current, started });
        // This is the first process, or its parent is outside of this namespace. So the peer does not descend
        // from this daemon.
        if current == 1 || parent == 0 {
            return Ok(ParentChain { links, ends_here: false });
        }
        current = parent;
    }
    Err(ChainError::Unreadable("it has too many parents"))
}

#[cfg(test)]
mod tests {
    use crate::peer_origin::*;
    use std::cell::Cell;
    use std::collections::HashMap;

    const OWN_PID: i32 = 10;

    fn climb_table(processes: &[(i32, i32, u64)], pid: i32) -> Result<(Vec<i32>, bool), ChainError> {
        let known: HashMap<i32, (i32, u64)> =
            processes.iter().map(|(pid, parent, started)| (*pid, (*parent, *started))).collect();
        let chain = climb_parents(pid, OWN_PID, |pid| known.get(&pid).copied().ok_or(ChainError::Changed))?;
        Ok((chain.links.iter().map(|link| link.pid).collect(), chain.ends_here))
    }

    #[test]
    fn parent_chain_ends_at_daemon_or_init() {
        let server = [(1, 0, 0), (5, 1, 3), (10, 5, 4), (20, 10, 7), (21, 20, 7), (30, 5, 9), (40, 0, 9)];
        assert_eq!(climb_table(&server, 21), Ok((vec![21, 20], true)));
        assert_eq!(climb_table(&server, 20), Ok((vec![20], true)));
        assert_eq!(climb_table(&server, 30), Ok((vec![30, 5, 1], false)));
        assert_eq!(climb_table(&server, 40), Ok((vec![40], false)), "its parent is outside of the namespace");
        assert_eq!(climb_table(&server, 99), Err(ChainError::Changed));
    }

    #[test]
    fn parent_younger_than_child_has_reused_pid() {
        assert_eq!(climb_table(&[(1, 0, 0), (5, 1, 8), (30, 5, 7)], 30), Err(ChainError::Changed));
    }

    #[test]
    fn cyclic_parent_chain_is_refused() {
        assert!(matches!(climb_table(&[(30, 31, 7), (31, 30, 7)], 30), Err(ChainError::Unreadable(_))));
    }

    #[test]
    fn parent_chain_is_accepted_when_read_twice_equal() {
        let chain = |pid: i32| ParentChain { links: vec![Link { pid, started: 1 }], ends_here: false };
        let turns = Cell::new(0);
        let next = |answers: Vec<Result<ParentChain, ChainError>>| {
            turns.set(0);
            read_steady_chain(|| {
                turns.set(turns.get() + 1);
                answers.get(turns.get() - 1).cloned().unwrap_or(Err(ChainError::Changed))
            })
        };
        assert_eq!(next(vec![Ok(chain(1)), Ok(chain(2)), Ok(chain(2))]), Ok(chain(2)));
        assert_eq!(
            next(vec![Ok(chain(1)), Err(ChainError::Changed), Ok(chain(1)), Ok(chain(1))]),
            Ok(chain(1))
        );
        assert_eq!(turns.get(), 4);
        assert!(next(vec![Ok(chain(1))]).is_err(), "they change too fast");
        let ours = ParentChain { ends_here: true, ..chain(3) };
        assert_eq!(next(vec![Ok(chain(1)), Ok(ours.clone())]), Ok(ours));
    }

    #[tokio::test]
    async fn exited_or_child_peer_has_tool_role() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let listener = tokio::net::UnixListener::bind(&path).expect("bound");
        // This process is not its own child.
        let _own = tokio::net::UnixStream::connect(&path).await.expect("connected");
        let (socket, _) = listener.accept().await.expect("accepted");
        let pid = socket.peer_cred().expect("credentials").pid();
        assert_eq!(inspect_peer(&socket, pid, None).await.tool, None);
        assert!(inspect_peer(&socket, Some(0), None).await.tool.is_some());
        assert!(inspect_peer(&socket, None, None).await.tool.is_some());

        // A client that connects and exits at once, before the inspection.
        let script = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])";
        let ended = tokio::process::Command::new("python3").args(["-c", script]).arg(&path).status().await;
        if !ended.is_ok_and(|status| status.success()) {
            base::skip_test!("needs python3");
            return;
        }
        let (socket, _) = listener.accept().await.expect("accepted");
        let pid = socket.peer_cred().expect("credentials").pid();
        let why = inspect_peer(&socket, pid, None).await.tool.expect("gone");
        assert!(why.contains("ended"), "{why}");

        // A client that stays and is a child of this process, as a tool's command is.
        let mut child = tokio::process::Command::new("python3")
            .args(["-c", &format!("{script}; import time; time.sleep(60)")])
            .arg(&path)
            .kill_on_drop(true)
            .spawn()
            .expect("started");
        let (socket, _) = listener.accept().await.expect("accepted");
        let pid = socket.peer_cred().expect("credentials").pid();
        let found = inspect_peer(&socket, pid, None).await;
        assert!(found.tool.expect("a child").contains("descends"));
        assert!(found.exe.is_some_and(|exe| exe.to_string_lossy().contains("python")));
        child.kill().await.expect("killed");
    }
}
