//! The reports of a running query.

use tokio::sync::mpsc;

use types::knowledge::{QueryStage, RawData};

/// A report of a running query. The end is the query's result.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryEvent {
    /// A stage begins.
    Stage(QueryStage),
    /// The results of the search. Sent before the first delta.
    RawData(Box<RawData>),
    /// A part of the answer.
    Delta(String),
}

/// Receiver of the reports of a query. Reports of stages never wait; deltas wait for a slow reader.
#[derive(Clone, Debug, Default)]
pub struct Progress(Option<mpsc::Sender<QueryEvent>>);

impl Progress {
    /// Reports to this channel.
    #[must_use]
    pub const fn to_channel(events: mpsc::Sender<QueryEvent>) -> Self {
        Self(Some(events))
    }

    /// Discards all reports.
    #[must_use]
    pub const fn disabled() -> Self {
        Self(None)
    }

    /// Whether the answer is streamed.
    #[must_use]
    pub const fn is_streaming(&self) -> bool {
        self.0.is_some()
    }

    /// Reports that a stage begins. The report is dropped if the channel is full.
    pub fn report_stage(&self, stage: QueryStage) {
        if let Some(events) = &self.0 {
            let _ = events.try_send(QueryEvent::Stage(stage));
        }
    }

    /// Sends an event; `false` if the receiver is gone.
    pub async fn send(&self, event: QueryEvent) -> bool {
        match &self.0 {
            Some(events) => events.send(event).await.is_ok(),
            None => true,
        }
    }
}
