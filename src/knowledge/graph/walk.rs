//! Walks a syntax tree and records its definitions, its mentions, and the places where it can be cut.
//!
//! The work for a node never depends on its depth, on the length of its line, or on the length of the nodes around
//! it, because generated files nest thousands of levels and have megabytes on one line.

use std::ops::ControlFlow;

use tree_sitter::{Node, ParseOptions, Parser, TreeCursor};

use super::imports::imported_names;
use super::languages::{Grammar, NameLocation, NodeRole, NodeRule, grammar};
use super::lines::Lines;
use super::markdown;
use super::node_text::{
    MAX_DESCRIPTION_CHARS, clean_comment, first_paragraph, last_part, start_within, string_content, type_name,
};
use super::outline::{CutPoint, MAX_NAME_BYTES, Mention, Outline, Symbol, shorten};
use super::work_limit::WorkLimit;
use crate::store::ReferenceKind;

/// Maximum number of symbols of one file: files with more are generated code or data.
const MAX_SYMBOLS: usize = 2000;
/// Maximum number of mentions of one file.
const MAX_MENTIONS: usize = 20_000;
/// Maximum number of cut points of one file.
const MAX_CUTS: usize = 100_000;
/// Characters of a signature.
const MAX_SIGNATURE_CHARS: usize = 200;
/// Bytes of a definition that are read for its signature.
const MAX_SIGNATURE_BYTES: usize = 4 * 1024;
/// Bytes at the end of a callee or receiver that are read. Only its end matters, and a chain of calls can be long.
const MAX_CALLEE_BYTES: usize = 512;
/// Maximum number of enclosing names in the scope of a symbol: the innermost ones.
const MAX_SCOPE_NAMES: usize = 16;
/// Number of nodes between two checks of the limit.
const NODES_PER_CHECK: u32 = 1024;

/// The outline of a text, or `None` if its language has no grammar or the limit was reached.
#[must_use]
pub fn outline(language: &str, text: &str, limit: &WorkLimit) -> Option<Outline> {
    if language == "markdown" {
        return markdown::outline(text, limit);
    }
    let grammar = grammar(language)?;
    let mut parser = Parser::new();
    parser.set_language(&grammar.parser).ok()?;
    let mut progress = |_: &tree_sitter::ParseState| {
        if limit.is_reached() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let bytes = text.as_bytes();
    let options = ParseOptions::new().progress_callback(&mut progress);
    let tree =
        parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options))?;
    let mut walk = TreeWalk {
        grammar,
        text,
        lines: Lines::new(text),
        outline: Outline::default(),
        enclosing: Vec::new(),
        prefix: None,
    };
    walk.run(tree.walk(), limit).then_some(walk.outline)
}

/// Comments and attributes directly above the next node.
struct PrefixRun {
    start: usize,
    end_row: usize,
    /// The first paragraph of its comments.
    comment: String,
    /// Whether the first paragraph is complete.
    is_closed: bool,
}

/// A node that encloses the current node.
struct EnclosingNode {
    depth: u32,
    name: String,
    /// The innermost symbol: the one that the node defines, or else the one around it.
    symbol: Option<usize>,
    /// The index in [`TreeWalk::enclosing`] of the innermost node that is no function.
    owner: Option<usize>,
}

struct TreeWalk<'a> {
    grammar: &'static Grammar,
    text: &'a str,
    lines: Lines,
    outline: Outline,
    enclosing: Vec<EnclosingNode>,
    prefix: Option<PrefixRun>,
}

impl<'a> TreeWalk<'a> {
    /// Visits every node before its children, without recursion: a file may nest thousands of levels. Returns
    /// whether all nodes were visited before the limit was reached.
    fn run(&mut self, mut cursor: TreeCursor<'_>, limit: &WorkLimit) -> bool {
        let mut is_first_comment = true;
        let (mut depth, mut visited) = (0_u32, 0_u32);
        loop {
            visited = visited.wrapping_add(1);
            if visited.is_multiple_of(NODES_PER_CHECK) && limit.is_reached() {
                return false;
            }
            let node = cursor.node();
            while self.enclosing.last().is_some_and(|enclosing| enclosing.depth >= depth) {
                self.enclosing.pop();
            }
            let rule = if node.is_named() { self.grammar.rule(&node) } else { None };
            if depth > 0 && node.is_named() {
                self.visit_node(node, depth, rule, &mut is_first_comment);
            }
            // These nodes are read as text, so their children are not visited.
            let descends = !matches!(
                rule.map(|rule| rule.role),
                Some(NodeRole::Comment | NodeRole::Prefix | NodeRole::Import)
            );
            if descends && cursor.goto_first_child() {
                // `TreeCursor::depth` counts the levels at each call.
                depth += 1;
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return true;
                }
                depth -= 1;
            }
        }
    }

    fn visit_node(
        &mut self,
        node: Node<'_>,
        depth: u32,
        rule: Option<&'static NodeRule>,
        is_first_comment: &mut bool,
    ) {
        let role = rule.map(|rule| rule.role);
        if matches!(role, Some(NodeRole::Comment | NodeRole::Prefix)) {
            let is_new = self.extend_prefix(node, role == Some(NodeRole::Comment));
            if is_new {
                self.note_cut_point(node, depth);
            }
            if role == Some(NodeRole::Comment)
                && *is_first_comment
                && depth == 1
                && self.outline.symbols.is_empty()
            {
                // The first comment of a file describes it, unless it turns out to describe a symbol.
                self.outline.description = clean_comment(self.text_of(node));
                *is_first_comment = false;
            } else if let Some(run) = &self.prefix
                && !*is_first_comment
                && run.start == 0
            {
                self.outline.description.clone_from(&run.comment);
            }
            return;
        }
        let prefix = self.prefix.take_if(|run| run.end_row + 1 >= node.start_position().row);
        if prefix.is_none() {
            self.prefix = None;
            self.note_cut_point(node, depth);
        }
        if self.grammar.language.has_docstrings && depth == 1 && self.outline.symbols.is_empty() {
            let string = if node.kind() == "string" { Some(node) } else { node.named_child(0) };
            if let Some(string) =
                string.filter(|string| string.kind() == "string" && self.outline.description.is_empty())
            {
                self.outline.description = first_paragraph(string_content(self.text_of(string)));
            }
        }
        let is_definition = rule.is_some_and(|rule| self.apply_rule(rule, node, depth, prefix.as_ref()));
        // `export` and decorators enclose their definition: the comment above belongs to the definition inside.
        let starts_inside =
            node.named_child(0).is_some_and(|child| child.start_position().row == node.start_position().row)
                || node.named_child_count() > 1;
        if !is_definition && starts_inside {
            self.prefix = prefix.map(|run| PrefixRun { end_row: node.start_position().row, ..run });
        }
    }

    /// Applies a rule and returns whether the node defines something.
    fn apply_rule(
        &mut self,
        rule: &NodeRule,
        node: Node<'_>,
        depth: u32,
        prefix: Option<&PrefixRun>,
    ) -> bool {
        if rule.needs.is_some_and(|field| node.child_by_field_name(field).is_none()) {
            return false;
        }
        match rule.role {
            NodeRole::Type(name) => self.push_definition(node, depth, "type", name, None, prefix),
            NodeRole::Module(name) => self.push_definition(node, depth, "module", name, None, prefix),
            NodeRole::Function(name, parent) => {
                self.push_definition(node, depth, "function", name, parent, prefix)
            }
            NodeRole::FunctionValue => {
                let value = node.child_by_field_name("value");
                let is_function = value.is_some_and(|value| value.kind().contains("function"));
                is_function
                    && self.push_definition(
                        node,
                        depth,
                        "function",
                        NameLocation::Field("name"),
                        None,
                        prefix,
                    )
            }
            NodeRole::Members(field) => {
                if let Some(of) = node.child_by_field_name(field) {
                    let name = type_name(self.start_of(of));
                    self.enclose(depth, name, self.innermost_symbol(), false);
                }
                false
            }
            NodeRole::Call(field) => {
                if let Some(callee) = node.child_by_field_name(field) {
                    self.call(callee, node.start_byte());
                }
                false
            }
            NodeRole::MethodCall(object, method) => {
                if let Some(method) = node.child_by_field_name(method) {
                    let object = node.child_by_field_name(object).map(|object| self.end_of(object));
                    let kind = if object.is_some() { ReferenceKind::MethodCall } else { ReferenceKind::Call };
                    let name = self.text_of(method);
                    self.mention(kind, name, object.unwrap_or_default(), node.start_byte());
                }
                false
            }
            NodeRole::Import => {
                for (name, qualifier) in imported_names(self.grammar.language.imports, self.text_of(node)) {
                    self.push_mention(ReferenceKind::Import, name, qualifier, None, node.start_byte());
                }
                false
            }
            NodeRole::Comment | NodeRole::Prefix => false,
        }
    }

    fn push_definition(
        &mut self,
        node: Node<'_>,
        depth: u32,
        entity_type: &'static str,
        name: NameLocation,
        parent: Option<&'static str>,
        prefix: Option<&PrefixRun>,
    ) -> bool {
        let Some(full_name) = self.name_of(node, name) else { return false };
        if self.outline.symbols.len() >= MAX_SYMBOLS {
            return false;
        }
        let mut names: Vec<&str> =
            full_name.split("::").map(str::trim).filter(|part| !part.is_empty()).collect();
        let Some(own) = names.pop().map(|own| own.split('<').next().unwrap_or(own)) else { return false };
        if own.len() > MAX_NAME_BYTES || own.is_empty() {
            return false;
        }
        let around = &self.enclosing[self.enclosing.len().saturating_sub(MAX_SCOPE_NAMES)..];
        let mut scope: Vec<String> = around.iter().map(|enclosing| enclosing.name.clone()).collect();
        if let Some(receiver) = parent.and_then(|field| node.child_by_field_name(field)) {
            scope.push(type_name(self.start_of(receiver)));
        }
        scope.extend(names.into_iter().map(type_name));
        let signature = self.signature(node);
        let comment = prefix.map(|run| run.comment.clone()).filter(|comment| !comment.is_empty());
        let docstring = if self.grammar.language.has_docstrings { self.docstring(node) } else { None };
        let symbol = self.outline.symbols.len();
        self.outline.symbols.push(Symbol {
            name: own.to_owned(),
            scope,
            entity_type,
            description: docstring.or(comment).unwrap_or(signature),
            start: prefix.map_or(node.start_byte(), |run| run.start),
            end: node.end_byte(),
            parent: self.innermost_symbol(),
        });
        if prefix.is_some_and(|run| run.start == 0) && self.grammar.language.name != "rust" {
            // The comment at the top of the file belongs to this symbol.
            self.outline.description.clear();
        }
        self.enclose(depth, own.to_owned(), Some(symbol), entity_type == "function");
        true
    }

    fn innermost_symbol(&self) -> Option<usize> {
        self.enclosing.last().and_then(|enclosing| enclosing.symbol)
    }

    fn enclose(&mut self, depth: u32, name: String, symbol: Option<usize>, is_function: bool) {
        let around = self.enclosing.last().and_then(|enclosing| enclosing.owner);
        let owner = if is_function { around } else { Some(self.enclosing.len()) };
        self.enclosing.push(EnclosingNode { depth, name, symbol, owner });
    }

    fn name_of(&self, node: Node<'_>, name: NameLocation) -> Option<String> {
        let named = match name {
            NameLocation::Field(field) => node.child_by_field_name(field)?,
            NameLocation::Declarator => {
                let mut inner = node.child_by_field_name("declarator")?;
                while let Some(next) = inner.child_by_field_name("declarator").or_else(|| {
                    // `(*name)` has its declarator in no field.
                    inner.kind().contains("parenthesized").then(|| inner.named_child(0)).flatten()
                }) {
                    inner = next;
                }
                // `int &name()`: a reference has its declarator in no field either.
                if inner.kind() == "reference_declarator" {
                    inner = inner.named_child(0)?;
                    while let Some(next) = inner.child_by_field_name("declarator") {
                        inner = next;
                    }
                }
                inner
            }
        };
        let text = self.text_of(named);
        (text.len() <= 4 * MAX_NAME_BYTES && !text.contains(['\n', '('])).then(|| text.to_owned())
    }

    /// Records a call by the text of the callee: `a::b`, `x.b`, `b`, `mod.a.b`.
    fn call(&mut self, callee: Node<'_>, at: usize) {
        let text = self.end_of(callee);
        let line = text.rsplit('\n').next().unwrap_or(text).trim().replace("->", ".");
        // `iter.collect::<Vec<_>>`: the name is before the generic part.
        let generic = line.rfind("::<").or_else(|| {
            let after = line.rfind(')').unwrap_or(0);
            line[after..].find('<').map(|at| after + at)
        });
        let line = if line.ends_with('>') { &line[..generic.unwrap_or(line.len())] } else { &line };
        // `Vec::<u8>::new`, `open(path).read`: the name is after it.
        let end = line.rsplit(['>', ')', ']', '}']).next().unwrap_or_default();
        let (before, name, kind) = match (end.rfind("::"), end.rfind('.')) {
            (Some(path), dot) if dot.is_none_or(|dot| dot < path) => {
                (&end[..path], &end[path + 2..], ReferenceKind::Call)
            }
            (_, Some(dot)) => (&end[..dot], &end[dot + 1..], ReferenceKind::MethodCall),
            _ => ("", end, ReferenceKind::Call),
        };
        // The text before the name was cut off, so the type of the receiver is unknown.
        let kind = if before.is_empty() && name.len() != callee.byte_range().len() {
            ReferenceKind::MethodCall
        } else {
            kind
        };
        self.mention(kind, name, before, at);
    }

    fn mention(&mut self, kind: ReferenceKind, name: &str, before: &str, at: usize) {
        let before = before.trim_end_matches(['?', '!']);
        let is_path = before.chars().all(|c| c.is_alphanumeric() || "_$:.<>, ".contains(c));
        let before = if is_path { before } else { "" };
        let last = last_part(before);
        let own_type = before == last && self.grammar.language.own_type.contains(&last);
        let (kind, qualifier) = if own_type {
            // The qualifier is the type that encloses the method.
            let owner = self.enclosing.last().and_then(|enclosing| enclosing.owner);
            let name = owner.and_then(|owner| self.enclosing.get(owner)).map(|owner| owner.name.clone());
            (ReferenceKind::Call, name.unwrap_or_default())
        } else if kind == ReferenceKind::MethodCall && before != last {
            // A field of a value: its name says little about its type.
            (kind, String::new())
        } else {
            (kind, type_name(last))
        };
        let is_general = matches!(qualifier.as_str(), "crate" | "super" | "self");
        let qualifier = if is_general { String::new() } else { qualifier };
        let symbol = self.innermost_symbol();
        self.push_mention(kind, name.to_owned(), qualifier, symbol, at);
    }

    fn push_mention(
        &mut self,
        kind: ReferenceKind,
        name: String,
        qualifier: String,
        symbol: Option<usize>,
        at: usize,
    ) {
        let is_name = !name.is_empty()
            && name.len() <= MAX_NAME_BYTES
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'));
        if is_name && qualifier.len() <= MAX_NAME_BYTES && self.outline.mentions.len() < MAX_MENTIONS {
            self.outline.mentions.push(Mention { kind, name, qualifier, symbol, at });
        }
    }

    /// Adds a comment or attribute to the run above the next node. Returns whether it begins a run.
    fn extend_prefix(&mut self, node: Node<'_>, is_comment: bool) -> bool {
        let comment = if is_comment { clean_comment(self.text_of(node)) } else { String::new() };
        let end = node.end_position();
        // A line comment may include its newline.
        let end_row =
            if end.column == 0 && end.row > node.start_position().row { end.row - 1 } else { end.row };
        match &mut self.prefix {
            Some(run) if run.end_row + 1 >= node.start_position().row => {
                run.end_row = end_row;
                run.is_closed |= is_comment && comment.is_empty() && !run.comment.is_empty();
                if !run.is_closed
                    && run.comment.chars().count() < MAX_DESCRIPTION_CHARS
                    && !comment.is_empty()
                {
                    if !run.comment.is_empty() {
                        run.comment.push(' ');
                    }
                    run.comment.push_str(&comment);
                    run.comment = shorten(&run.comment, MAX_DESCRIPTION_CHARS);
                }
                false
            }
            run => {
                *run = Some(PrefixRun { start: node.start_byte(), end_row, comment, is_closed: false });
                true
            }
        }
    }

    /// Records that the text can be cut before this node, if it is the first one of its line.
    fn note_cut_point(&mut self, node: Node<'_>, depth: u32) {
        let Some(line) = self.lines.line_that_begins_with(node.start_position().row, node.start_byte())
        else {
            return;
        };
        let is_after = self.outline.cuts.last().is_none_or(|last| last.at < line);
        if is_after && self.outline.cuts.len() < MAX_CUTS {
            self.outline.cuts.push(CutPoint { at: line, depth: u8::try_from(depth).unwrap_or(u8::MAX) });
        }
    }

    fn signature(&self, node: Node<'_>) -> String {
        let end = node.child_by_field_name("body").map_or(node.end_byte(), |body| body.start_byte());
        let text =
            start_within(self.text.get(node.start_byte()..end).unwrap_or_default(), MAX_SIGNATURE_BYTES);
        let text = text.split(['{', ';']).next().unwrap_or(text);
        shorten(&text.split_whitespace().collect::<Vec<_>>().join(" "), MAX_SIGNATURE_CHARS)
    }

    fn docstring(&self, node: Node<'_>) -> Option<String> {
        let first = node.child_by_field_name("body")?.named_child(0)?;
        let string = if first.kind() == "string" { first } else { first.named_child(0)? };
        if string.kind() != "string" {
            return None;
        }
        let text = first_paragraph(string_content(self.text_of(string)));
        (!text.is_empty()).then_some(text)
    }

    fn text_of(&self, node: Node<'_>) -> &'a str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// The beginning of a node's text.
    fn start_of(&self, node: Node<'_>) -> &'a str {
        start_within(self.text_of(node), MAX_CALLEE_BYTES)
    }

    /// The end of a node's text.
    fn end_of(&self, node: Node<'_>) -> &'a str {
        let text = self.text_of(node);
        let mut start = text.len().saturating_sub(MAX_CALLEE_BYTES);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        &text[start..]
    }
}
