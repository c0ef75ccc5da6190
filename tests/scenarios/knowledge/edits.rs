//! Changes of the graph, and the names that users give.

use serde_json::{Value, json};

use super::{index, names, start};

#[tokio::test]
async fn edits_of_graph_survive_next_index_job() {
    let daemon = start().await;
    let alice = daemon.client("alice").await;
    index(&alice, &daemon, json!({})).await;
    let workspace = daemon.workspace();
    let call = async |method: &str, more: Value| {
        let mut params = json!({ "workspace": workspace });
        for (name, value) in more.as_object().expect("an object") {
            params[name] = value.clone();
        }
        alice.call(method, params).await
    };
    let made = call(
        "knowledge.entity.create",
        json!({"name": "Grammar", "type": "concept", "description": "Rules."}),
    )
    .await;
    assert_eq!((&made["entity"]["name"], &made["entity"]["type"]), (&json!("Grammar"), &json!("concept")));
    let twice = json!({"workspace": workspace, "name": "Grammar", "type": "x", "description": "y"});
    assert_eq!(alice.refused("knowledge.entity.create", twice).await.kind, "conflict");
    call("knowledge.entity.create", json!({"name": "Syntax", "type": "concept", "description": "Form."}))
        .await;
    let related = json!({"source": "Grammar", "target": "Syntax", "keywords": "defines", "description": "Grammar defines syntax."});
    let relation = call("knowledge.relation.create", related).await;
    assert_eq!(relation["relation"]["weight"], 1.0);
    call("knowledge.relation.update", json!({"source": "Syntax", "target": "Grammar", "weight": 3.0})).await;
    call("knowledge.entity.update", json!({"name": "Grammar", "description": "Rules of a language."})).await;
    index(&alice, &daemon, json!({})).await;
    let graph = call("knowledge.graph", json!({"name": "Grammar", "depth": 1})).await;
    assert_eq!(names(&graph["nodes"], "name"), ["Grammar", "Syntax"]);
    assert_eq!(graph["nodes"][0]["description"], "Rules of a language.");
    assert_eq!(graph["edges"][0]["weight"], 3.0);
    for (format, word) in [
        ("mermaid", "graph LR"),
        ("dot", "graph knowledge {"),
        ("graphml", "<graphml"),
        ("html", "<!doctype html>"),
    ] {
        let text = call("knowledge.graph", json!({"format": format, "max_nodes": 50})).await;
        assert!(
            text["data"].as_str().is_some_and(|text| text.starts_with(word) || text.contains(word)),
            "{format}"
        );
    }
    let merged = call("knowledge.entity.merge", json!({"sources": ["Syntax"], "target": "Grammar"})).await;
    assert_eq!(merged["entity"]["name"], "Grammar");
    let related = json!({"workspace": workspace, "source": "Grammar", "target": "Lexer of no file"});
    assert_eq!(alice.refused("knowledge.relation.delete", related).await.kind, "not_found");
    call("knowledge.entity.delete", json!({"name": "Grammar"})).await;
}

#[tokio::test]
async fn part_of_a_name_finds_the_entity_and_ambiguous_names_list_candidates() {
    let daemon = start().await;
    daemon.write("src/one.rs", "pub fn load_config() {}\npub fn reset() {}\n");
    daemon.write("src/two.rs", "pub fn reset() {}\n");
    let alice = daemon.client("alice").await;
    index(&alice, &daemon, json!({})).await;
    let workspace = daemon.workspace();
    let graph = |name: &str| json!({"workspace": workspace, "name": name, "depth": 1});
    for (given, whole) in [
        ("load_config", "load_config (src/one.rs)"),
        ("LOAD_CONFIG", "load_config (src/one.rs)"),
        ("parse_statement", "Parser::parse_statement (src/parser.rs)"),
        ("one.rs", "src/one.rs"),
    ] {
        let found = alice.call("knowledge.graph", graph(given)).await;
        assert_eq!(found["nodes"][0]["name"], whole, "{given}");
    }
    let refused = alice.refused("knowledge.graph", graph("reset")).await;
    assert_eq!((refused.kind.as_str(), &refused.data["reason"]), ("invalid_params", &json!("ambiguous")));
    assert_eq!(refused.data["candidates"], json!(["reset (src/one.rs)", "reset (src/two.rs)"]));
    let update = json!({"workspace": workspace, "name": "load_config", "description": "Reads it."});
    let updated = alice.call("knowledge.entity.update", update).await;
    assert_eq!(updated["entity"]["name"], "load_config (src/one.rs)");
    let related =
        json!({"workspace": workspace, "source": "load_config", "target": "Token", "description": "d"});
    let related = alice.call("knowledge.relation.create", related).await;
    assert_eq!(related["relation"]["target"], "Token (src/lexer.rs)");
}
