//! A daemon that was started before the user set a key: it does not see the key until it starts again.

use crate::commands::daemon;
use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::connection::remote::Machine;
use crate::connection::service::Service;
use crate::failure::Failure;
use crate::terminal::out::OutputStreams;
use api::methods;
use api::params::{NoParams, ShutdownParams, StatusReply};

/// Variables of which each makes a provider usable without a configuration.
const KEY_VARIABLES: [&str; 3] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OLLAMA_HOST"];

/// A connection to a daemon that has a model. If this process has a key that the running daemon lacks, and the daemon
/// is idle, restarts it and says so.
pub(crate) async fn with_model(
    reach: &Connector,
    client: Client,
    named_model: Option<&str>,
    out: &mut OutputStreams,
) -> Result<(Client, StatusReply), Failure> {
    let status: StatusReply = client.call::<methods::daemon::Status>(&NoParams {}).await?;
    if reach.machine() == Machine::Other {
        // The keys of this machine are none of that machine's concern.
        return match status.main_model.is_some() || named_model.is_some() {
            true => Ok((client, status)),
            false => Err(Failure::no_model()),
        };
    }
    let lacking = status.missing_key_variables.iter().map(String::as_str);
    let lacking = lacking.chain(KEY_VARIABLES.into_iter().filter(|_| status.providers.is_empty()));
    let has_use = |name: &&str| base::proc::variable(name).is_some();
    let Some(name) = lacking.into_iter().find(has_use).map(str::to_owned) else {
        return match status.main_model.is_some() || named_model.is_some() {
            true => Ok((client, status)),
            false => Err(Failure::no_model()),
        };
    };
    let hindrance = if Service::find(status.pid).is_some() {
        // After each start it has the environment of its unit.
        Some("it is a service; `agentctl login PROVIDER` stores a key for it".to_owned())
    } else {
        let reason = match (status.active_sessions > 0, reach.may_start) {
            (true, _) => Some("its sessions work"),
            (false, false) => Some("this command may not start one"),
            (false, true) => None,
        };
        reason.map(|reason| format!("{reason}; restart it with that variable (`agentctl daemon restart`)"))
    };
    if let Some(reason) = hindrance {
        out.note(&format!("the running daemon does not see {name}, and {reason}"))?;
        let is_usable = status.main_model.is_some() || named_model.is_some();
        return if is_usable { Ok((client, status)) } else { Err(Failure::no_model()) };
    }
    out.note(&format!("the running daemon does not see {name} yet; starting it again"))?;
    drop(client);
    let params = ShutdownParams { restart: true, ..ShutdownParams::default() };
    daemon::stop(reach, params, &mut OutputStreams::silent()).await?;
    let client = reach.connect_or_start().await?;
    let status: StatusReply = client.call::<methods::daemon::Status>(&NoParams {}).await?;
    if status.main_model.is_none() && named_model.is_none() {
        return Err(Failure::no_model());
    }
    Ok((client, status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_daemon::FakeDaemon;
    use crate::terminal::out::testing::captured_output;
    use serde_json::{Value, json};

    fn status(model: Option<&str>, providers: &[&str], missing: &[&str]) -> Value {
        json!({"version": "1", "protocol_version": 1, "pid": 1, "started_at_ms": 0, "socket": "/s", "data_dir": "/d",
            "config_files": [], "providers": providers, "main_model": model, "missing_key_variables": missing,
            "sessions": 1, "active_sessions": 1, "storage": "ok"})
    }

    #[tokio::test]
    async fn daemon_with_model_and_key_is_used_and_busy_one_without_key_is_reported() {
        // A variable that every test process has stands for the key.
        let cases = [
            (status(Some("a/m"), &["a"], &[]), Ok("")),
            (status(Some("a/m"), &["a"], &["NO_SUCH_VARIABLE_HERE"]), Ok("")),
            (status(Some("a/m"), &["a"], &["PATH"]), Ok("does not see PATH, and its sessions work")),
            (status(None, &["a"], &["PATH"]), Err("no model is configured")),
            (status(None, &["a"], &[]), Err("no model is configured")),
        ];
        for (reply, expected) in cases {
            let answer = reply.clone();
            let fake = FakeDaemon::start(move |_, _, _| Ok(answer.clone()));
            let reach = fake.connector();
            let client = reach.connect().await.expect("connected");
            let (mut out, _, side) = captured_output();
            match (with_model(&reach, client, None, &mut out).await, expected) {
                (Ok(_), Ok(note)) => assert!(
                    side.text().contains(note) && side.text().is_empty() == note.is_empty(),
                    "{reply}: {}",
                    side.text()
                ),
                (Err(failure), Err(words)) => assert!(failure.message.contains(words), "{failure}"),
                (outcome, _) => panic!("{reply}: {:?}", outcome.err()),
            }
        }
    }
}
