//! Resource limits of a command, inherited by every process, setrlimit(2). If a cgroup with controllers is
//! available, it limits memory and processes of the whole call.

use nix::libc::rlim_t;
use nix::sys::resource::{Resource, getrlimit};

use crate::settings::Limits;

/// CPU seconds between the signal that can be handled and the one that cannot.
const CPU_GRACE: u64 = 5;

/// Controllers that are available in the cgroups of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CgroupControllers {
    pub(super) memory: bool,
    pub(super) processes: bool,
}

/// A limit that a command reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum LimitBreach {
    Memory,
    Processes,
    FileSize,
    CpuTime,
}

impl LimitBreach {
    /// Its name in the details of a result, and in the configuration.
    pub(super) fn name(self) -> &'static str {
        self.into()
    }
}

/// One limit as the child sets it: soft and hard.
pub(super) type Rlimit = (Resource, rlim_t, rlim_t);

impl Limits {
    /// Limits that the child sets in addition to its cgroup. Never more than the daemon's own limits.
    pub(super) fn rlimits(&self, cgroup: CgroupControllers) -> Vec<Rlimit> {
        // No core dumps of commands on disk.
        let mut list = vec![(Resource::RLIMIT_CORE, 0, 0)];
        let mut set = |resource, soft: u64, hard: u64| {
            let most = getrlimit(resource).map_or(hard, |(_, most)| most);
            list.push((resource, soft.min(most), hard.min(most)));
        };
        if let Some(bytes) = self.memory.filter(|_| !cgroup.memory) {
            // Do not limit the address space: many runtimes reserve far more of it than they use.
            set(Resource::RLIMIT_DATA, bytes, bytes);
        }
        if let Some(count) = self.processes.filter(|_| !cgroup.processes) {
            set(Resource::RLIMIT_NPROC, count, count);
        }
        if let Some(bytes) = self.file_size {
            set(Resource::RLIMIT_FSIZE, bytes, bytes);
        }
        if let Some(time) = self.cpu_time {
            let seconds = time.as_secs().max(1);
            set(Resource::RLIMIT_CPU, seconds, seconds.saturating_add(CPU_GRACE));
        }
        if let Some((soft, hard)) = self.open_files {
            set(Resource::RLIMIT_NOFILE, soft, hard);
        }
        list
    }

    /// The limit that a signal of the kernel indicates, from the end of a command.
    pub(super) fn breach_from_signal(&self, signal: i32) -> Option<LimitBreach> {
        match signal {
            nix::libc::SIGXCPU if self.cpu_time.is_some() => Some(LimitBreach::CpuTime),
            nix::libc::SIGXFSZ if self.file_size.is_some() => Some(LimitBreach::FileSize),
            _ => None,
        }
    }

    /// Guesses limits from the output of a failed command, for limits at which the kernel only refuses calls.
    pub(super) fn suspect_limits(&self, output: &str, cgroup: CgroupControllers) -> Option<String> {
        const NO_MEMORY: [&str; 6] = [
            "annot allocate memory",
            "emory exhausted",
            "emoryError",
            "ut of memory",
            "bad_alloc",
            "memory allocation of",
        ];
        let says = |marks: &[&str]| marks.iter().any(|mark| output.contains(mark));
        if let Some(most) = self.memory.filter(|_| !cgroup.memory && says(&NO_MEMORY)) {
            return Some(format!("Note: each process may hold at most {} of data here.", format_bytes(most)));
        }
        let most =
            self.processes.filter(|_| !cgroup.processes && says(&["Resource temporarily unavailable"]))?;
        Some(format!("Note: the user may have at most {most} processes here."))
    }

    /// Describes a reached limit for the model.
    pub(super) fn breach_text(&self, breach: LimitBreach) -> String {
        match breach {
            LimitBreach::Memory => {
                format!("ran out of memory: it may use {}", self.memory.map_or("less".into(), format_bytes))
            }
            LimitBreach::Processes => {
                let most = self.processes.map_or("fewer".into(), |most| most.to_string());
                format!("could not start another process: it may have {most}")
            }
            LimitBreach::FileSize => {
                let most = self.file_size.map_or("less".into(), format_bytes);
                format!("wrote a file that is too long: {most} at most")
            }
            LimitBreach::CpuTime => {
                let most = self.cpu_time.unwrap_or_default().as_secs();
                format!("used more processor time than one process may: {most} s")
            }
        }
    }
}

fn format_bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} B"),
        1024..1_048_576 => format!("{} KiB", count / 1024),
        1_048_576..1_073_741_824 => format!("{} MiB", count >> 20),
        _ => format!("{:.1} GiB", count as f64 / 1_073_741_824.0),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn cgroup_limits_replace_matching_rlimits() {
        let limits = Limits {
            memory: Some(1 << 40),
            processes: Some(7),
            cpu_time: Some(Duration::from_millis(10)),
            ..Limits::default()
        };
        let of = |powers| limits.rlimits(powers).into_iter().map(|(kind, ..)| kind).collect::<Vec<_>>();
        use Resource::{RLIMIT_CORE, RLIMIT_CPU, RLIMIT_DATA, RLIMIT_NPROC};
        assert_eq!(of(CgroupControllers::default()), [RLIMIT_CORE, RLIMIT_DATA, RLIMIT_NPROC, RLIMIT_CPU]);
        assert_eq!(of(CgroupControllers { memory: true, processes: true }), [RLIMIT_CORE, RLIMIT_CPU]);
        let cpu = limits.rlimits(CgroupControllers::default()).pop();
        assert_eq!(cpu.map(|(_, soft, _)| soft), Some(1), "never 0, which would be no time at all");
    }

    #[test]
    fn sizes_are_formatted_in_binary_units() {
        for (count, expected) in [
            (5, "5 B"),
            (2048, "2 KiB"),
            (64 << 20, "64 MiB"),
            (3 << 29, "1.5 GiB"),
            (u64::MAX, "17179869184.0 GiB"),
        ] {
            assert_eq!(format_bytes(count), expected);
        }
    }
}
