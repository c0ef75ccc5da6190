//! Answers that arrive slowly, stop, or are cancelled.

use super::*;

#[tokio::test]
async fn slowly_streamed_reply_is_complete() {
    for kind in ALL {
        let server = ModelServer::start().await;
        server.push(Step::pieces(["Grü", "ße ", "🦀"]).drip(1));
        let (deltas, reply) = call(&models(kind, &server), &hello()).await;
        assert_eq!(reply.unwrap().content, [ReplyBlock::Text("Grüße 🦀".into())]);
        assert_eq!(text(&deltas), "Grüße 🦀");
    }
}

#[tokio::test]
async fn idle_timeout_ends_call_before_and_during_reply() {
    for kind in ALL {
        let server = ModelServer::start().await;
        let never = Gate::new();
        server.push(Step::text("too late").hold(&never));
        server.push(Step::text("one two").hold_after(1, &never));
        let first_byte_timeout = Some(ConfigDuration::from_millis(700));
        let provider = Provider { first_byte_timeout, ..provider(kind, &server) };
        let models = models_with(provider, |settings| {
            settings.retry.idle_timeout = ConfigDuration::from_millis(600);
        });
        let first = fault(&models, &hello()).await;
        assert_eq!(first.kind, FaultKind::Idle);
        assert!(first.message.contains("first_byte_timeout of [providers.test]"), "{first:?}");
        let (deltas, outcome) = call(&models, &hello()).await;
        assert_eq!(outcome.unwrap_err().kind, FaultKind::Idle);
        assert_eq!(text(&deltas), "one ");
    }
}

#[tokio::test]
async fn idle_timeout_does_not_hold_before_first_byte() {
    for kind in ALL {
        let server = ModelServer::start().await;
        let late = Gate::new();
        server.push(Step::text("one two").hold(&late));
        let models = models_with(provider(kind, &server), |settings| {
            settings.retry.idle_timeout = ConfigDuration::from_millis(100);
            settings.retry.content_timeout = ConfigDuration::from_millis(400);
        });
        let opened = async {
            tokio::time::sleep(Duration::from_millis(600)).await;
            late.open();
        };
        let request = hello();
        let ((_, reply), ()) = tokio::join!(call(&models, &request), opened);
        assert!(reply.is_ok(), "{kind:?}: {reply:?}");
    }
}

#[tokio::test]
async fn deltas_are_delivered_before_reply_completes() {
    for kind in ALL {
        let server = ModelServer::start().await;
        let gate = Gate::new();
        server.push(Step::text("one two").hold_after(1, &gate));
        let models = models(kind, &server);
        let asked = hello();
        let (out, mut deltas) = mpsc::channel(4);
        let watch = async {
            let mut seen = Vec::new();
            while text(&seen) != "one " {
                seen.extend(deltas.recv().await.expect("more deltas"));
            }
            gate.open();
            while let Some(batch) = deltas.recv().await {
                seen.extend(batch);
            }
            seen
        };
        let ask = async {
            let outcome = models.call(&asked, &out).await;
            drop(out);
            outcome.unwrap().last
        };
        let (last, mut seen) =
            tokio::time::timeout(DEADLINE, async { tokio::join!(ask, watch) }).await.expect("an end");
        seen.extend(last);
        assert_eq!(text(&seen), "one two");
    }
}

#[tokio::test]
async fn dropping_call_or_listener_cancels_http_request() {
    let server = ModelServer::start().await;
    let gate = Gate::new();
    server.push(Step::text("one two").hold_after(1, &gate));
    server.push(Step::text("one two").hold_after(1, &gate));
    let models = models(ProviderKind::Anthropic, &server);

    let (out, _deltas) = mpsc::channel(4);
    let asking = tokio::spawn({
        let models = models.clone();
        async move { models.call(&hello(), &out).await }
    });
    gate.wait_reached().await;
    asking.abort();
    server.wait_for_hangups(1).await;

    let (out, mut deltas) = mpsc::channel(4);
    let asked = hello();
    let leave = async {
        assert!(deltas.recv().await.is_some());
        drop(deltas);
    };
    let (outcome, ()) =
        tokio::time::timeout(DEADLINE, async { tokio::join!(models.call(&asked, &out), leave) })
            .await
            .unwrap();
    assert_eq!(outcome.unwrap_err().kind, FaultKind::Interrupted);
    server.wait_for_hangups(2).await;
}

#[tokio::test]
async fn complete_reply_survives_connection_break_at_end() {
    let server = ModelServer::start().await;
    // No `[DONE]`, no usage, and the connection breaks.
    let said = json!({"choices":[{"index":0,"delta":{"content":"all said"},"finish_reason":"stop"}]});
    let body = format!("data: {said}\n\n");
    server.push(Step::raw(200, "text/event-stream", body.clone()).cut_after(body.len()));
    let (deltas, reply) = call(&models(ProviderKind::OpenAiChat, &server), &hello()).await;
    assert_eq!(reply.unwrap().stop_reason, StopReason::EndTurn);
    assert_eq!(text(&deltas), "all said");
}
