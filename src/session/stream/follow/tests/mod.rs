//! Tests of followers of random journals, each with its own pace. For each follower, the text up to a
//! cursor together with the later deltas is the text of the item.

mod check;
mod fixture;

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::stream::follow::*;
use fixture::{FeedFixture, JournalAction, any_action};

async fn within_deadline<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("in time")
}

fn run_actions(acts: &[JournalAction]) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut fixture = FeedFixture::new().await;
        for act in acts {
            fixture.act(*act).await;
        }
        fixture.finish().await
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 300, ..ProptestConfig::default() })]

    #[test]
    fn snapshot_text_plus_deltas_equals_full_text(acts in vec(any_action(), 1..60)) {
        run_actions(&acts).map_err(TestCaseError::fail)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 200, ..ProptestConfig::default() })]

    /// Adds followers at each seq, during the actions and at the end.
    #[test]
    fn follower_can_start_at_every_seq(before in vec(any_action(), 1..25), after in vec(any_action(), 1..25)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let result = runtime.block_on(async {
            let mut fixture = FeedFixture::new().await;
            for act in before {
                fixture.act(act).await;
            }
            fixture.follow_everywhere().await;
            for act in after {
                fixture.act(act).await;
            }
            fixture.follow_everywhere().await;
            fixture.finish().await
        });
        result.map_err(TestCaseError::fail)?;
    }
}

/// Followers start at each seq of a block: while the block runs, directly after its message ended, one
/// turn later, and also across a kill.
#[test]
fn follower_can_start_at_every_seq_at_any_time() {
    use JournalAction::{Begin, Block, Complete, Deltas, Interrupt, Other, Restart, Tool};
    let message = [
        Begin,
        Block(BlockContent::Thinking),
        Deltas(3),
        Block(BlockContent::Text),
        Deltas(4),
        Other,
        Block(BlockContent::Arguments),
        Deltas(3),
        Block(BlockContent::Text),
        Deltas(5),
    ];
    for moment in 0..=message.len() {
        for end in [&[Complete][..], &[Interrupt], &[Restart(true)], &[Restart(false)]] {
            let story =
                [&message[..moment], &[JournalAction::Join(0)], &message[moment..], end, &[Tool(3, false)]];
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let result = runtime.block_on(async {
                let mut fixture = FeedFixture::new().await;
                for (at, act) in story.concat().into_iter().enumerate() {
                    if at == moment {
                        fixture.follow_everywhere().await;
                    }
                    fixture.act(act).await;
                }
                fixture.follow_everywhere().await;
                for act in [Tool(2, true), Begin, Block(BlockContent::Text), Deltas(2), Complete] {
                    fixture.act(act).await;
                }
                fixture.follow_everywhere().await;
                fixture.finish().await
            });
            result.unwrap_or_else(|why| panic!("joined at {moment}, then {end:?}: {why}"));
        }
    }
}

/// All followers that read from memory share one serialised text.
#[tokio::test]
async fn event_is_serialised_once_for_all_followers() {
    let mut fixture = FeedFixture::new().await;
    fixture.act(JournalAction::Other).await;
    fixture.follow_everywhere().await;
    // Every follower reads from the store once. From then on, it reads from memory.
    for at in 0..fixture.readers.len() {
        let reader = &mut fixture.readers[at];
        if reader.follower.cursor() < fixture.feed.last_seq() {
            within_deadline(reader.follower.next()).await.unwrap();
        }
    }
    fixture.act(JournalAction::Other).await;
    for reader in &mut fixture.readers {
        within_deadline(reader.follower.next()).await.unwrap();
    }
    for act in [JournalAction::Begin, JournalAction::Block(BlockContent::Text), JournalAction::Deltas(3)] {
        fixture.act(act).await;
    }
    let mut texts = Vec::new();
    for reader in &mut fixture.readers {
        texts.push(within_deadline(reader.follower.next()).await.unwrap().unwrap());
    }
    let [first, others @ ..] = &texts[..] else { panic!("there are followers") };
    assert!(!others.is_empty() && first.len() >= 5, "{texts:?}");
    for other in others {
        let same = first.iter().zip(other).all(|(one, two)| Arc::ptr_eq(one, two));
        assert!(same && first.len() == other.len(), "an event was serialised again");
    }
}

/// Returns the seqs and types of the events that the only follower received.
async fn received_events(acts: &[JournalAction]) -> Vec<(Seq, String, String)> {
    let mut fixture = FeedFixture::new().await;
    for act in acts {
        fixture.act(*act).await;
    }
    let mut readers = std::mem::take(&mut fixture.readers);
    let reader = &mut readers[0];
    while reader.follower.cursor() < fixture.feed.last_seq() {
        let lines = within_deadline(reader.follower.next()).await;
        reader.read_lines(lines.unwrap().unwrap());
    }
    reader.received.iter().map(seq_type_text).collect()
}

fn seq_type_text(event: &Value) -> (Seq, String, String) {
    let text = event["text"].as_str().unwrap_or_default().to_string();
    (event["seq"].as_u64().unwrap(), event["type"].as_str().unwrap().to_string(), text)
}

fn owned_events(list: &[(Seq, &str, &str)]) -> Vec<(Seq, String, String)> {
    list.iter().map(|(seq, kind, text)| (*seq, (*kind).to_string(), (*text).to_string())).collect()
}

#[tokio::test]
async fn follower_inside_completed_block_receives_item_only() {
    // 1 started, 2 block, 3–5 deltas, 6 block completed, 7 completed; the follower starts after 4.
    let acts = [
        JournalAction::Begin,
        JournalAction::Block(BlockContent::Text),
        JournalAction::Deltas(3),
        JournalAction::Complete,
        JournalAction::Join(4),
    ];
    assert_eq!(
        received_events(&acts).await,
        owned_events(&[(6, "message.block_completed", ""), (7, "message.completed", "")])
    );
}

#[tokio::test]
async fn message_pruned_during_attach_is_sent_as_item() {
    let mut fixture = FeedFixture::new().await;
    for act in [JournalAction::Begin, JournalAction::Block(BlockContent::Text), JournalAction::Deltas(5)] {
        fixture.act(act).await;
    }
    let (first_seq, after_seq) = (fixture.messages[0].first_seq, fixture.next - 3);
    let before = find_running_message(&fixture.store, fixture.key, first_seq, after_seq).await.unwrap();
    assert!(before.and_then(|open| open.block).is_some_and(|block| block.sent > 0));
    fixture.act(JournalAction::Complete).await;
    // The message was running when it was found, but its rows are pruned now.
    assert_eq!(find_running_message(&fixture.store, fixture.key, first_seq, after_seq).await.unwrap(), None);
}

#[tokio::test]
async fn follower_behind_pruning_receives_rest_as_one_delta() {
    // The follower starts after seq 4, while the block runs. Row 5 is pruned before the first read.
    let acts = [
        JournalAction::Begin,
        JournalAction::Block(BlockContent::Text),
        JournalAction::Deltas(3),
        JournalAction::Join(4),
        JournalAction::Deltas(2),
        JournalAction::Complete,
    ];
    let mut shared_acts = acts.to_vec();
    // Add enough events that the feed does not reach back to the cursor.
    shared_acts.extend([JournalAction::Other; 40]);
    let received = received_events(&shared_acts).await;
    let first = owned_events(&[
        (7, "message.text_delta", "5·6·7·"),
        (8, "message.block_completed", ""),
        (9, "message.completed", ""),
    ]);
    assert_eq!(received[..3], first);
    assert_eq!(received.len(), 43);
}

#[tokio::test]
async fn pruned_deltas_in_feed_are_not_sent_twice() {
    // 1 started, 2 block, 3 delta, 4 another event, 5 delta. 6 and 7, the end, are committed but not yet
    // published: the store has pruned rows that the feed still contains.
    let mut fixture = FeedFixture::new().await;
    for act in [
        JournalAction::Begin,
        JournalAction::Block(BlockContent::Text),
        JournalAction::Deltas(1),
        JournalAction::Other,
        JournalAction::Deltas(1),
    ] {
        fixture.act(act).await;
    }
    fixture.act(JournalAction::Join(2)).await;
    fixture.act(JournalAction::Hold).await;
    fixture.act(JournalAction::Complete).await;
    let mut reader = fixture.readers.remove(0);
    let lines = within_deadline(reader.follower.next()).await;
    reader.read_lines(lines.unwrap().unwrap());
    fixture.feed.publish(std::mem::take(&mut fixture.held));
    while reader.follower.cursor() < fixture.feed.last_seq() {
        let lines = within_deadline(reader.follower.next()).await;
        reader.read_lines(lines.unwrap().unwrap());
    }
    assert_eq!(
        reader.received.iter().map(seq_type_text).collect::<Vec<_>>(),
        owned_events(&[
            (3, "message.text_delta", "3·5·"),
            (4, "session.attached", ""),
            (6, "message.block_completed", ""),
            (7, "message.completed", ""),
        ])
    );
}

#[tokio::test]
async fn replayed_message_contains_each_block_once() {
    // Another event occurs inside the block, so its pruned rows leave two gaps.
    let acts = [
        JournalAction::Begin,
        JournalAction::Block(BlockContent::Text),
        JournalAction::Deltas(1),
        JournalAction::Other,
        JournalAction::Deltas(1),
        JournalAction::Block(BlockContent::Arguments),
        JournalAction::Deltas(1),
        JournalAction::Block(BlockContent::Text),
        JournalAction::Deltas(2),
        JournalAction::Interrupt,
        JournalAction::Join(0),
    ];
    assert_eq!(
        received_events(&acts).await,
        owned_events(&[
            (1, "message.started", ""),
            (2, "message.block_started", ""),
            (3, "message.text_delta", "3·5·"),
            (4, "session.attached", ""),
            (6, "message.block_completed", ""),
            (7, "message.block_started", ""),
            (9, "message.block_completed", ""),
            (10, "message.block_started", ""),
            (12, "message.text_delta", "11·12·"),
            (13, "message.completed", ""),
        ])
    );
}

#[tokio::test]
async fn cursor_ahead_of_journal_is_refused_with_last_seq() {
    let mut fixture = FeedFixture::new().await;
    fixture.act(JournalAction::Other).await;
    let start =
        |after| Follower::start(fixture.store.reader(), fixture.key, Arc::clone(&fixture.feed), after);
    assert!(matches!(start(2).await.map(|_| ()), Err(SessionError::CursorAhead { last_seq: 1 })));
    start(1).await.expect("the end is a place to begin");
    let mut follower = start(0).await.expect("the beginning is one too");
    fixture.feed.close();
    assert!(
        matches!(within_deadline(follower.next()).await, Ok(Some(lines)) if lines.len() == 1),
        "first what there is"
    );
    assert_eq!(within_deadline(follower.next()).await, Ok(None), "then the end");
}

/// A truncated text is delivered in parts, from any position in its block.
#[tokio::test]
async fn truncated_text_is_rebuilt_for_late_follower() {
    for content in [BlockContent::Text, BlockContent::Thinking] {
        let mut fixture = FeedFixture::new().await;
        for act in [
            JournalAction::Begin,
            JournalAction::Block(BlockContent::Text),
            JournalAction::Deltas(2),
            JournalAction::Block(content),
        ] {
            fixture.act(act).await;
        }
        // Rows of maximum length, with the characters that need most space in JSON and with multi-byte
        // characters.
        for n in 0..30_u8 {
            fixture.add_delta(if n % 3 == 0 { "\u{1}".repeat(8 * 1024) } else { "é€".repeat(1_600) }).await;
            if n % 7 == 6 {
                fixture.act(JournalAction::Other).await;
            }
            // Add a follower after each row, but do not let it read.
            fixture.follow_after(fixture.next - 1).await;
        }
        for reader in &mut fixture.readers {
            reader.follower.piece = 56 * 1024;
        }
        for act in [JournalAction::Complete, JournalAction::Other] {
            fixture.act(act).await;
        }
        let stored = fixture.store.message_around(fixture.key, 1).await.unwrap().unwrap();
        assert!(
            stored.last.len() <= types::wire::MAX_WIRE_BYTES
                && stored.last.contains("\"truncated_fields\":[")
        );
        for reader in &mut fixture.readers {
            while reader.follower.cursor() < fixture.feed.last_seq() {
                let events = within_deadline(reader.follower.next_events(100_000)).await.unwrap();
                let bytes: usize = events.iter().map(|event| event.len()).sum();
                assert!(bytes <= 100_000 + 65_536, "{bytes} bytes at once");
                assert!(
                    events.iter().all(|event| event.len() <= 65_024),
                    "an event is too long for the wire"
                );
                reader.read_lines(events);
            }
        }
        fixture.finish().await.unwrap();
    }
}

/// A message with very many blocks. Its list of blocks is truncated, but the texts of the blocks are not.
#[tokio::test]
async fn many_small_blocks_are_rebuilt_with_one_fetch() {
    let mut fixture = FeedFixture::new().await;
    fixture.act(JournalAction::Begin).await;
    for n in 0..700 {
        fixture.act(JournalAction::Block(BlockContent::Text)).await;
        fixture.add_delta("x".repeat(100)).await;
        if n % 300 == 0 {
            fixture.follow_after(fixture.next - 1).await;
        }
    }
    // Use the maximum length of a row.
    for reader in &mut fixture.readers {
        reader.follower.piece = 56 * 1024;
    }
    for act in [JournalAction::Complete, JournalAction::Other] {
        fixture.act(act).await;
    }
    let stored = fixture.store.message_around(fixture.key, 1).await.unwrap().unwrap();
    assert!(stored.last.contains("\"pointer\":\"/item/content\""), "the list is cut");
    let mut source = rebuilt_deltas::PartSource::new(&fixture.store, &fixture.feed, fixture.key, 1_000);
    for block in [600, 601] {
        let inside = BlockPosition {
            index: block,
            content: BlockContent::Text,
            nth: block as usize,
            sent: 0,
            rest: RestSource::Rows,
        };
        assert!(source.next_part(1, &inside).await.unwrap().is_some_and(|piece| piece.is_last));
        assert!(source.is_whole(), "what was cut out is fetched once for a look");
    }
    fixture.finish().await.unwrap();
}
