package inboxops_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/optool"
	"github.com/buzon-mail/buzon/shared/rest"
)

func TestCatalogueWithoutServices(t *testing.T) {
	c, err := inboxops.Catalogue(nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range c.Operations() {
		names = append(names, o.Name)
		if len(o.Description) > 420 {
			t.Errorf("%s: a description of %d bytes costs every model's context", o.Name, len(o.Description))
		}
	}
	want := strings.Fields(`session_get workspaces_list workspaces_upsert members_list members_upsert members_delete inboxes_list inboxes_get inboxes_upsert inboxes_delete inboxes_restore
		inboxes_set_sender_policy allowed_senders_list allowed_senders_upsert allowed_senders_delete allowed_senders_check
		emails_list emails_get emails_update emails_release emails_delete emails_restore emails_reprocess emails_forward uploads_create emails_import emails_raw_url emails_claim
		emails_wait threads_list threads_get attachments_list attachments_get
		attachments_download_url rules_list rules_upsert rules_delete rules_test extraction_templates_list extraction_templates_upsert
		extraction_templates_delete extractions_run extractions_list
		webhooks_list webhooks_get webhooks_upsert webhooks_delete webhooks_restore webhooks_test webhooks_rotate_secret webhook_deliveries_list webhook_deliveries_get webhook_deliveries_retry
		api_keys_list api_keys_create api_keys_rotate api_keys_revoke jobs_list jobs_get jobs_cancel usage_get audit_events_list`)
	if !slices.Equal(names, want) {
		t.Errorf("operations %v, want %v", names, want)
	}
	one, err := rest.OpenAPI(c, rest.Options{BasePath: "/api/v1", Title: "t", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	tools, err := optool.Render(c)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := inboxops.Catalogue(nil)
	two, _ := rest.OpenAPI(again, rest.Options{BasePath: "/api/v1", Title: "t", Version: "1"})
	if !bytes.Equal(one, two) {
		t.Error("the document differs between two runs")
	}
	for _, part := range []string{
		`"has_attachment":{"type":"boolean"}`,
		`"maximum":3650,"type":["integer","null"]`,
	} {
		if !bytes.Contains(tools, []byte(part)) {
			t.Errorf("the tools lack %s", part)
		}
	}
	if words := `"description": "Only with, or only without, attachments."`; !bytes.Contains(one, []byte(words)) {
		t.Errorf("the document lacks %s", words)
	}
}

func TestEffects(t *testing.T) {
	c, err := inboxops.Catalogue(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]op.Effect{
		"inboxes_delete": op.Destructive, "emails_delete": op.Destructive, "inboxes_restore": op.Write,
		"inboxes_set_sender_policy": op.Destructive, "allowed_senders_upsert": op.Destructive, "allowed_senders_delete": op.Destructive,
		"allowed_senders_check": op.Read, "emails_release": op.Destructive, "emails_restore": op.Write, "inboxes_upsert": op.Destructive, "emails_update": op.Write, "emails_get": op.Read,
		"audit_events_list": op.Read, "workspaces_upsert": op.Write, "members_list": op.Read, "members_upsert": op.Destructive, "members_delete": op.Destructive,
		"api_keys_list": op.Read, "api_keys_create": op.Destructive, "api_keys_rotate": op.Destructive, "api_keys_revoke": op.Destructive,
	} {
		if o, ok := c.Lookup(name); !ok || o.Effect != want || o.Asks != (want == op.Destructive) {
			t.Errorf("%s: effect %v, want %v", name, o.Effect, want)
		}
	}
}

// The bits of scopes are sealed and signed: an entry that moves changes what old tokens allow.
func TestVocabularyOrder(t *testing.T) {
	v, err := inboxops.Vocabulary()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(`workspaces:read workspaces:write members:read members:write inboxes:read inboxes:write emails:read
		emails:write emails:send attachments:read senders:read senders:write webhooks:read webhooks:write webhooks:send rules:read
		rules:write extraction:read extraction:write extraction:run keys:read keys:write jobs:read audit:read usage:read codes:read`)
	var got, reserved []string
	for _, s := range v.All() {
		got = append(got, s.Name)
		if s.Reserved {
			reserved = append(reserved, s.Name)
		}
		if s.Description == "" {
			t.Errorf("%s has no description", s.Name)
		}
	}
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("scopes %v, want %v first", got, want)
	}
	if r := strings.Join(reserved, " "); r != "workspaces:write members:read members:write keys:read keys:write audit:read" {
		t.Errorf("reserved: %s", r)
	}
	if _, err := json.Marshal(v.Advertised()); err != nil || slices.Contains(v.Advertised(), "audit:read") {
		t.Error("a reserved scope is advertised")
	}
}

// TestReferencesResolve: every $ref of the document names a schema that it has.
func TestReferencesResolve(t *testing.T) {
	c, err := inboxops.Catalogue(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := rest.OpenAPI(c, rest.Options{BasePath: "/api/v1", Title: "t", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	refs := regexp.MustCompile(`"\$ref": "#/components/schemas/([^"]+)"`).FindAllSubmatch(text, -1)
	if len(refs) < 50 {
		t.Errorf("only %d references", len(refs))
	}
	for _, ref := range refs {
		if doc.Components.Schemas[string(ref[1])] == nil {
			t.Errorf("%s refers to nothing", ref[1])
		}
	}
}

func newWorldVocabulary(t *testing.T) *op.Vocabulary {
	t.Helper()
	v, err := inboxops.Vocabulary()
	if err != nil {
		t.Fatal(err)
	}
	return v
}
