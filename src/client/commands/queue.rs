//! `agentctl queue`: lists and changes the inputs that wait for the running turn.

use crate::args::QueueCommand;
use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::connection::{session_calls, stdin};
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::escape;
use crate::terminal::format::{age, now};
use crate::terminal::out::OutputStreams;
use crate::terminal::style::Tone;
use crate::terminal::table::{Table, column};
use api::params::{
    QueueClearParams, QueueListParams, QueueMoveParams, QueueRemoveParams, QueueReply, QueueUpdateParams,
};
use api::{ApiMethod, methods};
use types::ids::{SessionId, TurnId};
use types::message::input_line;
use types::queue::QueuedTurn;

/// Maximum columns of an input in the list.
const INPUT_COLUMNS: usize = 100;

pub(crate) async fn queue(
    reach: &Connector,
    name: &str,
    what: Option<QueueCommand>,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let session_id = resolve_id::session(&client, name).await?.session_id;
    let idempotency_key = Some(session_calls::idempotency_key());
    let json = matches!(what, Some(QueueCommand::List { json: true }));
    let queue = match what {
        None | Some(QueueCommand::List { .. }) => all(&client, session_id).await?,
        Some(QueueCommand::Clear) => {
            change_queue::<methods::session::QueueClear>(
                &client,
                &QueueClearParams { session_id, idempotency_key },
            )
            .await?
        }
        Some(QueueCommand::Remove { turn }) => {
            let turn_id = find(&all(&client, session_id).await?, &turn)?;
            change_queue::<methods::session::QueueRemove>(
                &client,
                &QueueRemoveParams { session_id, turn_id, idempotency_key },
            )
            .await?
        }
        Some(QueueCommand::Move { turn, before }) => {
            let queued = all(&client, session_id).await?;
            let turn_id = find(&queued, &turn)?;
            let before = before.map(|before| find(&queued, &before)).transpose()?;
            let params = QueueMoveParams { session_id, turn_id, before, idempotency_key };
            change_queue::<methods::session::QueueMove>(&client, &params).await?
        }
        Some(QueueCommand::Edit { turn, text }) => {
            let turn_id = find(&all(&client, session_id).await?, &turn)?;
            let text = if text == "-" { stdin::read_all()? } else { text };
            let params = QueueUpdateParams { session_id, turn_id, input: text.into(), idempotency_key };
            change_queue::<methods::session::QueueUpdate>(&client, &params).await?
        }
    };
    if json {
        return Ok(out.json(&queue)?);
    }
    if queue.is_empty() {
        return Ok(out.note("nothing is queued")?);
    }
    let mut table = Table::new([
        column("#").right(),
        column("AGE").right(),
        column("INPUT").between(20, INPUT_COLUMNS),
        column("TURN").right().rank(4),
    ]);
    for (place, turn) in queue.iter().enumerate() {
        table.push([
            (Tone::Bold, (place + 1).to_string()),
            (Tone::Dim, age(now().since(turn.queued_at_ms))),
            (Tone::Plain, escape::line(&input_line(&turn.input)).into_owned()),
            (Tone::Dim, turn.turn_id.to_string()),
        ]);
    }
    table.print(out)
}

async fn all(client: &Client, session_id: SessionId) -> Result<Vec<QueuedTurn>, Failure> {
    let params = QueueListParams { session_id, cursor: None, limit: Some(500) };
    Ok(client.all_rows::<methods::session::QueueList>(params).await?)
}

async fn change_queue<M: ApiMethod<Reply = QueueReply>>(
    client: &Client,
    params: &M::Params,
) -> Result<Vec<QueuedTurn>, Failure> {
    Ok(client.call::<M>(params).await?.queue)
}

/// The queued turn that `name` identifies: a full id, a unique start of one, or a place in the queue from 1.
fn find(queue: &[QueuedTurn], name: &str) -> Result<TurnId, Failure> {
    // Send a full id to the daemon unchanged, because the daemon knows best whether it is queued.
    if let Ok(turn_id) = name.parse::<TurnId>() {
        return Ok(turn_id);
    }
    let place = name.parse::<usize>().ok().filter(|_| name.len() < 4);
    if let Some(place) = place {
        let turn = place.checked_sub(1).and_then(|index| queue.get(index));
        return turn.map(|turn| turn.turn_id).ok_or_else(|| {
            Failure::usage(format!("there is no place {place} in the queue of {}", queue.len()))
        });
    }
    let start = name.strip_prefix("turn_").unwrap_or(name).to_ascii_lowercase();
    let fits = |turn: &&QueuedTurn| !start.is_empty() && turn.turn_id.to_string()[5..].starts_with(&start);
    match queue.iter().filter(fits).collect::<Vec<_>>().as_slice() {
        [one] => Ok(one.turn_id),
        [] => Err(Failure::usage(format!("no queued turn is called {}", escape::line(name)))),
        _ => Err(Failure::usage(format!("{} could be several queued turns", escape::line(name)))),
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::queue::*;
    use serde_json::json;

    #[test]
    fn queued_turn_name_is_id_start_or_place() {
        let turn = |id: &str| -> QueuedTurn {
            serde_json::from_value(json!({"turn_id": id, "input": [], "queued_at_ms": 1, "front": false}))
                .expect("a queued turn")
        };
        let queue = [
            turn("turn_0190f2a4-0000-7000-8000-000000000001"),
            turn("turn_0190f2a5-0000-7000-8000-000000000001"),
        ];
        let check = |name: &str, expected: Result<usize, u8>| {
            let turn = find(&queue, name).map_err(|failure| failure.code);
            assert_eq!(turn, expected.map(|at| queue[at].turn_id), "{name}");
        };
        check("1", Ok(0));
        check("2", Ok(1));
        check("0", Err(64));
        check("3", Err(64));
        check("turn_0190f2a5", Ok(1));
        check("0190f2a4", Ok(0));
        check("0190", Err(64));
        check("zz", Err(64));
        check("", Err(64));
    }
}
