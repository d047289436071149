// Package standing tells whether a grant or a service account of the authorization server still counts, for programs that link
// nothing else of that: a worker looks before anything leaves the service. It knows where the rows lie and reads no more of
// them than that.
package standing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/store"
)

// The prefixes of the ids.
const (
	GrantPrefix   = "grant"
	ServicePrefix = "svc"
)

// format is the newest version of both rows that is known here.
const format = 1

// GrantKey is where a grant lies.
func GrantKey(id string) store.Key {
	return store.Key{Table: store.Core, Partition: "oauth/grant/" + id, Sort: "grant"}
}

// ServiceKey is where a service account lies.
func ServiceKey(id string) store.Key {
	return store.Key{Table: store.Core, Partition: "oauth/service/" + id, Sort: "service"}
}

// Getter reads one row, strongly; store.Engine does.
type Getter interface {
	Get(ctx context.Context, key store.Key) (store.Item, error)
}

// Account is what a service account may do.
type Account struct {
	Organization string    `json:"organization"`
	Role         string    `json:"role"`
	Workspace    string    `json:"workspace"` // the only one it reaches; empty: all of the organization
	Revoked      time.Time `json:"revoked"`
}

// Grant tells whether a grant counts: false when it is revoked, over or unknown.
func Grant(ctx context.Context, rows Getter, id string) (bool, error) {
	var row struct {
		Revoked time.Time `json:"revoked"`
	}
	ok, err := read(ctx, rows, GrantPrefix, id, GrantKey(id), &row)
	return ok && row.Revoked.IsZero(), err
}

// Service reads a service account; false when it is revoked or unknown.
func Service(ctx context.Context, rows Getter, id string) (Account, bool, error) {
	var row Account
	ok, err := read(ctx, rows, ServicePrefix, id, ServiceKey(id), &row)
	return row, ok && row.Revoked.IsZero(), err
}

func read[T any](ctx context.Context, rows Getter, prefix, id string, key store.Key, row *T) (bool, error) {
	if !strings.HasPrefix(id, prefix+"_") || len(id) > 64 {
		return false, nil
	}
	item, err := rows.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrInvalid) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", prefix, err)
	}
	*row, err = store.Decode[T](item, format)
	return err == nil, err //nolint:wrapcheck // the store names the step
}
