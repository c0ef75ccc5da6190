//! When a permission request or a question appears, and from when on keys answer it. A user who is typing a
//! sentence when it arrives must not answer it by accident. Pure: the time is an input.

use std::time::{Duration, Instant};

use types::ids::RequestId;

/// A request appears once the user has pressed no key for this long.
pub(crate) const TYPING_PAUSE: Duration = Duration::from_secs(1);

/// Keys do not answer a request for this long after it has appeared, nor for this long after a key during
/// that time.
pub(crate) const IGNORE_KEYS_TIME: Duration = Duration::from_millis(600);

/// Phase of the request at the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not shown yet, because the user is typing.
    Hidden,
    /// Shown, but does not accept keys yet.
    Shown,
    /// Keys answer it.
    Answerable,
}

/// The times of keys and of the request at the front.
#[derive(Debug, Default)]
pub(crate) struct RequestTiming {
    last_key: Option<Instant>,
    front: Option<RequestId>,
    /// Time from which on keys answer; `None` while the request is hidden.
    answerable_from: Option<Instant>,
    phase: Option<Phase>,
}

impl RequestTiming {
    /// Records a key that does not answer a request.
    pub(crate) fn key_pressed(&mut self, now: Instant) {
        self.last_key = Some(now);
        if self.phase == Some(Phase::Shown) {
            self.answerable_from = Some(now + IGNORE_KEYS_TIME);
        }
    }

    /// Ignores keys for a while again, for example after the user did not confirm an answer.
    pub(crate) fn ignore_keys(&mut self, now: Instant) {
        self.last_key = Some(now);
        if self.phase == Some(Phase::Answerable) {
            (self.answerable_from, self.phase) = (Some(now + IGNORE_KEYS_TIME), Some(Phase::Shown));
        }
    }

    /// Hides the request again, because the user types something else. It appears after the next pause.
    pub(crate) fn hide(&mut self, now: Instant) {
        self.last_key = Some(now);
        if self.phase.is_some() {
            (self.answerable_from, self.phase) = (None, Some(Phase::Hidden));
        }
    }

    /// Updates the phase from the time and the request at the front. Returns the new phase if it
    /// changed.
    pub(crate) fn update(&mut self, front: Option<RequestId>, now: Instant) -> Option<Phase> {
        if self.front != front {
            // An open list stays open with its next request. Keys are ignored for a while.
            let is_open = self.phase.is_some_and(|phase| phase != Phase::Hidden);
            let is_next = matches!(
                (self.front, front),
                (Some(RequestId::Permission(_)), Some(RequestId::Permission(_)))
            );
            self.answerable_from = (is_open && is_next).then_some(now + IGNORE_KEYS_TIME);
            (self.front, self.phase) = (front, None);
        }
        let before = self.phase;
        if front.is_some() && self.answerable_from.is_none() && self.appears_at().is_none_or(|at| at <= now) {
            self.answerable_from = Some(now + IGNORE_KEYS_TIME);
        }
        self.phase = match (front, self.answerable_from) {
            (None, _) => None,
            (Some(_), None) => Some(Phase::Hidden),
            (Some(_), Some(from)) if from <= now => Some(Phase::Answerable),
            (Some(_), Some(_)) => Some(Phase::Shown),
        };
        self.phase.filter(|phase| before != Some(*phase))
    }

    /// The phase at the last update; `None` if nothing is pending.
    pub(crate) fn phase(&self) -> Option<Phase> {
        self.phase
    }

    /// When the phase changes next, if no key comes before.
    pub(crate) fn next_change(&self) -> Option<Instant> {
        match self.phase? {
            Phase::Hidden => self.appears_at(),
            Phase::Shown => self.answerable_from,
            Phase::Answerable => None,
        }
    }

    fn appears_at(&self) -> Option<Instant> {
        self.last_key.map(|key| key + TYPING_PAUSE)
    }
}

/// Waits until this time. Without a time, waits for ever.
pub(crate) async fn wait_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use crate::ui::request_timing::*;

    fn pending(n: u8) -> Option<RequestId> {
        let id = format!("perm_0190f2a4-0000-7000-8000-0000000000{n:02}");
        Some(RequestId::Permission(id.parse().expect("an id")))
    }

    #[test]
    fn request_appears_after_pause_and_ignores_early_keys() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut timing = RequestTiming::default();
        assert_eq!(timing.update(None, at(0)), None);
        timing.key_pressed(at(0));
        assert_eq!(timing.update(pending(1), at(100)), Some(Phase::Hidden));
        timing.key_pressed(at(500));
        assert_eq!(timing.update(pending(1), at(1_499)), None);
        assert_eq!(timing.next_change(), Some(at(1_500)));
        assert_eq!(timing.update(pending(1), at(1_500)), Some(Phase::Shown));
        assert_eq!(timing.next_change(), Some(at(2_100)));
        timing.key_pressed(at(2_000));
        assert_eq!(timing.update(pending(1), at(2_599)), None);
        assert_eq!(timing.update(pending(1), at(2_600)), Some(Phase::Answerable));
        assert_eq!(timing.next_change(), None);
        timing.key_pressed(at(2_700));
        assert_eq!(timing.update(pending(1), at(2_700)), None, "what is shown stays");
        timing.ignore_keys(at(2_800));
        assert_eq!((timing.phase(), timing.next_change()), (Some(Phase::Shown), Some(at(3_400))));
        assert_eq!(timing.update(pending(1), at(3_400)), Some(Phase::Answerable));
    }

    #[test]
    fn next_request_of_open_list_ignores_keys_for_a_while() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut timing = RequestTiming::default();
        assert_eq!(timing.update(pending(1), at(0)), Some(Phase::Shown), "no key was pressed");
        assert_eq!(timing.update(pending(1), at(600)), Some(Phase::Answerable));
        timing.key_pressed(at(700));
        assert_eq!(timing.update(pending(2), at(800)), Some(Phase::Shown), "the list stays open");
        assert_eq!(timing.update(pending(2), at(1_399)), None, "and deaf");
        assert_eq!(timing.update(pending(2), at(1_400)), Some(Phase::Answerable));
        assert_eq!(timing.update(None, at(1_800)), None);
        timing.key_pressed(at(1_900));
        assert_eq!(timing.update(pending(3), at(2_000)), Some(Phase::Hidden), "a new list waits for a pause");
    }

    #[test]
    fn prose_hides_request_until_next_pause() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut timing = RequestTiming::default();
        timing.update(pending(1), at(0));
        assert_eq!(timing.update(pending(1), at(600)), Some(Phase::Answerable));
        timing.hide(at(700));
        assert_eq!(timing.update(pending(1), at(1_600)), None);
        assert_eq!(timing.phase(), Some(Phase::Hidden));
        assert_eq!(timing.update(pending(1), at(1_700)), Some(Phase::Shown));
    }
}
