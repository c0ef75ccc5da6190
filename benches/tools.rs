//! How fast the file tools are: Grep beside ripgrep itself on the same tree in the same minute, Edit of
//! a large file, Read of a huge one beside `wc`, and the verdicts over paths and command lines. Run: `cargo bench
//! --bench tools`, with `-- grep`, `-- edit`, `-- read` or `-- verdicts` for one part; `AGENTD_BENCH_DIR` says where the tree is put.
//!
//! Ripgrep (`rg`) is asked for the same files. Runs are paired: one of ours, one of its, in turn; the
//! ratio is that of the medians.

#[path = "tools/commands.rs"]
mod commands;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentd::tools::{Access, Jail, SessionContext, Settings, Toolbox, Unreadable};
use agentd::types::ids::{Mint, Seed};
use agentd::types::message::ToolCall;
use agentd::types::tool::ToolOutcome;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Bytes of the tree.
const TREE: usize = 200 << 20;
/// Pairs of runs of each search.
const PAIRS: usize = 15;

struct Room {
    _dir: tempfile::TempDir,
    scene: SessionContext,
    tools: Toolbox,
    mint: Mint,
}

impl Room {
    fn new() -> Self {
        let base = std::env::var_os("AGENTD_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let dir = tempfile::tempdir_in(base).expect("a folder");
        let root = dir.path().canonicalize().expect("its path");
        let workspace = root.join("ws");
        fs::create_dir_all(&workspace).expect("a workspace");
        let mut mint = Mint::new(0, Seed(1));
        let scene = SessionContext {
            session_id: mint.session(),
            cwd: workspace.clone(),
            workspace,
            additional: Vec::new(),
            reads: Arc::new(HashMap::new()),
            unattended: false,
            unreadable: Unreadable::new(|_, path| path.ends_with("secrets")),
            blobs: None,
            mode: Default::default(),
            project: None,
            todos: std::sync::Arc::default(),
            commands: Vec::new(),
            agents: Arc::from([]),
            mcp: Default::default(),
            bash_timeout_ms: None,
        };
        Self { _dir: dir, scene, tools: Toolbox::new(Settings::new(root.join("home"))), mint }
    }

    async fn run(&mut self, tool: &str, input: Value) -> (ToolOutcome, Duration, Duration) {
        let call_id = self.mint.call();
        let call = ToolCall { call_id, provider_id: "p".into(), tool: tool.into(), input, input_error: None };
        let begun = Instant::now();
        let prepared = self.tools.prepare(&call, &self.scene).await.expect("a call that can be made");
        let looked = begun.elapsed();
        let (progress, _ignored) = mpsc::channel(1);
        let (births, _born) = mpsc::channel(1);
        let stop = CancellationToken::new();
        let outcome = self.tools.run(&call, &prepared, &self.scene, progress, births, stop).await;
        let took = begun.elapsed();
        let reads = Arc::make_mut(&mut self.scene.reads);
        reads.extend(outcome.reads.iter().map(|record| (record.path.clone(), record.clone())));
        (outcome, looked, took)
    }
}

/// Source-like files of many sizes, in a tree some floors deep.
fn grow(root: &Path) -> usize {
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
    while size < TREE {
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

async fn grep(room: &mut Room) {
    let files = grow(&room.scene.workspace);
    println!("Grep beside rg, {} MB in {files} files, median of {PAIRS} pairs:", TREE >> 20);
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
            let begun = Instant::now();
            let (outcome, ..) = room.run("Grep", input.clone()).await;
            let took = begun.elapsed();
            let begun = Instant::now();
            let output = Command::new("rg")
                .arg("--no-require-git")
                .args(arguments)
                .current_dir(&room.scene.workspace)
                .output();
            let Ok(output) = output else {
                println!("  rg is not installed: no comparison");
                return;
            };
            // The first pair warms the page cache.
            if pair > 0 {
                ours.push(took);
                theirs.push(begun.elapsed());
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
    // How soon a search that is told to stop has stopped.
    let call = ToolCall {
        call_id: room.mint.call(),
        provider_id: "p".into(),
        tool: "Grep".into(),
        input: json!({"pattern": "a.*b.*c.*d9999$", "output_mode": "content"}),
        input_error: None,
    };
    let prepared = room.tools.prepare(&call, &room.scene).await.expect("a call that can be made");
    let mut stopped = Vec::new();
    for _ in 0..PAIRS {
        let (progress, _ignored) = mpsc::channel(1);
        let (births, _born) = mpsc::channel(1);
        let stop = CancellationToken::new();
        let run = room.tools.run(&call, &prepared, &room.scene, progress, births, stop.clone());
        let stopper = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            stop.cancel();
            Instant::now()
        };
        let (_, told) = tokio::join!(run, stopper);
        stopped.push(told.elapsed());
    }
    println!("  told to stop, stopped after {:.1} ms", median(stopped).as_secs_f64() * 1e3);
}

async fn edit(room: &mut Room) {
    let line = "some line of a large file, as long as lines are wont to be, with a number: ";
    let mut text = String::new();
    let mut number = 0;
    while text.len() < 10 << 20 {
        let _ = writeln!(text, "{line}{number}");
        number += 1;
    }
    let path = room.scene.workspace.join("large.txt");
    fs::write(&path, &text).expect("a file");
    room.run("Read", json!({"file_path": "large.txt"})).await;
    let (mut looks, mut wholes, mut raws) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=PAIRS {
        let at = number / 2;
        let old = if round == 0 { format!("{line}{at}\n") } else { format!("edited {at} {}\n", round - 1) };
        let input = json!({"file_path": "large.txt", "old_string": old, "new_string": format!("edited {at} {round}\n")});
        let (outcome, looked, took) = room.run("Edit", input).await;
        assert!(outcome.code.is_none(), "{outcome:?}");
        let raw = replace_plainly(&path, &room.scene.workspace.join("plain.txt"));
        // The first round warms the caches.
        if round > 0 {
            looks.push(looked);
            wholes.push(took);
            raws.push(raw);
        }
    }
    let (looks, wholes, raws) = (median(looks), median(wholes), median(raws));
    println!(
        "Edit of a 10 MB file, median of {PAIRS}: looked at in {:.1} ms, with the writing (synced to disk) {:.1} ms",
        looks.as_secs_f64() * 1e3,
        wholes.as_secs_f64() * 1e3
    );
    println!(
        "  (reading, writing, syncing and renaming the same bytes alone: {:.1} ms; ratio {:.2}, beside it {:.1} ms)",
        raws.as_secs_f64() * 1e3,
        wholes.as_secs_f64() / raws.as_secs_f64(),
        wholes.saturating_sub(raws).as_secs_f64() * 1e3
    );
}

/// What any durable change of a file comes to: read, write beside it, sync, rename.
fn replace_plainly(from: &Path, to: &Path) -> Duration {
    let begun = Instant::now();
    let bytes = fs::read(from).expect("the file");
    let beside = to.with_extension("tmp");
    let mut file = fs::File::create(&beside).expect("a file");
    std::io::Write::write_all(&mut file, &bytes).expect("room");
    file.sync_data().expect("synced");
    fs::rename(&beside, to).expect("renamed");
    begun.elapsed()
}

/// The end of a file of 2 GB, beside `wc -l` on the same file, and what memory that takes.
async fn read(room: &mut Room) {
    const SIZE: u64 = 2 << 30;
    let line = "a line of a very large file, as a log has them, with nothing that would tell it from others";
    let block = format!("{line}\n").repeat(10_000);
    let path = room.scene.workspace.join("huge.log");
    let mut file = fs::File::create(&path).expect("a file");
    let (mut size, mut lines) = (0, 0);
    while size < SIZE {
        std::io::Write::write_all(&mut file, block.as_bytes()).expect("room");
        (size, lines) = (size + block.len() as u64, lines + 10_000);
    }
    drop(file);
    let (mut ours, mut theirs, mut peak) = (Vec::new(), Vec::new(), 0);
    for round in 0..=5 {
        // Forgets the highest amount so far, proc(5).
        let _ = fs::write("/proc/self/clear_refs", "5");
        let before = memory("VmRSS");
        let (outcome, _, took) =
            room.run("Read", json!({"file_path": "huge.log", "offset": lines - 9})).await;
        assert!(outcome.output.contains(&format!("{lines}\t{line}")), "{}", outcome.output);
        let begun = Instant::now();
        let counted = Command::new("wc").arg("-l").arg(&path).output().expect("wc");
        assert!(counted.stdout.starts_with(lines.to_string().as_bytes()));
        // The first round warms the page cache.
        if round > 0 {
            ours.push(took);
            theirs.push(begun.elapsed());
            peak = peak.max(memory("VmHWM").saturating_sub(before));
        }
    }
    let (ours, theirs) = (median(ours), median(theirs));
    println!(
        "Read of the last 10 of {lines} lines of {:.1} GB, median of 5: {:.0} ms   wc -l {:.0} ms   ratio {:.2}   \
         memory beyond what was there: {peak} KB at most",
        size as f64 / 1e9,
        ours.as_secs_f64() * 1e3,
        theirs.as_secs_f64() * 1e3,
        ours.as_secs_f64() / theirs.as_secs_f64(),
    );
    fs::remove_file(path).expect("removed");
}

/// What the kernel says of this process's memory, in KB, proc(5).
fn memory(what: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn verdicts(room: &Room) {
    let workspace = &room.scene.workspace;
    let jail = Jail::open(std::slice::from_ref(workspace), Path::new("/nonexistent"), &[]);
    let long = format!("{}x", "a/".repeat(900));
    for (name, text) in
        [("an ordinary path", "m0/p0/q0/f0.rs"), ("a new file", "x/y/z"), ("900 folders", long.as_str())]
    {
        for access in [Access::Read, Access::Edit] {
            let mut times = Vec::new();
            for _ in 0..1_000 {
                let begun = Instant::now();
                let _ = jail.decide(text, workspace, access);
                times.push(begun.elapsed());
            }
            let most = times.iter().max().copied().unwrap_or_default();
            println!("  {name}, {access:?}: median {:?}, at most {most:?}", median(times));
        }
    }
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    runtime.block_on(async {
        let mut room = Room::new();
        if wanted("grep") {
            grep(&mut room).await;
        }
        if wanted("edit") {
            edit(&mut room).await;
        }
        if wanted("read") {
            read(&mut room).await;
        }
        if wanted("verdicts") {
            println!("Deciding a path:");
            verdicts(&room);
            println!("Judging a command line:");
            commands::commands(median);
        }
    });
}
