//! `agentctl top`: all sessions on one screen; Enter opens one, and leaving it leads back.

use crate::client::connection::connector::Connector;
use crate::client::failure::Failure;
use crate::client::terminal::out::Out;
use crate::client::ui::attach::{Options, attach, converse, here};
use crate::client::ui::top::{Next, Sessions, choose};

pub(in crate::client) async fn top(
    reach: &Connector,
    options: Options,
    out: &mut Out,
) -> Result<(), Failure> {
    let mut sessions = Sessions::load(reach).await?;
    loop {
        // The screen is closed here: the conversation has the terminal for itself.
        let left = match choose(&mut sessions).await? {
            Next::Quit => return Ok(()),
            Next::Attach(session) => attach(reach, &session.to_string(), options, out).await,
            Next::New => converse(reach, here()?, options, out).await,
        };
        if let Err(failure) = left {
            sessions.say(failure.message);
        }
    }
}
