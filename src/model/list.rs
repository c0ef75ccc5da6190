//! The list of available models with their known properties.

use std::collections::BTreeSet;

use crate::catalog::builtin;
use crate::models::Models;
use types::model::{ModelRef, ModelView};

/// Source of a price that the configuration sets.
const CONFIGURED: &str = "configuration";

impl Models {
    /// Models with their known properties, in order: configured ones, `named` ones, and all models of the table
    /// from configured vendors. A provider may offer any number of other models.
    #[must_use]
    pub fn list(&self, named: &[String]) -> Vec<ModelView> {
        let mut names: BTreeSet<String> = named.iter().cloned().collect();
        names.extend(self.configured());
        for (provider, kind) in self.vendor_providers() {
            names.extend(builtin::vendor_models(kind).map(|name| format!("{provider}/{name}")));
        }
        names.iter().filter_map(|name| self.view(name)).collect()
    }

    fn view(&self, name: &str) -> Option<ModelView> {
        let model: ModelRef = name.parse().ok()?;
        let (facts, is_known) = self.look_up(&model);
        let configured = self.configured_facts(name).filter(|configured| configured.price.is_some());
        let (price_as_of, price_source) = match (configured, facts.price) {
            (Some(_), _) => (None, Some(CONFIGURED.into())),
            (None, Some(_)) => {
                let noted =
                    self.kind(&model.provider).and_then(|kind| builtin::price_source(kind, &model.model));
                noted.map_or((None, None), |(at, source)| (Some(at.into()), Some(source.into())))
            }
            (None, None) => (None, None),
        };
        Some(ModelView {
            model: name.to_owned(),
            pointers: Vec::new(),
            known: is_known,
            context_window: facts.context_window,
            max_output_tokens: facts.max_output_tokens,
            tools: facts.tools,
            streaming: facts.streaming,
            system_role: facts.system_role,
            thinking: facts.thinking,
            sampling: facts.sampling,
            vision: facts.vision,
            documents: facts.documents,
            price: facts.price,
            price_as_of,
            price_source,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::ModelFacts;
    use crate::list::*;
    use crate::settings::{Provider, ProviderKind, Settings};
    use types::usage::Price;

    #[test]
    fn model_list_shows_source_of_each_value() {
        let mut here = Provider::new(ProviderKind::OpenAiChat);
        here.base_url = Some("http://127.0.0.1:1/v1".into());
        let mine =
            ModelFacts { price: Some(Price { input: 1.0, ..Price::default() }), ..ModelFacts::default() };
        let models = Models::new(Settings {
            providers: [("vendor".into(), Provider::new(ProviderKind::Anthropic)), ("here".into(), here)]
                .into(),
            models: [("here/mine".into(), mine)].into(),
            ..Settings::default()
        })
        .expect("models");
        let list = models.list(&["here/gpt-4o".into(), "vendor/claude-next".into()]);
        let find =
            |name: &str| list.iter().find(|view| view.model == name).unwrap_or_else(|| panic!("{name}"));
        let table = find("vendor/claude-sonnet-4-5");
        assert!(table.known && table.price_as_of.as_deref() == Some("2026-03"), "{table:?}");
        assert!(
            table.price_source.as_deref().is_some_and(|source| source.starts_with("https://")),
            "{table:?}"
        );
        // Resellers have their own price for the same model.
        let resold = find("here/gpt-4o");
        assert_eq!((resold.known, resold.price, &resold.price_source), (true, None, &None));
        let mine = find("here/mine");
        assert_eq!(
            (mine.price.map(|price| price.input), mine.price_source.as_deref()),
            (Some(1.0), Some(CONFIGURED))
        );
        let stranger = find("vendor/claude-next");
        assert_eq!((stranger.known, stranger.price, stranger.context_window), (false, None, None));
        assert!(
            !list.iter().any(|view| view.model == "here/gpt-5"),
            "a server of one's own has its own models"
        );
    }
}
