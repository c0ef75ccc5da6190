//! Paths of the machine and of a home folder that are hidden from commands, and cache folders of package
//! managers.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{Mode, SFlag, fstatat};

use crate::file_errors::is_missing;
use crate::sensitivity;
use crate::shell::sandbox::layout::unreadable::{find_link, unsearchable_ancestor};
use base::open::{is_plain, real};
use types::credentials::CREDENTIALS;

/// Secrets of the machine, and sockets of services that would run forbidden operations for a command.
pub(super) const MACHINE_SECRETS: &[&str] = &[
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

/// Sockets in the shared folder for temporary files: `tmux` and `screen` run any command that they receive.
pub(super) fn shared_sockets() -> impl Iterator<Item = PathBuf> {
    let uid = nix::unistd::geteuid();
    let tmux = std::env::var_os("TMUX_TMPDIR").map(|folder| Path::new(&folder).join(format!("tmux-{uid}")));
    let places = ["/tmp/.X11-unix", "/tmp/.ICE-unix", "/tmp/screens"].map(PathBuf::from);
    places.into_iter().chain([PathBuf::from(format!("/tmp/tmux-{uid}"))]).chain(tmux)
}

/// Caches of package managers below the home folder, writable for commands with network access.
/// Without them no package can be installed. Other projects use their content, too.
pub(super) const PACKAGE_CACHES: &[&str] = &[
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

/// Folders of the system. A link that a command could have made must not hide them.
const SYSTEM_FOLDERS: &[&str] = &[
    "/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/dev", "/proc", "/sys", "/run", "/opt", "/nix",
    "/boot",
];

/// Folders that commands may write.
pub(super) struct WritableRoots<'r> {
    /// Folders that the user chose: the workspace and the additional folders.
    pub(super) chosen_folders: &'r [PathBuf],
    /// Caches of package managers.
    pub(super) caches: &'r [PathBuf],
    /// Folder that holds the temporary files of all sessions.
    pub(super) temp: &'r Path,
    /// Whether a command may have made any link, because other sessions exist.
    pub(super) of_all: bool,
}

/// Result of the search for a path to hide.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Located {
    /// The path exists, with all links resolved.
    Found(PathBuf),
    /// This ancestor cannot be searched now, but a command may make it searchable again.
    Unsearchable(PathBuf),
    Missing,
}

impl Located {
    pub(crate) fn found_path(&self) -> Option<&Path> {
        if let Self::Found(path) = self { Some(path) } else { None }
    }

    /// The path to hide, if there is one.
    pub(crate) fn path_to_hide(self) -> Option<PathBuf> {
        match self {
            Self::Found(path) | Self::Unsearchable(path) => Some(path),
            Self::Missing => None,
        }
    }
}

impl WritableRoots<'_> {
    /// Finds the path to hide. The target of a link is hidden instead of the link. A target that contains the
    /// home folder is not hidden, because the whole home folder would disappear with it.
    pub(super) fn locate(&self, path: PathBuf, home: &Path) -> Located {
        if is_plain(&path) {
            return Located::Found(path);
        }
        match path.canonicalize() {
            Ok(real) if !home.starts_with(&real) && !self.stays_visible(&path, &real) => Located::Found(real),
            Err(error) if !is_missing(&error) => {
                unsearchable_ancestor(&path).map_or(Located::Missing, Located::Unsearchable)
            }
            Ok(_) | Err(_) => Located::Missing,
        }
    }

    /// Whether `real` stays visible although `path` leads to it. If a command could have made a link in `path`, it
    /// could choose which folders disappear.
    pub(super) fn stays_visible(&self, path: &Path, real: &Path) -> bool {
        let lies_in =
            |folders: &[PathBuf], link: &Path| folders.iter().any(|folder| link.starts_with(folder));
        let is_of_temp = real.starts_with(self.temp) || self.temp.starts_with(real);
        if is_of_temp && real != path || find_link(path, &|folder| lies_in(self.caches, folder)).is_some() {
            return true;
        }
        let is_needed = || {
            real.parent().is_none_or(|above| above == Path::new("/"))
                || SYSTEM_FOLDERS.iter().any(|place| real.starts_with(place))
                || self.chosen_folders.iter().any(|folder| folder.starts_with(real))
        };
        find_link(path, &|folder| self.of_all || lies_in(self.chosen_folders, folder)).is_some()
            && is_needed()
    }
}

/// Locations of credentials that environment variables set.
pub(super) fn relocated_credentials() -> Vec<PathBuf> {
    sensitivity::relocated_folders(&|name: &str| std::env::var_os(name).map(PathBuf::from))
}

/// A home folder, kept open because many paths are looked up in it.
pub(super) struct HomeDir<'h> {
    /// The path as configured.
    path: &'h Path,
    /// The path with all links resolved.
    real: PathBuf,
    folder: OwnedFd,
}

enum HomeFolder {
    Missing,
    /// The resolved path; `None` if the folder cannot be searched.
    There(Option<PathBuf>),
}

impl<'h> HomeDir<'h> {
    /// Opens the home folder for lookups.
    ///
    /// # Errors
    /// The folder does not exist or cannot be reached.
    pub(super) fn at(path: &'h Path) -> io::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let folder = nix::fcntl::open(path, flags, Mode::empty())?;
        Ok(Self { path, real: real(path)?, folder })
    }

    /// The path with all links resolved.
    pub(super) fn real(&self) -> &Path {
        &self.real
    }

    fn file_type(&self, name: &Path) -> io::Result<SFlag> {
        let stat = fstatat(&self.folder, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        Ok(SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()))
    }

    /// Returns the names that exist below the home folder. Links are not followed, because their targets are
    /// elsewhere.
    pub(super) fn below(&self, names: &[&'static str]) -> Vec<PathBuf> {
        let is_reached = |name: &&&str| {
            let mut path = PathBuf::new();
            Path::new(name).components().all(|part| {
                path.push(part);
                self.file_type(&path).is_ok_and(|kind| kind != SFlag::S_IFLNK)
            })
        };
        let is_real = self.real == self.path;
        names.iter().filter(|_| is_real).filter(is_reached).map(|name| self.path.join(name)).collect()
    }

    /// The real locations of the credentials in the home folder. If a path is a link or contains one, its
    /// target is hidden. Targets inside a folder that the user chose stay visible, because the user works on
    /// these files.
    pub(super) fn credentials(&self, reach: &WritableRoots<'_>) -> Vec<Located> {
        let mut folders: Vec<HomeFolder> = Vec::with_capacity(SECRET_TABLE.folders.len());
        for (folder, above) in &SECRET_TABLE.folders {
            let folder = above.map_or_else(
                || HomeFolder::There(Some(self.real.clone())),
                |above| self.within(folder, &folders[above]),
            );
            folders.push(folder);
        }
        let mut located = Vec::new();
        for (name, folder) in &SECRET_TABLE.names {
            let HomeFolder::There(around) = &folders[*folder] else { continue };
            let real = match self.file_type(name) {
                Ok(kind) => match around.as_ref().filter(|_| kind != SFlag::S_IFLNK).zip(name.file_name()) {
                    Some((around, file)) => Ok(around.join(file)),
                    None => self.path.join(name).canonicalize(),
                },
                Err(error) if is_missing(&error) => continue,
                Err(error) => Err(error),
            };
            let path = self.path.join(name);
            match real {
                Ok(real) if self.is_hidden(name, &path, &real, reach) => located.push(Located::Found(real)),
                Ok(_) => {}
                Err(_) => located.extend(unsearchable_ancestor(&path).map(Located::Unsearchable)),
            }
        }
        located
    }

    fn is_hidden(&self, name: &Path, path: &Path, real: &Path, reach: &WritableRoots<'_>) -> bool {
        // A user who works in the whole home folder did not choose the targets of its links.
        let is_chosen = || {
            reach
                .chosen_folders
                .iter()
                .any(|folder| real.starts_with(folder) && !self.real.starts_with(folder))
        };
        real == self.real.join(name)
            || !self.real.starts_with(real) && !is_chosen() && !reach.stays_visible(path, real)
    }

    /// Resolves a folder within another folder.
    fn within(&self, folder: &Path, above: &HomeFolder) -> HomeFolder {
        let HomeFolder::There(above) = above else { return HomeFolder::Missing };
        match (self.file_type(folder), above.as_ref().zip(folder.file_name())) {
            (Ok(SFlag::S_IFDIR), Some((above, last))) => HomeFolder::There(Some(above.join(last))),
            (Ok(SFlag::S_IFDIR | SFlag::S_IFLNK), _) => match self.path.join(folder).canonicalize() {
                Ok(real) if real.is_dir() => HomeFolder::There(Some(real)),
                Err(error) if !is_missing(&error) => HomeFolder::There(None),
                Ok(_) | Err(_) => HomeFolder::Missing,
            },
            (Err(error), _) if !is_missing(&error) => HomeFolder::There(None),
            (Ok(_) | Err(_), _) => HomeFolder::Missing,
        }
    }
}

/// The table of credentials, grouped by folder. Each folder is checked once, and a missing folder ends the
/// search in it.
struct CredentialTable {
    /// The home folder is first. Each folder refers to its parent, which has a lower index.
    folders: Vec<(&'static Path, Option<usize>)>,
    /// Each name with the index of its folder.
    names: Vec<(&'static Path, usize)>,
}

static SECRET_TABLE: LazyLock<CredentialTable> = LazyLock::new(|| {
    let mut table = CredentialTable { folders: vec![(Path::new(""), None)], names: Vec::new() };
    for name in CREDENTIALS.iter().map(Path::new) {
        let folder = name.parent().map_or(0, |folder| table.add(folder));
        table.names.push((name, folder));
    }
    table
});

impl CredentialTable {
    fn add(&mut self, folder: &'static Path) -> usize {
        if let Some(index) = self.folders.iter().position(|(path, _)| *path == folder) {
            return index;
        }
        let above = folder.parent().map(|above| self.add(above));
        self.folders.push((folder, above));
        self.folders.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn found_by(home: &Path, chosen_folders: &[PathBuf]) -> Vec<PathBuf> {
        let reach = WritableRoots { chosen_folders, caches: &[], temp: Path::new("/none"), of_all: false };
        let found = HomeDir::at(home).unwrap().credentials(&reach);
        found.into_iter().filter_map(Located::path_to_hide).collect()
    }

    #[test]
    fn home_paths_are_located_without_following_links() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("a/b")).unwrap();
        fs::write(home.join("file"), "").unwrap();
        std::os::unix::fs::symlink(home.join("a"), home.join("link")).unwrap();
        let names = ["a/b", "file", "file/x", "link", "link/b", "none", "none/b"];
        let found = |home: &Path| HomeDir::at(home).unwrap().below(&names);
        assert_eq!(found(&home), [home.join("a/b"), home.join("file")]);
        assert!(found(&home.join("link")).is_empty(), "a home behind a link");
    }

    #[test]
    fn credentials_are_hidden_at_resolved_path() {
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
            let mut found = found_by(home, &[]);
            found.sort_by(|a, b| b.cmp(a));
            let mut expected = expected.to_vec();
            expected.sort_by(|a, b| b.cmp(a));
            assert_eq!(found, expected);
            assert_eq!(found_by(home, &[root.join("home/dots")]), [root.join("home/.aws")]);
        }
        let mut at_home = found_by(&home, std::slice::from_ref(&home));
        let mut expected = expected.to_vec();
        at_home.sort();
        expected.sort();
        assert_eq!(at_home, expected, "also who works in all of it");

        // A configured path is hidden at its link target, unless a command could have chosen the target.
        let dots = [home.join("dots")];
        let temp = home.join("temp");
        let reach =
            |chosen_folders| WritableRoots { chosen_folders, caches: &[], temp: &temp, of_all: false };
        let sight = |path: &Path, chosen_folders| reach(chosen_folders).locate(path.to_owned(), &home);
        assert_eq!(sight(&home.join("dots/ssh"), &[]), Located::Found(home.join("dots/ssh")));
        assert_eq!(sight(&home.join(".ssh"), &[]), Located::Found(home.join("dots/ssh")));
        symlink("/usr/lib", home.join("dots/planted")).unwrap();
        let planted = home.join("dots/planted");
        assert_eq!(sight(&planted, &[]), Located::Found(Path::new("/usr/lib").canonicalize().unwrap()));
        assert_eq!(sight(&planted, &dots), Located::Missing);
        fs::create_dir_all(temp.join("session")).unwrap();
        for to in ["temp/session", "temp"] {
            let link = home.join(format!("to-{}", to.len()));
            symlink(home.join(to), &link).unwrap();
            assert_eq!(sight(&link, &[]), Located::Missing, "{to}");
        }
        assert_eq!(sight(&home.join(".oci"), &[]), Located::Missing, "it leads nowhere");
        assert_eq!(sight(&home.join(".kube"), &[]), Located::Missing, "it leads to all");
    }

    #[test]
    fn unsearchable_folder_is_hidden_completely() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        fs::create_dir_all(home.join(".config/gh")).unwrap();
        fs::create_dir(home.join(".cargo")).unwrap();
        fs::write(home.join(".cargo/credentials.toml"), "").unwrap();
        // A file in place of a folder contains nothing.
        fs::write(home.join(".local"), "").unwrap();
        let found = || found_by(&home, &[]);
        let sorted = |mut found: Vec<PathBuf>| {
            found.sort();
            found.dedup();
            found
        };
        let credentials = home.join(".cargo/credentials.toml");
        assert_eq!(sorted(found()), [credentials.clone(), home.join(".config/gh")]);
        if nix::unistd::geteuid().is_root() {
            base::skip_test!("root may look into every folder");
            return;
        }
        fs::set_permissions(home.join(".config"), fs::Permissions::from_mode(0o600)).unwrap();
        let shut = found();
        fs::set_permissions(home.join(".config"), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(sorted(shut), [credentials, home.join(".config")]);
    }
}
