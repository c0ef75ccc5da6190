//! Shows the two answers of binary feedback, and the answer that was chosen.

use crate::terminal::escape;
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::summary::call_summary;
use types::event::FeedbackBy;
use types::ids::QuestionId;
use types::message::Block;
use types::session::Item;

/// The lines after an answer: its calls, which do not run yet, and its number.
pub(crate) fn end_of_answer(number: usize, item: &Item) -> Vec<StyledLine> {
    let calls = item.content.iter().filter_map(|block| match block {
        Block::ToolCall(call) => {
            let summary = call_summary(&call.tool, &call.input);
            Some(StyledLine::new(Tone::Dim, "  ○ ").and(Tone::Bold, summary).and(Tone::Dim, " (not run yet)"))
        }
        _ => None,
    });
    let mut lines: Vec<StyledLine> = calls.collect();
    lines.push(StyledLine::new(Tone::Dim, format!("  └ end of answer {number}")));
    lines
}

/// The line that asks for the choice, with the command that makes it.
pub(crate) fn request_line(request_id: QuestionId) -> StyledLine {
    StyledLine::new(Tone::Warn, "▌ Two answers: ")
        .and(Tone::Plain, "choose the one to continue with: ")
        .and(Tone::Bold, format!("agentctl feedback {request_id} 1|2"))
}

/// The keys of the choice, in one line.
pub(crate) fn keys() -> StyledLine {
    StyledLine::new(Tone::Bold, "▌ 1")
        .and(Tone::Plain, " continue with the first answer")
        .and(Tone::Bold, "  2")
        .and(Tone::Plain, " with the second")
}

/// The line that names the chosen answer.
pub(crate) fn choice_line(number: Option<usize>, by: FeedbackBy, client: Option<&str>) -> StyledLine {
    let which = number.map_or("an earlier answer".to_owned(), |number| format!("answer {number}"));
    let text = match by {
        FeedbackBy::Answer => {
            let who = client.map(|client| format!(" by {}", escape::line(client))).unwrap_or_default();
            format!("  └ {which} was chosen{who}")
        }
        FeedbackBy::Equal => "  └ both answers are equal: answer 1 is used".to_owned(),
        FeedbackBy::Single => "  └ there is no second answer: answer 1 is used".to_owned(),
        FeedbackBy::Abort => "  └ no answer was chosen".to_owned(),
    };
    StyledLine::new(Tone::Dim, text)
}
