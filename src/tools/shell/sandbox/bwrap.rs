//! Converts a policy to arguments of bubblewrap, bwrap(1): the whole file system read-only, some folders
//! writable, others hidden. The command has its own process table and, if requested, no network. Paths within
//! writable folders are mounted before by `readonly_mounts`: a process that changes such a folder meanwhile
//! could redirect bubblewrap.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::shell::sandbox::layout::FsPolicy;
use crate::shell::sandbox::readonly_mounts::MountKind;
use crate::shell::sandbox::temp::{EmptySources, MountPoint};

/// The folder for temporary files inside the sandbox, unless `has_own_tmp` is false.
const TMP_FOLDER: &str = "/tmp";

/// Capabilities that root keeps inside: enough to change files of other users in writable folders.
const KEPT_CAPABILITIES: &[&str] =
    &["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID"];

/// The first process in the sandbox. It waits for the command and returns its exit status. Bubblewrap's own
/// first process has no seccomp filter, and a command could write to its memory.
pub(super) const FIRST_PROCESS: &[&str] = &["/bin/sh", "-c", "\"$@\"; exit $?", "sh"];

/// Settings of the whole machine in the new `/proc`.
const KERNEL_SETTINGS: &[&str] =
    &["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi"];

/// How a path appears in the sandbox. If a path has two mounts, the later one applies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mount {
    /// The same path, writable.
    Write,
    /// Another path, writable.
    From(PathBuf),
    /// The same path, read-only.
    Read,
    /// Hidden behind this empty file or folder.
    Nothing(PathBuf),
}

/// Arguments for these mounts; arguments of a single start are added later.
pub(super) fn arguments(mounts: Vec<(PathBuf, Mount)>, network: bool, is_root: bool) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    let mut push = |words: &[&dyn AsRef<std::ffi::OsStr>]| {
        args.extend(words.iter().map(|word| word.as_ref().to_owned()));
    };
    push(&[&"--ro-bind", &"/", &"/", &"--dev", &"/dev", &"--proc", &"/proc"]);
    // Bubblewrap leaves these writable for root, and a write there can make the kernel run programs outside.
    for path in KERNEL_SETTINGS.iter().filter(|path| Path::new(path).exists()) {
        push(&[&"--ro-bind", path, path]);
    }
    // A mount point within an empty, read-only folder cannot be created, so such a folder is a `tmpfs`.
    let has_mounts_below =
        |path: &Path| mounts.iter().any(|(other, _)| other.starts_with(path) && other != path);
    let emptied: Vec<PathBuf> = mounts
        .iter()
        .filter(|(path, mount)| matches!(mount, Mount::Nothing(_)) && has_mounts_below(path))
        .map(|(path, _)| path.clone())
        .collect();
    for (path, mount) in &mounts {
        match mount {
            Mount::Write => push(&[&"--bind", path, path]),
            Mount::From(source) => push(&[&"--bind", source, path]),
            Mount::Read => push(&[&"--ro-bind", path, path]),
            Mount::Nothing(_) if emptied.contains(path) => push(&[&"--tmpfs", path]),
            Mount::Nothing(source) => push(&[&"--ro-bind", source, path]),
        }
    }
    for path in &emptied {
        push(&[&"--remount-ro", path]);
    }
    push(&[&"--unshare-pid", &"--unshare-ipc", &"--unshare-uts", &"--unshare-cgroup-try"]);
    if !network {
        push(&[&"--unshare-net"]);
    }
    // If bubblewrap is killed, all processes in the sandbox end.
    push(&[&"--die-with-parent", &"--as-pid-1", &"--cap-drop", &"ALL"]);
    for capability in KEPT_CAPABILITIES.iter().filter(|_| is_root) {
        push(&[&"--cap-add", capability]);
    }
    args
}

/// Whether the folder for temporary files is mounted as `/tmp`. This is not possible if the workspace or the
/// home folder lies in `/tmp`: bubblewrap would create mount points in folders that commands may change, and
/// could follow their links.
fn has_own_tmp(layout: &FsPolicy) -> bool {
    !layout.writable.iter().chain([&layout.home]).any(|path| path.starts_with(TMP_FOLDER))
}

/// Path of the folder for temporary files inside the sandbox.
pub(super) fn temp_folder_inside(layout: &FsPolicy) -> &Path {
    if has_own_tmp(layout) { Path::new(TMP_FOLDER) } else { &layout.temp }
}

/// The mounts, parents before children, so that the nearest mount applies. `absent` lists the paths of the
/// policy's `absent` that exist by now.
pub(super) fn mounts(layout: &FsPolicy, absent: &[PathBuf], nothing: &EmptySources) -> Vec<(PathBuf, Mount)> {
    let tmp = Path::new(TMP_FOLDER);
    let mut list: Vec<(PathBuf, Mount)> = Vec::new();
    let is_private = has_own_tmp(layout);
    if is_private {
        list.push((tmp.to_owned(), Mount::From(layout.temp.clone())));
    } else {
        list.push((layout.temp.clone(), Mount::Write));
        // Hide the real `/tmp` except for the visible paths: other users keep sockets there, and tmux runs
        // commands that it receives.
        if layout.home != tmp && !layout.writable.iter().any(|path| tmp.starts_with(path)) {
            list.push((tmp.to_owned(), Mount::Nothing(nothing.folder.clone())));
            if layout.home.starts_with(tmp)
                && !layout.writable.iter().any(|path| layout.home.starts_with(path))
            {
                list.push((layout.home.clone(), Mount::Read));
            }
        }
    }
    let writable = layout.writable.iter().chain(&layout.pinned);
    list.extend(writable.map(|path| (path.clone(), Mount::Write)));
    let guarded = layout.guarded.iter().chain(absent);
    list.extend(guarded.map(|path| (path.clone(), Mount::Read)));
    for path in &layout.hidden {
        let cover = if path.is_dir() { &nothing.folder } else { &nothing.file };
        list.push((path.clone(), Mount::Nothing(cover.clone())));
    }
    // A path in a hidden folder cannot be covered, and needs no cover.
    let is_unseen = |path: &Path| {
        is_private
            && path.starts_with(tmp)
            && path != tmp
            && !list
                .iter()
                .any(|(seen, mount)| path.starts_with(seen) && matches!(mount, Mount::Read | Mount::Write))
    };
    let mut list: Vec<_> = list.iter().filter(|(path, _)| !is_unseen(path)).cloned().collect();
    list.sort_by(|a, b| (a.0.components().count(), &a.0, &a.1).cmp(&(b.0.components().count(), &b.0, &b.1)));
    // A path in a covered folder needs no second cover.
    let mut needed_mounts: Vec<(PathBuf, Mount)> = Vec::with_capacity(list.len());
    for (path, mount) in list {
        let nearest = needed_mounts.iter().rfind(|(above, _)| path.starts_with(above) && path != *above);
        let is_covered = nearest.is_some_and(|(_, above)| matches!(above, Mount::Nothing(_)));
        let is_seen = matches!(mount, Mount::Write | Mount::From(_)) || path == layout.home;
        if !is_covered || is_seen {
            needed_mounts.push((path, mount));
        }
    }
    needed_mounts
}

/// Removes and returns the mounts within writable folders, because other commands may change these folders
/// while this one starts. Writable mounts within a read-only path stay, because commands cannot change their
/// parents.
pub(super) fn take_inner_mounts(
    layout: &FsPolicy,
    mounts: &mut Vec<(PathBuf, Mount)>,
) -> Vec<(PathBuf, MountKind)> {
    let all = mounts.clone();
    let is_within =
        |path: &Path| layout.writable.iter().any(|folder| path.starts_with(folder) && path != folder);
    let is_shut_off = |path: &Path| {
        let nearest = all.iter().rfind(|(above, _)| path.starts_with(above) && path != *above);
        nearest.is_some_and(|(_, above)| matches!(above, Mount::Read | Mount::Nothing(_)))
    };
    let taken = mounts.extract_if(.., |(path, mount)| match mount {
        Mount::Write => is_within(path) && !is_shut_off(path),
        Mount::Read | Mount::Nothing(_) => is_within(path),
        Mount::From(_) => false,
    });
    let cover = |(path, mount)| {
        let cover = match mount {
            Mount::Nothing(source) => MountKind::Hide(source),
            Mount::Read => MountKind::Guard,
            Mount::Write | Mount::From(_) => MountKind::Pin,
        };
        (path, cover)
    };
    taken.map(cover).collect()
}

/// Removes and returns hidden paths without inner mounts. Bubblewrap reads the whole mount table for each
/// mount, so the daemon makes these mounts itself. `root` is the source of the empty files and folders.
pub(super) fn take_hidden_mounts(
    mounts: &mut Vec<(PathBuf, Mount)>,
    root: &Path,
) -> Vec<(PathBuf, MountKind)> {
    let paths: Vec<PathBuf> = mounts.iter().map(|(path, _)| path.clone()).collect();
    let has_mounts_below = |path: &Path| paths.iter().any(|other| other.starts_with(path) && other != path);
    let is_alone = |path: &Path| !has_mounts_below(path) && !root.starts_with(path);
    let taken = mounts.extract_if(.., |(path, mount)| matches!(mount, Mount::Nothing(_)) && is_alone(path));
    let cover = |(path, mount)| match mount {
        Mount::Nothing(source) => Some((path, MountKind::Hide(source))),
        _ => None,
    };
    taken.filter_map(cover).collect()
}

/// Replaces a hidden path that contains visible paths: `spots` returns a folder with mount points for exactly
/// these.
pub(super) fn cover_by_mount_points(
    inner: &mut [(PathBuf, MountKind)],
    mounts: &[(PathBuf, Mount)],
    spots: impl Fn(&[MountPoint]) -> io::Result<PathBuf>,
) -> io::Result<()> {
    for (hidden, cover) in inner {
        let below = mounts.iter().filter_map(|(path, _)| Some((path, path.strip_prefix(&hidden).ok()?)));
        let below = below.filter(|(path, _)| *path != hidden);
        let below: Vec<_> =
            below.map(|(path, rest)| MountPoint { path: rest.to_owned(), is_file: !path.is_dir() }).collect();
        if matches!(cover, MountKind::Hide(_)) && !below.is_empty() {
            *cover = MountKind::Hide(spots(&below)?);
        }
    }
    Ok(())
}

/// Makes bubblewrap mount writable paths, and the mounts within them, from folders of the daemon. Bubblewrap
/// follows links, and a process that may change an ancestor could replace the path by a link. `stages` returns
/// these folders, or files for files; `inner` lists the mounts in them.
pub(super) fn stage_mounts(
    mounts: &mut [(PathBuf, Mount)],
    inner: Vec<(PathBuf, MountKind)>,
    stages: &mut dyn FnMut(bool) -> io::Result<PathBuf>,
) -> io::Result<Vec<(PathBuf, MountKind)>> {
    let mut staged: Vec<(PathBuf, PathBuf)> = Vec::new();
    for (path, mount) in mounts.iter_mut().filter(|(_, mount)| *mount == Mount::Write) {
        let stage = stages(!path.is_dir())?;
        staged.push((path.clone(), stage.clone()));
        *mount = Mount::From(stage);
    }
    let tops: Vec<_> =
        staged.iter().map(|(path, stage)| (stage.clone(), MountKind::Of(path.clone()))).collect();
    let inner = inner.into_iter().map(|(path, cover)| {
        let nearest = staged
            .iter()
            .filter(|(top, _)| path.starts_with(top))
            .max_by_key(|(top, _)| top.components().count());
        let moved = nearest.and_then(|(top, stage)| Some(stage.join(path.strip_prefix(top).ok()?)));
        (moved.unwrap_or(path), cover)
    });
    Ok(tops.into_iter().chain(inner).collect())
}

#[cfg(test)]
mod tests {
    use crate::shell::sandbox::bwrap::*;

    #[test]
    fn nearest_folder_decides_mount_and_hiding_wins() {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
        let layout = FsPolicy {
            writable: paths(&["/home/u/ws", "/home/u/.config/agentd/inner"]),
            guarded: paths(&["/home/u/ws/.git/hooks"]),
            pinned: paths(&["/home/u/ws/.git"]),
            absent: paths(&["/home/u/ws/.agentd"]),
            hidden: paths(&[
                "/home/u/.config/agentd",
                "/home/u/.config/agentd/config.toml",
                "/home/u/.config/agentd/inner/key",
                "/home/u/ws/secret",
                "/tmp/other/run",
            ]),
            temp: "/tmp/t/s".into(),
            home: "/home/u".into(),
            ..FsPolicy::default()
        };
        let nothing = EmptySources { folder: "/e".into(), file: "/n".into() };
        let list = mounts(&layout, &layout.absent, &nothing);
        let of = |path: &str| list.iter().position(|(known, _)| known == Path::new(path));
        assert!(of("/home/u/.config/agentd") < of("/home/u/.config/agentd/inner"));
        assert!(
            of("/home/u/ws") < of("/home/u/ws/.git") && of("/home/u/ws/.git") < of("/home/u/ws/.git/hooks")
        );
        assert_eq!(of("/tmp/other/run"), None, "not seen anyway");
        assert_eq!(of("/home/u/.config/agentd/config.toml"), None, "its folder is covered");
        assert!(of("/home/u/.config/agentd/inner/key").is_some(), "in a folder that is seen again");
        assert_eq!(list[of("/home/u/ws/.agentd").unwrap()].1, Mount::Read);
        assert_eq!(list[of("/home/u/ws/secret").unwrap()].1, Mount::Nothing("/n".into()));
        assert!(Mount::Write < Mount::Read && Mount::Read < Mount::Nothing("/n".into()));

        let mut left = list;
        let taken = take_inner_mounts(&layout, &mut left);
        let path = |path: &str| PathBuf::from(path);
        let expected = [
            (path("/home/u/ws/.agentd"), MountKind::Guard),
            (path("/home/u/ws/.git"), MountKind::Pin),
            (path("/home/u/ws/secret"), MountKind::Hide("/n".into())),
            (path("/home/u/ws/.git/hooks"), MountKind::Guard),
            (path("/home/u/.config/agentd/inner/key"), MountKind::Hide("/n".into())),
        ];
        assert_eq!(taken, expected);
        let inner = path("/home/u/.config/agentd/inner");
        let inside =
            |(path, _): &(PathBuf, Mount)| path.starts_with("/home/u/ws") || path.starts_with(&inner);
        let rest: Vec<_> = left.into_iter().filter(inside).collect();
        assert_eq!(rest, [(path("/home/u/ws"), Mount::Write), (inner.clone(), Mount::Write)]);
    }

    #[test]
    fn private_tmp_is_omitted_for_home_or_workspace_inside() {
        let nothing = EmptySources { folder: "/e".into(), file: "/n".into() };
        for (home, workspace, is_own) in [
            ("/home/u", "/home/u/ws", true),
            ("/home/u", "/tmp/ws", false),
            ("/tmp/home", "/tmp/home/ws", false),
            ("/tmp/home", "/tmp/home", false),
            ("/tmp", "/w", false),
        ] {
            let layout = FsPolicy {
                writable: vec![workspace.into()],
                hidden: vec!["/tmp/other/socket".into()],
                temp: "/tmp/t/s".into(),
                home: home.into(),
                ..FsPolicy::default()
            };
            let list = mounts(&layout, &[], &nothing);
            let has = |path: &str, mount: Mount| list.contains(&(path.into(), mount));
            assert!(has(workspace, Mount::Write), "{list:?}");
            assert_eq!(has("/tmp", Mount::From("/tmp/t/s".into())), is_own, "{list:?}");
            assert_eq!(has("/tmp/t/s", Mount::Write), !is_own, "{list:?}");
            // The socket needs no mount if it is invisible already: a private `/tmp` replaces it, or only the
            // workspace is visible in `/tmp`.
            let is_emptied = has("/tmp", Mount::Nothing("/e".into()));
            assert_eq!(is_emptied, !is_own && home != "/tmp", "{list:?}");
            assert_eq!(
                has("/tmp/other/socket", Mount::Nothing("/n".into())),
                !is_own && !is_emptied,
                "{list:?}"
            );
            assert_eq!(has(home, Mount::Read), is_emptied && home != workspace && home.starts_with("/tmp"));
            assert_eq!(temp_folder_inside(&layout), Path::new(if is_own { "/tmp" } else { "/tmp/t/s" }));
        }
    }
}
