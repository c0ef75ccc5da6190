//! A question of the model as a list with numbered options, in the form of the list of requests. Pure.

use std::collections::BTreeSet;

use crate::terminal::escape;
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::cursor::Step;
use crate::ui::question::answer_text;
use crate::ui::summary::one_line;
use types::mcp::MCP_PREFIX;
use types::question::{Question, UserAnswer, UserQuestion};

const BAR: &str = "▌ ";

/// The place of the user in the options of a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OptionCursor {
    /// Index of the option under the cursor.
    pub(crate) index: usize,
    /// Indexes of the marked options of a question that takes several.
    pub(crate) marked: BTreeSet<usize>,
}

impl OptionCursor {
    /// Moves the cursor.
    pub(crate) fn step(&mut self, step: Step, count: usize) {
        self.index = step.from(self.index, count);
    }

    /// Marks an option, or removes its mark.
    pub(crate) fn toggle(&mut self, index: usize) {
        if !self.marked.remove(&index) {
            self.marked.insert(index);
        }
    }

    /// The answer that Enter gives: the marked options, or the option under the cursor.
    pub(crate) fn answer(&self, question: &UserQuestion) -> Option<UserAnswer> {
        let label = |index: &usize| question.options.get(*index).map(|option| option.label.clone());
        let choices: Vec<String> = match self.marked.is_empty() {
            true => label(&self.index).into_iter().collect(),
            false => self.marked.iter().filter_map(label).collect(),
        };
        (!choices.is_empty()).then_some(UserAnswer { choices, text: None })
    }
}

/// Layout of the list.
#[derive(Clone, Copy)]
pub(crate) struct QuestionStyle {
    pub(crate) columns: usize,
    /// Maximum number of rows of the list.
    pub(crate) rows: usize,
    /// Whether keys answer. Until then the rows are dim.
    pub(crate) is_answerable: bool,
    /// Whether the user types own words, so that keys do not choose an option.
    pub(crate) is_typing: bool,
}

/// The rows of the questions of a model. `answers` are those that were given already.
pub(crate) fn rows(
    question: &Question,
    answers: &[UserAnswer],
    cursor: &OptionCursor,
    look: QuestionStyle,
) -> Vec<StyledLine> {
    let all = question.questions.len();
    let Some(open) = question.questions.get(answers.len()) else { return Vec::new() };
    let place = |nth: usize| if all > 1 { format!("{}/{all}  ", nth + 1) } else { String::new() };
    let mut head: Vec<StyledLine> = Vec::new();
    for (nth, (asked, answer)) in question.questions.iter().zip(answers).enumerate() {
        let text = format!("{}{} · {}", place(nth), one_line(&asked.question, 60), answer_text(answer));
        head.push(StyledLine::new(Tone::Warn, BAR).and(Tone::Dim, text).cut(look.columns));
    }
    let mut line = StyledLine::new(Tone::Warn, BAR).and(Tone::Dim, place(answers.len()));
    if all == 1 && !question.tool.as_deref().is_some_and(|tool| tool.starts_with(MCP_PREFIX)) {
        line = line.and(Tone::Warn, "The model asks: ");
    }
    if let Some(header) = &open.header {
        line = line.and(Tone::Dim, format!("[{}] ", escape::line(header)));
    }
    let mut text = escape::exact_lines(&open.question).into_iter();
    let first = line.and(Tone::Bold, text.next().unwrap_or_default());
    let more = text.map(|line| StyledLine::new(Tone::Warn, "▌   ").and(Tone::Bold, line));
    head.extend(std::iter::once(first).chain(more).flat_map(|line| wrap_rows(&line, look.columns)));
    let mut rest: Vec<StyledLine> =
        option_rows(open, cursor, look).iter().flat_map(|line| wrap_rows(line, look.columns)).collect();
    for (nth, later) in question.questions.iter().enumerate().skip(answers.len() + 1) {
        let text = format!("{}{}", place(nth), one_line(&later.question, 200));
        rest.push(StyledLine::new(Tone::Warn, BAR).and(Tone::Dim, text).cut(look.columns));
    }
    rest.extend(wrap_rows(&keys(open, look), look.columns));
    // The options and the keys stay visible. A long question is complete in the pager.
    let room = look.rows.saturating_sub(rest.len()).max(1);
    if head.len() > room {
        let hidden = head.len() - room + 1;
        head.truncate(room.saturating_sub(1));
        let text = format!("{BAR}+ {hidden} lines · Ctrl-O all");
        head.push(StyledLine::new(Tone::Warn, text).cut(look.columns));
    }
    head.extend(rest);
    head
}

fn option_rows(open: &UserQuestion, cursor: &OptionCursor, look: QuestionStyle) -> Vec<StyledLine> {
    let is_live = look.is_answerable && !look.is_typing;
    let row = |(nth, option): (usize, &types::question::QuestionOption)| {
        let is_here = is_live && nth == cursor.index;
        let tone = match (look.is_answerable, is_here) {
            (false, _) => Tone::Dim,
            (true, true) => Tone::Bold,
            (true, false) => Tone::Plain,
        };
        let mark = match (open.multi_select, cursor.marked.contains(&nth)) {
            (false, _) => "",
            (true, true) => "[x] ",
            (true, false) => "[ ] ",
        };
        let lead = if is_here { "› " } else { "  " };
        let more = option.description.as_ref().map(|text| format!(" — {}", one_line(text, 300)));
        StyledLine::new(Tone::Warn, BAR)
            .and(tone, format!("{lead}{}  {mark}{}", nth + 1, escape::line(&option.label)))
            .and(Tone::Dim, more.unwrap_or_default())
    };
    open.options.iter().enumerate().map(row).collect()
}

fn keys(open: &UserQuestion, look: QuestionStyle) -> StyledLine {
    let text = match (look.is_answerable, look.is_typing, open.options.is_empty(), open.multi_select) {
        (false, ..) => "…",
        (true, true, ..) | (true, false, true, _) => "Enter answers with your words · Ctrl-O all",
        (true, false, false, false) => {
            "↑↓ Enter or its number · or type your own words · Ctrl-O all · Esc stop"
        }
        (true, false, false, true) => {
            "several: Space or its number marks · Enter answers · or type your own words · Esc stop"
        }
    };
    StyledLine::new(Tone::Warn, BAR).and(Tone::Dim, text)
}

/// Rows of at most `columns`, each of which begins with the bar.
fn wrap_rows(line: &StyledLine, columns: usize) -> Vec<StyledLine> {
    let lead = if columns > 20 { "▌      " } else { BAR };
    if line.width() <= columns {
        return vec![line.clone()];
    }
    let mut rows = line.wrap(columns.saturating_sub(lead.chars().count()).max(2));
    for row in rows.iter_mut().skip(1) {
        *row = std::mem::take(row).with_lead(Tone::Warn, lead);
    }
    rows
}
