//! `session.request`: the next model request, as it would be sent now.

use serde_json::{Value, json};

use super::agentctl::ctl;
use crate::support::daemon::{ALL_APIS, TestDaemon};
use crate::support::model_server::{Gate, Step};

/// Whether a body contains this text in one of its strings.
fn holds_text(body: &Value, text: &str) -> bool {
    match body {
        Value::String(own) => own.contains(text),
        Value::Array(parts) => parts.iter().any(|part| holds_text(part, text)),
        Value::Object(members) => members.values().any(|member| holds_text(member, text)),
        _ => false,
    }
}

#[tokio::test]
async fn shown_request_equals_sent_request_in_all_apis() {
    for api in ALL_APIS {
        let daemon = TestDaemon::builder().api(api).start().await;
        daemon.write("AGENTS.md", "Be brief.\n");
        let session = daemon.client("alice").await.create(&daemon).await;
        let unsent = session.call("request", json!({})).await;
        let system = unsent["system"].as_str().expect("a text").to_owned();
        assert!(system.contains("Be brief."), "{api:?}: {system}");
        assert_eq!(
            (&unsent["messages"], &unsent["model"]),
            (&json!([]), &json!("scripted/model")),
            "{api:?}"
        );
        assert!(
            session.events().await.iter().all(|event| event["type"] != "session.prompt_built"),
            "{api:?}"
        );

        let mut seen = session.follow().await;
        let gate = Gate::new();
        daemon.models.push(Step::text("Done.").hold(&gate));
        session.submit("one").await;
        gate.wait_reached().await;
        let shown = session.call("request", json!({})).await;
        gate.open();
        seen.turn_ends("success").await;
        let sent = daemon.models.requests()[0].body.clone();
        assert_eq!(shown["system"], system, "{api:?}");
        assert!(holds_text(&sent, &system), "{api:?}: {sent}");
        let length = serde_json::to_vec(&sent).expect("JSON").len();
        assert_eq!(shown["bytes"], length, "{api:?}");
        assert_eq!(shown["messages"][0]["role"], "user", "{api:?}");
        let names = |tools: &Value| {
            let tools = tools.as_array().expect("a list").iter();
            let name =
                |tool: &Value| tool["name"].as_str().or(tool["function"]["name"].as_str()).map(str::to_owned);
            tools.map(name).collect::<Vec<_>>()
        };
        assert_eq!(names(&shown["tools"]), names(&sent["tools"]), "{api:?}");

        // A change that the next turn will use is shown before that turn.
        session.call("update", json!({"append_system_prompt": "In rhymes."})).await;
        let next = session.call("request", json!({})).await;
        assert!(next["system"].as_str().is_some_and(|text| text.contains("In rhymes.")), "{api:?}");
        assert_eq!(next["messages"].as_array().map(Vec::len), Some(2), "{api:?}");
        assert_eq!(daemon.models.requests().len(), 1, "{api:?}: nothing is sent");
    }
}

#[tokio::test]
async fn agentctl_context_prints_prompt_and_request() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let view = session.call("request", json!({})).await;
    let printed = ctl(&daemon, &["context", "--prompt", &session.id]).await.stdout();
    assert_eq!(printed.trim_end(), view["system"].as_str().expect("a text").trim_end());
    assert_eq!(ctl(&daemon, &["context", "--request", &session.id]).await.json(), view);
    let unknown = json!({"session_id": "ses_0190f2a4-0000-7000-8000-000000000001"});
    let refused = session.client.refused("session.request", unknown).await;
    assert_eq!(refused.code, -32002);
}
