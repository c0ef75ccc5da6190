//! Keys that restrict which tools of a server are used, by the names that other programs have for them.

use serde_json::{Map, Value};

use crate::tool_lists::matches;

/// Lists of tools that are not used, in lower case without `-` and `_`.
const DENY_KEYS: [&str; 13] = [
    "denytools",
    "deniedtools",
    "disabledtools",
    "disabletools",
    "disallowedtools",
    "excludetools",
    "excludedtools",
    "blockedtools",
    "forbiddentools",
    "toolsdeny",
    "toolsexclude",
    "tooldenylist",
    "toolblacklist",
];
/// Lists of the only tools that are used.
const ALLOW_KEYS: [&str; 12] = [
    "allowtools",
    "allowedtools",
    "includetools",
    "includedtools",
    "enabledtools",
    "enabletools",
    "onlytools",
    "toolsallow",
    "toolsinclude",
    "toolallowlist",
    "toolwhitelist",
    "tools",
];
/// Keys that only allow calls, which a file of servers cannot do.
const GRANT_KEYS: [&str; 6] =
    ["alwaysallow", "autoapprove", "autoallow", "autoapproved", "alwaysallowed", "trust"];
/// Other names of `enabled`.
const SWITCH_KEYS: [&str; 3] = ["isactive", "active", "enable"];
/// Words in keys that may restrict something.
const RESTRICTING_WORDS: [&str; 16] = [
    "allow",
    "deny",
    "denied",
    "disabled",
    "exclud",
    "includ",
    "blocked",
    "forbid",
    "restrict",
    "readonly",
    "whitelist",
    "blacklist",
    "prohibit",
    "banned",
    "permission",
    "approval",
];

/// A key without case, `-` and `_`.
fn normalized(key: &str) -> String {
    key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Gives the restrictions of an entry the names that this daemon has for them. Several lists of denied tools add up;
/// of several lists of allowed tools, each must have a tool.
///
/// # Errors
/// A restriction is not understood. The text is for users.
pub(super) fn rename_keys(entry: &mut Map<String, Value>) -> Result<(), String> {
    let (mut allowed, mut denied): (Option<Vec<String>>, Vec<String>) = (None, Vec::new());
    let keys: Vec<String> = entry.keys().cloned().collect();
    for key in keys {
        let name = normalized(&key);
        if DENY_KEYS.contains(&name.as_str()) {
            let list = entry.remove(&key).unwrap_or_default();
            let list = names(&key, list)?.unwrap_or_default();
            if let Some(text) = list.iter().find(|text| text.contains('(')) {
                return Err(format!("{key}: {text:?} is no name of a tool"));
            }
            denied.extend(list);
        } else if ALLOW_KEYS.contains(&name.as_str()) {
            let list = entry.remove(&key).unwrap_or_default();
            if let Some(list) = names(&key, list)? {
                allowed = Some(match allowed {
                    None => list,
                    Some(known) => both(&known, &list),
                });
            }
        } else if GRANT_KEYS.contains(&name.as_str()) {
            let value = entry.remove(&key).unwrap_or_default();
            if !matches!(value, Value::Null | Value::Bool(false)) {
                entry.insert("always_allow".into(), value);
            }
        } else if SWITCH_KEYS.contains(&name.as_str()) {
            let value = entry.remove(&key).unwrap_or_default();
            match value {
                Value::Null | Value::Bool(true) => {}
                Value::Bool(false) => _ = entry.insert("enabled".into(), false.into()),
                _ => return Err(format!("{key}: expected true or false")),
            }
        } else if !matches!(name.as_str(), "disabled" | "enabled") && may_restrict(&name, &entry[&key]) {
            return Err(format!(
                "the key {key:?} may restrict the server, and its meaning is not known; write allow_tools or deny_tools, \
                 or remove it"
            ));
        }
    }
    if let Some(allowed) = allowed {
        entry.insert("allow_tools".into(), allowed.into());
    }
    if !denied.is_empty() {
        entry.insert("deny_tools".into(), denied.into());
    }
    Ok(())
}

fn may_restrict(name: &str, value: &Value) -> bool {
    let permits = name.contains("allow") && !name.contains("disallow");
    let is_harmless = match value {
        Value::Null => true,
        Value::Bool(is_on) => *is_on == permits,
        Value::Array(list) => list.is_empty() && !permits,
        Value::Object(map) => map.is_empty() && !permits,
        Value::String(_) | Value::Number(_) => false,
    };
    RESTRICTING_WORDS.iter().any(|word| name.contains(word)) && !is_harmless
}

/// A list of names; `None` if the value is absent.
fn names(key: &str, value: Value) -> Result<Option<Vec<String>>, String> {
    let wrong = || format!("{key}: expected a list of names of tools");
    match value {
        Value::Null => Ok(None),
        Value::Array(list) => {
            let text = |value: &Value| value.as_str().map(|text| text.trim().to_owned()).ok_or_else(wrong);
            list.iter().map(text).collect::<Result<_, _>>().map(Some)
        }
        _ => Err(wrong()),
    }
}

/// The patterns of each list that the other list covers.
fn both(one: &[String], other: &[String]) -> Vec<String> {
    let within = |list: &[String], text: &String| list.iter().any(|pattern| matches(pattern, text));
    let mut found: Vec<String> = one.iter().filter(|text| within(other, text)).cloned().collect();
    found.extend(other.iter().filter(|text| within(one, text) && !one.contains(text)).cloned());
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn restrictions_get_the_names_of_this_daemon() {
        for (entry, expected) in [
            (json!({"disabledTools": ["a", "b"]}), json!({"deny_tools": ["a", "b"]})),
            (json!({"excludeTools": ["a"], "deny_tools": ["b"]}), json!({"deny_tools": ["b", "a"]})),
            (json!({"disabled_tools": ["a"]}), json!({"deny_tools": ["a"]})),
            (json!({"disallowed-tools": ["a"]}), json!({"deny_tools": ["a"]})),
            (json!({"includeTools": ["a"]}), json!({"allow_tools": ["a"]})),
            (json!({"allowedTools": ["a*", "b"], "enabled_tools": ["ab"]}), json!({"allow_tools": ["ab"]})),
            (json!({"tools": ["*"]}), json!({"allow_tools": ["*"]})),
            (json!({"includeTools": []}), json!({"allow_tools": []})),
            (json!({"includeTools": null, "disabledTools": null}), json!({})),
            (json!({"alwaysAllow": ["a"]}), json!({"always_allow": ["a"]})),
            (json!({"autoApprove": []}), json!({"always_allow": []})),
            (json!({"isActive": false}), json!({"enabled": false})),
            (json!({"disabled": true, "timeout": 5}), json!({"disabled": true, "timeout": 5})),
            (
                json!({"tool_timeout_sec": 5, "allowInsecure": true}),
                json!({"tool_timeout_sec": 5, "allowInsecure": true}),
            ),
        ] {
            let mut entry = entry.as_object().expect("an object").clone();
            assert_eq!(rename_keys(&mut entry), Ok(()), "{entry:?}");
            assert_eq!(Value::Object(entry), expected);
        }
        for wrong in [
            json!({"disabledTools": "a"}),
            json!({"disabledTools": {"a": true}}),
            json!({"disabledTools": [1]}),
            json!({"excludeTools": ["a(b)"]}),
            json!({"includeTools": true}),
            json!({"tools": {"a": false}}),
            json!({"readOnly": true}),
            json!({"allowWrite": false}),
            json!({"toolPermissions": {"a": "deny"}}),
            json!({"blockedResources": ["x"]}),
            json!({"isActive": "no"}),
        ] {
            let mut entry = wrong.as_object().expect("an object").clone();
            assert!(rename_keys(&mut entry).is_err(), "{wrong}");
        }
    }
}
