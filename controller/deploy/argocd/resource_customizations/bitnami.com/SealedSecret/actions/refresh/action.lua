-- Any change of its metadata makes the controller look at it again.
local os = require("os")
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["lacre.dev/refresh-requested-at"] = os.date("!%Y-%m-%dT%XZ")
return obj
