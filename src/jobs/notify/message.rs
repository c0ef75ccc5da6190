//! Which messages a new state of a job owes, and what they contain. Pure.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::target::{IncludedPart, NotifyTarget};
use store::OwedDelivery;
use types::ids::Mint;
use types::job::{Job, JobState};
use types::job_request::{JobRequest, NotifyState};
use types::time::Timestamp;

/// The messages that a job owes when it enters its state. `targets` are the tables `[jobs.notify.NAME]`.
pub(crate) fn owed(
    request: &JobRequest,
    job: &Job,
    targets: &BTreeMap<String, NotifyTarget>,
    now: Timestamp,
    mint: &mut Mint,
) -> Vec<OwedDelivery> {
    let Some(state) = notify_state(job.state) else { return Vec::new() };
    let mut owed: Vec<OwedDelivery> = Vec::new();
    for wish in &request.on_complete {
        let is_wanted = match &wish.on {
            Some(states) => states.contains(&state),
            None => state != NotifyState::Waiting,
        };
        let Some(name) = wish.webhook.as_ref().or(wish.command.as_ref()).filter(|_| is_wanted) else {
            continue;
        };
        if owed.iter().any(|known| known.target == *name) {
            continue;
        }
        // The table may have been removed since. The tries then say so, until it is back.
        let include = targets.get(name).map(|target| target.include.as_slice()).unwrap_or_default();
        owed.push(OwedDelivery {
            job_id: job.job_id,
            message_id: mint.message(),
            target: name.clone(),
            job_state: job.state,
            owed_at: now,
            body: body(request, job, include, now).to_string(),
        });
    }
    owed
}

fn notify_state(state: JobState) -> Option<NotifyState> {
    match state {
        JobState::Succeeded => Some(NotifyState::Succeeded),
        JobState::Failed => Some(NotifyState::Failed),
        JobState::Cancelled => Some(NotifyState::Cancelled),
        JobState::Expired => Some(NotifyState::Expired),
        JobState::Waiting => Some(NotifyState::Waiting),
        JobState::Scheduled
        | JobState::Queued
        | JobState::Running
        | JobState::Retrying
        | JobState::Skipped => None,
    }
}

/// Members of the result that are no output of the model and of tools.
const PLAIN_RESULT: [&str; 12] = [
    "subtype",
    "stop_reason",
    "usage",
    "cost_usd_micros",
    "cost_at_least_usd_micros",
    "duration_ms",
    "model_calls",
    "tool_calls",
    "attempts",
    "git",
    "artifacts",
    "node",
];

/// The message: by default without prompts and output.
fn body(request: &JobRequest, job: &Job, include: &[IncludedPart], now: Timestamp) -> Value {
    let mut shown = serde_json::to_value(job).unwrap_or_default();
    let mut data = json!({});
    if let Some(shown) = shown.as_object_mut() {
        shown.remove("deliveries");
        shown.remove("activity");
        if !include.contains(&IncludedPart::Result) {
            if let Some(Value::Object(result)) = shown.get_mut("result") {
                result.retain(|name, _| PLAIN_RESULT.contains(&name.as_str()));
            }
            if let Some(Value::Object(error)) = shown.get_mut("error") {
                error.remove("message");
            }
        }
        match include.contains(&IncludedPart::Prompt) {
            true => {
                data["prompt"] = request.prompt.clone().into();
                if !request.parameters.is_empty() {
                    data["parameters"] = json!(request.parameters);
                }
            }
            false if is_from_prompt(&job.title, request) => _ = shown.remove("title"),
            false => {}
        }
    }
    data["job"] = shown;
    json!({
        "type": format!("job.{}", job.state.name()),
        "timestamp": now.iso8601(),
        "data": data,
    })
}

/// Whether a title is the beginning of the prompt, which it is if the job was given none.
fn is_from_prompt(title: &str, request: &JobRequest) -> bool {
    let prompt = request.prompt.as_deref().unwrap_or_default().trim();
    prompt.starts_with(title.trim_end_matches('…'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::ids::Seed;
    use types::job::JobError;
    use types::job_request::OnComplete;

    fn job(state: &str) -> Job {
        let value = json!({
            "job_id": Mint::new(1, Seed(1)).job(), "state": state, "title": "Geheim prompt", "cwd": "/w",
            "priority": 0, "attempt": 1, "attempts_max": 1, "created_at_ms": 1, "run_at_ms": 1,
            "cost_usd_micros": 5, "usage": {}, "seq": 4, "activity": "geheim", "labels": {"team": "core"},
            "result": {
                "subtype": "success", "text": "geheim", "structured": {"a": "geheim"}, "stop_reason": null,
                "usage": {}, "usage_by_model": {}, "cost_usd_micros": 5, "duration_ms": 1, "model_ms": 1,
                "tools_ms": 0, "permission_ms": 0, "model_calls": 1,
                "permission_denials": [], "errors": [],
                "attempts": [], "artifacts": [{"path": "report.md", "bytes": 7}],
            },
        });
        let error = Some(JobError::new("unknown_outcome", "geheim"));
        Job { error, ..serde_json::from_value(value).expect("a job") }
    }

    fn request(on_complete: Vec<OnComplete>) -> JobRequest {
        let parameters = BTreeMap::from([("a".to_owned(), json!("geheim"))]);
        JobRequest {
            prompt: Some("Geheim prompt, long".into()),
            parameters,
            on_complete,
            ..JobRequest::default()
        }
    }

    fn hook(name: &str, on: Option<&[NotifyState]>) -> OnComplete {
        OnComplete { webhook: Some(name.into()), command: None, on: on.map(<[_]>::to_vec) }
    }

    fn owed_by(request: &JobRequest, state: &str, include: &[IncludedPart]) -> Vec<OwedDelivery> {
        let target = NotifyTarget { include: include.to_vec(), ..NotifyTarget::default() };
        let targets = BTreeMap::from([("x".to_owned(), target)]);
        let mut mint = Mint::new(1, Seed(7));
        owed(request, &job(state), &targets, Timestamp(1_795_219_200_000), &mut mint)
    }

    #[test]
    fn states_owe_the_messages_that_the_job_wants() {
        let request = request(vec![
            hook("x", None),
            hook("y", Some(&[NotifyState::Waiting, NotifyState::Failed])),
            hook("x", Some(&[NotifyState::Failed])),
        ]);
        for (state, expected) in [
            ("succeeded", &["x"][..]),
            ("failed", &["x", "y"][..]),
            ("cancelled", &["x"][..]),
            ("expired", &["x"][..]),
            ("waiting", &["y"][..]),
            ("skipped", &[][..]),
            ("queued", &[][..]),
            ("running", &[][..]),
            ("retrying", &[][..]),
        ] {
            let owed = owed_by(&request, state, &[]);
            let targets: Vec<&str> = owed.iter().map(|it| it.target.as_str()).collect();
            assert_eq!(targets, expected, "{state}");
            assert!(owed.iter().all(|it| it.body.contains(&format!("\"type\":\"job.{state}\""))));
        }
    }

    #[test]
    fn message_contains_prompt_and_output_only_on_request() {
        let request = request(vec![hook("x", None)]);
        let plain = &owed_by(&request, "failed", &[])[0].body;
        assert!(!plain.to_lowercase().contains("geheim"), "{plain}");
        for word in ["2026-11-21T00:00:00.000Z", "unknown_outcome", "report.md", "\"cwd\":\"/w\"", "core"] {
            assert!(plain.contains(word), "{word}: {plain}");
        }
        let with_result: Value =
            serde_json::from_str(&owed_by(&request, "failed", &[IncludedPart::Result])[0].body)
                .expect("JSON");
        let job = &with_result["data"]["job"];
        assert_eq!((&job["result"]["text"], &job["error"]["message"]), (&json!("geheim"), &json!("geheim")));
        assert_eq!((job.get("title"), with_result["data"].get("prompt")), (None, None));
        let with_prompt: Value =
            serde_json::from_str(&owed_by(&request, "failed", &[IncludedPart::Prompt])[0].body)
                .expect("JSON");
        assert_eq!(with_prompt["data"]["prompt"], "Geheim prompt, long");
        assert_eq!(with_prompt["data"]["parameters"]["a"], "geheim");
        assert_eq!(with_prompt["data"]["job"]["title"], "Geheim prompt");
        assert_eq!(with_prompt["data"]["job"]["result"].get("text"), None);
    }

    #[test]
    fn given_title_is_part_of_the_message() {
        let request = JobRequest { prompt: Some("other".into()), ..request(vec![hook("x", None)]) };
        let plain: Value = serde_json::from_str(&owed_by(&request, "failed", &[])[0].body).expect("JSON");
        assert_eq!(plain["data"]["job"]["title"], "Geheim prompt");
    }
}
