//! The methods `knowledge.*`: parse, call the registry of indexes, convert.

mod convert;
mod edit;
mod index;
mod query;
mod read;

pub(super) use edit::{
    cache_clear, create_entity, create_relation, delete, delete_document, delete_entity, delete_relation,
    merge_entities, update_entity, update_relation,
};
pub(super) use index::{cancel, index, insert, subscribe};
pub(super) use query::query;
pub(super) use read::{documents, get_document, graph, status};

use std::path::PathBuf;

use super::convert as session;
use crate::api::Fault;
use crate::rpc::context::RpcContext;

/// The folder that a call names: absolute, without links, existing.
async fn workspace(ctx: &RpcContext, given: &str) -> Result<PathBuf, Fault> {
    ctx.registry.workspace_folder(given).await.map(PathBuf::from).map_err(session::fault)
}
