//! B8: a turn with a hundred commands that do nothing, at each sandbox level, compared with a bare shell at the same
//! level.

use std::fs::{File, create_dir_all, write};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use agentd::tools::{LevelSetting, SessionContext, Settings, Toolbox, UnreadablePaths};
use agentd::types::ids::{Mint, Seed};

use super::Outcome;
use super::bare;
use super::daemon::DaemonSetup;
use super::figures::{Figure, Sample, Target};
use super::model::{ModelServer, Script};
use super::wire::{Chunks, create_answer, create_bash_call};

const CALLS: u32 = 100;
const ROUNDS: usize = 15;
/// Each call syncs three times: the model's message with the tool call, the intent, and the result.
const SYNCS_PER_CALL: f64 = 3.0;
/// Maximum time of a call in addition to its process and its syncs.
const MAX_OVERHEAD_MS: f64 = 3.0;

const LEVELS: [(&str, LevelSetting); 4] = [
    ("off", LevelSetting::Off),
    ("rlimits", LevelSetting::Rlimits),
    ("landlock", LevelSetting::Landlock),
    ("bubblewrap", LevelSetting::Bubblewrap),
];

pub fn run() -> Outcome<()> {
    for (name, level) in LEVELS {
        // A level that does not work on this machine is reported and left out.
        if let Err(error) = measure(name, level) {
            println!("# B8 {name}: not measured: {error}");
        }
    }
    Ok(())
}

/// The reference: a function that starts a shell in the same sandbox as the daemon's commands and returns the time. The
/// sandbox is prepared before the clock starts.
fn create_shell_spawner(setup: &DaemonSetup, level: LevelSetting) -> Outcome<impl Fn() -> Outcome<Duration>> {
    let home = setup.home();
    let mut settings = Settings::new(home.clone());
    settings.sandbox.level = level;
    settings.sandbox.hidden = setup.hidden_paths();
    settings.sandbox.temp = setup.path("temp");
    let mut mint = Mint::new(0, Seed(1));
    let context = SessionContext {
        session_id: mint.session(),
        workspace: setup.workspace(),
        additional: Vec::new(),
        cwd: setup.workspace(),
        reads: Arc::default(),
        unattended: false,
        unreadable: UnreadablePaths::default(),
        blobs: None,
        mode: Default::default(),
        project: None,
        todos: std::sync::Arc::default(),
        commands: Vec::new(),
        agents: std::sync::Arc::from([]),
        mcp: Default::default(),
        bash_timeout_ms: None,
        environment: None,
    };
    let tools = Toolbox::new(settings);
    Ok(move || match level {
        // The child has nothing to set up, so the standard library can use its fastest way to start it.
        LevelSetting::Off | LevelSetting::Rlimits => bare::spawn_shell(),
        _ => Ok(tools.bare_shell(&context)?),
    })
}

/// Creates a repository, which most workspaces have. The sandbox protects git's configuration and hooks for each
/// command, which takes time.
fn create_repository(setup: &DaemonSetup) -> Outcome<()> {
    let git = setup.workspace().join(".git");
    for folder in ["hooks", "objects", "refs/heads"] {
        create_dir_all(git.join(folder))?;
    }
    write(git.join("HEAD"), "ref: refs/heads/main\n")?;
    Ok(write(git.join("config"), "[core]\n\trepositoryformatversion = 0\n")?)
}

fn measure(name: &str, level: LevelSetting) -> Outcome<()> {
    let model = ModelServer::start()?;
    let setup = DaemonSetup::new(Some(model.address))?;
    setup.set_sandbox_level(name)?;
    create_repository(&setup)?;
    let spawn_shell = create_shell_spawner(&setup, level)?;
    let mut file = File::create(setup.path("synced"))?;
    let daemon = setup.start_daemon()?;
    let mut client = daemon.connect()?;
    let (mut calls, mut cpu) = (Sample::default(), Sample::default());
    let (mut machine, mut overheads) = (Sample::default(), Sample::default());
    for _ in 0..ROUNDS {
        // Use a new session in each round, because the overhead of a call grows with the conversation.
        let session = client.create_session(&setup.workspace())?;
        client.run_turn(&session)?;
        let (mut spawns, mut syncs) = (Sample::default(), Sample::default());
        for _ in 0..CALLS / 5 {
            spawns.push_ms(spawn_shell()?);
            syncs.push_ms(bare::append_page(&mut file)?);
        }
        machine.push(spawns.median() + SYNCS_PER_CALL * syncs.median());
        let remaining = Arc::new(AtomicU32::new(CALLS));
        model.set_script(Script::Repeated {
            remaining,
            answer: create_bash_call("true"),
            last: create_answer(1, Chunks::Large),
        });
        let (before, began) = (daemon.cpu_time()?, Instant::now());
        client.run_turn(&session)?;
        let call = began.elapsed().as_secs_f64() * 1e3 / f64::from(CALLS);
        calls.push(call);
        // Compare with the references of the same round, because the machine's speed changes from second to second.
        overheads.push(call - (spawns.median() + SYNCS_PER_CALL * syncs.median()));
        cpu.push(daemon.cpu_time()?.saturating_sub(before).as_secs_f64() * 1e3 / f64::from(CALLS));
    }
    daemon.stop()?;
    Figure::new(&format!("B8 a call, level {name}"), "ms", &calls)
        .with_reference("ms spawn + 3 fdatasyncs", machine.median())
        .print();
    Figure::new(&format!("B8 overhead of a call, level {name}"), "ms", &overheads)
        .with_target(Target::AtMost(MAX_OVERHEAD_MS))
        .print();
    Figure::new(&format!("B8 daemon CPU a call, level {name}"), "ms", &cpu).print();
    Ok(())
}
