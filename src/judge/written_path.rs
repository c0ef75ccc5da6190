//! Patterns for files as people write them. A text with the signs of a list, of another system or of another kind of
//! pattern matches no file, so it is refused. A backslash before such a sign makes it a part of the name.

/// Why a text is not accepted as a rule. Both hold a sentence fragment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// The text is not a rule.
    Wrong(String),
    /// The text is a rule that no call can match. As an allow rule it does no harm.
    MatchesNothing(String),
}

/// The tools whose rules have patterns for files.
pub(super) const FILE_TOOLS: &[&str] =
    &["Read", "Glob", "Grep", "LS", "Edit", "Write", "MultiEdit", "ApplyPatch", "NotebookEdit", "Delete"];

/// Beginnings that are no part of a path, in lower case.
const PREFIXES: &[&str] = &[
    "file:",
    "files:",
    "path:",
    "paths:",
    "glob:",
    "regex:",
    "regexp:",
    "re:",
    "dir:",
    "folder:",
    "directory:",
    "pattern:",
    "domain:",
    "http:",
    "https:",
    ":",
];

/// Words between two patterns, in lower case.
const LIST_WORDS: &[&str] = &["or", "and", "&", "&&", "+"];

/// Pairs of signs around a text that are no part of a path.
const QUOTES: &[(char, char)] = &[('"', '"'), ('\'', '\''), ('`', '`'), ('<', '>')];

/// Signs that quote in a printed text.
const PRINTED_QUOTES: &[char] = &['“', '”', '„', '‘', '’', '«', '»', '「', '」'];

/// The pattern of a rule for files.
pub(super) fn path(tool: &str, inner: &str) -> Result<String, Problem> {
    let text = inner.trim();
    if text.is_empty() {
        return Err(Problem::Wrong(format!("the pattern is blank; write {tool} for every call")));
    }
    // `x\ `: the blank at the end is part of the name.
    let backslashes = text.chars().rev().take_while(|c| *c == '\\').count();
    let text = if backslashes % 2 == 1 { inner.trim_start() } else { text };
    for (open, close) in QUOTES {
        if let Some(bare) = text.strip_prefix(*open).and_then(|text| text.strip_suffix(*close)) {
            return Err(Problem::Wrong(format!(
                "a pattern has no quotes; the nearest rule is {tool}({bare})"
            )));
        }
    }
    let first = text.split('/').next().unwrap_or_default();
    if first.len() > 1 && first.starts_with('~') {
        return Err(Problem::MatchesNothing(format!(
            "the home folder of {first} is not looked up; write its path, or \\{text} for a folder of this name"
        )));
    }
    if let Some(variable) = text.split('/').find(|part| is_variable(part, *part == first)) {
        return Err(Problem::MatchesNothing(format!(
            "variables such as {variable} have no value here; write ~/ for the home folder, or \\{variable} for a \
             folder of this name"
        )));
    }
    match unusual(text) {
        Some((why, nearest)) => {
            let nearest = nearest.trim().trim_end_matches([',', ';']);
            Err(Problem::MatchesNothing(format!(
                "{why}; the nearest rule is {tool}({nearest}), and a backslash before a sign makes it a part of the \
                 name"
            )))
        }
        None => Ok(text.to_owned()),
    }
}

/// Whether a part of a path is a variable of a shell or of another program. The first part may have small letters.
fn is_variable(part: &str, is_first: bool) -> bool {
    let is_letter = |c: char| c.is_ascii_uppercase() || c == '_' || is_first && c.is_ascii_lowercase();
    let is_name = |name: &str| !name.is_empty() && name.chars().all(is_letter);
    let Some(name) = part.strip_prefix('$') else {
        let name = part.strip_prefix('%').and_then(|part| part.split_once('%'));
        return name.is_some_and(|(name, _)| is_name(name));
    };
    let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    is_name(name) || name.starts_with('(') || name.to_ascii_lowercase().starts_with("env:")
}

/// Why a text is no pattern for files, and the pattern that it may mean. `None` if nothing is wrong.
fn unusual(text: &str) -> Option<(String, String)> {
    let lower = text.to_ascii_lowercase();
    if let Some(prefix) = PREFIXES.iter().find(|prefix| lower.starts_with(**prefix)) {
        let rest = text[prefix.len()..].trim();
        let rest = match rest.trim_start_matches('/') {
            bare if rest.starts_with("//") => format!("/{bare}"),
            _ => rest.to_owned(),
        };
        return Some((format!("no path begins with {prefix}"), rest));
    }
    let mut begin = text.chars();
    if let (Some('a'..='z' | 'A'..='Z'), Some(':'), Some('/' | '\\')) =
        (begin.next(), begin.next(), begin.next())
    {
        return Some(("there are no drives".into(), text[2..].replace('\\', "/")));
    }
    if let Some(body) = text.strip_suffix(":*") {
        return Some(("`:*` is for commands".into(), body.to_owned()));
    }
    if let Some(sign) = text.chars().find(|c| PRINTED_QUOTES.contains(c)).filter(|sign| {
        text.starts_with(*sign) || text.ends_with(|c| PRINTED_QUOTES.contains(&c)) && !text.ends_with('’')
    }) {
        return Some((format!("a pattern has no quotes like {sign}"), text.replace(PRINTED_QUOTES, "")));
    }
    if text.starts_with('^') || text.ends_with('$') && !text.ends_with("\\$") {
        let bare = text.trim_start_matches('^').trim_end_matches('$');
        return Some(("it is a regular expression, and rules have globs".into(), bare.to_owned()));
    }
    if let Some((tool, rest)) = text.split_once('(')
        && FILE_TOOLS.iter().any(|name| name.eq_ignore_ascii_case(tool.trim()))
    {
        return Some(("it holds a second rule".into(), rest.trim_end_matches(')').to_owned()));
    }
    signs(text).or_else(|| words(text)).or_else(|| parts(text))
}

/// The signs of lists, of choices and of other systems that have no backslash before them.
fn signs(text: &str) -> Option<(String, String)> {
    let begins_path = |rest: &str| {
        rest.starts_with(['.', '/'])
            || rest.starts_with("~/")
            || rest.starts_with("*.")
            || rest.starts_with("**")
    };
    let (mut parentheses, mut braces) = (0_usize, 0_usize);
    let mut last = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        let (before, rest) = (&text[..at], &text[at + c.len_utf8()..]);
        let is_list = rest.is_empty() || rest.starts_with(char::is_whitespace) || before.ends_with(' ');
        match c {
            '\\' => {
                let next = chars.next().map(|(_, next)| next);
                let is_separator = next
                    .is_some_and(|next| next.is_alphanumeric() || matches!(next, '.' | '_'))
                    || rest.starts_with("**");
                if is_separator {
                    return Some((
                        "a path has `/`, not `\\`".into(),
                        text.replace('\\', "/").replace("/./", "/"),
                    ));
                }
                last = None;
                continue;
            }
            '\n' | '\t' | '\r' => return Some(("a pattern is one line".into(), before.to_owned())),
            // `[[:alpha:]]` would be read as a choice of these letters and signs.
            '[' if last == Some('[')
                && let Some(tail) = after_named_class(rest) =>
            {
                let head = &before[..before.len() - 1];
                return Some((
                    "a class has no name; write its letters, such as [a-z]".into(),
                    format!("{head}?{tail}"),
                ));
            }
            ',' | ';' if braces > 0 && is_list => {
                let list: Vec<&str> = text.split([',', ';']).map(str::trim).collect();
                return Some(("a choice has no blanks".into(), list.join(",")));
            }
            ',' | ';' if braces == 0 && (is_list || begins_path(rest)) => {
                return Some(("a rule has one pattern; write a rule for each".into(), before.to_owned()));
            }
            '|' if parentheses == 0 && braces == 0 => {
                return Some(("a rule has one pattern; write a rule for each".into(), before.to_owned()));
            }
            '|' => {
                let begin = text.find(['(', '{']).unwrap_or_default();
                let head = text[..begin].trim_end_matches(['@', '?', '*', '+', '!']);
                let list = text[begin..].replace('|', ",").replace('(', "{").replace(')', "}");
                return Some(("a choice is written {a,b}".into(), format!("{head}{list}")));
            }
            '(' if matches!(last, Some('@' | '!' | '+')) => {
                return Some((
                    "a choice is written {a,b}".into(),
                    format!(
                        "{}{{{}",
                        &before[..before.len() - 1],
                        rest.replacen(')', "}", 1).replace('|', ",")
                    ),
                ));
            }
            '(' => parentheses += 1,
            ')' if parentheses == 0 => {
                return Some(("it holds a second rule, or a `)` without its `(`".into(), before.to_owned()));
            }
            ')' => parentheses -= 1,
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            '.' if braces > 0 && rest.starts_with('.') && is_range(before, rest) => {
                return Some(("a choice of numbers is written {1,2,3}".into(), text.replace("..", ",")));
            }
            _ => {}
        }
        last = Some(c);
    }
    (parentheses > 0)
        .then(|| ("a `(` has no `)`".into(), text.split('(').next().unwrap_or_default().to_owned()))
}

/// What follows the brackets of `[[:alpha:]]`, `[[.a.]]` or `[[=e=]]`, from the text after its second bracket.
fn after_named_class(text: &str) -> Option<&str> {
    let ends = [(':', ":]"), ('.', ".]"), ('=', "=]")];
    let (_, end) = ends.into_iter().find(|(sign, _)| text.starts_with(*sign))?;
    let (_, rest) = text[1..].split_once(end)?;
    rest.split_once(']').map(|(_, tail)| tail)
}

/// Whether the dots between the two texts are those of `{1..9}`.
fn is_range(before: &str, rest: &str) -> bool {
    let from = before.rsplit('{').next().unwrap_or_default();
    let to = rest.trim_start_matches('.').split('}').next().unwrap_or_default();
    let is_end = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric());
    is_end(from) && is_end(to)
}

/// Several patterns with blanks or words between them.
fn words(text: &str) -> Option<(String, String)> {
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    let is_list_word = |word: &&&str| LIST_WORDS.contains(&word.to_ascii_lowercase().as_str());
    let why = || "a rule has one pattern; write a rule for each".to_owned();
    for (at, word) in words.iter().enumerate().skip(1) {
        // `a\ or b`: the blank is part of the name.
        if words[at - 1].ends_with('\\') {
            continue;
        }
        let is_between = at + 1 < words.len() && is_list_word(&word);
        let is_pattern = |word: &str| word.starts_with(['.', '/', '*']) || word.starts_with("~/");
        let is_second = *word != "/" && is_pattern(word) && (is_pattern(words[0]) || word.starts_with('/'));
        if is_between || is_second || words[at - 1].ends_with("**") {
            return Some((why(), words[..at].join(" ")));
        }
    }
    (text.contains("/ ") || text.contains(" /") && !text.contains("\\ /"))
        .then(|| ("there is a blank next to a `/`".to_owned(), text.replace(" /", "/").replace("/ ", "/")))
}

/// Parts of a path that another program reads as a folder and everything below it.
fn parts(text: &str) -> Option<(String, String)> {
    if !text.contains('/') {
        return None;
    }
    let mut nearest = Vec::new();
    let mut why = None;
    for part in text.split('/') {
        if part == "..." {
            why = Some("`...` is no wildcard".to_owned());
            nearest.push("**".to_owned());
            continue;
        }
        // The commas and brackets of a choice are ends of a part too.
        let is_whole = part.split(['{', '}', ',']).all(|piece| piece == "**" || !piece.contains("**"));
        if is_whole || part.contains("\\*") {
            nearest.push(part.to_owned());
            continue;
        }
        why = Some("`**` has a meaning only as a whole part of a path".to_owned());
        let begins = part.starts_with("**");
        let rest = part.trim_matches('*');
        let ends = part.ends_with("**") && !rest.is_empty();
        let one = rest.replace("**", "*/**/*");
        nearest.push(match (begins, ends) {
            (true, _) if rest.is_empty() => "**".to_owned(),
            (true, true) => format!("**/*{one}*/**"),
            (true, false) => format!("**/*{one}"),
            (false, true) => format!("{one}*/**"),
            (false, false) => one,
        });
    }
    why.map(|why| (why, nearest.join("/")))
}

#[cfg(test)]
mod tests {
    use crate::Rule;
    use types::permission::RuleKind;

    #[test]
    fn pattern_that_matches_no_file_is_refused_with_nearest_rule() {
        for (text, nearest) in [
            ("Edit(.env, *.pem)", "Edit(.env)"),
            ("Edit(.env,*.pem)", "Edit(.env)"),
            ("Edit(.env; .pem)", "Edit(.env)"),
            ("Edit(.env,)", "Edit(.env)"),
            ("Edit(.env *.pem)", "Edit(.env)"),
            ("Edit(src/** tests/**)", "Edit(src/**)"),
            ("Edit(.env or .pem)", "Edit(.env)"),
            ("Edit(secrets and keys)", "Edit(secrets)"),
            ("Edit(.env\n.pem)", "Edit(.env)"),
            ("Read(.env),Write(.env)", "Read(.env)"),
            ("Read(.env)|Read(x)", "Read(.env)"),
            ("Read(.env|x)", "Read(.env)"),
            ("Read(Read(.env))", "Read(.env)"),
            ("Read(src/(a)", "Read(src/)"),
            ("Edit(src\\secret\\**)", "Edit(src/secret/**)"),
            ("Edit(src\\**)", "Edit(src/**)"),
            ("Read(.\\.env)", "Read(./.env)"),
            ("Edit(C:\\keys\\x)", "Edit(/keys/x)"),
            ("Edit(file:.env)", "Edit(.env)"),
            ("Edit(file:///home/u/.env)", "Edit(/home/u/.env)"),
            ("Edit(path: .env)", "Edit(.env)"),
            ("Edit(glob:**/*.pem)", "Edit(**/*.pem)"),
            ("Edit(src:*)", "Edit(src)"),
            ("Edit(“.env”)", "Edit(.env)"),
            ("Edit(«.env»)", "Edit(.env)"),
            ("Edit(<.env>)", "Edit(.env)"),
            ("Edit(^src/x$)", "Edit(src/x)"),
            ("Edit(src/{a, b}.rs)", "Edit(src/{a,b}.rs)"),
            ("Edit(src/{a|b}.rs)", "Edit(src/{a,b}.rs)"),
            ("Edit(src/f{1..3}.rs)", "Edit(src/f{1,3}.rs)"),
            ("Edit(src/@(a|b).rs)", "Edit(src/{a,b}.rs)"),
            ("Edit(src/+(a).rs)", "Edit(src/{a}.rs)"),
            ("Edit(src/(a|b).rs)", "Edit(src/{a,b}.rs)"),
            ("Edit(src/**.rs)", "Edit(src/**/*.rs)"),
            ("Edit(./**.rs)", "Edit(./**/*.rs)"),
            ("Edit(src/a**)", "Edit(src/a*/**)"),
            ("Edit(src/...)", "Edit(src/**)"),
            ("Edit(src/[[:alpha:]]/x)", "Edit(src/?/x)"),
            ("Edit(key[[:digit:]].pem)", "Edit(key?.pem)"),
            ("Edit([[.a.]])", "Edit(?)"),
            ("Edit([[=e=]]/**)", "Edit(?/**)"),
            ("Edit(a/[[:alpha:]_])", "Edit(a/?)"),
            ("Edit(src / x)", "Edit(src/x)"),
            ("Edit($home/x)", "~/"),
            ("Edit(/home/$USER/x)", "~/"),
            ("Edit(%USERPROFILE%/x)", "~/"),
        ] {
            for parsed in [text.parse::<Rule>(), Rule::in_list(RuleKind::Deny, text)] {
                let error = parsed.expect_err(text).to_string();
                assert!(error.contains(nearest), "{text}: {error}");
            }
            // A suggested rule is accepted.
            if nearest.contains('(') && !nearest.ends_with("/)") {
                assert!(nearest.parse::<Rule>().is_ok(), "{nearest}: {:?}", nearest.parse::<Rule>());
            }
        }
    }

    #[test]
    fn names_with_such_signs_stay_possible() {
        for text in [
            "Edit(a,b.txt)",
            "Edit(RCS/x.c,v)",
            "Edit(app/(group)/**)",
            "Edit(app/(.)photo/**)",
            "Edit(app/@modal/**)",
            "Edit(app/[slug]/page.tsx)",
            "Edit(app/[[...slug]]/**)",
            "Edit(app/$id.tsx)",
            "Edit({{cookiecutter.name}}/**)",
            "Edit(*.{ts,tsx})",
            "Edit(src/{a/**,b/**})",
            "Edit(**.rs)",
            "Edit(**/*.rs)",
            "Edit(src/**/x/**)",
            "Edit(My Documents/**)",
            "Edit(Report (1).pdf)",
            "Edit(node_modules/@scope/x)",
            "Edit(c++/x)",
            "Edit(it's here)",
            "Edit(a b.txt)",
            "Edit(a\\, b)",
            "Edit(salt\\ and pepper)",
            "Edit(a\\|b)",
            "Edit(a\\)b)",
            "Edit(file\\:x)",
            "Edit(\\~/x)",
            "Edit(\\[id\\].ts)",
            "Edit(a\\ )",
            "Edit(//srv/x)",
            "Edit(Foo\\$)",
        ] {
            assert_eq!(text.parse::<Rule>().map(|rule| rule.to_string()), Ok(text.to_owned()));
        }
        // What is stored keeps its exact meaning.
        assert!(Rule::stored("Edit(.env, *.pem)").is_ok());
    }
}
