//! Property tests of the engine with random scripts. Users submit, answer, abort and detach. Models and
//! tools answer in any order, or fail. The daemon crashes at any point. The properties of events are in
//! `reference_model`, `message_properties` and `calls`. The properties of effects are in
//! `effect_properties`, those of model requests in `request`, and those of a crash in `restart`.

mod calls;
mod compaction;
mod effect_properties;
mod effect_results;
mod fork;
mod generators;
mod message_properties;
mod queue;
mod reference_model;
mod refusals;
mod request;
mod restart;
mod script;
mod setup;
mod simulator;
mod simulator_effects;
#[cfg(test)]
mod subagents;
#[cfg(test)]
mod tests;
mod turns;
mod watches;

use proptest::prelude::*;

pub use simulator::ScriptRecord;

/// Plays random scripts, for tests in higher layers that store the events of the scripts.
pub fn histories() -> impl Strategy<Value = ScriptRecord> {
    (setup::setup(), script::script()).prop_map(|(setup, script)| simulator::play(&setup, &script))
}

/// Returns the name of the violated property as an error.
macro_rules! property {
    ($condition:expr, $($name:tt)*) => {
        if !$condition {
            return Err(format!($($name)*));
        }
    };
}
use property;
