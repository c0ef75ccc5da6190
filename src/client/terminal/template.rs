//! Templates of `--format`: `{{.Title}}\t{{.Cost}}`, as in docker and podman. A field is a path into the JSON
//! of the row (`{{.last_turn.subtype}}`); case and underscores do not matter. `{{json .usage}}` prints the
//! JSON of a field, and the template `json` prints the whole row. If the template begins with `table`, the
//! values are aligned below the names of their fields.

use serde_json::Value;

use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::out::{OutputStreams, harmless_json};
use crate::terminal::style::{pad, width};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<TemplatePart>,
    is_table: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Field { path: Vec<String>, is_json: bool },
}

impl Template {
    /// Parses a template. The error says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim() == "json" {
            return Ok(Self {
                parts: vec![TemplatePart::Field { path: Vec::new(), is_json: true }],
                is_table: false,
            });
        }
        let (is_table, text) = match text.strip_prefix("table") {
            Some(rest) if rest.starts_with([' ', '\t']) || rest.starts_with("{{") => {
                (true, rest.trim_start())
            }
            _ => (false, text),
        };
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find("{{") {
            parts.push(TemplatePart::Text(unescape(&rest[..start])));
            let end = rest[start..].find("}}").ok_or("a field is not closed: write {{.Title}}")?;
            parts.push(field(rest[start + 2..start + end].trim())?);
            rest = &rest[start + end + 2..];
        }
        parts.push(TemplatePart::Text(unescape(rest)));
        parts.retain(|part| !matches!(part, TemplatePart::Text(text) if text.is_empty()));
        Ok(Self { parts, is_table })
    }

    pub fn print(&self, rows: &[Value], out: &mut OutputStreams) -> Result<(), Failure> {
        self.check(rows)?;
        let mut lines: Vec<String> = rows.iter().map(|row| self.line(row)).collect();
        if self.is_table {
            lines.insert(0, self.heads());
            lines = align(&lines);
        }
        lines.iter().try_for_each(|line| Ok(out.say(line)?))
    }

    /// Reports a field that no row has, because it is a mistake in the template. Single rows may lack
    /// optional fields.
    fn check(&self, rows: &[Value]) -> Result<(), Failure> {
        let Some(first) = rows.first() else { return Ok(()) };
        for part in &self.parts {
            let TemplatePart::Field { path, .. } = part else { continue };
            let Some(name) = path.first() else { continue };
            if rows.iter().any(|row| find(row, name).is_some()) || OPTIONAL.contains(&plain(name).as_str()) {
                continue;
            }
            let names: Vec<&str> =
                first.as_object().map(|row| row.keys().map(String::as_str).collect()).unwrap_or_default();
            let name = escape::line(name);
            return Err(Failure::usage(format!(
                "--format: there is no field {name}; there are: {}",
                names.join(", ")
            )));
        }
        Ok(())
    }

    fn line(&self, row: &Value) -> String {
        let mut line = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => line.push_str(text),
                TemplatePart::Field { path, is_json } => {
                    let value = path.iter().try_fold(row, |value, name| find(value, name));
                    line.push_str(&value_text(value.unwrap_or(&Value::Null), *is_json));
                }
            }
        }
        line
    }

    fn heads(&self) -> String {
        let head = |part: &TemplatePart| match part {
            TemplatePart::Text(text) => text.clone(),
            TemplatePart::Field { path, .. } => {
                path.last().map(|name| name.to_uppercase()).unwrap_or_default()
            }
        };
        self.parts.iter().map(head).collect()
    }
}

/// Fields that rows have only sometimes, without underscores.
const OPTIONAL: [&str; 12] = [
    "requires",
    "turnid",
    "lastturn",
    "activity",
    "contexttokens",
    "parentsessionid",
    "parentcallid",
    "agent",
    "forkedfrom",
    "thinking",
    "matches",
    "backgroundcommands",
];

fn field(text: &str) -> Result<TemplatePart, String> {
    let (is_json, path) = match text.strip_prefix("json ") {
        Some(path) => (true, path.trim()),
        None => (false, text),
    };
    let path = path
        .strip_prefix('.')
        .ok_or_else(|| format!("{{{{{text}}}}}: a field begins with a dot, as {{{{.Title}}}}"))?;
    let path: Vec<String> = path.split('.').filter(|name| !name.is_empty()).map(String::from).collect();
    Ok(TemplatePart::Field { is_json: is_json || path.is_empty(), path })
}

fn unescape(text: &str) -> String {
    text.replace("\\t", "\t").replace("\\n", "\n")
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

fn find<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    match value {
        Value::Object(fields) => fields
            .get(name)
            .or_else(|| fields.iter().find(|(key, _)| plain(key) == plain(name)).map(|(_, value)| value)),
        Value::Array(values) => values.get(name.parse::<usize>().ok()?),
        _ => None,
    }
}

fn value_text(value: &Value, is_json: bool) -> String {
    match value {
        _ if is_json => harmless_json(&value.to_string()),
        Value::Null => String::new(),
        Value::String(text) => escape::line(text).into_owned(),
        other => harmless_json(&other.to_string()),
    }
}

/// Aligns the parts between tabs.
fn align(lines: &[String]) -> Vec<String> {
    let cells: Vec<Vec<&str>> = lines.iter().map(|line| line.split('\t').collect()).collect();
    let count = cells.iter().map(Vec::len).max().unwrap_or(0);
    let wide: Vec<usize> = (0..count)
        .map(|n| cells.iter().filter_map(|row| row.get(n)).map(|cell| width(cell)).max().unwrap_or(0))
        .collect();
    let line = |row: &Vec<&str>| {
        let padded: Vec<String> = row.iter().zip(&wide).map(|(cell, wide)| pad(cell, *wide)).collect();
        padded.join("  ").trim_end().to_owned()
    };
    cells.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::terminal::out::testing::captured_output;

    fn printed(template: &str) -> String {
        let rows = [
            json!({"title": "one\u{1b}", "last_turn": {"subtype": "success"}, "usage": {"input_tokens": 3}, "number": 1}),
            json!({"title": "another", "usage": {"input_tokens": 40}, "number": 12}),
        ];
        let (mut out, text, _) = captured_output();
        match Template::parse(template).map_err(Failure::usage).and_then(|it| it.print(&rows, &mut out)) {
            Ok(()) => text.text(),
            Err(failure) => failure.message,
        }
    }

    #[test]
    fn template_fields_are_paths_in_any_case() {
        assert_eq!(printed("{{.Title}} #{{ .number }}"), "one⟦ESC⟧ #1\nanother #12\n");
        assert_eq!(printed("{{.LastTurn.Subtype}}\\t{{.usage.InputTokens}}"), "success\t3\n\t40\n");
        assert_eq!(printed("{{json .usage}}"), "{\"input_tokens\":3}\n{\"input_tokens\":40}\n");
        assert_eq!(
            printed("table {{.Number}}\\t{{.Title}}"),
            "NUMBER  TITLE\n1       one⟦ESC⟧\n12      another\n"
        );
        assert!(printed("json").contains("\"number\":12"));
    }

    #[test]
    fn wrong_template_names_its_mistake() {
        assert!(printed("{{.Title").contains("not closed"));
        assert!(printed("{{Title}}").contains("begins with a dot"));
        assert!(printed("{{.Titel}}").contains("no field Titel; there are: last_turn, number, title, usage"));
    }
}
