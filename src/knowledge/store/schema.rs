//! Tables of an index file, and their migrations. `user_version` is the number of migrations that were applied.
//!
//! The graph depends only on the contributions (`kn_entity_desc`, `kn_relation_desc`): the statements of each chunk
//! about a name or a pair. Deleting a document deletes its contributions and computes the touched rows again.

use rusqlite::{Connection, Row, params};

use super::words::split_words;
use crate::types::{ErrorKind, KnowledgeError};

/// One step to a newer form of the file.
struct Migration {
    sql: &'static str,
    /// A step that is not possible in SQL.
    then: Option<MigrationStep>,
}

type MigrationStep = fn(&Connection) -> Result<(), KnowledgeError>;

/// Migrations in order. New ones are appended; existing ones never change.
const MIGRATIONS: &[Migration] = &[
    Migration { sql: FIRST_SCHEMA, then: None },
    Migration { sql: SECOND_SCHEMA, then: Some(split_words_again) },
    // Words without accents were added, and some files are read in another way.
    Migration { sql: READ_AGAIN, then: Some(split_words_again) },
];

/// The origin of a contribution. One chunk can have one of each kind for the same name.
pub(super) mod origin {
    /// A user: the contribution has no chunk (0) and overrides extracted values.
    pub const CUSTOM: i64 = 0;
    /// The syntax tree of the chunk.
    pub const STRUCTURE: i64 = 1;
    /// A name in the chunk that was resolved to a symbol of another chunk.
    pub const REFERENCE: i64 = 2;
    /// A model that read the chunk.
    pub const MODEL: i64 = 3;
    /// Like [`REFERENCE`], if the name that mentions is greater than the mentioned one: two functions of one chunk
    /// that call each other make two statements about one relation.
    pub const REFERENCE_REVERSED: i64 = 4;
}

const FIRST_SCHEMA: &str = "
create table kn_meta (key text primary key, value text not null) strict, without rowid;

create table kn_doc (
    id integer primary key,
    key text not null unique,
    path text unique,
    hash text not null,
    source text not null,
    status text not null,
    level text not null,
    error text,
    lang text,
    bytes integer not null,
    mtime_ns integer not null,
    generation integer not null,
    created_ms integer not null,
    updated_ms integer not null
) strict;
create index kn_doc_status on kn_doc (status) where status <> 'processed';

-- The text of an inserted document until its chunks are stored.
create table kn_doc_text (doc_id integer primary key references kn_doc (id) on delete cascade, text text not null) strict;

create table kn_chunk (
    id integer primary key,
    key text not null unique,
    doc_id integer not null references kn_doc (id) on delete cascade,
    ord integer not null,
    text text not null,
    tokens integer not null,
    start_byte integer not null,
    end_byte integer not null,
    start_line integer not null,
    end_line integer not null,
    lang text,
    symbol text,
    content_hash text not null,
    path text,
    -- Parts of compound identifiers, for the full-text index.
    words text not null
) strict;
create index kn_chunk_doc on kn_chunk (doc_id, ord);
create index kn_chunk_content on kn_chunk (content_hash);

create table kn_entity (
    id integer primary key,
    name text not null unique,
    type text not null,
    description text not null,
    degree integer not null default 0,
    stub integer not null default 0,
    words text not null,
    -- The descriptions are too many to be joined, and there is no summary of them.
    summary_due integer not null default 0
) strict;
create index kn_entity_due on kn_entity (id) where summary_due = 1;

create table kn_entity_desc (
    entity_id integer not null,
    chunk_id integer not null,
    origin integer not null,
    type text not null,
    description text not null,
    ts integer not null,
    primary key (entity_id, chunk_id, origin)
) strict, without rowid;
create index kn_entity_desc_chunk on kn_entity_desc (chunk_id);

create table kn_relation (
    id integer primary key,
    a integer not null references kn_entity (id),
    b integer not null references kn_entity (id),
    -- 1 if the source is a.
    forward integer not null,
    keywords text not null,
    description text not null,
    weight real not null,
    ends text not null,
    words text not null,
    summary_due integer not null default 0,
    unique (a, b),
    check (a < b)
) strict;
create index kn_relation_b on kn_relation (b);
create index kn_relation_due on kn_relation (id) where summary_due = 1;

create table kn_relation_desc (
    relation_id integer not null,
    chunk_id integer not null,
    origin integer not null,
    forward integer not null,
    keywords text not null,
    description text not null,
    weight real not null,
    ts integer not null,
    primary key (relation_id, chunk_id, origin)
) strict, without rowid;
create index kn_relation_desc_chunk on kn_relation_desc (chunk_id);

-- The source lists: which chunks speak of an entity or a relation, the first one first.
create view kn_entity_chunk as
    select entity_id, chunk_id, min(ts) as ts from kn_entity_desc where chunk_id > 0 group by entity_id, chunk_id;
create view kn_relation_chunk as
    select relation_id, chunk_id, min(ts) as ts from kn_relation_desc where chunk_id > 0 group by relation_id, chunk_id;

-- A name that a user merged into another one.
create table kn_alias (alias text primary key, name text not null) strict, without rowid;

-- What syntax trees define and mention. References are resolved to symbols by name.
create table kn_symbol (
    id integer primary key,
    chunk_id integer not null,
    entity text not null,
    name text not null,
    parent text not null,
    lang text not null
) strict;
create index kn_symbol_name on kn_symbol (name);
create index kn_symbol_chunk on kn_symbol (chunk_id);
create table kn_reference (
    id integer primary key,
    chunk_id integer not null,
    source text not null,
    kind text not null,
    name text not null,
    qualifier text not null,
    lang text not null,
    -- The relation that this mention makes, if it is resolved.
    relation_id integer
) strict;
create index kn_reference_name on kn_reference (name);
create index kn_reference_chunk on kn_reference (chunk_id);
-- Names whose references must be resolved again, because a symbol or a reference of this name changed.
create table kn_unresolved (name text primary key) strict, without rowid;

create table kn_vec (
    kind integer not null,
    row_id integer not null,
    model text not null,
    dim integer not null,
    scale real not null,
    content_hash text not null,
    q8 blob not null,
    primary key (kind, row_id)
) strict, without rowid;
create index kn_vec_content on kn_vec (content_hash, model);

create table kn_cache (
    kind text not null,
    key text not null,
    value text not null,
    chunk_id integer,
    created_ms integer not null,
    primary key (kind, key)
) strict, without rowid;
create index kn_cache_chunk on kn_cache (chunk_id) where chunk_id is not null;

-- Summaries in use, by a hash of the model and the descriptions. Unlike the cache they are never cleared.
create table kn_summary (key text primary key, text text not null) strict, without rowid;

create table kn_job (
    id text primary key,
    state text not null,
    request text not null,
    error text,
    created_ms integer not null,
    updated_ms integer not null
) strict, without rowid;

create trigger kn_degree_insert after insert on kn_relation begin
    update kn_entity set degree = degree + 1 where id in (new.a, new.b);
end;
create trigger kn_degree_delete after delete on kn_relation begin
    update kn_entity set degree = degree - 1 where id in (old.a, old.b);
end;

create virtual table kn_fts_chunk using fts5 (
    text, path, symbol, words, content = 'kn_chunk', content_rowid = 'id', tokenize = \"porter unicode61 tokenchars '_'\"
);
create trigger kn_fts_chunk_insert after insert on kn_chunk begin
    insert into kn_fts_chunk (rowid, text, path, symbol, words)
        values (new.id, new.text, new.path, new.symbol, new.words);
end;
create trigger kn_fts_chunk_delete after delete on kn_chunk begin
    insert into kn_fts_chunk (kn_fts_chunk, rowid, text, path, symbol, words)
        values ('delete', old.id, old.text, old.path, old.symbol, old.words);
    delete from kn_vec where kind = 2 and row_id = old.id;
end;

create virtual table kn_fts_entity using fts5 (
    name, description, words, content = 'kn_entity', content_rowid = 'id', tokenize = \"porter unicode61 tokenchars '_'\"
);
create trigger kn_fts_entity_insert after insert on kn_entity begin
    insert into kn_fts_entity (rowid, name, description, words) values (new.id, new.name, new.description, new.words);
end;
create trigger kn_fts_entity_delete after delete on kn_entity begin
    insert into kn_fts_entity (kn_fts_entity, rowid, name, description, words)
        values ('delete', old.id, old.name, old.description, old.words);
    delete from kn_vec where kind = 0 and row_id = old.id;
end;
create trigger kn_fts_entity_update after update of name, description, words on kn_entity begin
    insert into kn_fts_entity (kn_fts_entity, rowid, name, description, words)
        values ('delete', old.id, old.name, old.description, old.words);
    insert into kn_fts_entity (rowid, name, description, words) values (new.id, new.name, new.description, new.words);
    delete from kn_vec where kind = 0 and row_id = old.id;
end;

create virtual table kn_fts_relation using fts5 (
    keywords, ends, description, words, content = 'kn_relation', content_rowid = 'id',
    tokenize = \"porter unicode61 tokenchars '_'\"
);
create trigger kn_fts_relation_insert after insert on kn_relation begin
    insert into kn_fts_relation (rowid, keywords, ends, description, words)
        values (new.id, new.keywords, new.ends, new.description, new.words);
end;
create trigger kn_fts_relation_delete after delete on kn_relation begin
    insert into kn_fts_relation (kn_fts_relation, rowid, keywords, ends, description, words)
        values ('delete', old.id, old.keywords, old.ends, old.description, old.words);
    delete from kn_vec where kind = 1 and row_id = old.id;
end;
create trigger kn_fts_relation_update after update of keywords, ends, description, words on kn_relation begin
    insert into kn_fts_relation (kn_fts_relation, rowid, keywords, ends, description, words)
        values ('delete', old.id, old.keywords, old.ends, old.description, old.words);
    insert into kn_fts_relation (rowid, keywords, ends, description, words)
        values (new.id, new.keywords, new.ends, new.description, new.words);
    delete from kn_vec where kind = 1 and row_id = old.id;
end;

-- Weights of the columns: symbols and names say more than running text.
insert into kn_fts_chunk (kn_fts_chunk, rank) values ('rank', 'bm25(1.0, 1.5, 2.5, 0.7)');
insert into kn_fts_entity (kn_fts_entity, rank) values ('rank', 'bm25(4.0, 1.0, 2.0)');
insert into kn_fts_relation (kn_fts_relation, rank) values ('rank', 'bm25(2.0, 2.0, 1.0, 1.0)');
insert into kn_meta (key, value) values ('generation', '0');
";

const SECOND_SCHEMA: &str = "
-- Files that are no text or hold a secret. They are read again when their time, their size or the rules change.
create table kn_skipped (
    path text primary key,
    bytes integer not null,
    mtime_ns integer not null,
    rules integer not null
) strict, without rowid;
";

/// Makes the next job read notebooks, whose outputs were indexed, and code with minified names again.
const READ_AGAIN: &str = "
update kn_doc set hash = '', mtime_ns = -1 where source = 'file' and (path like '%.ipynb' or id in (
    select c.doc_id from kn_symbol s join kn_chunk c on c.id = s.chunk_id
    group by c.doc_id having count(*) >= 40 and avg(length(s.name)) < 3));
";

/// Rows of a table with a text beyond ASCII, whose words an older program did not split.
const OTHER_SCRIPTS: &str = "glob '*[' || char(128) || '-' || char(1114111) || ']*'";

/// Computes the words of texts beyond ASCII again: an older program stored Chinese, Japanese and Korean texts as one
/// word, and no words without accents.
fn split_words_again(connection: &Connection) -> Result<(), KnowledgeError> {
    for (id, words) in
        changed_words(connection, "kn_chunk", ["text", "coalesce(path, '')", "coalesce(symbol, '')"])?
    {
        // Chunks never change otherwise, so no trigger updates their full-text rows.
        connection.execute(
            "insert into kn_fts_chunk (kn_fts_chunk, rowid, text, path, symbol, words) \
             select 'delete', id, text, path, symbol, words from kn_chunk where id = ?1",
            [id],
        )?;
        connection.execute("update kn_chunk set words = ?2 where id = ?1", params![id, words])?;
        connection.execute(
            "insert into kn_fts_chunk (rowid, text, path, symbol, words) \
             select id, text, path, symbol, words from kn_chunk where id = ?1",
            [id],
        )?;
    }
    for (id, words) in changed_words(connection, "kn_entity", ["name", "description", "''"])? {
        connection.execute("update kn_entity set words = ?2 where id = ?1", params![id, words])?;
    }
    for (id, words) in changed_words(connection, "kn_relation", ["ends", "keywords", "description"])? {
        connection.execute("update kn_relation set words = ?2 where id = ?1", params![id, words])?;
    }
    Ok(())
}

/// The rows of a table whose words have changed.
fn changed_words(
    connection: &Connection,
    table: &str,
    [one, other, third]: [&str; 3],
) -> Result<Vec<(i64, String)>, KnowledgeError> {
    let sql = format!(
        "select id, {one}, {other}, {third}, words from {table} where {one} || {other} || {third} {OTHER_SCRIPTS}"
    );
    let changed = |row: &Row<'_>| {
        let texts = [row.get::<_, String>(1)?, row.get(2)?, row.get(3)?];
        let words = split_words(texts.iter().map(String::as_str));
        Ok((words != row.get::<_, String>(4)?).then_some((row.get(0)?, words)))
    };
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([], changed)?;
    Ok(rows.filter_map(Result::transpose).collect::<Result<_, _>>()?)
}

/// Brings a connection's file to the newest version. Each migration is one transaction.
///
/// # Errors
/// The file could not be changed, or a newer program wrote it.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), KnowledgeError> {
    let version: usize = connection.query_row("pragma user_version", [], |row| row.get(0))?;
    if version > MIGRATIONS.len() {
        return Err(KnowledgeError::new(
            ErrorKind::Storage,
            "could not open the index: a newer agentd wrote it; update agentd or delete the file",
        ));
    }
    for (number, migration) in MIGRATIONS.iter().enumerate().skip(version) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(migration.sql)?;
        if let Some(then) = migration.then {
            then(&transaction)?;
        }
        transaction.pragma_update(None, "user_version", number + 1)?;
        transaction.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::search;

    #[test]
    fn older_file_gets_words_of_texts_without_spaces() {
        let mut connection = Connection::open_in_memory().expect("a database");
        connection.execute_batch(FIRST_SCHEMA).expect("the first form");
        connection.pragma_update(None, "user_version", 1).expect("a version");
        connection
            .execute_batch(
                "insert into kn_doc values (1, 'd', 'p', 'h', 'file', 'processed', 'lexical', null, null, 1, 1, 1, 1, 1);
                 insert into kn_chunk (id, key, doc_id, ord, text, tokens, start_byte, end_byte, start_line, end_line, \
                 content_hash, path, words) values (1, 'c', 1, 0, '会话在这里保存', 1, 0, 1, 1, 1, 'x', 'p', '');
                 insert into kn_chunk (id, key, doc_id, ord, text, tokens, start_byte, end_byte, start_line, end_line, \
                 content_hash, path, words) values (2, 'e', 1, 1, 'eine große Straße', 1, 0, 1, 1, 1, 'y', 'p', '');
                 insert into kn_entity (name, type, description, words) values ('会话存储', 'x', 'plain', '');",
            )
            .expect("rows");
        connection
            .execute(
                "insert into kn_doc values (2, 'n', 'a.ipynb', 'h', 'file', 'processed', 'lexical', null, null, 1, 1, 1, 1, 1)",
                [],
            )
            .expect("a notebook");
        migrate(&mut connection).expect("migrated");
        let hashes: Vec<String> = connection
            .prepare("select hash from kn_doc order by id")
            .and_then(|mut all| all.query_map([], |row| row.get(0))?.collect())
            .expect("hashes");
        assert_eq!(hashes, ["h", ""], "a notebook is read again");
        assert_eq!(search::chunks(&connection, "保存", 5).expect("hits").len(), 1);
        assert_eq!(search::chunks(&connection, "grosse strasse", 5).expect("hits").len(), 1);
        assert_eq!(search::entities(&connection, &"存储".into(), 5).expect("hits").len(), 1);
        connection
            .execute("insert into kn_fts_chunk (kn_fts_chunk, rank) values ('integrity-check', 1)", [])
            .expect("the full text agrees with its table");
    }
}
