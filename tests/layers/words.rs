//! Rejects words that readers do not understand without explanation. The code uses the terms of the glossary
//! in ARCHITECTURE.md. The tests read identifiers, comments and texts of `src`, `tests`, `benches`, the fuzz
//! targets and `build.rs`.

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

/// The path and the text of every file that the tests read.
fn checked_files() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut checked = Vec::new();
    for (folder, min_files) in FOLDERS {
        let mut files = Vec::new();
        super::read(&root.join(folder), &root.join(folder), &mut files);
        assert!(files.len() >= *min_files, "{folder}: {} files were read", files.len());
        checked.extend(files.into_iter().map(|(path, text)| (format!("{folder}/{path}"), text)));
    }
    for file in FILES {
        checked.push((
            (*file).to_owned(),
            fs::read_to_string(root.join(file)).expect("a file of the repository"),
        ));
    }
    checked.retain(|(path, _)| path != "tests/layers/words.rs");
    checked
}

#[test]
fn source_contains_no_word_outside_the_glossary() {
    let found: Vec<String> = checked_files()
        .iter()
        .flat_map(|(path, text)| {
            rejected(text)
                .into_iter()
                .map(move |(line, word, better)| format!("{path}:{line}: {word}; write {better}"))
        })
        .collect();
    assert!(found.is_empty(), "{} rejected words:\n{}", found.len(), found.join("\n"));
}

/// Names that say neither what is limited nor what is done, with the line number of their definition.
fn rejected_names(text: &str) -> Vec<(usize, String)> {
    const FUNCTIONS: &[&str] = &["look", "take", "keep", "told", "said", "of"];
    const CONSTANT_STARTS: &[&str] =
        &["MOST", "LONGEST", "LARGEST", "LEAST", "SHORTEST", "DEEPEST", "PATIENCE"];
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
        for pair in words.windows(2) {
            let is_rejected = match pair[0] {
                "fn" => FUNCTIONS.contains(&pair[1]),
                "const" | "static" => {
                    CONSTANT_STARTS.contains(&pair[1].split('_').next().unwrap_or_default())
                        || pair[1].ends_with("WITHIN")
                }
                _ => false,
            };
            if is_rejected {
                found.push((at + 1, pair[1].to_owned()));
            }
        }
    }
    found
}

#[test]
fn constants_and_functions_have_standard_names() {
    let found: Vec<String> = checked_files()
        .iter()
        .flat_map(|(path, text)| {
            rejected_names(text).into_iter().map(move |(line, name)| format!("{path}:{line}: {name}"))
        })
        .collect();
    assert!(
        found.is_empty(),
        "write MAX_<WHAT>, <WHAT>_TIMEOUT, or a verb with an object:\n{}",
        found.join("\n")
    );
    let names = |line: &str| rejected_names(line).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
    assert_eq!(names("pub(super) const MOST_LINKS: usize = 3;"), ["MOST_LINKS"]);
    assert_eq!(names("const PARK_WITHIN: Duration = MOST;"), ["PARK_WITHIN"]);
    assert_eq!(names("pub async fn take(&mut self)"), ["take"]);
    assert!(names("fn take_head(self) { self.take(3); const MAX_LINKS: u8 = 3; }").is_empty());
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
