//! The words of a command line, as cron and a shell read them.

/// A word of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub text: String,
    /// It is an unquoted operator of the shell.
    pub is_operator: bool,
    is_quoted: bool,
}

impl Word {
    pub fn is(&self, text: &str) -> bool {
        self.text == text
    }

    pub fn is_assignment(&self) -> bool {
        let name = self.text.split_once('=').map(|(name, _)| name).unwrap_or_default();
        !name.is_empty() && !self.is_operator && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    }
}

/// Splits a command as cron and a shell do. A `%` that is not escaped ends the command of a crontab.
pub(super) fn split_words(command: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut current: Option<Word> = None;
    let new = || Word { text: String::new(), is_operator: false, is_quoted: false };
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '%' => {
                return Err(
                    "a % that is not escaped is standard input in a crontab; that cannot be translated"
                        .into(),
                );
            }
            '\\' => match chars.next() {
                Some(next) => current.get_or_insert_with(new).text.push(next),
                None => return Err("the line ends with a backslash".to_owned()),
            },
            '\'' | '"' => {
                let word = current.get_or_insert_with(new);
                word.is_quoted = true;
                read_quoted(c, &mut chars, &mut word.text)?;
            }
            c if c.is_whitespace() => words.extend(current.take()),
            '$' | '`' | '(' | ')' | '*' | '?' | '~' | '{'
                if current.as_ref().is_none_or(|it| c != '~' || it.text.is_empty()) =>
            {
                return Err(format!("the shell would replace {c:?}; write the text itself"));
            }
            '|' | '&' | ';' | '<' | '>' => {
                let mut operator = String::new();
                // `2>` belongs together.
                match current.take() {
                    Some(word) if c == '>' && !word.is_quoted && (word.is("1") || word.is("2")) => {
                        operator = word.text;
                    }
                    other => words.extend(other),
                }
                operator.push(c);
                while let Some(next) = chars.next_if(|next| matches!(next, '|' | '&' | ';' | '<' | '>')) {
                    operator.push(next);
                }
                if operator.ends_with(">&") {
                    operator.extend(chars.next_if(char::is_ascii_digit));
                }
                words.push(Word { text: operator, is_operator: true, is_quoted: false });
            }
            c => current.get_or_insert_with(new).text.push(c),
        }
    }
    words.extend(current);
    Ok(words)
}

fn read_quoted(
    quote: char,
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    text: &mut String,
) -> Result<(), String> {
    while let Some(c) = chars.next() {
        match c {
            c if c == quote => return Ok(()),
            '%' => {
                return Err(
                    "a % that is not escaped is standard input in a crontab; that cannot be translated"
                        .into(),
                );
            }
            // cron takes the backslash before % away, whatever the quotes are.
            '\\' if chars.peek() == Some(&'%') => text.extend(chars.next()),
            '\\' if quote == '"' => match chars.next() {
                Some(next @ ('"' | '\\' | '$' | '`')) => text.push(next),
                Some(next) => text.extend(['\\', next]),
                None => break,
            },
            '$' | '`' if quote == '"' => {
                return Err(format!("the shell would replace {c:?}; write the text itself"));
            }
            c => text.push(c),
        }
    }
    Err("a quote is not closed".to_owned())
}

/// The text as one word of a shell.
pub(super) fn quote(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./@:=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}
