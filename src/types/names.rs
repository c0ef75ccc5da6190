//! Comparison of file names: it finds spellings that some file systems treat as the same name.
//!
//! There are three sources. Case-insensitive file systems (Linux `utf8n`, HFS+) ignore the Unicode property
//! Default_Ignorable_Code_Point. Case-insensitive ext4 and f2fs use full case folding (CaseFolding.txt, status F).
//! Windows has rules for trailing dots and blanks, streams and short names, as in git's `is_ntfs_dotgit`
//! (CVE-2014-9390).

use super::invisible_chars::{EMOJI_SELECTOR, is_invisible};

/// The name as the most tolerant file system would compare it. It ignores case, combining marks, ignorable
/// characters, full width, trailing dots and blanks, and streams.
#[must_use]
pub fn fold_case(name: &str) -> String {
    let folded =
        without_ignored_end(if name.is_ascii() { name.to_ascii_lowercase() } else { ascii_plain(name) });
    // Keep the name if the result is not a valid file name. For example, a name of only combining marks is not
    // another spelling of the folder that contains it.
    if matches!(folded.as_str(), "" | "." | "..") { name.to_owned() } else { folded }
}

/// Whether [`fold_case`] certainly returns the name unchanged.
#[must_use]
pub fn is_folded(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase() && byte != b':';
    name.bytes().all(is_plain) && !name.ends_with(['.', ' '])
}

/// The name in lower-case ASCII, as far as such letters exist, without ignorable characters.
fn ascii_plain(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for c in name.chars().map(narrow_letter).flat_map(char::to_lowercase).filter(|c| !is_ignored(*c)) {
        match ascii_spelling(c) {
            Some(letters) => plain.push_str(letters),
            None => plain.push(c),
        }
    }
    plain
}

/// ASCII letters that equal this lower-case character in the tables of some file systems. Some tables contain the
/// long s, the dotless i and the Kelvin sign (through its lower case). Full case folding (ext4, f2fs) adds sharp s
/// and the ligatures.
fn ascii_spelling(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{17f}' => "s",
        '\u{131}' => "i",
        '\u{df}' => "ss",
        '\u{fb00}' => "ff",
        '\u{fb01}' => "fi",
        '\u{fb02}' => "fl",
        '\u{fb03}' => "ffi",
        '\u{fb04}' => "ffl",
        '\u{fb05}' | '\u{fb06}' => "st",
        _ => return None,
    })
}

/// Removes the end of a name that Windows ignores. It compares bytes, because it runs for every component of every
/// path.
fn without_ignored_end(mut name: String) -> String {
    if let Some(stream) = name.bytes().position(|byte| byte == b':').filter(|at| *at > 0) {
        name.truncate(stream);
    }
    let ignored = name.bytes().rev().take_while(|byte| matches!(byte, b'.' | b' ')).count();
    if ignored < name.len() {
        name.truncate(name.len() - ignored);
    }
    name
}

/// Maps full-width letters to ASCII, except the slash: a name cannot contain one.
fn narrow_letter(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff0e}' | '\u{ff10}'..='\u{ff5e}' => {
            char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c)
        }
        c => c,
    }
}

/// Combining marks and invisible characters.
fn is_ignored(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}' | EMOJI_SELECTOR)
        || is_invisible(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equivalent_file_name_spellings_fold_to_same_case() {
        for (name, expected) in [
            (".git", ".git"),
            (".GIT", ".git"),
            (".g\u{130}t", ".git"),
            (".g\u{131}t", ".git"),
            (".g\u{200c}it", ".git"),
            (".gi\u{fe0f}t", ".git"),
            (".git\u{301}", ".git"),
            ("\u{ff0e}\u{ff27}\u{ff49}\u{ff54}", ".git"),
            (".git ", ".git"),
            (".git...", ".git"),
            (".git::$INDEX_ALLOCATION", ".git"),
            (".\u{17f}\u{17f}h", ".ssh"),
            ("hoo\u{212a}s", "hooks"),
            ("\u{ff0f}x", "\u{ff0f}x"),
            (".\u{1e9e}h", ".ssh"),
            (".bash_hi\u{fb06}ory", ".bash_history"),
            ("..", ".."),
            ("...", "..."),
            (" ", " "),
            (":", ":"),
            ("été", "été"),
            ("\u{31e}\u{31e}", "\u{31e}\u{31e}"),
            ("..\u{301}", "..\u{301}"),
            (".:x", ".:x"),
        ] {
            assert_eq!(fold_case(name), expected, "{name:?}");
            assert!(!is_folded(name) || name == expected, "{name:?}");
        }
        assert_eq!(fold_case("e\u{301}"), "e");
        assert!(is_folded(".git") && is_folded("a b.c") && !is_folded("A") && !is_folded("a."));
    }
}
