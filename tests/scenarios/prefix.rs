//! What the model was sent stays as it was: each request of a turn begins like the one before, so
//! that the provider's cache finds it.

use serde_json::{Value, json};

use crate::support::daemon::{BOTH_APIS, House};
use crate::support::model_server::Step;

/// Calls of the model in the turn.
const CALLS: usize = 50;

/// Marks for the cache move on with the conversation; they are no part of what is said.
fn without_marks(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("cache_control");
            members.values_mut().for_each(without_marks);
        }
        Value::Array(elements) => elements.iter_mut().for_each(without_marks),
        _ => {}
    }
}

#[tokio::test]
async fn each_request_of_a_long_turn_begins_like_the_one_before() {
    for api in BOTH_APIS {
        let house = House::plan().speaking(api).start().await;
        let lines: String = (0..CALLS).map(|n| format!("line {n} — \"ß\"\n")).collect();
        house.write("a.txt", &lines);
        house.write("AGENTS.md", "Be brief.\n");
        let file = house.workspace().join("a.txt");
        for n in 1..CALLS {
            let read = json!({"file_path": file, "offset": n, "limit": 1});
            house.models.push(Step::calls([("Read", read)]).say(&format!("Now line {n}.")));
        }
        house.models.push(Step::text("Read."));
        let session = house.client("alice").await.create(&house).await;
        let mut seen = session.follow().await;
        session.submit("read it line by line").await;
        assert_eq!(seen.turn_ends("success").await["model_calls"], CALLS, "{api:?}");

        let mut bodies: Vec<Value> =
            house.models.requests().into_iter().map(|request| request.body).collect();
        assert_eq!(bodies.len(), CALLS);
        bodies.iter_mut().for_each(without_marks);
        for (n, pair) in bodies.windows(2).enumerate() {
            let [before, after] = pair else { unreachable!("windows of two") };
            for name in ["model", "tools", "system"] {
                // As text: the order of members counts for the cache too.
                assert_eq!(before[name].to_string(), after[name].to_string(), "{api:?} {n}: {name}");
            }
            let texts = |body: &Value| -> Vec<String> {
                body["messages"].as_array().expect("messages").iter().map(Value::to_string).collect()
            };
            let (before, after) = (texts(before), texts(after));
            assert!(before.len() < after.len(), "{api:?} {n}");
            assert_eq!(before, after[..before.len()], "{api:?}: request {} rewrites what was sent", n + 1);
        }
        let first = bodies[0].to_string();
        assert!(first.contains("Be brief.") && first.contains("read it line by line"), "{api:?}: {first}");
        let last = bodies[CALLS - 1].to_string();
        assert!(last.contains("line 48"), "{api:?}");
        house.models.assert_no_breach();
    }
}
