//! Tests that the summaries of any random session can be computed again from its journal.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use crate::actor::journal::*;
use engine::Engine;
use engine_properties::{ScriptRecord, histories};
use store::{LedgerQuery, NewSession, Store, StoredItem};
use types::event::Event;
use types::ids::Seq;
use types::ledger::{ModelUsage, UsageRecord};

async fn check(played: ScriptRecord) {
    played.result.expect("the properties hold");
    let folder = tempfile::tempdir().unwrap();
    let (store, owner) = Store::open(&folder.path().join("journal.db")).await.unwrap();
    let Event::SessionCreated(spec) = played.created.event.clone() else { panic!("the first event") };
    let (id, at) = (played.created.session_id, played.created.at_ms);
    let (row, ..) = encode_event(&played.created, None);
    let new = NewSession {
        session_id: id,
        spec: *spec,
        at,
        items: Vec::new(),
        rows: vec![row],
        blobs: Vec::new(),
        audit: Vec::new(),
        idempotency: None,
        history: Default::default(),
    };
    let key = store.create(new).await.unwrap();

    // As a session does: decide, then write with the summary after the decision.
    let mut living = Engine::new(id, Arc::clone(&played.settings));
    living.apply(&played.created);
    let some_plans = played.plans.iter().filter(|plan| !plan.events.is_empty());
    for plan in some_plans {
        plan.events.iter().for_each(|entry| living.apply(&entry.envelope));
        let mut append = encode_plan(key, plan).append;
        append.summary = changes_summary(plan).then(|| living.snapshot());
        store.journal_writer(key).append(append).await.unwrap();
    }

    // Read and replay the journal as a restart does.
    let rows = store.events_after(key, 0, 100_000, usize::MAX).await.unwrap().rows;
    let envelopes: Vec<Envelope> =
        rows.iter().map(|row| serde_json::from_str(&row.body).expect("an event")).collect();
    let mut again = Engine::replay(id, played.settings, &envelopes);
    again.skip_to(store.last_seq(key).await.unwrap() + 1);
    assert_eq!(again.snapshot(), living.snapshot());
    assert_eq!(again.next_seq(), living.next_seq());

    let view = store.view(id).await.unwrap().expect("the session");
    let rebuilt = again.snapshot();
    assert_eq!(view.summary, rebuilt);
    assert_eq!(view.created_at_ms, at);
    assert_eq!(view.last_seq, living.next_seq() - 1);
    assert_eq!(view.cwd, again.spec().cwd);

    // The ledger contains each call once. Its sums equal those of the session and of each turn.
    let query = LedgerQuery { session_id: Some(id), ..LedgerQuery::default() };
    let total = store.ledger_total(query).await.unwrap();
    assert_eq!((total.usage, total.cost_usd_micros), (rebuilt.usage, rebuilt.cost_usd_micros));
    assert_eq!(total.cost_at_least_usd_micros, view.summary.cost_at_least_usd_micros);
    let mut by_model: BTreeMap<String, ModelUsage> = BTreeMap::new();
    for booking in envelopes.iter().filter_map(UsageRecord::from_envelope) {
        by_model.entry(booking.model.clone()).or_default().add_record(&booking);
    }
    let rows = store.ledger(query, None, 100).await.unwrap();
    assert!(rows.iter().all(|row| row.session_id == id), "never mixed");
    let stored: BTreeMap<_, _> = rows.into_iter().map(|row| (row.model, row.spent)).collect();
    assert_eq!(stored, by_model);

    let items = store.items_after(key, 0, 100_000, usize::MAX).await.unwrap().rows;
    assert_eq!(items.iter().map(item_summary).collect::<Vec<_>>(), expected_items(&envelopes));
    let pending = store.pending_requests(Some(key), None, 100).await.unwrap();
    let mut expected: Vec<String> = again.pending().into_iter().map(|it| it.request_id.to_string()).collect();
    expected.sort();
    assert_eq!(pending.into_iter().map(|row| row.request_id).collect::<Vec<_>>(), expected);
    owner.close().await;
}

fn item_summary(item: &StoredItem) -> (Seq, String, String) {
    let first: Value = serde_json::from_str(&item.first).unwrap();
    assert_eq!(first["seq"], item.first_seq);
    (item.first_seq, item.status.clone(), first["item_id"].as_str().unwrap().into())
}

/// The items according to the events: first seq, status and id.
fn expected_items(envelopes: &[Envelope]) -> Vec<(Seq, String, String)> {
    let mut items: BTreeMap<Seq, (String, String)> = BTreeMap::new();
    let mut by_id: BTreeMap<String, Seq> = BTreeMap::new();
    for envelope in envelopes {
        if let Event::SessionRewound(rewound) = &envelope.event {
            items.retain(|first, _| *first <= rewound.last_item_seq);
            continue;
        }
        // These name the item that their message becomes.
        if matches!(
            envelope.event,
            Event::TurnQueued { .. } | Event::TurnSteered { .. } | Event::TurnStarted { .. }
        ) {
            continue;
        }
        let Some(item_id) = envelope.item_id.map(|id| id.to_string()) else { continue };
        let first = *by_id.entry(item_id.clone()).or_insert(envelope.seq);
        let item = items.entry(first).or_insert(("running".into(), item_id));
        match &envelope.event {
            Event::MessageCompleted { item: whole, reasoning_item_id, .. } => {
                item.0 = whole.status.name().into();
                if reasoning_item_id.is_some() {
                    // The reasoning is an item of its own, in the event of its answer.
                    let reasoning = (whole.status.name().into(), whole.item_id.to_string());
                    items.insert(envelope.seq, reasoning);
                }
            }
            Event::Error { .. } => item.0 = "completed".into(),
            Event::ToolCompleted { .. } | Event::CompactCompleted { edit: Some(_), .. } => {
                item.0 = "completed".into();
            }
            Event::CompactCompleted { error: Some(_), .. } => item.0 = "interrupted".into(),
            _ => {}
        }
    }
    items.into_iter().map(|(first, (status, id))| (first, status, id)).collect()
}

proptest! {
    // Each case writes a database. Shrinking is left to the property tests of the engine.
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn session_summaries_are_rebuilt_equal_from_journal(played in histories()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            tokio::time::timeout(std::time::Duration::from_secs(120), check(played)).await.expect("in time");
        });
    }
}
