//! Calls to the daemon that the conversation makes, each in a task of its own.

use crate::api::params::{
    AbortParams, AbortReply, AnswerReply, ApproveParams, ApproveReply, CommandListParams, CommandListReply,
    CommandView, ItemsParams, ItemsReply, ListParams, ListReply, QueueRemoveParams, QueueReply, RewindParams,
    RewindReply, SessionParams, SubmitBlock, SubmitInput, SubmitReply, WhenBusy,
};
use crate::client::connection::client::{CallError, Client};
use crate::client::connection::session_calls::{idempotency_key, submit_params, update};
use crate::client::failure::Failure;
use crate::client::ui::attach::app::{Effect, Point, Submission};
use crate::types::context_view::ContextView;
use crate::types::ids::SessionId;
use crate::types::session::{Item, ItemKind, ItemStatus};
use crate::types::turn_options::TurnOptions;

/// Sessions of a folder whose inputs can be searched.
const SEARCHED_SESSIONS: u32 = 20;

/// Result of an effect.
pub(super) enum Done {
    Taken,
    Said(&'static str),
    /// The daemon did not accept it: the text goes back into the input line.
    Unsent(Submission, Failure),
    Failed(Failure),
    Commands(Vec<CommandView>),
    Files(Vec<String>),
    History(Vec<String>),
    Points(Vec<Point>),
    Context(u64, Option<u64>),
    Rewound(String),
    Shell {
        output: String,
        end: String,
        ms: u64,
    },
}

/// A connection and the session of the conversation.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) client: Client,
    pub(super) session: SessionId,
}

impl Caller {
    pub(super) async fn submit(self, submission: Submission) -> Done {
        let text = |text: &String| SubmitBlock::Text { text: text.clone() };
        let input = match submission.shell_output.as_slice() {
            [] => SubmitInput::Text(submission.text.clone()),
            outputs => SubmitInput::Blocks(outputs.iter().chain([&submission.text]).map(text).collect()),
        };
        let params = submit_params(self.session, input, submission.when_busy, TurnOptions::default());
        match self.client.call::<SubmitReply>("session.submit", &params).await {
            // An event reports a queued or steered input to all clients.
            Ok(_) => Done::Taken,
            Err(error) => Done::Unsent(submission, error.into()),
        }
    }

    async fn approve(&self, params: &ApproveParams) -> Done {
        answered(self.client.call::<ApproveReply>("session.approve", params).await.map(|_| ()))
    }

    /// Performs an effect that is one call.
    pub(super) async fn perform(self, effect: Effect) -> Done {
        let (client, session_id) = (&self.client, self.session);
        match effect {
            Effect::Approve(params) => self.approve(&params).await,
            Effect::ApproveAll(answers) => {
                let params = ApproveParams { answers: Some(answers), ..ApproveParams::default() };
                self.approve(&params).await
            }
            Effect::ApproveAndSay(params, words) => match self.approve(&params).await {
                Done::Taken => {
                    let when_busy = Some(WhenBusy::Steer);
                    self.clone().submit(Submission { text: words, when_busy, shell_output: Vec::new() }).await
                }
                other => other,
            },
            Effect::Answer(params) => {
                answered(client.call::<AnswerReply>("session.answer", &params).await.map(|_| ()))
            }
            Effect::Choose(params) => {
                answered(client.call::<AnswerReply>("session.feedback", &params).await.map(|_| ()))
            }
            Effect::Abort => {
                let params = AbortParams { session_id, turn_id: None, call_id: None, idempotency_key: None };
                match client.call::<AbortReply>("session.abort", &params).await {
                    Ok(_) => Done::Said("stopped"),
                    Err(error) => Done::Failed(error.into()),
                }
            }
            Effect::SetMode(mode) => said(update(client, session_id, Some(mode), None).await.map(|_| ())),
            Effect::TakeBack(turn_id) => {
                let params =
                    QueueRemoveParams { session_id, turn_id, idempotency_key: Some(idempotency_key()) };
                said(client.call::<QueueReply>("session.queue.remove", &params).await.map(|_| ()))
            }
            Effect::LoadPoints => match self.points().await {
                Ok(points) => Done::Points(points),
                Err(error) => Done::Failed(error.into()),
            },
            Effect::Rewind { item_id, files, text } => {
                let key = Some(idempotency_key());
                let params =
                    RewindParams { session_id, item_id, files, dry_run: false, idempotency_key: key };
                match client.call::<RewindReply>("session.rewind", &params).await {
                    Ok(reply) if !reply.conflicts.is_empty() => Done::Failed(Failure::internal(format!(
                        "could not restore {} file(s) that something else changed; nothing was changed",
                        reply.conflicts.len()
                    ))),
                    Ok(_) => Done::Rewound(text),
                    Err(error) => Done::Failed(error.into()),
                }
            }
            // The loop handles these itself.
            Effect::Submit(_)
            | Effect::Detach
            | Effect::Shell(_)
            | Effect::StopShell
            | Effect::Edit(_)
            | Effect::Suspend
            | Effect::LoadFiles
            | Effect::LoadHistory => Done::Taken,
        }
    }

    /// The slash commands of the session, or of the folder of a new one.
    pub(super) async fn commands(self, cwd: Option<String>) -> Done {
        let session_id = cwd.is_none().then_some(self.session);
        let params = CommandListParams { session_id, cwd };
        match self.client.call::<CommandListReply>("command.list", &params).await {
            Ok(reply) => Done::Commands(reply.commands),
            // Without the list there is no completion; the daemon still judges commands.
            Err(_) => Done::Taken,
        }
    }

    pub(super) async fn context(self) -> Done {
        let params = SessionParams { session_id: self.session };
        match self.client.call::<ContextView>("session.context", &params).await {
            Ok(view) => Done::Context(view.used, view.window),
            Err(_) => Done::Taken,
        }
    }

    /// The inputs of the newest sessions of the folder, oldest first.
    pub(super) async fn history(self, cwd: String) -> Done {
        let filter = ListParams { cwd: Some(cwd), limit: Some(SEARCHED_SESSIONS), ..ListParams::default() };
        let Ok(list) = self.client.call::<ListReply>("session.list", &filter).await else {
            return Done::Taken;
        };
        let mut inputs = Vec::new();
        for session in list.sessions.iter().rev().filter(|session| session.session_id != self.session) {
            let params = ItemsParams { session_id: session.session_id, cursor: None, limit: Some(500) };
            let Ok(page) = self.client.call::<ItemsReply>("session.items", &params).await else { continue };
            inputs.extend(page.items.iter().filter(|item| is_input(item)).map(input_text));
        }
        Done::History(inputs)
    }

    /// The inputs of the session, each with the item before it.
    async fn points(&self) -> Result<Vec<Point>, CallError> {
        let mut points = Vec::new();
        let mut before = None;
        let mut cursor = None;
        loop {
            let params = ItemsParams { session_id: self.session, cursor: cursor.take(), limit: Some(500) };
            let page: ItemsReply = self.client.call("session.items", &params).await?;
            for item in &page.items {
                if let (true, Some(before)) = (is_input(item), before) {
                    points.push(Point { before, text: input_text(item) });
                }
                if item.status == ItemStatus::Completed {
                    before = Some(item.item_id);
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(points);
            }
        }
    }
}

fn is_input(item: &Item) -> bool {
    item.kind == ItemKind::UserMessage
}

fn input_text(item: &Item) -> String {
    match &item.command {
        Some(command) => command.line(),
        None => item.text.clone().unwrap_or_default(),
    }
}

/// The outcome of a call whose effect an event shows.
fn said(sent: Result<(), CallError>) -> Done {
    match sent {
        Ok(()) => Done::Taken,
        Err(error) => Done::Failed(error.into()),
    }
}

/// The outcome of an answer to a request or question.
fn answered(sent: Result<(), CallError>) -> Done {
    match sent {
        Ok(()) => Done::Taken,
        Err(CallError::Fault(fault)) if fault.kind() == "not_pending" => {
            Done::Said("another client answered first")
        }
        Err(error) => Done::Failed(error.into()),
    }
}
