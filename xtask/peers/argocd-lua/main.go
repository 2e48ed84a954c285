// Runs a script of an Argo CD customization on an object: argocd-lua SCRIPT <OBJECT.json. Prints what it returns as JSON.
//
// As in Argo CD, the script finds the object in the global `obj`, has a second, and has no libraries but package, base,
// table, and of os the two functions that tell the time. An empty table is printed as an empty list, as Argo CD reads it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	lua "github.com/yuin/gopher-lua"
)

const limit = time.Second

func main() {
	if len(os.Args) != 2 {
		fail("usage: argocd-lua SCRIPT <OBJECT.json")
	}
	script, err := os.ReadFile(os.Args[1])
	if err != nil {
		fail("%v", err)
	}
	var object map[string]any
	if err := json.NewDecoder(os.Stdin).Decode(&object); err != nil {
		fail("standard input is no object: %v", err)
	}
	answer, err := run(string(script), object)
	if err != nil {
		fail("%v", err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		fail("%v", err)
	}
}

// run gives what the script returns, which must be a table.
func run(script string, object map[string]any) (any, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	libraries := map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage,
		lua.BaseLibName: lua.OpenBase,
		lua.TabLibName:  lua.OpenTable,
		lua.OsLibName:   lua.OpenOs,
	}
	for _, name := range []string{lua.LoadLibName, lua.BaseLibName, lua.TabLibName, lua.OsLibName} {
		open := lua.P{Fn: state.NewFunction(libraries[name]), Protect: true}
		if err := state.CallByParam(open, lua.LString(name)); err != nil {
			return nil, err
		}
	}
	keepClock(state)
	bounded, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	state.SetContext(bounded)
	state.SetGlobal("obj", toLua(state, object))
	if err := state.DoString(script); err != nil {
		return nil, err
	}
	table, is := state.Get(-1).(*lua.LTable)
	if !is {
		return nil, fmt.Errorf("the script returned a %s, not a table", state.Get(-1).Type())
	}
	return fromLua(table)
}

// keepClock leaves nothing of os but the functions that tell the time.
func keepClock(state *lua.LState) {
	whole := state.GetGlobal(lua.OsLibName)
	clock := state.NewTable()
	for _, name := range []string{"date", "time"} {
		clock.RawSetString(name, state.GetField(whole, name))
	}
	state.SetGlobal(lua.OsLibName, clock)
	loaded := state.GetField(state.GetGlobal(lua.LoadLibName), "loaded")
	state.SetField(loaded, lua.OsLibName, clock)
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case float64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	case []any:
		list := state.NewTable()
		for _, item := range value {
			list.Append(toLua(state, item))
		}
		return list
	case map[string]any:
		table := state.NewTable()
		for key, item := range value {
			table.RawSetString(key, toLua(state, item))
		}
		return table
	}
	return lua.LNil
}

func fromLua(value lua.LValue) (any, error) {
	switch value := value.(type) {
	case lua.LBool:
		return bool(value), nil
	case lua.LNumber:
		return float64(value), nil
	case lua.LString:
		return string(value), nil
	case *lua.LNilType:
		return nil, nil
	case *lua.LTable:
		return fromTable(value)
	}
	return nil, fmt.Errorf("a %s has no form in JSON", value.Type())
}

func fromTable(table *lua.LTable) (any, error) {
	list := make([]any, 0, table.Len())
	members := map[string]any{}
	var problem error
	table.ForEach(func(key, value lua.LValue) {
		item, err := fromLua(value)
		switch key := key.(type) {
		case lua.LNumber:
			list = append(list, item)
		case lua.LString:
			members[string(key)] = item
		default:
			err = fmt.Errorf("a %s cannot be a key", key.Type())
		}
		if err != nil && problem == nil {
			problem = err
		}
	})
	switch {
	case problem != nil:
		return nil, problem
	case len(members) == 0:
		return list, nil
	case len(list) == 0:
		return members, nil
	}
	return nil, fmt.Errorf("a table is both list and map")
}

func fail(problem string, details ...any) {
	fmt.Fprintf(os.Stderr, problem+"\n", details...)
	os.Exit(1)
}
