//! Matchers: the names of tools for which a hook runs, or the kind of another event.

use fancy_regex::{Regex, RegexBuilder};

use types::tool::BUILT_IN_TOOLS;

/// Maximum steps of a search with look-around. A search that needs more counts as a match.
const BACKTRACK_LIMIT: usize = 100_000;
/// Maximum bytes of a matcher.
const MAX_BYTES: usize = 10_000;

/// Other names of a tool, under which people write hooks for it. Other agents have no `ApplyPatch`: their hooks on
/// edits mean every change of a file.
const OTHER_NAMES: [(&str, &[&str]); 4] = [
    ("Task", &["Agent"]),
    ("ApplyPatch", &EDITS),
    ("KillBash", &["KillShell"]),
    ("AskUser", &["AskUserQuestion"]),
];
/// The tools that change one file.
const EDITS: [&str; 3] = ["Edit", "MultiEdit", "Write"];

/// The names that a hook is for.
#[derive(Clone, Debug)]
pub(super) struct Matcher {
    /// The text as it was written.
    text: String,
    kind: MatcherKind,
}

#[derive(Clone, Debug)]
enum MatcherKind {
    All,
    Names(Vec<String>),
    Pattern(Box<Regex>),
}

impl Matcher {
    /// Every name.
    pub fn all() -> Self {
        Self { text: "*".into(), kind: MatcherKind::All }
    }

    /// One tool.
    pub fn name(tool: &str) -> Self {
        Self { text: tool.to_owned(), kind: MatcherKind::Names(vec![tool.to_owned()]) }
    }

    /// Reads a matcher. Letters, digits, `_`, `-`, `|`, commas and blanks are a list of exact names; an empty text
    /// and `*` are all names; anything else is a regular expression that is searched in the name.
    ///
    /// # Errors
    /// The regular expression cannot be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let is_listed =
            |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '|' | ',') || c.is_whitespace();
        let kind = if trimmed.is_empty() || trimmed == "*" {
            MatcherKind::All
        } else if trimmed.chars().all(is_listed) {
            let is_border = |c: char| matches!(c, '|' | ',') || c.is_whitespace();
            let names = trimmed.split(is_border).filter(|name| !name.is_empty());
            MatcherKind::Names(names.map(str::to_owned).collect())
        } else if is_rule(trimmed) {
            return Err(format!(
                "{trimmed} is a permission rule; write it as `if`, and the tool as the matcher"
            ));
        } else if trimmed.len() > MAX_BYTES {
            return Err(format!("it has more than {MAX_BYTES} bytes"));
        } else {
            // The library searches with a linear engine unless the pattern needs look-around or references.
            let mut builder = RegexBuilder::new(trimmed);
            builder.backtrack_limit(BACKTRACK_LIMIT);
            let pattern = builder.build().map_err(|error| error.to_string())?;
            MatcherKind::Pattern(Box::new(pattern))
        };
        Ok(Self { text: if trimmed.is_empty() { "*".into() } else { trimmed.to_owned() }, kind })
    }

    /// Whether the name, or another name of the same tool, matches.
    pub fn is_match(&self, name: &str) -> bool {
        self.matches_exactly(name)
            || OTHER_NAMES
                .iter()
                .filter(|(tool, _)| *tool == name)
                .any(|(_, others)| others.iter().any(|other| self.matches_exactly(other)))
    }

    /// The tools that a list of names means in another letter case, with that spelling. Names are exact, so such a name
    /// matches no call.
    pub fn misspelled_tools(&self) -> Vec<(&str, &'static str)> {
        let MatcherKind::Names(names) = &self.kind else { return Vec::new() };
        let meant = |name: &String| {
            BUILT_IN_TOOLS.into_iter().find(|tool| tool.eq_ignore_ascii_case(name) && tool != name)
        };
        names.iter().filter_map(|name| Some((name.as_str(), meant(name)?))).collect()
    }

    /// Whether it matches a tool that changes one file.
    pub fn matches_edits(&self) -> bool {
        EDITS.iter().any(|tool| self.matches_exactly(tool))
    }

    fn matches_exactly(&self, name: &str) -> bool {
        match &self.kind {
            MatcherKind::All => true,
            MatcherKind::Names(names) => names.iter().any(|listed| listed == name),
            // A search that fails or takes too many steps counts as a match, because the hook may be a guard.
            MatcherKind::Pattern(pattern) => pattern.is_match(name).unwrap_or(true),
        }
    }

    /// The text, `*` for all names.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Whether the text is a rule such as `Bash(git:*)`. As a regular expression it matches no tool.
fn is_rule(text: &str) -> bool {
    const RULE_TOOLS: [&str; 9] =
        ["Bash", "Read", "Edit", "Write", "MultiEdit", "Glob", "Grep", "WebFetch", "Task"];
    text.ends_with(')') && text.split_once('(').is_some_and(|(tool, _)| RULE_TOOLS.contains(&tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers_select_tools_as_people_mean_them() {
        for (text, matching, others) in [
            ("", &["Bash", "mcp__x__y"][..], &[][..]),
            ("*", &["Bash"], &[]),
            (" * ", &["Bash"], &[]),
            ("Edit", &["Edit", "ApplyPatch"], &["MultiEdit", "edit", "NotebookEdit"]),
            ("Edit|Write", &["Edit", "Write", "ApplyPatch"], &["MultiEdit", "Read"]),
            ("Edit | Write", &["Edit", "Write"], &["MultiEdit"]),
            ("Edit,Write", &["Edit", "Write"], &["MultiEdit"]),
            ("Edit, Write , Bash", &["Edit", "Write", "Bash"], &["BashOutput"]),
            ("mcp__my-server__do_it", &["mcp__my-server__do_it"], &["mcp__my-server__do_it2"]),
            ("^(?!Read$).*", &["Bash", "Write", "ReadFile"], &["Read"]),
            ("^(?!(Read|Glob|Grep)$)", &["Bash", "LS"], &["Read", "Glob", "Grep"]),
            ("^mcp__x__", &["mcp__x__y"], &["mcp__xy__z", "Bash"]),
            ("mcp__x__*", &["mcp__x__y", "mcp__x_"], &["mcp__y__z"]),
            ("mcp__x__.*", &["mcp__x__y"], &["mcp__y__z"]),
            ("Notebook.*", &["NotebookEdit"], &["Edit"]),
            (".*", &["Bash"], &[]),
            ("^(Edit|Write)$", &["Edit", "Write", "ApplyPatch"], &["MultiEdit"]),
            ("(?i)bash", &["Bash"], &["Read"]),
            ("Agent", &["Task"], &["Bash"]),
            ("Task", &["Task"], &["TaskX"]),
            ("^Agent$", &["Task"], &["Bash"]),
            ("(.)\\1", &["Grepp"], &["Bash"]),
            ("(?<=mcp__)db", &["mcp__db__x"], &["db"]),
        ] {
            let matcher = Matcher::parse(text).expect(text);
            matching.iter().for_each(|name| assert!(matcher.is_match(name), "{text:?} {name}"));
            others.iter().for_each(|name| assert!(!matcher.is_match(name), "{text:?} {name}"));
        }
        for wrong in ["(", "[a", "*.Edit(", "(?<name", "Bash(git *", "Bash(echo:*)", "Edit(*.ts)"] {
            assert!(Matcher::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Matcher::parse(&format!("{}.", "x".repeat(MAX_BYTES))).is_err());
    }

    #[test]
    fn tools_in_another_letter_case_are_reported() {
        for (text, misspelled) in [
            ("bash", &[("bash", "Bash")][..]),
            ("Bash|WRITE, edit", &[("WRITE", "Write"), ("edit", "Edit")]),
            ("killbash", &[("killbash", "KillBash")]),
            ("Bash|Write", &[]),
            ("mcp__x__bash|MyTool|startup", &[]),
            ("(?i)bash", &[]),
            ("*", &[]),
        ] {
            assert_eq!(Matcher::parse(text).expect(text).misspelled_tools(), misspelled, "{text}");
        }
    }

    #[test]
    fn search_that_takes_too_long_counts_as_match() {
        let matcher = Matcher::parse("^(a|aa)+\\1(b|d)$").expect("a pattern");
        assert!(matcher.is_match(&format!("{}c", "a".repeat(60))));
    }
}
