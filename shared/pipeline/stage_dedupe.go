package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/bits"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// dedupe drops an exact copy: a sender that never heard our 250 sends again. A mail that only claims to be another one, by
// its message id, is kept and warned about: dropping it would let anybody who knows an id keep a mail from arriving.
func (r *run) dedupe(ctx context.Context) error {
	r.key = r.messageKey()
	other, how, err := r.w.deps.Mails.Duplicate(ctx, r.email, r.key)
	if apperr.Is(err, apperr.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if how != "raw" {
		r.warn("duplicate_message_id", "Another mail of this inbox has the same message id, sender and date: "+other)
		return nil
	}
	if err := r.w.deps.Mails.Discard(ctx, r.email.ID, other); err != nil {
		return err
	}
	r.duplicateOf = other
	if r.own {
		// Nobody else's bytes. Discard has made trash of them, so a failure here leaves them to retention.
		if err := r.w.deps.Blobs.Delete(ctx, r.email.RawKey); err != nil {
			r.w.deps.Logger.Warn("pipeline: bytes of a duplicate are left to retention", slog.String("email", r.email.ID))
		}
	}
	return nil
}

// messageKey is a digest of what makes two mails the same message: message id, sender, date and size bucket. Empty for a
// mail without an id. The parts are length-prefixed, so that no sender can move text from one to the next.
func (r *run) messageKey() string {
	if r.reading == nil || r.email.Content.MessageID == "" {
		return ""
	}
	c, from := r.email.Content, ""
	if len(c.From) == 1 {
		from = strings.ToLower(c.From[0].Address)
	}
	h := sha256.New()
	for _, part := range []string{c.MessageID, from, fmt.Sprint(c.Date.Unix()), fmt.Sprint(bits.Len64(uint64(r.email.Size)))} { //nolint:gosec // a size is not negative
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}
