package inbox_test

import (
	"testing"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// Of a quiet mail nobody hears that it came; what somebody does with it later is told, and so is what a reprocess was asked to tell.
func TestQuietMail(t *testing.T) {
	mail := func(s inbox.Status, quiet bool) inbox.Email {
		return inbox.Email{ID: "email_01J00000000000000000000001", Workspace: "ws_01J00000000000000000000001", Status: s, Quiet: quiet}
	}
	for _, c := range []struct {
		name     string
		old, new inbox.Status
		want     int // of a mail that is not quiet
		quiet    int
	}{
		{"accepted", "", inbox.StatusReceived, 1, 0},
		{"processed", inbox.StatusProcessing, inbox.StatusProcessed, 1, 0},
		{"failed", inbox.StatusProcessing, inbox.StatusFailed, 1, 0},
		{"quarantined", inbox.StatusReceived, inbox.StatusQuarantined, 1, 0},
		{"released", inbox.StatusQuarantined, inbox.StatusProcessed, 1, 1},
	} {
		for quiet, want := range map[bool]int{false: c.want, true: c.quiet} {
			old := mail(c.old, quiet)
			if c.old == "" {
				old = inbox.Email{}
			}
			got, err := inbox.EmailEvents(old, mail(c.new, quiet))
			if err != nil || len(got) != want {
				t.Errorf("%s, quiet %v: %d events, %v", c.name, quiet, len(got), err)
			}
		}
	}
	if e, err := inbox.EmailEventAgain(mail(inbox.StatusProcessed, true), "job_1"); err != nil || e.ID == "" {
		t.Errorf("asked for: %+v, %v", e, err)
	}
}
