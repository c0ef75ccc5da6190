//! Building the system prompt of a session.

use std::sync::Arc;

use tokio::runtime::Handle;

use crate::agents;
use crate::project_data::PromptParts;
use crate::shared::Shared;
use project::workspace::{self, GatheredPrompt, PromptRequest};
use types::model::ModelRequest;

/// What a system prompt is built from.
pub(crate) struct PromptSource {
    pub request: PromptRequest,
    pub parts: PromptParts,
}

/// A system prompt, and for users the agents that were refused.
pub(crate) struct BuiltPrompt {
    pub prompt: GatheredPrompt,
    pub refused_agents: Option<String>,
}

/// A model request that is only shown, and what its system prompt is built from if that is not built yet.
pub(crate) struct UnsentRequest {
    pub request: Box<ModelRequest>,
    pub prompt: Option<Box<PromptSource>>,
}

/// Builds a system prompt. `read` returns the list of skills and the index of notes ([`PromptParts::load`]).
pub(crate) async fn build_prompt(
    shared: &Arc<Shared>,
    source: PromptSource,
    read: impl Future<Output = (Option<String>, Option<String>)>,
) -> Option<BuiltPrompt> {
    let PromptSource { mut request, parts } = source;
    let mut refused_agents = None;
    if parts.agents {
        match agents::load(shared, &request.cwd).await {
            Ok(list) => {
                request.sections.push(list.prompt_section());
                refused_agents = list.refusal();
            }
            Err(error) => tracing::warn!(%error, "could not read the agents; the prompt lists none"),
        }
    }
    let trusted = shared.store.trusted(&request.cwd.to_string_lossy()).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "could not read whether a folder is trusted; treating it as not trusted");
        None
    });
    let (skills, memory) = read.await;
    request.sections.extend(skills);
    let request = PromptRequest { trusted, memory, ..request };
    let project = shared.find_project(&request.cwd).await;
    let prompt = workspace::gather(request, project, &shared.git_facts).await?;
    Some(BuiltPrompt { prompt, refused_agents })
}

/// The system prompt that the next turn would have. No hook runs for it.
pub(crate) async fn preview_prompt(shared: &Arc<Shared>, source: PromptSource) -> Option<String> {
    let (reader, cwd, runtime) = (Arc::clone(shared), source.request.cwd.clone(), Handle::current());
    let parts = source.parts;
    let read = tokio::task::spawn_blocking(move || parts.load(&reader, &cwd, &runtime));
    let built = build_prompt(shared, source, async { read.await.unwrap_or_default() }).await?;
    Some(built.prompt.system)
}
