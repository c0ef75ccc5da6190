//! C24: a grant and its row in the audit log.

use serde_json::json;

use super::invariants::{Journals, decisions};
use super::matrix_ways;
use super::scenario::{CrashScenario, bash};
use super::tolerant_client::CrashTolerantClient;
use crate::support::daemon::{CrashMode, TestDaemon};
use crate::support::model_server::Step;

matrix_ways! {
    c24_uncommitted_grant_is_in_neither_journal_nor_audit => c24_deciding,
    c24_committed_grant_is_in_journal_and_audit => c24_decided,
}

const GRANT: &str = "Bash(touch two)";

/// Two calls need permission. The client grants the second for the session, and the daemon dies.
async fn grants(scenario: &mut CrashScenario) -> (CrashTolerantClient, Journals) {
    scenario.daemon.models.push(Step::calls([bash("touch one"), bash("touch two")]));
    scenario.daemon.models.push(Step::text("Done."));
    let tolerant = scenario.session().await;
    let mut log = tolerant.log(0).await.expect("a reply");
    tolerant.submit("go", "k").await;
    log.wait_for("permission.requested").await;
    let second = log.wait_for("permission.requested").await;
    let answer = json!({"decision": "allow", "scope": "session", "grant": GRANT});
    assert_eq!(tolerant.approve(&second, answer).await, None, "the answer is not acknowledged");
    let journals = scenario.wait_crashed().await;
    (tolerant, journals)
}

fn granted(journals: &Journals, tolerant: &CrashTolerantClient) -> usize {
    journals[&tolerant.session].values().filter(|event| event["grant"] == GRANT).count()
}

async fn rows(scenario: &CrashScenario) -> usize {
    let rows = decisions(&scenario.database()).await;
    rows.iter().filter(|row| row["rule"] == GRANT && row["kind"] == "permission").count()
}

async fn c24_deciding(way: CrashMode) {
    let mut scenario = CrashScenario::begin(TestDaemon::builder(), "C24.deciding", way).await;
    let (tolerant, journals) = grants(&mut scenario).await;
    assert_eq!((granted(&journals, &tolerant), rows(&scenario).await), (0, 0), "journal and audit log");
    scenario.restart().await;
    let (session, mut log) = scenario.reopen_session(&tolerant).await;
    assert_eq!(session.pending().await.len(), 2, "both calls need a request again");
    for _ in 0..2 {
        let asked = log.wait_for("permission.requested").await;
        session.allow(&asked).await;
    }
    log.turn_ends("success").await;
    scenario.finish_and_check().await;
}

async fn c24_decided(way: CrashMode) {
    let mut scenario = CrashScenario::begin(TestDaemon::builder(), "C24.decided", way).await;
    let (tolerant, journals) = grants(&mut scenario).await;
    assert_eq!((granted(&journals, &tolerant), rows(&scenario).await), (1, 1), "journal and audit log");
    scenario.restart().await;
    let (session, mut log) = scenario.reopen_session(&tolerant).await;
    let pending = session.pending().await;
    assert_eq!(pending.len(), 1, "the granted call needs no request");
    session.allow(&pending[0]).await;
    log.turn_ends("success").await;
    assert_eq!(rows(&scenario).await, 1, "the audit row is not repeated");
    scenario.finish_and_check().await;
}
