//! Named crash points around a decision, for the crash tests. Without debug assertions these functions
//! are empty.

use base::crash::point;
use engine::{Effect, Plan};
use types::event::{Event, SettledBy};
use types::session::{ItemKind, ItemStatus};

/// After the decision, before the commit.
pub(crate) fn after_decision(plan: &Plan) {
    if !cfg!(debug_assertions) {
        return;
    }
    if has_event(plan, is_answer) {
        point("C7");
    }
    if has_event(plan, is_settled) {
        point("C10");
    }
    if has_event(plan, is_compaction) {
        point("C18.decided");
    }
    if has_event(plan, |event| matches!(event, Event::TurnResumed { .. })) {
        point("C21.decided");
    }
}

/// After the commit, before the events are applied and published and the effects run.
pub(crate) fn after_commit(plan: &Plan) {
    if !cfg!(debug_assertions) {
        return;
    }
    let asks_model = plan.effects.iter().any(|effect| matches!(effect, Effect::CallModel { .. }));
    let starts = has_event(plan, |event| matches!(event, Event::ToolStarted { .. }));
    let ends_turn = has_event(plan, |event| matches!(event, Event::TurnCompleted { .. }));
    if has_event(plan, is_taken_in) && !ends_turn {
        point("C2.committed");
    }
    if !has_event(plan, is_answer) {
        if has_event(plan, |event| matches!(event, Event::MessageTextDelta { .. })) {
            point("C5");
        }
        if has_event(plan, |event| matches!(event, Event::MessageToolInputDelta { .. })) {
            point("C6");
        }
    }
    if has_event(plan, |event| matches!(event, Event::ToolRequested { .. })) {
        point("C8");
    }
    if has_event(plan, is_settled) && !starts {
        point("C11");
    }
    if starts {
        point("C12");
    }
    if has_event(plan, |event| matches!(event, Event::ToolProgress { .. })) {
        point("C13.told");
    }
    if has_event(plan, |event| matches!(event, Event::ToolBackground { end: None, .. })) {
        point("C13.background");
    }
    if has_event(plan, |event| matches!(event, Event::ToolCompleted { .. })) && !ends_turn {
        point(if asks_model { "C17" } else { "C15" });
    }
    let completes = has_event(plan, |event| matches!(event, Event::CompactCompleted { edit: Some(_), .. }));
    if has_event(plan, is_compaction) && !completes {
        point("C18.requested");
    }
    if completes {
        point("C18.completed");
    }
    if has_event(plan, |event| matches!(event, Event::TurnAborting { .. })) {
        point("C19");
    }
    if has_event(plan, |event| matches!(event, Event::TurnResumed { .. })) {
        point("C21.committed");
    }
}

/// After the events were published, before the effects run.
pub(crate) fn after_publish(plan: &Plan) {
    if cfg!(debug_assertions) && has_event(plan, |event| matches!(event, Event::PermissionRequested { .. })) {
        point("C9");
    }
}

fn has_event(plan: &Plan, is_expected: impl Fn(&Event) -> bool) -> bool {
    plan.events.iter().any(|entry| is_expected(&entry.envelope.event))
}

/// Whether the event is a complete answer of the model.
pub(crate) fn is_answer(event: &Event) -> bool {
    matches!(event, Event::MessageCompleted { item, .. }
        if item.kind == ItemKind::AssistantMessage && item.status == ItemStatus::Completed)
}

/// Whether the event starts a stage of compaction, or completes one.
fn is_compaction(event: &Event) -> bool {
    matches!(event, Event::CompactStarted { .. } | Event::CompactCompleted { edit: Some(_), .. })
}

fn is_settled(event: &Event) -> bool {
    matches!(event, Event::PermissionResolved { by: SettledBy::Answer, .. })
}

fn is_taken_in(event: &Event) -> bool {
    matches!(event, Event::TurnStarted { .. } | Event::TurnQueued { .. } | Event::TurnSteered { .. })
}
