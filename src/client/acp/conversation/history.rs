//! The stored part of a session. It goes through the same mapper as live events, on the same subscription, so that
//! there is no gap and no repetition between both.

use std::collections::{HashSet, VecDeque};

use super::{Conversation, ShowHistory, settings};
use crate::acp::mapper::Mapper;
use crate::acp::schema::{SessionUpdate, Version};
use crate::acp::wire::{AcpError, Responder};
use api::params::SessionParams;
use api::{Code, methods};
use types::event::{Envelope, Event};
use types::ids::{ItemId, Seq};

/// Updates that a replay keeps back. Items that were removed later can be left out of them.
const MAX_KEPT_UPDATES: usize = 20_000;

/// A load or resume whose stored events have not all arrived.
pub(super) struct Replay {
    /// Seq of the last stored event.
    pub(super) until: Seq,
    responder: Responder,
    show: ShowHistory,
    version: Version,
    updates: VecDeque<(Option<ItemId>, SessionUpdate)>,
    /// Updates that are over the limit and are sent before the end.
    is_full: bool,
}

impl Replay {
    pub(super) fn add(&mut self, envelope: &Envelope, updates: Vec<SessionUpdate>) {
        match &envelope.event {
            Event::SessionRewound(rewound) => {
                let removed: HashSet<ItemId> = rewound.removed_items.iter().copied().collect();
                self.updates.retain(|(item, _)| item.is_none_or(|item| !removed.contains(&item)));
                // Without the removed entries there is nothing to explain.
                if !self.is_full {
                    return;
                }
            }
            Event::MessageTombstone { .. } if !self.is_full => {
                self.updates.retain(|(item, _)| item.is_none() || *item != envelope.item_id);
                return;
            }
            _ => {}
        }
        // In version 2, the state and notices are no part of a history.
        let is_history = |update: &SessionUpdate| match update {
            SessionUpdate::StateUpdate(_) => false,
            SessionUpdate::Notice { .. } => self.version == Version::V1,
            _ => true,
        };
        let updates = updates.into_iter().filter(is_history);
        if self.show == ShowHistory::Yes {
            self.updates.extend(updates.map(|update| (envelope.item_id, update)));
        }
    }
}

impl Conversation {
    /// Starts a load or a resume: the session is followed from its beginning.
    pub(super) async fn load(&mut self, responder: Responder, show: ShowHistory) {
        if let Some(replay) = self.replay.take() {
            let reason = "another load of this session began";
            replay.responder.refuse(AcpError::new(Code::Cancelled, reason)).await;
        }
        for (_, request) in self.requests.drain() {
            request.withdraw(&self.shared.output).await;
        }
        let params = SessionParams { session_id: self.session_id };
        let view = match self.shared.daemon.call::<methods::session::Get>(&params).await {
            Ok(reply) => reply.session,
            Err(error) => return responder.refuse(error).await,
        };
        // A load in the course of a conversation shows what the conversation has handled; the rest stays live.
        let until = if self.follower.is_some() { self.last_seq } else { view.last_seq };
        if let Err(error) = self.follow(0).await {
            return responder.refuse(error).await;
        }
        self.held = None;
        self.steered.clear();
        self.mapper = Mapper::new(self.shared.features, self.mapper.choices().clone(), view.cwd.clone());
        self.mapper.settings = settings(&view);
        let (updates, version) = (VecDeque::new(), self.shared.features.version);
        self.replay = Some(Replay { until, responder, show, version, updates, is_full: false });
        if until == 0 {
            self.finish_load().await;
        }
    }

    /// Sends kept updates that are over the limit.
    pub(super) async fn relieve_replay(&mut self) {
        while let Some(replay) = self.replay.as_mut().filter(|replay| replay.updates.len() > MAX_KEPT_UPDATES)
        {
            replay.is_full = true;
            if let Some((_, update)) = replay.updates.pop_front() {
                self.send(&update).await;
            }
        }
    }

    /// Sends the history, then the reply, then the requests that are still pending.
    pub(super) async fn finish_load(&mut self) {
        let Some(replay) = self.replay.take() else { return };
        for (_, update) in &replay.updates {
            self.send(update).await;
        }
        if replay.version == Version::V2 {
            if replay.show == ShowHistory::Yes {
                self.send(&SessionUpdate::ReplayComplete).await;
            }
            let state = self.mapper.state();
            self.send(&state).await;
        }
        let settings = self.mapper.choices().settings(&self.mapper.settings);
        replay.responder.reply(Ok(settings.written(replay.version))).await;
        if self.closing.is_some() {
            return self.start_close();
        }
        self.after_opening().await;
        self.send_pending_requests();
    }
}
