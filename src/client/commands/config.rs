//! `agentctl config show`: the configuration in force, and the source of each value.

use api::methods;
use serde_json::Value;

use crate::args::ConfigShowArgs;
use crate::connection::connector::Connector;
use crate::connection::paths::current_folder;
use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use crate::terminal::style::Tone;
use crate::terminal::table::{Table, column};
use api::params::{ConfigParams, ConfigReply, ConfigValue};

pub(crate) async fn show(
    reach: &Connector,
    args: ConfigShowArgs,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let cwd = match args.dir {
        Some(dir) => std::path::absolute(dir)?.display().to_string(),
        None => current_folder()?.display().to_string(),
    };
    let client = reach.as_observer().connect_or_start().await?;
    let reply: ConfigReply = client.call::<methods::daemon::Config>(&ConfigParams { cwd: Some(cwd) }).await?;
    if args.json {
        return Ok(out.json(&reply)?);
    }
    table(&reply.values, args.origin).print(out)?;
    if let Some(project) = &reply.project {
        let file = escape::line(&project.file).into_owned();
        if let Some(problem) = &project.problem {
            out.note(&format!("{file} has a mistake and is not used: {}", escape::line(problem)))?;
        } else if !project.trusted {
            out.note(&format!("{file} is not used, except its ask and deny rules: agentctl trust"))?;
        }
    }
    Ok(())
}

fn table(values: &[ConfigValue], with_origin: bool) -> Table {
    let mut columns = vec![column("KEY").between(16, 60), column("VALUE").between(8, 200)];
    if with_origin {
        columns.push(column("ORIGIN").between(10, 200).keep_end());
    }
    let mut table = Table::new(columns);
    for row in values {
        let origin = match row.line {
            Some(line) => format!("{}:{line}", escape::line(&row.origin)),
            None => escape::line(&row.origin).into_owned(),
        };
        let tone = if row.origin == "default" { Tone::Dim } else { Tone::Plain };
        let mut cells = vec![(tone, escape::line(&row.key).into_owned()), (tone, value_text(&row.value))];
        if with_origin {
            cells.push((tone, origin));
        }
        table.push(cells);
    }
    table
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "unset".into(),
        Value::String(text) => escape::line(text).into_owned(),
        other => escape::line(&other.to_string()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_daemon::FakeDaemon;
    use crate::terminal::out::testing::captured_output;
    use serde_json::json;

    #[tokio::test]
    async fn config_table_shows_origin_only_on_request() {
        let fake = FakeDaemon::start(|_, _, params| {
            assert_eq!(params["cwd"], "/w");
            Ok(json!({"values": [
                {"key": "daemon.log", "value": "info", "origin": "default"},
                {"key": "models.main", "value": "p/m", "origin": "/c\u{1b}", "line": 3},
                {"key": "models.quick", "value": null, "origin": "default"}],
                "project": {"file": "/w/.agentd/config.toml", "trusted": false}}))
        });
        let args = |origin| ConfigShowArgs { origin, json: false, dir: Some("/w".into()) };
        let (mut out, text, notes) = captured_output();
        show(&fake.connector(), args(true), &mut out).await.expect("shown");
        assert_eq!(
            text.text(),
            "KEY           VALUE  ORIGIN\ndaemon.log    info   default\nmodels.main   p/m    /c⟦ESC⟧:3\n\
             models.quick  unset  default\n"
        );
        assert!(notes.text().contains("agentctl trust"), "{}", notes.text());
        let (mut out, text, _) = captured_output();
        show(&fake.connector(), args(false), &mut out).await.expect("shown");
        assert!(text.text().contains("models.main   p/m\n"), "{}", text.text());
    }
}
