//! Extracts JSON from the answer of a model: without thinking tags, code fences and small mistakes.

use serde_json::Value;

/// The answer without thinking tags and code fences.
pub(super) fn strip_wrapping(text: &str) -> String {
    let text = without_thoughts(text);
    let trimmed = text.trim();
    let Some(rest) = trimmed.strip_prefix("```") else { return trimmed.to_owned() };
    // The first line of a fence may name a language.
    let body = rest.split_once('\n').map_or(rest, |(_, body)| body);
    body.trim_end().strip_suffix("```").unwrap_or(body).trim().to_owned()
}

/// Removes `<think>…</think>`, also if it is not closed at the end or not opened at the beginning.
fn without_thoughts(text: &str) -> String {
    let mut rest = text;
    let mut visible_text = String::with_capacity(text.len());
    loop {
        match (rest.find("<think>"), rest.find("</think>")) {
            (Some(start), Some(end)) if start < end => {
                visible_text.push_str(&rest[..start]);
                rest = &rest[end + "</think>".len()..];
            }
            // The opening tag was in the prompt, so everything before the closing tag is thinking.
            (_, Some(end)) => {
                visible_text.clear();
                rest = &rest[end + "</think>".len()..];
            }
            (Some(start), None) => {
                visible_text.push_str(&rest[..start]);
                return visible_text;
            }
            (None, None) => {
                visible_text.push_str(rest);
                return visible_text;
            }
        }
    }
}

/// The first JSON object in a text: strict, then from the first brace to the last one, then without trailing commas.
pub(super) fn first_object(text: &str) -> Option<Value> {
    let text = strip_wrapping(text);
    let object = |text: &str| serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
    if let Some(value) = object(&text) {
        return Some(value);
    }
    let start = text.find('{')?;
    // Prose may follow, and it may contain a brace of its own.
    let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
    if let Some(Ok(value)) = stream.next()
        && value.is_object()
    {
        return Some(value);
    }
    let end = text.rfind('}').filter(|end| *end > start).map_or(text.len(), |end| end + 1);
    let mut repaired = without_trailing_commas(&text[start..end]);
    if !repaired.ends_with('}') {
        repaired.push_str("]}");
    }
    object(&repaired)
}

/// Drops a comma before a closing bracket, outside of strings.
fn without_trailing_commas(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut is_in_string, mut is_escaped) = (false, false);
    for c in text.chars() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_in_string => is_escaped = true,
            '"' => is_in_string = !is_in_string,
            '}' | ']' if !is_in_string => {
                let end = out.trim_end().trim_end_matches(',').len();
                out.truncate(end);
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_are_found_in_answers_with_mistakes() {
        let expected = json!({"a": ["x,]"]});
        for text in [
            r#"{"a": ["x,]"]}"#,
            "```json\n{\"a\": [\"x,]\"]}\n```",
            "<think>{\"b\": 1}</think>\n{\"a\": [\"x,]\"]}",
            "thoughts before</think>{\"a\": [\"x,]\"]}",
            "Here it is: {\"a\": [\"x,]\"]} I hope {that} helps.",
            "{\"a\": [\"x,]\", ], }",
            "{\"a\": [\"x,]\"",
        ] {
            assert_eq!(first_object(text).as_ref(), Some(&expected), "{text}");
        }
        for text in ["", "none", "[1]", "<think>{\"a\": 1}", "{"] {
            assert_eq!(first_object(text), None, "{text}");
        }
    }
}
