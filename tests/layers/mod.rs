//! The layers of the source. Manifests say which crates a crate may use. The tests check the rest: folders that share
//! a crate import only what their row of the table allows, a folder contains no word that `WORDS` or `TEXTS` rejects,
//! and no file is too long. Tests inside the source are exempt.

mod circles;
mod source;
mod words;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use source::{SourceToken, pieces, submodules_of, tokens, without_tests};

/// A folder, and the folders of its crate that it may import.
type FolderImports = (&'static str, &'static [&'static str]);

/// Crates with several folders, and the folders of the same crate that each folder may import. What a crate may
/// import of other crates is in its manifest, so the compiler checks it.
const SHARED_CRATES: &[(&str, &[FolderImports])] = &[
    (
        "base",
        &[
            ("charset", &[]),
            ("crash", &[]),
            ("open", &[]),
            ("sync", &[]),
            ("proc", &["sync"]),
            ("test_skip", &[]),
            ("watch", &[]),
        ],
    ),
    (
        "project",
        &[
            ("folders", &[]),
            ("markdown", &[]),
            ("policy", &[]),
            ("git", &[]),
            ("worktree", &["folders", "git"]),
            ("workspace", &["folders", "git", "markdown"]),
            ("extensions", &["folders", "markdown"]),
            ("hooks", &[]),
        ],
    ),
];

/// Folders of the root package.
const ROOT_FOLDERS: &[&str] = &["bin", "fuzzing"];

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
            "sync",
            "proc",
            "watch",
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
    // Interfaces of Linux: a port to another system fills in `base/proc`, `base/open` and `tools/shell`.
    (
        &[
            "types",
            "api",
            "engine",
            "judge",
            "folders",
            "worktree",
            "workspace",
            "extensions",
            "hooks",
            "policy",
            "knowledge",
            "mcp",
            "model",
            "store",
            "tools",
            "transport",
            "session",
            "jobs",
            "rpc",
            "client",
            "daemon",
            "bin",
        ],
        &["openat2", "OpenHow", "O_PATH", "prctl", "PeerCredentials", "SO_PEERPIDFD"],
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
    // The sandbox is an interface of Linux as a whole.
    ("tools/shell/", "openat2"),
    ("tools/shell/", "OpenHow"),
    ("tools/shell/", "O_PATH"),
    ("tools/shell/", "prctl"),
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
    (
        &["workspace", "store", "transport", "rpc", "client", "daemon", "jobs", "mcp"],
        &["/proc/{", "/proc/self"],
    ),
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
    for (name, folders) in SHARED_CRATES {
        for (folder, _) in *folders {
            let prefix = format!("{name}/{folder}/");
            assert!(files.iter().any(|(path, _)| path.starts_with(&prefix)), "there is no folder {prefix}");
        }
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
        if self.path == "lib.rs" || self.path.ends_with("/build.rs") {
            return found;
        }
        let Some((crate_name, _)) = self.path.split_once('/') else {
            return vec!["is in no folder, and so in no crate".into()];
        };
        // In a crate with several folders, the rules are those of the folder.
        let shared = SHARED_CRATES.iter().find(|(name, _)| *name == crate_name);
        let mut folder = crate_name;
        if let Some((_, folders)) = shared {
            let name = self.path.split('/').nth(1).unwrap_or_default();
            match folders.iter().find(|(known, _)| *known == name) {
                Some((known, allowed)) => {
                    folder = known;
                    for import in self.imports("crate") {
                        if import != *known && !allowed.contains(&import.as_str()) {
                            found.push(format!("{known} must not know {import}"));
                        }
                    }
                }
                None if name == "mod.rs" || name == "build.rs" => {}
                None => found.push(format!("the folder {crate_name}/{name} is not in the table")),
            }
        }
        if crate_name == "bin" {
            let name = self.path.trim_start_matches("bin/").trim_end_matches(".rs");
            match PROGRAMS.iter().find(|(program, _)| *program == name) {
                Some((_, called)) => {
                    let others = self.imports("agentd").into_iter().filter(|import| import != called);
                    found.extend(others.map(|import| format!("bin must not know {import}")));
                }
                None => found.push(format!("the program {name} is not in the table")),
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

    /// The first names of the paths that begin with `root`, or with as many `super` as lead to the root of the crate.
    fn imports(&self, root: &str) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        // `base/proc/stat.rs` is two deep in its crate: two times `super` is the crate.
        let depth = submodules_of(&self.path).split('/').count() - 1;
        let mut supers = 0;
        for (at, token) in self.code.iter().enumerate() {
            supers = match token.as_str() {
                "super" => supers + 1,
                "::" => supers,
                _ => 0,
            };
            let starts = token == root || (token == "super" && supers == depth);
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
        ("base/sync/a.rs", "use crate::proc::spawn;", "sync must not know proc"),
        ("base/watch/a.rs", "fn f() { crate::proc::x() }", "watch must not know proc"),
        (
            "project/hooks/a.rs",
            "use crate::{hooks::Hook, policy::{Policy, x}};",
            "hooks must not know policy",
        ),
        ("project/policy/a.rs", "use crate::{\n    // why\n    hooks,\n};", "policy must not know hooks"),
        (
            "project/workspace/a/b.rs",
            "use super::super::super::hooks::Hook;",
            "workspace must not know hooks",
        ),
        ("project/workspace/mod.rs", "pub use super::policy::x;", "workspace must not know policy"),
        ("project/jobs/a.rs", "", "the folder project/jobs is not in the table"),
        ("bin/agentctl.rs", "fn main() { agentd::daemon::run() }", "bin must not know daemon"),
        ("bin/other.rs", "fn main() {}", "the program other is not in the table"),
        ("stray.rs", "", "is in no folder, and so in no crate"),
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
            "base/sync/a.rs",
            "#[cfg(test)] mod tests { use crate::watch::x; } use crate::proc::x;",
            "sync must not know proc",
        ),
        ("base/sync/a.rs", "#[cfg(test)] mod properties; use crate::proc::x;", "sync must not know proc"),
        (
            "base/sync/a.rs",
            "fn f<'a>(x: &'a str) { let q = '\"'; crate::proc::f() }",
            "sync must not know proc",
        ),
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
        ("engine/a.rs", "//! See store. async, tokio, std::fs.\nuse types::ids::Seq;"),
        ("base/sync/a.rs", "/* crate::proc /* nested */ async */ use super::super::sync::lock;"),
        ("engine/a.rs", "const HINT: &str = \"use store, or std::fs, or async\";"),
        ("base/sync/a.rs", "#[cfg(test)]\nmod tests {\n    use crate::proc::x;\n    async fn f() { {} }\n}"),
        ("engine/a.rs", "use super::plan::Plan; use self::asynchronous; let tokio_like = 1;"),
        ("base/proc/a.rs", "use crate::proc::{plan::{Draft, store}, words}; use crate::sync::lock;"),
        ("base/proc/c.rs", "use super::plan::Draft;"),
        ("base/mod.rs", "pub mod sync;"),
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
        ("base/sync/mod.rs", "#[cfg(test)]\npub(crate) mod properties;"),
        ("base/sync/properties.rs", "use crate::proc::x; mod deep;"),
        ("base/sync/properties/deep.rs", "use crate::proc::x;"),
        ("project/hooks/args.rs", "#[cfg(test)]\n#[path = \"args_tests.rs\"]\nmod tests;"),
        ("project/hooks/args_tests.rs", "use crate::policy::x;"),
        ("base/watch/follow.rs", "#[cfg(test)]\nmod tests;"),
        ("base/watch/follow/tests.rs", "use crate::proc::x;"),
    ];
    let files: Vec<_> = files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
    assert_eq!(breaches(&files), [""; 0]);
}

#[test]
fn every_crate_folder_is_member_of_workspace() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in fs::read_dir(&root).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if !path.is_dir() || ROOT_FOLDERS.contains(&name.as_str()) {
            continue;
        }
        let manifest = fs::read_to_string(path.join("Cargo.toml")).unwrap_or_default();
        assert!(manifest.contains(&format!("name = \"{name}\"")), "src/{name} has no manifest with its name");
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "src/{name} does not use the lints of the workspace"
        );
    }
}

/// A call names its method by a type, so that the compiler ties the parameters and the reply to it.
#[test]
fn client_names_methods_by_type_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    read(&root, &root.join("client"), &mut files);
    let sources: Vec<SourceFile> = files.iter().map(|(path, text)| SourceFile::read(path, text)).collect();
    let tests: Vec<&String> = sources.iter().flat_map(|source| &source.tests).collect();
    let is_test = |path: &str| tests.iter().any(|test| path.starts_with(test.as_str()));
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| !is_test(&source.path)) {
        let names = source.texts.iter().filter(|text| agentd::api::methods::find(text).is_some());
        found.extend(names.map(|name| format!("{}: {name:?}", source.path)));
    }
    assert!(found.is_empty(), "write methods::NAMESPACE::TYPE instead:\n{}", found.join("\n"));
}

/// A name that no file has would make its rules say nothing.
#[test]
fn rules_name_folders_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let shared: Vec<&str> =
        SHARED_CRATES.iter().flat_map(|(_, folders)| *folders).map(|(name, _)| *name).collect();
    let named = WORDS.iter().map(|(folders, _)| folders).chain(TEXTS.iter().map(|(folders, _)| folders));
    for folder in named.copied().flatten() {
        let is_crate = root.join(folder).is_dir() && !SHARED_CRATES.iter().any(|(name, _)| name == folder);
        assert!(is_crate || shared.contains(folder), "there is no folder {folder}");
    }
}

/// Crash points and other switches for tests exist in builds with debug assertions only.
#[test]
fn no_profile_of_releases_has_debug_assertions() {
    let manifest =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).expect("the manifest");
    assert!(!manifest.contains("debug-assertions"), "a release would have crash points");
}
