//! Skills: folders with a `SKILL.md`, whose text is loaded when a task needs it. Only names and descriptions are in
//! the prompt. The other files of the folder are read with the ordinary tools.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::commands::{CustomCommand, typed_name};
use super::{Diagnostic, ExtensionSource, MarkdownFile, front_matter};

/// The folders of a project with skills, the most specific first.
pub const PROJECT_FOLDERS: [&str; 3] = [".agentd/skills", ".claude/skills", ".kode/skills"];

/// The file that describes a skill.
const SKILL_FILE: &str = "SKILL.md";
/// Maximum bytes of that file.
const MAX_FILE_BYTES: u64 = 128 * 1024;
/// Maximum number of skills in one folder.
const MAX_SKILLS: usize = 200;
/// Maximum characters of a description in the prompt.
const MAX_DESCRIPTION_CHARS: usize = 400;
/// Maximum bytes of all names and descriptions in the prompt.
const MAX_LIST_BYTES: usize = 8 * 1024;

/// A skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// The skill as a slash command: name, description, prompt.
    pub command: CustomCommand,
    /// Its folder.
    pub folder: PathBuf,
    /// Whether the model knows of it. If not, only the user starts it.
    pub is_listed: bool,
    text: String,
}

/// The user's folders with skills, the most specific first.
#[must_use]
pub fn user_folders(config_dir: Option<&Path>, home: &Path) -> Vec<PathBuf> {
    let own = config_dir.map(|dir| dir.join("skills"));
    own.into_iter().chain([home.join(".claude/skills"), home.join(".kode/skills")]).collect()
}

/// The `SKILL.md` files of a folder in the order of their names. A missing folder has none. Blocking.
#[must_use]
pub fn scan(folder: &Path) -> (Vec<MarkdownFile>, Vec<Diagnostic>) {
    let (mut files, mut diagnostics) = (Vec::new(), Vec::new());
    let (Ok(root), Ok(listed)) = (folder.canonicalize(), fs::read_dir(folder)) else {
        return (files, diagnostics);
    };
    let mut names: Vec<_> = listed.flatten().take(MAX_SKILLS + 1).map(|entry| entry.file_name()).collect();
    if names.len() > MAX_SKILLS {
        names.truncate(MAX_SKILLS);
        let message = format!("only {MAX_SKILLS} skills are read");
        diagnostics.push(Diagnostic { path: folder.to_owned(), message });
    }
    names.sort_unstable();
    for name in names {
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        let path = folder.join(name).join(SKILL_FILE);
        match read(&path, &root) {
            Ok(Some(text)) => {
                files.push(MarkdownFile { path, name: vec![name.to_owned(), "SKILL".into()], text });
            }
            Ok(None) => {}
            Err(message) => diagnostics.push(Diagnostic { path, message }),
        }
    }
    (files, diagnostics)
}

/// Reads a file that may not lead out of `root`; `None` if it does not exist.
fn read(path: &Path, root: &Path) -> Result<Option<String>, String> {
    let Ok(resolved) = path.canonicalize() else { return Ok(None) };
    // Another skill of the same folder is outside, too.
    if !resolved.starts_with(root) {
        return Err("the link leaves the folder and is not followed".into());
    }
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let could_not = |error: std::io::Error| format!("could not read the file: {error}");
    let file = File::options().read(true).custom_flags(flags).open(&resolved).map_err(could_not)?;
    if !file.metadata().map_err(could_not)?.is_file() {
        return Err("it is not a file".into());
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(could_not)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("the file is too long; at most {MAX_FILE_BYTES} bytes are read"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| "the content is not UTF-8".into())
}

/// Whether a file below a folder of skills is the description of a skill, or a link in the place of a skill.
#[must_use]
pub fn is_description(below: &Path, is_readable: bool) -> bool {
    match below.components().count() {
        1 => !is_readable,
        2 => below.file_name().is_some_and(|name| name == SKILL_FILE),
        _ => false,
    }
}

/// The skills of these files.
#[must_use]
pub fn parse(files: Vec<MarkdownFile>, source: ExtensionSource) -> (Vec<Skill>, Vec<Diagnostic>) {
    let (mut skills, mut diagnostics) = (Vec::new(), Vec::new());
    for MarkdownFile { path, name, text } in files {
        let of_folder = name.into_iter().next().unwrap_or_default();
        match skill(&of_folder, &text, source, &path) {
            Ok(skill) => skills.push(skill),
            Err(message) => diagnostics.push(Diagnostic { path, message }),
        }
    }
    (skills, diagnostics)
}

fn skill(of_folder: &str, text: &str, source: ExtensionSource, path: &Path) -> Result<Skill, String> {
    let (front, body) = front_matter::read(text, |_| false)?;
    if body.trim().is_empty() {
        return Err("the file has no text after its front matter".into());
    }
    let names = front.text("name").into_iter().chain([of_folder.to_owned()]);
    let Some(name) = names.into_iter().find_map(|name| typed_name(&name)) else {
        return Err(format!("{of_folder:?} cannot be the name of a skill: use letters and digits"));
    };
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = || body.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let declared = front.text("description").as_deref().map(one_line);
    let description = declared.unwrap_or_else(|| one_line(first().trim_start_matches('#')));
    let folder = path.parent().unwrap_or(path).to_owned();
    let text = format!("The files of this skill are in {}.\n\n{}", folder.display(), body.trim());
    Ok(Skill {
        command: CustomCommand {
            name,
            description: description.chars().take(MAX_DESCRIPTION_CHARS).collect(),
            argument_hint: front
                .written("argumenthint")
                .as_deref()
                .map(one_line)
                .filter(|hint| !hint.is_empty()),
            allowed_tools: front.list("allowedtools"),
            model: None,
            source,
            path: path.to_owned(),
            is_skill: true,
            body: text.clone(),
        },
        folder,
        is_listed: !front.is_set("disablemodelinvocation"),
        text,
    })
}

impl Skill {
    /// The name of the skill.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.command.name
    }

    /// The text for the model.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Names and descriptions for the prompt, at most as long as it may be; `None` without skills.
#[must_use]
pub fn list<'s>(skills: impl IntoIterator<Item = &'s Skill>) -> Option<String> {
    let (mut text, mut left_out) = (String::new(), 0);
    for skill in skills.into_iter().filter(|skill| skill.is_listed) {
        let line = format!("\n- {}: {}", skill.name(), skill.command.description);
        if text.len() + line.len() > MAX_LIST_BYTES {
            left_out += 1;
        } else {
            text += &line;
        }
    }
    if left_out > 0 {
        text += &format!("\n- and {left_out} more, which the user can name");
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn skills_are_found_and_bad_ones_reported() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().join("skills");
        let put = |name: &str, text: &[u8]| {
            fs::create_dir_all(root.join(name)).expect("made");
            fs::write(root.join(name).join(SKILL_FILE), text).expect("written");
        };
        put("pdf", b"---\nname: pdf\ndescription: Work with PDF files\n---\nUse tool.py.");
        put("plain", b"# Look closely\nat it");
        put("broken", b"---\ndescription: [\n---\nx");
        put("empty", b"---\ndescription: x\n---\n");
        put("Bad Name", b"x");
        put("long", &vec![b'x'; 200_000]);
        put("bytes", &[0xff, 0xfe]);
        fs::create_dir_all(dir.path().join("outside")).expect("made");
        fs::write(dir.path().join("outside").join(SKILL_FILE), "secret").expect("written");
        symlink("../outside", root.join("leak")).expect("linked");
        fs::create_dir_all(root.join("leak2")).expect("made");
        symlink("../../outside/SKILL.md", root.join("leak2").join(SKILL_FILE)).expect("linked");
        fs::write(root.join("readme.md"), "no skill").expect("written");

        let (files, mut diagnostics) = scan(&root);
        let (skills, problems) = parse(files, ExtensionSource::User);
        diagnostics.extend(problems);
        let names: Vec<&str> = skills.iter().map(Skill::name).collect();
        assert_eq!(names, ["bad-name", "broken", "pdf", "plain"]);
        assert_eq!(skills[2].command.description, "Work with PDF files");
        assert_eq!(skills[3].command.description, "Look closely");
        assert!(skills[2].text().contains("Use tool.py.") && skills[2].text().contains("skills/pdf"));
        let mut reported_names: Vec<String> = diagnostics
            .iter()
            .map(|it| it.path.parent().unwrap().file_name().unwrap().to_string_lossy().into())
            .collect();
        reported_names.sort();
        assert_eq!(reported_names, ["bytes", "empty", "leak", "leak2", "long"], "{diagnostics:?}");
    }

    #[test]
    fn list_of_skills_is_bounded() {
        let text = |n: usize| format!("---\ndescription: {}\n---\nx", "y".repeat(300 + n % 2));
        let files = (0..100).map(|n| MarkdownFile {
            path: format!("/s/s{n}/SKILL.md").into(),
            name: vec![format!("s{n}"), "SKILL".into()],
            text: text(n),
        });
        let (skills, _) = parse(files.collect(), ExtensionSource::User);
        let listed = list(&skills).expect("a list");
        assert!(listed.len() < MAX_LIST_BYTES + 100 && listed.contains("more, which"), "{}", listed.len());
        assert_eq!(list(&[]), None);
    }
}
