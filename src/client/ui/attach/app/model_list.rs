//! The list of models that `/model` opens. Pure.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::terminal::escape;
use crate::terminal::format::tokens;
use crate::terminal::style::{StyledLine, Tone};
use crate::terminal::table::{Table, column};
use types::model::ModelView;
use types::usage::Price;

/// Models that are visible at once.
const LIST_ROWS: usize = 8;

/// The known models, the typed filter, and the selected model.
#[derive(Debug)]
pub(crate) struct ModelList {
    models: Vec<ModelView>,
    typed: String,
    selected: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ListKeyResult {
    Nothing,
    Closed,
    Model(String),
}

impl ModelList {
    /// The list with the model of the session selected.
    pub(super) fn new(models: Vec<ModelView>, current: &str) -> Self {
        let selected = models.iter().position(|view| view.model == current).unwrap_or(0);
        Self { models, typed: String::new(), selected }
    }

    fn matching_models(&self) -> Vec<&ModelView> {
        let typed = self.typed.to_lowercase();
        let fits = |view: &&ModelView| {
            typed.split_whitespace().all(|word| {
                view.model.to_lowercase().contains(word) || view.pointers.iter().any(|it| it.contains(word))
            })
        };
        self.models.iter().filter(fits).collect()
    }

    pub(super) fn on_key(&mut self, key: KeyEvent) -> ListKeyResult {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let last = self.matching_models().len().saturating_sub(1);
        match key.code {
            KeyCode::Esc => return ListKeyResult::Closed,
            KeyCode::Char('c' | 'd') if is_control => return ListKeyResult::Closed,
            KeyCode::Enter => {
                let model = self.matching_models().get(self.selected).map(|view| view.model.clone());
                return model.map_or(ListKeyResult::Nothing, ListKeyResult::Model);
            }
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down => self.selected = (self.selected + 1).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(LIST_ROWS),
            KeyCode::PageDown => self.selected = (self.selected + LIST_ROWS).min(last),
            KeyCode::Backspace => {
                self.typed.pop();
                self.selected = 0;
            }
            KeyCode::Char(c) if !is_control => {
                self.typed.push(c);
                self.selected = 0;
            }
            _ => {}
        }
        ListKeyResult::Nothing
    }

    /// The rows of the list; `current` is the model of the session.
    pub(super) fn rows(&self, current: &str, columns: usize) -> Vec<StyledLine> {
        let head = match self.typed.as_str() {
            "" => StyledLine::new(Tone::Bold, "Model of this session").and(Tone::Dim, " · type to search"),
            typed => StyledLine::new(Tone::Bold, "Model of this session")
                .and(Tone::Plain, format!(" · {}", escape::line(typed))),
        };
        let mut rows = vec![head.cut(columns)];
        let listed = self.matching_models();
        if listed.is_empty() {
            rows.push(
                StyledLine::new(Tone::Dim, "  no known model matches; type /model PROVIDER/MODEL")
                    .cut(columns),
            );
        } else {
            let first = (self.selected + 1).saturating_sub(LIST_ROWS);
            let mut table = Table::new([
                column("").between(1, 1),
                column("MODEL").between(12, 48),
                column("$/M IN").right(),
                column("OUT").right(),
                column("CACHED").right().rank(3),
                column("WINDOW").right().rank(2),
                column("FOR").between(4, 24).rank(1),
            ]);
            let mark = |nth: usize| if nth == self.selected { "›" } else { "" };
            for (nth, view) in listed.iter().enumerate().skip(first).take(LIST_ROWS) {
                let price = |of: fn(&Price) -> f64| {
                    view.price.as_ref().map_or_else(|| "?".to_owned(), |price| of(price).to_string())
                };
                let mut roles = view.pointers.join(" ");
                if view.model == current {
                    roles = format!("{roles} in use").trim_start().to_owned();
                }
                let tone = if nth == self.selected { Tone::Bold } else { Tone::Plain };
                table.push([
                    (Tone::User, mark(nth).to_owned()),
                    (tone, escape::line(&view.model).into_owned()),
                    (Tone::Plain, price(|it| it.input)),
                    (Tone::Plain, price(|it| it.output)),
                    (Tone::Dim, price(|it| it.cache_read)),
                    (Tone::Dim, view.context_window.map_or_else(|| "?".into(), |it| tokens(it.into()))),
                    (Tone::Good, escape::line(&roles).into_owned()),
                ]);
            }
            rows.extend(table.lines(Some(columns)));
            let below = listed.len().saturating_sub(first + LIST_ROWS);
            if first + below > 0 {
                rows.push(StyledLine::new(Tone::Dim, format!("  {first} above, {below} below")).cut(columns));
            }
        }
        let keys = "↑↓ · Enter uses it in this session · Esc stay";
        let default = "The default of new sessions is `main` of [models] in the configuration.";
        rows.extend([keys, default].map(|text| StyledLine::new(Tone::Dim, text).cut(columns)));
        rows
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn model(name: &str, price: Option<f64>, pointers: &[&str]) -> ModelView {
        let price = price.map(
            |input| json!({"input": input, "output": 5.0 * input, "cache_read": 0.3, "cache_write": 3.75}),
        );
        serde_json::from_value(json!({"model": name, "known": true, "pointers": pointers,
            "context_window": 200_000, "max_output_tokens": 64_000, "tools": true, "streaming": true,
            "system_role": true, "thinking": false, "vision": true, "price": price}))
        .expect("a model")
    }

    fn list() -> ModelList {
        let models = vec![
            model("anthropic/sonnet", Some(3.0), &["main"]),
            model("anthropic/haiku", Some(1.0), &["quick"]),
            model("local/\u{1b}x", None, &[]),
        ];
        ModelList::new(models, "anthropic/haiku")
    }

    fn press(list: &mut ModelList, typed: &str) -> ListKeyResult {
        let mut picked = ListKeyResult::Nothing;
        for c in typed.chars() {
            let code = if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) };
            picked = list.on_key(KeyEvent::new(code, KeyModifiers::NONE));
        }
        picked
    }

    #[test]
    fn model_list_shows_prices_and_current_model() {
        let rows: Vec<String> =
            list().rows("anthropic/haiku", 80).iter().map(|row| row.plain().trim_end().to_owned()).collect();
        assert_eq!(
            rows,
            [
                "Model of this session · type to search",
                "   MODEL             $/M IN  OUT  CACHED  WINDOW  FOR",
                "   anthropic/sonnet       3   15     0.3  200.0k  main",
                "›  anthropic/haiku        1    5     0.3  200.0k  quick in use",
                "   local/⟦ESC⟧x           ?    ?       ?  200.0k",
                "↑↓ · Enter uses it in this session · Esc stay",
                "The default of new sessions is `main` of [models] in the configuration.",
            ]
        );
        for columns in [10, 20, 40, 200] {
            assert!(list().rows("x", columns).iter().all(|row| row.width() <= columns), "{columns}");
        }
    }

    #[test]
    fn typed_words_choose_among_models() {
        let mut list = list();
        assert_eq!(
            press(&mut list, "\n"),
            ListKeyResult::Model("anthropic/haiku".into()),
            "the selected one"
        );
        assert_eq!(press(&mut list, "son anth\n"), ListKeyResult::Model("anthropic/sonnet".into()));
        assert_eq!(press(&mut list, "zz\n"), ListKeyResult::Nothing);
        assert_eq!(list.on_key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE)), ListKeyResult::Closed);
    }
}
