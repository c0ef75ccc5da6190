//! `knowledge.documents.delete`, `knowledge.cache.clear`, `knowledge.delete`, `knowledge.entity.*`, `knowledge.relation.*`

use std::sync::Arc;

use super::{convert, workspace};
use crate::api::Fault;
use crate::api::params::{
    CacheKindParam, KnowledgeCacheClearParams, KnowledgeCacheClearReply, KnowledgeDeleteParams,
    KnowledgeDeleteReply, KnowledgeDocumentDeleteParams, KnowledgeDocumentDeleteReply,
    KnowledgeEntityMergeParams, KnowledgeEntityParams, KnowledgeEntityReply, KnowledgeRelationParams,
    KnowledgeRelationReply,
};
use crate::knowledge::store::{EntityEdit, RelationEdit};
use crate::knowledge::{ErrorKind, PairKey, Relation};
use crate::rpc::context::RpcContext;
use crate::rpc::convert::{keyed, wrong};
use crate::rpc::params::Caller;

/// Bytes of a name of an entity.
const MAX_NAME_BYTES: usize = 512;
/// Bytes of a description.
const MAX_DESCRIPTION_BYTES: usize = 64 * 1024;
/// Entities that are merged at once.
const MAX_SOURCES: usize = 100;

pub(in crate::rpc) async fn delete_document(
    ctx: Arc<RpcContext>,
    _: Caller,
    mut p: KnowledgeDocumentDeleteParams,
) -> Result<KnowledgeDocumentDeleteReply, Fault> {
    let keyed = keyed(p.idempotency_key.take(), &p);
    let folder = workspace(&ctx, &p.workspace).await?;
    let delete = async {
        let reply =
            |status: &str, message| KnowledgeDocumentDeleteReply { status: status.to_owned(), message };
        match ctx.indexes.delete_document(&folder, p.id, p.delete_cache).await {
            Ok(true) => Ok(reply("success", None)),
            Ok(false) => Ok(reply("not_found", None)),
            Err(error) => match error.kind {
                ErrorKind::Busy => Ok(reply("not_allowed", Some(error.message))),
                ErrorKind::Storage | ErrorKind::Damaged => Ok(reply("fail", Some(error.message))),
                _ => Err(convert::fault(error)),
            },
        }
    };
    ctx.registry.once("knowledge.documents.delete", None, keyed, delete).await
}

pub(in crate::rpc) async fn cache_clear(
    ctx: Arc<RpcContext>,
    _: Caller,
    mut p: KnowledgeCacheClearParams,
) -> Result<KnowledgeCacheClearReply, Fault> {
    let keyed = keyed(p.idempotency_key.take(), &p);
    let folder = workspace(&ctx, &p.workspace).await?;
    let kinds = p.kinds.unwrap_or_else(|| vec![CacheKindParam::Query, CacheKindParam::Keywords]);
    let clear = async {
        let kinds = kinds.into_iter().map(convert::cache_kind).collect::<Vec<_>>();
        // An empty list is none, not all.
        let removed = match kinds.is_empty() {
            true => 0,
            false => ctx.indexes.clear_cache(&folder, kinds).await.map_err(convert::fault)?,
        };
        Ok(KnowledgeCacheClearReply { removed })
    };
    ctx.registry.once("knowledge.cache.clear", None, keyed, clear).await
}

pub(in crate::rpc) async fn delete(
    ctx: Arc<RpcContext>,
    _: Caller,
    mut p: KnowledgeDeleteParams,
) -> Result<KnowledgeDeleteReply, Fault> {
    let keyed = keyed(p.idempotency_key.take(), &p);
    let folder = workspace(&ctx, &p.workspace).await?;
    let delete = async {
        let deleted = ctx.indexes.delete(&folder).await.map_err(convert::fault)?;
        Ok(KnowledgeDeleteReply { deleted })
    };
    ctx.registry.once("knowledge.delete", None, keyed, delete).await
}

fn checked_name(path: &str, name: String) -> Result<String, Fault> {
    let name = name.trim().to_owned();
    let is_bad = name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control);
    if is_bad {
        let why = format!("expected 1 to {MAX_NAME_BYTES} bytes without control characters");
        return Err(wrong(path, &why));
    }
    Ok(name)
}

fn checked_text(path: &str, text: Option<String>) -> Result<Option<String>, Fault> {
    match text {
        Some(text) if text.len() > MAX_DESCRIPTION_BYTES => {
            Err(wrong(path, &format!("expected at most {MAX_DESCRIPTION_BYTES} bytes")))
        }
        text => Ok(text),
    }
}

fn needed<T>(path: &str, value: Option<T>) -> Result<T, Fault> {
    value.ok_or_else(|| wrong(path, &format!("missing field `{path}`")))
}

/// The parts of an entity that its method may set.
struct EntityFields {
    name: String,
    new_name: Option<String>,
    entity_type: Option<String>,
    description: Option<String>,
}

fn entity_fields(p: KnowledgeEntityParams) -> Result<EntityFields, Fault> {
    Ok(EntityFields {
        name: checked_name("name", p.name)?,
        new_name: p.new_name.map(|name| checked_name("new_name", name)).transpose()?,
        entity_type: p.entity_type.map(|name| checked_name("type", name)).transpose()?,
        description: checked_text("description", p.description)?,
    })
}

fn unused<T>(path: &str, value: Option<&T>) -> Result<(), Fault> {
    value.map_or(Ok(()), |_| Err(wrong(path, "this method does not use it; leave it out")))
}

pub(in crate::rpc) async fn create_entity(
    ctx: Arc<RpcContext>,
    _: Caller,
    mut p: KnowledgeEntityParams,
) -> Result<KnowledgeEntityReply, Fault> {
    let keyed = keyed(p.idempotency_key.take(), &p);
    let folder = workspace(&ctx, &p.workspace).await?;
    let fields = entity_fields(p)?;
    unused("new_name", fields.new_name.as_ref())?;
    let entity_type = needed("type", fields.entity_type)?;
    let description = needed("description", fields.description)?;
    let create = async {
        let created = ctx.indexes.create_entity(&folder, fields.name, entity_type, description).await;
        Ok(KnowledgeEntityReply { entity: Some(convert::node(created.map_err(convert::fault)?)) })
    };
    ctx.registry.once("knowledge.entity.create", None, keyed, create).await
}

pub(in crate::rpc) async fn update_entity(
    ctx: Arc<RpcContext>,
    _: Caller,
    mut p: KnowledgeEntityParams,
) -> Result<KnowledgeEntityReply, Fault> {
    let keyed = keyed(p.idempotency_key.take(), &p);
    let folder = workspace(&ctx, &p.workspace).await?;
    let EntityFields { name, new_name, entity_type, description } = entity_fields(p)?;
    let edit = EntityEdit { name: new_name, entity_type, description };
    let update = async {
        let updated = ctx.indexes.update_entity(&folder, name, edit).await.map_err(convert::fault)?;
        Ok(KnowledgeEntityReply { entity: Some(convert::node(updated)) })
    };
    ctx.registry.once("knowledge.entity.update", None, keyed, update).await
}

pub(in crate::rpc) async fn merge_entities(
    ctx: Arc<RpcContext>,
    _: Caller,
    mut p: KnowledgeEntityMergeParams,
) -> Result<KnowledgeEntityReply, Fault> {
    let keyed = keyed(p.idempotency_key.take(), &p);
    let folder = workspace(&ctx, &p.workspace).await?;
    if p.sources.is_empty() || p.sources.len() > MAX_SOURCES {
        return Err(wrong("sources", &format!("expected 1 to {MAX_SOURCES} names")));
    }
    let target = checked_name("target", p.target)?;
    let merge = async {
        let merged = ctx.indexes.merge_entities(&folder, p.sources, target).await.map_err(convert::fault)?;
        Ok(KnowledgeEntityReply { entity: Some(convert::node(merged)) })
    };
    ctx.registry.once("knowledge.entity.merge", None, keyed, merge).await
}

pub(in crate::rpc) async fn delete_entity(
    ctx: Arc<RpcContext>,
    _: Caller,
    mut p: KnowledgeEntityParams,
) -> Result<KnowledgeEntityReply, Fault> {
    let keyed = keyed(p.idempotency_key.take(), &p);
    let folder = workspace(&ctx, &p.workspace).await?;
    unused("new_name", p.new_name.as_ref())?;
    unused("type", p.entity_type.as_ref())?;
    unused("description", p.description.as_ref())?;
    let delete = async {
        ctx.indexes.delete_entity(&folder, p.name).await.map_err(convert::fault)?;
        Ok(KnowledgeEntityReply { entity: None })
    };
    ctx.registry.once("knowledge.entity.delete", None, keyed, delete).await
}

fn checked_weight(weight: Option<f64>) -> Result<Option<f64>, Fault> {
    match weight {
        Some(weight) if !weight.is_finite() || weight <= 0.0 => {
            Err(wrong("weight", "expected a number above 0"))
        }
        weight => Ok(weight),
    }
}

pub(in crate::rpc) async fn create_relation(
    ctx: Arc<RpcContext>,
    _: Caller,
    mut p: KnowledgeRelationParams,
) -> Result<KnowledgeRelationReply, Fault> {
    let keyed = keyed(p.idempotency_key.take(), &p);
    let folder = workspace(&ctx, &p.workspace).await?;
    let relation = Relation {
        source: checked_name("source", p.source)?,
        target: checked_name("target", p.target)?,
        keywords: checked_text("keywords", p.keywords)?.unwrap_or_default(),
        description: needed("description", checked_text("description", p.description)?)?,
        weight: checked_weight(p.weight)?.unwrap_or(1.0),
    };
    let create = async {
        let created = ctx.indexes.create_relation(&folder, relation).await.map_err(convert::fault)?;
        Ok(KnowledgeRelationReply { relation: Some(convert::edge(created)) })
    };
    ctx.registry.once("knowledge.relation.create", None, keyed, create).await
}

pub(in crate::rpc) async fn update_relation(
    ctx: Arc<RpcContext>,
    _: Caller,
    mut p: KnowledgeRelationParams,
) -> Result<KnowledgeRelationReply, Fault> {
    let keyed = keyed(p.idempotency_key.take(), &p);
    let folder = workspace(&ctx, &p.workspace).await?;
    let pair = PairKey::new(&p.source, &p.target);
    let edit = RelationEdit {
        keywords: checked_text("keywords", p.keywords)?,
        description: checked_text("description", p.description)?,
        weight: checked_weight(p.weight)?,
    };
    let update = async {
        let updated = ctx.indexes.update_relation(&folder, pair, edit).await.map_err(convert::fault)?;
        Ok(KnowledgeRelationReply { relation: Some(convert::edge(updated)) })
    };
    ctx.registry.once("knowledge.relation.update", None, keyed, update).await
}

pub(in crate::rpc) async fn delete_relation(
    ctx: Arc<RpcContext>,
    _: Caller,
    mut p: KnowledgeRelationParams,
) -> Result<KnowledgeRelationReply, Fault> {
    let keyed = keyed(p.idempotency_key.take(), &p);
    let folder = workspace(&ctx, &p.workspace).await?;
    unused("keywords", p.keywords.as_ref())?;
    unused("description", p.description.as_ref())?;
    unused("weight", p.weight.as_ref())?;
    let pair = PairKey::new(&p.source, &p.target);
    let delete = async {
        ctx.indexes.delete_relation(&folder, pair).await.map_err(convert::fault)?;
        Ok(KnowledgeRelationReply { relation: None })
    };
    ctx.registry.once("knowledge.relation.delete", None, keyed, delete).await
}
