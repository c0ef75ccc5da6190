//! Notices for users about what a request leaves out. Each is reported once.

use super::Models;
use crate::request::sampling::omission_notice;
use crate::settings::{Api, ModelSettings};
use base::sync::lock;
use types::model::{ModelRef, ModelRequest};
use types::thinking::Thinking;

impl Models {
    /// The notice about an unknown model; once per model.
    pub(super) fn unknown_model_notice(&self, model: &ModelRef) -> Option<String> {
        let name = model.to_string();
        let is_new = lock(&self.inner.reported_unknown).insert(name.clone());
        is_new.then(|| {
            format!(
                "the model {name} is not known: it has no price here, and is expected to take tools and to stream; \
                 describe it in [model.\"{name}\"] of the configuration"
            )
        })
    }

    /// The notice about a model that is asked to think but is not known to do so; once per model.
    pub(super) fn reported_unthinking(
        &self,
        request: &ModelRequest,
        settings: &ModelSettings,
    ) -> Option<String> {
        let thinking = request.thinking.filter(|thinking| *thinking != Thinking::Off)?;
        let name = request.model.to_string();
        let reported = &self.inner.reported_unthinking;
        let is_new = !settings.thinking && lock(reported).insert(name.clone());
        is_new.then(|| {
            format!(
                "thinking = {thinking} was not asked of the model {name}: it is not known to think; \
                 [model.\"{name}\"] thinking = true in the configuration says that it does"
            )
        })
    }

    /// The notice about a sampling setting that was not sent; each text once.
    pub(super) fn reported_unsampled(
        &self,
        api: Api,
        request: &ModelRequest,
        settings: &ModelSettings,
    ) -> Option<String> {
        let thinks = (api.row().asks_to_think)(request, settings);
        let text = omission_notice(api, thinks, request, settings)?;
        let reported = &self.inner.reported_unsampled;
        lock(reported).insert(text.clone()).then_some(text)
    }

    /// The notices about tools that cannot be offered; each text once.
    pub(super) fn reported_unfit(&self, problems: Vec<String>) -> Vec<String> {
        let mut reported = lock(&self.inner.reported_unfit);
        problems.into_iter().filter(|problem| reported.insert(problem.clone())).collect()
    }
}
