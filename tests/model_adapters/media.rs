//! Pictures and documents in the format of each API. The test's server checks each of them: the keys,
//! the media type, the base64, and whether the picture can be decoded.

use agentd::types::blob::{Attachment, AttachmentKind, Blob, BlobRef, Content, Document, PDF, Picture};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::ImageFormat;
use serde_json::Value;

use super::*;
use crate::support::pictures::{pdf, picture};

const KINDS: [(ImageFormat, &str); 4] = [
    (ImageFormat::Png, "image/png"),
    (ImageFormat::Jpeg, "image/jpeg"),
    (ImageFormat::Gif, "image/gif"),
    (ImageFormat::WebP, "image/webp"),
];

/// A conversation with media at every position that allows media, and the media in it.
fn media_request() -> (ModelRequest, Vec<Blob>) {
    let mut blobs = Vec::new();
    let mut keep = |blob: Blob| {
        let reference = BlobRef::from(&blob);
        blobs.push(blob);
        reference
    };
    let mut said: Vec<Block> = Vec::new();
    for (n, (format, kind)) in KINDS.into_iter().enumerate() {
        let blob = keep(Blob::new(kind, picture(format, 20, 10, n as u8)));
        let name = (n % 2 == 0).then(|| format!("/pictures/{n}"));
        said.push(Block::Image(Picture { blob, name }));
    }
    let document = |blob, name: &str, text: &str| {
        Block::Document(Document { blob, name: Some(name.into()), text: text.into(), unsaved: false })
    };
    said.push(document(keep(Blob::new(PDF, pdf(&["Terms"]))), "/papers/terms.pdf", "Terms, as a text"));
    said.push(document(BlobRef::from(&Blob::text("eggs")), "list \"a\".txt", "eggs"));
    said.push(Block::Text { text: "what do you see?".into() });

    let mut mint = Mint::new(1, Seed(1));
    let calls = [mint.call(), mint.call()];
    let asked = calls.iter().enumerate().map(|(n, call_id)| {
        Block::ToolCall(ToolCall {
            call_id: *call_id,
            provider_id: format!("c{n}"),
            tool: "Read".into(),
            input: json!({"file_path": "x"}),
            input_error: None,
        })
    });
    let asked = asked.collect();
    let mut attached = |kind, blob, in_text| Attachment { kind, blob: keep(blob), name: None, in_text };
    let shot =
        attached(AttachmentKind::Image, Blob::new("image/png", picture(ImageFormat::Png, 9, 9, 77)), false);
    let paper = attached(AttachmentKind::Document, Blob::new(PDF, pdf(&["Paper"])), true);
    let result = |n: usize, content: &str, attachment| Block::ToolResult {
        call_id: calls[n],
        provider_id: format!("c{n}"),
        content: content.into(),
        is_error: false,
        attachments: vec![attachment],
    };
    let results = vec![result(0, "a screenshot", shot), result(1, "Paper, as a text", paper)];
    let mut request = request(vec![
        Message::new(Role::User, said),
        Message::new(Role::Assistant, asked),
        Message::new(Role::User, results),
    ]);
    for blob in &blobs {
        if let Content::Bytes(bytes) = &blob.content {
            request.media.insert(blob.blob_id, Arc::clone(bytes));
        }
    }
    (request, blobs)
}

fn in_base64(blob: &Blob) -> String {
    match &blob.content {
        Content::Bytes(bytes) => STANDARD.encode(bytes),
        Content::File { .. } => panic!("in memory"),
    }
}

fn facts(vision: bool, documents: bool) -> impl FnOnce(&mut Settings) {
    let facts = ModelFacts { vision: Some(vision), documents: Some(documents), ..ModelFacts::default() };
    move |settings: &mut Settings| {
        settings.models.insert("test/scripted".into(), facts);
    }
}

async fn sent_body(kind: ProviderKind, request: &ModelRequest, change: impl FnOnce(&mut Settings)) -> Value {
    let server = ModelServer::start().await;
    server.push(Step::text("I see."));
    let models = models_with(provider(kind, &server), change);
    call(&models, request).await.1.unwrap_or_else(|fault| panic!("{kind:?}: {fault:?}"));
    server.assert_no_breach();
    server.requests().remove(0).body
}

#[tokio::test]
async fn vision_model_receives_each_attachment_once() {
    let (request, blobs) = media_request();
    for kind in ALL {
        let body = sent_body(kind, &request, facts(true, true)).await;
        let text = body.to_string();
        for blob in &blobs {
            let times = text.matches(&in_base64(blob)).count();
            assert_eq!(times, 1, "{kind:?}: {blob:?}");
        }
        // A text file is text in every API; media that is shown is not also described as text.
        assert!(text.contains("&quot;a&quot;") && text.contains("eggs"), "{kind:?}: {text}");
        assert!(!text.contains("as a text"), "{kind:?}: {text}");
        assert!(text.contains("/pictures/0") && text.contains("is shown whole"), "{kind:?}: {text}");
        // The same request gives the same bytes.
        assert_eq!(sent_body(kind, &request, facts(true, true)).await.to_string(), text, "{kind:?}");
    }
}

#[tokio::test]
async fn tool_result_images_are_placed_as_api_allows() {
    let (request, _) = media_request();
    let body = sent_body(ProviderKind::Anthropic, &request, facts(true, true)).await;
    let results = &body["messages"][2]["content"];
    assert_eq!(results[0]["content"][0], json!({"type": "text", "text": "a screenshot"}));
    assert_eq!(results[0]["content"][1]["source"]["media_type"], "image/png");
    assert_eq!(results[1]["content"][1]["type"], "document");

    // In the other two APIs results are text: their media follow in a user message.
    let body = sent_body(ProviderKind::OpenAiChat, &request, facts(true, true)).await;
    let roles: Vec<&str> =
        body["messages"].as_array().unwrap().iter().filter_map(|message| message["role"].as_str()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "user"]);
    assert_eq!(body["messages"][3]["content"], "a screenshot");
    let shown = &body["messages"][5]["content"];
    assert_eq!((&shown[0]["type"], &shown[1]["type"]), (&json!("image_url"), &json!("file")));

    let body = sent_body(ProviderKind::OpenAiResponses, &request, facts(true, true)).await;
    let kinds: Vec<&str> =
        body["input"].as_array().unwrap().iter().filter_map(|item| item["type"].as_str()).collect();
    let outputs = ["function_call_output"; 2];
    assert_eq!(kinds[kinds.len() - 3..], [outputs[0], outputs[1], "message"]);
    let shown = &body["input"].as_array().unwrap().last().unwrap()["content"];
    assert_eq!((&shown[0]["type"], &shown[1]["type"]), (&json!("input_image"), &json!("input_file")));
}

#[tokio::test]
async fn unsupported_media_is_replaced_by_text_or_name() {
    let (request, blobs) = media_request();
    for kind in ALL {
        for (vision, documents) in [(true, false), (false, false), (false, true)] {
            let text = sent_body(kind, &request, facts(vision, documents)).await.to_string();
            for blob in &blobs {
                let shown = text.contains(&in_base64(blob));
                assert_eq!(shown, vision && blob.media_type != PDF, "{kind:?} {vision}: {blob:?}");
            }
            for told in ["Terms, as a text", "Paper, as a text", "/papers/terms.pdf"] {
                assert_eq!(text.matches(told).count(), 1, "{kind:?} {vision}: {told}");
            }
            let notes = text.matches("this model cannot see it").count();
            assert_eq!(notes, if vision { 0 } else { 5 }, "{kind:?} {vision}: {text}");
        }
    }
}

#[tokio::test]
async fn missing_media_blob_is_replaced_by_name() {
    let (mut request, _) = media_request();
    request.media.clear();
    for kind in ALL {
        let text = sent_body(kind, &request, facts(true, true)).await.to_string();
        assert_eq!(text.matches("not shown any more").count(), 5, "{kind:?}: {text}");
        assert!(text.contains("Paper, as a text") && text.contains("Terms, as a text"), "{kind:?}: {text}");
    }
}

#[tokio::test]
async fn test_server_refuses_invalid_image_data() {
    let broken = Blob::new("image/png", *b"\x89PNG\r\n\x1A\nbut nothing more");
    let wrong = Blob::new("image/gif", picture(ImageFormat::Png, 4, 4, 1));
    let unknown = Blob::new("image/bmp", picture(ImageFormat::Png, 4, 4, 1));
    for kind in ALL {
        for blob in [&broken, &wrong, &unknown] {
            let shown = Block::Image(Picture { blob: BlobRef::from(blob), name: None });
            let mut asked = request(vec![Message::new(Role::User, vec![shown])]);
            if let Content::Bytes(bytes) = &blob.content {
                asked.media.insert(blob.blob_id, Arc::clone(bytes));
            }
            let server = ModelServer::start().await;
            let models = models_with(provider(kind, &server), facts(true, true));
            assert_eq!(fault(&models, &asked).await.kind, FaultKind::BadRequest, "{kind:?} {blob:?}");
            assert_eq!(server.breaches().len(), 1, "{kind:?} {blob:?}");
        }
    }
}
