//! What the keys and values in an agent's front matter mean, by all names that people use for them.

use serde_json::Value;

use super::front_matter::normalized;
use types::permission::Mode;

/// Tools that change nothing. An agent with no other tool is read-only.
pub(super) const READ_ONLY_TOOLS: [&str; 10] = [
    "Read",
    "Glob",
    "Grep",
    "LS",
    "BashOutput",
    "TodoRead",
    "TodoWrite",
    "Skill",
    "KnowledgeSearch",
    "ToolSearch",
];

/// The meaning of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The only tools of the agent.
    Allow,
    /// Tools that it does not have.
    Deny,
    /// Whether it only reads.
    ReadOnly,
    /// The mode that it has at most.
    Mode,
    /// How many model calls a task may take.
    Turns,
    /// The only files that it may use.
    AllowPaths,
    /// Files that it must not use.
    DenyPaths,
    /// The endings of the only files that it may use.
    AllowTypes,
    /// Whether it may write, or the only files that it may write.
    Write,
    /// What it may do with files: `read-only`, or all.
    Access,
    /// What a user confirms before it is done.
    Confirm,
    /// What is allowed, asked and denied, in one value.
    Permission,
    /// Commands around its calls, which may deny them.
    Hooks,
    /// It only allows something.
    Grant,
}

/// Keys by their normalized names.
const KEYS: [(&str, Meaning); 86] = [
    ("tools", Meaning::Allow),
    ("allowedtools", Meaning::Allow),
    ("allowtools", Meaning::Allow),
    ("allowedtool", Meaning::Allow),
    ("toolsallow", Meaning::Allow),
    ("toolsallowed", Meaning::Allow),
    ("enabledtools", Meaning::Allow),
    ("includetools", Meaning::Allow),
    ("includedtools", Meaning::Allow),
    ("availabletools", Meaning::Allow),
    ("onlytools", Meaning::Allow),
    ("toolsonly", Meaning::Allow),
    ("toolallowlist", Meaning::Allow),
    ("toolsallowlist", Meaning::Allow),
    ("toolwhitelist", Meaning::Allow),
    ("toolswhitelist", Meaning::Allow),
    ("disallowedtools", Meaning::Deny),
    ("disallowedtool", Meaning::Deny),
    ("disallowtools", Meaning::Deny),
    ("deniedtools", Meaning::Deny),
    ("denytools", Meaning::Deny),
    ("toolsdeny", Meaning::Deny),
    ("toolsdenied", Meaning::Deny),
    ("toolsdisallowed", Meaning::Deny),
    ("toolsexclude", Meaning::Deny),
    ("toolsexcluded", Meaning::Deny),
    ("toolsblocked", Meaning::Deny),
    ("restrictedtools", Meaning::Deny),
    ("forbiddentools", Meaning::Deny),
    ("blockedtools", Meaning::Deny),
    ("bannedtools", Meaning::Deny),
    ("prohibitedtools", Meaning::Deny),
    ("excludedtools", Meaning::Deny),
    ("excludetools", Meaning::Deny),
    ("disabledtools", Meaning::Deny),
    ("disabletools", Meaning::Deny),
    ("tooldenylist", Meaning::Deny),
    ("toolsdenylist", Meaning::Deny),
    ("toolblacklist", Meaning::Deny),
    ("toolsblacklist", Meaning::Deny),
    ("readonly", Meaning::ReadOnly),
    ("isreadonly", Meaning::ReadOnly),
    ("readonlymode", Meaning::ReadOnly),
    ("permissionmode", Meaning::Mode),
    ("approvalmode", Meaning::Mode),
    ("maxturns", Meaning::Turns),
    ("maxsteps", Meaning::Turns),
    ("maxiterations", Meaning::Turns),
    ("allowedpaths", Meaning::AllowPaths),
    ("forbiddenpaths", Meaning::DenyPaths),
    ("deniedpaths", Meaning::DenyPaths),
    ("excludedpaths", Meaning::DenyPaths),
    ("denypaths", Meaning::DenyPaths),
    ("blockedpaths", Meaning::DenyPaths),
    ("restrictedpaths", Meaning::DenyPaths),
    ("allowedfiletypes", Meaning::AllowTypes),
    ("writable", Meaning::Write),
    ("writeable", Meaning::Write),
    ("iswritable", Meaning::Write),
    ("writablepaths", Meaning::Write),
    ("writepaths", Meaning::Write),
    ("allowedwritepaths", Meaning::Write),
    ("editable", Meaning::Write),
    ("editablepaths", Meaning::Write),
    ("canwrite", Meaning::Write),
    ("canedit", Meaning::Write),
    ("canmodify", Meaning::Write),
    ("allowwrite", Meaning::Write),
    ("allowwrites", Meaning::Write),
    ("allowedit", Meaning::Write),
    ("allowedits", Meaning::Write),
    ("writeaccess", Meaning::Write),
    ("access", Meaning::Access),
    ("accesslevel", Meaning::Access),
    ("accessmode", Meaning::Access),
    ("fileaccess", Meaning::Access),
    ("filesystem", Meaning::Access),
    ("filesystemaccess", Meaning::Access),
    ("confirmationrequired", Meaning::Confirm),
    ("requireconfirmation", Meaning::Confirm),
    ("requiresconfirmation", Meaning::Confirm),
    ("permission", Meaning::Permission),
    ("permissions", Meaning::Permission),
    ("hooks", Meaning::Hooks),
    ("autoapprove", Meaning::Grant),
    ("alwaysallow", Meaning::Grant),
];

/// The names that agents are documented with. Other names of the same meaning get a diagnostic.
pub(super) const DOCUMENTED: [&str; 4] = ["tools", "disallowedTools", "permissionMode", "maxTurns"];

/// Words in keys that may restrict something.
const RESTRICTING_WORDS: [&str; 31] = [
    "tool",
    "allow",
    "deny",
    "denied",
    "forbid",
    "disab",
    "block",
    "prevent",
    "skip",
    "ignor",
    "exclud",
    "permission",
    "restrict",
    "readonly",
    "whitelist",
    "blacklist",
    "prohibit",
    "banned",
    "sandbox",
    "approval",
    "isolation",
    "access",
    "writable",
    "editable",
    "offline",
    "confine",
    "confirm",
    "network",
    "execute",
    "execution",
    "executab",
];
/// Those of these words that name what an agent can do: `false` takes it away.
const ABILITY_WORDS: [&str; 5] = ["access", "network", "execute", "execution", "executab"];
/// Beginnings of keys that forbid what comes after them, if that is one of the actions.
const NEGATIONS: [&str; 6] = ["no", "cannot", "cant", "dont", "never", "without"];
/// Beginnings of the names of actions, as in `noBash` and `canRun`.
const ACTIONS: [&str; 26] = [
    "bash", "shell", "terminal", "command", "exec", "run", "write", "writing", "edit", "modif", "delet",
    "creat", "read", "file", "network", "internet", "web", "fetch", "glob", "grep", "task", "subagent",
    "tool", "mcp", "git", "install",
];
/// Beginnings of keys that have such a word and only inform.
const INFORMING_BEGINS: [&str; 6] = ["preferred", "recommended", "required", "suggested", "optional", "mcp"];
/// Words with which such a key restricts all the same.
const NEVER_INFORMING: [&str; 13] = [
    "allow",
    "deny",
    "denied",
    "approval",
    "permission",
    "exclud",
    "disab",
    "block",
    "forbid",
    "prohibit",
    "restrict",
    "banned",
    "blacklist",
];

/// Other names of tools, normalized.
pub(super) const TOOL_ALIASES: [(&str, &str); 14] = [
    ("agent", "Task"),
    ("askuserquestion", "AskUser"),
    ("killshell", "KillBash"),
    ("notebookread", "Read"),
    ("view", "Read"),
    ("readfile", "Read"),
    ("list", "LS"),
    ("listdirectory", "LS"),
    ("shell", "Bash"),
    ("runshellcommand", "Bash"),
    ("writefile", "Write"),
    ("replace", "Edit"),
    ("patch", "ApplyPatch"),
    ("searchfilecontent", "Grep"),
];
/// Names of other programs for several tools, normalized and without the set before a slash, as in `search/codebase`.
pub(super) const TOOL_SETS: [(&str, &[&str]); 21] = [
    ("codebase", &["Read", "Grep", "Glob"]),
    ("search", &["Read", "Grep", "Glob"]),
    ("usages", &["Grep"]),
    ("textsearch", &["Grep"]),
    ("filesearch", &["Glob"]),
    ("findtestfiles", &["Glob"]),
    ("editfiles", &["Edit", "Write"]),
    ("createfile", &["Write"]),
    ("editnotebook", &["NotebookEdit"]),
    ("getterminaloutput", &["BashOutput"]),
    ("fetch", &["WebFetch"]),
    ("web", &["WebFetch"]),
    ("runcommands", &["Bash"]),
    ("runcommand", &["Bash"]),
    ("runinterminal", &["Bash"]),
    ("terminalcommand", &["Bash"]),
    ("terminal", &["Bash"]),
    ("execute", &["Bash"]),
    ("todos", &["TodoWrite", "TodoRead"]),
    ("todo", &["TodoWrite", "TodoRead"]),
    ("runsubagent", &["Task"]),
];
/// The sets of VS Code in lower case, with the normalized names of their tools. Before a slash, any other name is that of
/// a server.
pub(super) const VSCODE_SETS: [(&str, &[&str]); 11] = [
    ("agent", &["runsubagent"]),
    ("edit", &["editfiles", "createfile", "createdirectory", "editnotebook"]),
    (
        "execute",
        &[
            "runinterminal",
            "getterminaloutput",
            "createandruntask",
            "gettaskoutput",
            "runtask",
            "runtests",
            "testfailure",
            "runnotebookcell",
        ],
    ),
    ("new", &["newworkspace", "getprojectsetupinfo"]),
    (
        "read",
        &[
            "readfile",
            "problems",
            "terminallastcommand",
            "terminalselection",
            "getnotebooksummary",
            "readnotebookcelloutput",
        ],
    ),
    ("runcommands", &["runinterminal", "getterminaloutput", "terminallastcommand", "terminalselection"]),
    ("runnotebooks", &["runcell", "getnotebooksummary", "readnotebookcelloutput", "readcelloutput"]),
    ("runtasks", &["createandruntask", "runtask", "gettaskoutput"]),
    (
        "search",
        &[
            "codebase",
            "usages",
            "textsearch",
            "filesearch",
            "listdirectory",
            "findtestfiles",
            "changes",
            "searchresults",
        ],
    ),
    (
        "vscode",
        &[
            "extensions",
            "vscodeapi",
            "getprojectsetupinfo",
            "installextension",
            "newworkspace",
            "runcommand",
            "opensimplebrowser",
        ],
    ),
    ("web", &["fetch", "githubrepo"]),
];
/// Tools of other programs that have no counterpart, normalized.
const TOOLS_OF_OTHERS: [&str; 40] = [
    "websearch",
    "slashcommand",
    "listmcpresources",
    "listmcpresourcestool",
    "readmcpresource",
    "readmcpresourcetool",
    "lsp",
    "monitor",
    "powershell",
    "enterplanmode",
    "enterworktree",
    "exitworktree",
    "sendmessage",
    "taskcreate",
    "taskget",
    "tasklist",
    "taskoutput",
    "taskstop",
    "taskupdate",
    "structuredoutput",
    "teamcreate",
    "teamdelete",
    "githubrepo",
    "problems",
    "testfailure",
    "runtests",
    "changes",
    "opensimplebrowser",
    "extensions",
    "vscodeapi",
    "runtasks",
    "new",
    "terminallastcommand",
    "searchresults",
    "terminalselection",
    "runnotebooks",
    "readcelloutput",
    "think",
    "newworkspace",
    "getprojectsetupinfo",
];
/// Tools that do what another tool does, and are not offered without it.
pub(super) const ALSO_DENIED: [(&str, &[&str]); 2] =
    [("Edit", &["MultiEdit", "ApplyPatch", "NotebookEdit"]), ("Write", &["ApplyPatch"])];
/// Words of a sentence in a list of tools, which would turn its meaning.
pub(super) const SENTENCE_WORDS: [&str; 8] =
    ["except", "excluding", "without", "but", "not", "no", "minus", "none"];

/// Words for the kind of an agent that other programs write as its mode. They forbid nothing.
pub(super) const MODES_OF_OTHERS: [&str; 8] =
    ["subagent", "primary", "all", "agent", "chat", "code", "normal", "interactive"];
/// Ways to write that everything is allowed.
const ALL_ACCESS: [&str; 15] = [
    "all",
    "any",
    "both",
    "full",
    "write",
    "readwrite",
    "readandwrite",
    "rw",
    "true",
    "yes",
    "on",
    "enabled",
    "unrestricted",
    "public",
    "workspace",
];

/// Whether a normalized key may restrict an agent.
pub(super) fn restricts(key: &str) -> bool {
    let is_key = |key: &str| meaning(key).is_some_and(|meaning| meaning != Meaning::Grant);
    is_key(key) || key == "mode" || is_suspicious(key) || NESTED_ENDS.iter().any(|end| key.ends_with(end))
}

/// Ends of keys such as `claude.maxTurns`, of which a normalized key has no dot.
const NESTED_ENDS: [&str; 3] = ["maxturns", "maxsteps", "maxiterations"];

/// Whether a text for access gives all of it.
pub(super) fn is_all_access(text: &str) -> bool {
    text.trim() == "*" || ALL_ACCESS.contains(&normalized(text).as_str())
}

/// Whether the values below a key only inform, such as those of MCP servers.
pub(super) fn informs(key: &str) -> bool {
    INFORMING_BEGINS.iter().any(|begin| key.starts_with(begin))
        && !NEVER_INFORMING.iter().any(|word| key.contains(word))
}

/// The meaning of a normalized key.
pub(super) fn meaning(key: &str) -> Option<Meaning> {
    KEYS.iter().find(|(known, _)| *known == key).map(|(_, meaning)| *meaning)
}

/// Whether an unknown key has a word that may restrict.
pub(super) fn is_suspicious(key: &str) -> bool {
    let has_word = RESTRICTING_WORDS.iter().any(|word| key.contains(word));
    (has_word || negates(key) || can_act(key)) && !informs(key)
}

/// Whether `true` as the value of a suspicious key gives something, and `false` takes it away.
pub(super) fn permits(key: &str) -> bool {
    if negates(key) {
        return false;
    }
    let is_other = |word: &&str| *word != "tool" && !ABILITY_WORDS.contains(word);
    let has_other_word = RESTRICTING_WORDS.iter().any(|word| key.contains(word) && is_other(word));
    let is_ability = can_act(key) || ABILITY_WORDS.iter().any(|word| key.contains(word));
    (key.contains("allow") && !key.contains("disallow")) || (is_ability && !has_other_word)
}

/// Whether a key tells only how or how long something is executed, if its value does not forbid it.
pub(super) fn is_about_execution(key: &str) -> bool {
    let has_other_word =
        RESTRICTING_WORDS.iter().any(|word| key.contains(word) && !matches!(*word, "execute" | "execution"));
    key.contains("execut") && !has_other_word && !negates(key) && !can_act(key)
}

/// Whether a key such as `noBash` forbids an action.
fn negates(key: &str) -> bool {
    NEGATIONS.iter().any(|begin| key.strip_prefix(begin).is_some_and(begins_with_action))
}

/// Whether a key such as `canRun` says whether an action is possible.
fn can_act(key: &str) -> bool {
    key.strip_prefix("can").is_some_and(begins_with_action)
}

fn begins_with_action(text: &str) -> bool {
    ACTIONS.iter().any(|action| text.starts_with(action))
}

/// Whether a key as it is written says what an agent can do: `can_spawn` and `canSpawn`, but not `canonical`.
pub(super) fn is_capability(key: &str) -> bool {
    let rest = key.strip_prefix("can").or_else(|| key.strip_prefix("Can"));
    let begins_word =
        |rest: &str| rest.starts_with(|c: char| c.is_uppercase() || matches!(c, '_' | '-' | ' '));
    rest.is_some_and(begins_word) || normalized(key).contains("capabilit")
}

/// A mode by one of its names.
pub(super) fn mode(text: &str) -> Option<Mode> {
    match normalized(text).as_str() {
        // `auto` of other programs lets a model decide what is allowed; here a user decides.
        "default" | "ask" | "auto" | "manual" => Some(Mode::Default),
        "acceptedits" | "autoedit" => Some(Mode::AcceptEdits),
        "plan" => Some(Mode::Plan),
        "dontask" => Some(Mode::DontAsk),
        "bypasspermissions" | "bypass" | "yolo" => Some(Mode::Bypass),
        _ => None,
    }
}

/// Whether a name is that of another program's tool that has no counterpart.
pub(super) fn is_of_others(name: &str) -> bool {
    TOOLS_OF_OTHERS.contains(&normalized(name).as_str())
}

/// A value that is true or false; an absent one is false.
pub(super) fn as_flag(value: &Value) -> Option<bool> {
    match value {
        Value::Null => Some(false),
        Value::Bool(flag) => Some(*flag),
        Value::String(text) => match normalized(text).as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" | "" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a value is written to take something away.
pub(super) fn is_denial(value: &Value) -> bool {
    let is_word = |text: &str| {
        matches!(normalized(text).as_str(), "none" | "never" | "disabled" | "deny" | "denied" | "forbidden")
    };
    (!is_empty(value) && as_flag(value) == Some(false)) || value.as_str().is_some_and(is_word)
}

/// Whether a value is absent, or has nothing in it.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
