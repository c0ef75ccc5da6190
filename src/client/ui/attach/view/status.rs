//! The status lines: spinner, state, and hints. Pure.

use crate::terminal::escape;
use crate::terminal::format::{money, tokens};
use crate::terminal::style::{StyledLine, Tone, cut, width};
use crate::ui::attach::app::{Activity, App, LineContent};
use crate::ui::request_list::home_relative;
use crate::ui::request_timing::Phase;
use types::permission::Mode;
use types::session::{Requires, SessionState};

/// The frames of the spinner; four are shown per second.
const FRAMES: [char; 8] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧'];
const FRAME_MS: i64 = 250;

/// From this width on, the status line has more parts.
const WIDE_COLUMNS: usize = 100;

/// Percentage of the context window from which on a summary is near.
const NEARLY_FULL_PERCENT: u64 = 80;

/// A model without its provider.
fn short_model(model: &str) -> &str {
    model.split_once('/').map_or(model, |(_, name)| name)
}

/// The turn's activity: phase, seconds, tokens, and how to stop the turn. `None` if no turn runs.
pub(super) fn spinner_line(app: &App, columns: usize) -> Option<StyledLine> {
    let clock = app.clock.0;
    let frame = usize::try_from(clock.rem_euclid(FRAME_MS * 8) / FRAME_MS).unwrap_or(0);
    let mark = if app.setup.is_plain {
        "working:".to_owned()
    } else {
        FRAMES.get(frame).copied().unwrap_or('⠋').to_string()
    };
    if let Some(command) = &app.shell.command {
        return Some(
            StyledLine::new(Tone::User, format!("{mark} ! {command}"))
                .and(Tone::Dim, " · Esc stops")
                .cut(columns),
        );
    }
    if app.session.summary.state != SessionState::Running || app.lost.is_some() {
        return None;
    }
    let model = escape::line(short_model(&app.session.summary.model)).into_owned();
    let progress = &app.progress;
    let calls = app.running_calls();
    let doing = match (progress.doing, calls) {
        (Activity::Tools, [one]) => one.summary.clone(),
        (Activity::Tools, [_, ..]) => format!("{} calls", calls.len()),
        (Activity::Tools, []) => "running tools".into(),
        (Activity::Preparing, _) => "preparing".into(),
        (Activity::Waiting, _) => format!("waiting for {model}"),
        (Activity::Thinking, _) => "thinking".into(),
        (Activity::Writing, _) => "writing".into(),
        (Activity::Compacting, _) => "summarising the conversation".into(),
        (Activity::Retrying, _) => "trying again".into(),
        (Activity::Stopping, _) => "stopping".into(),
    };
    let mut rest = String::new();
    if let Some(since) = progress.since {
        rest += &format!(" · {}", seconds(app.seconds_since(since)));
    }
    if progress.tokens() > 0 {
        rest += &format!(" · ↓ {} tokens", tokens(progress.tokens()));
    }
    rest += if app.setup.one_turn.is_some() { " · Ctrl-C stops" } else { " · Esc stops" };
    if !app.queue.inputs.is_empty() {
        rest += " · ↑ takes the last line back";
    }
    let room = columns.saturating_sub(width(&rest) + width(&mark) + 1).max(8);
    Some(
        StyledLine::new(Tone::Good, mark)
            .and(Tone::Plain, format!(" {}", cut(&doing, room)))
            .and(Tone::Dim, rest)
            .cut(columns),
    )
}

/// Whole seconds as text.
fn seconds(seconds: i64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// The session, its model and mode; on the right the clients, the context and the cost. If the terminal is
/// narrow, parts are dropped from the right.
pub(super) fn status_line(app: &App, columns: usize) -> StyledLine {
    let session = &app.session;
    let is_wide = columns >= WIDE_COLUMNS;
    let rule = if app.setup.is_plain { "-" } else { "─" };
    let mut left: Vec<(Tone, String)> = Vec::new();
    if let Some(state) = state(app) {
        left.push(state);
    }
    if !app.setup.is_new {
        let number = if session.number > 0 { format!("#{} ", session.number) } else { String::new() };
        let title = cut(&escape::line(&session.summary.title), if is_wide { 50 } else { 24 });
        left.insert(0, (Tone::Bold, format!("{number}{title}").trim_end().to_owned()));
    }
    let model = if is_wide { session.summary.model.as_str() } else { short_model(&session.summary.model) };
    let thinking =
        session.summary.thinking.map_or_else(String::new, |thinking| format!(" · thinking {thinking}"));
    left.push((Tone::Dim, format!("{}{thinking}", escape::line(model))));
    let mode_tone = match session.summary.mode {
        Mode::Bypass => Tone::Bad,
        Mode::Default => Tone::Dim,
        Mode::AcceptEdits | Mode::Plan | Mode::DontAsk => Tone::Warn,
    };
    left.push((mode_tone, session.summary.mode.name().into()));
    if is_wide {
        left.push((Tone::Dim, escape::line(&home_relative(&session.cwd)).into_owned()));
    }
    let mut right: Vec<String> = Vec::new();
    if session.clients > 1 {
        right.push(format!("{} clients", session.clients));
    }
    if let Some((used, window)) = app.progress.context {
        right.push(match window.filter(|window| *window > 0) {
            Some(window) => {
                let share = used.saturating_mul(100) / window;
                let of = if is_wide { format!(" of {}", tokens(window)) } else { String::new() };
                // Offer `/compact` before the window is full, because the user may want to choose the content
                // of the summary.
                let hint = if share >= NEARLY_FULL_PERCENT { ", /compact" } else { "" };
                format!("context {share}%{of}{hint}")
            }
            None => format!("context {}", tokens(used)),
        });
    }
    if let Some(micros) = app.progress.usd_micros {
        right.push(money(Some(micros)));
    }
    fit_line(left, right, rule, columns)
}

/// Joins both sides with a horizontal rule. If they do not fit, leaves out the least important parts.
fn fit_line(mut left: Vec<(Tone, String)>, mut right: Vec<String>, rule: &str, columns: usize) -> StyledLine {
    loop {
        let left_width: usize =
            left.iter().map(|(_, text)| width(text)).sum::<usize>() + 3 * left.len().saturating_sub(1);
        let right_text = right.join(" · ");
        let right_width = if right.is_empty() { 0 } else { width(&right_text) + 2 };
        let used = 2 + left_width + right_width;
        if used > columns && !(right.is_empty() && left.len() <= 1) {
            if right.is_empty() {
                _ = left.pop()
            } else {
                _ = right.remove(0)
            }
            continue;
        }
        let mut line = StyledLine::new(Tone::Dim, format!("{rule} "));
        for (nth, (tone, text)) in left.into_iter().enumerate() {
            line = line.and(Tone::Dim, if nth > 0 { " · " } else { "" }).and(tone, text);
        }
        let fill = columns.saturating_sub(used);
        if !right.is_empty() {
            line = line.and(Tone::Dim, format!(" {} {right_text}", rule.repeat(fill)));
        }
        return line.cut(columns);
    }
}

/// The state of the session, if it needs attention at this moment.
fn state(app: &App) -> Option<(Tone, String)> {
    let session = &app.session;
    let since =
        app.pending.since.map_or(String::new(), |since| format!(" {}", seconds(app.seconds_since(since))));
    if let Some(words) = app.lost {
        return Some((Tone::Bad, words.into()));
    }
    match (session.summary.state, session.summary.requires) {
        (SessionState::RequiresAction, Some(Requires::Question)) => {
            Some((Tone::Warn, format!("asks you{since}")))
        }
        (SessionState::RequiresAction, Some(Requires::UnknownOutcome)) => {
            Some((Tone::Warn, format!("outcome unknown{since}")))
        }
        (SessionState::RequiresAction, _) if app.pending.requests.len() > 1 => {
            Some((Tone::Warn, format!("{} requests ·{since}", app.pending.requests.len())))
        }
        (SessionState::RequiresAction, _) => Some((Tone::Warn, format!("waits for you{since}"))),
        (SessionState::Running, _) => None,
        (SessionState::Idle, _) => Some((Tone::Good, "ready".into())),
        (SessionState::Paused, _) => Some((Tone::Warn, "paused".into())),
        (SessionState::Failed, _) => Some((Tone::Bad, "failed".into())),
        (other, _) => Some((Tone::Dim, other.name().into())),
    }
}

/// One line with the actions that are possible now.
pub(super) fn hint(app: &App, columns: usize) -> StyledLine {
    if !app.notice.is_empty() {
        return StyledLine::new(Tone::Warn, cut(&app.notice, columns));
    }
    let is_asked = app.has_open_question();
    let text = if matches!(app.line.content, LineContent::Words(..)) {
        "Enter answers with these words · Esc goes back"
    } else if matches!(app.line.content, LineContent::Arguments(_)) {
        "Enter allows the call with this input · Alt-Enter new line · Ctrl-G editor · Esc goes back"
    } else if app.setup.one_turn.is_some() {
        if is_asked { "Enter answers the question · Ctrl-C stops" } else { "" }
    } else if is_asked {
        "Enter answers the question · Ctrl-C stops the turn · Ctrl-D detaches"
    } else if !app.pending.questions.is_empty() {
        "Enter continues with these words · Ctrl-C stops the turn · Ctrl-D detaches"
    } else if app.is_list_open() && !app.line.editor.is_empty() {
        "your draft stays here while you answer"
    } else if app.is_list_open() {
        ""
    } else if app.phase() == Some(Phase::Hidden) {
        "your draft stays here"
    } else if app.is_busy() && !app.line.editor.is_empty() {
        "Enter after this step · Tab after the turn"
    } else if app.is_busy() {
        "Esc stops · type to steer · Ctrl-O all · ? keys · Ctrl-D detaches"
    } else if app.session.summary.state == SessionState::Ended {
        "the session has ended · agentctl fork continues it in a new one · Ctrl-D detaches"
    } else if app.line.editor.is_empty() {
        "? keys · / commands · @ files · ! shell · Ctrl-D detaches, sessions continue"
    } else {
        "Enter sends · Alt-Enter new line · Ctrl-D detaches when the line is empty"
    };
    let warnings = match app.warnings.len() {
        0 => String::new(),
        count => format!("⚠ {count} · F2"),
    };
    let line = StyledLine::new(Tone::Dim, cut(text, columns));
    let fits = line.width() + width(&warnings) + 2 <= columns;
    if warnings.is_empty() || !fits { line } else { line.with_right(&warnings, columns) }
}
