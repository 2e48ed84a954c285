-- Health of a SealedSecret: what its controller says of its newest generation. Sealed Secrets of others writes Synced
-- alone; Ready, where it is, says the same.
local status = obj.status or {}
if status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "the controller has not looked at this generation yet" }
end
local health = { status = "Progressing", message = "the controller has said nothing yet" }
for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "Synced" or condition.type == "Ready" then
    local message = condition.message or ""
    if condition.reason ~= nil and condition.reason ~= "" then
      message = message == "" and condition.reason or condition.reason .. ": " .. message
    end
    if condition.status == "False" then
      return { status = "Degraded", message = message }
    elseif condition.status == "True" then
      health = { status = "Healthy", message = message }
    else
      return { status = "Progressing", message = message }
    end
  end
end
return health
