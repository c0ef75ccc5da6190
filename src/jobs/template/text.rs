//! The text of a template: `{{name}}` stands for the value of a parameter.
//!
//! Values are put in once, and the result is not read again: a value with `{{other}}` in it stays as it is. Text in
//! double braces that is no name, such as `{{ .Values.image }}`, stays as well, and `\{{` is `{{`.

use std::collections::BTreeMap;

/// Maximum bytes of the result: that of a job's content.
const MAX_PROMPT_BYTES: usize = 1 << 20;
/// Maximum bytes between two pairs of braces: a name with blanks around it.
const MAX_BRACES_BYTES: usize = 128;

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
enum Part<'t> {
    Text(&'t str),
    Name(&'t str),
}

/// The parts of a text in their order.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut begin, mut at) = (0, 0);
    while let Some(found) = text[at..].find("{{").map(|found| at + found) {
        if text[..found].ends_with('\\') && found > begin {
            parts.push(Part::Text(&text[begin..found - 1]));
            (begin, at) = (found, found + 2);
            continue;
        }
        // A name is short; the rest of a long text is not searched for each brace.
        let rest = &text[found + 2..];
        let inside =
            rest[..rest.floor_char_boundary(MAX_BRACES_BYTES)].split_once("}}").map(|(inside, _)| inside);
        match inside.filter(|inside| is_parameter_name(inside.trim_matches(' '))) {
            Some(inside) => {
                parts.push(Part::Text(&text[begin..found]));
                parts.push(Part::Name(inside.trim_matches(' ')));
                begin = found + 4 + inside.len();
                at = begin;
            }
            // One brace further: `{{{name}}` has a name after its first brace.
            None => at = found + 1,
        }
    }
    parts.push(Part::Text(&text[begin..]));
    parts
}

/// Whether a text can name a parameter: a letter or `_`, then letters, digits, `_` and `-`.
pub(super) fn is_parameter_name(text: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(begins)
        && text.len() <= 64
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

pub(super) fn names(text: &str) -> Vec<&str> {
    let name = |part| match part {
        Part::Name(name) => Some(name),
        Part::Text(_) => None,
    };
    parts(text).into_iter().filter_map(name).collect()
}

/// The text with a value for each name.
///
/// # Errors
/// The result is too long.
pub(super) fn fill(text: &str, values: &BTreeMap<String, String>) -> Result<String, String> {
    let mut filled = String::new();
    for part in parts(text) {
        filled.push_str(match part {
            Part::Text(text) => text,
            Part::Name(name) => values.get(name).map_or("", String::as_str),
        });
        if filled.len() > MAX_PROMPT_BYTES {
            return Err(format!("the prompt with these values has more than {MAX_PROMPT_BYTES} bytes"));
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let values = [("a", "1"), ("b_c-2", "{{a}} \\{{a}}"), ("empty", "")];
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        assert_eq!(fill(text, &values).as_deref(), Ok(expected), "{text}");
    }

    #[test]
    fn values_are_put_in_once_and_never_expanded_again() {
        check("x {{a}} y", "x 1 y");
        check("{{a}}{{ a }}{{empty}}", "11");
        check("{{b_c-2}}{{a}}", "{{a}} \\{{a}}1");
        check("{{{a}}}", "{1}");
        check("{{a", "{{a");
        check("{{", "{{");
        check("{{}} {{ }} {{.a}} {{a b}} {{a\n}}", "{{}} {{ }} {{.a}} {{a b}} {{a\n}}");
        check("\\{{a}} {{a}}", "{{a}} 1");
        check("x\\{{a}}\\{{a}}", "x{{a}}{{a}}");
        check("ä{{a}}ö", "ä1ö");
        check("{{x.y}} {{a}}", "{{x.y}} 1");
        check("{{ .x {{a}} }}", "{{ .x 1 }}");
    }

    #[test]
    fn huge_result_is_refused_before_it_is_made() {
        let values = BTreeMap::from([("a".to_owned(), "x".repeat(1 << 19))]);
        assert!(fill(&"{{a}}".repeat(50_000), &values).is_err());
    }
}
