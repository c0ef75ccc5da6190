//! `agentctl rpc METHOD [PARAMS]`: calls any method.

use serde_json::{Value, json};

use crate::connection::client::CallError;
use crate::connection::connector::Connector;
use crate::connection::stdin;
use crate::failure::{Failure, code};
use crate::terminal::out::{OutputStreams, harmless_json};

pub(crate) async fn rpc(
    reach: &Connector,
    method: &str,
    params: Option<String>,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let text = match params.as_deref() {
        Some("-") => stdin::read_all()?,
        Some(text) => text.to_string(),
        None => "{}".into(),
    };
    let params: Value = serde_json::from_str(&text)
        .map_err(|e| Failure::usage(format!("the parameters are not JSON: {e}")))?;
    let client = reach.connect_or_start().await?;
    match client.call_named(method, &params).await {
        Ok(result) => Ok(out.json(&result)?),
        Err(CallError::Fault(fault)) => {
            let error = json!({"code": fault.code, "message": fault.message, "data": fault.data});
            let text = serde_json::to_string_pretty(&error).map_err(std::io::Error::other)?;
            for line in harmless_json(&text).lines() {
                out.print_error_line(&crate::terminal::style::StyledLine::new(
                    crate::terminal::style::Tone::Plain,
                    line,
                ))?;
            }
            // Elsewhere an unknown method means a daemon of another version; here it was typed.
            let is_typed_wrong = fault.kind() == "method_not_found";
            let code = if is_typed_wrong { code::USAGE } else { Failure::from(CallError::Fault(fault)).code };
            Err(Failure::silent(code))
        }
        Err(other) => Err(other.into()),
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::rpc::*;
    use crate::fake_daemon::FakeDaemon;
    use crate::terminal::out::testing::captured_output;

    #[tokio::test]
    async fn rpc_results_go_to_stdout_and_errors_to_stderr() {
        let fake = FakeDaemon::start(|_, method, params| match method {
            "echo" => Ok(params.clone()),
            _ => Err(json!({"code": -32601, "message": "no", "data": {"kind": "method_not_found"}})),
        });
        let (mut out, text, side) = captured_output();
        rpc(&fake.connector(), "echo", Some(r#"{"a":"\u202e"}"#.into()), &mut out).await.expect("a result");
        assert_eq!(text.text(), "{\n  \"a\": \"\\u202e\"\n}\n");
        assert_eq!(rpc(&fake.connector(), "none", None, &mut out).await.expect_err("a fault").code, 64);
        let error: Value = serde_json::from_str(&side.text()).expect("json");
        assert_eq!(error, json!({"code": -32601, "message": "no", "data": {"kind": "method_not_found"}}));
        assert_eq!(
            rpc(&fake.connector(), "echo", Some("{".into()), &mut out).await.expect_err("usage").code,
            64
        );
    }
}
