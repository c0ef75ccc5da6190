//! Tests of the command line: it is consistent, and strict about values.

use super::*;
use clap::CommandFactory as _;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split(' '))
}

#[test]
fn command_line_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn argument_values_are_validated_by_parser() {
    let check = |line: &str, expected: bool| assert_eq!(parse(line).is_ok(), expected, "{line}");
    check("agentctl run -a yolo hello", true);
    check("agentctl run -a reckless hello", false);
    check("agentctl run --max-usd 0.5 hello", true);
    check("agentctl run --max-usd -1 hello", false);
    check("agentctl logs x --since 2h", true);
    check("agentctl logs x --since 17", true);
    check("agentctl logs x --since soon", false);
    check("agentctl kill", false);
    check("agentctl kill --all", true);
    check("agentctl", true);
    check("agentctl -c", true);
    check("agentctl -c -r", false);
    check("agentctl run -c --background hello", false);
    check("agentctl ps --socket /s --no-start", true);
    check("agentctl ps -H ssh://ann@build", true);
    check("agentctl -H build -w /srv/shop", true);
    check("agentctl host use", false);
}

#[test]
fn max_usd_is_parsed_to_micros() {
    let Ok(Cli { command: Some(Command::Run(run)), .. }) = parse("agentctl run --max-usd 0.25 hello") else {
        panic!("not a run");
    };
    assert_eq!(run.turn.max_usd, Some(250_000));
}
