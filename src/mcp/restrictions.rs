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
const ON_KEYS: [&str; 5] = ["isactive", "active", "enable", "enabled", "isenabled"];
/// Other names of `disabled`.
const OFF_KEYS: [&str; 4] = ["disable", "disabled", "isdisabled", "off"];
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

/// Further words, which comments may have. All but the first two take something away.
const SUSPICIOUS_WORDS: [&str; 12] = [
    "tool", "enabl", "disab", "hidden", "hide", "ignor", "skip", "omit", "filter", "block", "exclu",
    "conceal",
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
        } else if matches!(key.as_str(), "disabled" | "enabled") {
            // These are the names that the daemon has.
        } else if ON_KEYS.contains(&name.as_str()) || OFF_KEYS.contains(&name.as_str()) {
            let is_on_key = ON_KEYS.contains(&name.as_str());
            match entry.remove(&key) {
                None | Some(Value::Null) => {}
                Some(Value::Bool(is_set)) if is_set == is_on_key => {}
                Some(Value::Bool(_)) => _ = entry.insert("enabled".into(), false.into()),
                Some(_) => return Err(format!("{key}: expected true or false")),
            }
        } else if may_restrict(&key, &name, &entry[&key]) {
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

/// Whether a key without known meaning may restrict the server with this value.
fn may_restrict(key: &str, name: &str, value: &Value) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let is_comment = key.starts_with(['_', '/', '#']);
    let is_known = key == "sandboxEnabled" || name.contains("timeout");
    let is_suspicious = !is_comment && !is_known && has(&SUSPICIOUS_WORDS);
    if !is_suspicious && !has(&RESTRICTING_WORDS) {
        return false;
    }
    let takes = || has(&SUSPICIOUS_WORDS[2..]);
    // `false` as the value of `useTools` takes all of them, and `true` may mean only some.
    if is_suspicious && name.contains("tool") && !takes() && !has(&RESTRICTING_WORDS) {
        return !(value.is_null() || value.as_object().is_some_and(Map::is_empty));
    }
    let permits =
        (name.contains("allow") && !name.contains("disallow")) || (name.contains("enabl") && !takes());
    let is_harmless = match value {
        Value::Null => true,
        Value::Bool(is_on) => *is_on == permits,
        Value::Array(list) => list.is_empty() && !permits,
        Value::Object(map) => map.is_empty() && !permits,
        Value::String(_) | Value::Number(_) => false,
    };
    !is_harmless
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
            (json!({"Disabled": true, "isEnabled": true}), json!({"enabled": false})),
            (json!({"hiddenTools": [], "hidden": false}), json!({"hiddenTools": [], "hidden": false})),
            (json!({"_toolNote": "x", "toolTimeout": 5}), json!({"_toolNote": "x", "toolTimeout": 5})),
            (json!({"sandboxEnabled": true}), json!({"sandboxEnabled": true})),
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
            json!({"off": 1}),
            json!({"hiddenTools": ["a"]}),
            json!({"ignoreTools": ["a"]}),
            json!({"skipTools": ["a"]}),
            json!({"skipped": "a"}),
            json!({"omit": ["a"]}),
            json!({"toolFilter": {"a": false}}),
            json!({"tool_prefix": "a"}),
            json!({"useTools": false}),
            json!({"filter": "a*"}),
            json!({"hideWrites": true}),
            json!({"enableWrites": false}),
            json!({"blockWrites": true}),
            json!({"exclude": ["a"]}),
        ] {
            let mut entry = wrong.as_object().expect("an object").clone();
            assert!(rename_keys(&mut entry).is_err(), "{wrong}");
        }
    }
}
