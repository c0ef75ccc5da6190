//! Reads the names in import declarations, each with the name before it if the text contains one.

/// The syntax of a language's imports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImportStyle {
    /// `use a::b::{C, d as e};`
    RustUse,
    /// `import a.b`, `from a.b import c, d`
    Python,
    /// `import a.b.C;`
    Dotted,
    /// A path in quotes: `import { A } from "./b"`, `"net/http"`, `#include "a/b.h"`
    Quoted,
}

/// Maximum number of names of one declaration. A longer declaration is generated code.
const MAX_NAMES: usize = 64;

/// The imported names with their qualifiers.
pub(super) fn imported_names(style: ImportStyle, text: &str) -> Vec<(String, String)> {
    let paths = match style {
        ImportStyle::RustUse => {
            let body = text.trim_start_matches(|c| c != ' ' && c != '\n');
            let body = text.find("use ").map_or(body, |at| &text[at + 4..]);
            rust_paths(body.trim_end_matches(';'))
        }
        ImportStyle::Python => python_paths(text),
        ImportStyle::Dotted => {
            let words = text.trim_end_matches(';').split_whitespace().skip(1);
            words
                .filter(|word| *word != "static")
                .map(|word| word.split('.').map(str::to_owned).collect())
                .collect()
        }
        ImportStyle::Quoted => quoted_paths(text),
    };
    let mut names = Vec::new();
    for path in paths.into_iter().take(MAX_NAMES) {
        let mut parts = path.iter().rev().filter(|part| !matches!(part.as_str(), "" | "*" | "." | ".."));
        let Some(name) = parts.next() else { continue };
        let is_general = |part: &str| matches!(part, "crate" | "self" | "super" | "std" | "core");
        let qualifier = parts.next().filter(|part| !is_general(part)).cloned().unwrap_or_default();
        if !is_general(name) {
            names.push((name.clone(), qualifier));
        }
    }
    names
}

/// Paths of a use tree. Works on the text, without recursion: a stack holds the prefix of each open brace.
fn rust_paths(text: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    let mut prefixes: Vec<Vec<String>> = Vec::new();
    let mut path: Vec<String> = Vec::new();
    let mut word = String::new();
    // The name after `as` is local and does not describe the target.
    let mut is_alias = false;
    for c in text.chars().chain([',']) {
        match c {
            c if c.is_alphanumeric() || c == '_' || c == '*' => word.push(c),
            '{' => {
                prefixes.push(path.clone());
                word.clear();
            }
            ',' | '}' => {
                let last = std::mem::take(&mut word);
                let is_complete = !last.is_empty() && !is_alias;
                if is_complete && last != "self" {
                    path.push(last);
                }
                let depth = prefixes.last().map_or(0, Vec::len);
                if path.len() > depth || is_complete {
                    paths.push(path.clone());
                }
                is_alias = false;
                if c == '}' {
                    prefixes.pop();
                }
                path = prefixes.last().cloned().unwrap_or_default();
            }
            ':' | ' ' | '\n' | '\t' | '\r' => {
                if word == "as" {
                    word.clear();
                    is_alias = true;
                } else if !word.is_empty() && !is_alias {
                    path.push(std::mem::take(&mut word));
                }
            }
            _ => {}
        }
        if paths.len() >= MAX_NAMES {
            break;
        }
    }
    paths
}

fn python_paths(text: &str) -> Vec<Vec<String>> {
    let dotted = |text: &str| text.split('.').map(|part| part.trim().to_owned()).collect::<Vec<_>>();
    let names = |list: &str| {
        list.split(',')
            .filter_map(|item| item.split_whitespace().next())
            .map(|name| name.trim_matches(['(', ')']).to_owned())
            .filter(|name| !name.is_empty())
            .collect::<Vec<_>>()
    };
    if let Some((module, list)) =
        text.trim().strip_prefix("from").and_then(|rest| rest.split_once(" import "))
    {
        let module = dotted(module);
        let list = list.replace(['(', ')'], " ");
        return names(&list).into_iter().map(|name| module.iter().cloned().chain([name]).collect()).collect();
    }
    let list = text.trim().strip_prefix("import").unwrap_or(text);
    names(list).iter().map(|name| dotted(name)).collect()
}

fn quoted_paths(text: &str) -> Vec<Vec<String>> {
    let Some((before, path)) = text.find(['"', '\'', '`']).map(|at| {
        let rest = &text[at + 1..];
        let end = rest.find(['"', '\'', '`']).unwrap_or(rest.len());
        (&text[..at], &rest[..end])
    }) else {
        return Vec::new();
    };
    let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    if let Some(last) = parts.last_mut()
        && let Some((stem, _)) = last.split_once('.')
        && !stem.is_empty()
    {
        *last = stem.to_owned();
    }
    let stem = parts.last().cloned().unwrap_or_default();
    let mut paths = vec![parts];
    // `import { A, B as C } from "…"`: the names, with the file as their qualifier.
    if let (Some(open), Some(close)) = (before.find('{'), before.find('}')) {
        let list = before.get(open + 1..close).unwrap_or_default();
        for name in list
            .split(',')
            .filter_map(|item| item.trim().trim_start_matches("type ").split_whitespace().next())
        {
            paths.push(vec![stem.clone(), name.to_owned()]);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(style: ImportStyle, text: &str) -> Vec<String> {
        imported_names(style, text)
            .into_iter()
            .map(|(name, qualifier)| format!("{qualifier}/{name}"))
            .collect()
    }

    #[test]
    fn rust_use_tree_yields_every_path() {
        let found = names(
            ImportStyle::RustUse,
            "pub use crate::store::{self, reader::{Reader, Kind as K}, Writer, *};",
        );
        assert_eq!(found, ["/store", "reader/Reader", "reader/Kind", "store/Writer", "/store"]);
        assert_eq!(names(ImportStyle::RustUse, "use std::fmt;"), ["/fmt"]);
        assert_eq!(names(ImportStyle::RustUse, "use a::{b::{c, d}, e};"), ["b/c", "b/d", "a/e"]);
    }

    #[test]
    fn other_import_forms_yield_name_and_qualifier() {
        assert_eq!(names(ImportStyle::Python, "from a.b import c, d as e"), ["b/c", "b/d"]);
        assert_eq!(
            names(ImportStyle::Python, "from .models import (User,\n  Role)"),
            ["models/User", "models/Role"]
        );
        assert_eq!(names(ImportStyle::Python, "import os.path as p, sys"), ["os/path", "/sys"]);
        assert_eq!(names(ImportStyle::Dotted, "import static org.a.B;"), ["a/B"]);
        assert_eq!(
            names(ImportStyle::Quoted, "import { A, type B as C } from './x/y.js';"),
            ["x/y", "y/A", "y/B"]
        );
        assert_eq!(names(ImportStyle::Quoted, "\"net/http\""), ["net/http"]);
        assert_eq!(names(ImportStyle::Quoted, "#include \"a/list.h\""), ["a/list"]);
        assert_eq!(names(ImportStyle::Quoted, "#include <stdio.h>"), [""; 0]);
    }
}
