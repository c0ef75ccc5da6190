//! `Registry::import`: creates a session from an export as JSON Lines. The text is hostile: everything is parsed,
//! checked and replayed before anything is written, in one transaction.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::SessionError;
use crate::history::lines::{self, BlobLine, FirstLine};
use crate::history::neutral::{SessionDefaults, neutral_event};
use crate::history::new_session::new_session;
use crate::idempotency::{IdempotencyKey, method};
use crate::journal_copy::{JournalCopy, blobs_in};
use crate::registry::Registry;
use crate::staged_imports::MAX_IMPORT_BYTES;
use engine::{Engine, Input, Now};
use store::{Idempotency, StoreError};
use types::blob::Blob;
use types::daemon_event::SessionChangeKind;
use types::event::{Envelope, Event, Origin};
use types::ids::{BlobId, Mint, Seed, Seq, SessionId};
use types::permission::RuleKind;
use types::session::SessionView;
use types::wire;

/// Maximum number of lines.
const MAX_LINES: usize = 200_000;
/// Maximum bytes of the line of an event.
const MAX_EVENT_BYTES: usize = 256 << 10;
/// Maximum number of queued turns, and maximum number of rules that ask or deny.
const MAX_TURNS_OR_RULES: usize = 1_000;
/// The highest accepted seq, far below the largest number, so that later seqs cannot overflow.
const MAX_SEQ: Seq = 1 << 48;

/// A journal that was parsed from lines.
struct ParsedJournal {
    /// Each event as it is stored, with its line number.
    bodies: Vec<(usize, Envelope, String)>,
    blobs: HashMap<BlobId, Blob>,
}

impl Registry {
    /// Adds a part of an import. The last part creates the session. All other parts return the id of the import.
    ///
    /// # Errors
    /// The import does not exist, it is too large, or the file is damaged. Nothing was created.
    pub async fn import_part(
        &self,
        import_id: Option<String>,
        data: String,
        is_last: bool,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<Result<SessionView, String>, SessionError> {
        if is_last && let Some(known) = self.find_import(keyed.as_ref()).await? {
            return Ok(Ok(known));
        }
        match self.inner.imports.add(import_id, data, is_last)? {
            (_, Some(whole)) => self.import(whole, keyed, origin).await.map(Ok),
            (id, None) => Ok(Err(id)),
        }
    }

    /// Creates a session from an export. A repeated call with the same key returns the same session.
    ///
    /// # Errors
    /// A line is damaged; the error names it. Nothing was created.
    pub async fn import(
        &self,
        data: String,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<SessionView, SessionError> {
        self.check_open()?;
        let shared = &self.inner.shared;
        if let Some(known) = self.find_import(keyed.as_ref()).await? {
            return Ok(known);
        }
        shared.check_journal_quota()?;
        let now = shared.clock.now();
        let id = Mint::new(now.0, Seed::random()).session();
        let components = shared.components();
        let defaults = SessionDefaults {
            budgets: components.settings.budgets,
            safe_mode: components.settings.safe_mode,
        };
        let settings = Arc::clone(&components.settings.engine);
        let moment = Now { at: now, seed: Seed::random() };
        let built = tokio::task::spawn_blocking(move || {
            // The events may be from no engine and make it panic, so catch panics.
            let build = AssertUnwindSafe(|| build(&data, id, settings, defaults, moment));
            std::panic::catch_unwind(build).unwrap_or_else(|_| {
                Err(bad_data_error("the events do not form a conversation; the file is damaged"))
            })
        });
        let (copy, bodies, blobs) =
            built.await.unwrap_or_else(|_| Err(bad_data_error("it could not be read")))?;
        // Store the lines unchanged, so that another export gives the same lines.
        let mut new = new_session(copy, bodies, now, &origin)
            .ok_or_else(|| bad_data_error("its first event is missing, or an event is not what it says"))?;
        new.blobs.extend(blobs);
        new.idempotency = keyed.clone().map(|keyed| Idempotency {
            method: method::IMPORT,
            key: keyed.key,
            digest: keyed.digest,
            reply: id.to_string(),
        });
        match shared.database.create(new).await {
            Ok(_) => {
                shared.notify_session(id, SessionChangeKind::Created);
                self.view(id).await
            }
            Err(StoreError::Taken) => match self.find_import(keyed.as_ref()).await? {
                Some(known) => Ok(known),
                None => Err(SessionError::Conflict("idempotency_key")),
            },
            Err(error) => Err(error.into()),
        }
    }

    async fn find_import(&self, keyed: Option<&IdempotencyKey>) -> Result<Option<SessionView>, SessionError> {
        let Some(keyed) = keyed else { return Ok(None) };
        let known = self.inner.shared.store.stored_reply(method::IMPORT, &keyed.key).await?;
        let Some(known) = known else { return Ok(None) };
        if known.digest != keyed.digest {
            return Err(SessionError::Conflict("idempotency_key"));
        }
        self.view(known.reply.parse().map_err(|_| SessionError::NotFound)?).await.map(Some)
    }
}

fn bad_data_error(why: &str) -> SessionError {
    SessionError::BadParam("data", why.into())
}

fn line_error(line: usize, why: impl std::fmt::Display) -> SessionError {
    SessionError::BadParam("data", format!("line {line}: {why}"))
}

type BuiltJournal = (JournalCopy, BTreeMap<Seq, String>, Vec<Blob>);

/// Parses, checks and replays an export.
fn build(
    data: &str,
    id: SessionId,
    settings: Arc<engine::Settings>,
    defaults: SessionDefaults,
    now: Now,
) -> Result<BuiltJournal, SessionError> {
    let ParsedJournal { bodies, blobs } = parse(data, id, defaults)?;
    let contents: HashMap<BlobId, Vec<u8>> = blobs
        .iter()
        .filter_map(|(id, blob)| match &blob.content {
            types::blob::Content::Bytes(bytes) => Some((*id, bytes.to_vec())),
            types::blob::Content::File { .. } => None,
        })
        .collect();
    let mut engine = Engine::new(id, settings);
    for (number, envelope, body) in &bodies {
        let whole = if envelope.truncated_fields.is_empty() {
            None
        } else {
            let restored = wire::restore(body, &contents);
            Some(restored.ok_or_else(|| line_error(*number, "a part of this event is missing"))?)
        };
        if whole.as_ref().is_some_and(|whole| whole.event.kind() != envelope.event.kind()) {
            return Err(line_error(*number, "a part of this event makes it another event"));
        }
        engine.apply(whole.as_ref().unwrap_or(envelope));
        if engine.queue_len() > MAX_TURNS_OR_RULES {
            return Err(line_error(*number, format!("more than {MAX_TURNS_OR_RULES} turns wait")));
        }
    }
    let ending = Box::new(engine.decide(Input::Imported, now)?);
    let mut named = BTreeSet::new();
    bodies.iter().for_each(|(_, _, body)| blobs_in(body, &mut named));
    let blobs = blobs.into_iter().filter(|(id, _)| named.contains(id)).map(|(_, blob)| blob).collect();
    let mut events = Vec::with_capacity(bodies.len());
    let mut texts = BTreeMap::new();
    for (_, envelope, body) in bodies {
        texts.insert(envelope.seq, body);
        events.push(envelope);
    }
    Ok((JournalCopy { events, blobs: named, ending }, texts, blobs))
}

fn parse(data: &str, id: SessionId, defaults: SessionDefaults) -> Result<ParsedJournal, SessionError> {
    if data.len() > MAX_IMPORT_BYTES {
        return Err(bad_data_error(&format!("at most {} MiB can be imported", MAX_IMPORT_BYTES >> 20)));
    }
    let mut rows = data.lines().enumerate().map(|(at, line)| (at + 1, line));
    let first = rows.next().map(|(_, line)| line).unwrap_or_default();
    let first: FirstLine = serde_json::from_str(first)
        .map_err(|error| line_error(1, format!("this is not an export of a session: {error}")))?;
    if first.format != lines::FORMAT || first.version != lines::VERSION {
        return Err(line_error(1, format!("format {} {} is not known", first.format, first.version)));
    }
    let mut parsed = ParsedJournal { bodies: Vec::new(), blobs: HashMap::new() };
    let mut last_seq: Seq = 0;
    let mut cwd = String::new();
    let mut rules = 0;
    for (number, line) in rows {
        if number > MAX_LINES {
            return Err(line_error(number, format!("there are more than {MAX_LINES} lines")));
        }
        let is_blob = line.starts_with("{\"blob_id\":");
        if is_blob {
            let (blob_id, blob) = blob(line).map_err(|why| line_error(number, why))?;
            if parsed.blobs.insert(blob_id, blob).is_some() {
                return Err(line_error(number, "this blob is there twice"));
            }
            continue;
        }
        if !parsed.blobs.is_empty() {
            return Err(line_error(number, "events come before blobs"));
        }
        if line.len() > MAX_EVENT_BYTES {
            return Err(line_error(number, format!("an event has at most {MAX_EVENT_BYTES} bytes")));
        }
        let body = neutral_event(line, id, &first, &cwd, defaults).map_err(|why| line_error(number, why))?;
        let envelope = event(&body, last_seq).map_err(|why| line_error(number, why))?;
        let is_created = matches!(envelope.event, Event::SessionCreated(_));
        if is_created != parsed.bodies.is_empty() {
            return Err(line_error(number, "the first event creates the session, and no other one"));
        }
        last_seq = envelope.seq;
        match &envelope.event {
            Event::SessionCreated(spec) => cwd.clone_from(&spec.cwd),
            // The file provides the conversation. Its allow rules are omitted, because only the user
            // decides what may run.
            Event::PermissionRuleAdded { kind: RuleKind::Allow, .. }
            | Event::PermissionRuleRemoved { kind: RuleKind::Allow, .. }
            | Event::SessionPromptBuilt { .. } => continue,
            Event::PermissionRuleAdded { .. } => rules += 1,
            _ => {}
        }
        if rules > MAX_TURNS_OR_RULES {
            return Err(line_error(number, format!("there are more than {MAX_TURNS_OR_RULES} rules")));
        }
        parsed.bodies.push((number, envelope, body));
    }
    if parsed.bodies.is_empty() {
        return Err(line_error(2, "there are no events"));
    }
    Ok(parsed)
}

fn event(body: &str, last_seq: Seq) -> Result<Envelope, String> {
    let envelope: Envelope = serde_json::from_str(body).map_err(|error| error.to_string())?;
    if envelope.seq <= last_seq || envelope.seq > MAX_SEQ {
        return Err(format!("seq {} does not follow {last_seq}", envelope.seq));
    }
    if envelope.event.is_delta() || lines::UNEXPORTED_KINDS.contains(&envelope.event.kind()) {
        return Err(format!("{} is not part of an export", envelope.event.kind()));
    }
    Ok(envelope)
}

fn blob(line: &str) -> Result<(BlobId, Blob), String> {
    let BlobLine { blob_id, media_type, content } =
        serde_json::from_str(line).map_err(|error| error.to_string())?;
    let is_type = media_type.len() <= 100 && media_type.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_type {
        return Err("media_type is not a media type".into());
    }
    let bytes = STANDARD.decode(content).map_err(|error| format!("content: {error}"))?;
    let blob = Blob::new(media_type, bytes);
    // The id of a command's output comes from its call. All other ids are digests of the content.
    if blob.blob_id != blob_id && blob_id.is_of_content() {
        return Err("the content does not have this id".into());
    }
    Ok((blob_id, Blob { blob_id, ..blob }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_lines_are_named_and_refused() {
        let id = Mint::new(1, Seed(1)).session();
        let head = format!(
            "{{\"format\":\"agentd-session\",\"version\":1,\"session_id\":\"{id}\",\"exported_at_ms\":1}}"
        );
        let created = "{\"type\":\"session.created\",\"seq\":1,\"at_ms\":1,\"cwd\":\"/usr\",\"title\":\"\",\"model\":\"\",\"mode\":\"default\"}";
        let text = Blob::text("x").blob_id;
        let deep = format!(
            "{{\"type\":\"notice\",\"seq\":2,\"at_ms\":1,\"kind\":\"k\",\"text\":\"t\",\"x\":{}{}}}",
            "[".repeat(100),
            "]".repeat(100)
        );
        for (lines, expected) in [
            (vec!["".to_owned()], "line 1"),
            (vec![head.clone()], "line 2"),
            (vec![head.replace(":1,\"session", ":9,\"session"), created.into()], "line 1"),
            (vec![head.clone(), created.replace("created", "unheard")], "line 2"),
            (vec![head.clone(), created.into(), created.into()], "line 3"),
            (vec![head.clone(), created.into(), created.replace("\"seq\":1", "\"seq\":2")], "line 3"),
            (vec![head.clone(), created.into(), "{".into()], "line 3"),
            (vec![head.clone(), created.into(), deep], "line 3"),
            (vec![head.clone(), created.replace("{", "{\"origin\":{},")], "line 2"),
            (vec![head.clone(), created.replace("/usr", "/missing")], "line 2: cwd"),
            (vec![head.clone(), created.replace("/usr", "usr")], "line 2: cwd"),
            (vec![head.clone(), created.replace("/usr", "/usr\\u0000")], "line 2: cwd"),
            (
                vec![
                    head.clone(),
                    created.into(),
                    format!("{{\"blob_id\":\"{text}\",\"media_type\":\"text/plain\",\"content\":\"eQ==\"}}"),
                ],
                "line 3",
            ),
        ] {
            let error =
                parse(&lines.join("\n"), id, SessionDefaults::default()).err().expect("refused").to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
        assert!(parse(&[head, created.to_owned()].join("\n"), id, SessionDefaults::default()).is_ok());
    }
}
