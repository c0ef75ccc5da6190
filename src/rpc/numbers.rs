//! Resolves numbers that clients send in place of ids: `12` for a session, `12.1` for a permission
//! request or a question.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::convert;
use crate::context::RpcContext;
use api::Fault;
use api::methods::Method;

/// The parameters that contain the id of a session or of a request.
const NAMES: [&str; 2] = ["session_id", "request_id"];

/// Replaces numbers in the parameters of a call by the matching ids.
pub(super) async fn resolve<'r>(
    ctx: &RpcContext,
    method: &Method,
    raw: Option<&'r str>,
) -> Result<Option<Cow<'r, str>>, Fault> {
    let Some(text) = raw else { return Ok(None) };
    if text.trim_start().starts_with('[') {
        return resolve_list(ctx, method, text).await.map(Some);
    }
    if !may_hold_number(text) {
        return Ok(Some(Cow::Borrowed(text)));
    }
    // Leave a wrong value unchanged, because parsing the typed parameters reports it.
    let Ok(named) = serde_json::from_str::<BTreeMap<String, &RawValue>>(text) else {
        return Ok(Some(Cow::Borrowed(text)));
    };
    let mut members = Vec::with_capacity(named.len());
    for (name, value) in named {
        let value = match name.as_str() {
            "session_id" | "request_id" => find_id(ctx, &name, value.get()).await?,
            "answers" => resolve_answers(ctx, value.get()).await?,
            _ => None,
        }
        .map_or(Cow::Borrowed(value.get()), Cow::Owned);
        members.push(format!("{}:{value}", Value::from(name)));
    }
    Ok(Some(Cow::Owned(format!("{{{}}}", members.join(",")))))
}

/// Whether a digit follows the name of an id parameter. The quoted names cannot occur inside a JSON
/// string, because their quotes would be escaped.
fn may_hold_number(text: &str) -> bool {
    NAMES.iter().any(|name| {
        text.match_indices(&format!("\"{name}\"")).any(|(at, found)| {
            let rest = text[at + found.len()..].trim_start_matches([' ', '\n', '\r', '\t', ':', '"']);
            rest.starts_with(|c: char| c.is_ascii_digit())
        })
    })
}

async fn resolve_list<'r>(ctx: &RpcContext, method: &Method, text: &'r str) -> Result<Cow<'r, str>, Fault> {
    let Ok(values) = serde_json::from_str::<Vec<&RawValue>>(text) else { return Ok(Cow::Borrowed(text)) };
    let names = method.param_names();
    if values.len() > names.len() {
        // Parsing the parameters reports it.
        return Ok(Cow::Borrowed(text));
    }
    let mut is_changed = false;
    let mut list = Vec::with_capacity(values.len());
    for (at, value) in values.into_iter().enumerate() {
        let name = names.get(at).copied().filter(|name| NAMES.contains(name));
        let id = match name {
            Some(name) => find_id(ctx, name, value.get()).await?,
            None => None,
        };
        is_changed |= id.is_some();
        list.push(id.unwrap_or_else(|| value.get().to_owned()));
    }
    Ok(if is_changed { Cow::Owned(format!("[{}]", list.join(","))) } else { Cow::Borrowed(text) })
}

async fn resolve_answers(ctx: &RpcContext, text: &str) -> Result<Option<String>, Fault> {
    let Ok(Value::Array(mut answers)) = serde_json::from_str(text) else { return Ok(None) };
    for answer in &mut answers {
        let Some(request_id) = answer.get_mut("request_id") else { continue };
        if let Some(id) = find_id(ctx, "request_id", &request_id.to_string()).await? {
            *request_id = serde_json::from_str(&id).unwrap_or_default();
        }
    }
    Ok(Some(Value::Array(answers).to_string()))
}

/// Returns the matching id as JSON, if the value is a number.
async fn find_id(ctx: &RpcContext, name: &str, value: &str) -> Result<Option<String>, Fault> {
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| !text.starts_with('+'));
    let text = value.trim().trim_matches('"');
    let id = if name == "session_id" {
        let Some(number) = number(text) else { return Ok(None) };
        ctx.registry.numbered(number).await.map_err(convert::fault)?.to_string()
    } else {
        let parts = text.split_once('.').and_then(|(session, nth)| Some((number(session)?, number(nth)?)));
        let Some((session, nth)) = parts.filter(|_| value.starts_with('"')) else { return Ok(None) };
        ctx.registry.numbered_request(session, nth).await.map_err(convert::fault)?
    };
    Ok(Some(format!("\"{id}\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digits_after_id_parameter_are_looked_up() {
        for (text, expected) in [
            (r#"{"session_id":12}"#, true),
            (r#"{"session_id" : "12"}"#, true),
            (r#"{"answers":[{"request_id":"3.1"}]}"#, true),
            (r#"{"session_id":"ses_0190f2a4-0000-7000-8000-000000000001"}"#, false),
            (r#"{"input":"\"session_id\":12","session_id":"ses_1"}"#, false),
            ("{}", false),
        ] {
            assert_eq!(may_hold_number(text), expected, "{text}");
        }
    }
}
