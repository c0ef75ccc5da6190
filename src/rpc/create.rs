//! `session.create`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::params::{CreateParams, InitialItem, SessionReply, SubmitBlock, SubmitInput};
use api::{Fault, methods};
use session::{InitialMessage, NewSessionRequest};

pub(super) async fn create(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: CreateParams,
) -> Result<SessionReply, Fault> {
    let keyed = convert::ordered_idempotency_key::<methods::session::Create>(p.idempotency_key.take(), &p);
    let options = p.options();
    let items = p.initial_items.unwrap_or_default();
    let initial_items = items.into_iter().enumerate().map(message).collect::<Result<_, _>>()?;
    let request = NewSessionRequest {
        is_hidden: false,
        job_id: None,
        session_id: p.session_id,
        cwd: p.cwd,
        worktree: p.worktree,
        title: p.title,
        background: p.background,
        on_restart: p.on_restart,
        options,
        ablation: p.ablation,
        binary_feedback: p.binary_feedback,
        agent: p.agent,
        coordinator: p.coordinator,
        inherited: None,
        initial_items,
        mcp_servers: p.mcp_servers.unwrap_or_default(),
        environment: p.env,
        keyed,
        origin: Some(caller.origin()),
    };
    let session = ctx.registry.create(request).await.map_err(convert::fault)?;
    Ok(SessionReply { session })
}

/// The texts of a message that the conversation begins with.
fn message((index, item): (usize, InitialItem)) -> Result<InitialMessage, Fault> {
    let InitialItem { role, content } = item;
    let blocks = match content {
        SubmitInput::Text(text) => return Ok(InitialMessage { role, texts: vec![text] }),
        SubmitInput::Blocks(blocks) => blocks.into_iter().enumerate(),
    };
    let text = |(at, block)| match block {
        SubmitBlock::Text { text } => Ok(text),
        SubmitBlock::Image(_)
        | SubmitBlock::File(_)
        | SubmitBlock::Document(_)
        | SubmitBlock::ResourceLink(_) => {
            let path = format!("initial_items[{index}].content[{at}].type");
            let why = "only text blocks are possible here; session.submit takes images and files";
            Err(convert::invalid_param(&path, why))
        }
    };
    Ok(InitialMessage { role, texts: blocks.map(text).collect::<Result<_, _>>()? })
}
