//! Keys while the model asks: the list of options.

use std::time::Instant;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::ui::attach::app::{App, Effect};
use crate::ui::question;
use crate::ui::question_list::OptionCursor;
use types::question::UserAnswer;

impl App {
    /// Handles a key for the options of a question of the model. Returns `None` if the key belongs to the input
    /// line, where the user types own words.
    pub(super) fn on_option_key(&mut self, key: KeyEvent, now: Instant) -> Option<Option<Effect>> {
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return None;
        }
        let question = self.questions.front().filter(|question| question::is_typed(question))?;
        let open = question.questions.get(self.answers.len()).filter(|open| !open.options.is_empty())?;
        let count = open.options.len();
        match key.code {
            KeyCode::Up | KeyCode::Down => self.options.step(key.code == KeyCode::Down, count),
            KeyCode::Char(' ') if open.multi_select => self.options.toggle(self.options.index),
            KeyCode::Enter => {
                let answer = self.options.answer(open)?;
                return Some(self.add_answer(answer, now));
            }
            KeyCode::Char(c) => {
                let number = usize::try_from(c.to_digit(10)?).ok()?;
                let index = number.checked_sub(1).filter(|index| *index < count)?;
                if open.multi_select {
                    self.options.index = index;
                    self.options.toggle(index);
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
        self.answers.push(answer);
        self.options = OptionCursor::default();
        let question = self.questions.front()?;
        let (request_id, all) = (question.request_id, question.questions.len());
        if self.answers.len() < all {
            // A second press of the same key must not answer the next question.
            self.timing.ignore_keys(now);
            return None;
        }
        Some(Effect::Answer(question::answers(request_id, std::mem::take(&mut self.answers))))
    }
}
