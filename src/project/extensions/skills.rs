//! Skills: folders with a `SKILL.md`, whose text is loaded when a task needs it. Only names and descriptions are in
//! the prompt, as far as they fit. The other files of the folder are read with the ordinary tools.

use std::fs;
use std::path::{Path, PathBuf};

use super::commands::{CustomCommand, typed_name};
use super::scan::{decode, read};
use super::{Diagnostic, ExtensionSource, MarkdownFile, UserLinks, front_matter};

/// The folders of a project with skills, the most specific first.
pub const PROJECT_FOLDERS: [&str; 4] = [".agentd/skills", ".claude/skills", ".kode/skills", ".agents/skills"];

/// The file that describes a skill.
const SKILL_FILE: &str = "SKILL.md";
/// Maximum number of skills in one folder, and of names in it.
const MAX_SKILLS: usize = 2_000;
const MAX_NAMES: usize = 20_000;
/// Maximum characters of a description in the prompt.
const MAX_DESCRIPTION_CHARS: usize = 400;
/// Maximum tokens of all names and descriptions in the prompt.
const MAX_LIST_TOKENS: usize = 4_000;
/// Characters to which descriptions are cut if they do not fit, the longest first.
const SHORTER_DESCRIPTIONS: [usize; 3] = [200, 100, 50];
/// Maximum number of skills in the answer to a query.
const MAX_FOUND: usize = 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// The skill as a slash command: name, description, prompt.
    pub command: CustomCommand,
    pub folder: PathBuf,
    /// Whether the model knows of it. If not, only the user starts it.
    pub is_listed: bool,
    text: String,
}

/// The user's folders with skills, the most specific first.
#[must_use]
pub fn user_folders(config_dir: Option<&Path>, home: &Path) -> Vec<PathBuf> {
    let own = config_dir.map(|dir| dir.join("skills"));
    let of_others = [".claude/skills", ".kode/skills", ".agents/skills"].map(|name| home.join(name));
    own.into_iter().chain(of_others).collect()
}

/// The `SKILL.md` files of a folder in the order of their names. A missing folder has none. Blocking.
#[must_use]
pub fn scan(folder: &Path, links: UserLinks<'_>) -> (Vec<MarkdownFile>, Vec<Diagnostic>) {
    let (mut files, mut diagnostics) = (Vec::new(), Vec::new());
    let mut report = |path: &Path, message: String| {
        diagnostics.push(Diagnostic { path: path.to_owned(), message });
    };
    if !folder.exists() {
        return (files, diagnostics);
    }
    let listed = links.folder(folder).and_then(|real| {
        let listed = fs::read_dir(&real).map_err(|error| format!("could not read the folder: {error}"))?;
        Ok((real, listed))
    });
    let (real, listed) = match listed {
        Ok(listed) => listed,
        Err(message) => {
            report(folder, message);
            return (files, diagnostics);
        }
    };
    let mut names: Vec<_> = listed.flatten().take(MAX_NAMES).map(|entry| entry.file_name()).collect();
    names.sort_unstable();
    let mut left = MAX_SKILLS;
    for name in names {
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        let found = links.entry(&real.join(name)).and_then(|folder| description_file(&folder, links));
        let path = folder.join(name).join(SKILL_FILE);
        match found {
            Ok(None) => {}
            Ok(Some(_)) if left == 0 => {
                report(folder, format!("only {MAX_SKILLS} skills are read"));
                break;
            }
            Ok(Some(file)) => match read(&file).and_then(|bytes| decode(&bytes)) {
                Ok(text) => {
                    left -= 1;
                    files.push(MarkdownFile { path, name: vec![name.to_owned(), "SKILL".into()], text });
                }
                Err(message) => report(&path, message),
            },
            Err(message) => report(&path, message),
        }
    }
    (files, diagnostics)
}

/// The file that describes the skill of a folder without links; `None` if it has none.
fn description_file(folder: &Path, links: UserLinks<'_>) -> Result<Option<PathBuf>, String> {
    let spellings = [SKILL_FILE, "skill.md", "Skill.md"].map(|name| folder.join(name));
    match spellings.into_iter().find(|file| file.symlink_metadata().is_ok()) {
        Some(file) => links.entry(&file).map(Some),
        None => Ok(None),
    }
}

/// Whether a file below a folder of skills is the description of a skill, or a link in the place of a skill.
#[must_use]
pub fn is_description(below: &Path, is_readable: bool) -> bool {
    match below.components().count() {
        0 | 1 => !is_readable,
        2 => below.file_name().is_some_and(|name| name.eq_ignore_ascii_case(SKILL_FILE)),
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
            argument_names: front.names("arguments"),
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
    #[must_use]
    pub fn name(&self) -> &str {
        &self.command.name
    }

    /// The text of its file.
    #[must_use]
    pub fn body(&self) -> &str {
        self.text.split_once("\n\n").map_or("", |(_, body)| body)
    }

    /// The text for the model.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Names and descriptions for the prompt, at most as long as they may be; `None` without skills. Of many skills the
/// descriptions are cut, then left out, and then skills are left out: the tool Skill finds these.
#[must_use]
pub fn list<'s>(skills: impl IntoIterator<Item = &'s Skill>) -> Option<String> {
    let skills: Vec<&Skill> = skills.into_iter().filter(|skill| skill.is_listed).collect();
    if skills.is_empty() {
        return None;
    }
    let lines = |chars: usize| skills.iter().map(move |skill| line(skill, chars));
    let fits = |chars: &usize| lines(*chars).map(|line| tokens(&line)).sum::<usize>() <= MAX_LIST_TOKENS;
    let lengths = [MAX_DESCRIPTION_CHARS].into_iter().chain(SHORTER_DESCRIPTIONS);
    if let Some(chars) = lengths.into_iter().find(fits) {
        return Some(lines(chars).collect());
    }
    let (mut text, mut left, mut left_out) = (String::new(), MAX_LIST_TOKENS, 0);
    for line in lines(0) {
        match left.checked_sub(tokens(&line)) {
            Some(rest) if left_out == 0 => (text, left) = (text + &line, rest),
            _ => left_out += 1,
        }
    }
    text += match left_out {
        0 => "\nThe tool Skill with a query shows descriptions.".to_owned(),
        more => format!("\nand {more} more, which the tool Skill finds by a query."),
    }
    .as_str();
    Some(text)
}

/// One line of a list: the name and the beginning of the description.
fn line(skill: &Skill, chars: usize) -> String {
    let description = &skill.command.description;
    match description.char_indices().nth(chars) {
        _ if chars == 0 => format!("\n- {}", skill.name()),
        Some((end, _)) => format!("\n- {}: {}…", skill.name(), description[..end].trim_end()),
        None => format!("\n- {}: {description}", skill.name()),
    }
}

/// About how many tokens a text has: four letters of Latin script, or one character of another script, are one.
fn tokens(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    ascii.div_ceil(4) + text.chars().filter(|c| !c.is_ascii()).count()
}

/// The skills that fit a query best, as text for the model: those whose name or description has its words.
#[must_use]
pub fn find_text<'s>(skills: impl IntoIterator<Item = &'s Skill>, query: &str) -> String {
    let words: Vec<String> = query
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let skills: Vec<&Skill> = skills.into_iter().filter(|skill| skill.is_listed).collect();
    let count = skills.len();
    let mut found: Vec<(usize, &Skill)> = skills
        .into_iter()
        .map(|skill| (likeness(skill, &words), skill))
        .filter(|(likeness, _)| *likeness > 0 || words.is_empty())
        .collect();
    found.sort_by(|(one, first), (other, second)| other.cmp(one).then(first.name().cmp(second.name())));
    if found.is_empty() {
        return format!("No skill has these words in its name or description. There are {count} skills.");
    }
    let more = found.len().saturating_sub(MAX_FOUND);
    let mut text = String::from("Load one of these with its name:");
    text.extend(found.iter().take(MAX_FOUND).map(|(_, skill)| line(skill, MAX_DESCRIPTION_CHARS)));
    if more > 0 {
        text += &format!("\n{more} more fit less well; use more words.");
    }
    text
}

/// How well a skill fits these words. A word in the name counts more than one in the description.
fn likeness(skill: &Skill, words: &[String]) -> usize {
    let (name, description) = (skill.name().to_lowercase(), skill.command.description.to_lowercase());
    let of_word = |word: &String| match (name == *word, name.contains(word), description.contains(word)) {
        (true, ..) => 8,
        (_, true, _) => 4,
        (_, _, true) => 1,
        _ => 0,
    };
    words.iter().map(of_word).sum()
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
        put("long", &vec![b'x'; 300_000]);
        put("bytes", &[0, 1, 2, 3]);
        fs::create_dir_all(dir.path().join("outside")).expect("made");
        fs::write(dir.path().join("outside").join(SKILL_FILE), "other").expect("written");
        symlink("../outside", root.join("linked")).expect("linked");
        fs::create_dir_all(root.join("linked2")).expect("made");
        symlink("../../outside/SKILL.md", root.join("linked2").join(SKILL_FILE)).expect("linked");
        fs::write(dir.path().join(".env"), "secret").expect("written");
        fs::create_dir_all(root.join("leak")).expect("made");
        symlink("../../.env", root.join("leak").join(SKILL_FILE)).expect("linked");
        symlink("circle", root.join("circle")).expect("linked");
        fs::create_dir_all(root.join("lower")).expect("made");
        fs::write(root.join("lower/skill.md"), "x").expect("written");
        fs::write(root.join("readme.md"), "no skill").expect("written");

        let (files, mut diagnostics) =
            scan(&root, UserLinks { home: Path::new("/nonexistent"), check: &|_| Ok(()) });
        let (skills, problems) = parse(files, ExtensionSource::User);
        diagnostics.extend(problems);
        let names: Vec<&str> = skills.iter().map(Skill::name).collect();
        assert_eq!(names, ["bad-name", "broken", "linked", "linked2", "lower", "pdf", "plain"]);
        assert_eq!(skills[5].command.description, "Work with PDF files");
        assert_eq!(skills[6].command.description, "Look closely");
        assert!(skills[5].text().contains("Use tool.py.") && skills[5].text().contains("skills/pdf"));
        let mut reported_names: Vec<String> = diagnostics
            .iter()
            .map(|it| it.path.parent().unwrap().file_name().unwrap().to_string_lossy().into())
            .collect();
        reported_names.sort();
        assert_eq!(reported_names, ["bytes", "circle", "empty", "leak", "long"], "{diagnostics:?}");
        assert!(skills.iter().all(|skill| !skill.text().contains("secret")));
    }

    /// Skills with descriptions of so many characters.
    fn many(count: usize, chars: usize) -> Vec<Skill> {
        let text = format!("---\ndescription: {}\n---\nx", "y".repeat(chars));
        let files = (0..count).map(|n| MarkdownFile {
            path: format!("/s/s{n:04}/SKILL.md").into(),
            name: vec![format!("s{n:04}"), "SKILL".into()],
            text: text.clone(),
        });
        parse(files.collect(), ExtensionSource::User).0
    }

    #[test]
    fn list_of_skills_fits_its_tokens() {
        for (count, chars, shown_skills, shown_chars) in [
            (10, 300, 10, 300),
            (40, 300, 40, 300),
            (60, 300, 60, 200),
            (230, 300, 230, 50),
            (400, 300, 400, 0),
            (2_000, 300, 2_000, 0),
        ] {
            let listed = list(&many(count, chars)).expect("a list");
            assert!(tokens(&listed) <= MAX_LIST_TOKENS + 20, "{count}: {}", tokens(&listed));
            assert_eq!(listed.matches("\n- ").count(), shown_skills, "{count}");
            // The last line may have the letter, too.
            assert_eq!(listed.matches('y').count() / count, shown_chars, "{count}");
        }
        let listed = list(&many(4_000, 10)).expect("a list");
        assert!(listed.contains("more, which the tool Skill finds") && listed.contains("- s0000\n"));
        assert!(tokens(&listed) <= MAX_LIST_TOKENS + 20);
        assert_eq!(list(&[]), None);
    }

    #[test]
    fn query_finds_skills_by_name_and_description() {
        let skill = |name: &str, description: &str, more: &str| MarkdownFile {
            path: format!("/s/{name}/SKILL.md").into(),
            name: vec![name.into(), "SKILL".into()],
            text: format!("---\ndescription: {description}\n{more}\n---\nx"),
        };
        let (skills, _) = parse(
            vec![
                skill("pdf", "Work with documents", ""),
                skill("word", "Turn documents into PDF files", ""),
                skill("hidden-pdf", "x", "disable-model-invocation: true"),
                skill("表格", "处理电子表格", ""),
            ],
            ExtensionSource::User,
        );
        let lines = |query: &str| -> Vec<String> {
            find_text(&skills, query).lines().skip(1).map(str::to_owned).collect()
        };
        assert_eq!(lines("PDF?"), ["- pdf: Work with documents", "- word: Turn documents into PDF files"]);
        assert_eq!(lines("电子表格"), ["- 表格: 处理电子表格"]);
        assert_eq!(lines("").len(), 3);
        assert!(find_text(&skills, "music").contains("There are 3 skills"));
        let found = find_text(&many(100, 10), "y");
        assert_eq!((found.matches("\n- ").count(), found.contains("80 more")), (20, true), "{found}");
    }

    #[test]
    fn skills_beyond_the_limit_are_the_last_by_name() {
        let dir = tempfile::tempdir().expect("a folder");
        for n in (0..MAX_SKILLS + 3).rev() {
            fs::create_dir(dir.path().join(format!("s{n:05}"))).expect("made");
            fs::write(dir.path().join(format!("s{n:05}/SKILL.md")), "x").expect("written");
        }
        // Files of a skill do not count.
        for n in 0..5_000 {
            fs::write(dir.path().join(format!("s00000/{n}.txt")), "x").expect("written");
        }
        let links = UserLinks { home: Path::new("/nonexistent"), check: &|_| Ok(()) };
        let (files, diagnostics) = scan(dir.path(), links);
        assert_eq!((files.len(), diagnostics.len()), (MAX_SKILLS, 1), "{diagnostics:?}");
        assert_eq!((&*files[0].name[0], &*files[MAX_SKILLS - 1].name[0]), ("s00000", "s01999"));
    }
}
