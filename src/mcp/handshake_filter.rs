//! Removes messages that the library takes for the answer to the handshake although they are none: replies to other
//! requests. It also lets a slow server of the newest revision finish the handshake after the library gave up waiting.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, Implementation, InitializeResult, JsonRpcError,
    JsonRpcResponse, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};

use crate::server_log::ServerLog;

/// How long an error that names no request waits for the reply that the server may still send.
const UNNAMED_ERROR_PAUSE: Duration = Duration::from_millis(500);

/// A request of the handshake that waits for its reply.
#[derive(Clone)]
enum Awaited {
    Discover(RequestId),
    Initialize {
        id: RequestId,
        /// The request of the newest revision that was not answered in time.
        discover: Option<RequestId>,
    },
}

/// A transport whose handshake ignores stray replies.
pub(super) struct HandshakeFilter<T> {
    inner: T,
    log: Arc<ServerLog>,
    /// `None` after the handshake.
    awaited: Option<Awaited>,
    /// Whether the server has a revision without `notifications/initialized`.
    is_stateless: bool,
    /// An error that names no request. It is the answer of an older server if no other one follows.
    unnamed: Option<ServerJsonRpcMessage>,
}

impl<T> HandshakeFilter<T> {
    pub fn new(inner: T, log: Arc<ServerLog>) -> Self {
        Self { inner, log, awaited: None, is_stateless: false, unnamed: None }
    }

    fn note_request(&mut self, message: &ClientJsonRpcMessage) {
        let ClientJsonRpcMessage::Request(request) = message else { return };
        let id = request.id.clone();
        self.awaited = match (&request.request, self.awaited.take()) {
            (ClientRequest::DiscoverRequest(_), _) => Some(Awaited::Discover(id)),
            (ClientRequest::InitializeRequest(_), Some(Awaited::Discover(discover))) => {
                Some(Awaited::Initialize { id, discover: Some(discover) })
            }
            (ClientRequest::InitializeRequest(_), _) => Some(Awaited::Initialize { id, discover: None }),
            (_, awaited) => awaited,
        };
    }

    /// The message for the library; `None` if it is ignored.
    fn filter(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        let Some(awaited) = self.awaited.clone() else { return Some(message) };
        let (id, what) = match &message {
            ServerJsonRpcMessage::Response(JsonRpcResponse { id, .. }) => (Some(id), "a reply"),
            ServerJsonRpcMessage::Error(JsonRpcError { id, .. }) => (id.as_ref(), "an error"),
            _ => return Some(message),
        };
        let is_reply_to = |wanted: &RequestId| id.is_some_and(|id| id.to_string() == wanted.to_string());
        match &awaited {
            Awaited::Discover(wanted) if is_reply_to(wanted) => {
                self.awaited = None;
                return Some(message);
            }
            // Older servers may be unable to read the request, and then do not name it.
            Awaited::Discover(_) if id.is_none() => self.unnamed = Some(message.clone()),
            Awaited::Initialize { id: wanted, .. } if is_reply_to(wanted) => {
                self.awaited = None;
                return Some(completed_reply(message));
            }
            Awaited::Initialize { id: wanted, discover: Some(discover) } if is_reply_to(discover) => {
                if let Some(result) = late_discovery(&message) {
                    let reply = ServerResult::InitializeResult(result);
                    let reply = ServerJsonRpcMessage::response(reply, wanted.clone());
                    (self.awaited, self.is_stateless) = (None, true);
                    return Some(reply);
                }
            }
            _ => {}
        }
        let id = id.map_or_else(|| "no request".to_owned(), |id| format!("the request {id}"));
        self.log.note(&format!("ignored during the handshake: {what} to {id}"));
        None
    }
}

/// A reply to `initialize` with the fields that some servers leave out: a name, a version, or abilities.
fn completed_reply(message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    let ServerJsonRpcMessage::Response(JsonRpcResponse {
        result: ServerResult::CustomResult(read), id, ..
    }) = &message
    else {
        return message;
    };
    let Some(mut fields) = read.0.as_object().cloned() else { return message };
    if !fields.get("capabilities").is_some_and(Value::is_object) {
        // Its tools are asked for in any case; the server may still refuse.
        fields.insert("capabilities".into(), json!({"tools": {}}));
    }
    let text = |name: &str| fields.get("serverInfo")?.get(name)?.as_str().map(str::to_owned);
    let server = json!({"name": text("name").unwrap_or_else(|| "unnamed".into()), "version": text("version").unwrap_or_default()});
    fields.insert("serverInfo".into(), server);
    if fields.get("instructions").is_some_and(|text| !text.is_string()) {
        fields.remove("instructions");
    }
    match serde_json::from_value::<InitializeResult>(fields.into()) {
        Ok(result) => ServerJsonRpcMessage::response(ServerResult::InitializeResult(result), id.clone()),
        Err(_) => message,
    }
}

/// The reply of a server of the newest revision, as the library expects it after `initialize`.
fn late_discovery(message: &ServerJsonRpcMessage) -> Option<InitializeResult> {
    let ServerJsonRpcMessage::Response(JsonRpcResponse {
        result: ServerResult::DiscoverResult(found), ..
    }) = message
    else {
        return None;
    };
    found.supported_versions.contains(&ProtocolVersion::LATEST).then(|| {
        let server = found.server_info().unwrap_or_else(|| Implementation::new("unnamed", ""));
        let result = InitializeResult::new(found.capabilities.clone())
            .with_protocol_version(ProtocolVersion::LATEST)
            .with_server_info(server);
        match &found.instructions {
            Some(text) => result.with_instructions(text.clone()),
            None => result,
        }
    })
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for HandshakeFilter<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.note_request(&item);
        let is_initialized = matches!(&item, ClientJsonRpcMessage::Notification(notification)
            if matches!(notification.notification, ClientNotification::InitializedNotification(_)));
        let sent = (!(self.is_stateless && is_initialized)).then(|| self.inner.send(item));
        async move {
            match sent {
                Some(sent) => sent.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = match self.unnamed.is_some() {
                false => self.inner.receive().await?,
                true => match tokio::time::timeout(UNNAMED_ERROR_PAUSE, self.inner.receive()).await {
                    Ok(message) => message?,
                    // The library asks as older servers understand it.
                    Err(_) => return self.unnamed.take(),
                },
            };
            if let Some(message) = self.filter(message) {
                self.unnamed = None;
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    fn message(value: Value) -> ServerJsonRpcMessage {
        serde_json::from_value(value).expect("a message")
    }

    fn filter(requests: &[&str]) -> HandshakeFilter<()> {
        let mut filter = HandshakeFilter::new((), Arc::default());
        for (id, method) in requests.iter().enumerate() {
            let client = json!({"name": "c", "version": "1"});
            let params = match *method {
                "initialize" => {
                    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
                }
                _ => json!({}),
            };
            let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            filter.note_request(&serde_json::from_value(request).expect("a request"));
        }
        filter
    }

    #[test]
    fn stray_reply_during_handshake_is_ignored_with_log_line() {
        let error = json!({"code": -32600, "message": "m"});
        let initialized = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}});
        let reply = |id: Value| json!({"jsonrpc": "2.0", "id": id, "result": initialized});
        for (stray, named) in [
            (json!({"jsonrpc": "2.0", "id": 99, "result": {}}), "99"),
            (json!({"jsonrpc": "2.0", "id": "x", "result": initialized}), "x"),
            (json!({"jsonrpc": "2.0", "id": 99, "error": error}), "99"),
            (json!({"jsonrpc": "2.0", "id": null, "error": error}), "no request"),
            (json!({"jsonrpc": "2.0", "error": error}), "no request"),
            (json!({"jsonrpc": "2.0", "id": 0, "error": error}), "0"),
        ] {
            let mut filter = filter(&["server/discover", "initialize"]);
            assert!(filter.filter(message(stray.clone())).is_none(), "{stray}");
            assert!(filter.log.lines()[0].contains(named), "{stray}: {:?}", filter.log.lines());
            assert!(filter.filter(message(reply(json!(1)))).is_some(), "the awaited reply");
            assert!(
                filter.filter(message(stray)).is_some(),
                "the library judges replies after the handshake"
            );
        }
        let mut quoted = filter(&["initialize"]);
        assert!(quoted.filter(message(reply(json!("0")))).is_some(), "some servers write ids as texts");
        let mut asking = filter(&["server/discover"]);
        let notification = message(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
        assert!(asking.filter(notification).is_some());
    }

    #[test]
    fn reply_with_missing_fields_completes_handshake() {
        for result in [
            json!({"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}}),
            json!({"protocolVersion": "2024-11-05", "capabilities": null, "serverInfo": {"name": "s"}}),
            json!({"protocolVersion": "2025-06-18", "serverInfo": "s", "instructions": null}),
            json!({"protocolVersion": "2025-06-18", "capabilities": [], "serverInfo": null, "instructions": 3}),
        ] {
            let mut filter = filter(&["initialize"]);
            let reply = filter.filter(message(json!({"jsonrpc": "2.0", "id": 0, "result": result})));
            let Some(ServerJsonRpcMessage::Response(reply)) = reply else { panic!("{result}: {reply:?}") };
            let ServerResult::InitializeResult(read) = reply.result else {
                panic!("{result}: {:?}", reply.result)
            };
            assert!(read.capabilities.tools.is_some(), "{result}");
            assert!(["s", "unnamed"].contains(&read.server_info.name.as_str()), "{result}");
        }
    }

    /// A transport that receives these messages and then nothing.
    struct Received(VecDeque<ServerJsonRpcMessage>);

    impl Transport<RoleClient> for Received {
        type Error = std::io::Error;

        async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
            match self.0.pop_front() {
                Some(message) => Some(message),
                None => std::future::pending().await,
            }
        }

        fn send(
            &mut self,
            _: TxJsonRpcMessage<RoleClient>,
        ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
            std::future::ready(Ok(()))
        }

        async fn close(&mut self) -> Result<(), Self::Error> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn error_without_request_is_answer_only_if_no_other_follows() {
        let unnamed = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "m"}});
        let reply = json!({"jsonrpc": "2.0", "id": 0, "result": {}});
        for (messages, is_error) in [(vec![unnamed.clone()], true), (vec![unnamed, reply], false)] {
            let received = Received(messages.into_iter().map(message).collect());
            let mut filter = HandshakeFilter::new(received, Arc::default());
            let discover = json!({"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": {}});
            filter.note_request(&serde_json::from_value(discover).expect("a request"));
            let first = filter.receive().await.expect("a message");
            assert_eq!(matches!(first, ServerJsonRpcMessage::Error(_)), is_error, "{first:?}");
        }
    }

    #[test]
    fn late_reply_of_stateless_server_completes_handshake() {
        let found = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "instructions": "i", "ttlMs": 0, "cacheScope": "private"});
        let mut filter = filter(&["server/discover", "initialize"]);
        let reply =
            filter.filter(message(json!({"jsonrpc": "2.0", "id": 0, "result": found}))).expect("a reply");
        let ServerJsonRpcMessage::Response(reply) = reply else { panic!("{reply:?}") };
        let ServerResult::InitializeResult(result) = reply.result else { panic!("{:?}", reply.result) };
        assert_eq!((reply.id, result.protocol_version), (RequestId::Number(1), ProtocolVersion::LATEST));
        assert_eq!(result.instructions.as_deref(), Some("i"));
        assert!(filter.is_stateless);
    }
}
