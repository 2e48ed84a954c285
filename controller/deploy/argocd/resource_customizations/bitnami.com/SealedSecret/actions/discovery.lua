return { ["refresh"] = { ["disabled"] = false } }
