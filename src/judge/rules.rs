//! The permission rules of all scopes together.

use std::path::{Path, PathBuf};

use super::rule::{BadRule, Rule};
use types::permission::RuleKind;

/// The rules of all scopes together. The scope does not matter for the verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Rules for calls that run without a permission request.
    pub allow: Vec<Rule>,
    /// Rules for calls that always need a permission request.
    pub ask: Vec<Rule>,
    /// Rules for calls that never run.
    pub deny: Vec<Rule>,
}

impl Rules {
    /// Parses three lists. The error names the first rule that is invalid, or that only a session may
    /// have.
    pub fn parse<S: AsRef<str>>(allow: &[S], ask: &[S], deny: &[S]) -> Result<Self, BadRule> {
        let lasting = |kind, text: &S| match Rule::in_list(kind, text.as_ref()) {
            Ok(rule) if rule.is_unsandboxed() => Err(BadRule {
                text: rule.as_str().to_owned(),
                problem: "running outside the sandbox is granted to a session only, when it is asked".into(),
            }),
            parsed => parsed,
        };
        let all =
            |kind, list: &[S]| list.iter().map(|text| lasting(kind, text)).collect::<Result<Vec<_>, _>>();
        Ok(Self {
            allow: all(RuleKind::Allow, allow)?,
            ask: all(RuleKind::Ask, ask)?,
            deny: all(RuleKind::Deny, deny)?,
        })
    }

    /// The ask and deny rules with relative paths, which start at `folder` instead of the workspace. `None` if one of them
    /// has no such form; see [`Rule::with_base`].
    #[must_use]
    pub fn relative_at(&self, folder: &Path) -> Option<Self> {
        let based = |rules: &[Rule]| {
            let relative = rules.iter().filter(|rule| rule.is_relative());
            relative.map(|rule| rule.with_base(folder)).collect::<Option<Vec<Rule>>>()
        };
        Some(Self { allow: Vec::new(), ask: based(&self.ask)?, deny: based(&self.deny)? })
    }

    /// Additional rules for links: an ask or deny rule that names a path through a link also covers the
    /// real path. `real` returns the target of an existing path. Empty if there are no links.
    #[must_use]
    pub fn with_resolved_links(
        &self,
        workspace: &Path,
        home: &Path,
        real: &dyn Fn(&Path) -> Option<PathBuf>,
    ) -> Self {
        let target_rules = |rules: &[Rule]| {
            rules.iter().flat_map(|rule| rule.with_resolved_links(workspace, home, real)).collect()
        };
        Self { allow: Vec::new(), ask: target_rules(&self.ask), deny: target_rules(&self.deny) }
    }
}
