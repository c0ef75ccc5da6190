//! `Registry::export`: a session as JSON Lines, Markdown or HTML, page by page.

use std::collections::{BTreeSet, HashMap};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::SessionError;
use crate::history::lines::{self, BlobLine, FirstLine};
use crate::history::page::{PageHeader, PageItem, UsageTable};
use crate::history::{html, markdown, neutral};
use crate::journal_copy::blobs_in;
use crate::registry::Registry;
use store::{Page, SessionKey, StoredItem};
use types::event::{Envelope, Event};
use types::history::ExportFormat;
use types::ids::{BlobId, CallId, Seq, SessionId};
use types::message::Block;
use types::session::Item;
use types::tool::FileChange;

const PAGE_ROWS: u32 = 500;
/// Bytes of the events of one page.
const PAGE_BYTES: usize = 2 << 20;
/// Largest blob of an export, in bytes.
const MAX_BLOB_BYTES: u64 = 8 << 20;
/// Maximum bytes of a picture that an HTML page shows.
const MAX_PICTURE_BYTES: u64 = 2 << 20;
/// Picture types that an HTML page shows.
const PICTURE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Filters the body of an event; `None` omits the event.
pub type EventFilter<'f> = &'f (dyn Fn(String) -> Option<String> + Send + Sync);

/// Creates an item from its first and its last event.
pub type ItemReader<'f> = &'f (dyn Fn(&store::StoredItem) -> Option<Item> + Send + Sync);

impl Registry {
    /// A page of an export: its text, and the cursor of the next page.
    ///
    /// # Errors
    /// The session does not exist, the cursor is not from an export, or the database could not be read.
    pub async fn export(
        &self,
        id: SessionId,
        format: ExportFormat,
        cursor: Option<&str>,
        filter: EventFilter<'_>,
        read: ItemReader<'_>,
    ) -> Result<(String, Option<String>), SessionError> {
        let key = self.inner.shared.store.find(id).await?.ok_or(SessionError::NotFound)?;
        match format {
            ExportFormat::Jsonl => self.export_lines(id, key, cursor, filter).await,
            ExportFormat::Markdown | ExportFormat::Html => {
                self.export_page(id, key, format, cursor, read).await
            }
        }
    }

    async fn export_lines(
        &self,
        id: SessionId,
        key: SessionKey,
        cursor: Option<&str>,
        filter: EventFilter<'_>,
    ) -> Result<(String, Option<String>), SessionError> {
        let store = &self.inner.shared.store;
        let mut data = String::new();
        let after: Seq = match cursor {
            None => {
                let view = self.view(id).await?;
                let first = FirstLine {
                    format: lines::FORMAT.into(),
                    version: lines::VERSION,
                    session_id: id,
                    forked_from: view.forked_from,
                    exported_at_ms: self.inner.shared.clock.now(),
                };
                push_line(&mut data, &serde_json::to_string(&first).unwrap_or_default());
                0
            }
            Some(cursor) => match cursor.strip_prefix("blob:") {
                Some(blob) => return self.export_blobs(key, blob).await,
                None => cursor.parse().map_err(|_| bad_cursor_error())?,
            },
        };
        let Page { rows, is_last } = store.events_after(key, after, PAGE_ROWS, PAGE_BYTES).await?;
        let next = rows.last().map(|row| row.seq);
        for row in rows {
            // Delta rows belong to an answer in progress, whose end is not in the journal yet.
            let is_delta = row.kind.ends_with("_delta") || row.kind == "tool.progress";
            if is_delta || lines::UNEXPORTED_KINDS.contains(&row.kind.as_str()) {
                continue;
            }
            let Some(body) = filter(row.body) else { continue };
            data.extend(neutral::exported_line(&body).map(|line| line + "\n"));
        }
        let next = match next {
            Some(seq) if !is_last => seq.to_string(),
            _ => "blob:".into(),
        };
        Ok((data, Some(next)))
    }

    /// Exports the blobs that the events refer to, in the order of their ids, starting after the given one.
    async fn export_blobs(
        &self,
        key: SessionKey,
        after: &str,
    ) -> Result<(String, Option<String>), SessionError> {
        let store = &self.inner.shared.store;
        let mut named = BTreeSet::new();
        let mut cursor: Seq = 0;
        loop {
            let Page { rows, is_last } = store.events_after(key, cursor, PAGE_ROWS, PAGE_BYTES).await?;
            let lines = rows.iter().filter_map(|row| neutral::exported_line(&row.body));
            lines.for_each(|line| blobs_in(&line, &mut named));
            cursor = rows.last().map_or(cursor, |row| row.seq);
            if is_last {
                break;
            }
        }
        let after: Option<BlobId> = match after {
            "" => None,
            text => Some(text.parse().map_err(|_| bad_cursor_error())?),
        };
        let mut data = String::new();
        let rest: Vec<BlobId> =
            named.into_iter().filter(|id| after.is_none_or(|after| *id > after)).collect();
        for (at, blob_id) in rest.iter().enumerate() {
            if let Some(blob) = store.blob(key, *blob_id).await?.filter(|blob| blob.bytes <= MAX_BLOB_BYTES) {
                let bytes = store.read_blob(&blob, 0, usize::MAX).await?;
                let line = BlobLine {
                    blob_id: *blob_id,
                    media_type: blob.media_type,
                    content: STANDARD.encode(bytes),
                };
                push_line(&mut data, &serde_json::to_string(&line).unwrap_or_default());
            }
            if data.len() >= PAGE_BYTES && at + 1 < rest.len() {
                return Ok((data, Some(format!("blob:{blob_id}"))));
            }
        }
        Ok((data, None))
    }

    async fn export_page(
        &self,
        id: SessionId,
        key: SessionKey,
        format: ExportFormat,
        cursor: Option<&str>,
        read: ItemReader<'_>,
    ) -> Result<(String, Option<String>), SessionError> {
        let store = &self.inner.shared.store;
        let view = self.view_with_models(id).await?;
        let is_html = format == ExportFormat::Html;
        let after: Seq = cursor.map_or(Ok(0), |cursor| cursor.parse().map_err(|_| bad_cursor_error()))?;
        let mut data = String::new();
        if cursor.is_none() {
            let header = PageHeader::new(view.clone());
            data = if is_html { html::render_start(&header) } else { markdown::render_start(&header) };
        }
        let Page { rows, is_last } = store.items_after(key, after, 200, PAGE_BYTES).await?;
        let next = rows.last().map(|row| row.first_seq);
        let upto = rows.iter().map(|row| row.last_seq).max().unwrap_or(0);
        let mut changes = self.changes_between(key, after, upto).await?;
        for item in rows.iter().filter(|row| !is_candidate(row)).filter_map(read) {
            let changes =
                item.call.as_ref().and_then(|call| changes.remove(&call.call_id)).unwrap_or_default();
            let pictures = if is_html { self.load_pictures(key, &item).await? } else { HashMap::new() };
            let entry = PageItem { item, changes, pictures };
            data += &if is_html { html::render_entry(&entry) } else { markdown::render_entry(&entry) };
        }
        if is_last {
            let total = UsageTable::new(&view);
            data += &if is_html { html::render_end(&total) } else { markdown::render_end(&total) };
        }
        Ok((data, next.filter(|_| !is_last).map(|seq| seq.to_string())))
    }

    async fn changes_between(
        &self,
        key: SessionKey,
        after: Seq,
        upto: Seq,
    ) -> Result<HashMap<CallId, Vec<FileChange>>, SessionError> {
        let store = &self.inner.shared.store;
        let mut changes: HashMap<CallId, Vec<FileChange>> = HashMap::new();
        let mut cursor = after;
        loop {
            let Page { rows, is_last } = store.file_changes_after(key, cursor, PAGE_ROWS, PAGE_BYTES).await?;
            cursor = rows.last().map_or(cursor, |row| row.seq);
            for row in rows.iter().filter(|row| row.seq <= upto) {
                let whole = store.restored_event(key, row.seq, &row.body).await?;
                if let Some(Event::FileChanged { call_id, change }) = whole.map(|envelope| envelope.event) {
                    changes.entry(call_id).or_default().push(change);
                }
            }
            if is_last || cursor >= upto {
                return Ok(changes);
            }
        }
    }

    async fn load_pictures(
        &self,
        key: SessionKey,
        item: &Item,
    ) -> Result<HashMap<BlobId, String>, SessionError> {
        let store = &self.inner.shared.store;
        let mut pictures = HashMap::new();
        for block in &item.content {
            let Block::Image(picture) = block else { continue };
            let blob_id = picture.blob.blob_id;
            let Some(blob) = store.blob(key, blob_id).await? else { continue };
            if PICTURE_TYPES.contains(&blob.media_type.as_str()) && blob.bytes <= MAX_PICTURE_BYTES {
                let bytes = store.read_blob(&blob, 0, usize::MAX).await?;
                pictures
                    .insert(blob_id, format!("data:{};base64,{}", blob.media_type, STANDARD.encode(bytes)));
            }
        }
        Ok(pictures)
    }
}

/// Whether an item is one of two candidates. The conversation contains a copy of the chosen one.
fn is_candidate(row: &StoredItem) -> bool {
    let event = || serde_json::from_str::<Envelope>(&row.last).ok().map(|envelope| envelope.event);
    row.status == "interrupted" && matches!(event(), Some(Event::MessageCompleted { candidate: true, .. }))
}

fn push_line(data: &mut String, line: &str) {
    data.push_str(line);
    data.push('\n');
}

fn bad_cursor_error() -> SessionError {
    SessionError::BadParam("cursor", "not one of ours; pass next_cursor as it came".into())
}
