//! Followers of random journals, each at a speed of its own. Whatever they miss, the text up to a
//! cursor and the deltas after it are the text of the item (R9).

use std::collections::HashMap;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::session::journal;
use crate::store::{Append, ItemRow, NewSession, StoreOwner, Sync};
use crate::types::ids::{ItemId, Mint, Seed, SessionId};
use crate::types::message::Role;
use crate::types::permission::Mode;
use crate::types::session::{ItemKind, ItemStatus, SessionSpec};
use crate::types::time::Timestamp;
use crate::types::usage::Budgets;

/// What happens to the journal.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A message begins, unless one streams.
    Begin,
    /// A block begins; the one before it ends.
    Block(Content),
    /// So many deltas of the open block, in one transaction.
    Deltas(u8),
    /// The message is whole: its deltas are folded away.
    Complete,
    /// The message is cut short: folded as well, calls are dropped.
    Interrupt,
    /// Something else, for example a client that attaches.
    Other,
    /// A follower begins; the number chooses where.
    Join(u16),
    /// A follower reads once.
    Read(u8),
    /// The next transaction is committed, and published only when the one after it begins.
    Hold,
}

fn act() -> impl Strategy<Value = Act> {
    let content =
        prop_oneof![3 => Just(Content::Text), 1 => Just(Content::Thinking), 1 => Just(Content::Arguments)];
    prop_oneof![
        3 => Just(Act::Begin),
        4 => content.prop_map(Act::Block),
        9 => (1..12u8).prop_map(Act::Deltas),
        2 => Just(Act::Complete),
        1 => Just(Act::Interrupt),
        3 => Just(Act::Other),
        3 => any::<u16>().prop_map(Act::Join),
        8 => any::<u8>().prop_map(Act::Read),
        2 => Just(Act::Hold),
    ]
}

/// One block as the model streamed it.
#[derive(Clone, Debug)]
struct Streamed {
    content: Content,
    text: String,
}

/// A message with everything that it ever said, kept beside the journal.
struct Told {
    item_id: ItemId,
    first_seq: Seq,
    last_seq: Option<Seq>,
    blocks: Vec<Streamed>,
    /// Seq, block, and the text so far of that block after each delta.
    steps: Vec<(Seq, usize, usize)>,
}

impl Told {
    /// Bytes of a block up to a cursor.
    fn before(&self, block: usize, cursor: Seq) -> usize {
        let steps = self.steps.iter().filter(|(seq, at, _)| *seq <= cursor && *at == block);
        steps.map(|(.., bytes)| *bytes).next_back().unwrap_or(0)
    }
}

/// A follower and what it was given.
struct Reader {
    follower: Follower,
    after: Seq,
    /// First seqs of messages that were finished when the cursor was put inside of them.
    was_finished: Option<Seq>,
    given: Vec<Value>,
}

struct House {
    _folder: tempfile::TempDir,
    _owner: StoreOwner,
    store: Store,
    key: SessionKey,
    id: SessionId,
    feed: Arc<Feed>,
    next: Seq,
    told: Vec<Told>,
    readers: Vec<Reader>,
    hold: bool,
    held: Vec<Line>,
    permanent: Vec<Seq>,
}

impl House {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (store, owner) = Store::open(&folder.path().join("journal.db")).await.unwrap();
        let id = Mint::new(0, Seed(1)).session();
        let spec = SessionSpec {
            cwd: "/w".into(),
            title: String::new(),
            model: "p/m".into(),
            mode: Mode::Default,
            background: false,
            safe_mode: false,
            on_restart: None,
            budgets: Budgets::default(),
            system_prompt: None,
            append_system_prompt: None,
        };
        let new = NewSession { session_id: id, spec, at: Timestamp(0), rows: Vec::new(), idempotency: None };
        let key = store.create(new).await.unwrap();
        Self {
            _folder: folder,
            _owner: owner,
            store,
            key,
            id,
            feed: Arc::new(Feed::new(0)),
            next: 1,
            told: Vec::new(),
            readers: Vec::new(),
            hold: false,
            held: Vec::new(),
            permanent: Vec::new(),
        }
    }

    fn streaming(&mut self) -> Option<&mut Told> {
        self.told.last_mut().filter(|told| told.last_seq.is_none())
    }

    async fn act(&mut self, act: Act) {
        match act {
            Act::Begin if self.streaming().is_none() => {
                let item_id = Mint::new(i64::try_from(self.next).unwrap(), Seed(2)).item();
                let first_seq = self.next;
                self.told.push(Told {
                    item_id,
                    first_seq,
                    last_seq: None,
                    blocks: Vec::new(),
                    steps: Vec::new(),
                });
                self.write(vec![Event::MessageStarted { model: "p/m".into(), step: 1, attempt: 1 }]).await;
            }
            Act::Block(content) => {
                let Some(told) = self.streaming() else { return };
                let mut events = Vec::new();
                let index = u32::try_from(told.blocks.len()).unwrap();
                if let Some(before) = index.checked_sub(1) {
                    events.push(Event::MessageBlockCompleted { index: before });
                }
                told.blocks.push(Streamed { content, text: String::new() });
                let block = match content {
                    Content::Text => BlockKind::Text,
                    Content::Thinking => BlockKind::Thinking,
                    Content::Arguments => BlockKind::ToolCall { tool: "Read".into() },
                };
                events.push(Event::MessageBlockStarted { index, block });
                self.write(events).await;
            }
            Act::Deltas(some) => {
                let first = self.next;
                let Some(told) = self.streaming() else { return };
                let Some(at) = told.blocks.len().checked_sub(1) else { return };
                let index = u32::try_from(at).unwrap();
                let block = &mut told.blocks[at];
                let mut events = Vec::new();
                for seq in first..first + u64::from(some) {
                    // No piece like another, some bytes of more than one in a character.
                    let text = format!("{seq}·");
                    block.text.push_str(&text);
                    told.steps.push((seq, at, block.text.len()));
                    events.push(match block.content {
                        Content::Text => Event::MessageTextDelta { index, text },
                        Content::Thinking => Event::MessageThinkingDelta { index, text },
                        Content::Arguments => Event::MessageToolInputDelta { index, json: text },
                    });
                }
                self.write(events).await;
            }
            Act::Complete => self.end(ItemStatus::Completed).await,
            Act::Interrupt => self.end(ItemStatus::Interrupted).await,
            Act::Other => self.write(vec![Event::SessionAttached { clients: 1 }]).await,
            Act::Join(pick) => self.join(pick).await,
            Act::Read(pick) => self.read(pick).await,
            Act::Hold => self.hold = true,
            Act::Begin => {}
        }
    }

    async fn end(&mut self, status: ItemStatus) {
        let seq = self.next;
        let Some(told) = self.streaming() else { return };
        let whole = status == ItemStatus::Completed;
        let content: Vec<Block> = told
            .blocks
            .iter()
            .filter_map(|block| match block.content {
                Content::Text => Some(Block::Text { text: block.text.clone() }),
                Content::Thinking => Some(Block::Thinking { text: block.text.clone(), signature: None }),
                Content::Arguments if whole => Some(Block::ToolCall(crate::types::message::ToolCall {
                    call_id: Mint::new(0, Seed(seq.into())).call(),
                    provider_id: "p".into(),
                    tool: "Read".into(),
                    input: Value::Null,
                    input_error: None,
                })),
                Content::Arguments => None,
            })
            .collect();
        // Only whole messages end their last block.
        let mut events: Vec<Event> = Vec::new();
        if let (true, Some(last)) = (whole, told.blocks.len().checked_sub(1)) {
            events.push(Event::MessageBlockCompleted { index: u32::try_from(last).unwrap() });
        }
        let last_seq = seq + events.len() as u64;
        told.last_seq = Some(last_seq);
        let texts = told.blocks.iter().filter(|block| block.content == Content::Text);
        let item = Item {
            item_id: told.item_id,
            turn_id: Mint::new(0, Seed(3)).turn(),
            kind: ItemKind::AssistantMessage,
            status,
            first_seq: told.first_seq,
            last_seq,
            text: Some(texts.map(|block| block.text.as_str()).collect()),
            role: Some(Role::Assistant),
            content,
            call: None,
        };
        events.push(Event::MessageCompleted {
            item,
            model: None,
            stop_reason: None,
            usage: None,
            cost_usd_micros: None,
            duration_ms: None,
            response_id: None,
            superseded: false,
        });
        self.write(events).await;
    }

    /// Commits and publishes, as the session does.
    async fn write(&mut self, events: Vec<Event>) {
        self.feed.publish(std::mem::take(&mut self.held));
        let streaming = self.told.last().filter(|told| told.last_seq.is_none_or(|last| last >= self.next));
        let opener = streaming.map(|told| (told.item_id, told.first_seq));
        let mut append = Append {
            key: self.key,
            rows: Vec::new(),
            folds: Vec::new(),
            items: Vec::new(),
            requests: Vec::new(),
            summary: None,
            idempotency: None,
            processes: Vec::new(),
            sync: Sync::Normal,
        };
        let mut lines = Vec::new();
        for event in events {
            let seq = self.next;
            self.next += 1;
            let of_message = event.kind().starts_with("message.");
            let fold = opener.filter(|_| event.is_foldable()).map(|(_, first_seq)| first_seq);
            if fold.is_none() {
                self.permanent.push(seq);
            }
            let row = |first_seq, status| ItemRow {
                first_seq,
                last_seq: seq,
                kind: ItemKind::AssistantMessage,
                status,
            };
            match &event {
                Event::MessageStarted { .. } => append.items.push(row(seq, ItemStatus::Running)),
                Event::MessageCompleted { item, .. } => {
                    append.items.push(row(item.first_seq, item.status));
                    append.folds.push(item.first_seq);
                }
                _ => {}
            }
            let envelope = Envelope {
                seq,
                session_id: self.id,
                turn_id: None,
                item_id: opener.filter(|_| of_message).map(|(item_id, _)| item_id),
                at_ms: Timestamp(0),
                origin: None,
                event,
            };
            let (row, line) = journal::write(&envelope, fold);
            append.rows.push(row);
            lines.push(line);
        }
        self.store.append(append).await.unwrap();
        if std::mem::take(&mut self.hold) {
            self.held = lines;
        } else {
            self.feed.publish(lines);
        }
    }

    async fn join(&mut self, pick: u16) {
        let after = u64::from(pick) % (self.feed.last_seq() + 1);
        let follower =
            Follower::start(self.store.clone(), self.key, Arc::clone(&self.feed), after).await.unwrap();
        let inside = self
            .told
            .iter()
            .find(|told| told.first_seq <= after && told.last_seq.is_some_and(|last| after < last));
        let was_finished = inside.map(|told| told.first_seq);
        self.readers.push(Reader { follower, after, was_finished, given: Vec::new() });
    }

    async fn read(&mut self, pick: u8) {
        if self.readers.is_empty() {
            return;
        }
        let at = usize::from(pick) % self.readers.len();
        let reader = &mut self.readers[at];
        if reader.follower.cursor() < self.feed.last_seq() {
            let next = reader.follower.next();
            // What is held may have folded all that there was to read: then there is nothing yet.
            let wait = Duration::from_millis(if self.held.is_empty() { 60_000 } else { 3 });
            match tokio::time::timeout(wait, next).await {
                Ok(lines) => reader.take(lines.unwrap().unwrap()),
                Err(_) => assert!(!self.held.is_empty(), "a follower reads what there is"),
            }
        }
    }

    /// Everybody reads to the end; then the promises are looked at.
    async fn finish(mut self) -> Result<(), String> {
        self.hold = false;
        self.write(vec![Event::SessionEnded { reason: "the end".into() }]).await;
        for reader in &mut self.readers {
            while reader.follower.cursor() < self.feed.last_seq() {
                let lines = soon(reader.follower.next()).await;
                reader.take(lines.unwrap().unwrap());
            }
        }
        for reader in &self.readers {
            self.check(reader).map_err(|why| {
                let given: Vec<String> = reader.given.iter().map(Value::to_string).collect();
                format!("after {}: {why}\n{}", reader.after, given.join("\n"))
            })?;
        }
        Ok(())
    }

    fn check(&self, reader: &Reader) -> Result<(), String> {
        let seqs: Vec<Seq> = reader.given.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        if !seqs.windows(2).all(|pair| pair[0] < pair[1])
            || seqs.first().is_some_and(|seq| *seq <= reader.after)
        {
            return Err(format!("numbers must rise: {seqs:?}"));
        }
        let permanent: Vec<Seq> = seqs.iter().copied().filter(|seq| self.permanent.contains(seq)).collect();
        let expected: Vec<Seq> = self.permanent.iter().copied().filter(|seq| *seq > reader.after).collect();
        if permanent != expected {
            return Err(format!("permanent events were {permanent:?}, expected {expected:?}"));
        }
        for told in &self.told {
            self.check_message(reader, told)?;
        }
        Ok(())
    }

    fn check_message(&self, reader: &Reader, told: &Told) -> Result<(), String> {
        let end = told.last_seq.unwrap_or(Seq::MAX);
        if reader.after >= end {
            return Ok(());
        }
        let mut sums: HashMap<usize, String> = HashMap::new();
        let mut deltas = 0;
        for event in &reader.given {
            let seq = event["seq"].as_u64().unwrap();
            let kind = event["type"].as_str().unwrap();
            if seq < told.first_seq
                || seq > end
                || !["message.text_delta", "message.thinking_delta"].contains(&kind)
            {
                continue;
            }
            deltas += 1;
            let at = usize::try_from(event["index"].as_u64().unwrap()).unwrap();
            let content = told.blocks.get(at).map(|block| block.content);
            let fits = match content {
                Some(Content::Text) => kind == "message.text_delta",
                Some(Content::Thinking) => kind == "message.thinking_delta",
                _ => false,
            };
            if !fits || event["item_id"] != told.item_id.to_string() {
                return Err(format!("{kind} {seq} does not belong to {content:?}"));
            }
            sums.entry(at).or_default().push_str(event["text"].as_str().unwrap());
        }
        if reader.was_finished == Some(told.first_seq) && deltas == 0 {
            return Ok(()); // The item alone.
        }
        for (at, block) in told.blocks.iter().enumerate() {
            if block.content == Content::Arguments {
                continue;
            }
            let before = &block.text[..told.before(at, reader.after)];
            let sum = format!("{before}{}", sums.get(&at).map_or("", String::as_str));
            if sum != block.text {
                return Err(format!("block {at} became {sum:?}, expected {:?}", block.text));
            }
        }
        Ok(())
    }
}

impl Reader {
    fn take(&mut self, lines: Vec<Arc<str>>) {
        assert!(!lines.is_empty(), "a follower is woken for something");
        self.given.extend(lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("in time")
}

fn play(acts: &[Act]) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut house = House::new().await;
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

/// The seqs and types that the only follower was given.
async fn given(acts: &[Act]) -> Vec<(Seq, String, String)> {
    let mut house = House::new().await;
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
    let mut house = House::new().await;
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
    let mut house = House::new().await;
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
