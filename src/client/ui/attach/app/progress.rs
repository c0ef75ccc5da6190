//! Progress of the turn: its phase, times, tokens and money. Pure.

use types::event::{Envelope, Event};
use types::ids::Seq;
use types::reason::Phase;
use types::session::SessionView;
use types::time::Timestamp;

/// Approximate characters of a token. The provider reports the number of tokens only at the end.
const CHARS_PER_TOKEN: u64 = 4;

/// The current activity of the turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Activity {
    /// The daemon prepares the request.
    #[default]
    Preparing,
    /// The request was sent, and no answer has arrived yet.
    Waiting,
    Thinking,
    Writing,
    /// Tools run or wait.
    Tools,
    /// The conversation is being summarised.
    Compacting,
    /// Another attempt follows after a failure.
    Retrying,
    Stopping,
}

/// The progress of the turn, and the sums of the session.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) doing: Activity,
    /// Start time of the current phase.
    pub(crate) since: Option<Timestamp>,
    /// Tokens that the model wrote in this turn.
    tokens: u64,
    /// Characters of the answer that is being written.
    chars: u64,
    /// Cost of the session in micro-dollars, as far as prices are known.
    pub(crate) usd_micros: Option<u64>,
    /// Tokens of the context, and the context window if it is known.
    pub(crate) context: Option<(u64, Option<u64>)>,
    /// Seq of the newest event whose cost is already contained in the session's own sum.
    pub(crate) known_seq: Seq,
    /// Whether the context must be requested again.
    pub(crate) is_context_stale: bool,
}

impl Progress {
    pub(super) fn new(session: &SessionView) -> Self {
        Self {
            usd_micros: session
                .summary
                .cost_usd_micros
                .or(Some(session.summary.cost_at_least_usd_micros).filter(|it| *it > 0)),
            known_seq: session.last_seq,
            is_context_stale: true,
            ..Self::default()
        }
    }

    /// Approximate tokens of the turn's answers so far.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens + self.chars / CHARS_PER_TOKEN
    }

    fn begin(&mut self, doing: Activity, time: Timestamp) {
        if self.doing != doing || self.since.is_none() {
            (self.doing, self.since) = (doing, Some(time));
        }
    }

    pub(super) fn on_event(&mut self, envelope: &Envelope) {
        let time = envelope.at_ms;
        match &envelope.event {
            Event::TurnStarted { .. } => {
                (self.tokens, self.chars, self.since) = (0, 0, None);
                self.begin(Activity::Preparing, time);
            }
            Event::TurnPhase { phase, .. } => match phase {
                Phase::ModelCall => self.begin(Activity::Waiting, time),
                Phase::ToolExecution => self.begin(Activity::Tools, time),
                Phase::Input | Phase::CompactCheck | Phase::Context | Phase::Normalize | Phase::Result => {}
            },
            Event::MessageThinkingDelta { text, .. } => {
                self.chars += text.len() as u64;
                self.begin(Activity::Thinking, time);
            }
            Event::MessageTextDelta { text, .. } | Event::MessageToolInputDelta { json: text, .. } => {
                self.chars += text.len() as u64;
                self.begin(Activity::Writing, time);
            }
            Event::MessageCompleted { usage: Some(usage), cost_usd_micros, .. } => {
                self.chars = 0;
                self.tokens += usage.output_tokens;
                self.add_cost(envelope.seq, *cost_usd_micros);
                self.is_context_stale = true;
            }
            Event::UsageBooked { cost_usd_micros, .. } => self.add_cost(envelope.seq, *cost_usd_micros),
            Event::Retry { .. } => self.begin(Activity::Retrying, time),
            Event::CompactStarted { messages: Some(_), .. } => self.begin(Activity::Compacting, time),
            Event::CompactCompleted { .. } => self.is_context_stale = true,
            Event::TurnAborting { .. } => self.begin(Activity::Stopping, time),
            Event::TurnCompleted { .. } | Event::SessionRewound(_) | Event::SessionCleared {} => {
                (self.since, self.chars) = (None, 0);
                self.is_context_stale = true;
            }
            _ => {}
        }
    }

    fn add_cost(&mut self, seq: Seq, cost: Option<u64>) {
        if let Some(cost) = cost.filter(|_| seq > self.known_seq) {
            *self.usd_micros.get_or_insert(0) += cost;
        }
    }
}
