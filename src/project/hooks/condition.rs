//! The `if` of a hook: a permission rule that narrows the calls for which it runs.

use std::path::Path;

use judge::{BypassGuard, FileFacts, Policy, Repository, Rule, Rules, judge};
use types::permission::{Mode, VerdictKind};
use types::tool::Subject;

/// A call, as rules see it.
#[derive(Clone, Copy, Debug)]
pub struct CallTarget<'c> {
    /// Name of the tool.
    pub tool: &'c str,
    /// What it is about.
    pub subject: &'c Subject,
    /// The workspace; relative patterns start there.
    pub workspace: &'c Path,
    /// The user's home folder.
    pub home: &'c Path,
}

/// A rule that was read.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    rules: Rules,
}

impl Condition {
    /// Reads a rule such as `Bash(git *)` or `Edit(*.ts)`; `None` for one that is true for every call.
    ///
    /// # Errors
    /// The rule cannot be read. The hook then runs for every call.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let text = text.trim();
        if text.is_empty() || text == "*" {
            return Ok(None);
        }
        let rule: Rule = usual_form(text)?.parse().map_err(|error: judge::BadRule| error.to_string())?;
        let name = rule.tool();
        if !name.starts_with("mcp__") && name.chars().all(|c| !c.is_ascii_uppercase()) {
            return Err(format!("there is no tool {name}; names of tools begin with a capital letter"));
        }
        Ok(Some(Self { rules: Rules { deny: vec![rule], ..Rules::default() } }))
    }

    /// Whether the rule covers the call, or a part of it. A command that cannot be read counts as covered.
    pub fn is_true(&self, call: &CallTarget<'_>) -> bool {
        let policy = Policy {
            mode: Mode::Bypass,
            rules: &self.rules,
            grants: &[],
            workspace: call.workspace,
            additional: &[],
            home: call.home,
            safe_mode: false,
            safe_commands: false,
            repository: Repository::Content,
            bypass_guard: BypassGuard::Off,
            key_folders: &[],
            file_facts: &FileFacts::default(),
        };
        judge(&policy, call.tool, call.subject).verdict != VerdictKind::Allow
    }
}

/// The rule in the form of this daemon.
fn usual_form(text: &str) -> Result<String, String> {
    let Some((tool, inner)) =
        text.split_once('(').and_then(|(tool, rest)| Some((tool, rest.strip_suffix(')')?)))
    else {
        return Ok(if text == "Agent" { "Task".into() } else { text.to_owned() });
    };
    // `Edit(a)|Write(b)` is no single rule, and no path has such a text.
    let mut depth = 0;
    for sign in inner.chars() {
        depth += i32::from(sign == '(') - i32::from(sign == ')');
        if depth < 0 {
            return Err(format!("{text}: one rule is expected"));
        }
    }
    let tool = if tool.trim() == "Agent" { "Task" } else { tool.trim() };
    let inner = inner.trim();
    if inner == "*" {
        return Ok(tool.to_owned());
    }
    if tool != "Bash" {
        return Ok(format!("{tool}({inner})"));
    }
    let prefix = inner.strip_suffix(":*").or_else(|| inner.strip_suffix(" *"));
    if prefix.unwrap_or(inner).contains('*') {
        return Err(format!("{text}: a * is possible at the end only, after a blank or a colon"));
    }
    Ok(match prefix {
        Some(prefix) => format!("Bash({}:*)", prefix.trim_end()),
        None => format!("Bash({inner})"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::tool::{PathSensitivity, ResolvedPath};

    fn is_true(condition: &str, tool: &str, subject: &Subject) -> bool {
        let target = CallTarget { tool, subject, workspace: Path::new("/w"), home: Path::new("/home/u") };
        Condition::parse(condition).expect(condition).is_none_or(|condition| condition.is_true(&target))
    }

    #[test]
    fn conditions_narrow_calls_by_command_and_path() {
        for (condition, command, expected) in [
            ("Bash(git *)", "git push", true),
            ("Bash(git *)", "cd a && git push", true),
            ("Bash(git *)", "echo git", false),
            ("Bash(git:*)", "git", true),
            ("Bash(rm -rf *)", "rm -rf x", true),
            ("Bash(rm -rf *)", "ls", false),
            ("Bash(npm test)", "npm test", true),
            ("Bash(npm test)", "npm run x", false),
            ("Bash", "ls", true),
            ("Bash(*)", "ls", true),
            ("*", "ls", true),
            ("Edit(*.ts)", "ls", false),
            ("Bash(git *)", "eval \"$X\"", true),
        ] {
            assert_eq!(
                is_true(condition, "Bash", &Subject::command(command)),
                expected,
                "{condition} {command}"
            );
        }
        let edit = |path: &str| Subject::Edit {
            path: ResolvedPath {
                path: path.into(),
                in_workspace: true,
                sensitivity: PathSensitivity::Ordinary,
                matched_aliases: Vec::new(),
            },
        };
        for (condition, tool, path, expected) in [
            ("Edit(*.ts)", "Edit", "/w/src/a.ts", true),
            ("Edit(*.ts)", "Write", "/w/a.ts", true),
            ("Edit(*.ts)", "Edit", "/w/a.rs", false),
            ("Write(src/**)", "Write", "/w/src/b/c", true),
            ("Write(src/**)", "Edit", "/w/src/b/c", false),
            ("Bash(git *)", "Edit", "/w/a.ts", false),
        ] {
            assert_eq!(is_true(condition, tool, &edit(path)), expected, "{condition} {tool} {path}");
        }
        let task = Subject::Task { agent: "reviewer".into(), background: false, read_only: false };
        assert!(is_true("Agent(reviewer)", "Task", &task) && !is_true("Agent(other)", "Task", &task));
    }

    #[test]
    fn unreadable_conditions_are_errors() {
        for text in ["Edit(*.env)|Write(*.env)", "Edit(a) Write(b)", "Edit(a),Bash(b:*)"] {
            assert!(Condition::parse(text).is_err(), "{text}");
        }
        for text in ["Bash(git", "Bash(* --force)", "Bash(npm run test*)", "(x)"] {
            assert!(Condition::parse(text).is_err(), "{text}");
        }
    }
}
