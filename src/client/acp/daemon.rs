//! Calls to the daemon that survive its restart. Calls that change something carry an idempotency key, so that a
//! repeated call takes effect once.

use std::sync::Mutex;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use super::options::Choices;
use super::wire::AcpError;
use crate::connection::client::{CallError, Client};
use crate::connection::connector::Connector;
use api::params::{ConfigParams, ConfigReply, ModelListParams};
use api::{ApiMethod, Code, methods};
use base::sync::lock;

/// How long a call waits for a daemon that restarts.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// The daemon, across its restarts.
pub(super) struct Daemon {
    reach: Connector,
    client: Mutex<Client>,
}

impl Daemon {
    pub(super) fn new(reach: Connector, client: Client) -> Self {
        Self { reach, client: Mutex::new(client) }
    }

    pub(super) fn reach(&self) -> &Connector {
        &self.reach
    }

    /// The newest connection for calls.
    pub(super) fn client(&self) -> Client {
        lock(&self.client).clone()
    }

    /// Uses another connection from now on.
    pub(super) fn replace(&self, client: Client) {
        *lock(&self.client) = client;
    }

    pub(super) async fn call<M: ApiMethod>(&self, params: &M::Params) -> Result<M::Reply, AcpError> {
        self.call_as::<M, M::Reply>(params).await
    }

    /// Calls a method with parameters of another type that has the same serialised form.
    pub(super) async fn call_as<M: ApiMethod, Reply: DeserializeOwned>(
        &self,
        params: &impl Serialize,
    ) -> Result<Reply, AcpError> {
        let deadline = Instant::now() + self.reach.reconnect_timeout(RECONNECT_TIMEOUT);
        let mut wait = Duration::from_millis(50);
        loop {
            let error = match self.client().call_as::<M, Reply>(params).await {
                Err(error) if is_lost(&error) => error,
                outcome => return outcome.map_err(AcpError::from),
            };
            if Instant::now() > deadline {
                return Err(error.into());
            }
            sleep(wait).await;
            wait = (wait * 2).min(Duration::from_secs(1));
            match self.reach.connect_again().await {
                Ok(client) => self.replace(client),
                Err(failure) if !failure.may_pass() || Instant::now() > deadline => {
                    return Err(failure.into());
                }
                Err(_) => {}
            }
        }
    }

    /// The values that the settings of sessions may have.
    pub(super) async fn choices(&self) -> Result<Choices, AcpError> {
        let params = ModelListParams { limit: Some(500), cursor: None };
        let models = self.client().all_rows::<methods::model::List>(params).await?;
        let config: ConfigReply = self.call::<methods::daemon::Config>(&ConfigParams::default()).await?;
        let is_set = |key: &str| config.values.iter().any(|value| value.key == key && value.value == true);
        let is_root = nix::unistd::geteuid().is_root();
        let allows_bypass =
            is_set("permissions.allow_bypass") && (!is_root || is_set("permissions.allow_bypass_as_root"));
        Ok(Choices { models: models.into(), allows_bypass })
    }
}

/// Whether the call may not have reached the daemon, or may have been lost with it.
fn is_lost(error: &CallError) -> bool {
    match error {
        CallError::Fault(fault) => fault.code == Code::ShuttingDown.number(),
        other => other.is_lost(),
    }
}
