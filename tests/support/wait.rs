//! Waiting by fact: always for something that will be seen, never for a time to pass, and with a
//! deadline that turns a hang into a message.

use std::time::Duration;

/// The longest anybody waits here. Machines are slow; nothing is ever asserted about how slow.
pub const DEADLINE: Duration = Duration::from_secs(20);
/// Between two looks at a fact that cannot be waited for.
pub const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The result of the work. If it takes too long: a panic with what was seen instead.
pub async fn within<T>(what: &str, seen: impl FnOnce() -> String, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, work).await {
        Ok(done) => done,
        Err(_) => panic!("waited in vain for {what}\n{}", seen()),
    }
}

/// Looks again and again until there is something to see, for facts that nobody announces: a file,
/// a process that is gone.
pub async fn until<T>(what: &str, seen: impl Fn() -> String, mut look: impl FnMut() -> Option<T>) -> T {
    let work = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    within(what, seen, work).await
}
