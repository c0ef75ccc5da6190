//! `agentctl jobs schedule`: what creates jobs at given times.

use api::{Code, methods};
use jiff::tz::TimeZone;

use super::{content, crontab};
use crate::args::{ScheduleAddArgs, ScheduleCommand};
use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::connection::paths;
use crate::connection::remote::Machine;
use crate::connection::wire::CallError;
use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::format::{age, format_ms, now};
use crate::terminal::out::OutputStreams;
use crate::terminal::style::Tone;
use crate::terminal::table::{Table, column};
use crate::ui::summary::one_line;
use api::params::{
    NoParams, ScheduleChangeParams, ScheduleListReply, ScheduleNextParams, ScheduleNextReply, ScheduleParams,
    ScheduleReply,
};
use types::config_values::ConfigDuration;
use types::ids::ScheduleId;
use types::schedule::{NewSchedule, Schedule, ScheduleUpdate};
use types::time::Timestamp;

/// Characters of an id that tell schedules apart: the milliseconds of their creation.
const SHORT_ID: std::ops::Range<usize> = 6..19;

pub(super) async fn schedule(
    reach: &Connector,
    command: ScheduleCommand,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    match command {
        ScheduleCommand::Add(args) => add(reach, &args, out).await,
        ScheduleCommand::Ls { json } => list(reach, json, out).await,
        ScheduleCommand::Rm { schedules } => remove(reach, &schedules, out).await,
        ScheduleCommand::Enable { schedules } => enable(reach, &schedules, true, out).await,
        ScheduleCommand::Disable { schedules } => enable(reach, &schedules, false, out).await,
        ScheduleCommand::Run { schedule } => run(reach, &schedule, out).await,
        ScheduleCommand::Next { what, count, timezone, json } => {
            let times = next(reach, &what, count, timezone.as_deref()).await?;
            if json {
                return Ok(out.json(&times.times_ms)?);
            }
            times.times_ms.iter().try_for_each(|at| Ok(out.say(&moment(*at, times.zone.as_deref()))?))
        }
    }
}

/// Creates a schedule and prints its id and its next time.
pub(super) async fn add(
    reach: &Connector,
    args: &ScheduleAddArgs,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let new = new_schedule(args, reach.machine())?;
    let client = reach.connect_or_start().await?;
    let reply: ScheduleReply = client.call::<methods::schedule::Create>(&new).await?;
    if args.json {
        return Ok(out.json(&reply)?);
    }
    Ok(out.say(&line(&reply.schedule))?)
}

/// Prints what lines of a crontab would become. Creates the schedules only if the user said so.
pub(super) async fn from_crontab(
    reach: &Connector,
    line: &str,
    is_confirmed: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let text = match line {
        "-" => {
            std::io::read_to_string(std::io::stdin()).map_err(|error| Failure::usage(error.to_string()))?
        }
        line => line.to_owned(),
    };
    let mut translations = Vec::new();
    for (line, translated) in crontab::translate_all(&text) {
        let problem = match translated {
            Ok(made) => match times_problem(reach, &made.schedule).await? {
                None => {
                    translations.push(made);
                    continue;
                }
                Some(problem) => format!("cannot be translated: {problem}"),
            },
            Err(problem) => problem,
        };
        out.note(&format!("not translated: {}: {}", one_line(line, 200), escape::line(&problem)))?;
    }
    if translations.is_empty() {
        return Err(Failure::usage("there is no line that could be translated"));
    }
    for made in &translations {
        out.say(&escape::line(&made.command()))?;
        made.notes.iter().try_for_each(|note| out.note(&escape::line(note)))?;
    }
    if !is_confirmed {
        return Ok(out.note("nothing was created; --yes does it. Then remove the lines from the crontab")?);
    }
    for made in &translations {
        add(reach, &made.schedule, out).await?;
    }
    Ok(())
}

/// Why the daemon does not accept the pattern or the zone: crons differ in what they understand.
async fn times_problem(reach: &Connector, args: &ScheduleAddArgs) -> Result<Option<String>, Failure> {
    let Some(cron) = args.cron.clone() else { return Ok(None) };
    let client = reach.as_observer().connect_or_start().await?;
    let params = ScheduleNextParams { cron, timezone: args.timezone.clone(), count: 1 };
    match client.call::<methods::schedule::Next>(&params).await {
        Ok(_) => Ok(None),
        Err(CallError::Fault(fault)) if fault.code == Code::InvalidParams.number() => Ok(Some(fault.message)),
        Err(error) => Err(error.into()),
    }
}

fn new_schedule(args: &ScheduleAddArgs, machine: Machine) -> Result<NewSchedule, Failure> {
    Ok(NewSchedule {
        name: args.name.clone(),
        job: Box::new(content::content(&args.content, machine)?),
        cron: args.cron.clone(),
        every: args.every.map(ConfigDuration::from_millis),
        timezone: args.timezone.clone(),
        jitter: args.jitter.map(ConfigDuration::from_millis),
        overlap: args.overlap,
        catch_up: args.catch_up,
        catch_up_window: args.catch_up_window.map(ConfigDuration::from_millis),
        until_ms: content::start_time(None, args.until.as_deref())?,
        max_failures: args.max_failures,
        enabled: !args.disabled,
        idempotency_key: None,
    })
}

/// The schedule with this id, the only one whose id starts with it, or the only one with this name.
async fn resolve(client: &Client, name: &str) -> Result<ScheduleId, Failure> {
    if let Ok(id) = name.parse::<ScheduleId>() {
        return Ok(id);
    }
    let listed: ScheduleListReply = client.call::<methods::schedule::List>(&NoParams {}).await?;
    choose(&listed.schedules, name)
}

fn choose(schedules: &[Schedule], name: &str) -> Result<ScheduleId, Failure> {
    let start = name.strip_prefix("sched_").unwrap_or(name).to_ascii_lowercase();
    let is_id = |it: &&Schedule| !start.is_empty() && it.schedule_id.to_string()[6..].starts_with(&start);
    let mut matching: Vec<&Schedule> = schedules.iter().filter(|it| it.name == name).collect();
    if matching.is_empty() {
        matching = schedules.iter().filter(is_id).collect();
    }
    let shown = escape::line(name);
    match matching.as_slice() {
        [one] => Ok(one.schedule_id),
        [] => Err(Failure::usage(format!(
            "there is no schedule {shown}; `agentctl jobs schedule ls` lists them"
        ))),
        several => {
            let ids: Vec<String> = several.iter().take(5).map(|it| it.schedule_id.to_string()).collect();
            Err(Failure::usage(format!("{shown} could be any of {}", ids.join(", "))))
        }
    }
}

async fn list(reach: &Connector, json: bool, out: &mut OutputStreams) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let listed: ScheduleListReply = client.call::<methods::schedule::List>(&NoParams {}).await?;
    if json {
        return Ok(out.json(&listed.schedules)?);
    }
    if listed.schedules.is_empty() {
        let hint = "`agentctl jobs schedule add NAME --cron '0 3 * * *' -p PROMPT` creates one";
        return Ok(out.say(&format!("no schedules; {hint}"))?);
    }
    table(&listed.schedules, now(), std::env::var("HOME").ok().as_deref()).print(out)
}

fn table(schedules: &[Schedule], now: Timestamp, home: Option<&str>) -> Table {
    let mut table = Table::new([
        column("SCHEDULE"),
        column("NAME").between(8, 32),
        column("WHEN").between(8, 28),
        column("ZONE").between(3, 24).rank(3),
        column("NEXT").right(),
        column("LAST").right().rank(1),
        column("FAILS").right().rank(2),
        column("FOLDER").between(8, 28).rank(4).keep_end(),
        column("NOTE").between(8, 60),
    ]);
    for schedule in schedules {
        let next = match schedule.next_fire_ms {
            Some(next) => (Tone::Plain, format!("in {}", age(next.since(now)))),
            None if schedule.enabled => (Tone::Dim, "over".to_owned()),
            None => (Tone::Warn, "disabled".to_owned()),
        };
        let last = schedule.last_slot_ms.map(|last| age(now.since(last))).unwrap_or_default();
        let fails = Some(schedule.failures).filter(|count| *count > 0);
        table.push([
            (Tone::Bold, short_id(schedule)),
            (Tone::Plain, one_line(&schedule.name, 200)),
            (Tone::Plain, when(schedule)),
            (Tone::Dim, schedule.cron.as_ref().map(|_| schedule.timezone.clone()).unwrap_or_default()),
            next,
            (Tone::Dim, last),
            (Tone::Bad, fails.map(|count| count.to_string()).unwrap_or_default()),
            (Tone::Dim, escape::line(&paths::short(&schedule.job.cwd, home)).into_owned()),
            (Tone::Dim, one_line(schedule.error.as_deref().unwrap_or_default(), 200)),
        ]);
    }
    table
}

fn short_id(schedule: &Schedule) -> String {
    let full = schedule.schedule_id.to_string();
    full.get(SHORT_ID).unwrap_or(&full).to_owned()
}

fn when(schedule: &Schedule) -> String {
    match (&schedule.cron, schedule.every) {
        (Some(cron), _) => one_line(cron, 80),
        (None, Some(every)) => format!("every {}", format_ms(every.millis())),
        (None, None) => String::new(),
    }
}

fn line(schedule: &Schedule) -> String {
    let zone = schedule.cron.as_ref().map(|_| schedule.timezone.as_str());
    let next = match schedule.next_fire_ms {
        Some(next) => format!("next {}", moment(next, zone)),
        None if schedule.enabled => "has no further time".to_owned(),
        None => "disabled".to_owned(),
    };
    format!("{}  {}  {next}", schedule.schedule_id, one_line(&schedule.name, 80))
}

/// A time in a zone of its own, or in the local one.
fn moment(time: Timestamp, zone: Option<&str>) -> String {
    let zone = zone.and_then(|name| TimeZone::get(name).ok()).unwrap_or_else(TimeZone::system);
    match jiff::Timestamp::from_millisecond(time.0) {
        Ok(instant) => {
            let local = instant.to_zoned_datetime(zone).strftime("%a %Y-%m-%d %H:%M %Z").to_string();
            format!("{local} (in {})", age(time.since(now())))
        }
        Err(_) => time.minute(),
    }
}

async fn remove(reach: &Connector, names: &[String], out: &mut OutputStreams) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    for name in names {
        let params =
            ScheduleChangeParams { schedule_id: resolve(&client, name).await?, idempotency_key: None };
        let reply: ScheduleReply = client.call::<methods::schedule::Delete>(&params).await?;
        out.say(&format!("deleted {}  {}", reply.schedule.schedule_id, one_line(&reply.schedule.name, 80)))?;
    }
    Ok(())
}

async fn enable(
    reach: &Connector,
    names: &[String],
    enabled: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    for name in names {
        let update = ScheduleUpdate {
            enabled: Some(enabled),
            ..ScheduleUpdate::unchanged(resolve(&client, name).await?)
        };
        let reply: ScheduleReply = client.call::<methods::schedule::Update>(&update).await?;
        out.say(&line(&reply.schedule))?;
    }
    Ok(())
}

async fn run(reach: &Connector, name: &str, out: &mut OutputStreams) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let params = ScheduleChangeParams { schedule_id: resolve(&client, name).await?, idempotency_key: None };
    let reply: ScheduleReply = client.call::<methods::schedule::Trigger>(&params).await?;
    Ok(out.say(&reply.schedule.last_job_id.map(|id| id.to_string()).unwrap_or_default())?)
}

/// The next times, with the zone in which they are shown.
struct NextTimes {
    times_ms: Vec<Timestamp>,
    zone: Option<String>,
}

async fn next(
    reach: &Connector,
    what: &str,
    count: u32,
    timezone: Option<&str>,
) -> Result<NextTimes, Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let is_pattern = what.starts_with('@') || what.split_whitespace().count() == 5;
    let (cron, zone) = if is_pattern {
        (what.to_owned(), timezone.map(str::to_owned))
    } else {
        let params = ScheduleParams { schedule_id: resolve(&client, what).await? };
        let reply: ScheduleReply = client.call::<methods::schedule::Get>(&params).await?;
        match (reply.schedule.cron, reply.schedule.every, reply.schedule.next_fire_ms) {
            (Some(cron), ..) => (cron, Some(reply.schedule.timezone)),
            (None, Some(every), Some(next)) => {
                let times_ms = (0..u64::from(count)).map(|n| next.plus(n.saturating_mul(every.millis())));
                return Ok(NextTimes { times_ms: times_ms.collect(), zone: None });
            }
            (None, ..) => return Ok(NextTimes { times_ms: Vec::new(), zone: None }),
        }
    };
    let params = ScheduleNextParams { cron, timezone: zone.clone(), count };
    let reply: ScheduleNextReply = client.call::<methods::schedule::Next>(&params).await?;
    Ok(NextTimes { times_ms: reply.times_ms, zone })
}
