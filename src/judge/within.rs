//! Rules that only restrict: a call must be covered by one of them, and none of them allows a call.

use super::decide::judge;
use super::policy::{BypassGuard, Policy};
use super::rule::Rule;
use super::rules::Rules;
use types::permission::{Mode, VerdictKind};
use types::tool::Subject;

/// Whether the call is covered by one of the rules, or none of them is about calls of this kind. Of a command, each
/// simple command must be covered.
#[must_use]
pub fn is_within(policy: &Policy<'_>, only: &[Rule], tool: &str, subject: &Subject) -> bool {
    if let Subject::Several { parts } = subject {
        return parts.iter().all(|part| is_within(policy, only, tool, part));
    }
    if !only.iter().any(|rule| rule.applies_to(tool, subject)) {
        return true;
    }
    let rules = Rules { allow: only.to_vec(), ..Rules::default() };
    let as_granted = Policy {
        mode: Mode::Default,
        rules: &rules,
        grants: &[],
        safe_mode: false,
        safe_commands: false,
        bypass_guard: BypassGuard::Off,
        key_folders: &[],
        ..*policy
    };
    let verdict = judge(&as_granted, tool, &without_change(subject));
    verdict.verdict == VerdictKind::Allow && verdict.rule.is_some()
}

/// The same call, as if the definition of its tool were the approved one: that is judged elsewhere.
fn without_change(subject: &Subject) -> Subject {
    let mut subject = subject.clone();
    if let Subject::Mcp { is_changed, .. } = &mut subject {
        *is_changed = false;
    }
    subject
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use types::tool::{PathSensitivity, ResolvedPath};

    fn edit(path: &str) -> Subject {
        Subject::Edit {
            path: ResolvedPath {
                path: PathBuf::from(path),
                in_workspace: path.starts_with("/w/proj"),
                sensitivity: PathSensitivity::Ordinary,
                matched_aliases: Vec::new(),
            },
        }
    }

    #[test]
    fn call_is_within_rules_of_its_kind() {
        let git: &[&str] = &["Bash(git:*)", "Bash(npm run test)"];
        let src: &[&str] = &["Edit(src/**)"];
        let both = Subject::Several { parts: vec![edit("/w/proj/src/a"), edit("/w/proj/b")] };
        for (only, tool, subject, expected) in [
            (git, "Bash", Subject::command("git status"), true),
            (git, "Bash", Subject::command("git log && git diff"), true),
            (git, "Bash", Subject::command("npm run test"), true),
            (git, "Bash", Subject::command("git log && rm x"), false),
            (git, "Bash", Subject::command("git log; $(rm x)"), false),
            (git, "Bash", Subject::command("git -c core.pager=x log"), false),
            (git, "Bash", Subject::command("ls"), false),
            (git, "Bash", Subject::command("cat < x"), false),
            (git, "Edit", edit("/w/proj/b"), true),
            (src, "Edit", edit("/w/proj/src/a"), true),
            (src, "Write", edit("/w/proj/b"), false),
            (src, "ApplyPatch", both, false),
            (src, "Bash", Subject::command("ls"), true),
            (&["Bash"], "Bash", Subject::command("ls"), true),
            (&["Task(Code Reviewer)"], "Task", task("code-reviewer"), true),
            (&["Task(worker)"], "Task", task("other"), false),
        ] {
            let only: Vec<Rule> = only.iter().map(|rule| rule.parse().unwrap()).collect();
            for mode in [Mode::Default, Mode::Bypass] {
                let rules = Rules::default();
                let policy = Policy { mode, ..Policy::for_tests(&rules) };
                assert_eq!(is_within(&policy, &only, tool, &subject), expected, "{only:?} {subject:?}");
            }
        }
    }

    fn task(agent: &str) -> Subject {
        Subject::Task { agent: agent.into(), background: false, read_only: false }
    }
}
