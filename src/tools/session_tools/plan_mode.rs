//! ExitPlanMode: presents a plan for approval. The engine raises the request; the user's answer becomes the result of
//! the call, and an approval ends plan mode.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::context::ToolContext;
use crate::error::ToolError;
use types::permission::Mode;
use types::tool::{PreparedCall, ProposedPlan, Subject, ToolOutcome};

pub(super) const NAME: &str = ProposedPlan::TOOL;

/// Maximum bytes of a plan. It must fit into one event.
const MAX_PLAN_BYTES: usize = 48 << 10;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// The plan in Markdown: what will be changed and how it will be checked, short and concrete.
    plan: String,
}

pub(super) const DESCRIPTION: &str = "Presents a plan to the user in plan mode, and asks for approval. Use it once the \
    plan is complete and the work needs changes; not for research, and not to ask a question. After approval you can \
    make changes. If the user declines, plan mode stays on.";

pub(super) fn prepare(context: &ToolContext, input: &Input) -> Result<PreparedCall, ToolError> {
    if context.session_context.mode != Mode::Plan {
        let mode = context.session_context.mode.name();
        return Err(ToolError::new(
            "not_in_plan_mode",
            format!("plan mode is not on (the mode is {mode}), so there is nothing to approve; go on with the work"),
        )
        .with(json!({ "mode": mode })));
    }
    let wrong = |problem: String| {
        Err(ToolError::new(
            "invalid_input",
            format!("the arguments of {NAME} are wrong at `plan`: {problem}"),
        )
        .with(json!({ "path": "plan", "problem": problem })))
    };
    if input.plan.trim().is_empty() {
        return wrong("it is empty".into());
    }
    if input.plan.len() > MAX_PLAN_BYTES {
        return wrong(format!("{} bytes; expected at most {MAX_PLAN_BYTES}", input.plan.len()));
    }
    Ok(PreparedCall::new(Subject::ProposedPlan(ProposedPlan {}), "Leave plan mode with this plan"))
}

/// This runs only if the user changed the mode while the plan waited for its answer.
pub(super) fn run() -> ToolOutcome {
    ToolOutcome::completed("The user has left plan mode. You can carry out the plan now.")
}
