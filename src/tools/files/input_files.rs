//! Files that a user attaches to an input: a picture, a PDF or a text file, by path or as bytes. No permission
//! rule applies, because the user names the file. It is opened safely, limited in size, and checked in a
//! process of its own before it becomes part of a conversation.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::call::blocking;
use crate::convert;
use crate::error::ToolError;
use crate::files::file_checks;
use crate::files::media;
use crate::files::media::{
    CheckedPicture, MAX_PAGES, MAX_PDF_BYTES, MAX_PICTURE_BYTES, MAX_SHOWN_PDF_BYTES, PagesError,
};
use crate::fs::text;
use crate::settings::Settings;
use types::blob::{Blob, BlobRef, Document, PDF, Picture};
use types::message::InputBlock;

/// Bytes of a text file: a larger one would fill a conversation.
const MAX_TEXT_BYTES: usize = 256 << 10;

/// A file that a user attaches.
#[derive(Clone, Debug)]
pub struct InputFile {
    /// Path or content.
    pub source: InputSource,
    /// Name of the file, if the user or its path gives one.
    pub name: Option<String>,
    /// Whether only a picture is accepted.
    pub picture: bool,
}

/// Source of an attached file.
#[derive(Clone, Debug)]
pub enum InputSource {
    /// An absolute path.
    File(PathBuf),
    /// The content.
    Bytes(Vec<u8>),
}

/// The result for the session.
#[derive(Clone, Debug)]
pub struct IngestedFile {
    pub block: InputBlock,
    /// The content, to be stored together with the event that refers to the block.
    pub blob: Blob,
}

/// Reads and checks an attached file. Cancel-safe.
pub(crate) async fn ingest(settings: &Settings, input_file: InputFile) -> Result<IngestedFile, ToolError> {
    let InputFile { source, name, picture } = input_file;
    let (shown, path, bytes) = match source {
        InputSource::File(path) => {
            let shown = path.display().to_string();
            let largest = if picture { MAX_PICTURE_BYTES } else { MAX_PDF_BYTES };
            let (from, called) = (path.clone(), shown.clone());
            let bytes = blocking(move || load(&from, &called, largest)).await?;
            (shown, path, bytes)
        }
        InputSource::Bytes(bytes) => ("the content".to_owned(), PathBuf::new(), bytes),
    };
    let stop = CancellationToken::new();
    let broken = |why: &str| ToolError::new("not_convertible", format!("{shown} could not be read: {why}"));
    let head = &bytes[..bytes.len().min(text::DETECTION_BYTES)];
    if convert::media_type(head).is_some() && text::binary_kind(head).is_some() {
        if bytes.len() as u64 > MAX_PICTURE_BYTES {
            return Err(too_large_error(&shown, MAX_PICTURE_BYTES));
        }
        let checked_picture =
            media::inspect_media(settings, bytes, &stop).await.map_err(|why| broken(&why))?;
        let CheckedPicture { blob, .. } = checked_picture.ok_or_else(|| broken("it was stopped"))?;
        return Ok(IngestedFile {
            block: InputBlock::Image(Picture { blob: BlobRef::from(&blob), name }),
            blob,
        });
    }
    if picture {
        let kind = text::binary_kind(head).unwrap_or("text");
        return Err(ToolError::new(
            "not_an_image",
            format!("{shown} is {kind}; images are PNG, JPEG, GIF or WebP"),
        ));
    }
    if media::is_pdf(&bytes) {
        return pdf(settings, bytes, name, &shown, &stop).await;
    }
    file_checks::refuse_binary(
        if path.as_os_str().is_empty() { Path::new("the content") } else { &path },
        head,
    )?;
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(ToolError::new(
            "file_too_large",
            format!(
                "{shown} is larger than {} KiB; name it in the text instead, and the model reads what it needs",
                MAX_TEXT_BYTES >> 10
            ),
        ));
    }
    let text = text::detect(&bytes, text::Extent::Whole)
        .decode(&bytes)
        .ok_or_else(|| broken("it is not valid text"))?;
    Ok(document(Blob::text(&text), name, text))
}

async fn pdf(
    settings: &Settings,
    bytes: Vec<u8>,
    name: Option<String>,
    shown: &str,
    stop: &CancellationToken,
) -> Result<IngestedFile, ToolError> {
    let whole = (bytes.len() as u64 <= MAX_SHOWN_PDF_BYTES).then(|| Blob::new(PDF, bytes.as_slice()));
    let pages = media::pages(settings, bytes, (1, MAX_PAGES), stop).await.map_err(|error| {
        let why = match error {
            PagesError::Unreadable(why) => why,
            PagesError::PastEnd(_) => "it has no pages".into(),
            PagesError::Stopped => "it was stopped".into(),
        };
        ToolError::new("not_convertible", format!("{shown} could not be read: {why}"))
    })?;
    // If providers would refuse the document, send only its text.
    let fits = pages.total <= MAX_PAGES && pages.broken.is_none();
    let text = match pages.broken {
        Some(why) => format!("{} Not all of it: {why}.", pages.text),
        None => pages.text,
    };
    let blob = whole.filter(|_| fits).unwrap_or_else(|| Blob::text(&text));
    Ok(document(blob, name, text))
}

fn document(blob: Blob, name: Option<String>, text: String) -> IngestedFile {
    let block = InputBlock::Document(Document { blob: BlobRef::from(&blob), name, text, unsaved: false });
    IngestedFile { block, blob }
}

/// Reads a regular file. Never blocks on a pipe or a device.
fn load(path: &Path, shown: &str, largest: u64) -> Result<Vec<u8>, ToolError> {
    let io = |error: std::io::Error| ToolError::io(path, &error);
    let flags = nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY;
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(io)?;
    let meta = file.metadata().map_err(io)?;
    if meta.is_dir() {
        return Err(ToolError::new("is_a_directory", format!("{shown} is a folder")));
    }
    if !meta.is_file() {
        return Err(ToolError::new("not_a_file", format!("{shown} is not a regular file")));
    }
    if meta.len() > largest {
        return Err(too_large_error(shown, largest));
    }
    media::load(file, largest, path, shown)
}

fn too_large_error(shown: &str, largest: u64) -> ToolError {
    ToolError::new("file_too_large", format!("{shown} is larger than {} MiB", largest >> 20))
        .with(json!({ "largest": largest }))
}
