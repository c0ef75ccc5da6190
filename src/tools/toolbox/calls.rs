//! A call of each tool: its arguments, how it is prepared and how it runs.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Toolbox, definitions};
use crate::call::{blocking, internal_error};
use crate::context::{SessionContext, ToolContext};
use crate::error::{ToolError, cancelled};
use crate::files::{edit, glob, grep, ls, multi_edit, notebook, patch, read, write};
use crate::progress::CallProgress;
use crate::session_tools::SessionCall;
use crate::shell::{AvailableLevels, CallChannels, ProcessStarted};
use crate::{input, knowledge_search, mcp, session_tools, shell, task, web};
use types::message::ToolCall;
use types::tool::{PreparedCall, ToolOutcome, ToolProgress};

/// Prepares calls on a thread that may block on the disk.
pub struct CallPreparer {
    pub(super) tools: Toolbox,
    pub(super) here: &'static AvailableLevels,
}

impl CallPreparer {
    /// The files of a call that is a patch, as calls that change one file; empty for other calls and for a patch that
    /// cannot be read. Blocking.
    #[must_use]
    pub fn patched_files(
        &self,
        call: &ToolCall,
        session_context: &SessionContext,
    ) -> Vec<patch::PatchedFile> {
        match self.tools.parse(call, session_context) {
            Ok(CallInput::ApplyPatch(input)) => {
                patch::changed_files(&self.tools.context(session_context), &input).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

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
            CallInput::Bash(input) => shell::prepare(&context, self.here, input),
            CallInput::BashOutput(input) => shell::prepare_output(&context, input),
            CallInput::KillBash(input) => shell::prepare_kill(&context, input),
            CallInput::Read(input) => read::prepare(&context, input),
            CallInput::Write(input) => write::prepare(&context, input),
            CallInput::Edit(input) => edit::prepare(&context, input),
            CallInput::MultiEdit(input) => multi_edit::prepare(&context, input),
            CallInput::ApplyPatch(input) => patch::prepare(&context, input),
            CallInput::NotebookEdit(input) => notebook::prepare(&context, input),
            CallInput::WebFetch(input) => web::prepare(input),
            CallInput::Task(input) => task::prepare(&context, input),
            CallInput::Glob(input) => glob::prepare(&context, input),
            CallInput::Grep(input) => grep::prepare(&context, input),
            CallInput::Ls(input) => ls::prepare(&context, input),
            CallInput::Session(call) => session_tools::prepare(&context, call),
            CallInput::Mcp(call) => Ok(mcp::prepare(&context, call)),
            CallInput::KnowledgeSearch(input) => knowledge_search::prepare(input),
        }
    }
}

/// The parsed arguments of a call.
pub(super) enum CallInput {
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
        progress: mpsc::Sender<ToolProgress>,
        process_starts: mpsc::Sender<ProcessStarted>,
        stop: CancellationToken,
    ) -> Result<ToolOutcome, ToolError> {
        let notes = CallProgress::new(progress.clone(), self.settings.progress_interval);
        let context = ToolContext { progress: notes, ..self.context(session_context) };
        let call_id = call.call_id;
        let call = match self.parse(call, session_context)? {
            // A background task is started by `start`.
            CallInput::Bash(input) if input.is_background() => return Err(internal_error()),
            CallInput::Bash(input) => {
                let channels = CallChannels { progress, process_starts, stop };
                let context = self.command_context(session_context);
                // The futures of these tools are large. Boxed, they need space only while they run.
                return Box::pin(shell::run(&context, call_id, &input, prepared, channels)).await;
            }
            CallInput::KillBash(input) => return shell::run_kill(&context, &input, &stop).await,
            CallInput::WebFetch(input) => {
                return Box::pin(web::run(&context, &self.web, &input, prepared, &stop)).await;
            }
            CallInput::Mcp(call) => {
                return Box::pin(mcp::run(&context, *call, prepared, progress, &stop)).await;
            }
            CallInput::KnowledgeSearch(input) => {
                return Box::pin(knowledge_search::run(&context, &input, &stop)).await;
            }
            call => call,
        };
        if stop.is_cancelled() {
            return Ok(cancelled());
        }
        let prepared = prepared.clone();
        self.placeholder_cache.end(context.session_context.session_id);
        blocking(move || match &call {
            // The session runs a sub-agent itself.
            CallInput::Bash(_)
            | CallInput::KillBash(_)
            | CallInput::WebFetch(_)
            | CallInput::Task(_)
            | CallInput::Mcp(_)
            | CallInput::KnowledgeSearch(_) => Err(internal_error()),
            CallInput::BashOutput(input) => shell::run_output(&context, input, &stop),
            CallInput::Read(input) => read::run(&context, input, &prepared, &stop),
            CallInput::Write(input) => write::run(&context, call_id, input, &prepared, &stop),
            CallInput::Edit(input) => edit::run(&context, call_id, input, &prepared, &stop),
            CallInput::MultiEdit(input) => multi_edit::run(&context, call_id, input, &prepared, &stop),
            CallInput::ApplyPatch(input) => patch::run(&context, call_id, input, &prepared, &stop),
            CallInput::NotebookEdit(input) => notebook::run(&context, call_id, input, &prepared, &stop),
            CallInput::Glob(input) => glob::run(&context, input, &prepared, &stop),
            CallInput::Grep(input) => grep::run(&context, input, &prepared, &stop),
            CallInput::Ls(input) => ls::run(&context, input, &prepared, &stop),
            CallInput::Session(call) => session_tools::run(&context, call),
        })
        .await
    }

    /// Finds the tool of a call and parses its arguments.
    ///
    /// # Errors
    /// The tool does not exist, or the arguments are not valid.
    pub(super) fn parse(
        &self,
        call: &ToolCall,
        session_context: &SessionContext,
    ) -> Result<CallInput, ToolError> {
        Ok(match call.tool.as_str() {
            "Bash" => CallInput::Bash(input::parse(call)?),
            "BashOutput" => CallInput::BashOutput(input::parse(call)?),
            "KillBash" => CallInput::KillBash(input::parse(call)?),
            "Read" => CallInput::Read(input::parse(call)?),
            "Write" => CallInput::Write(input::parse(call)?),
            "Edit" => CallInput::Edit(input::parse(call)?),
            "MultiEdit" => CallInput::MultiEdit(input::parse(call)?),
            "ApplyPatch" => CallInput::ApplyPatch(input::parse(call)?),
            "NotebookEdit" => CallInput::NotebookEdit(input::parse(call)?),
            "WebFetch" => CallInput::WebFetch(input::parse(call)?),
            "Task" => CallInput::Task(input::parse(call)?),
            "Glob" => CallInput::Glob(input::parse(call)?),
            "Grep" => CallInput::Grep(input::parse(call)?),
            "LS" => CallInput::Ls(input::parse(call)?),
            knowledge_search::NAME => CallInput::KnowledgeSearch(input::parse(call)?),
            tool if mcp::is_mcp(tool) => CallInput::Mcp(Box::new(mcp::parse(call, session_context)?)),
            other => match session_tools::parse(call)? {
                Some(call) => CallInput::Session(call),
                None => return Err(definitions::unknown_tool(other, &self.definitions)),
            },
        })
    }
}
