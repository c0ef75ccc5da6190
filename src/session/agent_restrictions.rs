//! Applies what the files of agents forbid to the verdicts on their calls. Nothing here allows a call.

use judge::{Policy, Rule, Rules, is_within, judge};
use types::mcp_names::ToolNames;
use types::permission::{Verdict, VerdictKind};
use types::subagent::AgentRestrictions;
use types::tool::{Subject, ToolChoice};

/// The rules that deny and ask, and the first text that is no rule. The calls of its session then need a request.
pub(super) fn rules(restrictions: &AgentRestrictions) -> (Rules, Option<String>) {
    let mut problem = None;
    let mut parsed = |texts: &[String]| {
        let rule = |text: &String| match text.parse::<Rule>() {
            Ok(rule) => Some(rule),
            Err(error) => {
                problem
                    .get_or_insert_with(|| format!("a restriction of the agent is not understood: {error}"));
                None
            }
        };
        texts.iter().filter_map(rule).collect::<Vec<_>>()
    };
    let rules = Rules { allow: Vec::new(), ask: parsed(&restrictions.ask), deny: parsed(&restrictions.deny) };
    (rules, problem)
}

/// The verdict on a call of an agent, at most as permissive as without its restrictions.
pub(super) fn restrict(
    verdict: Verdict,
    policy: &Policy<'_>,
    restrictions: &AgentRestrictions,
    tool: &str,
    subject: &Subject,
) -> Verdict {
    if restrictions.is_none() || verdict.verdict == VerdictKind::Deny {
        return verdict;
    }
    match forbidden(policy, restrictions, tool, subject) {
        Some(reason) => {
            Verdict { verdict: VerdictKind::Deny, rule: None, reason, suggestions: Vec::new(), ..verdict }
        }
        None => restrictions.modes.iter().fold(verdict, |verdict, mode| {
            let other = judge(&Policy { mode: *mode, ..*policy }, tool, subject);
            if strictness(other.verdict) > strictness(verdict.verdict) { other } else { verdict }
        }),
    }
}

/// The reason why the restrictions forbid a call.
fn forbidden(
    policy: &Policy<'_>,
    restrictions: &AgentRestrictions,
    tool: &str,
    subject: &Subject,
) -> Option<String> {
    let offers = |choice: &ToolChoice| match subject {
        Subject::Mcp { name, server, tool, .. } => {
            choice.offers_mcp(ToolNames { offered: name, server, tool })
        }
        _ => choice.offers(tool),
    };
    if !restrictions.tools.iter().all(offers) {
        return Some(format!("the file of the agent does not give it the tool {tool}"));
    }
    restrictions.only.iter().find_map(|texts| {
        // A text that is no rule covers no call.
        let only: Vec<Rule> = texts.iter().filter_map(|text| text.parse().ok()).collect();
        let is_understood = only.len() == texts.len();
        (!is_understood || !is_within(policy, &only, tool, subject))
            .then(|| format!("the file of the agent allows only {}", texts.join(", ")))
    })
}

const fn strictness(verdict: VerdictKind) -> u8 {
    match verdict {
        VerdictKind::Allow => 0,
        VerdictKind::Ask => 1,
        VerdictKind::Deny => 2,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use judge::{BypassGuard, FileFacts, Repository};
    use types::permission::Mode;

    fn check(
        mode: Mode,
        restrictions: &AgentRestrictions,
        tool: &str,
        subject: &Subject,
        expected: VerdictKind,
    ) {
        let rules = Rules::parse(&["Bash(ls:*)"], &[], &[] as &[&str]).expect("rules");
        let policy = Policy {
            mode,
            rules: &rules,
            grants: &[],
            workspace: Path::new("/w"),
            additional: &[],
            home: Path::new("/home/u"),
            safe_mode: false,
            safe_commands: true,
            repository: Repository::Top,
            bypass_guard: BypassGuard::Ask,
            key_folders: &[],
            file_facts: &FileFacts::default(),
        };
        let got = restrict(judge(&policy, tool, subject), &policy, restrictions, tool, subject);
        assert_eq!(got.verdict, expected, "{mode:?} {restrictions:?} {subject:?}: {got:?}");
    }

    #[test]
    fn restrictions_deny_and_never_allow() {
        use VerdictKind::{Allow, Ask, Deny};
        let command = Subject::command;
        let only_git = AgentRestrictions { only: vec![vec!["Bash(git:*)".into()]], ..Default::default() };
        check(Mode::Bypass, &only_git, "Bash", &command("git push"), Allow);
        check(Mode::Default, &only_git, "Bash", &command("git push"), Ask);
        check(Mode::Bypass, &only_git, "Bash", &command("rm x"), Deny);
        check(Mode::Default, &only_git, "Bash", &command("ls -l"), Deny);
        let broken = AgentRestrictions { only: vec![vec!["Bash(".into()]], ..Default::default() };
        check(Mode::Bypass, &broken, "Bash", &command("ls"), Deny);
        let list = |allow: Option<&[&str]>, deny: &[&str]| AgentRestrictions {
            tools: vec![ToolChoice {
                allow: allow.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
                deny: deny.iter().map(|name| (*name).to_owned()).collect(),
            }],
            ..Default::default()
        };
        check(Mode::Bypass, &list(Some(&["Read"]), &[]), "Bash", &command("ls"), Deny);
        check(Mode::Bypass, &list(None, &["Bash"]), "Bash", &command("ls"), Deny);
        check(Mode::Default, &list(Some(&["Bash"]), &[]), "Bash", &command("ls"), Allow);
        check(Mode::Default, &list(Some(&["Bash"]), &[]), "Bash", &command("rm x"), Ask);
        let weather = Subject::Mcp {
            name: "mcp__wx_9db321".into(),
            server: "wx".into(),
            tool: "获取天气".into(),
            digest: String::new(),
            is_changed: false,
            confusable: Vec::new(),
        };
        for (choice, expected) in [
            (list(Some(&["mcp__wx__*"]), &[]), Allow),
            (list(Some(&["mcp__wx"]), &[]), Allow),
            (list(Some(&["mcp__other"]), &[]), Deny),
            (list(None, &["mcp__wx"]), Deny),
            (list(None, &["mcp__wx__获取天气"]), Deny),
        ] {
            check(Mode::Bypass, &choice, "mcp__wx_9db321", &weather, expected);
        }
        let plan = AgentRestrictions { modes: vec![Mode::Plan], ..Default::default() };
        check(Mode::Bypass, &plan, "Bash", &command("rm x"), Deny);
        check(Mode::DontAsk, &plan, "Bash", &command("rm x"), Deny);
        let asks = AgentRestrictions { modes: vec![Mode::Default], ..Default::default() };
        check(Mode::Bypass, &asks, "Bash", &command("rm x"), Ask);
        check(Mode::DontAsk, &asks, "Bash", &command("rm x"), Deny);
        let open = AgentRestrictions { modes: vec![Mode::Bypass], ..Default::default() };
        check(Mode::Default, &open, "Bash", &command("rm x"), Ask);
    }

    #[test]
    fn restriction_that_is_no_rule_is_a_problem() {
        let restrictions =
            AgentRestrictions { deny: vec!["Bash(".into(), "Write".into()], ..Default::default() };
        let (rules, problem) = rules(&restrictions);
        assert_eq!(rules.deny.len(), 1);
        assert!(problem.expect("a problem").contains("Bash("));
    }
}
