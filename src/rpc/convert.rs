//! Maps session errors to error codes; no other module does this. Do not add a wildcard arm, because
//! the compiler must require a code for each new error.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use api::params::{ApproveParams, SubscriptionId};
use api::{ApiMethod, Code, Fault};
use session::{
    AnswerRequest, IdempotencyKey, PolicyError, Refusal, Rule, SessionError, StoreError, WorktreeError,
};
use transport::SubscribeError;
use types::depth;
use types::event::Origin;
use types::hex;
use types::permission::{Decision, RuleKind, Scope};
use types::permission_request::PermissionAnswer;

pub(super) fn subscription(opened: Result<String, SubscribeError>) -> Result<SubscriptionId, Fault> {
    opened.map(SubscriptionId).map_err(|error| match error {
        // The daemon is stopping, but the client can still read this error.
        SubscribeError::Closed => Fault::new(Code::ShuttingDown, "the daemon is stopping"),
        error => Fault::new(Code::Overloaded, error.to_string()),
    })
}

/// The fault that a client receives. The error has the text and the path.
pub(super) fn fault(error: SessionError) -> Fault {
    if let SessionError::Settled(event) = &error {
        return already_answered(event);
    }
    let message = match &error {
        SessionError::Worktree(WorktreeError::NotFound) => format!("{error}; worktree.list names them"),
        SessionError::Policy(PolicyError::BadRule(_)) | SessionError::Store(StoreError::Target(_)) => {
            format!("{}: {error}", error.path().unwrap_or_default())
        }
        error => error.to_string(),
    };
    let mut fault = Fault::new(code(&error), message);
    if let Some(path) = error.path() {
        fault = fault.with("path", path);
    }
    match error {
        SessionError::Refused(refusal) => match refusal {
            Refusal::Busy { turn_id } | Refusal::NotQueued { turn_id } => {
                fault.with("turn_id", turn_id.to_string())
            }
            Refusal::StaleTurn { current } => {
                fault.with("current_turn_id", json!(current.map(|turn| turn.to_string())))
            }
            Refusal::Ended => fault.with("state", "ended"),
            Refusal::Archived => fault.with("state", "archived"),
            _ => fault,
        },
        SessionError::Worktree(WorktreeError::Uncommitted(count)) => {
            fault.with("reason", "uncommitted").with("uncommitted", count)
        }
        SessionError::Worktree(WorktreeError::NotMerged { reason, files, .. }) => {
            fault.with("reason", reason).with("files", json!(files))
        }
        SessionError::Policy(PolicyError::Unsound { file, .. }) => {
            fault.with("file", file.display().to_string())
        }
        SessionError::NoSuchItem(item_id) => fault.with("item_id", item_id.to_string()),
        SessionError::CursorAhead { last_seq } => fault.with("last_seq", last_seq),
        SessionError::StaleTrust { digest } => fault.with("digest", digest),
        SessionError::UnknownCommand { nearest: Some(nearest), .. } => fault.with("nearest", nearest),
        SessionError::HookDenied(_) => fault.with("refused_by", "hook"),
        SessionError::JournalFull { held, most } => fault.with("held_bytes", held).with("journal_size", most),
        _ => fault,
    }
}

fn code(error: &SessionError) -> Code {
    match error {
        SessionError::Refused(refusal) => match refusal {
            Refusal::Busy { .. } | Refusal::CommandsRun => Code::Busy,
            Refusal::StaleTurn { .. } | Refusal::OtherRequest => Code::StalePrecondition,
            Refusal::NotPending => Code::NotPending,
            Refusal::NoSuchCall | Refusal::Ended | Refusal::NotQueued { .. } | Refusal::NoSuchRule => {
                Code::NotFound
            }
            Refusal::Budget(_) => Code::Budget,
            Refusal::Archived => Code::Conflict,
            Refusal::EmptyInput
            | Refusal::WrongAnswer(_)
            | Refusal::ModeOfOtherAnswer
            | Refusal::PlanNeedsOtherMode
            | Refusal::NoSuchAnswer
            | Refusal::Paused
            | Refusal::NoGrant
            | Refusal::ModeOfSteer
            | Refusal::ModelOfSteer
            | Refusal::ThinkingOfSteer
            | Refusal::ToolsOfSteer
            | Refusal::SamplingOfSteer
            | Refusal::CommandOfSteer
            | Refusal::OptionOfSteer(_)
            | Refusal::RetryMustBeUnchanged => Code::InvalidParams,
        },
        SessionError::NotFound
        | SessionError::NoSuchRequest
        | SessionError::NoSuchItem(_)
        | SessionError::NoSuchNote(_)
        | SessionError::NoSuchQuestion
        | SessionError::Worktree(WorktreeError::NotFound) => Code::NotFound,
        SessionError::Settled(_) => Code::NotPending,
        SessionError::Conflict(_)
        | SessionError::Worktree(WorktreeError::Uncommitted(_) | WorktreeError::NotMerged { .. }) => {
            Code::Conflict
        }
        SessionError::CursorAhead { .. } => Code::CursorAhead,
        SessionError::StaleTrust { .. } => Code::StalePrecondition,
        SessionError::BadParam(..)
        | SessionError::UnknownCommand { .. }
        | SessionError::HookDenied(_)
        | SessionError::Policy(PolicyError::BadRule(_)) => Code::InvalidParams,
        SessionError::Unsupported(..) => Code::Unsupported,
        SessionError::Worktree(WorktreeError::InUse(_)) => Code::Busy,
        SessionError::Crashed | SessionError::Worktree(WorktreeError::Failed(_)) => Code::Internal,
        SessionError::ShuttingDown => Code::ShuttingDown,
        SessionError::JournalFull { .. } | SessionError::Policy(PolicyError::Unwritable { .. }) => {
            Code::StorageReadOnly
        }
        SessionError::Policy(PolicyError::Unsound { .. }) => Code::InvalidRequest,
        SessionError::Store(error) => match error {
            StoreError::Unwritable(_) | StoreError::Unsynced(_) | StoreError::CommitUnknown(_) => {
                Code::StorageReadOnly
            }
            StoreError::Target(_) => Code::InvalidParams,
            StoreError::Closed => Code::ShuttingDown,
            StoreError::Taken => Code::Conflict,
            StoreError::NewerSchema(_) | StoreError::Corrupt(_) | StoreError::Sql(_) => Code::Internal,
        },
    }
}

/// The fault for a request that was already answered. It names the client and the answer.
fn already_answered(event: &str) -> Fault {
    let event: Value = serde_json::from_str(event).unwrap_or_default();
    let by = event["origin"]["client"].as_str().unwrap_or("the daemon").to_string();
    // The answer to a question has a `choice` instead of a `decision`.
    let name = if event["choice"].is_string() { "choice" } else { "decision" };
    let decision = event[name].as_str().unwrap_or_default().to_string();
    let how = match event["by"].as_str() {
        Some("abort") => "withdrawn by an abort".into(),
        Some("submit") => "settled by a further input".into(),
        Some("timeout") => format!("settled for want of an answer: {decision}"),
        Some("rule" | "mode") => {
            format!("allowed by {}", event["rule"].as_str().unwrap_or("a change of rules"))
        }
        _ => format!("answered: {decision}"),
    };
    Fault::new(Code::NotPending, format!("the request was already {how} (by {by})"))
        .with("answered_by", event["origin"].clone())
        .with(name, decision)
        .with("seq", event["seq"].clone())
}

/// Converts the parameters of an answer to a permission request and checks them. The session checks the
/// request itself.
pub(super) fn permission_answer(
    p: ApproveParams,
    keyed: Option<IdempotencyKey>,
    origin: Origin,
) -> Result<AnswerRequest, Fault> {
    if p.answers.is_some() {
        return Err(invalid_param("answers", "an answer holds no further answers"));
    }
    let request_id = p.request_id.ok_or_else(|| invalid_param("request_id", "missing field `request_id`"))?;
    let decision = p.decision.ok_or_else(|| invalid_param("decision", "missing field `decision`"))?;
    let is_allowed = decision == Decision::Allow;
    if p.grant.is_some() && !(is_allowed && p.scope != Scope::Once) {
        return Err(invalid_param("grant", "goes with decision allow and scope session or project only"));
    }
    if !is_allowed && p.scope != Scope::Once {
        return Err(invalid_param("scope", "a denial is for this call only; leave scope out"));
    }
    if p.stop && is_allowed {
        return Err(invalid_param("stop", "goes with decision deny only; session.abort stops a turn"));
    }
    if p.no_approver && (is_allowed || p.feedback.is_some()) {
        return Err(invalid_param("no_approver", "goes with decision deny and without feedback only"));
    }
    if p.updated_input.is_some() && !(is_allowed && p.scope == Scope::Once) {
        return Err(invalid_param("updated_input", "goes with decision allow and scope once only"));
    }
    if p.updated_input.as_ref().is_some_and(|input| !input.is_object()) {
        return Err(invalid_param("updated_input", "expected an object, as the tool takes it"));
    }
    if p.updated_input.as_ref().is_some_and(|input| !depth::is_readable(input)) {
        return Err(invalid_param(
            "updated_input",
            "it has too many levels of lists and objects (at most 96)",
        ));
    }
    let grant = p.grant.map(|grant| Rule::in_list(RuleKind::Allow, &grant)).transpose();
    let grant = grant.map_err(|error| invalid_param("grant", &error.to_string()))?;
    let answer = PermissionAnswer {
        request_id,
        decision,
        scope: p.scope,
        grant: grant.as_ref().map(Rule::to_string),
        feedback: p.feedback,
        stop: p.stop,
        no_approver: p.no_approver,
        mode: p.mode,
        digest: p.digest,
    };
    Ok(AnswerRequest { answer, grant, updated_input: p.updated_input, edited: None, keyed, origin })
}

/// The fault of a wrong parameter.
pub(super) fn invalid_param(path: &str, why: &str) -> Fault {
    Fault::new(Code::InvalidParams, format!("{path}: {why}")).with("path", path)
}

/// A caller's idempotency key with the digest of the parameters.
pub(super) fn idempotency_key<P: serde::Serialize>(
    key: Option<String>,
    params: &P,
) -> Option<IdempotencyKey> {
    let key = key?;
    // The parameters were parsed from JSON, so serialising them cannot fail.
    let text = serde_json::to_string(params).unwrap_or_default();
    let digest = Sha256::digest(text.as_bytes());
    Some(IdempotencyKey { key, digest: hex::encode(&digest) })
}

/// A caller's idempotency key for a method whose parameters had another order of fields in older versions. The digest
/// is the same as in those versions, so that a call may be repeated after an update.
pub(super) fn ordered_idempotency_key<M: ApiMethod>(
    key: Option<String>,
    params: &M::Params,
) -> Option<IdempotencyKey> {
    let key = key?;
    let text = serde_json::to_string(params).unwrap_or_default();
    let text = match serde_json::from_str::<BTreeMap<&str, &RawValue>>(&text) {
        Ok(members) => {
            let names = M::METHOD.param_names();
            let member = |name: &&str| Some(format!("\"{name}\":{}", members.get(name)?));
            format!("{{{}}}", names.iter().filter_map(member).collect::<Vec<_>>().join(","))
        }
        Err(_) => text,
    };
    Some(IdempotencyKey { key, digest: hex::encode(&Sha256::digest(text.as_bytes())) })
}

/// Limits a page size to the range from 1 to `most`.
pub(super) fn limit(wanted: Option<u32>, default: u32, most: u32) -> u32 {
    wanted.unwrap_or(default).clamp(1, most)
}

/// Maximum bytes of one page, well below the size limit of a reply.
pub(super) const PAGE_BYTES: usize = 4 << 20;
/// Parses a cursor that the daemon returned earlier.
pub(super) fn cursor<T: std::str::FromStr>(text: Option<&str>) -> Result<Option<T>, Fault> {
    text.map(str::parse).transpose().map_err(|_| {
        Fault::new(Code::InvalidParams, "cursor: not one of ours; pass next_cursor as it came")
            .with("path", "cursor")
    })
}

#[cfg(test)]
mod tests {
    use api::methods;
    use api::params::SubmitParams;

    use super::*;

    #[test]
    fn key_digest_keeps_field_order_of_older_versions() {
        fn check<M: ApiMethod>(older: &str) {
            let params: M::Params = serde_json::from_str(older).expect("parameters");
            let keyed = ordered_idempotency_key::<M>(Some("k".into()), &params);
            let digest = hex::encode(&Sha256::digest(older.as_bytes()));
            assert_eq!(keyed.map(|keyed| keyed.digest), Some(digest), "{older}");
        }
        check::<methods::session::Create>(
            r#"{"cwd":"/w","title":"t","model":"p/m","mode":"plan","background":false,"safe_mode":true,"thinking":"low","tools":{"deny":["Bash"]},"agent":"reviewer"}"#,
        );
        check::<methods::session::Update>(
            r#"{"session_id":"ses_0190f2a4-0000-7000-8000-000000000001","title":"t","mode":"plan","model":"p/m","safe_mode":false,"metadata":{"user_id":"u"}}"#,
        );
        let older = r#"{"session_id":"ses_0190f2a4-0000-7000-8000-000000000001","input":"hi","when_busy":"steer","budgets":{"usd_micros":5,"model_calls":2},"model":"p/m","temperature":0.5,"raw":true,"safe_mode":true,"stop":["END"]}"#;
        let params: SubmitParams = serde_json::from_str(older).unwrap();
        let keyed = ordered_idempotency_key::<methods::session::Submit>(Some("k".into()), &params);
        let digest = hex::encode(&Sha256::digest(older.as_bytes()));
        assert_eq!(keyed.map(|keyed| keyed.digest), Some(digest));
        assert_ne!(serde_json::to_string(&params).unwrap(), older, "otherwise the plain digest would do");
    }
}
