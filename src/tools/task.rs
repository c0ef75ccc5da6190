//! The Task tool: starts a sub-agent. The engine runs it as a session of its own.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::input;
use types::tool::{PreparedCall, Subject};

pub(super) const DESCRIPTION: &str = "\
Starts a sub-agent: an agent with its own context that works on one task and returns its last message.
- `subagent_type` is one of the agents that the system prompt lists under \"Agents\".
- The sub-agent sees nothing of this conversation: the prompt must contain all it needs, and say what to return.
- Several calls in one message run at the same time. Give them independent work.
- `run_in_background`: the call returns at once, and the result comes later as a message.
- Its calls need the same permissions as yours. Its cost counts for this session.";

/// Maximum bytes of a prompt.
const MAX_PROMPT_BYTES: usize = 256 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The work of the sub-agent, in 3 to 5 words.
    description: String,
    /// The task, with all information that the sub-agent needs.
    prompt: String,
    /// Name of the agent.
    subagent_type: String,
    /// Return at once; the result comes later as a message.
    #[serde(default, deserialize_with = "input::flag")]
    run_in_background: bool,
}

pub(super) fn prepare(context: &ToolContext, input: &Input) -> Result<PreparedCall, ToolError> {
    let wrong = |why: String| Err(ToolError::new("invalid_input", why));
    if input.prompt.trim().is_empty() {
        return wrong(
            "the prompt is empty: describe the task, because the sub-agent sees nothing else".into(),
        );
    }
    if input.prompt.len() > MAX_PROMPT_BYTES {
        return wrong(format!(
            "the prompt has {} bytes; at most {MAX_PROMPT_BYTES} are possible: write long data to a file and name it",
            input.prompt.len()
        ));
    }
    let agents = &context.session_context.agents;
    let Some(agent) = agents.iter().find(|agent| agent.is_named(&input.subagent_type)) else {
        let names: Vec<&str> = agents.iter().map(|agent| agent.slug.as_str()).collect();
        let text =
            format!("there is no agent {:?}; the agents are {}", input.subagent_type, names.join(", "));
        return Err(ToolError::new("unknown_agent", text).with(json!({ "agents": names })));
    };
    let description = input.description.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(PreparedCall {
        subject: Subject::Task {
            agent: agent.name.clone(),
            background: input.run_in_background,
            read_only: agent.is_read_only(),
        },
        summary: format!("{}: {description}", agent.name),
        diff: None,
        // The sub-agent continues after a restart, so its call never runs a second time.
        read_only: false,
        change: None,
        sandbox: None,
    })
}
