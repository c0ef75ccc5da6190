-- :checkhealth agentd

local M = {}

function M.check()
  local health = vim.health
  health.start("agentd")
  if vim.fn.has("nvim-0.11") == 1 then
    health.ok("Neovim 0.11 or newer")
  else
    health.error("Neovim 0.11 or newer is needed")
  end
  if vim.fn.executable("agentctl") == 1 then
    health.ok("agentctl is installed")
  else
    health.warn("agentctl is not in PATH", "install it, to start the daemon and to use its sessions in a terminal")
  end
  local client = require("agentd.client")
  local path = require("agentd").config.socket or client.default_socket()
  local reply, failure
  client.call_once(path, "daemon.status", {}, function(result, reason)
    reply, failure = result, reason
  end)
  vim.wait(2000, function()
    return reply ~= nil or failure ~= nil
  end)
  if reply then
    health.ok(("the daemon answers at %s, version %s"):format(path, reply.version or "unknown"))
  else
    health.error(failure and failure.message or ("no answer at " .. path), "agentctl daemon start")
  end
end

return M
