package isolation

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// schema is as much of JSON Schema as the catalogue uses.
type schema struct {
	Type       any
	Enum       []string
	Format     string
	Minimum    *float64
	Maximum    *float64
	Properties map[string]*schema
	Required   []string
	Items      *schema
	AnyOf      []*schema
}

// operation is one of the catalogue, as its two documents have it: the tool's arguments, and which of them the route has in
// its path and query.
type operation struct {
	name   string
	method string
	path   string
	query  []string
	body   bool
	input  *schema
}

// reads are operations that store nothing of their arguments. Only they are given names of the other side: what a caller
// stores under a name is its own, whoever else has one that reads the same.
func (o operation) reads() bool {
	return o.method == "GET" || o.name == "rules_test" || o.name == "emails_claim" || o.name == "emails_wait" || strings.HasSuffix(o.name, "_check")
}

// drawing makes the arguments of one request.
type drawing struct {
	w       *world
	c       *caller
	o       operation
	foreign []string
}

// draw makes a request over some surface.
func (w *world) draw(c *caller) request {
	d := &drawing{w: w, c: c}
	switch n := w.r.IntN(20); {
	case n < 8:
		d.o = w.operations[w.r.IntN(len(w.operations))]
		return d.route()
	case n < 15:
		d.o = w.operations[w.r.IntN(len(w.operations))]
		return d.tool()
	case n < 17:
		return d.resource()
	case n < 18:
		return d.prompt()
	case n < 19:
		return d.completion()
	}
	return d.other()
}

func pick[T any](w *world, list []T) T { return list[w.r.IntN(len(list))] }

// arguments are whatever the schema allows, most of which a service refuses; or, half of the time, what it does.
func (d *drawing) arguments() map[string]any {
	if d.w.r.IntN(2) == 0 {
		if sound := d.sound(); sound != nil {
			return sound
		}
	}
	return d.object(d.o.input)
}

// sound are arguments that make or change something, so that both sides have one of everything. They are nil for operations that
// need no help.
func (d *drawing) sound() map[string]any {
	one := d.c.canary(d.w)
	var out map[string]any
	switch d.o.name {
	case "inboxes_upsert":
		out = map[string]any{"slug": one, "display_name": one}
	case "inboxes_set_sender_policy":
		out = map[string]any{"id": d.reference("inbox", true), "sender_policy": "open"}
	case "allowed_senders_upsert":
		out = map[string]any{"id": d.reference("inbox", true), "kind": "domain", "value": one + ".example", "note": one}
	case "webhooks_upsert":
		out = map[string]any{"name": one, "url": "http://localhost:1/" + one, "events": []string{"email.processed", "email.handled"}, "enabled": true}
	case "rules_upsert":
		out = map[string]any{
			"slug": one, "enabled": true, "restore": true,
			"conditions": []any{map[string]any{"field": "subject", "op": "contains", "value": one}},
			"actions":    []any{map[string]any{"type": "add_label", "value": one}},
		}
	case "extraction_templates_upsert":
		schema := map[string]any{"type": "object", "properties": map[string]any{"total": map[string]any{"type": "string"}}}
		out = map[string]any{
			"slug": one, "json_schema": schema, "restore": true, "locators": []any{map[string]any{"field": "total", "kind": "label", "value": "Total:"}},
		}
	case "extractions_run":
		out = map[string]any{"email_ids": []string{d.reference("email", false)}, "template": one}
	case "emails_update":
		out = map[string]any{"id": d.reference("email", false), "add_labels": []string{one}, "handled": d.w.r.IntN(2) == 0}
	default:
		return nil
	}
	if d.o.input != nil && d.o.input.Properties["idempotency_key"] != nil {
		out["idempotency_key"] = d.key()
	}
	return out
}

// object draws a value for each required member, and for some of the others.
func (d *drawing) object(s *schema) map[string]any {
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(s.Required, name) && d.w.r.IntN(3) > 0 && name != "id" && name != "slug" && name != "url" && name != "events" && name != "restore" && name != "timeout_s" {
			continue
		}
		out[name] = d.value(name, s.Properties[name])
	}
	if out["id"] != nil && out["slug"] != nil && d.w.r.IntN(2) == 0 {
		delete(out, "id") // most upserts go by name
	}
	return out
}

func (d *drawing) value(name string, s *schema) any {
	r := d.w.r
	if len(s.AnyOf) > 0 {
		return d.value(name, s.AnyOf[0])
	}
	if len(s.Enum) > 0 {
		return pick(d.w, s.Enum)
	}
	kind, _ := s.Type.(string)
	if kinds, ok := s.Type.([]any); ok && len(kinds) > 0 {
		kind, _ = kinds[0].(string)
	}
	switch kind {
	case "boolean":
		return r.IntN(2) == 0
	case "integer", "number":
		if name == "timeout_s" || name == "wait_s" || name == "from_char" {
			return 0 // nobody waits here
		}
		least := 1.0
		if s.Minimum != nil {
			least = *s.Minimum
		}
		return int(least) + r.IntN(3)
	case "array":
		if name == "events" {
			return []string{pick(d.w, []string{"email.processed", "email.handled", "email.received"})}
		}
		if s.Items == nil {
			return []string{}
		}
		return []any{d.value(strings.TrimSuffix(name, "s"), s.Items)}
	case "object":
		return d.object(s)
	}
	if name == "json_schema" || kind == "" {
		return map[string]any{"type": "object", "properties": map[string]any{"total": map[string]any{"type": "string"}}}
	}
	return d.text(name, s)
}

// text draws a string: what its name says that it should be.
func (d *drawing) text(name string, s *schema) string {
	r, c := d.w.r, d.c
	switch {
	case s.Format == "date-time":
		return pick(d.w, []string{"2026-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z"})
	case name == "idempotency_key":
		return d.key()
	case name == "cursor" || name == "after":
		return d.either(c.cursors, d.w.other(c.tenant).cursors)
	case name == "url":
		return "http://localhost:1/" + c.canary(d.w)
	case name == "address":
		return c.canary(d.w) + "@" + c.domain
	case name == "language":
		return "en"
	case name == "limit" && d.o.name == "prompt":
		return "5"
	case name == "status" && d.o.name == "prompt":
		return "processed"
	case name == "period":
		return "2026-07"
	case name == "email" || name == "from" || name == "to" || name == "participant":
		return c.canary(d.w) + "@" + c.canaries[0] + ".example"
	case name == "sender" && d.o.name == "prompt":
		return d.either(c.slugs, d.w.other(c.tenant).slugs) + ".example"
	case name == "json_schema":
		return "{}"
	case name == "field" && d.o.name == "extraction_templates_upsert":
		return "total"
	case name == "event":
		return "email.processed"
	}
	if prefix, named := d.names(name); prefix != "" {
		return d.reference(prefix, named)
	}
	if (name == "q" || name == "subject" || name == "value") && d.o.reads() && r.IntN(3) == 0 {
		return d.strange(pick(d.w, d.w.other(c.tenant).canaries))
	}
	return c.canary(d.w)
}

// names is the prefix of the ids that an argument takes, and whether names do as well.
func (d *drawing) names(argument string) (prefix string, named bool) {
	noun, _, _ := strings.Cut(argument, "_id")
	if argument == "id" {
		noun = d.o.name
		for noun != "" && nouns[noun] == "" {
			noun = noun[:max(0, strings.LastIndex(noun, "_"))]
		}
		if noun == "" {
			return "any", false
		}
	}
	p := nouns[noun]
	return p, p == "inbox" || p == "webhook" || p == "any" || noun == "slug" || p == "template"
}

// nouns are those of operations and arguments. What is not here is free text; an operation that is not here gets any id.
//
//nolint:gochecknoglobals // constant
var nouns = map[string]string{
	"emails": "email", "inboxes": "inbox", "threads": "thread", "attachments": "att", "jobs": "job", "webhooks": "webhook",
	"webhook_deliveries": "delivery", "allowed_senders": "inbox", "rules": "rule", "extraction_templates": "template", "workspaces": "ws",
	"members": "user", "api_keys": "key", "uploads": "upload",
	"email": "email", "inbox": "inbox", "thread": "thread", "attachment": "att", "job": "job", "webhook": "webhook", "lease": "lease",
	"sender": "sender", "rule": "rule", "workspace": "ws", "user": "user", "member": "user", "upload": "upload", "grant": "grant",
	"target": "any", "actor": "any", "inboxe": "inbox", "template": "template", "default_template": "template",
}

// reference is an id or, where it does, a name; of either side.
func (d *drawing) reference(prefix string, named bool) string {
	own, other := d.c.tenant, d.w.other(d.c.tenant)
	if named && d.w.r.IntN(3) == 0 {
		if d.o.reads() || prefix == "inbox" {
			return d.either(own.slugs, other.slugs)
		}
		return pick(d.w, own.slugs)
	}
	if prefix == "any" || d.w.r.IntN(15) == 0 {
		return d.either(own.all, other.all)
	}
	return d.either(own.ids[prefix], other.ids[prefix])
}

// either is one of ours, or of theirs, which is noted; or one that nobody has.
func (d *drawing) either(own, other []string) string {
	if len(other) > 0 && d.w.r.IntN(4) == 0 {
		return d.strange(pick(d.w, other))
	}
	if len(own) == 0 {
		return d.w.missing("x_00000000000000000000000000")
	}
	if n := len(own); n > 40 && d.w.r.IntN(2) == 0 { // the newest, which still live
		own = own[n-20:]
	}
	return pick(d.w, own)
}

func (d *drawing) strange(s string) string {
	d.foreign = append(d.foreign, s)
	return s
}

// key is an idempotency key: some of few, so that both sides use the same ones for the same operations.
func (d *drawing) key() string {
	if d.w.r.IntN(8) == 0 {
		return fmt.Sprintf("shared-%d", d.w.r.IntN(3))
	}
	d.w.keys++
	return fmt.Sprintf("key-%d", d.w.keys)
}

// workspace is the header that names one.
func (d *drawing) workspace() []string {
	switch n := d.w.r.IntN(10); {
	case n == 0:
		return []string{"X-Workspace-Id", d.either(nil, d.w.other(d.c.tenant).ids["ws"])}
	case n == 1 && len(d.c.ids["ws"]) > 0:
		return []string{"X-Workspace-Id", pick(d.w, d.c.ids["ws"])}
	}
	return []string{"X-Workspace-Id", d.c.workspace}
}

// route is a REST request.
func (d *drawing) route() request {
	arguments := d.arguments()
	path := d.o.path
	query := url.Values{}
	for name, v := range arguments {
		if hole := "{" + name + "}"; strings.Contains(path, hole) {
			path = strings.ReplaceAll(path, hole, url.PathEscape(fmt.Sprint(v)))
			delete(arguments, name)
		} else if slices.Contains(d.o.query, name) {
			if list, ok := v.([]any); ok && len(list) > 0 {
				v = list[0]
			}
			query.Set(name, fmt.Sprint(v))
			delete(arguments, name)
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	q := request{operation: d.o.name, surface: "rest", method: d.o.method, path: path, headers: d.workspace()}
	if d.o.method != "GET" {
		q.headers = append(q.headers, "Idempotency-Key", d.key())
		delete(arguments, "idempotency_key")
	}
	if d.o.body {
		q.body = text(arguments)
	}
	q.foreign = d.named(q)
	return q
}

// named are those of the foreign names that the request really has: a draw may have been thrown away.
func (d *drawing) named(q request) []string {
	all := q.path + q.body + strings.Join(q.headers, " ")
	return slices.DeleteFunc(d.foreign, func(f string) bool { return !strings.Contains(all, f) })
}

// tool is a call of either era.
func (d *drawing) tool() request {
	return d.rpc(d.o.name, "tools/call", d.o.name, map[string]any{"name": d.o.name, "arguments": d.arguments()})
}

// rpc is a request to the endpoint.
func (d *drawing) rpc(operation, method, name string, params map[string]any) request {
	q := request{operation: operation, surface: method, method: "POST", path: "/mcp", headers: d.workspace()}
	if d.w.r.IntN(4) == 0 && !strings.HasPrefix(method, "tasks/") {
		q.headers = append(q.headers, "MCP-Protocol-Version", "2025-11-25")
	} else {
		capabilities := map[string]any{"elicitation": map[string]any{}}
		if d.w.r.IntN(2) == 0 || strings.HasPrefix(method, "tasks/") {
			capabilities["extensions"] = map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}
		}
		params["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": capabilities,
			"io.modelcontextprotocol/clientInfo": map[string]any{"name": d.c.canaries[0], "version": "1"},
		}
		q.headers = append(q.headers, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method)
		if name != "" {
			q.headers = append(q.headers, "Mcp-Name", name)
		}
	}
	q.body = `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + text(params) + `}`
	q.foreign = d.named(q)
	return q
}

// resource reads a template's, filled in.
func (d *drawing) resource() request {
	template := pick(d.w, d.w.templates)
	uri := template
	for {
		before, rest, ok := strings.Cut(uri, "{")
		if !ok {
			break
		}
		_, after, _ := strings.Cut(rest, "}")
		family, _, _ := strings.Cut(strings.TrimPrefix(template, "buzon://inbox/"), "/")
		prefix := nouns[strings.ReplaceAll(family, "-", "_")]
		if prefix == "" {
			prefix = "any"
		}
		d.o = operation{name: "resource", method: "GET"}
		uri = before + d.reference(prefix, prefix == "inbox" || prefix == "webhook") + after
	}
	return d.rpc("resource "+template, "resources/read", uri, map[string]any{"uri": uri})
}

func (d *drawing) prompt() request {
	p := pick(d.w, d.w.prompts)
	d.o = operation{name: "prompt", method: "GET"}
	arguments := map[string]any{}
	for _, a := range p.Arguments {
		if a.Required || d.w.r.IntN(2) == 0 {
			arguments[a.Name] = d.text(a.Name, &schema{})
		}
	}
	return d.rpc("prompt "+p.Name, "prompts/get", p.Name, map[string]any{"name": p.Name, "arguments": arguments})
}

// completion asks for what begins like something of either side.
func (d *drawing) completion() request {
	begin := pick(d.w, []string{"", d.c.canaries[0][:3], d.w.other(d.c.tenant).canaries[0][:3], "email_", "inbox_", "webhook_"})
	params := map[string]any{}
	kind := "prompts"
	if d.w.r.IntN(2) == 0 {
		p := pick(d.w, d.w.prompts)
		params["ref"] = map[string]any{"type": "ref/prompt", "name": p.Name}
		if len(p.Arguments) > 0 {
			params["argument"] = map[string]any{"name": pick(d.w, p.Arguments).Name, "value": begin}
		}
	} else {
		template := pick(d.w, d.w.templates)
		kind = "resources"
		_, rest, _ := strings.Cut(template, "{")
		variable, _, _ := strings.Cut(rest, "}")
		params["ref"] = map[string]any{"type": "ref/resource", "uri": template}
		params["argument"] = map[string]any{"name": variable, "value": begin}
	}
	return d.rpc("complete "+kind, "completion/complete", "", params)
}

// other is a list, or a task.
func (d *drawing) other() request {
	if d.w.r.IntN(3) == 0 {
		method := pick(d.w, []string{"tools/list", "resources/list", "resources/templates/list", "prompts/list"})
		params := map[string]any{}
		if d.w.r.IntN(3) == 0 {
			params["cursor"] = d.either(d.c.cursors, d.w.other(d.c.tenant).cursors)
		}
		return d.rpc(method, method, "", params)
	}
	method := pick(d.w, []string{"tasks/get", "tasks/get", "tasks/cancel", "tasks/update"})
	id := d.reference("job", false)
	params := map[string]any{"taskId": id}
	if method == "tasks/update" {
		params["inputResponses"] = map[string]any{}
	}
	return d.rpc(method, method, id, params)
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps, lists and scalars of this file
	}
	return string(b)
}
