//! Ends processes that a killed daemon of the same state left running, before new work starts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::time::{Instant, sleep};

use crate::shell::cgroup::Cgroups;
use crate::shell::process_tree::add_descendants;
use base::proc::{self, Process};
use types::tool::ProcessRecord;

/// Time from the first kill until survivors are reported.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Time between two scans.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Longest time for which a call starts processes after its first one, in clock ticks (100 a second on every
/// Linux: a constant of its interface, proc(5) and sysconf(3)). Later members of a session without a leader may
/// belong to another session with a reused number.
const MAX_CALL_TICKS: u64 = 15 * 60 * 100;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepResult {
    /// Number of processes that were found.
    pub found: usize,
    /// Processes that could not be ended within five seconds.
    pub survivors: Vec<i32>,
}

/// Marks of the processes to find.
struct ProcessMarks {
    /// `AGENTD_INSTANCE=…`
    mark: Vec<u8>,
    cgroups: Arc<Cgroups>,
    /// Records of this boot.
    records: Vec<ProcessRecord>,
    /// Members seen so far, with their start time.
    known: HashMap<i32, u64>,
}

/// Kills the processes that an earlier daemon of this instance left: sessions and groups of `records`,
/// processes with the instance's mark or in one of its cgroups, and all their descendants. Repeats until none
/// is left. Never kills this process or its ancestors.
pub(crate) async fn sweep(
    instance: &str,
    cgroups: Arc<Cgroups>,
    mut records: Vec<ProcessRecord>,
) -> SweepResult {
    let boot_id = proc::boot_id();
    records.retain(|record| !boot_id.is_empty() && record.boot_id == boot_id);
    let mark = format!("AGENTD_INSTANCE={instance}").into_bytes();
    let mut wanted = ProcessMarks { mark, cgroups, records, known: HashMap::new() };
    let started_at = Instant::now();
    loop {
        let scan = tokio::task::spawn_blocking(move || {
            let survivors = wanted.kill();
            (wanted, survivors)
        })
        .await;
        let Ok((back, survivors)) = scan else { return SweepResult::default() };
        wanted = back;
        if survivors.is_empty() || started_at.elapsed() >= KILL_TIMEOUT {
            return SweepResult { found: wanted.known.len(), survivors };
        }
        sleep(POLL_INTERVAL).await;
    }
}

impl ProcessMarks {
    /// Scans once, kills the members that it finds and returns them.
    fn kill(&mut self) -> Vec<i32> {
        let processes = proc::list_processes();
        let spared = lineage(&processes);
        let alive: Vec<Process> =
            processes.iter().filter(|process| !spared.contains(&process.pid)).copied().collect();
        let mut members: HashSet<i32> = alive
            .iter()
            .filter(|process| !process.is_dead && self.is_member(process, &processes))
            .map(|process| process.pid)
            .collect();
        add_descendants(&mut members, &alive);
        let members: Vec<&Process> =
            alive.iter().filter(|process| !process.is_dead && members.contains(&process.pid)).collect();

        self.cgroups.end_leftovers(&spared);
        // Kill whole groups first and at once, because their members cannot escape this by forking.
        let groups: HashSet<i32> = members.iter().map(|process| process.group).collect();
        let is_whole = |group: &i32| {
            let mut others = processes.iter().filter(|process| process.group == *group);
            others.all(|process| process.is_dead || members.iter().any(|member| member.pid == process.pid))
        };
        for group in groups.into_iter().filter(|group| *group > 1 && is_whole(group)) {
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        for process in &members {
            self.known.insert(process.pid, process.started);
            let _ = kill(Pid::from_raw(process.pid), Signal::SIGKILL);
        }
        members.iter().map(|process| process.pid).collect()
    }

    fn is_member(&self, process: &Process, all: &[Process]) -> bool {
        self.known.get(&process.pid) == Some(&process.started)
            || self.records.iter().any(|record| is_recorded(record, process, all))
            || proc::environ(process.pid).is_ok_and(|environ| proc::has_entry(&environ, &self.mark))
            || proc::cgroup(process.pid).is_some_and(|path| self.cgroups.holds(&path))
    }
}

/// Whether a process is the recorded one or in its session or group.
fn is_recorded(record: &ProcessRecord, process: &Process, all: &[Process]) -> bool {
    if process.session != record.pid && process.group != record.pid {
        return false;
    }
    match all.iter().find(|leader| leader.pid == record.pid) {
        Some(leader) => leader.started == record.started,
        None => (record.started..record.started.saturating_add(MAX_CALL_TICKS)).contains(&process.started),
    }
}

/// This process and its ancestors: a daemon may be started from inside a command.
fn lineage(processes: &[Process]) -> Vec<i32> {
    let mut lineage = Vec::new();
    let mut next = i32::try_from(std::process::id()).ok();
    while let Some(pid) = next.filter(|pid| !lineage.contains(pid)) {
        lineage.push(pid);
        next = processes.iter().find(|process| process.pid == pid).map(|process| process.parent);
    }
    lineage
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::ids::{Mint, Seed};

    fn process(pid: i32, session: i32, started: u64) -> Process {
        Process { pid, parent: 1, group: session, session, started, is_dead: false, is_suspended: false }
    }

    #[test]
    fn reused_pid_is_not_recorded_process() {
        let call_id = Mint::new(0, Seed(1)).call();
        let record = ProcessRecord { call_id, pid: 50, started: 1_000, boot_id: "b".into() };
        let leader = process(50, 50, 1_000);
        let child = process(60, 50, 1_500);
        let reused = process(50, 50, 9_000);
        for (seen, all, expected) in [
            (leader, vec![leader], true),
            (child, vec![leader, child], true),
            // Its leader has ended.
            (child, vec![child], true),
            (reused, vec![reused], false),
            (child, vec![reused, child], false),
            // Another session with the same number, much later.
            (process(60, 50, 1_000 + MAX_CALL_TICKS), vec![], false),
            (process(60, 50, 999), vec![], false),
            (process(60, 61, 1_500), vec![leader], false),
        ] {
            assert_eq!(is_recorded(&record, &seen, &all), expected, "{seen:?} among {all:?}");
        }
    }

    #[test]
    fn sweep_spares_own_process_and_ancestors() {
        let lineage = lineage(&proc::list_processes());
        let parent = i32::try_from(std::os::unix::process::parent_id()).expect("an id");
        assert!(lineage.contains(&i32::try_from(std::process::id()).expect("an id")));
        assert!(lineage.contains(&parent), "{lineage:?}");
    }
}
