//! Adds a user's note to the project instructions: to `AGENTS.md` of the workspace, or to its `CLAUDE.md` if
//! that is the only one. The file is replaced as a whole, and only inside the workspace.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

use base::open;

const AGENTS: &str = "AGENTS.md";
const CLAUDE: &str = "CLAUDE.md";
/// Largest file that a note is added to, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The reason why a note was not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// The file is a link that leaves the workspace, or no plain file.
    #[error("could not write the note to {path}: {1}", path = .0.display())]
    NotPlain(PathBuf, String),
    /// The file could not be read or written.
    #[error("could not write the note to {path}: {1}", path = .0.display())]
    Io(PathBuf, String),
}

/// The file that notes of a workspace go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteFile {
    /// Path of the file, without links.
    pub path: PathBuf,
    /// Whether the file does not exist yet.
    pub is_new: bool,
}

impl NoteFile {
    /// Finds the file. Blocking.
    ///
    /// # Errors
    /// It is a link that leaves the workspace, or no plain file.
    pub fn find(workspace: &Path) -> Result<Self, NoteError> {
        let is_there = |name: &str| fs::symlink_metadata(workspace.join(name)).is_ok();
        let name = if !is_there(AGENTS) && is_there(CLAUDE) { CLAUDE } else { AGENTS };
        let path = workspace.join(name);
        if !is_there(name) {
            return Ok(Self { path, is_new: true });
        }
        let refused = |why: &str| NoteError::NotPlain(path.clone(), why.into());
        let resolved = path.canonicalize().map_err(|error| refused(&error.to_string()))?;
        if !resolved.starts_with(workspace) {
            return Err(refused("it is a link that leaves the workspace"));
        }
        if !resolved.is_file() {
            return Err(refused("it is not a file"));
        }
        Ok(Self { path: resolved, is_new: false })
    }

    /// Adds a note as a list entry at the end. Blocking.
    ///
    /// # Errors
    /// The file could not be read or written; then it is unchanged.
    pub fn append(&self, note: &str) -> Result<(), NoteError> {
        self.replace(note).map_err(|error| NoteError::Io(self.path.clone(), error.to_string()))
    }

    fn replace(&self, note: &str) -> io::Result<()> {
        let (folder, name) = self.path.parent().zip(self.path.file_name()).ok_or(io::ErrorKind::NotFound)?;
        // Open the folder first. The handle stays on the same folder, even if its name is replaced by a link
        // meanwhile.
        let folder = open::open_folder(folder)?;
        let (mut text, mut mode) = (Vec::new(), 0o644);
        if !self.is_new {
            let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK;
            let old = open::open_without_links(Some(folder.as_fd()), Path::new(name), flags, Mode::empty())?;
            let meta = old.metadata()?;
            if !meta.is_file() || meta.len() > MAX_FILE_BYTES {
                return Err(io::Error::other(format!("it is not a file of at most {MAX_FILE_BYTES} bytes")));
            }
            mode = meta.permissions().mode() & 0o777;
            old.take(MAX_FILE_BYTES).read_to_end(&mut text)?;
        }
        if !text.is_empty() && !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        text.extend_from_slice(format!("- {note}\n").as_bytes());
        let mut temporary = OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".agentd-{}", std::process::id()));
        let create = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW;
        let private = Mode::from_bits_truncate(0o600);
        let mut file =
            open::open_without_links(Some(folder.as_fd()), Path::new(&temporary), create, private)?;
        let written = file
            .write_all(&text)
            .and_then(|()| file.set_permissions(fs::Permissions::from_mode(mode)))
            .and_then(|()| file.sync_all())
            .and_then(|()| {
                nix::fcntl::renameat(&folder, Path::new(&temporary), &folder, Path::new(name))
                    .map_err(Into::into)
            });
        if written.is_err() {
            let _ = nix::unistd::unlinkat(
                &folder,
                Path::new(&temporary),
                nix::unistd::UnlinkatFlags::NoRemoveDir,
            );
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn add_note(folder: &Path, text: &str) -> Result<PathBuf, NoteError> {
        let file = NoteFile::find(folder)?;
        file.append(text)?;
        Ok(file.path)
    }

    #[test]
    fn note_goes_to_the_existing_instructions() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().canonicalize().expect("resolved");
        fs::write(folder.join("CLAUDE.md"), "Be brief.").expect("written");
        assert_eq!(add_note(&folder, "use tabs"), Ok(folder.join("CLAUDE.md")));
        assert_eq!(fs::read_to_string(folder.join("CLAUDE.md")).unwrap(), "Be brief.\n- use tabs\n");
        fs::write(folder.join("AGENTS.md"), "").expect("written");
        assert_eq!(add_note(&folder, "use spaces"), Ok(folder.join("AGENTS.md")));
        assert_eq!(fs::read_to_string(folder.join("AGENTS.md")).unwrap(), "- use spaces\n");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "no temporary file is left");
    }

    #[test]
    fn note_follows_links_inside_the_workspace_only() {
        let dir = tempfile::tempdir().expect("a folder");
        let base = dir.path().canonicalize().expect("resolved");
        let folder = base.join("ws");
        fs::create_dir_all(folder.join("docs")).expect("made");
        fs::write(base.join("outside.md"), "outside").expect("written");
        symlink("../outside.md", folder.join("AGENTS.md")).expect("linked");
        assert!(matches!(add_note(&folder, "x"), Err(NoteError::NotPlain(..))));
        assert_eq!(fs::read_to_string(base.join("outside.md")).unwrap(), "outside");
        fs::remove_file(folder.join("AGENTS.md")).expect("removed");
        fs::write(folder.join("docs/a.md"), "in\n").expect("written");
        symlink("docs/a.md", folder.join("AGENTS.md")).expect("linked");
        assert_eq!(add_note(&folder, "x"), Ok(folder.join("docs/a.md")));
        assert!(folder.join("AGENTS.md").is_symlink());
        assert_eq!(fs::read_to_string(folder.join("AGENTS.md")).unwrap(), "in\n- x\n");
    }
}
