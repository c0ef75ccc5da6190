//! Tests of both adapters, the replay provider and the recorder. A local server answers, fails, stalls
//! and disconnects as scripted.

mod call_ids;
mod cassettes;
mod conversation;
mod failures;
mod fault_table;
mod media;
mod provider_options;
mod rules;
mod streaming;
mod versions;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agentd::model::{ModelFacts, Models, Provider, ProviderKind, Settings};
use agentd::types::config_values::ConfigDuration;
use agentd::types::ids::{Mint, Seed};
use agentd::types::message::{Block, Message, Role, ToolCall};
use agentd::types::model::{Delta, FaultKind, ModelFault, ModelReply, ModelRequest, ReplyBlock, StopReason};
use agentd::types::tool::ToolDefinition;
use agentd::types::usage::Usage;
use serde_json::json;
use tokio::sync::mpsc;

use crate::support::model_server::{Gate, ModelServer, Step};

const DEADLINE: Duration = Duration::from_secs(20);
const ALL: [ProviderKind; 3] =
    [ProviderKind::Anthropic, ProviderKind::OpenAiChat, ProviderKind::OpenAiResponses];
/// Cargo sets this variable for every test, and its value has no spaces, so tests use it as a key.
const KEY_VARIABLE: &str = "CARGO_MANIFEST_DIR";
const KEY: &str = env!("CARGO_MANIFEST_DIR");

fn provider(kind: ProviderKind, server: &ModelServer) -> Provider {
    let base_url = if kind == ProviderKind::Anthropic { server.url().into() } else { server.openai_url() };
    Provider { base_url: Some(base_url), api_key_env: Some(KEY_VARIABLE.into()), ..Provider::new(kind) }
}

fn models_with(provider: Provider, change: impl FnOnce(&mut Settings)) -> Models {
    let mut settings = Settings { providers: [("test".to_owned(), provider)].into(), ..Settings::default() };
    change(&mut settings);
    Models::new(settings).expect("settings that work")
}

fn models(kind: ProviderKind, server: &ModelServer) -> Models {
    models_with(provider(kind, server), |_| {})
}

fn replay(cassette: &Path) -> Models {
    let cassette = Some(cassette.to_owned());
    models_with(Provider { cassette, ..Provider::new(ProviderKind::Replay) }, |_| {})
}

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        system: "Be brief.".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: [ToolDefinition {
            name: "Read".into(),
            description: "Reads a file.".into(),
            input_schema: json!({"type":"object","properties":{"file_path":{"type":"string"}}}),
            read_only: true,
        }]
        .into(),
        ..ModelRequest::new("test/scripted".parse().expect("a model"))
    }
}

fn hello() -> ModelRequest {
    request(vec![Message::user("hello")])
}

/// Appends the reply to the transcript, with a result for each of its calls.
fn continue_request(mut asked: ModelRequest, reply: &ModelReply) -> ModelRequest {
    let mut mint = Mint::new(1, Seed(asked.messages.len() as u128));
    let mut said = Vec::new();
    let mut results = Vec::new();
    for block in &reply.content {
        said.push(match block {
            ReplyBlock::Text(text) => Block::Text { text: text.clone() },
            ReplyBlock::Thinking { text, signature } => {
                Block::Thinking { text: text.clone(), signature: signature.clone() }
            }
            ReplyBlock::RedactedThinking(data) => Block::RedactedThinking { data: data.clone() },
            ReplyBlock::ToolCall { provider_id, tool, input } => {
                let call_id = mint.call();
                results.push(Block::ToolResult {
                    call_id,
                    provider_id: provider_id.clone(),
                    content: format!("result of {tool}"),
                    is_error: false,
                    attachments: Vec::new(),
                });
                Block::ToolCall(ToolCall {
                    call_id,
                    provider_id: provider_id.clone(),
                    tool: tool.clone(),
                    input: input.clone().expect("JSON"),
                    input_error: None,
                })
            }
        });
    }
    if results.is_empty() {
        results.push(Block::Text { text: "go on".into() });
    }
    asked.messages.push(Arc::new(Message::new(Role::Assistant, said)));
    asked.messages.push(Arc::new(Message::new(Role::User, results)));
    asked
}

/// Calls the model and collects all deltas, including those that arrive with the reply.
async fn call(models: &Models, request: &ModelRequest) -> (Vec<Delta>, Result<ModelReply, ModelFault>) {
    let (out, mut deltas) = mpsc::channel::<Vec<Delta>>(4);
    let collect = async {
        let mut all = Vec::new();
        while let Some(batch) = deltas.recv().await {
            assert!(!batch.is_empty(), "an empty batch");
            all.extend(batch);
        }
        all
    };
    let ask = async {
        let outcome = models.call(request, &out).await;
        drop(out);
        outcome
    };
    let (mut outcome, mut all) =
        tokio::time::timeout(DEADLINE, async { tokio::join!(ask, collect) }).await.expect("an end");
    if let Ok(reply) = &mut outcome {
        all.append(&mut reply.last);
    }
    (all, outcome)
}

async fn fault(models: &Models, request: &ModelRequest) -> ModelFault {
    call(models, request).await.1.expect_err("a fault")
}

fn text(deltas: &[Delta]) -> String {
    deltas
        .iter()
        .filter_map(|delta| match delta {
            Delta::Text { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}
