//! Records in a file which notices and questions a user has seen, so that they are not repeated.

use std::path::Path;

/// Maximum bytes of a file. Beyond it, the oldest half is removed, and these notices appear once more.
const MAX_BYTES: usize = 64 << 10;

/// File with the folders whose trust was asked about, one in each line.
pub(crate) const ASKED_TRUST_FILE: &str = "asked-trust";

pub(crate) fn is_recorded(file: &Path, line: &str) -> bool {
    std::fs::read_to_string(file).is_ok_and(|known| known.lines().any(|it| it == line))
}

/// Records a line in a file. Returns false if the file already contains the line. Also returns false if
/// recording fails, because otherwise the notice would appear again and again.
pub(crate) fn is_first_time(file: &Path, line: &str) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    if text.lines().any(|it| it == line) || line.contains('\n') {
        return false;
    }
    let retained_lines = match text.len() > MAX_BYTES {
        true => &text[text.floor_char_boundary(text.len() / 2)..],
        false => &text,
    };
    std::fs::write(file, format!("{retained_lines}{line}\n")).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_line_is_new_only_once() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("asked");
        assert!(is_first_time(&file, "/w") && is_first_time(&file, "/v"));
        assert!(!is_first_time(&file, "/w"));
        assert!(
            is_recorded(&file, "/w")
                && !is_recorded(&file, "/")
                && !is_recorded(&dir.path().join("no"), "/w")
        );
        assert!(!is_first_time(&dir.path().join("missing/file"), "/w"), "it could not be recorded");
    }
}
