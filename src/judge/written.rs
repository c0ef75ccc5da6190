//! Rules as people write them. The result is a text that means the same to the exact reader of stored rules.
//!
//! A rule that can match nothing is not kept: a deny rule that seems to protect something and does not is worse
//! than an error.

use super::shell::{CommandPattern, is_complete};
pub(super) use super::written_path::Problem;
use super::written_path::{FILE_TOOLS, path};
use types::invisible_chars::is_invisible;
use types::mcp_names::check_written_rule;
use types::tool::MCP_PREFIX;

/// Names that a rule may begin with: the tools, and the rules without a tool of their own. Names of MCP
/// tools are not in the table.
pub(super) const TOOLS: &[&str] = &[
    "Bash",
    "BashOutput",
    "KillBash",
    "Read",
    "Write",
    "Edit",
    "MultiEdit",
    "ApplyPatch",
    "NotebookEdit",
    "Delete",
    "Glob",
    "Grep",
    "LS",
    "WebFetch",
    "Task",
    "TodoWrite",
    "TodoRead",
    "AskUser",
    "ExitPlanMode",
    "Skill",
    "Memory",
    "KnowledgeSearch",
    "ToolSearch",
    "Unsandboxed",
    "Outside",
];

/// Other names of the same tools.
const OTHER_NAMES: &[(&str, &str)] = &[("Agent", "Task"), ("KillShell", "KillBash")];

/// The same rule as a text whose exact meaning is the one that its writer meant. A text that has not the form
/// of a rule is returned unchanged: the reader of rules reports it.
pub(super) fn normalise(text: &str) -> Result<String, Problem> {
    let text = text.trim();
    // The reader of rules reports a pattern after such a name.
    if text.starts_with(MCP_PREFIX) && !text.contains('(') {
        check_written_rule(text).map_err(Problem::MatchesNothing)?;
        return Ok(text.to_owned());
    }
    let (tool, inner) = match text.split_once('(') {
        None => (text, None),
        Some((tool, rest)) => match rest.strip_suffix(')') {
            Some(inner) => (tool.trim_end(), Some(inner)),
            None => return Ok(text.to_owned()),
        },
    };
    let has_form = tool.starts_with(|c: char| c.is_ascii_alphabetic())
        && tool.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if !has_form || tool.starts_with(MCP_PREFIX) {
        return Ok(text.to_owned());
    }
    let tool = tool_name(tool)?;
    let Some(inner) = inner else { return Ok(tool.to_owned()) };
    let inner = match tool {
        _ if inner.is_empty() => String::new(),
        "Bash" => command(inner)?,
        _ if FILE_TOOLS.contains(&tool) => path(tool, inner)?,
        _ => inner.to_owned(),
    };
    Ok(format!("{tool}({inner})"))
}

/// The tool's own spelling of its name.
fn tool_name(written: &str) -> Result<&'static str, Problem> {
    let same = |name: &&&str| name.eq_ignore_ascii_case(written);
    if let Some(tool) = TOOLS.iter().find(same) {
        return Ok(tool);
    }
    if let Some((_, tool)) = OTHER_NAMES.iter().find(|(other, _)| other.eq_ignore_ascii_case(written)) {
        return Ok(tool);
    }
    let known = TOOLS.iter().filter(|tool| **tool != "Outside").copied().collect::<Vec<_>>().join(", ");
    Err(Problem::MatchesNothing(format!(
        "there is no tool {written}; the tools are {known}, mcp__SERVER and mcp__SERVER__TOOL"
    )))
}

/// A byte of a command's text that the shell does not read as quoted.
#[derive(Default)]
struct Unquoted {
    /// Positions of `*`.
    stars: Vec<usize>,
    /// Positions of blanks.
    blanks: Vec<usize>,
    /// The sign whose partner is missing at the end: a quote, or a backslash.
    open: Option<char>,
}

fn unquoted(text: &str) -> Unquoted {
    let mut found = Unquoted::default();
    let mut quote = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('"') | None, '\\') => {
                if chars.next().is_none() {
                    found.open = Some('\\');
                    return found;
                }
            }
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '*') => found.stars.push(at),
            (None, ' ' | '\t') => found.blanks.push(at),
            (None, _) => {}
        }
    }
    found.open = quote;
    found
}

/// The pattern of a Bash rule, in the form that the exact reader understands.
fn command(inner: &str) -> Result<String, Problem> {
    let text = inner.trim();
    if let Some(c) = text.chars().find(|c| is_invisible(*c) && !matches!(c, '\n' | '\t' | '\0')) {
        return Err(Problem::MatchesNothing(format!(
            "it holds the invisible character U+{:04X}",
            u32::from(c)
        )));
    }
    let signs = unquoted(text);
    let is_end = |star: &usize| star + 1 == text.len();
    let (body, is_prefix) = match signs.stars.last().filter(|star| is_end(star)) {
        // Nothing can stand before a blank that is the first character: the text is trimmed.
        Some(star) if signs.blanks.contains(&star.wrapping_sub(1)) => (&text[..*star], true),
        Some(_) if text.len() == 1 => ("", true),
        Some(star) if text[..*star].ends_with(':') && unquoted(&text[..star - 1]).open.is_none() => {
            (&text[..star - 1], true)
        }
        _ => (text, false),
    };
    let body = body.trim_end();
    if body.is_empty() {
        let every = if is_prefix {
            "write Bash alone for every command"
        } else {
            "the pattern is blank; write Bash for every command"
        };
        return Err(Problem::Wrong(every.into()));
    }
    let signs = unquoted(body);
    if let Some(open) = signs.open {
        return Err(Problem::MatchesNothing(format!(
            "the `{open}` has no partner, so no command has this text"
        )));
    }
    if let Some(star) = signs.stars.first() {
        return Err(Problem::Wrong(format!(
            "an unquoted `*` has a meaning only at the end, after a blank or as `:*`; the nearest rule is {}, and \
             a quoted `*` is text",
            nearest_rule(body, *star)
        )));
    }
    if !is_prefix {
        return match is_complete(body) {
            true => Ok(body.to_owned()),
            false => Err(Problem::MatchesNothing(
                "it is not a complete command line, so no command has this text".into(),
            )),
        };
    }
    let last = body.rsplit([' ', '\t']).next().unwrap_or(body);
    if last.len() > 1 && last.ends_with(':') {
        let nearest = nearest_rule(body, body.len());
        return Err(Problem::MatchesNothing(format!(
            "no command has the word {last}; the nearest rule is {nearest}"
        )));
    }
    if GRAMMAR_WORDS.contains(&body.split_whitespace().next().unwrap_or_default()) {
        return Err(Problem::MatchesNothing(format!("{body} is part of the shell's grammar and no command")));
    }
    let pattern = format!("{body}:*");
    match CommandPattern::parse(&pattern) {
        Ok(_) => Ok(pattern),
        Err(problem) => {
            Err(Problem::Wrong(format!("{problem}; the nearest rule is {}", nearest_rule(body, body.len()))))
        }
    }
}

/// Words with which no command begins.
const GRAMMAR_WORDS: &[&str] = &[
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select",
    "function", "in", "coproc", "{", "}", "!", "[[", "]]",
];

/// The rule for all commands that begin with the words of `text` before the position `end`.
fn nearest_rule(text: &str, end: usize) -> String {
    let text = &text[..end];
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let is_cut = !text.ends_with([' ', '\t']);
    if let Some(last) = words.pop() {
        let last = if is_cut { last.trim_end_matches(':') } else { last };
        // The beginning of a path or an option is not a word of its own.
        let is_word = last.ends_with(|c: char| c.is_ascii_alphanumeric())
            && (words.is_empty() || !last.contains('/') && !last.starts_with('-'));
        if !is_cut || is_word {
            words.push(last);
        }
    }
    // The variables before a command are no part of it.
    words.drain(..words.iter().take_while(|word| word.contains('=')).count());
    while !words.is_empty() {
        let pattern = format!("{}:*", words.join(" "));
        if CommandPattern::parse(&pattern).is_ok() && !GRAMMAR_WORDS.contains(&words[0]) {
            return format!("Bash({pattern})");
        }
        words.pop();
    }
    "Bash".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        match (normalise(text), expected) {
            (Ok(got), Ok(expected)) => assert_eq!(got, expected, "{text:?}"),
            (Err(Problem::Wrong(why) | Problem::MatchesNothing(why)), Err(part)) => {
                assert!(why.contains(part), "{text:?}: {why} lacks {part:?}");
            }
            (got, _) => panic!("{text:?}: {got:?}"),
        }
    }

    #[test]
    fn star_at_end_of_command_means_any_further_words() {
        for (text, expected) in [
            ("Bash(rm *)", "Bash(rm:*)"),
            ("Bash(rm\t*)", "Bash(rm:*)"),
            ("Bash(git push *)", "Bash(git push:*)"),
            ("Bash( git push  * )", "Bash(git push:*)"),
            ("Bash(rm :*)", "Bash(rm:*)"),
            ("Bash(rm:* )", "Bash(rm:*)"),
            ("Bash(npm \"run\" *)", "Bash(npm \"run\":*)"),
            ("Bash(find \"*\" *)", "Bash(find \"*\":*)"),
            ("bash(rm *)", "Bash(rm:*)"),
            ("BASH", "Bash"),
            ("Bash (rm:*)", "Bash(rm:*)"),
            ("agent(reviewer)", "Task(reviewer)"),
            ("multiedit", "MultiEdit"),
            ("Bash(: *)", "Bash(::*)"),
            // A quoted or escaped star is text.
            ("Bash(ls '*')", "Bash(ls '*')"),
            ("Bash(ls \"*.rs\")", "Bash(ls \"*.rs\")"),
            ("Bash(ls \\*)", "Bash(ls \\*)"),
            ("Bash(find . -name '*.rs')", "Bash(find . -name '*.rs')"),
            ("Bash(echo x:\\*)", "Bash(echo x:\\*)"),
            ("Bash(make | tee log)", "Bash(make | tee log)"),
            ("Bash(echo \"a (b)\")", "Bash(echo \"a (b)\")"),
            (" Read( src/** ) ", "Read(src/**)"),
            ("read(.env)", "Read(.env)"),
            ("Read(a\\ )", "Read(a\\ )"),
            ("Edit(app/$id.tsx)", "Edit(app/$id.tsx)"),
            ("Edit(\\~root/x)", "Edit(\\~root/x)"),
            ("mcp__My-Server__x", "mcp__My-Server__x"),
            ("Unsandboxed(ls *)", "Unsandboxed(ls *)"),
        ] {
            check(text, Ok(expected));
            check(expected, Ok(expected));
        }
    }

    #[test]
    fn rule_that_matches_nothing_is_refused_with_nearest_rule() {
        for (text, part) in [
            ("Bash(git * push)", "Bash(git:*)"),
            ("Bash(git * push *)", "Bash(git:*)"),
            ("Bash(npm run test*)", "Bash(npm run test:*)"),
            ("Bash(*rm)", "nearest rule is Bash,"),
            ("Bash(* --version)", "nearest rule is Bash,"),
            ("Bash(rm*)", "Bash(rm:*)"),
            ("Bash(rm:**)", "Bash(rm:*)"),
            ("Bash(rm * *)", "Bash(rm:*)"),
            ("Bash(rm **)", "Bash(rm:*)"),
            ("Bash(rm -r*)", "Bash(rm:*)"),
            ("Bash(rm /tmp/*)", "Bash(rm:*)"),
            ("Bash(rm \\ *)", "Bash(rm:*)"),
            ("Bash(rm\\ *)", "nearest rule is Bash"),
            ("Bash(rm\u{a0}*)", "nearest rule is Bash"),
            ("Bash(echo x\\:*)", "Bash(echo:*)"),
            ("Bash(ls *.rs | wc -l)", "Bash(ls:*)"),
            ("Bash(git:* push)", "Bash(git:*)"),
            ("Bash(git:*, rm:*)", "Bash(git:*)"),
            ("Bash(a && rm *)", "Bash(a:*)"),
            ("Bash(rm \"$x\" *)", "Bash(rm:*)"),
            ("Bash(rm: *)", "Bash(rm:*)"),
            ("Bash(A=1 rm *)", "Bash(rm:*)"),
            ("Bash(*)", "Bash alone"),
            ("Bash(:*)", "Bash alone"),
            ("Bash( *)", "Bash alone"),
            ("Bash( :* )", "Bash alone"),
            ("Bash(**)", "nearest rule is Bash,"),
            ("Bash( )", "blank"),
            ("Bash(rm \"x)", "no partner"),
            ("Bash(rm 'x *)", "no partner"),
            ("Bash(rm x\\)", "no partner"),
            ("Bash(rm), Bash(mv)", "not a complete command"),
            ("Bash(rm &&)", "not a complete command"),
            ("Bash(| rm)", "not a complete command"),
            ("Bash(r\u{200b}m:*)", "U+200B"),
            ("Bash(for *)", "grammar"),
            ("Bsh(rm *)", "there is no tool Bsh"),
            ("WebSearch", "there is no tool WebSearch"),
            ("Read(\"src/**\")", "Read(src/**)"),
            ("Read( )", "blank"),
            ("Read(~root/x)", "\\~root/x"),
            ("Edit($HOME/.ssh/**)", "~/"),
            ("Edit(${HOME}/x)", "~/"),
        ] {
            check(text, Err(part));
        }
    }
}
