//! Effects → model, tools, timers; results come home as inputs. Every job is owned by its session:
//! when the session stops them, or goes, they go.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::blobs::Own;
use super::house::{House, Setup};
use super::law::{self, Law};
use super::pace::Pace;
use super::{media, trust};
use crate::crash;
use crate::engine::{Engine, Input, Judged, SessionRules};
use crate::store::SessionKey;
use crate::tools::{Birth, Blobs, Command, Live, Presence, Refusal, Running, Scene, Unreadable};
use crate::types::background::{BackgroundEnd, BackgroundState, KilledBy, Over};
use crate::types::ids::{CallId, Seq, SessionId, TurnId};
use crate::types::message::ToolCall;
use crate::types::model::{Delta, FaultKind, ModelFault, ModelReply, ModelRequest, ReplyBlock};
use crate::types::permission::{Verdict, VerdictKind};
use crate::types::tool::{Inspection, Prepared, Progress, Subject, ToolOutcome};
use crate::workspace;

#[cfg(test)]
mod tests;

/// Reports that may wait for the session; jobs wait beyond that.
const REPORTS: usize = 64;
/// Batches of deltas between a model's stream and the session.
const BATCHES: usize = 16;
/// Pieces of output between a tool and its job.
const PIECES: usize = 64;

/// More than this is no short answer.
const HELPER_BYTES: usize = 64 << 10;
/// How long a helper may take: it keeps its session in memory.
const HELPER_PATIENCE: Duration = Duration::from_secs(30);
const PANICKED: &str = "the adapter failed on this answer; see the daemon's log";

/// The jobs of one session.
pub(super) struct Jobs {
    house: Arc<House>,
    key: SessionKey,
    /// What tools may read of the session's own.
    blobs: Arc<dyn Blobs>,
    running: JoinSet<Option<Home>>,
    /// Background commands that are followed, and those whose end is not in the journal yet. They belong
    /// to the session, not to its turn.
    commands: JoinSet<Option<Input>>,
    live: HashMap<CallId, Behind>,
    /// Models that are asked something beside the turns: the session's too, and nobody waits for them.
    helpers: JoinSet<Option<Input>>,
    /// All of them end, also those that are just being started.
    none_goes_on: Option<KilledBy>,
    /// Boxed: a queue keeps room for 32 entries, however few there are.
    reports: mpsc::Receiver<Box<Input>>,
    report: mpsc::Sender<Box<Input>>,
    /// The answer that a model is giving. It comes straight from the adapter: a step between would
    /// cost every delta two more turns of the scheduler.
    stream: Option<Stream>,
    /// The end of an answer whose last deltas are to be heard first.
    held: Option<Input>,
    /// Stopped by being dropped.
    others: Vec<AbortHandle>,
    /// Stopped by being told, since their processes must be gone first.
    tools: HashMap<CallId, CancellationToken>,
    /// Processes that were started, on their way to the session.
    births: mpsc::Sender<Birth>,
}

/// A job's last words, with the command that goes on behind it.
struct Home {
    input: Input,
    command: Option<Box<Running>>,
}

impl From<Input> for Home {
    fn from(input: Input) -> Self {
        Self { input, command: None }
    }
}

/// A background command.
struct Behind {
    live: Arc<Live>,
    /// Of the task that follows it.
    task: tokio::task::Id,
    abort: AbortHandle,
}

/// Deltas of one call. Kept until the next call, also when its job is stopped: a job that found
/// nobody listening would report a failure.
struct Stream {
    token: Seq,
    batches: mpsc::Receiver<Vec<Delta>>,
    pace: Pace,
    /// Until when nothing more of it is taken.
    rests_until: Option<Instant>,
}

impl Stream {
    fn of(token: Seq, batches: mpsc::Receiver<Vec<Delta>>) -> Self {
        Self { token, batches, pace: Pace::new(), rests_until: None }
    }

    fn input(&mut self, deltas: Vec<Delta>) -> Input {
        let bytes = deltas.iter().map(said).sum();
        self.rests_until = self.pace.took(deltas.len(), bytes, Instant::now(), Presence::are_others());
        Input::Deltas { token: self.token, deltas }
    }
}

/// The next deltas, if a model is answering. Cancel-safe.
async fn hear(stream: &mut Option<Stream>) -> Option<Input> {
    let stream = stream.as_mut()?;
    if let Some(until) = stream.rests_until {
        tokio::time::sleep_until(until.into()).await;
        stream.rests_until = None;
    }
    let deltas = stream.batches.recv().await?;
    Some(stream.input(deltas))
}

/// What a job may know of its session.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub scene: Arc<Scene>,
    pub rules: Arc<SessionRules>,
    pub safe_mode: bool,
    pub mode: crate::types::permission::Mode,
}

impl Surroundings {
    pub fn of(engine: &Engine, session_id: crate::types::ids::SessionId, commands: Vec<Command>) -> Self {
        let spec = engine.spec();
        let scene = Scene {
            session_id,
            workspace: PathBuf::from(&spec.cwd),
            additional: spec.additional_dirs.iter().map(PathBuf::from).collect(),
            cwd: engine.cwd().to_path_buf(),
            reads: engine.reads(),
            unattended: spec.background,
            unreadable: Unreadable::default(),
            blobs: None,
            commands,
        };
        Self { scene: Arc::new(scene), rules: engine.rules(), safe_mode: spec.safe_mode, mode: engine.mode() }
    }
}

impl Jobs {
    pub fn new(house: Arc<House>, key: SessionKey, births: mpsc::Sender<Birth>) -> Self {
        let (report, reports) = mpsc::channel(REPORTS);
        let own = Own { store: house.store.clone(), key, runtime: Handle::current() };
        Self {
            house,
            key,
            blobs: Arc::new(own),
            running: JoinSet::new(),
            commands: JoinSet::new(),
            live: HashMap::new(),
            helpers: JoinSet::new(),
            none_goes_on: None,
            reports,
            report,
            stream: None,
            held: None,
            others: Vec::new(),
            tools: HashMap::new(),
            births,
        }
    }

    /// The session's blobs, for the scene of a call.
    pub fn blobs(&self) -> Arc<dyn Blobs> {
        Arc::clone(&self.blobs)
    }

    pub fn are_idle(&self) -> bool {
        self.running.is_empty() && self.held.is_none()
    }

    /// Whether no helper's call is under way.
    pub fn have_no_helpers(&self) -> bool {
        self.helpers.is_empty()
    }

    /// What helpers would have said is not wanted any more.
    pub fn drop_helpers(&mut self) {
        self.helpers = JoinSet::new();
    }

    /// Whether no background command is followed.
    pub fn have_no_commands(&self) -> bool {
        self.commands.is_empty()
    }

    pub fn run_tools(&self) -> bool {
        !self.tools.is_empty()
    }

    /// The next thing that happened. Cancel-safe. Waits for ever while nothing runs.
    pub async fn next(&mut self) -> Option<Input> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        tokio::select! {
            // What a job said comes before its end.
            biased;
            Some(input) = self.reports.recv() => Some(*input),
            Some(input) = hear(&mut self.stream) => Some(input),
            Some(ended) = self.commands.join_next_with_id() => self.command_ended(ended),
            Some(ended) = self.running.join_next() => self.ended(ended),
            Some(ended) = self.helpers.join_next() => ended.ok().flatten(),
            else => std::future::pending().await,
        }
    }

    /// Something that has happened already, without waiting.
    pub fn try_next(&mut self) -> Option<Input> {
        let report = self.reports.try_recv().ok().map(|input| *input);
        report.or_else(|| {
            let stream = self.stream.as_mut()?;
            if stream.rests_until.is_some_and(|until| until > Instant::now()) {
                return None;
            }
            let deltas = stream.batches.try_recv().ok()?;
            Some(stream.input(deltas))
        })
    }

    /// A command that was dropped has ended as well, only nobody saw how.
    fn command_ended(
        &mut self,
        ended: Result<(tokio::task::Id, Option<Input>), tokio::task::JoinError>,
    ) -> Option<Input> {
        match ended {
            Ok((_, input)) => input,
            Err(error) => {
                let call_id = self.live.iter().find(|(_, it)| it.task == error.id()).map(|(id, _)| *id)?;
                let note = "It was killed, and its end could not be waited for.".to_owned();
                let end = BackgroundEnd { note: Some(note), ..BackgroundEnd::default() };
                let over = Over { state: BackgroundState::Lost, end, blob: None };
                Some(Input::CommandOver { call_id, over: Box::new(over) })
            }
        }
    }

    fn ended(&mut self, ended: Result<Option<Home>, tokio::task::JoinError>) -> Option<Input> {
        self.others.retain(|job| !job.is_finished());
        let home = ended.ok().flatten();
        let (input, command) = home.map(|home| (home.input, home.command)).unzip();
        if let (Some(Input::ToolDone { call_id, .. }), Some(command)) = (&input, command.flatten()) {
            self.follow(*call_id, *command);
        }
        if let Some(Input::ToolDone { call_id, .. }) = &input {
            self.tools.remove(call_id);
        }
        if self.running.is_empty() {
            self.tools.clear();
        }
        // A job may say its last words and end between two looks.
        if let Some(Input::ModelDone { token, .. } | Input::ModelFailed { token, .. }) = &input
            && let Some(mut stream) = self.stream.take_if(|stream| stream.token == *token)
        {
            let mut deltas = Vec::new();
            while let Ok(more) = stream.batches.try_recv() {
                deltas.extend(more);
            }
            if !deltas.is_empty() {
                self.held = input;
                return Some(stream.input(deltas));
            }
        }
        input
    }

    /// Stops what can be dropped, tells what must end by itself.
    pub fn stop_all(&mut self) {
        for job in self.others.drain(..) {
            job.abort();
        }
        for stop in self.tools.values() {
            stop.cancel();
        }
        self.house.setup().tools.none_now();
    }

    /// Stops model calls, waits and preparations; running tools go on.
    pub fn stop_all_but_tools(&mut self) {
        for job in self.others.drain(..) {
            job.abort();
        }
    }

    /// Has background commands end; they come home as any other end of theirs.
    pub fn stop_commands(&mut self, calls: &[CallId], by: KilledBy) {
        for call_id in calls {
            if let Some(command) = self.live.get(call_id) {
                command.live.stop(by);
            }
        }
    }

    /// Has all of them end, those that are just being started too.
    pub fn stop_all_commands(&mut self, by: KilledBy) {
        self.none_goes_on = Some(by);
        self.live.values().for_each(|command| command.live.stop(by));
    }

    /// Drops these commands: for those that did not obey in time.
    pub fn drop_commands(&mut self, calls: &[CallId]) {
        for call_id in calls {
            if let Some(command) = self.live.get(call_id) {
                command.abort.abort();
            }
        }
    }

    pub fn drop_all_commands(&mut self) {
        self.commands.abort_all();
    }

    /// The end of a command stands in the journal.
    pub fn forget_command(&mut self, call_id: CallId) {
        if let Some(command) = self.live.remove(&call_id) {
            command.live.written();
        }
    }

    /// The session's background commands, for the scene of a call.
    pub fn commands(&self, engine: &Engine) -> Vec<Command> {
        let live = |call_id: &CallId| self.live.get(call_id).map(|it| Arc::clone(&it.live));
        let known = engine.commands().into_iter();
        known.map(|known| Command { live: live(&known.call_id), known }).collect()
    }

    /// Follows a command that was started, to its end.
    fn follow(&mut self, call_id: CallId, command: Running) {
        let (report, live) = (self.report.clone(), command.live());
        let (progress, mut pieces) = mpsc::channel(PIECES);
        let abort = self.commands.spawn(async move {
            let run = AssertUnwindSafe(command.follow(progress)).catch_unwind();
            tokio::pin!(run);
            let over = loop {
                tokio::select! {
                    biased;
                    over = &mut run => break over,
                    Some(progress) = pieces.recv() => {
                        let send = report.send(Box::new(Input::Progress { call_id, progress }));
                        tokio::pin!(send);
                        tokio::select! {
                            sent = &mut send => if sent.is_err() { return None },
                            over = &mut run => {
                                let _ = send.await;
                                break over;
                            }
                        }
                    }
                }
            };
            tell_rest(call_id, &mut pieces, &report).await;
            let over = over.unwrap_or_else(|_| {
                let note = "The daemon failed at following it; its log says more.".to_owned();
                let end = BackgroundEnd { note: Some(note), ..BackgroundEnd::default() };
                Over { state: BackgroundState::Lost, end, blob: None }
            });
            crash::point("C14.background");
            Some(Input::CommandOver { call_id, over: Box::new(over) })
        });
        if let Some(by) = self.none_goes_on {
            live.stop(by);
        }
        self.live.insert(call_id, Behind { live, task: abort.id(), abort });
    }

    /// Drops everything of the turn, finished or not: for jobs that did not obey in time.
    pub fn drop_all(&mut self) {
        self.running.abort_all();
        self.tools.clear();
        self.others.clear();
    }

    pub fn stop_tool(&mut self, call_id: CallId) {
        if let Some(stop) = self.tools.get(&call_id) {
            stop.cancel();
        }
    }

    fn start(&mut self, job: impl Future<Output = Option<Input>> + Send + 'static) {
        self.others.push(self.running.spawn(async move { job.await.map(Home::from) }));
    }

    pub fn gather(&mut self, request: workspace::Request) {
        let house = Arc::clone(&self.house);
        self.start(async move {
            let trusted = house.store.trusted(&request.cwd.to_string_lossy()).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "whether a folder is trusted cannot be read: it counts as not");
                None
            });
            let gathered = workspace::gather(workspace::Request { trusted, ..request }).await?;
            Some(Input::ContextReady {
                system: gathered.system,
                sources: gathered.sources,
                untrusted: gathered.untrusted,
            })
        });
    }

    /// Looks whether something in the workspace waits for trust.
    pub fn look_around(&mut self, cwd: PathBuf) {
        let house = Arc::clone(&self.house);
        self.start(async move { trust::waiting(&house, &cwd).await.map(Input::Untrusted) });
    }

    /// Removes what a session that has ended kept for its commands.
    pub fn forget(&mut self, session: SessionId) {
        let setup = self.house.setup();
        self.start(async move {
            setup.tools.forget_session(session).await;
            None
        });
    }

    pub fn sleep(&mut self, token: Seq, delay_ms: u64) {
        self.start(async move {
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
            Some(Input::TimerFired { token })
        });
    }

    pub fn call_model(&mut self, token: Seq, mut request: ModelRequest) {
        let key = self.key;
        let house = Arc::clone(&self.house);
        let setup = house.setup();
        let (out, batches) = mpsc::channel(BATCHES);
        self.stream = Some(Stream::of(token, batches));
        self.start(async move {
            let _present = Presence::new();
            crash::point("C3");
            let started = house.clock.now();
            if setup.models.model(&request.model).vision != Some(false) {
                request.media = media::of(&house.store, key, &request).await;
            }
            let result = AssertUnwindSafe(setup.models.call(&request, &out)).catch_unwind().await;
            let duration_ms = house.clock.now().since(started);
            let result = result.unwrap_or_else(|_| Err(ModelFault::new(FaultKind::Garbage, PANICKED)));
            Some(match result {
                Ok(reply) => {
                    let terms = setup.models.terms(&request.model);
                    let cost = terms.cost_usd_micros(&reply.usage);
                    // What nobody was asked costs nothing, whatever the price.
                    let cost_usd_micros = if reply.cache_hit { Some(0) } else { cost };
                    Input::ModelDone { token, reply: Box::new(reply), cost_usd_micros, terms, duration_ms }
                }
                Err(fault) => {
                    let terms = setup.models.terms(&request.model);
                    Input::ModelFailed { token, fault, terms, duration_ms }
                }
            })
        });
    }

    /// Asks a model something that nobody sees being written.
    pub fn ask_helper(&mut self, token: Seq, request: ModelRequest) {
        let house = Arc::clone(&self.house);
        let setup = house.setup();
        self.helpers.spawn(async move {
            crash::point("C3.helper");
            let started = house.clock.now();
            let (out, mut batches) = mpsc::channel(BATCHES);
            let ask = AssertUnwindSafe(async move { setup.models.call(&request, &out).await }).catch_unwind();
            let listen = async move {
                let (mut began, mut bytes) = (false, 0);
                while let Some(deltas) = batches.recv().await {
                    began |= deltas.iter().any(|delta| !matches!(delta, Delta::Silence { .. }));
                    bytes += deltas.iter().map(said).sum::<usize>();
                    if bytes > HELPER_BYTES {
                        // Nobody listens any more, so it ends.
                        break;
                    }
                }
                (began, bytes > HELPER_BYTES)
            };
            let both = tokio::time::timeout(HELPER_PATIENCE, async { tokio::join!(ask, listen) }).await;
            let (outcome, began) = match both {
                Ok((_, (began, true))) => (Err(too_long()), began),
                Ok((Ok(outcome), (began, _))) => (outcome.and_then(not_too_long), began),
                Ok((Err(_), (began, _))) => (Err(ModelFault::new(FaultKind::Garbage, PANICKED)), began),
                Err(_) => {
                    let text = format!("no whole answer within {} s", HELPER_PATIENCE.as_secs());
                    (Err(ModelFault::new(FaultKind::Idle, text)), true)
                }
            };
            if let Err(fault) = &outcome {
                tracing::debug!(kind = fault.kind.name(), "a helper gave up: {}", fault.message);
            }
            crash::point("C7.helper");
            let duration_ms = house.clock.now().since(started);
            Some(Input::HelperDone { token, outcome: Box::new(outcome), began, duration_ms })
        });
    }

    /// Looks at the calls and judges them, all before any is reported, in one trip to a thread that may wait
    /// for the disk and that nobody waits for while it judges a long line.
    pub fn prepare(&mut self, turn_id: TurnId, calls: Vec<Arc<ToolCall>>, around: Surroundings) {
        let looking = self.look(turn_id, calls, around);
        self.report(looking);
    }

    /// What a look comes to is reported from now on.
    pub fn report(&mut self, mut looking: Looking) {
        self.start(async move { (&mut looking.0).await.ok() });
    }

    /// Begins a look that is reported by nobody yet; dropped, it is given up.
    pub fn look(&self, turn_id: TurnId, calls: Vec<Arc<ToolCall>>, around: Surroundings) -> Looking {
        let (house, setup) = (Arc::clone(&self.house), self.house.setup());
        let blobs = Arc::clone(&self.blobs);
        Looking(tokio::spawn(async move {
            let (desk, runtime, mode) = (setup.tools.desk().await, Handle::current(), around.mode);
            let given: Vec<CallId> = calls.iter().map(|call| call.call_id).collect();
            let unwanted = CancellationToken::new();
            // Whoever drops this job wants no more of it.
            let _wanted = unwanted.clone().drop_guard();
            let looked = tokio::task::spawn_blocking(move || {
                let law = Law::look(&house, &around, &runtime);
                let scene = law.scene(&setup.settings, blobs, &around);
                let look = |call: &Arc<ToolCall>| {
                    let prepared = desk.prepare(call, &scene)?;
                    let judged = law::judged(&law, &setup.settings, &around, &call.tool, prepared);
                    if judged.1.verdict != VerdictKind::Allow {
                        setup.tools.not_now(call.call_id);
                    }
                    Ok(judged)
                };
                let look = |call: &Arc<ToolCall>| {
                    let looked = std::panic::catch_unwind(AssertUnwindSafe(|| look(call)));
                    let result = match looked {
                        Ok(looked) => looked.map_err(|refusal: Refusal| ToolOutcome::from(refusal)),
                        Err(_) => Err(panicked()),
                    };
                    Judged { call_id: call.call_id, result }
                };
                let judged: Vec<_> =
                    calls.iter().take_while(|_| !unwanted.is_cancelled()).map(look).collect();
                if unwanted.is_cancelled() {
                    setup.tools.none_now();
                }
                judged
            });
            let failed = || given.iter().map(|id| Judged { call_id: *id, result: Err(panicked()) }).collect();
            let calls = looked.await.unwrap_or_else(|_| failed());
            Input::Prepared { turn_id, mode, calls }
        }))
    }

    /// Looks at the file that an interrupted call was to change.
    pub fn inspect(&mut self, call_id: CallId, prepared: Arc<Prepared>, around: Surroundings) {
        let setup = self.house.setup();
        self.start(async move {
            let look = AssertUnwindSafe(setup.tools.inspect(call_id, &prepared, &around.scene));
            let inspection = look.catch_unwind().await.unwrap_or_else(|_| {
                Inspection::Conflict("looking at it failed inside the daemon; see its log".into())
            });
            Some(Input::Inspected { call_id, inspection })
        });
    }

    pub fn run_tool(&mut self, call: Arc<ToolCall>, prepared: Arc<Prepared>, around: Surroundings) {
        let (house, report, stop) = (Arc::clone(&self.house), self.report.clone(), CancellationToken::new());
        let setup = house.setup();
        self.tools.insert(call.call_id, stop.clone());
        let births = self.births.clone();
        let blobs = Arc::clone(&self.blobs);
        let goes_on = matches!(prepared.subject, Subject::Bash { background: true, .. });
        self.running.spawn(async move {
            let scene = match prepared.subject {
                // It looks at no files for the model; what it may read is for its sandbox to say, if it has one.
                Subject::Bash { .. } => Scene { blobs: Some(blobs), ..Scene::clone(&around.scene) },
                _ => Law::now(&house, &around).await.scene(&setup.settings, blobs, &around),
            };
            let started = house.clock.now();
            let call_id = call.call_id;
            if goes_on {
                let start = AssertUnwindSafe(setup.tools.start(&call, &prepared, &scene, births, stop));
                let (outcome, command) = match start.catch_unwind().await {
                    // What the model is told of it says the engine, which names it.
                    Ok(Ok(command)) => {
                        (ToolOutcome { goes_on: true, ..ToolOutcome::completed("") }, Some(Box::new(command)))
                    }
                    Ok(Err(outcome)) => (outcome, None),
                    Err(_) => (panicked(), None),
                };
                crash::point("C14");
                let duration_ms = house.clock.now().since(started);
                let input = Input::ToolDone { call_id, outcome: Box::new(outcome), duration_ms };
                return Some(Home { input, command });
            }
            let (progress, mut pieces) = mpsc::channel(PIECES);
            let run = async {
                crash::tool(&call.tool);
                setup.tools.run(&call, &prepared, &scene, progress, births, stop).await
            };
            let run = AssertUnwindSafe(run).catch_unwind();
            tokio::pin!(run);
            let outcome = loop {
                tokio::select! {
                    biased;
                    outcome = &mut run => break outcome,
                    Some(progress) = pieces.recv() => {
                        // The tool goes on while its output waits to be written.
                        let send = report.send(Box::new(Input::Progress { call_id, progress }));
                        tokio::pin!(send);
                        tokio::select! {
                            sent = &mut send => if sent.is_err() { return None },
                            outcome = &mut run => {
                                let _ = send.await;
                                break outcome;
                            }
                        }
                    }
                }
            };
            tell_rest(call_id, &mut pieces, &report).await;
            let outcome = outcome.unwrap_or_else(|_| panicked());
            crash::point("C14");
            let duration_ms = house.clock.now().since(started);
            Some(Input::ToolDone { call_id, outcome: Box::new(outcome), duration_ms }.into())
        });
    }
}

/// A look at calls that is under way.
pub(super) struct Looking(JoinHandle<Input>);

impl Drop for Looking {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a tool said last: it comes before its end, however quickly that follows.
async fn tell_rest(
    call_id: CallId,
    pieces: &mut mpsc::Receiver<Progress>,
    report: &mpsc::Sender<Box<Input>>,
) {
    while let Ok(progress) = pieces.try_recv() {
        if report.send(Box::new(Input::Progress { call_id, progress })).await.is_err() {
            return;
        }
    }
}

/// From so many bytes on a command line may take milliseconds to judge.
const LONG: usize = 4 << 10;

/// What the rules say of a call. A long line is judged on a thread that others do not wait for.
pub(super) async fn verdict(
    law: &Law,
    setup: &Arc<Setup>,
    around: &Surroundings,
    tool: &str,
    prepared: &Prepared,
) -> Verdict {
    if !matches!(&prepared.subject, Subject::Bash { command, .. } if command.len() >= LONG) {
        return law.verdict(&setup.settings, around, tool, prepared);
    }
    let (law, setup, around) = (law.clone(), Arc::clone(setup), around.clone());
    let (tool, prepared) = (tool.to_owned(), prepared.clone());
    let judged =
        tokio::task::spawn_blocking(move || law.verdict(&setup.settings, &around, &tool, &prepared)).await;
    judged.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// A helper's answer, if it is as short as it should be; what came with its end nobody has counted before.
fn not_too_long(reply: ModelReply) -> Result<ModelReply, ModelFault> {
    let text = |block: &ReplyBlock| match block {
        ReplyBlock::Text(text) | ReplyBlock::Thinking { text, .. } => text.len(),
        ReplyBlock::RedactedThinking(_) | ReplyBlock::ToolCall { .. } => 0,
    };
    if reply.content.iter().map(text).sum::<usize>() <= HELPER_BYTES {
        return Ok(reply);
    }
    Err(ModelFault { usage: Some(Box::new(reply.usage)), ..too_long() })
}

fn too_long() -> ModelFault {
    let text = format!("more than {} KiB, which is no short answer", HELPER_BYTES >> 10);
    ModelFault::new(FaultKind::Garbage, text)
}

/// Bytes of what a model says.
fn said(delta: &Delta) -> usize {
    match delta {
        Delta::Text { text, .. } | Delta::Thinking { text, .. } => text.len(),
        Delta::ToolInput { json, .. } => json.len(),
        _ => 0,
    }
}

fn panicked() -> ToolOutcome {
    ToolOutcome::failed("internal", "the tool failed inside the daemon; its log says more. Try another way.")
}
