//! Tools that reach only data of the session itself: its todo list, its questions, its plan, and the skills
//! and notes of its project.
//!
//! Their calls change nothing in the workspace. Questions and proposed plans never run as a tool: the engine raises
//! them and gives the call its result.

mod ask_user;
mod memory;
mod plan_mode;
mod skill;
mod todo;
mod tool_search;

use crate::call::internal_error;
use crate::context::{DataError, ProjectData, ToolContext};
use crate::error::ToolError;
use crate::input;
use types::mcp::TOOL_SEARCH;
use types::message::ToolCall;
use types::tool::{PreparedCall, Subject, ToolDefinition, ToolOutcome};

/// The parsed arguments of a call.
pub(crate) enum SessionCall {
    TodoWrite(todo::WriteInput),
    TodoRead(todo::ReadInput),
    AskUser(ask_user::Input),
    ExitPlanMode(plan_mode::Input),
    ToolSearch(tool_search::Input),
    Skill(skill::Input),
    Memory(memory::Input),
}

/// Parses a call of one of these tools; `None` for any other tool.
pub(crate) fn parse(call: &ToolCall) -> Result<Option<SessionCall>, ToolError> {
    Ok(Some(match call.tool.as_str() {
        todo::WRITE => SessionCall::TodoWrite(input::parse(call)?),
        todo::READ => SessionCall::TodoRead(input::parse(call)?),
        ask_user::NAME => SessionCall::AskUser(input::parse(call)?),
        plan_mode::NAME => SessionCall::ExitPlanMode(input::parse(call)?),
        TOOL_SEARCH => SessionCall::ToolSearch(input::parse(call)?),
        skill::NAME => SessionCall::Skill(input::parse(call)?),
        memory::NAME => SessionCall::Memory(input::parse(call)?),
        _ => return Ok(None),
    }))
}

pub(crate) fn prepare(context: &ToolContext, call: &SessionCall) -> Result<PreparedCall, ToolError> {
    match call {
        SessionCall::TodoWrite(input) => todo::prepare_write(input),
        SessionCall::TodoRead(_) => Ok(prepare_session_read(todo::READ, "Read the todo list")),
        SessionCall::AskUser(input) => ask_user::prepare(input),
        SessionCall::ExitPlanMode(input) => plan_mode::prepare(context, input),
        SessionCall::ToolSearch(input) => tool_search::prepare(input),
        SessionCall::Skill(input) => skill::prepare(input),
        SessionCall::Memory(input) => memory::prepare(input),
    }
}

pub(crate) fn run(context: &ToolContext, call: &SessionCall) -> Result<ToolOutcome, ToolError> {
    match call {
        SessionCall::TodoWrite(input) => todo::run_write(input),
        SessionCall::TodoRead(_) => Ok(todo::run_read(&context.session_context.todos)),
        // The engine gives this call its result.
        SessionCall::AskUser(_) => Err(internal_error()),
        SessionCall::ExitPlanMode(_) => Ok(plan_mode::run()),
        SessionCall::ToolSearch(input) => Ok(tool_search::run(input, &context.session_context.mcp)),
        SessionCall::Skill(input) => skill::run(context, input),
        SessionCall::Memory(input) => memory::run(context, input),
    }
}

/// The definitions for models, always in the same order.
pub(crate) fn session_definitions() -> Vec<ToolDefinition> {
    let card = |name: &str, description: &str, input_schema, read_only| ToolDefinition {
        name: name.into(),
        description: description.into(),
        input_schema,
        read_only,
    };
    vec![
        card(todo::WRITE, todo::WRITE_DESCRIPTION, input::schema::<todo::WriteInput>(), false),
        card(todo::READ, todo::READ_DESCRIPTION, input::schema::<todo::ReadInput>(), true),
        card(ask_user::NAME, ask_user::DESCRIPTION, input::schema::<ask_user::Input>(), false),
        card(plan_mode::NAME, plan_mode::DESCRIPTION, input::schema::<plan_mode::Input>(), false),
        card(skill::NAME, skill::DESCRIPTION, input::schema::<skill::Input>(), true),
        card(memory::NAME, memory::DESCRIPTION, input::schema::<memory::Input>(), false),
    ]
}

/// The definition of the search. It is offered only if definitions are deferred.
pub(crate) fn tool_search_definition() -> ToolDefinition {
    ToolDefinition {
        name: TOOL_SEARCH.into(),
        description: tool_search::DESCRIPTION.into(),
        input_schema: input::schema::<tool_search::Input>(),
        read_only: false,
    }
}

/// Skills and notes of the project.
fn project_data(context: &ToolContext) -> Result<&dyn ProjectData, ToolError> {
    context.session_context.project.as_deref().ok_or_else(internal_error)
}

fn data_error(error: DataError) -> ToolError {
    ToolError::new(error.code, error.text)
}

/// A call that reads the session itself and changes nothing.
fn prepare_session_read(tool: &str, summary: impl Into<String>) -> PreparedCall {
    PreparedCall { read_only: true, ..prepare_session_change(tool, summary) }
}

/// A call that changes only the session itself.
fn prepare_session_change(tool: &str, summary: impl Into<String>) -> PreparedCall {
    PreparedCall {
        subject: Subject::Session { tool: tool.into() },
        summary: summary.into(),
        diff: None,
        read_only: false,
        change: None,
        sandbox: None,
    }
}
