//! Tests that agent, command and skill files written for other tools are read as their authors meant.
//! `tests/fixtures/compatibility.toml` has each file with the expected result.

use serde::Deserialize;

use super::agents::{self, Agent};
use super::commands::{self, CustomCommand};
use super::{Diagnostic, ExtensionSource, MarkdownFile, files_from_contents, skills};
use std::path::{Path, PathBuf};
use types::slash_command::CommandPart;
use types::tool::BUILT_IN_TOOLS;

const TABLE: &str = include_str!("../../../tests/fixtures/compatibility.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    agent: Vec<Case>,
    command: Vec<Case>,
    skill: Vec<Case>,
}

/// One file and the expected result. An absent field is not compared.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Case {
    oddity: String,
    text: String,
    encoding: Option<String>,
    /// The names of the folders and of the file.
    file: Option<Vec<String>>,
    refused: Option<String>,
    name: Option<String>,
    slug: Option<String>,
    description: Option<String>,
    tools: Option<Vec<String>>,
    denied: Option<Vec<String>>,
    offers: Vec<String>,
    withholds: Vec<String>,
    mode: Option<String>,
    max_turns: Option<u64>,
    model: Option<String>,
    notes: Option<usize>,
    arguments: String,
    prompt: Option<String>,
    hint: Option<String>,
    rules: Option<Vec<String>>,
    listed: Option<bool>,
}

impl Case {
    fn bytes(&self) -> Vec<u8> {
        match self.encoding.as_deref() {
            None => self.text.clone().into_bytes(),
            Some("utf-16le") => self.text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Some("utf-16be") => {
                [0xFE, 0xFF].into_iter().chain(self.text.encode_utf16().flat_map(u16::to_be_bytes)).collect()
            }
            Some(name) => {
                let encoding = encoding_rs::Encoding::for_label(name.as_bytes()).expect("an encoding");
                encoding.encode(&self.text).0.into_owned()
            }
        }
    }

    /// The file as the scan of a folder gives it.
    fn load(&self, folder: &str, file: &str) -> (Vec<MarkdownFile>, Vec<Diagnostic>) {
        let names = self.file.clone().unwrap_or_else(|| vec![file.to_owned()]);
        let path = format!("{}.md", names.join("/"));
        files_from_contents(Path::new(folder), vec![(path.into(), Ok(self.bytes()))])
    }

    fn check<T: PartialEq + std::fmt::Debug>(
        &self,
        what: &str,
        wanted: Option<&T>,
        got: &T,
    ) -> Option<String> {
        let wanted = wanted.filter(|wanted| *wanted != got)?;
        Some(format!("{}: {what} is {got:?}, not {wanted:?}", self.oddity))
    }

    /// What is wrong about a file that loads or does not.
    fn check_loaded(&self, is_loaded: bool, diagnostics: &[Diagnostic]) -> Option<String> {
        let has = |word: &String| diagnostics.iter().any(|it| it.message.contains(word.as_str()));
        let is_right = match &self.refused {
            Some(word) => !is_loaded && has(word),
            None => is_loaded,
        };
        (!is_right).then(|| format!("{}: loaded {is_loaded}, {diagnostics:?}", self.oddity))
    }
}

fn check_agent(case: &Case) -> Vec<String> {
    let (files, mut diagnostics) = case.load("a", "file");
    let tools = BUILT_IN_TOOLS.map(str::to_owned).to_vec();
    let (mut found, more) = agents::parse(files, ExtensionSource::Project, &tools);
    diagnostics.extend(more);
    let agent = found.pop();
    let mut wrong: Vec<String> = case.check_loaded(agent.is_some(), &diagnostics).into_iter().collect();
    let Some(agent) = agent else { return wrong };
    let sorted = |list: &[String]| {
        let mut list = list.to_vec();
        list.sort();
        list
    };
    let got_tools = sorted(agent.tools.as_deref().unwrap_or(&["*".to_owned()]));
    let offers =
        |agent: &Agent, tool: &str| agent.restrictions.tools.iter().all(|choice| choice.offers(tool));
    wrong.extend(case.check("name", case.name.as_ref(), &agent.name));
    wrong.extend(case.check("slug", case.slug.as_ref(), &agent.slug));
    wrong.extend(case.check("description", case.description.as_ref(), &agent.description));
    wrong.extend(case.check("tools", case.tools.as_deref().map(sorted).as_ref(), &got_tools));
    wrong.extend(case.check("denied", case.denied.as_ref(), &agent.denied_tools));
    let mode = agent.mode.map(|mode| mode.name().to_owned());
    wrong.extend(case.check("mode", case.mode.clone().map(Some).as_ref(), &mode));
    wrong.extend(case.check("max_turns", case.max_turns.map(Some).as_ref(), &agent.max_turns));
    wrong.extend(case.check("model", case.model.clone().map(Some).as_ref(), &agent.model_name));
    wrong.extend(case.check("notes", case.notes.as_ref(), &diagnostics.len()));
    for (list, wanted) in [(&case.offers, true), (&case.withholds, false)] {
        wrong.extend(list.iter().filter_map(|tool| case.check(tool, Some(&wanted), &offers(&agent, tool))));
    }
    wrong
}

fn check_command(case: &Case) -> Vec<String> {
    let (files, mut diagnostics) = case.load("c", "file");
    let (mut found, more) = commands::parse(files, ExtensionSource::Project);
    diagnostics.extend(more);
    let command = found.pop();
    let mut wrong: Vec<String> = case.check_loaded(command.is_some(), &diagnostics).into_iter().collect();
    let Some(command) = command else { return wrong };
    wrong.extend(case.check("name", case.name.as_ref(), &command.name));
    wrong.extend(case.check("description", case.description.as_ref(), &command.description));
    wrong.extend(case.check("hint", case.hint.clone().map(Some).as_ref(), &command.argument_hint));
    wrong.extend(case.check("model", case.model.clone().map(Some).as_ref(), &command.model));
    wrong.extend(case.check("rules", case.rules.as_ref(), &command.allowed_tools));
    wrong.extend(case.check("prompt", case.prompt.as_ref(), &prompt(&command, &case.arguments)));
    wrong
}

/// The prompt with `[run: …]` and `[file: …]` for its parts.
fn prompt(command: &CustomCommand, arguments: &str) -> String {
    let expansion = command.expand(arguments, &|path| path == "src/a.rs").expect("short");
    let show = |part: CommandPart| match part {
        CommandPart::Text { text } => text,
        CommandPart::Output { command } => format!("[run: {command}]"),
        CommandPart::File { path } => format!("[file: {path}]"),
    };
    expansion.parts.into_iter().map(show).collect()
}

fn check_skill(case: &Case) -> Vec<String> {
    let (files, mut diagnostics) = case.load("s", "folder/SKILL");
    let (mut found, more) = skills::parse(files, ExtensionSource::Project);
    diagnostics.extend(more);
    let skill = found.pop();
    let mut wrong: Vec<String> = case.check_loaded(skill.is_some(), &diagnostics).into_iter().collect();
    let Some(skill) = skill else { return wrong };
    wrong.extend(case.check("name", case.name.as_ref(), &skill.command.name));
    wrong.extend(case.check("description", case.description.as_ref(), &skill.command.description));
    wrong.extend(case.check("listed", case.listed.as_ref(), &skill.is_listed));
    wrong
}

#[test]
fn files_of_public_kinds_have_wanted_reading() {
    let table: Table = toml::from_str(TABLE).expect("a table");
    assert!(table.agent.len() + table.command.len() + table.skill.len() >= 150);
    let wrong: Vec<String> = table
        .agent
        .iter()
        .flat_map(check_agent)
        .chain(table.command.iter().flat_map(check_command))
        .chain(table.skill.iter().flat_map(check_skill))
        .collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The share of agents, commands and skills that load of the folders in `COMPATIBILITY_FOLDERS`, separated by `:`. Prints
/// the reason of each that does not.
#[test]
#[ignore = "reads folders that a developer names"]
fn nearly_all_files_of_named_folders_load() {
    let folders = std::env::var("COMPATIBILITY_FOLDERS").expect("folders in COMPATIBILITY_FOLDERS");
    for folder in folders.split(':').map(Path::new) {
        let mut found = FoundFiles::default();
        found.find(folder, None);
        let tools = BUILT_IN_TOOLS.map(str::to_owned).to_vec();
        let agents = agents::parse(found.read(Kind::Agent), ExtensionSource::User, &tools);
        let commands = commands::parse(found.read(Kind::Command), ExtensionSource::User);
        let skills = skills::parse(found.read(Kind::Skill), ExtensionSource::User);
        for (kind, loaded, diagnostics) in [
            (Kind::Agent, agents.0.len(), agents.1),
            (Kind::Command, commands.0.len(), commands.1),
            (Kind::Skill, skills.0.len(), skills.1),
        ] {
            let count = found.0.iter().filter(|(of, _)| *of == kind).count();
            eprintln!("{} {kind:?}: {loaded} of {count} load", folder.display());
            diagnostics.iter().for_each(|it| eprintln!("    {}: {}", it.path.display(), it.message));
            assert!(loaded * 100 >= count * 98, "{kind:?}: {loaded} of {count}");
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Agent,
    Command,
    Skill,
}

#[derive(Default)]
struct FoundFiles(Vec<(Kind, PathBuf)>);

impl FoundFiles {
    /// Finds the files below a folder by the names of their folders. `kind` is that of the folder.
    fn find(&mut self, folder: &Path, kind: Option<Kind>) {
        if folder.join("SKILL.md").is_file() {
            return self.0.push((Kind::Skill, folder.join("SKILL.md")));
        }
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        entries.sort();
        for path in entries {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_about =
                name.starts_with("README") || name.starts_with("CLAUDE") || name.starts_with("AGENTS");
            let kind = match name.as_str() {
                "agents" | "categories" => Some(Kind::Agent),
                "commands" => Some(Kind::Command),
                ".git" | "references" | "docs" | "tests" | "templates" => continue,
                _ => kind,
            };
            if path.is_dir() {
                self.find(&path, kind);
            } else if let Some(kind) = kind.filter(|_| name.ends_with(".md") && !is_about) {
                self.0.push((kind, path));
            }
        }
    }

    /// The files of a kind, as the scan of a folder gives them.
    fn read(&self, kind: Kind) -> Vec<MarkdownFile> {
        let paths = self.0.iter().filter(|(of, _)| *of == kind).map(|(_, path)| path);
        let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
        let files = paths.map(|path| {
            let below = match kind {
                Kind::Skill => Path::new(&name(path.parent().expect("a folder"))).join(name(path)),
                Kind::Agent | Kind::Command => name(path).into(),
            };
            (below, std::fs::read(path).map_err(|error| error.to_string()))
        });
        let (files, problems) = files_from_contents(Path::new("of"), files.collect());
        problems.iter().for_each(|it| eprintln!("    {}: {}", it.path.display(), it.message));
        files
    }
}
