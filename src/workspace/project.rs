//! `WORKSPACE/.agentd/config.toml`: the few keys that a project may set. Rules that forbid or ask count
//! always; those that allow only in a trusted folder (S22). There are no others: where models are and
//! which keys they need is never a project's affair.
//!
//! A file with a mistake loosens nothing, and still restricts as far as it can be understood. Where even
//! that is in doubt (it is no TOML, it cannot be read, or a rule that forbids or asks is none), nobody
//! knows what it was to forbid, and nothing passes unasked.

use serde::Deserialize;

use crate::judge::Rule;

/// Rules of one kind at most.
const RULES: usize = 1_000;

/// A project's own rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Project {
    /// Only in a trusted folder; none if the file has a mistake.
    pub allow: Vec<Rule>,
    /// Always.
    pub ask: Vec<Rule>,
    /// Always.
    pub deny: Vec<Rule>,
    /// What is wrong with the file, and on which line.
    pub problem: Option<String>,
    /// What it was to forbid is not known: nothing may pass unasked.
    pub is_closed: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    permissions: Permissions,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Permissions {
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    ask: Vec<String>,
    #[serde(default)]
    deny: Vec<String>,
}

/// Reads the file's text. Of one with a mistake counts what restricts, as far as it is understood.
pub(super) fn read(text: &[u8]) -> Project {
    let Ok(text) = std::str::from_utf8(text) else { return unreadable("it is not UTF-8".into()) };
    match parse(text) {
        Ok(project) => project,
        Err(problem) => damaged(text, problem),
    }
}

/// Stands for a file of which nothing can be known.
pub(super) fn unreadable(problem: String) -> Project {
    Project { problem: Some(problem), is_closed: true, ..Project::default() }
}

fn parse(text: &str) -> Result<Project, String> {
    let file: File = toml::from_str(text).map_err(|error| {
        let place = error.span().map(|span| line(text, span.start)).unwrap_or_default();
        format!("{place}{}; a project may set [permissions] allow, ask and deny", error.message())
    })?;
    let rules = |given: Vec<String>| -> Result<Vec<Rule>, String> {
        if given.len() > RULES {
            return Err(format!("{} rules of one kind; {RULES} are enough", given.len()));
        }
        let rule = |rule: &String| {
            rule.parse().map_err(|error| {
                let place = text.find(rule.as_str()).map(|at| line(text, at)).unwrap_or_default();
                format!("{place}{rule:?}: {error}")
            })
        };
        given.iter().map(rule).collect()
    };
    let Permissions { allow, ask, deny } = file.permissions;
    let (allow, ask, deny) = (rules(allow)?, rules(ask)?, rules(deny)?);
    Ok(Project { allow, ask, deny, problem: None, is_closed: false })
}

fn line(text: &str, at: usize) -> String {
    let before = text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    format!("line {}: ", before + 1)
}

/// What restricts in a file with a mistake.
fn damaged(text: &str, problem: String) -> Project {
    let mut project = Project { problem: Some(problem), ..Project::default() };
    let Ok(table) = text.parse::<toml::Table>() else {
        project.is_closed = true;
        return project;
    };
    match table.get("permissions") {
        Some(toml::Value::Table(permissions)) => {
            let mut is_whole = true;
            project.ask = understood(permissions.get("ask"), &mut is_whole);
            project.deny = understood(permissions.get("deny"), &mut is_whole);
            project.is_closed = !is_whole;
        }
        Some(_) => project.is_closed = true,
        None => {}
    }
    project
}

/// The rules of a list that are rules; `is_whole` falls if there is anything else.
fn understood(list: Option<&toml::Value>, is_whole: &mut bool) -> Vec<Rule> {
    let given = match list {
        None => return Vec::new(),
        Some(toml::Value::Array(given)) => given.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    let rules: Vec<Rule> = given.iter().take(RULES).filter_map(|rule| rule.as_str()?.parse().ok()).collect();
    *is_whole &= rules.len() == given.len();
    rules
}

impl Project {
    /// What becomes active with trust, for people; what counts anyway is not told.
    pub(super) fn shown(&self) -> Vec<String> {
        if let Some(problem) = &self.problem {
            let what = if self.is_closed {
                "not understood, so every call asks"
            } else {
                "its ask and deny rules count, the rest is not used"
            };
            return vec![format!(".agentd/config.toml ({what}: {problem})")];
        }
        let rules = self.allow.iter().map(|rule| format!(".agentd/config.toml: allow {rule}"));
        rules.collect()
    }
}

#[cfg(test)]
mod tests {

    #[test]
    fn project_rules_are_read_and_other_keys_refused() {
        let read = |text: &str| super::read(text.as_bytes());
        let project = read("[permissions]\nallow = [\"Bash(make)\"]\ndeny = [\"Read(.env)\"]\n");
        assert_eq!((project.allow.len(), project.deny.len(), &project.problem), (1, 1, &None));
        assert_eq!(project.shown(), [".agentd/config.toml: allow Bash(make)"]);
        for (text, expected) in [
            ("[providers.evil]\nbase_url = \"http://evil\"\n", "line 1"),
            ("[permissions]\nallow = []\nallow_bypass = true\n", "line 3"),
            ("[permissions]\n\nallow = [\"Bash(\"]\n", "line 3: \"Bash(\""),
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
    fn damaged_project_file_allows_nothing_but_keeps_deny_rules() {
        let rules = "[permissions]\nallow = [\"Bash(make)\"]\nask = [\"Write\"]\ndeny = [\"Read(.env)\"]\n";
        for (text, expected) in [
            (format!("zork = 1\n{rules}"), "line 1"),
            (format!("{rules}[session]\nmode = \"plan\"\n"), "line 5"),
            (format!("{rules}hooks = []\n"), "line 5"),
            (rules.replace("[\"Bash(make)\"]", "true"), "line 2"),
            (rules.replace("Bash(make)", "Bash("), "line 2"),
        ] {
            let project = super::read(text.as_bytes());
            assert_eq!((project.allow.len(), project.ask.len(), project.deny.len()), (0, 1, 1), "{text}");
            let problem = project.problem.clone().expect("said");
            assert!(problem.contains(expected) && !project.is_closed, "{text}: {problem}");
            assert!(project.shown()[0].contains("ask and deny rules count"), "{:?}", project.shown());
        }
        for (text, kept) in [
            ("[permissions\n", 0),
            ("[permissions]\ndeny = [\"Read(.env)\"\n", 0),
            ("permissions = [\"Bash\"]\n", 0),
            ("[permissions]\ndeny = [\"Read(.env)\", \"Bash(\", 3]\n", 1),
            ("[permissions]\ndeny = \"Read(.env)\"\nask = [\"Zork(\"]\n", 1),
        ] {
            let project = super::read(text.as_bytes());
            assert!(project.is_closed && project.allow.is_empty(), "{text}: {project:?}");
            assert_eq!(project.deny.len(), kept, "{text}");
            assert!(project.shown()[0].contains("every call asks"), "{:?}", project.shown());
        }
        assert!(super::read(b"\xff").is_closed);
    }
}
