# Printed from the daemon's OpenRPC document; do not edit.
"""Requests and replies are JSON-RPC 2.0 objects, one a line or with LSP framing, on the daemon's Unix socket. Unknown parameters are refused. Readers ignore fields, events and values that they do not know: they may be added within a protocol version, and nothing is removed or changes its meaning. A field that is not required is left out when it has no value; in parameters, null means the same. Integers are at most 2^53-1. A value of an event that exceeds 64 KiB is cut and listed in `truncated_fields`; `session.blob` returns the whole. Events with `x-pruned` leave the journal when their item completes, so a later replay lacks them; all others are permanent."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, Protocol, TypeAlias, TypedDict, overload

PROTOCOL_VERSION = 1


class Ablation(TypedDict):
    """Switches for the optimisations of a session, to measure their effect. `true` turns an optimisation off. The switches are fixed when the session is created."""

    auto_compaction: NotRequired[bool]
    """No compaction unless a client requests it."""

    auto_memory: NotRequired[bool]
    """No automatic memory."""

    background_tasks: NotRequired[bool]
    """No commands in the background."""

    compaction: NotRequired[bool]
    """No compaction at all."""

    interleaved_thinking: NotRequired[bool]
    """No thinking between tool calls of one answer, if the provider has such a setting."""

    reminders: NotRequired[bool]
    """No reminders for the model."""

    streaming_execution: NotRequired[bool]
    """Tool calls start only after the model has written its whole answer."""

    thinking: NotRequired[bool]
    """No thinking, even if a session or turn requests it."""


class AbortParams(TypedDict):
    """`session.abort`"""

    call_id: NotRequired[CallId]
    """The only tool call to stop; the turn continues."""

    idempotency_key: NotRequired[str]
    """The same key with the same parameters returns the same `stopped`, and stops no work that started later."""

    session_id: SessionId
    """Id of the session."""

    turn_id: NotRequired[TurnId]
    """The turn to stop; by default the running turn. If another turn runs, the daemon refuses the abort."""


class AbortReply(TypedDict):
    """Reply of `session.abort`: the work has stopped."""

    stopped: list[str]
    """Ids of the turn and tool calls that were stopped; empty if nothing ran."""

    survivors: list[int]
    """Process ids that could not be stopped."""

# How a submit was accepted.
AcceptedState: TypeAlias = "Literal['running', 'queued', 'steered', 'completed']"


class AgentListParams(TypedDict):
    """`agent.list`"""

    cwd: str
    """The folder of the sessions."""


class AgentListReply(TypedDict):
    """Reply of `agent.list`"""

    agents: list[AgentView]
    """The agents, by descending priority: project, user, built-in."""

    diagnostics: list[FileDiagnostic]
    """Files with agents that the daemon cannot use, or uses only in part."""


class AgentProfile(TypedDict):
    """The agent as which a session works."""

    name: str
    """Its name."""

    prompt: NotRequired[str]
    """Its instructions for the model, a part of the system prompt."""

    restrictions: NotRequired[AgentRestrictions]
    """What its definition forbids."""


class AgentRestrictions(TypedDict):
    """What the definitions of an agent, and of the agents that started it, forbid. It never allows a call. No option of the session and no answer of a user removes it."""

    ask: NotRequired[list[str]]
    """Rules for calls that always need a permission request."""

    deny: NotRequired[list[str]]
    """Rules that deny calls."""

    modes: NotRequired[list[Mode]]
    """Modes by which each call is judged as well; the strictest verdict counts."""

    only: NotRequired[list[list[str]]]
    """Lists of rules such as `Bash(git:*)`. In each list that has rules for the tool of a call, one must cover it."""

    tools: NotRequired[list[ToolChoice]]
    """Lists of tools. Each of them must offer the tool of a call."""

# The owner of an agent's definition.
AgentSource: TypeAlias = "Literal['built_in', 'user', 'project']"


class AgentView(TypedDict):
    """One agent."""

    color: NotRequired[str]
    """The colour in which clients show it."""

    denied_tools: NotRequired[list[str]]
    """Names of tools that it does not have."""

    description: str
    """When to use it."""

    max_turns: NotRequired[int]
    """Maximum number of model calls of a task."""

    mode: NotRequired[Mode]
    """Approval mode that it has at most."""

    model_name: NotRequired[str]
    """Its model: `PROVIDER/MODEL`, a pointer of `[models]`, one of `[models.aliases]`, or `inherit` for the model of the session. If it is absent or not known, the pointer `task` applies, or else the session's model."""

    name: str
    """Its name, as its file has it."""

    path: NotRequired[str]
    """Its file; absent for a built-in agent."""

    slug: NotRequired[str]
    """The name to type: `subagent_type` of the tool `Task`, `agent` of `session.create`. The name is accepted there as well."""

    source: AgentSource
    """The owner of its definition."""

    tools: list[str]
    """Its tools, such as `Read` or `Bash(git:*)`; `['*']` for all."""


class AnswerError(TypedDict):
    """Why one of several answers was refused."""

    code: int
    """The JSON-RPC error number."""

    data: Any
    """`kind` and further members."""

    message: str
    """The error, and how to fix it."""


class AnswerParams(TypedDict):
    """`session.answer`"""

    answers: NotRequired[list[UserAnswer]]
    """For the kind `question`: one answer for each of its questions, in their order."""

    choice: NotRequired[str]
    """For the kinds `unknown_outcome`, `resume` and `repeated_call`: one of the question's options, `continue` or `abort`."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the same reply."""

    request_id: QuestionId
    """Id of the question."""


class AnswerReply(TypedDict):
    """Reply of `session.answer` and `session.feedback`: the answer is on disk."""

    seq: int
    """Seq of `question.resolved` or `feedback.completed`."""

    session_id: SessionId
    """Id of the session."""


class ApproveParams(TypedDict):
    """`session.approve`: one answer, or a list of them in `answers`."""

    answers: NotRequired[list[ApproveParams]]
    """1 to 256 answers, each of which is accepted or refused separately. Only `idempotency_key` may be present with them."""

    decision: NotRequired[Decision]
    """Allow or deny; required without `answers`."""

    digest: NotRequired[str]
    """The `digest` of the request that the user saw: the answer is refused if the pending request differs."""

    feedback: NotRequired[str]
    """Feedback for the model."""

    grant: NotRequired[str]
    """The grant to give with scope `session` or `project`; by default the narrowest suggestion."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the same reply."""

    mode: NotRequired[Mode]
    """With `allow` of a request of kind `plan`: the mode that follows plan mode; by default `default`."""

    no_approver: NotRequired[bool]
    """With `deny`: the client has no user to ask. The action of `[permissions.unattended] on_timeout` applies at once, and the model learns that no user decided. If the action is `pause`, the answer is refused (`path` names this field), and the request stays pending."""

    request_id: NotRequired[PermissionId]
    """Id of the request; required without `answers`."""

    scope: NotRequired[Scope]
    """How long an allow is valid."""

    stop: NotRequired[bool]
    """With `deny`: the turn ends as `permission_denied`."""

    updated_input: NotRequired[Any]
    """With `allow` and scope `once`: arguments that replace the model's. They are prepared and judged like the model's arguments. The history keeps the model's arguments, and the result reports the change."""

# Reply of `session.approve`: accepted answers are on disk.
ApproveReply: TypeAlias = "Approved | ApproveReplyResults"


class ApproveReplyResults(TypedDict):
    """Reply to `answers`."""

    results: list[ApproveResult]
    """The result of each answer, in their order."""


class ApproveResult(TypedDict):
    """The result of one of several answers: accepted, or refused with an `error` as in a separate reply."""

    error: NotRequired[AnswerError]
    """Present if the answer was refused."""

    grant: NotRequired[str]
    """The grant that was stored, if any."""

    request_id: NotRequired[PermissionId]
    """The request; absent if the answer named none."""

    seq: NotRequired[int]
    """Seq of `permission.resolved`."""

    session_id: NotRequired[SessionId]
    """Id of the session."""


class Approved(TypedDict):
    """An accepted answer."""

    grant: NotRequired[str]
    """The grant that was stored, if any."""

    seq: int
    """Seq of `permission.resolved`."""

    session_id: SessionId
    """Id of the session."""


class ArchiveParams(TypedDict):
    """`session.archive`"""

    archived: bool
    """`true` archives the session, `false` restores it."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the reply of the first call."""

    session_id: SessionId
    """Id of the session."""


class Artifact(TypedDict):
    """A file that was kept with the result. `session.blob` of the last attempt's session reads it."""

    blob_id: NotRequired[BlobId]
    """Its content; absent if the file was too large to be kept."""

    bytes: int
    """Its size."""

    path: str
    """Path relative to the job's folder."""


class AttachedClient(TypedDict):
    """A client that follows a session."""

    name: str
    """Name that the client gave in `daemon.hello`, or `client-N`."""

    role: str
    """`observer`, `controller` or `tool`."""

    since_ms: Timestamp
    """Time at which it attached."""


class Attachment(TypedDict):
    """A picture or a document in the result of a tool call."""

    blob_id: BlobId
    """Id of the blob. Clients read it with `session.blob`, and the model with Read."""

    bytes: int
    """Its length in bytes."""

    in_text: NotRequired[bool]
    """Whether the result's text contains the same information. If so, a model that receives the attachment does not receive the text."""

    kind: AttachmentKind
    """Picture or document."""

    media_type: str
    """Its media type, for example `text/plain`."""

    name: NotRequired[str]
    """Its name for users and models, for example the file's."""

# Kind of an attachment for a model.
AttachmentKind: TypeAlias = "Literal['image', 'document']"


class AuditEntry(TypedDict):
    """One row of the log.  `hash` is the SHA-256, in hexadecimal, of a JSON list of the row's values, without blanks. Absent values are `null`. The order is `prev`, `id`, `at_ms`, `kind`, `session_id`, `seq`, `call_id`, `tool`, `digest`, `verdict`, `rule`, `reason`, `client`, `uid`, `pid`, `exe`, `sandbox`."""

    at_ms: Timestamp
    """Time of the decision."""

    call_id: NotRequired[CallId]
    """The tool call that it was about."""

    client: NotRequired[str]
    """Name of the client that decided, as the client gave it; absent if no client decided."""

    digest: NotRequired[str]
    """SHA-256 of the subject, in hexadecimal: for a tool call of the JSON list of tool, input, folder and session."""

    exe: NotRequired[str]
    """The program it ran when it connected."""

    hash: str
    """Hash of this row."""

    id: int
    """Its number: 1, 2, 3 … without gaps."""

    kind: AuditKind
    """Kind of the decision."""

    pid: NotRequired[int]
    """Its process id when it connected."""

    prev: str
    """Hash of the previous row; empty for the first."""

    reason: str
    """The reason, as text for users."""

    rule: NotRequired[str]
    """The rule that decided, or the grant that was given."""

    sandbox: str
    """The confinement of the command. It is `none` for other decisions: file tools, which have their own rules, and changes of rules, modes and trust. (`unknown` in rows of old versions.)"""

    seq: NotRequired[int]
    """The event of the session's journal about this decision; both were written in one transaction."""

    session_id: NotRequired[SessionId]
    """The session that it was about."""

    tool: NotRequired[str]
    """The tool, or the called method."""

    uid: NotRequired[int]
    """Its user id."""

    verdict: str
    """The decision: allow, deny, refused, trusted, untrusted, or the choice of the user."""


class AuditHead(TypedDict):
    """Number and hash of a row. With a copy outside the database, a client can check later whether the log still has that row."""

    hash: str
    """Hash of the row."""

    id: int
    """Number of the row."""

# The kind of decision that a row records.
AuditKind: TypeAlias = "Literal['rule', 'permission', 'question', 'refused', 'grant', 'mode', 'folders', 'rewind', 'trust', 'job', 'rescue']"


class AuditParams(TypedDict):
    """`permission.audit`"""

    cursor: NotRequired[str]
    """`next_cursor` of the previous page."""

    limit: NotRequired[int]
    """Rows per page, at most 500; 100 by default."""

    session_id: NotRequired[SessionId]
    """Only decisions about this session; it may be a deleted one."""

    since_ms: NotRequired[Timestamp]
    """Only decisions since this time."""


class AuditReply(TypedDict):
    """Reply of `permission.audit`"""

    entries: list[AuditEntry]
    """Rows of this page, in order."""

    next_cursor: NotRequired[str]
    """Cursor of the next page."""


class BackgroundCommand(TypedDict):
    """A background command as the journal records it."""

    bash_id: BashId
    """Its name in the session."""

    call_id: CallId
    """The call that started it."""

    command: str
    """The beginning of the command."""

    duration_ms: NotRequired[int]
    """Duration of the run, in milliseconds."""

    exit_code: NotRequired[int]
    """Exit code of the shell; after a signal 128 plus its number."""

    killed_by: NotRequired[KilledBy]
    """The cause of its end, with `killed`."""

    note: NotRequired[str]
    """A note about its end, for example an exceeded limit, or output that could not be kept."""

    output_blob: NotRequired[BlobRef]
    """Its full output, as far as the daemon kept it; absent without output."""

    output_bytes: NotRequired[int]
    """Total bytes of its output."""

    read_bytes: NotRequired[int]
    """Bytes of its output that the model has received."""

    signal: NotRequired[int]
    """Number of the signal that ended it."""

    started_at_ms: Timestamp
    """Time of its start."""

    state: BackgroundState
    """Its state."""

    survivors: NotRequired[list[int]]
    """Ids of its processes that could not be ended."""


class BackgroundRead(TypedDict):
    """How much of a background command's output the model has received."""

    bash_id: BashId
    """Name of the command."""

    bytes: int
    """Bytes of its output, from its beginning."""

# State of a background command.
BackgroundState: TypeAlias = "Literal['running', 'exited', 'killed', 'timed_out', 'lost']"


class BackupParams(TypedDict):
    """`daemon.backup`"""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key and parameters returns the first reply, within 24 hours."""

    path: str
    """Absolute path of the new file; it must not exist."""


class BackupReply(TypedDict):
    """Reply of `daemon.backup`"""

    bytes: int
    """Its size in bytes."""

    path: str
    """Path of the new file."""

# The part of the sandbox that blocked a command, according to the command's output.
Barrier: TypeAlias = "Literal['files', 'network']"

# 
BashId: TypeAlias = "str"

# Encoding of a blob's bytes in a reply.
BlobEncoding: TypeAlias = "Literal['text', 'base64']"

# 
BlobId: TypeAlias = "str"


class BlobParams(TypedDict):
    """`session.blob`"""

    blob_id: BlobId
    """Id of the blob, from an event or an item."""

    limit: NotRequired[int]
    """Bytes to read, 1 to 1,048,576; 262,144 by default."""

    offset: NotRequired[int]
    """Position of the first byte to read, from 0."""

    session_id: SessionId
    """The session that the blob belongs to."""


class BlobRef(TypedDict):
    """A blob with more content than an event contains."""

    blob_id: BlobId
    """Id of the blob. Clients read it with `session.blob`, and the model with Read."""

    bytes: int
    """Its length in bytes."""

    media_type: str
    """Its media type, for example `text/plain`."""


class BlobReply(TypedDict):
    """Reply of `session.blob`"""

    blob_id: BlobId
    """Id of the blob."""

    bytes: int
    """Length of the complete blob in bytes."""

    content: str
    """The content of this part. A text ends with a complete character, so it may be up to three bytes shorter than requested."""

    encoding: BlobEncoding
    """Encoding of `content`."""

    media_type: str
    """Its media type, for example `text/plain` or `image/png`."""

    next_offset: NotRequired[int]
    """`offset` of the next part, if there is one."""

    offset: int
    """Position of the first byte of this part, from 0."""

# One part of a message.
Block: TypeAlias = "BlockText | BlockImage | BlockDocument | BlockThinking | BlockRedactedThinking | BlockToolCall | BlockToolResult"


class BlockDocument(TypedDict):
    """A PDF or a text file from the user."""

    blob_id: BlobId
    """Id of the blob. Clients read it with `session.blob`, and the model with Read."""

    bytes: int
    """Its length in bytes."""

    media_type: str
    """Its media type, for example `text/plain`."""

    name: NotRequired[str]
    """Its file name, or the name that the user gave."""

    text: str
    """Its text; of a PDF, the text for models that accept no documents."""

    type: Literal['document']

    unsaved: NotRequired[bool]
    """Whether the text differs from the file of that name, because the user has not saved it."""


class BlockImage(TypedDict):
    """A picture from the user."""

    blob_id: BlobId
    """Id of the blob. Clients read it with `session.blob`, and the model with Read."""

    bytes: int
    """Its length in bytes."""

    media_type: str
    """Its media type, for example `text/plain`."""

    name: NotRequired[str]
    """Its file name, or the name that the user gave."""

    type: Literal['image']

# Kind of a streamed block.
BlockKind: TypeAlias = "BlockKindText | BlockKindThinking | BlockKindToolCall"


class BlockKindText(TypedDict):
    """Text."""

    kind: Literal['text']


class BlockKindThinking(TypedDict):
    """Reasoning."""

    kind: Literal['thinking']


class BlockKindToolCall(TypedDict):
    """A tool call."""

    kind: Literal['tool_call']

    tool: str
    """The tool's name."""


class BlockRedactedThinking(TypedDict):
    """Reasoning that the provider encrypted."""

    data: str
    """Opaque data, sent back unchanged."""

    type: Literal['redacted_thinking']


class BlockText(TypedDict):
    """Plain text."""

    text: str
    """The text itself."""

    type: Literal['text']


class BlockThinking(TypedDict):
    """Reasoning. The provider requires it back unchanged while the model calls tools."""

    signature: NotRequired[str]
    """The provider's signature over it."""

    text: str
    """The reasoning, possibly empty."""

    type: Literal['thinking']


class BlockToolCall(TypedDict):
    """A tool call."""

    call_id: CallId
    """The daemon's id."""

    input: Any
    """The arguments. An object, unless the model sent another type."""

    input_error: NotRequired[str]
    """Why the arguments are not valid JSON; `input` is then the raw text as a string."""

    provider_id: str
    """The provider's id, unique within the message; sent back with the result."""

    tool: str
    """The tool's name as the model wrote it."""

    type: Literal['tool_call']


class BlockToolResult(TypedDict):
    """The result of one tool call."""

    attachments: NotRequired[list[Attachment]]
    """Pictures and documents of the result."""

    call_id: CallId
    """The daemon's id of the call."""

    content: str
    """The output for the model."""

    is_error: bool
    """Whether the result is an error."""

    provider_id: str
    """The provider's id of the call."""

    type: Literal['tool_result']


class Blocked(TypedDict):
    """The sandbox probably blocked a command: a guess from the command's output."""

    by: Barrier
    """The part of the sandbox that blocked it."""

    what: NotRequired[str]
    """The path or the host that the command named, if it named one."""

# One of the limits in [`Budgets`].
BudgetKind: TypeAlias = "Literal['usd_micros', 'model_calls', 'output_tokens', 'wall_time_ms', 'session_usd_micros', 'session_model_calls', 'session_output_tokens', 'session_wall_time_ms']"


class BudgetWarningEvent(TypedDict):
    """A limit of the turn or of its session is used up to 80 %. Sent once for each limit and turn."""

    at_ms: Timestamp
    """Time of the event."""

    budget: BudgetKind
    """The limit, by its name in `budgets`."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    limit: int
    """Its value."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['budget.warning']

    used: int
    """The amount used so far, in the unit of the limit."""


class Budgets(TypedDict):
    """Limits of one turn, and of a whole session. An absent limit does not apply."""

    model_calls: NotRequired[int]
    """Model calls."""

    output_tokens: NotRequired[int]
    """Output tokens."""

    session_model_calls: NotRequired[int]
    """Model calls of the whole session."""

    session_output_tokens: NotRequired[int]
    """Output tokens of the whole session."""

    session_usd_micros: NotRequired[int]
    """Money of the whole session, in millionths of a dollar."""

    session_wall_time_ms: NotRequired[int]
    """Wall time of all turns of the session together, in milliseconds."""

    usd_micros: NotRequired[int]
    """Money, in millionths of a dollar."""

    wall_time_ms: NotRequired[int]
    """Wall time in milliseconds. It also ends a running tool or answer, but not a wait for a user."""

# Kinds of model answers that an index caches.
CacheKind: TypeAlias = "Literal['extract', 'summary', 'keywords', 'query']"

# 
CallId: TypeAlias = "str"

# Status of a tool call.
CallStatus: TypeAlias = "Literal['pending', 'awaiting_permission', 'running', 'completed', 'failed', 'denied', 'cancelled', 'unknown']"


class CallView(TypedDict):
    """The tool call of an item."""

    attachments: NotRequired[list[Attachment]]
    """Pictures and documents that the model received with the result."""

    call_id: CallId
    """Its id."""

    input: Any
    """The arguments."""

    output_blob: NotRequired[BlobRef]
    """The full output, if the item's text is only its beginning and its end."""

    status: CallStatus
    """Status of the call."""

    tool: str
    """The tool."""

# What happens to missed slots.
CatchUp: TypeAlias = "Literal['last', 'none', 'all']"

# Kind of a file's change.
ChangeKind: TypeAlias = "Literal['created', 'modified', 'removed']"


class ChangedFile(TypedDict):
    """A changed file."""

    deletions: int
    """Lines removed; 0 for a binary file."""

    insertions: int
    """Lines added; 0 for a binary file."""

    path: str
    """Path relative to the top of the repository."""


class ChatMessage(TypedDict):
    """One message of a conversation: before a query, or of a model call."""

    content: str
    """Its text."""

    role: Role
    """Its author."""


class CheckReply(TypedDict):
    """Reply of `daemon.check`"""

    problems: list[str]
    """Problems of the database as texts; empty if there are none."""

# An answer to a question of the kinds `unknown_outcome`, `resume` and `repeated_call`.
Choice: TypeAlias = "Literal['continue', 'abort']"

# How the chunks of entities are chosen.
ChunkPick: TypeAlias = "Literal['vector', 'weight']"


class ChunkView(TypedDict):
    """A chunk of a document."""

    chunk_id: str
    """Its id."""

    content: str
    """Its text."""

    end_line: int
    """Last line."""

    start_line: int
    """First line, from 1."""

    symbol: NotRequired[str]
    """The symbol or heading that it contains."""

    tokens: int
    """Number of its tokens."""

# The role of a client, which decides which methods it may call.
ClientRole: TypeAlias = "Literal['observer', 'controller', 'tool']"


class ClockChangedEvent(TypedDict):
    """The system's clock was set while a turn runs. Durations and limits do not count this change, but the times of earlier and later events differ by it."""

    at_ms: Timestamp
    """Time of the event."""

    by_ms: int
    """How much later the clock shows than it would without the change, in milliseconds; negative if earlier."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['clock.changed']


class CommandCompletedEvent(TypedDict):
    """A slash command or a note was answered without a model call. It belongs to the running turn, if there is one, else to a turn of its own that ends at once."""

    arguments: NotRequired[str]
    """The text after the name."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    name: str
    """The command's name without the slash, or `#` for a note."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    text: str
    """The answer for users."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['command.completed']


class CommandListParams(TypedDict):
    """`command.list`: exactly one of the two parameters must be present."""

    cwd: NotRequired[str]
    """The commands that a session in this folder has."""

    session_id: NotRequired[SessionId]
    """The commands of this session."""


class CommandListReply(TypedDict):
    """Reply of `command.list`"""

    commands: list[CommandView]
    """The built-in commands first, then the others by name."""

    diagnostics: list[FileDiagnostic]
    """Files with commands that the daemon cannot use, or uses only in part."""

# A part of the expansion of a command's file.
CommandPart: TypeAlias = "CommandPartText | CommandPartOutput | CommandPartFile"


class CommandPart2(TypedDict):
    """One simple command of a command line with its verdict."""

    command: str
    """The text as written in the line. It is only the beginning if nested substitutions exceed 256 KiB in total."""

    reason: str
    """The reason, as text for users."""

    rule: NotRequired[str]
    """The rule that allows it, if any."""

    verdict: VerdictKind
    """Allow, or ask; a deny verdict applies to the whole line."""

    words: list[str]
    """Its words without their quotes; expansions as written."""


class CommandPartFile(TypedDict):
    """A file that the text names here, and that follows the text."""

    kind: Literal['file']

    path: str
    """The path, with the arguments put in."""


class CommandPartOutput(TypedDict):
    """The output of a shell command takes this place."""

    command: str
    """The command, with the arguments put in."""

    kind: Literal['output']


class CommandPartText(TypedDict):
    """Text as it is."""

    kind: Literal['text']

    text: str
    """The text itself."""

# The origin of a command.
CommandSource: TypeAlias = "Literal['built_in', 'user', 'project', 'mcp', 'skill']"


class CommandView(TypedDict):
    """One slash command."""

    argument_hint: NotRequired[str]
    """Hint about its arguments, for users."""

    description: str
    """Description for users."""

    name: str
    """Its name without the slash."""

    path: NotRequired[str]
    """Path of the file that defines it, if there is one."""

    source: CommandSource
    """Its origin."""


class CompactCompletedEvent(TypedDict):
    """A stage of compaction ended. Later requests contain less; the journal keeps all events."""

    at_ms: Timestamp
    """Time of the event."""

    edit: NotRequired[WindowEdit]
    """The change of the messages that later requests contain. Absent after an error, and for a result that was shortened when its call ended: its `tool.completed` has the short text."""

    error: NotRequired[str]
    """Why the stage changed nothing: a code of `error`, `empty_summary`, `no_saving`, or `aborted`."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    stage: CompactStage
    """The stage."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    tokens_after: int
    """Tokens of the next request after the stage, estimated."""

    tokens_before: int
    """Tokens of the next request before the stage."""

    trigger: CompactTrigger
    """Why the conversation is compacted."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['compact.completed']


class CompactParams(TypedDict):
    """`session.compact`"""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the same reply."""

    instructions: NotRequired[str]
    """Instructions about the content that the summary must keep; at most 10,000 characters."""

    session_id: SessionId
    """Id of the session."""


class CompactReply(TypedDict):
    """Reply of `session.compact`: the request is on disk."""

    seq: int
    """Seq of the event that records the request."""

    turn_id: TurnId
    """The turn that compacts the conversation."""


class CompactRequest(TypedDict):
    """A request of a user to compact the conversation."""

    instructions: NotRequired[str]
    """The user's instructions about the content that the summary must keep."""

# A stage of compaction, in the order in which the stages run.
CompactStage: TypeAlias = "Literal['tool_results', 'snip', 'microcompact', 'collapse', 'autocompact']"


class CompactStartedEvent(TypedDict):
    """A stage of compaction started. Most stages complete in the same transaction; `autocompact` calls a model."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    messages: NotRequired[int]
    """For `autocompact`: number of messages, from the oldest, that the summary replaces."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    stage: CompactStage
    """The stage."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    tokens_before: int
    """Tokens of the next request, as far as they are known."""

    trigger: CompactTrigger
    """Why the conversation is compacted."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['compact.started']

# Why the conversation is compacted.
CompactTrigger: TypeAlias = "Literal['auto', 'manual', 'overflow']"


class CompactionOverrides(TypedDict):
    """Values of `[compaction]` in the project's configuration file."""

    auto: NotRequired[bool]
    """Whether a model summarises the conversation when the other stages do not suffice."""

    collapse: NotRequired[bool]
    """Whether old turns are shortened."""

    keep_recent_tokens: NotRequired[int]
    """Tokens of the newest messages that stay as they are."""

    max_failures: NotRequired[int]
    """Number of failed summaries in a row after which the session requests no summary by itself."""

    microcompact: NotRequired[bool]
    """Whether old tool results are cleared."""

    snip: NotRequired[bool]
    """Whether results are cleared that later calls made useless."""

    threshold_percent: NotRequired[int]
    """Part of the usable window, in percent, from which on the conversation is compacted."""

    tool_results: NotRequired[bool]
    """Whether long tool results are shortened."""


class Concurrency(TypedDict):
    """How many jobs with the same key run at a time."""

    key: str
    """Any text."""

    limit: NotRequired[int]
    """At least 1."""


class ConfigParams(TypedDict):
    """`daemon.config`"""

    cwd: NotRequired[str]
    """A folder, absolute. The reply then includes the values of its project's configuration file."""


class ConfigReloadedEvent(TypedDict):
    """The daemon reloaded its configuration, or files that extend the session changed. Sessions with clients or a running turn receive this event; running work keeps its settings."""

    at_ms: Timestamp
    """Time of the event."""

    changed: list[str]
    """Keys that changed and apply from now on, for example `retry.attempts`. For files: `commands`, `skills`, `agents`, `instructions`."""

    files: NotRequired[list[str]]
    """Paths of the files that changed, as far as they are known, or of the configuration that was read again."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    needs_restart: list[str]
    """Keys that changed and apply only after a restart of the daemon."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['config.reloaded']


class ConfigReply(TypedDict):
    """Reply of `daemon.config`"""

    project: NotRequired[ProjectFileState]
    """With `cwd`: the project's configuration file, if there is one."""

    values: list[ConfigValue]
    """Every key. Rules have one entry for each file that contains some."""


class ConfigValue(TypedDict):
    """A value of the configuration."""

    key: str
    """Its dotted name."""

    line: NotRequired[int]
    """The line in the file, from 1."""

    origin: str
    """`default`, `flag`, `environment (NAME)`, `socket activation`, or the path of the file that sets it."""

    value: Any
    """The value in force; `null` if it is not set. A value that may be a secret is replaced by `***`."""


class Confinement(TypedDict):
    """The confinement of a command."""

    level: int
    """3 bubblewrap, 2 Landlock, 1 rlimits only, 0 off."""

    network: bool
    """Whether the command has network access."""

    unsandboxed: NotRequired[bool]
    """Whether the command runs outside its usual sandbox, because a user allowed it."""


class ContextPart(TypedDict):
    """One part of the context."""

    name: PartName
    """Name of the part."""

    tokens: int
    """Its tokens, estimated."""


class ContextView(TypedDict):
    """The use of the context window of a session's model."""

    compactions: int
    """How often a summary replaced the conversation."""

    estimated: bool
    """Whether `used` is an estimate. Otherwise the provider reported the length of the newest request, and only later additions are estimated."""

    parts: list[ContextPart]
    """The parts of `used`. If the window is known, the part `free` is the unused rest of it."""

    reserved_output: int
    """Tokens that are reserved for the answer."""

    used: int
    """Tokens of the next request, as far as they are known."""

    window: NotRequired[int]
    """Tokens that fit in a request and its answer; `null` if unknown."""


class CreateParams(TypedDict):
    """`session.create`. An option that is absent has the value of the configuration, for example `[models] main`, `[session] mode` and `[session] thinking`."""

    ablation: NotRequired[Ablation]
    """Optimisations that are turned off; by default `[session.ablation]`. Fixed when the session is created."""

    additional_dirs: NotRequired[list[str]]
    """The complete list of additional existing folders of the workspace, absolute. Those of a session apply at once; their AGENTS.md is read when the next turn starts."""

    agent: NotRequired[str]
    """Name of the agent as which the session works (`agent.list`). The agent's tools and model apply unless others are given. Fixed when the session is created."""

    append_system_prompt: NotRequired[str]
    """Appended to the system prompt; empty for nothing."""

    background: NotRequired[bool]
    """Whether the session is unattended."""

    binary_feedback: NotRequired[bool]
    """Whether the model answers every request twice and a client chooses one answer (`feedback.request`); by default `[session] binary_feedback`. Not for unattended sessions. Fixed when the session is created."""

    budgets: NotRequired[Budgets]
    """Limits of a turn. In a session they replace all previous limits."""

    coordinator: NotRequired[bool]
    """Whether the session only plans and gives its work to sub-agents, which share a scratch folder with it. It gets no tool that changes anything outside that folder. Not together with `agent` or `tools`. Fixed when the session is created."""

    cwd: str
    """An existing folder, absolute."""

    env: NotRequired[SessionEnvironment]
    """Variables of the environment of its commands: `PATH`, virtual environments, locale and others. Refused are names that look like secrets or change which programs run, unless `[tools] env` lists them. Absent: those that the daemon has. Events and exports do not contain them; `session.get` shows the names."""

    fallback_model: NotRequired[str]
    """`PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models] fallback`. Empty for that default."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the reply of the first call."""

    initial_items: NotRequired[list[InitialItem]]
    """Messages with which the conversation begins: at most 1,000, of at most 4 MiB together."""

    mcp_servers: NotRequired[dict[str, Any]]
    """MCP servers for only this session and its sub-agents, by name, each with the keys of `[mcp.NAME]`. They override servers of the same names from other sources. Events and exports do not contain them."""

    metadata: NotRequired[dict[str, str]]
    """Labels that the provider receives with each model request: at most 16, with keys of at most 64 and values of at most 512 bytes. Anthropic accepts only `user_id`."""

    mode: NotRequired[Mode]
    """Approval mode. A session's applies from the next verdict on, also in a running turn; pending requests that it allows are settled."""

    model: NotRequired[str]
    """`PROVIDER/MODEL`. A parameter may also be the name of a pointer of `[models]`, for example `reasoning`. The system prompt names the model, so another one begins a new prompt cache."""

    on_restart: NotRequired[OnRestart]
    """Handling of a turn that a restart of the daemon interrupts; by default `[daemon] on_restart`."""

    output_schema: NotRequired[Any]
    """JSON Schema of the result: `turn.completed.result.structured` is a value that satisfies it. `{}` for none. References to other documents are refused."""

    safe_mode: NotRequired[bool]
    """Whether tools run one at a time and every call needs a permission request."""

    session_id: NotRequired[SessionId]
    """An id that the client chooses: the same id with the same parameters returns the same session."""

    stop: NotRequired[list[str]]
    """Texts at which the model stops its answer: at most 4, of at most 256 bytes each."""

    system_prompt: NotRequired[str]
    """Replaces the default system prompt; empty for the default. Another system prompt begins a new prompt cache."""

    temperature: NotRequired[Temperature]
    """Temperature, from 0, which nearly always selects the most likely token, to 2. A running turn keeps its setting."""

    thinking: NotRequired[Thinking]
    """How much the model may think. A running turn keeps its setting."""

    title: NotRequired[str]
    """Short name; by default the first words of the first prompt."""

    tools: NotRequired[ToolChoice]
    """The tools on offer; `{}` for all."""

    top_p: NotRequired[TopP]
    """The probability mass of the most likely tokens to choose from, from 0 to 1. Vendors advise to set only one of `temperature` and `top_p`."""

    worktree: NotRequired[WorktreeChoice]
    """Makes a git worktree of the folder's repository on a branch of its own, in which the session works: `true`, or an object with `base`, `branch`, `keep`, `include` and `commit`."""

# The change of the daemon that a notification reports.
DaemonChange: TypeAlias = "Literal['daemon.restarting']"

# A notification `daemon.event` of `daemon.subscribe`.
DaemonEvent: TypeAlias = "SessionNotification | JobNotification | ScheduleNotification | DaemonNotification"


class DaemonEventNotification(TypedDict):
    """The parameters of the notification `daemon.event`."""

    result: DaemonEvent

    subscription: SubscriptionId


class DaemonNotification(TypedDict):
    """The planned stop of the daemon."""

    kind: DaemonChange
    """What happens."""

    reason: RestartReason
    """Why it happens."""

# What `daemon.subscribe` reports changes of.
DaemonSubject: TypeAlias = "Literal['session', 'job', 'schedule', 'daemon']"


class DaemonSubscribeParams(TypedDict):
    """`daemon.subscribe`"""

    about: NotRequired[list[DaemonSubject]]
    """Only notifications about these; by default all of them."""

# A user's answer to a permission request.
Decision: TypeAlias = "Literal['allow', 'deny']"


class Delivery(TypedDict):
    """A notification about a job."""

    error: NotRequired[str]
    """Why the last try failed, without addresses and keys."""

    job_state: JobState
    """The state that it reports."""

    next_try_ms: NotRequired[Timestamp]
    """Time of the next try."""

    status: DeliveryStatus
    """How far it is."""

    target: str
    """The table `[jobs.notify.NAME]`."""

    tries: int
    """Number of tries so far."""

    webhook_id: str
    """Id of the message, the same for all tries."""

# How far a notification is.
DeliveryStatus: TypeAlias = "Literal['pending', 'delivered', 'failed']"


class Denial(TypedDict):
    """A refused call."""

    call_id: CallId
    """The call."""

    input: Any
    """Its arguments."""

    tool: str
    """The tool."""

# Why a queued turn left the queue without a start.
DequeueReason: TypeAlias = "Literal['removed', 'cleared', 'aborted']"


class DiffParams(TypedDict):
    """`session.diff`"""

    cursor: NotRequired[str]
    """`next_cursor` of the previous page."""

    limit: NotRequired[int]
    """Files per page, 1 to 500, 100 by default; fewer if their diffs are long."""

    session_id: SessionId
    """Id of the session."""


class DiffReply(TypedDict):
    """Reply of `session.diff`: the files sorted by path."""

    files: list[FileDiff]
    """Files that the session changed, except those that have their original content again."""

    next_cursor: NotRequired[str]
    """Cursor of the next page, if there is one."""

# A reply without content.
Done: TypeAlias = "dict[str, Any]"

# A duration with its unit, like `90s`, `10m` or `2h`.
Duration: TypeAlias = "str"


class EndParams(TypedDict):
    """`session.kill` and `session.delete`"""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the reply of the first call."""

    session_id: SessionId
    """Id of the session."""

# How entities are ordered after the search.
EntityOrder: TypeAlias = "Literal['degree', 'similarity']"

# One event as it is stored in the journal and sent on the wire.
Envelope: TypeAlias = "SessionCreatedEvent | SessionUpdatedEvent | SessionStatusEvent | SessionPromptBuiltEvent | McpStatusEvent | McpToolsEvent | SessionAttachedEvent | SessionDetachedEvent | ConfigReloadedEvent | ClockChangedEvent | SessionEndedEvent | SessionForkedEvent | SessionRewoundEvent | SessionArchivedEvent | WorkspaceTrustRequiredEvent | SessionClearedEvent | CommandCompletedEvent | ReminderAddedEvent | TurnOutputRejectedEvent | TurnQueuedEvent | TurnDequeuedEvent | TurnQueueUpdatedEvent | TurnQueueMovedEvent | TurnStartedEvent | TurnPromptBuiltEvent | TurnPhaseEvent | TurnParkedEvent | TurnResumedEvent | TurnSteeredEvent | TurnAbortingEvent | TurnCompletedEvent | MessageStartedEvent | MessageBlockStartedEvent | MessageTextDeltaEvent | MessageThinkingDeltaEvent | MessageToolInputDeltaEvent | MessageBlockCompletedEvent | MessageCompletedEvent | FeedbackRequestEvent | FeedbackCompletedEvent | MessageTombstoneEvent | HistoryRepairedEvent | CompactStartedEvent | CompactCompletedEvent | UsageEvent | HelperStartedEvent | HelperCompletedEvent | ToolRequestedEvent | ToolStatusEvent | ToolStartedEvent | ToolBlockedEvent | ToolProgressEvent | ToolCompletedEvent | ToolSummaryEvent | ToolBackgroundEvent | FileCheckpointedEvent | FileChangedEvent | TodoUpdatedEvent | PermissionRequestedEvent | PermissionResolvedEvent | PermissionExpiredEvent | SubagentStartedEvent | SubagentCompletedEvent | SessionInheritedEvent | HookCompletedEvent | HooksStatusEvent | PermissionRuleAddedEvent | PermissionRuleRemovedEvent | QuestionRequestedEvent | QuestionResolvedEvent | RetryEvent | HeartbeatEvent | StreamIdleEvent | BudgetWarningEvent | ModelSwitchedEvent | MediaWithheldEvent | JobEventEvent | NoticeEvent | ErrorEvent"


class ErrorData(TypedDict):
    """`data` of an error. Match on `kind`: several kinds share a number. Some errors have further members."""

    kind: Literal['parse_error', 'invalid_request', 'method_not_found', 'invalid_params', 'unsupported', 'internal', 'not_authorised', 'overloaded', 'not_found', 'cancelled', 'conflict', 'stale_precondition', 'busy', 'budget', 'not_pending', 'cursor_ahead', 'unsupported_version', 'shutting_down', 'storage_read_only']
    """The stable code."""

    path: NotRequired[str]
    """The parameter that is wrong, for example `answers[0].decision`."""

    retryable: bool
    """Whether the same call may succeed later."""


class ErrorEvent(TypedDict):
    """Something failed."""

    at_ms: Timestamp
    """Time of the event."""

    causes: NotRequired[list[str]]
    """Causes from the outermost to the innermost, where known; secrets removed."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    kind: str
    """A stable code."""

    message: str
    """The text, with secrets removed."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['error']


class EventsParams(TypedDict):
    """`session.events`"""

    after_seq: NotRequired[int]
    """Only events after this seq."""

    cursor: NotRequired[str]
    """`next_cursor` of the previous page; overrides `after_seq`."""

    include: NotRequired[Include]
    """Filter of the events; by default all of them."""

    limit: NotRequired[int]
    """Events per page, 1 to 1,000, 500 by default; fewer if they are long."""

    session_id: SessionId
    """Id of the session."""


class EventsReply(TypedDict):
    """Reply of `session.events`"""

    events: list[Envelope]
    """Events of this page, in order."""

    last_seq: int
    """The journal's newest seq."""

    next_cursor: NotRequired[str]
    """Cursor of the next page, if there is one."""


class ExplainParams(TypedDict):
    """A call to judge and the values that its verdict depends on: the parameters of `permission.explain`."""

    allow: NotRequired[list[str]]
    """Allow rules, for example `Bash(git status:*)`."""

    ask: NotRequired[list[str]]
    """Ask rules."""

    deny: NotRequired[list[str]]
    """Deny rules."""

    home: NotRequired[str]
    """The user's home folder, absolute; that of the daemon's user by default."""

    input: Any
    """The call's input: `{command}`, `{file_path}`, for LS `{path}`."""

    mode: NotRequired[Mode]
    """The session's mode; `default` by default."""

    safe_commands: NotRequired[bool]
    """Whether read-only commands run without a rule; true by default."""

    tool: str
    """Bash, Read, Write, Edit, Delete or LS."""

    workspace: str
    """The folder of the session that would call, absolute. It need not exist."""


class ExplainReply(TypedDict):
    """Reply of `permission.explain`."""

    parts: NotRequired[list[CommandPart2]]
    """For commands: the verdict on each simple command in the line."""

    reason: str
    """The reason, as text for users."""

    rule: NotRequired[str]
    """The rule that decides, as written, if any."""

    suggestions: NotRequired[list[str]]
    """Grants that would allow this call, narrowest first."""

    verdict: VerdictKind
    """Allow, ask or deny."""

# The form of an export.
ExportFormat: TypeAlias = "Literal['jsonl', 'markdown', 'html']"


class ExportParams(TypedDict):
    """`session.export`"""

    cursor: NotRequired[str]
    """`next_cursor` of the previous page."""

    format: ExportFormat
    """The form of the export."""

    include: NotRequired[Include]
    """Filter of the events, as in `session.events`; by default all of them."""

    session_id: SessionId
    """Id of the session."""


class ExportReply(TypedDict):
    """Reply of `session.export`: the pages in their order form the export."""

    data: str
    """The text of this page."""

    next_cursor: NotRequired[str]
    """Cursor of the next page, if there is one."""


class FailedDelivery(TypedDict):
    """A message about a job whose last try failed."""

    delivery: Delivery
    """The message."""

    job_id: JobId
    """The job."""

# How one of two answers was chosen.
FeedbackBy: TypeAlias = "Literal['answer', 'equal', 'single', 'abort']"


class FeedbackCompletedEvent(TypedDict):
    """The answer `item_id` was chosen. Without an item, the turn was aborted before the choice. Both candidates get a `message.tombstone`; then `message.completed` of a new item with the chosen content follows."""

    at_ms: Timestamp
    """Time of the event."""

    by: FeedbackBy
    """How it was chosen."""

    context_tokens: NotRequired[int]
    """Tokens of the chosen answer and of its request."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    request_id: NotRequired[QuestionId]
    """The request; absent if no client was asked."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['feedback.completed']


class FeedbackParams(TypedDict):
    """`session.feedback`"""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the same reply."""

    item_id: ItemId
    """The chosen answer: one of its `item_ids`."""

    request_id: QuestionId
    """Id of the `feedback.request`."""


class FeedbackRequestEvent(TypedDict):
    """The model answered twice, and a client chooses the answer with which the turn continues."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    item_ids: list[ItemId]
    """The answers, in the order in which they were written."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    request_id: QuestionId
    """Its id, as a parameter of `session.feedback`; a restart does not change it."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['feedback.request']

# The action of a rewind for a file.
FileAction: TypeAlias = "Literal['restored', 'deleted', 'unchanged']"


class FileChangedEvent(TypedDict):
    """A tool changed a file."""

    added: int
    """Lines added."""

    at_ms: Timestamp
    """Time of the event."""

    call_id: CallId
    """Id of the call."""

    diff: str
    """Unified diff, possibly cut (then it ends with a note)."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    path: str
    """Absolute path."""

    removed: int
    """Lines removed."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    sha256_after: NotRequired[str]
    """SHA-256 of the content after the change, in hexadecimal; absent for a removed file."""

    sha256_before: NotRequired[str]
    """SHA-256 of the content before the change, in hexadecimal; absent for a new file."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['file.changed']


class FileCheckpoint(TypedDict):
    """A file before a tool call changes it."""

    content: NotRequired[BlobRef]
    """Its content. If it is absent although the file exists, it was not kept, because it is too large."""

    exists: bool
    """Whether the file exists."""

    mode: NotRequired[int]
    """Permission bits of the file."""

    path: str
    """Absolute path."""

    sha256: NotRequired[str]
    """SHA-256 of its content, in hexadecimal; absent if there is no file, or if it could not be read."""


class FileCheckpointedEvent(TypedDict):
    """The content of files was stored before a tool call changes them, so that a rewind can restore it."""

    at_ms: Timestamp
    """Time of the event."""

    call_id: CallId
    """Id of the call."""

    files: list[FileCheckpoint]
    """The files that the call may change."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['file.checkpointed']


class FileDiagnostic(TypedDict):
    """A file that the daemon cannot use, or uses only in part."""

    message: str
    """The problem and how to correct it."""

    path: str
    """The file or folder."""


class FileDiff(TypedDict):
    """All changes of a session in one file."""

    added: int
    """Lines added."""

    change: ChangeKind
    """Kind of the change."""

    changes: int
    """Number of changes."""

    diff: str
    """Unified diff from before the first change to after the last."""

    exact: bool
    """Whether `diff` is the exact total change. If not, another program changed the file in between, or a diff was too long to be kept. `diff` then contains the known changes, one after the other."""

    path: str
    """Absolute path."""

    removed: int
    """Lines removed."""


class FileVersion(TypedDict):
    """A version of a file."""

    digest: str
    """SHA-256 of the content in hexadecimal; empty if the file does not exist."""

    path: str
    """Absolute path."""


class ForkParams(TypedDict):
    """`session.fork`"""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the session of the first call."""

    item_id: NotRequired[ItemId]
    """The last item to copy; by default the whole conversation is copied. The item must be complete."""

    session_id: SessionId
    """The session to copy."""

    title: NotRequired[str]
    """Title of the new session; by default the old title with `(fork)`."""


class ForkedFrom(TypedDict):
    """The session and the item with which a forked session's history begins."""

    item_id: NotRequired[ItemId]
    """The last item that was copied; absent if there was none."""

    session_id: SessionId
    """The session that was forked. It may be deleted since."""


class FoundChunk(TypedDict):
    """A chunk in a result."""

    chunk_id: str
    """Its id."""

    content: str
    """Its text."""

    end_line: int
    """Last line."""

    path: str
    """Path in the workspace; empty if the document has none."""

    reference_id: str
    """`reference_id` of its file or document in `references`."""

    rerank_score: NotRequired[float]
    """Score of the reranker, if there is one."""

    start_line: int
    """First line, from 1."""

    symbol: NotRequired[str]
    """The symbol or heading that it contains."""


class FoundCounts(TypedDict):
    """Numbers of found parts before the limits were applied."""

    chunks: int
    """Chunks."""

    entities: int
    """Entities."""

    relations: int
    """Relations."""


class FoundEntity(TypedDict):
    """An entity in a result."""

    description: str
    """Its description."""

    name: str
    """Its name."""

    rank: int
    """Number of its relations."""

    type: str
    """Its type."""


class FoundRelation(TypedDict):
    """A relation in a result."""

    description: str
    """Its description."""

    keywords: str
    """Its keywords."""

    rank: int
    """Sum of the numbers of relations of both entities."""

    source: str
    """Name of the entity at one end."""

    target: str
    """Name of the entity at the other end."""

    weight: float
    """Its strength; a higher number means a stronger relation."""


class GitResult(TypedDict):
    """What a job or session left in its branch."""

    base: str
    """The commit that it started from."""

    branch: str
    """The branch of the worktree."""

    commit: NotRequired[str]
    """The newest commit of the branch; absent if it has none of its own."""

    deletions: int
    """Lines removed."""

    files_changed: int
    """Number of changed files, from `base` to the branch."""

    insertions: int
    """Lines added."""

    uncommitted_in_base: NotRequired[int]
    """Uncommitted changes of the main folder, which the worktree did not take over."""

# The format of a graph.
GraphFormatParam: TypeAlias = "Literal['json', 'mermaid', 'dot', 'graphml', 'html']"


class GraphNode(TypedDict):
    """A node of a graph."""

    degree: int
    """Number of its relations in the whole graph."""

    description: str
    """Its description."""

    name: str
    """Its name."""

    type: str
    """Its type."""


class HeartbeatEvent(TypedDict):
    """The daemon still waits before another attempt. Sent every `[retry] heartbeat` during a long wait."""

    at_ms: Timestamp
    """Time of the event."""

    attempt: int
    """Number of the last failed attempt."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    max: NotRequired[int]
    """Maximum number of attempts; 0 means no maximum. Absent in old journals."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    reason: str
    """Reason of the wait, as in the previous `retry`."""

    remaining_ms: int
    """Remaining wait, in milliseconds."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['heartbeat']


class HelloParams(TypedDict):
    """`daemon.hello`"""

    name: NotRequired[str]
    """The client's name, shown to other clients."""

    protocol_version: NotRequired[int]
    """The protocol version of the client; absent for any."""

    role: NotRequired[ClientRole]
    """The requested role: `observer` or `controller`."""


class HelloReply(TypedDict):
    """Reply of `daemon.hello`"""

    event_version: NotRequired[int]
    """Version of the format of events. It rises when the meaning of an existing kind or field changes."""

    name: str
    """The name that other clients see."""

    protocol_version: int
    """The protocol version of the daemon."""

    role: ClientRole
    """The role of the client."""

    version: str
    """The daemon's own version."""


class HelperCompletedEvent(TypedDict):
    """A helper call ended. Its usage, if any, was booked before by `usage`."""

    at_ms: Timestamp
    """Time of the event."""

    detail: NotRequired[str]
    """The failure as text for users."""

    duration_ms: NotRequired[int]
    """Duration of the call in milliseconds, if its end was recorded."""

    fault: NotRequired[str]
    """Stable code of the failure: a code of `error`, or `unusable` (an answer that is no title), or `stopped` (with the daemon or the session). Absent after a success."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    model: str
    """`PROVIDER/MODEL` of the call."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    purpose: Purpose
    """Purpose of the call."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['helper.completed']


class HelperStartedEvent(TypedDict):
    """A helper call started in the background. No turn waits for it. If it fails, it is not retried."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    max_usage: Usage
    """Maximum usage of the call. It is booked if the end of the call is not recorded."""

    model: str
    """`PROVIDER/MODEL` of the call."""

    model_snapshot: ModelSnapshot
    """Known limits and price of the model."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    purpose: Purpose
    """Purpose of the call."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['helper.started']


class HistoryRepairedEvent(TypedDict):
    """The history was invalid for providers and was repaired when the session was loaded."""

    at_ms: Timestamp
    """Time of the event."""

    changes: list[str]
    """The repairs, as text for users."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    kept_messages: int
    """Number of messages at the beginning that are unchanged."""

    messages: list[Message]
    """Replacements of all messages after them."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['history.repaired']


class HookCompletedEvent(TypedDict):
    """A hook ran."""

    at_ms: Timestamp
    """Time of the event."""

    call_id: NotRequired[CallId]
    """The call that it was about, if any."""

    command: str
    """The command of the hook."""

    decision: NotRequired[HookDecision]
    """Its decision, if it made one."""

    duration_ms: int
    """Duration in milliseconds."""

    error: NotRequired[str]
    """Why it gave no result."""

    event: HookEvent
    """The event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    message: NotRequired[str]
    """Its text for the user."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    reason: NotRequired[str]
    """The reason that it gave."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['hook.completed']

# The decision of a hook.
HookDecision: TypeAlias = "Literal['allow', 'ask', 'deny']"

# The events on which hooks run.
HookEvent: TypeAlias = "Literal['pre_tool_use', 'post_tool_use', 'user_prompt_submit', 'session_start', 'stop', 'pre_compact', 'notification', 'subagent_stop']"


class HookFailure(TypedDict):
    """The failure of a hook."""

    command: str
    """The command of the hook."""

    error: str
    """Why it failed."""

    event: HookEvent
    """The event."""


class HooksStatusEvent(TypedDict):
    """What hooks left behind in the session has changed."""

    at_ms: Timestamp
    """Time of the event."""

    context: NotRequired[list[str]]
    """Texts of hooks for the model, which the next input contains."""

    failure: NotRequired[HookFailure]
    """The hook that failed last; absent if it has run well since."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    problems: NotRequired[list[str]]
    """The entries and files that cannot be used, each with file, line and reason."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['hooks.status']


class ImportParams(TypedDict):
    """`session.import`"""

    data: str
    """A part of an export as JSON Lines. All parts together have at most 64 MiB."""

    idempotency_key: NotRequired[str]
    """With `last`: a repeated call with the same key returns the session of the first call."""

    import_id: NotRequired[str]
    """Id of the import that this part continues; absent for the first part."""

    last: bool
    """Whether this is the last part. The last part creates the session, completely or not at all."""


class ImportReply(TypedDict):
    """Reply of `session.import`"""

    import_id: NotRequired[str]
    """Without `last`: the id of the import, for its next part."""

    session: NotRequired[SessionView]
    """With `last`: the new session."""


class Include(TypedDict):
    """Filter of a session's events."""

    thinking: NotRequired[ThinkingShown]
    """Filter of the models' thinking."""

# Limits of an index job.
IndexBudget: TypeAlias = "int | IndexBudgetTokens"


class IndexBudgetTokens(TypedDict):
    """Limits by name; at least one."""

    tokens: NotRequired[int]
    """Maximum tokens of the model, input and output together."""

    usd: NotRequired[float]
    """Maximum cost in US dollars."""


class IndexDocument(TypedDict):
    """A document of an index."""

    bytes: int
    """Size of its text in bytes."""

    chunks: int
    """Number of its chunks."""

    error: NotRequired[str]
    """Why it failed."""

    id: str
    """Its id."""

    language: NotRequired[str]
    """Its language, if known."""

    level: str
    """The level at which it was processed: `lexical`, `structure` or `semantic`."""

    path: NotRequired[str]
    """Its path; absent for an inserted document without one."""

    source: str
    """`file` or `inserted`."""

    status: str
    """`pending`, `processing`, `processed` or `failed`."""

    updated_at_ms: int
    """Time of the last change of its state, in milliseconds since the Unix epoch."""


class IndexEstimate(TypedDict):
    """The estimated work of an index job."""

    bytes: int
    """Size of the files to read, in bytes."""

    chunks: int
    """Approximate number of chunks of these files."""

    cost_usd_micros: NotRequired[int]
    """Cost of these tokens in millionths of a dollar: 0 without a model, `null` if the price is unknown."""

    files: int
    """Number of files to read."""

    input_tokens: int
    """Input tokens of these calls."""

    model_calls: int
    """Number of model calls at level `semantic`, without those for summaries."""

    output_tokens: int
    """Output tokens of these calls."""

    removed: int
    """Number of documents whose file no longer exists."""

    tokens: int
    """Sum of the input and output tokens."""

    unchanged: int
    """Number of documents that have not changed."""


class IndexJobView(TypedDict):
    """The newest job of an index."""

    error: NotRequired[str]
    """Why it failed."""

    job_id: str
    """Its id."""

    progress: NotRequired[IndexProgress]
    """Its progress."""

    state: str
    """`running`, `done`, `failed` or `cancelled`."""

    summary: NotRequired[IndexSummary]
    """Its result."""

# How much of a workspace an index holds. Each level includes the ones before it.
IndexLevel: TypeAlias = "Literal['lexical', 'structure', 'semantic']"


class IndexProgress(TypedDict):
    """Progress of an index job."""

    cost_usd_micros: int
    """Cost of these tokens in millionths of a dollar."""

    done: int
    """Number of finished units of the stage."""

    stage: IndexStage
    """The stage."""

    tokens: int
    """Tokens that the job has used."""

    total: int
    """Number of all units of the stage; 0 while unknown."""

# The current stage of an index job.
IndexStage: TypeAlias = "Literal['scanning', 'chunking', 'embedding', 'extracting', 'merging', 'summarizing']"

# The state of an index.
IndexState: TypeAlias = "Literal['none', 'indexing', 'ready', 'failed']"


class IndexStatus(TypedDict):
    """State and size of an index: the reply of `knowledge.status`."""

    chunks: int
    """Number of chunks."""

    documents: int
    """Number of documents."""

    entities: int
    """Number of entities."""

    failed_documents: int
    """Number of documents that failed."""

    generation: int
    """A number that rises with each change of the index."""

    job: NotRequired[IndexJobView]
    """The newest job since the daemon started."""

    left_out_files: NotRequired[int]
    """Number of files that were read and left out, because they are no text or hold a secret."""

    left_out_folders: NotRequired[list[str]]
    """Folders that the last job over the whole workspace left out, because they hold dependencies or results of builds, at most 100. A job whose `paths` name one of them reads it."""

    level: NotRequired[IndexLevel]
    """The level of the index."""

    notice: NotRequired[str]
    """A notice for the user, for example about data that was lost with a damaged file. The next `knowledge.index` removes the notice."""

    relations: int
    """Number of relations."""

    state: IndexState
    """State of the index."""

    watched: NotRequired[bool]
    """Whether the daemon watches its files and starts a job when one changes."""


class IndexSummary(TypedDict):
    """The result of an index job."""

    failed: int
    """Number of documents that failed."""

    indexed: int
    """Number of documents that were read."""

    plain: NotRequired[int]
    """Number of documents with code that are searched as plain text only, because it is minified or took too long."""

    removed: int
    """Number of documents that were removed, because their file no longer exists or is no longer allowed."""

    skipped: int
    """Number of files that were left out: binary, too large, or secret."""

    unchanged: int
    """Number of documents that had not changed."""

    warning: NotRequired[str]
    """A warning about a part that failed and was left out, for example the vectors."""


class InitialItem(TypedDict):
    """A message with which the conversation of a new session begins."""

    content: SubmitInput
    """Text, or a list of text blocks; must not be empty."""

    role: Role
    """Its author."""

# One part of a submitted input.
InputBlock: TypeAlias = "InputBlockText | InputBlockImage | InputBlockDocument"


class InputBlockDocument(TypedDict):
    """A PDF or a text file."""

    blob_id: BlobId
    """Id of the blob. Clients read it with `session.blob`, and the model with Read."""

    bytes: int
    """Its length in bytes."""

    media_type: str
    """Its media type, for example `text/plain`."""

    name: NotRequired[str]
    """Its file name, or the name that the user gave."""

    text: str
    """Its text; of a PDF, the text for models that accept no documents."""

    type: Literal['document']

    unsaved: NotRequired[bool]
    """Whether the text differs from the file of that name, because the user has not saved it."""


class InputBlockImage(TypedDict):
    """A picture."""

    blob_id: BlobId
    """Id of the blob. Clients read it with `session.blob`, and the model with Read."""

    bytes: int
    """Its length in bytes."""

    media_type: str
    """Its media type, for example `text/plain`."""

    name: NotRequired[str]
    """Its file name, or the name that the user gave."""

    type: Literal['image']


class InputBlockText(TypedDict):
    """Text."""

    text: str
    """The text itself."""

    type: Literal['text']


class InsertOutcome(TypedDict):
    """The result of inserting one document."""

    id: str
    """Its id."""

    unchanged: bool
    """Whether the index already contained the same document."""


class InsertedDocument(TypedDict):
    """A text for the index that is not a file."""

    id: NotRequired[str]
    """An id that the client chooses. If it is absent, the daemon derives one from the text."""

    path: NotRequired[str]
    """A name with which results refer to the document."""

    text: str
    """The text."""


class Item(TypedDict):
    """One entry of the conversation."""

    call: NotRequired[CallView]
    """Tool calls: details."""

    command: NotRequired[SlashCommand]
    """Inputs of users: the slash command whose expansion is the text."""

    content: NotRequired[list[Block]]
    """Messages: the blocks."""

    first_seq: int
    """Seq of the event that opened it."""

    item_id: ItemId
    """Its id."""

    kind: ItemKind
    """Kind of the item."""

    last_seq: int
    """Seq of its newest permanent event."""

    role: NotRequired[Role]
    """Messages: the author."""

    status: ItemStatus
    """Status of the item."""

    text: NotRequired[str]
    """Messages: all the text. Tool calls: the output for the model."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """In replies: truncated values of this item. Inside an event, the event has the list."""

    turn_id: TurnId
    """The turn it belongs to."""

# 
ItemId: TypeAlias = "str"

# Kinds of items.
ItemKind: TypeAlias = "Literal['user_message', 'assistant_message', 'tool_call', 'plan', 'reasoning', 'error', 'notice', 'compaction']"

# Status of an item.
ItemStatus: TypeAlias = "Literal['running', 'completed', 'interrupted']"


class ItemsParams(TypedDict):
    """`session.items`"""

    cursor: NotRequired[str]
    """`next_cursor` of the previous page."""

    kinds: NotRequired[list[ItemKind]]
    """Only items of these kinds; by default all of them."""

    limit: NotRequired[int]
    """Items per page, 1 to 500, 100 by default; fewer if they are long."""

    newest_first: NotRequired[bool]
    """Whether the newest item comes first. A cursor continues in the order of the call that returned it."""

    session_id: SessionId
    """Id of the session."""


class ItemsReply(TypedDict):
    """Reply of `session.items`: oldest first, unless `newest_first` was given."""

    items: list[Item]
    """Items of this page, in order."""

    next_cursor: NotRequired[str]
    """Cursor of the next page, if there is one."""


class Job(TypedDict):
    """A job as `job.get` and `job.list` return it."""

    activity: NotRequired[str]
    """What a running attempt does now, in one line."""

    attempt: int
    """Number of its newest attempt; 0 before the first."""

    attempts_max: int
    """How many attempts it may have."""

    cost_usd_micros: NotRequired[int]
    """Cost of all attempts, in millionths of a dollar; `null` if a price is unknown."""

    created_at_ms: Timestamp
    """Time of its creation."""

    cwd: str
    """Its folder."""

    deliveries: NotRequired[list[Delivery]]
    """The notifications about it."""

    ended_at_ms: NotRequired[Timestamp]
    """Time of its final state."""

    error: NotRequired[JobError]
    """Why it failed."""

    job_id: JobId
    """Its id."""

    labels: NotRequired[dict[str, str]]
    """Its labels."""

    missed_slots: NotRequired[int]
    """Earlier slots of the schedule that were missed and got no job."""

    node: NotRequired[str]
    """The daemon that works on it, in a fleet."""

    priority: int
    """From -100 to 100."""

    reason: NotRequired[QueueReason]
    """Why it does not start yet. With a living attempt only `rate_limited`: the attempt waits for its provider."""

    result: NotRequired[JobResult]
    """The result of its last turn, with the attempts. Lists omit its text."""

    run_at_ms: Timestamp
    """Time at which it is due; for a job that retries, of the next attempt."""

    schedule_id: NotRequired[ScheduleId]
    """The schedule that created it."""

    seq: int
    """Number of its newest event."""

    session_id: NotRequired[SessionId]
    """The session of the newest attempt."""

    slot_ms: NotRequired[Timestamp]
    """The slot of the schedule."""

    started_at_ms: NotRequired[Timestamp]
    """Start of the first attempt."""

    state: JobState
    """Its state."""

    template: NotRequired[str]
    """The template that it was made from."""

    title: str
    """Short name."""

    usage: Usage
    """Tokens of all attempts."""

    waiting_for: NotRequired[WaitingFor]
    """What a waiting job waits for."""


class JobAttempt(TypedDict):
    """One session that worked on a job."""

    attempt: int
    """Its number, from 1."""

    ended_at_ms: NotRequired[Timestamp]
    """Time of its end."""

    node: NotRequired[str]
    """The daemon that worked on it, in a fleet."""

    session_id: SessionId
    """Its session."""

    started_at_ms: Timestamp
    """Time of its start."""

    subtype: NotRequired[Subtype]
    """How its last turn ended."""


class JobCancelParams(TypedDict):
    """`job.cancel`"""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the reply of the first call."""

    job_id: JobId
    """Id of the job."""

    reason: NotRequired[str]
    """Why, for the log."""


class JobCancelReply(TypedDict):
    """Reply of `job.cancel`: the work has stopped."""

    job: Job
    """The job."""

    stopped: bool
    """Whether an attempt was stopped."""

    survivors: list[int]
    """Ids of processes that could not be killed."""


class JobCounts(TypedDict):
    """How many jobs are in which state."""

    completed: NotRequired[dict[str, int]]
    """Jobs that reached a final state since the start of the daemon, by state."""

    open: NotRequired[dict[str, int]]
    """Jobs that are not over, by state."""

    paused: NotRequired[bool]
    """Whether new starts are stopped."""


class JobCreateReply(TypedDict):
    """Reply of `job.create`"""

    existing: bool
    """Whether it existed before, because it has the same `unique` key."""

    job: Job
    """The job."""


class JobError(TypedDict):
    """Why a job failed."""

    call_id: NotRequired[CallId]
    """The tool call that it is about."""

    kind: str
    """A stable code: `unknown_outcome`, `worktree`, `session`, `no_result`, `killed`, or that of the turn's error."""

    message: str
    """Text for users."""

# One numbered event of a job.
JobEvent: TypeAlias = "JobEventJobCreated | JobEventJobQueued | JobEventJobStarted | JobEventJobWaiting | JobEventJobResumed | JobEventJobRetrying | JobEventJobUpdated | JobEventJobCancelling | JobEventJobCompleted | JobEventJobDelivery"


class JobEventEvent(TypedDict):
    """Something happened to the job that the session works on, without the job's result. `job.events` has all of it."""

    at_ms: Timestamp
    """Time of the event."""

    event: JobEvent
    """The event of the job, for example `job.waiting`."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['job.event']


class JobEventJobCancelling(TypedDict):
    """A user cancelled it; its attempt is being stopped."""

    at_ms: Timestamp
    """Time of the event."""

    job_id: JobId
    """The job."""

    reason: NotRequired[str]
    """Why."""

    seq: int
    """Its number: 1, 2, 3 … without gaps."""

    type: Literal['job.cancelling']


class JobEventJobCompleted(TypedDict):
    """It has a final state."""

    at_ms: Timestamp
    """Time of the event."""

    error: NotRequired[JobError]
    """Why it failed."""

    job_id: JobId
    """The job."""

    result: NotRequired[JobResult]
    """The result; absent if no attempt was started."""

    seq: int
    """Its number: 1, 2, 3 … without gaps."""

    state: JobState
    """The final state."""

    type: Literal['job.completed']


class JobEventJobCreated(TypedDict):
    """It was created."""

    at_ms: Timestamp
    """Time of the event."""

    job_id: JobId
    """The job."""

    seq: int
    """Its number: 1, 2, 3 … without gaps."""

    type: Literal['job.created']


class JobEventJobDelivery(TypedDict):
    """A notification was delivered, failed or was given up."""

    at_ms: Timestamp
    """Time of the event."""

    job_id: JobId
    """The job."""

    seq: int
    """Its number: 1, 2, 3 … without gaps."""

    status: DeliveryStatus
    """How far it is."""

    target: str
    """The table `[jobs.notify.NAME]`."""

    tries: int
    """Number of tries so far."""

    type: Literal['job.delivery']


class JobEventJobQueued(TypedDict):
    """It may start as soon as a slot is free."""

    at_ms: Timestamp
    """Time of the event."""

    job_id: JobId
    """The job."""

    seq: int
    """Its number: 1, 2, 3 … without gaps."""

    type: Literal['job.queued']


class JobEventJobResumed(TypedDict):
    """The attempt goes on after it waited for a person."""

    at_ms: Timestamp
    """Time of the event."""

    job_id: JobId
    """The job."""

    seq: int
    """Its number: 1, 2, 3 … without gaps."""

    type: Literal['job.resumed']


class JobEventJobRetrying(TypedDict):
    """The attempt failed and another one follows."""

    at_ms: Timestamp
    """Time of the event."""

    job_id: JobId
    """The job."""

    reason: str
    """Why the attempt failed."""

    run_at_ms: Timestamp
    """Time of the next attempt. `at_ms` is the time of the event."""

    seq: int
    """Its number: 1, 2, 3 … without gaps."""

    type: Literal['job.retrying']


class JobEventJobStarted(TypedDict):
    """An attempt was started."""

    at_ms: Timestamp
    """Time of the event."""

    attempt: int
    """Number of the attempt."""

    job_id: JobId
    """The job."""

    node: NotRequired[str]
    """The daemon, in a fleet."""

    seq: int
    """Its number: 1, 2, 3 … without gaps."""

    session_id: SessionId
    """Its session."""

    type: Literal['job.started']


class JobEventJobUpdated(TypedDict):
    """Its priority, time, labels or limits were changed."""

    at_ms: Timestamp
    """Time of the event."""

    job_id: JobId
    """The job."""

    seq: int
    """Its number: 1, 2, 3 … without gaps."""

    type: Literal['job.updated']

# The attempt waits for a person.
JobEventJobWaiting = TypedDict(
    "JobEventJobWaiting",
    {
        "at_ms": "Timestamp",
        "for": "WaitingFor",
        "job_id": "JobId",
        "seq": "int",
        "type": "Literal['job.waiting']",
    },
)


class JobEventsParams(TypedDict):
    """`job.events`"""

    after_seq: NotRequired[int]
    """Only events after this number."""

    job_id: JobId
    """Id of the job."""


class JobEventsReply(TypedDict):
    """Reply of `job.events`"""

    events: list[JobEvent]
    """Events, oldest first; at most 1,000."""


class JobGetReply(TypedDict):
    """Reply of `job.get`"""

    job: Job
    """The job."""

    request: JobRequest
    """What it is asked to do, as it was stored."""

# 
JobId: TypeAlias = "str"


class JobListParams(TypedDict):
    """`job.list`"""

    cursor: NotRequired[str]
    """`next_cursor` of the previous page."""

    cwd: NotRequired[str]
    """Only jobs of this folder."""

    label: NotRequired[str]
    """Only jobs with this label: `NAME` or `NAME=VALUE`."""

    limit: NotRequired[int]
    """Jobs per page, 1 to 500; 100 by default."""

    schedule_id: NotRequired[ScheduleId]
    """Only jobs of this schedule."""

    states: NotRequired[list[JobState]]
    """Only these states."""

    template: NotRequired[str]
    """Only jobs of this template."""


class JobListReply(TypedDict):
    """Reply of `job.list`: newest first."""

    jobs: list[Job]
    """Jobs of this page."""

    next_cursor: NotRequired[str]
    """Cursor of the next page, if there is one."""


class JobLogsParams(TypedDict):
    """`job.logs`"""

    after_seq: NotRequired[int]
    """Only events after this seq."""

    attempt: NotRequired[int]
    """Number of the attempt; by default the newest."""

    job_id: JobId
    """Id of the job."""

    limit: NotRequired[int]
    """Events per page."""


class JobLogsReply(TypedDict):
    """Reply of `job.logs`"""

    events: list[Envelope]
    """Its events, oldest first."""

    last_seq: int
    """Seq of the session's newest event."""

    next_cursor: NotRequired[str]
    """`after_seq` of the next page, if there is one."""

    session_id: SessionId
    """The session of the attempt."""


class JobNotification(TypedDict):
    """The change of a job."""

    job: Job
    """The job as `job.list` shows it."""

    kind: str
    """`type` of the job's newest event, for example `job.started`."""


class JobParams(TypedDict):
    """Selects one job."""

    job_id: JobId
    """Id of the job."""


class JobPauseParams(TypedDict):
    """`job.pause`, `job.resume`"""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the reply of the first call."""


class JobPauseReply(TypedDict):
    """Reply of `job.pause` and `job.resume`"""

    paused: bool
    """Whether new starts are stopped."""


class JobReply(TypedDict):
    """Reply with one job."""

    job: Job
    """The job."""


class JobRequest(TypedDict):
    """The content of a job. Later changes of a template or of the configuration do not change it, except that deny rules and lower limits count at once."""

    agent: NotRequired[str]
    """Name of the agent as which the attempts work."""

    artifacts: NotRequired[list[str]]
    """Globs relative to the job's folder: files that are kept with the result."""

    budgets: NotRequired[Budgets]
    """Limits of the job over all attempts. Missing ones come from `[permissions.unattended]`."""

    concurrency: NotRequired[Concurrency]
    """How many jobs with the same key run at a time. A job without a worktree has the key of its real folder with limit 1 by default."""

    cwd: NotRequired[str]
    """An existing folder, absolute."""

    delay: NotRequired[Duration]
    """The job does not start before this time has passed since its creation."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the reply of the first call. It is not stored with the job."""

    labels: NotRequired[dict[str, str]]
    """Labels for lists."""

    mode: NotRequired[Mode]
    """Approval mode."""

    model: NotRequired[str]
    """`PROVIDER/MODEL`, or the name of a pointer of `[models]`."""

    on_complete: NotRequired[list[OnComplete]]
    """Who is told of the end of the job."""

    output_schema: NotRequired[Any]
    """JSON Schema of the result. A job without a valid value is `failed`."""

    parameters: NotRequired[dict[str, Any]]
    """Values of the template's parameters."""

    priority: NotRequired[int]
    """From -100 to 100; jobs with a higher number start first. 0 by default."""

    prompt: NotRequired[str]
    """The text for the model, sent as it is. Not together with `template`."""

    retry: NotRequired[RetryPolicy]
    """When a failed attempt is repeated; by default never."""

    run_at_ms: NotRequired[Timestamp]
    """The job does not start before this time. Not together with `delay`."""

    start_deadline: NotRequired[Duration]
    """A job that has not started this long after it was due becomes `expired`."""

    system_prompt: NotRequired[str]
    """Replaces the default system prompt."""

    template: NotRequired[str]
    """Name of a template, whose fields apply where the request has none."""

    title: NotRequired[str]
    """Short name; by default the first words of the prompt."""

    tools: NotRequired[ToolChoice]
    """The tools on offer; absent for all."""

    unique: NotRequired[Unique]
    """Prevents a second job with the same key."""

    worktree: NotRequired[WorktreeChoice]
    """Whether the job works in a git worktree of its own: `true`, or an object."""


class JobResult(TypedDict):
    """The result of a job."""

    artifacts: NotRequired[list[Artifact]]
    """The files that were kept."""

    attempts: NotRequired[list[JobAttempt]]
    """All attempts, the first one first."""

    cache_hit_tokens: NotRequired[int]
    """Input tokens of this turn that were read from a prompt cache."""

    cost_at_least_usd_micros: NotRequired[int]
    """Cost of the calls whose price is known, in millionths of a dollar: a lower bound of the total cost."""

    cost_usd_micros: NotRequired[int]
    """Cost of this turn, in millionths of a dollar; `null` if a price is unknown."""

    duration_ms: NotRequired[int]
    """Duration from start to end, in milliseconds."""

    errors: NotRequired[list[TurnError]]
    """Errors of this turn only."""

    git: NotRequired[GitResult]
    """What it left in its branch."""

    model_calls: NotRequired[int]
    """Number of model calls."""

    model_ms: NotRequired[int]
    """Time of the model calls with complete answers, in milliseconds. Failed attempts and the waits between them are not included."""

    permission_denials: NotRequired[list[Denial]]
    """Calls that were refused."""

    permission_ms: NotRequired[int]
    """Time spent waiting for users, in milliseconds."""

    stop_reason: NotRequired[StopReason]
    """Why the last answer ended."""

    structured: NotRequired[Any]
    """The value that satisfies the turn's `output_schema`."""

    subtype: NotRequired[Subtype]
    """How it ended."""

    text: NotRequired[str]
    """The text of the last answer; may be empty."""

    tool_calls: NotRequired[int]
    """Number of tool calls."""

    tools_ms: NotRequired[int]
    """Time spent running tools, in milliseconds."""

    usage: NotRequired[Usage]
    """Tokens of this turn."""

    usage_by_model: NotRequired[dict[str, ModelUsage]]
    """The usage by `PROVIDER/MODEL`, with calls and cost."""


class JobRetryParams(TypedDict):
    """`job.retry`"""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the reply of the first call."""

    job_id: JobId
    """Id of the job."""

    mode: NotRequired[RetryMode]
    """What the attempt starts from; by default as `retry` of the job says."""

# The state of a job.
JobState: TypeAlias = "Literal['scheduled', 'queued', 'running', 'waiting', 'retrying', 'succeeded', 'failed', 'cancelled', 'expired', 'skipped']"


class JobTemplate(TypedDict):
    """A template of jobs."""

    description: NotRequired[str]
    """What it is for."""

    name: str
    """Its name."""

    parameters: dict[str, TemplateParameter]
    """Its parameters by name."""

    path: str
    """Its file."""

    source: str
    """`user` or `project`."""


class JobTemplatesParams(TypedDict):
    """`job.templates`"""

    cwd: NotRequired[str]
    """A folder whose project's templates are listed as well."""


class JobTemplatesReply(TypedDict):
    """Reply of `job.templates`"""

    diagnostics: list[TemplateDiagnostic]
    """Files that are not used."""

    templates: list[JobTemplate]
    """Templates by name."""


class JobUpdateParams(TypedDict):
    """`job.update`"""

    budgets: NotRequired[Budgets]
    """Higher limits, also of a running job."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the reply of the first call."""

    job_id: JobId
    """Id of the job."""

    labels: NotRequired[dict[str, str]]
    """All labels, in place of those that it has."""

    priority: NotRequired[int]
    """From -100 to 100."""

    run_at_ms: NotRequired[Timestamp]
    """The job does not start before this time."""


class JobWaitParams(TypedDict):
    """`job.wait`"""

    job_id: JobId
    """Id of the job."""

    timeout_ms: NotRequired[int]
    """How long to wait at most, in milliseconds; without it, until the job is over."""


class JobWaitReply(TypedDict):
    """Reply of `job.wait`"""

    job: Job
    """The job."""

    timed_out: bool
    """Whether the time was over before the job was."""

# When a worktree is kept at the end of its job. The branch always stays if it has a commit.
KeepWorktree: TypeAlias = "Literal['changed', 'always', 'never']"


class Keywords(TypedDict):
    """The keywords of a query."""

    high_level: list[str]
    """Themes and intentions."""

    low_level: list[str]
    """Names and concrete things."""

# The cause that ended a background command with state `killed`.
KilledBy: TypeAlias = "Literal['tool', 'abort', 'session', 'shutdown']"


class KnowledgeCacheClearParams(TypedDict):
    """`knowledge.cache.clear`"""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the same reply."""

    kinds: NotRequired[list[CacheKind]]
    """The kinds to delete. By default `query` and `keywords`, which cost least to request again."""

    workspace: str
    """The workspace folder, absolute."""


class KnowledgeCacheClearReply(TypedDict):
    """Reply of `knowledge.cache.clear`"""

    removed: int
    """Number of removed answers."""


class KnowledgeCancelParams(TypedDict):
    """`knowledge.cancel`: selects a job or a query."""

    idempotency_key: NotRequired[str]
    """Repeating the call with the same key returns the first reply."""

    job_id: NotRequired[str]
    """Id of the job."""

    query_id: NotRequired[str]
    """Id of the query."""

    workspace: str
    """The workspace folder, absolute."""


class KnowledgeCancelReply(TypedDict):
    """Reply of `knowledge.cancel`"""

    cancelled: bool
    """Whether the job or query was running."""


class KnowledgeDeleteParams(TypedDict):
    """`knowledge.delete`"""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the same reply."""

    workspace: str
    """The workspace folder, absolute."""


class KnowledgeDeleteReply(TypedDict):
    """Reply of `knowledge.delete`"""

    deleted: bool
    """Whether there was an index."""


class KnowledgeDocumentDeleteParams(TypedDict):
    """`knowledge.documents.delete`"""

    delete_cache: NotRequired[bool]
    """Whether cached answers of the model about it are deleted as well."""

    id: str
    """Id or path of the document."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the same reply."""

    workspace: str
    """The workspace folder, absolute."""


class KnowledgeDocumentDeleteReply(TypedDict):
    """Reply of `knowledge.documents.delete`"""

    message: NotRequired[str]
    """Why it was not deleted."""

    status: str
    """`success`, `not_found`, `not_allowed` (a job works on the index) or `fail`."""


class KnowledgeDocumentParams(TypedDict):
    """`knowledge.documents.get`"""

    id: str
    """Id or path of the document."""

    workspace: str
    """The workspace folder, absolute."""


class KnowledgeDocumentReply(TypedDict):
    """Reply of `knowledge.documents.get`"""

    chunks: list[ChunkView]
    """Its chunks in order, at most 500."""

    document: IndexDocument
    """The document."""


class KnowledgeDocumentsParams(TypedDict):
    """`knowledge.documents.list`"""

    cursor: NotRequired[str]
    """`next_cursor` of the previous page."""

    limit: NotRequired[int]
    """Documents per page, at most 500; 100 by default."""

    status: NotRequired[str]
    """Only documents in this state: `pending`, `processing`, `processed` or `failed`."""

    workspace: str
    """The workspace folder, absolute."""


class KnowledgeDocumentsReply(TypedDict):
    """Reply of `knowledge.documents.list`"""

    documents: list[IndexDocument]
    """The documents of this page."""

    next_cursor: NotRequired[str]
    """Cursor of the next page; absent on the last page."""


class KnowledgeEntityMergeParams(TypedDict):
    """`knowledge.entity.merge`"""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the same reply."""

    sources: list[str]
    """Names of the entities to merge into `target`, 1 to 100. They are removed."""

    target: str
    """Name of the entity that receives their descriptions, chunks and relations."""

    workspace: str
    """The workspace folder, absolute."""


class KnowledgeEntityParams(TypedDict):
    """`knowledge.entity.create`, `.update`, `.delete`"""

    description: NotRequired[str]
    """Its description; needed with `create`."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the same reply."""

    name: str
    """Name of the entity."""

    new_name: NotRequired[str]
    """With `update`: its new name."""

    type: NotRequired[str]
    """Its type; needed with `create`."""

    workspace: str
    """The workspace folder, absolute."""


class KnowledgeEntityReply(TypedDict):
    """Reply of `knowledge.entity.create`, `.update`, `.merge` and `.delete`"""

    entity: NotRequired[GraphNode]
    """The entity; absent after `delete`."""

# An event of an index job or a query, for a subscription. The last event is `done`, `failed` or `cancelled`.
KnowledgeEvent: TypeAlias = "KnowledgeEventProgress | KnowledgeEventExtractingKeywords | KnowledgeEventRetrievingEntities | KnowledgeEventRetrievingRelations | KnowledgeEventRetrievingChunks | KnowledgeEventReranking | KnowledgeEventBuildingContext | KnowledgeEventGeneratingResponse | KnowledgeEventRawData | KnowledgeEventDelta | KnowledgeEventDone | KnowledgeEventFailed | KnowledgeEventCancelled"


class KnowledgeEventBuildingContext(TypedDict):
    """The daemon writes the prompt."""

    type: Literal['building_context']


class KnowledgeEventCancelled(TypedDict):
    """The job or query was cancelled."""

    type: Literal['cancelled']


class KnowledgeEventDelta(TypedDict):
    """A part of the answer."""

    text: str
    """The text."""

    type: Literal['delta']


class KnowledgeEventDone(TypedDict):
    """The job or query is done."""

    result: NotRequired[QueryResult]
    """The result of a query."""

    summary: NotRequired[IndexSummary]
    """The result of a job."""

    type: Literal['done']


class KnowledgeEventExtractingKeywords(TypedDict):
    """The daemon asks the model for keywords."""

    type: Literal['extracting_keywords']


class KnowledgeEventFailed(TypedDict):
    """The job or query failed."""

    error: QueryError
    """The reason."""

    result: NotRequired[QueryResult]
    """The result of a query up to the failure."""

    type: Literal['failed']


class KnowledgeEventGeneratingResponse(TypedDict):
    """The model writes the answer."""

    type: Literal['generating_response']


class KnowledgeEventNotification(TypedDict):
    """The parameters of the notification `knowledge.event`."""

    result: KnowledgeEvent

    subscription: SubscriptionId


class KnowledgeEventProgress(TypedDict):
    """An index job made progress."""

    cost_usd_micros: int
    """Cost of these tokens in millionths of a dollar."""

    done: int
    """Number of finished units of the stage."""

    stage: IndexStage
    """The stage."""

    tokens: int
    """Tokens that the job has used."""

    total: int
    """Number of all units of the stage; 0 while unknown."""

    type: Literal['progress']


class KnowledgeEventRawData(TypedDict):
    """The data that the query found. This event comes before the first `delta`."""

    raw_data: RawData
    """All data that the query found."""

    type: Literal['raw_data']


class KnowledgeEventReranking(TypedDict):
    """The reranker ranks the chunks again."""

    type: Literal['reranking']


class KnowledgeEventRetrievingChunks(TypedDict):
    """The query searches chunks."""

    type: Literal['retrieving_chunks']


class KnowledgeEventRetrievingEntities(TypedDict):
    """The query searches entities."""

    type: Literal['retrieving_entities']


class KnowledgeEventRetrievingRelations(TypedDict):
    """The query searches relations."""

    type: Literal['retrieving_relations']


class KnowledgeGraphParams(TypedDict):
    """`knowledge.graph`"""

    depth: NotRequired[int]
    """Maximum number of relations between the central entity and another one, 1 to 8; 2 by default."""

    format: NotRequired[GraphFormatParam]
    """The format of the graph."""

    max_nodes: NotRequired[int]
    """Maximum number of entities, 1 to 1,000; 200 by default."""

    name: NotRequired[str]
    """Name of the central entity. If it is absent, the graph contains the entities with the most relations."""

    workspace: str
    """The workspace folder, absolute."""


class KnowledgeGraphReply(TypedDict):
    """Reply of `knowledge.graph`"""

    data: NotRequired[str]
    """The graph as text; absent if `format` is `json`."""

    edges: list[Relation]
    """The edges between the nodes; empty if `format` is not `json`."""

    nodes: list[GraphNode]
    """The nodes; empty if `format` is not `json`."""

    truncated: bool
    """Whether `max_nodes` cut the graph."""


class KnowledgeIndexParams(TypedDict):
    """`knowledge.index`"""

    budget: NotRequired[IndexBudget]
    """Limits for the level `semantic`. Without them, the daemon refuses this level, and the error gives the estimate."""

    dry_run: NotRequired[bool]
    """Whether the daemon only estimates the job and does not start it."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the same reply."""

    level: NotRequired[IndexLevel]
    """How much is extracted; by default the level of the configuration."""

    paths: NotRequired[list[str]]
    """At most 1,000 files and folders to index, relative to the workspace; absent for all."""

    workspace: str
    """The workspace folder, absolute."""


class KnowledgeInsertParams(TypedDict):
    """`knowledge.insert`"""

    documents: list[InsertedDocument]
    """The documents, at most 100."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the same reply."""

    workspace: str
    """The workspace folder whose index receives the documents, absolute."""


class KnowledgeInsertReply(TypedDict):
    """Reply of `knowledge.insert`"""

    documents: list[InsertOutcome]
    """The documents in the given order."""

# Reply of `knowledge.query`: the result, or the id of a streamed query.
KnowledgeQueryReply: TypeAlias = "KnowledgeQueryReplyQueryId | QueryResult"


class KnowledgeQueryReplyQueryId(TypedDict):
    """With `stream`: the id for `knowledge.subscribe` and `knowledge.cancel`."""

    query_id: str
    """Id of the query."""


class KnowledgeRelationParams(TypedDict):
    """`knowledge.relation.create`, `.update`, `.delete`"""

    description: NotRequired[str]
    """Its description; needed with `create`."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the same reply."""

    keywords: NotRequired[str]
    """Its keywords, separated by commas."""

    source: str
    """Name of the entity at one end."""

    target: str
    """Name of the entity at the other end."""

    weight: NotRequired[float]
    """Its strength, 1.0 by default."""

    workspace: str
    """The workspace folder, absolute."""


class KnowledgeRelationReply(TypedDict):
    """Reply of `knowledge.relation.create`, `.update` and `.delete`"""

    relation: NotRequired[Relation]
    """The relation; absent after `delete`."""


class KnowledgeStatusParams(TypedDict):
    """`knowledge.status`"""

    workspace: str
    """The workspace folder, absolute."""


class KnowledgeWorkParams(TypedDict):
    """`knowledge.subscribe`: selects a job or a query."""

    job_id: NotRequired[str]
    """Id of the job."""

    query_id: NotRequired[str]
    """Id of the query."""

    workspace: str
    """The workspace folder, absolute."""


class LastReload(TypedDict):
    """Result of a reload of the configuration."""

    at_ms: Timestamp
    """Time of the reload."""

    error: NotRequired[str]
    """The error of a failed reload, with file and line. The previous configuration stays active."""

    needs_restart: NotRequired[list[str]]
    """Keys that changed since the start and apply only after a restart."""


class LastTurn(TypedDict):
    """The end of a session's last turn, for lists. `turn.completed` and `session.wait` have the whole result."""

    duration_ms: NotRequired[int]
    """Duration from start to end, in milliseconds."""

    ended_at_ms: Timestamp
    """Time of its end."""

    kind: NotRequired[str]
    """Code of its first error."""

    message: NotRequired[str]
    """Text of its first error, at most 200 characters."""

    permission_ms: NotRequired[int]
    """The part of `duration_ms` that the turn spent waiting for users."""

    subtype: Subtype
    """How it ended."""


class LedgerRow(TypedDict):
    """The usage of one model by one session."""

    cache_read_tokens: NotRequired[int]
    """Input tokens read from a prompt cache."""

    cache_write_1h_tokens: NotRequired[int]
    """The part of `cache_write_tokens` that is kept for an hour instead of minutes, where the provider reports it."""

    cache_write_tokens: NotRequired[int]
    """Input tokens written to a prompt cache."""

    calls: NotRequired[int]
    """Model calls, including lost attempts."""

    context_window: NotRequired[int]
    """Tokens that fit in a request and its answer, as known at the newest call; absent if unknown."""

    cost_at_least_usd_micros: NotRequired[int]
    """Cost of the calls whose price is known, in millionths of a dollar: a lower bound of the total cost."""

    cost_usd_micros: NotRequired[int]
    """Cost of all calls, in millionths of a dollar; `null` if a price is unknown."""

    estimated_calls: NotRequired[int]
    """Calls whose tokens are an upper estimate, because the provider did not report them."""

    first_at_ms: Timestamp
    """Time of the first of these calls."""

    input_tokens: NotRequired[int]
    """Input tokens that were neither read from nor written to a prompt cache."""

    last_at_ms: Timestamp
    """Time of the last of these calls."""

    lost_attempts: NotRequired[int]
    """Calls without an answer, for which the provider may still charge."""

    max_output_tokens: NotRequired[int]
    """Tokens of the longest answer, as known at the newest call; absent if unknown."""

    model: str
    """`PROVIDER/MODEL`."""

    output_tokens: NotRequired[int]
    """Output tokens, reasoning included."""

    reasoning_tokens: NotRequired[int]
    """The part of the output that was reasoning, where the provider reports it."""

    service_tier: NotRequired[ServiceTier]
    """The service tier of one call, where the provider reports it; absent in sums."""

    session_id: SessionId
    """Id of the session; it may have been deleted since."""

    title: NotRequired[str]
    """Its short name; absent if the session was deleted."""

    total: NotRequired[int]
    """All tokens that were sent or received; computed when it is written."""

    unpriced_calls: NotRequired[int]
    """Calls whose price is unknown."""

    web_search_requests: NotRequired[int]
    """Web searches that the provider made for the answer; each one is charged."""


class ListParams(TypedDict):
    """`session.list`"""

    cursor: NotRequired[str]
    """`next_cursor` of the previous page."""

    cwd: NotRequired[str]
    """Only sessions of this folder."""

    include_children: NotRequired[bool]
    """Whether the sessions of sub-agents are listed as well."""

    limit: NotRequired[int]
    """Sessions per page, 1 to 500; 100 by default."""

    search: NotRequired[str]
    """Only sessions that match this text. Either the title, the folder or the last line contains the text, or a message contains all its words. The last word may be the beginning of a word. `matches` names the matching messages."""

    states: NotRequired[list[SessionState]]
    """Only these states."""


class ListReply(TypedDict):
    """Reply of `session.list`: newest first."""

    next_cursor: NotRequired[str]
    """Cursor of the next page, if there is one."""

    sessions: list[SessionView]
    """Sessions of this page."""


class McpAddParams(TypedDict):
    """`mcp.add`"""

    config: Any
    """Its configuration, with the keys of `[mcp.NAME]`."""

    cwd: NotRequired[str]
    """The project's folder, absolute; needed with the scope `project`."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key and parameters returns the first reply, within 24 hours."""

    name: str
    """The name of the server."""

    scope: McpScope
    """The scope in which it is added."""


class McpChangeReply(TypedDict):
    """Reply of `mcp.add` and `mcp.remove`"""

    name: str
    """The name of the server."""


class McpInstructions(TypedDict):
    """Instructions of a server for the model."""

    server: str
    """Name of the server."""

    text: str
    """The text of the instructions."""


class McpListParams(TypedDict):
    """`mcp.list`"""

    cwd: NotRequired[str]
    """The folder whose project servers are listed as well, absolute. Programs without a configured folder start in it."""

    session_id: NotRequired[SessionId]
    """The session whose servers are listed, including those that were given when it was created. Not together with `cwd`."""


class McpListReply(TypedDict):
    """Reply of `mcp.list`"""

    servers: list[McpServerView]
    """Sorted by name."""


class McpLogsReply(TypedDict):
    """Reply of `mcp.logs`"""

    lines: list[str]
    """The newest lines that the running server wrote to standard error or sent as log messages, oldest first. Empty if the server does not run."""


class McpRemoveParams(TypedDict):
    """`mcp.remove`"""

    cwd: NotRequired[str]
    """The project's folder, absolute; needed with the scope `project`."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key and parameters returns the first reply, within 24 hours."""

    name: str
    """The name of the server."""

    scope: McpScope
    """The scope in which it was added."""


class McpResource(TypedDict):
    """One resource of an MCP server. A user attaches it with an input block `resource_link`."""

    description: NotRequired[str]
    """Its description."""

    media_type: NotRequired[str]
    """Its media type, as the server reports it."""

    name: str
    """Its name."""

    size: NotRequired[int]
    """Its size in bytes, as the server reports it."""

    uri: str
    """Its URI."""


class McpResourceList(TypedDict):
    """The resources of an MCP server: the reply of `mcp.resources`."""

    is_complete: bool
    """Whether `resources` contains all resources of the server."""

    resources: list[McpResource]
    """At most 1,000 resources in the order of the server."""

    templates: list[McpResourceTemplate]
    """Patterns of the URIs of further resources."""


class McpResourceTemplate(TypedDict):
    """A pattern of URIs that an MCP server can read."""

    description: NotRequired[str]
    """Its description."""

    name: str
    """Its name."""

    uri_template: str
    """The pattern, for example `file:///{path}`."""

# The scope in which a server is added.
McpScope: TypeAlias = "Literal['user', 'project']"


class McpServerParams(TypedDict):
    """`mcp.tools`, `mcp.resources` and `mcp.logs`"""

    cwd: NotRequired[str]
    """The folder, as in `mcp.list`."""

    name: str
    """The name of the server."""

    session_id: NotRequired[SessionId]
    """The session, as in `mcp.list`."""


class McpServerView(TypedDict):
    """One MCP server."""

    error: NotRequired[str]
    """Why it is not ready."""

    instructions: NotRequired[str]
    """Its instructions for the model."""

    name: str
    """Its name."""

    notes: NotRequired[list[str]]
    """Parts of its configuration without effect, and tools that are left out."""

    source: str
    """Source of its configuration: `system`, `user`, `project` or `session`."""

    state: McpState
    """Its state."""

    tools: list[str]
    """Names of its tools for the model."""

    transport: str
    """`stdio` or `http`; empty if its configuration is wrong."""

# The state of an MCP server.
McpState: TypeAlias = "Literal['disabled', 'untrusted', 'starting', 'ready', 'failed']"


class McpStatusEvent(TypedDict):
    """The state of an MCP server changed for this session."""

    at_ms: Timestamp
    """Time of the event."""

    error: NotRequired[str]
    """Why it failed."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    notes: NotRequired[list[str]]
    """Tools that are left out, and parts of its configuration that are not understood."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    server: str
    """The name in the configuration."""

    session_id: SessionId
    """Id of the session."""

    state: McpState
    """Its state."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['mcp.status']


class McpTest(TypedDict):
    """The result of `mcp.test`."""

    duration_ms: int
    """Duration of the start in milliseconds; 0 if the server ran already."""

    error: NotRequired[str]
    """Why it is not ready."""

    problems: list[str]
    """Tools that the daemon leaves out, each with the reason, and hints about the configuration."""

    protocol: NotRequired[str]
    """The revision of the Model Context Protocol that the server uses."""

    state: McpState
    """The state after the start."""

    tools: list[str]
    """Names of its tools for the model."""


class McpTestParams(TypedDict):
    """`mcp.test`: a configured server or a configuration."""

    config: NotRequired[Any]
    """A configuration, with the keys of `[mcp.NAME]`."""

    cwd: NotRequired[str]
    """The folder, as in `mcp.list`."""

    idempotency_key: NotRequired[str]
    """Repeating the call with the same key returns the first reply."""

    name: NotRequired[str]
    """The name of a configured server."""

    session_id: NotRequired[SessionId]
    """The session, as in `mcp.list`."""


class McpTool(TypedDict):
    """A tool of an MCP server."""

    description: str
    """Its description."""

    digest: str
    """Digest of description and schema. An approval is for one digest."""

    input_schema: Any
    """JSON Schema of its input."""

    name: str
    """The name for the model, `mcp__SERVER__TOOL`."""

    server: str
    """The server's name in the configuration."""

    tool: str
    """The name on the server."""


class McpToolName(TypedDict):
    """The names of a tool of an MCP server."""

    name: str
    """The name for the model."""

    server: str
    """The server's name in the configuration."""

    tool: str
    """The tool's name on the server."""


class McpToolView(TypedDict):
    """One tool of an MCP server."""

    description: str
    """Its description."""

    input_schema: Any
    """JSON Schema of its input."""

    name: str
    """The name for the model and for rules."""

    tool: str
    """The name on the server."""


class McpToolsEvent(TypedDict):
    """The tools and instructions of MCP servers changed for later turns. A running turn keeps those with which it started."""

    at_ms: Timestamp
    """Time of the event."""

    instructions: NotRequired[list[McpInstructions]]
    """The instructions, sorted by server."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    tools: list[McpTool]
    """The tools, sorted by name."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['mcp.tools']


class McpToolsReply(TypedDict):
    """Reply of `mcp.tools`"""

    tools: list[McpToolView]
    """Sorted by name."""


class MediaWithheldEvent(TypedDict):
    """The provider refused the pictures and documents of the conversation. From now on models receive a text instead of them, with the text of the documents; the call is repeated at once. The stored media stay unchanged, and later media are sent."""

    at_ms: Timestamp
    """Time of the event."""

    count: int
    """Number of the refused media."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    reason: str
    """The provider's message."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['media.withheld']


class MemoryListParams(TypedDict):
    """`memory.list`"""

    cwd: str
    """The folder of the project."""

    name: NotRequired[str]
    """Only this note, with its text."""


class MemoryListReply(TypedDict):
    """Reply of `memory.list`: at most 100 notes."""

    notes: list[MemoryNote]
    """The notes by name."""


class MemoryNote(TypedDict):
    """A note of a project's memory."""

    bytes: int
    """Bytes of its text."""

    description: str
    """The first line of its text."""

    name: str
    """Its name: `a-z`, `0-9`, `_` and `-`."""

    text: NotRequired[str]
    """Its text, if the client requested a single note."""

    updated_at_ms: Timestamp
    """Time of the last write."""


class MemoryRemoveParams(TypedDict):
    """`memory.remove`"""

    cwd: str
    """The folder of the project."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the same reply."""

    name: str
    """Name of the note."""


class MemoryRemoveReply(TypedDict):
    """Reply of `memory.remove`"""

    name: str
    """Name of the removed note."""


class MemorySetParams(TypedDict):
    """`memory.set`"""

    cwd: str
    """The folder of the project."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the same reply."""

    name: str
    """Name of the note: `a-z`, `0-9`, `_` and `-`."""

    text: str
    """The whole text, at most 16 KiB. Its first line is its description."""


class MemorySetReply(TypedDict):
    """Reply of `memory.set`"""

    note: MemoryNote
    """The note as it is stored."""

# How `worktree.merge` merges.
MergeMethod: TypeAlias = "Literal['ff', 'commit']"


class Message(TypedDict):
    """One message of the transcript."""

    content: list[Block]
    """The blocks; never empty in a request."""

    model: NotRequired[str]
    """`PROVIDER/MODEL` that wrote it: its reasoning is sent to this model only. Unknown in old journals."""

    role: Role
    """The author."""


class MessageBlockCompletedEvent(TypedDict):
    """A block of the answer is complete."""

    at_ms: Timestamp
    """Time of the event."""

    data: NotRequired[str]
    """For encrypted reasoning: the complete data."""

    index: int
    """Position of the block."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    signature: NotRequired[str]
    """For reasoning: the provider's signature over its text."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['message.block_completed']


class MessageBlockStartedEvent(TypedDict):
    """A block of the answer started."""

    at_ms: Timestamp
    """Time of the event."""

    block: BlockKind
    """Kind of the block."""

    index: int
    """Position of the block."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['message.block_started']


class MessageCompletedEvent(TypedDict):
    """A message is complete (or was interrupted: then `item.status` is `interrupted`)."""

    at_ms: Timestamp
    """Time of the event."""

    cache_hit: NotRequired[bool]
    """Whether this is the cached answer to the same request shortly before. If so, no model was called, and the answer costs nothing."""

    candidate: NotRequired[bool]
    """Whether this is one of two answers to choose from (`feedback.request`). Such an answer is not part of the conversation. The chosen answer is copied into the conversation as a new item."""

    cost_usd_micros: NotRequired[int]
    """Cost of the call, in millionths of a dollar; absent if the price is unknown."""

    cut_short: NotRequired[bool]
    """Whether the stream broke off after complete tool calls, which may have run. The answer then ends with these calls."""

    duration_ms: NotRequired[int]
    """Duration of the call, in milliseconds."""

    estimated: NotRequired[bool]
    """Whether `usage` is an upper estimate, because the provider reported none."""

    item: Item
    """The item with the complete message."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    model: NotRequired[str]
    """`PROVIDER/MODEL` of an answer."""

    model_snapshot: NotRequired[ModelSnapshot]
    """Limits and price of the model at the time of the call."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    reasoning_item_id: NotRequired[ItemId]
    """Id of the item of kind `reasoning`, if there is one. Its text is in `item`."""

    response_id: NotRequired[str]
    """The provider's id of the answer."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    stop_reason: NotRequired[StopReason]
    """Why the answer ended."""

    superseded: NotRequired[bool]
    """For an `interrupted` message: the model's next answer replaces this text. Clients must not show both."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['message.completed']

    uncalibrated_tokens: NotRequired[int]
    """For an answer: tokens of its request, estimated from its characters. The ratio of the reported tokens to this number corrects later estimates."""

    usage: NotRequired[Usage]
    """Tokens of the call."""


class MessageStartedEvent(TypedDict):
    """A model's answer started."""

    at_ms: Timestamp
    """Time of the event."""

    attempt: int
    """Number of the attempt at this call, from 1."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    model: str
    """`PROVIDER/MODEL` that answers."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['message.started']


class MessageTextDeltaEvent(TypedDict):
    """More text. Pruned."""

    at_ms: Timestamp
    """Time of the event."""

    index: int
    """Position of the block."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    text: str
    """The new part."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['message.text_delta']


class MessageThinkingDeltaEvent(TypedDict):
    """More reasoning. Pruned."""

    at_ms: Timestamp
    """Time of the event."""

    index: int
    """Position of the block."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    text: str
    """The new part."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['message.thinking_delta']


class MessageTombstoneEvent(TypedDict):
    """A partial answer (`item_id`) is discarded: another one replaces it. Clients remove what they show of it."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    reason: TombstoneReason
    """Reason of the discard."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['message.tombstone']


class MessageToolInputDeltaEvent(TypedDict):
    """More of a tool call's arguments, as JSON text. Pruned."""

    at_ms: Timestamp
    """Time of the event."""

    index: int
    """Position of the block."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    json: str
    """The new part."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['message.tool_input_delta']


class Metadata(TypedDict):
    """Details of the search of a query."""

    cached: NotRequired[bool]
    """Whether the answer comes from the cache."""

    found: FoundCounts
    """Numbers of entities, relations and chunks before the limits were applied."""

    generation: NotRequired[int]
    """`generation` of the index that the query read."""

    keywords: Keywords
    """The keywords of the query."""

    keywords_failed: NotRequired[bool]
    """Whether the model gave no keywords, so that the text of the query was searched."""

    missing_chunks: NotRequired[int]
    """Number of chunks that entities or relations name but that no longer exist."""

    no_context_reason: NotRequired[str]
    """With status `no_context`: `bypass`, `nothing_found`, `files_gone`, `reranker` or `token_limit`."""

    query_mode: QueryMode
    """The mode of the query."""

    tokens: PromptTokens
    """Tokens of the parts of the prompt."""

    warnings: NotRequired[list[str]]
    """Warnings about parts that failed and were left out."""


class Metrics(TypedDict):
    """Counters of a daemon. Unless stated otherwise, they count since its start and only grow. The keys of its maps come from fixed lists, so that the number of counters is limited."""

    calls_by_service_tier: NotRequired[dict[str, int]]
    """Model calls by the service tier that the provider reported."""

    cost_usd_micros: NotRequired[int]
    """Cost of the calls whose price is known, in millionths of a dollar."""

    database_write_errors: NotRequired[int]
    """Transactions that could not be written."""

    database_writes: NotRequired[int]
    """Transactions written to the database."""

    errors: NotRequired[int]
    """Errors of turns."""

    jobs: NotRequired[JobCounts]
    """Jobs that are not over now, and those that ended since the start, by state."""

    lost_attempts: NotRequired[int]
    """Model calls without an answer, for which the provider may still charge."""

    model_calls: NotRequired[int]
    """Booked model calls, including lost attempts."""

    model_ms: NotRequired[int]
    """The part of `turn_ms` that turns spent waiting for models."""

    permission_ms: NotRequired[int]
    """The part of `turn_ms` that turns spent waiting for users."""

    permission_requests: NotRequired[int]
    """Permission requests that were raised."""

    prompt_cache_hits: NotRequired[int]
    """Model calls whose input the provider read partly from its prompt cache."""

    response_cache_hits: NotRequired[int]
    """Answers that came from the response cache. They count as model calls without cost."""

    retries: NotRequired[int]
    """Failed model calls that were retried."""

    sessions_loaded: NotRequired[int]
    """Sessions in memory now."""

    slow_turns: NotRequired[int]
    """Turns that took more than 30 s, without the time that they waited for users."""

    subscribers: NotRequired[int]
    """Clients attached to sessions now."""

    tool_calls: NotRequired[dict[str, int]]
    """Ended tool calls, by status."""

    tools_ms: NotRequired[int]
    """The part of `turn_ms` that turns spent running tools."""

    turn_ms: NotRequired[int]
    """Total duration of all ended turns, in milliseconds."""

    turns_completed: NotRequired[dict[str, int]]
    """Ended turns, by result."""

    turns_started: NotRequired[int]
    """Turns that started."""

    unpriced_calls: NotRequired[int]
    """Calls whose price is unknown."""

    uptime_ms: NotRequired[int]
    """Time since the start of the daemon, in milliseconds."""

    usage: NotRequired[Usage]
    """Tokens and searches of all model calls."""

# How much a session may do without a permission request.
Mode: TypeAlias = "Literal['default', 'accept_edits', 'plan', 'dont_ask', 'bypass']"


class ModelCheckParams(TypedDict):
    """`model.check`"""

    provider: NotRequired[str]
    """Only this provider; by default all configured ones."""


class ModelCheckReply(TypedDict):
    """Reply of `model.check`"""

    providers: list[ProviderCheck]
    """The checked providers, sorted by name."""


class ModelListParams(TypedDict):
    """`model.list`"""

    cursor: NotRequired[str]
    """`next_cursor` of the previous page."""

    limit: NotRequired[int]
    """Models per page, at most 500; 100 by default."""


class ModelListReply(TypedDict):
    """Reply of `model.list`"""

    models: list[ModelView]
    """Models of this page, sorted by name."""

    next_cursor: NotRequired[str]
    """Cursor of the next page; absent on the last page."""


class ModelSnapshot(TypedDict):
    """Limits and price of a model at the time of a call. It is stored with the call, so later changes do not affect old calls."""

    context_window: NotRequired[int]
    """Tokens that fit in a request and its answer."""

    max_output_tokens: NotRequired[int]
    """Tokens of the longest answer."""

    price: NotRequired[Price]
    """Price of the model."""

# Another model answers until the turn ends. The next turn starts with the session's model again.
ModelSwitchedEvent = TypedDict(
    "ModelSwitchedEvent",
    {
        "at_ms": "Timestamp",
        "detail": "NotRequired[str]",
        "from": "str",
        "item_id": "NotRequired[ItemId]",
        "origin": "NotRequired[Origin]",
        "parent_call_id": "NotRequired[CallId]",
        "reason": "SwitchReason",
        "seq": "int",
        "session_id": "SessionId",
        "step": "NotRequired[int]",
        "to": "str",
        "truncated_fields": "NotRequired[list[TruncatedField]]",
        "turn_id": "NotRequired[TurnId]",
        "type": "Literal['model.switched']",
    },
)


class ModelUsage(TypedDict):
    """The sum of all calls of one model, as the ledger stores it. If a part of a sum is unknown, the sum is unknown, and the known part is its lower bound."""

    cache_read_tokens: NotRequired[int]
    """Input tokens read from a prompt cache."""

    cache_write_1h_tokens: NotRequired[int]
    """The part of `cache_write_tokens` that is kept for an hour instead of minutes, where the provider reports it."""

    cache_write_tokens: NotRequired[int]
    """Input tokens written to a prompt cache."""

    calls: NotRequired[int]
    """Model calls, including lost attempts."""

    context_window: NotRequired[int]
    """Tokens that fit in a request and its answer, as known at the newest call; absent if unknown."""

    cost_at_least_usd_micros: NotRequired[int]
    """Cost of the calls whose price is known, in millionths of a dollar: a lower bound of the total cost."""

    cost_usd_micros: NotRequired[int]
    """Cost of all calls, in millionths of a dollar; `null` if a price is unknown."""

    estimated_calls: NotRequired[int]
    """Calls whose tokens are an upper estimate, because the provider did not report them."""

    input_tokens: NotRequired[int]
    """Input tokens that were neither read from nor written to a prompt cache."""

    lost_attempts: NotRequired[int]
    """Calls without an answer, for which the provider may still charge."""

    max_output_tokens: NotRequired[int]
    """Tokens of the longest answer, as known at the newest call; absent if unknown."""

    output_tokens: NotRequired[int]
    """Output tokens, reasoning included."""

    reasoning_tokens: NotRequired[int]
    """The part of the output that was reasoning, where the provider reports it."""

    service_tier: NotRequired[ServiceTier]
    """The service tier of one call, where the provider reports it; absent in sums."""

    total: NotRequired[int]
    """All tokens that were sent or received; computed when it is written."""

    unpriced_calls: NotRequired[int]
    """Calls whose price is unknown."""

    web_search_requests: NotRequired[int]
    """Web searches that the provider made for the answer; each one is charged."""


class ModelUsageParams(TypedDict):
    """`model.usage`"""

    cursor: NotRequired[str]
    """`next_cursor` of the previous page."""

    limit: NotRequired[int]
    """Rows per page, at most 500; 100 by default."""

    session_id: NotRequired[SessionId]
    """Only calls of this session, which may be a deleted one."""

    since_ms: NotRequired[Timestamp]
    """Only calls at this time or later."""

    until_ms: NotRequired[Timestamp]
    """Only calls before this time."""


class ModelUsageReply(TypedDict):
    """Reply of `model.usage`"""

    next_cursor: NotRequired[str]
    """Cursor of the next page; absent on the last page."""

    rows: list[LedgerRow]
    """One row for each session and model, newest sessions first."""

    total: ModelUsage
    """Sum of all selected calls, on all pages."""


class ModelView(TypedDict):
    """A model that a session could use, with its known capabilities."""

    context_window: NotRequired[int]
    """Tokens that fit in a request and its answer; `null` if unknown."""

    documents: NotRequired[bool]
    """Whether it accepts PDFs; `null` if unknown."""

    known: bool
    """Whether the model is known. If not, the values are optimistic defaults."""

    max_output_tokens: NotRequired[int]
    """Tokens of the longest answer; `null` if unknown."""

    model: str
    """`PROVIDER/MODEL`."""

    pointers: NotRequired[list[str]]
    """Its roles in the configuration, such as `main`; empty for most models."""

    price: NotRequired[Price]
    """Its price; `null` if unknown, which is not the same as free."""

    price_as_of: NotRequired[str]
    """Date of the price, for example `2026-03`."""

    price_source: NotRequired[str]
    """Source of the price: an address, or `configuration`."""

    sampling: NotRequired[bool]
    """Whether it accepts a temperature and `top_p`."""

    streaming: bool
    """Whether it can stream."""

    system_role: bool
    """Whether it accepts a system prompt."""

    thinking: bool
    """Whether it can return its reasoning."""

    tools: bool
    """Whether it can call tools."""

    vision: NotRequired[bool]
    """Whether it accepts images; `null` if unknown."""


class NewSchedule(TypedDict):
    """A new schedule: `schedule.create`. Exactly one of `cron` and `every` is given."""

    catch_up: NotRequired[CatchUp]
    """What happens to slots that were missed, because the machine slept or the daemon did not run."""

    catch_up_window: NotRequired[Duration]
    """Missed slots that are older do not fire; 24 hours by default, at most 31 days."""

    cron: NotRequired[str]
    """Five fields of cron, or `@hourly`, `@daily`, `@weekly`, `@monthly`."""

    enabled: NotRequired[bool]
    """Whether it fires."""

    every: NotRequired[Duration]
    """A slot after each interval since the creation, at least `1m`."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the reply of the first call."""

    jitter: NotRequired[Duration]
    """Random delay of each slot, below this time."""

    job: JobRequest
    """The content of each job. It has no `idempotency_key` and no `run_at_ms`."""

    max_failures: NotRequired[int]
    """After so many failures in a row the schedule is disabled; 5 by default, 0 for never."""

    name: str
    """Short name for people."""

    overlap: NotRequired[Overlap]
    """What happens while a job of the schedule is not over."""

    timezone: NotRequired[str]
    """IANA name of the zone of `cron`; by default the zone of the daemon's machine at creation."""

    until_ms: NotRequired[Timestamp]
    """No slot after this time."""


class NoticeEvent(TypedDict):
    """A notice for the user; it changes no state."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    kind: str
    """A stable code."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    text: str
    """The text."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['notice']

# A state of a job that can be reported.
NotifyState: TypeAlias = "Literal['succeeded', 'failed', 'cancelled', 'expired', 'waiting']"


class OnComplete(TypedDict):
    """Who is told of the end of a job. Exactly one of `webhook` and `command` names a table `[jobs.notify.NAME]`."""

    command: NotRequired[str]
    """A table with a `command`."""

    on: NotRequired[list[NotifyState]]
    """The states that are reported; by default all final ones except `skipped`."""

    webhook: NotRequired[str]
    """A table with a `url`."""

# What happens to a job whose unique key is taken.
OnConflict: TypeAlias = "Literal['return', 'replace', 'reject']"

# Handling of a turn that a restart interrupts.
OnRestart: TypeAlias = "Literal['resume', 'pause']"

# The action for an unanswered request of an unattended session.
OnTimeout: TypeAlias = "Literal['deny', 'allow_read_only', 'pause', 'fail']"


class Origin(TypedDict):
    """The client that caused an event."""

    client: str
    """Name that the client gave in `daemon.hello`, or `client-N`."""

    pid: NotRequired[int]
    """Its process id when it connected; for display only."""

    uid: int
    """Its user id."""

# What happens at a slot while a job of the schedule is not over.
Overlap: TypeAlias = "Literal['skip', 'queue', 'cancel']"


class ParentCall(TypedDict):
    """The call that started a session. Sessions that a client created have none."""

    call_id: CallId
    """The `Task` call."""

    depth: int
    """Number of calls between the first session and this one, from 1."""

    root_session_id: SessionId
    """The first session of the tree: the one that a client created."""

    session_id: SessionId
    """The session that made the call."""

# Names of the parts.
PartName: TypeAlias = "Literal['system', 'instructions', 'memory', 'tools', 'mcp', 'messages', 'tool_results', 'reminders', 'free']"

# Sensitivity of a path, from lowest to highest.
PathSensitivity: TypeAlias = "Literal['ordinary', 'secret', 'hard_linked', 'auto_executed', 'protected']"


class PendingRequest(TypedDict):
    """One pending request with its session."""

    at_ms: Timestamp
    """Time at which the request was raised."""

    blocked: NotRequired[Blocked]
    """For kind `sandbox`: the part of the sandbox that probably blocked the command."""

    call_id: CallId
    """The call that waits."""

    change: NotRequired[PlannedChange]
    """For calls that change a file: its content hash before and after."""

    child_session_id: NotRequired[SessionId]
    """For a request of a sub-agent, shown in the sessions above it: the session that waits. The answer goes to that session."""

    cwd: NotRequired[str]
    """The folder in which the call would run."""

    deadline_ms: NotRequired[Timestamp]
    """Deadline of the request; absent in attended sessions, which wait without limit. A restart does not change it."""

    diff: NotRequired[str]
    """Unified diff, for edits."""

    digest: NotRequired[str]
    """SHA-256 over session, folder, tool and arguments, in hexadecimal. It binds an answer to this exact call."""

    input: Any
    """The exact arguments."""

    kind: NotRequired[RequestKind]
    """The subject of the request. With `sandbox`, the command of this call has run and the sandbox blocked it (see `tool.blocked` before this event). An allowed command runs again from its beginning, outside the sandbox."""

    number: NotRequired[str]
    """Number of the session and position among its requests and questions, for example `12.1`. It is accepted instead of the id."""

    on_timeout: NotRequired[OnTimeout]
    """The action at the deadline."""

    parts: NotRequired[list[CommandPart2]]
    """For commands: the verdict on each simple command in the line."""

    read_only: NotRequired[bool]
    """Whether the call changes nothing."""

    read_only_command: NotRequired[bool]
    """Whether the call is a command whose parts are all read-only, inside the workspace, and read no secrets. `allow_read_only` allows such a command."""

    reason: str
    """Why this needs a request."""

    request_id: PermissionId
    """Its id; a restart does not change it."""

    sandbox: NotRequired[Confinement]
    """For commands: their confinement."""

    session_id: SessionId
    """Id of the session."""

    subject: Subject
    """The subject that the rules judged."""

    suggestions: list[str]
    """Possible grants, narrowest first."""

    summary: str
    """One line for users. For Bash the first line of the command, then the model's description of it."""

    tool: str
    """The tool."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of the request; `session.blob` reads the complete value."""


class PermissionEventNotification(TypedDict):
    """The parameters of the notification `permission.event`."""

    result: Envelope

    subscription: SubscriptionId


class PermissionExpiredEvent(TypedDict):
    """A permission request was not answered by its deadline. With `pause` it stays pending; else `permission.resolved` follows."""

    at_ms: Timestamp
    """Time of the event."""

    call_id: CallId
    """Id of the call."""

    child_session_id: NotRequired[SessionId]
    """For a request of a sub-agent: the session that waits."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    on_timeout: OnTimeout
    """The action that applies."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    request_id: PermissionId
    """Id of the request."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['permission.expired']

# 
PermissionId: TypeAlias = "str"


class PermissionListParams(TypedDict):
    """`permission.list`"""

    cursor: NotRequired[str]
    """`next_cursor` of the previous page."""

    limit: NotRequired[int]
    """Requests per page, 1 to 500; 100 by default."""

    session_id: NotRequired[SessionId]
    """Only requests of this session."""


class PermissionListReply(TypedDict):
    """Reply of `permission.list`: oldest first."""

    next_cursor: NotRequired[str]
    """Cursor of the next page, if there is one."""

    requests: list[PendingRequest]
    """A page of pending requests."""

# When calls of a tool need a permission request in mode `default`, if no rule decides.
PermissionNeed: TypeAlias = "Literal['never', 'outside_workspace', 'always']"


class PermissionRequestedEvent(TypedDict):
    """A tool call waits for the user's permission."""

    at_ms: Timestamp
    """Time of the event."""

    blocked: NotRequired[Blocked]
    """For kind `sandbox`: the part of the sandbox that probably blocked the command."""

    call_id: CallId
    """The call that waits."""

    change: NotRequired[PlannedChange]
    """For calls that change a file: its content hash before and after."""

    child_session_id: NotRequired[SessionId]
    """For a request of a sub-agent, shown in the sessions above it: the session that waits. The answer goes to that session."""

    cwd: NotRequired[str]
    """The folder in which the call would run."""

    deadline_ms: NotRequired[Timestamp]
    """Deadline of the request; absent in attended sessions, which wait without limit. A restart does not change it."""

    diff: NotRequired[str]
    """Unified diff, for edits."""

    digest: NotRequired[str]
    """SHA-256 over session, folder, tool and arguments, in hexadecimal. It binds an answer to this exact call."""

    input: Any
    """The exact arguments."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    kind: NotRequired[RequestKind]
    """The subject of the request. With `sandbox`, the command of this call has run and the sandbox blocked it (see `tool.blocked` before this event). An allowed command runs again from its beginning, outside the sandbox."""

    on_timeout: NotRequired[OnTimeout]
    """The action at the deadline."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    parts: NotRequired[list[CommandPart2]]
    """For commands: the verdict on each simple command in the line."""

    read_only: NotRequired[bool]
    """Whether the call changes nothing."""

    read_only_command: NotRequired[bool]
    """Whether the call is a command whose parts are all read-only, inside the workspace, and read no secrets. `allow_read_only` allows such a command."""

    reason: str
    """Why this needs a request."""

    request_id: PermissionId
    """Its id; a restart does not change it."""

    sandbox: NotRequired[Confinement]
    """For commands: their confinement."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    subject: Subject
    """The subject that the rules judged."""

    suggestions: list[str]
    """Possible grants, narrowest first."""

    summary: str
    """One line for users. For Bash the first line of the command, then the model's description of it."""

    tool: str
    """The tool."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['permission.requested']


class PermissionResolvedEvent(TypedDict):
    """A permission request was settled."""

    at_ms: Timestamp
    """Time of the event."""

    by: SettledBy
    """How it was settled: an answer, an abort, a rule, a change of mode, or a missing answer."""

    call_id: CallId
    """Id of the call."""

    child_session_id: NotRequired[SessionId]
    """For a request of a sub-agent: the session that waited."""

    decision: Decision
    """Allow or deny."""

    feedback: NotRequired[str]
    """Feedback of the user for the model."""

    grant: NotRequired[str]
    """The grant that the user gave with the answer."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    prepared: NotRequired[PreparedCall]
    """The call as prepared with the changed arguments."""

    request_id: PermissionId
    """Id of the request."""

    rule: NotRequired[str]
    """For `rule` or `mode`: the rule or mode that allows the call."""

    scope: Scope
    """How long an allow is valid."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    stop: NotRequired[bool]
    """Whether the turn ends with this denial."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['permission.resolved']

    updated_input: NotRequired[Any]
    """The user's arguments, which replace the model's."""


class PermissionRuleAddedEvent(TypedDict):
    """A permission rule was added to this session."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    kind: RuleKind
    """Whether the rule allows, asks or denies."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    rule: str
    """The rule as text."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['permission.rule_added']


class PermissionRuleRemovedEvent(TypedDict):
    """A permission rule or grant of this session was removed."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    kind: RuleKind
    """Whether the rule allowed, asked or denied."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    rule: str
    """The rule as text."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['permission.rule_removed']

# The phase of a turn.
Phase: TypeAlias = "Literal['input', 'compact_check', 'context', 'normalize', 'model_call', 'tool_execution', 'result']"

# The planned change of a call on files.
PlannedChange: TypeAlias = "PlannedChangeFiles | PlannedEdit"


class PlannedChangeFiles(TypedDict):
    """The planned change of several files, in the order of execution."""

    files: list[PlannedFile]
    """The files."""


class PlannedEdit(TypedDict):
    """The planned change of one file."""

    added: int
    """Lines added."""

    removed: int
    """Lines removed."""

    sha256_after: str
    """SHA-256 of the content after the change, in hexadecimal."""

    sha256_before: NotRequired[str]
    """SHA-256 of the content before the change, in hexadecimal; absent for a new file."""

    whole: bool
    """Whether the model knows the whole file after the change."""


class PlannedFile(TypedDict):
    """The planned change of one of several files."""

    added: int
    """Lines added."""

    path: str
    """The file, resolved."""

    removed: int
    """Lines removed."""

    sha256_after: NotRequired[str]
    """SHA-256 of the content after the change, in hexadecimal; absent if the file is removed."""

    sha256_before: NotRequired[str]
    """SHA-256 of the content before the change, in hexadecimal; absent for a new file."""

    whole: bool
    """Whether the model knows the whole file after the change."""


class PreparedCall(TypedDict):
    """A tool call whose targets and change were determined without running it. It is judged before the call may start."""

    change: NotRequired[PlannedChange]
    """For calls that change a file: its content hash before and after. It is in the journal before the file is touched, so that after a crash the file shows whether the change took effect."""

    diff: NotRequired[str]
    """The change as a unified diff, for calls that change a file."""

    read_only: bool
    """Whether the call changes nothing."""

    sandbox: NotRequired[Confinement]
    """For commands: their confinement."""

    subject: Subject
    """The subject that the permission rules judge."""

    summary: str
    """One line for users. For Bash the first line of the command, then the model's description of it."""


class Price(TypedDict):
    """Prices in US dollars per million tokens, as vendors publish them."""

    cache_read: NotRequired[float]
    """Input read from a cache."""

    cache_write: NotRequired[float]
    """Input written to a cache."""

    cache_write_1h: NotRequired[float]
    """Input written to a cache for an hour, if it has a different price."""

    input: NotRequired[float]
    """Input that is neither read from nor written to a cache."""

    output: NotRequired[float]
    """Output."""

    tiers: NotRequired[TierFactors]
    """Factors on the prices of tokens in other service tiers."""

    web_search: NotRequired[float]
    """Price of a thousand web searches, in US dollars."""


class ProjectFileState(TypedDict):
    """The state of a project's configuration file."""

    file: str
    """Its path."""

    problem: NotRequired[str]
    """A mistake in the file, with its line. Until it is fixed, only ask and deny rules are used."""

    trusted: bool
    """Whether the folder is trusted in its current state. Without trust only ask and deny rules are used."""


class ProjectSettings(TypedDict):
    """Values of the project's configuration file for the engine and the tools, fixed when the session is created. Absent values are as in the daemon's configuration."""

    background_commands: NotRequired[int]
    """Maximum number of background commands. A lower limit of the daemon has priority."""

    backup_model: NotRequired[str]
    """`PROVIDER/MODEL` that answers when the provider limits the rate."""

    bash_timeout_ms: NotRequired[int]
    """Time limit of a command that sets none, in milliseconds."""

    compaction: NotRequired[CompactionOverrides]
    """How the conversation is made to fit the window."""

    large_context_model: NotRequired[str]
    """`PROVIDER/MODEL` for conversations that exceed the window."""

    max_result_bytes: NotRequired[int]
    """Maximum bytes of one result for the model. A lower limit of the daemon has priority."""

    max_results_total_bytes: NotRequired[int]
    """Maximum bytes of all results of one message. A lower limit of the daemon has priority."""

    output_tokens: NotRequired[int]
    """Maximum output tokens of the first request for an answer."""

    parallel_tools: NotRequired[int]
    """Maximum number of parallel calls. A lower limit of the daemon has priority."""

    vision_model: NotRequired[str]
    """`PROVIDER/MODEL` for images."""


class PromptTokens(TypedDict):
    """Tokens of the parts of a prompt."""

    chunks: int
    """Chunks."""

    entities: int
    """Entities."""

    history: int
    """The conversation before the query."""

    query: int
    """The query."""

    relations: int
    """Relations."""

    system: int
    """The system prompt without data."""


class ProviderCheck(TypedDict):
    """The result of trying a provider."""

    error: NotRequired[str]
    """Why the provider cannot be used, without secrets."""

    latency_ms: NotRequired[int]
    """Time until the answer, in milliseconds; absent if the provider cannot be used."""

    models: NotRequired[list[str]]
    """Names of the models that the provider offers, at most 1,000; absent if it has no list."""

    name: str
    """Name of the provider."""

    ok: bool
    """Whether its address answers and accepts the key."""

# The purpose of a helper call, which is a model call outside the turns.
Purpose: TypeAlias = "Literal['title', 'compaction', 'knowledge', 'mcp', 'nested']"


class QueryError(TypedDict):
    """Why a query failed."""

    kind: str
    """A stable code."""

    message: str
    """The text for users."""

# The parts of the index that a query reads.
QueryMode: TypeAlias = "Literal['local', 'global', 'hybrid', 'naive', 'mix', 'bypass']"


class QueryParams(TypedDict):
    """`knowledge.query`: a question about the index of a workspace, with the options of the search and of the answer. Methods give the value of an option, or its default if it is absent."""

    chunk_pick: NotRequired[ChunkPick]
    """How chunks of entities are chosen."""

    chunk_top_k: NotRequired[int]
    """Maximum number of chunks to keep, 20 by default; `null` for the value of `top_k`."""

    conversation_history: NotRequired[list[ChatMessage]]
    """The conversation before the query, at most 128 messages. Only the model call for the answer contains it."""

    enable_rerank: NotRequired[bool]
    """Whether the configured reranker, if there is one, ranks the chunks again; `true` by default."""

    entity_order: NotRequired[EntityOrder]
    """The order of entities."""

    hl_keywords: NotRequired[list[str]]
    """Keywords for themes. If these or `ll_keywords` are given, the daemon does not ask a model for keywords."""

    idempotency_key: NotRequired[str]
    """Repeating the call with the same key returns the first reply."""

    include_context: NotRequired[bool]
    """Whether the result has the answer in `response` and its prompt in `context`."""

    language: NotRequired[str]
    """The language of keywords and answer. If it is absent, they use the language of the query."""

    ll_keywords: NotRequired[list[str]]
    """Keywords for names."""

    local_relations: NotRequired[bool]
    """With mode `local`: whether relations are searched as well."""

    max_entity_tokens: NotRequired[int]
    """Maximum tokens of all entities, 6,000 by default."""

    max_relation_tokens: NotRequired[int]
    """Maximum tokens of all relations, 8,000 by default."""

    max_total_tokens: NotRequired[int]
    """Maximum tokens of the whole prompt with the conversation, 30,000 by default."""

    min_rerank_score: NotRequired[float]
    """Chunks below this score of the reranker are dropped."""

    mode: NotRequired[QueryMode]
    """The parts of the index that the query reads."""

    only_need_context: NotRequired[bool]
    """Whether the result has the prompt in `context` instead of an answer."""

    only_need_prompt: NotRequired[bool]
    """The same as `only_need_context`."""

    query: str
    """The question, at most 65,536 characters."""

    relation_chunks: NotRequired[bool]
    """With modes `global` and `hybrid`: whether the chunks of relations are used as well."""

    response_type: NotRequired[str]
    """The form of the answer, `Multiple Paragraphs` by default."""

    stream: NotRequired[bool]
    """Whether the reply comes at once with `query_id`. `knowledge.subscribe` then sends the events."""

    top_k: NotRequired[int]
    """Maximum number of entities and of relations to find, 40 by default."""

    user_prompt: NotRequired[str]
    """Further instructions for the answer."""

    workspace: str
    """The workspace folder whose index is queried, absolute."""


class QueryResult(TypedDict):
    """The result of a query."""

    context: NotRequired[str]
    """The whole prompt, if the client requested it with `only_need_context` or `include_context`; empty if nothing was found."""

    error: NotRequired[QueryError]
    """Why it failed."""

    raw_data: RawData
    """The data that the query found."""

    response: str
    """The answer; empty if the client requested only the context."""

    status: QueryStatus
    """How it ended."""

# How a query ended.
QueryStatus: TypeAlias = "Literal['success', 'no_context', 'failed']"

# 
QuestionId: TypeAlias = "str"

# The subject of a question.
QuestionKind: TypeAlias = "Literal['unknown_outcome', 'resume', 'question', 'repeated_call']"


class QuestionOption(TypedDict):
    """One suggested answer."""

    description: NotRequired[str]
    """Its meaning, or its consequences."""

    label: str
    """The answer in a few words. The options of a question have different labels."""


class QuestionRequestedEvent(TypedDict):
    """The user must decide something other than a permission."""

    at_ms: Timestamp
    """Time of the event."""

    call_id: NotRequired[CallId]
    """The call that it is about, if any."""

    child_session_id: NotRequired[SessionId]
    """For a question of a sub-agent, shown in the sessions above it: the session that waits. The answer goes to that session."""

    input: NotRequired[Any]
    """The call's full arguments."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    kind: QuestionKind
    """The subject of the question."""

    options: list[Choice]
    """The possible answers of the kinds `unknown_outcome`, `resume` and `repeated_call`."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    output: NotRequired[str]
    """The call's output so far; only head and tail if it is long."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    questions: NotRequired[list[UserQuestion]]
    """With kind `question`: the questions of the model. Each of them needs an answer."""

    request_id: QuestionId
    """Its id; a restart does not change it."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    text: str
    """The question as text for users. If a model asks several questions, this is the first one."""

    tool: NotRequired[str]
    """The call's tool."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['question.requested']


class QuestionResolvedEvent(TypedDict):
    """A question was settled."""

    answers: NotRequired[list[UserAnswer]]
    """With kind `question`: the answer to each question; empty if an abort settled them."""

    at_ms: Timestamp
    """Time of the event."""

    by: SettledBy
    """How it was settled: an answer, an abort or a submit."""

    call_id: NotRequired[CallId]
    """The call that it was about, if any."""

    child_session_id: NotRequired[SessionId]
    """For a question of a sub-agent: the session that waited."""

    choice: NotRequired[Choice]
    """The chosen option of the kinds `unknown_outcome`, `resume` and `repeated_call`."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    kind: QuestionKind
    """Subject of the question."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    request_id: QuestionId
    """Id of the question."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['question.resolved']


class QueueClearParams(TypedDict):
    """`session.queue.clear`"""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key changes nothing more, and returns the current queue."""

    session_id: SessionId
    """Id of the session."""


class QueueListParams(TypedDict):
    """`session.queue.list`"""

    cursor: NotRequired[str]
    """`next_cursor` of the previous page."""

    limit: NotRequired[int]
    """Turns per page, 1 to 500, 100 by default; fewer if their inputs are long."""

    session_id: SessionId
    """Id of the session."""


class QueueMoveParams(TypedDict):
    """`session.queue.move`"""

    before: NotRequired[TurnId]
    """The queued turn that follows it afterwards; without it, the turn becomes the last one."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key changes nothing more, and returns the current queue."""

    session_id: SessionId
    """Id of the session."""

    turn_id: TurnId
    """The queued turn."""

# Why a job does not start yet.
QueueReason: TypeAlias = "Literal['slots', 'concurrency', 'not_due', 'budget', 'paused', 'rate_limited', 'node']"


class QueueRemoveParams(TypedDict):
    """`session.queue.remove`"""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key changes nothing more, and returns the current queue."""

    session_id: SessionId
    """Id of the session."""

    turn_id: TurnId
    """The queued turn."""


class QueueReply(TypedDict):
    """Reply of the `session.queue` methods: the queued turns, in the order of their start."""

    next_cursor: NotRequired[str]
    """Cursor of the next page, if there is one."""

    queue: list[QueuedTurn]
    """The queued turns of this page."""


class QueueUpdateParams(TypedDict):
    """`session.queue.update`"""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key changes nothing more, and returns the current queue."""

    input: SubmitInput
    """Its new input: text or blocks; must not be empty. Its options and its position in the queue stay unchanged."""

    session_id: SessionId
    """Id of the session."""

    turn_id: TurnId
    """The queued turn."""


class QueuedTurn(TypedDict):
    """An input that waits for the running turn to end."""

    front: bool
    """Whether it was queued before the other turns, by `when_busy: 'interrupt'`."""

    input: list[InputBlock]
    """Text, pictures and documents of the input."""

    mode: NotRequired[Mode]
    """Its approval mode, if not the session's."""

    model: NotRequired[str]
    """Its model, if not the session's."""

    origin: NotRequired[Origin]
    """The client that submitted it."""

    queued_at_ms: Timestamp
    """Time at which it was queued."""

    turn_id: TurnId
    """The turn that will process the input."""


class RawData(TypedDict):
    """The data that a query found, after the limits were applied."""

    chunks: list[FoundChunk]
    """Chunks in the order of the prompt."""

    entities: list[FoundEntity]
    """Entities in the order of the prompt."""

    metadata: Metadata
    """Details of the search."""

    references: list[Reference]
    """The files of the chunks."""

    relations: list[FoundRelation]
    """Relations in the order of the prompt."""


class ReadRecord(TypedDict):
    """The version of a file that the model has seen. It prevents edits of a file that the model does not know."""

    lines: NotRequired[list[list[Any]]]
    """Lines that the model has seen completely, if it has seen only a part of the file. Each range has its first and last line, from 1, in order."""

    mtime_ns: int
    """Modification time in nanoseconds since the Unix epoch."""

    path: str
    """Resolved path."""

    sha256: str
    """SHA-256 of the content, in hexadecimal."""

    size: int
    """Size in bytes."""

    total_lines: NotRequired[int]
    """Number of lines of the file, if the model has seen only a part."""

    whole: bool
    """Whether the model has seen the whole file."""


class Reference(TypedDict):
    """A file that contains chunks of the prompt."""

    chunk_ids: list[str]
    """Ids of the chunks."""

    lines: list[list[Any]]
    """First and last line of each chunk, in their order in the file. Adjacent ranges are joined."""

    path: str
    """Its path."""

    reference_id: str
    """Id of the file in this result. `1` is the file with the most chunks; empty for chunks without a path."""


class Relation(TypedDict):
    """A relation between two entities: an undirected edge of the graph. The pair of its ends is its key."""

    description: str
    """Its description."""

    keywords: str
    """Its keywords."""

    source: str
    """Name of the entity at one end. `source` and `target` keep the direction in which the relation was first described."""

    target: str
    """Name of the entity at the other end."""

    weight: float
    """Its strength; a higher number means a stronger relation."""


class ReloadParams(TypedDict):
    """`daemon.reload`"""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key and parameters returns the first reply, within 24 hours."""


class ReloadReply(TypedDict):
    """Reply of `daemon.reload`."""

    changed: list[str]
    """Keys that changed and apply from now on, for example `retry.attempts`."""

    needs_restart: list[str]
    """Keys that changed since the start and apply only after a restart."""


class ReminderAddedEvent(TypedDict):
    """A reminder for the model was added to the newest message of the user's role. It stays there unchanged."""

    at_ms: Timestamp
    """Time of the event."""

    files: NotRequired[list[FileVersion]]
    """The versions of files that it reports, so that it reports each version once."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    kind: ReminderKind
    """The occasion."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    text: str
    """The text for the model."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['reminder.added']

# The occasion of a reminder.
ReminderKind: TypeAlias = "Literal['session_start', 'files_changed', 'instructions_changed', 'plan_mode', 'compacted', 'several_matches', 'new_day', 'servers_failed', 'subagents_aborted', 'todo_empty', 'todo_stale', 'repeated_call']"


class ReplacedResult(TypedDict):
    """The new content of a tool result."""

    call_id: CallId
    """The call whose result it is."""

    content: str
    """The text that models receive from now on."""

# The subject of a permission request.
RequestKind: TypeAlias = "Literal['tool', 'sandbox', 'plan']"


class RequestView(TypedDict):
    """The next request of a session to its model."""

    bytes: int
    """Bytes of the body in the form of the provider, with the content of pictures and documents."""

    messages: list[Message]
    """The conversation. Pictures and documents are named by their blobs."""

    model: str
    """`PROVIDER/MODEL`."""

    system: str
    """The system prompt."""

    tools: list[RequestedTool]
    """The tools on offer, in the order of the request."""


class RequestedTool(TypedDict):
    """A tool as a request offers it."""

    description: str
    """Its description for the model."""

    input_schema: Any
    """JSON Schema of the input."""

    name: str
    """Its name."""

# The kind of decision that a session in `requires_action` waits for.
Requires: TypeAlias = "Literal['permission', 'question', 'unknown_outcome']"


class ResolvedPath(TypedDict):
    """A path after links, `..` and `~` were resolved."""

    in_workspace: bool
    """Whether it is in the session's workspace."""

    matched_aliases: NotRequired[list[str]]
    """Other names of the same file (hard links) that a rule matches."""

    path: str
    """Absolute and free of links. The last components may not exist yet."""

    sensitivity: PathSensitivity
    """Whether writing there could change which code runs or which permissions apply."""

# Why the daemon stops. Only a client can say that another daemon follows.
RestartReason: TypeAlias = "Literal['stop', 'restart', 'signal']"


class Restriction(TypedDict):
    """One restriction."""

    file: NotRequired[str]
    """The file that holds it; absent for restrictions of a session."""

    kind: RestrictionKind
    """Its kind."""

    line: NotRequired[int]
    """Its line in the file, from 1, if known."""

    text: str
    """The restriction in force, or why it could not be read."""

# The kind of a text that restricts.
RestrictionKind: TypeAlias = "Literal['rule', 'hook', 'agent', 'server']"


class Restrictions(TypedDict):
    """Everything that restricts calls in a folder: the reply of `workspace.restrictions`."""

    cwd: str
    """The folder, absolute and free of links."""

    in_force: list[Restriction]
    """Restrictions in force."""

    unread: list[Restriction]
    """Texts that could not be read, or that match nothing. The calls that they may concern ask."""


class RestrictionsParams(TypedDict):
    """`workspace.restrictions`"""

    cwd: str
    """The folder, absolute."""


class RetryEvent(TypedDict):
    """A model call failed and is retried after a wait."""

    at_ms: Timestamp
    """Time of the event."""

    attempt: int
    """The attempt that failed, from 1."""

    delay_ms: int
    """The wait, in milliseconds."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    kind: NotRequired[str]
    """The failure as a stable code, as in `error`: `rate_limited`, `overloaded`, `server`, `interrupted`, `idle`, `unreachable`, or `context_overflow`."""

    max: int
    """Maximum number of attempts; 0 means no maximum."""

    max_output_tokens: NotRequired[int]
    """With `context_overflow`: the next attempt requests an answer of at most this many tokens, according to the limits that the provider reported."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    reason: str
    """The failure as text."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['retry']

# What a further attempt starts from.
RetryMode: TypeAlias = "Literal['fresh', 'continue']"


class RetryPolicy(TypedDict):
    """When a failed attempt is repeated. An agent's work is not idempotent, so by default it is not."""

    after_unknown: NotRequired[bool]
    """Whether an attempt is repeated although a call that could reach outside of the worktree has an unknown outcome."""

    attempts: NotRequired[int]
    """Attempts in all, 1 to 20."""

    backoff: NotRequired[Duration]
    """Wait before the second attempt; it doubles with each further one."""

    max_backoff: NotRequired[Duration]
    """Longest wait."""

    mode: NotRequired[RetryMode]
    """What the next attempt starts from."""

    on: NotRequired[list[Subtype]]
    """Results that are repeated. Aborted attempts, refused permissions and exhausted budgets are never repeated."""


class RewindConflict(TypedDict):
    """A file that prevents a rewind of the files."""

    path: str
    """Absolute path."""

    reason: str
    """Why the file cannot be rewound, as text for users."""


class RewindParams(TypedDict):
    """`session.rewind`"""

    dry_run: NotRequired[bool]
    """Whether the daemon changes nothing and only reports what a rewind would change."""

    files: NotRequired[bool]
    """Whether the files that the session's file tools changed after the item get back their content of that moment. Changes by commands (Bash) are not rewound."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the reply of the first call."""

    item_id: ItemId
    """The item that becomes the last one of the conversation. It must be complete."""

    session_id: SessionId
    """Id of the session."""


class RewindReply(TypedDict):
    """Reply of `session.rewind`. With conflicts, nothing was changed."""

    conflicts: list[RewindConflict]
    """Files that prevent the rewind. Either their content is not what the session last wrote, or their earlier content was not kept."""

    files: list[RewoundFile]
    """With `files`: the files that the session changed after the item."""

    removed_items: list[ItemId]
    """Ids of the removed items, in their order."""


class RewoundFile(TypedDict):
    """A file of a rewind."""

    action: FileAction
    """The action of the rewind for the file."""

    path: str
    """Absolute path."""

    sha256: NotRequired[str]
    """In events: SHA-256 of its content after the rewind, in hexadecimal; absent if the file does not exist then."""

# The author of a message.
Role: TypeAlias = "Literal['user', 'assistant']"

# The effect of a rule on the calls that it covers. Deny overrides ask, and ask overrides allow.
RuleKind: TypeAlias = "Literal['allow', 'ask', 'deny']"


class RuleParams(TypedDict):
    """A rule to add or remove: the parameters of `permission.add_rule` and `permission.remove_rule`."""

    idempotency_key: NotRequired[str]
    """The same key with the same parameters returns the first reply: for a session's rule until the session is deleted, else within 24 hours."""

    kind: NotRequired[RuleKind]
    """Whether the rule allows, asks or denies."""

    rule: str
    """The rule, for example `Bash(npm run:*)`."""

    scope: RuleScope
    """`session`, `project` (its folder) or `user` (everywhere)."""

    session_id: NotRequired[SessionId]
    """With scope `session`: the session. With scope `project`: a session in the folder."""

    workspace: NotRequired[str]
    """With scope `project`: the folder, absolute."""


class RuleReply(TypedDict):
    """Reply of `permission.add_rule` and `permission.remove_rule`: the change applies from the next verdict on."""

    changed: bool
    """Whether the call changed anything."""

    rule: NotRequired[str]
    """The text under which the rule is kept, if it differs from the given one: `Bash(rm:*)` for `Bash(rm *)`."""

# The scope of a rule. The verdict does not depend on it.
RuleScope: TypeAlias = "Literal['managed', 'user', 'project', 'session']"


class RuleView(TypedDict):
    """A rule with its origin."""

    added_at_ms: NotRequired[Timestamp]
    """Time at which it was added, if known."""

    by: NotRequired[Origin]
    """The client that added it, if known."""

    file: NotRequired[str]
    """The file that contains it; absent for rules of a session."""

    kind: RuleKind
    """Whether the rule allows, asks or denies."""

    note: NotRequired[str]
    """Why the rule matches nothing, or why it would be refused if it were written now."""

    rule: str
    """The rule as written."""

    scope: RuleScope
    """Scope of the rule."""


class RulesParams(TypedDict):
    """`permission.rules`"""

    cursor: NotRequired[str]
    """`next_cursor` of the previous page."""

    limit: NotRequired[int]
    """Rules per page, 1 to 500; 500 by default."""

    session_id: NotRequired[SessionId]
    """A session whose rules, and the rules of its folder, are listed as well."""

    workspace: NotRequired[str]
    """A folder whose rules are listed as well, absolute."""


class RulesReply(TypedDict):
    """Reply of `permission.rules`. Deny overrides ask, and ask overrides allow, in every scope."""

    next_cursor: NotRequired[str]
    """Cursor of the next page, if there is one."""

    problems: NotRequired[list[str]]
    """Problems of rule files: until they are fixed, every call in their scope needs a request."""

    rules: list[RuleView]
    """Rules of this page."""


class SandboxChoice(TypedDict):
    """The confinement of commands in one kind of session."""

    level: NotRequired[int]
    """3 bubblewrap, 2 Landlock, 1 rlimits only, 0 off; absent if no command can run."""

    network: bool
    """Whether commands have network access."""

    text: str
    """The active protections, or why no command can run."""


class SandboxReply(TypedDict):
    """The sandbox of commands, from the configuration and the capabilities of this machine."""

    attended: SandboxChoice
    """The confinement in attended sessions."""

    bubblewrap: str
    """`works`, or why level 3 (bubblewrap) does not work on this machine."""

    landlock: str
    """`works`, followed by the protections that this machine lacks, or why level 2 (Landlock) does not work on it."""

    tested: NotRequired[bool]
    """Whether the levels were tested. `false` shortly after the start of the daemon; the texts then say so."""

    unattended: SandboxChoice
    """The confinement in unattended sessions (`background: true`)."""


class Schedule(TypedDict):
    """A schedule as the methods return it."""

    catch_up: CatchUp
    """What happens to missed slots."""

    catch_up_window: Duration
    """Missed slots that are older do not fire."""

    created_at_ms: Timestamp
    """Time of its creation."""

    cron: NotRequired[str]
    """The pattern."""

    enabled: bool
    """Whether it fires."""

    error: NotRequired[str]
    """Why it was disabled, or why its last slot made no job."""

    every: NotRequired[Duration]
    """The interval."""

    failures: int
    """Failures in a row since it was enabled."""

    jitter: Duration
    """Random delay of each slot, below this time."""

    job: JobRequest
    """The content of each job. Lists and events leave out its prompt, system prompt and schema."""

    last_job_id: NotRequired[JobId]
    """Its newest job."""

    last_slot_ms: NotRequired[Timestamp]
    """The newest slot that fired."""

    max_failures: int
    """After so many failures in a row the schedule is disabled; 0 for never."""

    name: str
    """Short name for people."""

    next_fire_ms: NotRequired[Timestamp]
    """When it fires next, with its random delay; absent if it is disabled or has no further slot."""

    overlap: Overlap
    """What happens while a job of the schedule is not over."""

    schedule_id: ScheduleId
    """Its id."""

    timezone: str
    """IANA name of the zone in which `cron` counts."""

    until_ms: NotRequired[Timestamp]
    """No slot after this time."""

# What happened to a schedule.
ScheduleChange: TypeAlias = "Literal['schedule.created', 'schedule.updated', 'schedule.deleted', 'schedule.fired', 'schedule.skipped', 'schedule.failed', 'schedule.disabled']"


class ScheduleChangeParams(TypedDict):
    """`schedule.delete`, `schedule.trigger`"""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the reply of the first call."""

    schedule_id: ScheduleId
    """Id of the schedule."""

# 
ScheduleId: TypeAlias = "str"


class ScheduleListReply(TypedDict):
    """Reply of `schedule.list`: oldest first."""

    schedules: list[Schedule]
    """All schedules, without the prompts of their jobs."""


class ScheduleNextParams(TypedDict):
    """`schedule.next`"""

    count: int
    """Number of times, 1 to 1,000."""

    cron: str
    """Five fields of cron, or `@hourly`, `@daily`, `@weekly`, `@monthly`."""

    timezone: NotRequired[str]
    """IANA name of a zone; by default that of the daemon's machine."""


class ScheduleNextReply(TypedDict):
    """Reply of `schedule.next`"""

    times_ms: list[Timestamp]
    """The next times, in order; fewer than asked for if the pattern has no more within four years."""


class ScheduleNotification(TypedDict):
    """The change of a schedule."""

    job_id: NotRequired[JobId]
    """The job that the slot made."""

    kind: ScheduleChange
    """What happened."""

    schedule: Schedule
    """The schedule as `schedule.list` shows it."""

    slot_ms: NotRequired[Timestamp]
    """The slot that fired or was skipped."""


class ScheduleParams(TypedDict):
    """Selects one schedule."""

    schedule_id: ScheduleId
    """Id of the schedule."""


class ScheduleReply(TypedDict):
    """Reply with one schedule."""

    schedule: Schedule
    """The schedule."""


class ScheduleUpdate(TypedDict):
    """Changes of a schedule: `schedule.update`. Absent fields stay as they are."""

    catch_up: NotRequired[CatchUp]
    """What happens to missed slots."""

    catch_up_window: NotRequired[Duration]
    """Missed slots that are older do not fire."""

    cron: NotRequired[str]
    """A pattern, in place of the earlier pattern or interval."""

    enabled: NotRequired[bool]
    """Whether it fires. To enable it also sets the count of failures to 0; slots before that are not missed."""

    every: NotRequired[Duration]
    """An interval, in place of the earlier pattern or interval."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the reply of the first call."""

    jitter: NotRequired[Duration]
    """Random delay of each slot; `0s` for none."""

    job: NotRequired[JobRequest]
    """The content of each later job, in place of the whole earlier one."""

    max_failures: NotRequired[int]
    """After so many failures in a row the schedule is disabled; 0 for never."""

    name: NotRequired[str]
    """Short name for people."""

    overlap: NotRequired[Overlap]
    """What happens while a job of the schedule is not over."""

    schedule_id: ScheduleId
    """Id of the schedule."""

    timezone: NotRequired[str]
    """IANA name of the zone."""

    until_ms: NotRequired[Timestamp]
    """No slot after this time; 0 removes the end."""

# How long an allow is valid.
Scope: TypeAlias = "Literal['once', 'session', 'project']"

# The tier of service in which a provider made a call. Tiers have different prices.
ServiceTier: TypeAlias = "Literal['standard', 'priority', 'flex', 'batch', 'scale']"


class SessionArchivedEvent(TypedDict):
    """A client archived the session, or restored it from the archive. An archived session is kept and accepts no input."""

    archived: bool
    """Whether it is archived from now on."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['session.archived']


class SessionAttachedEvent(TypedDict):
    """A client attached."""

    at_ms: Timestamp
    """Time of the event."""

    clients: int
    """Number of attached clients now."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['session.attached']

# The change of a session that a notification reports.
SessionChangeKind: TypeAlias = "Literal['session.created', 'session.updated', 'session.ended']"


class SessionClearedEvent(TypedDict):
    """The conversation started again. The model receives none of the earlier messages, and counts as not having read any file. The journal keeps the messages."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['session.cleared']


class SessionCreatedEvent(TypedDict):
    """The session was created."""

    ablation: NotRequired[Ablation]
    """Optimisations that are turned off; fixed when the session is created."""

    additional_dirs: NotRequired[list[str]]
    """Additional folders of the workspace, absolute and free of links."""

    agent: NotRequired[AgentProfile]
    """The agent as which the session works; fixed when the session is created."""

    append_system_prompt: NotRequired[str]
    """Appended to the system prompt."""

    at_ms: Timestamp
    """Time of the event."""

    background: NotRequired[bool]
    """Whether the session is unattended."""

    binary_feedback: NotRequired[bool]
    """Whether the model answers twice and a client chooses the answer; fixed when the session is created."""

    budgets: NotRequired[Budgets]
    """Limits of each turn."""

    coordinator: NotRequired[bool]
    """Whether the session only plans and gives its work to sub-agents; fixed when the session is created."""

    cwd: str
    """The working folder, absolute and free of links."""

    fallback_model: NotRequired[str]
    """`PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models] fallback`."""

    forked_from: NotRequired[ForkedFrom]
    """For a fork: the session and the item with which its history begins."""

    initial_digest: NotRequired[str]
    """SHA-256 of the messages with which the session begins, if there are any."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    job_id: NotRequired[JobId]
    """The job that the session is an attempt of; fixed when the session is created."""

    metadata: NotRequired[dict[str, str]]
    """Labels that the provider receives with each model request."""

    mode: Mode
    """Approval mode."""

    model: str
    """`PROVIDER/MODEL`; empty if none is configured."""

    on_restart: NotRequired[OnRestart]
    """Handling of a turn that a restart interrupts; absent for the configured default."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    output_schema: NotRequired[Any]
    """JSON Schema that the results of turns must satisfy."""

    parent: NotRequired[ParentCall]
    """For a sub-agent: the call that started it; fixed when the session is created."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    project_root: NotRequired[str]
    """The root of the project that held the folder when the session was created. Later changes on the disk can move the root outwards only."""

    project_settings: NotRequired[ProjectSettings]
    """Values of the project's configuration file for the engine and the tools; fixed when the session is created."""

    safe_mode: NotRequired[bool]
    """Whether tools run one at a time and every call needs a permission request."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    stop: NotRequired[list[str]]
    """Texts at which its models stop their answers."""

    system_prompt: NotRequired[str]
    """Replaces the default system prompt."""

    temperature: NotRequired[Temperature]
    """From 0, which nearly always selects the most likely token, to 2."""

    thinking: NotRequired[Thinking]
    """How much its models may think; absent for the vendor's default."""

    title: str
    """Short name for users."""

    tools: NotRequired[ToolChoice]
    """The tools on offer."""

    top_p: NotRequired[TopP]
    """The probability mass of the most likely tokens to choose from, from 0 to 1."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['session.created']

    worktree: NotRequired[SessionWorktree]
    """The worktree of the daemon that the session works in; fixed when the session is created."""


class SessionDetachedEvent(TypedDict):
    """A client detached."""

    at_ms: Timestamp
    """Time of the event."""

    clients: int
    """Number of attached clients now."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['session.detached']


class SessionEndedEvent(TypedDict):
    """The session was killed and accepts no more input."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    reason: str
    """Reason of the end."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['session.ended']

# Names and values. They are in no event, export or log: `Debug` shows the names only.
SessionEnvironment: TypeAlias = "dict[str, str]"


class SessionEventNotification(TypedDict):
    """The parameters of the notification `session.event`."""

    result: Envelope

    subscription: SubscriptionId


class SessionForkedEvent(TypedDict):
    """The history before this event was copied from another session. Its turns and costs are those of that session."""

    at_ms: Timestamp
    """Time of the event."""

    context_tokens: NotRequired[int]
    """Tokens of the newest copied answer and of its request."""

    forked_from: ForkedFrom
    """The source of the copy."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['session.forked']

# 
SessionId: TypeAlias = "str"


class SessionInheritedEvent(TypedDict):
    """The sub-agent takes over the read files of the session that started it."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    reads: list[ReadRecord]
    """The files that the other session has read."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['session.inherited']


class SessionNotification(TypedDict):
    """The change of a session."""

    deleted: NotRequired[bool]
    """Whether the session was deleted with its history."""

    kind: SessionChangeKind
    """The change of the session."""

    session: SessionView
    """The session as `session.list` shows it, at the time of the notification."""


class SessionParams(TypedDict):
    """Selects one session."""

    session_id: SessionId
    """Id of the session."""


class SessionPromptBuiltEvent(TypedDict):
    """The system prompt was built. It is stored, so that it stays byte-identical."""

    at_ms: Timestamp
    """Time of the event."""

    instructions: NotRequired[list[FileVersion]]
    """The files with project instructions that it contains. A reminder reports a later change of them to the model. Absent in journals of older versions."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    skipped_instructions: NotRequired[list[str]]
    """Instructions that were left out, each with the reason."""

    sources: list[str]
    """Sources of its parts, as text for users."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    system: str
    """The complete system prompt."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['session.prompt_built']


class SessionReply(TypedDict):
    """Reply of `session.create` and `session.get`"""

    session: SessionView
    """The session as `session.list` shows it."""


class SessionRewoundEvent(TypedDict):
    """The conversation was rewound: the item `item_id` is its last one again. The events of the removed items stay in the journal."""

    at_ms: Timestamp
    """Time of the event."""

    context_tokens: NotRequired[int]
    """Tokens of the newest remaining answer and of its request."""

    cwd: str
    """The folder of further commands."""

    files: NotRequired[list[RewoundFile]]
    """The files that were rewound as well."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    kept_messages: int
    """Number of messages at the beginning that are unchanged."""

    last_item_seq: int
    """`first_seq` of the item that becomes the last one. Items that began later are removed."""

    messages: NotRequired[list[Message]]
    """The messages after the unchanged ones. Most rewinds need none."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    reads: NotRequired[list[ReadRecord]]
    """The versions of files that the model had seen at that item."""

    removed_items: list[ItemId]
    """Ids of the removed items, in their order."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    todos: NotRequired[list[Todo]]
    """The todo list at that item. Absent in journals of older versions."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['session.rewound']

# State of a session.
SessionState: TypeAlias = "Literal['idle', 'running', 'requires_action', 'paused', 'failed', 'ended', 'archived']"


class SessionStatusEvent(TypedDict):
    """The session's state changed."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    requires: NotRequired[Requires]
    """The kind of decision that it waits for."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    state: SessionState
    """New state of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['session.status']


class SessionUpdatedEvent(TypedDict):
    """The title or options of the session changed. Unchanged ones are absent. Mode, safe mode, folders and fallback model apply at once."""

    additional_dirs: NotRequired[list[str]]
    """The complete list of additional existing folders of the workspace, absolute. Those of a session apply at once; their AGENTS.md is read when the next turn starts."""

    append_system_prompt: NotRequired[str]
    """Appended to the system prompt; empty for nothing."""

    at_ms: Timestamp
    """Time of the event."""

    budgets: NotRequired[Budgets]
    """Limits of a turn. In a session they replace all previous limits."""

    command: NotRequired[SlashCommand]
    """The slash command whose expansion is the input; never a setting of a session."""

    compact: NotRequired[CompactRequest]
    """The turn has no input and only compacts the conversation; never a setting of a session."""

    fallback_model: NotRequired[str]
    """`PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models] fallback`. Empty for that default."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    metadata: NotRequired[dict[str, str]]
    """Labels that the provider receives with each model request: at most 16, with keys of at most 64 and values of at most 512 bytes. Anthropic accepts only `user_id`."""

    mode: NotRequired[Mode]
    """Approval mode. A session's applies from the next verdict on, also in a running turn; pending requests that it allows are settled."""

    model: NotRequired[str]
    """`PROVIDER/MODEL`. A parameter may also be the name of a pointer of `[models]`, for example `reasoning`. The system prompt names the model, so another one begins a new prompt cache."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    output_schema: NotRequired[Any]
    """JSON Schema of the result: `turn.completed.result.structured` is a value that satisfies it. `{}` for none. References to other documents are refused."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    safe_mode: NotRequired[bool]
    """Whether tools run one at a time and every call needs a permission request."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    stop: NotRequired[list[str]]
    """Texts at which the model stops its answer: at most 4, of at most 256 bytes each."""

    system_prompt: NotRequired[str]
    """Replaces the default system prompt; empty for the default. Another system prompt begins a new prompt cache."""

    temperature: NotRequired[Temperature]
    """Temperature, from 0, which nearly always selects the most likely token, to 2. A running turn keeps its setting."""

    thinking: NotRequired[Thinking]
    """How much the model may think. A running turn keeps its setting."""

    title: NotRequired[str]
    """New title."""

    titled_by: NotRequired[TitledBy]
    """Source of the title, if no client set it."""

    tools: NotRequired[ToolChoice]
    """The tools on offer; `{}` for all."""

    top_p: NotRequired[TopP]
    """The probability mass of the most likely tokens to choose from, from 0 to 1. Vendors advise to set only one of `temperature` and `top_p`."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['session.updated']


class SessionView(TypedDict):
    """A session as `session.list` and `session.get` return it."""

    ablation: NotRequired[Ablation]
    """Optimisations that are turned off."""

    activity: NotRequired[str]
    """The calls that run or wait for an answer, in one line."""

    additional_dirs: NotRequired[list[str]]
    """Additional folders of the workspace."""

    agent: NotRequired[str]
    """Name of the agent as which the session works."""

    append_system_prompt: NotRequired[str]
    """Appended to the system prompt."""

    attached: NotRequired[list[AttachedClient]]
    """Attached clients."""

    background: bool
    """Whether the session is unattended."""

    background_commands: NotRequired[list[BackgroundCommand]]
    """Commands that run in the background now."""

    binary_feedback: NotRequired[bool]
    """Whether the model answers twice and a client chooses the answer."""

    budgets: NotRequired[Budgets]
    """Limits of each turn."""

    clients: int
    """Clients attached now."""

    context_tokens: NotRequired[int]
    """Tokens of the newest answer and of its request, which fill the context window. Absent before the first answer."""

    coordinator: NotRequired[bool]
    """Whether the session only plans and gives its work to sub-agents."""

    cost_at_least_usd_micros: NotRequired[int]
    """Cost of the calls whose price is known, in millionths of a dollar: a lower bound of the total cost."""

    cost_usd_micros: NotRequired[int]
    """Cost so far, in millionths of a dollar; `null` if a price is unknown."""

    created_at_ms: Timestamp
    """Time of its creation."""

    cwd: str
    """Its folder."""

    env: NotRequired[list[str]]
    """Names of the variables that a client sent for its commands; absent if they get those of the daemon."""

    fallback_model: NotRequired[str]
    """`PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model, if the session has its own."""

    forked_from: NotRequired[ForkedFrom]
    """For a fork: the session and the item with which its history begins."""

    job_id: NotRequired[JobId]
    """The job that the session is an attempt of."""

    last_line: NotRequired[str]
    """Last line of text in the conversation."""

    last_seq: int
    """Seq of its newest event."""

    last_turn: NotRequired[LastTurn]
    """How its last turn ended; absent before the first end."""

    matches: NotRequired[list[TextMatch]]
    """With `search`: the newest messages that contain the words, at most three."""

    metadata: NotRequired[dict[str, str]]
    """Labels that the provider receives."""

    mode: Mode
    """Approval mode."""

    model: str
    """`PROVIDER/MODEL`."""

    models: NotRequired[dict[str, ModelUsage]]
    """The ledger by `PROVIDER/MODEL`. Lists omit it: `model.usage` returns it for many sessions."""

    notice: NotRequired[str]
    """What the user should know: hooks that cannot be used, or a hook that failed."""

    number: NotRequired[int]
    """A small number that is accepted instead of the id. It is unique in its daemon and never used again."""

    on_restart: NotRequired[OnRestart]
    """Handling of a turn that a restart interrupts."""

    output_schema: NotRequired[Any]
    """JSON Schema that the results of turns must satisfy."""

    parent_call_id: NotRequired[CallId]
    """For a sub-agent: the `Task` call that started it."""

    parent_session_id: NotRequired[SessionId]
    """For a sub-agent: the session whose `Task` call started it."""

    project_root: NotRequired[str]
    """The root of the session's project: the files of all folders from there to `cwd` count."""

    project_settings: NotRequired[ProjectSettings]
    """Values of the project's configuration file for the engine and the tools."""

    requires: NotRequired[Requires]
    """The kind of decision that it waits for, in `requires_action`."""

    safe_mode: NotRequired[bool]
    """Whether tools run one at a time and every call needs a permission request."""

    session_id: SessionId
    """Its id."""

    state: SessionState
    """Its state."""

    stop: NotRequired[list[str]]
    """Texts at which its models stop their answers."""

    system_prompt: NotRequired[str]
    """Replaces the default system prompt."""

    temperature: NotRequired[Temperature]
    """From 0, which nearly always selects the most likely token, to 2."""

    thinking: NotRequired[Thinking]
    """How much its models may think; absent for the vendor's default."""

    title: str
    """Short name."""

    todos: NotRequired[list[Todo]]
    """The todo list of the model."""

    tools: NotRequired[ToolChoice]
    """The tools on offer; `{}` for all."""

    top_p: NotRequired[TopP]
    """The probability mass of the most likely tokens to choose from, from 0 to 1."""

    turn_id: NotRequired[TurnId]
    """The running or paused turn, if any."""

    updated_at_ms: Timestamp
    """Time of the newest change; attaching and detaching clients do not count."""

    usage: Usage
    """Tokens of all its model calls."""

    worktree: NotRequired[SessionWorktree]
    """The worktree that the session works in."""


class SessionWorktree(TypedDict):
    """The worktree that a session works in."""

    base: str
    """The commit that it started from."""

    base_folder: str
    """The folder that it was made for. The rules of this folder hold in the worktree."""

    branch: str
    """Its branch."""

    path: str
    """Its folder, absolute."""

    shared_with: NotRequired[SessionId]
    """For a fork: the session with which it shares the worktree. The worktree stays until both have ended."""

# How a permission request or a question was settled.
SettledBy: TypeAlias = "Literal['answer', 'abort', 'submit', 'timeout', 'no_approver', 'rule', 'mode']"

# How the daemon stops. A repeated call with `now` speeds up a running stop.
ShutdownMode: TypeAlias = "Literal['drain', 'now']"


class ShutdownParams(TypedDict):
    """`daemon.shutdown`"""

    mode: NotRequired[ShutdownMode]
    """How running tools are stopped."""

    restart: NotRequired[bool]
    """Whether the caller starts another daemon afterwards. Other clients are told so."""


class SlashCommand(TypedDict):
    """A slash command that a user typed: `/name arguments`."""

    allow_rules: NotRequired[list[str]]
    """Allow rules that hold until the turn ends, from the command's `allowed-tools`. Rules that deny or ask have priority."""

    arguments: NotRequired[str]
    """The text after the name, as it was typed."""

    name: str
    """The name without the slash, for example `review` or `team:review`."""

    needs_trust: NotRequired[bool]
    """Whether these rules hold only while the folder is trusted, because the command is a file of the project."""

    parts: NotRequired[list[CommandPart]]
    """The parts of the expansion, if some of them are filled in before the model receives the text."""


class StartedIndexJob(TypedDict):
    """A started index job, or only its estimate: the reply of `knowledge.index`."""

    estimate: IndexEstimate
    """The estimated work of the job."""

    job_id: NotRequired[str]
    """Id of the job; absent with `dry_run`."""


class StatusReply(TypedDict):
    """Reply of `daemon.status`"""

    active_sessions: int
    """Number of sessions that run or wait for the user."""

    backups: NotRequired[list[str]]
    """Daily backups of the database, newest first."""

    config_files: list[str]
    """Configuration files that were read."""

    confinement: NotRequired[str]
    """How the daemon enforces limits on commands on this machine: by a cgroup and its controllers, or by rlimits."""

    data_dir: str
    """Path of its data folder."""

    failed_delivery: NotRequired[FailedDelivery]
    """The newest message about a job of the last seven days whose last try failed."""

    jobs: NotRequired[JobCounts]
    """How many jobs are in which state."""

    journal_bytes: NotRequired[int]
    """Size of the journal in bytes, a few seconds old at most."""

    last_reload: NotRequired[LastReload]
    """Result of the last reload of the configuration; absent if it was not reloaded since the start."""

    leftovers: NotRequired[list[int]]
    """Ids of processes of an earlier daemon that this daemon could not end at its start."""

    loaded_sessions: NotRequired[int]
    """Sessions in memory; the others are loaded when they are used."""

    main_model: NotRequired[str]
    """The model used when a session names none."""

    missing_key_variables: NotRequired[list[str]]
    """Variables of the environment from which configured providers take their keys, and which the daemon lacks."""

    pid: int
    """Its process id."""

    protocol_version: int
    """The protocol version."""

    providers: list[str]
    """Configured providers."""

    resident_bytes: NotRequired[int]
    """Resident memory of the daemon in bytes; 0 if it is not known."""

    sandbox: NotRequired[SandboxReply]
    """The sandbox of commands."""

    sessions: int
    """Number of known sessions."""

    socket: str
    """Path of its socket."""

    started_at_ms: Timestamp
    """Time of its start."""

    storage: str
    """`ok`, or the problem of the storage."""

    storage_notices: NotRequired[list[str]]
    """Notices about damaged databases, one text for each database that was replaced."""

    version: str
    """The daemon's version."""

# Why an answer ended.
StopReason: TypeAlias = "Literal['end_turn', 'tool_use', 'max_tokens', 'stop_sequence', 'refusal', 'pause']"


class StreamIdleEvent(TypedDict):
    """The provider has sent nothing for a while (`[retry] idle_warn`). This is only a warning: after `[retry] idle_timeout` the attempt counts as failed."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    silent_ms: int
    """Duration of the silence, in milliseconds."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['stream.idle']


class SubagentCompletedEvent(TypedDict):
    """A sub-agent ended. Its usage counts for this session and its turn from now on."""

    at_ms: Timestamp
    """Time of the event."""

    call_id: CallId
    """Id of the call."""

    child_session_id: SessionId
    """The session of the sub-agent."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    result: TurnResult
    """The result of the turn that worked on the call's prompt."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['subagent.completed']


class SubagentStartedEvent(TypedDict):
    """A `Task` call starts a sub-agent. The session `child_session_id` is created after this event."""

    agent: str
    """Name of its agent."""

    at_ms: Timestamp
    """Time of the event."""

    background: NotRequired[bool]
    """Whether the call returns at once and the sub-agent continues."""

    budgets: NotRequired[Budgets]
    """The limits of the sub-agent. They are the part of this session's limits that is reserved for it."""

    call_id: CallId
    """Id of the call."""

    child_session_id: SessionId
    """The session of the sub-agent."""

    description: NotRequired[str]
    """Its task in a few words, as the model wrote them."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['subagent.started']

# The subject that the permission rules judge.
Subject: TypeAlias = "SubjectRead | SubjectEdit | SubjectDelete | SubjectWeb | SubjectSeveral | SubjectBash | SubjectBackground | SubjectBlob | SubjectSession | SubjectTask | SubjectQuestion | SubjectProposedPlan | SubjectMcp | SubjectTool"


class SubjectBackground(TypedDict):
    """Reads or ends a background command of the session itself."""

    bash_id: BashId
    """Name of the command."""

    kind: Literal['background']


class SubjectBash(TypedDict):
    """Runs a command."""

    background: NotRequired[bool]
    """Whether it continues in the background after its call returned."""

    command: str
    """The exact text."""

    cwd: NotRequired[str]
    """The folder in which it starts, if an earlier command changed it to another one than the workspace itself."""

    kind: Literal['bash']


class SubjectBlob(TypedDict):
    """Reads a blob of the session itself."""

    blob_id: BlobId
    """Id of the blob."""

    kind: Literal['blob']


class SubjectDelete(TypedDict):
    """Removes a file."""

    kind: Literal['delete']

    path: ResolvedPath
    """The object that will be removed."""


class SubjectEdit(TypedDict):
    """Creates or changes a file."""

    kind: Literal['edit']

    path: ResolvedPath
    """The object that will be written."""


class SubjectMcp(TypedDict):
    """Calls a tool of an MCP server."""

    confusable: NotRequired[list[McpToolName]]
    """Tools of other servers that one rule text can mean as well as this tool."""

    digest: str
    """Digest of the tool's definition."""

    is_changed: NotRequired[bool]
    """Whether the definition differs from the one that was approved last."""

    kind: Literal['mcp']

    name: str
    """The name for the model and for rules, `mcp__SERVER__TOOL`."""

    server: str
    """The server's name in the configuration."""

    tool: str
    """The tool's name on the server."""


class SubjectProposedPlan(TypedDict):
    """Presents a plan for approval. Its text is in the arguments of the call."""

    kind: Literal['proposed_plan']


class SubjectQuestion(TypedDict):
    """Asks the user. It needs no permission."""

    kind: Literal['question']

    questions: list[UserQuestion]
    """The questions of the model."""


class SubjectRead(TypedDict):
    """Reads or lists a path."""

    kind: Literal['read']

    path: ResolvedPath
    """The object that will be opened."""


class SubjectSession(TypedDict):
    """Reads or changes only what belongs to the session itself, for example its todo list."""

    kind: Literal['session']

    tool: str
    """Name of the tool."""


class SubjectSeveral(TypedDict):
    """Several subjects: each is judged, and the strictest verdict counts."""

    kind: Literal['several']

    parts: list[Subject]
    """The parts; none of them is `Several`."""


class SubjectTask(TypedDict):
    """Starts a sub-agent. The rules judge the calls of the sub-agent separately."""

    agent: str
    """Name of the agent."""

    background: NotRequired[bool]
    """Whether the call returns at once and the sub-agent continues."""

    kind: Literal['task']

    read_only: NotRequired[bool]
    """Whether the agent has no tool that changes anything."""


class SubjectTool(TypedDict):
    """Any other tool."""

    kind: Literal['tool']

    name: str
    """Its name."""


class SubjectWeb(TypedDict):
    """Fetches a web page."""

    host: str
    """Its host, lower case, without a port."""

    kind: Literal['web']

    url: str
    """The complete URL."""

# One block of an input.
SubmitBlock: TypeAlias = "SubmitBlockText | SubmitBlockImage | SubmitBlockFile | SubmitBlockDocument | SubmitBlockResourceLink"


class SubmitBlockDocument(TypedDict):
    """A PDF of at most 32 MiB, or a text of at most 256 KiB."""

    data: NotRequired[str]
    """The content itself, in base64."""

    media_type: NotRequired[str]
    """Its media type, for display only. The daemon determines the type from the content."""

    name: NotRequired[str]
    """Its name; by default its path."""

    path: NotRequired[str]
    """A file on the daemon's machine: absolute, or relative to the session's folder. With `text` it is only a name, and nothing is read."""

    text: NotRequired[str]
    """The text itself, for example a part of a file, or a buffer of an editor."""

    type: Literal['document']

    unsaved: NotRequired[bool]
    """Whether `text` differs from the file, because the user has not saved it. The model is told so."""


class SubmitBlockFile(TypedDict):
    """An image, a PDF of at most 32 MiB, or a text file of at most 256 KiB."""

    data: NotRequired[str]
    """The content itself, in base64."""

    media_type: NotRequired[str]
    """Its media type, for display only. The daemon determines the type from the content."""

    name: NotRequired[str]
    """Its name; by default its path."""

    path: NotRequired[str]
    """A file on the daemon's machine: absolute, or relative to the session's folder. The daemon reads it once, so later changes have no effect."""

    type: Literal['file']


class SubmitBlockImage(TypedDict):
    """A PNG, JPEG, GIF or WebP, of at most 20 MiB. An image larger than models accept is scaled down."""

    data: NotRequired[str]
    """The content itself, in base64."""

    media_type: NotRequired[str]
    """Its media type, for display only. The daemon determines the type from the content."""

    name: NotRequired[str]
    """Its name; by default its path."""

    path: NotRequired[str]
    """A file on the daemon's machine: absolute, or relative to the session's folder. The daemon reads it once, so later changes have no effect."""

    type: Literal['image']


class SubmitBlockResourceLink(TypedDict):
    """A reference to a resource. With `server`, the daemon reads the content from that MCP server. Without `server`, it reads a `file:` URI like a file block. For any other URI, the model receives only the name and the URI."""

    name: NotRequired[str]
    """Its name, at most 200 bytes; by default its path or URI."""

    server: NotRequired[str]
    """Name of the MCP server that has the resource, as in `mcp.list` for this session."""

    type: Literal['resource_link']

    uri: str
    """Its URI, at most 2,000 bytes."""


class SubmitBlockText(TypedDict):
    """Text."""

    text: str
    """The text itself."""

    type: Literal['text']

# The input of a submit: a text, or blocks.
SubmitInput: TypeAlias = "str | list[SubmitBlock]"


class SubmitOutcome(TypedDict):
    """The result of a submit, the reply of `session.submit`: the input is on disk."""

    item_id: NotRequired[ItemId]
    """The item that the user's message has, or will have once its turn starts or the model receives it. Absent for a command without a message."""

    seq: int
    """Seq of the event that records the input."""

    state: AcceptedState
    """Whether the turn started, waits, was steered, or is already done."""

    text: NotRequired[str]
    """The answer of a command that needs no model. The event `command.completed` contains it as well."""

    turn_id: TurnId
    """The turn that processes the input. A command that needs no model belongs to the running turn, if there is one."""


class SubmitParams(TypedDict):
    """`session.submit`. An option that is absent has the session's value."""

    additional_dirs: NotRequired[list[str]]
    """The complete list of additional existing folders of the workspace, absolute. Those of a session apply at once; their AGENTS.md is read when the next turn starts."""

    append_system_prompt: NotRequired[str]
    """Appended to the system prompt; empty for nothing."""

    budgets: NotRequired[Budgets]
    """Limits of a turn. In a session they replace all previous limits."""

    expected_turn_id: NotRequired[TurnId]
    """The submit is refused unless this is the current turn."""

    fallback_model: NotRequired[str]
    """`PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models] fallback`. Empty for that default."""

    idempotency_key: NotRequired[str]
    """The same key with the same input returns the same turn, also after a restart."""

    input: SubmitInput
    """Text or blocks; must not be empty."""

    metadata: NotRequired[dict[str, str]]
    """Labels that the provider receives with each model request: at most 16, with keys of at most 64 and values of at most 512 bytes. Anthropic accepts only `user_id`."""

    mode: NotRequired[Mode]
    """Approval mode. A session's applies from the next verdict on, also in a running turn; pending requests that it allows are settled."""

    model: NotRequired[str]
    """`PROVIDER/MODEL`. A parameter may also be the name of a pointer of `[models]`, for example `reasoning`. The system prompt names the model, so another one begins a new prompt cache."""

    output_schema: NotRequired[Any]
    """JSON Schema of the result: `turn.completed.result.structured` is a value that satisfies it. `{}` for none. References to other documents are refused."""

    raw: NotRequired[bool]
    """Whether to send the text to the model even if it looks like a slash command or a note. Otherwise a single text block of one line is a command (`/name …`) or a note for the project instructions (`# …`)."""

    safe_mode: NotRequired[bool]
    """Whether tools run one at a time and every call needs a permission request."""

    session_id: SessionId
    """Id of the session."""

    stop: NotRequired[list[str]]
    """Texts at which the model stops its answer: at most 4, of at most 256 bytes each."""

    system_prompt: NotRequired[str]
    """Replaces the default system prompt; empty for the default. Another system prompt begins a new prompt cache."""

    temperature: NotRequired[Temperature]
    """Temperature, from 0, which nearly always selects the most likely token, to 2. A running turn keeps its setting."""

    thinking: NotRequired[Thinking]
    """How much the model may think. A running turn keeps its setting."""

    tools: NotRequired[ToolChoice]
    """The tools on offer; `{}` for all."""

    top_p: NotRequired[TopP]
    """The probability mass of the most likely tokens to choose from, from 0 to 1. Vendors advise to set only one of `temperature` and `top_p`."""

    when_busy: NotRequired[WhenBusy]
    """The action if a turn runs. By default the input is queued, and pending questions whether to continue are settled with `continue`."""


class SubscribeParams(TypedDict):
    """`session.subscribe`"""

    after_seq: NotRequired[int]
    """Only events after this seq; 0, the default, for the whole journal."""

    include: NotRequired[Include]
    """Filter of the events; by default all of them."""

    session_id: SessionId
    """Id of the session."""

# The id of a subscription, which its notifications name.
SubscriptionId: TypeAlias = "str"

# How a turn ended.
Subtype: TypeAlias = "Literal['success', 'error_during_execution', 'error_max_turns', 'error_max_budget_usd', 'error_max_tokens', 'error_max_time', 'max_output_tokens', 'aborted', 'permission_denied', 'structured_output_invalid', 'error_repeated_call', 'llm_error']"

# Why a turn switches to another model.
SwitchReason: TypeAlias = "Literal['overloaded', 'unavailable', 'not_found', 'rate_limited', 'large_context', 'vision']"

# A number with at most three decimals; finer ones are rounded.
Temperature: TypeAlias = "float"


class TemplateDiagnostic(TypedDict):
    """A file that is not used as a template."""

    message: str
    """Why it is not used."""

    path: str
    """The file."""


class TemplateParameter(TypedDict):
    """A parameter of a template."""

    default: NotRequired[Any]
    """Its value if none is given."""

    description: NotRequired[str]
    """What it is for."""

    enum: NotRequired[list[Any]]
    """The only possible values."""

    pattern: NotRequired[str]
    """A regular expression that the whole value matches."""

    required: NotRequired[bool]
    """Whether a value must be given."""

    type: str
    """`string`, `integer`, `number` or `boolean`."""


class TextMatch(TypedDict):
    """A message that contains the searched words."""

    item_id: ItemId
    """Id of the message's item."""

    snippet: str
    """The part of its text around the words."""

# How much a model may think: a level, or a maximum number of tokens.
Thinking: TypeAlias = "Literal['off', 'auto', 'low', 'medium', 'high'] | int"

# Filter of the models' thinking. Omitted events leave a gap in `seq`; messages keep every block at its position.
ThinkingShown: TypeAlias = "Literal['full', 'summary', 'none']"


class TierFactors(TypedDict):
    """Factors on the prices of tokens, by service tier. The standard tier has the factor 1."""

    batch: NotRequired[float]
    """Factor of `batch`; without it, the standard price is an upper limit."""

    flex: NotRequired[float]
    """Factor of `flex`; without it, the standard price is an upper limit."""

    priority: NotRequired[float]
    """Factor of `priority`; without it, the cost of such a call is unknown."""

    scale: NotRequired[float]
    """Factor of `scale`; without it, the cost of such a call is unknown."""

# Milliseconds since the Unix epoch (`…_ms` on the wire).
Timestamp: TypeAlias = "int"

# The source of a session's title, if no client set it.
TitledBy: TypeAlias = "Literal['prompt', 'model']"


class Todo(TypedDict):
    """One entry of a todo list."""

    active_form: NotRequired[str]
    """The text to show while the task is in progress, for example `Running the tests`."""

    content: str
    """The task in the imperative, for example `Run the tests`."""

    status: TodoStatus
    """Its status."""

# Status of an entry of a todo list.
TodoStatus: TypeAlias = "Literal['pending', 'in_progress', 'completed']"


class TodoUpdatedEvent(TypedDict):
    """The model changed the todo list of the session."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    todos: list[Todo]
    """The whole new list."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['todo.updated']

# Why a partial answer is discarded.
TombstoneReason: TypeAlias = "Literal['model_switched', 'output_limit', 'not_chosen', 'chosen']"


class ToolBackgroundEvent(TypedDict):
    """A command continues in the background after its call returned, or it ended. It belongs to the session: `turn_id` is present only while the turn that started it runs."""

    at_ms: Timestamp
    """Time of the event."""

    bash_id: BashId
    """Its name in the session, for example `bash_1`."""

    call_id: CallId
    """The call that started it."""

    command: NotRequired[str]
    """The beginning of the command, with `running`."""

    duration_ms: NotRequired[int]
    """Duration of the run, in milliseconds."""

    exit_code: NotRequired[int]
    """Exit code of the shell; after a signal 128 plus its number."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    killed_by: NotRequired[KilledBy]
    """The cause of its end, with `killed`."""

    note: NotRequired[str]
    """A note about its end, for example an exceeded limit, or output that could not be kept."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    output_blob: NotRequired[BlobRef]
    """Its full output, as far as the daemon kept it; absent without output."""

    output_bytes: NotRequired[int]
    """Total bytes of its output."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    signal: NotRequired[int]
    """Number of the signal that ended it."""

    state: BackgroundState
    """State of the command."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    survivors: NotRequired[list[int]]
    """Ids of its processes that could not be ended."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['tool.background']


class ToolBlockedEvent(TypedDict):
    """A command ran and failed, and the sandbox probably blocked it. A `permission.requested` of kind `sandbox` follows, which asks for a second run outside. The effects of the first run remain. This result becomes the result of the call unless there is a second run."""

    at_ms: Timestamp
    """Time of the event."""

    blocked: Blocked
    """The part of the sandbox that blocked it."""

    call_id: CallId
    """Id of the call."""

    code: NotRequired[str]
    """A stable code of the failure."""

    cwd: NotRequired[str]
    """The folder for further commands, if it changed."""

    detail: NotRequired[Any]
    """Additional data for clients: exit code, counts."""

    duration_ms: int
    """Duration from start to end, in milliseconds."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    output: str
    """Output of the first run, as the model would receive it."""

    output_blob: NotRequired[BlobRef]
    """The full output, if `output` is only its beginning and its end."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    status: ToolStatus
    """Status of the first run."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    tool: str
    """Name of the tool."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['tool.blocked']


class ToolChoice(TypedDict):
    """The tools that a session offers its models. By default it offers all tools."""

    allow: NotRequired[list[str]]
    """Only these tools; absent for all."""

    deny: NotRequired[list[str]]
    """Tools that are not offered."""


class ToolCompletedEvent(TypedDict):
    """A tool call ended, with any status."""

    at_ms: Timestamp
    """Time of the event."""

    attachments: NotRequired[list[Attachment]]
    """Pictures and documents that the model receives with the result."""

    background_read: NotRequired[BackgroundRead]
    """For BashOutput: how much of a background command's output the model has now received."""

    call_id: CallId
    """Id of the call."""

    code: NotRequired[str]
    """A stable code of a failure."""

    cwd: NotRequired[str]
    """The folder for further commands, if it changed."""

    detail: NotRequired[Any]
    """Additional data for clients: exit code, counts, encoding."""

    duration_ms: int
    """Duration from start to end, in milliseconds; 0 if it never ran."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    output: str
    """The output for the model."""

    output_blob: NotRequired[BlobRef]
    """The full output, if `output` is only its beginning and its end."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    reads: NotRequired[list[ReadRecord]]
    """The versions of files that the model has now seen."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    status: ToolStatus
    """Status of the call."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    tool: str
    """Name of the tool."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['tool.completed']


class ToolListParams(TypedDict):
    """`tool.list`"""

    cursor: NotRequired[str]
    """`next_cursor` of the previous page."""

    limit: NotRequired[int]
    """Tools per page, at most 500; 100 by default."""


class ToolListReply(TypedDict):
    """Reply of `tool.list`"""

    next_cursor: NotRequired[str]
    """Cursor of the next page; absent on the last page."""

    tools: list[ToolView]
    """Tools of this page, sorted by name."""


class ToolProgressEvent(TypedDict):
    """Output of a running tool, or of a background command until it ends. Pruned."""

    at_ms: Timestamp
    """Time of the event."""

    call_id: CallId
    """Id of the call."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    stream: str
    """`stdout`, to which both streams of a command go in the order of their writes, or `progress` for a note that says how far a call without output is. Older journals have `stderr` as well."""

    text: str
    """The new part."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['tool.progress']


class ToolRequestedEvent(TypedDict):
    """The model requested a tool call. The rest of its message may still be streaming."""

    at_ms: Timestamp
    """Time of the event."""

    call_id: CallId
    """Id of the call."""

    input: Any
    """The full arguments."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    provider_id: NotRequired[str]
    """The provider's id of the call, if its message is still streaming."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    summary: NotRequired[str]
    """The call as one line for users, from its arguments alone: a command, or a verb and a path. Absent in events of versions before 0.2."""

    tool: str
    """Name of the tool."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['tool.requested']


class ToolStartedEvent(TypedDict):
    """Execution starts. The event is written and synced before the tool runs."""

    allowed_by: str
    """The rule, mode or answered request that allows it."""

    at_ms: Timestamp
    """Time of the event."""

    attempt: NotRequired[int]
    """Number of the run; 1 if absent. 2 means that the command runs again, outside the sandbox that blocked its first run."""

    call_id: CallId
    """Id of the call."""

    change: NotRequired[PlannedChange]
    """For calls that change a file: its content hash before and after."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    read_only: bool
    """Whether it changes nothing."""

    sandbox: NotRequired[Confinement]
    """For commands: their confinement."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    tool: str
    """Name of the tool."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['tool.started']

# How a tool call ended.
ToolStatus: TypeAlias = "Literal['completed', 'failed', 'denied', 'cancelled', 'unknown']"


class ToolStatusEvent(TypedDict):
    """The call may run after the calls before it have ended."""

    allowed_by: str
    """The rule, mode or request that allows it."""

    at_ms: Timestamp
    """Time of the event."""

    call_id: CallId
    """Id of the call."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    prepared: PreparedCall
    """The prepared call that was judged."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['tool.status']

    updated_input: NotRequired[Any]
    """Arguments from a hook, which replace the model's."""


class ToolSummaryEvent(TypedDict):
    """All calls of an answer ended. Only an answer with two or more calls has a summary."""

    at_ms: Timestamp
    """Time of the event."""

    call_ids: list[CallId]
    """The calls, in the order of the answer."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    text: str
    """A summary of the calls as text for users, for example `read 2 files, ran 1 command; 1 failed`."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['tool.summary']


class ToolView(TypedDict):
    """A tool as clients see it."""

    concurrency_safe: bool
    """Whether its calls may run in parallel."""

    description: str
    """Its description for the model."""

    input_schema: Any
    """JSON Schema of its input."""

    max_output_bytes: int
    """Maximum bytes of one result for the model. A longer result is cut, and its full text is kept as a blob. The maximum is lower for a small context window."""

    max_output_chars: NotRequired[int]
    """Maximum characters of output that the tool keeps. Of longer output, the model receives the beginning and the end."""

    max_timeout_ms: NotRequired[int]
    """Highest time limit that a call may request, in milliseconds."""

    name: str
    """Its name in calls, rules and events."""

    permission: PermissionNeed
    """When its calls need a permission request."""

    read_only: bool
    """Whether none of its calls changes anything. Each Bash command is judged separately, and `tool.started` reports whether it is read-only."""

    timeout_ms: NotRequired[int]
    """Time limit of a call in milliseconds. Absent for tools that read or write local files; an abort ends their calls."""

# A number with at most three decimals; finer ones are rounded.
TopP: TypeAlias = "float"


class TruncatedField(TypedDict):
    """A truncated value of an event or an item."""

    blob_id: BlobId
    """Id of the blob with the complete value, which `session.blob` reads."""

    bytes: int
    """Length of the complete value in bytes."""

    media_type: str
    """`text/plain` for a text, `application/json` for a list or an object."""

    pointer: str
    """Location of the value, as a JSON pointer (RFC 6901) into the object that has this list. A text is cut at its end; a list or an object has fewer entries."""


class TrustParams(TypedDict):
    """`workspace.trust`"""

    cwd: str
    """The folder, absolute."""

    digest: NotRequired[str]
    """The digest from `workspace.status`: content that changed since is not trusted. Without it, the current content is trusted."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key and parameters returns the first reply, within 24 hours."""


class TrustStatus(TypedDict):
    """Whether the user trusts a folder: the reply of `workspace.*`."""

    changed_files: NotRequired[int]
    """With `count_changes`: number of files that `git status` lists, if the folder is trusted and in a repository. If there are very many, only a part is counted."""

    cwd: str
    """The folder, absolute and free of links."""

    digest: str
    """Digest of all content that trust covers: different content has a different digest. Empty if the folder no longer exists."""

    parts: list[str]
    """Parts that are active with trust, as text for users; empty if no part needs trust."""

    programs: NotRequired[list[str]]
    """The programs that the folder's hooks and MCP servers run or reach, each with the file that names it."""

    project_root: NotRequired[str]
    """The root of the project that holds the folder: trust covers the files of all folders from there to `cwd`."""

    trusted: bool
    """Whether its current content is trusted."""


class TurnAbortingEvent(TypedDict):
    """An abort was accepted; all work of the turn is being stopped."""

    at_ms: Timestamp
    """Time of the event."""

    ending: NotRequired[bool]
    """Whether the session ends with it."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    subtype: NotRequired[Subtype]
    """How the turn will end: `aborted`, or `permission_denied`."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['turn.aborting']


class TurnCompletedEvent(TypedDict):
    """The turn ended."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    result: TurnResult
    """The result of the turn."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['turn.completed']


class TurnDequeuedEvent(TypedDict):
    """A queued turn (`turn_id`) left the queue and will not start."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    reason: DequeueReason
    """Reason of the removal."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['turn.dequeued']


class TurnError(TypedDict):
    """An error of a turn."""

    causes: NotRequired[list[str]]
    """Causes from the outermost to the innermost, where known; secrets removed."""

    kind: str
    """A stable code."""

    message: str
    """Text for users, with secrets removed."""

# 
TurnId: TypeAlias = "str"


class TurnOutputRejectedEvent(TypedDict):
    """The final answer does not satisfy the turn's `output_schema`. The model receives the reasons and answers again."""

    at_ms: Timestamp
    """Time of the event."""

    attempt: int
    """Number of rejected answers so far, from 1."""

    errors: list[str]
    """The problems, as text for users."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    max: int
    """Number of corrections that the model may make."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    text: str
    """The text for the model."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['turn.output_rejected']


class TurnParkedEvent(TypedDict):
    """The daemon stops cleanly, and the turn is at a point where it can continue. Its resume does not count in `resumes`."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['turn.parked']


class TurnPhaseEvent(TypedDict):
    """The phase of the turn changed."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    phase: Phase
    """The new phase."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['turn.phase']

    uncalibrated_tokens: NotRequired[int]
    """With `model_call`: tokens of the request, counted from its characters without calibration."""


class TurnPromptBuiltEvent(TypedDict):
    """The system prompt of this turn was built, because the turn has another one than its session."""

    at_ms: Timestamp
    """Time of the event."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    sources: list[str]
    """Sources of its parts, as text for users."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    system: str
    """The complete system prompt."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['turn.prompt_built']


class TurnQueueMovedEvent(TypedDict):
    """A queued turn (`turn_id`) moved to another place in the queue."""

    at_ms: Timestamp
    """Time of the event."""

    before: NotRequired[TurnId]
    """The queued turn that now follows it; absent if it is the last one."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['turn.queue_moved']


class TurnQueueUpdatedEvent(TypedDict):
    """The input of a queued turn (`turn_id`) was replaced. Its place and its options are unchanged, except that it is no longer a slash command."""

    at_ms: Timestamp
    """Time of the event."""

    input: list[InputBlock]
    """The new text, pictures and documents."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['turn.queue_updated']


class TurnQueuedEvent(TypedDict):
    """An input waits for the running turn to end."""

    additional_dirs: NotRequired[list[str]]
    """The complete list of additional existing folders of the workspace, absolute. Those of a session apply at once; their AGENTS.md is read when the next turn starts."""

    append_system_prompt: NotRequired[str]
    """Appended to the system prompt; empty for nothing."""

    at_ms: Timestamp
    """Time of the event."""

    budgets: NotRequired[Budgets]
    """Limits of a turn. In a session they replace all previous limits."""

    command: NotRequired[SlashCommand]
    """The slash command whose expansion is the input; never a setting of a session."""

    compact: NotRequired[CompactRequest]
    """The turn has no input and only compacts the conversation; never a setting of a session."""

    fallback_model: NotRequired[str]
    """`PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models] fallback`. Empty for that default."""

    front: NotRequired[bool]
    """Whether it starts before the other queued inputs."""

    input: list[InputBlock]
    """Text, pictures and documents of the input."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    metadata: NotRequired[dict[str, str]]
    """Labels that the provider receives with each model request: at most 16, with keys of at most 64 and values of at most 512 bytes. Anthropic accepts only `user_id`."""

    mode: NotRequired[Mode]
    """Approval mode. A session's applies from the next verdict on, also in a running turn; pending requests that it allows are settled."""

    model: NotRequired[str]
    """`PROVIDER/MODEL`. A parameter may also be the name of a pointer of `[models]`, for example `reasoning`. The system prompt names the model, so another one begins a new prompt cache."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    output_schema: NotRequired[Any]
    """JSON Schema of the result: `turn.completed.result.structured` is a value that satisfies it. `{}` for none. References to other documents are refused."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    safe_mode: NotRequired[bool]
    """Whether tools run one at a time and every call needs a permission request."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    stop: NotRequired[list[str]]
    """Texts at which the model stops its answer: at most 4, of at most 256 bytes each."""

    system_prompt: NotRequired[str]
    """Replaces the default system prompt; empty for the default. Another system prompt begins a new prompt cache."""

    temperature: NotRequired[Temperature]
    """Temperature, from 0, which nearly always selects the most likely token, to 2. A running turn keeps its setting."""

    thinking: NotRequired[Thinking]
    """How much the model may think. A running turn keeps its setting."""

    tools: NotRequired[ToolChoice]
    """The tools on offer; `{}` for all."""

    top_p: NotRequired[TopP]
    """The probability mass of the most likely tokens to choose from, from 0 to 1. Vendors advise to set only one of `temperature` and `top_p`."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['turn.queued']


class TurnResult(TypedDict):
    """The result of a turn."""

    cache_hit_tokens: NotRequired[int]
    """Input tokens of this turn that were read from a prompt cache."""

    cost_at_least_usd_micros: NotRequired[int]
    """Cost of the calls whose price is known, in millionths of a dollar: a lower bound of the total cost."""

    cost_usd_micros: NotRequired[int]
    """Cost of this turn, in millionths of a dollar; `null` if a price is unknown."""

    duration_ms: int
    """Duration from start to end, in milliseconds."""

    errors: list[TurnError]
    """Errors of this turn only."""

    model_calls: int
    """Number of model calls."""

    model_ms: int
    """Time of the model calls with complete answers, in milliseconds. Failed attempts and the waits between them are not included."""

    permission_denials: list[Denial]
    """Calls that were refused."""

    permission_ms: int
    """Time spent waiting for users, in milliseconds."""

    stop_reason: NotRequired[StopReason]
    """Why the last answer ended."""

    structured: NotRequired[Any]
    """The value that satisfies the turn's `output_schema`."""

    subtype: Subtype
    """How it ended."""

    text: str
    """The text of the last answer; may be empty."""

    tool_calls: NotRequired[int]
    """Number of tool calls."""

    tools_ms: int
    """Time spent running tools, in milliseconds."""

    usage: Usage
    """Tokens of this turn."""

    usage_by_model: dict[str, ModelUsage]
    """The usage by `PROVIDER/MODEL`, with calls and cost."""


class TurnResumedEvent(TypedDict):
    """An interrupted turn continues after a restart."""

    at_ms: Timestamp
    """Time of the event."""

    delay_ms: NotRequired[int]
    """The wait before it continues, in milliseconds: 0 the first time, then longer each time."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    resumes: int
    """How often this turn was resumed after a stop that was not clean."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['turn.resumed']


class TurnStartedEvent(TypedDict):
    """A turn started."""

    additional_dirs: NotRequired[list[str]]
    """The complete list of additional existing folders of the workspace, absolute. Those of a session apply at once; their AGENTS.md is read when the next turn starts."""

    append_system_prompt: NotRequired[str]
    """Appended to the system prompt; empty for nothing."""

    at_ms: Timestamp
    """Time of the event."""

    budgets: NotRequired[Budgets]
    """Limits of a turn. In a session they replace all previous limits."""

    command: NotRequired[SlashCommand]
    """The slash command whose expansion is the input; never a setting of a session."""

    compact: NotRequired[CompactRequest]
    """The turn has no input and only compacts the conversation; never a setting of a session."""

    fallback_model: NotRequired[str]
    """`PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models] fallback`. Empty for that default."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    metadata: NotRequired[dict[str, str]]
    """Labels that the provider receives with each model request: at most 16, with keys of at most 64 and values of at most 512 bytes. Anthropic accepts only `user_id`."""

    mode: NotRequired[Mode]
    """Approval mode. A session's applies from the next verdict on, also in a running turn; pending requests that it allows are settled."""

    model: NotRequired[str]
    """`PROVIDER/MODEL`. A parameter may also be the name of a pointer of `[models]`, for example `reasoning`. The system prompt names the model, so another one begins a new prompt cache."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    output_schema: NotRequired[Any]
    """JSON Schema of the result: `turn.completed.result.structured` is a value that satisfies it. `{}` for none. References to other documents are refused."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    safe_mode: NotRequired[bool]
    """Whether tools run one at a time and every call needs a permission request."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    stop: NotRequired[list[str]]
    """Texts at which the model stops its answer: at most 4, of at most 256 bytes each."""

    system_prompt: NotRequired[str]
    """Replaces the default system prompt; empty for the default. Another system prompt begins a new prompt cache."""

    temperature: NotRequired[Temperature]
    """Temperature, from 0, which nearly always selects the most likely token, to 2. A running turn keeps its setting."""

    thinking: NotRequired[Thinking]
    """How much the model may think. A running turn keeps its setting."""

    tools: NotRequired[ToolChoice]
    """The tools on offer; `{}` for all."""

    top_p: NotRequired[TopP]
    """The probability mass of the most likely tokens to choose from, from 0 to 1. Vendors advise to set only one of `temperature` and `top_p`."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['turn.started']


class TurnSteeredEvent(TypedDict):
    """A client submitted an input for the running turn. The model receives it with the next tool results."""

    at_ms: Timestamp
    """Time of the event."""

    input: list[InputBlock]
    """Text, pictures and documents of the input."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['turn.steered']


class Unique(TypedDict):
    """Prevents a second job with the same key."""

    key: str
    """Any text."""

    on_conflict: NotRequired[OnConflict]
    """What happens to a second job."""

    scope: NotRequired[UniqueScope]
    """For how long the key is taken."""

# For how long a job keeps its unique key.
UniqueScope: TypeAlias = "Literal['active', 'day', 'forever']"


class UnsubscribeParams(TypedDict):
    """`session.unsubscribe`"""

    subscription: str
    """Id that `session.subscribe` returned."""


class UntrustParams(TypedDict):
    """`workspace.untrust`"""

    cwd: str
    """The folder, absolute."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key and parameters returns the first reply, within 24 hours."""


class UpdateParams(TypedDict):
    """`session.update`. Absent values stay unchanged."""

    additional_dirs: NotRequired[list[str]]
    """The complete list of additional existing folders of the workspace, absolute. Those of a session apply at once; their AGENTS.md is read when the next turn starts."""

    append_system_prompt: NotRequired[str]
    """Appended to the system prompt; empty for nothing."""

    budgets: NotRequired[Budgets]
    """Limits of a turn. In a session they replace all previous limits."""

    env: NotRequired[SessionEnvironment]
    """Variables of the environment of its commands, in place of all that were sent before; from the next command on. See `session.create`."""

    fallback_model: NotRequired[str]
    """`PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models] fallback`. Empty for that default."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the reply of the first call."""

    mcp_servers: NotRequired[dict[str, Any]]
    """MCP servers for only this session and its sub-agents, in place of all that were given for it before; from the next turn on. See `session.create`."""

    metadata: NotRequired[dict[str, str]]
    """Labels that the provider receives with each model request: at most 16, with keys of at most 64 and values of at most 512 bytes. Anthropic accepts only `user_id`."""

    mode: NotRequired[Mode]
    """Approval mode. A session's applies from the next verdict on, also in a running turn; pending requests that it allows are settled."""

    model: NotRequired[str]
    """`PROVIDER/MODEL`. A parameter may also be the name of a pointer of `[models]`, for example `reasoning`. The system prompt names the model, so another one begins a new prompt cache."""

    output_schema: NotRequired[Any]
    """JSON Schema of the result: `turn.completed.result.structured` is a value that satisfies it. `{}` for none. References to other documents are refused."""

    safe_mode: NotRequired[bool]
    """Whether tools run one at a time and every call needs a permission request."""

    session_id: SessionId
    """Id of the session."""

    stop: NotRequired[list[str]]
    """Texts at which the model stops its answer: at most 4, of at most 256 bytes each."""

    system_prompt: NotRequired[str]
    """Replaces the default system prompt; empty for the default. Another system prompt begins a new prompt cache."""

    temperature: NotRequired[Temperature]
    """Temperature, from 0, which nearly always selects the most likely token, to 2. A running turn keeps its setting."""

    thinking: NotRequired[Thinking]
    """How much the model may think. A running turn keeps its setting."""

    title: NotRequired[str]
    """Short name."""

    tools: NotRequired[ToolChoice]
    """The tools on offer; `{}` for all."""

    top_p: NotRequired[TopP]
    """The probability mass of the most likely tokens to choose from, from 0 to 1. Vendors advise to set only one of `temperature` and `top_p`."""


class Usage(TypedDict):
    """Tokens of one or more model calls, as the provider reported them."""

    cache_read_tokens: NotRequired[int]
    """Input tokens read from a prompt cache."""

    cache_write_1h_tokens: NotRequired[int]
    """The part of `cache_write_tokens` that is kept for an hour instead of minutes, where the provider reports it."""

    cache_write_tokens: NotRequired[int]
    """Input tokens written to a prompt cache."""

    input_tokens: NotRequired[int]
    """Input tokens that were neither read from nor written to a prompt cache."""

    output_tokens: NotRequired[int]
    """Output tokens, reasoning included."""

    reasoning_tokens: NotRequired[int]
    """The part of the output that was reasoning, where the provider reports it."""

    service_tier: NotRequired[ServiceTier]
    """The service tier of one call, where the provider reports it; absent in sums."""

    total: NotRequired[int]
    """All tokens that were sent or received; computed when it is written."""

    web_search_requests: NotRequired[int]
    """Web searches that the provider made for the answer; each one is charged."""


class UsageEvent(TypedDict):
    """Tokens were booked that belong to no complete answer of a turn. They count like tokens of an answer, and the attempt counts as a model call, so that budgets also hold after crashes. Tokens of a helper call count only for the session."""

    at_ms: Timestamp
    """Time of the event."""

    cost_usd_micros: NotRequired[int]
    """Cost of the tokens and searches, in millionths of a dollar; absent if the price is unknown."""

    estimated: bool
    """Whether `usage` is an upper estimate: one token for every two bytes of the request and of the answer, or the maximum usage of a helper call. Reported input tokens replace the estimate. Reported output tokens replace it only if they are larger."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    model: str
    """`PROVIDER/MODEL` of the call."""

    model_snapshot: NotRequired[ModelSnapshot]
    """Limits and price of the model at the time of the call."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    purpose: NotRequired[Purpose]
    """Purpose of the call, if it was a helper call."""

    reason: UsageReason
    """Reason of the booking."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['usage']

    usage: Usage
    """Tokens and searches of the call."""

# Why tokens are booked outside the answers of turns.
UsageReason: TypeAlias = "Literal['lost_attempt', 'helper']"


class UserAnswer(TypedDict):
    """The user's answer to one question of a model: options, own words, or both."""

    choices: NotRequired[list[str]]
    """Labels of the chosen options."""

    text: NotRequired[str]
    """The answer in the user's own words."""


class UserQuestion(TypedDict):
    """One question of a model."""

    header: NotRequired[str]
    """A label of a few words for it."""

    multi_select: NotRequired[bool]
    """Whether several of the options may be chosen."""

    options: NotRequired[list[QuestionOption]]
    """Suggested answers. The user may always answer in their own words."""

    question: str
    """The complete question."""

# The verdict of the rules on one tool call.
VerdictKind: TypeAlias = "Literal['allow', 'ask', 'deny']"


class VerifyAuditParams(TypedDict):
    """`permission.verify_audit`"""

    known: NotRequired[AuditHead]
    """A row that the client stored elsewhere: the log must still contain it, unchanged."""


class VerifyAuditReply(TypedDict):
    """Reply of `permission.verify_audit`"""

    faults: list[str]
    """Problems of the log as texts; empty if the log is complete."""

    head: NotRequired[AuditHead]
    """The newest row. A client that stores a copy elsewhere can later check that the log still contains the row."""

    rows: int
    """Number of rows that were checked."""


class WaitParams(TypedDict):
    """`session.wait`"""

    session_id: SessionId
    """Id of the session."""

    timeout_ms: NotRequired[int]
    """Maximum wait in milliseconds, at most 30 days; by default there is no limit. 0 returns at once."""

    until: NotRequired[list[SessionState]]
    """States that end the wait; by default `idle`, `requires_action` and `ended`."""


class WaitReply(TypedDict):
    """Reply of `session.wait`"""

    result: NotRequired[TurnResult]
    """Result of its newest completed turn, if there is one."""

    session: SessionView
    """The session, with the state that ended the wait."""

    timed_out: bool
    """Whether `timeout_ms` passed before the session reached one of the states."""

# What a job waits for.
WaitingFor: TypeAlias = "Literal['permission', 'question', 'unknown_outcome', 'resume']"

# The action of a submit while a turn runs.
WhenBusy: TypeAlias = "Literal['queue', 'steer', 'interrupt', 'reject']"

# A change of the messages that later requests contain.
WindowEdit: TypeAlias = "WindowEditResults | WindowEditMessages"

# Replaces some messages by others.
WindowEditMessages = TypedDict(
    "WindowEditMessages",
    {
        "count": "int",
        "from": "int",
        "kind": "Literal['messages']",
        "messages": "list[Message]",
    },
)


class WindowEditResults(TypedDict):
    """Replaces the contents of tool results."""

    kind: Literal['results']

    results: list[ReplacedResult]
    """The replaced results, in the order of the conversation."""


class WorkspaceParams(TypedDict):
    """`workspace.status`"""

    count_changes: NotRequired[bool]
    """Whether the reply counts the changed files. Git runs only in a trusted folder."""

    cwd: str
    """The folder, absolute."""


class WorkspaceTrustRequiredEvent(TypedDict):
    """The workspace contains parts that are used only with trust."""

    at_ms: Timestamp
    """Time of the event."""

    cwd: str
    """Path of the workspace's folder."""

    digest: NotRequired[str]
    """Digest of all parts, as a parameter of `workspace.trust`."""

    item_id: NotRequired[ItemId]
    """The item, if the event belongs to one."""

    origin: NotRequired[Origin]
    """The client that caused it, if any."""

    parent_call_id: NotRequired[CallId]
    """The tool call of another session that started this session. Absent in sessions that a client created."""

    parts: list[str]
    """Parts that are not used until the user trusts the folder, as text for users."""

    seq: int
    """Its position in the session's journal, from 1."""

    session_id: SessionId
    """Id of the session."""

    step: NotRequired[int]
    """The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item."""

    truncated_fields: NotRequired[list[TruncatedField]]
    """Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete."""

    turn_id: NotRequired[TurnId]
    """The turn, if the event belongs to one."""

    type: Literal['workspace.trust_required']


class Worktree(TypedDict):
    """A worktree that the daemon made."""

    base: str
    """The commit that it started from."""

    branch: str
    """Its branch."""

    commits: NotRequired[int]
    """Commits of the branch that the base does not have; absent if it was not looked at."""

    created_at_ms: Timestamp
    """Time of its creation."""

    in_use: NotRequired[bool]
    """Whether a session or a job still uses it."""

    job_id: NotRequired[JobId]
    """The job that it belongs to."""

    path: str
    """Its folder, absolute."""

    repository: str
    """The top of the repository that it belongs to."""

    session_id: NotRequired[SessionId]
    """The session that works in it; absent before its start."""

    uncommitted: NotRequired[bool]
    """Whether it has changes that are not committed; absent if it was not looked at."""

# Both forms. `false` is the same as leaving it out, which callers that fill in a form expect.
WorktreeChoice: TypeAlias = "bool | WorktreeObject"


class WorktreeDiffParams(TypedDict):
    """`worktree.diff`. Exactly one of `session_id` and `job_id` is needed."""

    job_id: NotRequired[JobId]
    """The job of the worktree."""

    session_id: NotRequired[SessionId]
    """The session of the worktree."""


class WorktreeDiffReply(TypedDict):
    """Reply of `worktree.diff`: all changes since the base, committed or not."""

    base: str
    """The commit that it started from."""

    branch: str
    """Its branch."""

    diff: str
    """A unified diff of at most 1 MiB."""

    files: list[ChangedFile]
    """The changed files."""

    truncated: NotRequired[bool]
    """Whether the diff was cut."""


class WorktreeListReply(TypedDict):
    """Reply of `worktree.list`: oldest first."""

    worktrees: list[Worktree]
    """The worktrees that exist."""


class WorktreeMergeParams(TypedDict):
    """`worktree.merge`. Exactly one of `session_id` and `job_id` is needed."""

    how: NotRequired[MergeMethod]
    """A fast-forward by default."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the reply of the first call."""

    job_id: NotRequired[JobId]
    """The job of the worktree."""

    session_id: NotRequired[SessionId]
    """The session of the worktree."""


class WorktreeMergeReply(TypedDict):
    """Reply of `worktree.merge`"""

    commit: str
    """Its newest commit now."""

    into: str
    """The branch that was changed: the one that the repository's folder has checked out."""

    merged: bool
    """Whether it has changed; otherwise it had all commits before."""

    uncommitted: NotRequired[int]
    """Files of the worktree whose changes are not committed, and so were not merged."""


class WorktreeObject(TypedDict):
    """The object form of [`WorktreeChoice`]."""

    base: NotRequired[str]
    """The commit or branch that the worktree starts from; by default `HEAD`."""

    branch: NotRequired[str]
    """Its branch; by default `agentd/ID`."""

    commit: NotRequired[bool]
    """Whether uncommitted changes are committed at the end; `true` by default."""

    include: NotRequired[list[str]]
    """Ignored files that are copied into it: paths or globs relative to the top of the repository."""

    keep: NotRequired[KeepWorktree]
    """Whether it is kept at the end."""


class WorktreeRemoveParams(TypedDict):
    """`worktree.remove`. Exactly one of `session_id` and `job_id` is needed."""

    force: NotRequired[bool]
    """Whether uncommitted changes are lost; otherwise they keep the worktree."""

    idempotency_key: NotRequired[str]
    """A repeated call with the same key returns the reply of the first call."""

    job_id: NotRequired[JobId]
    """The job of the worktree. It must be over."""

    session_id: NotRequired[SessionId]
    """The session of the worktree. It must have ended or be archived."""


class Call(Protocol):
    """A call with the types of its method."""

    @overload
    async def __call__(self, method: Literal["rpc.discover"], params: dict[str, Any] = ...) -> dict[str, Any]: ...

    @overload
    async def __call__(self, method: Literal["daemon.hello"], params: HelloParams = ...) -> HelloReply: ...

    @overload
    async def __call__(self, method: Literal["daemon.status"], params: dict[str, Any] = ...) -> StatusReply: ...

    @overload
    async def __call__(self, method: Literal["daemon.metrics"], params: dict[str, Any] = ...) -> Metrics: ...

    @overload
    async def __call__(self, method: Literal["daemon.config"], params: ConfigParams = ...) -> ConfigReply: ...

    @overload
    async def __call__(self, method: Literal["daemon.subscribe"], params: DaemonSubscribeParams = ...) -> SubscriptionId: ...

    @overload
    async def __call__(self, method: Literal["daemon.reload"], params: ReloadParams = ...) -> ReloadReply: ...

    @overload
    async def __call__(self, method: Literal["daemon.backup"], params: BackupParams) -> BackupReply: ...

    @overload
    async def __call__(self, method: Literal["daemon.check"], params: dict[str, Any] = ...) -> CheckReply: ...

    @overload
    async def __call__(self, method: Literal["daemon.shutdown"], params: ShutdownParams = ...) -> Done: ...

    @overload
    async def __call__(self, method: Literal["session.create"], params: CreateParams) -> SessionReply: ...

    @overload
    async def __call__(self, method: Literal["session.list"], params: ListParams = ...) -> ListReply: ...

    @overload
    async def __call__(self, method: Literal["session.get"], params: SessionParams) -> SessionReply: ...

    @overload
    async def __call__(self, method: Literal["session.submit"], params: SubmitParams) -> SubmitOutcome: ...

    @overload
    async def __call__(self, method: Literal["session.abort"], params: AbortParams) -> AbortReply: ...

    @overload
    async def __call__(self, method: Literal["session.compact"], params: CompactParams) -> CompactReply: ...

    @overload
    async def __call__(self, method: Literal["session.context"], params: SessionParams) -> ContextView: ...

    @overload
    async def __call__(self, method: Literal["session.request"], params: SessionParams) -> RequestView: ...

    @overload
    async def __call__(self, method: Literal["session.approve"], params: ApproveParams = ...) -> ApproveReply: ...

    @overload
    async def __call__(self, method: Literal["session.update"], params: UpdateParams) -> SessionReply: ...

    @overload
    async def __call__(self, method: Literal["session.answer"], params: AnswerParams) -> AnswerReply: ...

    @overload
    async def __call__(self, method: Literal["session.feedback"], params: FeedbackParams) -> AnswerReply: ...

    @overload
    async def __call__(self, method: Literal["session.queue.list"], params: QueueListParams) -> QueueReply: ...

    @overload
    async def __call__(self, method: Literal["session.queue.clear"], params: QueueClearParams) -> QueueReply: ...

    @overload
    async def __call__(self, method: Literal["session.queue.update"], params: QueueUpdateParams) -> QueueReply: ...

    @overload
    async def __call__(self, method: Literal["session.queue.remove"], params: QueueRemoveParams) -> QueueReply: ...

    @overload
    async def __call__(self, method: Literal["session.queue.move"], params: QueueMoveParams) -> QueueReply: ...

    @overload
    async def __call__(self, method: Literal["session.wait"], params: WaitParams) -> WaitReply: ...

    @overload
    async def __call__(self, method: Literal["session.archive"], params: ArchiveParams) -> SessionReply: ...

    @overload
    async def __call__(self, method: Literal["session.fork"], params: ForkParams) -> SessionReply: ...

    @overload
    async def __call__(self, method: Literal["session.rewind"], params: RewindParams) -> RewindReply: ...

    @overload
    async def __call__(self, method: Literal["session.export"], params: ExportParams) -> ExportReply: ...

    @overload
    async def __call__(self, method: Literal["session.import"], params: ImportParams) -> ImportReply: ...

    @overload
    async def __call__(self, method: Literal["session.kill"], params: EndParams) -> AbortReply: ...

    @overload
    async def __call__(self, method: Literal["session.subscribe"], params: SubscribeParams) -> SubscriptionId: ...

    @overload
    async def __call__(self, method: Literal["session.unsubscribe"], params: UnsubscribeParams) -> bool: ...

    @overload
    async def __call__(self, method: Literal["session.events"], params: EventsParams) -> EventsReply: ...

    @overload
    async def __call__(self, method: Literal["session.items"], params: ItemsParams) -> ItemsReply: ...

    @overload
    async def __call__(self, method: Literal["session.blob"], params: BlobParams) -> BlobReply: ...

    @overload
    async def __call__(self, method: Literal["session.diff"], params: DiffParams) -> DiffReply: ...

    @overload
    async def __call__(self, method: Literal["session.delete"], params: EndParams) -> Done: ...

    @overload
    async def __call__(self, method: Literal["permission.list"], params: PermissionListParams = ...) -> PermissionListReply: ...

    @overload
    async def __call__(self, method: Literal["permission.explain"], params: ExplainParams) -> ExplainReply: ...

    @overload
    async def __call__(self, method: Literal["permission.respond"], params: ApproveParams = ...) -> ApproveReply: ...

    @overload
    async def __call__(self, method: Literal["permission.subscribe"], params: dict[str, Any] = ...) -> SubscriptionId: ...

    @overload
    async def __call__(self, method: Literal["permission.rules"], params: RulesParams = ...) -> RulesReply: ...

    @overload
    async def __call__(self, method: Literal["permission.add_rule"], params: RuleParams) -> RuleReply: ...

    @overload
    async def __call__(self, method: Literal["permission.remove_rule"], params: RuleParams) -> RuleReply: ...

    @overload
    async def __call__(self, method: Literal["permission.audit"], params: AuditParams = ...) -> AuditReply: ...

    @overload
    async def __call__(self, method: Literal["permission.verify_audit"], params: VerifyAuditParams = ...) -> VerifyAuditReply: ...

    @overload
    async def __call__(self, method: Literal["memory.list"], params: MemoryListParams) -> MemoryListReply: ...

    @overload
    async def __call__(self, method: Literal["memory.set"], params: MemorySetParams) -> MemorySetReply: ...

    @overload
    async def __call__(self, method: Literal["memory.remove"], params: MemoryRemoveParams) -> MemoryRemoveReply: ...

    @overload
    async def __call__(self, method: Literal["agent.list"], params: AgentListParams) -> AgentListReply: ...

    @overload
    async def __call__(self, method: Literal["command.list"], params: CommandListParams = ...) -> CommandListReply: ...

    @overload
    async def __call__(self, method: Literal["tool.list"], params: ToolListParams = ...) -> ToolListReply: ...

    @overload
    async def __call__(self, method: Literal["mcp.list"], params: McpListParams = ...) -> McpListReply: ...

    @overload
    async def __call__(self, method: Literal["mcp.tools"], params: McpServerParams) -> McpToolsReply: ...

    @overload
    async def __call__(self, method: Literal["mcp.resources"], params: McpServerParams) -> McpResourceList: ...

    @overload
    async def __call__(self, method: Literal["mcp.test"], params: McpTestParams = ...) -> McpTest: ...

    @overload
    async def __call__(self, method: Literal["mcp.logs"], params: McpServerParams) -> McpLogsReply: ...

    @overload
    async def __call__(self, method: Literal["mcp.add"], params: McpAddParams) -> McpChangeReply: ...

    @overload
    async def __call__(self, method: Literal["mcp.remove"], params: McpRemoveParams) -> McpChangeReply: ...

    @overload
    async def __call__(self, method: Literal["model.list"], params: ModelListParams = ...) -> ModelListReply: ...

    @overload
    async def __call__(self, method: Literal["model.check"], params: ModelCheckParams = ...) -> ModelCheckReply: ...

    @overload
    async def __call__(self, method: Literal["model.usage"], params: ModelUsageParams = ...) -> ModelUsageReply: ...

    @overload
    async def __call__(self, method: Literal["workspace.status"], params: WorkspaceParams) -> TrustStatus: ...

    @overload
    async def __call__(self, method: Literal["workspace.restrictions"], params: RestrictionsParams) -> Restrictions: ...

    @overload
    async def __call__(self, method: Literal["workspace.trust"], params: TrustParams) -> TrustStatus: ...

    @overload
    async def __call__(self, method: Literal["workspace.untrust"], params: UntrustParams) -> TrustStatus: ...

    @overload
    async def __call__(self, method: Literal["knowledge.index"], params: KnowledgeIndexParams) -> StartedIndexJob: ...

    @overload
    async def __call__(self, method: Literal["knowledge.insert"], params: KnowledgeInsertParams) -> KnowledgeInsertReply: ...

    @overload
    async def __call__(self, method: Literal["knowledge.query"], params: QueryParams) -> KnowledgeQueryReply: ...

    @overload
    async def __call__(self, method: Literal["knowledge.documents.list"], params: KnowledgeDocumentsParams) -> KnowledgeDocumentsReply: ...

    @overload
    async def __call__(self, method: Literal["knowledge.documents.get"], params: KnowledgeDocumentParams) -> KnowledgeDocumentReply: ...

    @overload
    async def __call__(self, method: Literal["knowledge.documents.delete"], params: KnowledgeDocumentDeleteParams) -> KnowledgeDocumentDeleteReply: ...

    @overload
    async def __call__(self, method: Literal["knowledge.graph"], params: KnowledgeGraphParams) -> KnowledgeGraphReply: ...

    @overload
    async def __call__(self, method: Literal["knowledge.status"], params: KnowledgeStatusParams) -> IndexStatus: ...

    @overload
    async def __call__(self, method: Literal["knowledge.cancel"], params: KnowledgeCancelParams) -> KnowledgeCancelReply: ...

    @overload
    async def __call__(self, method: Literal["knowledge.subscribe"], params: KnowledgeWorkParams) -> SubscriptionId: ...

    @overload
    async def __call__(self, method: Literal["knowledge.cache.clear"], params: KnowledgeCacheClearParams) -> KnowledgeCacheClearReply: ...

    @overload
    async def __call__(self, method: Literal["knowledge.delete"], params: KnowledgeDeleteParams) -> KnowledgeDeleteReply: ...

    @overload
    async def __call__(self, method: Literal["knowledge.entity.create"], params: KnowledgeEntityParams) -> KnowledgeEntityReply: ...

    @overload
    async def __call__(self, method: Literal["knowledge.entity.update"], params: KnowledgeEntityParams) -> KnowledgeEntityReply: ...

    @overload
    async def __call__(self, method: Literal["knowledge.entity.merge"], params: KnowledgeEntityMergeParams) -> KnowledgeEntityReply: ...

    @overload
    async def __call__(self, method: Literal["knowledge.entity.delete"], params: KnowledgeEntityParams) -> KnowledgeEntityReply: ...

    @overload
    async def __call__(self, method: Literal["knowledge.relation.create"], params: KnowledgeRelationParams) -> KnowledgeRelationReply: ...

    @overload
    async def __call__(self, method: Literal["knowledge.relation.update"], params: KnowledgeRelationParams) -> KnowledgeRelationReply: ...

    @overload
    async def __call__(self, method: Literal["knowledge.relation.delete"], params: KnowledgeRelationParams) -> KnowledgeRelationReply: ...

    @overload
    async def __call__(self, method: Literal["job.create"], params: JobRequest = ...) -> JobCreateReply: ...

    @overload
    async def __call__(self, method: Literal["job.list"], params: JobListParams = ...) -> JobListReply: ...

    @overload
    async def __call__(self, method: Literal["job.get"], params: JobParams) -> JobGetReply: ...

    @overload
    async def __call__(self, method: Literal["job.update"], params: JobUpdateParams) -> JobReply: ...

    @overload
    async def __call__(self, method: Literal["job.cancel"], params: JobCancelParams) -> JobCancelReply: ...

    @overload
    async def __call__(self, method: Literal["job.retry"], params: JobRetryParams) -> JobReply: ...

    @overload
    async def __call__(self, method: Literal["job.wait"], params: JobWaitParams) -> JobWaitReply: ...

    @overload
    async def __call__(self, method: Literal["job.logs"], params: JobLogsParams) -> JobLogsReply: ...

    @overload
    async def __call__(self, method: Literal["job.events"], params: JobEventsParams) -> JobEventsReply: ...

    @overload
    async def __call__(self, method: Literal["job.pause"], params: JobPauseParams = ...) -> JobPauseReply: ...

    @overload
    async def __call__(self, method: Literal["job.resume"], params: JobPauseParams = ...) -> JobPauseReply: ...

    @overload
    async def __call__(self, method: Literal["job.templates"], params: JobTemplatesParams = ...) -> JobTemplatesReply: ...

    @overload
    async def __call__(self, method: Literal["schedule.create"], params: NewSchedule) -> ScheduleReply: ...

    @overload
    async def __call__(self, method: Literal["schedule.update"], params: ScheduleUpdate) -> ScheduleReply: ...

    @overload
    async def __call__(self, method: Literal["schedule.get"], params: ScheduleParams) -> ScheduleReply: ...

    @overload
    async def __call__(self, method: Literal["schedule.list"], params: dict[str, Any] = ...) -> ScheduleListReply: ...

    @overload
    async def __call__(self, method: Literal["schedule.delete"], params: ScheduleChangeParams) -> ScheduleReply: ...

    @overload
    async def __call__(self, method: Literal["schedule.trigger"], params: ScheduleChangeParams) -> ScheduleReply: ...

    @overload
    async def __call__(self, method: Literal["schedule.next"], params: ScheduleNextParams) -> ScheduleNextReply: ...

    @overload
    async def __call__(self, method: Literal["worktree.list"], params: dict[str, Any] = ...) -> WorktreeListReply: ...

    @overload
    async def __call__(self, method: Literal["worktree.merge"], params: WorktreeMergeParams = ...) -> WorktreeMergeReply: ...

    @overload
    async def __call__(self, method: Literal["worktree.remove"], params: WorktreeRemoveParams = ...) -> Done: ...

    @overload
    async def __call__(self, method: Literal["worktree.diff"], params: WorktreeDiffParams = ...) -> WorktreeDiffReply: ...
