//! Assembles the items of an answer, one after another.
//!
//! The stream numbers the items (`output_index`) and may send several at once. Blocks of a reply come one after
//! another, so the updates of a later item wait until the earlier one is complete.
//!
//! The end of the answer repeats all items. Some servers number them differently there: with a gap, or from 1 in the
//! stream, or with an item that was never streamed. So an item of the end is matched by its `id` or `call_id`. If a
//! server omits or changes these, it is matched by its content. Only an item without a match is added from the end;
//! otherwise a tool would run twice.

use crate::catalog::capabilities::{SealedReasoning, seal};
use crate::stream::assembly::Assembly;
use crate::stream::split_chars::{has_marks, join_complete_marks};
use types::model::Delta;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    Message,
    Reasoning,
    Call,
}

/// The server's names for an item. Each part may be missing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ItemName<'a> {
    /// `output_index`; only in events of the stream.
    pub index: Option<u64>,
    pub id: &'a str,
    pub call_id: &'a str,
}

/// A part of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ItemUpdate {
    Begin,
    /// More of its text, reasoning or arguments.
    Piece(String),
    /// The item is complete. It also contains the parts that were not streamed.
    Done(CompleteItem),
}

/// A complete item: the text of a message, the reasoning or its summary, the arguments of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CompleteItem {
    pub content: String,
    pub sealed: Option<SealedReasoning>,
    /// Name of the tool.
    pub tool: String,
}

/// The items of one answer, in the order in which they first appeared.
#[derive(Debug, Default)]
pub(super) struct Items {
    items: Vec<Item>,
    /// The item whose updates are delivered now; the updates of later items wait.
    current: usize,
}

#[derive(Debug)]
struct Item {
    kind: ItemKind,
    index: Option<u64>,
    id: String,
    call_id: String,
    tool: String,
    /// All pieces so far, or the content of the complete item.
    content: String,
    /// Whether the block of the call was begun.
    is_open: bool,
    is_complete: bool,
    /// Whether an item of the end was matched with this item.
    is_matched: bool,
    /// Content that waits for the items before it.
    waiting: String,
    sealed: Option<SealedReasoning>,
}

impl Items {
    /// Handles a part of a streamed item and delivers the ready parts. Parts of a complete item are repetitions.
    pub(super) fn handle_item(
        &mut self,
        kind: ItemKind,
        name: ItemName<'_>,
        tool: &str,
        step: ItemUpdate,
        answer: &mut Assembly,
        out: &mut Vec<Delta>,
    ) {
        let found = self.find(kind, name, &step);
        // A complete item with other content and without a known name is not a repetition.
        let found = match (&step, found) {
            (ItemUpdate::Done(whole), Some(at))
                if self.items[at].is_complete && !self.items[at].is_named(name) =>
            {
                self.items
                    .iter()
                    .position(|item| item.kind == kind && item.is_complete && item.matches_content(whole))
            }
            (_, found) => found,
        };
        let at = match found {
            Some(at) => at,
            // Arguments of an item that was not announced as a call belong to no call.
            None if kind == ItemKind::Call && matches!(step, ItemUpdate::Piece(_)) => return,
            None => self.add_item(kind, name.index),
        };
        self.apply_update(at, name, tool, step, answer, out);
    }

    /// Handles the items that the end of the answer repeats. Items that were not streamed are added.
    pub(super) fn take_end(
        &mut self,
        items: &[(ItemKind, ItemName<'_>, CompleteItem)],
        answer: &mut Assembly,
        out: &mut Vec<Delta>,
    ) {
        let mut matches = vec![None; items.len()];
        for by_name in [true, false] {
            for ((kind, name, whole), matched) in items.iter().zip(&mut matches) {
                if matched.is_some() {
                    continue;
                }
                let is_same = |item: &Item| {
                    item.kind == *kind
                        && if by_name { item.is_named(*name) } else { item.matches_content(whole) }
                };
                *matched = self.items.iter().position(|item| !item.is_matched && is_same(item));
                if let Some(at) = *matched {
                    self.items[at].is_matched = true;
                }
            }
        }
        for ((kind, name, whole), matched) in items.iter().zip(matches) {
            let at = matched.unwrap_or_else(|| self.add_item(*kind, None));
            self.items[at].is_matched = true;
            self.apply_update(at, *name, &whole.tool, ItemUpdate::Done(whole.clone()), answer, out);
        }
    }

    /// Handles the end of the stream: delivers the waiting content in order.
    pub(super) fn finish(&mut self, answer: &mut Assembly, out: &mut Vec<Delta>) {
        for item in &mut self.items[self.current..] {
            item.is_complete = true;
        }
        self.deliver_ready(answer, out);
    }

    /// Whether any item has begun.
    pub(super) fn has_begun(&self) -> bool {
        !self.items.is_empty()
    }

    /// The item that a part belongs to; `None` for a new one. Inside a stream the number decides, because some
    /// servers change the ids of an item from event to event.
    fn find(&self, kind: ItemKind, name: ItemName<'_>, step: &ItemUpdate) -> Option<usize> {
        let fits = |item: &Item| item.kind == kind && !item.is_other_call(name.call_id);
        let begins = *step == ItemUpdate::Begin;
        let is_numbered = |item: &Item| name.index.is_some() && item.index == name.index;
        // If a server gives several open items one number, the id distinguishes them.
        if !begins && !self.items.iter().any(|item| is_numbered(item) && fits(item) && item.is_named(name)) {
            let is_open = |item: &Item| fits(item) && !item.is_complete && item.is_named(name);
            if let Some(at) = self.items.iter().rposition(is_open) {
                return Some(at);
            }
        }
        if !begins
            && !name.id.is_empty()
            && let Some(at) = self
                .items
                .iter()
                .rposition(|item| is_numbered(item) && fits(item) && !item.is_complete && item.is_named(name))
        {
            return Some(at);
        }
        if matches!(step, ItemUpdate::Done(_))
            && let Some(at) = self.items.iter().rposition(|item| is_numbered(item) && fits(item))
        {
            return Some(at);
        }
        if let Some(at) = self.items.iter().rposition(is_numbered) {
            // A server that gives all items the same number begins the next one with another id.
            let item = &self.items[at];
            let is_next = begins && item.is_complete && !item.is_named(name);
            return (fits(item) && !is_next).then_some(at);
        }
        if begins && name.index.is_some() {
            return None;
        }
        let named = self.items.iter().rposition(|item| fits(item) && item.is_named(name));
        // A part without any name belongs to the newest item.
        let newest = || self.items.len().checked_sub(1).filter(|at| fits(&self.items[*at]));
        named.or_else(|| newest().filter(|_| name.index.is_none() && name.id.is_empty() && !begins))
    }

    /// Adds an item after all others. An incomplete item with the same number is complete now, because each
    /// number has one item.
    fn add_item(&mut self, kind: ItemKind, index: Option<u64>) -> usize {
        for item in
            self.items[self.current..].iter_mut().filter(|item| index.is_some() && item.index == index)
        {
            item.is_complete = true;
        }
        self.items.push(Item {
            kind,
            index,
            id: String::new(),
            call_id: String::new(),
            tool: String::new(),
            content: String::new(),
            is_open: false,
            is_complete: false,
            is_matched: false,
            waiting: String::new(),
            sealed: None,
        });
        self.items.len() - 1
    }

    fn apply_update(
        &mut self,
        at: usize,
        name: ItemName<'_>,
        tool: &str,
        step: ItemUpdate,
        answer: &mut Assembly,
        out: &mut Vec<Delta>,
    ) {
        let item = &mut self.items[at];
        if item.is_complete {
            return;
        }
        for (known, received) in
            [(&mut item.id, name.id), (&mut item.call_id, name.call_id), (&mut item.tool, tool)]
        {
            if known.is_empty() {
                known.push_str(received);
            }
        }
        match step {
            ItemUpdate::Begin => {}
            ItemUpdate::Piece(piece) => item.add_content(piece),
            ItemUpdate::Done(whole) => {
                if let Some(rest) = whole.content.strip_prefix(item.content.as_str()) {
                    item.add_content(rest.to_owned());
                }
                item.sealed = whole.sealed;
                item.is_complete = true;
            }
        }
        self.deliver_ready(answer, out);
    }

    /// Delivers the ready content.
    fn deliver_ready(&mut self, answer: &mut Assembly, out: &mut Vec<Delta>) {
        while let Some(item) = self.items.get_mut(self.current) {
            item.deliver_content(answer, out);
            if !item.is_complete {
                return;
            }
            answer.close(out);
            self.current += 1;
        }
    }
}

impl Item {
    /// Whether the server gave this item the id or the call id of `name`.
    fn is_named(&self, name: ItemName<'_>) -> bool {
        let is_same = |known: &str, received: &str| !received.is_empty() && known == received;
        match (self.call_id.as_str(), name.call_id) {
            ("", _) | (_, "") => is_same(&self.id, name.id),
            (known, received) => known == received,
        }
    }

    fn is_other_call(&self, call_id: &str) -> bool {
        !call_id.is_empty() && !self.call_id.is_empty() && self.call_id != call_id
    }

    /// Whether this item has the same content as an item of the end, as far as it was streamed.
    fn matches_content(&self, whole: &CompleteItem) -> bool {
        let is_same = match self.is_complete {
            true if self.kind == ItemKind::Call => is_same_json(&self.content, &whole.content),
            true => self.content.trim() == whole.content.trim(),
            false => whole.content.starts_with(&self.content),
        };
        is_same && self.tool == whole.tool
    }

    fn add_content(&mut self, piece: String) {
        self.content.push_str(&piece);
        if has_marks(&self.content) {
            // The end of the answer repeats the content with its characters in one piece.
            self.content = join_complete_marks(&self.content);
        }
        match self.waiting.is_empty() {
            true => self.waiting = piece,
            false => self.waiting.push_str(&piece),
        }
    }

    fn deliver_content(&mut self, answer: &mut Assembly, out: &mut Vec<Delta>) {
        let piece = std::mem::take(&mut self.waiting);
        match self.kind {
            ItemKind::Message => answer.text(&piece, out),
            ItemKind::Reasoning => answer.thinking(&piece, out),
            ItemKind::Call => {
                if !self.is_open {
                    self.is_open = true;
                    answer.call(&self.call_id, &self.tool, out);
                }
                answer.call_input(&piece, out);
            }
        }
        if let Some(sealed) = self.sealed.take() {
            answer.signature(&seal(&sealed), out);
        }
    }
}

/// Whether two texts are the same arguments in any formatting; no text means no arguments.
fn is_same_json(one: &str, other: &str) -> bool {
    let parse = |text: &str| match text.trim() {
        "" => Some(serde_json::json!({})),
        text => serde_json::from_str::<serde_json::Value>(text).ok(),
    };
    one.trim() == other.trim() || parse(one).is_some_and(|one| Some(one) == parse(other))
}
