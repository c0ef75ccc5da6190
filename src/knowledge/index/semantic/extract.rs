//! Extracts the records of one document with a model.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::calls::SemanticRun;
use super::parse::{ParsedAnswer, ParsedEntity, ParsedRelation, parse};
use super::prompt::{EXTRACT_POLICY, extraction_system, extraction_user, gleaning_user};
use crate::index::chunk::WINDOW_TOKENS;
use crate::store::{CachedAnswer, EntityRecord, RelationRecord};
use crate::tokens;
use crate::traits::{CallPurpose, ModelCall};
use crate::types::{Chunk, KnowledgeError, hash128};
use types::knowledge::{CacheKind, ChatMessage, PairKey};

/// Consecutive chunks that a model reads together.
#[derive(Debug, PartialEq, Eq)]
struct ExtractionUnit {
    /// Indexes of the chunks.
    chunks: Vec<usize>,
    text: String,
}

/// Groups chunks up to the size of a window.
fn units(chunks: &[Chunk]) -> Vec<ExtractionUnit> {
    let mut units: Vec<ExtractionUnit> = Vec::new();
    let mut used = 0;
    for (at, chunk) in chunks.iter().enumerate() {
        let tokens = usize::try_from(chunk.tokens).unwrap_or(usize::MAX);
        match units.last_mut() {
            Some(unit) if used + tokens <= WINDOW_TOKENS => {
                unit.chunks.push(at);
                unit.text.push('\n');
                unit.text.push_str(&chunk.text);
                used += tokens;
            }
            _ => {
                units.push(ExtractionUnit { chunks: vec![at], text: chunk.text.clone() });
                used = tokens;
            }
        }
    }
    units
}

/// The answers for one unit, as the cache holds them.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct UnitAnswers {
    first: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gleaned: Option<String>,
}

/// Records of a document, by the indexes of its chunks.
pub(super) type DocumentRecords = (Vec<EntityRecord>, Vec<RelationRecord>);

/// Asks the model about every unit of a document, or uses its answers from the cache.
///
/// # Errors
/// A call failed, the budget is used up, or the job was cancelled. Finished units are in the cache.
pub(super) async fn extract(
    run: &SemanticRun<'_>,
    chunks: &[Chunk],
) -> Result<DocumentRecords, KnowledgeError> {
    let units = units(chunks);
    let calls = units.iter().map(|unit| async move {
        let answers = unit_answers(run, chunks, unit).await?;
        Ok::<_, KnowledgeError>(unit_records(chunks, unit, &answers))
    });
    // `SemanticRun::call` limits the number of parallel calls. All of them run to their end, also after an
    // error of one, because their answers are paid for.
    let found = futures_util::future::join_all(calls).await;
    let (mut entities, mut relations) = (Vec::new(), Vec::new());
    for unit in found {
        let (unit_entities, unit_relations) = unit?;
        entities.extend(unit_entities);
        relations.extend(unit_relations);
    }
    Ok((entities, relations))
}

async fn unit_answers(
    run: &SemanticRun<'_>,
    chunks: &[Chunk],
    unit: &ExtractionUnit,
) -> Result<UnitAnswers, KnowledgeError> {
    let first_chunk = &chunks[unit.chunks[0]];
    let system = extraction_system(run.settings);
    let user = extraction_user(first_chunk.path.as_deref(), &unit.text);
    let gleaning = run.settings.max_gleaning.min(1);
    let identity = run.model.identity();
    let key = hash128(&[
        EXTRACT_POLICY.as_bytes(),
        &gleaning.to_le_bytes(),
        system.as_bytes(),
        user.as_bytes(),
        identity.as_bytes(),
    ]);
    let cache_key = key.clone();
    let cached = run.store.read(move |reader| reader.cached(CacheKind::Extract, &cache_key)).await?;
    if let Some(answers) = cached.and_then(|value| serde_json::from_str(&value).ok()) {
        return Ok(answers);
    }
    let call = |messages: Vec<ChatMessage>| ModelCall {
        purpose: CallPurpose::Extract,
        system: system.clone(),
        messages,
    };
    let first = run.call(call(vec![ChatMessage::user(&user)])).await?;
    let mut is_whole = !first.truncated;
    let mut gleaned = None;
    if gleaning > 0 {
        let again = gleaning_user();
        let input = [system.as_str(), &user, &first.text, &again]
            .iter()
            .map(|text| tokens::count(text))
            .sum::<usize>();
        if input <= run.settings.max_input_tokens {
            let messages =
                vec![ChatMessage::user(&user), ChatMessage::assistant(&first.text), ChatMessage::user(again)];
            let second = run.call(call(messages)).await?;
            is_whole &= !second.truncated;
            gleaned = Some(second.text);
        }
    }
    let answers = UnitAnswers { first: first.text, gleaned };
    if is_whole && let Ok(value) = serde_json::to_string(&answers) {
        let answer =
            CachedAnswer { kind: CacheKind::Extract, key, value, chunk: Some(first_chunk.id.clone()) };
        let now_ms = run.clock.now().0;
        run.store.write(move |writer| writer.put_answers(&[answer], now_ms)).await?;
        base::crash::point("KN.answer");
    }
    Ok(answers)
}

fn unit_records(chunks: &[Chunk], unit: &ExtractionUnit, answers: &UnitAnswers) -> DocumentRecords {
    let first = parse(&answers.first);
    if !first.is_complete {
        tracing::warn!(dropped = first.dropped, "a model's extraction has no end mark");
    }
    let gleaned = answers.gleaned.as_deref().map(parse).unwrap_or_default();
    let (entities, relations) = merge_passes(first, gleaned);
    let texts: Vec<String> = unit.chunks.iter().map(|at| chunks[*at].text.to_lowercase()).collect();
    let mentions = |at: usize, name: &str| texts[at].contains(&name.to_lowercase());
    // The first chunk with all names, else the first one with any of them, else the first chunk.
    let chunk_of = |names: &[&str]| {
        let all = (0..texts.len()).find(|at| names.iter().all(|name| mentions(*at, name)));
        let any = || (0..texts.len()).find(|at| names.iter().any(|name| mentions(*at, name)));
        unit.chunks[all.or_else(any).unwrap_or(0)]
    };
    let entities = entities
        .into_iter()
        .map(|entity| EntityRecord {
            chunk: chunk_of(&[&entity.name]),
            name: entity.name,
            entity_type: entity.entity_type,
            description: entity.description,
        })
        .collect();
    let relations = relations
        .into_iter()
        .map(|relation| RelationRecord {
            chunk: chunk_of(&[&relation.source, &relation.target]),
            source: relation.source,
            target: relation.target,
            keywords: relation.keywords,
            description: relation.description,
            weight: relation.weight,
        })
        .collect();
    (entities, relations)
}

/// Merges both passes over a unit: if two records have the same name or pair, the longer description is kept.
fn merge_passes(first: ParsedAnswer, gleaned: ParsedAnswer) -> (Vec<ParsedEntity>, Vec<ParsedRelation>) {
    let mut entities: Vec<ParsedEntity> = Vec::new();
    let mut entity_at: HashMap<String, usize> = HashMap::new();
    for entity in first.entities.into_iter().chain(gleaned.entities) {
        match entity_at.get(&entity.name) {
            Some(at) if entities[*at].description.chars().count() < entity.description.chars().count() => {
                entities[*at] = entity;
            }
            Some(_) => {}
            None => {
                entity_at.insert(entity.name.clone(), entities.len());
                entities.push(entity);
            }
        }
    }
    let mut relations: Vec<ParsedRelation> = Vec::new();
    let mut relation_at: HashMap<PairKey, usize> = HashMap::new();
    for relation in first.relations.into_iter().chain(gleaned.relations) {
        let key = PairKey::new(&relation.source, &relation.target);
        match relation_at.get(&key) {
            Some(at) if relations[*at].description.chars().count() < relation.description.chars().count() => {
                relations[*at] = relation;
            }
            Some(_) => {}
            None => {
                relation_at.insert(key, relations.len());
                relations.push(relation);
            }
        }
    }
    (entities, relations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{ChunkId, DocId};

    fn chunk(ordinal: u32, text: &str, tokens: u32) -> Chunk {
        Chunk {
            id: ChunkId(format!("chunk-{ordinal}")),
            doc_id: DocId("doc".into()),
            path: None,
            ordinal,
            text: text.into(),
            tokens,
            start_byte: 0,
            end_byte: 0,
            start_line: 1,
            end_line: 1,
            language: None,
            symbol: None,
            content_hash: String::new(),
        }
    }

    #[test]
    fn chunks_are_grouped_up_to_a_window() {
        let chunks = [chunk(0, "a", 500), chunk(1, "b", 600), chunk(2, "c", 200), chunk(3, "d", 1200)];
        let groups: Vec<Vec<usize>> = units(&chunks).into_iter().map(|unit| unit.chunks).collect();
        assert_eq!(groups, [vec![0, 1], vec![2], vec![3]]);
    }

    #[test]
    fn longer_description_wins_between_passes() {
        let first =
            parse("entity<|#|>A1<|#|>x<|#|>short\nrelation<|#|>A1<|#|>B1<|#|>k<|#|>a long one<|COMPLETE|>");
        let second = parse(
            "entity<|#|>A1<|#|>y<|#|>much longer\nentity<|#|>B1<|#|>x<|#|>new\nrelation<|#|>B1<|#|>A1<|#|>k<|#|>tiny",
        );
        let (entities, relations) = merge_passes(first, second);
        let found: Vec<&str> = entities.iter().map(|entity| entity.description.as_str()).collect();
        assert_eq!(found, ["much longer", "new"]);
        assert_eq!(relations.len(), 1);
        assert_eq!(relations[0].description, "a long one");
    }

    #[test]
    fn records_belong_to_the_chunk_that_names_them() {
        let chunks = [chunk(0, "about Alice", 5), chunk(1, "about BOB and carol", 5)];
        let unit = &units(&chunks)[0];
        let answers = UnitAnswers {
            first: "entity<|#|>Bob<|#|>person<|#|>d\nentity<|#|>Zed<|#|>person<|#|>d\n\
                    relation<|#|>Bob<|#|>Carol<|#|>k<|#|>d<|COMPLETE|>"
                .into(),
            gleaned: None,
        };
        let (entities, relations) = unit_records(&chunks, unit, &answers);
        assert_eq!((entities[0].chunk, entities[1].chunk, relations[0].chunk), (1, 0, 1));
    }
}
