//! The models that files of agents and commands name. They are often names of another program.

use std::path::PathBuf;

use crate::shared::Components;
use project::extensions::Diagnostic;
use types::model::ModelRef;

/// The meaning of a model's name in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileModel {
    OfSession,
    /// `PROVIDER/MODEL`.
    Named(String),
    /// This daemon does not know it.
    Unknown,
}

/// Looks up a name: an alias of `[models.aliases]`, a pointer of `[models]`, or `PROVIDER/MODEL`.
pub(crate) fn resolve(components: &Components, name: &str) -> FileModel {
    let pointers = &components.settings.engine.models;
    if name.eq_ignore_ascii_case("inherit") {
        return FileModel::OfSession;
    }
    let mut aliases = pointers.aliases.iter();
    if let Some((_, model)) = aliases.find(|(alias, _)| alias.eq_ignore_ascii_case(name)) {
        return FileModel::Named(model.clone());
    }
    let text = match pointers.get(name) {
        Some(Some(model)) => model,
        Some(None) => return FileModel::Unknown,
        None => name,
    };
    match text.parse::<ModelRef>() {
        Ok(model) if components.models.providers().contains(&model.provider) => {
            FileModel::Named(text.to_owned())
        }
        _ => FileModel::Unknown,
    }
}

/// The names of models in files of one kind that this daemon does not know.
#[derive(Debug, Default)]
pub(crate) struct UnknownModels {
    names: Vec<String>,
    files: Vec<PathBuf>,
}

impl UnknownModels {
    /// Notes the model of a file, if it is not known.
    pub fn check(&mut self, components: &Components, name: Option<&str>, file: Option<&PathBuf>) {
        let (Some(name), Some(file)) = (name, file) else { return };
        if resolve(components, name) == FileModel::Unknown {
            self.files.push(file.clone());
            if !self.names.iter().any(|known| known == name) {
                self.names.push(name.to_owned());
            }
        }
    }

    /// One diagnostic for all files. `instead` is the model that they use.
    pub fn diagnostic(self, instead: &str) -> Option<Diagnostic> {
        let path = self.files.first()?.clone();
        let more = match self.files.len() - 1 {
            0 => String::new(),
            more => format!(" (also {more} more files)"),
        };
        let names = self.names.join(", ");
        let message = format!(
            "model: {names}{more}: not known here, so {instead} is used; [models.aliases] can say what it means"
        );
        Some(Diagnostic { path, message })
    }
}
