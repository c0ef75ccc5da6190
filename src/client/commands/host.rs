//! `agentctl host`: names for the daemons of other machines, and the one in force. None of these commands connects.

use serde_json::json;

use crate::args::HostCommand;
use crate::connection::host_choice::{HostSource, choose, parse_address};
use crate::connection::host_list::{DEFAULT_HOST, HostList, check_name, host_file};
use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use crate::terminal::style::Tone;
use crate::terminal::table::{Table, column};
use api::endpoint::Env;

pub(crate) fn host(
    env: Env<'_>,
    named: Option<&str>,
    what: HostCommand,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let file = host_file(env)?;
    let mut list = HostList::load(&file)?;
    match what {
        HostCommand::List { json } => show(env, named, &list, json, out),
        HostCommand::Add { name, address } => {
            let shown = escape::line(&name).into_owned();
            check_name(&name).map_err(|why| Failure::usage(format!("{shown}: {why}")))?;
            parse_address(&address)
                .map_err(|why| Failure::usage(format!("{}: {why}", escape::line(&address))))?;
            if list.hosts.contains_key(&name) {
                return Err(Failure::usage(format!(
                    "{shown} is a host already; remove it first with `agentctl host rm {shown}`"
                )));
            }
            list.hosts.insert(name, address);
            list.save(&file)?;
            Ok(out.note(&format!(
                "`agentctl -H {shown} …` uses it once, `agentctl host use {shown}` from now on"
            ))?)
        }
        HostCommand::Use { host_name } => {
            let name = known(&list, host_name)?;
            list.current = Some(name.clone()).filter(|name| name != DEFAULT_HOST);
            list.save(&file)?;
            out.say(&format!("commands use {name}"))?;
            let chosen = choose(env, None, None)?;
            if chosen.name != name {
                let (reason, other) = (chosen.source.words(), escape::line(&chosen.name));
                out.note(&format!("not in this shell: {reason} names {other}"))?;
            }
            Ok(())
        }
        HostCommand::Rm { host_name } => {
            let name = known(&list, host_name)?;
            if list.hosts.remove(&name).is_none() {
                return Err(Failure::usage(format!("{DEFAULT_HOST} is this machine and cannot be removed")));
            }
            let was_current = list.current.as_ref() == Some(&name);
            list.current = list.current.filter(|current| *current != name);
            list.save(&file)?;
            match was_current {
                true => Ok(out.note("it was in force; commands use the daemon of this machine again")?),
                false => Ok(()),
            }
        }
    }
}

/// The name, if it is one of the list.
fn known(list: &HostList, name: String) -> Result<String, Failure> {
    if name == DEFAULT_HOST || list.hosts.contains_key(&name) {
        return Ok(name);
    }
    let shown = escape::line(&name).into_owned();
    Err(Failure::usage(format!(
        "no host is named {shown}; `agentctl host add {shown} ssh://USER@HOST` adds it"
    )))
}

fn show(
    env: Env<'_>,
    named: Option<&str>,
    list: &HostList,
    json: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let chosen = choose(env, named, None)?;
    if json {
        let hosts = list.hosts.iter().map(|(name, address)| json!({"name": name, "address": address}));
        let hosts: Vec<_> = hosts.collect();
        let reason = chosen.source.words();
        return Ok(out.json(&json!({"in_force": chosen.name, "reason": reason, "hosts": hosts}))?);
    }
    let mut table = Table::new([
        column("").between(1, 1),
        column("NAME").between(8, 64),
        column("ADDRESS").between(8, 200),
    ]);
    let own = (&DEFAULT_HOST.to_owned(), &"this machine".to_owned());
    for (name, address) in std::iter::once(own).chain(&list.hosts) {
        let mark = if *name == chosen.name { "*" } else { "" };
        table.push([
            (Tone::Bold, mark.to_owned()),
            (Tone::Plain, escape::line(name).into_owned()),
            (Tone::Dim, escape::line(address).into_owned()),
        ]);
    }
    table.print(out)?;
    let origin = match chosen.source {
        HostSource::Nothing => chosen.source.words().to_owned(),
        source => format!("named by {}", source.words()),
    };
    Ok(out.note(&format!("commands use {}: {origin}", escape::line(&chosen.name)))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::out::testing::captured_output;

    /// Runs a command with a configuration folder; returns its outputs, or the message of its failure.
    fn run(
        folder: &std::path::Path,
        variable: Option<&str>,
        what: HostCommand,
    ) -> Result<(String, String), String> {
        let config = folder.display().to_string();
        let env = |name: &str| match name {
            "XDG_CONFIG_HOME" => Some(config.clone()),
            "AGENTD_HOST" => variable.map(str::to_owned),
            _ => None,
        };
        let (mut out, text, notes) = captured_output();
        host(&env, None, what, &mut out).map_err(|failure| failure.message)?;
        Ok((text.text(), notes.text()))
    }

    fn add(name: &str, address: &str) -> HostCommand {
        HostCommand::Add { name: name.into(), address: address.into() }
    }

    #[test]
    fn added_host_is_used_listed_and_removed() {
        let dir = tempfile::tempdir().expect("a folder");
        let run = |what| run(dir.path(), None, what);
        run(add("build", "ssh://ann@build:2222")).expect("added");
        assert!(run(add("build", "ssh://other")).expect_err("twice").contains("host rm build"));
        let (_, reason) = run(HostCommand::List { json: false }).expect("listed");
        assert!(reason.contains("commands use default: nothing names another one"), "{reason}");
        let (said, _) = run(HostCommand::Use { host_name: "build".into() }).expect("used");
        assert_eq!(said, "commands use build\n");
        let (table, reason) = run(HostCommand::List { json: false }).expect("listed");
        assert!(
            table.lines().any(|line| line.starts_with('*') && line.contains("ssh://ann@build:2222")),
            "{table}"
        );
        assert!(reason.contains("commands use build: named by `agentctl host use`"), "{reason}");
        let (_, note) = run(HostCommand::Rm { host_name: "build".into() }).expect("removed");
        assert!(note.contains("this machine again"), "{note}");
        assert!(
            run(HostCommand::Use { host_name: "build".into() }).expect_err("gone").contains("host add build")
        );
    }

    #[test]
    fn host_in_force_is_explained_and_variable_is_not_overridden_silently() {
        let dir = tempfile::tempdir().expect("a folder");
        run(dir.path(), None, add("build", "ssh://build")).expect("added");
        let used = HostCommand::Use { host_name: "build".into() };
        let (_, note) = run(dir.path(), Some("ssh://other"), used).expect("used");
        assert!(note.contains("AGENTD_HOST names ssh://other"), "{note}");
        let (json, _) =
            run(dir.path(), Some("ssh://other"), HostCommand::List { json: true }).expect("listed");
        let listed: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(listed["in_force"], "ssh://other");
        assert_eq!(listed["hosts"][0]["name"], "build");
    }

    #[test]
    fn wrong_names_and_addresses_change_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        for (name, address) in
            [("-x", "ssh://a"), ("default", "ssh://a"), ("a", "ssh://-o"), ("a", "host"), ("a", "")]
        {
            assert!(run(dir.path(), None, add(name, address)).is_err(), "{name} {address}");
        }
        assert!(!dir.path().join("agentd").exists());
    }
}
