//! A cache of recent answers for byte-identical requests, if the configuration enables it.
//!
//! The key is a digest of the request's URL, its headers and its body. The headers include the API key, so no
//! account receives another account's answers. The cache is in memory only and is dropped with its
//! configuration.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use reqwest::Url;
use reqwest::header::HeaderMap;
use sha2::{Digest, Sha256};

use crate::stream::assembly::pieces;
use base::sync::lock;
use types::model::{BlockKind, Delta, ModelReply, ReplyBlock, StopReason};
use types::usage::Usage;

/// Lifetime of a cached answer.
const ANSWER_TTL: Duration = Duration::from_secs(5 * 60);
/// Maximum number of cached answers.
const MAX_ENTRIES: usize = 100;
/// Maximum total bytes of the cached answers.
const MAX_CACHE_BYTES: usize = 16 << 20;

/// Digest that identifies a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResponseKey([u8; 32]);

impl ResponseKey {
    pub(super) fn from_request(provider: &str, url: &Url, headers: &HeaderMap, body: &[u8]) -> Self {
        let mut digest = Sha256::new();
        // Each part is preceded by its length, so that two requests cannot collide by shifted boundaries.
        let mut add = |part: &[u8]| {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        };
        add(provider.as_bytes());
        add(url.as_str().as_bytes());
        for (name, value) in headers {
            add(name.as_str().as_bytes());
            add(value.as_bytes());
        }
        add(body);
        Self(digest.finalize().into())
    }
}

/// Recent answers; the most recently used one is last.
#[derive(Debug, Default)]
pub(super) struct ResponseCache {
    entries: Mutex<VecDeque<Entry>>,
}

#[derive(Debug)]
struct Entry {
    key: ResponseKey,
    given_at: Instant,
    bytes: usize,
    reply: ModelReply,
}

impl ResponseCache {
    /// The answer to the same request, if it is at most five minutes old. The reply is marked as cached,
    /// because it costs nothing.
    pub(super) fn get(&self, key: ResponseKey, now: Instant) -> Option<ModelReply> {
        let mut entries = lock(&self.entries);
        entries.retain(|entry| now.saturating_duration_since(entry.given_at) < ANSWER_TTL);
        let at = entries.iter().position(|entry| entry.key == key)?;
        let entry = entries.remove(at)?;
        let reply = entry.reply.clone();
        entries.push_back(entry);
        Some(reply)
    }

    /// Stores an answer, if it is complete.
    pub(super) fn put(&self, key: ResponseKey, reply: &ModelReply, now: Instant) {
        if !matches!(reply.stop_reason, StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence)
        {
            return;
        }
        let bytes = size(reply);
        if bytes > MAX_CACHE_BYTES / 4 {
            return;
        }
        let reply = ModelReply {
            usage: Usage::default(),
            nested: Vec::new(),
            is_restated: false,
            notices: Vec::new(),
            cache_hit: true,
            content: reply.content.clone(),
            stop_reason: reply.stop_reason,
            response_id: reply.response_id.clone(),
            last: Vec::new(),
        };
        let mut entries = lock(&self.entries);
        entries.retain(|entry| entry.key != key);
        entries.push_back(Entry { key, given_at: now, bytes, reply });
        while entries.len() > MAX_ENTRIES
            || entries.iter().map(|entry| entry.bytes).sum::<usize>() > MAX_CACHE_BYTES
        {
            entries.pop_front();
        }
    }
}

/// Approximate memory size of the answer.
fn size(reply: &ModelReply) -> usize {
    let block_bytes = |block: &ReplyBlock| match block {
        ReplyBlock::Text(text) | ReplyBlock::RedactedThinking(text) => text.len(),
        ReplyBlock::Thinking { text, signature } => text.len() + signature.as_ref().map_or(0, String::len),
        // JSON values with small parts need several times the memory of their text.
        ReplyBlock::ToolCall { tool, input, .. } => tool.len() + 8 * arguments(input).len(),
    };
    256 + reply.content.iter().map(|block| block_bytes(block) + 64).sum::<usize>()
}

fn arguments(input: &Result<serde_json::Value, (String, String)>) -> String {
    match input {
        Ok(input) => input.to_string(),
        Err((raw, _)) => raw.clone(),
    }
}

/// The answer as deltas, so that clients see the same events for a cached answer.
pub(super) fn deltas(reply: &ModelReply) -> Vec<Delta> {
    let mut out = Vec::new();
    for (index, block) in (0..).zip(&reply.content) {
        let kind = match block {
            ReplyBlock::Text(_) => BlockKind::Text,
            ReplyBlock::Thinking { .. } | ReplyBlock::RedactedThinking(_) => BlockKind::Thinking,
            ReplyBlock::ToolCall { tool, .. } => BlockKind::ToolCall { tool: tool.clone() },
        };
        out.push(Delta::BlockStarted { index, kind });
        match block {
            ReplyBlock::Text(text) => {
                out.extend(pieces(text).map(|text| Delta::Text { index, text: text.to_owned() }));
            }
            ReplyBlock::Thinking { text, .. } => {
                out.extend(pieces(text).map(|text| Delta::Thinking { index, text: text.to_owned() }));
            }
            ReplyBlock::RedactedThinking(_) => {}
            ReplyBlock::ToolCall { input, .. } => {
                let json = arguments(input);
                out.extend(pieces(&json).map(|json| Delta::ToolInput { index, json: json.to_owned() }));
            }
        }
        out.push(Delta::BlockCompleted { index });
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::response_cache::*;

    fn reply(text: &str, stop_reason: StopReason) -> ModelReply {
        ModelReply {
            content: vec![ReplyBlock::Text(text.into())],
            stop_reason,
            usage: Usage { input_tokens: 9, ..Usage::default() },
            nested: Vec::new(),
            is_restated: false,
            response_id: Some("msg_1".into()),
            notices: vec!["told once".into()],
            cache_hit: false,
            last: Vec::new(),
        }
    }

    fn key(n: usize) -> ResponseKey {
        ResponseKey::from_request(
            "p",
            &Url::parse("http://host/v1").unwrap(),
            &HeaderMap::new(),
            n.to_string().as_bytes(),
        )
    }

    #[test]
    fn cached_reply_lives_five_minutes_and_costs_nothing() {
        let (cache, now) = (ResponseCache::default(), Instant::now());
        cache.put(key(1), &reply("yes", StopReason::EndTurn), now);
        let later = now + ANSWER_TTL - Duration::from_secs(1);
        let hit = cache.get(key(1), later).expect("it is there");
        assert_eq!((hit.cache_hit, hit.usage, hit.notices.len()), (true, Usage::default(), 0));
        assert_eq!(hit.content, [ReplyBlock::Text("yes".into())]);
        assert_eq!(cache.get(key(2), later), None);
        // A cache hit does not extend the lifetime.
        assert_eq!(cache.get(key(1), now + ANSWER_TTL), None);
    }

    #[test]
    fn only_complete_replies_are_cached() {
        let (cache, now) = (ResponseCache::default(), Instant::now());
        for stop in [StopReason::MaxTokens, StopReason::Refusal, StopReason::Pause] {
            cache.put(key(1), &reply("half", stop), now);
            assert_eq!(cache.get(key(1), now), None, "{stop:?}");
        }
        for stop in [StopReason::EndTurn, StopReason::ToolUse, StopReason::StopSequence] {
            cache.put(key(1), &reply("whole", stop), now);
            assert_eq!(cache.get(key(1), now).map(|reply| reply.stop_reason), Some(stop));
        }
    }

    #[test]
    fn least_recently_used_reply_is_evicted_first() {
        let (cache, now) = (ResponseCache::default(), Instant::now());
        for n in 0..MAX_ENTRIES {
            cache.put(key(n), &reply("yes", StopReason::EndTurn), now);
        }
        assert!(cache.get(key(0), now).is_some());
        cache.put(key(MAX_ENTRIES), &reply("yes", StopReason::EndTurn), now);
        assert!(cache.get(key(0), now).is_some(), "it was just used");
        assert!(cache.get(key(1), now).is_none());

        let large = "x".repeat(MAX_CACHE_BYTES / 5);
        for n in 0..10 {
            cache.put(key(n), &reply(&large, StopReason::EndTurn), now);
        }
        let cached_bytes: usize = cache.entries.lock().unwrap().iter().map(|entry| entry.bytes).sum();
        assert!(cached_bytes <= MAX_CACHE_BYTES, "{cached_bytes}");
        assert!(cache.get(key(9), now).is_some() && cache.get(key(2), now).is_none());
        cache.put(key(50), &reply(&"x".repeat(MAX_CACHE_BYTES), StopReason::EndTurn), now);
        assert!(cache.get(key(50), now).is_none(), "one answer is not worth all others");
    }

    #[test]
    fn cache_key_covers_every_request_part() {
        let url = |text| Url::parse(text).unwrap();
        let headers =
            |key: &str| HeaderMap::from_iter([(reqwest::header::AUTHORIZATION, key.parse().unwrap())]);
        let known = ResponseKey::from_request("p", &url("http://host/v1"), &headers("a"), b"body");
        assert_eq!(known, ResponseKey::from_request("p", &url("http://host/v1"), &headers("a"), b"body"));
        for other in [
            ResponseKey::from_request("q", &url("http://host/v1"), &headers("a"), b"body"),
            ResponseKey::from_request("p", &url("http://host/v2"), &headers("a"), b"body"),
            ResponseKey::from_request("p", &url("http://host/v1"), &headers("b"), b"body"),
            ResponseKey::from_request("p", &url("http://host/v1"), &HeaderMap::new(), b"body"),
            ResponseKey::from_request("p", &url("http://host/v1"), &headers("a"), b"body "),
        ] {
            assert_ne!(known, other);
        }
    }

    #[test]
    fn cached_reply_deltas_equal_adapter_deltas() {
        let long = "é".repeat(40_000);
        let blocks = vec![
            ReplyBlock::Thinking { text: "hm".into(), signature: Some("s".into()) },
            ReplyBlock::RedactedThinking("x".into()),
            ReplyBlock::Text(long.clone()),
            ReplyBlock::ToolCall {
                provider_id: "t".into(),
                tool: "T".into(),
                input: Ok(serde_json::json!({"a":1})),
            },
            ReplyBlock::ToolCall {
                provider_id: "u".into(),
                tool: "T".into(),
                input: Err(("{".into(), "cut".into())),
            },
        ];
        let deltas = deltas(&ModelReply { content: blocks, ..reply("", StopReason::ToolUse) });
        let text: String = deltas
            .iter()
            .filter_map(|delta| match delta {
                Delta::Text { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(text, long);
        let inputs: Vec<&str> = deltas
            .iter()
            .filter_map(|delta| match delta {
                Delta::ToolInput { json, .. } => Some(json.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(inputs, [r#"{"a":1}"#, "{"]);
        let count = |is: fn(&&Delta) -> bool| deltas.iter().filter(is).count();
        assert_eq!(count(|delta| matches!(delta, Delta::BlockStarted { .. })), 5);
        assert_eq!(count(|delta| matches!(delta, Delta::BlockCompleted { .. })), 5);
    }
}
