"""A client with asyncio. No dependencies."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, cast

from . import types as t

_MAX_LINE_BYTES = 64 << 20


class RpcError(Exception):
    """An error that the daemon answered. Match on `data["kind"]`."""

    def __init__(self, code: int, message: str, data: t.ErrorData) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class ConnectionLost(Exception):
    """The connection was lost before the reply. Whether the call took effect is unknown: repeat it with the same
    `idempotency_key`."""


def default_socket(env: Mapping[str, str] = os.environ) -> str:
    """The socket of the user's daemon, unless its configuration names another one."""
    if socket := env.get("AGENTD_SOCKET"):
        return socket
    if runtime := env.get("XDG_RUNTIME_DIR"):
        return f"{runtime}/agentd/agentd.sock"
    if data := env.get("XDG_DATA_HOME"):
        data = f"{data}/agentd"
    else:
        data = f"{Path.home()}/.local/share/agentd"
    return f"{env.get('AGENTD_DATA_DIR') or data}/run/agentd.sock"


class Client:
    """Typed calls over one connection, which is opened again after a loss. Each subscription has a connection of its
    own. Calls may run side by side."""

    call: t.Call
    """Calls a method. Raises `RpcError` or `ConnectionLost`."""

    def __init__(self, name: str, path: str | None = None) -> None:
        self.path = path or default_socket()
        self.name = name
        self.call = cast(t.Call, self._call)
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._next_id = 1

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection of the calls. Sessions and their turns go on in the daemon."""
        if self._reading:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def events(
        self, session_id: str, after_seq: int = 0, include: t.Include | None = None
    ) -> AsyncIterator[t.Envelope]:
        """The events of a session after a cursor, first the stored ones, then live.

        After a lost connection the loop goes on behind the last event that it yielded, without a gap or a repetition.
        """
        pause = 0.05
        while True:
            params: dict[str, Any] = {"session_id": session_id, "after_seq": after_seq}
            if include is not None:
                params["include"] = include
            try:
                async for event in self._follow("session.subscribe", params):
                    yield event
                    after_seq = max(after_seq, event["seq"])
                    pause = 0.05
            except ConnectionLost:
                pass
            except RpcError as error:
                if not error.data["retryable"]:
                    raise
            await asyncio.sleep(pause)
            pause = min(pause * 2, 2.0)

    def permissions(self) -> AsyncIterator[t.Envelope]:
        """Permission requests of all sessions and their ends, until the connection is lost.

        A new subscription begins with those that are pending.
        """
        return self._follow("permission.subscribe", {})

    def sessions(self) -> AsyncIterator[t.DaemonEvent]:
        """Changes of all sessions, and `daemon.restarting` before a planned stop, until the connection is lost."""
        return self._follow("daemon.subscribe", {})

    async def _follow(self, method: str, params: Mapping[str, Any]) -> AsyncIterator[Any]:
        # Reads only as fast as its caller: the daemon waits for a slow reader, and this process keeps nothing.
        reader, writer = await self._open()
        try:
            writer.write(_request(0, method, params))
            async for message in _messages(reader):
                if error := message.get("error"):
                    raise _to_error(error)
                if "method" in message:
                    yield message["params"]["result"]
        finally:
            writer.close()

    async def _call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        async with self._opening:
            if self._writer is None:
                reader, self._writer = await self._open()
                self._reading = asyncio.create_task(self._receive(reader, self._writer))
            call_id = self._next_id
            self._next_id += 1
            reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            self._waiting[call_id] = reply
            self._writer.write(_request(call_id, method, params or {}))
        return await reply

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Reads the replies until the connection ends."""
        end: Exception = ConnectionLost("the connection was lost before the reply")
        try:
            async for message in _messages(reader):
                error = message.get("error")
                if message["id"] is None:
                    # The daemon does not serve this protocol version.
                    end = _to_error(message["error"])
                    break
                reply = self._waiting.pop(message["id"], None)
                if reply is None or reply.done():
                    continue
                if error:
                    reply.set_exception(_to_error(error))
                else:
                    reply.set_result(message["result"])
        finally:
            writer.close()
            self._writer = None
            for reply in self._waiting.values():
                if not reply.done():
                    reply.set_exception(end)
            self._waiting.clear()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection on which the daemon was told the client's name."""
        try:
            reader, writer = await asyncio.open_unix_connection(self.path, limit=_MAX_LINE_BYTES)
        except OSError as error:
            raise ConnectionLost(f"could not connect to {self.path}: {error}") from error
        hello = {"name": self.name, "protocol_version": t.PROTOCOL_VERSION}
        writer.write(_request(None, "daemon.hello", hello))
        return reader, writer


def _request(call_id: int | None, method: str, params: Mapping[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": call_id, "method": method, "params": params}).encode() + b"\n"


def _to_error(error: dict[str, Any]) -> RpcError:
    return RpcError(error["code"], error["message"], error["data"])


async def _messages(reader: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
    """The messages of a connection, without the reply to `daemon.hello` unless it is an error."""
    try:
        while line := await reader.readline():
            message = json.loads(line)
            if message.get("error") or "method" in message or message.get("id") is not None:
                yield message
    except OSError:
        return
