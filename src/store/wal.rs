//! The write-ahead log of a connection: this module counts its pages, and prevents SQLite from checkpointing
//! or deleting it by itself.

use std::cell::Cell;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

thread_local! {
    /// Log pages after the newest commit of this thread.
    static LOG_PAGES: Cell<u32> = const { Cell::new(0) };
}

/// Disables automatic checkpoints of a connection. Its commits only count the pages of the log.
pub(super) fn count_pages(connection: &Connection) {
    connection.wal_hook(Some(|_, pages| {
        LOG_PAGES.set(u32::try_from(pages).unwrap_or(0));
        Ok(())
    }));
}

/// Prevents SQLite from deleting the log when this connection closes, even if it is the last one.
pub(super) fn keep_log(connection: &Connection) {
    if let Err(error) = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true) {
        tracing::warn!(%error, "could not close the database cleanly");
    }
}

/// Log pages after the newest commit of this thread.
pub(super) fn pages() -> u32 {
    LOG_PAGES.get()
}
