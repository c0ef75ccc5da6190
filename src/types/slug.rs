//! Slugs: the form of a name that is easy to type.

/// Maximum characters of a slug.
const MAX_CHARS: usize = 64;

/// The name in lower case, with letters and digits of any script, `_`, and one `-` for everything between them.
/// Empty if the name has neither letters nor digits. The slug of a slug is itself.
#[must_use]
pub fn slug(name: &str) -> String {
    slug_with(name, &[])
}

/// Like [`slug`]; these characters stay as well, such as `:` in the names of commands.
#[must_use]
pub fn slug_with(name: &str, kept: &[char]) -> String {
    let mut slug = String::new();
    for c in name.chars().flat_map(char::to_lowercase) {
        if c.is_alphanumeric() || c == '_' || kept.contains(&c) {
            slug.push(c);
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug: String = slug.trim_matches('-').chars().take(MAX_CHARS).collect();
    let slug = slug.trim_end_matches('-');
    if slug.chars().any(char::is_alphanumeric) { slug.to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slug_is_easy_to_type_and_stable() {
        for (name, expected) in [
            ("code-reviewer", "code-reviewer"),
            ("Code Reviewer", "code-reviewer"),
            ("v1.2 (Beta)", "v1-2-beta"),
            ("snake_case", "snake_case"),
            ("代码 审查", "代码-审查"),
            ("Größe", "größe"),
            ("  --a--b--  ", "a-b"),
            ("🚀 Deploy", "deploy"),
            ("🚀", ""),
            ("___", ""),
            ("", ""),
        ] {
            assert_eq!(slug(name), expected, "{name}");
            assert_eq!(slug(expected), expected);
        }
        assert_eq!(slug_with("Team:Code Review.v2", &[':', '.']), "team:code-review.v2");
        assert_eq!(slug(&"x".repeat(100)).len(), 64);
    }
}
