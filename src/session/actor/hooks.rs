//! Selects the hooks that run on the events of a session. Hooks around tool calls and inputs run elsewhere.

use crate::actor::Actor;
use crate::actor::effects::hooks::SessionHookEvent;
use types::compaction::{CompactStage, CompactTrigger};
use types::event::Event;
use types::hook::HookEvent;
use types::session::Subtype;

/// How often in a row a hook on `stop` can make a session continue.
const MAX_CONTINUATIONS: u32 = 5;

impl Actor {
    /// Runs the hooks of a committed event. The session does not wait for them.
    pub(super) fn run_hooks_of(&mut self, event: &Event) {
        let is_subagent = self.engine.spec().parent.is_some();
        let (hook, message, source) = match event {
            Event::TurnCompleted { result } => {
                self.effects.forget_hook_answers();
                if result.subtype != Subtype::Success {
                    return;
                }
                let hook = if is_subagent { HookEvent::SubagentStop } else { HookEvent::Stop };
                let agent = self.engine.spec().agent.as_ref().map(|agent| agent.name.clone());
                (hook, Some(result.text.clone()), agent.filter(|_| is_subagent))
            }
            Event::PermissionRequested { request, .. } => {
                let message = format!("{}: {}", request.tool, request.summary);
                (HookEvent::Notification, Some(message), Some("permission_prompt".into()))
            }
            Event::QuestionRequested { question } => {
                (HookEvent::Notification, Some(question.text.clone()), Some("elicitation_dialog".into()))
            }
            Event::CompactStarted { stage: CompactStage::Autocompact, trigger, .. } => {
                let is_manual = *trigger == CompactTrigger::Manual;
                (HookEvent::PreCompact, None, Some(if is_manual { "manual" } else { "auto" }.into()))
            }
            Event::CompactCompleted { stage: CompactStage::Autocompact, error: None, .. } => {
                (HookEvent::SessionStart, None, Some("compact".into()))
            }
            _ => return,
        };
        if self.state.parking.is_some() || self.engine.is_ended() {
            return;
        }
        let rounds = self.state.stop_hook_rounds;
        self.effects.run_session_hooks(SessionHookEvent {
            event: hook,
            session_id: self.id,
            place: self.hook_place(),
            mode: self.engine.mode().name(),
            message,
            source,
            is_continued: rounds > 0,
            may_continue: hook == HookEvent::Stop && rounds < MAX_CONTINUATIONS,
        });
    }
}
