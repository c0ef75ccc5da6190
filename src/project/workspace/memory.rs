//! The memory of a project: notes that are kept over sessions, one file each, in the daemon's data folder. A project
//! is a workspace folder. Only the user can read the files.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sha2::{Digest as _, Sha256};

use types::hex;
use types::memory::MemoryNote;
use types::time::Timestamp;

/// Maximum number of notes of a project.
const MAX_NOTES: usize = 100;
/// Maximum bytes of a note, and of a name.
const MAX_NOTE_BYTES: usize = 16 * 1024;
const MAX_NAME_BYTES: usize = 64;
/// Maximum bytes of the index in the prompt, and characters of a description in it.
const MAX_INDEX_BYTES: usize = 4 * 1024;
const MAX_DESCRIPTION_CHARS: usize = 160;
/// The ending of the files.
const FILE_ENDING: &str = "md";

/// The reason why a note was not read or written. `Display` completes "could not …".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The name is not allowed.
    #[error(
        "could not use {0:?} as the name of a note; use at most {most} of a-z, 0-9, _ and -, and begin with a \
         letter or digit",
        most = MAX_NAME_BYTES
    )]
    Name(String),
    /// The text is empty or too long.
    #[error("could not keep the note: {0}")]
    Text(String),
    /// The project has the maximum number of notes.
    #[error("could not keep the note: the project has {most} notes; remove one first", most = MAX_NOTES)]
    Full,
    /// The project has no note with this name. The second field contains the names of the existing notes.
    #[error("could not find the note {0:?}{names}", names = known_notes(.1))]
    Missing(String, Vec<String>),
    /// The folder or the file could not be used.
    #[error("could not use the memory of this project: {0}")]
    Io(String),
}

impl MemoryError {
    /// A stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            MemoryError::Name(_) | MemoryError::Text(_) => "invalid_input",
            MemoryError::Full => "memory_full",
            MemoryError::Missing(..) => "unknown_note",
            MemoryError::Io(_) => "io_error",
        }
    }
}

/// The end of the message about a missing note.
fn known_notes(names: &[String]) -> String {
    match names {
        [] => ": the project has no notes".into(),
        names => format!("; the notes are: {}", names.join(", ")),
    }
}

/// The memory of one project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    folder: PathBuf,
}

impl Memory {
    /// The memory of the project in `workspace`, below the folder of all memories. Creates nothing.
    #[must_use]
    pub fn new(all: &Path, workspace: &Path) -> Self {
        use std::os::unix::ffi::OsStrExt as _;
        let id = hex::encode(&Sha256::digest(workspace.as_os_str().as_bytes()));
        Self { folder: all.join(&id[..32]) }
    }

    /// The notes by name, without their texts. Blocking.
    ///
    /// # Errors
    /// The folder could not be read.
    pub fn list(&self) -> Result<Vec<MemoryNote>, MemoryError> {
        let listed = match fs::read_dir(&self.folder) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_error(error)),
        };
        let mut notes = Vec::new();
        for path in listed.flatten().map(|entry| entry.path()).take(4 * MAX_NOTES) {
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            if path.extension().is_some_and(|ending| ending == FILE_ENDING) && is_name(name) {
                notes.extend(self.load(name)?.map(|note| MemoryNote { text: None, ..note }));
            }
        }
        notes.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(notes)
    }

    /// One note with its text. Blocking.
    ///
    /// # Errors
    /// There is no such note, or it could not be read.
    pub fn read(&self, name: &str) -> Result<MemoryNote, MemoryError> {
        check_name(name)?;
        match self.load(name)? {
            Some(note) => Ok(note),
            None => Err(self.missing_note_error(name)),
        }
    }

    /// Writes a note, or replaces it. Blocking.
    ///
    /// # Errors
    /// Name or text are not allowed, there are too many notes, or the file could not be written; then nothing
    /// changed.
    pub fn write(&self, name: &str, text: &str) -> Result<MemoryNote, MemoryError> {
        check_name(name)?;
        let text = text.trim_end();
        if text.trim().is_empty() {
            return Err(MemoryError::Text("it has no text; remove the note instead".into()));
        }
        if text.len() > MAX_NOTE_BYTES {
            return Err(MemoryError::Text(format!(
                "{} bytes; at most {MAX_NOTE_BYTES} are kept",
                text.len()
            )));
        }
        let is_known = fs::symlink_metadata(self.path(name)).is_ok();
        if !is_known && self.list()?.len() >= MAX_NOTES {
            return Err(MemoryError::Full);
        }
        self.replace(name, text).map_err(io_error)?;
        self.read(name)
    }

    /// Removes a note. Blocking.
    ///
    /// # Errors
    /// There is no such note, or the file could not be removed.
    pub fn remove(&self, name: &str) -> Result<(), MemoryError> {
        check_name(name)?;
        match fs::remove_file(self.path(name)) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.missing_note_error(name)),
            Err(error) => Err(io_error(error)),
        }
    }

    /// A new name for a note with this text: its first words, and a number if that name is taken. Blocking.
    #[must_use]
    pub fn free_name(&self, text: &str) -> String {
        let is_part = |c: char| c.is_ascii_alphanumeric();
        let words: Vec<String> = text
            .split(|c: char| !is_part(c))
            .filter(|word| !word.is_empty())
            .take(5)
            .map(str::to_ascii_lowercase)
            .collect();
        let mut base = words.join("-");
        base.truncate(MAX_NAME_BYTES - 4);
        if base.is_empty() {
            base = "note".into();
        }
        let is_free = |name: &String| fs::symlink_metadata(self.path(name)).is_err();
        let numbered = (2..=MAX_NOTES + 1).map(|number| format!("{base}-{number}"));
        std::iter::once(base.clone()).chain(numbered).find(is_free).unwrap_or(base)
    }

    /// Names and first lines of the notes for the prompt; `None` without notes. Blocking.
    #[must_use]
    pub fn index(&self) -> Option<String> {
        let notes = self.list().unwrap_or_default();
        let (mut text, mut left_out) = (String::new(), 0);
        for note in &notes {
            let line = format!("\n- {}: {}", note.name, note.description);
            if text.len() + line.len() > MAX_INDEX_BYTES {
                left_out += 1;
            } else {
                text += &line;
            }
        }
        if left_out > 0 {
            text += &format!("\n- and {left_out} more");
        }
        (!text.is_empty()).then_some(text)
    }

    fn missing_note_error(&self, name: &str) -> MemoryError {
        let known = self.list().unwrap_or_default().into_iter().map(|note| note.name).collect();
        MemoryError::Missing(name.into(), known)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name).with_extension(FILE_ENDING)
    }

    fn load(&self, name: &str) -> Result<Option<MemoryNote>, MemoryError> {
        let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
        let file = match File::options().read(true).custom_flags(flags).open(self.path(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error(error)),
        };
        let meta = file.metadata().map_err(io_error)?;
        let mut bytes = Vec::new();
        file.take(MAX_NOTE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(io_error)?;
        let text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let written = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let updated_at_ms =
            Timestamp(written.map_or(0, |at| i64::try_from(at.as_millis()).unwrap_or(i64::MAX)));
        let description = first.trim_start_matches('#').trim().chars().take(MAX_DESCRIPTION_CHARS).collect();
        let bytes = text.len() as u64;
        Ok(Some(MemoryNote { name: name.into(), description, bytes, updated_at_ms, text: Some(text) }))
    }

    fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let mut file = tempfile_in(&self.folder, name)?;
        let written = file.1.write_all(format!("{text}\n").as_bytes()).and_then(|()| file.1.sync_all());
        let written = written.and_then(|()| fs::rename(&file.0, self.path(name)));
        if written.is_err() {
            let _ = fs::remove_file(&file.0);
        }
        written
    }
}

/// A new file that only the user can read.
fn tempfile_in(folder: &Path, name: &str) -> io::Result<(PathBuf, File)> {
    let path = folder.join(format!(".{name}-{}.tmp", std::process::id()));
    // A crash may have left a file with this name.
    let _ = fs::remove_file(&path);
    let file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
    Ok((path, file))
}

fn io_error(error: io::Error) -> MemoryError {
    MemoryError::Io(error.to_string())
}

fn check_name(name: &str) -> Result<(), MemoryError> {
    if is_name(name) { Ok(()) } else { Err(MemoryError::Name(name.chars().take(100).collect())) }
}

fn is_name(name: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    begins && name.len() <= MAX_NAME_BYTES && name.chars().all(is_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn notes_are_private_bounded_and_separate_per_project() {
        let dir = tempfile::tempdir().expect("a folder");
        let memory = Memory::new(dir.path(), Path::new("/w"));
        assert_eq!(memory.list(), Ok(Vec::new()));
        assert_eq!(memory.index(), None);
        let note = memory.write("build", "# Use make\nnot cargo").expect("written");
        assert_eq!(
            (note.description.as_str(), note.text.as_deref()),
            ("Use make", Some("# Use make\nnot cargo"))
        );
        let mode = fs::metadata(memory.path("build")).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        assert_eq!(fs::metadata(&memory.folder).unwrap().permissions().mode() & 0o777, 0o700);
        memory.write("build", "Use just").expect("replaced");
        assert_eq!(memory.index().as_deref(), Some("\n- build: Use just"));
        assert_eq!(Memory::new(dir.path(), Path::new("/other")).list(), Ok(Vec::new()));
        for name in ["", "../x", "A", "a/b", ".a", &"x".repeat(65)] {
            assert!(matches!(memory.write(name, "x"), Err(MemoryError::Name(_))), "{name}");
        }
        assert!(matches!(memory.write("x", " \n"), Err(MemoryError::Text(_))));
        assert!(matches!(memory.write("x", &"y".repeat(20_000)), Err(MemoryError::Text(_))));
        assert_eq!(memory.read("no"), Err(MemoryError::Missing("no".into(), vec!["build".into()])));
        assert_eq!(memory.remove("build"), Ok(()));
        assert!(memory.remove("build").is_err());
        for n in 0..MAX_NOTES {
            memory.write(&format!("n{n}"), "x").expect("written");
        }
        assert_eq!(memory.write("more", "x"), Err(MemoryError::Full));
        assert!(memory.write("n1", "y").is_ok(), "an old one can be changed");
    }

    #[test]
    fn free_name_is_made_of_first_words() {
        let dir = tempfile::tempdir().expect("a folder");
        let memory = Memory::new(dir.path(), Path::new("/w"));
        let name = memory.free_name("Use TABS, not spaces! In all files.");
        assert_eq!(name, "use-tabs-not-spaces-in");
        memory.write(&name, "x").expect("written");
        assert_eq!(memory.free_name("Use tabs not spaces in"), "use-tabs-not-spaces-in-2");
        assert_eq!(memory.free_name("…"), "note");
    }
}
