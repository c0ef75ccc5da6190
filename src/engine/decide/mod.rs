//! The decisions. [`Engine::decide`] passes each input to the file for its kind; [`plan`] holds the builder that
//! all of them use.

pub(super) mod abort;
pub(super) mod approval;
pub(super) mod background;
pub(super) mod backoff;
pub(super) mod budget;
pub(super) mod compact;
pub(super) mod context;
mod expansion;
pub(super) mod fallback;
mod feedback;
pub(super) mod fork;
mod hooks;
mod job;
mod mcp;
pub(super) mod message;
mod model_fault;
pub(super) mod model_reply;
mod model_request;
pub(super) mod output_limit;
pub(super) mod plan;
pub(super) mod question;
pub(super) mod queue;
pub(super) mod recover;
mod reminders;
mod repetition;
pub(super) mod retry;
pub(super) mod slash_command;
pub(super) mod structured_output;
pub(super) mod subagents;
pub(super) mod submit;
mod summary;
pub(super) mod title;
pub(super) mod tool_calls;
pub(super) mod tool_start;
mod tool_summary;
pub(super) mod unsandboxed_retry;
pub(super) mod update;
pub(super) mod usage_estimate;

use crate::input::{Input, Now, Refusal};
use crate::output::Decision;
use crate::state::Engine;
use plan::PlanBuilder;
use types::event::Event;
use types::model::Delta;

impl Engine {
    /// Decides the result of an input. It reads the state and never changes it: the same engine, input and `now` give
    /// the same decision.
    ///
    /// # Errors
    /// The input is not possible in this state.
    pub fn decide(&self, input: Input, now: Now) -> Result<Decision, Refusal> {
        let mut builder = PlanBuilder::new(self, now);
        match input {
            Input::Submit(submit) => builder.submit(*submit)?,
            Input::Compact { request, origin } => builder.compact(request, origin)?,
            Input::Command(command) => builder.answer_command(*command)?,
            Input::ContextReady { system, sources, instructions, skipped_instructions, untrusted } => {
                builder.context_ready(system, sources, instructions, skipped_instructions, untrusted);
            }
            Input::ContextChecked { turn_id, changed_files, instructions } => {
                builder.context_checked(turn_id, changed_files, instructions.as_deref());
            }
            Input::Mcp { statuses, catalog } => builder.mcp_changed(statuses, catalog.map(|it| *it)),
            Input::Untrusted(untrusted) => builder.ask_for_trust(untrusted),
            Input::Deltas { token, deltas } => builder.add_deltas(token, deltas),
            Input::ModelDone { token, mut reply, cost_usd_micros, model_snapshot, duration_ms } => {
                // The answer is complete, so `model_done` requests its calls together. Skip the deltas
                // that would request them early.
                let mut last = std::mem::take(&mut reply.last);
                last.retain(|delta| !matches!(delta, Delta::CallCompleted { .. }));
                builder.add_deltas(token, last);
                builder.model_done(token, *reply, cost_usd_micros, model_snapshot, duration_ms);
            }
            Input::ModelFailed { token, fault, model_snapshot, .. } => {
                builder.model_failed(token, &fault, model_snapshot)
            }
            Input::TimerFired { token } => builder.timer_fired(token),
            Input::Prepared { turn_id, mode, calls } => builder.judge_prepared_calls(turn_id, mode, calls),
            Input::RulesChecked { turn_id, mode, verdicts } => builder.rules_checked(turn_id, mode, verdicts),
            Input::Progress { call_id, progress } => builder.progress(call_id, progress),
            Input::FilesRead { call_id, files, blobs } => builder.files_read(call_id, files, blobs),
            Input::ToolDone { call_id, outcome, duration_ms } => {
                builder.tool_done(call_id, *outcome, duration_ms)
            }
            Input::CommandOver { call_id, over } => builder.background_command_ended(call_id, *over),
            Input::HooksRan { call_id, runs, continues, stops, context } => {
                builder.hooks_ran(call_id, runs, context);
                builder.follow_hooks(continues, stops);
            }
            Input::HooksRead { problems } => builder.hooks_read(problems),
            Input::ToolAsks { call_id, questions } => builder.raise_tool_questions(call_id, questions),
            Input::ToolStoppedAsking { call_id } => builder.tool_stopped_asking(call_id),
            Input::SubagentEvent { call_id, event } => builder.subagent_event(call_id, *event),
            Input::SubagentDone { call_id, done, duration_ms } => {
                builder.subagent_done(call_id, *done, duration_ms);
            }
            Input::Answer(answer) => {
                builder.origin = answer.origin.clone();
                builder.answer_permission(*answer)?;
            }
            Input::AllowedByRule { request_id, by, rule } => {
                builder.settle_by_rule_or_mode(request_id, by, rule)
            }
            Input::Update(update) => builder.update(*update)?,
            Input::Rule { add, kind, rule, origin } => {
                builder.origin = origin;
                builder.change_rule(add, kind, rule)?;
            }
            Input::EditQueue { edit, origin } => {
                builder.origin = origin;
                builder.edit_queue(edit)?;
            }
            Input::Archive { archived, origin } => {
                builder.origin = origin;
                builder.archive(archived)?;
            }
            Input::Forked(forked) => builder.finish_fork(*forked),
            Input::Imported => builder.finish_import(),
            Input::Rewind(rewind) => builder.rewind(*rewind)?,
            Input::DeadlineReached => builder.expire_requests(),
            Input::JobEvents(events) => builder.job_events(events),
            Input::BookUsage(booking) => builder.book_outside_usage(*booking),
            Input::Notice { kind, text } => _ = builder.push_session(Event::Notice { kind, text }),
            Input::AnswerQuestion { request_id, choice, origin } => {
                builder.origin = origin;
                builder.answer_question(request_id, choice)?;
            }
            Input::AnswerUser { request_id, answers, origin } => {
                builder.origin = origin;
                builder.answer_user(request_id, answers)?;
            }
            Input::ChooseAnswer { request_id, item_id, origin } => {
                builder.origin = origin;
                builder.choose_answer(request_id, item_id)?;
            }
            Input::Inspected { call_id, inspection } => builder.apply_inspection(call_id, inspection),
            Input::Abort { turn_id, call_id, origin } => {
                builder.origin = origin;
                builder.abort(turn_id, call_id)?;
            }
            Input::Kill { origin } => {
                builder.origin = origin;
                builder.kill();
            }
            Input::Stopped { model_snapshot } => builder.finish_stop(model_snapshot),
            Input::Attached { clients, origin } => {
                builder.origin = origin;
                builder.push_session(Event::SessionAttached { clients });
            }
            Input::Detached { clients, origin } => {
                builder.origin = origin;
                builder.push_session(Event::SessionDetached { clients });
            }
            Input::Parked { helped } => builder.park_session(helped),
            Input::HelperDone { token, outcome, began, duration_ms } => {
                builder.helper_done(token, *outcome, began, duration_ms);
            }
            Input::Reloaded { changed, needs_restart, files } => {
                builder.push_session(Event::ConfigReloaded { changed, needs_restart, files });
            }
            Input::ClockSet { by_ms } => {
                if builder.state.turn.is_some() {
                    builder.push_turn(Event::ClockChanged { by_ms });
                }
            }
            Input::Recovered(recovery) => builder.recovered(recovery),
        }
        Ok(builder.finish_decision())
    }
}
