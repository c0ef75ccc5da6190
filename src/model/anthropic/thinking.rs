//! The thinking parameters of Anthropic Messages, and which earlier thinking is sent back.
//!
//! The rules are the vendor's (docs.anthropic.com, "Building with extended thinking" and "Adaptive thinking",
//! 2026-03): a budget is at least 1,024 tokens and less than `max_tokens`. Models that decide by themselves
//! accept `adaptive` and an effort instead. Thinking cannot begin inside a tool loop, whose first answer must
//! open with a thinking block when a budget is given.

use serde::Serialize;

use super::super::settings::ModelSettings;
use crate::catalog::capabilities::effort_word;
use crate::catalog::capabilities::is_sealed;
use types::message::{Block, Message, Role};
use types::model::ModelRequest;
use types::thinking::Thinking;

/// Output limit in tokens if none is known. The provider requires one, and all its models support this value.
const DEFAULT_MAX_TOKENS: u32 = 8192;
/// The smallest accepted budget, in tokens.
const MIN_BUDGET_TOKENS: u32 = 1_024;
/// Tokens of `max_tokens` reserved for the answer itself.
const MIN_ANSWER_TOKENS: u32 = 4_096;

/// The parameter `thinking`.
#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ThinkingParameter {
    Enabled { budget_tokens: u32 },
    Adaptive { display: &'static str },
}

/// The parameter `output_config`.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct OutputConfig {
    effort: &'static str,
}

/// The thinking part of a request.
#[derive(Debug, PartialEq)]
pub(super) struct ThinkingPlan {
    pub thinking: Option<ThinkingParameter>,
    pub output_config: Option<OutputConfig>,
    pub max_tokens: u32,
    /// Earlier thinking is sent back. This also applies if no thinking is requested: such thinking exists only
    /// because the model thinks by default.
    pub keeps: bool,
}

/// The parameter to send. It is the same for all requests of a turn, unless the token limit is below the
/// budget.
pub(super) fn plan(request: &ModelRequest, settings: &ModelSettings) -> ThinkingPlan {
    let most = settings.max_output_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
    let max_tokens = request.max_output_tokens.unwrap_or(most);
    let nothing = ThinkingPlan { thinking: None, output_config: None, max_tokens, keeps: true };
    let wanted = match request.thinking {
        None => return nothing,
        Some(Thinking::Off) => return ThinkingPlan { keeps: false, ..nothing },
        Some(_) if !settings.thinking => return nothing,
        Some(wanted) => wanted,
    };
    if settings.adaptive_thinking {
        let output_config = (wanted != Thinking::Auto).then(|| OutputConfig { effort: effort_word(wanted) });
        // Newer models omit the text of their thinking unless the request asks for it.
        return ThinkingPlan {
            thinking: Some(ThinkingParameter::Adaptive { display: "summarized" }),
            output_config,
            ..nothing
        };
    }
    if began_without_thinking(&request.messages) {
        return ThinkingPlan { keeps: false, ..nothing };
    }
    let limit = most.min(max_tokens).max(2 * MIN_BUDGET_TOKENS);
    let budget = match wanted {
        Thinking::Tokens(tokens) => tokens,
        Thinking::Off | Thinking::Low => 4_096,
        Thinking::Auto | Thinking::Medium => 12_288,
        Thinking::High => 32_768,
    };
    let budget_tokens = budget.min(limit - MIN_ANSWER_TOKENS.min(limit / 2)).max(MIN_BUDGET_TOKENS);
    ThinkingPlan {
        thinking: Some(ThinkingParameter::Enabled { budget_tokens }),
        max_tokens: max_tokens.max(2 * MIN_BUDGET_TOKENS),
        ..nothing
    }
}

/// The output limit that a request sends, in tokens.
pub(in super::super) fn output_limit(request: &ModelRequest, settings: &ModelSettings) -> u32 {
    plan(request, settings).max_tokens
}

/// Whether a request asks the model to think: some parameters are not accepted together with thinking.
pub(in super::super) fn asks_to_think(request: &ModelRequest, settings: &ModelSettings) -> bool {
    plan(request, settings).thinking.is_some()
}

/// The value of the header `anthropic-beta` for thinking between the calls of a turn. Adaptive models do so by
/// default (docs.anthropic.com, "Interleaved thinking", 2026-03).
pub(in super::super) const INTERLEAVED: &str = "interleaved-thinking-2025-05-14";

/// Whether a request sends that value.
pub(in super::super) fn sends_interleaved(request: &ModelRequest, settings: &ModelSettings) -> bool {
    settings.interleaved_thinking
        && !request.no_interleaving
        && matches!(plan(request, settings).thinking, Some(ThinkingParameter::Enabled { .. }))
}

/// Whether the block is thinking that the provider accepts back.
pub(super) fn is_own_thinking(block: &Block) -> bool {
    match block {
        // Encrypted reasoning of another provider.
        Block::Thinking { signature: Some(signature), .. } => !is_sealed(signature),
        Block::RedactedThinking { .. } => true,
        _ => false,
    }
}

/// Whether the request is inside a tool loop whose first answer contains no thinking, because another model
/// gave it or thinking was off.
fn began_without_thinking<M: AsRef<Message>>(messages: &[M]) -> bool {
    let mut rest = messages;
    let mut first = None;
    while let [before @ .., answer, results] = rest
        && results.as_ref().role == Role::User
        && results.as_ref().content.iter().any(|block| matches!(block, Block::ToolResult { .. }))
    {
        (first, rest) = (Some(answer.as_ref()), before);
    }
    first.is_some_and(|answer| !answer.content.iter().any(is_own_thinking))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use types::ids::{Mint, Seed};
    use types::message::ToolCall;

    fn request(thinking: Option<Thinking>, messages: Vec<Message>) -> ModelRequest {
        ModelRequest {
            messages: messages.into_iter().map(Arc::new).collect(),
            thinking,
            ..ModelRequest::new("anthropic/m".parse().unwrap())
        }
    }

    /// A model whose longest answer has this many tokens.
    fn thinking_model(most: u32) -> ModelSettings {
        ModelSettings { thinking: true, max_output_tokens: Some(most), ..ModelSettings::default() }
    }

    fn budget(tokens: u32) -> Option<ThinkingParameter> {
        Some(ThinkingParameter::Enabled { budget_tokens: tokens })
    }

    #[test]
    fn thinking_budget_leaves_output_tokens_for_answer() {
        for (thinking, most, limit, expected) in [
            (Thinking::Low, 64_000, None, (budget(4_096), 64_000)),
            (Thinking::Auto, 64_000, None, (budget(12_288), 64_000)),
            (Thinking::Medium, 64_000, None, (budget(12_288), 64_000)),
            (Thinking::High, 64_000, None, (budget(32_768), 64_000)),
            (Thinking::High, 32_000, None, (budget(27_904), 32_000)),
            (Thinking::High, 8_192, None, (budget(4_096), 8_192)),
            (Thinking::Tokens(1), 64_000, None, (budget(1_024), 64_000)),
            (Thinking::Tokens(90_000), 64_000, None, (budget(59_904), 64_000)),
            // A raised limit changes nothing; a lowered one changes only necessary values.
            (Thinking::Low, 32_000, Some(64_000), (budget(4_096), 64_000)),
            (Thinking::High, 32_000, Some(64_000), (budget(27_904), 64_000)),
            (Thinking::Low, 32_000, Some(10_000), (budget(4_096), 10_000)),
            (Thinking::High, 32_000, Some(10_000), (budget(5_904), 10_000)),
            (Thinking::High, 32_000, Some(100), (budget(1_024), 2_048)),
        ] {
            let model_request =
                ModelRequest { max_output_tokens: limit, ..request(Some(thinking), Vec::new()) };
            let plan = plan(&model_request, &thinking_model(most));
            assert_eq!((plan.thinking, plan.max_tokens), expected, "{thinking:?} of {most}, {limit:?}");
            assert!(plan.keeps);
        }
    }

    #[test]
    fn adaptive_thinking_models_receive_effort() {
        let settings = ModelSettings { adaptive_thinking: true, ..thinking_model(64_000) };
        let effort = |thinking| {
            let plan = plan(&request(Some(thinking), Vec::new()), &settings);
            assert_eq!(
                plan.thinking,
                Some(ThinkingParameter::Adaptive { display: "summarized" }),
                "{thinking:?}"
            );
            plan.output_config.map(|config| config.effort)
        };
        assert_eq!(effort(Thinking::Auto), None);
        assert_eq!(effort(Thinking::Low), Some("low"));
        assert_eq!(effort(Thinking::Tokens(10_000)), Some("medium"));
        assert_eq!(effort(Thinking::High), Some("high"));
    }

    #[test]
    fn thinking_is_not_requested_when_off_or_unsupported() {
        let nothing = ThinkingPlan { thinking: None, output_config: None, max_tokens: 64_000, keeps: true };
        assert_eq!(plan(&request(None, Vec::new()), &thinking_model(64_000)), nothing);
        let simple = ModelSettings { thinking: false, ..thinking_model(64_000) };
        assert_eq!(plan(&request(Some(Thinking::High), Vec::new()), &simple), nothing);
        let off = plan(&request(Some(Thinking::Off), Vec::new()), &thinking_model(64_000));
        assert_eq!(off, ThinkingPlan { keeps: false, ..nothing });
    }

    #[test]
    fn thinking_never_starts_inside_tool_loop() {
        let call_id = Mint::new(1, Seed(1)).call();
        let thought = Block::Thinking { text: "hm".into(), signature: Some("s".into()) };
        let call = Block::ToolCall(ToolCall {
            call_id,
            provider_id: "t".into(),
            tool: "Read".into(),
            input: serde_json::json!({}),
            input_error: None,
        });
        let result = Block::ToolResult {
            call_id,
            provider_id: "t".into(),
            content: "ok".into(),
            is_error: false,
            attachments: Vec::new(),
        };
        let (go, results) = (|| Message::user("go"), || Message::new(Role::User, vec![result.clone()]));
        let asks = |before: &[&Block]| {
            let thoughts = before.iter().map(|block| (*block).clone());
            Message::new(Role::Assistant, thoughts.chain([call.clone()]).collect())
        };
        let answer = || Message::new(Role::Assistant, vec![Block::Text { text: "so".into() }]);
        let sealed = Block::Thinking { text: "hm".into(), signature: Some("openai_responses:{}".into()) };
        let redacted = Block::RedactedThinking { data: "x".into() };
        for (name, messages, thinks) in [
            (
                "a loop that opened with thinking",
                vec![go(), asks(&[&thought]), results(), asks(&[]), results()],
                true,
            ),
            ("or with what is hidden", vec![go(), asks(&[&redacted]), results()], true),
            ("a loop without", vec![go(), asks(&[]), results()], false),
            (
                "thinking that came later",
                vec![go(), asks(&[]), results(), asks(&[&thought]), results()],
                false,
            ),
            ("another provider's", vec![go(), asks(&[&sealed]), results()], false),
            ("a loop that is over", vec![go(), asks(&[]), results(), answer(), go()], true),
        ] {
            let plan = plan(&request(Some(Thinking::High), messages), &thinking_model(64_000));
            assert_eq!((plan.thinking.is_some(), plan.keeps), (thinks, thinks), "{name}");
        }
    }
}
