//! The files with templates of jobs.

use std::path::PathBuf;

use super::Registry;
use crate::error::SessionError;
use crate::extension_files::{ExtensionFiles, load};

/// The folder of a project with templates of jobs.
const JOB_TEMPLATES: [&str; 1] = [".agentd/jobs"];

impl Registry {
    /// The files with templates of jobs: those of the user, and with a folder also those of its project.
    pub async fn job_template_files(&self, cwd: Option<&str>) -> Result<ExtensionFiles, SessionError> {
        let settings = &self.shared().components().settings;
        let user = settings.user_dir.iter().map(|folder| folder.join("jobs")).collect();
        let (cwd, project_folders): (_, &'static [&'static str]) = match cwd {
            Some(cwd) => (PathBuf::from(self.folder(cwd).await?), &JOB_TEMPLATES),
            None => (settings.home.clone(), &[]),
        };
        Ok(load(&self.shared_arc(), &cwd, project_folders, user, "templates").await?)
    }
}
