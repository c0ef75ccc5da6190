//! Tests of the judgement with tables of cases: shared ones and agentd's own.

use std::path::{Path, PathBuf};

use super::{Policy, Repository, Rules, judge};
use types::permission::{Mode, Verdict, VerdictKind};
use types::tool::Subject;

#[derive(serde::Deserialize)]
struct Case {
    id: String,
    grants: Vec<String>,
    #[serde(default)]
    denies: Vec<String>,
    command: String,
    expected: VerdictKind,
    #[serde(default)]
    accept: Vec<VerdictKind>,
}

fn verdict(grants: &[String], denies: &[String], command: &str, safe_commands: bool) -> Verdict {
    let written = |list: &[String]| list.iter().map(|text| format!("Bash({text})")).collect::<Vec<_>>();
    let rules = Rules::parse(&written(grants), &[], &written(denies)).expect("rules");
    let policy = Policy { safe_commands, ..Policy::for_tests(&rules) };
    judge(&policy, "Bash", &Subject::command(command))
}

/// The wrong verdicts over a file of cases, one per line.
fn failures(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let case: Case = serde_json::from_str(line).expect("a case");
        let got = verdict(&case.grants, &case.denies, &case.command, false);
        if got.verdict != case.expected && !case.accept.contains(&got.verdict) {
            let command: String = case.command.chars().take(120).collect();
            wrong.push(format!(
                "{} {command:?} with {:?}: {:?} instead of {:?} ({})",
                case.id, case.grants, got.verdict, case.expected, got.reason
            ));
        }
    }
    wrong
}

#[test]
fn shared_permission_cases_get_expected_verdict() {
    let mut wrong = failures(include_str!("../../tests/cases/bash-permissions.jsonl"));
    // More cases from a file of the same format.
    if let Ok(path) = std::env::var("AGENTD_BASH_CASES") {
        wrong.extend(failures(&std::fs::read_to_string(path).expect("a file")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `expected grants ! denies # command`, lists separated by `;`. `never` means ask or deny.
fn check_table(table: &str, safe: bool) {
    let mut wrong = Vec::new();
    for line in table.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with("//"))
    {
        let (head, command) = line.split_once(" # ").expect("a command");
        let (expected, rules) = head.split_once(' ').unwrap_or((head, ""));
        let rules = format!(" {rules}");
        let (grants, denies) = rules.split_once(" !").unwrap_or((&rules, ""));
        let list = |text: &str| -> Vec<String> {
            text.split(';').map(|rule| rule.trim().to_owned()).filter(|rule| !rule.is_empty()).collect()
        };
        let command = command.replace("\\n", "\n");
        let got = verdict(&list(grants), &list(denies), &command, safe);
        let is = match got.verdict {
            VerdictKind::Allow => "allow",
            VerdictKind::Ask => "ask",
            VerdictKind::Deny => "deny",
        };
        if is != expected && !(expected == "never" && is != "allow") {
            wrong.push(format!("{line}\n    is {is}: {}", got.reason));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn own_command_cases_get_expected_verdict() {
    check_table(include_str!("../../tests/cases/bash-own.txt"), false);
    check_table(include_str!("../../tests/cases/bash-manuals.txt"), false);
}

#[test]
fn read_only_commands_are_allowed_inside_workspace() {
    check_table(include_str!("../../tests/cases/bash-safe.txt"), true);
}

#[test]
fn git_verdict_depends_on_found_repository() {
    use Repository::{Above, Content, Nowhere, Top};
    let verdict = |repository: Repository, command: &str| {
        let rules = Rules::default();
        let policy = Policy { safe_commands: true, repository, ..Policy::for_tests(&rules) };
        judge(&policy, "Bash", &Subject::command(command)).verdict == VerdictKind::Allow
    };
    // Content above the workspace needs a permission request. Outside a repository, `git diff` compares
    // two folders with all their content.
    for (command, passes) in [
        ("git status", [true, true, true]),
        ("git log --oneline -5", [true, true, true]),
        ("git ls-files", [true, true, true]),
        ("git show HEAD:notes.txt", [true, false, true]),
        ("git diff", [true, false, true]),
        ("git diff HEAD sub", [true, false, false]),
        ("git diff src .", [false, false, false]),
        ("git diff -- src ./.", [false, false, false]),
        ("git --no-pager diff a .", [false, false, false]),
        ("git diff -U 5 other", [false, false, false]),
        ("git diff @ sub", [true, false, false]),
        ("git diff a.d b.d", [false, false, false]),
        ("git diff src/a.rs src/b.rs", [true, false, true]),
        ("git branch -a", [true, true, true]),
        ("git diff a b c", [true, false, true]),
        ("git diff src", [true, false, true]),
    ] {
        for (repository, expected) in [Top, Above, Nowhere].into_iter().zip(passes) {
            assert_eq!(verdict(repository, command), expected, "{command} in {repository:?}");
        }
        assert!(!verdict(Content, command), "{command}");
    }
}

#[test]
fn read_only_commands_run_in_loops_only_without_file_rules_and_with_table() {
    let line = "for f in a.txt b.txt; do cat \"$f\"; done";
    assert_eq!(verdict(&[], &[], line, true).verdict, VerdictKind::Allow);
    assert_eq!(verdict(&["cat:*".into()], &[], line, false).verdict, VerdictKind::Ask);
    assert_eq!(verdict(&[], &["cat:*".into()], line, true).verdict, VerdictKind::Deny);
    let with_rule = |line: &str, rule: &str| {
        let rules = Rules::parse(&[], &[], &[rule]).expect("rules");
        let policy = Policy { safe_commands: true, ..Policy::for_tests(&rules) };
        judge(&policy, "Bash", &Subject::command(line)).verdict
    };
    assert_ne!(with_rule(line, "Read(b.txt)"), VerdictKind::Allow);
    assert_ne!(
        with_rule("cd sub && for f in b.txt; do cat \"$f\"; done", "Read(sub/b.txt)"),
        VerdictKind::Allow
    );
    assert_ne!(with_rule("rg foo", "Read(b.txt)"), VerdictKind::Allow);
    assert_ne!(with_rule("git grep foo", "Read(b.txt)"), VerdictKind::Allow);
    assert_ne!(with_rule("find . -name '*.rs' | xargs cat", "Read(b.txt)"), VerdictKind::Allow);
}

/// Git tracks likely secrets, also in the folder `conf`.
fn disk_with_tracked_secrets(read: &crate::FileRead) -> Option<crate::Obstacle> {
    let is_patch =
        matches!(&read.kind, crate::ReadKind::Tree(search) if search.selection == crate::Selection::Patches);
    let is_limit = ["/w/proj/src", "/w/proj/src/a.rs", "/w/proj/README.md"].contains(&read.path.as_str());
    let kind = crate::ObstacleKind::Secret;
    (is_patch && !is_limit).then(|| crate::Obstacle { path: "conf/.env".into(), kind })
}

#[test]
fn git_shows_changes_only_if_no_secret_is_tracked() {
    let rules = Rules::default();
    let facts = crate::FileFacts::simulated(disk_with_tracked_secrets);
    let policy = Policy { safe_commands: true, file_facts: &facts, ..Policy::for_tests(&rules) };
    for (command, passes) in [
        ("git diff", false),
        ("git diff HEAD", false),
        ("git diff --cached", false),
        ("git diff main..dev", false),
        ("git diff HEAD~1:conf HEAD:conf", false),
        ("git diff --stat -p", false),
        ("git diff --check", false),
        ("git diff -- .", false),
        ("git diff -- src conf", false),
        ("git diff src conf README.md", false),
        ("git diff -- ':!conf'", false),
        ("git log -p", false),
        ("git log -U3", false),
        ("git log --cc", false),
        ("git log -u --stat", false),
        ("git --no-pager log --patch -1", false),
        ("git show", false),
        ("git show HEAD", false),
        ("git show v1", false),
        ("git show ':/fix'", false),
        ("git show 'HEAD^{/a:b}'", false),
        ("git show --stat abcdef0", false),
        ("git cat-file -p abcdef0", false),
        ("git status -v", false),
        ("git diff -- src", true),
        ("git diff HEAD~1 src/a.rs", true),
        ("git diff HEAD -- src README.md", true),
        ("git diff --stat", true),
        ("git diff --name-only HEAD", true),
        ("git log", true),
        ("git log --oneline --stat", true),
        ("git log -p -3 -- src/a.rs", true),
        ("git show --stat HEAD", true),
        ("git show -s --format=%h HEAD", true),
        ("git show HEAD:src/a.rs", true),
        ("git show :src/a.rs", true),
        ("git cat-file -t abcdef0", true),
        ("git status -s", true),
    ] {
        let got = judge(&policy, "Bash", &Subject::command(command));
        assert_eq!(got.verdict == VerdictKind::Allow, passes, "{command}: {}", got.reason);
    }
}

#[test]
fn read_that_was_not_inspected_needs_request() {
    let rules = Rules::default();
    let facts = crate::FileFacts::default();
    let policy = Policy { safe_commands: true, file_facts: &facts, ..Policy::for_tests(&rules) };
    for (command, reads) in
        [("cat a.txt", 1), ("ls", 0), ("rg foo", 1), ("cat a.txt b.txt < c.txt", 3), ("rm a.txt", 0)]
    {
        let subject = Subject::command(command);
        assert_eq!(crate::file_reads(&policy, &subject).len(), reads, "{command}");
        let expected = if command == "ls" { VerdictKind::Allow } else { VerdictKind::Ask };
        assert_eq!(judge(&policy, "Bash", &subject).verdict, expected, "{command}");
    }
}

/// The verdict from another folder, with additional workspace folders.
fn verdict_from(
    cwd: &str,
    additional: &[&str],
    workspace: &str,
    grants: &[&str],
    command: &str,
) -> VerdictKind {
    let written: Vec<String> = grants.iter().map(|text| format!("Bash({text})")).collect();
    let rules = Rules::parse(&written, &[], &[]).expect("rules");
    let additional: Vec<PathBuf> = additional.iter().map(PathBuf::from).collect();
    let policy =
        Policy { workspace: Path::new(workspace), additional: &additional, ..Policy::for_tests(&rules) };
    let cwd = (cwd != workspace).then(|| PathBuf::from(cwd));
    judge(&policy, "Bash", &Subject::Bash { command: command.into(), background: false, cwd }).verdict
}

#[test]
fn command_line_is_judged_from_current_folder() {
    use VerdictKind::{Allow, Ask, Deny};
    const TOP: &str = "/w/proj";
    let all = ["tee:*", "cat:*", "rm:*", "git:*", "./run.sh:*", "echo:*"];
    for (cwd, more, command, expected) in [
        (TOP, &[][..], "tee config", Allow),
        ("/w/proj/.git", &[], "tee config", Deny),
        ("/w/proj/.git/hooks", &[], "echo x | tee pre-commit", Deny),
        ("/w/proj/.git", &[], "cat config", Allow),
        ("/w/proj/.agentd", &[], "rm config.toml", Deny),
        ("/w/proj/.git", &[], "cd .. && tee config", Allow),
        // Files of the project in the folders above the workspace.
        (TOP, &["/w"], "rm ../.agentd/config.toml", Deny),
        (TOP, &["/w"], "echo x | tee /w/.agentd/hooks/hooks.toml", Deny),
        (TOP, &["/w"], "tee ../.git/hooks/pre-commit", Deny),
        (TOP, &[], "rm ../.agentd/config.toml", Deny),
        (TOP, &[], "cat < ../x", Ask),
        ("/w/proj/src", &[], "cat < ../x", Allow),
        ("/w/proj/src", &[], "cat < ../../x", Ask),
        (TOP, &[], "./run.sh", Allow),
        ("/w/proj/src", &[], "./run.sh", Ask),
        ("/w/proj/src", &[], "rm -rf ../x", Allow),
        ("/w/proj/src", &[], "rm -rf ..", Ask),
        (TOP, &[], "cd /data/more", Ask),
        (TOP, &["/data/more"], "cd /data/more", Allow),
        (TOP, &["/data/more"], "cd /data/more/a && cat < ../x", Allow),
        (TOP, &["/data/more"], "cd /data/mores", Ask),
        (TOP, &[], "git -C /data/more status", Ask),
        (TOP, &["/data/more"], "git -C /data/more status", Allow),
        (TOP, &[], "tee /data/more/x", Ask),
        (TOP, &["/data/more"], "tee /data/more/x", Allow),
        (TOP, &["/data/more"], "tee /data/more/.git/config", Deny),
        (TOP, &["/data/more"], "rm -rf /data/more", Ask),
        (TOP, &["/data/more"], "rm -rf /data", Ask),
        (TOP, &["/data/more"], "rm -rf /data/more/x", Allow),
        ("/data/more", &["/data/more"], "cat < x", Allow),
        ("/data/more/.git", &["/data/more"], "tee config", Deny),
    ] {
        assert_eq!(
            verdict_from(cwd, more, TOP, &all, command),
            expected,
            "in {cwd}, with {more:?}: {command}"
        );
    }
}

#[test]
fn denied_subcommand_is_found_after_many_options() {
    for option in ["-c a=b ", "-P ", "-C . "] {
        let line = format!("git {}push", option.repeat(60_000 / option.len()));
        let got = verdict(&["git:*".to_owned()], &["git push:*".to_owned()], &line, false);
        assert_eq!(got.verdict, VerdictKind::Deny, "{option}: {}", got.reason);
    }
}

#[test]
fn line_over_work_budget_is_never_allowed() {
    let fill = |head: &str, unit: &str, tail: &str| {
        let times = (64 * 1024 - head.len() - tail.len()) / unit.len();
        format!("{head}{}{tail}", unit.repeat(times))
    };
    let deep = (64 * 1024 - 40) / "(cd a)".len();
    let lines = [
        // Commands without words: only the last one would write.
        fill("", ">/dev/null;", ">evil"),
        fill("", "cd a && ", "ls"),
        fill("", "cd .. && cd a && ", "ls"),
        format!("{}{}", "(".repeat(deep), "cd a)".repeat(deep)),
        // Each word is harmless from each possible folder of the command, but checking all combinations
        // is too expensive.
        fill("cd a || cd b || cd c || tee ", "a=b:c,d@e:f,g=h/x/y ", ""),
        format!("tee {}", "a=b:c,d@e:f,g=h/{a,b}*/.g*/x ".repeat(2_200)),
    ];
    let grants = ["tee:*", "git:*", "ls:*"];
    for line in lines {
        assert!(line.len() <= 64 * 1024, "{} bytes", line.len());
        let shown = &line[..60];
        for workspace in ["/w/proj", "/home/u/agentd/.config/x"] {
            let got = verdict_from(workspace, &[], workspace, &grants, &line);
            assert_ne!(got, VerdictKind::Allow, "{shown}");
        }
        // A rule for all commands does not allow the line, because the search may have missed a denied
        // command.
        let rules = Rules::parse(&["Bash"], &[], &["Bash(rm:*)"]).expect("rules");
        let policy = Policy { safe_commands: true, ..Policy::for_tests(&rules) };
        let denied = judge(&policy, "Bash", &Subject::command(format!("{}; rm x", &line[..2_000]))).verdict;
        assert_ne!(denied, VerdictKind::Allow, "{shown}");
    }
}

#[test]
fn long_line_of_ordinary_words_is_judged() {
    use std::fmt::Write as _;
    for workspace in ["/w/proj", "/home/u/work/agent-project/.config"] {
        let (mut add, mut build) = ("git add".to_owned(), String::new());
        for n in 0..1_500 {
            let _ = write!(add, " src/module_{n}/file_{n}.rs");
        }
        for n in 0..500 {
            let _ = write!(build, "cargo test --package part-{n} --lib && ");
        }
        build.push_str("echo done");
        for line in [&add, &build] {
            let got = verdict_from(workspace, &[], workspace, &["git add:*", "cargo test:*", "echo:*"], line);
            assert_eq!(got, VerdictKind::Allow, "in {workspace}: {}", &line[..60]);
        }
    }
}

#[test]
fn every_rule_of_long_list_is_checked() {
    let many = |program: &str| (0..3_000).map(|n| format!("{program} w{n}:*")).collect::<Vec<_>>();
    let line: String = (0..1_300).map(|n| format!("foo -v w{n} x; ")).collect();
    for (denies, command, expected) in [
        (many("foo"), "foo w2999 x".to_owned(), VerdictKind::Deny),
        (many("foo"), "foo -v w2999".to_owned(), VerdictKind::Deny),
        (many("foo"), "foo w3000".to_owned(), VerdictKind::Allow),
        (many("docker"), format!("{line}docker w7"), VerdictKind::Deny),
        // So many options precede the words that only some can be inspected.
        (many("foo"), line.replace('w', "v"), VerdictKind::Ask),
    ] {
        let got = verdict(&["foo:*".into(), "docker:*".into()], &denies, &command, false);
        let shown: String = command.chars().take(60).collect();
        assert_eq!(got.verdict, expected, "{shown}: {}", got.reason);
    }
}

#[test]
fn oversized_line_is_denied_or_asks_but_never_allowed() {
    let long = |unit: &str, tail: &str| format!("{}{tail}", unit.repeat(1_500_000 / unit.len()));
    let grants = ["ls:*".to_owned(), "git:*".to_owned(), "echo:*".to_owned()];
    let denies = ["git push:*".to_owned()];
    for (line, expected) in [
        (long("ls;", "git push"), VerdictKind::Deny),
        (long("(", "git push"), VerdictKind::Deny),
        (format!("echo \"{}\"; git push", "a".repeat(1_500_000)), VerdictKind::Deny),
        (format!("sh -c '{}git push'", "ls;".repeat(500_000)), VerdictKind::Deny),
        (long("ls;", "tee .git/config"), VerdictKind::Deny),
        (long("ls;", "ls"), VerdictKind::Ask),
        (long("a ", ""), VerdictKind::Ask),
    ] {
        let tail = &line[line.len() - 20..];
        assert_eq!(verdict(&grants, &denies, &line, true).verdict, expected, "…{tail}");
        // Bypass mode asks as well, because the search may have missed a protected path.
        let rules = Rules::parse(&["Bash"], &[], &[]).expect("rules");
        let policy = Policy { mode: Mode::Bypass, safe_commands: true, ..Policy::for_tests(&rules) };
        let got = judge(&policy, "Bash", &Subject::command(line.clone())).verdict;
        assert_ne!(got, VerdictKind::Allow, "…{tail}");
    }
}

#[test]
fn overlong_pattern_as_program_name_asks() {
    let denies = (0..2_000).map(|n| format!("git b{n}:*")).collect::<Vec<_>>();
    let got = verdict(&["git:*".into()], &denies, &format!("{} x", "[a-z]".repeat(10_000)), false);
    assert_eq!(got.verdict, VerdictKind::Ask);
}

#[test]
fn dangerous_commands_get_no_suggested_rule() {
    let offered = |command: &str| verdict(&[], &[], command, true).suggestions;
    for command in ["rm -rf /", "rm -rf ~", "ls; rm -rf .", "mv .git gone"] {
        assert_eq!(offered(command), Vec::<String>::new(), "{command}");
    }
    assert_eq!(offered("cat .env"), ["Bash(cat .env)"]);
    assert_eq!(offered("cargo test secrets"), ["Bash(cargo test secrets)", "Bash(cargo test:*)"]);
}

#[test]
fn command_with_text_of_several_lines_gets_suggested_prefix() {
    let offered = |command: &str| verdict(&[], &[], command, true).suggestions;
    let message = "\"$(cat <<'EOF'\nFix the login\n\nIt works.\nEOF\n)\"";
    for (command, expected) in [
        (format!("git commit -m {message}"), &["Bash(git commit:*)"][..]),
        (format!("cargo test -- {message}"), &["Bash(cargo test:*)"]),
        ("git commit -m 'two\nlines'".to_owned(), &["Bash(git commit:*)"]),
        (format!("sh -c {message}"), &[]),
        (format!("git commit -m {message}; rm x"), &[]),
        (format!("gh pr create --body {message}"), &[]),
        (format!("'git' commit -m {message}"), &[]),
        ("git commit -m \"$(cat <<EOF\n$x\nEOF\n)\"".to_owned(), &[]),
    ] {
        assert_eq!(offered(&command), expected, "{command}");
    }
    // The here-document is part of the command, and no command of its own.
    for message in [message, "\"$(cat <<-'EOF'\n\tFix\n\tEOF\n)\""] {
        let granted = verdict(&["git commit:*".into()], &[], &format!("git commit -m {message}"), false);
        assert_eq!(granted.verdict, VerdictKind::Allow, "{message}: {}", granted.reason);
    }
}
