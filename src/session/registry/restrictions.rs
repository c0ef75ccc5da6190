//! Everything that restricts calls in a folder, and the texts that could not be read.

use crate::error::SessionError;
use crate::registry::Registry;
use types::permission::RuleKind;
use types::restriction::{Restriction, RestrictionKind, Restrictions};

impl Registry {
    /// The restrictions of a folder: rules, hooks, agents and servers.
    ///
    /// # Errors
    /// The folder does not exist, or the database could not be read.
    pub async fn restrictions(&self, cwd: &str) -> Result<Restrictions, SessionError> {
        let cwd = self.folder(cwd).await?;
        let mut found = Restrictions { cwd, ..Restrictions::default() };
        self.add_rules(&mut found).await?;
        Ok(found)
    }

    async fn add_rules(&self, found: &mut Restrictions) -> Result<(), SessionError> {
        let (rules, problems) = self.rules(None, Some(&found.cwd)).await?;
        let restricts = rules.into_iter().filter(|rule| rule.kind != RuleKind::Allow);
        found.in_force.extend(restricts.map(|rule| Restriction {
            kind: RestrictionKind::Rule,
            text: format!("{} {}", rule.kind.name(), rule.rule),
            file: rule.file,
            line: None,
        }));
        found.unread.extend(problems.into_iter().map(|text| Restriction {
            kind: RestrictionKind::Rule,
            text,
            file: None,
            line: None,
        }));
        Ok(())
    }
}
