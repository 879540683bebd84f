-- For wrk: asks for TARGET with a random one of the keys in the file KEYS each time. The requests are made up
-- front, so that the client costs little.
local requests = {}

function init(_)
  math.randomseed(os.time())
  for key in io.lines(os.getenv("KEYS")) do
    requests[#requests + 1] = wrk.format("GET", os.getenv("TARGET"), { Authorization = "Bearer " .. key })
  end
end

function request()
  return requests[math.random(#requests)]
end
