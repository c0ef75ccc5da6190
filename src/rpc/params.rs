//! Converts a raw call to typed parameters, and a fault to its wire format.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jsonrpsee::types::{ErrorObjectOwned, Params};
use jsonrpsee::{Extensions, RpcModule};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::parse_params::{NamedParams, parse, to_typed};
use super::{camel_case, numbers};
use crate::context::RpcContext;
use api::params::ClientRole;
use api::{ApiMethod, Code, Fault, methods};
use transport::Connection;
use types::event::Origin;

/// Time after which a running call lets the next call of its connection start. Otherwise a hanging
/// session would block all later calls of the connection.
const ORDER_TIMEOUT: Duration = Duration::from_secs(1);

/// The connection that sent the call.
pub(super) struct Caller {
    pub connection: Connection,
}

impl Caller {
    /// The role of the client. A process that a tool started always has the role tool, whatever its
    /// `daemon.hello` says.
    pub fn role(&self) -> ClientRole {
        if self.connection.tool().is_some() {
            ClientRole::Tool
        } else if self.connection.is_read_only() {
            ClientRole::Observer
        } else {
            ClientRole::Controller
        }
    }

    pub fn origin(&self) -> Origin {
        let exe = self.connection.exe().map(|exe| exe.to_string_lossy().into_owned());
        Origin { client: self.connection.name(), uid: self.connection.uid(), pid: self.connection.pid(), exe }
    }
}

/// A call with parsed parameters that waits for its place in the order of calls.
type ParsedCall = BoxFuture<'static, Result<Box<RawValue>, Fault>>;

/// A method without its types. This shared code is compiled once, and not for each method.
type ErasedHandler =
    Arc<dyn Fn(Arc<RpcContext>, Caller, NamedParams) -> Result<ParsedCall, Fault> + Send + Sync>;

/// Registers one method of the API.
pub(super) fn serve<M, F, Fut>(module: &mut RpcModule<RpcContext>, row: M, handler: F) -> Result<(), String>
where
    M: ApiMethod,
    F: Fn(Arc<RpcContext>, Caller, M::Params) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<M::Reply, Fault>> + Send,
{
    serve_as::<M, M::Reply, F, Fut>(module, row, handler)
}

/// Registers a method whose handler has the reply in another type with the same serialised form.
pub(super) fn serve_as<M, R, F, Fut>(
    module: &mut RpcModule<RpcContext>,
    _: M,
    handler: F,
) -> Result<(), String>
where
    M: ApiMethod,
    R: Serialize + 'static,
    F: Fn(Arc<RpcContext>, Caller, M::Params) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<R, Fault>> + Send,
{
    let method = methods::find(M::METHOD.name).ok_or("a method is not in the table")?;
    let erased = move |ctx, caller, named| -> Result<ParsedCall, Fault> {
        let params = to_typed::<M::Params>(method, named)?;
        let handler = handler.clone();
        Ok(Box::pin(async move {
            let reply = handler(ctx, caller, params).await?;
            to_raw_value(&reply)
                .map_err(|error| Fault::new(Code::Internal, format!("could not write the reply: {error}")))
        }))
    };
    register(module, method, Arc::new(erased))
}

fn register(
    module: &mut RpcModule<RpcContext>,
    method: &'static methods::Method,
    handler: ErasedHandler,
) -> Result<(), String> {
    let call = move |params: Params<'static>, ctx: Arc<RpcContext>, extensions: Extensions| {
        let handler = Arc::clone(&handler);
        async move {
            let reply = async {
                let (caller, named) = admit_call(&ctx, &extensions, method, params.as_str()).await?;
                let connection = caller.connection.clone();
                let ready = handler(ctx, caller, named)?;
                wait_turn(&connection, method).await;
                ready.await
            };
            reply.await.map_err(|fault| to_wire_error(method, fault))
        }
    };
    module.register_async_method(method.name, call).map(|_| ()).map_err(|error| error.to_string())
}

/// Checks that the caller may call the method, and gives the parameters their standard names and ids.
async fn admit_call(
    ctx: &RpcContext,
    extensions: &Extensions,
    method: &methods::Method,
    raw: Option<&str>,
) -> Result<(Caller, NamedParams), Fault> {
    let Some(connection) = extensions.get::<Connection>().cloned() else {
        return Err(Fault::new(Code::Internal, "the call has no connection"));
    };
    let caller = Caller { connection };
    if !method.is_for(caller.role()) {
        return Err(refuse(ctx, &caller, method).await);
    }
    let mut named = parse(method, raw)?;
    numbers::resolve(ctx, &mut named).await?;
    Ok((caller, camel_case::rename(method, named)?))
}

/// Waits for the earlier calls of the connection. Calls that a client sends without waiting for replies
/// take effect in order.
async fn wait_turn(connection: &Connection, method: &methods::Method) {
    let _ = tokio::time::timeout(ORDER_TIMEOUT, connection.wait_turn()).await;
    if method.traits.waits {
        connection.let_pass();
    }
}

/// Refuses a call that the client's role does not permit, and records the attempt.
async fn refuse(ctx: &RpcContext, caller: &Caller, method: &methods::Method) -> Fault {
    let (role, why) = match caller.connection.tool() {
        Some(why) => {
            ("tool", format!("{} is not for processes of a tool, and this client is one: {why}", method.name))
        }
        None => ("observer", format!("{} changes something, and this client is an observer", method.name)),
    };
    ctx.refusals.note(&ctx.registry, caller.origin(), method.name, &why).await;
    Fault::new(Code::NotAuthorised, why).with("role", role)
}

/// Converts a fault of a call to jsonrpsee's error object.
fn to_wire_error(method: &methods::Method, fault: Fault) -> ErrorObjectOwned {
    if fault.code == Code::Internal {
        tracing::error!(method = method.name, "the daemon failed in a call: {}", fault.message);
    }
    ErrorObjectOwned::owned(fault.code.number(), fault.message.clone(), Some(fault.data()))
}

#[cfg(test)]
mod tests {
    use std::fmt::{Debug, Write as _};
    use std::sync::Mutex;

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;
    use base::sync::lock;

    /// Records the fields of each log line.
    #[derive(Clone, Default)]
    struct LogRecorder(Arc<Mutex<Vec<String>>>);

    struct LineFields(String);

    impl Visit for LineFields {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            let _ = write!(self.0, "{field}={value:?} ");
        }
    }

    impl Subscriber for LogRecorder {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            let mut fields = LineFields(String::new());
            event.record(&mut fields);
            lock(&self.0).push(fields.0);
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn internal_fault_is_logged_with_name_of_method() {
        let (recorder, names) = (LogRecorder::default(), ["session.get", "permission.list", "daemon.status"]);
        tracing::subscriber::with_default(recorder.clone(), || {
            for name in names {
                let method = methods::find(name).expect("a method");
                to_wire_error(method, Fault::new(Code::Internal, "the disk is gone"));
                // The client can correct these, so the log does not contain them.
                to_wire_error(method, Fault::new(Code::NotFound, "no such session"));
            }
        });
        let lines = lock(&recorder.0).clone();
        assert_eq!(lines.len(), names.len(), "{lines:?}");
        for (line, name) in lines.iter().zip(names) {
            assert!(
                line.contains(&format!("method=\"{name}\"")) && line.contains("the disk is gone"),
                "{line}"
            );
            assert!(!line.contains("tool call"), "{line}");
        }
    }
}
