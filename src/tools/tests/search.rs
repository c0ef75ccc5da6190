//! Tests of Glob, Grep and LS.

use std::time::{Duration, SystemTime};

use super::*;

fn search_fixture() -> ToolFixture {
    let fixture = ToolFixture::new();
    fixture.write_file(".gitignore", "target/\n*.log\n");
    fixture.write_file("src/main.rs", "fn main() {\n    println!(\"Hello\");\n}\n");
    fixture.write_file("src/lib/mod.rs", "pub fn hello() {}\n// one\n// two\n// three\n");
    fixture.write_file("docs/a.md", "hello docs\n");
    fixture.write_file("target/out.rs", "fn hello() {}\n");
    fixture.write_file("x.log", "hello log\n");
    fixture.write_file(".hidden/h.rs", "fn hello() {}\n");
    fixture.write_file("server.pem", "hello key\n");
    fixture.write_file("bin", b"hello\0binary\n");
    // Modification times in a known order: later entries of this list are newer.
    for (age, name) in ["docs/a.md", "src/lib/mod.rs", "src/main.rs"].iter().rev().enumerate() {
        let file = std::fs::File::options().write(true).open(fixture.path(name)).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_000 - 100 * age as u64);
        file.set_modified(time).unwrap();
    }
    fixture
}

#[tokio::test]
async fn glob_returns_files_newest_first() {
    let mut fixture = search_fixture();
    let absolute = format!("{}/src/*.rs", fixture.session_context.workspace.display());
    for (input, expected) in [
        (json!({"pattern": "**/*.rs"}), "src/main.rs\nsrc/lib/mod.rs"),
        (json!({"pattern": "*.rs"}), "src/main.rs\nsrc/lib/mod.rs"),
        (json!({"pattern": "src/*.rs"}), "src/main.rs"),
        (json!({"pattern": "*.rs", "path": "src/lib"}), "src/lib/mod.rs"),
        (json!({"pattern": "lib/*.rs", "path": "src"}), "src/lib/mod.rs"),
        (json!({"pattern": absolute}), "src/main.rs"),
        (json!({"pattern": "**/*.{md,txt}"}), "docs/a.md"),
        (json!({"pattern": ".hidden/*.rs"}), ".hidden/h.rs"),
        (json!({"pattern": "target/**/*.rs"}), "target/out.rs"),
        (json!({"pattern": "*.zzz"}), "No files match."),
    ] {
        let outcome = fixture.run("Glob", input.clone()).await;
        assert_eq!(completed(&outcome), expected, "{input}");
    }
    failed(&fixture.run("Glob", json!({"pattern": "*", "path": "nowhere"})).await, "file_not_found");
}

#[tokio::test]
async fn names_with_brackets_are_found() {
    let mut fixture = ToolFixture::new();
    for name in [
        "app/[slug]/page.tsx",
        "app/[...all]/page.tsx",
        "app/(group)/page.tsx",
        "app/{a}/page.tsx",
        "app/s/page.tsx",
    ] {
        fixture.write_file(name, "hello\n");
    }
    fixture.write_file("[id.ts", "hello\n");
    for (input, expected) in [
        (json!({"pattern": "app/[slug]/page.tsx"}), &["app/[slug]/page.tsx", "app/s/page.tsx"][..]),
        (json!({"pattern": "app/[slug]/*.{ts,tsx}"}), &["app/[slug]/page.tsx", "app/s/page.tsx"]),
        (json!({"pattern": "**/[...all]/**"}), &["app/[...all]/page.tsx"]),
        (json!({"pattern": "app/(group)/*"}), &["app/(group)/page.tsx"]),
        (json!({"pattern": "app/{a}/*"}), &["app/{a}/page.tsx"]),
        (json!({"pattern": "*", "path": "app/[slug]"}), &["app/[slug]/page.tsx"]),
        (json!({"pattern": "[id.ts"}), &["[id.ts"]),
    ] {
        let outcome = fixture.run("Glob", input.clone()).await;
        let mut found: Vec<&str> = completed(&outcome).lines().collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{input}");
    }
    for (input, expected) in [
        (json!({"pattern": "hello", "path": "app/[slug]"}), &["app/[slug]/page.tsx"][..]),
        (json!({"pattern": "hello", "path": "app/[slug]/page.tsx"}), &["app/[slug]/page.tsx"]),
        (json!({"pattern": "hello", "glob": "app/[...all]/**"}), &["app/[...all]/page.tsx"]),
        (json!({"pattern": "hello", "glob": "app/{a}/*.{ts,tsx}"}), &["app/{a}/page.tsx"]),
        (json!({"pattern": "hello", "glob": "[id.ts"}), &["[id.ts"]),
    ] {
        let outcome = fixture.run("Grep", input.clone()).await;
        let text = completed(&outcome);
        let mut found: Vec<&str> = text.lines().filter(|line| line.contains(".ts")).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{input}: {text}");
    }
}

#[tokio::test]
async fn every_tool_is_named_by_a_rule() {
    let fixture = ToolFixture::new();
    for tool in fixture.tools.definitions().iter() {
        assert_eq!(judge::Rules::parse::<&str>(&[], &[], &[&tool.name]).unwrap().deny[0].as_str(), tool.name);
        let other_case = tool.name.to_lowercase();
        assert_eq!(other_case.parse::<judge::Rule>().unwrap().as_str(), tool.name);
    }
    assert!("ToolSearch".parse::<judge::Rule>().is_ok());
}

#[tokio::test]
async fn glob_is_judged_by_resolved_search_folder() {
    let mut fixture = search_fixture();
    for (pattern, inside) in [("../*", false), ("/etc/*.conf", false), ("src/*.rs", true), ("~/*", false)] {
        let prepared = fixture.prepare("Glob", json!({"pattern": pattern})).await.unwrap();
        match prepared.subject {
            Subject::Read { path } => assert_eq!(path.in_workspace, inside, "{pattern}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn glob_returns_at_most_hundred_files() {
    let mut fixture = ToolFixture::new();
    for n in 0..120 {
        fixture.write_file(&format!("f{n}.txt"), "");
    }
    let outcome = fixture.run("Glob", json!({"pattern": "*.txt"})).await;
    let text = completed(&outcome);
    assert_eq!(text.lines().count(), 101);
    assert!(text.ends_with("(the 100 newest of 120 files; narrow the pattern to see others)"));
}

#[tokio::test]
async fn grep_returns_files_lines_or_counts() {
    let mut fixture = search_fixture();
    let secret = "\n(1 files that likely hold secrets were not searched; give the file itself as path)";
    for (input, expected) in [
        (json!({"pattern": "hello"}), format!("docs/a.md\nsrc/lib/mod.rs{secret}")),
        (json!({"pattern": "HELLO", "-i": true, "type": "rust"}), "src/lib/mod.rs\nsrc/main.rs".into()),
        (
            json!({"pattern": "hello", "glob": "*.rs", "output_mode": "content"}),
            "src/lib/mod.rs:1:pub fn hello() {}".into(),
        ),
        (
            json!({"pattern": "two", "path": "src", "output_mode": "content", "-C": "1"}),
            "src/lib/mod.rs-2-// one\nsrc/lib/mod.rs:3:// two\nsrc/lib/mod.rs-4-// three".into(),
        ),
        (
            json!({"pattern": "two", "path": "src", "output_mode": "content", "-n": false}),
            "src/lib/mod.rs:// two".into(),
        ),
        (
            json!({"pattern": "//", "path": "src", "output_mode": "count"}),
            "src/lib/mod.rs:3\n(3 matching lines in 1 files)".into(),
        ),
        (
            json!({"pattern": "one.*three", "path": "src", "output_mode": "content", "multiline": true}),
            "src/lib/mod.rs:2:// one\nsrc/lib/mod.rs:3:// two\nsrc/lib/mod.rs:4:// three".into(),
        ),
        (
            json!({"pattern": "//", "path": "src", "output_mode": "content", "head_limit": 2}),
            "src/lib/mod.rs:2:// one\nsrc/lib/mod.rs:3:// two\n(there is more; narrow the search or raise head_limit)"
                .into(),
        ),
        (json!({"pattern": "zzz", "path": "src"}), "No matches found.".into()),
        (json!({"pattern": "hello", "path": "x.log"}), "x.log".into()),
        (json!({"pattern": "key", "path": "server.pem", "output_mode": "content"}), "server.pem:1:hello key".into()),
    ] {
        let outcome = fixture.run("Grep", input.clone()).await;
        assert_eq!(completed(&outcome), expected, "{input}");
    }
    failed(&fixture.run("Grep", json!({"pattern": "x", "type": "klingon"})).await, "invalid_type");
}

#[tokio::test]
async fn search_tools_stop_on_cancellation() {
    let mut fixture = search_fixture();
    for (tool, input) in [
        ("Grep", json!({"pattern": "hello"})),
        ("Glob", json!({"pattern": "**"})),
        ("LS", json!({"path": "."})),
        ("Read", json!({"file_path": "docs/a.md"})),
    ] {
        let call = fixture.call(tool, input);
        let prepared = fixture.tools.prepare(&call, &fixture.session_context).await.unwrap();
        let stop = CancellationToken::new();
        stop.cancel();
        let (progress, _ignored) = mpsc::channel(1);
        let outcome = within(fixture.tools.run(
            &call,
            &prepared,
            &fixture.session_context,
            progress,
            registrar(),
            stop,
        ))
        .await;
        assert_eq!((outcome.status, code(&outcome)), (ToolStatus::Cancelled, "cancelled"), "{tool}");
    }
}

/// A workspace whose hidden and ignored folders have ignore files of their own.
fn ignoring_fixture() -> ToolFixture {
    let fixture = ToolFixture::new();
    for (name, text) in [
        (".gitignore", "node_modules/\n/build/*\n*.log\n"),
        ("src/main.rs", "visible\n"),
        ("src/x.log", "hello\n"),
        ("web/node_modules/a/lib/index.js", "hello\n"),
        ("web/node_modules/.bin/tool", "hello\n"),
        ("build/out/gen.rs", "hello\n"),
        (".venv/.gitignore", "*\n"),
        (".venv/lib/deep/site.py", "hello\n"),
        (".github/ci.yml", "hello\n"),
        ("plain/.gitignore", "*\n"),
        ("plain/inner/p.py", "hello\n"),
        (".git/HEAD", "hello\n"),
        ("app.log", "hello\n"),
    ] {
        fixture.write_file(name, text);
    }
    fixture
}

#[tokio::test]
async fn unsearched_files_are_counted_if_nothing_is_found() {
    let mut fixture = ignoring_fixture();
    let way = "spell the dot, the folder or the name in glob, or give it as path";
    for (tool, input, expected) in [
        // The ten files without `src/main.rs` and those of git, and the three ignore files.
        ("Grep", json!({"pattern": "hello"}), format!("No matches found.\n(11 hidden or ignored files were not searched, such as .github/ci.yml; {way})")),
        ("Grep", json!({"pattern": "hello", "type": "js"}), format!("No matches found.\n(1 hidden or ignored files were not searched, such as web/node_modules/a/lib/index.js; {way})")),
        ("Grep", json!({"pattern": "hello", "path": "src"}), format!("No matches found.\n(1 hidden or ignored files were not searched, such as src/x.log; {way})")),
        ("Grep", json!({"pattern": "visible"}), "src/main.rs".into()),
        ("Glob", json!({"pattern": "*.log"}), "No files match.\n(2 hidden or ignored files were not searched, such as app.log; spell the dot, the folder or the name in the pattern)".into()),
        ("Glob", json!({"pattern": "*.yml"}), "No files match.\n(1 hidden or ignored files were not searched, such as .github/ci.yml; spell the dot, the folder or the name in the pattern)".into()),
        ("Glob", json!({"pattern": "*.zzz"}), "No files match.".into()),
    ] {
        let outcome = fixture.run(tool, input.clone()).await;
        assert_eq!(completed(&outcome), expected, "{tool} {input}");
    }
}

#[tokio::test]
async fn spelled_folders_are_searched_though_hidden_or_ignored() {
    let mut fixture = ignoring_fixture();
    for (glob, path, expected) in [
        (".github/*.yml", ".", ".github/ci.yml"),
        ("**/.github/*", ".", ".github/ci.yml"),
        ("web/node_modules/**/*.js", ".", "web/node_modules/a/lib/index.js"),
        ("**/node_modules/**/*.js", ".", "web/node_modules/a/lib/index.js"),
        ("node_modules/**/*.js", "web", "web/node_modules/a/lib/index.js"),
        ("**/.bin/*", "web/node_modules", "web/node_modules/.bin/tool"),
        (".venv/**/*.py", ".", ".venv/lib/deep/site.py"),
        ("*.py", ".venv", ".venv/lib/deep/site.py"),
        ("*.py", ".venv/lib", ".venv/lib/deep/site.py"),
        ("*.py", "plain", "plain/inner/p.py"),
        ("build/**/*.rs", ".", "build/out/gen.rs"),
        ("app.log", ".", "app.log"),
    ] {
        let outcome = fixture.run("Glob", json!({"pattern": glob, "path": path})).await;
        assert_eq!(completed(&outcome), expected, "Glob {glob} in {path}");
        let outcome = fixture.run("Grep", json!({"pattern": "hello", "glob": glob, "path": path})).await;
        assert_eq!(completed(&outcome), expected, "Grep {glob} in {path}");
    }
    // A folder that is spelled opens nothing else, and its ignored files stay ignored if it is none of them.
    for (pattern, expected) in
        [("src/*", "src/main.rs"), ("**/src/*", "src/main.rs"), ("**/web/**", "No files match.")]
    {
        let outcome = fixture.run("Glob", json!({"pattern": pattern})).await;
        assert_eq!(completed(&outcome).lines().next(), Some(expected), "{pattern}");
    }
    let outcome = fixture.run("Grep", json!({"pattern": "hello", "path": "build"})).await;
    assert_eq!(completed(&outcome), "build/out/gen.rs");
}

#[tokio::test]
async fn grep_finds_line_ends_in_any_encoding_and_line_ending() {
    let mut fixture = ToolFixture::new();
    let utf16 =
        |text: &str, bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
    let text = "let x;\r\n\r\nend ü x\r\n";
    fixture.write_file("lf.txt", text.replace('\r', ""));
    fixture.write_file("crlf.txt", text);
    fixture.write_file("utf16.txt", utf16(&format!("\u{feff}{text}"), u16::to_le_bytes));
    fixture.write_file("utf16be.txt", utf16(&format!("\u{feff}{text}"), u16::to_be_bytes));
    fixture.write_file("unmarked.txt", utf16(text, u16::to_le_bytes));
    fixture.write_file("zero.txt", b"\0\x01let x;\n");
    let all = "crlf.txt\nlf.txt\nunmarked.txt\nutf16.txt\nutf16be.txt";
    for (pattern, multiline, expected) in [
        ("x;$", false, all),
        ("^$", false, all),
        ("ü x$", false, all),
        (r"^end.*\bx$", false, all),
        ("x;$", true, all),
        ("(x;|y)$", false, all),
        (r"x;\n\nend", true, all),
        (r"x;$\n+end", true, all),
        ("x;\n", true, all),
        (r"x;[^\n]*\n", true, all),
        ("x;\r$", false, "crlf.txt\nunmarked.txt\nutf16.txt\nutf16be.txt"),
        ("x;.", false, "crlf.txt\nunmarked.txt\nutf16.txt\nutf16be.txt"),
        (r"\$", false, "No matches found."),
    ] {
        let outcome = fixture.run("Grep", json!({"pattern": pattern, "multiline": multiline})).await;
        assert_eq!(completed(&outcome), expected, "{pattern}");
    }
    let outcome = fixture
        .run("Grep", json!({"pattern": "x;$", "output_mode": "content", "glob": "{crlf,unmarked}.txt"}))
        .await;
    assert_eq!(completed(&outcome), "crlf.txt:1:let x;\nunmarked.txt:1:let x;");
}

#[tokio::test]
async fn grep_reads_files_in_the_encoding_that_read_shows() {
    let mut fixture = ToolFixture::new();
    fixture.write_file("latin1.txt", b"die Gr\xF6\xDFe der T\xFCr ist gro\xDF;\r\nnext\r\n");
    fixture.write_file("sjis.txt", b"\x93\xFA\x96{\x8C\xEA\x82\xCC\x83e\x83L\x83X\x83g\x82\xC5\x82\xB7\n");
    fixture.write_file("utf8.txt", "die Größe; 日本語\n");
    for (pattern, mode, expected) in [
        ("Größe", "files_with_matches", "latin1.txt\nutf8.txt"),
        ("^die.*groß;$", "content", "latin1.txt:1:die Größe der Tür ist groß;"),
        (r"^\w+ T.r", "count", "No matches found."),
        (r"Gr..e", "count", "latin1.txt:1\nutf8.txt:1\n(2 matching lines in 2 files)"),
        ("^日本語のテキスト", "content", "sjis.txt:1:日本語のテキストです"),
        ("next", "content", "latin1.txt:2:next"),
    ] {
        let outcome = fixture.run("Grep", json!({"pattern": pattern, "output_mode": mode})).await;
        assert_eq!(completed(&outcome), expected, "{pattern}");
    }
}

#[tokio::test]
async fn ls_lists_entries_of_folder() {
    let mut fixture = search_fixture();
    std::os::unix::fs::symlink("docs", fixture.path("link")).unwrap();
    let outcome = fixture.run("LS", json!({"path": "."})).await;
    assert_eq!(
        completed(&outcome),
        ".gitignore\n.hidden/\nbin\ndocs/\nlink -> docs\nserver.pem\nsrc/\ntarget/\nx.log"
    );
    failed(&fixture.run("LS", json!({"path": "x.log"})).await, "not_a_directory");
    failed(&fixture.run("LS", json!({"path": "srx"})).await, "file_not_found");
}

#[tokio::test]
async fn search_omits_files_denied_by_rule() {
    let mut fixture = search_fixture();
    fixture.write_file("src/private/key.rs", "hello private\n");
    fixture.session_context.unreadable = super::super::UnreadablePaths::new(|_, path| {
        path.iter().any(|part| part == "private") || path.ends_with("a.md")
    });
    let left_out_note = "(2 files or folders are left out: a permission rule keeps them from being read)";
    for (tool, input) in [
        ("Grep", json!({"pattern": "hello"})),
        ("Grep", json!({"pattern": "hello", "output_mode": "content"})),
        ("Grep", json!({"pattern": "hello", "glob": "**/*"})),
        ("Glob", json!({"pattern": "**/*"})),
    ] {
        let outcome = fixture.run(tool, input.clone()).await;
        let text = completed(&outcome);
        assert!(
            !text.contains("private/") && !text.contains("a.md") && text.contains(left_out_note),
            "{tool} {input}: {text}"
        );
        assert_eq!(outcome.detail.as_ref().unwrap()["hidden_by_rules"], 2);
    }
    let listed = fixture.run("LS", json!({"path": "src"})).await;
    assert!(
        !completed(&listed).contains("private/") && completed(&listed).contains("1 entries are not shown")
    );
    // The suggestion must not reveal the name of a hidden file.
    let missed = fixture.run("Read", json!({"file_path": "src/private/kay.rs"})).await;
    assert!(!missed.output.contains("key.rs"), "{}", missed.output);
}

#[tokio::test]
async fn ambiguous_file_names_are_escaped_in_results() {
    let mut fixture = ToolFixture::new();
    fixture.write_file("a\nb.txt", "hello\n");
    fixture.write_file("c\u{202e}txt.d", "hello\n");
    for (tool, input) in
        [("LS", json!({})), ("Glob", json!({"pattern": "*"})), ("Grep", json!({"pattern": "hello"}))]
    {
        let outcome = fixture.run(tool, input).await;
        let mut lines: Vec<&str> = completed(&outcome).lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["a\\nb.txt", "c\\u{202e}txt.d"], "{tool}");
    }
}

#[tokio::test]
async fn parallel_grep_always_returns_first_lines() {
    let mut fixture = ToolFixture::new();
    for n in 0..300 {
        fixture.write_file(&format!("d{}/f{n:03}.txt", n % 7), "needle one\nneedle two\nneedle three\n");
    }
    let input = json!({"pattern": "needle", "output_mode": "content", "head_limit": 10});
    let first = fixture.run("Grep", input.clone()).await;
    let expected: Vec<String> = (0..4)
        .flat_map(|n| (1..=3).map(move |line| (n * 7, line)))
        .take(10)
        .map(|(n, line)| format!("d0/f{n:03}.txt:{line}:needle {}", ["one", "two", "three"][line - 1]))
        .chain(["(there is more; narrow the search or raise head_limit)".to_owned()])
        .collect();
    assert_eq!(completed(&first), expected.join("\n"));
    for _ in 0..5 {
        let again = fixture.run("Grep", input.clone()).await;
        assert_eq!((again.output.as_str(), &again.detail), (first.output.as_str(), &first.detail));
    }
}

#[tokio::test]
async fn search_omits_hard_links_to_credentials() {
    let mut fixture = search_fixture();
    std::fs::create_dir_all(fixture.root.join("home/.ssh")).unwrap();
    std::fs::write(fixture.root.join("home/.ssh/id_rsa"), "hello key\n").unwrap();
    std::fs::hard_link(fixture.root.join("home/.ssh/id_rsa"), fixture.path("notes.md")).unwrap();
    // Secrets of the workspace itself, including names that a search never reaches.
    std::fs::create_dir_all(fixture.path("deep/er")).unwrap();
    std::fs::create_dir_all(fixture.path("objects")).unwrap();
    std::fs::write(fixture.path("deep/er/.env"), "hello=1\n").unwrap();
    std::fs::hard_link(fixture.path("deep/er/.env"), fixture.path("objects/made.txt")).unwrap();
    std::fs::hard_link(fixture.path("deep/er/.env"), fixture.path("copied.txt")).unwrap();
    // The other name lies outside the folders that are searched.
    std::fs::write(fixture.root.join("elsewhere"), "hello out there\n").unwrap();
    std::fs::hard_link(fixture.root.join("elsewhere"), fixture.path("here.txt")).unwrap();
    // Two names that are both known and both not sensitive.
    std::fs::write(fixture.path("one.txt"), "hello twice\n").unwrap();
    std::fs::hard_link(fixture.path("one.txt"), fixture.path("two.txt")).unwrap();
    let outcome = fixture.run("Grep", json!({"pattern": "hello", "path": "."})).await;
    let text = completed(&outcome);
    for (name, shown) in [
        ("notes.md", false),
        ("made.txt", false),
        ("copied.txt", false),
        ("here.txt", false),
        ("one.txt", true),
        ("two.txt", true),
    ] {
        assert_eq!(text.contains(name), shown, "{name}: {text}");
    }
    assert!(text.contains("hard links"), "{text}");
    assert_eq!(outcome.detail.unwrap()["linked_skipped"], 4);
}
