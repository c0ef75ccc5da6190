// A client for agentd: typed calls, and subscriptions that survive a lost connection. No dependencies.

import { createConnection, type Socket } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { PROTOCOL_VERSION } from "./types.js";
import type { DaemonEvent, Envelope, ErrorData, Include, Methods } from "./types.js";

export * from "./types.js";

/** An error that the daemon answered. Match on `data.kind`. */
export class RpcError extends Error {
  constructor(readonly code: number, message: string, readonly data: ErrorData) {
    super(message);
  }
}

/** The connection was lost before the reply. Whether the call took effect is unknown: repeat it with the same `idempotency_key`. */
export class ConnectionLost extends Error {}

type Method = keyof Methods;
type Params<M extends Method> = Methods[M]["params"];
type Reply<M extends Method> = Methods[M]["reply"];
type Arguments<M extends Method> = undefined extends Params<M> ? [params?: Params<M>] : [params: Params<M>];

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** The socket of the user's daemon, unless its configuration names another one. */
export function defaultSocket(env: NodeJS.ProcessEnv = process.env): string {
  if (env["AGENTD_SOCKET"]) return env["AGENTD_SOCKET"];
  if (env["XDG_RUNTIME_DIR"]) return join(env["XDG_RUNTIME_DIR"], "agentd/agentd.sock");
  const data = env["XDG_DATA_HOME"] ? join(env["XDG_DATA_HOME"], "agentd") : join(homedir(), ".local/share/agentd");
  return join(env["AGENTD_DATA_DIR"] || data, "run/agentd.sock");
}

/** Typed calls over one connection, which is opened again after a loss. Each subscription has a connection of its own. */
export class Client {
  #socket: Promise<Socket> | undefined;
  #waiting = new Map<number, Waiting>();
  #nextId = 1;
  #closing = new AbortController();

  constructor(readonly name: string, readonly path: string = defaultSocket()) {}

  /** Calls a method; calls may run side by side. Rejects with `RpcError` or `ConnectionLost`. */
  async call<M extends Method>(method: M, ...[params]: Arguments<M>): Promise<Reply<M>> {
    const socket = await (this.#socket ??= this.#connect());
    return (await new Promise((resolve, reject) => {
      const id = this.#nextId++;
      this.#waiting.set(id, { resolve, reject });
      socket.write(request(id, method, params ?? {}));
    })) as Reply<M>;
  }

  /**
   * The events of a session after a cursor, first the stored ones, then live. After a lost connection the loop goes on
   * behind the last event that it yielded, without a gap or a repetition. Leave it with `break` or an abort signal.
   */
  async *events(
    sessionId: string,
    options: { afterSeq?: number; include?: Include; signal?: AbortSignal } = {},
  ): AsyncGenerator<Envelope> {
    const { include, signal } = options;
    let afterSeq = options.afterSeq ?? 0;
    for (let pause = 50; ; pause = Math.min(pause * 2, 2_000)) {
      try {
        const params = { session_id: sessionId, after_seq: afterSeq, ...(include && { include }) };
        for await (const event of this.#follow<Envelope>("session.subscribe", params, signal)) {
          yield event;
          afterSeq = Math.max(afterSeq, event.seq);
          pause = 50;
        }
      } catch (error) {
        if (error instanceof RpcError && !error.data.retryable) throw error;
      }
      if (signal?.aborted || this.#closing.signal.aborted) return;
      await sleep(pause, undefined, signal && { signal }).catch(() => undefined);
    }
  }

  /** Permission requests of all sessions and their ends, until the connection is lost. A new subscription begins with those that are pending. */
  permissions(signal?: AbortSignal): AsyncGenerator<Envelope> {
    return this.#follow("permission.subscribe", {}, signal);
  }

  /** Changes of all sessions, and `daemon.restarting` before a planned stop, until the connection is lost. */
  sessions(signal?: AbortSignal): AsyncGenerator<DaemonEvent> {
    return this.#follow("daemon.subscribe", {}, signal);
  }

  /** Ends the connections. Sessions and their turns go on in the daemon. */
  close(): void {
    this.#closing.abort();
    this.#socket?.then((socket) => socket.destroy(), () => undefined);
  }

  async #connect(): Promise<Socket> {
    try {
      const socket = await this.#open();
      void this.#receive(socket);
      return socket;
    } catch (error) {
      this.#socket = undefined;
      throw error;
    }
  }

  /** Reads the replies until the connection ends. */
  async #receive(socket: Socket): Promise<void> {
    let end: Error = new ConnectionLost("the connection was lost before the reply");
    for await (const message of messages(socket)) {
      const call = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      if (!message.error) call?.resolve(message.result);
      else if (call) call.reject(toError(message.error));
      else {
        // The daemon does not serve this protocol version.
        end = toError(message.error);
        break;
      }
    }
    socket.destroy();
    this.#socket = undefined;
    for (const call of this.#waiting.values()) call.reject(end);
    this.#waiting.clear();
  }

  /** Reads only as fast as its caller: the daemon waits for a slow reader, and this process keeps nothing. */
  async *#follow<T>(method: Method, params: object, signal?: AbortSignal): AsyncGenerator<T> {
    const socket = await this.#open();
    const stop = () => void socket.destroy();
    const signals = [this.#closing.signal, ...(signal ? [signal] : [])];
    for (const each of signals) each.addEventListener("abort", stop);
    if (signals.some((each) => each.aborted)) stop();
    socket.write(request(0, method, params));
    try {
      for await (const message of messages(socket)) {
        if (message.error) throw toError(message.error);
        if (message.method) yield message.params.result as T;
      }
    } finally {
      for (const each of signals) each.removeEventListener("abort", stop);
      socket.destroy();
    }
  }

  /** A connection on which the daemon was told the client's name. */
  async #open(): Promise<Socket> {
    if (this.#closing.signal.aborted) throw new ConnectionLost("the client is closed");
    const socket = createConnection(this.path);
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", (error) => reject(new ConnectionLost(`could not connect to ${this.path}: ${error.message}`)));
    });
    // A failure ends the loop that reads.
    socket.on("error", () => undefined);
    socket.write(request(null, "daemon.hello", { name: this.name, protocol_version: PROTOCOL_VERSION }));
    return socket;
  }
}

function request(id: number | null, method: string, params: object): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n";
}

function toError(error: { code: number; message: string; data: ErrorData }): RpcError {
  return new RpcError(error.code, error.message, error.data);
}

/** The messages of a connection, without the reply to `daemon.hello` unless it is an error. */
async function* messages(socket: Socket): AsyncGenerator<any> {
  try {
    for await (const line of createInterface({ input: socket, crlfDelay: Infinity })) {
      const message = JSON.parse(line);
      if (message.error || message.id !== null) yield message;
    }
  } catch (error) {
    if (error instanceof SyntaxError) throw error;
  }
}
