//! `agentctl export` and `import`: write a session to a file, and create one from a file.

use api::methods;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::connection::connector::Connector;
use crate::connection::{session_calls, stdin};
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::out::OutputStreams;
use api::params::{ExportParams, ImportParams, ImportReply, Include};
use types::history::ExportFormat;

/// Bytes of one part of an import.
const PART_BYTES: usize = 4 << 20;

pub(crate) async fn export(
    reach: &Connector,
    name: &str,
    format: ExportFormat,
    file: Option<&Path>,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let session_id = resolve_id::session(&client, name).await?.session_id;
    let mut target = match file {
        // Conversations may contain private text, so only the owner can read the file.
        Some(path) => {
            let open = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
            Some(
                open.map_err(|error| Failure::usage(format!("could not write {}: {error}", path.display())))?,
            )
        }
        None => None,
    };
    let params = ExportParams { session_id, format, cursor: None, include: Include::default() };
    let mut pages = client.pages::<methods::session::Export>(params);
    while let Some(page) = pages.next().await? {
        match &mut target {
            Some(file) => file.write_all(page.data.as_bytes())?,
            None => out.stream_text(&page.data)?,
        }
    }
    Ok(())
}

pub(crate) async fn import(reach: &Connector, file: &Path, out: &mut OutputStreams) -> Result<(), Failure> {
    let text = if file == Path::new("-") {
        stdin::read_all()?
    } else {
        std::fs::read_to_string(file)
            .map_err(|error| Failure::usage(format!("could not read {}: {error}", file.display())))?
    };
    let client = reach.connect_or_start().await?;
    let (mut rest, mut import_id) = (text.as_str(), None);
    loop {
        let (part, more) = rest.split_at(rest.floor_char_boundary(PART_BYTES));
        let last = more.is_empty();
        let idempotency_key = last.then(session_calls::idempotency_key);
        let params = ImportParams { data: part.to_owned(), import_id, last, idempotency_key };
        let reply: ImportReply = client.call::<methods::session::Import>(&params).await?;
        if let Some(session) = reply.session {
            return Ok(out.say(&session.session_id.to_string())?);
        }
        (rest, import_id) = (more, reply.import_id);
    }
}
