//! The methods `knowledge.*`. Each one parses its parameters, calls the registry of indexes, and
//! converts the reply.

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

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::convert as session;
use super::convert::idempotency_key;
use crate::context::RpcContext;
use api::Fault;
use api::params::{
    KnowledgeCacheClearParams, KnowledgeCancelParams, KnowledgeDeleteParams, KnowledgeDocumentDeleteParams,
    KnowledgeEntityMergeParams, KnowledgeEntityParams, KnowledgeIndexParams, KnowledgeInsertParams,
    KnowledgeRelationParams,
};
use types::knowledge::QueryParams;

/// Resolves the folder that a call names. The folder must exist and its path must be absolute; links are resolved.
async fn workspace(ctx: &RpcContext, folder: &str) -> Result<PathBuf, Fault> {
    ctx.registry.workspace_folder(folder).await.map(PathBuf::from).map_err(session::fault)
}

/// The common parameters of all changes.
trait ChangeParams: Serialize {
    fn workspace(&self) -> &str;
    fn take_key(&mut self) -> Option<String>;
}

macro_rules! change_params {
    ($($params:ty),* $(,)?) => {
        $(impl ChangeParams for $params {
            fn workspace(&self) -> &str {
                &self.workspace
            }

            fn take_key(&mut self) -> Option<String> {
                self.idempotency_key.take()
            }
        })*
    };
}

change_params!(
    KnowledgeIndexParams,
    KnowledgeInsertParams,
    KnowledgeDocumentDeleteParams,
    KnowledgeCacheClearParams,
    KnowledgeDeleteParams,
    KnowledgeEntityParams,
    KnowledgeEntityMergeParams,
    KnowledgeRelationParams,
    KnowledgeCancelParams,
    QueryParams,
);

/// Runs the common steps of a change: resolves the folder, and returns the stored reply for a known
/// idempotency key. Errors are not stored.
async fn change<P: ChangeParams, R: Serialize + DeserializeOwned>(
    ctx: &RpcContext,
    method: &'static str,
    mut p: P,
    work: impl AsyncFnOnce(PathBuf, P) -> Result<R, Fault>,
) -> Result<R, Fault> {
    let keyed = idempotency_key(p.take_key(), &p);
    let folder = workspace(ctx, p.workspace()).await?;
    ctx.registry.once(method, None, keyed, crate::convert::fault, work(folder, p)).await
}
