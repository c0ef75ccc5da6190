//! Protects guarded paths in a writable folder: each one is mounted read-only over itself in the command's own
//! mount table, mount_namespaces(7). At level 2, Landlock forbids the command to change mounts, so that it
//! cannot remove them (the kernel's userspace-api/landlock.rst, "Filesystem topology modification"). At level
//! 3, bubblewrap includes these mounts.
//!
//! Other commands may change such a folder while this one starts, and replace a folder by a link. The code
//! follows no link and mounts the opened file on itself; bubblewrap would look up each path twice.
//!
//! A daemon that is not root gets the right to mount from a user namespace, user_namespaces(7). The namespace
//! maps the daemon's own user to itself and no other user. It is created once with the help of another program:
//! a process of this program cannot write its own maps, because it is not dumpable (`PR_SET_DUMPABLE`). If the
//! machine permits no user namespace, level 2 works without these mounts.

use std::ffi::{CStr, CString};
use std::fs;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use nix::libc;

use crate::shell::sandbox::landlock;
use crate::shell::sandbox::temp::EmptySources;
use base::proc;
use base::sync::lock;

/// Mounts that the child makes; all data is prepared before the fork.
#[derive(Debug, Default)]
pub(super) struct ReadonlyMounts {
    mounts: Vec<Mount>,
    user: Option<Arc<OwnedFd>>,
    /// `None` at level 3, where bubblewrap provides these devices.
    own: Option<PrivateDevices>,
}

/// The command's own terminals and shared memory.
#[derive(Debug)]
struct PrivateDevices {
    /// The ruleset that must grant rights on the devices, and these rights.
    rules: Arc<OwnedFd>,
    rights: u64,
    /// `false` if the workspace lies in shared memory.
    memory: bool,
}

/// Creates a user namespace for commands; `None` for root, which needs none.
///
/// # Errors
/// The machine permits no user namespace.
pub(super) fn namespace() -> io::Result<Option<Arc<OwnedFd>>> {
    static NAMESPACE: Mutex<Option<Arc<OwnedFd>>> = Mutex::new(None);
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    if uid.is_root() {
        return Ok(None);
    }
    let mut made = lock(&NAMESPACE);
    if made.is_none() {
        let mut holder = std::process::Command::new("/bin/sh");
        // The holder runs until its input ends.
        holder.args(["-c", "echo; read -r _"]).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
        #[expect(unsafe_code, reason = "only pre_exec reaches the child before it becomes the program")]
        // SAFETY: one system call, whose argument is a number.
        unsafe {
            holder.pre_exec(|| check_result(libc::unshare(libc::CLONE_NEWUSER).into()));
        }
        let mut holder = proc::spawn_plain(&mut holder)?;
        let found = (|| {
            // The output shows that the child has executed the other program.
            let mut word = [0];
            holder.stdout.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.read_exact(&mut word)?;
            let place = format!("/proc/{}", holder.id());
            // Without this, the group map cannot be written, user_namespaces(7).
            fs::write(format!("{place}/setgroups"), "deny")?;
            fs::write(format!("{place}/uid_map"), format!("{uid} {uid} 1"))?;
            fs::write(format!("{place}/gid_map"), format!("{gid} {gid} 1"))?;
            fs::File::open(format!("{place}/ns/user"))
        })();
        drop(holder.stdin.take());
        holder.wait()?;
        *made = Some(Arc::new(found?.into()));
    }
    Ok(made.clone())
}

/// The mount that is made on a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MountKind {
    /// The path itself, so that it cannot be moved away.
    Pin,
    /// The path itself, read-only.
    Guard,
    /// An empty file or folder, read-only.
    Hide(PathBuf),
    /// The content of another path, which is opened without following links.
    Of(PathBuf),
}

#[derive(Debug)]
struct Mount {
    path: CString,
    /// The path to mount and its lookup flags, if it is another path.
    source: Option<(CString, u64)>,
    /// The file to mount instead, if the path is no longer a folder.
    file: Option<CString>,
    is_writable: bool,
    may_be_gone: bool,
}

/// open_how, openat2(2).
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

/// RESOLVE_NO_MAGICLINKS and RESOLVE_NO_SYMLINKS, openat2(2).
const NO_LINKS: u64 = 0x02 | 0x04;
/// OPEN_TREE_CLONE, open_tree(2).
const OPEN_TREE_CLONE: libc::c_int = 1;
/// MOVE_MOUNT_F_EMPTY_PATH and MOVE_MOUNT_T_EMPTY_PATH, move_mount(2).
const BOTH_EMPTY: libc::c_int = 0x04 | 0x40;

/// `struct mount_attr`, mount_setattr(2).
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    namespace: u64,
}

/// MOUNT_ATTR_RDONLY, mount_setattr(2).
const READ_ONLY: u64 = 1;

/// AT_RECURSIVE, mount_setattr(2).
const RECURSIVE: libc::c_int = 0x8000;

impl ReadonlyMounts {
    /// Mounts for these paths, with own terminals and, if `memory` is set, own shared memory. `rules` is the
    /// ruleset that must grant rights on them.
    ///
    /// # Errors
    /// The user may not mount anything here.
    pub(super) fn with_private_devices(
        list: Vec<(PathBuf, MountKind)>,
        nothing: &EmptySources,
        rules: &Arc<OwnedFd>,
        abi: u32,
        memory: bool,
    ) -> io::Result<Self> {
        let own =
            Some(PrivateDevices { rules: Arc::clone(rules), rights: landlock::device_rights(abi), memory });
        Ok(Self { user: namespace()?, own, ..Self::new(list, nothing)? })
    }

    /// Mounts for these paths.
    ///
    /// # Errors
    /// The user may not mount anything here.
    pub(super) fn new(mut list: Vec<(PathBuf, MountKind)>, nothing: &EmptySources) -> io::Result<Self> {
        // Mount parents first: a later mount on a parent would cover the child.
        list.sort_by_key(|(path, _)| path.components().count());
        let is_needed = |cover: &MountKind| matches!(cover, MountKind::Guard | MountKind::Of(_));
        let mut needed: Vec<PathBuf> =
            list.iter().filter(|(_, cover)| is_needed(cover)).map(|(path, _)| path.clone()).collect();
        needed.sort();
        // Sorted paths place a folder's content directly after the folder.
        let holds_needed = |path: &PathBuf| {
            needed
                .get(needed.partition_point(|other| other < path))
                .is_some_and(|next| next.starts_with(path))
        };
        let raw = |path: &PathBuf| CString::new(path.as_os_str().as_bytes());
        let mounts = list.iter().map(|(path, cover)| {
            let (source, file) = match cover {
                // These files lie in a folder that only the daemon can write.
                MountKind::Hide(source) if *source == nothing.file => {
                    (Some((raw(&nothing.folder)?, 0)), Some(raw(source)?))
                }
                MountKind::Hide(source) => (Some((raw(source)?, 0)), Some(raw(&nothing.file)?)),
                MountKind::Of(source) => (Some((raw(source)?, NO_LINKS)), None),
                MountKind::Pin | MountKind::Guard => (None, None),
            };
            let is_writable = matches!(cover, MountKind::Pin | MountKind::Of(_));
            // Another process may remove a hidden path, or a folder that exists only because of it, at this
            // moment. Nothing needs to be hidden then.
            let may_be_gone = !is_needed(cover) && !holds_needed(path);
            Ok(Mount { path: raw(path)?, source, file, is_writable, may_be_gone })
        });
        let mounts = mounts.collect::<io::Result<Vec<Mount>>>()?;
        let user = if mounts.is_empty() { None } else { namespace()? };
        Ok(Self { mounts, user, own: None })
    }

    /// Runs after the fork: nothing here may allocate or take a lock.
    pub(super) fn enter(&self) -> io::Result<()> {
        if self.mounts.is_empty() && self.own.is_none() {
            return Ok(());
        }
        let mut cwd = [0_u8; libc::PATH_MAX as usize];
        #[expect(unsafe_code, reason = "called after a fork; the libraries that wrap these calls allocate")]
        // SAFETY: all arguments are numbers, null, or pointers to values that live until the call returns.
        unsafe {
            let folder = libc::getcwd(cwd.as_mut_ptr().cast(), cwd.len());
            if let Some(user) = &self.user {
                check_result(libc::setns(user.as_raw_fd(), libc::CLONE_NEWUSER).into())?;
            }
            let memory = if self.own.is_some() { libc::CLONE_NEWIPC } else { 0 };
            check_result(libc::unshare(libc::CLONE_NEWNS | memory).into())?;
            // Later mounts outside become visible in the namespace; mounts of the namespace stay invisible
            // outside.
            let flags = libc::MS_REC | libc::MS_SLAVE;
            let none = std::ptr::null();
            check_result(libc::mount(none, c"/".as_ptr(), none, flags, none.cast()).into())?;
            if let Some(PrivateDevices { rules, rights, memory }) = &self.own {
                DEV_PTS.mount(rules.as_raw_fd(), *rights)?;
                if *memory {
                    DEV_SHM.mount(rules.as_raw_fd(), *rights)?;
                }
            }
            for mount in &self.mounts {
                mount.mount()?;
            }
            // A process whose current folder was covered is below the cover, where it could write. Enter the
            // folder again.
            if !folder.is_null() {
                check_result(libc::chdir(folder).into())?;
            }
        }
        Ok(())
    }
}

/// A file system of the command's own.
struct PrivateFilesystem {
    kind: &'static CStr,
    at: &'static CStr,
    options: &'static CStr,
    flags: libc::c_ulong,
}

/// This folder contains the terminals of all users.
const DEV_PTS: PrivateFilesystem = PrivateFilesystem {
    kind: c"devpts",
    at: c"/dev/pts",
    options: c"newinstance,ptmxmode=0666,mode=0620",
    flags: libc::MS_NOEXEC,
};
/// This folder contains shared memory, shm_overview(7).
const DEV_SHM: PrivateFilesystem =
    PrivateFilesystem { kind: c"tmpfs", at: c"/dev/shm", options: c"mode=1777", flags: 0 };

/// `struct landlock_path_beneath_attr`, landlock_add_rule(2).
#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    folder: libc::c_int,
}

/// LANDLOCK_RULE_PATH_BENEATH, landlock_add_rule(2).
const PATH_BENEATH: libc::c_int = 1;

impl PrivateFilesystem {
    /// Mounts the file system and grants the command rights on it: a ruleset refers to objects, and this
    /// object is new. If the mount point does not exist, nothing needs to be separated. Runs after the fork:
    /// nothing here may allocate or take a lock.
    fn mount(&self, rules: libc::c_int, rights: u64) -> io::Result<()> {
        let flags = libc::MS_NOSUID | self.flags;
        #[expect(unsafe_code, reason = "called after a fork; the libraries that wrap these calls allocate")]
        // SAFETY: all arguments are numbers, or pointers to constants and values that live until the call
        // returns.
        unsafe {
            let (kind, at) = (self.kind.as_ptr(), self.at.as_ptr());
            match check_result(libc::mount(kind, at, kind, flags, self.options.as_ptr().cast()).into()) {
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(()),
                put => put?,
            }
            let folder = check_descriptor(libc::open(at, libc::O_PATH | libc::O_CLOEXEC).into())?;
            let beneath = PathBeneath { allowed: rights, folder };
            check_result(libc::syscall(
                libc::SYS_landlock_add_rule,
                rules,
                PATH_BENEATH,
                &raw const beneath,
                0,
            ))?;
            libc::close(folder);
        }
        Ok(())
    }
}

impl Mount {
    /// Opens the path and mounts on the opened file. Runs after the fork: nothing here may allocate or take a
    /// lock.
    fn mount(&self) -> io::Result<()> {
        let at = match open(&self.path, NO_LINKS) {
            Err(error) if self.may_be_gone && is_missing(&error) => return Ok(()),
            opened => opened?,
        };
        match self.mount_on(at) {
            // The path was removed after it was opened; a new file at this path does not matter.
            Err(_) if self.may_be_gone && is_removed(at) => Ok(()),
            put => put,
        }
    }

    #[expect(unsafe_code, reason = "called after a fork; the libraries that wrap these calls allocate")]
    fn mount_on(&self, at: libc::c_int) -> io::Result<()> {
        let empty = c"".as_ptr();
        // SAFETY: all arguments are numbers, or pointers to values that live until the call returns. A
        // descriptor is closed by the call that uses it last, or by exec.
        unsafe {
            let from = match (&self.file, &self.source) {
                (Some(file), _) if !is_folder(at) => open(file, 0)?,
                (_, Some((source, resolve))) => open(source, *resolve)?,
                (_, None) => at,
            };
            // Include all mounts below it: a process in its own namespace must not be able to remove one.
            let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC | libc::AT_EMPTY_PATH | RECURSIVE;
            let tree = check_descriptor(libc::syscall(libc::SYS_open_tree, from, empty, flags))?;
            if !self.is_writable {
                let attributes = MountAttributes { set: READ_ONLY, clear: 0, propagation: 0, namespace: 0 };
                let (flags, size) = (libc::AT_EMPTY_PATH | RECURSIVE, size_of::<MountAttributes>());
                check_result(libc::syscall(
                    libc::SYS_mount_setattr,
                    tree,
                    empty,
                    flags,
                    &raw const attributes,
                    size,
                ))?;
            }
            check_result(libc::syscall(libc::SYS_move_mount, tree, empty, at, empty, BOTH_EMPTY))?;
            for opened in [tree, at] {
                libc::close(opened);
            }
            if from != at {
                libc::close(from);
            }
        }
        Ok(())
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR))
}

/// Whether the opened file has no name any more.
fn is_removed(opened: libc::c_int) -> bool {
    stat_descriptor(opened).is_some_and(|stat| stat.st_nlink == 0)
}

fn is_folder(opened: libc::c_int) -> bool {
    stat_descriptor(opened).is_some_and(|stat| stat.st_mode & libc::S_IFMT == libc::S_IFDIR)
}

#[expect(unsafe_code, reason = "called after a fork; the libraries that wrap these calls allocate")]
fn stat_descriptor(opened: libc::c_int) -> Option<libc::stat> {
    // SAFETY: the kernel writes one `stat`, for which all zeroes are a valid value.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        (libc::fstat(opened, &raw mut stat) == 0).then_some(stat)
    }
}

/// Opens the file at a path.
#[expect(unsafe_code, reason = "called after a fork")]
fn open(path: &CString, resolve: u64) -> io::Result<libc::c_int> {
    let how = OpenHow { flags: (libc::O_PATH | libc::O_CLOEXEC) as u64, mode: 0, resolve };
    // SAFETY: pointers to values that live until the call returns.
    let opened = unsafe {
        libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, path.as_ptr(), &raw const how, size_of::<OpenHow>())
    };
    check_descriptor(opened)
}

fn check_descriptor(result: libc::c_long) -> io::Result<libc::c_int> {
    check_result(result.min(0))?;
    Ok(result as libc::c_int)
}

fn check_result(result: libc::c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use crate::shell::sandbox::layout::FsPolicy;
    use crate::shell::sandbox::level::AvailableLevels;
    use crate::shell::sandbox::level::{CallSandbox, Level};
    use crate::shell::sandbox::readonly_mounts::*;
    use crate::shell::sandbox::spawn::CommandSandbox;

    #[tokio::test]
    async fn symlink_replacing_folder_does_not_redirect_mount() {
        let here = AvailableLevels::probe_once().await;
        for level in [Level::Landlock, Level::Bubblewrap] {
            if here.guards().is_err() || level == Level::Bubblewrap && here.bubblewrap().is_err() {
                base::skip_test!("{level:?} does not work here");
                continue;
            }
            let dir = tempfile::tempdir_in("/var/tmp").unwrap();
            let root = dir.path().canonicalize().unwrap();
            let path = |name: &str| root.join(name);
            for folder in ["ws/pinned", "ws/guarded", "ws/hidden", "outside", "temp"] {
                fs::create_dir_all(path(folder)).unwrap();
            }
            let layout = FsPolicy {
                writable: vec![path("ws")],
                pinned: vec![path("ws/pinned")],
                guarded: vec![path("ws/guarded")],
                // At level 2, neither the path nor a link's target gets a right.
                hidden: if level == Level::Bubblewrap { vec![path("ws/hidden")] } else { Vec::new() },
                temp: path("temp"),
                home: root.clone(),
                ..FsPolicy::default()
            };
            for name in ["ws/none", "ws/pinned", "ws/guarded", "ws/hidden"] {
                if level == Level::Landlock && name == "ws/hidden" {
                    continue;
                }
                let choice = CallSandbox { level, network: false, guards: true };
                let made = CommandSandbox::new(choice, &layout, &path("root"), here, &root).unwrap();
                let (moved_path, is_there) = (path("kept"), path(name).exists());
                if is_there {
                    fs::rename(path(name), &moved_path).unwrap();
                    std::os::unix::fs::symlink(path("outside"), path(name)).unwrap();
                }
                let script = "touch ws/file; touch outside/file ws/pinned/file";
                let mut command = made.command("/bin/sh");
                command.args(["-c", script]).current_dir(&root).stderr(Stdio::null());
                made.enforce_in(&mut command, Vec::new(), None, None);
                let ran = proc::spawn(&mut command);
                if let Ok(mut child) = ran {
                    let ended = tokio::time::timeout(std::time::Duration::from_secs(20), child.wait());
                    let _ = ended.await.expect("it ends");
                }
                assert!(!path("outside/file").exists(), "{level:?} {name}");
                assert_eq!(path("ws/file").exists(), !is_there, "{level:?} {name}: it does not run");
                let _ = fs::remove_file(path("ws/file"));
                if is_there {
                    fs::remove_file(path(name)).unwrap();
                    fs::rename(&moved_path, path(name)).unwrap();
                }
            }
        }
    }
}
