//! Records the answers of a real provider on a cassette, without secrets, readable by its owner only.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::replay::cassette::{Header, Recording};
use crate::replay::request_hash::{answers_so_far, request_hash};
use crate::settings::Api;
use crate::stream::fault::Secrets;
use base::sync::lock;
use types::model::ModelRequest;

/// Maximum bytes of one answer that are kept.
const MAX_BYTES: usize = 32 << 20;

/// One answer while it arrives.
pub(crate) struct OpenRecording {
    hash: String,
    /// Index of the answer in the conversation; `None` for a helper call, which is found by its hash alone.
    at: Option<usize>,
    answer: Option<(Api, u16)>,
    body: Vec<u8>,
}

impl OpenRecording {
    pub(crate) fn new(request: &ModelRequest) -> Self {
        Self {
            hash: request_hash(request),
            at: (!request.is_helper_call).then(|| answers_so_far(request)),
            answer: None,
            body: Vec::new(),
        }
    }

    /// Records the status with which the provider answers.
    pub(crate) fn begin(&mut self, api: Api, status: u16) {
        self.answer = Some((api, status));
    }

    /// Adds bytes of the body.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let room = MAX_BYTES.saturating_sub(self.body.len());
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// Appends recordings to one file.
pub(crate) struct Recorder {
    file: PathBuf,
    /// Held while a call appends, so that two answers do not mix.
    turn: Mutex<()>,
}

impl Recorder {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, turn: Mutex::new(()) }
    }

    /// Appends the answer, if there was any. The error is a text for users.
    pub(crate) async fn append(
        self: &Arc<Self>,
        tape: OpenRecording,
        secrets: &Secrets,
    ) -> Result<(), String> {
        let Some((api, status)) = tape.answer else { return Ok(()) };
        let recording = Recording {
            api: api.row().name.into(),
            status,
            at: tape.at,
            hash: Some(tape.hash),
            body: secrets.scrub(String::from_utf8_lossy(&tape.body).into_owned()),
        };
        let recorder = Arc::clone(self);
        let written = tokio::task::spawn_blocking(move || recorder.write(&recording)).await;
        written.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(|error| {
            let text = format!("the answer could not be recorded in {} ({error})", self.file.display());
            tracing::warn!("{text}");
            text
        })
    }

    fn write(&self, recording: &Recording) -> io::Result<()> {
        let _turn = lock(&self.turn);
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.file)?;
        // The file may have existed before with other permissions.
        file.set_permissions(Permissions::from_mode(0o600))?;
        let mut lines = Vec::new();
        if file.metadata()?.len() == 0 {
            serde_json::to_writer(&mut lines, &Header::default())?;
            lines.push(b'\n');
        }
        serde_json::to_writer(&mut lines, recording)?;
        lines.push(b'\n');
        file.write_all(&lines)
    }
}
