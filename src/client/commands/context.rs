//! `agentctl context` and `compact`: show the parts of the context window or the next request, and summarise the
//! conversation.

use crate::commands::abort::turn_name;
use crate::connection::connector::Connector;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::format::tokens;
use crate::terminal::out::OutputStreams;
use crate::terminal::style::{StyledLine, Tone, pad};
use api::methods;
use api::params::{CompactParams, CompactReply, SessionParams};
use types::context_view::{ContextPart, ContextView, PartName};
use types::request_view::RequestView;

/// Width of the bar in columns.
const BAR_COLUMNS: u64 = 60;

pub(crate) async fn context(
    reach: &Connector,
    name: &str,
    json: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let session_id = resolve_id::session(&client, name).await?.session_id;
    let view: ContextView = client.call::<methods::session::Context>(&SessionParams { session_id }).await?;
    if json {
        return Ok(out.json(&view)?);
    }
    for line in lines(&view) {
        out.line(&line)?;
    }
    Ok(())
}

/// Prints the system prompt of the next request.
pub(crate) async fn prompt(
    reach: &Connector,
    name: &str,
    json: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let view = next_request(reach, name).await?;
    if json {
        return Ok(out.json(&serde_json::json!({ "system": view.system }))?);
    }
    Ok(out.say_text(&view.system)?)
}

/// Prints the next request.
pub(crate) async fn request(reach: &Connector, name: &str, out: &mut OutputStreams) -> Result<(), Failure> {
    Ok(out.json(&next_request(reach, name).await?)?)
}

async fn next_request(reach: &Connector, name: &str) -> Result<RequestView, Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let session_id = resolve_id::session(&client, name).await?.session_id;
    Ok(client.call::<methods::session::Request>(&SessionParams { session_id }).await?)
}

pub(crate) async fn compact(
    reach: &Connector,
    name: &str,
    instructions: &str,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let session = resolve_id::session(&client, name).await?;
    let instructions = Some(instructions.to_owned()).filter(|text| !text.trim().is_empty());
    let params = CompactParams { session_id: session.session_id, instructions, idempotency_key: None };
    let reply: CompactReply = client.call::<methods::session::Compact>(&params).await?;
    Ok(out.say(&turn_name(&session, reply.turn_id, out))?)
}

/// The parts as a bar and as a table.
fn lines(view: &ContextView) -> Vec<StyledLine> {
    let whole = view.window.unwrap_or(view.used).max(1);
    let about = if view.estimated { "about " } else { "" };
    let of = match view.window {
        Some(window) => format!(
            " of {} tokens ({}%), {} reserved for the answer",
            tokens(window),
            view.used.saturating_mul(100) / whole,
            tokens(view.reserved_output)
        ),
        None => " tokens; the window of this model is unknown".into(),
    };
    let mut lines =
        vec![StyledLine::new(Tone::Plain, format!("{about}{}{of}", tokens(view.used))), bar(view, whole)];
    for part in view.parts.iter().filter(|part| part.tokens > 0) {
        let percent = part.tokens.saturating_mul(1_000) / whole;
        let figures = format!("{:>8} {:>3}.{}%", tokens(part.tokens), percent / 10, percent % 10);
        let (mark, tone) = mark(part.name);
        lines.push(
            StyledLine::new(tone, format!("{mark} "))
                .and(Tone::Plain, pad(&part.name.name().replace('_', " "), 14))
                .and(Tone::Plain, figures),
        );
    }
    if view.compactions > 0 {
        let times = if view.compactions == 1 { "once".into() } else { format!("{} times", view.compactions) };
        lines.push(StyledLine::new(Tone::Dim, format!("the conversation was summarised {times}")));
    }
    lines
}

fn bar(view: &ContextView, whole: u64) -> StyledLine {
    let columns = |tokens: u64| tokens.saturating_mul(BAR_COLUMNS).div_ceil(whole);
    let used = view.parts.iter().filter(|part| part.name != PartName::Free && part.tokens > 0);
    let mut line = StyledLine::new(Tone::Plain, "");
    let mut drawn = 0;
    for ContextPart { name, tokens } in used {
        let width = columns(*tokens).min(BAR_COLUMNS - drawn);
        drawn += width;
        let (mark, tone) = mark(*name);
        line = line.and(tone, mark.repeat(usize::try_from(width).unwrap_or(0)));
    }
    let reserved = view.window.map_or(0, |_| columns(view.reserved_output)).min(BAR_COLUMNS - drawn);
    let free = BAR_COLUMNS - drawn - reserved;
    let count = |columns: u64| usize::try_from(columns).unwrap_or(0);
    line.and(Tone::Dim, "·".repeat(count(free))).and(Tone::Dim, "░".repeat(count(reserved)))
}

/// The character and the colour of a part in the bar. The characters differ, so that the bar can be read without
/// colours.
fn mark(name: PartName) -> (&'static str, Tone) {
    match name {
        PartName::System => ("S", Tone::Dim),
        PartName::Instructions => ("I", Tone::Dim),
        PartName::Memory => ("N", Tone::Dim),
        PartName::Tools => ("T", Tone::Tool),
        PartName::Mcp => ("P", Tone::Tool),
        PartName::Messages => ("M", Tone::Good),
        PartName::ToolResults => ("R", Tone::Warn),
        PartName::Reminders => ("r", Tone::Dim),
        PartName::Free => ("·", Tone::Dim),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_daemon::{FakeDaemon, SESSION, TURN};
    use crate::resolve_id::sample;
    use crate::terminal::out::testing::{captured_output, captured_pipe};
    use serde_json::json;

    #[tokio::test]
    async fn compact_prints_number_on_terminal_and_turn_id_in_pipe() {
        let fake = FakeDaemon::start(|_, method, _| match method {
            "session.compact" => Ok(json!({"turn_id": TURN, "seq": 4})),
            _ => {
                let mut session = sample(SESSION, "one");
                session["number"] = json!(12);
                Ok(json!({ "session": session }))
            }
        });
        for ((mut out, text, _), expected) in
            [(captured_output(), "#12\n"), (captured_pipe(), &format!("{TURN}\n"))]
        {
            compact(&fake.connector(), "12", "", &mut out).await.expect("compacted");
            assert_eq!(text.text(), expected);
        }
    }

    #[test]
    fn bar_has_fixed_width_and_names_every_part() {
        let part = |name, tokens| ContextPart { name, tokens };
        let view = ContextView {
            window: Some(200_000),
            used: 61_500,
            reserved_output: 32_000,
            parts: vec![
                part(PartName::System, 1_000),
                part(PartName::Tools, 9_500),
                part(PartName::Messages, 1_000),
                part(PartName::ToolResults, 50_000),
                part(PartName::Free, 106_500),
            ],
            compactions: 2,
            estimated: true,
        };
        let shown: Vec<String> = lines(&view).iter().map(StyledLine::plain).collect();
        assert_eq!(shown[0], "about 61.5k of 200.0k tokens (30%), 32.0k reserved for the answer");
        assert_eq!(shown[1].chars().count(), 60, "{}", shown[1]);
        assert!(shown[1].contains("TTTRRR") || shown[1].contains("MRRR"), "{}", shown[1]);
        assert!(
            shown.iter().any(|line| line.contains("tool results") && line.contains("25.0%")),
            "{shown:?}"
        );
        assert_eq!(shown.last().map(String::as_str), Some("the conversation was summarised 2 times"));
        // If the window is unknown, the bar shows only the used part.
        let unknown = ContextView { window: None, parts: view.parts[..4].to_vec(), ..view };
        assert_eq!(lines(&unknown)[1].plain().chars().count(), 60);
    }
}
