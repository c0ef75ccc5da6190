//! Jobs: creation, start with and without a worktree, a queue of 10,000, firing of schedules, and eight worktrees at the
//! same time.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Outcome;
use super::bare;
use super::client::Client;
use super::daemon::DaemonSetup;
use super::figures::{Figure, Sample, Target};
use super::model::{ModelServer, Script};
use super::wire::{Chunks, create_answer};

const CREATIONS: usize = 100;
const STARTS: usize = 30;
const QUEUED: usize = 10_000;
/// Queue with which the long one is compared.
const SHORT_QUEUE: usize = 300;
const CLAIMS: usize = 200;
const LISTS: usize = 50;
const SCHEDULES: usize = 8;
const TOGETHER: usize = 8;
const TOGETHER_RUNS: usize = 5;
/// Files of the repository.
const FILES: usize = 100;
/// Time after which the daemon has released the memory of a burst.
const RELEASE_TIME: Duration = Duration::from_secs(25);
/// Creations that are sent without waiting for answers.
const PIPELINED: usize = 100;

pub fn run() -> Outcome<()> {
    measure_creation()?;
    measure_start()?;
    measure_start_in_worktree()?;
    measure_long_queue()?;
    measure_firing()?;
    measure_worktrees_together()
}

fn content(folder: &Path, key: usize) -> Value {
    json!({
        "prompt": "Do the work.", "title": "bench", "cwd": folder,
        "concurrency": {"key": format!("key {key}"), "limit": 1},
    })
}

fn measure_creation() -> Outcome<()> {
    let setup = DaemonSetup::new(None)?;
    setup.append_config("[jobs]\npaused = true\n")?;
    let mut file = File::create(setup.path("synced"))?;
    let daemon = setup.start_daemon()?;
    let mut client = daemon.connect()?;
    client.call("job.create", &content(&setup.workspace(), 0))?;
    let (mut creations, mut syncs) = (Sample::default(), Sample::default());
    for number in 0..CREATIONS {
        syncs.push_ms(bare::append_page(&mut file)?);
        let job = content(&setup.workspace(), number);
        let began = Instant::now();
        client.call("job.create", &job)?;
        creations.push_ms(began.elapsed());
    }
    daemon.stop()?;
    Figure::new("J creation of a job", "ms", &creations)
        .with_reference("ms fdatasync of 4 KiB", syncs.median())
        .with_target(Target::AtMost(syncs.median() + 0.5))
        .print();
    Ok(())
}

fn measure_start() -> Outcome<()> {
    let model = ModelServer::start()?;
    model.set_script(Script::Immediate(create_answer(3, Chunks::Large)));
    let setup = DaemonSetup::new(Some(model.address))?;
    let mut file = File::create(setup.path("synced"))?;
    let daemon = setup.start_daemon()?;
    let mut client = daemon.connect()?;
    let (mut starts, mut syncs) = (Sample::default(), Sample::default());
    for number in 0..=STARTS {
        syncs.push_ms(bare::append_page(&mut file)?);
        let took = start_one(&mut client, &model, &content(&setup.workspace(), 0))?;
        // The first one opens the connection to the model.
        if number > 0 {
            starts.push_ms(took);
        }
    }
    daemon.stop()?;
    Figure::new("J creation to first model request", "ms", &starts)
        .with_reference("ms fdatasync of 4 KiB", syncs.median())
        .with_target(Target::AtMost(50.0))
        .print();
    Ok(())
}

fn measure_start_in_worktree() -> Outcome<()> {
    let model = ModelServer::start()?;
    model.set_script(Script::Immediate(create_answer(3, Chunks::Large)));
    let setup = DaemonSetup::new(Some(model.address))?;
    let repository = setup.workspace();
    make_repository(&repository)?;
    let daemon = setup.start_daemon()?;
    let mut client = daemon.connect()?;
    let (mut starts, mut adds) = (Sample::default(), Sample::default());
    let mut job = content(&repository, 0);
    job["worktree"] = json!(true);
    for number in 0..=STARTS {
        adds.push_ms(add_worktree(&repository, &setup.path("bare"))?);
        let took = start_one(&mut client, &model, &job)?;
        if number > 0 {
            starts.push_ms(took);
        }
    }
    daemon.stop()?;
    Figure::new(&format!("J the same in a worktree of {FILES} files"), "ms", &starts)
        .with_reference("ms git worktree add", adds.median())
        .with_target(Target::AtMost(300.0))
        .print();
    Ok(())
}

/// Creates a job that is due and waits for its end. Returns the time from the call to the model request.
fn start_one(client: &mut Client, model: &ModelServer, job: &Value) -> Outcome<Duration> {
    model.discard_arrivals();
    let began = Instant::now();
    let created = client.call("job.create", job)?;
    let took = model.wait_for_request()?.duration_since(began);
    wait_for_success(client, &created["job"]["job_id"])?;
    Ok(took)
}

fn wait_for_success(client: &mut Client, job_id: &Value) -> Outcome<Value> {
    let done = client.call("job.wait", &json!({"job_id": job_id, "timeout_ms": 50_000}))?;
    match done["job"]["state"].as_str() {
        Some("succeeded") => Ok(done["job"].clone()),
        _ => Err(format!("the job did not succeed: {done}").into()),
    }
}

fn measure_long_queue() -> Outcome<()> {
    let short = measure_claims(SHORT_QUEUE, false)?;
    Figure::new(&format!("J end of a job to the next claim, {SHORT_QUEUE} queued"), "ms", &short).print();
    measure_claims(QUEUED, true).map(|_| ())
}

/// Times from the end of one job to the claim of the next one.
fn measure_claims(queued: usize, prints: bool) -> Outcome<Sample> {
    let model = ModelServer::start()?;
    model.set_script(Script::Immediate(create_answer(1, Chunks::Large)));
    let setup = DaemonSetup::new(Some(model.address))?;
    setup.append_config("[jobs]\npaused = true\nconcurrent = 1\n")?;
    let mut file = File::create(setup.path("synced"))?;
    let daemon = setup.start_daemon()?;
    let mut client = daemon.connect()?;
    create_many(&mut client, &setup.workspace(), 0..PIPELINED.min(queued))?;
    let before = daemon.private_mb()?;
    let began = Instant::now();
    create_many(&mut client, &setup.workspace(), PIPELINED.min(queued)..queued)?;
    let per_creation = began.elapsed().as_secs_f64() * 1e3 / queued as f64;
    let burst = daemon.private_mb()? - before;
    // The daemon releases what only the burst needed.
    model.pause(RELEASE_TIME);
    let grown = daemon.private_mb()? - before;
    let (mut lists, mut echoes) = (Sample::default(), Sample::default());
    let mut bytes = 0;
    for _ in 0..LISTS {
        let began = Instant::now();
        client.send("job.list", &json!({}))?;
        bytes = client.read_line()?.len();
        lists.push_ms(began.elapsed());
        echoes.push_ms(echo(bytes)?);
    }
    let mut syncs = Sample::default();
    for _ in 0..CREATIONS {
        syncs.push_ms(bare::append_page(&mut file)?);
    }
    let claims = watch_claims(&mut daemon.connect()?, &mut client)?;
    daemon.stop()?;
    if prints {
        Figure::from_number("J private memory of 10,000 queued jobs", "MB", grown)
            .with_reference("MB directly after their creation", burst)
            .with_target(Target::AtMost(10.0))
            .print();
        Figure::from_number("J creation with a long queue, pipelined", "ms", per_creation).print();
        Figure::new(&format!("J job.list of 100, {queued} queued"), "ms", &lists)
            .with_reference(&format!("ms echo of {} KiB", bytes >> 10), echoes.median())
            .with_target(Target::AtMost(10.0))
            .print();
        Figure::new(&format!("J end of a job to the next claim, {queued} queued"), "ms", &claims)
            .with_reference("ms fdatasync of 4 KiB", syncs.median())
            .with_target(Target::AtMost(syncs.median() + 1.0))
            .print();
    }
    Ok(claims)
}

fn create_many(client: &mut Client, folder: &Path, numbers: std::ops::Range<usize>) -> Outcome<()> {
    let all: Vec<usize> = numbers.collect();
    for part in all.chunks(PIPELINED) {
        for number in part {
            client.send("job.create", &content(folder, *number))?;
        }
        for _ in part {
            let line = String::from_utf8_lossy(client.read_line()?).into_owned();
            if line.contains("\"error\"") {
                return Err(line.into());
            }
        }
    }
    Ok(())
}

/// Lets jobs run one after another, and reads from the events when each ended and the next one was claimed. Between both
/// times, in whole milliseconds of the daemon's clock, is the commit of the end.
fn watch_claims(watcher: &mut Client, client: &mut Client) -> Outcome<Sample> {
    watcher.call("daemon.subscribe", &json!({}))?;
    client.send("job.resume", &json!({}))?;
    let mut claims = Sample::default();
    let mut ended_ms: Option<i64> = None;
    while claims.len() < CLAIMS {
        let line: Value = serde_json::from_slice(watcher.read_line()?)?;
        let event = &line["params"]["result"];
        match event["kind"].as_str() {
            Some("job.completed") => ended_ms = event["job"]["ended_at_ms"].as_i64(),
            Some("job.started") => {
                if let (Some(ended), Some(at)) = (ended_ms.take(), event["job"]["started_at_ms"].as_i64()) {
                    claims.push((at - ended) as f64);
                }
            }
            _ => {}
        }
    }
    client.send("job.pause", &json!({}))?;
    Ok(claims)
}

/// Time until another thread has answered one byte with this number of bytes over a socket.
fn echo(bytes: usize) -> Outcome<Duration> {
    let (mut here, mut there) = UnixStream::pair()?;
    let answering = std::thread::spawn(move || {
        let answer = vec![b'x'; bytes];
        there.read_exact(&mut [0]).and_then(|()| there.write_all(&answer))
    });
    let mut answer = vec![0; bytes];
    let began = Instant::now();
    here.write_all(b"x")?;
    here.read_exact(&mut answer)?;
    let took = began.elapsed();
    answering.join().map_err(|_| "the echo panicked")??;
    Ok(took)
}

fn measure_firing() -> Outcome<()> {
    let model = ModelServer::start()?;
    model.set_script(Script::Immediate(create_answer(1, Chunks::Large)));
    let setup = DaemonSetup::new(Some(model.address))?;
    let daemon = setup.start_daemon()?;
    let mut client = daemon.connect()?;
    for number in 0..SCHEDULES {
        let job = content(&setup.workspace(), number);
        client.call("schedule.create", &json!({"name": format!("s{number}"), "every": "1m", "job": job}))?;
        // So that no firing wakes the daemon for the next one.
        model.pause(Duration::from_millis(700));
    }
    let idle = daemon.cpu_time()?;
    let began = Instant::now();
    model.pause(Duration::from_secs(40));
    let used = daemon.cpu_time()?.saturating_sub(idle);
    let per_minute = used.as_secs_f64() * 1e3 * 60.0 / began.elapsed().as_secs_f64();
    let mut late = Sample::default();
    while late.len() < SCHEDULES {
        if began.elapsed() > Duration::from_secs(90) {
            return Err("the schedules did not fire".into());
        }
        model.pause(Duration::from_secs(3));
        let listed = client.call("job.list", &json!({}))?;
        let jobs = listed["jobs"].as_array().ok_or("no jobs")?;
        let lateness = |job: &Value| Some((job["created_at_ms"].as_i64()? - job["slot_ms"].as_i64()?) as f64);
        late = Sample::new(&jobs.iter().filter_map(lateness).collect::<Vec<_>>());
    }
    daemon.stop()?;
    Figure::new("J lateness of a slot", "ms", &late).with_target(Target::AtMost(1_000.0)).print();
    Figure::from_number("J CPU per minute without a due slot", "ms", per_minute).print();
    Ok(())
}

fn measure_worktrees_together() -> Outcome<()> {
    let model = ModelServer::start()?;
    // Long enough that all jobs are at work together.
    model.set_script(Script::Delayed(Duration::from_secs(2), create_answer(3, Chunks::Large)));
    let setup = DaemonSetup::new(Some(model.address))?;
    setup.append_config("[jobs]\nconcurrent = 8\n")?;
    let repository = setup.workspace();
    make_repository(&repository)?;
    let daemon = setup.start_daemon()?;
    let mut client = daemon.connect()?;
    let (mut starts, mut adds) = (Sample::default(), Sample::default());
    for _ in 0..TOGETHER_RUNS {
        let mut bare = Duration::ZERO;
        for _ in 0..TOGETHER {
            bare += add_worktree(&repository, &setup.path("bare"))?;
        }
        adds.push_ms(bare);
        model.discard_arrivals();
        let began = Instant::now();
        let mut jobs = Vec::new();
        for number in 0..TOGETHER {
            let mut job = content(&repository, number);
            job["worktree"] = json!(true);
            jobs.push(client.call("job.create", &job)?["job"]["job_id"].clone());
        }
        let mut last = began;
        for _ in 0..TOGETHER {
            last = last.max(model.wait_for_request()?);
        }
        starts.push_ms(last.duration_since(began));
        for job in &jobs {
            wait_for_success(&mut client, job)?;
        }
    }
    daemon.stop()?;
    Figure::new("J 8 jobs in worktrees of one repository, all at work", "ms", &starts)
        .with_reference("ms 8 git worktree add", adds.median())
        .print();
    Ok(())
}

fn git(folder: &Path, arguments: &[&str]) -> Outcome<()> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn make_repository(folder: &Path) -> Outcome<()> {
    for number in 0..FILES {
        std::fs::write(folder.join(format!("file{number}.txt")), format!("{number}\n").repeat(200))?;
    }
    git(folder, &["init", "-q", "-b", "main"])?;
    git(folder, &["add", "-A"])?;
    let author = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
    git(folder, &[&author[..], &["commit", "-q", "-m", "first"]].concat())
}

/// Time of a bare `git worktree add`. The worktree is removed again.
fn add_worktree(repository: &Path, path: &Path) -> Outcome<Duration> {
    let path = path.to_str().ok_or("a path that is no text")?;
    let began = Instant::now();
    git(repository, &["worktree", "add", "-q", "--detach", path])?;
    let took = began.elapsed();
    git(repository, &["worktree", "remove", "--force", path])?;
    Ok(took)
}
