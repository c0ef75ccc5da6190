//! The methods of the protocol, and the loop that reads them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::conversation::{Command, Conversation, Opening, Shared, ShowHistory};
use super::daemon::Daemon;
use super::initialize::{agreed_version, described_client, reply};
use super::listing::list;
use super::mcp::{EditorServers, editor_servers};
use super::prompt::prompt_input;
use super::reader::{InputLine, LineReader, MAX_LINE_BYTES};
use super::schema::{
    CancelCallParams, InitializeParams, NewSessionParams, OpenSessionParams, PromptParams, SessionParams,
    SetModeParams, SetOptionParams, Version,
};
use super::wire::{AcpError, Incoming, Output, Responder, invalid, log, params, parse, write_lines};
use crate::connection::connector::Connector;
use crate::connection::environment::EnvironmentArgs;
use crate::connection::remote::Machine;
use crate::connection::session_calls::idempotency_key;
use crate::failure::Failure;
use api::params::{ArchiveParams, CreateParams, UpdateParams};
use api::{ApiMethod as _, Code, methods};
use base::proc;
use base::sync::lock;
use types::ids::SessionId;
use types::session::{SessionState, SessionView};

/// How long requests may take after the end of the input. The prompts of turns are not among them.
const END_TIMEOUT: Duration = Duration::from_millis(60);
/// Time after which the first session has certainly been opened and shown.
const START_DURATION: Duration = Duration::from_secs(1);

/// Serves until the editor closes its side. Sessions and their turns live on.
///
/// New sessions work in `work_dir` if it is given, otherwise in the folder that the editor names. `newest` is the newest
/// version that the bridge may speak.
pub(crate) async fn serve(
    reach: &Connector,
    work_dir: Option<String>,
    newest: Version,
) -> Result<(), Failure> {
    let (output, lines) = Output::new();
    let mut writer = JoinSet::new();
    writer.spawn(write_lines(lines, tokio::io::stdout()));
    let first_session = Arc::new(Notify::new());
    let mut trimmer = JoinSet::new();
    trimmer.spawn(release_startup_memory(Arc::clone(&first_session)));
    let server = Arc::new(Server {
        reach: reach.clone(),
        work_dir,
        newest,
        output,
        first_session,
        shared: OnceLock::new(),
        conversations: Mutex::default(),
        tasks: Mutex::default(),
    });
    let mut reader = LineReader::new(tokio::io::stdin(), MAX_LINE_BYTES);
    loop {
        tokio::select! {
            line = reader.next() => match line? {
                Some(InputLine::Complete(line)) => Server::accept(&server, parse(&line)).await,
                Some(InputLine::TooLong) => {
                    let most = MAX_LINE_BYTES >> 20;
                    let message = format!("a message has at most {most} MiB");
                    Server::accept(&server, invalid(Code::InvalidRequest, message)).await;
                }
                None => break,
            },
            _ = writer.join_next() => return Ok(()),
        }
    }
    // Conversations end when their commands do.
    lock(&server.conversations).clear();
    let mut tasks = std::mem::take(&mut *lock(&server.tasks));
    let _ = timeout(END_TIMEOUT, async { while tasks.join_next().await.is_some() {} }).await;
    tasks.abort_all();
    drop((tasks, server));
    let _ = timeout(END_TIMEOUT, writer.join_next()).await;
    Ok(())
}

/// Releases what only the start needs, once a session is open. An editor keeps a bridge for each of its windows, and
/// reading the command line and finding the daemon touch most of the program's pages.
async fn release_startup_memory(first_session: Arc<Notify>) {
    first_session.notified().await;
    sleep(START_DURATION).await;
    // It may take long, so it must not block the lines.
    let release = || (proc::release_startup_pages(), proc::release_free_memory());
    let _ = tokio::task::spawn_blocking(release).await;
}

struct Server {
    reach: Connector,
    work_dir: Option<String>,
    newest: Version,
    output: Output,
    /// Told when a session opens.
    first_session: Arc<Notify>,
    /// Set by `initialize`.
    shared: OnceLock<Arc<Shared>>,
    conversations: Mutex<HashMap<SessionId, mpsc::Sender<Command>>>,
    /// Requests in progress and conversations.
    tasks: Mutex<JoinSet<()>>,
}

impl Server {
    async fn accept(server: &Arc<Self>, incoming: Incoming) {
        match incoming {
            Incoming::Request { id, method, params } => {
                let responder = Responder::new(id, &server.output);
                Self::request(server, responder, &method, params).await;
            }
            Incoming::Notification { method, params } => server.notification(&method, params).await,
            Incoming::Response { id, result } => server.output.accept(id, result),
            Incoming::Invalid { id, error } => server.output.refuse(&id, &error).await,
            Incoming::Empty => {}
        }
    }

    /// Runs work in a task of the server.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    async fn request(server: &Arc<Self>, responder: Responder, method: &str, input: Value) {
        if method == "initialize" {
            let reply = server.initialize(input).await;
            return responder.reply(reply).await;
        }
        let Some(shared) = server.shared.get().cloned() else {
            let error = AcpError::new(Code::InvalidRequest, "the first request must be initialize");
            return responder.refuse(error).await;
        };
        let this = Arc::clone(server);
        let version = shared.features.version;
        // Commands for a conversation are passed on at once, so that they keep their order.
        let refused = match method {
            "session/new" => return server.spawn(async move { this.create(shared, responder, input).await }),
            "session/load" | "session/resume" if method == "session/resume" || version == Version::V1 => {
                let show = match history_wanted(version, method, &input) {
                    Ok(show) => show,
                    Err(error) => return responder.refuse(error).await,
                };
                return server.spawn(async move { this.open(shared, responder, input, show).await });
            }
            "session/close" if version == Version::V2 => server.close(responder, input).await,
            "tool_call/cancel" if version == Version::V2 => match params::<CancelCallParams>(input) {
                Ok(CancelCallParams { session_id, tool_call_id: call }) => {
                    server.pass(&session_id, Command::CancelCall { responder, call }).await
                }
                Err(error) => Err((responder, error)),
            },
            "session/list" => {
                return server.spawn(async move {
                    responder.reply(list(&shared, this.work_dir.as_deref(), input).await).await
                });
            }
            "session/delete" => {
                return server.spawn(async move { responder.reply(this.delete(&shared, input).await).await });
            }
            "session/prompt" => server.prompt(responder, input).await,
            "_session/steering" => server.steer(responder, input).await,
            "session/set_mode" if version == Version::V1 => match params::<SetModeParams>(input) {
                Ok(SetModeParams { session_id, mode_id: mode }) => {
                    server.pass(&session_id, Command::SetMode { responder, mode }).await
                }
                Err(error) => Err((responder, error)),
            },
            "session/set_config_option" => match params::<SetOptionParams>(input) {
                Ok(SetOptionParams {
                    session_id,
                    config_id: id,
                    value: Value::String(value),
                    value_type,
                }) if version == Version::V1 || value_type == "id" => {
                    server.pass(&session_id, Command::SetOption { responder, id, value }).await
                }
                Ok(_) => {
                    Err((responder, AcpError::param("value", "expected the text of one of the options")))
                }
                Err(error) => Err((responder, error)),
            },
            "authenticate" if version == Version::V1 => {
                Err((responder, AcpError::param("methodId", "no sign-in is needed")))
            }
            _ => match method.strip_prefix("_agentd/").filter(|method| READ_METHODS.contains(method)) {
                Some(read) => {
                    let read = read.to_owned();
                    return server.spawn(async move {
                        let reply = shared.daemon.client().call_named(&read, &input).await;
                        responder.reply(reply.map_err(AcpError::from)).await;
                    });
                }
                None => Err((
                    responder,
                    AcpError::new(Code::MethodNotFound, format!("there is no method {method}")),
                )),
            },
        };
        if let Err((responder, error)) = refused {
            responder.refuse(error).await;
        }
    }

    async fn notification(&self, method: &str, input: Value) {
        match method {
            "session/cancel" => {
                let session = params::<SessionParams>(input).ok().and_then(|it| it.session_id.parse().ok());
                if let Some(conversation) = session.and_then(|id: SessionId| self.conversation(id)) {
                    let _ = conversation.send(Command::Cancel).await;
                }
            }
            "$/cancel_request" => {
                let id = input["requestId"].to_string();
                let all: Vec<_> = lock(&self.conversations).values().cloned().collect();
                for conversation in all {
                    let _ = conversation.send(Command::CancelPrompt(id.clone())).await;
                }
            }
            // A method that needs a reply has no effect without an id.
            _ => log(&format!("ignored the notification {method}")),
        }
    }

    async fn initialize(&self, input: Value) -> Result<Value, AcpError> {
        if self.shared.get().is_some() {
            return Err(AcpError::new(Code::InvalidRequest, "initialize was called before"));
        }
        let wanted: InitializeParams = params(input)?;
        let version = agreed_version(self.newest, &wanted)?;
        let (name, features) = described_client(version, &wanted);
        let reach = Connector { name: name.into(), ..self.reach.clone() };
        let client = reach.connect_or_start().await?;
        client.prepare_subscription();
        let daemon = Arc::new(Daemon::new(reach, client));
        let shared = Shared { daemon, output: self.output.clone(), features };
        let _ = self.shared.set(Arc::new(shared));
        Ok(reply(version))
    }

    async fn create(&self, shared: Arc<Shared>, responder: Responder, input: Value) {
        let created = async {
            let wanted: NewSessionParams = params(input)?;
            let machine = self.reach.machine();
            check_folder("cwd", &wanted.cwd, machine)?;
            let mut servers = usable_servers(wanted.mcp_servers.as_deref(), machine);
            // Folders next to the editor's folder have no place next to another one.
            let additional_dirs = wanted.additional_directories.filter(|_| self.work_dir.is_none());
            let cwd = self.work_dir.clone().unwrap_or(wanted.cwd);
            let mut create = CreateParams {
                env: Some(EnvironmentArgs::default().collect(machine)?),
                additional_dirs,
                mcp_servers: Some(servers.servers).filter(|servers| !servers.is_empty()),
                idempotency_key: Some(idempotency_key()),
                ..CreateParams::new(cwd)
            };
            let mut reply = shared.daemon.call::<methods::session::Create>(&create).await;
            // A server that the daemon refuses must not prevent the session.
            if let Err(error) = &reply
                && error.is_about("mcp_servers")
            {
                servers.notes.push(format!("The MCP servers of the editor are not used: {}", error.message));
                create =
                    CreateParams { mcp_servers: None, idempotency_key: Some(idempotency_key()), ..create };
                reply = shared.daemon.call::<methods::session::Create>(&create).await;
            }
            match reply {
                Err(error) if machine == Machine::Other && error.is_about("cwd") => {
                    let hint = "the daemon is on another machine; name a folder of it: agentctl acp -w DIR";
                    let message = format!("{}; {hint}", error.message);
                    Err(AcpError { message, ..error })
                }
                reply => Ok((reply?.session, servers.notes)),
            }
        };
        match created.await {
            Ok((view, notes)) => self.begin(shared, &view, Opening::New { responder, notes }).await,
            Err(error) => responder.refuse(error).await,
        }
    }

    async fn open(&self, shared: Arc<Shared>, responder: Responder, input: Value, show: ShowHistory) {
        match prepare_open(&shared, self.work_dir.as_deref(), input).await {
            Ok((view, notes)) => {
                let Some(conversation) = self.conversation(view.session_id) else {
                    return self.begin(shared, &view, Opening::Existing { responder, show, notes }).await;
                };
                if let Err(lost) = conversation.send(Command::Load { responder, show, notes }).await
                    && let Command::Load { responder, show, notes } = lost.0
                {
                    self.begin(shared, &view, Opening::Existing { responder, show, notes }).await;
                }
            }
            Err(error) => responder.refuse(error).await,
        }
    }

    /// Starts the task of a session.
    async fn begin(&self, shared: Arc<Shared>, view: &SessionView, opening: Opening) {
        self.first_session.notify_one();
        let choices = match shared.daemon.choices().await {
            Ok(choices) => choices,
            Err(error) => {
                let (Opening::New { responder, .. } | Opening::Existing { responder, .. }) = opening;
                return responder.refuse(error).await;
            }
        };
        let (conversation, commands) = Conversation::new(shared, view, choices);
        lock(&self.conversations).insert(view.session_id, commands);
        self.spawn(conversation.run(opening));
    }

    fn conversation(&self, id: SessionId) -> Option<mpsc::Sender<Command>> {
        lock(&self.conversations).get(&id).filter(|conversation| !conversation.is_closed()).cloned()
    }

    /// Passes a command to the conversation of an open session.
    async fn pass(&self, session_id: &str, command: Command) -> Result<(), (Responder, AcpError)> {
        let conversation = session_id.parse().ok().and_then(|id| self.conversation(id));
        let refused = match conversation {
            Some(conversation) => match conversation.send(command).await {
                Ok(()) => return Ok(()),
                Err(lost) => lost.0,
            },
            None => command,
        };
        let Some(responder) = refused.into_responder() else { return Ok(()) };
        let opener = match self.shared.get().map(|shared| shared.features.version) {
            Some(Version::V2) => "session/resume",
            _ => "session/load",
        };
        let message = format!("the session {session_id:?} is not open here; {opener} opens it");
        Err((responder, AcpError::new(Code::NotFound, message)))
    }

    /// A session that is not open is closed already.
    async fn close(&self, responder: Responder, input: Value) -> Result<(), (Responder, AcpError)> {
        let session_id = match params::<SessionParams>(input) {
            Ok(wanted) => wanted.session_id,
            Err(error) => return Err((responder, error)),
        };
        if let Err((responder, _)) = self.pass(&session_id, Command::Close { responder }).await {
            responder.reply(Ok(json!({}))).await;
        }
        Ok(())
    }

    async fn prompt(&self, responder: Responder, input: Value) -> Result<(), (Responder, AcpError)> {
        let version = self.shared.get().map(|shared| shared.features.version).unwrap_or_default();
        let parsed = params::<PromptParams>(input).and_then(|it| {
            let key = Some(it.idempotency_key).filter(|key| version == Version::V2 && !key.is_null());
            Ok((it.session_id, prompt_input(&it.prompt)?, key.as_ref().map(prompt_key).transpose()?))
        });
        match parsed {
            Ok((session_id, input, key)) => {
                self.pass(&session_id, Command::Prompt { responder, input, key }).await
            }
            Err(error) => Err((responder, error)),
        }
    }

    async fn steer(&self, responder: Responder, input: Value) -> Result<(), (Responder, AcpError)> {
        let parsed = params::<PromptParams>(input).and_then(|it| {
            let input = prompt_input(&it.prompt)?;
            // A command would begin a turn of its own.
            Ok((it.session_id, super::prompt::PromptInput { is_raw: true, ..input }, it.meta))
        });
        match parsed {
            Ok((session_id, input, meta)) => {
                let needs_running_turn = meta["steering"]["idleBehavior"] == "promptRequired";
                self.pass(&session_id, Command::Steer { responder, input, needs_running_turn }).await
            }
            Err(error) => Err((responder, error)),
        }
    }

    /// Archives a session. One that does not exist is deleted already.
    async fn delete(&self, shared: &Shared, input: Value) -> Result<Value, AcpError> {
        let wanted: SessionParams = params(input)?;
        let Ok(session_id) = wanted.session_id.parse::<SessionId>() else { return Ok(json!({})) };
        let get = api::params::SessionParams { session_id };
        let state = match shared.daemon.call::<methods::session::Get>(&get).await {
            Ok(reply) => reply.session.summary.state,
            Err(error) if error.code == Code::NotFound.number() => return Ok(json!({})),
            Err(error) => return Err(error),
        };
        match state {
            SessionState::Archived | SessionState::Ended => return Ok(json!({})),
            SessionState::Running | SessionState::RequiresAction | SessionState::Paused => {
                let reason = "a turn of the session is not over; cancel it first";
                return Err(AcpError::new(Code::Busy, reason));
            }
            SessionState::Idle | SessionState::Failed => {}
        }
        let archive = ArchiveParams { session_id, archived: true, idempotency_key: Some(idempotency_key()) };
        shared.daemon.call::<methods::session::Archive>(&archive).await?;
        lock(&self.conversations).remove(&session_id);
        Ok(json!({}))
    }
}

/// Methods of the daemon that clients may call as `_agentd/METHOD`. They only read.
const READ_METHODS: [&str; 4] = [
    methods::session::Context::METHOD.name,
    methods::session::Diff::METHOD.name,
    methods::session::Get::METHOD.name,
    methods::daemon::Status::METHOD.name,
];

/// Whether a method that opens a session shows the history.
fn history_wanted(version: Version, method: &str, input: &Value) -> Result<ShowHistory, AcpError> {
    match (version, method, &input["replayFrom"]) {
        (Version::V1, "session/load", _) => Ok(ShowHistory::Yes),
        (Version::V1, ..) | (Version::V2, _, Value::Null) => Ok(ShowHistory::No),
        (Version::V2, _, from) if from["type"] == "start" => Ok(ShowHistory::Yes),
        (Version::V2, ..) => Err(AcpError::param("replayFrom", "only the start is supported")),
    }
}

/// The idempotency key of a prompt.
fn prompt_key(key: &Value) -> Result<String, AcpError> {
    let is_valid = |key: &&str| (1..=255).contains(&key.chars().count());
    let key = key.as_str().filter(is_valid).map(str::to_owned);
    key.ok_or_else(|| AcpError::param("idempotencyKey", "expected a text of 1 to 255 characters"))
}

/// Checks a folder before the daemon does, because its error names the daemon's parameter.
/// A folder of another machine is not looked up.
fn check_folder(field: &str, path: &str, machine: Machine) -> Result<(), AcpError> {
    let problem = match Path::new(path) {
        path if !path.is_absolute() => "is not absolute",
        _ if machine == Machine::Other => return Ok(()),
        path if !path.exists() => "does not exist",
        path if !path.is_dir() => "is not a folder",
        _ => return Ok(()),
    };
    Err(AcpError::param(field, &format!("{path:?} {problem}")))
}

/// The editor's MCP servers, unless the daemon is on another machine: their programs are here, and their environment and
/// headers may be secrets, which must not leave this machine by themselves.
fn usable_servers(given: Option<&[Value]>, machine: Machine) -> EditorServers {
    let given = given.unwrap_or_default();
    if machine == Machine::This || given.is_empty() {
        return editor_servers(given);
    }
    let note = "The MCP servers of the editor are not used, because the daemon is on another machine; \
                `agentctl mcp add` there adds one.";
    EditorServers { notes: vec![note.to_owned()], ..EditorServers::default() }
}

/// The session to open, after the editor's settings for it were taken over, and notes for the user.
async fn prepare_open(
    shared: &Shared,
    work_dir: Option<&str>,
    input: Value,
) -> Result<(SessionView, Vec<String>), AcpError> {
    let OpenSessionParams { session_id: id, place } = params(input)?;
    let session_id: SessionId = id.parse().map_err(|_| AcpError::unknown_session(&id))?;
    let get = api::params::SessionParams { session_id };
    let view = shared.daemon.call::<methods::session::Get>(&get).await?.session;
    let mut servers = usable_servers(place.mcp_servers.as_deref(), shared.daemon.reach().machine());
    let cwd = work_dir.unwrap_or(&place.cwd);
    let is_same = Path::new(cwd) == Path::new(&view.cwd)
        || std::fs::canonicalize(cwd).is_ok_and(|cwd| cwd == Path::new(&view.cwd));
    if !is_same {
        servers.notes.push(format!("This session works in {}, not in {cwd}.", view.cwd));
    }
    if let Some(dirs) = place.additional_directories.filter(|dirs| !dirs.is_empty() && work_dir.is_none()) {
        let params = UpdateParams {
            additional_dirs: Some(dirs),
            idempotency_key: Some(idempotency_key()),
            ..UpdateParams::new(session_id)
        };
        shared.daemon.call::<methods::session::Update>(&params).await?;
    }
    if !servers.servers.is_empty() {
        // A daemon without this parameter refuses it; the session works without the servers.
        let params = json!({"session_id": session_id, "mcp_servers": servers.servers,
            "idempotency_key": idempotency_key()});
        let updated = shared.daemon.call_as::<methods::session::Update, Value>(&params).await;
        if let Err(error) = updated {
            servers.notes.push(format!("The MCP servers of the editor are not used: {}", error.message));
        }
    }
    Ok((view, servers.notes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_that_cannot_be_used_is_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("with blank, ä");
        std::fs::create_dir(&folder).expect("made");
        std::fs::write(folder.join("file"), "").expect("written");
        let text = |path: &Path| path.display().to_string();
        assert_eq!(check_folder("cwd", &text(&folder), Machine::This), Ok(()));
        for path in ["", ".", "relative/x", &text(&folder.join("none")), &text(&folder.join("file"))] {
            let error = check_folder("cwd", path, Machine::This).expect_err(path);
            assert!(error.code == -32602 && error.message.contains(path), "{error:?}");
        }
    }
}
