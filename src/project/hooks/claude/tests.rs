//! Settings as people write them, in the manner of public repositories.

use std::path::PathBuf;

use super::*;
use crate::hooks::{OnFailure, read_hook_file};

fn read_text(text: &str) -> HookFile {
    read_bytes(text.as_bytes())
}

fn read_bytes(bytes: &[u8]) -> HookFile {
    read_hook_file(&PathBuf::from(".claude/settings.json"), bytes)
}

/// The hooks as `Event/matcher/command`.
fn listed(file: &HookFile) -> Vec<String> {
    let hook =
        |hook: &crate::hooks::Hook| format!("{}/{}/{}", hook.event.name(), hook.matcher(), hook.command);
    file.hooks.iter().map(hook).collect()
}

/// The tools whose calls ask because of a problem.
fn asking(file: &HookFile, on_failure: OnFailure) -> Vec<&'static str> {
    let asks = |tool: &&str| file.problems.iter().any(|problem| problem.asks(on_failure, tool, None));
    ["Bash", "Read", "Write", "mcp__db__query"].into_iter().filter(asks).collect()
}

const ALL: [&str; 4] = ["Bash", "Read", "Write", "mcp__db__query"];

#[test]
fn settings_in_the_manner_of_public_ones_give_their_hooks() {
    for (text, hooks) in [
        // Formatting after edits, with the schema and permissions around it.
        (
            r#"{"$schema": "https://json.schemastore.org/claude-code-settings.json",
                "permissions": {"allow": ["Bash(npm run lint)"], "deny": []}, "env": {"A": "1"},
                "hooks": {"PostToolUse": [{"matcher": "Edit|MultiEdit|Write", "hooks": [
                    {"type": "command", "command": "jq -r .tool_input.file_path | xargs npx prettier --write"}]}]}}"#,
            &["post_tool_use/Edit|MultiEdit|Write/jq -r .tool_input.file_path | xargs npx prettier --write"]
                [..],
        ),
        // A guard with comments and a trailing comma.
        (
            "{\n  // keep secrets\n  \"hooks\": {\n    \"PreToolUse\": [\n      { \"matcher\": \"Read|Edit|Write\",\n\
             \"hooks\": [ { \"type\": \"command\", \"command\": \"$CLAUDE_PROJECT_DIR/.claude/guard.sh\", }, ], },\n    ],\n  },\n}",
            &["pre_tool_use/Read|Edit|Write/$CLAUDE_PROJECT_DIR/.claude/guard.sh"],
        ),
        // Several events without matchers, a timeout as text, keys that only inform.
        (
            r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "npm test", "timeout": "120"}]}],
                "Notification": [{"matcher": "", "hooks": [{"type": "command", "command": "notify-send", "once": true}]}],
                "SessionStart": [{"matcher": "startup|resume", "hooks": [{"command": "cat NOTES.md"}]}]}}"#,
            &["stop/*/npm test", "notification/*/notify-send", "session_start/startup|resume/cat NOTES.md"],
        ),
        // Objects where lists are usual.
        (
            r#"{"hooks": {"PreToolUse": {"matcher": "Bash", "hooks": {"type": "command", "command": "a"}},
                "PostToolUse": [{"type": "command", "command": "b", "matcher": "Write"}],
                "UserPromptSubmit": {"command": "c"}}}"#,
            &["pre_tool_use/Bash/a", "post_tool_use/Write/b", "user_prompt_submit/*/c"],
        ),
        // A negative look-ahead, and a matcher as a list.
        (
            r#"{"hooks": {"PreToolUse": [{"matcher": "^(?!Read$).*", "hooks": [{"type": "command", "command": "a"}]},
                {"matcher": ["Edit", "Write"], "hooks": [{"type": "Command", "command": "b", "args": ["it's", "x"]}]}]}}"#,
            &["pre_tool_use/^(?!Read$).*/a", "pre_tool_use/Edit|Write/'b' 'it'\\''s' 'x'"],
        ),
        // An event twice: both count.
        (
            r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}],
                "Stop": [{"hooks": [{"type": "command", "command": "b"}]}], "pre_tool_use": null}}"#,
            &["stop/*/a", "stop/*/b"],
        ),
        (r#"{"hooks": {}}"#, &[]),
        (r#"{"hooks": null, "model": "opus"}"#, &[]),
        (r#"{"hooks": []}"#, &[]),
        (r#"{"hooks": {"PreToolUse": [], "Stop": [{"matcher": "*", "hooks": []}]}}"#, &[]),
        (r#"{"disableAllHooks": true, "hooks": {"Stop": [{"hooks": [{"command": "a"}]}]}}"#, &[]),
        ("", &[]),
        ("{}\n", &[]),
    ] {
        let file = read_text(text);
        assert_eq!(listed(&file), hooks, "{text}");
        assert!(file.problems.is_empty(), "{text}: {:?}", file.problems);
    }
}

#[test]
fn rules_that_the_daemon_does_not_read_are_shown_and_no_call_asks() {
    let file = read_text(
        "{\n\"permissions\": {\"allow\": [\"Bash(make)\"],\n\"deny\": [\"Read(./.env)\"],\n\"ask\": \"Bash(git push:*)\"},\n\
         \"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"a\"}]}]}}",
    );
    assert_eq!(listed(&file), ["stop/*/a"]);
    let shown: Vec<(usize, &str)> = file
        .problems
        .iter()
        .map(|problem| (problem.line, problem.reason.split(':').next().unwrap_or("")))
        .collect();
    assert_eq!(shown, [(3, "permissions.deny"), (4, "permissions.ask")]);
    assert_eq!(asking(&file, OnFailure::Ask), [""; 0]);
    assert!(file.problems[1].reason.contains("agentctl rules add --ask RULE"), "{:?}", file.problems);
}

#[test]
fn encodings_of_editors_are_read() {
    let text = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "echo prüfe"}]}]}}"#;
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let latin: Vec<u8> = text.chars().map(|c| c as u8).collect();
    for bytes in [
        text.as_bytes().to_vec(),
        [b"\xEF\xBB\xBF".as_slice(), text.as_bytes()].concat(),
        [b"\xFF\xFE".as_slice(), &little].concat(),
        [b"\xFE\xFF".as_slice(), &big].concat(),
        little,
        big,
        latin,
    ] {
        let file = read_bytes(&bytes);
        assert_eq!(listed(&file), ["stop/*/echo prüfe"], "{:?}", file.problems);
    }
}

#[test]
fn wrong_entry_concerns_itself_alone_and_its_calls_ask() {
    let good = r#"{"matcher": "Bash", "hooks": [{"type": "command", "command": "good"}]}"#;
    for (entry, tools) in [
        (r#"{"matcher": "(", "hooks": [{"command": "x"}]}"#, &ALL[..]),
        (r#"{"matcher": 5, "hooks": [{"command": "x"}]}"#, &ALL),
        (r#"{"matcher": {"tools": ["Write"]}, "hooks": [{"command": "x"}]}"#, &ALL),
        (r#"{"matcher": "Write", "hooks": [{"type": "command"}]}"#, &["Write"]),
        (r#"{"matcher": "Write", "hooks": [{"type": "command", "command": ["a", "b"]}]}"#, &["Write"]),
        (r#"{"matcher": "Write", "hooks": [{"type": "command", "command": " "}]}"#, &["Write"]),
        (r#"{"matcher": "Write", "hooks": ["./guard.sh"]}"#, &["Write"]),
        (r#"{"matcher": "Write", "hooks": [{"type": "wasm", "command": "x"}]}"#, &["Write"]),
        (r#"{"matcher": "Write", "hooks": [{"type": 1, "command": "x"}]}"#, &["Write"]),
        (r#"{"matcher": "^mcp__", "hooks": "guard"}"#, &["mcp__db__query"]),
        (r#"{"matcher": "Write"}"#, &["Write"]),
        (r#""./guard.sh""#, &ALL),
        (r#"{"matcher": "Write", "hooks": [{"command": "\ud83d"}]}"#, &["Write"]),
        (r#"{"matcher": "\ud83d", "hooks": [{"command": "x"}]}"#, &ALL),
        (r#"{"matcher": "Bash(echo:*)", "hooks": [{"command": "x"}]}"#, &ALL),
        ("true", &ALL),
    ] {
        let text = format!(
            "{{\"hooks\": {{\n\"PreToolUse\": [{good},\n{entry}],\n\"Stop\": [{{\"hooks\": [{{\"command\": \"end\"}}]}}]}}}}"
        );
        let file = read_text(&text);
        assert_eq!(listed(&file), ["pre_tool_use/Bash/good", "stop/*/end"], "{entry}");
        // Allowed failures do not excuse what is not understood.
        assert_eq!(asking(&file, OnFailure::Allow), tools, "{entry}: {:?}", file.problems);
        let shown = file.problems[0].to_string();
        assert!(shown.starts_with(".claude/settings.json, line 3: hooks.PreToolUse: "), "{shown}");
        // The same mistake in another event is only shown.
        let file = read_text(&format!("{{\"hooks\": {{\"PostToolUse\": [{entry}]}}}}"));
        assert_eq!((asking(&file, OnFailure::Ask), file.problems.len()), (vec![], 1), "{entry}");
    }
}

#[test]
fn unreadable_file_makes_every_call_ask() {
    for text in [
        "{",
        "[]",
        "\"hooks\"",
        "{\"hooks\": {\"PreToolUse\": [}}",
        "{\"hooks\": \"guard.sh\"}",
        "{\"hooks\": [{\"event\": \"PreToolUse\"}]}",
        "hooks:\n  PreToolUse: []",
        "{\"a\": 1} {\"hooks\": {}}",
        "{'hooks': {}}",
    ] {
        let file = read_text(text);
        assert_eq!(asking(&file, OnFailure::Allow), ALL, "{text}");
        assert!(file.problems[0].to_string().starts_with(".claude/settings.json: "), "{text}");
    }
    assert_eq!(asking(&read_bytes(b"\xFF\xFE{\0\x00\xD8"), OnFailure::Allow), ALL);
}

#[test]
fn kinds_that_are_not_built_and_unknown_events_are_shown() {
    for kind in ["prompt", "agent", "http", "HTTP"] {
        let text = format!(
            "{{\"hooks\": {{\"PreToolUse\": [{{\"matcher\": \"Bash\", \"hooks\": [{{\"type\": \"{kind}\", \"prompt\": \"x\"}}]}}]}}}}"
        );
        let file = read_text(&text);
        assert_eq!(asking(&file, OnFailure::Ask), ["Bash"], "{kind}");
        assert_eq!(asking(&file, OnFailure::Allow), [""; 0], "{kind}");
        assert!(file.problems[0].reason.contains("not built"), "{kind}: {:?}", file.problems);
        let file = read_text(&text.replace("PreToolUse", "Stop"));
        assert_eq!((asking(&file, OnFailure::Ask), file.problems.len()), (vec![], 1), "{kind}");
    }
    for event in ["SubagentStart", "PermissionRequest", "SessionEnd", "BeforeTool"] {
        let file =
            read_text(&format!("{{\"hooks\": {{\"{event}\": [{{\"hooks\": [{{\"command\": \"x\"}}]}}]}}}}"));
        assert_eq!((asking(&file, OnFailure::Ask), file.problems.len()), (vec![], 1), "{event}");
        assert!(file.problems[0].reason.contains(event), "{:?}", file.problems);
    }
}

#[test]
fn timeouts_conditions_and_async_are_read() {
    let hook = |fields: &str| {
        let file = read_text(&format!("{{\"hooks\": {{\"PreToolUse\": {{\"command\": \"x\", {fields}}}}}}}"));
        assert_eq!(file.hooks.len(), 1, "{fields}: {:?}", file.problems);
        (file.hooks[0].timeout, file.hooks[0].is_async, file.problems.len())
    };
    let secs = Duration::from_secs;
    for (fields, expected) in [
        (r#""timeout": 5"#, (secs(5), false, 0)),
        (r#""timeout": 2.5"#, (Duration::from_millis(2_500), false, 0)),
        (r#""timeout": "60""#, (secs(60), false, 0)),
        (r#""timeout": " 30s ""#, (secs(30), false, 0)),
        (r#""timeout": "soon""#, (secs(60), false, 1)),
        (r#""timeout": -1"#, (secs(60), false, 1)),
        (r#""timeout": [5]"#, (secs(60), false, 1)),
        (r#""timeout": 600000"#, (secs(600), false, 0)),
        (r#""async": true"#, (secs(60), true, 0)),
        (r#""async": "true""#, (secs(60), true, 0)),
        (r#""async": false"#, (secs(60), false, 0)),
        (r#""if": "Bash(git *)""#, (secs(60), false, 0)),
        (r#""if": "Bash(git""#, (secs(60), false, 1)),
        (r#""if": ["Bash"]"#, (secs(60), false, 1)),
    ] {
        assert_eq!(hook(fields), expected, "{fields}");
    }
}

#[test]
fn file_with_too_many_mistakes_still_makes_their_calls_ask() {
    let entries =
        "{\"matcher\": \"Write\", \"hooks\": [1]},".repeat(200) + "{\"matcher\": \"Bash\", \"hooks\": [1]}";
    let file = read_text(&format!("{{\"hooks\": {{\"PreToolUse\": [{entries}]}}}}"));
    assert!(file.problems.len() <= 51);
    assert_eq!(asking(&file, OnFailure::Allow), ALL);
}

#[test]
fn value_that_does_not_exist_concerns_its_key_alone() {
    let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
    for odd in [r#""\ud83d""#, "1e999", deep.as_str()] {
        let text = format!(
            r#"{{"Hooks": {{"PreToolUse": [{{"hooks": [{{"command": "good", "timeout": {odd}, "statusMessage": {odd}}}]}}]}}}}"#
        );
        let file = read_text(&text);
        assert_eq!(listed(&file), ["pre_tool_use/*/good"], "{odd:.20}: {:?}", file.problems);
        assert_eq!(file.problems.len(), 2, "{odd:.20}");
    }
}

#[test]
fn file_of_many_empty_entries_is_read_in_linear_time() {
    let entries = vec!["{}"; 60_000].join(",\n");
    let file = read_text(&format!("{{\"hooks\": {{\"PreToolUse\": [{entries}]}}}}"));
    assert_eq!(file.problems.len(), 51);
    assert_eq!(asking(&file, OnFailure::Allow), ALL);
}
