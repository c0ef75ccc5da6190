//! Parses `params` once, to a map of named values, and converts the map to a typed value. Unknown fields are refused
//! with their path.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::convert::invalid_param;
use api::methods::Method;
use api::{Code, Fault};
use types::typed_json::{self, WrongJson};
use types::unique_json;

/// Maximum bytes of a field name that an error shows.
const MAX_SHOWN_NAME_BYTES: usize = 64;
/// Maximum bytes of an idempotency key.
const MAX_KEY_BYTES: usize = 256;

/// Parameters by name.
pub(super) type NamedParams = Map<String, Value>;

/// Parses parameters that are given by name or by position in their declared order. Absent parameters,
/// `null` and an empty list are accepted as no parameters.
pub(super) fn parse(method: &Method, raw: Option<&str>) -> Result<NamedParams, Fault> {
    let raw = raw.map(str::trim).filter(|raw| !raw.is_empty()).unwrap_or("null");
    let params = unique_json::parse_unique(raw);
    match params.map_err(|error| Fault::new(Code::InvalidParams, error.to_string()))? {
        Value::Null => Ok(NamedParams::new()),
        Value::Object(named) => Ok(named),
        Value::Array(values) => name_by_position(method, values),
        _ => Err(Fault::new(Code::InvalidParams, "params: expected an object, a list, or null")),
    }
}

fn name_by_position(method: &Method, values: Vec<Value>) -> Result<NamedParams, Fault> {
    let names = method.param_names();
    if values.len() > names.len() {
        let why = match names.as_slice() {
            [] => format!("{} takes no parameters, got {}", method.name, values.len()),
            names => format!(
                "{} takes at most {} parameters ({}), got {}",
                method.name,
                names.len(),
                names.join(", "),
                values.len()
            ),
        };
        return Err(Fault::new(Code::InvalidParams, why).with("path", format!("[{}]", names.len())));
    }
    // In parameters by position, `null` omits a parameter.
    let named_values = names.iter().zip(values).filter(|(_, value)| !value.is_null());
    Ok(named_values.map(|(name, value)| ((*name).to_owned(), value)).collect())
}

fn refuse_unknown(method: &Method, named: &NamedParams) -> Result<(), Fault> {
    let is_given = |name: &&&str| named.get(**name).is_some_and(|value| !value.is_null());
    if let Some(name) = method.traits.unsupported_params.iter().find(is_given) {
        return Err(unsupported(name, &format!("{name} is not built yet; leave it out")));
    }
    let key = named.get("idempotency_key").and_then(Value::as_str);
    if key.is_some_and(|key| key.len() > MAX_KEY_BYTES) {
        return Err(invalid_param("idempotency_key", &format!("expected at most {MAX_KEY_BYTES} bytes")));
    }
    let names = method.param_names();
    let is_known = |name: &str| names.contains(&name) || method.traits.unsupported_params.contains(&name);
    match named.keys().find(|name| !is_known(name)) {
        Some(name) => {
            let shown = shorten_name(name);
            Err(unknown(&shown, &format!("{} has no parameter `{shown}`", method.name), &names))
        }
        None => Ok(()),
    }
}

/// Shortens the name of a field for an error.
fn shorten_name(name: &str) -> String {
    match name.len() > MAX_SHOWN_NAME_BYTES {
        true => format!("{}…", &name[..name.floor_char_boundary(MAX_SHOWN_NAME_BYTES)]),
        false => name.to_owned(),
    }
}

/// Converts parameters to their type.
pub(super) fn to_typed<P: DeserializeOwned>(method: &Method, named: NamedParams) -> Result<P, Fault> {
    refuse_unknown(method, &named)?;
    let (typed, unknown_paths) =
        typed_json::from_value_with_unknown(Value::Object(named)).map_err(wrong_value)?;
    // A parameter that this build does not support may be `null`.
    match unknown_paths.iter().find(|path| !method.traits.unsupported_params.contains(&path.as_str())) {
        Some(path) => {
            let path = shorten_name(path);
            Err(unknown(&path, &format!("unknown field `{path}`"), &[]))
        }
        None => Ok(typed),
    }
}

fn wrong_value(wrong: WrongJson) -> Fault {
    let WrongJson { path, why } = wrong;
    // The path of a missing or unknown field does not contain the field itself, so append its name.
    let field = ["missing field `", "unknown field `"].iter().find_map(|start| why.strip_prefix(start));
    let field = field.and_then(|rest| rest.split('`').next());
    let path = match (path.as_str(), field) {
        (".", Some(name)) => name.to_owned(),
        (outer, Some(name)) if !outer.ends_with(name) => format!("{outer}.{name}"),
        _ => path,
    };
    if path == "." { Fault::new(Code::InvalidParams, why) } else { invalid_param(&path, &why) }
}

/// The fault for an unknown field. It names the most similar known field.
fn unknown(path: &str, why: &str, names: &[&str]) -> Fault {
    // The time of the comparison grows with the square of the length, so skip long names.
    let names = if path.len() > MAX_SHOWN_NAME_BYTES { &[] } else { names };
    let likeness = |name: &&&str| (strsim::jaro_winkler(path, name) * 1000.0) as u32;
    let nearest = names.iter().max_by_key(likeness).filter(|name| likeness(name) > 800);
    let hint = nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    let fault = invalid_param(path, &format!("{why}{hint}"));
    match nearest {
        Some(name) => fault.with("nearest", *name),
        None => fault,
    }
}

fn unsupported(path: &str, why: &str) -> Fault {
    Fault::new(Code::Unsupported, why).with("path", path)
}
