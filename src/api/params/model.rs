//! Parameters and replies of the namespace `model`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use types::ids::SessionId;
use types::ledger::{LedgerRow, ModelUsage};
use types::model::{ModelView, ProviderCheck};
use types::time::Timestamp;

/// `model.list`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ModelListParams {
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Models per page, at most 500; 100 by default.
    pub limit: Option<u32>,
}

/// Reply of `model.list`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelListReply {
    /// Models of this page, sorted by name.
    pub models: Vec<ModelView>,
    /// Cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// `model.check`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ModelCheckParams {
    /// Only this provider; by default all configured ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
}

/// Reply of `model.check`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelCheckReply {
    /// The checked providers, sorted by name.
    pub providers: Vec<ProviderCheck>,
}

/// `model.usage`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ModelUsageParams {
    /// Only calls of this session, which may be a deleted one.
    pub session_id: Option<SessionId>,
    /// Only calls at this time or later.
    pub since_ms: Option<Timestamp>,
    /// Only calls before this time.
    pub until_ms: Option<Timestamp>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Rows per page, at most 500; 100 by default.
    pub limit: Option<u32>,
}

/// Reply of `model.usage`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelUsageReply {
    /// One row for each session and model, newest sessions first.
    pub rows: Vec<LedgerRow>,
    /// Sum of all selected calls, on all pages.
    pub total: ModelUsage,
    /// Cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
