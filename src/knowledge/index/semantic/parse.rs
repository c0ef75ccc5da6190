//! Parses the records of a model's answer. Models damage the format in many ways; every known kind of damage has a
//! test.

use serde_json::Value;

use super::normalize::{clean_text, entity_type, name};

/// An entity as a model wrote it, normalised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParsedEntity {
    pub name: String,
    pub entity_type: String,
    pub description: String,
}

/// A relation as a model wrote it, normalised.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ParsedRelation {
    pub source: String,
    pub target: String,
    pub keywords: String,
    pub description: String,
    pub weight: f64,
}

/// The usable records of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ParsedAnswer {
    pub entities: Vec<ParsedEntity>,
    pub relations: Vec<ParsedRelation>,
    /// Whether the answer has its end mark.
    pub is_complete: bool,
    /// Number of records that were dropped.
    pub dropped: usize,
}

/// The separator of fields.
const DELIMITER: &str = "<|#|>";
/// Maximum number of records that are read from one answer.
const MAX_RECORDS: usize = 1000;
/// Maximum number of bytes that are read from an answer.
const MAX_ANSWER_BYTES: usize = 512 * 1024;

/// Parses an answer in the record format or as JSON. Never fails: unreadable records are counted as dropped.
pub(super) fn parse(answer: &str) -> ParsedAnswer {
    let mut end = answer.len().min(MAX_ANSWER_BYTES);
    while !answer.is_char_boundary(end) {
        end -= 1;
    }
    let answer = without_fences(&without_thoughts(&answer[..end]));
    if let Some(parsed) = parse_json(&answer) {
        return parsed;
    }
    let answer = repair_delimiters(&answer);
    let (body, is_complete) = cut_end_mark(&answer);
    let mut parsed = ParsedAnswer { is_complete, ..ParsedAnswer::default() };
    for record in body.lines().flat_map(split_glued).take(MAX_RECORDS) {
        match read_record(&record) {
            Some(Record::Entity(entity)) => parsed.entities.push(entity),
            Some(Record::Relation(relation)) => parsed.relations.push(relation),
            // Text around the records is not a damaged record.
            None if record.contains(DELIMITER) => parsed.dropped += 1,
            None => {}
        }
    }
    parsed
}

/// Removes `<think>…</think>` and similar tags. Without a closing tag, everything to the end of the answer is
/// removed.
fn without_thoughts(answer: &str) -> String {
    let mut text = answer.to_owned();
    for (open, close) in
        [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>")]
    {
        while let Some(begin) = text.find(open) {
            match text[begin..].find(close) {
                Some(length) => text.replace_range(begin..begin + length + close.len(), ""),
                None => text.truncate(begin),
            }
        }
        // Some servers cut the opening tag off.
        if let Some(end) = text.find(close) {
            text.replace_range(..end + close.len(), "");
        }
    }
    text
}

/// Removes the lines of code fences.
fn without_fences(answer: &str) -> String {
    let lines: Vec<&str> = answer.lines().filter(|line| !line.trim_start().starts_with("```")).collect();
    lines.join("\n")
}

/// The text before the end mark. A lower-case or damaged mark counts too.
fn cut_end_mark(answer: &str) -> (&str, bool) {
    let lower = answer.to_ascii_lowercase();
    for mark in ["<|complete|>", "<|complete|", "|complete|>", "<|complete>", "<complete|>", "<complete>"] {
        if let Some(at) = lower.find(mark) {
            return (&answer[..at], true);
        }
    }
    (answer, false)
}

/// Repairs damaged delimiters. A run of the signs `<`, `|`, `#`, `>` and a backslash is a delimiter if it
/// contains a `#`, and one other sign on each side or two on one side. One letter may be inside the run.
/// Angle brackets and pipes in ordinary text have no `#` between them.
fn repair_delimiters(answer: &str) -> String {
    let chars: Vec<char> = answer.chars().collect();
    let mut out = String::with_capacity(answer.len());
    let mut at = 0;
    while at < chars.len() {
        match delimiter_length(&chars[at..]) {
            Some(length) => {
                out.push_str(DELIMITER);
                at += length;
            }
            None => {
                out.push(chars[at]);
                at += 1;
            }
        }
    }
    out
}

/// Length of the delimiter at the beginning of these characters, damaged or not.
fn delimiter_length(chars: &[char]) -> Option<usize> {
    if !matches!(chars.first(), Some('<' | '|')) {
        return None;
    }
    let is_sign = |c: char| matches!(c, '<' | '|' | '#' | '>' | '\\');
    let mut length = 0;
    let mut strays = 0;
    let (mut pipes, mut hashes, mut closed) = (0, 0, false);
    while let Some(c) = chars.get(length).copied() {
        if is_sign(c) {
            // The `<` begins a new delimiter, with an empty field between the two.
            if c == '<' && length > 0 {
                break;
            }
            pipes += usize::from(c == '|');
            hashes += usize::from(c == '#');
            length += 1;
            if c == '>' {
                closed = true;
                break;
            }
        } else if strays == 0 && !c.is_whitespace() && has_sign_after(chars, length + 1) && length > 0 {
            strays += 1;
            length += 1;
        } else {
            break;
        }
    }
    let opened = chars[0] == '<';
    let is_delimiter = match (hashes, pipes) {
        // `<||>`: the sign in the middle is lost.
        (0, 2) => opened && closed && strays == 0,
        (0, _) => false,
        // `<#>`
        (_, 0) => opened && closed && strays == 0,
        // `<|#>`, `|#|>`, `<|#|`, `||#||`
        (_, 1) => opened || closed,
        (_, _) => true,
    };
    is_delimiter.then_some(length)
}

/// Whether one of the next two characters ends a delimiter. If so, the character before is a stray one.
fn has_sign_after(chars: &[char], from: usize) -> bool {
    matches!(
        (chars.get(from), chars.get(from + 1)),
        (Some('|'), Some('>' | '#')) | (Some('#'), Some('|' | '>')) | (Some('>'), _)
    )
}

/// Splits a line in which records are joined by the delimiter: `…<|#|>entity<|#|>…`. A joined record may have
/// lost its tag. The number of fields decides its kind then.
fn split_glued(line: &str) -> Vec<String> {
    let fields: Vec<&str> = line.trim().split(DELIMITER).collect();
    let mut records: Vec<Vec<&str>> = Vec::new();
    for field in fields {
        let starts = parse_tag(field).is_some() || records.is_empty();
        if starts {
            records.push(vec![field]);
        } else if let Some(record) = records.last_mut() {
            record.push(field);
        }
    }
    // The delimiter between two records leaves an empty field at the end of the first one.
    records
        .into_iter()
        .map(|mut record| {
            while record.len() > 1 && record.last().is_some_and(|field| field.trim().is_empty()) {
                record.pop();
            }
            record.join(DELIMITER)
        })
        .collect()
}

/// The kind of a record by its first field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Entity,
    Relation,
}

fn parse_tag(field: &str) -> Option<Tag> {
    let field = field.trim().trim_matches(['(', ')', '"', '\'', '*', '-', '#', '`', ' ']).to_lowercase();
    match field.as_str() {
        "entity" | "entities" => Some(Tag::Entity),
        "relation" | "relationship" | "relations" | "relationships" => Some(Tag::Relation),
        _ => None,
    }
}

enum Record {
    Entity(ParsedEntity),
    Relation(ParsedRelation),
}

fn read_record(record: &str) -> Option<Record> {
    let mut fields: Vec<&str> = record.split(DELIMITER).collect();
    let known = parse_tag(fields[0]);
    if known.is_some() {
        fields.remove(0);
    }
    match (known, fields.as_slice()) {
        // An entity with the fields of a relation is a relation. Without a tag, the number of fields decides.
        (Some(Tag::Entity) | None, [a, b, c]) => entity(a, b, c).map(Record::Entity),
        (_, [a, b, c, d]) => relation(a, b, c, d, None).map(Record::Relation),
        (Some(Tag::Relation), [a, b, c, d, weight]) => {
            relation(a, b, c, d, Some(weight)).map(Record::Relation)
        }
        _ => None,
    }
}

fn entity(raw_name: &str, raw_type: &str, description: &str) -> Option<ParsedEntity> {
    let description = clean_text(description);
    if description.is_empty() {
        return None;
    }
    Some(ParsedEntity { name: name(raw_name)?, entity_type: entity_type(raw_type)?, description })
}

fn relation(
    source: &str,
    target: &str,
    keywords: &str,
    description: &str,
    weight: Option<&str>,
) -> Option<ParsedRelation> {
    let (source, target) = (name(source)?, name(target)?);
    let description = clean_text(description);
    if source == target || description.is_empty() {
        return None;
    }
    let weight = weight
        .and_then(|weight| weight.trim().trim_matches(['"', '\'', ')']).parse::<f64>().ok())
        .filter(|weight| weight.is_finite() && *weight > 0.0)
        .unwrap_or(1.0);
    Some(ParsedRelation {
        source,
        target,
        keywords: clean_text(keywords).replace('，', ","),
        description,
        weight,
    })
}

/// Reads `{"entities": […], "relationships": […]}`, also inside prose and with trailing commas.
fn parse_json(answer: &str) -> Option<ParsedAnswer> {
    let begin = answer.find('{')?;
    let end = answer.rfind('}')?;
    let text = answer.get(begin..=end)?;
    if !text.contains("\"entities\"") && !text.contains("\"relationships\"") {
        return None;
    }
    let value: Value =
        serde_json::from_str(text).or_else(|_| serde_json::from_str(&without_trailing_commas(text))).ok()?;
    let list = |names: &[&str]| {
        names.iter().find_map(|name| value.get(name).and_then(Value::as_array)).cloned().unwrap_or_default()
    };
    let text_of = |item: &Value, field: &str| match item.get(field) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let mut parsed = ParsedAnswer { is_complete: true, ..ParsedAnswer::default() };
    for item in list(&["entities"]).iter().take(MAX_RECORDS) {
        match entity(&text_of(item, "name"), &text_of(item, "type"), &text_of(item, "description")) {
            Some(entity) => parsed.entities.push(entity),
            None => parsed.dropped += 1,
        }
    }
    for item in list(&["relationships", "relations"]).iter().take(MAX_RECORDS) {
        let weight = text_of(item, "weight");
        let found = relation(
            &text_of(item, "source"),
            &text_of(item, "target"),
            &text_of(item, "keywords"),
            &text_of(item, "description"),
            Some(&weight),
        );
        match found {
            Some(relation) => parsed.relations.push(relation),
            None => parsed.dropped += 1,
        }
    }
    Some(parsed)
}

/// Removes commas before a closing bracket, outside of strings.
fn without_trailing_commas(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    for c in text.chars() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = c == '\\' && !escaped;
        } else if c == '"' {
            in_string = true;
        } else if matches!(c, '}' | ']') {
            let end = out.trim_end().trim_end_matches(',').len();
            if out.trim_end().ends_with(',') {
                out.truncate(end);
            }
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(answer: &str) -> Vec<String> {
        let parsed = parse(answer);
        let entities =
            parsed.entities.into_iter().map(|entity| format!("{}:{}", entity.name, entity.entity_type));
        let relations =
            parsed.relations.into_iter().map(|relation| format!("{}-{}", relation.source, relation.target));
        entities.chain(relations).collect()
    }

    #[test]
    fn well_formed_answer_yields_all_records() {
        let answer = "entity<|#|>Alice<|#|>Person<|#|>Works.\nentity<|#|>Bob<|#|>person<|#|>Too.\n\
                      relation<|#|>Alice<|#|>Bob<|#|>work, team<|#|>They work.\n<|COMPLETE|>\n";
        let parsed = parse(answer);
        assert!(parsed.is_complete && parsed.dropped == 0);
        assert_eq!(parsed.entities[0].entity_type, "person");
        assert_eq!(parsed.relations[0].keywords, "work, team");
        assert!((parsed.relations[0].weight - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn missing_or_lower_case_end_mark_is_accepted() {
        let body = "entity<|#|>A1<|#|>x<|#|>d";
        assert!(!parse(body).is_complete);
        assert_eq!(names(body), ["A1:x"]);
        for mark in ["<|complete|>", "<|Complete|>", "<|COMPLETE|", "|COMPLETE|>", "<COMPLETE>"] {
            let parsed = parse(&format!("{body}\n{mark}\nentity<|#|>after<|#|>x<|#|>d"));
            assert!(parsed.is_complete, "{mark}");
            assert_eq!(parsed.entities.len(), 1, "{mark}");
        }
    }

    #[test]
    fn records_glued_by_delimiter_are_separated() {
        let glued =
            "entity<|#|>A1<|#|>x<|#|>d<|#|>entity<|#|>B1<|#|>y<|#|>e<|#|>relation<|#|>A1<|#|>B1<|#|>k<|#|>r";
        assert_eq!(names(glued), ["A1:x", "B1:y", "A1-B1"]);
    }

    #[test]
    fn record_without_tag_is_known_by_its_fields() {
        assert_eq!(names("A1<|#|>x<|#|>d\nA1<|#|>B1<|#|>k<|#|>r"), ["A1:x", "A1-B1"]);
    }

    #[test]
    fn entity_tag_on_five_fields_is_a_relation() {
        assert_eq!(names("entity<|#|>A1<|#|>B1<|#|>k<|#|>r"), ["A1-B1"]);
    }

    #[test]
    fn relationship_tag_equals_relation_tag() {
        for tag in ["relation", "relationship", "Relationship", "(\"relationship\"", "**relation**"] {
            assert_eq!(names(&format!("{tag}<|#|>A1<|#|>B1<|#|>k<|#|>r")), ["A1-B1"], "{tag}");
        }
    }

    #[test]
    fn sixth_numeric_field_is_the_weight() {
        let weight =
            |text: &str| parse(&format!("relation<|#|>A1<|#|>B1<|#|>k<|#|>r<|#|>{text}")).relations[0].weight;
        assert!((weight("2.5") - 2.5).abs() < f64::EPSILON);
        for bad in ["much", "-1", "NaN", "inf"] {
            assert!((weight(bad) - 1.0).abs() < f64::EPSILON, "{bad}");
        }
    }

    #[test]
    fn damaged_delimiters_are_repaired() {
        for delimiter in [
            "<|#|>", "<|##|>", "<#>", "<|#>", "<||>", "<|#|", "|#|>", "||#||", "<|\\#|>", "<|x#|>", "<|#x|>",
            "<x|#|>", "<|#|x>", "<|#||>", "<||#|>",
        ] {
            let answer = ["entity", "Alice", "person", "She works."].join(delimiter);
            assert_eq!(names(&answer), ["Alice:person"], "{delimiter}");
        }
    }

    #[test]
    fn ordinary_signs_in_text_are_no_delimiters() {
        let answer =
            "entity<|#|>Map<K, V><|#|>type<|#|>Calls a || b | c, issue #12, x <- y, Vec<u8>, a <= b.";
        let parsed = parse(answer);
        assert_eq!(parsed.entities[0].name, "Map<K, V>");
        assert!(parsed.entities[0].description.contains("a || b | c, issue #12"), "{parsed:?}");
    }

    #[test]
    fn fences_and_thoughts_are_removed() {
        let answer = "<think>entity<|#|>No<|#|>x<|#|>d</think>\n```text\nentity<|#|>Yes<|#|>x<|#|>d\n```";
        assert_eq!(names(answer), ["Yes:x"]);
        assert_eq!(names("left over</think>entity<|#|>Yes<|#|>x<|#|>d"), ["Yes:x"]);
        assert_eq!(names("entity<|#|>Yes<|#|>x<|#|>d\n<think>endless entity<|#|>No<|#|>x<|#|>d"), ["Yes:x"]);
    }

    #[test]
    fn json_in_prose_with_trailing_commas_is_read() {
        let answer = "Here it is:\n```json\n{\"entities\": [{\"name\": \"A,]1\", \"type\": \"x\", \"description\": \"d\",},], \
                      \"relationships\": [{\"source\": \"A1\", \"target\": \"B1\", \"keywords\": [\"k\", \"l\"], \"description\": \
                      \"r\"}, {\"source\": \"A1\"}]}\n```\nDone.";
        let parsed = parse(answer);
        assert_eq!(parsed.entities[0].name, "A,]1");
        assert_eq!(parsed.relations[0].keywords, "k,l");
        assert_eq!(parsed.dropped, 1);
    }

    #[test]
    fn record_with_wrong_field_count_is_dropped_alone() {
        let answer = "entity<|#|>A1\nrelation<|#|>a1<|#|>b1\nentity<|#|>B1<|#|>x<|#|>d\nSure, here it is";
        let parsed = parse(answer);
        assert_eq!((parsed.entities.len(), parsed.relations.len(), parsed.dropped), (1, 0, 2));
    }

    #[test]
    fn self_relations_and_empty_descriptions_are_dropped() {
        let answer =
            "relation<|#|>A1<|#|>\"A1\"<|#|>k<|#|>r\nentity<|#|>A1<|#|>x<|#|>  \nentity<|#|>A1<|#|>a/b<|#|>d";
        assert_eq!(parse(answer).dropped, 3);
        assert_eq!(names(answer), [""; 0]);
    }

    proptest! {
        #[test]
        fn any_answer_is_parsed_without_panic(answer in "(entity|relation|<|\\||#|>|\n|[a-c\u{e9}]|\\{|\"entities\":|\\[|,){0,120}") {
            let parsed = parse(&answer);
            for entity in parsed.entities {
                prop_assert!(!entity.name.is_empty() && !entity.description.is_empty());
            }
        }
    }
}
