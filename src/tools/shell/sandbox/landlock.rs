//! Converts a policy to Landlock rules (<https://docs.kernel.org/userspace-api/landlock.html>).
//!
//! Landlock grants rights on a folder with everything below it and cannot remove them further down. A folder
//! that contains a hidden path gets no right itself; each of its other entries gets one. Guarded paths in a
//! writable folder cannot be enforced, because the right to create names belongs to the parent folder. Paths
//! that mounts hide there need no rules. All other folders can be listed, also hidden ones.
//!
//! Other commands may change a folder while its entries get their rights. Each path is therefore opened
//! relative to a parent that is already open, without following links.

use std::ffi::OsStr;
use std::fs;
use std::fs::Metadata;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, Scope,
};
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::Mode;

use crate::shell::sandbox::layout::FsPolicy;
use crate::shell::sandbox::level::CallSandbox;

/// The newest version that this code knows. Features that the kernel lacks are left out.
const NEWEST_ABI: ABI = ABI::V9;

/// Devices that every program may use.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty", "ptmx"];
/// Memory that processes share, if the command has none of its own (see `readonly_mounts`). Terminals are left
/// out then, because a user may sit at another terminal in this folder.
const SHARED_MEMORY: &str = "shm";

/// Access of a command beyond files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NonFileAccess {
    pub(super) network: bool,
    /// Whether the command has its own terminals and shared memory.
    pub(super) apart: bool,
}

impl NonFileAccess {
    pub(super) fn from_choice(choice: CallSandbox) -> Self {
        Self { network: choice.network, apart: choice.guards }
    }
}

/// Rules that enforce a policy, and the paths on which they depend. `None` for the paths if one could not be
/// read. Reads the ancestors of hidden paths.
pub(super) fn build_ruleset(
    layout: &FsPolicy,
    means: NonFileAccess,
) -> io::Result<(OwnedFd, Option<Vec<PathState>>)> {
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    ruleset = ruleset.handle_access(AccessFs::from_all(NEWEST_ABI)).map_err(io::Error::other)?;
    if !means.network {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST_ABI)).map_err(io::Error::other)?;
    }
    let ruleset = ruleset.scope(Scope::from_all(NEWEST_ABI)).map_err(io::Error::other)?;
    let ruleset = Some(ruleset.create().map_err(io::Error::other)?);
    let mut rules = RulesetBuilder { ruleset, states: vec![PathState::into(Path::new("/"))], is_sure: true };
    let is_left = |path: &&PathBuf| !means.apart || !layout.is_covered(path);
    let hidden: Vec<&Path> = layout.hidden.iter().filter(is_left).map(PathBuf::as_path).collect();

    let top = fs::File::open("/")?.into();
    rules.add(top, AccessFs::ReadDir.into())?;
    for entry in fs::read_dir("/")?.flatten() {
        // Raw devices contain the data that is hidden elsewhere.
        if entry.file_name() != "dev" {
            rules.grant(&entry.path(), read_rights(), &hidden)?;
        }
    }
    let is_shared = !means.apart || layout.lies_in_shared_memory();
    for device in DEVICES.iter().chain(is_shared.then_some(&SHARED_MEMORY)) {
        let device = Path::new("/dev").join(device);
        rules.states.push(PathState::at(&device));
        rules.grant(&device, device_access(), &hidden)?;
    }
    for folder in layout.writable.iter().chain([&layout.temp]) {
        rules.states.push(PathState::at(folder));
        rules.grant(folder, read_rights() | write_rights(), &hidden)?;
    }
    rules.finish()
}

/// How paths are opened: without following links.
fn how() -> OpenHow {
    OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .mode(Mode::empty())
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS)
}

/// Rules that only prevent a process from sending signals or connecting to processes outside by ways other than
/// files. `None` if the kernel does not support them.
pub(super) fn scope_ruleset(abi: u32) -> io::Result<Option<OwnedFd>> {
    if abi < 6 {
        return Ok(None);
    }
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    let ruleset = ruleset.scope(Scope::from_all(NEWEST_ABI)).map_err(io::Error::other)?;
    Ok(ruleset.create().map_err(io::Error::other)?.into())
}

fn read_rights() -> BitFlags<AccessFs> {
    AccessFs::from_read(NEWEST_ABI) | AccessFs::ResolveUnix
}

/// Reading, writing, and all operations on a device.
fn device_access() -> BitFlags<AccessFs> {
    read_rights() | write_rights() | AccessFs::IoctlDev
}

/// Rights on a folder of devices as the bits of this Landlock version.
pub(super) fn device_rights(abi: u32) -> u64 {
    let known = ABI::from(i32::try_from(abi).unwrap_or(i32::MAX));
    (device_access() & AccessFs::from_all(known)).bits()
}

/// All write rights except for creating devices.
fn write_rights() -> BitFlags<AccessFs> {
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    AccessFs::from_write(NEWEST_ABI) & !devices
}

/// Minimal age of a folder's last change for a reuse of rules. It is longer than the clock step of every
/// common file system (FAT: two seconds).
const MIN_FOLDER_AGE: Duration = Duration::from_secs(3);
/// The minimal age on a file system that stores fractions of a millisecond. Its timestamps come from the
/// kernel's clock, which advances every few milliseconds.
const MIN_FOLDER_AGE_FINE: Duration = Duration::from_millis(100);

/// State of a path on which a ruleset depends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathState {
    path: PathBuf,
    /// Device and inode of the object; `None` if it does not exist.
    object: Option<(u64, u64)>,
    /// Change times of a folder whose entries were read, in seconds and nanoseconds.
    changed: Option<[(i64, i64); 2]>,
}

impl PathState {
    /// State of an object that has rights with everything below it.
    pub(super) fn at(path: &Path) -> Self {
        let object = std::fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
        Self { path: path.to_owned(), object, changed: None }
    }

    /// State of a folder whose entries have rights one by one. Create it before reading the entries.
    pub(super) fn into(path: &Path) -> Self {
        let meta = std::fs::symlink_metadata(path).ok();
        let object = meta.as_ref().map(|meta| (meta.dev(), meta.ino()));
        Self { path: path.to_owned(), object, changed: meta.as_ref().map(change_times) }
    }

    pub(super) fn read_again(&self) -> Self {
        if self.changed.is_some() { Self::into(&self.path) } else { Self::at(&self.path) }
    }

    /// Whether a later change will be visible in the timestamps.
    pub(super) fn is_settled(&self, now: SystemTime) -> bool {
        let Some([written, changed]) = self.changed else { return true };
        // A program can set the modification time to any value, so the change time shows the precision of
        // the clock.
        let is_fine = changed.1 % 1_000_000 != 0;
        let (seconds, nanos) = written.max(changed);
        let at = u64::try_from(seconds).ok().zip(u32::try_from(nanos).ok());
        let settled = at.and_then(|(seconds, nanos)| {
            let at = SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos))?;
            at.checked_add(if is_fine { MIN_FOLDER_AGE_FINE } else { MIN_FOLDER_AGE })
        });
        settled.is_some_and(|settled| settled < now)
    }
}

fn change_times(meta: &Metadata) -> [(i64, i64); 2] {
    [(meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec())]
}

struct RulesetBuilder {
    /// `None` after a failure.
    ruleset: Option<RulesetCreated>,
    states: Vec<PathState>,
    /// Whether every path that could not be opened is known to be missing.
    is_sure: bool,
}

impl RulesetBuilder {
    /// Grants rights on a path and all below it, except for hidden paths.
    fn grant(&mut self, path: &Path, access: BitFlags<AccessFs>, hidden: &[&Path]) -> io::Result<()> {
        let opened = openat2(nix::fcntl::AT_FDCWD, path, how());
        self.grant_opened(opened, path, access, hidden)
    }

    /// Grants the same rights on a file that was opened at this path.
    fn grant_opened(
        &mut self,
        opened: nix::Result<OwnedFd>,
        path: &Path,
        access: BitFlags<AccessFs>,
        hidden: &[&Path],
    ) -> io::Result<()> {
        let object = match opened {
            Ok(object) => object,
            // Do not follow a link: its target has its own rights at its real path.
            Err(nix::Error::ELOOP) => return Ok(()),
            Err(error) => {
                self.missed(&error.into());
                return Ok(());
            }
        };
        // Select the hidden paths below this one, so that they are not compared with each entry again: folders
        // for temporary files hold hundreds of entries.
        let within: Vec<&Path> = hidden.iter().copied().filter(|hidden| hidden.starts_with(path)).collect();
        if within.contains(&path) {
            return Ok(());
        }
        if within.is_empty() {
            return self.add(object, access);
        }
        self.states.push(PathState::into(path));
        let entries = match fs::read_dir(format!("/proc/self/fd/{}", object.as_raw_fd())) {
            Ok(entries) => entries,
            Err(error) => {
                self.missed(&error);
                return Ok(());
            }
        };
        for entry in entries {
            match entry {
                Ok(entry) => {
                    let name: &OsStr = &entry.file_name();
                    self.grant_opened(openat2(&object, name, how()), &path.join(name), access, &within)?;
                }
                Err(error) => self.missed(&error),
            }
        }
        Ok(())
    }

    fn add(&mut self, object: OwnedFd, access: BitFlags<AccessFs>) -> io::Result<()> {
        let object = fs::File::from(object);
        let is_folder = object.metadata()?.is_dir();
        let access = if is_folder { access } else { access & AccessFs::from_file(NEWEST_ABI) };
        let Some(ruleset) = self.ruleset.take() else { return Ok(()) };
        self.ruleset = Some(ruleset.add_rule(PathBeneath::new(object, access)).map_err(io::Error::other)?);
        Ok(())
    }

    /// A path that cannot be opened gets no rights. The result can be reused only if the path is missing or is
    /// closed to this user.
    fn missed(&mut self, error: &io::Error) {
        self.is_sure &= matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied);
    }

    fn finish(self) -> io::Result<(OwnedFd, Option<Vec<PathState>>)> {
        let fd: Option<OwnedFd> = self.ruleset.and_then(Into::into);
        let fd = fd.ok_or_else(|| io::Error::other("this kernel has no Landlock"))?;
        Ok((fd, self.is_sure.then_some(self.states)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_key_changes_only_with_access_rights() {
        let dir = tempfile::tempdir().unwrap();
        let (ws, listed) = (dir.path().join("ws"), dir.path().join("listed"));
        for folder in [&ws, &listed] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(listed.join("one"), "").unwrap();
        let (at, into) = (PathState::at(&ws), PathState::into(&listed));
        fs::write(ws.join("new"), "").unwrap();
        fs::write(listed.join("one"), "other content").unwrap();
        assert_eq!((at.read_again(), into.read_again()), (at.clone(), into.clone()));

        // The same name, but another object.
        fs::rename(&ws, dir.path().join("old")).unwrap();
        assert_ne!(at.read_again(), at, "gone");
        fs::create_dir(&ws).unwrap();
        assert_ne!(at.read_again(), at, "another");
        // The file system's clock may not advance for a few milliseconds: see `is_settled`.
        let old = fs::File::open(&listed).unwrap();
        old.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let into = PathState::into(&listed);
        fs::rename(listed.join("one"), listed.join("two")).unwrap();
        assert_ne!(into.read_again(), into);
    }

    #[test]
    fn recently_changed_folder_is_not_cached() {
        let dir = tempfile::tempdir().unwrap();
        let state = PathState::into(dir.path());
        let changed = fs::metadata(dir.path()).unwrap().modified().unwrap();
        assert!(!state.is_settled(changed + Duration::from_millis(50)));
        assert!(state.is_settled(changed + Duration::from_secs(10)));
        // Times of a clock with whole seconds and of one with fractions; a time that a user has set.
        let (whole, fine) = ((1_000, 0), (1_000, 123_456_789));
        let after = |ms: u64| SystemTime::UNIX_EPOCH + Duration::from_millis(1_000_000 + ms);
        for (changed, ms, expected) in [
            ([whole, whole], 1_000, false),
            ([whole, whole], 2_900, false),
            ([whole, whole], 3_100, true),
            ([fine, fine], 200, false),
            ([fine, fine], 300, true),
            ([fine, whole], 1_000, false),
            ([whole, fine], 300, true),
            ([(2_000, 1), fine], 300, false),
            ([(i64::MAX, 0), fine], 300, false),
        ] {
            let state = PathState { changed: Some(changed), ..state.clone() };
            assert_eq!(state.is_settled(after(ms)), expected, "{changed:?}, {ms} ms");
        }
        assert!(!state.is_settled(SystemTime::UNIX_EPOCH));
        assert!(PathState::at(dir.path()).is_settled(changed), "only which object it is counts");
    }
}
