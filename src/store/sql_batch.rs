//! The statements of one transaction, collected before any of them runs.
//!
//! Collecting them needs no I/O. The writer runs them on its thread, and the recovery of a damaged database
//! runs them over another connection.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use sqlx::sqlite::SqliteConnection;

use crate::error::StoreError;

/// The value of one `?` in a statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Integer(i64),
    Text(String),
    /// A row's body, shared with the feed.
    Shared(Arc<str>),
    /// A byte range of content that is shared with other owners.
    Part(Arc<[u8]>, Range<usize>),
}

/// Lists the values of a statement in the order of its `?`.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::sql_batch::Value::from($value)),*] };
}
pub(crate) use values;

/// Statements in the order in which they run.
#[derive(Debug, Default)]
pub(crate) struct SqlBatch(Vec<(Cow<'static, str>, Vec<Value>)>);

impl SqlBatch {
    /// Adds a statement. Use few different texts: SQLite prepares each text once and caches it.
    pub fn add(&mut self, sql: impl Into<Cow<'static, str>>, values: Vec<Value>) {
        self.0.push((sql.into(), values));
    }

    /// Runs all statements in one transaction. After an error the transaction may still be open; the owner of
    /// the connection rolls it back.
    pub fn commit(&self, connection: &rusqlite::Connection) -> Result<(), StoreError> {
        if let [_] = self.0.as_slice() {
            // A single statement is a transaction by itself.
            return self.run(connection);
        }
        connection.prepare_cached("begin immediate")?.execute([])?;
        self.run(connection)?;
        connection.prepare_cached("commit")?.execute([])?;
        Ok(())
    }

    /// Runs all statements inside an open transaction.
    pub fn run(&self, connection: &rusqlite::Connection) -> Result<(), StoreError> {
        for (sql, values) in &self.0 {
            connection.prepare_cached(sql)?.execute(rusqlite::params_from_iter(values))?;
        }
        Ok(())
    }

    /// Runs all statements over a connection other than the writer's.
    pub async fn run_over(self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        for (sql, values) in self.0 {
            let mut query = sqlx::query(sqlx::AssertSqlSafe(sql.into_owned()));
            for value in values {
                query = match value {
                    Value::Null => query.bind(None::<i64>),
                    Value::Integer(number) => query.bind(number),
                    Value::Text(text) => query.bind(text),
                    Value::Shared(text) => query.bind(text.to_string()),
                    Value::Part(bytes, part) => query.bind(bytes[part].to_vec()),
                };
            }
            query.execute(&mut *connection).await?;
        }
        Ok(())
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Shared(text) => ValueRef::Text(text.as_bytes()),
            Value::Part(bytes, part) => ValueRef::Blob(&bytes[part.clone()]),
        }))
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Value::Text(text.clone())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<&Arc<str>> for Value {
    fn from(text: &Arc<str>) -> Self {
        Value::Shared(Arc::clone(text))
    }
}

macro_rules! from_numbers {
    ($($number:ty),*) => {
        $(impl From<$number> for Value {
            fn from(number: $number) -> Self {
                Value::Integer(i64::from(number))
            }
        })*
    };
}
from_numbers!(bool, i32, i64, u16, u32);

/// SQLite's integers are signed. Seqs and amounts of money stay far below the limit.
pub(super) fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// The wire name of a unit variant.
pub(super) fn to_text<T: serde::Serialize>(value: T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(),
    }
}
