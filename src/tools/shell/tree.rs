//! The whole process tree of a call, and its end (S8, S9).
//!
//! A process belongs to a call if it is in the session that the shell leads, if it carries the
//! call's mark in its environment, or if it descends from one that does. What was seen once is
//! remembered, so a process that loses its parent while we kill is not lost. Only a process that
//! left the session, scrubbed its environment *and* lost its parents before we first looked
//! escapes; that takes a PID namespace to catch.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use tokio::time::{Instant, sleep};

/// From the first signal until survivors are reported.
const AT_MOST: Duration = Duration::from_secs(5);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// The processes of one call. Kills what is left when it is dropped before [`Tree::end`].
pub(super) struct Tree {
    leader: i32,
    /// `AGENTD_CALL=…` as it stands in an environment.
    mark: Vec<u8>,
    /// Members seen so far, with their start time, which tells a process from a later one with
    /// the same id.
    known: HashMap<i32, u64>,
    /// At the last look somebody was in the leader's group, so its number is not somebody else's.
    has_group: bool,
    ended: bool,
}

struct Process {
    pid: i32,
    parent: i32,
    group: i32,
    session: i32,
    started: u64,
    is_dead: bool,
}

impl Tree {
    /// `leader` leads its own session.
    pub(super) fn new(leader: i32, mark: String) -> Self {
        Self { leader, mark: mark.into_bytes(), known: HashMap::new(), has_group: false, ended: false }
    }

    /// Living members, now.
    fn look(&mut self) -> Vec<i32> {
        let me = i32::try_from(std::process::id()).unwrap_or(0);
        let processes: Vec<Process> = processes().into_iter().filter(|process| process.pid != me).collect();
        let mut members: HashSet<i32> = processes
            .iter()
            .filter(|process| {
                process.pid == self.leader
                    || process.session == self.leader
                    || process.group == self.leader
                    || self.known.get(&process.pid) == Some(&process.started)
                    || is_marked(process.pid, &self.mark)
            })
            .map(|process| process.pid)
            .collect();
        loop {
            let before = members.len();
            let children = processes.iter().filter(|process| members.contains(&process.parent));
            let children: Vec<i32> = children.map(|process| process.pid).collect();
            members.extend(children);
            if members.len() == before {
                break;
            }
        }
        self.has_group = processes.iter().any(|process| process.group == self.leader);
        let members = processes.iter().filter(|process| members.contains(&process.pid));
        members
            .filter_map(|process| {
                self.known.insert(process.pid, process.started);
                (!process.is_dead).then_some(process.pid)
            })
            .collect()
    }

    fn signal(&self, members: &[i32], signal: Signal) {
        // The group first and at once: it cannot fork away from that.
        if self.has_group {
            let _ = killpg(Pid::from_raw(self.leader), signal);
        }
        for pid in members {
            let _ = kill(Pid::from_raw(*pid), signal);
        }
    }

    /// Takes the exit status of members that were handed to us because their parents died. Asks
    /// for each by its id and never for the leader, who is waited for elsewhere.
    fn reap(&self) {
        for pid in self.known.keys().filter(|pid| **pid != self.leader) {
            let _ = waitpid(Pid::from_raw(*pid), Some(WaitPidFlag::WNOHANG));
        }
    }

    /// Ends every member: TERM, after `grace` KILL, until none is left or five seconds are over.
    /// Returns those that survived. If this future is dropped, what is left is killed at once.
    pub(super) async fn end(mut self, grace: Duration) -> Vec<i32> {
        let begun = Instant::now();
        let mut termed = false;
        loop {
            // Looking reads all of /proc: not on this thread.
            let looked = tokio::task::spawn_blocking(move || {
                let members = self.look();
                (self, members)
            })
            .await;
            let Ok((tree, members)) = looked else { return Vec::new() };
            self = tree;
            self.reap();
            if members.is_empty() {
                self.ended = true;
                return Vec::new();
            }
            if begun.elapsed() >= AT_MOST {
                self.ended = true;
                return members;
            }
            if begun.elapsed() >= grace {
                self.signal(&members, Signal::SIGKILL);
            } else if !termed {
                termed = true;
                self.signal(&members, Signal::SIGTERM);
                // A stopped process must run to hear it.
                self.signal(&members, Signal::SIGCONT);
            }
            sleep(LOOK).await;
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if !self.ended {
            // Nobody waits for us here; killing what can be seen now is what is possible.
            let members = self.look();
            self.signal(&members, Signal::SIGKILL);
        }
    }
}

fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| {
            let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            parse_stat(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
        })
        .collect()
}

/// `pid (name) state ppid pgrp session … starttime …`; the name may hold anything.
fn parse_stat(pid: i32, stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<i32>().ok();
    Some(Process {
        pid,
        is_dead: matches!(*fields.first()?, "Z" | "X" | "x"),
        parent: number(1)?,
        group: number(2)?,
        session: number(3)?,
        started: fields.get(19)?.parse().ok()?,
    })
}

fn is_marked(pid: i32, mark: &[u8]) -> bool {
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_holds() {
        let stat = "42 (a) b (c) S 1 41 40 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 777 0 0";
        let process = parse_stat(42, stat).unwrap();
        assert_eq!((process.parent, process.group, process.session), (1, 41, 40));
        assert_eq!((process.started, process.is_dead), (777, false));
        assert!(parse_stat(1, "garbage").is_none());
    }
}
