//! `agentctl config show`: the configuration in force, and the place that each value comes from.

use serde_json::Value;

use crate::api::params::{ConfigParams, ConfigReply, ConfigValue};
use crate::client::args::ConfigShowArgs;
use crate::client::connection::connector::Connector;
use crate::client::connection::paths::current_folder;
use crate::client::failure::Failure;
use crate::client::terminal::escape;
use crate::client::terminal::out::Out;
use crate::client::terminal::style::{Line, Tone, pad, width};

/// Widest column. Longer cells, such as lists of rules, do not move the others.
const MAX_WIDTH: usize = 48;

pub(in crate::client) async fn show(
    reach: &Connector,
    args: ConfigShowArgs,
    out: &mut Out,
) -> Result<(), Failure> {
    let cwd = match args.dir {
        Some(dir) => std::path::absolute(dir)?.display().to_string(),
        None => current_folder()?.display().to_string(),
    };
    let client = reach.observing().connect_or_start().await?;
    let reply: ConfigReply = client.call("daemon.config", &ConfigParams { cwd: Some(cwd) }).await?;
    if args.json {
        return Ok(out.json(&reply)?);
    }
    for line in table(&reply.values, args.origin) {
        out.line(&line)?;
    }
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

fn table(values: &[ConfigValue], with_origin: bool) -> Vec<Line> {
    let mut rows = vec![(Tone::Bold, ["KEY".to_owned(), "VALUE".to_owned(), "ORIGIN".to_owned()])];
    rows.extend(values.iter().map(|row| {
        let origin = match row.line {
            Some(line) => format!("{}:{line}", escape::line(&row.origin)),
            None => escape::line(&row.origin).into_owned(),
        };
        let tone = if row.origin == "default" { Tone::Dim } else { Tone::Plain };
        (tone, [escape::line(&row.key).into_owned(), shown(&row.value), origin])
    }));
    let count = if with_origin { 3 } else { 2 };
    let wide: Vec<usize> = (0..count)
        .map(|n| rows.iter().map(|(_, row)| width(&row[n])).filter(|it| *it <= MAX_WIDTH).max().unwrap_or(0))
        .collect();
    let line = |(tone, row): &(Tone, [String; 3])| {
        let cells: Vec<String> = row.iter().zip(&wide).map(|(cell, wide)| pad(cell, *wide)).collect();
        Line::new(*tone, cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "unset".into(),
        Value::String(text) => escape::line(text).into_owned(),
        other => escape::line(&other.to_string()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::fake::Fake;
    use crate::client::terminal::out::testing::papers;
    use serde_json::json;

    #[tokio::test]
    async fn config_table_shows_origin_only_on_request() {
        let fake = Fake::start(|_, _, params| {
            assert_eq!(params["cwd"], "/w");
            Ok(json!({"values": [
                {"key": "daemon.log", "value": "info", "origin": "default"},
                {"key": "models.main", "value": "p/m", "origin": "/c\u{1b}", "line": 3},
                {"key": "models.quick", "value": null, "origin": "default"}],
                "project": {"file": "/w/.agentd/config.toml", "trusted": false}}))
        });
        let args = |origin| ConfigShowArgs { origin, json: false, dir: Some("/w".into()) };
        let (mut out, text, notes) = papers();
        show(&fake.reach(), args(true), &mut out).await.expect("shown");
        assert_eq!(
            text.text(),
            "KEY           VALUE  ORIGIN\ndaemon.log    info   default\nmodels.main   p/m    /c⟦ESC⟧:3\n\
             models.quick  unset  default\n"
        );
        assert!(notes.text().contains("agentctl trust"), "{}", notes.text());
        let (mut out, text, _) = papers();
        show(&fake.reach(), args(false), &mut out).await.expect("shown");
        assert!(text.text().contains("models.main   p/m\n"), "{}", text.text());
    }
}
