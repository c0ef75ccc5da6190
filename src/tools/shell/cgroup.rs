//! One cgroup per call, where the kernel permits it (cgroup v2, see
//! <https://docs.kernel.org/admin-guide/cgroup-v2.html>). A process cannot leave its cgroup by losing its
//! parents, its session or its environment, and all of its processes are killed at once.
//!
//! The folders are flat, `agentd-INSTANCE.CALL` below one base. The next daemon finds its own cgroups by this
//! name, also in `/proc/PID/cgroup`.
//!
//! Creating, configuring, killing and removing a cgroup change kernel memory only. These calls do not wait for
//! a disk or a server, so the code makes them directly, also on a worker of the runtime and in `Drop`.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use nix::unistd::{AccessFlags, eaccess};

use crate::settings::{CgroupSetting, Limits};
use crate::shell::limits::CgroupControllers;
use base::proc;
use base::sync::lock;
use types::ids::CallId;

/// The daemon moves itself here when its own cgroup must be empty to enable controllers for its children.
const OWN_LEAF: &str = "agentd-self";

/// The cgroups of one daemon.
#[derive(Debug)]
pub(crate) struct Cgroups {
    base: Result<PathBuf, String>,
    powers: CgroupControllers,
    prefix: String,
    /// Emptied cgroups that are not yet removed.
    rest: Mutex<Vec<PathBuf>>,
}

impl Cgroups {
    /// Tests which cgroup functions work. Reads and writes a few files.
    pub(crate) fn find(setting: &CgroupSetting, instance: &str) -> Self {
        let prefix = format!("agentd-{instance}.");
        let base = match setting {
            // Without an instance name, the next daemon could not find remaining cgroups.
            _ if instance.is_empty() => Err("nothing is run".to_owned()),
            CgroupSetting::Off => Err("switched off".to_owned()),
            CgroupSetting::Auto => own_cgroup().ok_or_else(|| "no cgroup v2 here".to_owned()),
            CgroupSetting::At(dir) => Ok(dir.clone()),
        };
        let base = base.and_then(|base| match probe(&base, &prefix) {
            Ok(()) => Ok(base),
            Err(error) => Err(format!("{} cannot be used: {error}", base.display())),
        });
        let mut powers = CgroupControllers::default();
        if let Ok(base) = &base {
            // Root can write every cgroup. Only the setting shows that this one is for the daemon.
            let is_ours = matches!(setting, CgroupSetting::At(_)) || !nix::unistd::geteuid().is_root();
            powers.memory = enable_controller(base, "memory", is_ours);
            powers.processes = enable_controller(base, "pids", is_ours);
        }
        Self { base, powers, prefix, rest: Mutex::default() }
    }

    /// Describes the cgroups in force, for users.
    pub(crate) fn describe(&self) -> String {
        match (&self.base, self.powers) {
            (Err(why), _) => format!("rlimits (no cgroup: {why})"),
            (Ok(_), CgroupControllers { memory: true, processes: true }) => {
                "cgroup v2: memory, pids, kill".into()
            }
            (Ok(_), CgroupControllers { memory: true, processes: false }) => {
                "cgroup v2: memory, kill; rlimits".into()
            }
            (Ok(_), CgroupControllers { memory: false, processes: true }) => {
                "cgroup v2: pids, kill; rlimits".into()
            }
            (Ok(_), _) => "cgroup v2: kill only; rlimits".into(),
        }
    }

    /// Creates a cgroup for a call. `None` if cgroups are off or creating one fails; the call runs without one.
    pub(super) fn open(self: &Arc<Self>, call_id: CallId, limits: &Limits) -> Option<CallCgroup> {
        let base = self.base.as_ref().ok()?;
        self.remove_leftovers();
        let dir = base.join(format!("{}{call_id}", self.prefix));
        let folder = match fs::create_dir(&dir).and_then(|()| File::open(&dir)) {
            Ok(folder) => folder,
            Err(error) => {
                tracing::warn!(dir = %dir.display(), %error, "could not create a cgroup for a tool call");
                let _ = fs::remove_dir(&dir);
                return None;
            }
        };
        let cgroup = CallCgroup { cgroups: Arc::clone(self), dir, folder };
        if let Some(bytes) = limits.memory.filter(|_| self.powers.memory) {
            cgroup.write_limit("memory.max", bytes);
            // Kill the whole call, not one process of it, and deny swap.
            cgroup.write_limit("memory.oom.group", 1);
            cgroup.write_limit("memory.swap.max", 0);
        }
        if let Some(count) = limits.processes.filter(|_| self.powers.processes) {
            cgroup.write_limit("pids.max", count);
        }
        Some(cgroup)
    }

    pub(super) fn controllers(&self) -> CgroupControllers {
        self.powers
    }

    /// Whether this line of `/proc/PID/cgroup` names a cgroup of this daemon.
    pub(super) fn holds(&self, path: &str) -> bool {
        path.split('/').any(|part| part.starts_with(&self.prefix))
    }

    /// Kills and removes cgroups of an earlier daemon, except those that contain a process of `spared`.
    pub(super) fn end_leftovers(&self, spared: &[i32]) {
        let Ok(base) = &self.base else { return };
        let Ok(entries) = fs::read_dir(base) else { return };
        for entry in entries.flatten() {
            let dir = entry.path();
            if !entry.file_name().to_string_lossy().starts_with(&self.prefix)
                || members(&dir).iter().any(|pid| spared.contains(pid))
            {
                continue;
            }
            let _ = fs::write(dir.join("cgroup.kill"), "1");
            remove(&dir);
        }
    }

    fn remove_leftovers(&self) {
        let mut rest = lock(&self.rest);
        rest.retain(|dir| !remove(dir));
    }
}

/// The cgroup of one call. Dropping it removes it as soon as it is empty.
#[derive(Debug)]
pub(super) struct CallCgroup {
    cgroups: Arc<Cgroups>,
    dir: PathBuf,
    folder: File,
}

impl CallCgroup {
    /// The folder of the cgroup. A process can be started inside it.
    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// A process that writes `0` to this file moves into the cgroup, and all its later children start there.
    pub(super) fn open_procs_file(&self) -> io::Result<File> {
        File::options().write(true).open(self.dir.join("cgroup.procs"))
    }

    fn write_limit(&self, file: &str, value: u64) {
        // Some kernels lack some of these files. The important failures show in the events below.
        if let Err(error) = fs::write(self.dir.join(file), value.to_string()) {
            tracing::debug!(file, %error, "could not set a limit of a cgroup");
        }
    }

    /// Ids of all processes in the cgroup and in its child cgroups.
    pub(super) fn members(&self) -> Vec<i32> {
        members(&self.dir)
    }

    /// Whether no process is inside, as the kernel reports for all child cgroups at one moment. `false` if this
    /// is unknown.
    pub(super) fn is_empty(&self) -> bool {
        let text = fs::read_to_string(self.dir.join("cgroup.events")).unwrap_or_default();
        text.lines().any(|line| line == "populated 0")
    }

    /// Kills all processes inside, including those that are being started.
    pub(super) fn kill(&self) {
        let _ = fs::write(self.dir.join("cgroup.kill"), "1");
    }

    /// Number of processes that the kernel killed because of the memory limit.
    pub(super) fn oom_kills(&self) -> u64 {
        self.event_count("memory.events", "oom_kill")
    }

    /// Number of process starts that failed because of the process limit.
    pub(super) fn refused_forks(&self) -> u64 {
        self.event_count("pids.events", "max")
    }

    fn event_count(&self, file: &str, name: &str) -> u64 {
        let text = fs::read_to_string(self.dir.join(file)).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }
}

impl Drop for CallCgroup {
    fn drop(&mut self) {
        if !remove(&self.dir) {
            let mut rest = lock(&self.cgroups.rest);
            rest.push(self.dir.clone());
        }
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        self.remove_leftovers();
    }
}

/// Folder of this process in the cgroup v2 hierarchy.
fn own_cgroup() -> Option<PathBuf> {
    let path = proc::cgroup(i32::try_from(std::process::id()).ok()?)?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let dir = mounts.lines().find_map(|line| folder_of(line, &path))?;
    // An earlier image of this process may have moved itself there.
    if dir.ends_with(OWN_LEAF) { dir.parent().map(Path::to_owned) } else { Some(dir) }
}

/// The folder of a cgroup, if this line of mountinfo, proc(5), is a mount of the v2 hierarchy.
fn folder_of(line: &str, cgroup: &str) -> Option<PathBuf> {
    let (mount, kind) = line.split_once(" - ")?;
    if kind.split(' ').next() != Some("cgroup2") {
        return None;
    }
    let mut fields = mount.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    let below = if root == "/" { cgroup } else { cgroup.strip_prefix(root)? };
    Some(Path::new(point).join(below.trim_start_matches('/')))
}

/// Tests whether cgroups can be created in a folder and killed as a whole.
fn probe(base: &Path, prefix: &str) -> io::Result<()> {
    // Moving a process requires this permission in the nearest common ancestor of both cgroups.
    eaccess(&base.join("cgroup.procs"), AccessFlags::W_OK)?;
    let dir = base.join(format!("{prefix}probe"));
    match fs::create_dir(&dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let usable = eaccess(&dir.join("cgroup.kill"), AccessFlags::W_OK)
        .and_then(|()| eaccess(&dir.join("cgroup.procs"), AccessFlags::W_OK));
    fs::remove_dir(&dir)?;
    usable.map_err(|_| io::Error::other("this kernel cannot kill a cgroup"))
}

/// Enables a controller in the cgroups below `base`, if the daemon has it. Returns whether it is enabled.
fn enable_controller(base: &Path, controller: &str, is_ours: bool) -> bool {
    let names = |file: &str| fs::read_to_string(base.join(file)).unwrap_or_default();
    let has = |file: &str| names(file).split_whitespace().any(|name| name == controller);
    if has("cgroup.subtree_control") {
        return true;
    }
    if !is_ours || !has("cgroup.controllers") {
        return false;
    }
    let enable = || fs::write(base.join("cgroup.subtree_control"), format!("+{controller}"));
    // A cgroup that contains processes cannot enable controllers for its children. If it contains only the
    // daemon, the daemon can move to a leaf.
    if enable().is_err() && names("cgroup.procs").trim() == std::process::id().to_string() {
        let leaf = base.join(OWN_LEAF);
        let moved = fs::create_dir(&leaf).and_then(|()| fs::write(leaf.join("cgroup.procs"), "0"));
        if moved.and_then(|()| enable()).is_err() {
            return false;
        }
    }
    has("cgroup.subtree_control")
}

fn members(dir: &Path) -> Vec<i32> {
    let text = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    let mut pids: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    for below in folders(dir) {
        pids.extend(members(&below));
    }
    pids
}

/// Removes a cgroup and its children. Returns whether it is gone.
fn remove(dir: &Path) -> bool {
    let try_remove = || match fs::remove_dir(dir) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    // Few cgroups have children, and listing one lists all its files.
    try_remove() || {
        for below in folders(dir) {
            remove(&below);
        }
        try_remove()
    }
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let is_dir = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.flatten().filter(is_dir).map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use crate::shell::cgroup::*;
    use std::io::Read as _;
    use tokio::process::Command;
    use types::ids::{Mint, Seed};

    #[tokio::test]
    async fn command_starts_and_is_counted_in_cgroup() {
        let cgroups = Arc::new(Cgroups::find(&CgroupSetting::Auto, &format!("t{}", std::process::id())));
        let Some(cgroup) = cgroups.open(Mint::new(0, Seed(7)).call(), &Limits::default()) else {
            base::skip_test!("{}", cgroups.describe());
            return;
        };
        assert!(cgroup.is_empty());
        let mut command = Command::new("/bin/bash");
        command.args(["-c", "cat /proc/self/cgroup; exec >&- 2>&-; exec sleep 1000"]).env_clear();
        let (mut reader, output) = io::pipe().expect("a pipe");
        #[expect(unsafe_code, reason = "what is tested")]
        // SAFETY: nothing is done in the child.
        let child =
            unsafe { proc::spawn_inside(&command, output.as_fd(), Some(cgroup.folder()), &mut || Ok(())) };
        drop(output);
        let Some(mut child) = child.expect("started") else {
            base::skip_test!("this kernel starts no process in a cgroup");
            return;
        };
        let mut place = String::new();
        reader.read_to_string(&mut place).expect("its place");
        assert!(cgroups.holds(place.trim_end()), "{place}");
        assert!(!cgroup.is_empty() && cgroup.members() == [child.id()]);
        cgroup.kill();
        child.wait().await.expect("killed");
        assert!(cgroup.is_empty());
    }

    #[test]
    fn cgroup_path_is_found_below_any_mount() {
        let v1 = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory";
        let whole = "41 31 0:38 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
        let part = "41 31 0:38 /docker/x /sys/fs/cgroup rw master:5 - cgroup2 cgroup2 rw";
        for (line, cgroup, expected) in [
            (v1, "/a", None),
            (whole, "/", Some("/sys/fs/cgroup")),
            (whole, "/user.slice/a", Some("/sys/fs/cgroup/user.slice/a")),
            (part, "/docker/x/y", Some("/sys/fs/cgroup/y")),
            (part, "/docker/z", None),
        ] {
            let found = folder_of(line, cgroup);
            assert_eq!(found.as_deref().map(|dir| dir.join("")), expected.map(|dir| Path::new(dir).join("")));
        }
    }

    #[test]
    fn only_cgroups_of_instance_are_recognised() {
        let cgroups = Cgroups::find(&CgroupSetting::Off, "ab");
        for (path, expected) in [
            ("/x/agentd-ab.call_1", true),
            ("/agentd-ab.call_1/sub", true),
            ("/agentd-abc.call_1", false),
            ("/", false),
        ] {
            assert_eq!(cgroups.holds(path), expected, "{path}");
        }
        assert!(cgroups.describe().contains("switched off"), "{}", cgroups.describe());
    }
}
