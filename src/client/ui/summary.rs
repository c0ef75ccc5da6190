//! Short forms of calls, texts and diffs. All of them are escaped.

use serde_json::Value;

use crate::terminal::escape;
use crate::terminal::style::{StyledLine, Tone, cut};
use types::subagent::TASK;

/// A call as one line: the tool and its most important arguments.
pub fn call_summary(tool: &str, input: &Value) -> String {
    let field = |name: &str| input.get(name).and_then(Value::as_str);
    let tool = escape::line(tool).replace(' ', "⟦SP⟧");
    if let Some(todos) = input.get("todos").and_then(Value::as_array).filter(|_| tool == "TodoWrite") {
        return format!("{tool} {} entries", todos.len());
    }
    // Show all arguments of a server's tool, because this program does not know which of them matter.
    if let Some((server, name)) = tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        return format!("{server}:{name} {}", one_line(&input.to_string(), 160));
    }
    if let Some(agent) = field("subagent_type").filter(|_| tool == TASK) {
        let what = field("description").unwrap_or_default();
        return one_line(&format!("{tool} {agent}: {what}"), 160);
    }
    // The renderer shows the plan and the question itself. Their arguments are not for users.
    let first =
        |text: &str| text.lines().find(|line| !line.trim().is_empty()).map(str::trim).map(str::to_owned);
    let asked = || input.get("questions")?.get(0)?.get("question")?.as_str().and_then(first);
    match tool.as_str() {
        "ExitPlanMode" => {
            let title = field("plan").and_then(first).unwrap_or_default();
            return one_line(&format!("{tool} {}", title.trim_start_matches(['#', ' '])), 160);
        }
        "AskUser" => return one_line(&format!("{tool} {}", asked().unwrap_or_default()), 160),
        _ => {}
    }
    let main =
        ["command", "file_path", "notebook_path", "pattern", "path", "url"].into_iter().find_map(field);
    let rest = match main {
        Some(main) => match (field("pattern"), field("path")) {
            (Some(_), Some(path)) => format!("{main} in {path}"),
            _ => main.to_string(),
        },
        None if input.as_object().is_some_and(serde_json::Map::is_empty) => String::new(),
        None => input.to_string(),
    };
    format!("{tool} {}", one_line(&rest, 160)).trim_end().to_string()
}

/// The first line of a text, escaped and shortened; `…` marks missing text.
pub fn one_line(text: &str, columns: usize) -> String {
    let text = text.trim_end();
    let first = text.lines().next().unwrap_or_default();
    let mut shown = escape::line(first).into_owned();
    escape::count_blanks(&mut shown);
    let more = if first.len() < text.len() { " …" } else { "" };
    cut(&format!("{shown}{more}"), columns)
}

/// A unified diff in colours, with inconspicuous blanks made visible.
pub fn diff(text: &str) -> Vec<StyledLine> {
    let tone = |line: &str| match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => Tone::Bold,
        [b'+', ..] => Tone::Good,
        [b'-', ..] => Tone::Bad,
        [b'@', ..] => Tone::Tool,
        _ => Tone::Plain,
    };
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.split('\n').map(|line| StyledLine::new(tone(line), format!("    {}", diff_line(line)))).collect()
}

/// One line of a diff. An unchanged empty line is a single blank in a diff, so that blank is not made
/// visible.
fn diff_line(line: &str) -> String {
    if line == " " { String::new() } else { escape::exact_line(line) }
}

#[cfg(test)]
mod tests {
    use crate::ui::summary::*;
    use serde_json::json;

    #[test]
    fn call_summary_shows_main_argument_of_tool() {
        let check = |tool, input: Value, expected: &str| assert_eq!(call_summary(tool, &input), expected);
        check("Bash", json!({"command": "sh test.sh\nls", "description": "x"}), "Bash sh test.sh …");
        check("Read", json!({"file_path": "a\u{1b}[2Jb"}), "Read a⟦ESC⟧[2Jb");
        check("Grep", json!({"pattern": "fn main", "path": "src"}), "Grep fn main in src");
        check("mcp__x__y", json!({"z": 1}), r#"x:y {"z":1}"#);
        let task = json!({"description": "find it", "prompt": "x", "subagent_type": "explore"});
        check("Task", task, "Task explore: find it");
        check("List", json!({}), "List");
        check("WebFetch", json!({"prompt": "x", "url": "https://a.org/"}), "WebFetch https://a.org/");
        check("NotebookEdit", json!({"new_source": "x", "notebook_path": "n.ipynb"}), "NotebookEdit n.ipynb");
    }

    #[test]
    fn diff_shows_trailing_blanks_visibly() {
        let text = "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+x \n \n";
        let shown: Vec<(Tone, String)> = diff(text).into_iter().flat_map(|l| l.0).collect();
        assert_eq!(
            shown,
            [
                (Tone::Bold, "    --- a".into()),
                (Tone::Bold, "    +++ b".into()),
                (Tone::Tool, "    @@ -1 +1 @@".into()),
                (Tone::Bad, "    -x".into()),
                (Tone::Good, "    +x⟦SP⟧".into()),
                (Tone::Plain, "    ".into()),
            ]
        );
    }
}
