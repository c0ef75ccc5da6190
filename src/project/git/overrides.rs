//! Switches off the programs that a repository's own configuration names.

use super::GitError;

/// Maximum number of settings that are switched off. A repository with more of them is refused.
const MAX_OVERRIDES: usize = 1_000;

/// What was found in the configuration of a repository.
#[derive(Clone, Debug, Default)]
pub(crate) struct RepositoryConfig {
    overrides: Vec<(String, String)>,
    has_name: bool,
    has_email: bool,
}

impl RepositoryConfig {
    /// Settings that take precedence over the repository's own, each a key and its value.
    pub(crate) fn overrides(&self) -> &[(String, String)] {
        &self.overrides
    }

    /// Reads pairs of a scope and a key, each ended by a NUL.
    ///
    /// # Errors
    /// A key cannot be read, or there are too many programs.
    pub(crate) fn parse(listing: &[u8]) -> Result<Self, GitError> {
        let mut config = Self::default();
        let mut words = listing.split(|byte| *byte == 0);
        while let (Some(scope), Some(key)) = (words.next(), words.next()) {
            let key = std::str::from_utf8(key)
                .map_err(|_| GitError("the repository's configuration has a key that is not UTF-8".into()))?;
            config.has_name |= key == "user.name";
            config.has_email |= key == "user.email";
            // The other scopes belong to the user or the administrator; "command" are the safe options.
            if !matches!(scope, b"global" | b"system" | b"command")
                && let Some(harmless) = harmless_value(key)
                && !config.overrides.iter().any(|(known, _)| known == key)
            {
                config.overrides.push((key.to_owned(), harmless.to_owned()));
            }
        }
        if config.overrides.len() > MAX_OVERRIDES {
            return Err(GitError("the repository's configuration names too many programs".into()));
        }
        // An identity of which a part is missing would make git fail.
        for (is_set, key, value) in
            [(config.has_name, "user.name", "agentd"), (config.has_email, "user.email", "agentd@localhost")]
        {
            if !is_set {
                config.overrides.push((key.to_owned(), value.to_owned()));
            }
        }
        Ok(config)
    }
}

/// The value that switches a setting off; `None` if the setting names no program.
fn harmless_value(key: &str) -> Option<&'static str> {
    let (section, rest) = key.split_once('.')?;
    let name = rest.rsplit_once('.')?.1;
    match (section, name) {
        ("filter", "clean" | "smudge" | "process") => Some(""),
        ("filter", "required") => Some("false"),
        // A driver that fails is a conflict. An empty one would keep one side without a word.
        ("merge", "driver") => Some("false"),
        ("diff", "command" | "textconv") => Some(""),
        ("hook", "command") => Some("true"),
        ("hook", "enabled") => Some("false"),
        ("gpg", "program") => Some("false"),
        ("trailer", "command" | "cmd") => Some("true"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_of_repository_are_switched_off() {
        let listing =
            b"global\0filter.lfs.clean\0global\0user.name\0local\0core.bare\0local\0filter.a=b.c.smudge\0\
            worktree\0merge.x.driver\0local\0filter.a=b.c.smudge\0local\0merge.ff\0command\0core.pager\0";
        let config = RepositoryConfig::parse(listing).expect("parsed");
        let expected =
            [("filter.a=b.c.smudge", ""), ("merge.x.driver", "false"), ("user.email", "agentd@localhost")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(config.overrides(), expected);
        assert!(
            RepositoryConfig::parse(b"local\0filter.\xff.clean\0").is_err(),
            "what cannot be read is refused"
        );
    }
}
