//! `agentctl jobs`: create, list, wait for and change jobs.

mod content;
mod crontab;
mod schedule;
mod templates;
mod view;

use std::io::IsTerminal as _;
use std::time::Duration;

use api::methods;
use serde_json::json;

use crate::args::{JobAddArgs, JobListArgs, JobsArgs, JobsCommand, LogsArgs};
use crate::commands::{diff, logs};
use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::connection::remote::creation_failure;
use crate::connection::waiting::call_through_restarts;
use crate::failure::{Failure, code, code_of};
use crate::terminal::escape;
use crate::terminal::format::{format_ms, now};
use crate::terminal::out::{OutputStreams, terminal_columns};
use crate::ui::attach::{self, Options};
use api::params::{
    JobCancelParams, JobCancelReply, JobCreateReply, JobGetReply, JobListParams, JobListReply, JobParams,
    JobPauseParams, JobReply, JobRetryParams, JobUpdateParams, JobWaitParams, JobWaitReply, NoParams,
    ScheduleListReply, WorktreeDiffParams,
};
use types::ids::JobId;
use types::job::{Job, JobState};
use types::job_request::RetryMode;
use types::usage::Budgets;

/// How often `jobs -w` reads the list again. Changes are pushed; this only keeps ages up to date.
const TICK: Duration = Duration::from_secs(1);
/// Jobs that are searched for a title or the start of an id.
const SEARCHED: u32 = 500;

pub(crate) async fn jobs(
    reach: &Connector,
    args: JobsArgs,
    options: Options,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let Some(command) = args.command else { return list(reach, &args.list, out).await };
    match command {
        JobsCommand::Add(add_args) => match &add_args.from_crontab {
            Some(line) => schedule::from_crontab(reach, line, add_args.yes, out).await,
            None => add(reach, *add_args, out).await,
        },
        JobsCommand::Schedule { command } => schedule::schedule(reach, command, out).await,
        JobsCommand::Show { job, json } => show(reach, &job, json, out).await,
        JobsCommand::Wait { job, timeout, json } => {
            let client = reach.connect_or_start().await?;
            let id = resolve(&client, &job).await?;
            wait(reach, client, (id, timeout), json, out).await
        }
        JobsCommand::Diff { job, json, stat } => {
            let client = reach.connect_or_start().await?;
            let job_id = Some(resolve(&client, &job).await?);
            let params = WorktreeDiffParams { job_id, ..WorktreeDiffParams::default() };
            diff::worktree_diff(&client, &params, json, stat, out).await
        }
        JobsCommand::Cancel { jobs, reason } => cancel(reach, &jobs, reason, out).await,
        JobsCommand::Retry { job, r#continue } => retry(reach, &job, r#continue, out).await,
        JobsCommand::Logs { job, attempt, follow, json } => {
            let session = session_of(reach, &job, attempt).await?;
            let log = LogsArgs { session, follow, json, ..LogsArgs::default() };
            logs::logs(reach, &log, out).await
        }
        JobsCommand::Attach { job } => {
            let session = session_of(reach, &job, None).await?;
            attach::attach(reach, &session, options, out).await
        }
        JobsCommand::Update { job, priority, r#in, at, max_usd } => {
            let client = reach.connect_or_start().await?;
            let job_id = resolve(&client, &job).await?;
            let run_at_ms = content::start_time(r#in, at.as_deref())?;
            let budgets = max_usd.map(|usd| Budgets { usd_micros: Some(usd), ..Budgets::default() });
            let params =
                JobUpdateParams { job_id, priority, run_at_ms, labels: None, budgets, idempotency_key: None };
            let reply: JobReply = client.call::<methods::job::Update>(&params).await?;
            Ok(out.say(&view::line(&reply.job))?)
        }
        JobsCommand::Pause => set_paused(reach, true, out).await,
        JobsCommand::Resume => set_paused(reach, false, out).await,
        JobsCommand::Templates { json } => templates::templates(reach, json, out).await,
    }
}

/// The job with this id, the only one whose id starts with it, or the only one with this title.
pub(crate) async fn resolve(client: &Client, name: &str) -> Result<JobId, Failure> {
    if let Ok(id) = name.parse::<JobId>() {
        return Ok(id);
    }
    if name.trim().is_empty() {
        return Err(Failure::usage("name a job by its id, by the start of its id, or by its title"));
    }
    let params = JobListParams { limit: Some(SEARCHED), ..JobListParams::default() };
    let listed: JobListReply = client.call::<methods::job::List>(&params).await?;
    choose(&listed.jobs, name)
}

fn choose(jobs: &[Job], name: &str) -> Result<JobId, Failure> {
    let start = name.strip_prefix("job_").unwrap_or(name).to_ascii_lowercase();
    let starts = |job: &&Job| !start.is_empty() && job.job_id.to_string()[4..].starts_with(&start);
    let mut matching: Vec<&Job> = jobs.iter().filter(starts).collect();
    if matching.is_empty() {
        matching = jobs.iter().filter(|job| job.title == name).collect();
    }
    let shown = escape::line(name);
    match matching.as_slice() {
        [one] => Ok(one.job_id),
        [] => Err(Failure::usage(format!("there is no job {shown}; `agentctl jobs` lists them"))),
        several => {
            let ids: Vec<String> = several.iter().take(5).map(|job| job.job_id.to_string()).collect();
            Err(Failure::usage(format!("{shown} could be any of {}", ids.join(", "))))
        }
    }
}

async fn get(client: &Client, job_id: JobId) -> Result<JobGetReply, Failure> {
    Ok(client.call::<methods::job::Get>(&JobParams { job_id }).await?)
}

/// The session of an attempt, by its id.
async fn session_of(reach: &Connector, name: &str, attempt: Option<u32>) -> Result<String, Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let job_id = resolve(&client, name).await?;
    let job = get(&client, job_id).await?.job;
    let attempts = job.result.as_ref().map(|result| result.attempts.as_slice()).unwrap_or_default();
    let session = match attempt {
        Some(number) if number != job.attempt => {
            attempts.iter().find(|it| it.attempt == number).map(|it| it.session_id)
        }
        _ => job.session_id,
    };
    session.map(|id| id.to_string()).ok_or_else(|| match attempt {
        Some(number) => Failure::usage(format!("the job has no attempt {number}")),
        None => Failure::usage(format!("the job is {} and has no attempt yet", job.state.name())),
    })
}

async fn list(reach: &Connector, args: &JobListArgs, out: &mut OutputStreams) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let params = JobListParams {
        states: (!args.state.is_empty()).then(|| args.state.clone()),
        label: args.label.clone(),
        limit: Some(args.limit.clamp(1, 500)),
        ..JobListParams::default()
    };
    if args.watch {
        return watch(&reach.as_observer(), client, &params, out).await;
    }
    let listed: JobListReply = client.call::<methods::job::List>(&params).await?;
    if args.json {
        return Ok(out.json(&listed.jobs)?);
    }
    let names = schedule_names(&client, &listed.jobs).await?;
    print(&listed.jobs, &names, out)
}

/// The names of all schedules, if one of these jobs belongs to a schedule.
async fn schedule_names<'j>(
    client: &Client,
    jobs: impl IntoIterator<Item = &'j Job>,
) -> Result<view::ScheduleNames, Failure> {
    if jobs.into_iter().all(|job| job.schedule_id.is_none()) {
        return Ok(view::ScheduleNames::new());
    }
    let listed: ScheduleListReply = client.call::<methods::schedule::List>(&NoParams {}).await?;
    Ok(listed.schedules.into_iter().map(|schedule| (schedule.schedule_id, schedule.name)).collect())
}

fn print(jobs: &[Job], names: &view::ScheduleNames, out: &mut OutputStreams) -> Result<(), Failure> {
    if jobs.is_empty() {
        return Ok(out.say("no jobs; `agentctl jobs add -p PROMPT` creates one")?);
    }
    let columns = std::io::stdout().is_terminal().then(terminal_columns);
    view::table(jobs, names, now(), std::env::var("HOME").ok().as_deref())
        .lines(columns)
        .iter()
        .try_for_each(|line| Ok(out.line(line)?))
}

async fn watch(
    reach: &Connector,
    mut client: Client,
    params: &JobListParams,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let is_screen = std::io::stdout().is_terminal();
    let mut ids = Vec::new();
    loop {
        let listed: JobListReply =
            call_through_restarts::<methods::job::List>(reach, &mut client, None, |_| params.clone(), out)
                .await?;
        if is_screen {
            let names = schedule_names(&client, &listed.jobs).await?;
            out.stream("\x1b[H\x1b[2J")?;
            print(&listed.jobs, &names, out)?;
        } else {
            let is_new = |job: &&Job| !ids.contains(&(job.job_id, job.seq));
            for job in listed.jobs.iter().rev().filter(is_new) {
                out.say(&view::line(job))?;
            }
        }
        ids = listed.jobs.iter().map(|job| (job.job_id, job.seq)).collect();
        tokio::time::sleep(TICK).await;
    }
}

async fn add(reach: &Connector, args: JobAddArgs, out: &mut OutputStreams) -> Result<(), Failure> {
    let request = content::request(&args, reach.machine())?;
    let client = reach.connect_or_start().await?;
    let created = client.call::<methods::job::Create>(&request).await;
    let reply: JobCreateReply = created.map_err(|error| creation_failure(error, reach.machine()))?;
    if args.wait {
        out.note(&view::line(&reply.job))?;
        return wait(reach, client, (reply.job.job_id, None), args.json, out).await;
    }
    if args.json {
        return Ok(out.json(&json!({"job": reply.job, "existing": reply.existing}))?);
    }
    if reply.existing {
        out.note("a job with this key exists already")?;
    }
    Ok(out.say(&reply.job.job_id.to_string())?)
}

async fn show(reach: &Connector, name: &str, json: bool, out: &mut OutputStreams) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let job_id = resolve(&client, name).await?;
    let reply = get(&client, job_id).await?;
    if json {
        return Ok(out.json(&reply)?);
    }
    let names = schedule_names(&client, [&reply.job]).await?;
    view::details(&reply, &names, now()).iter().try_for_each(|line| Ok(out.wrapped_line(line)?))
}

/// Waits for the end of a job and prints its answer. The exit code is that of the job.
async fn wait(
    reach: &Connector,
    mut client: Client,
    (job_id, timeout_ms): (JobId, Option<u64>),
    json: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let params = |timeout_ms| JobWaitParams { job_id, timeout_ms };
    let reply: JobWaitReply =
        call_through_restarts::<methods::job::Wait>(reach, &mut client, timeout_ms, params, out).await?;
    let job = reply.job;
    let turn = job.result.as_ref().and_then(|result| result.turn.as_ref());
    if json {
        out.json(&job)?;
    } else if let Some(turn) = turn {
        out.say_text(&turn.text)?;
    }
    if reply.timed_out {
        let waited = timeout_ms.map(format_ms).unwrap_or_default();
        return Err(Failure::internal(format!("the job is {} after {waited}", job.state.name())));
    }
    end_of(&job)
}

/// The exit code of a job that is over.
fn end_of(job: &Job) -> Result<(), Failure> {
    let exit = match job.state {
        JobState::Succeeded => return Ok(()),
        JobState::Cancelled => code::ABORTED,
        JobState::Expired | JobState::Skipped => code::INTERNAL,
        _ => {
            let subtype =
                job.result.as_ref().and_then(|result| result.turn.as_ref()).map(|turn| turn.subtype);
            match subtype.map(|subtype| code_of(subtype.name())) {
                None | Some(code::SUCCESS) => code::INTERNAL,
                Some(exit) => exit,
            }
        }
    };
    let reason = job.error.as_ref().map_or(job.state.name(), |error| error.message.as_str());
    let verb = if job.state == JobState::Failed { "has" } else { "is" };
    Err(Failure::new(exit, format!("the job {verb} {}: {}", job.state.name(), escape::line(reason))))
}

async fn cancel(
    reach: &Connector,
    names: &[String],
    reason: Option<String>,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    for name in names {
        let job_id = resolve(&client, name).await?;
        let params = JobCancelParams { job_id, reason: reason.clone(), idempotency_key: None };
        let reply: JobCancelReply = client.call::<methods::job::Cancel>(&params).await?;
        out.say(&view::line(&reply.job))?;
        if !reply.survivors.is_empty() {
            out.note(&format!("these processes could not be ended: {:?}", reply.survivors))?;
        }
    }
    Ok(())
}

async fn retry(
    reach: &Connector,
    name: &str,
    continues: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let job_id = resolve(&client, name).await?;
    let mode = continues.then_some(RetryMode::Continue);
    let params = JobRetryParams { job_id, mode, idempotency_key: None };
    let reply: JobReply = client.call::<methods::job::Retry>(&params).await?;
    Ok(out.say(&view::line(&reply.job))?)
}

async fn set_paused(reach: &Connector, paused: bool, out: &mut OutputStreams) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let params = JobPauseParams::default();
    let reply = match paused {
        true => client.call::<methods::job::Pause>(&params).await?,
        false => client.call::<methods::job::Resume>(&params).await?,
    };
    Ok(out.say(match reply.paused {
        true => "no further jobs start; running ones continue (`agentctl jobs resume` starts jobs again)",
        false => "jobs start again",
    })?)
}
