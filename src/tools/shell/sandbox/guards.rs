//! What is guarded in a folder that may be written, at level 2: each such file or folder is mounted over
//! itself, only to be read, in a table of mounts that is the command's own, mount_namespaces(7). Landlock
//! forbids who is under it to change mounts, so nobody takes them off again (the kernel's
//! userspace-api/landlock.rst, "Filesystem topology modification").
//!
//! Who is not root gets the right to mount from a user namespace, user_namespaces(7), in which he is who he
//! is and everybody else is nobody. Where the machine does not allow that, level 2 goes without.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use nix::libc;

use super::layout::Layout;
use super::place::{Placed, there};

/// What is done in the child: all of it is made before.
#[derive(Debug, Default)]
pub(super) struct Guards {
    mounts: Vec<Mount>,
    /// What says who is who in the user namespace: uid and gid.
    maps: Option<(String, String)>,
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

impl Guards {
    /// For a layout, with stand-ins for what does not exist.
    ///
    /// # Errors
    /// Stand-ins could not be made.
    pub(super) fn new(layout: &Layout) -> io::Result<(Self, Placed)> {
        // A folder without a repository may get one: who makes it here is asked as for any command. At level
        // 3, where nobody is asked, it may not.
        let absent: Vec<PathBuf> =
            layout.absent.iter().filter(|path| !path.ends_with(".git")).cloned().collect();
        let placed = Placed::new(&absent)?;
        let pinned = layout.pinned.iter().map(|path| (path, true));
        let absent = there(&absent);
        let guarded = layout.guarded.iter().chain(&absent).map(|path| (path, false));
        let mut list: Vec<_> = pinned.chain(guarded).collect();
        // What is above comes first: it would cover the other.
        list.sort_by_key(|(path, _)| path.components().count());
        let mounts = list.into_iter().map(|(path, is_writable)| {
            Ok(Mount { path: CString::new(path.as_os_str().as_bytes())?, is_writable })
        });
        let mounts = mounts.collect::<io::Result<Vec<Mount>>>()?;
        let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
        let maps = (!uid.is_root()).then(|| (format!("{uid} {uid} 1"), format!("{gid} {gid} 1")));
        Ok((Self { mounts, maps }, placed))
    }

    /// After the fork: nothing here may allocate or take a lock.
    pub(super) fn enter(&self) -> io::Result<()> {
        if self.mounts.is_empty() {
            return Ok(());
        }
        let user = if self.maps.is_some() { libc::CLONE_NEWUSER } else { 0 };
        let mut cwd = [0_u8; libc::PATH_MAX as usize];
        #[expect(unsafe_code, reason = "called after a fork; the libraries that wrap these calls allocate")]
        // SAFETY: all arguments are numbers, null, or pointers to values that live until the call returns.
        unsafe {
            let folder = libc::getcwd(cwd.as_mut_ptr().cast(), cwd.len());
            done(libc::unshare(libc::CLONE_NEWNS | user).into())?;
            if let Some((uids, gids)) = &self.maps {
                // Without this the second map may not be written, user_namespaces(7).
                write(c"/proc/self/setgroups", b"deny")?;
                write(c"/proc/self/uid_map", uids.as_bytes())?;
                write(c"/proc/self/gid_map", gids.as_bytes())?;
            }
            // What is mounted outside later is seen; what is mounted here is not seen outside.
            let flags = libc::MS_REC | libc::MS_SLAVE;
            let none = std::ptr::null();
            done(libc::mount(none, c"/".as_ptr(), none, flags, none.cast()).into())?;
            for mount in &self.mounts {
                let path = mount.path.as_ptr();
                done(libc::mount(path, path, none, libc::MS_BIND, none.cast()).into())?;
                if mount.is_writable {
                    continue;
                }
                let attributes = Attributes { set: READ_ONLY, clear: 0, propagation: 0, namespace: 0 };
                let size = size_of::<Attributes>();
                let call = libc::SYS_mount_setattr;
                done(libc::syscall(call, libc::AT_FDCWD, path, 0, &raw const attributes, size))?;
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

/// Writes a few bytes at once.
#[expect(unsafe_code, reason = "called after a fork")]
fn write(path: &std::ffi::CStr, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the path ends with a zero, the bytes live until the call returns, and the descriptor is the one
    // that was just opened.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        let written = libc::write(file, bytes.as_ptr().cast(), bytes.len());
        let result = if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
        libc::close(file);
        result
    }
}
