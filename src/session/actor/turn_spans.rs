//! The `tracing` spans of a turn: `turn` contains `phase`, and `phase` contains `model_call` or `tool_call`. Log
//! lines of the work carry these spans. At the log level `debug`, the end of each span is logged with its duration.

use tracing::{Span, info_span};

use types::event::{Envelope, Event};

/// The open spans of a session. All are empty while no turn runs.
pub(super) struct TurnSpans {
    turn: Span,
    phase: Span,
}

impl Default for TurnSpans {
    fn default() -> Self {
        Self { turn: Span::none(), phase: Span::none() }
    }
}

impl TurnSpans {
    /// Opens and closes spans for a committed event. After a restart the turn's span begins with its next phase.
    pub fn on_event(&mut self, envelope: &Envelope) {
        match &envelope.event {
            Event::TurnStarted { .. } => self.begin_turn(envelope),
            Event::TurnPhase { phase, .. } => {
                if self.turn.is_none() {
                    self.begin_turn(envelope);
                }
                let (name, step) = (phase.name(), envelope.step.unwrap_or_default());
                self.phase = info_span!(parent: &self.turn, "phase", phase = name, step);
            }
            Event::TurnCompleted { .. } | Event::TurnParked {} => *self = Self::default(),
            _ => {}
        }
    }

    /// The parent of the spans of effects that start now.
    pub fn current(&self) -> &Span {
        &self.phase
    }

    fn begin_turn(&mut self, envelope: &Envelope) {
        let turn = envelope.turn_id.map(tracing::field::display);
        self.turn = info_span!(parent: None, "turn", session = %envelope.session_id, turn);
        self.phase = Span::none();
    }
}
