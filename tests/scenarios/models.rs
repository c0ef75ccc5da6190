//! The model that receives a request, its API format, and the parts of the conversation in the request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::ImageFormat;
use serde_json::{Value, json};

use super::agentctl::ctl;
use crate::support::daemon::{ALL_APIS, Api, TestDaemon};
use crate::support::model_server::{Gate, Request, Step};
use crate::support::pictures::{pdf, picture};

const FAST_RETRIES: &str = "[retry]\nbase_ms = 1\nmax_ms = 1\n";

/// The text of the system prompt.
fn system(request: &Request) -> String {
    let body = &request.body;
    let text = body["system"][0]["text"].as_str().or_else(|| body["instructions"].as_str());
    text.or_else(|| body["messages"][0]["content"].as_str()).expect("a prompt").to_owned()
}

/// The conversation without cache breakpoints, which move with it.
fn conversation(request: &Request) -> Vec<Value> {
    let list = request.body["messages"].as_array().or_else(|| request.body["input"].as_array());
    let mut list = list.expect("a conversation").clone();
    for message in &mut list {
        for part in message["content"].as_array_mut().into_iter().flatten() {
            if let Some(part) = part.as_object_mut() {
                part.remove("cache_control");
            }
        }
    }
    list
}

#[tokio::test]
async fn model_list_shows_configured_roles_and_capabilities() {
    let pointers = "quick = \"scripted/small\"\nfallback = \"scripted/other\"\nvision = \"scripted/model\"\n";
    let daemon = TestDaemon::builder()
        .config(pointers)
        .config("[model.\"scripted/other\"]\nsampling = false")
        .start()
        .await;
    let listed = daemon.client("alice").await.call("model.list", json!({})).await;
    let find = |name: &str| {
        let models = listed["models"].as_array().expect("models").iter();
        models
            .clone()
            .find(|view| view["model"] == name)
            .unwrap_or_else(|| panic!("{name}: {listed}"))
            .clone()
    };
    assert_eq!(find("scripted/model")["pointers"], json!(["main", "vision"]));
    assert_eq!(find("scripted/small")["pointers"], json!(["quick"]));
    let other = find("scripted/other");
    assert_eq!((&other["pointers"], &other["sampling"]), (&json!(["fallback"]), &json!(false)));
    let shown = ctl(&daemon, &["models"]).await.stdout();
    let line = shown.lines().find(|line| line.starts_with("scripted/model ")).expect("a line");
    assert!(line.contains("main vision"), "{shown}");
}

#[tokio::test]
async fn provider_check_tries_key_and_address_without_tokens() {
    for api in ALL_APIS {
        let daemon = TestDaemon::builder()
            .api(api)
            .environment("CHECKED_KEY", "sk-canary-1234567890")
            .provider("api_key_env = \"CHECKED_KEY\"")
            .config(
                "[providers.gone]\nkind = \"openai_chat\"\nbase_url = \"http://me:canary-password@127.0.0.1:9/v1\"\n\
                 [providers.keyless]\nkind = \"anthropic\"\napi_key_env = \"NO_SUCH_KEY\"\n\
                 [providers.tape]\nkind = \"replay\"\ncassette = \"missing.jsonl\"",
            )
            .start()
            .await;
        let alice = daemon.client("alice").await;
        let only = json!({"provider": "scripted"});
        let one = alice.call("model.check", only.clone()).await;
        let one = one["providers"].as_array().expect("providers").clone();
        assert_eq!((one.len(), &one[0]["name"], &one[0]["ok"]), (1, &json!("scripted"), &json!(true)));
        assert!(one[0]["latency_ms"].is_u64() && one[0].get("error").is_none(), "{one:?}");
        let sent = daemon.models.list_requests();
        let key = sent[0].header("x-api-key").or_else(|| sent[0].header("authorization"));
        assert!(key.is_some_and(|key| key.ends_with("sk-canary-1234567890")), "{sent:?}");

        // A login page is not an answer of the API.
        daemon.models.answer_list(200, "<html>Log in</html>");
        let page = alice.call("model.check", only.clone()).await["providers"][0].clone();
        assert!(page["ok"] == false && page["error"].to_string().contains("base_url"), "{page}");

        // Without a list of models, an empty request shows that the address is right.
        daemon.models.answer_list(404, "{}");
        assert_eq!(alice.call("model.check", only.clone()).await["providers"][0]["ok"], true);
        assert_eq!(daemon.models.requests().last().expect("a request").body, json!({}));

        let refusal =
            "{\"error\":{\"type\":\"authentication_error\",\"message\":\"no sk-canary-1234567890\"}}";
        daemon.models.answer_list(401, refusal);
        let all = alice.call("model.check", json!({})).await;
        let all = all["providers"].as_array().expect("providers").clone();
        let names: Vec<&str> = all.iter().filter_map(|one| one["name"].as_str()).collect();
        assert_eq!(names, ["gone", "keyless", "scripted", "tape"]);
        for (one, word) in all.iter().zip(["could not reach", "NO_SUCH_KEY", "key", "missing.jsonl"]) {
            let error = one["error"].as_str().unwrap_or_default();
            assert!(one["ok"] == false && error.contains(word), "{word}: {one}");
            assert!(one.get("latency_ms").is_none() && !error.contains("canary"), "{one}");
        }
        let unknown = alice.refused("model.check", json!({"provider": "other"})).await;
        assert_eq!((unknown.code, &unknown.data["path"]), (-32602, &json!("provider")));
        assert!(unknown.message.contains("scripted"), "{unknown:?}");
    }
}

#[tokio::test]
async fn agentctl_models_check_and_doctor_report_unusable_provider() {
    let daemon = TestDaemon::builder()
        .config("[providers.gone]\nkind = \"openai_chat\"\nbase_url = \"http://127.0.0.1:9/v1\"")
        .start()
        .await;
    let printed = ctl(&daemon, &["models", "--check"]).await;
    assert_eq!(printed.code, 2, "{printed:?}");
    assert!(printed.out.contains("ok    scripted answers after"), "{printed:?}");
    assert!(printed.out.contains("fail  gone: could not reach http://127.0.0.1:9"), "{printed:?}");
    let shown = ctl(&daemon, &["doctor"]).await.stdout();
    assert!(shown.contains("provider scripted accepts the key"), "{shown}");
    assert!(shown.contains("warn  provider gone: could not reach"), "{shown}");
    daemon.models.answer_list(403, "{}");
    let printed = ctl(&daemon, &["doctor"]).await;
    assert!(printed.out.contains("fail  provider scripted: "), "{printed:?}");
}

#[tokio::test]
async fn prompt_is_rebuilt_only_when_session_model_changes() {
    let mut daemon = TestDaemon::start().await;
    daemon.write("AGENTS.md", "Use tabs.");
    daemon.models.set_fallback(|_| Step::text("Yes."));
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let mut turn = async |params: Value| {
        session.submit_with(params).await;
        seen.turn_ends("success").await;
        system(daemon.models.requests().last().expect("a request"))
    };
    let first = turn(json!({"input": "one"})).await;
    assert!(first.contains("Model: scripted/model\n") && first.contains("Use tabs."), "{first}");
    // An update that changes nothing, or only one turn, leaves the prompt unchanged.
    daemon.write("AGENTS.md", "Use spaces.");
    session.call("update", json!({"model": "scripted/model"})).await;
    assert_eq!(turn(json!({"input": "two", "model": "scripted/other"})).await, first);
    assert_eq!(turn(json!({"input": "three"})).await, first);

    session.call("update", json!({"model": "scripted/other"})).await;
    let other = turn(json!({"input": "four"})).await;
    assert!(other.contains("Model: scripted/other\n") && other.contains("Use spaces."), "{other}");
    daemon.write("AGENTS.md", "Use both.");
    assert_eq!(turn(json!({"input": "five"})).await, other);
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow_after(session.view().await["last_seq"].as_u64().expect("a seq")).await;
    session.submit("six").await;
    seen.turn_ends("success").await;
    let requests = daemon.models.requests();
    assert_eq!(system(requests.last().expect("a request")), other);
    let models: Vec<&Value> = requests.iter().map(|request| &request.body["model"]).collect();
    assert_eq!(models, ["model", "other", "model", "other", "other", "other"]);
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn temperature_is_sent_per_api_and_shown_in_session() {
    for api in ALL_APIS {
        let mut daemon = TestDaemon::builder()
            .api(api)
            .config("[model.\"scripted/warm\"]\ntemperature = 0.7\n[model.\"scripted/stiff\"]\nsampling = false\n")
            .start()
            .await;
        daemon.models.set_fallback(|_| Step::text("Yes."));
        let alice = daemon.client("alice").await;
        let own = json!({"temperature": 0.3, "top_p": 0.9, "thinking": "low"});
        let session = alice.create_with(&daemon, own).await;
        let mut seen = session.follow().await;
        for params in [
            json!({"input": "as the session says"}),
            json!({"input": "hotter", "temperature": 1.5}),
            json!({"input": "nothing of it", "model": "scripted/stiff"}),
        ] {
            session.submit_with(params).await;
            seen.turn_ends("success").await;
        }
        let started = &seen.events_of("turn.started")[1];
        assert_eq!((&started["temperature"], &started["top_p"]), (&json!(1.5), &json!(0.9)), "{started}");
        session.call("update", json!({"temperature": 0, "thinking": "high"})).await;
        assert_eq!(seen.wait_for("session.updated").await["temperature"], 0.0);
        let view = session.view().await;
        assert_eq!(
            (&view["temperature"], &view["top_p"], &view["thinking"]),
            (&json!(0.0), &json!(0.9), &json!("high"))
        );
        daemon.crash_and_restart().await;
        let bob = daemon.client("bob").await;
        assert_eq!(bob.call("session.list", json!({})).await["sessions"][0]["thinking"], "high");
        assert_eq!(bob.join(&session).view().await["temperature"], 0.0);
        let session = bob.join(&session);
        let mut seen = session.follow_after(view["last_seq"].as_u64().expect("a seq")).await;
        session.submit("cold").await;
        seen.turn_ends("success").await;
        let plain = bob.create(&daemon).await;
        let mut seen_plain = plain.follow().await;
        plain.submit_with(json!({"input": "its own", "model": "scripted/warm"})).await;
        seen_plain.turn_ends("success").await;
        plain.submit("the model's own").await;
        seen_plain.turn_ends("success").await;
        assert!(plain.view().await.get("temperature").is_none());

        let sent: Vec<(Value, Value)> = daemon
            .models
            .requests()
            .iter()
            .map(|request| (request.body["temperature"].clone(), request.body["top_p"].clone()))
            .collect();
        // Anthropic accepts only one of the two, with a maximum of 1.
        let pair = |temperature: f64, top_p: f64| match api {
            Api::Anthropic => (json!(temperature.min(1.0)), Value::Null),
            _ => (json!(temperature), json!(top_p)),
        };
        let nothing = || (Value::Null, Value::Null);
        let expected =
            [pair(0.3, 0.9), pair(1.5, 0.9), nothing(), pair(0.0, 0.9), (json!(0.7), Value::Null), nothing()];
        assert_eq!(sent, expected, "{api:?}");
        let told: Vec<Value> =
            session.events().await.into_iter().filter(|event| event["type"] == "notice").collect();
        let told = json!(told).to_string();
        assert!(told.contains("it takes neither of them"), "{told}");
        assert_eq!(told.contains("temperature = 1 was sent for 1.5"), api == Api::Anthropic, "{told}");
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn out_of_range_sampling_is_refused_with_range() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    let session = client.create(&daemon).await;
    for (name, value, words) in [
        ("temperature", json!(-0.1), "from 0 to 2"),
        ("temperature", json!(2.1), "from 0 to 2"),
        ("temperature", json!("hot"), "from 0 to 2"),
        ("top_p", json!(1.01), "from 0 to 1"),
        ("top_p", json!([]), "from 0 to 1"),
    ] {
        for refused in [
            client.refused("session.create", json!({"cwd": daemon.workspace(), name: value})).await,
            session.refused("update", json!({name: value})).await,
            session.refused("submit", json!({"input": "x", name: value})).await,
        ] {
            assert_eq!(
                (refused.kind.as_str(), &refused.data["path"]),
                ("invalid_params", &json!(name)),
                "{value}"
            );
            assert!(refused.message.contains(words), "{value}: {refused:?}");
        }
    }
    let gate = Gate::new();
    daemon.models.push(Step::text("Yes.").hold(&gate));
    session.submit("go").await;
    gate.wait_reached().await;
    let steer = json!({"input": "x", "when_busy": "steer", "top_p": 0.5});
    assert_eq!(session.refused("submit", steer).await.kind, "invalid_params");
    let daemon = TestDaemon::builder().config("[model.\"scripted/model\"]\ntemperature = 3").build().await;
    let refused = daemon.run_until_exit().await;
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(78) && told.contains("from 0 to 2"), "{told}");
}

#[tokio::test]
async fn image_refused_by_provider_does_not_end_session() {
    for api in ALL_APIS {
        let sees = "[model.\"scripted/model\"]\nvision = true\ndocuments = true\n";
        let mut daemon = TestDaemon::builder().api(api).config(sees).config(FAST_RETRIES).start().await;
        let (bad, good) = (picture(ImageFormat::Png, 40, 30, 1), picture(ImageFormat::Png, 40, 30, 2));
        let data = |bytes: &[u8]| json!({"type": "image", "data": STANDARD.encode(bytes), "media_type": "image/png"});
        std::fs::write(daemon.workspace().join("terms.pdf"), pdf(&["Terms of use"])).expect("written");
        let session = daemon.client("alice").await.create(&daemon).await;
        let mut seen = session.follow().await;
        daemon.models.push(Step::error(400, "invalid_request_error", "Could not process image"));
        daemon.models.push(Step::text("I cannot see it."));
        let document = json!({"type": "file", "path": daemon.workspace().join("terms.pdf")});
        let text = json!({"type": "text", "text": "look"});
        session.submit_with(json!({"input": [text, data(&bad), document]})).await;
        let withheld = seen.wait_for("media.withheld").await;
        assert_eq!(withheld["count"], 2, "{api:?}: {withheld}");
        assert!(
            withheld["reason"].as_str().is_some_and(|why| why.contains("Could not process image")),
            "{withheld}"
        );
        assert_eq!(seen.turn_ends("success").await["text"], "I cannot see it.");
        assert!(seen.events_of("retry").is_empty(), "no retry was needed");
        let requests = daemon.models.requests();
        assert!(requests[0].body.to_string().contains(&STANDARD.encode(&bad)));
        let again = requests[1].body.to_string();
        assert!(!again.contains(&STANDARD.encode(&bad)) && !again.contains("base64,"), "{api:?}: {again}");
        assert!(
            again.contains("since the provider refused it") && again.contains("Terms of use"),
            "{api:?}: {again}"
        );
        // Clients still see it in the conversation.
        let items = json!(session.items().await).to_string();
        assert!(items.contains("image/png") && items.contains("terms.pdf"), "{items}");

        // It stays identical, byte for byte, after a crash; later media are sent.
        daemon.crash_and_restart().await;
        let session = daemon.client("bob").await.join(&session);
        let mut seen = session.follow_after(seen.last_seq()).await;
        daemon.models.push(Step::text("A good one."));
        session.submit_with(json!({"input": [{"type": "text", "text": "and this?"}, data(&good)]})).await;
        seen.turn_ends("success").await;
        let requests = daemon.models.requests();
        let (second, third) = (conversation(&requests[1]), conversation(&requests[2]));
        assert_eq!(third[..second.len()], second, "{api:?}");
        assert!(requests[2].body.to_string().contains(&STANDARD.encode(&good)), "{api:?}");
        // The provider rejects it once more, then for another reason: the turn fails, and the session
        // can continue.
        daemon.models.push(Step::error(400, "invalid_request_error", "image_url is not supported"));
        daemon.models.push(Step::error(
            400,
            "invalid_request_error",
            "no image is taken here, nor anything else",
        ));
        session.submit("again").await;
        assert_eq!(seen.wait_for("media.withheld").await["count"], 1);
        assert_eq!(seen.turn_ends("llm_error").await["errors"][0]["kind"], "bad_request");
        daemon.models.push(Step::text("Fine."));
        session.submit("and now?").await;
        seen.turn_ends("success").await;
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn image_refused_by_model_is_sent_to_vision_model() {
    let daemon =
        TestDaemon::builder().config("vision = \"scripted/eyes\"\n").config(FAST_RETRIES).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let picture = STANDARD.encode(picture(ImageFormat::Png, 40, 30, 1));
    daemon.models.push(Step::error(404, "not_found_error", "No endpoints found that support image input"));
    daemon.models.push(Step::text("A picture."));
    let image = json!({"type": "image", "data": picture, "media_type": "image/png"});
    session.submit_with(json!({"input": [{"type": "text", "text": "look"}, image]})).await;
    let switched = seen.wait_for("model.switched").await;
    assert_eq!((&switched["to"], &switched["reason"]), (&json!("scripted/eyes"), &json!("vision")));
    seen.turn_ends("success").await;
    assert!(seen.events_of("media.withheld").is_empty());
    assert!(daemon.models.requests()[1].body.to_string().contains(&picture));
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn earlier_reasoning_is_resent_when_model_needs_it() {
    for (back, expected) in [
        ("none", [0, 0, 0]),
        // Only reasoning of the current tool loop; none after the next user message.
        ("tools", [0, 1, 0]),
        ("all", [0, 1, 2]),
    ] {
        let model = format!("[model.\"scripted/deep\"]\nthinking = true\nreplay_reasoning = \"{back}\"\n");
        let daemon = TestDaemon::builder().api(Api::OpenAiChat).config(&model).start().await;
        let session =
            daemon.client("alice").await.create_with(&daemon, json!({"model": "scripted/deep"})).await;
        let mut seen = session.follow().await;
        daemon.models.push(Step::calls([("LS", json!({"path": "."}))]).thinking("Let me look."));
        daemon.models.push(Step::text("Empty.").thinking("There is nothing."));
        daemon.models.push(Step::text("Yes."));
        for input in ["what is there?", "sure?"] {
            session.submit(input).await;
            seen.turn_ends("success").await;
        }
        let told = |request: &Request| {
            let messages = request.messages().iter();
            messages
                .filter(|message| {
                    message["role"] == "assistant" && message.get("reasoning_content").is_some()
                })
                .count()
        };
        let counts: Vec<usize> = daemon.models.requests().iter().map(told).collect();
        assert_eq!(counts, expected, "{back}");
        if back != "none" {
            let second = &daemon.models.requests()[1];
            let said =
                second.messages().iter().find(|message| message["role"] == "assistant").expect("an answer");
            assert_eq!(said["reasoning_content"], "Let me look.");
        }
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn interleaved_thinking_is_requested_when_supported() {
    let config = "[model.\"scripted/model\"]\nthinking = true\ninterleaved_thinking = true\nmax_output_tokens = 64000\n";
    let daemon = TestDaemon::builder()
        .provider("headers = { anthropic-beta = \"other-2025\" }")
        .config(config)
        .start()
        .await;
    daemon.models.set_fallback(|_| Step::text("Yes.").thinking("Hm. "));
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    for thinking in ["high", "off"] {
        session.submit_with(json!({"input": "go", "thinking": thinking})).await;
        seen.turn_ends("success").await;
    }
    let requests = daemon.models.requests();
    let beta = |n: usize| requests[n].header("anthropic-beta").map(str::to_owned);
    assert_eq!(beta(0).as_deref(), Some("other-2025,interleaved-thinking-2025-05-14"));
    assert_eq!(beta(1).as_deref(), Some("other-2025"));
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn stored_conversation_continues_after_restart_and_loss() {
    let mut daemon = TestDaemon::builder().api(Api::OpenAiResponses).provider("store = true").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([("LS", json!({"path": "."}))]).say("I look."));
    daemon.models.push(Step::text("Empty."));
    session.submit("what is there?").await;
    seen.turn_ends("success").await;
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow_after(seen.last_seq()).await;
    daemon.models.push(Step::text("Yes."));
    session.submit("sure?").await;
    seen.turn_ends("success").await;
    daemon.models.forget_conversations();
    daemon.models.push(Step::text("Still."));
    session.submit("really?").await;
    let told = seen.wait_for("notice").await;
    assert!(told["text"].as_str().is_some_and(|text| text.contains("had lost the conversation")), "{told}");
    assert_eq!(seen.turn_ends("success").await["text"], "Still.");
    // Answers of another model cannot be continued.
    daemon.models.push(Step::text("Another."));
    session.submit_with(json!({"input": "and you?", "model": "scripted/other"})).await;
    seen.turn_ends("success").await;
    let requests = daemon.models.requests();
    let previous: Vec<&Value> =
        requests.iter().map(|request| &request.body["previous_response_id"]).collect();
    let nothing = Value::Null;
    assert_eq!(
        previous,
        [&nothing, &json!("resp_0"), &json!("resp_1"), &json!("resp_2"), &nothing, &nothing],
        "the fourth request was refused and sent again in full"
    );
    let sizes: Vec<usize> =
        requests.iter().map(|request| request.body["input"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(sizes, [1, 1, 1, 1, 8, 10], "{sizes:?}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn configured_api_version_is_sent_without_temperature() {
    let daemon = TestDaemon::builder().provider("api_version = \"2026-10-21\"").start().await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"temperature": 0.3})).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("Hello."));
    session.submit("hello").await;
    seen.turn_ends("success").await;
    let request = &daemon.models.requests()[0];
    assert_eq!(request.header("anthropic-version"), Some("2026-10-21"));
    assert_eq!(request.body.get("temperature"), None);
    let notices = seen.events_of("notice");
    let is_told =
        |event: &Value| event["text"].as_str().is_some_and(|text| text.contains("temperature = 0.3"));
    assert!(notices.iter().any(is_told), "{notices:?}");
    daemon.models.assert_no_breach();
}
