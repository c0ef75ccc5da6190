//! Exact replacement in a text: the checks that Edit and MultiEdit share.

use std::ops::Range;
use std::path::Path;

use serde_json::{Value, json};

use crate::error::ToolError;
use crate::files::did_you_mean::find_nearest;
use crate::fs::text::ShownText;

/// One requested replacement.
pub(crate) struct Replacement<'a> {
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
    pub(crate) all: bool,
    /// Number of this edit among several, from 1; 0 if there is only one.
    pub(crate) number: usize,
}

impl Replacement<'_> {
    /// Check 1. Different line endings do not count as a difference, because the model does not see them.
    pub(crate) fn require_difference(&self) -> Result<(), ToolError> {
        if self.old.replace("\r\n", "\n") == self.new.replace("\r\n", "\n") {
            return Err(self.refuse(
                "same_strings",
                "old_string and new_string are the same, so there is nothing to change".into(),
                json!({ "length": self.old.len() }),
            ));
        }
        Ok(())
    }

    /// Checks 7 and 8: the text after the change, in its own line endings, and the number of replacements.
    /// `path` is the displayed path, `real` the resolved one.
    pub(crate) fn apply(&self, path: &str, real: &Path, text: &str) -> Result<(String, usize), ToolError> {
        let view = ShownText::new(text);
        let old = view.unify(self.old);
        let places: Vec<Range<usize>> =
            memchr::memmem::find_iter(view.text.as_bytes(), &old).map(|at| at..at + old.len()).collect();
        if places.is_empty() {
            return Err(self.absent_error(path, real, &view.text, &old));
        }
        if places.len() > 1 && !self.all {
            return Err(self.ambiguous_error(path, real, &view.text, &places));
        }
        Ok((view.replace(&places, &view.unify(self.new)), places.len()))
    }

    /// An error that names the edit if there are several.
    pub(crate) fn refuse(&self, code: &'static str, text: String, mut meta: Value) -> ToolError {
        if self.number == 0 {
            return ToolError::new(code, text).with(meta);
        }
        if let Value::Object(meta) = &mut meta {
            meta.insert("edit".into(), self.number.into());
        }
        let text = format!("edit {}: {text} Nothing was changed.", self.number);
        ToolError::new(code, text).with(meta)
    }

    fn absent_error(&self, path: &str, real: &Path, text: &str, old: &str) -> ToolError {
        let mut message = format!("old_string is not in {path}.");
        let near = find_nearest(text, old);
        if let Some(near) = &near {
            let hint = if near.only_whitespace { " (only whitespace differs)" } else { "" };
            message
                .push_str(&format!(" The nearest text begins at line {}{hint}:\n{}", near.line, near.text));
            if self.number > 0 {
                message.push('\n');
            }
        } else {
            message.push_str(" Read the file again and copy the text exactly, without the line numbers.");
        }
        let nearest = near.map(
            |near| json!({ "line": near.line, "text": near.text, "only_whitespace": near.only_whitespace }),
        );
        self.refuse("string_not_found", message, json!({ "path": real, "nearest": nearest }))
    }

    fn ambiguous_error(&self, path: &str, real: &Path, text: &str, places: &[Range<usize>]) -> ToolError {
        const MAX_LINES: usize = 20;
        let mut lines = Vec::new();
        let (mut line, mut done) = (1, 0);
        for place in places.iter().take(MAX_LINES) {
            line += text[done..place.start].matches('\n').count();
            done = place.start;
            lines.push(line);
        }
        let list = lines.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let more = if places.len() > MAX_LINES { ", …" } else { "" };
        let message = format!(
            "old_string is in {path} {} times, at lines {list}{more}. Add lines around it until it is unique, \
             or set replace_all.",
            places.len()
        );
        let meta = json!({ "path": real, "count": places.len(), "lines": lines });
        self.refuse("multiple_matches", message, meta)
    }
}
