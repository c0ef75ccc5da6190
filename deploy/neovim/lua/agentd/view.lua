-- The buffer that shows a session: text as it streams, tool calls as folds, pending requests at the end.

local M = {}

local NAMESPACE = vim.api.nvim_create_namespace("agentd")

local View = {}
View.__index = View

function M.new(session_id)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, "agentd://" .. session_id)
  vim.bo[buffer].filetype = "markdown"
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].bufhidden = "hide"
  vim.b[buffer].agentd_session = session_id
  return setmetatable({ buffer = buffer, session_id = session_id, items = {}, calls = {} }, View)
end

--- Shows the buffer in a window, with folds for the details of tool calls.
function View:open()
  local window = vim.fn.bufwinid(self.buffer)
  if window ~= -1 then
    vim.api.nvim_set_current_win(window)
    return
  end
  vim.cmd("botright vsplit")
  vim.api.nvim_win_set_buf(0, self.buffer)
  vim.wo.wrap, vim.wo.linebreak = true, true
  vim.wo.foldmethod, vim.wo.foldexpr = "expr", "v:lua.require'agentd.view'.fold(v:lnum)"
  vim.wo.foldlevel = 0
end

--- Lines that begin with two blanks and a bar belong to the line above them.
function M.fold(line)
  return vim.fn.getline(line):find("^  │") and "1" or "0"
end

function View:edit(change)
  if not vim.api.nvim_buf_is_valid(self.buffer) then
    return
  end
  local is_at_end = {}
  for _, window in ipairs(vim.fn.win_findbuf(self.buffer)) do
    local line = vim.api.nvim_win_get_cursor(window)[1]
    is_at_end[window] = line == vim.api.nvim_buf_line_count(self.buffer)
  end
  vim.bo[self.buffer].modifiable = true
  change()
  vim.bo[self.buffer].modifiable = false
  vim.bo[self.buffer].modified = false
  for window, follows in pairs(is_at_end) do
    if follows then
      vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(self.buffer), 0 })
    end
  end
end

--- Adds whole lines at the end and returns a mark of the first one.
function View:add(text)
  local mark
  self:edit(function()
    local count = vim.api.nvim_buf_line_count(self.buffer)
    local is_empty = count == 1 and vim.api.nvim_buf_get_lines(self.buffer, 0, 1, false)[1] == ""
    local first = is_empty and 0 or count
    vim.api.nvim_buf_set_lines(self.buffer, first, count, false, vim.split(text, "\n"))
    mark = vim.api.nvim_buf_set_extmark(self.buffer, NAMESPACE, first, 0, { right_gravity = false })
  end)
  return mark
end

function View:line_of(mark)
  return vim.api.nvim_buf_get_extmark_by_id(self.buffer, NAMESPACE, mark, {})[1]
end

--- The item with its lines, which begin at `mark`.
function View:item(id)
  local item = self.items[id]
  if not item then
    item = { text = "", count = 1 }
    item.mark = self:add("")
    self.items[id] = item
  end
  return item
end

function View:replace(item, text)
  local lines = vim.split(text, "\n")
  local first = self:line_of(item.mark)
  self:edit(function()
    vim.api.nvim_buf_set_lines(self.buffer, first, first + item.count, false, lines)
    item.mark = vim.api.nvim_buf_set_extmark(self.buffer, NAMESPACE, first, 0, { id = item.mark, right_gravity = false })
  end)
  item.text, item.count = text, #lines
end

--- Streams text to an item: only the last line changes.
function View:stream(id, text)
  local item = self:item(id)
  local parts = vim.split(text, "\n")
  local last = self:line_of(item.mark) + item.count - 1
  self:edit(function()
    local line = vim.api.nvim_buf_get_lines(self.buffer, last, last + 1, false)[1] or ""
    vim.api.nvim_buf_set_text(self.buffer, last, #line, last, #line, parts)
  end)
  item.text, item.count = item.text .. text, item.count + #parts - 1
end

--- Details of a call, as lines of its fold.
function View:detail(call, text)
  text = text:gsub("\n$", "")
  if text == "" then
    return
  end
  local lines = vim.tbl_map(function(line)
    return "  │ " .. line
  end, vim.split(text, "\n"))
  local first = self:line_of(call.mark) + call.count
  self:edit(function()
    vim.api.nvim_buf_set_lines(self.buffer, first, first, false, lines)
  end)
  call.count = call.count + #lines
end

function View:call(event)
  local call = self.calls[event.call_id]
  if not call then
    call = { count = 1, title = event.summary or event.tool }
    call.mark = self:add("● " .. call.title:gsub("\n.*", " …"))
    self.calls[event.call_id] = call
  end
  return call
end

local function title_of(event)
  local input = type(event.input) == "table" and event.input or {}
  local subject = input.command or input.file_path or input.path or input.pattern or input.url or input.description
  return type(subject) == "string" and ("%s: %s"):format(event.tool, subject) or event.tool
end

--- The texts of a complete message.
local function message_text(item)
  local texts = {}
  for _, block in ipairs(item.content or {}) do
    if block.type == "text" then
      texts[#texts + 1] = block.text
    end
  end
  return table.concat(texts, "\n")
end

local show = {}

show["message.text_delta"] = function(self, event)
  self:stream(event.item_id, event.text)
end

show["message.completed"] = function(self, event)
  local item = event.item
  local text = message_text(item)
  if item.kind == "user_message" then
    self:add("")
    self:add("> " .. text:gsub("\n", "\n> "))
    self:add("")
  elseif event.superseded then
    if self.items[item.item_id] then
      self:replace(self.items[item.item_id], "(this answer was replaced)")
    end
  elseif text ~= "" then
    local shown = self:item(item.item_id)
    if shown.text ~= text then
      self:replace(shown, text)
    end
  end
end

show["tool.requested"] = function(self, event)
  self:call({ call_id = event.call_id, tool = event.tool, summary = title_of(event) })
end

show["tool.progress"] = function(self, event)
  local call = self:call(event)
  call.has_output = true
  self:detail(call, event.text)
end

show["tool.completed"] = function(self, event)
  local call = self:call(event)
  if not call.has_output then
    self:detail(call, event.output or "")
  end
  local line = self:line_of(call.mark)
  local sign = event.status == "completed" and "✓" or "✗"
  self:edit(function()
    local title = call.title:gsub("\n.*", " …")
    vim.api.nvim_buf_set_text(self.buffer, line, 0, line, -1, { ("%s %s"):format(sign, title) })
  end)
end

show["file.changed"] = function(self, event)
  local call = self.calls[event.call_id]
  if call then
    self:detail(call, event.diff)
  end
end

show["turn.completed"] = function(self, event)
  self:add("")
  self:add(("─ %s ─"):format(event.result.subtype))
end

show["notice"] = function(self, event)
  self:add("  " .. event.text:gsub("\n", " "))
end

function View:show(event)
  local handler = show[event.type]
  if handler then
    handler(self, event)
  end
end

return M
