//! Command files in the forms that people write.

use std::path::Path;

use super::*;
use crate::extensions::commands::parse;
use crate::extensions::{ExtensionSource, MarkdownFile};

fn load(text: &str) -> CustomCommand {
    let file = MarkdownFile { path: Path::new("x.md").into(), name: vec!["x".into()], text: text.into() };
    parse(vec![file], ExtensionSource::User).0.pop().expect("a command")
}

fn expand(body: &str, arguments: &str) -> Expansion {
    load(body).expand(arguments, &|path| path.starts_with("src/") || path == "my file.md").expect("short")
}

/// The expansion with `[run: …]` and `[file: …]` for its parts.
fn shown(body: &str, arguments: &str) -> String {
    let show = |part: &CommandPart| match part {
        CommandPart::Text { text } => text.clone(),
        CommandPart::Output { command } => format!("[run: {command}]"),
        CommandPart::File { path } => format!("[file: {path}]"),
    };
    expand(body, arguments).parts.iter().map(show).collect()
}

#[test]
fn arguments_are_put_in_or_appended() {
    for (body, arguments, expected) in [
        ("Fix $ARGUMENTS now", "a  b", "Fix a  b now"),
        ("$1, $2, $3.", "one 'two three'", "one, two three, ."),
        ("$0 and $1, $2", "one two", "one and one, two"),
        ("$ARGUMENTS[0], $ARGUMENTS[1], $ARGUMENTS[9].", "one two", "one, two, ."),
        ("${1} ${ARGUMENTS} ${x}", "one two", "one one two ${x}"),
        ("Cost: $10, $1.50, $2,000 and $x", "", "Cost: $10, $1.50, $2,000 and $x"),
        ("Do it.", "in src", "Do it.\n\nArguments: in src"),
        ("Do it for $10.", "in src", "Do it for $10.\n\nArguments: in src"),
        ("Do it.", "", "Do it."),
        ("$ARGUMENTS", "$1 $ARGUMENTS", "$1 $ARGUMENTS"),
        ("$ARGUMENTS", "first\nsecond line", "first\nsecond line"),
        ("$1|$2", "a\nb", "a|b"),
        ("$1|$2", "don't stop", "don't|stop"),
        ("\\$1 and \\$ARGUMENTS, $1", "x", "$1 and $ARGUMENTS, x"),
        ("$ARGUMENTSX $ARGUMENTS_LIST", "x", "$ARGUMENTSX $ARGUMENTS_LIST\n\nArguments: x"),
        ("用 $1 测试", "文件", "用 文件 测试"),
    ] {
        assert_eq!(shown(body, arguments), expected, "{body}");
    }
    let many = load(&"$ARGUMENTS ".repeat(2_000));
    assert!(many.expand(&"x".repeat(10_000), &|_| false).is_err());
}

#[test]
fn named_arguments_are_put_in_by_place_or_name() {
    for (body, arguments, expected) in [
        ("---\narguments: [issue, branch]\n---\nFix $issue on $branch", "7 main", "Fix 7 on main"),
        ("---\narguments: issue branch\n---\nFix $issue on $branch.", "7 main", "Fix 7 on main."),
        ("---\narguments:\n  - name: issue\n    description: x\n---\n$issue-x $issues", "7", "7-x $issues"),
        ("---\narguments: [issue, branch]\n---\n$branch:$issue", "branch=main 7", "main:7"),
        ("Review $FILE as $ROLE", "FILE=src/a.rs ROLE=\"a tester\"", "Review src/a.rs as a tester"),
        ("Use $HOME and $PATH", "x", "Use $HOME and $PATH\n\nArguments: x"),
    ] {
        assert_eq!(shown(body, arguments), expected, "{body}");
    }
}

#[test]
fn fenced_code_keeps_variables_of_programs() {
    for (body, arguments, expected) in [
        ("```sh\nawk '{print $2}' $ARGUMENTS\n```\n$2", "a b", "```sh\nawk '{print $2}' a b\n```\nb"),
        ("~~~\n$1 $0\n~~~\n$1", "a", "~~~\n$1 $0\n~~~\na"),
        ("````\n```\n$1\n```\n````\n$1", "a", "````\n```\n$1\n```\n````\na"),
        ("```\n!`date` @src/a.rs\n```", "", "```\n!`date` @src/a.rs\n```"),
        ("```\n$1", "a", "```\n$1\n\nArguments: a"),
    ] {
        assert_eq!(shown(body, arguments), expected, "{body}");
    }
}

#[test]
fn commands_are_found_before_arguments_are_put_in() {
    for (body, arguments, expected) in [
        ("Branch: !`git branch --show-current`", "", "Branch: [run: git branch --show-current]"),
        ("!`git log -1 $1` end", "x", "[run: git log -1 x] end"),
        ("!`gh pr view $ARGUMENTS`", "7; rm x", "[run: gh pr view 7; rm x]"),
        ("- **x**: !`date`", "", "- **x**: [run: date]"),
        ("(!`a`, !`b`)", "", "([run: a], [run: b])"),
        ("!`ps | awk '{print $2}' | grep $1`", "sh", "[run: ps | awk '{print $2}' | grep sh]"),
        ("!`git log --grep='$1'`", "x", "[run: git log --grep='x']"),
        ("```!\ngit status\ngit log -n $1\n```\nend", "3", "[run: git status\ngit log -n 3]\nend"),
        // An argument is text.
        ("Do $ARGUMENTS", "!`date` @src/a.rs", "Do !`date` @src/a.rs"),
        ("Do $1", "!`date`", "Do !`date`"),
        ("!`echo $1`", "`date`", "[run: echo `date`]"),
        // Code in a line that shows the form.
        ("Write `` !`date` `` for the date", "", "Write `` !`date` `` for the date"),
        ("Write `!` and `date`", "", "Write `!` and `date`"),
        ("Stop!`x`", "", "Stop!`x`"),
        ("!`` and !` ` and !`open", "", "!`` and !` ` and !`open"),
    ] {
        assert_eq!(shown(body, arguments), expected, "{body}");
        let has_calls = expected.contains("[run");
        assert_eq!(expand(body, arguments).has_calls(), has_calls, "{body}");
    }
    let many = load(&"!`a` ".repeat(60));
    assert!(many.expand("", &|_| false).expect_err("too many").contains("more than 50"));
}

#[test]
fn files_that_exist_are_found_and_other_words_are_text() {
    for (body, arguments, expected) in [
        ("Read @src/a.rs.", "", "Read [file: src/a.rs]."),
        ("Read (@src/a.rs), @src/b.rs", "", "Read ([file: src/a.rs]), [file: src/b.rs]"),
        ("Read @$1 and @src/$2", "src/a.rs b.rs", "Read [file: src/a.rs] and [file: src/b.rs]"),
        ("Read @$ARGUMENTS", "my file.md", "Read [file: my file.md]"),
        ("Read @\"my file.md\"!", "", "Read [file: my file.md]!"),
        ("Ask a@src/b.rs, @types/node, @me", "", "Ask a@src/b.rs, @types/node, @me"),
        ("Read @$1", "gone.rs", "Read @gone.rs"),
        ("Use `@src/a.rs`", "", "Use `@src/a.rs`"),
    ] {
        assert_eq!(shown(body, arguments), expected, "{body}");
    }
}

#[test]
fn skill_is_text_without_commands_and_files() {
    let skill = CustomCommand { is_skill: true, ..load("Run !`date` on @src/a.rs for $1\n```!\ndate\n```") };
    let expansion = skill.expand("x", &|_| true).expect("short");
    assert_eq!(expansion.text(), "Run !`date` on @src/a.rs for x\n```!\ndate\n```");
    assert!(!expansion.has_calls());
}

proptest::proptest! {
    /// No text of a file or of a user causes any failure of the parser or the expansion other than an error, and a text
    /// without places stays as it is.
    #[test]
    fn any_file_and_arguments_are_expanded_or_refused(
        text in "(---\n[ a-z:\\-\\[\\]{}&*'\"|>\n]{0,80}\n---\n)?[ a-z$0-9A-Zé!@`~'\"{\\[\\]}\n]{0,80}",
        arguments in "[ a-z='\"`$é1\n]{0,40}",
    ) {
        let file = MarkdownFile { path: "x.md".into(), name: vec!["x".into()], text: text.clone() };
        for command in parse(vec![file], ExtensionSource::User).0 {
            let expansion = command.expand(&arguments, &|path| path.len() % 2 == 0).expect("short");
            let is_split = |pair: &[CommandPart]| {
                matches!(pair, [CommandPart::Text { .. }, CommandPart::Text { .. }])
            };
            let has_split_text = expansion.parts.windows(2).any(is_split);
            proptest::prop_assert!(!has_split_text);
            if !text.contains(['$', '!', '@']) && arguments.is_empty() {
                let text = expansion.text();
                proptest::prop_assert_eq!(text.trim(), command.body.trim());
            }
        }
    }
}
