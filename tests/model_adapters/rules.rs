//! The rules of the test's server are strict. Requests of the adapters pass; a request with an extra
//! key, or without a required key, fails.

use agentd::types::thinking::Thinking;
use serde_json::Value;

use super::*;
use crate::support::model_server::breach;

/// Objects whose keys the API does not define: schemas of tools, and arguments that a model passed to
/// one.
const FREE_FORM_KEYS: [&str; 3] = ["input_schema", "parameters", "input"];

/// The JSON paths of all objects in a body.
fn objects(value: &Value, place: &str, is_responses: bool, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.push(place.to_owned());
            for (name, inner) in fields {
                // In Responses, `input` is the conversation.
                let is_free = FREE_FORM_KEYS.contains(&name.as_str()) && !(is_responses && name == "input");
                if !is_free {
                    objects(inner, &format!("{place}/{name}"), is_responses, found);
                }
            }
        }
        Value::Array(elements) => {
            for (at, inner) in elements.iter().enumerate() {
                objects(inner, &format!("{place}/{at}"), is_responses, found);
            }
        }
        _ => {}
    }
}

/// Whether the vendor's API accepts a request without this key.
fn is_optional(kind: ProviderKind, place: &str, name: &str) -> bool {
    let at_top: &[&str] = match kind {
        ProviderKind::Anthropic => &["system", "thinking"],
        ProviderKind::OpenAiChat => &["stream_options", "max_tokens", "reasoning_effort", "tools"],
        _ => &["instructions", "include", "reasoning", "tools", "max_output_tokens"],
    };
    let inside = ["description", "cache_control", "is_error", "effort", "summary", "include_usage"];
    if place.is_empty() { at_top.contains(&name) } else { inside.contains(&name) }
}

#[tokio::test]
async fn extra_or_missing_request_key_is_breach() {
    for kind in ALL {
        let server = ModelServer::start().await;
        let known = ModelFacts { thinking: Some(true), ..ModelFacts::default() };
        let models = models_with(provider(kind, &server), |settings| {
            settings.models.insert("test/scripted".into(), known);
        });
        let read = Step::calls([("Read", json!({"file_path": "a"})), ("Read", json!({"file_path": "b"}))]);
        server.push(read.say("I look.").thinking("Let me see."));
        server.push(Step::text("Done."));
        let asked = ModelRequest { thinking: Some(Thinking::High), ..hello() };
        let first = call(&models, &asked).await.1.expect("an answer");
        call(&models, &continue_request(asked, &first)).await.1.expect("an answer");
        server.assert_no_breach();
        let request = server.requests().pop().expect("a request");
        assert_eq!(breach(&request), None, "{kind:?}");

        let mut places = Vec::new();
        objects(&request.body, "", kind == ProviderKind::OpenAiResponses, &mut places);
        assert!(places.len() > 8, "{kind:?}: {places:?}");
        let mut accepted = Vec::new();
        for place in &places {
            let mut extra = request.clone();
            let fields = extra.body.pointer_mut(place).and_then(Value::as_object_mut).expect("an object");
            let names: Vec<String> = fields.keys().cloned().collect();
            fields.insert("extra".into(), json!(1));
            if breach(&extra).is_none() {
                accepted.push(format!("{place}/extra"));
            }
            for name in names {
                let mut lacking = request.clone();
                let fields =
                    lacking.body.pointer_mut(place).and_then(Value::as_object_mut).expect("an object");
                fields.remove(&name);
                if breach(&lacking).is_none() && !is_optional(kind, place, &name) {
                    accepted.push(format!("{place} without {name}"));
                }
            }
        }
        assert_eq!(accepted, Vec::<String>::new(), "{kind:?}: the server accepts these");
    }
}

#[tokio::test]
async fn assistant_message_without_required_fields_is_breach() {
    let server = ModelServer::start().await;
    server.push(Step::text("Hi."));
    server.push(Step::text("Bye."));
    let models = models(ProviderKind::OpenAiResponses, &server);
    let first = call(&models, &hello()).await.1.expect("an answer");
    call(&models, &continue_request(hello(), &first)).await.1.expect("an answer");
    server.assert_no_breach();
    let request = server.requests().pop().expect("a request");
    assert_eq!(request.body["input"][1], json!({"role": "assistant", "content": "Hi."}));
    let part = json!({"type": "output_text", "text": "Hi."});
    let full = json!({"type": "output_text", "text": "Hi.", "annotations": []});
    for (answer, is_breach) in [
        (json!({"type": "message", "role": "assistant", "content": [part]}), true),
        (json!({"type": "message", "role": "assistant", "content": [full]}), true),
        (
            json!({"type": "message", "role": "assistant", "id": "m", "status": "completed", "content": [part]}),
            true,
        ),
        (
            json!({"type": "message", "role": "assistant", "id": "m", "status": "completed", "content": [full]}),
            false,
        ),
    ] {
        let mut other = request.clone();
        other.body["input"][1] = answer.clone();
        assert_eq!(breach(&other).is_some(), is_breach, "{answer}: {:?}", breach(&other));
    }
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,"});
    let mut other = request.clone();
    other.body["input"][0]["content"] = json!([image]);
    assert!(breach(&other).is_some_and(|told| told.contains("detail")), "{:?}", breach(&other));
}

#[tokio::test]
async fn out_of_range_request_parameter_is_breach() {
    let server = ModelServer::start().await;
    server.push(Step::text("hi"));
    let anthropic = models(ProviderKind::Anthropic, &server);
    call(&anthropic, &hello()).await.1.expect("an answer");
    let request = server.requests().pop().expect("a request");
    for (name, value, words) in [
        ("thinking", json!({"type": "enabled", "budget_tokens": 1_023}), "at least 1024"),
        ("thinking", json!({"type": "enabled", "budget_tokens": 8_192}), "must be greater"),
        ("thinking", json!({"type": "adaptive", "budget_tokens": 2_000}), "unknown key"),
        ("thinking", json!({"type": "adaptive", "display": "some"}), "unknown some"),
        ("thinking", json!({"type": "deep"}), "unknown deep"),
        ("output_config", json!({"effort": "huge"}), "unknown huge"),
        ("max_tokens", json!(0), "must be positive"),
        ("messages", json!([]), "must not be empty"),
        ("temperature", json!(1.1), "from 0 to 1"),
        ("temperature", json!("hot"), "from 0 to 1"),
        ("top_p", json!(-0.1), "from 0 to 1"),
        ("tools", json!([{"name": "T", "input_schema": {"type": "string"}}]), "must be of an object"),
    ] {
        let mut wrong = request.clone();
        wrong.body[name] = value.clone();
        let told = breach(&wrong).unwrap_or_else(|| panic!("the server accepts {name} = {value}"));
        assert!(told.contains(words), "{name} = {value}: {told}");
    }
    let mut both = request.clone();
    (both.body["temperature"], both.body["top_p"]) = (json!(0.5), json!(0.5));
    assert!(breach(&both).is_some_and(|told| told.contains("exclude each other")));
    let mut cold = request.clone();
    cold.body["thinking"] = json!({"type": "enabled", "budget_tokens": 2_000});
    assert_eq!(breach(&cold), None);
    cold.body["temperature"] = json!(0.5);
    assert!(breach(&cold).is_some_and(|told| told.contains("temperature must be 1")));
}
