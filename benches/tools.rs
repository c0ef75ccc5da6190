//! Speed of the file tools: Grep compared with ripgrep on the same tree, Edit of a large file, Read of a huge file
//! compared with `wc`, and the verdicts over paths and command lines. Run: `cargo bench --bench tools`, with `-- grep`,
//! `-- edit`, `-- read` or `-- verdicts` for one part. `AGENTD_BENCH_DIR` is the folder in which the tree is created.
//!
//! Grep and ripgrep (`rg`) search the same files in turn. The ratio is that of the medians.

#[path = "tools/commands.rs"]
mod commands;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentd::tools::{Access, Jail, SessionContext, Settings, Toolbox, UnreadablePaths};
use agentd::types::ids::{Mint, Seed};
use agentd::types::message::ToolCall;
use agentd::types::tool::ToolOutcome;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Size of the tree.
const TREE_BYTES: usize = 200 << 20;
/// Pairs of runs of each search.
const PAIRS: usize = 15;

/// A workspace in a temporary folder, with the tools.
struct Fixture {
    _dir: tempfile::TempDir,
    context: SessionContext,
    tools: Toolbox,
    mint: Mint,
}

impl Fixture {
    fn new() -> Self {
        let base = std::env::var_os("AGENTD_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let dir = tempfile::tempdir_in(base).expect("a folder");
        let root = dir.path().canonicalize().expect("its path");
        let workspace = root.join("ws");
        fs::create_dir_all(&workspace).expect("a workspace");
        let mut mint = Mint::new(0, Seed(1));
        let context = SessionContext {
            session_id: mint.session(),
            cwd: workspace.clone(),
            workspace,
            additional: Vec::new(),
            reads: Arc::new(HashMap::new()),
            unattended: false,
            unreadable: UnreadablePaths::new(|_, path| path.ends_with("secrets")),
            blobs: None,
            mode: Default::default(),
            project: None,
            todos: std::sync::Arc::default(),
            commands: Vec::new(),
            agents: Arc::from([]),
            mcp: Default::default(),
            bash_timeout_ms: None,
            environment: None,
        };
        Self { _dir: dir, context, tools: Toolbox::new(Settings::new(root.join("home"))), mint }
    }

    /// Runs a call. Returns its outcome, the time of its preparation, and the total time.
    async fn run(&mut self, tool: &str, input: Value) -> (ToolOutcome, Duration, Duration) {
        let call_id = self.mint.call();
        let call = ToolCall { call_id, provider_id: "p".into(), tool: tool.into(), input, input_error: None };
        let began = Instant::now();
        let prepared = self.tools.prepare(&call, &self.context).await.expect("a valid call");
        let prepare_time = began.elapsed();
        let (progress, _ignored) = mpsc::channel(1);
        let (starts, _started) = mpsc::channel(1);
        let stop = CancellationToken::new();
        let outcome = self.tools.run(&call, &prepared, &self.context, progress, starts, stop).await;
        let took = began.elapsed();
        let reads = Arc::make_mut(&mut self.context.reads);
        reads.extend(outcome.reads.iter().map(|record| (record.path.clone(), record.clone())));
        (outcome, prepare_time, took)
    }
}

/// Creates source-like files of many sizes in nested folders. Returns their number.
fn create_tree(root: &Path) -> usize {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let words =
        ["let", "result", "engine", "session", "return", "value", "match", "index", "error", "buffer"];
    let (mut size, mut files) = (0, 0);
    while size < TREE_BYTES {
        let folder = root.join(format!("m{}/p{}/q{}", files % 20, files / 20 % 15, files / 300 % 10));
        fs::create_dir_all(&folder).expect("a folder");
        let lines = 20 + random(20) * random(60);
        let mut text = String::new();
        for line in 0..lines {
            for _ in 0..3 + random(8) {
                let _ = write!(text, "{}{} ", words[random(10) as usize], random(1_000));
            }
            if random(40_000) == 0 {
                text.push_str("NeedleInTheHay");
            }
            let _ = writeln!(text, "// {line}");
        }
        fs::write(folder.join(format!("f{files}.rs")), &text).expect("a file");
        size += text.len();
        files += 1;
    }
    files
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

async fn measure_grep(fixture: &mut Fixture) {
    let files = create_tree(&fixture.context.workspace);
    println!("Grep compared with rg, {} MB in {files} files, median of {PAIRS} pairs:", TREE_BYTES >> 20);
    let cases: [(&str, Value, &[&str]); 5] = [
        ("files, a rare word", json!({"pattern": "NeedleInTheHay"}), &["-l", "NeedleInTheHay"]),
        ("files, no match", json!({"pattern": "NoSuchWordAnywhere"}), &["-l", "NoSuchWordAnywhere"]),
        (
            "lines, a rare word",
            json!({"pattern": "NeedleInTheHay", "output_mode": "content", "head_limit": 100_000}),
            &["-n", "NeedleInTheHay"],
        ),
        (
            "lines, a pattern, any case",
            json!({"pattern": "needle\\w+HAY", "-i": true, "output_mode": "content", "head_limit": 100_000}),
            &["-n", "-i", "needle\\w+HAY"],
        ),
        (
            "counts, a common word",
            json!({"pattern": "error99", "output_mode": "count", "head_limit": 1_000_000}),
            &["-c", "error99"],
        ),
    ];
    for (name, input, arguments) in cases {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let mut found = String::new();
        for pair in 0..=PAIRS {
            let began = Instant::now();
            let (outcome, ..) = fixture.run("Grep", input.clone()).await;
            let took = began.elapsed();
            let began = Instant::now();
            let output = Command::new("rg")
                .arg("--no-require-git")
                .args(arguments)
                .current_dir(&fixture.context.workspace)
                .output();
            let Ok(output) = output else {
                println!("  rg is not installed: no comparison");
                return;
            };
            // The first pair warms the page cache.
            if pair > 0 {
                ours.push(took);
                theirs.push(began.elapsed());
            }
            let lines = String::from_utf8_lossy(&output.stdout).lines().count();
            found = format!("{} / {lines}", outcome.detail.unwrap_or_default()["shown"]);
        }
        let (ours, theirs) = (median(ours), median(theirs));
        println!(
            "  {name:28} {:7.1} ms   rg {:7.1} ms   ratio {:.2}   lines {found}",
            ours.as_secs_f64() * 1e3,
            theirs.as_secs_f64() * 1e3,
            ours.as_secs_f64() / theirs.as_secs_f64()
        );
    }
    // The time until a cancelled search has stopped.
    let call = ToolCall {
        call_id: fixture.mint.call(),
        provider_id: "p".into(),
        tool: "Grep".into(),
        input: json!({"pattern": "a.*b.*c.*d9999$", "output_mode": "content"}),
        input_error: None,
    };
    let prepared = fixture.tools.prepare(&call, &fixture.context).await.expect("a valid call");
    let mut stop_times = Vec::new();
    for _ in 0..PAIRS {
        let (progress, _ignored) = mpsc::channel(1);
        let (starts, _started) = mpsc::channel(1);
        let stop = CancellationToken::new();
        let run = fixture.tools.run(&call, &prepared, &fixture.context, progress, starts, stop.clone());
        let stopper = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            stop.cancel();
            Instant::now()
        };
        let (_, cancelled_at) = tokio::join!(run, stopper);
        stop_times.push(cancelled_at.elapsed());
    }
    println!("  cancelled: stopped after {:.1} ms", median(stop_times).as_secs_f64() * 1e3);
}

async fn measure_edit(fixture: &mut Fixture) {
    let line = "some line of a large file, as long as lines are wont to be, with a number: ";
    let mut text = String::new();
    let mut number = 0;
    while text.len() < 10 << 20 {
        let _ = writeln!(text, "{line}{number}");
        number += 1;
    }
    let path = fixture.context.workspace.join("large.txt");
    fs::write(&path, &text).expect("a file");
    fixture.run("Read", json!({"file_path": "large.txt"})).await;
    let (mut prepare_times, mut total_times, mut reference_times) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=PAIRS {
        let at = number / 2;
        let old = if round == 0 { format!("{line}{at}\n") } else { format!("edited {at} {}\n", round - 1) };
        let input = json!({"file_path": "large.txt", "old_string": old, "new_string": format!("edited {at} {round}\n")});
        let (outcome, prepare_time, took) = fixture.run("Edit", input).await;
        assert!(outcome.code.is_none(), "{outcome:?}");
        let reference_time = replace_file(&path, &fixture.context.workspace.join("plain.txt"));
        // The first round warms the caches.
        if round > 0 {
            prepare_times.push(prepare_time);
            total_times.push(took);
            reference_times.push(reference_time);
        }
    }
    let (prepare, total, reference) = (median(prepare_times), median(total_times), median(reference_times));
    println!(
        "Edit of a 10 MB file, median of {PAIRS}: prepared in {:.1} ms, with the writing (synced to disk) {:.1} ms",
        prepare.as_secs_f64() * 1e3,
        total.as_secs_f64() * 1e3
    );
    println!(
        "  (reading, writing, syncing and renaming the same bytes alone: {:.1} ms; ratio {:.2}, difference {:.1} ms)",
        reference.as_secs_f64() * 1e3,
        total.as_secs_f64() / reference.as_secs_f64(),
        total.saturating_sub(reference).as_secs_f64() * 1e3
    );
}

/// The reference for Edit: reads a file, writes its bytes to a temporary file, syncs that and renames it.
fn replace_file(from: &Path, to: &Path) -> Duration {
    let began = Instant::now();
    let bytes = fs::read(from).expect("the file");
    let temp = to.with_extension("tmp");
    let mut file = fs::File::create(&temp).expect("a file");
    std::io::Write::write_all(&mut file, &bytes).expect("free space");
    file.sync_data().expect("synced");
    fs::rename(&temp, to).expect("renamed");
    began.elapsed()
}

/// Reads the end of a file of 2 GB, compared with `wc -l` on the same file. Prints time and memory.
async fn measure_read(fixture: &mut Fixture) {
    const SIZE: u64 = 2 << 30;
    let line = "a line of a very large file, as a log has them, with nothing that would tell it from others";
    let block = format!("{line}\n").repeat(10_000);
    let path = fixture.context.workspace.join("huge.log");
    let mut file = fs::File::create(&path).expect("a file");
    let (mut size, mut lines) = (0, 0);
    while size < SIZE {
        std::io::Write::write_all(&mut file, block.as_bytes()).expect("free space");
        (size, lines) = (size + block.len() as u64, lines + 10_000);
    }
    drop(file);
    let (mut ours, mut theirs, mut peak) = (Vec::new(), Vec::new(), 0);
    for round in 0..=5 {
        // Resets the peak memory, proc(5).
        let _ = fs::write("/proc/self/clear_refs", "5");
        let before = memory_kb("VmRSS");
        let (outcome, _, took) =
            fixture.run("Read", json!({"file_path": "huge.log", "offset": lines - 9})).await;
        assert!(outcome.output.contains(&format!("{lines}\t{line}")), "{}", outcome.output);
        let began = Instant::now();
        let counted = Command::new("wc").arg("-l").arg(&path).output().expect("wc");
        assert!(counted.stdout.starts_with(lines.to_string().as_bytes()));
        // The first round warms the page cache.
        if round > 0 {
            ours.push(took);
            theirs.push(began.elapsed());
            peak = peak.max(memory_kb("VmHWM").saturating_sub(before));
        }
    }
    let (ours, theirs) = (median(ours), median(theirs));
    println!(
        "Read of the last 10 of {lines} lines of {:.1} GB, median of 5: {:.0} ms   wc -l {:.0} ms   ratio {:.2}   \
         memory in addition: {peak} KB at most",
        size as f64 / 1e9,
        ours.as_secs_f64() * 1e3,
        theirs.as_secs_f64() * 1e3,
        ours.as_secs_f64() / theirs.as_secs_f64(),
    );
    fs::remove_file(path).expect("removed");
}

/// A field of this process's memory in `/proc/self/status`, in KB, proc(5).
fn memory_kb(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn measure_verdicts(fixture: &Fixture) {
    let workspace = &fixture.context.workspace;
    let jail = Jail::open(std::slice::from_ref(workspace), Path::new("/nonexistent"), &[]);
    let long = format!("{}x", "a/".repeat(900));
    for (name, text) in
        [("an ordinary path", "m0/p0/q0/f0.rs"), ("a new file", "x/y/z"), ("900 folders", long.as_str())]
    {
        for access in [Access::Read, Access::Edit] {
            let mut times = Vec::new();
            for _ in 0..1_000 {
                let began = Instant::now();
                let _ = jail.decide(text, workspace, access);
                times.push(began.elapsed());
            }
            let max = times.iter().max().copied().unwrap_or_default();
            println!("  {name}, {access:?}: median {:?}, at most {max:?}", median(times));
        }
    }
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let is_wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    runtime.block_on(async {
        let mut fixture = Fixture::new();
        if is_wanted("grep") {
            measure_grep(&mut fixture).await;
        }
        if is_wanted("edit") {
            measure_edit(&mut fixture).await;
        }
        if is_wanted("read") {
            measure_read(&mut fixture).await;
        }
        if is_wanted("verdicts") {
            println!("Verdicts over a path:");
            measure_verdicts(&fixture);
            println!("Verdicts over a command line:");
            commands::measure(median);
        }
    });
}
