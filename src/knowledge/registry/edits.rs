//! Changes by users: documents are deleted; entities and relations are created, changed, merged and deleted.

use std::path::Path;

use super::Indexes;
use crate::store::{DeleteOutcome, EntityEdit, RelationEdit, Writer};
use crate::traits::IndexReader as _;
use crate::types::{Entity, ErrorKind, KnowledgeError};
use types::knowledge::{PairKey, Relation};

impl Indexes {
    /// Deletes a document by its id or path. Returns whether there was one.
    ///
    /// # Errors
    /// A job works on the index, or it could not be written.
    pub async fn delete_document(
        &self,
        workspace: &Path,
        id: String,
        with_cache: bool,
    ) -> Result<bool, KnowledgeError> {
        self.refuse_if_busy(workspace)?;
        let store = self.store(workspace).await?;
        let inserted_documents = store.inserted_documents();
        let delete = move |writer: &mut Writer| {
            if let Some(found) = writer.find_document(&id)? {
                // Delete the second copy first. Otherwise, a crash in between would restore the document.
                inserted_documents.remove_document(found.id.as_str())?;
            }
            writer.delete_document(&id, with_cache)
        };
        Ok(store.write(delete).await? == DeleteOutcome::Deleted)
    }

    /// Creates an entity.
    ///
    /// # Errors
    /// The entity exists, or the index could not be written.
    pub async fn create_entity(
        &self,
        workspace: &Path,
        name: String,
        entity_type: String,
        description: String,
    ) -> Result<Entity, KnowledgeError> {
        self.refuse_if_busy(workspace)?;
        let (store, now_ms) = (self.store(workspace).await?, self.now_ms()?);
        let created = name.clone();
        store.write(move |writer| writer.create_entity(&created, &entity_type, &description, now_ms)).await?;
        self.entity(workspace, name).await
    }

    /// Changes an entity.
    ///
    /// # Errors
    /// There is no such entity, its new name is taken, or the index could not be written.
    pub async fn update_entity(
        &self,
        workspace: &Path,
        name: String,
        edit: EntityEdit,
    ) -> Result<Entity, KnowledgeError> {
        self.refuse_if_busy(workspace)?;
        let (store, now_ms) = (self.store(workspace).await?, self.now_ms()?);
        let updated = store.write(move |writer| writer.update_entity(&name, &edit, now_ms)).await?;
        self.entity(workspace, updated).await
    }

    /// Joins entities into one.
    ///
    /// # Errors
    /// A source does not exist, or the index could not be written.
    pub async fn merge_entities(
        &self,
        workspace: &Path,
        sources: Vec<String>,
        target: String,
    ) -> Result<Entity, KnowledgeError> {
        self.refuse_if_busy(workspace)?;
        let (store, now_ms) = (self.store(workspace).await?, self.now_ms()?);
        let merge = move |writer: &mut Writer| {
            writer.merge_entities(&sources, &target, &EntityEdit::default(), now_ms)
        };
        let merged = store.write(merge).await?;
        self.entity(workspace, merged).await
    }

    /// Deletes an entity with its relations.
    ///
    /// # Errors
    /// There is no such entity, or the index could not be written.
    pub async fn delete_entity(&self, workspace: &Path, name: String) -> Result<(), KnowledgeError> {
        self.refuse_if_busy(workspace)?;
        self.store(workspace).await?.write(move |writer| writer.delete_entity(&name)).await
    }

    /// Creates a relation.
    ///
    /// # Errors
    /// The relation exists, an end is missing, or the index could not be written.
    pub async fn create_relation(
        &self,
        workspace: &Path,
        relation: Relation,
    ) -> Result<Relation, KnowledgeError> {
        self.refuse_if_busy(workspace)?;
        let (store, now_ms) = (self.store(workspace).await?, self.now_ms()?);
        let create = move |writer: &mut Writer| {
            let Relation { source, target, keywords, description, weight } = &relation;
            writer.create_relation(source, target, keywords, description, *weight, now_ms)
        };
        let created = store.write(create).await?;
        self.relation(workspace, created).await
    }

    /// Changes a relation.
    ///
    /// # Errors
    /// There is no such relation, or the index could not be written.
    pub async fn update_relation(
        &self,
        workspace: &Path,
        pair: PairKey,
        edit: RelationEdit,
    ) -> Result<Relation, KnowledgeError> {
        self.refuse_if_busy(workspace)?;
        let (store, now_ms) = (self.store(workspace).await?, self.now_ms()?);
        let updated = store.write(move |writer| writer.update_relation(&pair, &edit, now_ms)).await?;
        self.relation(workspace, updated).await
    }

    /// Deletes a relation.
    ///
    /// # Errors
    /// There is no such relation, or the index could not be written.
    pub async fn delete_relation(&self, workspace: &Path, pair: PairKey) -> Result<(), KnowledgeError> {
        self.refuse_if_busy(workspace)?;
        self.store(workspace).await?.write(move |writer| writer.delete_relation(&pair)).await
    }

    async fn entity(&self, workspace: &Path, name: String) -> Result<Entity, KnowledgeError> {
        let store = self.store(workspace).await?;
        let found = store.read_rows(move |reader| reader.entities(&[name])).await?;
        found.into_iter().next().ok_or_else(|| deleted_error("entity"))
    }

    async fn relation(&self, workspace: &Path, pair: PairKey) -> Result<Relation, KnowledgeError> {
        let store = self.store(workspace).await?;
        let found = store.read_rows(move |reader| reader.relations(&[pair])).await?;
        found.into_iter().next().map(|edge| edge.relation).ok_or_else(|| deleted_error("relation"))
    }

    fn now_ms(&self) -> Result<i64, KnowledgeError> {
        Ok(self.services()?.clock().now().0)
    }
}

fn deleted_error(what: &str) -> KnowledgeError {
    let text = format!("could not show the {what}: it was changed by another call meanwhile; read it again");
    KnowledgeError::new(ErrorKind::NotFound, text)
}
