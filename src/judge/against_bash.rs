//! Compares the judgement with bash: allowed lines run only granted programs. Random lines of difficult
//! pieces are judged. Allowed lines run in bash with an empty search path and a hook that reports every
//! name that bash looks up.

use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::{Policy, Rules, judge};
use types::permission::VerdictKind;
use types::tool::Subject;

/// Granted programs; any other name that bash looks up is a security hole.
const GRANTED: &[&str] = &["ls", "cat", "wc"];

/// Number of tested lines; `AGENTD_LINES` overrides it.
const LINE_COUNT: u32 = 4_000;

fn line() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => prop_oneof![Just("ls"), Just("cat"), Just("wc"), Just("evil"), Just("-l"), Just("a")].prop_map(str::to_owned),
        6 => prop_oneof![Just(" "), Just(" "), Just("\n"), Just(";"), Just("|"), Just("&&"), Just("||"), Just("\t")].prop_map(str::to_owned),
        3 => prop_oneof![
            Just("'"), Just("\""), Just("\\"), Just("\\\n"), Just("#"), Just("("), Just(")"), Just("{ "), Just("; }"), Just("!"),
            Just("{a,b}"), Just("''"), Just("\"\""), Just(" # '"), Just("|&"), Just("&"), Just(";;"), Just("$"), Just("`"),
        ].prop_map(str::to_owned),
        2 => prop_oneof![
            Just("<<E\n"), Just("<<'E'\n"), Just("<<-E\n"), Just("E\n"), Just("\tE\n"), Just("\nE\n"), Just("<<<a"), Just("<a"),
            Just(">/dev/null"), Just("2>&1"), Just("&>/dev/null"), Just(">&2"), Just("{x}>"), Just("<&0"),
        ].prop_map(str::to_owned),
        2 => prop_oneof![
            Just("time "), Just("! "), Just("command "), Just("timeout 1 "), Just("nice "), Just("nohup "), Just("xargs "), Just("cd a && "),
            Just("if "), Just("then "), Just("fi"), Just("case a in a) "), Just("function "), Just("ls() "), Just("eval "), Just("exec "),
            Just("A=b "), Just("CI=1 "), Just("$?"), Just("$$"), Just("$(evil)"), Just("${a}"), Just("$'a'"), Just("<(evil)"), Just("[[ "),
            Just(" ]]"), Just("(("), Just("))"), Just("coproc "), Just("alias ls=evil"), Just("trap evil EXIT"), Just("~"), Just("*"),
        ].prop_map(str::to_owned),
    ];
    proptest::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat())
}

/// Lines with many here-documents, `time` and `!`, for which the second parser may run twice.
fn line_with_bodies() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop_oneof![
            Just("cat <<E"), Just("cat <<F"), Just("cat <<'E'"), Just("cat <<-E"), Just("ls <<\\F"), Just(" <<\"F\""), Just("cat 0<<E"), Just("<<E cat"),
        ],
        5 => prop_oneof![Just("\n"), Just(";"), Just(" | "), Just(" && "), Just("ls"), Just("wc"), Just("evil"), Just(" evil\n"), Just("evil\n"), Just(" ")],
        6 => prop_oneof![
            Just("\nE\n"), Just("\nF\n"), Just("E\n"), Just("F\n"), Just(" E\n"), Just("E \n"), Just("\tE\n"), Just("Ex\n"), Just("a\n"), Just("\nE\nF\n"),
        ],
        2 => prop_oneof![
            Just("'"), Just("\""), Just("\\"), Just("\\\n"), Just("time ("), Just("time { "), Just("time -p "), Just("! { "), Just("! "), Just("("), Just(")"),
            Just("; }"), Just("#"), Just("\n}"), Just("|\n"), Just("&&\n"), Just("<<<a"), Just("$(cat <<E"), Just(">/dev/null"),
        ],
    ];
    proptest::collection::vec(piece, 2..12).prop_map(|pieces| pieces.concat())
}

/// The names that bash looks up when it runs the line.
fn searched_names(line: &str, folder: &Path) -> Vec<String> {
    let mut log = tempfile::tempfile().expect("a file");
    let out = log.try_clone().expect("a file");
    let mut child = Command::new("/bin/bash")
        .args(["--noprofile", "--norc", "-c", line])
        .env_clear()
        .env("PATH", "")
        .env("HOME", folder)
        .env(
            "BASH_FUNC_command_not_found_handle%%",
            "() { builtin printf '%s\\n' \"name:$1\" >&2; return 0; }",
        )
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(out)
        .spawn()
        .expect("bash");
    // Allowed lines contain no loops; limit the time all the same.
    let mut waited = 0;
    while child.try_wait().expect("a child").is_none() {
        waited += 1;
        assert!(waited < 20_000, "bash does not end: {line:?}");
        std::thread::yield_now();
        if waited > 1_000 {
            std::thread::park_timeout(std::time::Duration::from_millis(1));
        }
    }
    log.rewind().expect("a file");
    let mut text = Vec::new();
    log.read_to_end(&mut text).expect("a file");
    String::from_utf8_lossy(&text)
        .lines()
        .filter_map(|line| line.strip_prefix("name:").map(str::to_owned))
        .collect()
}

#[test]
fn allowed_line_runs_only_granted_programs_in_bash() {
    if !Path::new("/bin/bash").exists() {
        base::skip_test!("there is no /bin/bash to compare with");
        return;
    }
    let lines = std::env::var("AGENTD_LINES").ok().and_then(|text| text.parse().ok()).unwrap_or(LINE_COUNT);
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("a")).expect("a folder");
    let written: Vec<String> = GRANTED.iter().map(|name| format!("Bash({name}:*)")).collect();
    let rules = Rules::parse(&written, &[], &[]).expect("rules");
    let policy = Policy { workspace: folder.path(), ..Policy::for_tests(&rules) };
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let mut allowed = 0;
    let kinds = prop_oneof![line(), line_with_bodies()];
    for _ in 0..2 * lines {
        let line = kinds.new_tree(&mut runner).expect("a line").current();
        let got = judge(&policy, "Bash", &Subject::command(line.clone()));
        if got.verdict != VerdictKind::Allow {
            continue;
        }
        allowed += 1;
        for name in searched_names(&line, folder.path()) {
            // Bash looks up transparent wrappers, and the wrappers would look up the rest.
            let fine = GRANTED.contains(&name.as_str())
                || ["timeout", "nice", "nohup", "xargs"].contains(&name.as_str());
            assert!(fine, "bash runs {name:?} of the allowed line {line:?}: {got:?}");
        }
    }
    assert!(allowed > lines / 50, "only {allowed} of twice {lines} lines were allowed: nothing was shown");
}
