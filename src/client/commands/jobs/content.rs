//! The content of a job from the command line.

use std::io::Read as _;

use jiff::ZonedDateTime;
use jiff::civil::{DateTime, Time};
use serde_json::Value;

use crate::args::{JobAddArgs, JobContentArgs, folder};
use crate::connection::paths;
use crate::connection::remote::Machine;
use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::format::now;
use types::config_values::ConfigDuration;
use types::job_request::{Concurrency, JobRequest, OnComplete, RetryPolicy, Unique, UniqueScope};
use types::time::Timestamp;
use types::tool::ToolChoice;
use types::usage::Budgets;
use types::worktree::WorktreeChoice;

pub(super) fn request(args: &JobAddArgs, machine: Machine) -> Result<JobRequest, Failure> {
    let run_at_ms = start_time(args.r#in, args.at.as_deref())?;
    let unique = args.unique.clone().map(|key| Unique {
        key,
        scope: UniqueScope::Active,
        on_conflict: types::job_request::OnConflict::Return,
    });
    Ok(JobRequest { run_at_ms, unique, ..content(&args.content, machine)? })
}

/// What a job is asked to do.
pub(super) fn content(args: &JobContentArgs, machine: Machine) -> Result<JobRequest, Failure> {
    let prompt = match args.prompt.as_deref() {
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(|error| Failure::usage(error.to_string()))?;
            Some(text)
        }
        Some(text) => Some(text.to_owned()),
        None if args.template.is_empty() => {
            return Err(Failure::usage(
                "name a prompt (-p TEXT, or -p - for standard input) or a --template",
            ));
        }
        None => None,
    };
    let mut template = args.template.iter();
    let name = template.next().cloned();
    let parameters = template.map(|pair| parameter(pair)).collect::<Result<_, _>>()?;
    let cwd = match &args.work_dir {
        Some(dir) => folder(dir, machine)?,
        None => folder(&paths::current_folder()?, machine)?,
    };
    let budgets = Budgets {
        usd_micros: args.max_usd,
        model_calls: args.max_turns,
        wall_time_ms: args.max_time,
        ..Budgets::default()
    };
    let tools = ToolChoice { allow: args.tools.clone(), deny: Vec::new() };
    Ok(JobRequest {
        prompt,
        template: name,
        parameters,
        cwd,
        title: args.title.clone(),
        model: args.model.clone(),
        mode: args.approval_mode,
        agent: args.agent.clone(),
        tools: (!tools.is_all()).then_some(tools),
        budgets: (budgets != Budgets::default()).then_some(budgets),
        output_schema: args.output_schema.as_deref().map(crate::args::json_file).transpose()?,
        worktree: args.worktree.as_ref().map(|branch| WorktreeChoice {
            branch: Some(branch.clone()).filter(|branch| !branch.is_empty()),
            ..WorktreeChoice::with_defaults()
        }),
        retry: args.attempts.map(|attempts| RetryPolicy { attempts, ..RetryPolicy::default() }),
        priority: args.priority,
        concurrency: args.concurrency.as_deref().map(concurrency).transpose()?,
        start_deadline: args.start_within.map(ConfigDuration::from_millis),
        on_complete: args.notify.iter().map(|name| notify(name)).collect(),
        artifacts: args.artifact.clone(),
        labels: args.label.iter().cloned().collect(),
        ..JobRequest::default()
    })
}

/// `NAME` of a table `[jobs.notify.NAME]` with a `url`; `command:NAME` for one with a `command`.
fn notify(name: &str) -> OnComplete {
    match name.split_once(':') {
        Some(("command", name)) => OnComplete { command: Some(name.to_owned()), ..OnComplete::default() },
        Some(("webhook", name)) => OnComplete { webhook: Some(name.to_owned()), ..OnComplete::default() },
        _ => OnComplete { webhook: Some(name.to_owned()), ..OnComplete::default() },
    }
}

/// A parameter of a template, sent as text. The daemon reads numbers and booleans from it where the template wants them.
fn parameter(pair: &str) -> Result<(String, Value), Failure> {
    let Some((name, value)) = pair.split_once('=') else {
        return Err(Failure::usage(format!("expected NAME=VALUE, got {}", escape::line(pair))));
    };
    Ok((name.to_owned(), Value::from(value)))
}

fn concurrency(text: &str) -> Result<Concurrency, Failure> {
    match text.rsplit_once('=') {
        None => Ok(Concurrency { key: text.to_owned(), limit: 1 }),
        Some((key, limit)) => match limit.parse() {
            Ok(limit) => Ok(Concurrency { key: key.to_owned(), limit }),
            Err(_) => Err(Failure::usage(format!("expected KEY=LIMIT, got {}", escape::line(text)))),
        },
    }
}

/// The start of a job: after a duration in milliseconds, or at a local time.
pub(super) fn start_time(in_ms: Option<u64>, at: Option<&str>) -> Result<Option<Timestamp>, Failure> {
    match (in_ms, at) {
        (Some(ms), _) => Ok(Some(now().plus(ms))),
        (None, Some(text)) => local_time(text, &ZonedDateTime::now()).map(Some),
        (None, None) => Ok(None),
    }
}

/// A time of day, which is the next one; a date and time; or a time with its own offset (RFC 3339).
fn local_time(text: &str, now: &ZonedDateTime) -> Result<Timestamp, Failure> {
    let wrong = || {
        let shown = escape::line(text);
        Failure::usage(format!("{shown} is not a time: give 23:30, \"2026-12-01 02:00\" or an RFC 3339 time"))
    };
    if let Ok(instant) = text.parse::<jiff::Timestamp>() {
        return Ok(Timestamp(instant.as_millisecond()));
    }
    if let Ok(civil) = text.trim().replacen(' ', "T", 1).parse::<DateTime>() {
        let zoned = civil.to_zoned_datetime(now.time_zone().clone()).map_err(|_| wrong())?;
        return Ok(Timestamp(zoned.timestamp().as_millisecond()));
    }
    let time = text.trim().parse::<Time>().map_err(|_| wrong())?;
    let on = |date: jiff::civil::Date| {
        date.to_datetime(time).to_zoned_datetime(now.time_zone().clone()).map_err(|_| wrong())
    };
    let today = on(now.date())?;
    let next = if today > *now { today } else { on(now.date().tomorrow().map_err(|_| wrong())?)? };
    Ok(Timestamp(next.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_day_is_the_next_one() {
        let now: ZonedDateTime = "2026-11-29T12:00:00+01:00[Europe/Berlin]".parse().expect("a time");
        let check = |text: &str, expected: &str| {
            let expected: jiff::Timestamp = expected.parse().expect("a time");
            assert_eq!(local_time(text, &now).expect(text).0, expected.as_millisecond(), "{text}");
        };
        check("23:30", "2026-11-29T22:30:00Z");
        check("02:00", "2026-11-30T01:00:00Z");
        check("2026-12-01 02:00", "2026-12-01T01:00:00Z");
        check("2026-12-01T02:00:00Z", "2026-12-01T02:00:00Z");
        assert!(local_time("soon", &now).is_err());
    }

    #[test]
    fn parameters_are_sent_as_text() {
        assert_eq!(parameter("n=007").expect("one"), ("n".into(), Value::from("007")));
        assert_eq!(parameter("text=a=b").expect("one"), ("text".into(), Value::from("a=b")));
        assert!(parameter("nothing").is_err());
        assert_eq!(concurrency("gpu=2").expect("one").limit, 2);
        assert!(concurrency("gpu=two").is_err());
    }
}
