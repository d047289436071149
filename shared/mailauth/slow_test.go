package mailauth

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// tarpit answers nothing for what lies in slow.test before the caller gives up, and everything else at once.
type tarpit struct{ *zone }

func (p tarpit) LookupTXT(ctx context.Context, name string) ([]string, error) {
	if !SameOrganization(name[:len(name)-1], "slow.test") {
		return p.zone.LookupTXT(ctx, name)
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestSlowDNS: of a flood of mails whose domain answers nothing only a few are waited for, the others' checks end early as failed
// look-ups, and a mail of anybody else is checked meanwhile as ever.
func TestSlowDNS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := tarpit{world()}
		v, err := New(p, Options{Budget: 5 * time.Second, Patience: 500 * time.Millisecond, Slow: 3})
		if err != nil {
			t.Fatal(err)
		}
		const flood = 16
		began := time.Now()
		took := make([]time.Duration, flood)
		var all sync.WaitGroup
		for i := range flood {
			all.Go(func() {
				raw := fmt.Appendf(nil, "From: a%d@slow.test\r\n\r\n", i)
				r := v.Verify(t.Context(), Mail{Raw: raw, RemoteIP: good, HELO: "slow.test", MailFrom: "a@slow.test"})
				took[i] = time.Since(began)
				for _, c := range r.Checks {
					if c.Method != DKIM && c.Result != TempError {
						t.Errorf("mail %d: %+v", i, c)
					}
				}
			})
		}
		time.Sleep(time.Second)
		honest := v.Verify(t.Context(), Mail{Raw: []byte("From: ana@good.test\r\n\r\n"), RemoteIP: good, HELO: "mx.good.test", MailFrom: "ana@good.test"})
		if last := honest.Checks[len(honest.Checks)-1]; last.Result != Pass || time.Since(began) != time.Second {
			t.Errorf("meanwhile %+v after %v", last, time.Since(began))
		}
		all.Wait()
		count := map[time.Duration]int{}
		for _, d := range took {
			count[d]++
		}
		if count[500*time.Millisecond] != flood-3 || count[5*time.Second] != 3 {
			t.Errorf("how long they took: %v", count)
		}
		// Their places are free again.
		began = time.Now()
		v.Verify(t.Context(), Mail{Raw: []byte("From: a@slow.test\r\n\r\n"), RemoteIP: good, HELO: "slow.test", MailFrom: "a@slow.test"})
		if d := time.Since(began); d != 5*time.Second {
			t.Errorf("the next slow mail was given %v", d)
		}
	})
}
