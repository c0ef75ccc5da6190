//! Tests of the audit log on real files, including changes by an attacker with access to the file.

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

use super::tests::{append, id, new_session, row};
use super::*;
use types::audit::{AuditHead, AuditKind, AuditNote};
use types::time::Timestamp;

struct StoreFixture {
    folder: tempfile::TempDir,
    store: Store,
    owner: StoreOwner,
}

impl StoreFixture {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, owner) = Store::open(&folder.path().join("j.db")).await.expect("a new database");
        Self { folder, store, owner }
    }

    async fn newest_ids(&self) -> Vec<u64> {
        let query = AuditQuery { limit: 1_000, ..AuditQuery::default() };
        self.store.audit(query).await.expect("rows").iter().map(|entry| entry.id).collect()
    }

    /// Closes the store, runs `sql` without the guard triggers, opens the store again and checks the log.
    async fn check_after(self, sql: &'static str) -> AuditCheck {
        let path = self.folder.path().join("j.db");
        self.owner.close().await;
        let mut other = SqliteConnectOptions::new().filename(&path).connect().await.expect("opened");
        for guard in ["drop trigger audit_stays", "drop trigger audit_is_fixed", sql] {
            sqlx::query(guard).execute(&mut other).await.expect("done");
        }
        other.close().await.expect("closed");
        let (store, owner) = Store::open(&path).await.expect("opened");
        let check = store.check_audit(None).await.expect("read");
        owner.close().await;
        check
    }
}

fn audit_note(number: i64) -> AuditNote {
    let note = AuditNote::new(Timestamp(number), AuditKind::Rule, "allow", format!("reason {number}"));
    AuditNote { session_id: Some(id(u128::try_from(number).expect("positive") % 2)), ..note }
}

async fn full_log() -> StoreFixture {
    let place = StoreFixture::new().await;
    for number in 1..=6 {
        place.store.record(vec![audit_note(number)], Durability::Normal).await.expect("written");
    }
    place
}

#[tokio::test]
async fn audit_rows_are_written_atomically_with_events() {
    let place = StoreFixture::new().await;
    let key = place.store.create(new_session(1, None)).await.expect("a session");
    let good = Append { audit: vec![audit_note(1), audit_note(2)], ..append(key, vec![row(2, None)]) };
    place.store.append(good).await.expect("written");
    // The seq is in use, so the store must write nothing of this append.
    let bad = Append { audit: vec![audit_note(3)], ..append(key, vec![row(5, None), row(2, None)]) };
    assert_eq!(place.store.append(bad).await, Err(StoreError::Taken));
    assert_eq!(place.newest_ids().await, [1, 2]);
    // The next append succeeds as if nothing had failed.
    let next = Append { audit: vec![audit_note(4)], ..append(key, vec![row(3, None)]) };
    place.store.append(next).await.expect("written");
    assert_eq!(place.newest_ids().await, [1, 2, 3]);
    assert_eq!(place.store.check_audit(None).await.expect("read").faults, Vec::<String>::new());
    // This deletes the session, but not the audit rows of its decisions.
    place.store.delete(key, None, Timestamp(9)).await.expect("deleted");
    assert_eq!(place.newest_ids().await, [1, 2, 3]);
}

#[tokio::test]
async fn concurrent_audit_records_form_one_chain() {
    let place = StoreFixture::new().await;
    let all = (1..=50)
        .map(|number| place.store.record(vec![audit_note(number), audit_note(number)], Durability::Normal));
    for result in futures_util::future::join_all(all).await {
        result.expect("written");
    }
    assert_eq!(place.newest_ids().await, (1..=100).collect::<Vec<_>>());
    let check = place.store.check_audit(None).await.expect("read");
    assert_eq!((check.rows, check.faults), (100, Vec::new()));
}

#[tokio::test]
async fn audit_rows_are_filtered_by_session_time_and_cursor() {
    let place = full_log().await;
    let ask = async |query: AuditQuery| {
        let rows = place.store.audit(AuditQuery { limit: 9, ..query }).await.expect("rows");
        rows.iter().map(|entry| entry.id).collect::<Vec<_>>()
    };
    assert_eq!(ask(AuditQuery { session_id: Some(id(1)), ..AuditQuery::default() }).await, [1, 3, 5]);
    assert_eq!(ask(AuditQuery { since: Some(Timestamp(4)), ..AuditQuery::default() }).await, [4, 5, 6]);
    assert_eq!(ask(AuditQuery { after: 4, ..AuditQuery::default() }).await, [5, 6]);
    let first = &place.store.audit(AuditQuery { limit: 1, ..AuditQuery::default() }).await.expect("rows")[0];
    assert_eq!((&first.note, first.prev.as_str()), (&audit_note(1), ""));
}

#[tokio::test]
async fn audit_row_update_and_delete_are_refused_by_database() {
    let place = full_log().await;
    let path = place.folder.path().join("j.db");
    let mut other = SqliteConnectOptions::new().filename(&path).connect().await.expect("opened");
    for sql in ["update audit set verdict = 'deny'", "delete from audit where id = 6", "delete from audit"] {
        let refused = sqlx::query(sql).execute(&mut other).await.expect_err(sql).to_string();
        assert!(refused.contains("only added to"), "{sql}: {refused}");
    }
    assert_eq!(place.newest_ids().await.len(), 6);
}

#[tokio::test]
async fn changed_audit_row_is_found_by_check() {
    let check = async |sql: &'static str, expected: &str| {
        let found = full_log().await.check_after(sql).await;
        assert!(found.faults.iter().any(|fault| fault.contains(expected)), "{sql}: {found:?}");
    };
    check("update audit set verdict = 'deny' where id = 3", "row 3: it was changed").await;
    check("update audit set rule = 'x' where id = 3", "row 3: it was changed").await;
    check("update audit set at_ms = 4 where id = 3", "row 3: it was changed").await;
    check("update audit set sandbox = 'off' where id = 6", "row 6: it was changed").await;
    check("update audit set kind = 'strange' where id = 2", "row 2: it was changed").await;
    check("delete from audit where id = 1", "rows 1 to 1 are missing").await;
    check("delete from audit where id in (3, 4)", "rows 3 to 4 are missing").await;
    check("delete from audit where id > 4", "rows 5 to 6 are missing").await;
    check("delete from audit", "rows 1 to 6 are missing").await;
    // Swap two rows.
    let moved = "update audit set id = case id when 3 then 4003 when 4 then 3 else id end where id in (3, 4)";
    check(moved, "row 3: it was changed").await;
    // Append a forged row.
    let forged = "insert into audit (id, at_ms, kind, verdict, reason, sandbox, prev, hash) \
                  values (7, 7, 'rule', 'allow', 'r', 'unknown', 'p', 'h')";
    check(forged, "row 7: it does not follow the row before it").await;
    let whole = full_log().await.check_after("select 1").await;
    assert_eq!((whole.rows, whole.faults), (6, Vec::new()));
}

#[tokio::test]
async fn saved_audit_head_reveals_rewritten_log() {
    let place = full_log().await;
    let head = place.store.check_audit(None).await.expect("read").head.expect("rows");
    assert_eq!(place.store.check_audit(Some(head.clone())).await.expect("read").faults, Vec::<String>::new());
    let other = AuditHead { id: head.id, hash: "0".repeat(64) };
    assert!(
        place.store.check_audit(Some(other)).await.expect("read").faults[0].contains("knows another row")
    );
    let later = AuditHead { id: 9, ..head };
    assert!(
        place.store.check_audit(Some(later)).await.expect("read").faults[0]
            .contains("rows 7 to 9 are missing")
    );
}

#[tokio::test]
async fn newer_audit_head_file_is_not_overwritten() {
    let place = full_log().await;
    let folder = place.folder;
    place.owner.close().await;
    let noted = std::fs::read_to_string(folder.path().join("audit.head")).expect("noted at the end");
    assert!(noted.contains("\"id\":6"), "{noted}");
    let mut other: SqliteConnection =
        SqliteConnectOptions::new().filename(folder.path().join("j.db")).connect().await.expect("opened");
    for sql in ["drop trigger audit_stays", "delete from audit where id > 4"] {
        sqlx::query(sql).execute(&mut other).await.expect("done");
    }
    other.close().await.expect("closed");
    // Later decisions use the row ids of the lost rows again. The head file still proves the loss.
    let (store, owner) = Store::open(&folder.path().join("j.db")).await.expect("opened");
    store
        .record(vec![audit_note(8), audit_note(9), audit_note(10)], Durability::Normal)
        .await
        .expect("written");
    owner.close().await;
    let (store, _owner) = Store::open(&folder.path().join("j.db")).await.expect("opened");
    let check = store.check_audit(None).await.expect("read");
    assert!(check.faults.iter().any(|fault| fault.contains("row 6: the file audit.head")), "{check:?}");
}
