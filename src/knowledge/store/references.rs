//! Symbols and references: resolves mentions of a name to the symbol that they mean.
//!
//! The result depends on the stored symbols and references alone, not on the order in which they were added. Whenever
//! a symbol or a reference of a name is added or removed, all references of this name are resolved again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

use super::entities::resolve_alias;
use super::relations::{RelationContribution, TouchedRows, contribute_relation};
use super::schema::origin;
use super::writer::{DocumentContent, ReferenceKind, Writer, raise_generation};
use crate::types::KnowledgeError;

/// Maximum number of names that one transaction resolves.
const MAX_BATCH_NAMES: u32 = 500;
/// Time after which a transaction resolves no further name, so that a job can be cancelled.
const BATCH_TIME: Duration = Duration::from_millis(200);

/// Stores the symbols and mentions of a document.
pub(super) fn insert(
    connection: &Connection,
    chunks: &[i64],
    content: &DocumentContent,
) -> Result<(), KnowledgeError> {
    let language =
        |chunk: usize| content.chunks.get(chunk).and_then(|chunk| chunk.language.as_deref()).unwrap_or("");
    for symbol in &content.symbols {
        let Some(chunk) = chunks.get(symbol.chunk) else { continue };
        connection
            .prepare_cached(
                "insert into kn_symbol (chunk_id, entity, name, parent, lang) values (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![chunk, symbol.entity, symbol.name, symbol.parent, language(symbol.chunk)])?;
        mark_unresolved(connection, &symbol.name)?;
    }
    for reference in &content.references {
        let Some(chunk) = chunks.get(reference.chunk) else { continue };
        connection
            .prepare_cached(
                "insert into kn_reference (chunk_id, source, kind, name, qualifier, lang) \
                 values (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                chunk,
                reference.source,
                reference.kind.as_str(),
                reference.name,
                reference.qualifier,
                language(reference.chunk)
            ])?;
        mark_unresolved(connection, &reference.name)?;
    }
    Ok(())
}

fn mark_unresolved(connection: &Connection, name: &str) -> Result<(), KnowledgeError> {
    connection.prepare_cached("insert or ignore into kn_unresolved (name) values (?1)")?.execute([name])?;
    Ok(())
}

/// Removes the symbols and mentions of a chunk.
pub(super) fn remove(connection: &Connection, chunk: i64) -> Result<(), KnowledgeError> {
    connection
        .prepare_cached(
            "insert or ignore into kn_unresolved (name) select name from kn_symbol where chunk_id = ?1",
        )?
        .execute([chunk])?;
    connection.prepare_cached("delete from kn_symbol where chunk_id = ?1")?.execute([chunk])?;
    connection.prepare_cached("delete from kn_reference where chunk_id = ?1")?.execute([chunk])?;
    Ok(())
}

/// Resolves everything that is marked, within the caller's transaction.
pub(super) fn resolve_all(connection: &Connection) -> Result<(), KnowledgeError> {
    while resolve_batch(connection)? > 0 {}
    Ok(())
}

impl Writer {
    /// Resolves some of the marked names in one transaction. Returns the number of names that are still marked.
    pub fn resolve_references(&mut self) -> Result<u64, KnowledgeError> {
        self.transaction(|connection| {
            let done = resolve_batch(connection)?;
            if done > 0 {
                raise_generation(connection)?;
            }
            let left: u64 =
                connection.query_row("select count(*) from kn_unresolved", [], |row| row.get(0))?;
            base::crash::point("KN.references");
            Ok(left)
        })
    }
}

fn resolve_batch(connection: &Connection) -> Result<u64, KnowledgeError> {
    let end = Instant::now() + BATCH_TIME;
    let mut statement = connection.prepare_cached("select name from kn_unresolved order by name limit ?1")?;
    let names: Vec<String> =
        statement.query_map([MAX_BATCH_NAMES], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut touched = TouchedRows::default();
    let mut done = 0;
    for name in &names {
        resolve_name(connection, name, &mut touched)?;
        connection.prepare_cached("delete from kn_unresolved where name = ?1")?.execute([name])?;
        done += 1;
        if Instant::now() >= end {
            break;
        }
    }
    touched.rebuild(connection)?;
    Ok(done)
}

/// A symbol with the file that defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Symbol {
    entity: String,
    parent: String,
    path: String,
    language: String,
}

/// A mention with the file that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mention {
    chunk: i64,
    source: String,
    kind: ReferenceKind,
    qualifier: String,
    path: String,
    language: String,
    ts: i64,
}

/// Chunk, mentioning entity, mentioned entity.
type StatementKey<'a> = (i64, &'a str, &'a str);

/// The statements of one chunk's mentions about a pair.
#[derive(Default)]
struct PairStatement {
    keywords: BTreeSet<&'static str>,
    ts: i64,
    references: Vec<i64>,
}

fn resolve_name(
    connection: &Connection,
    name: &str,
    touched: &mut TouchedRows,
) -> Result<(), KnowledgeError> {
    let symbols: Vec<Symbol> = connection
        .prepare_cached(
            "select s.entity, s.parent, coalesce(c.path, ''), s.lang from kn_symbol s join kn_chunk c on c.id = s.chunk_id \
             where s.name = ?1 order by s.entity, s.id",
        )?
        .query_map([name], |row| {
            Ok(Symbol { entity: row.get(0)?, parent: row.get(1)?, path: row.get(2)?, language: row.get(3)? })
        })?
        .collect::<Result<_, _>>()?;
    // Existing relations of these mentions. The symbol at the end of a relation may have been removed since. So every
    // mention records its relation.
    let mut statement = connection.prepare_cached(
        "select r.id, r.relation_id, r.chunk_id, r.source, r.kind, r.qualifier, coalesce(c.path, ''), r.lang, d.updated_ms \
         from kn_reference r join kn_chunk c on c.id = r.chunk_id join kn_doc d on d.id = c.doc_id \
         where r.name = ?1 order by r.id",
    )?;
    let rows = statement.query_map([name], |row| {
        let kind: String = row.get(4)?;
        let mention = Mention {
            chunk: row.get(2)?,
            source: row.get(3)?,
            kind: ReferenceKind::from_name(&kind).unwrap_or(ReferenceKind::Call),
            qualifier: row.get(5)?,
            path: row.get(6)?,
            language: row.get(7)?,
            ts: row.get(8)?,
        };
        Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?, mention))
    })?;
    let mentions = rows.collect::<Result<Vec<_>, _>>()?;
    for (_, relation, mention) in &mentions {
        if let Some(relation) = relation {
            let source = resolve_alias(connection, &mention.source)?;
            connection
                .prepare_cached(
                    "delete from kn_relation_desc where relation_id = ?1 and chunk_id = ?2 and origin in (?3, ?4) \
                     and forward = (select r.a = (select id from kn_entity where name = ?5) from kn_relation r \
                     where r.id = ?1)",
                )?
                .execute(params![relation, mention.chunk, origin::REFERENCE, origin::REFERENCE_REVERSED, source])?;
            touched.relations.insert(*relation);
        }
    }
    let symbols = SymbolsOfName::new(symbols);
    // One statement per chunk and pair, with the key words of all mentions.
    let mut statements: BTreeMap<StatementKey<'_>, PairStatement> = BTreeMap::new();
    for (id, relation, mention) in &mentions {
        match symbols.resolve(name, mention) {
            Some(symbol) => {
                let key = (mention.chunk, mention.source.as_str(), symbol.entity.as_str());
                let statement = statements.entry(key).or_default();
                statement.ts = mention.ts;
                statement.keywords.insert(mention.kind.keyword());
                statement.references.push(*id);
            }
            None if relation.is_some() => {
                connection
                    .prepare_cached("update kn_reference set relation_id = null where id = ?1")?
                    .execute([id])?;
            }
            None => {}
        }
    }
    for ((chunk, source, target), PairStatement { keywords, ts, references }) in statements {
        let keywords = keywords.into_iter().collect::<Vec<_>>().join(",");
        let contribution = RelationContribution {
            chunk,
            origin: if source <= target { origin::REFERENCE } else { origin::REFERENCE_REVERSED },
            source,
            target,
            keywords: &keywords,
            description: &keywords,
            weight: 1.0,
            ts,
        };
        let relation = contribute_relation(connection, &contribution, touched)?;
        for id in references {
            connection
                .prepare_cached(
                    "update kn_reference set relation_id = ?2 where id = ?1 and relation_id is not ?2",
                )?
                .execute(params![id, relation])?;
        }
    }
    Ok(())
}

/// The symbols of one name, found by the places that a mention may name. A common name, such as `new`, has thousands of
/// symbols and mentions, so no mention may look at all of the symbols.
struct SymbolsOfName {
    symbols: Vec<Symbol>,
    by_path: HashMap<String, Vec<usize>>,
    /// By the parent, by the stem of the file, and by the last folder.
    by_place: HashMap<String, Vec<usize>>,
    /// At most two symbols of different entities of each family of languages.
    samples: HashMap<String, Vec<usize>>,
    /// The same of all languages.
    all_samples: Vec<usize>,
}

impl SymbolsOfName {
    fn new(symbols: Vec<Symbol>) -> Self {
        let mut by_path: HashMap<String, Vec<usize>> = HashMap::new();
        let mut by_place: HashMap<String, Vec<usize>> = HashMap::new();
        let mut samples: HashMap<String, Vec<usize>> = HashMap::new();
        let mut all_samples = Vec::new();
        let sample = |list: &mut Vec<usize>, index: usize| {
            let is_new = list.iter().all(|other: &usize| symbols[*other].entity != symbols[index].entity);
            if list.len() < 2 && is_new {
                list.push(index);
            }
        };
        for (index, symbol) in symbols.iter().enumerate() {
            by_path.entry(symbol.path.clone()).or_default().push(index);
            let mut places = vec![symbol.parent.as_str()];
            places.extend(place_names(&symbol.path));
            places.sort_unstable();
            places.dedup();
            for place in places {
                by_place.entry(place.to_owned()).or_default().push(index);
            }
            sample(samples.entry(language_family(&symbol.language).to_owned()).or_default(), index);
            sample(&mut all_samples, index);
        }
        Self { symbols, by_path, by_place, samples, all_samples }
    }

    fn in_file(&self, path: &str) -> &[usize] {
        self.by_path.get(path).map_or(&[], Vec::as_slice)
    }

    fn at_place(&self, name: &str) -> &[usize] {
        self.by_place.get(name).map_or(&[], Vec::as_slice)
    }

    /// The symbol that a mention of `name` means, or `None` if there is no single best one. A wrong relation costs more
    /// than a missing one, so ambiguous names stay unresolved.
    fn resolve(&self, name: &str, mention: &Mention) -> Option<&Symbol> {
        let same_language = |symbol: &Symbol| {
            mention.kind == ReferenceKind::Link
                || language_family(&symbol.language) == language_family(&mention.language)
        };
        let single = |indexes: &[usize], is_wanted: &dyn Fn(&Symbol) -> bool| {
            let all = indexes.iter().filter_map(|index| self.symbols.get(*index));
            let mut found = all.filter(|symbol| same_language(symbol) && is_wanted(symbol));
            let first = found.next()?;
            let is_single = found.all(|symbol| symbol.entity == first.entity);
            (is_single && first.entity != mention.source).then_some(first)
        };
        let in_file = |symbol: &Symbol| symbol.path == mention.path;
        if !mention.qualifier.is_empty() {
            let named_here = self.at_place(&mention.qualifier);
            let named = single(named_here, &in_file).or_else(|| single(named_here, &|_| true));
            // A receiver may have the name of a file or a type, or be any variable.
            if named.is_some() || mention.kind != ReferenceKind::MethodCall {
                return named;
            }
        }
        let here = self.in_file(&mention.path);
        let is_here = here.iter().filter_map(|index| self.symbols.get(*index)).any(same_language);
        if is_here && mention.kind != ReferenceKind::Import {
            return single(here, &|_| true);
        }
        // The type of a receiver is unknown: `x.len()` must not become a call of the only `len` of the workspace.
        if mention.kind == ReferenceKind::MethodCall && super::words::word_parts(name).len() < 2 {
            return None;
        }
        let samples = match mention.kind {
            ReferenceKind::Link => Some(&self.all_samples),
            _ => self.samples.get(language_family(&mention.language)),
        };
        single(samples?, &|_| true)
    }
}

/// The names of a path's file and last folder: `mod` and `store` for `src/store/mod.rs`.
fn place_names(path: &str) -> impl Iterator<Item = &str> {
    let mut parts = path.rsplit('/');
    let file = parts.next().unwrap_or_default();
    [file.split('.').next(), parts.next()].into_iter().flatten()
}

/// Languages that call each other's symbols by name.
fn language_family(language: &str) -> &str {
    match language {
        "cpp" => "c",
        "tsx" | "javascript" => "typescript",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(entity: &str, parent: &str, path: &str) -> Symbol {
        Symbol { entity: entity.into(), parent: parent.into(), path: path.into(), language: "rust".into() }
    }

    fn mention(kind: ReferenceKind, qualifier: &str, path: &str) -> Mention {
        Mention {
            chunk: 1,
            source: "caller".into(),
            kind,
            qualifier: qualifier.into(),
            path: path.into(),
            language: "rust".into(),
            ts: 0,
        }
    }

    #[test]
    fn mention_resolves_to_single_best_symbol_only() {
        use ReferenceKind::{Call, MethodCall};
        let symbols = [
            symbol("A::new", "A", "src/a.rs"),
            symbol("B::new", "B", "src/b/mod.rs"),
            symbol("new", "", "src/c.rs"),
        ];
        let symbols = SymbolsOfName::new(symbols.to_vec());
        let found = |kind, qualifier: &str, path: &str| {
            symbols.resolve("new", &mention(kind, qualifier, path)).map(|symbol| symbol.entity.as_str())
        };
        assert_eq!(found(Call, "A", "src/c.rs"), Some("A::new"));
        assert_eq!(found(Call, "b", "src/c.rs"), Some("B::new"), "by the folder of the file");
        assert_eq!(found(Call, "Vec", "src/c.rs"), None);
        assert_eq!(found(Call, "", "src/a.rs"), Some("A::new"), "the only one in this file");
        assert_eq!(found(Call, "", "src/other.rs"), None, "three candidates");
        let only = [symbol("Queue::len", "Queue", "src/q.rs")];
        let only = SymbolsOfName::new(only.to_vec());
        assert_eq!(only.resolve("len", &mention(MethodCall, "", "src/other.rs")), None);
        assert!(only.resolve("len", &mention(MethodCall, "", "src/q.rs")).is_some());
        let distinctive = [symbol("Queue::drain_all", "Queue", "src/q.rs")];
        let distinctive = SymbolsOfName::new(distinctive.to_vec());
        assert!(distinctive.resolve("drain_all", &mention(MethodCall, "", "src/other.rs")).is_some());
    }

    #[test]
    fn recursive_call_makes_no_relation() {
        let symbols = SymbolsOfName::new(vec![symbol("caller", "", "src/a.rs")]);
        assert_eq!(symbols.resolve("caller", &mention(ReferenceKind::Call, "", "src/a.rs")), None);
    }
}
