//! The todo list that a model keeps in its session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One entry of a todo list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Todo {
    /// What to do, in the imperative: `Run the tests`.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
    /// The same while it is being done: `Running the tests`.
    #[serde(skip_serializing_if = "Option::is_none", default, alias = "activeForm")]
    pub active_form: Option<String>,
}

/// How far an entry of a todo list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
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
    pub const fn name(self) -> &'static str {
        match self {
            TodoStatus::Pending => "pending",
            TodoStatus::InProgress => "in_progress",
            TodoStatus::Completed => "completed",
        }
    }

    /// A box for lists of plain text.
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
    /// The text for users: the form of work in progress, if there is one.
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
