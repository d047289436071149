package web

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/store"
)

// Journal keeps the authorization server's events in the audit of the organization. Its rows lie in the engine that the server's lie
// in, so that a line and what it tells of are one transaction.
type Journal struct {
	store           *inboxstore.Store
	clock           func() time.Time
	random          io.Reader
	request, source func(context.Context) string
}

// NewJournal is for whoever writes without a request: the command line.
func NewJournal(s *inboxstore.Store, clock func() time.Time, random io.Reader) *Journal {
	return &Journal{store: s, clock: clock, random: random}
}

// surfaceOAuth is the door of events in the audit: the pages and endpoints of the authorization server.
const surfaceOAuth = "oauth"

// Line implements oauth.Journal.
func (j *Journal) Line(ctx context.Context, e oauth.Event) (store.Op, error) {
	by := inbox.AuditActor{Type: inbox.ActorPerson, ID: e.Person, Email: e.Email, Client: e.Client, Grant: e.Grant}
	if e.Person == "" {
		by.Type, by.ID = inbox.ActorSystem, e.By
		switch {
		case strings.HasPrefix(e.By, "key_"):
			by.Type = inbox.ActorKey
		case strings.HasPrefix(e.By, "svc_"):
			by.Type = inbox.ActorService
		}
	}
	line := inbox.Audit{At: j.clock(), Actor: by, Action: e.Name, Organization: e.Organization, Reason: e.Reason}
	if j.request != nil && e.By != oauth.ByCommandLine {
		line.Surface, line.Request, line.Source = surfaceOAuth, j.request(ctx), j.source(ctx)
	}
	act, err := inbox.NewAct(j.random, line)
	if err != nil {
		return store.Op{}, fmt.Errorf("line of %s: %w", e.Name, err)
	}
	return j.store.Line(act, e.Target) //nolint:wrapcheck // the store names the step
}
