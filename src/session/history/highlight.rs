//! Code as HTML, with its words marked by kind. Pure.

use std::sync::OnceLock;

use syntect::parsing::{ParseState, ScopeStack, SyntaxSet};

use crate::history::page::escape;

/// Longer lines have no colours, and neither have the lines after this many in a block. The time that a grammar takes
/// depends on the text.
const MAX_LINE_BYTES: usize = 1_000;
const MAX_COLOURED_LINES: usize = 3_000;

/// The start of a scope's name, and the class of its text. The first row that fits counts.
const CLASSES: &[(&str, &str)] = &[
    ("comment", "c"),
    ("punctuation.definition.comment", "c"),
    ("markup.inserted", "add"),
    ("markup.deleted", "del"),
    ("meta.diff.range", "c"),
    ("string", "s"),
    ("punctuation.definition.string", "s"),
    ("constant", "n"),
    ("keyword.operator", ""),
    ("keyword", "k"),
    ("storage", "k"),
    ("entity.name", "f"),
    ("support.function", "f"),
    ("variable.function", "f"),
];

fn grammars() -> &'static SyntaxSet {
    static GRAMMARS: OnceLock<SyntaxSet> = OnceLock::new();
    GRAMMARS.get_or_init(SyntaxSet::load_defaults_newlines)
}

/// The name of a similar language with a grammar, for languages without one.
fn grammar_name(language: &str) -> &str {
    match language {
        "ts" | "tsx" | "typescript" | "jsx" | "mjs" | "cjs" => "js",
        "shell" | "console" | "shell-session" | "zsh" | "fish" | "docker" | "dockerfile" => "sh",
        "toml" | "ini" | "cfg" | "conf" => "properties",
        "jsonc" | "json5" | "jsonl" => "json",
        "patch" => "diff",
        "kotlin" | "kt" | "swift" => "java",
        "c++" | "cuda" => "cpp",
        other => other,
    }
}

/// The class of the innermost scope that has one.
fn class(stack: &ScopeStack) -> &'static str {
    let of = |name: &str| CLASSES.iter().find(|(start, _)| name.starts_with(start)).map(|(_, class)| *class);
    stack.scopes.iter().rev().find_map(|scope| of(&scope.build_string())).unwrap_or_default()
}

/// The code as HTML, without the element around it. `language` is the first word after the fence. Code in an unknown
/// language has no colours.
pub(super) fn code(language: &str, text: &str) -> String {
    let word = language.split([' ', ',', '{']).next().unwrap_or_default().to_ascii_lowercase();
    let name = grammar_name(&word);
    let grammar = (!name.is_empty()).then(|| grammars().find_syntax_by_token(name)).flatten();
    let mut state = grammar.map(|grammar| (ParseState::new(grammar), ScopeStack::new()));
    let mut out = String::with_capacity(text.len() * 2);
    for (nth, line) in text.split_inclusive('\n').enumerate() {
        if line.len() > MAX_LINE_BYTES || nth >= MAX_COLOURED_LINES {
            state = None;
        }
        match state.as_mut().and_then(|(state, stack)| coloured(state, stack, line)) {
            Some(html) => out.push_str(&html),
            None => {
                state = None;
                out.push_str(&escape(line));
            }
        }
    }
    out
}

fn coloured(state: &mut ParseState, stack: &mut ScopeStack, line: &str) -> Option<String> {
    let mut out = String::new();
    let mut from = 0;
    let mut push = |text: &str, stack: &ScopeStack| match class(stack) {
        _ if text.trim().is_empty() => out.push_str(&escape(text)),
        "" => out.push_str(&escape(text)),
        class => out.push_str(&format!("<span class=\"{class}\">{}</span>", escape(text))),
    };
    for (at, op) in state.parse_line(line, grammars()).ok()? {
        push(line.get(from..at)?, stack);
        from = at;
        stack.apply(&op).ok()?;
    }
    push(line.get(from..)?, stack);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_has_colours_and_stays_escaped() {
        let cases = [
            ("rust", "fn a() {} // <b>\n", "<span class=\"k\">fn</span>"),
            ("python", "def a(): return 'x'\n", "<span class=\"k\">def</span>"),
            ("ts", "const a = 1\n", "<span class=\"k\">const</span>"),
            ("diff", "+new\n-old\n", "class=\"add\""),
            ("sh", "echo \"x\" # c\n", "class=\"s\""),
            ("unknown-language", "a < b\n", "a &lt; b\n"),
            ("", "x\n", "x\n"),
        ];
        for (language, text, part) in cases {
            let html = code(language, text);
            assert!(html.contains(part), "{language}: {html}");
            assert!(!html.contains("<b>"), "{html}");
        }
    }
}
