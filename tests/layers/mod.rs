//! The layers of the source. The tests check that every folder imports only the folders that its row of
//! the table allows, contains no word that `WORDS` or `TEXTS` rejects, and has no file that is too long.
//! Tests inside the source are exempt.

mod circles;
mod source;
mod words;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use source::{SourceToken, pieces, submodules_of, tokens, without_tests};

/// A folder of `src`, its layer, and the folders that it may import.
const LAYERS: &[(&str, u8, &[&str])] = &[
    ("types", 0, &[]),
    // Crash points. They do nothing in a release; in tests they may end the process.
    ("crash", 0, &[]),
    // Locks.
    ("sync", 0, &[]),
    ("proc", 1, &["sync"]),
    // Changes of folders.
    ("watch", 1, &[]),
    ("api", 1, &["types"]),
    ("engine", 1, &["types"]),
    ("judge", 1, &["types"]),
    ("policy", 2, &["types", "crash", "sync", "judge"]),
    ("store", 2, &["types", "crash", "sync"]),
    ("model", 2, &["types", "crash", "sync", "proc"]),
    ("extensions", 2, &["types", "crash", "watch"]),
    ("hooks", 2, &["types", "crash", "proc"]),
    ("mcp", 2, &["types", "crash", "sync", "proc"]),
    // It uses models, embeddings and files through its own traits.
    ("knowledge", 2, &["types", "crash", "sync"]),
    ("tools", 3, &["types", "crash", "sync", "proc", "extensions", "mcp", "knowledge"]),
    ("workspace", 2, &["types", "crash", "sync", "proc", "judge"]),
    // `proc` to find the parent processes of a peer.
    ("transport", 2, &["sync", "proc"]),
    // Compiled only with the feature `otel`.
    ("otel", 2, &["types"]),
    (
        "session",
        4,
        &[
            "types",
            "crash",
            "sync",
            "engine",
            "judge",
            "policy",
            "store",
            "model",
            "extensions",
            "hooks",
            "mcp",
            "tools",
            "workspace",
        ],
    ),
    // `transport` for the connection and to send the events of subscriptions.
    ("rpc", 6, &["types", "crash", "sync", "api", "knowledge", "session", "transport"]),
    // `transport` for the framing that both ends share, and for the rules of a private folder.
    ("client", 6, &["types", "sync", "api", "transport"]),
    (
        "daemon",
        7,
        &[
            "types",
            "crash",
            "sync",
            "proc",
            "api",
            "engine",
            "judge",
            "policy",
            "store",
            "hooks",
            "model",
            "mcp",
            "knowledge",
            "tools",
            "workspace",
            "transport",
            "otel",
            "watch",
            "session",
            "rpc",
        ],
    ),
    // Not in a release: entry points of the fuzz targets.
    ("fuzzing", 8, &["types", "engine", "judge", "model", "tools", "transport", "client"]),
];

/// A program and the one folder that it calls.
const PROGRAMS: &[(&str, &str)] = &[("agentd", "daemon"), ("agentctl", "client")];

/// Folders and words that their code must not contain. A word is a path or a macro, found whole.
const WORDS: &[(&[&str], &[&str])] = &[
    (
        &["types", "api", "engine", "judge"],
        &[
            "tokio",
            "sqlx",
            "rusqlite",
            "jsonrpsee",
            "reqwest",
            "tracing",
            "SystemTime",
            "Instant",
            "std::env",
            "std::process",
        ],
    ),
    (&["types", "engine", "judge"], &["std::fs"]),
    (&["engine", "judge"], &["async", "await", "Seed::random", "Uuid", "uuid"]),
    // The engine's state is not stored: only events are.
    (&["engine"], &["Serialize", "Deserialize"]),
    // One writer: only a session's task appends to its journal.
    (&["rpc", "daemon"], &["JournalWriter", "journal_writer", "Append"]),
    (&["store", "model", "tools", "workspace", "session", "client", "daemon", "knowledge"], &["jsonrpsee"]),
    (
        &["model", "tools", "workspace", "transport", "session", "rpc", "client", "daemon", "bin"],
        &["sqlx", "rusqlite"],
    ),
    (
        &["store", "tools", "workspace", "transport", "session", "rpc", "client", "daemon", "bin"],
        &["reqwest"],
    ),
    (
        &[
            "types",
            "crash",
            "api",
            "engine",
            "judge",
            "store",
            "model",
            "tools",
            "workspace",
            "transport",
            "session",
            "rpc",
        ],
        &["println!", "print!", "eprintln!", "eprint!", "dbg!"],
    ),
    (
        &["store", "model", "tools", "workspace", "transport", "session", "rpc", "knowledge"],
        &["SystemTime::now"],
    ),
    // The store of an index is the one place with SQL; see WORD_EXCEPTIONS.
    (&["knowledge"], &["sqlx", "rusqlite", "reqwest", "std::fs"]),
];

/// Files below a folder that may use a word in spite of [`WORDS`].
const WORD_EXCEPTIONS: &[(&str, &str)] = &[
    // WebFetch reads web pages with the same HTTP client as `model`, to avoid a second client.
    ("tools/web/", "reqwest"),
    // The webhook posts pending requests. The lower layers do not know the receivers of notifications.
    ("daemon/webhook.rs", "reqwest"),
    // One SQLite file per workspace.
    ("knowledge/store/", "rusqlite"),
    ("knowledge/store/", "std::fs"),
    // It requests vectors over HTTP, and reads static vectors from a folder.
    ("knowledge/embed/", "reqwest"),
    ("knowledge/embed/", "std::fs"),
];

/// Folders and words that their texts must not contain, in upper or lower case.
const TEXTS: &[(&[&str], &[&str])] = &[
    (
        &[
            "types",
            "api",
            "engine",
            "judge",
            "model",
            "tools",
            "workspace",
            "transport",
            "session",
            "rpc",
            "client",
            "daemon",
            "bin",
        ],
        &["select * from", "insert into", "delete from", "create table", "pragma ", "begin immediate"],
    ),
    // Only the code that calls models may name providers.
    (&["rpc", "session", "store", "transport", "knowledge"], &["anthropic", "openai"]),
];

/// Maximum number of lines of a file.
const MAX_FILE_LINES: usize = 800;

/// Files that may be longer, with their own limit: one enum cannot be split.
const LONG_FILES: &[(&str, usize)] = &[("types/event/variants.rs", 1_000)];

#[test]
fn folder_imports_follow_layer_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    read(&root, &root, &mut files);
    assert!(files.len() > 50, "{} files were read", files.len());
    let folders: BTreeSet<&str> =
        files.iter().filter_map(|(path, _)| path.split_once('/').map(|(folder, _)| folder)).collect();
    for (folder, ..) in LAYERS {
        assert!(folders.contains(folder), "the table names {folder}, which is not there");
    }
    let breaches = breaches(&files);
    assert!(breaches.is_empty(), "{} breaches:\n{}", breaches.len(), breaches.join("\n"));
}

/// All Rust files below a folder: path from `root` with slashes, and text.
fn read(root: &Path, folder: &Path, files: &mut Vec<(String, String)>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            read(root, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/");
            files.push((name, fs::read_to_string(&path).expect("text")));
        }
    }
}

/// Every breach in these files, as `file: what`.
fn breaches(files: &[(String, String)]) -> Vec<String> {
    let sources: Vec<SourceFile> = files.iter().map(|(path, text)| SourceFile::read(path, text)).collect();
    let tests: Vec<&String> = sources.iter().flat_map(|source| &source.tests).collect();
    let mut found = Vec::new();
    for source in &sources {
        let lines = source.lines;
        let own = LONG_FILES.iter().find(|(path, _)| *path == source.path);
        let limit = own.map_or(MAX_FILE_LINES, |(_, limit)| *limit);
        if lines > limit {
            found.push(format!("{}: {lines} lines; split it by concept below {limit}", source.path));
        }
        let is_test = |prefix: &&String| {
            source
                .path
                .strip_prefix(prefix.as_str())
                .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        if !tests.iter().any(is_test) {
            found.extend(source.breaches().into_iter().map(|what| format!("{}: {what}", source.path)));
        }
    }
    found
}

/// One file, split into code and texts.
struct SourceFile {
    path: String,
    lines: usize,
    /// Identifiers and marks, without comments, texts and inner test modules.
    code: Vec<String>,
    /// Texts of the same parts.
    texts: Vec<String>,
    /// Paths (without `.rs`) of test modules in their own files.
    tests: Vec<String>,
}

impl SourceFile {
    fn read(path: &str, text: &str) -> Self {
        let mut tests = Vec::new();
        let pieces = without_tests(pieces(text), &submodules_of(path), &mut tests);
        let (mut code, mut texts) = (Vec::new(), Vec::new());
        for piece in pieces {
            match piece {
                SourceToken::Code(token) => code.push(token),
                SourceToken::Text(text) => texts.push(text),
            }
        }
        Self { path: path.into(), lines: text.lines().count(), code, texts, tests }
    }

    fn breaches(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.path == "lib.rs" {
            return found;
        }
        let Some((folder, _)) = self.path.split_once('/') else {
            return vec!["is in no folder, and so in no layer".into()];
        };
        let allowed: Vec<&str> = if folder == "bin" {
            let name = self.path.trim_start_matches("bin/").trim_end_matches(".rs");
            match PROGRAMS.iter().find(|(program, _)| *program == name) {
                Some((_, called)) => vec![*called],
                None => return vec![format!("the program {name} is not in the table")],
            }
        } else {
            match LAYERS.iter().find(|(known, ..)| *known == folder) {
                Some((.., allowed)) => allowed.to_vec(),
                None => return vec![format!("the folder {folder} has no layer")],
            }
        };
        for name in self.imports() {
            if name != folder && !allowed.contains(&name.as_str()) {
                found.push(format!("{folder} must not know {name}"));
            }
        }
        for (folders, words) in WORDS {
            let is_excepted = |word: &&&str| {
                WORD_EXCEPTIONS
                    .iter()
                    .any(|(place, excepted)| self.path.starts_with(place) && excepted == *word)
            };
            for word in words.iter().filter(|_| folders.contains(&folder)).filter(|word| !is_excepted(word)) {
                if self.contains(word) {
                    found.push(format!("{folder} must not contain `{word}`"));
                }
            }
        }
        for (folders, words) in TEXTS {
            for word in words.iter().filter(|_| folders.contains(&folder)) {
                if self.texts.iter().any(|text| text.to_lowercase().contains(word)) {
                    found.push(format!("a text in {folder} must not contain {word:?}"));
                }
            }
        }
        found
    }

    /// Names of the crate's folders that the code mentions.
    fn imports(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        // `engine/properties/simulator.rs` is three deep: three times `super` is the crate.
        let depth = submodules_of(&self.path).split('/').count();
        let mut supers = 0;
        for (at, token) in self.code.iter().enumerate() {
            supers = match token.as_str() {
                "super" => supers + 1,
                "::" => supers,
                _ => 0,
            };
            let starts = token == "crate" || token == "agentd" || (token == "super" && supers == depth);
            if starts && self.code.get(at + 1).is_some_and(|next| next == "::") {
                self.names_at(at + 2, &mut names);
            }
        }
        names
    }

    /// The first names of a path or of every path of a group that begins here.
    fn names_at(&self, at: usize, names: &mut BTreeSet<String>) {
        let Some(token) = self.code.get(at) else { return };
        if token != "{" {
            names.insert(token.clone());
            return;
        }
        let mut inner = 1;
        let mut is_first = true;
        for token in &self.code[at + 1..] {
            match token.as_str() {
                "{" => inner += 1,
                "}" => inner -= 1,
                "," if inner == 1 => is_first = true,
                name if is_first => {
                    names.insert(name.into());
                    is_first = false;
                }
                _ => {}
            }
            if inner == 0 {
                return;
            }
        }
    }

    fn contains(&self, word: &str) -> bool {
        let wanted: Vec<String> = tokens(word);
        self.code.windows(wanted.len()).any(|window| window == wanted)
    }
}

/// Breaches of one file, without its name.
fn violations(path: &str, text: &str) -> Vec<String> {
    let found = breaches(&[(path.into(), text.into())]);
    found.into_iter().map(|what| what.replace(&format!("{path}: "), "")).collect()
}

#[test]
fn forbidden_imports_are_reported_by_layer_check() {
    let cases: &[(&str, &str, &str)] = &[
        ("engine/a.rs", "use crate::store::Store;", "engine must not know store"),
        ("store/a.rs", "fn f() { crate::model::x() }", "store must not know model"),
        ("tools/a.rs", "use crate::{types::ids::Seq, model::{Model, api}};", "tools must not know model"),
        ("types/a.rs", "use crate::{\n    // why\n    api,\n};", "types must not know api"),
        ("session/a/b.rs", "use super::super::super::api::Fault;", "session must not know api"),
        ("session/mod.rs", "pub use super::rpc::x;", "session must not know rpc"),
        ("transport/a.rs", "use crate::types::ids::Seq;", "transport must not know types"),
        ("client/a.rs", "use crate::session::Registry;", "client must not know session"),
        ("daemon/a.rs", "use crate::client::run;", "daemon must not know client"),
        ("rpc/a.rs", "use crate::engine::BusyPolicy;", "rpc must not know engine"),
        ("bin/agentctl.rs", "fn main() { agentd::daemon::run() }", "bin must not know daemon"),
        ("bin/other.rs", "fn main() {}", "the program other is not in the table"),
        ("utils/a.rs", "", "the folder utils has no layer"),
        ("stray.rs", "", "is in no folder, and so in no layer"),
        ("types/a.rs", "let at = std::time::SystemTime::now();", "types must not contain `SystemTime`"),
        (
            "session/a.rs",
            "let at = std::time::SystemTime::now();",
            "session must not contain `SystemTime::now`",
        ),
        ("engine/a.rs", "pub async fn f() {}", "engine must not contain `async`"),
        ("engine/a.rs", "use std::fs;", "engine must not contain `std::fs`"),
        ("engine/a.rs", "#[derive(Clone, Serialize)] struct S;", "engine must not contain `Serialize`"),
        ("engine/a.rs", "let seed = Seed::random();", "engine must not contain `Seed::random`"),
        ("session/a.rs", "sqlx::query(x)", "session must not contain `sqlx`"),
        ("rpc/a.rs", "f(r#\"Select * From event\"#)", "a text in rpc must not contain \"select * from\""),
        ("session/a.rs", "if name == \"Anthropic\" {}", "a text in session must not contain \"anthropic\""),
        ("tools/a.rs", "println!(\"x\");", "tools must not contain `println!`"),
        (
            "engine/a.rs",
            "#[cfg(test)] mod tests { use crate::store::Store; } use crate::rpc::x;",
            "engine must not know rpc",
        ),
        ("engine/a.rs", "#[cfg(test)] mod properties; use crate::rpc::x;", "engine must not know rpc"),
        ("engine/a.rs", "fn f<'a>(x: &'a str) { let q = '\"'; crate::rpc::f() }", "engine must not know rpc"),
    ];
    for (path, text, expected) in cases {
        assert_eq!(violations(path, text), [*expected], "{path}: {text}");
    }
    let long = "// a line\n".repeat(MAX_FILE_LINES + 1);
    assert_eq!(violations("rpc/long.rs", &long), ["801 lines; split it by concept below 800"]);
}

#[test]
fn allowed_text_is_not_reported_as_breach() {
    let cases = [
        ("engine/a.rs", "//! See crate::store. async, tokio, std::fs.\nuse crate::types::ids::Seq;"),
        ("engine/a.rs", "/* crate::store /* nested */ async */ use super::super::types::ids::Seq;"),
        ("engine/a.rs", "const HINT: &str = \"use crate::store, or std::fs, or async\";"),
        (
            "engine/a.rs",
            "#[cfg(test)]\nmod tests {\n    use crate::store::Store;\n    async fn f() { {} }\n}",
        ),
        ("engine/a.rs", "use super::plan::Plan; use self::asynchronous; let tokio_like = 1;"),
        ("engine/a.rs", "use crate::engine::{plan::{Draft, store}, words};"),
        ("engine/b/c.rs", "use super::super::plan::Draft;"),
        ("session/a.rs", "use crate::{engine::{Input, api}, store::Store};"),
        ("store/a.rs", "sqlx::query(\"select * from event\")"),
        ("client/a.rs", "println!(\"select a session from the list\");"),
        ("bin/agentd.rs", "fn main() { agentd::daemon::run() }"),
        ("lib.rs", "pub mod types;"),
    ];
    for (path, text) in cases {
        assert_eq!(violations(path, text), [""; 0], "{path}: {text}");
    }
    // Test modules in their own files, in their own folders, and under another name.
    let files = [
        ("engine/mod.rs", "#[cfg(test)]\npub(crate) mod properties;"),
        ("engine/properties.rs", "use crate::session::x; mod deep;"),
        ("engine/properties/deep.rs", "use crate::session::x;"),
        ("client/args.rs", "#[cfg(test)]\n#[path = \"args_tests.rs\"]\nmod tests;"),
        ("client/args_tests.rs", "use crate::session::x;"),
        ("session/follow.rs", "#[cfg(test)]\nmod tests;"),
        ("session/follow/tests.rs", "use crate::daemon::x;"),
    ];
    let files: Vec<_> = files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
    assert_eq!(breaches(&files), [""; 0]);
}

#[test]
fn layer_table_allows_lower_layers_only() {
    for (folder, layer, allowed) in LAYERS {
        for other in *allowed {
            let below = LAYERS.iter().find(|(known, ..)| known == other).map(|(_, below, _)| below);
            assert!(
                below.is_some_and(|below| below < layer),
                "{folder} may import lower layers only, not {other}"
            );
        }
    }
}
