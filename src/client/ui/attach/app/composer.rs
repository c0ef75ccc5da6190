//! Handles the text of the input line when the user sends it.

use ratatui::crossterm::event::KeyCode;

use crate::answer::question;
use crate::connection::remote::Machine;
use crate::terminal::escape;
use crate::terminal::format::format_ms;
use crate::terminal::style::{StyledLine, Tone, cut};
use crate::ui::attach::app::input_line::NextKey;
use crate::ui::attach::app::overlay::Overlay;
use crate::ui::attach::app::{App, Effect, SecretFiles, Submission};
use crate::ui::editor::Draft;
use crate::ui::question_list::OptionCursor;
use types::message::OWN_COMMAND;
use types::permission::Mode;
use types::queue::WhenBusy;
use types::session::SessionState;

/// Maximum lines of a command's output that are shown.
const SHELL_LINES: usize = 8;

/// When the running turn receives a text. Without one, the text is sent at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendTime {
    /// The text steers the turn after its current step.
    AfterStep,
    /// The text waits in the queue.
    AfterTurn,
}

/// Whether a text is a note of one line that does not name the place to store it.
fn needs_place(text: &str) -> bool {
    let note = text.trim_end().strip_prefix("# ").map(str::trim).filter(|note| !note.contains('\n'));
    note.is_some_and(|note| !note.starts_with("memory:") && !note.starts_with("instructions:"))
}

/// The mode after this one, for Shift-Tab.
pub(super) fn following_mode(mode: Mode) -> Mode {
    match mode {
        Mode::Default => Mode::AcceptEdits,
        Mode::AcceptEdits => Mode::Plan,
        Mode::Plan | Mode::DontAsk | Mode::Bypass => Mode::Default,
    }
}

impl App {
    pub(super) fn send(&mut self, time: SendTime) -> Option<Effect> {
        if self.is_writing() {
            return self.on_writing_enter();
        }
        if self.line.editor.text().trim().is_empty()
            || self.setup.one_turn.is_some() && !self.has_open_question()
        {
            return None;
        }
        if self.session.summary.state == SessionState::Ended {
            self.notice = "the session has ended; `agentctl fork` continues it in a new one".into();
            return None;
        }
        if self.has_open_question() {
            return self.add_typed_answer();
        }
        // A backslash before the cursor at the end of the text asks for a new line.
        if time == SendTime::AfterStep
            && self.line.editor.cursor() == self.line.editor.text().len()
            && self.line.editor.text().ends_with('\\')
        {
            self.line.editor.backspace();
            self.line.editor.insert("\n");
            return None;
        }
        if needs_place(self.line.editor.text()) {
            self.line.next_key = NextKey::PlacesNote(self.line.editor.take_text());
            self.notice =
                "keep this note in: i the project instructions · m the memory of the project · Esc back"
                    .into();
            return None;
        }
        let text = self.line.editor.text().to_owned();
        if let Some(command) = text.strip_prefix('!').map(str::trim).filter(|command| !command.is_empty()) {
            return self.run_shell(command);
        }
        if let Some(effect) = self.run_own_command(text.trim()) {
            return effect;
        }
        let is_pasted = text != self.line.editor.whole_text();
        if let Some(error) = self.unknown_command(&text).filter(|_| !is_pasted) {
            self.notice = error;
            return None;
        }
        let draft = self.line.editor.take_input();
        Some(Effect::Submit(self.submission(draft, time)))
    }

    /// Runs a shell command of the user.
    fn run_shell(&mut self, command: &str) -> Option<Effect> {
        if self.shell.command.is_some() {
            self.notice = "a command runs already; Esc stops it".into();
            return None;
        }
        if self.setup.machine == Machine::Other {
            self.notice =
                "! runs a command here, but the session's files are on another machine; use ssh, or ask"
                    .into();
            return None;
        }
        self.line.editor.take_text();
        self.shell.command = Some(command.to_owned());
        Some(Effect::Shell(command.to_owned()))
    }

    /// Runs a slash command of this program. Returns `None` for any other text.
    fn run_own_command(&mut self, text: &str) -> Option<Option<Effect>> {
        let effect = match text {
            "/quit" | "/exit" => return Some(Some(Effect::Detach)),
            "/keys" => {
                self.overlay = Some(Overlay::Keys);
                None
            }
            "/model" => {
                self.overlay = Some(Overlay::Loading);
                Some(Effect::LoadModels)
            }
            "/resume" if self.shell.command.is_none() => Some(Effect::PickSession),
            "/top" if self.shell.command.is_none() => Some(Effect::ShowSessions),
            text if text == "/copy" || text.starts_with("/copy ") => self.copy(text["/copy".len()..].trim()),
            _ => return None,
        };
        self.line.editor.clear();
        Some(effect)
    }

    fn submission(&mut self, draft: Draft, time: SendTime) -> Submission {
        let text = draft.whole_text();
        let is_running = self.session.summary.state == SessionState::Running;
        let name =
            text.strip_prefix('/').map(|rest| rest.split(char::is_whitespace).next().unwrap_or_default());
        let is_command = name.is_some_and(|name| !name.is_empty() && !name.contains('/'));
        let is_steering = is_running && !is_command && time == SendTime::AfterStep;
        let when_busy = is_steering.then_some(WhenBusy::Steer);
        // A slash command must be a single block. So the output of the user's shell commands is sent with the
        // next message.
        let shell_output = if is_command { Vec::new() } else { std::mem::take(&mut self.shell.output) };
        Submission { shell_output, draft, ..Submission::new(text, when_busy) }
    }

    /// Puts a refused input back into the input line.
    pub(crate) fn restore_input(&mut self, submission: Submission, error: &str) {
        self.put_back(submission);
        self.notify(&format!("not sent: {error}"));
    }

    fn put_back(&mut self, submission: Submission) {
        let Submission { text, shell_output, draft, .. } = submission;
        if !self.line.editor.is_empty() {
            // The user has typed something else meanwhile. The history has the text.
        } else if draft.text.is_empty() {
            self.line.editor.insert(&text);
        } else {
            self.line.editor.restore(draft);
        }
        self.shell.output.splice(0..0, shell_output);
    }

    /// Whether files and pictures can be attached to the text of the input line.
    pub(crate) fn can_attach(&self) -> bool {
        self.setup.one_turn.is_none()
            && self.pager.is_none()
            && !self.is_writing()
            && !self.has_open_question()
            && !self.line.editor.text().starts_with(['/', '#', '!'])
    }

    /// Asks whether the content of these files is sent with the input.
    pub(crate) fn ask_about_secrets(&mut self, submission: Submission, paths: &[String]) {
        let names = paths.join(", ");
        self.line.next_key = NextKey::DecidesSecrets(submission);
        self.notify(&format!("{names} may hold secrets: y send it · n send only the name · Esc back"));
    }

    /// Sends the input with or without the likely secrets, or returns it to the input line.
    pub(super) fn decide_about_secrets(&mut self, submission: Submission, key: KeyCode) -> Option<Effect> {
        let secrets = match key {
            KeyCode::Char('y' | 'Y') => SecretFiles::Send,
            KeyCode::Char('n' | 'N') => SecretFiles::NameOnly,
            _ => {
                self.put_back(submission);
                return None;
            }
        };
        Some(Effect::Submit(Submission { secrets, ..submission }))
    }

    /// Submits a note to the chosen place, or returns the note to the input line.
    pub(super) fn place_note(&mut self, note: String, key: KeyCode) -> Option<Effect> {
        let text = note.trim().trim_start_matches('#').trim();
        let place = match key {
            KeyCode::Char('i' | 'I') => "instructions",
            KeyCode::Char('m' | 'M') => "memory",
            _ => {
                self.line.editor.insert(&note);
                return None;
            }
        };
        let text = format!("# {place}: {text}");
        Some(Effect::Submit(Submission::new(text, None)))
    }

    /// Whether the model asks and the question is shown, so that typed text is its answer.
    pub(crate) fn has_open_question(&self) -> bool {
        self.pending.has_open_question()
    }

    /// Uses the typed text as the next answer. The answers are sent once the last one is typed.
    fn add_typed_answer(&mut self) -> Option<Effect> {
        let question = self.pending.questions.front()?;
        let user_question = self.pending.answers.next_question(question)?;
        match question::parse(user_question, &self.line.editor.whole_text()) {
            Ok(answer) => {
                self.line.editor.clear();
                self.pending.options = OptionCursor::default();
                self.pending.answers.add(question, answer).map(Effect::Answer)
            }
            Err(error) => {
                self.notice = error;
                None
            }
        }
    }

    /// The next mode of Shift-Tab. This never reaches `bypass`.
    pub(super) fn next_mode(&mut self) -> Mode {
        // The daemon may not have answered the last press yet, so continue from the requested mode.
        let next = following_mode(self.asked_mode.unwrap_or(self.session.summary.mode));
        self.asked_mode = Some(next);
        next
    }

    /// Moves the last queued input back into the input line.
    pub(super) fn take_back(&mut self) -> Option<Effect> {
        let (turn, text) = self.queue.inputs.pop()?;
        self.line.editor.insert(&text);
        Some(Effect::TakeBack(turn))
    }

    /// Shows the output of a shell command of the user that has ended.
    pub(crate) fn finish_shell(&mut self, output: &str, end: &str, ms: u64) {
        let Some(command) = self.shell.command.take() else { return };
        let head = StyledLine::new(Tone::User, "! ")
            .and(Tone::Plain, escape::line(&command))
            .and(Tone::Dim, format!("  {end} · {}", format_ms(ms)));
        self.push_line(&head);
        let lines: Vec<StyledLine> = output
            .lines()
            .map(|line| StyledLine::new(Tone::Dim, "  │ ").and(Tone::Plain, cut(&escape::line(line), 400)))
            .collect();
        let hidden = lines.len().saturating_sub(SHELL_LINES);
        self.scrollback.history.extend(lines[hidden..].iter().map(|line| line.cut(self.columns)));
        let more = if hidden > 0 { format!("+ {hidden} lines · Ctrl-O · ") } else { String::new() };
        let note = StyledLine::new(Tone::Dim, format!("  └ {more}goes along with your next message"));
        self.scrollback.history.push(note.cut(self.columns));
        self.scrollback.record_lines(lines);
        let fence = if output.contains("```") { "~~~~" } else { "```" };
        self.shell.output.push(format!(
            "{OWN_COMMAND}{command}` ({end}). Its output:\n{fence}\n{}\n{fence}",
            output.trim_end()
        ));
    }
}
