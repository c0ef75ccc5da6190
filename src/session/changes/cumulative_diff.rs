//! The changes of a session, file by file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::changes::edit_script::EditScript;
use store::{SessionKey, StoreError, StoreReader};
use types::event::{Envelope, Event};
use types::ids::Seq;
use types::session::{ChangeKind, FileDiff};
use types::tool::FileChange;

/// Rows and bytes of the journal per read.
const PAGE_ROWS: u32 = 200;
const PAGE_BYTES: usize = 4 << 20;
/// Maximum length of a file's diffs that cannot be merged, in bytes. Longer ones are truncated.
const MAX_DIFF_BYTES: usize = 512 << 10;

/// All file changes of a session, by path. Files with their original content are omitted.
pub async fn cumulative_diff(
    store: &StoreReader,
    key: SessionKey,
    workspace: &Path,
) -> Result<Vec<FileDiff>, StoreError> {
    let mut files: BTreeMap<PathBuf, ChangedText> = BTreeMap::new();
    let mut after: Seq = 0;
    loop {
        let page = store.file_changes_after(key, after, PAGE_ROWS, PAGE_BYTES).await?;
        let is_last = page.is_last || page.rows.is_empty();
        after = page.rows.last().map_or(after, |row| row.seq);
        // Merging large changes takes time, so it runs on a blocking thread.
        files = spawn_blocking_store(move || {
            for row in &page.rows {
                if let Ok(Envelope { event: Event::FileChanged { change, .. }, .. }) =
                    serde_json::from_str(&row.body)
                {
                    let path = change.path.clone();
                    let file = files.entry(path).and_modify(|file| file.add(&change));
                    file.or_insert_with(|| ChangedText::new(&change));
                }
            }
            files
        })
        .await?;
        if is_last {
            break;
        }
    }
    let workspace = workspace.to_path_buf();
    let finish =
        move || files.into_iter().filter_map(|(path, file)| file.finish(&path, &workspace)).collect();
    spawn_blocking_store(finish).await
}

async fn spawn_blocking_store<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StoreError> {
    let result = tokio::task::spawn_blocking(work).await;
    result.map_err(|error| StoreError::Sql(format!("could not combine the changes: {error}")))
}

/// The changes of one file so far.
struct ChangedText {
    before: Option<String>,
    after: Option<String>,
    changes: u64,
    /// Printed diffs that could not be merged with later ones.
    past: String,
    added: u64,
    removed: u64,
    open: Option<EditScript>,
}

impl ChangedText {
    fn new(change: &FileChange) -> Self {
        let mut file = Self {
            before: hash_before(change),
            after: None,
            changes: 0,
            past: String::new(),
            added: 0,
            removed: 0,
            open: None,
        };
        file.add(change);
        file
    }

    fn add(&mut self, change: &FileChange) {
        let follows = self.changes > 0 && self.after == hash_before(change);
        self.changes += 1;
        self.after = hash_after(change);
        let script = EditScript::parse(&change.diff);
        self.open = match (self.open.take(), script) {
            (Some(open), Some(script)) if follows => match open.clone().merge_with(script.clone()) {
                Some(net) => Some(net),
                None => {
                    self.close_diff(&open);
                    Some(script)
                }
            },
            (open, script) => {
                if let Some(open) = open {
                    self.close_diff(&open);
                }
                if script.is_none() {
                    self.record(change);
                }
                script
            }
        };
    }

    /// Ends a diff that cannot be merged with the next one.
    fn close_diff(&mut self, script: &EditScript) {
        let script = script.clone().normalize();
        let (added, removed) = script.count_lines();
        (self.added, self.removed) = (self.added + added, self.removed + removed);
        let text = script.print("a", "b");
        self.push(text.splitn(3, '\n').nth(2).unwrap_or(""));
    }

    /// Records a change whose diff is missing or incomplete.
    fn record(&mut self, change: &FileChange) {
        (self.added, self.removed) = (self.added + change.added, self.removed + change.removed);
        let known = change.diff.splitn(3, '\n').nth(2).unwrap_or("");
        self.push(known);
        self.push(&format!(
            "[a change of +{} −{} lines, of which only a part is stored]\n",
            change.added, change.removed
        ));
    }

    fn push(&mut self, text: &str) {
        if self.past.len() < MAX_DIFF_BYTES {
            self.past.push_str(text);
            if self.past.len() >= MAX_DIFF_BYTES {
                self.past.push_str("\n[cut: further changes are in the journal]\n");
            }
        }
    }

    fn finish(mut self, path: &Path, workspace: &Path) -> Option<FileDiff> {
        let change = match (&self.before, &self.after) {
            (None, None) => return None,
            (None, Some(_)) => ChangeKind::Created,
            (Some(_), None) => ChangeKind::Removed,
            (Some(before), Some(after)) if before == after && !before.is_empty() => return None,
            (Some(_), Some(_)) => ChangeKind::Modified,
        };
        let shown = path.strip_prefix(workspace).unwrap_or(path).display();
        let from = if change == ChangeKind::Created { "/dev/null".to_owned() } else { format!("a/{shown}") };
        let to = if change == ChangeKind::Removed { "/dev/null".to_owned() } else { format!("b/{shown}") };
        let exact = self.past.is_empty();
        if exact {
            let script = self.open.take().unwrap_or_default().normalize();
            let ((added, removed), diff) = (script.count_lines(), script.print(&from, &to));
            return Some(FileDiff {
                path: path.into(),
                change,
                added,
                removed,
                diff,
                changes: self.changes,
                exact,
            });
        }
        if let Some(open) = self.open.take() {
            self.close_diff(&open);
        }
        let diff = format!("--- {from}\n+++ {to}\n{}", self.past);
        let (added, removed) = (self.added, self.removed);
        Some(FileDiff { path: path.into(), change, added, removed, diff, changes: self.changes, exact })
    }
}

/// Hash of the content before the change; `Some("")` if the journal is older than the hashes.
fn hash_before(change: &FileChange) -> Option<String> {
    let is_new = change.diff.starts_with("--- /dev/null\n");
    change.sha256_before.clone().or_else(|| (!is_new && change.sha256_after.is_none()).then(String::new))
}

fn hash_after(change: &FileChange) -> Option<String> {
    let is_gone = change.sha256_before.is_some();
    change.sha256_after.clone().or_else(|| (!is_gone).then(String::new))
}

#[cfg(test)]
mod tests {
    use crate::changes::cumulative_diff::*;

    fn file_change(old: Option<&str>, new: Option<&str>) -> FileChange {
        let (from, to) = (
            if old.is_some() { "a/x" } else { "/dev/null" },
            if new.is_some() { "b/x" } else { "/dev/null" },
        );
        let (before, after) = (old.unwrap_or(""), new.unwrap_or(""));
        let diff = similar::TextDiff::from_lines(before, after);
        FileChange {
            path: "/w/x".into(),
            diff: diff.unified_diff().context_radius(3).header(from, to).to_string(),
            added: 1,
            removed: 1,
            sha256_before: old.map(|old| format!("#{old}")),
            sha256_after: new.map(|new| format!("#{new}")),
        }
    }

    fn net_diff(changes: &[FileChange]) -> Option<FileDiff> {
        let mut file = ChangedText::new(&changes[0]);
        changes[1..].iter().for_each(|change| file.add(change));
        file.finish(Path::new("/w/x"), Path::new("/w"))
    }

    #[test]
    fn cumulative_diff_shows_first_to_last_change() {
        let made =
            net_diff(&[file_change(None, Some("a\n")), file_change(Some("a\n"), Some("b\nc\n"))]).unwrap();
        assert_eq!((made.change, made.exact, made.changes), (ChangeKind::Created, true, 2));
        assert_eq!(made.diff, "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+b\n+c\n");
        assert_eq!((made.added, made.removed), (2, 0));
        let removal =
            net_diff(&[file_change(Some("a\n"), Some("b\n")), file_change(Some("b\n"), None)]).unwrap();
        assert_eq!(
            (removal.change, removal.diff.as_str()),
            (ChangeKind::Removed, "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n")
        );
        assert_eq!(net_diff(&[file_change(None, Some("a\n")), file_change(Some("a\n"), None)]), None);
        assert_eq!(
            net_diff(&[file_change(Some("a\n"), Some("b\n")), file_change(Some("b\n"), Some("a\n"))]),
            None
        );
    }

    #[test]
    fn cumulative_diff_marks_foreign_and_unknown_changes() {
        let other = net_diff(&[file_change(Some("a\n"), Some("b\n")), file_change(Some("x\n"), Some("y\n"))])
            .unwrap();
        assert!(!other.exact);
        assert_eq!(other.diff, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n@@ -1 +1 @@\n-x\n+y\n");
        let lost = FileChange { diff: String::new(), ..file_change(Some("b\n"), Some("c\n")) };
        let lost =
            net_diff(&[file_change(Some("a\n"), Some("b\n")), lost, file_change(Some("c\n"), Some("d\n"))])
                .unwrap();
        assert!(
            !lost.exact && lost.diff.contains("[a change of +1 −1 lines, of which only a part is stored]"),
            "{}",
            lost.diff
        );
        assert!(lost.diff.contains("-a\n+b\n") && lost.diff.contains("-c\n+d\n"));
    }
}
