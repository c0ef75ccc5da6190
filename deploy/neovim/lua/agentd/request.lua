-- A pending permission request: a window with all that would run, and the diff in a split. The window does not take the
-- focus, so that a key that was meant for a buffer answers nothing. It closes when the request is answered elsewhere.

local M = {}

local KEYS = "y once · s session · p this folder · n no · r no, with words · q later"
local KEYS_ONCE = "y once · n no · r no, with words · q later"

--- Everything that the call would do: all lines of a command, or the whole input.
local function whole_call(event)
  local input = type(event.input) == "table" and event.input or {}
  if type(input.command) == "string" then
    return input.command
  end
  if event.diff and event.diff ~= "" then
    return event.summary
  end
  return event.summary .. "\n" .. vim.json.encode(event.input)
end

--- Opens the windows. `answer(params)` sends the answer; the result has `close`.
function M.open(event, answer)
  -- A rule about the sandbox or a plan must not come from one key.
  local is_lasting = event.kind ~= "sandbox" and event.kind ~= "plan"
  local lines = { whole_call(event), "" }
  if event.reason and event.reason ~= "" then
    lines[#lines + 1] = event.reason:gsub("\n", " ")
  end
  for _, rule in ipairs(is_lasting and event.suggestions or {}) do
    lines[#lines + 1] = "rule: " .. rule
  end
  vim.list_extend(lines, { "", is_lasting and KEYS or KEYS_ONCE })
  local text = vim.split(table.concat(lines, "\n"), "\n")

  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, text)
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].bufhidden = "wipe"
  local width = math.min(vim.o.columns - 4, 100)
  local window = vim.api.nvim_open_win(buffer, false, {
    relative = "editor",
    row = 1,
    col = math.max(0, math.floor((vim.o.columns - width) / 2)),
    width = width,
    height = 1,
    border = "single",
    title = " agentd asks: " .. event.tool .. " · :Agentd requests ",
  })
  vim.wo[window].wrap = true
  local height = vim.api.nvim_win_text_height(window, {}).all
  vim.api.nvim_win_set_height(window, math.min(height, math.max(1, vim.o.lines - 6)))
  vim.notify("agentd asks: " .. event.summary .. " (:Agentd requests)")

  local diff_window
  if event.diff and event.diff ~= "" then
    local diff = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_lines(diff, 0, -1, false, vim.split(event.diff, "\n"))
    vim.bo[diff].filetype = "diff"
    vim.bo[diff].modifiable = false
    vim.bo[diff].bufhidden = "wipe"
    diff_window = vim.api.nvim_open_win(diff, false, { split = "below", win = -1, height = math.floor(vim.o.lines / 2) })
  end

  local request = {}

  --- Puts the cursor into the window; false if it was closed.
  function request.focus()
    if not vim.api.nvim_win_is_valid(window) then
      return false
    end
    vim.api.nvim_set_current_win(window)
    return true
  end

  function request.close()
    for _, open in ipairs({ window, diff_window }) do
      if vim.api.nvim_win_is_valid(open) then
        vim.api.nvim_win_close(open, true)
      end
    end
  end

  local function reply(params)
    params.request_id = event.request_id
    -- The daemon refuses the answer if the request is no longer the one that was shown.
    params.digest = event.digest
    request.close()
    answer(params)
  end
  local function on(key, action)
    vim.keymap.set("n", key, action, { buffer = buffer, nowait = true })
  end
  on("y", function()
    reply({ decision = "allow" })
  end)
  if is_lasting then
    on("s", function()
      reply({ decision = "allow", scope = "session" })
    end)
    on("p", function()
      reply({ decision = "allow", scope = "project" })
    end)
  end
  on("n", function()
    reply({ decision = "deny" })
  end)
  on("r", function()
    vim.ui.input({ prompt = "why not: " }, function(words)
      if words then
        reply({ decision = "deny", feedback = words })
      end
    end)
  end)
  on("q", request.close)
  return request
end

return M
