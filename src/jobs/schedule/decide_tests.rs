//! What fires after sleeping, stopping, and changes of the system's clock.

use proptest::prelude::*;

use super::decide::{Due, Firing, FiringRules, MAX_CAUGHT_UP, Progress, SlotAction, UnfinishedJobs, decide};
use super::{CronPattern, Timing, Zone};
use types::ids::{Mint, ScheduleId, Seed};
use types::schedule::{CatchUp, Overlap};
use types::time::Timestamp;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const RULES: FiringRules = FiringRules {
    overlap: Overlap::Skip,
    catch_up: CatchUp::Last,
    catch_up_window_ms: DAY.unsigned_abs(),
    jitter_ms: 0,
    until: None,
};
const IDLE: UnfinishedJobs = UnfinishedJobs { waiting: 0, started: 0 };

fn id() -> ScheduleId {
    Mint::new(0, Seed(7)).schedule()
}

/// Slots at each full hour from 0.
fn hourly() -> Timing {
    Timing::Every { start: Timestamp(0), interval_ms: HOUR.unsigned_abs() }
}

fn since(handled_until: i64) -> Progress {
    Progress { handled_until: Timestamp(handled_until), missed: 0 }
}

/// Slots with the missed ones that they tell of, in hours.
fn fired(due: &Due) -> Vec<(i64, u64)> {
    due.firings.iter().map(|firing| (firing.slot.0 / HOUR, firing.missed)).collect()
}

fn decide_hourly(rules: FiringRules, progress: Progress, now: i64) -> Due {
    decide(id(), &hourly(), &rules, progress, IDLE, Timestamp(now))
}

#[test]
fn slot_fires_at_its_time_and_not_before() {
    let due = decide_hourly(RULES, since(0), HOUR - 1);
    assert_eq!(due, Due { firings: Vec::new(), progress: since(0), next: Some(Timestamp(HOUR)) });
    let due = decide_hourly(RULES, since(0), HOUR);
    let firing = Firing { slot: Timestamp(HOUR), action: SlotAction::Create, missed: 0 };
    assert_eq!(due, Due { firings: vec![firing], progress: since(HOUR), next: Some(Timestamp(2 * HOUR)) });
    assert_eq!(decide_hourly(RULES, due.progress, HOUR + 1).firings, []);
}

#[test]
fn missed_slots_are_caught_up_as_the_schedule_says() {
    let after_three_days = 75 * HOUR + 20 * MINUTE;
    let with = |catch_up, hours: u64| {
        let rules = FiringRules { catch_up, catch_up_window_ms: hours * HOUR.unsigned_abs(), ..RULES };
        decide_hourly(rules, since(3 * HOUR), after_three_days)
    };
    assert_eq!(fired(&with(CatchUp::Last, 24)), [(75, 71)]);
    assert_eq!(
        fired(&with(CatchUp::All, 24)),
        (66..=75).map(|slot| (slot, if slot == 66 { 62 } else { 0 })).collect::<Vec<_>>()
    );
    assert_eq!(fired(&with(CatchUp::All, 3)), [(73, 69), (74, 0), (75, 0)]);
    let none = with(CatchUp::None, 24);
    assert_eq!(fired(&none), []);
    assert_eq!(none.progress, Progress { handled_until: Timestamp(75 * HOUR), missed: 72 });
    // The next job tells of them.
    assert_eq!(
        fired(&decide_hourly(FiringRules { catch_up: CatchUp::None, ..RULES }, none.progress, 76 * HOUR)),
        [(76, 72)]
    );
    for due in [with(CatchUp::Last, 24), with(CatchUp::All, 24), with(CatchUp::None, 24)] {
        assert_eq!(
            (due.progress.handled_until, due.next),
            (Timestamp(75 * HOUR), Some(Timestamp(76 * HOUR)))
        );
    }
}

#[test]
fn slot_outside_of_the_window_does_not_fire() {
    let daily = Timing::Every { start: Timestamp(0), interval_ms: DAY.unsigned_abs() };
    let rules = FiringRules { catch_up_window_ms: HOUR.unsigned_abs(), ..RULES };
    let late = decide(id(), &daily, &rules, since(0), IDLE, Timestamp(3 * DAY + 2 * HOUR));
    assert_eq!((late.firings, late.progress.missed), (vec![], 3));
    let soon = decide(id(), &daily, &rules, since(0), IDLE, Timestamp(3 * DAY + HOUR));
    assert_eq!(soon.firings.len(), 1);
    // A slot that is on time fires whatever the window is.
    let rules = FiringRules { catch_up_window_ms: 0, ..RULES };
    assert_eq!(decide(id(), &daily, &rules, since(0), IDLE, Timestamp(DAY + 5_000)).firings.len(), 1);
}

#[test]
fn clock_that_is_set_fires_each_slot_once() {
    // One hour forward at 01:30, then one hour back at 02:40.
    let forward = decide_hourly(RULES, since(HOUR), 2 * HOUR + 30 * MINUTE);
    assert_eq!(fired(&forward), [(2, 0)]);
    let back = decide_hourly(RULES, forward.progress, HOUR + 40 * MINUTE);
    assert_eq!((fired(&back), back.next), (vec![], Some(Timestamp(3 * HOUR))));
    let again = decide_hourly(RULES, back.progress, 2 * HOUR + 10 * MINUTE);
    assert_eq!(fired(&again), []);
    assert_eq!(fired(&decide_hourly(RULES, again.progress, 3 * HOUR)), [(3, 0)]);
}

#[test]
fn unfinished_job_decides_by_the_overlap_rule() {
    let action = |overlap, waiting, started| {
        let rules = FiringRules { overlap, ..RULES };
        let unfinished = UnfinishedJobs { waiting, started };
        decide(id(), &hourly(), &rules, since(0), unfinished, Timestamp(HOUR)).firings[0].action
    };
    assert_eq!(action(Overlap::Skip, 0, 0), SlotAction::Create);
    assert_eq!(action(Overlap::Skip, 0, 1), SlotAction::Skip);
    assert_eq!(action(Overlap::Skip, 1, 0), SlotAction::Skip);
    assert_eq!(action(Overlap::Queue, 0, 1), SlotAction::Create);
    assert_eq!(action(Overlap::Queue, 1, 1), SlotAction::Skip);
    assert_eq!(action(Overlap::Cancel, 0, 0), SlotAction::Create);
    assert_eq!(action(Overlap::Cancel, 1, 1), SlotAction::Replace);
}

#[test]
fn slots_that_are_caught_up_together_do_not_skip_one_another() {
    let actions = |overlap, started| {
        let rules = FiringRules { overlap, catch_up: CatchUp::All, ..RULES };
        let unfinished = UnfinishedJobs { waiting: 0, started };
        let due = decide(id(), &hourly(), &rules, since(0), unfinished, Timestamp(3 * HOUR + HOUR / 2));
        due.firings.iter().map(|firing| firing.action).collect::<Vec<_>>()
    };
    use SlotAction::{Create, Replace, Skip};
    assert_eq!(actions(Overlap::Skip, 0), [Create, Create, Create]);
    assert_eq!(actions(Overlap::Skip, 1), [Skip, Skip, Skip]);
    assert_eq!(actions(Overlap::Cancel, 1), [Replace, Create, Create]);
}

#[test]
fn end_of_a_schedule_is_its_last_slot() {
    let rules = FiringRules { until: Some(Timestamp(2 * HOUR)), ..RULES };
    let due = decide_hourly(rules, since(HOUR), 2 * HOUR);
    assert_eq!((fired(&due), due.next), (vec![(2, 0)], None));
    let due = decide_hourly(rules, due.progress, 9 * HOUR);
    assert_eq!((due.firings, due.next), (vec![], None));
}

#[test]
fn jitter_delays_a_slot_by_the_same_time_always() {
    let rules = FiringRules { jitter_ms: 10 * MINUTE.unsigned_abs(), ..RULES };
    let first = decide_hourly(rules, since(0), 0).next.expect("a slot");
    let second = decide_hourly(rules, since(HOUR), 0).next.expect("a slot");
    assert!((HOUR..HOUR + 10 * MINUTE).contains(&first.0), "{first:?}");
    assert_ne!(second.0 - first.0, HOUR);
    assert_eq!(decide_hourly(rules, since(0), first.0 - 1).firings, []);
    let due = decide_hourly(rules, since(0), first.0);
    assert_eq!((fired(&due), due.next), (vec![(1, 0)], Some(second)));
    let other = decide(Mint::new(0, Seed(8)).schedule(), &hourly(), &rules, since(0), IDLE, Timestamp(0));
    assert_ne!(other.next, Some(first));
}

#[test]
fn long_pauses_are_decided_quickly() {
    let every_minute = Timing::Every { start: Timestamp(0), interval_ms: MINUTE.unsigned_abs() };
    let started = std::time::Instant::now();
    let due = decide(id(), &every_minute, &RULES, since(0), IDLE, Timestamp(50 * 365 * DAY + 5));
    assert_eq!(due.firings.len(), 1);
    assert_eq!(due.firings[0].slot, Timestamp(50 * 365 * DAY));
    assert!(due.firings[0].missed >= 100_000);
    assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Whatever the clock does, each slot fires at most once and in order, and no slot is forgotten: it fired or counts
    /// as missed.
    #[test]
    fn each_slot_is_fired_or_missed_once(
        jumps in proptest::collection::vec(prop_oneof![0..3 * HOUR, -2 * HOUR..0, 2 * DAY..4 * DAY], 1..40),
        catch_up in prop_oneof![Just(CatchUp::Last), Just(CatchUp::None), Just(CatchUp::All)],
        jitter_ms in prop_oneof![Just(0_u64), 1..900_000_u64],
    ) {
        let zone = Zone::find("Europe/Berlin").expect("a zone");
        let timing = Timing::Cron { pattern: CronPattern::parse("*/20 * * * *").expect("a pattern"), zone };
        let rules = FiringRules { catch_up, jitter_ms, ..RULES };
        // Two days before clocks change.
        let start = Timestamp(1_774_572_000_000);
        let mut progress = Progress { handled_until: start, missed: 0 };
        let (mut now, mut slots, mut told) = (start, Vec::new(), 0);
        for jump in jumps {
            now = now.moved(jump);
            let due = decide(id(), &timing, &rules, progress, IDLE, now);
            prop_assert!(due.firings.len() <= MAX_CAUGHT_UP);
            prop_assert!(due.next.is_some_and(|next| next > now));
            slots.extend(due.firings.iter().map(|firing| firing.slot));
            told += due.firings.iter().map(|firing| firing.missed).sum::<u64>();
            prop_assert!(due.progress.handled_until >= progress.handled_until);
            progress = due.progress;
        }
        prop_assert!(slots.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", slots);
        let all: Vec<Timestamp> =
            timing.slots_after(start).take_while(|slot| *slot <= progress.handled_until).collect();
        prop_assert!(slots.iter().all(|slot| all.contains(slot)));
        prop_assert_eq!(slots.len() as u64 + told + progress.missed, all.len() as u64);
    }
}
