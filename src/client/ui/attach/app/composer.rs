//! Handles the text of the input line when the user sends it.

use ratatui::crossterm::event::KeyCode;

use crate::connection::remote::Machine;
use crate::terminal::escape;
use crate::terminal::format::format_ms;
use crate::terminal::style::{StyledLine, Tone, cut};
use crate::ui::attach::app::overlay::Overlay;
use crate::ui::attach::app::{App, Effect, SecretFiles, Submission};
use crate::ui::editor::Draft;
use crate::ui::question;
use crate::ui::question_list::OptionCursor;
use crate::ui::request_timing::Phase;
use types::message::OWN_COMMAND;
use types::permission::Mode;
use types::queue::WhenBusy;
use types::session::SessionState;

/// Maximum lines of a command's output that are shown.
const SHELL_LINES: usize = 8;

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
    /// Sends the text. While a turn runs, the text steers it after the current step, or is queued if `after_turn`.
    pub(super) fn send(&mut self, after_turn: bool) -> Option<Effect> {
        if self.is_writing() {
            return self.on_writing_enter();
        }
        if self.editor.text().trim().is_empty() || self.setup.one_turn.is_some() && !self.has_open_question()
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
        if !after_turn
            && self.editor.cursor() == self.editor.text().len()
            && self.editor.text().ends_with('\\')
        {
            self.editor.backspace();
            self.editor.insert("\n");
            return None;
        }
        if needs_place(self.editor.text()) {
            self.noting = Some(self.editor.take_text());
            self.notice =
                "keep this note in: i the project instructions · m the memory of the project · Esc back"
                    .into();
            return None;
        }
        if let Some(command) = self.editor.text().strip_prefix('!').map(str::trim).filter(|it| !it.is_empty())
        {
            if self.shell.is_some() {
                self.notice = "a command runs already; Esc stops it".into();
                return None;
            }
            if self.setup.machine == Machine::Other {
                self.notice =
                    "! runs a command here, but the session's files are on another machine; use ssh, or ask"
                        .into();
                return None;
            }
            let command = command.to_owned();
            self.editor.take_text();
            self.shell = Some(command.clone());
            return Some(Effect::Shell(command));
        }
        match self.editor.text().trim() {
            "/quit" | "/exit" => return Some(Effect::Detach),
            "/keys" => {
                self.editor.clear();
                self.overlay = Some(Overlay::Keys);
                return None;
            }
            "/model" => {
                self.editor.clear();
                self.overlay = Some(Overlay::Loading);
                return Some(Effect::LoadModels);
            }
            "/resume" if self.shell.is_none() => {
                self.editor.clear();
                return Some(Effect::PickSession);
            }
            "/top" if self.shell.is_none() => {
                self.editor.clear();
                return Some(Effect::ShowSessions);
            }
            text if text == "/copy" || text.starts_with("/copy ") => {
                let what = text["/copy".len()..].trim().to_owned();
                self.editor.clear();
                return self.copy(&what);
            }
            _ => {}
        }
        let is_pasted = self.editor.text() != self.editor.whole_text();
        if let Some(why) = self.unknown_command(self.editor.text()).filter(|_| !is_pasted) {
            self.notice = why;
            return None;
        }
        let draft = self.editor.take_input();
        Some(Effect::Submit(self.submission(draft, after_turn)))
    }

    fn submission(&mut self, draft: Draft, after_turn: bool) -> Submission {
        let text = draft.whole_text();
        let is_running = self.session.summary.state == SessionState::Running;
        let name =
            text.strip_prefix('/').map(|rest| rest.split(char::is_whitespace).next().unwrap_or_default());
        let is_command = name.is_some_and(|name| !name.is_empty() && !name.contains('/'));
        let when_busy = match (is_running && !is_command, after_turn) {
            (true, false) => Some(WhenBusy::Steer),
            _ => None,
        };
        // A slash command must be a single block. So the output of the user's shell commands is sent with the
        // next message.
        let shell_output = if is_command { Vec::new() } else { std::mem::take(&mut self.shell_output) };
        Submission { shell_output, draft, ..Submission::new(text, when_busy) }
    }

    /// Puts a refused input back into the input line.
    pub(crate) fn restore_input(&mut self, submission: Submission, why: &str) {
        self.put_back(submission);
        self.notify(&format!("not sent: {why}"));
    }

    fn put_back(&mut self, submission: Submission) {
        let Submission { text, shell_output, draft, .. } = submission;
        if !self.editor.is_empty() {
            // The user has typed something else meanwhile. The history has the text.
        } else if draft.text.is_empty() {
            self.editor.insert(&text);
        } else {
            self.editor.restore(draft);
        }
        self.shell_output.splice(0..0, shell_output);
    }

    /// Whether files and pictures can be attached to the text of the input line.
    pub(crate) fn can_attach(&self) -> bool {
        self.setup.one_turn.is_none()
            && self.pager.is_none()
            && !self.is_writing()
            && !self.has_open_question()
            && !self.editor.text().starts_with(['/', '#', '!'])
    }

    /// Asks whether the content of these files is sent with the input.
    pub(crate) fn ask_about_secrets(&mut self, submission: Submission, paths: &[String]) {
        let names = paths.join(", ");
        self.consenting = Some(submission);
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
                self.editor.insert(&note);
                return None;
            }
        };
        let text = format!("# {place}: {text}");
        Some(Effect::Submit(Submission::new(text, None)))
    }

    /// Whether the model asks and the question is shown, so that typed text is its answer.
    pub(crate) fn has_open_question(&self) -> bool {
        let is_shown = !matches!(self.timing.phase(), None | Some(Phase::Hidden));
        is_shown && self.questions.front().is_some_and(question::is_typed)
    }

    /// Uses the typed text as the next answer. The answers are sent once the last one is typed.
    fn add_typed_answer(&mut self) -> Option<Effect> {
        let question = self.questions.front()?;
        let user_question = question.questions.get(self.answers.len())?;
        match question::parse(user_question, &self.editor.whole_text()) {
            Ok(answer) => self.answers.push(answer),
            Err(why) => {
                self.notice = why;
                return None;
            }
        }
        self.editor.clear();
        self.options = OptionCursor::default();
        let (request_id, all) = (question.request_id, question.questions.len());
        let is_complete = self.answers.len() == all;
        is_complete.then(|| Effect::Answer(question::answers(request_id, std::mem::take(&mut self.answers))))
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
        let (turn, text) = self.queue.pop()?;
        self.editor.insert(&text);
        Some(Effect::TakeBack(turn))
    }

    /// Shows the output of a shell command of the user that has ended.
    pub(crate) fn finish_shell(&mut self, output: &str, end: &str, ms: u64) {
        let Some(command) = self.shell.take() else { return };
        let head = StyledLine::new(Tone::User, "! ")
            .and(Tone::Plain, escape::line(&command))
            .and(Tone::Dim, format!("  {end} · {}", format_ms(ms)));
        self.push_line(&head);
        let lines: Vec<StyledLine> = output
            .lines()
            .map(|line| StyledLine::new(Tone::Dim, "  │ ").and(Tone::Plain, cut(&escape::line(line), 400)))
            .collect();
        let hidden = lines.len().saturating_sub(SHELL_LINES);
        self.history.extend(lines[hidden..].iter().map(|line| line.cut(self.columns)));
        let more = if hidden > 0 { format!("+ {hidden} lines · Ctrl-O · ") } else { String::new() };
        let note = StyledLine::new(Tone::Dim, format!("  └ {more}goes along with your next message"));
        self.history.push(note.cut(self.columns));
        self.record_lines(lines);
        let fence = if output.contains("```") { "~~~~" } else { "```" };
        self.shell_output.push(format!(
            "{OWN_COMMAND}{command}` ({end}). Its output:\n{fence}\n{}\n{fence}",
            output.trim_end()
        ));
    }
}
