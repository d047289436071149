package inboxops_test

import (
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/mcp"
)

// The same call as a tool and as a route gives the same bytes, three-valued filters and null included.
func TestToolsAgreeWithRoutes(t *testing.T) {
	w := newWorld(t)
	w.data("globex", "PUT", "/inboxes", `{"slug":"a"}`, 201)
	mail := w.deliver(w.data("acme", "PUT", "/inboxes", `{"slug":"a","retention_days":9}`, 201), orgA, wsA)
	tools := w.tools
	for _, x := range []struct{ tool, arguments, path string }{
		{"emails_list", `{"has_attachment":true,"handled":false,"q":null,"limit":3}`, "/emails?has_attachment=true&handled=false&limit=3"},
		{"emails_list", `{"has_attachment":false}`, "/emails?has_attachment=false"},
		{"emails_get", `{"id":"` + mail.ID + `","include":["text","html"],"max_chars":3}`, "/emails/" + mail.ID + "?include=text,html&max_chars=3"},
		{"emails_get", `{"id":"email_00000000000000000000000009"}`, "/emails/email_00000000000000000000000009"},
		{"emails_list", `{"cursor":"x"}`, "/emails?cursor=x"},
		{"attachments_get", `{"id":"` + mail.ID + `"}`, "/attachments/" + mail.ID},
		{"inboxes_get", `{"id":"a"}`, "/inboxes/a"},
		{"threads_list", `{"unhandled":true,"limit":3}`, "/threads?unhandled=true&limit=3"},
		{"threads_get", `{"id":"` + w.thread(mail) + `","max_chars":4}`, "/threads/" + w.thread(mail) + "?max_chars=4"},
		{"usage_get", `{"period":"2026-06"}`, "/usage?period=2026-06"},
		{"emails_raw_url", `{"id":"` + mail.ID + `","ttl_s":5}`, "/emails/" + mail.ID + "/raw-url?ttl_s=5"},
		{"session_get", `{}`, "/session"},
	} {
		got, err := tools.CallTool(t.Context(), &mcp.CallRequest{Caller: w.callers["acme"], Name: x.tool, Arguments: []byte(x.arguments)})
		w.must(err)
		code, want := w.do("acme", "GET", x.path, "")
		want = strings.ReplaceAll(want, `"location":"query.`, `"location":"arguments.`) // a fault is named as it was sent
		if string(got.JSON) != want || got.IsError != (code >= 400) {
			t.Errorf("%s %s:\n%s\nbut the route:\n%s", x.tool, x.arguments, got.JSON, want)
		}
	}
	got, err := tools.CallTool(t.Context(), &mcp.CallRequest{
		Caller: w.callers["acme"], Name: "inboxes_upsert", Arguments: []byte(`{"slug":"a","retention_days":null,"state":"paused"}`),
	})
	w.must(err)
	if text := string(got.JSON); !strings.Contains(text, `"retention_days":null`) || !strings.Contains(text, `"paused"`) {
		t.Errorf("null in a body: %s", text)
	}
	if _, err := tools.CallTool(t.Context(), &mcp.CallRequest{Caller: w.callers["acme"], Name: "emails_list", Arguments: []byte(`{"handled":"yes"}`)}); err != nil {
		t.Errorf("a text for a boolean is the caller's fault: %v", err)
	}
}
