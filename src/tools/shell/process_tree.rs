//! Finds and ends all processes of a call.
//!
//! A process belongs to a call if it is in the call's cgroup, in the session of the shell, carries the call's
//! mark in its environment, or descends from such a process. Processes that were seen once are remembered, so
//! that one that loses its parent during the kill is still found.
//!
//! A process may make its environment unreadable (`gpg-agent` does, prctl(2), PR_SET_DUMPABLE) and lose its
//! parents. It becomes a child of the daemon without a recorded start. It is assigned to a call that ran when
//! the process began: the one of them that ends last. Without a cgroup, a process escapes if it left the
//! session, cleared its environment *and* lost its parents before the first scan. Only a PID namespace would
//! prevent this.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::time::{Instant, sleep};

use crate::shell::cgroup::CallCgroup;
use base::proc::{self, Process};
use base::sync::lock;

/// Time from the first signal until survivors are reported.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Time between two scans.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Scans in which a process has no environment before it is accepted as having none.
const MAX_EMPTY_SCANS: u8 = 5;
/// Number of scans and kills of a dropped tree, because no code waits for them.
const DROP_SCANS: usize = 3;

/// Leader and start time of all running trees of all sessions: an orphan may belong to any of them.
static RUNNING_TREES: Mutex<Vec<(i32, u64)>> = Mutex::new(Vec::new());

fn lock_running() -> MutexGuard<'static, Vec<(i32, u64)>> {
    // A panic cannot leave the list inconsistent.
    lock(&RUNNING_TREES)
}

/// The processes of one call. If it is dropped before [`ProcessTree::end`], the remaining ones are killed.
pub(super) struct ProcessTree {
    leader: i32,
    /// Start time of the leader in clock ticks since boot: no member is older.
    began: u64,
    /// `AGENTD_CALL=…` as it appears in an environment.
    mark: Vec<u8>,
    cgroup: Option<CallCgroup>,
    /// Members seen so far with their start time, which distinguishes a process from a later one with the same
    /// id.
    known: HashMap<i32, u64>,
    /// Processes seen without the mark.
    unmarked_processes: HashSet<(i32, u64)>,
    /// Processes seen without any environment, and how often.
    bare: HashMap<(i32, u64), u8>,
    /// Whether a process without an environment, or with an unreadable one, may have been a member in the
    /// last scan.
    in_doubt: bool,
    /// Whether the leader's group had a member in the last scan, so that its number is not reused.
    has_group: bool,
    ended: bool,
}

/// Result after a tree has ended.
pub(super) struct TreeEnd {
    /// Processes that could not be ended.
    pub(super) survivors: Vec<i32>,
    /// Number of processes that got the first signal.
    pub(super) leftovers: usize,
    pub(super) oom_kills: u64,
    pub(super) refused_forks: u64,
}

impl ProcessTree {
    /// `leader` leads its own session.
    pub(super) fn new(leader: i32, began: u64, mark: String, cgroup: Option<CallCgroup>) -> Self {
        lock_running().push((leader, began));
        Self {
            leader,
            began,
            mark: mark.into_bytes(),
            cgroup,
            known: HashMap::from([(leader, began)]),
            unmarked_processes: HashSet::new(),
            bare: HashMap::new(),
            in_doubt: false,
            has_group: false,
            ended: false,
        }
    }

    /// Scans for living members.
    fn scan_members(&mut self) -> Vec<i32> {
        let me = i32::try_from(std::process::id()).unwrap_or(0);
        let inside: HashSet<i32> = self.cgroup.iter().flat_map(CallCgroup::members).collect();
        let processes: Vec<Process> =
            proc::list_processes().into_iter().filter(|process| process.pid != me).collect();
        // When the leader and its group are gone, another process may get its number.
        let leads = !is_taken(&processes, self.leader, self.began);
        self.in_doubt = false;
        let mut members = HashSet::new();
        for process in &processes {
            let is_member = (leads && is_led_by(process, self.leader, self.began))
                || self.known.get(&process.pid) == Some(&process.started)
                || inside.contains(&process.pid)
                || self.is_marked(process);
            if is_member {
                members.insert(process.pid);
            }
        }
        add_descendants(&mut members, &processes);
        self.has_group = leads && processes.iter().any(|process| process.group == self.leader);
        let members = processes.iter().filter(|process| members.contains(&process.pid));
        members
            .filter_map(|process| {
                self.known.insert(process.pid, process.started);
                (!process.is_dead).then_some(process.pid)
            })
            .collect()
    }

    fn is_marked(&mut self, process: &Process) -> bool {
        let identity = (process.pid, process.started);
        if process.is_dead || process.started < self.began || self.unmarked_processes.contains(&identity) {
            return false;
        }
        let environ = proc::environ(process.pid);
        if environ.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
            return self.has_left(process);
        }
        let is_marked = environ.as_deref().is_ok_and(|environ| proc::has_entry(environ, &self.mark));
        // A process that is executing another program has no environment for a moment.
        if environ.is_ok_and(|environ| environ.is_empty()) {
            let looks = self.bare.entry(identity).or_default();
            *looks = looks.saturating_add(1);
            if *looks < MAX_EMPTY_SCANS {
                self.in_doubt = true;
                return false;
            }
        }
        if !is_marked {
            self.unmarked_processes.insert(identity);
        }
        is_marked
    }

    /// Whether a process with an unreadable environment can belong to this call only.
    fn has_left(&mut self, process: &Process) -> bool {
        let is_older = |(leader, began): &(i32, u64)| {
            (*leader, *began) != (self.leader, self.began) && *began <= process.started
        };
        let is_alone = !lock_running().iter().any(is_older);
        let adopted = if is_alone { proc::is_adopted(process) } else { Some(false) };
        self.in_doubt |= adopted.is_none();
        adopted == Some(true)
    }

    /// Removes the tree from the list of running trees.
    fn unregister(&self) {
        lock_running().retain(|tree| *tree != (self.leader, self.began));
    }

    fn signal(&self, members: &[i32], signal: Signal) {
        if signal == Signal::SIGKILL
            && let Some(cgroup) = &self.cgroup
        {
            cgroup.kill();
        }
        // Kill the group first and at once, because its members cannot escape this by forking.
        if self.has_group {
            let _ = killpg(Pid::from_raw(self.leader), signal);
        }
        for pid in members {
            let _ = kill(Pid::from_raw(*pid), signal);
        }
    }

    /// Whether certainly no process remains, so that no scan is necessary. This is true after most commands.
    fn is_surely_empty(&self) -> bool {
        match &self.cgroup {
            None => proc::is_alone(),
            // Require two signs, because each can be evaded: a process may have moved to another cgroup, and
            // orphans may end and leave new ones while the lists are read.
            Some(cgroup) => {
                cgroup.is_empty() && !proc::is_there(self.leader, self.began) && proc::has_no_orphan()
            }
        }
    }

    fn tree_end(&self, leftovers: usize, survivors: Vec<i32>) -> TreeEnd {
        let cgroup = self.cgroup.as_ref();
        TreeEnd {
            survivors,
            leftovers,
            oom_kills: cgroup.map_or(0, CallCgroup::oom_kills),
            refused_forks: cgroup.map_or(0, CallCgroup::refused_forks),
        }
    }

    /// Ends every member: TERM, then KILL after `grace`, until none remains or five seconds have passed. If
    /// this future is dropped, the remaining ones are killed at once.
    pub(super) async fn end(self, grace: Duration) -> TreeEnd {
        self.end_members(false, grace).await
    }

    /// Like [`Self::end`] for a tree whose leader has ended. Members that are about to end by themselves may do so,
    /// and are no leftovers.
    pub(super) async fn end_leftovers(self, grace: Duration) -> TreeEnd {
        self.end_members(true, grace).await
    }

    async fn end_members(mut self, mut waits: bool, grace: Duration) -> TreeEnd {
        // If two calls end at the same time, at least the later one finds processes that may belong to either.
        self.unregister();
        if self.is_surely_empty() {
            self.ended = true;
            // Collect orphans that have ended.
            proc::reap();
            return self.tree_end(0, Vec::new());
        }
        let started_at = Instant::now();
        let mut termed = false;
        let mut leftovers = 0;
        loop {
            // A scan reads all of /proc, so it does not run on this thread.
            let scan = tokio::task::spawn_blocking(move || {
                let members = self.scan_members();
                // Members whose parents ended are now children of the daemon.
                proc::reap();
                (self, members)
            })
            .await;
            let Ok((tree, members)) = scan else {
                return TreeEnd { survivors: Vec::new(), leftovers: 0, oom_kills: 0, refused_forks: 0 };
            };
            self = tree;
            if members.is_empty() && !self.in_doubt || started_at.elapsed() >= KILL_TIMEOUT {
                self.ended = true;
                return self.tree_end(leftovers, members);
            }
            if std::mem::take(&mut waits) {
                sleep(POLL_INTERVAL).await;
                continue;
            }
            if started_at.elapsed() >= grace {
                self.signal(&members, Signal::SIGKILL);
            } else if !termed {
                (termed, leftovers) = (true, members.len());
                self.signal(&members, Signal::SIGTERM);
                // A stopped process must continue to receive the signal.
                self.signal(&members, Signal::SIGCONT);
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        self.unregister();
        if self.ended {
            return;
        }
        // No code waits here, so only processes that are visible now can be killed.
        for _ in 0..DROP_SCANS {
            let members = self.scan_members();
            if members.is_empty() && !self.in_doubt {
                break;
            }
            self.signal(&members, Signal::SIGKILL);
        }
        proc::reap();
    }
}

/// Whether the leader's number belongs to another process by now.
fn is_taken(processes: &[Process], leader: i32, began: u64) -> bool {
    processes.iter().any(|process| process.pid == leader && process.started != began)
}

/// Whether a process is in the leader's session or group and not older than the leader.
fn is_led_by(process: &Process, leader: i32, began: u64) -> bool {
    (process.session == leader || process.group == leader) && process.started >= began
}

/// Adds the children of members, their children, and so on.
pub(super) fn add_descendants(members: &mut HashSet<i32>, processes: &[Process]) {
    loop {
        let before = members.len();
        let children = processes.iter().filter(|process| members.contains(&process.parent));
        let children: Vec<i32> = children.map(|process| process.pid).collect();
        members.extend(children);
        if members.len() == before {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::shell::process_tree::*;

    fn process(pid: i32, session: i32, started: u64) -> Process {
        Process { pid, parent: 1, group: session, session, started, is_dead: false, is_suspended: false }
    }

    #[test]
    fn reused_pid_is_not_member_of_tree() {
        let (leader, began) = (40, 700);
        let own = [process(40, 40, 700), process(41, 40, 705)];
        assert!(!is_taken(&own, leader, began) && own.iter().all(|member| is_led_by(member, leader, began)));
        // The leader has ended, its children have not.
        assert!(!is_taken(&own[1..], leader, began));
        let later = [process(40, 40, 900), process(42, 40, 901)];
        assert!(is_taken(&later, leader, began));
        assert!(!is_led_by(&process(43, 40, 699), leader, began), "older than the leader");
        assert!(!is_led_by(&process(44, 44, 701), leader, began));
    }
}
