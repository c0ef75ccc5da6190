//! The output limit: the requested limit, and the handling of an answer that was cut at it. The engine first
//! requests the answer again with the model's highest limit. An answer that is cut there continues in the next
//! message, a few times. Then the turn ends with an error.

use crate::decide::plan::PlanBuilder;
use crate::request::model_texts;
use crate::settings::DEFAULT_OUTPUT_TOKENS;
use types::event::{Event, TombstoneReason};
use types::ids::ItemId;
use types::message::Block;
use types::model::ReplyBlock;
use types::session::{ItemKind, Subtype, TurnError};

/// How often in a row the model is asked to continue.
const MAX_CONTINUATIONS: u32 = 3;

/// How an answer was cut at the output limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TruncatedAnswer {
    /// Whether the last call was incomplete and is removed.
    pub lost_call: bool,
}

/// Removes a call that was cut off: its arguments are invalid JSON, or empty. A call that really has no
/// arguments, cut exactly after it, is requested once more.
pub(crate) fn drop_cut_call(content: &mut Vec<ReplyBlock>) -> TruncatedAnswer {
    let is_cut = match content.last() {
        Some(ReplyBlock::ToolCall { input: Err(_), .. }) => true,
        Some(ReplyBlock::ToolCall { input: Ok(input), .. }) => {
            input.as_object().is_some_and(serde_json::Map::is_empty)
        }
        _ => false,
    };
    if is_cut {
        content.pop();
    }
    TruncatedAnswer { lost_call: is_cut }
}

impl PlanBuilder<'_> {
    /// Token limit of the next answer. With `None` the adapter requests the model's known maximum. The
    /// limit never exceeds the remaining budgets, because budgets are checked only between answers and
    /// one answer can be very long.
    pub fn output_limit(&self) -> Option<u32> {
        let turn = self.state.turn.as_ref()?;
        let most = self.engine.settings.known.capabilities(&turn.settings.model).max_output_tokens;
        let wanted = self.engine.output_tokens();
        let usual = match most {
            most if turn.model_call.output_limit_raised => most,
            Some(most) => Some(most.min(wanted)),
            // Some providers return an error for more than the model's maximum, so only a configured value is
            // sent.
            None => Some(wanted).filter(|wanted| *wanted < DEFAULT_OUTPUT_TOKENS),
        };
        let left = self.output_tokens_left().map(|left| u32::try_from(left.max(1)).unwrap_or(u32::MAX));
        [usual, turn.model_call.reduced_output_limit, left].into_iter().flatten().min()
    }

    /// Whether the answer can be requested again with a higher limit than before.
    pub fn can_raise_limit(&self) -> bool {
        let Some(turn) = &self.state.turn else { return false };
        let most = self.engine.settings.known.capabilities(&turn.settings.model).max_output_tokens;
        let usual = self.engine.output_tokens();
        let has_budget = self.output_tokens_left().is_none_or(|left| left > u64::from(usual));
        turn.model_call.reduced_output_limit.is_none()
            && !turn.model_call.output_limit_raised
            && most > Some(usual)
            && has_budget
    }

    /// Requests the answer `item_id`, closed as superseded, again with the highest limit.
    pub fn request_longer_answer(&mut self, item_id: ItemId) {
        self.push_item(item_id, Event::MessageTombstone { reason: TombstoneReason::OutputLimit });
        let most = self.output_limit().map_or_else(String::new, |most| format!(" of {most} tokens"));
        let text = format!("the answer reached its output limit; asked again with the model's highest{most}");
        self.push_turn(Event::Notice { kind: "output_limit".into(), text });
        self.deliver_steered();
        self.call_model();
    }

    /// Keeps the partial answer and asks the model for the rest of it.
    pub fn request_continuation(&mut self, cut: TruncatedAnswer) {
        let Some(turn) = &self.state.turn else { return };
        if turn.model_call.continuations >= MAX_CONTINUATIONS {
            let message = match MAX_CONTINUATIONS {
                0 => "the answer reached the model's output limit".to_string(),
                times => {
                    format!("the answer reached the model's output limit, also after {times} continuations")
                }
            };
            self.finish_turn(Subtype::MaxOutputTokens, vec![TurnError::new("max_output_tokens", message)]);
            return;
        }
        let text = if cut.lost_call { model_texts::GO_ON_CALL } else { model_texts::GO_ON };
        // This notice is a message of the daemon for the model, not a message of the user.
        self.push_request_message(ItemKind::Notice, text.into(), vec![Block::Text { text: text.into() }]);
        self.call_model();
    }
}

#[cfg(test)]
mod tests {
    use crate::decide::output_limit::*;
    use serde_json::json;

    #[test]
    fn only_incomplete_last_call_of_truncated_reply_is_dropped() {
        let call = |input: Result<serde_json::Value, (String, String)>| ReplyBlock::ToolCall {
            provider_id: "p".into(),
            tool: "Bash".into(),
            input,
        };
        let whole = || call(Ok(json!({"command": "ls"})));
        let half = || call(Err(("{\"command\": \"rm -rf".into(), "cut".into())));
        let bare = || call(Ok(json!({})));
        let text = || ReplyBlock::Text("so".into());
        let check = |content: Vec<ReplyBlock>, left: usize| {
            let (mut blocks, before) = (content.clone(), content.len());
            assert_eq!(drop_cut_call(&mut blocks).lost_call, left < before, "{content:?}");
            assert_eq!(blocks, content[..left], "{content:?}");
        };
        check(vec![], 0);
        check(vec![text()], 1);
        check(vec![whole()], 1);
        check(vec![whole(), half()], 1);
        check(vec![text(), bare()], 1);
        check(vec![half(), whole()], 2);
        check(vec![half(), text()], 2);
    }
}
