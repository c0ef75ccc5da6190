//! `agentctl knowledge`: the index of a folder.

mod edit;
mod index;
mod query;
mod results;
mod view;

use std::path::Path;

use crate::args::KnowledgeCommand;
use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::connection::paths;
use crate::connection::remote::Machine;
use crate::failure::Failure;
use crate::terminal::out::OutputStreams;

pub(crate) async fn knowledge(
    reach: &Connector,
    folder: Option<&Path>,
    what: KnowledgeCommand,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let folder = match folder {
        Some(folder) if reach.machine() == Machine::Other => std::path::absolute(folder)?,
        Some(folder) => std::fs::canonicalize(folder)
            .map_err(|error| Failure::usage(format!("could not open {}: {error}", folder.display())))?,
        None => paths::current_folder()?,
    };
    let target = Target { client, workspace: folder.to_string_lossy().into_owned() };
    match what {
        KnowledgeCommand::Index(args) => index::index(&target, args, out).await,
        KnowledgeCommand::Insert { files, id, json } => index::insert(&target, &files, id, json, out).await,
        KnowledgeCommand::Cancel => index::cancel(&target, out).await,
        KnowledgeCommand::Query(args) => query::query(&target, args, out).await,
        KnowledgeCommand::Documents { id: None, status, json, .. } => {
            view::documents(&target, status, json, out).await
        }
        KnowledgeCommand::Documents { id: Some(id), delete: false, json, .. } => {
            view::document(&target, id, json, out).await
        }
        KnowledgeCommand::Documents { id: Some(id), json, .. } => {
            view::delete_document(&target, id, json, out).await
        }
        KnowledgeCommand::Graph(mut args) => match args.edit.take() {
            Some(change) => edit::edit(&target, change, out).await,
            None => view::graph(&target, args, out).await,
        },
        KnowledgeCommand::Status { json } => view::status(&target, json, out).await,
        KnowledgeCommand::Clear { all, index, json } => view::clear(&target, all, index, json, out).await,
    }
}

/// The daemon, and the folder whose index a command uses.
struct Target {
    client: Client,
    workspace: String,
}
