//! `agentctl permissions explain`: the verdict of rules on a command or a path, with the reason.

use api::methods;
use serde_json::json;

use crate::args::ExplainArgs;
use crate::connection::connector::Connector;
use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use crate::terminal::style::{StyledLine, Tone};
use api::params::ExplainReply;
use types::permission::{ExplainParams, Mode, VerdictKind};

pub(crate) async fn explain(
    reach: &Connector,
    args: ExplainArgs,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let mode = args.mode.map(|name| mode(&name)).transpose()?;
    let folder = match args.work_dir {
        Some(folder) => std::path::absolute(folder)?,
        None => crate::connection::paths::current_folder()?,
    };
    let input = match args.tool.as_str() {
        "Bash" => json!({"command": args.text}),
        "LS" => json!({"path": args.text}),
        _ => json!({"file_path": args.text}),
    };
    let params = ExplainParams {
        workspace: folder,
        home: None,
        mode,
        safe_commands: args.no_safe_commands.then_some(false),
        allow: args.allow,
        ask: args.ask,
        deny: args.deny,
        tool: args.tool,
        input,
    };
    let client = reach.as_observer().connect_or_start().await?;
    let reply: ExplainReply = client.call::<methods::permission::Explain>(&params).await?;
    if args.json {
        return Ok(out.json(&reply)?);
    }
    out.line(&line(reply.verdict, &reply.reason))?;
    if let Some(rule) = &reply.rule {
        out.say(&format!("rule: {}", escape::line(rule)))?;
    }
    for part in &reply.parts {
        out.line(&line(part.verdict, &format!("{}  ({})", part.command, part.reason)))?;
    }
    for grant in &reply.suggestions {
        out.note(&format!("a grant that would cover it: {}", escape::line(grant)))?;
    }
    Ok(())
}

fn mode(name: &str) -> Result<Mode, Failure> {
    serde_json::from_value(json!(name)).map_err(|_| {
        Failure::usage(format!("{name}: expected default, accept_edits, plan, dont_ask or bypass"))
    })
}

fn line(verdict: VerdictKind, text: &str) -> StyledLine {
    let (word, tone) = match verdict {
        VerdictKind::Allow => ("allow", Tone::Good),
        VerdictKind::Ask => ("ask", Tone::Warn),
        VerdictKind::Deny => ("deny", Tone::Bad),
    };
    StyledLine::new(tone, format!("{word:<6} {}", escape::line(text)))
}
