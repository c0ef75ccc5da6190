use tokio::sync::mpsc;

use super::*;
use crate::backend::{first_byte_timeout, is_loopback};
use crate::settings::Provider;
use types::config_values::ConfigDuration;

fn build(provider: Provider) -> Result<Models, ModelError> {
    Models::new(Settings { providers: [("x".into(), provider)].into(), ..Settings::default() })
}

fn check(change: impl FnOnce(&mut Provider), word: Option<&str>) {
    let mut provider = Provider::new(ProviderKind::OpenAiChat);
    change(&mut provider);
    let got = build(provider).err();
    assert_eq!(got.as_ref().map(ModelError::word), word, "{got:?}");
    if let Some(error) = got {
        assert!(error.to_string().contains("[providers.x]"), "{error}");
    }
}

#[test]
fn invalid_provider_settings_are_refused_with_code() {
    check(|_| {}, None);
    check(|p| p.base_url = Some("127.0.0.1:11434".into()), Some("bad_base_url"));
    check(|p| p.base_url = Some("ftp://host".into()), Some("bad_base_url"));
    check(|p| p.base_url = Some("http://".into()), Some("bad_base_url"));
    check(|p| drop(p.headers.insert("a b".into(), "x".into())), Some("bad_header"));
    check(|p| drop(p.headers.insert("a".into(), "x\ny".into())), Some("bad_header"));
    check(|p| p.cassette = Some("f".into()), Some("misplaced_cassette"));
    check(|p| p.kind = ProviderKind::Replay, Some("no_cassette"));
    check(|p| p.kind = ProviderKind::OpenAiResponses, None);
    check(|p| p.store = true, Some("misplaced_store"));
    check(|p| p.base_url = Some("http://h/v1?a=b".into()), None);
    check(|p| p.base_url = Some("http://h/v1#b".into()), Some("bad_base_url"));
    check(|p| p.max_tokens_field = Some(MaxTokensField::MaxTokens), None);
    check(|p| p.first_byte_timeout = Some(ConfigDuration::from_secs(0)), Some("bad_first_byte_timeout"));
    let change = |p: &mut Provider| {
        *p = Provider {
            max_tokens_field: Some(MaxTokensField::MaxTokens),
            ..Provider::new(ProviderKind::Anthropic)
        };
    };
    check(change, Some("misplaced_max_tokens_field"));
    check(|p| p.api_version = Some("2026-10-21".into()), Some("bad_api_version"));
    for (version, word) in [
        ("2026-10-21", None),
        ("newest", Some("bad_api_version")),
        ("2026-10-21\n", Some("bad_api_version")),
        ("", Some("bad_api_version")),
    ] {
        let change = |p: &mut Provider| {
            *p = Provider { api_version: Some(version.into()), ..Provider::new(ProviderKind::Anthropic) };
        };
        check(change, word);
    }
}

#[tokio::test]
async fn unconfigured_provider_is_refused_with_advice() {
    let models = build(Provider::new(ProviderKind::OpenAiChat)).unwrap();
    let (out, _in) = mpsc::channel(1);
    for (model, expected_text) in [("y/m", "there is: x")] {
        let request = ModelRequest { ..ModelRequest::new(model.parse().unwrap()) };
        let fault = models.call(&request, &out).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Unconfigured);
        assert!(fault.message.contains(expected_text), "{}", fault.message);
    }
}

#[test]
fn query_of_address_and_settings_is_kept() {
    for (kind, base, path) in [
        (
            ProviderKind::OpenAiChat,
            "https://x.openai.azure.com/openai/deployments/d/?api-version=1",
            "/openai/deployments/d/chat/completions",
        ),
        (ProviderKind::OpenAiResponses, "https://h/v1?api-version=1", "/v1/responses"),
        (ProviderKind::Anthropic, "https://h/v1/?api-version=1", "/v1/messages"),
    ] {
        let provider = Provider {
            base_url: Some(base.into()),
            query: [("tenant".into(), "a b&c".into())].into(),
            ..Provider::new(kind)
        };
        let Backend::Http(address) = Backend::new("x", provider).expect("a backend") else {
            panic!("no address")
        };
        assert_eq!((address.url.path(), address.url.query()), (path, Some("api-version=1&tenant=a+b%26c")));
        let list = address.api.list_url(&address.url);
        assert!(list.path().ends_with("/models") && list.query() == address.url.query(), "{list}");
        assert_eq!(address.is_azure, base.contains("azure"));
    }
}

#[test]
fn first_byte_timeout_depends_on_address() {
    for (host, minutes) in [
        ("localhost", 10),
        ("127.0.0.1", 10),
        ("[::1]", 10),
        ("10.1.2.3", 10),
        ("172.20.0.1", 10),
        ("192.168.1.5", 10),
        ("169.254.1.1", 10),
        ("100.100.1.1", 10),
        ("[fd00::1]", 10),
        ("[fe80::1]", 10),
        ("[::ffff:10.0.0.1]", 10),
        ("ollama", 10),
        ("gpu.local", 10),
        ("gpu.lan", 10),
        ("model.internal", 10),
        ("api.openai.com", 5),
        ("8.8.8.8", 5),
        ("172.32.0.1", 5),
        ("100.128.0.1", 5),
        ("[2001:4860::1]", 5),
    ] {
        assert_eq!(first_byte_timeout(host), Duration::from_secs(minutes * 60), "{host}");
    }
}

#[test]
fn loopback_hosts_are_recognised_by_name_and_address() {
    for (host, expected) in
        [("localhost", true), ("127.0.0.2", true), ("[::1]", true), ("10.0.0.1", false), ("a.b", false)]
    {
        assert_eq!(is_loopback(host), expected, "{host}");
    }
}
