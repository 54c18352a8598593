-- Sends one request after the other from a file that holds a line for each, beginning behind a number of lines: GET with
-- the line as Authorization ("-": none), or POST with the line as a form; prints JSON.
local requests, at = {}, 0

local function get(line)
  local headers = { ["Connection"] = "keep-alive" }
  if line ~= "-" then headers["Authorization"] = line end
  return wrk.format("GET", nil, headers)
end

local function post(line)
  return wrk.format("POST", nil, { ["Content-Type"] = "application/x-www-form-urlencoded" }, line)
end

function init(args)
  local format = args[3] == "form" and post or get
  for line in io.lines(args[1]) do
    requests[#requests + 1] = format(line)
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
