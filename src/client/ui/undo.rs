//! The command that removes a lasting grant. A user can paste it into a shell in any folder.

use std::fmt::Write as _;

use crate::terminal::escape;
use crate::terminal::style::{StyledLine, Tone, width};
use types::ids::SessionId;
use types::permission::Scope;

/// The lines that explain how to remove a grant, at most `columns` wide. A grant that does not last has no
/// lines. `flags` are `ClientPaths::flags`, because without them the pasted command could reach another
/// daemon.
pub(crate) fn lines(
    scope: Scope,
    grant: &str,
    session: SessionId,
    cwd: &str,
    flags: &[String],
    columns: usize,
) -> Vec<StyledLine> {
    if scope == Scope::Once {
        return Vec::new();
    }
    let mut rows = Rows { rows: vec![String::new()], columns: columns.max(20) };
    if scope == Scope::Project {
        rows.push("cd");
        rows.push_quoted(cwd);
        rows.push("&&");
    }
    rows.push("agentctl");
    for word in flags {
        if word.starts_with("--") { rows.push(word) } else { rows.push_quoted(word) }
    }
    rows.push("rules rm");
    if scope == Scope::Session {
        rows.push("--session");
        rows.push(&session.to_string());
    }
    rows.push_quoted(grant);
    let head = StyledLine::new(Tone::Dim, "  allowed from now on; to undo it:");
    std::iter::once(head).chain(rows.rows.into_iter().map(|row| StyledLine::new(Tone::Plain, row))).collect()
}

/// A shell command in rows. A row that continues in the next one ends with a backslash.
struct Rows {
    rows: Vec<String>,
    columns: usize,
}

impl Rows {
    /// Appends words.
    fn push(&mut self, words: &str) {
        let is_first = self.rows.last().is_none_or(String::is_empty);
        self.push_after(if is_first { "" } else { " " }, words);
    }

    /// Appends a piece after a blank, or directly after the last piece.
    fn push_after(&mut self, blank: &str, piece: &str) {
        let Some(row) = self.rows.last_mut() else { return };
        // Leave one column for the backslash, and one for the blank before it.
        if !row.is_empty() && width(row) + blank.len() + width(piece) + 2 > self.columns {
            let _ = write!(row, "{blank}\\");
            self.rows.push(piece.to_owned());
        } else {
            let _ = write!(row, "{blank}{piece}");
        }
    }

    /// Appends a word with the quotes that it needs. A long word becomes several pieces.
    fn push_quoted(&mut self, word: &str) {
        let mut is_first = true;
        let mut rest: Vec<char> = word.chars().collect();
        // Leave four columns for the quotes with a `$`, and two for the end of the row.
        let room = self.columns.saturating_sub(6).max(8);
        while let Some(first) = rest.first() {
            let is_odd = is_odd(*first);
            let (mut count, mut used) = (0, 0);
            for c in rest.iter().take_while(|c| crate::ui::undo::is_odd(**c) == is_odd) {
                used += if is_odd { escape_char(*c).len() } else { width(c.encode_utf8(&mut [0; 4])) };
                if used > room && count > 0 {
                    break;
                }
                count += 1;
            }
            let piece: String = match is_odd {
                true => format!("$'{}'", rest[..count].iter().map(|c| escape_char(*c)).collect::<String>()),
                false => format!("'{}'", rest[..count].iter().collect::<String>()),
            };
            match std::mem::take(&mut is_first) {
                true => self.push(&piece),
                false => self.push_after("", &piece),
            }
            rest.drain(..count);
        }
    }
}

/// Whether a character cannot be in single quotes, or could mislead a terminal.
fn is_odd(c: char) -> bool {
    c == '\'' || c == '\t' || !escape::line(c.encode_utf8(&mut [0; 4])).starts_with(c)
}

/// The character inside `$'…'`, as bash and zsh read it.
fn escape_char(c: char) -> String {
    match c {
        '\'' => "\\'".into(),
        '\n' => "\\n".into(),
        '\t' => "\\t".into(),
        c if c.is_ascii() => format!("\\x{:02x}", u32::from(c)),
        c => format!("\\U{:08x}", u32::from(c)),
    }
}

#[cfg(test)]
mod tests {
    use crate::ui::undo::*;
    use std::process::Command;

    fn session() -> SessionId {
        "ses_0190f2a4-0000-7000-8000-000000000001".parse().expect("an id")
    }

    fn command(scope: Scope, grant: &str, cwd: &str, columns: usize) -> Vec<String> {
        lines(scope, grant, session(), cwd, &[], columns).iter().skip(1).map(StyledLine::plain).collect()
    }

    #[test]
    fn lasting_grant_names_its_undo_command() {
        assert_eq!(command(Scope::Once, "Bash(make)", "/w", 100), [""; 0]);
        assert_eq!(
            command(Scope::Session, "Bash(make)", "/w", 100),
            [format!("agentctl rules rm --session {} 'Bash(make)'", session())]
        );
        assert_eq!(
            command(Scope::Project, "Bash(make)", "/w o", 100),
            ["cd '/w o' && agentctl rules rm 'Bash(make)'"]
        );
    }

    #[test]
    fn undo_command_repeats_socket_and_config_flags() {
        let flags = ["--socket", "/run/a b/s", "--config", "/c.toml"].map(String::from);
        let check = |scope, expected: String| {
            let rows: Vec<String> = lines(scope, "Bash(make)", session(), "/w", &flags, 400)
                .iter()
                .skip(1)
                .map(StyledLine::plain)
                .collect();
            assert_eq!(rows, [expected]);
        };
        let flags = "--socket '/run/a b/s' --config '/c.toml'";
        check(Scope::Project, format!("cd '/w' && agentctl {flags} rules rm 'Bash(make)'"));
        check(Scope::Session, format!("agentctl {flags} rules rm --session {} 'Bash(make)'", session()));
    }

    #[test]
    fn pasted_undo_command_passes_exact_rule() {
        let dir = tempfile::tempdir().expect("a folder");
        let cwd = dir.path().canonicalize().expect("there").display().to_string();
        let long =
            format!("Bash(echo {}it's \\ $HOME `x` \"q\"\n\t\u{202e}ü界\u{1b}[2J)", "word  ".repeat(30));
        for grant in ["Bash(make)", "Edit(a b/**)", &long] {
            for (scope, columns) in [(Scope::Project, 40), (Scope::Project, 200), (Scope::Session, 60)] {
                let rows = command(scope, grant, &cwd, columns);
                assert!(rows.iter().all(|row| width(row) <= columns && !row.contains('\u{1b}')), "{rows:?}");
                let script = format!("agentctl() {{ pwd; printf '%s\\0' \"$@\"; }}\n{}\n", rows.join("\n"));
                let output = Command::new("bash").args(["-c", &script]).current_dir("/").output();
                let stdout_text = String::from_utf8(output.expect("bash runs").stdout).expect("text");
                let expected = match scope {
                    Scope::Project => format!("{cwd}\nrules\0rm\0{grant}\0"),
                    _ => format!("/\nrules\0rm\0--session\0{}\0{grant}\0", session()),
                };
                assert_eq!(stdout_text, expected, "{rows:#?}");
            }
        }
    }
}
