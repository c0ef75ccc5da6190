//! `agentctl jobs templates`: the templates of jobs of this folder and of the user.

use crate::args::folder;
use crate::connection::connector::Connector;
use crate::connection::paths;
use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use crate::terminal::style::Tone;
use crate::terminal::table::{Table, column};
use api::methods;
use api::params::{JobTemplatesParams, JobTemplatesReply};
use types::job_template::{JobTemplate, TemplateParameter};

pub(super) async fn templates(reach: &Connector, json: bool, out: &mut OutputStreams) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let cwd = folder(&paths::current_folder()?, reach.machine())?;
    let params = JobTemplatesParams { cwd: Some(cwd) };
    let reply: JobTemplatesReply = client.call::<methods::job::Templates>(&params).await?;
    if json {
        return Ok(out.json(&reply)?);
    }
    if reply.templates.is_empty() {
        out.note(
            "no templates; write one to jobs/NAME.md in your configuration folder, or to .agentd/jobs/",
        )?;
    } else {
        let mut table = Table::new([
            column("TEMPLATE").between(8, 40),
            column("PARAMETERS").between(10, 60),
            column("DESCRIPTION").between(20, 120),
            column("SOURCE").between(6, 10).rank(1),
        ]);
        for template in &reply.templates {
            table.push([
                (Tone::Tool, escape::line(&template.name).into_owned()),
                (Tone::Plain, parameters(template)),
                (Tone::Plain, escape::line(&template.description).into_owned()),
                (Tone::Dim, escape::line(&template.source).into_owned()),
            ]);
        }
        table.print(out)?;
    }
    for diagnostic in &reply.diagnostics {
        out.note(&format!("{}: {}", escape::line(&diagnostic.path), escape::line(&diagnostic.message)))?;
    }
    Ok(())
}

/// The parameters as `jobs add` takes them; those in brackets may be left out.
fn parameters(template: &JobTemplate) -> String {
    let usage = |(name, parameter): (&String, &TemplateParameter)| {
        let value = match &parameter.choices {
            Some(choices) => {
                let words =
                    choices.iter().map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
                words.collect::<Vec<_>>().join("|")
            }
            None => parameter.kind.to_uppercase(),
        };
        match parameter.required {
            true => format!("{name}={value}"),
            false => format!("[{name}={value}]"),
        }
    };
    let all: Vec<String> = template.parameters.iter().map(usage).collect();
    escape::line(&all.join(" ")).into_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn parameters_are_shown_as_they_are_given() {
        let parameter = |kind: &str, required| TemplateParameter {
            kind: kind.into(),
            required,
            ..TemplateParameter::default()
        };
        let choices = Some(vec!["low".into(), 2.into()]);
        let level = TemplateParameter { choices, ..parameter("string", false) };
        let template = JobTemplate {
            name: "x".into(),
            description: String::new(),
            parameters: BTreeMap::from([
                ("issue".into(), parameter("integer", true)),
                ("level".into(), level),
            ]),
            source: "user".into(),
            path: "/x.md".into(),
        };
        assert_eq!(parameters(&template), "issue=INTEGER [level=low|2]");
    }
}
