//! `WORKSPACE/.agentd/config.toml`: the few keys that a project may set. Rules that forbid or ask count
//! always; those that allow only in a trusted folder (S22). There are no others: where models are and
//! which keys they need is never a project's affair.

use serde::Deserialize;

use crate::judge::Rule;

/// Rules of one kind at most.
const RULES: usize = 1_000;

/// A project's own rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Project {
    /// Only in a trusted folder.
    pub allow: Vec<Rule>,
    /// Always.
    pub ask: Vec<Rule>,
    /// Always.
    pub deny: Vec<Rule>,
    /// Why the file is not used at all.
    pub problem: Option<String>,
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

/// Reads the file's text. A file with a mistake counts as none, but for saying so.
pub(super) fn read(text: &[u8]) -> Project {
    match parse(text) {
        Ok(project) => project,
        Err(problem) => Project { problem: Some(problem), ..Project::default() },
    }
}

fn parse(text: &[u8]) -> Result<Project, String> {
    let text = std::str::from_utf8(text).map_err(|_| "it is not UTF-8".to_owned())?;
    let file: File = toml::from_str(text).map_err(|error| {
        let line =
            error.span().map(|span| text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1);
        let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        format!("{place}{}; a project may set [permissions] allow, ask and deny", error.message())
    })?;
    let rules = |given: Vec<String>| -> Result<Vec<Rule>, String> {
        if given.len() > RULES {
            return Err(format!("{} rules of one kind; {RULES} are enough", given.len()));
        }
        given.iter().map(|rule| rule.parse().map_err(|error| format!("{rule:?}: {error}"))).collect()
    };
    let Permissions { allow, ask, deny } = file.permissions;
    Ok(Project { allow: rules(allow)?, ask: rules(ask)?, deny: rules(deny)?, problem: None })
}

impl Project {
    /// What becomes active with trust, for people; what counts anyway is not told.
    pub(super) fn shown(&self) -> Vec<String> {
        if let Some(problem) = &self.problem {
            return vec![format!(".agentd/config.toml (not used: {problem})")];
        }
        let rules = self.allow.iter().map(|rule| format!(".agentd/config.toml: allow {rule}"));
        rules.collect()
    }
}

#[cfg(test)]
mod tests {

    #[test]
    fn rules_are_read_and_everything_else_is_a_mistake_with_its_line() {
        let read = |text: &str| super::read(text.as_bytes());
        let project = read("[permissions]\nallow = [\"Bash(make)\"]\ndeny = [\"Read(.env)\"]\n");
        assert_eq!((project.allow.len(), project.deny.len(), &project.problem), (1, 1, &None));
        assert_eq!(project.shown(), [".agentd/config.toml: allow Bash(make)"]);
        for (text, expected) in [
            ("[providers.evil]\nbase_url = \"http://evil\"\n", "line 1"),
            ("[permissions]\nallow = []\nallow_bypass = true\n", "line 3"),
            ("[permissions]\nallow = [\"Bash(\"]\n", "Bash("),
            ("[permissions\n", "line 1"),
        ] {
            let project = read(text);
            assert!(project.allow.is_empty() && project.deny.is_empty());
            assert!(
                project.problem.as_ref().is_some_and(|why| why.contains(expected)),
                "{text}: {project:?}"
            );
        }
        assert!(super::read(b"\xff").problem.is_some());
    }
}
