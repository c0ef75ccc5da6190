//! Verdicts over command lines: ordinary ones, and hostile ones that are expensive to judge.
//!
//! Times are medians of many runs on the wall clock, because the kernel counts a thread's CPU time in ticks of 4 ms.
//! Ordinary lines are compared with the time that the grammar of bash takes to parse the same text, hostile ones with
//! the time of a SHA-256 of 64 KiB.

use std::path::Path;
use std::time::{Duration, Instant};

use agentd::judge::{BypassGuard, FileFacts, Policy, Repository, Rules, judge};
use agentd::types::permission::Mode;
use agentd::types::tool::Subject;
use sha2::{Digest as _, Sha256};

/// Commands that people and models run often.
const ORDINARY_LINES: &[&str] = &[
    "ls -la",
    "git status",
    "git diff --stat HEAD~1",
    "git log --oneline -20 -- src/main.rs",
    "git add -A && git commit -m 'Mend the parser'",
    "cargo test --lib parser::tests -- --nocapture",
    "cargo build --release 2>&1 | tail -20",
    "cargo clippy --all-targets -- -D warnings",
    "npm run build",
    "npm test -- --watch=false",
    "pytest -q tests/test_api.py -k login",
    "python -m pytest tests -x",
    "grep -rn 'TODO' src | head -50",
    "rg --files -g '*.rs' | wc -l",
    "find . -name '*.py' -not -path './venv/*'",
    "sed -n '1,80p' src/lib.rs",
    "cat package.json | jq '.scripts'",
    "cd crates/core && cargo check",
    "mkdir -p out && cp -r assets out/",
    "curl -s https://example.org/api/health",
    "docker compose ps",
    "for f in *.txt; do echo \"$f\"; done",
    "RUST_LOG=debug cargo run -- serve --port 8080 &",
    "make -j4 test",
    "timeout 60 go test ./...",
];

const ALLOW_RULES: &[&str] = &[
    "Bash(git status:*)",
    "Bash(git diff:*)",
    "Bash(git log:*)",
    "Bash(cargo:*)",
    "Bash(npm run:*)",
    "Bash(npm test:*)",
    "Bash(pytest:*)",
    "Bash(grep:*)",
    "Bash(make:*)",
    "Bash(go test:*)",
];
const DENY_RULES: &[&str] = &["Bash(sudo:*)", "Bash(git push:*)", "Bash(rm -rf:*)", "Bash(npm publish:*)"];

/// Deny rules for files. A command line may name any of these files.
const FILE_RULES: &[&str] = &["Read(.env)", "Read(private/**)", "Read(**/*.pem)", "Edit(secrets/**)"];

/// Head of a line, and the unit that fills the rest of its 64 KiB.
const HOSTILE_LINES: &[(&str, &str)] = &[
    ("", "ls;"),
    ("", "ls|"),
    ("", ">a;"),
    ("", "cd a;"),
    ("", "cd a && "),
    ("", "cd ..;cd a;"),
    ("", "sh -c 'ls;ls';"),
    ("", "eval 'rm x';"),
    ("", "(cd a;"),
    ("", "$(ls "),
    ("", "\"$("),
    ("", "`a` "),
    ("", "$'\\x41' "),
    ("", "cat <<A\n$(a)\nA\n"),
    ("", "if a;then "),
    ("", "a=1;"),
    ("", "alias a='rm x';"),
    ("", "find . -exec a ';' "),
    ("", "git -c a=b run "),
    ("", "env -S 'ls a' "),
    ("env ", "env "),
    ("xargs ", "xargs -n 1 "),
    ("docker compose exec ", "a-b-c -d=e "),
    ("foo ", "-c 'a b' "),
    ("sort ", "-k1 "),
    ("sort -", "b"),
    ("git log ", "--no-such-option "),
    ("tee ", "a=b:c,d@e/.git/x "),
    ("tee ", ".git/"),
    ("tee ", "{a,b}*/.g*/x "),
    ("cd a||cd b||cd c||cd d||cd e||cd f||cd g||cd h||cd i||cd j||tee ", "a=b:c,d@e:f/.x "),
    ("rm -rf ", "a/../b{c,d}* "),
    ("cp ", ".git/x "),
    ("sed -i s/a/b/ ", "x/../.y "),
    ("ls ", "é"),
    ("ls ", "*"),
    ("ls ", "{a,"),
    ("cat ", "a/"),
    ("git log --since=", "a/"),
    ("cp ", "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/ "),
    ("cat ", "a@b,c=d:e/f "),
    ("grep -e x ", "-n1 "),
    ("cat {", "a/b,"),
];

/// Head of a line, a unit, its number of repetitions, and the text that fills the rest.
const PADDED_LINES: &[(&str, &str, usize, &str)] = &[
    ("mv ", "{,,,}{,,,}{,,} ", 2_150, "x/"),
    ("mv ", "{a,b,c}{a,b,c,d}{a,b,c,d,e} ", 1_000, "x/"),
    ("ln -s ", "{a,b}{a,b}{a,b}{a,b}{a,b} ", 800, "x/"),
    ("cp --no-such ", "-tx ", 8_000, "x/"),
    ("cp -S x ", "a ", 8_000, "x/"),
    ("tee ", "{a,b} ", 5_000, "x/"),
    ("cd a && ", "cd b && ", 20, "tee {x,y} && "),
];

fn measure_time(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

fn parse_rules(allow: &[String], deny: &[String]) -> Rules {
    Rules::parse(allow, &[], deny).expect("rules")
}

fn judge_line(rules: &Rules, mode: Mode, command: &str) {
    let policy = Policy {
        mode,
        rules,
        grants: &[],
        workspace: Path::new("/home/u/work/project"),
        additional: &[],
        home: Path::new("/home/u"),
        safe_mode: false,
        safe_commands: true,
        repository: Repository::Top,
        bypass_guard: BypassGuard::Ask,
        key_folders: &[],
        file_facts: &FileFacts::default(),
    };
    std::hint::black_box(judge(&policy, "Bash", &Subject::command(command)));
}

/// Parses a command with the grammar alone.
fn parse_line(command: &str) {
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).expect("a grammar");
    std::hint::black_box(parser.parse(command, None));
}

/// Prints the figures of ordinary and of hostile lines.
pub fn measure(median: impl Fn(Vec<Duration>) -> Duration) {
    const ROUNDS: usize = 400;
    let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let few_rules = parse_rules(&owned(ALLOW_RULES), &owned(DENY_RULES));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        for line in ORDINARY_LINES {
            // Ten at a time, so that reading the clock takes little of the time.
            let own = measure_time(|| (0..10).for_each(|_| judge_line(&few_rules, Mode::Default, line))) / 10;
            let alone = measure_time(|| (0..10).for_each(|_| parse_line(line))) / 10;
            if round > 0 {
                ours.push(own);
                theirs.push(alone);
            }
        }
    }
    let max = ours.iter().max().copied().unwrap_or_default();
    let (ours, theirs) = (median(ours), median(theirs));
    println!(
        "  {} ordinary lines: median {:.1} µs, at most {:.1} µs; tree-sitter alone {:.1} µs, ratio {:.2}",
        ORDINARY_LINES.len(),
        ours.as_secs_f64() * 1e6,
        max.as_secs_f64() * 1e6,
        theirs.as_secs_f64() * 1e6,
        ours.as_secs_f64() / theirs.as_secs_f64()
    );
    measure_hostile_lines(&few_rules, &median);
}

fn measure_hostile_lines(few_rules: &Rules, median: &impl Fn(Vec<Duration>) -> Duration) {
    const LINE_BYTES: usize = 64 * 1024;
    let mut allow: Vec<String> = ALLOW_RULES.iter().map(|text| (*text).to_owned()).collect();
    let mut deny: Vec<String> = DENY_RULES.iter().map(|text| (*text).to_owned()).collect();
    for n in 0..1_500 {
        allow.extend([format!("Bash(ls {n}:*)"), format!("Bash(git a{n}:*)")]);
        deny.extend([format!("Bash(ls b{n}:*)"), format!("Bash(git b{n}:*)")]);
    }
    let many_rules = parse_rules(&allow, &deny);
    let deny: Vec<String> = DENY_RULES.iter().chain(FILE_RULES).map(|text| (*text).to_owned()).collect();
    let file_rules = parse_rules(&allow[..ALLOW_RULES.len()], &deny);
    let bytes = vec![b'a'; LINE_BYTES];
    let hash =
        median((0..50).map(|_| measure_time(|| _ = std::hint::black_box(Sha256::digest(&bytes)))).collect());
    let mut worst = (Duration::ZERO, String::new());
    let fill_line =
        |head: &str, unit: &str| format!("{head}{}", unit.repeat((LINE_BYTES - head.len()) / unit.len()));
    let padded = PADDED_LINES.iter().map(|(head, unit, times, rest)| {
        (*head, *unit, fill_line(&format!("{head}{}", unit.repeat(*times)), rest))
    });
    let plain = HOSTILE_LINES.iter().map(|(head, unit)| (*head, *unit, fill_line(head, unit)));
    for (head, unit, text) in plain.chain(padded) {
        for (rules, mode, name) in [
            (few_rules, Mode::Default, "few rules"),
            (&many_rules, Mode::Default, "3,000 rules of each kind"),
            (&file_rules, Mode::Default, "rules for files"),
            (few_rules, Mode::Bypass, "bypass"),
        ] {
            let took = median((0..5).map(|_| measure_time(|| judge_line(rules, mode, &text))).collect());
            if took > worst.0 {
                worst = (took, format!("{head:.20}{unit:?}…, {name}"));
            }
        }
    }
    println!(
        "  {} hostile lines of 64 KiB: at most {:.1} ms ({}); a SHA-256 of 64 KiB {:.2} ms, ratio {:.0}",
        HOSTILE_LINES.len() + PADDED_LINES.len(),
        worst.0.as_secs_f64() * 1e3,
        worst.1,
        hash.as_secs_f64() * 1e3,
        worst.0.as_secs_f64() / hash.as_secs_f64()
    );
}
