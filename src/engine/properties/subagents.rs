//! Trees of sessions: a tree stays within the limits of its first session, whatever models and sub-agents do.
//!
//! Each session of the tree has its own engine. The simulator replaces the tasks of the sessions: it
//! creates the engine of a sub-agent when its parent's effect requests it, and reports the sub-agent's end.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use crate::generators::{checked_rules, model_snapshot};
use crate::restart::lasting_events;
use engine::{Effect, Engine, Input, JudgedCall, Now, Settings, SubmitRequest};
use types::event::{Envelope, Event};
use types::ids::{CallId, Mint, Seed, SessionId};
use types::message::InputBlock;
use types::model::{ModelReply, ReplyBlock, StopReason};
use types::permission::{Verdict, VerdictKind};
use types::queue::WhenBusy;
use types::session::{SessionSpec, Subtype, TurnError, TurnResult};
use types::subagent::ParentCall;
use types::time::Timestamp;
use types::tool::{PreparedCall, Subject};
use types::turn_options::TurnOptions;
use types::usage::{Budgets, Usage};

/// Depth from which models start no sub-agents. Real sessions enforce this by not offering the tool.
const MAX_DEPTH: u32 = 3;
/// Maximum number of steps in which a tree must end.
const MAX_STEPS: usize = 20_000;

/// Numbers that determine the behaviour of the models at each step.
#[derive(Clone, Debug)]
struct Script {
    budgets: Budgets,
    draws: Vec<u8>,
    /// Whether the first session also starts sub-agents in the background.
    background: bool,
}

fn scripts() -> impl Strategy<Value = Script> {
    let limit = || proptest::option::weighted(0.6, 1_u64..30);
    let budgets = (limit(), limit(), limit(), limit(), limit(), limit()).prop_map(
        |(model_calls, session_model_calls, usd, session_usd, tokens, session_tokens)| Budgets {
            model_calls,
            session_model_calls,
            usd_micros: usd,
            session_usd_micros: session_usd,
            output_tokens: tokens,
            session_output_tokens: session_tokens,
            ..Budgets::default()
        },
    );
    (budgets, proptest::collection::vec(any::<u8>(), 1..60), any::<bool>())
        .prop_map(|(budgets, draws, background)| Script { budgets, draws, background })
}

struct Node {
    engine: Engine,
    depth: u32,
    /// Id of the parent's session, and the call that waits for this sub-agent.
    parent: Option<(SessionId, CallId)>,
    /// Effects that are not done yet.
    effects: Vec<Effect>,
    result: Option<TurnResult>,
    journal: Vec<Envelope>,
}

struct Tree {
    nodes: BTreeMap<SessionId, Node>,
    draws: Vec<u8>,
    drawn: usize,
    clock: i64,
    settings: Arc<Settings>,
    background: bool,
    calls: u64,
}

impl Tree {
    fn new(script: &Script) -> (Self, SessionId) {
        let settings = Arc::new(Settings { subagents: 4, ..Settings::default() });
        let mut tree = Self {
            nodes: BTreeMap::new(),
            draws: script.draws.clone(),
            drawn: 0,
            clock: 1,
            settings,
            background: script.background,
            calls: 0,
        };
        let root = Mint::new(0, Seed(1)).session();
        tree.add(root, None, script.budgets, 0);
        (tree, root)
    }

    /// Returns the next number. After the script it is always 0, so that each tree ends.
    fn next_draw(&mut self) -> u8 {
        self.drawn += 1;
        self.draws.get(self.drawn - 1).copied().unwrap_or(0)
    }

    fn now(&mut self) -> Now {
        self.clock += 1;
        Now { at: Timestamp(self.clock), seed: Seed(u128::from(self.clock.unsigned_abs())) }
    }

    fn add(&mut self, id: SessionId, parent: Option<(SessionId, CallId)>, budgets: Budgets, depth: u32) {
        let parent_call = parent.map(|(session_id, call_id)| ParentCall {
            session_id,
            call_id,
            root_session_id: session_id,
            depth,
        });
        let spec = SessionSpec {
            cwd: "/w".into(),
            title: "t".into(),
            model: "p/m".into(),
            budgets,
            parent: parent_call,
            ..SessionSpec::default()
        };
        let created = Envelope {
            seq: 1,
            session_id: id,
            turn_id: None,
            item_id: None,
            step: None,
            parent_call_id: None,
            at_ms: Timestamp(self.clock),
            origin: None,
            truncated_fields: Vec::new(),
            event: Event::SessionCreated(Box::new(spec)),
        };
        let mut engine = Engine::new(id, Arc::clone(&self.settings));
        engine.apply(&created);
        let node = Node { engine, depth, parent, effects: Vec::new(), result: None, journal: vec![created] };
        self.nodes.insert(id, node);
        let submit = SubmitRequest {
            input: vec![InputBlock::Text { text: "go".into() }],
            blobs: Vec::new(),
            when_busy: Some(WhenBusy::Queue),
            expected_turn: None,
            options: TurnOptions::default(),
            origin: None,
        };
        self.feed(id, Input::Submit(Box::new(submit)));
    }

    fn feed(&mut self, id: SessionId, input: Input) {
        let now = self.now();
        let Some(node) = self.nodes.get_mut(&id) else { return };
        // If no budget is left, the engine refuses even the submit.
        let Ok(decision) = node.engine.decide(input, now) else {
            node.result.get_or_insert_with(unused_result);
            return;
        };
        node.engine = decision.next;
        for entry in decision.plan.events {
            if let Event::TurnCompleted { result } = &entry.envelope.event {
                node.result = Some(result.clone());
            }
            node.journal.push(entry.envelope);
        }
        node.effects.extend(decision.plan.effects);
    }

    /// Completes one outstanding effect, or reports the end of one sub-agent. Returns whether there was one.
    fn step(&mut self) -> bool {
        let ended = self.nodes.iter().find_map(|(id, node)| {
            let (parent, call_id) = node.parent?;
            Some((*id, parent, call_id, node.result.clone()?))
        });
        let waiting: Vec<SessionId> =
            self.nodes.iter().filter(|(_, node)| !node.effects.is_empty()).map(|(id, _)| *id).collect();
        if let Some((id, parent, call_id, result)) = ended
            && (waiting.is_empty() || self.next_draw().is_multiple_of(2))
        {
            if let Some(node) = self.nodes.get_mut(&id) {
                node.parent = None;
            }
            let outcome = Box::new(Ok(result));
            self.feed(parent, Input::SubagentDone { call_id, done: outcome, duration_ms: 1 });
            return true;
        }
        if waiting.is_empty() {
            return false;
        }
        let id = waiting[usize::from(self.next_draw()) % waiting.len()];
        let Some(node) = self.nodes.get_mut(&id) else { return false };
        let effect = node.effects.remove(0);
        let depth = node.depth;
        self.start_effect(id, depth, effect);
        true
    }

    fn start_effect(&mut self, id: SessionId, depth: u32, effect: Effect) {
        match effect {
            Effect::GatherContext => self.feed(
                id,
                Input::ContextReady {
                    system: "s".into(),
                    sources: Vec::new(),
                    instructions: Vec::new(),
                    skipped_instructions: Vec::new(),
                    untrusted: None,
                },
            ),
            Effect::CheckContext { turn_id } => {
                self.feed(
                    id,
                    Input::ContextChecked { turn_id, changed_files: Vec::new(), instructions: None },
                );
            }
            Effect::CallModel { token, .. } => {
                self.calls += 1;
                let reply = self.answer(depth);
                self.feed(
                    id,
                    Input::ModelDone {
                        token,
                        reply: Box::new(reply),
                        cost_usd_micros: Some(1),
                        model_snapshot: model_snapshot(),
                        duration_ms: 1,
                    },
                );
            }
            Effect::Prepare { turn_id, calls } => {
                let judge = |call_id| {
                    // Only the first session may start background sub-agents.
                    let background = self.background && depth == 0 && self.next_draw().is_multiple_of(3);
                    judged_call(call_id, background)
                };
                let calls = calls.iter().map(|call| call.call_id).map(judge).collect();
                let mode = self.nodes[&id].engine.mode();
                self.feed(id, Input::Prepared { turn_id, mode, calls });
            }
            Effect::CheckRules { turn_id, calls } => {
                let calls: Vec<CallId> = calls.iter().map(|(call, _)| call.call_id).collect();
                let mode = self.nodes[&id].engine.mode();
                self.feed(id, checked_rules(turn_id, mode, &calls, 0));
            }
            Effect::RunSubagent { call, child_session_id, budgets, .. } => {
                self.add(child_session_id, Some((id, call.call_id)), budgets, depth + 1);
            }
            Effect::StopAll => {
                let snapshot = model_snapshot();
                self.feed(id, Input::Stopped { model_snapshot: snapshot });
            }
            _ => {}
        }
    }

    /// Whether replaying a session's journal gives its state, with all events and with those that loading reads.
    fn replays(&self, node: &Node) -> bool {
        let journal: Vec<&Envelope> = node.journal.iter().collect();
        let lasting = lasting_events(&journal);
        [journal, lasting].into_iter().all(|events| {
            let mut replayed = Engine::replay(node.engine.session_id(), Arc::clone(&self.settings), events);
            replayed.skip_to(node.engine.next_seq());
            replayed.has_same_state_as(&node.engine)
        })
    }

    /// An answer that costs one token and one millionth of a dollar, and may start sub-agents.
    fn answer(&mut self, depth: u32) -> ModelReply {
        let count = if depth < MAX_DEPTH { usize::from(self.next_draw()) % 4 } else { 0 };
        let mut content = vec![ReplyBlock::Text("a".into())];
        for _ in 0..count {
            let number = self.next_draw();
            content.push(ReplyBlock::ToolCall {
                provider_id: format!("p{}-{number}", self.drawn),
                tool: "Task".into(),
                input: Ok(serde_json::json!({"description": "d", "prompt": "p", "subagent_type": "a"})),
            });
        }
        ModelReply {
            stop_reason: if count > 0 { StopReason::ToolUse } else { StopReason::EndTurn },
            content,
            usage: Usage { output_tokens: 1, ..Usage::default() },
            nested: Vec::new(),
            is_restated: false,
            response_id: None,
            notices: Vec::new(),
            cache_hit: false,
            last: Vec::new(),
        }
    }
}

fn judged_call(call_id: CallId, background: bool) -> JudgedCall {
    let prepared = PreparedCall {
        subject: Subject::Task { agent: "a".into(), background, read_only: false },
        summary: "a: d".into(),
        diff: None,
        read_only: false,
        change: None,
        sandbox: None,
    };
    let verdict = Verdict {
        verdict: VerdictKind::Allow,
        rule: None,
        reason: "each call is judged".into(),
        suggestions: Vec::new(),
        parts: Vec::new(),
        read_only_command: false,
        read_only: false,
    };
    JudgedCall { call_id, updated_input: None, result: Ok((prepared, verdict)) }
}

/// The result of a sub-agent that made no call.
fn unused_result() -> TurnResult {
    let result = TurnResult::unknown(Subtype::ErrorMaxTurns, TurnError::new("budget", "nothing is left"));
    TurnResult { cost_usd_micros: Some(0), ..result }
}

/// Plays a script. An error names the violated property.
fn keeps_to_limits(script: &Script) -> Result<(), TestCaseError> {
    let (mut tree, root) = Tree::new(script);
    let mut steps = 0;
    while tree.step() {
        steps += 1;
        prop_assert!(steps < MAX_STEPS, "the tree does not end");
        let Budgets {
            model_calls,
            session_model_calls,
            usd_micros,
            session_usd_micros,
            output_tokens,
            session_output_tokens,
            ..
        } = script.budgets;
        let of_session = [session_model_calls, session_usd_micros, session_output_tokens];
        // Only the script's first input begins work, so all turns together stay within the limits of one turn.
        let of_turn = [model_calls, usd_micros, output_tokens];
        for limit in of_session.into_iter().chain(of_turn).flatten() {
            // Each call uses one unit of every limit.
            prop_assert!(tree.calls <= limit, "{} calls, limit {limit}", tree.calls);
        }
    }
    // All sub-agents ended, and the first session counts the usage of the whole tree.
    let node = &tree.nodes[&root];
    prop_assert!(node.result.is_some(), "the first turn has ended");
    let snapshot = node.engine.snapshot();
    prop_assert_eq!(snapshot.usage.output_tokens, tree.calls);
    prop_assert_eq!(snapshot.cost_usd_micros, Some(tree.calls));
    for node in tree.nodes.values() {
        prop_assert!(tree.replays(node), "a replay differs");
    }
    Ok(())
}

/// While a turn is being aborted, its background sub-agent ends. The next input reports this to the model, also when
/// the session was unloaded meanwhile.
#[test]
fn aborted_background_subagent_is_remembered_after_loading() {
    // With this number each model starts one sub-agent, in the background.
    let (mut tree, root) =
        Tree::new(&Script { budgets: Budgets::default(), draws: vec![9; 60], background: true });
    while tree.nodes.len() < 2 {
        assert!(tree.step(), "the first session starts a sub-agent");
    }
    let child = tree.nodes.values().find_map(|node| node.parent).expect("a sub-agent");
    tree.feed(root, Input::Abort { turn_id: None, call_id: None, origin: None });
    let result = TurnResult::unknown(Subtype::Aborted, TurnError::new("aborted", "a user aborted it"));
    tree.feed(root, Input::SubagentDone { call_id: child.1, done: Box::new(Ok(result)), duration_ms: 1 });
    tree.feed(root, Input::Stopped { model_snapshot: model_snapshot() });
    let node = &tree.nodes[&root];
    assert!(node.result.is_some(), "the aborted turn has ended");
    assert!(tree.replays(node), "a replay differs");
}

/// A second turn runs with the limits that the first turn did not use. A sub-agent of the first turn
/// ends meanwhile.
#[test]
fn subagent_that_ends_in_a_later_turn_counts_for_its_limit() {
    let draws = vec![
        0, 0, 142, 0, 0, 0, 180, 81, 0, 0, 133, 16, 161, 0, 33, 143, 0, 0, 0, 81, 0, 0, 0, 6, 0, 109, 13,
    ];
    let budgets = Budgets { model_calls: Some(4), ..Budgets::default() };
    keeps_to_limits(&Script { budgets, draws, background: true }).expect("the limit holds");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tree_of_sessions_keeps_to_limits_of_first_session(script in scripts()) {
        keeps_to_limits(&script)?;
    }
}
