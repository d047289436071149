package inbox_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/truora/minidyn/server"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store/dynamo"
	"github.com/buzon-mail/buzon/shared/testkit/faults"
)

// serial serves one request at a time: the stand-in is not safe for several.
type serial struct {
	mu    sync.Mutex
	inner http.Handler
}

func (s *serial) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inner.ServeHTTP(w, r)
}

// onDynamo is a world on the engine for DynamoDB, over a stand-in in process.
func onDynamo(t *testing.T) *world {
	t.Helper()
	w := &world{tb: t, blobs: blobs{}, clock: time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)}
	cfg, err := awsclient.Static("eu-west-1", "AKID", "secret", "")
	w.must(err)
	cfg.HTTP, cfg.Backoff = &faults.Client{Server: &serial{inner: server.NewServer()}}, func(int, bool) time.Duration { return 0 }
	client := dynamodb.New(dynamodb.Options{Region: cfg.Region, Credentials: cfg.Credentials, HTTPClient: cfg.HTTP})
	for _, name := range []string{"core", "ephemeral"} {
		_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: &name, BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{
				{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
				{AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeS},
			},
			KeySchema: []types.KeySchemaElement{
				{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
			},
		})
		w.must(err)
	}
	e, err := dynamo.New(dynamo.Options{AWS: cfg, Core: "core", Ephemeral: "ephemeral", Clock: w.now})
	w.must(err)
	w.start(e)
	return w
}

func (w *world) claim(a inbox.Actor, r inbox.ClaimRequest) inbox.Claim {
	w.tb.Helper()
	c, err := w.services.Work.Claim(w.tb.Context(), a, r)
	w.must(err)
	return c
}

func box(slug string) inbox.ClaimQuery { return inbox.ClaimQuery{Inbox: slug} }

func leasedIDs(rows []inbox.Summary) []string {
	var out []string
	for _, r := range rows {
		out = append(out, r.ID)
	}
	return out
}

// Fifty claimers at once over a hundred mails: each mail is leased exactly once, and none is left over.
func TestManyClaimers(t *testing.T) {
	for name, c := range map[string]struct {
		open           func(*testing.T) *world
		claimers, mail int
	}{
		"embedded": {func(t *testing.T) *world { return newWorld(t) }, 50, 100},
		"dynamo":   {onDynamo, 16, 32}, // its stand-in copies its tables for each transaction
	} {
		t.Run(name, func(t *testing.T) {
			w := c.open(t)
			in := w.inbox(acme(), "support")
			for _, e := range w.receivedAll(in, c.mail) {
				w.process(e, nil)
			}
			var mu sync.Mutex
			held, leases := map[string]int{}, map[string]bool{}
			start := make(chan struct{})
			var all sync.WaitGroup
			for range c.claimers {
				all.Go(func() {
					<-start
					for {
						got, err := w.services.Work.Claim(t.Context(), acme(), inbox.ClaimRequest{Query: box("support"), Limit: 2})
						if apperr.From(err).Code == "busy" && err != nil {
							continue
						}
						if err != nil {
							t.Error(err)
							return
						}
						if len(got.Rows) == 0 {
							return
						}
						mu.Lock()
						if len(got.Rows) > 2 || leases[got.ID] {
							t.Errorf("%d mails under lease %s", len(got.Rows), got.ID)
						}
						leases[got.ID] = true
						for _, row := range got.Rows {
							held[row.ID]++
						}
						mu.Unlock()
					}
				})
			}
			close(start)
			all.Wait()
			for id, n := range held {
				if n != 1 {
					t.Errorf("%s was leased %d times", id, n)
				}
			}
			if len(held) != c.mail {
				t.Errorf("%d mails were leased, want %d", len(held), c.mail)
			}
			if last := w.claim(acme(), inbox.ClaimRequest{Query: box("support")}); len(last.Rows) != 0 {
				t.Errorf("something is left: %v", last.Rows)
			}
		})
	}
}

func TestLeaseLife(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	first, second := w.deliver(in, nil), w.deliver(in, nil)
	version := w.list(acme(), inbox.EmailQuery{})[0].Version
	one := w.claim(acme(), inbox.ClaimRequest{Query: box("support"), Lease: time.Minute})
	if !slices.Equal(leasedIDs(one.Rows), []string{first.ID}) || !one.Until.Equal(w.now().Add(time.Minute)) || one.Holder != "user_a" {
		t.Fatalf("claim %+v, want the mail that waits longest", one)
	}
	if again := w.claim(acme(), inbox.ClaimRequest{Query: box("support"), Limit: 10}); !slices.Equal(leasedIDs(again.Rows), []string{second.ID}) {
		t.Errorf("a second claim got %v", leasedIDs(again.Rows))
	}
	update := func(id string, p inbox.EmailPatch) (inbox.EmailView, error) {
		return w.services.Emails.Update(t.Context(), acme(), id, p)
	}
	// Extended for a minute from now, it does not end a minute after it was given.
	w.advance(30 * time.Second)
	v, err := update(first.ID, inbox.EmailPatch{Lease: one.ID, LeaseFor: inbox.Set(time.Minute)})
	w.must(err)
	if v.Version != version {
		t.Errorf("a lease moved the version to %d", v.Version)
	}
	w.advance(45 * time.Second)
	if c := w.claim(acme(), inbox.ClaimRequest{Query: box("support")}); len(c.Rows) != 0 {
		t.Error("the extended lease ended early")
	}
	// A label keeps the lease, and the mail as it waits shows the label later.
	_, err = update(first.ID, inbox.EmailPatch{Lease: one.ID, AddLabels: []string{"seen"}})
	w.must(err)
	// It ends by itself, to the millisecond, and the mail is free behind nobody.
	w.advance(15*time.Second - time.Millisecond)
	if c := w.claim(acme(), inbox.ClaimRequest{Query: box("support")}); len(c.Rows) != 0 {
		t.Error("the lease ended early")
	}
	w.advance(time.Millisecond)
	_, err = update(first.ID, inbox.EmailPatch{Lease: one.ID, Handled: inbox.Set(true)})
	wantKind(t, err, apperr.Conflict, "lease_lost")
	if rows := w.list(acme(), inbox.EmailQuery{Handled: new(bool)}); len(rows) != 2 {
		t.Error("a lost lease changed the mail")
	}
	two := w.claim(acme(), inbox.ClaimRequest{Query: inbox.ClaimQuery{Inbox: "support", Label: "seen"}})
	if !slices.Equal(leasedIDs(two.Rows), []string{first.ID}) {
		t.Fatalf("after the lease: %v", leasedIDs(two.Rows))
	}
	// Finished under the lease; whoever lost the answer repeats the call.
	for range 2 {
		v, err = update(first.ID, inbox.EmailPatch{Lease: two.ID, Handled: inbox.Set(true)})
		w.must(err)
	}
	if v.HandledAt.IsZero() || v.Version != version+2 {
		t.Errorf("handled %v, version %d", v.HandledAt, v.Version)
	}
	_, err = update(first.ID, inbox.EmailPatch{Lease: one.ID, Handled: inbox.Set(true)})
	wantKind(t, err, apperr.Conflict, "lease_lost")
	// Taken up again it waits anew, and the old lease opens nothing.
	_, err = update(first.ID, inbox.EmailPatch{Handled: inbox.Set(false)})
	w.must(err)
	_, err = update(first.ID, inbox.EmailPatch{Lease: two.ID, Handled: inbox.Set(true)})
	wantKind(t, err, apperr.Conflict, "lease_lost")
	w.advance(time.Hour)
	if c := w.claim(acme(), inbox.ClaimRequest{Query: box("support"), Limit: 10}); !slices.Equal(leasedIDs(c.Rows), []string{first.ID, second.ID}) {
		t.Errorf("in the end %v", leasedIDs(c.Rows))
	}
}

// Whoever gives mail back can't keep others from being looked at.
func TestGivenBackGoesBehind(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	first, second := w.deliver(in, nil), w.deliver(in, nil)
	c := w.claim(acme(), inbox.ClaimRequest{Query: box("support")})
	_, err := w.services.Emails.Update(t.Context(), acme(), first.ID, inbox.EmailPatch{Lease: c.ID, LeaseFor: inbox.Null[time.Duration]()})
	w.must(err)
	_, err = w.services.Emails.Update(t.Context(), acme(), first.ID, inbox.EmailPatch{Lease: c.ID, LeaseFor: inbox.Set(time.Minute)})
	wantKind(t, err, apperr.Conflict, "lease_lost")
	if got := w.claim(acme(), inbox.ClaimRequest{Query: box("support"), Limit: 2}); !slices.Equal(leasedIDs(got.Rows), []string{second.ID, first.ID}) {
		t.Errorf("%v, want what was given back last", leasedIDs(got.Rows))
	}
}

// What stops to be work is not claimed, and what becomes work is, however it came about.
func TestWhatIsWork(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	free := func(want ...inbox.Email) {
		t.Helper()
		var ws []string
		for _, e := range want {
			ws = append(ws, e.ID)
		}
		c := w.claim(acme(), inbox.ClaimRequest{Query: box("support"), Limit: 10, Lease: time.Second})
		if !slices.Equal(leasedIDs(c.Rows), ws) {
			t.Fatalf("free: %v, want %v", leasedIDs(c.Rows), ws)
		}
		w.advance(time.Second)
	}
	e := w.deliver(in, nil)
	held := w.deliver(in, func(p *inbox.Processed) { p.Email.Status = inbox.StatusQuarantined })
	w.deliver(in, func(p *inbox.Processed) { p.Email.Status = inbox.StatusFailed })
	w.received(in)
	free(e)
	_, err := w.services.Emails.Delete(t.Context(), acme(), e.ID)
	w.must(err)
	free()
	_, err = w.services.Emails.Restore(t.Context(), acme(), e.ID)
	w.must(err)
	free(e)
	_, err = w.services.Emails.Release(t.Context(), acme(), held.ID)
	w.must(err)
	free(held, e) // e waits since its lease ended
	_, err = w.services.Inboxes.Delete(t.Context(), acme(), "support")
	w.must(err)
	_, err = w.services.Work.Claim(t.Context(), acme(), inbox.ClaimRequest{Query: box("support")})
	wantKind(t, err, apperr.NotFound, "")
}

// A person who finishes a mail that somebody holds wins: the holder learns it.
func TestHandledOverALease(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	e := w.deliver(in, nil)
	c := w.claim(acme(), inbox.ClaimRequest{Query: box("support")})
	_, err := w.services.Emails.Update(t.Context(), acme(), e.ID, inbox.EmailPatch{Handled: inbox.Set(true)})
	w.must(err)
	_, err = w.services.Emails.Update(t.Context(), acme(), e.ID, inbox.EmailPatch{Lease: c.ID, Handled: inbox.Set(true)})
	wantKind(t, err, apperr.Conflict, "lease_lost")
}

// A filter that fits little reads a window and says where to go on.
func TestClaimWindow(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	var last inbox.Email
	for i, e := range w.receivedAll(in, 450) {
		last = w.process(e, func(p *inbox.Processed) {
			p.Body = nil
			if i == 449 {
				p.Email.Labels = []string{"rare"}
			}
		})
	}
	r := inbox.ClaimRequest{Query: inbox.ClaimQuery{Inbox: "support", Label: "rare"}}
	w.engine.reset()
	c := w.claim(acme(), r)
	if len(c.Rows) != 0 || c.Next == "" || c.Window == nil || c.Window.Complete || c.Window.Examined != 400 || w.engine.rows > 400 {
		t.Fatalf("first window %+v, %+v, %d rows read", c, c.Window, w.engine.rows)
	}
	other := r
	other.Cursor, other.Query.Label = c.Next, "other"
	_, err := w.services.Work.Claim(t.Context(), acme(), other)
	wantKind(t, err, apperr.Invalid, "invalid_cursor")
	r.Cursor = c.Next
	if c = w.claim(acme(), r); !slices.Equal(leasedIDs(c.Rows), []string{last.ID}) {
		t.Errorf("second window %v", leasedIDs(c.Rows))
	}
}

func TestClaimRefused(t *testing.T) {
	w := newWorld(t)
	w.inbox(acme(), "support")
	theirs := w.inbox(globex(), "theirs")
	e := w.deliver(theirs, nil)
	for name, r := range map[string]inbox.ClaimRequest{
		"no inbox": {}, "11 mails": {Query: box("support"), Limit: 11}, "16 minutes": {Query: box("support"), Lease: 16 * time.Minute},
		"no time": {Query: box("support"), Lease: time.Millisecond}, "trust": {Query: inbox.ClaimQuery{Inbox: "support", Trust: "much"}},
		"a filter without end": {Query: inbox.ClaimQuery{Inbox: "support", Q: strings.Repeat("x", 1000)}},
		"cursor":               {Query: box("support"), Cursor: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.services.Work.Claim(t.Context(), acme(), r)
			wantKind(t, err, apperr.Invalid, "")
		})
	}
	for _, ref := range []string{"absent", theirs.ID, theirs.Slug} {
		_, err := w.services.Work.Claim(t.Context(), acme(), inbox.ClaimRequest{Query: box(ref)})
		wantKind(t, err, apperr.NotFound, "")
	}
	c := w.claim(globex(), inbox.ClaimRequest{Query: box("theirs")})
	_, err := w.services.Emails.Update(t.Context(), acme(), e.ID, inbox.EmailPatch{Lease: c.ID, Handled: inbox.Set(true)})
	wantKind(t, err, apperr.NotFound, "")
	for name, p := range map[string]inbox.EmailPatch{
		"lease_s alone": {LeaseFor: inbox.Set(time.Minute)}, "lease_s of an hour": {Lease: c.ID, LeaseFor: inbox.Set(time.Hour)},
		"lease_s below 0": {Lease: c.ID, LeaseFor: inbox.Set(-time.Second)},
	} {
		_, err := w.services.Emails.Update(t.Context(), globex(), e.ID, p)
		if !apperr.Is(err, apperr.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, lease := range []string{"x", "lease_00000000000000000000000009"} {
		_, err := w.services.Emails.Update(t.Context(), globex(), e.ID, inbox.EmailPatch{Lease: lease, Handled: inbox.Set(true)})
		wantKind(t, err, apperr.Conflict, "lease_lost")
	}
}

// A claimer without codes:read sees nothing of them, and can't find them out by filters.
func TestClaimMasked(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	w.deliver(in, func(p *inbox.Processed) {
		p.Email.Codes, p.Email.Content.Subject = []inbox.Code{{Value: "482913"}}, "Your code 482913"
	})
	blind := acme()
	blind.ReadCodes = false
	if c := w.claim(blind, inbox.ClaimRequest{Query: inbox.ClaimQuery{Inbox: "support", Subject: "4829"}}); len(c.Rows) != 0 {
		t.Error("a filter told a hidden digit")
	}
	c := w.claim(blind, inbox.ClaimRequest{Query: box("support")})
	if len(c.Rows) != 1 || strings.Contains(c.Rows[0].Subject, "482913") || !c.Masked {
		t.Errorf("claim %+v", c)
	}
}

// What was leased before a failure is the caller's, who would else not know of it.
func TestClaimKeepsWhatItGot(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	e := w.deliver(in, nil)
	w.deliver(in, nil)
	ctx, cancel := context.WithCancel(t.Context())
	w.engine.after = cancel
	c, err := w.services.Work.Claim(ctx, acme(), inbox.ClaimRequest{Query: box("support"), Limit: 2})
	if err != nil || !slices.Equal(leasedIDs(c.Rows), []string{e.ID}) {
		t.Errorf("%v, %v", leasedIDs(c.Rows), err)
	}
	w.engine.after = nil
	if _, err := w.services.Work.Claim(ctx, acme(), inbox.ClaimRequest{Query: box("support")}); !errors.Is(err, context.Canceled) {
		t.Errorf("nothing was got, and: %v", err)
	}
}
