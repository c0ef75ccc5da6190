//! Edits a text in the user's editor.

use std::io::{self, Write as _};
use std::process::Stdio;

use tokio::process::Command;

fn editor() -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    set("VISUAL").or_else(|| set("EDITOR"))
}

/// Whether an editor is configured.
pub(in crate::client) fn has_editor() -> bool {
    editor().is_some()
}

/// Waits until the user closes the editor. The terminal must not be in raw mode.
///
/// # Errors
/// There is no editor, it failed, or the text is not UTF-8.
pub(in crate::client) async fn in_editor(text: &str) -> io::Result<String> {
    let editor = editor().ok_or_else(|| io::Error::other("EDITOR is not set"))?;
    let path = std::env::temp_dir().join(format!("agentctl-{}.json", uuid::Uuid::now_v7()));
    // Readable only by the owner, and never over an existing file.
    let made = {
        use std::os::unix::fs::OpenOptionsExt as _;
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)
    };
    made?.write_all(text.as_bytes())?;
    // The variable may contain arguments: the shell splits it, and the file stays one word.
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(&path)
        .stdin(Stdio::inherit())
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .status()
        .await;
    let changed = std::fs::read_to_string(&path);
    let _ = std::fs::remove_file(&path);
    let status = status?;
    if status.success() { changed } else { Err(io::Error::other(format!("it ended with {status}"))) }
}
