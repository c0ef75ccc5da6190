//! Tokens, costs and their limits.

mod budgets;
mod price;

pub use budgets::{BudgetKind, BudgetSettings, Budgets};
pub use price::{ModelSnapshot, Price, TierFactors};

use schemars::{JsonSchema, Schema, json_schema};
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};

use super::ids::{Seq, SessionId};
use super::time::Timestamp;

/// Tokens of one or more model calls, as the provider reported them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = describe_total)]
pub struct Usage {
    /// Input tokens that were neither read from nor written to a prompt cache.
    pub input_tokens: u64,
    /// Output tokens, reasoning included.
    pub output_tokens: u64,
    /// Input tokens read from a prompt cache.
    pub cache_read_tokens: u64,
    /// Input tokens written to a prompt cache.
    pub cache_write_tokens: u64,
    /// The part of `cache_write_tokens` that is kept for an hour instead of minutes, where the provider reports
    /// it.
    pub cache_write_1h_tokens: u64,
    /// The part of the output that was reasoning, where the provider reports it.
    pub reasoning_tokens: u64,
    /// Web searches that the provider made for the answer; each one is charged.
    pub web_search_requests: u64,
    /// The service tier of one call, where the provider reports it; absent in sums.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<ServiceTier>,
}

/// Adds the computed sum to the schema of [`Usage`].
fn describe_total(schema: &mut Schema) {
    if let Some(properties) = schema.get_mut("properties").and_then(|it| it.as_object_mut()) {
        let description = "All tokens that were sent or received; computed when it is written.";
        let total = json_schema!({
            "type": "integer", "format": "uint64", "minimum": 0, "default": 0, "description": description
        });
        properties.insert("total".into(), total.to_value());
    }
}

impl Serialize for Usage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Usage", 9)?;
        fields.serialize_field("input_tokens", &self.input_tokens)?;
        fields.serialize_field("output_tokens", &self.output_tokens)?;
        fields.serialize_field("cache_read_tokens", &self.cache_read_tokens)?;
        fields.serialize_field("cache_write_tokens", &self.cache_write_tokens)?;
        fields.serialize_field("cache_write_1h_tokens", &self.cache_write_1h_tokens)?;
        fields.serialize_field("reasoning_tokens", &self.reasoning_tokens)?;
        fields.serialize_field("web_search_requests", &self.web_search_requests)?;
        match &self.service_tier {
            Some(tier) => fields.serialize_field("service_tier", tier)?,
            None => fields.skip_field("service_tier")?,
        }
        fields.serialize_field("total", &self.all_tokens())?;
        fields.end()
    }
}

/// The tier of service in which a provider made a call. Tiers have different prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ServiceTier {
    /// The ordinary tier.
    Standard,
    /// Faster, or with a promise about speed.
    Priority,
    /// Slower and cheaper.
    Flex,
    /// In a batch.
    Batch,
    /// Capacity that the account bought before.
    Scale,
}

impl ServiceTier {
    /// All tiers.
    pub const ALL: [Self; 5] = [Self::Standard, Self::Priority, Self::Flex, Self::Batch, Self::Scale];

    /// The tier of this name in an answer; `None` for an unknown one.
    #[must_use]
    pub fn from_provider(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            // OpenAI calls it `default`, Groq `on_demand`.
            "standard" | "default" | "on_demand" => Some(Self::Standard),
            "priority" | "performance" => Some(Self::Priority),
            "flex" => Some(Self::Flex),
            "batch" => Some(Self::Batch),
            "scale" => Some(Self::Scale),
            _ => None,
        }
    }

    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Use that a provider reports inside an answer but not in its totals, for example of an advisor model.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedUsage {
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// Its tokens.
    pub usage: Usage,
    /// Limits and price of the model.
    pub model_snapshot: ModelSnapshot,
}

impl Usage {
    /// Adds another call's tokens. A provider may report any number, so sums stop at the largest number.
    pub fn add(&mut self, other: &Usage) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(other.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
        self.cache_write_1h_tokens = self.cache_write_1h_tokens.saturating_add(other.cache_write_1h_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
        self.web_search_requests = self.web_search_requests.saturating_add(other.web_search_requests);
    }

    /// All tokens that were sent or received. Reasoning is part of the output.
    #[must_use]
    pub fn all_tokens(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.output_tokens)
            .saturating_add(self.cache_read_tokens)
            .saturating_add(self.cache_write_tokens)
    }
}

/// The usage of one model call.
#[derive(Clone, Debug, PartialEq)]
pub struct UsageRecord {
    /// The session that made the call.
    pub session_id: SessionId,
    /// Seq of the event that reports it; each event has at most one record.
    pub seq: Seq,
    /// Time of the booking.
    pub at: Timestamp,
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// Tokens and searches of the call.
    pub usage: Usage,
    /// Its cost in millionths of a dollar; `None` if unknown.
    pub cost_usd_micros: Option<u64>,
    /// Limits and price of the model at the time of the call.
    pub model_snapshot: ModelSnapshot,
    /// Whether the call gave no answer.
    pub is_lost: bool,
    /// Whether `usage` is at least partly an upper estimate.
    pub is_estimated: bool,
}

/// The sum of all calls of one model, as the ledger stores it. If a part of a sum is unknown, the sum is
/// unknown, and the known part is its lower bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelUsage {
    /// Tokens and searches.
    #[serde(flatten)]
    pub usage: Usage,
    /// Model calls, including lost attempts.
    #[serde(default)]
    pub calls: u64,
    /// Calls without an answer, for which the provider may still charge.
    #[serde(default)]
    pub lost_attempts: u64,
    /// Calls whose tokens are an upper estimate, because the provider did not report them.
    #[serde(default)]
    pub estimated_calls: u64,
    /// Cost of all calls, in millionths of a dollar; `null` if a price is unknown.
    #[serde(default)]
    pub cost_usd_micros: Option<u64>,
    /// Cost of the calls whose price is known, in millionths of a dollar: a lower bound of the total cost.
    #[serde(default)]
    pub cost_at_least_usd_micros: u64,
    /// Calls whose price is unknown.
    #[serde(default)]
    pub unpriced_calls: u64,
    /// Tokens that fit in a request and its answer, as known at the newest call; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u32>,
    /// Tokens of the longest answer, as known at the newest call; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
}

impl Default for ModelUsage {
    /// The sum of no calls: its cost is known to be 0.
    fn default() -> Self {
        Self {
            usage: Usage::default(),
            calls: 0,
            lost_attempts: 0,
            estimated_calls: 0,
            cost_usd_micros: Some(0),
            cost_at_least_usd_micros: 0,
            unpriced_calls: 0,
            context_window: None,
            max_output_tokens: None,
        }
    }
}

impl ModelUsage {
    /// Adds one call. Sums stop at the largest number.
    pub fn add_record(&mut self, booking: &UsageRecord) {
        let one = |is: bool| u64::from(is);
        self.add(&Self {
            usage: booking.usage,
            calls: 1,
            lost_attempts: one(booking.is_lost),
            estimated_calls: one(booking.is_estimated),
            cost_usd_micros: booking.cost_usd_micros,
            cost_at_least_usd_micros: booking.cost_usd_micros.unwrap_or(0),
            unpriced_calls: one(booking.cost_usd_micros.is_none()),
            context_window: booking.model_snapshot.context_window,
            max_output_tokens: booking.model_snapshot.max_output_tokens,
        });
    }

    /// Adds other sums. The window and the longest answer come from the newer sums.
    pub fn add(&mut self, other: &ModelUsage) {
        self.usage.add(&other.usage);
        self.calls = self.calls.saturating_add(other.calls);
        self.lost_attempts = self.lost_attempts.saturating_add(other.lost_attempts);
        self.estimated_calls = self.estimated_calls.saturating_add(other.estimated_calls);
        let sum = self.cost_usd_micros.zip(other.cost_usd_micros);
        self.cost_usd_micros = sum.map(|(one, more)| one.saturating_add(more));
        self.cost_at_least_usd_micros =
            self.cost_at_least_usd_micros.saturating_add(other.cost_at_least_usd_micros);
        self.unpriced_calls = self.unpriced_calls.saturating_add(other.unpriced_calls);
        self.context_window = other.context_window.or(self.context_window);
        self.max_output_tokens = other.max_output_tokens.or(self.max_output_tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_usage_counts_saturate_when_added() {
        let absurd = Usage { output_tokens: u64::MAX, ..Usage::default() };
        let mut sum = Usage { output_tokens: 1, ..Usage::default() };
        sum.add(&absurd);
        assert_eq!(sum, absurd);
    }
}
