//! The check of money limits.

use crate::error::SessionError;
use crate::shared::Components;
use types::model::ModelRef;
use types::usage::Budgets;

/// Checks that the model has a price if a limit on money is set. Without a price, the limit would have no effect.
pub(super) fn check_money(
    components: &Components,
    model: &str,
    budgets: Budgets,
) -> Result<(), SessionError> {
    let Ok(known) = model.parse::<ModelRef>() else { return Ok(()) };
    if !budgets.limits_money() || components.models.price(&known).is_some() {
        return Ok(());
    }
    let why = format!(
        "the price of {model} is not known, so a limit on money cannot hold: set price in \
         [model.\"{model}\"], or limit model_calls or output_tokens"
    );
    Err(SessionError::BadParam("budgets.usd_micros", why))
}

/// The limits with at most so many model calls of a turn.
pub(super) fn with_max_turns(budgets: Budgets, max_turns: Option<u64>) -> Budgets {
    let model_calls = match (budgets.model_calls, max_turns) {
        (Some(calls), Some(turns)) => Some(calls.min(turns)),
        (calls, turns) => calls.or(turns),
    };
    Budgets { model_calls, ..budgets }
}
