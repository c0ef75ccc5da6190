-- What a prompt carries from a buffer: the selected lines with their place and diagnostics.

local M = {}

local SEVERITIES = { "error", "warning", "information", "hint" }

--- A block with the lines `first` to `last` of a buffer, also of text that is not saved.
function M.selection(buffer, first, last)
  local lines = vim.api.nvim_buf_get_lines(buffer, first - 1, last, false)
  local name = vim.api.nvim_buf_get_name(buffer)
  local place = name ~= "" and vim.fn.fnamemodify(name, ":.") or "a buffer without a name"
  local unsaved = vim.bo[buffer].modified and ", as it is in the editor, not saved" or ""
  -- The fence is longer than any run of ticks in the text.
  local longest = 2
  for _, line in ipairs(lines) do
    for ticks in line:gmatch("`+") do
      longest = math.max(longest, #ticks)
    end
  end
  local fence = ("`"):rep(longest + 1)
  local text = {
    ("Lines %d to %d of %s%s:"):format(first, last, place, unsaved),
    fence .. vim.bo[buffer].filetype,
  }
  vim.list_extend(text, lines)
  text[#text + 1] = fence
  for _, found in ipairs(vim.diagnostic.get(buffer)) do
    if found.lnum + 1 >= first and found.lnum + 1 <= last then
      local source = found.source and (" (%s)"):format(found.source) or ""
      local message = found.message:gsub("%s+", " ")
      text[#text + 1] = ("line %d: %s%s: %s"):format(found.lnum + 1, SEVERITIES[found.severity], source, message)
    end
  end
  return table.concat(text, "\n")
end

return M
