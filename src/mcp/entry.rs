//! One server's entry in the forms of Claude Code, Cursor, VS Code, Windsurf, Zed, Gemini and Codex.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::config::ServerConfig;
use crate::restrictions;
use types::typed_json;

/// Numbers below this are seconds: no program has time limits of less than a second.
const MIN_MILLISECONDS: f64 = 1_000.0;

/// The keys of [`ServerConfig`].
const OWN_KEYS: [&str; 19] = [
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "headers_command",
    "transport",
    "enabled",
    "disabled",
    "timeout",
    "startup_timeout",
    "roots",
    "allow_tools",
    "deny_tools",
    "always_allow",
    "sandbox",
    "elicitation",
    "sampling",
];
/// Other names of these keys. Of two that are present, the earlier one in this table counts.
const OTHER_NAMES: [(&str, &str); 14] = [
    ("httpUrl", "url"),
    ("serverUrl", "url"),
    ("server_url", "url"),
    ("type", "transport"),
    ("http_headers", "headers"),
    ("headersHelper", "headers_command"),
    ("environment", "env"),
    ("arguments", "args"),
    ("workingDirectory", "cwd"),
    ("working_directory", "cwd"),
    ("startupTimeout", "startup_timeout"),
    ("tool_timeout_sec", "timeout"),
    ("startup_timeout_sec", "startup_timeout"),
    ("startup_timeout_ms", "startup_timeout"),
];
/// Keys that only describe a server.
const DESCRIBING_KEYS: [&str; 14] = [
    "description",
    "name",
    "title",
    "displayName",
    "display_name",
    "icon",
    "gallery",
    "version",
    "tags",
    "author",
    "homepage",
    "$schema",
    "comment",
    "required",
];

#[derive(Debug)]
pub(super) struct ReadEntry {
    pub config: ServerConfig,
    /// Keys that are not supported.
    pub unsupported: Vec<String>,
}

/// Reads an entry.
///
/// # Errors
/// A part that the server needs, or one that may restrict it, is not understood. The text is for users.
pub(super) fn read_entry(value: Value) -> Result<ReadEntry, String> {
    let Value::Object(mut entry) = value else { return Err("expected an object".into()) };
    flatten_command(&mut entry)?;
    restrictions::rename_keys(&mut entry)?;
    rename(&mut entry)?;
    split_command(&mut entry);
    add_named_variables(&mut entry)?;
    write_texts(&mut entry);
    let unsupported = take_unsupported(&mut entry);
    let mut config: ServerConfig =
        typed_json::from_value(Value::Object(entry)).map_err(|error| error.to_string())?;
    (config.enabled, config.disabled) = (config.is_enabled(), false);
    config.transport()?;
    Ok(ReadEntry { config, unsupported })
}

/// Reads a configuration that is written now, for the server `name`: nothing in it may be left unused.
///
/// # Errors
/// A part of it is not understood. The text is for users.
pub fn parse_config(name: &str, value: Value) -> Result<ServerConfig, String> {
    let ReadEntry { config, unsupported } = read_entry(value)?;
    if let Some(key) = unsupported.first() {
        return Err(format!("unknown field `{key}`, expected one of {}", OWN_KEYS.join(", ")));
    }
    config.check_written(name)?;
    Ok(config)
}

/// Gives keys the names that this daemon has for them.
fn rename(entry: &mut Map<String, Value>) -> Result<(), String> {
    for (other, own) in OTHER_NAMES {
        let Some(value) = entry.remove(other) else { continue };
        let value = match own {
            "timeout" | "startup_timeout" => duration(other, value)?,
            _ => value,
        };
        if other == "httpUrl" || !entry.contains_key(own) {
            entry.insert(own.to_owned(), value);
        }
    }
    for key in ["timeout", "startup_timeout"] {
        if let Some(value) = entry.remove(key) {
            entry.insert(key.to_owned(), duration(key, value)?);
        }
    }
    if let Some(Value::String(kind)) = entry.get_mut("transport") {
        let plain = kind.to_ascii_lowercase().replace(['-', '_', ' '], "");
        *kind = match plain.as_str() {
            "stdio" | "local" => "stdio".into(),
            "http" | "streamablehttp" | "remote" => "http".into(),
            "sse" => "sse".into(),
            _ => {
                return Err(format!("the transport {kind:?} is not supported; there are `stdio` and `http`"));
            }
        };
    }
    // VS Code has a switch and a table.
    if let Some(value) = entry.remove("sandboxEnabled") {
        entry.entry("sandbox").or_insert(value);
    }
    Ok(())
}

/// A time limit as a text with its unit.
fn duration(key: &str, value: Value) -> Result<Value, String> {
    let Some(number) = value.as_f64() else { return Ok(value) };
    let ms = match key {
        _ if key.ends_with("_ms") => number,
        _ if key.ends_with("_sec") || number < MIN_MILLISECONDS => number * 1_000.0,
        _ => number,
    };
    if !(1.0..=1e12).contains(&ms) {
        return Err(format!("{key}: {number} is no time limit"));
    }
    Ok(format!("{}ms", ms as u64).into())
}

/// Moves the keys of a `command` that is an object, as older Zed has it, into the entry.
///
/// # Errors
/// The entry has one of these keys itself, with another value.
fn flatten_command(entry: &mut Map<String, Value>) -> Result<(), String> {
    let Some(Value::Object(command)) = entry.get_mut("command") else { return Ok(()) };
    let mut command = std::mem::take(command);
    entry.remove("command");
    if let Some(path) = command.remove("path").or_else(|| command.remove("command")) {
        entry.insert("command".into(), path);
    }
    for (key, value) in command {
        if entry.get(&key).is_some_and(|known| *known != value) {
            return Err(format!("{key} has two values, one of them in command"));
        }
        entry.insert(key, value);
    }
    Ok(())
}

/// Takes a `command` apart that is a list.
fn split_command(entry: &mut Map<String, Value>) {
    match entry.remove("command") {
        Some(Value::Array(mut words)) if !words.is_empty() => {
            entry.insert("command".into(), words.remove(0));
            if let Some(Value::Array(args)) = entry.get("args") {
                words.extend(args.iter().cloned());
            }
            entry.insert("args".into(), words.into());
        }
        Some(command) => _ = entry.insert("command".into(), command),
        None => {}
    }
}

/// Codex names variables of the environment instead of writing `${NAME}`.
fn add_named_variables(entry: &mut Map<String, Value>) -> Result<(), String> {
    let mut pairs: Vec<(&str, String, String)> = Vec::new();
    if let Some(names) = entry.remove("env_vars") {
        let names: Vec<String> =
            serde_json::from_value(names).map_err(|_| "env_vars: expected a list of names of variables")?;
        pairs.extend(names.into_iter().map(|name| ("env", name.clone(), format!("${{{name}:-}}"))));
    }
    if let Some(name) = entry.remove("bearer_token_env_var") {
        let name = name.as_str().ok_or("bearer_token_env_var: expected the name of a variable")?;
        pairs.push(("headers", "Authorization".into(), format!("Bearer ${{{name}}}")));
    }
    if let Some(headers) = entry.remove("env_http_headers") {
        let headers: BTreeMap<String, String> = serde_json::from_value(headers)
            .map_err(|_| "env_http_headers: expected names of headers with names of variables")?;
        pairs.extend(headers.into_iter().map(|(header, name)| ("headers", header, format!("${{{name}}}"))));
    }
    for (table, key, value) in pairs {
        let table = entry.entry(table).or_insert_with(|| json!({}));
        if let Some(table) = table.as_object_mut() {
            table.entry(key).or_insert_with(|| value.into());
        }
    }
    Ok(())
}

/// Writes numbers and switches as texts where only texts are possible, and leaves out absent values.
fn write_texts(entry: &mut Map<String, Value>) {
    entry.retain(|_, value| !value.is_null());
    let write = |value: &mut Value| {
        if matches!(value, Value::Number(_) | Value::Bool(_)) {
            *value = value.to_string().into();
        }
    };
    for key in ["env", "headers"] {
        if let Some(Value::Object(table)) = entry.get_mut(key) {
            table.retain(|_, value| !value.is_null());
            table.values_mut().for_each(write);
            table.values_mut().for_each(write_variable);
        }
    }
    if let Some(Value::Array(args)) = entry.get_mut("args") {
        args.iter_mut().for_each(write);
    }
}

/// Gemini writes a value that is a variable without braces.
fn write_variable(value: &mut Value) {
    let is_variable = |name: &&str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if let Some(name) = value.as_str().and_then(|text| text.strip_prefix('$')).filter(is_variable) {
        *value = format!("${{{name}}}").into();
    }
}

/// Removes the keys that are not supported, and returns those that are more than a description.
fn take_unsupported(entry: &mut Map<String, Value>) -> Vec<String> {
    // Zed says where a server comes from.
    if entry.get("source").is_some_and(|source| source == "custom") {
        entry.remove("source");
    }
    let mut unsupported = Vec::new();
    entry.retain(|key, value| {
        let is_own = OWN_KEYS.contains(&key.as_str());
        let is_empty = match &value {
            Value::Object(map) => map.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Bool(is_on) => !*is_on,
            Value::String(text) => text.is_empty(),
            Value::Null | Value::Number(_) => false,
        };
        let is_description = DESCRIBING_KEYS.contains(&key.as_str()) || key.starts_with(['_', '/', '#']);
        if !is_own && !is_empty && !is_description {
            unsupported.push(key.clone());
        }
        is_own
    });
    unsupported
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TransportKind;

    fn config(entry: Value) -> ServerConfig {
        let shown = entry.to_string();
        let read = read_entry(entry).unwrap_or_else(|why| panic!("{shown}: {why}"));
        assert_eq!(read.unsupported, Vec::<String>::new(), "{shown}");
        read.config
    }

    fn program(command: &str, args: &[&str], env: &[(&str, &str)]) -> ServerConfig {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        ServerConfig {
            command: Some(command.into()),
            args: args.iter().map(ToString::to_string).collect(),
            env: env.iter().map(owned).collect(),
            ..ServerConfig::default()
        }
    }

    fn address(url: &str, headers: &[(&str, &str)]) -> ServerConfig {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        ServerConfig {
            url: Some(url.into()),
            headers: headers.iter().map(owned).collect(),
            ..ServerConfig::default()
        }
    }

    #[test]
    fn entries_of_all_programs_give_same_servers() {
        let npx = || program("npx", &["-y", "x"], &[("A", "b"), ("PORT", "3000")]);
        let env = json!({"A": "b", "PORT": 3000, "NONE": null});
        let stdio = || ServerConfig { transport: Some(TransportKind::Stdio), ..npx() };
        for (entry, expected) in [
            (json!({"command": "npx", "args": ["-y", "x"], "env": env}), npx()),
            (
                json!({"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": env, "gallery": true}),
                stdio(),
            ),
            (
                json!({"source": "custom", "command": {"path": "npx", "args": ["-y", "x"], "env": env}, "settings": {}}),
                npx(),
            ),
            (json!({"command": ["npx", "-y", "x"], "environment": env, "type": "local"}), stdio()),
            (
                json!({"command": "npx", "args": ["-y", "x"], "env": env, "description": "d", "trust": false}),
                npx(),
            ),
        ] {
            assert_eq!(config(entry.clone()), expected, "{entry}");
        }
        let http = |server| ServerConfig { transport: Some(TransportKind::Http), ..server };
        for (entry, expected) in [
            (
                json!({"type": "http", "url": "http://h", "headers": {"X": 1}}),
                http(address("http://h", &[("X", "1")])),
            ),
            (json!({"type": "streamable-http", "url": "http://h"}), http(address("http://h", &[]))),
            (json!({"serverUrl": "http://h"}), address("http://h", &[])),
            (json!({"httpUrl": "http://h", "url": "http://old"}), address("http://h", &[])),
            (
                json!({"url": "http://h", "bearer_token_env_var": "T", "env_http_headers": {"X": "V"}, "http_headers": {"Y": "z"}}),
                address("http://h", &[("Authorization", "Bearer ${T}"), ("X", "${V}"), ("Y", "z")]),
            ),
        ] {
            assert_eq!(config(entry.clone()), expected, "{entry}");
        }
        let gemini = config(json!({"command": "x", "env": {"A": "$TOKEN", "B": "$5", "C": "a $TOKEN"}}));
        assert_eq!(gemini, program("x", &[], &[("A", "${TOKEN}"), ("B", "$5"), ("C", "a $TOKEN")]));
        let codex = config(json!({"command": "x", "env_vars": ["TOKEN"]}));
        assert_eq!(codex.env["TOKEN"], "${TOKEN:-}");
    }

    #[test]
    fn time_limits_are_read_with_unit_of_their_program() {
        for (entry, timeout, startup) in [
            (json!({"timeout": 60}), Some(60_000), None),
            (json!({"timeout": 30000}), Some(30_000), None),
            (json!({"timeout": "5m"}), Some(300_000), None),
            (json!({"tool_timeout_sec": 2.5}), Some(2_500), None),
            (json!({"startup_timeout_sec": 20}), None, Some(20_000)),
            (json!({"startup_timeout_ms": 500}), None, Some(500)),
            (json!({"startup_timeout": "90s", "timeout": 1000}), Some(1_000), Some(90_000)),
        ] {
            let mut entry = entry.as_object().expect("an object").clone();
            entry.insert("command".into(), "x".into());
            let read = config(Value::Object(entry.clone()));
            let ms = |limit: Option<types::config_values::ConfigDuration>| limit.map(|limit| limit.millis());
            assert_eq!((ms(read.timeout), ms(read.startup_timeout)), (timeout, startup), "{entry:?}");
        }
        for wrong in [json!(0), json!(-1), json!("soon"), json!(true)] {
            assert!(read_entry(json!({"command": "x", "timeout": wrong})).is_err(), "{wrong}");
        }
    }

    #[test]
    fn restrictions_inside_command_of_zed_are_kept() {
        let zed = |inner: Value| {
            let mut command = json!({"path": "npx", "args": ["-y", "x"]});
            command.as_object_mut().expect("an object").extend(inner.as_object().expect("an object").clone());
            json!({"command": command})
        };
        let read = config(zed(json!({"disabledTools": ["danger"]})));
        assert_eq!((read.command.as_deref(), read.deny_tools), (Some("npx"), vec!["danger".to_owned()]));
        assert!(!config(zed(json!({"isEnabled": false}))).enabled);
        for wrong in [json!({"readOnly": true}), json!({"hiddenTools": ["a"]}), json!({"disabledTools": "a"})]
        {
            assert!(read_entry(zed(wrong.clone())).is_err(), "{wrong}");
        }
        let mut twice = zed(json!({"disabledTools": ["a"]}));
        twice["disabledTools"] = json!(["b"]);
        assert!(read_entry(twice).expect_err("two lists").contains("disabledTools"));
        let mut lists = zed(json!({"disabledTools": ["a"]}));
        lists["deny_tools"] = json!(["b"]);
        let mut denied = config(lists).deny_tools;
        denied.sort();
        assert_eq!(denied, ["a", "b"]);
    }

    #[test]
    fn switch_of_any_spelling_turns_server_off() {
        for (key, value) in [
            ("isEnabled", false),
            ("Enabled", false),
            ("ENABLED", false),
            ("is_enabled", false),
            ("disable", true),
            ("Disabled", true),
            ("isDisabled", true),
            ("off", true),
        ] {
            let entry = |value: Value| json!({"command": "x", key: value});
            assert!(!config(entry(value.into())).enabled, "{key}: {value}");
            assert!(config(entry((!value).into())).enabled, "{key}: {}", !value);
            assert!(read_entry(entry("no".into())).is_err(), "{key}");
        }
        assert!(!config(json!({"command": "x", "enabled": true, "isEnabled": false})).enabled);
        assert!(!config(json!({"command": "x", "disabled": false, "Disabled": true})).enabled);
    }

    #[test]
    fn keys_that_are_not_supported_are_named() {
        let read = read_entry(json!({
            "command": "x", "envFile": ".env", "oauth": {"clientId": "c"}, "dev": {}, "title": "t", "zork": 1,
        }))
        .expect("an entry");
        assert_eq!(read.unsupported, ["envFile", "oauth", "zork"]);
        for (wrong, part) in [
            (json!({"type": "ws", "url": "ws://h"}), "\"ws\""),
            (json!({"type": "sse", "url": "http://h"}), "sse"),
            (json!({"command": "x", "sandbox": {"filesystem": {}}}), "sandbox"),
            (json!({"command": "x", "env_vars": "A"}), "env_vars"),
            (json!({}), "command"),
            (json!("npx"), "object"),
        ] {
            let why = read_entry(wrong.clone()).expect_err("refused");
            assert!(why.contains(part), "{wrong}: {why}");
        }
        assert!(config(json!({"command": "x", "sandboxEnabled": true})).sandbox);
        assert!(!config(json!({"command": "x", "isActive": false})).enabled);
    }
}
