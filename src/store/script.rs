//! One transaction's statements on their way to the database's thread.
//!
//! A trip there and back wakes two threads, which costs more than a small statement does. So the few
//! statements of an everyday decision make the trip as one text; many rows go one statement at a
//! time, each prepared once and kept.

use sqlx::sqlite::{SqliteConnection, SqliteQueryResult};
use sqlx::{QueryBuilder, Sqlite};

use super::error::StoreError;

/// A transaction in the making. If anything fails, or it is dropped before [`Script::commit`], the
/// transaction may be open: whoever holds the connection rolls it back.
pub(super) struct Script<'c> {
    connection: &'c mut SqliteConnection,
    sql: QueryBuilder<Sqlite>,
    together: bool,
}

impl<'c> Script<'c> {
    /// Begins. `together` is for transactions whose whole text recurs.
    pub async fn begin(connection: &'c mut SqliteConnection, together: bool) -> Result<Self, StoreError> {
        let mut script = Self { connection, sql: QueryBuilder::new("begin immediate"), together };
        script.end(true).await?;
        Ok(script)
    }

    /// For one statement, which is a transaction by itself: it is committed when it has ended.
    pub fn single(connection: &'c mut SqliteConnection) -> Self {
        Self { connection, sql: QueryBuilder::new(""), together: false }
    }

    /// Where the next statement is written.
    pub fn sql(&mut self) -> &mut QueryBuilder<Sqlite> {
        &mut self.sql
    }

    /// The statement is complete. `kept` says that its text recurs.
    pub async fn end(&mut self, kept: bool) -> Result<(), StoreError> {
        if self.together {
            self.sql.push("; ");
        } else {
            self.send(kept).await?;
        }
        Ok(())
    }

    /// Like [`Script::end`], but has everything up to here run now. Returns the key of the row it
    /// inserted last.
    pub async fn end_for_key(&mut self) -> Result<i64, StoreError> {
        Ok(self.send(true).await?.last_insert_rowid())
    }

    /// Commits.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        self.sql.push("commit");
        self.send(true).await?;
        Ok(())
    }

    async fn send(&mut self, kept: bool) -> Result<SqliteQueryResult, StoreError> {
        let result = self.sql.build().persistent(kept).execute(&mut *self.connection).await;
        self.sql = QueryBuilder::new("");
        Ok(result?)
    }
}
