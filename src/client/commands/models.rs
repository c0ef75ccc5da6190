//! `agentctl models`: the available models and their properties, and whether their providers can be used.

use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::failure::{Failure, code};
use crate::terminal::escape;
use crate::terminal::format::tokens;
use crate::terminal::out::OutputStreams;
use crate::terminal::style::{StyledLine, Tone};
use crate::terminal::table::{Cell, Table, column};
use api::methods;
use api::params::{ModelCheckParams, ModelCheckReply, ModelListParams};
use types::model::ModelView;
use types::usage::Price;

/// Models per request.
const PAGE_ROWS: u32 = 500;
/// Text for unknown values.
const UNKNOWN: &str = "unknown";

pub(crate) async fn models(
    reach: &Connector,
    json: bool,
    all: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let params = ModelListParams { limit: Some(PAGE_ROWS), ..ModelListParams::default() };
    let models = client.all_rows::<methods::model::List>(params).await?;
    let offered = if all { offered_models(&client, &models, out).await? } else { Vec::new() };
    if json {
        let names: Vec<&str> = offered.iter().map(String::as_str).collect();
        return match all {
            true => Ok(out.json(&serde_json::json!({"models": models, "offered": names}))?),
            false => Ok(out.json(&models)?),
        };
    }
    if models.is_empty() && offered.is_empty() {
        return Ok(
            out.note("no model is known: set [providers.NAME] and [models] main in the configuration")?
        );
    }
    table(&models).print(out)?;
    if !offered.is_empty() {
        out.note("also offered by the providers, with properties that are not known here:")?;
        offered.iter().try_for_each(|name| out.say(name))?;
    }
    let sources: std::collections::BTreeSet<&str> = models
        .iter()
        .filter_map(|view| view.price_source.as_deref())
        .filter(|from| from.contains("://"))
        .collect();
    for source in sources {
        out.note(&format!("prices: {}", escape::line(source)))?;
    }
    Ok(())
}

/// Models that the providers offer and that the list does not contain. Prints the name of each provider that
/// cannot be reached.
async fn offered_models(
    client: &Client,
    models: &[ModelView],
    out: &mut OutputStreams,
) -> Result<Vec<String>, Failure> {
    let reply: ModelCheckReply = client.call::<methods::model::Check>(&ModelCheckParams::default()).await?;
    let mut names = Vec::new();
    for provider in &reply.providers {
        if let Some(error) = &provider.error {
            out.note(&format!("{}: {}", escape::line(&provider.name), escape::line(error)))?;
        }
        names.extend(provider.models.iter().map(|model| format!("{}/{model}", provider.name)));
    }
    names.retain(|name| !models.iter().any(|view| view.model == *name));
    Ok(names.iter().map(|name| escape::line(name).into_owned()).collect())
}

/// Runs `agentctl models --check`.
pub(crate) async fn check(reach: &Connector, json: bool, out: &mut OutputStreams) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let reply: ModelCheckReply = client.call::<methods::model::Check>(&ModelCheckParams::default()).await?;
    if json {
        out.json(&reply.providers)?;
    } else if reply.providers.is_empty() {
        out.note("no provider is configured: set [providers.NAME] in the configuration")?;
    } else {
        for provider in &reply.providers {
            let (tone, word) = if provider.ok { (Tone::Good, "ok  ") } else { (Tone::Bad, "fail") };
            let result = match (&provider.error, provider.latency_ms) {
                (Some(error), _) => format!(": {}", escape::line(error)),
                (None, Some(ms)) => format!(" answers after {ms} ms"),
                (None, None) => String::new(),
            };
            let text = format!("  {}{result}", escape::line(&provider.name));
            out.line(&StyledLine::new(tone, word).and(Tone::Plain, text))?;
        }
    }
    let is_fine = reply.providers.iter().all(|provider| provider.ok);
    if is_fine { Ok(()) } else { Err(Failure::silent(code::MODEL)) }
}

fn table(models: &[ModelView]) -> Table {
    let mut table = Table::new([
        column("MODEL").between(12, 60),
        column("FOR").between(4, 24).rank(1),
        column("WINDOW").right(),
        column("OUTPUT").right().rank(3),
        column("CAN").between(8, 40).rank(4),
        column("$/M IN").right(),
        column("OUT").right(),
        column("CACHED").right().rank(2),
        column("WRITE").right().rank(5),
        column("PRICES OF").between(8, 24).rank(6),
    ]);
    models.iter().for_each(|view| table.push(row(view)));
    table
}

fn row(view: &ModelView) -> [Cell; 10] {
    let tone = if view.known { Tone::Plain } else { Tone::Dim };
    let count = |count: Option<u32>| count.map_or_else(|| UNKNOWN.into(), |count| tokens(u64::from(count)));
    let can = [
        (view.tools, "tools"),
        (view.streaming, "stream"),
        (view.thinking, "thinking"),
        (view.vision == Some(true), "vision"),
    ];
    let can: Vec<&str> = can.iter().filter(|(can, _)| *can).map(|(_, word)| *word).collect();
    let can = if view.known { can.join(" ") } else { format!("{} (assumed)", can.join(" ")) };
    let price =
        |of: fn(&Price) -> f64| view.price.as_ref().map_or_else(|| "?".into(), |price| of(price).to_string());
    let as_of =
        view.price.and(view.price_as_of.as_deref().or(view.price_source.as_deref())).unwrap_or_default();
    [
        (Tone::Bold, escape::line(&view.model).into_owned()),
        (Tone::Good, view.pointers.join(" ")),
        (tone, count(view.context_window)),
        (tone, count(view.max_output_tokens)),
        (tone, can),
        (tone, price(|it| it.input)),
        (tone, price(|it| it.output)),
        (Tone::Dim, price(|it| it.cache_read)),
        (Tone::Dim, price(|it| it.cache_write)),
        (Tone::Dim, escape::line(as_of).into_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use crate::commands::models::*;
    use crate::fake_daemon::FakeDaemon;
    use crate::terminal::out::testing::captured_output;
    use serde_json::json;

    #[tokio::test]
    async fn unknown_model_values_are_shown_as_unknown() {
        let fake = FakeDaemon::start(|_, _, _| {
            let can = json!({"tools": true, "streaming": true, "system_role": true, "thinking": false});
            let mut allowed = can.clone();
            let mut stranger = can;
            for (view, more) in [
                (
                    &mut allowed,
                    json!({"model": "p/m", "known": true, "pointers": ["main"], "context_window": 200_000,
                    "max_output_tokens": 64_000, "vision": true, "price_as_of": "2026-03", "price_source": "https://p",
                    "price": {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75}}),
                ),
                (
                    &mut stranger,
                    json!({"model": "p/x", "known": false, "context_window": null,
                    "max_output_tokens": null, "vision": null, "price": null}),
                ),
            ] {
                let (view, more) = (view.as_object_mut().expect("an object"), more.as_object().cloned());
                view.extend(more.expect("an object"));
            }
            Ok(json!({"models": [allowed, stranger]}))
        });
        let (mut out, text, notes) = captured_output();
        models(&fake.connector(), false, false, &mut out).await.expect("listed");
        let text = text.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1..],
            [
                "p/m    main   200.0k    64.0k  tools stream vision          3   15     0.3   3.75  2026-03",
                "p/x          unknown  unknown  tools stream (assumed)       ?    ?       ?      ?  ",
            ]
        );
        assert!(notes.text().contains("https://p"), "{}", notes.text());
    }
}
