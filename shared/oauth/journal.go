package oauth

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/buzon-mail/buzon/shared/store"
)

// Event is something that a person, or whoever administers the service, approved, refused, added or ended here. It names ids and our
// own words: codes, tokens, links and secrets never are in it.
type Event struct {
	Name         string // as grant.revoked
	Organization string // whose audit it belongs to
	Person       string // who did it; empty: nobody who is signed in, see By
	Email        string // of the person, where it is at hand
	By           string // what did it when no person did: oauth (this server, as when a token is reused), command line, or the id of a key or service account
	Client       string // id of the OAuth client
	Grant        string
	Target       string // id of what it was about
	Reason       string
}

// The values of Event.By.
const (
	ByServer      = "oauth"
	ByCommandLine = "command line"
)

// Journal keeps events for whoever audits the organization.
type Journal interface {
	// Line is the write that keeps an event. It becomes part of the transaction of what it tells of: neither is there without the
	// other. ctx is the request's, which may tell how it came.
	Line(ctx context.Context, e Event) (store.Op, error)
}

// commit runs a transaction with the line that tells of it, behind its other ops, and logs it. Errors are the transaction's own, for
// callers tell a conflict from the rest.
func (s *Server) commit(ctx context.Context, e Event, ops ...store.Op) error {
	if s.Journal != nil {
		line, err := s.Journal.Line(ctx, e)
		if err != nil {
			return fmt.Errorf("line of %s: %w", e.Name, err)
		}
		ops = append(ops, line)
	}
	if err := s.Store.Transact(ctx, ops...); err != nil {
		return err //nolint:wrapcheck // see above
	}
	s.audit(ctx, e)
	return nil
}

// audit logs what was approved or revoked, by ids.
func (s *Server) audit(ctx context.Context, e Event) {
	attrs := []slog.Attr{slog.String("event", e.Name)}
	for _, a := range []struct{ name, value string }{
		{"organization", e.Organization}, {"person", e.Person}, {"by", e.By}, {"grant", e.Grant}, {"target", e.Target}, {"why", e.Reason},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.name, a.value))
		}
	}
	s.Logger.LogAttrs(ctx, slog.LevelInfo, "oauth audit", attrs...)
}

// event is one of a person who is signed in.
func (p Person) event(name string) Event {
	return Event{Name: name, Organization: p.Organization, Person: p.ID, Email: p.Email, Target: p.ID}
}

// event is one about a grant, of its person.
func (g Grant) event(name string) Event {
	return Event{Name: name, Organization: g.Organization, Person: g.Person, Client: g.Client, Grant: g.ID, Target: g.ID}
}
