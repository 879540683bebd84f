-- For wrk: requests a random one of VIDEOS videos each time. The requests are built up front, so that the client costs
-- little.
local videos = tonumber(os.getenv("VIDEOS"))
local requests = {}

function init(_)
  math.randomseed(os.time())
  for number = 0, videos - 1 do
    requests[number] = wrk.format("GET", string.format("/api/transcript?v=bench-%05d", number))
  end
end

function request()
  return requests[math.random(0, videos - 1)]
end
