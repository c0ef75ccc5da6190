//! C24: a grant and its row in the audit log.

use serde_json::json;

use super::invariants::{Journals, decisions};
use super::matrix_ways;
use super::pilot::CrashTolerantClient;
use super::story::{CrashScenario, bash};
use crate::support::daemon::{CrashMode, TestDaemon};
use crate::support::model_server::Step;

matrix_ways! {
    c24_uncommitted_grant_is_in_neither_journal_nor_audit => c24_deciding,
    c24_committed_grant_is_in_journal_and_audit => c24_decided,
}

const GRANT: &str = "Bash(touch two)";

/// Two calls need permission. The client grants the second for the session, and the daemon dies.
async fn grants(story: &mut CrashScenario) -> (CrashTolerantClient, Journals) {
    story.daemon.models.push(Step::calls([bash("touch one"), bash("touch two")]));
    story.daemon.models.push(Step::text("Done."));
    let pilot = story.session().await;
    let mut log = pilot.log(0).await.expect("it lives");
    pilot.submit("go", "k").await;
    log.wait_for("permission.requested").await;
    let second = log.wait_for("permission.requested").await;
    let answer = json!({"decision": "allow", "scope": "session", "grant": GRANT});
    assert_eq!(pilot.approve(&second, answer).await, None, "nothing is acknowledged");
    let journals = story.crashed().await;
    (pilot, journals)
}

fn granted(journals: &Journals, pilot: &CrashTolerantClient) -> usize {
    journals[&pilot.session].values().filter(|event| event["grant"] == GRANT).count()
}

async fn rows(story: &CrashScenario) -> usize {
    let rows = decisions(&story.database()).await;
    rows.iter().filter(|row| row["rule"] == GRANT && row["kind"] == "permission").count()
}

async fn c24_deciding(way: CrashMode) {
    let mut story = CrashScenario::begin(TestDaemon::builder(), "C24.deciding", way).await;
    let (pilot, journals) = grants(&mut story).await;
    assert_eq!((granted(&journals, &pilot), rows(&story).await), (0, 0), "neither");
    story.restart().await;
    let (session, mut log) = story.reopen_session(&pilot).await;
    assert_eq!(session.pending().await.len(), 2, "both are asked for again");
    for _ in 0..2 {
        let asked = log.wait_for("permission.requested").await;
        session.allow(&asked).await;
    }
    log.turn_ends("success").await;
    story.finish_and_check().await;
}

async fn c24_decided(way: CrashMode) {
    let mut story = CrashScenario::begin(TestDaemon::builder(), "C24.decided", way).await;
    let (pilot, journals) = grants(&mut story).await;
    assert_eq!((granted(&journals, &pilot), rows(&story).await), (1, 1), "both");
    story.restart().await;
    let (session, mut log) = story.reopen_session(&pilot).await;
    let pending = session.pending().await;
    assert_eq!(pending.len(), 1, "it is not asked for again");
    session.allow(&pending[0]).await;
    log.turn_ends("success").await;
    assert_eq!(rows(&story).await, 1, "and not written again");
    story.finish_and_check().await;
}
