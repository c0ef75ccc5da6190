//! Resolves numbers that clients send in place of ids: `12` for a session, `12.1` for a permission
//! request or a question.

use serde_json::Value;

use super::convert;
use super::parse_params::NamedParams;
use crate::context::RpcContext;
use api::Fault;

/// Replaces numbers in the parameters of a call by the matching ids. Other values stay unchanged, because parsing the
/// typed parameters reports a wrong one.
pub(super) async fn resolve(ctx: &RpcContext, params: &mut NamedParams) -> Result<(), Fault> {
    if let Some(number) = params.get("session_id").and_then(session_number) {
        let id = ctx.registry.numbered(number).await.map_err(convert::fault)?;
        params.insert("session_id".into(), id.to_string().into());
    }
    resolve_request(ctx, params).await?;
    if let Some(Value::Array(answers)) = params.get_mut("answers") {
        for answer in answers.iter_mut().filter_map(Value::as_object_mut) {
            resolve_request(ctx, answer).await?;
        }
    }
    Ok(())
}

async fn resolve_request(ctx: &RpcContext, params: &mut NamedParams) -> Result<(), Fault> {
    if let Some((session, nth)) = params.get("request_id").and_then(request_number) {
        let id = ctx.registry.numbered_request(session, nth).await.map_err(convert::fault)?;
        params.insert("request_id".into(), id.into());
    }
    Ok(())
}

/// `12` or `"12"`.
fn session_number(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => number(text),
        value => value.as_u64(),
    }
}

/// `"12.1"`: the session and its request.
fn request_number(value: &Value) -> Option<(u64, u64)> {
    let (session, nth) = value.as_str()?.split_once('.')?;
    Some((number(session)?, number(nth)?))
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_of_sessions_and_requests_are_told_from_ids() {
        for (value, session, request) in [
            (json!(12), Some(12), None),
            (json!("12"), Some(12), None),
            (json!("3.1"), None, Some((3, 1))),
            (json!(3.1), None, None),
            (json!("+3"), None, None),
            (json!("ses_0190f2a4-0000-7000-8000-000000000001"), None, None),
            (json!(null), None, None),
        ] {
            assert_eq!((session_number(&value), request_number(&value)), (session, request), "{value}");
        }
    }
}
