//! Programs within arguments: sed and awk.

use crate::shell::lex::word::Word;
use crate::shell::programs::call::CommandCall;
use crate::shell::programs::special::reason_for;

/// A script in the words of a call: the index of its word, and its text.
type ScriptWord<'w> = (usize, &'w str);

/// sed: only commands that neither run nor write.
pub(crate) fn sed(call: &CommandCall<'_>) -> Option<String> {
    let scripts = sed_scripts(call.words);
    let is_unclear = |index: usize| {
        call.is_ungranted(index) && call.words.get(index).is_some_and(|word| !word.is_literal())
    };
    if let Some((_, script)) = scripts.iter().find(|(index, _)| is_unclear(*index)) {
        return reason_for(script, "the script of sed is not literal");
    }
    let (ungranted, granted): (Vec<_>, Vec<_>) =
        scripts.into_iter().partition(|(index, _)| call.is_ungranted(*index));
    // sed joins all scripts as lines of one script, and a script in the grant may end within a command.
    let continues_granted = granted.iter().any(|(_, script)| script.ends_with('\\'));
    let lines: Vec<&str> = ungranted.iter().map(|(_, script)| *script).collect();
    let joined = lines.join("\n");
    if !ungranted.is_empty() && (continues_granted || !is_harmless_sed(&joined)) {
        return reason_for(&joined, "this script of sed may run a program or write a file");
    }
    None
}

/// The scripts of a call of sed: the values of `-e`, or else the first operand.
fn sed_scripts(words: &[Word]) -> Vec<ScriptWord<'_>> {
    let mut scripts = Vec::new();
    let mut first_operand = None;
    let mut index = 1;
    let mut has_ended_options = false;
    while index < words.len() {
        let text = words[index].text.as_str();
        if has_ended_options || !text.starts_with('-') || text.len() == 1 {
            first_operand = first_operand.or(Some((index, text)));
        } else if text == "--" {
            has_ended_options = true;
        } else if text.starts_with("--") {
            let (option, value) =
                text.split_once('=').map_or((text, None), |(option, value)| (option, Some(value)));
            if "--expression".starts_with(option) {
                match value {
                    Some(value) => scripts.push((index, value)),
                    None => {
                        index += 1;
                        scripts.extend(words.get(index).map(|word| (index, word.text.as_str())));
                    }
                }
            } else if "--line-length".starts_with(option) && value.is_none() {
                index += 1;
            }
        } else if let Some(offset) = text.find(['e', 'l']) {
            let rest = &text[offset + 1..];
            let is_script = text.as_bytes()[offset] == b'e';
            if rest.is_empty() {
                index += 1;
                if is_script {
                    scripts.extend(words.get(index).map(|word| (index, word.text.as_str())));
                }
            } else if is_script {
                scripts.push((index, rest));
            }
        }
        index += 1;
    }
    if scripts.is_empty() {
        scripts.extend(first_operand);
    }
    scripts
}

/// Whether a sed script consists only of harmless commands.
fn is_harmless_sed(script: &str) -> bool {
    // The next script would continue this command.
    if script.ends_with('\\') {
        return false;
    }
    let mut reader = SedReader { text: script.as_bytes(), index: 0 };
    loop {
        reader.skip_while(|c| matches!(c, b' ' | b'\t' | b'\n' | b';'));
        if reader.skip_addresses().is_none() {
            return false;
        }
        reader.skip_while(|c| matches!(c, b' ' | b'!'));
        let Some(command) = reader.peek() else { return true };
        reader.index += 1;
        if reader.skip_arguments(command).is_none() {
            return false;
        }
        reader.skip_while(|c| c == b' ');
        let is_end = matches!(reader.peek(), None | Some(b';' | b'\n' | b'}' | b'#'));
        if !is_end && !matches!(command, b'{' | b'}') {
            return false;
        }
    }
}

/// Whether a delimited text of sed is a pattern, in which a class `[…]` may hold the delimiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SedText {
    Pattern,
    Replacement,
}

/// Reads a sed script. Its methods return `None` at what is not known to be harmless.
struct SedReader<'s> {
    text: &'s [u8],
    index: usize,
}

impl SedReader<'_> {
    /// The next byte.
    fn peek(&self) -> Option<u8> {
        self.text.get(self.index).copied()
    }

    /// Moves behind all bytes for which `is_skipped` holds.
    fn skip_while(&mut self, is_skipped: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&is_skipped) {
            self.index += 1;
        }
    }

    /// The byte that delimits the texts of a command.
    fn delimiter(&self, index: usize) -> Option<u8> {
        let sign = *self.text.get(index)?;
        (sign.is_ascii() && !matches!(sign, b'\\' | b'\n' | b'[' | b']')).then_some(sign)
    }

    /// Moves behind a text that an unescaped delimiter ends. `None` if the line ends first, or if a
    /// bracket expression of a pattern contains the delimiter.
    fn skip_delimited(&mut self, start: usize, sign: u8, kind: SedText) -> Option<()> {
        let mut index = start;
        let mut class = false;
        while let Some(&c) = self.text.get(index) {
            match c {
                b'\\' => index += 1,
                b'\n' => return None,
                b'[' if kind == SedText::Pattern && !class => {
                    class = true;
                    // A `]` directly after the opening is one of the characters.
                    if self.text.get(index + 1) == Some(&b'^') {
                        index += 1;
                    }
                    if self.text.get(index + 1) == Some(&b']') {
                        index += 1;
                    }
                }
                b']' if class => class = false,
                // Implementations differ on whether a class hides the sign: not harmless.
                c if c == sign && class => return None,
                c if c == sign => {
                    self.index = index + 1;
                    return Some(());
                }
                _ => {}
            }
            index += 1;
        }
        None
    }

    /// Moves behind up to two addresses: numbers, `$`, or patterns.
    fn skip_addresses(&mut self) -> Option<()> {
        for _ in 0..2 {
            match self.peek() {
                Some(b'0'..=b'9' | b'$' | b'+' | b'~') => {
                    self.index += 1;
                    self.skip_while(|c| c.is_ascii_digit() || matches!(c, b'~' | b'$'));
                }
                Some(b'/') => self.skip_delimited(self.index + 1, b'/', SedText::Pattern)?,
                Some(b'\\') => {
                    let sign = self.delimiter(self.index + 1)?;
                    self.skip_delimited(self.index + 2, sign, SedText::Pattern)?;
                }
                _ => {}
            }
            self.skip_while(|c| matches!(c, b'I' | b'M'));
            self.skip_while(|c| c == b' ');
            if self.peek() == Some(b',') {
                self.index += 1;
                self.skip_while(|c| c == b' ');
            }
        }
        Some(())
    }

    /// Moves behind the arguments of a harmless command.
    fn skip_arguments(&mut self, command: u8) -> Option<()> {
        match command {
            b'{' | b'}' | b'p' | b'P' | b'd' | b'D' | b'g' | b'G' | b'h' | b'H' | b'n' | b'N' | b'x'
            | b'=' | b'z' | b'F' => {}
            b'q' | b'Q' | b'l' | b'L' => self.skip_while(|c| c.is_ascii_digit() || c == b' '),
            b'#' => self.skip_while(|c| c != b'\n'),
            b'b' | b't' | b'T' | b':' => {
                self.skip_while(|c| c == b' ');
                // A blank ends a label (GNU sed 4.3 and later), and another command may follow.
                self.skip_while(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.'));
                // Versions differ on other ends.
                if self.peek() == Some(b'#') {
                    return None;
                }
            }
            b'a' | b'i' | b'c' => {
                // Text to the end of the line; a backslash continues it.
                while let Some(c) = self.peek().filter(|c| *c != b'\n') {
                    self.index += if c == b'\\' { 2 } else { 1 };
                }
            }
            b's' | b'y' => {
                let sign = self.delimiter(self.index)?;
                let kind = if command == b's' { SedText::Pattern } else { SedText::Replacement };
                self.skip_delimited(self.index + 1, sign, kind)?;
                self.skip_delimited(self.index, sign, SedText::Replacement)?;
                if command == b's' {
                    self.skip_while(|c| {
                        c.is_ascii_digit() || matches!(c, b'g' | b'p' | b'i' | b'I' | b'm' | b'M')
                    });
                }
            }
            _ => return None,
        }
        Some(())
    }
}

/// awk: programs without `system`, pipes and output to files.
pub(crate) fn awk(call: &CommandCall<'_>) -> Option<String> {
    let words = call.words;
    let mut programs = Vec::new();
    let mut first_operand = None;
    let mut index = 1;
    while index < words.len() {
        let text = words[index].text.as_str();
        if matches!(text, "-v" | "-F" | "--assign" | "--field-separator") {
            index += 1;
        } else if matches!(text, "-e" | "--source") {
            index += 1;
            programs.extend(words.get(index).map(|word| (index, word.text.as_str())));
        } else if let Some(rest) = text.strip_prefix("--source=").or_else(|| text.strip_prefix("-e")) {
            programs.push((index, rest));
        } else if text == "--" || !text.starts_with('-') || text == "-" {
            if text == "--" {
                index += 1;
            }
            first_operand = words.get(index).map(|word| (index, word.text.as_str()));
            break;
        } else if text.starts_with("--")
            && !matches!(text, "--posix" | "--version" | "--csv" | "--re-interval")
        {
            // gawk accepts abbreviations: `--so` is `--source`.
            if call.is_ungranted(index)
                && !text.starts_with("--field-separator=")
                && !text.starts_with("--assign=")
            {
                return reason_for(text, "this option of awk is not known");
            }
        }
        index += 1;
    }
    if programs.is_empty() {
        programs.extend(first_operand);
    }
    for (index, program) in programs {
        if call.is_ungranted(index) && (!words[index].is_literal() || !is_harmless_awk(program)) {
            return reason_for(program, "this awk program may run a program or write a file");
        }
    }
    None
}

/// Words with which an awk program accesses more than its input and output.
const AWK_REACHING_WORDS: &[&str] =
    &["system", "getline", "include", "load", "close", "extension", "@", "/inet", "/dev/"];

/// Whether an awk program only reads its input and prints.
///
/// Whether a `/` begins a pattern or divides depends on all text before it. So a program is harmless if
/// it could do no harm even with its strings and patterns read as code. In any other program every `/`
/// must be unambiguous.
fn is_harmless_awk(program: &str) -> bool {
    let pipes = |code: &str| code.replace("||", "  ").contains('|');
    let has_reaching_word = AWK_REACHING_WORDS.iter().any(|word| program.contains(word)) || pipes(program);
    let prints_to_file = program.find("print").is_some_and(|index| program[index..].contains('>'));
    if !has_reaching_word && !prints_to_file && !program.contains("\\\n") && !program.contains("\\\r") {
        return true;
    }
    let Some(code) = awk_code(program) else { return false };
    if pipes(&code)
        || code.contains('\\')
        || ["/inet", "/dev/"].iter().any(|offset| program.contains(offset))
        || AWK_REACHING_WORDS.iter().any(|word| code.contains(word))
    {
        return false;
    }
    // `print … > file`
    let mut statements = code.split([';', '}', '\n']);
    !statements.any(|statement| statement.find("print").is_some_and(|index| statement[index..].contains('>')))
}

/// The code of an awk program without its strings and patterns. A statement never spans lines. `None`
/// if the result would be uncertain.
fn awk_code(program: &str) -> Option<String> {
    let mut code = String::new();
    let mut letters = program.chars();
    let mut before = ';';
    let mut open = 0_usize;
    while let Some(c) = letters.next() {
        match c {
            '"' => loop {
                match letters.next()? {
                    '\\' => {
                        letters.next();
                    }
                    '"' => break,
                    '\n' => return None,
                    _ => {}
                }
            },
            '/' if matches!(before, '(' | ',' | '{' | ';' | '!' | '~' | '&') => loop {
                match letters.next()? {
                    '\\' => {
                        letters.next();
                    }
                    // A class may contain a `/`; it is not parsed.
                    '[' | '\n' => return None,
                    '/' => break,
                    _ => {}
                }
            },
            '/' | '#' => return None,
            '(' => open += 1,
            ')' => open = open.saturating_sub(1),
            _ => {}
        }
        // A statement continues after these signs.
        let is_continued = open > 0 || matches!(before, ',' | '&' | '|');
        code.push(if c == '\n' && is_continued { ' ' } else { c });
        if !(matches!(c, ' ' | '\t') || c == '\n' && is_continued) {
            before = if c == '\n' { ';' } else { c };
        }
    }
    Some(code)
}
