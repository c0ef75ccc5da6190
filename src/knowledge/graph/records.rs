//! An outline as records for the store: file, folders, modules, types, functions and sections, and their relations.

use std::collections::{HashMap, HashSet};

use super::languages::folder_files;
use super::outline::{Mention, Outline, shorten};
use crate::store::words::word_parts;
use crate::store::{EntityRecord, ReferenceKind, ReferenceRecord, RelationRecord, SymbolRecord};

/// Characters of an entity's name.
const MAX_NAME_CHARS: usize = 256;
/// Bytes of an entity's name.
const MAX_NAME_BYTES: usize = 512;

/// Byte range of a chunk in its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSpan {
    /// First byte.
    pub start: usize,
    /// Byte after the last one.
    pub end: usize,
}

/// The structure of a document, as the store receives it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StructureRecords {
    pub entities: Vec<EntityRecord>,
    pub relations: Vec<RelationRecord>,
    pub symbols: Vec<SymbolRecord>,
    pub references: Vec<ReferenceRecord>,
}

/// The records of a document. `place` is its path, or its id if it has none.
#[must_use]
pub fn records(place: &str, language: &str, outline: &Outline, chunks: &[ChunkSpan]) -> StructureRecords {
    if chunks.is_empty() {
        return StructureRecords::default();
    }
    let mut builder = Builder { place, outline, chunks, records: StructureRecords::default() };
    builder.file_and_folders(language);
    let names = builder.symbols();
    builder.references(&names);
    builder.records
}

struct Builder<'a> {
    place: &'a str,
    outline: &'a Outline,
    chunks: &'a [ChunkSpan],
    records: StructureRecords,
}

impl Builder<'_> {
    /// The last chunk that begins at or before this byte.
    fn chunk_at(&self, at: usize) -> usize {
        self.chunks.partition_point(|chunk| chunk.start <= at).saturating_sub(1)
    }

    fn entity(&mut self, chunk: usize, name: &str, entity_type: &str, description: &str) {
        self.records.entities.push(EntityRecord {
            chunk,
            name: name.to_owned(),
            entity_type: entity_type.to_owned(),
            description: description.to_owned(),
        });
    }

    fn relation(&mut self, chunk: usize, source: &str, target: &str, keyword: &str) {
        if source != target {
            self.records.relations.push(RelationRecord {
                chunk,
                source: source.to_owned(),
                target: target.to_owned(),
                keywords: keyword.to_owned(),
                description: keyword.to_owned(),
                weight: 1.0,
            });
        }
    }

    fn file_and_folders(&mut self, language: &str) {
        let place = bounded_name(self.place);
        let mut folders: Vec<&str> = self.place.match_indices('/').map(|(at, _)| &self.place[..at]).collect();
        folders.retain(|folder| folder.len() <= MAX_NAME_BYTES && !folder.is_empty());
        let file = self.place.rsplit('/').next().unwrap_or(self.place);
        let stem = file.split_once('.').map_or(file, |(stem, _)| if stem.is_empty() { file } else { stem });
        let is_folder_file = folder_files(language).contains(&stem);
        let description = match self.outline.description.as_str() {
            "" => format!("{language} file"),
            description => description.to_owned(),
        };
        self.entity(0, &place, "file", &description);
        for (at, folder) in folders.iter().enumerate() {
            let is_own = at + 1 == folders.len() && is_folder_file && !self.outline.description.is_empty();
            // Only the file that represents its folder describes it.
            let text = if is_own { self.outline.description.clone() } else { String::new() };
            self.entity(0, folder, "module", &text);
            if at > 0 {
                self.relation(0, folders[at - 1], folder, "contains");
            }
        }
        if let Some(folder) = folders.last() {
            self.relation(0, folder, &place, "contains");
        }
        // A file is imported by its stem, and a file such as `mod.rs` by the name of its folder.
        let mut parts = self.place.rsplit('/').skip(1);
        let (mut name, mut parent) = (stem, parts.next().unwrap_or_default());
        if is_folder_file && !parent.is_empty() {
            (name, parent) = (parent, parts.next().unwrap_or_default());
        }
        self.records.symbols.push(SymbolRecord {
            chunk: 0,
            entity: place,
            name: name.to_owned(),
            parent: parent.to_owned(),
        });
    }

    /// Adds the symbols and returns the names of their entities.
    fn symbols(&mut self) -> Vec<String> {
        let outline = self.outline;
        let file = bounded_name(self.place);
        let names: Vec<String> = outline
            .symbols
            .iter()
            .map(|symbol| {
                let path = shorten(&symbol.path(), MAX_NAME_CHARS / 2);
                bounded_name(&format!("{path} ({})", self.place))
            })
            .collect();
        // Types and modules by name, for members that are defined elsewhere in the file.
        let owners: HashMap<&str, usize> = (0..names.len())
            .rev()
            .filter(|at| matches!(outline.symbols[*at].entity_type, "type" | "module"))
            .map(|at| (outline.symbols[at].name.as_str(), at))
            .collect();
        for (at, symbol) in outline.symbols.iter().enumerate() {
            let chunk = self.chunk_at(symbol.start);
            self.entity(chunk, &names[at], symbol.entity_type, &symbol.description);
            let owner = symbol
                .parent
                .or_else(|| symbol.scope.last().and_then(|owner| owners.get(owner.as_str()).copied()))
                .filter(|owner| *owner != at);
            match owner {
                Some(owner) => self.relation(chunk, &names[owner], &names[at], "contains"),
                None => self.relation(chunk, &file, &names[at], "defines"),
            }
            if symbol.entity_type != "section" {
                self.records.symbols.push(SymbolRecord {
                    chunk,
                    entity: names[at].clone(),
                    name: symbol.name.clone(),
                    parent: symbol.scope.last().cloned().unwrap_or_default(),
                });
            }
        }
        names
    }

    fn references(&mut self, names: &[String]) {
        let file = bounded_name(self.place);
        let mut seen = HashSet::new();
        let defined: HashSet<&str> = self.outline.symbols.iter().map(|symbol| symbol.name.as_str()).collect();
        for mention in &self.outline.mentions {
            if !defined.contains(mention.name.as_str()) && is_unresolvable(mention) {
                continue;
            }
            let chunk = self.chunk_at(mention.at);
            let source = mention.symbol.and_then(|symbol| names.get(symbol)).unwrap_or(&file);
            if seen.insert((chunk, source, mention.kind, &mention.name, &mention.qualifier)) {
                self.records.references.push(ReferenceRecord {
                    chunk,
                    source: source.clone(),
                    kind: mention.kind,
                    name: mention.name.clone(),
                    qualifier: mention.qualifier.clone(),
                });
            }
        }
    }
}

/// Whether a mention is never resolved to another file: the method of a value of unknown type, with a name of one
/// word, such as `x.len()`. Most calls are like this, so they are not stored.
fn is_unresolvable(mention: &Mention) -> bool {
    mention.kind == ReferenceKind::MethodCall
        && mention.qualifier.len() < 3
        && word_parts(&mention.name).len() < 2
}

/// A name within the limits. A longer name keeps its end, because the end is more specific than the beginning.
fn bounded_name(name: &str) -> String {
    if name.len() <= MAX_NAME_BYTES && name.chars().count() <= MAX_NAME_CHARS {
        return name.to_owned();
    }
    let mut end: Vec<char> = Vec::new();
    let mut bytes = "…".len();
    for c in name.chars().rev().take(MAX_NAME_CHARS - 1) {
        bytes += c.len_utf8();
        if bytes > MAX_NAME_BYTES {
            break;
        }
        end.push(c);
    }
    std::iter::once('…').chain(end.into_iter().rev()).collect()
}
