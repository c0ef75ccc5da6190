//! `agentctl mcp`: list, add, remove and test MCP servers, and show their tools and logs.

use api::methods;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::args::{McpAddArgs, McpCommand, McpScopeArg};
use crate::connection::connector::Connector;
use crate::connection::paths;
use crate::failure::{Failure, code};
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use crate::terminal::style::{StyledLine, Tone};
use crate::terminal::table::{Table, column};
use crate::ui::summary::one_line;
use api::params::{
    McpAddParams, McpChangeReply, McpListParams, McpListReply, McpLogsReply, McpRemoveParams, McpScope,
    McpServerParams, McpTestParams, McpToolsReply,
};
use types::mcp::{McpResourceList, McpServerView, McpState, McpTest};

pub(crate) async fn mcp(reach: &Connector, what: McpCommand, out: &mut OutputStreams) -> Result<(), Failure> {
    match what {
        McpCommand::List { json } => list(reach, json, out).await,
        McpCommand::Add(args) => add(reach, args, out).await,
        McpCommand::Remove { name, scope } => remove(reach, name, scope, out).await,
        McpCommand::Test { name, json } => test(reach, name, json, out).await,
        McpCommand::Tools { name, json } => tools(reach, name, json, out).await,
        McpCommand::Resources { name, json } => resources(reach, name, json, out).await,
        McpCommand::Logs { name } => logs(reach, name, out).await,
        McpCommand::Serve { all_sessions } => crate::mcp_serve::serve(reach, all_sessions).await,
    }
}

fn folder() -> Result<Option<String>, Failure> {
    Ok(Some(paths::current_folder()?.to_string_lossy().into_owned()))
}

async fn list(reach: &Connector, json: bool, out: &mut OutputStreams) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let reply: McpListReply =
        client.call::<methods::mcp::List>(&McpListParams { cwd: folder()?, session_id: None }).await?;
    if json {
        return Ok(out.json(&reply)?);
    }
    if reply.servers.is_empty() {
        return Ok(out.say("no MCP servers; `agentctl mcp add NAME -- COMMAND` adds one")?);
    }
    table(&reply.servers).print(out)
}

fn table(servers: &[McpServerView]) -> Table {
    let mut table = Table::new([
        column("NAME").between(8, 32),
        column("STATE").between(5, 12),
        column("TOOLS").right().rank(1),
        column("FROM").between(4, 24).rank(3),
        column("BY").between(4, 8).rank(4),
        column("PROBLEM").between(16, 80).rank(2),
    ]);
    for server in servers {
        let tools = match server.state {
            McpState::Ready => server.tools.len().to_string(),
            _ => String::new(),
        };
        let problem = match &server.error {
            Some(error) => error.clone(),
            None => server.notes.join("; "),
        };
        table.push([
            (Tone::Bold, escape::line(&server.name).into_owned()),
            (tone(server.state), server.state.name().to_owned()),
            (Tone::Plain, tools),
            (Tone::Dim, escape::line(&server.source).into_owned()),
            (Tone::Dim, escape::line(&server.transport).into_owned()),
            (Tone::Warn, one_line(&problem, 400)),
        ]);
    }
    table
}

fn tone(state: McpState) -> Tone {
    match state {
        McpState::Ready => Tone::Good,
        McpState::Failed | McpState::Untrusted => Tone::Warn,
        McpState::Starting | McpState::Disabled => Tone::Dim,
    }
}

async fn add(reach: &Connector, args: McpAddArgs, out: &mut OutputStreams) -> Result<(), Failure> {
    let name = args.name.clone();
    let scope = args.scope;
    let config = config_of(args)?;
    let client = reach.connect_or_start().await?;
    let cwd = match scope {
        McpScopeArg::Project => folder()?,
        McpScopeArg::User => None,
    };
    let params = McpAddParams { name, config, scope: scope.into(), cwd, idempotency_key: None };
    let reply: McpChangeReply = client.call::<methods::mcp::Add>(&params).await?;
    let name = escape::line(&reply.name).into_owned();
    out.say(&match scope {
        McpScopeArg::User => format!("{name} is added; `agentctl mcp test {name}` tries it"),
        McpScopeArg::Project => {
            format!("{name} is added to .mcp.json; `agentctl trust` lets sessions in this folder use it")
        }
    })?;
    Ok(())
}

/// The configuration that the arguments describe.
fn config_of(args: McpAddArgs) -> Result<Value, Failure> {
    let pairs = |list: &[String], separator: char, what: &str| -> Result<BTreeMap<String, String>, Failure> {
        list.iter()
            .map(|entry| {
                let (name, value) = entry
                    .split_once(separator)
                    .ok_or_else(|| Failure::usage(format!("expected {what}, got {entry:?}")))?;
                Ok((name.trim().to_owned(), value.trim().to_owned()))
            })
            .collect()
    };
    let (env, headers) = (pairs(&args.env, '=', "NAME=VALUE")?, pairs(&args.header, ':', "NAME: VALUE")?);
    let Some((first, rest)) = args.target.split_first() else {
        return Err(Failure::usage("name a program with its arguments, or the address of an HTTP server"));
    };
    let is_url = ["http://", "https://"].iter().any(|scheme| first.starts_with(scheme));
    let mut config = match is_url {
        true if !rest.is_empty() => return Err(Failure::usage("an address takes no arguments")),
        true => json!({ "url": first, "headers": headers }),
        false => json!({ "command": first, "args": rest, "env": env, "sandbox": args.sandbox }),
    };
    for (name, is_set) in [("elicitation", args.elicitation), ("sampling", args.sampling)] {
        if is_set {
            config[name] = true.into();
        }
    }
    if let Some(timeout) = args.timeout {
        config["timeout"] = timeout.into();
    }
    Ok(config)
}

async fn remove(
    reach: &Connector,
    name: String,
    scope: McpScopeArg,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let cwd = match scope {
        McpScopeArg::Project => folder()?,
        McpScopeArg::User => None,
    };
    let params = McpRemoveParams { name, scope: scope.into(), cwd, idempotency_key: None };
    let reply: McpChangeReply = client.call::<methods::mcp::Remove>(&params).await?;
    Ok(out.say(&format!("{} is removed", escape::line(&reply.name)))?)
}

async fn test(reach: &Connector, name: String, json: bool, out: &mut OutputStreams) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let params = McpTestParams {
        name: Some(name.clone()),
        config: None,
        cwd: folder()?,
        session_id: None,
        idempotency_key: None,
    };
    let reply: McpTest = client.call::<methods::mcp::Test>(&params).await?;
    if json {
        out.json(&reply)?;
    } else {
        let protocol = reply.protocol.as_deref().map(|it| format!(", protocol {it}")).unwrap_or_default();
        let text = format!(
            "{}: {}{}, {} tools, {} ms",
            escape::line(&name),
            reply.state.name(),
            escape::line(&protocol),
            reply.tools.len(),
            reply.duration_ms
        );
        out.say(&text)?;
        for line in reply.error.iter().chain(&reply.problems) {
            out.note(&escape::line(line))?;
        }
    }
    if reply.state == McpState::Ready { Ok(()) } else { Err(Failure::new(code::DENIED, "")) }
}

async fn tools(reach: &Connector, name: String, json: bool, out: &mut OutputStreams) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let reply: McpToolsReply = client
        .call::<methods::mcp::Tools>(&McpServerParams { name, cwd: folder()?, session_id: None })
        .await?;
    if json {
        return Ok(out.json(&reply)?);
    }
    for tool in &reply.tools {
        let about = tool.description.lines().next().unwrap_or_default();
        let line = StyledLine::new(Tone::Tool, escape::line(&tool.name).into_owned())
            .and(Tone::Plain, format!("  {}", escape::line(about)));
        out.line(&line)?;
    }
    Ok(())
}

async fn resources(
    reach: &Connector,
    name: String,
    json: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let params = McpServerParams { name: name.clone(), cwd: folder()?, session_id: None };
    let reply: McpResourceList = client.call::<methods::mcp::Resources>(&params).await?;
    if json {
        return Ok(out.json(&reply)?);
    }
    let of_templates = reply.templates.iter().map(|it| (&it.uri_template, &it.name));
    let of_resources = reply.resources.iter().map(|it| (&it.uri, &it.name));
    for (uri, title) in of_resources.chain(of_templates) {
        let line = StyledLine::new(Tone::Tool, escape::line(&format!("@{name}:{uri}")).into_owned())
            .and(Tone::Plain, format!("  {}", escape::line(title)));
        out.line(&line)?;
    }
    if !reply.is_complete {
        out.note("the server has more resources; only the first ones are shown")?;
    }
    if reply.resources.is_empty() && reply.templates.is_empty() {
        out.say(&format!("{} has no resources", escape::line(&name)))?;
    }
    Ok(())
}

async fn logs(reach: &Connector, name: String, out: &mut OutputStreams) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let reply: McpLogsReply = client
        .call::<methods::mcp::Logs>(&McpServerParams { name, cwd: folder()?, session_id: None })
        .await?;
    for line in &reply.lines {
        out.say(&escape::line(line))?;
    }
    Ok(())
}

impl From<McpScopeArg> for McpScope {
    fn from(scope: McpScopeArg) -> Self {
        match scope {
            McpScopeArg::User => McpScope::User,
            McpScopeArg::Project => McpScope::Project,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(target: &[&str]) -> McpAddArgs {
        McpAddArgs {
            name: "x".into(),
            scope: McpScopeArg::User,
            env: vec!["A=b=c".into()],
            header: vec!["Authorization: Bearer x".into()],
            sandbox: false,
            elicitation: true,
            sampling: true,
            timeout: Some("5s".into()),
            target: target.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn added_server_is_program_or_address() {
        let program = config_of(args(&["npx", "-y", "x"])).expect("right");
        assert_eq!((&program["command"], &program["args"][1]), (&json!("npx"), &json!("x")));
        assert_eq!((&program["env"]["A"], &program["timeout"]), (&json!("b=c"), &json!("5s")));
        assert_eq!((&program["elicitation"], &program["sampling"]), (&json!(true), &json!(true)));
        let http = config_of(args(&["https://h/mcp"])).expect("right");
        assert_eq!(http["headers"]["Authorization"], "Bearer x");
        assert!(config_of(args(&["https://h/mcp", "more"])).is_err());
        assert!(config_of(args(&[])).is_err());
    }
}
