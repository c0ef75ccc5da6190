//! Effects → model, tools, timers; results come home as inputs. Every job is owned by its session:
//! when the session stops them, or goes, they go.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::blobs::Own;
use super::house::House;
use super::law::Law;
use super::{media, trust};
use crate::crash;
use crate::engine::{Engine, Input, Judged, SessionRules};
use crate::store::SessionKey;
use crate::tools::{Birth, Blobs, Scene, Unreadable};
use crate::types::ids::{CallId, Seq, SessionId, TurnId};
use crate::types::message::ToolCall;
use crate::types::model::{Delta, FaultKind, ModelFault, ModelRequest};
use crate::types::tool::{Confinement, Inspection, Prepared, ToolOutcome};
use crate::workspace;

#[cfg(test)]
mod tests;

/// Reports that may wait for the session; jobs wait beyond that.
const REPORTS: usize = 64;
/// Batches of deltas between a model's stream and the session.
const BATCHES: usize = 16;
/// Pieces of output between a tool and its job.
const PIECES: usize = 64;

/// The jobs of one session.
pub(super) struct Jobs {
    house: Arc<House>,
    key: SessionKey,
    /// What tools may read of the session's own.
    blobs: Arc<dyn Blobs>,
    running: JoinSet<Option<Input>>,
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

/// Deltas of one call. Kept until the next call, also when its job is stopped: a job that found
/// nobody listening would report a failure.
struct Stream {
    token: Seq,
    batches: mpsc::Receiver<Vec<Delta>>,
}

impl Stream {
    fn input(&self, deltas: Vec<Delta>) -> Input {
        Input::Deltas { token: self.token, deltas }
    }
}

/// The next deltas, if a model is answering. Cancel-safe.
async fn hear(stream: &mut Option<Stream>) -> Option<Input> {
    let stream = stream.as_mut()?;
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
    pub fn of(engine: &Engine, session_id: crate::types::ids::SessionId) -> Self {
        let spec = engine.spec();
        let scene = Scene {
            session_id,
            workspace: PathBuf::from(&spec.cwd),
            cwd: engine.cwd().to_path_buf(),
            reads: engine.reads(),
            unattended: spec.background,
            unreadable: Unreadable::default(),
            blobs: None,
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
            Some(ended) = self.running.join_next() => self.ended(ended),
            else => std::future::pending().await,
        }
    }

    /// Something that has happened already, without waiting.
    pub fn try_next(&mut self) -> Option<Input> {
        let report = self.reports.try_recv().ok().map(|input| *input);
        report.or_else(|| {
            let stream = self.stream.as_mut()?;
            let deltas = stream.batches.try_recv().ok()?;
            Some(stream.input(deltas))
        })
    }

    fn ended(&mut self, ended: Result<Option<Input>, tokio::task::JoinError>) -> Option<Input> {
        self.others.retain(|job| !job.is_finished());
        let input = ended.ok().flatten();
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
    }

    /// Stops model calls, waits and preparations; running tools go on.
    pub fn stop_all_but_tools(&mut self) {
        for job in self.others.drain(..) {
            job.abort();
        }
    }

    /// Drops everything, finished or not: for jobs that did not obey in time.
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
        self.others.push(self.running.spawn(job));
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
        self.stream = Some(Stream { token, batches });
        self.start(async move {
            crash::point("C3");
            let started = house.clock.now();
            if setup.models.model(&request.model).vision != Some(false) {
                request.media = media::of(&house.store, key, &request).await;
            }
            let result = AssertUnwindSafe(setup.models.call(&request, &out)).catch_unwind().await;
            let duration_ms = house.clock.now().since(started);
            let result = result.unwrap_or_else(|_| {
                Err(ModelFault::new(
                    FaultKind::Garbage,
                    "the adapter failed on this answer; see the daemon's log",
                ))
            });
            Some(match result {
                Ok(reply) => {
                    let cost_usd_micros =
                        setup.models.price(&request.model).map(|price| price.cost_usd_micros(&reply.usage));
                    Input::ModelDone { token, reply: Box::new(reply), cost_usd_micros, duration_ms }
                }
                Err(fault) => {
                    let price = setup.models.price(&request.model);
                    Input::ModelFailed { token, fault, price, duration_ms }
                }
            })
        });
    }

    /// Looks at the calls and judges them, all before any is reported.
    pub fn prepare(&mut self, turn_id: TurnId, calls: Vec<Arc<ToolCall>>, around: Surroundings) {
        let (house, setup) = (Arc::clone(&self.house), self.house.setup());
        let blobs = Arc::clone(&self.blobs);
        self.start(async move {
            let law = Law::now(&house, &around).await;
            let scene = law.scene(&setup.settings, blobs, &around);
            let mut judged = Vec::with_capacity(calls.len());
            for call in &calls {
                let looked = AssertUnwindSafe(setup.tools.prepare(call, &scene)).catch_unwind().await;
                let result = match looked {
                    Ok(Ok(mut prepared)) => {
                        let offer = setup.settings.engine.offer_outside;
                        if prepared.sandbox.is_some_and(|held| held.level >= 2)
                            && offer.holds(around.scene.unattended)
                            && law.lets_outside(&around, &prepared)
                        {
                            prepared.sandbox = Some(Confinement::OUTSIDE);
                        }
                        let verdict = law.verdict(&setup.settings, &around, &call.tool, &prepared);
                        Ok((prepared, verdict))
                    }
                    Ok(Err(outcome)) => Err(outcome),
                    Err(_) => Err(panicked()),
                };
                judged.push(Judged { call_id: call.call_id, result });
            }
            Some(Input::Prepared { turn_id, mode: around.mode, calls: judged })
        });
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
        self.running.spawn(async move {
            let scene = Law::now(&house, &around).await.scene(&setup.settings, blobs, &around);
            let started = house.clock.now();
            let call_id = call.call_id;
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
                            outcome = &mut run => break outcome,
                        }
                    }
                }
            };
            let outcome = outcome.unwrap_or_else(|_| panicked());
            crash::point("C14");
            let duration_ms = house.clock.now().since(started);
            Some(Input::ToolDone { call_id, outcome: Box::new(outcome), duration_ms })
        });
    }
}

fn panicked() -> ToolOutcome {
    ToolOutcome::failed("internal", "the tool failed inside the daemon; its log says more. Try another way.")
}
