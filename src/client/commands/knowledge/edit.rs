//! `agentctl knowledge graph add|edit|merge|rm`: changes of entities and relations.

use api::methods;

use super::Target;
use crate::args::{GraphChange, GraphEdit};
use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use api::params::{
    KnowledgeEntityMergeParams, KnowledgeEntityParams, KnowledgeEntityReply, KnowledgeRelationParams,
    KnowledgeRelationReply,
};

pub(super) async fn edit(target: &Target, edit: GraphEdit, out: &mut OutputStreams) -> Result<(), Failure> {
    match edit {
        GraphEdit::Add(args) => {
            let json = args.json;
            match part(target, args, None)? {
                GraphPart::Entity(params) => {
                    let reply = target.client.call::<methods::knowledge::EntityCreate>(&params).await?;
                    show_entity(&reply, "added", json, out)
                }
                GraphPart::Relation(params) => {
                    let reply = target.client.call::<methods::knowledge::RelationCreate>(&params).await?;
                    show_relation(&reply, "added", json, out)
                }
            }
        }
        GraphEdit::Edit { change: args, rename } => {
            let json = args.json;
            match part(target, args, rename)? {
                GraphPart::Entity(params) => {
                    let reply = target.client.call::<methods::knowledge::EntityUpdate>(&params).await?;
                    show_entity(&reply, "changed", json, out)
                }
                GraphPart::Relation(params) => {
                    let reply = target.client.call::<methods::knowledge::RelationUpdate>(&params).await?;
                    show_relation(&reply, "changed", json, out)
                }
            }
        }
        GraphEdit::Merge { sources, into, json } => {
            let params = KnowledgeEntityMergeParams {
                workspace: target.workspace.clone(),
                sources,
                target: into,
                idempotency_key: None,
            };
            let reply = target.client.call::<methods::knowledge::EntityMerge>(&params).await?;
            show_entity(&reply, "merged", json, out)
        }
        GraphEdit::Rm { names, json } => match part(target, GraphChange::of_names(names), None)? {
            GraphPart::Entity(params) => {
                let reply = target.client.call::<methods::knowledge::EntityDelete>(&params).await?;
                show_entity(&reply, "removed", json, out)
            }
            GraphPart::Relation(params) => {
                let reply = target.client.call::<methods::knowledge::RelationDelete>(&params).await?;
                show_relation(&reply, "removed", json, out)
            }
        },
    }
}

/// One name is an entity, two names are the ends of a relation.
#[derive(Debug)]
enum GraphPart {
    Entity(KnowledgeEntityParams),
    Relation(KnowledgeRelationParams),
}

fn part(target: &Target, change: GraphChange, new_name: Option<String>) -> Result<GraphPart, Failure> {
    let GraphChange { names, entity_type, keywords, description, weight, .. } = change;
    let refuse =
        |option: &str, what: &str| Err(Failure::usage(format!("{option} is for {what}; leave it out")));
    let workspace = target.workspace.clone();
    match names.other {
        None if keywords.is_some() => refuse("--keywords", "a relation, which has two names"),
        None if weight.is_some() => refuse("--weight", "a relation, which has two names"),
        None => Ok(GraphPart::Entity(KnowledgeEntityParams {
            workspace,
            name: names.name,
            new_name,
            entity_type,
            description,
            idempotency_key: None,
        })),
        Some(_) if new_name.is_some() => refuse("--rename", "an entity, which has one name"),
        Some(_) if entity_type.is_some() => refuse("--type", "an entity, which has one name"),
        Some(other) => Ok(GraphPart::Relation(KnowledgeRelationParams {
            workspace,
            source: names.name,
            target: other,
            keywords,
            description,
            weight,
            idempotency_key: None,
        })),
    }
}

fn show_entity(
    reply: &KnowledgeEntityReply,
    done: &str,
    json: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    if json {
        return Ok(out.json(reply)?);
    }
    let line =
        reply.entity.as_ref().map(|it| format!(" {} ({}): {}", it.name, it.entity_type, it.description));
    Ok(out.say(&escape::line(&format!("{done}{}", line.unwrap_or_default())))?)
}

fn show_relation(
    reply: &KnowledgeRelationReply,
    done: &str,
    json: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    if json {
        return Ok(out.json(reply)?);
    }
    let line =
        reply.relation.as_ref().map(|it| format!(" {} - {}: {}", it.source, it.target, it.description));
    Ok(out.say(&escape::line(&format!("{done}{}", line.unwrap_or_default())))?)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::{GraphArgs, GraphEdit};

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: GraphArgs,
    }

    fn parse(words: &[&str]) -> Result<GraphArgs, clap::Error> {
        Cli::try_parse_from([&["graph"], words].concat()).map(|cli| cli.args)
    }

    #[test]
    fn graph_shows_a_name_and_edits_by_subcommand() {
        for (words, name) in [
            (&[][..], None),
            (&["Parser"], Some("Parser")),
            (&["ad"], Some("ad")),
            (&["--", "add"], Some("add")),
        ] {
            let args = parse(words).expect("a name");
            assert!(args.edit.is_none() && args.name.as_deref() == name, "{words:?}: {args:?}");
        }
        let args = parse(&["add", "Parser", "--type", "type", "--description", "Reads."]).expect("an entity");
        assert!(matches!(args.edit, Some(GraphEdit::Add(add)) if add.names.other.is_none()));
        let args = parse(&["edit", "Parser", "Lexer", "--weight", "2"]).expect("a relation");
        assert!(matches!(args.edit, Some(GraphEdit::Edit { change, .. }) if change.weight == Some(2.0)));
        let args = parse(&["merge", "A", "B", "--into", "C"]).expect("a merge");
        assert!(matches!(args.edit, Some(GraphEdit::Merge { sources, .. }) if sources == ["A", "B"]));
        assert!(matches!(parse(&["rm", "A"]).expect("a name").edit, Some(GraphEdit::Rm { .. })));
        for words in [&["rm"][..], &["merge", "A"], &["add"], &["rm", "A", "B", "C"]] {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }
}
