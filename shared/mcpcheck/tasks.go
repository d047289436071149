package mcpcheck

import (
	"context"
	"net/http"
)

// tasksExtension is SEP-2663, which a server declares among its extensions.
const (
	tasksExtension = "io.modelcontextprotocol/tasks"
	codeCapability = -32021
)

// tasks checks what the extension demands of its methods, with the id of a task that nobody has: no task is read, changed or ended.
func (r *run) tasks(ctx context.Context) {
	ids := []string{"tasks-undeclared", "tasks-unknown", "tasks-header"}
	why := r.unspoken()
	if why == "" && !r.hasTasks {
		why = "the server does not declare " + tasksExtension
	}
	if why != "" {
		for _, id := range ids {
			r.skip(id, why)
		}
		return
	}
	const nobodys = "mcpcheck-no-such-task"
	params := `"taskId":"` + nobodys + `",`
	r.try(ctx, "tasks-undeclared", r.request("tasks/get", params).with(nameHeader, nobodys).says("tasks/get, the extension not declared"),
		wants(http.StatusBadRequest, codeCapability))
	declared := func(name string) ask { return r.declaring("tasks/get", params).with(nameHeader, name) }
	r.try(ctx, "tasks-unknown", declared(nobodys).says("tasks/get of a task that nobody has"), func(a answer) (Status, string) {
		switch {
		case a.code() != codeParams:
			return Fail, ""
		case a.status != http.StatusOK:
			return Warn, ""
		}
		return Pass, ""
	})
	r.try(ctx, "tasks-header", declared("another-task").says("tasks/get, Mcp-Name says another task"), wants(http.StatusBadRequest, codeHeader))
}
