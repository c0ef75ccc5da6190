//! Shows questions: about a call with an unknown outcome, about a paused turn, or of the model.

use crate::answer::question::is_typed;
use crate::terminal::escape;
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::summary::{call_summary, one_line};
use types::mcp::MCP_PREFIX;
use types::question::{Choice, Question, QuestionKind, QuestionOption, UserAnswer, UserQuestion};

/// Number of output lines of a call that are shown with a question.
const OUTPUT_LINES: usize = 6;

pub(crate) fn answer_text(answer: &UserAnswer) -> String {
    let parts = answer.choices.iter().map(String::as_str).chain(answer.text.as_deref());
    one_line(&parts.collect::<Vec<_>>().join("; "), 200)
}

/// The questions of the model with their answers, for the conversation.
pub(crate) fn answered_lines(question: &Question, answers: &[UserAnswer]) -> Vec<StyledLine> {
    let pair = |(asked, answer): (&UserQuestion, &UserAnswer)| {
        [
            StyledLine::new(Tone::Dim, "? ").and(Tone::Plain, one_line(&asked.question, 400)),
            StyledLine::new(Tone::Dim, "  └ ").and(Tone::Good, answer_text(answer)),
        ]
    };
    question.questions.iter().zip(answers).flat_map(pair).collect()
}

/// Prefix of the input line while the user types the answer with this index.
pub(crate) fn input_mark(question: &Question, index: usize) -> String {
    match question.questions.len() {
        0 | 1 => "answer: ".into(),
        count => format!("answer {} of {count}: ", index + 1),
    }
}

/// The questions of the model with their options.
fn shown_questions(question: &Question) -> Vec<StyledLine> {
    let all = question.questions.len();
    let mut lines = Vec::new();
    // A question of an MCP server is not the model's. Its text names the server.
    let is_of_server = question.tool.as_deref().is_some_and(|tool| tool.starts_with(MCP_PREFIX));
    let asks = if is_of_server { "An MCP server asks" } else { "The model asks" };
    if all > 1 {
        lines.push(StyledLine::new(Tone::Warn, format!("▌ {asks} {all} questions")));
    }
    for (at, UserQuestion { question, header, options, multi_select }) in
        question.questions.iter().enumerate()
    {
        let lead = match all {
            2.. => format!("▌ {}. ", at + 1),
            _ if is_of_server => "▌ ".into(),
            _ => format!("▌ {asks}: "),
        };
        let mut text = escape::exact_lines(question).into_iter();
        let mut line = StyledLine::new(Tone::Warn, lead);
        if let Some(header) = header {
            line = line.and(Tone::Dim, format!("[{}] ", escape::line(header)));
        }
        lines.push(line.and(Tone::Bold, text.next().unwrap_or_default()));
        lines.extend(text.map(|line| StyledLine::new(Tone::Bold, format!("    {line}"))));
        if *multi_select {
            lines.push(StyledLine::new(Tone::Dim, "    several may be chosen: 1,2"));
        }
        for (nth, QuestionOption { label, description }) in options.iter().enumerate() {
            let line = StyledLine::new(Tone::Tool, format!("    {}  ", nth + 1))
                .and(Tone::Plain, escape::line(label));
            let more = description.as_ref().map(|text| format!(" — {}", one_line(text, 300)));
            lines.push(line.and(Tone::Dim, more.unwrap_or_default()));
        }
    }
    lines
}

/// The text of a question, without its keys.
pub(crate) fn question_lines(question: &Question) -> Vec<StyledLine> {
    let head = match question.kind {
        QuestionKind::UnknownOutcome => "▌ Outcome unknown: ",
        QuestionKind::Resume => "▌ Paused: ",
        QuestionKind::RepeatedCall => "▌ The same call again: ",
        QuestionKind::Question => return shown_questions(question),
    };
    let mut lines = vec![StyledLine::new(Tone::Warn, head).and(Tone::Plain, escape::line(&question.text))];
    if let (Some(tool), Some(input)) = (&question.tool, &question.input) {
        lines.push(StyledLine::new(Tone::Dim, "    ").and(Tone::Bold, call_summary(tool, input)));
    }
    if let Some(output) = &question.output {
        let output_lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
        let from = output_lines.len().saturating_sub(OUTPUT_LINES);
        if from > 0 {
            lines.push(StyledLine::new(Tone::Dim, format!("    │ … {from} lines of output before these")));
        }
        lines.extend(
            output_lines[from..]
                .iter()
                .map(|line| StyledLine::new(Tone::Dim, "    │ ").and(Tone::Plain, one_line(line, 200))),
        );
    }
    lines
}

/// The keys, in one line.
pub(crate) fn keys(question: &Question) -> StyledLine {
    if is_typed(question) {
        return StyledLine::new(Tone::Bold, "▌ type a number or your own words")
            .and(Tone::Plain, ", then Enter");
    }
    StyledLine::new(Tone::Bold, "▌ c")
        .and(Tone::Plain, " continue")
        .and(Tone::Bold, "  a")
        .and(Tone::Plain, " abort the turn")
}

/// The keys for a user who types a line.
pub(crate) fn line_keys(question: &Question) -> StyledLine {
    match is_typed(question) {
        true => keys(question),
        false => StyledLine::new(Tone::Bold, "▌ c")
            .and(Tone::Plain, " continue · ")
            .and(Tone::Bold, "a")
            .and(Tone::Plain, " abort the turn, then Enter"),
    }
}

/// The line that is shown instead of the keys while a choice needs confirmation; `None` if it needs none.
pub(crate) fn confirmation(choice: Choice) -> Option<StyledLine> {
    match choice {
        Choice::Abort => Some(
            StyledLine::new(Tone::Warn, "▌ abort the turn")
                .and(Tone::Bold, "  Enter")
                .and(Tone::Plain, " confirms")
                .and(Tone::Bold, "  Esc")
                .and(Tone::Plain, " goes back"),
        ),
        Choice::Continue => None,
    }
}

/// The command that answers the question from another terminal.
pub(crate) fn hint(question: &Question) -> String {
    let how = if is_typed(question) { "ANSWER…" } else { "continue|abort" };
    format!("▌ agentctl answer {} {how}", question.request_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_of_server_is_not_shown_as_one_of_model() {
        let user_question = |text: &str| UserQuestion {
            question: text.into(),
            header: None,
            options: Vec::new(),
            multi_select: false,
        };
        let question = |tool: &str, questions: Vec<UserQuestion>| Question {
            request_id: "ask_0192aaaa-aaaa-7aaa-8aaa-aaaaaaaaaaaa".parse().expect("an id"),
            child_session_id: None,
            kind: QuestionKind::Question,
            text: String::new(),
            call_id: None,
            tool: Some(tool.into()),
            input: None,
            output: None,
            options: Vec::new(),
            questions,
        };
        let first = |question: &Question| question_lines(question)[0].plain();
        let one = vec![user_question("The MCP server s asks: Go on?")];
        assert_eq!(first(&question("mcp__s__t", one.clone())), "▌ The MCP server s asks: Go on?");
        assert_eq!(first(&question("AskUser", vec![user_question("Why?")])), "▌ The model asks: Why?");
        let two = [one, vec![user_question("Size?")]].concat();
        assert_eq!(first(&question("mcp__s__t", two)), "▌ An MCP server asks 2 questions");
    }
}
