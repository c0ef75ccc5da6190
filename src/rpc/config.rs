//! `daemon.config`

use std::sync::Arc;

use serde_json::Value;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::Fault;
use api::params::{ConfigParams, ConfigReply, ConfigValue, ProjectFileState};
use session::ProjectConfig;

/// Minimum bytes of a secret that is searched in other values. Shorter secrets would hide ordinary words.
const MIN_SECRET_BYTES: usize = 6;

pub(super) async fn config(ctx: Arc<RpcContext>, _: Caller, p: ConfigParams) -> Result<ConfigReply, Fault> {
    let in_force = Arc::clone(&ctx.config.borrow().values);
    let mut values = in_force.to_vec();
    let mut project = None;
    if let Some(cwd) = &p.cwd
        && let Some(found) = ctx.registry.project_config(cwd).await.map_err(convert::fault)?
    {
        project = Some(ProjectFileState {
            file: found.file.clone(),
            trusted: found.trusted,
            problem: found.problem.clone(),
        });
        add_project(&mut values, found);
    }
    // A user may have written a key in the wrong place, for example into an address.
    let mut secrets = ctx.registry.shared().components().models.secrets().await;
    secrets.retain(|secret| secret.len() >= MIN_SECRET_BYTES);
    for row in &mut values {
        remove_secrets(&mut row.value, &secrets);
    }
    Ok(ConfigReply { values, project })
}

/// Replaces the user's values by the project's values, and adds the project's rules to the user's rules.
fn add_project(values: &mut Vec<ConfigValue>, project: ProjectConfig) {
    for set in project.values {
        let row = ConfigValue { key: set.key, value: set.value, origin: set.file, line: Some(set.line) };
        let at = values.iter().rposition(|known| known.key == row.key);
        match at {
            Some(at) if row.key.starts_with("permissions.") => values.insert(at + 1, row),
            Some(at) => values[at] = row,
            None => values.push(row),
        }
    }
}

fn remove_secrets(value: &mut Value, secrets: &[String]) {
    match value {
        Value::String(text) => {
            for secret in secrets {
                if text.contains(secret.as_str()) {
                    *text = text.replace(secret.as_str(), "***");
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| remove_secrets(value, secrets)),
        Value::Object(table) => table.values_mut().for_each(|value| remove_secrets(value, secrets)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
