//! Thinking as OpenAI's reasoning effort instead of a token budget.

use crate::model::settings::ModelSettings;
use crate::types::thinking::Thinking;

/// Largest budget in tokens that maps to low effort, and to medium effort.
const LITTLE: u32 = 4_096;
const MEDIUM: u32 = 16_384;

/// The effort to send; `None` leaves it to the model.
pub(in crate::model) fn effort(thinking: Option<Thinking>, settings: &ModelSettings) -> Option<&str> {
    if !settings.thinking {
        return None;
    }
    match thinking? {
        Thinking::Off => settings.min_effort.as_deref(),
        Thinking::Auto => None,
        named => Some(word(named)),
    }
}

/// The effort for thinking that is on, as a word that all vendors accept.
pub(in crate::model) const fn word(thinking: Thinking) -> &'static str {
    match thinking {
        Thinking::Off | Thinking::Low | Thinking::Tokens(..=LITTLE) => "low",
        Thinking::Auto | Thinking::Medium | Thinking::Tokens(..=MEDIUM) => "medium",
        Thinking::High | Thinking::Tokens(_) => "high",
    }
}

#[cfg(test)]
mod tests {
    use crate::model::catalog::effort::*;

    #[test]
    fn thinking_budget_maps_to_effort_for_thinking_models() {
        let thinks = ModelSettings { thinking: true, ..ModelSettings::default() };
        let least = ModelSettings { min_effort: Some("minimal".into()), ..thinks.clone() };
        for (thinking, expected) in [
            (None, None),
            (Some(Thinking::Auto), None),
            (Some(Thinking::Off), None),
            (Some(Thinking::Low), Some("low")),
            (Some(Thinking::Medium), Some("medium")),
            (Some(Thinking::High), Some("high")),
            (Some(Thinking::Tokens(4_096)), Some("low")),
            (Some(Thinking::Tokens(4_097)), Some("medium")),
            (Some(Thinking::Tokens(60_000)), Some("high")),
        ] {
            assert_eq!(effort(thinking, &thinks), expected, "{thinking:?}");
            assert_eq!(effort(thinking, &ModelSettings::default()), None, "{thinking:?}");
        }
        assert_eq!(effort(Some(Thinking::Off), &least), Some("minimal"));
    }
}
