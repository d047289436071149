package web

import (
	"context"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/oauth"
)

// signIns are the authorization server's, which is made after the services that use them.
type signIns struct{ b *builder }

var _ inbox.SignIns = signIns{}

// Disconnect ends a person's grants.
func (s signIns) Disconnect(ctx context.Context, _, person string, by inbox.AuditActor) error {
	e := eventBy(by)
	e.Reason = "the person was removed from the organization"
	return s.b.oauth.Disconnect(ctx, person, e)
}

// Invite makes an invitation.
func (s signIns) Invite(ctx context.Context, _, person string, by inbox.AuditActor) (string, time.Time, error) {
	return s.b.oauth.Invite(ctx, person, eventBy(by))
}

// eventBy names who acts as the authorization server's events do.
func eventBy(by inbox.AuditActor) oauth.Event {
	if by.Type == inbox.ActorPerson {
		return oauth.Event{Person: by.ID, Email: by.Email}
	}
	return oauth.Event{By: by.ID, Email: by.Email}
}
