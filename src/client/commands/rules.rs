//! `agentctl rules`, `mode` and `rename`: show and change a session's permissions from outside.

use crate::args::{RuleArgs, RulesCommand};
use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::connection::session_calls::update;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::escape;
use crate::terminal::format::session_name;
use crate::terminal::out::OutputStreams;
use crate::terminal::style::Tone;
use crate::terminal::table::{Table, column};
use api::methods;
use api::params::{RuleReply, RulesParams};
use types::ids::SessionId;
use types::permission::{Mode, RuleKind, RuleParams, RuleScope, RuleView};

pub(crate) async fn rules(
    reach: &Connector,
    what: Option<&RulesCommand>,
    (json, long): (bool, bool),
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    match what {
        None => list(&client, None, (json, long), out).await,
        Some(RulesCommand::List { session, json }) => {
            list(&client, session.as_deref(), (*json, false), out).await
        }
        Some(RulesCommand::Add(args)) => {
            let (params, place) = params(&client, args).await?;
            let reply: RuleReply = client.call::<methods::permission::AddRule>(&params).await?;
            let word = if reply.changed { "added" } else { "was there already" };
            let rule = reply.rule.as_deref().unwrap_or(&params.rule);
            Ok(out.say(&format!("{} {} {place}: {word}", params.kind.name(), escape::line(rule)))?)
        }
        Some(RulesCommand::Rm(args)) => {
            let (params, place) = params(&client, args).await?;
            let _: RuleReply = client.call::<methods::permission::RemoveRule>(&params).await?;
            Ok(out.say(&format!("{} {} {place}: removed", params.kind.name(), escape::line(&params.rule)))?)
        }
    }
}

async fn params(client: &Client, args: &RuleArgs) -> Result<(RuleParams, &'static str), Failure> {
    let kind = match (args.ask, args.deny) {
        (_, true) => RuleKind::Deny,
        (true, _) => RuleKind::Ask,
        _ => RuleKind::Allow,
    };
    let (scope, session_id, workspace, place) = match (&args.session, args.user) {
        (Some(name), _) => (RuleScope::Session, Some(session(client, name).await?), None, "for the session"),
        (None, true) => (RuleScope::User, None, None, "in every folder"),
        (None, false) => (RuleScope::Project, None, Some(current_folder()?), "in this folder"),
    };
    let rule = args.rule.clone();
    Ok((RuleParams { rule, kind, scope, session_id, workspace, idempotency_key: None }, place))
}

async fn session(client: &Client, name: &str) -> Result<SessionId, Failure> {
    Ok(resolve_id::session(client, name).await?.session_id)
}

fn current_folder() -> Result<String, Failure> {
    let here = crate::connection::paths::current_folder()?;
    here.to_str().map(String::from).ok_or_else(|| Failure::usage("the folder's name is not UTF-8"))
}

async fn list(
    client: &Client,
    name: Option<&str>,
    (json, long): (bool, bool),
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let (session_id, workspace) = match name {
        Some(name) => (Some(session(client, name).await?), None),
        None => (None, Some(current_folder()?)),
    };
    let params = RulesParams { session_id, workspace, ..RulesParams::default() };
    let mut pages = client.pages::<methods::permission::Rules>(params);
    let (mut rules, mut problems) = (Vec::new(), Vec::new());
    while let Some(page) = pages.next().await? {
        rules.extend(page.rules);
        problems = page.problems;
    }
    if json {
        out.json(&rules)?;
    } else {
        if !rules.is_empty() {
            table(&rules, long).print(out)?;
        } else {
            out.note("there are no rules; what a session may do is left to its mode")?;
        }
    }
    for problem in &problems {
        out.note(&format!("{}; until then everything asks", escape::line(problem)))?;
    }
    Ok(())
}

fn table(rules: &[RuleView], is_long: bool) -> Table {
    let mut columns = vec![
        column("VERDICT").between(5, 7),
        column("RULE").between(16, 100),
        column("FOR").between(6, 16),
        column("BY").between(4, 24).rank(1),
    ];
    let has_notes = rules.iter().any(|rule| rule.note.is_some());
    if has_notes {
        columns.push(column("NOTE").between(20, 200).rank(2));
    }
    if is_long {
        columns.push(column("FILE").between(10, 200).rank(2).keep_end());
    }
    let mut table = Table::new(columns);
    for rule in rules {
        let tone = match rule.kind {
            RuleKind::Allow => Tone::Good,
            RuleKind::Ask => Tone::Warn,
            RuleKind::Deny => Tone::Bad,
        };
        let scope = match rule.scope {
            RuleScope::Project => "this folder",
            RuleScope::User => "all folders",
            other => other.name(),
        };
        let by = rule.by.as_ref().map(|by| escape::line(&by.client).into_owned()).unwrap_or_default();
        let mut cells = vec![
            (tone, rule.kind.name().to_owned()),
            (Tone::Bold, escape::line(&rule.rule).into_owned()),
            (Tone::Plain, scope.to_owned()),
            (Tone::Dim, by),
        ];
        if has_notes {
            cells.push((Tone::Warn, escape::line(rule.note.as_deref().unwrap_or_default()).into_owned()));
        }
        if is_long {
            cells.push((Tone::Dim, escape::line(rule.file.as_deref().unwrap_or_default()).into_owned()));
        }
        table.push(cells);
    }
    table
}

pub(crate) async fn mode(
    reach: &Connector,
    name: &str,
    mode: Mode,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let session_id = session(&client, name).await?;
    let view = update(&client, session_id, Some(mode), None).await?;
    Ok(out.say(&format!("{}: {}", session_name(&view.session), mode.name()))?)
}

pub(crate) async fn rename(
    reach: &Connector,
    name: &str,
    title: &str,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let session_id = session(&client, name).await?;
    let view = update(&client, session_id, None, Some(title.into())).await?;
    let title = escape::line(&view.session.summary.title).into_owned();
    Ok(out.say(&format!("{}: {title}", session_name(&view.session)))?)
}
