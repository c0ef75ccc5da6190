//! Bash (T6): run a command, stream what it says, leave nothing behind. What goes on behind its call is in
//! `background`.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::birth::{Birth, register};
use super::capture::{Capture, Utf8};
use super::cell::Powers;
use super::environment::scrub;
use super::limits::{Breach, Limits};
use super::process::{self, Launch, Shell};
use super::sandbox::{self, Available, Choice, Confined, Ground, Layout, Level, Lingering};
use super::spool::{Spool, Spooled};
use super::tree::{Ended, Tree};
use crate::crash;
use crate::proc;
use crate::tools::context::{Context, Settings};
use crate::tools::crowd::Presence;
use crate::tools::input;
use crate::tools::refusal::{Refusal, cancelled};
use crate::tools::toolbox;
use crate::types::blob::BlobRef;
use crate::types::ids::{CallId, SessionId};
use crate::types::tool::{
    Barrier, Blocked, Confinement, Prepared, ProcessRecord, Progress, Subject, ToolOutcome, ToolStatus,
};

/// A process gets one argument of at most 128 KiB.
const LONGEST_COMMAND: usize = 100_000;
/// How long output is still read after the shell's exit, while others hold its pipes.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// A deadline that is further away than the clock can tell.
const FOREVER: Duration = Duration::from_secs(365 * 86_400);
/// Between TERM and KILL, when a call is stopped and when it left children behind.
const STOP_GRACE: Duration = Duration::from_secs(2);
const LEFTOVER_GRACE: Duration = Duration::from_millis(500);
/// Output that is read as fast as it comes. A flood beyond it is read in bursts with a rest after each while
/// anybody waits for a model, some 3 MB a second: its writer waits meanwhile, and others have the processor
/// and the disk (S13).
const UNHURRIED_BYTES: u64 = 4 << 20;
const BURST_BYTES: u64 = 64 << 10;
const REST: Duration = Duration::from_millis(20);

#[derive(Debug, Deserialize, JsonSchema)]
pub(in crate::tools) struct Input {
    /// The command line, run by bash.
    command: String,
    /// What it does, in a few words, for the person who is asked.
    #[serde(default)]
    description: Option<String>,
    /// Stop it after this many milliseconds (default 120000, at most 600000).
    #[serde(default, deserialize_with = "input::number")]
    #[schemars(with = "Option<u64>")]
    timeout_ms: Option<u64>,
    /// Give the result at once and let the command go on; for servers, watchers and long builds. Read what
    /// it says with BashOutput and end it with KillBash. Then timeout_ms bounds its whole life.
    #[serde(default, deserialize_with = "input::flag")]
    #[schemars(with = "bool")]
    run_in_background: bool,
}

impl Input {
    /// What is judged: the text, and where it starts. A folder is as much a part of a command as its words.
    fn subject(&self, cwd: &Path, workspace: &Path) -> Subject {
        Subject::Bash {
            command: self.command.clone(),
            background: self.run_in_background,
            cwd: (cwd != workspace).then(|| cwd.to_owned()),
        }
    }

    /// Whether the command goes on behind its call.
    pub(in crate::tools) fn goes_on(&self) -> bool {
        self.run_in_background
    }

    /// How long it may run, of those that say so.
    pub(super) fn timeout_ms(&self) -> Option<u64> {
        self.timeout_ms
    }
}

pub(in crate::tools) const DESCRIPTION: &str = "Runs a command with bash. The working directory stays for the \
    next command as long as it is inside the workspace; variables and functions do not. There is no terminal and \
    no input, and everything the command started is ended with it; with run_in_background it goes on behind the \
    call. Use Read, Edit, Glob and Grep for files.";

pub(in crate::tools) fn prepare(
    context: &Context,
    here: &Available,
    call_id: CallId,
    input: &Input,
) -> Result<Prepared, Refusal> {
    let command = &input.command;
    if command.trim().is_empty() {
        return Err(Refusal::new("invalid_input", "the command is empty"));
    }
    if command.contains('\0') {
        return Err(Refusal::new("invalid_input", "the command holds a NUL character"));
    }
    if command.len() > LONGEST_COMMAND {
        return Err(Refusal::new(
            "invalid_input",
            format!("the command is longer than {LONGEST_COMMAND} bytes; write a script and run that"),
        ));
    }
    if input.timeout_ms == Some(0) {
        return Err(Refusal::new("invalid_input", "timeout_ms must be more than 0"));
    }
    context.jails.of(&context.scene).in_place(&context.scene.cwd)?;
    let choice = context.settings.sandbox.choose(context.scene.unattended, here)?;
    if choice.level >= Level::Landlock {
        context.layouts.look(context, call_id, choice.network);
    }
    let summary = match input.description.as_deref().map(str::trim) {
        Some(text) if !text.is_empty() => one_line(text),
        _ => one_line(command.trim()),
    };
    Ok(Prepared {
        subject: input.subject(&starting_folder(context), &context.scene.workspace),
        summary: if input.run_in_background { format!("{summary} (in the background)") } else { summary },
        diff: None,
        read_only: false,
        change: None,
        sandbox: Some(choice.told()),
    })
}

fn one_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or("");
    let short: String = line.chars().take(120).collect();
    if short.len() < text.len() { format!("{short} …") } else { short }
}

/// Why a command is over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Exited,
    TimedOut,
    Stopped,
}

/// What connects a running command with its session.
pub(in crate::tools) struct Wires {
    /// Output as it comes.
    pub(in crate::tools) progress: mpsc::Sender<Progress>,
    /// Its process, once it is started.
    pub(in crate::tools) births: mpsc::Sender<Birth>,
    /// Ends it.
    pub(in crate::tools) stop: CancellationToken,
}

/// Runs to the end. When this returns, every process of the call is gone or named as a survivor;
/// when it is dropped, they are killed.
pub(in crate::tools) async fn run(
    context: &Context,
    call_id: CallId,
    input: &Input,
    prepared: &Prepared,
    wires: Wires,
) -> Result<ToolOutcome, Refusal> {
    let settings = &context.settings;
    let limit = input.timeout_ms.unwrap_or(settings.bash_timeout_ms).min(settings.bash_timeout_max_ms);
    let stop = wires.stop.clone();
    let Some(started) = start(context, call_id, input, prepared, wires).await? else {
        return Ok(cancelled());
    };
    let (ran, output) = started.see_through(Duration::from_millis(limit), &stop).await;
    let said = output.finish(settings.output_cap).await;
    crash::point("C14.spooled");
    let folder = Folder::of(context, &ran).await;
    Ok(Report { context, limit, ran, folder }.tell(said))
}

/// A command that runs and whose process is recorded. Dropping it kills all of it.
pub(super) struct Started {
    shell: Shell,
    tree: Tree,
    pub(super) output: Output,
    begun: Instant,
    choice: Choice,
    how: Confinement,
    ground: Ground,
    powers: Powers,
    cwd: PathBuf,
    /// Its own temporary folder and the like stay as long as it runs.
    confined: Confined,
    /// Where what stands in for it may stay for a moment more, and whose it is then.
    lingering: (Arc<Lingering>, SessionId),
}

/// A command that is over.
pub(super) struct Ran {
    pub(super) end: End,
    pub(super) status: Option<ExitStatus>,
    pub(super) ended: Ended,
    pub(super) choice: Choice,
    /// As it is told.
    how: Confinement,
    ground: Ground,
    powers: Powers,
    /// Where it started, and where it ended.
    cwd: PathBuf,
    folder: Option<PathBuf>,
    pub(super) spent: Duration,
}

/// Starts a command; `None` if it was stopped before.
pub(super) async fn start(
    context: &Context,
    call_id: CallId,
    input: &Input,
    prepared: &Prepared,
    wires: Wires,
) -> Result<Option<Started>, Refusal> {
    let Wires { progress, births, stop } = wires;
    if stop.is_cancelled() {
        return Ok(None);
    }
    let settings = &context.settings;
    let Place { cwd, choice, confined, ground } = confine(context, call_id, prepared).await?;
    toolbox::same_target(prepared, &input.subject(&cwd, &context.scene.workspace))?;
    let begun = Instant::now();

    let cell = context.cells.open(call_id, &settings.limits);
    let powers = if cell.is_some() { context.cells.powers() } else { Powers::default() };
    let launch = Launch {
        command: &input.command,
        cwd: &cwd,
        environment: environment(context, call_id, &confined),
        limits: settings.limits.rlimits(powers),
        cell: cell.as_ref(),
        confined: &confined,
    };
    let mut shell = process::start(launch).map_err(|e| {
        Refusal::new("spawn_failed", format!("could not start the shell in {}: {e}", cwd.display()))
    })?;
    crash::point("C13.started");
    let tree = Tree::new(shell.pid, shell.started, format!("AGENTD_CALL={call_id}"), cell);
    let record = ProcessRecord { call_id, pid: shell.pid, started: shell.started, boot_id: proc::boot_id() };
    if let Err(refusal) = register(&births, record).await {
        // Not known to anybody after our death: it must not outlive this moment.
        tree.end(Duration::ZERO).await;
        return Err(refusal);
    }
    crash::point("C13.recorded");
    let spool = Spool::new(settings.spools.clone(), call_id);
    let output = Output::new(&mut shell, settings, progress, spool);
    let how = prepared.sandbox.filter(|held| held.outside).unwrap_or(choice.told());
    let lingering = (Arc::clone(&context.lingering), context.scene.session_id);
    Ok(Some(Started { shell, tree, output, begun, choice, how, ground, powers, cwd, confined, lingering }))
}

impl Started {
    /// Follows it to its end: until it exits, has run for `limit`, or is stopped. Then every process of it
    /// is gone or named as a survivor.
    pub(super) async fn see_through(self, limit: Duration, stop: &CancellationToken) -> (Ran, Output) {
        let Self {
            mut shell,
            tree,
            mut output,
            begun,
            choice,
            how,
            ground,
            powers,
            cwd,
            confined,
            lingering,
        } = self;
        let deadline = begun.checked_add(limit).unwrap_or_else(|| begun + FOREVER);
        let (end, mut status) = follow(&mut shell, &mut output, deadline, stop).await;

        // The pipes are read on while the tree ends, so that nobody hangs in a write.
        let grace = if end == End::Exited { LEFTOVER_GRACE } else { STOP_GRACE };
        let mut ending = std::pin::pin!(tree.end(grace));
        let ended = loop {
            tokio::select! {
                ended = &mut ending => break ended,
                result = shell.child.wait(), if status.is_none() => status = result.ok(),
                () = output.pump(), if output.is_open() => {}
            }
        };
        if status.is_none() {
            status = timeout(LAST_WORDS, shell.child.wait()).await.ok().and_then(Result::ok);
        }
        let _ = timeout(LAST_WORDS, output.drain()).await;
        let folder = shell.last_folder();
        let spent = begun.elapsed();
        confined.leave(&lingering.0, lingering.1);
        (Ran { end, status, ended, choice, how, ground, powers, cwd, folder, spent }, output)
    }
}

/// The session's folder; the workspace if that is gone. Waits for the disk.
fn starting_folder(context: &Context) -> PathBuf {
    let scene = &context.scene;
    if scene.cwd.is_dir() { scene.cwd.clone() } else { scene.workspace.clone() }
}

/// Where a command runs, and what holds it.
struct Place {
    cwd: PathBuf,
    choice: Choice,
    confined: Confined,
    /// What it may write.
    ground: Ground,
}

/// Makes what holds the command: what was judged, or something stronger.
async fn confine(context: &Context, call_id: CallId, prepared: &Prepared) -> Result<Place, Refusal> {
    let here = Available::here().await;
    // What holds a command goes by the folder's path.
    context.jails.of(&context.scene).in_place(&context.scene.cwd)?;
    let sandbox = &context.settings.sandbox;
    let outside = prepared.sandbox.is_some_and(|judged| judged.outside);
    if outside && !sandbox.offer_outside.holds(context.scene.unattended) {
        return Err(Refusal::new(
            "target_changed",
            "the configuration no longer lets commands run outside the sandbox; it was not run",
        ));
    }
    let choice = match outside {
        true => Choice { level: Level::Rlimits, network: true, guards: false },
        false => sandbox.choose(context.scene.unattended, here)?,
    };
    if prepared.sandbox.is_some_and(|judged| choice.told().is_weaker_than(judged)) {
        return Err(Refusal::new(
            "target_changed",
            "the command would now be held less than when it was judged; try again",
        ));
    }
    if choice.level < Level::Landlock {
        context.lingering.end(context.scene.session_id);
    }
    let found = context.layouts.take(context, call_id, choice.network);
    let cwd = || starting_folder(context);
    // What is left to look at is the folder and little else, and the start waits for that on this thread anyway.
    let (cwd, confined, ground) = match (choice.level, found) {
        (Level::Off | Level::Rlimits, _) => {
            let cwd = cwd();
            let confined = Confined::new(choice, None, here, &cwd);
            (cwd, confined, Ground::default())
        }
        (Level::Landlock, Some(layout)) if let Some(confined) = Confined::at_hand(choice, &layout, here) => {
            let cwd = cwd();
            let ground = layout.ground(&cwd);
            (cwd, confined, ground)
        }
        (Level::Bubblewrap, Some(layout)) => {
            let cwd = cwd();
            let ground = layout.ground(&cwd);
            let confined = Confined::new(choice, Some((&layout, sandbox.temp.as_path())), here, &cwd);
            (cwd, confined, ground)
        }
        (Level::Landlock | Level::Bubblewrap, _) => {
            let context = context.clone();
            toolbox::blocking(move || {
                let layout = Layout::of(&context, choice.network).map_err(not_made)?;
                let cwd = starting_folder(&context);
                let temp = context.settings.sandbox.temp.as_path();
                let ground = layout.ground(&cwd);
                Ok((cwd.clone(), Confined::new(choice, Some((&layout, temp)), here, &cwd), ground))
            })
            .await?
        }
    };
    Ok(Place { cwd, choice, confined: confined.map_err(not_made)?, ground })
}

fn not_made(error: std::io::Error) -> Refusal {
    Refusal::new("sandbox_failed", format!("the sandbox could not be made, so nothing was run: {error}"))
}

fn environment(
    context: &Context,
    call_id: CallId,
    confined: &Confined,
) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let settings = &context.settings;
    let mut variables = scrub(std::env::vars_os(), &settings.env_allow, &settings.home);
    for (name, value) in confined.variables() {
        variables.retain(|(known, _)| known != name);
        variables.push((name.into(), value.into()));
    }
    if let Some(socket) = &settings.socket {
        variables.push(("AGENTD_SOCKET".into(), socket.into()));
    }
    variables.push(("AGENTD_INSTANCE".into(), settings.instance.clone().into()));
    variables.push(("AGENTD_SESSION".into(), context.scene.session_id.to_string().into()));
    variables.push(("AGENTD_CALL".into(), call_id.to_string().into()));
    variables
}

/// Follows the command until it exits (and its output ends, or a moment has passed), its time is
/// over, or it is stopped.
async fn follow(
    shell: &mut Shell,
    output: &mut Output,
    deadline: Instant,
    stop: &CancellationToken,
) -> (End, Option<ExitStatus>) {
    let mut exited: Option<(ExitStatus, Instant)> = None;
    loop {
        let until = exited.map_or(deadline, |(_, until)| until.min(deadline));
        tokio::select! {
            result = shell.child.wait(), if exited.is_none() => match result {
                Ok(status) => exited = Some((status, Instant::now() + LAST_WORDS)),
                Err(_) => return (End::Exited, None),
            },
            () = output.pump(), if output.is_open() => {}
            () = stop.cancelled() => return (End::Stopped, exited.map(|(status, _)| status)),
            () = sleep_until(until) => {
                let end = if exited.is_some() { End::Exited } else { End::TimedOut };
                return (end, exited.map(|(status, _)| status));
            }
        }
        if let Some((status, _)) = exited
            && !output.is_open()
        {
            return (End::Exited, Some(status));
        }
    }
}

/// What the command says: kept for the model, sent on as progress.
pub(super) struct Output {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    texts: [Utf8; 2],
    bytes: [u64; 2],
    capture: Arc<Mutex<Capture>>,
    spool: Spool,
    pub(super) progress: mpsc::Sender<Progress>,
    /// Bytes of progress that may still be sent.
    budget: usize,
    /// Bytes read since the last rest, and when the one that is due ends.
    burst: u64,
    rests_until: Option<Instant>,
}

const STREAMS: [&str; 2] = ["stdout", "stderr"];

impl Output {
    fn new(shell: &mut Shell, settings: &Settings, progress: mpsc::Sender<Progress>, spool: Spool) -> Self {
        let (stdout, stderr) = shell.child.streams();
        Self {
            stdout,
            stderr,
            texts: [Utf8::default(), Utf8::default()],
            bytes: [0, 0],
            capture: Arc::default(),
            spool,
            progress,
            budget: settings.max_progress_bytes,
            burst: 0,
            rests_until: None,
        }
    }

    fn is_open(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }

    /// Takes one piece of output, or notices the end of a stream. Cancel-safe: a piece is
    /// either not read yet or taken in whole.
    async fn pump(&mut self) {
        async fn next<S: tokio::io::AsyncRead + Unpin>(stream: &mut Option<S>, piece: &mut [u8]) -> usize {
            match stream {
                // A broken pipe is the end of it.
                Some(stream) => stream.read(piece).await.unwrap_or(0),
                None => std::future::pending().await,
            }
        }
        self.spool.settle().await;
        if let Some(until) = self.rests_until {
            sleep_until(until).await;
            self.rests_until = None;
        }
        let (mut out, mut err) = ([0; 8192], [0; 8192]);
        let (which, n) = tokio::select! {
            n = next(&mut self.stdout, &mut out) => (0, n),
            n = next(&mut self.stderr, &mut err) => (1, n),
        };
        let piece = if which == 0 { &out[..n] } else { &err[..n] };
        self.bytes[which] += n as u64;
        self.burst += n as u64;
        if self.burst >= BURST_BYTES {
            self.burst = 0;
            let is_flood = self.bytes.iter().sum::<u64>() > UNHURRIED_BYTES;
            self.rests_until = (is_flood && Presence::is_any()).then(|| Instant::now() + REST);
        }
        let text = if n > 0 { self.texts[which].push(piece) } else { self.texts[which].finish() };
        match (n, which) {
            (0, 0) => self.stdout = None,
            (0, _) => self.stderr = None,
            _ => {}
        }
        self.take(which, text);
    }

    fn take(&mut self, which: usize, text: String) {
        if text.is_empty() {
            return;
        }
        kept(&self.capture).push(&text);
        self.spool.push(&text);
        if text.len() <= self.budget {
            self.budget -= text.len();
            // A full channel means a slow listener: progress is dropped, output is not.
            let _ = self.progress.try_send(Progress { stream: STREAMS[which], text });
        } else {
            self.budget = 0;
        }
    }

    /// Reads what is left.
    async fn drain(&mut self) {
        while self.is_open() {
            self.pump().await;
        }
    }

    /// What it says, as it comes.
    pub(super) fn capture(&self) -> Arc<Mutex<Capture>> {
        Arc::clone(&self.capture)
    }

    /// Takes the last of it; then the whole of it is there to be kept.
    pub(super) fn close(&mut self) {
        for which in [0, 1] {
            let text = self.texts[which].finish();
            self.take(which, text);
        }
    }

    /// What is to be kept of it.
    pub(super) fn into_spool(self) -> Spool {
        self.spool
    }

    async fn finish(mut self, cap: usize) -> Said {
        self.close();
        let (text, truncated) = std::mem::take(&mut *kept(&self.capture)).render(cap);
        Said { text, truncated, bytes: self.bytes, spooled: self.spool.finish(!truncated).await }
    }
}

/// What is kept of an output. Nobody holds it while waiting for something.
pub(super) fn kept(capture: &Mutex<Capture>) -> MutexGuard<'_, Capture> {
    capture.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a command was held, and what of it seems to have been in its way: `files` or `network`.
#[derive(serde::Serialize)]
struct Held {
    #[serde(flatten)]
    how: Confinement,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<Barrier>,
}

/// What the command said.
struct Said {
    text: String,
    /// Whether `text` is only the beginning and the end of it.
    truncated: bool,
    /// Of each stream.
    bytes: [u64; 2],
    /// The whole.
    spooled: Option<Spooled>,
}

/// Everything that is known when a command is over.
struct Report<'a> {
    context: &'a Context,
    /// In milliseconds.
    limit: u64,
    ran: Ran,
    folder: Folder,
}

impl Ran {
    /// The signal that ended the shell, and its exit code as shells tell it.
    pub(super) fn code(&self) -> (Option<i32>, Option<i32>) {
        use std::os::unix::process::ExitStatusExt as _;
        let signal = self.status.and_then(|status| status.signal());
        (signal, self.status.and_then(|status| status.code().or(signal.map(|signal| 128 + signal))))
    }

    /// What may have been in the way of a command that failed: the limit that it ran into, as far as the
    /// kernel tells, else what its words let suspect.
    pub(super) fn trouble(
        &self,
        limits: &Limits,
        text: &str,
    ) -> (Option<Breach>, Option<Blocked>, Vec<String>) {
        let (signal, exit_code) = self.code();
        let breach = self.breach(limits, signal, exit_code);
        if let Some(breach) = breach {
            return (Some(breach), None, vec![format!("The command {}.", limits.words(breach))]);
        }
        if let Some(words) = limits.suspect(text, self.powers) {
            return (None, None, vec![words]);
        }
        let blocked = sandbox::suspect(text, self.choice, &self.ground);
        let words = blocked.as_ref().map(|by| sandbox::blocked_words(by, self.choice));
        (None, blocked, words.into_iter().collect())
    }

    fn breach(&self, limits: &Limits, signal: Option<i32>, exit_code: Option<i32>) -> Option<Breach> {
        if self.ended.oom_kills > 0 {
            return Some(Breach::Memory);
        }
        if self.ended.refused_forks > 0 {
            return Some(Breach::Processes);
        }
        // The shell tells of its last command's signal by its own exit code.
        limits.breach_of(signal.or(exit_code.map(|code| code - 128))?)
    }
}

impl Report<'_> {
    fn tell(self, said: Said) -> ToolOutcome {
        let Said { mut text, truncated, bytes, spooled } = said;
        let (signal, exit_code) = self.ran.code();

        let mut notes = Vec::new();
        let (mut limit_reached, mut blocked): (_, Option<Blocked>) = (None, None);
        let (status, code) = match (self.ran.end, exit_code) {
            (End::Stopped, _) => {
                notes.push("The command was cancelled.".to_owned());
                (ToolStatus::Cancelled, Some("cancelled"))
            }
            (End::TimedOut, _) => {
                notes.push(format!("The command was stopped after {} ms (its timeout).", self.limit));
                (ToolStatus::Failed, Some("timed_out"))
            }
            (End::Exited, Some(0)) => (ToolStatus::Completed, None),
            (End::Exited, exit_code) => {
                let trouble;
                (limit_reached, blocked, trouble) = self.ran.trouble(&self.context.settings.limits, &text);
                notes.extend(trouble);
                notes.push(match (signal, exit_code) {
                    (Some(signal), _) => format!("The command was ended by signal {signal}."),
                    (None, Some(code)) => format!("Exit code {code}"),
                    (None, None) => "The exit code of the command is not known.".to_owned(),
                });
                (ToolStatus::Failed, Some(limit_reached.map_or("exit_code", |_| "limit_exceeded")))
            }
        };
        let survivors = &self.ran.ended.survivors;
        let cwd = self.next_folder(&mut notes);
        if !survivors.is_empty() {
            notes.push(format!("These processes could not be ended: {survivors:?}"));
        }
        let blob = spooled.and_then(|spooled| {
            notes.push(spooled.note);
            spooled.blob
        });
        if text.trim().is_empty() && notes.is_empty() {
            notes.push("(no output)".to_owned());
        }
        if !notes.is_empty() {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&notes.join("\n"));
        }
        let detail = json!({
            "exit_code": exit_code,
            "signal": signal,
            "timed_out": self.ran.end == End::TimedOut,
            "truncated": truncated,
            "stdout_bytes": bytes[0],
            "stderr_bytes": bytes[1],
            "duration_ms": u64::try_from(self.ran.spent.as_millis()).unwrap_or(u64::MAX),
            "cwd": cwd.as_ref().unwrap_or(&self.ran.cwd),
            "survivors": survivors,
            "limit": limit_reached.map(Breach::name),
            "sandbox": Held { how: self.ran.how, blocked: blocked.as_ref().map(|blocked| blocked.by) },
        });
        ToolOutcome {
            status,
            code: code.map(str::to_owned),
            detail: Some(detail),
            cwd,
            whole: blob.as_ref().map(BlobRef::from),
            blobs: blob.into_iter().collect(),
            blocked,
            ..ToolOutcome::completed(text)
        }
    }
}

/// Where the next command starts.
enum Folder {
    /// Where this one did, as far as anybody knows.
    Same,
    /// In another folder of the workspace.
    Moved(PathBuf),
    /// The command ended outside, or in a folder that is gone.
    Reset,
}

impl Folder {
    async fn of(context: &Context, ran: &Ran) -> Self {
        let started_elsewhere = ran.cwd != context.scene.cwd;
        match &ran.folder {
            Some(folder) if *folder == ran.cwd && !started_elsewhere => Self::Same,
            Some(folder) if context.scene.holds(folder) => {
                let folder = folder.clone();
                let looked = toolbox::blocking(move || Ok(folder.is_dir().then_some(folder))).await;
                looked.ok().flatten().map_or(Self::Reset, Self::Moved)
            }
            Some(_) => Self::Reset,
            None if started_elsewhere => Self::Reset,
            None => Self::Same,
        }
    }
}

impl Report<'_> {
    /// The folder for the next command, if it is another one than before.
    fn next_folder(&self, notes: &mut Vec<String>) -> Option<PathBuf> {
        let scene = &self.context.scene;
        match &self.folder {
            Folder::Same => None,
            Folder::Moved(folder) => (*folder != scene.cwd).then(|| folder.clone()),
            Folder::Reset => {
                notes.push(format!("The working directory was reset to {}", self.ran.cwd.display()));
                (self.ran.cwd != scene.cwd).then(|| self.ran.cwd.clone())
            }
        }
    }
}
