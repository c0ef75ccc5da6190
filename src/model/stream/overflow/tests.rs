use crate::stream::overflow::table::OVERFLOW_TEXTS;
use crate::stream::overflow::*;

#[test]
fn every_row_of_overflow_texts_compiles() {
    for row in OVERFLOW_TEXTS {
        assert!(Regex::new(&with_groups(row)).is_ok(), "{row}");
    }
    assert_eq!(TABLE.rows.len(), OVERFLOW_TEXTS.len());
    let patterns = [
        &TABLE.other_limits,
        &TABLE.suspect_words,
        &TABLE.other_errors,
        &TABLE.output_limit,
        &TABLE.request_words,
    ];
    assert!(patterns.iter().all(|pattern| pattern.is_some()));
}

fn read(text: &str) -> Option<Option<(u64, u64)>> {
    let report = read_overflow(text, [])?;
    Some(report.limits.map(|overflow| (overflow.limit, overflow.input)))
}

#[test]
fn overflow_texts_of_servers_are_recognised_with_numbers() {
    let cases = [
        // Anthropic
        (
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or \
             `max_tokens` and try again",
            Some((200_000, 190_000)),
        ),
        ("prompt is too long: 210,123 tokens > 200,000 maximum", Some((200_000, 210_123))),
        // OpenAI, Azure, DeepSeek, OpenRouter
        (
            "This model's maximum context length is 128000 tokens. However, you requested 130000 tokens (120000 in the \
             messages, 10000 in the completion). Please reduce the length.",
            Some((128_000, 120_000)),
        ),
        (
            "This model's maximum context length is 4097 tokens, however you requested 4800 tokens (3800 in your prompt; \
             1000 for the completion). Please reduce your prompt; or completion length.",
            Some((4_097, 3_800)),
        ),
        (
            "This endpoint's maximum context length is 131072 tokens. However, you requested about 150000 tokens (140000 \
             of text input, 10000 in the output). Please reduce the length of either one.",
            Some((131_072, 140_000)),
        ),
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            Some((8_192, 9_000)),
        ),
        (
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            None,
        ),
        // vLLM
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 4096 \
             tokens and your request has 1000 input tokens (4096 > 4096 - 1000).",
            Some((4_096, 1_000)),
        ),
        (
            "This model's maximum context length is 8192 tokens. However, your request has 9000 input tokens. Please \
             reduce the length of the input messages.",
            Some((8_192, 9_000)),
        ),
        (
            "You passed 5000 input tokens and requested 100 output tokens. However, the model's context length is only \
             4096 tokens, resulting in a maximum input length of 3996 tokens.",
            Some((4_096, 5_000)),
        ),
        (
            "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that \
             `max_model_len` is no smaller than the number of text tokens.",
            Some((4_096, 5_000)),
        ),
        // SGLang
        (
            "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of \
             5000 tokens: 4500 tokens from the input messages and 500 tokens for the completion.",
            Some((4_096, 4_500)),
        ),
        (
            "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
            Some((4_096, 5_000)),
        ),
        // TGI, Together
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and \
             512 `max_new_tokens`",
            Some((4_096, 4_000)),
        ),
        (
            "Input validation error: `inputs` must have less than 1024 tokens. Given: 1500",
            Some((1_024, 1_500)),
        ),
        // llama.cpp
        (
            "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
            Some((4_096, 5_000)),
        ),
        (
            "the request exceeds the available context size. try increasing the context size or enable context shift",
            None,
        ),
        ("Context size has been exceeded.", None),
        // Ollama
        ("prompt too long; exceeded max context length by 12 tokens", None),
        ("the input length exceeds the context length", None),
        // LM Studio
        (
            "Trying to keep the first 6292 tokens when context the overflows. However, the model is loaded with context \
             length of only 4096 tokens, which is not enough. Try to load the model with a larger context length",
            Some((4_096, 6_292)),
        ),
        ("The number of tokens to keep from the initial prompt is greater than the context length.", None),
        (
            "Reached context length of 4096 tokens with model (arch: qwen2) that does not currently support \
             mid-generation context overflow.",
            Some((4_096, 4_096)),
        ),
        // Gemini, Vertex
        (
            "The input token count (1189009) exceeds the maximum number of tokens allowed (1048575).",
            Some((1_048_575, 1_189_009)),
        ),
        (
            "Unable to submit request because the input token count is 40000 but model only supports up to 32768. Reduce \
             the input token count and try again.",
            Some((32_768, 40_000)),
        ),
        // Bedrock
        ("Input is too long for requested model.", None),
        (
            "The model returned the following errors: prompt is too long: 205000 tokens > 200000 maximum",
            Some((200_000, 205_000)),
        ),
        // Copilot, GitHub Models
        ("prompt token count of 391491 exceeds the limit of 128000", Some((128_000, 391_491))),
        ("Request body too large for gpt-4o model. Max size: 8000 tokens.", Some((8_000, 8_000))),
        // xAI
        (
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            Some((131_072, 537_812)),
        ),
        // Mistral
        (
            "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            Some((32_768, 65_673)),
        ),
        // Cohere
        (
            "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter \
             prompt",
            Some((4_081, 4_292)),
        ),
        // Groq, Cerebras
        ("Please reduce the length of the messages or completion.", None),
        (
            "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
            Some((8_192, 9_000)),
        ),
        // Fireworks
        ("The prompt is too long: 50000, model maximum context length: 32767", Some((32_767, 50_000))),
        // Qwen (DashScope)
        (
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
            Some((129_024, 129_024)),
        ),
        // Moonshot
        (
            "Invalid request: Your request exceeded model token limit: 131072 (requested: 133000)",
            Some((131_072, 133_000)),
        ),
        // MiniMax
        ("invalid params, context window exceeds limit (2013)", None),
        // Zhipu
        ("Prompt exceeds max length", None),
        ("Prompt 超长", None),
        // Volcengine Ark, Databricks
        ("Input length 150000 exceeds the maximum length 131072", Some((131_072, 150_000))),
        // LiteLLM
        ("litellm.ContextWindowExceededError: too long", None),
        // implausible numbers
        ("prompt is too long: 99999999999999999999999 > 5", None),
        ("prompt is too long: 18446744073709551615 tokens > 200000 maximum", None),
        ("prompt is too long: 0 tokens > 200000 maximum", None),
        ("input length and `max_tokens` exceed context limit: 1761234567890 + 20000 > 200000", None),
        ("prompt is too long: 2000000 tokens > 1000000 maximum", Some((1_000_000, 2_000_000))),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), Some(expected), "{text}");
    }
}

#[test]
fn every_text_of_the_page_about_such_errors_is_recognised_with_its_numbers() {
    let page = include_str!("../../../../docs/design/overflow-texts.md");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.contains("`` "))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    assert!(rows.len() > 30, "{}", rows.len());
    for row in rows {
        let [_, server, text, limit, input, source, _] = row[..] else { panic!("{row:?}") };
        let text = text.trim_matches('`').trim();
        let number = |cell: &str| cell.parse::<u64>().ok();
        assert_eq!(read(text), Some(number(limit).zip(number(input))), "{server}: {text}");
        assert!(!source.is_empty(), "{server}: {text}");
    }
}

/// Errors that a shorter request does not repair.
const OTHERS: [&str; 26] = [
    "bad key 12345 for 67890",
    "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
    "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-sonnet",
    "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 128000.",
    "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is \
     lower than 4096.",
    "Range of max_tokens should be [1, 8192]",
    "`max_tokens` must be greater than `thinking.budget_tokens`",
    "Request too large for model `llama-3` in organization `org` on tokens per minute (TPM): Limit 6000, Requested 7000",
    "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000.",
    "This request would exceed your organization's rate limit of 40,000 input tokens per minute",
    "Too many tokens, please wait before trying again.",
    "You exceeded your current quota, please check your plan and billing details",
    "Quota exceeded for metric: generate_content_free_tier_input_token_count, limit: 250000",
    "The access token expired",
    "Invalid token",
    "Could not validate your token, please try again",
    "context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
    "Unexpected token < in JSON at position 0",
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64",
    "Invalid 'tools': array too long. Expected an array with maximum length 128",
    "Invalid 'metadata.user': string too long. Expected a string with maximum length 512",
    "temperature: exceeds the maximum of 1",
    "Invalid schema for function 'x': context",
    "Extra inputs are not permitted: context_management",
    "model not found",
];

#[test]
fn other_limits_are_no_overflow() {
    for text in OTHERS {
        assert_eq!(read(text), None, "{text}");
    }
    let report = |code| read_overflow("no", [code]);
    assert!(report("context_length_exceeded").is_some());
    assert!(report("ContextWindowExceededError").is_some());
    assert!(report("exceed_context_size_error").is_some());
    assert_eq!(report("rate_limit_exceeded"), None);
    assert_eq!(report("string_above_max_length"), None);
}

#[test]
fn unknown_error_about_length_is_suspect() {
    for text in [
        "Context full",
        "your text is too long",
        "the request exceeds what this server takes",
        "n_tokens > n_ctx: 9000 tokens",
        "messages[5].content: string too long. Expected a string with maximum length 1048576",
        "prompt plus max_tokens is larger than the context",
        "sequence length 9000 is longer than 8192",
        "too many tokens",
        "内容超出长度限制",
        "the conversation doesn't fit into the 4096-token window of this model",
        "{\"detail\":\"ctx_len_error\"}",
        "Запрос слишком длинный",
    ] {
        assert!(is_suspect(text), "{text}");
    }
    for text in OTHERS.into_iter().chain(["internal error", "no", "content is not allowed"]) {
        assert!(!is_suspect(text), "{text}");
    }
}
