//! Names of MCP servers and of their tools, as rules and lists of tools write them. A text names a tool by the names
//! that the server has itself, or by the name that models are offered.

/// Prefix of the names of all tools of MCP servers.
pub const MCP_PREFIX: &str = "mcp__";

/// Separates the name of a server from that of a tool.
const SEPARATOR: &str = "__";

/// A server's part of the names of its tools; `None` if no character of its name can be used.
#[must_use]
pub fn server_part(server: &str) -> Option<String> {
    let mut part = String::with_capacity(server.len());
    for c in plain(server).chars() {
        // `__` separates server and tool, so the part must not contain it.
        if c != '_' || !part.ends_with('_') {
            part.push(c);
        }
    }
    let part = part.trim_matches('_');
    (!part.is_empty()).then(|| part.to_owned())
}

/// A name with `_` in place of each character that models are not offered.
#[must_use]
pub fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect()
}

/// Whether a text may be a rule for MCP servers: `mcp__SERVER`, `mcp__SERVER__TOOL`, or one of them with a `*` at its
/// end, which stands for any rest.
///
/// # Errors
/// It names no server, or has a `*` elsewhere. The error is a sentence fragment for users.
pub fn check_rule(text: &str) -> Result<(), String> {
    let rest = text.strip_prefix(MCP_PREFIX).ok_or("it does not begin with mcp__")?;
    let begin = rest.strip_suffix('*').unwrap_or(rest);
    if begin.contains('*') {
        return Err("a `*` can stand only at the end, like mcp__SERVER__*".into());
    }
    let is_cut = rest.is_empty() || rest.starts_with(SEPARATOR) || rest.ends_with(SEPARATOR);
    if is_cut || text.chars().any(char::is_control) {
        return Err("expected mcp__SERVER or mcp__SERVER__TOOL".into());
    }
    Ok(())
}

/// As [`check_rule`], for a rule that is written now: a text that looks like a list or a pattern of another program is
/// no rule, because no tool has such a name. A server whose own name has such a sign is named with `_` instead.
///
/// # Errors
/// The text is not such a rule. The error is a sentence fragment for users.
pub fn check_written_rule(text: &str) -> Result<(), String> {
    check_rule(text)?;
    let rest = text.strip_prefix(MCP_PREFIX).unwrap_or(text);
    let (server, tool) = match rest.split_once(SEPARATOR) {
        Some((server, tool)) => (server, Some(tool)),
        None => (rest, None),
    };
    let is_of_server = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ' | '*');
    let of_no_tool = |c: char| "|,;{}()<>[]?^$\\\"'`".contains(c);
    let is_list = rest.contains(&format!(" {MCP_PREFIX}")) || rest.starts_with(MCP_PREFIX);
    let server_end = server.find(|c| !is_of_server(c));
    let tool_end = tool.and_then(|tool| tool.find(of_no_tool));
    let is_expression = rest.ends_with(".*");
    if server_end.is_none() && tool_end.is_none() && !is_expression && !is_list {
        return Ok(());
    }
    let first = |text: &str| text.split([' ', ',', '|']).next().unwrap_or_default().to_owned();
    let nearest = match (server_end, tool) {
        _ if is_list => format!("{}{SEPARATOR}*", first(server)),
        // `wx:danger`, `wx/danger`
        (Some(at), None) => {
            let is_tool = server[at..].starts_with([':', '/', '\\', '(']);
            let rest = server[at..].trim_matches(|c: char| !c.is_alphanumeric());
            let name = is_tool.then(|| first(rest)).filter(|name| !name.is_empty());
            format!("{}{SEPARATOR}{}", &server[..at], name.as_deref().unwrap_or("*"))
        }
        (Some(_), Some(tool)) => format!("{}{SEPARATOR}{tool}", plain(server)),
        (None, None) => format!("{}{SEPARATOR}*", first(server.trim_end_matches(".*"))),
        (None, Some(tool)) => {
            let begin = tool_end.map_or(tool, |at| &tool[..at]);
            let begin = first(begin.trim_end_matches(['.', '*']));
            let any = if is_expression
                || begin.is_empty()
                || tool_end.is_some_and(|at| at > 0 && !tool[at..].starts_with([',', ';', '|']))
            {
                "*"
            } else {
                ""
            };
            format!("{server}{SEPARATOR}{begin}{any}")
        }
    };
    Err(format!("no tool of a server has such a name; the nearest rule is {MCP_PREFIX}{nearest}"))
}

/// The names of one tool of a server.
#[derive(Clone, Copy, Debug)]
pub struct ToolNames<'n> {
    /// The name that models are offered.
    pub offered: &'n str,
    /// The server's name in the configuration.
    pub server: &'n str,
    /// The name on the server.
    pub tool: &'n str,
}

impl ToolNames<'_> {
    /// The server's names.
    fn servers(&self) -> Vec<String> {
        let mut names = vec![self.server.to_owned()];
        names.extend(server_part(self.server).filter(|part| part != self.server));
        names
    }

    /// The names that are made of those of the server: of the server alone, and of its tool.
    #[must_use]
    pub fn own(&self) -> Vec<String> {
        let of = |server: &String| {
            let server = format!("{MCP_PREFIX}{server}");
            [format!("{server}{SEPARATOR}{}", self.tool), server]
        };
        self.servers().iter().flat_map(of).collect()
    }

    /// Whether a text can mean the tool, or its server. A text for several tools means each of them.
    #[must_use]
    pub fn may_be_named_by(&self, text: &str) -> bool {
        let Some(rest) = text.strip_prefix(MCP_PREFIX) else { return false };
        // The offered name of a tool may have lost its separator, so the server of a cut name does not count.
        let of_offered = self.offered.strip_prefix(MCP_PREFIX).unwrap_or(self.offered);
        let server_of_offered = of_offered.split_once(SEPARATOR).map(|(server, _)| server);
        let servers = self.servers();
        if servers.iter().any(|server| server == rest) || server_of_offered == Some(rest) {
            return true;
        }
        let tools = [self.tool.to_owned(), plain(self.tool)];
        let mut names = servers
            .iter()
            .flat_map(|server| tools.iter().map(move |tool| format!("{server}{SEPARATOR}{tool}")))
            .chain([of_offered.to_owned()]);
        match rest.strip_suffix('*') {
            Some(begin) => {
                let is_server = |server: &String| format!("{server}{SEPARATOR}").starts_with(begin);
                servers.iter().any(is_server) || names.any(|name| name.starts_with(begin))
            }
            None => names.any(|name| name == rest),
        }
    }

    /// As [`Self::may_be_named_by`], without regard to the case of letters: for texts that restrict.
    #[must_use]
    pub fn may_be_named_in_any_case_by(&self, text: &str) -> bool {
        let [offered, server, tool] = [self.offered, self.server, self.tool].map(str::to_lowercase);
        let names = ToolNames { offered: &offered, server: &server, tool: &tool };
        self.may_be_named_by(text) || names.may_be_named_by(&text.to_lowercase())
    }

    /// Whether one text can mean this tool and also the other one, although their servers differ: the name of one
    /// server begins with the name of the other server and the separator.
    #[must_use]
    pub fn may_be_confused_with(&self, other: &ToolNames<'_>) -> bool {
        let begins = |long: &str, short: &str| {
            long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with(SEPARATOR))
        };
        self.server != other.server
            && self
                .servers()
                .iter()
                .any(|one| other.servers().iter().any(|other| begins(one, other) || begins(other, one)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_part_contains_no_separator() {
        assert_eq!(server_part("my.server"), Some("my_server".into()));
        assert_eq!(server_part("a__b"), Some("a_b".into()));
        assert_eq!(server_part("claude.ai Gmail"), Some("claude_ai_Gmail".into()));
        assert_eq!(server_part("___"), None);
    }

    #[test]
    fn text_names_tool_by_own_and_offered_names() {
        let long = "s".repeat(60);
        let cut = format!("mcp__{}_0a1b2c", &long[..50]);
        let weather = ToolNames { offered: "mcp__wx_9db321", server: "wx", tool: "获取天气" };
        let dotted = ToolNames { offered: "mcp__my_server__a_b", server: "my.server", tool: "a.b" };
        let of_long = ToolNames { offered: &cut, server: &long, tool: "read" };
        let double = ToolNames { offered: "mcp__a_b__c", server: "a__b", tool: "c" };
        for (names, text, expected) in [
            (weather, "mcp__wx", true),
            (weather, "mcp__wx_9db321", true),
            (weather, "mcp__wx__获取天气", true),
            (weather, "mcp__wx__*", true),
            (weather, "mcp__wx__获取*", true),
            (weather, "mcp__w", false),
            (weather, "mcp__wx__other", false),
            (weather, "mcp__wx_", false),
            (weather, "wx", false),
            (dotted, "mcp__my.server", true),
            (dotted, "mcp__my_server", true),
            (dotted, "mcp__my.server__a.b", true),
            (dotted, "mcp__my_server__a.b", true),
            (dotted, "mcp__my.server__a_b", true),
            (dotted, "mcp__my_server__a_b", true),
            (dotted, "mcp__my.server__a.*", true),
            (dotted, "mcp__*", true),
            (dotted, "mcp__my", false),
            (of_long, &format!("mcp__{long}"), true),
            (of_long, &format!("mcp__{long}__read"), true),
            (of_long, &format!("mcp__{long}__*"), true),
            (of_long, &cut, true),
            (of_long, &format!("mcp__{}", &long[..59]), false),
            (double, "mcp__a__b", true),
            (double, "mcp__a__b__c", true),
            (double, "mcp__a_b", true),
            (double, "mcp__a", false),
        ] {
            assert_eq!(names.may_be_named_by(text), expected, "{names:?} {text}");
        }
    }

    #[test]
    fn servers_whose_names_continue_each_other_are_confused() {
        let names = |server, tool| ToolNames { offered: "", server, tool };
        assert!(names("a", "b__c").may_be_confused_with(&names("a__b", "c")));
        assert!(names("a__b", "c").may_be_confused_with(&names("a", "x")));
        assert!(!names("a", "b").may_be_confused_with(&names("ab", "c")));
        assert!(!names("a", "b").may_be_confused_with(&names("a", "c")));
    }

    #[test]
    fn rule_text_names_a_server() {
        for good in ["mcp__wx", "mcp__my server__获取", "mcp__a__*", "mcp__a__get_*", "mcp__*"] {
            assert_eq!(check_rule(good), Ok(()), "{good}");
        }
        for bad in ["mcp__", "mcp____x", "mcp__a__", "mcp__*__x", "mcp__a__*b", "mcp__a\n", "x"] {
            assert!(check_rule(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn written_rule_with_signs_of_no_name_is_refused_with_nearest_rule() {
        for (text, nearest) in [
            ("mcp__wx:danger", "mcp__wx__danger"),
            ("mcp__wx::danger", "mcp__wx__danger"),
            ("mcp__wx/danger", "mcp__wx__danger"),
            ("mcp__wx:*", "mcp__wx__*"),
            ("mcp__wx/*", "mcp__wx__*"),
            ("mcp__wx(danger)", "mcp__wx__danger"),
            ("mcp__wx.*", "mcp__wx__*"),
            ("mcp__wx__.*", "mcp__wx__*"),
            ("mcp__wx__get.*", "mcp__wx__get*"),
            ("mcp__wx, mcp__b", "mcp__wx__"),
            ("mcp__wx mcp__b", "mcp__wx__"),
            ("mcp__wx|b", "mcp__wx__*"),
            ("mcp__wx__a,b", "mcp__wx__a"),
            ("mcp__wx__{a,b}", "mcp__wx__*"),
            ("mcp__wx__a|b", "mcp__wx__a"),
            ("mcp__wx__a?", "mcp__wx__a*"),
            ("mcp__wx:a__b", "mcp__wx_a__b"),
            ("mcp__\"wx\"", "mcp__"),
        ] {
            let why = check_written_rule(text).expect_err(text);
            assert!(why.contains(nearest), "{text}: {why}");
        }
        for good in [
            "mcp__wx",
            "mcp__*",
            "mcp__my.server",
            "mcp__claude.ai Gmail__send",
            "mcp__wx__get_*",
            "mcp__wx__a.b",
            "mcp__wx__a/b:c",
            "mcp__my server__获取",
        ] {
            assert_eq!(check_written_rule(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn restricting_text_names_tool_in_any_case() {
        let names = ToolNames { offered: "mcp__wx__Danger", server: "wx", tool: "Danger" };
        for text in ["mcp__WX", "mcp__wx__danger", "mcp__Wx__DANGER", "mcp__WX__*", "mcp__wx__Da*"] {
            assert!(names.may_be_named_in_any_case_by(text), "{text}");
        }
        assert!(!names.may_be_named_in_any_case_by("mcp__w"));
        assert!(!names.may_be_named_by("mcp__WX"));
    }
}
