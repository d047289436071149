package rest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/op"
)

// Key is embedded in the input of an operation that takes an idempotency key.
type Key struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"128" doc:"Repeated with the same key and arguments within 24 h it is done once." tool:"-"`
}

// RequiredKey is Key for an operation that can't do without: everything that sends something outward.
type RequiredKey struct {
	IdempotencyKey string `header:"Idempotency-Key" required:"true" maxLength:"128" doc:"New for each act; repeated with the same key and arguments within 24 h it is done once." tool:"-"`
}

const (
	maxKey   = 128      // bytes
	maxReply = 32 << 10 // bytes of a reply that is kept
	// settleTimeout bounds what is told of a key once the act is over, also when the caller has gone.
	settleTimeout = 3 * time.Second
)

// Idempotency remembers for 24 hours which acts were done under which key. An error that is no conflict leaves the key as it is.
type Idempotency interface {
	// LookKey returns what was done under the key, nil for nothing. A conflict: with other arguments (op.CodeKeyReused), or it is being
	// done (op.CodeKeyInFlight).
	LookKey(ctx context.Context, k op.IdempotencyKey) (*op.Replay, error)
	// TakeKey is LookKey, but that a key under which nothing was done is in flight from then on, for two minutes at most: of two calls at
	// once one acts. What the act itself writes in its transaction (op.IdempotencyKeyFrom) makes the key done.
	TakeKey(ctx context.Context, k op.IdempotencyKey) (*op.Replay, error)
	// KeepReply makes the key done, if the act has not, and keeps the reply; a zero Status keeps none.
	KeepReply(ctx context.Context, k op.IdempotencyKey, r op.Replay) error
	// DropKey forgets a key under which nothing was done.
	DropKey(ctx context.Context, k op.IdempotencyKey) error
}

// TakesKey tells whether the input of an operation has an idempotency key.
func TakesKey(input reflect.Type) bool {
	for i := range input.NumField() {
		f := input.Field(i)
		if http.CanonicalHeaderKey(f.Tag.Get("header")) == op.KeyHeader ||
			f.Anonymous && f.Type.Kind() == reflect.Struct && TakesKey(f.Type) {
			return true
		}
	}
	return false
}

// checkKey: a reply with a secret is lost when the connection breaks, and then the call is repeated.
func checkKey(o *op.Operation, have Idempotency) error {
	takes := TakesKey(o.Input)
	switch {
	case takes && have == nil:
		return fmt.Errorf("rest: %s takes an idempotency key, and Deps has no Idempotency", o.Name)
	case o.Secret && !takes:
		return fmt.Errorf("rest: %s answers with a secret, so its input embeds Key", o.Name)
	}
	return nil
}

// named finds the key of a call and binds it to who calls what, where. The arguments are what huma made of path, query and body: two
// spellings of one call are one. A call of another grant is another caller: it may be allowed to see less.
func (t *route) named(c *call, in any) (k op.IdempotencyKey, ok bool, err error) {
	values := c.r.Header[op.KeyHeader]
	if len(values) == 0 {
		return k, false, nil // one that is required was refused before
	}
	value := values[0]
	if len(values) > 1 || value == "" || len(value) > maxKey || strings.ContainsFunc(value, func(r rune) bool { return r < '!' || r > '~' }) {
		return k, false, apperr.New(apperr.Invalid, "", "The idempotency key can't be used.", "Send one key, new for each act, such as a UUID.").
			At("header."+op.KeyHeader, "1 to 128 characters of ASCII without spaces")
	}
	arguments, err := json.Marshal(in)
	if err != nil {
		return k, false, fmt.Errorf("arguments of %s: %w", t.op.Name, err)
	}
	caller := op.CallerFrom(c.ctx)
	h := sha256.New()
	for _, part := range []string{caller.Organization, caller.Subject, caller.Grant, t.op.Name, op.TenantFrom(c.ctx).ID, value} {
		_, _ = h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	sum := sha256.Sum256(arguments)
	return op.IdempotencyKey{ID: hex.EncodeToString(h.Sum(nil)), Arguments: hex.EncodeToString(sum[:])}, true, nil
}

// begin looks the key of a call up, before anybody is asked and before anything is done. With done the call is answered.
func (c *call) begin(in any) (done bool, err error) {
	if !c.route.keyed {
		return false, nil
	}
	k, ok, err := c.route.named(c, in)
	if err != nil || !ok {
		return false, err
	}
	keys, inquiry := c.route.api.deps.Idempotency, op.InquiryFrom(c.ctx)
	if inquiry != nil {
		c.replay, err = keys.LookKey(c.ctx, k)
		inquiry.Replayed = c.replay != nil
		return inquiry.Replayed, err //nolint:wrapcheck // a conflict is the caller's, else the step is named
	}
	if c.replay, err = keys.TakeKey(c.ctx, k); err != nil || c.replay != nil {
		return c.replay != nil, err //nolint:wrapcheck // the same
	}
	c.ctx = op.WithIdempotencyKey(c.ctx, k)
	return false, nil
}

// settle says of a key what came of the act, once its reply is written to body. Nothing depends on it: the act's own transaction has
// made the key done, and one under which nothing was done is free again in a moment.
func (c *call) settle(body []byte, status int) {
	k := op.IdempotencyKeyFrom(c.ctx)
	if k.ID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), settleTimeout)
	defer cancel()
	keys, o := c.route.api.deps.Idempotency, c.route.op
	var err error
	switch {
	case c.err != nil:
		err = keys.DropKey(ctx, k)
	case o.Job: // the job's id is all there is to say, and it is there
	case o.Secret || len(body) > maxReply:
		err = keys.KeepReply(ctx, k, op.Replay{})
	default:
		err = keys.KeepReply(ctx, k, op.Replay{Status: status, Body: body})
	}
	if err != nil {
		a := c.route.api
		a.deps.Logger.LogAttrs(ctx, slog.LevelWarn, "idempotency key not settled", slog.String("operation", o.Name),
			slog.String("request_id", a.deps.RequestID(ctx)), slog.String("error", err.Error()))
	}
}

// again answers a call whose act was done before.
func (t *route) again(w http.ResponseWriter, r *op.Replay) error {
	switch {
	case t.op.Job && r.Outcome != "":
		out := Started(r.Outcome)
		out.locate(t.api.options.BasePath)
		body, err := json.Marshal(out.Body)
		if err != nil {
			return fmt.Errorf("encode the reply: %w", err)
		}
		w.Header().Set("Location", out.Location)
		t.api.send(w, http.StatusAccepted, "application/json", body)
		return nil
	case r.Status != 0:
		t.api.send(w, r.Status, "application/json", r.Body)
		return nil
	}
	fix := "Do not repeat the call with another key unless it is to be done once more."
	fixes := []string{fix}
	if r.Outcome != "" {
		fixes = []string{"Read " + r.Outcome + " to see how it stands.", fix}
	}
	public := "This call was made before with this idempotency key, and was done. Its reply was not kept."
	if t.op.Secret {
		public = "This call was made before with this idempotency key, and was done. Its secret was shown then, and only then."
	}
	return apperr.New(apperr.Conflict, op.CodeKeyReplayed, public, fixes...)
}
