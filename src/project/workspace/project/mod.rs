//! `.agentd/config.toml` of a folder of the project: the keys that a project may set. Deny and ask rules always apply; allow rules
//! and settings apply only in a trusted folder. Addresses and API keys of providers cannot be set by a project.
//!
//! A file with a mistake adds no allow rules and no settings, and its other rules still apply as far as they
//! can be parsed. If the file is not TOML, cannot be read, or has an invalid deny or ask rule, nothing runs
//! without a permission request.

mod keys;
mod values;

use judge::Rule;
use types::permission::RuleKind;

pub use keys::{KeyUse, PROJECT_KEYS, Precedence, key_use};
use values::Permissions;
pub use values::{ProjectValues, SetKey};

/// Maximal number of rules of one kind.
const MAX_RULES: usize = 1_000;

/// A project's own rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Project {
    /// Applied only in a trusted folder; empty if the file has a mistake.
    pub allow: Vec<Rule>,
    /// Always applied.
    pub ask: Vec<Rule>,
    /// Always applied.
    pub deny: Vec<Rule>,
    /// Applied only in a trusted folder; none if the file has a mistake.
    pub values: ProjectValues,
    /// Description of the mistake with its line.
    pub problem: Option<String>,
    /// Whether the deny and ask rules are unknown, so that nothing may run without a permission request.
    pub is_closed: bool,
}

/// Parses the file's text. If it has a mistake, only deny and ask rules that can be parsed are used.
pub(super) fn read(text: &[u8]) -> Project {
    let Ok(text) = std::str::from_utf8(text) else { return project_of_unreadable("it is not UTF-8".into()) };
    match parse(text) {
        Ok(project) => project,
        Err(problem) => project_of_damaged(text, problem),
    }
}

/// The result for a file that cannot be read.
pub(super) fn project_of_unreadable(problem: String) -> Project {
    Project { problem: Some(problem), is_closed: true, ..Project::default() }
}

fn parse(text: &str) -> Result<Project, String> {
    let (values, Permissions { allow, ask, deny }) = values::parse(text)?;
    let rules = |kind, texts: Vec<String>| -> Result<Vec<Rule>, String> {
        if texts.len() > MAX_RULES {
            return Err(format!("{} rules of one kind; {MAX_RULES} are enough", texts.len()));
        }
        let rule = |rule: &String| {
            Rule::in_list(kind, rule).map_err(|error| {
                let line = text.find(rule.as_str()).map(|at| values::line_number(text, at));
                let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
                format!("{place}{rule:?}: {error}")
            })
        };
        texts.iter().map(rule).collect()
    };
    let (allow, ask, deny) =
        (rules(RuleKind::Allow, allow)?, rules(RuleKind::Ask, ask)?, rules(RuleKind::Deny, deny)?);
    Ok(Project { allow, ask, deny, values, problem: None, is_closed: false })
}

/// The deny and ask rules of a file with a mistake.
fn project_of_damaged(text: &str, problem: String) -> Project {
    let mut project = Project { problem: Some(problem), ..Project::default() };
    let Ok(table) = text.parse::<toml::Table>() else {
        project.is_closed = true;
        return project;
    };
    match table.get("permissions") {
        Some(toml::Value::Table(permissions)) => {
            let mut is_whole = !permissions.keys().any(|key| may_restrict(key, &["ask", "deny"]));
            project.ask = valid_rules(permissions.get("ask"), &mut is_whole);
            project.deny = valid_rules(permissions.get("deny"), &mut is_whole);
            project.is_closed = !is_whole;
        }
        Some(_) => project.is_closed = true,
        None => {}
    }
    // A key that is not known, and by its name a deny rule in another place.
    let tools = table.get("tools").and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys);
    project.is_closed |= table.keys().chain(tools).any(|key| may_restrict(key, &["permissions"]));
    project
}

/// Whether a key that this file does not have is probably meant to restrict calls.
fn may_restrict(key: &str, known: &[&str]) -> bool {
    const WORDS: [&str; 9] =
        ["deny", "denied", "ask", "block", "blocked", "forbid", "disallow", "permission", "rules"];
    !known.contains(&key)
        && key
            .to_ascii_lowercase()
            .split(['_', '-', '.'])
            .any(|part| WORDS.iter().any(|word| part.starts_with(word)))
}

/// The valid rules of a list. Sets `is_whole` to false if there is an invalid entry.
fn valid_rules(list: Option<&toml::Value>, is_whole: &mut bool) -> Vec<Rule> {
    let entries = match list {
        None => return Vec::new(),
        Some(toml::Value::Array(entries)) => entries.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    let rules: Vec<Rule> =
        entries.iter().take(MAX_RULES).filter_map(|rule| rule.as_str()?.parse().ok()).collect();
    *is_whole &= rules.len() == entries.len();
    rules
}

impl Project {
    /// The parts that become active with trust, as text for users. `file` is the name of the file. Does not list rules
    /// that always apply.
    pub(super) fn describe(&self, file: &str) -> Vec<String> {
        if let Some(problem) = &self.problem {
            let what = if self.is_closed {
                "not understood, so every call asks"
            } else {
                "its ask and deny rules count, the rest is not used"
            };
            return vec![format!("{file} ({what}: {problem})")];
        }
        let rules = self.allow.iter().map(|rule| format!("{file}: allow {rule}"));
        let values = self.values.describe();
        rules.chain(values.map(|set| format!("{file}: {set} (in new sessions)"))).collect()
    }
}

#[cfg(test)]
mod tests {

    #[test]
    fn misspelt_key_that_may_restrict_closes_the_file() {
        for text in [
            "[permissions]\ndenied = [\"Bash(rm:*)\"]",
            "[permissions]\nDeny = [\"Bash(rm:*)\"]",
            "[permissions]\nblock = [\"Bash(rm:*)\"]",
            "[permission]\ndeny = [\"Bash(rm:*)\"]",
            "deny = [\"Bash(rm:*)\"]",
            "[tools]\ndeny = [\"Bash\"]",
            "[tools]\ndisallowed_tools = [\"Bash\"]",
        ] {
            assert!(super::read(text.as_bytes()).is_closed, "{text}");
        }
    }

    #[test]
    fn project_rules_are_read_and_other_keys_refused() {
        let read = |text: &str| super::read(text.as_bytes());
        let project = read("[permissions]\nallow = [\"Bash(make)\"]\ndeny = [\"Read(.env)\"]\n");
        assert_eq!((project.allow.len(), project.deny.len(), &project.problem), (1, 1, &None));
        assert_eq!(project.describe(".agentd/config.toml"), [".agentd/config.toml: allow Bash(make)"]);
        for (text, expected) in [
            ("[providers.evil]\nbase_url = \"http://evil\"\n", "line 1"),
            ("[permissions]\nallow = []\nallow_bypass = true\n", "line 3"),
            ("[permissions]\n\nallow = [\"Bash(\"]\n", "line 3: \"Bash(\""),
            ("[models]\nmain = 3\n", "line 2"),
        ] {
            let project = read(text);
            assert!(project.allow.is_empty() && project.deny.is_empty() && !project.is_closed);
            assert!(
                project.problem.as_ref().is_some_and(|why| why.contains(expected)),
                "{text}: {project:?}"
            );
        }
    }

    #[test]
    fn project_settings_are_shown_as_needing_trust() {
        let project = super::read(b"[models]\nmain = \"a/b\"\n[session]\nmode = \"plan\"\n");
        assert_eq!(project.problem, None);
        let shown = [
            ".agentd/config.toml: models.main = \"a/b\" (in new sessions)",
            ".agentd/config.toml: session.mode = \"plan\" (in new sessions)",
        ];
        assert_eq!(project.describe(".agentd/config.toml"), shown);
    }

    #[test]
    fn damaged_project_file_allows_nothing_but_keeps_deny_rules() {
        let rules = "[permissions]\nallow = [\"Bash(make)\"]\nask = [\"Write\"]\ndeny = [\"Read(.env)\"]\n";
        for (text, expected) in [
            (format!("zork = 1\n{rules}"), "line 1"),
            (format!("{rules}[session]\nmode = \"bypass\"\n"), "line 6"),
            (format!("{rules}hooks = []\n"), "line 5"),
            (rules.replace("[\"Bash(make)\"]", "true"), "line 2"),
            (rules.replace("Bash(make)", "Bash("), "line 2"),
            (rules.replace("Bash(make)", "Bash(make *.o)"), "line 2"),
        ] {
            let project = super::read(text.as_bytes());
            assert_eq!((project.allow.len(), project.ask.len(), project.deny.len()), (0, 1, 1), "{text}");
            let problem = project.problem.clone().expect("said");
            assert!(problem.contains(expected) && !project.is_closed, "{text}: {problem}");
            assert!(
                project.describe(".agentd/config.toml")[0].contains("ask and deny rules count"),
                "{:?}",
                project.describe(".agentd/config.toml")
            );
        }
        for (text, rule_count) in [
            ("[permissions\n", 0),
            ("[permissions]\ndeny = [\"Read(.env)\"\n", 0),
            ("permissions = [\"Bash\"]\n", 0),
            ("[permissions]\ndeny = [\"Read(.env)\", \"Bash(\", 3]\n", 1),
            ("[permissions]\ndeny = \"Read(.env)\"\nask = [\"Zork(\"]\n", 1),
            // Rules that could match nothing.
            ("[permissions]\ndeny = [\"Read(.env)\", \"Bash(git * push)\"]\n", 1),
            ("[permissions]\ndeny = [\"Read(.env)\", \"Bsh(rm:*)\"]\n", 1),
            ("[permissions]\ndeny = [\"Read(.env)\"]\nask = [\"Bash(*rm)\", \"Edit($HOME/x)\"]\n", 1),
        ] {
            let project = super::read(text.as_bytes());
            assert!(project.is_closed && project.allow.is_empty(), "{text}: {project:?}");
            assert_eq!(project.deny.len(), rule_count, "{text}");
            assert!(
                project.describe(".agentd/config.toml")[0].contains("every call asks"),
                "{:?}",
                project.describe(".agentd/config.toml")
            );
        }
        assert!(super::read(b"\xff").is_closed);
        let project =
            super::read(b"[permissions]\ndeny = [\n  \"Read(.env)\",\n  \"Bash(git * push)\",\n]\n");
        let problem = project.problem.expect("said");
        assert!(problem.contains("line 4") && problem.contains("Bash(git:*)"), "{problem}");
        let project = super::read(b"[permissions]\nallow = [\"WebSearch\"]\ndeny = [\"Bash(rm *)\"]\n");
        assert_eq!((project.problem, project.deny[0].as_str()), (None, "Bash(rm:*)"));
    }
}
