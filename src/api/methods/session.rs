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
    /// Creates a session in a folder and returns it.
    Create = "session.create", p::CreateParams => p::SessionReply,
        CHANGES.in_order(CREATE_ORDER).errors(&[Code::Conflict, Code::StorageReadOnly, Code::ShuttingDown]);
    /// Returns a page of the sessions with their live state, newest first.
    List = "session.list", p::ListParams => p::ListReply, READS;
    /// Returns one session.
    Get = "session.get", p::SessionParams => p::SessionReply, READS.errors(&[Code::NotFound]);
    /// Gives the session an input and returns the turn that handles it. When the reply arrives, the input is on disk.
    Submit = "session.submit", p::SubmitParams => types::outcome::SubmitOutcome,
        CHANGES.in_order(SUBMIT_ORDER).errors(&[
            Code::NotFound, Code::Conflict, Code::StalePrecondition, Code::Busy, Code::StorageReadOnly,
            Code::ShuttingDown,
        ]);
    /// Stops the running turn, or one tool call, and returns what was stopped after the work has ended.
    Abort = "session.abort", p::AbortParams => p::AbortReply,
        CHANGES.waits().errors(&[
            Code::NotFound, Code::Conflict, Code::StalePrecondition, Code::StorageReadOnly,
        ]);
    /// Summarises the conversation, so that it fills less of the model's context window, and returns the turn that does
    /// it. The turn starts when the running one has ended.
    Compact = "session.compact", p::CompactParams => p::CompactReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly, Code::ShuttingDown]);
    /// Returns what fills the context window of the session's model.
    Context = "session.context", p::SessionParams => ContextView, READS.errors(&[Code::NotFound]);
    /// Returns the next request to the model as it would be sent now, with the system prompt and the tools. It starts
    /// no MCP servers.
    Request = "session.request", p::SessionParams => RequestView, READS.errors(&[Code::NotFound]);
    /// Answers a permission request, or several, and returns the grant that each answer stored. The first answer wins.
    Approve = "session.approve", p::ApproveParams => p::ApproveReply,
        CHANGES.errors(&[Code::NotFound, Code::NotPending, Code::Conflict, Code::StorageReadOnly]);
    /// Changes a session's title, model, approval mode, limits, tools, folders or other options, also while a turn
    /// runs, and returns the session.
    Update = "session.update", p::UpdateParams => p::SessionReply,
        CHANGES.in_order(UPDATE_ORDER).errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly]);
    /// Answers a question of the model, about a call with an unknown outcome, or about an interrupted turn, and returns
    /// the seq of its end. The first answer wins.
    Answer = "session.answer", p::AnswerParams => p::AnswerReply,
        CHANGES.without_params(&["text"]).errors(&[
            Code::NotFound, Code::NotPending, Code::Conflict, Code::StorageReadOnly,
        ]);
    /// Chooses one of two answers of the model (binary feedback) and returns the seq of the choice. The first choice
    /// wins.
    Feedback = "session.feedback", p::FeedbackParams => p::AnswerReply,
        CHANGES.errors(&[Code::NotFound, Code::NotPending, Code::Conflict, Code::StorageReadOnly]);
    /// Returns the inputs that wait for the running turn, in the order of their start.
    QueueList = "session.queue.list", p::QueueListParams => p::QueueReply, READS.errors(&[Code::NotFound]);
    /// Removes all queued inputs and returns the queue. The running turn continues.
    QueueClear = "session.queue.clear", p::QueueClearParams => p::QueueReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly]);
    /// Replaces the input of a queued turn and returns the queue.
    QueueUpdate = "session.queue.update", p::QueueUpdateParams => p::QueueReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly]);
    /// Removes one queued input and returns the queue.
    QueueRemove = "session.queue.remove", p::QueueRemoveParams => p::QueueReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly]);
    /// Moves a queued turn to another place and returns the queue.
    QueueMove = "session.queue.move", p::QueueMoveParams => p::QueueReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly]);
    /// Waits until the session is in one of several states, and returns it with the result of its newest turn. The
    /// session need not be loaded.
    Wait = "session.wait", p::WaitParams => p::WaitReply,
        READS.waits().errors(&[Code::NotFound, Code::ShuttingDown]);
    /// Archives a session, or restores it, and returns it. An archived session is kept, is hidden from `agentctl ps`,
    /// and takes no input.
    Archive = "session.archive", p::ArchiveParams => p::SessionReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict, Code::Busy, Code::StorageReadOnly]);
    /// Creates a session that starts with the conversation of another one, up to an item, and returns it. Requests,
    /// running calls, the queue and costs are not copied.
    Fork = "session.fork", p::ForkParams => p::SessionReply,
        CHANGES.waits().errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly, Code::ShuttingDown]);
    /// Makes an earlier item the last one of the conversation, with `files` restores the files that the session changed
    /// since, and returns what was removed and restored. If a part fails, nothing changes.
    Rewind = "session.rewind", p::RewindParams => p::RewindReply,
        CHANGES.waits().errors(&[Code::NotFound, Code::Conflict, Code::Busy, Code::StorageReadOnly]);
    /// Returns a page of a session as JSON Lines, Markdown or HTML.
    Export = "session.export", p::ExportParams => p::ExportReply, READS.waits().errors(&[Code::NotFound]);
    /// Creates a session from an export as JSON Lines, in one or several parts, and returns it after the last part. A
    /// damaged file creates nothing.
    Import = "session.import", p::ImportParams => p::ImportReply,
        CHANGES.waits().errors(&[Code::Conflict, Code::StorageReadOnly, Code::ShuttingDown]);
    /// Aborts the running work, ends the session, and returns what was stopped. The history stays readable.
    Kill = "session.kill", p::EndParams => p::AbortReply,
        CHANGES.waits().errors(&[Code::NotFound, Code::Conflict, Code::StorageReadOnly]);
    /// Sends the events after a cursor and then the new ones, without a gap or a duplicate, and returns the id of the
    /// subscription.
    Subscribe = "session.subscribe", p::SubscribeParams => p::SubscriptionId,
        READS.notifies(&[SESSION_EVENT]).errors(&[Code::NotFound, Code::CursorAhead, Code::Overloaded]);
    /// Ends a subscription and returns whether there was one.
    Unsubscribe = "session.unsubscribe", p::UnsubscribeParams => bool, READS;
    /// Returns a page of the journal, for clients that poll.
    Events = "session.events", p::EventsParams => p::EventsReply,
        READS.errors(&[Code::NotFound, Code::CursorAhead]);
    /// Returns a page of the conversation, oldest first.
    Items = "session.items", p::ItemsParams => p::ItemsReply, READS.errors(&[Code::NotFound]);
    /// Returns a part of content that is too large for an event: a text that was cut, a complete tool result, or a
    /// picture.
    Blob = "session.blob", p::BlobParams => p::BlobReply, READS.errors(&[Code::NotFound]);
    /// Returns the changes that the session's file tools made: for each file from before the first change to after the
    /// last one. Changes by commands (Bash) are not included.
    Diff = "session.diff", p::DiffParams => p::DiffReply, READS.errors(&[Code::NotFound]);
    /// Aborts the running work and removes the session with its history.
    Delete = "session.delete", p::EndParams => p::Done,
        CHANGES.waits().errors(&[Code::NotFound, Code::StorageReadOnly]);
}
