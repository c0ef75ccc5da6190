//! Events that are one line each and need no state.

use crate::terminal::escape;
use crate::terminal::format::{format_ms, tokens};
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::summary::one_line;
use types::background::{BackgroundEnd, BackgroundState, BashId, KilledBy};
use types::compaction::CompactStage;
use types::event::Event;
use types::hook::PROBLEM_NOTICE;
use types::job::JobEventKind;
use types::message::input_line;
use types::session::Subtype;
use types::turn_options::TurnOptions;

/// Changed options as text, one for each.
fn options_text(options: &TurnOptions) -> Vec<String> {
    let mut news = Vec::new();
    news.extend(options.model.as_ref().map(|model| format!("model: {}", escape::line(model))));
    news.extend(options.mode.as_ref().map(|mode| format!("mode: {}", mode.name())));
    news.extend(options.budgets.as_ref().map(|_| "new limits".to_string()));
    news.extend(options.tools.as_ref().map(|_| "other tools".to_string()));
    let dirs = options.additional_dirs.as_ref();
    news.extend(dirs.map(|dirs| format!("also in: {}", escape::line(&dirs.join(", ")))));
    news.extend(options.thinking.map(|thinking| format!("thinking: {thinking}")));
    news.extend(options.temperature.map(|it| format!("temperature: {it}")));
    news.extend(options.top_p.map(|it| format!("top_p: {it}")));
    news.extend(options.safe_mode.map(|is_on| format!("safe mode: {}", if is_on { "on" } else { "off" })));
    let prompts = options.system_prompt.as_ref().or(options.append_system_prompt.as_ref());
    news.extend(prompts.map(|_| "another system prompt".to_string()));
    news.extend(options.fallback_model.as_ref().map(|model| format!("fallback: {}", escape::line(model))));
    news.extend(options.stop.as_ref().map(|_| "other stop sequences".to_string()));
    news.extend(options.metadata.as_ref().map(|_| "other metadata".to_string()));
    news.extend(options.output_schema.as_ref().map(|_| "another output schema".to_string()));
    news
}

/// The parts of a folder that a notice mentions. Without trust, it omits git facts, which every repository has.
pub(crate) fn untrusted_parts(parts: &[String]) -> Vec<&String> {
    parts.iter().filter(|part| !part.starts_with("git facts")).collect()
}

/// Events that need no state.
pub(super) fn plain_event(event: &Event, echo: bool) -> Vec<StyledLine> {
    let dim = |text: String| vec![StyledLine::new(Tone::Dim, text)];
    let warn = |text: String| vec![StyledLine::new(Tone::Warn, format!("  {text}"))];
    match event {
        // Does not show a new title, because the view shows it in its own place.
        Event::SessionUpdated { options, .. } => {
            let news = options_text(options);
            let is_shown = !news.is_empty() && (echo || options.mode.is_some());
            if is_shown { dim(format!("  {}", news.join(", "))) } else { Vec::new() }
        }
        Event::SessionRewound(_) => dim("  ─ the conversation continues from an earlier point ─".into()),
        Event::SessionEnded { reason } => {
            vec![StyledLine::new(Tone::Warn, format!("the session was ended: {}", escape::line(reason)))]
        }
        Event::WorkspaceTrustRequired { parts, .. } => match untrusted_parts(parts).len() {
            0 => Vec::new(),
            1 => dim("  this folder is not trusted: one part of it is not used · agentctl trust".into()),
            count => dim(format!(
                "  this folder is not trusted: {count} parts of it are not used · agentctl trust"
            )),
        },
        // The event before this notice contains the same information.
        Event::Notice { kind, .. } if kind == "workspace_untrusted" => Vec::new(),
        Event::TurnSteered { input } if echo => {
            dim(format!("  for the running turn: {}", one_line(&input_line(input), 80)))
        }
        Event::PermissionRuleAdded { kind, rule } => {
            dim(format!("  rule added: {} {}", kind.name(), escape::line(rule)))
        }
        Event::PermissionRuleRemoved { kind, rule } => {
            dim(format!("  rule removed: {} {}", kind.name(), escape::line(rule)))
        }
        Event::SessionCleared {} => dim("  ─ the conversation starts again ─".into()),
        Event::Notice { kind, text } if kind == PROBLEM_NOTICE => {
            warn(format!("a hook cannot be used: {}", escape::line(text)))
        }
        Event::Notice { kind, text } if kind == "agents_refused" => warn(escape::line(text).into_owned()),
        Event::HookCompleted { run, .. } => {
            let error = run.error.as_ref().map(|error| {
                let command = one_line(&run.command, 80);
                format!("  hook {command} on {} failed: {}", run.event.name(), one_line(error, 200))
            });
            let message = run.message.as_ref().map(|message| format!("  hook: {}", escape::line(message)));
            let lines = error.into_iter().chain(message);
            lines.map(|text| StyledLine::new(Tone::Warn, text)).collect()
        }
        Event::JobEvent { event } => match &event.event {
            JobEventKind::Retrying { reason, .. } => {
                warn(format!("the job tries again later: {}", one_line(reason, 160)))
            }
            JobEventKind::Completed { state, .. } => dim(format!("  ── job {} ──", state.name())),
            _ => Vec::new(),
        },
        Event::Notice { text, .. } => dim(format!("  {}", escape::line(text))),
        event => turn_event(event),
    }
}

/// Events of a turn and its model calls.
fn turn_event(event: &Event) -> Vec<StyledLine> {
    let dim = |text: String| vec![StyledLine::new(Tone::Dim, text)];
    let warn = |text: String| vec![StyledLine::new(Tone::Warn, format!("  {text}"))];
    match event {
        Event::TurnParked {} => dim("  the daemon stops; the turn continues after the next start".into()),
        Event::TurnResumed { delay_ms: 0, .. } => {
            dim("  the daemon was restarted; the turn continues".into())
        }
        Event::TurnResumed { delay_ms, resumes } => dim(format!(
            "  the daemon was restarted; the turn continues in {} (resume {resumes})",
            format_ms(*delay_ms)
        )),
        Event::HistoryRepaired { changes, .. } => {
            dim(format!("  the record was repaired: {}", escape::line(&changes.join("; "))))
        }
        Event::TurnAborting { subtype: Subtype::PermissionDenied, .. } => dim("  the turn ends…".into()),
        Event::TurnAborting { .. } => dim("  stopping…".into()),
        // The lines of the calls show more than this summary.
        Event::ToolSummary { .. } => Vec::new(),
        Event::BudgetWarning { budget, used, limit } => {
            warn(format!("{} of {limit} {} are used", used, budget.name()))
        }
        Event::Heartbeat { reason, attempt, remaining_ms, max } => {
            let max = max.filter(|max| *max > 0).map(|max| format!(" of {max}")).unwrap_or_default();
            let (reason, left) = (one_line(reason, 100), format_ms(*remaining_ms));
            dim(format!("  still waiting after attempt {attempt}{max} ({reason}): {left} left"))
        }
        Event::StreamIdle { silent_ms } => {
            warn(format!("the model has been silent for {}", format_ms(*silent_ms)))
        }
        Event::ModelSwitched { from, to, reason, .. } => warn(format!(
            "the turn continues with {} instead of {}: {}",
            escape::line(to),
            escape::line(from),
            reason.words()
        )),
        Event::ToolBackground { bash_id, command: Some(command), end: None, .. } => {
            dim(format!("  {bash_id} runs in the background: {}", one_line(command, 120)))
        }
        Event::ToolBackground { bash_id, state, end: Some(end), .. } => {
            vec![background_ended(*bash_id, *state, end)]
        }
        Event::CompactStarted { stage: CompactStage::Autocompact, .. } => {
            dim("  the conversation is summarised, to fit the context window…".into())
        }
        Event::CompactCompleted { stage: CompactStage::ToolResults, edit: None, .. } => Vec::new(),
        Event::CompactCompleted { error: Some(error), .. } => {
            warn(format!("the conversation was not compacted: {}", escape::line(error)))
        }
        Event::CompactCompleted { stage, tokens_before, tokens_after, .. } => dim(format!(
            "  ── context compacted ({}): {} → {} tokens ──",
            stage.name(),
            tokens(*tokens_before),
            tokens(*tokens_after)
        )),
        Event::TurnOutputRejected { attempt, max, errors, .. } => warn(format!(
            "the answer does not satisfy the schema ({}); correction {attempt} of {max}",
            one_line(&errors.join("; "), 160)
        )),
        Event::MediaWithheld { count, reason } => warn(format!(
            "the provider refused what it was shown: {count} pictures and documents are described in text from now on ({})",
            one_line(reason, 160)
        )),
        _ => Vec::new(),
    }
}

/// The end of a background task, in words.
fn background_ended(bash_id: BashId, state: BackgroundState, end: &BackgroundEnd) -> StyledLine {
    let how = match (state, end.killed_by, end.exit_code) {
        (BackgroundState::Exited, _, Some(0)) => {
            return StyledLine::new(Tone::Dim, format!("  {bash_id} ended"));
        }
        (BackgroundState::Exited, _, Some(code)) => format!("ended with exit code {code}"),
        (BackgroundState::Exited, _, None) | (BackgroundState::Running, ..) => "ended".into(),
        (BackgroundState::Killed, Some(KilledBy::Tool), _) => "was ended by the model".into(),
        (BackgroundState::Killed, Some(KilledBy::Abort), _) => "was aborted".into(),
        (BackgroundState::Killed, Some(KilledBy::Shutdown), _) => "was ended: the daemon stopped".into(),
        (BackgroundState::Killed, Some(KilledBy::Session) | None, _) => "was ended".into(),
        (BackgroundState::TimedOut, ..) => "was ended: its time was over".into(),
        (BackgroundState::Lost, ..) => "was lost: the daemon died".into(),
    };
    StyledLine::new(Tone::Warn, format!("  {bash_id} {how}"))
}
