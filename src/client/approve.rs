//! `agentctl approve`, `deny` and `approvals`: answering from outside the session.

use super::connect::CallError;
use super::failure::Failure;
use super::measure::{age, now, short_id};
use super::names;
use super::out::Out;
use super::paint::{Line, Tone, pad};
use super::reach::Reach;
use super::{answer, escape, summary};
use crate::api::params::{ApproveParams, ApproveReply};
use crate::types::permission::{Decision, Scope};

pub(super) async fn approve(
    reach: &Reach,
    name: &str,
    session: bool,
    grant: Option<String>,
    out: &mut Out,
) -> Result<(), Failure> {
    let scope = if session || grant.is_some() { Scope::Session } else { Scope::Once };
    send(reach, name, Decision::Allow, scope, grant, None, out).await
}

pub(super) async fn deny(
    reach: &Reach,
    name: &str,
    feedback: Option<String>,
    out: &mut Out,
) -> Result<(), Failure> {
    send(reach, name, Decision::Deny, Scope::Once, None, feedback, out).await
}

async fn send(
    reach: &Reach,
    name: &str,
    decision: Decision,
    scope: Scope,
    grant: Option<String>,
    feedback: Option<String>,
    out: &mut Out,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let request_id = names::request(&client, name).await?;
    let params = ApproveParams { request_id, decision, scope, grant, feedback, idempotency_key: None };
    let reply = match client.call::<ApproveReply>("session.approve", &params).await {
        Err(CallError::Fault(fault)) if fault.kind() == "not_found" => return Err(names::no_request(name)),
        reply => reply?,
    };
    let word = match decision {
        Decision::Allow => "allowed",
        Decision::Deny => "denied",
    };
    let granted = reply.grant.map(|g| format!(", granted for the session: {}", escape::line(&g)));
    Ok(out.say(&format!("{word} {request_id}{}", granted.unwrap_or_default()))?)
}

pub(super) async fn list(reach: &Reach, json: bool, out: &mut Out) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let requests = names::all_requests(&client).await?;
    if json {
        return Ok(out.json(&requests)?);
    }
    let questions = answer::all_open(&client).await?;
    if requests.is_empty() && questions.is_empty() {
        return Ok(out.note("nothing waits for an answer")?);
    }
    for (session, question) in &questions {
        let what = match (&question.tool, &question.input) {
            (Some(tool), Some(input)) => summary::call_summary(tool, input),
            _ => "the turn is paused".into(),
        };
        let line = Line::new(Tone::Bold, question.request_id.to_string())
            .and(Tone::Dim, format!("  {}  ", short_id(session.session_id)))
            .and(Tone::Warn, format!("{}  ", question.kind.name()))
            .and(Tone::Plain, what);
        out.line(&line)?;
    }
    if !questions.is_empty() {
        out.note("agentctl answer REQUEST continue|abort")?;
    }
    if requests.is_empty() {
        return Ok(());
    }
    let now = now();
    for pending in &requests {
        let request = &pending.request;
        let line = Line::new(Tone::Bold, request.request_id.to_string())
            .and(
                Tone::Dim,
                format!("  {}  {}  ", short_id(pending.session_id), pad(&age(now.since(pending.at_ms)), 4)),
            )
            .and(Tone::Plain, summary::call_summary(&request.tool, &request.input));
        out.line(&line)?;
    }
    Ok(out.note("agentctl approve REQUEST [--session] · agentctl deny REQUEST [--feedback TEXT]")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::fake::{ASK, Fake, SESSION, asks};
    use crate::client::out::testing::papers;
    use serde_json::json;

    #[tokio::test]
    async fn a_request_is_answered_by_the_start_of_its_id() {
        let fake = Fake::start(|_, method, _| match method {
            "permission.list" => {
                let mut request = asks();
                request["session_id"] = json!(SESSION);
                request["at_ms"] = json!(1);
                Ok(json!({"requests": [request]}))
            }
            "session.list" => Ok(json!({"sessions": []})),
            _ => Ok(json!({"session_id": SESSION, "seq": 4, "grant": "Bash(make)"})),
        });
        let (mut out, text, _) = papers();
        approve(&fake.reach(), "perm_0190", true, None, &mut out).await.expect("answered");
        let (_, params) = fake.seen().pop().expect("calls");
        assert_eq!(
            (&params["request_id"], &params["decision"], &params["scope"]),
            (&json!(ASK), &json!("allow"), &json!("session"))
        );
        assert_eq!(text.text(), format!("allowed {ASK}, granted for the session: Bash(make)\n"));
        let (mut out, text, _) = papers();
        list(&fake.reach(), false, &mut out).await.expect("listed");
        assert!(text.text().starts_with(ASK) && text.text().ends_with("Bash make\n"), "{}", text.text());
    }
}
