//! Maps session errors to error codes; no other module does this. Do not add a wildcard arm, because
//! the compiler must require a code for each new error.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use api::params::{ApproveParams, SubscriptionId};
use api::{ApiMethod, Code, Fault};
use session::{AnswerRequest, IdempotencyKey, PolicyError, Rule, SessionError, StoreError, WorktreeError};
use transport::SubscribeError;
use types::depth;
use types::event::Origin;
use types::hex;
use types::permission::{Decision, RuleKind, Scope};
use types::permission_request::PermissionAnswer;

/// The id of a subscription that was opened.
pub(super) fn subscription(opened: Result<String, SubscribeError>) -> Result<SubscriptionId, Fault> {
    opened.map(SubscriptionId).map_err(|error| match error {
        // The daemon is stopping, but the client can still read this error.
        SubscribeError::Closed => Fault::new(Code::ShuttingDown, "the daemon is stopping"),
        error => Fault::new(Code::Overloaded, error.to_string()),
    })
}

fn worktree_fault(error: WorktreeError) -> Fault {
    let why = error.to_string();
    match error {
        WorktreeError::NotFound => Fault::new(Code::NotFound, format!("{why}; worktree.list names them")),
        WorktreeError::InUse(_) => Fault::new(Code::Busy, why),
        WorktreeError::Uncommitted(count) => {
            Fault::new(Code::Conflict, why).with("reason", "uncommitted").with("uncommitted", count)
        }
        WorktreeError::NotMerged { reason, files, .. } => {
            Fault::new(Code::Conflict, why).with("reason", reason).with("files", json!(files))
        }
        WorktreeError::Failed(_) => Fault::new(Code::Internal, why),
    }
}

/// The fault that a client receives.
pub(super) fn fault(error: SessionError) -> Fault {
    use session::Refusal;
    match error {
        SessionError::Refused(Refusal::EmptyInput) => {
            Fault::new(Code::InvalidParams, "input: there is no text in it").with("path", "input")
        }
        SessionError::Refused(Refusal::Busy { turn_id }) => {
            Fault::new(Code::Busy, "a turn is running: wait, abort it, or submit with when_busy queue")
                .with("turn_id", turn_id.to_string())
        }
        SessionError::Refused(Refusal::StaleTurn { current }) => {
            let current = current.map(|turn| turn.to_string());
            Fault::new(Code::StalePrecondition, "that turn is not the current one")
                .with("current_turn_id", json!(current))
        }
        SessionError::Refused(Refusal::NotPending) => {
            Fault::new(Code::NotPending, "the request is not pending any more")
        }
        SessionError::Refused(Refusal::Paused) => Fault::new(
            Code::InvalidParams,
            "no_approver: on_timeout = \"pause\" holds: the request waits until a user answers it",
        )
        .with("path", "no_approver"),
        SessionError::Refused(Refusal::NoSuchCall) => {
            Fault::new(Code::NotFound, "the running turn has no such tool call")
        }
        SessionError::Refused(Refusal::Ended) => {
            Fault::new(Code::NotFound, "the session was killed and takes no more input; create a new one")
                .with("state", "ended")
        }
        SessionError::Refused(Refusal::Budget(why)) => {
            Fault::new(Code::Budget, format!("budgets: {why}; name a higher limit")).with("path", "budgets")
        }
        SessionError::Refused(Refusal::Archived) => Fault::new(
            Code::Conflict,
            "the session is archived and takes no input; restore it with session.archive {archived: false} \
             (agentctl archive --undo)",
        )
        .with("state", "archived"),
        SessionError::Refused(Refusal::CommandsRun) => Fault::new(
            Code::Busy,
            "commands of the session run in the background: stop them (session.abort with their call_id), or wait",
        ),
        SessionError::Refused(Refusal::NotQueued { turn_id }) => Fault::new(
            Code::NotFound,
            "that turn is not queued: it has started, was removed, or never existed; session.queue.list names the \
             queued turns",
        )
        .with("turn_id", turn_id.to_string()),
        SessionError::Refused(Refusal::WrongAnswer(answer)) => invalid_param(&answer.path, &answer.why),
        SessionError::Refused(Refusal::ModeOfOtherAnswer) => {
            invalid_param("mode", "goes with decision allow of a request of kind plan only")
        }
        SessionError::Refused(Refusal::PlanNeedsOtherMode) => {
            invalid_param("mode", "a plan is approved once, with a mode other than plan; deny it to stay in plan mode")
        }
        SessionError::Refused(Refusal::NoSuchAnswer) => Fault::new(
            Code::InvalidParams,
            "item_id: the request does not offer this answer; choose one of its item_ids",
        )
        .with("path", "item_id"),
        SessionError::Refused(Refusal::NoGrant) => Fault::new(
            Code::InvalidParams,
            "grant: no grant can be derived from this request; name one, or allow it once",
        )
        .with("path", "grant"),
        SessionError::Refused(Refusal::OtherRequest) => Fault::new(
            Code::StalePrecondition,
            "digest: the request that is pending is not the one that was seen; look at it again",
        )
        .with("path", "digest"),
        SessionError::Refused(Refusal::ModeOfSteer) => Fault::new(
            Code::InvalidParams,
            "mode: this input joins the running turn, whose mode session.update changes",
        )
        .with("path", "mode"),
        SessionError::Refused(Refusal::ModelOfSteer) => Fault::new(
            Code::InvalidParams,
            "model: this input joins the running turn, which has its model; let it wait (when_busy: queue)",
        )
        .with("path", "model"),
        SessionError::Refused(Refusal::ThinkingOfSteer) => Fault::new(
            Code::InvalidParams,
            "thinking: this input joins the running turn, where it never changes; session.update sets it \
             for the turns to come",
        )
        .with("path", "thinking"),
        SessionError::Refused(Refusal::ToolsOfSteer) => Fault::new(
            Code::InvalidParams,
            "tools: this input joins the running turn, which has its tools; let it wait (when_busy: queue)",
        )
        .with("path", "tools"),
        SessionError::Refused(Refusal::SamplingOfSteer) => Fault::new(
            Code::InvalidParams,
            "temperature, top_p: this input joins the running turn, where they never change; session.update sets \
             them for the turns to come",
        )
        .with("path", "temperature"),
        SessionError::Refused(Refusal::CommandOfSteer) => {
            invalid_param("input", "a slash command starts a turn of its own; let it wait (when_busy: queue)")
        }
        SessionError::Refused(Refusal::OptionOfSteer(name)) => invalid_param(
            name,
            "this input joins the running turn, which has its options; let it wait (when_busy: queue)",
        ),
        SessionError::Refused(Refusal::RetryMustBeUnchanged) => Fault::new(
            Code::InvalidParams,
            "this request is about running the same command again outside the sandbox: it takes deny, or allow \
             once or for the session, with the arguments as they are and no other grant than the suggested one",
        )
        .with("path", "scope"),
        SessionError::Refused(Refusal::NoSuchRule) => {
            Fault::new(Code::NotFound, "there is no such rule there; permission.rules lists them")
        }
        SessionError::Policy(error) => policy_fault(&error),
        SessionError::Worktree(error) => worktree_fault(error),
        SessionError::NotFound => {
            Fault::new(Code::NotFound, "there is no such session; session.list names them")
        }
        SessionError::NoSuchRequest => Fault::new(
            Code::NotFound,
            "there is no such permission request; permission.list names the pending ones",
        ),
        SessionError::NoSuchItem(item_id) => {
            let why = "the session has no such item, or it was rewound; session.items names them";
            Fault::new(Code::NotFound, format!("item_id: {why}"))
                .with("path", "item_id")
                .with("item_id", item_id.to_string())
        }
        SessionError::NoSuchNote(why) => Fault::new(Code::NotFound, why).with("path", "name"),
        SessionError::NoSuchQuestion => Fault::new(
            Code::NotFound,
            "there is no such question; question.requested events of the session name them",
        ),
        SessionError::Settled(event) => already_answered(&event),
        SessionError::Conflict(what) => {
            Fault::new(Code::Conflict, format!("{what} was used before with other parameters"))
        }
        SessionError::CursorAhead { last_seq } => Fault::new(
            Code::CursorAhead,
            format!("after_seq is beyond the journal, which ends at {last_seq}"),
        )
        .with("last_seq", last_seq),
        SessionError::StaleTrust { digest } => Fault::new(
            Code::StalePrecondition,
            "digest: the folder has changed since; look at it again with workspace.status",
        )
        .with("path", "digest")
        .with("digest", digest),
        SessionError::BadParam(path, why) => {
            Fault::new(Code::InvalidParams, format!("{path}: {why}")).with("path", path)
        }
        SessionError::UnknownCommand { name, nearest } => {
            let hint = nearest.as_ref().map(|near| format!(" did you mean /{near}?")).unwrap_or_default();
            let why = format!(
                "input: there is no command /{name};{hint} /help lists them; raw: true sends the text to the model"
            );
            let fault = Fault::new(Code::InvalidParams, why).with("path", "input");
            match nearest {
                Some(nearest) => fault.with("nearest", nearest),
                None => fault,
            }
        }
        SessionError::Unsupported(path, why) => {
            Fault::new(Code::Unsupported, format!("{path}: {why}")).with("path", path)
        }
        SessionError::HookDenied(_) => Fault::new(Code::InvalidParams, error.to_string()).with("path", "input").with("refused_by", "hook"),
        SessionError::Crashed => Fault::new(
            Code::Internal,
            "the session failed unexpectedly; its journal is stored; read it with `agentctl logs` and try again",
        ),
        SessionError::ShuttingDown => Fault::new(Code::ShuttingDown, "the daemon is stopping"),
        SessionError::JournalFull { held, most } => Fault::new(Code::StorageReadOnly, error.to_string())
            .with("held_bytes", held)
            .with("journal_size", most),
        SessionError::Store(error) => storage_fault(&error),
    }
}

fn policy_fault(error: &PolicyError) -> Fault {
    match error {
        PolicyError::BadRule(why) => {
            Fault::new(Code::InvalidParams, format!("rule: {why}")).with("path", "rule")
        }
        PolicyError::Unwritable { .. } => Fault::new(Code::StorageReadOnly, error.to_string()),
        PolicyError::Unsound { file, .. } => {
            Fault::new(Code::InvalidRequest, error.to_string()).with("file", file.display().to_string())
        }
    }
}

pub(super) fn storage_fault(error: &StoreError) -> Fault {
    let text = format!("could not {error}");
    match error {
        StoreError::Unwritable(_) | StoreError::Unsynced(_) | StoreError::CommitUnknown(_) => {
            Fault::new(Code::StorageReadOnly, text)
        }
        StoreError::Target(_) => {
            Fault::new(Code::InvalidParams, format!("path: {text}")).with("path", "path")
        }
        StoreError::Closed => Fault::new(Code::ShuttingDown, text),
        StoreError::Taken => Fault::new(Code::Conflict, text),
        StoreError::NewerSchema(_) | StoreError::Corrupt(_) | StoreError::Sql(_) => {
            Fault::new(Code::Internal, text)
        }
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
