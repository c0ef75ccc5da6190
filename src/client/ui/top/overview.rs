//! Content and keys of `top`: pure.

use std::collections::{HashMap, HashSet};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::answer::permission::PermissionChoice;
use crate::resolve_id::OPEN_STATES;
use crate::ui::session_state::{has_failed, state};
use crate::ui::top::rates::Rates;
use types::ids::{PermissionId, SessionId};
use types::job::JobCounts;
use types::permission_request::PendingRequest;
use types::session::{PermissionRequest, SessionState, SessionView};
use types::time::Timestamp;

/// Time in milliseconds after an answer dialog has opened for which it ignores keys. So a key that was typed
/// earlier does not answer.
pub(super) const IGNORE_KEYS_MS: u64 = 600;

/// Which sessions are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Filter {
    #[default]
    All,
    NeedsYou,
    Working,
    Idle,
    Failed,
}

impl Filter {
    pub(super) const ALL: [Filter; 5] =
        [Filter::All, Filter::NeedsYou, Filter::Working, Filter::Idle, Filter::Failed];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Filter::All => "All",
            Filter::NeedsYou => "Needs you",
            Filter::Working => "Working",
            Filter::Idle => "Idle",
            Filter::Failed => "Failed",
        }
    }

    /// Whether a session is listed.
    pub(super) fn accepts(self, session: &SessionView) -> bool {
        match self {
            Filter::All => true,
            Filter::NeedsYou => {
                matches!(session.summary.state, SessionState::RequiresAction | SessionState::Paused)
            }
            Filter::Working => {
                session.summary.state == SessionState::Running || !session.background_commands.is_empty()
            }
            Filter::Idle => session.summary.state == SessionState::Idle && !has_failed(session),
            Filter::Failed => has_failed(session),
        }
    }

    fn next(self, step: usize) -> Self {
        let index = Self::ALL.iter().position(|filter| *filter == self).unwrap_or(0);
        Self::ALL[(index + step) % Self::ALL.len()]
    }
}

/// The dialog at the bottom of the screen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Dialog {
    #[default]
    None,
    /// An answer to this request. The dialog was opened at `since`.
    Answer {
        request: PermissionId,
        since: Timestamp,
    },
    /// The question whether to end this session.
    End {
        session: SessionId,
        since: Timestamp,
    },
    Message {
        session: SessionId,
        text: String,
    },
}

/// Action that a key requests.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    Quit,
    Attach(SessionId),
    /// A conversation in a new session of the current folder.
    New,
    Abort(SessionId),
    Kill(SessionId),
    Submit(SessionId, String),
    Answer(Box<PermissionRequest>, PermissionChoice),
}

#[derive(Clone, Debug, Default)]
pub(super) struct DaemonFacts {
    pub(super) up_ms: u64,
    pub(super) resident_bytes: u64,
    /// Cost of today's calls in micro-dollars (`None` if a part is unknown), and the known part.
    pub(super) today: (Option<u64>, u64),
    /// How many jobs are in which state.
    pub(super) jobs: JobCounts,
    /// Context windows by `PROVIDER/MODEL`.
    pub(super) windows: HashMap<String, u64>,
}

/// Everything on the screen.
#[derive(Debug, Default)]
pub(super) struct Overview {
    pub(super) sessions: Vec<SessionView>,
    pub(super) requests: Vec<PendingRequest>,
    pub(super) facts: DaemonFacts,
    pub(super) filter: Filter,
    pub(super) selected: Option<SessionId>,
    pub(super) dialog: Dialog,
    /// The result of the last action, as one line.
    pub(super) notice: Option<String>,
    pub(super) rates: Rates,
    /// The state of each session in words, and the time since when the session is in this state.
    pub(super) since: HashMap<SessionId, (String, Timestamp)>,
}

impl Overview {
    /// Replaces the sessions by the newest ones.
    pub(super) fn update(&mut self, sessions: Vec<SessionView>, now: Timestamp) {
        self.sessions = sessions.into_iter().filter(|it| OPEN_STATES.contains(&it.summary.state)).collect();
        let rank = |session: &SessionView| match session.summary.state {
            _ if Filter::NeedsYou.accepts(session) => 0,
            SessionState::Running => 1,
            _ => 2,
        };
        self.sessions.sort_by_key(|session| (rank(session), std::cmp::Reverse(session.number)));
        for session in &self.sessions {
            self.rates.record(session.session_id, now, session.summary.cost_at_least_usd_micros);
            let (_, state_text) = state(session);
            let is_known = self.since.get(&session.session_id).is_some_and(|(known, _)| *known == state_text);
            if !is_known {
                let quiet = session
                    .summary
                    .last_turn
                    .as_ref()
                    .filter(|_| session.summary.state == SessionState::Idle);
                let time = quiet.map_or(session.summary.updated_at_ms, |turn| turn.ended_at_ms);
                self.since.insert(session.session_id, (state_text, time));
            }
        }
        let ids: HashSet<SessionId> = self.sessions.iter().map(|it| it.session_id).collect();
        self.rates.retain(|id| ids.contains(&id));
        self.since.retain(|id, _| ids.contains(id));
        let is_answered = match &self.dialog {
            Dialog::Answer { request, .. } => {
                !self.requests.iter().any(|it| it.request.request_id == *request)
            }
            Dialog::End { session, .. } | Dialog::Message { session, .. } => !ids.contains(session),
            Dialog::None => false,
        };
        if is_answered {
            self.dialog = Dialog::None;
        }
        self.select_listed();
    }

    pub(super) fn listed_sessions(&self) -> Vec<&SessionView> {
        self.sessions.iter().filter(|session| self.filter.accepts(session)).collect()
    }

    pub(super) fn current(&self) -> Option<&SessionView> {
        let listed = self.listed_sessions();
        listed.iter().find(|it| Some(it.session_id) == self.selected).or(listed.first()).copied()
    }

    pub(super) fn request_of(&self, session: SessionId) -> Option<&PendingRequest> {
        self.requests.iter().find(|pending| pending.session_id == session)
    }

    /// Milliseconds for which the session has been in its state. If it waits for an answer, this counts from its
    /// oldest request, whatever has happened since.
    pub(super) fn state_ms(&self, session: &SessionView, now: Timestamp) -> u64 {
        let oldest = self.requests.iter().filter(|pending| pending.session_id == session.session_id);
        if let Some(time) = oldest.map(|pending| pending.at_ms).min()
            && Filter::NeedsYou.accepts(session)
        {
            return now.since(time);
        }
        self.since.get(&session.session_id).map_or(0, |(_, time)| now.since(*time))
    }

    fn select_listed(&mut self) {
        let current = self.current().map(|session| session.session_id);
        self.selected = current;
    }

    fn step(&mut self, by: isize) {
        let listed = self.listed_sessions();
        let index = listed.iter().position(|it| Some(it.session_id) == self.selected).unwrap_or(0);
        let last = listed.len().saturating_sub(1);
        let to = index.saturating_add_signed(by).min(last);
        let id = listed.get(to).map(|it| it.session_id);
        self.selected = id;
    }

    pub(super) fn on_key(&mut self, key: KeyEvent, now: Timestamp) -> Option<Action> {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return match self.dialog {
                Dialog::None => Some(Action::Quit),
                _ => self.close(),
            };
        }
        match self.dialog.clone() {
            Dialog::None => self.on_list_key(key, now),
            Dialog::Answer { since, .. } | Dialog::End { since, .. }
                if now.since(since) < IGNORE_KEYS_MS && key.code != KeyCode::Esc =>
            {
                None
            }
            Dialog::Answer { request, .. } => {
                let choice = match key.code {
                    KeyCode::Char('1' | 'y') => PermissionChoice::Once,
                    KeyCode::Char('4' | 'n') => PermissionChoice::Deny,
                    KeyCode::Esc => return self.close(),
                    _ => return None,
                };
                self.close();
                let pending = self.requests.iter().find(|pending| pending.request.request_id == request)?;
                Some(Action::Answer(Box::new(pending.request.clone()), choice))
            }
            Dialog::End { session, .. } => {
                let is_yes = matches!(key.code, KeyCode::Char('y'));
                self.close();
                is_yes.then_some(Action::Kill(session))
            }
            Dialog::Message { session, text } => self.on_message_key(key, session, text),
        }
    }

    /// Inserts pasted text, but only into a message, so that a paste answers nothing.
    pub(super) fn on_paste(&mut self, pasted: &str) {
        if let Dialog::Message { text, .. } = &mut self.dialog {
            text.push_str(pasted);
        }
    }

    fn on_message_key(&mut self, key: KeyEvent, session: SessionId, mut text: String) -> Option<Action> {
        match key.code {
            KeyCode::Esc => return self.close(),
            KeyCode::Enter if text.trim().is_empty() => return self.close(),
            KeyCode::Enter => {
                self.close();
                return Some(Action::Submit(session, text));
            }
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => text.clear(),
            KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::CONTROL) => text.push(c),
            _ => return None,
        }
        self.dialog = Dialog::Message { session, text };
        None
    }

    fn on_list_key(&mut self, key: KeyEvent, now: Timestamp) -> Option<Action> {
        self.notice = None;
        let current = self.current().map(|session| session.session_id);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Some(Action::Quit),
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::PageUp => self.step(-10),
            KeyCode::PageDown => self.step(10),
            KeyCode::Home | KeyCode::Char('g') => self.step(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.step(isize::MAX),
            KeyCode::Tab | KeyCode::Right => self.set_filter(self.filter.next(1)),
            KeyCode::BackTab | KeyCode::Left => self.set_filter(self.filter.next(Filter::ALL.len() - 1)),
            KeyCode::Enter => return current.map(Action::Attach),
            KeyCode::Char('n') => return Some(Action::New),
            KeyCode::Char('x') => return current.map(Action::Abort),
            KeyCode::Char('K') => {
                self.dialog = current.map_or(Dialog::None, |session| Dialog::End { session, since: now });
            }
            KeyCode::Char('m') => {
                self.dialog =
                    current.map_or(Dialog::None, |session| Dialog::Message { session, text: String::new() });
            }
            KeyCode::Char('a') => match current.and_then(|session| self.request_of(session)) {
                Some(pending) => {
                    self.dialog = Dialog::Answer { request: pending.request.request_id, since: now };
                }
                None => {
                    self.notice = Some("no permission request waits in this session; Enter opens it".into())
                }
            },
            _ => {}
        }
        None
    }

    fn set_filter(&mut self, filter: Filter) {
        self.filter = filter;
        self.select_listed();
    }

    fn close(&mut self) -> Option<Action> {
        self.dialog = Dialog::None;
        None
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fake_daemon::permission_requested;
    use crate::resolve_id::sample;

    pub(crate) fn session(number: u64, title: &str, changes: Value) -> SessionView {
        let mut session = sample(&format!("ses_0190f2a4-0000-7000-8000-{number:012}"), title);
        let fields = session.as_object_mut().expect("an object");
        fields.extend([("number".to_owned(), json!(number)), ("cwd".to_owned(), json!("/home/me/shop"))]);
        fields.extend(changes.as_object().expect("an object").clone());
        serde_json::from_value(session).expect("a session")
    }

    pub(crate) fn overview() -> Overview {
        let failed = json!({"subtype": "llm_error", "kind": "unauthorized", "message": "the key was refused", "ended_at_ms": 1_000});
        let sessions = vec![
            session(
                14,
                "nightly dependency update",
                json!({"state": "running", "activity": "Bash cargo test",
                "updated_at_ms": 88_000, "cost_usd_micros": 90_000, "cost_at_least_usd_micros": 90_000, "context_tokens": 22_000}),
            ),
            session(
                12,
                "fix login",
                json!({"state": "requires_action", "requires": "permission", "activity": "Edit src/lib.rs",
                "updated_at_ms": 96_000, "cost_usd_micros": 40_000, "cost_at_least_usd_micros": 40_000, "context_tokens": 12_000}),
            ),
            session(
                11,
                "loader without unwrap",
                json!({"last_turn": {"subtype": "success", "ended_at_ms": 10_000}}),
            ),
            session(9, "changelog for 0.4", json!({"last_turn": failed, "cost_usd_micros": 0})),
            session(3, "over", json!({"state": "ended"})),
        ];
        let mut request = permission_requested();
        request["session_id"] = json!("ses_0190f2a4-0000-7000-8000-000000000012");
        request["number"] = json!("12.1");
        request["at_ms"] = json!(96_000);
        let windows = HashMap::from([("demo/replay".to_owned(), 200_000)]);
        let facts = DaemonFacts {
            up_ms: 11_520_000,
            resident_bytes: 42 << 20,
            today: (Some(1_200_000), 1_200_000),
            windows,
            jobs: JobCounts::default(),
        };
        let requests = vec![serde_json::from_value(request).expect("a request")];
        let mut overview = Overview { facts, requests, ..Overview::default() };
        overview.update(sessions, Timestamp(100_000));
        overview
    }

    fn press(overview: &mut Overview, code: KeyCode, time: i64) -> Option<Action> {
        overview.on_key(KeyEvent::new(code, KeyModifiers::NONE), Timestamp(time))
    }

    #[test]
    fn top_keys_move_filter_and_open_sessions() {
        let mut overview = overview();
        let numbers =
            |overview: &Overview| overview.listed_sessions().iter().map(|it| it.number).collect::<Vec<_>>();
        assert_eq!(numbers(&overview), [12, 14, 11, 9]);
        press(&mut overview, KeyCode::Down, 0);
        assert_eq!(overview.current().map(|it| it.number), Some(14));
        press(&mut overview, KeyCode::Tab, 0);
        assert_eq!((overview.filter, numbers(&overview)), (Filter::NeedsYou, vec![12]));
        let id = overview.current().expect("a session").session_id;
        assert_eq!(press(&mut overview, KeyCode::Enter, 0), Some(Action::Attach(id)));
        press(&mut overview, KeyCode::BackTab, 0);
        press(&mut overview, KeyCode::BackTab, 0);
        assert_eq!((overview.filter, numbers(&overview)), (Filter::Failed, vec![9]));
        assert_eq!(press(&mut overview, KeyCode::Char('q'), 0), Some(Action::Quit));
    }

    #[test]
    fn answer_in_top_ignores_keys_for_a_moment() {
        let mut overview = overview();
        press(&mut overview, KeyCode::Char('a'), 1_000);
        assert_eq!(press(&mut overview, KeyCode::Char('y'), 1_300), None, "still deaf");
        overview.on_paste("y");
        let answer = press(&mut overview, KeyCode::Char('1'), 1_700);
        assert!(matches!(answer, Some(Action::Answer(_, PermissionChoice::Once))), "{answer:?}");
        press(&mut overview, KeyCode::Char('K'), 2_000);
        assert_eq!(press(&mut overview, KeyCode::Enter, 3_000), None, "Enter does not confirm");
        assert_eq!(overview.dialog, Dialog::None);
    }

    #[test]
    fn message_in_top_is_submitted_with_enter() {
        let mut overview = overview();
        press(&mut overview, KeyCode::Char('m'), 0);
        "hello q".chars().for_each(|c| drop(press(&mut overview, KeyCode::Char(c), 0)));
        let id = overview.current().expect("a session").session_id;
        assert_eq!(press(&mut overview, KeyCode::Enter, 0), Some(Action::Submit(id, "hello q".into())));
    }

    #[test]
    fn waiting_time_counts_from_the_request() {
        let mut overview = overview();
        let mut sessions = overview.sessions.clone();
        for session in &mut sessions {
            session.summary.updated_at_ms = Timestamp(99_000);
        }
        overview.since.clear();
        overview.update(sessions, Timestamp(100_000));
        let waits = overview.sessions.iter().find(|it| it.number == 12).expect("it is listed").clone();
        assert_eq!(overview.state_ms(&waits, Timestamp(100_000)), 4_000);
    }
}
