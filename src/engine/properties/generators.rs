//! Generated results from outside the engine: model answers as adapters promise them, verdicts, tool results.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::script::{EffectOutcome, FileState, PreparationOutcome, ReplyPart};
use engine::{Engine, Input, JudgedCall};
use types::background::{BackgroundEnd, BackgroundState, UnrecordedEnd};
use types::blob::{Blob, BlobRef};
use types::event::Origin;
use types::history::FileCheckpoint;
use types::hook::{HookEvent, HookRun};
use types::ids::{CallId, Mint, Seed, TurnId};
use types::job::{JobEvent, JobEventKind};
use types::mcp::{McpCatalog, McpInstructions, McpState, McpStatus, McpTool};
use types::message::ToolCall;
use types::model::{BlockKind, Delta, ModelReply, ReplyBlock};
use types::permission::{Mode, Verdict, VerdictKind};
use types::question::{QuestionOption, UserAnswer, UserQuestion};
use types::reminder::FileVersion;
use types::session::UntrustedParts;
use types::time::Timestamp;
use types::todo::{Todo, TodoStatus};
use types::tool::{
    Barrier, Blocked, Confinement, FileChange, Inspection, PathSensitivity, PlannedChange, PlannedEdit,
    PreparedCall, ProposedPlan, ReadRecord, ResolvedPath, Subject, ToolOutcome, ToolStatus,
};
use types::usage::{ModelSnapshot, Price};

/// The parts of a generated model answer.
pub struct GeneratedAnswer {
    pub reply: ModelReply,
    pub cost: Option<u64>,
    pub deltas: VecDeque<Delta>,
}

/// Generates an answer as an adapter promises it: one block at a time, in order, and no empty block.
pub fn answer(chance: &EffectOutcome, mut next: impl FnMut() -> u64) -> GeneratedAnswer {
    let mut content = Vec::new();
    let mut deltas = VecDeque::new();
    // As in the adapters: after a call that cannot start early, no later call starts early.
    let mut starts_early = true;
    for (index, part) in (0u32..).zip(&chance.reply) {
        let number = next();
        let (kind, block) = match part {
            ReplyPart::Text(times) => {
                let text = format!("a{number}. é ").repeat(usize::from(*times));
                let middle = text.floor_char_boundary(text.len() / 2);
                let (head, tail) = text.split_at(middle);
                deltas.push_back(Delta::BlockStarted { index, kind: BlockKind::Text });
                deltas.push_back(Delta::Text { index, text: head.into() });
                deltas.push_back(Delta::Text { index, text: tail.into() });
                (None, ReplyBlock::Text(text))
            }
            ReplyPart::Blank => {
                deltas.push_back(Delta::BlockStarted { index, kind: BlockKind::Text });
                deltas.push_back(Delta::Text { index, text: "\n".into() });
                (None, ReplyBlock::Text("\n".into()))
            }
            ReplyPart::Thinking => {
                deltas.push_back(Delta::BlockStarted { index, kind: BlockKind::Thinking });
                deltas.push_back(Delta::Thinking { index, text: format!("t{number}.") });
                deltas.push_back(Delta::ThinkingSealed { index, signature: Some("s".into()), data: None });
                let (text, signature) = (format!("t{number}."), Some("s".into()));
                (None, ReplyBlock::Thinking { text, signature })
            }
            ReplyPart::Redacted => (Some(BlockKind::Thinking), ReplyBlock::RedactedThinking("x".into())),
            ReplyPart::Call { tool, bad_json } => {
                let kind = usize::from(*tool) % 3;
                let tool = ["Read", "Bash", "Read"][kind].to_string();
                // The third kind of call is the same each time.
                let value = if kind == 2 { 0 } else { number };
                let json = if *bad_json { "{\"a\":".to_string() } else { format!("{{\"a\":{value}}}") };
                deltas.push_back(Delta::BlockStarted {
                    index,
                    kind: BlockKind::ToolCall { tool: tool.clone() },
                });
                deltas.push_back(Delta::ToolInput { index, json: json.clone() });
                let input = serde_json::from_str(&json).map_err(|error| (json, error.to_string()));
                (None, ReplyBlock::ToolCall { provider_id: format!("p{number}"), tool, input })
            }
        };
        if let Some(kind) = kind {
            deltas.push_back(Delta::BlockStarted { index, kind });
        }
        deltas.push_back(Delta::BlockCompleted { index });
        if let ReplyBlock::ToolCall { provider_id, tool, input } = &block {
            match input {
                Ok(input) if starts_early => deltas.push_back(Delta::CallCompleted {
                    index,
                    provider_id: provider_id.clone(),
                    tool: tool.clone(),
                    input: input.clone(),
                }),
                _ => starts_early = false,
            }
        }
        content.push(block);
    }
    let reply = ModelReply {
        content,
        stop_reason: chance.stop,
        usage: chance.usage,
        nested: Vec::new(),
        is_restated: false,
        response_id: None,
        notices: Vec::new(),
        cache_hit: false,
        last: Vec::new(),
    };
    GeneratedAnswer { reply, cost: chance.cost, deltas }
}

/// A snapshot of a model whose limits and price are all known.
pub fn model_snapshot() -> ModelSnapshot {
    let price = Price { input: 1.0, output: 1.0, ..Price::default() };
    ModelSnapshot { context_window: Some(1_000), max_output_tokens: Some(100), price: Some(price) }
}

pub fn origin() -> Option<Origin> {
    Some(Origin { client: "a client".into(), uid: 1, pid: None, exe: None })
}

pub fn context(engine: &Engine) -> Input {
    let spec = engine.prompt_spec();
    let system = format!("be good {:?} {:?}", spec.system_prompt, spec.append_system_prompt);
    let untrusted = Some(UntrustedParts { digest: "d".into(), parts: vec!["hooks".into()] });
    Input::ContextReady {
        system,
        sources: Vec::new(),
        instructions: Vec::new(),
        skipped_instructions: vec!["@a.md does not exist".into()],
        untrusted,
    }
}

/// Generates two events of a job, which the session may have already.
pub fn job_events(chance: u64) -> Input {
    let job_id = Mint::new(1, Seed(1)).job();
    let event = |seq| JobEvent { job_id, seq, at_ms: Timestamp(1), event: JobEventKind::Resumed {} };
    Input::JobEvents(vec![event(chance % 7), event(chance % 7 + 1)])
}

/// Generates a report of hooks.
pub fn hooks(chance: u64) -> Input {
    let run = HookRun {
        error: (chance & 1 == 0).then(|| "exit code 7".into()),
        ..HookRun::new(HookEvent::Stop, "h")
    };
    let (context, stops) = match chance >> 1 & 7 {
        0 | 1 => (Some("a text".to_owned()), None),
        2 => (None, Some("enough".to_owned())),
        3 | 4 => return Input::HooksRead { problems: vec!["a.json, line 2: no command".into()] },
        5 => return Input::HooksRead { problems: Vec::new() },
        _ => (None, None),
    };
    Input::HooksRan { call_id: None, runs: vec![run], continues: None, stops, context }
}

/// Generates the comparison with the disk, with or without changes.
pub fn context_comparison(turn_id: TurnId, chance: u16) -> Input {
    let version = |path: &str| FileVersion { path: path.into(), digest: format!("v{}", chance % 3) };
    let changed_files = if chance.is_multiple_of(2) { vec![version("/w/read.txt")] } else { Vec::new() };
    let instructions = (chance % 4 < 3).then(|| vec![version("/w/AGENTS.md")]);
    Input::ContextChecked { turn_id, changed_files, instructions }
}

pub fn prepared_calls(
    turn_id: TurnId,
    mode: Mode,
    calls: &[Arc<ToolCall>],
    preparations: &[PreparationOutcome],
) -> Input {
    let allow = PreparationOutcome::Allow { read_only: true };
    let calls = calls
        .iter()
        .enumerate()
        .map(|(at, call)| JudgedCall {
            call_id: call.call_id,
            updated_input: None,
            result: judged_call(preparations.get(at).copied().unwrap_or(allow)),
        })
        .collect();
    Input::Prepared { turn_id, mode, calls }
}

/// New verdicts of calls that waited. Most calls are still allowed.
pub fn checked_rules(turn_id: TurnId, mode: Mode, calls: &[CallId], chance: u16) -> Input {
    let kind = match chance % 8 {
        5 => VerdictKind::Ask,
        6 => VerdictKind::Deny,
        _ => VerdictKind::Allow,
    };
    let verdict = |call_id: &CallId| {
        let verdict = Verdict {
            verdict: kind,
            rule: None,
            reason: "the rules changed".into(),
            suggestions: Vec::new(),
            parts: Vec::new(),
            read_only_command: false,
            read_only: false,
        };
        (*call_id, verdict)
    };
    Input::RulesChecked { turn_id, mode, verdicts: calls.iter().map(verdict).collect() }
}

#[expect(clippy::result_large_err, reason = "the engine takes it in this shape")]
fn judged_call(fate: PreparationOutcome) -> Result<(PreparedCall, Verdict), ToolOutcome> {
    let (verdict, read_only, suggests) = match fate {
        PreparationOutcome::Allow { read_only } => (VerdictKind::Allow, read_only, false),
        PreparationOutcome::Ask { read_only, suggests } => (VerdictKind::Ask, read_only, suggests),
        PreparationOutcome::Edit { asks: false, .. } => (VerdictKind::Allow, false, false),
        PreparationOutcome::Edit { asks: true, .. } => (VerdictKind::Ask, false, true),
        PreparationOutcome::Background | PreparationOutcome::Question => (VerdictKind::Allow, false, false),
        PreparationOutcome::Plan => (VerdictKind::Ask, false, false),
        PreparationOutcome::Deny => (VerdictKind::Deny, false, false),
        PreparationOutcome::Refused(status) => {
            return Err(ToolOutcome {
                status,
                ..ToolOutcome::failed("unknown_tool", "there is no such tool")
            });
        }
    };
    let path = ResolvedPath {
        path: "/w/f".into(),
        in_workspace: true,
        sensitivity: PathSensitivity::Ordinary,
        matched_aliases: Vec::new(),
    };
    let change = PlannedChange::One(PlannedEdit {
        sha256_before: None,
        sha256_after: "aa".into(),
        added: 1,
        removed: 0,
        whole: true,
    });
    let (subject, change) = match fate {
        PreparationOutcome::Edit { plans, .. } => (Subject::Edit { path }, plans.then_some(change)),
        PreparationOutcome::Background => {
            (Subject::Bash { command: "serve".into(), background: true, cwd: None }, None)
        }
        PreparationOutcome::Question => (Subject::Question { questions: vec![user_question()] }, None),
        PreparationOutcome::Plan => (Subject::ProposedPlan(ProposedPlan {}), None),
        _ => (Subject::command("ls"), None),
    };
    let prepared = PreparedCall {
        subject,
        change,
        summary: "list".into(),
        diff: Some("-a\n+b".into()),
        read_only,
        sandbox: Some(Confinement { level: 2, network: true, unsandboxed: false }),
    };
    let suggestions = if suggests { vec!["Bash(ls)".into()] } else { Vec::new() };
    Ok((
        prepared,
        Verdict {
            verdict,
            rule: None,
            reason: "a rule".into(),
            suggestions,
            parts: Vec::new(),
            // For a command, `read_only_command` also means that no rule requires a request.
            read_only_command: read_only && suggests,
            read_only,
        },
    ))
}

/// A question of the model, or of a running tool.
pub fn user_question() -> UserQuestion {
    let option = |label: &str| QuestionOption { label: label.into(), description: None };
    let options = vec![option("red"), option("blue")];
    UserQuestion { question: "Which colour?".into(), header: None, options, multi_select: false }
}

/// An answer that matches the question of these scripts.
pub fn user_answer() -> UserAnswer {
    UserAnswer { choices: vec!["blue".into()], text: None }
}

pub fn inspection(call_id: CallId, found: FileState) -> Input {
    let path: std::path::PathBuf = format!("/w/{call_id}").into();
    let inspection = match found {
        FileState::New => Inspection::Done {
            records: vec![ReadRecord {
                path: path.clone(),
                mtime_ns: 1,
                size: 2,
                sha256: "aa".into(),
                whole: true,
                lines: Vec::new(),
                total_lines: None,
            }],
            changes: vec![FileChange {
                path,
                diff: String::new(),
                added: 1,
                removed: 0,
                sha256_before: None,
                sha256_after: None,
            }],
        },
        FileState::Part => Inspection::Partly {
            records: Vec::new(),
            changes: vec![FileChange {
                path,
                diff: String::new(),
                added: 1,
                removed: 0,
                sha256_before: None,
                sha256_after: None,
            }],
            text: "Changed: f. Not changed: g.".into(),
        },
        FileState::Old => Inspection::NotDone,
        FileState::Neither => Inspection::Conflict("it holds something else".into()),
    };
    Input::Inspected { call_id, inspection }
}

/// MCP servers with this number of tools.
pub fn mcp_change(tools: usize) -> Input {
    let tool = |number: usize| McpTool {
        name: format!("mcp__s__t{number}"),
        server: "s".into(),
        tool: format!("t{number}"),
        description: "a tool ".repeat(number * 40),
        input_schema: serde_json::json!({"type": "object"}),
        digest: number.to_string(),
    };
    let instructions = McpInstructions { server: "s".into(), text: "be careful".into() };
    let catalog =
        McpCatalog { tools: (0..tools).map(tool).collect(), instructions: vec![instructions; tools.min(1)] };
    let status = McpStatus { server: "s".into(), state: McpState::Ready, error: None, notes: Vec::new() };
    Input::Mcp { statuses: vec![status], catalog: Some(Box::new(catalog)) }
}

/// The result of a command that continues in the background after its call returned.
pub fn background_start(call_id: CallId) -> Input {
    let outcome = ToolOutcome { continues_in_background: true, ..ToolOutcome::completed("") };
    Input::ToolDone { call_id, outcome: Box::new(outcome), duration_ms: 5 }
}

pub fn background_command_ended(call_id: CallId, state: BackgroundState) -> Input {
    let end = BackgroundEnd { exit_code: Some(0), output_bytes: 3, ..BackgroundEnd::default() };
    Input::CommandOver { call_id, over: Box::new(UnrecordedEnd { state, end, blob: None }) }
}

/// The result of a run that the sandbox blocked.
pub fn tool_blocked(call_id: CallId) -> Input {
    let outcome = ToolOutcome {
        blocked: Some(Blocked { by: Barrier::Files, what: Some("/etc/x".into()) }),
        cwd: Some("/w/sub".into()),
        detail: Some(serde_json::json!({"exit_code": 1})),
        ..ToolOutcome::failed("exit_code", "touch: /etc/x: Permission denied")
    };
    Input::ToolDone { call_id, outcome: Box::new(outcome), duration_ms: 4 }
}

pub fn files_read(call_id: CallId) -> Input {
    let blob = Blob::text("before");
    let content = Some(BlobRef::from(&blob));
    let path = format!("/w/{call_id}").into();
    let file = FileCheckpoint { path, exists: true, sha256: Some("00".into()), content, mode: Some(0o644) };
    Input::FilesRead { call_id, files: vec![file], blobs: vec![blob] }
}

fn todo(content: &str) -> Todo {
    Todo { content: content.into(), status: TodoStatus::Pending, active_form: None }
}

/// The result of a call. Some outputs are long enough to be worth compaction.
pub fn tool_done(call_id: CallId, status: ToolStatus, is_long: bool) -> Input {
    let path: std::path::PathBuf = format!("/w/{call_id}").into();
    let change = FileChange {
        path: path.clone(),
        diff: "+x".into(),
        added: 1,
        removed: 0,
        sha256_before: None,
        sha256_after: None,
    };
    let read = ReadRecord {
        path,
        mtime_ns: 1,
        size: 2,
        sha256: "00".into(),
        whole: true,
        lines: Vec::new(),
        total_lines: None,
    };
    let outcome = ToolOutcome {
        status,
        changes: vec![change],
        reads: vec![read],
        cwd: Some("/w/sub".into()),
        todos: (status == ToolStatus::Completed).then(|| vec![todo(&call_id.to_string())]),
        // Some tools return no output.
        ..ToolOutcome::completed(if is_long { "output é\n".repeat(60) } else { String::new() })
    };
    Input::ToolDone { call_id, outcome: Box::new(outcome), duration_ms: 5 }
}
