//! Templates of jobs: `jobs/NAME.md` in the user's configuration folder, and `.agentd/jobs/NAME.md` of a trusted project.
//!
//! The front matter has the parameters and fields of a job; the text below it is the prompt. The files are read again
//! for each use, because they are few and small, and the user may have just changed them. A file that cannot be used
//! gives a diagnostic and stops no other file. It keeps its name: otherwise a mistake in a project's template would run
//! the user's template of the same name.

mod parameters;
mod read;
mod text;

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::JobsError;
use project::extensions::{Diagnostic, ExtensionSource};
use session::{ExtensionFiles, Registry};
use types::job_request::JobRequest;
use types::job_template::{JobTemplate, TemplateDiagnostic, TemplateParameter};
use types::usage::Budgets;

/// A file that can be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// Name of the file without its ending.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its parameters by name.
    pub parameters: BTreeMap<String, TemplateParameter>,
    /// The owner of the file.
    pub source: ExtensionSource,
    /// The file.
    pub path: PathBuf,
    /// The fields of its jobs.
    fields: JobRequest,
    /// The text with names of parameters in it.
    body: String,
}

/// Why a request does not fit a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateProblem {
    /// Path of the request's field, for example `parameters.branch`.
    pub path: String,
    /// What is wrong and how to correct it.
    pub why: String,
}

impl From<TemplateProblem> for JobsError {
    fn from(problem: TemplateProblem) -> Self {
        Self::bad(problem.path, problem.why)
    }
}

/// The templates of the user, and those of a project.
#[derive(Clone, Debug, Default)]
pub struct Templates {
    templates: Vec<Template>,
    diagnostics: Vec<Diagnostic>,
    /// Files that are not used although their names can be found, with the reason.
    refused: BTreeMap<String, Diagnostic>,
}

impl Templates {
    /// Reads all templates: those of the user, and with a folder also those of its trusted project.
    pub async fn load(registry: &Registry, cwd: Option<&str>) -> Result<Self, JobsError> {
        let files = registry.job_template_files(cwd).await?;
        let limits = registry.shared().components().settings.engine.unattended.budgets();
        Ok(Self::parse(files, &limits))
    }

    /// The templates of these files. `limits` are those of `[permissions.unattended]`.
    fn parse(files: ExtensionFiles, limits: &Budgets) -> Self {
        let mut all = Self { diagnostics: files.diagnostics, ..Self::default() };
        for (source, of_folder) in files.folders {
            for file in of_folder {
                let path = file.path.clone();
                let name = file.name.join("/");
                match all.defined_by(&name) {
                    Some(other) => {
                        let message = format!("{name} is defined by {}", other.display());
                        all.diagnostics.push(Diagnostic { path, message });
                    }
                    None => match read::template(file, source, limits) {
                        Ok(template) => all.templates.push(template),
                        Err(message) => {
                            let diagnostic = Diagnostic { path, message };
                            all.diagnostics.push(diagnostic.clone());
                            all.refused.insert(name, diagnostic);
                        }
                    },
                }
            }
        }
        all.templates.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    fn defined_by(&self, name: &str) -> Option<&PathBuf> {
        let used = self.templates.iter().find(|template| template.name == name).map(|it| &it.path);
        used.or_else(|| self.refused.get(name).map(|refused| &refused.path))
    }

    /// The templates and the files that are not used, for clients.
    #[must_use]
    pub fn list(&self) -> (Vec<JobTemplate>, Vec<TemplateDiagnostic>) {
        let view = |template: &Template| JobTemplate {
            name: template.name.clone(),
            description: template.description.clone(),
            parameters: template.parameters.clone(),
            source: match template.source {
                ExtensionSource::User => "user".into(),
                ExtensionSource::Project => "project".into(),
            },
            path: template.path.display().to_string(),
        };
        let diagnostic = |it: &Diagnostic| TemplateDiagnostic {
            path: it.path.display().to_string(),
            message: it.message.clone(),
        };
        (self.templates.iter().map(view).collect(), self.diagnostics.iter().map(diagnostic).collect())
    }

    /// The template with this name.
    ///
    /// # Errors
    /// There is none, or its file cannot be used.
    pub fn find(&self, name: &str) -> Result<&Template, TemplateProblem> {
        if let Some(template) = self.templates.iter().find(|template| template.name == name) {
            return Ok(template);
        }
        let why = match self.refused.get(name) {
            Some(it) => format!("{} cannot be used: {}", it.path.display(), it.message),
            None => {
                let names: Vec<&str> = self.templates.iter().map(|it| it.name.as_str()).collect();
                let known = if names.is_empty() { "there is none".to_owned() } else { names.join(", ") };
                format!("there is no template {name:?}; known: {known}")
            }
        };
        Err(TemplateProblem { path: "template".into(), why })
    }
}

/// The request with its template put in, if it names one. Afterwards the files do not matter any more.
///
/// # Errors
/// There is no such template, a parameter is wrong, or the folder does not exist. The error has the path of the field.
pub async fn expand(registry: &Registry, request: JobRequest) -> Result<JobRequest, JobsError> {
    let Some(name) = &request.template else {
        return match request.parameters.keys().next() {
            Some(name) => Err(JobsError::bad(format!("parameters.{name}"), "only a template has parameters")),
            None => Ok(request),
        };
    };
    let cwd = Some(request.cwd.as_str()).filter(|cwd| !cwd.is_empty());
    let templates = Templates::load(registry, cwd).await?;
    let template = templates.find(name)?;
    Ok(apply(template, request)?)
}

/// The request with the template put in: the prompt is the template's text with the values of the parameters, and the
/// fields of the request apply before those of the template. The result does not depend on the file any more.
///
/// # Errors
/// The request has a prompt of its own, or a parameter is wrong, missing or unknown.
pub fn apply(template: &Template, request: JobRequest) -> Result<JobRequest, TemplateProblem> {
    if request.prompt.is_some() {
        let why = "it cannot stand next to prompt; leave one of them out";
        return Err(TemplateProblem { path: "template".into(), why: why.into() });
    }
    let values = parameters::values(&template.parameters, &request.parameters)?;
    let prompt = text::fill(&template.body, &values)
        .map_err(|why| TemplateProblem { path: "parameters".into(), why })?;
    let own = template.fields.clone();
    let has_time = request.run_at_ms.is_some() || request.delay.is_some();
    let budgets = match (request.budgets, own.budgets) {
        (Some(request), Some(own)) => Some(request.or(own)),
        (request, own) => request.or(own),
    };
    let labels = own.labels.into_iter().chain(request.labels).collect();
    Ok(JobRequest {
        prompt: Some(prompt),
        template: Some(template.name.clone()),
        parameters: request.parameters,
        cwd: if request.cwd.is_empty() { own.cwd } else { request.cwd },
        title: request.title.or(own.title),
        model: request.model.or(own.model),
        mode: request.mode.or(own.mode),
        agent: request.agent.or(own.agent),
        tools: request.tools.or(own.tools),
        system_prompt: request.system_prompt.or(own.system_prompt),
        budgets,
        output_schema: request.output_schema.or(own.output_schema),
        worktree: request.worktree.or(own.worktree),
        retry: request.retry.or(own.retry),
        priority: request.priority.or(own.priority),
        concurrency: request.concurrency.or(own.concurrency),
        unique: request.unique.or(own.unique),
        run_at_ms: request.run_at_ms,
        delay: request.delay.or(own.delay.filter(|_| !has_time)),
        start_deadline: request.start_deadline.or(own.start_deadline),
        on_complete: if request.on_complete.is_empty() { own.on_complete } else { request.on_complete },
        artifacts: if request.artifacts.is_empty() { own.artifacts } else { request.artifacts },
        labels,
        idempotency_key: request.idempotency_key,
    })
}

#[cfg(test)]
mod tests;
