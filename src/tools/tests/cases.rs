//! Path permissions as cases: the initial files, the request, the expected result, and the files that must not
//! change. Each case is judged and, if allowed, executed, with changes on the disk in between.
//!
//! `cases/paths.jsonl` came with the specification, `cases/own.jsonl` belongs to this project. A line has the
//! fields of [`PathCase`]; `${WS}`, `${HOME}`, `${OUT}` and `${RUN}` are folders that the test creates.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

use super::{ToolFixture, within};
use crate::UnreadablePaths;
use judge::{BypassGuard, Policy, Repository, Rules, is_unreadable, judge};
use types::permission::{Mode, VerdictKind};
use types::tool::{PreparedCall, ToolOutcome, ToolStatus};

#[derive(Deserialize)]
struct PathCase {
    id: String,
    op: String,
    path: String,
    #[serde(default)]
    setup: Vec<SetupStep>,
    #[serde(default)]
    rules: Grants,
    race: Option<Race>,
    #[serde(default)]
    untouched: Vec<String>,
    expected: String,
    #[serde(default)]
    accept: Vec<String>,
    why: String,
}

#[derive(Clone, Deserialize)]
struct SetupStep {
    kind: String,
    path: String,
    to: Option<String>,
    text: Option<String>,
}

#[derive(Default, Deserialize)]
struct Grants {
    #[serde(default)]
    read: Vec<String>,
    #[serde(default)]
    write: Vec<String>,
    #[serde(default)]
    delete: Vec<String>,
    #[serde(default)]
    deny_read: Vec<String>,
    #[serde(default)]
    deny_write: Vec<String>,
    default_write: Option<String>,
}

#[derive(Deserialize)]
struct Race {
    after: String,
    r#do: Vec<SetupStep>,
}

struct CaseFixture {
    fixture: ToolFixture,
    rules: Rules,
}

impl CaseFixture {
    fn new(grants: &Grants) -> Self {
        let mut fixture = ToolFixture::with_settings(|settings| {
            settings.config.edit_requires_read = false;
            let root = settings.home.parent().unwrap();
            settings.protected.push(root.join("run/agentd"));
        });
        for folder in ["out", "run"] {
            fs::create_dir(fixture.root.join(folder)).unwrap();
        }
        let fill = |text: &String| fill_placeholders(text, &fixture.root);
        let rule = |tool: &str, list: &[String]| -> Vec<String> {
            list.iter().map(|pattern| format!("{tool}({})", fill(pattern))).collect()
        };
        let ws = ["${WS}/**".to_owned()];
        let mut allow = rule("Read", &ws);
        if grants.default_write.as_deref() != Some("ask") {
            allow.extend(rule("Edit", &ws));
        }
        allow.extend(rule("Read", &grants.read));
        allow.extend(rule("Edit", &grants.write));
        allow.extend(rule("Delete", &grants.delete));
        let mut deny = rule("Read", &grants.deny_read);
        deny.extend(rule("Edit", &grants.deny_write));
        let rules = Rules::parse(&allow, &[], &deny).unwrap();
        let (case_rules, workspace, home) = (rules.clone(), fixture.path(""), fixture.root.join("home"));
        fixture.session_context.unreadable = UnreadablePaths::new(move |tool, path| {
            is_unreadable(&policy(&case_rules, &workspace, &home), tool, path)
        });
        Self { fixture, rules }
    }

    fn apply_step(&self, step: &SetupStep) {
        let path = PathBuf::from(fill_placeholders(&step.path, &self.fixture.root));
        let to = || fill_placeholders(step.to.as_ref().unwrap(), &self.fixture.root);
        if step.kind != "rename" && step.kind != "remove" {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        match step.kind.as_str() {
            "file" => fs::write(&path, step.text.as_deref().unwrap_or("some text\n")).unwrap(),
            "dir" => fs::create_dir_all(&path).unwrap(),
            "symlink" => {
                let _ = fs::remove_file(&path);
                symlink(to(), &path).unwrap();
            }
            "hardlink" => {
                let _ = fs::remove_file(&path);
                fs::hard_link(to(), &path).unwrap();
            }
            "fifo" => {
                let _ = fs::remove_file(&path);
                nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
            }
            "rename" => fs::rename(&path, to()).unwrap(),
            "remove" => fs::remove_file(&path).unwrap(),
            other => panic!("no such step: {other}"),
        }
    }

    fn judge(&self, tool: &str, prepared: &PreparedCall) -> VerdictKind {
        let (workspace, home) = (&self.fixture.session_context.workspace, self.fixture.root.join("home"));
        judge(&policy(&self.rules, workspace, &home), tool, &prepared.subject).verdict
    }
}

static NO_FACTS: std::sync::LazyLock<judge::FileFacts> = std::sync::LazyLock::new(Default::default);

fn policy<'a>(rules: &'a Rules, workspace: &'a Path, home: &'a Path) -> Policy<'a> {
    Policy {
        mode: Mode::Default,
        rules,
        grants: &[],
        workspace,
        additional: &[],
        home,
        safe_mode: false,
        safe_commands: false,
        repository: Repository::Top,
        bypass_guard: BypassGuard::Ask,
        key_folders: &[],
        file_facts: &NO_FACTS,
    }
}

fn fill_placeholders(text: &str, root: &Path) -> String {
    let mut text = text.to_owned();
    for (name, folder) in [("WS", "ws"), ("HOME", "home"), ("OUT", "out"), ("RUN", "run")] {
        text = text.replace(&format!("${{{name}}}"), root.join(folder).to_str().unwrap());
    }
    text
}

/// Describes the object at a path.
fn state(path: &Path) -> String {
    match fs::symlink_metadata(path) {
        Err(_) => "nothing".into(),
        Ok(meta) if meta.is_symlink() => format!("link to {:?}", fs::read_link(path).unwrap()),
        Ok(meta) if meta.is_file() => format!("file {:?}", fs::read(path).unwrap()),
        Ok(meta) => format!("{:?}", meta.file_type()),
    }
}

/// Runs a case. Returns the verdict, and paths that were changed although they must not be.
async fn run_case(case: &PathCase) -> (&'static str, Vec<String>) {
    let mut stage = CaseFixture::new(&case.rules);
    let race = |stage: &CaseFixture, after: &str| {
        if let Some(race) = case.race.as_ref().filter(|race| race.after == after) {
            race.r#do.iter().for_each(|step| stage.apply_step(step));
        }
    };
    case.setup.iter().for_each(|step| stage.apply_step(step));
    // The session has already opened its folder.
    let _ = stage.fixture.prepare("LS", json!({})).await;
    race(&stage, "session_open");
    let path = fill_placeholders(&case.path, &stage.fixture.root);
    let (tool, input) = match case.op.as_str() {
        "read" => ("Read", json!({"file_path": path})),
        "list" => ("LS", json!({"path": path})),
        "write" => ("Write", json!({"file_path": path, "content": "written by the case\n"})),
        "edit" => {
            stage.fixture.run("Read", json!({"file_path": path})).await;
            let resolved = stage.fixture.session_context.workspace.join(&path);
            let old = fs::read_to_string(resolved).unwrap_or_else(|_| "some text\n".into());
            ("Edit", json!({"file_path": path, "old_string": old, "new_string": "edited by the case\n"}))
        }
        "delete" => {
            let patch = format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch");
            ("ApplyPatch", json!({"input": patch}))
        }
        other => panic!("{}: no such operation: {other}", case.id),
    };
    race(&stage, "read");
    let call = stage.fixture.call(tool, input);
    let prepared = within(stage.fixture.tools.prepare(&call, &stage.fixture.session_context)).await;
    let verdict = prepared.as_ref().map_or(VerdictKind::Deny, |prepared| stage.judge(tool, prepared));
    race(&stage, "decide");
    let untouched: Vec<PathBuf> = case
        .untouched
        .iter()
        .map(|path| PathBuf::from(fill_placeholders(path, &stage.fixture.root)))
        .collect();
    let before: Vec<String> = untouched.iter().map(|path| state(path)).collect();
    let mut verdict = match verdict {
        VerdictKind::Allow => "allow",
        VerdictKind::Ask => "ask",
        VerdictKind::Deny => "deny",
    };
    if let (Ok(prepared), "allow") = (&prepared, verdict) {
        let outcome = stage.fixture.run_prepared(&call, prepared).await;
        if outcome.status != ToolStatus::Completed {
            verdict = if is_missing(&outcome) { "allow" } else { "deny" };
        }
    }
    let touched = untouched
        .iter()
        .zip(before)
        .filter(|(path, before)| state(path) != *before)
        .map(|(path, _)| path.display().to_string());
    (verdict, touched.collect())
}

/// Whether an allowed call failed because its file does not exist.
fn is_missing(outcome: &ToolOutcome) -> bool {
    outcome.code.as_deref() == Some("file_not_found")
}

#[tokio::test]
async fn path_cases_get_expected_verdict_without_side_effects() {
    // Further cases: a file of the same form.
    let more = std::env::var("AGENTD_PATH_CASES").map(|path| fs::read_to_string(path).expect("a file"));
    let more = more.unwrap_or_default();
    let texts = [include_str!("cases/paths.jsonl"), include_str!("cases/own.jsonl"), &more];
    let mut wrong = Vec::new();
    let mut needless = 0;
    let mut count = 0;
    for line in texts.iter().flat_map(|text| text.lines()).filter(|line| !line.trim().is_empty()) {
        let case: PathCase = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let (verdict, touched) = run_case(&case).await;
        count += 1;
        let accepted = if case.accept.is_empty() { vec![case.expected.clone()] } else { case.accept.clone() };
        needless += usize::from(case.expected == "allow" && verdict != "allow");
        if !accepted.iter().any(|word| word == verdict) || !touched.is_empty() {
            wrong.push(format!(
                "{} {} {:?}: {verdict}, not {accepted:?}; touched {touched:?} ({})",
                case.id, case.op, case.path, case.why
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(needless, 0, "asked or denied where it could be allowed");
    assert!(count > 80, "only {count} cases were found");
}
