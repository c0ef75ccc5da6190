//! Calls of commands that run for long, through restarts of the daemon.

use std::time::{Duration, Instant};

use crate::connection::client::{CallError, Client};
use crate::connection::connector::Connector;
use crate::failure::Failure;
use crate::terminal::out::OutputStreams;
use api::ApiMethod;

/// How long to try to reconnect to the daemon: a stop takes up to 10 s, and a daemon answers before it stops.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Calls a method that only reads or waits, and calls it again if the daemon restarts, with another connection. `params`
/// gets the milliseconds that are left of `timeout_ms`.
///
/// # Errors
/// The daemon refused the call, or did not come back.
pub(crate) async fn call_through_restarts<M: ApiMethod>(
    reach: &Connector,
    client: &mut Client,
    timeout_ms: Option<u64>,
    params: impl Fn(Option<u64>) -> M::Params,
    out: &mut OutputStreams,
) -> Result<M::Reply, Failure> {
    let start = Instant::now();
    loop {
        let elapsed_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let left_ms = timeout_ms.map(|ms| ms.saturating_sub(elapsed_ms));
        let words = match client.call::<M>(&params(left_ms)).await {
            Err(CallError::Fault(fault)) if fault.kind() == "shutting_down" => "the daemon stops…",
            Err(error) if error.is_lost() => "lost the connection to the daemon; connecting again…",
            outcome => return Ok(outcome?),
        };
        out.note(words)?;
        *client = reconnect(reach).await?;
        out.note("the daemon is back")?;
    }
}

async fn reconnect(reach: &Connector) -> Result<Client, Failure> {
    let deadline = Instant::now() + reach.reconnect_timeout(RECONNECT_TIMEOUT);
    let mut wait = Duration::from_millis(50);
    loop {
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(Duration::from_secs(1));
        match reach.connect_again().await {
            Err(failure) if failure.may_pass() && Instant::now() < deadline => {}
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fake_daemon::FakeDaemon;
    use crate::terminal::out::testing::captured_output;
    use api::methods;
    use api::params::{JobWaitParams, JobWaitReply};

    #[tokio::test]
    async fn waiting_call_is_repeated_after_restart_with_time_that_is_left() {
        let job_id = "job_0190f2a4-0000-7000-8000-000000000006".parse().expect("an id");
        let stopping = json!({"code": -32017, "message": "stopping", "data": {"kind": "shutting_down"}});
        let fake_reply = Err(stopping.clone());
        let mut fake = FakeDaemon::start(move |_, _, _| fake_reply.clone());
        let reach = fake.connector();
        let mut client = reach.connect().await.expect("connected");
        let (mut out, _, side) = captured_output();
        let seen = side.clone();
        let params = |timeout_ms| JobWaitParams { job_id, timeout_ms };
        let call =
            call_through_restarts::<methods::job::Wait>(&reach, &mut client, Some(60_000), params, &mut out);
        let restart = async {
            while !seen.text().contains("the daemon stops…") {
                tokio::task::yield_now().await;
            }
            let refusal = json!({"code": -32002, "message": "no such job", "data": {"kind": "not_found"}});
            fake.restart(move |_, _, _| Err(refusal.clone())).await;
        };
        let both = async { tokio::join!(call, restart) };
        let (ended, ()): (Result<JobWaitReply, Failure>, ()) =
            tokio::time::timeout(Duration::from_secs(20), both).await.expect("in time");
        assert!(ended.expect_err("refused").message.contains("no such job"));
        assert!(side.text().contains("the daemon is back"), "{}", side.text());
        let waited: Vec<u64> =
            fake.calls().iter().filter_map(|(_, params)| params["timeout_ms"].as_u64()).collect();
        assert!(waited.len() >= 2 && waited.last() < waited.first(), "{waited:?}");
    }
}
