//! Waits for observable conditions. A test never waits for a fixed time to pass, and a deadline turns a
//! hang into a message.

use std::time::Duration;

/// Timeout of every wait in the tests. It is generous, because test machines may be slow; no test
/// asserts a speed.
pub const DEADLINE: Duration = Duration::from_secs(20);
/// Interval between two checks of a condition without a notification.
pub const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The result of the work. After the timeout, panics with the text of `seen`.
pub async fn with_deadline<T>(what: &str, seen: impl FnOnce() -> String, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, work).await {
        Ok(done) => done,
        Err(_) => panic!("waited in vain for {what}\n{}", seen()),
    }
}

/// Polls until the condition is true, for conditions without a notification: a file, a process that is
/// gone.
pub async fn poll_until<T>(what: &str, seen: impl Fn() -> String, mut look: impl FnMut() -> Option<T>) -> T {
    let work = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    with_deadline(what, seen, work).await
}
