//! Keys while the model asks: the list of options.

use std::time::Instant;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::answer::question;
use crate::ui::attach::app::{App, Effect};
use crate::ui::cursor::Step;
use crate::ui::question_list::OptionCursor;
use types::question::UserAnswer;

impl App {
    /// Handles a key for the options of a question of the model. Returns `None` if the key belongs to the input
    /// line, where the user types own words.
    pub(super) fn on_option_key(&mut self, key: KeyEvent, now: Instant) -> Option<Option<Effect>> {
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return None;
        }
        let question = self.pending.questions.front().filter(|question| question::is_typed(question))?;
        let open = self.pending.answers.next_question(question).filter(|open| !open.options.is_empty())?;
        let count = open.options.len();
        if let Some(step) = Step::of_arrow(key.code) {
            self.pending.options.step(step, count);
            return Some(None);
        }
        match key.code {
            KeyCode::Char(' ') if open.multi_select => {
                self.pending.options.toggle(self.pending.options.index)
            }
            KeyCode::Enter => {
                let answer = self.pending.options.answer(open)?;
                return Some(self.add_answer(answer, now));
            }
            KeyCode::Char(c) => {
                let number = usize::try_from(c.to_digit(10)?).ok()?;
                let index = number.checked_sub(1).filter(|index| *index < count)?;
                if open.multi_select {
                    self.pending.options.index = index;
                    self.pending.options.toggle(index);
                } else {
                    let choices = vec![open.options.get(index)?.label.clone()];
                    return Some(self.add_answer(UserAnswer { choices, text: None }, now));
                }
            }
            _ => return None,
        }
        Some(None)
    }

    /// Adds the next answer. The answers are sent with the last one.
    pub(super) fn add_answer(&mut self, answer: UserAnswer, now: Instant) -> Option<Effect> {
        self.pending.options = OptionCursor::default();
        let question = self.pending.questions.front()?;
        let params = self.pending.answers.add(question, answer);
        if params.is_none() {
            // A second press of the same key must not answer the next question.
            self.pending.timing.ignore_keys(now);
        }
        params.map(Effect::Answer)
    }
}
