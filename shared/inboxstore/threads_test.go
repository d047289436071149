package inboxstore_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// letter is one mail of a threading case.
type letter struct {
	id, subject, from string
	refs              []string
	later             time.Duration
	box               string // B: another inbox
}

func (w *world) post(l letter) string {
	w.t.Helper()
	e := w.mail()
	e.ReceivedAt = e.ReceivedAt.Add(l.later)
	if l.box == "B" {
		e.Inbox, e.Workspace, e.Organization, e.Envelope.To = boxB, wsB, orgB, "in@globex.test"
	}
	got := w.run(e, func(p *inbox.Processed) { fillLetter(p, l) })
	return got.Thread
}

func fillLetter(p *inbox.Processed, l letter) {
	p.Email.Content = inbox.Content{
		Subject: l.subject, MessageID: l.id, From: []inbox.Address{{Address: l.from}}, To: []inbox.Address{{Address: p.Email.Envelope.To}},
	}
	p.References = l.refs
}

func TestThreads(t *testing.T) {
	const alice, bob = "alice@remote.test", "bob@remote.test"
	for _, c := range []struct {
		name    string
		letters []letter
		want    string // one letter per mail: the same letter is the same thread
	}{
		{"an answer", []letter{{id: "<1>", from: alice}, {id: "<2>", from: bob, refs: []string{"<1>"}}}, "aa"},
		{"brackets or not", []letter{{id: "1", from: alice}, {id: "<2>", from: bob, refs: []string{" <1> "}}}, "aa"},
		{"the answer comes first", []letter{{id: "<2>", from: bob, refs: []string{"<1>"}}, {id: "<1>", from: alice}}, "aa"},
		{"backwards", []letter{{id: "<3>", refs: []string{"<1>", "<2>"}}, {id: "<2>", refs: []string{"<1>"}}, {id: "<1>"}}, "aaa"},
		{"backwards, parents only", []letter{{id: "<3>", refs: []string{"<2>"}}, {id: "<2>", refs: []string{"<1>"}}, {id: "<1>"}}, "aaa"},
		{"a gap", []letter{{id: "<1>"}, {id: "<3>", refs: []string{"<1>", "<2>"}}, {id: "<4>", refs: []string{"<2>"}}}, "aaa"},
		{"two conversations", []letter{{id: "<1>", subject: "x", from: alice}, {id: "<2>", subject: "x", from: alice}}, "ab"},
		{"subject with a shared person", []letter{{id: "<1>", subject: "Offer", from: alice}, {id: "<2>", subject: "Re: offer", from: alice}}, "aa"},
		{"subject, many marks", []letter{{id: "<1>", subject: "Offer", from: alice}, {id: "<2>", subject: "AW: Re[2]:  FWD: offer", from: alice}}, "aa"},
		{"subject, nobody shared", []letter{{id: "<1>", subject: "Offer", from: alice}, {id: "<2>", subject: "Re: Offer", from: bob}}, "ab"},
		{"subject, 31 days later", []letter{{id: "<1>", subject: "Offer", from: alice}, {id: "<2>", subject: "Re: Offer", from: alice, later: 31 * 24 * time.Hour}}, "ab"},
		{"subject, but it answers another", []letter{{id: "<1>", subject: "Offer", from: alice}, {id: "<2>", subject: "Re: Offer", from: alice, refs: []string{"<9>"}}}, "ab"},
		{"subject empty", []letter{{id: "<1>", from: alice}, {id: "<2>", subject: "Re:", from: alice}}, "ab"},
		{"no message id", []letter{{subject: "a", from: alice}, {subject: "a", from: alice}}, "ab"},
		{"another inbox", []letter{{id: "<1>", subject: "Offer", from: alice}, {id: "<2>", subject: "Re: Offer", from: alice, refs: []string{"<1>"}, box: "B"}}, "ab"},
		{"a reference to itself", []letter{{id: "<1>", refs: []string{"<1>"}}, {id: "<2>", refs: []string{"<1>"}}}, "aa"},
		{"the subject's two conversations", []letter{
			{id: "<1>", subject: "Order", from: alice}, {id: "<2>", subject: "Order", from: bob},
			{id: "<3>", subject: "Re: Order", from: alice}, {id: "<4>", subject: "Re: Order", from: bob},
		}, "abab"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			names := map[string]byte{}
			var got strings.Builder
			for _, l := range c.letters {
				thread := w.post(l)
				if len(thread) != len("thread_")+26 {
					t.Fatalf("thread id %q", thread)
				}
				if names[thread] == 0 {
					names[thread] = byte('a' + len(names))
				}
				got.WriteByte(names[thread])
			}
			if got.String() != c.want {
				t.Errorf("threads %s, want %s", got.String(), c.want)
			}
		})
	}
}

// However the workers interleave, a conversation whose mails name its first message is one thread with one id.
func TestThreadRace(t *testing.T) {
	ids := map[string]bool{}
	for range 5 {
		w := newWorld(t)
		letters := []letter{{id: "<1>"}}
		for i := 2; i <= 9; i++ {
			letters = append(letters, letter{id: fmt.Sprintf("<%d>", i), refs: []string{"<1>"}, subject: "s", from: "a@b.test"})
		}
		processed := make([]inbox.Processed, len(letters))
		for i, l := range letters {
			e := w.mail()
			w.accept(e)
			claimed, err := w.ClaimMail(t.Context(), e.ID)
			w.must(err)
			processed[i] = result(claimed)
			fillLetter(&processed[i], l)
		}
		var wg sync.WaitGroup
		for _, p := range processed {
			wg.Go(func() {
				if err := w.Finish(t.Context(), p, ""); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, row := range w.list(inbox.EmailRange{}) {
			ids[row.Thread] = true
		}
	}
	if len(ids) != 1 {
		t.Errorf("%d thread ids: %v", len(ids), ids)
	}
}
