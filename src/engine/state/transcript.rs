//! The conversation of a session; copying it and appending to it are cheap.
//!
//! A decision works on a copy of the state and appends to it. One vector behind an `Arc` would be copied
//! completely for each appended message, so only a small part with the newest messages is copied.

use std::iter::Chain;
use std::slice::Iter;
use std::sync::Arc;

use types::message::{Block, Message, Role};

/// Maximum number of messages that are copied with the state; older ones move to the shared part.
const MAX_NEWEST_MESSAGES: usize = 32;

/// Messages in order, the oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transcript {
    settled: Arc<SharedMessages>,
    newest: Vec<Arc<Message>>,
}

#[derive(Clone, Debug, Default)]
struct SharedMessages {
    messages: Vec<Arc<Message>>,
    /// Number of the oldest messages that enter every request unchanged.
    plain: usize,
}

impl SharedMessages {
    /// Extends `plain` by the following messages that are plain as well.
    fn count_plain(&mut self) {
        let rest = self.messages[self.plain..].iter();
        let place = |at: usize| if at.is_multiple_of(2) { Role::User } else { Role::Assistant };
        let is_plain = |(at, message): &(usize, &Arc<Message>)| {
            message.role == place(self.plain + at) && is_plain(message)
        };
        self.plain += rest.enumerate().take_while(is_plain).count();
    }
}

impl Transcript {
    pub fn iter(&self) -> Chain<Iter<'_, Arc<Message>>, Iter<'_, Arc<Message>>> {
        self.settled.messages.iter().chain(&self.newest)
    }

    /// Returns the oldest messages, which enter every request unchanged, and all later messages. The
    /// first part begins with the user, alternates roles, and has no empty or model-specific message.
    pub fn plain(&self) -> (&[Arc<Message>], impl Iterator<Item = &Arc<Message>>) {
        let (plain, rest) = self.settled.messages.split_at(self.settled.plain);
        (plain, rest.iter().chain(&self.newest))
    }

    pub fn len(&self) -> usize {
        self.settled.messages.len() + self.newest.len()
    }

    pub fn last(&self) -> Option<&Arc<Message>> {
        self.newest.last().or_else(|| self.settled.messages.last())
    }

    pub fn push(&mut self, message: Message) {
        if self.newest.len() == MAX_NEWEST_MESSAGES {
            let settled = Arc::make_mut(&mut self.settled);
            settled.messages.append(&mut self.newest);
            settled.count_plain();
        }
        self.newest.push(Arc::new(message));
    }

    /// Adds a block to the newest message if that message is the user's. Otherwise adds a new message
    /// with the block.
    pub fn push_user_block(&mut self, block: Block) {
        let is_user = |message: &Arc<Message>| message.role == Role::User;
        if let Some(last) = self.newest.last_mut().filter(|last| is_user(last)) {
            Arc::make_mut(last).content.push(block);
        } else if self.newest.is_empty() && self.settled.messages.last().is_some_and(is_user) {
            let settled = Arc::make_mut(&mut self.settled);
            if let Some(last) = settled.messages.last_mut() {
                Arc::make_mut(last).content.push(block);
            }
            settled.plain = settled.plain.min(settled.messages.len() - 1);
            settled.count_plain();
        } else {
            self.push(Message::new(Role::User, vec![block]));
        }
    }

    /// Keeps the oldest `count` messages.
    pub fn truncate(&mut self, count: usize) {
        self.newest.truncate(count.saturating_sub(self.settled.messages.len()));
        if count < self.settled.messages.len() {
            let settled = Arc::make_mut(&mut self.settled);
            settled.messages.truncate(count);
            settled.plain = settled.plain.min(count);
        }
    }

    /// The last line of text of the newest answer.
    pub fn last_line(&self) -> String {
        let newest = self.newest.iter().rev().chain(self.settled.messages.iter().rev());
        let answers = newest.filter(|message| message.role == Role::Assistant);
        let texts =
            answers.flat_map(|message| message.content.iter().rev()).filter_map(|block| match block {
                Block::Text { text } => last_line_of(text),
                _ => None,
            });
        texts.into_iter().next().unwrap_or_default()
    }

    /// Replaces `count` messages after the first `from` by other messages.
    pub fn replace_range(&mut self, from: usize, count: usize, messages: &[Message]) {
        let mut all: Vec<Arc<Message>> = self.iter().cloned().collect();
        let from = from.min(all.len());
        let end = from.saturating_add(count).min(all.len());
        all.splice(from..end, messages.iter().cloned().map(Arc::new));
        let mut settled = SharedMessages { messages: all, plain: 0 };
        settled.count_plain();
        *self = Self { settled: Arc::new(settled), newest: Vec::new() };
    }

    /// Changes messages in place.
    pub fn edit_messages(&mut self, mut how: impl FnMut(&mut [Arc<Message>])) {
        let settled = Arc::make_mut(&mut self.settled);
        how(&mut settled.messages);
        settled.plain = 0;
        settled.count_plain();
        how(&mut self.newest);
    }
}

impl PartialEq for Transcript {
    /// How messages are split into shared and copied parts makes no difference.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

/// Whether every model can receive a message unchanged.
fn is_plain(message: &Message) -> bool {
    let is_plain = |block: &Block| match block {
        Block::Text { text } => !is_blank(text),
        Block::ToolResult { content, .. } => !is_blank(content),
        Block::Thinking { .. } | Block::RedactedThinking { .. } => false,
        Block::Image(_) | Block::Document(_) | Block::ToolCall(_) => true,
    };
    !message.content.is_empty() && message.content.iter().all(is_plain)
}

/// The last non-blank line of a text, shortened for lists.
pub(crate) fn last_line_of(text: &str) -> Option<String> {
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.trim().chars().take(160).collect())
}

/// Whether a text has no visible character. Stops at the first visible one.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use crate::request::build::{normalize, normalize_transcript};
    use crate::state::transcript::*;
    use proptest::prelude::*;

    /// A typical conversation: user and model alternate, and no message is empty.
    fn message(at: usize, kind: u8) -> Message {
        let role = if at.is_multiple_of(2) == (kind != 1) { Role::User } else { Role::Assistant };
        let text = if kind == 2 { " \n".to_owned() } else { format!("{at}") };
        let content = match kind {
            3 => vec![Block::Thinking { text: "hm".into(), signature: None }, Block::Text { text }],
            4 => Vec::new(),
            _ => vec![Block::Text { text }],
        };
        Message { role, content, model: (kind == 3).then(|| "p/m".to_owned()) }
    }

    #[derive(Clone, Debug)]
    enum TranscriptChange {
        Push(u8),
        Truncate(usize),
        Change(u8),
        Block(u8),
    }

    fn steps() -> impl Strategy<Value = Vec<TranscriptChange>> {
        let step = prop_oneof![
            8 => any::<u8>().prop_map(TranscriptChange::Push),
            1 => (0..90usize).prop_map(TranscriptChange::Truncate),
            1 => any::<u8>().prop_map(TranscriptChange::Change),
            2 => any::<u8>().prop_map(TranscriptChange::Block),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        /// The transcript behaves like a plain list, and a copy keeps its content.
        #[test]
        fn transcript_behaves_like_plain_list(steps in steps()) {
            let (mut transcript, mut plain) = (Transcript::default(), Vec::<Arc<Message>>::new());
            let mut copies = Vec::new();
            for step in steps {
                copies.push((transcript.clone(), plain.clone()));
                match step {
                    TranscriptChange::Push(n) => {
                        transcript.push(Message::user(n.to_string()));
                        plain.push(Arc::new(Message::user(n.to_string())));
                    }
                    TranscriptChange::Block(n) => {
                        let block = Block::Text { text: n.to_string() };
                        transcript.push_user_block(block.clone());
                        match plain.last_mut() {
                            Some(last) => Arc::make_mut(last).content.push(block),
                            None => plain.push(Arc::new(Message::new(Role::User, vec![block]))),
                        }
                    }
                    TranscriptChange::Truncate(count) => {
                        transcript.truncate(count);
                        plain.truncate(count);
                    }
                    TranscriptChange::Change(n) => {
                        let how = |part: &mut [Arc<Message>]| {
                            part.iter_mut().for_each(|it| *it = Arc::new(Message::user(n.to_string())));
                        };
                        transcript.edit_messages(how);
                        how(&mut plain);
                    }
                }
                prop_assert_eq!(transcript.len(), plain.len());
                prop_assert_eq!(transcript.last(), plain.last());
                prop_assert!(transcript.iter().eq(plain.iter()));
            }
            for (transcript, plain) in copies {
                prop_assert!(transcript.iter().eq(plain.iter()), "a copy was changed");
            }
        }

        /// Normalizing the cached prefix again would give the same result.
        #[test]
        fn normalized_request_is_independent_of_cached_prefix(
            kinds in prop::collection::vec((0..12u8, any::<bool>()), 0..120),
            kept_length in 0..120usize,
            thinks in any::<bool>(),
        ) {
            let mut transcript = Transcript::default();
            for (at, (kind, is_changed)) in kinds.iter().copied().enumerate() {
                transcript.push(message(at, kind));
                if is_changed && kind == 0 {
                    transcript.edit_messages(|part| {
                        part.iter_mut().take(1).for_each(|it| *it = Arc::new(message(1, kind)));
                    });
                }
            }
            transcript.truncate(kept_length);
            let thinker = thinks.then_some("p/m");
            let plain: Vec<Arc<Message>> = transcript.iter().cloned().collect();
            prop_assert_eq!(normalize_transcript(&transcript, thinker), normalize(&plain, thinker));
        }
    }
}
