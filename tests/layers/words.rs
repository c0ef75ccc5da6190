//! Words that readers would have to decode: the code names things with the terms of the glossary in
//! ARCHITECTURE.md. The test reads identifiers, comments and texts of `src`, `tests`, `benches`, the fuzz targets and
//! `build.rs`.

use std::fs;
use std::path::Path;

/// A word that must not occur, and what to write instead.
const REJECTED: &[(&str, &str)] = &[
    ("house", "what it holds, for example Shared or TestDaemon"),
    ("floor", "layer"),
    ("floors", "layers"),
    ("law", "property, or effective rules"),
    ("laws", "properties, or effective rules"),
    ("office", "context"),
    ("herald", "notifier"),
    ("tidings", "event"),
    ("vigil", "pending requests"),
    ("mourner", "what it waits for"),
    ("obey", "follow"),
    ("obeys", "follows"),
    ("obeyed", "followed"),
    ("veil", "redaction"),
    ("veiled", "redacted"),
    ("rung", "requested"),
    ("stand-in", "placeholder, or fallback"),
    ("stand-ins", "placeholders, or fallbacks"),
    ("anew", "again"),
    ("beside", "next to, or in parallel"),
    ("nobody", "no user, no client, no process"),
    ("somebody", "a user, a client, a process"),
    ("whoever", "each client that"),
];

/// The folders that the test reads, and the number of files that each has at least.
const FOLDERS: &[(&str, usize)] = &[("src", 20), ("tests", 20), ("benches", 20), ("fuzz/targets", 10)];

/// Single files that the test reads.
const FILES: &[&str] = &["build.rs", "src/model/catalog/known.toml"];

/// Lines that may contain a rejected word: a part of the line, and the word.
const ALLOWED: &[(&str, &str)] = &[
    ("floor_char_boundary", "floor"),
    (".floor()", "floor"),
    // Old journals have this word.
    ("alias = \"nobody\"", "nobody"),
    ("json!(\"nobody\")", "nobody"),
    // The Unix user.
    ("as_nobody", "nobody"),
];

/// Every rejected word of a text, with its line number.
fn rejected(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        for word in words(line) {
            if let Some((word, better)) = REJECTED.iter().find(|(rejected, _)| *rejected == word) {
                let is_allowed = ALLOWED.iter().any(|(part, allowed)| allowed == word && line.contains(part));
                if !is_allowed {
                    found.push((at + 1, *word, *better));
                }
            }
        }
    }
    found
}

/// The words of a line in lower case. `snake_case` and `CamelCase` names are taken apart; a hyphen stays.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for c in line.chars() {
        let begins_part = c.is_uppercase() && was_lower;
        if begins_part || !(c.is_alphanumeric() || c == '-') {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        }
        if c.is_alphanumeric() || c == '-' {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_numeric();
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

#[test]
fn source_contains_no_word_outside_the_glossary() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for (folder, min_files) in FOLDERS {
        let mut files = Vec::new();
        super::read(&root.join(folder), &root.join(folder), &mut files);
        assert!(files.len() >= *min_files, "{folder}: {} files were read", files.len());
        for (path, text) in files.iter().filter(|(path, _)| path != "layers/words.rs") {
            let in_file = rejected(text).into_iter();
            found.extend(
                in_file.map(|(line, word, better)| format!("{folder}/{path}:{line}: {word}; write {better}")),
            );
        }
    }
    for file in FILES {
        let text = fs::read_to_string(root.join(file)).expect("a file of the repository");
        let in_file = rejected(&text).into_iter();
        found.extend(in_file.map(|(line, word, better)| format!("{file}:{line}: {word}; write {better}")));
    }
    assert!(found.is_empty(), "{} rejected words:\n{}", found.len(), found.join("\n"));
}

#[test]
fn rejected_word_is_found_in_names_comments_and_texts() {
    let check = |line: &str, expected: &[&str]| {
        let words: Vec<&str> = rejected(line).into_iter().map(|(_, word, _)| word).collect();
        assert_eq!(words, expected, "{line}");
    };
    check("let the_house = TestHouse::new(); // a house", &["house", "house", "house"]);
    check("const OBEYED: &str = \"Nobody obeys\";", &["obeyed", "nobody", "obeys"]);
    check("fn clear(text: &str) // a stand-in", &["stand-in"]);
    check("text.floor_char_boundary(3) + (x / 2.0).floor()", &[]);
    check("fn floor(&self) // lawful, outlaw, households", &["floor"]);
    check("#[serde(alias = \"nobody\")]", &[]);
}
