//! Random scripts against the properties.

use std::collections::BTreeSet;
use std::sync::Mutex;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::{script, setup, simulator};

proptest! {
    #![proptest_config(Config { cases: 400, max_shrink_iters: 4_000, ..Config::default() })]

    #[test]
    fn random_scripts_satisfy_all_engine_properties(setup in setup::setup(), script in script::script()) {
        simulator::play(&setup, &script).result.map_err(TestCaseError::fail)?;
    }
}

/// Maximum number of scripts until every event kind and result must have occurred.
const MAX_SCRIPTS: usize = 10_000;

/// The scripts must reach every event and result. Otherwise, properties over few states would hold trivially.
#[test]
fn random_scripts_reach_every_event_and_result() {
    let wanted = [
        "budget.warning",
        "clock.changed",
        "command.completed",
        "compact.completed",
        "compact.started",
        "compacted autocompact",
        "compacted collapse",
        "compacted microcompact",
        "answer cut short",
        "config.reloaded",
        "early call",
        "error",
        "feedback Abort",
        "feedback Answer",
        "feedback Equal",
        "feedback Single",
        "feedback.request",
        "file.changed",
        "file.checkpointed",
        "heartbeat",
        "job.event",
        "helper.completed",
        "hook.completed",
        "hooks.status",
        "helper.started",
        "mcp.status",
        "mcp.tools",
        "media.withheld",
        "message.block_completed",
        "message.block_started",
        "message.completed",
        "message.started",
        "message.text_delta",
        "message.thinking_delta",
        "message.tombstone",
        "message.tool_input_delta",
        "model.switched",
        "notice",
        "permission.expired",
        "permission.requested",
        "permission.resolved",
        "permission.rule_added",
        "permission.rule_removed",
        "question.requested",
        "question.resolved",
        "reminder.added",
        "repeated call",
        "retry",
        "session.archived",
        "tool.summary",
        "session.cleared",
        "session.attached",
        "session.prompt_built",
        "session.rewound",
        "turn.prompt_built",
        "session.detached",
        "session.ended",
        "session.status",
        "session.updated",
        "stream.idle",
        "tool.background",
        "outside run",
        "tool.blocked",
        "tool.completed",
        "tool.progress",
        "tool.requested",
        "tool.started",
        "todo.updated",
        "tool.status",
        "turn aborted",
        "turn error_during_execution",
        "turn error_max_budget_usd",
        "turn error_max_time",
        "turn error_max_tokens",
        "turn error_max_turns",
        "turn error_repeated_call",
        "turn llm_error",
        "turn max_output_tokens",
        "turn permission_denied",
        "turn structured_output_invalid",
        "turn success",
        "turn.aborting",
        "turn.completed",
        "turn.output_rejected",
        "turn.phase",
        "turn.dequeued",
        "turn.queue_moved",
        "turn.queue_updated",
        "turn.queued",
        "turn.parked",
        "turn.resumed",
        "turn.started",
        "turn.steered",
        "usage",
        "workspace.trust_required",
    ];
    // The rarest results need thousands of scripts: two threads share them.
    let is_complete = |seen: &BTreeSet<String>| wanted.iter().all(|kind| seen.contains(*kind));
    let seen = Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for seed in [1, 2] {
            let (seen, is_complete) = (&seen, &is_complete);
            scope.spawn(move || {
                let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
                let mut runner = TestRunner::new_with_rng(Config::default(), rng);
                for _ in 0..MAX_SCRIPTS / 2 {
                    if is_complete(&seen.lock().expect("no thread failed")) {
                        return;
                    }
                    let case =
                        (setup::setup(), script::script()).new_tree(&mut runner).expect("a script").current();
                    let played = simulator::play(&case.0, &case.1);
                    played.result.expect("the properties hold");
                    seen.lock().expect("no thread failed").extend(played.seen);
                }
            });
        }
    });
    let seen = seen.into_inner().expect("no thread failed");
    let missing: Vec<_> = wanted.iter().filter(|kind| !seen.contains(**kind)).collect();
    assert!(missing.is_empty(), "never met: {missing:?}");
}
