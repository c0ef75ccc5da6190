//! Errors of the daemon in the words of the command line: options instead of parameters, commands instead of methods.

use crate::connection::versions;
use crate::failure::{Failure, code};
use crate::terminal::escape;
use api::fault::WireFault;
use api::{ApiMethod as _, methods};

/// Parameters of the wire, and what the user typed for them.
const OPTIONS: &[(&str, &str)] = &[
    ("model", "--model"),
    ("fallback_model", "--fallback-model"),
    ("mode", "--approval-mode"),
    ("thinking", "--think"),
    ("tools", "--tools"),
    ("additional_dirs", "--add-dir"),
    ("cwd", "--work-dir"),
    ("title", "--title"),
    ("agent", "--agent"),
    ("budgets", "the limits (--max-usd, --max-turns, --max-tokens, --max-time)"),
    ("temperature", "--temperature"),
    ("top_p", "--top-p"),
    ("stop", "--stop"),
    ("metadata", "--metadata"),
    ("system_prompt", "--system-prompt"),
    ("append_system_prompt", "--append-system-prompt"),
    ("output_schema", "--output-schema"),
    ("mcp_servers", "--mcp-config"),
    ("env", "--env"),
    ("session_id", "the session"),
    ("item_id", "the item"),
    ("input", "the input"),
];

/// Methods and parameters in texts of the daemon, longest first, and the commands that do the same.
const COMMANDS: &[(&str, &str)] = &[
    ("session.archive {archived: false} (agentctl archive --undo)", "`agentctl archive --undo`"),
    (methods::session::QueueList::METHOD.name, "`agentctl queue SESSION`"),
    (methods::session::Update::METHOD.name, "`agentctl update`"),
    (methods::session::Abort::METHOD.name, "`agentctl abort`"),
    (methods::session::List::METHOD.name, "`agentctl ps -a -A`"),
    (methods::permission::Rules::METHOD.name, "`agentctl rules`"),
    (methods::permission::List::METHOD.name, "`agentctl approvals`"),
    ("submit with when_busy queue", "submit it with --queue"),
    ("(when_busy: queue)", "(--queue)"),
];

/// The failure of a command whose call was refused.
pub(super) fn failure(fault: &WireFault) -> Failure {
    let path = fault.data["path"].as_str().unwrap_or_default();
    let message = command_words(&option_words(&fault.message, path));
    let message = escape::text(&message).into_owned();
    let has_state = fault.data.get("state").is_some();
    let message = match versions::advice(fault) {
        Some(advice) => format!("{message}; {advice}"),
        None => message,
    };
    match fault.kind() {
        "shutting_down" => Failure::unreachable("the daemon is stopping; try again in a moment"),
        "invalid_params" | "unsupported" => Failure::usage(message),
        // A session that was killed is known.
        "not_found" if !has_state => Failure::usage(message),
        "" => Failure::internal(message),
        "not_authorised" => Failure::new(code::DENIED, format!("{message} (not_authorised)")),
        kind => Failure::internal(format!("{message} ({})", escape::line(kind))),
    }
}

/// Replaces the parameter at the beginning of a message, for example `model: …` by `--model: …`.
fn option_words(message: &str, path: &str) -> String {
    let Some(rest) = message.strip_prefix(path).and_then(|rest| rest.strip_prefix(": ")) else {
        return message.to_owned();
    };
    let name = path.split(['.', '[']).next().unwrap_or_default();
    match OPTIONS.iter().find(|(parameter, _)| *parameter == name) {
        Some((_, option)) => format!("{option}: {rest}"),
        None => message.to_owned(),
    }
}

fn command_words(message: &str) -> String {
    COMMANDS.iter().fold(message.to_owned(), |text, (method, command)| text.replace(method, command))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn wrong_use_exits_64_in_words_of_command_line() {
        let check = |kind: &str, path: Option<&str>, message: &str, expected: (u8, &str)| {
            let mut data = json!({ "kind": kind });
            if let Some(path) = path {
                data["path"] = path.into();
            }
            let failure = failure(&WireFault { code: -32602, message: message.into(), data });
            assert_eq!((failure.code, failure.message.as_str()), expected);
        };
        check(
            "invalid_params",
            Some("model"),
            "model: \"x/y\": there is no provider \"x\"; configured: none",
            (64, "--model: \"x/y\": there is no provider \"x\"; configured: none"),
        );
        check(
            "invalid_params",
            Some("mode"),
            "mode: set allow_bypass",
            (64, "--approval-mode: set allow_bypass"),
        );
        check(
            "invalid_params",
            Some("input[0].path"),
            "input[0].path: no image",
            (64, "the input: no image"),
        );
        check(
            "invalid_params",
            Some("env"),
            "env: refused: LD_PRELOAD (…)",
            (64, "--env: refused: LD_PRELOAD (…)"),
        );
        check("invalid_params", Some("new_one"), "new_one: wrong", (64, "new_one: wrong"));
        check(
            "not_found",
            None,
            "there is no such session; session.list names them",
            (64, "there is no such session; `agentctl ps -a -A` names them"),
        );
        check("busy", None, "a turn is running", (4, "a turn is running (busy)"));
        check("not_authorised", None, "no", (1, "no (not_authorised)"));
        check("internal", None, "odd \u{1b}[m", (4, "odd ⟦ESC⟧[m (internal)"));
        let ended = WireFault {
            code: -32002,
            message: "killed".into(),
            data: json!({"kind": "not_found", "state": "ended"}),
        };
        assert_eq!(failure(&ended).code, 4);
    }
}
