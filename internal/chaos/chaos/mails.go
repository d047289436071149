package chaos

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// letter is one mail and what is promised of it.
type letter struct {
	canary   string
	raw      string
	sha256   [32]byte
	to       map[string]bool // ids of inboxes
	tenants  map[int]bool    // who may see it
	file     string          // text of its attachment; empty: it has none
	accepted bool
}

// compose makes the nth mail: for one inbox as a rule, else for two, of which a few are of two tenants.
func (r *run) compose(rng *rand.Rand, n int) (*letter, []string) {
	l := &letter{canary: fmt.Sprintf("canary%06dx", n), to: map[string]bool{}, tenants: map[int]bool{}}
	var addresses []string
	t := r.world.tenants[rng.IntN(len(r.world.tenants))]
	for i := range 1 + max(0, rng.IntN(5)-3) {
		if i > 0 && rng.IntN(3) == 0 {
			t = r.world.tenants[rng.IntN(len(r.world.tenants))]
		}
		in := t.inboxes[rng.IntN(len(t.inboxes))]
		if !l.to[in.ID] {
			addresses = append(addresses, in.Address)
		}
		l.to[in.ID], l.tenants[t.index] = true, true
	}
	head := "From: Ada <ada@sender.example>\r\nTo: list@sender.example\r\nSubject: About " + l.canary + "\r\nMessage-ID: <" + l.canary + "@sender.example>\r\nMIME-Version: 1.0\r\n"
	text := "This is " + l.canary + ".\r\n" + strings.Repeat("Words of "+l.canary+" go on. ", rng.IntN(40)) + "\r\n"
	if rng.IntN(4) == 0 {
		l.file = "File of " + l.canary + ".\r\n"
		l.raw = head + "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\n" + text +
			"--b\r\nContent-Type: application/octet-stream\r\nContent-Disposition: attachment; filename=" + l.canary + ".bin\r\n" +
			"Content-Transfer-Encoding: base64\r\n\r\n" + base64.StdEncoding.EncodeToString([]byte(l.file)) + "\r\n--b--\r\n"
	} else {
		l.raw = head + "Content-Type: text/plain\r\n\r\n" + text
	}
	l.sha256 = sha256.Sum256([]byte(l.raw))
	return l, addresses
}

// send is a sender's way with one mail: it comes again until it is accepted, in a few cases gives up at the first refusal, and in a
// few sends it again though it was accepted, because the answer got lost.
func (r *run) send(ctx context.Context, rng *rand.Rand, n int) {
	l, addresses := r.compose(rng, n)
	r.mu.Lock()
	r.mails[l.canary] = l
	r.mu.Unlock()
	deliver := r.smtp
	if rng.IntN(3) == 0 {
		deliver = r.ses
	}
	givesUp, twice := rng.IntN(4) == 0, rng.IntN(20) == 0
	for {
		err := deliver(ctx, rng, l, addresses)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return
		}
		r.refusals.Add(1)
		if k := apperr.From(err).Kind; k != apperr.Unavailable && k != apperr.Internal {
			r.wrong.add("%s was refused for good: %w", l.canary, err)
			return
		}
		if givesUp {
			r.mu.Lock()
			r.report.Given++
			r.mu.Unlock()
			return
		}
	}
	r.mu.Lock()
	l.accepted = true
	r.report.Accepted++
	if twice {
		r.report.Twice++
	}
	r.mu.Unlock()
	if twice {
		_ = deliver(ctx, rng, l, addresses)
	}
}

func (r *run) recipients(ctx context.Context, in *instance, addresses []string) (to []inbox.Recipient, err error) {
	for _, a := range addresses {
		one, err := in.intake.Recipient(ctx, a)
		if err != nil {
			return nil, err //nolint:wrapcheck // the store names the step
		}
		to = append(to, one)
	}
	return to, nil
}

// smtp hands the mail over as the SMTP listener does.
func (r *run) smtp(ctx context.Context, rng *rand.Rand, l *letter, addresses []string) error {
	in := r.fleet.any(rng)
	to, err := r.recipients(ctx, in, addresses)
	if err != nil {
		return err
	}
	_, err = in.intake.Accept(ctx, inbox.Incoming{From: "ada@sender.example", RemoteIP: "192.0.2.1", HELO: "x.example", Recipients: to, Body: strings.NewReader(l.raw)})
	return err //nolint:wrapcheck // the intake names the step
}

// ses stores the mail and then tells of it, as SES does: the notice comes again until somebody has taken it.
func (r *run) ses(ctx context.Context, rng *rand.Rand, l *letter, addresses []string) error {
	in, key := r.fleet.any(rng), "ses/"+l.canary
	if err := r.world.blobs.Put(ctx, key, strings.NewReader(l.raw), int64(len(l.raw))); err != nil {
		return err //nolint:wrapcheck // the store names the step
	}
	to, err := r.recipients(ctx, in, addresses)
	if err != nil {
		return err
	}
	_, err = in.intake.AcceptStored(ctx, inbox.Stored{Source: key, Key: key, ReceivedAt: r.world.clock.began, From: "ada@sender.example", Recipients: to})
	return err //nolint:wrapcheck // the intake names the step
}
