//! Limits of a turn and of its session. They hold before each model call, while an answer streams, and while tools
//! run. A client is warned once for each limit and turn.

use crate::decide::plan::PlanBuilder;
use crate::state::{Activity, CallStage, CallState, State};
use types::event::Event;
use types::session::{Subtype, TurnError};
use types::time::Timestamp;
use types::usage::{BudgetKind, Budgets};

/// Share of a limit, in percent, at which a client is warned.
const WARN_PERCENT: u64 = 80;

/// Upper limit of bytes per token: no tokenizer encodes longer ordinary text as one token. Providers report
/// the tokens of an answer at its end, so this estimate only stops servers that ignore the requested limit.
const MAX_BYTES_PER_TOKEN: u64 = 16;

/// The parts of the limits that are reserved for running sub-agents.
#[derive(Clone, Copy, Debug, Default)]
struct ReservedUse {
    calls: u64,
    usd_micros: u64,
    output_tokens: u64,
}

/// One limit with its use so far.
#[derive(Clone, Copy, Debug)]
struct BudgetUse {
    kind: BudgetKind,
    limit: u64,
    used: u64,
}

impl BudgetUse {
    fn is_reached(&self) -> bool {
        self.used >= self.limit
    }

    fn is_near_limit(&self) -> bool {
        self.limit > 0 && self.used >= warn_at(self.limit)
    }

    fn text(&self) -> String {
        let (limit, of) = (self.limit, if self.kind.is_of_session() { "session" } else { "turn" });
        match self.kind {
            BudgetKind::UsdMicros | BudgetKind::SessionUsdMicros => {
                format!("the {of}'s budget of {limit} micro-dollars is used up")
            }
            BudgetKind::ModelCalls | BudgetKind::SessionModelCalls => {
                format!("the {of}'s limit of {limit} model calls was reached")
            }
            BudgetKind::OutputTokens | BudgetKind::SessionOutputTokens => {
                format!("the {of}'s limit of {limit} output tokens was reached")
            }
            BudgetKind::WallTimeMs | BudgetKind::SessionWallTimeMs => {
                format!("the {of}'s limit of {limit} ms was reached")
            }
        }
    }
}

fn warn_at(limit: u64) -> u64 {
    (u128::from(limit) * u128::from(WARN_PERCENT)).div_ceil(100) as u64
}

impl State {
    fn reserved_use(&self) -> ReservedUse {
        let mut sum = ReservedUse::default();
        for Budgets { session_usd_micros, session_model_calls, session_output_tokens, .. } in
            self.subagents.iter().map(|it| it.reserved)
        {
            sum.calls = sum.calls.saturating_add(session_model_calls.unwrap_or(0));
            sum.usd_micros = sum.usd_micros.saturating_add(session_usd_micros.unwrap_or(0));
            sum.output_tokens = sum.output_tokens.saturating_add(session_output_tokens.unwrap_or(0));
        }
        sum
    }

    /// The limits of the whole session in `limits`. `elapsed` is the time of the running turn.
    fn session_uses(&self, limits: &Budgets, elapsed: u64) -> Vec<BudgetUse> {
        // A running helper call counts as well.
        let reserved = self.reserved_use();
        let calls = self.spent.calls + u64::from(self.helper.is_some()) + reserved.calls;
        let cost = self.spent.cost_at_least_usd_micros.saturating_add(reserved.usd_micros);
        let tokens = self.spent.usage.output_tokens.saturating_add(reserved.output_tokens);
        let worked = self.worked_ms.saturating_add(elapsed);
        let all = [
            (BudgetKind::SessionUsdMicros, limits.session_usd_micros, cost),
            (BudgetKind::SessionModelCalls, limits.session_model_calls, calls),
            (BudgetKind::SessionOutputTokens, limits.session_output_tokens, tokens),
            (BudgetKind::SessionWallTimeMs, limits.session_wall_time_ms, worked),
        ];
        budget_uses(all)
    }

    /// All limits of the running turn. `made` is the number of its own model calls. The usage of sub-agents, and the
    /// reservations for running ones, count as well.
    fn turn_uses(&self, calls_made: u64, now: Timestamp) -> Vec<BudgetUse> {
        let Some(turn) = &self.turn else { return Vec::new() };
        let (limits, spent, reserved) = (&turn.settings.budgets, &turn.totals.spent, self.reserved_use());
        let earlier = &turn.totals.spent_by_earlier_subagents;
        let elapsed = now.since(turn.started_at);
        let calls = calls_made + turn.totals.subagent_calls + earlier.calls + reserved.calls;
        let cost = [earlier.cost_at_least_usd_micros, reserved.usd_micros]
            .into_iter()
            .fold(spent.cost_at_least_usd_micros, u64::saturating_add);
        let tokens = [earlier.usage.output_tokens, reserved.output_tokens]
            .into_iter()
            .fold(spent.usage.output_tokens, u64::saturating_add);
        let mut all = budget_uses([
            (BudgetKind::ModelCalls, limits.model_calls, calls),
            (BudgetKind::UsdMicros, limits.usd_micros, cost),
            (BudgetKind::OutputTokens, limits.output_tokens, tokens),
            (BudgetKind::WallTimeMs, limits.wall_time_ms, elapsed),
        ]);
        all.extend(self.session_uses(limits, elapsed));
        all.extend(self.session_uses(&self.spec.budgets, elapsed));
        all
    }

    /// Whether the turn does something that a time limit must end. Waiting for a user is not work.
    fn does_timed_work(&self) -> bool {
        let Some(turn) =
            self.turn.as_ref().filter(|turn| !turn.stop.is_aborting && turn.restart.hold.is_none())
        else {
            return false;
        };
        let is_running = |call: &CallState| matches!(call.stage, CallStage::Running { .. });
        matches!(turn.activity, Activity::Calling { .. }) || turn.calls.iter().any(is_running)
    }

    /// When the time limits must be checked next. It is computed from the journal, so a restart does not change
    /// it.
    pub(crate) fn next_time_check(&self) -> Option<Timestamp> {
        let turn = self.turn.as_ref().filter(|_| self.does_timed_work())?;
        let limits = [
            (BudgetKind::WallTimeMs, turn.settings.budgets.wall_time_ms),
            (BudgetKind::SessionWallTimeMs, turn.settings.budgets.session_wall_time_ms),
            (BudgetKind::SessionWallTimeMs, self.spec.budgets.session_wall_time_ms),
        ];
        let check = |(kind, limit): (BudgetKind, Option<u64>)| {
            let base = if kind.is_of_session() { self.worked_ms } else { 0 };
            let at = if turn.totals.warned.contains(&kind) { limit? } else { warn_at(limit?) };
            Some(turn.started_at.plus(at.saturating_sub(base)))
        };
        limits.into_iter().filter_map(check).min()
    }
}

fn budget_uses<const N: usize>(all: [(BudgetKind, Option<u64>, u64); N]) -> Vec<BudgetUse> {
    let used =
        |(kind, limit, used): (BudgetKind, Option<u64>, u64)| Some(BudgetUse { kind, limit: limit?, used });
    all.into_iter().filter_map(used).collect()
}

impl PlanBuilder<'_> {
    /// The limit that forbids the model call of this step, if any.
    pub fn over_budget(&self, step: u64) -> Option<(Subtype, String)> {
        let turn = self.state.turn.as_ref()?;
        let calls_made = step.saturating_sub(1) + turn.model_call.unanswered_attempts;
        self.reached_limit(&self.state.turn_uses(calls_made, self.now.at))
    }

    /// The limit of the whole session that is reached, if any.
    pub fn over_session(&self, limits: &Budgets, elapsed: u64) -> Option<(Subtype, String)> {
        self.reached_limit(&self.state.session_uses(limits, elapsed))
    }

    fn reached_limit(&self, all: &[BudgetUse]) -> Option<(Subtype, String)> {
        all.iter().find(|it| it.is_reached()).map(|it| (it.kind.subtype(), it.text()))
    }

    /// Warns of limits that are nearly used up, once for each limit and turn.
    pub fn warn_of_budgets(&mut self) {
        let calls_made = self.state.turn.as_ref().map_or(0, |turn| turn.totals.model_calls);
        for BudgetUse { kind: budget, used, limit } in self.uses_near_limits(calls_made) {
            self.push_turn(Event::BudgetWarning { budget, used, limit });
        }
    }

    fn uses_near_limits(&self, calls_made: u64) -> Vec<BudgetUse> {
        let Some(turn) = self.state.turn.as_ref().filter(|turn| !turn.stop.is_aborting) else {
            return Vec::new();
        };
        let mut near = Vec::<BudgetUse>::new();
        for it in self.state.turn_uses(calls_made, self.now.at) {
            let is_new =
                !turn.totals.warned.contains(&it.kind) && near.iter().all(|other| other.kind != it.kind);
            if it.is_near_limit() && is_new {
                near.push(it);
            }
        }
        near
    }

    /// Whether a time limit of the turn has passed.
    pub fn is_out_of_time(&self) -> bool {
        let is_time = |it: &BudgetUse| it.kind.subtype() == Subtype::ErrorMaxTime && it.is_reached();
        self.state.turn_uses(0, self.now.at).iter().any(is_time)
    }

    /// Ends the turn if its time has passed while it works. Returns whether it did.
    pub fn check_time(&mut self) -> bool {
        if self.state.does_timed_work() {
            self.warn_of_budgets();
            if self.is_out_of_time() {
                self.stop_for(Subtype::ErrorMaxTime);
                return true;
            }
        }
        false
    }

    /// Ends the turn if the streamed part of an answer alone exceeds a limit.
    pub fn check_stream(&mut self) {
        let (Some(turn), Some(partial)) = (&self.state.turn, self.state.partial()) else { return };
        let tokens = partial.bytes as u64 / MAX_BYTES_PER_TOKEN;
        // This runs for each delta, and few turns have a limit on money. So look up the price only for those.
        let cost = || {
            let price =
                self.engine.settings.known.capabilities(&turn.settings.model).output_usd_micros_per_1k;
            price.map_or(0, |price| price.saturating_mul(tokens) / 1_000)
        };
        let more = |kind: BudgetKind| match kind.subtype() {
            Subtype::ErrorMaxTokens => tokens,
            Subtype::ErrorMaxBudgetUsd => cost(),
            _ => 0,
        };
        let all = self.state.turn_uses(0, self.now.at);
        let is_over = |it: &&BudgetUse| {
            let added = more(it.kind);
            added > 0 && it.used.saturating_add(added) > it.limit
        };
        let over = all.iter().find(is_over);
        if let Some(kind) = over.map(|it| it.kind) {
            self.stop_for(kind.subtype());
        }
    }

    /// Stops all work of the turn, which ends with this result.
    pub fn stop_for(&mut self, subtype: Subtype) {
        self.push_turn(Event::TurnAborting { ending: false, subtype });
        self.stop_turn();
    }

    /// The error of a turn that a limit ended.
    pub fn budget_error(&self, subtype: Subtype) -> Option<TurnError> {
        let calls_made = self.state.turn.as_ref().map_or(0, |turn| turn.totals.model_calls);
        let is_budget = [
            Subtype::ErrorMaxTime,
            Subtype::ErrorMaxTokens,
            Subtype::ErrorMaxBudgetUsd,
            Subtype::ErrorMaxTurns,
        ];
        if !is_budget.contains(&subtype) {
            return None;
        }
        let all = self.state.turn_uses(calls_made, self.now.at);
        let of_it = || all.iter().filter(|it| it.kind.subtype() == subtype);
        let reached = of_it().find(|it| it.is_reached()).or_else(|| of_it().next());
        let text = reached.map_or_else(|| "a limit of the turn was reached".to_owned(), BudgetUse::text);
        Some(TurnError::new("budget", text))
    }

    /// The limits of a sub-agent that starts now: a share of what this session and its turn have left,
    /// so that the whole tree keeps to the limits. `shares` is the number of equal shares. The error
    /// names a limit that is used up.
    ///
    /// Time is not divided, because sub-agents run at the same time.
    pub fn subagent_budgets(&self, shares: u64) -> Result<Budgets, String> {
        let calls_made = self.state.turn.as_ref().map_or(0, |turn| turn.totals.model_calls);
        let all = self.state.turn_uses(calls_made, self.now.at);
        let mut budgets = Budgets { session_wall_time_ms: self.time_left(), ..Budgets::default() };
        for it in &all {
            let left = it.limit.saturating_sub(it.used);
            let slot = match it.kind.subtype() {
                Subtype::ErrorMaxTurns => &mut budgets.session_model_calls,
                Subtype::ErrorMaxBudgetUsd => &mut budgets.session_usd_micros,
                Subtype::ErrorMaxTokens => &mut budgets.session_output_tokens,
                _ => continue,
            };
            // A sub-agent needs one model call; the session keeps one as well.
            let share = (left / shares.max(1)).max(u64::from(left >= 2));
            *slot = Some(slot.map_or(share, |known| known.min(share)));
        }
        let amounts = [
            budgets.session_model_calls,
            budgets.session_usd_micros,
            budgets.session_output_tokens,
            budgets.session_wall_time_ms,
        ];
        if amounts.contains(&Some(0)) {
            return Err(match all.iter().find(|it| it.limit.saturating_sub(it.used) < 2) {
                Some(used_up) => used_up.text(),
                None => "the limits of the session leave nothing".into(),
            });
        }
        Ok(budgets)
    }

    /// Output tokens that the budgets of the turn and of the session leave, minus the reservations of sub-agents.
    pub fn output_tokens_left(&self) -> Option<u64> {
        let uses = self.state.turn_uses(0, self.now.at);
        let of_tokens = uses.iter().filter(|it| it.kind.subtype() == Subtype::ErrorMaxTokens);
        of_tokens.map(|it| it.limit.saturating_sub(it.used)).min()
    }

    /// Milliseconds until the time limit of the turn, or of all turns of the session.
    pub fn time_left(&self) -> Option<u64> {
        let is_time = |it: &&BudgetUse| it.kind.subtype() == Subtype::ErrorMaxTime;
        let all = self.state.turn_uses(0, self.now.at);
        all.iter().filter(is_time).map(|it| it.limit.saturating_sub(it.used)).min()
    }
}
