//! The methods about sessions.

use super::{CHANGES, READS, methods};
use crate::SESSION_EVENT;
use crate::fault::Code;
use crate::params as p;
use types::context_view::ContextView;
use types::request_view::RequestView;

/// Parameters by position, in the order of older versions. Append new ones.
const CREATE_ORDER: &[&str] = &[
    "session_id",
    "cwd",
    "title",
    "model",
    "mode",
    "background",
    "safe_mode",
    "on_restart",
    "budgets",
    "thinking",
    "temperature",
    "top_p",
    "system_prompt",
    "append_system_prompt",
    "tools",
    "additional_dirs",
    "idempotency_key",
    "fallback_model",
    "stop",
    "metadata",
    "ablation",
    "binary_feedback",
    "mcp_servers",
    "coordinator",
    "agent",
    "initial_items",
    "output_schema",
    "env",
    "worktree",
];
const SUBMIT_ORDER: &[&str] = &[
    "session_id",
    "input",
    "when_busy",
    "expected_turn_id",
    "idempotency_key",
    "budgets",
    "mode",
    "model",
    "thinking",
    "tools",
    "temperature",
    "top_p",
    "output_schema",
    "raw",
    "safe_mode",
    "system_prompt",
    "append_system_prompt",
    "additional_dirs",
    "fallback_model",
    "stop",
    "metadata",
];
const UPDATE_ORDER: &[&str] = &[
    "session_id",
    "title",
    "mode",
    "budgets",
    "model",
    "tools",
    "additional_dirs",
    "thinking",
    "temperature",
    "top_p",
    "idempotency_key",
    "safe_mode",
    "system_prompt",
    "append_system_prompt",
    "fallback_model",
    "stop",
    "metadata",
    "output_schema",
    "env",
    "mcp_servers",
];

methods! {
    /// Make a session in a folder.
    Create = "session.create", p::CreateParams => p::SessionReply,
        CHANGES.in_order(CREATE_ORDER).errors(&[Code::Conflict, Code::StorageReadOnly, Code::ShuttingDown]);
    /// Sessions with their live state, newest first.
    List = "session.list", p::ListParams => p::ListReply, READS;
    /// One session.
    Get = "session.get", p::SessionParams => p::SessionReply, READS.errors(&[Code::NotFound]);
    /// Give the session something to do. The reply means that it is on disk.
    Submit = "session.submit", p::SubmitParams => types::outcome::SubmitOutcome,
        CHANGES.in_order(SUBMIT_ORDER).errors(&[
            Code::NotFound, Code::Conflict, Code::StalePrecondition, Code::Busy, Code::StorageReadOnly,
            Code::ShuttingDown,
        ]);
    /// Stop the running turn, or one tool call. Replies when the work has stopped.
    Abort = "session.abort", p::AbortParams => p::AbortReply,
        CHANGES.waits().errors(&[
            Code::NotFound, Code::Conflict, Code::StalePrecondition, Code::StorageReadOnly,
        ]);
    /// Summarise the conversation, so that it fills less of the model's context window. A turn does it, when
    /// the running turn has ended.
    Compact = "session.compact", p::CompactParams => p::CompactReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly, Code::ShuttingDown]);
    /// What fills the context window of the session's model.
    Context = "session.context", p::SessionParams => ContextView, READS.errors(&[Code::NotFound]);
    /// The next request to the model as it would be sent now, with the system prompt and the tools. MCP servers are
    /// not started for it.
    Request = "session.request", p::SessionParams => RequestView, READS.errors(&[Code::NotFound]);
    /// Answer a permission request, or several. The first answer wins.
    Approve = "session.approve", p::ApproveParams => p::ApproveReply,
        CHANGES.errors(&[Code::NotFound, Code::NotPending, Code::Conflict, Code::StorageReadOnly]);
    /// Change a session's title, model, approval mode, limits, tools, folders or other options, also while a
    /// turn runs.
    Update = "session.update", p::UpdateParams => p::SessionReply,
        CHANGES.in_order(UPDATE_ORDER).errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly]);
    /// Answer a question: what to do about a call whose outcome is unknown, or whether an interrupted turn
    /// goes on. The first answer wins.
    Answer = "session.answer", p::AnswerParams => p::AnswerReply,
        CHANGES.without_params(&["text"]).errors(&[
            Code::NotFound, Code::NotPending, Code::Conflict, Code::StorageReadOnly,
        ]);
    /// Choose one of two answers of the model (binary feedback). The first choice wins.
    Feedback = "session.feedback", p::FeedbackParams => p::AnswerReply,
        CHANGES.errors(&[Code::NotFound, Code::NotPending, Code::Conflict, Code::StorageReadOnly]);
    /// The inputs that wait for the running turn, in the order of their start.
    QueueList = "session.queue.list", p::QueueListParams => p::QueueReply, READS.errors(&[Code::NotFound]);
    /// Remove all queued inputs. The running turn goes on.
    QueueClear = "session.queue.clear", p::QueueClearParams => p::QueueReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly]);
    /// Replace the input of a queued turn.
    QueueUpdate = "session.queue.update", p::QueueUpdateParams => p::QueueReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly]);
    /// Remove one queued input.
    QueueRemove = "session.queue.remove", p::QueueRemoveParams => p::QueueReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly]);
    /// Move a queued turn to another place in the queue.
    QueueMove = "session.queue.move", p::QueueMoveParams => p::QueueReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly]);
    /// Wait until the session is in one of several states. It needs not be loaded.
    Wait = "session.wait", p::WaitParams => p::WaitReply,
        READS.waits().errors(&[Code::NotFound, Code::ShuttingDown]);
    /// Archive a session, or restore it. An archived session is kept, hidden from `agentctl ps`, and takes no
    /// input.
    Archive = "session.archive", p::ArchiveParams => p::SessionReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict, Code::Busy, Code::StorageReadOnly]);
    /// Create a session that starts with the conversation of another one, up to an item. Requests, running
    /// calls, the queue and costs are not copied.
    Fork = "session.fork", p::ForkParams => p::SessionReply,
        CHANGES.waits().errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly, Code::ShuttingDown]);
    /// Make an earlier item the last one of the conversation, and restore the files that the session changed
    /// since. All or nothing.
    Rewind = "session.rewind", p::RewindParams => p::RewindReply,
        CHANGES.waits().errors(&[Code::NotFound, Code::Conflict, Code::Busy, Code::StorageReadOnly]);
    /// A page of a session as JSON Lines, Markdown or HTML.
    Export = "session.export", p::ExportParams => p::ExportReply, READS.waits().errors(&[Code::NotFound]);
    /// Create a session from an export as JSON Lines, in one or several parts. A damaged file creates
    /// nothing.
    Import = "session.import", p::ImportParams => p::ImportReply,
        CHANGES.waits().errors(&[Code::Conflict, Code::StorageReadOnly, Code::ShuttingDown]);
    /// Abort what runs and end the session; its history stays readable.
    Kill = "session.kill", p::EndParams => p::AbortReply,
        CHANGES.waits().errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly]);
    /// Replay what lies after a cursor, then follow live, without a gap or a duplicate.
    Subscribe = "session.subscribe", p::SubscribeParams => p::SubscriptionId,
        READS.notifies(&[SESSION_EVENT]).errors(&[Code::NotFound, Code::CursorAhead, Code::Overloaded]);
    /// End a subscription; false if there was none.
    Unsubscribe = "session.unsubscribe", p::UnsubscribeParams => bool, READS;
    /// A page of the journal, for clients that poll.
    Events = "session.events", p::EventsParams => p::EventsReply,
        READS.errors(&[Code::NotFound, Code::CursorAhead]);
    /// A page of the conversation, oldest first.
    Items = "session.items", p::ItemsParams => p::ItemsReply, READS.errors(&[Code::NotFound]);
    /// A part of what is too large for an event: of a text that was cut, of a whole tool result, of a
    /// picture.
    Blob = "session.blob", p::BlobParams => p::BlobReply, READS.errors(&[Code::NotFound]);
    /// All the changes of files that the session's file tools made: of each file from before the first to
    /// after the last. What commands (Bash) changed is not in it.
    Diff = "session.diff", p::DiffParams => p::DiffReply, READS.errors(&[Code::NotFound]);
    /// Abort what runs and remove the session with its history.
    Delete = "session.delete", p::EndParams => p::Done,
        CHANGES.waits().errors(&[Code::NotFound, Code::StorageReadOnly]);
}
