//! Calls to the daemon that the conversation makes, each in a task of its own.

mod reading;

use crate::connection::client::{CallError, Client};
use crate::connection::input_files::with_attachments;
use crate::connection::session_calls::{idempotency_key, submit_params, update};
use crate::failure::Failure;
use crate::terminal::style::StyledLine;
use crate::ui::attach::app::{Effect, Point, Submission};
use api::methods;
use api::params::{
    AbortParams, ApproveParams, QueueRemoveParams, RewindParams, SubmitBlock, SubmitInput, UpdateParams,
};
use types::ids::SessionId;
use types::model::ModelView;
use types::permission::Mode;
use types::queue::WhenBusy;
use types::slash_command::CommandView;
use types::turn_options::TurnOptions;

pub(super) enum EffectResult {
    Taken,
    Said(&'static str),
    /// The turn has stopped. Its last line says so.
    Stopped,
    /// The daemon did not accept the input. Its text returns to the input line.
    Unsent(Submission, Failure),
    Failed(Failure),
    /// The complete lines above a new conversation.
    StartLines(Vec<StyledLine>),
    Commands(Vec<CommandView>),
    Files(Vec<String>),
    Picture(Vec<u8>),
    /// Inputs of earlier sessions, and the cursor of even older ones.
    History(Vec<String>, Option<String>),
    Points(Vec<Point>),
    Models(Vec<ModelView>),
    /// The lines of the omitted part of the conversation.
    Earlier(Vec<StyledLine>),
    Context(u64, Option<u64>),
    /// The text of the input, and whether the files went back too.
    Rewound(String, bool),
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
    pub(super) async fn submit(self, submission: Submission, attached: Vec<SubmitBlock>) -> EffectResult {
        let texts = submission.shell_output.iter().chain([&submission.text]).cloned().collect();
        let input = with_attachments(texts, attached);
        let params = submit_params(self.session, input, submission.when_busy, TurnOptions::default());
        match self.client.call::<methods::session::Submit>(&params).await {
            // The daemon reports a queued or steered input to all clients by an event.
            Ok(_) => EffectResult::Taken,
            Err(error) => EffectResult::Unsent(submission, error.into()),
        }
    }

    async fn approve(&self, params: &ApproveParams) -> EffectResult {
        answer_result(self.client.call::<methods::session::Approve>(params).await.map(|_| ()))
    }

    async fn abort(&self) -> EffectResult {
        let params =
            AbortParams { session_id: self.session, turn_id: None, call_id: None, idempotency_key: None };
        match self.client.call::<methods::session::Abort>(&params).await {
            Ok(_) => EffectResult::Stopped,
            Err(error) => EffectResult::Failed(error.into()),
        }
    }

    /// Runs an effect that is one call.
    pub(super) async fn perform(self, effect: Effect) -> EffectResult {
        let (client, session_id) = (&self.client, self.session);
        match effect {
            Effect::Approve(params) => self.approve(&params).await,
            Effect::ApproveAll(answers) => {
                let params = ApproveParams { answers: Some(answers), ..ApproveParams::default() };
                self.approve(&params).await
            }
            Effect::ApproveAndAcceptEdits(params) => match self.approve(&params).await {
                EffectResult::Taken => {
                    let mode = Some(Mode::AcceptEdits);
                    call_result(update(client, session_id, mode, None).await.map(|_| ()))
                }
                other => other,
            },
            Effect::ApproveAndSay(params, feedback_text) => match self.approve(&params).await {
                EffectResult::Taken => {
                    let when_busy = Some(WhenBusy::Steer);
                    let submission = Submission::new(feedback_text, when_busy);
                    self.clone().submit(submission, Vec::new()).await
                }
                other => other,
            },
            Effect::Answer(params) => {
                answer_result(client.call::<methods::session::Answer>(&params).await.map(|_| ()))
            }
            Effect::Choose(params) => {
                answer_result(client.call::<methods::session::Feedback>(&params).await.map(|_| ()))
            }
            Effect::Abort => self.abort().await,
            Effect::StopAndDequeue(turns) => {
                for turn_id in turns {
                    let params =
                        QueueRemoveParams { session_id, turn_id, idempotency_key: Some(idempotency_key()) };
                    // If the turn has begun meanwhile, the abort stops it.
                    let _ = client.call::<methods::session::QueueRemove>(&params).await;
                }
                self.abort().await
            }
            Effect::SetMode(mode) => {
                call_result(update(client, session_id, Some(mode), None).await.map(|_| ()))
            }
            Effect::TakeBack(turn_id) => {
                let params =
                    QueueRemoveParams { session_id, turn_id, idempotency_key: Some(idempotency_key()) };
                call_result(client.call::<methods::session::QueueRemove>(&params).await.map(|_| ()))
            }
            Effect::LoadPoints => self.load_points().await,
            Effect::LoadModels => self.models().await,
            Effect::SetModel(model) => {
                let params = UpdateParams { model: Some(model), ..UpdateParams::new(session_id) };
                call_result(client.call::<methods::session::Update>(&params).await.map(|_| ()))
            }
            Effect::Rewind(point, files) => self.rewind(point, files).await,
            // The loop of the conversation handles these effects itself.
            Effect::Submit(_)
            | Effect::Detach
            | Effect::Shell(_)
            | Effect::StopShell
            | Effect::Edit(_)
            | Effect::Suspend
            | Effect::LoadFiles
            | Effect::PastePicture
            | Effect::LoadHistory(_)
            | Effect::LoadEarlier
            | Effect::Copy(_)
            | Effect::ShowSessions
            | Effect::PickSession => EffectResult::Taken,
        }
    }

    /// Rewinds to before an input. Its text returns to the input line.
    async fn rewind(self, point: Point, files: bool) -> EffectResult {
        let Point { item, is_first, text } = point;
        if !is_first || files {
            let key = Some(idempotency_key());
            let params = RewindParams {
                session_id: self.session,
                item_id: item,
                files,
                dry_run: false,
                idempotency_key: key,
            };
            match self.client.call::<methods::session::Rewind>(&params).await {
                Ok(reply) if !reply.conflicts.is_empty() => {
                    return EffectResult::Failed(Failure::internal(format!(
                        "could not restore {} file(s) that something else changed; nothing was changed",
                        reply.conflicts.len()
                    )));
                }
                Ok(_) => {}
                Err(error) => return EffectResult::Failed(error.into()),
            }
        }
        if is_first {
            // No item is before the first input, so clear the conversation instead.
            let input = SubmitInput::Text("/clear".into());
            let params = submit_params(self.session, input, None, TurnOptions::default());
            if let Err(error) = self.client.call::<methods::session::Submit>(&params).await {
                return EffectResult::Failed(error.into());
            }
        }
        EffectResult::Rewound(text, files)
    }
}

/// The outcome of a call whose effect an event shows.
fn call_result(sent: Result<(), CallError>) -> EffectResult {
    match sent {
        Ok(()) => EffectResult::Taken,
        Err(error) => EffectResult::Failed(error.into()),
    }
}

/// The outcome of an answer to a request or question.
fn answer_result(sent: Result<(), CallError>) -> EffectResult {
    match sent {
        Ok(()) => EffectResult::Taken,
        Err(CallError::Fault(fault)) if fault.kind() == "not_pending" => {
            EffectResult::Said("another client answered first")
        }
        Err(error) => EffectResult::Failed(error.into()),
    }
}
