//! Converts a text to data for the store: chunks, and from level structure on the records of its outline. Pure.

use super::chunk::{ChunkSettings, TextOrigin, chunks};
use crate::graph::{self, ChunkSpan, language_of_path};
use crate::store::{DocumentContent, NewDocument};
use crate::types::{DocId, KnowledgeError, hash128};
use types::knowledge::{DocumentSource, IndexLevel};

/// A text that is ready to be stored.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PreparedDocument {
    pub new: NewDocument,
    pub content: DocumentContent,
}

/// The description of a file as a document. Its id depends on path and content: two files with the same content are
/// two documents.
pub(super) fn file_document(path: &str, bytes: u64, modified_ns: i64, hash: String) -> NewDocument {
    NewDocument {
        id: DocId(format!("doc-{}", hash128(&[b"file", path.as_bytes(), hash.as_bytes()]))),
        path: Some(path.to_owned()),
        hash,
        source: DocumentSource::File,
        language: language_of_path(path).map(str::to_owned),
        bytes,
        modified_ns,
    }
}

/// Splits a text and derives its structure.
///
/// # Errors
/// The settings do not fit the text.
pub(super) fn prepare(
    new: NewDocument,
    text: &str,
    level: IndexLevel,
    settings: &ChunkSettings,
) -> Result<PreparedDocument, KnowledgeError> {
    let language = new.language.as_deref();
    let outline = language.and_then(|language| graph::outline(language, text));
    let origin = TextOrigin { doc: &new.id, path: new.path.as_deref(), language };
    let chunks = chunks(&origin, text, outline.as_ref(), settings)?;
    let mut content = DocumentContent::default();
    if level >= IndexLevel::Structure {
        let spans: Vec<ChunkSpan> = chunks
            .iter()
            .map(|chunk| ChunkSpan {
                start: usize::try_from(chunk.start_byte).unwrap_or(usize::MAX),
                end: usize::try_from(chunk.end_byte).unwrap_or(usize::MAX),
            })
            .collect();
        // A file without a grammar still has its place among the folders. An inserted text without a path has none.
        if let Some(place) = new.path.as_deref() {
            let outline = outline.unwrap_or_default();
            let records = graph::records(place, language.unwrap_or("text"), &outline, &spans);
            content.entities = records.entities;
            content.relations = records.relations;
            content.symbols = records.symbols;
            content.references = records.references;
        } else if let Some(outline) = outline {
            let records = graph::records(new.id.as_str(), language.unwrap_or("text"), &outline, &spans);
            content.entities = records.entities;
            content.relations = records.relations;
        }
    }
    content.chunks = chunks;
    Ok(PreparedDocument { new, content })
}
