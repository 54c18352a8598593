-- Sends one request after the other from a file that holds an Authorization value a line ("-": none),
-- beginning behind a number of lines; prints JSON.
local requests, at = {}, 0

function init(args)
  for line in io.lines(args[1]) do
    local headers = { ["Connection"] = "keep-alive" }
    if line ~= "-" then headers["Authorization"] = line end
    requests[#requests + 1] = wrk.format("GET", nil, headers)
  end
  at = tonumber(args[2])
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('\n{"answered":%d,"seconds":%.6f,"refused":%d,"failed":%d,"p50Ms":%.3f,"p99Ms":%.3f}\n',
    summary.requests, summary.duration / 1e6, errors.status, errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
