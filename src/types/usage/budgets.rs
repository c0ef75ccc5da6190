//! Limits of what a turn and a session use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ModelUsage;
use crate::config_values::{ConfigDuration, dollars, micros};

// Events show them too, so a client must ignore limits of a later version. The readers of parameters and of templates
// refuse unknown limits.
/// Limits of one turn, and of a whole session. An absent limit does not apply.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Budgets {
    /// Money, in millionths of a dollar.
    pub usd_micros: Option<u64>,
    /// Model calls.
    pub model_calls: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
    /// Wall time in milliseconds. It also ends a running tool or answer, but not a wait for a user.
    pub wall_time_ms: Option<u64>,
    /// Money of the whole session, in millionths of a dollar.
    pub session_usd_micros: Option<u64>,
    /// Model calls of the whole session.
    pub session_model_calls: Option<u64>,
    /// Output tokens of the whole session.
    pub session_output_tokens: Option<u64>,
    /// Wall time of all turns of the session together, in milliseconds.
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
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
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
    pub fn name(self) -> &'static str {
        self.into()
    }
}
