//! Events of a journal as lines: `logs --events` and `events SESSION`.

use crate::terminal::escape;
use crate::terminal::style::{StyledLine, Tone, pad};
use crate::ui::question;
use crate::ui::summary::{call_summary, one_line};
use types::event::{Envelope, Event};
use types::job::{JobEvent, JobEventKind};
use types::message::input_line;
use types::time::Timestamp;
use types::todo::TodoStatus;

/// One event in one line; `None` for events whose text a later event repeats, such as deltas.
pub(super) fn log_line(envelope: &Envelope) -> Option<StyledLine> {
    let repeats = matches!(
        envelope.event,
        Event::MessageBlockStarted { .. }
            | Event::MessageBlockCompleted { .. }
            | Event::MessageStarted { .. }
    );
    if envelope.event.is_delta() || repeats {
        return None;
    }
    let description = describe_event(envelope);
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
        StyledLine::new(Tone::Dim, format!("{:>6} {} ", envelope.seq, clock(envelope.at_ms)))
            .and(Tone::Tool, pad(envelope.event.kind(), 24))
            .and(tone, format!(" {description}"))
            .and(Tone::Dim, origin.unwrap_or_default()),
    )
}

fn describe_event(envelope: &Envelope) -> String {
    if let Some(text) = call_text(&envelope.event) {
        return text;
    }
    let description = session_text(&envelope.event)
        .or_else(|| turn_text(envelope))
        .or_else(|| request_text(envelope))
        .or_else(|| tool_text(&envelope.event))
        .unwrap_or_default();
    // A log entry must stay on one line, even if its text contains line ends.
    one_line(&description, 200)
}

/// Events with a call, whose summary is escaped and short already.
fn call_text(event: &Event) -> Option<String> {
    Some(match event {
        Event::QuestionRequested { question } => {
            let call = question.tool.as_ref().zip(question.input.as_ref());
            let call = call.map(|(tool, input)| call_summary(tool, input)).unwrap_or_default();
            format!("{} {} {call}", question.request_id, question.kind.name())
        }
        Event::FeedbackRequested { request_id, item_ids } => {
            let items: Vec<String> = item_ids.iter().map(ToString::to_string).collect();
            format!("{request_id}: {}", items.join(" or "))
        }
        Event::ToolRequested { call_id, tool, input, .. } => {
            format!("{call_id} {}", call_summary(tool, input))
        }
        Event::PermissionRequested { request, .. } => {
            format!("{} {}", request.request_id, call_summary(&request.tool, &request.input))
        }
        _ => return None,
    })
}

/// Events of the session and of its surroundings.
fn session_text(event: &Event) -> Option<String> {
    Some(match event {
        Event::SessionCreated(spec) => format!("{} in {}", spec.model, spec.cwd),
        Event::SessionStatus { state, requires } => {
            format!("{}{}", state.name(), requires.map(|r| format!(": {}", name(&r))).unwrap_or_default())
        }
        Event::HistoryRepaired { changes, .. } => changes.join("; "),
        Event::SessionAttached { clients } | Event::SessionDetached { clients } => {
            format!("{clients} clients")
        }
        Event::ConfigReloaded { changed, needs_restart, files } => {
            let restart = match needs_restart.as_slice() {
                [] => String::new(),
                keys => format!("; after a restart: {}", keys.join(", ")),
            };
            let files = match files.as_slice() {
                [] => String::new(),
                files => format!(" ({})", files.join(", ")),
            };
            format!("{}{restart}{files}", changed.join(", "))
        }
        Event::SessionEnded { reason } => reason.clone(),
        Event::SessionUpdated { .. } => updated(event),
        Event::CommandCompleted { name, arguments, text } => format!("{name} {arguments}: {text}"),
        Event::ReminderAdded { text, .. } => text.clone(),
        Event::SessionPromptBuilt { system, sources, .. } | Event::TurnPromptBuilt { system, sources } => {
            let from =
                if sources.is_empty() { String::new() } else { format!(" from {}", sources.join(", ")) };
            format!("{} bytes of system prompt{from}", system.len())
        }
        Event::McpStatus(status) => {
            let notes = status.error.iter().chain(&status.notes).map(|note| format!(": {note}"));
            let error: String = notes.collect();
            format!("{} {}{error}", status.server, status.state.name())
        }
        Event::McpTools(catalog) => format!("{} tools of MCP servers", catalog.tools.len()),
        Event::ClockChanged { by_ms } => format!("the clock was set by {by_ms} ms"),
        Event::JobEvent { event } => job_event(event),
        Event::Notice { kind, text } => format!("{kind}: {text}"),
        Event::Error { kind, message, causes } => {
            let causes: String = causes.iter().map(|cause| format!(" ← {cause}")).collect();
            format!("{kind}: {message}{causes}")
        }
        _ => return None,
    })
}

/// Events of turns and model calls.
fn turn_text(envelope: &Envelope) -> Option<String> {
    Some(match &envelope.event {
        Event::TurnResumed { resumes, delay_ms } => format!("resume {resumes}, in {delay_ms} ms"),
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
        Event::TurnOutputRejected { errors, .. } => errors.join("; "),
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
        Event::MessageCompleted { item, superseded, .. } => {
            format!(
                "{} {}{}: {}",
                item.kind.name(),
                item.status.name(),
                if *superseded { ", tried again" } else { "" },
                item.text.as_deref().unwrap_or_default()
            )
        }
        Event::TodoUpdated { todos } => {
            let done = todos.iter().filter(|todo| todo.status == TodoStatus::Completed).count();
            let now = todos.iter().find(|todo| todo.status == TodoStatus::InProgress);
            let now = now.map(|todo| format!(", now: {}", todo.display_text())).unwrap_or_default();
            format!("{done} of {} done{now}", todos.len())
        }
        Event::Retry { attempt, max, delay_ms, reason, max_output_tokens, .. } => {
            let max = if *max == 0 { String::new() } else { format!(" of {max}") };
            let shorter = max_output_tokens.map(|most| format!(", for {most} tokens at most"));
            let shorter = shorter.unwrap_or_default();
            format!("{reason}: attempt {attempt}{max}, next in {delay_ms} ms{shorter}")
        }
        Event::Heartbeat { reason, attempt, remaining_ms, max } => {
            let max = max.filter(|max| *max > 0).map(|max| format!(" of {max}")).unwrap_or_default();
            format!("{reason}: attempt {attempt}{max}, {remaining_ms} ms left")
        }
        Event::StreamIdle { silent_ms } => format!("nothing for {silent_ms} ms"),
        Event::ModelSwitched { from, to, reason, detail } => {
            format!("{from} -> {to}, {}: {detail}", reason.words())
        }
        Event::MediaWithheld { count, reason } => format!("{count} are shown no more: {reason}"),
        Event::MessageTombstone { reason } => name(reason),
        _ => return None,
    })
}

/// Events of permission requests and questions.
fn request_text(envelope: &Envelope) -> Option<String> {
    Some(match &envelope.event {
        Event::QuestionResolved { request_id, choice, answers, by, .. } => {
            let answer = match choice {
                Some(choice) => choice.name().to_owned(),
                None => answers.iter().map(question::answer_text).collect::<Vec<_>>().join(" · "),
            };
            format!("{request_id} {answer} by {}", name(by))
        }
        Event::FeedbackCompleted { by, .. } => {
            let chosen = envelope.item_id.map_or_else(|| "none".to_owned(), |item_id| item_id.to_string());
            format!("{chosen}, by {}", name(by))
        }
        Event::PermissionResolved { request_id, decision, feedback, .. } => {
            let feedback_text = feedback.as_ref().map(|f| format!(": {f}")).unwrap_or_default();
            format!("{request_id} {}{feedback_text}", name(decision))
        }
        _ => return None,
    })
}

/// Events of tool calls.
fn tool_text(event: &Event) -> Option<String> {
    Some(match event {
        Event::ToolStatus { call_id, allowed_by, .. } => format!("{call_id} allowed by {allowed_by}"),
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
        _ => return None,
    })
}

/// An event of the session's job, for example `waiting: permission`.
fn job_event(event: &JobEvent) -> String {
    let detail = match &event.event {
        JobEventKind::Started { attempt, .. } => format!("attempt {attempt}"),
        JobEventKind::Waiting { waiting_for } => name(waiting_for),
        JobEventKind::Retrying { reason, .. } => reason.clone(),
        JobEventKind::Completed { state, .. } => state.name().to_owned(),
        _ => String::new(),
    };
    let what = event.event.name().trim_start_matches("job.");
    if detail.is_empty() { what.to_owned() } else { format!("{what}: {detail}") }
}

/// The fields that an update changed, with their new values.
fn updated(event: &Event) -> String {
    let fields =
        serde_json::to_value(event).ok().and_then(|value| value.as_object().cloned()).unwrap_or_default();
    let changed = fields.iter().filter(|(key, value)| *key != "type" && !value.is_null());
    let shown: Vec<String> = changed
        .map(|(key, value)| match value.as_str() {
            Some(text) => format!("{key} = {text}"),
            None => format!("{key} = {value}"),
        })
        .collect();
    shown.join(", ")
}

/// A value as written on the wire.
fn name(word: &impl serde::Serialize) -> String {
    serde_json::to_value(word).ok().and_then(|word| word.as_str().map(String::from)).unwrap_or_default()
}

/// Day and time, UTC.
fn clock(time: Timestamp) -> String {
    let seconds = time.0.div_euclid(1_000).rem_euclid(86_400);
    let date = time.date();
    let day = date.get(5..).unwrap_or(&date);
    format!("{day} {:02}:{:02}:{:02}Z", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}
