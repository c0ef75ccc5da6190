//! C18: the daemon dies before, inside and after a compaction. The next request has the old or the new conversation,
//! whole, and the journal still has the original.

use serde_json::{Value, json};

use super::client_log::StreamCursor;
use super::matrix_ways;
use super::scenario::{CrashScenario, bash};
use super::tolerant_client::AnswerPolicy;
use crate::support::daemon::{CrashMode, TestDaemon};
use crate::support::model_server::{Request, Step};

matrix_ways! {
    c18_conversation_is_whole_after_crash_in_summary => summary,
    c18_conversation_is_whole_after_crash_in_stage => stage,
}

const WINDOW: &str = "[model.\"scripted/model\"]\ncontext_window = 6000\nmax_output_tokens = 500\n\
                      [permissions]\nallow = [\"Bash\"]\n[compaction]\n";

async fn summary(way: CrashMode) {
    let only_summary = "snip = false\nmicrocompact = false\ncollapse = false";
    for point in ["C18.decided", "C18.requested", "C18.completed"] {
        crash_in_compaction(point, way, only_summary, "autocompact").await;
    }
}

async fn stage(way: CrashMode) {
    for point in ["C18.decided", "C18.completed"] {
        crash_in_compaction(point, way, "auto = false\nsnip = false\ncollapse = false", "microcompact").await;
    }
}

async fn crash_in_compaction(point: &str, way: CrashMode, compaction: &str, stage: &str) {
    let plan = TestDaemon::builder().config(&format!("{WINDOW}{compaction}"));
    let mut scenario = CrashScenario::begin(plan, point, way).await;
    // Four outputs fill the window: the conversation is compacted before one of the later calls.
    let outputs = std::sync::Mutex::new(0);
    scenario.daemon.models.set_fallback(move |request: &Request| {
        let sent = request.body.to_string().len() as u64 / 4;
        let last = request.messages().last().expect("messages")["content"].to_string();
        if last.contains("Write a summary") {
            return Step::text("SUMMARY of the counting").usage(sent, 5);
        }
        let mut made = outputs.lock().expect("no panic");
        // A request that is sent again gets the same answer.
        *made = request.body["messages"].to_string().matches("\"tool_use\"").count().max(*made);
        if *made >= 4 || last.contains("4900") {
            return Step::text("counted").usage(sent, 5);
        }
        Step::calls([bash(&format!("seq {0}000 {0}900", *made + 1))]).usage(sent, 20)
    });
    let tolerant = scenario.session_with(json!({"tools": {"allow": ["Bash"]}})).await;
    tolerant.submit("count", "k").await;
    scenario.wait_crashed().await;
    scenario.restart().await;
    let tolerant = scenario.join(&tolerant).await;
    tolerant.run(StreamCursor::default(), AnswerPolicy::AnswersOneTurn).await.expect("no panic");
    scenario.daemon.models.assert_no_breach();
    let journals = scenario.finish_and_check().await;
    let events: Vec<&Value> = journals[&tolerant.session].values().collect();
    let completed: Vec<&&Value> = events
        .iter()
        .filter(|event| event["type"] == "compact.completed" && !event["edit"].is_null())
        .collect();
    assert!(completed.iter().any(|event| event["stage"] == stage), "{point}: {completed:?}");
    // The original results are still in the journal, each once.
    let results = events.iter().filter(|event| event["type"] == "tool.completed");
    let results: Vec<&str> = results.filter_map(|event| event["output"].as_str()).collect();
    assert!(results.iter().any(|text| text.contains("1001\n")), "{point}");
}
