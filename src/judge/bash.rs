//! The verdict on a Bash command: rules for its parts, then the approval mode.

use std::path::Path;

use super::Policy;
use super::glob::{ComparedPath, PathPattern, PatternBases};
use super::rule::{Pattern, Rule, verdict};
use super::shell::{Grant, ParsedLine, PartOutcome, PatternMatch};
use VerdictKind::{Allow, Ask, Deny};
use types::permission::{CommandPart, Mode, Verdict, VerdictKind};

/// A command line, parsed once and evaluated for each grant that could be suggested.
pub(super) struct BashCommand<'l> {
    policy: &'l Policy<'l>,
    command: &'l str,
    reading: &'l ParsedLine<'l>,
    /// The deny or ask rule for a file that the line names. It is searched for only once, because no
    /// grant changes it and the search inspects every word.
    file_rule: Option<&'l Rule>,
}

impl<'l> BashCommand<'l> {
    pub(super) fn new(policy: &'l Policy<'l>, command: &'l str, reading: &'l ParsedLine<'l>) -> Self {
        Self { policy, command, reading, file_rule: rule_for_named_file(policy, reading) }
    }

    /// Judges the command as if `extra` had been granted as well. Leaves out suggestions.
    pub(super) fn judge(&self, extra: Option<&Rule>) -> Verdict {
        let judged = judge_line(self, extra);
        if judged.verdict == Allow
            && let Some(reason) = self.reading.forbidden_by_choice()
        {
            return verdict(Deny, None, reason);
        }
        match self.reading.exceeds_work_budget() {
            // The search for denied commands may have stopped early, so nothing allows the line.
            Some(reason) if judged.verdict == Allow => {
                Verdict { verdict: Ask, rule: None, reason: reason.into(), ..judged }
            }
            _ => judged,
        }
    }
}

impl BashCommand<'_> {
    /// The outcome of each simple command, for any verdict on the whole line.
    pub(super) fn parts(&self) -> Vec<CommandPart> {
        let bare = verdict(Ask, None, "");
        if self.reading.is_unreadable().is_some() {
            bare.parts
        } else {
            with_parts(bare, self.policy, self.reading, None).parts
        }
    }
}

fn judge_line(line: &BashCommand<'_>, extra: Option<&Rule>) -> Verdict {
    let BashCommand { policy, command, reading, file_rule } = *line;
    if command.contains('\0') {
        return verdict(Deny, None, "the command holds a NUL");
    }
    if command.trim().is_empty() {
        return verdict(Deny, None, "the command is empty");
    }
    if let Some(reason) = reading.forbidden() {
        return verdict(Deny, None, reason);
    }
    let (denied, perhaps_denied) = search(&policy.rules.deny, reading);
    if let Some(rule) = denied {
        return verdict(Deny, Some(rule), format!("denied by the rule {rule}"));
    }
    if policy.mode == Mode::Plan
        && let Some(command) = may_change(reading)
    {
        let reason = format!(
            "plan mode runs only read-only commands until a plan is approved; not {}",
            text_start(&command)
        );
        return verdict(Deny, None, reason);
    }
    if policy.safe_mode {
        return verdict(Ask, None, "safe mode asks before every call");
    }
    let (ask_rule, perhaps_asked) = search(&policy.rules.ask, reading);
    if let Some(rule) = ask_rule {
        return with_parts(verdict(Ask, Some(rule), format!("the rule {rule} asks")), policy, reading, extra);
    }
    let mut perhaps = perhaps_denied.or(perhaps_asked);
    // A rule for a command could miss that command in a line that was not understood, so such a line
    // needs a request.
    let watched = || policy.rules.deny.iter().chain(&policy.rules.ask).find(|rule| is_command(rule));
    if perhaps.is_none()
        && let Some(rule) = watched()
        && !reading.is_understood()
    {
        perhaps = Some(rule);
    }
    // Rules for files are written for the file tools; they also apply to files that a line names
    // literally.
    let perhaps = perhaps.or(file_rule);
    let hidden = |rule: &Rule| {
        let reason = match is_command(rule) {
            true => format!("a command of the rule {rule} may hide in this text"),
            false => format!("the rule {rule} applies to a file that this command names"),
        };
        verdict(Ask, Some(rule), reason)
    };
    let granted = allow_rules(policy, extra).find(|rule| match &rule.pattern {
        Pattern::All => reading.is_unreadable().is_none(),
        Pattern::Command(pattern) => pattern.is_text(command),
        _ => false,
    });
    // A rule for this exact text overrides the guard; a rule for all commands does not.
    let is_exact = granted.is_some_and(|rule| !matches!(rule.pattern, Pattern::All));
    if policy.has_guard()
        && !is_exact
        && let Some(reason) = reading.caught_by_bypass_guard()
    {
        return with_parts(policy.guard_verdict(&reason), policy, reading, extra);
    }
    if let Some(rule) = granted {
        return match perhaps {
            None => verdict(Allow, Some(rule), format!("allowed by the rule {rule}")),
            Some(rule) => with_parts(hidden(rule), policy, reading, extra),
        };
    }
    if policy.mode == Mode::Bypass {
        return match perhaps {
            None => verdict(Allow, None, "the session runs everything that no rule denies"),
            Some(rule) => with_parts(hidden(rule), policy, reading, extra),
        };
    }
    let mut judged = with_parts(verdict(Allow, None, ""), policy, reading, extra);
    if let Some(part) = judged.parts.iter().find(|part| part.verdict != Allow) {
        judged.verdict = Ask;
        judged.reason = if judged.parts.len() > 1 {
            format!("{}: {}", text_start(&part.command), part.reason)
        } else {
            part.reason.clone()
        };
    } else if let Some(reason) = reading.unsupported(policy.safe_commands) {
        judged.verdict = Ask;
        judged.reason = reason.into();
    } else if judged.parts.is_empty() {
        judged.verdict = Ask;
        judged.reason = "no command was found in the text".into();
    } else if let Some(rule) = perhaps {
        judged = Verdict { parts: judged.parts, ..hidden(rule) };
    } else if !reading.is_confirmed() {
        judged.verdict = Ask;
        judged.reason = "the two shell parsers disagree about this command".into();
    } else {
        judged.rule = judged.parts.iter().find_map(|part| part.rule.clone());
        judged.reason = match &judged.rule {
            Some(rule) if judged.parts.len() == 1 => format!("allowed by the rule {rule}"),
            _ => "every part of the command is allowed".into(),
        };
    }
    judged
}

/// The first deny or ask rule for a file that the line names, or that a redirection writes.
fn rule_for_named_file<'p>(policy: &Policy<'p>, reading: &ParsedLine<'_>) -> Option<&'p Rule> {
    let rules = policy.rules.deny.iter().chain(&policy.rules.ask);
    let rules: Vec<(&'p Rule, &'p PathPattern, bool)> = rules
        .filter_map(|rule| match (&rule.pattern, rule.tool.as_str()) {
            (Pattern::Path(pattern), "Read") => Some((rule, pattern, false)),
            (Pattern::Path(pattern), "Edit") => Some((rule, pattern, true)),
            _ => None,
        })
        .collect();
    if rules.is_empty() {
        return None;
    }
    let bases = PatternBases::new(policy.workspace, policy.home);
    let of_kind = |writes: bool| rules.iter().filter(move |(.., of_writing)| *of_writing == writes);
    let matching = |path: &Path, writes: bool| {
        let path = ComparedPath::new(path, &bases);
        of_kind(writes).find(|(_, pattern, _)| pattern.matches_any_spelling(&path)).map(|(rule, ..)| *rule)
    };
    let any = |writes: bool| of_kind(writes).next().map(|(rule, ..)| *rule);
    reading.find_named_file(rules.len(), &matching, &any)
}

/// Whether the line certainly only reads files that lie in the workspace and hold no secrets.
pub(super) fn is_read_only(reading: &ParsedLine<'_>) -> bool {
    may_change(reading).is_none() && reading.exceeds_work_budget().is_none()
}

/// The first part of the line that may change something. It ignores grants, and it uses the table of
/// read-only commands even if `safe_commands` is off.
fn may_change(reading: &ParsedLine<'_>) -> Option<String> {
    if let Some(command) = reading.first_that_needs_grant() {
        return Some(command.into_owned());
    }
    let is_known = reading.has_commands() && reading.unsupported(true).is_none() && reading.is_confirmed();
    (!is_known).then(|| "a command that cannot be parsed with certainty".to_owned())
}

/// Maximum bytes of a verdict's parts. A line without nesting stays below it: each of its bytes appears
/// in one part, in the text and in a word. In nested substitutions every part contains all parts within
/// it.
const MAX_PARTS_BYTES: usize = 256 * 1024;

/// The start of a long text.
fn text_start(text: &str) -> String {
    let short: String = text.chars().take(80).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

fn with_parts(
    verdict: Verdict,
    policy: &Policy<'_>,
    reading: &ParsedLine<'_>,
    extra: Option<&Rule>,
) -> Verdict {
    let grants: Vec<Grant<'_, &Rule>> = allow_rules(policy, extra)
        .filter_map(|rule| match &rule.pattern {
            Pattern::Command(pattern) => Some(Grant { pattern, rule }),
            _ => None,
        })
        .collect();
    let mut left = MAX_PARTS_BYTES;
    let parts = reading
        .parts(&grants, policy.safe_commands)
        .into_iter()
        .map(|outcome| describe_part(outcome, &mut left));
    Verdict { parts: parts.collect(), ..verdict }
}

/// Describes a part. A part that is larger than the `left` bytes is cut to its beginning.
fn describe_part(outcome: PartOutcome<'_, &Rule>, left: &mut usize) -> CommandPart {
    let mut reason = match outcome.rule {
        Some(rule) => format!("allowed by the rule {rule}"),
        None => outcome.reason,
    };
    let (mut command, mut words) = (outcome.command.into_owned(), outcome.words);
    let size = command.len() + reason.len() + words.iter().map(|word| word.len() + 8).sum::<usize>();
    match left.checked_sub(size) {
        Some(rest) => *left = rest,
        None => {
            (command, reason) = (text_start(&command), text_start(&reason));
            words.truncate(8);
            words.iter_mut().for_each(|word| *word = text_start(word));
        }
    }
    CommandPart {
        command,
        words,
        verdict: if outcome.allowed { Allow } else { Ask },
        rule: outcome.rule.map(ToString::to_string),
        reason,
    }
}

fn is_command(rule: &Rule) -> bool {
    rule.tool == "Bash"
}

fn allow_rules<'p>(policy: &Policy<'p>, extra: Option<&'p Rule>) -> impl Iterator<Item = &'p Rule> {
    policy.rules.allow.iter().chain(policy.grants).chain(extra).filter(|rule| is_command(rule))
}

/// The first rule whose command was found, and the first one whose command cannot be excluded.
fn search<'r>(rules: &'r [Rule], reading: &ParsedLine<'_>) -> (Option<&'r Rule>, Option<&'r Rule>) {
    let mut perhaps = None;
    for rule in rules.iter().filter(|rule| is_command(rule)) {
        let found = match &rule.pattern {
            Pattern::All => PatternMatch::Yes,
            Pattern::Command(pattern) => reading.find_command(pattern),
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
