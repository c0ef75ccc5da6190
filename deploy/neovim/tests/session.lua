-- Drives the plugin in a headless Neovim against the daemon at AGENTD_SOCKET, which has a scripted model. Writes a line to
-- the file PROGRESS after each step, so that the test around it can act in between.

local progress = assert(os.getenv("PROGRESS"))

local function step(name)
  local file = assert(io.open(progress, "a"))
  file:write(name, "\n")
  file:close()
end

local function fail(why)
  step("FAILED " .. why)
  vim.cmd("cquit 1")
end

local function wait(what, condition)
  if not vim.wait(30000, condition, 20) then
    local shown = {}
    for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
      vim.list_extend(shown, vim.api.nvim_buf_get_lines(buffer, 0, -1, false))
    end
    fail(what .. "\n" .. table.concat(shown, "\n"))
  end
end

local function session()
  local agentd = require("agentd")
  return agentd.sessions[agentd.last or ""]
end

local function text()
  return session() and table.concat(vim.api.nvim_buf_get_lines(session().view.buffer, 0, -1, false), "\n") or ""
end

local function has(words)
  return function()
    return text():find(words, 1, true) ~= nil
  end
end

--- The lines of all floating windows and of windows with a diff.
local function request_lines()
  local lines = {}
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    local buffer = vim.api.nvim_win_get_buf(window)
    if vim.api.nvim_win_get_config(window).relative ~= "" or vim.bo[buffer].filetype == "diff" then
      vim.list_extend(lines, vim.api.nvim_buf_get_lines(buffer, 0, -1, false))
    end
  end
  return table.concat(lines, "\n")
end

vim.notify = function(message)
  step("notified: " .. message)
end
vim.cmd.edit("main.rs")
vim.diagnostic.set(vim.api.nvim_create_namespace("test"), 0, {
  { lnum = 1, col = 4, message = "expected `;`", severity = vim.diagnostic.severity.ERROR, source = "rustc" },
})
vim.api.nvim_buf_set_lines(0, 0, 1, false, { "fn main() { // not saved" })
vim.cmd("1,3Agentd fix this")

wait("the request of the edit", function()
  return request_lines():find("let x = 1;", 1, true) ~= nil
end)
local shown = request_lines()
if not shown:find("- *let x = 1") or not shown:find("agentd", 1, true) and not shown:find("once", 1, true) then
  fail("the request has no diff: " .. shown)
end
if vim.api.nvim_win_get_config(0).relative ~= "" then
  fail("the request took the focus")
end
vim.cmd("Agentd requests")
vim.api.nvim_feedkeys("y", "x", false)
wait("the end of the turn", has("─ success ─"))
wait("the answer", has("Fixed it."))
for _, words in ipairs({ "> fix this", "not saved", "error (rustc): expected `;`", "✓ Edit: " }) do
  if not has(words)() then
    fail("the buffer lacks " .. words .. "\n" .. text())
  end
end
step("edited")

vim.cmd("Agentd run it")
wait("the request of the command", function()
  return request_lines():find("touch made", 1, true) ~= nil
end)
step("asked")
wait("its window to close", function()
  return request_lines() == ""
end)
wait("the first half", has("one"))
step("streaming")
wait("the rest after the crash", has("after the restart"))
wait("the second end", function()
  return select(2, text():gsub("─ success ─", "")) == 2
end)
if select(2, text():gsub("> run it", "")) ~= 1 then
  fail("a message is shown twice\n" .. text())
end
step("answered")
local states = {}
wait("the words about the stop", function()
  states[session().state] = true
  return states["the daemon stops"]
end)
wait("the daemon after the stop", function()
  return session().state ~= "the daemon stops"
end)
vim.cmd("Agentd detach")
if next(require("agentd").sessions) then
  fail("the session is still attached")
end
vim.cmd("checkhealth agentd")
if not table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n"):find("the daemon answers", 1, true) then
  fail("the health check does not find the daemon")
end
step("DONE")
vim.cmd("qall!")
