-- Defines :Agentd. The rest is loaded when it is used.
if vim.g.loaded_agentd then
  return
end
vim.g.loaded_agentd = true

vim.api.nvim_create_user_command("Agentd", function(arguments)
  require("agentd").command(arguments)
end, {
  nargs = "*",
  range = true,
  desc = "Work with a session of agentd",
  complete = function(lead, line)
    return require("agentd").complete(lead, line)
  end,
})
