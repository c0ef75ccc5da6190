//! Random settings for a script.

use crate::script::{on_timeout, thinking};
use engine::{ModelCapabilities, ModelCatalog, Settings, TitleModel};
use proptest::prelude::*;
use types::compaction::CompactionSettings;
use types::config_values::ConfigDuration;
use types::model_pointers::ModelPointers;
use types::retry::{OnRateLimit, RetrySettings};
use types::session::OnRestart;
use types::thinking::Thinking;
use types::tool::OfferUnsandboxedRetry;
use types::unattended::UnattendedSettings;
use types::usage::{Budgets, ModelSnapshot};

/// Settings that are fixed for one script.
#[derive(Clone, Debug)]
pub struct Setup {
    pub settings: Settings,
    pub safe_mode: bool,
    pub background: bool,
    pub on_restart: Option<OnRestart>,
    pub has_model: bool,
    pub budgets: Budgets,
    pub thinking: Option<Thinking>,
    pub binary_feedback: bool,
}

/// Model capabilities in these scripts: some models accept no pictures, some have no known price.
pub fn model_capabilities(model: &str) -> ModelCapabilities {
    let (context_window, max_output_tokens) = match model {
        "p/m" => (Some(90), Some(64_000)),
        "p/large" => (Some(1_000_000), None),
        "p/fallback" => (None, Some(8_000)),
        _ => (None, None),
    };
    ModelCapabilities {
        context_window,
        max_output_tokens,
        accepts_images: model != "p/m",
        has_price: model != "p/backup",
        output_usd_micros_per_1k: None,
    }
}

fn fallback_models() -> impl Strategy<Value = ModelPointers> {
    let maybe = |name: &'static str| proptest::option::weighted(0.5, Just(name.to_string()));
    (maybe("p/fallback"), maybe("p/backup"), maybe("p/large"), maybe("p/vision")).prop_map(
        |(fallback, backup, large_context, vision)| ModelPointers {
            fallback,
            backup,
            large_context,
            vision,
            ..ModelPointers::default()
        },
    )
}

/// A title model with a known price, one without, or none.
fn title_model() -> impl Strategy<Value = Option<TitleModel>> {
    let model_snapshot =
        prop_oneof![3 => Just(crate::generators::model_snapshot()), 1 => Just(ModelSnapshot::default())];
    proptest::option::weighted(
        0.6,
        model_snapshot.prop_map(|model_snapshot| TitleModel { model: "p/quick".into(), model_snapshot }),
    )
}

fn retry() -> impl Strategy<Value = RetrySettings> {
    let on_rate_limit = prop_oneof![Just(OnRateLimit::Wait), Just(OnRateLimit::Backup)];
    let heartbeat_ms = prop_oneof![3 => Just(30_000), 1 => Just(400)];
    (1..6u32, on_rate_limit, heartbeat_ms).prop_map(|(attempts, on_rate_limit, heartbeat_ms)| RetrySettings {
        attempts,
        on_rate_limit,
        heartbeat: ConfigDuration::from_millis(heartbeat_ms),
        max_retry_after: ConfigDuration::from_secs(4),
        ..RetrySettings::default()
    })
}

pub(super) fn budgets() -> impl Strategy<Value = Budgets> {
    let rarely = |range: std::ops::Range<u64>| proptest::option::weighted(0.2, range);
    let money = proptest::option::weighted(0.4, 0..400u64);
    (proptest::option::weighted(0.4, 0..4u64), money, rarely(0..90), rarely(0..2_000)).prop_map(
        |(model_calls, usd_micros, output_tokens, wall_time_ms)| Budgets {
            usd_micros,
            model_calls,
            output_tokens,
            wall_time_ms,
            // A cost of the session in addition to the cost of the turn.
            session_model_calls: usd_micros.map(|money| money % 7),
            ..Budgets::default()
        },
    )
}

/// Compaction settings: all stages, all stages without summaries, or no stage.
fn compaction() -> impl Strategy<Value = CompactionSettings> {
    let on = CompactionSettings { keep_recent_tokens: 12, max_failures: 2, ..CompactionSettings::default() };
    let stages = CompactionSettings { auto: false, ..on.clone() };
    let off = CompactionSettings {
        tool_results: false,
        snip: false,
        microcompact: false,
        collapse: false,
        ..stages.clone()
    };
    prop_oneof![3 => Just(on), 1 => Just(stages), 3 => Just(off)]
}

pub fn setup() -> impl Strategy<Value = Setup> {
    use OfferUnsandboxedRetry::{Always, Attended, Never};
    (
        (
            retry(),
            1..4usize,
            0..4u32,
            prop_oneof![3 => Just(OnRestart::Resume), 1 => Just(OnRestart::Pause)],
            (0..4usize, prop_oneof![6 => Just(8u32), 1 => Just(0), 1 => Just(1), 2 => Just(2)]),
        ),
        (
            prop_oneof![2 => Just(false), 1 => Just(true)],
            proptest::option::weighted(0.2, prop_oneof![Just(OnRestart::Resume), Just(OnRestart::Pause)]),
        ),
        (any::<[bool; 2]>(), prop_oneof![2 => Just(false), 1 => Just(true)]),
        prop_oneof![9 => Just(true), 1 => Just(false)],
        (prop_oneof![3 => Just(Budgets::default()), 1 => budgets()], thinking()),
        (
            proptest::option::weighted(0.8, 0..1_500u64),
            on_timeout(),
            prop_oneof![1 => Just(Never), 2 => Just(Attended), 2 => Just(Always)],
            (fallback_models(), title_model(), compaction()),
        ),
    )
        .prop_map(
            |(
                (retry, parallel_tools, resumes, policy, (background_commands, repeat_limit)),
                own,
                (safe, binary_feedback),
                has_model,
                (budgets, thinking),
                unattended,
            )| Setup {
                settings: Settings {
                    retry: RetrySettings { resumes, ..retry },
                    models: unattended.3.0,
                    quick: unattended.3.1,
                    compaction: unattended.3.2,
                    known: ModelCatalog::from_lookup(model_capabilities),
                    parallel_tools,
                    background_commands,
                    repeat_limit,
                    on_restart: policy,
                    unattended: UnattendedSettings {
                        deadline: ConfigDuration::from_millis(unattended.0.map_or(0, |ms| ms.max(1))),
                        on_timeout: unattended.1,
                        ..UnattendedSettings::default()
                    },
                    offer_unsandboxed_retry: unattended.2,
                    ..Settings::default()
                },
                safe_mode: safe == [true, true],
                background: own.0,
                on_restart: own.1,
                has_model,
                budgets,
                thinking,
                binary_feedback: binary_feedback && !own.0,
            },
        )
}
