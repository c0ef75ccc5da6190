//! Records calls as examples: the first one of each method, with ids, times and paths replaced, and cut to what a reader
//! needs. Compares their shape with the stored ones, because values differ from run to run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use serde_json::{Map, Value, json};

use crate::support::client::Client;

/// Maximum characters of a shown text.
const MAX_TEXT: usize = 160;
/// Maximum entries of a shown list.
const MAX_ENTRIES: usize = 2;
/// Levels of objects and lists that are shown.
const MAX_DEPTH: usize = 7;
/// The time of all examples, in milliseconds.
const TIME_MS: u64 = 1_767_225_600_000;

/// A client that records what it calls.
pub struct Recorder {
    pub client: Client,
    /// Beginnings of texts and what stands for them, the longest first.
    pub places: Vec<(PathBuf, &'static str)>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    examples: BTreeMap<String, Value>,
    refusals: Vec<String>,
    /// Ids and digests so far.
    names: BTreeMap<String, String>,
}

impl Recorder {
    pub fn new(client: Client, places: Vec<(PathBuf, &'static str)>) -> Self {
        Self { client, places, seen: Mutex::default() }
    }

    /// Calls a method, and records the call unless the method has an example. The reply is null if it was refused.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        let result = self.client.try_call(method, params.clone()).await;
        let mut seen = self.seen.lock().expect("not poisoned");
        let result = match result {
            Ok(result) => result,
            Err(refusal) => {
                eprintln!("{method} {params} was refused: {refusal:?}");
                seen.refusals.push(format!("{method} {params}: {refusal:?}"));
                return Value::Null;
            }
        };
        if !seen.examples.contains_key(method) {
            let result = match method {
                // The document contains all examples.
                "rpc.discover" => {
                    json!({"openrpc": result["openrpc"], "info": result["info"], "methods": []})
                }
                _ => result.clone(),
            };
            let example = json!({
                "params": self.shown(&mut seen, "", &params, 0),
                "result": self.shown(&mut seen, "", &result, 0),
            });
            seen.examples.insert(method.to_owned(), example);
        }
        result
    }

    /// All examples, once no call was refused.
    pub fn examples(&self) -> BTreeMap<String, Value> {
        let seen = self.seen.lock().expect("not poisoned");
        assert!(seen.refusals.is_empty(), "refused:\n{}", seen.refusals.join("\n"));
        seen.examples.clone()
    }

    fn shown(&self, seen: &mut Seen, name: &str, value: &Value, depth: usize) -> Value {
        match value {
            Value::Object(_) if depth == MAX_DEPTH => json!({}),
            Value::Array(_) if depth == MAX_DEPTH => json!([]),
            Value::Object(members) => {
                let member = |(name, value): (&String, &Value)| {
                    (self.text(seen, name), self.shown(seen, name, value, depth + 1))
                };
                Value::Object(members.iter().map(member).collect::<Map<_, _>>())
            }
            Value::Array(list) => {
                list.iter().take(MAX_ENTRIES).map(|value| self.shown(seen, name, value, depth + 1)).collect()
            }
            Value::String(text) => json!(self.text(seen, text)),
            Value::Number(number) => match number.as_u64() {
                Some(at) if name.ends_with("_ms") && at > 1_000_000_000_000 => json!(TIME_MS),
                _ if name == "pid" => json!(4242),
                _ if name == "uid" => json!(1000),
                _ => value.clone(),
            },
            Value::Null | Value::Bool(_) => value.clone(),
        }
    }

    fn text(&self, seen: &mut Seen, text: &str) -> String {
        let mut text = text.to_owned();
        for (place, name) in &self.places {
            text = text.replace(&*place.to_string_lossy(), name);
        }
        let mut shown = String::new();
        let is_of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        for part in text.split_inclusive(|c| !is_of_word(c)) {
            let word = part.trim_end_matches(|c| !is_of_word(c));
            shown.push_str(&seen.name(word));
            shown.push_str(&part[word.len()..]);
        }
        match shown.char_indices().nth(MAX_TEXT) {
            Some((end, _)) => format!("{}…", &shown[..end]),
            None => shown,
        }
    }
}

impl Seen {
    /// An id or a digest gets the next number of its kind; another word stays as it is.
    fn name(&mut self, word: &str) -> String {
        let (kind, rest) = word.rsplit_once('_').unwrap_or(("", word));
        let is_hex = rest.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        if rest.len() < 32 || !is_hex {
            return word.to_owned();
        }
        if let Some(known) = self.names.get(word) {
            return known.clone();
        }
        let number =
            1 + self.names.keys().filter(|name| name.rsplit_once('_').unwrap_or(("", "")).0 == kind).count();
        let name = match (kind, rest.len()) {
            (_, 36) => format!("{kind}_019b76da-a800-7000-8000-{number:012}"),
            ("", digits) => format!("{number:0digits$}"),
            (_, digits) => format!("{kind}_{number:0digits$}"),
        };
        self.names.insert(word.to_owned(), name.clone());
        name
    }
}

/// What clients of an older daemon sent or read and this one does not accept or send: members may be added, but none is
/// removed and none changes its type.
pub fn broken_promise(path: &str, old: &Value, new: &Value, varies: &[&str]) -> Option<String> {
    if varies.contains(&path) {
        return None;
    }
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => old.iter().find_map(|(name, old)| match new.get(name) {
            Some(new) => broken_promise(&format!("{path}/{name}"), old, new, varies),
            None => Some(format!("{path}/{name} is gone")),
        }),
        (Value::Array(old), Value::Array(new)) => {
            let (old, new) = (old.first()?, new.first()?);
            broken_promise(&format!("{path}/0"), old, new, varies)
        }
        (old, new) => difference(path, old, new, varies),
    }
}

/// The first place where two examples differ in members or types. Values may differ, and so may what `varies` names:
/// parts that depend on the machine.
pub fn difference(path: &str, old: &Value, new: &Value, varies: &[&str]) -> Option<String> {
    if varies.contains(&path) {
        return None;
    }
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let names = |object: &Map<String, Value>| {
                let name = |name: &String| format!("{path}/{name}");
                object.keys().map(name).filter(|path| !varies.contains(&path.as_str())).collect::<Vec<_>>()
            };
            if names(old) != names(new) {
                return Some(format!("{path} has other members: {:?}, now {:?}", names(old), names(new)));
            }
            let both = old.iter().filter_map(|(name, old)| Some((name, old, new.get(name)?)));
            both.into_iter()
                .find_map(|(name, old, new)| difference(&format!("{path}/{name}"), old, new, varies))
        }
        (Value::Array(old), Value::Array(new)) => match (old.first(), new.first()) {
            (Some(old), Some(new)) => difference(&format!("{path}/0"), old, new, varies),
            (None, None) => None,
            _ => Some(format!("{path} is empty in one of both")),
        },
        (Value::String(_), Value::String(_))
        | (Value::Number(_), Value::Number(_))
        | (Value::Bool(_), Value::Bool(_))
        | (Value::Null, Value::Null) => None,
        _ => Some(format!("{path} has another type: {old}, now {new}")),
    }
}
