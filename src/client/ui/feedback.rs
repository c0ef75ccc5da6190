//! Shows the two answers of binary feedback, and which of them was chosen.

use crate::client::terminal::escape;
use crate::client::terminal::style::{Line, Tone};
use crate::client::ui::summary::call_summary;
use crate::types::event::FeedbackBy;
use crate::types::ids::QuestionId;
use crate::types::message::Block;
use crate::types::session::Item;

/// The lines after an answer: its calls, which do not run yet, and its number.
pub(in crate::client) fn end_of_answer(number: usize, item: &Item) -> Vec<Line> {
    let calls = item.content.iter().filter_map(|block| match block {
        Block::ToolCall(call) => {
            let summary = call_summary(&call.tool, &call.input);
            Some(Line::new(Tone::Dim, "  ○ ").and(Tone::Bold, summary).and(Tone::Dim, " (not run yet)"))
        }
        _ => None,
    });
    let mut lines: Vec<Line> = calls.collect();
    lines.push(Line::new(Tone::Dim, format!("  └ end of answer {number}")));
    lines
}

/// The request to choose, with the command that does it.
pub(in crate::client) fn shown(request_id: QuestionId) -> Line {
    Line::new(Tone::Warn, "▌ Two answers: ")
        .and(Tone::Plain, "choose the one to continue with: ")
        .and(Tone::Bold, format!("agentctl feedback {request_id} 1|2"))
}

/// The keys that choose, in one line.
pub(in crate::client) fn keys() -> Line {
    Line::new(Tone::Bold, "▌ 1")
        .and(Tone::Plain, " continue with the first answer")
        .and(Tone::Bold, "  2")
        .and(Tone::Plain, " with the second")
}

/// The choice.
pub(in crate::client) fn chosen(number: Option<usize>, by: FeedbackBy, client: Option<&str>) -> Line {
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
    Line::new(Tone::Dim, text)
}
