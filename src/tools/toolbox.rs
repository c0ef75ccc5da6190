//! The tools as the session uses them: their cards, and the life of a call: find, parse,
//! validate, (be judged elsewhere,) run (Q23).

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt as _;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::ahead::Ahead;
use super::context::{SessionContext, Settings, ToolContext};
use super::shell::{
    Available, CallChannels, Cgroups, Found, PlaceholderCache, ProcessStarted, Running, Swept,
};
use crate::tools::error::{ToolError, cancelled};
use crate::tools::files::edit_guard::Change;
use crate::tools::files::input_files;
use crate::tools::files::input_files::{IngestedFile, InputFile};
use crate::tools::files::{edit, glob, grep, inspect, ls, multi_edit, notebook, patch, read, write};
use crate::tools::fs::jails::Jails;
use crate::tools::fs::resolve;
use crate::tools::sensitivity::SensitivePaths;
use crate::tools::{input, shell, web};
use crate::types::ids::{CallId, SessionId};
use crate::types::message::ToolCall;
use crate::types::tool::{
    Confinement, Inspection, PreparedCall, ProcessRecord, Progress, Subject, ToolDefinition, ToolOutcome,
};

/// All tools, with the settings of the house. Cheap to clone.
#[derive(Clone)]
pub struct Toolbox {
    settings: Arc<Settings>,
    places: Arc<SensitivePaths>,
    cells: Arc<Cgroups>,
    jails: Arc<Jails>,
    ahead: Arc<Ahead>,
    layouts: Arc<Found>,
    lingering: Arc<PlaceholderCache>,
    cards: Arc<[ToolDefinition]>,
    web: web::Client,
}

/// Which sandbox commands get; the errors say why there is none.
#[derive(Clone, Debug)]
pub struct SandboxReport {
    /// Where people look on, with what holds in words.
    pub attended: Result<(Confinement, &'static str), String>,
    /// Where nobody does.
    pub unattended: Result<(Confinement, &'static str), String>,
    /// Whether level 2 works here.
    pub landlock: Result<(), String>,
    /// Whether level 2 keeps `.git/config`, `.git/hooks` and `.agentd` of a workspace from being changed here.
    pub guards: Result<(), String>,
    /// Whether level 3 works here.
    pub bubblewrap: Result<(), String>,
}

/// Where calls are looked at by who may wait for the disk.
pub struct CallPreparer {
    tools: Toolbox,
    here: &'static Available,
}

impl CallPreparer {
    /// As [`Toolbox::prepare`]. Blocking.
    ///
    /// # Errors
    /// As an outcome it goes to the model.
    pub fn prepare(
        &self,
        call: &ToolCall,
        session_context: &SessionContext,
    ) -> Result<PreparedCall, ToolError> {
        let context = self.tools.context(session_context);
        match &self.tools.parse(call)? {
            Call::Bash(input) => shell::prepare(&context, self.here, call.call_id, input),
            Call::BashOutput(input) => shell::prepare_output(&context, input),
            Call::KillBash(input) => shell::prepare_kill(&context, input),
            Call::Read(input) => read::prepare(&context, input),
            Call::Write(input) => write::prepare(&context, input),
            Call::Edit(input) => edit::prepare(&context, call.call_id, input),
            Call::MultiEdit(input) => multi_edit::prepare(&context, input),
            Call::ApplyPatch(input) => patch::prepare(&context, input),
            Call::NotebookEdit(input) => notebook::prepare(&context, input),
            Call::WebFetch(input) => web::prepare(input),
            Call::Glob(input) => glob::prepare(&context, input),
            Call::Grep(input) => grep::prepare(&context, input),
            Call::Ls(input) => ls::prepare(&context, input),
        }
    }
}

/// The arguments of a call, read.
enum Call {
    Bash(shell::Input),
    BashOutput(shell::OutputInput),
    KillBash(shell::KillInput),
    Read(read::Input),
    Write(write::Input),
    Edit(edit::Input),
    MultiEdit(multi_edit::Input),
    ApplyPatch(patch::Input),
    NotebookEdit(notebook::Input),
    WebFetch(web::Input),
    Glob(glob::Input),
    Grep(grep::Input),
    Ls(ls::Input),
}

impl Toolbox {
    /// Resolves the protected folders once, as far as they exist, and finds out what cgroups can do.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let mut protected = settings.protected.clone();
        protected.extend(settings.protected.iter().filter_map(|folder| resolve::follow(folder).ok()));
        protected.dedup();
        let home = resolve::follow(&settings.home).unwrap_or_else(|_| settings.home.clone());
        let places = Arc::new(SensitivePaths::new(&home, &protected).with_links());
        let jails = Arc::new(Jails::new(Arc::clone(&places)));
        Available::mark(&settings.instance);
        let cells = Arc::new(Cgroups::find(&settings.cgroup, &settings.instance));
        Self {
            settings: Arc::new(settings),
            places,
            cells,
            jails,
            ahead: Arc::default(),
            layouts: Arc::default(),
            lingering: Arc::default(),
            cards: cards(),
            web: web::Client::default(),
        }
    }

    /// In the place of one with other settings: what that one saw of what is hidden is not forgotten.
    #[must_use]
    pub fn inherit_from(mut self, before: &Self) -> Self {
        self.layouts = Arc::new(Found::after(&before.layouts));
        self
    }

    /// Whether a folder is the daemon's own, or lies in one of those.
    #[must_use]
    pub fn is_protected(&self, folder: &Path) -> bool {
        self.places.protected.iter().any(|place| folder.starts_with(place))
    }

    /// For people: how commands are held to their limits here.
    #[must_use]
    pub fn confinement(&self) -> String {
        self.cells.describe()
    }

    /// Which sandbox commands get, in attended sessions and in others. The first call tries what works
    /// here.
    pub async fn sandbox(&self) -> SandboxReport {
        let here = Available::here().await;
        let told = |unattended| {
            let chosen = self.settings.sandbox.choose(unattended, here);
            chosen.map(shell::confinement_label).map_err(|refusal| refusal.text)
        };
        SandboxReport {
            attended: told(false),
            unattended: told(true),
            landlock: here.landlock().map_err(str::to_owned),
            guards: here.guards().map_err(str::to_owned),
            bubblewrap: here.bubblewrap().map_err(str::to_owned),
        }
    }

    /// Ends what an earlier daemon of the same instance left running: to be done before any call
    /// starts. `records` are those it had stored. Takes five seconds at most. If it is dropped, what
    /// was not killed yet lives on.
    pub async fn sweep(&self, records: Vec<ProcessRecord>) -> Swept {
        shell::sweep(&self.settings.instance, Arc::clone(&self.cells), records).await
    }

    /// Removes the temporary files of a session that has ended. Failures are told to the log: the next sweep
    /// tries again. Waits for the disk in a thread of its own.
    pub async fn forget_session(&self, session: SessionId) {
        let root = self.settings.sandbox.temp.clone();
        let done = tokio::task::spawn_blocking(move || shell::forget_temp(&root, session)).await;
        if let Ok(Err(error)) = done {
            tracing::warn!(%session, %error, "temporary files of a session that has ended stay for now");
        }
    }

    /// Removes what a daemon that died has left in the place of what does not exist. To be called before anything runs.
    pub async fn clear_stand_ins(&self) {
        let root = self.settings.sandbox.temp.clone();
        let removed = tokio::task::spawn_blocking(move || shell::clear_stand_ins(&root)).await.unwrap_or(0);
        if removed > 0 {
            tracing::info!(removed, "stand-ins of commands that a dead daemon left were removed");
        }
    }

    /// The folders of temporary files that there are. To be asked before the sessions are that keep theirs: one
    /// that begins meanwhile is in no danger then.
    ///
    /// # Errors
    /// They could not be listed.
    pub async fn temp_folders(&self) -> std::io::Result<Vec<String>> {
        let root = self.settings.sandbox.temp.clone();
        let found = tokio::task::spawn_blocking(move || shell::temp_folders(&root)).await;
        found.unwrap_or_else(|error| Err(std::io::Error::other(error)))
    }

    /// Removes those of these folders that belong to none of the sessions; says how many. Failures are told to the
    /// log.
    pub async fn sweep_temp(&self, found: Vec<String>, kept: Vec<SessionId>) -> usize {
        let root = self.settings.sandbox.temp.clone();
        let swept = tokio::task::spawn_blocking(move || shell::sweep_temp(&root, &found, &kept)).await;
        swept.unwrap_or(0)
    }

    /// What models are told, always in the same order.
    #[must_use]
    pub fn cards(&self) -> Arc<[ToolDefinition]> {
        self.cards.clone()
    }

    /// What the call would do. Reads files, never writes, runs nothing. The error is an outcome
    /// that goes to the model: unknown tools, arguments that do not fit, calls that cannot
    /// succeed. Cancel-safe.
    pub async fn prepare(
        &self,
        call: &ToolCall,
        session_context: &SessionContext,
    ) -> Result<PreparedCall, ToolOutcome> {
        let (desk, call, session_context) =
            (self.call_preparer().await, call.clone(), session_context.clone());
        let prepared = tokio::task::spawn_blocking(move || desk.prepare(&call, &session_context));
        Ok(prepared.await.unwrap_or_else(|_| Err(internal()))?)
    }

    /// How long a shell takes that does nothing and is held as a call of this scene would be: for the benches
    /// alone. Blocking.
    ///
    /// # Errors
    /// The level cannot be had here, or the shell failed.
    #[cfg(feature = "fuzzing")]
    pub fn bare_shell(&self, session_context: &SessionContext) -> std::io::Result<std::time::Duration> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let here = Available::here().await;
            shell::spawn_bare(&self.context(session_context), here).await
        })
    }

    /// A call that was prepared will not run now: what was kept for it may go.
    pub fn discard_prepared(&self, call_id: CallId) {
        drop(self.ahead.take(call_id));
    }

    /// Nothing that was prepared will run now.
    pub fn discard_all(&self) {
        self.ahead.clear();
    }

    /// The session runs no command in the moments to come: what the last one left standing in its workspace goes.
    pub fn on_session_idle(&self, session: SessionId) {
        self.lingering.end(session);
    }

    /// For who prepares calls on a thread that may wait for the disk.
    pub async fn call_preparer(&self) -> CallPreparer {
        CallPreparer { tools: self.clone(), here: Available::here().await }
    }

    /// Runs the call. `prepared` is what was judged: if the call would now touch something else,
    /// it is refused (`target_changed`). Once `stop` is cancelled, the outcome is `Cancelled`
    /// (unless a file was already changed), and it comes after every process of the call is gone
    /// or named in `detail.survivors`. Progress that the channel cannot
    /// take is dropped. A process that was started is told to `births`; its call goes on once
    /// that is answered.
    ///
    /// Never panics. If the future is dropped, processes are killed; a file that is just being
    /// written is still finished (atomically) by its thread.
    pub async fn run(
        &self,
        call: &ToolCall,
        prepared: &PreparedCall,
        session_context: &SessionContext,
        progress: mpsc::Sender<Progress>,
        births: mpsc::Sender<ProcessStarted>,
        stop: CancellationToken,
    ) -> ToolOutcome {
        let work = AssertUnwindSafe(self.run_inner(call, prepared, session_context, progress, births, stop));
        match work.catch_unwind().await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(refusal)) => refusal.into(),
            Err(_) => internal().into(),
        }
    }

    /// Starts a Bash call that asks to go on in the background: it runs and is recorded when this
    /// returns. The error is an outcome that goes to the model. `stop` ends it until then; if the future is
    /// dropped, what was started is killed.
    ///
    /// # Errors
    /// It was not started, or nothing of it is left.
    pub async fn start(
        &self,
        call: &ToolCall,
        prepared: &PreparedCall,
        session_context: &SessionContext,
        births: mpsc::Sender<ProcessStarted>,
        stop: CancellationToken,
    ) -> Result<Running, ToolOutcome> {
        // Its progress begins when somebody follows it.
        let (progress, _) = mpsc::channel(1);
        match self.parse(call)? {
            Call::Bash(input) => {
                let wires = CallChannels { progress, births, stop };
                shell::start(&self.context(session_context), call.call_id, &input, prepared, wires).await
            }
            _ => Err(internal().into()),
        }
    }

    /// After a crash: what became of a change of a file that `call_id` had begun. Removes the
    /// temporary file that it may have left. Never panics; cancel-safe.
    pub async fn inspect(
        &self,
        call_id: CallId,
        prepared: &PreparedCall,
        session_context: &SessionContext,
    ) -> Inspection {
        let (context, prepared) = (self.context(session_context), prepared.clone());
        let looked = blocking(move || Ok(inspect::inspect(&context, call_id, &prepared))).await;
        looked.unwrap_or_else(|refusal| Inspection::Conflict(refusal.text))
    }

    /// Takes in what a person hands to a session: reads it, looks at it in a process of its own, and makes
    /// it fit for models. Cancel-safe.
    ///
    /// # Errors
    /// It is not there, too large, broken, or of a kind that no model takes.
    pub async fn take_in(&self, gift: InputFile) -> Result<IngestedFile, ToolError> {
        input_files::ingest(&self.settings, gift).await
    }

    async fn run_inner(
        &self,
        call: &ToolCall,
        prepared: &PreparedCall,
        session_context: &SessionContext,
        progress: mpsc::Sender<Progress>,
        births: mpsc::Sender<ProcessStarted>,
        stop: CancellationToken,
    ) -> Result<ToolOutcome, ToolError> {
        let context = self.context(session_context);
        let call_id = call.call_id;
        let call = match self.parse(call)? {
            // It has a beginning of its own: `start`.
            Call::Bash(input) if input.goes_on() => return Err(internal()),
            Call::Bash(input) => {
                return shell::run(
                    &context,
                    call_id,
                    &input,
                    prepared,
                    CallChannels { progress, births, stop },
                )
                .await;
            }
            Call::KillBash(input) => return shell::run_kill(&context, &input, &stop).await,
            Call::WebFetch(input) => {
                return web::run(&context, &self.web, &input, prepared, &stop).await;
            }
            call => call,
        };
        if stop.is_cancelled() {
            self.discard_prepared(call_id);
            return Ok(cancelled());
        }
        let prepared = prepared.clone();
        self.lingering.end(context.session_context.session_id);
        blocking(move || match &call {
            Call::Bash(_) | Call::KillBash(_) | Call::WebFetch(_) => Err(internal()),
            Call::BashOutput(input) => shell::run_output(&context, input, &stop),
            Call::Read(input) => read::run(&context, input, &prepared, &stop),
            Call::Write(input) => write::run(&context, call_id, input, &prepared, &stop),
            Call::Edit(input) => edit::run(&context, call_id, input, &prepared, &stop),
            Call::MultiEdit(input) => multi_edit::run(&context, call_id, input, &prepared, &stop),
            Call::ApplyPatch(input) => patch::run(&context, call_id, input, &prepared, &stop),
            Call::NotebookEdit(input) => notebook::run(&context, call_id, input, &prepared, &stop),
            Call::Glob(input) => glob::run(&context, input, &prepared, &stop),
            Call::Grep(input) => grep::run(&context, input, &prepared, &stop),
            Call::Ls(input) => ls::run(&context, input, &prepared, &stop),
        })
        .await
    }

    fn context(&self, session_context: &SessionContext) -> ToolContext {
        ToolContext {
            settings: self.settings.clone(),
            places: self.places.clone(),
            cells: self.cells.clone(),
            jails: self.jails.clone(),
            ahead: self.ahead.clone(),
            layouts: self.layouts.clone(),
            lingering: self.lingering.clone(),
            session_context: session_context.clone(),
        }
    }

    fn parse(&self, call: &ToolCall) -> Result<Call, ToolError> {
        Ok(match call.tool.as_str() {
            "Bash" => Call::Bash(input::parse(call)?),
            "BashOutput" => Call::BashOutput(input::parse(call)?),
            "KillBash" => Call::KillBash(input::parse(call)?),
            "Read" => Call::Read(input::parse(call)?),
            "Write" => Call::Write(input::parse(call)?),
            "Edit" => Call::Edit(input::parse(call)?),
            "MultiEdit" => Call::MultiEdit(input::parse(call)?),
            "ApplyPatch" => Call::ApplyPatch(input::parse(call)?),
            "NotebookEdit" => Call::NotebookEdit(input::parse(call)?),
            "WebFetch" => Call::WebFetch(input::parse(call)?),
            "Glob" => Call::Glob(input::parse(call)?),
            "Grep" => Call::Grep(input::parse(call)?),
            "LS" => Call::Ls(input::parse(call)?),
            other => return Err(self.unknown(other)),
        })
    }

    fn unknown(&self, tool: &str) -> ToolError {
        let names: Vec<&str> = self.cards.iter().map(|card| card.name.as_str()).collect();
        let near = names
            .iter()
            .map(|name| {
                (strsim::normalized_damerau_levenshtein(&name.to_lowercase(), &tool.to_lowercase()), name)
            })
            .filter(|(score, _)| *score >= 0.6)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, name)| *name);
        let hint = near.map_or(String::new(), |name| format!(" Did you mean {name}?"));
        ToolError::new(
            "unknown_tool",
            format!("there is no tool {tool:?}.{hint} The tools are: {}", names.join(", ")),
        )
        .with(json!({ "tool": tool, "did_you_mean": near, "tools": names }))
    }
}

fn cards() -> Arc<[ToolDefinition]> {
    let card = |name: &str, description: &str, input_schema, read_only| ToolDefinition {
        name: name.into(),
        description: description.into(),
        input_schema,
        read_only,
    };
    [
        card("Bash", shell::DESCRIPTION, input::schema::<shell::Input>(), false),
        card("BashOutput", shell::OUTPUT, input::schema::<shell::OutputInput>(), true),
        card("KillBash", shell::KILL, input::schema::<shell::KillInput>(), false),
        card("Read", read::DESCRIPTION, input::schema::<read::Input>(), true),
        card("Write", write::DESCRIPTION, input::schema::<write::Input>(), false),
        card("Edit", edit::DESCRIPTION, input::schema::<edit::Input>(), false),
        card("MultiEdit", multi_edit::DESCRIPTION, input::schema::<multi_edit::Input>(), false),
        card("ApplyPatch", patch::DESCRIPTION, input::schema::<patch::Input>(), false),
        card("NotebookEdit", notebook::DESCRIPTION, input::schema::<notebook::Input>(), false),
        card("Glob", glob::DESCRIPTION, input::schema::<glob::Input>(), true),
        card("Grep", grep::DESCRIPTION, input::schema::<grep::Input>(), true),
        card("LS", ls::DESCRIPTION, input::schema::<ls::Input>(), true),
        card("WebFetch", web::DESCRIPTION, input::schema::<web::Input>(), false),
    ]
    .into()
}

/// Work that waits for the disk. It is not cut short when the caller goes away.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(internal()))
}

/// A bug of ours. The details are in the log of the panic.
fn internal() -> ToolError {
    ToolError::new("internal", "the tool failed by an error of its own; try another way")
}

/// Refuses if the call would touch something else than what was judged.
pub(super) fn same_target(prepared: &PreparedCall, now: &Subject) -> Result<(), ToolError> {
    if prepared.subject == *now {
        return Ok(());
    }
    Err(ToolError::new(
        "target_changed",
        "the call would now touch something else than when it was judged; look again and retry",
    )
    .with(json!({ "judged": prepared.subject, "now": now })))
}

/// Refuses if the change is not the one that was judged.
pub(super) fn same_change(prepared: &PreparedCall, change: &Change) -> Result<(), ToolError> {
    same_target(prepared, &Subject::Edit { path: change.path.resolved.clone() })?;
    if prepared.diff.as_ref().is_some_and(|diff| *diff != change.diff.text) {
        return Err(crate::tools::fs::disk::changed_content(&change.path.path));
    }
    Ok(())
}
