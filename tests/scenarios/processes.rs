//! How commands run: with the descriptors and limits they are to have, bounded in all they use, and
//! told why they ended (S15, S16).

use serde_json::Value;

use super::bash;
use crate::support::daemon::House;
use crate::support::model_server::Step;

const BASH_ALLOWED: &str = "[permissions]\nallow = [\"Bash\"]";

/// The result of one command.
async fn run(house: &House, command: &str) -> Value {
    let session = house.client("alice").await.create(house).await;
    let mut seen = session.follow().await;
    house.models.push(Step::calls([bash(command)]));
    house.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    seen.seen_of("tool.completed").remove(0)
}

#[tokio::test]
async fn a_command_gets_the_descriptors_and_the_limit_that_the_daemon_was_started_with() {
    let house = House::plan().config(BASH_ALLOWED).under("ulimit -Sn 700; ulimit -Hn 900").start().await;
    let daemon = std::fs::read_to_string(format!("/proc/{}/limits", house.pid())).expect("it runs");
    let files = daemon.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    let limits: Vec<&str> = files.split_whitespace().skip(3).take(2).collect();
    assert_eq!(limits, ["900", "900"], "the daemon takes all it may");
    let done = run(&house, "ulimit -Sn; ulimit -Hn; ls /proc/$$/fd").await;
    let said: Vec<i32> =
        done["output"].as_str().expect("a text").lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(said[..2], [700, 900]);
    // The shell itself has one more of its own at 255; the one above is where it tells its folder.
    let open: Vec<i32> = said[2..].iter().copied().filter(|fd| *fd != 255).collect();
    assert!(open.len() == 4 && open.contains(&0) && open.contains(&1) && open.contains(&2), "{said:?}");
}
