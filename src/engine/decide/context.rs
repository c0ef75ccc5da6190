//! The parts of the context window.

use std::collections::BTreeMap;

use crate::decide::plan::PlanBuilder;
use crate::input::Now;
use crate::output::Effect;
use crate::request::model_texts::REMINDER;
use crate::request::tokens;
use crate::state::{Engine, QueuedInput};
use crate::window::size::WindowSize;
use types::context_view::{
    ContextPart, ContextView, INSTRUCTIONS_HEADING, MEMORY_HEADING, PartName, SURROUNDINGS_HEADING,
};
use types::message::Block;
use types::model::ModelRequest;
use types::turn_options::TurnOptions;

impl Engine {
    /// Returns the parts of the session's next request.
    #[must_use]
    pub fn context(&self, now: Now) -> ContextView {
        PlanBuilder::new(self, now).context()
    }

    /// Returns the next model request as it would be sent now. Without a running turn, that is the request of a turn
    /// without an input. The state stays as it is.
    ///
    /// # Errors
    /// No usable model is configured.
    pub fn next_request(&self, now: Now) -> Result<NextRequest, &'static str> {
        let mut builder = PlanBuilder::new(self, now);
        if self.state.turn.is_some() {
            return builder.next_request();
        }
        let turn = QueuedInput {
            turn_id: builder.mint.turn(),
            item_id: None,
            input: Vec::new(),
            options: TurnOptions::default(),
            queued_at: now.at,
            front: false,
            origin: None,
        };
        builder.start_turn(&turn);
        let next = builder.next_request()?;
        // The conversation may need compaction or another model before it is sent.
        builder.call_model();
        let sent = builder.plan.effects.into_iter().find_map(|effect| match effect {
            Effect::CallModel { request, .. } => Some(*request),
            _ => None,
        });
        Ok(NextRequest { request: sent.unwrap_or(next.request), ..next })
    }
}

/// The next model request of a session.
#[derive(Clone, Debug)]
pub struct NextRequest {
    pub request: ModelRequest,
    /// Whether the system prompt must be built before the request is sent. `system` then only holds the instructions
    /// of MCP servers, which follow the prompt.
    pub needs_prompt: bool,
}

impl PlanBuilder<'_> {
    fn next_request(&self) -> Result<NextRequest, &'static str> {
        let needs_prompt = self.state.system_prompt().is_none();
        Ok(NextRequest { request: self.build_request()?, needs_prompt })
    }

    fn context(&self) -> ContextView {
        let used = self.sent_tokens();
        let size = self.window_size();
        let known = self.engine.settings.known.capabilities(&self.turn_model());
        let reserved_output = size.map_or_else(
            || self.output_limit().or(known.max_output_tokens).map_or(0, u64::from),
            |size| size.reserved_output,
        );
        let mut parts = self.context_parts(used);
        if let Some(WindowSize { window, reserved_output }) = size {
            let free = window.saturating_sub(used).saturating_sub(reserved_output);
            parts.push(ContextPart { name: PartName::Free, tokens: free });
        }
        ContextView {
            window: size.map(|size| size.window),
            used,
            reserved_output,
            parts,
            compactions: self.state.compactions,
            estimated: self.state.context_tokens == 0,
        }
    }

    /// The parts of a request, scaled so that they add up to `used`.
    fn context_parts(&self, used: u64) -> Vec<ContextPart> {
        let system = self.system_prompt();
        let instructions = instructions_of(&system);
        let mut sums: BTreeMap<usize, (PartName, u64)> = BTreeMap::new();
        let mut add = |at: usize, name: PartName, tokens: u64| {
            sums.entry(at).or_insert((name, 0)).1 += tokens;
        };
        let memory = memory_of(&system);
        let (of_instructions, of_memory) = (tokens::text_tokens(instructions), tokens::text_tokens(memory));
        let of_servers = tokens::text_tokens(&self.state.mcp.prompt);
        let elsewhere = of_instructions + of_memory + of_servers;
        add(0, PartName::System, tokens::text_tokens(&system).saturating_sub(elsewhere));
        add(1, PartName::Instructions, of_instructions);
        if !memory.is_empty() {
            add(2, PartName::Memory, of_memory);
        }
        let (mcp, own): (Vec<_>, Vec<_>) =
            self.offered_tools().iter().cloned().partition(|card| self.is_of_mcp(&card.name));
        add(3, PartName::Tools, tokens::tools_tokens(&own));
        if self.has_mcp() {
            add(7, PartName::Mcp, tokens::tools_tokens(&mcp) + of_servers);
        }
        for block in self.state.transcript.iter().flat_map(|message| &message.content) {
            let size = tokens::block_tokens(block);
            match block {
                Block::ToolResult { .. } => add(5, PartName::ToolResults, size),
                Block::Text { text } if text.starts_with(REMINDER) => add(6, PartName::Reminders, size),
                _ => add(4, PartName::Messages, size),
            }
        }
        let sum: u64 = sums.values().map(|(_, tokens)| tokens).sum();
        let mut left = used;
        let mut parts: Vec<ContextPart> = sums
            .into_values()
            .map(|(name, tokens)| {
                let share = u128::from(tokens) * u128::from(used) / u128::from(sum.max(1));
                let tokens = u64::try_from(share).unwrap_or(u64::MAX).min(left);
                left -= tokens;
                ContextPart { name, tokens }
            })
            .collect();
        // Add the tokens lost by rounding to the largest part.
        if let Some(part) = parts.iter_mut().max_by_key(|part| part.tokens) {
            part.tokens += left;
        }
        parts
    }
}

/// The project's instructions in a system prompt.
fn instructions_of(system: &str) -> &str {
    let Some(from) = system.find(INSTRUCTIONS_HEADING) else { return "" };
    let rest = &system[from..];
    let rest = &rest[..rest.rfind(SURROUNDINGS_HEADING).unwrap_or(rest.len())];
    &rest[..rest.rfind(MEMORY_HEADING).unwrap_or(rest.len())]
}

/// The index of the project's notes in a system prompt.
fn memory_of(system: &str) -> &str {
    let before = &system[..system.rfind(SURROUNDINGS_HEADING).unwrap_or(system.len())];
    before.rfind(MEMORY_HEADING).map_or("", |from| &before[from..])
}
