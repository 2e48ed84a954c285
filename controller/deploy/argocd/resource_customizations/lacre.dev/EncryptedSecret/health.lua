-- Health of an EncryptedSecret: what its controller says of its newest generation, unless it is suspended.
if obj.spec ~= nil and obj.spec.suspend == true then
  return { status = "Suspended", message = "spec.suspend is set" }
end
local status = obj.status or {}
if status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "the controller has not looked at this generation yet" }
end
for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "Ready" then
    local message = condition.message or ""
    if condition.reason ~= nil and condition.reason ~= "" then
      message = message == "" and condition.reason or condition.reason .. ": " .. message
    end
    if condition.status == "True" then
      return { status = "Healthy", message = message }
    elseif condition.status == "False" then
      return { status = "Degraded", message = message }
    end
    return { status = "Progressing", message = message }
  end
end
return { status = "Progressing", message = "the controller has said nothing yet" }
