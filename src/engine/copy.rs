//! Copies the events of a conversation to another journal: for a fork, and to find the state that a session had
//! at an earlier item. Pure: the caller reads the journal.
//!
//! A copy keeps the numbers of its events. It omits events that belong to the run and not to the
//! conversation: requests, calls in progress, the queue, retries, costs, and allow rules.

use std::collections::HashSet;

use types::event::{Envelope, Event};
use types::history::{ForkedFrom, RewoundHistory};
use types::ids::{ItemId, Seq, SessionId};
use types::permission::{Mode, RuleKind};
use types::session::{SessionSpec, TurnResult};
use types::turn_options::TurnOptions;
use types::usage::Usage;

/// Kinds that a copy leaves out.
pub const UNCOPIED_KINDS: &[&str] = &[
    "session.status",
    "session.attached",
    "session.detached",
    "session.ended",
    "session.archived",
    "session.forked",
    "config.reloaded",
    "clock.changed",
    "hook.completed",
    "hooks.status",
    "mcp.status",
    "workspace.trust_required",
    "turn.queued",
    "turn.dequeued",
    "turn.queue_updated",
    "turn.queue_moved",
    "turn.prompt_built",
    "compact.started",
    "turn.phase",
    "turn.parked",
    "turn.resumed",
    "turn.steered",
    "turn.aborting",
    "message.block_started",
    "message.block_completed",
    "message.text_delta",
    "message.thinking_delta",
    "message.tool_input_delta",
    "message.tombstone",
    "usage",
    "helper.started",
    "helper.completed",
    "tool.status",
    "tool.started",
    "tool.blocked",
    "tool.progress",
    "tool.background",
    "subagent.started",
    "subagent.completed",
    "file.checkpointed",
    "file.changed",
    "permission.requested",
    "permission.resolved",
    "permission.expired",
    "question.requested",
    "question.resolved",
    "feedback.request",
    "feedback.completed",
    "retry",
    "heartbeat",
    "stream.idle",
    "model.switched",
    "notice",
    "error",
];

/// The last item of a copied conversation, by the seqs of its first and its last event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryPoint {
    /// Seq of the event that opened the item. Items that began later are left out.
    pub first_seq: Seq,
    /// Seq of its newest permanent event. Later events are left out.
    pub last_seq: Seq,
}

impl HistoryPoint {
    /// The whole conversation.
    pub const END: Self = Self { first_seq: Seq::MAX, last_seq: Seq::MAX };
}

/// The upper limits of a copy without a request: the current permissions of its source, not earlier ones.
#[derive(Clone, Debug, Default)]
pub struct CopyLimits {
    mode: Mode,
    safe_mode: bool,
    additional_dirs: Vec<String>,
}

impl CopyLimits {
    /// The limits of a source with these settings.
    #[must_use]
    pub fn from_spec(spec: &SessionSpec) -> Self {
        let SessionSpec { mode, safe_mode, additional_dirs, .. } = spec;
        Self { mode: *mode, safe_mode: *safe_mode, additional_dirs: additional_dirs.clone() }
    }

    /// A mode that asks less is kept only if it is the mode of the source.
    fn mode(&self, mode: Mode) -> Mode {
        let asks = matches!(mode, Mode::Default | Mode::Plan);
        if asks || mode == self.mode { mode } else { Mode::Default }
    }
}

/// Selects and changes the events for a copy. It receives them in order.
#[derive(Debug)]
pub struct JournalCopier {
    point: HistoryPoint,
    session_id: SessionId,
    limits: CopyLimits,
    items: HashSet<ItemId>,
    context_tokens: u64,
}

impl JournalCopier {
    /// Creates a copier for the journal of `session_id`.
    #[must_use]
    pub fn new(point: HistoryPoint, session_id: SessionId, limits: CopyLimits) -> Self {
        Self { point, session_id, limits, items: HashSet::new(), context_tokens: 0 }
    }

    /// Tokens of the newest copied answer and of its request. The copied events contain no usage from which to
    /// compute them.
    #[must_use]
    pub fn context_tokens(&self) -> u64 {
        self.context_tokens
    }

    /// The event as the copy contains it; `None` if the copy omits it.
    pub fn copy(&mut self, envelope: Envelope) -> Option<Envelope> {
        if let Event::FeedbackCompleted { context_tokens, .. } = envelope.event
            && envelope.item_id.is_some()
            && envelope.seq <= self.point.last_seq
        {
            self.context_tokens = context_tokens;
        }
        let is_of_kind = UNCOPIED_KINDS.contains(&envelope.event.kind());
        if is_of_kind || envelope.seq > self.point.last_seq || !self.keeps_item(&envelope) {
            return None;
        }
        let event = self.without_costs(self.without_permissions(envelope.event)?)?;
        Some(Envelope { session_id: self.session_id, event, ..envelope })
    }

    /// Whether the event's item is kept. The first event of an item decides.
    fn keeps_item(&mut self, envelope: &Envelope) -> bool {
        // A rewind event names the item that becomes the last one, but is not part of that item. So it is copied.
        let rewinds = matches!(envelope.event, Event::SessionRewound(_));
        let Some(item_id) = envelope.item_id.filter(|_| !rewinds) else { return true };
        if envelope.seq <= self.point.first_seq {
            self.items.insert(item_id);
        }
        self.items.contains(&item_id)
    }

    /// Removes allow rules and limits the settings, because only the user decides about the new
    /// session's permissions.
    fn without_permissions(&self, event: Event) -> Option<Event> {
        Some(match event {
            Event::PermissionRuleAdded { kind: RuleKind::Allow, .. }
            | Event::PermissionRuleRemoved { kind: RuleKind::Allow, .. } => return None,
            Event::SessionCreated(spec) => Event::SessionCreated(Box::new(SessionSpec {
                mode: self.limits.mode(spec.mode),
                safe_mode: spec.safe_mode || self.limits.safe_mode,
                additional_dirs: self.limits.additional_dirs.clone(),
                ..*spec
            })),
            Event::SessionUpdated { title, titled_by, mut options } => {
                options.mode = options.mode.map(|mode| self.limits.mode(mode));
                options.safe_mode = options.safe_mode.map(|safe_mode| safe_mode || self.limits.safe_mode);
                options.additional_dirs = None;
                Event::SessionUpdated { title, titled_by, options }
            }
            other => other,
        })
    }

    fn without_costs(&mut self, event: Event) -> Option<Event> {
        Some(match event {
            // A copy gets its own title, so omit the source's title.
            Event::SessionUpdated { options, .. } => {
                if *options == TurnOptions::default() {
                    return None;
                }
                Event::SessionUpdated { title: None, titled_by: None, options }
            }
            // The conversation contains a copy of the chosen candidate, so omit the candidates.
            Event::MessageCompleted { candidate: true, .. } => return None,
            Event::MessageCompleted {
                item,
                reasoning_item_id,
                model,
                stop_reason,
                usage,
                duration_ms,
                response_id,
                superseded,
                cache_hit,
                ..
            } => {
                if let Some(usage) = usage.filter(|usage| !superseded && usage.all_tokens() > 0) {
                    self.context_tokens = usage.all_tokens();
                }
                Event::MessageCompleted {
                    item,
                    reasoning_item_id,
                    model,
                    stop_reason,
                    usage: None,
                    estimated: false,
                    cost_usd_micros: None,
                    model_snapshot: None,
                    duration_ms,
                    response_id,
                    superseded,
                    cache_hit,
                    uncalibrated_tokens: None,
                    cut_short: false,
                    candidate: false,
                }
            }
            Event::SessionRewound(rewound) => {
                self.context_tokens = rewound.context_tokens;
                Event::SessionRewound(RewoundHistory { files: Vec::new(), ..rewound })
            }
            Event::TurnCompleted { result } => Event::TurnCompleted {
                result: TurnResult {
                    usage: Usage::default(),
                    cache_hit_tokens: 0,
                    usage_by_model: Default::default(),
                    cost_usd_micros: Some(0),
                    cost_at_least_usd_micros: 0,
                    ..result
                },
            },
            other => other,
        })
    }
}

/// The data of the event that ends the copied part of a journal.
#[derive(Clone, Debug)]
pub struct CopyEnd {
    /// The source of the copy.
    pub forked_from: ForkedFrom,
    /// See [`JournalCopier::context_tokens`].
    pub context_tokens: u64,
}
