//! The todo list that a model keeps in its session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One entry of a todo list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Todo {
    /// The task in the imperative, for example `Run the tests`.
    pub content: String,
    /// Its status.
    pub status: TodoStatus,
    /// The text to show while the task is in progress, for example `Running the tests`.
    #[serde(skip_serializing_if = "Option::is_none", default, alias = "activeForm")]
    pub active_form: Option<String>,
}

/// Status of an entry of a todo list.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
}

impl TodoStatus {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The checkbox of an entry in a plain-text list.
    #[must_use]
    pub const fn mark(self) -> &'static str {
        match self {
            TodoStatus::Pending => "[ ]",
            TodoStatus::InProgress => "[>]",
            TodoStatus::Completed => "[x]",
        }
    }
}

impl Todo {
    /// The text for users: `active_form` if the task is in progress and has one, else `content`.
    #[must_use]
    pub fn display_text(&self) -> &str {
        let active = self.active_form.as_deref().filter(|_| self.status == TodoStatus::InProgress);
        active.unwrap_or(&self.content)
    }
}

/// The list as plain text, one line for each entry.
#[must_use]
pub fn list(todos: &[Todo]) -> String {
    let lines: Vec<String> =
        todos.iter().map(|todo| format!("{} {}", todo.status.mark(), todo.content)).collect();
    lines.join("\n")
}
