package scenario

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestJobs is a 202 from its reply to its end, in the local process: REST's job and MCP's task are one thing.
func TestJobs(t *testing.T) {
	d := startLocal(t)
	client := d.client
	client.Token = d.token("owner@acme.test")
	const mail = "email_01KDT0000000000000000MA102"
	start, err := client.Do(t.Context(), "POST", "/api/v1/emails/"+mail+"/reprocess", "{}", "Content-Type", "application/json", "Idempotency-Key", "j-1")
	if err != nil || start.Status != 202 {
		t.Fatalf("%v %+v", err, start)
	}
	id := stringAt(t, start.Body, "data.job_id")
	job, err := client.Do(t.Context(), "GET", "/api/v1/jobs/"+id+"?wait_s=20", "")
	if err != nil || job.Status != 200 {
		t.Fatalf("%v %+v", err, job)
	}
	var v struct {
		Data struct {
			Status string
			Result struct {
				Email   string `json:"email_id"`
				Changed []string
			}
			Error any
		}
	}
	if err := json.Unmarshal(job.Body, &v); err != nil || v.Data.Status != "succeeded" || v.Data.Result.Email != mail {
		t.Fatalf("%v %s", err, job.Body)
	}
	for _, text := range []string{"lucia", "pedido", "@"} {
		if strings.Contains(strings.ToLower(string(job.Body)), text) {
			t.Errorf("the job quotes the mail: %s", job.Body)
		}
	}
	params := `{"taskId":"` + id + `","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}`
	task, err := client.Do(t.Context(), "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":`+params+`}`,
		"Content-Type", "application/json", "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tasks/get", "Mcp-Name", id)
	if err != nil || task.Status != 200 {
		t.Fatalf("%v %+v", err, task)
	}
	var r struct {
		Result struct {
			Status string
			Result struct{ Content []struct{ Text string } }
		}
	}
	plain, err := client.Do(t.Context(), "GET", "/api/v1/jobs/"+id, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(task.Body, &r); err != nil || r.Result.Status != "completed" || len(r.Result.Result.Content) != 1 || r.Result.Result.Content[0].Text != string(plain.Body) {
		t.Errorf("%v\ntask %s\nroute %s", err, task.Body, plain.Body)
	}
	cancel, err := client.Do(t.Context(), "POST", "/api/v1/jobs/"+id+"/cancel", "{}", "Content-Type", "application/json")
	if err != nil || cancel.Status != 409 {
		t.Errorf("cancel what is over: %v %+v", err, cancel)
	}
}
