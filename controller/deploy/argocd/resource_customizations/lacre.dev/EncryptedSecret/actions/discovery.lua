local suspended = obj.spec ~= nil and obj.spec.suspend == true
return {
  ["suspend"] = { ["disabled"] = suspended },
  ["resume"] = { ["disabled"] = not suspended },
}
