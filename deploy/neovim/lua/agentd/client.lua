-- JSON-RPC over the daemon's Unix socket, with the framing of language servers. Asynchronous: nothing here waits.

local M = {}

local PROTOCOL_VERSION = 1
local MAX_PAUSE_MS = 2000

--- The socket of the user's daemon, unless its configuration names another one.
function M.default_socket()
  local env = vim.env
  local function set(name)
    return env[name] and env[name] ~= "" and env[name] or nil
  end
  if set("AGENTD_SOCKET") then
    return env.AGENTD_SOCKET
  end
  if set("XDG_RUNTIME_DIR") then
    return env.XDG_RUNTIME_DIR .. "/agentd/agentd.sock"
  end
  local data = set("XDG_DATA_HOME") and env.XDG_DATA_HOME .. "/agentd" or vim.fs.normalize("~/.local/share/agentd")
  return (set("AGENTD_DATA_DIR") or data) .. "/run/agentd.sock"
end

local Connection = {}
Connection.__index = Connection

--- Opens a connection. `handlers.notification(method, params)` gets notifications, `handlers.closed(reason)` the end.
--- `ready(connection)` or `ready(nil, reason)` is called once.
function M.open(path, handlers, ready)
  local pipe = assert(vim.uv.new_pipe(false))
  local self = setmetatable({ pipe = pipe, next_id = 1, waiting = {}, buffer = "", handlers = handlers }, Connection)
  pipe:connect(path, function(failure)
    vim.schedule(function()
      if failure then
        pipe:close()
        ready(nil, ("could not connect to %s: %s; start the daemon with `agentctl daemon start`"):format(path, failure))
        return
      end
      pipe:read_start(function(read_failure, bytes)
        vim.schedule(function()
          if bytes then
            self:receive(bytes)
          else
            self:close(read_failure or "the daemon closed the connection")
          end
        end)
      end)
      self:call("daemon.hello", { name = "neovim", protocol_version = PROTOCOL_VERSION }, function(_, hello_failure)
        if hello_failure then
          self:close(hello_failure.message)
          ready(nil, hello_failure.message)
        else
          ready(self)
        end
      end)
    end)
  end)
end

--- Calls a method. `done(result, error)` is called once; after a lost connection the outcome is unknown.
function Connection:call(method, params, done)
  if self.is_closed then
    done(nil, { message = "the connection was lost", data = { kind = "connection_lost", retryable = true } })
    return
  end
  local id = self.next_id
  self.next_id = id + 1
  self.waiting[id] = done
  if params == nil or vim.tbl_isempty(params) then
    params = vim.empty_dict()
  end
  local body = vim.json.encode({ jsonrpc = "2.0", id = id, method = method, params = params })
  self.pipe:write(("Content-Length: %d\r\n\r\n%s"):format(#body, body))
end

function Connection:close(reason)
  if self.is_closed then
    return
  end
  self.is_closed = true
  if not self.pipe:is_closing() then
    self.pipe:close()
  end
  local waiting = self.waiting
  self.waiting = {}
  for _, done in pairs(waiting) do
    done(nil, { message = reason, data = { kind = "connection_lost", retryable = true } })
  end
  if self.handlers.closed then
    self.handlers.closed(reason)
  end
end

--- Takes the whole messages from the bytes that came.
function Connection:receive(bytes)
  self.buffer = self.buffer .. bytes
  local at = 1
  while not self.is_closed do
    local _, head_end = self.buffer:find("\r\n\r\n", at, true)
    local length = head_end and tonumber(self.buffer:sub(at, head_end):match("[Cc]ontent%-[Ll]ength: *(%d+)"))
    if not length or #self.buffer < head_end + length then
      break
    end
    local body = self.buffer:sub(head_end + 1, head_end + length)
    at = head_end + length + 1
    self:handle(vim.json.decode(body, { luanil = { object = true, array = true } }))
  end
  self.buffer = self.buffer:sub(at)
end

function Connection:handle(message)
  if message.method then
    self.handlers.notification(message.method, message.params)
    return
  end
  local done = self.waiting[message.id]
  self.waiting[message.id] = nil
  if done then
    done(message.result, message.error)
  end
end

--- Follows a session after a cursor, through lost connections and restarts of the daemon, without a gap or a repetition.
--- `on.event(event)`, `on.state(text)` and `on.failed(reason)` are called; the result has `call`, `stop`.
function M.follow(path, session_id, on)
  local follower = { after_seq = 0, pause = 50 }

  function follower.stop()
    follower.is_stopped = true
    if follower.connection then
      follower.connection:close("detached")
    end
  end

  --- Calls a method about the session; the connection may be lost, then `done` gets an error.
  function follower.call(method, params, done)
    if not follower.connection then
      done(nil, { message = "the daemon cannot be reached now", data = { kind = "connection_lost", retryable = true } })
      return
    end
    follower.connection:call(method, params, done)
  end

  local connect
  local function retry(reason)
    follower.connection = nil
    if follower.is_stopped then
      return
    end
    on.state(follower.stopping or "connection lost, trying again: " .. reason)
    vim.defer_fn(connect, follower.pause)
    follower.pause = math.min(follower.pause * 2, MAX_PAUSE_MS)
  end

  function connect()
    if follower.is_stopped then
      return
    end
    local handlers = {
      notification = function(method, params)
        if method == "session.event" and not follower.is_stopped then
          follower.after_seq = params.result.seq
          on.event(params.result)
        elseif method == "daemon.event" and params.result.kind == "daemon.restarting" and not follower.is_stopped then
          follower.stopping = params.result.reason == "restart" and "the daemon restarts" or "the daemon stops"
          on.state(follower.stopping)
        end
      end,
      closed = retry,
    }
    M.open(path, handlers, function(connection, reason)
      if not connection then
        -- A refused `daemon.hello` closes the connection, which tries again by itself.
        if reason:find("could not connect", 1, true) then
          retry(reason)
        end
        return
      end
      follower.connection = connection
      local params = { session_id = session_id, after_seq = follower.after_seq }
      connection:call("session.subscribe", params, function(_, failure)
        if not failure then
          follower.pause = 50
          follower.stopping = nil
          on.state("")
          -- An older daemon refuses this; its stop is then a lost connection.
          connection:call("daemon.subscribe", { about = { "daemon" } }, function() end)
        elseif not failure.data.retryable then
          follower.stop()
          on.failed(failure.message)
        end
      end)
    end)
  end
  connect()
  return follower
end

--- One call on a connection of its own.
function M.call_once(path, method, params, done)
  M.open(path, { notification = function() end }, function(connection, reason)
    if not connection then
      done(nil, { message = reason, data = { kind = "connection_lost", retryable = true } })
      return
    end
    connection:call(method, params, function(result, failure)
      done(result, failure)
      connection:close("done")
    end)
  end)
end

return M
