//! The judgement: rules first (deny, ask, allow), then the mode.

use std::path::{Path, PathBuf};

use super::bash;
use super::file_facts::FileRead;
use super::glob::{ComparedPath, PatternBases};
use super::policy::Policy;
use super::rule::{Pattern, Rule, verdict};
use super::shell::{Folders, ParsedLine, PatternMatch};
use super::suggest;
use types::permission::{Mode, Verdict, VerdictKind};
use types::slug::slug;
use types::tool::{PathSensitivity, ResolvedPath, Subject};

/// Judges one call of `tool` on `subject`. The function is total and pure. An `Ask` suggests the grants
/// that would allow this call, narrowest first. In the mode `dont_ask`, an `Ask` becomes a `Deny`.
#[must_use]
pub fn judge(policy: &Policy<'_>, tool: &str, subject: &Subject) -> Verdict {
    judge_all(policy, tool, subject, false)
}

/// As [`judge`], for a user who asks for an explanation. A denied command has its parts as well, and
/// each part that would be denied alone is marked as denied.
#[must_use]
pub fn explain(policy: &Policy<'_>, tool: &str, subject: &Subject) -> Verdict {
    let mut verdict = judge_all(policy, tool, subject, true);
    if verdict.verdict == VerdictKind::Deny {
        let mut left = MAX_SEPARATE_BYTES;
        for part in &mut verdict.parts {
            let Some(rest) = left.checked_sub(PART_OVERHEAD_BYTES + part.command.len()) else { break };
            left = rest;
            let alone = judge(policy, tool, &Subject::command(part.command.clone()));
            if alone.verdict == VerdictKind::Deny {
                part.verdict = VerdictKind::Deny;
                part.rule = alone.rule;
                part.reason = alone.reason;
            }
        }
    }
    verdict
}

/// Maximum bytes of parts that [`explain`] judges one by one. Each part counts its text and
/// `PART_OVERHEAD_BYTES`.
const MAX_SEPARATE_BYTES: usize = 8 * 1024;
const PART_OVERHEAD_BYTES: usize = 256;

/// The reads of a command that its verdict depends on, if no rule decides. Inspect them on the disk, and
/// pass the result to [`judge`] in [`Policy::file_facts`]. Like [`judge`], it is pure.
#[must_use]
pub fn file_reads(policy: &Policy<'_>, subject: &Subject) -> Vec<FileRead> {
    match (subject, folders_of(policy, subject)) {
        (Subject::Bash { command, .. }, Some(folders)) => ParsedLine::new(command, &folders).file_reads(),
        _ => Vec::new(),
    }
}

/// The folders of a command.
fn folders_of(policy: &Policy<'_>, subject: &Subject) -> Option<Folders> {
    let Subject::Bash { cwd, .. } = subject else { return None };
    let start = cwd.as_deref().unwrap_or(policy.workspace);
    let hides = |rule: &Rule| rule.tool == "Read" && matches!(rule.pattern, Pattern::Path(_));
    let has_file_rules = policy.rules.deny.iter().chain(&policy.rules.ask).any(hides);
    Some(
        Folders::new(policy.workspace, policy.additional, start, policy.home)
            .with_file_rules(has_file_rules)
            .with_repository(policy.repository)
            .with_key_folders(if policy.has_guard() { policy.key_folders } else { &[] }),
    )
}

fn judge_all(policy: &Policy<'_>, tool: &str, subject: &Subject, includes_parts: bool) -> Verdict {
    let folders = folders_of(policy, subject);
    let reading = match (subject, &folders) {
        (Subject::Bash { command, .. }, Some(folders)) => {
            Some(ParsedLine::new(command, folders).with_facts(policy.file_facts))
        }
        _ => None,
    };
    let line = match (subject, &reading) {
        (Subject::Bash { command, .. }, Some(reading)) => {
            Some(bash::BashCommand::new(policy, command, reading))
        }
        _ => None,
    };
    let judge_with = |extra: Option<&Rule>| match &line {
        Some(line) => line.judge(extra),
        None => judge_subject(policy, tool, subject, extra),
    };
    let mut verdict = judge_with(None);
    if includes_parts
        && verdict.parts.is_empty()
        && let Some(line) = &line
    {
        verdict.parts = line.parts();
    }
    let read_only_command =
        verdict.verdict != VerdictKind::Deny && reading.as_ref().is_some_and(bash::is_read_only);
    verdict.read_only =
        read_only_command && reading.as_ref().is_some_and(|reading| !reading.changes_folder());
    match (verdict.verdict, policy.mode) {
        (VerdictKind::Ask, Mode::DontAsk) => Verdict {
            verdict: VerdictKind::Deny,
            reason: format!("{}; this session never asks, and no rule allows it", verdict.reason),
            ..verdict
        },
        // An excessive line gets no suggestions, because no rule for a command can allow it and judging
        // each candidate is slow.
        (VerdictKind::Ask, _) if reading.as_ref().is_some_and(ParsedLine::is_excessive) => verdict,
        (VerdictKind::Ask, _) => {
            let is_safe = |rule: &Rule| {
                let is_prefix = rule.as_str().ends_with(":*)");
                reading.as_ref().is_none_or(|reading| reading.may_be_offered(is_prefix))
            };
            let words = reading.as_ref().and_then(ParsedLine::single_command);
            let mut candidates = suggest::candidates(policy.workspace, policy.home, subject);
            let prefix = words.and_then(|words| suggest::prefix(&words));
            candidates.extend(prefix.filter(|rule| !candidates.contains(rule)));
            let suggestions = candidates
                .into_iter()
                .filter(is_safe)
                .filter(|rule| judge_with(Some(rule)).verdict == VerdictKind::Allow)
                .map(|rule| rule.to_string())
                .collect();
            let read_only_command = verdict.rule.is_none() && read_only_command;
            Verdict { suggestions, read_only_command, ..verdict }
        }
        _ => verdict,
    }
}

/// The judgement without suggestions, as if `extra` had been granted as well.
fn judge_subject(policy: &Policy<'_>, tool: &str, subject: &Subject, extra: Option<&Rule>) -> Verdict {
    use VerdictKind::{Allow, Ask, Deny};

    if let Subject::Several { parts } = subject {
        let strictness = |verdict: &Verdict| match verdict.verdict {
            Allow => 0,
            Ask => 1,
            Deny => 2,
        };
        // If several parts have the same verdict, report one that is sensitive or outside the
        // workspace, else the first one.
        let is_sensitive_or_outside = |part: &Subject| match part {
            Subject::Read { path } | Subject::Edit { path } | Subject::Delete { path } => {
                !path.in_workspace || path.sensitivity != PathSensitivity::Ordinary
            }
            _ => false,
        };
        let weighed = parts
            .iter()
            .rev()
            .map(|part| (judge_subject(policy, tool, part, extra), is_sensitive_or_outside(part)));
        return weighed
            .max_by_key(|(verdict, is_sensitive_or_outside)| (strictness(verdict), *is_sensitive_or_outside))
            .map_or_else(
                || verdict(Ask, None, "the call does not say what it touches"),
                |(verdict, _)| verdict,
            );
    }
    // If the text to replace is missing, these tools show the most similar text of the file. So rules
    // that deny or ask before reading apply to them as well.
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
        && let ResolvedPath { sensitivity: PathSensitivity::Protected, path, .. } = path
    {
        let reason = format!("{} is protected: nothing allows writing there", path.display());
        return verdict(Deny, None, reason);
    }
    if policy.mode == Mode::Plan && subject.changes_files() {
        return verdict(Deny, None, "plan mode changes no files until a plan is approved");
    }
    if let Subject::Question { .. } = subject {
        return verdict(Allow, None, "asking the user needs no permission");
    }
    if policy.safe_mode {
        return verdict(Ask, None, "safe mode asks before every call");
    }
    let (ask_rule, perhaps_asked) = search(policy, &policy.rules.ask, tool, subject);
    if let Some(rule) = ask_rule.or_else(|| read_by(&policy.rules.ask)) {
        return verdict(Ask, Some(rule), format!("the rule {rule} asks"));
    }
    // Stored rules and grants were given for an earlier definition of the tool. Only `extra` is for the
    // changed definition.
    let is_changed = matches!(subject, Subject::Mcp { is_changed: true, .. });
    let stored_rules = policy.rules.allow.iter().chain(policy.grants).filter(|_| !is_changed);
    let granted = stored_rules
        .chain(extra)
        .filter(|rule| rule.may_grant(tool, subject))
        .find(|rule| covers_call(policy, rule, subject));
    if let Subject::Edit { path } | Subject::Delete { path } = subject
        && policy.has_guard()
        && is_key(path, policy.key_folders)
        && !granted.is_some_and(|rule| names_exactly(policy, rule, path))
    {
        return policy.guard_verdict(&format!("{} lies in a folder of keys", path.path.display()));
    }
    if let Some(rule) = granted
        && (policy.mode != Mode::Plan || is_read(subject))
    {
        return verdict(Allow, Some(rule), format!("allowed by the rule {rule}"));
    }
    let perhaps = perhaps_denied.or(perhaps_asked).or_else(|| rule_for_hard_link(policy, tool, subject));
    verdict_of_mode(policy.mode, perhaps, subject)
}

/// A deny or ask rule that may apply to another hard link of the file, whose name is unknown.
fn rule_for_hard_link<'p>(policy: &Policy<'p>, tool: &str, subject: &Subject) -> Option<&'p Rule> {
    let (Subject::Read { path } | Subject::Edit { path } | Subject::Delete { path }) = subject else {
        return None;
    };
    let mut rules = policy
        .rules
        .deny
        .iter()
        .chain(&policy.rules.ask)
        .filter(|_| path.sensitivity == PathSensitivity::HardLinked);
    rules.find(|rule| matches!(rule.pattern, Pattern::Path(_)) && rule.applies_to(tool, subject))
}

fn is_read(subject: &Subject) -> bool {
    matches!(subject, Subject::Read { .. })
}

const OTHER_NAMES: &str = "the file has other names (hard links), perhaps outside the workspace";

/// The verdict of the approval mode for a call that no rule decides. `perhaps` is a deny or ask rule
/// that may apply, for example because the text may contain its command.
fn verdict_of_mode(mode: Mode, perhaps: Option<&Rule>, subject: &Subject) -> Verdict {
    use VerdictKind::{Allow, Ask};
    if mode == Mode::Bypass {
        return match perhaps {
            Some(rule) => {
                let reason = match rule.pattern {
                    Pattern::Path(_) => {
                        format!("{OTHER_NAMES}, and the rule {rule} may apply to one of them")
                    }
                    _ => format!("a command of the rule {rule} may hide in this text"),
                };
                verdict(Ask, Some(rule), reason)
            }
            None => verdict(Allow, None, "the session runs everything that no rule denies"),
        };
    }
    match subject {
        Subject::Read { path } => match (path.in_workspace, path.sensitivity) {
            (_, PathSensitivity::Secret) => verdict(Ask, None, "the file likely holds secrets"),
            (_, PathSensitivity::HardLinked) => verdict(Ask, None, OTHER_NAMES),
            (true, _) => verdict(Allow, None, "reading inside the workspace"),
            (false, _) => verdict(Ask, None, "the path lies outside the workspace"),
        },
        Subject::Edit { path } => match (mode, path.in_workspace, path.sensitivity) {
            (_, _, PathSensitivity::AutoExecuted) => {
                verdict(Ask, None, "the file is run or applied automatically")
            }
            (_, _, PathSensitivity::Secret) => verdict(Ask, None, "the file likely holds secrets"),
            (_, _, PathSensitivity::HardLinked) => verdict(Ask, None, OTHER_NAMES),
            (Mode::AcceptEdits, true, PathSensitivity::Ordinary) => {
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
        Subject::Blob { .. } => verdict(Allow, None, "content that this session already has"),
        Subject::Session { .. } => verdict(Allow, None, "it reaches only the session itself"),
        Subject::Question { .. } => verdict(Allow, None, "asking the user needs no permission"),
        Subject::ProposedPlan(_) => verdict(Ask, None, "a plan needs the user's approval"),
        Subject::Background { .. } => verdict(Allow, None, "a command of this session itself"),
        Subject::Task { .. } => verdict(Allow, None, "each call of a sub-agent is judged by itself"),
        Subject::Mcp { name, is_changed: true, .. } => {
            verdict(Ask, None, format!("the definition of {name} has changed since it was approved"))
        }
        Subject::Tool { name } | Subject::Mcp { name, .. } => {
            verdict(Ask, None, format!("no rule allows {name}"))
        }
    }
}

/// The first rule that applies, and the first rule that may apply.
fn search<'r>(
    policy: &Policy<'_>,
    rules: &'r [Rule],
    tool: &str,
    subject: &Subject,
) -> (Option<&'r Rule>, Option<&'r Rule>) {
    if rules.is_empty() {
        return (None, None);
    }
    let mut perhaps = None;
    let bases = PatternBases::new(policy.workspace, policy.home);
    let names: Vec<ComparedPath<'_>> = match subject {
        Subject::Read { path } | Subject::Edit { path } | Subject::Delete { path } => {
            let names = std::iter::once(&path.path).chain(&path.matched_aliases);
            names.map(|name| ComparedPath::new(name, &bases)).collect()
        }
        _ => Vec::new(),
    };
    for rule in rules.iter().filter(|rule| rule.applies_to(tool, subject)) {
        let found = match (&rule.pattern, subject) {
            (Pattern::All, _) => PatternMatch::Yes,
            (Pattern::Path(pattern), _) if names.iter().any(|name| pattern.matches_any_spelling(name)) => {
                PatternMatch::Yes
            }
            (Pattern::Domain(domain), Subject::Web { host, .. }) if domain.covers(host) => PatternMatch::Yes,
            // For a rule that restricts, another case is the same name.
            (Pattern::Agent(name), Subject::Task { agent, .. })
                if name.eq_ignore_ascii_case(&slug(agent)) =>
            {
                PatternMatch::Yes
            }
            _ => PatternMatch::No,
        };
        match found {
            PatternMatch::Yes => return (Some(rule), perhaps),
            PatternMatch::Perhaps => perhaps = perhaps.or(Some(rule)),
            PatternMatch::No => {}
        }
    }
    (None, perhaps)
}

/// Whether a rule denies `tool` reading `path` (absolute, resolved), or asks before it. Calls that read
/// more than the path that they name, for example a search in a folder, leave such files out.
#[must_use]
pub fn is_unreadable(policy: &Policy<'_>, tool: &str, path: &Path) -> bool {
    let bases = PatternBases::new(policy.workspace, policy.home);
    let path = ComparedPath::new(path, &bases);
    policy.rules.deny.iter().chain(&policy.rules.ask).any(|rule| match &rule.pattern {
        Pattern::Path(pattern) if rule.tool == "Read" || rule.tool == tool => {
            pattern.matches_any_spelling(&path)
        }
        _ => false,
    })
}

/// Whether the path or one of its aliases is a folder of keys or lies in one.
fn is_key(path: &ResolvedPath, key_folders: &[PathBuf]) -> bool {
    let mut names = std::iter::once(&path.path).chain(&path.matched_aliases);
    names.any(|name| key_folders.iter().any(|folder| name.starts_with(folder)))
}

fn names_exactly(policy: &Policy<'_>, rule: &Rule, path: &ResolvedPath) -> bool {
    matches!(&rule.pattern, Pattern::Path(pattern)
        if pattern.names_exactly(&path.path, policy.workspace, policy.home))
}

/// Whether an allow rule covers the call. Only a rule that names exactly this file covers a sensitive
/// file.
fn covers_call(policy: &Policy<'_>, rule: &Rule, subject: &Subject) -> bool {
    match (&rule.pattern, subject) {
        (Pattern::Domain(domain), Subject::Web { host, .. }) => domain.covers_host(host),
        (pattern, Subject::Read { path } | Subject::Edit { path } | Subject::Delete { path }) => {
            let careful = match path.sensitivity {
                PathSensitivity::Ordinary => false,
                PathSensitivity::Secret | PathSensitivity::HardLinked => true,
                PathSensitivity::AutoExecuted | PathSensitivity::Protected => !is_read(subject),
            };
            match pattern {
                Pattern::Path(pattern) if careful => {
                    pattern.names_exactly(&path.path, policy.workspace, policy.home)
                }
                Pattern::Path(pattern) => pattern.matches(&path.path, policy.workspace, policy.home),
                Pattern::All => !careful,
                Pattern::Command(_) | Pattern::Domain(_) | Pattern::Unsandboxed | Pattern::Agent(_) => false,
            }
        }
        (Pattern::Agent(name), Subject::Task { agent, .. }) => *name == slug(agent),
        (Pattern::All, _) => true,
        _ => false,
    }
}

#[cfg(test)]
mod guard_tests;
#[cfg(test)]
mod tests;
