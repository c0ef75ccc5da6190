//! Finds the beginning of the view of a long conversation. The last part of the conversation is read first,
//! so that it appears at once.

use crate::connection::client::{CallError, Client};
use crate::ui::attach::app::own_text;
use api::methods;
use api::params::{ItemsParams, QueueListParams, QueueReply};
use types::ids::{Seq, TurnId};
use types::session::{Item, ItemKind, SessionState, SessionView};

/// Number of items that fill any screen and leave some rows to scroll back to.
const PAGE_ITEMS: u32 = 100;
/// Number of pages that are searched for the beginning of a turn. If they contain none, the whole
/// conversation is read.
const MAX_PAGES: usize = 5;

/// The part of a conversation that is omitted at first.
#[derive(Debug, Default)]
pub(super) struct OmittedPart {
    /// Seq of the last omitted event; 0 if none is omitted.
    pub(super) upto: Seq,
    /// The waiting inputs, because their events may be in the omitted part.
    pub(super) queue: Vec<(TurnId, String)>,
}

/// Finds the beginning of the last part.
pub(super) async fn find_omitted_part(
    client: &Client,
    session: &SessionView,
) -> Result<OmittedPart, CallError> {
    let params = ItemsParams {
        newest_first: true,
        limit: Some(PAGE_ITEMS),
        ..ItemsParams::for_session(session.session_id)
    };
    let mut pages = client.pages::<methods::session::Items>(params);
    let mut items = Vec::new();
    for _ in 0..MAX_PAGES {
        let Some(page) = pages.next().await? else { break };
        items.extend(page.items);
        if pages.is_finished() {
            break;
        }
        if let Some(upto) = find_cut(&items, session) {
            let queue: QueueReply = client
                .call::<methods::session::QueueList>(&QueueListParams {
                    session_id: session.session_id,
                    cursor: None,
                    limit: None,
                })
                .await?;
            let queue = queue.queue.iter().map(|it| (it.turn_id, own_text(&it.input))).collect();
            return Ok(OmittedPart { upto, queue });
        }
    }
    Ok(OmittedPart::default())
}

/// The last event before the oldest turn that begins within these items. The newest item comes first. An open
/// turn is read from its beginning, because its requests and calls may be open as well.
fn find_cut(items: &[Item], session: &SessionView) -> Option<Seq> {
    let is_open = !matches!(
        session.summary.state,
        SessionState::Idle | SessionState::Failed | SessionState::Ended | SessionState::Archived
    );
    let open = session.summary.turn_id.filter(|_| is_open);
    if is_open && (open.is_none() || items.iter().all(|item| Some(item.turn_id) == open)) {
        return None;
    }
    let begins = |item: &Item| item.kind == ItemKind::UserMessage && Some(item.turn_id) != open;
    let of_open = |item: &Item| item.kind == ItemKind::UserMessage && Some(item.turn_id) == open;
    let index = items.iter().rposition(begins).or_else(|| items.iter().rposition(of_open))?;
    // Begin after the end of the item before it, so that the beginning of the turn is included.
    let before = items[index].first_seq.saturating_sub(1);
    Some(items.get(index + 1).map_or(before, |older| older.last_seq.min(before)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fake_daemon::SESSION;
    use crate::resolve_id::sample;

    fn turn(n: u64) -> TurnId {
        format!("turn_0190f2a4-0000-7000-8000-{n:012}").parse().expect("an id")
    }

    /// Items of these turns, the newest first. `u` is an input, and `a` is an answer.
    fn items(kinds: &[(char, u64)]) -> Vec<Item> {
        let count = kinds.len() as u64;
        let item = |(nth, (kind, of)): (usize, &(char, u64))| {
            let seq = (count - nth as u64) * 10;
            let kind = if *kind == 'u' { "user_message" } else { "assistant_message" };
            serde_json::from_value(json!({"item_id": format!("item_0190f2a4-0000-7000-8000-{seq:012}"),
                "turn_id": turn(*of), "kind": kind, "status": "completed", "first_seq": seq, "last_seq": seq + 2}))
            .expect("an item")
        };
        kinds.iter().enumerate().map(item).collect()
    }

    fn session(state: &str, open: Option<u64>) -> SessionView {
        let mut session = sample(SESSION, "t");
        session["state"] = json!(state);
        session["turn_id"] = json!(open.map(turn));
        serde_json::from_value(session).expect("a session")
    }

    #[test]
    fn view_begins_with_the_oldest_complete_turn() {
        let page = items(&[('a', 3), ('u', 3), ('a', 2), ('u', 2), ('a', 1)]);
        assert_eq!(find_cut(&page, &session("idle", None)), Some(12), "after the answer of turn 1");
        assert_eq!(find_cut(&items(&[('a', 1), ('a', 1)]), &session("idle", None)), None);
    }

    #[test]
    fn open_turn_is_read_from_its_beginning() {
        let page = items(&[('a', 3), ('u', 3), ('a', 3), ('u', 3), ('a', 2)]);
        assert_eq!(find_cut(&page, &session("running", Some(3))), Some(12), "steered inputs begin no turn");
        let within = items(&[('a', 3), ('u', 3), ('a', 3)]);
        assert_eq!(find_cut(&within, &session("requires_action", Some(3))), None, "it may begin before");
        assert_eq!(find_cut(&page, &session("running", None)), None);
    }
}
