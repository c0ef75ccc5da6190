//! Slash commands from Markdown files. The body is the prompt; see [`super::Expansion`] for what is put into it.

use std::path::{Path, PathBuf};

use super::front_matter;
use super::{Diagnostic, ExtensionSource, MarkdownFile};
use types::slug::slug_with;

/// The folders of a project with commands, the most specific first.
pub const PROJECT_FOLDERS: [&str; 3] = [".agentd/commands", ".claude/commands", ".kode/commands"];

/// Characters of a description that is taken from the body.
const MAX_DESCRIPTION_CHARS: usize = 100;

/// A command of a Markdown file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomCommand {
    /// Its name; a sub-folder is a prefix: `team:review`.
    pub name: String,
    /// Its description, for users.
    pub description: String,
    /// Its arguments, for users.
    pub argument_hint: Option<String>,
    /// Names of its arguments, in order.
    pub argument_names: Vec<String>,
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
        argument_names: front.names("arguments"),
        allowed_tools: front.list("allowedtools"),
        model: front.text("model"),
        source,
        path: path.to_owned(),
        is_skill: false,
        body: body.trim().to_owned(),
    })
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
}
