-- For wrk: requests TARGET, each time with a random key of the file KEYS. The requests are built up front, so that the
-- client costs little. Responses may be compressed, as for most clients. With a BODY the requests are POSTs of it.
local requests = {}

function init(_)
  math.randomseed(os.time())
  for key in io.lines(os.getenv("KEYS")) do
    local body = os.getenv("BODY") or ""
    local headers = { ["Authorization"] = "Bearer " .. key, ["Accept-Encoding"] = "zstd" }
    if body == "" then
      requests[#requests + 1] = wrk.format("GET", os.getenv("TARGET"), headers)
    else
      headers["Content-Type"] = "application/json"
      requests[#requests + 1] = wrk.format("POST", os.getenv("TARGET"), headers, body)
    end
  end
end

function request()
  return requests[math.random(#requests)]
end
