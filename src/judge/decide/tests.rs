//! Tests of verdicts by mode, rule and path.

use super::*;
use VerdictKind::{Allow, Ask, Deny};

use crate::rules::Rules;
use types::tool::McpToolName;

fn path(text: &str, sensitivity: PathSensitivity) -> ResolvedPath {
    ResolvedPath {
        path: PathBuf::from(text),
        in_workspace: Path::new(text).starts_with("/w/proj"),
        sensitivity,
        matched_aliases: Vec::new(),
    }
}

fn read(text: &str, sensitivity: PathSensitivity) -> Subject {
    Subject::Read { path: path(text, sensitivity) }
}

pub(super) fn edit(text: &str, sensitivity: PathSensitivity) -> Subject {
    Subject::Edit { path: path(text, sensitivity) }
}

pub(super) fn bash(command: &str) -> Subject {
    Subject::command(command)
}

/// Rules are written `+Rule` (allow), `?Rule` (ask), `-Rule` (deny).
pub(super) fn check(
    mode: Mode,
    rules: &[&str],
    tool: &str,
    subject: &Subject,
    expected: VerdictKind,
) -> Verdict {
    let of = |sign: char| -> Vec<&str> { rules.iter().filter_map(|r| r.strip_prefix(sign)).collect() };
    let parsed = Rules::parse(&of('+'), &of('?'), &of('-')).unwrap();
    let policy = Policy { mode, ..Policy::for_tests(&parsed) };
    let got = judge(&policy, tool, subject);
    assert_eq!(got.verdict, expected, "{mode:?} {rules:?} {tool} {subject:?}: {got:?}");
    got
}

#[test]
fn approval_mode_decides_calls_without_rule() {
    use Mode::{AcceptEdits, Bypass, Default, DontAsk, Plan};
    use PathSensitivity::{AutoExecuted, Ordinary, Protected, Secret};
    let inside = "/w/proj/src/a.rs";
    let outside = "/etc/hosts";
    for (subject, tool, expected) in [
        // default, accept_edits, dont_ask, bypass, plan
        (read(inside, Ordinary), "Read", [Allow, Allow, Allow, Allow, Allow]),
        (read(outside, Ordinary), "Read", [Ask, Ask, Deny, Allow, Ask]),
        (read("/w/proj/.env", Secret), "Read", [Ask, Ask, Deny, Allow, Ask]),
        (read("/w/proj/AGENTS.md", AutoExecuted), "Read", [Allow, Allow, Allow, Allow, Allow]),
        (edit(inside, Ordinary), "Edit", [Ask, Allow, Deny, Allow, Deny]),
        (edit(outside, Ordinary), "Write", [Ask, Ask, Deny, Allow, Deny]),
        (edit("/w/proj/.envrc", AutoExecuted), "Write", [Ask, Ask, Deny, Allow, Deny]),
        (edit("/w/proj/.git/config", Protected), "Edit", [Deny, Deny, Deny, Deny, Deny]),
        (bash("ls"), "Bash", [Ask, Ask, Deny, Allow, Ask]),
        (bash("make"), "Bash", [Ask, Ask, Deny, Allow, Deny]),
        (bash("ls > x"), "Bash", [Ask, Ask, Deny, Allow, Deny]),
        (Subject::Tool { name: "mcp__a__b".into() }, "mcp__a__b", [Ask, Ask, Deny, Allow, Ask]),
    ] {
        for (mode, expected) in [Default, AcceptEdits, DontAsk, Bypass, Plan].into_iter().zip(expected) {
            check(mode, &[], tool, &subject, expected);
        }
    }
}

#[test]
fn plan_mode_denies_changing_commands_with_any_grant() {
    for rules in [&["+Bash"][..], &["+Bash(make:*)"], &["+Bash(make x)"], &["?Bash(make:*)"]] {
        let denied = check(Mode::Plan, rules, "Bash", &bash("make x"), Deny);
        assert!(denied.reason.contains("plan mode") && denied.reason.contains("make x"), "{denied:?}");
    }
    for text in ["ls && touch x", "echo $(touch x)", "for f in *; do rm $f; done", "cat <<EOF > x\nEOF"] {
        check(Mode::Plan, &["+Bash"], "Bash", &bash(text), Deny);
    }
    // In plan mode, rules allow read-only commands as in the other modes.
    check(Mode::Plan, &["+Bash"], "Bash", &bash("git status && ls | wc -l"), Allow);
    check(Mode::Plan, &["+Bash(uname:*)"], "Bash", &bash("uname -a"), Allow);
    check(Mode::Plan, &["+Bash(uname:*)"], "Bash", &bash("uname -a; ls"), Ask);
}

#[test]
fn read_deny_rule_applies_to_edit_tools() {
    let subject = edit("/w/proj/private/k", PathSensitivity::Ordinary);
    for tool in ["Edit", "MultiEdit", "ApplyPatch"] {
        let rules = |sign: &str| [format!("{sign}Read(private/**)"), "+Edit".to_owned()];
        let of = |rules: [String; 2], expected| {
            let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
            check(Mode::AcceptEdits, &rules, tool, &subject, expected);
        };
        of(rules("-"), Deny);
        of(rules("?"), Ask);
    }
    // `Write` shows no content of the file, and it only overwrites a file that the model has read.
    check(Mode::AcceptEdits, &["-Read(private/**)"], "Write", &subject, Allow);
}

#[test]
fn overlong_path_asks_when_file_rules_exist() {
    let rules = Rules::parse(&["Bash(cat:*)"], &[], &["Read(.env)", "Read(private/**)"]).unwrap();
    let verdict = |command: String| {
        let policy = Policy::for_tests(&rules);
        judge(&policy, "Bash", &bash(&command)).verdict
    };
    assert_eq!(verdict(format!("cat {}x", "a/".repeat(100))), Allow);
    assert_eq!(verdict(format!("cat {}.env", "a/".repeat(100))), Ask);
    assert_eq!(verdict(format!("cat {}x", "a/".repeat(4_000))), Ask);
    assert_eq!(verdict(format!("cat {}", format!("{}x ", "a/".repeat(500)).repeat(60))), Ask);
    // Brace expansions are checked. The files that a glob would match are not.
    for choice in ["{f,.env}", ".{env,x}", ".e{n,}v", "{sub/../,}.env", "private/{a,b}", ".e{n..n}v"] {
        assert_eq!(verdict(format!("cat {choice}")), Ask, "{choice}");
    }
    assert_eq!(verdict("cat {a,b}".to_owned()), Allow);
}

#[test]
fn file_rules_apply_to_paths_in_commands() {
    let rules = [
        "-Read(private/**)",
        "?Read(askme.txt)",
        "-Edit(z*)",
        "+Bash(cat:*)",
        "+Bash(tee:*)",
        "+Bash(echo:*)",
    ];
    let judged = |mode, safe_commands, text: &str| {
        let of = |sign: char| -> Vec<&str> { rules.iter().filter_map(|r| r.strip_prefix(sign)).collect() };
        let parsed = Rules::parse(&of('+'), &of('?'), &of('-')).unwrap();
        let (workspace, home) = (Path::new("/w/proj"), Path::new("/home/u"));
        let (grants, additional) = (&[][..], &[][..]);
        let policy =
            Policy { mode, grants, workspace, additional, home, safe_commands, ..Policy::for_tests(&parsed) };
        judge(&policy, "Bash", &bash(text))
    };
    for text in ["cd sub && git show HEAD:private/k", "git diff ':(top)private/k'", "git show :/private/k"] {
        assert_eq!(judged(Mode::Bypass, true, text).verdict, Ask, "{text}");
    }
    for text in [
        "cd sub && command git show HEAD:private/k",
        "cd sub && timeout 5 git cat-file -p :0:private/k",
        "cd sub && git diff HEAD:x..HEAD:private/k",
        "cat < {private/k,}",
    ] {
        assert_eq!(judged(Mode::Bypass, true, text).verdict, Ask, "{text}");
    }
    assert_eq!(judged(Mode::Bypass, true, "git show HEAD:public/k").verdict, Allow);
    for text in ["cd -P private && cat k", "cd \"$PWD/private\" && cat k"] {
        assert_eq!(judged(Mode::Bypass, true, text).verdict, Ask, "{text}");
    }
    for text in [
        "cat private/k",
        "cat ./x/../private/k",
        "cat < private/k",
        "cd private && cat k",
        "head -n 3 askme.txt",
        "wc -l /w/proj/private/k",
        "echo x > zed",
        "cat a.rs; cat private/k",
    ] {
        let verdict = judged(Mode::Bypass, true, text);
        assert!(verdict.verdict == Ask && verdict.reason.contains("the rule "), "{text}: {verdict:?}");
        assert_eq!(judged(Mode::Default, true, text).verdict, Ask, "{text}");
        assert_eq!(judged(Mode::DontAsk, true, text).verdict, Deny, "{text}");
    }
    // These commands do not name the files that they show.
    for text in ["head *.rs", "git diff", "git show HEAD", "git log -p", "git blame src/a.rs"] {
        assert_eq!(judged(Mode::Default, true, text).verdict, Ask, "{text}");
    }
    for text in ["cat src/a.rs", "head a.rs", "ls", "git status", "git log --oneline -5", "cat zed"] {
        assert_eq!(judged(Mode::Default, true, text).verdict, Allow, "{text}");
    }
}

#[test]
fn deny_overrides_ask_and_ask_overrides_allow() {
    let all = ["+Bash", "?Bash(cargo publish:*)", "-Bash(rm:*)"];
    for mode in [Mode::Default, Mode::Bypass] {
        check(mode, &all, "Bash", &bash("cargo build"), Allow);
        check(mode, &all, "Bash", &bash("cargo publish"), Ask);
        let denied = check(mode, &all, "Bash", &bash("rm x"), Deny);
        assert_eq!(denied.rule.as_deref(), Some("Bash(rm:*)"));
        check(mode, &all, "Bash", &bash("ls; rm x"), Deny);
    }
}

#[test]
fn bypass_asks_when_denied_program_may_be_hidden() {
    check(Mode::Bypass, &["-Bash(rm:*)"], "Bash", &bash("x=r; ${x}m a"), Ask);
    check(Mode::Bypass, &["-Bash(rm:*)"], "Bash", &bash("cargo build && ls | wc"), Allow);
    check(Mode::Bypass, &[], "Bash", &bash("x=r; ${x}m a"), Allow);
}

#[test]
fn hard_linked_file_asks_when_deny_rules_exist() {
    let read = |sensitivity| Subject::Read { path: path("/w/proj/a", sensitivity) };
    check(Mode::Bypass, &["-Read(private/**)"], "Read", &read(PathSensitivity::HardLinked), Ask);
    check(Mode::Bypass, &["-Edit(private/**)"], "Read", &read(PathSensitivity::HardLinked), Allow);
    check(Mode::Bypass, &[], "Read", &read(PathSensitivity::HardLinked), Allow);
    check(Mode::Bypass, &["-Read(private/**)"], "Read", &read(PathSensitivity::Ordinary), Allow);
}

#[test]
fn bypass_denies_protected_paths_in_any_spelling() {
    let lines = [
        "tee .git/{config,x}",
        "cp {x,.git/config}",
        "cp x .git/{c..c}onfig .git/config",
        "mv {config,.git}",
        "touch {.git,x}/config",
        "rm -rf .git/hooks/*",
        "mv -t .git config",
        "cd -P .git && rm config",
        "cd $'.git' && rm config",
        "echo x > {.git/config,}",
        "echo x > {,.agentd/config.toml}",
        "cp x/config {.git,}",
        "mv {-t,.git} config",
        "cp -{a,t.git} config",
        "cd {-P,.git} && tee config",
        "{cd,.git}; tee config",
        "pushd -n .git; popd && tee config",
        "cp --pa hooks/a .git",
        "echo x > .gi{t..t}/config",
        "tar -cf x.tar --remove-files .git/hooks/*",
        "mv -b --suf=onfig new .git/c",
        "mv -T -b -S gentd new .a",
    ];
    let too_many = format!("{}true; cd .git; tee config", "cd + && ".repeat(14));
    check(Mode::Bypass, &[], "Bash", &bash(&too_many), Ask);
    for line in lines {
        check(Mode::Bypass, &[], "Bash", &bash(line), Deny);
        check(Mode::Default, &["+Bash"], "Bash", &bash(line), Deny);
    }
    for line in [
        "touch src/{a,b}.rs .g*",
        "rsync --delay-updates -rt .git/config ../b",
        "cp {a,b}.rs {c,}",
        "cd a && make; cd ../b && make; cd -",
    ] {
        check(Mode::Bypass, &[], "Bash", &bash(line), Allow);
    }
}

/// A tool of a server, with the tools of other servers that a rule can mean as well.
fn mcp(offered: &str, server: &str, tool: &str, confusable: Vec<McpToolName>) -> Subject {
    Subject::Mcp {
        name: offered.into(),
        server: server.into(),
        tool: tool.into(),
        digest: String::new(),
        is_changed: false,
        confusable,
    }
}

#[test]
fn rules_name_servers_and_tools_by_own_and_offered_names() {
    let long = "s".repeat(60);
    let cut = format!("mcp__{}_0a1b2c", &long[..50]);
    let weather = mcp("mcp__wx_9db321", "wx", "获取天气", Vec::new());
    let of_long = mcp(&cut, &long, "read", Vec::new());
    for (subject, rule, is_named) in [
        (&weather, "mcp__wx", true),
        (&weather, "mcp__wx__获取天气", true),
        (&weather, "mcp__wx_9db321", true),
        (&weather, "mcp__wx__*", true),
        (&weather, "mcp__w", false),
        (&weather, "mcp__wx__other", false),
        (&of_long, &format!("mcp__{long}"), true),
        (&of_long, &format!("mcp__{long}__read"), true),
        (&of_long, &format!("mcp__{long}__write"), false),
    ] {
        let verdicts = if is_named { [Deny, Allow] } else { [Allow, Ask] };
        check(Mode::Bypass, &[&format!("-{rule}")], "x", subject, verdicts[0]);
        check(Mode::Default, &[&format!("+{rule}")], "x", subject, verdicts[1]);
    }
}

#[test]
fn rules_that_restrict_name_servers_in_any_case() {
    let danger = mcp("mcp__wx__Danger", "wx", "Danger", Vec::new());
    for rule in ["mcp__WX", "mcp__wx__danger", "mcp__Wx__Danger", "mcp__WX__*"] {
        check(Mode::Bypass, &[&format!("-{rule}")], "x", &danger, Deny);
        check(Mode::Default, &[&format!("+{rule}")], "x", &danger, Ask);
        let by_name = Subject::Tool { name: "mcp__wx__Danger".into() };
        check(Mode::Bypass, &[&format!("-{rule}")], "x", &by_name, Deny);
        check(Mode::Default, &[&format!("+{rule}")], "x", &by_name, Ask);
    }
    check(Mode::Default, &["+mcp__wx__Danger"], "x", &danger, Allow);
}

#[test]
fn rule_that_can_mean_tools_of_two_servers_denies_both_and_allows_neither() {
    let name = |name: &str, server: &str, tool: &str| McpToolName {
        name: name.into(),
        server: server.into(),
        tool: tool.into(),
    };
    let one = mcp("mcp__a__b__c", "a", "b__c", vec![name("mcp__a_b__c", "a__b", "c")]);
    let other = mcp("mcp__a_b__c", "a__b", "c", vec![name("mcp__a__b__c", "a", "b__c")]);
    for subject in [&one, &other] {
        check(Mode::Bypass, &["-mcp__a__b__c"], "x", subject, Deny);
        check(Mode::Default, &["+mcp__a__b__c"], "x", subject, Ask);
    }
    // Without the other server the same rule has one meaning.
    check(Mode::Default, &["+mcp__a__b__c"], "x", &mcp("mcp__a__b__c", "a", "b__c", Vec::new()), Allow);
    check(Mode::Default, &["+mcp__a"], "x", &one, Allow);
    check(Mode::Default, &["+mcp__a_b"], "x", &other, Allow);
    check(Mode::Default, &["+mcp__a__b"], "x", &other, Allow);
}

#[test]
fn rules_match_agents_by_name_and_slug() {
    let task = |agent: &str| Subject::Task { agent: agent.into(), background: false, read_only: false };
    for agent in ["Code Reviewer", "code-reviewer", "Code.Reviewer"] {
        for rule in ["Task(Code Reviewer)", "Task(code-reviewer)", "Task(CODE REVIEWER)"] {
            check(Mode::Default, &[&format!("-{rule}")], "Task", &task(agent), Deny);
        }
        check(Mode::Default, &["-Task(reviewer)"], "Task", &task(agent), Allow);
    }
    check(Mode::Default, &["-Task(代码审查)"], "Task", &task("代码审查"), Deny);
}

#[test]
fn file_rules_cover_related_tools() {
    let (inside, outside) = ("/w/proj/src/a.rs", "/data/x/a.txt");
    let ordinary = PathSensitivity::Ordinary;
    check(Mode::Default, &["+Edit(src/**)"], "Write", &edit(inside, ordinary), Allow);
    check(Mode::Default, &["+Write(src/**)"], "Edit", &edit(inside, ordinary), Ask);
    check(Mode::Default, &["+Read(/data/**)"], "Grep", &read(outside, ordinary), Allow);
    check(Mode::Default, &["-Read(src/**)"], "LS", &read(inside, ordinary), Deny);
    check(Mode::Default, &["+Edit"], "Edit", &edit(outside, ordinary), Allow);
    check(Mode::Default, &["+Read"], "Edit", &edit(outside, ordinary), Ask);
    check(Mode::Default, &["+mcp__a"], "x", &Subject::Tool { name: "mcp__a__b".into() }, Allow);
    check(Mode::Default, &["+mcp__a"], "x", &Subject::Tool { name: "mcp__ab__b".into() }, Ask);
    check(Mode::Default, &["+mcp__a__b"], "x", &Subject::Tool { name: "mcp__a__b".into() }, Allow);
    check(Mode::Default, &["+mcp__a__b"], "x", &Subject::Tool { name: "mcp__a__c".into() }, Ask);
}

#[test]
fn rules_for_agents_match_sub_agents_by_name() {
    let task = |agent: &str| Subject::Task { agent: agent.into(), background: false, read_only: false };
    let rule = ["+Task(reviewer)"];
    check(Mode::Default, &rule, "Bash", &bash("ls"), Ask);
    check(Mode::Default, &rule, "Read", &read("/etc/hosts", PathSensitivity::Ordinary), Ask);
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::Plan, Mode::DontAsk, Mode::Bypass] {
        check(mode, &[], "Task", &task("reviewer"), Allow);
        check(mode, &["-Task(reviewer)"], "Task", &task("reviewer"), Deny);
        check(mode, &["-Task(reviewer)"], "Task", &task("writer"), Allow);
        check(mode, &["-Task"], "Task", &task("writer"), Deny);
    }
    check(Mode::Default, &["?Task(reviewer)"], "Task", &task("reviewer"), Ask);
    check(Mode::Bypass, &["-Task(reviewer)"], "Bash", &bash("ls"), Allow);
}

#[test]
fn web_fetch_is_judged_by_host() {
    let web = |host: &str| Subject::Web { url: format!("https://{host}/x"), host: host.into() };
    let rule = ["+WebFetch(domain:example.org)"];
    for (rules, host, expected) in [
        (&[][..], "example.org", Ask),
        (&rule, "example.org", Allow),
        (&rule, "docs.example.org", Ask),
        (&rule, "example.org.", Allow),
        (&rule, "notexample.org", Ask),
        (&rule, "example.org.evil.net", Ask),
        (&["+WebFetch(domain:Example.ORG)"], "example.org", Allow),
        (&["+WebFetch(domain:*.example.org)"], "docs.example.org", Allow),
        (&["+WebFetch(domain:*.example.org)"], "a.docs.example.org.", Allow),
        (&["+WebFetch(domain:*.example.org)"], "example.org", Ask),
        (&["+WebFetch(domain:*.example.org)"], "evilexample.org", Ask),
        (&["+WebFetch", "-WebFetch(domain:*.evil.net)"], "a.evil.net", Deny),
        (&["+WebFetch", "-WebFetch(domain:*.evil.net)"], "evil.net", Allow),
        (&["+WebFetch"], "anywhere.net", Allow),
        (&["+WebFetch", "-WebFetch(domain:evil.net)"], "a.evil.net", Deny),
        (&["+WebFetch", "?WebFetch(domain:evil.net)"], "evil.net", Ask),
        (&["+Read", "+Bash"], "example.org", Ask),
    ] {
        check(Mode::Default, rules, "WebFetch", &web(host), expected);
    }
    check(Mode::Bypass, &["-WebFetch(domain:evil.net)"], "WebFetch", &web("evil.net"), Deny);
    check(Mode::DontAsk, &[], "WebFetch", &web("example.org"), Deny);
    let verdict = check(Mode::Default, &[], "WebFetch", &web("docs.example.org"), Ask);
    assert_eq!(verdict.suggestions, ["WebFetch(domain:docs.example.org)"]);
}

#[test]
fn file_deletion_asks_despite_edit_grant() {
    let delete = |text: &str, sensitivity| Subject::Delete { path: path(text, sensitivity) };
    let (inside, ordinary) = ("/w/proj/src/a.rs", PathSensitivity::Ordinary);
    check(Mode::AcceptEdits, &["+Edit(src/**)", "+ApplyPatch"], "ApplyPatch", &delete(inside, ordinary), Ask);
    check(Mode::Default, &["+Delete(src/**)"], "ApplyPatch", &delete(inside, ordinary), Allow);
    check(Mode::Default, &["+Delete(src/**)"], "ApplyPatch", &edit(inside, ordinary), Ask);
    check(Mode::Bypass, &["-Edit(src/**)"], "ApplyPatch", &delete(inside, ordinary), Deny);
    check(Mode::Bypass, &[], "ApplyPatch", &delete("/w/proj/.git/config", PathSensitivity::Protected), Deny);
    check(Mode::Bypass, &[], "ApplyPatch", &delete(inside, ordinary), Allow);
    check(Mode::Plan, &["+Delete"], "ApplyPatch", &delete(inside, ordinary), Deny);
    check(Mode::DontAsk, &[], "ApplyPatch", &delete(inside, ordinary), Deny);
}

#[test]
fn strictest_verdict_of_several_parts_applies() {
    let part = |text: &str, sensitivity| edit(text, sensitivity);
    let several = |parts: Vec<Subject>| Subject::Several { parts };
    let (a, b) = ("/w/proj/src/a.rs", "/w/proj/docs/b.md");
    let ordinary = PathSensitivity::Ordinary;
    let both = several(vec![part(a, ordinary), part(b, ordinary)]);
    let verdict = check(Mode::Default, &["+Edit(src/**)"], "ApplyPatch", &both, Ask);
    assert!(verdict.suggestions.contains(&"Edit(docs/**)".to_owned()), "{verdict:?}");
    check(Mode::Default, &["+Edit(src/**)", "+Edit(docs/**)"], "ApplyPatch", &both, Allow);
    check(Mode::AcceptEdits, &[], "ApplyPatch", &both, Allow);
    check(Mode::AcceptEdits, &["-Edit(docs/**)"], "ApplyPatch", &both, Deny);
    let hooks = part("/w/proj/.git/hooks/x", PathSensitivity::Protected);
    check(Mode::Bypass, &[], "ApplyPatch", &several(vec![part(a, ordinary), hooks]), Deny);
    check(
        Mode::AcceptEdits,
        &[],
        "ApplyPatch",
        &several(vec![part(a, ordinary), part("/etc/x", ordinary)]),
        Ask,
    );
    check(Mode::AcceptEdits, &[], "ApplyPatch", &several(Vec::new()), Ask);
    check(Mode::Plan, &[], "ApplyPatch", &both, Deny);
    let moved = Subject::Several {
        parts: vec![Subject::Delete { path: path(a, ordinary) }, edit("/w/zz", ordinary)],
    };
    let verdict = check(Mode::AcceptEdits, &[], "ApplyPatch", &moved, Ask);
    assert_eq!(verdict.reason, "the path lies outside the workspace", "what needs more care is said");
}

#[test]
fn sensitive_file_is_allowed_by_exact_rule_only() {
    use PathSensitivity::{AutoExecuted, Protected, Secret};
    let (rc, key) = ("/home/u/.bashrc", "/home/u/.ssh/id_rsa");
    check(Mode::Default, &["+Edit(~/**)"], "Write", &edit(rc, AutoExecuted), Ask);
    check(Mode::Default, &["+Edit(~/.bashrc)"], "Write", &edit(rc, AutoExecuted), Allow);
    check(Mode::Default, &["+Read(~/**)"], "Read", &read(key, Secret), Ask);
    check(Mode::Default, &["+Read(~/.ssh/id_rsa)"], "Read", &read(key, Secret), Allow);
    check(Mode::Default, &["+Read"], "Read", &read(key, Secret), Ask);
    let hooks = "/w/proj/.git/hooks/pre-commit";
    check(Mode::Bypass, &["+Edit(.git/hooks/pre-commit)"], "Write", &edit(hooks, Protected), Deny);
}

#[test]
fn dont_ask_reason_names_missing_requests() {
    let denied = check(Mode::DontAsk, &[], "Bash", &bash("ls"), Deny);
    assert!(denied.reason.contains("never asks"), "{denied:?}");
    assert!(denied.suggestions.is_empty());
}

#[test]
fn safe_mode_asks_despite_allow_rules() {
    let rules = Rules::parse(&["Bash", "Read"], &[], &["Bash(rm:*)"]).unwrap();
    let policy =
        Policy { mode: Mode::Bypass, safe_mode: true, safe_commands: true, ..Policy::for_tests(&rules) };
    let of = |subject: Subject| judge(&policy, "Bash", &subject).verdict;
    assert_eq!(of(bash("ls")), Ask);
    assert_eq!(of(read("/w/proj/a", PathSensitivity::Ordinary)), Ask);
    assert_eq!(of(bash("rm a")), Deny);
    assert_eq!(of(edit("/w/proj/.git/config", PathSensitivity::Protected)), Deny);
}

#[test]
fn empty_command_nul_and_self_approval_are_denied() {
    check(Mode::Bypass, &["+Bash(agentctl:*)"], "Bash", &bash("agentctl approve 42"), Deny);
    check(Mode::Bypass, &[], "Bash", &bash("x=1; /usr/bin/agentctl 'approve' 42"), Deny);
    check(Mode::Bypass, &[], "Bash", &bash("agentctl ps"), Allow);
    check(Mode::Bypass, &[], "Bash", &bash("agentctl -H ssh://build approve 42"), Deny);
    check(Mode::Bypass, &[], "Bash", &bash("agentctl --host=build approve 42"), Deny);
    check(Mode::Bypass, &["+Bash"], "Bash", &bash("  "), Deny);
    check(Mode::Bypass, &["+Bash"], "Bash", &bash("ls\0"), Deny);
}

#[test]
fn verdict_parts_are_complete_but_bounded_in_size() {
    let verdict_parts = |text: &str| {
        let verdict = check(Mode::Default, &[], "Bash", &bash(text), Ask);
        let size = serde_json::to_string(&verdict).unwrap().len();
        assert!(size < 600_000, "{size} bytes for {}", text.len());
        verdict.parts
    };
    let long = format!("python3 -c '{}' && make", "x".repeat(60_000));
    let parts = verdict_parts(&long);
    assert_eq!(parts.len(), 2);
    assert_eq!(format!("{} && {}", parts[0].command, parts[1].command), long);

    let nested = verdict_parts(&format!("echo {}{}", "a".repeat(20_000), " \"$(b".repeat(7_000)));
    assert!(nested.len() > 1 && nested.last().unwrap().command.ends_with('…'), "{:?}", nested.last());
    verdict_parts(&"\"$(".repeat(20_000));
}

#[test]
fn protected_path_is_denied_after_cd() {
    let rules = Rules::parse(&["Bash"], &[], &[]).unwrap();
    for command in [
        "cd ~/.config/agentd && touch config.toml",
        "cd ~/.config && echo x > agentd/config.toml",
        "cd ~/.local/share/agentd; rm -rf x",
        "mv evil/config .git",
        "mv evil/config .git/",
        "ln -sf ../evil/config .git",
        "cp evil/config .git",
        "cd .git && cp ../evil/config .",
        "mv evil/agentd ~/.config",
    ] {
        let policy = Policy { mode: Mode::Bypass, ..Policy::for_tests(&rules) };
        assert_eq!(judge(&policy, "Bash", &bash(command)).verdict, Deny, "{command}");
    }
    for command in
        ["mv a b", "mv a b .git2", "cd ~/x && ls", "ln -s a b", "cp a ~/b", "cd ~ && touch config.toml"]
    {
        let policy = Policy { mode: Mode::Bypass, ..Policy::for_tests(&rules) };
        assert_eq!(judge(&policy, "Bash", &bash(command)).verdict, Allow, "{command}");
    }
}
