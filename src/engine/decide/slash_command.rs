//! Slash commands and notes: how they are recognised, the built-in commands, and their events.
//!
//! Only a single text block is a command, and only one of one line is a note. A command without a model call is answered at once,
//! also while a turn runs; then its answer belongs to that turn.

use crate::decide::plan::PlanBuilder;
use crate::input::{AnsweredCommand, Refusal};
use crate::state::QueuedInput;
use types::event::Event;
use types::message::InputBlock;
use types::queue::WhenBusy;
use types::session::{SessionState, Subtype};
use types::slash_command::SlashCommand;
use types::turn_options::TurnOptions;

/// The name of a note in `command.completed`.
pub const NOTE: &str = "#";
/// The answer of `/clear`.
pub const CLEARED: &str =
    "The conversation starts again. The model sees none of the earlier messages; the journal keeps them.";
const CLEAR: &str = "clear";

/// An input that the daemon handles before the model receives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypedLine {
    /// `/name arguments`.
    Command(SlashCommand),
    /// `# text`.
    Note(String),
}

/// A command that the daemon itself knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltInCommand {
    /// The name without the slash.
    pub name: &'static str,
    /// Its arguments, for users.
    pub argument_hint: Option<&'static str>,
    /// Its description, for users.
    pub description: &'static str,
}

const fn built_in(
    name: &'static str,
    argument_hint: Option<&'static str>,
    description: &'static str,
) -> BuiltInCommand {
    BuiltInCommand { name, argument_hint, description }
}

/// All built-in commands, in the order of `/help`.
pub const BUILT_IN: &[BuiltInCommand] = &[
    built_in("help", None, "List the commands"),
    built_in("status", None, "Show the session's state, model, mode and folders"),
    built_in("context", None, "Show what fills the model's context window"),
    built_in("cost", None, "Show tokens and costs of this session"),
    built_in("todos", None, "Show the todo list of the model"),
    built_in(CLEAR, None, "Start the conversation again; the journal keeps the old one"),
    built_in("compact", Some("[instructions]"), "Replace old messages by a summary"),
    built_in("model", Some("[PROVIDER/MODEL]"), "Show or change the model of later turns"),
    built_in("mode", Some("[MODE]"), "Show or change the approval mode"),
    built_in("add-dir", Some("PATH"), "Add a folder to the workspace"),
    built_in("agents", None, "List the agents that can work as sub-agents"),
    built_in("mcp", None, "List the MCP servers"),
    built_in("bug", Some("[description]"), "Write a redacted diagnostic bundle"),
];

#[must_use]
pub fn find_built_in(name: &str) -> Option<&'static BuiltInCommand> {
    BUILT_IN.iter().find(|command| command.name == name)
}

/// Recognises an input that is a command or a note.
#[must_use]
pub fn typed_line(input: &[InputBlock]) -> Option<TypedLine> {
    let [InputBlock::Text { text }] = input else { return None };
    let text = text.trim_end();
    if let Some(note) = text.strip_prefix("# ").filter(|note| !note.contains(['\n', '\r'])) {
        return Some(note.trim()).filter(|note| !note.is_empty()).map(|note| TypedLine::Note(note.into()));
    }
    let (name, arguments) =
        text.strip_prefix('/')?.split_once([' ', '\t', '\n', '\r']).unwrap_or((&text[1..], ""));
    is_command_name(name).then(|| TypedLine::Command(SlashCommand::new(name, arguments.trim())))
}

/// Whether a text may be the name of a command: letters and digits of any script, `_`, `:`, `-` and `.`, with a letter
/// or a digit at the beginning.
#[must_use]
pub fn is_command_name(name: &str) -> bool {
    name.starts_with(char::is_alphanumeric)
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '-' | '.'))
}

/// Whether the command starts the conversation again.
pub(crate) fn is_clear(command: &SlashCommand) -> bool {
    command.name == CLEAR
}

impl PlanBuilder<'_> {
    /// Records a command that needs no model, with its answer.
    pub fn answer_command(&mut self, answered: AnsweredCommand) -> Result<(), Refusal> {
        let AnsweredCommand { command, text, change, when_busy, expected_turn, origin } = answered;
        if self.state.status == SessionState::Ended {
            return Err(Refusal::Ended);
        }
        let current = self.state.turn.as_ref().map(|turn| turn.id);
        if expected_turn.is_some() && expected_turn != current {
            return Err(Refusal::StaleTurn { current });
        }
        if let Some(turn_id) = current.filter(|_| when_busy == Some(WhenBusy::Reject)) {
            return Err(Refusal::Busy { turn_id });
        }
        self.origin = origin;
        if let Some(turn_id) = current {
            if let Some(change) = change {
                self.update(*change)?;
            }
            let seq = self.push_command(&command, text.clone());
            self.reply_command(turn_id, seq, text);
            return Ok(());
        }
        let turn_id = self.mint.turn();
        let options = TurnOptions { command: Some(command.clone()), ..TurnOptions::default() };
        let seq = self.start_turn(&QueuedInput {
            turn_id,
            item_id: None,
            input: Vec::new(),
            options,
            queued_at: self.now.at,
            front: false,
            origin: None,
        });
        if let Some(change) = change {
            self.update(*change)?;
        }
        self.push_command(&command, text.clone());
        self.finish_turn(Subtype::Success, Vec::new());
        self.reply_command(turn_id, seq, text);
        Ok(())
    }

    /// Starts the conversation again, in a turn that does nothing else.
    pub fn clear_conversation(&mut self, command: &SlashCommand) {
        self.push_session(Event::SessionCleared {});
        self.push_command(command, CLEARED.into());
        self.finish_turn(Subtype::Success, Vec::new());
    }

    fn push_command(&mut self, command: &SlashCommand, text: String) -> types::ids::Seq {
        let (name, arguments) = (command.name.clone(), command.arguments.clone());
        self.push_turn(Event::CommandCompleted { name, arguments, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed_line_of(text: &str) -> Option<TypedLine> {
        typed_line(&[InputBlock::Text { text: text.into() }])
    }

    #[test]
    fn only_text_with_valid_name_is_a_command() {
        let command =
            |name: &str, arguments: &str| Some(TypedLine::Command(SlashCommand::new(name, arguments)));
        assert_eq!(typed_line_of("/help"), command("help", ""));
        assert_eq!(typed_line_of("/team:review-all  src main \n"), command("team:review-all", "src main"));
        assert_eq!(typed_line_of("/Help"), command("Help", ""));
        assert_eq!(typed_line_of("/v1.2 x"), command("v1.2", "x"));
        assert_eq!(typed_line_of("/代码审查 src"), command("代码审查", "src"));
        assert_eq!(typed_line_of("/review src\nmain\n\nlast\n"), command("review", "src\nmain\n\nlast"));
        assert_eq!(typed_line_of("/review\r\nsrc"), command("review", "src"));
        assert_eq!(typed_line_of("# use tabs"), Some(TypedLine::Note("use tabs".into())));
        let plain = [
            "/home/x is broken",
            "/",
            "/ help",
            "help",
            "#tag",
            "#",
            "#  ",
            "# a\nb",
            "a\n/help",
            " /help",
            "/_x",
            "/*a",
            "/a/b\nc",
        ];
        for text in plain {
            assert_eq!(typed_line_of(text), None, "{text:?}");
        }
        let two = [InputBlock::Text { text: "/help".into() }, InputBlock::Text { text: "x".into() }];
        assert_eq!(typed_line(&two), None);
    }

    #[test]
    fn built_in_commands_have_valid_unique_names() {
        for (at, command) in BUILT_IN.iter().enumerate() {
            assert!(is_command_name(command.name));
            assert!(BUILT_IN[..at].iter().all(|other| other.name != command.name), "{}", command.name);
        }
    }
}
