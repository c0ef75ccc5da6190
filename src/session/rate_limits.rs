//! Which sessions wait because a provider limits the rate of requests. Unattended work asks before it begins more.

use std::collections::HashMap;
use std::sync::Mutex;

use base::sync::lock;
use types::event::{Envelope, Event};
use types::ids::SessionId;
use types::time::Timestamp;

/// `kind` of a `retry` event after a limit of the rate.
const RATE_LIMITED: &str = "rate_limited";

/// The waits of all sessions since the start of the daemon.
#[derive(Debug, Default)]
pub struct RateLimits(Mutex<HashMap<SessionId, RateLimitWait>>);

#[derive(Debug)]
struct RateLimitWait {
    /// `PROVIDER/MODEL`.
    model: String,
    until: Timestamp,
}

impl RateLimits {
    /// Notes a wait if the event begins one. Waits that are over are forgotten.
    pub(crate) fn on_event(&self, envelope: &Envelope, model: &str) {
        let Event::Retry { kind, delay_ms, .. } = &envelope.event else { return };
        if kind == RATE_LIMITED {
            let wait = RateLimitWait { model: model.to_owned(), until: envelope.at_ms.plus(*delay_ms) };
            let mut waits = lock(&self.0);
            waits.retain(|_, wait| wait.until > envelope.at_ms);
            waits.insert(envelope.session_id, wait);
        }
    }

    /// Whether the session waits now.
    #[must_use]
    pub fn is_waiting(&self, session_id: SessionId, now: Timestamp) -> bool {
        lock(&self.0).get(&session_id).is_some_and(|wait| wait.until > now)
    }

    /// The models (`PROVIDER/MODEL`) that a session waits for, each with the end of the longest wait.
    #[must_use]
    pub fn paused_models(&self, now: Timestamp) -> HashMap<String, Timestamp> {
        let mut paused: HashMap<String, Timestamp> = HashMap::new();
        for wait in lock(&self.0).values().filter(|wait| wait.until > now) {
            let until = paused.entry(wait.model.clone()).or_insert(wait.until);
            *until = wait.until.max(*until);
        }
        paused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::ids::{Mint, Seed};

    #[test]
    fn wait_for_a_rate_limit_pauses_its_model_until_its_end() {
        let mut mint = Mint::new(1, Seed(1));
        let (one, two) = (mint.session(), mint.session());
        let limits = RateLimits::default();
        let note = |session_id, kind: &str, delay_ms, model: &str| {
            let event = Event::Retry {
                attempt: 1,
                max: 0,
                delay_ms,
                reason: String::new(),
                kind: kind.into(),
                max_output_tokens: None,
            };
            let envelope = Envelope {
                seq: 1,
                session_id,
                turn_id: None,
                item_id: None,
                step: None,
                parent_call_id: None,
                at_ms: Timestamp(1_000),
                origin: None,
                truncated_fields: Vec::new(),
                event,
            };
            limits.on_event(&envelope, model);
        };
        note(one, "overloaded", 500, "p/a");
        assert!(limits.paused_models(Timestamp(1_000)).is_empty(), "only a limit of the rate counts");
        note(one, RATE_LIMITED, 500, "p/a");
        note(two, RATE_LIMITED, 900, "p/a");
        let paused = |at| limits.paused_models(Timestamp(at)).get("p/a").copied();
        assert_eq!((paused(1_000), paused(1_600)), (Some(Timestamp(1_900)), Some(Timestamp(1_900))));
        assert!(limits.is_waiting(one, Timestamp(1_499)) && !limits.is_waiting(one, Timestamp(1_500)));
        assert_eq!(paused(1_900), None);
    }
}
