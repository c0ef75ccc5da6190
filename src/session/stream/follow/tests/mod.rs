//! Followers of random journals, each at a speed of its own. Whatever they miss, the text up to a
//! cursor and the deltas after it are the text of the item (R9).

mod check;
mod house;

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::session::stream::follow::*;
use house::{Act, FeedFixture, act};

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("in time")
}

fn play(acts: &[Act]) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut house = FeedFixture::new().await;
        for act in acts {
            house.act(*act).await;
        }
        house.finish().await
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 300, ..ProptestConfig::default() })]

    #[test]
    fn text_up_to_the_cursor_and_deltas_are_the_text(acts in vec(act(), 1..60)) {
        play(&acts).map_err(TestCaseError::fail)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 200, ..ProptestConfig::default() })]

    /// Somebody comes with every number there is: while it goes on, and at the end.
    #[test]
    fn every_number_is_a_place_to_begin(before in vec(act(), 1..25), after in vec(act(), 1..25)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let result = runtime.block_on(async {
            let mut house = FeedFixture::new().await;
            for act in before {
                house.act(act).await;
            }
            house.join_everywhere().await;
            for act in after {
                house.act(act).await;
            }
            house.join_everywhere().await;
            house.finish().await
        });
        result.map_err(TestCaseError::fail)?;
    }
}

/// A block while it runs, when its message has just ended, and a turn later; also over a kill.
#[test]
fn every_number_is_a_place_to_begin_in_every_moment() {
    use Act::{Begin, Block, Complete, Deltas, Interrupt, Other, Restart, Tool};
    let message = [
        Begin,
        Block(Content::Thinking),
        Deltas(3),
        Block(Content::Text),
        Deltas(4),
        Other,
        Block(Content::Arguments),
        Deltas(3),
        Block(Content::Text),
        Deltas(5),
    ];
    for moment in 0..=message.len() {
        for end in [&[Complete][..], &[Interrupt], &[Restart(true)], &[Restart(false)]] {
            let story = [&message[..moment], &[Act::Join(0)], &message[moment..], end, &[Tool(3, false)]];
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let result = runtime.block_on(async {
                let mut house = FeedFixture::new().await;
                for (at, act) in story.concat().into_iter().enumerate() {
                    if at == moment {
                        house.join_everywhere().await;
                    }
                    house.act(act).await;
                }
                house.join_everywhere().await;
                for act in [Tool(2, true), Begin, Block(Content::Text), Deltas(2), Complete] {
                    house.act(act).await;
                }
                house.join_everywhere().await;
                house.finish().await
            });
            result.unwrap_or_else(|why| panic!("joined at {moment}, then {end:?}: {why}"));
        }
    }
}

/// One text for everybody who follows from memory.
#[tokio::test]
async fn an_event_is_serialised_once_for_all() {
    let mut house = FeedFixture::new().await;
    house.act(Act::Other).await;
    house.join_everywhere().await;
    // From the store, once: from then on they live from memory.
    for at in 0..house.readers.len() {
        let reader = &mut house.readers[at];
        if reader.follower.cursor() < house.feed.last_seq() {
            soon(reader.follower.next()).await.unwrap();
        }
    }
    house.act(Act::Other).await;
    for reader in &mut house.readers {
        soon(reader.follower.next()).await.unwrap();
    }
    for act in [Act::Begin, Act::Block(Content::Text), Act::Deltas(3)] {
        house.act(act).await;
    }
    let mut texts = Vec::new();
    for reader in &mut house.readers {
        texts.push(soon(reader.follower.next()).await.unwrap().unwrap());
    }
    let [first, others @ ..] = &texts[..] else { panic!("there are followers") };
    assert!(!others.is_empty() && first.len() >= 5, "{texts:?}");
    for other in others {
        let same = first.iter().zip(other).all(|(one, two)| Arc::ptr_eq(one, two));
        assert!(same && first.len() == other.len(), "an event was serialised again");
    }
}

/// The seqs and types that the only follower was given.
async fn given(acts: &[Act]) -> Vec<(Seq, String, String)> {
    let mut house = FeedFixture::new().await;
    for act in acts {
        house.act(*act).await;
    }
    let mut readers = std::mem::take(&mut house.readers);
    let reader = &mut readers[0];
    while reader.follower.cursor() < house.feed.last_seq() {
        let lines = soon(reader.follower.next()).await;
        reader.take(lines.unwrap().unwrap());
    }
    reader.given.iter().map(told).collect()
}

fn told(event: &Value) -> (Seq, String, String) {
    let text = event["text"].as_str().unwrap_or_default().to_string();
    (event["seq"].as_u64().unwrap(), event["type"].as_str().unwrap().to_string(), text)
}

fn expected(list: &[(Seq, &str, &str)]) -> Vec<(Seq, String, String)> {
    list.iter().map(|(seq, kind, text)| (*seq, (*kind).to_string(), (*text).to_string())).collect()
}

#[tokio::test]
async fn a_cursor_inside_a_finished_block_gets_the_item_alone() {
    // 1 started, 2 block, 3–5 deltas, 6 block completed, 7 completed; then after 4.
    let acts = [Act::Begin, Act::Block(Content::Text), Act::Deltas(3), Act::Complete, Act::Join(4)];
    assert_eq!(
        given(&acts).await,
        expected(&[(6, "message.block_completed", ""), (7, "message.completed", "")])
    );
}

#[tokio::test]
async fn a_message_that_is_folded_while_somebody_joins_is_given_as_the_item_alone() {
    let mut house = FeedFixture::new().await;
    for act in [Act::Begin, Act::Block(Content::Text), Act::Deltas(5)] {
        house.act(act).await;
    }
    let (first_seq, after_seq) = (house.told[0].first_seq, house.next - 3);
    let before = inside(&house.store, house.key, first_seq, after_seq).await.unwrap();
    assert!(before.and_then(|open| open.block).is_some_and(|block| block.sent > 0));
    house.act(Act::Complete).await;
    // It was seen running; by now its rows are gone.
    assert_eq!(inside(&house.store, house.key, first_seq, after_seq).await.unwrap(), None);
}

#[tokio::test]
async fn whoever_is_overtaken_by_a_fold_gets_the_rest_as_one_delta() {
    // Joined after 4, while the block runs: 5 is folded away before anything is read.
    let acts =
        [Act::Begin, Act::Block(Content::Text), Act::Deltas(3), Act::Join(4), Act::Deltas(2), Act::Complete];
    let mut house_acts = acts.to_vec();
    // So much else that the memory does not reach back to the cursor.
    house_acts.extend([Act::Other; 40]);
    let given = given(&house_acts).await;
    let first = expected(&[
        (7, "message.text_delta", "5·6·7·"),
        (8, "message.block_completed", ""),
        (9, "message.completed", ""),
    ]);
    assert_eq!(given[..3], first);
    assert_eq!(given.len(), 43);
}

#[tokio::test]
async fn rows_that_the_feed_still_holds_do_not_come_again() {
    // 1 started, 2 block, 3 delta, 4 something else, 5 delta; 6 and 7, the end, are committed and
    // not yet published: the store has folded what the feed still shows.
    let mut house = FeedFixture::new().await;
    for act in [Act::Begin, Act::Block(Content::Text), Act::Deltas(1), Act::Other, Act::Deltas(1)] {
        house.act(act).await;
    }
    house.act(Act::Join(2)).await;
    house.act(Act::Hold).await;
    house.act(Act::Complete).await;
    let mut reader = house.readers.remove(0);
    let lines = soon(reader.follower.next()).await;
    reader.take(lines.unwrap().unwrap());
    house.feed.publish(std::mem::take(&mut house.held));
    while reader.follower.cursor() < house.feed.last_seq() {
        let lines = soon(reader.follower.next()).await;
        reader.take(lines.unwrap().unwrap());
    }
    assert_eq!(
        reader.given.iter().map(told).collect::<Vec<_>>(),
        expected(&[
            (3, "message.text_delta", "3·5·"),
            (4, "session.attached", ""),
            (6, "message.block_completed", ""),
            (7, "message.completed", ""),
        ])
    );
}

#[tokio::test]
async fn a_replay_of_a_finished_message_holds_each_block_once() {
    // Something happens in the middle of the block: its rows leave two gaps.
    let acts = [
        Act::Begin,
        Act::Block(Content::Text),
        Act::Deltas(1),
        Act::Other,
        Act::Deltas(1),
        Act::Block(Content::Arguments),
        Act::Deltas(1),
        Act::Block(Content::Text),
        Act::Deltas(2),
        Act::Interrupt,
        Act::Join(0),
    ];
    assert_eq!(
        given(&acts).await,
        expected(&[
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
async fn a_cursor_ahead_of_the_journal_is_an_error_and_its_end_is_told() {
    let mut house = FeedFixture::new().await;
    house.act(Act::Other).await;
    let start = |after| Follower::start(house.store.clone(), house.key, Arc::clone(&house.feed), after);
    assert!(matches!(start(2).await.map(|_| ()), Err(SessionError::CursorAhead { last_seq: 1 })));
    start(1).await.expect("the end is a place to begin");
    let mut follower = start(0).await.expect("the beginning is one too");
    house.feed.close();
    assert!(
        matches!(soon(follower.next()).await, Ok(Some(lines)) if lines.len() == 1),
        "first what there is"
    );
    assert_eq!(soon(follower.next()).await, Ok(None), "then the end");
}

/// A text that was cut out of its event is given piece by piece, from any place of its block.
#[tokio::test]
async fn what_was_cut_out_of_an_event_is_still_given_to_who_missed_it() {
    for content in [Content::Text, Content::Thinking] {
        let mut house = FeedFixture::new().await;
        for act in [Act::Begin, Act::Block(Content::Text), Act::Deltas(2), Act::Block(content)] {
            house.act(act).await;
        }
        // Rows as long as rows may be, of what takes most room in JSON and of what is cut in characters.
        for n in 0..30_u8 {
            house.say(if n % 3 == 0 { "\u{1}".repeat(8 * 1024) } else { "é€".repeat(1_600) }).await;
            if n % 7 == 6 {
                house.act(Act::Other).await;
            }
            // Everywhere, and then nobody reads.
            house.join_after(house.next - 1).await;
        }
        for reader in &mut house.readers {
            reader.follower.piece = 56 * 1024;
        }
        for act in [Act::Complete, Act::Other] {
            house.act(act).await;
        }
        let stored = house.store.message_around(house.key, 1).await.unwrap().unwrap();
        assert!(stored.last.len() <= crate::types::wire::WIRE_BYTES && stored.last.contains("\"cut\":["));
        for reader in &mut house.readers {
            while reader.follower.cursor() < house.feed.last_seq() {
                let events = soon(reader.follower.take(100_000)).await.unwrap();
                let bytes: usize = events.iter().map(|event| event.len()).sum();
                assert!(bytes <= 100_000 + 65_536, "{bytes} bytes at once");
                assert!(
                    events.iter().all(|event| event.len() <= 65_024),
                    "an event is too long for the wire"
                );
                reader.take(events);
            }
        }
        house.finish().await.unwrap();
    }
}

/// A message of very many blocks loses its list of blocks, not their texts.
#[tokio::test]
async fn many_small_blocks_are_given_to_who_missed_them_and_fetched_once() {
    let mut house = FeedFixture::new().await;
    house.act(Act::Begin).await;
    for n in 0..700 {
        house.act(Act::Block(Content::Text)).await;
        house.say("x".repeat(100)).await;
        if n % 300 == 0 {
            house.join_after(house.next - 1).await;
        }
    }
    // As long as rows may be.
    for reader in &mut house.readers {
        reader.follower.piece = 56 * 1024;
    }
    for act in [Act::Complete, Act::Other] {
        house.act(act).await;
    }
    let stored = house.store.message_around(house.key, 1).await.unwrap().unwrap();
    assert!(stored.last.contains("\"at\":\"/item/content\""), "the list is cut");
    let mut source = rebuilt_deltas::Source::new(&house.store, &house.feed, house.key, 1_000);
    for block in [600, 601] {
        let inside =
            Inside { index: block, content: Content::Text, nth: block as usize, sent: 0, rest: Rest::Rows };
        assert!(source.piece(1, &inside).await.unwrap().is_some_and(|piece| piece.is_last));
        assert!(source.is_whole(), "what was cut out is fetched once for a look");
    }
    house.finish().await.unwrap();
}
