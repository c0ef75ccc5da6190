//! `knowledge.documents.delete`, `knowledge.cache.clear`, `knowledge.delete`, `knowledge.entity.*`,
//! `knowledge.relation.*`

use std::sync::Arc;

use super::{change, convert};
use crate::context::RpcContext;
use crate::convert::invalid_param;
use crate::params::Caller;
use api::Fault;
use api::params::{
    KnowledgeCacheClearParams, KnowledgeCacheClearReply, KnowledgeDeleteParams, KnowledgeDeleteReply,
    KnowledgeDocumentDeleteParams, KnowledgeDocumentDeleteReply, KnowledgeEntityMergeParams,
    KnowledgeEntityParams, KnowledgeEntityReply, KnowledgeRelationParams, KnowledgeRelationReply,
};
use knowledge::store::{EntityEdit, RelationEdit};
use knowledge::{Entity, ErrorKind, KnowledgeError};
use types::knowledge::{CacheKind, PairKey, Relation};

/// Maximum bytes of an entity's name.
const MAX_NAME_BYTES: usize = 512;
/// Maximum bytes of a description.
const MAX_DESCRIPTION_BYTES: usize = 64 * 1024;
/// Maximum number of entities that one call merges.
const MAX_SOURCES: usize = 100;

pub(crate) async fn delete_document(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: KnowledgeDocumentDeleteParams,
) -> Result<KnowledgeDocumentDeleteReply, Fault> {
    let reply = |status: &str, message| KnowledgeDocumentDeleteReply { status: status.to_owned(), message };
    change(&ctx, "knowledge.documents.delete", p, async |folder, p| {
        match ctx.indexes.delete_document(&folder, p.id, p.delete_cache).await {
            Ok(true) => Ok(reply("success", None)),
            Ok(false) => Ok(reply("not_found", None)),
            Err(error) => match error.kind {
                ErrorKind::Busy => Ok(reply("not_allowed", Some(error.message))),
                ErrorKind::Storage | ErrorKind::Damaged => Ok(reply("fail", Some(error.message))),
                _ => Err(convert::fault(error)),
            },
        }
    })
    .await
}

pub(crate) async fn cache_clear(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: KnowledgeCacheClearParams,
) -> Result<KnowledgeCacheClearReply, Fault> {
    change(&ctx, "knowledge.cache.clear", p, async |folder, p| {
        let kinds = p.kinds.unwrap_or_else(|| vec![CacheKind::Query, CacheKind::Keywords]);
        // An empty list clears no cache. It does not mean all caches.
        let removed = match kinds.is_empty() {
            true => 0,
            false => ctx.indexes.clear_cache(&folder, kinds).await.map_err(convert::fault)?,
        };
        Ok(KnowledgeCacheClearReply { removed })
    })
    .await
}

pub(crate) async fn delete(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: KnowledgeDeleteParams,
) -> Result<KnowledgeDeleteReply, Fault> {
    change(&ctx, "knowledge.delete", p, async |folder, _| {
        let deleted = ctx.indexes.delete(&folder).await.map_err(convert::fault)?;
        Ok(KnowledgeDeleteReply { deleted })
    })
    .await
}

fn checked_name(path: &str, name: String) -> Result<String, Fault> {
    let name = name.trim().to_owned();
    let is_bad = name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control);
    if is_bad {
        let why = format!("expected 1 to {MAX_NAME_BYTES} bytes without control characters");
        return Err(invalid_param(path, &why));
    }
    Ok(name)
}

fn checked_text(path: &str, text: Option<String>) -> Result<Option<String>, Fault> {
    match text {
        Some(text) if text.len() > MAX_DESCRIPTION_BYTES => {
            Err(invalid_param(path, &format!("expected at most {MAX_DESCRIPTION_BYTES} bytes")))
        }
        text => Ok(text),
    }
}

fn require_field<T>(path: &str, value: Option<T>) -> Result<T, Fault> {
    value.ok_or_else(|| invalid_param(path, &format!("missing field `{path}`")))
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

fn refuse_unused<T>(path: &str, value: Option<&T>) -> Result<(), Fault> {
    value.map_or(Ok(()), |_| Err(invalid_param(path, "this method does not use it; leave it out")))
}

fn entity_reply(entity: Result<Entity, KnowledgeError>) -> Result<KnowledgeEntityReply, Fault> {
    Ok(KnowledgeEntityReply { entity: Some(convert::node(entity.map_err(convert::fault)?)) })
}

pub(crate) async fn create_entity(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: KnowledgeEntityParams,
) -> Result<KnowledgeEntityReply, Fault> {
    change(&ctx, "knowledge.entity.create", p, async |folder, p| {
        let fields = entity_fields(p)?;
        refuse_unused("new_name", fields.new_name.as_ref())?;
        let entity_type = require_field("type", fields.entity_type)?;
        let description = require_field("description", fields.description)?;
        entity_reply(ctx.indexes.create_entity(&folder, fields.name, entity_type, description).await)
    })
    .await
}

pub(crate) async fn update_entity(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: KnowledgeEntityParams,
) -> Result<KnowledgeEntityReply, Fault> {
    change(&ctx, "knowledge.entity.update", p, async |folder, p| {
        let EntityFields { name, new_name, entity_type, description } = entity_fields(p)?;
        let edit = EntityEdit { name: new_name, entity_type, description };
        entity_reply(ctx.indexes.update_entity(&folder, name, edit).await)
    })
    .await
}

pub(crate) async fn merge_entities(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: KnowledgeEntityMergeParams,
) -> Result<KnowledgeEntityReply, Fault> {
    change(&ctx, "knowledge.entity.merge", p, async |folder, p| {
        if p.sources.is_empty() || p.sources.len() > MAX_SOURCES {
            return Err(invalid_param("sources", &format!("expected 1 to {MAX_SOURCES} names")));
        }
        let target = checked_name("target", p.target)?;
        entity_reply(ctx.indexes.merge_entities(&folder, p.sources, target).await)
    })
    .await
}

pub(crate) async fn delete_entity(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: KnowledgeEntityParams,
) -> Result<KnowledgeEntityReply, Fault> {
    change(&ctx, "knowledge.entity.delete", p, async |folder, p| {
        refuse_unused("new_name", p.new_name.as_ref())?;
        refuse_unused("type", p.entity_type.as_ref())?;
        refuse_unused("description", p.description.as_ref())?;
        ctx.indexes.delete_entity(&folder, p.name).await.map_err(convert::fault)?;
        Ok(KnowledgeEntityReply { entity: None })
    })
    .await
}

fn checked_weight(weight: Option<f64>) -> Result<Option<f64>, Fault> {
    match weight {
        Some(weight) if !weight.is_finite() || weight <= 0.0 => {
            Err(invalid_param("weight", "expected a number above 0"))
        }
        weight => Ok(weight),
    }
}

fn relation_reply(relation: Result<Relation, KnowledgeError>) -> Result<KnowledgeRelationReply, Fault> {
    Ok(KnowledgeRelationReply { relation: Some(relation.map_err(convert::fault)?) })
}

pub(crate) async fn create_relation(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: KnowledgeRelationParams,
) -> Result<KnowledgeRelationReply, Fault> {
    change(&ctx, "knowledge.relation.create", p, async |folder, p| {
        let relation = Relation {
            source: checked_name("source", p.source)?,
            target: checked_name("target", p.target)?,
            keywords: checked_text("keywords", p.keywords)?.unwrap_or_default(),
            description: require_field("description", checked_text("description", p.description)?)?,
            weight: checked_weight(p.weight)?.unwrap_or(1.0),
        };
        relation_reply(ctx.indexes.create_relation(&folder, relation).await)
    })
    .await
}

pub(crate) async fn update_relation(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: KnowledgeRelationParams,
) -> Result<KnowledgeRelationReply, Fault> {
    change(&ctx, "knowledge.relation.update", p, async |folder, p| {
        let pair = PairKey::new(&p.source, &p.target);
        let edit = RelationEdit {
            keywords: checked_text("keywords", p.keywords)?,
            description: checked_text("description", p.description)?,
            weight: checked_weight(p.weight)?,
        };
        relation_reply(ctx.indexes.update_relation(&folder, pair, edit).await)
    })
    .await
}

pub(crate) async fn delete_relation(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: KnowledgeRelationParams,
) -> Result<KnowledgeRelationReply, Fault> {
    change(&ctx, "knowledge.relation.delete", p, async |folder, p| {
        refuse_unused("keywords", p.keywords.as_ref())?;
        refuse_unused("description", p.description.as_ref())?;
        refuse_unused("weight", p.weight.as_ref())?;
        let pair = PairKey::new(&p.source, &p.target);
        ctx.indexes.delete_relation(&folder, pair).await.map_err(convert::fault)?;
        Ok(KnowledgeRelationReply { relation: None })
    })
    .await
}
