//! `agentctl memory`: the notes about the project in the current folder.

use crate::args::MemoryCommand;
use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::connection::{paths, stdin};
use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use crate::terminal::style::Tone;
use crate::terminal::table::{Table, column};
use api::methods;
use api::params::{
    MemoryListParams, MemoryListReply, MemoryRemoveParams, MemoryRemoveReply, MemorySetParams, MemorySetReply,
};

pub(crate) async fn memory(
    reach: &Connector,
    what: Option<MemoryCommand>,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let cwd = paths::current_folder()?.to_string_lossy().into_owned();
    match what {
        None => list(&client, cwd, false, out).await,
        Some(MemoryCommand::List { json }) => list(&client, cwd, json, out).await,
        Some(MemoryCommand::Show { name }) => {
            let params = MemoryListParams { cwd, name: Some(name) };
            let reply: MemoryListReply = client.call::<methods::memory::List>(&params).await?;
            let text = reply.notes.into_iter().next().and_then(|note| note.text).unwrap_or_default();
            Ok(out.say_text(&text)?)
        }
        Some(MemoryCommand::Set { name, text }) => {
            let text = match text.as_slice() {
                [only] if only == "-" => stdin::read_all()?,
                words => words.join(" "),
            };
            let params = MemorySetParams { cwd, name, text, idempotency_key: None };
            let reply: MemorySetReply = client.call::<methods::memory::Set>(&params).await?;
            Ok(out.say(&format!("stored {} ({} bytes)", reply.note.name, reply.note.bytes))?)
        }
        Some(MemoryCommand::Rm { name }) => {
            let params = MemoryRemoveParams { cwd, name, idempotency_key: None };
            let reply: MemoryRemoveReply = client.call::<methods::memory::Remove>(&params).await?;
            Ok(out.say(&format!("removed {}", escape::line(&reply.name)))?)
        }
    }
}

async fn list(client: &Client, cwd: String, json: bool, out: &mut OutputStreams) -> Result<(), Failure> {
    let reply: MemoryListReply =
        client.call::<methods::memory::List>(&MemoryListParams { cwd, name: None }).await?;
    if json {
        return Ok(out.json(&reply.notes)?);
    }
    if reply.notes.is_empty() {
        return Ok(out.note("there are no notes about this project")?);
    }
    let mut table = Table::new([column("NOTE").between(8, 40), column("FIRST LINE").between(20, 120)]);
    for note in &reply.notes {
        table.push([
            (Tone::Tool, note.name.clone()),
            (Tone::Plain, escape::line(&note.description).into_owned()),
        ]);
    }
    table.print(out)
}
