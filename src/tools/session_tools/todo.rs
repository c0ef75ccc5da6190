//! TodoWrite and TodoRead: the session's todo list. The list is state of the session, so a write returns the new list
//! as a part of its outcome.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::error::ToolError;
use crate::session_tools::prepare_session_change;
use types::todo::{self, Todo, TodoStatus};
use types::tool::{PreparedCall, ToolOutcome};

pub(super) const WRITE: &str = "TodoWrite";
pub(super) const READ: &str = "TodoRead";

/// Maximum number of entries in a list.
const MAX_TODOS: usize = 100;
/// Maximum bytes of one entry's text.
const MAX_CONTENT_BYTES: usize = 2_000;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct WriteInput {
    /// The whole new list; it replaces the old one. An empty list removes it.
    todos: Vec<Todo>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ReadInput {}

pub(super) const WRITE_DESCRIPTION: &str = "Keeps a todo list for the current work, which the user sees. Use it for \
    work of three or more steps, and for several tasks at once; not for a single simple step. Give the whole list \
    each time. Set one entry to in_progress when you begin it, and to completed as soon as it is really done; add \
    what you discover on the way.";
pub(super) const READ_DESCRIPTION: &str = "Shows the todo list of this session.";

pub(super) fn prepare_write(input: &WriteInput) -> Result<PreparedCall, ToolError> {
    check(&input.todos)?;
    let done = input.todos.iter().filter(|todo| todo.status == TodoStatus::Completed).count();
    let summary = match input.todos.len() {
        0 => "Clear the todo list".to_owned(),
        all => format!("Update the todo list: {done} of {all} done"),
    };
    Ok(prepare_session_change(WRITE, summary))
}

fn check(todos: &[Todo]) -> Result<(), ToolError> {
    let wrong = |path: String, problem: String| {
        ToolError::new("invalid_input", format!("the arguments of {WRITE} are wrong at `{path}`: {problem}"))
            .with(json!({ "path": path, "problem": problem }))
    };
    if todos.len() > MAX_TODOS {
        let problem = format!("{} entries; a list has at most {MAX_TODOS}", todos.len());
        return Err(wrong("todos".into(), problem));
    }
    for (at, todo) in todos.iter().enumerate() {
        if todo.content.trim().is_empty() {
            return Err(wrong(format!("todos[{at}].content"), "it is empty".into()));
        }
        let texts = [("content", Some(todo.content.as_str())), ("active_form", todo.active_form.as_deref())];
        for (name, text) in texts {
            if text.is_some_and(|text| text.len() > MAX_CONTENT_BYTES) {
                let problem = format!("longer than {MAX_CONTENT_BYTES} bytes");
                return Err(wrong(format!("todos[{at}].{name}"), problem));
            }
        }
    }
    Ok(())
}

pub(super) fn run_write(input: &WriteInput) -> Result<ToolOutcome, ToolError> {
    check(&input.todos)?;
    let of = |status| input.todos.iter().filter(|todo| todo.status == status).count();
    let counts = [TodoStatus::Completed, TodoStatus::InProgress, TodoStatus::Pending]
        .map(|status| format!("{} {}", of(status), status.name().replace('_', " ")));
    let output = match input.todos.len() {
        0 => "The todo list is empty now.".to_owned(),
        _ => format!("The todo list was updated: {}. Go on with the work.", counts.join(", ")),
    };
    Ok(ToolOutcome { todos: Some(input.todos.clone()), ..ToolOutcome::completed(output) })
}

pub(super) fn run_read(todos: &[Todo]) -> ToolOutcome {
    match todos {
        [] => ToolOutcome::completed("The todo list is empty."),
        todos => ToolOutcome::completed(todo::list(todos)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(todos: serde_json::Value) -> WriteInput {
        serde_json::from_value(json!({ "todos": todos })).expect("an input")
    }

    #[test]
    fn todo_list_with_empty_or_too_many_entries_is_refused() {
        let fine = input(json!([{"content": "a", "status": "in_progress", "activeForm": "doing a"}]));
        assert_eq!(fine.todos[0].active_form.as_deref(), Some("doing a"));
        assert!(prepare_write(&fine).is_ok());
        let blank = input(json!([{"content": " ", "status": "pending"}]));
        assert!(prepare_write(&blank).expect_err("refused").text.contains("todos[0].content"));
        let one = json!({"content": "a", "status": "pending"});
        let many = input(json!(vec![one; MAX_TODOS + 1]));
        assert!(prepare_write(&many).expect_err("refused").text.contains("at most 100"));
    }

    #[test]
    fn written_todo_list_is_part_of_outcome() {
        let outcome = run_write(&input(json!([{"content": "a", "status": "completed"}]))).expect("written");
        assert_eq!(outcome.todos.as_ref().map(Vec::len), Some(1));
        assert!(outcome.output.contains("1 completed, 0 in progress, 0 pending"), "{}", outcome.output);
        assert_eq!(run_read(&outcome.todos.expect("a list")).output, "[x] a");
    }
}
