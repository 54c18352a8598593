-- Posts one form after the other from a file that holds one a line; prints JSON.
local requests, at = {}, 0

function init(args)
  local headers = { ["Content-Type"] = "application/x-www-form-urlencoded" }
  for line in io.lines(args[1]) do
    requests[#requests + 1] = wrk.format("POST", nil, headers, line)
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary)
  local errors = summary.errors
  io.write(string.format('\n{"answered":%d,"seconds":%.6f,"refused":%d,"failed":%d}\n',
    summary.requests, summary.duration / 1e6, errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
