//! The judgement against cases: the shared ones, and our own.

use std::path::Path;

use super::{Policy, Rules, judge};
use crate::types::permission::{Mode, Verdict, VerdictKind};
use crate::types::tool::Subject;

#[derive(serde::Deserialize)]
struct Case {
    id: String,
    grants: Vec<String>,
    #[serde(default)]
    denies: Vec<String>,
    command: String,
    expected: VerdictKind,
    #[serde(default)]
    accept: Vec<VerdictKind>,
}

fn verdict(grants: &[String], denies: &[String], command: &str, safe_commands: bool) -> Verdict {
    let written = |list: &[String]| list.iter().map(|text| format!("Bash({text})")).collect::<Vec<_>>();
    let rules = Rules::parse(&written(grants), &[], &written(denies)).expect("rules");
    let policy = Policy {
        mode: Mode::Default,
        rules: &rules,
        grants: &[],
        workspace: Path::new("/w/proj"),
        home: Path::new("/home/u"),
        safe_mode: false,
        safe_commands,
    };
    judge(&policy, "Bash", &Subject::Bash { command: command.into(), background: false })
}

/// What is wrong with the verdicts over a file of cases, a line each.
fn failures(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let case: Case = serde_json::from_str(line).expect("a case");
        let got = verdict(&case.grants, &case.denies, &case.command, false);
        if got.verdict != case.expected && !case.accept.contains(&got.verdict) {
            let command: String = case.command.chars().take(120).collect();
            wrong.push(format!(
                "{} {command:?} with {:?}: {:?} instead of {:?} ({})",
                case.id, case.grants, got.verdict, case.expected, got.reason
            ));
        }
    }
    wrong
}

#[test]
fn the_shared_cases_hold() {
    let wrong = failures(include_str!("../../tests/cases/bash-permissions.jsonl"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `expected grants ! denies # command`, lists separated by `;`. `never` stands for ask or deny.
fn check_table(table: &str, safe: bool) {
    let mut wrong = Vec::new();
    for line in table.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with("//"))
    {
        let (head, command) = line.split_once(" # ").expect("a command");
        let (expected, rules) = head.split_once(' ').unwrap_or((head, ""));
        let (grants, denies) = rules.split_once(" !").unwrap_or((rules, ""));
        let list = |text: &str| -> Vec<String> {
            text.split(';').map(|rule| rule.trim().to_owned()).filter(|rule| !rule.is_empty()).collect()
        };
        let command = command.replace("\\n", "\n");
        let got = verdict(&list(grants), &list(denies), &command, safe);
        let is = match got.verdict {
            VerdictKind::Allow => "allow",
            VerdictKind::Ask => "ask",
            VerdictKind::Deny => "deny",
        };
        if is != expected && !(expected == "never" && is != "allow") {
            wrong.push(format!("{line}\n    is {is}: {}", got.reason));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn our_own_cases_hold() {
    check_table(include_str!("../../tests/cases/bash-own.txt"), false);
}

#[test]
fn commands_that_only_look_pass_inside_the_workspace() {
    check_table(include_str!("../../tests/cases/bash-safe.txt"), true);
}
