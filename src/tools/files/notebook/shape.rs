//! Parses a notebook into cells. Every value keeps its range in the text, so that unchanged values keep their
//! bytes.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object in order, with the text of their values.
struct JsonMembers<'t>(Vec<(Cow<'t, str>, &'t RawValue)>);

impl<'de> Deserialize<'de> for JsonMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = JsonMembers<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    members.push(entry);
                }
                Ok(JsonMembers(members))
            }
        }
        d.deserialize_map(MembersVisitor)
    }
}

impl<'t> JsonMembers<'t> {
    /// If several members have the same name, the last one counts, as in other JSON parsers.
    fn get(&self, name: &str) -> Option<&'t RawValue> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
    }
}

/// A parsed notebook.
pub(super) struct Notebook<'t> {
    pub(super) text: &'t str,
    /// Range of the list of cells with its brackets.
    pub(super) list: Range<usize>,
    pub(super) cells: Vec<NotebookCell<'t>>,
    /// The language of its code cells.
    pub(super) language: String,
    /// Whether its format gives every cell an id (4.5 and later).
    pub(super) has_ids: bool,
}

pub(super) struct NotebookCell<'t> {
    pub(super) place: Range<usize>,
    pub(super) id: Option<String>,
    pub(super) kind: String,
    pub(super) source: String,
    /// Members in order, with the ranges of their values.
    pub(super) members: Vec<(Cow<'t, str>, Range<usize>)>,
    pub(super) outputs: Option<&'t RawValue>,
    pub(super) execution_count: Option<u64>,
}

impl NotebookCell<'_> {
    /// The range of a member's value.
    pub(super) fn member(&self, name: &str) -> Option<Range<usize>> {
        self.members.iter().rev().find(|(key, _)| key == name).map(|(_, place)| place.clone())
    }
}

/// Text in nbformat: a string, or a list of lines.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum NotebookText {
    One(String),
    Many(Vec<String>),
}

impl NotebookText {
    pub(super) fn join(self) -> String {
        match self {
            NotebookText::One(text) => text,
            NotebookText::Many(lines) => lines.concat(),
        }
    }
}

pub(super) fn lines(value: Option<&RawValue>) -> Option<String> {
    Some(serde_json::from_str::<NotebookText>(value?.get()).ok()?.join())
}

/// Parses a notebook. The error describes the problem as a sentence fragment.
pub(super) fn read(text: &str) -> Result<Notebook<'_>, String> {
    let wrong = |what: &str, error: serde_json::Error| format!("{what}: {error}");
    let root: JsonMembers<'_> =
        serde_json::from_str(text).map_err(|e| wrong("it is not a JSON object", e))?;
    let list = root.get("cells").ok_or("it has no cells")?;
    let raw: Vec<&RawValue> =
        serde_json::from_str(list.get()).map_err(|e| wrong("its cells are no list", e))?;
    // A value is a slice of the text from which it was parsed.
    let place = |value: &RawValue| {
        let start = value.get().as_ptr() as usize - text.as_ptr() as usize;
        start..start + value.get().len()
    };
    let mut cells = Vec::with_capacity(raw.len());
    for (number, value) in raw.into_iter().enumerate() {
        let members: JsonMembers<'_> = serde_json::from_str(value.get())
            .map_err(|e| wrong(&format!("cell {number} is not an object"), e))?;
        let string =
            |name: &str| members.get(name).and_then(|v| serde_json::from_str::<String>(v.get()).ok());
        let source = match members.get("source") {
            None => String::new(),
            source => lines(source).ok_or_else(|| format!("the source of cell {number} is not text"))?,
        };
        cells.push(NotebookCell {
            place: place(value),
            id: string("id"),
            kind: string("cell_type").ok_or_else(|| format!("cell {number} has no cell_type"))?,
            source,
            outputs: members.get("outputs"),
            execution_count: members.get("execution_count").and_then(|v| serde_json::from_str(v.get()).ok()),
            members: members.0.iter().map(|(key, value)| (key.clone(), place(value))).collect(),
        });
    }
    let number = |name: &str| root.get(name).and_then(|v| serde_json::from_str::<u64>(v.get()).ok());
    let has_ids = (number("nbformat"), number("nbformat_minor")) >= (Some(4), Some(5));
    Ok(Notebook { text, list: place(list), cells, language: language(&root), has_ids })
}

fn language(root: &JsonMembers<'_>) -> String {
    let info = || {
        let metadata: serde_json::Value = serde_json::from_str(root.get("metadata")?.get()).ok()?;
        let info = metadata.pointer("/language_info/name").or(metadata.pointer("/kernelspec/language"))?;
        Some(
            info.as_str()?
                .chars()
                .filter(|c| c.is_ascii_alphanumeric() || "+#-_".contains(*c))
                .take(40)
                .collect(),
        )
    };
    info().unwrap_or_else(|| "python".to_owned())
}
