//! Front matter: YAML between two lines `---` at the beginning of a Markdown file, as people write it.
//!
//! What is YAML is read as YAML. If the whole is not, each key is read by itself. A key that informs then has the text
//! after its colon as value; a key that restricts must be YAML, or the file is refused.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Maximum bytes of the front matter of a file.
const MAX_FRONT_MATTER_BYTES: usize = 16 * 1024;
/// Maximum levels of lists and maps in it.
const MAX_DEPTH: usize = 8;
/// Maximum number of values in it.
const MAX_NODES: usize = 2_000;
/// Maximum characters of a key.
const MAX_KEY_CHARS: usize = 64;

/// The keys and values of a front matter, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FrontMatter {
    entries: Vec<Entry>,
}

/// One key with its value. A key may occur several times.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// The key as it is written.
    pub key: String,
    /// The value, if it is YAML.
    pub value: Option<Value>,
    /// The text after the colon, with the lines that continue it.
    text: String,
}

/// A key without case, blanks, `-`, `_` and `.`: `disallowed-tools` is `disallowedTools`.
pub(super) fn normalized(key: &str) -> String {
    key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

impl FrontMatter {
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The first entry with this normalized key.
    fn find(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| normalized(&entry.key) == key)
    }

    /// The value of a key as a text without blanks around it; `None` if it is absent or empty.
    pub fn text(&self, key: &str) -> Option<String> {
        let entry = self.find(key)?;
        let text = match &entry.value {
            Some(value) => text_of(value),
            None => unquoted(&entry.text).to_owned(),
        };
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The value of a key as it is written, without quotes around it: brackets in a hint are no list.
    pub fn written(&self, key: &str) -> Option<String> {
        let entry = self.find(key)?;
        match &entry.value {
            Some(Value::String(text)) => Some(text.clone()),
            _ => Some(unquoted(&entry.text).to_owned()),
        }
    }

    /// The entries of a list, or of one text with commas or blanks between them. A text that cannot be read has none.
    pub fn list(&self, key: &str) -> Vec<String> {
        let Some(entry) = self.find(key) else { return Vec::new() };
        match &entry.value {
            Some(Value::Array(list)) => list.iter().map(text_of).collect(),
            Some(Value::String(text)) => split_list(text),
            Some(_) => Vec::new(),
            None => split_list(unquoted(&entry.text)),
        }
    }

    /// Names: a list of texts or of maps with a `name`, or one text.
    pub fn names(&self, key: &str) -> Vec<String> {
        let Some(Value::Array(list)) = self.find(key).and_then(|entry| entry.value.as_ref()) else {
            return self.list(key);
        };
        let name = |value: &Value| match value {
            Value::Object(map) => map.get("name").map(text_of).unwrap_or_default(),
            value => text_of(value),
        };
        list.iter().map(name).collect()
    }

    /// Whether a key is set, and not to `false`.
    pub fn is_set(&self, key: &str) -> bool {
        let is_no = |text: &str| matches!(text.to_lowercase().as_str(), "false" | "no" | "off" | "0");
        self.text(key).is_some_and(|text| !is_no(&text))
    }
}

/// A value as text. Lists have commas between their entries.
fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(text_of).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// The text inside quotes, if quotes stand around all of it.
fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inside = |quote: char| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains(quote)).then_some(inner)
    };
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

/// The front matter and the rest of a file. Without front matter there are no keys. `restricts` says whether a
/// normalized key restricts what the file may do.
///
/// # Errors
/// The front matter does not end, is too large, or a key that restricts cannot be read as YAML.
pub(super) fn read(text: &str, restricts: fn(&str) -> bool) -> Result<(FrontMatter, String), String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
    let Some(rest) = text_after_fence(&text) else { return Ok((FrontMatter::default(), text)) };
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
    let body = body.split_once('\n').map_or("", |(_, body)| body).to_owned();
    if yaml.len() > MAX_FRONT_MATTER_BYTES {
        return Err(format!(
            "the front matter has {} bytes; at most {MAX_FRONT_MATTER_BYTES} are read",
            yaml.len()
        ));
    }
    let entries = entries(yaml, restricts)?;
    Ok((FrontMatter { entries }, body))
}

/// All keys of a front matter with their values, and the rest of the file. Only the key `description` may have a value
/// that is no YAML; it is a text then. For files whose keys decide what is done.
///
/// # Errors
/// The front matter does not end, is too large, has a key twice, or a value cannot be read as YAML.
pub fn read_strictly(text: &str) -> Result<(serde_json::Map<String, Value>, String), String> {
    let (front, body) = read(text, |key| key != "description")?;
    let mut values = serde_json::Map::new();
    for entry in front.entries {
        let value = entry.value.unwrap_or_else(|| Value::from(unquoted(&entry.text)));
        if values.insert(entry.key.clone(), value).is_some() {
            return Err(format!("the key {:?} occurs twice", entry.key));
        }
    }
    Ok((values, body))
}

/// The text after the first line `---`. Only blank lines and comments may be above it.
fn text_after_fence(text: &str) -> Option<&str> {
    let mut rest = text;
    let mut is_first = true;
    loop {
        let (line, after) = rest.split_once('\n')?;
        let line = line.trim_end();
        if line == "---" {
            // Below a heading, such a line may be a rule of Markdown.
            let has_key = || {
                after.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| key_of(line).is_some())
            };
            return (is_first || has_key()).then_some(after);
        }
        if let Some(comment) = rest.trim_start().strip_prefix("<!--") {
            rest = comment.split_once("-->")?.1;
            rest = rest.strip_prefix('\n').unwrap_or(rest);
        } else if line.is_empty() || line.starts_with('#') {
            rest = after;
        } else {
            return None;
        }
        is_first = false;
    }
}

/// Parses strict YAML, within limits.
fn parse<T: DeserializeOwned>(yaml: &str) -> Result<T, String> {
    let budget = serde_saphyr::budget! {
        max_depth: MAX_DEPTH,
        max_nodes: MAX_NODES,
        max_events: 4 * MAX_NODES,
        max_aliases: 0,
        max_anchors: 0,
        max_documents: 1,
    };
    let options = serde_saphyr::options! { budget: budget, with_snippet: false };
    serde_saphyr::from_str_with_options(yaml, options).map_err(|error| error.to_string())
}

fn entries(yaml: &str, restricts: fn(&str) -> bool) -> Result<Vec<Entry>, String> {
    let lines = Lines::split_by_key(yaml, restricts);
    // YAML takes `!word` for a type, and people mean the text.
    let has_tag = |it: &KeyLines<'_>| it.first.trim_start().starts_with('!');
    if !lines.0.iter().any(has_tag)
        && let Ok(map) = parse::<serde_json::Map<String, Value>>(yaml)
    {
        let text = |key: &str| lines.0.iter().find(|it| it.key == key).map(KeyLines::text);
        let entry = |(key, value): (String, Value)| Entry {
            text: text(&key).unwrap_or_default(),
            key,
            value: Some(value),
        };
        return Ok(map.into_iter().map(entry).collect());
    }
    let mut entries = Vec::new();
    for found in &lines.0 {
        let value = parse::<serde_json::Map<String, Value>>(&found.yaml())
            .map(|mut map| map.remove(&found.key).filter(|_| map.is_empty()));
        let restricting = match value {
            Ok(Some(value)) if !has_tag(found) => {
                entries.push(Entry { key: found.key.clone(), value: Some(value), text: found.text() });
                continue;
            }
            // Which key it is that a text hides below another one is not certain.
            _ if restricts(&normalized(&found.key)) => Some(found.key.as_str()),
            _ => found.hidden_key(restricts),
        };
        if let Some(key) = restricting {
            return Err(format!(
                "the key {key:?} restricts what is done, but its value cannot be read as YAML; correct it, or put it in \
                 quotes"
            ));
        }
        entries.push(Entry { key: found.key.clone(), value: None, text: found.text() });
    }
    Ok(entries)
}

struct Lines<'y>(Vec<KeyLines<'y>>);

/// A key with the lines of its value.
struct KeyLines<'y> {
    key: String,
    /// The text after the colon.
    first: &'y str,
    more: Vec<&'y str>,
}

impl<'y> Lines<'y> {
    /// A line that is not indented begins a key, if it has the form of one; all other lines continue the key above.
    fn split_by_key(yaml: &'y str, restricts: fn(&str) -> bool) -> Self {
        let mut keys: Vec<KeyLines<'y>> = Vec::new();
        for line in yaml.lines() {
            let begins = key_of(line)
                .filter(|(key, _)| !key.contains(' ') || restricts(&normalized(key)))
                .filter(|_| !line.starts_with([' ', '\t', '-']));
            match (begins, keys.last_mut()) {
                (Some((key, first)), _) => {
                    keys.push(KeyLines { key: key.to_owned(), first, more: Vec::new() })
                }
                (None, Some(last)) => last.more.push(line),
                (None, None) => {}
            }
        }
        Self(keys)
    }
}

impl KeyLines<'_> {
    /// The value as one line of text.
    fn text(&self) -> String {
        let lines = std::iter::once(self.first).chain(self.more.iter().copied());
        lines.map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// The key as YAML of its own: tabs before an entry are blanks, and a bare `*` is text.
    fn yaml(&self) -> String {
        let bare = |text: &str| match text.split('#').next().unwrap_or_default().trim() {
            "*" => " \"*\"".to_owned(),
            "[*]" => " [\"*\"]".to_owned(),
            _ => text.to_owned(),
        };
        let mut yaml = format!("{}:{}\n", serde_json::Value::from(self.key.as_str()), bare(self.first));
        for line in &self.more {
            let entry = line.trim_start_matches(['\t', ' ']);
            let blanks = line[..line.len() - entry.len()].replace('\t', "  ");
            let entry = if entry.trim_end() == "- *" { "- \"*\"" } else { entry };
            yaml += &format!("{blanks}{entry}\n");
        }
        yaml
    }

    /// A key that restricts, in a line that seems to continue this one.
    fn hidden_key(&self, restricts: fn(&str) -> bool) -> Option<&str> {
        let mut keys = self.more.iter().filter_map(|line| key_of(line.trim_start_matches(['\t', ' ', '-'])));
        keys.find(|(key, _)| restricts(&normalized(key))).map(|(key, _)| key)
    }
}

/// The key at the beginning of a line, and the text after its colon.
fn key_of(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once([':', '：'])?;
    let key = key.trim().trim_matches(['"', '\'']);
    let is_key = !key.is_empty()
        && key.chars().count() <= MAX_KEY_CHARS
        && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ' | '$' | '@'));
    let ends = value.is_empty() || value.starts_with(char::is_whitespace) || line.contains('：');
    (is_key && ends).then_some((key, value))
}

/// The entries of a text with commas or blanks between them. Those inside parentheses belong to an entry.
pub(super) fn split_list(text: &str) -> Vec<String> {
    let (mut entries, mut entry, mut depth) = (Vec::new(), String::new(), 0_u32);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c == ',' || c.is_whitespace()) {
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

    fn restricts(key: &str) -> bool {
        matches!(key, "tools" | "disallowedtools")
    }

    /// The description and the tools of a front matter, or the error.
    fn check(yaml: &str, expected: Result<(&str, &[&str]), &str>) {
        let got = read(&format!("---\n{yaml}\n---\nbody"), restricts);
        match (&got, expected) {
            (Ok((front, body)), Ok((description, tools))) => {
                assert_eq!(front.text("description").unwrap_or_default(), description, "{yaml}");
                assert_eq!(front.list("tools"), tools, "{yaml}");
                assert_eq!(body, "body");
            }
            (Err(got), Err(word)) => assert!(got.contains(word), "{yaml}: {got}"),
            _ => panic!("{yaml}: {got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn keys_that_inform_are_read_as_people_write_them() {
        let read_and_grep: &[&str] = &["Read", "Grep"];
        for (yaml, expected) in [
            ("description: x\ntools: Read, Grep", Ok(("x", read_and_grep))),
            ("description: x\ntools: [Read, Grep]", Ok(("x", read_and_grep))),
            ("description: x\ntools: Read Grep", Ok(("x", read_and_grep))),
            ("Description: x\nTools: Read, Grep", Ok(("x", read_and_grep))),
            ("description: x\ntools:\n\t- Read\n\t- Grep", Ok(("x", read_and_grep))),
            (
                "description: Use it when: a: b # c\ntools: Read, Grep",
                Ok(("Use it when: a: b # c", read_and_grep)),
            ),
            ("description: [Beta] x\ntools: Read, Grep", Ok(("[Beta] x", read_and_grep))),
            ("description: \"Quick\" x\ntools: Read, Grep", Ok(("\"Quick\" x", read_and_grep))),
            ("description: one\nand two.\ntools: Read, Grep", Ok(("one and two.", read_and_grep))),
            ("description: x: y\n  more: z\ntools: Read, Grep", Ok(("x: y more: z", read_and_grep))),
            ("description: >\n  one\n  two: x\ntools: Read, Grep", Ok(("one two: x", read_and_grep))),
            ("description: @x `y`\ntools: Read, Grep", Ok(("@x `y`", read_and_grep))),
            ("description: first\ndescription: second\ntools: Read, Grep", Ok(("first", read_and_grep))),
            ("description: x\ntools: *", Ok(("x", &["*"][..]))),
            ("description: x\ntools: * # all", Ok(("x", &["*"][..]))),
            ("description: x\ntools:\n  - *", Ok(("x", &["*"][..]))),
            ("description: 5\ntools: []", Ok(("5", &[]))),
            ("", Ok(("", &[]))),
        ] {
            check(yaml, expected);
        }
    }

    #[test]
    fn key_that_restricts_is_read_as_yaml_or_the_file_is_refused() {
        for yaml in [
            "description: x\ntools: {a: [}",
            "description: x: y\ntools: [Read",
            "description: x: y\ntools: Read: Grep",
            "description: x: y\ntools: @Read",
            "description: x: y\n  tools: Read",
            "description: x: y\n\ttools: Read",
            "description: x: y\n - tools: Read",
            "description: x: y\nTools：Read: x",
            "description: x\ndisallowedTools: !Bash",
            "description: x: y\n\"disallowed tools\": [",
        ] {
            check(yaml, Err("restricts"));
        }
        // As a part of a text that is YAML, it is text.
        check("description: |\n  tools: Read\nname: a: b", Ok(("tools: Read", &[])));
    }

    #[test]
    fn front_matter_is_split_from_body() {
        let split = |text: &str| {
            let (front, body) = read(text, restricts).expect("right");
            (front.text("description"), body)
        };
        let x = Some("x".to_owned());
        assert_eq!(split("Do it.\n---\nx: 1"), (None, "Do it.\n---\nx: 1".to_owned()));
        for before in ["", "\u{feff}", "\n\n", "# a comment\n", "<!-- a\nb -->\n", "<!-- a -->\n\n# b\n"] {
            let text = format!("{before}---\ndescription: x\n---\nbody\n");
            assert_eq!(split(&text), (x.clone(), "body\n".to_owned()), "{before:?}");
        }
        assert_eq!(split("---\r\ndescription: x\r\n---\r\nbody"), (x.clone(), "body".to_owned()));
        assert_eq!(split("---\rdescription: x\r---\rbody"), (x, "body".to_owned()));
        assert_eq!(split("---\n---\nbody"), (None, "body".to_owned()));
        let rule = "# A heading\n\n---\n\nSome text\n\n---\nmore";
        assert_eq!(split(rule), (None, rule.to_owned()));
        assert!(read("---\ndescription: x\n", restricts).is_err(), "without an end");
        assert!(read(&format!("---\na: {}\n---\n", "x".repeat(20_000)), restricts).is_err());
        let deep = format!("---\ndescription: x\ntools: {}\n---\n", "[".repeat(200));
        assert!(read(&deep, restricts).is_err());
    }

    #[test]
    fn hint_keeps_its_brackets() {
        for hint in ["[issue]", "[pr-number] [priority]", "<file> [a|b]"] {
            let (front, _) = read(&format!("---\nargument-hint: {hint}\n---\nx"), restricts).expect("right");
            assert_eq!(front.written("argumenthint").as_deref(), Some(hint));
        }
    }

    #[test]
    fn flag_that_cannot_be_read_is_set() {
        let is_set = |value: &str| {
            let text = format!("---\ndescription: x: y\nflag: {value}\n---\nx");
            read(&text, restricts).expect("right").0.is_set("flag")
        };
        assert!(is_set("true") && is_set("yes") && is_set("maybe"));
        assert!(!is_set("false") && !is_set("no") && !is_set(""));
    }

    #[test]
    fn commas_and_blanks_in_parentheses_do_not_split() {
        assert_eq!(split_list("Bash(a, b), Read , "), ["Bash(a, b)", "Read"]);
        assert_eq!(split_list("Bash(git diff:*) Read\tGrep"), ["Bash(git diff:*)", "Read", "Grep"]);
    }
}
