//! `agentctl inspect`: all data of sessions and requests, as JSON.

use api::methods;
use serde_json::Value;

use crate::args::InspectArgs;
use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::connection::expand_truncated;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::out::OutputStreams;
use api::params::SessionParams;

pub(crate) async fn inspect(
    reach: &Connector,
    args: &InspectArgs,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let mut sessions = Vec::new();
    for name in &args.names {
        sessions.push(one(&client, name).await?);
    }
    match &args.format {
        Some(template) => template.print(&sessions, out),
        None => Ok(out.json(&sessions)?),
    }
}

/// Finds a request or a session. `12.1` and `perm_…` name requests, and every other name is a session.
async fn one(client: &Client, name: &str) -> Result<Value, Failure> {
    let is_numbered = name.split_once('.').is_some_and(|(session, nth)| {
        !session.is_empty()
            && [session, nth].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
    });
    if is_numbered || name.starts_with("perm_") {
        let id = resolve_id::request(client, name).await?;
        let pending = resolve_id::all_requests(client).await?;
        let request = pending.into_iter().find(|pending| pending.request.request_id == id);
        let request = request.ok_or_else(|| resolve_id::no_request(name))?;
        return value(&expand_truncated::request(client, request).await?);
    }
    let session_id = resolve_id::session(client, name).await?.session_id;
    let reply: Value = client.call_as::<methods::session::Get, _>(&SessionParams { session_id }).await?;
    Ok(reply.get("session").cloned().unwrap_or_default())
}

fn value(it: &impl serde::Serialize) -> Result<Value, Failure> {
    serde_json::to_value(it).map_err(|error| Failure::internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fake_daemon::{ASK, FakeDaemon, SESSION, permission_requested};
    use crate::resolve_id::sample;
    use crate::terminal::out::testing::captured_output;
    use crate::terminal::template::Template;

    #[tokio::test]
    async fn inspect_prints_sessions_and_requests_as_json() {
        let fake = FakeDaemon::start(|_, method, _| match method {
            "permission.list" => {
                let mut request = permission_requested();
                request["session_id"] = json!(SESSION);
                request["number"] = json!("12.1");
                request["at_ms"] = json!(1);
                Ok(json!({"requests": [request]}))
            }
            _ => Ok(json!({"session": sample(SESSION, "one")})),
        });
        let (mut out, text, _) = captured_output();
        let names = vec!["12".to_owned(), "12.1".to_owned()];
        inspect(&fake.connector(), &InspectArgs { names, format: None }, &mut out).await.expect("shown");
        let shown: Value = serde_json::from_str(&text.text()).expect("json");
        assert_eq!((&shown[0]["session_id"], &shown[1]["request_id"]), (&json!(SESSION), &json!(ASK)));
        let (mut out, text, _) = captured_output();
        let format = Template::parse("{{.Usage.InputTokens}}").ok();
        inspect(&fake.connector(), &InspectArgs { names: vec!["12".into()], format }, &mut out)
            .await
            .expect("shown");
        assert_eq!(text.text(), "1\n");
    }
}
