//! `initialize`: the version of the connection, the capabilities of the client, and the reply. Pure.

use serde_json::{Value, json};

use super::mapper::Features;
use super::schema::{InitializeParams, Version};
use super::wire::AcpError;

/// The version of the connection: 2 only if it was asked for and is allowed.
pub(super) fn agreed_version(newest: Version, wanted: &InitializeParams) -> Result<Version, AcpError> {
    let asked = wanted.protocol_version.as_u64().filter(|_| newest == Version::V2);
    match asked {
        Some(0) => Err(AcpError {
            code: UNSUPPORTED_VERSION,
            message: "protocolVersion: the versions 1 and 2 are supported".to_owned(),
            data: Some(json!({"requested": 0, "supported": [1, 2]})),
        }),
        // A client of a later version may describe itself in another way.
        Some(2) if !wanted.info.as_ref().is_some_and(|info| info["name"].is_string()) => {
            Err(AcpError::param("info", "expected the name and the version of the client"))
        }
        Some(2..) => Ok(Version::V2),
        Some(_) | None => Ok(Version::V1),
    }
}

/// The code of the protocol for a version that is not supported.
const UNSUPPORTED_VERSION: i32 = -32022;

/// The name of the client, and what it can show.
pub(super) fn described_client(version: Version, wanted: &InitializeParams) -> (String, Features) {
    let (info, features) = match version {
        Version::V1 => (&wanted.client_info, features(&wanted.client_capabilities)),
        Version::V2 => (&wanted.info, features_v2(&wanted.capabilities)),
    };
    (client_name(info.as_ref()), features)
}

/// The reply: what this program can do.
pub(super) fn reply(version: Version) -> Value {
    let info = json!({"name": "agentd", "title": "agentd", "version": env!("CARGO_PKG_VERSION")});
    if version == Version::V2 {
        let session = json!({
            "prompt": {"image": {}, "embeddedContext": {}},
            "mcp": {"stdio": {}, "http": {}},
            "delete": {},
            "additionalDirectories": {},
        });
        return json!({"protocolVersion": version.number(), "info": info, "capabilities": {"session": session},
            "_meta": {"steering": {"supported": true}}});
    }
    json!({
        "protocolVersion": version.number(),
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
            "mcpCapabilities": {"http": true, "sse": false},
            "sessionCapabilities": {"list": {}, "resume": {}, "delete": {}, "additionalDirectories": {}},
        },
        "agentInfo": info,
        "authMethods": [],
        "_meta": {"steering": {"supported": true}},
    })
}

/// The name of the editor, as other clients and the audit log see it.
fn client_name(info: Option<&Value>) -> String {
    let name = info.and_then(|info| info["name"].as_str()).unwrap_or_default();
    let plain: String = name.chars().filter(|c| !c.is_control()).take(48).collect();
    if plain.trim().is_empty() { "acp".into() } else { format!("acp:{}", plain.trim()) }
}

fn features(capabilities: &Value) -> Features {
    let has = |pointer: &str| {
        capabilities.pointer(pointer).is_some_and(|value| !value.is_null() && *value != false)
    };
    Features {
        terminal_output: has("/_meta/terminal_output"),
        notices: has("/session/notices"),
        compaction: has("/session/compaction"),
        forms: has("/elicitation/form"),
        version: Version::V1,
    }
}

/// Version 2 has terminals, notices and compaction without capabilities.
fn features_v2(capabilities: &Value) -> Features {
    let forms = features(capabilities).forms;
    Features { version: Version::V2, terminal_output: true, notices: true, compaction: true, forms }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_name_is_one_plain_line() {
        let name = |info: Value| client_name(Some(&info));
        assert_eq!(name(json!({"name": "zed", "version": "1"})), "acp:zed");
        assert_eq!(name(json!({"name": "a\nb\u{1b}[2J"})), "acp:ab[2J");
        for info in [json!({}), json!(4), json!({"name": 4}), json!({"name": " \n"})] {
            assert_eq!(name(info), "acp");
        }
        assert_eq!(client_name(None), "acp");
        assert!(name(json!({"name": "x".repeat(4_000)})).len() < 60);
    }

    #[test]
    fn capabilities_count_only_if_given_and_not_off() {
        let all = json!({"session": {"notices": {}, "compaction": {}}, "elicitation": {"form": {}},
            "_meta": {"terminal_output": true}});
        let expected = Features {
            version: Version::V1,
            terminal_output: true,
            notices: true,
            compaction: true,
            forms: true,
        };
        assert_eq!(features(&all), expected);
        let none = json!({"session": {"notices": null}, "elicitation": {"form": null}, "terminal": true,
            "fs": {"readTextFile": true}, "_meta": {"terminal_output": false}});
        for capabilities in [none, json!({}), Value::Null, json!("x"), json!([])] {
            assert_eq!(features(&capabilities), Features::default());
        }
    }
}
