//! The texts and codes of servers.

/// Codes of such errors, wherever a body or an event has its codes.
pub(super) const OVERFLOW_CODES: &[&str] = &[
    // OpenAI, Azure, Groq, Cerebras, LiteLLM and many others
    "context_length_exceeded",
    // LiteLLM
    "contextwindowexceedederror",
    // GitHub Copilot
    "model_max_prompt_tokens_exceeded",
    "max_prompt_tokens_exceeded",
    // GitHub Models
    "tokens_limit_reached",
    // llama.cpp
    "exceed_context_size_error",
    // Z.ai
    "model_context_window_exceeded",
    // Zhipu: "Prompt exceeds max length"
    "1261",
    // Baidu Qianfan: "the length of the prompt is too long"
    "336103",
    "336007",
    // Volcengine Ark
    "inputtextlengthexceeded",
];

/// Texts of such errors in lower case, the more specific ones first. `{limit}` is the size of the window, `{input}`
/// the size of the request without the answer, `{n}` any other number.
pub(super) const OVERFLOW_TEXTS: &[&str] = &[
    // Anthropic
    "input length and `?max_tokens`? exceed context limit: {input} \\+ {n} > {limit}",
    "exceed context limit",
    // Fireworks
    "prompt is too long: {input}, model maximum context length: {limit}",
    // Anthropic, Bedrock, Vertex, OpenRouter
    "prompt is too long: {input} tokens > {limit}",
    // Z.ai, Baidu, AI21, Ollama ("prompt too long; exceeded max context length by 12 tokens")
    "prompts? (tokens? )?(is )?too long",
    // Mistral
    "prompt contains {input} tokens.{0,40} too large for model with {limit} maximum context length",
    "too large for model with {limit} maximum context length",
    // vLLM, which writes about the output limit as well
    "maximum context length is {limit} tokens and your (request|prompt) (has|contains) {input} input tokens",
    "passed {input} input tokens and requested {n} output tokens.{0,40} context length is only {limit}",
    "context length is only {limit} tokens",
    "decoder prompt \\(length {input}\\) is longer than the maximum model length of {limit}",
    "prompt \\(length {input}\\).{0,40}maximum model length of {limit}",
    "maximum context length is {limit} tokens.{0,20}requested {n} output tokens and your prompt contains (at least )?{input} input tokens",
    // OpenAI, Azure, vLLM, DeepSeek, OpenRouter: the parts of the request in brackets
    "maximum context length (is|of) {limit} tokens.{0,60}requested (about )?{n} tokens \\({input} (in|of|from)",
    // SGLang
    "maximum context length of {limit} tokens.{0,60}total of {n} tokens: {input} tokens from the input",
    // OpenAI ("your messages resulted in"), vLLM ("your request has"), Together, LiteLLM
    "maximum context length (is|of) {limit} tokens.{0,80}?{input}",
    "exceeds? (the )?(model'?s )?maximum context length",
    "maximum context length is {limit}",
    "maximum context length exceeded",
    // SGLang
    "input length \\({input} tokens\\) exceeds the maximum allowed length \\({limit} tokens\\)",
    // Together, SGLang
    "input \\({input} tokens\\) is longer than the model'?s context length \\({limit} tokens\\)",
    // TGI, Together
    "inputs?`? tokens \\+ `?max_new_tokens`? must be <= {limit}. given: {input} `?inputs",
    "inputs?`? must have less than {limit} tokens. given: {input}",
    // llama.cpp
    "request \\({input} tokens\\) exceeds the available context size \\({limit} tokens\\)",
    "exceeds the available context size: {input} tokens > {limit}",
    "exceeds the available context size",
    "context size (has been )?exceeded",
    "input (prompt )?is too (big|large).{0,40}(kv|context) size",
    "context shift is disabled",
    // Ollama
    "input length exceeds (the |maximum |max )?context length",
    "exceeded (max |maximum )?context length",
    // LM Studio
    "keep the first {input} tokens when context the overflows.{0,80}context length of only {limit}",
    "when context the overflows",
    "greater than the context length",
    "reached context length of {limit} tokens",
    "n_keep: {input} >= n_ctx: {limit}",
    // TabbyAPI, ExLlama, oobabooga
    "prompt length {input} is greater than (the )?max_seq_len {limit}",
    "context length {limit} is shorter than.{0,40}prompt",
    // DS4
    "prompt has {input} tokens?, but the configured context size is {limit}",
    // llama-cpp-python
    "requested tokens \\({input}\\) exceed context window of {limit}",
    // Cloudflare Workers AI
    "exceeded this model context window limit \\({limit}\\)",
    // OpenAI, Azure, Copilot: "Your input exceeds the context window of this model"
    "exceed(s|ed)? (the |this )?(model'?s? )?({limit}-token )?context window",
    // MiniMax
    "context window exceeds limit",
    // Gemini, Vertex
    "input token count \\(?{input}\\)? exceeds the maximum number of tokens allowed \\(?{limit}",
    "input token count is {input} but (the )?model only supports up to {limit}",
    "input token count.{0,60}exceeds the max",
    // Bedrock: Anthropic, Amazon, Meta
    "input is too long( for requested model|\\.|$)",
    // OpenAI
    "input tokens exceed the configured limit of {limit} tokens.{0,3}your messages resulted in {input} tokens",
    // Bedrock
    "too many input tokens|input tokens exceed",
    // GitHub Copilot, GitHub Models
    "prompt token count of {input} exceeds the limit of {limit}",
    "request body too large for .{0,60} model. max size: {limit} tokens",
    // xAI
    "maximum prompt length is {limit} but the request contains {input} tokens",
    "maximum prompt length is {limit}",
    // DeepSeek, Kimi behind proxies
    "prompt tokens \\+ max_tokens exceeds?",
    // Cohere
    "total number of tokens.{0,60}cannot exceed {limit} - received {input}",
    "tokens in request more than max tokens allowed",
    // Groq, Cerebras
    "reduce the length of the (input )?(messages|prompt|input).{0,60}current length is {input} while limit is {limit}",
    "reduce the length of the (input )?(messages|prompt|input)",
    // Qwen (DashScope)
    "range of input length should be \\[{n}, {limit}\\]",
    // Moonshot
    "exceeded model token limit: {limit} \\(requested: {input}\\)",
    "exceeded model token limit|input token length too long|input token exceed the limit",
    // Zhipu, Volcengine Ark, Databricks, OpenRouter (Poolside), TensorRT-LLM
    "(prompt|input) (length )?(\\(?{input}\\)? )?exceeds (the )?(max|maximum) (allowed )?(input |prompt )?length( of)?( \\(?{limit})?",
    "number of input tokens {input} cannot exceed the total tokens limit {limit}",
    "prompt ?超长|输入(文本)?(长度)?(过长|超)|上下文长度超",
];

/// Texts of other errors that share words with such errors: rate limits, quotas and waits.
pub(super) const OTHER_LIMITS: &str = "per (minute|hour|day|second)|\\b[tr]p[md]\\b|rate.?limit|quota|too many requests|wait before|\
                            try again (later|in)|throttl";

/// Words that an unknown text about the window may contain.
pub(super) const SUSPECT_WORDS: &str = "context|tokens\\b|token (limit|count|length|budget)|too (long|large|big|many)|exceed|longer than|larger than|length|maximum|window\\b|n_ctx|\\bctx|doesn't fit|not fit|超|过长|长度|上限|контекст|длин";

/// Words of errors that a shorter request does not repair: keys, time limits, the output limit, the form of the
/// request, and single parameters.
pub(super) const OTHER_ERRORS: &str = "\\b(access|auth|bearer|invalid|expired|api|csrf|refresh|security|unexpected|session|id) ?tokens?\\b|\
     token (is |has )?(expired|invalid|missing)|api.?key|credential|authenticat|unauthori[sz]ed|permission|billing|credit|\
     deadline|time[d -]?out|cancel|connection|socket|\\bssl\\b|\\btls\\b|\
     temperature|top_p|stop sequence|tools?\\[|'tools|function\\.name|metadata|tool_call_id|\
     unsupported|not supported|unknown (field|parameter|argument)|unrecogni[sz]ed|extra inputs|not permitted|json|\
     schema|missing|(is|field) required|invalid (model|type)";

/// Words about the output limit, which a shorter request does not repair unless the error names the request as well.
pub(super) const OUTPUT_LIMIT: &str = "max.?(completion.?|output.?|new.?)?tokens|(output|completion|budget|thinking|maximum).?tokens|budget_tokens";

/// Words about the request.
pub(super) const REQUEST_WORDS: &str = "context|prompt|input|messages";
