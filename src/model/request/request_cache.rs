//! A cache of serialised messages: the next request of a conversation repeats all messages of the previous one.
//!
//! Serialising a long conversation costs more than the rest of a request, and only its end changes. The cache
//! changes no byte of a request.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::settings::Api;
use base::sync::lock;
use types::message::{Block, Message};

/// Maximum number of cached conversations, and their total bytes; the least recently used one is removed first.
/// The messages are kept as well and have about the same size.
const MAX_CONVERSATIONS: usize = 32;
const MAX_CACHE_BYTES: usize = 16 << 20;
/// How long an unused conversation is kept.
const CONVERSATION_TTL: Duration = Duration::from_secs(600);

/// The parameters, apart from the message, that determine its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheKey {
    pub api: Api,
    /// Whether its reasoning is sent back.
    pub keeps: bool,
}

/// The serialised messages of recent requests.
#[derive(Debug, Default)]
pub(crate) struct RequestCache {
    /// The most recently used one is last.
    entries: Mutex<VecDeque<CachedPart>>,
}

#[derive(Debug)]
struct CachedPart {
    manner: CacheKey,
    messages: Vec<Arc<Message>>,
    /// The end of each message in `bytes`, and whether it is left out.
    ends: Vec<(usize, bool)>,
    bytes: Vec<u8>,
    used: Option<Instant>,
}

impl RequestCache {
    /// Appends the serialised `messages` to `out` and reuses cached bytes. `write` serialises the message at an
    /// index, either plainly, or with content of this request alone. The latter applies to messages that
    /// `is_special` selects.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn write<E>(
        &self,
        manner: CacheKey,
        messages: &[Arc<Message>],
        is_special: impl Fn(usize) -> bool,
        write: impl Fn(usize, PlainForm, &mut Vec<u8>) -> Result<(), E>,
        out: &mut Vec<u8>,
    ) -> Result<(), E> {
        let mut entry = self.remove_entry(manner, messages);
        entry.truncate_to_common(messages);
        for (at, message) in messages.iter().enumerate().skip(entry.messages.len()) {
            let is_left_out = has_media(message);
            if !is_left_out {
                write(at, PlainForm(true), &mut entry.bytes)?;
            }
            entry.messages.push(Arc::clone(message));
            entry.ends.push((entry.bytes.len(), is_left_out));
        }
        out.reserve(entry.bytes.len());
        let mut from = 0;
        let mut begins = 0;
        for (at, (ends, is_left_out)) in entry.ends.iter().copied().enumerate() {
            if is_left_out || is_special(at) {
                out.extend_from_slice(&entry.bytes[from..begins]);
                write(at, PlainForm(false), out)?;
                from = ends;
            }
            begins = ends;
        }
        out.extend_from_slice(&entry.bytes[from..]);
        self.put(entry, Instant::now());
        Ok(())
    }

    /// Removes and returns the entry of this conversation: one with the same first messages. The first
    /// message itself may change with each request.
    fn remove_entry(&self, manner: CacheKey, messages: &[Arc<Message>]) -> CachedPart {
        let mut all = lock(&self.entries);
        let begins =
            |entry: &CachedPart| entry.messages.iter().zip(messages).take(2).any(|(a, b)| Arc::ptr_eq(a, b));
        let found = all.iter().rposition(|entry| entry.manner == manner && begins(entry));
        let found = found.and_then(|at| all.remove(at));
        found.unwrap_or_else(|| CachedPart::new(manner))
    }

    fn put(&self, mut entry: CachedPart, now: Instant) {
        entry.used = Some(now);
        let mut all = lock(&self.entries);
        all.retain(|entry| {
            entry.used.is_some_and(|used| now.saturating_duration_since(used) < CONVERSATION_TTL)
        });
        // An entry that uses too much of the limit would displace all others.
        if entry.messages.is_empty() || entry.size() > MAX_CACHE_BYTES / 2 {
            return;
        }
        all.push_back(entry);
        let mut bytes: usize = all.iter().map(CachedPart::size).sum();
        while all.len() > MAX_CONVERSATIONS || bytes > MAX_CACHE_BYTES {
            let Some(oldest) = all.pop_front() else { break };
            bytes -= oldest.size();
        }
    }
}

/// Whether a message is serialised as in any other request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlainForm(pub bool);

impl CachedPart {
    fn new(manner: CacheKey) -> Self {
        Self { manner, messages: Vec::new(), ends: Vec::new(), bytes: Vec::new(), used: None }
    }

    fn size(&self) -> usize {
        self.bytes.capacity()
    }

    /// Removes the first message that differs from `messages`, and all after it.
    fn truncate_to_common(&mut self, messages: &[Arc<Message>]) {
        let is_same = |(old, new): &(&Arc<Message>, &Arc<Message>)| {
            Arc::ptr_eq(old, new) || !holds_values(old) && old == new
        };
        let same = self.messages.iter().zip(messages).take_while(is_same).count();
        self.messages.truncate(same);
        self.ends.truncate(same);
        self.bytes.truncate(self.ends.last().map_or(0, |(end, _)| *end));
        if self.bytes.capacity() / 4 > self.bytes.len() {
            self.bytes.shrink_to_fit();
        }
    }
}

/// Whether equal messages may have different bytes: the keys of two equal JSON values may differ in order.
fn holds_values(message: &Message) -> bool {
    message.content.iter().any(|block| matches!(block, Block::ToolCall(_)))
}

/// Whether a message contains media: its bytes depend on the contents that the request carries.
fn has_media(message: &Message) -> bool {
    message.content.iter().any(|block| match block {
        Block::Image(_) | Block::Document(_) => true,
        Block::ToolResult { attachments, .. } => !attachments.is_empty(),
        Block::Text { .. } | Block::Thinking { .. } | Block::RedactedThinking { .. } | Block::ToolCall(_) => {
            false
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::request::request_cache::*;
    use std::cell::Cell;
    use std::convert::Infallible;

    const CACHE_KEY: CacheKey = CacheKey { api: Api::Anthropic, keeps: true };

    fn user_messages(texts: &[&str]) -> Vec<Arc<Message>> {
        texts.iter().map(|text| Arc::new(Message::user(*text))).collect()
    }

    /// The serialised text, `!` after a special message, and how many messages were serialised for it.
    fn write(written: &RequestCache, messages: &[Arc<Message>], special: usize) -> (String, usize) {
        let (mut out, count) = (b"[".to_vec(), Cell::new(0));
        let piece = |at: usize, plainly: PlainForm, out: &mut Vec<u8>| {
            count.set(count.get() + 1);
            if let [Block::Text { text }] = messages[at].content.as_slice() {
                out.extend_from_slice(text.as_bytes());
            }
            out.extend_from_slice(if plainly == PlainForm(true) { b"," } else { b"!" });
            Ok::<(), Infallible>(())
        };
        written.write(CACHE_KEY, messages, |at| at == special, piece, &mut out).expect("written");
        (String::from_utf8(out).expect("text"), count.get())
    }

    #[test]
    fn cached_messages_are_reused_without_changing_output() {
        let written = RequestCache::default();
        let mut messages = user_messages(&["a", "b"]);
        assert_eq!(write(&written, &messages, 1), ("[a,b!".into(), 3));
        messages.extend(user_messages(&["c", "d"]));
        assert_eq!(write(&written, &messages, 3), ("[a,b,c,d!".into(), 3), "b stands there plainly");
        // A different message at the same index, and a shorter conversation.
        messages[2] = user_messages(&["C"]).remove(0);
        assert_eq!(write(&written, &messages, 0), ("[a!b,C,d,".into(), 3));
        messages.truncate(2);
        assert_eq!(write(&written, &messages, 9), ("[a,b,".into(), 0));
        // Equal content in a new allocation.
        let changed: Vec<_> = messages.iter().take(1).cloned().chain(user_messages(&["b"])).collect();
        assert_eq!(write(&written, &changed, 9), ("[a,b,".into(), 0));
        assert_eq!(
            write(&written, &user_messages(&["a", "b"]), 9),
            ("[a,b,".into(), 2),
            "another conversation"
        );
        // The first message is allocated again for each request.
        let changed: Vec<_> =
            user_messages(&["a"]).into_iter().chain(messages.iter().skip(1).cloned()).collect();
        assert_eq!(write(&written, &changed, 9), ("[a,b,".into(), 0));
        assert_eq!(write(&written, &[], 9), ("[".into(), 0));
    }

    #[test]
    fn request_cache_size_is_bounded() {
        let written = RequestCache::default();
        for _ in 0..2 * MAX_CONVERSATIONS {
            write(&written, &user_messages(&["a"]), 9);
        }
        assert_eq!(written.entries.lock().expect("kept").len(), MAX_CONVERSATIONS);
        for _ in 0..20 {
            write(&written, &user_messages(&[&"x".repeat(MAX_CACHE_BYTES / 8)]), 9);
        }
        let count = || written.entries.lock().expect("kept").len();
        let before = count();
        assert!((1..=8).contains(&before), "{before}");
        write(&written, &user_messages(&[&"x".repeat(MAX_CACHE_BYTES)]), 9);
        write(&written, &[], 9);
        assert_eq!(count(), before, "an empty or too long text evicts no entry");
        let later = Instant::now() + CONVERSATION_TTL;
        written.put(CachedPart::new(CACHE_KEY), later);
        assert_eq!(count(), 0, "entries expire");
    }
}
