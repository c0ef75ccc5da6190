//! What the writer does with its connection except for batches: roll back, check, close.

use rusqlite::{Connection, OptionalExtension as _};

use crate::error::StoreError;
use crate::rows::{Append, Row};
use crate::sql_batch::integer;

/// Whether the requests of a failed group should be retried one by one, so that one bad request does not fail
/// the others.
pub(super) fn is_worth_single_tries(error: &StoreError) -> bool {
    matches!(error, StoreError::Taken | StoreError::Sql(_))
}

/// Closes the writer's connection. Errors are only logged, because no caller waits for them.
pub(super) fn close(connection: Connection) {
    if let Err((_, error)) = connection.close() {
        tracing::warn!(%error, "could not close the database cleanly");
    }
}

pub(super) fn roll_back(connection: &Connection, error: &StoreError) {
    tracing::debug!(%error, "a transaction failed and was rolled back");
    // SQLite rolls back by itself after some errors. Then this statement fails without effect.
    let _ = connection.execute_batch("rollback");
}

/// Whether the journal contains the whole group exactly, except the rows that the group itself removes. The
/// group's other changes need no check, because they are in the same transaction.
pub(super) fn is_committed(connection: &Connection, group: &[&Append]) -> Result<bool, StoreError> {
    let mut find = connection.prepare_cached("select body from event where session = ? and seq = ?")?;
    for append in group {
        let stays = |row: &&Row| row.delta_of.is_none_or(|opener| !append.prune_deltas_of.contains(&opener));
        if !append.rows.iter().any(|row| stays(&row)) {
            return Ok(false);
        }
        for row in append.rows.iter().filter(stays) {
            let place = [append.key.0, integer(row.seq)];
            let body: Option<String> = find.query_row(place, |row| row.get(0)).optional()?;
            if body.as_deref() != Some(&*row.body) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Writes an unchanged page to the log, to test whether the disk accepts writes.
pub(super) fn rewrite_nothing(connection: &Connection) -> Result<(), StoreError> {
    let version: i64 = connection.query_row("pragma user_version", [], |row| row.get(0))?;
    Ok(connection.pragma_update(None, "user_version", version)?)
}
