//! Answers to permission requests and questions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use types::ids::{ItemId, PermissionId, QuestionId, Seq, SessionId};
use types::permission::{Decision, Mode, Scope};
use types::question::UserAnswer;

/// `session.approve`: one answer, or a list of them in `answers`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ApproveParams {
    /// Id of the request; required without `answers`.
    pub request_id: Option<PermissionId>,
    /// Allow or deny; required without `answers`.
    pub decision: Option<Decision>,
    /// How long an allow is valid.
    #[serde(default)]
    pub scope: Scope,
    /// The grant to give with scope `session` or `project`; by default the narrowest suggestion.
    pub grant: Option<String>,
    /// Feedback for the model.
    pub feedback: Option<String>,
    /// With `deny`: the turn ends as `permission_denied`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop: bool,
    /// With `deny`: the client has no user to ask. The action of `[permissions.unattended] on_timeout` applies at
    /// once, and the model learns that no user decided. If the action is `pause`, the answer is refused (`path` names
    /// this field), and the request stays pending.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_approver: bool,
    /// With `allow` and scope `once`: arguments that replace the model's. They are prepared and judged like the
    /// model's arguments. The history keeps the model's arguments, and the result reports the change.
    pub updated_input: Option<serde_json::Value>,
    /// The `digest` of the request that the user saw: the answer is refused if the pending request differs.
    pub digest: Option<String>,
    /// 1 to 256 answers, each of which is accepted or refused separately. Only `idempotency_key` may be present with
    /// them.
    pub answers: Option<Vec<ApproveParams>>,
    /// A repeated call with the same key returns the same reply.
    pub idempotency_key: Option<String>,
    /// With `allow` of a request of kind `plan`: the mode that follows plan mode; by default `default`.
    pub mode: Option<Mode>,
}

/// Reply of `session.approve`: accepted answers are on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ApproveReply {
    /// Reply to a single answer.
    One(Approved),
    /// Reply to `answers`.
    Several {
        /// The result of each answer, in their order.
        results: Vec<ApproveResult>,
    },
}

/// An accepted answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approved {
    /// Id of the session.
    pub session_id: SessionId,
    /// Seq of `permission.resolved`.
    pub seq: Seq,
    /// The grant that was stored, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
}

/// The result of one of several answers: accepted, or refused with an `error` as in a separate reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApproveResult {
    /// The request; absent if the answer named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<PermissionId>,
    /// Present if the answer was accepted.
    #[serde(flatten)]
    pub approved: Option<Approved>,
    /// Present if the answer was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AnswerError>,
}

/// Why one of several answers was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerError {
    /// The JSON-RPC error number.
    pub code: i32,
    /// The error, and how to fix it.
    pub message: String,
    /// `kind` and further members.
    pub data: serde_json::Value,
}

/// `session.answer`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AnswerParams {
    /// Id of the question.
    pub request_id: QuestionId,
    /// For the kinds `unknown_outcome`, `resume` and `repeated_call`: one of the question's options, `continue` or `abort`.
    pub choice: Option<String>,
    /// A repeated call with the same key returns the same reply.
    pub idempotency_key: Option<String>,
    /// For the kind `question`: one answer for each of its questions, in their order.
    pub answers: Option<Vec<UserAnswer>>,
}

/// `session.feedback`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FeedbackParams {
    /// Id of the `feedback.request`.
    pub request_id: QuestionId,
    /// The chosen answer: one of its `item_ids`.
    pub item_id: ItemId,
    /// A repeated call with the same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `session.answer` and `session.feedback`: the answer is on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerReply {
    /// Id of the session.
    pub session_id: SessionId,
    /// Seq of `question.resolved` or `feedback.completed`.
    pub seq: Seq,
}
