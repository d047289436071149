package smtpd

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// sized is a fake whose inboxes n100 and n500 take so many bytes.
type sized struct{ fake }

func (f *sized) Recipient(ctx context.Context, address string) (inbox.Recipient, error) {
	r, err := f.fake.Recipient(ctx, address)
	_, _ = fmt.Sscanf(address, "n%d@", &r.MaxBytes)
	return r, err
}

// A message whose size is announced is refused for each recipient that takes no such mail, without harm to the others.
func TestSizeOfRecipients(t *testing.T) {
	for _, c := range []struct {
		size, to string
		want     []string // replies to RCPT
		data     int      // bytes that are sent then; 0: none
		end      string   // reply to them
	}{
		{" SIZE=100", "n100", []string{"250 "}, 100, "250 "},
		{" SIZE=101", "n100", []string{"552 5.2.3"}, 0, ""},
		{" SIZE=101", "n100 n500 agent", []string{"552 5.2.3", "250 ", "250 "}, 101, "250 "},
		{" SIZE=600", "n100 n500 agent", []string{"552 5.2.3", "552 5.2.3", "250 "}, 600, "250 "},
		{" SIZE=600", "nobody", []string{"250 "}, 600, "250 "}, // n without a number: the listener's limit
		{"", "n100", []string{"250 "}, 100, "250 "},
		{"", "n100", []string{"250 "}, 101, "552 5.3.4"},
		{" SIZE=50", "n100", []string{"250 "}, 101, "552 5.3.4"}, // it was a lie
		{"", "n100 n500", []string{"250 ", "250 "}, 500, "250 "},
		{"", "n100 n500", []string{"250 ", "250 "}, 501, "552 5.3.4"},
		{"", "n100 agent", []string{"250 ", "250 "}, 501, "250 "},
		{"", "agent", []string{"250 "}, 1001, "552 5.3.4"},
	} {
		t.Run(fmt.Sprintf("%s to %s, %d", c.size, c.to, c.data), func(t *testing.T) {
			f := &sized{}
			_, addr := start(t, f, Options{MaxBytes: 1000})
			s := hello(t, addr)
			s.want("MAIL FROM:<s@example.com>"+c.size, "250 ")
			for i, to := range strings.Fields(c.to) {
				s.want("RCPT TO:<"+to+"@acme.test>", c.want[i])
			}
			if c.data > 0 {
				s.data(strings.Repeat("x", c.data-2)+"\r\n.\r\n", c.end)
			}
			if n := len(f.accepted()); (n == 1) != (c.end == "250 ") {
				t.Errorf("%d accepted", n)
			}
			s.want("RSET", "250 ") // the next message begins anew
			s.want("MAIL FROM:<s@example.com>", "250 ")
			s.want("RCPT TO:<n100@acme.test>", "250 ")
		})
	}
}

// Refusals for size are no guesses at addresses.
func TestSizeIsNoGuess(t *testing.T) {
	_, addr := start(t, &sized{}, Options{RefusalsPerSession: 3, RefusalsPerMinute: 3})
	s := hello(t, addr)
	s.want("MAIL FROM:<s@example.com> SIZE=101", "250 ")
	for range 10 {
		s.want("RCPT TO:<n100@acme.test>", "552 5.2.3")
	}
	s.want("RCPT TO:<agent@acme.test>", "250 ")
}
