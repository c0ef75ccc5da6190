//! Slash commands from Markdown files. The body is the prompt; `$ARGUMENTS` and `$1` to `$9` are replaced.

use std::path::{Path, PathBuf};

use super::front_matter;
use super::{Diagnostic, ExtensionSource, MarkdownFile};
use types::slug::slug_with;

/// The folders of a project with commands, the most specific first.
pub const PROJECT_FOLDERS: [&str; 3] = [".agentd/commands", ".claude/commands", ".kode/commands"];

/// Characters of a description that is taken from the body.
const MAX_DESCRIPTION_CHARS: usize = 100;
/// Maximum bytes of a prompt after the arguments are filled in.
const MAX_PROMPT_BYTES: usize = 1 << 20;

/// A command of a Markdown file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomCommand {
    /// Its name; a sub-folder is a prefix: `team:review`.
    pub name: String,
    /// Its description, for users.
    pub description: String,
    /// Its arguments, for users.
    pub argument_hint: Option<String>,
    /// Rules that allow calls while its turn runs.
    pub allowed_tools: Vec<String>,
    /// The model of its turn.
    pub model: Option<String>,
    /// The owner of the file.
    pub source: ExtensionSource,
    /// The file.
    pub path: PathBuf,
    /// Whether it is a skill.
    pub is_skill: bool,
    pub(super) body: String,
}

/// The user's folders with commands, the most specific first.
#[must_use]
pub fn user_folders(config_dir: Option<&Path>, home: &Path) -> Vec<PathBuf> {
    let own = config_dir.map(|dir| dir.join("commands"));
    own.into_iter().chain([home.join(".claude/commands"), home.join(".kode/commands")]).collect()
}

/// The commands of these files. A name is made of those of the folders and of the file, so that it can be typed.
#[must_use]
pub fn parse(files: Vec<MarkdownFile>, source: ExtensionSource) -> (Vec<CustomCommand>, Vec<Diagnostic>) {
    let (mut commands, mut diagnostics) = (Vec::new(), Vec::new());
    for MarkdownFile { path, name, text } in files {
        let parsed = match typed_name(&name.join(":")) {
            Some(name) => command(name, &text, source, &path),
            None => Err(format!("{:?} cannot be typed as a command: use letters and digits", name.join(":"))),
        };
        match parsed {
            Ok(command) => commands.push(command),
            Err(message) => diagnostics.push(Diagnostic { path, message }),
        }
    }
    (commands, diagnostics)
}

/// The name as which a command or a skill is typed; `None` if it has neither letters nor digits.
#[must_use]
pub fn typed_name(name: &str) -> Option<String> {
    let typed = slug_with(name, &[':', '.']);
    let begins = |c: char| c.is_alphanumeric();
    let typed = typed.trim_start_matches(|c| !begins(c));
    (!typed.is_empty()).then(|| typed.to_owned())
}

fn command(name: String, text: &str, source: ExtensionSource, path: &Path) -> Result<CustomCommand, String> {
    let (front, body) = front_matter::read(text, |_| false)?;
    if body.trim().is_empty() {
        return Err("the file has no text after its front matter".into());
    }
    let one_line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = || {
        let line = body.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        line.trim_start_matches('#').trim().chars().take(MAX_DESCRIPTION_CHARS).collect()
    };
    Ok(CustomCommand {
        name,
        description: front.text("description").map(one_line).unwrap_or_else(first),
        argument_hint: front.written("argumenthint").map(one_line).filter(|hint| !hint.is_empty()),
        allowed_tools: front.list("allowedtools"),
        model: front.text("model"),
        source,
        path: path.to_owned(),
        is_skill: false,
        body: body.trim().to_owned(),
    })
}

impl CustomCommand {
    /// The prompt with these arguments. If the file names no place for them, they follow it.
    ///
    /// # Errors
    /// The prompt is too long.
    pub fn expand(&self, arguments: &str) -> Result<String, String> {
        let words = split_words(arguments);
        let (mut prompt, mut rest, mut has_place) = (String::new(), self.body.as_str(), false);
        while let Some(at) = rest.find('$') {
            prompt.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix("ARGUMENTS") {
                prompt.push_str(arguments);
                (rest, has_place) = (after, true);
            } else if let Some(number) = parse_argument_number(rest) {
                prompt.push_str(words.get(number - 1).map_or("", String::as_str));
                (rest, has_place) = (&rest[1..], true);
            } else {
                prompt.push('$');
            }
            if prompt.len() > MAX_PROMPT_BYTES {
                return Err(format!("/{}: the prompt has more than {MAX_PROMPT_BYTES} bytes", self.name));
            }
        }
        prompt.push_str(rest);
        if !has_place && !arguments.is_empty() {
            prompt.push_str("\n\nArguments: ");
            prompt.push_str(arguments);
        }
        Ok(prompt)
    }
}

/// The number of `1` to `9` at the beginning. A longer number, for example an amount of money, is text.
fn parse_argument_number(rest: &str) -> Option<usize> {
    let mut chars = rest.chars();
    let digit = chars.next()?.to_digit(10).filter(|digit| *digit > 0)?;
    let is_longer = chars.next().is_some_and(|next| next.is_ascii_digit());
    (!is_longer).then_some(digit as usize)
}

/// The words of a text. Quotes keep spaces together.
fn split_words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<CustomCommand, String> {
        command("x".into(), text, ExtensionSource::User, Path::new("x.md"))
    }

    #[test]
    fn command_file_gives_options_and_description() {
        let text = "---\ndescription: Review a file\nargument-hint: FILE\nallowed-tools: Bash(git diff:*), Read\n\
                    model: p/m\nunknown: {a: [1]}\n---\n\nReview $1.\n";
        let command = load(text).expect("right");
        assert_eq!(command.description, "Review a file");
        assert_eq!(command.argument_hint.as_deref(), Some("FILE"));
        assert_eq!(command.allowed_tools, ["Bash(git diff:*)", "Read"]);
        assert_eq!(command.model.as_deref(), Some("p/m"));
        assert_eq!(load("\n# Look around\nnow").expect("right").description, "Look around");
        assert!(load("---\ndescription: x\n---\n \n").is_err());
        assert_eq!(load("---\ndescription: [\n---\nx").expect("tolerant").description, "[");
    }

    #[test]
    fn arguments_are_filled_in_or_appended() {
        let expand =
            |body: &str, arguments: &str| load(body).expect("right").expand(arguments).expect("short");
        assert_eq!(expand("Fix $ARGUMENTS now", "a  b"), "Fix a  b now");
        assert_eq!(expand("$1, $2, $3.", "one 'two three'"), "one, two three, .");
        assert_eq!(expand("Cost: $10 and $x", ""), "Cost: $10 and $x");
        assert_eq!(expand("Do it.", "in src"), "Do it.\n\nArguments: in src");
        // Arguments are not expanded again.
        assert_eq!(expand("$ARGUMENTS", "$1 $ARGUMENTS"), "$1 $ARGUMENTS");
        let many = load(&"$ARGUMENTS ".repeat(2_000)).expect("right");
        assert!(many.expand(&"x".repeat(10_000)).is_err());
    }

    #[test]
    fn names_are_made_so_that_they_can_be_typed() {
        let file = |name: &[&str]| MarkdownFile {
            path: name.concat().into(),
            name: name.iter().map(|part| (*part).to_owned()).collect(),
            text: "Do it.".into(),
        };
        let names: [(&[&str], &str); 7] = [
            (&["good"], "good"),
            (&["Not Good"], "not-good"),
            (&["team", "Code Review"], "team:code-review"),
            (&["v1.2"], "v1.2"),
            (&["代码审查"], "代码审查"),
            (&["_private"], "private"),
            (&["2fast"], "2fast"),
        ];
        for (name, expected) in names {
            let (commands, _) = parse(vec![file(name)], ExtensionSource::Project);
            assert_eq!(commands[0].name, expected);
        }
        let (commands, diagnostics) = parse(vec![file(&["!!"])], ExtensionSource::Project);
        assert!(commands.is_empty() && diagnostics[0].message.contains("!!"), "{diagnostics:?}");
    }

    #[test]
    fn front_matter_is_read_as_people_write_it() {
        for (line, hint) in [
            ("description: Fix: this [now]", None),
            ("description: Fix: this [now]\nargument-hint: [a] [b]", Some("[a] [b]")),
            ("description: Fix: this [now]\nargument-hint: <file>: x", Some("<file>: x")),
        ] {
            let command =
                load(&format!("---\n{line}\nallowed-tools: Read Bash(git diff:*)\n---\nx")).expect("right");
            assert_eq!(command.description, "Fix: this [now]", "{line}");
            assert_eq!(command.argument_hint.as_deref(), hint, "{line}");
            assert_eq!(command.allowed_tools, ["Read", "Bash(git diff:*)"], "{line}");
        }
    }

    proptest::proptest! {
        /// No text of a file or of a user causes any failure of the parser or the expansion other than an error.
        #[test]
        fn any_file_and_arguments_are_parsed_or_refused(text in "(---\n[ a-z:\\-\\[\\]{}&*'\"|>\n]{0,80}\n---\n)?[ a-z$0-9A-Zé\n]{0,80}", arguments in ".{0,40}") {
            if let Ok(command) = load(&text) {
                let prompt = command.expand(&arguments).expect("short");
                proptest::prop_assert!(!prompt.is_empty() || arguments.is_empty() || text.contains('$'));
            }
        }
    }
}
