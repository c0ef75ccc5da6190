//! Computes the text of a notebook after one cell was replaced, inserted or deleted. Bytes outside that cell
//! stay the same; the new cell follows the layout of the file.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::files::notebook::shape::{Notebook, NotebookCell};
use types::hex;

pub(super) enum NotebookChange<'a> {
    /// Gives the cell this source, and this kind if one is given.
    Replace {
        at: usize,
        source: &'a str,
        kind: Option<&'a str>,
    },
    /// Inserts a new cell at this index.
    Insert {
        at: usize,
        source: &'a str,
        kind: &'a str,
    },
    Delete {
        at: usize,
    },
}

/// Applies a change. The index must be valid: at most the number of cells for an insert, below it otherwise.
pub(super) fn apply(notebook: &Notebook<'_>, change: &NotebookChange<'_>) -> String {
    match *change {
        NotebookChange::Replace { at, source, kind } => replace(notebook, at, source, kind),
        NotebookChange::Insert { at, source, kind } => insert(notebook, at, source, kind),
        NotebookChange::Delete { at } => delete(notebook, at),
    }
}

fn replace(notebook: &Notebook<'_>, at: usize, source: &str, kind: Option<&str>) -> String {
    let (text, cell) = (notebook.text, &notebook.cells[at]);
    let layout = Layout::from_notebook(notebook);
    if kind.is_some_and(|kind| kind != cell.kind) || cell.member("source").is_none() {
        let kind = kind.unwrap_or(&cell.kind);
        let new = layout.cell(&rebuild_members(notebook, cell, kind, source));
        return splice(text, &[(cell.place.clone(), new)]);
    }
    let mut parts = Vec::new();
    if let Some(place) = cell.member("source") {
        let as_list = text[place.clone()].starts_with('[');
        parts.push((place, layout.value(&source_value(source, as_list), 3)));
    }
    if cell.kind == "code" {
        // The outputs belong to the old source.
        parts.extend(cell.member("outputs").map(|place| (place, "[]".to_owned())));
        parts.extend(cell.member("execution_count").map(|place| (place, "null".to_owned())));
    }
    parts.sort_by_key(|(place, _)| place.start);
    splice(text, &parts)
}

/// The members of a cell whose kind changes: members of code cells are added or removed.
fn rebuild_members(
    notebook: &Notebook<'_>,
    cell: &NotebookCell<'_>,
    kind: &str,
    source: &str,
) -> Vec<(String, Value)> {
    let mut members: Vec<(String, Value)> = Vec::new();
    for (name, place) in &cell.members {
        let of_code = matches!(name.as_ref(), "outputs" | "execution_count");
        if of_code || matches!(name.as_ref(), "source" | "cell_type") {
            continue;
        }
        // The text was parsed as JSON before.
        let value = serde_json::from_str(&notebook.text[place.clone()]).unwrap_or(Value::Null);
        members.push((name.to_string(), value));
    }
    new_members(members, kind, source)
}

/// The members of a cell of this kind, in nbformat's order.
fn new_members(mut members: Vec<(String, Value)>, kind: &str, source: &str) -> Vec<(String, Value)> {
    let mut set = |name: &str, value: Value| members.push((name.to_owned(), value));
    set("cell_type", kind.into());
    set("source", source_value(source, true));
    if kind == "code" {
        set("execution_count", Value::Null);
        set("outputs", Value::Array(Vec::new()));
    }
    if !members.iter().any(|(name, _)| name == "metadata") {
        members.push(("metadata".into(), Value::Object(serde_json::Map::new())));
    }
    members.sort_by(|a, b| a.0.cmp(&b.0));
    members
}

/// A list of lines, each with its line ending, or one string.
fn source_value(source: &str, as_list: bool) -> Value {
    if as_list {
        source.split_inclusive('\n').map(Value::from).collect::<Vec<_>>().into()
    } else {
        source.into()
    }
}

fn insert(notebook: &Notebook<'_>, at: usize, source: &str, kind: &str) -> String {
    let (text, cells, list) = (notebook.text, &notebook.cells, &notebook.list);
    let layout = Layout::from_notebook(notebook);
    let mut members = Vec::new();
    if notebook.has_ids {
        members.push(("id".to_owned(), Value::from(new_id(notebook, at, source))));
    }
    let new = layout.cell(&new_members(members, kind, source));
    let Some(first) = cells.first() else {
        let (open, close) = (layout.line(2), layout.line(1));
        return splice(text, &[(list.clone(), format!("[{open}{new}{close}]"))]);
    };
    // The text between two cells of this file.
    let between = match cells.get(1) {
        Some(second) => text[first.place.end..second.place.start].to_owned(),
        None => format!(",{}", &text[list.start + 1..first.place.start]),
    };
    match cells.get(at) {
        Some(next) => splice(text, &[(next.place.start..next.place.start, format!("{new}{between}"))]),
        None => {
            let end = cells[cells.len() - 1].place.end;
            splice(text, &[(end..end, format!("{between}{new}"))])
        }
    }
}

fn delete(notebook: &Notebook<'_>, at: usize) -> String {
    let cells = &notebook.cells;
    let place = &cells[at].place;
    let removed_range = match (cells.get(at + 1), at.checked_sub(1).map(|before| &cells[before])) {
        (Some(next), _) => place.start..next.place.start,
        (None, Some(before)) => before.place.end..place.end,
        (None, None) => notebook.list.start + 1..notebook.list.end - 1,
    };
    splice(notebook.text, &[(removed_range, String::new())])
}

/// Eight hexadecimal digits that no other cell has. The same change gives the same id, so that the judged text
/// is the written text.
fn new_id(notebook: &Notebook<'_>, at: usize, source: &str) -> String {
    let mut salt = 0_u32;
    loop {
        let digest = Sha256::digest(format!("{at} {salt} {} {source}", notebook.cells.len()));
        let id = hex::encode(&digest[..4]);
        if !notebook.cells.iter().any(|cell| cell.id.as_deref() == Some(&id)) {
            return id;
        }
        salt += 1;
    }
}

fn splice(text: &str, parts: &[(std::ops::Range<usize>, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (place, new) in parts {
        out.push_str(&text[done..place.start]);
        out.push_str(new);
        done = place.end;
    }
    out.push_str(&text[done..]);
    out
}

/// Whether non-ASCII characters are written as escapes; control characters always are.
fn has_escapes(text: &str) -> bool {
    text.match_indices("\\u").any(|(at, _)| {
        let digits = text.get(at + 2..at + 6);
        digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).is_some_and(|code| code >= 0x80)
    })
}

/// The layout of a file.
struct Layout<'t> {
    /// Line ending and indentation unit; a line begins with the ending and the unit once per level. `None` if
    /// the whole file is one line.
    unit: Option<(&'t str, &'t str)>,
    /// Text after a comma and a colon within a line.
    blank: &'t str,
    /// Whether non-ASCII characters are written as escapes.
    ascii: bool,
}

impl<'t> Layout<'t> {
    fn from_notebook(notebook: &Notebook<'t>) -> Self {
        let text = notebook.text;
        let inner = text.trim_start().strip_prefix('{').unwrap_or("");
        let white = &inner[..inner.len() - inner.trim_start().len()];
        let unit = white.find('\n').map(|at| {
            let end = if white[..at].ends_with('\r') { "\r\n" } else { "\n" };
            (end, &white[white.rfind('\n').unwrap_or(at) + 1..])
        });
        let blank = if unit.is_some() || text.contains("\"cells\": ") { " " } else { "" };
        Self { unit, blank, ascii: text.is_ascii() && has_escapes(text) }
    }

    /// The beginning of a line at this depth.
    fn line(&self, depth: usize) -> String {
        self.unit.map_or(String::new(), |(end, unit)| format!("{end}{}", unit.repeat(depth)))
    }

    fn cell(&self, members: &[(String, Value)]) -> String {
        self.members(members.iter().map(|(name, value)| (name.as_str(), value)), 2)
    }

    fn members<'m>(&self, members: impl Iterator<Item = (&'m str, &'m Value)>, depth: usize) -> String {
        let parts = members.map(|(name, value)| {
            format!(
                "{}:{}{}",
                self.string(name),
                if self.unit.is_some() { " " } else { self.blank },
                self.value(value, depth + 1)
            )
        });
        self.print_list('{', parts.collect(), '}', depth)
    }

    fn print_list(&self, open: char, parts: Vec<String>, close: char, depth: usize) -> String {
        if parts.is_empty() {
            return format!("{open}{close}");
        }
        let comma = match self.unit {
            Some(_) => format!(",{}", self.line(depth + 1)),
            None => format!(",{}", self.blank),
        };
        format!("{open}{}{}{}{close}", self.line(depth + 1), parts.join(&comma), self.line(depth))
    }

    /// A value whose first line is at this depth.
    fn value(&self, value: &Value, depth: usize) -> String {
        match value {
            Value::Array(values) => {
                let parts = values.iter().map(|value| self.value(value, depth + 1)).collect();
                self.print_list('[', parts, ']', depth)
            }
            Value::Object(map) => self.members(map.iter().map(|(name, value)| (name.as_str(), value)), depth),
            Value::String(text) => self.string(text),
            other => other.to_string(),
        }
    }

    fn string(&self, text: &str) -> String {
        let quoted = Value::from(text).to_string();
        if !self.ascii || quoted.is_ascii() {
            return quoted;
        }
        let mut out = String::with_capacity(quoted.len() * 2);
        for c in quoted.chars() {
            if c.is_ascii() {
                out.push(c);
            } else {
                c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            }
        }
        out
    }
}
