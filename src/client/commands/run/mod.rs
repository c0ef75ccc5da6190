//! `agentctl run`: creates a session, gives it one task, and prints the answer as it is streamed.

use api::methods;
use std::io::{self, IsTerminal as _};
use std::path::Path;

use crate::answer::policy::AnswerPolicy;
use crate::args::{Output, RunArgs, Thinking, folder};
use crate::commands::run::model_key::with_model;
use crate::commands::trust;
use crate::connection::client::{CallError, Client};
use crate::connection::connector::Connector;
use crate::connection::follow::SessionFollower;
use crate::connection::input_files::mentioned_in_argument;
use crate::connection::mcp_file::load_servers;
use crate::connection::plain_text::is_plain_text;
use crate::connection::remote::{Machine, creation_failure};
use crate::connection::session_calls::{idempotency_key, submit_params};
use crate::connection::{paths, stdin};
use crate::failure::{Failure, code};
use crate::resolve_id;
use crate::terminal::out::OutputStreams;
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::attach;
use crate::ui::attach::Options as Shown;
use crate::ui::watch::{TurnEnd, TurnWatcher};
use api::params::{
    CommandListParams, CreateParams, EndParams, SessionReply, SubmitInput, SubmitParams, UpdateParams,
};
use types::ablation::Ablation;
use types::ids::{SessionId, TurnId};
use types::outcome::SubmitOutcome;
use types::session::SessionView;
use types::turn_options::TurnOptions;
use types::worktree::WorktreeChoice;

/// The reason for a denial when there is no terminal for an approval prompt.
const NO_TERMINAL: &str = "no terminal to ask; run with -a … or attach";

/// File that records for which folders and on which days `run` said that the folder is not trusted.
const TRUST_NOTICE_FILE: &str = "told-trust";

pub(crate) async fn run(
    reach: &Connector,
    args: RunArgs,
    options: Shown,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let interactive = io::stdin().is_terminal() && io::stdout().is_terminal() && args.output == Output::Text;
    let machine = reach.machine();
    let mut params = create_params(&args, machine)?;
    if !interactive && args.output != Output::StreamJson {
        if args.binary_feedback {
            return Err(Failure::usage(
                "--binary-feedback needs a terminal, or --output stream-json for a program that chooses",
            ));
        }
        // This command has no user who could choose an answer, so override the configuration.
        params.binary_feedback = (!args.background).then_some(false);
    }
    let is_piped = matches!(args.prompt.as_deref(), None | Some("-"));
    let prompt = prompt(args.prompt.clone())?;
    let text = prompt.clone();
    let piped = if is_piped { None } else { stdin::read_piped(out)? };
    let mentioned = match is_piped {
        true => Vec::new(),
        false => mentioned_in_argument(&text, (Path::new(&params.cwd), machine), out)?,
    };
    let input = args.given.input(prompt, piped, mentioned, machine)?;
    let client = reach.connect_or_start().await?;
    if !args.background {
        client.prepare_subscription();
    }
    let (client, _) = with_model(reach, client, args.turn.model.as_deref(), out).await?;
    let raw = args.raw || is_plain_text(&client, &text, &command_place(&params), out).await?;
    let task = NewInput { input, raw };
    if args.trust {
        trust::trust_now(&client, params.cwd.clone(), out).await?;
    }
    if interactive && !args.trust {
        trust::ask_once(reach, &client, &params.cwd, out).await?;
    }
    if args.background {
        let session = create(&client, &params, machine).await?.session_id;
        submit_first(&client, session, task).await?;
        return Ok(out.say(&session.to_string())?);
    }
    let asking = if interactive { AnswerPolicy::Person } else { AnswerPolicy::Deny(NO_TERMINAL) };
    let is_whole = args.output == Output::StreamJson;
    let thinking = args.thinking.unwrap_or(if is_whole { Thinking::Show } else { Thinking::Hide });
    let shown = Shown { thinking, is_raw: args.raw, is_quiet: args.quiet, ..options };
    if args.continued {
        let session = resolve_id::newest_here(&client).await?;
        let ended = submit_and_follow(reach, client, session, task, &args, (asking, shown), out).await?;
        return finish(&ended, args.output, out);
    }
    let ended = follow(reach, client, &params, task, asking, (args.output, shown), out).await?;
    finish(&ended, args.output, out)
}

pub(crate) struct NewInput {
    pub(crate) input: SubmitInput,
    /// Whether the text goes to the model even if it looks like a command or a note.
    pub(crate) raw: bool,
}

#[cfg(test)]
impl NewInput {
    /// A task with this text.
    fn new(text: &str) -> Self {
        Self { input: text.into(), raw: false }
    }
}

/// Creates a session, submits the task and follows the turn.
pub(crate) async fn follow(
    reach: &Connector,
    client: Client,
    params: &CreateParams,
    task: NewInput,
    asking: AnswerPolicy,
    (output, shown): (Output, Shown),
    out: &mut OutputStreams,
) -> Result<TurnEnd, Failure> {
    let session = create(&client, params, reach.machine()).await?;
    let id = session.session_id;
    // At once, because each needs a round trip to the daemon's machine.
    let (submitted, follow) = tokio::join!(
        submit_first(&client, id, task),
        SessionFollower::start_with(reach, &client, id, 0, shown.thinking.include())
    );
    let (turn, follow) = (submitted?.turn_id, follow?);
    if output == Output::Text && !shown.is_quiet {
        out.note(&format!("session {}", crate::terminal::format::session_name(&session)))?;
    }
    let hint = params.worktree.as_ref().filter(|_| output == Output::Text && !shown.is_quiet).map(|_| {
        let id = session.session_id;
        format!("the changes are in a worktree: agentctl diff {id}, agentctl merge {id}")
    });
    let ended = watch(reach, client, follow, (session, turn), asking, (output, shown), out).await?;
    if let Some(hint) = hint {
        out.note(&hint)?;
    }
    Ok(ended)
}

/// Follows a turn: on the screen if a user is at the terminal, otherwise line by line.
async fn watch(
    reach: &Connector,
    client: Client,
    follow: SessionFollower,
    (session, turn): (SessionView, TurnId),
    asking: AnswerPolicy,
    (output, shown): (Output, Shown),
    out: &mut OutputStreams,
) -> Result<TurnEnd, Failure> {
    let has_screen = attach::is_full_terminal(shown.is_plain) && !shown.is_quiet;
    if asking == AnswerPolicy::Person && output == Output::Text && has_screen {
        return attach::follow_one_turn(reach, client, follow, (session, turn), shown).await;
    }
    let mut watch = TurnWatcher::new(client, follow, (session, turn), asking, output);
    if shown.is_quiet {
        watch = watch.with_quiet_output();
    }
    watch.with_trust_notice_file(reach.record_file(TRUST_NOTICE_FILE)).until_ended(out).await
}

/// Submits the task to a session that exists, and follows the turn.
async fn submit_and_follow(
    reach: &Connector,
    client: Client,
    session: SessionView,
    task: NewInput,
    args: &RunArgs,
    (asking, shown): (AnswerPolicy, Shown),
    out: &mut OutputStreams,
) -> Result<TurnEnd, Failure> {
    let id = session.session_id;
    if args.output == Output::Text && !args.quiet {
        let title = crate::terminal::escape::line(&session.summary.title).into_owned();
        out.note(&format!("session #{} · {title}", session.number))?;
    }
    let options = args.turn.options(reach.machine())?;
    if !args.variables.env.is_empty() {
        let env = Some(args.variables.collect(reach.machine())?);
        let params = UpdateParams { env, ..UpdateParams::new(id) };
        client.call::<methods::session::Update>(&params).await?;
    }
    let params = SubmitParams { raw: task.raw, ..submit_params(id, task.input, None, options) };
    // The subscription begins after the known events, so that only this turn is shown.
    let follow =
        SessionFollower::start_with(reach, &client, id, session.last_seq, shown.thinking.include()).await?;
    let turn = client.call::<methods::session::Submit>(&params).await?.turn_id;
    watch(reach, client, follow, (session, turn), asking, (args.output, shown), out).await
}

fn finish(ended: &TurnEnd, output: Output, out: &mut OutputStreams) -> Result<(), Failure> {
    if output == Output::Json {
        out.json(&ended.result)?;
    }
    if ended.code == code::DENIED && output == Output::Text {
        out.print_error_line(&StyledLine::new(
            Tone::Warn,
            "something was denied, and the turn ended with it; allow it by a rule or a mode (-a), or attach and answer",
        ))?;
    }
    if ended.code == code::SUCCESS { Ok(()) } else { Err(Failure::silent(ended.code)) }
}

/// The folder whose commands a task may name.
fn command_place(params: &CreateParams) -> CommandListParams {
    CommandListParams { session_id: None, cwd: Some(params.cwd.clone()) }
}

fn prompt(prompt_arg: Option<String>) -> Result<String, Failure> {
    let text = match prompt_arg.as_deref() {
        Some("-") | None => {
            if io::stdin().is_terminal() && prompt_arg.is_none() {
                return Err(Failure::usage("say what to do: agentctl run \"PROMPT\", or pipe it in"));
            }
            stdin::read_all()?
        }
        Some(text) => text.to_string(),
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("the prompt is empty"));
    }
    Ok(text)
}

fn create_params(args: &RunArgs, machine: Machine) -> Result<CreateParams, Failure> {
    let folder = match &args.work_dir {
        Some(dir) => folder(dir, machine)?,
        None => text(&paths::current_folder()?)?,
    };
    let params = CreateParams {
        cwd: folder,
        title: args.title.clone(),
        background: args.background,
        ablation: (args.simple || is_simple_by_environment()).then_some(Ablation::ALL),
        binary_feedback: args.binary_feedback.then_some(true),
        agent: args.agent.clone(),
        worktree: args.worktree.as_ref().map(|branch| WorktreeChoice {
            branch: Some(branch.clone()).filter(|branch| !branch.is_empty()),
            ..WorktreeChoice::with_defaults()
        }),
        coordinator: args.coordinator,
        env: Some(args.variables.collect(machine)?),
        mcp_servers: args.mcp_config.as_deref().map(load_servers).transpose()?,
        idempotency_key: Some(idempotency_key()),
        ..CreateParams::default()
    };
    Ok(params.with_options(args.turn.options(machine)?))
}

/// Whether the environment asks for the bare loop, as it does for a daemon that starts with it.
fn is_simple_by_environment() -> bool {
    base::proc::variable("AGENTD_SIMPLE").is_some_and(|value| matches!(value.trim(), "1" | "true"))
}

fn text(path: &Path) -> Result<String, Failure> {
    path.to_str().map(String::from).ok_or_else(|| Failure::usage("the folder's name is not UTF-8"))
}

async fn create(client: &Client, params: &CreateParams, machine: Machine) -> Result<SessionView, Failure> {
    let reply = client.call::<methods::session::Create>(params).await;
    let reply: SessionReply = reply.map_err(|error| creation_failure(error, machine))?;
    Ok(reply.session)
}

/// Submits the task to a new session. If the daemon refuses it, the session is deleted, because it has
/// no history. After a lost connection the session stays, because the task may have arrived.
async fn submit_first(
    client: &Client,
    session_id: SessionId,
    task: NewInput,
) -> Result<SubmitOutcome, Failure> {
    let NewInput { input, raw } = task;
    let params = SubmitParams { raw, ..submit_params(session_id, input, None, TurnOptions::default()) };
    match client.call::<methods::session::Submit>(&params).await {
        Err(CallError::Fault(fault)) => {
            let params = EndParams { session_id, idempotency_key: None };
            // The reason of the refusal matters more than a session that could not be deleted.
            let _ = client.call::<methods::session::Delete>(&params).await;
            Err(CallError::Fault(fault).into())
        }
        reply => Ok(reply?),
    }
}

pub(crate) mod model_key;

#[cfg(test)]
mod tests;
