//! A daemon and an `agentctl` of different versions: which of the two to update.
//!
//! Within a protocol version, methods, parameters, fields and events are only added. So most commands work with an older
//! or a newer daemon, and what does not is a call that one side does not know.

use std::cmp::Ordering;

use serde_json::Value;

use crate::terminal::escape;
use api::PROTOCOL_VERSION;
use api::fault::WireFault;

/// The version of this program.
const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");
/// Member of `data` that this program adds to an error about something that the daemon may be too old to know.
const DAEMON_VERSION: &str = "daemon_version";
/// Texts of errors about parameters and values that a daemon does not know.
const UNKNOWN_WORDS: [&str; 3] = ["has no parameter `", "unknown field `", "unknown variant `"];

/// Notes the daemon's version in an error that a difference of versions may explain.
pub(super) fn note_version(fault: &mut WireFault, daemon_version: &str) {
    let is_unknown = || UNKNOWN_WORDS.iter().any(|words| fault.message.contains(words));
    let may_explain = match fault.kind() {
        "method_not_found" => true,
        // Of the same version it is more likely that the user wrote something wrong.
        "invalid_params" => order(daemon_version) != Ordering::Equal && is_unknown(),
        _ => false,
    };
    if let (true, Some(data)) = (may_explain, fault.data.as_object_mut()) {
        data.insert(DAEMON_VERSION.into(), daemon_version.into());
    }
}

/// Which of the two to update, if a difference of versions may explain the error.
pub(super) fn advice(fault: &WireFault) -> Option<String> {
    if fault.kind() == "unsupported_version" {
        return Some(advice_for_protocol(&fault.data));
    }
    let daemon_version = fault.data.get(DAEMON_VERSION)?.as_str()?;
    Some(which_to_update(daemon_version))
}

/// Which of the two to update, if the daemon's version is known.
pub(crate) fn which_to_update(daemon_version: &str) -> String {
    let daemon = escape::line(daemon_version);
    match order(daemon_version) {
        Ordering::Less => is_older(&format!("agentd {daemon}")),
        Ordering::Greater => is_newer(&format!("agentd {daemon}")),
        Ordering::Equal => format!(
            "agentd and agentctl both say version {OWN_VERSION}, but are of different builds: `agentctl daemon restart` \
             starts the installed agentd; if that does not help, install both from one package"
        ),
    }
}

fn advice_for_protocol(data: &Value) -> String {
    let daemon = match data["version"].as_str() {
        Some(version) => format!("agentd {}", escape::line(version)),
        None => "agentd".to_owned(),
    };
    let newest = data["supported"].as_array().into_iter().flatten().filter_map(Value::as_u64).max();
    match newest {
        Some(newest) if newest < u64::from(PROTOCOL_VERSION) => is_older(&daemon),
        Some(_) => is_newer(&daemon),
        None => format!("update the older one of agentd and agentctl {OWN_VERSION}"),
    }
}

fn is_older(daemon: &str) -> String {
    format!(
        "the running {daemon} is older than agentctl {OWN_VERSION}: update agentd, then `agentctl daemon restart`"
    )
}

fn is_newer(daemon: &str) -> String {
    format!("the running {daemon} is newer than agentctl {OWN_VERSION}: update agentctl")
}

/// How the daemon's version compares with that of this program.
fn order(daemon_version: &str) -> Ordering {
    let numbers = |version: &str| -> Vec<u64> {
        version.split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect()
    };
    numbers(daemon_version).cmp(&numbers(OWN_VERSION))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fault(kind: &str, message: &str) -> WireFault {
        WireFault { code: -32602, message: message.into(), data: json!({ "kind": kind }) }
    }

    #[test]
    fn error_names_the_program_to_update() {
        let unknown = "m has no parameter `x`";
        for (kind, message, version, expected) in [
            ("method_not_found", "no", "0.0.9", Some("update agentd, then `agentctl daemon restart`")),
            ("method_not_found", "no", "9.0.0", Some("update agentctl")),
            ("method_not_found", "no", OWN_VERSION, Some("install both from one package")),
            ("invalid_params", unknown, "0.0.9-rc1", Some("the running agentd 0.0.9-rc1 is older")),
            ("invalid_params", unknown, OWN_VERSION, None),
            ("invalid_params", "cwd: it is no folder", "0.0.9", None),
            ("not_found", "there is no such session", "0.0.9", None),
        ] {
            let mut fault = fault(kind, message);
            note_version(&mut fault, version);
            let advice = advice(&fault);
            assert_eq!(advice.is_some(), expected.is_some(), "{kind} {version}: {advice:?}");
            let words = expected.unwrap_or_default();
            assert!(advice.unwrap_or_default().contains(words), "{kind} {version}: {words}");
        }
    }

    #[test]
    fn refused_protocol_names_the_program_to_update() {
        let advice = |data: Value| {
            let mut fault = fault("unsupported_version", "protocol version 1 is not served");
            fault.data.as_object_mut().expect("members").extend(data.as_object().expect("members").clone());
            advice(&fault).expect("advice")
        };
        let older = advice(json!({"supported": [0], "version": "0.0.1"}));
        assert!(older.contains("agentd 0.0.1 is older") && older.contains("daemon restart"), "{older}");
        let newer = advice(json!({"supported": [2, 3], "version": "3.0.0"}));
        assert!(newer.contains("agentd 3.0.0 is newer") && newer.ends_with("update agentctl"), "{newer}");
        assert!(advice(json!({"supported": [2]})).contains("the running agentd is newer"));
        assert!(advice(json!({})).contains("update the older one"));
    }
}
