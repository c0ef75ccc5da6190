//! `daemon.metrics`, and the same values as text for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::params::Caller;
use crate::context::RpcContext;
use api::Fault;
use api::params::NoParams;
use jobs::Jobs;
use session::Registry;
use types::metrics::Metrics;
use types::time::Timestamp;

pub(super) async fn metrics(ctx: Arc<RpcContext>, _: Caller, _: NoParams) -> Result<Metrics, Fault> {
    Ok(now(&ctx.registry, &ctx.jobs, ctx.info.started_at))
}

/// The current values. Never blocks.
#[must_use]
pub fn now(registry: &Registry, jobs: &Jobs, started_at: Timestamp) -> Metrics {
    let uptime_ms = registry.shared().clock.now().since(started_at);
    Metrics { uptime_ms, jobs: jobs.counts(), ..registry.metrics() }
}

/// The current values in Prometheus text format. Times are in seconds and costs in dollars, according to the
/// Prometheus conventions (<https://prometheus.io/docs/practices/naming/>).
#[must_use]
pub fn text(metrics: &Metrics) -> String {
    let mut page = MetricsText::default();
    let usage = &metrics.usage;
    page.gauge("uptime_seconds", "How long the daemon runs.", seconds(metrics.uptime_ms));
    page.gauge("sessions_loaded", "Sessions in memory.", metrics.sessions_loaded);
    page.gauge("subscribers", "Clients attached to sessions.", metrics.subscribers);
    page.counter("turns_started_total", "Turns that began.", metrics.turns_started);
    page.counters(
        "turns_completed_total",
        "Turns that ended.",
        metrics.turns_completed.iter().map(|(end, count)| (format!("result=\"{end}\""), count.to_string())),
    );
    page.counter(
        "slow_turns_total",
        "Turns of more than 30 s, without the time that users took.",
        metrics.slow_turns,
    );
    let spent = [
        ("total", metrics.turn_ms),
        ("model", metrics.model_ms),
        ("tools", metrics.tools_ms),
        ("waiting", metrics.permission_ms),
    ];
    page.counters(
        "turn_seconds_total",
        "Time of the turns that ended, and what it was spent on.",
        spent.iter().map(|(part, ms)| (format!("part=\"{part}\""), seconds(*ms))),
    );
    page.counter("model_calls_total", "Model calls, lost attempts included.", metrics.model_calls);
    page.counter("lost_attempts_total", "Model calls without an answer.", metrics.lost_attempts);
    let hits = [("response", metrics.response_cache_hits), ("prompt", metrics.prompt_cache_hits)];
    page.counters(
        "cache_hits_total",
        "Model calls answered by the daemon's response cache, or helped by the provider's prompt cache.",
        hits.iter().map(|(cache, count)| (format!("cache=\"{cache}\""), count.to_string())),
    );
    page.counter("retries_total", "Model calls that were tried again.", metrics.retries);
    let tokens = [
        ("input", usage.input_tokens),
        ("output", usage.output_tokens),
        ("cache_read", usage.cache_read_tokens),
        ("cache_write", usage.cache_write_tokens),
    ];
    page.counters(
        "tokens_total",
        "Tokens of all model calls.",
        tokens.iter().map(|(kind, count)| (format!("type=\"{kind}\""), count.to_string())),
    );
    page.counter(
        "reasoning_tokens_total",
        "The part of the output that was reasoning.",
        usage.reasoning_tokens,
    );
    page.counter("web_search_requests_total", "Searches of the web by providers.", usage.web_search_requests);
    page.counters(
        "model_calls_by_service_tier_total",
        "Model calls by the service tier that the provider reported.",
        metrics
            .calls_by_service_tier
            .iter()
            .map(|(tier, count)| (format!("tier=\"{tier}\""), count.to_string())),
    );
    let dollars =
        format!("{}.{:06}", metrics.cost_usd_micros / 1_000_000, metrics.cost_usd_micros % 1_000_000);
    page.counter("cost_usd_total", "Cost of the calls whose price is known.", dollars);
    page.counter("unpriced_calls_total", "Model calls whose price is unknown.", metrics.unpriced_calls);
    page.counters(
        "tool_calls_total",
        "Tool calls that ended.",
        metrics.tool_calls.iter().map(|(end, count)| (format!("status=\"{end}\""), count.to_string())),
    );
    page.counter("permission_requests_total", "Permission requests.", metrics.permission_requests);
    page.counter("errors_total", "Errors of turns.", metrics.errors);
    let by_state = |counts: &BTreeMap<String, u64>| -> Vec<(String, String)> {
        counts.iter().map(|(state, count)| (format!("state=\"{state}\""), count.to_string())).collect()
    };
    page.gauges("jobs", "Jobs that are not over.", by_state(&metrics.jobs.open));
    page.counters("jobs_completed_total", "Jobs that ended.", by_state(&metrics.jobs.completed));
    page.counter("database_writes_total", "Transactions that were written.", metrics.database_writes);
    page.counter("database_write_errors_total", "Transactions that failed.", metrics.database_write_errors);
    page.0
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1_000, ms % 1_000)
}

#[derive(Default)]
struct MetricsText(String);

impl MetricsText {
    fn gauge(&mut self, name: &str, help: &str, value: impl ToString) {
        self.family(name, help, "gauge", [(String::new(), value.to_string())]);
    }

    fn counter(&mut self, name: &str, help: &str, value: impl ToString) {
        self.counters(name, help, [(String::new(), value.to_string())]);
    }

    fn gauges(&mut self, name: &str, help: &str, values: impl IntoIterator<Item = (String, String)>) {
        self.family(name, help, "gauge", values);
    }

    fn counters(&mut self, name: &str, help: &str, values: impl IntoIterator<Item = (String, String)>) {
        self.family(name, help, "counter", values);
    }

    /// Adds a metric family. Label values are fixed words of the daemon, so they need no escaping.
    fn family(
        &mut self,
        name: &str,
        help: &str,
        kind: &str,
        values: impl IntoIterator<Item = (String, String)>,
    ) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP agentd_{name} {help}\n# TYPE agentd_{name} {kind}");
        for (labels, value) in values {
            let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
            let _ = writeln!(self.0, "agentd_{name}{labels} {value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_page_has_prometheus_text_format() {
        let metrics = Metrics {
            uptime_ms: 1_234,
            cost_usd_micros: 1_500_000,
            tool_calls: [("completed".to_owned(), 3)].into(),
            ..Metrics::default()
        };
        let text = text(&metrics);
        assert!(text.ends_with('\n'));
        for line in [
            "# TYPE agentd_uptime_seconds gauge",
            "agentd_uptime_seconds 1.234",
            "agentd_cost_usd_total 1.500000",
            "agentd_tool_calls_total{status=\"completed\"} 3",
            "agentd_tokens_total{type=\"input\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
        // Every sample belongs to a family that was declared before it, and its value is a number.
        let mut family = "";
        for line in text.lines() {
            match line.strip_prefix("# ") {
                Some(declaration) => family = declaration.split(' ').nth(1).expect("a name"),
                None => {
                    let (name, value) = line.rsplit_once(' ').expect("a sample");
                    assert!(name.starts_with(family) && value.parse::<f64>().is_ok(), "{line}");
                }
            }
        }
    }
}
