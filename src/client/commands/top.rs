//! `agentctl top`: all sessions on one screen; Enter opens one, and detaching returns to the list.

use crate::connection::connector::Connector;
use crate::failure::Failure;
use crate::terminal::out::OutputStreams;
use crate::ui::attach::{Options, attach, current_folder_params, start_conversation};
use crate::ui::top::{SessionsScreen, TopOutcome, choose};

pub(crate) async fn top(reach: &Connector, options: Options, out: &mut OutputStreams) -> Result<(), Failure> {
    let mut sessions = SessionsScreen::load(reach).await?;
    loop {
        // `choose` closes the screen when it returns, because the conversation uses the whole terminal.
        let left = match choose(&mut sessions).await? {
            TopOutcome::Quit => return Ok(()),
            TopOutcome::Attach(session) => attach(reach, &session.to_string(), options, out).await,
            TopOutcome::New => start_conversation(reach, current_folder_params(reach)?, options, out).await,
        };
        if let Err(failure) = left {
            sessions.set_notice(failure.message);
        }
    }
}
