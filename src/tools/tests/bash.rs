//! Tests of Bash: output, folders, environment, and the end of every process.

use std::fs;

use super::*;

fn bash(command: &str) -> Value {
    json!({"command": command})
}

/// A command that writes its own process id to `name` in the workspace and continues to run.
fn keep_running_command(name: &str) -> String {
    format!("echo $BASHPID > {name}.tmp; mv {name}.tmp {name}; exec sleep 1000")
}

/// Waits until the file contains a process id.
async fn pid_in(path: &Path) -> i32 {
    within(async {
        loop {
            if let Some(pid) = fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()) {
                return pid;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

impl ToolFixture {
    /// Starts a command and stops it once the process that writes its id to `name` exists.
    async fn stop_when_there(&mut self, command: &str, name: &str) -> (ToolOutcome, i32) {
        let call = self.call("Bash", bash(command));
        let prepared = self.tools.prepare(&call, &self.session_context).await.unwrap();
        let stop = CancellationToken::new();
        let (progress, _ignored) = mpsc::channel(1);
        let path = self.path(name);
        let run =
            self.tools.run(&call, &prepared, &self.session_context, progress, registrar(), stop.clone());
        let stopper = async {
            let pid = pid_in(&path).await;
            assert!(is_alive(pid));
            stop.cancel();
            pid
        };
        within(async { tokio::join!(run, stopper) }).await
    }
}

#[tokio::test]
async fn bash_returns_output_and_exit_code() {
    let mut fixture = ToolFixture::new();
    let outcome = fixture.run("Bash", bash("echo out; echo err >&2")).await;
    let text = completed(&outcome);
    assert_eq!(text, "out\nerr\n");
    let detail = outcome.detail.unwrap();
    assert_eq!((&detail["exit_code"], &detail["stdout_bytes"]), (&json!(0), &json!(8)));

    let outcome = fixture.run("Bash", bash("echo partial; exit 3")).await;
    failed(&outcome, "exit_code");
    assert_eq!(outcome.output, "partial\nExit code 3");
    assert_eq!(outcome.detail.unwrap()["exit_code"], 3);

    let outcome = fixture.run("Bash", bash("kill -KILL $$")).await;
    failed(&outcome, "exit_code");
    assert_eq!(outcome.detail.unwrap()["exit_code"], 137);

    assert_eq!(completed(&fixture.run("Bash", bash("true")).await), "(no output)");
    failed(&fixture.run("Bash", bash("if then")).await, "exit_code");
    // The text runs as judged: quotes, here-documents, comments at the end.
    let outcome = fixture.run("Bash", bash("cat <<'X'\na 'b' \"c\" $d\nX\n# end")).await;
    assert_eq!(completed(&outcome), "a 'b' \"c\" $d\n");
}

#[tokio::test]
async fn bash_command_has_no_input_or_terminal() {
    let mut fixture = ToolFixture::new();
    let outcome = fixture
        .run("Bash", bash("cat; test -t 0 || echo none; (: < /dev/tty) 2>/dev/null || echo notty"))
        .await;
    assert_eq!(completed(&outcome), "none\nnotty\n");
    let outcome = fixture.run("Bash", bash("cut -d' ' -f6 /proc/$$/stat; echo $$; ulimit -c")).await;
    let lines: Vec<&str> = completed(&outcome).lines().collect();
    assert_eq!((lines[0], lines[2]), (lines[1], "0"), "leads its own session, writes no core");
}

#[tokio::test]
async fn bash_environment_is_filtered_and_marked() {
    let mut fixture = ToolFixture::new();
    let outcome = fixture.run("Bash", bash("env")).await;
    let text = completed(&outcome);
    assert!(text.contains("AGENTD_INSTANCE=test-instance\n"));
    assert!(text.contains("AGENTD_CALL=call_") && text.contains("AGENTD_SESSION=ses_"));
    assert!(text.contains(&format!("HOME={}\n", fixture.root.join("home").display())));
    assert!(text.contains("TERM=dumb\n"));
    // cargo sets these for tests; they represent all variables that are not on the list.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some() && !text.contains("CARGO_MANIFEST_DIR"));
}

#[tokio::test]
async fn bash_command_inherits_no_daemon_descriptor() {
    let mut fixture = ToolFixture::new();
    let outcome = fixture.run("Bash", bash("ls /proc/$$/fd")).await;
    let fds: Vec<u32> = completed(&outcome).lines().map(|line| line.parse().unwrap()).collect();
    let unknown: Vec<&u32> = fds.iter().filter(|fd| **fd > 2 && **fd != 255 && **fd < 300).collect();
    assert!(unknown.is_empty() && fds.iter().filter(|fd| **fd >= 300).count() == 1, "{fds:?}");
}

#[tokio::test]
async fn bash_cwd_is_kept_for_next_command() {
    let mut fixture = ToolFixture::new();
    fs::create_dir_all(fixture.path("a/b")).unwrap();
    for (command, ends_in, code) in [
        ("cd a", "a", ""),
        ("cd b; exit 4", "a/b", "exit_code"),
        ("pwd; (cd ..)", "a/b", ""),
        ("cd ..; false", "a", "exit_code"),
        ("cd ..; set -eu; true", "", ""),
        ("pwd() { echo /; }; cd a", "a", ""),
        ("cd ..; exec 9>lock; exec 3>&1", "", ""),
    ] {
        let outcome = fixture.run("Bash", bash(command)).await;
        assert_eq!(self::code(&outcome), code, "{command}: {outcome:?}");
        assert_eq!(
            fixture.session_context.cwd,
            fixture.path(ends_in).components().collect::<PathBuf>(),
            "{command}"
        );
    }
    let traced = fixture.run("Bash", bash("set -x; cd a")).await;
    assert_eq!(completed(&traced), "+ cd a\n");
    let outcome = fixture.run("Bash", bash("cd /; pwd")).await;
    assert_eq!(
        completed(&outcome),
        format!("/\nThe working directory was reset to {}", fixture.path("a").display())
    );
    assert_eq!((outcome.cwd, fixture.session_context.cwd.clone()), (None, fixture.path("a")));
    // The folder was removed, so the next command starts at the workspace.
    fs::remove_dir_all(fixture.path("a")).unwrap();
    let outcome = fixture.run("Bash", bash("pwd")).await;
    assert_eq!(completed(&outcome), format!("{}\n", fixture.session_context.workspace.display()));
    assert_eq!(fixture.session_context.cwd, fixture.session_context.workspace);
}

#[tokio::test]
async fn bash_progress_is_valid_utf8_and_never_blocks() {
    let mut fixture = ToolFixture::with_settings(|settings| settings.max_progress_bytes = 100_000);
    let call =
        fixture.call("Bash", bash("printf '\\303'; sleep 0.05; printf '\\251\\n'; yes é | head -c 400000"));
    let prepared = fixture.tools.prepare(&call, &fixture.session_context).await.unwrap();
    // Without a reader, the channel is full at once.
    let (progress, mut listener) = mpsc::channel(4);
    let outcome = within(fixture.tools.run(
        &call,
        &prepared,
        &fixture.session_context,
        progress,
        registrar(),
        CancellationToken::new(),
    ))
    .await;
    let mut progress_text = String::new();
    while let Ok(piece) = listener.try_recv() {
        assert_eq!(piece.stream, "stdout");
        progress_text.push_str(&piece.text);
    }
    assert!(progress_text.starts_with("é\n") && !progress_text.contains(char::REPLACEMENT_CHARACTER));
    assert!(progress_text.len() <= 100_000);
    let text = completed(&outcome);
    assert!(text.starts_with("é\n") && text.contains("left out here"), "{}", text.len());
    assert!(text.chars().count() < 30_200);
    let detail = outcome.detail.unwrap();
    assert_eq!((&detail["truncated"], &detail["stdout_bytes"]), (&json!(true), &json!(400_003)));
}

/// A child that is being started uses the daemon's memory: its own restrictions must not apply to the daemon.
#[tokio::test]
async fn command_confinement_does_not_apply_to_daemon() {
    fn own_limits() -> Vec<String> {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let names = ["NoNewPrivs", "Seccomp", "CapEff", "CapBnd", "SigIgn"];
        let lines = status.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
        let mut own: Vec<String> = lines.map(str::to_owned).collect();
        own.push(fs::read_to_string("/proc/self/oom_score_adj").unwrap().trim().to_owned());
        own.push(fs::read_link("/proc/self/cwd").unwrap().display().to_string());
        own
    }
    let before = own_limits();
    let mut fixture = ToolFixture::new();
    let outcome = fixture.run("Bash", bash("cat /proc/self/oom_score_adj; pwd; kill -l >&2; exit 3")).await;
    assert_ne!(outcome.output.lines().next(), Some(before[before.len() - 2].as_str()), "its own score");
    assert_eq!(own_limits(), before);
}

#[tokio::test]
async fn timed_out_command_is_killed_with_process_tree() {
    let mut fixture = ToolFixture::new();
    let command = format!("echo begun; ({}) & wait", keep_running_command("pid"));
    let outcome = fixture.run("Bash", json!({"command": command, "timeout_ms": 300})).await;
    failed(&outcome, "timed_out");
    assert!(outcome.output.starts_with("begun\n") && outcome.output.contains("300 ms"), "{}", outcome.output);
    assert!(!is_alive(pid_in(&fixture.path("pid")).await));
    assert_eq!(outcome.detail.unwrap()["survivors"], json!([]));
}

#[tokio::test]
async fn stopped_command_is_killed_before_outcome_returns() {
    for command in [
        format!("({}) & wait", keep_running_command("pid")),
        // Ignores TERM.
        format!("trap '' TERM; {}", keep_running_command("pid")),
        // Left the session.
        format!("setsid bash -c '{}' & wait", keep_running_command("pid").replace("BASHPID", "$")),
        // Left the session and lost its parents.
        format!("(setsid bash -c '{}' &) ; sleep 1000", keep_running_command("pid").replace("BASHPID", "$")),
        format!(
            "nohup bash -c '{}' >/dev/null 2>&1 & disown; sleep 1000",
            keep_running_command("pid").replace("BASHPID", "$")
        ),
        // Left the session with a cleared environment; the parent lives.
        format!("env -i setsid -w bash -c '{}'", keep_running_command("pid").replace("BASHPID", "$")),
        // Is stopped.
        "bash -c 'echo $$ > pid; kill -STOP $$'; sleep 1000".to_owned(),
    ] {
        let mut fixture = ToolFixture::new();
        let (outcome, pid) = fixture.stop_when_there(&command, "pid").await;
        assert_eq!((outcome.status, code(&outcome)), (ToolStatus::Cancelled, "cancelled"), "{command}");
        assert!(!is_alive(pid), "{command}: {outcome:?}");
        assert_eq!(outcome.detail.unwrap()["survivors"], json!([]), "{command}");
    }
}

#[tokio::test]
async fn children_holding_pipes_are_killed_when_call_ends() {
    let mut fixture = ToolFixture::new();
    let command = format!("({}) & while [ ! -e pid ]; do :; done; echo done", keep_running_command("pid"));
    let outcome = fixture.run("Bash", bash(&command)).await;
    assert_eq!(completed(&outcome), format!("done\n{LEFTOVER_NOTE}"));
    assert!(!is_alive(pid_in(&fixture.path("pid")).await));

    let command = format!(
        "setsid nohup bash -c '{}' >/dev/null 2>&1 & while [ ! -e pid2 ]; do :; done",
        keep_running_command("pid2").replace("BASHPID", "$")
    );
    completed(&fixture.run("Bash", bash(&command)).await);
    assert!(!is_alive(pid_in(&fixture.path("pid2")).await));
}

const LEFTOVER_NOTE: &str = "A background process of the command still ran at its end and was ended with it. To keep a \
     process, run it with run_in_background and without &.";

#[tokio::test]
async fn ended_background_processes_are_reported_with_result() {
    let mut fixture = ToolFixture::new();
    for (command, processes, code) in [
        ("sleep 1000 & echo started", "A background process", ""),
        ("sleep 1000 >log 2>&1 & sleep 1000 & exit 3", "2 background processes", "exit_code"),
        ("(setsid sleep 1000 >/dev/null 2>&1 &)", "A background process", ""),
        ("nohup sleep 1000 >/dev/null 2>&1 & disown", "A background process", ""),
        ("sleep 0 & wait; echo done | cat", "", ""),
        ("true & true", "", ""),
    ] {
        let outcome = fixture.run("Bash", bash(command)).await;
        assert_eq!(self::code(&outcome), code, "{outcome:?}");
        let note = outcome.output.lines().find(|line| line.contains("with run_in_background"));
        assert_eq!(note.is_some(), !processes.is_empty(), "{command}: {outcome:?}");
        assert!(note.unwrap_or_default().starts_with(processes), "{command}: {outcome:?}");
    }
}

#[tokio::test]
async fn command_streams_keep_order_of_writes() {
    let mut fixture = ToolFixture::new();
    let command = "for n in $(seq 300); do echo out $n; echo err $n >&2; done; \
                   echo a >/dev/stderr; echo b >/dev/stdout; echo c >&2";
    let outcome = fixture.run("Bash", bash(command)).await;
    let expected: String = (1..=300).map(|n| format!("out {n}\nerr {n}\n")).collect();
    assert_eq!(completed(&outcome), expected + "a\nb\nc\n");
}

#[tokio::test]
async fn redrawn_output_is_collapsed_for_model_and_kept_in_blob() {
    let spools = tempfile::tempdir().unwrap();
    let mut fixture =
        ToolFixture::with_settings(|settings| settings.spool_folder = Some(spools.path().to_owned()));
    let redraws =
        "for n in $(seq 2000); do printf '\\r\\033[32mprogress %4d\\033[0m' $n; done; printf '\\ndone\\0\\n'";
    let outcome = fixture.run("Bash", bash(redraws)).await;
    let text = completed(&outcome);
    assert!(text.starts_with("progress 2000\ndone\nThe whole output ("), "{text}");
    let kept = fs::read_to_string(spools.path().join(outcome.blobs[0].blob_id.to_string())).unwrap();
    assert!(
        kept.starts_with("\r\u{1b}[32mprogress    1\u{1b}[0m") && kept.ends_with("\ndone\0\n"),
        "{kept:?}"
    );

    let outcome = fixture.run("Bash", bash("printf '\\033[1mbold\\033[0m\\r\\n'")).await;
    assert_eq!((completed(&outcome), outcome.blobs.len()), ("bold\n", 0), "nothing visible is missing");
}

#[tokio::test]
async fn dropped_bash_call_leaves_no_process() {
    let mut fixture = ToolFixture::new();
    let call = fixture.call("Bash", bash(&format!("({}) & wait", keep_running_command("pid"))));
    let prepared = fixture.tools.prepare(&call, &fixture.session_context).await.unwrap();
    let path = fixture.path("pid");
    let (progress, _ignored) = mpsc::channel(1);
    let pid = {
        let stop = CancellationToken::new();
        let run = fixture.tools.run(&call, &prepared, &fixture.session_context, progress, registrar(), stop);
        tokio::select! {
            outcome = run => panic!("ended by itself: {outcome:?}"),
            pid = pid_in(&path) => pid,
        }
    };
    within(async {
        while is_alive(pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn output_is_read_after_process_is_recorded() {
    let mut fixture = ToolFixture::new();
    let call = fixture.call("Bash", bash("echo $$ > pid; echo said; sleep 1000"));
    let prepared = fixture.tools.prepare(&call, &fixture.session_context).await.unwrap();
    let (progress, mut progress_receiver) = mpsc::channel(4);
    let (process_starts, mut received_starts) = mpsc::channel(1);
    let stop = CancellationToken::new();
    let run =
        fixture.tools.run(&call, &prepared, &fixture.session_context, progress, process_starts, stop.clone());
    let session = async {
        let process_start = received_starts.recv().await.unwrap();
        let pid = pid_in(&fixture.path("pid")).await;
        let process = base::proc::read_process(pid).unwrap();
        assert_eq!(process_start.record.call_id, call.call_id);
        assert_eq!((process_start.record.pid, process_start.record.started), (pid, process.started));
        assert_eq!((process.session, process.group), (pid, pid));
        assert_eq!(process_start.record.boot_id, base::proc::boot_id());
        // The command may have printed output by now, but the tool must not have read it.
        tokio::task::yield_now().await;
        progress_receiver.try_recv().expect_err("not recorded yet");
        process_start.stored.send(Ok(())).unwrap();
        assert_eq!(progress_receiver.recv().await.unwrap().text, "said\n");
        stop.cancel();
    };
    within(async { tokio::join!(run, session) }).await;
}

#[tokio::test]
async fn unrecorded_process_is_killed_and_call_fails() {
    // The disk is full, or the session has ended.
    for answer in [Some("write the journal (full)"), None] {
        let mut fixture = ToolFixture::new();
        let call = fixture.call("Bash", bash(&keep_running_command("pid")));
        let prepared = fixture.tools.prepare(&call, &fixture.session_context).await.unwrap();
        let (progress, _ignored) = mpsc::channel(1);
        let (process_starts, mut received_starts) = mpsc::channel::<ProcessStarted>(1);
        let run = fixture.tools.run(
            &call,
            &prepared,
            &fixture.session_context,
            progress,
            process_starts,
            CancellationToken::new(),
        );
        let path = fixture.path("pid");
        let session = async {
            let process_start = received_starts.recv().await.unwrap();
            let pid = pid_in(&path).await;
            match answer {
                Some(why) => process_start.stored.send(Err(why.into())).unwrap(),
                None => drop(process_start.stored),
            }
            pid
        };
        let (outcome, pid) = within(async { tokio::join!(run, session) }).await;
        failed(&outcome, "storage_failed");
        assert!(outcome.output.contains(answer.unwrap_or("the session is gone")), "{}", outcome.output);
        assert!(!is_alive(pid));
    }
}

#[tokio::test]
async fn command_changed_after_judging_is_not_run() {
    let mut fixture = ToolFixture::new();
    let judged = fixture.prepare("Bash", bash("echo harmless")).await.unwrap();
    let other = fixture.call("Bash", bash("touch other"));
    failed(&fixture.run_prepared(&other, &judged).await, "target_changed");
    assert!(!fixture.path("other").exists());
}

#[tokio::test]
async fn unusable_cwd_is_reset_to_workspace() {
    let mut fixture = ToolFixture::new();
    // The folder's name is not valid text, but the output is reported anyway.
    let outcome = fixture.run("Bash", bash(r"mkdir $'x\xff'; cd $'x\xff'; echo hello")).await;
    assert!(completed(&outcome).starts_with("hello\nThe working directory was reset to "), "{outcome:?}");
    assert_eq!(fixture.session_context.cwd, fixture.path(""));
    if nix::unistd::geteuid().is_root() {
        base::skip_test!("no folder is closed to root");
        return;
    }
    let outcome = fixture.run("Bash", bash("mkdir s; cd s; chmod 644 .")).await;
    assert!(completed(&outcome).contains("was reset"), "{outcome:?}");
    completed(&fixture.run("Bash", bash("chmod 755 s; cd s")).await);
    assert_eq!(fixture.session_context.cwd, fixture.path("s"));
    completed(&fixture.run("Bash", bash("chmod 644 .")).await);
    let top = fixture.path("");
    let outcome = fixture.run("Bash", bash("chmod 755 s; pwd")).await;
    assert_eq!(Path::new(completed(&outcome).trim_end()), top.components().as_path());
}

#[tokio::test]
async fn forged_cwd_report_is_not_accepted() {
    let mut fixture = ToolFixture::new();
    std::os::unix::fs::symlink(fixture.root.join("home"), fixture.path("link")).unwrap();
    fs::create_dir(fixture.path("sub")).unwrap();
    for (folder, expected) in [("/../home", ""), ("/link", ""), ("/sub/../sub", ""), ("/sub", "sub")] {
        // The command writes a forged folder and kills the shell, so that the shell's trap cannot report the
        // real one.
        let says = format!(
            "cd {ws}; for it in /proc/$$/fd/*; do n=${{it##*/}}; [ $n -ge 300 ] && echo {ws}{folder} >&$n; done; kill -9 $$",
            ws = fixture.session_context.workspace.display(),
        );
        fixture.run("Bash", bash(&says)).await;
        assert_eq!(fixture.session_context.cwd, fixture.path(expected), "{folder}");
        completed(&fixture.run("Bash", bash(&format!("cd {}", fixture.path("").display()))).await);
    }
}

#[tokio::test]
async fn bash_summary_shows_command_before_description() {
    let mut fixture = ToolFixture::new();
    for (input, expected) in [
        (json!({"command": "rm -rf build"}), "rm -rf build"),
        (
            json!({"command": " rm -rf build\ntrue", "description": " list files\n"}),
            "rm -rf build … — list files",
        ),
        (
            json!({"command": "make", "description": " ", "run_in_background": true}),
            "make (in the background)",
        ),
    ] {
        assert_eq!(fixture.prepare("Bash", input).await.unwrap().summary, expected);
    }
}
