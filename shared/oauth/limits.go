package oauth

import (
	"context"
	"encoding/binary"
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/buzon-mail/buzon/shared/store"
)

// limit is how many attempts of one kind a source may make in a minute. Before sign-in there is nobody to count but the
// network: addresses are hashed into 4,096 counters a kind and minute, so strangers can't fill the store however many
// addresses they have, and no row says who came.
type limit struct {
	kind string
	max  int64
}

const limitBuckets = 4096

//nolint:gochecknoglobals // constant table
var (
	limitSignIn   = limit{"sign-in", 20}
	limitRegister = limit{"register", 30}
	limitToken    = limit{"token", 60} // errors only
	limitFetch    = limit{"fetch", 20} // documents that are not cached, by person
)

// count counts an attempt. Over the limit it is refused, which costs a write but no row.
func (s *Server) count(r *http.Request, l limit) error {
	return s.countBucket(r.Context(), l, s.bucket(r.RemoteAddr))
}

func (s *Server) countBucket(ctx context.Context, l limit, bucket int) error {
	now := s.Clock().UTC()
	minute := now.Truncate(time.Minute)
	key := store.Key{
		Table: store.Ephemeral, Partition: "oauth/limit/" + l.kind + "/" + strconv.Itoa(bucket), Sort: strconv.FormatInt(minute.Unix()/60, 10),
	}
	_, err := s.Store.Add(ctx, key, "n", 1, l.max, minute.Add(2*time.Minute))
	switch {
	case errors.Is(err, store.ErrLimit):
		e := later("over the limit of "+l.kind, nil)
		e.status, e.retry = http.StatusTooManyRequests, max(minute.Add(time.Minute).Sub(now), time.Second)
		return e
	case err != nil:
		return later("count "+l.kind, err)
	}
	return nil
}

// bucket is HMAC(source) mod 4,096. Of IPv6 the /64 counts: its holder can use every address in it. The key keeps an attacker
// from choosing addresses that share a counter with somebody.
func (s *Server) bucket(remote string) int {
	source := "unknown"
	if ap, err := netip.ParseAddrPort(remote); err == nil {
		a := ap.Addr().Unmap().WithZone("")
		if a.Is6() {
			if p, err := a.Prefix(64); err == nil {
				a = p.Addr()
			}
		}
		source = a.String()
	}
	return s.bucketOf(source)
}

func (s *Server) bucketOf(source string) int {
	return int(binary.BigEndian.Uint16(mac(s.addresses, source))) % limitBuckets
}
