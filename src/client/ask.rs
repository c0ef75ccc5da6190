//! Permission requests inside `run`: who answers them, and the dialogue with a person in place.

use std::collections::VecDeque;
use std::io;

use ratatui::crossterm::event::{Event as Input, KeyCode, KeyEventKind, KeyModifiers};

use super::answer;
use super::editor::Editor;
use super::keys::Keys;
use super::out::{Out, terminal_columns};
use super::paint::{Line, Tone};
use super::prompt::{self, Answer};
use crate::api::params::{AnswerParams, ApproveParams};
use crate::types::ids::{PermissionId, QuestionId};
use crate::types::permission::{Decision, RequestKind, Scope};
use crate::types::question::Question;
use crate::types::session::PermissionRequest;

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    /// A person at the terminal.
    Person,
    /// Nobody: what `on_timeout` says holds at once, for the reason that is shown.
    Deny(&'static str),
    /// The demonstration: everything is allowed once, and shown.
    Allow,
}

/// What a key came to.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Send this answer.
    Send(ApproveParams),
    /// Send this answer to a question.
    Choose(AnswerParams),
    /// Abort the turn.
    Abort,
    /// Let the person change the arguments.
    Edit,
    /// Nothing yet.
    Wait,
}

/// The dialogue.
#[derive(Default)]
pub(super) struct Asker {
    queue: VecDeque<PermissionRequest>,
    /// They come before requests: nothing is asked for while one is open, but what was before.
    questions: VecDeque<Question>,
    keys: Option<Keys>,
    words: Option<Editor>,
    /// The words are changed arguments.
    edits: bool,
}

impl Asker {
    /// Puts a request to the person, or behind the one that is open.
    pub(super) fn push(&mut self, request: PermissionRequest, out: &mut Out) -> io::Result<()> {
        self.queue.push_back(request);
        if self.queue.len() == 1 && self.questions.is_empty() { self.open(out) } else { Ok(()) }
    }

    /// Puts a question to the person; what it is was shown.
    pub(super) fn push_question(&mut self, question: Question, out: &mut Out) -> io::Result<()> {
        self.questions.push_back(question);
        if self.questions.len() == 1 { self.open(out) } else { Ok(()) }
    }

    /// A question was settled, by whomever.
    pub(super) fn question_settled(&mut self, id: QuestionId, out: &mut Out) -> io::Result<()> {
        let was_open = self.questions.front().is_some_and(|q| q.request_id == id);
        self.questions.retain(|q| q.request_id != id);
        if was_open { self.next(out) } else { Ok(()) }
    }

    /// A request was settled, by whomever.
    pub(super) fn settled(&mut self, id: PermissionId, out: &mut Out) -> io::Result<()> {
        let was_open = self.questions.is_empty() && self.queue.front().is_some_and(|r| r.request_id == id);
        self.queue.retain(|r| r.request_id != id);
        if was_open { self.next(out) } else { Ok(()) }
    }

    fn next(&mut self, out: &mut Out) -> io::Result<()> {
        if self.words.take().is_some() {
            out.aside(&Line::default())?;
        }
        self.close(out);
        if self.queue.is_empty() && self.questions.is_empty() { Ok(()) } else { self.open(out) }
    }

    fn open(&mut self, out: &mut Out) -> io::Result<()> {
        if !self.questions.is_empty() {
            self.words = None;
            self.keys = Some(Keys::take()?);
            out.set_raw(true);
            return out.aside(&answer::keys());
        }
        let Some(request) = self.queue.front() else { return Ok(()) };
        self.keys = Some(Keys::take()?);
        out.set_raw(true);
        show(request, out)?;
        show_keys(request, out)
    }

    /// Gives the terminal back.
    pub(super) fn close(&mut self, out: &mut Out) {
        self.keys = None;
        out.set_raw(false);
    }

    /// The next key, as long as a request is open; else never. Cancel-safe.
    pub(super) async fn key(&mut self) -> Option<Input> {
        match &mut self.keys {
            Some(keys) => keys.next().await,
            None => std::future::pending().await,
        }
    }

    /// What a key does to the open request.
    pub(super) fn press(&mut self, input: &Input, out: &mut Out) -> io::Result<Outcome> {
        if let Some(question) = self.questions.front() {
            return Ok(choose(question, input));
        }
        let Some(request) = self.queue.front() else { return Ok(Outcome::Wait) };
        if let Some(words) = &mut self.words {
            match type_words(words, input) {
                Typed::More => {
                    out.prompt(if self.edits { "  input: " } else { "  because: " }, words.text())?
                }
                Typed::Done if self.edits => {
                    let text = words.text().to_string();
                    out.aside(&Line::default())?;
                    return self.edited(&text, out);
                }
                Typed::Back => {
                    self.words = None;
                    out.aside(&Line::default())?;
                    show_keys(request, out)?;
                }
                Typed::Done => {
                    let said = Some(words.take()).filter(|w| !w.trim().is_empty());
                    let answer = prompt::approval(request, Decision::Deny, Scope::Once, said);
                    out.aside(&Line::default())?;
                    return Ok(self.answered(answer));
                }
                Typed::Abort => return Ok(Outcome::Abort),
            }
            return Ok(Outcome::Wait);
        }
        let Input::Key(key) = input else { return Ok(Outcome::Wait) };
        if key.kind == KeyEventKind::Release {
            return Ok(Outcome::Wait);
        }
        let KeyCode::Char(c) = key.code else { return Ok(Outcome::Wait) };
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return Ok(if c == 'c' { Outcome::Abort } else { Outcome::Wait });
        }
        let answer = match prompt::answer_of(request, c) {
            None => return Ok(Outcome::Wait),
            Some(Answer::Abort) => return Ok(Outcome::Abort),
            Some(Answer::Feedback) => {
                (self.words, self.edits) = (Some(Editor::default()), false);
                out.prompt("  because: ", "")?;
                return Ok(Outcome::Wait);
            }
            Some(Answer::Edit) => return Ok(Outcome::Edit),
            Some(Answer::Project) => prompt::approval(request, Decision::Allow, Scope::Project, None),
            Some(Answer::Once) => prompt::approval(request, Decision::Allow, Scope::Once, None),
            Some(Answer::Session) => prompt::approval(request, Decision::Allow, Scope::Session, None),
            Some(Answer::Deny) => prompt::approval(request, Decision::Deny, Scope::Once, None),
        };
        Ok(self.answered(answer))
    }

    /// The arguments of the open request, to be changed in an editor.
    pub(super) fn editable(&self) -> Option<String> {
        self.queue.front().filter(|_| self.questions.is_empty()).map(prompt::editable)
    }

    /// Changes the arguments in the line, where there is no editor.
    pub(super) fn edit_here(&mut self, out: &mut Out) -> io::Result<()> {
        let Some(request) = self.queue.front() else { return Ok(()) };
        let mut words = Editor::default();
        words.insert(&request.input.to_string());
        out.prompt("  input: ", words.text())?;
        (self.words, self.edits) = (Some(words), true);
        Ok(())
    }

    /// Takes the terminal again, after an editor had it.
    pub(super) fn again(&mut self, out: &mut Out) -> io::Result<()> {
        if self.keys.is_none() && (!self.queue.is_empty() || !self.questions.is_empty()) {
            return self.open(out);
        }
        Ok(())
    }

    /// What changed arguments come to; a mistake is told and the question stays open.
    pub(super) fn edited(&mut self, text: &str, out: &mut Out) -> io::Result<Outcome> {
        self.words = None;
        let Some(request) = self.queue.front() else { return Ok(Outcome::Wait) };
        match prompt::edited(request, text) {
            Ok(answer) => Ok(self.answered(answer)),
            Err(why) => {
                out.aside(&Line::new(Tone::Bad, format!("  {why}")))?;
                show_keys(request, out)?;
                Ok(Outcome::Wait)
            }
        }
    }

    /// The request stays open until the daemon says that it is settled: an answer that is lost
    /// with the connection can be given again.
    fn answered(&mut self, answer: ApproveParams) -> Outcome {
        self.words = None;
        Outcome::Send(answer)
    }
}

fn choose(question: &Question, input: &Input) -> Outcome {
    let Input::Key(key) = input else { return Outcome::Wait };
    let KeyCode::Char(c) = key.code else { return Outcome::Wait };
    match answer::of_key(c) {
        _ if key.kind == KeyEventKind::Release => Outcome::Wait,
        _ if key.modifiers.contains(KeyModifiers::CONTROL) => {
            if c == 'c' {
                Outcome::Abort
            } else {
                Outcome::Wait
            }
        }
        Some(choice) => Outcome::Choose(answer::params(question.request_id, choice.name())),
        None => Outcome::Wait,
    }
}

/// The question on the paper.
pub(super) fn show(request: &PermissionRequest, out: &mut Out) -> io::Result<()> {
    for line in prompt::rows(request, terminal_columns()) {
        out.aside(&line)?;
    }
    Ok(())
}

fn show_keys(request: &PermissionRequest, out: &mut Out) -> io::Result<()> {
    for line in prompt::keys(request).wrap(terminal_columns()) {
        out.aside(&line)?;
    }
    Ok(())
}

/// An answer that was given without a person.
pub(super) fn unasked(request: &PermissionRequest, asking: Asking) -> Option<(ApproveParams, Line)> {
    match asking {
        Asking::Person => None,
        Asking::Deny(words) => Some((
            ApproveParams { nobody: true, ..prompt::approval(request, Decision::Deny, Scope::Once, None) },
            Line::new(Tone::Warn, format!("▌ {words}")),
        )),
        // Its commands need nothing outside.
        Asking::Allow if request.kind == RequestKind::Sandbox => Some((
            prompt::approval(request, Decision::Deny, Scope::Once, None),
            Line::new(Tone::Warn, "▌ answered by the demonstration: n (no)"),
        )),
        Asking::Allow => Some((
            prompt::approval(request, Decision::Allow, Scope::Once, None),
            Line::new(Tone::Warn, "▌ answered by the demonstration: y (once)"),
        )),
    }
}

enum Typed {
    More,
    Done,
    Back,
    Abort,
}

fn type_words(words: &mut Editor, input: &Input) -> Typed {
    match input {
        Input::Paste(text) => words.insert(&text.replace(['\n', '\r'], " ")),
        Input::Key(key) if key.kind != KeyEventKind::Release => match key.code {
            KeyCode::Enter => return Typed::Done,
            KeyCode::Esc => return Typed::Back,
            KeyCode::Backspace => words.backspace(),
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Typed::Abort,
            KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => words.delete_to_start(),
            KeyCode::Char('w') if key.modifiers.contains(KeyModifiers::CONTROL) => words.delete_word(),
            KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                words.insert(c.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        },
        _ => {}
    }
    Typed::More
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::out::testing::papers;
    use ratatui::crossterm::event::KeyEvent;
    use serde_json::json;

    /// An asker with an open request, but without a terminal.
    fn asker() -> Asker {
        let request = serde_json::from_value(json!({
            "request_id": "perm_0190f2a4-0000-7000-8000-000000000004",
            "call_id": "call_0190f2a4-0000-7000-8000-000000000003",
            "tool": "Bash", "input": {"command": "make"}, "summary": "s",
            "subject": {"kind": "bash", "command": "make"}, "reason": "r", "suggestions": ["Bash(make)"]}))
        .expect("a request");
        Asker { queue: VecDeque::from([request]), ..Asker::default() }
    }

    fn press(asker: &mut Asker, keys: &str) -> Outcome {
        let (mut out, _, _) = papers();
        let mut last = Outcome::Wait;
        for c in keys.chars() {
            let code = match c {
                '\n' => KeyCode::Enter,
                '\u{8}' => KeyCode::Backspace,
                '\u{1b}' => KeyCode::Esc,
                c => KeyCode::Char(c),
            };
            last =
                asker.press(&Input::Key(KeyEvent::new(code, KeyModifiers::NONE)), &mut out).expect("written");
        }
        last
    }

    #[test]
    fn one_key_answers() {
        let check = |keys: &str, decision, scope, feedback: Option<&str>| {
            let Outcome::Send(params) = press(&mut asker(), keys) else { panic!("{keys:?} did not answer") };
            assert_eq!((params.decision, params.scope), (Some(decision), scope), "{keys:?}");
            assert_eq!(params.feedback.as_deref(), feedback);
        };
        check("y", Decision::Allow, Scope::Once, None);
        check("zs", Decision::Allow, Scope::Session, None);
        check("p", Decision::Allow, Scope::Project, None);
        check("n", Decision::Deny, Scope::Once, None);
        check("fuse x\u{8}ninja\n", Decision::Deny, Scope::Once, Some("use ninja"));
        check("f\n", Decision::Deny, Scope::Once, None);
        check("fno\u{1b}y", Decision::Allow, Scope::Once, None);
        assert!(matches!(press(&mut asker(), "a"), Outcome::Abort));
        assert!(matches!(press(&mut asker(), "e"), Outcome::Edit));
        assert!(matches!(press(&mut asker(), "\n"), Outcome::Wait));
    }

    #[test]
    fn arguments_are_changed_in_the_line() {
        let mut asker = asker();
        let (mut out, _, _) = papers();
        asker.edit_here(&mut out).expect("written");
        let Outcome::Send(params) = press(&mut asker, "\u{8}\u{8} -n\"}\n") else { panic!("no answer") };
        assert_eq!(params.updated_input, Some(json!({"command": "make -n"})));
        asker.edit_here(&mut out).expect("written");
        assert!(matches!(press(&mut asker, "\u{8}\n"), Outcome::Wait), "a mistake is told");
        assert!(matches!(press(&mut asker, "y"), Outcome::Send(_)), "and the question stays open");
    }

    #[test]
    fn an_answer_from_elsewhere_closes_the_question() {
        let mut asker = asker();
        let (mut out, _, _) = papers();
        asker
            .settled("perm_0190f2a4-0000-7000-8000-000000000004".parse().expect("an id"), &mut out)
            .expect("ok");
        assert!(matches!(press(&mut asker, "y"), Outcome::Wait));
    }
}
