//! Pointers from a purpose to a model.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `[models]`: pointers from a purpose to a model, each as `PROVIDER/MODEL`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelPointers {
    /// Model of sessions that name none.
    pub main: Option<String>,
    /// Model for small tasks such as titles. It, `task` and `reasoning` are used if a caller names them.
    pub quick: Option<String>,
    /// Model for separate tasks.
    pub task: Option<String>,
    /// Model for hard questions.
    pub reasoning: Option<String>,
    /// Model after repeated overload, or if a model is missing or does not answer.
    pub fallback: Option<String>,
    /// Model on rate limits, if `[retry] on_rate_limit` is `backup`.
    pub backup: Option<String>,
    /// Model for conversations that exceed the context window.
    pub large_context: Option<String>,
    /// Model for images if the session's model does not support them.
    pub vision: Option<String>,
    /// Models by the names that files of other programs have for them, such as `haiku`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub aliases: BTreeMap<String, String>,
}

impl ModelPointers {
    /// The pointer of this name; `None` if there is no such pointer.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Option<&str>> {
        self.all().into_iter().find(|(known, _)| *known == name).map(|(_, model)| model.as_deref())
    }

    /// All pointers by name, including unset ones.
    #[must_use]
    pub fn all(&self) -> [(&'static str, &Option<String>); 8] {
        [
            ("main", &self.main),
            ("quick", &self.quick),
            ("task", &self.task),
            ("reasoning", &self.reasoning),
            ("fallback", &self.fallback),
            ("backup", &self.backup),
            ("large_context", &self.large_context),
            ("vision", &self.vision),
        ]
    }
}
