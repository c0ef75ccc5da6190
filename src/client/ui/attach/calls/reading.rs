//! Calls that only read: commands, models, inputs of earlier sessions, points to rewind to.

use api::methods;

use crate::connection::client::CallError;
use crate::connection::expand_truncated;
use crate::connection::pages::RawEventsPage;
use crate::connection::wire::ReceivedEvent;
use crate::ui::attach::app::{App, ClientSetup, Point, own_words};
use crate::ui::attach::calls::{Caller, EffectResult};
use api::params::{
    CommandListParams, EventsParams, Include, ItemsParams, ListParams, ModelListParams, SessionParams,
};
use types::ids::{Seq, SessionId};
use types::session::{Item, ItemKind, ItemStatus, SessionView};

/// Number of sessions whose inputs are read in one batch. While a batch is read, the search shows the inputs
/// that were read before.
const HISTORY_SESSIONS: u32 = 20;
/// Items and models per request.
const PAGE_ROWS: u32 = 500;
/// Events per request.
const PAGE_EVENTS: u32 = 1_000;

impl Caller {
    /// The slash commands of the session, or of the folder of a new one.
    pub(crate) async fn commands(self, cwd: Option<String>) -> EffectResult {
        let session_id = cwd.is_none().then_some(self.session);
        let params = CommandListParams { session_id, cwd };
        match self.client.call::<methods::command::List>(&params).await {
            Ok(reply) => EffectResult::Commands(reply.commands),
            // Without the list there is no completion. The daemon still checks commands.
            Err(_) => EffectResult::Taken,
        }
    }

    pub(crate) async fn context(self) -> EffectResult {
        let params = SessionParams { session_id: self.session };
        match self.client.call::<methods::session::Context>(&params).await {
            Ok(view) => EffectResult::Context(view.used, view.window),
            Err(_) => EffectResult::Taken,
        }
    }

    pub(crate) async fn models(self) -> EffectResult {
        let params = ModelListParams { limit: Some(PAGE_ROWS), ..ModelListParams::default() };
        match self.client.all_rows::<methods::model::List>(params).await {
            Ok(models) => EffectResult::Models(models),
            Err(error) => EffectResult::Failed(error.into()),
        }
    }

    /// The inputs of a page of the folder's sessions, oldest first.
    pub(crate) async fn history(self, cwd: String, cursor: Option<String>) -> EffectResult {
        let filter =
            ListParams { cwd: Some(cwd), limit: Some(HISTORY_SESSIONS), cursor, ..ListParams::default() };
        let Ok(list) = self.client.call::<methods::session::List>(&filter).await else {
            return EffectResult::Taken;
        };
        let mut inputs = Vec::new();
        for session in list.sessions.iter().rev().filter(|session| session.session_id != self.session) {
            // A session may be deleted meanwhile. The inputs of the other sessions are still useful.
            inputs.extend(self.inputs(session.session_id).await.unwrap_or_default());
        }
        EffectResult::History(inputs, list.next_cursor)
    }

    /// The inputs of a session, oldest first.
    async fn inputs(&self, session: SessionId) -> Result<Vec<String>, CallError> {
        let params = ItemsParams {
            limit: Some(PAGE_ROWS),
            kinds: vec![ItemKind::UserMessage],
            ..ItemsParams::for_session(session)
        };
        let items = self.client.all_rows::<methods::session::Items>(params).await?;
        Ok(items.iter().map(input_text).collect())
    }

    /// The inputs of the session, each with the item before it.
    pub(crate) async fn load_points(self) -> EffectResult {
        match self.read_points().await {
            Ok(points) => EffectResult::Points(points),
            Err(error) => EffectResult::Failed(error.into()),
        }
    }

    async fn read_points(&self) -> Result<Vec<Point>, CallError> {
        let params = ItemsParams { limit: Some(PAGE_ROWS), ..ItemsParams::for_session(self.session) };
        let mut pages = self.client.pages::<methods::session::Items>(params);
        let mut points = Vec::new();
        let mut before = None;
        while let Some(page) = pages.next().await? {
            for item in &page.items {
                if item.kind == ItemKind::UserMessage {
                    let is_first = before.is_none();
                    let item_id = before.unwrap_or(item.item_id);
                    points.push(Point { item: item_id, is_first, text: input_text(item) });
                }
                if item.status == ItemStatus::Completed {
                    before = Some(item.item_id);
                }
            }
        }
        Ok(points)
    }

    /// The lines of the conversation up to an event, with nothing hidden.
    pub(crate) async fn read_earlier(
        self,
        session: SessionView,
        setup: ClientSetup,
        columns: usize,
        (upto, include): (Seq, Include),
    ) -> EffectResult {
        let mut app = App::new(session, setup);
        app.set_environment((columns, 24), app.clock);
        let params =
            EventsParams { limit: Some(PAGE_EVENTS), include, ..EventsParams::for_session(self.session) };
        let mut pages = self.client.pages_as::<methods::session::Events, RawEventsPage>(params);
        loop {
            let page = match pages.next().await {
                Ok(Some(page)) => page,
                Ok(None) => return EffectResult::Earlier(app.take_record()),
                Err(error) => return EffectResult::Failed(error.into()),
            };
            for raw in &page.events {
                let Ok(received) = ReceivedEvent::parse(raw) else { continue };
                if received.seq > upto {
                    return EffectResult::Earlier(app.take_record());
                }
                let received = match expand_truncated::is_truncated(&received) {
                    true => match expand_truncated::whole(&self.client, received).await {
                        Ok(received) => received,
                        Err(error) => return EffectResult::Failed(error.into()),
                    },
                    false => received,
                };
                app.on_event(&received);
            }
        }
    }
}

fn input_text(item: &Item) -> String {
    match &item.command {
        Some(command) => command.line(),
        None => own_words(item),
    }
}
