//! Foreign documents: web pages and PDFs. A separate process parses them, and no document can stop the
//! daemon.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::Step;
use crate::support::pages::Pages;

const FETCH_ALLOWED: &str =
    "[permissions]\nallow = [\"WebFetch\"]\n[tools]\nweb_allowed_private = [\"127.0.0.1\"]";

/// Runs one call and returns its `tool.completed` event.
async fn run(daemon: &TestDaemon, session: &Session, seen: &mut Log, call: (&'static str, Value)) -> Value {
    daemon.models.push(Step::calls([call]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let completed = seen.wait_for("tool.completed").await;
    seen.turn_ends("success").await;
    daemon.models.assert_no_breach();
    completed
}

#[tokio::test]
async fn web_fetch_requests_host_permission_and_returns_markdown() {
    let pages = Pages::serve(|_| Pages::page("text/html", "<h1>News</h1><p>All is <b>well</b>.</p>"));
    let daemon = TestDaemon::builder().config("[tools]\nweb_allowed_private = [\"127.0.0.1\"]").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([("WebFetch", json!({"url": pages.base, "prompt": "what is new?"}))]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    assert_eq!(pages.asked(), 0, "nothing is fetched before it is allowed");
    assert_eq!(asked["subject"]["kind"], "web");
    assert_eq!(
        (&asked["subject"]["host"], &asked["suggestions"]),
        (&json!("127.0.0.1"), &json!(["WebFetch(domain:127.0.0.1)"]))
    );
    assert_eq!(asked["summary"], format!("Fetch {}/", pages.base));
    session.answer(&asked, json!({"decision": "allow", "scope": "session"})).await;
    let completed = seen.wait_for("tool.completed").await;
    assert!(
        completed["output"].as_str().expect("text").contains("# News\n\nAll is **well**."),
        "{completed}"
    );
    seen.turn_ends("success").await;
    // The grant applies to the host.
    let again =
        run(&daemon, &session, &mut seen, ("WebFetch", json!({"url": format!("{}/more", pages.base)}))).await;
    assert_eq!((&again["status"], pages.asked()), (&json!("completed"), 2));
}

#[tokio::test]
async fn web_fetch_refuses_loopback_unless_configured() {
    let pages = Pages::serve(|_| Pages::page("text/plain", "the inside"));
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"WebFetch\"]").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let refused = run(&daemon, &session, &mut seen, ("WebFetch", json!({"url": pages.base}))).await;
    assert_eq!((&refused["status"], &refused["code"]), (&json!("failed"), &json!("address_not_public")));
    assert_eq!(pages.asked(), 0);
}

#[tokio::test]
async fn web_fetch_of_deeply_nested_page_does_not_crash() {
    let pages = Pages::serve(|_| Pages::page("text/html", format!("{}deep", "<div>".repeat(1_000))));
    let daemon = TestDaemon::builder().config(FETCH_ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let process = daemon.pid();
    let page = run(&daemon, &session, &mut seen, ("WebFetch", json!({"url": pages.base}))).await;
    assert!(page["output"].as_str().is_some_and(|text| text.contains("deep")), "{page}");
    let mut pdf = String::from("%PDF-1.4\n1 0 obj\n");
    write!(pdf, "{}\nendobj\n", "[".repeat(3_000_000)).expect("a text");
    pdf.push_str("trailer\n<< /Root 1 0 R >>\nstartxref\n9\n%%EOF\n");
    daemon.write("deep.pdf", &pdf);
    let deep = run(&daemon, &session, &mut seen, ("Read", json!({"file_path": "deep.pdf"}))).await;
    assert_eq!((&deep["status"], &deep["code"]), (&json!("failed"), &json!("not_convertible")), "{deep}");
    assert_eq!(daemon.pid(), process);
    assert!(nix::sys::signal::kill(process, None).is_ok(), "the daemon still runs");
    assert_eq!(session.view().await["state"], "idle");
}
