//! What a model said comes before its end, whatever the moment at which the two become known.

use crate::session::actor::effects::*;
use crate::session::registry::load::tests::Place;
use crate::types::model::{ModelReply, StopReason};
use crate::types::usage::{ModelSnapshot, Usage};

const TOKEN: Seq = 7;

async fn jobs(place: &Place) -> (EffectRunner, mpsc::Sender<Vec<Delta>>) {
    let (births, _) = mpsc::channel(1);
    let mut jobs = EffectRunner::new(place.house(), SessionKey::default(), births);
    let (out, batches) = mpsc::channel(BATCHES);
    jobs.stream = Some(Stream::of(TOKEN, batches));
    (jobs, out)
}

fn end(fails: bool) -> Input {
    if fails {
        let fault = ModelFault::new(FaultKind::Garbage, "nonsense");
        return Input::ModelFailed { token: TOKEN, fault, terms: ModelSnapshot::default(), duration_ms: 1 };
    }
    let reply = ModelReply {
        content: Vec::new(),
        stop_reason: StopReason::EndTurn,
        usage: Usage::default(),
        response_id: None,
        notices: Vec::new(),
        cache_hit: false,
        last: Vec::new(),
    };
    Input::ModelDone {
        token: TOKEN,
        reply: Box::new(reply),
        cost_usd_micros: None,
        terms: ModelSnapshot::default(),
        duration_ms: 1,
    }
}

fn batch(n: usize) -> Vec<Delta> {
    vec![Delta::Text { index: 0, text: format!("{n} ") }]
}

/// The texts that come before the end, in order. Looks ahead like a session that joins deltas.
async fn said_before_the_end(jobs: &mut EffectRunner, first: Option<Input>) -> String {
    let mut said = String::new();
    let mut next = first;
    loop {
        let input = match next.take() {
            Some(input) => input,
            None => tokio::time::timeout(Duration::from_secs(20), jobs.next())
                .await
                .expect("the end in time")
                .expect("an input"),
        };
        match input {
            Input::Deltas { token: TOKEN, deltas } => {
                for delta in deltas {
                    let Delta::Text { text, .. } = delta else { panic!("{delta:?}") };
                    said += &text;
                }
                next = jobs.try_next();
            }
            Input::ModelDone { .. } | Input::ModelFailed { .. } => return said,
            other => panic!("{other:?}"),
        }
    }
}

fn expected(count: usize) -> String {
    (0..count).map(|n| format!("{n} ")).collect()
}

#[tokio::test]
async fn an_end_that_is_seen_first_is_held_until_the_last_deltas_are_heard() {
    let place = Place::new(Duration::MAX, 1).await;
    for (count, fails) in (0..=BATCHES).flat_map(|count| [(count, false), (count, true)]) {
        let (mut jobs, out) = jobs(&place).await;
        for n in 0..count {
            out.try_send(batch(n)).unwrap();
        }
        // The moment between two looks: nothing was to be heard yet, and the job has ended since.
        let first = jobs.ended(Ok(Some(end(fails).into())));
        assert_eq!(jobs.are_idle(), count == 0, "what is held is work");
        assert_eq!(said_before_the_end(&mut jobs, first).await, expected(count));
        assert!(jobs.are_idle());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_end_overtakes_what_was_said_while_both_are_on_their_way() {
    let place = Place::new(Duration::MAX, 1).await;
    for round in 0..500 {
        let (mut jobs, out) = jobs(&place).await;
        let count = round % (2 * BATCHES);
        jobs.running.spawn(async move {
            for n in 0..count {
                out.send(batch(n)).await.unwrap();
            }
            Some(end(round % 2 == 0).into())
        });
        assert_eq!(said_before_the_end(&mut jobs, None).await, expected(count), "round {round}");
        assert!(jobs.are_idle());
    }
}

#[tokio::test]
async fn the_end_of_an_earlier_call_leaves_the_next_one_its_listener() {
    let place = Place::new(Duration::MAX, 1).await;
    let (mut jobs, out) = jobs(&place).await;
    let (next, batches) = mpsc::channel(BATCHES);
    jobs.stream = Some(Stream::of(TOKEN + 1, batches));
    drop(out);
    assert!(matches!(jobs.ended(Ok(Some(end(true).into()))), Some(Input::ModelFailed { token: TOKEN, .. })));
    next.try_send(batch(0)).unwrap();
    let heard = jobs.next().await;
    assert!(matches!(&heard, Some(Input::Deltas { token, .. }) if *token == TOKEN + 1), "{heard:?}");
}
