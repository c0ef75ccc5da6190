//! Characters that are split over two events, in texts, thoughts and arguments of all APIs.

use serde_json::json;

use super::wire::AnswerPart::{Call, End, Start};
use super::wire::wire;
use crate::settings::Api;
use crate::testing::{assert_deltas_tell_the_reply, read, read_pieces};
use types::model::ReplyBlock;

/// The stream of an answer with these two pieces of text or thinking.
fn two_pieces(api: Api, is_thinking: bool) -> String {
    let events = match (api, is_thinking) {
        (Api::Anthropic, false) => vec![
            json!({"type":"message_start","message":{"id":"a"}}),
            json!({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}),
            json!({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a@1"}}),
            json!({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"@2b"}}),
            json!({"type":"content_block_stop","index":0}),
            json!({"type":"message_delta","delta":{"stop_reason":"end_turn"}}),
            json!({"type":"message_stop"}),
        ],
        (Api::Anthropic, true) => vec![
            json!({"type":"message_start","message":{"id":"a"}}),
            json!({"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}),
            json!({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"a@1"}}),
            json!({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"@2b"}}),
            json!({"type":"content_block_stop","index":0}),
            json!({"type":"message_delta","delta":{"stop_reason":"end_turn"}}),
            json!({"type":"message_stop"}),
        ],
        (Api::OpenAiChat, _) => {
            let field = if is_thinking { "reasoning_content" } else { "content" };
            let piece = |text: &str| json!({"id":"c","choices":[{"index":0,"delta":{field:text}}]});
            vec![
                piece("a@1"),
                json!({"id":"c","choices":[{"index":0,"delta":{field:"@2b"},"finish_reason":"stop"}]}),
            ]
        }
        (Api::OpenAiResponses, _) => {
            let kind = match is_thinking {
                true => "response.reasoning_summary_text.delta",
                false => "response.output_text.delta",
            };
            let item = match is_thinking {
                true => json!({"type":"reasoning","id":"i","summary":[{"text":"a😀b"}]}),
                false => json!({"type":"message","id":"i","content":[{"text":"a😀b"}]}),
            };
            vec![
                json!({"type":"response.output_item.added","output_index":0,"item":{"type":item["type"],"id":"i"}}),
                json!({"type":kind,"output_index":0,"item_id":"i","delta":"a@1"}),
                json!({"type":kind,"output_index":0,"item_id":"i","delta":"@2b"}),
                json!({"type":"response.output_item.done","output_index":0,"item":item}),
                json!({"type":"response.completed","response":{"id":"r","status":"completed","output":[item]}}),
            ]
        }
    };
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn check(api: Api, stream: &[u8], expected: &ReplyBlock) {
    let (deltas, reply) = read_pieces(api, &[stream]);
    let reply = reply.unwrap_or_else(|fault| panic!("{api:?}: {fault:?}"));
    assert_deltas_tell_the_reply(&deltas, &reply);
    assert_eq!(reply.content, std::slice::from_ref(expected), "{api:?}");
}

#[test]
fn character_split_over_two_events_is_joined() {
    for &api in Api::ALL {
        for is_thinking in [false, true] {
            let expected = match is_thinking {
                true => ReplyBlock::Thinking { text: "a😀b".into(), signature: None },
                false => ReplyBlock::Text("a😀b".into()),
            };
            let stream = two_pieces(api, is_thinking);
            let escaped = stream.replace("@1", "\\ud83d").replace("@2", "\\ude00");
            check(api, escaped.as_bytes(), &expected);
            let upper = stream.replace("@1", "\\uD83D").replace("@2", "\\uDE00");
            check(api, upper.as_bytes(), &expected);
            // The bytes of its UTF-8.
            for (first, second) in [
                (&b"\xF0\x9F"[..], &b"\x98\x80"[..]),
                (b"\xF0", b"\x9F\x98\x80"),
                (b"\xED\xA0\xBD", b"\xED\xB8\x80"),
            ] {
                check(api, &with_bytes(&stream, first, second), &expected);
            }
        }
    }
}

/// The stream with these bytes at its two places.
fn with_bytes(stream: &str, first: &[u8], second: &[u8]) -> Vec<u8> {
    let (before, rest) = stream.split_once("@1").expect("the first place");
    let (between, after) = rest.split_once("@2").expect("the second place");
    [before.as_bytes(), first, between.as_bytes(), second, after.as_bytes()].concat()
}

#[test]
fn character_split_over_two_fragments_of_arguments_is_joined() {
    for &api in Api::ALL {
        let parts = [Start("a"), Call("t", vec!["{\"a\":\"@1", "@2\"}"]), End(None)];
        let stream = wire(api, &parts);
        for (first, second) in [("\\ud83d", "\\ude00"), ("\\\\ud83d", "\\\\ude00")] {
            let (deltas, reply) = read(api, &stream.replace("@1", first).replace("@2", second));
            let reply = reply.unwrap_or_else(|fault| panic!("{api:?}: {fault:?}"));
            assert_deltas_tell_the_reply(&deltas, &reply);
            let ReplyBlock::ToolCall { input, .. } = &reply.content[0] else { panic!("{reply:?}") };
            assert_eq!(input, &Ok(json!({"a": "😀"})), "{api:?}");
        }
    }
}

#[test]
fn lone_half_becomes_replacement_character() {
    for &api in Api::ALL {
        let stream = two_pieces(api, false);
        if api == Api::OpenAiResponses {
            // The end of the answer has the complete text.
            continue;
        }
        let lone = stream.replace("@1", "\\ud83d").replace("@2", "x");
        check(api, lone.as_bytes(), &ReplyBlock::Text("a\u{FFFD}xb".into()));
        let parts = [Start("a"), Call("t", vec!["{\"a\":\"@1\"}"]), End(None)];
        let (_, reply) = read(api, &wire(api, &parts).replace("@1", "\\\\ud83d"));
        let ReplyBlock::ToolCall { input, .. } = &reply.expect("a reply").content[0] else {
            panic!("no call")
        };
        assert_eq!(input, &Ok(json!({"a": "\u{FFFD}"})), "{api:?}");
    }
}

#[test]
fn arguments_encoded_twice_are_unwrapped() {
    for &api in Api::ALL {
        for json in ["\"{\\\"a\\\":1}\"", "\"\\\"{\\\\\\\"a\\\\\\\":1}\\\"\""] {
            let (deltas, reply) = read(api, &wire(api, &[Start("a"), Call("t", vec![json]), End(None)]));
            let reply = reply.unwrap_or_else(|fault| panic!("{api:?}: {fault:?}"));
            assert_deltas_tell_the_reply(&deltas, &reply);
            let ReplyBlock::ToolCall { input, .. } = &reply.content[0] else { panic!("{reply:?}") };
            assert_eq!(input, &Ok(json!({"a": 1})), "{api:?}: {json}");
        }
    }
}
