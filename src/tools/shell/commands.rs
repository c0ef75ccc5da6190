//! The tools BashOutput and KillBash: output and end of a background task. Both can access only the tasks of
//! their own session.

use std::time::Duration;

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::background_task::BackgroundTaskView;
use crate::capture::OutputPart;
use crate::context::ToolContext;
use crate::error::{ToolError, cancelled};
use types::background::{BackgroundEnd, BackgroundRead, BackgroundState, BashId, KilledBy};
use types::blob::BlobRef;
use types::tool::{PreparedCall, Subject, ToolOutcome};

/// Bytes of the head, and of the tail, of new output of a task that has ended.
const EXCERPT_END_BYTES: u64 = 128 << 10;
/// Bytes that a compiled filter may use.
const MAX_FILTER_BYTES: usize = 1 << 20;
/// Time limit for ending a task: TERM, two seconds, KILL, at most five seconds, and the write to the journal.
const KILL_TIMEOUT: Duration = Duration::from_secs(15);

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct OutputInput {
    /// The background command, as Bash named it: bash_1 and so on.
    #[serde(alias = "shell_id")]
    bash_id: String,
    /// Only lines that match this regular expression; the others are not shown later either.
    #[serde(default)]
    filter: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct KillInput {
    /// The background command, as Bash named it: bash_1 and so on.
    #[serde(alias = "bash_id")]
    shell_id: String,
}

pub(crate) const OUTPUT: &str = "Shows what a background command has said since you last looked, whether \
    it still runs, and how it ended. Does not wait for more.";

pub(crate) const KILL: &str = "Ends a background command with all that it started, and lists those \
    that still run.";

pub(crate) fn prepare_output(context: &ToolContext, input: &OutputInput) -> Result<PreparedCall, ToolError> {
    filter(input)?;
    let bash_id = find(context, &input.bash_id)?.command.bash_id;
    Ok(prepare_task_read(bash_id, format!("Read the output of {bash_id}")))
}

pub(crate) fn prepare_kill(context: &ToolContext, input: &KillInput) -> Result<PreparedCall, ToolError> {
    let command = &find(context, &input.shell_id)?.command;
    Ok(prepare_task_end(command.bash_id, format!("End {} ({})", command.bash_id, one_line(&command.command))))
}

fn prepare_task_read(bash_id: BashId, summary: String) -> PreparedCall {
    PreparedCall { read_only: true, ..prepare_task_end(bash_id, summary) }
}

fn prepare_task_end(bash_id: BashId, summary: String) -> PreparedCall {
    let subject = Subject::Background { bash_id };
    PreparedCall { subject, summary, diff: None, read_only: false, change: None, sandbox: None }
}

fn find<'c>(context: &'c ToolContext, text: &str) -> Result<&'c BackgroundTaskView, ToolError> {
    let commands = &context.session_context.commands;
    let bash_id: Option<BashId> = text.parse().ok();
    let found = bash_id.and_then(|bash_id| commands.iter().find(|it| it.command.bash_id == bash_id));
    found.ok_or_else(|| {
        let names: Vec<String> = commands.iter().map(|it| it.command.bash_id.to_string()).collect();
        let there = match names.as_slice() {
            [] => "none was started, or all are long over".to_owned(),
            names => format!("known: {}", names.join(", ")),
        };
        ToolError::new("unknown_command", format!("there is no background command {text:?}; {there}"))
            .with(json!({ "known": names }))
    })
}

fn filter(input: &OutputInput) -> Result<Option<RegexMatcher>, ToolError> {
    let Some(pattern) = input.filter.as_deref().filter(|pattern| !pattern.is_empty()) else {
        return Ok(None);
    };
    match RegexMatcherBuilder::new().size_limit(MAX_FILTER_BYTES).build(pattern) {
        Ok(matcher) => Ok(Some(matcher)),
        Err(error) => {
            let why = format!("filter is not a usable regular expression: {error}");
            Err(ToolError::new("invalid_input", why).with(json!({ "path": "filter" })))
        }
    }
}

fn one_line(command: &str) -> String {
    let line = command.lines().next().unwrap_or_default();
    let short: String = line.chars().take(60).collect();
    if short.len() < command.len() { format!("{short} …") } else { short }
}

/// Blocks on the disk if the task has ended.
pub(crate) fn run_output(
    context: &ToolContext,
    input: &OutputInput,
    stop: &CancellationToken,
) -> Result<ToolOutcome, ToolError> {
    if stop.is_cancelled() {
        return Ok(cancelled());
    }
    let matcher = filter(input)?;
    let BackgroundTaskView { command, live } = find(context, &input.bash_id)?;
    let from = command.read_bytes;
    let (bytes, piece) = match (&command.end, live) {
        (Some(end), _) => (end.output_bytes, stored_output_after(context, end, from)?),
        (None, Some(live)) => live.output_since(from),
        (None, None) => (from, no_output()),
    };
    let is_lost = command.end.is_none() && live.is_none();
    let mut text = match &command.end {
        Some(end) => format!("{} {}", command.bash_id, describe_end(command.state, end)),
        None if is_lost => format!("{} runs no more; its end is not in the journal yet.", command.bash_id),
        None => format!("{} is running.", command.bash_id),
    };
    let (fresh, is_cut) = visible_output(piece, matcher.as_ref(), context.settings.output_cap);
    text.push('\n');
    match (fresh.is_empty(), bytes > from, &matcher) {
        (true, true, Some(_)) => text.push_str("No new line matches the filter."),
        (true, ..) => text.push_str("No new output."),
        (false, ..) => {
            text.push_str("New output:\n");
            text.push_str(&fresh);
        }
    }
    if let Some(note) = command.end.as_ref().and_then(|end| end.note.as_ref()) {
        text.push_str(if text.ends_with('\n') { "" } else { "\n" });
        text.push_str(note);
    }
    let end = command.end.as_ref();
    let detail = json!({
        "bash_id": command.bash_id,
        "state": command.state,
        "exit_code": end.and_then(|end| end.exit_code),
        "signal": end.and_then(|end| end.signal),
        "from_bytes": from,
        "to_bytes": bytes,
        "truncated": is_cut,
    });
    let background_read = Some(BackgroundRead { bash_id: command.bash_id, bytes });
    Ok(ToolOutcome { detail: Some(detail), background_read, ..ToolOutcome::completed(text) })
}

/// Describes how a task ended.
fn describe_end(state: BackgroundState, end: &BackgroundEnd) -> String {
    match (state, end.signal, end.exit_code) {
        (BackgroundState::Running, ..) => "is running.".into(),
        (BackgroundState::Exited, Some(signal), _) => format!("was ended by signal {signal}."),
        (BackgroundState::Exited, None, Some(code)) => format!("has ended with exit code {code}."),
        (BackgroundState::Exited, None, None) => "has ended; its exit code is unknown.".into(),
        (BackgroundState::Killed, ..) => match end.killed_by {
            Some(KilledBy::Tool) => "was ended with KillBash.".into(),
            Some(KilledBy::Abort) => "was ended because the user stopped the turn or the call.".into(),
            Some(KilledBy::Shutdown) => "was ended because the daemon stopped.".into(),
            Some(KilledBy::Session) | None => "was ended.".into(),
        },
        (BackgroundState::TimedOut, ..) => "was ended because its time was over.".into(),
        (BackgroundState::Lost, ..) => "was lost when the daemon restarted: it runs no more.".into(),
    }
}

fn no_output() -> OutputPart {
    OutputPart { before: String::new(), gap_bytes: 0, rest: String::new() }
}

/// The stored output of a task that has ended, after the first `from` bytes.
fn stored_output_after(
    context: &ToolContext,
    end: &BackgroundEnd,
    from: u64,
) -> Result<OutputPart, ToolError> {
    let unread = end.output_bytes.saturating_sub(from);
    let (Some(BlobRef { blob_id, bytes, .. }), Some(blobs)) =
        (&end.output_blob, &context.session_context.blobs)
    else {
        return Ok(no_output());
    };
    if unread == 0 {
        return Ok(no_output());
    }
    let read = |offset: u64, most: u64| {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let read = blobs.read(*blob_id, offset, most);
        read.map_err(|why| ToolError::new("io_error", format!("the output could not be read: {why}")))
    };
    // If the middle of a long output was left out, the new output is at its end.
    let start = from.min(*bytes).max(bytes.saturating_sub(unread));
    let left = bytes - start;
    if left <= 2 * EXCERPT_END_BYTES {
        return Ok(OutputPart { before: text_of(&read(start, left)?), gap_bytes: 0, rest: String::new() });
    }
    let (before, rest) = (
        text_of(&read(start, EXCERPT_END_BYTES)?),
        text_of(&read(bytes - EXCERPT_END_BYTES, EXCERPT_END_BYTES)?),
    );
    Ok(OutputPart { before, gap_bytes: left - 2 * EXCERPT_END_BYTES, rest })
}

/// Decodes bytes that may begin or end inside a character.
fn text_of(bytes: &[u8]) -> String {
    let cut = bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
    String::from_utf8_lossy(&bytes[cut..]).into_owned()
}

/// The new output for the model as a terminal shows it, and whether a part is missing.
fn visible_output(piece: OutputPart, filter: Option<&RegexMatcher>, cap: usize) -> (String, bool) {
    let matching = |text: String| match filter {
        None => text,
        Some(filter) => text
            .split_inclusive('\n')
            .filter(|line| filter.is_match(line.trim_end_matches('\n').as_bytes()).unwrap_or(false))
            .collect(),
    };
    let OutputPart { before, gap_bytes, rest } = piece.shown().0;
    OutputPart { before: matching(before), gap_bytes, rest: matching(rest) }.shorten(cap)
}

/// Returns when the task has ended and its end is in the journal.
pub(crate) async fn run_kill(
    context: &ToolContext,
    input: &KillInput,
    stop: &CancellationToken,
) -> Result<ToolOutcome, ToolError> {
    let BackgroundTaskView { command, live } = find(context, &input.shell_id)?;
    let bash_id = command.bash_id;
    if let Some(end) = &command.end {
        let why = format!("{bash_id} does not run any more: it {}", describe_end(command.state, end));
        return Err(ToolError::new("not_running", why));
    }
    let Some(live) = live else {
        return Err(ToolError::new("not_running", format!("{bash_id} does not run any more")));
    };
    live.stop(KilledBy::Tool);
    tokio::select! {
        biased;
        ended = timeout(KILL_TIMEOUT, live.wait_written()) => if ended.is_err() {
            let why = format!("{bash_id} received the signal to end and still runs; BashOutput reports its end");
            return Err(ToolError::new("still_ending", why));
        },
        () = stop.cancelled() => return Ok(cancelled()),
    }
    let others = context
        .session_context
        .commands
        .iter()
        .filter(|it| it.command.end.is_none() && it.command.bash_id != bash_id);
    let others: Vec<String> =
        others.map(|it| format!("{} ({})", it.command.bash_id, one_line(&it.command.command))).collect();
    let still = match others.as_slice() {
        [] => "No other runs in the background.".to_owned(),
        others => format!("Still running in the background: {}.", others.join(", ")),
    };
    let text = format!(
        "{bash_id} ({}) is ended. BashOutput still gives what it said last. {still}",
        one_line(&command.command)
    );
    Ok(ToolOutcome { detail: Some(json!({ "bash_id": bash_id })), ..ToolOutcome::completed(text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output_part(before: &str, gap_bytes: u64, rest: &str) -> OutputPart {
        OutputPart { before: before.into(), gap_bytes, rest: rest.into() }
    }

    #[test]
    fn output_filter_selects_lines_and_limit_keeps_ends() {
        let matcher = RegexMatcher::new("^err|7$").expect("a pattern");
        let text = "error 1\nfine\r\n\u{1b}[31merr 2\u{1b}[m\r\n1 7\rnumber 7";
        assert_eq!(
            visible_output(output_part(text, 0, ""), Some(&matcher), 100),
            ("error 1\nerr 2\nnumber 7".into(), false)
        );
        assert_eq!(visible_output(output_part("abc", 0, "def"), None, 100), ("abcdef".into(), false));
        let (cut, is_cut) = visible_output(output_part("abcdefgh", 0, ""), None, 4);
        assert!(is_cut && cut.starts_with("ab\n") && cut.ends_with("\ngh"), "{cut}");
        let (holed, is_cut) = visible_output(output_part("begin", 5_000, "end"), None, 100);
        assert_eq!((holed.as_str(), is_cut), ("begin\n[… 5000 bytes were left out here …]\nend", true));
    }
}
