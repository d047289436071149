package authority_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/app/authority"
	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/oauth/standing"
	"github.com/buzon-mail/buzon/shared/pipeline"
	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

var _ pipeline.Authority = (*authority.Authority)(nil)

// people knows ana, an operator of ws_1 and a viewer of ws_2.
type people struct{ fail error }

func (p people) Principal(_ context.Context, user string) (inbox.Principal, error) {
	if p.fail != nil || user != "user_ana" {
		return inbox.Principal{}, errOr(p.fail, apperr.New(apperr.NotFound, "", "There is no such member."))
	}
	return inbox.Principal{Member: inbox.Member{User: user, Organization: "org_1", Role: inbox.RoleOperator}, Workspaces: []inbox.Access{
		{Workspace: inbox.Workspace{ID: "ws_1"}, Role: inbox.RoleOperator}, {Workspace: inbox.Workspace{ID: "ws_2"}, Role: inbox.RoleViewer},
	}}, nil
}

func errOr(err error, other error) error {
	if err != nil {
		return err
	}
	return other
}

type keyring map[string]bool

func (k keyring) KeyActive(_ context.Context, _, id string) (bool, error) { return k[id], nil }

func TestAuthorized(t *testing.T) {
	engine, err := embedded.Open(filepath.Join(t.TempDir(), "db"), embedded.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	put := func(key store.Key, row string) {
		if err := engine.Put(t.Context(), store.Item{Key: key, Format: 1, Revision: 1, Data: []byte(row)}, store.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	revoked := fmt.Sprintf(`"revoked":%q`, time.Now().Format(time.RFC3339))
	put(standing.GrantKey("grant_live"), `{"id":"grant_live","secret":"x"}`)
	put(standing.GrantKey("grant_over"), `{"id":"grant_over",`+revoked+`}`)
	put(standing.ServiceKey("svc_all"), `{"organization":"org_1","role":"operator"}`)
	put(standing.ServiceKey("svc_one"), `{"organization":"org_1","role":"admin","workspace":"ws_1"}`)
	put(standing.ServiceKey("svc_view"), `{"organization":"org_1","role":"viewer"}`)
	put(standing.ServiceKey("svc_over"), `{"organization":"org_1","role":"operator",`+revoked+`}`)
	put(standing.ServiceKey("svc_far"), `{"organization":"org_2","role":"owner"}`)
	person := inbox.JobCreator{Subject: "user_ana", Grant: "grant_live", Client: "c", Role: inbox.RoleOperator}
	service := func(id string) inbox.JobCreator {
		return inbox.JobCreator{Subject: id, Grant: id, Client: id, Role: inbox.RoleOperator}
	}
	with := func(change func(*inbox.JobCreator)) inbox.JobCreator {
		c := person
		change(&c)
		return c
	}
	a := authority.New(people{}, engine, keyring{"key_live": true})
	for name, c := range map[string]struct {
		creator   inbox.JobCreator
		workspace string
		code      string // empty: it may
	}{
		"a person":                    {person, "ws_1", ""},
		"a lesser role there":         {person, "ws_2", "role_lost"},
		"no access there":             {person, "ws_3", "role_lost"},
		"grant revoked":               {with(func(c *inbox.JobCreator) { c.Grant = "grant_over" }), "ws_1", "grant_revoked"},
		"grant unknown":               {with(func(c *inbox.JobCreator) { c.Grant = "grant_x" }), "ws_1", "grant_revoked"},
		"no grant":                    {with(func(c *inbox.JobCreator) { c.Grant = "" }), "ws_1", "grant_revoked"},
		"a grant that is none":        {with(func(c *inbox.JobCreator) { c.Grant = "../x" }), "ws_1", "grant_revoked"},
		"member gone":                 {with(func(c *inbox.JobCreator) { c.Subject = "user_eva" }), "ws_1", "role_lost"},
		"role was raised meanwhile":   {with(func(c *inbox.JobCreator) { c.Role = inbox.RoleAdmin }), "ws_1", "role_lost"},
		"a job that names no role":    {with(func(c *inbox.JobCreator) { c.Role = "" }), "ws_1", "role_lost"},
		"the command line":            {with(func(c *inbox.JobCreator) { c.Client, c.Grant = authority.CommandLine, "grant_cli" }), "ws_1", ""},
		"the command line, no member": {with(func(c *inbox.JobCreator) { c.Client, c.Subject = authority.CommandLine, "user_eva" }), "ws_1", "role_lost"},
		"an API key":                  {with(func(c *inbox.JobCreator) { c.Key, c.Grant = "key_live", "key_live" }), "ws_1", ""},
		"an API key, revoked":         {with(func(c *inbox.JobCreator) { c.Key = "key_over" }), "ws_1", "grant_revoked"},
		"a service":                   {service("svc_all"), "ws_2", ""},
		"a service of one workspace":  {service("svc_one"), "ws_1", ""},
		"the same, elsewhere":         {service("svc_one"), "ws_2", "role_lost"},
		"a service that may read":     {service("svc_view"), "ws_1", "role_lost"},
		"a service, revoked":          {service("svc_over"), "ws_1", "grant_revoked"},
		"of another organization":     {service("svc_far"), "ws_1", "role_lost"},
		"nobody's service":            {service("svc_x"), "ws_1", "grant_revoked"},
	} {
		err := a.Authorized(t.Context(), inbox.Job{ID: "job_1", Organization: "org_1", Workspace: c.workspace, Creator: c.creator})
		if c.code == "" && err != nil || c.code != "" && (!apperr.Is(err, apperr.Forbidden) || apperr.From(err).Code != c.code) {
			t.Errorf("%s: %v, want %q", name, err, c.code)
		}
	}
	j := inbox.Job{ID: "job_1", Organization: "org_1", Workspace: "ws_1", Creator: with(func(c *inbox.JobCreator) { c.Key = "key_live" })}
	if err := authority.New(people{}, engine, nil).Authorized(t.Context(), j); !apperr.Is(err, apperr.Forbidden) {
		t.Errorf("keys that nobody knows: %v", err)
	}
	j.Creator = person
	down := errors.New("the store is away")
	if err := authority.New(people{down}, engine, nil).Authorized(t.Context(), j); !errors.Is(err, down) || apperr.Is(err, apperr.Forbidden) {
		t.Errorf("an outage is no refusal: %v", err)
	}
	j.Organization = "org_2"
	if err := a.Authorized(t.Context(), j); !apperr.Is(err, apperr.Forbidden) {
		t.Errorf("a person of another organization: %v", err)
	}
}
