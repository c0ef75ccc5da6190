//! From a raw call to typed parameters, and from a fault to the wire.

use std::sync::Arc;
use std::time::Duration;

use jsonrpsee::types::{ErrorObjectOwned, Params};
use jsonrpsee::{Extensions, RpcModule};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::parse_params::parse;
use crate::api::params::ClientRole;
use crate::api::{Code, Fault, methods};
use crate::rpc::context::RpcContext;
use crate::transport::Connection;
use crate::types::event::Origin;

/// A call that takes longer than this lets the next one of its connection pass: a hanging session
/// must not hold up the others.
const ORDER_WITHIN: Duration = Duration::from_secs(1);

/// Who calls.
pub(super) struct Caller {
    pub connection: Connection,
}

impl Caller {
    /// What it is (R4): whoever a tool has started is a tool, whatever it says of itself.
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

/// Registers one method of the table.
pub(super) fn serve<P, R, F, Fut>(
    module: &mut RpcModule<RpcContext>,
    name: &'static str,
    handler: F,
) -> Result<(), String>
where
    P: DeserializeOwned + Send + 'static,
    R: Serialize + Clone + Send + 'static,
    F: Fn(Arc<RpcContext>, Caller, P) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<R, Fault>> + Send,
{
    let method = methods::find(name).ok_or_else(|| format!("{name} is not in the table of methods"))?;
    module
        .register_async_method(name, move |params: Params<'static>, ctx, extensions: Extensions| {
            let handler = handler.clone();
            async move {
                let Some(connection) = extensions.get::<Connection>().cloned() else {
                    return Err(wire(Fault::new(Code::Internal, "the call has no connection")));
                };
                let caller = Caller { connection };
                if !method.is_for(caller.role()) {
                    return Err(wire(refuse(&ctx, &caller, method).await));
                }
                let params = parse::<P>(method, params.as_str()).map_err(wire)?;
                // Lines that a client wrote without waiting for replies take effect in their order.
                let _ = tokio::time::timeout(ORDER_WITHIN, caller.connection.turn()).await;
                if method.waits {
                    caller.connection.let_pass();
                }
                handler(ctx, caller, params).await.map_err(wire)
            }
        })
        .map(|_| ())
        .map_err(|error| error.to_string())
}

/// Says no to a caller whose role does not reach, and writes down that it tried.
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

/// A fault as jsonrpsee carries it.
fn wire(fault: Fault) -> ErrorObjectOwned {
    if fault.code == Code::Internal {
        tracing::error!(message = %fault.message, "a call failed on our side");
    }
    ErrorObjectOwned::owned(fault.code.number(), fault.message.clone(), Some(fault.data()))
}
