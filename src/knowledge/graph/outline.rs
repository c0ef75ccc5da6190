//! The outline of a document: its symbols, its mentions, and its cut points.

use crate::store::ReferenceKind;

pub(super) const MAX_NAME_BYTES: usize = 128;

/// Something that a document defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name in the code, such as `submit`.
    pub name: String,
    /// Names of the symbols that enclose it, from outside in, such as `["Registry"]`.
    pub scope: Vec<String>,
    /// `function`, `type`, `module` or `section`.
    pub entity_type: &'static str,
    /// Documentation comment, or signature.
    pub description: String,
    /// First byte, of its documentation if it has one.
    pub start: usize,
    /// Byte after its end.
    pub end: usize,
    /// Index of the symbol that encloses it in the tree.
    pub parent: Option<usize>,
}

impl Symbol {
    /// Its path, such as `Registry::submit`.
    #[must_use]
    pub fn path(&self) -> String {
        self.scope.iter().map(String::as_str).chain([self.name.as_str()]).collect::<Vec<_>>().join("::")
    }
}

/// A name that a document mentions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    pub kind: ReferenceKind,
    pub name: String,
    /// The name before it, or empty.
    pub qualifier: String,
    /// Index of the symbol that mentions it; `None` for the file itself.
    pub symbol: Option<usize>,
    /// Byte offset of the mention.
    pub at: usize,
}

/// A place where the text can be cut into chunks. A lower depth is a better place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutPoint {
    /// Byte offset of the beginning of a line.
    pub at: usize,
    /// Depth in the tree.
    pub depth: u8,
}

/// The outline of one document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// The symbols that it defines, in the order of the text.
    pub symbols: Vec<Symbol>,
    /// The names that it mentions.
    pub mentions: Vec<Mention>,
    /// Places where it can be cut, ascending.
    pub cuts: Vec<CutPoint>,
    /// The file's own description.
    pub description: String,
}

/// At most `limit` characters, with an ellipsis if something is omitted.
pub(super) fn shorten(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text.to_owned(),
    }
}
