//! Pictures and documents: read by the model, sent by a user, stored, and sent again with the same
//! bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::ImageFormat;
use serde_json::{Value, json};

use super::agentctl;
use crate::support::client::{Client, Session};
use crate::support::daemon::{Api, CrashMode, MESSAGE_APIS, TestDaemon};
use crate::support::model_server::Step;
use crate::support::pictures::{noise, pdf, picture};

/// Maximum bytes of a value in a wire event.
const MAX_WIRE_BYTES: usize = 64 * 1024;

fn write_file(daemon: &TestDaemon, name: &str, bytes: &[u8]) {
    std::fs::write(daemon.workspace().join(name), bytes).expect("written");
}

async fn read_blob(client: &Client, session: &Session, blob_id: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let params = json!({"session_id": session.id, "blob_id": blob_id, "offset": bytes.len()});
        let reply = client.call("session.blob", params).await;
        let content = reply["content"].as_str().expect("a content");
        match reply["encoding"].as_str() {
            Some("base64") => bytes.extend(STANDARD.decode(content).expect("base64")),
            _ => bytes.extend(content.as_bytes()),
        }
        if reply.get("next_offset").is_none() {
            return bytes;
        }
    }
}

/// The media of an Anthropic Messages request: media type and bytes, in order.
fn collect_media(body: &Value, out: &mut Vec<(String, Vec<u8>)>) {
    match body {
        Value::Object(fields) if fields.get("type").is_some_and(|kind| kind == "base64") => {
            let data = fields["data"].as_str().expect("data");
            let media_type = fields["media_type"].as_str().expect("a media type").to_owned();
            out.push((media_type, STANDARD.decode(data).expect("base64")));
        }
        Value::Object(fields) => fields.values().for_each(|field| collect_media(field, out)),
        Value::Array(entries) => entries.iter().for_each(|entry| collect_media(entry, out)),
        _ => {}
    }
}

fn media_of(body: &Value) -> Vec<(String, Vec<u8>)> {
    let mut out = Vec::new();
    collect_media(body, &mut out);
    out
}

/// The first message without its cache breakpoint, which moves with the conversation.
fn unmarked(body: &Value) -> String {
    let mut message = body["messages"][0].clone();
    for part in message["content"].as_array_mut().expect("parts") {
        part.as_object_mut().expect("a part").remove("cache_control");
    }
    message.to_string()
}

/// A model that reads this file, and the contents of its next request.
async fn read(daemon: &TestDaemon, file: &str) -> (Client, Session, Value, Value) {
    daemon.models.push(Step::calls([("Read", json!({"file_path": file}))]));
    daemon.models.push(Step::text("I see."));
    let alice = daemon.client("alice").await;
    let session = alice.create(daemon).await;
    let mut seen = session.follow().await;
    session.submit("look at it").await;
    let done = seen.wait_for("tool.completed").await;
    seen.turn_ends("success").await;
    daemon.models.assert_no_breach();
    let body = daemon.models.requests().pop().expect("a request").body;
    (alice, session, done, body)
}

#[tokio::test]
async fn image_read_by_tool_is_sent_to_model() {
    for api in MESSAGE_APIS {
        // Compatible servers receive pictures if the configuration says that the model has vision.
        let sees = "[model.\"scripted/model\"]\nvision = true\ndocuments = true\n";
        let daemon = TestDaemon::builder().api(api).config(sees).start().await;
        let bytes = picture(ImageFormat::Jpeg, 64, 48, 3);
        // The type follows from the content, not from the name.
        write_file(&daemon, "photo.txt", &bytes);
        let (alice, session, done, body) = read(&daemon, "photo.txt").await;
        assert_eq!(done["status"], "completed", "{done:#}");
        let output = done["output"].as_str().expect("a text");
        assert!(output.contains("JPEG") && output.contains("64×48"), "{output}");
        let attachment = &done["attachments"][0];
        assert_eq!((&attachment["kind"], &attachment["media_type"]), (&json!("image"), &json!("image/jpeg")));
        assert_eq!(read_blob(&alice, &session, &attachment["blob_id"]).await, bytes);
        let call =
            session.items().await.into_iter().find(|item| item["kind"] == "tool_call").expect("a call");
        assert_eq!(call["call"]["attachments"][0], *attachment);
        assert!(body.to_string().contains(&STANDARD.encode(&bytes)), "{api:?}: the model gets the picture");
        if api == Api::Anthropic {
            let results = &body["messages"][2]["content"][0]["content"];
            assert_eq!(results[1]["type"], "image", "{results}");
        }

        // The model can read the picture again by its blob id.
        daemon.models.push(Step::calls([("Read", json!({"file_path": attachment["blob_id"]}))]));
        daemon.models.push(Step::text("Again."));
        let mut seen = session.follow_after(session.view().await["last_seq"].as_u64().unwrap()).await;
        session.submit("again").await;
        let again = seen.wait_for("tool.completed").await;
        assert_eq!(again["attachments"][0]["blob_id"], attachment["blob_id"], "{again:#}");
        seen.turn_ends("success").await;
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn oversized_image_is_resized_and_broken_image_is_reported() {
    let daemon = TestDaemon::start().await;
    write_file(&daemon, "wide.png", &picture(ImageFormat::Png, 2_400, 30, 1));
    write_file(&daemon, "noise.png", &noise(1_400, 1_000, 7));
    let whole = picture(ImageFormat::Png, 64, 48, 3);
    write_file(&daemon, "cut.png", &whole[..whole.len() / 2]);
    let mut bomb = b"GIF89a\xFF\xFF\xFF\xFF\0\0\0".to_vec();
    bomb.extend([0; 40]);
    write_file(&daemon, "bomb.gif", &bomb);
    std::fs::File::create(daemon.workspace().join("huge.png"))
        .and_then(|file| {
            use std::os::unix::fs::FileExt as _;
            file.write_all_at(&whole, 0)?;
            file.set_len(30 << 20)
        })
        .expect("a file of 30 MB");
    for file in ["wide.png", "noise.png"] {
        let (_, _, done, body) = read(&daemon, file).await;
        let shown = media_of(&body);
        let [(_, bytes)] = shown.as_slice() else { panic!("{file}: {} pictures", shown.len()) };
        let made = image::load_from_memory(bytes).expect("a picture");
        assert!(made.width() <= 1_568 && bytes.len() <= 3_750_000, "{file}: {} bytes", bytes.len());
        assert!(done["detail"]["scaled"]["width"] == made.width(), "{file}: {done:#}");
    }
    for (file, code, word) in [
        ("cut.png", "not_convertible", "decoded"),
        ("bomb.gif", "not_convertible", "65535×65535"),
        ("huge.png", "file_too_large", "20 MiB"),
    ] {
        let (_, _, done, body) = read(&daemon, file).await;
        assert_eq!((&done["status"], &done["code"]), (&json!("failed"), &json!(code)), "{done:#}");
        assert!(done["output"].as_str().expect("a text").contains(word), "{done:#}");
        assert!(media_of(&body).is_empty(), "{file} is not shown");
    }
}

#[tokio::test]
async fn pdf_is_sent_as_document_or_text_by_capability() {
    for (config, takes) in [("", true), ("[model.\"scripted/model\"]\ndocuments = false\n", false)] {
        let daemon = TestDaemon::builder().config(config).start().await;
        let bytes = pdf(&["The first page", "The second page"]);
        write_file(&daemon, "paper.pdf", &bytes);
        let (_, _, done, body) = read(&daemon, "paper.pdf").await;
        assert!(done["output"].as_str().expect("a text").contains("The second page"), "{done:#}");
        let text = body.to_string();
        assert_eq!(text.contains("The second page"), !takes);
        match media_of(&body).as_slice() {
            [] => assert!(!takes, "it is shown"),
            [(media_type, content)] => {
                assert!(takes && media_type == "application/pdf" && *content == bytes);
            }
            more => panic!("{} documents", more.len()),
        }
        // Every model gets a part of the file as text.
        daemon.models.push(Step::calls([("Read", json!({"file_path": "paper.pdf", "limit": 1}))]));
        daemon.models.push(Step::text("One page."));
        let session = daemon.client("bob").await.create(&daemon).await;
        let mut seen = session.follow().await;
        session.submit("the first page").await;
        seen.turn_ends("success").await;
        let body = daemon.models.requests().pop().expect("a request").body;
        assert!(media_of(&body).is_empty() && body.to_string().contains("The first page"));
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn attached_media_is_stored_and_resent_with_same_bytes() {
    let mut daemon = TestDaemon::start().await;
    let image = picture(ImageFormat::Png, 120, 80, 9);
    let (paper, list) = (pdf(&["Terms of use"]), "milk\n".repeat(20_000));
    write_file(&daemon, "shot.png", &image);
    write_file(&daemon, "terms.pdf", &paper);
    write_file(&daemon, "list.txt", list.as_bytes());
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    let inline = picture(ImageFormat::Gif, 30, 30, 5);
    let input = json!([
        {"type": "image", "path": daemon.workspace().join("shot.png")},
        {"type": "image", "data": STANDARD.encode(&inline), "media_type": "image/gif"},
        {"type": "file", "path": "terms.pdf"},
        {"type": "file", "path": daemon.workspace().join("list.txt")},
        {"type": "text", "text": "what are these?"},
    ]);
    daemon.models.push(Step::text("Pictures."));
    session.submit_with(json!({"input": input})).await;
    seen.turn_ends("success").await;
    daemon.models.assert_no_breach();
    let first = daemon.models.requests().pop().expect("a request").body;
    let shown = media_of(&first);
    let expected = [("image/png", &image), ("image/gif", &inline), ("application/pdf", &paper)];
    assert_eq!(shown.len(), expected.len());
    for ((kind, bytes), (expected_kind, expected)) in shown.iter().zip(expected) {
        assert!(kind == expected_kind && bytes == expected, "{kind}");
    }
    let text = first["messages"][0]["content"].to_string();
    assert!(text.contains("milk") && text.contains("list.txt") && text.contains("what are these?"));

    // Stored events name the blobs, and every event stays small.
    for event in seen.events() {
        assert!(event.to_string().len() <= MAX_WIRE_BYTES, "{} is too large", event["type"]);
    }
    let item = session.items().await.remove(0);
    assert_eq!(item["text"], "what are these?");
    let kinds: Vec<&str> = item["content"]
        .as_array()
        .expect("blocks")
        .iter()
        .filter_map(|block| block["type"].as_str())
        .collect();
    assert_eq!(kinds, ["image", "image", "document", "document", "text"]);
    assert_eq!(item["content"][0]["media_type"], "image/png");
    assert_eq!(read_blob(&alice, &session, &item["content"][0]["blob_id"]).await, image);
    assert_eq!(read_blob(&alice, &session, &item["content"][3]["blob_id"]).await, list.as_bytes());

    // After the files are deleted and the daemon has died, the conversation is the same, byte for byte.
    for file in ["shot.png", "terms.pdf", "list.txt"] {
        std::fs::remove_file(daemon.workspace().join(file)).expect("removed");
    }
    daemon.crash_and_restart().await;
    let session = daemon.client("alice").await.join(&session);
    let mut seen = session.follow_after(session.view().await["last_seq"].as_u64().unwrap()).await;
    daemon.models.push(Step::text("The same."));
    session.submit("and now?").await;
    seen.turn_ends("success").await;
    daemon.models.assert_no_breach();
    let again = daemon.models.requests().pop().expect("a request").body;
    assert!(unmarked(&first) == unmarked(&again), "the first message has changed");
}

#[tokio::test]
async fn documents_and_resource_links_reach_the_model() {
    let daemon = TestDaemon::start().await;
    write_file(&daemon, "terms of use.pdf", &pdf(&["Terms of use"]));
    write_file(&daemon, "list.txt", b"eggs and milk");
    write_file(&daemon, "shot.png", &picture(ImageFormat::Png, 10, 10, 1));
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let uri = format!("file://{}", daemon.workspace().join("terms%20of%20use.pdf").display());
    let input = json!([
        {"type": "document", "data": STANDARD.encode("a note"), "media_type": "text/plain", "name": "note.txt"},
        {"type": "document", "path": "list.txt"},
        {"type": "resource_link", "uri": uri},
        {"type": "resource_link", "uri": "https://example.org/page", "name": "the page"},
        {"type": "text", "text": "read them"},
    ]);
    daemon.models.push(Step::text("Read."));
    session.submit_with(json!({"input": input})).await;
    seen.turn_ends("success").await;
    let body = daemon.models.requests().pop().expect("a request").body;
    assert_eq!(media_of(&body).len(), 1, "one PDF");
    let text = body["messages"][0]["content"].to_string();
    for part in ["a note", "eggs and milk", "the page: https://example.org/page", "read them"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    daemon.models.assert_no_breach();
    for (block, path) in [
        (json!({"type": "resource_link", "uri": "nowhere"}), "input[0].uri"),
        (json!({"type": "resource_link", "uri": "file://other/etc/x"}), "input[0].uri"),
        (json!({"type": "resource_link", "uri": "file:///missing/x"}), "input[0].path"),
        (json!({"type": "document", "path": "shot.png"}), "input[0].path"),
        (json!({"type": "document"}), "input[0]"),
    ] {
        let refusal = session.refused("submit", json!({"input": [block]})).await;
        assert_eq!((refusal.code, &refusal.data["path"]), (-32602, &json!(path)), "{block}: {refusal:?}");
    }
}

#[tokio::test]
async fn document_text_reaches_model_and_its_path_is_never_read() {
    let daemon = TestDaemon::start().await;
    write_file(&daemon, "list.txt", b"the saved words");
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let input = json!([
        {"type": "document", "path": "list.txt", "text": "the words of the buffer", "unsaved": true},
        {"type": "document", "path": "/no/such/file.rs#L2-3", "text": "two lines"},
        {"type": "document", "path": "list.txt", "name": "its name", "text": ""},
        {"type": "text", "text": "read them"},
    ]);
    daemon.models.push(Step::text("Read."));
    session.submit_with(json!({"input": input})).await;
    seen.turn_ends("success").await;
    let body = daemon.models.requests().pop().expect("a request").body;
    let parts: Vec<&str> = body["messages"][0]["content"]
        .as_array()
        .expect("parts")
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect();
    for expected in [
        "<file name=\"list.txt\" unsaved=\"true\">\nthe words of the buffer\n</file>",
        "<file name=\"/no/such/file.rs#L2-3\">\ntwo lines\n</file>",
        "<file name=\"its name\">\n\n</file>",
    ] {
        assert!(parts.contains(&expected), "{expected}: {parts:?}");
    }
    assert!(!body.to_string().contains("the saved words"), "{body}");
    daemon.models.assert_no_breach();
    let long = "x".repeat((256 << 10) + 1);
    for (block, path) in [
        (json!({"type": "document", "text": long}), "input[0].text"),
        (json!({"type": "document", "text": "a", "data": STANDARD.encode("b")}), "input[0].text"),
        (json!({"type": "document", "text": "a", "path": "two\nlines"}), "input[0].text"),
        (json!({"type": "document", "path": "list.txt", "unsaved": true}), "input[0].unsaved"),
    ] {
        let refusal = session.refused("submit", json!({"input": [block]})).await;
        assert_eq!((refusal.code, &refusal.data["path"]), (-32602, &json!(path)), "{refusal:?}");
    }
    for kind in ["image", "file"] {
        let refusal = session.refused("submit", json!({"input": [{"type": kind, "text": "a"}]})).await;
        assert_eq!(refusal.code, -32602, "{kind}: {refusal:?}");
    }
}

#[tokio::test]
async fn model_without_vision_receives_text_note() {
    let daemon = TestDaemon::builder().config("[model.\"scripted/model\"]\nvision = false\n").start().await;
    write_file(&daemon, "shot.png", &picture(ImageFormat::Png, 10, 10, 1));
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("I cannot see."));
    // An image without text is a valid input.
    session.submit_with(json!({"input": [{"type": "image", "path": "shot.png"}]})).await;
    seen.turn_ends("success").await;
    let body = daemon.models.requests().pop().expect("a request").body;
    let said = body["messages"][0]["content"].to_string();
    assert!(said.contains("[image shot.png (image/png") && said.contains("cannot see"), "{said}");
    assert!(media_of(&body).is_empty());
    daemon.models.assert_no_breach();
    assert_eq!(session.view().await["title"], "shot.png");
}

#[tokio::test]
async fn unusable_input_file_is_refused_without_stored_blob() {
    let daemon = TestDaemon::start().await;
    let whole = picture(ImageFormat::Png, 64, 48, 3);
    write_file(&daemon, "ok.png", &whole);
    write_file(&daemon, "cut.png", &whole[..whole.len() / 2]);
    write_file(&daemon, "program", b"\x7FELF\0\0\0\0");
    write_file(&daemon, "long.txt", &[b'a'; 300 << 10]);
    let huge = std::fs::File::create(daemon.workspace().join("huge.png")).expect("a file");
    huge.set_len(30 << 20).expect("30 MB");
    let pipe = daemon.workspace().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let session = daemon.client("alice").await.create(&daemon).await;
    let last = session.view().await["last_seq"].clone();
    let ok = json!({"type": "image", "path": "ok.png"});
    for (block, place, word) in [
        (json!({"type": "image", "path": "huge.png"}), "input[1].path", "20 MiB"),
        (json!({"type": "image", "path": "cut.png"}), "input[1].path", "decoded"),
        (json!({"type": "image", "path": "long.txt"}), "input[1].path", "PNG, JPEG, GIF or WebP"),
        (json!({"type": "image", "path": "gone.png"}), "input[1].path", "does not exist"),
        (json!({"type": "image", "path": "."}), "input[1].path", "folder"),
        (json!({"type": "file", "path": pipe}), "input[1].path", "not a regular file"),
        (json!({"type": "file", "path": "program"}), "input[1].path", "ELF"),
        (json!({"type": "file", "path": "long.txt"}), "input[1].path", "256 KiB"),
        (json!({"type": "file", "path": ""}), "input[1].path", "not a file name"),
        (json!({"type": "image", "data": "%%%"}), "input[1].data", "base64"),
        (json!({"type": "image", "data": STANDARD.encode(b"BM no")}), "input[1].data", "PNG"),
        (json!({"type": "image", "path": "a", "data": "b"}), "input[1]", "not both"),
        (json!({"type": "image"}), "input[1]", "needs path"),
        (json!({"type": "resource_link", "uri": "x"}), "input[1].uri", "file:///path"),
        (json!({"type": "resource_link", "uri": "file:///gone"}), "input[1].path", "does not exist"),
    ] {
        let refusal = session.refused("submit", json!({"input": [ok, block]})).await;
        assert_eq!(refusal.code, -32602, "{block}: {}", refusal.message);
        assert_eq!(refusal.data["path"], place, "{block}: {}", refusal.message);
        assert!(refusal.message.contains(word), "{block}: {}", refusal.message);
    }
    let hundred = vec![ok.clone(); 100];
    let refusal = session.refused("submit", json!({"input": hundred})).await;
    assert!(refusal.message.contains("100") && refusal.message.contains("20"), "{}", refusal.message);
    // Few pictures, but too large together.
    write_file(&daemon, "noise.png", &noise(1_100, 1_100, 3));
    let much = vec![json!({"type": "image", "path": "noise.png"}); 7];
    let refusal = session.refused("submit", json!({"input": much})).await;
    assert!(refusal.message.contains("20 MiB"), "{}", refusal.message);
    assert_eq!(session.view().await["last_seq"], last, "no refused input was stored");
    assert!(daemon.models.requests().is_empty());
}

#[tokio::test]
async fn submit_with_image_is_atomic_across_crash() {
    for (point, is_there) in [("C1.decided", false), ("C2.committed", true)] {
        let mut daemon = TestDaemon::builder().build().await;
        let image = picture(ImageFormat::Png, 50, 50, 2);
        write_file(&daemon, "shot.png", &image);
        daemon.models.set_fallback(|_| Step::text("I see."));
        daemon.launch().await;
        let session = daemon.client("alice").await.create(&daemon).await;
        daemon.stop().await;
        daemon.crash_at(point, CrashMode::Kill);
        daemon.launch().await;
        let dying = daemon.client("alice").await.join(&session);
        let params = json!({"input": [{"type": "image", "path": "shot.png"}], "idempotency_key": "k"});
        dying.send("submit", params.clone()).await;
        daemon.wait_crashed().await;
        daemon.clear_crash_point();
        daemon.launch().await;
        let alice = daemon.client("alice").await;
        let session = alice.join(&session);
        let mut seen = session.follow().await;
        if is_there {
            // The daemon does not read the file again, because the input was already accepted.
            std::fs::remove_file(daemon.workspace().join("shot.png")).expect("removed");
        } else {
            let started = session.events().await.iter().any(|event| event["type"] == "turn.started");
            assert!(!started, "{point}: there is a turn");
        }
        session.submit_with(params).await;
        seen.turn_ends("success").await;
        let bodies = daemon.models.requests();
        assert!(
            bodies.iter().all(|request| media_of(&request.body) == [("image/png".into(), image.clone())])
        );
        let started = session.events().await.into_iter().filter(|event| event["type"] == "turn.started");
        assert_eq!(started.count(), 1, "{point}: the input was stored once");
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn agentctl_submits_images_and_files() {
    let daemon = TestDaemon::start().await;
    let image = picture(ImageFormat::WebP, 40, 40, 8);
    write_file(&daemon, "shot.webp", &image);
    write_file(&daemon, "notes.md", b"# Notes\nfrom a file\n");
    daemon.models.push(Step::text("I see both."));
    let args = ["run", "what is this?", "--image", "shot.webp", "--file", "notes.md"];
    let said = agentctl::ctl(&daemon, &args).await.stdout();
    assert!(said.contains("I see both."), "{said}");
    let body = daemon.models.requests().pop().expect("a request").body;
    assert_eq!(media_of(&body), [("image/webp".to_owned(), image)]);
    let text = body["messages"][0]["content"].to_string();
    let notes = daemon.workspace().join("notes.md");
    assert!(text.contains("from a file") && text.contains(&notes.display().to_string()), "{text}");
    daemon.models.assert_no_breach();

    let session = daemon.client("alice").await;
    let id = session.call("session.list", json!({})).await["sessions"][0]["session_id"].clone();
    let id = id.as_str().expect("an id");
    daemon.models.push(Step::text("Once more."));
    agentctl::ctl(&daemon, &["submit", id, "again", "--image", "shot.webp"]).await.stdout();
    daemon.models.wait_for_requests(2).await;
    let missing = agentctl::ctl(&daemon, &["submit", id, "again", "--image", "gone.webp"]).await;
    assert!(missing.code == 64 && missing.err.contains("there is no such file"), "{missing:?}");
}
