-- SPDX-License-Identifier: MIT
-- For wrk: sixteen requests in one piece, and none before their answers have come.
init = function(args)
  local one = wrk.format("GET", wrk.path)
  all = string.rep(one, 16)
end
request = function() return all end
