//! Commands that coding agents run every day, judged in a workspace with real files: in mode `default`, attended,
//! without rules, with the table of safe commands on, and as if no sandbox hid anything.
//!
//! `tests/cases/everyday.jsonl` came with the specification, `everyday-own.jsonl` belongs to this project.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::inspect_reads;
use judge::{BypassGuard, FileFacts, FileRead, Policy, Repository, Rules, file_reads, judge};
use types::permission::{Mode, Verdict, VerdictKind};
use types::tool::{Confinement, Subject};

use super::ToolFixture;

#[derive(Deserialize)]
struct EverydayCase {
    command: String,
    expected: VerdictKind,
    #[serde(default)]
    accept: Vec<VerdictKind>,
    #[serde(default)]
    files: Vec<String>,
    /// Files that are added to git's index.
    #[serde(default)]
    tracked: Vec<String>,
    #[serde(default)]
    links: BTreeMap<String, String>,
    reason_names: Option<String>,
}

/// A git repository with some files, and an empty home folder.
struct EverydayWorkspace {
    _root: tempfile::TempDir,
    workspace: PathBuf,
    home: PathBuf,
}

impl EverydayWorkspace {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        let made = Self { _root: root, workspace: path.join("ws"), home: path.join("home") };
        fs::create_dir_all(&made.workspace).unwrap();
        fs::create_dir_all(&made.home).unwrap();
        for name in [
            "a.txt",
            "b.txt",
            "a.bin",
            "a.tar",
            "data.csv",
            "data.json",
            "package.json",
            "README.md",
            "Cargo.toml",
            "src/lib.rs",
            "src/main.rs",
            "src/a.rs",
            "src/b.rs",
            "src/ui/x.ts",
            "old/lib.rs",
            "docs/guide.md",
        ] {
            made.write(name);
        }
        fs::write(made.workspace.join(".gitignore"), "build\n*.log\n").unwrap();
        made.git(&["init", "-q"]);
        made.git(&["add", "."]);
        made
    }

    fn write(&self, name: &str) {
        let path = self.workspace.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "some text\n").unwrap();
    }

    fn git(&self, words: &[&str]) {
        let mut git = Command::new("git");
        git.current_dir(&self.workspace).args(words).env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(git.env("GIT_CONFIG_SYSTEM", "/dev/null").status().unwrap().success(), "git {words:?}");
    }

    fn judge(&self, command: &str) -> Verdict {
        let inspect = |reads| inspect_reads(reads, &self.workspace, &self.home);
        judge_with(&self.workspace, &self.home, command, &inspect)
    }
}

/// Judges a command with the result of inspecting its reads.
fn judge_with(
    workspace: &Path,
    home: &Path,
    command: &str,
    inspect: &dyn Fn(Vec<FileRead>) -> FileFacts,
) -> Verdict {
    let rules = Rules::default();
    let policy = Policy {
        mode: Mode::Default,
        rules: &rules,
        grants: &[],
        workspace,
        additional: &[],
        home,
        safe_mode: false,
        safe_commands: true,
        repository: Repository::Top,
        bypass_guard: BypassGuard::Ask,
        key_folders: &[],
        file_facts: &FileFacts::default(),
    };
    let subject = Subject::command(command);
    let file_facts = inspect(file_reads(&policy, &subject));
    judge(&Policy { file_facts: &file_facts, ..policy }, "Bash", &subject)
}

/// Needless questions, and wrong verdicts or reasons.
fn play(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut needless, mut wrong) = (Vec::new(), Vec::new());
    let plain = EverydayWorkspace::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let case: EverydayCase = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let changed =
            (case.files.len() + case.tracked.len() + case.links.len() > 0).then(EverydayWorkspace::new);
        let place = changed.as_ref().unwrap_or(&plain);
        case.files.iter().chain(&case.tracked).for_each(|name| place.write(name));
        for name in &case.tracked {
            place.git(&["add", "-f", name]);
        }
        for (link, target) in &case.links {
            let link = place.workspace.join(link);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            let _ = fs::remove_file(&link);
            symlink(target, link).unwrap();
        }
        let got = place.judge(&case.command);
        let is_accepted = got.verdict == case.expected || case.accept.contains(&got.verdict);
        let names = case.reason_names.as_ref().is_none_or(|name| got.reason.contains(name.as_str()));
        let report = format!("{:?}: {} ({})", got.verdict, case.command, got.reason);
        match case.expected {
            VerdictKind::Allow if !is_accepted => needless.push(report),
            _ if !is_accepted || !names => wrong.push(report),
            _ => {}
        }
    }
    (needless, wrong)
}

#[test]
fn everyday_commands_get_expected_verdict_and_reason() {
    for (name, text) in [
        ("shared", include_str!("../../../tests/cases/everyday.jsonl")),
        ("own", include_str!("../../../tests/cases/everyday-own.jsonl")),
    ] {
        let (needless, wrong) = play(text);
        eprintln!(
            "{name}: {} cases, {} needless, {} wrong",
            text.lines().count(),
            needless.len(),
            wrong.len()
        );
        let (is_right, wrong, needless) =
            (wrong.is_empty() && needless.is_empty(), wrong.join("\n"), needless.join("\n"));
        assert!(is_right, "{name}, wrong:\n{wrong}\nneedless:\n{needless}");
    }
    // More cases from a file of the same format.
    if let Ok(path) = std::env::var("AGENTD_EVERYDAY_CASES") {
        let (needless, wrong) = play(&fs::read_to_string(path).expect("a file"));
        assert!(wrong.is_empty() && needless.is_empty(), "{}\n{}", wrong.join("\n"), needless.join("\n"));
    }
}

#[test]
fn search_passes_if_sandbox_hides_the_secret() {
    let mut fixture = ToolFixture::new();
    let hidden = fixture.write_file("conf/server.key", "secret");
    fixture = {
        let ToolFixture { _root, root, session_context, mint, .. } = fixture;
        let mut settings = crate::Settings::new(root.join("home"));
        settings.sandbox.hidden = vec![hidden];
        settings.sandbox.temp = root.join("temp");
        ToolFixture { _root, tools: crate::Toolbox::new(settings), root, session_context, mint }
    };
    let workspace = fixture.session_context.workspace.clone();
    let home = fixture.root.join("home");
    let verdict = |fixture: &ToolFixture, confinement| {
        let inspect = |reads| fixture.tools.inspect_reads(reads, &fixture.session_context, confinement);
        judge_with(&workspace, &home, "grep -rn KEY .", &inspect)
    };
    let at = |level| Some(Confinement { level, network: true, unsandboxed: false });
    for (confinement, expected) in [
        (at(3), VerdictKind::Allow),
        (at(2), VerdictKind::Allow),
        (at(1), VerdictKind::Ask),
        (at(0), VerdictKind::Ask),
        (None, VerdictKind::Ask),
        (Some(Confinement::UNSANDBOXED), VerdictKind::Ask),
        (Some(Confinement { unsandboxed: true, level: 2, network: true }), VerdictKind::Ask),
    ] {
        let got = verdict(&fixture, confinement);
        assert_eq!(got.verdict, expected, "{confinement:?}: {}", got.reason);
    }
    // Another secret, which is not hidden.
    fixture.write_file(".env", "secret");
    let got = verdict(&fixture, at(2));
    assert_eq!((got.verdict, got.reason.contains(".env")), (VerdictKind::Ask, true), "{}", got.reason);
}

#[test]
fn version_asks_if_file_above_workspace_may_choose_program() {
    for (command, name) in [
        ("cargo --version", "rust-toolchain.toml"),
        ("rustc --version", "rust-toolchain"),
        ("go version", "go.mod"),
        ("mvn -v", ".mvn"),
        ("dotnet --version", "global.json"),
        ("python3 --version", ".python-version"),
        ("cd src && node --version", ".tool-versions"),
    ] {
        let place = EverydayWorkspace::new();
        assert_eq!(place.judge(command).verdict, VerdictKind::Allow, "{command}");
        fs::write(place.workspace.parent().unwrap().join(name), "x\n").unwrap();
        let got = place.judge(command);
        assert_eq!(got.verdict, VerdictKind::Ask, "{command}");
        assert!(got.reason.contains(name), "{}", got.reason);
    }
    // Above the target of a link.
    let place = EverydayWorkspace::new();
    place.write("sub/rust-toolchain.toml");
    place.write("sub/deep/x.rs");
    symlink("sub/deep", place.workspace.join("link")).unwrap();
    assert_eq!(place.judge("cd link && cargo --version").verdict, VerdictKind::Ask);
}

#[test]
fn reading_pipe_asks() {
    let place = EverydayWorkspace::new();
    for name in ["pipe.txt", "old/pipe.txt"] {
        nix::unistd::mkfifo(&place.workspace.join(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    symlink("pipe.txt", place.workspace.join("link.txt")).unwrap();
    for command in [
        "cat pipe.txt",
        "cat link.txt",
        "cat *.txt",
        "head -1 < pipe.txt",
        "grep x pipe.txt",
        "rg x pipe.txt",
        "wc -l a.txt old/pipe.txt",
        "jq . pipe.txt",
        "find . -name '*.txt' | xargs cat",
    ] {
        let got = place.judge(command);
        assert_eq!(got.verdict, VerdictKind::Ask, "{command}");
        assert!(got.reason.contains("may never end"), "{command}: {}", got.reason);
    }
    for command in
        ["cat /dev/null", "cat a.txt < /dev/null", "cat a.txt", "ls pipe.txt", "grep -rn x .", "cat missing"]
    {
        assert_eq!(place.judge(command).verdict, VerdictKind::Allow, "{command}");
    }
}

#[test]
fn folder_with_too_many_entries_asks() {
    let place = EverydayWorkspace::new();
    let many = place.workspace.join("many");
    fs::create_dir(&many).unwrap();
    (0..20_001).for_each(|n| drop(fs::File::create(many.join(format!("{n}.txt"))).unwrap()));
    let got = place.judge("grep -rn foo many");
    assert_eq!(got.verdict, VerdictKind::Ask);
    assert!(got.reason.contains("not all files of many"), "{}", got.reason);
    assert_eq!(place.judge("grep -rn foo src").verdict, VerdictKind::Allow);
}
