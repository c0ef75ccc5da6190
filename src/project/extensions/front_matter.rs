//! Front matter: YAML between two lines `---` at the beginning of a Markdown file.

use serde::de::{DeserializeOwned, Deserializer};
use serde::{Deserialize, de};

/// Maximum bytes of the front matter of a file.
const MAX_FRONT_MATTER_BYTES: usize = 16 * 1024;
/// Maximum levels of lists and maps in it.
const MAX_DEPTH: usize = 8;
/// Maximum number of values in it.
const MAX_NODES: usize = 2_000;

/// The front matter and the rest of a file. Without front matter the first part is the default value.
///
/// # Errors
/// The front matter does not end, is too large, or is no YAML of the expected form.
pub(super) fn read<T: DeserializeOwned + Default>(text: &str) -> Result<(T, &str), String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(rest) = text_after_fence(text) else { return Ok((T::default(), text)) };
    let mut at = 0;
    let end = loop {
        let line =
            rest[at..].split_inclusive('\n').next().ok_or("the front matter has no closing line ---")?;
        if line.trim_end() == "---" {
            break at;
        }
        at += line.len();
    };
    let (yaml, body) = (&rest[..end], &rest[end..]);
    let body = body.split_once('\n').map_or("", |(_, body)| body);
    if yaml.trim().is_empty() {
        return Ok((T::default(), body));
    }
    if yaml.len() > MAX_FRONT_MATTER_BYTES {
        return Err(format!(
            "the front matter has {} bytes; at most {MAX_FRONT_MATTER_BYTES} are read",
            yaml.len()
        ));
    }
    let budget = serde_saphyr::budget! {
        max_depth: MAX_DEPTH,
        max_nodes: MAX_NODES,
        max_events: 4 * MAX_NODES,
        max_aliases: 0,
        max_anchors: 0,
        max_documents: 1,
    };
    let options = serde_saphyr::options! { budget: budget, with_snippet: false };
    match serde_saphyr::from_str_with_options(yaml, options.clone()) {
        Ok(front_matter) => Ok((front_matter, body)),
        // Files of other programs are often no strict YAML: `argument-hint: [a] [b]`, `description: Use it: …`.
        Err(error) => serde_saphyr::from_str_with_options(&quote_plain_values(yaml), options)
            .map(|front_matter| (front_matter, body))
            .map_err(|_| format!("the front matter is not understood: {error}")),
    }
}

/// The same lines with quotes around plain values, so that `:`, `#` and brackets in them are text.
fn quote_plain_values(yaml: &str) -> String {
    let quoted = |line: &str| {
        let (key, value) = line.split_once(':')?;
        let (is_key, value) =
            (key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')), value.trim());
        // A hint is always text; other values in brackets are lists.
        let is_hint = matches!(key, "argument-hint" | "argument_hint");
        let is_plain = !value.starts_with(['"', '\'', '|', '>', '&', '*', '!'])
            && (is_hint || !value.starts_with(['[', '{']));
        let quotes = is_key && is_plain && !key.is_empty() && !value.is_empty();
        quotes.then(|| format!("{key}: {}", serde_json::Value::from(value)))
    };
    yaml.lines().map(|line| quoted(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}

/// The text after a first line `---`.
fn text_after_fence(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once('\n')?;
    (first.trim_end() == "---").then_some(rest)
}

/// A list, or one text with commas between the entries. Commas inside parentheses belong to an entry.
pub(super) fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    optional_list(deserializer).map(Option::unwrap_or_default)
}

/// Like [`list`]; a value that is left out is no list.
pub(super) fn optional_list<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum ListValue {
        Nothing(()),
        One(String),
        Many(Vec<String>),
    }
    match ListValue::deserialize(deserializer) {
        Ok(ListValue::Nothing(())) => Ok(None),
        Ok(ListValue::One(text)) => Ok(Some(split_list(&text))),
        Ok(ListValue::Many(list)) => Ok(Some(list)),
        Err(_) => Err(de::Error::custom("expected a text or a list of texts")),
    }
}

fn split_list(text: &str) -> Vec<String> {
    let (mut entries, mut entry, mut depth) = (Vec::new(), String::new(), 0_u32);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c == ',' && depth == 0 {
            entries.push(std::mem::take(&mut entry));
        } else {
            entry.push(c);
        }
    }
    entries.push(entry);
    entries.iter().map(|entry| entry.trim().to_owned()).filter(|entry| !entry.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Fields {
        description: Option<String>,
        #[serde(deserialize_with = "list")]
        tools: Vec<String>,
    }

    fn fields(description: Option<&str>, tools: &[&str]) -> Fields {
        Fields {
            description: description.map(str::to_owned),
            tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        }
    }

    #[test]
    fn values_that_are_no_strict_yaml_are_text() {
        let text = "---\ndescription: Use it when: a: b\\nthen # c\ntools: [A, B]\n---\nx";
        let (found, body) = read::<Fields>(text).expect("right");
        assert_eq!((found, body), (fields(Some("Use it when: a: b\\nthen # c"), &["A", "B"]), "x"));
        #[derive(Debug, Default, Deserialize)]
        #[serde(default, rename_all = "kebab-case")]
        struct Hint {
            argument_hint: Option<String>,
        }
        for hint in ["[issue]", "[pr-number] [priority]"] {
            let (found, _) = read::<Hint>(&format!("---\nargument-hint: {hint}\n---\nx")).expect("right");
            assert_eq!(found.argument_hint.as_deref(), Some(hint));
        }
        assert!(read::<Fields>("---\ntools: {a: [}\n---\nx").is_err());
    }

    #[test]
    fn front_matter_is_split_from_body() {
        let read = |text| read::<Fields>(text).expect("right");
        assert_eq!(read("Do it.\n---\nx: 1"), (fields(None, &[]), "Do it.\n---\nx: 1"));
        assert_eq!(read("---\n---\nDo it."), (fields(None, &[]), "Do it."));
        let tools = "---\r\ndescription: \"x: y\"\r\ntools: Bash(git add:*, x), Read\r\n---\r\nDo it.";
        assert_eq!(read(tools), (fields(Some("x: y"), &["Bash(git add:*, x)", "Read"]), "Do it."));
        assert_eq!(read("---\ntools:\n  - Read\n  - Bash\n---").0, fields(None, &["Read", "Bash"]));
        assert_eq!(read("---\ntools:\nother: 1\n---\n").0, fields(None, &[]));
    }

    #[test]
    fn hostile_front_matter_is_refused() {
        let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]".to_owned();
        let deep = format!("a: {}{}", "[".repeat(500), "]".repeat(500));
        let long = format!("description: {}", "x".repeat(40_000));
        for yaml in [bomb, deep, long, "description: [1".into(), "- a list".into(), "tools: {a: 1}".into()] {
            let text = format!("---\n{yaml}\n---\nbody");
            assert!(read::<Fields>(&text).is_err(), "{yaml:.60}");
        }
        assert!(read::<Fields>("---\nnever: closed\n").is_err());
    }
}
