//! A call of each tool: its arguments, how it is prepared and how it runs.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Toolbox, definitions};
use crate::tools::call::{blocking, internal};
use crate::tools::context::SessionContext;
use crate::tools::error::{ToolError, cancelled};
use crate::tools::files::{edit, glob, grep, ls, multi_edit, notebook, patch, read, write};
use crate::tools::session_tools::SessionCall;
use crate::tools::shell::{Available, CallChannels, ProcessStarted};
use crate::tools::{input, knowledge_search, mcp, session_tools, shell, task, web};
use crate::types::message::ToolCall;
use crate::types::tool::{PreparedCall, Progress, ToolOutcome};

/// Prepares calls on a thread that may block on the disk.
pub struct CallPreparer {
    pub(super) tools: Toolbox,
    pub(super) here: &'static Available,
}

impl CallPreparer {
    /// Like [`Toolbox::prepare`]. Blocking.
    ///
    /// # Errors
    /// The error is an outcome for the model.
    pub fn prepare(
        &self,
        call: &ToolCall,
        session_context: &SessionContext,
    ) -> Result<PreparedCall, ToolError> {
        let context = self.tools.context(session_context);
        match &self.tools.parse(call, session_context)? {
            Call::Bash(input) => shell::prepare(&context, self.here, input),
            Call::BashOutput(input) => shell::prepare_output(&context, input),
            Call::KillBash(input) => shell::prepare_kill(&context, input),
            Call::Read(input) => read::prepare(&context, input),
            Call::Write(input) => write::prepare(&context, input),
            Call::Edit(input) => edit::prepare(&context, input),
            Call::MultiEdit(input) => multi_edit::prepare(&context, input),
            Call::ApplyPatch(input) => patch::prepare(&context, input),
            Call::NotebookEdit(input) => notebook::prepare(&context, input),
            Call::WebFetch(input) => web::prepare(input),
            Call::Task(input) => task::prepare(&context, input),
            Call::Glob(input) => glob::prepare(&context, input),
            Call::Grep(input) => grep::prepare(&context, input),
            Call::Ls(input) => ls::prepare(&context, input),
            Call::Session(call) => session_tools::prepare(&context, call),
            Call::Mcp(call) => Ok(mcp::prepare(&context, call)),
            Call::KnowledgeSearch(input) => knowledge_search::prepare(input),
        }
    }
}

/// The parsed arguments of a call.
pub(super) enum Call {
    Bash(shell::Input),
    BashOutput(shell::OutputInput),
    KillBash(shell::KillInput),
    Read(read::Input),
    Write(write::Input),
    Edit(edit::Input),
    MultiEdit(multi_edit::Input),
    ApplyPatch(patch::Input),
    NotebookEdit(notebook::Input),
    WebFetch(web::Input),
    Task(task::Input),
    Glob(glob::Input),
    Grep(grep::Input),
    Ls(ls::Input),
    Session(SessionCall),
    Mcp(Box<mcp::McpCall>),
    KnowledgeSearch(knowledge_search::Input),
}

impl Toolbox {
    pub(super) async fn run_call(
        &self,
        call: &ToolCall,
        prepared: &PreparedCall,
        session_context: &SessionContext,
        progress: mpsc::Sender<Progress>,
        births: mpsc::Sender<ProcessStarted>,
        stop: CancellationToken,
    ) -> Result<ToolOutcome, ToolError> {
        let context = self.context(session_context);
        let call_id = call.call_id;
        let call = match self.parse(call, session_context)? {
            // A background task is started by `start`.
            Call::Bash(input) if input.goes_on() => return Err(internal()),
            Call::Bash(input) => {
                let channels = CallChannels { progress, births, stop };
                let context = self.command_context(session_context);
                // The futures of these tools are large. Boxed, they need space only while they run.
                return Box::pin(shell::run(&context, call_id, &input, prepared, channels)).await;
            }
            Call::KillBash(input) => return shell::run_kill(&context, &input, &stop).await,
            Call::WebFetch(input) => {
                return Box::pin(web::run(&context, &self.web, &input, prepared, &stop)).await;
            }
            Call::Mcp(call) => {
                return Box::pin(mcp::run(&context, *call, prepared, progress, &stop)).await;
            }
            Call::KnowledgeSearch(input) => {
                return Box::pin(knowledge_search::run(&context, &input, &stop)).await;
            }
            call => call,
        };
        if stop.is_cancelled() {
            return Ok(cancelled());
        }
        let prepared = prepared.clone();
        self.lingering.end(context.session_context.session_id);
        blocking(move || match &call {
            // The session runs a sub-agent itself.
            Call::Bash(_)
            | Call::KillBash(_)
            | Call::WebFetch(_)
            | Call::Task(_)
            | Call::Mcp(_)
            | Call::KnowledgeSearch(_) => Err(internal()),
            Call::BashOutput(input) => shell::run_output(&context, input, &stop),
            Call::Read(input) => read::run(&context, input, &prepared, &stop),
            Call::Write(input) => write::run(&context, call_id, input, &prepared, &stop),
            Call::Edit(input) => edit::run(&context, call_id, input, &prepared, &stop),
            Call::MultiEdit(input) => multi_edit::run(&context, call_id, input, &prepared, &stop),
            Call::ApplyPatch(input) => patch::run(&context, call_id, input, &prepared, &stop),
            Call::NotebookEdit(input) => notebook::run(&context, call_id, input, &prepared, &stop),
            Call::Glob(input) => glob::run(&context, input, &prepared, &stop),
            Call::Grep(input) => grep::run(&context, input, &prepared, &stop),
            Call::Ls(input) => ls::run(&context, input, &prepared, &stop),
            Call::Session(call) => session_tools::run(&context, call),
        })
        .await
    }

    /// Finds the tool of a call and parses its arguments.
    ///
    /// # Errors
    /// The tool does not exist, or the arguments are not valid.
    pub(super) fn parse(&self, call: &ToolCall, session_context: &SessionContext) -> Result<Call, ToolError> {
        Ok(match call.tool.as_str() {
            "Bash" => Call::Bash(input::parse(call)?),
            "BashOutput" => Call::BashOutput(input::parse(call)?),
            "KillBash" => Call::KillBash(input::parse(call)?),
            "Read" => Call::Read(input::parse(call)?),
            "Write" => Call::Write(input::parse(call)?),
            "Edit" => Call::Edit(input::parse(call)?),
            "MultiEdit" => Call::MultiEdit(input::parse(call)?),
            "ApplyPatch" => Call::ApplyPatch(input::parse(call)?),
            "NotebookEdit" => Call::NotebookEdit(input::parse(call)?),
            "WebFetch" => Call::WebFetch(input::parse(call)?),
            "Task" => Call::Task(input::parse(call)?),
            "Glob" => Call::Glob(input::parse(call)?),
            "Grep" => Call::Grep(input::parse(call)?),
            "LS" => Call::Ls(input::parse(call)?),
            knowledge_search::NAME => Call::KnowledgeSearch(input::parse(call)?),
            tool if mcp::is_mcp(tool) => Call::Mcp(Box::new(mcp::parse(call, session_context)?)),
            other => match session_tools::parse(call)? {
                Some(call) => Call::Session(call),
                None => return Err(definitions::unknown_tool(other, &self.cards)),
            },
        })
    }
}
