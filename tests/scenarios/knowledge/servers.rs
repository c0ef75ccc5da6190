//! Embedding and reranking servers: they work, change their dimension, fail, or return invalid answers.

use serde_json::{Value, json};

use super::{idle, index, names, query, start_with, status_where};
use crate::support::daemon::TestDaemon;
use crate::support::http_server::HttpServer;
use crate::support::model_server::Step;

/// Words with the same meaning, one group per axis.
const MEANINGS: [&[&str]; 3] = [&["parse", "grammar"], &["token", "lexer"], &["cache", "memory"]];

/// One vector per text: how often it has words of each group.
fn embed(body: &Value, dimension: usize) -> (u16, String) {
    let texts = body["input"].as_array().expect("texts").iter();
    let rows = texts.enumerate().map(|(index, text)| {
        let text = text.as_str().expect("a text").to_lowercase();
        let mut vector = vec![0.0; dimension];
        for (axis, words) in MEANINGS.iter().enumerate() {
            vector[axis] = words.iter().map(|word| text.matches(word).count()).sum::<usize>() as f64;
        }
        vector[dimension - 1] += 0.1;
        json!({"index": index, "embedding": vector})
    });
    (200, json!({"data": rows.collect::<Vec<_>>()}).to_string())
}

/// A daemon that embeds with this server.
async fn start(server: &HttpServer) -> TestDaemon {
    let url = server.url();
    let config = format!(
        "[knowledge.embedder]\nkind = \"http\"\nbase_url = \"{url}\"\nmodel = \"tiny\"\nbatch_size = 2\n\
         api_key_env = \"EMBED_KEY\"\ntimeout = \"10s\"\n"
    );
    start_with(TestDaemon::builder().config(&config).environment("EMBED_KEY", "geheim789")).await
}

/// No word of this query is in any file.
fn by_meaning() -> Value {
    json!({"mode": "naive", "query": "grammar", "only_need_context": true})
}

fn warnings(found: &Value) -> String {
    found["raw_data"]["metadata"]["warnings"].to_string()
}

#[tokio::test]
async fn embedded_index_finds_texts_without_a_common_word() {
    let server = HttpServer::start(|_, body| embed(body, 4)).await;
    let daemon = start(&server).await;
    let alice = daemon.client("alice").await;
    let done = index(&alice, &daemon, json!({})).await;
    assert_eq!((&done["type"], done["summary"].get("warning")), (&json!("done"), None), "{done}");
    let found = query(&alice, &daemon, by_meaning()).await;
    assert_eq!(names(&found["raw_data"]["chunks"], "path")[0], "src/parser.rs", "{found}");
    let requests = server.requests();
    assert!(requests.iter().all(|(path, _)| path == "/v1/embeddings"));
    assert!(requests.iter().all(|(_, body)| body["input"].as_array().is_some_and(|texts| texts.len() <= 2)));
    let count = requests.len();
    index(&alice, &daemon, json!({})).await;
    assert_eq!(server.requests().len(), count, "nothing is embedded twice");
    for mode in ["local", "global", "hybrid", "mix"] {
        let more =
            json!({"mode": mode, "query": "grammar", "ll_keywords": ["grammar"], "only_need_context": true});
        let found = query(&alice, &daemon, more).await;
        assert_eq!(found["status"], "success", "{mode}: {found}");
        assert_eq!(warnings(&found), "null", "{mode}");
    }
}

/// The agent's search is the user's search.
#[tokio::test]
async fn knowledge_search_finds_texts_by_meaning_and_says_if_the_embedder_failed() {
    let server = HttpServer::start(|_, body| embed(body, 4)).await;
    let daemon = start(&server).await;
    let alice = daemon.client("alice").await;
    index(&alice, &daemon, json!({})).await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    let search = || Step::calls([("KnowledgeSearch", json!({"query": "grammar", "mode": "naive"}))]);
    daemon.models.push(search());
    daemon.models.push(Step::text("In the parser."));
    session.submit("where is the grammar?").await;
    seen.turn_ends("success").await;
    server.answer_with(|_, _| (500, "{}".to_owned()));
    daemon.models.push(search());
    daemon.models.push(Step::text("I do not know."));
    session.submit("and now?").await;
    seen.turn_ends("success").await;
    let outputs: Vec<Value> = seen.events_of("tool.completed");
    let texts: Vec<String> = outputs.iter().map(|event| event["output"].to_string()).collect();
    assert!(texts[0].contains("src/parser.rs:"), "{texts:?}");
    assert!(texts[1].contains("Note: the embedder failed"), "{texts:?}");
}

#[tokio::test]
async fn changed_dimension_makes_vectors_stale_and_embeds_again() {
    let server = HttpServer::start(|_, body| embed(body, 4)).await;
    let mut daemon = start(&server).await;
    let alice = daemon.client("alice").await;
    index(&alice, &daemon, json!({})).await;
    server.answer_with(|_, body| embed(body, 6));
    let during = query(&alice, &daemon, by_meaning()).await;
    assert!(warnings(&during).contains("vectors"), "the query falls back to full-text search: {during}");
    idle(&alice, &daemon).await;
    let after = query(&alice, &daemon, by_meaning()).await;
    assert_eq!(names(&after["raw_data"]["chunks"], "path")[0], "src/parser.rs", "{after}");

    // The same if the dimension changes while no daemon runs, so that no running daemon knows the old dimension.
    daemon.kill().await;
    server.answer_with(|_, body| embed(body, 5));
    daemon.launch().await;
    let alice = daemon.client("alice").await;
    index(&alice, &daemon, json!({})).await;
    let again = query(&alice, &daemon, by_meaning()).await;
    assert_eq!(names(&again["raw_data"]["chunks"], "path")[0], "src/parser.rs", "{again}");
    assert_eq!(warnings(&again), "null");
}

#[tokio::test]
async fn failing_embedder_leaves_full_text_search_and_says_so() {
    let server = HttpServer::start(|_, _| (500, "no geheim789 here".to_owned())).await;
    let daemon = start(&server).await;
    let alice = daemon.client("alice").await;
    let nonsense: [(u16, String); 5] = [
        (500, "no geheim789 here".into()),
        (200, "<html>".into()),
        (200, json!({"data": []}).to_string()),
        (200, json!({"data": [{"embedding": []}, {"embedding": [1.0]}]}).to_string()),
        (429, json!({"error": "slow down"}).to_string()),
    ];
    for (status, text) in nonsense {
        let given = text.clone();
        server.answer_with(move |_, _| (status, given.clone()));
        let done = index(&alice, &daemon, json!({})).await;
        let warning = done["summary"]["warning"].as_str().unwrap_or_else(|| panic!("{text}: {done}"));
        assert!(warning.contains("could not embed") && warning.contains("full-text"), "{warning}");
        let found =
            query(&alice, &daemon, json!({"mode": "naive", "query": "lexer", "only_need_context": true}))
                .await;
        assert_eq!(found["status"], "success", "{text}: {found}");
        assert!(warnings(&found).contains("embedder failed"), "{text}: {found}");
        assert!(!done.to_string().contains("geheim") && !found.to_string().contains("geheim"));
    }
    assert!(!daemon.log().contains("geheim789"));
    server.answer_with(|_, body| embed(body, 4));
    let done = index(&alice, &daemon, json!({})).await;
    assert_eq!(done["summary"].get("warning"), None, "the next job embeds everything: {done}");
    assert_eq!(query(&alice, &daemon, by_meaning()).await["status"], "success");
}

#[tokio::test]
async fn dimension_that_alternates_ends_the_stage_with_a_warning() {
    let server = HttpServer::start({
        let count = std::sync::atomic::AtomicUsize::new(0);
        move |_, body| embed(body, 4 + count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 2)
    })
    .await;
    let daemon = start(&server).await;
    let alice = daemon.client("alice").await;
    let done = index(&alice, &daemon, json!({})).await;
    assert_eq!(done["type"], "done", "{done}");
    assert!(done["summary"]["warning"].is_string(), "{done}");
    let ready = status_where(&alice, &daemon, "the index", |now| now["state"] == "ready").await;
    assert_eq!(ready["documents"], 3);
}

#[tokio::test]
async fn reranker_orders_chunks_and_its_failure_keeps_the_order() {
    let last_first = |_: &str, body: &Value| {
        let count = body["documents"].as_array().map_or(0, Vec::len);
        let mut rows: Vec<Value> =
            (0..count).map(|index| json!({"index": index, "relevance_score": index as f64 / 10.0})).collect();
        rows.push(json!({"index": 99, "relevance_score": 1.0}));
        (200, json!({"results": rows}).to_string())
    };
    let server = HttpServer::start(last_first).await;
    let config = format!("[knowledge.reranker]\nbase_url = \"{}\"\nmodel = \"judge\"\n", server.url());
    let daemon = start_with(TestDaemon::builder().config(&config)).await;
    let alice = daemon.client("alice").await;
    index(&alice, &daemon, json!({})).await;
    let ask = |more: Value| {
        let mut params =
            json!({"mode": "naive", "query": "lexer token parser caching", "only_need_context": true});
        for (name, value) in more.as_object().expect("an object") {
            params[name] = value.clone();
        }
        params
    };
    let ids = |found: &Value| names(&found["raw_data"]["chunks"], "chunk_id");
    let plain = query(&alice, &daemon, ask(json!({"enable_rerank": false}))).await;
    assert_eq!(server.requests().len(), 0);
    let ranked = query(&alice, &daemon, ask(json!({}))).await;
    let mut reversed = ids(&plain);
    reversed.reverse();
    assert!(reversed.len() > 1);
    assert_eq!(ids(&ranked), reversed, "{ranked}");
    assert!(ranked["raw_data"]["chunks"][0]["rerank_score"].is_number());
    let (path, body) = server.requests().remove(0);
    assert_eq!((path.as_str(), &body["model"]), ("/v1/rerank", &json!("judge")));
    let best = query(&alice, &daemon, ask(json!({"min_rerank_score": 0.05}))).await;
    assert_eq!(ids(&best).len(), reversed.len() - 1, "the chunk with the lowest score is dropped");
    for (status, text) in [(503, "down"), (200, "{}"), (200, "[]")] {
        server.answer_with(move |_, _| (status, text.to_owned()));
        let kept = query(&alice, &daemon, ask(json!({}))).await;
        assert_eq!(ids(&kept), ids(&plain), "{text}");
        assert!(warnings(&kept).contains("reranker failed"), "{kept}");
    }
}
