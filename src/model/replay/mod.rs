//! A provider without a network: it plays a cassette.
//!
//! The request alone selects a record, so that one cassette serves many sessions and a restart changes nothing.
//! A request without a record is a fault, never a guess.

pub(super) mod cassette;
pub(super) mod record;
pub(super) mod request_hash;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OnceCell, mpsc};

use super::api::AnswerReader;
use crate::settings::Api;
use crate::stream::assembly::{Assembly, CallIds};
use crate::stream::fault;
use crate::stream::timeouts::{receiver_closed, send_batch};
use crate::tool_schema::ChangedNames;
use cassette::{Cassette, Record, RecordMatch, Recording, Script};
use request_hash::{answers_so_far, request_hash};
use types::model::{Delta, FaultKind, ModelFault, ModelReply, ModelRequest, StopReason};

/// Bytes of a recording that are read at once, as from a network.
const CHUNK_BYTES: usize = 4 << 10;

/// Plays one cassette, which is read at the first call.
pub(super) struct Player {
    file: PathBuf,
    cassette: OnceCell<Arc<Cassette>>,
}

impl Player {
    pub(super) fn new(file: PathBuf) -> Self {
        Self { file, cassette: OnceCell::new() }
    }

    /// Answers with the record that matches the request. Cancel-safe.
    pub(super) async fn play(
        &self,
        provider: &str,
        request: &ModelRequest,
        out: &mpsc::Sender<Vec<Delta>>,
    ) -> Result<ModelReply, ModelFault> {
        let cassette = self.cassette.get_or_try_init(|| self.load()).await?;
        let number = answers_so_far(request);
        let (record, wanted) = match cassette.by {
            // A helper call has no index in the order of a conversation.
            RecordMatch::Order if request.is_helper_call => (None, "for a helper call".into()),
            RecordMatch::Order => (cassette.by_order(number), format!("number {}", number + 1)),
            RecordMatch::Hash => {
                let hash = request_hash(request);
                (cassette.by_hash(&hash), format!("with hash {hash}"))
            }
        };
        match record {
            Some(Record::Recording(recording)) => {
                // The recorded arguments have the names that the provider was given.
                let names = Arc::new(ChangedNames::from_tools(&request.tools).0);
                let ids = CallIds::for_recording(number).with_changed_names(names);
                play_recording(provider, ids, recording, out).await
            }
            Some(Record::Script(script)) => tokio::select! {
                () = out.closed() => Err(receiver_closed()),
                outcome = play_script(number, script, out) => outcome,
            },
            None => {
                let text = format!(
                    "{} has no record {wanted}, it holds {}: add one to go on",
                    self.file.display(),
                    cassette.len()
                );
                Err(ModelFault::new(FaultKind::CassetteExhausted, text))
            }
        }
    }

    /// Whether the cassette can be read.
    pub(super) async fn check(&self) -> Result<(), ModelFault> {
        self.cassette.get_or_try_init(|| self.load()).await.map(|_| ())
    }

    async fn load(&self) -> Result<Arc<Cassette>, ModelFault> {
        let fault = |why: String| {
            let text = format!("cassette {}: {why}", self.file.display());
            ModelFault::new(FaultKind::Unconfigured, text)
        };
        let file = self.file.clone();
        match tokio::task::spawn_blocking(move || Cassette::load(&file)).await {
            Ok(Ok(cassette)) => Ok(Arc::new(cassette)),
            Ok(Err(error)) => Err(fault(error.to_string())),
            Err(error) => Err(fault(error.to_string())),
        }
    }
}

/// Sends the recorded bytes through the adapter of their API.
async fn play_recording(
    provider: &str,
    ids: CallIds,
    recording: &Recording,
    out: &mpsc::Sender<Vec<Delta>>,
) -> Result<ModelReply, ModelFault> {
    let Some(api) = Api::from_name(&recording.api) else {
        let text = format!("the cassette holds a recording of the unknown API {:?}", recording.api);
        return Err(ModelFault::new(FaultKind::Unconfigured, text));
    };
    let body = recording.body.as_bytes();
    if !(200..300).contains(&recording.status) {
        return Err(fault::from_status(provider, recording.status, None, body));
    }
    let mut reader = AnswerReader::new(api, ids);
    let mut batch = Vec::new();
    if recording.body.trim_start().starts_with('{') {
        let outcome = reader.whole(body, &mut batch);
        send_batch(batch, out).await?;
        return outcome;
    }
    for chunk in body.chunks(CHUNK_BYTES) {
        let outcome = reader.feed(chunk, &mut batch);
        send_batch(std::mem::take(&mut batch), out).await?;
        outcome?;
    }
    let outcome = reader.end(&mut batch);
    send_batch(batch, out).await?;
    outcome
}

async fn play_script(
    number: usize,
    script: &Script,
    out: &mpsc::Sender<Vec<Delta>>,
) -> Result<ModelReply, ModelFault> {
    let pace = Duration::from_millis(script.pace_ms);
    if script.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(script.delay_ms)).await;
    }
    let mut answer = Assembly::new(CallIds::for_recording(number));
    let mut batch = Vec::new();
    for word in script.thinking.iter().flat_map(|text| words(text)) {
        answer.thinking(word, &mut batch);
        send_batch_paced(&mut batch, pace, out).await?;
    }
    for word in script.say.iter().flat_map(|text| words(text)) {
        answer.text(word, &mut batch);
        send_batch_paced(&mut batch, pace, out).await?;
    }
    for call in &script.calls {
        answer.call("", &call.tool, &mut batch);
        let input = serde_json::to_string(&call.input).map_err(fault::invalid_answer)?;
        answer.call_input(&input, &mut batch);
        answer.close(&mut batch);
        send_batch_paced(&mut batch, pace, out).await?;
    }
    if let Some(kind) = script.fail {
        return Err(ModelFault::new(kind, format!("the cassette says: {}", kind.name())));
    }
    let by_content = if script.calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
    let reply = answer.reply(script.stop.unwrap_or(by_content), script.usage, None, &mut batch);
    send_batch(batch, out).await?;
    Ok(reply)
}

async fn send_batch_paced(
    batch: &mut Vec<Delta>,
    pace: Duration,
    out: &mpsc::Sender<Vec<Delta>>,
) -> Result<(), ModelFault> {
    send_batch(std::mem::take(batch), out).await?;
    if !pace.is_zero() {
        tokio::time::sleep(pace).await;
    }
    Ok(())
}

/// The text word by word, each with the space after it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(char::is_whitespace)
}
