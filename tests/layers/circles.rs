//! Modules of one folder form no import circle: none uses a second one that uses the first, directly or through
//! others. Without circles, a reader can read the modules of a folder one after the other.
//!
//! The check reads paths (`crate::`, `super::`, `self::`, and names of children) in `use` declarations and in
//! code. A path that names a re-export counts as a use of the module that defines the item. A path to an item of
//! the folder's own `mod.rs` counts as no use of a sibling. Tests are exempt.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::source::{SourceToken, pieces, submodules_of, without_tests};

/// Modules by their path, such as `["tools", "files", "edit"]`.
type ModulePath = Vec<String>;

/// The modules of one folder, and the modules of the same folder that each one uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

#[test]
fn sibling_modules_form_no_import_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    super::read(&root, &root, &mut files);
    // This crate contains tests only.
    files.retain(|(path, _)| !path.starts_with("engine/properties/"));
    let graphs = Modules::read(&files).graphs();
    let mut circles = Vec::new();
    for (folder, graph) in &graphs {
        circles.extend(circle(graph).map(|circle| format!("{folder}: {}", circle.join(" → "))));
    }
    assert!(circles.is_empty(), "{} folders have import circles:\n{}", circles.len(), circles.join("\n"));
}

/// All modules except tests.
#[derive(Default)]
struct Modules {
    code: BTreeMap<ModulePath, Vec<String>>,
    /// Names that `use` declarations bring into a module, with their absolute paths.
    names: BTreeMap<ModulePath, BTreeMap<String, ModulePath>>,
    /// Modules of which everything is imported.
    globs: BTreeMap<ModulePath, Vec<ModulePath>>,
    /// Names that a module defines.
    items: BTreeMap<ModulePath, BTreeSet<String>>,
    /// Absolute paths that a module names.
    uses: BTreeMap<ModulePath, Vec<ModulePath>>,
}

impl Modules {
    fn read(files: &[(String, String)]) -> Self {
        let mut tests = Vec::new();
        let mut modules = Self::default();
        for (path, text) in files {
            let folder = submodules_of(path);
            let code =
                without_tests(pieces(text), &folder, &mut tests).into_iter().filter_map(
                    |piece| match piece {
                        SourceToken::Code(token) => Some(token),
                        SourceToken::Text(_) => None,
                    },
                );
            modules.code.insert(split(&folder), code.collect());
        }
        let tests: BTreeSet<ModulePath> = tests.iter().map(|path| split(path)).collect();
        modules.code.retain(|path, _| !(1..=path.len()).any(|end| tests.contains(&path[..end])));
        let paths: Vec<ModulePath> = modules.code.keys().cloned().collect();
        for path in &paths {
            (1..path.len()).for_each(|end| _ = modules.code.entry(path[..end].to_vec()).or_default());
        }
        for path in &paths {
            modules.read_module(path);
        }
        modules
    }

    fn read_module(&mut self, path: &ModulePath) {
        let code = self.code.get(path).cloned().unwrap_or_default();
        let at = |index: usize| code.get(index).map_or("", String::as_str);
        let mut index = 0;
        while index < code.len() {
            match at(index) {
                "use" => {
                    let mut found = Vec::new();
                    index = use_tree(&code, index + 1, &[], &mut found);
                    for (parts, name) in found {
                        let Some(target) = self.absolute(path, &parts) else { continue };
                        self.uses.entry(path.clone()).or_default().push(target.clone());
                        if name == "*" {
                            self.globs.entry(path.clone()).or_default().push(target);
                        } else {
                            self.names.entry(path.clone()).or_default().insert(name, target);
                        }
                    }
                    continue;
                }
                "fn" | "struct" | "enum" | "union" | "const" | "static" | "type" | "trait" => {
                    self.items.entry(path.clone()).or_default().insert(at(index + 1).to_owned());
                }
                _ if at(index + 1) == "::" && (index == 0 || at(index - 1) != "::") => {
                    let mut parts = vec![at(index).to_owned()];
                    while at(index + 1) == "::" && is_name(at(index + 2)) {
                        parts.push(at(index + 2).to_owned());
                        index += 2;
                    }
                    let used = self.absolute(path, &parts);
                    self.uses.entry(path.clone()).or_default().extend(used);
                }
                _ => {}
            }
            index += 1;
        }
    }

    /// The path from the root of the crate; `None` for another crate, a local name or an item.
    fn absolute(&self, module: &[String], parts: &[String]) -> Option<ModulePath> {
        let supers = parts.iter().take_while(|part| *part == "super").count();
        let (base, rest) = match parts.first()?.as_str() {
            "crate" => (crate_of(module), &parts[1..]),
            "self" => (module, &parts[1..]),
            "super" => (module.get(..module.len().checked_sub(supers)?)?, &parts[supers..]),
            child if self.code.contains_key(&[module, &[child.to_owned()]].concat()) => (module, parts),
            _ => return None,
        };
        Some([base, rest].concat())
    }

    /// The module that defines what a path names. `steps` bounds the re-exports that are followed.
    fn defines(&self, path: &[String], steps: usize) -> ModulePath {
        let mut module = ModulePath::new();
        for (index, part) in path.iter().enumerate() {
            let child = [&module[..], std::slice::from_ref(part)].concat();
            if self.code.contains_key(&child) {
                module = child;
                continue;
            }
            let rest = &path[index + 1..];
            let is_own = self.items.get(&module).is_some_and(|items| items.contains(part));
            if is_own || steps == 0 {
                break;
            }
            if let Some(target) = self.names.get(&module).and_then(|names| names.get(part)) {
                return self.defines(&[target, rest].concat(), steps - 1);
            }
            let has = |target: &ModulePath| {
                self.items.get(target).is_some_and(|items| items.contains(part))
                    || self.names.get(target).is_some_and(|names| names.contains_key(part))
            };
            let globs = self.globs.get(&module).into_iter().flatten();
            let mut targets = globs.map(|target| self.defines(target, steps - 1));
            if let Some(target) = targets.find(has) {
                return self.defines(&[&target, &path[index..]].concat(), steps - 1);
            }
            break;
        }
        module
    }

    /// The uses between the modules of each folder.
    fn graphs(&self) -> BTreeMap<String, Graph> {
        let mut graphs: BTreeMap<String, Graph> = BTreeMap::new();
        for (module, uses) in &self.uses {
            for target in uses {
                let target = self.defines(target, 8);
                let common = module.iter().zip(&target).take_while(|(one, other)| one == other).count();
                // The layer table covers the top folders. The rest is a use of an ancestor or a descendant.
                let (Some(from), Some(to), 1..) = (module.get(common), target.get(common), common) else {
                    continue;
                };
                let graph = graphs.entry(module[..common].join("/")).or_default();
                graph.entry(from.clone()).or_default().insert(to.clone());
            }
        }
        graphs
    }
}

/// The root module of a module's crate. A crate is a folder of `src`.
fn crate_of(module: &[String]) -> &[String] {
    &module[..module.len().min(1)]
}

fn split(path: &str) -> ModulePath {
    path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Reads a tree of a `use` declaration: the paths with the names that they get. Returns the index after it.
fn use_tree(code: &[String], start: usize, base: &[String], found: &mut Vec<(Vec<String>, String)>) -> usize {
    let at = |index: usize| code.get(index).map_or("", String::as_str);
    let (mut index, mut parts) = (start, base.to_vec());
    loop {
        match at(index) {
            "::" => index += 1,
            "{" => {
                index += 1;
                while !matches!(at(index), "}" | "") {
                    index = use_tree(code, index, &parts, found);
                    index += usize::from(at(index) == ",");
                }
                return index + 1;
            }
            "*" => {
                found.push((parts, "*".into()));
                return index + 1;
            }
            "as" => {
                found.push((parts, at(index + 1).into()));
                return index + 2;
            }
            // `a::{self}`
            "self" if !parts.is_empty() => index += 1,
            name if is_name(name) => {
                parts.push(name.into());
                index += 1;
            }
            _ => {
                if let Some(name) = parts.last().cloned() {
                    found.push((parts, name));
                }
                return index;
            }
        }
    }
}

/// A shortest circle, as the path from a module back to it.
fn circle(graph: &Graph) -> Option<Vec<String>> {
    graph.keys().filter_map(|start| circle_from(graph, start)).min_by_key(Vec::len)
}

fn circle_from(graph: &Graph, start: &str) -> Option<Vec<String>> {
    let mut paths = vec![vec![start.to_owned()]];
    let mut seen = BTreeSet::new();
    while !paths.is_empty() {
        let mut longer = Vec::new();
        for path in paths {
            for next in graph.get(path.last()?).into_iter().flatten() {
                let path = [&path[..], std::slice::from_ref(next)].concat();
                if next == start {
                    return Some(path);
                }
                if seen.insert(next) {
                    longer.push(path);
                }
            }
        }
        paths = longer;
    }
    None
}

#[test]
fn circle_is_found_through_every_form_of_import() {
    let check = |files: &[(&str, &str)], expected: Option<&str>| {
        let files: Vec<_> = files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
        let graphs = Modules::read(&files).graphs();
        let found = graphs.values().find_map(circle).map(|circle| circle.join(" → "));
        assert_eq!(found.as_deref(), expected, "{files:?}");
    };
    let both = Some("a → b → a");
    check(&[("t/a.rs", "use super::b::X;"), ("t/b.rs", "use crate::a::Y;")], both);
    check(&[("t/a.rs", "use crate::{s, b::{self, X}, c};"), ("t/b.rs", "fn f() { super::a::y() }")], both);
    check(
        &[("t/a.rs", "use super::b as other;"), ("t/b/c.rs", "use super::super::a;"), ("t/b/mod.rs", "")],
        both,
    );
    // Re-exports count for the module that defines the item.
    let parent = ("t/mod.rs", "mod a; mod b; pub use a::Y; pub(crate) use self::b::*;");
    check(&[parent, ("t/a.rs", "use super::X;"), ("t/b.rs", "use crate::Y; pub struct X;")], both);
    check(
        &[("t/a.rs", "use super::b;"), ("t/b.rs", "use super::c;"), ("t/c.rs", "use super::a;")],
        Some("a → b → c → a"),
    );
    // No circle: one direction, the parent's own items, tests, another folder.
    check(&[("t/a.rs", "use super::b;"), ("t/b.rs", "use super::c;")], None);
    check(&[("t/mod.rs", "mod a; pub struct X;"), ("t/a.rs", "use super::X;")], None);
    check(
        &[("t/a.rs", "use super::b;"), ("t/b.rs", "#[cfg(test)] mod tests { use super::super::a; }")],
        None,
    );
    check(
        &[
            ("t/a.rs", "use super::b;"),
            ("t/b.rs", "#[cfg(test)] mod tests;"),
            ("t/b/tests.rs", "use crate::a;"),
        ],
        None,
    );
    check(&[("t/a.rs", "use u::a;"), ("u/a.rs", "use crate::a;")], None);
}
