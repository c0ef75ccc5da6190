//! A journal with random actions, and its followers. The events are committed and published as a session does it.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::Value;

use crate::actor::journal;
use crate::stream::follow::*;
use store::{Append, Durability, ItemRow, NewSession, Store, StoreOwner};
use types::event::{Envelope, Event};
use types::ids::{ItemId, Mint, Seed, SessionId};
use types::message::Block;
use types::message::Role;
use types::permission::Mode;
use types::session::Item;
use types::session::{ItemKind, ItemStatus, SessionSpec};
use types::time::Timestamp;
use types::tool::ToolStatus;
use types::usage::Budgets;

#[derive(Clone, Copy, Debug)]
pub(super) enum JournalAction {
    /// Start a message, unless one is streaming.
    Begin,
    /// Start a block and end the one before it.
    Block(BlockContent),
    /// Add this number of deltas to the open block, in one transaction.
    Deltas(u8),
    /// Complete the message and prune its deltas.
    Complete,
    /// Interrupt the message: prune its deltas and drop its calls.
    Interrupt,
    /// Add another event, for example of a client that attaches.
    Other,
    /// Add a follower. The number selects its cursor.
    Join(u16),
    /// Let one follower read once.
    Read(u8),
    /// Commit the next transaction, but publish it only when the following transaction starts.
    Hold,
    /// Run a tool with this number of output parts in one transaction. If it ends, its parts are pruned.
    Tool(u8, bool),
    /// Kill and restart the daemon. All followers return with their last seq, before or after the
    /// interrupted message is closed.
    Restart(bool),
}

pub(super) fn any_action() -> impl Strategy<Value = JournalAction> {
    let content = prop_oneof![3 => Just(BlockContent::Text), 1 => Just(BlockContent::Thinking), 1 => Just(BlockContent::Arguments)];
    prop_oneof![
        3 => Just(JournalAction::Begin),
        4 => content.prop_map(JournalAction::Block),
        9 => (1..12u8).prop_map(JournalAction::Deltas),
        2 => Just(JournalAction::Complete),
        1 => Just(JournalAction::Interrupt),
        3 => Just(JournalAction::Other),
        3 => any::<u16>().prop_map(JournalAction::Join),
        8 => any::<u8>().prop_map(JournalAction::Read),
        2 => Just(JournalAction::Hold),
        2 => (0..6u8, any::<bool>()).prop_map(|(pieces, ends)| JournalAction::Tool(pieces, ends)),
        1 => any::<bool>().prop_map(JournalAction::Restart),
    ]
}

/// One block as the model streamed it.
#[derive(Clone, Debug)]
pub(super) struct StreamedBlock {
    pub content: BlockContent,
    pub text: String,
}

/// A message with its complete text, stored separately from the journal.
pub(super) struct StreamedMessage {
    pub item_id: ItemId,
    pub first_seq: Seq,
    pub last_seq: Option<Seq>,
    pub blocks: Vec<StreamedBlock>,
    /// After each delta: its seq, its block and the length of that block's text.
    pub steps: Vec<(Seq, usize, usize)>,
}

impl StreamedMessage {
    /// Bytes of a block up to a cursor.
    pub fn bytes_before(&self, block: usize, cursor: Seq) -> usize {
        let steps = self.steps.iter().filter(|(seq, at, _)| *seq <= cursor && *at == block);
        steps.map(|(.., bytes)| *bytes).next_back().unwrap_or(0)
    }
}

/// A follower and the events that it received.
pub(super) struct TestReader {
    pub follower: Follower,
    pub after: Seq,
    /// First seqs of messages that were complete when the cursor was set inside them.
    pub was_finished: Option<Seq>,
    /// Cursor when the daemon was killed. Another follower continues from this cursor.
    pub until: Option<Seq>,
    pub received: Vec<Value>,
}
pub(super) struct FeedFixture {
    _folder: tempfile::TempDir,
    _owner: StoreOwner,
    pub store: Store,
    pub key: SessionKey,
    id: SessionId,
    pub feed: Arc<Feed>,
    pub next: Seq,
    pub messages: Vec<StreamedMessage>,
    pub readers: Vec<TestReader>,
    pub hold: bool,
    pub held: Vec<FeedEntry>,
    pub permanent: Vec<Seq>,
    /// Seq of the event that opened the running tool call.
    tool: Option<Seq>,
}

impl FeedFixture {
    pub async fn new() -> Self {
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
            budgets: Budgets::default(),
            thinking: None,
            sampling: Default::default(),
            system_prompt: None,
            append_system_prompt: None,
            tools: Default::default(),
            additional_dirs: Vec::new(),
            ..SessionSpec::default()
        };
        let new = NewSession {
            session_id: id,
            spec,
            at: Timestamp(0),
            items: Vec::new(),
            rows: Vec::new(),
            blobs: Vec::new(),
            audit: Vec::new(),
            idempotency: None,
            history: Default::default(),
        };
        let key = store.create(new).await.unwrap();
        Self {
            _folder: folder,
            _owner: owner,
            store,
            key,
            id,
            feed: Arc::new(Feed::new(0, Arc::default())),
            next: 1,
            messages: Vec::new(),
            readers: Vec::new(),
            hold: false,
            held: Vec::new(),
            permanent: Vec::new(),
            tool: None,
        }
    }

    fn open_message(&mut self) -> Option<&mut StreamedMessage> {
        self.messages.last_mut().filter(|message| message.last_seq.is_none())
    }

    pub async fn act(&mut self, act: JournalAction) {
        match act {
            JournalAction::Begin if self.open_message().is_none() && self.tool.is_none() => {
                let item_id = Mint::new(i64::try_from(self.next).unwrap(), Seed(2)).item();
                let first_seq = self.next;
                self.messages.push(StreamedMessage {
                    item_id,
                    first_seq,
                    last_seq: None,
                    blocks: Vec::new(),
                    steps: Vec::new(),
                });
                self.write(vec![Event::MessageStarted { model: "p/m".into(), attempt: 1 }]).await;
            }
            JournalAction::Block(content) => {
                let Some(message) = self.open_message() else { return };
                let mut events = Vec::new();
                let index = u32::try_from(message.blocks.len()).unwrap();
                if let Some(before) = index.checked_sub(1) {
                    events.push(Event::MessageBlockCompleted { index: before, signature: None, data: None });
                }
                message.blocks.push(StreamedBlock { content, text: String::new() });
                let block = match content {
                    BlockContent::Text => BlockKind::Text,
                    BlockContent::Thinking => BlockKind::Thinking,
                    BlockContent::Arguments => BlockKind::ToolCall { tool: "Read".into() },
                };
                events.push(Event::MessageBlockStarted { index, block });
                self.write(events).await;
            }
            JournalAction::Deltas(some) => {
                let first = self.next;
                let Some(message) = self.open_message() else { return };
                let Some(at) = message.blocks.len().checked_sub(1) else { return };
                let index = u32::try_from(at).unwrap();
                let block = &mut message.blocks[at];
                let mut events = Vec::new();
                for seq in first..first + u64::from(some) {
                    // Each part is unique, and some characters have several bytes.
                    let text = format!("{seq}·");
                    block.text.push_str(&text);
                    message.steps.push((seq, at, block.text.len()));
                    events.push(match block.content {
                        BlockContent::Text => Event::MessageTextDelta { index, text },
                        BlockContent::Thinking => Event::MessageThinkingDelta { index, text },
                        BlockContent::Arguments => Event::MessageToolInputDelta { index, json: text },
                    });
                }
                self.write(events).await;
            }
            JournalAction::Complete => self.end(ItemStatus::Completed).await,
            JournalAction::Interrupt => self.end(ItemStatus::Interrupted).await,
            JournalAction::Other => self.write(vec![Event::SessionAttached { clients: 1 }]).await,
            JournalAction::Join(pick) => self.follow_at(pick).await,
            JournalAction::Read(pick) => self.read(pick).await,
            JournalAction::Hold => self.hold = true,
            JournalAction::Tool(pieces, ends) => self.add_tool_call(pieces, ends).await,
            JournalAction::Restart(is_early) => self.restart(is_early).await,
            JournalAction::Begin => {}
        }
    }

    /// Adds one delta to the open block.
    pub async fn add_delta(&mut self, text: String) {
        let seq = self.next;
        let Some(message) = self.open_message() else { return };
        let at = message.blocks.len() - 1;
        let index = u32::try_from(at).unwrap();
        let block = &mut message.blocks[at];
        block.text.push_str(&text);
        message.steps.push((seq, at, block.text.len()));
        let event = match block.content {
            BlockContent::Thinking => Event::MessageThinkingDelta { index, text },
            _ => Event::MessageTextDelta { index, text },
        };
        self.write(vec![event]).await;
    }

    async fn end(&mut self, status: ItemStatus) {
        let seq = self.next;
        let Some(message) = self.open_message() else { return };
        let whole = status == ItemStatus::Completed;
        let content: Vec<Block> = message
            .blocks
            .iter()
            .filter_map(|block| match block.content {
                BlockContent::Text => Some(Block::Text { text: block.text.clone() }),
                BlockContent::Thinking => Some(Block::Thinking { text: block.text.clone(), signature: None }),
                BlockContent::Arguments if whole => Some(Block::ToolCall(types::message::ToolCall {
                    call_id: Mint::new(0, Seed(seq.into())).call(),
                    provider_id: "p".into(),
                    tool: "Read".into(),
                    input: Value::Null,
                    input_error: None,
                })),
                BlockContent::Arguments => None,
            })
            .collect();
        // Only a complete message ends its last block.
        let mut events: Vec<Event> = Vec::new();
        if let (true, Some(last)) = (whole, message.blocks.len().checked_sub(1)) {
            let index = u32::try_from(last).unwrap();
            events.push(Event::MessageBlockCompleted { index, signature: None, data: None });
        }
        let last_seq = seq + events.len() as u64;
        message.last_seq = Some(last_seq);
        let texts = message.blocks.iter().filter(|block| block.content == BlockContent::Text);
        let item = Item {
            item_id: message.item_id,
            turn_id: Mint::new(0, Seed(3)).turn(),
            kind: ItemKind::AssistantMessage,
            status,
            first_seq: message.first_seq,
            last_seq,
            text: Some(texts.map(|block| block.text.as_str()).collect()),
            role: Some(Role::Assistant),
            content,
            call: None,
            command: None,
            truncated_fields: Vec::new(),
        };
        events.push(Event::MessageCompleted {
            reasoning_item_id: None,
            item,
            model: None,
            stop_reason: None,
            usage: None,
            estimated: false,
            cost_usd_micros: None,
            model_snapshot: None,
            duration_ms: None,
            response_id: None,
            superseded: false,
            cache_hit: false,
            uncalibrated_tokens: None,
            candidate: false,
            cut_short: false,
        });
        self.write(events).await;
    }

    /// Commits and publishes events as a session does.
    pub async fn write(&mut self, events: Vec<Event>) {
        self.feed.publish(std::mem::take(&mut self.held));
        let streaming =
            self.messages.last().filter(|message| message.last_seq.is_none_or(|last| last >= self.next));
        let opener = streaming.map(|message| (message.item_id, message.first_seq));
        let mut append = Append {
            key: self.key,
            rows: Vec::new(),
            prune_deltas_of: Vec::new(),
            items: Vec::new(),
            requests: Vec::new(),
            bookings: Vec::new(),
            summary: None,
            idempotency: None,
            processes: Vec::new(),
            blobs: Vec::new(),
            pending_grant: None,
            audit: Vec::new(),
            texts: Vec::new(),
            rewound_to: None,
            sync: Durability::Normal,
        };
        let mut lines = Vec::new();
        for event in events {
            let seq = self.next;
            self.next += 1;
            let of_message = event.kind().starts_with("message.");
            let opened = opener.map(|(_, first_seq)| first_seq).or(self.tool);
            let delta_of = opened.filter(|_| event.is_delta());
            if delta_of.is_none() {
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
                    append.prune_deltas_of.push(item.first_seq);
                }
                Event::ToolStarted { .. } => self.tool = Some(seq),
                Event::ToolCompleted { .. } => append.prune_deltas_of.extend(self.tool.take()),
                _ => {}
            }
            let envelope = Envelope {
                seq,
                session_id: self.id,
                turn_id: None,
                item_id: opener.filter(|_| of_message).map(|(item_id, _)| item_id),
                step: None,
                parent_call_id: None,
                at_ms: Timestamp(0),
                origin: None,
                truncated_fields: Vec::new(),
                event,
            };
            let (row, line, blobs) = journal::encode_event(&envelope, delta_of);
            append.blobs.extend(blobs);
            append.rows.push(row);
            lines.push(line);
        }
        self.store.journal_writer(append.key).append(append).await.unwrap();
        if std::mem::take(&mut self.hold) {
            self.held = lines;
        } else {
            self.feed.publish(lines);
        }
    }

    async fn follow_at(&mut self, pick: u16) {
        self.follow_after(u64::from(pick) % (self.feed.last_seq() + 1)).await;
    }

    pub async fn follow_after(&mut self, after: Seq) {
        let follower =
            Follower::start(self.store.reader(), self.key, Arc::clone(&self.feed), after).await.unwrap();
        let inside = self
            .messages
            .iter()
            .find(|message| message.first_seq <= after && message.last_seq.is_some_and(|last| after < last));
        let was_finished = inside.map(|message| message.first_seq);
        self.readers.push(TestReader { follower, after, was_finished, until: None, received: Vec::new() });
    }

    /// Adds a follower at each seq.
    pub async fn follow_everywhere(&mut self) {
        for after in 0..=self.feed.last_seq() {
            self.follow_after(after).await;
        }
    }

    async fn add_tool_call(&mut self, pieces: u8, ends: bool) {
        if self.open_message().is_some() {
            return;
        }
        let call_id = Mint::new(0, Seed(7)).call();
        let mut events = Vec::new();
        if self.tool.is_none() {
            events.push(Event::ToolStarted {
                call_id,
                tool: "Bash".into(),
                allowed_by: "a rule".into(),
                read_only: false,
                change: None,
                sandbox: None,
                attempt: 1,
            });
        }
        let progress = |n| Event::ToolProgress { call_id, stream: "stdout".into(), text: format!("{n}\n") };
        events.extend((0..pieces).map(progress));
        if ends {
            events.push(Event::ToolCompleted {
                call_id,
                tool: "Bash".into(),
                status: ToolStatus::Completed,
                output: "done".into(),
                code: None,
                detail: None,
                reads: Vec::new(),
                cwd: None,
                background_read: None,
                duration_ms: 0,
                output_blob: None,
                attachments: Vec::new(),
            });
        }
        self.write(events).await;
    }

    /// Simulates a restart: only the store and the clients' cursors survive.
    async fn restart(&mut self, is_early: bool) {
        self.held.clear();
        self.hold = false;
        let last_seq = self.store.last_seq(self.key).await.unwrap();
        assert_eq!(last_seq + 1, self.next, "the next number was never given out");
        self.feed = Arc::new(Feed::new(last_seq, Arc::default()));
        let cursors: Vec<Seq> = self.readers.iter_mut().filter_map(TestReader::end_with_daemon).collect();
        if !is_early {
            self.end(ItemStatus::Interrupted).await;
        }
        for after in cursors {
            self.follow_after(after).await;
        }
        if is_early {
            self.end(ItemStatus::Interrupted).await;
        }
    }

    async fn read(&mut self, pick: u8) {
        if self.readers.is_empty() {
            return;
        }
        let at = usize::from(pick) % self.readers.len();
        let reader = &mut self.readers[at];
        if reader.until.is_some() {
            return;
        }
        if reader.follower.cursor() < self.feed.last_seq() {
            let next = reader.follower.next();
            // The held transaction may have pruned everything that was readable. Then there is nothing to read
            // yet.
            let wait = Duration::from_millis(if self.held.is_empty() { 60_000 } else { 3 });
            match tokio::time::timeout(wait, next).await {
                Ok(lines) => reader.read_lines(lines.unwrap().unwrap()),
                Err(_) => assert!(!self.held.is_empty(), "a follower reads what there is"),
            }
        }
    }
}

impl TestReader {
    pub fn read_lines(&mut self, lines: Vec<Arc<str>>) {
        assert!(!lines.is_empty(), "a follower is woken for something");
        self.received.extend(lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }

    /// Ends the follower together with the daemon. Returns the follower's last seq.
    fn end_with_daemon(&mut self) -> Option<Seq> {
        let first_time = self.until.is_none();
        first_time.then(|| *self.until.insert(self.follower.cursor()))
    }
}
