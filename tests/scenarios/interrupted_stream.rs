//! A stream that breaks is never accepted as complete, wherever it breaks. The answer is marked as
//! interrupted and requested again, and a partial call never runs.

use serde_json::json;

use crate::support::daemon::{ALL_APIS, TestDaemon};
use crate::support::model_server::Step;

/// Bytes from one break to the next; a prime, so that the breaks fall at all kinds of positions.
const STRIDE_BYTES: usize = 37;

#[tokio::test]
async fn tool_call_of_interrupted_stream_is_not_run() {
    cut_everywhere("", 8).await;
}

#[tokio::test]
async fn tool_call_of_interrupted_unstreamed_reply_is_not_run() {
    cut_everywhere("[model.\"scripted/model\"]\nstreaming = false\n", 4).await;
}

/// Breaks the stream after every `STRIDE_BYTES` bytes in all APIs; at least `least` breaks are before the
/// end.
async fn cut_everywhere(config: &str, least: usize) {
    for api in ALL_APIS {
        let plan = TestDaemon::builder().api(api).config("[retry]\nbase_ms = 1\nmax_ms = 2").config(config);
        let daemon = plan.start().await;
        let session =
            daemon.client("alice").await.create_with(&daemon, json!({"mode": "accept_edits"})).await;
        let mut seen = session.follow().await;
        let (mut cuts, mut wholes) = (0, 0);
        for bytes in (1..).step_by(STRIDE_BYTES) {
            let name = format!("file{bytes}");
            let call =
                ("Write", json!({"file_path": daemon.workspace().join(&name), "content": "all of it"}));
            daemon.models.push(Step::calls([call]).say("I write.").cut_after(bytes));
            daemon.models.push(Step::text("Done."));
            let before = seen.events_of("retry").len();
            session.submit("go").await;
            seen.turn_ends("success").await;
            let is_cut = seen.events_of("retry").len() > before;
            assert_eq!(daemon.workspace().join(&name).exists(), !is_cut, "{api:?}, cut after {bytes} bytes");
            if is_cut {
                assert_eq!(wholes, 0, "{api:?}: an earlier break was complete, but not the one at {bytes}");
                cuts += 1;
            } else {
                wholes += 1;
            }
            // More bytes may follow the end of the answer: token counts, the end of the stream.
            if wholes > 12 {
                break;
            }
        }
        assert!(cuts > least, "{api:?}: {cuts}");
        daemon.models.assert_no_breach();
    }
}
