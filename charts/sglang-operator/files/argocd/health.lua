-- Argo CD's health of a SGLangCluster, for resource.customizations.health.sglang.dev_SGLangCluster.
-- The status follows kstatus. docs/gitops.md says how to install this.
-- Argo CD runs it without the string library: only concatenation, no formatting.
local function health(status, message)
  return { status = status, message = message }
end

if obj.metadata.deletionTimestamp ~= nil then
  return health("Progressing", "being deleted")
end

local status = obj.status or {}
if status.observedGeneration == nil then
  return health("Progressing", "waiting for the operator to see the SGLangCluster")
end
-- A status about an older spec must not pass for the answer to the newest commit.
if status.observedGeneration < obj.metadata.generation then
  return health("Progressing", "waiting for the operator to see the change")
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end
local ready, available = conditions.Ready, conditions.Available
if ready == nil then
  return health("Progressing", "waiting for the operator to write the Ready condition")
end
local message = ready.reason .. ": " .. ready.message

if conditions.Stalled ~= nil and conditions.Stalled.status == "True" then
  -- Degraded although requests are answered: the commit is not what runs, and waiting does not help.
  if available ~= nil and available.status == "True" then
    message = message .. " (still available: " .. available.message .. ")"
  end
  return health("Degraded", message)
end
if ready.status == "True" then
  return health("Healthy", message)
end
if ready.reason == "Paused" then
  return health("Suspended", message)
end
return health("Progressing", message)
