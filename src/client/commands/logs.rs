//! `agentctl logs`: the events of a session, as readable lines or as JSON, without attaching.

use std::io::IsTerminal as _;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::params::EventsParams;
use crate::client::args::{LogsArgs, Since};
use crate::client::connection::client::Client;
use crate::client::connection::connector::Connector;
use crate::client::connection::follow::{Follow, Step};
use crate::client::connection::wire::Received;
use crate::client::failure::Failure;
use crate::client::resolve_id;
use crate::client::terminal::escape;
use crate::client::terminal::format::now;
use crate::client::terminal::out::{Out, harmless_json};
use crate::client::terminal::style::{Line, Tone, pad};
use crate::client::ui::question;
use crate::client::ui::summary::{call_summary, one_line};
use crate::types::event::{Envelope, Event};
use crate::types::ids::{Seq, SessionId};
use crate::types::message::input_line;
use crate::types::time::Timestamp;
use crate::types::todo::TodoStatus;

/// A page of events with their original JSON texts.
#[derive(Deserialize)]
struct Page {
    events: Vec<Box<RawValue>>,
    #[serde(default)]
    next_cursor: Option<String>,
}

pub(in crate::client) async fn logs(
    reach: &Connector,
    args: &LogsArgs,
    out: &mut Out,
) -> Result<(), Failure> {
    let reach = &reach.observing();
    let client = reach.connect_or_start().await?;
    let session = resolve_id::session(&client, &args.session).await?.session_id;
    let last = history(&client, session, args, out).await?;
    if !args.follow {
        return Ok(());
    }
    let mut follow = Follow::start(reach, &client, session, last).await?.as_sent();
    loop {
        match follow.next().await? {
            Step::Event(received) => print(&received, args, out)?,
            Step::Lost => out.note("lost the daemon; looking for it…")?,
            Step::Back(_) => out.note("the daemon is back")?,
        }
    }
}

/// Prints the existing events and returns the newest seq.
async fn history(
    client: &Client,
    session: SessionId,
    args: &LogsArgs,
    out: &mut Out,
) -> Result<Seq, Failure> {
    let (after_seq, from) = match args.since {
        None => (0, Timestamp(i64::MIN)),
        Some(Since::Seq(seq)) => (seq, Timestamp(i64::MIN)),
        Some(Since::Ago(ms)) => (0, Timestamp(now().0.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX)))),
    };
    let mut params = EventsParams { after_seq, limit: Some(500), ..EventsParams::for_session(session) };
    let mut last = after_seq;
    loop {
        let page: Page = client.call("session.events", &params).await?;
        for raw in &page.events {
            let received = Received::parse(raw).map_err(|e| Failure::internal(format!("an event: {e}")))?;
            last = last.max(received.seq);
            if received.event.as_ref().is_none_or(|e| e.at_ms >= from) {
                print(&received, args, out)?;
            }
        }
        match page.next_cursor {
            Some(cursor) => params.cursor = Some(cursor),
            None => return Ok(last),
        }
    }
}

fn print(received: &Received, args: &LogsArgs, out: &mut Out) -> std::io::Result<()> {
    if args.json {
        let raw = received.raw.get();
        return if std::io::stdout().is_terminal() { out.say(&harmless_json(raw)) } else { out.say(raw) };
    }
    match received.event.as_ref() {
        Some(envelope) => match log_line(envelope) {
            Some(line) => out.line(&line),
            None => Ok(()),
        },
        None => out.note(&format!("{:>6}           {}", received.seq, escape::line(&received.kind))),
    }
}

/// One event in one line; `None` for deltas, whose text a later event repeats.
fn log_line(envelope: &Envelope) -> Option<Line> {
    let repeats = matches!(
        envelope.event,
        Event::MessageBlockStarted { .. }
            | Event::MessageBlockCompleted { .. }
            | Event::MessageStarted { .. }
    );
    if envelope.event.is_delta() || repeats {
        return None;
    }
    let said = what(envelope);
    let origin = envelope.origin.as_ref().map(|o| format!(" by {}", escape::line(&o.client)));
    let tone = match &envelope.event {
        Event::Error { .. } => Tone::Bad,
        Event::PermissionRequested { .. }
        | Event::QuestionRequested { .. }
        | Event::FeedbackRequested { .. }
        | Event::Retry { .. }
        | Event::StreamIdle { .. }
        | Event::ModelSwitched { .. }
        | Event::MediaWithheld { .. } => Tone::Warn,
        _ => Tone::Plain,
    };
    Some(
        Line::new(Tone::Dim, format!("{:>6} {} ", envelope.seq, clock(envelope.at_ms)))
            .and(Tone::Tool, pad(envelope.event.kind(), 24))
            .and(tone, format!(" {said}"))
            .and(Tone::Dim, origin.unwrap_or_default()),
    )
}

fn what(envelope: &Envelope) -> String {
    let said = match &envelope.event {
        Event::SessionCreated(spec) => format!("{} in {}", spec.model, spec.cwd),
        Event::SessionStatus { state, requires } => {
            format!("{}{}", state.name(), requires.map(|r| format!(": {}", name(&r))).unwrap_or_default())
        }
        Event::TurnResumed { resumes, delay_ms } => format!("resume {resumes}, in {delay_ms} ms"),
        Event::HistoryRepaired { changes, .. } => changes.join("; "),
        Event::UsageBooked { model, usage, reason, estimated, .. } => {
            let about = if *estimated { "at most " } else { "" };
            let (sent, got) = (usage.input_tokens, usage.output_tokens);
            format!("{}: {model}, {about}{sent} tokens in, {about}{got} out", name(reason))
        }
        Event::HelperStarted { purpose, model, .. } => format!("{}: {model}", name(purpose)),
        Event::HelperCompleted { purpose, model, fault, detail, .. } => {
            let fault = fault.as_ref().map(|fault| format!(": {fault}")).unwrap_or_default();
            let detail = detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default();
            format!("{}: {model}{fault}{detail}", name(purpose))
        }
        Event::QuestionRequested { question } => {
            let call = question.tool.as_ref().zip(question.input.as_ref());
            let call = call.map(|(tool, input)| call_summary(tool, input)).unwrap_or_default();
            return format!("{} {} {call}", question.request_id, question.kind.name());
        }
        Event::QuestionResolved { request_id, choice, answers, by, .. } => {
            let said = match choice {
                Some(choice) => choice.name().to_owned(),
                None => answers.iter().map(question::answer_text).collect::<Vec<_>>().join(" · "),
            };
            format!("{request_id} {said} by {}", name(by))
        }
        Event::FeedbackRequested { request_id, item_ids } => {
            let items: Vec<String> = item_ids.iter().map(ToString::to_string).collect();
            return format!("{request_id}: {}", items.join(" or "));
        }
        Event::FeedbackCompleted { by, .. } => {
            let chosen = envelope.item_id.map_or_else(|| "none".to_owned(), |item_id| item_id.to_string());
            format!("{chosen}, by {}", name(by))
        }
        Event::SessionAttached { clients } | Event::SessionDetached { clients } => {
            format!("{clients} clients")
        }
        Event::ConfigReloaded { changed, needs_restart } => {
            let restart = match needs_restart.as_slice() {
                [] => String::new(),
                keys => format!("; after a restart: {}", keys.join(", ")),
            };
            format!("{}{restart}", changed.join(", "))
        }
        Event::SessionEnded { reason } => reason.clone(),
        Event::CommandCompleted { name, arguments, text } => format!("{name} {arguments}: {text}"),
        Event::ReminderAdded { text, .. } => text.clone(),
        Event::TurnOutputRejected { errors, .. } => errors.join("; "),
        Event::SessionPromptBuilt { system, sources, .. } | Event::TurnPromptBuilt { system, sources } => {
            let from =
                if sources.is_empty() { String::new() } else { format!(" from {}", sources.join(", ")) };
            format!("{} bytes of system prompt{from}", system.len())
        }
        Event::TurnQueued { input, .. } | Event::TurnSteered { input } => input_line(input),
        Event::TurnStarted { options } => {
            let model = options.model.as_deref().unwrap_or_default();
            format!("{model}, mode {}", options.mode.unwrap_or_default().name())
        }
        Event::TurnCompleted { result } => format!("{}: {}", result.subtype.name(), result.text),
        Event::TurnPhase { phase, .. } => format!("{} {}", name(phase), envelope.step.unwrap_or_default()),
        Event::ToolSummary { text, .. } => text.clone(),
        Event::BudgetWarning { budget, used, limit } => format!("{}: {used} of {limit}", budget.name()),
        Event::CompactStarted { stage, trigger, tokens_before, .. } => {
            format!("{}, {}: {tokens_before} tokens", stage.name(), name(trigger))
        }
        Event::CompactCompleted { stage, tokens_before, tokens_after, error, .. } => {
            let failed = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            format!("{}: {tokens_before} -> {tokens_after} tokens{failed}", stage.name())
        }
        Event::ToolStatus { call_id, allowed_by, .. } => format!("{call_id} allowed by {allowed_by}"),
        Event::MessageCompleted { item, superseded, .. } => {
            format!(
                "{} {}{}: {}",
                item.kind.name(),
                item.status.name(),
                if *superseded { ", tried again" } else { "" },
                item.text.as_deref().unwrap_or_default()
            )
        }
        Event::ToolRequested { call_id, tool, input, .. } => {
            return format!("{call_id} {}", call_summary(tool, input));
        }
        Event::ToolStarted { call_id, tool, allowed_by, attempt, .. } => {
            let how = if *attempt == 1 { "" } else { " again, outside the sandbox" };
            format!("{call_id} {tool}{how}, allowed by {allowed_by}")
        }
        Event::ToolBlocked { call_id, tool, blocked, duration_ms, .. } => {
            let what = blocked.what.as_deref().unwrap_or("unknown");
            format!(
                "{call_id} {tool} stopped by the sandbox ({}: {what}) after {duration_ms} ms",
                blocked.by.name()
            )
        }
        Event::ToolCompleted { call_id, tool, status, duration_ms, .. } => {
            format!("{call_id} {tool} {} in {duration_ms} ms", name(status))
        }
        Event::ToolBackground { bash_id, command: Some(command), end: None, .. } => {
            format!("{bash_id} running: {command}")
        }
        Event::ToolBackground { bash_id, state, end: Some(end), .. } => {
            let code = end.exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
            let by = end.killed_by.map(|by| format!(" by {}", name(&by))).unwrap_or_default();
            format!(
                "{bash_id} {}{by}{code}, {} bytes in {} ms",
                state.name(),
                end.output_bytes,
                end.duration_ms
            )
        }
        Event::FileChanged { change, .. } => {
            format!("{} +{} -{}", change.path.display(), change.added, change.removed)
        }
        Event::McpStatus(status) => {
            let error = status.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            format!("{} {}{error}", status.server, status.state.name())
        }
        Event::McpTools(catalog) => format!("{} tools of MCP servers", catalog.tools.len()),
        Event::TodoUpdated { todos } => {
            let done = todos.iter().filter(|todo| todo.status == TodoStatus::Completed).count();
            let now = todos.iter().find(|todo| todo.status == TodoStatus::InProgress);
            let now = now.map(|todo| format!(", now: {}", todo.shown())).unwrap_or_default();
            format!("{done} of {} done{now}", todos.len())
        }
        Event::PermissionRequested { request, .. } => {
            return format!("{} {}", request.request_id, call_summary(&request.tool, &request.input));
        }
        Event::PermissionResolved { request_id, decision, feedback, .. } => {
            let words = feedback.as_ref().map(|f| format!(": {f}")).unwrap_or_default();
            format!("{request_id} {}{words}", name(decision))
        }
        Event::Retry { attempt, max, delay_ms, reason, max_output_tokens, .. } => {
            let max = if *max == 0 { String::new() } else { format!(" of {max}") };
            let shorter = max_output_tokens.map(|most| format!(", for {most} tokens at most"));
            let shorter = shorter.unwrap_or_default();
            format!("{reason}: attempt {attempt}{max}, next in {delay_ms} ms{shorter}")
        }
        Event::Heartbeat { reason, attempt, remaining_ms } => {
            format!("{reason}: attempt {attempt}, {remaining_ms} ms left")
        }
        Event::StreamIdle { silent_ms } => format!("nothing for {silent_ms} ms"),
        Event::ModelSwitched { from, to, reason, detail } => {
            format!("{from} -> {to}, {}: {detail}", reason.words())
        }
        Event::MediaWithheld { count, reason } => format!("{count} are shown no more: {reason}"),
        Event::MessageTombstone { reason } => name(reason),
        Event::Notice { kind, text } => format!("{kind}: {text}"),
        Event::Error { kind, message, causes } => {
            let causes: String = causes.iter().map(|cause| format!(" ← {cause}")).collect();
            format!("{kind}: {message}{causes}")
        }
        _ => String::new(),
    };
    // A log entry stays on one line, whatever its text contains.
    one_line(&said, 200)
}

/// A value as written on the wire.
fn name(word: &impl serde::Serialize) -> String {
    serde_json::to_value(word).ok().and_then(|word| word.as_str().map(String::from)).unwrap_or_default()
}

/// The time of day, UTC.
fn clock(at: Timestamp) -> String {
    let seconds = at.0.div_euclid(1_000).rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}Z", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use crate::client::commands::logs::*;
    use crate::client::fake::{Fake, SESSION, asks, completed, says};
    use crate::client::resolve_id::sample;
    use crate::client::terminal::out::testing::papers;
    use serde_json::json;

    /// Pages of two events.
    fn shared() -> Fake {
        let fake = Fake::start(|journal, method, params| match method {
            "session.get" => Ok(json!({"session": sample(SESSION, "t")})),
            _ => {
                let cursor = params["cursor"].as_str().and_then(|c| c.parse().ok());
                let after = cursor.or(params["after_seq"].as_u64()).unwrap_or(0) as usize;
                let rows = journal.rows();
                let end = rows.len().min(after + 2);
                let mut page = json!({"events": rows[after..end], "last_seq": rows.len()});
                if end < rows.len() {
                    page["next_cursor"] = json!(end.to_string());
                }
                Ok(page)
            }
        });
        fake.journal.push([says("x"), asks(), json!({"type": "moon.rose"}), completed("success")]);
        fake
    }

    #[tokio::test]
    async fn logs_print_every_page_without_deltas() {
        let fake = shared();
        let (mut out, text, side) = papers();
        let args = LogsArgs { session: SESSION.into(), ..LogsArgs::default() };
        logs(&fake.reach(), &args, &mut out).await.expect("printed");
        assert_eq!(
            text.text(),
            "     2 22:13:20Z permission.requested     perm_0190f2a4-0000-7000-8000-000000000005 Bash make\n     \
             4 22:13:20Z turn.completed           success: the answer\n"
        );
        assert_eq!(side.text(), "     3           moon.rose\n");
    }

    #[tokio::test]
    async fn logs_json_prints_unchanged_events_since_cursor() {
        let fake = shared();
        for (since, first) in [(None, 0), (Some(Since::Seq(3)), 3), (Some(Since::Ago(1)), 4)] {
            let (mut out, text, _) = papers();
            let args = LogsArgs { session: SESSION.into(), json: true, since, follow: false };
            logs(&fake.reach(), &args, &mut out).await.expect("printed");
            // The age of unknown events is not known: print them instead of hiding them.
            let rows = fake.journal.rows();
            let kept = rows
                .iter()
                .enumerate()
                .filter(|(n, row)| *n >= first || first == 4 && row["type"] == "moon.rose");
            let expected: String = kept.map(|(_, row)| format!("{row}\n")).collect();
            assert_eq!(text.text(), expected, "{since:?}");
        }
    }
}
