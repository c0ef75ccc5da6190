//! Tests that the session receives the text of a model before the end of the answer, for any timing of both.

use crate::actor::effects::model_calls::DELTA_CAPACITY;
use crate::actor::effects::*;
use crate::registry::load::tests::RegistryFixture;
use types::model::{Delta, FaultKind, ModelFault, ModelReply, StopReason};
use types::usage::{ModelSnapshot, Usage};

const TOKEN: Seq = 7;

/// Runs no sub-agents.
struct NoSubagents;

impl SubagentHost for NoSubagents {
    fn run(
        &self,
        _: subagents::SubagentRun,
        _: mpsc::Sender<Box<Input>>,
        _: CancellationToken,
    ) -> std::pin::Pin<Box<dyn Future<Output = subagents::SubagentEnd> + Send>> {
        Box::pin(async { None })
    }
}

async fn effect_runner(place: &RegistryFixture) -> (EffectRunner, mpsc::Sender<Vec<Delta>>) {
    let (process_starts, _) = mpsc::channel(1);
    let mut effects =
        EffectRunner::new(place.fixture(), SessionKey::default(), process_starts, Arc::new(NoSubagents));
    let (out, batches) = mpsc::channel(DELTA_CAPACITY);
    effects.deltas = Some(DeltaQueue::new(TOKEN, batches));
    (effects, out)
}

fn call_end(fails: bool) -> Input {
    if fails {
        let fault = ModelFault::new(FaultKind::Garbage, "nonsense");
        return Input::ModelFailed {
            token: TOKEN,
            fault,
            model_snapshot: ModelSnapshot::default(),
            duration_ms: 1,
        };
    }
    let reply = ModelReply {
        content: Vec::new(),
        stop_reason: StopReason::EndTurn,
        usage: Usage::default(),
        nested: Vec::new(),
        is_restated: false,
        response_id: None,
        notices: Vec::new(),
        cache_hit: false,
        last: Vec::new(),
    };
    Input::ModelDone {
        token: TOKEN,
        reply: Box::new(reply),
        cost_usd_micros: None,
        model_snapshot: ModelSnapshot::default(),
        duration_ms: 1,
    }
}

fn delta_batch(n: usize) -> Vec<Delta> {
    vec![Delta::Text { index: 0, text: format!("{n} ") }]
}

/// Returns the texts before the end, in order. Reads ahead like a session that merges deltas.
async fn texts_before_end(effects: &mut EffectRunner, first: Option<Input>) -> String {
    let mut collected_text = String::new();
    let mut next = first;
    loop {
        let input = match next.take() {
            Some(input) => input,
            None => tokio::time::timeout(Duration::from_secs(20), effects.next())
                .await
                .expect("the end in time")
                .expect("an input"),
        };
        match input {
            Input::Deltas { token: TOKEN, deltas } => {
                for delta in deltas {
                    let Delta::Text { text, .. } = delta else { panic!("{delta:?}") };
                    collected_text += &text;
                }
                next = effects.try_next();
            }
            Input::ModelDone { .. } | Input::ModelFailed { .. } => return collected_text,
            other => panic!("{other:?}"),
        }
    }
}

fn expected_texts(count: usize) -> String {
    (0..count).map(|n| format!("{n} ")).collect()
}

#[tokio::test]
async fn early_call_result_waits_for_last_deltas() {
    let place = RegistryFixture::new(Duration::MAX, 1).await;
    for (count, fails) in (0..=DELTA_CAPACITY).flat_map(|count| [(count, false), (count, true)]) {
        let (mut effects, out) = effect_runner(&place).await;
        for n in 0..count {
            out.try_send(delta_batch(n)).unwrap();
        }
        // No report was available at the first poll, and the effect ended before the second poll.
        let first = effects.take_result(Ok(Some(call_end(fails).into())));
        assert_eq!(effects.are_idle(), count == 0, "what is held is work");
        assert_eq!(texts_before_end(&mut effects, first).await, expected_texts(count));
        assert!(effects.are_idle());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_result_never_overtakes_its_deltas() {
    let place = RegistryFixture::new(Duration::MAX, 1).await;
    for round in 0..500 {
        let (mut effects, out) = effect_runner(&place).await;
        let count = round % (2 * DELTA_CAPACITY);
        effects.running.spawn(async move {
            for n in 0..count {
                out.send(delta_batch(n)).await.unwrap();
            }
            Some(call_end(round % 2 == 0).into())
        });
        assert_eq!(texts_before_end(&mut effects, None).await, expected_texts(count), "round {round}");
        assert!(effects.are_idle());
    }
}

#[tokio::test]
async fn result_of_earlier_call_keeps_stream_of_next() {
    let place = RegistryFixture::new(Duration::MAX, 1).await;
    let (mut effects, out) = effect_runner(&place).await;
    let (next, batches) = mpsc::channel(DELTA_CAPACITY);
    effects.deltas = Some(DeltaQueue::new(TOKEN + 1, batches));
    drop(out);
    assert!(matches!(
        effects.take_result(Ok(Some(call_end(true).into()))),
        Some(Input::ModelFailed { token: TOKEN, .. })
    ));
    next.try_send(delta_batch(0)).unwrap();
    let next_input = effects.next().await;
    assert!(
        matches!(&next_input, Some(Input::Deltas { token, .. }) if *token == TOKEN + 1),
        "{next_input:?}"
    );
}
