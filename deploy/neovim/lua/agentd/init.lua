-- :Agentd: sessions of the daemon in buffers.

local client = require("agentd.client")
local context = require("agentd.context")
local request_window = require("agentd.request")
local view = require("agentd.view")

local M = { config = { socket = nil }, sessions = {} }

--- Options: `socket`, the path of the daemon's socket.
function M.setup(options)
  M.config = vim.tbl_extend("force", M.config, options or {})
end

local function socket()
  return M.config.socket or client.default_socket()
end

local function tell(text, level)
  vim.notify("agentd: " .. text, level or vim.log.levels.INFO)
end

local function failed(failure)
  tell(failure.message, vim.log.levels.ERROR)
end

--- A key under which a repeated call takes effect once.
local function new_key()
  return vim.fn.sha256(("%s %s %s"):format(vim.fn.getpid(), vim.uv.hrtime(), vim.fn.rand())):sub(1, 32)
end

local Session = {}
Session.__index = Session

local function attach(session_id)
  local session = M.sessions[session_id]
  if session then
    session.view:open()
    return session
  end
  session = setmetatable({ id = session_id, view = view.new(session_id), requests = {}, state = "" }, Session)
  M.sessions[session_id] = session
  session.follower = client.follow(socket(), session_id, {
    event = function(event)
      session:handle(event)
    end,
    state = function(text)
      session.state = text
      vim.cmd.redrawstatus()
    end,
    failed = function(reason)
      M.sessions[session_id] = nil
      tell(reason, vim.log.levels.ERROR)
    end,
  })
  session.view:open()
  return session
end

function Session:call(method, params, done)
  self.follower.call(method, params, function(result, failure)
    if failure then
      failed(failure)
    elseif done then
      done(result)
    end
  end)
end

function Session:handle(event)
  self.view:show(event)
  if event.type == "permission.requested" then
    self.requests[event.request_id] = { event = event }
    self:show_requests()
  elseif event.type == "permission.resolved" then
    self:settle(event.request_id)
  elseif event.type == "question.requested" then
    self.requests[event.request_id] = { event = event, is_question = true }
    self:show_requests()
  elseif event.type == "question.resolved" then
    self:settle(event.request_id)
  elseif event.type == "session.status" then
    self.state = event.state
    vim.cmd.redrawstatus()
  end
end

--- Shows what still waits. A replay brings old requests and their ends in one go, so wait until they all came.
function Session:show_requests()
  if self.is_showing then
    return
  end
  self.is_showing = true
  vim.defer_fn(function()
    self.is_showing = false
    for id, request in pairs(self.requests) do
      if not request.window and not request.is_asking then
        if request.is_question then
          self:ask(id, request)
        else
          request.window = request_window.open(request.event, function(answer)
            self:call("session.approve", answer)
          end)
        end
        return
      end
    end
  end, 20)
end

function Session:settle(id)
  local request = self.requests[id]
  self.requests[id] = nil
  if request and request.window then
    request.window.close()
  end
  if next(self.requests) then
    self:show_requests()
  end
end

--- Asks the questions of the model one after another.
function Session:ask(id, request)
  request.is_asking = true
  local event = request.event
  local function send(params)
    if self.requests[id] then
      params.request_id = id
      self:call("session.answer", params)
    end
  end
  if event.kind ~= "question" then
    vim.ui.select(event.options, { prompt = event.text }, function(choice)
      if choice then
        send({ choice = choice })
      end
    end)
    return
  end
  local answers = {}
  local function next_question()
    local question = event.questions[#answers + 1]
    if not question then
      send({ answers = answers })
      return
    end
    local labels = vim.tbl_map(function(option)
      return option.label
    end, question.options or {})
    table.insert(labels, "other …")
    vim.ui.select(labels, { prompt = question.question }, function(choice, index)
      if not choice then
        return
      end
      if index < #labels then
        table.insert(answers, { choices = { choice } })
        next_question()
        return
      end
      vim.ui.input({ prompt = question.question .. " " }, function(words)
        if words then
          table.insert(answers, { text = words })
          next_question()
        end
      end)
    end)
  end
  next_question()
end

function Session:submit(text, selection)
  local input = { { type = "text", text = text } }
  if selection then
    table.insert(input, { type = "text", text = selection })
  end
  self:call("session.submit", {
    session_id = self.id,
    input = input,
    when_busy = "queue",
    idempotency_key = new_key(),
  })
end

--- The session of the current buffer, or the only one.
local function current()
  local session = M.sessions[vim.b.agentd_session or ""] or M.sessions[M.last or ""]
  if not session then
    tell("no session is attached; use :Agentd or :Agentd list", vim.log.levels.WARN)
  end
  return session
end

--- Calls `done(session)` with the last session, or a new one in the current folder.
local function with_session(done)
  local session = M.sessions[vim.b.agentd_session or ""] or M.sessions[M.last or ""]
  if session then
    done(session)
    return
  end
  client.call_once(socket(), "session.create", { cwd = vim.fn.getcwd(), idempotency_key = new_key() }, function(reply, failure)
    if failure then
      failed(failure)
      return
    end
    M.last = reply.session.session_id
    done(attach(M.last))
  end)
end

local function prompt(text, selection)
  local function send(words)
    if not words or words == "" then
      return
    end
    with_session(function(session)
      M.last = session.id
      -- The subscription may still be on its way, and the submit needs its connection.
      local function submit(attempts)
        if session.follower.connection or attempts == 0 then
          session:submit(words, selection)
        else
          vim.defer_fn(function()
            submit(attempts - 1)
          end, 20)
        end
      end
      submit(250)
    end)
  end
  if text ~= "" then
    send(text)
  else
    vim.ui.input({ prompt = "prompt: " }, send)
  end
end

local function list()
  client.call_once(socket(), "session.list", { limit = 50 }, function(reply, failure)
    if failure then
      failed(failure)
      return
    end
    vim.ui.select(reply.sessions, {
      prompt = "sessions",
      format_item = function(session)
        local folder = vim.fn.fnamemodify(session.cwd, ":~")
        return ("#%d  %-8s  %s  %s"):format(session.number, session.state, session.title or "", folder)
      end,
    }, function(session)
      if session then
        M.last = session.session_id
        attach(session.session_id)
      end
    end)
  end)
end

local actions = {
  prompt = function(arguments)
    local selection
    if arguments.range > 0 then
      selection = context.selection(0, arguments.line1, arguments.line2)
    end
    prompt(arguments.rest, selection)
  end,
  list = list,
  attach = function(arguments)
    if arguments.rest == "" then
      list()
      return
    end
    client.call_once(socket(), "session.get", { session_id = arguments.rest }, function(reply, failure)
      if failure then
        failed(failure)
        return
      end
      M.last = reply.session.session_id
      attach(M.last)
    end)
  end,
  abort = function()
    local session = current()
    if session then
      session:call("session.abort", { session_id = session.id })
    end
  end,
  requests = function()
    local session = current()
    if not session then
      return
    end
    for _, request in pairs(session.requests) do
      if request.window and request.window.focus() then
        return
      end
      request.window, request.is_asking = nil, nil
    end
    session:show_requests()
  end,
  detach = function()
    local session = current()
    if session then
      session.follower.stop()
      M.sessions[session.id] = nil
      if vim.api.nvim_buf_is_valid(session.view.buffer) then
        vim.api.nvim_buf_delete(session.view.buffer, { force = true })
      end
    end
  end,
}

function M.command(arguments)
  local name = arguments.fargs[1] or "prompt"
  local action = actions[name]
  if action then
    arguments.rest = arguments.args:gsub("^%s*%S+%s*", "")
  else
    -- `:Agentd fix the test` is a prompt.
    action, arguments.rest = actions.prompt, arguments.args
  end
  action(arguments)
end

function M.complete(lead, line)
  if line:match("^%S*Agentd%s+%S*$") then
    return vim.tbl_filter(function(name)
      return vim.startswith(name, lead)
    end, vim.fn.sort(vim.tbl_keys(actions)))
  end
  return {}
end

--- A text for the status line: the state of the last session.
function M.status()
  local session = M.sessions[M.last or ""]
  return session and session.state or ""
end

return M
