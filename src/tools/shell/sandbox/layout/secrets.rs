//! What a command does not see of a machine and of a home folder, and what package managers need there.

use std::fs;
use std::path::{Path, PathBuf};

use super::barrier::{barrier, is_there};
use crate::tools::disk::is_missing;
use crate::types::credentials::CREDENTIALS;

/// Secrets of the machine, and sockets of services that would do outside what is forbidden inside.
pub(super) const OF_THE_MACHINE: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/run/user",
    "/run/dbus",
    "/run/docker.sock",
    "/run/docker",
    "/run/containerd",
    "/run/podman",
    "/run/crio",
    "/run/libvirt",
    "/run/snapd.socket",
    "/run/systemd/private",
    "/run/tmux",
    "/run/screen",
    "/run/incus",
    "/run/lxd",
    "/var/lib/incus",
    "/var/lib/lxd",
    "/var/snap/lxd",
];

/// What package managers keep below the home folder, writable for commands that reach the network:
/// without it nothing can be installed. What is put there is used by other projects, too.
pub(super) const CACHES: &[&str] = &[
    ".cache",
    ".cargo/registry",
    ".cargo/git",
    ".npm",
    ".bun/install/cache",
    ".local/share/pnpm",
    ".yarn/berry",
    "go/pkg",
    ".gradle/caches",
    ".m2/repository",
    ".nuget/packages",
];

/// Which of these are there below the home folder. Not through links: what they lead to is elsewhere.
pub(super) fn below(home: &Path, names: &[&'static str]) -> Vec<PathBuf> {
    let is_real = home.canonicalize().is_ok_and(|real| real == home);
    let reached = |name: &&&str| {
        let mut path = home.to_owned();
        Path::new(name).components().all(|part| {
            path.push(part);
            is_there(&path)
        })
    };
    names.iter().filter(|_| is_real).filter(reached).map(|name| home.join(name)).collect()
}

/// Where the credentials of a home folder really lie: what is a link, or reached through one, is hidden in the place
/// that it leads to. But for what lies in a folder that was asked for: who works on the files that his home links
/// to works on these.
pub(super) fn credentials(home: &Path, asked: &[PathBuf]) -> Vec<PathBuf> {
    let Ok(real_home) = home.canonicalize() else { return barrier(home).into_iter().collect() };
    // Many lie in a few folders, of which each is looked at once.
    let mut folders: Vec<(&Path, bool)> = Vec::new();
    let mut found = Vec::new();
    for name in CREDENTIALS.iter().map(Path::new) {
        let folder = name.parent().filter(|folder| *folder != Path::new(""));
        let is_reached = folder.is_none_or(|folder| {
            let known = folders.iter().find(|(path, _)| *path == folder).map(|(_, there)| *there);
            known.unwrap_or_else(|| {
                let looked = fs::metadata(home.join(folder));
                // What cannot be searched is told by the look at the file.
                let there = looked.map_or_else(|error| !is_missing(&error), |meta| meta.is_dir());
                folders.push((folder, there));
                there
            })
        });
        let path = home.join(name);
        match fs::symlink_metadata(&path) {
            _ if !is_reached => continue,
            Err(error) if is_missing(&error) => continue,
            Ok(meta) if !meta.is_symlink() || path.canonicalize().is_ok() => {}
            Ok(_) | Err(_) => {
                found.extend(barrier(&path));
                continue;
            }
        }
        // A link to a place that holds the home hides nothing: all would be gone with it.
        if let Ok(real) = path.canonicalize()
            && !real_home.starts_with(&real)
            && (real == real_home.join(name) || !asked.iter().any(|folder| real.starts_with(folder)))
        {
            found.push(real);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_below_a_home_is_found_but_not_through_links() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("a/b")).unwrap();
        fs::write(home.join("file"), "").unwrap();
        std::os::unix::fs::symlink(home.join("a"), home.join("link")).unwrap();
        let names = ["a/b", "file", "file/x", "link", "link/b", "none", "none/b"];
        let found = |home: &Path| below(home, &names);
        assert_eq!(found(&home), [home.join("a/b"), home.join("file")]);
        assert!(found(&home.join("link")).is_empty(), "a home behind a link");
    }

    #[test]
    fn credentials_are_hidden_where_they_really_lie() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let home = root.join("home");
        for folder in ["home/.aws", "home/dots/config/gh", "home/dots/ssh"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(home.join("dots/netrc"), "").unwrap();
        for (to, link) in [
            ("dots/netrc", ".netrc"),
            ("dots/ssh", ".ssh"),
            ("dots/config", ".config"),
            ("/", ".kube"),
            ("no", ".oci"),
        ] {
            symlink(to, home.join(link)).unwrap();
        }
        symlink(&home, root.join("link")).unwrap();
        let expected = ["dots/config/gh", "dots/netrc", "dots/ssh", ".aws"].map(|path| home.join(path));
        for home in [&home, &root.join("link")] {
            let mut found = credentials(home, &[]);
            found.sort_by(|a, b| b.cmp(a));
            let mut expected = expected.to_vec();
            expected.sort_by(|a, b| b.cmp(a));
            assert_eq!(found, expected);
            assert_eq!(credentials(home, &[root.join("home/dots")]), [root.join("home/.aws")]);
        }
        let at_home = credentials(&home, std::slice::from_ref(&home));
        assert_eq!(at_home, [home.join(".aws")], "what lies there itself");
    }
}
