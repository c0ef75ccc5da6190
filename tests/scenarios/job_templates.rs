//! Templates of jobs: from a file to the prompt of a job, and what a project's template cannot do.

use serde_json::{Value, json};

use super::agentctl::ctl;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

const FIX: &str = "---\n\
description: Fix an issue\n\
parameters:\n\
\x20 number: {type: integer, required: true}\n\
\x20 tone: {default: calm, enum: [calm, quick]}\n\
priority: 7\n\
labels: {kind: fix}\n\
---\n\
Fix issue {{number}} in a {{tone}} way.\n";

/// Writes a template of the user.
fn write_template(daemon: &TestDaemon, name: &str, text: &str) {
    let folder = daemon.path("config/agentd/jobs");
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::write(folder.join(format!("{name}.md")), text).expect("written");
}

fn request(daemon: &TestDaemon, template: &str, parameters: Value) -> Value {
    json!({"template": template, "parameters": parameters, "cwd": daemon.workspace()})
}

fn names(reply: &Value) -> Vec<String> {
    let list = reply["templates"].as_array().expect("templates");
    list.iter()
        .map(|it| {
            format!("{}/{}", it["source"].as_str().expect("a source"), it["name"].as_str().expect("a name"))
        })
        .collect()
}

#[tokio::test]
async fn job_of_template_keeps_the_text_of_its_creation() {
    let daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|_| Step::text("Done."));
    write_template(&daemon, "fix", FIX);
    write_template(&daemon, "broken", "---\nmoed: plan\n---\nx");
    let client = daemon.client("alice").await;
    let listed = client.call("job.templates", json!({})).await;
    assert_eq!(names(&listed), ["user/fix"]);
    assert_eq!(listed["templates"][0]["parameters"]["number"]["required"], true);
    assert!(listed["diagnostics"][0]["message"].as_str().is_some_and(|it| it.contains("`moed`")), "{listed}");

    let mut content = request(&daemon, "fix", json!({"number": "7"}));
    content["labels"] = json!({"team": "core"});
    content["delay"] = json!("1h");
    let job = client.call("job.create", content).await["job"].clone();
    assert_eq!((&job["template"], &job["priority"]), (&json!("fix"), &json!(7)));
    assert_eq!(job["labels"], json!({"kind": "fix", "team": "core"}));
    // A later change of the file does not change the job.
    write_template(&daemon, "fix", "Something else.");
    client.call("job.update", json!({"job_id": job["job_id"], "run_at_ms": 1})).await;
    let wait = json!({"job_id": job["job_id"], "timeout_ms": 20_000});
    let done = client.call("job.wait", wait).await["job"].clone();
    assert_eq!(done["state"], "succeeded", "{done}");
    let sent = daemon.models.requests().remove(0).messages()[0].to_string();
    assert!(sent.contains("Fix issue 7 in a calm way."), "{sent}");
    let stored = client.call("job.get", json!({"job_id": job["job_id"]})).await["request"].clone();
    assert_eq!(stored["prompt"], "Fix issue 7 in a calm way.");

    let output = ctl(&daemon, &["jobs", "templates"]).await.stdout();
    assert!(output.contains("fix") && output.contains("user"), "{output}");
}

#[tokio::test]
async fn wrong_template_and_parameters_are_refused_with_their_path() {
    let daemon = TestDaemon::start().await;
    write_template(&daemon, "fix", FIX);
    write_template(&daemon, "broken", "---\nmoed: plan\n---\nx");
    let client = daemon.client("alice").await;
    for (template, parameters, path) in [
        ("nope", json!({}), "template"),
        ("broken", json!({}), "template"),
        ("../fix", json!({}), "template"),
        ("fix", json!({}), "parameters.number"),
        ("fix", json!({"number": "seven"}), "parameters.number"),
        ("fix", json!({"number": 7, "tone": "loud"}), "parameters.tone"),
        ("fix", json!({"number": 7, "name": "x"}), "parameters.name"),
    ] {
        let refusal = client.refused("job.create", request(&daemon, template, parameters.clone())).await;
        let got = (refusal.code, refusal.data["path"].as_str());
        assert_eq!(got, (-32602, Some(path)), "{template} {parameters}: {refusal:?}");
    }
    let mut both = request(&daemon, "fix", json!({"number": 7}));
    both["prompt"] = json!("x");
    assert_eq!(client.refused("job.create", both).await.data["path"], "template");
    let alone = json!({"prompt": "x", "parameters": {"a": 1}, "cwd": daemon.workspace()});
    assert_eq!(client.refused("job.create", alone).await.data["path"], "parameters.a");
    assert_eq!(client.call("job.list", json!({})).await["jobs"], json!([]));
}

#[tokio::test]
async fn project_template_needs_trust_and_cannot_widen_limits() {
    let daemon = TestDaemon::builder().config("[jobs.notify.x]\ncommand = [\"true\"]").start().await;
    write_template(&daemon, "fix", FIX);
    daemon.write(".agentd/jobs/fix.md", "Fix as the project does.");
    daemon.write(".agentd/jobs/loud.md", "---\non_complete: [{command: x}]\n---\nx");
    daemon.write(".agentd/jobs/bypass.md", "---\nmode: bypass\n---\nx");
    daemon.write(".agentd/jobs/rich.md", "---\nbudgets: {usd_micros: 900000000}\n---\nx");
    let client = daemon.client("alice").await;
    let cwd = json!({"cwd": daemon.workspace()});
    let listed = client.call("job.templates", cwd.clone()).await;
    assert_eq!(names(&listed), ["user/fix"]);
    assert!(listed["diagnostics"].to_string().contains("not trusted"), "{listed}");

    daemon.trust().await;
    let listed = client.call("job.templates", cwd.clone()).await;
    assert_eq!(names(&listed), ["project/fix"]);
    let diagnostics = listed["diagnostics"].to_string();
    for word in
        ["on_complete: a project's template", "mode: a project's", "budgets.usd_micros", "is defined by"]
    {
        assert!(diagnostics.contains(word), "{word}: {diagnostics}");
    }
    for name in ["loud", "bypass", "rich"] {
        let refusal = client.refused("job.create", request(&daemon, name, json!({}))).await;
        assert_eq!(refusal.data["path"], "template", "{refusal:?}");
    }
    let mut content = request(&daemon, "fix", json!({}));
    content["delay"] = json!("1h");
    let job = client.call("job.create", content).await["job"].clone();
    let stored = client.call("job.get", json!({"job_id": job["job_id"]})).await["request"].clone();
    assert_eq!(stored["prompt"], "Fix as the project does.");

    // A changed file is not trusted any more, so the user's template counts.
    daemon.write(".agentd/jobs/fix.md", "Fix as an intruder does.");
    assert_eq!(names(&client.call("job.templates", cwd).await), ["user/fix"]);
}
