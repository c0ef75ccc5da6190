//! Reads processes from `/proc`, proc(5).

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::OnceLock;

/// A process at the moment of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: i32,
    /// Process id of the parent, which is notified when this process ends.
    pub parent: i32,
    /// Process group id.
    pub group: i32,
    /// Id of the process session.
    pub session: i32,
    /// Start time in clock ticks since boot. It distinguishes the process from a later one with the same id.
    pub started: u64,
    /// Whether the process has ended and only its exit status remains to be collected.
    pub is_dead: bool,
    /// Whether a signal such as SIGSTOP or a debugger has stopped it.
    pub is_suspended: bool,
}

/// All processes except kernel threads.
#[must_use]
pub fn list_processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| read_process(pid).ok())
        .filter(|process| process.pid != 2 && process.parent != 2)
        .collect()
}

/// Reads one process.
///
/// # Errors
/// `NotFound` if no process has this id. Other errors if the process could not be read.
pub fn read_process(pid: i32) -> io::Result<Process> {
    // One read returns the whole text or nothing: the kernel creates the text at once, and it is far shorter
    // than the buffer.
    let mut stat = [0; 4096];
    let read = File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read(&mut stat));
    let read = read.map_err(map_gone_error)?;
    parse(pid, &stat[..read]).ok_or_else(|| io::Error::other("a strange /proc/PID/stat"))
}

/// Whether the process with this start time runs. If this cannot be read, it counts as running.
#[must_use]
pub fn is_there(pid: i32, started: u64) -> bool {
    match read_process(pid) {
        Ok(process) => process.started == started && !process.is_dead,
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Maps ESRCH, which the kernel returns if a process ends during the read, to `NotFound`.
fn map_gone_error(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(nix::libc::ESRCH) { io::ErrorKind::NotFound.into() } else { error }
}

/// Parses `pid (name) state ppid pgrp session … num_threads … starttime …`. The name may contain any bytes.
fn parse(pid: i32, stat: &[u8]) -> Option<Process> {
    // Search in bytes, not in text, because a process may choose any name.
    let name = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = str::from_utf8(stat.get(name + 1..)?).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    let threads: i32 = fields.nth(13)?.parse().ok()?;
    let started = fields.nth(1)?.parse().ok()?;
    // The kernel also shows a process as a zombie if its first thread has ended while other threads run.
    let is_dead = matches!(state, "Z" | "X" | "x") && threads <= 1;
    let is_suspended = matches!(state, "T" | "t");
    Some(Process { pid, parent, group, session, started, is_dead, is_suspended })
}

/// The initial environment of a process; entries end with NUL. Empty for a process without an environment,
/// and for a moment while a process executes another program.
///
/// # Errors
/// This process may not read it, or the process has ended.
pub fn environ(pid: i32) -> io::Result<Vec<u8>> {
    fs::read(format!("/proc/{pid}/environ"))
}

/// Whether an environment contains exactly this `NAME=VALUE`.
#[must_use]
pub fn has_entry(environ: &[u8], entry: &[u8]) -> bool {
    environ.split(|byte| *byte == 0).any(|known| known == entry)
}

/// The name of a process. Readable also for a process that refuses inspection.
///
/// # Errors
/// The process has ended.
pub fn name(pid: i32) -> io::Result<String> {
    Ok(fs::read_to_string(format!("/proc/{pid}/comm"))?.trim_end().to_owned())
}

/// The program that a process runs.
///
/// # Errors
/// The process has ended or refuses inspection.
pub fn program(pid: i32) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe"))
}

/// A process and the ones above it, as far as they can be read.
#[must_use]
pub fn lineage(pid: i32) -> Vec<i32> {
    let mut pids = vec![pid];
    while let Some(process) = pids.last().and_then(|pid| read_process(*pid).ok())
        && !pids.contains(&process.parent)
    {
        pids.push(process.parent);
    }
    pids
}

/// The processes that hold this file open for writing. Those of other users, and those that refuse inspection, cannot be
/// seen.
pub fn writers(file: &Metadata) -> impl Iterator<Item = i32> {
    let wanted = (file.dev(), file.ino());
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(move |pid: &i32| {
        let mut open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.any(|fd| {
            let is_file = fs::metadata(fd.path()).is_ok_and(|file| (file.dev(), file.ino()) == wanted);
            // The mode of the link shows whether the file was opened for writing, proc_pid_fd(5).
            is_file && fd.metadata().is_ok_and(|link| link.mode() & 0o200 != 0)
        })
    })
}

/// The lines of `/proc/PID/cgroup`: `ID:CONTROLLERS:PATH`.
///
/// # Errors
/// The process has ended.
pub fn cgroups(pid: i32) -> io::Result<String> {
    fs::read_to_string(format!("/proc/{pid}/cgroup"))
}

/// The process's path in the cgroup v2 hierarchy, from `/proc/PID/cgroup`.
#[must_use]
pub fn cgroup(pid: i32) -> Option<String> {
    cgroups(pid).ok()?.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
}

/// Resident memory of this process in bytes; 0 if it cannot be read.
#[must_use]
pub fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4_096);
    pages.saturating_mul(u64::try_from(page).unwrap_or(4_096))
}

/// Id of this boot of the machine, because process ids and start times are valid only within one boot. Empty
/// if the kernel does not provide it.
#[must_use]
pub fn boot_id() -> String {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    if let Some(known) = BOOT_ID.get() {
        return known.clone();
    }
    let read = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
    // Do not cache a failed read: the next one may succeed, for example if descriptors were exhausted.
    if !read.is_empty() {
        let _ = BOOT_ID.set(read.clone());
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_stat_is_parsed_with_any_name() {
        let stat = b"42 (\xff) b (c) S 1 41 40 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 777 0 0";
        let process = parse(42, stat).expect("a process");
        assert_eq!((process.parent, process.group, process.session), (1, 41, 40));
        assert_eq!((process.started, process.is_dead), (777, false));
        assert!(parse(1, b"garbage").is_none() && parse(1, b"1 (a)").is_none());
    }

    #[test]
    fn zombie_with_running_threads_is_alive() {
        let stat = |state: &str, threads: u32| {
            format!("42 (x) {state} 1 41 40 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 {threads} 0 777 0 0")
        };
        for (state, threads, is_dead) in [("S", 1, false), ("Z", 1, true), ("Z", 3, false), ("X", 0, true)] {
            let process = parse(42, stat(state, threads).as_bytes()).expect("a process");
            assert_eq!(process.is_dead, is_dead, "{state} with {threads} threads");
        }
    }

    #[test]
    fn own_process_is_found_and_missing_pid_fails() {
        let me = i32::try_from(std::process::id()).expect("an id");
        assert!(list_processes().iter().any(|process| process.pid == me));
        assert_eq!(read_process(me).expect("it runs").pid, me);
        assert_eq!(read_process(i32::MAX).expect_err("no such id").kind(), io::ErrorKind::NotFound);
        assert_eq!(boot_id().len(), 36);
        let environ = environ(me).expect("our own");
        let first = environ.split(|byte| *byte == 0).next().expect("an entry");
        assert!(has_entry(&environ, first) && !has_entry(&environ, &first[..first.len() - 1]));
    }
}
