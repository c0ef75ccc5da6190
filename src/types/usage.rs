//! Tokens, costs and their limits.

use schemars::{JsonSchema, Schema, json_schema};
use serde::de::Error as _;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::config_values::{ConfigDuration, dollars, micros};
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
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
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Priority => "priority",
            Self::Flex => "flex",
            Self::Batch => "batch",
            Self::Scale => "scale",
        }
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

/// Prices in US dollars per million tokens, as vendors publish them.
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
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "optional_dollars")]
    #[schemars(with = "Option<f64>")]
    pub cache_write_1h: Option<f64>,
    /// Price of a thousand web searches, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "optional_dollars")]
    #[schemars(with = "Option<f64>")]
    pub web_search: Option<f64>,
    /// Factors on the prices of tokens in other service tiers.
    #[serde(skip_serializing_if = "TierFactors::is_empty")]
    pub tiers: TierFactors,
}

/// Factors on the prices of tokens, by service tier. The standard tier has the factor 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TierFactors {
    /// Factor of `priority`; without it, the cost of such a call is unknown.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "optional_dollars")]
    #[schemars(with = "Option<f64>")]
    pub priority: Option<f64>,
    /// Factor of `flex`; without it, the standard price is an upper limit.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "optional_dollars")]
    #[schemars(with = "Option<f64>")]
    pub flex: Option<f64>,
    /// Factor of `batch`; without it, the standard price is an upper limit.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "optional_dollars")]
    #[schemars(with = "Option<f64>")]
    pub batch: Option<f64>,
    /// Factor of `scale`; without it, the cost of such a call is unknown.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "optional_dollars")]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelSnapshot {
    /// Tokens that fit in a request and its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u32>,
    /// Tokens of the longest answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Price of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

impl ModelSnapshot {
    /// Cost of `usage` in millionths of a dollar; `None` if unknown.
    #[must_use]
    pub fn cost_usd_micros(&self, usage: &Usage) -> Option<u64> {
        self.price?.cost_usd_micros(usage)
    }
}

// Events show them too, so a client must ignore limits of a later version. The readers of parameters and of templates
// refuse unknown limits.
/// Limits of one turn, and of a whole session. An absent limit does not apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Budgets {
    /// Money, in millionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_micros: Option<u64>,
    /// Model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_calls: Option<u64>,
    /// Output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Wall time in milliseconds. It also ends a running tool or answer, but not a wait for a user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_time_ms: Option<u64>,
    /// Money of the whole session, in millionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_usd_micros: Option<u64>,
    /// Model calls of the whole session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_model_calls: Option<u64>,
    /// Output tokens of the whole session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_output_tokens: Option<u64>,
    /// Wall time of all turns of the session together, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_wall_time_ms: Option<u64>,
}

impl Budgets {
    /// These limits; missing ones are taken from `other`.
    #[must_use]
    pub fn or(self, other: Budgets) -> Self {
        Self {
            usd_micros: self.usd_micros.or(other.usd_micros),
            model_calls: self.model_calls.or(other.model_calls),
            output_tokens: self.output_tokens.or(other.output_tokens),
            wall_time_ms: self.wall_time_ms.or(other.wall_time_ms),
            session_usd_micros: self.session_usd_micros.or(other.session_usd_micros),
            session_model_calls: self.session_model_calls.or(other.session_model_calls),
            session_output_tokens: self.session_output_tokens.or(other.session_output_tokens),
            session_wall_time_ms: self.session_wall_time_ms.or(other.session_wall_time_ms),
        }
    }

    /// Subtracts the usage from the limits of a turn.
    pub fn subtract(&mut self, used: &ModelUsage) {
        let less = |limit: &mut Option<u64>, used: u64| {
            if let Some(limit) = limit {
                *limit = limit.saturating_sub(used);
            }
        };
        less(&mut self.model_calls, used.calls);
        less(&mut self.usd_micros, used.cost_at_least_usd_micros);
        less(&mut self.output_tokens, used.usage.output_tokens);
    }

    /// For each limit, the lower value of the two.
    #[must_use]
    pub fn stricter(self, other: Budgets) -> Self {
        let lower = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            usd_micros: lower(self.usd_micros, other.usd_micros),
            model_calls: lower(self.model_calls, other.model_calls),
            output_tokens: lower(self.output_tokens, other.output_tokens),
            wall_time_ms: lower(self.wall_time_ms, other.wall_time_ms),
            session_usd_micros: lower(self.session_usd_micros, other.session_usd_micros),
            session_model_calls: lower(self.session_model_calls, other.session_model_calls),
            session_output_tokens: lower(self.session_output_tokens, other.session_output_tokens),
            session_wall_time_ms: lower(self.session_wall_time_ms, other.session_wall_time_ms),
        }
    }

    /// Whether a limit on money is set.
    #[must_use]
    pub const fn limits_money(&self) -> bool {
        self.usd_micros.is_some() || self.session_usd_micros.is_some()
    }
}

/// `[session.budgets]` in configuration files: the same limits in dollars and with units of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetSettings {
    /// Cost of one turn in US dollars.
    #[serde(deserialize_with = "dollars")]
    pub usd: Option<f64>,
    /// Model calls of one turn.
    pub model_calls: Option<u64>,
    /// Output tokens of one turn.
    pub output_tokens: Option<u64>,
    /// Elapsed time of one turn.
    pub wall_time: Option<ConfigDuration>,
    /// Cost of the whole session in US dollars.
    #[serde(deserialize_with = "dollars")]
    pub session_usd: Option<f64>,
    /// Model calls of the whole session.
    pub session_model_calls: Option<u64>,
    /// Output tokens of the whole session.
    pub session_output_tokens: Option<u64>,
    /// Elapsed time of all turns of the session together.
    pub session_wall_time: Option<ConfigDuration>,
}

impl From<BudgetSettings> for Budgets {
    fn from(settings: BudgetSettings) -> Self {
        Self {
            usd_micros: settings.usd.map(micros),
            model_calls: settings.model_calls,
            output_tokens: settings.output_tokens,
            wall_time_ms: settings.wall_time.map(ConfigDuration::millis),
            session_usd_micros: settings.session_usd.map(micros),
            session_model_calls: settings.session_model_calls,
            session_output_tokens: settings.session_output_tokens,
            session_wall_time_ms: settings.session_wall_time.map(ConfigDuration::millis),
        }
    }
}

/// One of the limits in [`Budgets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetKind {
    /// Money of the turn.
    UsdMicros,
    /// Model calls of the turn.
    ModelCalls,
    /// Output tokens of the turn.
    OutputTokens,
    /// Wall time of the turn.
    WallTimeMs,
    /// Money of the session.
    SessionUsdMicros,
    /// Model calls of the session.
    SessionModelCalls,
    /// Output tokens of the session.
    SessionOutputTokens,
    /// Wall time of all turns of the session.
    SessionWallTimeMs,
}

impl BudgetKind {
    /// Whether the limit applies to the whole session.
    #[must_use]
    pub const fn is_of_session(self) -> bool {
        matches!(
            self,
            BudgetKind::SessionUsdMicros
                | BudgetKind::SessionModelCalls
                | BudgetKind::SessionOutputTokens
                | BudgetKind::SessionWallTimeMs
        )
    }

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            BudgetKind::UsdMicros => "usd_micros",
            BudgetKind::ModelCalls => "model_calls",
            BudgetKind::OutputTokens => "output_tokens",
            BudgetKind::WallTimeMs => "wall_time_ms",
            BudgetKind::SessionUsdMicros => "session_usd_micros",
            BudgetKind::SessionModelCalls => "session_model_calls",
            BudgetKind::SessionOutputTokens => "session_output_tokens",
            BudgetKind::SessionWallTimeMs => "session_wall_time_ms",
        }
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
