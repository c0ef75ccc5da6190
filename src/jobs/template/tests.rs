use serde_json::{Value, json};

use super::*;
use project::extensions::MarkdownFile;
use types::permission::Mode;
use types::unattended::UnattendedSettings;

fn file(name: &str, text: &str) -> MarkdownFile {
    MarkdownFile {
        path: format!("/c/jobs/{name}.md").into(),
        name: name.split('/').map(str::to_owned).collect(),
        text: text.into(),
    }
}

fn parse(folders: Vec<(ExtensionSource, Vec<MarkdownFile>)>) -> Templates {
    let files = ExtensionFiles { folders, diagnostics: Vec::new() };
    Templates::parse(files, &UnattendedSettings::default().budgets())
}

/// The only template of a file, or why it is refused.
fn read(source: ExtensionSource, text: &str) -> Result<Template, String> {
    let templates = parse(vec![(source, vec![file("t", text)])]);
    templates.find("t").cloned().map_err(|problem| problem.why)
}

fn with_parameters(values: &[(&str, Value)]) -> JobRequest {
    let parameters = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    JobRequest { parameters, cwd: "/w".into(), ..JobRequest::default() }
}

const FIX: &str = r"---
description: Fix: an issue
parameters:
  number: {type: integer, description: Its number, required: true}
  branch: {default: main, pattern: '[a-z/]+'}
  level: {enum: [low, high]}
mode: accept_edits
priority: 5
worktree: true
delay: 10m
budgets: {usd_micros: 1000000, model_calls: 50}
labels: {kind: fix, team: core}
artifacts: ['report/*.md']
---

Fix issue {{number}} on {{branch}} ({{level}}).
";

#[test]
fn template_gives_prompt_and_fields_of_a_job() {
    let template = read(ExtensionSource::Project, FIX).expect("right");
    assert_eq!(template.description, "Fix: an issue");
    let job = apply(&template, with_parameters(&[("number", json!(7))])).expect("right");
    assert_eq!(job.prompt.as_deref(), Some("Fix issue 7 on main ()."));
    assert_eq!((job.template.as_deref(), job.cwd.as_str()), (Some("t"), "/w"));
    assert_eq!((job.mode, job.priority, job.worktree.is_some()), (Some(Mode::AcceptEdits), Some(5), true));
    assert_eq!(job.parameters["number"], 7);

    let own = JobRequest {
        priority: Some(-1),
        budgets: Some(Budgets { model_calls: Some(2), ..Budgets::default() }),
        labels: BTreeMap::from([("team".into(), "web".into())]),
        artifacts: vec!["x".into()],
        run_at_ms: Some(types::time::Timestamp(5)),
        ..with_parameters(&[("number", json!("7")), ("branch", json!("a/{{number}}"))])
    };
    let problem = apply(&template, own.clone()).expect_err("the pattern");
    assert_eq!(problem.path, "parameters.branch");
    let own = JobRequest { parameters: BTreeMap::from([("number".into(), json!("7"))]), ..own };
    let job = apply(&template, own).expect("right");
    assert_eq!((job.priority, job.delay), (Some(-1), None), "the request has a time of its own");
    let budgets = job.budgets.expect("limits");
    assert_eq!((budgets.usd_micros, budgets.model_calls), (Some(1_000_000), Some(2)));
    let labels: Vec<_> = job.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        (labels.join(" ").as_str(), job.artifacts.as_slice()),
        ("kind=fix team=web", &["x".to_owned()][..])
    );
}

#[test]
fn wrong_missing_and_unknown_parameters_are_refused_with_their_path() {
    let template = read(ExtensionSource::User, FIX).expect("right");
    for (values, path, word) in [
        (&[][..], "parameters.number", "required"),
        (&[("number", json!(1.5))][..], "parameters.number", "integer"),
        (&[("number", json!("7x"))][..], "parameters.number", "integer"),
        (&[("number", json!(null))][..], "parameters.number", "integer"),
        (&[("number", json!(1)), ("branch", json!(7))][..], "parameters.branch", "string"),
        (&[("number", json!(1)), ("branch", json!("main; rm"))][..], "parameters.branch", "pattern"),
        (&[("number", json!(1)), ("branch", json!("main\n"))][..], "parameters.branch", "pattern"),
        (&[("number", json!(1)), ("level", json!("mid"))][..], "parameters.level", "low, high"),
        (&[("number", json!(1)), ("levle", json!("low"))][..], "parameters.levle", "branch, level, number"),
    ] {
        let problem = apply(&template, with_parameters(values)).expect_err(path);
        assert_eq!(problem.path, path);
        assert!(problem.why.contains(word), "{problem:?}");
    }
    let both = JobRequest { prompt: Some("x".into()), ..with_parameters(&[("number", json!(1))]) };
    assert_eq!(apply(&template, both).expect_err("both").path, "template");
}

#[test]
fn values_of_each_type_are_put_in_as_text() {
    let text = "---\nparameters:\n  n: {type: number}\n  b: {type: boolean, default: false}\n  s:\n---\n{{n}} {{b}} {{s}}";
    let template = read(ExtensionSource::User, text).expect("right");
    for (values, expected) in [
        (&[("n", json!(1.5)), ("s", json!("x"))][..], "1.5 false x"),
        (&[("n", json!("-2")), ("b", json!(true))][..], "-2 true "),
        (&[("n", json!(3)), ("b", json!("true")), ("s", json!("{{n}}"))][..], "3 true {{n}}"),
    ] {
        let job = apply(&template, with_parameters(values)).expect("right");
        assert_eq!(job.prompt.as_deref(), Some(expected));
    }
}

#[test]
fn bad_file_gives_diagnostic_and_stops_no_other() {
    for (text, word) in [
        ("---\nmode: plan\n", "no closing line"),
        ("---\nmode: plan\n---\n \n", "no prompt"),
        ("---\nmoed: plan\n---\nx", "unknown key `moed`"),
        ("---\nmode: paln\n---\nx", "mode: "),
        ("---\nMode: plan\n---\nx", "unknown key `Mode`"),
        ("---\nmode: plan\nmode: default\n---\nx", "twice"),
        ("---\ntools: [Read\n---\nx", "cannot be read as YAML"),
        ("---\nprompt: x\n---\nx", "below the front matter"),
        ("---\ntemplate: x\n---\nx", "another one"),
        ("---\nidempotency_key: x\n---\nx", "unknown key"),
        ("---\nretry: {attemps: 3}\n---\nx", "unknown key `retry.attemps`"),
        ("---\nbudgets: {usd: 3}\n---\nx", "budgets"),
        ("---\nbudgets: {model_calls: 0}\n---\nx", "budgets.model_calls: 0"),
        ("---\nbudgets: {session_usd_micros: 5}\n---\nx", "use usd_micros"),
        ("---\ndelay: 10\n---\nx", "delay: "),
        ("---\nparameters: [a]\n---\nx", "parameters: expected a map"),
        ("---\nparameters: {a b: {}}\n---\nx", "parameters.a b: a name"),
        ("---\nparameters: {a: {type: date}}\n---\nx", "unknown type"),
        ("---\nparameters: {a: {typ: string}}\n---\nx", "unknown key `typ`"),
        ("---\nparameters: {a: {pattern: '('}}\n---\nx", "regular expression"),
        ("---\nparameters: {a: {pattern: ')('}}\n---\nx", "regular expression"),
        ("---\nparameters: {a: {enum: []}}\n---\nx", "enum"),
        ("---\nparameters: {a: {type: integer, default: x}}\n---\nx", "default"),
        ("---\nparameters: {a: {required: true, default: x}}\n---\nx", "required"),
        ("---\nparameters: {a: {}}\n---\n{{b}}", "\\{{b}}"),
    ] {
        let why = read(ExtensionSource::User, text).expect_err(text);
        assert!(why.contains(word) && why.contains("/c/jobs/t.md"), "{text}: {why}");
    }
    let templates = parse(vec![(
        ExtensionSource::User,
        vec![file("bad", "---\nx: 1\n---\nx"), file("good", "x"), file("team/x", "x"), file("a b", "x")],
    )]);
    let (list, diagnostics) = templates.list();
    assert_eq!(list.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["good"]);
    assert_eq!(diagnostics.len(), 3, "{diagnostics:?}");
    let problem = templates.find("none").expect_err("unknown");
    assert_eq!(problem.path, "template");
    assert!(problem.why.contains("known: good"), "{problem:?}");
}

#[test]
fn template_of_project_cannot_reach_beyond_the_users_limits() {
    let most = UnattendedSettings::default().budgets();
    let calls = most.model_calls.expect("a limit");
    for (line, is_refused) in [
        ("on_complete: [{webhook: x}]".to_owned(), true),
        ("cwd: /other".to_owned(), true),
        ("mode: bypass".to_owned(), true),
        ("mode: yolo".to_owned(), true),
        ("mode: accept_edits".to_owned(), false),
        ("retry: {attempts: 3, after_unknown: true}".to_owned(), true),
        ("retry: {attempts: 3}".to_owned(), false),
        ("network: true".to_owned(), true),
        ("sandbox: {level: \"off\"}".to_owned(), true),
        (format!("budgets: {{model_calls: {}}}", calls + 1), true),
        (format!("budgets: {{model_calls: {calls}}}"), false),
        ("budgets: {usd_micros: 999000000}".to_owned(), true),
    ] {
        let text = format!("---\n{line}\n---\nx");
        let of_project = read(ExtensionSource::Project, &text);
        assert_eq!(of_project.is_err(), is_refused, "{line}: {of_project:?}");
    }
    for line in [
        "on_complete: [{webhook: x}]",
        "mode: bypass",
        "cwd: /other",
        "budgets: {model_calls: 5000}",
        "retry: {after_unknown: true}",
    ] {
        read(ExtensionSource::User, &format!("---\n{line}\n---\nx")).expect(line);
    }
}

#[test]
fn project_template_wins_by_name_even_if_it_is_refused() {
    let templates = parse(vec![
        (
            ExtensionSource::Project,
            vec![file("a", "of the project"), file("b", "---\nnetwork: true\n---\nx")],
        ),
        (ExtensionSource::User, vec![file("a", "of the user"), file("b", "x"), file("c", "x")]),
    ]);
    assert_eq!(templates.find("a").expect("one").body, "of the project");
    assert!(templates.find("b").expect_err("refused").why.contains("network"));
    let (list, diagnostics) = templates.list();
    assert_eq!(list.len(), 2);
    assert_eq!(diagnostics.len(), 3, "{diagnostics:?}");
}
