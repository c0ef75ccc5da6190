//! Files of agents in the forms that public collections have.

use super::*;

const TOOLS: [&str; 22] = [
    "Bash",
    "BashOutput",
    "KillBash",
    "Read",
    "Write",
    "Edit",
    "MultiEdit",
    "ApplyPatch",
    "NotebookEdit",
    "Glob",
    "Grep",
    "LS",
    "WebFetch",
    "Task",
    "TodoWrite",
    "TodoRead",
    "AskUser",
    "ExitPlanMode",
    "Skill",
    "Memory",
    "KnowledgeSearch",
    "ToolSearch",
];

fn file(name: &str, text: &str) -> MarkdownFile {
    MarkdownFile { path: format!("a/{name}.md").into(), name: vec![name.into()], text: text.into() }
}

fn load_files(files: Vec<MarkdownFile>) -> (Vec<Agent>, Vec<Diagnostic>) {
    let tools: Vec<String> = TOOLS.map(str::to_owned).to_vec();
    parse(files, ExtensionSource::Project, &tools)
}

fn load(text: &str) -> (Option<Agent>, Vec<String>) {
    let (mut agents, diagnostics) = load_files(vec![file("review", text)]);
    (agents.pop(), diagnostics.into_iter().map(|it| it.message).collect())
}

/// The agent with this front matter, and its diagnostics.
fn with(front: &str) -> (Option<Agent>, Vec<String>) {
    load(&format!("---\nname: x\ndescription: y\n{front}\n---\nDo it."))
}

fn accepted(front: &str) -> Agent {
    let (agent, diagnostics) = with(front);
    agent.unwrap_or_else(|| panic!("{front}: {diagnostics:?}"))
}

#[test]
fn agent_file_gives_name_tools_and_prompt() {
    let text = "---\nname: code-reviewer\ndescription: Reviews.\\nUse after changes.\ntools: Read, Grep\n\
                model_name: quick\ncolor: red\n---\n\nYou review code.\n";
    let (agent, diagnostics) = load(text);
    let agent = agent.expect("right");
    assert_eq!((agent.name.as_str(), agent.slug.as_str()), ("code-reviewer", "code-reviewer"));
    assert_eq!(agent.description, "Reviews.\nUse after changes.");
    assert_eq!(agent.tools, Some(vec!["Read".to_owned(), "Grep".to_owned()]));
    assert_eq!(agent.model_name.as_deref(), Some("quick"));
    assert_eq!((agent.color.as_deref(), agent.prompt.as_str()), (Some("red"), "You review code."));
    assert!(agent.is_read_only());
    assert_eq!(diagnostics, Vec::<String>::new());
}

#[test]
fn lists_of_tools_are_read_as_people_write_them() {
    let all: Option<&[&str]> = None;
    for (front, expected) in [
        ("", all),
        ("tools: \"*\"", all),
        ("tools: *", all),
        ("tools: ['*']", all),
        ("tools:\n  - *", all),
        ("tools: All tools", all),
        ("tools: inherit", all),
        ("tools:", Some(&[])),
        ("tools: []", Some(&[])),
        ("tools: \"\"", Some(&[])),
        ("tools: none", Some(&[])),
        ("tools: Read, Grep", Some(&["Read", "Grep"])),
        ("tools: Read Grep Glob", Some(&["Read", "Grep", "Glob"])),
        ("tools: read, GREP", Some(&["Read", "Grep"])),
        ("tools: todo_write, multi-edit", Some(&["TodoWrite", "MultiEdit"])),
        ("Tools: Read", Some(&["Read"])),
        ("tools:\n  - Bash\n  - Read", Some(&["Bash", "Read"])),
        ("tools:\n\t- Bash", Some(&["Bash"])),
        ("tools: [Read, Grep]", Some(&["Read", "Grep"])),
        ("tools: Read,Read , read", Some(&["Read"])),
        ("tools: Agent, AskUserQuestion, KillShell", Some(&["Task", "AskUser", "KillBash"])),
        ("tools: Bash(git:*)", Some(&["Bash(git:*)"])),
        (
            "tools: Bash(git status:*), Bash(npm run test), Read",
            Some(&["Bash(git status:*)", "Bash(npm run test)", "Read"]),
        ),
        ("tools: Bash(*), Read", Some(&["Bash", "Read"])),
        ("tools: Agent(worker, researcher)", Some(&["Task(worker)", "Task(researcher)"])),
        ("tools: mcp__x__*, Read", Some(&["mcp__x__*", "Read"])),
        ("tools: mcp__x", Some(&["mcp__x"])),
        ("tools: mcp__wx__获取天气", Some(&["mcp__wx__获取天气"])),
        ("tools: Read, Frobnicate", Some(&["Read"])),
        ("tools: Read, WebSearch", Some(&["Read"])),
        ("tools: Read, Write, and Bash", Some(&["Read", "Write", "Bash"])),
        ("tools: Read, Skill(pdf)", Some(&["Read"])),
        ("tools: [codebase, search/usages, web/fetch]", Some(&["Read", "Grep", "Glob", "WebFetch"])),
        ("tools: ['edit/editFiles', 'runCommands']", Some(&["Edit", "Write", "Bash"])),
        ("tools: [problems, search/changes, read]", Some(&["Read"])),
        ("tools: [read, 'github/*']", Some(&["Read", "mcp__github"])),
        ("tools: [db/execute, db/search]", Some(&["mcp__db__execute", "mcp__db__search"])),
        ("tools: [multi/edit, read]", Some(&["mcp__multi__edit", "Read"])),
        ("tools: [memory/*, Edit(src/**)]", Some(&["mcp__memory", "Edit(src/**)"])),
        ("tools: [search/execute, read/write, Grep]", Some(&["Grep"])),
        ("tools: [a/b/c, a__b/c, '*/x', Glob/Grep, Grep]", Some(&["Grep"])),
        ("tools: ['search/*', execute/runInTerminal]", Some(&["Read", "Grep", "Glob", "Bash"])),
        ("tools: [read/readFile, edit/editNotebook]", Some(&["Read", "NotebookEdit"])),
        ("tools: Read, Bash(git | x:*)", Some(&["Read"])),
        ("tools:\n  write: false\n  edit: false", all),
        ("tools:\n  \"*\": false\n  read: true", Some(&["Read"])),
        ("tools: Read, Bash\ndisallowedTools: Bash", Some(&["Read"])),
        ("tools: Read, Bash\nallowed_tools: [Bash, Grep]", Some(&["Bash"])),
        ("tools: Read, Bash\ntools: Bash, Write", Some(&["Bash"])),
        ("readonly: true\ntools: Read, Write", Some(&["Read"])),
    ] {
        let agent = accepted(front);
        let tools: Option<Vec<&str>> = agent.tools.as_ref().map(|it| it.iter().map(String::as_str).collect());
        let sorted = |mut list: Vec<String>| {
            list.sort();
            list
        };
        let texts = |list: &[&str]| sorted(list.iter().map(|it| (*it).to_owned()).collect());
        assert_eq!(tools.as_deref().map(texts), expected.map(texts), "{front}");
    }
}

#[test]
fn denied_tools_are_not_offered() {
    for (front, expected) in [
        ("disallowedTools: Write, Edit", &["Write", "Edit", "MultiEdit", "ApplyPatch", "NotebookEdit"][..]),
        ("disallowedTools: [bash]", &["Bash"]),
        ("disallowedTools:\n  - WebFetch", &["WebFetch"]),
        ("disallowedTools: Bash WebFetch", &["Bash", "WebFetch"]),
        ("disallowed_tools: Bash", &["Bash"]),
        ("disallowed-tools: Bash", &["Bash"]),
        ("denied_tools: Bash", &["Bash"]),
        ("tools-deny: [Bash]", &["Bash"]),
        ("excludeTools: Bash", &["Bash"]),
        ("forbidden-tools: Bash", &["Bash"]),
        ("disallowedTools: mcp__x", &["mcp__x"]),
        ("disallowedTools: mcp__x__*", &["mcp__x__*"]),
        ("tools: {bash: false, read: true}", &["Bash"]),
        ("disabledTools: {bash: true, read: false}", &["Bash"]),
        ("permission: {bash: deny, read: allow}", &["Bash"]),
        ("permissions: {deny: [Bash], allow: [Write]}", &["Bash"]),
        ("bash: false", &["Bash"]),
        ("capabilities:\n  restricted_tools: [Bash]\n  max_file_operations: 5", &["Bash"]),
        ("disallowedTools: WebSearch, Bash", &["Bash"]),
        ("disallowedTools: runCommands, problems", &["Bash"]),
        ("disallowedTools: [srv/think, srv/fetch]", &["mcp__srv__think", "mcp__srv__fetch"]),
        ("disallowedTools: ['srv/*', db/execute]", &["mcp__srv", "mcp__db__execute"]),
        ("disallowedTools: [web/fetch, search/changes]", &["WebFetch"]),
        ("disallowedTools: 'execute/*'", &["Bash"]),
        ("disallowedTools: 'edit/*'", &["Write", "Edit", "MultiEdit", "ApplyPatch", "NotebookEdit"]),
        ("tools: {db/execute: false}", &["mcp__db__execute"]),
        ("execute: false", &["Bash"]),
        ("bash: no", &["Bash"]),
        ("features:\n  terminal: false", &["Bash"]),
        ("disallowedTools:", &[]),
    ] {
        let agent = accepted(front);
        let choice = agent.tool_choice();
        for tool in TOOLS {
            assert_eq!(choice.offers(tool), !expected.contains(&tool), "{front}: {tool}");
        }
        for name in expected {
            assert!(agent.denied_tools.iter().any(|denied| denied == name), "{front}: {agent:?}");
            assert!(!agent.restrictions.tools.iter().all(|choice| choice.offers(name)), "{front}");
        }
    }
    let agent = accepted("disallowedTools: Bash(git push:*), Write(secret/**)");
    assert_eq!(agent.restrictions.deny, ["Bash(git push:*)", "Edit(secret/**)"]);
    assert!(agent.denied_tools.is_empty());
    let agent =
        accepted("constraints:\n  forbidden_paths: [\"node_modules/**\"]\n  allowed_paths: [\"./src/**\"]");
    assert_eq!(agent.restrictions.deny, ["Read(node_modules/**)", "Edit(node_modules/**)"]);
    assert_eq!(agent.restrictions.only, [["Read(src/**)", "Edit(src/**)"]]);
    assert_eq!(agent.restrictions.ask, ["Bash"], "a command may write anywhere");
    assert_eq!(accepted("allowed-paths: src/**").restrictions.ask, ["Bash"]);
    assert!(accepted("allowedPaths: []").restrictions.ask.is_empty());
    assert_eq!(accepted("permission: {bash: ask}").restrictions.ask, ["Bash"]);
}

#[test]
fn patterns_restrict_and_bare_names_do_not() {
    let only = |front: &str| accepted(front).restrictions.only;
    assert_eq!(only("tools: Read, Bash(git:*), Bash(npm test)"), [["Bash(git:*)", "Bash(npm test)"]]);
    assert_eq!(only("tools: Bash, Bash(git:*)"), Vec::<Vec<String>>::new());
    assert_eq!(only("tools: Bash(git:*)\nallowed-tools: Bash(git log:*)").len(), 2);
    let agent = accepted("tools: Bash(git:*), mcp__x__*");
    let choice = agent.tool_choice();
    for (tool, is_offered) in
        [("Bash", true), ("mcp__x__y", true), ("ToolSearch", true), ("Read", false), ("mcp__y__x", false)]
    {
        assert_eq!(choice.offers(tool), is_offered, "{tool}");
    }
    assert!(!agent.is_read_only());
}

#[test]
fn mode_and_turns_are_read() {
    for (front, mode, max_turns) in [
        ("permissionMode: plan", Some(Mode::Plan), None),
        ("permissionMode: acceptEdits", Some(Mode::AcceptEdits), None),
        ("permission_mode: bypassPermissions", Some(Mode::Bypass), None),
        ("permissionMode: \"dontAsk\"", Some(Mode::DontAsk), None),
        ("permissionMode: default", Some(Mode::Default), None),
        ("permissionMode: auto", Some(Mode::Default), None),
        ("permissionMode:", None, None),
        ("mode: plan", Some(Mode::Plan), None),
        ("mode: subagent", None, None),
        ("maxTurns: 5", None, Some(5)),
        ("maxTurns: \"7\"", None, Some(7)),
        ("max_turns: 3\nmaxTurns: 9", None, Some(3)),
        ("max-steps: 3", None, Some(3)),
        ("permissionMode: [plan]", Some(Mode::Plan), None),
        ("mode: [plan]", Some(Mode::Plan), None),
        ("mode: [subagent, primary]", None, None),
        ("claude:\n  permissionMode: plan\n  maxTurns: 4", Some(Mode::Plan), Some(4)),
        ("claude.permissionMode: plan\nclaude.maxTurns: 4", Some(Mode::Plan), Some(4)),
        ("a:\n  b:\n    max_turns: 6", None, Some(6)),
        ("behavior:\n  confirmation_required: [deleting files]", Some(Mode::Default), None),
        ("requires_confirmation: false", None, None),
    ] {
        let agent = accepted(front);
        assert_eq!((agent.mode, agent.max_turns), (mode, max_turns), "{front}");
    }
}

#[test]
fn access_of_other_programs_is_read_as_restriction() {
    for front in [
        "access: readonly",
        "access: read-only",
        "Access: Read",
        "filesystem: read only",
        "file_access: ro",
        "writable: false",
        "writable: []",
        "writable: none",
        "can_write: no",
        "allowWrites: false",
        "write-access: false",
        "mode: readonly",
        "mode: [readonly]",
        "sets:\n  access: readonly",
        "read_only: true",
    ] {
        let agent = accepted(front);
        assert!(!agent.restrictions.tools.is_empty(), "{front}");
        for tool in ["Write", "Edit", "ApplyPatch", "Bash", "Task", "WebFetch"] {
            assert!(!agent.restrictions.tools.iter().all(|choice| choice.offers(tool)), "{front}: {tool}");
        }
        assert!(agent.restrictions.tools.iter().all(|choice| choice.offers("Read")), "{front}");
    }
    for front in [
        "access: full",
        "access: read-write",
        "access:",
        "writable: true",
        "writable: all",
        "memory_access: both",
        "network_access: true",
        "mcp-servers:\n  x:\n    readonly: true\n    disallowedTools: [y]",
    ] {
        assert!(accepted(front).restrictions.is_none(), "{front}");
    }
    assert_eq!(accepted("writable: [\"./docs/**\"]").restrictions.only, [["Edit(docs/**)"]]);
    assert_eq!(accepted("editable_paths: docs/**").restrictions.only, [["Edit(docs/**)"]]);
    let types = accepted("constraints:\n  allowed_file_types: [\".md\", txt]").restrictions.only;
    assert_eq!(types, [["Read(**/*.md)", "Edit(**/*.md)", "Read(**/*.txt)", "Edit(**/*.txt)"]]);
}

#[test]
fn restriction_that_is_not_understood_refuses_the_agent() {
    for (front, word) in [
        ("tools: Frobnicate", "no tool \"Frobnicate\""),
        ("tools: WebSearch", "no usable tool"),
        ("tools: Read\ndisallowedTools: Read", "no usable tool"),
        ("tools: Read\nallowed_tools: Write", "no usable tool"),
        ("disallowedTools: \"*\"", "no tool"),
        ("disallowedTools: Writ", "Writ"),
        ("disallowedTools: Bash(git | x:*)", "Bash("),
        ("disallowedTools: Bash(git", "closing"),
        ("disallowedTools: mcp__*__x", "mcp__"),
        ("disallowedTools: {a: [b]}", "true or false"),
        ("disallowedTools: true", "names of tools"),
        ("tools: true", "names of tools"),
        ("tools: [[Read]]", "names of tools"),
        ("tools: [{name: Bash}]", "names of tools"),
        ("tools: {bash: ask}", "true or false"),
        ("tools: \"!Bash\"", "disallowedTools"),
        ("tools: \"*, !Bash\"", "disallowedTools"),
        ("tools: all except Bash", "disallowedTools"),
        ("tools: everything but Bash", "disallowedTools"),
        ("tools: Read: Grep", "restricts"),
        ("tools: [Read", "restricts"),
        ("tools: &a Read", "restricts"),
        ("description: a: b\n  tools: Read", "restricts"),
        ("permissionMode: strict", "mode"),
        ("permissionMode: 5", "mode"),
        ("permissionMode: {a: plan}", "mode"),
        ("permissionMode: [plan, strict]", "mode"),
        ("mode: strict", "mode"),
        ("mode: {a: b}", "mode"),
        ("mode: 5", "mode"),
        ("description: a: b\nmode: plan: x", "restricts"),
        ("access: limited", "access"),
        ("access: [src]", "access"),
        ("network_access: none", "network_access"),
        ("offline: true", "offline"),
        ("writable: {src: true}", "writable"),
        ("claude:\n  permissionMode: strict", "claude.permissionMode"),
        ("claude:\n  maxTurns: many", "claude.maxTurns"),
        ("claude.maxTurns: many", "number"),
        ("limits:\n  sandbox: strict", "limits.sandbox"),
        ("a:\n  b:\n    forbidden_commands: [rm]", "a.b.forbidden_commands"),
        ("options:\n  hooks:\n    PreToolUse: [{matcher: Bash}]", "hooks"),
        ("maxTurns: many", "number"),
        ("maxTurns: 0", "number"),
        ("maxTurns: -1", "number"),
        ("readonly: perhaps", "true or false"),
        ("permission: {bash: {\"git *\": allow}}", "not understood"),
        ("permission: strict", "not understood"),
        ("hooks:\n  PreToolUse:\n    - matcher: Bash", "hooks"),
        ("isolation: worktree", "isolation"),
        ("sandbox: strict", "sandbox"),
        ("allow_network: false", "allow_network"),
        ("forbidden_commands: [rm]", "forbidden_commands"),
        ("tool_restrictions: no writes", "tool_restrictions"),
        ("requires-approval: true", "requires-approval"),
        ("forbidden_paths: [\"[a\"]", "forbidden_paths"),
        ("disallowedTools: search/execute", "search/execute"),
        ("disallowedTools: Read/Write", "Read/Write"),
        ("disallowedTools: Bash/Write", "Bash/Write"),
        ("disallowedTools: a/b/c", "a/b/c"),
        ("disallowedTools: 'vscode/*'", "vscode/*"),
        ("disallowedTools: db/execute(x)", "db/execute"),
        ("disable: [Bash, Write]", "disable"),
        ("disabled: [Bash]", "disabled"),
        ("disable: {bash: true}", "disable"),
        ("block: [Bash]", "block"),
        ("blockCommands: [rm]", "blockCommands"),
        ("disableBash: true", "disableBash"),
        ("no_bash: true", "no_bash"),
        ("no-network: true", "no-network"),
        ("cannotWrite: true", "cannotWrite"),
        ("canExecute: false", "canExecute"),
        ("can_spawn: false", "can_spawn"),
        ("canrun: false", "canrun"),
        ("can_use: [Read, Grep]", "can_use"),
        ("code_execution: false", "code_execution"),
        ("execution: sandboxed", "execution"),
        ("execution:\n  network: none", "execution.network"),
        ("network: none", "network"),
        ("network: [example.org]", "network"),
        ("network_access: false", "network_access"),
        ("capabilities: [read]", "capabilities"),
        ("capabilities: read, grep", "capabilities"),
        ("skip: [Bash]", "skip"),
        ("ignore: [src]", "ignore"),
        ("prevent: Bash", "prevent"),
        ("mcp_deny: [x]", "mcp_deny"),
        ("mcpDisallowedTools: [x]", "mcpDisallowedTools"),
        ("requiredApproval: always", "requiredApproval"),
        ("required_permissions: [read]", "required_permissions"),
        ("description: a: b\nno_bash: [", "no_bash"),
    ] {
        let (agent, diagnostics) = with(front);
        assert!(agent.is_none(), "{front}: {agent:?}");
        assert!(diagnostics.iter().any(|it| it.contains(word)), "{front}: {diagnostics:?}");
    }
}

#[test]
fn keys_that_inform_or_permit_refuse_nothing() {
    for (front, diagnostics) in [
        ("version: 1.0\nauthor: a\ntags: [a, b]", 0),
        ("category: quality\nwhen_to_use: always: now", 0),
        ("color: \"#ff0000\"\nemoji: 🚀", 0),
        ("preferred_tools: [a]\nmcp_servers: [x]\nskills: pdf", 0),
        ("triggers:\n  keywords: [a]\nexamples:\n  - trigger: x", 0),
        ("autoApprove: true", 1),
        ("allow_network: true", 0),
        ("sandbox: none\nexcluded: []", 0),
        ("hooks:\n  Stop:\n    - command: x", 1),
        ("capabilities:\n  memory_access: both\n  code_execution: true", 0),
        ("notes: x\nnode: 5\nnorms: [a]\ncanonical: false\nnotebook: true\ncanary: no", 0),
        ("no_color: true\nexecutive_summary: true\nno_bash: false\ndisabled: false", 0),
        ("skip: []\nblock:\nignore: false\nrequired_permissions: []\nmcp_deny: []", 0),
        ("network: true\ncanExecute: yes\ncan_run: true\ncode_execution: enabled", 0),
        ("execution: parallel\nmax_execution_time: 300\nrequired_tools: [Read]", 0),
        ("execution:\n  strategy: parallel\ncapabilities: [code-review, read]", 0),
        ("integration:\n  can_spawn: [tester]\n  can_delegate_to: []", 0),
        ("tools: [Read, search/execute, a/b/c]", 2),
        ("denied_tools: Bash", 1),
        ("allowed-tools: Read", 1),
        ("disallowed_tools: Bash", 1),
        ("readonly: true", 1),
        ("tools: Read, Frobnicate, Other", 2),
    ] {
        let (agent, found) = with(front);
        assert!(agent.is_some(), "{front}: {found:?}");
        assert_eq!(found.len(), diagnostics, "{front}: {found:?}");
    }
}

#[test]
fn names_become_slugs() {
    for (name, shown, slug) in [
        ("Code Reviewer", "Code Reviewer", "code-reviewer"),
        ("v1.2", "v1.2", "v1-2"),
        ("Backend_Dev", "Backend_Dev", "backend_dev"),
        ("代码审查", "代码审查", "代码审查"),
        ("\"Q A\"", "Q A", "q-a"),
        ("[Beta] x", "[Beta] x", "beta-x"),
        ("🚀", "🚀 (review)", "review"),
        ("", "review", "review"),
        ("123", "123", "123"),
        ("a: b", "a: b", "a-b"),
    ] {
        let (agent, found) = load(&format!("---\nname: {name}\ndescription: x\n---\nDo it."));
        let agent = agent.unwrap_or_else(|| panic!("{name}: {found:?}"));
        assert_eq!((agent.name.as_str(), agent.slug.as_str()), (shown, slug));
        assert!(agent.is_named(shown) && agent.is_named(slug), "{name}");
        assert_eq!(types::slug::slug(&agent.name), agent.slug, "rules find it by either");
    }
    for bad in ["$knowledge", &"x".repeat(200)] {
        assert!(load(&format!("---\nname: {bad}\ndescription: x\n---\n")).0.is_none(), "{bad}");
    }
}

#[test]
fn tools_of_other_programs_are_reported_once() {
    let text = |tools: &str| format!("---\ndescription: x\ntools: {tools}\n---\nDo it.");
    let (agents, diagnostics) = load_files(vec![
        file("a", &text("Read, WebSearch")),
        file("b", &text("Read, WebSearch, LSP")),
        file("c", &text("Read")),
    ]);
    assert_eq!((agents.len(), diagnostics.len()), (3, 1), "{diagnostics:?}");
    let message = &diagnostics[0].message;
    assert!(message.contains("WebSearch, LSP") && message.contains("1 more"), "{message}");
}

/// Files in the manner of public collections. All of them load.
#[test]
fn options_of_model_are_read_and_wrong_ones_are_reported() {
    use types::thinking::Thinking;
    let options = |front: &str| {
        let (agent, problems) = load(&format!("---\nname: a\ndescription: x\n{front}\n---\nx"));
        (agent.expect("an agent").model_options, problems)
    };
    let (all, problems) = options("thinking: off\ntemperature: 0.25\ntop_p: \"0.5\"\nfallback_model: p/m");
    assert_eq!((all.thinking, all.fallback_model.as_deref()), (Some(Thinking::Off), Some("p/m")));
    let sampling = serde_json::to_value(all.sampling).expect("JSON");
    assert_eq!(sampling, serde_json::json!({"temperature": 0.25, "top_p": 0.5}));
    assert_eq!(problems, [""; 0]);
    for (front, thinking) in [("effort: low", Thinking::Low), ("thinking: 2048", Thinking::Tokens(2_048))] {
        assert_eq!(options(front).0.thinking, Some(thinking), "{front}");
    }
    let (none, problems) = options("thinking: deep\ntemperature: 9\ntopP:");
    assert_eq!(none, AgentModelOptions::default());
    assert!(
        problems[0].starts_with("thinking: ") && problems[1].starts_with("temperature: "),
        "{problems:?}"
    );
}

#[test]
fn files_of_public_collections_load() {
    let long = "Use this agent when you need X. Examples: <example>Context: The user: wants \"y\". user: 'do it' \
                assistant: \"I'll use [the agent]\" <commentary>Since: a # b</commentary></example>";
    let texts = [
        "---\nname: backend-architect\ndescription: Design RESTful APIs. Use PROACTIVELY when: creating services.\nmodel: sonnet\n---\nx".to_owned(),
        "---\nname: ai-engineer\ndescription: Build LLM apps & RAG\nmodel: opus\ntools: Read, Write, Edit, Bash, Grep\n---\nx".to_owned(),
        format!("---\nname: rapid-prototyper\ndescription: {long}\ncolor: green\ntools: Write, MultiEdit, Bash, Read, Glob, Task\n---\nx"),
        format!("---\nname: test-writer\ndescription: {long}\ntools: Read, Bash, WebSearch, WebFetch\nmodel: inherit\n---\nx"),
        "---\nname: code-reviewer\ndescription: |\n  Expert reviewer.\n  Tools: all of them.\ntools: Read, Grep, Glob\n---\nx".to_owned(),
        "---\nname: sql-pro\ndescription: >-\n  Writes SQL\n\n  well\nmodel: haiku\n---\nx".to_owned(),
        "---\nname: php-pro\ndescription: \"Writes \\\"good\\\" PHP\"\ntools: Read, Write, Edit, Bash, Glob, Grep\n---\nx".to_owned(),
        "---\nname: 'rust-pro'\ndescription: 'It''s Rust'\n---\nx".to_owned(),
        "---\n\nname: spaced\n\ndescription: x\n\n---\n\nx".to_owned(),
        "---\nname: dotted.name\ndescription: x\n---\nx".to_owned(),
        "---\nname: Frontend Developer\ndescription: x\ncolor: cyan\n---\nx".to_owned(),
        "---\nname: UI/UX Designer\ndescription: x\nemoji: 🎨\nvibe: Makes it pretty: always.\n---\nx".to_owned(),
        "---\nname: 产品经理\ndescription: 产品: 规划\n---\nx".to_owned(),
        "---\ndescription: no name\n---\nx".to_owned(),
        "---\nname: mcp-user\ndescription: x\ntools: mcp__playwright__*, mcp__context7__resolve-library-id, Read\n---\nx".to_owned(),
        "---\nname: planner\ndescription: x\nmodel: claude-sonnet-4-0\npermissionMode: plan\n---\nx".to_owned(),
        "---\nname: quick\ndescription: x\nmaxTurns: 3\neffort: low\nbackground: true\nmemory: user\n---\nx".to_owned(),
        "---\nname: limited\ndescription: x\ntools: Bash(git log:*), Bash(git diff:*), Read\n---\nx".to_owned(),
        "---\nname: no-edit\ndescription: x\ndisallowedTools: Write, Edit, NotebookEdit\n---\nx".to_owned(),
        "---\nname: flow\ndescription: x\ntype: analysis\ncolor: blue\nmetadata:\n  specialization: \"a\"\n  autonomous: true\ntriggers:\n  keywords:\n    - \"b\"\ncapabilities:\n  allowed_tools:\n    - Read\n    - Grep\n  restricted_tools:\n    - Write\n  max_file_operations: 100\n  memory_access: \"both\"\nconstraints:\n  allowed_paths:\n    - \"src/**\"\n  forbidden_paths:\n    - \"node_modules/**\"\n  allowed_file_types:\n    - \".js\"\nintegration:\n  can_spawn: []\n  requires_approval_from: []\n---\nx".to_owned(),
        "---\nname: oc\ndescription: x\nmode: subagent\ntemperature: 0.1\ntools:\n  write: false\n  edit: false\n  bash: false\n---\nx".to_owned(),
        "---\nname: oc2\ndescription: x\nmode: subagent\npermission:\n  edit: deny\n  webfetch: allow\n---\nx".to_owned(),
        "---\nname: tabs\ndescription: x\ntools:\n\t- Read\n\t- Write\n---\nx".to_owned(),
        "---\r\nname: windows\r\ndescription: x: y\r\ntools: Read, Write\r\n---\r\nx".to_owned(),
        "---\rname: old-mac\rdescription: x\r---\rx".to_owned(),
        "\u{feff}---\nname: bom\ndescription: x\n---\nx".to_owned(),
        "<!-- generated -->\n---\nname: commented\ndescription: x\n---\nx".to_owned(),
        "\n\n---\nname: blank-lines\ndescription: x\n---\nx".to_owned(),
        "---\nname: star\ndescription: x\ntools: *\n---\nx".to_owned(),
        "---\nname: beta\ndescription: [Beta] does x\n---\nx".to_owned(),
        "---\nname: quoted\ndescription: \"Quick\" fixes\n---\nx".to_owned(),
        "---\nname: two-lines\ndescription: first line\nsecond line without indent\n---\nx".to_owned(),
        "---\nname: at\ndescription: @mentions work\n---\nx".to_owned(),
        "---\nname: percent\ndescription: %done\n---\nx".to_owned(),
        "---\nname: backtick\ndescription: `code` first\n---\nx".to_owned(),
        "---\nname: twice\ndescription: a\nname: again\n---\nx".to_owned(),
        "---\nname: list\ndescription:\n  - a\n  - b\n---\nx".to_owned(),
        "---\nname: number\ndescription: 42\n---\nx".to_owned(),
        "---\nname: trailing\ndescription: x   \ntools: Read, Write,   \n---   \nx".to_owned(),
        "---\nname: comment\ndescription: x # y\n# tools are all\nmodel: opus # best\n---\nx".to_owned(),
        "---\nname: markdown\ndescription: **Bold** start\n---\nx".to_owned(),
        "---\nname: dash\ndescription: - not a list: really\n---\nx".to_owned(),
        "---\nname: empty-model\ndescription: x\nmodel:\ncolor:\n---\nx".to_owned(),
        "---\nname: colon-end\ndescription: \"x:\"\n---\nx".to_owned(),
    ];
    assert!(texts.len() >= 40);
    let count = texts.len();
    let files = texts.iter().enumerate().map(|(at, text)| file(&format!("f{at}"), text)).collect();
    let (agents, diagnostics) = load_files(files);
    assert_eq!(agents.len(), count, "{diagnostics:#?}");
    let find = |slug: &str| agents.iter().find(|agent| agent.slug == slug).expect("it is there");
    assert_eq!(find("planner").mode, Some(Mode::Plan));
    assert_eq!(find("flow").tools.as_deref(), Some(&["Read".to_owned(), "Grep".to_owned()][..]));
    assert!(!find("oc").tool_choice().offers("ApplyPatch") && !find("oc").tool_choice().offers("Bash"));
    assert!(!find("oc2").tool_choice().offers("Edit") && find("oc2").tool_choice().offers("Write"));
    assert_eq!(find("two-lines").description, "first line second line without indent");
    assert_eq!(find("ui-ux-designer").name, "UI/UX Designer");
    assert!(find("code-reviewer").is_read_only());
}
