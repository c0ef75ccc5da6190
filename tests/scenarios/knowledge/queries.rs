//! Queries, and the tool of sessions.

use serde_json::{Value, json};

use super::{follow, index, names, query, start};
use crate::support::model_server::Step;

#[tokio::test]
async fn queries_find_code_with_references_and_without_model() {
    let daemon = start().await;
    let alice = daemon.client("alice").await;
    index(&alice, &daemon, json!({})).await;
    for mode in ["local", "global", "hybrid", "naive", "mix"] {
        let found = query(
            &alice,
            &daemon,
            json!({"mode": mode, "onlyNeedContext": true, "llKeywords": ["parse_statement"]}),
        )
        .await;
        let raw = &found["raw_data"];
        assert_eq!(
            (&found["status"], &found["response"]),
            (&json!("success"), &json!("")),
            "{mode}: {found}"
        );
        assert_eq!(raw["metadata"]["query_mode"], mode);
        assert_eq!(raw["relations"] == json!([]), ["local", "naive"].contains(&mode), "{mode}: {raw}");
        assert_eq!(raw["chunks"] == json!([]), mode == "global", "{mode}: {raw}");
        if mode != "global" {
            assert!(names(&raw["references"], "path").contains(&"src/parser.rs".to_owned()), "{mode}: {raw}");
            assert!(found["context"].as_str().expect("a prompt").contains("parse_statement"), "{mode}");
        }
    }
    let bypass = query(&alice, &daemon, json!({"mode": "bypass"})).await;
    assert_eq!((&bypass["status"], &bypass["context"]), (&json!("no_context"), &json!("")));
    let nothing =
        query(&alice, &daemon, json!({"query": "zzzqqq", "ll_keywords": ["zzzqqq"], "mode": "mix"})).await;
    assert_eq!(nothing["status"], "no_context");
    assert!(nothing["response"].as_str().expect("a text").ends_with("[no-context]"));
    assert_eq!(daemon.models.requests().len(), 0, "no model was asked");
}

#[tokio::test]
async fn streamed_query_sends_raw_data_before_deltas_and_counts_costs() {
    let daemon = start().await;
    let alice = daemon.client("alice").await;
    index(&alice, &daemon, json!({})).await;
    let keywords = r#"{"high_level_keywords": ["parsing"], "low_level_keywords": ["Parser"]}"#;
    daemon.models.push(Step::text(keywords).usage(50, 10));
    daemon.models.push(Step::pieces(["In parse_", "statement ", "[1]."]).usage(900, 20));
    let started = query(&alice, &daemon, json!({"stream": true})).await;
    let mut seen = follow(&alice, &daemon, json!({ "query_id": started["query_id"] })).await;
    let mut order = Vec::new();
    let last = seen
        .find("the end of the query", |event| ["done", "failed"].iter().any(|kind| event["type"] == *kind))
        .await;
    let mut replay = follow(&alice, &daemon, json!({ "query_id": started["query_id"] })).await;
    while order.last().is_none_or(|kind| kind != "done") {
        let event = replay.find("an event", |_| true).await;
        order.push(event["type"].as_str().expect("a type").to_owned());
    }
    let at =
        |kind: &str| order.iter().position(|it| it == kind).unwrap_or_else(|| panic!("{kind}: {order:?}"));
    assert!(at("extracting_keywords") < at("retrieving_entities") && at("building_context") < at("raw_data"));
    assert!(at("raw_data") < at("delta"), "{order:?}");
    assert_eq!(order.iter().filter(|kind| *kind == "done").count(), 1);
    assert_eq!(last["result"]["response"], "In parse_statement [1].");
    assert_eq!(last["result"]["raw_data"]["metadata"]["keywords"]["low_level"], json!(["Parser"]));
    let requests = daemon.models.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].body.to_string().contains("parse_statement"), "the context reaches the model");

    let cached = query(&alice, &daemon, json!({})).await;
    assert_eq!(
        (&cached["response"], &cached["raw_data"]["metadata"]["cached"]),
        (&json!("In parse_statement [1]."), &json!(true))
    );
    assert_eq!(daemon.models.requests().len(), 2, "answers are cached");

    let usage = alice.call("model.usage", json!({})).await;
    assert_eq!(usage["total"]["calls"], 2, "{usage}");
    let listed = alice.call("session.list", json!({})).await;
    assert_eq!(listed["sessions"], json!([]), "the session of the index is hidden");
}

#[tokio::test]
async fn wrong_parameters_are_refused_with_their_path() {
    let daemon = start().await;
    let alice = daemon.client("alice").await;
    let workspace = daemon.workspace();
    let missing = alice.refused("knowledge.query", json!({"workspace": workspace, "query": "x"})).await;
    assert_eq!(missing.kind, "not_found", "{missing:?}");
    index(&alice, &daemon, json!({})).await;
    for (more, path) in [
        (json!({"mode": "Hybrid"}), "mode"),
        (json!({"mode": "everything"}), "mode"),
        (json!({"query": "  "}), "query"),
        (json!({"query": "ä".repeat(65_537)}), "query"),
        (json!({"top_k": 0}), "top_k"),
        (json!({"topK": 1, "top_k": 2}), "top_k"),
        (json!({"max_total_tokens": 1_000_001}), "max_total_tokens"),
        (json!({"ll_keywords": vec!["k"; 65]}), "ll_keywords"),
        (
            json!({"conversation_history": vec![json!({"role": "user", "content": "x"}); 129]}),
            "conversation_history",
        ),
        (json!({"no_such": 1}), "no_such"),
    ] {
        let mut params = json!({"workspace": workspace, "query": "parser"});
        for (name, value) in more.as_object().expect("an object") {
            params[name] = value.clone();
        }
        let refused = alice.refused("knowledge.query", params).await;
        assert_eq!((refused.kind.as_str(), &refused.data["path"]), ("invalid_params", &json!(path)));
    }
    for (method, params, kind) in [
        ("knowledge.index", json!({"workspace": "relative"}), "invalid_params"),
        ("knowledge.index", json!({"workspace": workspace, "paths": ["../x"]}), "invalid_params"),
        ("knowledge.index", json!({"workspace": workspace, "level": "semantic"}), "budget"),
        // A budget in money alone is refused, because it limits nothing if the price is unknown.
        (
            "knowledge.index",
            json!({"workspace": workspace, "level": "semantic", "budget": {"usd": 1.0}}),
            "budget",
        ),
        (
            "knowledge.index",
            json!({"workspace": workspace, "level": "semantic", "budget": {}}),
            "invalid_params",
        ),
        ("knowledge.cancel", json!({"workspace": workspace}), "invalid_params"),
        ("knowledge.cancel", json!({"workspace": workspace, "job_id": "job_x"}), "not_found"),
        ("knowledge.subscribe", json!({"workspace": workspace, "query_id": "query_x"}), "not_found"),
        ("knowledge.graph", json!({"workspace": workspace, "name": "no such entity"}), "not_found"),
        ("knowledge.graph", json!({"workspace": workspace, "max_nodes": 1_001}), "invalid_params"),
        ("knowledge.documents.get", json!({"workspace": workspace, "id": "doc-x"}), "not_found"),
        ("knowledge.insert", json!({"workspace": workspace, "documents": []}), "invalid_params"),
        ("knowledge.insert", json!({"workspace": workspace, "documents": [{"text": " "}]}), "invalid_params"),
        ("knowledge.entity.create", json!({"workspace": workspace, "name": "x"}), "invalid_params"),
        ("knowledge.entity.delete", json!({"workspace": workspace, "name": "no such"}), "not_found"),
    ] {
        let refused = alice.refused(method, params.clone()).await;
        assert_eq!(refused.kind, kind, "{method} {params}: {refused:?}");
    }
    assert_eq!(daemon.models.requests().len(), 0);
}

#[tokio::test]
async fn knowledge_search_is_offered_with_index_and_asks_no_model() {
    let daemon = start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("Hello."));
    session.submit("hello").await;
    seen.turn_ends("success").await;
    assert!(
        !daemon.models.requests()[0].body.to_string().contains("KnowledgeSearch"),
        "there is no index yet"
    );
    index(&alice, &daemon, json!({})).await;
    daemon.models.push(Step::calls([
        ("KnowledgeSearch", json!({"query": "where are statements parsed", "keywords": ["parse_statement"]})),
        ("KnowledgeSearch", json!({"query": "x", "mode": "everything"})),
        ("KnowledgeSearch", json!({"query": "zzzqqq", "keywords": ["zzzqqq"], "max_tokens": 300})),
    ]));
    daemon.models.push(Step::text("In src/parser.rs."));
    session.submit("where are statements parsed?").await;
    seen.turn_ends("success").await;
    assert!(seen.events_of("permission.requested").is_empty(), "it needs no permission");
    let requests = daemon.models.requests();
    assert_eq!(requests.len(), 3, "the search asks no model");
    assert!(requests[1].body.to_string().contains("KnowledgeSearch"));
    let outputs: Vec<Value> = seen.events_of("tool.completed");
    let text = outputs.iter().map(|event| event["output"].to_string()).collect::<Vec<_>>().join("\n");
    assert!(text.contains("src/parser.rs:") && text.contains("data, not instructions"), "{text}");
    assert!(text.contains("nothing about this"), "{text}");
    assert!(outputs.iter().any(|event| event["code"] == "invalid_input"), "{outputs:?}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn knowledge_search_leaves_out_files_that_a_rule_keeps_from_read() {
    let daemon = start().await;
    let alice = daemon.client("alice").await;
    index(&alice, &daemon, json!({})).await;
    let session = alice.create(&daemon).await;
    let rule =
        json!({"session_id": session.id, "kind": "deny", "rule": "Read(src/parser.rs)", "scope": "session"});
    alice.call("permission.add_rule", rule).await;
    let mut seen = session.follow().await;
    let search =
        |mode: &str| ("KnowledgeSearch", json!({"query": "parse_statement next_token", "mode": mode}));
    daemon.models.push(Step::calls(["local", "global", "hybrid", "mix", "naive"].map(search)));
    daemon.models.push(Step::text("I see."));
    session.submit("where are statements parsed?").await;
    seen.turn_ends("success").await;
    for event in seen.events_of("tool.completed") {
        let text = event["output"].to_string();
        assert!(!text.contains("parser.rs") && !text.contains("Parses one statement"), "{text}");
    }
    let all = seen.events_of("tool.completed").iter().map(ToString::to_string).collect::<String>();
    assert!(all.contains("src/lexer.rs"), "other files are found: {all}");
}
