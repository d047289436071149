package oauth

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/store"
)

// grantPage is how many grants one look at a person's reads.
const grantPage = 100

// Disconnect ends every grant that a person approved, as RevokeGrant does: for whoever removes the person. by brings who that is
// (Person and Email, or By) and the reason. Repeating it is fine.
func (s *Server) Disconnect(ctx context.Context, person string, by Event) error {
	from, to := store.Prefix("grant/")
	q := store.Query{Table: store.Core, Partition: "oauth/person/" + person, From: from, To: to, Limit: grantPage}
	for {
		page, err := s.Store.Query(ctx, q)
		if err != nil {
			return fmt.Errorf("list grants: %w", err)
		}
		for _, item := range page.Items {
			if err := s.revokeGrant(ctx, strings.TrimPrefix(item.Key.Sort, "grant/"), by); err != nil {
				return err
			}
		}
		if page.Next == "" {
			return nil
		}
		q.After = page.Next
	}
}

// Invite makes an address that signs a person in, once, for three days. Whoever reads it is that person; by brings who made it.
func (s *Server) Invite(ctx context.Context, person string, by Event) (address string, expires time.Time, err error) {
	p, err := s.People.Person(ctx, person)
	if err != nil {
		return "", time.Time{}, err //nolint:wrapcheck // the directory's own errors are for callers
	}
	e := Event{Name: "invitation.created", Organization: p.Organization, Person: by.Person, Email: by.Email, By: by.By, Target: p.ID}
	return s.printLink(ctx, p, invitationLifetime, e)
}
