//! Converts committed events to spans and metrics. Pure: the result depends on the events alone.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};

use super::histogram::{Attribute, Histogram};
use types::event::{Envelope, Event, Phase};
use types::ids::{Seq, SessionId, TurnId};
use types::model::StopReason;
use types::session::TurnResult;
use types::time::Timestamp;
use types::tool::ToolStatus;
use types::usage::Usage;

/// Turns that are tracked at once. Model calls of further turns have no start time of their own.
const MAX_OPEN_TURNS: usize = 10_000;
/// Characters of a tool's name.
const MAX_TOOL_CHARS: usize = 80;

/// The span kind of OpenTelemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Internal,
    Client,
}

/// A finished span.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Span {
    /// Derived from the turn id, so that the trace of a turn can be found.
    pub trace: [u8; 16],
    pub id: [u8; 8],
    pub parent: Option<[u8; 8]>,
    pub name: String,
    pub kind: Kind,
    pub start: Timestamp,
    pub end: Timestamp,
    pub attributes: Vec<(&'static str, Attribute)>,
    pub is_error: bool,
}

/// The relevant data of an event: small, and without conversation text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SpanEvent {
    session_id: SessionId,
    turn_id: TurnId,
    seq: Seq,
    at: Timestamp,
    what: SpanEventKind,
}

#[derive(Clone, Debug, PartialEq)]
enum SpanEventKind {
    TurnBegan {
        model: String,
    },
    CallBegan,
    /// A model call ended with an answer.
    Answered {
        model: String,
        usage: Usage,
        stop: Option<StopReason>,
        response: Option<String>,
        took_ms: u64,
        cache_hit: bool,
    },
    /// A model call ended without an answer. It may be reported twice, first with its usage.
    Lost {
        usage: Option<(String, Usage)>,
    },
    ToolEnded {
        tool: String,
        call: String,
        status: ToolStatus,
        code: Option<String>,
        took_ms: u64,
    },
    TurnEnded {
        result: Box<TurnEnd>,
    },
}

/// The end of a turn, without its texts.
#[derive(Clone, Debug, PartialEq)]
struct TurnEnd {
    subtype: &'static str,
    is_error: bool,
    duration_ms: u64,
    model_ms: u64,
    tools_ms: u64,
    waiting_ms: u64,
    model_calls: u64,
    usage: Usage,
    cost_usd_micros: Option<u64>,
}

impl TurnEnd {
    fn from_result(result: &TurnResult) -> Self {
        use types::session::Subtype;
        Self {
            subtype: result.subtype.name(),
            is_error: !matches!(
                result.subtype,
                Subtype::Success | Subtype::Aborted | Subtype::PermissionDenied
            ),
            duration_ms: result.duration_ms,
            model_ms: result.model_ms,
            tools_ms: result.tools_ms,
            waiting_ms: result.permission_ms,
            model_calls: result.model_calls,
            usage: result.usage,
            cost_usd_micros: result.cost_usd_micros,
        }
    }
}

impl SpanEvent {
    /// Extracts the relevant data of an event; `None` if there is none.
    pub fn from_envelope(envelope: &Envelope) -> Option<Self> {
        let what = match &envelope.event {
            Event::TurnStarted { options } => {
                SpanEventKind::TurnBegan { model: options.model.clone().unwrap_or_default() }
            }
            Event::TurnPhase { phase: Phase::ModelCall, .. } => SpanEventKind::CallBegan,
            Event::MessageCompleted {
                model,
                usage: Some(usage),
                stop_reason,
                duration_ms,
                response_id,
                cache_hit,
                ..
            } => SpanEventKind::Answered {
                cache_hit: *cache_hit,
                model: model.clone().unwrap_or_default(),
                usage: *usage,
                stop: *stop_reason,
                response: response_id.clone(),
                took_ms: duration_ms.unwrap_or(0),
            },
            Event::UsageBooked { model, usage, .. } => {
                SpanEventKind::Lost { usage: Some((model.clone(), *usage)) }
            }
            Event::Retry { .. } => SpanEventKind::Lost { usage: None },
            Event::ToolCompleted { call_id, tool, status, code, duration_ms, .. } => {
                SpanEventKind::ToolEnded {
                    // The name as the model wrote it; it may be any text.
                    tool: tool.chars().take(MAX_TOOL_CHARS).collect(),
                    call: call_id.to_string(),
                    status: *status,
                    code: code.clone(),
                    took_ms: *duration_ms,
                }
            }
            Event::TurnCompleted { result } => {
                SpanEventKind::TurnEnded { result: Box::new(TurnEnd::from_result(result)) }
            }
            _ => return None,
        };
        let (session_id, seq, at) = (envelope.session_id, envelope.seq, envelope.at_ms);
        Some(Self { session_id, turn_id: envelope.turn_id?, seq, at, what })
    }
}

/// The attributes of a turn.
fn turn_attributes(turn_id: TurnId, model: &str, result: &TurnEnd) -> Vec<(&'static str, Attribute)> {
    let mut attributes = vec![
        ("gen_ai.operation.name", text("invoke_agent")),
        ("gen_ai.agent.name", text("agentd")),
        ("gen_ai.provider.name", text(provider(model))),
        ("gen_ai.request.model", text(bare_model(model))),
        ("agentd.turn.id", text(&turn_id.to_string())),
        ("agentd.turn.result", text(result.subtype)),
        ("agentd.turn.model_calls", Attribute::Count(result.model_calls)),
        ("agentd.turn.model_ms", Attribute::Count(result.model_ms)),
        ("agentd.turn.tools_ms", Attribute::Count(result.tools_ms)),
        ("agentd.turn.waiting_ms", Attribute::Count(result.waiting_ms)),
    ];
    attributes.extend(counts(&result.usage));
    // An unknown cost is omitted, because it is not zero.
    if let Some(cost) = result.cost_usd_micros {
        attributes.push(("agentd.turn.cost_usd", Attribute::Real(cost as f64 / 1e6)));
    }
    if result.is_error {
        attributes.push(("error.type", text(result.subtype)));
    }
    attributes
}

/// The open turns, and the metrics of all turns.
#[derive(Debug)]
pub(super) struct Spans {
    open: HashMap<SessionId, OpenTurn>,
    pub tokens: Histogram,
    pub durations: Histogram,
}

#[derive(Debug)]
struct OpenTurn {
    model: String,
    called_at: Option<Timestamp>,
}

impl Spans {
    pub fn new() -> Self {
        Self { open: HashMap::new(), tokens: Histogram::tokens(), durations: Histogram::durations() }
    }

    /// Adds an event and returns the span that it ends, if any.
    pub fn handle_event(&mut self, event: SpanEvent) -> Option<Span> {
        let SpanEvent { session_id, turn_id, seq, at, what } = event;
        let root = span_id(&format!("{turn_id}"));
        let span =
            |name: String, kind, took_ms: u64, mut attributes: Vec<(&'static str, Attribute)>, is_error| {
                attributes.push(("gen_ai.conversation.id", text(&session_id.to_string())));
                let start = Timestamp(at.0.saturating_sub(i64::try_from(took_ms).unwrap_or(0)));
                let id = span_id(&format!("{turn_id}:{seq}"));
                Span {
                    trace: trace_id(turn_id),
                    id,
                    parent: Some(root),
                    name,
                    kind,
                    start,
                    end: at,
                    attributes,
                    is_error,
                }
            };
        match what {
            SpanEventKind::TurnBegan { model } => {
                if self.open.len() < MAX_OPEN_TURNS {
                    self.open.insert(session_id, OpenTurn { model, called_at: None });
                }
                None
            }
            SpanEventKind::CallBegan => {
                if let Some(open) = self.open.get_mut(&session_id) {
                    open.called_at = Some(at);
                }
                None
            }
            SpanEventKind::Answered { model, usage, stop, response, took_ms, cache_hit } => {
                if let Some(open) = self.open.get_mut(&session_id) {
                    open.called_at = None;
                }
                let mut attributes = self.call(&model, Some(usage), took_ms, None);
                if cache_hit {
                    attributes.push(("agentd.response_cache_hit", text("true")));
                }
                if let Some(id) = response {
                    attributes.push(("gen_ai.response.id", text(&id)));
                }
                if let Some(stop) = stop {
                    attributes.push(("gen_ai.response.finish_reasons", Attribute::Texts(vec![reason(stop)])));
                }
                Some(span(format!("chat {}", bare_model(&model)), Kind::Client, took_ms, attributes, false))
            }
            SpanEventKind::Lost { usage } => {
                // A retry after a usage record belongs to the same call.
                let open = self.open.get_mut(&session_id)?;
                let called_at = open.called_at.take()?;
                let (model, usage) =
                    usage.map_or_else(|| (open.model.clone(), None), |(model, usage)| (model, Some(usage)));
                let took_ms = at.since(called_at);
                let attributes = self.call(&model, usage, took_ms, Some("lost_attempt"));
                Some(span(format!("chat {}", bare_model(&model)), Kind::Client, took_ms, attributes, true))
            }
            SpanEventKind::ToolEnded { tool, call, status, code, took_ms } => {
                let is_error = matches!(status, ToolStatus::Failed | ToolStatus::Unknown);
                let mut attributes = vec![
                    ("gen_ai.operation.name", text("execute_tool")),
                    ("gen_ai.tool.name", text(&tool)),
                    ("gen_ai.tool.call.id", text(&call)),
                ];
                if status != ToolStatus::Completed {
                    let word = format!("{status:?}").to_lowercase();
                    attributes.push(("error.type", Attribute::Text(code.unwrap_or(word))));
                }
                Some(span(format!("execute_tool {tool}"), Kind::Internal, took_ms, attributes, is_error))
            }
            SpanEventKind::TurnEnded { result } => {
                let model = self.open.remove(&session_id).map(|open| open.model).unwrap_or_default();
                let attributes = turn_attributes(turn_id, &model, &result);
                let made = span(
                    "invoke_agent agentd".into(),
                    Kind::Internal,
                    result.duration_ms,
                    attributes,
                    result.is_error,
                );
                Some(Span { id: root, parent: None, ..made })
            }
        }
    }

    /// The attributes of a model call, which also updates the metrics.
    fn call(
        &mut self,
        model: &str,
        usage: Option<Usage>,
        took_ms: u64,
        error: Option<&str>,
    ) -> Vec<(&'static str, Attribute)> {
        let mut common = vec![
            ("gen_ai.operation.name", text("chat")),
            ("gen_ai.provider.name", text(provider(model))),
            ("gen_ai.request.model", text(bare_model(model))),
        ];
        if let Some(usage) = &usage {
            for (kind, count) in [("input", input(usage)), ("output", usage.output_tokens)] {
                let mut with = common.clone();
                with.push(("gen_ai.token.type", text(kind)));
                self.tokens.record(with, count as f64);
            }
        }
        if let Some(error) = error {
            common.push(("error.type", text(error)));
        }
        self.durations.record(common.clone(), took_ms as f64 / 1e3);
        common.extend(usage.iter().flat_map(counts));
        common
    }
}

/// All input tokens: the semantic conventions include tokens read from and written to a cache.
fn input(usage: &Usage) -> u64 {
    usage.input_tokens.saturating_add(usage.cache_read_tokens).saturating_add(usage.cache_write_tokens)
}

fn counts(usage: &Usage) -> Vec<(&'static str, Attribute)> {
    vec![
        ("gen_ai.usage.input_tokens", Attribute::Count(input(usage))),
        ("gen_ai.usage.output_tokens", Attribute::Count(usage.output_tokens)),
        ("gen_ai.usage.cache_read.input_tokens", Attribute::Count(usage.cache_read_tokens)),
        ("gen_ai.usage.cache_creation.input_tokens", Attribute::Count(usage.cache_write_tokens)),
        ("agentd.usage.reasoning_tokens", Attribute::Count(usage.reasoning_tokens)),
    ]
}

fn text(text: &str) -> Attribute {
    Attribute::Text(text.to_owned())
}

fn reason(stop: StopReason) -> String {
    match serde_json::to_value(stop) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// The text before the slash: the configured name of a provider.
fn provider(model: &str) -> &str {
    model.split_once('/').map_or("", |(provider, _)| provider)
}

fn bare_model(model: &str) -> &str {
    model.split_once('/').map_or(model, |(_, name)| name)
}

/// The id of a trace: the id of its turn, which has the same length.
fn trace_id(turn_id: TurnId) -> [u8; 16] {
    let digest = Sha256::digest(turn_id.to_string());
    let name = turn_id.to_string();
    let hex: Vec<u8> = name.bytes().skip_while(|byte| *byte != b'_').filter(u8::is_ascii_hexdigit).collect();
    let mut id = [0; 16];
    for (n, byte) in id.iter_mut().enumerate() {
        let pair = hex.get(2 * n..2 * n + 2).and_then(|pair| std::str::from_utf8(pair).ok());
        *byte = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()).unwrap_or(digest[n]);
    }
    id
}

/// The id of a span; equal inputs give equal ids.
fn span_id(of: &str) -> [u8; 8] {
    let digest = Sha256::digest(of);
    let mut id = [0; 8];
    id.copy_from_slice(&digest[..8]);
    id
}
