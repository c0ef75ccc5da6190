//! The commands of a session from Markdown files: the user's files and those of a trusted project.

use std::path::{Path, PathBuf};

use tokio::runtime::Handle;

use crate::agents::{self, AgentList};
use crate::error::SessionError;
use crate::extension_files;
use crate::file_models::UnknownModels;
use crate::handle::SessionHandle;
use crate::project_data::SkillFiles;
use crate::registry::Registry;
use crate::registry::mcp::McpOwner;
use engine::{BUILT_IN, find_built_in};
use judge::Rule;
use project::extensions::commands::{self, CustomCommand, PROJECT_FOLDERS};
use project::extensions::{Diagnostic, ExtensionSource, merged_notes};
use types::slash_command::{CommandSource, CommandView};

/// The commands of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandList {
    /// The commands: first the built-in ones, then all others by name.
    pub commands: Vec<CommandView>,
    /// Files that cannot be used, or only in part.
    pub diagnostics: Vec<Diagnostic>,
}

/// The usable commands of Markdown files.
#[derive(Debug, Default)]
pub(super) struct CommandFiles {
    commands: Vec<CustomCommand>,
    diagnostics: Vec<Diagnostic>,
}

impl CommandFiles {
    /// Adds the commands of one folder. Folders that were added before have priority.
    fn add(&mut self, commands: Vec<CustomCommand>, diagnostics: Vec<Diagnostic>) {
        self.diagnostics.extend(diagnostics);
        let mut notes = Vec::new();
        for command in commands {
            if find_built_in(&command.name).is_some() {
                let message = format!("/{} is a built-in command; rename the file", command.name);
                self.diagnostics.push(Diagnostic { path: command.path, message });
                continue;
            }
            if let Some(other) = self.find(&command.name) {
                let message = format!("/{} is defined by {}", command.name, other.path.display());
                self.diagnostics.push(Diagnostic { path: command.path, message });
                continue;
            }
            for rule in &command.allowed_tools {
                if let Err(why) = allow_rule(rule) {
                    let message = format!("allowed-tools: {why}; this entry is not used");
                    notes.push(Diagnostic { path: command.path.clone(), message });
                }
            }
            self.commands.push(command);
        }
        self.diagnostics.extend(merged_notes(notes));
    }

    pub fn find(&self, name: &str) -> Option<&CustomCommand> {
        let typed = commands::typed_name(name)?;
        self.commands.iter().find(|command| command.name == typed)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.commands.iter().map(|command| command.name.as_str())
    }

    /// Each command with its arguments, its description and its origin, for users.
    pub fn describe_commands(&self) -> Vec<(String, &str, Option<&'static str>)> {
        let usage = |name: &str, hint: Option<&str>| match hint {
            Some(hint) => format!("/{name} {hint}"),
            None => format!("/{name}"),
        };
        let built_in = BUILT_IN.iter().map(|it| (usage(it.name, it.argument_hint), it.description, None));
        let mut custom: Vec<_> = self.commands.iter().collect();
        custom.sort_by(|one, other| one.name.cmp(&other.name));
        let custom = custom.into_iter().map(|it| {
            let origin = match it.source {
                _ if it.is_skill => "skill",
                ExtensionSource::User => "user",
                ExtensionSource::Project => "project",
            };
            (usage(&it.name, it.argument_hint.as_deref()), it.description.as_str(), Some(origin))
        });
        built_in.chain(custom).collect()
    }

    /// The valid rules of a command's `allowed-tools`.
    pub fn allow_rules(&self, command: &CustomCommand) -> Vec<String> {
        command.allowed_tools.iter().filter_map(|rule| Some(allow_rule(rule).ok()?.to_string())).collect()
    }

    pub fn sort_by_name(mut self) -> CommandList {
        self.commands.sort_by(|one, other| one.name.cmp(&other.name));
        let built_in = BUILT_IN.iter().map(|command| CommandView {
            name: command.name.into(),
            description: command.description.into(),
            argument_hint: command.argument_hint.map(str::to_owned),
            source: CommandSource::BuiltIn,
            path: None,
        });
        let of_files = self.commands.into_iter().map(|command| CommandView {
            name: command.name,
            description: command.description,
            argument_hint: command.argument_hint,
            source: match command.source {
                _ if command.is_skill => CommandSource::Skill,
                ExtensionSource::User => CommandSource::User,
                ExtensionSource::Project => CommandSource::Project,
            },
            path: Some(command.path.display().to_string()),
        });
        CommandList { commands: built_in.chain(of_files).collect(), diagnostics: self.diagnostics }
    }
}

/// The rule of a command file, as it is kept. A file cannot let commands leave the sandbox.
fn allow_rule(text: &str) -> Result<Rule, String> {
    let leaves =
        ["unsandboxed", "outside"].iter().any(|tool| text.trim().to_ascii_lowercase().starts_with(tool));
    if leaves {
        return Err(format!("{text}: only a user's answer lets a command run outside the sandbox"));
    }
    text.parse::<Rule>().map_err(|error| error.to_string())
}

impl Registry {
    /// The agents of a folder.
    pub async fn agents(&self, cwd: &str) -> Result<AgentList, SessionError> {
        let cwd = self.folder(cwd).await?;
        Ok(agents::load(&self.shared_arc(), Path::new(&cwd)).await?)
    }

    /// The commands of a folder or a session.
    ///
    /// # Errors
    /// There is no such folder or session, or the database could not be read.
    pub async fn commands(&self, place: &McpOwner) -> Result<CommandList, SessionError> {
        let cwd = match (place.session_id, &place.cwd) {
            (Some(id), _) => self.open(id).await?.facts().await?.spec.cwd,
            (None, Some(cwd)) => self.folder(cwd).await?,
            (None, None) => return Err(SessionError::BadParam("cwd", "name a session or a folder".into())),
        };
        let mut list = self.load_command_files(&cwd).await?.sort_by_name();
        let prompts = self.mcp_prompts(place).await;
        list.commands.extend(prompts.iter().map(|prompt| CommandView {
            name: prompt.command.clone(),
            description: prompt.prompt.description.clone(),
            argument_hint: prompt.hint(),
            source: CommandSource::Mcp,
            path: None,
        }));
        Ok(list)
    }

    pub(super) async fn command_files(&self, handle: &SessionHandle) -> Result<CommandFiles, SessionError> {
        let cwd = handle.facts().await?.spec.cwd;
        self.load_command_files(&cwd).await
    }

    async fn load_command_files(&self, cwd: &str) -> Result<CommandFiles, SessionError> {
        let settings = &self.shared().components().settings;
        let user = commands::user_folders(settings.user_dir.as_deref(), &settings.home);
        let found =
            extension_files::load(&self.shared_arc(), Path::new(cwd), &PROJECT_FOLDERS, user, "commands")
                .await?;
        let mut files = CommandFiles { commands: Vec::new(), diagnostics: found.diagnostics };
        for (source, of_folder) in found.folders {
            let (own, problems) = commands::parse(of_folder, source);
            files.add(own, problems);
        }
        // A skill is also a command, unless a command has the same name.
        let (shared, cwd, runtime) = (self.shared_arc(), PathBuf::from(cwd), Handle::current());
        let read = tokio::task::spawn_blocking(move || SkillFiles::load(&shared, &cwd, &runtime));
        let SkillFiles { skills, diagnostics } = read.await.unwrap_or_default();
        files.add(skills.into_iter().map(|skill| skill.command).collect(), diagnostics);
        let components = self.shared().components();
        let mut unknown = UnknownModels::default();
        for command in &files.commands {
            unknown.check(&components, command.model.as_deref(), Some(&command.path));
        }
        files.diagnostics.extend(unknown.diagnostic("the model of the session"));
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::allow_rule;

    #[test]
    fn file_cannot_allow_commands_outside_the_sandbox() {
        assert!(allow_rule("Bash(git add:*)").is_ok());
        for rule in ["Unsandboxed(make install)", "Outside(make)", "Bash(", ""] {
            assert!(allow_rule(rule).is_err(), "{rule}");
        }
    }
}
