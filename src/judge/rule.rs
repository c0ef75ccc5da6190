//! A permission rule as written: `Tool` or `Tool(pattern)`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::domain::Domain;
use super::glob::PathPattern;
use super::shell::CommandPattern;
use super::written::{Problem, normalise};
use types::mcp_names::{ToolNames, check_rule};
use types::permission::{RuleKind, Verdict, VerdictKind};
use types::slug::slug;
use types::tool::{MCP_PREFIX, Subject};

/// Why a text is not a valid rule. Displays the text and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRule {
    /// The text as given.
    pub text: String,
    /// The error, a sentence fragment.
    pub problem: String,
}

impl fmt::Display for BadRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bad permission rule {:?}: {}", self.text, self.problem)
    }
}

impl std::error::Error for BadRule {}

/// One rule. Displays as it was written; two rules are equal if their texts are equal.
#[derive(Clone)]
pub struct Rule {
    text: String,
    pub(super) tool: String,
    pub(super) pattern: Pattern,
}

/// The pattern after the tool's name.
#[derive(Clone)]
pub(super) enum Pattern {
    /// Every call of the tool.
    All,
    /// Commands.
    Command(CommandPattern),
    /// Files.
    Path(PathPattern),
    /// Hosts.
    Domain(Domain),
    /// Exactly the written command, run without the sandbox. Does not decide whether the command may
    /// run.
    Unsandboxed,
    /// Sub-agents whose name has this slug.
    Agent(String),
}

/// The kind of object that a rule covers, by its tool name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Bash,
    Read,
    Edit,
    WebFetch,
    Task,
    Unsandboxed,
    Other,
}

pub(super) fn family(tool: &str) -> Family {
    match tool {
        "Bash" => Family::Bash,
        "Read" | "Glob" | "Grep" | "LS" => Family::Read,
        "Edit" | "Write" | "MultiEdit" | "ApplyPatch" | "NotebookEdit" | "Delete" => Family::Edit,
        "WebFetch" => Family::WebFetch,
        "Task" => Family::Task,
        "Unsandboxed" => Family::Unsandboxed,
        _ => Family::Other,
    }
}

impl Rule {
    /// Name of the tool, the text before the parenthesis.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The rule as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is a grant to run without the sandbox. Only a user's answer or an explicit command
    /// adds it, for one session; rule files cannot contain it.
    #[must_use]
    pub fn is_unsandboxed(&self) -> bool {
        matches!(self.pattern, Pattern::Unsandboxed)
    }

    /// The same rule with its relative paths starting at `folder`, which must be absolute and without links, instead of
    /// the workspace. `None` if the folder's path is not UTF-8.
    #[must_use]
    pub fn with_base(&self, folder: &Path) -> Option<Self> {
        let Pattern::Path(pattern) = &self.pattern else { return Some(self.clone()) };
        Some(Self { pattern: Pattern::Path(pattern.with_base(folder)?), ..self.clone() })
    }

    pub(super) fn is_relative(&self) -> bool {
        matches!(&self.pattern, Pattern::Path(pattern) if pattern.is_relative())
    }

    /// The same rule for the targets of its path, if the path is a link or lies below one; `real`
    /// returns the target.
    pub(super) fn with_resolved_links(
        &self,
        workspace: &Path,
        home: &Path,
        real: &dyn Fn(&Path) -> Option<PathBuf>,
    ) -> Vec<Self> {
        let Pattern::Path(pattern) = &self.pattern else { return Vec::new() };
        let targets = pattern.with_resolved_links(workspace, home, real).into_iter();
        targets.map(|target| Self { pattern: Pattern::Path(target), ..self.clone() }).collect()
    }

    /// Whether this rule applies to calls of `tool` on `subject`, before its pattern is checked. `Read`
    /// and `Edit` cover every tool that reads or changes files.
    pub(super) fn applies_to(&self, tool: &str, subject: &Subject) -> bool {
        match subject {
            Subject::Bash { .. } => self.tool == "Bash",
            Subject::Read { .. } => self.tool == "Read" || self.tool == tool,
            Subject::Edit { .. } => self.tool == "Edit" || self.tool == tool,
            // A rule that forbids changing a file also forbids deleting it; one that allows changing
            // does not allow deleting.
            Subject::Delete { .. } => matches!(self.tool.as_str(), "Edit" | "Delete") || self.tool == tool,
            Subject::Web { .. } => self.tool == "WebFetch",
            Subject::Background { .. }
            | Subject::Session { .. }
            | Subject::Question { .. }
            | Subject::ProposedPlan(_) => self.tool == tool,
            Subject::Several { .. } | Subject::Blob { .. } => false,
            Subject::Task { .. } => self.tool == "Task",
            Subject::Tool { name } => {
                names_tool(&self.tool, name)
                    || self.tool.starts_with(MCP_PREFIX)
                        && names_tool(&self.tool.to_lowercase(), &name.to_lowercase())
            }
            Subject::Mcp { name, server, tool, .. } => {
                ToolNames { offered: name, server, tool }.may_be_named_in_any_case_by(&self.tool)
            }
        }
    }

    /// As [`Self::applies_to`], for allow rules: only `Delete` itself grants deleting a file, a text that can mean
    /// tools of two servers grants none of them, and the names of tools of servers must have the same case.
    pub(super) fn may_grant(&self, tool: &str, subject: &Subject) -> bool {
        match subject {
            Subject::Delete { .. } => self.tool == "Delete",
            Subject::Tool { name } => names_tool(&self.tool, name),
            Subject::Mcp { name, server, tool, confusable, .. } => {
                ToolNames { offered: name, server, tool }.may_be_named_by(&self.tool)
                    && !confusable.iter().any(|other| other.names().may_be_named_by(&self.tool))
            }
            _ => self.applies_to(tool, subject),
        }
    }
}

/// Whether the text of a rule means a tool of this name. The name alone does not show where the server's part of it
/// ends, so each reading counts.
fn names_tool(text: &str, name: &str) -> bool {
    let is_begin = match text.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name.strip_prefix(text).is_some_and(|rest| rest.starts_with("__")),
    };
    text == name || text.starts_with(MCP_PREFIX) && is_begin
}

impl FromStr for Rule {
    type Err = BadRule;

    /// Reads a rule that is written now. It displays as a text that [`Rule::stored`] reads with the same
    /// meaning; `Bash(rm *)` becomes `Bash(rm:*)`.
    fn from_str(text: &str) -> Result<Self, BadRule> {
        match normalise(text) {
            Ok(text) => Self::stored(&text),
            Err(Problem::Wrong(problem) | Problem::MatchesNothing(problem)) => {
                Err(BadRule { text: text.trim().to_owned(), problem })
            }
        }
    }
}

/// What a user should know about a rule that was stored earlier: that it would be refused now and why, or that
/// the same text would mean something else now. `None` for any other rule.
#[must_use]
pub fn stored_rule_note(text: &str) -> Option<String> {
    match text.parse::<Rule>() {
        Err(bad) => Some(format!("would be refused now: {}", bad.problem)),
        Ok(now) if Rule::stored(text).is_ok_and(|stored| stored == now) => None,
        Ok(now) => Some(format!("counts as exactly this text, without a wildcard; you may mean {now}")),
    }
}

impl Rule {
    /// Reads a rule of a list. An allow rule that no call can match, for example for a tool that does not exist,
    /// is kept, because it allows nothing. An ask or deny rule must be able to match.
    ///
    /// # Errors
    /// The text is not such a rule.
    pub fn in_list(kind: RuleKind, text: &str) -> Result<Self, BadRule> {
        match normalise(text) {
            Err(Problem::MatchesNothing(_)) if kind == RuleKind::Allow => Self::stored(text),
            _ => text.parse(),
        }
    }

    /// Reads a rule that an earlier version may have stored. Its text means exactly what it meant then:
    /// `Bash(rm *)` is this command and no other.
    ///
    /// # Errors
    /// The text is not a rule.
    pub fn stored(text: &str) -> Result<Self, BadRule> {
        // Rules of older versions: `Outside(COMMAND)` is now `Unsandboxed(COMMAND)`.
        let renamed = text.trim().strip_prefix("Outside(").map(|rest| format!("Unsandboxed({rest}"));
        let text = renamed.as_deref().unwrap_or(text.trim());
        let bad = |problem: String| BadRule { text: text.to_owned(), problem };
        let (tool, inner) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => match rest.strip_suffix(')') {
                Some(inner) => (tool, Some(inner)),
                None => return Err(bad("the closing `)` at the end is missing".into())),
            },
        };
        let mut letters = tool.chars();
        if tool.starts_with(MCP_PREFIX) {
            check_rule(tool).map_err(bad)?;
        } else if !letters.next().is_some_and(|c| c.is_ascii_alphabetic())
            || !letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        {
            return Err(
                bad("expected a tool name, or a tool name and a pattern like Bash(npm run:*)".into()),
            );
        }
        let pattern = match (family(tool), inner) {
            (Family::Unsandboxed, None) => {
                return Err(bad("name the whole command, like Unsandboxed(make install)".into()));
            }
            (_, None) => Pattern::All,
            (_, Some("")) => return Err(bad(format!("the pattern is empty; write {tool} for every call"))),
            (Family::Bash, Some(inner)) => {
                Pattern::Command(CommandPattern::parse(inner).map_err(|problem| bad(problem.into()))?)
            }
            (Family::Read | Family::Edit, Some(inner)) => {
                Pattern::Path(PathPattern::parse(inner).map_err(bad)?)
            }
            (Family::WebFetch, Some(inner)) => {
                let domain = inner.strip_prefix("domain:").and_then(Domain::parse);
                let why = "expected a host name, like WebFetch(domain:example.org) or WebFetch(domain:*.example.org)";
                Pattern::Domain(domain.ok_or_else(|| bad(why.into()))?)
            }
            (Family::Task, Some(inner)) if !inner.contains('*') && !slug(inner).is_empty() => {
                Pattern::Agent(slug(inner))
            }
            (Family::Task, Some(_)) => {
                return Err(bad("expected the name of an agent, like Task(reviewer)".into()));
            }
            (Family::Unsandboxed, Some(_)) => Pattern::Unsandboxed,
            (Family::Other, Some(_)) => {
                return Err(bad(format!(
                    "{tool} takes no pattern (Bash, the file tools, WebFetch and Task do)"
                )));
            }
        };
        Ok(Self { text: text.to_owned(), tool: tool.to_owned(), pattern })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Rule {}

/// A verdict without suggestions and parts.
pub(super) fn verdict(kind: VerdictKind, rule: Option<&Rule>, reason: impl Into<String>) -> Verdict {
    Verdict {
        verdict: kind,
        rule: rule.map(ToString::to_string),
        reason: reason.into(),
        suggestions: Vec::new(),
        parts: Vec::new(),
        read_only_command: false,
        read_only: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;

    fn check(text: &str, expected: Result<(), &str>) {
        match (text.parse::<Rule>(), expected) {
            (Ok(rule), Ok(())) => assert_eq!(rule.to_string(), text.trim()),
            (Err(bad), Err(word)) => assert!(bad.to_string().contains(word), "{bad} lacks {word:?}"),
            (got, _) => panic!("{text:?}: {got:?}"),
        }
    }

    #[test]
    fn rules_print_as_written_and_errors_name_problem() {
        for good in [
            "Bash",
            "Bash(npm run test)",
            "Bash(npm:*)",
            "Bash(echo \"a (b)\")",
            "Bash(a $x | b; c)",
            "Read(src/**)",
            "Edit(/abs/**)",
            "Edit(~/notes/*.md)",
            "Edit(/a/\\[x\\].rs)",
            "Write",
            "mcp__server",
            "mcp__server__tool",
            "mcp__my-server__do_it",
            "WebFetch",
            "WebFetch(domain:example.org)",
            "WebFetch(domain:localhost)",
            "Task",
            "Task(code-reviewer)",
            "Unsandboxed(make -C a (b))",
            "  Read(.env) ",
        ] {
            check(good, Ok(()));
        }
        check("", Err("tool name"));
        check("(x)", Err("tool name"));
        check("Bash(npm", Err("closing"));
        check("Bash()", Err("empty"));
        check("Bash(:*)", Err("Bash alone"));
        check("Bash(*)", Err("Bash alone"));
        check("Bash(npm \"run\":*)", Ok(()));
        check("Bash(npm $x:*)", Err("plain"));
        check("Bash(npm | x:*)", Err("plain"));
        check("Read(!src)", Err("deny rule"));
        check("Read(a/../b)", Err(".."));
        check("Read([a)", Err("glob"));
        check("WebFetch(example)", Err("domain:example.org"));
        check("WebFetch(domain:)", Err("host name"));
        check("WebFetch(domain:https://example.org)", Err("host name"));
        check("WebFetch(domain:*.Example.org)", Ok(()));
        check("WebFetch(domain:*)", Err("host name"));
        check("WebFetch(domain:a.*.org)", Err("host name"));
        check("WebFetch(domain:*example.org)", Err("host name"));
        check("WebFetch()", Err("empty"));
        check("Task(two words)", Ok(()));
        check("Task(代码审查)", Ok(()));
        check("Task(code-*)", Err("name of an agent"));
        check("Task(?)", Err("name of an agent"));
        check("Unsandboxed", Err("whole command"));
        check("Unsandboxed()", Err("empty"));
        check("mcp__server(x)", Err("no pattern"));
        for good in ["mcp__my.server__获取", "mcp__wx__*", "mcp__wx__get_*", "mcp__my server"] {
            check(good, Ok(()));
        }
        check("mcp__*__x", Err("at the end"));
        check("mcp__", Err("mcp__SERVER"));
        check("mcp__server__", Err("mcp__SERVER__TOOL"));
        check("Ba sh", Err("tool name"));
    }

    #[test]
    fn written_text_means_same_when_it_is_stored() {
        let judge = |rules: &Rules, command: &str| {
            let policy =
                crate::Policy { mode: types::permission::Mode::Bypass, ..crate::Policy::for_tests(rules) };
            crate::judge(&policy, "Bash", &Subject::command(command)).verdict
        };
        let rules_of = |rule: Rule| Rules { deny: vec![rule], ..Rules::default() };
        let written: Rule = "Bash(rm *)".parse().unwrap();
        let kept = Rule::stored(written.as_str()).unwrap();
        for rule in [written, kept] {
            let rules = rules_of(rule);
            for command in ["rm", "rm -f victim", "true; rm x", "/bin/rm -rf x", "sh -c 'rm x'"] {
                assert_eq!(judge(&rules, command), VerdictKind::Deny, "{command}");
            }
        }
        let old = Rule::stored("Bash(rm *)").unwrap();
        assert_eq!(old.as_str(), "Bash(rm *)");
        let rules = rules_of(old);
        assert_eq!(judge(&rules, "rm *"), VerdictKind::Deny);
        assert_eq!(judge(&rules, "rm -f victim"), VerdictKind::Allow, "the exact meaning");
        let deny_quoted = rules_of("Bash(rm '*')".parse().unwrap());
        assert_eq!(judge(&deny_quoted, "rm \\*"), VerdictKind::Deny);
        assert_eq!(judge(&deny_quoted, "rm x"), VerdictKind::Allow);
    }

    #[test]
    fn deny_rule_for_several_commands_is_no_mere_text() {
        let rules = Rules::parse::<&str>(&[], &[], &["Bash(curl x | sh)", "Bash(cd a && rm b)"]).unwrap();
        let policy =
            crate::Policy { mode: types::permission::Mode::Bypass, ..crate::Policy::for_tests(&rules) };
        for (command, expected) in [
            ("curl x | sh", VerdictKind::Deny),
            ("curl x|sh", VerdictKind::Ask),
            ("true; curl x  |  sh", VerdictKind::Ask),
            ("cd a&&rm b", VerdictKind::Ask),
            ("cd a; rm b", VerdictKind::Ask),
            ("curl y", VerdictKind::Allow),
            ("rm b", VerdictKind::Allow),
        ] {
            assert_eq!(
                crate::judge(&policy, "Bash", &Subject::command(command)).verdict,
                expected,
                "{command}"
            );
        }
    }

    #[test]
    fn stored_rules_that_would_be_refused_have_a_note() {
        for (text, expected) in [
            ("Bash(rm:*)", None),
            ("Read(src/**)", None),
            ("mcp__server", None),
            ("Unsandboxed(ls *)", None),
            ("Bash(ls '*')", None),
            ("Bash(rm *)", Some("you may mean Bash(rm:*)")),
            ("Bash(git * push)", Some("would be refused now")),
            ("WebSearch", Some("there is no tool WebSearch")),
            ("bash", Some("you may mean Bash")),
            ("Read(~root/x)", Some("would be refused now")),
        ] {
            let note = stored_rule_note(text);
            assert_eq!(note.is_some(), expected.is_some(), "{text}: {note:?}");
            assert!(note.unwrap_or_default().contains(expected.unwrap_or_default()), "{text}");
        }
        // An allow rule that matches nothing is harmless, so a list may hold it.
        assert!(Rules::parse(&["WebSearch", "Bash(echo \"a)", "Bash(ls |)"], &[], &[]).is_ok());
        assert!(Rules::parse(&[], &[], &["Bash(echo \"a)"]).is_err());
        assert!(Rules::parse(&["Bash(git * push)"], &[], &[]).is_err());
        assert!(Rules::parse(&[], &[], &["WebSearch"]).is_err());
        assert!(Rules::parse(&[], &["bsh"], &[]).is_err());
    }

    #[test]
    fn rule_list_error_names_invalid_rule() {
        let bad = Rules::parse(&["Read", "Bash("], &[], &[]).unwrap_err();
        assert_eq!(bad.text, "Bash(");
    }

    #[test]
    fn unsandboxed_grant_covers_one_command_and_no_call() {
        let rule: Rule = "Unsandboxed(make install)".parse().unwrap();
        assert!(rule.is_unsandboxed() && !"Bash(make install)".parse::<Rule>().unwrap().is_unsandboxed());
        let subject = Subject::command("make install");
        assert!(!rule.may_grant("Bash", &subject) && !rule.applies_to("Bash", &subject));
        assert_eq!(
            "Outside(make install)".parse::<Rule>().unwrap().to_string(),
            rule.to_string(),
            "the old name"
        );
        let bad = Rules::parse(&["Unsandboxed(make install)"], &[], &[]).unwrap_err();
        assert!(bad.problem.contains("session only"), "{bad}");
    }
}
