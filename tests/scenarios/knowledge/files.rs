//! Files that an index reads and leaves out: encodings, notebooks, generated code, dependencies, and files that are gone.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::agentctl::ctl;
use super::{index, names, query, start, status};
use crate::support::model_server::Step;

/// The paths of the chunks that a search for these words finds.
async fn found(
    client: &crate::support::client::Client,
    daemon: &crate::support::daemon::TestDaemon,
    words: &str,
) -> Vec<String> {
    let more = json!({"mode": "naive", "query": words, "only_need_context": true});
    names(&query(client, daemon, more).await["raw_data"]["chunks"], "path")
}

fn windows_1251(text: &str) -> Vec<u8> {
    text.chars().map(|c| if c.is_ascii() { c as u8 } else { (c as u32 - 0x410 + 0xC0) as u8 }).collect()
}

#[tokio::test]
async fn texts_are_decoded_and_generated_files_are_no_graph() {
    let daemon = start().await;
    let workspace = daemon.workspace();
    let write = |path: &str, bytes: Vec<u8>| std::fs::write(workspace.join(path), bytes).expect("written");
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    write("wide.txt", [vec![0xFF, 0xFE], utf16("The wideword is here.\n")].concat());
    write("latin.txt", b"caf\xe9 cr\xe8me na\xefve fa\xe7ade latinword\n".to_vec());
    write("cyrillic.txt", windows_1251("Привет, это просто текст файла на русском языке.\n"));
    daemon.write("straße.md", "# Maße\n\nDie große Straße.\n");
    let picture = "iVBORw0KGgo".repeat(100);
    daemon.write(
        "plot.ipynb",
        &json!({"nbformat": 4, "metadata": {"language_info": {"file_extension": ".py"}}, "cells": [
            {"cell_type": "markdown", "source": ["# Analysis\n", "Of notebookword."]},
            {"cell_type": "code", "source": ["def draw_plot():\n", "    pass"],
             "outputs": [{"data": {"image/png": picture}}]},
        ]})
        .to_string(),
    );
    let minified: String =
        (0..800).map(|n| format!("function a{}(b){{return minifiedword(b)}}", n % 26)).collect();
    daemon.write("app.js", &minified);
    daemon.write("node_modules/left/index.js", "function installedword() {}\n");
    daemon.write("target/debug/gen.rs", "fn builtword() {}\n");
    daemon.write("src/target/mod.rs", "fn a_source_file() {}\n");
    let alice = daemon.client("alice").await;
    let done = index(&alice, &daemon, json!({})).await;
    assert_eq!((&done["type"], &done["summary"]["plain"]), (&json!("done"), &json!(1)), "{done}");
    for (words, path) in [
        ("wideword", "wide.txt"),
        ("latinword creme", "latin.txt"),
        ("русском языке", "cyrillic.txt"),
        ("grosse strasse", "straße.md"),
        ("notebookword", "plot.ipynb"),
        ("draw_plot", "plot.ipynb"),
        ("minifiedword", "app.js"),
        ("a_source_file", "src/target/mod.rs"),
    ] {
        assert!(found(&alice, &daemon, words).await.iter().any(|it| it == path), "{words}");
    }
    for words in ["iVBORw0KGgo", "installedword", "builtword"] {
        assert!(found(&alice, &daemon, words).await.is_empty(), "{words}");
    }
    let now = status(&alice, &daemon).await;
    assert_eq!(now["left_out_folders"], json!(["node_modules", "target"]), "{now}");
    let graph = alice.call("knowledge.graph", json!({"workspace": workspace, "name": "draw_plot"})).await;
    assert!(names(&graph["nodes"], "name").iter().any(|name| name == "draw_plot (plot.ipynb)"), "{graph}");
    // A folder that a call names is read.
    index(&alice, &daemon, json!({"paths": ["node_modules"]})).await;
    assert_eq!(found(&alice, &daemon, "installedword").await, ["node_modules/left/index.js"]);
}

#[tokio::test]
async fn results_of_files_that_are_gone_are_left_out_with_a_warning() {
    let daemon = start().await;
    let alice = daemon.client("alice").await;
    index(&alice, &daemon, json!({})).await;
    std::fs::remove_file(daemon.workspace().join("src/parser.rs")).expect("removed");
    daemon.write("src/lexer.rs", "pub fn next_token() {}\n");
    for mode in ["local", "global", "hybrid", "naive", "mix"] {
        let more = json!({"mode": mode, "query": "parse_statement next_token", "ll_keywords": ["next_token"],
            "only_need_context": true});
        let result = query(&alice, &daemon, more).await;
        let data = &result["raw_data"];
        let shown =
            json!([data["entities"], data["relations"], data["chunks"], data["references"]]).to_string();
        assert!(!shown.contains("src/parser.rs"), "{mode}: {shown}");
        let warnings = data["metadata"]["warnings"].to_string();
        assert!(warnings.contains("src/parser.rs") && warnings.contains("gone"), "{mode}: {warnings}");
        assert!(warnings.contains("changed since"), "{mode}: {warnings}");
    }
}

#[tokio::test]
async fn cancelled_job_frees_the_index_within_a_second() {
    let daemon = start().await;
    for n in 0..40 {
        let nested = format!("x = {}{}\n", "{a:\n".repeat(12_000), "}\n".repeat(12_000));
        daemon.write(&format!("nested{n}.js"), &nested);
    }
    let alice = daemon.client("alice").await;
    let workspace = daemon.workspace();
    let started = alice.call("knowledge.index", json!({ "workspace": workspace })).await;
    let cancelled = Instant::now();
    let cancel = json!({"workspace": workspace, "job_id": started["job_id"]});
    assert_eq!(alice.call("knowledge.cancel", cancel).await["cancelled"], true);
    // The index is not busy any more, and the next job continues.
    assert_eq!(status(&alice, &daemon).await["job"]["state"], "cancelled");
    assert!(cancelled.elapsed() < Duration::from_secs(3), "{:?}", cancelled.elapsed());
    alice.call("knowledge.index", json!({ "workspace": workspace })).await;
}

#[tokio::test]
async fn answer_comes_with_its_context_on_request() {
    let daemon = start().await;
    let alice = daemon.client("alice").await;
    index(&alice, &daemon, json!({})).await;
    daemon.models.push(Step::text("In the parser [1]."));
    let result = query(&alice, &daemon, json!({"mode": "naive", "include_context": true})).await;
    assert_eq!(result["response"], "In the parser [1].");
    let prompt = result["context"].as_str().expect("a prompt");
    assert!(prompt.contains("---Data---") && prompt.contains("where are statements parsed"), "{prompt}");
    let asked = daemon.models.requests().len();
    for (more, reason) in [
        (json!({"mode": "bypass"}), "bypass"),
        (json!({"mode": "naive", "max_total_tokens": 50}), "token_limit"),
        (
            json!({"mode": "naive", "conversation_history": [{"role": "user", "content": "word ".repeat(40_000)}]}),
            "token_limit",
        ),
        (json!({"mode": "naive", "query": "zzzqqq"}), "nothing_found"),
    ] {
        let result = query(&alice, &daemon, more).await;
        assert_eq!((&result["status"], &result["context"]), (&json!("no_context"), &json!("")), "{result}");
        assert_eq!(result["raw_data"]["metadata"]["no_context_reason"], reason);
    }
    assert_eq!(daemon.models.requests().len(), asked, "no model is asked about nothing");
}

#[tokio::test]
async fn agentctl_edits_the_graph_and_sets_all_options_of_a_query() {
    let daemon = start().await;
    let folder = daemon.workspace().display().to_string();
    let run = async |args: &[&str]| {
        let all: Vec<&str> = ["knowledge", "--workspace", &folder].iter().chain(args).copied().collect();
        ctl(&daemon, &all).await
    };
    run(&["index"]).await.stdout();
    let added =
        run(&["graph", "add", "Billing", "--type", "concept", "--description", "Invoices."]).await.stdout();
    assert_eq!(added, "added Billing (concept): Invoices.\n");
    let related =
        run(&["graph", "add", "Billing", "src/lexer.rs", "--description", "uses it"]).await.stdout();
    assert_eq!(related, "added Billing - src/lexer.rs: uses it\n");
    assert!(run(&["graph", "edit", "Billing", "--rename", "Invoicing"]).await.stdout().contains("Invoicing"));
    run(&["graph", "add", "Bills", "--type", "concept", "--description", "More."]).await.stdout();
    assert!(
        run(&["graph", "merge", "Bills", "--into", "Invoicing"])
            .await
            .stdout()
            .starts_with("merged Invoicing")
    );
    let shown: Value =
        serde_json::from_str(&run(&["graph", "Invoicing", "--format", "json"]).await.stdout()).expect("JSON");
    assert!(names(&shown["nodes"], "name").contains(&"src/lexer.rs".to_owned()), "{shown}");
    assert_eq!(run(&["graph", "rm", "Invoicing", "src/lexer.rs"]).await.stdout(), "removed\n");
    assert_eq!(run(&["graph", "rm", "Invoicing"]).await.stdout(), "removed\n");

    let results = run(&["query", "--context", "--mode", "naive", "parse_statement"]).await.stdout();
    assert!(results.contains("src/parser.rs:1-") && !results.contains("---Data---"), "{results}");
    let prompt = run(&["query", "--prompt", "--mode", "naive", "parse_statement"]).await.stdout();
    assert!(prompt.contains("---Data---"), "{prompt}");
    let history = daemon.path("history.json");
    std::fs::write(
        &history,
        r#"[{"role": "user", "content": "earlierword"}, {"role": "assistant", "content": "Good."}]"#,
    )
    .expect("written");
    daemon.models.push(Step::text("Yes."));
    let history = history.display().to_string();
    let options = [
        "query",
        "--mode",
        "naive",
        "--user-prompt",
        "Be short.",
        "--response-type",
        "One word",
        "--history",
        &history,
        "--max-total-tokens",
        "5000",
        "--no-rerank",
        "parse_statement",
    ];
    assert_eq!(run(&options).await.stdout(), "Yes.\n");
    let body = daemon.models.requests().last().expect("a request").body.to_string();
    for text in ["Be short.", "One word", "earlierword"] {
        assert!(body.contains(text), "{text}: {body}");
    }
}
