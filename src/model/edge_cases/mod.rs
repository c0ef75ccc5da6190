//! Edge cases of the wire formats: one table for all APIs.

mod split;
mod wire;

use serde_json::{Value, json};

use crate::settings::Api;
use crate::testing::{assert_deltas_tell_the_reply, assert_every_cut_is_told, read, read_pieces};
use types::model::{FaultKind, ModelReply, ReplyBlock, StopReason};
use wire::AnswerPart::{self, Call, CallTwice, End, Error, Refusal, Start, Text, Unknown};
use wire::wire;

fn answer(api: Api, parts: &[AnswerPart]) -> ModelReply {
    let (deltas, reply) = read(api, &wire(api, parts));
    let reply = reply.unwrap_or_else(|fault| panic!("{api:?}: {fault:?}"));
    assert_deltas_tell_the_reply(&deltas, &reply);
    reply
}

/// The input of each call: a valid object, or the parse error.
fn inputs(reply: &ModelReply) -> Vec<Result<&Value, &str>> {
    let calls = reply.content.iter().filter_map(|block| match block {
        ReplyBlock::ToolCall { input, .. } => Some(input.as_ref().map_err(|(raw, _)| raw.as_str())),
        _ => None,
    });
    calls.collect()
}

fn ids(reply: &ModelReply) -> Vec<&str> {
    let calls = reply.content.iter().filter_map(|block| match block {
        ReplyBlock::ToolCall { provider_id, .. } => Some(provider_id.as_str()),
        _ => None,
    });
    calls.collect()
}

#[test]
fn unknown_stream_events_are_ignored() {
    for &api in Api::ALL {
        let plain = [Start("a"), Text("so"), Call("t", vec!["{\"a\":", "1}"]), End(None)];
        let strange = [
            Unknown,
            Start("a"),
            Unknown,
            Text("so"),
            Unknown,
            Call("t", vec!["{\"a\":", "1}"]),
            Unknown,
            End(None),
        ];
        let mut reply = answer(api, &strange);
        // Notices about dropped parts are not compared here.
        reply.notices.clear();
        assert_eq!(reply, answer(api, &plain), "{api:?}");
    }
}

#[test]
fn error_event_in_stream_ends_reply() {
    for &api in Api::ALL {
        let parts = [Start("a"), Text("so"), Call("t", vec!["{\"a\""]), Error];
        let (_, outcome) = read(api, &wire(api, &parts));
        let fault = outcome.expect_err("a fault");
        assert_eq!(fault.kind, FaultKind::Overloaded, "{api:?}: {fault:?}");
        assert!(fault.message.contains("busy"), "{api:?}: {fault:?}");
    }
}

#[test]
fn duplicate_start_events_are_ignored() {
    for &api in Api::ALL {
        let once = [Start("a"), Text("so"), Call("t", vec!["{\"a\":1}"]), End(None)];
        let twice = [Start("a"), Start("a"), Text("so"), CallTwice("t", "{\"a\":1}"), End(None)];
        assert_eq!(answer(api, &twice), answer(api, &once), "{api:?}");
    }
}

/// A proxy that reconnects continues with another answer, or with the same one from its start.
#[test]
fn second_reply_in_stream_interrupts_call() {
    let mut streams = Vec::new();
    for api in [Api::Anthropic, Api::OpenAiResponses] {
        for second in ["b", "a", ""] {
            let parts = [Start("a"), Text("so"), Start(second), Text("so it is"), End(None)];
            streams.push((api, wire(api, &parts)));
        }
    }
    // A chunk of Chat Completions starts an answer if it has another id and names the role.
    let chat =
        wire(Api::OpenAiChat, &[Start(""), Text("so"), Call("t", vec!["{\"a\":"]), Start(""), End(None)]);
    let again =
        chat.rfind("data: {\"choices\":[{\"delta\":{\"content\":\"\",\"role\"").expect("a second start");
    let (first, second) = chat.split_at(again);
    streams.push((Api::OpenAiChat, format!("{first}{}", second.replacen("\"id\":\"c\"", "\"id\":\"d\"", 1))));
    for (api, stream) in streams {
        let fault = read(api, &stream).1.expect_err("a fault");
        assert_eq!(fault.kind, FaultKind::Interrupted, "{api:?}: {fault:?}");
        assert!(fault.message.contains("began again"), "{api:?}: {fault:?}");
    }
    // Some servers repeat the role or change the id within one answer, but not both.
    assert!(read(Api::OpenAiChat, &chat).1.is_ok());
    let one = wire(Api::OpenAiChat, &[Start(""), Text("so"), Text("it is"), End(None)]);
    let (first, rest) = one.split_once("it is").expect("its text");
    assert!(
        read(Api::OpenAiChat, &format!("{first}it is{}", rest.replace("\"id\":\"c\"", "\"id\":\"d\"")))
            .1
            .is_ok()
    );
}

/// The arguments of one call must not run as those of another call.
#[test]
fn delta_for_other_than_open_block_ends_reply() {
    let block = |index: u64, name: &str| json!({"type":"content_block_start","index":index,"content_block":{"type":"tool_use","id":name,"name":name,"input":{}}});
    let piece = |index: u64| json!({"type":"content_block_delta","index":index,"delta":{"type":"input_json_delta","partial_json":"{\"command\":\"date\"}"}});
    let stop = |index: u64| json!({"type":"content_block_stop","index":index});
    for events in [[block(0, "LS"), block(1, "Bash"), piece(0)], [block(0, "LS"), block(1, "Bash"), stop(0)]]
    {
        let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        let fault = read(Api::Anthropic, &stream).1.expect_err("a fault");
        assert_eq!(fault.kind, FaultKind::Garbage, "{fault:?}");
        assert!(fault.message.contains("of block 0 came inside block 1"), "{fault:?}");
    }
}

#[test]
fn untyped_error_event_becomes_server_fault() {
    for &api in Api::ALL {
        let stream = "data: {\"error\":{\"message\":\"CUDA out of memory\"}}\n\n";
        let fault = read(api, stream).1.expect_err("a fault");
        assert_eq!(fault.kind, FaultKind::Server, "{api:?}: {fault:?}");
        assert!(fault.message.contains("CUDA out of memory"), "{api:?}: {fault:?}");
    }
}

/// The daemon could store such a value but never read it again (`types::depth`).
#[test]
fn too_deeply_nested_arguments_are_kept_as_text() {
    for &api in Api::ALL {
        for (levels, is_taken) in [(90, true), (96, false), (126, false)] {
            let json: String = format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
            let reply = answer(api, &[Start("a"), Call("t", vec![json.clone().leak()]), End(None)]);
            let ReplyBlock::ToolCall { input, .. } = &reply.content[0] else { panic!("{reply:?}") };
            match input {
                Ok(_) => assert!(is_taken, "{api:?}: {levels}"),
                Err((text, why)) => {
                    assert!(!is_taken && *text == json && why.contains("levels"), "{api:?}: {why}");
                }
            }
        }
    }
}

/// An invalid count never ends a turn.
#[test]
fn invalid_usage_counts_are_ignored() {
    for &api in Api::ALL {
        let plain = [Start("a"), Text("so"), End(None)];
        let stream = match api {
            Api::OpenAiChat => wire(api, &plain).replace(
                "data: [DONE]",
                "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\ndata: [DONE]",
            ),
            _ => wire(api, &plain),
        };
        for (odd, expected) in [("4.0", 4), ("\"4\"", 4), ("-1", 0), ("{}", 0), ("true", 0)] {
            let odd_stream =
                ["output_tokens", "completion_tokens"].iter().fold(stream.clone(), |text, name| {
                    text.replace(&format!("\"{name}\":4"), &format!("\"{name}\":{odd}"))
                });
            assert_ne!(odd_stream, stream, "{api:?}: there is a count");
            let reply = read(api, &odd_stream).1.unwrap_or_else(|fault| panic!("{api:?} {odd}: {fault:?}"));
            assert_eq!(reply.usage.output_tokens, expected, "{api:?} {odd}");
        }
    }
}

#[test]
fn non_object_arguments_are_kept_as_text() {
    for &api in Api::ALL {
        let cases: [(&[&str], Result<Value, &str>); 6] = [
            (&[], Ok(json!({}))),
            (&["", " "], Ok(json!({}))),
            (&["{\"a\":", "[1]}"], Ok(json!({"a":[1]}))),
            (&["{\"a\":"], Err("{\"a\":")),
            (&["a=1"], Err("a=1")),
            (&["[1]"], Ok(json!([1]))),
        ];
        for (pieces, expected) in cases {
            let reply = answer(api, &[Start("a"), Call("t", pieces.to_vec()), End(None)]);
            assert_eq!(inputs(&reply), [expected.as_ref().map_err(|raw| *raw)], "{api:?}: {pieces:?}");
            assert_eq!(reply.stop_reason, StopReason::ToolUse, "{api:?}");
        }
    }
}

#[test]
fn calls_without_unique_id_get_new_id() {
    for &api in Api::ALL {
        let call = |id| Call(id, vec!["{}"]);
        let other = Call("t", vec!["{\"a\":1}"]);
        let reply = answer(api, &[Start("a"), call("t"), other, call(""), call(""), End(None)]);
        let ids = ids(&reply);
        assert_eq!((ids.len(), ids[0]), (4, "t"), "{api:?}: {ids:?}");
        let distinct: std::collections::BTreeSet<&str> = ids.iter().copied().collect();
        assert!(distinct.len() == 4 && !distinct.contains(""), "{api:?}: {ids:?}");
    }
}

#[test]
fn call_sent_twice_with_one_id_is_one_call() {
    for &api in Api::ALL {
        let call = || Call("t", vec!["{\"a\":", "1}"]);
        let reply = answer(api, &[Start("a"), call(), call(), Text("so"), End(None)]);
        assert_eq!(ids(&reply), ["t"], "{api:?}");
        assert_eq!(reply.notices.len(), 1, "{api:?}: {:?}", reply.notices);
    }
}

/// Earlier valid events show that the address is right, so the stream was damaged in transit.
#[test]
fn unreadable_event_inside_reply_is_interruption() {
    for &api in Api::ALL {
        let whole = wire(api, &[Start("a"), Text("so"), Call("t", vec!["{\"a\":", "1}"]), End(None)]);
        let events: Vec<&str> = whole.split_inclusive("\n\n").collect();
        for at in 1..events.len() - 1 {
            let (before, after) = (events[..at].concat(), events[at..].concat());
            let half = &events[at][..events[at].len() / 2];
            for damaged in [
                format!("{before}data: {{oops\n\n{after}"),
                format!("{before}data: upstream timed out\n\n{after}"),
                format!("{before}data: \"a text\"\n\n{after}"),
                // The rest of an event and its blank line are missing.
                format!("{before}{half}\n{after}"),
            ] {
                let fault = read(api, &damaged).1.expect_err("a fault");
                assert_eq!(fault.kind, FaultKind::Interrupted, "{api:?}: {fault:?} in {damaged}");
            }
        }
        // At the start of a stream, another service may use that address.
        let fault = read(api, &format!("data: {{oops\n\n{whole}")).1.expect_err("a fault");
        assert_eq!(fault.kind, FaultKind::Garbage, "{api:?}: {fault:?}");
    }
}

#[test]
fn non_field_line_in_stream_is_ignored() {
    for &api in Api::ALL {
        let whole = wire(api, &[Start("a"), Text("so"), End(None)]);
        let foreign = whole.replacen("\n\n", "\n\nupstream: reconnected\n\n", 1);
        assert_eq!(
            read(api, &foreign).1.expect("an answer"),
            answer(api, &[Start("a"), Text("so"), End(None)])
        );
    }
}

#[test]
fn exhausted_quota_inside_stream_is_final() {
    for &api in Api::ALL {
        for error in [
            json!({"type":"error","error":{"type":"insufficient_quota","message":"none left"}}),
            json!({"error":{"type":"rate_limit_error","code":"insufficient_quota","message":"none left"}}),
        ] {
            let stream = wire(api, &[Start("a"), Text("so")]);
            let fault = read(api, &format!("{stream}data: {error}\n\n")).1.expect_err("a fault");
            assert_eq!(fault.kind, FaultKind::Forbidden, "{api:?}: {fault:?}");
            assert!(!fault.kind.is_retryable() && fault.message.contains("none left"), "{api:?}: {fault:?}");
        }
    }
}

#[test]
fn stop_reason_is_mapped_or_reported() {
    for &api in Api::ALL {
        let end = |reason| answer(api, &[Start("a"), Text("so"), End(Some(reason))]);
        let limit = match api {
            Api::Anthropic => "max_tokens",
            Api::OpenAiChat => "length",
            Api::OpenAiResponses => "max_output_tokens",
        };
        assert_eq!(end(limit).stop_reason, StopReason::MaxTokens, "{api:?}");
        let refusal = if api == Api::Anthropic { "refusal" } else { "content_filter" };
        assert_eq!(end(refusal).stop_reason, StopReason::Refusal, "{api:?}");
        let unknown = end("bored");
        assert_eq!(unknown.stop_reason, StopReason::EndTurn, "{api:?}");
        assert!(unknown.notices.iter().any(|notice| notice.contains("\"bored\"")), "{api:?}: {unknown:?}");
        // Complete calls are kept with any stop reason.
        let reply = answer(api, &[Start("a"), Call("t", vec!["{}"]), End(Some("bored"))]);
        assert_eq!(ids(&reply), ["t"], "{api:?}");
    }
    assert_eq!(
        answer(Api::Anthropic, &[Start("a"), Text("so"), End(Some("pause_turn"))]).stop_reason,
        StopReason::Pause
    );
}

#[test]
fn refusal_text_is_kept_with_refusal_stop_reason() {
    for api in [Api::OpenAiChat, Api::OpenAiResponses] {
        let reply = answer(api, &[Start("a"), Refusal("I will not."), End(None)]);
        assert_eq!(reply.content, [ReplyBlock::Text("I will not.".into())], "{api:?}");
        assert_eq!(reply.stop_reason, StopReason::Refusal, "{api:?}");
    }
}

#[test]
fn empty_reply_is_complete_reply() {
    for &api in Api::ALL {
        let reply = answer(api, &[Start("a"), End(None)]);
        assert_eq!((reply.content.len(), reply.stop_reason), (0, StopReason::EndTurn), "{api:?}");
    }
}

#[test]
fn invalid_utf8_in_stream_is_replaced() {
    for &api in Api::ALL {
        let text = wire(api, &[Start("a"), Text("a@b"), End(None)]);
        let bytes: Vec<u8> = text.bytes().map(|byte| if byte == b'@' { 0xFF } else { byte }).collect();
        let (_, outcome) = read_pieces(api, &[&bytes]);
        let reply = outcome.unwrap_or_else(|fault| panic!("{api:?}: {fault:?}"));
        assert_eq!(reply.content, [ReplyBlock::Text("a\u{FFFD}b".into())], "{api:?}");
    }
}

#[test]
fn stream_ending_after_any_byte_is_detected() {
    for &api in Api::ALL {
        let calls = [Call("t", vec!["{\"a\":", "{\"b\":\"}\"}}"]), Call("u", vec!["{", "}"])];
        let parts = [&[Start("a"), Text("Grüße 🦀")][..], &calls, &[End(None)]].concat();
        assert_every_cut_is_told(api, &wire(api, &parts));
    }
}

/// The rest of a truncated call may look like a call without arguments, which must not run.
#[test]
fn missing_stop_reason_is_accepted_without_calls_only() {
    let without_reason = |api: Api, parts: &[AnswerPart]| {
        let parts = [parts, &[End(None)]].concat();
        match api {
            Api::OpenAiChat => wire(api, &parts)
                .replace("\"finish_reason\":\"tool_calls\"", "\"finish_reason\":null")
                .replace("\"finish_reason\":\"stop\"", "\"finish_reason\":null"),
            _ => {
                let text = wire(api, &parts);
                let events = text.split_inclusive("\n\n").filter(|event| !event.contains("message_delta"));
                events.collect()
            }
        }
    };
    for api in [Api::Anthropic, Api::OpenAiChat] {
        for arguments in [vec![], vec!["{\"command\":"], vec!["{\"command\":\"date\"}"]] {
            let stream = without_reason(api, &[Start("a"), Text("so"), Call("t", arguments.clone())]);
            let fault = read(api, &stream).1.expect_err("a fault");
            assert_eq!(fault.kind, FaultKind::Interrupted, "{api:?} {arguments:?}: {fault:?}");
            let finished = [Start("a"), Call("t", arguments.clone()), End(None)];
            assert!(read(api, &wire(api, &finished)).1.is_ok(), "{api:?} {arguments:?}");
        }
        let stream = without_reason(api, &[Start("a"), Text("so")]);
        let reply = read(api, &stream).1.unwrap_or_else(|fault| panic!("{api:?}: {fault:?}"));
        assert_eq!(reply.stop_reason, StopReason::EndTurn, "{api:?}");
    }
}

/// Servers that cut a text inside a surrogate pair write each half as its own escape.
#[test]
fn lone_surrogate_in_stream_is_replaced() {
    for &api in Api::ALL {
        let cases = [
            ("a\\ud83db", "a\u{FFFD}b"),
            ("\\ude00", "\u{FFFD}"),
            ("\\ud83d\\ud83d\\ude00\\uD83D", "\u{FFFD}😀\u{FFFD}"),
            ("\\\\ud83d \\ude00\\n", "\\ud83d \u{FFFD}\n"),
            ("\\ud83d\\u0041", "\u{FFFD}A"),
        ];
        for (escaped, expected) in cases {
            let stream = wire(api, &[Start("a"), Text("@@"), End(None)]).replace("@@", escaped);
            let reply = read(api, &stream).1.unwrap_or_else(|fault| panic!("{api:?} {escaped}: {fault:?}"));
            assert_eq!(reply.content, [ReplyBlock::Text(expected.into())], "{api:?} {escaped}");
        }
        // JSON that is invalid for another reason stays invalid.
        let broken = wire(api, &[Start("a"), Text("@@"), End(None)]).replace("@@", "\\ud83d\\x");
        assert_eq!(read(api, &broken).1.expect_err("a fault").kind, FaultKind::Interrupted, "{api:?}");
    }
    let call = json!({"id":"c","choices":[{"index":0,"delta":{"tool_calls":[
        {"index":0,"id":"t","function":{"name":"Read","arguments":"{\"a\":\"@@\"}"}}]},"finish_reason":"tool_calls"}]});
    let stream = format!("data: {call}\n\ndata: [DONE]\n\n").replace("@@", "\\ud83d!");
    let reply = read(Api::OpenAiChat, &stream).1.expect("an answer");
    assert_eq!(inputs(&reply), [Ok(&json!({"a": "\u{FFFD}!"}))]);
}
