//! Runs the effects that need the terminal or the loop itself. All other effects are calls to the daemon.

use api::methods;
use std::io::Stdout;
use std::time::Instant;

use nix::sys::signal::{Signal, raise};
use ratatui::crossterm::terminal;
use tokio::sync::oneshot;

use crate::connection::follow::SessionFollower;
use crate::connection::remote::{Machine, creation_failure};
use crate::failure::Failure;
use crate::ui::attach::app::{Effect, Submission};
use crate::ui::attach::attachments::{self, Attachments, clipboard_picture};
use crate::ui::attach::calls::EffectResult;
use crate::ui::attach::live::{LeaveReason, LiveConversation};
use crate::ui::attach::screen::Screen;
use crate::ui::attach::shell;
use crate::ui::editor;
use crate::ui::keys::Keys;
use crate::ui::picker::{PickerChoice, pick};
use crate::ui::top::{SessionsScreen, TopOutcome, choose};
use api::params::SessionReply;
use types::ids::SessionId;

impl LiveConversation {
    pub(super) fn load_commands(&mut self) {
        let cwd = self.app.setup.is_new.then(|| self.app.session.cwd.clone());
        self.calls.spawn(self.caller.clone().commands(cwd));
    }

    pub(super) fn load_context(&mut self) {
        let is_due = self.app.progress.is_context_stale && !self.app.setup.is_new && self.app.lost.is_none();
        if is_due && self.app.pager.is_none() {
            self.app.progress.is_context_stale = false;
            self.calls.spawn(self.caller.clone().context());
        }
    }

    pub(super) async fn start_effect(
        &mut self,
        effect: Effect,
        screen: &mut Screen<Stdout>,
    ) -> Result<(), Failure> {
        match effect {
            Effect::Detach => self.left = Some(LeaveReason::Detached),
            Effect::Submit(submission) => self.submit(submission).await,
            Effect::PastePicture => {
                self.calls.spawn(clipboard_picture());
            }
            Effect::SetMode(mode) if self.app.setup.is_new => {
                self.app.set_mode(mode);
                self.create.mode = Some(mode);
            }
            Effect::Abort | Effect::StopAndDequeue(_) if self.app.setup.is_new => {}
            Effect::Shell(command) => {
                let (stop, stopped) = oneshot::channel();
                self.stop_shell = Some(stop);
                let cwd = self.app.session.cwd.clone();
                self.calls.spawn(shell::run(command, cwd, stopped));
            }
            Effect::StopShell => drop(self.stop_shell.take()),
            Effect::Edit(text) => self.edit(text, screen).await?,
            Effect::Suspend => {
                screen.leave_page()?;
                screen.finish()?;
                self.keys = None;
                // The program stops here until the shell continues it with SIGCONT.
                let _ = raise(Signal::SIGTSTP);
                self.resume(screen)?;
            }
            // The files are on another machine.
            Effect::LoadFiles if self.app.setup.machine == Machine::Other => {}
            Effect::LoadFiles => {
                let cwd = self.app.session.cwd.clone();
                self.calls.spawn(async move {
                    let files = tokio::task::spawn_blocking(move || shell::files(&cwd)).await;
                    EffectResult::Files(files.unwrap_or_default())
                });
            }
            Effect::LoadHistory(cursor) => {
                let cwd = self.app.session.cwd.clone();
                self.calls.spawn(self.caller.clone().history(cwd, cursor));
            }
            Effect::LoadEarlier => {
                let (session, setup) = (self.app.session.clone(), self.app.setup.clone());
                let part = (self.app.scrollback.left_out, self.include);
                self.calls.spawn(self.caller.clone().read_earlier(session, setup, screen.size().0, part));
            }
            Effect::SetModel(model) if self.app.setup.is_new => {
                self.app.session.summary.model.clone_from(&model);
                self.create.model = Some(model);
            }
            Effect::Copy(text) => screen.copy(&text)?,
            Effect::ShowSessions => self.show_sessions(screen).await?,
            Effect::PickSession => self.pick_session(screen).await?,
            effect => {
                let caller = self.caller.clone();
                self.calls.spawn(caller.perform(effect));
            }
        }
        Ok(())
    }

    /// Reads the attachments of an input, creates the session if it does not exist, and sends the input.
    async fn submit(&mut self, submission: Submission) {
        let blocks = match attachments::read(&submission, &self.app.session.cwd, self.app.setup.machine).await
        {
            Ok(Attachments::Read(blocks)) => blocks,
            Ok(Attachments::LikelySecrets(paths)) => {
                return self.app.ask_about_secrets(submission, &paths);
            }
            Err(failure) => return self.app.restore_input(submission, &failure.message),
        };
        if self.app.setup.is_new
            && let Err(failure) = self.create_session().await
        {
            return self.app.restore_input(submission, &failure.message);
        }
        self.calls.spawn(self.caller.clone().submit(submission, blocks));
    }

    async fn create_session(&mut self) -> Result<(), Failure> {
        // Without a session there is no follower that would notice a restart of the daemon.
        if self.caller.client.is_closed() {
            self.caller.client = self.reach.connect_again().await?;
        }
        let client = &self.caller.client;
        let reply = client.call::<methods::session::Create>(&self.create).await;
        let machine = self.reach.machine();
        let reply: SessionReply = reply.map_err(|error| creation_failure(error, machine))?;
        let id = reply.session.session_id;
        self.follow = Some(SessionFollower::start_with(&self.reach, client, id, 0, self.include).await?);
        self.caller.session = id;
        self.app.begin(reply.session);
        Ok(())
    }

    /// Lets the user edit a text in an editor, which uses the terminal meanwhile.
    async fn edit(&mut self, text: String, screen: &mut Screen<Stdout>) -> Result<(), Failure> {
        if !editor::has_editor() {
            self.app.notice = "set EDITOR or VISUAL to edit in an editor".into();
            return Ok(());
        }
        let is_page = self.app.pager.is_some();
        screen.leave_page()?;
        screen.finish()?;
        self.keys = None;
        let edited = editor::in_editor(&text).await;
        self.resume(screen)?;
        match edited {
            Ok(text) if !is_page => self.app.line.editor.set_text(text.trim_end_matches('\n')),
            Ok(_) => {}
            Err(error) => self.app.notify(&format!("the editor failed: {error}")),
        }
        Ok(())
    }

    /// Draws the screen again after another program used the terminal.
    fn resume(&mut self, screen: &mut Screen<Stdout>) -> Result<(), Failure> {
        let keys = self.keys.insert(Keys::enter_raw_mode_with_cursor()?);
        Ok(screen.restart(terminal::size()?, keys.cursor_row())?)
    }

    /// Shows all sessions in place of the conversation, until the user returns or opens another one.
    async fn show_sessions(&mut self, screen: &mut Screen<Stdout>) -> Result<(), Failure> {
        let mut sessions = match SessionsScreen::load(&self.reach).await {
            Ok(sessions) => sessions,
            Err(failure) => {
                self.app.notify(&failure.message);
                return Ok(());
            }
        };
        self.keep_history(screen)?;
        screen.finish()?;
        self.keys = None;
        match choose(&mut sessions).await {
            Ok(TopOutcome::Quit) => {}
            Ok(TopOutcome::Attach(session)) => self.open_session(session),
            Ok(TopOutcome::New) => self.left = Some(LeaveReason::New),
            Err(failure) => self.app.notify(&failure.message),
        }
        if self.left.is_none() { self.resume(screen) } else { Ok(()) }
    }

    /// Lets the user choose another session from the list with search.
    async fn pick_session(&mut self, screen: &mut Screen<Stdout>) -> Result<(), Failure> {
        self.keep_history(screen)?;
        screen.finish()?;
        self.keys = None;
        match pick(&self.caller.client).await {
            Ok(PickerChoice::Session(session)) => self.open_session(session.session_id),
            Ok(PickerChoice::New) if self.app.setup.is_new => {}
            Ok(PickerChoice::New) => self.left = Some(LeaveReason::New),
            Ok(PickerChoice::Nothing) => {}
            Err(failure) => self.app.notify(&failure.message),
        }
        if self.left.is_none() { self.resume(screen) } else { Ok(()) }
    }

    /// Writes the waiting start lines into the scrollback, before another screen replaces them.
    fn keep_history(&mut self, screen: &mut Screen<Stdout>) -> Result<(), Failure> {
        self.app.finish_start_lines(None);
        self.draw(screen, Instant::now())
    }

    /// Switches to another session, unless it is this one.
    fn open_session(&mut self, session: SessionId) {
        if self.app.setup.is_new || session != self.caller.session {
            self.left = Some(LeaveReason::Open(session));
        }
    }
}
