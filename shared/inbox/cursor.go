package inbox

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// Paging.
const (
	DefaultLimit = 25
	MaxLimit     = 100

	cursorVersion = 1
	cursorTTL     = 24 * time.Hour
	maxCursor     = 2048 // bytes; ours are far shorter
)

// PageRequest is where a list goes on and how much it returns.
type PageRequest struct {
	Cursor string // of the page before; empty: the first
	Limit  int    // 1 to MaxLimit; 0 is DefaultLimit
}

func (p PageRequest) limit() (int, error) {
	if p.Limit == 0 {
		return DefaultLimit, nil
	}
	if p.Limit < 1 || p.Limit > MaxLimit {
		return 0, invalid("query.limit", fmt.Sprintf("1 to %d", MaxLimit))
	}
	return p.Limit, nil
}

// binding is the associated data of a cursor: who may use it, for which operation and with which filters. Each part is
// written with its length, so that no two different lists of parts are the same bytes. Without it a cursor of another
// tenant, or of a narrower filter, would move the caller to a place in a list that was never shown to it.
func (a Actor) binding(operation string, filters any) ([]byte, error) {
	f, err := json.Marshal(filters)
	if err != nil {
		return nil, fmt.Errorf("filters of %s: %w", operation, err)
	}
	digest := sha256.Sum256(f)
	var ad []byte
	for _, part := range []string{"cursor", a.Organization, a.Workspace, a.Subject, operation, string(digest[:])} {
		ad = binary.AppendUvarint(ad, uint64(len(part)))
		ad = append(ad, part...)
	}
	return ad, nil
}

type position struct {
	Version int    `json:"v"`
	After   string `json:"a"`
}

// cursors seals and opens the cursors of one list. What they are bound to is worked out when there is one: the first page of
// a short list has none.
type cursors struct {
	sealer    Sealer
	actor     Actor
	operation string
	filters   any
	place     string // where the caller sent it
}

func newCursors(s Sealer, a Actor, operation string, filters any) cursors {
	return cursors{s, a, operation, filters, "query.cursor"}
}

// in says where else than in the query the caller sends the cursor.
func (c cursors) in(place string) cursors {
	c.place = place
	return c
}

// open returns the key that a cursor stands behind.
func (c cursors) open(token string) (string, error) {
	if token == "" {
		return "", nil
	}
	if len(token) > maxCursor {
		return "", badCursor(c.place)
	}
	ad, err := c.actor.binding(c.operation, c.filters)
	if err != nil {
		return "", err
	}
	plain, err := c.sealer.Open(token, ad)
	if err != nil {
		return "", badCursor(c.place).Because(err)
	}
	var p position
	if err := json.Unmarshal(plain, &p); err != nil || p.Version != cursorVersion || p.After == "" {
		return "", badCursor(c.place)
	}
	return p.After, nil
}

// seal makes the cursor that stands behind a key; empty at the end of the list.
func (c cursors) seal(after string) (string, error) {
	if after == "" {
		return "", nil
	}
	plain, err := json.Marshal(position{cursorVersion, after})
	if err != nil {
		return "", fmt.Errorf("encode a cursor: %w", err)
	}
	ad, err := c.actor.binding(c.operation, c.filters)
	if err != nil {
		return "", err
	}
	token, err := c.sealer.Seal(plain, ad, cursorTTL)
	if err != nil {
		return "", fmt.Errorf("seal a cursor: %w", err)
	}
	return token, nil
}

func badCursor(place string) *apperr.Error {
	return apperr.New(apperr.Invalid, "invalid_cursor", "The cursor does not belong to this list, or it has expired.",
		"Use a cursor only with the same filters and workspace as the page it came from, within 24 hours.",
		"Leave cursor out to start again.").At(place, "not a cursor of this list")
}
