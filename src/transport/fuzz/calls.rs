//! The replies that JSON-RPC 2.0 and the specification require for a text. They are computed a second
//! time from the text alone, with ordinary maps, and compared with the dispatcher's replies.

use std::collections::HashMap;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::super::limits::Limits;

/// The required replies for a whole message.
#[derive(Debug)]
pub(super) enum ExpectedReplies {
    Nothing,
    One(Reply),
    Batch(Vec<Reply>),
}

#[derive(Debug)]
pub(super) struct Reply {
    pub id: String,
    pub outcome: Outcome,
}

#[derive(Debug)]
pub(super) enum Outcome {
    /// Exactly this result.
    Result(String),
    /// Any text as a result.
    Subscription,
    /// An error with this code.
    Error(i64),
}

/// One call, or the error to reply with.
enum Element {
    Call { id: Option<String>, method: String, params: Option<String> },
    Refused(Reply),
}

type Members<'a> = HashMap<String, &'a RawValue>;

pub(super) fn expected_replies(message: &[u8], limits: &Limits) -> ExpectedReplies {
    let refused = |code| ExpectedReplies::One(refusal("null", code));
    let Ok(text) = std::str::from_utf8(message) else { return refused(-32700) };
    if serde_json::from_str::<IgnoredAny>(text).is_err() {
        return refused(-32700);
    }
    if let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(text) {
        if elements.is_empty() || elements.len() > limits.max_batch {
            return refused(-32600);
        }
        let replies = elements.iter().enumerate().filter_map(|(at, element)| {
            match read(element.get(), limits).unwrap_or_else(|| Element::Refused(refusal("null", -32600))) {
                Element::Call { id: Some(id), .. } if at >= limits.max_in_flight => {
                    Some(refusal(&id, -32001))
                }
                element => answer(element),
            }
        });
        let replies: Vec<Reply> = replies.collect();
        return if replies.is_empty() { ExpectedReplies::Nothing } else { ExpectedReplies::Batch(replies) };
    }
    if !text.trim_ascii_start().starts_with('{') {
        return refused(-32600);
    }
    // A name that is half a surrogate pair is not text, so the whole message is invalid.
    let Some(element) = read(text, limits) else { return refused(-32700) };
    answer(element).map_or(ExpectedReplies::Nothing, ExpectedReplies::One)
}

fn refusal(id: &str, code: i64) -> Reply {
    Reply { id: id.into(), outcome: Outcome::Error(code) }
}

/// `None` if it cannot be read as an object.
fn read(text: &str, limits: &Limits) -> Option<Element> {
    let members: Members<'_> = serde_json::from_str(text).ok()?;
    let raw = |name: &str| members.get(name).map(|raw| raw.get().to_owned());
    let id = raw("id");
    if id.as_deref().is_some_and(|id| id.starts_with(['{', '[', 't', 'f'])) {
        return Some(Element::Refused(refusal("null", -32600)));
    }
    let invalid = Some(Element::Refused(refusal(id.as_deref().unwrap_or("null"), -32600)));
    let string = |name: &str| serde_json::from_str::<String>(&raw(name)?).ok();
    if string("jsonrpc").as_deref() != Some("2.0") {
        return invalid;
    }
    let Some(method) = string("method") else { return invalid };
    let params = raw("params");
    if params
        .as_deref()
        .is_some_and(|params| !params.starts_with(['{', '[']) || depth(params) > limits.max_depth)
    {
        return invalid;
    }
    Some(Element::Call { id, method, params })
}

/// The replies of the methods in [`super::dispatch`].
fn answer(element: Element) -> Option<Reply> {
    let (id, method, params) = match element {
        Element::Refused(reply) => return Some(reply),
        Element::Call { id, method, params } => (id?, method, params),
    };
    let outcome = match method.as_str() {
        "echo" | "later" => Outcome::Result(params.unwrap_or_else(|| "null".into())),
        "settled" => Outcome::Error(-32014),
        "strange" => Outcome::Error(-32099),
        "typed" => match params.as_deref().map(serde_json::from_str::<[u8; 1]>) {
            Some(Ok([number])) => Outcome::Result(number.to_string()),
            _ => Outcome::Error(-32602),
        },
        "follow" => Outcome::Subscription,
        _ => Outcome::Error(-32601),
    };
    Some(Reply { id, outcome })
}

/// Nesting depth of valid JSON.
fn depth(json: &str) -> usize {
    // Without its strings, only brackets matter.
    let mut bare = String::new();
    let mut rest = json;
    while let Some(quote) = rest.find('"') {
        bare.push_str(&rest[..quote]);
        rest = &rest[quote + 1..];
        while !rest.starts_with('"') {
            let skip = if rest.starts_with('\\') { 2 } else { rest.chars().next().map_or(0, char::len_utf8) };
            rest = &rest[skip..];
        }
        rest = &rest[1..];
    }
    bare.push_str(rest);
    let mut open = 0usize;
    bare.chars().fold(0, |deepest, c| {
        match c {
            '[' | '{' => open += 1,
            ']' | '}' => open -= 1,
            _ => {}
        }
        deepest.max(open)
    })
}
