//! `agentctl approve`, `deny` and `approvals`: answer permission requests from outside the session.

use crate::answer::question::is_typed;
use crate::args::ApproveArgs;
use crate::commands::answer;
use crate::connection::client::{CallError, Client};
use crate::connection::connector::Connector;
use crate::connection::expand_truncated;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::escape;
use crate::terminal::format::{age, now};
use crate::terminal::out::OutputStreams;
use crate::terminal::style::{StyledLine, Tone};
use crate::terminal::table::{SPARE_RANK, Table, column};
use crate::ui::request_list::home_relative;
use crate::ui::{prompt, render, summary};
use api::methods;
use api::params::{ApproveParams, ApproveReply, Approved, ListParams};
use types::ids::SessionId;
use types::permission::{Decision, Scope};
use types::permission_request::PendingRequest;
use types::question::Question;
use types::session::{PermissionRequest, SessionState, SessionView};
use types::time::Timestamp;

pub(crate) async fn approve(
    reach: &Connector,
    args: &ApproveArgs,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let scope = match (args.scope, args.project, args.session || args.grant.is_some()) {
        (Some(scope), ..) => scope,
        (None, true, _) => Scope::Project,
        (None, false, true) => Scope::Session,
        (None, false, false) => Scope::Once,
    };
    let updated_input = match &args.input {
        Some(text) => Some(
            serde_json::from_str(text)
                .map_err(|error| Failure::usage(format!("--input is not JSON: {error}")))?,
        ),
        None => None,
    };
    let answer = ApproveParams {
        decision: Some(Decision::Allow),
        scope,
        grant: args.grant.clone(),
        updated_input,
        mode: args.mode,
        ..ApproveParams::default()
    };
    send(reach, &args.requests, &answer, out).await
}

pub(crate) async fn deny(
    reach: &Connector,
    requests: &[String],
    feedback: Option<String>,
    stop: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let decision = Some(Decision::Deny);
    send(reach, requests, &ApproveParams { decision, feedback, stop, ..ApproveParams::default() }, out).await
}

/// Sends the same answer for all requests; each succeeds or fails separately.
async fn send(
    reach: &Connector,
    requests: &[String],
    answer: &ApproveParams,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let mut answers = Vec::with_capacity(requests.len());
    for name in requests {
        let request_id = Some(resolve_id::request(&client, name).await?);
        answers.push(ApproveParams { request_id, ..answer.clone() });
    }
    let word = match answer.decision {
        Some(Decision::Deny) => "denied",
        _ => "allowed",
    };
    if let ([name], [answer]) = (requests, answers.as_slice()) {
        let reply = match client.call_as::<methods::session::Approve, Approved>(answer).await {
            Err(CallError::Fault(fault)) if fault.kind() == "not_found" => {
                return Err(resolve_id::no_request(name));
            }
            reply => reply?,
        };
        return Ok(out.say(&result_line(word, name, answer, &reply))?);
    }
    let params = ApproveParams { answers: Some(answers.clone()), ..ApproveParams::default() };
    let ApproveReply::Several { results } = client.call::<methods::session::Approve>(&params).await? else {
        return Err(Failure::internal("the daemon answered something else than it was asked"));
    };
    let mut refused = 0;
    for ((name, answer), result) in requests.iter().zip(&answers).zip(&results) {
        match (&result.approved, &result.error) {
            (Some(approved), _) => out.say(&result_line(word, name, answer, approved))?,
            (None, error) => {
                refused += 1;
                let error_text = error.as_ref().map_or("not taken", |error| error.message.as_str());
                out.note(&format!("{}: {}", shown_name(name, answer), escape::line(error_text)))?;
            }
        }
    }
    match refused {
        0 => Ok(()),
        _ => Err(Failure::internal(format!("{refused} of {} answers were not taken", results.len()))),
    }
}

/// The request as the user named it, if the name is a number such as `2.1`; otherwise its id.
fn shown_name(name: &str, answer: &ApproveParams) -> String {
    let number = name.trim_start_matches('#');
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let id = answer.request_id.map(|id| id.to_string()).unwrap_or_default();
    if is_number { number.to_owned() } else { id }
}

fn result_line(word: &str, name: &str, answer: &ApproveParams, approved: &Approved) -> String {
    let id = shown_name(name, answer);
    let place = match answer.scope {
        Scope::Project => "in this folder",
        _ => "for the session",
    };
    let granted = approved.grant.as_ref().map(|grant| format!(", granted {place}: {}", escape::line(grant)));
    format!("{word} {id}{}", granted.unwrap_or_default())
}

pub(crate) async fn list(
    reach: &Connector,
    wanted: &[String],
    json: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let requests = match wanted {
        [] => resolve_id::all_requests(&client).await?,
        names => complete_requests(&client, names).await?,
    };
    if json {
        return Ok(out.json(&requests)?);
    }
    if !wanted.is_empty() {
        return show(&requests, out);
    }
    let questions = answer::all_open(&client).await?;
    if requests.is_empty() && questions.is_empty() {
        return Ok(out.note("nothing waits for an answer")?);
    }
    let states = Some(vec![SessionState::RequiresAction]);
    let filter = ListParams { states, include_children: true, ..ListParams::default() };
    let sessions = resolve_id::all_sessions(&client, &filter).await?;
    table(&requests, &questions, &sessions, now()).print(out)?;
    if !questions.is_empty() {
        let typed = questions.iter().any(|(_, question)| is_typed(question));
        let how = if typed { "ANSWER… (a number, or words), or continue|abort" } else { "continue|abort" };
        out.note(&format!("agentctl answer N {how}"))?;
    }
    if !requests.is_empty() {
        out.note("agentctl approvals N shows all of it · approve N [--session|--project] · deny N")?;
    }
    Ok(())
}

/// The requests with these names, with all of their content.
async fn complete_requests(client: &Client, names: &[String]) -> Result<Vec<PendingRequest>, Failure> {
    let mut requests = resolve_id::all_requests(client).await?;
    let mut ids = Vec::with_capacity(names.len());
    for name in names {
        let id = resolve_id::request(client, name).await?;
        if !requests.iter().any(|pending| pending.request.request_id == id) {
            return Err(resolve_id::no_request(name));
        }
        ids.push(id);
    }
    requests.retain(|pending| ids.contains(&pending.request.request_id));
    for pending in &mut requests {
        *pending = expand_truncated::request(client, pending.clone()).await?;
    }
    Ok(requests)
}

/// The requests and questions, one row each.
fn table(
    requests: &[PendingRequest],
    questions: &[(SessionView, Question)],
    sessions: &[SessionView],
    now: Timestamp,
) -> Table {
    let mut table = Table::new([
        column("#").between(4, 60),
        column("AGE").right(),
        column("WAITS FOR").between(24, 120),
        column("DEADLINE").between(32, 32),
        column("TITLE").between(10, 28).rank(3),
        column("FOLDER").between(8, 28).rank(4).keep_end(),
        // The number in the first column is enough for every command.
        column("ID").right().rank(SPARE_RANK),
    ]);
    let title_of = |id: SessionId| {
        let session = sessions.iter().find(|session| session.session_id == id);
        session.map(|session| escape::line(session.summary.title.trim()).into_owned()).unwrap_or_default()
    };
    let folder = |cwd: &str| escape::line(&home_relative(cwd)).into_owned();
    for (session, question) in questions {
        let what = match (&question.tool, &question.input) {
            _ if is_typed(question) => summary::one_line(&question.text, 100),
            (Some(tool), Some(input)) => summary::call_summary(tool, input),
            _ => "the turn is paused".into(),
        };
        table.push([
            (Tone::Bold, session.number.to_string()),
            (Tone::Dim, String::new()),
            (Tone::Warn, format!("{}: {what}", question.kind.name())),
            (Tone::Plain, String::new()),
            (Tone::Plain, title_of(session.session_id)),
            (Tone::Dim, folder(&session.cwd)),
            (Tone::Dim, question.request_id.to_string()),
        ]);
    }
    for pending in requests {
        let request = &pending.request;
        table.push([
            (Tone::Bold, pending.number.clone()),
            (Tone::Dim, age(now.since(pending.at_ms))),
            (Tone::Plain, render::asked_summary(request)),
            (Tone::Warn, deadline(request, now)),
            (Tone::Plain, title_of(pending.session_id)),
            (Tone::Dim, folder(&request.cwd)),
            (Tone::Dim, request.request_id.to_string()),
        ]);
    }
    table
}

/// Shows requests exactly as `attach` does.
fn show(requests: &[PendingRequest], out: &mut OutputStreams) -> Result<(), Failure> {
    for pending in requests {
        let request = &pending.request;
        let line = StyledLine::new(Tone::Bold, pending.number.as_str())
            .and(Tone::Dim, format!("  {}", escape::line(&home_relative(&request.cwd))))
            .and(Tone::Warn, format!("  {}", deadline(request, now())))
            .and(Tone::Dim, format!("  {}", request.request_id));
        out.line(&line)?;
        for row in prompt::question(request) {
            out.line(&row)?;
        }
        for field in &pending.truncated_fields {
            let line = format!(
                "    not all of {} is shown: the whole has {} bytes",
                escape::line(&field.pointer),
                field.bytes
            );
            out.line(&StyledLine::new(Tone::Bad, line))?;
        }
        for grant in &request.suggestions {
            let line =
                StyledLine::new(Tone::Dim, "    could be granted: ").and(Tone::Tool, escape::line(grant));
            out.line(&line)?;
        }
    }
    Ok(())
}

/// The time until the request's deadline, and the action at the deadline.
fn deadline(request: &PermissionRequest, now: Timestamp) -> String {
    let Some(deadline) = request.deadline_ms else { return String::new() };
    let then = request.on_timeout.unwrap_or_default().name();
    match deadline.since(now) {
        0 => format!("too late for {then}"),
        left => format!("{}, then {then}", age(left)),
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::approve::*;
    use crate::fake_daemon::{ASK, FakeDaemon, SESSION, permission_requested};
    use crate::resolve_id::sample;
    use crate::terminal::out::testing::captured_output;
    use serde_json::json;

    #[tokio::test]
    async fn approve_accepts_prefix_of_request_id_and_number() {
        let fake = FakeDaemon::start(|_, method, _| match method {
            "permission.list" => {
                let mut request = permission_requested();
                request["session_id"] = json!(SESSION);
                request["at_ms"] = json!(1);
                request["number"] = json!("2.1");
                Ok(json!({"requests": [request]}))
            }
            "session.list" => Ok(json!({"sessions": []})),
            _ => Ok(json!({"session_id": SESSION, "seq": 4, "grant": "Bash(make)"})),
        });
        // The reply names the request by its number, if the user did.
        for (name, shown) in [("perm_0190", ASK), ("2.1", "2.1")] {
            let (mut out, text, _) = captured_output();
            let requests = vec![name.to_string()];
            let args = ApproveArgs { requests, session: true, ..ApproveArgs::default() };
            approve(&fake.connector(), &args, &mut out).await.expect("answered");
            let (_, params) = fake.calls().pop().expect("calls");
            assert_eq!(
                (&params["request_id"], &params["decision"], &params["scope"]),
                (&json!(ASK), &json!("allow"), &json!("session"))
            );
            assert_eq!(text.text(), format!("allowed {shown}, granted for the session: Bash(make)\n"));
        }
        let (mut out, text, _) = captured_output();
        list(&fake.connector(), &[], false, &mut out).await.expect("listed");
        let shown = text.text();
        assert!(shown.contains("Bash make") && shown.ends_with(&format!("{ASK}\n")), "{shown}");
    }

    #[test]
    fn title_folder_and_deadline_fit_80_columns_and_id_does_not() {
        let mut request = permission_requested();
        let fields = json!({"session_id": SESSION, "number": "2.1", "at_ms": 1_000, "cwd": "/w/shop",
            "deadline_ms": 601_000, "on_timeout": "deny"});
        request.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        let request = serde_json::from_value(request).expect("a request");
        let session = serde_json::from_value(sample(SESSION, "fix the login")).expect("a session");
        let lines = table(&[request], &[], &[session], Timestamp(1_000)).lines(Some(80));
        let shown: Vec<String> = lines.iter().map(StyledLine::plain).collect();
        for part in ["2.1", "Bash make", "10m, then deny", "fix the login", "/w/shop"] {
            assert!(shown[1].contains(part), "{part}: {shown:?}");
        }
        assert!(!shown[1].contains("perm_"), "{shown:?}");
    }

    #[tokio::test]
    async fn truncated_request_is_shown_in_full() {
        let blob = "blob_0190f2a4-0000-8000-8000-000000000009";
        let fake = FakeDaemon::start(move |_, method, _| match method {
            "permission.list" => {
                let mut request = permission_requested();
                request["session_id"] = json!(SESSION);
                request["at_ms"] = json!(1);
                request["input"]["command"] = json!("ma");
                request["truncated_fields"] = json!([{"pointer": "/input/command", "blob_id": blob, "bytes": 16, "media_type": "text/plain"}]);
                Ok(json!({"requests": [request]}))
            }
            "session.blob" => {
                Ok(json!({"blob_id": blob, "media_type": "text/plain", "bytes": 16, "offset": 0,
                                        "content": "make; rm -rf src", "encoding": "text"}))
            }
            _ => Ok(json!({"sessions": []})),
        });
        let (mut out, text, _) = captured_output();
        list(&fake.connector(), &[ASK.to_owned()], false, &mut out).await.expect("shown");
        assert!(text.text().contains("$ make; rm -rf src\n"), "{}", text.text());
        assert!(!text.text().contains("not all of"), "{}", text.text());
    }
}
