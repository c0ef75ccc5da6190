//! Prices of models.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::{ServiceTier, Usage};

/// Prices in US dollars per million tokens, as vendors publish them.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Price {
    /// Input that is neither read from nor written to a cache.
    #[serde(deserialize_with = "dollars_from_number")]
    #[schemars(with = "f64")]
    pub input: f64,
    /// Output.
    #[serde(deserialize_with = "dollars_from_number")]
    #[schemars(with = "f64")]
    pub output: f64,
    /// Input read from a cache.
    #[serde(deserialize_with = "dollars_from_number")]
    #[schemars(with = "f64")]
    pub cache_read: f64,
    /// Input written to a cache.
    #[serde(deserialize_with = "dollars_from_number")]
    #[schemars(with = "f64")]
    pub cache_write: f64,
    /// Input written to a cache for an hour, if it has a different price.
    #[serde(deserialize_with = "optional_dollars")]
    #[schemars(with = "Option<f64>")]
    pub cache_write_1h: Option<f64>,
    /// Price of a thousand web searches, in US dollars.
    #[serde(deserialize_with = "optional_dollars")]
    #[schemars(with = "Option<f64>")]
    pub web_search: Option<f64>,
    /// Factors on the prices of tokens in other service tiers.
    #[serde(skip_serializing_if = "TierFactors::is_empty")]
    pub tiers: TierFactors,
}

/// Factors on the prices of tokens, by service tier. The standard tier has the factor 1.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TierFactors {
    /// Factor of `priority`; without it, the cost of such a call is unknown.
    #[serde(deserialize_with = "optional_dollars")]
    #[schemars(with = "Option<f64>")]
    pub priority: Option<f64>,
    /// Factor of `flex`; without it, the standard price is an upper limit.
    #[serde(deserialize_with = "optional_dollars")]
    #[schemars(with = "Option<f64>")]
    pub flex: Option<f64>,
    /// Factor of `batch`; without it, the standard price is an upper limit.
    #[serde(deserialize_with = "optional_dollars")]
    #[schemars(with = "Option<f64>")]
    pub batch: Option<f64>,
    /// Factor of `scale`; without it, the cost of such a call is unknown.
    #[serde(deserialize_with = "optional_dollars")]
    #[schemars(with = "Option<f64>")]
    pub scale: Option<f64>,
}

impl TierFactors {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The factor of a tier; `None` if it is unknown and may be above 1.
    fn factor(&self, tier: ServiceTier) -> Option<f64> {
        match tier {
            ServiceTier::Standard => Some(1.0),
            ServiceTier::Priority => self.priority,
            ServiceTier::Scale => self.scale,
            // Vendors offer these tiers at a discount.
            ServiceTier::Flex => Some(self.flex.unwrap_or(1.0)),
            ServiceTier::Batch => Some(self.batch.unwrap_or(1.0)),
        }
    }
}

/// Upper limit of a price, so that sums stay finite.
const MAX_PRICE_DOLLARS: f64 = 1e6;

fn dollars_from_number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let price = f64::deserialize(from)?;
    if (0.0..=MAX_PRICE_DOLLARS).contains(&price) {
        return Ok(price);
    }
    Err(D::Error::custom(format_args!(
        "expected a price from 0 to {MAX_PRICE_DOLLARS} US dollars, got {price}"
    )))
}

fn optional_dollars<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    #[derive(Deserialize)]
    struct Dollars(#[serde(deserialize_with = "dollars_from_number")] f64);
    Ok(Option::<Dollars>::deserialize(from)?.map(|Dollars(price)| price))
}

impl Price {
    /// Cost of `usage` in millionths of a dollar, rounded up. `None` if it contains searches without a known
    /// price, or its service tier has no known price.
    #[must_use]
    pub fn cost_usd_micros(&self, usage: &Usage) -> Option<u64> {
        let searches = match (usage.web_search_requests, self.web_search) {
            (0, _) => 0.0,
            (count, Some(price)) => count as f64 * price * 1e3,
            (_, None) => return None,
        };
        let hour = usage.cache_write_1h_tokens.min(usage.cache_write_tokens);
        let minutes = usage.cache_write_tokens - hour;
        let factor = usage.service_tier.map_or(Some(1.0), |tier| self.tiers.factor(tier))?;
        // Dollars per million tokens are micro-dollars per token.
        let tokens = usage.input_tokens as f64 * self.input
            + usage.output_tokens as f64 * self.output
            + usage.cache_read_tokens as f64 * self.cache_read
            + minutes as f64 * self.cache_write
            + hour as f64 * self.cache_write_1h.unwrap_or(self.cache_write);
        let micros = tokens * factor + searches;
        Some(micros.max(0.0).ceil() as u64)
    }
}

/// Limits and price of a model at the time of a call. It is stored with the call, so later changes do not
/// affect old calls.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelSnapshot {
    /// Tokens that fit in a request and its answer.
    pub context_window: Option<u32>,
    /// Tokens of the longest answer.
    pub max_output_tokens: Option<u32>,
    /// Price of the model.
    pub price: Option<Price>,
}

impl ModelSnapshot {
    /// Cost of `usage` in millionths of a dollar; `None` if unknown.
    #[must_use]
    pub fn cost_usd_micros(&self, usage: &Usage) -> Option<u64> {
        self.price?.cost_usd_micros(usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_tier_changes_price() {
        let price: Price =
            toml::from_str("input = 1.0\nweb_search = 10.0\ntiers = { priority = 2.0, batch = 0.5 }")
                .expect("a price");
        let cost = |service_tier| {
            let usage = Usage { input_tokens: 100, web_search_requests: 1, service_tier, ..Usage::default() };
            price.cost_usd_micros(&usage)
        };
        assert_eq!(cost(None), Some(10_100));
        assert_eq!(cost(Some(ServiceTier::Standard)), Some(10_100));
        assert_eq!(cost(Some(ServiceTier::Priority)), Some(10_200));
        assert_eq!(cost(Some(ServiceTier::Batch)), Some(10_050));
        // Without a factor: an upper limit for a cheaper tier, unknown for a dearer one.
        assert_eq!(cost(Some(ServiceTier::Flex)), Some(10_100));
        assert_eq!(cost(Some(ServiceTier::Scale)), None);
        let old = serde_json::to_value(Price { input: 1.0, ..Price::default() }).expect("JSON");
        assert_eq!(old.get("tiers"), None);
        let mut sum = Usage::default();
        sum.add(&Usage { service_tier: Some(ServiceTier::Flex), input_tokens: 1, ..Usage::default() });
        assert_eq!(sum, Usage { input_tokens: 1, ..Usage::default() });
    }

    #[test]
    fn invalid_price_numbers_are_refused() {
        for text in ["nan", "-1.0", "1e308", "inf"] {
            for field in ["input", "web_search"] {
                let price = toml::from_str::<Price>(&format!("{field} = {text}"));
                assert!(price.is_err_and(|error| error.to_string().contains("from 0 to")), "{field} {text}");
            }
        }
        let price: Price = toml::from_str("output = 15.0\nweb_search = 10.0").expect("a price");
        assert_eq!((price.output, price.web_search, price.cache_write_1h), (15.0, Some(10.0), None));
    }

    #[test]
    fn price_per_million_gives_micros_per_token() {
        let price = Price { input: 3.0, output: 15.0, ..Price::default() };
        let usage = Usage { input_tokens: 1_000, output_tokens: 10, ..Usage::default() };
        assert_eq!(price.cost_usd_micros(&usage), Some(3_150));
    }

    #[test]
    fn cache_writes_and_searches_have_own_prices() {
        let price = Price { cache_write: 2.0, ..Price::default() };
        let usage = Usage { cache_write_tokens: 100, cache_write_1h_tokens: 40, ..Usage::default() };
        assert_eq!(price.cost_usd_micros(&usage), Some(200));
        let price = Price { cache_write_1h: Some(4.0), web_search: Some(10.0), ..price };
        assert_eq!(price.cost_usd_micros(&usage), Some(60 * 2 + 40 * 4));
        let searched = Usage { web_search_requests: 3, ..Usage::default() };
        assert_eq!(price.cost_usd_micros(&searched), Some(30_000));
        let unknown = Price { web_search: None, ..price };
        assert_eq!(unknown.cost_usd_micros(&searched), None, "unknown is not nothing");
    }
}
