//! Slash commands and notes that clients submit. This module or the engine answers built-in commands. Commands
//! of Markdown files become turns. Nothing is written before the command and its arguments are checked.

mod answers;
mod bug;
mod bug_config;
mod custom;

use std::path::Path;

pub use custom::CommandList;

use crate::error::SessionError;
use crate::file_models::{self, FileModel};
use crate::handle::SessionHandle;
use crate::project_data::{NotePlace, memory, note_text};
use crate::registry::Registry;
use crate::registry::mcp::McpOwner;
use crate::requests::{CommandSubmission, NoteTarget, Submission, SubmittedInput};
use custom::CommandFiles;
use engine::{BUILT_IN, NOTE, TypedLine, find_built_in};
use project::extensions::commands::CustomCommand;
use project::extensions::{Expansion, ExtensionSource};
use project::workspace::NoteFile;
use types::compaction::CompactRequest;
use types::ids::SessionId;
use types::mcp::MCP_PREFIX;
use types::message::InputBlock;
use types::outcome::SubmitOutcome;
use types::permission::Mode;
use types::slash_command::SlashCommand;
use types::turn_options::TurnOptions;

/// Similarity in thousandths above which a name is suggested as a correction.
const MIN_SIMILARITY: u32 = 600;

impl Registry {
    /// Submits a line that is a command or a note.
    pub(crate) async fn submit_line(
        &self,
        id: SessionId,
        submission: Submission,
        line: TypedLine,
    ) -> Result<SubmitOutcome, SessionError> {
        let handle = self.open(id).await?;
        let command = match line {
            TypedLine::Note(note) => return self.submit_note(&handle, submission, note).await,
            TypedLine::Command(command) => command,
        };
        if submission.options.output_schema.is_some() && find_built_in(&command.name).is_some() {
            let why = format!("/{} is answered without a model", command.name);
            return Err(SessionError::BadParam("output_schema", why));
        }
        match command.name.as_str() {
            "clear" => {
                let line = command.line();
                let input =
                    SubmittedInput { blocks: vec![InputBlock::Text { text: line }], blobs: Vec::new() };
                let options = TurnOptions { command: Some(command), ..TurnOptions::default() };
                handle.submit(Submission { options, ..submission }, input).await
            }
            "compact" => {
                let instructions = Some(command.arguments).filter(|text| !text.is_empty());
                let Submission { keyed, origin, .. } = submission;
                handle.compact(CompactRequest { instructions }, keyed, origin).await
            }
            "help" => {
                let files = self.command_files(&handle).await?;
                self.show(&handle, submission, command, answers::help(&files)).await
            }
            "status" => {
                let (view, facts) = (self.view(id).await?, handle.facts().await?);
                self.show(&handle, submission, command, answers::status(&view, &facts)).await
            }
            "todos" => {
                let view = self.view_with_details(id).await?;
                self.show(&handle, submission, command, answers::todos(&view)).await
            }
            "cost" => {
                let view = self.view_with_models(id).await?;
                self.show(&handle, submission, command, answers::cost(&view)).await
            }
            "context" => {
                let (facts, view) = (handle.facts().await?, handle.context().await?);
                self.show(&handle, submission, command, answers::context(&facts, &view)).await
            }
            "agents" => {
                let list = self.agents(&handle.facts().await?.spec.cwd).await?;
                self.show(&handle, submission, command, answers::agents(&list)).await
            }
            "mcp" => {
                let servers = self.mcp_servers(&McpOwner::of_session(id)).await?;
                self.show(&handle, submission, command, answers::mcp(&servers)).await
            }
            "bug" => {
                let path = self.write_bug_report(id, &handle, &command.arguments).await?;
                let text = format!(
                    "Wrote {}. It holds the newest events with your messages, the model's answers and the arguments of \
                     tools; the session's settings; and names of configuration keys with harmless values. \
                     Outputs of tools are left out. The keys of providers and values of variables with names of \
                     secrets are removed if they were found; other secrets are not. Read it before you \
                     send it to anyone.",
                    path.display()
                );
                self.show(&handle, submission, command, text).await
            }
            "model" => self.submit_model(&handle, submission, command).await,
            "mode" => self.submit_mode(&handle, submission, command).await,
            "add-dir" => self.submit_add_dir(&handle, submission, command).await,
            _ => self.submit_custom(&handle, submission, command).await,
        }
    }

    async fn show(
        &self,
        handle: &SessionHandle,
        submission: Submission,
        command: SlashCommand,
        text: String,
    ) -> Result<SubmitOutcome, SessionError> {
        handle.answer_command(CommandSubmission::new(submission, command, text)).await
    }

    async fn submit_note(
        &self,
        handle: &SessionHandle,
        submission: Submission,
        note: String,
    ) -> Result<SubmitOutcome, SessionError> {
        let folder = handle.facts().await?.spec.cwd;
        let (place, note_body) = note_text(&note);
        if note_body.is_empty() {
            return Err(SessionError::BadParam("input", "the note has no text".into()));
        }
        let memory = memory(self.shared(), Path::new(&folder));
        let (note_body, failed) = (note_body.to_owned(), |why: String| SessionError::BadParam("input", why));
        let found = tokio::task::spawn_blocking(move || match place {
            NotePlace::Instructions => {
                let file = NoteFile::find(Path::new(&folder)).map_err(|error| error.to_string())?;
                let what = if file.is_new { "Created" } else { "Added to" };
                let text = format!("{what} {}: - {note_body}", file.path.display());
                Ok((NoteTarget::Instructions(file), text))
            }
            NotePlace::Memory => {
                let name = memory.free_name(&note_body);
                let text = format!("Kept in the memory of this project as {name}: {note_body}");
                Ok((NoteTarget::Memory(memory, name), text))
            }
        });
        let (target, text) = found.await.map_err(|error| failed(error.to_string()))?.map_err(failed)?;
        let command = SlashCommand::new(NOTE, note);
        let answered =
            CommandSubmission { note: Some(target), ..CommandSubmission::new(submission, command, text) };
        handle.answer_command(answered).await
    }

    async fn submit_model(
        &self,
        handle: &SessionHandle,
        submission: Submission,
        command: SlashCommand,
    ) -> Result<SubmitOutcome, SessionError> {
        if command.arguments.is_empty() {
            let facts = handle.facts().await?;
            return self.show(handle, submission, command, answers::model(&facts, &self.models())).await;
        }
        let model = self.known_model(&command.arguments).map_err(input_error)?;
        let text = format!("Later turns use {model}.");
        let options = TurnOptions { model: Some(model), ..TurnOptions::default() };
        let answered =
            CommandSubmission { change: options, ..CommandSubmission::new(submission, command, text) };
        handle.answer_command(answered).await
    }

    async fn submit_mode(
        &self,
        handle: &SessionHandle,
        submission: Submission,
        command: SlashCommand,
    ) -> Result<SubmitOutcome, SessionError> {
        let known = "default, accept_edits, plan, dont_ask, bypass";
        if command.arguments.is_empty() {
            let mode = handle.facts().await?.mode;
            let text = format!("The mode is {}. Others: {known}.", mode.name());
            return self.show(handle, submission, command, text).await;
        }
        let mode: Mode = serde_json::from_value(command.arguments.clone().into()).map_err(|_| {
            SessionError::BadParam(
                "input",
                format!("there is no mode {:?}; the modes are {known}", command.arguments),
            )
        })?;
        self.check_mode(mode).map_err(input_error)?;
        let text = format!("The mode is {} now.", mode.name());
        let options = TurnOptions { mode: Some(mode), ..TurnOptions::default() };
        let answered =
            CommandSubmission { change: options, ..CommandSubmission::new(submission, command, text) };
        handle.answer_command(answered).await
    }

    async fn submit_add_dir(
        &self,
        handle: &SessionHandle,
        submission: Submission,
        command: SlashCommand,
    ) -> Result<SubmitOutcome, SessionError> {
        let spec = handle.facts().await?.spec;
        if command.arguments.is_empty() {
            return Err(SessionError::BadParam("input", "name the folder: /add-dir PATH".into()));
        }
        let path = match command.arguments.strip_prefix("~/") {
            Some(below) => self.shared().components().settings.home.join(below),
            None => Path::new(&spec.cwd).join(&command.arguments),
        };
        let mut all = spec.additional_dirs.clone();
        all.push(path.to_string_lossy().into_owned());
        let all = self.check_additional_dirs(&all).await.map_err(input_error)?;
        let text = format!("The workspace has {} additional folder(s) now: {}.", all.len(), all.join(", "));
        let added = all.last().cloned();
        let answered =
            CommandSubmission { add_dir: added, ..CommandSubmission::new(submission, command, text) };
        handle.answer_command(answered).await
    }

    /// Submits the text of a prompt of an MCP server.
    async fn submit_prompt(
        &self,
        handle: &SessionHandle,
        mut submission: Submission,
        command: SlashCommand,
    ) -> Result<SubmitOutcome, SessionError> {
        let prompts = self.mcp_prompts(&McpOwner::of_session(handle.id())).await;
        let Some(prompt) = prompts.iter().find(|prompt| prompt.command == command.name) else {
            let likeness = |other: &&str| (strsim::jaro_winkler(&command.name, other) * 1000.0) as u32;
            let nearest = prompts.iter().map(|prompt| prompt.command.as_str()).max_by_key(likeness);
            return Err(SessionError::UnknownCommand {
                name: command.name.clone(),
                nearest: nearest.map(str::to_owned),
            });
        };
        let text = prompt
            .expand(&command.arguments)
            .await
            .map_err(|why| SessionError::BadParam("input", format!("/{}: {why}", command.name)))?;
        submission.options.command = Some(command);
        let input = SubmittedInput { blocks: vec![InputBlock::Text { text }], blobs: Vec::new() };
        handle.submit(submission, input).await
    }

    /// Submits the expansion of a command of a Markdown file.
    async fn submit_custom(
        &self,
        handle: &SessionHandle,
        mut submission: Submission,
        command: SlashCommand,
    ) -> Result<SubmitOutcome, SessionError> {
        if command.name.starts_with(MCP_PREFIX) {
            return self.submit_prompt(handle, submission, command).await;
        }
        let files = self.command_files(handle).await?;
        let Some(found) = files.find(&command.name) else {
            return Err(unknown_command(&command.name, &files));
        };
        let expansion = self.expand(handle, found, &command.arguments).await?;
        if let (None, Some(model)) = (&submission.options.model, &found.model)
            && let FileModel::Named(model) = file_models::resolve(&self.shared().components(), model)
        {
            submission.options.model = Some(model);
        }
        let allow_rules = files.allow_rules(found);
        let needs_trust = found.source == ExtensionSource::Project;
        let text = expansion.text();
        let parts = if expansion.has_calls() { expansion.parts } else { Vec::new() };
        submission.options.command = Some(SlashCommand { allow_rules, needs_trust, parts, ..command });
        let input = SubmittedInput { blocks: vec![InputBlock::Text { text }], blobs: Vec::new() };
        handle.submit(submission, input).await
    }

    /// Puts arguments into the text of a command's file.
    async fn expand(
        &self,
        handle: &SessionHandle,
        command: &CustomCommand,
        arguments: &str,
    ) -> Result<Expansion, SessionError> {
        let (cwd, home) = (handle.facts().await?.spec.cwd, self.shared().components().settings.home.clone());
        let (command, arguments) = (command.clone(), arguments.to_owned());
        let expanding = tokio::task::spawn_blocking(move || {
            // Whether a call may read the file is decided later.
            let is_file = |path: &str| match path.strip_prefix("~/") {
                Some(below) => home.join(below).is_file(),
                None => Path::new(&cwd).join(path).is_file(),
            };
            command.expand(&arguments, &is_file)
        });
        let expanded = expanding.await.unwrap_or_else(|error| Err(error.to_string()));
        expanded.map_err(|why| SessionError::BadParam("input", why))
    }
}

/// Converts the error of a value in a command line to an error of `input`.
fn input_error(error: SessionError) -> SessionError {
    match error {
        SessionError::BadParam(_, why) => SessionError::BadParam("input", why),
        error => error,
    }
}

fn unknown_command(name: &str, files: &CommandFiles) -> SessionError {
    let likeness = |other: &&str| (strsim::jaro_winkler(name, other) * 1000.0) as u32;
    let names = BUILT_IN.iter().map(|command| command.name).chain(files.names());
    let nearest = names.max_by_key(likeness).filter(|other| likeness(other) > MIN_SIMILARITY);
    SessionError::UnknownCommand { name: name.to_owned(), nearest: nearest.map(str::to_owned) }
}
