//! Shows a question about a call with an unknown outcome, or about a paused turn, and reads its answer.

use crate::api::params::AnswerParams;
use crate::client::terminal::escape;
use crate::client::terminal::style::{Line, Tone};
use crate::client::ui::prompt;
use crate::client::ui::summary::{call_summary, one_line};
use crate::types::ids::QuestionId;
use crate::types::question::{Choice, Question, QuestionKind};

/// Number of output lines of a call that are shown with a question.
const OUTPUT_LINES: usize = 6;

/// The parameters of an answer.
pub(in crate::client) fn params(request_id: QuestionId, choice: &str) -> AnswerParams {
    AnswerParams { request_id, choice: choice.into(), idempotency_key: None }
}

/// The text of a question, without its keys.
pub(in crate::client) fn shown(question: &Question) -> Vec<Line> {
    let head = match question.kind {
        QuestionKind::UnknownOutcome => "▌ Outcome unknown: ",
        QuestionKind::Resume => "▌ Paused: ",
    };
    let mut lines = vec![Line::new(Tone::Warn, head).and(Tone::Plain, escape::line(&question.text))];
    if let (Some(tool), Some(input)) = (&question.tool, &question.input) {
        lines.push(Line::new(Tone::Dim, "    ").and(Tone::Bold, call_summary(tool, input)));
    }
    if let Some(output) = &question.output {
        let said: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
        let from = said.len().saturating_sub(OUTPUT_LINES);
        if from > 0 {
            lines.push(Line::new(Tone::Dim, format!("    │ … {from} lines of output before these")));
        }
        lines.extend(
            said[from..]
                .iter()
                .map(|line| Line::new(Tone::Dim, "    │ ").and(Tone::Plain, one_line(line, 200))),
        );
    }
    lines
}

/// The keys, in one line.
pub(in crate::client) fn keys() -> Line {
    Line::new(Tone::Bold, "▌ c")
        .and(Tone::Plain, " continue")
        .and(Tone::Bold, "  a")
        .and(Tone::Plain, " abort the turn")
}

/// The line shown instead of the keys while a choice needs confirmation; `None` if it needs none.
pub(in crate::client) fn confirmation(choice: Choice) -> Option<Line> {
    match choice {
        Choice::Abort => Some(prompt::confirm(Line::new(Tone::Warn, "▌ abort the turn"))),
        Choice::Continue => None,
    }
}

/// The choice of a key.
pub(in crate::client) fn of_key(key: char) -> Option<Choice> {
    match key.to_ascii_lowercase() {
        'c' => Some(Choice::Continue),
        'a' => Some(Choice::Abort),
        _ => None,
    }
}

/// The command that answers the question from another terminal.
pub(in crate::client) fn hint(question: &Question) -> String {
    format!("▌ agentctl answer {} continue|abort", question.request_id)
}
