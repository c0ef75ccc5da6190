//! Removes the parts of events that only the user decides: permissions, folders, limits, the system
//! prompt, and the earlier content of files. An export omits these parts and an import ignores them, so
//! a second export has the same lines.

use std::path::{Component, Path};

use serde_json::{Map, Value, json};

use crate::history::lines::{self, FirstLine};
use types::depth;
use types::ids::SessionId;
use types::usage::Budgets;

/// Fields that no blob may replace, because they determine the kind of the event or the session's permissions.
const UNTRUNCATED_FIELDS: [&str; 12] = [
    "type",
    "seq",
    "session_id",
    "at_ms",
    "turn_id",
    "item_id",
    "mode",
    "cwd",
    "kind",
    "safe_mode",
    "budgets",
    "background",
];

/// Settings of a new session.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SessionDefaults {
    pub budgets: Budgets,
    pub safe_mode: bool,
}

/// The line of an event, without ids of the session and without the client that caused it. `None` if an
/// export omits the event.
pub(super) fn exported_line(body: &str) -> Option<String> {
    let mut fields: Map<String, Value> = serde_json::from_str(body).ok()?;
    // A request of a sub-agent is only shown in this journal, so omit it.
    if fields.contains_key("child_session_id") {
        return None;
    }
    for name in ["session_id", "origin", "forked_from", "parent_call_id"] {
        fields.remove(name);
    }
    match fields.get("type").and_then(Value::as_str).unwrap_or_default() {
        "session.prompt_built" => return None,
        "permission.rule_added" | "permission.rule_removed"
            if fields.get("kind").is_some_and(|kind| *kind == "allow") =>
        {
            return None;
        }
        "session.created" => {
            remove_user_settings(&mut fields);
            fields.insert("budgets".into(), json!({}));
        }
        "session.updated" => normalize_updated(&mut fields),
        "file.checkpointed" => forget_file_contents(&mut fields),
        _ => {}
    }
    // Omit the blobs of removed values.
    let _ = check_cuts(&mut fields);
    serde_json::to_string(&fields).ok()
}

/// The event of a line, as the new session stores it. `cwd` is the session's folder, once it is known.
pub(super) fn neutral_event(
    line: &str,
    id: SessionId,
    first: &FirstLine,
    cwd: &str,
    defaults: SessionDefaults,
) -> Result<String, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if !depth::is_readable(&value) {
        return Err("it has too many levels of lists and objects".into());
    }
    let Value::Object(mut fields) = value else { return Err("expected an object".into()) };
    let foreign = ["session_id", "origin", "forked_from", "parent_call_id", "child_session_id"];
    if let Some(name) = foreign.iter().find(|name| fields.contains_key(**name)) {
        return Err(format!("only the first line may have {name}"));
    }
    match fields.get("type").and_then(Value::as_str).unwrap_or_default() {
        "session.created" => normalize_created(&mut fields, defaults)?,
        "session.updated" => normalize_updated(&mut fields),
        "file.checkpointed" => forget_file_contents(&mut fields),
        _ => {}
    }
    let strays = fields.get("cwd").and_then(Value::as_str).is_some_and(|folder| !is_inside(folder, cwd));
    if strays && !cwd.is_empty() {
        fields.insert("cwd".into(), cwd.into());
    }
    check_cuts(&mut fields)?;
    lines::event_body(fields, id, first.forked_from.as_ref()).ok_or_else(|| "it is not an event".into())
}

fn normalize_created(fields: &mut Map<String, Value>, defaults: SessionDefaults) -> Result<(), String> {
    let cwd = fields.get("cwd").and_then(Value::as_str).unwrap_or_default();
    let path = Path::new(cwd);
    if !path.is_absolute() || cwd.contains('\0') {
        return Err(format!("cwd: expected an absolute path, got {cwd:?}"));
    }
    let real = path.canonicalize().map_err(|error| format!("cwd: could not open {cwd}: {error}"))?;
    let real =
        real.to_str().filter(|_| real.is_dir()).ok_or_else(|| format!("cwd: {cwd} is not a folder"))?;
    fields.insert("cwd".into(), real.into());
    remove_user_settings(fields);
    fields.entry("mode").or_insert_with(|| "default".into());
    if defaults.safe_mode {
        fields.insert("safe_mode".into(), true.into());
    }
    fields.insert("budgets".into(), serde_json::to_value(defaults.budgets).unwrap_or_default());
    Ok(())
}

/// Removes the parts that only the user decides from the event that creates a session.
fn remove_user_settings(fields: &mut Map<String, Value>) {
    normalize_updated(fields);
    fields.remove("on_restart");
    fields.remove("project_settings");
    fields.remove("parent");
    fields.remove("coordinator");
    // The agent's instructions are part of the system prompt.
    fields.remove("agent");
    // Binary feedback doubles the cost of each turn.
    fields.remove("binary_feedback");
    if fields.get("background").is_some_and(|it| *it != json!(false)) {
        fields.insert("background".into(), false.into());
    }
}

fn normalize_updated(fields: &mut Map<String, Value>) {
    for name in ["system_prompt", "append_system_prompt", "additional_dirs", "budgets"] {
        fields.remove(name);
    }
    if fields.get("mode").is_some_and(|mode| *mode != "default" && *mode != "plan") {
        fields.insert("mode".into(), "default".into());
    }
    let is_update = fields.get("type").is_some_and(|kind| kind == "session.updated");
    if is_update && fields.get("safe_mode").is_some_and(|it| *it != json!(true)) {
        fields.remove("safe_mode");
    }
}

/// Removes the earlier contents of files. The imported file only claims them, so a rewind must not write them.
fn forget_file_contents(fields: &mut Map<String, Value>) {
    fields.remove("truncated_fields");
    fields.remove("cut");
    let files = fields.get_mut("files").and_then(Value::as_array_mut);
    for file in files.into_iter().flatten() {
        *file = json!({"path": file["path"], "exists": true});
    }
}

/// Allows blobs only for fields that this module does not check.
fn check_cuts(fields: &mut Map<String, Value>) -> Result<(), String> {
    if let Some(cuts) = fields.remove("cut") {
        fields.insert("truncated_fields".into(), cuts);
    }
    let Some(mut cuts) = fields.remove("truncated_fields") else { return Ok(()) };
    let all = cuts.as_array_mut().ok_or("truncated_fields: expected a list")?;
    let top = |cut: &Value| {
        let pointer = cut["pointer"].as_str()?.strip_prefix('/')?;
        pointer.split('/').next().map(str::to_owned).filter(|name| !name.contains('~'))
    };
    for cut in all.iter() {
        match top(cut) {
            Some(name) if !UNTRUNCATED_FIELDS.contains(&name.as_str()) => {}
            _ => return Err(format!("truncated_fields: {} must be in the event itself", cut["pointer"])),
        }
    }
    // The field that contained a removed value no longer exists.
    all.retain(|cut| top(cut).is_some_and(|name| fields.contains_key(&name)));
    if !all.is_empty() {
        fields.insert("truncated_fields".into(), cuts);
    }
    Ok(())
}

fn is_inside(folder: &str, root: &str) -> bool {
    let path = Path::new(folder);
    let leads_up = path.components().any(|part| part == Component::ParentDir);
    !leads_up && !folder.contains('\0') && path.starts_with(root)
}
