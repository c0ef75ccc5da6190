//! The second copy of inserted documents: one file each in a folder next to the index file. The index can be built
//! again from the workspace, but these texts exist nowhere else. The second copy survives damage of the index file.

use std::fs;
use std::io::{ErrorKind as IoErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::types::{ErrorKind, KnowledgeError, hash128};

/// Ending of a document's file.
const FILE_EXTENSION: &str = "txt";

/// An inserted document as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptDocument {
    pub id: String,
    pub path: Option<String>,
    pub text: String,
}

/// The first line of a file. The text follows.
#[derive(Deserialize, Serialize)]
struct Header {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Hash of the text, to recognise a damaged file.
    hash: String,
}

/// The folder of one index. All its calls block.
#[derive(Clone, Debug)]
pub struct InsertedDocuments(PathBuf);

/// The name of a document's file without its ending.
#[must_use]
pub fn kept_name(id: &str) -> String {
    hash128(&[id.as_bytes()])
}

impl InsertedDocuments {
    /// The folder of the index in this file. It need not exist.
    #[must_use]
    pub fn for_index(file: &Path) -> Self {
        Self(file.with_extension("documents"))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name).with_extension(FILE_EXTENSION)
    }

    /// Stores a document and replaces an earlier one with its id. It is on disk when this returns.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn store_document(&self, document: &KeptDocument) -> Result<(), KnowledgeError> {
        let header = Header {
            id: document.id.clone(),
            path: document.path.clone(),
            hash: hash128(&[document.text.as_bytes()]),
        };
        let file = self.file(&kept_name(&document.id));
        let part = file.with_extension("part");
        let write = || {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
            let mut open = fs::OpenOptions::new();
            let mut out = open.write(true).create(true).truncate(true).mode(0o600).open(&part)?;
            serde_json::to_writer(&mut out, &header)?;
            out.write_all(b"\n")?;
            out.write_all(document.text.as_bytes())?;
            out.sync_all()?;
            fs::rename(&part, &file)
        };
        write().map_err(|error| self.io_failure("keep", &error))
    }

    /// Removes a document. A missing one is no error.
    ///
    /// # Errors
    /// The file could not be removed.
    pub fn remove_document(&self, id: &str) -> Result<(), KnowledgeError> {
        match fs::remove_file(self.file(&kept_name(id))) {
            Err(error) if error.kind() != IoErrorKind::NotFound => Err(self.io_failure("delete", &error)),
            _ => Ok(()),
        }
    }

    /// The names of all documents, sorted; see [`kept_name`].
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == FILE_EXTENSION))
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .collect();
        names.sort();
        names
    }

    /// Reads a document. A damaged file is set aside, so that it is reported once.
    ///
    /// # Errors
    /// The file could not be read, or it is damaged.
    pub fn load(&self, name: &str) -> Result<KeptDocument, KnowledgeError> {
        let file = self.file(name);
        let bytes = fs::read(&file).map_err(|error| self.io_failure("read", &error))?;
        let parsed = || {
            let end = bytes.iter().position(|byte| *byte == b'\n')?;
            let header: Header = serde_json::from_slice(&bytes[..end]).ok()?;
            let text = String::from_utf8(bytes[end + 1..].to_vec()).ok()?;
            (hash128(&[text.as_bytes()]) == header.hash && kept_name(&header.id) == name)
                .then_some(KeptDocument { id: header.id, path: header.path, text })
        };
        parsed().ok_or_else(|| {
            // If that fails, the next job reports it again.
            let _ = fs::rename(&file, file.with_extension("damaged"));
            let text =
                format!("could not read the inserted document {name}: its file is damaged; insert it again");
            KnowledgeError::new(ErrorKind::Damaged, text)
        })
    }

    /// Removes the folder. A missing one is no error.
    ///
    /// # Errors
    /// It could not be removed.
    pub fn remove(&self) -> Result<(), KnowledgeError> {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != IoErrorKind::NotFound => Err(self.io_failure("delete", &error)),
            _ => Ok(()),
        }
    }

    fn io_failure(&self, what: &str, error: &std::io::Error) -> KnowledgeError {
        let folder = self.0.display();
        let text = format!(
            "could not {what} an inserted document in {folder}: {error}; check the folder's permissions and space"
        );
        KnowledgeError::new(ErrorKind::Storage, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_document_is_read_again_unless_its_file_is_damaged() {
        let place = tempfile::tempdir().expect("a folder");
        let copies = InsertedDocuments::for_index(&place.path().join("x.db"));
        assert!(copies.names().is_empty());
        let one = KeptDocument { id: "a/ö\u{202e}".into(), path: None, text: "line\nline\n".into() };
        let other = KeptDocument { id: "b".into(), path: Some("n/b.md".into()), text: "b".into() };
        for document in [&one, &other] {
            copies.store_document(document).expect("kept");
        }
        let newer = KeptDocument { text: "newer".into(), ..other };
        copies.store_document(&newer).expect("kept");
        assert_eq!(copies.names().len(), 2);
        assert_eq!(copies.load(&kept_name("b")), Ok(newer));
        let file = copies.file(&kept_name(&one.id));
        assert_eq!(copies.load(&kept_name(&one.id)), Ok(one));
        let mut bytes = fs::read(&file).expect("bytes");
        *bytes.last_mut().expect("a byte") ^= 1;
        fs::write(&file, bytes).expect("damaged");
        let name = file.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        assert_eq!(copies.load(&name).expect_err("damage").kind, ErrorKind::Damaged);
        copies.remove_document("b").expect("gone");
        copies.remove_document("b").expect("no error");
        assert!(copies.names().is_empty(), "a damaged file is set aside");
        copies.remove().expect("removed");
        copies.remove().expect("no error");
    }
}
