//! Speed of reading a provider's stream. The first part parses server-sent events alone, in chunks of a network
//! packet's size, compared with a scan for line ends (memchr) over the same bytes. The second part parses whole
//! answers of each API, down to deltas. Run: `cargo bench --bench sse`.
//!
//! Times are CPU time of this thread, medians of several runs.

use std::fmt::Write as _;
use std::time::Duration;

use agentd::fuzzing::{count_events, read_answer};
use nix::sys::resource::{UsageWho, getrusage};

/// Size of a chunk, about that of a network packet.
const CHUNK_BYTES: usize = 1_400;
const STREAM_BYTES: usize = 64 << 20;
const PAIRS: usize = 9;

/// CPU time of this thread so far.
fn cpu_time() -> Duration {
    let used = getrusage(UsageWho::RUSAGE_THREAD).expect("a count");
    let micros = |time: nix::sys::time::TimeVal| time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64;
    Duration::from_micros(micros(used.user_time()) + micros(used.system_time()))
}

fn measure_cpu<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let before = cpu_time();
    let result = work();
    (result, cpu_time() - before)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Deltas as Anthropic sends them, and their number.
fn create_stream() -> (Vec<u8>, usize) {
    let (mut text, mut events) = (String::with_capacity(STREAM_BYTES + 1_024), 0);
    while text.len() < STREAM_BYTES {
        let _ = write!(
            text,
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":\
             {{\"type\":\"text_delta\",\"text\":\"word {events} and some more of it \"}}}}\n\n"
        );
        events += 1;
    }
    (text.into_bytes(), events)
}

fn measure_events() {
    let (bytes, events) = create_stream();
    let chunks: Vec<&[u8]> = bytes.chunks(CHUNK_BYTES).collect();
    let (mut ours, mut scans) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let ((seen, _), took) = measure_cpu(|| count_events(&chunks));
        assert_eq!(seen, events, "an event was lost");
        ours.push(took);
        let (lines, took) = measure_cpu(|| {
            chunks.iter().map(|chunk| memchr::memchr2_iter(b'\n', b'\r', chunk).count()).sum::<usize>()
        });
        assert_eq!(lines, 3 * events);
        scans.push(took);
    }
    let rate = |took: Duration| bytes.len() as f64 / took.as_secs_f64() / 1e9;
    let (ours, scan) = (median(ours), median(scans));
    println!(
        "events, {CHUNK_BYTES}-byte chunks: {:.2} GB/s of CPU, {:.0} ns an event of {} bytes; a scan for line ends alone: \
         {:.2} GB/s; ratio {:.2}",
        rate(ours),
        ours.as_nanos() as f64 / events as f64,
        bytes.len() / events,
        rate(scan),
        ours.as_secs_f64() / scan.as_secs_f64(),
    );
}

/// A whole answer of many deltas.
fn create_answer(api: &str, deltas: usize) -> String {
    let mut text = String::new();
    let piece = "word and more ";
    match api {
        "anthropic" => {
            text.push_str("data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n");
            for _ in 0..deltas {
                let _ = write!(
                    text,
                    "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{piece}\"}}}}\n\n"
                );
            }
            text.push_str("data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n");
        }
        "openai_chat" => {
            for _ in 0..deltas {
                let _ = write!(
                    text,
                    "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{piece}\"}},\"finish_reason\":null}}]}}\n\n"
                );
            }
            text.push_str("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
        }
        _ => {
            for at in 0..deltas {
                let _ = write!(
                    text,
                    "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"sequence_number\":{at},\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\"{piece}\"}}\n\n"
                );
            }
            let _ = write!(
                text,
                "data: {{\"type\":\"response.completed\",\"response\":{{\"id\":\"r\",\"object\":\"response\",\"status\":\"completed\",\"output\":[{{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{{\"type\":\"output_text\",\"text\":\"\"}}]}}]}}}}\n\n"
            );
        }
    }
    text
}

fn measure_answers() {
    const DELTAS: usize = 200_000;
    for api in ["anthropic", "openai_chat", "openai_responses"] {
        let text = create_answer(api, DELTAS);
        let chunks: Vec<&[u8]> = text.as_bytes().chunks(CHUNK_BYTES).collect();
        let took = median(
            (0..5)
                .map(|_| {
                    let (seen, took) = measure_cpu(|| read_answer(api, &chunks));
                    assert!(seen >= DELTAS, "{api}: {seen} deltas");
                    took
                })
                .collect(),
        );
        println!(
            "answers of {api}: {:.0} ns of CPU a delta of {} bytes, {:.2} GB/s",
            took.as_nanos() as f64 / DELTAS as f64,
            text.len() / DELTAS,
            text.len() as f64 / took.as_secs_f64() / 1e9
        );
    }
}

fn main() {
    measure_events();
    measure_answers();
}
