//! Random scripts: requests of users, results of effects, and crashes.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::setup::budgets;
use types::model::{FaultKind, StopReason};
use types::permission::{Decision, Mode, OnTimeout, RuleKind, Scope};
use types::question::Choice;
use types::queue::WhenBusy;
use types::thinking::Thinking;
use types::tool::ToolStatus;
use types::usage::{Budgets, Usage};

/// The turn that a client names.
#[derive(Clone, Copy, Debug)]
pub enum NamedTurn {
    NoTurn,
    Current,
    Stale,
}

/// One step of a script. `pick` selects one of the candidates that exist at that moment.
#[derive(Clone, Debug)]
pub enum ScriptStep {
    Submit {
        busy: Option<WhenBusy>,
        named: NamedTurn,
        blank: bool,
        budgets: Option<Budgets>,
        mode: Option<Mode>,
        /// Whether the request names another model.
        model: bool,
        thinking: Option<Thinking>,
        /// Whether the input is the expansion of a slash command.
        command: bool,
        /// Whether the result must satisfy a schema.
        schema: bool,
    },
    /// A command that needs no model. With `clear`, it resets the conversation.
    Slash {
        clear: bool,
        busy: Option<WhenBusy>,
        named: NamedTurn,
        mode: Option<Mode>,
    },
    /// The model reaches its output limit repeatedly.
    TooLong,
    /// A client requests that the conversation is compacted.
    Compact,
    /// An outstanding effect delivers its result.
    Next {
        pick: u8,
        chance: Box<EffectOutcome>,
    },
    Answer {
        pick: u8,
        right: bool,
        decision: Decision,
        scope: Scope,
        grant: bool,
        feedback: bool,
        stop: bool,
        /// Whether the answer replaces the model's arguments.
        edit: bool,
        /// Whether the answer refers to a different request than the pending one.
        other: bool,
    },
    /// A client sets a title, possibly the current one.
    Title {
        same: bool,
    },
    /// A client changes the thinking level.
    Think(Option<Thinking>),
    /// A client changes the mode; with `covers` the new mode allows the pending requests.
    Mode {
        mode: Mode,
        covers: bool,
    },
    /// A client adds a session rule; with `covers` the rule allows the pending requests.
    Rule {
        add: bool,
        kind: RuleKind,
        covers: bool,
    },
    /// Time passes, and deadlines are checked.
    Due {
        wait_ms: u16,
    },
    /// A client answers a question.
    Choose {
        pick: u8,
        right: bool,
        choice: Choice,
    },
    /// A client changes the queue.
    Queue {
        pick: u8,
        to: u8,
        edit: QueueChange,
    },
    /// A client archives the session, or restores it.
    Archive(bool),
    /// A client forks the session at an item, or rewinds the conversation to it.
    Fork {
        pick: u8,
        rewinds: bool,
    },
    AbortTurn(NamedTurn),
    AbortCall {
        pick: u8,
        exists: bool,
    },
    Kill,
    Attach,
    Detach,
    /// The daemon reloads its configuration.
    Reload,
    /// The daemon stops cleanly and restarts.
    Stop,
    /// The daemon crashes. With `unwritten`, it crashes before its decision is written. With `twice`,
    /// it crashes again during recovery.
    Crash {
        unwritten: bool,
        twice: bool,
    },
    /// An earlier or dropped result arrives (again). A background command writes output, or ends.
    Command {
        pick: u8,
        ends: bool,
    },
    Late {
        pick: u8,
    },
}

/// A change of the queue, or the abort of a queued turn.
#[derive(Clone, Copy, Debug)]
pub enum QueueChange {
    Clear,
    Remove,
    Update { blank: bool },
    Move,
    Abort,
}

/// The way in which the next result of an effect ends.
#[derive(Clone, Debug)]
pub struct EffectOutcome {
    pub model: ModelStep,
    pub reply: Vec<ReplyPart>,
    pub stop: StopReason,
    pub usage: Usage,
    pub cost: Option<u64>,
    pub preparations: Vec<PreparationOutcome>,
    pub tool: ToolStep,
    pub inspection: FileState,
    pub wait_ms: u16,
}

impl EffectOutcome {
    /// An outcome in which the model completes its answer, calls are allowed, and tools succeed.
    pub fn successful() -> Self {
        Self {
            model: ModelStep::Finish,
            reply: vec![ReplyPart::Text(1)],
            stop: StopReason::EndTurn,
            usage: Usage::default(),
            cost: Some(0),
            preparations: vec![PreparationOutcome::Allow { read_only: false }; 5],
            tool: ToolStep::Done(ToolStatus::Completed),
            inspection: FileState::Old,
            wait_ms: 0,
        }
    }
}

/// The state of a file whose change was interrupted by a crash.
#[derive(Clone, Copy, Debug)]
pub enum FileState {
    New,
    /// Only some of several files were changed.
    Part,
    Old,
    Neither,
}

#[derive(Clone, Copy, Debug)]
pub enum ModelStep {
    Stream(u8),
    Finish,
    Fail(ModelFailure),
    /// The model sends nothing for a while.
    Silence,
}

/// The failure of a model call.
#[derive(Clone, Copy, Debug)]
pub struct ModelFailure {
    pub kind: FaultKind,
    pub retry_after_ms: Option<u64>,
    /// Tokens of the context window and of the request, if the request exceeds the window.
    pub overflow: Option<(u64, u64)>,
}

/// One block of an answer.
#[derive(Clone, Copy, Debug)]
pub enum ReplyPart {
    /// The number of repetitions of a short text; large numbers exceed one delta.
    Text(u16),
    Blank,
    Thinking,
    Redacted,
    Call {
        tool: u8,
        bad_json: bool,
    },
}

/// The result of preparing a call.
#[derive(Clone, Copy, Debug)]
pub enum PreparationOutcome {
    Allow {
        read_only: bool,
    },
    Ask {
        read_only: bool,
        suggests: bool,
    },
    /// A change of a file. With `plans`, the hashes of the file are known before the change runs.
    Edit {
        asks: bool,
        plans: bool,
    },
    /// A command that continues in the background after its call returned, if the call succeeds.
    Background,
    /// A question of the model to the user.
    Question,
    /// A plan that the model presents for approval.
    Plan,
    Deny,
    Refused(ToolStatus),
}

#[derive(Clone, Copy, Debug)]
pub enum ToolStep {
    Progress(u16),
    Done(ToolStatus),
    /// The sandbox blocked the call.
    Blocked,
}

pub fn script() -> impl Strategy<Value = Vec<ScriptStep>> {
    vec(step(), 1..75)
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Default), Just(Mode::AcceptEdits), Just(Mode::Plan), Just(Mode::DontAsk)]
}

pub(super) fn on_timeout() -> impl Strategy<Value = OnTimeout> {
    use OnTimeout::{AllowReadOnly, Deny, Fail, Pause};
    prop_oneof![Just(Deny), Just(AllowReadOnly), Just(Pause), Just(Fail)]
}

fn named_turn() -> impl Strategy<Value = NamedTurn> {
    prop_oneof![3 => Just(NamedTurn::NoTurn), 1 => Just(NamedTurn::Current), 1 => Just(NamedTurn::Stale)]
}

pub(super) fn thinking() -> impl Strategy<Value = Option<Thinking>> {
    prop_oneof![
        Just(None),
        Just(Some(Thinking::Off)),
        Just(Some(Thinking::High)),
        Just(Some(Thinking::Tokens(2_048))),
    ]
}

fn step() -> impl Strategy<Value = ScriptStep> {
    let busy = || prop_oneof![2 => Just(None), 2 => Just(Some(WhenBusy::Queue)), 5 => Just(Some(WhenBusy::Steer)), 1 => Just(Some(WhenBusy::Interrupt)), 1 => Just(Some(WhenBusy::Reject))];
    let seldom = || prop_oneof![9 => Just(false), 1 => Just(true)];
    let submit = (
        busy(),
        named_turn(),
        prop_oneof![12 => Just(false), 1 => Just(true)],
        proptest::option::weighted(0.1, budgets()),
        proptest::option::weighted(0.1, mode()),
        (seldom(), seldom(), seldom()),
        prop_oneof![9 => Just(None), 1 => thinking()],
    )
        .prop_map(|(busy, named, blank, budgets, mode, (model, command, schema), thinking)| {
            ScriptStep::Submit { busy, named, blank, budgets, mode, model, thinking, command, schema }
        });
    let slash = (seldom(), busy(), named_turn(), proptest::option::weighted(0.2, mode()))
        .prop_map(|(clear, busy, named, mode)| ScriptStep::Slash { clear, busy, named, mode });
    let decision = prop_oneof![3 => Just(Decision::Allow), 1 => Just(Decision::Deny)];
    let scope = prop_oneof![4 => Just(Scope::Once), 2 => Just(Scope::Session), 1 => Just(Scope::Project)];
    let right = prop_oneof![9 => Just(true), 1 => Just(false)];
    let rarely = || prop_oneof![5 => Just(false), 1 => Just(true)];
    let more = (rarely(), rarely(), rarely());
    let answer = (any::<u8>(), right, decision, scope, any::<[bool; 2]>(), more).prop_map(
        |(pick, right, decision, scope, [grant, feedback], (stop, edit, other))| ScriptStep::Answer {
            pick,
            right,
            decision,
            scope,
            grant,
            feedback,
            stop,
            edit,
            other,
        },
    );
    let kind = prop_oneof![3 => Just(RuleKind::Allow), 1 => Just(RuleKind::Ask), 1 => Just(RuleKind::Deny)];
    let rule = (any::<bool>(), kind, rarely()).prop_map(|(add, kind, covers)| ScriptStep::Rule {
        add,
        kind,
        covers,
    });
    let choice = prop_oneof![4 => Just(Choice::Continue), 1 => Just(Choice::Abort)];
    let choose = (any::<u8>(), prop_oneof![9 => Just(true), 1 => Just(false)], choice)
        .prop_map(|(pick, right, choice)| ScriptStep::Choose { pick, right, choice });
    let edit = prop_oneof![
        1 => Just(QueueChange::Clear),
        2 => Just(QueueChange::Remove),
        3 => prop_oneof![7 => Just(false), 1 => Just(true)].prop_map(|blank| QueueChange::Update { blank }),
        4 => Just(QueueChange::Move),
        2 => Just(QueueChange::Abort),
    ];
    let queue =
        (any::<u8>(), any::<u8>(), edit).prop_map(|(pick, to, edit)| ScriptStep::Queue { pick, to, edit });
    let archived = prop_oneof![1 => Just(true), 3 => Just(false)];
    prop_oneof![
        3 => queue,
        1 => archived.prop_map(ScriptStep::Archive),
        2 => any::<(u8, bool)>().prop_map(|(pick, rewinds)| ScriptStep::Fork { pick, rewinds }),
        7 => submit,
        2 => slash,
        44 => (any::<u8>(), effect_outcome()).prop_map(|(pick, chance)| ScriptStep::Next { pick, chance: Box::new(chance) }),
        9 => answer,
        1 => thinking().prop_map(ScriptStep::Think),
        1 => any::<bool>().prop_map(|same| ScriptStep::Title { same }),
        2 => (mode(), rarely()).prop_map(|(mode, covers)| ScriptStep::Mode { mode, covers }),
        1 => rule,
        3 => (0..2_000u16).prop_map(|wait_ms| ScriptStep::Due { wait_ms }),
        3 => choose,
        1 => named_turn().prop_map(ScriptStep::AbortTurn),
        2 => (any::<u8>(), any::<bool>()).prop_map(|(pick, exists)| ScriptStep::AbortCall { pick, exists }),
        1 => prop_oneof![3 => Just(ScriptStep::Detach), 1 => Just(ScriptStep::Kill), 1 => Just(ScriptStep::Reload)],
        1 => Just(ScriptStep::Attach),
        1 => Just(ScriptStep::TooLong),
        1 => Just(ScriptStep::Compact),
        2 => Just(ScriptStep::Stop),
        3 => any::<[bool; 2]>().prop_map(|[unwritten, twice]| ScriptStep::Crash { unwritten, twice }),
        6 => any::<u8>().prop_map(|pick| ScriptStep::Late { pick }),
        6 => (any::<u8>(), any::<bool>()).prop_map(|(pick, ends)| ScriptStep::Command { pick, ends }),
    ]
}

/// A call with the same arguments each time.
const SAME_CALL: ReplyPart = ReplyPart::Call { tool: 2, bad_json: false };

fn effect_outcome() -> impl Strategy<Value = EffectOutcome> {
    let model = prop_oneof![
        4 => (0..9u8).prop_map(ModelStep::Stream),
        7 => Just(ModelStep::Finish),
        4 => failure().prop_map(ModelStep::Fail),
        1 => Just(ModelStep::Silence),
    ];
    let stop = prop_oneof![
        8 => Just(StopReason::EndTurn),
        3 => Just(StopReason::ToolUse),
        2 => Just(StopReason::Pause),
        // This stop reason is frequent, because one result needs three truncated answers in a row.
        5 => Just(StopReason::MaxTokens),
        1 => Just(StopReason::StopSequence),
        1 => Just(StopReason::Refusal),
    ];
    let usage = (0..50u64, 0..50u64).prop_map(|(input_tokens, output_tokens)| Usage {
        input_tokens,
        output_tokens,
        ..Usage::default()
    });
    let tool = prop_oneof![
        2 => (0..4u16).prop_map(ToolStep::Progress),
        6 => status().prop_map(ToolStep::Done),
        2 => Just(ToolStep::Blocked),
    ];
    let cost = prop_oneof![9 => (0..300u64).prop_map(Some), 1 => Just(None)];
    let changed_files = prop_oneof![
        Just(FileState::New),
        Just(FileState::Part),
        Just(FileState::Old),
        Just(FileState::Neither)
    ];
    (
        model,
        // Two answers of the model are equal now and then.
        prop_oneof![5 => vec(part(), 0..5), 1 => Just(vec![SAME_CALL])],
        stop,
        usage,
        cost,
        vec(preparation_outcome(), 5),
        tool,
        changed_files,
        0..400u16,
    )
        .prop_map(|(model, reply, stop, usage, cost, preparations, tool, inspection, wait_ms)| {
            EffectOutcome { model, reply, stop, usage, cost, preparations, tool, inspection, wait_ms }
        })
}

fn failure() -> impl Strategy<Value = ModelFailure> {
    let room = prop_oneof![Just((200_000, 190_000)), Just((200_000, 210_000))];
    let wait = proptest::option::weighted(0.2, 0..5_000u64);
    (fault(), wait, proptest::option::weighted(0.2, room))
        .prop_map(|(kind, retry_after_ms, overflow)| ModelFailure { kind, retry_after_ms, overflow })
}

fn part() -> impl Strategy<Value = ReplyPart> {
    prop_oneof![
        4 => prop_oneof![30 => 1..4u16, 1 => 700..1_500u16].prop_map(ReplyPart::Text),
        2 => Just(ReplyPart::Blank),
        2 => Just(ReplyPart::Thinking),
        1 => Just(ReplyPart::Redacted),
        7 => (0..3u8, prop_oneof![8 => Just(false), 1 => Just(true)])
            .prop_map(|(tool, bad_json)| ReplyPart::Call { tool, bad_json }),
    ]
}

fn preparation_outcome() -> impl Strategy<Value = PreparationOutcome> {
    prop_oneof![
        5 => any::<bool>().prop_map(|read_only| PreparationOutcome::Allow { read_only }),
        4 => any::<[bool; 2]>().prop_map(|[read_only, suggests]| PreparationOutcome::Ask { read_only, suggests }),
        3 => any::<[bool; 3]>().prop_map(|[a, b, c]| PreparationOutcome::Edit { asks: a && b, plans: b || c }),
        3 => Just(PreparationOutcome::Background),
        1 => Just(PreparationOutcome::Question),
        1 => Just(PreparationOutcome::Plan),
        1 => Just(PreparationOutcome::Deny),
        1 => prop_oneof![Just(ToolStatus::Failed), Just(ToolStatus::Denied)].prop_map(PreparationOutcome::Refused),
    ]
}

fn status() -> impl Strategy<Value = ToolStatus> {
    prop_oneof![
        5 => Just(ToolStatus::Completed),
        2 => Just(ToolStatus::Failed),
        1 => Just(ToolStatus::Denied),
        1 => Just(ToolStatus::Cancelled),
        1 => Just(ToolStatus::Unknown),
    ]
}

fn fault() -> impl Strategy<Value = FaultKind> {
    prop_oneof![
        Just(FaultKind::Unconfigured),
        Just(FaultKind::NoKey),
        Just(FaultKind::Unreachable),
        Just(FaultKind::Interrupted),
        Just(FaultKind::Idle),
        Just(FaultKind::RateLimited),
        Just(FaultKind::Overloaded),
        Just(FaultKind::Server),
        Just(FaultKind::Unauthorized),
        Just(FaultKind::Forbidden),
        Just(FaultKind::NotFound),
        Just(FaultKind::BadRequest),
        Just(FaultKind::Garbage),
        Just(FaultKind::CassetteExhausted),
    ]
}
