//! What a line of a crontab would be as a schedule: pure. Only commands of an agent are translated, and nothing is
//! guessed: a line with pipes, variables or several commands is refused.

mod words;

use std::path::PathBuf;

use crate::args::{JobContentArgs, ScheduleAddArgs};
use types::permission::Mode;
use words::{Word, quote, split_words};

/// Longest name that is made from a prompt, in characters.
const MAX_NAME_CHARS: usize = 40;

/// A translated line.
#[derive(Debug, Default)]
pub(super) struct Translation {
    pub schedule: ScheduleAddArgs,
    /// What was left out, for the user.
    pub notes: Vec<String>,
}

/// Translates the lines of a crontab, in their order. A zone that the crontab sets counts for the lines after it.
pub(super) fn translate_all(text: &str) -> Vec<(&str, Result<Translation, String>)> {
    let mut zones = Zones::default();
    let translated = |line| {
        if zones.read(line) {
            return None;
        }
        let translated = translate(line)?.map(|mut made| {
            made.schedule.timezone = zones.in_force();
            made
        });
        Some((line, translated))
    };
    text.lines().filter_map(translated).collect()
}

/// The variables of a crontab that set the zone of its patterns.
#[derive(Default)]
struct Zones {
    cron_tz: Option<String>,
    tz: Option<String>,
}

impl Zones {
    /// Takes over a variable. Returns whether the line sets one of both.
    fn read(&mut self, line: &str) -> bool {
        let Some((name, value)) = line.split_once('=') else { return false };
        let variable = match name.trim().trim_matches(['"', '\'']) {
            "CRON_TZ" => &mut self.cron_tz,
            "TZ" => &mut self.tz,
            _ => return false,
        };
        // A colon in front says that a file is meant, and names of zones are files.
        let value = value.trim().trim_matches(['"', '\'']).trim_start_matches(':');
        *variable = Some(value.to_owned()).filter(|value| !value.is_empty());
        true
    }

    fn in_force(&self) -> Option<String> {
        self.cron_tz.clone().or_else(|| self.tz.clone())
    }
}

/// Translates one line; `None` for an empty line, a comment, a variable, or a command that is no agent's. The error
/// says what an agent's command has that a schedule has not.
fn translate(line: &str) -> Option<Result<Translation, String>> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let fields = if line.starts_with('@') { 1 } else { 5 };
    let (cron, command) = split_fields(line, fields)?;
    let is_agent = ["claude", "codex", "agentctl"].iter().any(|name| command.contains(name));
    is_agent.then(|| translate_command(&cron, command))
}

/// The first fields of a line, joined by one space, and the rest.
fn split_fields(line: &str, count: usize) -> Option<(String, &str)> {
    let mut rest = line;
    let mut fields = Vec::with_capacity(count);
    for _ in 0..count {
        let (field, after) = rest.split_once(char::is_whitespace)?;
        // `NAME=VALUE` sets a variable of the crontab.
        if field.contains('=') {
            return None;
        }
        fields.push(field);
        rest = after.trim_start();
    }
    Some((fields.join(" "), rest)).filter(|(_, command)| !command.is_empty())
}

fn translate_command(cron: &str, command: &str) -> Result<Translation, String> {
    let mut words = split_words(command)?;
    let mut made = Translation::default();
    made.schedule.cron = Some(cron.to_owned());
    if words.first().is_some_and(|word| word.is("cd")) {
        let [_, folder, and] = take_words(&mut words)?;
        if !and.is("&&") {
            return Err("expected && after `cd FOLDER`".to_owned());
        }
        made.schedule.content.work_dir = Some(PathBuf::from(folder.text));
    }
    while words.first().is_some_and(|word| word.is_assignment()) {
        let variable = words.remove(0).text;
        // The value may be a secret.
        let name = variable.split('=').next().unwrap_or_default();
        made.notes.push(format!("left out: the variable {name} (a job has the environment of the daemon)"));
    }
    drop_redirections(&mut words, &mut made.notes);
    if let Some(operator) = words.iter().find(|word| word.is_operator) {
        return Err(format!(
            "{:?} cannot be translated; write a script or keep the line in cron",
            operator.text
        ));
    }
    let words: Vec<String> = words.into_iter().map(|word| word.text).collect();
    let Some((program, arguments)) = words.split_first() else {
        return Err("there is no command".to_owned());
    };
    match (program.rsplit('/').next().unwrap_or_default(), arguments) {
        ("claude", arguments) => read_flags(&CLAUDE, arguments, &mut made)?,
        ("codex", [exec, arguments @ ..]) if exec == "exec" || exec == "e" => {
            read_flags(&CODEX, arguments, &mut made)?;
        }
        ("agentctl", [run, arguments @ ..]) if run == "run" => read_flags(&AGENTCTL, arguments, &mut made)?,
        _ => return Err("expected `claude -p …`, `codex exec …` or `agentctl run …`".to_owned()),
    }
    let Some(prompt) = made.schedule.content.prompt.as_deref() else {
        return Err("there is no prompt; one from standard input cannot be translated".to_owned());
    };
    made.schedule.name = name_of(prompt);
    if made.schedule.content.work_dir.is_none() {
        made.notes.push("the folder is this one; cron would use your home folder".to_owned());
    }
    Ok(made)
}

/// What a flag of an agent becomes.
#[derive(Clone, Copy)]
enum Flag {
    Prompt,
    Model,
    Mode,
    Folder,
    Turns,
    Title,
    Usd,
    /// It has no value and changes nothing here.
    Ignored,
    /// It has a value and changes nothing here.
    IgnoredValue,
    /// It has no value, and the user hears that it was left out.
    LeftOut(&'static str),
}

type Flags = [(&'static str, Flag)];

const NO_SANDBOX: &str = "rules and the approval mode decide what a job may do";

const CLAUDE: [(&str, Flag); 14] = [
    ("-p", Flag::Ignored),
    ("--print", Flag::Ignored),
    ("--model", Flag::Model),
    ("--permission-mode", Flag::Mode),
    ("--max-turns", Flag::Turns),
    ("--max-budget-usd", Flag::Usd),
    ("--output-format", Flag::IgnoredValue),
    ("--verbose", Flag::Ignored),
    ("--dangerously-skip-permissions", Flag::LeftOut(NO_SANDBOX)),
    ("--allow-dangerously-skip-permissions", Flag::LeftOut(NO_SANDBOX)),
    ("-c", Flag::LeftOut("each job begins a new session")),
    ("--continue", Flag::LeftOut("each job begins a new session")),
    ("--no-session-persistence", Flag::Ignored),
    ("--fallback-model", Flag::IgnoredValue),
];

const CODEX: [(&str, Flag); 10] = [
    ("-m", Flag::Model),
    ("--model", Flag::Model),
    ("-C", Flag::Folder),
    ("--cd", Flag::Folder),
    ("--json", Flag::Ignored),
    ("--skip-git-repo-check", Flag::Ignored),
    ("--full-auto", Flag::LeftOut(NO_SANDBOX)),
    ("--dangerously-bypass-approvals-and-sandbox", Flag::LeftOut(NO_SANDBOX)),
    ("--yolo", Flag::LeftOut(NO_SANDBOX)),
    ("--color", Flag::IgnoredValue),
];

const AGENTCTL: [(&str, Flag); 15] = [
    ("-p", Flag::Prompt),
    ("-a", Flag::Mode),
    ("--approval-mode", Flag::Mode),
    ("-m", Flag::Model),
    ("--model", Flag::Model),
    ("-w", Flag::Folder),
    ("--work-dir", Flag::Folder),
    ("--max-usd", Flag::Usd),
    ("--max-turns", Flag::Turns),
    ("--title", Flag::Title),
    ("-d", Flag::Ignored),
    ("--background", Flag::Ignored),
    ("-q", Flag::Ignored),
    ("--quiet", Flag::Ignored),
    ("-o", Flag::IgnoredValue),
];

fn read_flags(flags: &Flags, arguments: &[String], made: &mut Translation) -> Result<(), String> {
    let Translation { schedule, notes } = made;
    let content: &mut JobContentArgs = &mut schedule.content;
    let mut arguments = arguments.iter();
    let mut is_text_only = false;
    while let Some(argument) = arguments.next() {
        if is_text_only || !argument.starts_with('-') || argument.len() == 1 {
            if argument == "-" || content.prompt.is_some() {
                return Err(format!("expected one prompt, got {argument:?} as well"));
            }
            content.prompt = Some(argument.clone());
            continue;
        }
        if argument == "--" {
            is_text_only = true;
            continue;
        }
        let (name, own_value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (argument.as_str(), None),
        };
        let Some((_, flag)) = flags.iter().find(|(known, _)| *known == name) else {
            return Err(format!("the flag {name} has no form in a schedule; write the schedule yourself"));
        };
        let mut value = || match own_value.clone().or_else(|| arguments.next().cloned()) {
            Some(value) => Ok(value),
            None => Err(format!("{name} needs a value")),
        };
        match flag {
            Flag::Prompt => content.prompt = Some(value()?),
            Flag::Model => match value()? {
                model if model.contains('/') => content.model = Some(model),
                model => notes
                    .push(format!("left out: the model {model} (name it as PROVIDER/MODEL with --model)")),
            },
            Flag::Mode => content.approval_mode = Some(approval_mode(&value()?)?),
            Flag::Folder => content.work_dir = Some(PathBuf::from(value()?)),
            Flag::Title => content.title = Some(value()?),
            Flag::Turns => content.max_turns = Some(number(name, &value()?)?),
            Flag::Usd => content.max_usd = Some(usd_micros(name, &value()?)?),
            Flag::Ignored => {}
            Flag::IgnoredValue => drop(value()?),
            Flag::LeftOut(reason) => notes.push(format!("left out: {name} ({reason})")),
        }
    }
    Ok(())
}

/// An approval mode, also as Claude Code writes it. More rights than the default are never taken over silently.
fn approval_mode(text: &str) -> Result<Mode, String> {
    match text {
        "default" => Ok(Mode::Default),
        "acceptEdits" | "accept_edits" => Ok(Mode::AcceptEdits),
        "plan" => Ok(Mode::Plan),
        "dontAsk" | "dont_ask" => Ok(Mode::DontAsk),
        _ => {
            Err(format!("the approval mode {text:?} has no form in a schedule; write the schedule yourself"))
        }
    }
}

fn number(name: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{name}: expected a number, got {text:?}"))
}

fn usd_micros(name: &str, text: &str) -> Result<u64, String> {
    let usd: f64 = text.parse().map_err(|_| format!("{name}: expected an amount, got {text:?}"))?;
    Ok(types::config_values::micros(usd))
}

/// The first words of a prompt as a name.
fn name_of(prompt: &str) -> String {
    let words = prompt.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = String::new();
    for word in words {
        if !name.is_empty() && name.chars().count() + word.chars().count() >= MAX_NAME_CHARS {
            break;
        }
        if !name.is_empty() {
            name.push('-');
        }
        name.extend(word.to_lowercase().chars().take(MAX_NAME_CHARS));
    }
    if name.is_empty() { "from-crontab".to_owned() } else { name }
}

fn take_words<const N: usize>(words: &mut Vec<Word>) -> Result<[Word; N], String> {
    if words.len() <= N {
        return Err("the command is not complete".to_owned());
    }
    let rest = words.split_off(N);
    let first = std::mem::replace(words, rest);
    first.try_into().map_err(|_| "the command is not complete".to_owned())
}

/// Drops redirections at the end: the result and the log of a job are kept anyway.
fn drop_redirections(words: &mut Vec<Word>, notes: &mut Vec<String>) {
    let Some(start) = words.iter().position(|word| word.is_operator && word.text.ends_with('>')) else {
        return;
    };
    let is_plain = |pair: &[Word]| match pair {
        [operator, target] => operator.is_operator && operator.text.ends_with('>') && !target.is_operator,
        _ => false,
    };
    let mut tail = words[start..].to_vec();
    tail.retain(|word| !(word.is_operator && word.text == "2>&1"));
    if tail.chunks(2).all(is_plain) {
        words.truncate(start);
        notes.push("left out: the redirection of the output (`agentctl jobs logs` shows it)".to_owned());
    }
}

impl Translation {
    /// The command that creates the schedule, to show and to copy.
    pub(super) fn command(&self) -> String {
        let ScheduleAddArgs { name, cron, timezone, content, .. } = &self.schedule;
        let mut words = vec!["agentctl jobs schedule add".to_owned(), quote(name)];
        let mut flag = |flag: &str, value: Option<String>| {
            words.extend(value.map(|value| format!("{flag} {}", quote(&value))));
        };
        flag("--cron", cron.clone());
        flag("--timezone", timezone.clone());
        flag("--work-dir", content.work_dir.as_ref().map(|dir| dir.display().to_string()));
        flag("--title", content.title.clone());
        flag("--model", content.model.clone());
        flag("--approval-mode", content.approval_mode.map(|mode| mode.name().to_owned()));
        flag("--max-usd", content.max_usd.map(|micros| (micros as f64 / 1e6).to_string()));
        flag("--max-turns", content.max_turns.map(|turns| turns.to_string()));
        flag("-p", content.prompt.clone());
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn translated(line: &str) -> (String, Vec<String>) {
        let made = translate(line).expect("an agent's line").unwrap_or_else(|why| panic!("{line}: {why}"));
        (made.command(), made.notes)
    }

    #[track_caller]
    fn refused(line: &str, expected: &str) {
        let why = translate(line).expect("an agent's line").expect_err(line);
        assert!(why.contains(expected), "{line}: {why}");
    }

    #[test]
    fn lines_of_agents_become_commands() {
        let check = |line: &str, expected: &str| assert_eq!(translated(line).0, expected, "{line}");
        check(
            "0 3 * * MON-FRI cd /src/app && claude -p 'Update the dependencies' --permission-mode acceptEdits",
            "agentctl jobs schedule add update-the-dependencies --cron '0 3 * * MON-FRI' --work-dir /src/app \
             --approval-mode accept_edits -p 'Update the dependencies'",
        );
        check(
            "@daily /usr/local/bin/codex exec -C /src/x --model openai/gpt-5 \"Say \\\"hi\\\"\" >> /tmp/log 2>&1",
            "agentctl jobs schedule add say-hi --cron @daily --work-dir /src/x --model openai/gpt-5 -p 'Say \"hi\"'",
        );
        check(
            "*/30  *\t* * * agentctl run --max-usd=0.5 -w /w -- '-5\\% of it isn'\\''t enough'",
            "agentctl jobs schedule add 5-of-it-isn-t-enough --cron '*/30 * * * *' --work-dir /w --max-usd 0.5 \
             -p '-5% of it isn'\\''t enough'",
        );
    }

    #[test]
    fn what_is_left_out_is_told() {
        let (command, notes) = translated(
            "0 3 * * * TOKEN=x claude --dangerously-skip-permissions --model opus -p Tidy >/dev/null",
        );
        assert!(!command.contains("bypass") && !command.contains("TOKEN"), "{command}");
        let starts = [
            "left out: the variable TOKEN ",
            "left out: the redirection",
            "left out: --dangerously",
            "left out: the model opus",
            "the folder is this one",
        ];
        assert_eq!(notes.len(), starts.len(), "{notes:?}");
        assert!(notes.iter().zip(starts).all(|(note, start)| note.starts_with(start)), "{notes:?}");
    }

    #[test]
    fn zone_of_the_crontab_counts_for_the_lines_after_it() {
        let text = "0 1 * * * claude -p a\nTZ = UTC\n0 2 * * * claude -p b\nCRON_TZ=\":Europe/Berlin\"\n\
                    0 3 * * * claude -p c\n0 4 * * * backup\nCRON_TZ=\n0 5 * * * claude -p d\nMAILTO=x";
        let zone =
            |(_, made): (&str, Result<Translation, String>)| made.expect("translated").schedule.timezone;
        let zones: Vec<Option<String>> = translate_all(text).into_iter().map(zone).collect();
        let zones: Vec<Option<&str>> = zones.iter().map(Option::as_deref).collect();
        assert_eq!(zones, [None, Some("UTC"), Some("Europe/Berlin"), Some("UTC")]);
        let made = translate_all("CRON_TZ=Asia/Tokyo\n@daily claude -p a").remove(0).1.expect("translated");
        assert!(made.command().contains("--cron @daily --timezone Asia/Tokyo "), "{}", made.command());
    }

    #[test]
    fn other_lines_are_not_translated() {
        for line in
            ["", "# claude -p x", "MAILTO=claude", "PATH=/a b c d e claude", "0 3 * * * backup.sh", "0 3 * *"]
        {
            assert!(translate(line).is_none(), "{line}");
        }
    }

    #[test]
    fn line_that_says_more_than_a_schedule_is_refused() {
        for (line, expected) in [
            ("0 3 * * * cat x | claude -p y", "\"|\""),
            ("0 3 * * * claude -p y && mail", "\"&&\""),
            ("0 3 * * * claude -p y > out; rm out", "\">\""),
            ("0 3 * * * claude -p \"$(cat x)\"", "the shell would replace '$'"),
            ("0 3 * * * claude -p `date`", "the shell would replace '`'"),
            ("0 3 * * * claude -p y%stdin", "standard input"),
            ("0 3 * * * claude -p 'y%z'", "standard input"),
            ("0 3 * * * claude -p 'y", "a quote is not closed"),
            ("0 3 * * * claude -p", "there is no prompt"),
            ("0 3 * * * claude -p a b", "expected one prompt"),
            ("0 3 * * * claude -p a --mcp-config x", "the flag --mcp-config has no form in a schedule"),
            ("0 3 * * * claude -p a --permission-mode bypassPermissions", "has no form in a schedule"),
            ("0 3 * * * codex resume x", "expected `claude -p …`"),
            ("0 3 * * * sh claude.sh", "expected `claude -p …`"),
            ("0 3 * * * claude --model", "--model needs a value"),
            ("0 3 * * * cd /x ; claude -p y", "expected && after"),
        ] {
            refused(line, expected);
        }
    }
}
