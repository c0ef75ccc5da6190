//! Sampling parameters of a request, by API and model.
//!
//! The rules of an API are in its row. OpenAI's reasoning models accept neither temperature nor `top_p`
//! (platform.openai.com, "Reasoning models", 2026-03): the table of models says `sampling = false`.

use crate::settings::{Api, ModelSettings};
use types::model::ModelRequest;
use types::sampling::{Sampling, Temperature, TopP};

/// The sampling settings of the request, or those configured for its model.
fn requested_sampling(request: &ModelRequest, settings: &ModelSettings) -> Sampling {
    request.sampling.or(settings.usual)
}

/// The settings that are sent. `thinks`: the request asks the model to think.
pub(crate) fn sent_sampling(
    api: Api,
    thinks: bool,
    request: &ModelRequest,
    settings: &ModelSettings,
) -> Sampling {
    match settings.sampling {
        true => (api.row().sampling)(requested_sampling(request, settings), thinks),
        false => Sampling::default(),
    }
}

/// A notice for users if the sent settings differ from the wanted ones.
pub(crate) fn omission_notice(
    api: Api,
    thinks: bool,
    request: &ModelRequest,
    settings: &ModelSettings,
) -> Option<String> {
    let (wanted, sent) =
        (requested_sampling(request, settings), sent_sampling(api, thinks, request, settings));
    if wanted == sent {
        return None;
    }
    let difference = |name: &str, wanted: Option<String>, sent: Option<String>| match (wanted, sent) {
        (Some(wanted), None) => Some(format!("{name} = {wanted} was not sent")),
        (Some(wanted), Some(sent)) if wanted != sent => {
            Some(format!("{name} = {sent} was sent for {wanted}"))
        }
        _ => None,
    };
    let of_temperature = |it: Option<Temperature>| it.map(|it| it.to_string());
    let of_share = |it: Option<TopP>| it.map(|it| it.to_string());
    let parts = [
        difference("temperature", of_temperature(wanted.temperature), of_temperature(sent.temperature)),
        difference("top_p", of_share(wanted.top_p), of_share(sent.top_p)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let why = if settings.sampling { "its API does not take that here" } else { "it takes neither of them" };
    Some(format!("{} to the model {}: {why}", parts.join(", "), request.model))
}

#[cfg(test)]
mod tests {
    use crate::anthropic::asks_to_think;
    use crate::request::sampling::*;
    use types::thinking::Thinking;

    fn request(temperature: Option<u16>, top_p: Option<u16>, thinking: Option<Thinking>) -> ModelRequest {
        ModelRequest {
            thinking,
            sampling: sampling(temperature, top_p),
            ..ModelRequest::new("p/m".parse().unwrap())
        }
    }

    fn sampling(temperature: Option<u16>, top_p: Option<u16>) -> Sampling {
        Sampling { temperature: temperature.and_then(Temperature::new), top_p: top_p.and_then(TopP::new) }
    }

    #[test]
    fn sampling_is_sent_per_api_and_dropped_values_reported() {
        use Api::{Anthropic, OpenAiChat, OpenAiResponses};
        let plain = ModelSettings::default();
        let thinks = ModelSettings { thinking: true, ..ModelSettings::default() };
        let neither = ModelSettings { sampling: false, ..ModelSettings::default() };
        let high = Some(Thinking::High);
        for (api, settings, thinking, wanted, expected) in [
            (OpenAiChat, &plain, None, (Some(1_500), Some(900)), (Some(1_500), Some(900))),
            (OpenAiResponses, &plain, None, (Some(0), Some(0)), (Some(0), Some(0))),
            (OpenAiChat, &thinks, high, (Some(600), Some(950)), (Some(600), Some(950))),
            (OpenAiResponses, &neither, None, (Some(300), Some(900)), (None, None)),
            (Anthropic, &plain, None, (Some(300), None), (Some(300), None)),
            (Anthropic, &plain, None, (Some(1_500), None), (Some(1_000), None)),
            (Anthropic, &plain, None, (None, Some(900)), (None, Some(900))),
            (Anthropic, &plain, None, (Some(300), Some(900)), (Some(300), None)),
            (Anthropic, &thinks, high, (Some(300), Some(900)), (None, None)),
            (Anthropic, &thinks, high, (Some(300), Some(950)), (None, Some(950))),
            (Anthropic, &thinks, Some(Thinking::Off), (Some(300), None), (Some(300), None)),
            // A model without known thinking is not asked to think.
            (Anthropic, &plain, high, (Some(300), None), (Some(300), None)),
            (Anthropic, &neither, None, (Some(300), None), (None, None)),
        ] {
            let model_request = request(wanted.0, wanted.1, thinking);
            let thinks = asks_to_think(&model_request, settings);
            let notice = omission_notice(api, thinks, &model_request, settings);
            assert_eq!(
                sent_sampling(api, thinks, &model_request, settings),
                sampling(expected.0, expected.1),
                "{api:?} {wanted:?} {thinking:?}"
            );
            assert_eq!(notice.is_some(), wanted != expected, "{notice:?}");
        }
        let notice =
            omission_notice(Anthropic, false, &request(Some(1_500), Some(900), None), &plain).expect("told");
        assert!(
            notice.starts_with("temperature = 1 was sent for 1.5, top_p = 0.9 was not sent to the model p/m"),
            "{notice}"
        );
    }

    #[test]
    fn configured_sampling_is_used_when_request_has_none() {
        let usual = ModelSettings { usual: sampling(Some(700), Some(800)), ..ModelSettings::default() };
        assert_eq!(
            sent_sampling(Api::OpenAiChat, false, &request(None, None, None), &usual),
            sampling(Some(700), Some(800))
        );
        assert_eq!(
            sent_sampling(Api::OpenAiChat, false, &request(Some(100), None, None), &usual),
            sampling(Some(100), Some(800))
        );
    }
}
