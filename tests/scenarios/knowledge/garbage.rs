//! Damaged answers of models at level semantic: the daemon uses the readable parts, and no job fails.

use serde_json::json;

use super::{idle, index};
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

/// A name, and an answer from which the daemon must read the entity with this name.
const ANSWERS: &[(&str, &str)] = &[
    ("Plain", "entity<|#|>Plain<|#|>thing<|#|>It is there.\n<|COMPLETE|>"),
    ("Endless", "entity<|#|>Endless<|#|>thing<|#|>No end mark."),
    ("Lower", "entity<|#|>Lower<|#|>thing<|#|>Lower-case end.<|complete|>"),
    ("Glued", "entity<|#|>First<|#|>thing<|#|>One.<|#|>entity<|#|>Glued<|#|>thing<|#|>Two.<|COMPLETE|>"),
    ("Untagged", "entity<|#|>Tagged<|#|>thing<|#|>One.\nUntagged<|#|>thing<|#|>No tag.\n<|COMPLETE|>"),
    ("Five", "entity<|#|>Five<|#|>Other end<|#|>key<|#|>A relation with the wrong tag.\n<|COMPLETE|>"),
    ("Relative", "relationship<|#|>Relative<|#|>Another end<|#|>key<|#|>Related.\n<|COMPLETE|>"),
    ("Double", "entity<|##|>Double<|##|>thing<|##|>Two signs.\n<|COMPLETE|>"),
    ("Bare", "entity<#>Bare<#>thing<#>No pipes.\n<|COMPLETE|>"),
    ("Halved", "entity<|#>Halved<|#>thing<|#>Half.\n<|COMPLETE|>"),
    ("Empty pipes", "entity<||>Empty pipes<||>thing<||>No sign.\n<|COMPLETE|>"),
    ("Unclosed", "entity<|#|Unclosed<|#|thing<|#|Open.\n<|COMPLETE|>"),
    ("Unopened", "entity|#|>Unopened|#|>thing|#|>Closed.\n<|COMPLETE|>"),
    ("Barred", "entity||#||Barred||#||thing||#||Bars.\n<|COMPLETE|>"),
    ("Escaped", "entity<|\\#|>Escaped<|\\#|>thing<|\\#|>Escaped.\n<|COMPLETE|>"),
    ("Stray", "entity<|x#|>Stray<|x#|>thing<|x#|>A stray letter.\n<|COMPLETE|>"),
    ("Fenced", "```text\nentity<|#|>Fenced<|#|>thing<|#|>In a fence.\n<|COMPLETE|>\n```"),
    (
        "Thoughtful",
        "<think>entity<|#|>Hidden<|#|>thing<|#|>Not this.</think>\nentity<|#|>Thoughtful<|#|>thing<|#|>After it.",
    ),
    (
        "Json",
        "Sure:\n```json\n{\"entities\": [{\"name\": \"Json\", \"type\": \"thing\", \"description\": \"In JSON.\",},], \
         \"relationships\": []}\n```",
    ),
    (
        "Survivor",
        "entity<|#|>Too few\nrelation<|#|>a<|#|>b\nentity<|#|>Survivor<|#|>thing<|#|>The others are dropped.",
    ),
    ("Quoted name", "entity<|#|>\"Quoted name\"<|#|>Thing, other<|#|>With quotes.\n<|COMPLETE|>"),
    ("Wide", "entity<|#|>Ｗｉｄｅ<|#|>thing<|#|>Wide letters.\n<|COMPLETE|>"),
    ("全角", "entity<|#|>全 角<|#|>thing<|#|>A space between.\n<|COMPLETE|>"),
];

#[tokio::test]
async fn readable_parts_of_damaged_answers_are_used() {
    let daemon = TestDaemon::builder().config("[knowledge]\nmax_gleaning = 0\n").start().await;
    for (number, _) in ANSWERS.iter().enumerate() {
        daemon.write(&format!("notes/{number}.txt"), &format!("case number {number};\n"));
    }
    daemon.models.set_fallback(|request| {
        let body = request.body.to_string();
        let answer = (0..ANSWERS.len()).find(|number| body.contains(&format!("case number {number};")));
        Step::text(answer.map_or("", |number| ANSWERS[number].1))
    });
    let alice = daemon.client("alice").await;
    let done = index(&alice, &daemon, json!({"level": "semantic", "budget": 10_000_000})).await;
    assert_eq!((&done["type"], &done["summary"]["failed"]), (&json!("done"), &json!(0)), "{done}");
    for (name, answer) in ANSWERS {
        let graph = json!({"workspace": daemon.workspace(), "name": name, "depth": 1});
        let found = alice.call("knowledge.graph", graph).await;
        assert_eq!(found["nodes"][0]["name"], *name, "{answer}");
    }
    for absent in ["Hidden", "Too few"] {
        let graph = json!({"workspace": daemon.workspace(), "name": absent});
        assert_eq!(alice.refused("knowledge.graph", graph).await.kind, "not_found", "{absent}");
    }
    assert_eq!(idle(&alice, &daemon).await["state"], "ready");
}
