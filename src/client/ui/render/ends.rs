//! The ends of turns and requests, in words.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::connection::connector;
use crate::terminal::escape;
use crate::terminal::format::{all_tokens, cost, format_ms, tokens};
use crate::terminal::style::{StyledLine, Tone, cut};
use crate::ui::summary::one_line;
use types::event::{Event, SettledBy};
use types::permission::{Decision, Scope};
use types::session::{Subtype, TurnResult};

/// The name of a client for users: `you` if it is this program, in any terminal.
pub(super) fn client_name(client: &str) -> Cow<'_, str> {
    if client == connector::NAME { "you".into() } else { escape::line(client) }
}

pub(super) fn error(kind: &str, message: &str) -> StyledLine {
    StyledLine::new(Tone::Bad, format!("  {}: {}", escape::line(kind), escape::line(message)))
}

/// The end of a turn, in words.
pub(crate) fn outcome(result: &TurnResult, by: Option<&str>) -> String {
    let kind = result.errors.first().map(|error| error.kind.as_str()).unwrap_or_default();
    match result.subtype {
        Subtype::Success => "done".into(),
        Subtype::Aborted => by.map_or("stopped".into(), |by| format!("stopped by {}", client_name(by))),
        Subtype::PermissionDenied => "stopped: permission was denied".into(),
        Subtype::ErrorMaxTurns => {
            let calls = result.model_calls;
            format!("stopped: limit of {calls} model call{}", if calls == 1 { "" } else { "s" })
        }
        Subtype::ErrorMaxBudgetUsd => "stopped: limit on money".into(),
        Subtype::ErrorMaxTokens => "stopped: limit on output tokens".into(),
        Subtype::ErrorMaxTime => "stopped: limit on time".into(),
        Subtype::MaxOutputTokens => "stopped: the answer reached the model's output limit".into(),
        Subtype::ErrorRepeatedCall => "stopped: the model repeated the same call".into(),
        Subtype::StructuredOutputInvalid => "failed: the answer does not satisfy the schema".into(),
        Subtype::ErrorDuringExecution => "failed: internal error of the daemon".into(),
        Subtype::LlmError => match kind {
            "unauthorized" | "forbidden" => "failed: the provider refused the key".into(),
            "no_key" | "unconfigured" => "failed: no key or model is configured".into(),
            "unreachable" => "failed: the model could not be reached".into(),
            "not_found" => "failed: the provider does not know the model".into(),
            "rate_limited" => "failed: the provider limits the rate".into(),
            "overloaded" => "failed: the model is overloaded".into(),
            _ => "failed: the model gave no answer".into(),
        },
    }
}

/// The lines about the end of a turn. Errors in `shown_errors` were shown already, so they are not repeated.
pub(super) fn turn_completed(
    result: &TurnResult,
    shown_errors: &HashSet<String>,
    by: Option<&str>,
) -> Vec<StyledLine> {
    let news = result.errors.iter().filter(|e| !shown_errors.contains(&e.message));
    let mut shown: Vec<StyledLine> = news.map(|e| error(&e.kind, &e.message)).collect();
    let (tone, sign) = match result.subtype {
        Subtype::Success => (Tone::Dim, "─"),
        Subtype::Aborted => (Tone::Warn, "■"),
        _ => (Tone::Bad, "■"),
    };
    let calls = result.model_calls;
    // The time for which the turn waited for a user is not working time.
    let waited = result.permission_ms.min(result.duration_ms);
    let waiting =
        if waited < 1_000 { String::new() } else { format!(" (+{} waiting for you)", format_ms(waited)) };
    shown.push(StyledLine::new(tone, format!("{sign} {}", outcome(result, by))).and(
        Tone::Dim,
        format!(
            " · {}{waiting} · {calls} model call{} · {} tokens · {}",
            format_ms(result.duration_ms - waited),
            if calls == 1 { "" } else { "s" },
            tokens(all_tokens(&result.usage)),
            match cost(result.cost_usd_micros, result.cost_at_least_usd_micros) {
                unknown if unknown == "?" => "cost unknown".into(),
                known => known,
            },
        ),
    ));
    shown
}

/// The line about a settled request; `what` names its call if the line does not follow it.
pub(super) fn resolved(what: &str, event: &Event, who: Option<&str>) -> StyledLine {
    let gap = if what.is_empty() { "" } else { " " };
    let mut line = StyledLine::new(Tone::Dim, format!("  └ {}{gap}", cut(what, 60)));
    let Event::PermissionResolved { decision, scope, grant, feedback, by, rule, updated_input, stop, .. } =
        event
    else {
        return line;
    };
    let granted = escape::line(grant.as_deref().unwrap_or("this call")).into_owned();
    let (tone, word) = match (by, decision, scope) {
        (SettledBy::Abort | SettledBy::Submit, ..) => (Tone::Dim, "no longer asked".to_string()),
        (_, Decision::Deny, _) if *stop => (Tone::Warn, "denied, and the turn ended".into()),
        (_, Decision::Deny, _) => (Tone::Warn, "denied".into()),
        (SettledBy::Rule | SettledBy::Mode, ..) => {
            (Tone::Good, format!("allowed by {}", one_line(rule.as_deref().unwrap_or("a rule"), 80)))
        }
        _ if updated_input.is_some() => (Tone::Good, "allowed once, changed".into()),
        (_, Decision::Allow, Scope::Once) => (Tone::Good, "allowed once".into()),
        (_, Decision::Allow, Scope::Session) => (Tone::Good, format!("allowed for the session: {granted}")),
        (_, Decision::Allow, Scope::Project) => (Tone::Good, format!("allowed in this folder: {granted}")),
    };
    line = line.and(tone, word);
    if matches!(by, SettledBy::Timeout | SettledBy::NoApprover) {
        line = line.and(Tone::Dim, " for want of an answer");
    }
    // Without an answer, the client is only the one that could not ask.
    if let Some(who) = who.filter(|_| !matches!(by, SettledBy::Timeout | SettledBy::NoApprover)) {
        line = line.and(Tone::Dim, format!(" by {}", client_name(who)));
    }
    if let Some(input) = updated_input {
        line = line.and(Tone::Dim, format!(": {}", one_line(&input.to_string(), 120)));
    }
    if let Some(text) = feedback {
        line = line.and(Tone::Dim, format!(": {}", one_line(text, 120)));
    }
    line
}
