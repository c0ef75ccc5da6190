//! Slash commands from Markdown files. The body is the prompt; `$ARGUMENTS` and `$1` to `$9` are replaced.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::front_matter;
use super::{Diagnostic, ExtensionSource, MarkdownFile};

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

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct FrontMatter {
    description: Option<String>,
    argument_hint: Option<String>,
    #[serde(deserialize_with = "front_matter::list", alias = "allowed_tools")]
    allowed_tools: Vec<String>,
    model: Option<String>,
}

/// The user's folders with commands, the most specific first.
#[must_use]
pub fn user_folders(config_dir: Option<&Path>, home: &Path) -> Vec<PathBuf> {
    let own = config_dir.map(|dir| dir.join("commands"));
    own.into_iter().chain([home.join(".claude/commands"), home.join(".kode/commands")]).collect()
}

/// The commands of these files. `is_name` says whether a text may be a command's name.
#[must_use]
pub fn parse(
    files: Vec<MarkdownFile>,
    source: ExtensionSource,
    is_name: fn(&str) -> bool,
) -> (Vec<CustomCommand>, Vec<Diagnostic>) {
    let (mut commands, mut diagnostics) = (Vec::new(), Vec::new());
    for MarkdownFile { path, name, text } in files {
        let name = name.join(":");
        let parsed = if is_name(&name) {
            command(name, &text, source, &path)
        } else {
            Err(format!(
                "{name:?} cannot be typed as a command: use a-z, 0-9, _ and -, and begin with a letter"
            ))
        };
        match parsed {
            Ok(command) => commands.push(command),
            Err(message) => diagnostics.push(Diagnostic { path, message }),
        }
    }
    (commands, diagnostics)
}

fn command(name: String, text: &str, source: ExtensionSource, path: &Path) -> Result<CustomCommand, String> {
    let (front, body) = front_matter::read::<FrontMatter>(text)?;
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
        description: front.description.map(one_line).filter(|it| !it.is_empty()).unwrap_or_else(first),
        argument_hint: front.argument_hint.map(one_line).filter(|hint| !hint.is_empty()),
        allowed_tools: front.allowed_tools,
        model: front.model.map(|model| model.trim().to_owned()).filter(|model| !model.is_empty()),
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
        assert!(load("---\ndescription: [\n---\nx").is_err());
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
    fn file_with_invalid_name_is_reported() {
        let file =
            |name: &str| MarkdownFile { path: name.into(), name: vec![name.into()], text: "Do it.".into() };
        let is_name = |name: &str| name.chars().all(|c| c.is_ascii_lowercase());
        let (commands, diagnostics) =
            parse(vec![file("good"), file("Not Good")], ExtensionSource::Project, is_name);
        assert_eq!(commands.len(), 1);
        assert!(diagnostics[0].message.contains("Not Good"), "{diagnostics:?}");
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
