//! B8: a turn of a hundred commands that do nothing, at each level of the sandbox, held against a bare shell
//! at the same level.

use std::fs::{File, create_dir_all, write};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use agentd::tools::{LevelSetting, SessionContext, Settings, Toolbox, Unreadable};
use agentd::types::ids::{Mint, Seed};

use super::Outcome;
use super::bare;
use super::daemon::Place;
use super::figures::{Figure, Sample, Target};
use super::model::{Model, Script};
use super::wire::{Chunks, answer, bash};

const CALLS: u32 = 100;
const ROUNDS: usize = 15;
/// Of each call: the model's message with the wish, the intent, the result.
const SYNCS: f64 = 3.0;
/// What a call may take beside the process and the syncs.
const OURS_MS: f64 = 3.0;

const LEVELS: [(&str, LevelSetting); 4] = [
    ("off", LevelSetting::Off),
    ("rlimits", LevelSetting::Rlimits),
    ("landlock", LevelSetting::Landlock),
    ("bubblewrap", LevelSetting::Bubblewrap),
];

pub fn run() -> Outcome<()> {
    for (name, level) in LEVELS {
        // What this machine cannot hold is said and left out.
        if let Err(error) = measure(name, level) {
            println!("# B8 {name}: not measured: {error}");
        }
    }
    Ok(())
}

/// The reference: a shell that is held as the daemon's would be, with nothing else of the daemon's beside it.
/// What holds it is made before the clock starts.
fn bare_shell(place: &Place, level: LevelSetting) -> Outcome<impl Fn() -> Outcome<Duration>> {
    let home = place.home();
    let mut settings = Settings::new(home.clone());
    settings.sandbox.level = level;
    settings.sandbox.hidden = place.hidden();
    settings.sandbox.temp = place.path("temp");
    let mut mint = Mint::new(0, Seed(1));
    let scene = SessionContext {
        session_id: mint.session(),
        workspace: place.workspace(),
        additional: Vec::new(),
        cwd: place.workspace(),
        reads: Arc::default(),
        unattended: false,
        unreadable: Unreadable::default(),
        blobs: None,
        mode: Default::default(),
        project: None,
        todos: std::sync::Arc::default(),
        commands: Vec::new(),
        agents: std::sync::Arc::from([]),
        mcp: Default::default(),
        bash_timeout_ms: None,
    };
    let tools = Toolbox::new(settings);
    Ok(move || match level {
        // Nothing is to be done in the child, so it may be started as fast as can be.
        LevelSetting::Off | LevelSetting::Rlimits => bare::shell(),
        _ => Ok(tools.bare_shell(&scene)?),
    })
}

/// As most workspaces are: what git obeys is guarded for each command, which costs something.
fn repository(place: &Place) -> Outcome<()> {
    let git = place.workspace().join(".git");
    for folder in ["hooks", "objects", "refs/heads"] {
        create_dir_all(git.join(folder))?;
    }
    write(git.join("HEAD"), "ref: refs/heads/main\n")?;
    Ok(write(git.join("config"), "[core]\n\trepositoryformatversion = 0\n")?)
}

fn measure(name: &str, level: LevelSetting) -> Outcome<()> {
    let model = Model::start()?;
    let place = Place::new(Some(model.address))?;
    place.hold(name)?;
    repository(&place)?;
    let bare_shell = bare_shell(&place, level)?;
    let mut file = File::create(place.path("synced"))?;
    let daemon = place.start()?;
    let mut client = daemon.client()?;
    let (mut calls, mut cpu) = (Sample::default(), Sample::default());
    let (mut machine, mut ours) = (Sample::default(), Sample::default());
    for _ in 0..ROUNDS {
        // A new one each time: what a call takes beside the process grows with the conversation.
        let session = client.session(&place.workspace())?;
        client.turn(&session)?;
        let (mut spawns, mut syncs) = (Sample::default(), Sample::default());
        for _ in 0..CALLS / 5 {
            spawns.push_ms(bare_shell()?);
            syncs.push_ms(bare::append(&mut file)?);
        }
        machine.push(spawns.median() + SYNCS * syncs.median());
        let left = Arc::new(AtomicU32::new(CALLS));
        model.play(Script::Rounds { left, again: bash("true"), last: answer(1, Chunks::Large) });
        let (before, began) = (daemon.cpu()?, Instant::now());
        client.turn(&session)?;
        let call = began.elapsed().as_secs_f64() * 1e3 / f64::from(CALLS);
        calls.push(call);
        // Against what the machine was like just before: its speed changes from second to second.
        ours.push(call - (spawns.median() + SYNCS * syncs.median()));
        cpu.push(daemon.cpu()?.saturating_sub(before).as_secs_f64() * 1e3 / f64::from(CALLS));
    }
    daemon.stop()?;
    Figure::new(&format!("B8 a call, level {name}"), "ms", &calls)
        .with_reference("ms spawn + 3 fdatasyncs", machine.median())
        .print();
    Figure::new(&format!("B8 ours in it, level {name}"), "ms", &ours).target(Target::AtMost(OURS_MS)).print();
    Figure::new(&format!("B8 daemon CPU a call, level {name}"), "ms", &cpu).print();
    Ok(())
}
