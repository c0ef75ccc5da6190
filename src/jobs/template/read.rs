//! Reads one file. Its keys decide what jobs do, so nothing in it is read leniently except the description.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Template, parameters, text};
use crate::notify::is_name;
use project::extensions::{ExtensionSource, MarkdownFile, read_front_matter};
use types::job_request::JobRequest;
use types::permission::Mode;
use types::typed_json;
use types::usage::Budgets;

/// Maximum characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 1_000;
/// The fields of a job that a template may have.
const FIELDS: [&str; 20] = [
    "cwd",
    "title",
    "model",
    "mode",
    "agent",
    "tools",
    "system_prompt",
    "budgets",
    "output_schema",
    "worktree",
    "retry",
    "priority",
    "concurrency",
    "unique",
    "delay",
    "start_deadline",
    "on_complete",
    "artifacts",
    "labels",
    "parameters",
];
/// Keys that a template of a project cannot have, with the reason.
const NOT_FOR_PROJECTS: [(&str, &str); 6] = [
    ("on_complete", "only you decide who is told of a job"),
    ("cwd", "its jobs work in the project"),
    ("network", "the network of commands is set in your configuration"),
    ("sandbox", "the sandbox is set in your configuration"),
    ("sandbox_level", "the sandbox is set in your configuration"),
    ("level", "the sandbox is set in your configuration"),
];

/// The template of a file. `limits` are those of `[permissions.unattended]`, which a project's template cannot exceed.
///
/// # Errors
/// The file cannot be used; the text says why and how to correct it.
pub(super) fn template(
    file: MarkdownFile,
    source: ExtensionSource,
    limits: &Budgets,
) -> Result<Template, String> {
    let [name] = file.name.as_slice() else {
        return Err("a template lies directly in the folder jobs, not in a folder below it".into());
    };
    if !is_name(name) {
        return Err(format!("{name:?} is not a name: use letters, digits, `-`, `_` and `.`, at most 64"));
    }
    let (mut keys, body) = read_front_matter(&file.text)?;
    let description = match keys.remove("description") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    };
    let definitions = parameters::definitions(keys.remove("parameters").unwrap_or_default())?;
    if source == ExtensionSource::Project {
        refuse_for_projects(&keys)?;
    }
    let fields = fields(keys)?;
    check_budgets(&fields, source, limits)?;
    if source == ExtensionSource::Project && fields.mode == Some(Mode::Bypass) {
        return Err("mode: a project's template cannot set bypass".into());
    }
    if source == ExtensionSource::Project && fields.retry.as_ref().is_some_and(|retry| retry.after_unknown) {
        let why = "only you decide that a job is repeated although the outcome of a call is unknown";
        return Err(format!("retry.after_unknown: a project's template cannot set it: {why}"));
    }
    if body.trim().is_empty() {
        return Err("there is no prompt below the front matter".into());
    }
    let unknown: BTreeSet<&str> =
        text::names(&body).into_iter().filter(|name| !definitions.contains_key(*name)).collect();
    if let Some(name) = unknown.first() {
        return Err(format!(
            "the text has {{{{{name}}}}}, which is no parameter; declare it, or write \\{{{{{name}}}}} to keep it as it is"
        ));
    }
    let one_line = description.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(Template {
        name: name.clone(),
        description: one_line.chars().take(MAX_DESCRIPTION_CHARS).collect(),
        parameters: definitions,
        source,
        path: file.path,
        fields,
        body: body.trim().to_owned(),
    })
}

fn refuse_for_projects(keys: &Map<String, Value>) -> Result<(), String> {
    match NOT_FOR_PROJECTS.iter().find(|(key, _)| keys.contains_key(*key)) {
        Some((key, why)) => Err(format!("{key}: a project's template cannot set it: {why}")),
        None => Ok(()),
    }
}

/// The fields of the template's jobs.
fn fields(keys: Map<String, Value>) -> Result<JobRequest, String> {
    for key in keys.keys() {
        match key.as_str() {
            "prompt" => return Err("prompt: the prompt is the text below the front matter".into()),
            "template" => return Err("template: a template cannot use another one".into()),
            "run_at_ms" => return Err("run_at_ms: a template has no fixed time; use delay".into()),
            key if FIELDS.contains(&key) => {}
            key => return Err(format!("unknown key `{key}`; known: description, {}", FIELDS.join(", "))),
        }
    }
    let (fields, unknown) = typed_json::from_value_with_unknown::<JobRequest>(Value::Object(keys))
        .map_err(|wrong| wrong.to_string())?;
    match unknown.first() {
        Some(path) => Err(format!("unknown key `{path}`")),
        None => Ok(fields),
    }
}

fn check_budgets(fields: &JobRequest, source: ExtensionSource, limits: &Budgets) -> Result<(), String> {
    let Some(own) = fields.budgets else { return Ok(()) };
    let pairs = [
        ("usd_micros", own.usd_micros, limits.usd_micros),
        ("model_calls", own.model_calls, limits.model_calls),
        ("output_tokens", own.output_tokens, limits.output_tokens),
        ("wall_time_ms", own.wall_time_ms, limits.wall_time_ms),
    ];
    for (name, own, limit) in pairs {
        match (own, limit) {
            (Some(0), _) => return Err(format!("budgets.{name}: 0 leaves nothing to work with")),
            (Some(own), Some(limit)) if own > limit && source == ExtensionSource::Project => {
                return Err(format!(
                    "budgets.{name}: a project's template cannot have more than [permissions.unattended], which is {limit}"
                ));
            }
            _ => {}
        }
    }
    let of_session = [
        ("usd_micros", own.session_usd_micros),
        ("model_calls", own.session_model_calls),
        ("output_tokens", own.session_output_tokens),
        ("wall_time_ms", own.session_wall_time_ms),
    ];
    match of_session.iter().find(|(_, limit)| limit.is_some()) {
        Some((name, _)) => {
            Err(format!("budgets.session_{name}: the limits of a job hold for the whole job; use {name}"))
        }
        None => Ok(()),
    }
}
