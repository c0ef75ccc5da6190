//! Converts a text to data for the store: chunks, and from level structure on the records of its outline. Pure.

use tokio_util::sync::CancellationToken;

use super::chunk::{ChunkSettings, TextOrigin, chunks};
use super::minified::{has_minified_names, is_minified};
use super::notebook::Notebook;
use super::text::SourceText;
use crate::graph::{self, ChunkSpan, WorkLimit, language_of_path};
use crate::store::{DocumentContent, NewDocument};
use crate::types::{Chunk, DocId, KnowledgeError, hash128};
use types::knowledge::{DocumentSource, IndexLevel};

/// A text that is ready to be stored.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PreparedDocument {
    pub new: NewDocument,
    pub content: DocumentContent,
    /// Whether it is code whose structure is not in the index: it is minified, or took too long.
    pub lacks_structure: bool,
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

/// Splits a text and derives its structure, within the limit for one file.
///
/// # Errors
/// The settings do not fit the text, or the job was cancelled.
pub(super) fn prepare(
    mut new: NewDocument,
    source: &SourceText,
    level: IndexLevel,
    settings: &ChunkSettings,
    cancel: &CancellationToken,
) -> Result<PreparedDocument, KnowledgeError> {
    let limit = WorkLimit::start(cancel);
    let text = source.as_str();
    let (mut outline, has_structure) = match source {
        SourceText::Notebook(notebook) => {
            new.language = notebook.language.map(str::to_owned);
            (notebook.outline(&limit), true)
        }
        SourceText::Plain(text) => match new.language.as_deref() {
            Some("markdown") => (graph::outline("markdown", text, &limit), true),
            Some(language) if graph::has_grammar(language) => {
                let is_written = !is_minified(new.path.as_deref(), text);
                (is_written.then(|| graph::outline(language, text, &limit)).flatten(), true)
            }
            _ => (None, false),
        },
    };
    if new.language.as_deref() != Some("markdown") {
        outline = outline.filter(|outline| !has_minified_names(outline));
    }
    if limit.is_cancelled() {
        return Err(KnowledgeError::cancelled());
    }
    let lacks_structure = has_structure && outline.is_none();
    if lacks_structure {
        tracing::info!(path = new.path, bytes = text.len(), "a file is indexed as plain text");
    }
    let language = new.language.as_deref();
    let origin = TextOrigin { doc: &new.id, path: new.path.as_deref(), language };
    let mut chunks = chunks(&origin, text, outline.as_ref(), settings)?;
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
    if let SourceText::Notebook(notebook) = source {
        number_cells(&mut chunks, notebook);
    }
    content.chunks = chunks;
    Ok(PreparedDocument { new, content, lacks_structure })
}

/// Replaces the lines of the chunks by the numbers of their cells, because Read counts the cells of a notebook too.
fn number_cells(chunks: &mut [Chunk], notebook: &Notebook) {
    let cell_at = |at: u64| notebook.cell_at(usize::try_from(at).unwrap_or(usize::MAX));
    for chunk in chunks {
        chunk.start_line = cell_at(chunk.start_byte);
        chunk.end_line = cell_at(chunk.end_byte.saturating_sub(1));
        if chunk.symbol.is_none() {
            chunk.symbol = Some(match chunk.end_line > chunk.start_line {
                true => format!("cells {} to {}", chunk.start_line, chunk.end_line),
                false => format!("cell {}", chunk.start_line),
            });
        }
    }
}
