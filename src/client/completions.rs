//! Shell completions: sessions, requests, agents and models come from the daemon. Completing never starts a
//! daemon. A daemon that does not answer in time gives no completions.

use api::methods;
use std::time::Duration;

use clap::builder::StyledStr;
use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};

use crate::args::command;
use crate::connection::client::Client;
use crate::connection::connector::{Connector, NAME};
use crate::connection::host_choice::{HostTarget, choose};
use crate::connection::host_list::{DEFAULT_HOST, HostList, host_file};
use crate::connection::paths::{self, ClientPaths};
use crate::connection::ssh::{DaemonStart, Prompts};
use crate::failure::Failure;
use crate::terminal::escape;
use crate::ui::session_state::state;
use crate::ui::summary::one_line;
use api::params::{
    AgentListParams, AgentListReply, ClientRole, JobListParams, JobListReply, ListParams, ListReply,
    ModelListParams, ModelListReply, NoParams, PermissionListParams, PermissionListReply, StatusReply,
};

/// The variable that a completion script sets.
pub const VARIABLE: &str = "COMPLETE";

/// How long a user may wait for completions.
const TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum number of entries that are requested per list.
const LIST_ENTRIES: u32 = 200;
/// Maximum columns of a description.
const HELP_COLUMNS: usize = 60;

/// Prints the completions that a shell's completion script requests. Returns false if the shell has not
/// started this process for such a request.
pub fn complete(args: Vec<std::ffi::OsString>) -> Result<bool, clap::Error> {
    let folder = std::env::current_dir().ok();
    CompleteEnv::with_factory(completable_command)
        .var(VARIABLE)
        .bin("agentctl")
        .completer("agentctl")
        .try_complete(args, folder.as_deref())
}

/// The completion script of a shell, which calls this program.
pub fn script(shell: &str) -> Result<String, Failure> {
    let shells = Shells::builtins();
    let shell =
        shells.completer(shell).ok_or_else(|| Failure::usage("there are no completions for this shell"))?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "agentctl", "agentctl", "agentctl", &mut script)?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

fn completable_command() -> Command {
    with_candidates(command())
}

fn with_candidates(command: Command) -> Command {
    command.mut_args(candidates).mut_subcommands(with_candidates)
}

/// Adds the source of an argument's values, by the argument's name.
fn candidates(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "session" | "sessions" => arg.add(ArgValueCandidates::new(|| query_daemon(sessions))),
        "names" => arg.add(ArgValueCandidates::new(|| {
            query_daemon(sessions).into_iter().chain(query_daemon(requests)).collect()
        })),
        "requests" | "request" => arg.add(ArgValueCandidates::new(|| query_daemon(requests))),
        "job" | "jobs" => arg.add(ArgValueCandidates::new(|| query_daemon(jobs))),
        "host" | "host_name" => arg.add(ArgValueCandidates::new(hosts)),
        "provider" => arg.add(ArgValueCandidates::new(|| query_daemon(providers))),
        "agent" => arg.add(ArgValueCandidates::new(|| query_daemon(agents))),
        "model" | "fallback_model" => arg.add(ArgValueCandidates::new(|| query_daemon(models))),
        _ => arg,
    }
}

fn query_daemon<Asked>(source: fn(Client) -> Asked) -> Vec<CompletionCandidate>
where
    Asked: Future<Output = Result<Vec<CompletionCandidate>, Failure>>,
{
    let answer = async {
        let env = base::proc::variable;
        let (socket, host) = match choose(&env, None, None)?.target {
            HostTarget::Default => (None, None),
            HostTarget::Socket(path) => (Some(path), None),
            HostTarget::Ssh(host) => (None, Some(host)),
        };
        let places = ClientPaths::find(&env, socket, None)?;
        let role = ClientRole::Observer;
        let reach = Connector { places, host, may_start: false, role, name: NAME.into() };
        // Completing never asks.
        let client = match &reach.host {
            Some(host) => reach.dial_over_ssh(host, DaemonStart::Forbidden, Prompts::Never).await?,
            None => reach.connect().await?,
        };
        source(client).await
    };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    let answer = runtime.block_on(async { tokio::time::timeout(TIMEOUT, answer).await });
    answer.ok().and_then(Result::ok).unwrap_or_default()
}

async fn jobs(client: Client) -> Result<Vec<CompletionCandidate>, Failure> {
    let newest = JobListParams { limit: Some(LIST_ENTRIES), ..JobListParams::default() };
    let listed: JobListReply = client.call::<methods::job::List>(&newest).await?;
    let of = |job: types::job::Job| {
        candidate(job.job_id.to_string(), &format!("{} · {}", job.state.name(), job.title))
    };
    Ok(listed.jobs.into_iter().map(of).collect())
}

fn candidate(value: impl Into<String>, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(value.into()).help(Some(StyledStr::from(one_line(help, HELP_COLUMNS))))
}

/// The named hosts, from the user's file.
fn hosts() -> Vec<CompletionCandidate> {
    let list = host_file(&base::proc::variable).and_then(|file| HostList::load(&file)).unwrap_or_default();
    let own = candidate(DEFAULT_HOST, "the daemon of this machine");
    std::iter::once(own)
        .chain(list.hosts.into_iter().map(|(name, address)| candidate(name, &address)))
        .collect()
}

async fn providers(client: Client) -> Result<Vec<CompletionCandidate>, Failure> {
    let status: StatusReply = client.call::<methods::daemon::Status>(&NoParams {}).await?;
    let names = status.providers.iter().map(String::as_str).chain(["anthropic", "openai"]);
    let names: std::collections::BTreeSet<&str> = names.collect();
    Ok(names.into_iter().map(|name| candidate(name, "")).collect())
}

async fn sessions(client: Client) -> Result<Vec<CompletionCandidate>, Failure> {
    let filter = ListParams { limit: Some(LIST_ENTRIES), ..ListParams::default() };
    let reply: ListReply = client.call::<methods::session::List>(&filter).await?;
    let mut candidates = vec![candidate(".", "the newest session of this folder")];
    for session in &reply.sessions {
        let help = format!("{} · {}", session.summary.title, state(session).1);
        candidates.push(candidate(session.number.to_string(), &help));
        // A shell would split any other title into several words.
        let is_word = session.summary.title.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if is_word && !session.summary.title.is_empty() {
            candidates.push(candidate(session.summary.title.clone(), &format!("#{}", session.number)));
        }
        candidates.push(candidate(session.session_id.to_string(), &help).hide(true));
    }
    Ok(candidates)
}

async fn requests(client: Client) -> Result<Vec<CompletionCandidate>, Failure> {
    let params = PermissionListParams { limit: Some(LIST_ENTRIES), ..PermissionListParams::default() };
    let reply: PermissionListReply = client.call::<methods::permission::List>(&params).await?;
    let shown = reply.requests.iter().flat_map(|pending| {
        let help = format!("{} {}", pending.request.tool, pending.request.summary);
        [
            candidate(pending.number.clone(), &help),
            candidate(pending.request.request_id.to_string(), &help).hide(true),
        ]
    });
    Ok(shown.collect())
}

async fn agents(client: Client) -> Result<Vec<CompletionCandidate>, Failure> {
    let cwd = paths::current_folder()?.to_string_lossy().into_owned();
    let reply: AgentListReply = client.call::<methods::agent::List>(&AgentListParams { cwd }).await?;
    Ok(reply.agents.iter().map(|agent| candidate(agent.name.clone(), &agent.description)).collect())
}

async fn models(client: Client) -> Result<Vec<CompletionCandidate>, Failure> {
    let params = ModelListParams { limit: Some(LIST_ENTRIES), ..ModelListParams::default() };
    let reply: ModelListReply = client.call::<methods::model::List>(&params).await?;
    let model =
        |name: &str, pointers: &[String]| candidate(escape::line(name).into_owned(), &pointers.join(" "));
    Ok(reply.models.iter().map(|view| model(&view.model, &view.pointers)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completion_scripts_exist_for_all_shells() {
        for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
            let script = script(shell).expect("a script");
            assert!(script.contains("agentctl") && script.contains(VARIABLE), "{shell}: {script}");
        }
        assert!(script("nosuch").is_err());
        completable_command().debug_assert();
    }
}
