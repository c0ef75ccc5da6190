//! Capabilities and prices of models: first from the configuration, then from the built-in table
//! (`known.toml`), then optimistic defaults.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::settings::Api;
use crate::settings::{ModelFacts, ModelSettings, ProviderKind};
use types::sampling::Sampling;

impl ModelFacts {
    /// Fills absent values from `other`.
    fn with_fallback(&self, other: &ModelFacts) -> ModelFacts {
        ModelFacts {
            context_window: self.context_window.or(other.context_window),
            max_output_tokens: self.max_output_tokens.or(other.max_output_tokens),
            tools: self.tools.or(other.tools),
            streaming: self.streaming.or(other.streaming),
            system_role: self.system_role.or(other.system_role),
            thinking: self.thinking.or(other.thinking),
            adaptive_thinking: self.adaptive_thinking.or(other.adaptive_thinking),
            interleaved_thinking: self.interleaved_thinking.or(other.interleaved_thinking),
            min_effort: self.min_effort.clone().or_else(|| other.min_effort.clone()),
            sampling: self.sampling.or(other.sampling),
            temperature: self.temperature.or(other.temperature),
            top_p: self.top_p.or(other.top_p),
            replay_reasoning: self.replay_reasoning.or(other.replay_reasoning),
            vision: self.vision.or(other.vision),
            documents: self.documents.or(other.documents),
            price: self.price.or(other.price),
        }
    }

    /// Fills absent values with the defaults.
    fn with_defaults(&self) -> ModelSettings {
        let default = ModelSettings::default();
        ModelSettings {
            context_window: self.context_window,
            max_output_tokens: self.max_output_tokens,
            tools: self.tools.unwrap_or(default.tools),
            streaming: self.streaming.unwrap_or(default.streaming),
            system_role: self.system_role.unwrap_or(default.system_role),
            price: self.price,
            thinking: self.thinking.unwrap_or(default.thinking),
            adaptive_thinking: self.adaptive_thinking.unwrap_or(default.adaptive_thinking),
            interleaved_thinking: self.interleaved_thinking.unwrap_or(default.interleaved_thinking),
            min_effort: self.min_effort.clone(),
            sampling: self.sampling.unwrap_or(default.sampling),
            usual: Sampling { temperature: self.temperature, top_p: self.top_p },
            replay_reasoning: self.replay_reasoning.unwrap_or_default(),
            vision: self.vision.or(default.vision),
            documents: self.documents.or(default.documents),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VendorModels {
    /// Address of the prices.
    source: String,
    /// Dates of the prices by model.
    as_of: BTreeMap<String, String>,
    models: BTreeMap<String, ModelFacts>,
}

/// By the name of the vendor.
type Table = BTreeMap<String, VendorModels>;

/// The built-in table. A test checks that it parses; otherwise it would be empty.
static TABLE: LazyLock<Option<Table>> = LazyLock::new(|| toml::from_str(include_str!("known.toml")).ok());

/// The properties of a model from the configuration (`configured`) and the table. Prices of the table apply
/// only `at_vendor`, because resellers have their own prices.
pub(crate) fn look_up(
    kind: Option<ProviderKind>,
    at_vendor: bool,
    model: &str,
    configured: Option<&ModelFacts>,
) -> (ModelSettings, bool) {
    let found = kind.and_then(vendor).and_then(|vendor| find_entry(&vendor.models, model)).map(|found| {
        let price = found.price.filter(|_| at_vendor);
        ModelFacts { price, ..found.clone() }
    });
    let is_known = found.is_some() || configured.is_some();
    let empty = ModelFacts::default();
    let facts = configured.unwrap_or(&empty).with_fallback(found.as_ref().unwrap_or(&empty));
    (facts.with_defaults(), is_known)
}

fn vendor(kind: ProviderKind) -> Option<&'static VendorModels> {
    TABLE.as_ref()?.get(Api::of_kind(kind)?.row().vendor.name)
}

/// The names of all models of a vendor in the table.
pub(crate) fn vendor_models(kind: ProviderKind) -> impl Iterator<Item = &'static str> {
    vendor(kind).into_iter().flat_map(|vendor| vendor.models.keys().map(String::as_str))
}

/// Date and source of the price of a model in the table.
pub(crate) fn price_source(kind: ProviderKind, model: &str) -> Option<(&'static str, &'static str)> {
    let vendor = vendor(kind)?;
    Some((find_entry(&vendor.as_of, model)?, &vendor.source))
}

/// The entry of a model, whose name may end in a date or `-latest`.
fn find_entry<'t, T>(models: &'t BTreeMap<String, T>, model: &str) -> Option<&'t T> {
    models.get(model).or_else(|| {
        let longest = models.iter().filter(|(name, _)| is_version(model, name));
        longest.max_by_key(|(name, _)| name.len()).map(|(_, facts)| facts)
    })
}

/// Whether `model` is `name` with a date (`-20250929`, `-2025-08-07`) or `-latest`.
fn is_version(model: &str, name: &str) -> bool {
    let Some(suffix) = model.strip_prefix(name).and_then(|rest| rest.strip_prefix('-')) else { return false };
    let digits = suffix.bytes().filter(u8::is_ascii_digit).count();
    let is_date = digits == 8 && suffix.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    is_date || suffix == "latest"
}

#[cfg(test)]
mod tests {
    use crate::catalog::builtin::*;
    use types::usage::Price;
    use types::vendor::VENDORS;

    #[test]
    fn catalog_entries_are_readable_and_prices_are_dated() {
        let table: Table = toml::from_str(include_str!("known.toml")).expect("the table");
        assert!(table.keys().eq(VENDORS.iter().map(|vendor| vendor.name)), "{:?}", table.keys());
        for vendor in table.values() {
            for (name, facts) in &vendor.models {
                assert!(facts.context_window > facts.max_output_tokens, "{name}");
                let price = facts.price.unwrap_or_else(|| panic!("{name} has no price"));
                assert!(
                    price.input > 0.0 && price.output > price.input && price.cache_read < price.input,
                    "{name}"
                );
                let date = vendor.as_of.get(name).unwrap_or_else(|| panic!("{name}: when was its price so?"));
                assert!(date.len() >= 7 && date.starts_with("202"), "{name}: {date}");
            }
        }
    }

    #[test]
    fn dated_model_names_match_their_base_model_only() {
        let input =
            |model| look_up(Some(ProviderKind::Anthropic), true, model, None).0.price.map(|p| p.input);
        assert_eq!(input("claude-sonnet-4-5-20250929"), Some(3.0));
        assert_eq!(input("claude-sonnet-4-5"), Some(3.0));
        assert_eq!(input("claude-haiku-4-5-latest"), Some(1.0));
        // `claude-opus-5-5` is not a version of `claude-opus-5`, which is more expensive.
        assert_eq!(input("claude-opus-5-5"), Some(4.0));
        assert_eq!(input("claude-opus-5-9"), None);
        assert_eq!(input("claude-opus-5-20260724"), Some(5.0));
        assert_eq!(
            look_up(Some(ProviderKind::OpenAiChat), true, "gpt-5-2025-08-07", None).0.price.map(|p| p.input),
            Some(1.25)
        );
        assert_eq!(
            look_up(Some(ProviderKind::OpenAiChat), true, "gpt-5-pro", None),
            (ModelSettings::default(), false)
        );
    }

    #[test]
    fn catalog_marks_sampling_support_and_omits_retired_models() {
        let facts = |kind, model| look_up(Some(kind), true, model, None);
        for (kind, model, takes_sampling) in [
            (ProviderKind::Anthropic, "claude-opus-4-6", true),
            (ProviderKind::Anthropic, "claude-haiku-4-5", true),
            (ProviderKind::Anthropic, "claude-opus-4-7", false),
            (ProviderKind::Anthropic, "claude-sonnet-5-5", false),
            (ProviderKind::Anthropic, "claude-fable-5-2", false),
            (ProviderKind::OpenAiResponses, "gpt-6.2-sol", false),
            (ProviderKind::OpenAiResponses, "gpt-4o", true),
        ] {
            let (settings, is_known) = facts(kind, model);
            assert_eq!((settings.sampling, is_known), (takes_sampling, true), "{model}");
        }
        for (kind, model) in [
            (ProviderKind::Anthropic, "claude-3-5-haiku-20241022"),
            (ProviderKind::Anthropic, "claude-opus-4-20250514"),
            (ProviderKind::OpenAiResponses, "o4-mini"),
        ] {
            assert!(!facts(kind, model).1, "{model} is retired");
        }
    }

    #[test]
    fn configuration_overrides_catalog_and_prices_need_vendor() {
        let (elsewhere, is_known) = look_up(Some(ProviderKind::OpenAiChat), false, "gpt-4o", None);
        assert_eq!((elsewhere.price, elsewhere.context_window, is_known), (None, Some(128_000), true));
        let configured = ModelFacts {
            max_output_tokens: Some(100),
            vision: Some(false),
            price: Some(Price { input: 9.0, ..Price::default() }),
            ..ModelFacts::default()
        };
        let (mine, _) = look_up(Some(ProviderKind::OpenAiChat), false, "gpt-4o", Some(&configured));
        assert_eq!(mine.price.map(|price| price.input), Some(9.0));
        assert_eq!(
            (mine.max_output_tokens, mine.vision, mine.context_window),
            (Some(100), Some(false), Some(128_000))
        );
    }
}
