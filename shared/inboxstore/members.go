package inboxstore

import (
	"context"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// maxMembers is as many members as one look reads.
const maxMembers = 200

// Members lists the first members of an organization by id.
func (s *Store) Members(ctx context.Context, org string) ([]inbox.Member, error) {
	rows, err := listOrg[inbox.Member](ctx, s, org, "member/", maxMembers)
	return rows, wrapIf("members of "+org, err)
}
