//! A layout as arguments of bubblewrap, bwrap(1): the whole file system to read, a few folders to write,
//! others covered by nothing; an own table of processes and, if asked for, no network. What lies within a folder that
//! may be written is mounted before, by `guards`: who changes that folder meanwhile could lead bubblewrap elsewhere.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::tools::shell::sandbox::layout::FsPolicy;
use crate::tools::shell::sandbox::readonly_mounts::Cover;
use crate::tools::shell::sandbox::temp::{Nothing, Spot};

/// Where temporary files are inside, mostly.
const TMP: &str = "/tmp";

/// What root keeps inside: enough to work on files of others where they may be written at all.
const KEPT: &[&str] =
    &["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID"];

/// The first process inside: waits for the command and ends as it did. Bubblewrap's own has no filter of
/// system calls, and its memory could be written from within.
pub(super) const FIRST: &[&str] = &["/bin/sh", "-c", "\"$@\"; exit $?", "sh"];

/// Settings of the whole machine in the new `/proc`.
const KERNEL: &[&str] =
    &["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi"];

/// What a path is inside. Of two for one path the later counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mount {
    /// As outside, and may be changed.
    Write,
    /// Something else, and may be changed.
    From(PathBuf),
    /// As outside, only to be read.
    Read,
    /// Covered.
    Nothing(PathBuf),
}

/// Arguments with these mounts, up to those of each start.
pub(super) fn arguments(mounts: Vec<(PathBuf, Mount)>, network: bool, is_root: bool) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    let mut push = |words: &[&dyn AsRef<std::ffi::OsStr>]| {
        args.extend(words.iter().map(|word| word.as_ref().to_owned()));
    };
    push(&[&"--ro-bind", &"/", &"/", &"--dev", &"/dev", &"--proc", &"/proc"]);
    // For root bubblewrap leaves these open: whoever writes there tells the kernel what to run outside.
    for path in KERNEL.iter().filter(|path| Path::new(path).exists()) {
        push(&[&"--ro-bind", path, path]);
    }
    // In what is covered by nothing no place can be made for what is to be seen within it.
    let holds = |path: &Path| mounts.iter().any(|(other, _)| other.starts_with(path) && other != path);
    let emptied: Vec<PathBuf> = mounts
        .iter()
        .filter(|(path, mount)| matches!(mount, Mount::Nothing(_)) && holds(path))
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
    // Whoever kills it, kills all inside.
    push(&[&"--die-with-parent", &"--as-pid-1", &"--cap-drop", &"ALL"]);
    for kept in KEPT.iter().filter(|_| is_root) {
        push(&[&"--cap-add", kept]);
    }
    args
}

/// Whether the folder for temporary files is mounted as `/tmp`. Not where somebody works or lives below it: to mount that
/// there, bubblewrap would make folders in what commands may change meanwhile, through links that they put there.
fn has_own_tmp(layout: &FsPolicy) -> bool {
    !layout.writable.iter().chain([&layout.home]).any(|path| path.starts_with(TMP))
}

/// Where temporary files are inside.
pub(super) fn temp_of(layout: &FsPolicy) -> &Path {
    if has_own_tmp(layout) { Path::new(TMP) } else { &layout.temp }
}

/// What is mounted, folders before what is in them, so that the nearest counts. `absent` are those of the layout's that
/// exist by now.
pub(super) fn mounts(layout: &FsPolicy, absent: &[PathBuf], nothing: &Nothing) -> Vec<(PathBuf, Mount)> {
    let tmp = Path::new(TMP);
    let mut list: Vec<(PathBuf, Mount)> = Vec::new();
    let is_private = has_own_tmp(layout);
    if is_private {
        list.push((tmp.to_owned(), Mount::From(layout.temp.clone())));
    } else {
        list.push((layout.temp.clone(), Mount::Write));
        // Of the real one nothing is seen but what is to be: others keep sockets there (tmux runs what it is told).
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
    // What lies in a folder that is not seen cannot be covered, and need not.
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
    // Nor what lies in a folder that is covered: nothing is there to be covered once more.
    let mut kept: Vec<(PathBuf, Mount)> = Vec::with_capacity(list.len());
    for (path, mount) in list {
        let nearest = kept.iter().rfind(|(above, _)| path.starts_with(above) && path != *above);
        let is_covered = nearest.is_some_and(|(_, above)| matches!(above, Mount::Nothing(_)));
        let is_seen = matches!(mount, Mount::Write | Mount::From(_)) || path == layout.home;
        if !is_covered || is_seen {
            kept.push((path, mount));
        }
    }
    kept
}

/// Takes out what lies within folders that may be written: others may change those while the command is started.
/// What may be written within something that may not is left, since it is out of their reach.
pub(super) fn within(layout: &FsPolicy, mounts: &mut Vec<(PathBuf, Mount)>) -> Vec<(PathBuf, Cover)> {
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
            Mount::Nothing(source) => Cover::Hide(source),
            Mount::Read => Cover::Guard,
            Mount::Write | Mount::From(_) => Cover::Pin,
        };
        (path, cover)
    };
    taken.map(cover).collect()
}

/// Takes out what is covered by nothing, and nothing is mounted within it: bubblewrap reads the whole table of mounts
/// for each that it makes, so what others can do as well is not left to it. `root` is where stand-ins come from.
pub(super) fn hidden(mounts: &mut Vec<(PathBuf, Mount)>, root: &Path) -> Vec<(PathBuf, Cover)> {
    let paths: Vec<PathBuf> = mounts.iter().map(|(path, _)| path.clone()).collect();
    let holds = |path: &Path| paths.iter().any(|other| other.starts_with(path) && other != path);
    let is_alone = |path: &Path| !holds(path) && !root.starts_with(path);
    let taken = mounts.extract_if(.., |(path, mount)| matches!(mount, Mount::Nothing(_)) && is_alone(path));
    let cover = |(path, mount)| match mount {
        Mount::Nothing(source) => Some((path, Cover::Hide(source))),
        _ => None,
    };
    taken.filter_map(cover).collect()
}

/// Where something is mounted within what is hidden, there is to be a place for it: `spots` gives a folder that holds
/// these and nothing else.
pub(super) fn with_spots(
    inner: &mut [(PathBuf, Cover)],
    mounts: &[(PathBuf, Mount)],
    spots: impl Fn(&[Spot]) -> io::Result<PathBuf>,
) -> io::Result<()> {
    for (hidden, cover) in inner {
        let below = mounts.iter().filter_map(|(path, _)| Some((path, path.strip_prefix(&hidden).ok()?)));
        let below = below.filter(|(path, _)| *path != hidden);
        let below: Vec<_> =
            below.map(|(path, rest)| Spot { path: rest.to_owned(), is_file: !path.is_dir() }).collect();
        if matches!(cover, Cover::Hide(_)) && !below.is_empty() {
            *cover = Cover::Hide(spots(&below)?);
        }
    }
    Ok(())
}

/// Has bubblewrap take what may be written, and what lies within it, from folders of ours: whoever may change what is
/// above could put a link in its place, and bubblewrap follows links. `stages` gives such folders, and files for
/// files; `inner` is what is mounted in them.
pub(super) fn staged(
    mounts: &mut [(PathBuf, Mount)],
    inner: Vec<(PathBuf, Cover)>,
    stages: &mut dyn FnMut(bool) -> io::Result<PathBuf>,
) -> io::Result<Vec<(PathBuf, Cover)>> {
    let mut staged: Vec<(PathBuf, PathBuf)> = Vec::new();
    for (path, mount) in mounts.iter_mut().filter(|(_, mount)| *mount == Mount::Write) {
        let stage = stages(!path.is_dir())?;
        staged.push((path.clone(), stage.clone()));
        *mount = Mount::From(stage);
    }
    let tops: Vec<_> = staged.iter().map(|(path, stage)| (stage.clone(), Cover::Of(path.clone()))).collect();
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
    use crate::tools::shell::sandbox::bwrap::*;

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
        let nothing = Nothing { folder: "/e".into(), file: "/n".into() };
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
        let taken = within(&layout, &mut left);
        let path = |path: &str| PathBuf::from(path);
        let expected = [
            (path("/home/u/ws/.agentd"), Cover::Guard),
            (path("/home/u/ws/.git"), Cover::Pin),
            (path("/home/u/ws/secret"), Cover::Hide("/n".into())),
            (path("/home/u/ws/.git/hooks"), Cover::Guard),
            (path("/home/u/.config/agentd/inner/key"), Cover::Hide("/n".into())),
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
        let nothing = Nothing { folder: "/e".into(), file: "/n".into() };
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
            // Not seen, since all of it is another, or nothing but what somebody works in.
            let is_emptied = has("/tmp", Mount::Nothing("/e".into()));
            assert_eq!(is_emptied, !is_own && home != "/tmp", "{list:?}");
            assert_eq!(
                has("/tmp/other/socket", Mount::Nothing("/n".into())),
                !is_own && !is_emptied,
                "{list:?}"
            );
            assert_eq!(has(home, Mount::Read), is_emptied && home != workspace && home.starts_with("/tmp"));
            assert_eq!(temp_of(&layout), Path::new(if is_own { "/tmp" } else { "/tmp/t/s" }));
        }
    }
}
