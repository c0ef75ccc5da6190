//! Data of a project that the session's tools use in addition to its files: skills and notes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::shared::Shared;
use crate::trust;
use crate::user_links::UserLinkCheck;
use project::extensions::commands::typed_name;
use project::extensions::skills::{self, PROJECT_FOLDERS, Skill};
use project::extensions::{self, Diagnostic, ExtensionSource, UserLinks};
use project::workspace::{self, FolderFiles, Memory, MemoryError};
use tools::{DataError, ProjectData};
use types::context_view::MEMORY_HEADING;
use types::memory::MemoryNote;

/// Maximum number of skills that an error names.
const MAX_NAMED_SKILLS: usize = 100;

/// The skills of a folder: the user's, and those of the project if it is trusted.
#[derive(Debug, Default)]
pub(crate) struct SkillFiles {
    pub skills: Vec<Skill>,
    pub diagnostics: Vec<Diagnostic>,
}

impl SkillFiles {
    /// Reads the files of the skills. They are few and small, and the user may have just changed them.
    /// Blocks on the disk.
    pub fn load(shared: &Shared, cwd: &Path, runtime: &Handle) -> Self {
        let mut found = Self::default();
        let folders = shared.project_folders(cwd);
        let (inventory, project) = workspace::scan_with_files(&folders, &PROJECT_FOLDERS);
        let has_files = !project.is_empty();
        let is_trusted = has_files
            && runtime.block_on(trust::is_trusted(shared, cwd, &inventory.digest)).unwrap_or_else(|error| {
                tracing::warn!(%error, "could not read whether a folder is trusted; treating it as not trusted");
                false
            });
        let places = project.iter().flat_map(|of| PROJECT_FOLDERS.map(|name| (of, Path::new(name))));
        for (FolderFiles { folder, files }, name) in places {
            let below = |(path, content): &workspace::ScannedFile| {
                let below = path.strip_prefix(name).ok()?.to_owned();
                skills::is_description(&below, content.is_ok()).then(|| (below, content.clone()))
            };
            let own: Vec<_> = files.iter().filter_map(below).collect();
            let place = folder.join(name);
            if !own.is_empty() && !is_trusted {
                let message = "these skills are not used: the workspace is not trusted (agentctl trust)";
                found.diagnostics.push(Diagnostic { path: place, message: message.into() });
                continue;
            }
            let (own, problems) = extensions::files_from_contents(&place, own);
            found.diagnostics.extend(problems);
            let (own, problems) = skills::parse(own, ExtensionSource::Project);
            found.add(own, problems);
        }
        let settings = &shared.components().settings;
        let check = UserLinkCheck::new(shared, cwd, runtime);
        let links = UserLinks { home: &settings.home, check: &|target| check.check(target) };
        for folder in skills::user_folders(settings.user_dir.as_deref(), &settings.home) {
            let (own, problems) = skills::scan(&folder, links);
            found.diagnostics.extend(problems);
            let (own, problems) = skills::parse(own, ExtensionSource::User);
            found.add(own, problems);
        }
        found
    }

    /// Adds the skills of one folder. Folders that were added before have priority.
    fn add(&mut self, skills: Vec<Skill>, diagnostics: Vec<Diagnostic>) {
        self.diagnostics.extend(diagnostics);
        let mut hidden = Vec::new();
        for skill in skills {
            match self.find(skill.name()) {
                // The same skill, for several programs.
                Some(other) if other.body() == skill.body() => {}
                Some(other) => {
                    let message = format!("{} is defined by {}", skill.name(), other.command.path.display());
                    hidden.push(Diagnostic { path: skill.command.path, message });
                }
                None => self.skills.push(skill),
            }
        }
        // Whole folders may be copies of each other.
        let more = hidden.len().saturating_sub(1);
        if let Some(mut first) = hidden.into_iter().next() {
            if more > 0 {
                first.message += &format!(" (also {more} more skills of this folder)");
            }
            self.diagnostics.push(first);
        }
    }

    fn find(&self, name: &str) -> Option<&Skill> {
        let typed = typed_name(name)?;
        self.skills.iter().find(|skill| skill.name() == typed)
    }
}

/// The parts of a system prompt in addition to the project instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PromptParts {
    pub agents: bool,
    pub skills: bool,
    pub memory: bool,
}

impl PromptParts {
    /// Returns the list of skills and the index of notes. Blocks on the disk.
    pub fn load(self, shared: &Shared, cwd: &Path, runtime: &Handle) -> (Option<String>, Option<String>) {
        let listed = || skills::list(&SkillFiles::load(shared, cwd, runtime).skills);
        let skills = self.skills.then(listed).flatten().map(|list| {
            format!(
                "# Skills\nInstructions for kinds of tasks. If one fits the task, load it with the tool Skill before \
                 you begin.{list}"
            )
        });
        let memory = self.memory.then(|| memory(shared, cwd).index()).flatten().map(|index| {
            format!(
                "{MEMORY_HEADING}Notes about this project from earlier sessions. They may be out of date. Read one with \
                 the tool Memory.{index}"
            )
        });
        (skills, memory)
    }
}

/// The memory of the project in this folder. A worktree has that of the folder that it was made for.
pub(crate) fn memory(shared: &Shared, cwd: &Path) -> Memory {
    let base = shared.worktree_bases.find(cwd);
    let folder = base.as_ref().map_or(cwd, |base| &base.folder);
    Memory::new(&shared.components().settings.memory_dir, folder)
}

/// The target of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotePlace {
    /// The project instructions.
    Instructions,
    /// The memory of the project.
    Memory,
}

/// Splits a note into its target and its text. A note without a target goes to the project instructions.
pub(crate) fn note_text(note: &str) -> (NotePlace, &str) {
    let (place, rest) = match note.split_once(':') {
        Some(("memory", rest)) => (NotePlace::Memory, rest),
        Some(("instructions", rest)) => (NotePlace::Instructions, rest),
        _ => (NotePlace::Instructions, note),
    };
    (place, rest.trim())
}

/// Skills and notes of one session's project.
pub(crate) struct SessionProjectData {
    shared: Arc<Shared>,
    cwd: PathBuf,
    runtime: Handle,
}

impl SessionProjectData {
    /// Must be called on the tokio runtime.
    pub fn new(shared: &Arc<Shared>, cwd: &Path) -> Self {
        Self { shared: Arc::clone(shared), cwd: cwd.to_owned(), runtime: Handle::current() }
    }

    fn memory(&self) -> Memory {
        memory(&self.shared, &self.cwd)
    }
}

impl std::fmt::Debug for SessionProjectData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionProjectData").field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

fn memory_data_error(error: MemoryError) -> DataError {
    DataError { code: error.code(), text: error.to_string() }
}

impl ProjectData for SessionProjectData {
    fn skill(&self, name: &str) -> Result<String, DataError> {
        let found = SkillFiles::load(&self.shared, &self.cwd, &self.runtime);
        if let Some(skill) = found.find(name) {
            return Ok(skill.text().to_owned());
        }
        let names: Vec<&str> = found.skills.iter().map(Skill::name).take(MAX_NAMED_SKILLS).collect();
        let known = match found.skills.len() {
            0 => "there are none".to_owned(),
            count if count > names.len() => format!("{} and others; find them by a query", names.join(", ")),
            _ => names.join(", "),
        };
        Err(DataError {
            code: "unknown_skill",
            text: format!("there is no skill {name:?}; the skills are: {known}"),
        })
    }

    fn find_skills(&self, query: &str) -> Result<String, DataError> {
        let found = SkillFiles::load(&self.shared, &self.cwd, &self.runtime);
        Ok(skills::find_text(&found.skills, query))
    }

    fn notes(&self) -> Result<Vec<MemoryNote>, DataError> {
        self.memory().list().map_err(memory_data_error)
    }

    fn read_note(&self, name: &str) -> Result<MemoryNote, DataError> {
        self.memory().read(name).map_err(memory_data_error)
    }

    fn write_note(&self, name: &str, text: &str) -> Result<(), DataError> {
        self.memory().write(name, text).map(|_| ()).map_err(memory_data_error)
    }

    fn remove_note(&self, name: &str) -> Result<(), DataError> {
        self.memory().remove(name).map_err(memory_data_error)
    }
}
