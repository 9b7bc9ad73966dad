-- Prints when a job is likely to start, after sbatch, srun and salloc: docs/at-submission.md.
--
-- Copy this file beside slurm.conf on the machines where users submit, and set `CliFilterPlugins=lua`. It runs in the
-- client as the user. It changes no option, asks `shadowtime ask --serve`, and prints at most two lines on the standard
-- error. It is silent if there is no answer within PATIENCE seconds, if the job cannot be described, or if the user has
-- SHADOWTIME_HINT=off. An error in here does not stop the submission.

local HOST, PORT = "127.0.0.1", 6090  -- an address in digits: looking up a name could take long
local CLUSTER = "mine"                -- name of the cluster (shadowtime follow --cluster)
local PARTITION = nil                 -- the partition of jobs that name none
local LIMIT = nil                     -- seconds that a job without --time may run; nil: no lines for such jobs
local MEMORY = nil                    -- MiB for each processor of a job that states no memory (DefMemPerCPU)
local PATIENCE = 0.3                  -- seconds in total

local NOT_DESCRIBED = {"begin", "clusters", "constraint", "dependency", "exclude", "exclusive", "gpus", "gpus-per-node",
  "gpus-per-socket", "gpus-per-task", "gres", "hint", "hold", "licenses", "nodelist", "quiet", "reservation",
  "threads-per-core"}  -- with one thread for each core, a job gets twice as many processors
local UNSET = {["unset"] = true, ["invalid-context"] = true, ["Unknown"] = true, ["0"] = true, ["-2"] = true, [""] = true}

local function value(options, name)
  local ok, text = pcall(function() return options[name] end)
  text = ok and text ~= nil and tostring(text) or nil
  if text == nil or UNSET[text] then return nil end
  return text
end

-- Seconds of a limit as Slurm writes it, [days-]hours:minutes:seconds; nil if it is not set.
local function seconds(text)
  local days, rest = (text or ""):match("^(%d+)-(.+)$")
  local hours, minutes, last = (rest or text or ""):match("^(%d+):(%d+):(%d+)$")
  if not hours or tonumber(days or 0) > 3650 then return nil end
  return tonumber(days or 0) * 86400 + hours * 3600 + minutes * 60 + last
end

-- MiB of a size as Slurm writes it, such as 4000M or 2G; nil if it is not set.
local function mebibytes(text)
  local number, unit = (text or ""):match("^(%d+)([MGTP]?)$")
  local power = unit and ("MGTP"):find(unit, 1, true)
  return power and tonumber(number) * 1024 ^ (power - 1)
end

local function encoded(text)
  return (text:gsub("[^%w%-_.]", function(letter) return ("%%%02X"):format(letter:byte()) end))
end

-- The query about a job; nil if a query cannot describe the job.
local function question(options)
  for _, name in ipairs(NOT_DESCRIBED) do
    if value(options, name) then return nil end
  end
  local limit = seconds(value(options, "time")) or LIMIT
  local nodes = tonumber((value(options, "nodes") or "1"):match("^(%d+)"))
  local per_node = tonumber(value(options, "ntasks-per-node") or 1)
  local tasks = tonumber(value(options, "ntasks") or 1)
  local processors = math.max(tasks, nodes * per_node) * tonumber(value(options, "cpus-per-task") or 1)
  local partition = value(options, "partition") or PARTITION
  if not limit or limit < 1 or (partition and partition:find(",")) then return nil end
  local memory = mebibytes(value(options, "mem"))
  local of_processor = mebibytes(value(options, "mem-per-cpu")) or MEMORY
  memory = memory and memory * nodes or of_processor and of_processor * processors
  local asked = {cluster = CLUSTER, processors = ("%d"):format(processors), requested_time = ("%d"):format(limit),
    memory = memory and ("%d"):format(memory) or nil, partition = partition, account = value(options, "account"),
    user = os.getenv("USER")}
  local words = {}
  for name, text in pairs(asked) do words[#words + 1] = name .. "=" .. encoded(text) end
  return table.concat(words, "&")
end

-- The body of the answer to GET /hint, or nil.
local function ask(query)
  local socket = require("socket")
  local until_then = socket.gettime() + PATIENCE
  local connection = socket.tcp()
  local received = ""
  local function patient() connection:settimeout(math.max(0.001, until_then - socket.gettime()), "t") end
  patient()
  local request = "GET /hint?%s HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\n\r\n"
  if connection:connect(HOST, PORT) then
    patient()
    if connection:send(request:format(query, HOST, PORT)) then
      while #received < 8192 and socket.gettime() < until_then do
        patient()
        local part, problem, rest = connection:receive(1024)
        received = received .. (part or rest or "")
        if problem then break end
      end
    end
  end
  connection:close()
  local head, body = received:match("^(HTTP/1%.[01] 200 .-\r\n\r\n)(.*)$")
  local length = head and tonumber(head:lower():match("\r\ncontent%-length: *(%d+)"))
  if length and #body >= length then return body:sub(1, length) end
  return nil
end

local function hint(options)
  if os.getenv("SHADOWTIME_HINT") == "off" then return end
  local query = question(options)
  local body = query and ask(query) or ""
  local lines = 0
  for line in body:gmatch("[^\r\n]+") do
    if lines < 2 then io.stderr:write((line:sub(1, 200):gsub("%c", "")), "\n") end
    lines = lines + 1
  end
end

local asked = nil

function slurm_cli_setup_defaults(options, early)
  return slurm.SUCCESS
end

-- sbatch prints the lines after the submission. srun and salloc wait for the start, so they print them before.
function slurm_cli_pre_submit(options, offset)
  pcall(function()
    local kind = value(options, "type")
    asked = offset == 0 and kind == "sbatch" and options or nil
    local waits = kind == "salloc" or (kind == "srun" and not os.getenv("SLURM_JOB_ID"))
    if offset == 0 and waits and value(options, "test-only") ~= "set" then hint(options) end
  end)
  return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job, step)
  pcall(function() if asked and offset == 0 then hint(asked) end end)
  return slurm.SUCCESS
end
