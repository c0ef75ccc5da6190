//! When a message is tried again. Pure.

use types::job::DeliveryStatus;
use types::time::Timestamp;

/// Waits after the failed tries. The first try follows at once, so there is one try more than waits.
const WAITS_MS: [u64; 7] = [5_000, 30_000, 120_000, 600_000, 3_600_000, 21_600_000, 86_400_000];
/// The status of an answer that says that the receiver wants no messages any more.
const GONE: u16 = 410;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TryResult {
    /// The receiver accepted the message.
    Accepted,
    /// It did not.
    Refused {
        /// Why, without addresses and keys.
        why: String,
        /// The status of the receiver's answer, if there was one.
        status: Option<u16>,
    },
}

/// The state of a message after its try number `tries`, from 1, and the time of the next one.
pub(super) fn after_try(
    result: &TryResult,
    tries: u32,
    now: Timestamp,
) -> (DeliveryStatus, Option<Timestamp>) {
    match result {
        TryResult::Accepted => (DeliveryStatus::Delivered, None),
        TryResult::Refused { status: Some(GONE), .. } => (DeliveryStatus::Failed, None),
        TryResult::Refused { .. } => {
            let wait = usize::try_from(tries).ok().and_then(|tries| WAITS_MS.get(tries.checked_sub(1)?));
            match wait {
                Some(wait) => (DeliveryStatus::Pending, Some(now.plus(*wait))),
                None => (DeliveryStatus::Failed, None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: Option<u16>) -> TryResult {
        TryResult::Refused { why: "x".into(), status }
    }

    #[test]
    fn refused_message_is_tried_for_more_than_a_day_and_then_given_up() {
        let (mut now, mut tries, mut waits) = (Timestamp(1_000), 0, Vec::new());
        loop {
            tries += 1;
            match after_try(&refused(Some(500)), tries, now) {
                (DeliveryStatus::Pending, Some(next)) => {
                    waits.push(next.since(now) / 1_000);
                    now = next;
                }
                end => {
                    assert_eq!(end, (DeliveryStatus::Failed, None));
                    break;
                }
            }
        }
        assert_eq!((tries, waits), (8, vec![5, 30, 120, 600, 3_600, 21_600, 86_400]));
    }

    #[test]
    fn accepted_and_gone_end_the_tries() {
        let now = Timestamp(5);
        assert_eq!(after_try(&TryResult::Accepted, 3, now), (DeliveryStatus::Delivered, None));
        assert_eq!(after_try(&refused(Some(410)), 1, now), (DeliveryStatus::Failed, None));
        assert_eq!(after_try(&refused(None), 1, now).0, DeliveryStatus::Pending);
        assert_eq!(after_try(&refused(None), 0, now), (DeliveryStatus::Failed, None));
    }
}
