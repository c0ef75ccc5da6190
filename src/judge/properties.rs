//! Properties of the judgement, over random rules, modes and calls.

use std::path::PathBuf;

use proptest::prelude::*;

use crate::{Policy, Rule, Rules, judge};
use types::permission::{Mode, RuleKind, VerdictKind};
use types::tool::{PathSensitivity, ResolvedPath, Subject};

const WORKSPACE: &str = "/w/proj";

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![
        Just(Mode::Default),
        Just(Mode::AcceptEdits),
        Just(Mode::Plan),
        Just(Mode::DontAsk),
        Just(Mode::Bypass)
    ]
}

fn path_sensitivity() -> impl Strategy<Value = PathSensitivity> {
    prop_oneof![
        4 => Just(PathSensitivity::Ordinary),
        1 => Just(PathSensitivity::Secret),
        1 => Just(PathSensitivity::AutoExecuted),
        1 => Just(PathSensitivity::Protected)
    ]
}

fn command() -> impl Strategy<Value = String> {
    let word = prop_oneof!["npm", "git", "rm", "run", "status", "-x", "[a-z./=$;|&\"'\\\\*(){}~ é\n]{1,6}"];
    proptest::collection::vec(word, 1..6).prop_map(|words| words.join(" "))
}

/// A read-only command that may pass without a rule, with words that its program may know.
fn read_only_command() -> impl Strategy<Value = String> {
    const PROGRAMS: &[&str] = &[
        "ls",
        "cat",
        "head",
        "tail",
        "sort",
        "uniq",
        "cut",
        "tr",
        "sed",
        "grep",
        "diff",
        "find",
        "test",
        "[",
        "stat",
        "du",
        "tree",
        "date",
        "git log",
        "git diff",
        "git status",
        "git show",
        "git branch",
        "git --no-pager diff",
        "seq",
        "od",
    ];
    let word = prop_oneof![
        4 => "[a-z]{1,3}(\\.rs)?",
        2 => "-[a-zA-Z0-9]{1,3}",
        1 => "--(color|all|oneline|lines|stat|format)(=[a-z%5]{1,3})?",
        1 => "-(name|type|maxdepth|print|o)",
        1 => "[-=a-z:/é~*\\[\\]$!.5]{0,4}",
    ];
    (proptest::sample::select(PROGRAMS), proptest::collection::vec(word, 0..5))
        .prop_map(|(program, words)| format!("{program} {}", words.join(" ")))
}

fn resolved_path() -> impl Strategy<Value = ResolvedPath> {
    let part = "[a-z.!~*?\\[\\]{}\\\\() #,^-]{1,6}";
    (
        prop_oneof![Just(WORKSPACE), Just("/home/u"), Just("/opt")],
        proptest::collection::vec(part, 1..4),
        path_sensitivity(),
    )
        .prop_filter_map("dots are resolved before", |(root, parts, sensitivity)| {
            let bad = parts.iter().any(|part| part == "." || part == "..");
            let path = PathBuf::from(root).join(parts.join("/"));
            (!bad).then(|| ResolvedPath {
                in_workspace: path.starts_with(WORKSPACE),
                path,
                sensitivity,
                matched_aliases: Vec::new(),
            })
        })
}

fn call() -> impl Strategy<Value = (&'static str, Subject)> {
    prop_oneof![
        command().prop_map(|command| ("Bash", Subject::command(command))),
        resolved_path().prop_map(|path| ("Read", Subject::Read { path })),
        resolved_path().prop_map(|path| ("Write", Subject::Edit { path })),
        Just(("mcp__a__b", Subject::Tool { name: "mcp__a__b".into() })),
    ]
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let text = prop_oneof![
        Just("Bash".to_owned()),
        Just("Bash(npm:*)".to_owned()),
        Just("Bash(git status:*)".to_owned()),
        Just("Bash(rm:*)".to_owned()),
        Just("Read".to_owned()),
        Just("Read(/opt/**)".to_owned()),
        Just("Edit(**)".to_owned()),
        Just("Edit(~/**)".to_owned()),
        Just("mcp__a".to_owned()),
        command().prop_map(|command| format!("Bash({command})")),
    ];
    proptest::collection::vec(text, 0..4)
        .prop_map(|texts| texts.iter().filter_map(|text| text.parse().ok()).collect())
}

fn policy<'a>(mode: Mode, rules: &'a Rules, grants: &'a [Rule]) -> Policy<'a> {
    Policy { mode, grants, ..Policy::for_tests(rules) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn denied_call_stays_denied_with_any_grant(
        mode in mode(), deny in rules(), allow in rules(), grants in rules(), (tool, subject) in call(),
    ) {
        let alone = Rules { deny: deny.clone(), ..Rules::default() };
        if judge(&policy(Mode::Bypass, &alone, &[]), tool, &subject).verdict == VerdictKind::Deny {
            let rules = Rules { deny, allow, ..Rules::default() };
            let got = judge(&policy(mode, &rules, &grants), tool, &subject);
            prop_assert_eq!(got.verdict, VerdictKind::Deny, "{:?}", got);
        }
    }

    #[test]
    fn unknown_option_is_never_allowed(line in read_only_command(), option in "-(-[a-z]{2,3}-[a-z]{2}|[JKYé])") {
        let rules = Rules::default();
        let policy = Policy { safe_commands: true, ..policy(Mode::Default, &rules, &[]) };
        let verdict = |line: &str| judge(&policy, "Bash", &Subject::command(line.to_owned())).verdict;
        if verdict(&line) == VerdictKind::Allow {
            let more = format!("{line} {option}");
            prop_assert_ne!(verdict(&more), VerdictKind::Allow, "{}", more);
        }
    }

    #[test]
    fn protected_path_write_is_denied_in_every_mode(
        mode in mode(), allow in rules(), grants in rules(), mut path in resolved_path(),
    ) {
        path.sensitivity = PathSensitivity::Protected;
        let own = format!("Edit({})", path.path.display()).parse::<Rule>();
        let rules = Rules { allow: allow.into_iter().chain(own.ok()).collect(), ..Rules::default() };
        let got = judge(&policy(mode, &rules, &grants), "Edit", &Subject::Edit { path });
        prop_assert_eq!(got.verdict, VerdictKind::Deny);
    }

    #[test]
    fn prefix_grant_never_allows_substitution_or_invisible_character(
        head in "npm( [a-z]{0,4}){0,2}", special in "[`\\x01-\\x08\\x0b-\\x1f\\x7f\u{200b}\u{202e}\u{a0}]", tail in "[ -~]{0,10}",
    ) {
        let rules = Rules::parse(&["Bash(npm:*)"], &[], &[]).unwrap();
        let subject = Subject::command(format!("{head}{special}{tail}"));
        let got = judge(&policy(Mode::Default, &rules, &[]), "Bash", &subject);
        prop_assert_ne!(got.verdict, VerdictKind::Allow, "{:?}", got);
    }

    #[test]
    fn granted_suggestion_allows_same_call(
        mode in mode(), base in rules(), ask in rules(), (tool, subject) in call(),
    ) {
        let rules = Rules { deny: base, ask, ..Rules::default() };
        let got = judge(&policy(mode, &rules, &[]), tool, &subject);
        if got.verdict != VerdictKind::Ask {
            prop_assert!(got.suggestions.is_empty());
        }
        for suggestion in got.suggestions {
            let rule = Rule::in_list(RuleKind::Allow, &suggestion).unwrap();
            prop_assert_eq!(rule.to_string(), suggestion.clone());
            let again = judge(&policy(mode, &rules, &[rule]), tool, &subject);
            prop_assert_eq!(again.verdict, VerdictKind::Allow, "{}", suggestion);
        }
    }

    #[test]
    fn ordinary_call_that_asks_has_suggestion(path in resolved_path()) {
        prop_assume!(path.sensitivity != PathSensitivity::Protected);
        let rules = Rules::default();
        let got = judge(&policy(Mode::Default, &rules, &[]), "Edit", &Subject::Edit { path });
        prop_assert_eq!(got.verdict, VerdictKind::Ask);
        prop_assert!(!got.suggestions.is_empty(), "{:?}", got);
    }

    #[test]
    fn kept_text_of_written_rule_has_same_meaning(
        text in prop_oneof![
            command().prop_map(|command| format!("Bash({command})")),
            command().prop_map(|command| format!("bash({command} *)")),
            "(Read|edit|Bash)\\([ a-z*:'\"\\\\~$/.\\[\\]{}|&;]{1,12}\\)",
            "\\PC{0,30}",
        ],
    ) {
        if let Ok(rule) = text.parse::<Rule>() {
            let kept = rule.to_string();
            prop_assert_eq!(&kept.parse::<Rule>().unwrap().to_string(), &kept);
            prop_assert_eq!(Rule::stored(&kept).unwrap().to_string(), kept);
        }
    }
}
