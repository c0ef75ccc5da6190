//! The notes about the project in a folder, for clients.

use std::path::Path;

use crate::error::SessionError;
use crate::project_data::memory;
use crate::registry::Registry;
use project::workspace::{Memory, MemoryError};
use types::event::Origin;
use types::memory::MemoryNote;

impl Registry {
    /// The notes about a project without their texts, or one note with its text.
    ///
    /// # Errors
    /// The folder or the note does not exist, or the notes could not be read.
    pub async fn notes(&self, cwd: &str, name: Option<&str>) -> Result<Vec<MemoryNote>, SessionError> {
        let name = name.map(str::to_owned);
        self.with_memory(cwd, move |memory| match name {
            Some(name) => memory.read(&name).map(|note| vec![note]),
            None => memory.list(),
        })
        .await
    }

    /// Writes a note about a project, or replaces it.
    ///
    /// # Errors
    /// The folder does not exist, name or text are not allowed, or the note could not be written.
    pub async fn write_note(
        &self,
        cwd: &str,
        name: &str,
        text: &str,
        origin: Origin,
    ) -> Result<MemoryNote, SessionError> {
        tracing::info!(client = origin.client, name, cwd, "wrote a memory note");
        let (name, text) = (name.to_owned(), text.to_owned());
        self.with_memory(cwd, move |memory| memory.write(&name, &text)).await
    }

    /// Removes a note about a project.
    ///
    /// # Errors
    /// The folder or the note does not exist, or the note could not be removed.
    pub async fn remove_note(&self, cwd: &str, name: &str, origin: Origin) -> Result<(), SessionError> {
        tracing::info!(client = origin.client, name, cwd, "removed a memory note");
        let name = name.to_owned();
        self.with_memory(cwd, move |memory| memory.remove(&name)).await
    }

    async fn with_memory<T: Send + 'static>(
        &self,
        cwd: &str,
        work: impl FnOnce(&Memory) -> Result<T, MemoryError> + Send + 'static,
    ) -> Result<T, SessionError> {
        let cwd = self.folder(cwd).await?;
        let memory = memory(self.shared(), Path::new(&cwd));
        let result = tokio::task::spawn_blocking(move || work(&memory)).await;
        let result = result.unwrap_or_else(|error| Err(MemoryError::Io(error.to_string())));
        result.map_err(|error| match &error {
            MemoryError::Missing(..) => SessionError::NoSuchNote(error.to_string()),
            MemoryError::Text(_) => SessionError::BadParam("text", error.to_string()),
            MemoryError::Name(_) | MemoryError::Full => SessionError::BadParam("name", error.to_string()),
            MemoryError::Io(_) => SessionError::BadParam("cwd", error.to_string()),
        })
    }
}
