//! The judgement: rules first (deny, ask, allow), then the mode.

use std::path::{Path, PathBuf};

use super::bash;
use super::rule::{Pattern, Rule, Rules};
use super::shell::{Folders, Found, Reading};
use super::suggest;
use crate::types::permission::{Mode, Verdict, VerdictKind};
use crate::types::tool::{PathCare, ResolvedPath, Subject};

/// Which repository git finds where it is asked in the workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repository {
    /// One that lies at the top of the workspace.
    #[default]
    Top,
    /// One that the workspace is a folder of: it holds more than lies in the workspace.
    Above,
    /// None: git says so, but for `git diff`, which compares any two places.
    Nowhere,
    /// Perhaps one that content looks like, with settings of its own that run programs.
    Content,
}

/// Everything a judgement depends on, beside the call itself.
#[derive(Clone, Copy, Debug)]
pub struct Policy<'a> {
    /// The session's mode.
    pub mode: Mode,
    /// Rules of every lasting scope.
    pub rules: &'a Rules,
    /// What people granted for this session: allow rules.
    pub grants: &'a [Rule],
    /// The session's workspace, absolute and free of links. Relative patterns start here.
    pub workspace: &'a Path,
    /// Further folders that count as workspace, absolute and free of links.
    pub additional: &'a [PathBuf],
    /// The home folder, absolute and free of links. `~/` in patterns.
    pub home: &'a Path,
    /// Everything that is not denied asks.
    pub safe_mode: bool,
    /// Commands that only look, inside the workspace, pass without a rule.
    pub safe_commands: bool,
    /// What git finds in the workspace.
    pub repository: Repository,
}

/// Judges one call of `tool` on `subject`. Total and pure. An `Ask` carries the grants that
/// would have let this very call pass, narrowest first; `dont_ask` turns it into a `Deny`.
#[must_use]
pub fn judge(policy: &Policy<'_>, tool: &str, subject: &Subject) -> Verdict {
    let folders = match subject {
        Subject::Bash { cwd, .. } => {
            let start = cwd.as_deref().unwrap_or(policy.workspace);
            let keeps = |rule: &Rule| rule.tool == "Read" && matches!(rule.pattern, Pattern::Path(_));
            let is_kept = policy.rules.deny.iter().chain(&policy.rules.ask).any(keeps);
            Some(
                Folders::new(policy.workspace, policy.additional, start, policy.home)
                    .keeping(is_kept)
                    .with(policy.repository),
            )
        }
        _ => None,
    };
    let reading = match (subject, &folders) {
        (Subject::Bash { command, .. }, Some(folders)) => Some(Reading::new(command, folders)),
        _ => None,
    };
    let line = match (subject, &reading) {
        (Subject::Bash { command, .. }, Some(reading)) => Some(bash::Line::new(policy, command, reading)),
        _ => None,
    };
    let weigh = |extra: Option<&Rule>| match &line {
        Some(line) => line.weigh(extra),
        None => weigh(policy, tool, subject, extra),
    };
    let verdict = weigh(None);
    match (verdict.verdict, policy.mode) {
        (VerdictKind::Ask, Mode::DontAsk) => Verdict {
            verdict: VerdictKind::Deny,
            reason: format!("{}; this session never asks, and no rule allows it", verdict.reason),
            ..verdict
        },
        // No rule could allow it, and there is a lot to read.
        (VerdictKind::Ask, _) if reading.as_ref().is_some_and(Reading::is_excessive) => verdict,
        (VerdictKind::Ask, _) => {
            let is_safe = |rule: &Rule| {
                let is_prefix = rule.as_str().ends_with(":*)");
                reading.as_ref().is_none_or(|reading| reading.may_be_offered(is_prefix))
            };
            let suggestions = suggest::candidates(policy.workspace, policy.home, subject)
                .into_iter()
                .filter(is_safe)
                .filter(|rule| weigh(Some(rule)).verdict == VerdictKind::Allow)
                .map(|rule| rule.to_string())
                .collect();
            let only_looks = verdict.rule.is_none() && reading.as_ref().is_some_and(bash::only_looks);
            Verdict { suggestions, only_looks, ..verdict }
        }
        _ => verdict,
    }
}

fn verdict(kind: VerdictKind, rule: Option<&Rule>, reason: impl Into<String>) -> Verdict {
    Verdict {
        verdict: kind,
        rule: rule.map(ToString::to_string),
        reason: reason.into(),
        suggestions: Vec::new(),
        parts: Vec::new(),
        only_looks: false,
    }
}

/// The judgement without suggestions, as if `extra` had been granted as well.
fn weigh(policy: &Policy<'_>, tool: &str, subject: &Subject, extra: Option<&Rule>) -> Verdict {
    use VerdictKind::{Allow, Ask, Deny};

    if let Subject::Several { parts } = subject {
        let strictness = |verdict: &Verdict| match verdict.verdict {
            Allow => 0,
            Ask => 1,
            Deny => 2,
        };
        // Of equals that one speaks that goes where more care is needed, else the first one.
        let is_beyond = |part: &Subject| match part {
            Subject::Read { path } | Subject::Edit { path } | Subject::Delete { path } => {
                !path.in_workspace || path.care != PathCare::Ordinary
            }
            _ => false,
        };
        let weighed = parts.iter().rev().map(|part| (weigh(policy, tool, part, extra), is_beyond(part)));
        return weighed.max_by_key(|(verdict, is_beyond)| (strictness(verdict), *is_beyond)).map_or_else(
            || verdict(Ask, None, "the call does not say what it touches"),
            |(verdict, _)| verdict,
        );
    }
    // What is not there to be replaced is shown with what is most like it.
    let as_read = match subject {
        Subject::Edit { path } if matches!(tool, "Edit" | "MultiEdit" | "ApplyPatch" | "NotebookEdit") => {
            Some(Subject::Read { path: path.clone() })
        }
        _ => None,
    };
    let read_by = |rules| as_read.as_ref().and_then(|subject| search(policy, rules, "Read", subject).0);
    let (denied, perhaps_denied) = search(policy, &policy.rules.deny, tool, subject);
    if let Some(rule) = denied.or_else(|| read_by(&policy.rules.deny)) {
        return verdict(Deny, Some(rule), format!("denied by the rule {rule}"));
    }
    if let Subject::Edit { path } | Subject::Delete { path } = subject
        && let ResolvedPath { care: PathCare::Protected, path, .. } = path
    {
        let reason = format!("{} is protected: nothing allows writing there", path.display());
        return verdict(Deny, None, reason);
    }
    if policy.mode == Mode::Plan && subject.changes_files() {
        return verdict(Deny, None, "plan mode changes no files until a plan is approved");
    }
    if policy.safe_mode {
        return verdict(Ask, None, "safe mode asks before every call");
    }
    let (asked, perhaps_asked) = search(policy, &policy.rules.ask, tool, subject);
    if let Some(rule) = asked.or_else(|| read_by(&policy.rules.ask)) {
        return verdict(Ask, Some(rule), format!("the rule {rule} asks"));
    }
    let granted = policy
        .rules
        .allow
        .iter()
        .chain(policy.grants)
        .chain(extra)
        .filter(|rule| rule.may_grant(tool, subject))
        .find(|rule| grants(policy, rule, subject));
    if let Some(rule) = granted
        && (policy.mode != Mode::Plan || is_read(subject))
    {
        return verdict(Allow, Some(rule), format!("allowed by the rule {rule}"));
    }
    let perhaps = perhaps_denied.or(perhaps_asked);
    by_mode(policy.mode, perhaps, subject)
}

fn is_read(subject: &Subject) -> bool {
    matches!(subject, Subject::Read { .. })
}

const OTHER_NAMES: &str = "the file has other names (hard links), perhaps outside the workspace";

/// What the mode says of a call that no rule decides. `perhaps` is a deny or ask rule whose
/// command may hide in the text.
fn by_mode(mode: Mode, perhaps: Option<&Rule>, subject: &Subject) -> Verdict {
    use VerdictKind::{Allow, Ask};
    if mode == Mode::Bypass {
        return match perhaps {
            Some(rule) => {
                verdict(Ask, Some(rule), format!("a command of the rule {rule} may hide in this text"))
            }
            None => verdict(Allow, None, "the session runs everything that no rule denies"),
        };
    }
    match subject {
        Subject::Read { path } => match (path.in_workspace, path.care) {
            (_, PathCare::Secret) => verdict(Ask, None, "the file likely holds secrets"),
            (_, PathCare::HardLinked) => verdict(Ask, None, OTHER_NAMES),
            (true, _) => verdict(Allow, None, "reading inside the workspace"),
            (false, _) => verdict(Ask, None, "the path lies outside the workspace"),
        },
        Subject::Edit { path } => match (mode, path.in_workspace, path.care) {
            (_, _, PathCare::AutoExecuted) => verdict(Ask, None, "the file is run or obeyed automatically"),
            (_, _, PathCare::Secret) => verdict(Ask, None, "the file likely holds secrets"),
            (_, _, PathCare::HardLinked) => verdict(Ask, None, OTHER_NAMES),
            (Mode::AcceptEdits, true, PathCare::Ordinary) => {
                verdict(Allow, None, "edits inside the workspace are accepted")
            }
            (_, false, _) => verdict(Ask, None, "the path lies outside the workspace"),
            (_, true, _) => verdict(Ask, None, "the call changes a file"),
        },
        Subject::Delete { path } => match path.in_workspace {
            true => verdict(Ask, None, "the call removes a file"),
            false => verdict(Ask, None, "the path lies outside the workspace"),
        },
        Subject::Web { host, .. } => verdict(Ask, None, format!("no rule allows fetching from {host}")),
        Subject::Several { .. } => verdict(Ask, None, "the call does several things"),
        Subject::Bash { .. } => verdict(Ask, perhaps, "no rule allows this command"),
        Subject::Blob { .. } => verdict(Allow, None, "a part of what this session already has"),
        Subject::Background { .. } => verdict(Allow, None, "a command of this session itself"),
        Subject::Tool { name } => verdict(Ask, None, format!("no rule allows {name}")),
    }
}

/// The first rule that applies, and the first one of which that cannot be excluded.
fn search<'r>(
    policy: &Policy<'_>,
    rules: &'r [Rule],
    tool: &str,
    subject: &Subject,
) -> (Option<&'r Rule>, Option<&'r Rule>) {
    let mut perhaps = None;
    for rule in rules.iter().filter(|rule| rule.speaks_of(tool, subject)) {
        let found = match (&rule.pattern, subject) {
            (Pattern::All, _) => Found::Yes,
            (
                Pattern::Path(pattern),
                Subject::Read { path } | Subject::Edit { path } | Subject::Delete { path },
            ) => {
                if pattern.catches(&path.path, policy.workspace, policy.home) {
                    Found::Yes
                } else {
                    Found::No
                }
            }
            (Pattern::Domain(domain), Subject::Web { host, .. }) if domain.covers(host) => Found::Yes,
            // What it covers cannot be told yet, so it cannot be excluded.
            (Pattern::Later, _) => Found::Perhaps,
            _ => Found::No,
        };
        match found {
            Found::Yes => return (Some(rule), perhaps),
            Found::Perhaps => perhaps = perhaps.or(Some(rule)),
            Found::No => {}
        }
    }
    (None, perhaps)
}

/// Whether a rule denies `tool` reading `path` (absolute, resolved), or asks before it. For calls that
/// look at more than the path they name: what is found there is left out.
#[must_use]
pub fn is_unreadable(policy: &Policy<'_>, tool: &str, path: &Path) -> bool {
    policy.rules.deny.iter().chain(&policy.rules.ask).any(|rule| match &rule.pattern {
        Pattern::Path(pattern) if rule.tool == "Read" || rule.tool == tool => {
            pattern.catches(path, policy.workspace, policy.home)
        }
        _ => false,
    })
}

/// Whether an allow rule covers the call. Files that need care are covered only by a rule that
/// names exactly that file.
fn grants(policy: &Policy<'_>, rule: &Rule, subject: &Subject) -> bool {
    match (&rule.pattern, subject) {
        (Pattern::Domain(domain), Subject::Web { host, .. }) => domain.is(host),
        (pattern, Subject::Read { path } | Subject::Edit { path } | Subject::Delete { path }) => {
            let careful = match path.care {
                PathCare::Ordinary => false,
                PathCare::Secret | PathCare::HardLinked => true,
                PathCare::AutoExecuted | PathCare::Protected => !is_read(subject),
            };
            match pattern {
                Pattern::Path(pattern) if careful => {
                    pattern.names_exactly(&path.path, policy.workspace, policy.home)
                }
                Pattern::Path(pattern) => pattern.matches(&path.path, policy.workspace, policy.home),
                Pattern::All => !careful,
                Pattern::Command(_) | Pattern::Domain(_) | Pattern::Outside | Pattern::Later => false,
            }
        }
        (Pattern::All, _) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use VerdictKind::{Allow, Ask, Deny};

    fn path(text: &str, care: PathCare) -> ResolvedPath {
        ResolvedPath { path: PathBuf::from(text), in_workspace: Path::new(text).starts_with("/w/proj"), care }
    }

    fn read(text: &str, care: PathCare) -> Subject {
        Subject::Read { path: path(text, care) }
    }

    fn edit(text: &str, care: PathCare) -> Subject {
        Subject::Edit { path: path(text, care) }
    }

    fn bash(command: &str) -> Subject {
        Subject::command(command)
    }

    /// Rules are written `+Rule` (allow), `?Rule` (ask), `-Rule` (deny).
    fn check(mode: Mode, rules: &[&str], tool: &str, subject: &Subject, expected: VerdictKind) -> Verdict {
        let of = |sign: char| -> Vec<&str> { rules.iter().filter_map(|r| r.strip_prefix(sign)).collect() };
        let parsed = Rules::parse(&of('+'), &of('?'), &of('-')).unwrap();
        let policy = Policy {
            mode,
            rules: &parsed,
            grants: &[],
            workspace: Path::new("/w/proj"),
            additional: &[],
            home: Path::new("/home/u"),
            safe_mode: false,
            safe_commands: false,
            repository: Repository::Top,
        };
        let got = judge(&policy, tool, subject);
        assert_eq!(got.verdict, expected, "{mode:?} {rules:?} {tool} {subject:?}: {got:?}");
        got
    }

    #[test]
    fn modes_decide_what_no_rule_names() {
        use Mode::{AcceptEdits, Bypass, Default, DontAsk, Plan};
        use PathCare::{AutoExecuted, Ordinary, Protected, Secret};
        let inside = "/w/proj/src/a.rs";
        let outside = "/etc/hosts";
        for (subject, tool, expected) in [
            // default, accept_edits, dont_ask, bypass, plan
            (read(inside, Ordinary), "Read", [Allow, Allow, Allow, Allow, Allow]),
            (read(outside, Ordinary), "Read", [Ask, Ask, Deny, Allow, Ask]),
            (read("/w/proj/.env", Secret), "Read", [Ask, Ask, Deny, Allow, Ask]),
            (read("/w/proj/AGENTS.md", AutoExecuted), "Read", [Allow, Allow, Allow, Allow, Allow]),
            (edit(inside, Ordinary), "Edit", [Ask, Allow, Deny, Allow, Deny]),
            (edit(outside, Ordinary), "Write", [Ask, Ask, Deny, Allow, Deny]),
            (edit("/w/proj/.envrc", AutoExecuted), "Write", [Ask, Ask, Deny, Allow, Deny]),
            (edit("/w/proj/.git/config", Protected), "Edit", [Deny, Deny, Deny, Deny, Deny]),
            (bash("ls"), "Bash", [Ask, Ask, Deny, Allow, Ask]),
            (bash("make"), "Bash", [Ask, Ask, Deny, Allow, Deny]),
            (bash("ls > x"), "Bash", [Ask, Ask, Deny, Allow, Deny]),
            (Subject::Tool { name: "mcp__a__b".into() }, "mcp__a__b", [Ask, Ask, Deny, Allow, Ask]),
        ] {
            for (mode, expected) in [Default, AcceptEdits, DontAsk, Bypass, Plan].into_iter().zip(expected) {
                check(mode, &[], tool, &subject, expected);
            }
        }
    }

    #[test]
    fn plan_mode_runs_no_command_that_may_change_something_whatever_is_granted() {
        for rules in [&["+Bash"][..], &["+Bash(make:*)"], &["+Bash(make x)"], &["?Bash(make:*)"]] {
            let denied = check(Mode::Plan, rules, "Bash", &bash("make x"), Deny);
            assert!(denied.reason.contains("plan mode") && denied.reason.contains("make x"), "{denied:?}");
        }
        for text in ["ls && touch x", "echo $(touch x)", "for f in *; do rm $f; done", "cat <<EOF > x\nEOF"] {
            check(Mode::Plan, &["+Bash"], "Bash", &bash(text), Deny);
        }
        // What only reads is granted as elsewhere.
        check(Mode::Plan, &["+Bash"], "Bash", &bash("git status && ls | wc -l"), Allow);
        check(Mode::Plan, &["+Bash(uname:*)"], "Bash", &bash("uname -a"), Allow);
        check(Mode::Plan, &["+Bash(uname:*)"], "Bash", &bash("uname -a; ls"), Ask);
    }

    #[test]
    fn who_may_not_read_a_file_does_not_learn_of_it_by_editing() {
        let subject = edit("/w/proj/private/k", PathCare::Ordinary);
        for tool in ["Edit", "MultiEdit", "ApplyPatch"] {
            let rules = |sign: &str| [format!("{sign}Read(private/**)"), "+Edit".to_owned()];
            let of = |rules: [String; 2], expected| {
                let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
                check(Mode::AcceptEdits, &rules, tool, &subject, expected);
            };
            of(rules("-"), Deny);
            of(rules("?"), Ask);
        }
        // It shows nothing of what it overwrites, and wants that to be known.
        check(Mode::AcceptEdits, &["-Read(private/**)"], "Write", &subject, Allow);
    }

    #[test]
    fn of_a_path_without_end_not_every_part_is_looked_at() {
        let rules = Rules::parse(&["Bash(cat:*)"], &[], &["Read(.env)", "Read(private/**)"]).unwrap();
        let verdict = |command: String| {
            let policy = Policy {
                mode: Mode::Default,
                rules: &rules,
                grants: &[],
                workspace: Path::new("/w/proj"),
                additional: &[],
                home: Path::new("/home/u"),
                safe_mode: false,
                safe_commands: false,
                repository: Repository::Top,
            };
            judge(&policy, "Bash", &bash(&command)).verdict
        };
        assert_eq!(verdict(format!("cat {}x", "a/".repeat(100))), Allow);
        assert_eq!(verdict(format!("cat {}.env", "a/".repeat(100))), Ask);
        assert_eq!(verdict(format!("cat {}x", "a/".repeat(4_000))), Ask);
        assert_eq!(verdict(format!("cat {}", format!("{}x ", "a/".repeat(500)).repeat(60))), Ask);
        // Choices are looked at, what a pattern finds is not.
        for choice in ["{f,.env}", ".{env,x}", ".e{n,}v", "{sub/../,}.env", "private/{a,b}"] {
            assert_eq!(verdict(format!("cat {choice}")), Ask, "{choice}");
        }
        assert_eq!(verdict("cat {a,b}".to_owned()), Allow);
    }

    #[test]
    fn a_rule_for_files_counts_for_what_a_command_names() {
        let rules = [
            "-Read(private/**)",
            "?Read(askme.txt)",
            "-Edit(z*)",
            "+Bash(cat:*)",
            "+Bash(tee:*)",
            "+Bash(echo:*)",
        ];
        let judged = |mode, safe_commands, text: &str| {
            let of =
                |sign: char| -> Vec<&str> { rules.iter().filter_map(|r| r.strip_prefix(sign)).collect() };
            let parsed = Rules::parse(&of('+'), &of('?'), &of('-')).unwrap();
            let (workspace, home) = (Path::new("/w/proj"), Path::new("/home/u"));
            let (grants, additional) = (&[][..], &[][..]);
            let policy = Policy {
                mode,
                rules: &parsed,
                grants,
                workspace,
                additional,
                home,
                safe_mode: false,
                safe_commands,
                repository: Repository::Top,
            };
            judge(&policy, "Bash", &bash(text))
        };
        for text in [
            "cat private/k",
            "cat ./x/../private/k",
            "cat < private/k",
            "cd private && cat k",
            "head -n 3 askme.txt",
            "wc -l /w/proj/private/k",
            "echo x > zed",
            "cat a.rs; cat private/k",
        ] {
            let verdict = judged(Mode::Bypass, true, text);
            assert!(verdict.verdict == Ask && verdict.reason.contains("the rule "), "{text}: {verdict:?}");
            assert_eq!(judged(Mode::Default, true, text).verdict, Ask, "{text}");
            assert_eq!(judged(Mode::DontAsk, true, text).verdict, Deny, "{text}");
        }
        // What they show is not spelled out.
        for text in ["head *.rs", "git diff", "git show HEAD", "git log -p", "git blame src/a.rs"] {
            assert_eq!(judged(Mode::Default, true, text).verdict, Ask, "{text}");
        }
        for text in ["cat src/a.rs", "head a.rs", "ls", "git status", "git log --oneline -5", "cat zed"] {
            assert_eq!(judged(Mode::Default, true, text).verdict, Allow, "{text}");
        }
    }

    #[test]
    fn deny_wins_over_ask_wins_over_allow() {
        let all = ["+Bash", "?Bash(cargo publish:*)", "-Bash(rm:*)"];
        for mode in [Mode::Default, Mode::Bypass] {
            check(mode, &all, "Bash", &bash("cargo build"), Allow);
            check(mode, &all, "Bash", &bash("cargo publish"), Ask);
            let denied = check(mode, &all, "Bash", &bash("rm x"), Deny);
            assert_eq!(denied.rule.as_deref(), Some("Bash(rm:*)"));
            check(mode, &all, "Bash", &bash("ls; rm x"), Deny);
        }
    }

    #[test]
    fn bypass_asks_where_a_denied_program_may_hide() {
        check(Mode::Bypass, &["-Bash(rm:*)"], "Bash", &bash("x=r; ${x}m a"), Ask);
        check(Mode::Bypass, &["-Bash(rm:*)"], "Bash", &bash("cargo build && ls | wc"), Allow);
        check(Mode::Bypass, &[], "Bash", &bash("x=r; ${x}m a"), Allow);
    }

    #[test]
    fn file_rules_cover_their_family() {
        let (inside, outside) = ("/w/proj/src/a.rs", "/data/x/a.txt");
        let ordinary = PathCare::Ordinary;
        check(Mode::Default, &["+Edit(src/**)"], "Write", &edit(inside, ordinary), Allow);
        check(Mode::Default, &["+Write(src/**)"], "Edit", &edit(inside, ordinary), Ask);
        check(Mode::Default, &["+Read(/data/**)"], "Grep", &read(outside, ordinary), Allow);
        check(Mode::Default, &["-Read(src/**)"], "LS", &read(inside, ordinary), Deny);
        check(Mode::Default, &["+Edit"], "Edit", &edit(outside, ordinary), Allow);
        check(Mode::Default, &["+Read"], "Edit", &edit(outside, ordinary), Ask);
        check(Mode::Default, &["+mcp__a"], "x", &Subject::Tool { name: "mcp__a__b".into() }, Allow);
        check(Mode::Default, &["+mcp__a"], "x", &Subject::Tool { name: "mcp__ab__b".into() }, Ask);
        check(Mode::Default, &["+mcp__a__b"], "x", &Subject::Tool { name: "mcp__a__b".into() }, Allow);
        check(Mode::Default, &["+mcp__a__b"], "x", &Subject::Tool { name: "mcp__a__c".into() }, Ask);
    }

    #[test]
    fn rules_for_tools_to_come_cover_nothing_of_today() {
        let later = ["+Task(reviewer)"];
        check(Mode::Default, &later, "Bash", &bash("ls"), Ask);
        check(Mode::Default, &later, "Read", &read("/etc/hosts", PathCare::Ordinary), Ask);
        let task = Subject::Tool { name: "Task".into() };
        check(Mode::Default, &later, "Task", &task, Ask);
        check(Mode::Bypass, &["-Task(reviewer)"], "Task", &task, Ask);
        check(Mode::Bypass, &["-Task(reviewer)"], "Bash", &bash("ls"), Allow);
    }

    #[test]
    fn pages_are_judged_by_their_host() {
        let web = |host: &str| Subject::Web { url: format!("https://{host}/x"), host: host.into() };
        let rule = ["+WebFetch(domain:example.org)"];
        for (rules, host, expected) in [
            (&[][..], "example.org", Ask),
            (&rule, "example.org", Allow),
            (&rule, "docs.example.org", Ask),
            (&rule, "example.org.", Allow),
            (&rule, "notexample.org", Ask),
            (&rule, "example.org.evil.net", Ask),
            (&["+WebFetch(domain:Example.ORG)"], "example.org", Allow),
            (&["+WebFetch"], "anywhere.net", Allow),
            (&["+WebFetch", "-WebFetch(domain:evil.net)"], "a.evil.net", Deny),
            (&["+WebFetch", "?WebFetch(domain:evil.net)"], "evil.net", Ask),
            (&["+Read", "+Bash"], "example.org", Ask),
        ] {
            check(Mode::Default, rules, "WebFetch", &web(host), expected);
        }
        check(Mode::Bypass, &["-WebFetch(domain:evil.net)"], "WebFetch", &web("evil.net"), Deny);
        check(Mode::DontAsk, &[], "WebFetch", &web("example.org"), Deny);
        let asked = check(Mode::Default, &[], "WebFetch", &web("docs.example.org"), Ask);
        assert_eq!(asked.suggestions, ["WebFetch(domain:docs.example.org)"]);
    }

    #[test]
    fn removing_a_file_asks_whatever_may_be_edited() {
        let delete = |text: &str, care| Subject::Delete { path: path(text, care) };
        let (inside, ordinary) = ("/w/proj/src/a.rs", PathCare::Ordinary);
        check(
            Mode::AcceptEdits,
            &["+Edit(src/**)", "+ApplyPatch"],
            "ApplyPatch",
            &delete(inside, ordinary),
            Ask,
        );
        check(Mode::Default, &["+Delete(src/**)"], "ApplyPatch", &delete(inside, ordinary), Allow);
        check(Mode::Default, &["+Delete(src/**)"], "ApplyPatch", &edit(inside, ordinary), Ask);
        check(Mode::Bypass, &["-Edit(src/**)"], "ApplyPatch", &delete(inside, ordinary), Deny);
        check(Mode::Bypass, &[], "ApplyPatch", &delete("/w/proj/.git/config", PathCare::Protected), Deny);
        check(Mode::Bypass, &[], "ApplyPatch", &delete(inside, ordinary), Allow);
        check(Mode::Plan, &["+Delete"], "ApplyPatch", &delete(inside, ordinary), Deny);
        check(Mode::DontAsk, &[], "ApplyPatch", &delete(inside, ordinary), Deny);
    }

    #[test]
    fn of_several_parts_the_strictest_verdict_counts() {
        let part = |text: &str, care| edit(text, care);
        let several = |parts: Vec<Subject>| Subject::Several { parts };
        let (a, b) = ("/w/proj/src/a.rs", "/w/proj/docs/b.md");
        let ordinary = PathCare::Ordinary;
        let both = several(vec![part(a, ordinary), part(b, ordinary)]);
        let asked = check(Mode::Default, &["+Edit(src/**)"], "ApplyPatch", &both, Ask);
        assert!(asked.suggestions.contains(&"Edit(docs/**)".to_owned()), "{asked:?}");
        check(Mode::Default, &["+Edit(src/**)", "+Edit(docs/**)"], "ApplyPatch", &both, Allow);
        check(Mode::AcceptEdits, &[], "ApplyPatch", &both, Allow);
        check(Mode::AcceptEdits, &["-Edit(docs/**)"], "ApplyPatch", &both, Deny);
        let hooks = part("/w/proj/.git/hooks/x", PathCare::Protected);
        check(Mode::Bypass, &[], "ApplyPatch", &several(vec![part(a, ordinary), hooks]), Deny);
        check(
            Mode::AcceptEdits,
            &[],
            "ApplyPatch",
            &several(vec![part(a, ordinary), part("/etc/x", ordinary)]),
            Ask,
        );
        check(Mode::AcceptEdits, &[], "ApplyPatch", &several(Vec::new()), Ask);
        check(Mode::Plan, &[], "ApplyPatch", &both, Deny);
        let moved = Subject::Several {
            parts: vec![Subject::Delete { path: path(a, ordinary) }, edit("/w/zz", ordinary)],
        };
        let asked = check(Mode::AcceptEdits, &[], "ApplyPatch", &moved, Ask);
        assert_eq!(asked.reason, "the path lies outside the workspace", "what needs more care is said");
    }

    #[test]
    fn files_that_need_care_pass_only_by_their_own_name() {
        use PathCare::{AutoExecuted, Protected, Secret};
        let (rc, key) = ("/home/u/.bashrc", "/home/u/.ssh/id_rsa");
        check(Mode::Default, &["+Edit(~/**)"], "Write", &edit(rc, AutoExecuted), Ask);
        check(Mode::Default, &["+Edit(~/.bashrc)"], "Write", &edit(rc, AutoExecuted), Allow);
        check(Mode::Default, &["+Read(~/**)"], "Read", &read(key, Secret), Ask);
        check(Mode::Default, &["+Read(~/.ssh/id_rsa)"], "Read", &read(key, Secret), Allow);
        check(Mode::Default, &["+Read"], "Read", &read(key, Secret), Ask);
        let hooks = "/w/proj/.git/hooks/pre-commit";
        check(Mode::Bypass, &["+Edit(.git/hooks/pre-commit)"], "Write", &edit(hooks, Protected), Deny);
    }

    #[test]
    fn a_reason_for_people_says_that_an_unattended_session_never_asks() {
        let denied = check(Mode::DontAsk, &[], "Bash", &bash("ls"), Deny);
        assert!(denied.reason.contains("never asks"), "{denied:?}");
        assert!(denied.suggestions.is_empty());
    }

    #[test]
    fn safe_mode_asks_whatever_is_allowed() {
        let rules = Rules::parse(&["Bash", "Read"], &[], &["Bash(rm:*)"]).unwrap();
        let policy = Policy {
            mode: Mode::Bypass,
            rules: &rules,
            grants: &[],
            workspace: Path::new("/w/proj"),
            additional: &[],
            home: Path::new("/home/u"),
            safe_mode: true,
            safe_commands: true,
            repository: Repository::Top,
        };
        let of = |subject: Subject| judge(&policy, "Bash", &subject).verdict;
        assert_eq!(of(bash("ls")), Ask);
        assert_eq!(of(read("/w/proj/a", PathCare::Ordinary)), Ask);
        assert_eq!(of(bash("rm a")), Deny);
        assert_eq!(of(edit("/w/proj/.git/config", PathCare::Protected)), Deny);
    }

    #[test]
    fn an_empty_command_a_nul_and_self_approval_are_denied() {
        check(Mode::Bypass, &["+Bash(agentctl:*)"], "Bash", &bash("agentctl approve 42"), Deny);
        check(Mode::Bypass, &[], "Bash", &bash("x=1; /usr/bin/agentctl 'approve' 42"), Deny);
        check(Mode::Bypass, &[], "Bash", &bash("agentctl ps"), Allow);
        check(Mode::Bypass, &["+Bash"], "Bash", &bash("  "), Deny);
        check(Mode::Bypass, &["+Bash"], "Bash", &bash("ls\0"), Deny);
    }

    #[test]
    fn the_parts_of_a_verdict_are_told_whole_and_never_many_times_the_command() {
        let told = |text: &str| {
            let asked = check(Mode::Default, &[], "Bash", &bash(text), Ask);
            let size = serde_json::to_string(&asked).unwrap().len();
            assert!(size < 600_000, "{size} bytes for {}", text.len());
            asked.parts
        };
        let long = format!("python3 -c '{}' && make", "x".repeat(60_000));
        let parts = told(&long);
        assert_eq!(parts.len(), 2);
        assert_eq!(format!("{} && {}", parts[0].command, parts[1].command), long);

        let nested = told(&format!("echo {}{}", "a".repeat(20_000), " \"$(b".repeat(7_000)));
        assert!(nested.len() > 1 && nested.last().unwrap().command.ends_with('…'), "{:?}", nested.last());
        told(&"\"$(".repeat(20_000));
    }
}
