// Printed from the daemon's OpenRPC document; do not edit.
// Requests and replies are JSON-RPC 2.0 objects, one a line or with LSP framing, on the daemon's Unix socket. Unknown parameters are refused. Readers ignore fields, events and values that they do not know: they may be added within a protocol version, and nothing is removed or changes its meaning. A field that is not required is left out when it has no value; in parameters, null means the same. Integers are at most 2^53-1. A value of an event that exceeds 64 KiB is cut and listed in `truncated_fields`; `session.blob` returns the whole. Events with `x-pruned` leave the journal when their item completes, so a later replay lacks them; all others are permanent.

/** The protocol version of these types. */
export const PROTOCOL_VERSION = 1;

/** Switches for the optimisations of a session, to measure their effect. `true` turns an optimisation off. The switches are fixed when the session is created. */
export interface Ablation {
  /** No compaction unless a client requests it. */
  auto_compaction?: boolean;
  /** No automatic memory. */
  auto_memory?: boolean;
  /** No commands in the background. */
  background_tasks?: boolean;
  /** No compaction at all. */
  compaction?: boolean;
  /** No thinking between tool calls of one answer, if the provider has such a setting. */
  interleaved_thinking?: boolean;
  /** No reminders for the model. */
  reminders?: boolean;
  /** Tool calls start only after the model has written its whole answer. */
  streaming_execution?: boolean;
  /** No thinking, even if a session or turn requests it. */
  thinking?: boolean;
}

/** `session.abort` */
export interface AbortParams {
  /** The only tool call to stop; the turn continues. */
  call_id?: CallId;
  /** The same key with the same parameters returns the same `stopped`, and stops no work that started later. */
  idempotency_key?: string;
  /** Id of the session. */
  session_id: SessionId;
  /** The turn to stop; by default the running turn. If another turn runs, the daemon refuses the abort. */
  turn_id?: TurnId;
}

/** Reply of `session.abort`: the work has stopped. */
export interface AbortReply {
  /** Ids of the turn and tool calls that were stopped; empty if nothing ran. */
  stopped: Array<string>;
  /** Process ids that could not be stopped. */
  survivors: Array<number>;
}

/** How a submit was accepted. */
export type AcceptedState = "running" | "queued" | "steered" | "completed";

/** `agent.list` */
export interface AgentListParams {
  /** The folder of the sessions. */
  cwd: string;
}

/** Reply of `agent.list` */
export interface AgentListReply {
  /** The agents, by descending priority: project, user, built-in. */
  agents: Array<AgentView>;
  /** Files with agents that the daemon cannot use, or uses only in part. */
  diagnostics: Array<FileDiagnostic>;
}

/** The agent as which a session works. */
export interface AgentProfile {
  /** Its name. */
  name: string;
  /** Its instructions for the model, a part of the system prompt. */
  prompt?: string;
  /** What its definition forbids. */
  restrictions?: AgentRestrictions;
}

/** What the definitions of an agent, and of the agents that started it, forbid. It never allows a call. No option of the session and no answer of a user removes it. */
export interface AgentRestrictions {
  /** Rules for calls that always need a permission request. */
  ask?: Array<string>;
  /** Rules that deny calls. */
  deny?: Array<string>;
  /** Modes by which each call is judged as well; the strictest verdict counts. */
  modes?: Array<Mode>;
  /** Lists of rules such as `Bash(git:*)`. In each list that has rules for the tool of a call, one must cover it. */
  only?: Array<Array<string>>;
  /** Lists of tools. Each of them must offer the tool of a call. */
  tools?: Array<ToolChoice>;
}

/** The owner of an agent's definition. */
export type AgentSource = "built_in" | "user" | "project";

/** One agent. */
export interface AgentView {
  /** The colour in which clients show it. */
  color?: string;
  /** Names of tools that it does not have. */
  denied_tools?: Array<string>;
  /** When to use it. */
  description: string;
  /** Maximum number of model calls of a task. */
  max_turns?: number;
  /** Approval mode that it has at most. */
  mode?: Mode;
  /** Its model: `PROVIDER/MODEL`, a pointer of `[models]`, one of `[models.aliases]`, or `inherit` for the model of the session. If it is absent or not known, the pointer `task` applies, or else the session's model. */
  model_name?: string;
  /** Its name, as its file has it. */
  name: string;
  /** Its file; absent for a built-in agent. */
  path?: string;
  /** The name to type: `subagent_type` of the tool `Task`, `agent` of `session.create`. The name is accepted there as well. */
  slug?: string;
  /** The owner of its definition. */
  source: AgentSource;
  /** Its tools, such as `Read` or `Bash(git:*)`; `["*"]` for all. */
  tools: Array<string>;
}

/** Why one of several answers was refused. */
export interface AnswerError {
  /** The JSON-RPC error number. */
  code: number;
  /** `kind` and further members. */
  data: unknown;
  /** The error, and how to fix it. */
  message: string;
}

/** `session.answer` */
export interface AnswerParams {
  /** For the kind `question`: one answer for each of its questions, in their order. */
  answers?: Array<UserAnswer>;
  /** For the kinds `unknown_outcome`, `resume` and `repeated_call`: one of the question's options, `continue` or `abort`. */
  choice?: string;
  /** A repeated call with the same key returns the same reply. */
  idempotency_key?: string;
  /** Id of the question. */
  request_id: QuestionId;
}

/** Reply of `session.answer` and `session.feedback`: the answer is on disk. */
export interface AnswerReply {
  /** Seq of `question.resolved` or `feedback.completed`. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
}

/** `session.approve`: one answer, or a list of them in `answers`. */
export interface ApproveParams {
  /** 1 to 256 answers, each of which is accepted or refused separately. Only `idempotency_key` may be present with them. */
  answers?: Array<ApproveParams>;
  /** Allow or deny; required without `answers`. */
  decision?: Decision;
  /** The `digest` of the request that the user saw: the answer is refused if the pending request differs. */
  digest?: string;
  /** Feedback for the model. */
  feedback?: string;
  /** The grant to give with scope `session` or `project`; by default the narrowest suggestion. */
  grant?: string;
  /** A repeated call with the same key returns the same reply. */
  idempotency_key?: string;
  /** With `allow` of a request of kind `plan`: the mode that follows plan mode; by default `default`. */
  mode?: Mode;
  /** With `deny`: the client has no user to ask. The action of `[permissions.unattended] on_timeout` applies at once, and the model learns that no user decided. If the action is `pause`, the answer is refused (`path` names this field), and the request stays pending. */
  no_approver?: boolean;
  /** Id of the request; required without `answers`. */
  request_id?: PermissionId;
  /** How long an allow is valid. */
  scope?: Scope;
  /** With `deny`: the turn ends as `permission_denied`. */
  stop?: boolean;
  /** With `allow` and scope `once`: arguments that replace the model's. They are prepared and judged like the model's arguments. The history keeps the model's arguments, and the result reports the change. */
  updated_input?: unknown;
}

/** Reply of `session.approve`: accepted answers are on disk. */
export type ApproveReply = Approved | ApproveReplyResults;

/** Reply to `answers`. */
export interface ApproveReplyResults {
  /** The result of each answer, in their order. */
  results: Array<ApproveResult>;
}

/** The result of one of several answers: accepted, or refused with an `error` as in a separate reply. */
export interface ApproveResult {
  /** Present if the answer was refused. */
  error?: AnswerError;
  /** The grant that was stored, if any. */
  grant?: string;
  /** The request; absent if the answer named none. */
  request_id?: PermissionId;
  /** Seq of `permission.resolved`. */
  seq?: number;
  /** Id of the session. */
  session_id?: SessionId;
}

/** An accepted answer. */
export interface Approved {
  /** The grant that was stored, if any. */
  grant?: string;
  /** Seq of `permission.resolved`. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
}

/** `session.archive` */
export interface ArchiveParams {
  /** `true` archives the session, `false` restores it. */
  archived: boolean;
  /** A repeated call with the same key returns the reply of the first call. */
  idempotency_key?: string;
  /** Id of the session. */
  session_id: SessionId;
}

/** A file that was kept with the result. `session.blob` of the last attempt's session reads it. */
export interface Artifact {
  /** Its content; absent if the file was too large to be kept. */
  blob_id?: BlobId;
  /** Its size. */
  bytes: number;
  /** Path relative to the job's folder. */
  path: string;
}

/** A client that follows a session. */
export interface AttachedClient {
  /** Name that the client gave in `daemon.hello`, or `client-N`. */
  name: string;
  /** `observer`, `controller` or `tool`. */
  role: string;
  /** Time at which it attached. */
  since_ms: Timestamp;
}

/** A picture or a document in the result of a tool call. */
export interface Attachment {
  /** Id of the blob. Clients read it with `session.blob`, and the model with Read. */
  blob_id: BlobId;
  /** Its length in bytes. */
  bytes: number;
  /** Whether the result's text contains the same information. If so, a model that receives the attachment does not receive the text. */
  in_text?: boolean;
  /** Picture or document. */
  kind: AttachmentKind;
  /** Its media type, for example `text/plain`. */
  media_type: string;
  /** Its name for users and models, for example the file's. */
  name?: string;
}

/** Kind of an attachment for a model. */
export type AttachmentKind = "image" | "document";

/** One row of the log.  `hash` is the SHA-256, in hexadecimal, of a JSON list of the row's values, without blanks. Absent values are `null`. The order is `prev`, `id`, `at_ms`, `kind`, `session_id`, `seq`, `call_id`, `tool`, `digest`, `verdict`, `rule`, `reason`, `client`, `uid`, `pid`, `exe`, `sandbox`. */
export interface AuditEntry {
  /** Time of the decision. */
  at_ms: Timestamp;
  /** The tool call that it was about. */
  call_id?: CallId;
  /** Name of the client that decided, as the client gave it; absent if no client decided. */
  client?: string;
  /** SHA-256 of the subject, in hexadecimal: for a tool call of the JSON list of tool, input, folder and session. */
  digest?: string;
  /** The program it ran when it connected. */
  exe?: string;
  /** Hash of this row. */
  hash: string;
  /** Its number: 1, 2, 3 … without gaps. */
  id: number;
  /** Kind of the decision. */
  kind: AuditKind;
  /** Its process id when it connected. */
  pid?: number;
  /** Hash of the previous row; empty for the first. */
  prev: string;
  /** The reason, as text for users. */
  reason: string;
  /** The rule that decided, or the grant that was given. */
  rule?: string;
  /** The confinement of the command. It is `none` for other decisions: file tools, which have their own rules, and changes of rules, modes and trust. (`unknown` in rows of old versions.) */
  sandbox: string;
  /** The event of the session's journal about this decision; both were written in one transaction. */
  seq?: number;
  /** The session that it was about. */
  session_id?: SessionId;
  /** The tool, or the called method. */
  tool?: string;
  /** Its user id. */
  uid?: number;
  /** The decision: allow, deny, refused, trusted, untrusted, or the choice of the user. */
  verdict: string;
}

/** Number and hash of a row. With a copy outside the database, a client can check later whether the log still has that row. */
export interface AuditHead {
  /** Hash of the row. */
  hash: string;
  /** Number of the row. */
  id: number;
}

/** The kind of decision that a row records. */
export type AuditKind = "rule" | "permission" | "question" | "refused" | "grant" | "mode" | "folders" | "rewind" | "trust" | "job" | "rescue";

/** `permission.audit` */
export interface AuditParams {
  /** `next_cursor` of the previous page. */
  cursor?: string;
  /** Rows per page, at most 500; 100 by default. */
  limit?: number;
  /** Only decisions about this session; it may be a deleted one. */
  session_id?: SessionId;
  /** Only decisions since this time. */
  since_ms?: Timestamp;
}

/** Reply of `permission.audit` */
export interface AuditReply {
  /** Rows of this page, in order. */
  entries: Array<AuditEntry>;
  /** Cursor of the next page. */
  next_cursor?: string;
}

/** A background command as the journal records it. */
export interface BackgroundCommand {
  /** Its name in the session. */
  bash_id: BashId;
  /** The call that started it. */
  call_id: CallId;
  /** The beginning of the command. */
  command: string;
  /** Duration of the run, in milliseconds. */
  duration_ms?: number;
  /** Exit code of the shell; after a signal 128 plus its number. */
  exit_code?: number;
  /** The cause of its end, with `killed`. */
  killed_by?: KilledBy;
  /** A note about its end, for example an exceeded limit, or output that could not be kept. */
  note?: string;
  /** Its full output, as far as the daemon kept it; absent without output. */
  output_blob?: BlobRef;
  /** Total bytes of its output. */
  output_bytes?: number;
  /** Bytes of its output that the model has received. */
  read_bytes?: number;
  /** Number of the signal that ended it. */
  signal?: number;
  /** Time of its start. */
  started_at_ms: Timestamp;
  /** Its state. */
  state: BackgroundState;
  /** Ids of its processes that could not be ended. */
  survivors?: Array<number>;
}

/** How much of a background command's output the model has received. */
export interface BackgroundRead {
  /** Name of the command. */
  bash_id: BashId;
  /** Bytes of its output, from its beginning. */
  bytes: number;
}

/** State of a background command. */
export type BackgroundState = "running" | "exited" | "killed" | "timed_out" | "lost";

/** `daemon.backup` */
export interface BackupParams {
  /** A repeated call with the same key and parameters returns the first reply, within 24 hours. */
  idempotency_key?: string;
  /** Absolute path of the new file; it must not exist. */
  path: string;
}

/** Reply of `daemon.backup` */
export interface BackupReply {
  /** Its size in bytes. */
  bytes: number;
  /** Path of the new file. */
  path: string;
}

/** The part of the sandbox that blocked a command, according to the command's output. */
export type Barrier = "files" | "network";

export type BashId = string;

/** Encoding of a blob's bytes in a reply. */
export type BlobEncoding = "text" | "base64";

export type BlobId = string;

/** `session.blob` */
export interface BlobParams {
  /** Id of the blob, from an event or an item. */
  blob_id: BlobId;
  /** Bytes to read, 1 to 1,048,576; 262,144 by default. */
  limit?: number;
  /** Position of the first byte to read, from 0. */
  offset?: number;
  /** The session that the blob belongs to. */
  session_id: SessionId;
}

/** A blob with more content than an event contains. */
export interface BlobRef {
  /** Id of the blob. Clients read it with `session.blob`, and the model with Read. */
  blob_id: BlobId;
  /** Its length in bytes. */
  bytes: number;
  /** Its media type, for example `text/plain`. */
  media_type: string;
}

/** Reply of `session.blob` */
export interface BlobReply {
  /** Id of the blob. */
  blob_id: BlobId;
  /** Length of the complete blob in bytes. */
  bytes: number;
  /** The content of this part. A text ends with a complete character, so it may be up to three bytes shorter than requested. */
  content: string;
  /** Encoding of `content`. */
  encoding: BlobEncoding;
  /** Its media type, for example `text/plain` or `image/png`. */
  media_type: string;
  /** `offset` of the next part, if there is one. */
  next_offset?: number;
  /** Position of the first byte of this part, from 0. */
  offset: number;
}

/** One part of a message. */
export type Block = BlockText | BlockImage | BlockDocument | BlockThinking | BlockRedactedThinking | BlockToolCall | BlockToolResult;

/** A PDF or a text file from the user. */
export interface BlockDocument {
  /** Id of the blob. Clients read it with `session.blob`, and the model with Read. */
  blob_id: BlobId;
  /** Its length in bytes. */
  bytes: number;
  /** Its media type, for example `text/plain`. */
  media_type: string;
  /** Its file name, or the name that the user gave. */
  name?: string;
  /** Its text; of a PDF, the text for models that accept no documents. */
  text: string;
  type: "document";
  /** Whether the text differs from the file of that name, because the user has not saved it. */
  unsaved?: boolean;
}

/** A picture from the user. */
export interface BlockImage {
  /** Id of the blob. Clients read it with `session.blob`, and the model with Read. */
  blob_id: BlobId;
  /** Its length in bytes. */
  bytes: number;
  /** Its media type, for example `text/plain`. */
  media_type: string;
  /** Its file name, or the name that the user gave. */
  name?: string;
  type: "image";
}

/** Kind of a streamed block. */
export type BlockKind = BlockKindText | BlockKindThinking | BlockKindToolCall;

/** Text. */
export interface BlockKindText {
  kind: "text";
}

/** Reasoning. */
export interface BlockKindThinking {
  kind: "thinking";
}

/** A tool call. */
export interface BlockKindToolCall {
  kind: "tool_call";
  /** The tool's name. */
  tool: string;
}

/** Reasoning that the provider encrypted. */
export interface BlockRedactedThinking {
  /** Opaque data, sent back unchanged. */
  data: string;
  type: "redacted_thinking";
}

/** Plain text. */
export interface BlockText {
  /** The text itself. */
  text: string;
  type: "text";
}

/** Reasoning. The provider requires it back unchanged while the model calls tools. */
export interface BlockThinking {
  /** The provider's signature over it. */
  signature?: string;
  /** The reasoning, possibly empty. */
  text: string;
  type: "thinking";
}

/** A tool call. */
export interface BlockToolCall {
  /** The daemon's id. */
  call_id: CallId;
  /** The arguments. An object, unless the model sent another type. */
  input: unknown;
  /** Why the arguments are not valid JSON; `input` is then the raw text as a string. */
  input_error?: string;
  /** The provider's id, unique within the message; sent back with the result. */
  provider_id: string;
  /** The tool's name as the model wrote it. */
  tool: string;
  type: "tool_call";
}

/** The result of one tool call. */
export interface BlockToolResult {
  /** Pictures and documents of the result. */
  attachments?: Array<Attachment>;
  /** The daemon's id of the call. */
  call_id: CallId;
  /** The output for the model. */
  content: string;
  /** Whether the result is an error. */
  is_error: boolean;
  /** The provider's id of the call. */
  provider_id: string;
  type: "tool_result";
}

/** The sandbox probably blocked a command: a guess from the command's output. */
export interface Blocked {
  /** The part of the sandbox that blocked it. */
  by: Barrier;
  /** The path or the host that the command named, if it named one. */
  what?: string;
}

/** One of the limits in [`Budgets`]. */
export type BudgetKind = "usd_micros" | "model_calls" | "output_tokens" | "wall_time_ms" | "session_usd_micros" | "session_model_calls" | "session_output_tokens" | "session_wall_time_ms";

/** A limit of the turn or of its session is used up to 80 %. Sent once for each limit and turn. */
export interface BudgetWarningEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The limit, by its name in `budgets`. */
  budget: BudgetKind;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** Its value. */
  limit: number;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "budget.warning";
  /** The amount used so far, in the unit of the limit. */
  used: number;
}

/** Limits of one turn, and of a whole session. An absent limit does not apply. */
export interface Budgets {
  /** Model calls. */
  model_calls?: number;
  /** Output tokens. */
  output_tokens?: number;
  /** Model calls of the whole session. */
  session_model_calls?: number;
  /** Output tokens of the whole session. */
  session_output_tokens?: number;
  /** Money of the whole session, in millionths of a dollar. */
  session_usd_micros?: number;
  /** Wall time of all turns of the session together, in milliseconds. */
  session_wall_time_ms?: number;
  /** Money, in millionths of a dollar. */
  usd_micros?: number;
  /** Wall time in milliseconds. It also ends a running tool or answer, but not a wait for a user. */
  wall_time_ms?: number;
}

/** Kinds of model answers that an index caches. */
export type CacheKind = "extract" | "summary" | "keywords" | "query";

export type CallId = string;

/** Status of a tool call. */
export type CallStatus = "pending" | "awaiting_permission" | "running" | "completed" | "failed" | "denied" | "cancelled" | "unknown";

/** The tool call of an item. */
export interface CallView {
  /** Pictures and documents that the model received with the result. */
  attachments?: Array<Attachment>;
  /** Its id. */
  call_id: CallId;
  /** The arguments. */
  input: unknown;
  /** The full output, if the item's text is only its beginning and its end. */
  output_blob?: BlobRef;
  /** Status of the call. */
  status: CallStatus;
  /** The tool. */
  tool: string;
}

/** What happens to missed slots. */
export type CatchUp = "last" | "none" | "all";

/** Kind of a file's change. */
export type ChangeKind = "created" | "modified" | "removed";

/** A changed file. */
export interface ChangedFile {
  /** Lines removed; 0 for a binary file. */
  deletions: number;
  /** Lines added; 0 for a binary file. */
  insertions: number;
  /** Path relative to the top of the repository. */
  path: string;
}

/** One message of a conversation: before a query, or of a model call. */
export interface ChatMessage {
  /** Its text. */
  content: string;
  /** Its author. */
  role: Role;
}

/** Reply of `daemon.check` */
export interface CheckReply {
  /** Problems of the database as texts; empty if there are none. */
  problems: Array<string>;
}

/** An answer to a question of the kinds `unknown_outcome`, `resume` and `repeated_call`. */
export type Choice = "continue" | "abort";

/** How the chunks of entities are chosen. */
export type ChunkPick = "vector" | "weight";

/** A chunk of a document. */
export interface ChunkView {
  /** Its id. */
  chunk_id: string;
  /** Its text. */
  content: string;
  /** Last line. */
  end_line: number;
  /** First line, from 1. */
  start_line: number;
  /** The symbol or heading that it contains. */
  symbol?: string;
  /** Number of its tokens. */
  tokens: number;
}

/** The role of a client, which decides which methods it may call. */
export type ClientRole = "observer" | "controller" | "tool";

/** The system's clock was set while a turn runs. Durations and limits do not count this change, but the times of earlier and later events differ by it. */
export interface ClockChangedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** How much later the clock shows than it would without the change, in milliseconds; negative if earlier. */
  by_ms: number;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "clock.changed";
}

/** A slash command or a note was answered without a model call. It belongs to the running turn, if there is one, else to a turn of its own that ends at once. */
export interface CommandCompletedEvent {
  /** The text after the name. */
  arguments?: string;
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The command's name without the slash, or `#` for a note. */
  name: string;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** The answer for users. */
  text: string;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "command.completed";
}

/** `command.list`: exactly one of the two parameters must be present. */
export interface CommandListParams {
  /** The commands that a session in this folder has. */
  cwd?: string;
  /** The commands of this session. */
  session_id?: SessionId;
}

/** Reply of `command.list` */
export interface CommandListReply {
  /** The built-in commands first, then the others by name. */
  commands: Array<CommandView>;
  /** Files with commands that the daemon cannot use, or uses only in part. */
  diagnostics: Array<FileDiagnostic>;
}

/** A part of the expansion of a command's file. */
export type CommandPart = CommandPartText | CommandPartOutput | CommandPartFile;

/** One simple command of a command line with its verdict. */
export interface CommandPart2 {
  /** The text as written in the line. It is only the beginning if nested substitutions exceed 256 KiB in total. */
  command: string;
  /** The reason, as text for users. */
  reason: string;
  /** The rule that allows it, if any. */
  rule?: string;
  /** Allow, or ask; a deny verdict applies to the whole line. */
  verdict: VerdictKind;
  /** Its words without their quotes; expansions as written. */
  words: Array<string>;
}

/** A file that the text names here, and that follows the text. */
export interface CommandPartFile {
  kind: "file";
  /** The path, with the arguments put in. */
  path: string;
}

/** The output of a shell command takes this place. */
export interface CommandPartOutput {
  /** The command, with the arguments put in. */
  command: string;
  kind: "output";
}

/** Text as it is. */
export interface CommandPartText {
  kind: "text";
  /** The text itself. */
  text: string;
}

/** The origin of a command. */
export type CommandSource = "built_in" | "user" | "project" | "mcp" | "skill";

/** One slash command. */
export interface CommandView {
  /** Hint about its arguments, for users. */
  argument_hint?: string;
  /** Description for users. */
  description: string;
  /** Its name without the slash. */
  name: string;
  /** Path of the file that defines it, if there is one. */
  path?: string;
  /** Its origin. */
  source: CommandSource;
}

/** A stage of compaction ended. Later requests contain less; the journal keeps all events. */
export interface CompactCompletedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The change of the messages that later requests contain. Absent after an error, and for a result that was shortened when its call ended: its `tool.completed` has the short text. */
  edit?: WindowEdit;
  /** Why the stage changed nothing: a code of `error`, `empty_summary`, `no_saving`, or `aborted`. */
  error?: string;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The stage. */
  stage: CompactStage;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Tokens of the next request after the stage, estimated. */
  tokens_after: number;
  /** Tokens of the next request before the stage. */
  tokens_before: number;
  /** Why the conversation is compacted. */
  trigger: CompactTrigger;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "compact.completed";
}

/** `session.compact` */
export interface CompactParams {
  /** A repeated call with the same key returns the same reply. */
  idempotency_key?: string;
  /** Instructions about the content that the summary must keep; at most 10,000 characters. */
  instructions?: string;
  /** Id of the session. */
  session_id: SessionId;
}

/** Reply of `session.compact`: the request is on disk. */
export interface CompactReply {
  /** Seq of the event that records the request. */
  seq: number;
  /** The turn that compacts the conversation. */
  turn_id: TurnId;
}

/** A request of a user to compact the conversation. */
export interface CompactRequest {
  /** The user's instructions about the content that the summary must keep. */
  instructions?: string;
}

/** A stage of compaction, in the order in which the stages run. */
export type CompactStage = "tool_results" | "snip" | "microcompact" | "collapse" | "autocompact";

/** A stage of compaction started. Most stages complete in the same transaction; `autocompact` calls a model. */
export interface CompactStartedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** For `autocompact`: number of messages, from the oldest, that the summary replaces. */
  messages?: number;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The stage. */
  stage: CompactStage;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Tokens of the next request, as far as they are known. */
  tokens_before: number;
  /** Why the conversation is compacted. */
  trigger: CompactTrigger;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "compact.started";
}

/** Why the conversation is compacted. */
export type CompactTrigger = "auto" | "manual" | "overflow";

/** Values of `[compaction]` in the project's configuration file. */
export interface CompactionOverrides {
  /** Whether a model summarises the conversation when the other stages do not suffice. */
  auto?: boolean;
  /** Whether old turns are shortened. */
  collapse?: boolean;
  /** Tokens of the newest messages that stay as they are. */
  keep_recent_tokens?: number;
  /** Number of failed summaries in a row after which the session requests no summary by itself. */
  max_failures?: number;
  /** Whether old tool results are cleared. */
  microcompact?: boolean;
  /** Whether results are cleared that later calls made useless. */
  snip?: boolean;
  /** Part of the usable window, in percent, from which on the conversation is compacted. */
  threshold_percent?: number;
  /** Whether long tool results are shortened. */
  tool_results?: boolean;
}

/** How many jobs with the same key run at a time. */
export interface Concurrency {
  /** Any text. */
  key: string;
  /** At least 1. */
  limit?: number;
}

/** `daemon.config` */
export interface ConfigParams {
  /** A folder, absolute. The reply then includes the values of its project's configuration file. */
  cwd?: string;
}

/** The daemon reloaded its configuration, or files that extend the session changed. Sessions with clients or a running turn receive this event; running work keeps its settings. */
export interface ConfigReloadedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Keys that changed and apply from now on, for example `retry.attempts`. For files: `commands`, `skills`, `agents`, `instructions`. */
  changed: Array<string>;
  /** Paths of the files that changed, as far as they are known, or of the configuration that was read again. */
  files?: Array<string>;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** Keys that changed and apply only after a restart of the daemon. */
  needs_restart: Array<string>;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "config.reloaded";
}

/** Reply of `daemon.config` */
export interface ConfigReply {
  /** With `cwd`: the project's configuration file, if there is one. */
  project?: ProjectFileState;
  /** Every key. Rules have one entry for each file that contains some. */
  values: Array<ConfigValue>;
}

/** A value of the configuration. */
export interface ConfigValue {
  /** Its dotted name. */
  key: string;
  /** The line in the file, from 1. */
  line?: number;
  /** `default`, `flag`, `environment (NAME)`, `socket activation`, or the path of the file that sets it. */
  origin: string;
  /** The value in force; `null` if it is not set. A value that may be a secret is replaced by `***`. */
  value: unknown;
}

/** The confinement of a command. */
export interface Confinement {
  /** 3 bubblewrap, 2 Landlock, 1 rlimits only, 0 off. */
  level: number;
  /** Whether the command has network access. */
  network: boolean;
  /** Whether the command runs outside its usual sandbox, because a user allowed it. */
  unsandboxed?: boolean;
}

/** One part of the context. */
export interface ContextPart {
  /** Name of the part. */
  name: PartName;
  /** Its tokens, estimated. */
  tokens: number;
}

/** The use of the context window of a session's model. */
export interface ContextView {
  /** How often a summary replaced the conversation. */
  compactions: number;
  /** Whether `used` is an estimate. Otherwise the provider reported the length of the newest request, and only later additions are estimated. */
  estimated: boolean;
  /** The parts of `used`. If the window is known, the part `free` is the unused rest of it. */
  parts: Array<ContextPart>;
  /** Tokens that are reserved for the answer. */
  reserved_output: number;
  /** Tokens of the next request, as far as they are known. */
  used: number;
  /** Tokens that fit in a request and its answer; `null` if unknown. */
  window?: number;
}

/** `session.create`. An option that is absent has the value of the configuration, for example `[models] main`, `[session] mode` and `[session] thinking`. */
export interface CreateParams {
  /** Optimisations that are turned off; by default `[session.ablation]`. Fixed when the session is created. */
  ablation?: Ablation;
  /** The complete list of additional existing folders of the workspace, absolute. Those of a session apply at once; their AGENTS.md is read when the next turn starts. */
  additional_dirs?: Array<string>;
  /** Name of the agent as which the session works (`agent.list`). The agent's tools and model apply unless others are given. Fixed when the session is created. */
  agent?: string;
  /** Appended to the system prompt; empty for nothing. */
  append_system_prompt?: string;
  /** Whether the session is unattended. */
  background?: boolean;
  /** Whether the model answers every request twice and a client chooses one answer (`feedback.request`); by default `[session] binary_feedback`. Not for unattended sessions. Fixed when the session is created. */
  binary_feedback?: boolean;
  /** Limits of a turn. In a session they replace all previous limits. */
  budgets?: Budgets;
  /** Whether the session only plans and gives its work to sub-agents, which share a scratch folder with it. It gets no tool that changes anything outside that folder. Not together with `agent` or `tools`. Fixed when the session is created. */
  coordinator?: boolean;
  /** An existing folder, absolute. */
  cwd: string;
  /** Variables of the environment of its commands: `PATH`, virtual environments, locale and others. Refused are names that look like secrets or change which programs run, unless `[tools] env` lists them. Absent: those that the daemon has. Events and exports do not contain them; `session.get` shows the names. */
  env?: SessionEnvironment;
  /** `PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models] fallback`. Empty for that default. */
  fallback_model?: string;
  /** A repeated call with the same key returns the reply of the first call. */
  idempotency_key?: string;
  /** Messages with which the conversation begins: at most 1,000, of at most 4 MiB together. */
  initial_items?: Array<InitialItem>;
  /** MCP servers for only this session and its sub-agents, by name, each with the keys of `[mcp.NAME]`. They override servers of the same names from other sources. Events and exports do not contain them. */
  mcp_servers?: Record<string, unknown>;
  /** Labels that the provider receives with each model request: at most 16, with keys of at most 64 and values of at most 512 bytes. Anthropic accepts only `user_id`. */
  metadata?: Record<string, string>;
  /** Approval mode. A session's applies from the next verdict on, also in a running turn; pending requests that it allows are settled. */
  mode?: Mode;
  /** `PROVIDER/MODEL`. A parameter may also be the name of a pointer of `[models]`, for example `reasoning`. The system prompt names the model, so another one begins a new prompt cache. */
  model?: string;
  /** Handling of a turn that a restart of the daemon interrupts; by default `[daemon] on_restart`. */
  on_restart?: OnRestart;
  /** JSON Schema of the result: `turn.completed.result.structured` is a value that satisfies it. `{}` for none. References to other documents are refused. */
  output_schema?: unknown;
  /** Whether tools run one at a time and every call needs a permission request. */
  safe_mode?: boolean;
  /** An id that the client chooses: the same id with the same parameters returns the same session. */
  session_id?: SessionId;
  /** Texts at which the model stops its answer: at most 4, of at most 256 bytes each. */
  stop?: Array<string>;
  /** Replaces the default system prompt; empty for the default. Another system prompt begins a new prompt cache. */
  system_prompt?: string;
  /** Temperature, from 0, which nearly always selects the most likely token, to 2. A running turn keeps its setting. */
  temperature?: Temperature;
  /** How much the model may think. A running turn keeps its setting. */
  thinking?: Thinking;
  /** Short name; by default the first words of the first prompt. */
  title?: string;
  /** The tools on offer; `{}` for all. */
  tools?: ToolChoice;
  /** The probability mass of the most likely tokens to choose from, from 0 to 1. Vendors advise to set only one of `temperature` and `top_p`. */
  top_p?: TopP;
  /** Makes a git worktree of the folder's repository on a branch of its own, in which the session works: `true`, or an object with `base`, `branch`, `keep`, `include` and `commit`. */
  worktree?: WorktreeChoice;
}

/** The change of the daemon that a notification reports. */
export type DaemonChange = "daemon.restarting";

/** A notification `daemon.event` of `daemon.subscribe`. */
export type DaemonEvent = SessionNotification | JobNotification | ScheduleNotification | DaemonNotification;

/** The parameters of the notification `daemon.event`. */
export interface DaemonEventNotification {
  result: DaemonEvent;
  subscription: SubscriptionId;
}

/** The planned stop of the daemon. */
export interface DaemonNotification {
  /** What happens. */
  kind: DaemonChange;
  /** Why it happens. */
  reason: RestartReason;
}

/** What `daemon.subscribe` reports changes of. */
export type DaemonSubject = "session" | "job" | "schedule" | "daemon";

/** `daemon.subscribe` */
export interface DaemonSubscribeParams {
  /** Only notifications about these; by default all of them. */
  about?: Array<DaemonSubject>;
}

/** A user's answer to a permission request. */
export type Decision = "allow" | "deny";

/** A notification about a job. */
export interface Delivery {
  /** Why the last try failed, without addresses and keys. */
  error?: string;
  /** The state that it reports. */
  job_state: JobState;
  /** Time of the next try. */
  next_try_ms?: Timestamp;
  /** How far it is. */
  status: DeliveryStatus;
  /** The table `[jobs.notify.NAME]`. */
  target: string;
  /** Number of tries so far. */
  tries: number;
  /** Id of the message, the same for all tries. */
  webhook_id: string;
}

/** How far a notification is. */
export type DeliveryStatus = "pending" | "delivered" | "failed";

/** A refused call. */
export interface Denial {
  /** The call. */
  call_id: CallId;
  /** Its arguments. */
  input: unknown;
  /** The tool. */
  tool: string;
}

/** Why a queued turn left the queue without a start. */
export type DequeueReason = "removed" | "cleared" | "aborted";

/** `session.diff` */
export interface DiffParams {
  /** `next_cursor` of the previous page. */
  cursor?: string;
  /** Files per page, 1 to 500, 100 by default; fewer if their diffs are long. */
  limit?: number;
  /** Id of the session. */
  session_id: SessionId;
}

/** Reply of `session.diff`: the files sorted by path. */
export interface DiffReply {
  /** Files that the session changed, except those that have their original content again. */
  files: Array<FileDiff>;
  /** Cursor of the next page, if there is one. */
  next_cursor?: string;
}

/** A reply without content. */
export type Done = Record<string, unknown>;

/** A duration with its unit, like `90s`, `10m` or `2h`. */
export type Duration = string;

/** `session.kill` and `session.delete` */
export interface EndParams {
  /** A repeated call with the same key returns the reply of the first call. */
  idempotency_key?: string;
  /** Id of the session. */
  session_id: SessionId;
}

/** How entities are ordered after the search. */
export type EntityOrder = "degree" | "similarity";

/** One event as it is stored in the journal and sent on the wire. */
export type Envelope = SessionCreatedEvent | SessionUpdatedEvent | SessionStatusEvent | SessionPromptBuiltEvent | McpStatusEvent | McpToolsEvent | SessionAttachedEvent | SessionDetachedEvent | ConfigReloadedEvent | ClockChangedEvent | SessionEndedEvent | SessionForkedEvent | SessionRewoundEvent | SessionArchivedEvent | WorkspaceTrustRequiredEvent | SessionClearedEvent | CommandCompletedEvent | ReminderAddedEvent | TurnOutputRejectedEvent | TurnQueuedEvent | TurnDequeuedEvent | TurnQueueUpdatedEvent | TurnQueueMovedEvent | TurnStartedEvent | TurnPromptBuiltEvent | TurnPhaseEvent | TurnParkedEvent | TurnResumedEvent | TurnSteeredEvent | TurnAbortingEvent | TurnCompletedEvent | MessageStartedEvent | MessageBlockStartedEvent | MessageTextDeltaEvent | MessageThinkingDeltaEvent | MessageToolInputDeltaEvent | MessageBlockCompletedEvent | MessageCompletedEvent | FeedbackRequestEvent | FeedbackCompletedEvent | MessageTombstoneEvent | HistoryRepairedEvent | CompactStartedEvent | CompactCompletedEvent | UsageEvent | HelperStartedEvent | HelperCompletedEvent | ToolRequestedEvent | ToolStatusEvent | ToolStartedEvent | ToolBlockedEvent | ToolProgressEvent | ToolCompletedEvent | ToolSummaryEvent | ToolBackgroundEvent | FileCheckpointedEvent | FileChangedEvent | TodoUpdatedEvent | PermissionRequestedEvent | PermissionResolvedEvent | PermissionExpiredEvent | SubagentStartedEvent | SubagentCompletedEvent | SessionInheritedEvent | HookCompletedEvent | HooksStatusEvent | PermissionRuleAddedEvent | PermissionRuleRemovedEvent | QuestionRequestedEvent | QuestionResolvedEvent | RetryEvent | HeartbeatEvent | StreamIdleEvent | BudgetWarningEvent | ModelSwitchedEvent | MediaWithheldEvent | JobEventEvent | NoticeEvent | ErrorEvent;

/** `data` of an error. Match on `kind`: several kinds share a number. Some errors have further members. */
export interface ErrorData {
  /** The stable code. */
  kind: "parse_error" | "invalid_request" | "method_not_found" | "invalid_params" | "unsupported" | "internal" | "not_authorised" | "overloaded" | "not_found" | "cancelled" | "conflict" | "stale_precondition" | "busy" | "budget" | "not_pending" | "cursor_ahead" | "unsupported_version" | "shutting_down" | "storage_read_only";
  /** The parameter that is wrong, for example `answers[0].decision`. */
  path?: string;
  /** Whether the same call may succeed later. */
  retryable: boolean;
}

/** Something failed. */
export interface ErrorEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Causes from the outermost to the innermost, where known; secrets removed. */
  causes?: Array<string>;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** A stable code. */
  kind: string;
  /** The text, with secrets removed. */
  message: string;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "error";
}

/** `session.events` */
export interface EventsParams {
  /** Only events after this seq. */
  after_seq?: number;
  /** `next_cursor` of the previous page; overrides `after_seq`. */
  cursor?: string;
  /** Filter of the events; by default all of them. */
  include?: Include;
  /** Events per page, 1 to 1,000, 500 by default; fewer if they are long. */
  limit?: number;
  /** Id of the session. */
  session_id: SessionId;
}

/** Reply of `session.events` */
export interface EventsReply {
  /** Events of this page, in order. */
  events: Array<Envelope>;
  /** The journal's newest seq. */
  last_seq: number;
  /** Cursor of the next page, if there is one. */
  next_cursor?: string;
}

/** A call to judge and the values that its verdict depends on: the parameters of `permission.explain`. */
export interface ExplainParams {
  /** Allow rules, for example `Bash(git status:*)`. */
  allow?: Array<string>;
  /** Ask rules. */
  ask?: Array<string>;
  /** Deny rules. */
  deny?: Array<string>;
  /** The user's home folder, absolute; that of the daemon's user by default. */
  home?: string;
  /** The call's input: `{command}`, `{file_path}`, for LS `{path}`. */
  input: unknown;
  /** The session's mode; `default` by default. */
  mode?: Mode;
  /** Whether read-only commands run without a rule; true by default. */
  safe_commands?: boolean;
  /** Bash, Read, Write, Edit, Delete or LS. */
  tool: string;
  /** The folder of the session that would call, absolute. It need not exist. */
  workspace: string;
}

/** Reply of `permission.explain`. */
export interface ExplainReply {
  /** For commands: the verdict on each simple command in the line. */
  parts?: Array<CommandPart2>;
  /** The reason, as text for users. */
  reason: string;
  /** The rule that decides, as written, if any. */
  rule?: string;
  /** Grants that would allow this call, narrowest first. */
  suggestions?: Array<string>;
  /** Allow, ask or deny. */
  verdict: VerdictKind;
}

/** The form of an export. */
export type ExportFormat = "jsonl" | "markdown" | "html";

/** `session.export` */
export interface ExportParams {
  /** `next_cursor` of the previous page. */
  cursor?: string;
  /** The form of the export. */
  format: ExportFormat;
  /** Filter of the events, as in `session.events`; by default all of them. */
  include?: Include;
  /** Id of the session. */
  session_id: SessionId;
}

/** Reply of `session.export`: the pages in their order form the export. */
export interface ExportReply {
  /** The text of this page. */
  data: string;
  /** Cursor of the next page, if there is one. */
  next_cursor?: string;
}

/** A message about a job whose last try failed. */
export interface FailedDelivery {
  /** The message. */
  delivery: Delivery;
  /** The job. */
  job_id: JobId;
}

/** How one of two answers was chosen. */
export type FeedbackBy = "answer" | "equal" | "single" | "abort";

/** The answer `item_id` was chosen. Without an item, the turn was aborted before the choice. Both candidates get a `message.tombstone`; then `message.completed` of a new item with the chosen content follows. */
export interface FeedbackCompletedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** How it was chosen. */
  by: FeedbackBy;
  /** Tokens of the chosen answer and of its request. */
  context_tokens?: number;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** The request; absent if no client was asked. */
  request_id?: QuestionId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "feedback.completed";
}

/** `session.feedback` */
export interface FeedbackParams {
  /** A repeated call with the same key returns the same reply. */
  idempotency_key?: string;
  /** The chosen answer: one of its `item_ids`. */
  item_id: ItemId;
  /** Id of the `feedback.request`. */
  request_id: QuestionId;
}

/** The model answered twice, and a client chooses the answer with which the turn continues. */
export interface FeedbackRequestEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The answers, in the order in which they were written. */
  item_ids: Array<ItemId>;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its id, as a parameter of `session.feedback`; a restart does not change it. */
  request_id: QuestionId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "feedback.request";
}

/** The action of a rewind for a file. */
export type FileAction = "restored" | "deleted" | "unchanged";

/** A tool changed a file. */
export interface FileChangedEvent {
  /** Lines added. */
  added: number;
  /** Time of the event. */
  at_ms: Timestamp;
  /** Id of the call. */
  call_id: CallId;
  /** Unified diff, possibly cut (then it ends with a note). */
  diff: string;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Absolute path. */
  path: string;
  /** Lines removed. */
  removed: number;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** SHA-256 of the content after the change, in hexadecimal; absent for a removed file. */
  sha256_after?: string;
  /** SHA-256 of the content before the change, in hexadecimal; absent for a new file. */
  sha256_before?: string;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "file.changed";
}

/** A file before a tool call changes it. */
export interface FileCheckpoint {
  /** Its content. If it is absent although the file exists, it was not kept, because it is too large. */
  content?: BlobRef;
  /** Whether the file exists. */
  exists: boolean;
  /** Permission bits of the file. */
  mode?: number;
  /** Absolute path. */
  path: string;
  /** SHA-256 of its content, in hexadecimal; absent if there is no file, or if it could not be read. */
  sha256?: string;
}

/** The content of files was stored before a tool call changes them, so that a rewind can restore it. */
export interface FileCheckpointedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Id of the call. */
  call_id: CallId;
  /** The files that the call may change. */
  files: Array<FileCheckpoint>;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "file.checkpointed";
}

/** A file that the daemon cannot use, or uses only in part. */
export interface FileDiagnostic {
  /** The problem and how to correct it. */
  message: string;
  /** The file or folder. */
  path: string;
}

/** All changes of a session in one file. */
export interface FileDiff {
  /** Lines added. */
  added: number;
  /** Kind of the change. */
  change: ChangeKind;
  /** Number of changes. */
  changes: number;
  /** Unified diff from before the first change to after the last. */
  diff: string;
  /** Whether `diff` is the exact total change. If not, another program changed the file in between, or a diff was too long to be kept. `diff` then contains the known changes, one after the other. */
  exact: boolean;
  /** Absolute path. */
  path: string;
  /** Lines removed. */
  removed: number;
}

/** A version of a file. */
export interface FileVersion {
  /** SHA-256 of the content in hexadecimal; empty if the file does not exist. */
  digest: string;
  /** Absolute path. */
  path: string;
}

/** `session.fork` */
export interface ForkParams {
  /** A repeated call with the same key returns the session of the first call. */
  idempotency_key?: string;
  /** The last item to copy; by default the whole conversation is copied. The item must be complete. */
  item_id?: ItemId;
  /** The session to copy. */
  session_id: SessionId;
  /** Title of the new session; by default the old title with `(fork)`. */
  title?: string;
}

/** The session and the item with which a forked session's history begins. */
export interface ForkedFrom {
  /** The last item that was copied; absent if there was none. */
  item_id?: ItemId;
  /** The session that was forked. It may be deleted since. */
  session_id: SessionId;
}

/** A chunk in a result. */
export interface FoundChunk {
  /** Its id. */
  chunk_id: string;
  /** Its text. */
  content: string;
  /** Last line. */
  end_line: number;
  /** Path in the workspace; empty if the document has none. */
  path: string;
  /** `reference_id` of its file or document in `references`. */
  reference_id: string;
  /** Score of the reranker, if there is one. */
  rerank_score?: number;
  /** First line, from 1. */
  start_line: number;
  /** The symbol or heading that it contains. */
  symbol?: string;
}

/** Numbers of found parts before the limits were applied. */
export interface FoundCounts {
  /** Chunks. */
  chunks: number;
  /** Entities. */
  entities: number;
  /** Relations. */
  relations: number;
}

/** An entity in a result. */
export interface FoundEntity {
  /** Its description. */
  description: string;
  /** Its name. */
  name: string;
  /** Number of its relations. */
  rank: number;
  /** Its type. */
  type: string;
}

/** A relation in a result. */
export interface FoundRelation {
  /** Its description. */
  description: string;
  /** Its keywords. */
  keywords: string;
  /** Sum of the numbers of relations of both entities. */
  rank: number;
  /** Name of the entity at one end. */
  source: string;
  /** Name of the entity at the other end. */
  target: string;
  /** Its strength; a higher number means a stronger relation. */
  weight: number;
}

/** What a job or session left in its branch. */
export interface GitResult {
  /** The commit that it started from. */
  base: string;
  /** The branch of the worktree. */
  branch: string;
  /** The newest commit of the branch; absent if it has none of its own. */
  commit?: string;
  /** Lines removed. */
  deletions: number;
  /** Number of changed files, from `base` to the branch. */
  files_changed: number;
  /** Lines added. */
  insertions: number;
  /** Uncommitted changes of the main folder, which the worktree did not take over. */
  uncommitted_in_base?: number;
}

/** The format of a graph. */
export type GraphFormatParam = "json" | "mermaid" | "dot" | "graphml" | "html";

/** A node of a graph. */
export interface GraphNode {
  /** Number of its relations in the whole graph. */
  degree: number;
  /** Its description. */
  description: string;
  /** Its name. */
  name: string;
  /** Its type. */
  type: string;
}

/** The daemon still waits before another attempt. Sent every `[retry] heartbeat` during a long wait. */
export interface HeartbeatEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Number of the last failed attempt. */
  attempt: number;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** Maximum number of attempts; 0 means no maximum. Absent in old journals. */
  max?: number;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Reason of the wait, as in the previous `retry`. */
  reason: string;
  /** Remaining wait, in milliseconds. */
  remaining_ms: number;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "heartbeat";
}

/** `daemon.hello` */
export interface HelloParams {
  /** The client's name, shown to other clients. */
  name?: string;
  /** The protocol version of the client; absent for any. */
  protocol_version?: number;
  /** The requested role: `observer` or `controller`. */
  role?: ClientRole;
}

/** Reply of `daemon.hello` */
export interface HelloReply {
  /** Version of the format of events. It rises when the meaning of an existing kind or field changes. */
  event_version?: number;
  /** The name that other clients see. */
  name: string;
  /** The protocol version of the daemon. */
  protocol_version: number;
  /** The role of the client. */
  role: ClientRole;
  /** The daemon's own version. */
  version: string;
}

/** A helper call ended. Its usage, if any, was booked before by `usage`. */
export interface HelperCompletedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The failure as text for users. */
  detail?: string;
  /** Duration of the call in milliseconds, if its end was recorded. */
  duration_ms?: number;
  /** Stable code of the failure: a code of `error`, or `unusable` (an answer that is no title), or `stopped` (with the daemon or the session). Absent after a success. */
  fault?: string;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** `PROVIDER/MODEL` of the call. */
  model: string;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Purpose of the call. */
  purpose: Purpose;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "helper.completed";
}

/** A helper call started in the background. No turn waits for it. If it fails, it is not retried. */
export interface HelperStartedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** Maximum usage of the call. It is booked if the end of the call is not recorded. */
  max_usage: Usage;
  /** `PROVIDER/MODEL` of the call. */
  model: string;
  /** Known limits and price of the model. */
  model_snapshot: ModelSnapshot;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Purpose of the call. */
  purpose: Purpose;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "helper.started";
}

/** The history was invalid for providers and was repaired when the session was loaded. */
export interface HistoryRepairedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The repairs, as text for users. */
  changes: Array<string>;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** Number of messages at the beginning that are unchanged. */
  kept_messages: number;
  /** Replacements of all messages after them. */
  messages: Array<Message>;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "history.repaired";
}

/** A hook ran. */
export interface HookCompletedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The call that it was about, if any. */
  call_id?: CallId;
  /** The command of the hook. */
  command: string;
  /** Its decision, if it made one. */
  decision?: HookDecision;
  /** Duration in milliseconds. */
  duration_ms: number;
  /** Why it gave no result. */
  error?: string;
  /** The event. */
  event: HookEvent;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** Its text for the user. */
  message?: string;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** The reason that it gave. */
  reason?: string;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "hook.completed";
}

/** The decision of a hook. */
export type HookDecision = "allow" | "ask" | "deny";

/** The events on which hooks run. */
export type HookEvent = "pre_tool_use" | "post_tool_use" | "user_prompt_submit" | "session_start" | "stop" | "pre_compact" | "notification" | "subagent_stop";

/** The failure of a hook. */
export interface HookFailure {
  /** The command of the hook. */
  command: string;
  /** Why it failed. */
  error: string;
  /** The event. */
  event: HookEvent;
}

/** What hooks left behind in the session has changed. */
export interface HooksStatusEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Texts of hooks for the model, which the next input contains. */
  context?: Array<string>;
  /** The hook that failed last; absent if it has run well since. */
  failure?: HookFailure;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** The entries and files that cannot be used, each with file, line and reason. */
  problems?: Array<string>;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "hooks.status";
}

/** `session.import` */
export interface ImportParams {
  /** A part of an export as JSON Lines. All parts together have at most 64 MiB. */
  data: string;
  /** With `last`: a repeated call with the same key returns the session of the first call. */
  idempotency_key?: string;
  /** Id of the import that this part continues; absent for the first part. */
  import_id?: string;
  /** Whether this is the last part. The last part creates the session, completely or not at all. */
  last: boolean;
}

/** Reply of `session.import` */
export interface ImportReply {
  /** Without `last`: the id of the import, for its next part. */
  import_id?: string;
  /** With `last`: the new session. */
  session?: SessionView;
}

/** Filter of a session's events. */
export interface Include {
  /** Filter of the models' thinking. */
  thinking?: ThinkingShown;
}

/** Limits of an index job. */
export type IndexBudget = number | IndexBudgetTokens;

/** Limits by name; at least one. */
export interface IndexBudgetTokens {
  /** Maximum tokens of the model, input and output together. */
  tokens?: number;
  /** Maximum cost in US dollars. */
  usd?: number;
}

/** A document of an index. */
export interface IndexDocument {
  /** Size of its text in bytes. */
  bytes: number;
  /** Number of its chunks. */
  chunks: number;
  /** Why it failed. */
  error?: string;
  /** Its id. */
  id: string;
  /** Its language, if known. */
  language?: string;
  /** The level at which it was processed: `lexical`, `structure` or `semantic`. */
  level: string;
  /** Its path; absent for an inserted document without one. */
  path?: string;
  /** `file` or `inserted`. */
  source: string;
  /** `pending`, `processing`, `processed` or `failed`. */
  status: string;
  /** Time of the last change of its state, in milliseconds since the Unix epoch. */
  updated_at_ms: number;
}

/** The estimated work of an index job. */
export interface IndexEstimate {
  /** Size of the files to read, in bytes. */
  bytes: number;
  /** Approximate number of chunks of these files. */
  chunks: number;
  /** Cost of these tokens in millionths of a dollar: 0 without a model, `null` if the price is unknown. */
  cost_usd_micros?: number;
  /** Number of files to read. */
  files: number;
  /** Input tokens of these calls. */
  input_tokens: number;
  /** Number of model calls at level `semantic`, without those for summaries. */
  model_calls: number;
  /** Output tokens of these calls. */
  output_tokens: number;
  /** Number of documents whose file no longer exists. */
  removed: number;
  /** Sum of the input and output tokens. */
  tokens: number;
  /** Number of documents that have not changed. */
  unchanged: number;
}

/** The newest job of an index. */
export interface IndexJobView {
  /** Why it failed. */
  error?: string;
  /** Its id. */
  job_id: string;
  /** Its progress. */
  progress?: IndexProgress;
  /** `running`, `done`, `failed` or `cancelled`. */
  state: string;
  /** Its result. */
  summary?: IndexSummary;
}

/** How much of a workspace an index holds. Each level includes the ones before it. */
export type IndexLevel = "lexical" | "structure" | "semantic";

/** Progress of an index job. */
export interface IndexProgress {
  /** Cost of these tokens in millionths of a dollar. */
  cost_usd_micros: number;
  /** Number of finished units of the stage. */
  done: number;
  /** The stage. */
  stage: IndexStage;
  /** Tokens that the job has used. */
  tokens: number;
  /** Number of all units of the stage; 0 while unknown. */
  total: number;
}

/** The current stage of an index job. */
export type IndexStage = "scanning" | "chunking" | "embedding" | "extracting" | "merging" | "summarizing";

/** The state of an index. */
export type IndexState = "none" | "indexing" | "ready" | "failed";

/** State and size of an index: the reply of `knowledge.status`. */
export interface IndexStatus {
  /** Number of chunks. */
  chunks: number;
  /** Number of documents. */
  documents: number;
  /** Number of entities. */
  entities: number;
  /** Number of documents that failed. */
  failed_documents: number;
  /** A number that rises with each change of the index. */
  generation: number;
  /** The newest job since the daemon started. */
  job?: IndexJobView;
  /** Number of files that were read and left out, because they are no text or hold a secret. */
  left_out_files?: number;
  /** Folders that the last job over the whole workspace left out, because they hold dependencies or results of builds, at most 100. A job whose `paths` name one of them reads it. */
  left_out_folders?: Array<string>;
  /** The level of the index. */
  level?: IndexLevel;
  /** A notice for the user, for example about data that was lost with a damaged file. The next `knowledge.index` removes the notice. */
  notice?: string;
  /** Number of relations. */
  relations: number;
  /** State of the index. */
  state: IndexState;
  /** Whether the daemon watches its files and starts a job when one changes. */
  watched?: boolean;
}

/** The result of an index job. */
export interface IndexSummary {
  /** Number of documents that failed. */
  failed: number;
  /** Number of documents that were read. */
  indexed: number;
  /** Number of documents with code that are searched as plain text only, because it is minified or took too long. */
  plain?: number;
  /** Number of documents that were removed, because their file no longer exists or is no longer allowed. */
  removed: number;
  /** Number of files that were left out: binary, too large, or secret. */
  skipped: number;
  /** Number of documents that had not changed. */
  unchanged: number;
  /** A warning about a part that failed and was left out, for example the vectors. */
  warning?: string;
}

/** A message with which the conversation of a new session begins. */
export interface InitialItem {
  /** Text, or a list of text blocks; must not be empty. */
  content: SubmitInput;
  /** Its author. */
  role: Role;
}

/** One part of a submitted input. */
export type InputBlock = InputBlockText | InputBlockImage | InputBlockDocument;

/** A PDF or a text file. */
export interface InputBlockDocument {
  /** Id of the blob. Clients read it with `session.blob`, and the model with Read. */
  blob_id: BlobId;
  /** Its length in bytes. */
  bytes: number;
  /** Its media type, for example `text/plain`. */
  media_type: string;
  /** Its file name, or the name that the user gave. */
  name?: string;
  /** Its text; of a PDF, the text for models that accept no documents. */
  text: string;
  type: "document";
  /** Whether the text differs from the file of that name, because the user has not saved it. */
  unsaved?: boolean;
}

/** A picture. */
export interface InputBlockImage {
  /** Id of the blob. Clients read it with `session.blob`, and the model with Read. */
  blob_id: BlobId;
  /** Its length in bytes. */
  bytes: number;
  /** Its media type, for example `text/plain`. */
  media_type: string;
  /** Its file name, or the name that the user gave. */
  name?: string;
  type: "image";
}

/** Text. */
export interface InputBlockText {
  /** The text itself. */
  text: string;
  type: "text";
}

/** The result of inserting one document. */
export interface InsertOutcome {
  /** Its id. */
  id: string;
  /** Whether the index already contained the same document. */
  unchanged: boolean;
}

/** A text for the index that is not a file. */
export interface InsertedDocument {
  /** An id that the client chooses. If it is absent, the daemon derives one from the text. */
  id?: string;
  /** A name with which results refer to the document. */
  path?: string;
  /** The text. */
  text: string;
}

/** One entry of the conversation. */
export interface Item {
  /** Tool calls: details. */
  call?: CallView;
  /** Inputs of users: the slash command whose expansion is the text. */
  command?: SlashCommand;
  /** Messages: the blocks. */
  content?: Array<Block>;
  /** Seq of the event that opened it. */
  first_seq: number;
  /** Its id. */
  item_id: ItemId;
  /** Kind of the item. */
  kind: ItemKind;
  /** Seq of its newest permanent event. */
  last_seq: number;
  /** Messages: the author. */
  role?: Role;
  /** Status of the item. */
  status: ItemStatus;
  /** Messages: all the text. Tool calls: the output for the model. */
  text?: string;
  /** In replies: truncated values of this item. Inside an event, the event has the list. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn it belongs to. */
  turn_id: TurnId;
}

export type ItemId = string;

/** Kinds of items. */
export type ItemKind = "user_message" | "assistant_message" | "tool_call" | "plan" | "reasoning" | "error" | "notice" | "compaction";

/** Status of an item. */
export type ItemStatus = "running" | "completed" | "interrupted";

/** `session.items` */
export interface ItemsParams {
  /** `next_cursor` of the previous page. */
  cursor?: string;
  /** Only items of these kinds; by default all of them. */
  kinds?: Array<ItemKind>;
  /** Items per page, 1 to 500, 100 by default; fewer if they are long. */
  limit?: number;
  /** Whether the newest item comes first. A cursor continues in the order of the call that returned it. */
  newest_first?: boolean;
  /** Id of the session. */
  session_id: SessionId;
}

/** Reply of `session.items`: oldest first, unless `newest_first` was given. */
export interface ItemsReply {
  /** Items of this page, in order. */
  items: Array<Item>;
  /** Cursor of the next page, if there is one. */
  next_cursor?: string;
}

/** A job as `job.get` and `job.list` return it. */
export interface Job {
  /** What a running attempt does now, in one line. */
  activity?: string;
  /** Number of its newest attempt; 0 before the first. */
  attempt: number;
  /** How many attempts it may have. */
  attempts_max: number;
  /** Cost of all attempts, in millionths of a dollar; `null` if a price is unknown. */
  cost_usd_micros?: number;
  /** Time of its creation. */
  created_at_ms: Timestamp;
  /** Its folder. */
  cwd: string;
  /** The notifications about it. */
  deliveries?: Array<Delivery>;
  /** Time of its final state. */
  ended_at_ms?: Timestamp;
  /** Why it failed. */
  error?: JobError;
  /** Its id. */
  job_id: JobId;
  /** Its labels. */
  labels?: Record<string, string>;
  /** Earlier slots of the schedule that were missed and got no job. */
  missed_slots?: number;
  /** The daemon that works on it, in a fleet. */
  node?: string;
  /** From -100 to 100. */
  priority: number;
  /** Why it does not start yet. With a living attempt only `rate_limited`: the attempt waits for its provider. */
  reason?: QueueReason;
  /** The result of its last turn, with the attempts. Lists omit its text. */
  result?: JobResult;
  /** Time at which it is due; for a job that retries, of the next attempt. */
  run_at_ms: Timestamp;
  /** The schedule that created it. */
  schedule_id?: ScheduleId;
  /** Number of its newest event. */
  seq: number;
  /** The session of the newest attempt. */
  session_id?: SessionId;
  /** The slot of the schedule. */
  slot_ms?: Timestamp;
  /** Start of the first attempt. */
  started_at_ms?: Timestamp;
  /** Its state. */
  state: JobState;
  /** The template that it was made from. */
  template?: string;
  /** Short name. */
  title: string;
  /** Tokens of all attempts. */
  usage: Usage;
  /** What a waiting job waits for. */
  waiting_for?: WaitingFor;
}

/** One session that worked on a job. */
export interface JobAttempt {
  /** Its number, from 1. */
  attempt: number;
  /** Time of its end. */
  ended_at_ms?: Timestamp;
  /** The daemon that worked on it, in a fleet. */
  node?: string;
  /** Its session. */
  session_id: SessionId;
  /** Time of its start. */
  started_at_ms: Timestamp;
  /** How its last turn ended. */
  subtype?: Subtype;
}

/** `job.cancel` */
export interface JobCancelParams {
  /** A repeated call with the same key returns the reply of the first call. */
  idempotency_key?: string;
  /** Id of the job. */
  job_id: JobId;
  /** Why, for the log. */
  reason?: string;
}

/** Reply of `job.cancel`: the work has stopped. */
export interface JobCancelReply {
  /** The job. */
  job: Job;
  /** Whether an attempt was stopped. */
  stopped: boolean;
  /** Ids of processes that could not be killed. */
  survivors: Array<number>;
}

/** How many jobs are in which state. */
export interface JobCounts {
  /** Jobs that reached a final state since the start of the daemon, by state. */
  completed?: Record<string, number>;
  /** Jobs that are not over, by state. */
  open?: Record<string, number>;
  /** Whether new starts are stopped. */
  paused?: boolean;
}

/** Reply of `job.create` */
export interface JobCreateReply {
  /** Whether it existed before, because it has the same `unique` key. */
  existing: boolean;
  /** The job. */
  job: Job;
}

/** Why a job failed. */
export interface JobError {
  /** The tool call that it is about. */
  call_id?: CallId;
  /** A stable code: `unknown_outcome`, `worktree`, `session`, `no_result`, `killed`, or that of the turn's error. */
  kind: string;
  /** Text for users. */
  message: string;
}

/** One numbered event of a job. */
export type JobEvent = JobEventJobCreated | JobEventJobQueued | JobEventJobStarted | JobEventJobWaiting | JobEventJobResumed | JobEventJobRetrying | JobEventJobUpdated | JobEventJobCancelling | JobEventJobCompleted | JobEventJobDelivery;

/** Something happened to the job that the session works on, without the job's result. `job.events` has all of it. */
export interface JobEventEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The event of the job, for example `job.waiting`. */
  event: JobEvent;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "job.event";
}

/** A user cancelled it; its attempt is being stopped. */
export interface JobEventJobCancelling {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The job. */
  job_id: JobId;
  /** Why. */
  reason?: string;
  /** Its number: 1, 2, 3 … without gaps. */
  seq: number;
  type: "job.cancelling";
}

/** It has a final state. */
export interface JobEventJobCompleted {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Why it failed. */
  error?: JobError;
  /** The job. */
  job_id: JobId;
  /** The result; absent if no attempt was started. */
  result?: JobResult;
  /** Its number: 1, 2, 3 … without gaps. */
  seq: number;
  /** The final state. */
  state: JobState;
  type: "job.completed";
}

/** It was created. */
export interface JobEventJobCreated {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The job. */
  job_id: JobId;
  /** Its number: 1, 2, 3 … without gaps. */
  seq: number;
  type: "job.created";
}

/** A notification was delivered, failed or was given up. */
export interface JobEventJobDelivery {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The job. */
  job_id: JobId;
  /** Its number: 1, 2, 3 … without gaps. */
  seq: number;
  /** How far it is. */
  status: DeliveryStatus;
  /** The table `[jobs.notify.NAME]`. */
  target: string;
  /** Number of tries so far. */
  tries: number;
  type: "job.delivery";
}

/** It may start as soon as a slot is free. */
export interface JobEventJobQueued {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The job. */
  job_id: JobId;
  /** Its number: 1, 2, 3 … without gaps. */
  seq: number;
  type: "job.queued";
}

/** The attempt goes on after it waited for a person. */
export interface JobEventJobResumed {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The job. */
  job_id: JobId;
  /** Its number: 1, 2, 3 … without gaps. */
  seq: number;
  type: "job.resumed";
}

/** The attempt failed and another one follows. */
export interface JobEventJobRetrying {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The job. */
  job_id: JobId;
  /** Why the attempt failed. */
  reason: string;
  /** Time of the next attempt. `at_ms` is the time of the event. */
  run_at_ms: Timestamp;
  /** Its number: 1, 2, 3 … without gaps. */
  seq: number;
  type: "job.retrying";
}

/** An attempt was started. */
export interface JobEventJobStarted {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Number of the attempt. */
  attempt: number;
  /** The job. */
  job_id: JobId;
  /** The daemon, in a fleet. */
  node?: string;
  /** Its number: 1, 2, 3 … without gaps. */
  seq: number;
  /** Its session. */
  session_id: SessionId;
  type: "job.started";
}

/** Its priority, time, labels or limits were changed. */
export interface JobEventJobUpdated {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The job. */
  job_id: JobId;
  /** Its number: 1, 2, 3 … without gaps. */
  seq: number;
  type: "job.updated";
}

/** The attempt waits for a person. */
export interface JobEventJobWaiting {
  /** Time of the event. */
  at_ms: Timestamp;
  /** What for. */
  for: WaitingFor;
  /** The job. */
  job_id: JobId;
  /** Its number: 1, 2, 3 … without gaps. */
  seq: number;
  type: "job.waiting";
}

/** `job.events` */
export interface JobEventsParams {
  /** Only events after this number. */
  after_seq?: number;
  /** Id of the job. */
  job_id: JobId;
}

/** Reply of `job.events` */
export interface JobEventsReply {
  /** Events, oldest first; at most 1,000. */
  events: Array<JobEvent>;
}

/** Reply of `job.get` */
export interface JobGetReply {
  /** The job. */
  job: Job;
  /** What it is asked to do, as it was stored. */
  request: JobRequest;
}

export type JobId = string;

/** `job.list` */
export interface JobListParams {
  /** `next_cursor` of the previous page. */
  cursor?: string;
  /** Only jobs of this folder. */
  cwd?: string;
  /** Only jobs with this label: `NAME` or `NAME=VALUE`. */
  label?: string;
  /** Jobs per page, 1 to 500; 100 by default. */
  limit?: number;
  /** Only jobs of this schedule. */
  schedule_id?: ScheduleId;
  /** Only these states. */
  states?: Array<JobState>;
  /** Only jobs of this template. */
  template?: string;
}

/** Reply of `job.list`: newest first. */
export interface JobListReply {
  /** Jobs of this page. */
  jobs: Array<Job>;
  /** Cursor of the next page, if there is one. */
  next_cursor?: string;
}

/** `job.logs` */
export interface JobLogsParams {
  /** Only events after this seq. */
  after_seq?: number;
  /** Number of the attempt; by default the newest. */
  attempt?: number;
  /** Id of the job. */
  job_id: JobId;
  /** Events per page. */
  limit?: number;
}

/** Reply of `job.logs` */
export interface JobLogsReply {
  /** Its events, oldest first. */
  events: Array<Envelope>;
  /** Seq of the session's newest event. */
  last_seq: number;
  /** `after_seq` of the next page, if there is one. */
  next_cursor?: string;
  /** The session of the attempt. */
  session_id: SessionId;
}

/** The change of a job. */
export interface JobNotification {
  /** The job as `job.list` shows it. */
  job: Job;
  /** `type` of the job's newest event, for example `job.started`. */
  kind: string;
}

/** Selects one job. */
export interface JobParams {
  /** Id of the job. */
  job_id: JobId;
}

/** `job.pause`, `job.resume` */
export interface JobPauseParams {
  /** A repeated call with the same key returns the reply of the first call. */
  idempotency_key?: string;
}

/** Reply of `job.pause` and `job.resume` */
export interface JobPauseReply {
  /** Whether new starts are stopped. */
  paused: boolean;
}

/** Reply with one job. */
export interface JobReply {
  /** The job. */
  job: Job;
}

/** The content of a job. Later changes of a template or of the configuration do not change it, except that deny rules and lower limits count at once. */
export interface JobRequest {
  /** Name of the agent as which the attempts work. */
  agent?: string;
  /** Globs relative to the job's folder: files that are kept with the result. */
  artifacts?: Array<string>;
  /** Limits of the job over all attempts. Missing ones come from `[permissions.unattended]`. */
  budgets?: Budgets;
  /** How many jobs with the same key run at a time. A job without a worktree has the key of its real folder with limit 1 by default. */
  concurrency?: Concurrency;
  /** An existing folder, absolute. */
  cwd?: string;
  /** The job does not start before this time has passed since its creation. */
  delay?: Duration;
  /** A repeated call with the same key returns the reply of the first call. It is not stored with the job. */
  idempotency_key?: string;
  /** Labels for lists. */
  labels?: Record<string, string>;
  /** Approval mode. */
  mode?: Mode;
  /** `PROVIDER/MODEL`, or the name of a pointer of `[models]`. */
  model?: string;
  /** Who is told of the end of the job. */
  on_complete?: Array<OnComplete>;
  /** JSON Schema of the result. A job without a valid value is `failed`. */
  output_schema?: unknown;
  /** Values of the template's parameters. */
  parameters?: Record<string, unknown>;
  /** From -100 to 100; jobs with a higher number start first. 0 by default. */
  priority?: number;
  /** The text for the model, sent as it is. Not together with `template`. */
  prompt?: string;
  /** When a failed attempt is repeated; by default never. */
  retry?: RetryPolicy;
  /** The job does not start before this time. Not together with `delay`. */
  run_at_ms?: Timestamp;
  /** A job that has not started this long after it was due becomes `expired`. */
  start_deadline?: Duration;
  /** Replaces the default system prompt. */
  system_prompt?: string;
  /** Name of a template, whose fields apply where the request has none. */
  template?: string;
  /** Short name; by default the first words of the prompt. */
  title?: string;
  /** The tools on offer; absent for all. */
  tools?: ToolChoice;
  /** Prevents a second job with the same key. */
  unique?: Unique;
  /** Whether the job works in a git worktree of its own: `true`, or an object. */
  worktree?: WorktreeChoice;
}

/** The result of a job. */
export interface JobResult {
  /** The files that were kept. */
  artifacts?: Array<Artifact>;
  /** All attempts, the first one first. */
  attempts?: Array<JobAttempt>;
  /** Input tokens of this turn that were read from a prompt cache. */
  cache_hit_tokens?: number;
  /** Cost of the calls whose price is known, in millionths of a dollar: a lower bound of the total cost. */
  cost_at_least_usd_micros?: number;
  /** Cost of this turn, in millionths of a dollar; `null` if a price is unknown. */
  cost_usd_micros?: number;
  /** Duration from start to end, in milliseconds. */
  duration_ms?: number;
  /** Errors of this turn only. */
  errors?: Array<TurnError>;
  /** What it left in its branch. */
  git?: GitResult;
  /** Number of model calls. */
  model_calls?: number;
  /** Time of the model calls with complete answers, in milliseconds. Failed attempts and the waits between them are not included. */
  model_ms?: number;
  /** Calls that were refused. */
  permission_denials?: Array<Denial>;
  /** Time spent waiting for users, in milliseconds. */
  permission_ms?: number;
  /** Why the last answer ended. */
  stop_reason?: StopReason;
  /** The value that satisfies the turn's `output_schema`. */
  structured?: unknown;
  /** How it ended. */
  subtype?: Subtype;
  /** The text of the last answer; may be empty. */
  text?: string;
  /** Number of tool calls. */
  tool_calls?: number;
  /** Time spent running tools, in milliseconds. */
  tools_ms?: number;
  /** Tokens of this turn. */
  usage?: Usage;
  /** The usage by `PROVIDER/MODEL`, with calls and cost. */
  usage_by_model?: Record<string, ModelUsage>;
}

/** `job.retry` */
export interface JobRetryParams {
  /** A repeated call with the same key returns the reply of the first call. */
  idempotency_key?: string;
  /** Id of the job. */
  job_id: JobId;
  /** What the attempt starts from; by default as `retry` of the job says. */
  mode?: RetryMode;
}

/** The state of a job. */
export type JobState = "scheduled" | "queued" | "running" | "waiting" | "retrying" | "succeeded" | "failed" | "cancelled" | "expired" | "skipped";

/** A template of jobs. */
export interface JobTemplate {
  /** What it is for. */
  description?: string;
  /** Its name. */
  name: string;
  /** Its parameters by name. */
  parameters: Record<string, TemplateParameter>;
  /** Its file. */
  path: string;
  /** `user` or `project`. */
  source: string;
}

/** `job.templates` */
export interface JobTemplatesParams {
  /** A folder whose project's templates are listed as well. */
  cwd?: string;
}

/** Reply of `job.templates` */
export interface JobTemplatesReply {
  /** Files that are not used. */
  diagnostics: Array<TemplateDiagnostic>;
  /** Templates by name. */
  templates: Array<JobTemplate>;
}

/** `job.update` */
export interface JobUpdateParams {
  /** Higher limits, also of a running job. */
  budgets?: Budgets;
  /** A repeated call with the same key returns the reply of the first call. */
  idempotency_key?: string;
  /** Id of the job. */
  job_id: JobId;
  /** All labels, in place of those that it has. */
  labels?: Record<string, string>;
  /** From -100 to 100. */
  priority?: number;
  /** The job does not start before this time. */
  run_at_ms?: Timestamp;
}

/** `job.wait` */
export interface JobWaitParams {
  /** Id of the job. */
  job_id: JobId;
  /** How long to wait at most, in milliseconds; without it, until the job is over. */
  timeout_ms?: number;
}

/** Reply of `job.wait` */
export interface JobWaitReply {
  /** The job. */
  job: Job;
  /** Whether the time was over before the job was. */
  timed_out: boolean;
}

/** When a worktree is kept at the end of its job. The branch always stays if it has a commit. */
export type KeepWorktree = "changed" | "always" | "never";

/** The keywords of a query. */
export interface Keywords {
  /** Themes and intentions. */
  high_level: Array<string>;
  /** Names and concrete things. */
  low_level: Array<string>;
}

/** The cause that ended a background command with state `killed`. */
export type KilledBy = "tool" | "abort" | "session" | "shutdown";

/** `knowledge.cache.clear` */
export interface KnowledgeCacheClearParams {
  /** A repeated call with the same key returns the same reply. */
  idempotency_key?: string;
  /** The kinds to delete. By default `query` and `keywords`, which cost least to request again. */
  kinds?: Array<CacheKind>;
  /** The workspace folder, absolute. */
  workspace: string;
}

/** Reply of `knowledge.cache.clear` */
export interface KnowledgeCacheClearReply {
  /** Number of removed answers. */
  removed: number;
}

/** `knowledge.cancel`: selects a job or a query. */
export interface KnowledgeCancelParams {
  /** Repeating the call with the same key returns the first reply. */
  idempotency_key?: string;
  /** Id of the job. */
  job_id?: string;
  /** Id of the query. */
  query_id?: string;
  /** The workspace folder, absolute. */
  workspace: string;
}

/** Reply of `knowledge.cancel` */
export interface KnowledgeCancelReply {
  /** Whether the job or query was running. */
  cancelled: boolean;
}

/** `knowledge.delete` */
export interface KnowledgeDeleteParams {
  /** A repeated call with the same key returns the same reply. */
  idempotency_key?: string;
  /** The workspace folder, absolute. */
  workspace: string;
}

/** Reply of `knowledge.delete` */
export interface KnowledgeDeleteReply {
  /** Whether there was an index. */
  deleted: boolean;
}

/** `knowledge.documents.delete` */
export interface KnowledgeDocumentDeleteParams {
  /** Whether cached answers of the model about it are deleted as well. */
  delete_cache?: boolean;
  /** Id or path of the document. */
  id: string;
  /** A repeated call with the same key returns the same reply. */
  idempotency_key?: string;
  /** The workspace folder, absolute. */
  workspace: string;
}

/** Reply of `knowledge.documents.delete` */
export interface KnowledgeDocumentDeleteReply {
  /** Why it was not deleted. */
  message?: string;
  /** `success`, `not_found`, `not_allowed` (a job works on the index) or `fail`. */
  status: string;
}

/** `knowledge.documents.get` */
export interface KnowledgeDocumentParams {
  /** Id or path of the document. */
  id: string;
  /** The workspace folder, absolute. */
  workspace: string;
}

/** Reply of `knowledge.documents.get` */
export interface KnowledgeDocumentReply {
  /** Its chunks in order, at most 500. */
  chunks: Array<ChunkView>;
  /** The document. */
  document: IndexDocument;
}

/** `knowledge.documents.list` */
export interface KnowledgeDocumentsParams {
  /** `next_cursor` of the previous page. */
  cursor?: string;
  /** Documents per page, at most 500; 100 by default. */
  limit?: number;
  /** Only documents in this state: `pending`, `processing`, `processed` or `failed`. */
  status?: string;
  /** The workspace folder, absolute. */
  workspace: string;
}

/** Reply of `knowledge.documents.list` */
export interface KnowledgeDocumentsReply {
  /** The documents of this page. */
  documents: Array<IndexDocument>;
  /** Cursor of the next page; absent on the last page. */
  next_cursor?: string;
}

/** `knowledge.entity.merge` */
export interface KnowledgeEntityMergeParams {
  /** A repeated call with the same key returns the same reply. */
  idempotency_key?: string;
  /** Names of the entities to merge into `target`, 1 to 100. They are removed. */
  sources: Array<string>;
  /** Name of the entity that receives their descriptions, chunks and relations. */
  target: string;
  /** The workspace folder, absolute. */
  workspace: string;
}

/** `knowledge.entity.create`, `.update`, `.delete` */
export interface KnowledgeEntityParams {
  /** Its description; needed with `create`. */
  description?: string;
  /** A repeated call with the same key returns the same reply. */
  idempotency_key?: string;
  /** Name of the entity. */
  name: string;
  /** With `update`: its new name. */
  new_name?: string;
  /** Its type; needed with `create`. */
  type?: string;
  /** The workspace folder, absolute. */
  workspace: string;
}

/** Reply of `knowledge.entity.create`, `.update`, `.merge` and `.delete` */
export interface KnowledgeEntityReply {
  /** The entity; absent after `delete`. */
  entity?: GraphNode;
}

/** An event of an index job or a query, for a subscription. The last event is `done`, `failed` or `cancelled`. */
export type KnowledgeEvent = KnowledgeEventProgress | KnowledgeEventExtractingKeywords | KnowledgeEventRetrievingEntities | KnowledgeEventRetrievingRelations | KnowledgeEventRetrievingChunks | KnowledgeEventReranking | KnowledgeEventBuildingContext | KnowledgeEventGeneratingResponse | KnowledgeEventRawData | KnowledgeEventDelta | KnowledgeEventDone | KnowledgeEventFailed | KnowledgeEventCancelled;

/** The daemon writes the prompt. */
export interface KnowledgeEventBuildingContext {
  type: "building_context";
}

/** The job or query was cancelled. */
export interface KnowledgeEventCancelled {
  type: "cancelled";
}

/** A part of the answer. */
export interface KnowledgeEventDelta {
  /** The text. */
  text: string;
  type: "delta";
}

/** The job or query is done. */
export interface KnowledgeEventDone {
  /** The result of a query. */
  result?: QueryResult;
  /** The result of a job. */
  summary?: IndexSummary;
  type: "done";
}

/** The daemon asks the model for keywords. */
export interface KnowledgeEventExtractingKeywords {
  type: "extracting_keywords";
}

/** The job or query failed. */
export interface KnowledgeEventFailed {
  /** The reason. */
  error: QueryError;
  /** The result of a query up to the failure. */
  result?: QueryResult;
  type: "failed";
}

/** The model writes the answer. */
export interface KnowledgeEventGeneratingResponse {
  type: "generating_response";
}

/** The parameters of the notification `knowledge.event`. */
export interface KnowledgeEventNotification {
  result: KnowledgeEvent;
  subscription: SubscriptionId;
}

/** An index job made progress. */
export interface KnowledgeEventProgress {
  /** Cost of these tokens in millionths of a dollar. */
  cost_usd_micros: number;
  /** Number of finished units of the stage. */
  done: number;
  /** The stage. */
  stage: IndexStage;
  /** Tokens that the job has used. */
  tokens: number;
  /** Number of all units of the stage; 0 while unknown. */
  total: number;
  type: "progress";
}

/** The data that the query found. This event comes before the first `delta`. */
export interface KnowledgeEventRawData {
  /** All data that the query found. */
  raw_data: RawData;
  type: "raw_data";
}

/** The reranker ranks the chunks again. */
export interface KnowledgeEventReranking {
  type: "reranking";
}

/** The query searches chunks. */
export interface KnowledgeEventRetrievingChunks {
  type: "retrieving_chunks";
}

/** The query searches entities. */
export interface KnowledgeEventRetrievingEntities {
  type: "retrieving_entities";
}

/** The query searches relations. */
export interface KnowledgeEventRetrievingRelations {
  type: "retrieving_relations";
}

/** `knowledge.graph` */
export interface KnowledgeGraphParams {
  /** Maximum number of relations between the central entity and another one, 1 to 8; 2 by default. */
  depth?: number;
  /** The format of the graph. */
  format?: GraphFormatParam;
  /** Maximum number of entities, 1 to 1,000; 200 by default. */
  max_nodes?: number;
  /** Name of the central entity. If it is absent, the graph contains the entities with the most relations. */
  name?: string;
  /** The workspace folder, absolute. */
  workspace: string;
}

/** Reply of `knowledge.graph` */
export interface KnowledgeGraphReply {
  /** The graph as text; absent if `format` is `json`. */
  data?: string;
  /** The edges between the nodes; empty if `format` is not `json`. */
  edges: Array<Relation>;
  /** The nodes; empty if `format` is not `json`. */
  nodes: Array<GraphNode>;
  /** Whether `max_nodes` cut the graph. */
  truncated: boolean;
}

/** `knowledge.index` */
export interface KnowledgeIndexParams {
  /** Limits for the level `semantic`. Without them, the daemon refuses this level, and the error gives the estimate. */
  budget?: IndexBudget;
  /** Whether the daemon only estimates the job and does not start it. */
  dry_run?: boolean;
  /** A repeated call with the same key returns the same reply. */
  idempotency_key?: string;
  /** How much is extracted; by default the level of the configuration. */
  level?: IndexLevel;
  /** At most 1,000 files and folders to index, relative to the workspace; absent for all. */
  paths?: Array<string>;
  /** The workspace folder, absolute. */
  workspace: string;
}

/** `knowledge.insert` */
export interface KnowledgeInsertParams {
  /** The documents, at most 100. */
  documents: Array<InsertedDocument>;
  /** A repeated call with the same key returns the same reply. */
  idempotency_key?: string;
  /** The workspace folder whose index receives the documents, absolute. */
  workspace: string;
}

/** Reply of `knowledge.insert` */
export interface KnowledgeInsertReply {
  /** The documents in the given order. */
  documents: Array<InsertOutcome>;
}

/** Reply of `knowledge.query`: the result, or the id of a streamed query. */
export type KnowledgeQueryReply = KnowledgeQueryReplyQueryId | QueryResult;

/** With `stream`: the id for `knowledge.subscribe` and `knowledge.cancel`. */
export interface KnowledgeQueryReplyQueryId {
  /** Id of the query. */
  query_id: string;
}

/** `knowledge.relation.create`, `.update`, `.delete` */
export interface KnowledgeRelationParams {
  /** Its description; needed with `create`. */
  description?: string;
  /** A repeated call with the same key returns the same reply. */
  idempotency_key?: string;
  /** Its keywords, separated by commas. */
  keywords?: string;
  /** Name of the entity at one end. */
  source: string;
  /** Name of the entity at the other end. */
  target: string;
  /** Its strength, 1.0 by default. */
  weight?: number;
  /** The workspace folder, absolute. */
  workspace: string;
}

/** Reply of `knowledge.relation.create`, `.update` and `.delete` */
export interface KnowledgeRelationReply {
  /** The relation; absent after `delete`. */
  relation?: Relation;
}

/** `knowledge.status` */
export interface KnowledgeStatusParams {
  /** The workspace folder, absolute. */
  workspace: string;
}

/** `knowledge.subscribe`: selects a job or a query. */
export interface KnowledgeWorkParams {
  /** Id of the job. */
  job_id?: string;
  /** Id of the query. */
  query_id?: string;
  /** The workspace folder, absolute. */
  workspace: string;
}

/** Result of a reload of the configuration. */
export interface LastReload {
  /** Time of the reload. */
  at_ms: Timestamp;
  /** The error of a failed reload, with file and line. The previous configuration stays active. */
  error?: string;
  /** Keys that changed since the start and apply only after a restart. */
  needs_restart?: Array<string>;
}

/** The end of a session's last turn, for lists. `turn.completed` and `session.wait` have the whole result. */
export interface LastTurn {
  /** Duration from start to end, in milliseconds. */
  duration_ms?: number;
  /** Time of its end. */
  ended_at_ms: Timestamp;
  /** Code of its first error. */
  kind?: string;
  /** Text of its first error, at most 200 characters. */
  message?: string;
  /** The part of `duration_ms` that the turn spent waiting for users. */
  permission_ms?: number;
  /** How it ended. */
  subtype: Subtype;
}

/** The usage of one model by one session. */
export interface LedgerRow {
  /** Input tokens read from a prompt cache. */
  cache_read_tokens?: number;
  /** The part of `cache_write_tokens` that is kept for an hour instead of minutes, where the provider reports it. */
  cache_write_1h_tokens?: number;
  /** Input tokens written to a prompt cache. */
  cache_write_tokens?: number;
  /** Model calls, including lost attempts. */
  calls?: number;
  /** Tokens that fit in a request and its answer, as known at the newest call; absent if unknown. */
  context_window?: number;
  /** Cost of the calls whose price is known, in millionths of a dollar: a lower bound of the total cost. */
  cost_at_least_usd_micros?: number;
  /** Cost of all calls, in millionths of a dollar; `null` if a price is unknown. */
  cost_usd_micros?: number;
  /** Calls whose tokens are an upper estimate, because the provider did not report them. */
  estimated_calls?: number;
  /** Time of the first of these calls. */
  first_at_ms: Timestamp;
  /** Input tokens that were neither read from nor written to a prompt cache. */
  input_tokens?: number;
  /** Time of the last of these calls. */
  last_at_ms: Timestamp;
  /** Calls without an answer, for which the provider may still charge. */
  lost_attempts?: number;
  /** Tokens of the longest answer, as known at the newest call; absent if unknown. */
  max_output_tokens?: number;
  /** `PROVIDER/MODEL`. */
  model: string;
  /** Output tokens, reasoning included. */
  output_tokens?: number;
  /** The part of the output that was reasoning, where the provider reports it. */
  reasoning_tokens?: number;
  /** The service tier of one call, where the provider reports it; absent in sums. */
  service_tier?: ServiceTier;
  /** Id of the session; it may have been deleted since. */
  session_id: SessionId;
  /** Its short name; absent if the session was deleted. */
  title?: string;
  /** All tokens that were sent or received; computed when it is written. */
  total?: number;
  /** Calls whose price is unknown. */
  unpriced_calls?: number;
  /** Web searches that the provider made for the answer; each one is charged. */
  web_search_requests?: number;
}

/** `session.list` */
export interface ListParams {
  /** `next_cursor` of the previous page. */
  cursor?: string;
  /** Only sessions of this folder. */
  cwd?: string;
  /** Whether the sessions of sub-agents are listed as well. */
  include_children?: boolean;
  /** Sessions per page, 1 to 500; 100 by default. */
  limit?: number;
  /** Only sessions that match this text. Either the title, the folder or the last line contains the text, or a message contains all its words. The last word may be the beginning of a word. `matches` names the matching messages. */
  search?: string;
  /** Only these states. */
  states?: Array<SessionState>;
}

/** Reply of `session.list`: newest first. */
export interface ListReply {
  /** Cursor of the next page, if there is one. */
  next_cursor?: string;
  /** Sessions of this page. */
  sessions: Array<SessionView>;
}

/** `mcp.add` */
export interface McpAddParams {
  /** Its configuration, with the keys of `[mcp.NAME]`. */
  config: unknown;
  /** The project's folder, absolute; needed with the scope `project`. */
  cwd?: string;
  /** A repeated call with the same key and parameters returns the first reply, within 24 hours. */
  idempotency_key?: string;
  /** The name of the server. */
  name: string;
  /** The scope in which it is added. */
  scope: McpScope;
}

/** Reply of `mcp.add` and `mcp.remove` */
export interface McpChangeReply {
  /** The name of the server. */
  name: string;
}

/** Instructions of a server for the model. */
export interface McpInstructions {
  /** Name of the server. */
  server: string;
  /** The text of the instructions. */
  text: string;
}

/** `mcp.list` */
export interface McpListParams {
  /** The folder whose project servers are listed as well, absolute. Programs without a configured folder start in it. */
  cwd?: string;
  /** The session whose servers are listed, including those that were given when it was created. Not together with `cwd`. */
  session_id?: SessionId;
}

/** Reply of `mcp.list` */
export interface McpListReply {
  /** Sorted by name. */
  servers: Array<McpServerView>;
}

/** Reply of `mcp.logs` */
export interface McpLogsReply {
  /** The newest lines that the running server wrote to standard error or sent as log messages, oldest first. Empty if the server does not run. */
  lines: Array<string>;
}

/** `mcp.remove` */
export interface McpRemoveParams {
  /** The project's folder, absolute; needed with the scope `project`. */
  cwd?: string;
  /** A repeated call with the same key and parameters returns the first reply, within 24 hours. */
  idempotency_key?: string;
  /** The name of the server. */
  name: string;
  /** The scope in which it was added. */
  scope: McpScope;
}

/** One resource of an MCP server. A user attaches it with an input block `resource_link`. */
export interface McpResource {
  /** Its description. */
  description?: string;
  /** Its media type, as the server reports it. */
  media_type?: string;
  /** Its name. */
  name: string;
  /** Its size in bytes, as the server reports it. */
  size?: number;
  /** Its URI. */
  uri: string;
}

/** The resources of an MCP server: the reply of `mcp.resources`. */
export interface McpResourceList {
  /** Whether `resources` contains all resources of the server. */
  is_complete: boolean;
  /** At most 1,000 resources in the order of the server. */
  resources: Array<McpResource>;
  /** Patterns of the URIs of further resources. */
  templates: Array<McpResourceTemplate>;
}

/** A pattern of URIs that an MCP server can read. */
export interface McpResourceTemplate {
  /** Its description. */
  description?: string;
  /** Its name. */
  name: string;
  /** The pattern, for example `file:///{path}`. */
  uri_template: string;
}

/** The scope in which a server is added. */
export type McpScope = "user" | "project";

/** `mcp.tools`, `mcp.resources` and `mcp.logs` */
export interface McpServerParams {
  /** The folder, as in `mcp.list`. */
  cwd?: string;
  /** The name of the server. */
  name: string;
  /** The session, as in `mcp.list`. */
  session_id?: SessionId;
}

/** One MCP server. */
export interface McpServerView {
  /** Why it is not ready. */
  error?: string;
  /** Its instructions for the model. */
  instructions?: string;
  /** Its name. */
  name: string;
  /** Parts of its configuration without effect, and tools that are left out. */
  notes?: Array<string>;
  /** Source of its configuration: `system`, `user`, `project` or `session`. */
  source: string;
  /** Its state. */
  state: McpState;
  /** Names of its tools for the model. */
  tools: Array<string>;
  /** `stdio` or `http`; empty if its configuration is wrong. */
  transport: string;
}

/** The state of an MCP server. */
export type McpState = "disabled" | "untrusted" | "starting" | "ready" | "failed";

/** The state of an MCP server changed for this session. */
export interface McpStatusEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Why it failed. */
  error?: string;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** Tools that are left out, and parts of its configuration that are not understood. */
  notes?: Array<string>;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** The name in the configuration. */
  server: string;
  /** Id of the session. */
  session_id: SessionId;
  /** Its state. */
  state: McpState;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "mcp.status";
}

/** The result of `mcp.test`. */
export interface McpTest {
  /** Duration of the start in milliseconds; 0 if the server ran already. */
  duration_ms: number;
  /** Why it is not ready. */
  error?: string;
  /** Tools that the daemon leaves out, each with the reason, and hints about the configuration. */
  problems: Array<string>;
  /** The revision of the Model Context Protocol that the server uses. */
  protocol?: string;
  /** The state after the start. */
  state: McpState;
  /** Names of its tools for the model. */
  tools: Array<string>;
}

/** `mcp.test`: a configured server or a configuration. */
export interface McpTestParams {
  /** A configuration, with the keys of `[mcp.NAME]`. */
  config?: unknown;
  /** The folder, as in `mcp.list`. */
  cwd?: string;
  /** Repeating the call with the same key returns the first reply. */
  idempotency_key?: string;
  /** The name of a configured server. */
  name?: string;
  /** The session, as in `mcp.list`. */
  session_id?: SessionId;
}

/** A tool of an MCP server. */
export interface McpTool {
  /** Its description. */
  description: string;
  /** Digest of description and schema. An approval is for one digest. */
  digest: string;
  /** JSON Schema of its input. */
  input_schema: unknown;
  /** The name for the model, `mcp__SERVER__TOOL`. */
  name: string;
  /** The server's name in the configuration. */
  server: string;
  /** The name on the server. */
  tool: string;
}

/** The names of a tool of an MCP server. */
export interface McpToolName {
  /** The name for the model. */
  name: string;
  /** The server's name in the configuration. */
  server: string;
  /** The tool's name on the server. */
  tool: string;
}

/** One tool of an MCP server. */
export interface McpToolView {
  /** Its description. */
  description: string;
  /** JSON Schema of its input. */
  input_schema: unknown;
  /** The name for the model and for rules. */
  name: string;
  /** The name on the server. */
  tool: string;
}

/** The tools and instructions of MCP servers changed for later turns. A running turn keeps those with which it started. */
export interface McpToolsEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The instructions, sorted by server. */
  instructions?: Array<McpInstructions>;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** The tools, sorted by name. */
  tools: Array<McpTool>;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "mcp.tools";
}

/** Reply of `mcp.tools` */
export interface McpToolsReply {
  /** Sorted by name. */
  tools: Array<McpToolView>;
}

/** The provider refused the pictures and documents of the conversation. From now on models receive a text instead of them, with the text of the documents; the call is repeated at once. The stored media stay unchanged, and later media are sent. */
export interface MediaWithheldEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Number of the refused media. */
  count: number;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** The provider's message. */
  reason: string;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "media.withheld";
}

/** `memory.list` */
export interface MemoryListParams {
  /** The folder of the project. */
  cwd: string;
  /** Only this note, with its text. */
  name?: string;
}

/** Reply of `memory.list`: at most 100 notes. */
export interface MemoryListReply {
  /** The notes by name. */
  notes: Array<MemoryNote>;
}

/** A note of a project's memory. */
export interface MemoryNote {
  /** Bytes of its text. */
  bytes: number;
  /** The first line of its text. */
  description: string;
  /** Its name: `a-z`, `0-9`, `_` and `-`. */
  name: string;
  /** Its text, if the client requested a single note. */
  text?: string;
  /** Time of the last write. */
  updated_at_ms: Timestamp;
}

/** `memory.remove` */
export interface MemoryRemoveParams {
  /** The folder of the project. */
  cwd: string;
  /** A repeated call with the same key returns the same reply. */
  idempotency_key?: string;
  /** Name of the note. */
  name: string;
}

/** Reply of `memory.remove` */
export interface MemoryRemoveReply {
  /** Name of the removed note. */
  name: string;
}

/** `memory.set` */
export interface MemorySetParams {
  /** The folder of the project. */
  cwd: string;
  /** A repeated call with the same key returns the same reply. */
  idempotency_key?: string;
  /** Name of the note: `a-z`, `0-9`, `_` and `-`. */
  name: string;
  /** The whole text, at most 16 KiB. Its first line is its description. */
  text: string;
}

/** Reply of `memory.set` */
export interface MemorySetReply {
  /** The note as it is stored. */
  note: MemoryNote;
}

/** How `worktree.merge` merges. */
export type MergeMethod = "ff" | "commit";

/** One message of the transcript. */
export interface Message {
  /** The blocks; never empty in a request. */
  content: Array<Block>;
  /** `PROVIDER/MODEL` that wrote it: its reasoning is sent to this model only. Unknown in old journals. */
  model?: string;
  /** The author. */
  role: Role;
}

/** A block of the answer is complete. */
export interface MessageBlockCompletedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** For encrypted reasoning: the complete data. */
  data?: string;
  /** Position of the block. */
  index: number;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** For reasoning: the provider's signature over its text. */
  signature?: string;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "message.block_completed";
}

/** A block of the answer started. */
export interface MessageBlockStartedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Kind of the block. */
  block: BlockKind;
  /** Position of the block. */
  index: number;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "message.block_started";
}

/** A message is complete (or was interrupted: then `item.status` is `interrupted`). */
export interface MessageCompletedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Whether this is the cached answer to the same request shortly before. If so, no model was called, and the answer costs nothing. */
  cache_hit?: boolean;
  /** Whether this is one of two answers to choose from (`feedback.request`). Such an answer is not part of the conversation. The chosen answer is copied into the conversation as a new item. */
  candidate?: boolean;
  /** Cost of the call, in millionths of a dollar; absent if the price is unknown. */
  cost_usd_micros?: number;
  /** Whether the stream broke off after complete tool calls, which may have run. The answer then ends with these calls. */
  cut_short?: boolean;
  /** Duration of the call, in milliseconds. */
  duration_ms?: number;
  /** Whether `usage` is an upper estimate, because the provider reported none. */
  estimated?: boolean;
  /** The item with the complete message. */
  item: Item;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** `PROVIDER/MODEL` of an answer. */
  model?: string;
  /** Limits and price of the model at the time of the call. */
  model_snapshot?: ModelSnapshot;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Id of the item of kind `reasoning`, if there is one. Its text is in `item`. */
  reasoning_item_id?: ItemId;
  /** The provider's id of the answer. */
  response_id?: string;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Why the answer ended. */
  stop_reason?: StopReason;
  /** For an `interrupted` message: the model's next answer replaces this text. Clients must not show both. */
  superseded?: boolean;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "message.completed";
  /** For an answer: tokens of its request, estimated from its characters. The ratio of the reported tokens to this number corrects later estimates. */
  uncalibrated_tokens?: number;
  /** Tokens of the call. */
  usage?: Usage;
}

/** A model's answer started. */
export interface MessageStartedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Number of the attempt at this call, from 1. */
  attempt: number;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** `PROVIDER/MODEL` that answers. */
  model: string;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "message.started";
}

/** More text. Pruned. */
export interface MessageTextDeltaEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Position of the block. */
  index: number;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** The new part. */
  text: string;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "message.text_delta";
}

/** More reasoning. Pruned. */
export interface MessageThinkingDeltaEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Position of the block. */
  index: number;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** The new part. */
  text: string;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "message.thinking_delta";
}

/** A partial answer (`item_id`) is discarded: another one replaces it. Clients remove what they show of it. */
export interface MessageTombstoneEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Reason of the discard. */
  reason: TombstoneReason;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "message.tombstone";
}

/** More of a tool call's arguments, as JSON text. Pruned. */
export interface MessageToolInputDeltaEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Position of the block. */
  index: number;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The new part. */
  json: string;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "message.tool_input_delta";
}

/** Details of the search of a query. */
export interface Metadata {
  /** Whether the answer comes from the cache. */
  cached?: boolean;
  /** Numbers of entities, relations and chunks before the limits were applied. */
  found: FoundCounts;
  /** `generation` of the index that the query read. */
  generation?: number;
  /** The keywords of the query. */
  keywords: Keywords;
  /** Whether the model gave no keywords, so that the text of the query was searched. */
  keywords_failed?: boolean;
  /** Number of chunks that entities or relations name but that no longer exist. */
  missing_chunks?: number;
  /** With status `no_context`: `bypass`, `nothing_found`, `files_gone`, `reranker` or `token_limit`. */
  no_context_reason?: string;
  /** The mode of the query. */
  query_mode: QueryMode;
  /** Tokens of the parts of the prompt. */
  tokens: PromptTokens;
  /** Warnings about parts that failed and were left out. */
  warnings?: Array<string>;
}

/** Counters of a daemon. Unless stated otherwise, they count since its start and only grow. The keys of its maps come from fixed lists, so that the number of counters is limited. */
export interface Metrics {
  /** Model calls by the service tier that the provider reported. */
  calls_by_service_tier?: Record<string, number>;
  /** Cost of the calls whose price is known, in millionths of a dollar. */
  cost_usd_micros?: number;
  /** Transactions that could not be written. */
  database_write_errors?: number;
  /** Transactions written to the database. */
  database_writes?: number;
  /** Errors of turns. */
  errors?: number;
  /** Jobs that are not over now, and those that ended since the start, by state. */
  jobs?: JobCounts;
  /** Model calls without an answer, for which the provider may still charge. */
  lost_attempts?: number;
  /** Booked model calls, including lost attempts. */
  model_calls?: number;
  /** The part of `turn_ms` that turns spent waiting for models. */
  model_ms?: number;
  /** The part of `turn_ms` that turns spent waiting for users. */
  permission_ms?: number;
  /** Permission requests that were raised. */
  permission_requests?: number;
  /** Model calls whose input the provider read partly from its prompt cache. */
  prompt_cache_hits?: number;
  /** Answers that came from the response cache. They count as model calls without cost. */
  response_cache_hits?: number;
  /** Failed model calls that were retried. */
  retries?: number;
  /** Sessions in memory now. */
  sessions_loaded?: number;
  /** Turns that took more than 30 s, without the time that they waited for users. */
  slow_turns?: number;
  /** Clients attached to sessions now. */
  subscribers?: number;
  /** Ended tool calls, by status. */
  tool_calls?: Record<string, number>;
  /** The part of `turn_ms` that turns spent running tools. */
  tools_ms?: number;
  /** Total duration of all ended turns, in milliseconds. */
  turn_ms?: number;
  /** Ended turns, by result. */
  turns_completed?: Record<string, number>;
  /** Turns that started. */
  turns_started?: number;
  /** Calls whose price is unknown. */
  unpriced_calls?: number;
  /** Time since the start of the daemon, in milliseconds. */
  uptime_ms?: number;
  /** Tokens and searches of all model calls. */
  usage?: Usage;
}

/** How much a session may do without a permission request. */
export type Mode = "default" | "accept_edits" | "plan" | "dont_ask" | "bypass";

/** `model.check` */
export interface ModelCheckParams {
  /** Only this provider; by default all configured ones. */
  provider?: string;
}

/** Reply of `model.check` */
export interface ModelCheckReply {
  /** The checked providers, sorted by name. */
  providers: Array<ProviderCheck>;
}

/** `model.list` */
export interface ModelListParams {
  /** `next_cursor` of the previous page. */
  cursor?: string;
  /** Models per page, at most 500; 100 by default. */
  limit?: number;
}

/** Reply of `model.list` */
export interface ModelListReply {
  /** Models of this page, sorted by name. */
  models: Array<ModelView>;
  /** Cursor of the next page; absent on the last page. */
  next_cursor?: string;
}

/** Limits and price of a model at the time of a call. It is stored with the call, so later changes do not affect old calls. */
export interface ModelSnapshot {
  /** Tokens that fit in a request and its answer. */
  context_window?: number;
  /** Tokens of the longest answer. */
  max_output_tokens?: number;
  /** Price of the model. */
  price?: Price;
}

/** Another model answers until the turn ends. The next turn starts with the session's model again. */
export interface ModelSwitchedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The reason as text for users. */
  detail?: string;
  /** `PROVIDER/MODEL` until now. */
  from: string;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Reason of the switch. */
  reason: SwitchReason;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** `PROVIDER/MODEL` from now on. */
  to: string;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "model.switched";
}

/** The sum of all calls of one model, as the ledger stores it. If a part of a sum is unknown, the sum is unknown, and the known part is its lower bound. */
export interface ModelUsage {
  /** Input tokens read from a prompt cache. */
  cache_read_tokens?: number;
  /** The part of `cache_write_tokens` that is kept for an hour instead of minutes, where the provider reports it. */
  cache_write_1h_tokens?: number;
  /** Input tokens written to a prompt cache. */
  cache_write_tokens?: number;
  /** Model calls, including lost attempts. */
  calls?: number;
  /** Tokens that fit in a request and its answer, as known at the newest call; absent if unknown. */
  context_window?: number;
  /** Cost of the calls whose price is known, in millionths of a dollar: a lower bound of the total cost. */
  cost_at_least_usd_micros?: number;
  /** Cost of all calls, in millionths of a dollar; `null` if a price is unknown. */
  cost_usd_micros?: number;
  /** Calls whose tokens are an upper estimate, because the provider did not report them. */
  estimated_calls?: number;
  /** Input tokens that were neither read from nor written to a prompt cache. */
  input_tokens?: number;
  /** Calls without an answer, for which the provider may still charge. */
  lost_attempts?: number;
  /** Tokens of the longest answer, as known at the newest call; absent if unknown. */
  max_output_tokens?: number;
  /** Output tokens, reasoning included. */
  output_tokens?: number;
  /** The part of the output that was reasoning, where the provider reports it. */
  reasoning_tokens?: number;
  /** The service tier of one call, where the provider reports it; absent in sums. */
  service_tier?: ServiceTier;
  /** All tokens that were sent or received; computed when it is written. */
  total?: number;
  /** Calls whose price is unknown. */
  unpriced_calls?: number;
  /** Web searches that the provider made for the answer; each one is charged. */
  web_search_requests?: number;
}

/** `model.usage` */
export interface ModelUsageParams {
  /** `next_cursor` of the previous page. */
  cursor?: string;
  /** Rows per page, at most 500; 100 by default. */
  limit?: number;
  /** Only calls of this session, which may be a deleted one. */
  session_id?: SessionId;
  /** Only calls at this time or later. */
  since_ms?: Timestamp;
  /** Only calls before this time. */
  until_ms?: Timestamp;
}

/** Reply of `model.usage` */
export interface ModelUsageReply {
  /** Cursor of the next page; absent on the last page. */
  next_cursor?: string;
  /** One row for each session and model, newest sessions first. */
  rows: Array<LedgerRow>;
  /** Sum of all selected calls, on all pages. */
  total: ModelUsage;
}

/** A model that a session could use, with its known capabilities. */
export interface ModelView {
  /** Tokens that fit in a request and its answer; `null` if unknown. */
  context_window?: number;
  /** Whether it accepts PDFs; `null` if unknown. */
  documents?: boolean;
  /** Whether the model is known. If not, the values are optimistic defaults. */
  known: boolean;
  /** Tokens of the longest answer; `null` if unknown. */
  max_output_tokens?: number;
  /** `PROVIDER/MODEL`. */
  model: string;
  /** Its roles in the configuration, such as `main`; empty for most models. */
  pointers?: Array<string>;
  /** Its price; `null` if unknown, which is not the same as free. */
  price?: Price;
  /** Date of the price, for example `2026-03`. */
  price_as_of?: string;
  /** Source of the price: an address, or `configuration`. */
  price_source?: string;
  /** Whether it accepts a temperature and `top_p`. */
  sampling?: boolean;
  /** Whether it can stream. */
  streaming: boolean;
  /** Whether it accepts a system prompt. */
  system_role: boolean;
  /** Whether it can return its reasoning. */
  thinking: boolean;
  /** Whether it can call tools. */
  tools: boolean;
  /** Whether it accepts images; `null` if unknown. */
  vision?: boolean;
}

/** A new schedule: `schedule.create`. Exactly one of `cron` and `every` is given. */
export interface NewSchedule {
  /** What happens to slots that were missed, because the machine slept or the daemon did not run. */
  catch_up?: CatchUp;
  /** Missed slots that are older do not fire; 24 hours by default, at most 31 days. */
  catch_up_window?: Duration;
  /** Five fields of cron, or `@hourly`, `@daily`, `@weekly`, `@monthly`. */
  cron?: string;
  /** Whether it fires. */
  enabled?: boolean;
  /** A slot after each interval since the creation, at least `1m`. */
  every?: Duration;
  /** A repeated call with the same key returns the reply of the first call. */
  idempotency_key?: string;
  /** Random delay of each slot, below this time. */
  jitter?: Duration;
  /** The content of each job. It has no `idempotency_key` and no `run_at_ms`. */
  job: JobRequest;
  /** After so many failures in a row the schedule is disabled; 5 by default, 0 for never. */
  max_failures?: number;
  /** Short name for people. */
  name: string;
  /** What happens while a job of the schedule is not over. */
  overlap?: Overlap;
  /** IANA name of the zone of `cron`; by default the zone of the daemon's machine at creation. */
  timezone?: string;
  /** No slot after this time. */
  until_ms?: Timestamp;
}

/** A notice for the user; it changes no state. */
export interface NoticeEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** A stable code. */
  kind: string;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** The text. */
  text: string;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "notice";
}

/** A state of a job that can be reported. */
export type NotifyState = "succeeded" | "failed" | "cancelled" | "expired" | "waiting";

/** Who is told of the end of a job. Exactly one of `webhook` and `command` names a table `[jobs.notify.NAME]`. */
export interface OnComplete {
  /** A table with a `command`. */
  command?: string;
  /** The states that are reported; by default all final ones except `skipped`. */
  on?: Array<NotifyState>;
  /** A table with a `url`. */
  webhook?: string;
}

/** What happens to a job whose unique key is taken. */
export type OnConflict = "return" | "replace" | "reject";

/** Handling of a turn that a restart interrupts. */
export type OnRestart = "resume" | "pause";

/** The action for an unanswered request of an unattended session. */
export type OnTimeout = "deny" | "allow_read_only" | "pause" | "fail";

/** The client that caused an event. */
export interface Origin {
  /** Name that the client gave in `daemon.hello`, or `client-N`. */
  client: string;
  /** Its process id when it connected; for display only. */
  pid?: number;
  /** Its user id. */
  uid: number;
}

/** What happens at a slot while a job of the schedule is not over. */
export type Overlap = "skip" | "queue" | "cancel";

/** The call that started a session. Sessions that a client created have none. */
export interface ParentCall {
  /** The `Task` call. */
  call_id: CallId;
  /** Number of calls between the first session and this one, from 1. */
  depth: number;
  /** The first session of the tree: the one that a client created. */
  root_session_id: SessionId;
  /** The session that made the call. */
  session_id: SessionId;
}

/** Names of the parts. */
export type PartName = "system" | "instructions" | "memory" | "tools" | "mcp" | "messages" | "tool_results" | "reminders" | "free";

/** Sensitivity of a path, from lowest to highest. */
export type PathSensitivity = "ordinary" | "secret" | "hard_linked" | "auto_executed" | "protected";

/** One pending request with its session. */
export interface PendingRequest {
  /** Time at which the request was raised. */
  at_ms: Timestamp;
  /** For kind `sandbox`: the part of the sandbox that probably blocked the command. */
  blocked?: Blocked;
  /** The call that waits. */
  call_id: CallId;
  /** For calls that change a file: its content hash before and after. */
  change?: PlannedChange;
  /** For a request of a sub-agent, shown in the sessions above it: the session that waits. The answer goes to that session. */
  child_session_id?: SessionId;
  /** The folder in which the call would run. */
  cwd?: string;
  /** Deadline of the request; absent in attended sessions, which wait without limit. A restart does not change it. */
  deadline_ms?: Timestamp;
  /** Unified diff, for edits. */
  diff?: string;
  /** SHA-256 over session, folder, tool and arguments, in hexadecimal. It binds an answer to this exact call. */
  digest?: string;
  /** The exact arguments. */
  input: unknown;
  /** The subject of the request. With `sandbox`, the command of this call has run and the sandbox blocked it (see `tool.blocked` before this event). An allowed command runs again from its beginning, outside the sandbox. */
  kind?: RequestKind;
  /** Number of the session and position among its requests and questions, for example `12.1`. It is accepted instead of the id. */
  number?: string;
  /** The action at the deadline. */
  on_timeout?: OnTimeout;
  /** For commands: the verdict on each simple command in the line. */
  parts?: Array<CommandPart2>;
  /** Whether the call changes nothing. */
  read_only?: boolean;
  /** Whether the call is a command whose parts are all read-only, inside the workspace, and read no secrets. `allow_read_only` allows such a command. */
  read_only_command?: boolean;
  /** Why this needs a request. */
  reason: string;
  /** Its id; a restart does not change it. */
  request_id: PermissionId;
  /** For commands: their confinement. */
  sandbox?: Confinement;
  /** Id of the session. */
  session_id: SessionId;
  /** The subject that the rules judged. */
  subject: Subject;
  /** Possible grants, narrowest first. */
  suggestions: Array<string>;
  /** One line for users. For Bash the first line of the command, then the model's description of it. */
  summary: string;
  /** The tool. */
  tool: string;
  /** Truncated values of the request; `session.blob` reads the complete value. */
  truncated_fields?: Array<TruncatedField>;
}

/** The parameters of the notification `permission.event`. */
export interface PermissionEventNotification {
  result: Envelope;
  subscription: SubscriptionId;
}

/** A permission request was not answered by its deadline. With `pause` it stays pending; else `permission.resolved` follows. */
export interface PermissionExpiredEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Id of the call. */
  call_id: CallId;
  /** For a request of a sub-agent: the session that waits. */
  child_session_id?: SessionId;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The action that applies. */
  on_timeout: OnTimeout;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Id of the request. */
  request_id: PermissionId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "permission.expired";
}

export type PermissionId = string;

/** `permission.list` */
export interface PermissionListParams {
  /** `next_cursor` of the previous page. */
  cursor?: string;
  /** Requests per page, 1 to 500; 100 by default. */
  limit?: number;
  /** Only requests of this session. */
  session_id?: SessionId;
}

/** Reply of `permission.list`: oldest first. */
export interface PermissionListReply {
  /** Cursor of the next page, if there is one. */
  next_cursor?: string;
  /** A page of pending requests. */
  requests: Array<PendingRequest>;
}

/** When calls of a tool need a permission request in mode `default`, if no rule decides. */
export type PermissionNeed = "never" | "outside_workspace" | "always";

/** A tool call waits for the user's permission. */
export interface PermissionRequestedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** For kind `sandbox`: the part of the sandbox that probably blocked the command. */
  blocked?: Blocked;
  /** The call that waits. */
  call_id: CallId;
  /** For calls that change a file: its content hash before and after. */
  change?: PlannedChange;
  /** For a request of a sub-agent, shown in the sessions above it: the session that waits. The answer goes to that session. */
  child_session_id?: SessionId;
  /** The folder in which the call would run. */
  cwd?: string;
  /** Deadline of the request; absent in attended sessions, which wait without limit. A restart does not change it. */
  deadline_ms?: Timestamp;
  /** Unified diff, for edits. */
  diff?: string;
  /** SHA-256 over session, folder, tool and arguments, in hexadecimal. It binds an answer to this exact call. */
  digest?: string;
  /** The exact arguments. */
  input: unknown;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The subject of the request. With `sandbox`, the command of this call has run and the sandbox blocked it (see `tool.blocked` before this event). An allowed command runs again from its beginning, outside the sandbox. */
  kind?: RequestKind;
  /** The action at the deadline. */
  on_timeout?: OnTimeout;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** For commands: the verdict on each simple command in the line. */
  parts?: Array<CommandPart2>;
  /** Whether the call changes nothing. */
  read_only?: boolean;
  /** Whether the call is a command whose parts are all read-only, inside the workspace, and read no secrets. `allow_read_only` allows such a command. */
  read_only_command?: boolean;
  /** Why this needs a request. */
  reason: string;
  /** Its id; a restart does not change it. */
  request_id: PermissionId;
  /** For commands: their confinement. */
  sandbox?: Confinement;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** The subject that the rules judged. */
  subject: Subject;
  /** Possible grants, narrowest first. */
  suggestions: Array<string>;
  /** One line for users. For Bash the first line of the command, then the model's description of it. */
  summary: string;
  /** The tool. */
  tool: string;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "permission.requested";
}

/** A permission request was settled. */
export interface PermissionResolvedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** How it was settled: an answer, an abort, a rule, a change of mode, or a missing answer. */
  by: SettledBy;
  /** Id of the call. */
  call_id: CallId;
  /** For a request of a sub-agent: the session that waited. */
  child_session_id?: SessionId;
  /** Allow or deny. */
  decision: Decision;
  /** Feedback of the user for the model. */
  feedback?: string;
  /** The grant that the user gave with the answer. */
  grant?: string;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** The call as prepared with the changed arguments. */
  prepared?: PreparedCall;
  /** Id of the request. */
  request_id: PermissionId;
  /** For `rule` or `mode`: the rule or mode that allows the call. */
  rule?: string;
  /** How long an allow is valid. */
  scope: Scope;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Whether the turn ends with this denial. */
  stop?: boolean;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "permission.resolved";
  /** The user's arguments, which replace the model's. */
  updated_input?: unknown;
}

/** A permission rule was added to this session. */
export interface PermissionRuleAddedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** Whether the rule allows, asks or denies. */
  kind: RuleKind;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** The rule as text. */
  rule: string;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "permission.rule_added";
}

/** A permission rule or grant of this session was removed. */
export interface PermissionRuleRemovedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** Whether the rule allowed, asked or denied. */
  kind: RuleKind;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** The rule as text. */
  rule: string;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "permission.rule_removed";
}

/** The phase of a turn. */
export type Phase = "input" | "compact_check" | "context" | "normalize" | "model_call" | "tool_execution" | "result";

/** The planned change of a call on files. */
export type PlannedChange = PlannedChangeFiles | PlannedEdit;

/** The planned change of several files, in the order of execution. */
export interface PlannedChangeFiles {
  /** The files. */
  files: Array<PlannedFile>;
}

/** The planned change of one file. */
export interface PlannedEdit {
  /** Lines added. */
  added: number;
  /** Lines removed. */
  removed: number;
  /** SHA-256 of the content after the change, in hexadecimal. */
  sha256_after: string;
  /** SHA-256 of the content before the change, in hexadecimal; absent for a new file. */
  sha256_before?: string;
  /** Whether the model knows the whole file after the change. */
  whole: boolean;
}

/** The planned change of one of several files. */
export interface PlannedFile {
  /** Lines added. */
  added: number;
  /** The file, resolved. */
  path: string;
  /** Lines removed. */
  removed: number;
  /** SHA-256 of the content after the change, in hexadecimal; absent if the file is removed. */
  sha256_after?: string;
  /** SHA-256 of the content before the change, in hexadecimal; absent for a new file. */
  sha256_before?: string;
  /** Whether the model knows the whole file after the change. */
  whole: boolean;
}

/** A tool call whose targets and change were determined without running it. It is judged before the call may start. */
export interface PreparedCall {
  /** For calls that change a file: its content hash before and after. It is in the journal before the file is touched, so that after a crash the file shows whether the change took effect. */
  change?: PlannedChange;
  /** The change as a unified diff, for calls that change a file. */
  diff?: string;
  /** Whether the call changes nothing. */
  read_only: boolean;
  /** For commands: their confinement. */
  sandbox?: Confinement;
  /** The subject that the permission rules judge. */
  subject: Subject;
  /** One line for users. For Bash the first line of the command, then the model's description of it. */
  summary: string;
}

/** Prices in US dollars per million tokens, as vendors publish them. */
export interface Price {
  /** Input read from a cache. */
  cache_read?: number;
  /** Input written to a cache. */
  cache_write?: number;
  /** Input written to a cache for an hour, if it has a different price. */
  cache_write_1h?: number;
  /** Input that is neither read from nor written to a cache. */
  input?: number;
  /** Output. */
  output?: number;
  /** Factors on the prices of tokens in other service tiers. */
  tiers?: TierFactors;
  /** Price of a thousand web searches, in US dollars. */
  web_search?: number;
}

/** The state of a project's configuration file. */
export interface ProjectFileState {
  /** Its path. */
  file: string;
  /** A mistake in the file, with its line. Until it is fixed, only ask and deny rules are used. */
  problem?: string;
  /** Whether the folder is trusted in its current state. Without trust only ask and deny rules are used. */
  trusted: boolean;
}

/** Values of the project's configuration file for the engine and the tools, fixed when the session is created. Absent values are as in the daemon's configuration. */
export interface ProjectSettings {
  /** Maximum number of background commands. A lower limit of the daemon has priority. */
  background_commands?: number;
  /** `PROVIDER/MODEL` that answers when the provider limits the rate. */
  backup_model?: string;
  /** Time limit of a command that sets none, in milliseconds. */
  bash_timeout_ms?: number;
  /** How the conversation is made to fit the window. */
  compaction?: CompactionOverrides;
  /** `PROVIDER/MODEL` for conversations that exceed the window. */
  large_context_model?: string;
  /** Maximum bytes of one result for the model. A lower limit of the daemon has priority. */
  max_result_bytes?: number;
  /** Maximum bytes of all results of one message. A lower limit of the daemon has priority. */
  max_results_total_bytes?: number;
  /** Maximum output tokens of the first request for an answer. */
  output_tokens?: number;
  /** Maximum number of parallel calls. A lower limit of the daemon has priority. */
  parallel_tools?: number;
  /** `PROVIDER/MODEL` for images. */
  vision_model?: string;
}

/** Tokens of the parts of a prompt. */
export interface PromptTokens {
  /** Chunks. */
  chunks: number;
  /** Entities. */
  entities: number;
  /** The conversation before the query. */
  history: number;
  /** The query. */
  query: number;
  /** Relations. */
  relations: number;
  /** The system prompt without data. */
  system: number;
}

/** The result of trying a provider. */
export interface ProviderCheck {
  /** Why the provider cannot be used, without secrets. */
  error?: string;
  /** Time until the answer, in milliseconds; absent if the provider cannot be used. */
  latency_ms?: number;
  /** Names of the models that the provider offers, at most 1,000; absent if it has no list. */
  models?: Array<string>;
  /** Name of the provider. */
  name: string;
  /** Whether its address answers and accepts the key. */
  ok: boolean;
}

/** The purpose of a helper call, which is a model call outside the turns. */
export type Purpose = "title" | "compaction" | "knowledge" | "mcp" | "nested";

/** Why a query failed. */
export interface QueryError {
  /** A stable code. */
  kind: string;
  /** The text for users. */
  message: string;
}

/** The parts of the index that a query reads. */
export type QueryMode = "local" | "global" | "hybrid" | "naive" | "mix" | "bypass";

/** `knowledge.query`: a question about the index of a workspace, with the options of the search and of the answer. Methods give the value of an option, or its default if it is absent. */
export interface QueryParams {
  /** How chunks of entities are chosen. */
  chunk_pick?: ChunkPick;
  /** Maximum number of chunks to keep, 20 by default; `null` for the value of `top_k`. */
  chunk_top_k?: number;
  /** The conversation before the query, at most 128 messages. Only the model call for the answer contains it. */
  conversation_history?: Array<ChatMessage>;
  /** Whether the configured reranker, if there is one, ranks the chunks again; `true` by default. */
  enable_rerank?: boolean;
  /** The order of entities. */
  entity_order?: EntityOrder;
  /** Keywords for themes. If these or `ll_keywords` are given, the daemon does not ask a model for keywords. */
  hl_keywords?: Array<string>;
  /** Repeating the call with the same key returns the first reply. */
  idempotency_key?: string;
  /** Whether the result has the answer in `response` and its prompt in `context`. */
  include_context?: boolean;
  /** The language of keywords and answer. If it is absent, they use the language of the query. */
  language?: string;
  /** Keywords for names. */
  ll_keywords?: Array<string>;
  /** With mode `local`: whether relations are searched as well. */
  local_relations?: boolean;
  /** Maximum tokens of all entities, 6,000 by default. */
  max_entity_tokens?: number;
  /** Maximum tokens of all relations, 8,000 by default. */
  max_relation_tokens?: number;
  /** Maximum tokens of the whole prompt with the conversation, 30,000 by default. */
  max_total_tokens?: number;
  /** Chunks below this score of the reranker are dropped. */
  min_rerank_score?: number;
  /** The parts of the index that the query reads. */
  mode?: QueryMode;
  /** Whether the result has the prompt in `context` instead of an answer. */
  only_need_context?: boolean;
  /** The same as `only_need_context`. */
  only_need_prompt?: boolean;
  /** The question, at most 65,536 characters. */
  query: string;
  /** With modes `global` and `hybrid`: whether the chunks of relations are used as well. */
  relation_chunks?: boolean;
  /** The form of the answer, `Multiple Paragraphs` by default. */
  response_type?: string;
  /** Whether the reply comes at once with `query_id`. `knowledge.subscribe` then sends the events. */
  stream?: boolean;
  /** Maximum number of entities and of relations to find, 40 by default. */
  top_k?: number;
  /** Further instructions for the answer. */
  user_prompt?: string;
  /** The workspace folder whose index is queried, absolute. */
  workspace: string;
}

/** The result of a query. */
export interface QueryResult {
  /** The whole prompt, if the client requested it with `only_need_context` or `include_context`; empty if nothing was found. */
  context?: string;
  /** Why it failed. */
  error?: QueryError;
  /** The data that the query found. */
  raw_data: RawData;
  /** The answer; empty if the client requested only the context. */
  response: string;
  /** How it ended. */
  status: QueryStatus;
}

/** How a query ended. */
export type QueryStatus = "success" | "no_context" | "failed";

export type QuestionId = string;

/** The subject of a question. */
export type QuestionKind = "unknown_outcome" | "resume" | "question" | "repeated_call";

/** One suggested answer. */
export interface QuestionOption {
  /** Its meaning, or its consequences. */
  description?: string;
  /** The answer in a few words. The options of a question have different labels. */
  label: string;
}

/** The user must decide something other than a permission. */
export interface QuestionRequestedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The call that it is about, if any. */
  call_id?: CallId;
  /** For a question of a sub-agent, shown in the sessions above it: the session that waits. The answer goes to that session. */
  child_session_id?: SessionId;
  /** The call's full arguments. */
  input?: unknown;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The subject of the question. */
  kind: QuestionKind;
  /** The possible answers of the kinds `unknown_outcome`, `resume` and `repeated_call`. */
  options: Array<Choice>;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The call's output so far; only head and tail if it is long. */
  output?: string;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** With kind `question`: the questions of the model. Each of them needs an answer. */
  questions?: Array<UserQuestion>;
  /** Its id; a restart does not change it. */
  request_id: QuestionId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** The question as text for users. If a model asks several questions, this is the first one. */
  text: string;
  /** The call's tool. */
  tool?: string;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "question.requested";
}

/** A question was settled. */
export interface QuestionResolvedEvent {
  /** With kind `question`: the answer to each question; empty if an abort settled them. */
  answers?: Array<UserAnswer>;
  /** Time of the event. */
  at_ms: Timestamp;
  /** How it was settled: an answer, an abort or a submit. */
  by: SettledBy;
  /** The call that it was about, if any. */
  call_id?: CallId;
  /** For a question of a sub-agent: the session that waited. */
  child_session_id?: SessionId;
  /** The chosen option of the kinds `unknown_outcome`, `resume` and `repeated_call`. */
  choice?: Choice;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** Subject of the question. */
  kind: QuestionKind;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Id of the question. */
  request_id: QuestionId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "question.resolved";
}

/** `session.queue.clear` */
export interface QueueClearParams {
  /** A repeated call with the same key changes nothing more, and returns the current queue. */
  idempotency_key?: string;
  /** Id of the session. */
  session_id: SessionId;
}

/** `session.queue.list` */
export interface QueueListParams {
  /** `next_cursor` of the previous page. */
  cursor?: string;
  /** Turns per page, 1 to 500, 100 by default; fewer if their inputs are long. */
  limit?: number;
  /** Id of the session. */
  session_id: SessionId;
}

/** `session.queue.move` */
export interface QueueMoveParams {
  /** The queued turn that follows it afterwards; without it, the turn becomes the last one. */
  before?: TurnId;
  /** A repeated call with the same key changes nothing more, and returns the current queue. */
  idempotency_key?: string;
  /** Id of the session. */
  session_id: SessionId;
  /** The queued turn. */
  turn_id: TurnId;
}

/** Why a job does not start yet. */
export type QueueReason = "slots" | "concurrency" | "not_due" | "budget" | "paused" | "rate_limited" | "node";

/** `session.queue.remove` */
export interface QueueRemoveParams {
  /** A repeated call with the same key changes nothing more, and returns the current queue. */
  idempotency_key?: string;
  /** Id of the session. */
  session_id: SessionId;
  /** The queued turn. */
  turn_id: TurnId;
}

/** Reply of the `session.queue` methods: the queued turns, in the order of their start. */
export interface QueueReply {
  /** Cursor of the next page, if there is one. */
  next_cursor?: string;
  /** The queued turns of this page. */
  queue: Array<QueuedTurn>;
}

/** `session.queue.update` */
export interface QueueUpdateParams {
  /** A repeated call with the same key changes nothing more, and returns the current queue. */
  idempotency_key?: string;
  /** Its new input: text or blocks; must not be empty. Its options and its position in the queue stay unchanged. */
  input: SubmitInput;
  /** Id of the session. */
  session_id: SessionId;
  /** The queued turn. */
  turn_id: TurnId;
}

/** An input that waits for the running turn to end. */
export interface QueuedTurn {
  /** Whether it was queued before the other turns, by `when_busy: "interrupt"`. */
  front: boolean;
  /** Text, pictures and documents of the input. */
  input: Array<InputBlock>;
  /** Its approval mode, if not the session's. */
  mode?: Mode;
  /** Its model, if not the session's. */
  model?: string;
  /** The client that submitted it. */
  origin?: Origin;
  /** Time at which it was queued. */
  queued_at_ms: Timestamp;
  /** The turn that will process the input. */
  turn_id: TurnId;
}

/** The data that a query found, after the limits were applied. */
export interface RawData {
  /** Chunks in the order of the prompt. */
  chunks: Array<FoundChunk>;
  /** Entities in the order of the prompt. */
  entities: Array<FoundEntity>;
  /** Details of the search. */
  metadata: Metadata;
  /** The files of the chunks. */
  references: Array<Reference>;
  /** Relations in the order of the prompt. */
  relations: Array<FoundRelation>;
}

/** The version of a file that the model has seen. It prevents edits of a file that the model does not know. */
export interface ReadRecord {
  /** Lines that the model has seen completely, if it has seen only a part of the file. Each range has its first and last line, from 1, in order. */
  lines?: Array<Array<unknown>>;
  /** Modification time in nanoseconds since the Unix epoch. */
  mtime_ns: number;
  /** Resolved path. */
  path: string;
  /** SHA-256 of the content, in hexadecimal. */
  sha256: string;
  /** Size in bytes. */
  size: number;
  /** Number of lines of the file, if the model has seen only a part. */
  total_lines?: number;
  /** Whether the model has seen the whole file. */
  whole: boolean;
}

/** A file that contains chunks of the prompt. */
export interface Reference {
  /** Ids of the chunks. */
  chunk_ids: Array<string>;
  /** First and last line of each chunk, in their order in the file. Adjacent ranges are joined. */
  lines: Array<Array<unknown>>;
  /** Its path. */
  path: string;
  /** Id of the file in this result. `1` is the file with the most chunks; empty for chunks without a path. */
  reference_id: string;
}

/** A relation between two entities: an undirected edge of the graph. The pair of its ends is its key. */
export interface Relation {
  /** Its description. */
  description: string;
  /** Its keywords. */
  keywords: string;
  /** Name of the entity at one end. `source` and `target` keep the direction in which the relation was first described. */
  source: string;
  /** Name of the entity at the other end. */
  target: string;
  /** Its strength; a higher number means a stronger relation. */
  weight: number;
}

/** `daemon.reload` */
export interface ReloadParams {
  /** A repeated call with the same key and parameters returns the first reply, within 24 hours. */
  idempotency_key?: string;
}

/** Reply of `daemon.reload`. */
export interface ReloadReply {
  /** Keys that changed and apply from now on, for example `retry.attempts`. */
  changed: Array<string>;
  /** Keys that changed since the start and apply only after a restart. */
  needs_restart: Array<string>;
}

/** A reminder for the model was added to the newest message of the user's role. It stays there unchanged. */
export interface ReminderAddedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The versions of files that it reports, so that it reports each version once. */
  files?: Array<FileVersion>;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The occasion. */
  kind: ReminderKind;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** The text for the model. */
  text: string;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "reminder.added";
}

/** The occasion of a reminder. */
export type ReminderKind = "session_start" | "files_changed" | "instructions_changed" | "plan_mode" | "compacted" | "several_matches" | "new_day" | "servers_failed" | "subagents_aborted" | "todo_empty" | "todo_stale" | "repeated_call";

/** The new content of a tool result. */
export interface ReplacedResult {
  /** The call whose result it is. */
  call_id: CallId;
  /** The text that models receive from now on. */
  content: string;
}

/** The subject of a permission request. */
export type RequestKind = "tool" | "sandbox" | "plan";

/** The next request of a session to its model. */
export interface RequestView {
  /** Bytes of the body in the form of the provider, with the content of pictures and documents. */
  bytes: number;
  /** The conversation. Pictures and documents are named by their blobs. */
  messages: Array<Message>;
  /** `PROVIDER/MODEL`. */
  model: string;
  /** The system prompt. */
  system: string;
  /** The tools on offer, in the order of the request. */
  tools: Array<RequestedTool>;
}

/** A tool as a request offers it. */
export interface RequestedTool {
  /** Its description for the model. */
  description: string;
  /** JSON Schema of the input. */
  input_schema: unknown;
  /** Its name. */
  name: string;
}

/** The kind of decision that a session in `requires_action` waits for. */
export type Requires = "permission" | "question" | "unknown_outcome";

/** A path after links, `..` and `~` were resolved. */
export interface ResolvedPath {
  /** Whether it is in the session's workspace. */
  in_workspace: boolean;
  /** Other names of the same file (hard links) that a rule matches. */
  matched_aliases?: Array<string>;
  /** Absolute and free of links. The last components may not exist yet. */
  path: string;
  /** Whether writing there could change which code runs or which permissions apply. */
  sensitivity: PathSensitivity;
}

/** Why the daemon stops. Only a client can say that another daemon follows. */
export type RestartReason = "stop" | "restart" | "signal";

/** One restriction. */
export interface Restriction {
  /** The file that holds it; absent for restrictions of a session. */
  file?: string;
  /** Its kind. */
  kind: RestrictionKind;
  /** Its line in the file, from 1, if known. */
  line?: number;
  /** The restriction in force, or why it could not be read. */
  text: string;
}

/** The kind of a text that restricts. */
export type RestrictionKind = "rule" | "hook" | "agent" | "server";

/** Everything that restricts calls in a folder: the reply of `workspace.restrictions`. */
export interface Restrictions {
  /** The folder, absolute and free of links. */
  cwd: string;
  /** Restrictions in force. */
  in_force: Array<Restriction>;
  /** Texts that could not be read, or that match nothing. The calls that they may concern ask. */
  unread: Array<Restriction>;
}

/** `workspace.restrictions` */
export interface RestrictionsParams {
  /** The folder, absolute. */
  cwd: string;
}

/** A model call failed and is retried after a wait. */
export interface RetryEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The attempt that failed, from 1. */
  attempt: number;
  /** The wait, in milliseconds. */
  delay_ms: number;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The failure as a stable code, as in `error`: `rate_limited`, `overloaded`, `server`, `interrupted`, `idle`, `unreachable`, or `context_overflow`. */
  kind?: string;
  /** Maximum number of attempts; 0 means no maximum. */
  max: number;
  /** With `context_overflow`: the next attempt requests an answer of at most this many tokens, according to the limits that the provider reported. */
  max_output_tokens?: number;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** The failure as text. */
  reason: string;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "retry";
}

/** What a further attempt starts from. */
export type RetryMode = "fresh" | "continue";

/** When a failed attempt is repeated. An agent's work is not idempotent, so by default it is not. */
export interface RetryPolicy {
  /** Whether an attempt is repeated although a call that could reach outside of the worktree has an unknown outcome. */
  after_unknown?: boolean;
  /** Attempts in all, 1 to 20. */
  attempts?: number;
  /** Wait before the second attempt; it doubles with each further one. */
  backoff?: Duration;
  /** Longest wait. */
  max_backoff?: Duration;
  /** What the next attempt starts from. */
  mode?: RetryMode;
  /** Results that are repeated. Aborted attempts, refused permissions and exhausted budgets are never repeated. */
  on?: Array<Subtype>;
}

/** A file that prevents a rewind of the files. */
export interface RewindConflict {
  /** Absolute path. */
  path: string;
  /** Why the file cannot be rewound, as text for users. */
  reason: string;
}

/** `session.rewind` */
export interface RewindParams {
  /** Whether the daemon changes nothing and only reports what a rewind would change. */
  dry_run?: boolean;
  /** Whether the files that the session's file tools changed after the item get back their content of that moment. Changes by commands (Bash) are not rewound. */
  files?: boolean;
  /** A repeated call with the same key returns the reply of the first call. */
  idempotency_key?: string;
  /** The item that becomes the last one of the conversation. It must be complete. */
  item_id: ItemId;
  /** Id of the session. */
  session_id: SessionId;
}

/** Reply of `session.rewind`. With conflicts, nothing was changed. */
export interface RewindReply {
  /** Files that prevent the rewind. Either their content is not what the session last wrote, or their earlier content was not kept. */
  conflicts: Array<RewindConflict>;
  /** With `files`: the files that the session changed after the item. */
  files: Array<RewoundFile>;
  /** Ids of the removed items, in their order. */
  removed_items: Array<ItemId>;
}

/** A file of a rewind. */
export interface RewoundFile {
  /** The action of the rewind for the file. */
  action: FileAction;
  /** Absolute path. */
  path: string;
  /** In events: SHA-256 of its content after the rewind, in hexadecimal; absent if the file does not exist then. */
  sha256?: string;
}

/** The author of a message. */
export type Role = "user" | "assistant";

/** The effect of a rule on the calls that it covers. Deny overrides ask, and ask overrides allow. */
export type RuleKind = "allow" | "ask" | "deny";

/** A rule to add or remove: the parameters of `permission.add_rule` and `permission.remove_rule`. */
export interface RuleParams {
  /** The same key with the same parameters returns the first reply: for a session's rule until the session is deleted, else within 24 hours. */
  idempotency_key?: string;
  /** Whether the rule allows, asks or denies. */
  kind?: RuleKind;
  /** The rule, for example `Bash(npm run:*)`. */
  rule: string;
  /** `session`, `project` (its folder) or `user` (everywhere). */
  scope: RuleScope;
  /** With scope `session`: the session. With scope `project`: a session in the folder. */
  session_id?: SessionId;
  /** With scope `project`: the folder, absolute. */
  workspace?: string;
}

/** Reply of `permission.add_rule` and `permission.remove_rule`: the change applies from the next verdict on. */
export interface RuleReply {
  /** Whether the call changed anything. */
  changed: boolean;
  /** The text under which the rule is kept, if it differs from the given one: `Bash(rm:*)` for `Bash(rm *)`. */
  rule?: string;
}

/** The scope of a rule. The verdict does not depend on it. */
export type RuleScope = "managed" | "user" | "project" | "session";

/** A rule with its origin. */
export interface RuleView {
  /** Time at which it was added, if known. */
  added_at_ms?: Timestamp;
  /** The client that added it, if known. */
  by?: Origin;
  /** The file that contains it; absent for rules of a session. */
  file?: string;
  /** Whether the rule allows, asks or denies. */
  kind: RuleKind;
  /** Why the rule matches nothing, or why it would be refused if it were written now. */
  note?: string;
  /** The rule as written. */
  rule: string;
  /** Scope of the rule. */
  scope: RuleScope;
}

/** `permission.rules` */
export interface RulesParams {
  /** `next_cursor` of the previous page. */
  cursor?: string;
  /** Rules per page, 1 to 500; 500 by default. */
  limit?: number;
  /** A session whose rules, and the rules of its folder, are listed as well. */
  session_id?: SessionId;
  /** A folder whose rules are listed as well, absolute. */
  workspace?: string;
}

/** Reply of `permission.rules`. Deny overrides ask, and ask overrides allow, in every scope. */
export interface RulesReply {
  /** Cursor of the next page, if there is one. */
  next_cursor?: string;
  /** Problems of rule files: until they are fixed, every call in their scope needs a request. */
  problems?: Array<string>;
  /** Rules of this page. */
  rules: Array<RuleView>;
}

/** The confinement of commands in one kind of session. */
export interface SandboxChoice {
  /** 3 bubblewrap, 2 Landlock, 1 rlimits only, 0 off; absent if no command can run. */
  level?: number;
  /** Whether commands have network access. */
  network: boolean;
  /** The active protections, or why no command can run. */
  text: string;
}

/** The sandbox of commands, from the configuration and the capabilities of this machine. */
export interface SandboxReply {
  /** The confinement in attended sessions. */
  attended: SandboxChoice;
  /** `works`, or why level 3 (bubblewrap) does not work on this machine. */
  bubblewrap: string;
  /** `works`, followed by the protections that this machine lacks, or why level 2 (Landlock) does not work on it. */
  landlock: string;
  /** Whether the levels were tested. `false` shortly after the start of the daemon; the texts then say so. */
  tested?: boolean;
  /** The confinement in unattended sessions (`background: true`). */
  unattended: SandboxChoice;
}

/** A schedule as the methods return it. */
export interface Schedule {
  /** What happens to missed slots. */
  catch_up: CatchUp;
  /** Missed slots that are older do not fire. */
  catch_up_window: Duration;
  /** Time of its creation. */
  created_at_ms: Timestamp;
  /** The pattern. */
  cron?: string;
  /** Whether it fires. */
  enabled: boolean;
  /** Why it was disabled, or why its last slot made no job. */
  error?: string;
  /** The interval. */
  every?: Duration;
  /** Failures in a row since it was enabled. */
  failures: number;
  /** Random delay of each slot, below this time. */
  jitter: Duration;
  /** The content of each job. Lists and events leave out its prompt, system prompt and schema. */
  job: JobRequest;
  /** Its newest job. */
  last_job_id?: JobId;
  /** The newest slot that fired. */
  last_slot_ms?: Timestamp;
  /** After so many failures in a row the schedule is disabled; 0 for never. */
  max_failures: number;
  /** Short name for people. */
  name: string;
  /** When it fires next, with its random delay; absent if it is disabled or has no further slot. */
  next_fire_ms?: Timestamp;
  /** What happens while a job of the schedule is not over. */
  overlap: Overlap;
  /** Its id. */
  schedule_id: ScheduleId;
  /** IANA name of the zone in which `cron` counts. */
  timezone: string;
  /** No slot after this time. */
  until_ms?: Timestamp;
}

/** What happened to a schedule. */
export type ScheduleChange = "schedule.created" | "schedule.updated" | "schedule.deleted" | "schedule.fired" | "schedule.skipped" | "schedule.failed" | "schedule.disabled";

/** `schedule.delete`, `schedule.trigger` */
export interface ScheduleChangeParams {
  /** A repeated call with the same key returns the reply of the first call. */
  idempotency_key?: string;
  /** Id of the schedule. */
  schedule_id: ScheduleId;
}

export type ScheduleId = string;

/** Reply of `schedule.list`: oldest first. */
export interface ScheduleListReply {
  /** All schedules, without the prompts of their jobs. */
  schedules: Array<Schedule>;
}

/** `schedule.next` */
export interface ScheduleNextParams {
  /** Number of times, 1 to 1,000. */
  count: number;
  /** Five fields of cron, or `@hourly`, `@daily`, `@weekly`, `@monthly`. */
  cron: string;
  /** IANA name of a zone; by default that of the daemon's machine. */
  timezone?: string;
}

/** Reply of `schedule.next` */
export interface ScheduleNextReply {
  /** The next times, in order; fewer than asked for if the pattern has no more within four years. */
  times_ms: Array<Timestamp>;
}

/** The change of a schedule. */
export interface ScheduleNotification {
  /** The job that the slot made. */
  job_id?: JobId;
  /** What happened. */
  kind: ScheduleChange;
  /** The schedule as `schedule.list` shows it. */
  schedule: Schedule;
  /** The slot that fired or was skipped. */
  slot_ms?: Timestamp;
}

/** Selects one schedule. */
export interface ScheduleParams {
  /** Id of the schedule. */
  schedule_id: ScheduleId;
}

/** Reply with one schedule. */
export interface ScheduleReply {
  /** The schedule. */
  schedule: Schedule;
}

/** Changes of a schedule: `schedule.update`. Absent fields stay as they are. */
export interface ScheduleUpdate {
  /** What happens to missed slots. */
  catch_up?: CatchUp;
  /** Missed slots that are older do not fire. */
  catch_up_window?: Duration;
  /** A pattern, in place of the earlier pattern or interval. */
  cron?: string;
  /** Whether it fires. To enable it also sets the count of failures to 0; slots before that are not missed. */
  enabled?: boolean;
  /** An interval, in place of the earlier pattern or interval. */
  every?: Duration;
  /** A repeated call with the same key returns the reply of the first call. */
  idempotency_key?: string;
  /** Random delay of each slot; `0s` for none. */
  jitter?: Duration;
  /** The content of each later job, in place of the whole earlier one. */
  job?: JobRequest;
  /** After so many failures in a row the schedule is disabled; 0 for never. */
  max_failures?: number;
  /** Short name for people. */
  name?: string;
  /** What happens while a job of the schedule is not over. */
  overlap?: Overlap;
  /** Id of the schedule. */
  schedule_id: ScheduleId;
  /** IANA name of the zone. */
  timezone?: string;
  /** No slot after this time; 0 removes the end. */
  until_ms?: Timestamp;
}

/** How long an allow is valid. */
export type Scope = "once" | "session" | "project";

/** The tier of service in which a provider made a call. Tiers have different prices. */
export type ServiceTier = "standard" | "priority" | "flex" | "batch" | "scale";

/** A client archived the session, or restored it from the archive. An archived session is kept and accepts no input. */
export interface SessionArchivedEvent {
  /** Whether it is archived from now on. */
  archived: boolean;
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "session.archived";
}

/** A client attached. */
export interface SessionAttachedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Number of attached clients now. */
  clients: number;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "session.attached";
}

/** The change of a session that a notification reports. */
export type SessionChangeKind = "session.created" | "session.updated" | "session.ended";

/** The conversation started again. The model receives none of the earlier messages, and counts as not having read any file. The journal keeps the messages. */
export interface SessionClearedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "session.cleared";
}

/** The session was created. */
export interface SessionCreatedEvent {
  /** Optimisations that are turned off; fixed when the session is created. */
  ablation?: Ablation;
  /** Additional folders of the workspace, absolute and free of links. */
  additional_dirs?: Array<string>;
  /** The agent as which the session works; fixed when the session is created. */
  agent?: AgentProfile;
  /** Appended to the system prompt. */
  append_system_prompt?: string;
  /** Time of the event. */
  at_ms: Timestamp;
  /** Whether the session is unattended. */
  background?: boolean;
  /** Whether the model answers twice and a client chooses the answer; fixed when the session is created. */
  binary_feedback?: boolean;
  /** Limits of each turn. */
  budgets?: Budgets;
  /** Whether the session only plans and gives its work to sub-agents; fixed when the session is created. */
  coordinator?: boolean;
  /** The working folder, absolute and free of links. */
  cwd: string;
  /** `PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models] fallback`. */
  fallback_model?: string;
  /** For a fork: the session and the item with which its history begins. */
  forked_from?: ForkedFrom;
  /** SHA-256 of the messages with which the session begins, if there are any. */
  initial_digest?: string;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The job that the session is an attempt of; fixed when the session is created. */
  job_id?: JobId;
  /** Labels that the provider receives with each model request. */
  metadata?: Record<string, string>;
  /** Approval mode. */
  mode: Mode;
  /** `PROVIDER/MODEL`; empty if none is configured. */
  model: string;
  /** Handling of a turn that a restart interrupts; absent for the configured default. */
  on_restart?: OnRestart;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** JSON Schema that the results of turns must satisfy. */
  output_schema?: unknown;
  /** For a sub-agent: the call that started it; fixed when the session is created. */
  parent?: ParentCall;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** The root of the project that held the folder when the session was created. Later changes on the disk can move the root outwards only. */
  project_root?: string;
  /** Values of the project's configuration file for the engine and the tools; fixed when the session is created. */
  project_settings?: ProjectSettings;
  /** Whether tools run one at a time and every call needs a permission request. */
  safe_mode?: boolean;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Texts at which its models stop their answers. */
  stop?: Array<string>;
  /** Replaces the default system prompt. */
  system_prompt?: string;
  /** From 0, which nearly always selects the most likely token, to 2. */
  temperature?: Temperature;
  /** How much its models may think; absent for the vendor's default. */
  thinking?: Thinking;
  /** Short name for users. */
  title: string;
  /** The tools on offer. */
  tools?: ToolChoice;
  /** The probability mass of the most likely tokens to choose from, from 0 to 1. */
  top_p?: TopP;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "session.created";
  /** The worktree of the daemon that the session works in; fixed when the session is created. */
  worktree?: SessionWorktree;
}

/** A client detached. */
export interface SessionDetachedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Number of attached clients now. */
  clients: number;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "session.detached";
}

/** The session was killed and accepts no more input. */
export interface SessionEndedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Reason of the end. */
  reason: string;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "session.ended";
}

/** Names and values. They are in no event, export or log: `Debug` shows the names only. */
export type SessionEnvironment = Record<string, string>;

/** The parameters of the notification `session.event`. */
export interface SessionEventNotification {
  result: Envelope;
  subscription: SubscriptionId;
}

/** The history before this event was copied from another session. Its turns and costs are those of that session. */
export interface SessionForkedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Tokens of the newest copied answer and of its request. */
  context_tokens?: number;
  /** The source of the copy. */
  forked_from: ForkedFrom;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "session.forked";
}

export type SessionId = string;

/** The sub-agent takes over the read files of the session that started it. */
export interface SessionInheritedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** The files that the other session has read. */
  reads: Array<ReadRecord>;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "session.inherited";
}

/** The change of a session. */
export interface SessionNotification {
  /** Whether the session was deleted with its history. */
  deleted?: boolean;
  /** The change of the session. */
  kind: SessionChangeKind;
  /** The session as `session.list` shows it, at the time of the notification. */
  session: SessionView;
}

/** Selects one session. */
export interface SessionParams {
  /** Id of the session. */
  session_id: SessionId;
}

/** The system prompt was built. It is stored, so that it stays byte-identical. */
export interface SessionPromptBuiltEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The files with project instructions that it contains. A reminder reports a later change of them to the model. Absent in journals of older versions. */
  instructions?: Array<FileVersion>;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** Instructions that were left out, each with the reason. */
  skipped_instructions?: Array<string>;
  /** Sources of its parts, as text for users. */
  sources: Array<string>;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** The complete system prompt. */
  system: string;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "session.prompt_built";
}

/** Reply of `session.create` and `session.get` */
export interface SessionReply {
  /** The session as `session.list` shows it. */
  session: SessionView;
}

/** The conversation was rewound: the item `item_id` is its last one again. The events of the removed items stay in the journal. */
export interface SessionRewoundEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Tokens of the newest remaining answer and of its request. */
  context_tokens?: number;
  /** The folder of further commands. */
  cwd: string;
  /** The files that were rewound as well. */
  files?: Array<RewoundFile>;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** Number of messages at the beginning that are unchanged. */
  kept_messages: number;
  /** `first_seq` of the item that becomes the last one. Items that began later are removed. */
  last_item_seq: number;
  /** The messages after the unchanged ones. Most rewinds need none. */
  messages?: Array<Message>;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** The versions of files that the model had seen at that item. */
  reads?: Array<ReadRecord>;
  /** Ids of the removed items, in their order. */
  removed_items: Array<ItemId>;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** The todo list at that item. Absent in journals of older versions. */
  todos?: Array<Todo>;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "session.rewound";
}

/** State of a session. */
export type SessionState = "idle" | "running" | "requires_action" | "paused" | "failed" | "ended" | "archived";

/** The session's state changed. */
export interface SessionStatusEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** The kind of decision that it waits for. */
  requires?: Requires;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** New state of the session. */
  state: SessionState;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "session.status";
}

/** The title or options of the session changed. Unchanged ones are absent. Mode, safe mode, folders and fallback model apply at once. */
export interface SessionUpdatedEvent {
  /** The complete list of additional existing folders of the workspace, absolute. Those of a session apply at once; their AGENTS.md is read when the next turn starts. */
  additional_dirs?: Array<string>;
  /** Appended to the system prompt; empty for nothing. */
  append_system_prompt?: string;
  /** Time of the event. */
  at_ms: Timestamp;
  /** Limits of a turn. In a session they replace all previous limits. */
  budgets?: Budgets;
  /** The slash command whose expansion is the input; never a setting of a session. */
  command?: SlashCommand;
  /** The turn has no input and only compacts the conversation; never a setting of a session. */
  compact?: CompactRequest;
  /** `PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models] fallback`. Empty for that default. */
  fallback_model?: string;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** Labels that the provider receives with each model request: at most 16, with keys of at most 64 and values of at most 512 bytes. Anthropic accepts only `user_id`. */
  metadata?: Record<string, string>;
  /** Approval mode. A session's applies from the next verdict on, also in a running turn; pending requests that it allows are settled. */
  mode?: Mode;
  /** `PROVIDER/MODEL`. A parameter may also be the name of a pointer of `[models]`, for example `reasoning`. The system prompt names the model, so another one begins a new prompt cache. */
  model?: string;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** JSON Schema of the result: `turn.completed.result.structured` is a value that satisfies it. `{}` for none. References to other documents are refused. */
  output_schema?: unknown;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Whether tools run one at a time and every call needs a permission request. */
  safe_mode?: boolean;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Texts at which the model stops its answer: at most 4, of at most 256 bytes each. */
  stop?: Array<string>;
  /** Replaces the default system prompt; empty for the default. Another system prompt begins a new prompt cache. */
  system_prompt?: string;
  /** Temperature, from 0, which nearly always selects the most likely token, to 2. A running turn keeps its setting. */
  temperature?: Temperature;
  /** How much the model may think. A running turn keeps its setting. */
  thinking?: Thinking;
  /** New title. */
  title?: string;
  /** Source of the title, if no client set it. */
  titled_by?: TitledBy;
  /** The tools on offer; `{}` for all. */
  tools?: ToolChoice;
  /** The probability mass of the most likely tokens to choose from, from 0 to 1. Vendors advise to set only one of `temperature` and `top_p`. */
  top_p?: TopP;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "session.updated";
}

/** A session as `session.list` and `session.get` return it. */
export interface SessionView {
  /** Optimisations that are turned off. */
  ablation?: Ablation;
  /** The calls that run or wait for an answer, in one line. */
  activity?: string;
  /** Additional folders of the workspace. */
  additional_dirs?: Array<string>;
  /** Name of the agent as which the session works. */
  agent?: string;
  /** Appended to the system prompt. */
  append_system_prompt?: string;
  /** Attached clients. */
  attached?: Array<AttachedClient>;
  /** Whether the session is unattended. */
  background: boolean;
  /** Commands that run in the background now. */
  background_commands?: Array<BackgroundCommand>;
  /** Whether the model answers twice and a client chooses the answer. */
  binary_feedback?: boolean;
  /** Limits of each turn. */
  budgets?: Budgets;
  /** Clients attached now. */
  clients: number;
  /** Tokens of the newest answer and of its request, which fill the context window. Absent before the first answer. */
  context_tokens?: number;
  /** Whether the session only plans and gives its work to sub-agents. */
  coordinator?: boolean;
  /** Cost of the calls whose price is known, in millionths of a dollar: a lower bound of the total cost. */
  cost_at_least_usd_micros?: number;
  /** Cost so far, in millionths of a dollar; `null` if a price is unknown. */
  cost_usd_micros?: number;
  /** Time of its creation. */
  created_at_ms: Timestamp;
  /** Its folder. */
  cwd: string;
  /** Names of the variables that a client sent for its commands; absent if they get those of the daemon. */
  env?: Array<string>;
  /** `PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model, if the session has its own. */
  fallback_model?: string;
  /** For a fork: the session and the item with which its history begins. */
  forked_from?: ForkedFrom;
  /** The job that the session is an attempt of. */
  job_id?: JobId;
  /** Last line of text in the conversation. */
  last_line?: string;
  /** Seq of its newest event. */
  last_seq: number;
  /** How its last turn ended; absent before the first end. */
  last_turn?: LastTurn;
  /** With `search`: the newest messages that contain the words, at most three. */
  matches?: Array<TextMatch>;
  /** Labels that the provider receives. */
  metadata?: Record<string, string>;
  /** Approval mode. */
  mode: Mode;
  /** `PROVIDER/MODEL`. */
  model: string;
  /** The ledger by `PROVIDER/MODEL`. Lists omit it: `model.usage` returns it for many sessions. */
  models?: Record<string, ModelUsage>;
  /** What the user should know: hooks that cannot be used, or a hook that failed. */
  notice?: string;
  /** A small number that is accepted instead of the id. It is unique in its daemon and never used again. */
  number?: number;
  /** Handling of a turn that a restart interrupts. */
  on_restart?: OnRestart;
  /** JSON Schema that the results of turns must satisfy. */
  output_schema?: unknown;
  /** For a sub-agent: the `Task` call that started it. */
  parent_call_id?: CallId;
  /** For a sub-agent: the session whose `Task` call started it. */
  parent_session_id?: SessionId;
  /** The root of the session's project: the files of all folders from there to `cwd` count. */
  project_root?: string;
  /** Values of the project's configuration file for the engine and the tools. */
  project_settings?: ProjectSettings;
  /** The kind of decision that it waits for, in `requires_action`. */
  requires?: Requires;
  /** Whether tools run one at a time and every call needs a permission request. */
  safe_mode?: boolean;
  /** Its id. */
  session_id: SessionId;
  /** Its state. */
  state: SessionState;
  /** Texts at which its models stop their answers. */
  stop?: Array<string>;
  /** Replaces the default system prompt. */
  system_prompt?: string;
  /** From 0, which nearly always selects the most likely token, to 2. */
  temperature?: Temperature;
  /** How much its models may think; absent for the vendor's default. */
  thinking?: Thinking;
  /** Short name. */
  title: string;
  /** The todo list of the model. */
  todos?: Array<Todo>;
  /** The tools on offer; `{}` for all. */
  tools?: ToolChoice;
  /** The probability mass of the most likely tokens to choose from, from 0 to 1. */
  top_p?: TopP;
  /** The running or paused turn, if any. */
  turn_id?: TurnId;
  /** Time of the newest change; attaching and detaching clients do not count. */
  updated_at_ms: Timestamp;
  /** Tokens of all its model calls. */
  usage: Usage;
  /** The worktree that the session works in. */
  worktree?: SessionWorktree;
}

/** The worktree that a session works in. */
export interface SessionWorktree {
  /** The commit that it started from. */
  base: string;
  /** The folder that it was made for. The rules of this folder hold in the worktree. */
  base_folder: string;
  /** Its branch. */
  branch: string;
  /** Its folder, absolute. */
  path: string;
  /** For a fork: the session with which it shares the worktree. The worktree stays until both have ended. */
  shared_with?: SessionId;
}

/** How a permission request or a question was settled. */
export type SettledBy = "answer" | "abort" | "submit" | "timeout" | "no_approver" | "rule" | "mode";

/** How the daemon stops. A repeated call with `now` speeds up a running stop. */
export type ShutdownMode = "drain" | "now";

/** `daemon.shutdown` */
export interface ShutdownParams {
  /** How running tools are stopped. */
  mode?: ShutdownMode;
  /** Whether the caller starts another daemon afterwards. Other clients are told so. */
  restart?: boolean;
}

/** A slash command that a user typed: `/name arguments`. */
export interface SlashCommand {
  /** Allow rules that hold until the turn ends, from the command's `allowed-tools`. Rules that deny or ask have priority. */
  allow_rules?: Array<string>;
  /** The text after the name, as it was typed. */
  arguments?: string;
  /** The name without the slash, for example `review` or `team:review`. */
  name: string;
  /** Whether these rules hold only while the folder is trusted, because the command is a file of the project. */
  needs_trust?: boolean;
  /** The parts of the expansion, if some of them are filled in before the model receives the text. */
  parts?: Array<CommandPart>;
}

/** A started index job, or only its estimate: the reply of `knowledge.index`. */
export interface StartedIndexJob {
  /** The estimated work of the job. */
  estimate: IndexEstimate;
  /** Id of the job; absent with `dry_run`. */
  job_id?: string;
}

/** Reply of `daemon.status` */
export interface StatusReply {
  /** Number of sessions that run or wait for the user. */
  active_sessions: number;
  /** Daily backups of the database, newest first. */
  backups?: Array<string>;
  /** Configuration files that were read. */
  config_files: Array<string>;
  /** How the daemon enforces limits on commands on this machine: by a cgroup and its controllers, or by rlimits. */
  confinement?: string;
  /** Path of its data folder. */
  data_dir: string;
  /** The newest message about a job of the last seven days whose last try failed. */
  failed_delivery?: FailedDelivery;
  /** How many jobs are in which state. */
  jobs?: JobCounts;
  /** Size of the journal in bytes, a few seconds old at most. */
  journal_bytes?: number;
  /** Result of the last reload of the configuration; absent if it was not reloaded since the start. */
  last_reload?: LastReload;
  /** Ids of processes of an earlier daemon that this daemon could not end at its start. */
  leftovers?: Array<number>;
  /** Sessions in memory; the others are loaded when they are used. */
  loaded_sessions?: number;
  /** The model used when a session names none. */
  main_model?: string;
  /** Variables of the environment from which configured providers take their keys, and which the daemon lacks. */
  missing_key_variables?: Array<string>;
  /** Its process id. */
  pid: number;
  /** The protocol version. */
  protocol_version: number;
  /** Configured providers. */
  providers: Array<string>;
  /** Resident memory of the daemon in bytes; 0 if it is not known. */
  resident_bytes?: number;
  /** The sandbox of commands. */
  sandbox?: SandboxReply;
  /** Number of known sessions. */
  sessions: number;
  /** Path of its socket. */
  socket: string;
  /** Time of its start. */
  started_at_ms: Timestamp;
  /** `ok`, or the problem of the storage. */
  storage: string;
  /** Notices about damaged databases, one text for each database that was replaced. */
  storage_notices?: Array<string>;
  /** The daemon's version. */
  version: string;
}

/** Why an answer ended. */
export type StopReason = "end_turn" | "tool_use" | "max_tokens" | "stop_sequence" | "refusal" | "pause";

/** The provider has sent nothing for a while (`[retry] idle_warn`). This is only a warning: after `[retry] idle_timeout` the attempt counts as failed. */
export interface StreamIdleEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** Duration of the silence, in milliseconds. */
  silent_ms: number;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "stream.idle";
}

/** A sub-agent ended. Its usage counts for this session and its turn from now on. */
export interface SubagentCompletedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Id of the call. */
  call_id: CallId;
  /** The session of the sub-agent. */
  child_session_id: SessionId;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** The result of the turn that worked on the call's prompt. */
  result: TurnResult;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "subagent.completed";
}

/** A `Task` call starts a sub-agent. The session `child_session_id` is created after this event. */
export interface SubagentStartedEvent {
  /** Name of its agent. */
  agent: string;
  /** Time of the event. */
  at_ms: Timestamp;
  /** Whether the call returns at once and the sub-agent continues. */
  background?: boolean;
  /** The limits of the sub-agent. They are the part of this session's limits that is reserved for it. */
  budgets?: Budgets;
  /** Id of the call. */
  call_id: CallId;
  /** The session of the sub-agent. */
  child_session_id: SessionId;
  /** Its task in a few words, as the model wrote them. */
  description?: string;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "subagent.started";
}

/** The subject that the permission rules judge. */
export type Subject = SubjectRead | SubjectEdit | SubjectDelete | SubjectWeb | SubjectSeveral | SubjectBash | SubjectBackground | SubjectBlob | SubjectSession | SubjectTask | SubjectQuestion | SubjectProposedPlan | SubjectMcp | SubjectTool;

/** Reads or ends a background command of the session itself. */
export interface SubjectBackground {
  /** Name of the command. */
  bash_id: BashId;
  kind: "background";
}

/** Runs a command. */
export interface SubjectBash {
  /** Whether it continues in the background after its call returned. */
  background?: boolean;
  /** The exact text. */
  command: string;
  /** The folder in which it starts, if an earlier command changed it to another one than the workspace itself. */
  cwd?: string;
  kind: "bash";
}

/** Reads a blob of the session itself. */
export interface SubjectBlob {
  /** Id of the blob. */
  blob_id: BlobId;
  kind: "blob";
}

/** Removes a file. */
export interface SubjectDelete {
  kind: "delete";
  /** The object that will be removed. */
  path: ResolvedPath;
}

/** Creates or changes a file. */
export interface SubjectEdit {
  kind: "edit";
  /** The object that will be written. */
  path: ResolvedPath;
}

/** Calls a tool of an MCP server. */
export interface SubjectMcp {
  /** Tools of other servers that one rule text can mean as well as this tool. */
  confusable?: Array<McpToolName>;
  /** Digest of the tool's definition. */
  digest: string;
  /** Whether the definition differs from the one that was approved last. */
  is_changed?: boolean;
  kind: "mcp";
  /** The name for the model and for rules, `mcp__SERVER__TOOL`. */
  name: string;
  /** The server's name in the configuration. */
  server: string;
  /** The tool's name on the server. */
  tool: string;
}

/** Presents a plan for approval. Its text is in the arguments of the call. */
export interface SubjectProposedPlan {
  kind: "proposed_plan";
}

/** Asks the user. It needs no permission. */
export interface SubjectQuestion {
  kind: "question";
  /** The questions of the model. */
  questions: Array<UserQuestion>;
}

/** Reads or lists a path. */
export interface SubjectRead {
  kind: "read";
  /** The object that will be opened. */
  path: ResolvedPath;
}

/** Reads or changes only what belongs to the session itself, for example its todo list. */
export interface SubjectSession {
  kind: "session";
  /** Name of the tool. */
  tool: string;
}

/** Several subjects: each is judged, and the strictest verdict counts. */
export interface SubjectSeveral {
  kind: "several";
  /** The parts; none of them is `Several`. */
  parts: Array<Subject>;
}

/** Starts a sub-agent. The rules judge the calls of the sub-agent separately. */
export interface SubjectTask {
  /** Name of the agent. */
  agent: string;
  /** Whether the call returns at once and the sub-agent continues. */
  background?: boolean;
  kind: "task";
  /** Whether the agent has no tool that changes anything. */
  read_only?: boolean;
}

/** Any other tool. */
export interface SubjectTool {
  kind: "tool";
  /** Its name. */
  name: string;
}

/** Fetches a web page. */
export interface SubjectWeb {
  /** Its host, lower case, without a port. */
  host: string;
  kind: "web";
  /** The complete URL. */
  url: string;
}

/** One block of an input. */
export type SubmitBlock = SubmitBlockText | SubmitBlockImage | SubmitBlockFile | SubmitBlockDocument | SubmitBlockResourceLink;

/** A PDF of at most 32 MiB, or a text of at most 256 KiB. */
export interface SubmitBlockDocument {
  /** The content itself, in base64. */
  data?: string;
  /** Its media type, for display only. The daemon determines the type from the content. */
  media_type?: string;
  /** Its name; by default its path. */
  name?: string;
  /** A file on the daemon's machine: absolute, or relative to the session's folder. With `text` it is only a name, and nothing is read. */
  path?: string;
  /** The text itself, for example a part of a file, or a buffer of an editor. */
  text?: string;
  type: "document";
  /** Whether `text` differs from the file, because the user has not saved it. The model is told so. */
  unsaved?: boolean;
}

/** An image, a PDF of at most 32 MiB, or a text file of at most 256 KiB. */
export interface SubmitBlockFile {
  /** The content itself, in base64. */
  data?: string;
  /** Its media type, for display only. The daemon determines the type from the content. */
  media_type?: string;
  /** Its name; by default its path. */
  name?: string;
  /** A file on the daemon's machine: absolute, or relative to the session's folder. The daemon reads it once, so later changes have no effect. */
  path?: string;
  type: "file";
}

/** A PNG, JPEG, GIF or WebP, of at most 20 MiB. An image larger than models accept is scaled down. */
export interface SubmitBlockImage {
  /** The content itself, in base64. */
  data?: string;
  /** Its media type, for display only. The daemon determines the type from the content. */
  media_type?: string;
  /** Its name; by default its path. */
  name?: string;
  /** A file on the daemon's machine: absolute, or relative to the session's folder. The daemon reads it once, so later changes have no effect. */
  path?: string;
  type: "image";
}

/** A reference to a resource. With `server`, the daemon reads the content from that MCP server. Without `server`, it reads a `file:` URI like a file block. For any other URI, the model receives only the name and the URI. */
export interface SubmitBlockResourceLink {
  /** Its name, at most 200 bytes; by default its path or URI. */
  name?: string;
  /** Name of the MCP server that has the resource, as in `mcp.list` for this session. */
  server?: string;
  type: "resource_link";
  /** Its URI, at most 2,000 bytes. */
  uri: string;
}

/** Text. */
export interface SubmitBlockText {
  /** The text itself. */
  text: string;
  type: "text";
}

/** The input of a submit: a text, or blocks. */
export type SubmitInput = string | Array<SubmitBlock>;

/** The result of a submit, the reply of `session.submit`: the input is on disk. */
export interface SubmitOutcome {
  /** The item that the user's message has, or will have once its turn starts or the model receives it. Absent for a command without a message. */
  item_id?: ItemId;
  /** Seq of the event that records the input. */
  seq: number;
  /** Whether the turn started, waits, was steered, or is already done. */
  state: AcceptedState;
  /** The answer of a command that needs no model. The event `command.completed` contains it as well. */
  text?: string;
  /** The turn that processes the input. A command that needs no model belongs to the running turn, if there is one. */
  turn_id: TurnId;
}

/** `session.submit`. An option that is absent has the session's value. */
export interface SubmitParams {
  /** The complete list of additional existing folders of the workspace, absolute. Those of a session apply at once; their AGENTS.md is read when the next turn starts. */
  additional_dirs?: Array<string>;
  /** Appended to the system prompt; empty for nothing. */
  append_system_prompt?: string;
  /** Limits of a turn. In a session they replace all previous limits. */
  budgets?: Budgets;
  /** The submit is refused unless this is the current turn. */
  expected_turn_id?: TurnId;
  /** `PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models] fallback`. Empty for that default. */
  fallback_model?: string;
  /** The same key with the same input returns the same turn, also after a restart. */
  idempotency_key?: string;
  /** Text or blocks; must not be empty. */
  input: SubmitInput;
  /** Labels that the provider receives with each model request: at most 16, with keys of at most 64 and values of at most 512 bytes. Anthropic accepts only `user_id`. */
  metadata?: Record<string, string>;
  /** Approval mode. A session's applies from the next verdict on, also in a running turn; pending requests that it allows are settled. */
  mode?: Mode;
  /** `PROVIDER/MODEL`. A parameter may also be the name of a pointer of `[models]`, for example `reasoning`. The system prompt names the model, so another one begins a new prompt cache. */
  model?: string;
  /** JSON Schema of the result: `turn.completed.result.structured` is a value that satisfies it. `{}` for none. References to other documents are refused. */
  output_schema?: unknown;
  /** Whether to send the text to the model even if it looks like a slash command or a note. Otherwise a single text block of one line is a command (`/name …`) or a note for the project instructions (`# …`). */
  raw?: boolean;
  /** Whether tools run one at a time and every call needs a permission request. */
  safe_mode?: boolean;
  /** Id of the session. */
  session_id: SessionId;
  /** Texts at which the model stops its answer: at most 4, of at most 256 bytes each. */
  stop?: Array<string>;
  /** Replaces the default system prompt; empty for the default. Another system prompt begins a new prompt cache. */
  system_prompt?: string;
  /** Temperature, from 0, which nearly always selects the most likely token, to 2. A running turn keeps its setting. */
  temperature?: Temperature;
  /** How much the model may think. A running turn keeps its setting. */
  thinking?: Thinking;
  /** The tools on offer; `{}` for all. */
  tools?: ToolChoice;
  /** The probability mass of the most likely tokens to choose from, from 0 to 1. Vendors advise to set only one of `temperature` and `top_p`. */
  top_p?: TopP;
  /** The action if a turn runs. By default the input is queued, and pending questions whether to continue are settled with `continue`. */
  when_busy?: WhenBusy;
}

/** `session.subscribe` */
export interface SubscribeParams {
  /** Only events after this seq; 0, the default, for the whole journal. */
  after_seq?: number;
  /** Filter of the events; by default all of them. */
  include?: Include;
  /** Id of the session. */
  session_id: SessionId;
}

/** The id of a subscription, which its notifications name. */
export type SubscriptionId = string;

/** How a turn ended. */
export type Subtype = "success" | "error_during_execution" | "error_max_turns" | "error_max_budget_usd" | "error_max_tokens" | "error_max_time" | "max_output_tokens" | "aborted" | "permission_denied" | "structured_output_invalid" | "error_repeated_call" | "llm_error";

/** Why a turn switches to another model. */
export type SwitchReason = "overloaded" | "unavailable" | "not_found" | "rate_limited" | "large_context" | "vision";

/** A number with at most three decimals; finer ones are rounded. */
export type Temperature = number;

/** A file that is not used as a template. */
export interface TemplateDiagnostic {
  /** Why it is not used. */
  message: string;
  /** The file. */
  path: string;
}

/** A parameter of a template. */
export interface TemplateParameter {
  /** Its value if none is given. */
  default?: unknown;
  /** What it is for. */
  description?: string;
  /** The only possible values. */
  enum?: Array<unknown>;
  /** A regular expression that the whole value matches. */
  pattern?: string;
  /** Whether a value must be given. */
  required?: boolean;
  /** `string`, `integer`, `number` or `boolean`. */
  type: string;
}

/** A message that contains the searched words. */
export interface TextMatch {
  /** Id of the message's item. */
  item_id: ItemId;
  /** The part of its text around the words. */
  snippet: string;
}

/** How much a model may think: a level, or a maximum number of tokens. */
export type Thinking = "off" | "auto" | "low" | "medium" | "high" | number;

/** Filter of the models' thinking. Omitted events leave a gap in `seq`; messages keep every block at its position. */
export type ThinkingShown = "full" | "summary" | "none";

/** Factors on the prices of tokens, by service tier. The standard tier has the factor 1. */
export interface TierFactors {
  /** Factor of `batch`; without it, the standard price is an upper limit. */
  batch?: number;
  /** Factor of `flex`; without it, the standard price is an upper limit. */
  flex?: number;
  /** Factor of `priority`; without it, the cost of such a call is unknown. */
  priority?: number;
  /** Factor of `scale`; without it, the cost of such a call is unknown. */
  scale?: number;
}

/** Milliseconds since the Unix epoch (`…_ms` on the wire). */
export type Timestamp = number;

/** The source of a session's title, if no client set it. */
export type TitledBy = "prompt" | "model";

/** One entry of a todo list. */
export interface Todo {
  /** The text to show while the task is in progress, for example `Running the tests`. */
  active_form?: string;
  /** The task in the imperative, for example `Run the tests`. */
  content: string;
  /** Its status. */
  status: TodoStatus;
}

/** Status of an entry of a todo list. */
export type TodoStatus = "pending" | "in_progress" | "completed";

/** The model changed the todo list of the session. */
export interface TodoUpdatedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** The whole new list. */
  todos: Array<Todo>;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "todo.updated";
}

/** Why a partial answer is discarded. */
export type TombstoneReason = "model_switched" | "output_limit" | "not_chosen" | "chosen";

/** A command continues in the background after its call returned, or it ended. It belongs to the session: `turn_id` is present only while the turn that started it runs. */
export interface ToolBackgroundEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Its name in the session, for example `bash_1`. */
  bash_id: BashId;
  /** The call that started it. */
  call_id: CallId;
  /** The beginning of the command, with `running`. */
  command?: string;
  /** Duration of the run, in milliseconds. */
  duration_ms?: number;
  /** Exit code of the shell; after a signal 128 plus its number. */
  exit_code?: number;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The cause of its end, with `killed`. */
  killed_by?: KilledBy;
  /** A note about its end, for example an exceeded limit, or output that could not be kept. */
  note?: string;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** Its full output, as far as the daemon kept it; absent without output. */
  output_blob?: BlobRef;
  /** Total bytes of its output. */
  output_bytes?: number;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** Number of the signal that ended it. */
  signal?: number;
  /** State of the command. */
  state: BackgroundState;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Ids of its processes that could not be ended. */
  survivors?: Array<number>;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "tool.background";
}

/** A command ran and failed, and the sandbox probably blocked it. A `permission.requested` of kind `sandbox` follows, which asks for a second run outside. The effects of the first run remain. This result becomes the result of the call unless there is a second run. */
export interface ToolBlockedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The part of the sandbox that blocked it. */
  blocked: Blocked;
  /** Id of the call. */
  call_id: CallId;
  /** A stable code of the failure. */
  code?: string;
  /** The folder for further commands, if it changed. */
  cwd?: string;
  /** Additional data for clients: exit code, counts. */
  detail?: unknown;
  /** Duration from start to end, in milliseconds. */
  duration_ms: number;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** Output of the first run, as the model would receive it. */
  output: string;
  /** The full output, if `output` is only its beginning and its end. */
  output_blob?: BlobRef;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** Status of the first run. */
  status: ToolStatus;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Name of the tool. */
  tool: string;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "tool.blocked";
}

/** The tools that a session offers its models. By default it offers all tools. */
export interface ToolChoice {
  /** Only these tools; absent for all. */
  allow?: Array<string>;
  /** Tools that are not offered. */
  deny?: Array<string>;
}

/** A tool call ended, with any status. */
export interface ToolCompletedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Pictures and documents that the model receives with the result. */
  attachments?: Array<Attachment>;
  /** For BashOutput: how much of a background command's output the model has now received. */
  background_read?: BackgroundRead;
  /** Id of the call. */
  call_id: CallId;
  /** A stable code of a failure. */
  code?: string;
  /** The folder for further commands, if it changed. */
  cwd?: string;
  /** Additional data for clients: exit code, counts, encoding. */
  detail?: unknown;
  /** Duration from start to end, in milliseconds; 0 if it never ran. */
  duration_ms: number;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The output for the model. */
  output: string;
  /** The full output, if `output` is only its beginning and its end. */
  output_blob?: BlobRef;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** The versions of files that the model has now seen. */
  reads?: Array<ReadRecord>;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** Status of the call. */
  status: ToolStatus;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Name of the tool. */
  tool: string;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "tool.completed";
}

/** `tool.list` */
export interface ToolListParams {
  /** `next_cursor` of the previous page. */
  cursor?: string;
  /** Tools per page, at most 500; 100 by default. */
  limit?: number;
}

/** Reply of `tool.list` */
export interface ToolListReply {
  /** Cursor of the next page; absent on the last page. */
  next_cursor?: string;
  /** Tools of this page, sorted by name. */
  tools: Array<ToolView>;
}

/** Output of a running tool, or of a background command until it ends. Pruned. */
export interface ToolProgressEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Id of the call. */
  call_id: CallId;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** `stdout`, to which both streams of a command go in the order of their writes, or `progress` for a note that says how far a call without output is. Older journals have `stderr` as well. */
  stream: string;
  /** The new part. */
  text: string;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "tool.progress";
}

/** The model requested a tool call. The rest of its message may still be streaming. */
export interface ToolRequestedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Id of the call. */
  call_id: CallId;
  /** The full arguments. */
  input: unknown;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** The provider's id of the call, if its message is still streaming. */
  provider_id?: string;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** The call as one line for users, from its arguments alone: a command, or a verb and a path. Absent in events of versions before 0.2. */
  summary?: string;
  /** Name of the tool. */
  tool: string;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "tool.requested";
}

/** Execution starts. The event is written and synced before the tool runs. */
export interface ToolStartedEvent {
  /** The rule, mode or answered request that allows it. */
  allowed_by: string;
  /** Time of the event. */
  at_ms: Timestamp;
  /** Number of the run; 1 if absent. 2 means that the command runs again, outside the sandbox that blocked its first run. */
  attempt?: number;
  /** Id of the call. */
  call_id: CallId;
  /** For calls that change a file: its content hash before and after. */
  change?: PlannedChange;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Whether it changes nothing. */
  read_only: boolean;
  /** For commands: their confinement. */
  sandbox?: Confinement;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Name of the tool. */
  tool: string;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "tool.started";
}

/** How a tool call ended. */
export type ToolStatus = "completed" | "failed" | "denied" | "cancelled" | "unknown";

/** The call may run after the calls before it have ended. */
export interface ToolStatusEvent {
  /** The rule, mode or request that allows it. */
  allowed_by: string;
  /** Time of the event. */
  at_ms: Timestamp;
  /** Id of the call. */
  call_id: CallId;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** The prepared call that was judged. */
  prepared: PreparedCall;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "tool.status";
  /** Arguments from a hook, which replace the model's. */
  updated_input?: unknown;
}

/** All calls of an answer ended. Only an answer with two or more calls has a summary. */
export interface ToolSummaryEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The calls, in the order of the answer. */
  call_ids: Array<CallId>;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** A summary of the calls as text for users, for example `read 2 files, ran 1 command; 1 failed`. */
  text: string;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "tool.summary";
}

/** A tool as clients see it. */
export interface ToolView {
  /** Whether its calls may run in parallel. */
  concurrency_safe: boolean;
  /** Its description for the model. */
  description: string;
  /** JSON Schema of its input. */
  input_schema: unknown;
  /** Maximum bytes of one result for the model. A longer result is cut, and its full text is kept as a blob. The maximum is lower for a small context window. */
  max_output_bytes: number;
  /** Maximum characters of output that the tool keeps. Of longer output, the model receives the beginning and the end. */
  max_output_chars?: number;
  /** Highest time limit that a call may request, in milliseconds. */
  max_timeout_ms?: number;
  /** Its name in calls, rules and events. */
  name: string;
  /** When its calls need a permission request. */
  permission: PermissionNeed;
  /** Whether none of its calls changes anything. Each Bash command is judged separately, and `tool.started` reports whether it is read-only. */
  read_only: boolean;
  /** Time limit of a call in milliseconds. Absent for tools that read or write local files; an abort ends their calls. */
  timeout_ms?: number;
}

/** A number with at most three decimals; finer ones are rounded. */
export type TopP = number;

/** A truncated value of an event or an item. */
export interface TruncatedField {
  /** Id of the blob with the complete value, which `session.blob` reads. */
  blob_id: BlobId;
  /** Length of the complete value in bytes. */
  bytes: number;
  /** `text/plain` for a text, `application/json` for a list or an object. */
  media_type: string;
  /** Location of the value, as a JSON pointer (RFC 6901) into the object that has this list. A text is cut at its end; a list or an object has fewer entries. */
  pointer: string;
}

/** `workspace.trust` */
export interface TrustParams {
  /** The folder, absolute. */
  cwd: string;
  /** The digest from `workspace.status`: content that changed since is not trusted. Without it, the current content is trusted. */
  digest?: string;
  /** A repeated call with the same key and parameters returns the first reply, within 24 hours. */
  idempotency_key?: string;
}

/** Whether the user trusts a folder: the reply of `workspace.*`. */
export interface TrustStatus {
  /** With `count_changes`: number of files that `git status` lists, if the folder is trusted and in a repository. If there are very many, only a part is counted. */
  changed_files?: number;
  /** The folder, absolute and free of links. */
  cwd: string;
  /** Digest of all content that trust covers: different content has a different digest. Empty if the folder no longer exists. */
  digest: string;
  /** Parts that are active with trust, as text for users; empty if no part needs trust. */
  parts: Array<string>;
  /** The programs that the folder's hooks and MCP servers run or reach, each with the file that names it. */
  programs?: Array<string>;
  /** The root of the project that holds the folder: trust covers the files of all folders from there to `cwd`. */
  project_root?: string;
  /** Whether its current content is trusted. */
  trusted: boolean;
}

/** An abort was accepted; all work of the turn is being stopped. */
export interface TurnAbortingEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Whether the session ends with it. */
  ending?: boolean;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** How the turn will end: `aborted`, or `permission_denied`. */
  subtype?: Subtype;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "turn.aborting";
}

/** The turn ended. */
export interface TurnCompletedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** The result of the turn. */
  result: TurnResult;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "turn.completed";
}

/** A queued turn (`turn_id`) left the queue and will not start. */
export interface TurnDequeuedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Reason of the removal. */
  reason: DequeueReason;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "turn.dequeued";
}

/** An error of a turn. */
export interface TurnError {
  /** Causes from the outermost to the innermost, where known; secrets removed. */
  causes?: Array<string>;
  /** A stable code. */
  kind: string;
  /** Text for users, with secrets removed. */
  message: string;
}

export type TurnId = string;

/** The final answer does not satisfy the turn's `output_schema`. The model receives the reasons and answers again. */
export interface TurnOutputRejectedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Number of rejected answers so far, from 1. */
  attempt: number;
  /** The problems, as text for users. */
  errors: Array<string>;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** Number of corrections that the model may make. */
  max: number;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** The text for the model. */
  text: string;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "turn.output_rejected";
}

/** The daemon stops cleanly, and the turn is at a point where it can continue. Its resume does not count in `resumes`. */
export interface TurnParkedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "turn.parked";
}

/** The phase of the turn changed. */
export interface TurnPhaseEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** The new phase. */
  phase: Phase;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "turn.phase";
  /** With `model_call`: tokens of the request, counted from its characters without calibration. */
  uncalibrated_tokens?: number;
}

/** The system prompt of this turn was built, because the turn has another one than its session. */
export interface TurnPromptBuiltEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** Sources of its parts, as text for users. */
  sources: Array<string>;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** The complete system prompt. */
  system: string;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "turn.prompt_built";
}

/** A queued turn (`turn_id`) moved to another place in the queue. */
export interface TurnQueueMovedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The queued turn that now follows it; absent if it is the last one. */
  before?: TurnId;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "turn.queue_moved";
}

/** The input of a queued turn (`turn_id`) was replaced. Its place and its options are unchanged, except that it is no longer a slash command. */
export interface TurnQueueUpdatedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The new text, pictures and documents. */
  input: Array<InputBlock>;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "turn.queue_updated";
}

/** An input waits for the running turn to end. */
export interface TurnQueuedEvent {
  /** The complete list of additional existing folders of the workspace, absolute. Those of a session apply at once; their AGENTS.md is read when the next turn starts. */
  additional_dirs?: Array<string>;
  /** Appended to the system prompt; empty for nothing. */
  append_system_prompt?: string;
  /** Time of the event. */
  at_ms: Timestamp;
  /** Limits of a turn. In a session they replace all previous limits. */
  budgets?: Budgets;
  /** The slash command whose expansion is the input; never a setting of a session. */
  command?: SlashCommand;
  /** The turn has no input and only compacts the conversation; never a setting of a session. */
  compact?: CompactRequest;
  /** `PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models] fallback`. Empty for that default. */
  fallback_model?: string;
  /** Whether it starts before the other queued inputs. */
  front?: boolean;
  /** Text, pictures and documents of the input. */
  input: Array<InputBlock>;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** Labels that the provider receives with each model request: at most 16, with keys of at most 64 and values of at most 512 bytes. Anthropic accepts only `user_id`. */
  metadata?: Record<string, string>;
  /** Approval mode. A session's applies from the next verdict on, also in a running turn; pending requests that it allows are settled. */
  mode?: Mode;
  /** `PROVIDER/MODEL`. A parameter may also be the name of a pointer of `[models]`, for example `reasoning`. The system prompt names the model, so another one begins a new prompt cache. */
  model?: string;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** JSON Schema of the result: `turn.completed.result.structured` is a value that satisfies it. `{}` for none. References to other documents are refused. */
  output_schema?: unknown;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Whether tools run one at a time and every call needs a permission request. */
  safe_mode?: boolean;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Texts at which the model stops its answer: at most 4, of at most 256 bytes each. */
  stop?: Array<string>;
  /** Replaces the default system prompt; empty for the default. Another system prompt begins a new prompt cache. */
  system_prompt?: string;
  /** Temperature, from 0, which nearly always selects the most likely token, to 2. A running turn keeps its setting. */
  temperature?: Temperature;
  /** How much the model may think. A running turn keeps its setting. */
  thinking?: Thinking;
  /** The tools on offer; `{}` for all. */
  tools?: ToolChoice;
  /** The probability mass of the most likely tokens to choose from, from 0 to 1. Vendors advise to set only one of `temperature` and `top_p`. */
  top_p?: TopP;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "turn.queued";
}

/** The result of a turn. */
export interface TurnResult {
  /** Input tokens of this turn that were read from a prompt cache. */
  cache_hit_tokens?: number;
  /** Cost of the calls whose price is known, in millionths of a dollar: a lower bound of the total cost. */
  cost_at_least_usd_micros?: number;
  /** Cost of this turn, in millionths of a dollar; `null` if a price is unknown. */
  cost_usd_micros?: number;
  /** Duration from start to end, in milliseconds. */
  duration_ms: number;
  /** Errors of this turn only. */
  errors: Array<TurnError>;
  /** Number of model calls. */
  model_calls: number;
  /** Time of the model calls with complete answers, in milliseconds. Failed attempts and the waits between them are not included. */
  model_ms: number;
  /** Calls that were refused. */
  permission_denials: Array<Denial>;
  /** Time spent waiting for users, in milliseconds. */
  permission_ms: number;
  /** Why the last answer ended. */
  stop_reason?: StopReason;
  /** The value that satisfies the turn's `output_schema`. */
  structured?: unknown;
  /** How it ended. */
  subtype: Subtype;
  /** The text of the last answer; may be empty. */
  text: string;
  /** Number of tool calls. */
  tool_calls?: number;
  /** Time spent running tools, in milliseconds. */
  tools_ms: number;
  /** Tokens of this turn. */
  usage: Usage;
  /** The usage by `PROVIDER/MODEL`, with calls and cost. */
  usage_by_model: Record<string, ModelUsage>;
}

/** An interrupted turn continues after a restart. */
export interface TurnResumedEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** The wait before it continues, in milliseconds: 0 the first time, then longer each time. */
  delay_ms?: number;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** How often this turn was resumed after a stop that was not clean. */
  resumes: number;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "turn.resumed";
}

/** A turn started. */
export interface TurnStartedEvent {
  /** The complete list of additional existing folders of the workspace, absolute. Those of a session apply at once; their AGENTS.md is read when the next turn starts. */
  additional_dirs?: Array<string>;
  /** Appended to the system prompt; empty for nothing. */
  append_system_prompt?: string;
  /** Time of the event. */
  at_ms: Timestamp;
  /** Limits of a turn. In a session they replace all previous limits. */
  budgets?: Budgets;
  /** The slash command whose expansion is the input; never a setting of a session. */
  command?: SlashCommand;
  /** The turn has no input and only compacts the conversation; never a setting of a session. */
  compact?: CompactRequest;
  /** `PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models] fallback`. Empty for that default. */
  fallback_model?: string;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** Labels that the provider receives with each model request: at most 16, with keys of at most 64 and values of at most 512 bytes. Anthropic accepts only `user_id`. */
  metadata?: Record<string, string>;
  /** Approval mode. A session's applies from the next verdict on, also in a running turn; pending requests that it allows are settled. */
  mode?: Mode;
  /** `PROVIDER/MODEL`. A parameter may also be the name of a pointer of `[models]`, for example `reasoning`. The system prompt names the model, so another one begins a new prompt cache. */
  model?: string;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** JSON Schema of the result: `turn.completed.result.structured` is a value that satisfies it. `{}` for none. References to other documents are refused. */
  output_schema?: unknown;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Whether tools run one at a time and every call needs a permission request. */
  safe_mode?: boolean;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Texts at which the model stops its answer: at most 4, of at most 256 bytes each. */
  stop?: Array<string>;
  /** Replaces the default system prompt; empty for the default. Another system prompt begins a new prompt cache. */
  system_prompt?: string;
  /** Temperature, from 0, which nearly always selects the most likely token, to 2. A running turn keeps its setting. */
  temperature?: Temperature;
  /** How much the model may think. A running turn keeps its setting. */
  thinking?: Thinking;
  /** The tools on offer; `{}` for all. */
  tools?: ToolChoice;
  /** The probability mass of the most likely tokens to choose from, from 0 to 1. Vendors advise to set only one of `temperature` and `top_p`. */
  top_p?: TopP;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "turn.started";
}

/** A client submitted an input for the running turn. The model receives it with the next tool results. */
export interface TurnSteeredEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Text, pictures and documents of the input. */
  input: Array<InputBlock>;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "turn.steered";
}

/** Prevents a second job with the same key. */
export interface Unique {
  /** Any text. */
  key: string;
  /** What happens to a second job. */
  on_conflict?: OnConflict;
  /** For how long the key is taken. */
  scope?: UniqueScope;
}

/** For how long a job keeps its unique key. */
export type UniqueScope = "active" | "day" | "forever";

/** `session.unsubscribe` */
export interface UnsubscribeParams {
  /** Id that `session.subscribe` returned. */
  subscription: string;
}

/** `workspace.untrust` */
export interface UntrustParams {
  /** The folder, absolute. */
  cwd: string;
  /** A repeated call with the same key and parameters returns the first reply, within 24 hours. */
  idempotency_key?: string;
}

/** `session.update`. Absent values stay unchanged. */
export interface UpdateParams {
  /** The complete list of additional existing folders of the workspace, absolute. Those of a session apply at once; their AGENTS.md is read when the next turn starts. */
  additional_dirs?: Array<string>;
  /** Appended to the system prompt; empty for nothing. */
  append_system_prompt?: string;
  /** Limits of a turn. In a session they replace all previous limits. */
  budgets?: Budgets;
  /** Variables of the environment of its commands, in place of all that were sent before; from the next command on. See `session.create`. */
  env?: SessionEnvironment;
  /** `PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models] fallback`. Empty for that default. */
  fallback_model?: string;
  /** A repeated call with the same key returns the reply of the first call. */
  idempotency_key?: string;
  /** MCP servers for only this session and its sub-agents, in place of all that were given for it before; from the next turn on. See `session.create`. */
  mcp_servers?: Record<string, unknown>;
  /** Labels that the provider receives with each model request: at most 16, with keys of at most 64 and values of at most 512 bytes. Anthropic accepts only `user_id`. */
  metadata?: Record<string, string>;
  /** Approval mode. A session's applies from the next verdict on, also in a running turn; pending requests that it allows are settled. */
  mode?: Mode;
  /** `PROVIDER/MODEL`. A parameter may also be the name of a pointer of `[models]`, for example `reasoning`. The system prompt names the model, so another one begins a new prompt cache. */
  model?: string;
  /** JSON Schema of the result: `turn.completed.result.structured` is a value that satisfies it. `{}` for none. References to other documents are refused. */
  output_schema?: unknown;
  /** Whether tools run one at a time and every call needs a permission request. */
  safe_mode?: boolean;
  /** Id of the session. */
  session_id: SessionId;
  /** Texts at which the model stops its answer: at most 4, of at most 256 bytes each. */
  stop?: Array<string>;
  /** Replaces the default system prompt; empty for the default. Another system prompt begins a new prompt cache. */
  system_prompt?: string;
  /** Temperature, from 0, which nearly always selects the most likely token, to 2. A running turn keeps its setting. */
  temperature?: Temperature;
  /** How much the model may think. A running turn keeps its setting. */
  thinking?: Thinking;
  /** Short name. */
  title?: string;
  /** The tools on offer; `{}` for all. */
  tools?: ToolChoice;
  /** The probability mass of the most likely tokens to choose from, from 0 to 1. Vendors advise to set only one of `temperature` and `top_p`. */
  top_p?: TopP;
}

/** Tokens of one or more model calls, as the provider reported them. */
export interface Usage {
  /** Input tokens read from a prompt cache. */
  cache_read_tokens?: number;
  /** The part of `cache_write_tokens` that is kept for an hour instead of minutes, where the provider reports it. */
  cache_write_1h_tokens?: number;
  /** Input tokens written to a prompt cache. */
  cache_write_tokens?: number;
  /** Input tokens that were neither read from nor written to a prompt cache. */
  input_tokens?: number;
  /** Output tokens, reasoning included. */
  output_tokens?: number;
  /** The part of the output that was reasoning, where the provider reports it. */
  reasoning_tokens?: number;
  /** The service tier of one call, where the provider reports it; absent in sums. */
  service_tier?: ServiceTier;
  /** All tokens that were sent or received; computed when it is written. */
  total?: number;
  /** Web searches that the provider made for the answer; each one is charged. */
  web_search_requests?: number;
}

/** Tokens were booked that belong to no complete answer of a turn. They count like tokens of an answer, and the attempt counts as a model call, so that budgets also hold after crashes. Tokens of a helper call count only for the session. */
export interface UsageEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Cost of the tokens and searches, in millionths of a dollar; absent if the price is unknown. */
  cost_usd_micros?: number;
  /** Whether `usage` is an upper estimate: one token for every two bytes of the request and of the answer, or the maximum usage of a helper call. Reported input tokens replace the estimate. Reported output tokens replace it only if they are larger. */
  estimated: boolean;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** `PROVIDER/MODEL` of the call. */
  model: string;
  /** Limits and price of the model at the time of the call. */
  model_snapshot?: ModelSnapshot;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Purpose of the call, if it was a helper call. */
  purpose?: Purpose;
  /** Reason of the booking. */
  reason: UsageReason;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "usage";
  /** Tokens and searches of the call. */
  usage: Usage;
}

/** Why tokens are booked outside the answers of turns. */
export type UsageReason = "lost_attempt" | "helper";

/** The user's answer to one question of a model: options, own words, or both. */
export interface UserAnswer {
  /** Labels of the chosen options. */
  choices?: Array<string>;
  /** The answer in the user's own words. */
  text?: string;
}

/** One question of a model. */
export interface UserQuestion {
  /** A label of a few words for it. */
  header?: string;
  /** Whether several of the options may be chosen. */
  multi_select?: boolean;
  /** Suggested answers. The user may always answer in their own words. */
  options?: Array<QuestionOption>;
  /** The complete question. */
  question: string;
}

/** The verdict of the rules on one tool call. */
export type VerdictKind = "allow" | "ask" | "deny";

/** `permission.verify_audit` */
export interface VerifyAuditParams {
  /** A row that the client stored elsewhere: the log must still contain it, unchanged. */
  known?: AuditHead;
}

/** Reply of `permission.verify_audit` */
export interface VerifyAuditReply {
  /** Problems of the log as texts; empty if the log is complete. */
  faults: Array<string>;
  /** The newest row. A client that stores a copy elsewhere can later check that the log still contains the row. */
  head?: AuditHead;
  /** Number of rows that were checked. */
  rows: number;
}

/** `session.wait` */
export interface WaitParams {
  /** Id of the session. */
  session_id: SessionId;
  /** Maximum wait in milliseconds, at most 30 days; by default there is no limit. 0 returns at once. */
  timeout_ms?: number;
  /** States that end the wait; by default `idle`, `requires_action` and `ended`. */
  until?: Array<SessionState>;
}

/** Reply of `session.wait` */
export interface WaitReply {
  /** Result of its newest completed turn, if there is one. */
  result?: TurnResult;
  /** The session, with the state that ended the wait. */
  session: SessionView;
  /** Whether `timeout_ms` passed before the session reached one of the states. */
  timed_out: boolean;
}

/** What a job waits for. */
export type WaitingFor = "permission" | "question" | "unknown_outcome" | "resume";

/** The action of a submit while a turn runs. */
export type WhenBusy = "queue" | "steer" | "interrupt" | "reject";

/** A change of the messages that later requests contain. */
export type WindowEdit = WindowEditResults | WindowEditMessages;

/** Replaces some messages by others. */
export interface WindowEditMessages {
  /** Number of replaced messages. */
  count: number;
  /** Number of messages before the first replaced one. */
  from: number;
  kind: "messages";
  /** The messages that replace them. */
  messages: Array<Message>;
}

/** Replaces the contents of tool results. */
export interface WindowEditResults {
  kind: "results";
  /** The replaced results, in the order of the conversation. */
  results: Array<ReplacedResult>;
}

/** `workspace.status` */
export interface WorkspaceParams {
  /** Whether the reply counts the changed files. Git runs only in a trusted folder. */
  count_changes?: boolean;
  /** The folder, absolute. */
  cwd: string;
}

/** The workspace contains parts that are used only with trust. */
export interface WorkspaceTrustRequiredEvent {
  /** Time of the event. */
  at_ms: Timestamp;
  /** Path of the workspace's folder. */
  cwd: string;
  /** Digest of all parts, as a parameter of `workspace.trust`. */
  digest?: string;
  /** The item, if the event belongs to one. */
  item_id?: ItemId;
  /** The client that caused it, if any. */
  origin?: Origin;
  /** The tool call of another session that started this session. Absent in sessions that a client created. */
  parent_call_id?: CallId;
  /** Parts that are not used until the user trusts the folder, as text for users. */
  parts: Array<string>;
  /** Its position in the session's journal, from 1. */
  seq: number;
  /** Id of the session. */
  session_id: SessionId;
  /** The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their item. */
  step?: number;
  /** Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the complete value. Absent if the event is complete. */
  truncated_fields?: Array<TruncatedField>;
  /** The turn, if the event belongs to one. */
  turn_id?: TurnId;
  type: "workspace.trust_required";
}

/** A worktree that the daemon made. */
export interface Worktree {
  /** The commit that it started from. */
  base: string;
  /** Its branch. */
  branch: string;
  /** Commits of the branch that the base does not have; absent if it was not looked at. */
  commits?: number;
  /** Time of its creation. */
  created_at_ms: Timestamp;
  /** Whether a session or a job still uses it. */
  in_use?: boolean;
  /** The job that it belongs to. */
  job_id?: JobId;
  /** Its folder, absolute. */
  path: string;
  /** The top of the repository that it belongs to. */
  repository: string;
  /** The session that works in it; absent before its start. */
  session_id?: SessionId;
  /** Whether it has changes that are not committed; absent if it was not looked at. */
  uncommitted?: boolean;
}

/** Both forms. `false` is the same as leaving it out, which callers that fill in a form expect. */
export type WorktreeChoice = boolean | WorktreeObject;

/** `worktree.diff`. Exactly one of `session_id` and `job_id` is needed. */
export interface WorktreeDiffParams {
  /** The job of the worktree. */
  job_id?: JobId;
  /** The session of the worktree. */
  session_id?: SessionId;
}

/** Reply of `worktree.diff`: all changes since the base, committed or not. */
export interface WorktreeDiffReply {
  /** The commit that it started from. */
  base: string;
  /** Its branch. */
  branch: string;
  /** A unified diff of at most 1 MiB. */
  diff: string;
  /** The changed files. */
  files: Array<ChangedFile>;
  /** Whether the diff was cut. */
  truncated?: boolean;
}

/** Reply of `worktree.list`: oldest first. */
export interface WorktreeListReply {
  /** The worktrees that exist. */
  worktrees: Array<Worktree>;
}

/** `worktree.merge`. Exactly one of `session_id` and `job_id` is needed. */
export interface WorktreeMergeParams {
  /** A fast-forward by default. */
  how?: MergeMethod;
  /** A repeated call with the same key returns the reply of the first call. */
  idempotency_key?: string;
  /** The job of the worktree. */
  job_id?: JobId;
  /** The session of the worktree. */
  session_id?: SessionId;
}

/** Reply of `worktree.merge` */
export interface WorktreeMergeReply {
  /** Its newest commit now. */
  commit: string;
  /** The branch that was changed: the one that the repository's folder has checked out. */
  into: string;
  /** Whether it has changed; otherwise it had all commits before. */
  merged: boolean;
  /** Files of the worktree whose changes are not committed, and so were not merged. */
  uncommitted?: number;
}

/** The object form of [`WorktreeChoice`]. */
export interface WorktreeObject {
  /** The commit or branch that the worktree starts from; by default `HEAD`. */
  base?: string;
  /** Its branch; by default `agentd/ID`. */
  branch?: string;
  /** Whether uncommitted changes are committed at the end; `true` by default. */
  commit?: boolean;
  /** Ignored files that are copied into it: paths or globs relative to the top of the repository. */
  include?: Array<string>;
  /** Whether it is kept at the end. */
  keep?: KeepWorktree;
}

/** `worktree.remove`. Exactly one of `session_id` and `job_id` is needed. */
export interface WorktreeRemoveParams {
  /** Whether uncommitted changes are lost; otherwise they keep the worktree. */
  force?: boolean;
  /** A repeated call with the same key returns the reply of the first call. */
  idempotency_key?: string;
  /** The job of the worktree. It must be over. */
  job_id?: JobId;
  /** The session of the worktree. It must have ended or be archived. */
  session_id?: SessionId;
}

/** The parameters and the reply of each method. */
export interface Methods {
  /** Returns the OpenRPC document of this daemon. */
  "rpc.discover": { params?: Record<string, never>; reply: Record<string, unknown> };
  /** Agrees on the protocol version and returns it with the name and the role of the client. The call is optional; without it, other clients see no name. */
  "daemon.hello": { params?: HelloParams; reply: HelloReply };
  /** Returns the version, the paths, the sizes and the health of the storage. */
  "daemon.status": { params?: Record<string, never>; reply: StatusReply };
  /** Returns counters of what the daemon has done since its start. `GET /metrics` on the socket returns them as text for Prometheus. */
  "daemon.metrics": { params?: Record<string, never>; reply: Metrics };
  /** Returns the configuration in force, with the origin of each value. Secrets are masked. */
  "daemon.config": { params?: ConfigParams; reply: ConfigReply };
  /** Follows all sessions, also those of sub-agents, and returns the id of the subscription. Created, changed and ended sessions arrive as `daemon.event` notifications; changes of one session that come together are one notification. A reader that pauses for very long can miss deleted sessions, so it lists the sessions again. Changes of jobs and schedules arrive too, and `daemon.restarting` before a planned stop. `session.unsubscribe` ends the subscription. */
  "daemon.subscribe": { params?: DaemonSubscribeParams; reply: SubscriptionId };
  /** Reads the configuration again and returns the changed keys. Running work keeps the old values. A wrong configuration is refused with its file and line, and the old one stays. */
  "daemon.reload": { params?: ReloadParams; reply: ReloadReply };
  /** Copies the whole database to a new file while it is in use, checks the copy, and returns its path and size. Only the owner can read the file. */
  "daemon.backup": { params: BackupParams; reply: BackupReply };
  /** Reads the whole database and returns its problems. */
  "daemon.check": { params?: Record<string, never>; reply: CheckReply };
  /** Stops the daemon. Sessions are kept, and interrupted turns continue after the next start. */
  "daemon.shutdown": { params?: ShutdownParams; reply: Done };
  /** Creates a session in a folder and returns it. */
  "session.create": { params: CreateParams; reply: SessionReply };
  /** Returns a page of the sessions with their live state, newest first. */
  "session.list": { params?: ListParams; reply: ListReply };
  /** Returns one session. */
  "session.get": { params: SessionParams; reply: SessionReply };
  /** Gives the session an input and returns the turn that handles it. When the reply arrives, the input is on disk. */
  "session.submit": { params: SubmitParams; reply: SubmitOutcome };
  /** Stops the running turn, or one tool call, and returns what was stopped after the work has ended. */
  "session.abort": { params: AbortParams; reply: AbortReply };
  /** Summarises the conversation, so that it fills less of the model's context window, and returns the turn that does it. The turn starts when the running one has ended. */
  "session.compact": { params: CompactParams; reply: CompactReply };
  /** Returns what fills the context window of the session's model. */
  "session.context": { params: SessionParams; reply: ContextView };
  /** Returns the next request to the model as it would be sent now, with the system prompt and the tools. It starts no MCP servers. */
  "session.request": { params: SessionParams; reply: RequestView };
  /** Answers a permission request, or several, and returns the grant that each answer stored. The first answer wins. */
  "session.approve": { params?: ApproveParams; reply: ApproveReply };
  /** Changes a session's title, model, approval mode, limits, tools, folders or other options, also while a turn runs, and returns the session. */
  "session.update": { params: UpdateParams; reply: SessionReply };
  /** Answers a question of the model, about a call with an unknown outcome, or about an interrupted turn, and returns the seq of its end. The first answer wins. */
  "session.answer": { params: AnswerParams; reply: AnswerReply };
  /** Chooses one of two answers of the model (binary feedback) and returns the seq of the choice. The first choice wins. */
  "session.feedback": { params: FeedbackParams; reply: AnswerReply };
  /** Returns the inputs that wait for the running turn, in the order of their start. */
  "session.queue.list": { params: QueueListParams; reply: QueueReply };
  /** Removes all queued inputs and returns the queue. The running turn continues. */
  "session.queue.clear": { params: QueueClearParams; reply: QueueReply };
  /** Replaces the input of a queued turn and returns the queue. */
  "session.queue.update": { params: QueueUpdateParams; reply: QueueReply };
  /** Removes one queued input and returns the queue. */
  "session.queue.remove": { params: QueueRemoveParams; reply: QueueReply };
  /** Moves a queued turn to another place and returns the queue. */
  "session.queue.move": { params: QueueMoveParams; reply: QueueReply };
  /** Waits until the session is in one of several states, and returns it with the result of its newest turn. The session need not be loaded. */
  "session.wait": { params: WaitParams; reply: WaitReply };
  /** Archives a session, or restores it, and returns it. An archived session is kept, is hidden from `agentctl ps`, and takes no input. */
  "session.archive": { params: ArchiveParams; reply: SessionReply };
  /** Creates a session that starts with the conversation of another one, up to an item, and returns it. Requests, running calls, the queue and costs are not copied. */
  "session.fork": { params: ForkParams; reply: SessionReply };
  /** Makes an earlier item the last one of the conversation, with `files` restores the files that the session changed since, and returns what was removed and restored. If a part fails, nothing changes. */
  "session.rewind": { params: RewindParams; reply: RewindReply };
  /** Returns a page of a session as JSON Lines, Markdown or HTML. */
  "session.export": { params: ExportParams; reply: ExportReply };
  /** Creates a session from an export as JSON Lines, in one or several parts, and returns it after the last part. A damaged file creates nothing. */
  "session.import": { params: ImportParams; reply: ImportReply };
  /** Aborts the running work, ends the session, and returns what was stopped. The history stays readable. */
  "session.kill": { params: EndParams; reply: AbortReply };
  /** Sends the events after a cursor and then the new ones, without a gap or a duplicate, and returns the id of the subscription. */
  "session.subscribe": { params: SubscribeParams; reply: SubscriptionId };
  /** Ends a subscription and returns whether there was one. */
  "session.unsubscribe": { params: UnsubscribeParams; reply: boolean };
  /** Returns a page of the journal, for clients that poll. */
  "session.events": { params: EventsParams; reply: EventsReply };
  /** Returns a page of the conversation, oldest first. */
  "session.items": { params: ItemsParams; reply: ItemsReply };
  /** Returns a part of content that is too large for an event: a text that was cut, a complete tool result, or a picture. */
  "session.blob": { params: BlobParams; reply: BlobReply };
  /** Returns the changes that the session's file tools made: for each file from before the first change to after the last one. Changes by commands (Bash) are not included. */
  "session.diff": { params: DiffParams; reply: DiffReply };
  /** Aborts the running work and removes the session with its history. */
  "session.delete": { params: EndParams; reply: Done };
  /** Returns the pending permission requests of one session or of all. */
  "permission.list": { params?: PermissionListParams; reply: PermissionListReply };
  /** Judges a call by just the given rules and returns the verdict. Nothing runs. */
  "permission.explain": { params: ExplainParams; reply: ExplainReply };
  /** Does the same as `session.approve`. */
  "permission.respond": { params?: ApproveParams; reply: ApproveReply };
  /** Follows the permission requests of all sessions and returns the id of the subscription. First come the pending requests, then every new request and its end, as `permission.event` notifications with the session's event. `session.unsubscribe` ends the subscription. */
  "permission.subscribe": { params?: Record<string, never>; reply: SubscriptionId };
  /** Returns the permission rules with their origins. */
  "permission.rules": { params?: RulesParams; reply: RulesReply };
  /** Adds a rule for a session, for a folder, or for everything, and returns whether that changed anything. The next verdict uses the rule, also in running sessions. */
  "permission.add_rule": { params: RuleParams; reply: RuleReply };
  /** Removes a rule or a grant and returns whether that changed anything. The next verdict does not use it. */
  "permission.remove_rule": { params: RuleParams; reply: RuleReply };
  /** Returns a page of the audit log, oldest first: each decision with its author and its rule. */
  "permission.audit": { params?: AuditParams; reply: AuditReply };
  /** Reads the whole audit log and returns its faults: rows that were changed, removed, inserted or moved. */
  "permission.verify_audit": { params?: VerifyAuditParams; reply: VerifyAuditReply };
  /** Returns the notes about the project in a folder, or one of them with its text. */
  "memory.list": { params: MemoryListParams; reply: MemoryListReply };
  /** Writes a note about the project in a folder, or replaces it, and returns the note. Later sessions know its first line. */
  "memory.set": { params: MemorySetParams; reply: MemorySetReply };
  /** Removes a note about the project in a folder and returns its name. */
  "memory.remove": { params: MemoryRemoveParams; reply: MemoryRemoveReply };
  /** Returns the agents that sessions in a folder can use: those of the trusted project, of the user, and the built-in ones. The tool Task starts each of them as a sub-agent. */
  "agent.list": { params: AgentListParams; reply: AgentListReply };
  /** Returns the slash commands of a session or a folder: the built-in ones, the user's, and those of a trusted project. */
  "command.list": { params?: CommandListParams; reply: CommandListReply };
  /** Returns the tools that sessions offer their models, by name: the purpose, the JSON Schema of the input, whether the tool changes anything, and whether its calls run in parallel. */
  "tool.list": { params?: ToolListParams; reply: ToolListReply };
  /** Returns the MCP servers of a folder, or of the user, with their states and tools. It starts the servers that may run; they end after a while without use. */
  "mcp.list": { params?: McpListParams; reply: McpListReply };
  /** Returns the tools of an MCP server with the schemas of their inputs. */
  "mcp.tools": { params: McpServerParams; reply: McpToolsReply };
  /** Returns the resources of an MCP server, which users can attach to their inputs. */
  "mcp.resources": { params: McpServerParams; reply: McpResourceList };
  /** Starts an MCP server and returns the result of the start. A server that pauses after failures starts at once. */
  "mcp.test": { params?: McpTestParams; reply: McpTest };
  /** Returns the newest lines that an MCP server wrote. */
  "mcp.logs": { params: McpServerParams; reply: McpLogsReply };
  /** Adds an MCP server for the user, or to a project's .mcp.json, and returns its name. Sessions use it from their next turn on. */
  "mcp.add": { params: McpAddParams; reply: McpChangeReply };
  /** Removes an MCP server that was added and returns its name. */
  "mcp.remove": { params: McpRemoveParams; reply: McpChangeReply };
  /** Returns the models with their capabilities and prices, and the origin of these. Unknown values are null. */
  "model.list": { params?: ModelListParams; reply: ModelListReply };
  /** Tries the address and the key of each provider, in parallel and for at most 10 seconds, and returns the results. It spends no tokens. */
  "model.check": { params?: ModelCheckParams; reply: ModelCheckReply };
  /** Returns tokens, calls and money from the cost ledger, by session and model, with their sum. Deleted sessions stay in the ledger. */
  "model.usage": { params?: ModelUsageParams; reply: ModelUsageReply };
  /** Returns the parts of a folder that need trust, and whether the folder is trusted in its present state. */
  "workspace.status": { params: WorkspaceParams; reply: TrustStatus };
  /** Returns every rule, hook, agent and server restriction that is in force in a folder, and each one that could not be read. */
  "workspace.restrictions": { params: RestrictionsParams; reply: Restrictions };
  /** Trusts a folder in the state that `workspace.status` showed, or in its present state, and returns its trust. A later change of the trusted parts ends the trust. */
  "workspace.trust": { params: TrustParams; reply: TrustStatus };
  /** Ends the trust in a folder and returns its trust. */
  "workspace.untrust": { params: UntrustParams; reply: TrustStatus };
  /** Indexes a workspace, or updates its index, and returns the index job and an estimate at once. `knowledge.subscribe` reports the progress. */
  "knowledge.index": { params: KnowledgeIndexParams; reply: StartedIndexJob };
  /** Adds documents that are not files to the index of a workspace and returns the result for each document. */
  "knowledge.insert": { params: KnowledgeInsertParams; reply: KnowledgeInsertReply };
  /** Asks an index a question and returns the answer, with the `status` success, no_context or failed. With `stream` it returns an id, and `knowledge.subscribe` reports the answer. */
  "knowledge.query": { params: QueryParams; reply: KnowledgeQueryReply };
  /** Returns a page of the documents of an index, sorted by path. */
  "knowledge.documents.list": { params: KnowledgeDocumentsParams; reply: KnowledgeDocumentsReply };
  /** Returns one document of an index with its chunks. */
  "knowledge.documents.get": { params: KnowledgeDocumentParams; reply: KnowledgeDocumentReply };
  /** Removes a document from an index and returns the result. What other documents say about its entities stays. */
  "knowledge.documents.delete": { params: KnowledgeDocumentDeleteParams; reply: KnowledgeDocumentDeleteReply };
  /** Returns a part of the graph around an entity, as JSON, Mermaid, DOT, GraphML or HTML. */
  "knowledge.graph": { params: KnowledgeGraphParams; reply: KnowledgeGraphReply };
  /** Returns the state and the size of an index, and its newest index job. */
  "knowledge.status": { params: KnowledgeStatusParams; reply: IndexStatus };
  /** Stops an index job or a query and returns whether it was running. The next `knowledge.index` continues a stopped index job. */
  "knowledge.cancel": { params: KnowledgeCancelParams; reply: KnowledgeCancelReply };
  /** Follows an index job or a query as `knowledge.event` notifications and returns the id of the subscription. The last notification is `done`, `failed` or `cancelled`. `session.unsubscribe` ends the subscription. */
  "knowledge.subscribe": { params: KnowledgeWorkParams; reply: SubscriptionId };
  /** Deletes cached answers of models from an index and returns how many. */
  "knowledge.cache.clear": { params: KnowledgeCacheClearParams; reply: KnowledgeCacheClearReply };
  /** Deletes the index of a workspace with all inserted documents and returns whether there was one. Files of the workspace stay. */
  "knowledge.delete": { params: KnowledgeDeleteParams; reply: KnowledgeDeleteReply };
  /** Adds an entity to the graph and returns it. */
  "knowledge.entity.create": { params: KnowledgeEntityParams; reply: KnowledgeEntityReply };
  /** Changes the name, type or description of an entity and returns it. Later index jobs keep the change. */
  "knowledge.entity.update": { params: KnowledgeEntityParams; reply: KnowledgeEntityReply };
  /** Merges entities into one and returns it. */
  "knowledge.entity.merge": { params: KnowledgeEntityMergeParams; reply: KnowledgeEntityReply };
  /** Removes an entity and its relations from the graph. */
  "knowledge.entity.delete": { params: KnowledgeEntityParams; reply: KnowledgeEntityReply };
  /** Adds a relation between two entities and returns it. */
  "knowledge.relation.create": { params: KnowledgeRelationParams; reply: KnowledgeRelationReply };
  /** Changes the keywords, description or weight of a relation and returns it. */
  "knowledge.relation.update": { params: KnowledgeRelationParams; reply: KnowledgeRelationReply };
  /** Removes a relation from the graph. */
  "knowledge.relation.delete": { params: KnowledgeRelationParams; reply: KnowledgeRelationReply };
  /** Creates a job and returns it. The job starts when a slot is free. */
  "job.create": { params?: JobRequest; reply: JobCreateReply };
  /** Returns a page of the jobs in all states, newest first. */
  "job.list": { params?: JobListParams; reply: JobListReply };
  /** Returns one job with its stored content. */
  "job.get": { params: JobParams; reply: JobGetReply };
  /** Changes a job that has not started, or raises the limits of a running one, and returns the job. */
  "job.update": { params: JobUpdateParams; reply: JobReply };
  /** Cancels a job and returns it when its work has stopped. */
  "job.cancel": { params: JobCancelParams; reply: JobCancelReply };
  /** Gives one more attempt to a job that failed, expired or was cancelled, and returns the job. */
  "job.retry": { params: JobRetryParams; reply: JobReply };
  /** Waits until a job has ended and returns it. */
  "job.wait": { params: JobWaitParams; reply: JobWaitReply };
  /** Returns a page of the events of an attempt's session. */
  "job.logs": { params: JobLogsParams; reply: JobLogsReply };
  /** Returns a page of the numbered events of a job. They are never removed. */
  "job.events": { params: JobEventsParams; reply: JobEventsReply };
  /** Stops the start of jobs, also after a restart of the daemon, and returns whether starts are stopped. Running jobs continue. */
  "job.pause": { params?: JobPauseParams; reply: JobPauseReply };
  /** Lets jobs start again and returns whether starts are stopped. */
  "job.resume": { params?: JobPauseParams; reply: JobPauseReply };
  /** Returns the user's templates, and for a folder those of its trusted project. */
  "job.templates": { params?: JobTemplatesParams; reply: JobTemplatesReply };
  /** Creates a schedule, which creates jobs at given times, and returns it. */
  "schedule.create": { params: NewSchedule; reply: ScheduleReply };
  /** Changes a schedule and returns it. Its jobs stay as they are. */
  "schedule.update": { params: ScheduleUpdate; reply: ScheduleReply };
  /** Returns one schedule. */
  "schedule.get": { params: ScheduleParams; reply: ScheduleReply };
  /** Returns all schedules, oldest first. */
  "schedule.list": { params?: Record<string, never>; reply: ScheduleListReply };
  /** Deletes a schedule and returns it. Its jobs stay. */
  "schedule.delete": { params: ScheduleChangeParams; reply: ScheduleReply };
  /** Creates a job of the schedule now, whatever its times and its earlier jobs are, and returns the schedule. */
  "schedule.trigger": { params: ScheduleChangeParams; reply: ScheduleReply };
  /** Returns the next times of a pattern. */
  "schedule.next": { params: ScheduleNextParams; reply: ScheduleNextReply };
  /** Returns the git worktrees that the daemon created and that exist. */
  "worktree.list": { params?: Record<string, never>; reply: WorktreeListReply };
  /** Merges the branch of a worktree into the branch that its repository's folder has checked out, and returns that branch with its newest commit. It commits uncommitted changes of the worktree first, and never merges with conflicts. */
  "worktree.merge": { params?: WorktreeMergeParams; reply: WorktreeMergeReply };
  /** Removes a worktree that no session and no job uses. Its branch stays if it has a commit of its own. */
  "worktree.remove": { params?: WorktreeRemoveParams; reply: Done };
  /** Returns the changes of a worktree since the commit that it started from. */
  "worktree.diff": { params?: WorktreeDiffParams; reply: WorktreeDiffReply };
}

/** The parameters of each notification. */
export interface Notifications {
  "session.event": SessionEventNotification;
  "permission.event": PermissionEventNotification;
  "daemon.event": DaemonEventNotification;
  "knowledge.event": KnowledgeEventNotification;
}
