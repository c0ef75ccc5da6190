//! What is guarded in a folder that may be written, at level 2: each such file or folder is mounted over
//! itself, only to be read, in a table of mounts that is the command's own, mount_namespaces(7). Landlock
//! forbids who is under it to change mounts, so nobody takes them off again (the kernel's
//! userspace-api/landlock.rst, "Filesystem topology modification").
//!
//! Who is not root gets the right to mount from a user namespace, user_namespaces(7), in which he is who he
//! is and everybody else is nobody. It is made once: a process of this program may not write its own maps,
//! since nobody may look into it (`PR_SET_DUMPABLE`); another program does not mind. Where the machine allows
//! none, level 2 goes without.

use std::ffi::CString;
use std::fs;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use nix::libc;

use super::layout::Layout;
use super::place::{Placed, notes_beside, there};
use crate::proc;

/// What is done in the child: all of it is made before.
#[derive(Debug, Default)]
pub(super) struct Guards {
    mounts: Vec<Mount>,
    user: Option<Arc<OwnedFd>>,
}

/// A user namespace for commands; none for root, who needs none.
///
/// # Errors
/// The machine allows none.
pub(super) fn namespace() -> io::Result<Option<Arc<OwnedFd>>> {
    static MADE: Mutex<Option<Arc<OwnedFd>>> = Mutex::new(None);
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    if uid.is_root() {
        return Ok(None);
    }
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if made.is_none() {
        let mut holder = std::process::Command::new("/bin/sh");
        // Until its input ends.
        holder.args(["-c", "echo; read -r _"]).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
        #[expect(unsafe_code, reason = "only pre_exec reaches the child before it becomes the program")]
        // SAFETY: one system call, whose argument is a number.
        unsafe {
            holder.pre_exec(|| done(libc::unshare(libc::CLONE_NEWUSER).into()));
        }
        let mut holder = proc::spawn_plain(&mut holder)?;
        let found = (|| {
            // It has become another program when it speaks.
            let mut word = [0];
            holder.stdout.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.read_exact(&mut word)?;
            let place = format!("/proc/{}", holder.id());
            // Without this the second map may not be written, user_namespaces(7).
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

#[derive(Debug)]
struct Mount {
    path: CString,
    is_writable: bool,
}

/// `struct mount_attr`, mount_setattr(2).
#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    namespace: u64,
}

/// MOUNT_ATTR_RDONLY, mount_setattr(2).
const READ_ONLY: u64 = 1;

/// AT_RECURSIVE, mount_setattr(2).
const RECURSIVE: libc::c_int = 0x8000;

impl Guards {
    /// For a layout, with stand-ins for what does not exist.
    ///
    /// # Errors
    /// Stand-ins could not be made.
    pub(super) fn new(layout: &Layout) -> io::Result<(Self, Placed)> {
        // A folder without a repository may get one: who makes it here is asked as for any command. At level
        // 3, where nobody is asked, it may not. And what stands in for `.agentd` would be in the way of `git
        // stash -u` and `git clone URL .`; what is made there is not obeyed before a person trusts it (S22).
        let is_within_git = |path: &&PathBuf| !path.ends_with(".git") && !path.ends_with(".agentd");
        let absent: Vec<PathBuf> = layout.absent.iter().filter(is_within_git).cloned().collect();
        let placed = Placed::new(&absent, notes_beside(&layout.temp).as_deref())?;
        // A folder within another could be moved away, and another put in its place.
        let holds = |folder: &&PathBuf| {
            layout.writable.iter().any(|other| folder.starts_with(other) && other != *folder)
        };
        let pinned = layout.writable.iter().filter(holds).chain(&layout.pinned).map(|path| (path, true));
        let absent = there(&absent);
        let guarded = layout.guarded.iter().chain(&absent).map(|path| (path, false));
        let mut list: Vec<_> = pinned.chain(guarded).collect();
        // What is above comes first: it would cover the other.
        list.sort_by_key(|(path, _)| path.components().count());
        let mounts = list.into_iter().map(|(path, is_writable)| {
            Ok(Mount { path: CString::new(path.as_os_str().as_bytes())?, is_writable })
        });
        let mounts = mounts.collect::<io::Result<Vec<Mount>>>()?;
        Ok((Self { mounts, user: namespace()? }, placed))
    }

    /// After the fork: nothing here may allocate or take a lock.
    pub(super) fn enter(&self) -> io::Result<()> {
        if self.mounts.is_empty() {
            return Ok(());
        }
        let mut cwd = [0_u8; libc::PATH_MAX as usize];
        #[expect(unsafe_code, reason = "called after a fork; the libraries that wrap these calls allocate")]
        // SAFETY: all arguments are numbers, null, or pointers to values that live until the call returns.
        unsafe {
            let folder = libc::getcwd(cwd.as_mut_ptr().cast(), cwd.len());
            if let Some(user) = &self.user {
                done(libc::setns(user.as_raw_fd(), libc::CLONE_NEWUSER).into())?;
            }
            done(libc::unshare(libc::CLONE_NEWNS).into())?;
            // What is mounted outside later is seen; what is mounted here is not seen outside.
            let flags = libc::MS_REC | libc::MS_SLAVE;
            let none = std::ptr::null();
            done(libc::mount(none, c"/".as_ptr(), none, flags, none.cast()).into())?;
            for mount in &self.mounts {
                let path = mount.path.as_ptr();
                // With all that is mounted below it: nobody may take that away in a namespace of his own.
                done(libc::mount(path, path, none, libc::MS_BIND | libc::MS_REC, none.cast()).into())?;
                if mount.is_writable {
                    continue;
                }
                let attributes = Attributes { set: READ_ONLY, clear: 0, propagation: 0, namespace: 0 };
                let size = size_of::<Attributes>();
                let call = libc::SYS_mount_setattr;
                done(libc::syscall(call, libc::AT_FDCWD, path, RECURSIVE, &raw const attributes, size))?;
            }
            // Who stands in a folder that was covered stands below the cover, where it may be written.
            if !folder.is_null() {
                done(libc::chdir(folder).into())?;
            }
        }
        Ok(())
    }
}

fn done(result: libc::c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
