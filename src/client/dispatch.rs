//! Runs the command of a command line and returns its exit code.

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};

use clap::FromArgMatches as _;

use super::args::{
    AcpArgs, AuditCommand, BridgeCli, BridgeCommand, Cli, Command, ConfigCommand, ConnectionArgs,
    DaemonCommand, PermissionsCommand, Thinking, command as command_line, folder,
};
use super::failure::{Failure, code};
use crate::acp;
use crate::commands::run::model_key::with_model;
use crate::commands::{
    abort, agents, answer, approve, archive, audit, backup, command, config, context, cost, daemon, demo,
    diff, doctor, explain, export, feedback, fork, host, inspect, jobs, knowledge, login, logs, mcp, memory,
    models, prune, ps, queue, rewind, rpc, rules, stats, submit, top, trust, uninstall, update, wait,
    worktrees,
};
use crate::completions;
use crate::connection::connector::{Connector, NAME};
use crate::connection::environment::EnvironmentArgs;
use crate::connection::host_choice::{HostTarget, choose};
use crate::connection::paths::ClientPaths;
use crate::connection::ssh::SshHost;
use crate::terminal::escape;
use crate::terminal::out::{OutputStreams, terminal_columns};
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::attach::{self, Options};
use crate::ui::picker::{PickerChoice, pick};
use api::params::{ClientRole, CreateParams};
use types::session_environment::SessionEnvironment;

/// Runs `agentctl` with the process's arguments (the first is the program's name) and returns the exit
/// code. `--help` and `--version` write only to stdout.
#[must_use]
pub fn run<I, T>(args: I) -> u8
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    if std::env::var_os(completions::VARIABLE).is_some() {
        match completions::complete(args.clone()) {
            Ok(true) => return code::SUCCESS,
            Ok(false) => {}
            Err(error) => {
                let _ = error.print();
                return code::USAGE;
            }
        }
    }
    if let Some(bridge) = BridgeCli::parse_line(&args) {
        return finish(serve_editor(bridge));
    }
    let parsed =
        command_line().try_get_matches_from(args).and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { code::USAGE } else { code::SUCCESS };
        }
    };
    finish(dispatch(cli))
}

/// Runs a command to its end and prints why it failed.
fn finish(command: impl Future<Output = Result<(), Failure>>) -> u8 {
    let outcome =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::from).and_then(
            |runtime| {
                let outcome = runtime.block_on(command);
                // A read of standard input that is no longer needed must not delay the exit.
                runtime.shutdown_background();
                outcome
            },
        );
    match outcome {
        Ok(()) => code::SUCCESS,
        Err(failure) => {
            if !failure.message.is_empty() {
                print_failure(&failure.message);
            }
            failure.code
        }
    }
}

/// Runs `agentctl acp`, as [`run_command`] does after the whole command line was read.
async fn serve_editor(
    BridgeCli { connection, command: BridgeCommand::Acp(args) }: BridgeCli,
) -> Result<(), Failure> {
    let _ = base::proc::refuse_inspection();
    let reach = connector(&connection, None)?;
    if connection.config.is_some()
        && let Some(remark) = reach.unread_config().await
    {
        OutputStreams::standard().note(&remark)?;
    }
    serve_acp(&reach, args).await
}

async fn serve_acp(reach: &Connector, AcpArgs { work_dir, experimental_v2 }: AcpArgs) -> Result<(), Failure> {
    let folder = work_dir.as_deref().map(|dir| folder(dir, reach.machine())).transpose()?;
    let newest = if experimental_v2 { acp::Version::V2 } else { acp::Version::V1 };
    acp::serve(reach, folder, newest).await
}

/// Prints the reason of a failure. On a terminal, rows break between words.
fn print_failure(message: &str) {
    let text = format!("agentctl: {message}");
    let is_terminal = std::io::stderr().is_terminal();
    for line in text.lines() {
        let rows = match is_terminal {
            true => StyledLine::new(Tone::Plain, line).wrap(terminal_columns()),
            false => vec![StyledLine::new(Tone::Plain, line)],
        };
        for row in rows {
            let _ = writeln!(std::io::stderr(), "{}", row.plain());
        }
    }
}

async fn dispatch(cli: Cli) -> Result<(), Failure> {
    let mut out = OutputStreams::standard();
    let out = &mut out;
    match &cli.command {
        Some(Command::Completions { shell }) => {
            return Ok(out.stream(&completions::script(&shell.to_string())?)?);
        }
        Some(Command::Man { dir }) => {
            std::fs::create_dir_all(dir)?;
            return Ok(clap_mangen::generate_to(command_line(), dir)?);
        }
        Some(Command::Demo { yes, keep }) => return demo::demo(*yes, *keep).await,
        _ => {}
    }
    let env = base::proc::variable;
    let is_plain = cli.plain || env("AGENTCTL_PLAIN").is_some_and(|value| !value.is_empty());
    out.set_plain(is_plain);
    let options = Options { is_plain, ..Options::default() };
    // Without a command this program needs a terminal, so print the help.
    if cli.command.is_none() && !attach::is_full_terminal(is_plain) {
        let _ = write!(std::io::stderr(), "{}", command_line().render_help());
        return Err(Failure::silent(code::USAGE));
    }
    // The connection carries the user's answers, so no process of the same user may trace this one. If
    // the kernel refuses, there is no alternative.
    let _ = base::proc::refuse_inspection();
    if let Some(Command::Host { what }) = cli.command {
        return host::host(&env, cli.connection.host.as_deref(), what, out);
    }
    let is_config_named = cli.connection.config.is_some();
    let reach = connector(&cli.connection, cli.command.as_ref())?;
    if is_config_named
        && !matches!(cli.command, Some(Command::Doctor { .. } | Command::Daemon { .. }))
        && let Some(remark) = reach.unread_config().await
    {
        out.note(&remark)?;
    }
    match cli.command {
        Some(command) => run_command(&reach, command, cli.variables, options, out).await,
        None => {
            let folder = cli.work_dir.as_deref().map(|dir| folder(dir, reach.machine())).transpose()?;
            let variables = cli.variables.collect(reach.machine())?;
            let which = (cli.continued, cli.resume);
            conversation(&reach, which, (folder, variables), options, out).await
        }
    }
}

/// Runs a command with the daemon that the command line names.
async fn run_command(
    reach: &Connector,
    command: Command,
    variables: EnvironmentArgs,
    options: Options,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    match command {
        Command::Run(mut args) => {
            args.variables.env.splice(0..0, variables.env);
            crate::commands::run::run(reach, args, options, out).await
        }
        Command::Ps(args) => ps::ps(reach, &args, out).await,
        Command::Attach { session, thinking, raw } => {
            let options = Options { thinking, is_raw: raw, ..options };
            attach::attach(reach, &session, options, out).await
        }
        Command::Top => top::top(reach, options, out).await,
        Command::Jobs(args) => jobs::jobs(reach, args, options, out).await,
        Command::Logs(args) => logs::logs(reach, &args, out).await,
        Command::Events(args) => logs::events(reach, &args, out).await,
        Command::Result { session, json } => wait::result(reach, &session, json, out).await,
        Command::Inspect(args) => inspect::inspect(reach, &args, out).await,
        Command::Stats(args) => stats::stats(reach, &args, out).await,
        Command::Prune(args) => prune::prune(reach, &args, out).await,
        Command::Cost(args) => cost::cost_of(reach, &args, out).await,
        Command::Models(args) if args.check => models::check(reach, args.json, out).await,
        Command::Models(args) => models::models(reach, args.json, args.all, out).await,
        Command::Submit { session, text, busy, turn, raw, given } => {
            submit::submit(reach, &session, text, busy.when_busy(), (&turn, raw), &given, out).await
        }
        Command::Context { session, prompt: true, json, .. } => {
            context::prompt(reach, &session, json, out).await
        }
        Command::Context { session, request: true, .. } => context::request(reach, &session, out).await,
        Command::Context { session, json, .. } => context::context(reach, &session, json, out).await,
        Command::Compact { session, instructions } => {
            context::compact(reach, &session, &instructions.join(" "), out).await
        }
        Command::Agents { json } => agents::agents(reach, json, out).await,
        Command::Knowledge { workspace, what } => {
            knowledge::knowledge(reach, workspace.as_deref(), what, out).await
        }
        Command::Memory { what } => memory::memory(reach, what, out).await,
        Command::Commands { session, json } => command::commands(reach, session.as_deref(), json, out).await,
        Command::Update { session, turn, variables } => {
            update::update(reach, &session, &turn, &variables, out).await
        }
        Command::Queue { session, what } => queue::queue(reach, &session, what, out).await,
        Command::Wait { session, until, timeout, json } => {
            wait::wait(reach, &session, until, timeout, json, out).await
        }
        Command::Archive { sessions, undo } => archive::archive(reach, &sessions, undo, out).await,
        Command::Fork { session, at, title } => fork::fork(reach, &session, at, title, out).await,
        Command::Export { session, format, output } => {
            export::export(reach, &session, format, output.as_deref(), out).await
        }
        Command::Import { file } => export::import(reach, &file, out).await,
        Command::Rewind { session, item, files, dry_run } => {
            rewind::rewind(reach, &session, item, files, dry_run, out).await
        }
        Command::Abort { session, turn, call } => {
            abort::abort(reach, &session, turn.as_deref(), call.as_deref(), out).await
        }
        Command::Merge { owner, commit, json } => worktrees::merge(reach, &owner, commit, json, out).await,
        Command::Worktrees { what, json } => worktrees::worktrees(reach, what, json, out).await,
        Command::Diff { session, json, stat } => diff::diff(reach, &session, json, stat, out).await,
        Command::Kill { sessions, all, force } => abort::kill(reach, &sessions, all, force, out).await,
        Command::Rm { sessions, force } => abort::remove(reach, &sessions, force, out).await,
        Command::Approve(args) => approve::approve(reach, &args, out).await,
        Command::Deny { requests, feedback, stop } => {
            approve::deny(reach, &requests, feedback, stop, out).await
        }
        Command::Rules { what, json, long } => rules::rules(reach, what.as_ref(), (json, long), out).await,
        Command::Mode { session, mode } => rules::mode(reach, &session, mode, out).await,
        Command::Rename { session, title } => rules::rename(reach, &session, &title, out).await,
        Command::Feedback { request, answer } => feedback::feedback(reach, &request, &answer, out).await,
        Command::Answer { request, answers } => answer::answer(reach, &request, &answers, out).await,
        Command::Approvals { requests, json } => approve::list(reach, &requests, json, out).await,
        Command::Trust { dir, yes } => trust::trust(reach, dir.as_deref(), yes, out).await,
        Command::Untrust { dir } => trust::untrust(reach, dir.as_deref(), out).await,
        Command::Acp(args) => serve_acp(reach, args).await,
        Command::Mcp { what } => mcp::mcp(reach, what, out).await,
        Command::Audit { what: Some(AuditCommand::Verify { known }), .. } => {
            audit::verify(reach, known, out).await
        }
        Command::Audit { session, since, json, long, what: None } => {
            audit::audit(reach, session.as_deref(), since, (json, long), out).await
        }
        Command::Permissions { what: PermissionsCommand::Explain(args) } => {
            explain::explain(reach, args, out).await
        }
        Command::Daemon { what } => daemon::daemon(reach, &what, out).await,
        Command::Backup { file } => backup::backup(reach, &file, out).await,
        Command::Config { what: ConfigCommand::Show(args) } => config::show(reach, args, out).await,
        Command::Login { provider } => login::login(reach, &provider, out).await,
        Command::Uninstall { purge, yes } => uninstall::uninstall(reach, (purge, yes), out).await,
        Command::Doctor { quick: true } => doctor::quick(reach, out).await,
        Command::Doctor { quick: false } => doctor::doctor(reach, out).await,
        Command::Rpc { method, params } => rpc::rpc(reach, &method, params, out).await,
        Command::Host { .. } | Command::Completions { .. } | Command::Man { .. } | Command::Demo { .. } => {
            Ok(())
        }
    }
}

/// The daemon that the command line and the environment name.
fn connector(given: &ConnectionArgs, command: Option<&Command>) -> Result<Connector, Failure> {
    let env = base::proc::variable;
    let is_dial = matches!(command, Some(Command::Daemon { what: DaemonCommand::DialStdio { .. } }));
    // The other side of a connection over ssh uses its own daemon, whatever its user chose for other commands.
    let target = match is_dial && given.host.is_none() {
        true => given.socket.clone().map_or(HostTarget::Default, HostTarget::Socket),
        false => choose(&env, given.host.as_deref(), given.socket.clone())?.target,
    };
    let (socket, host) = match target {
        HostTarget::Default => (None, None),
        HostTarget::Socket(path) => (Some(path), None),
        HostTarget::Ssh(host) => (None, Some(host)),
    };
    let config = given.config.clone();
    if let Some(host) = &host {
        refuse_remote(given, command, host)?;
    }
    let mut places = ClientPaths::find(&env, socket, config)?;
    if let Some(host) = &given.host {
        places.flags = ["--host".to_owned(), host.clone()].into();
    }
    // `doctor` reports a missing configuration file as a finding. Another machine has a configuration of its own.
    if !matches!(command, Some(Command::Doctor { .. })) && host.is_none() {
        places.check_named_config()?;
    }
    let role = ClientRole::Controller;
    Ok(Connector { places, host, may_start: !given.no_start, role, name: NAME.into() })
}

/// Refuses what concerns the machine on which it is typed.
fn refuse_remote(given: &ConnectionArgs, command: Option<&Command>, host: &SshHost) -> Result<(), Failure> {
    if given.config.is_some() {
        return Err(Failure::usage(format!(
            "--config names a file of this machine, and the daemon is at {host}; leave it out"
        )));
    }
    let (words, reason) = match command {
        Some(Command::Login { provider }) => {
            (format!("login {}", escape::line(provider)), "a key stays on the machine where it is typed")
        }
        Some(Command::Doctor { .. }) => ("doctor".to_owned(), "it examines the machine on which it runs"),
        Some(Command::Uninstall { .. }) => {
            ("uninstall".to_owned(), "it deletes files of the machine on which it runs")
        }
        Some(Command::Daemon { what }) => {
            let verb = match what {
                DaemonCommand::Start => "start",
                DaemonCommand::Stop { .. } => "stop",
                DaemonCommand::Restart { .. } => "restart",
                DaemonCommand::Logs => "logs",
                DaemonCommand::DialStdio { .. } => "dial-stdio",
                DaemonCommand::Status { .. } | DaemonCommand::Reload => return Ok(()),
            };
            (format!("daemon {verb}"), "it manages the daemon of the machine on which it runs")
        }
        _ => return Ok(()),
    };
    let there = host.command_there(&words);
    Err(Failure::usage(format!(
        "{reason}, and the daemon is at {host}: `{there}`, or `agentctl -H default {words}` for here"
    )))
}

/// Opens a conversation in this folder: a new one, the newest one, or one that the user chooses.
async fn conversation(
    reach: &Connector,
    (is_continued, is_chosen): (bool, bool),
    (folder, variables): (Option<String>, SessionEnvironment),
    options: Options,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    // Show thinking, because the view folds it to one line that a key opens.
    let options = Options { thinking: Thinking::Show, ..options };
    if is_continued {
        return attach::attach(reach, ".", options, out).await;
    }
    if is_chosen {
        let client = reach.connect_or_start().await?;
        match pick(&client).await? {
            PickerChoice::Session(session) => {
                return attach::follow_session(reach, client, *session, options, out).await;
            }
            PickerChoice::Nothing => return Ok(()),
            PickerChoice::New => {}
        }
    }
    let mut params = CreateParams { env: Some(variables), ..attach::current_folder_params(reach)? };
    params.cwd = folder.unwrap_or(params.cwd);
    let client = reach.connect_or_start().await?;
    let (client, _) = with_model(reach, client, params.model.as_deref(), out).await?;
    trust::ask_once(reach, &client, &params.cwd, out).await?;
    attach::start_conversation(reach, params, options, out).await
}
