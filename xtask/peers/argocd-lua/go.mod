// Argo CD's Lua engine, and a program that runs a script as Argo CD does: see src/peers/argocd_lua.rs.
module lacre.dev/xtask/peers/argocd-lua

go 1.26

require github.com/yuin/gopher-lua v1.1.2
