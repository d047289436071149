package pipeline_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// newSized is a town of acme, whose workspace takes mail of at most 64 KiB, and globex, which says nothing.
func newSized(t *testing.T) *town {
	t.Helper()
	w := newTown(t, blobEngines["dir"])
	w.organization(1, "acme", inbox.Inbox{Slug: "small"}, inbox.Inbox{Slug: "too"})
	w.organization(2, "globex", inbox.Inbox{Slug: "large"})
	_, err := w.store.UpdateWorkspace(t.Context(), w.box("small@acme.test").Organization, "main", inbox.Act{}, func(ws *inbox.Workspace) error {
		ws.MaxBytes, ws.Version = inbox.MinEmailBytes, 2
		return nil
	})
	w.must(err)
	return w
}

// letter is a mail of so many bytes.
func letter(t *testing.T, subject string, n int) string {
	t.Helper()
	text, err := json.Marshal(note{Subject: subject, ID: subject})
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + strings.Repeat(" ", n-len(text))
}

func (w *town) statuses(id string) (all []string) {
	w.t.Helper()
	for _, m := range w.arrived(id) {
		all = append(all, strings.TrimSpace(string(m.Status)+" "+m.Reason))
	}
	return all
}

// Who announced no size is told no when nobody takes the mail. Else those who do get it, and the others' is kept, in quarantine.
func TestSizeAfterData(t *testing.T) {
	const most = inbox.MinEmailBytes
	for name, c := range map[string]struct {
		size int
		to   string
		want string // empty: refused
	}{
		"at the limit":        {most, "small@acme.test too@acme.test", "processed, processed"},
		"over it":             {most + 1, "small@acme.test", ""},
		"over it for all":     {most + 1, "small@acme.test too@acme.test", ""},
		"over it for some":    {most + 1, "small@acme.test large@globex.test too@acme.test", "quarantined too_large, processed, quarantined too_large"},
		"nobody says so":      {most + 1, "large@globex.test", "processed"},
		"the other way round": {most, "large@globex.test small@acme.test", "processed, processed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSized(t)
			in := inbox.Incoming{Body: strings.NewReader(letter(t, name, c.size))}
			for _, a := range strings.Fields(c.to) {
				in.Recipients = append(in.Recipients, w.box(a))
			}
			id, err := w.intake.Accept(t.Context(), in)
			if c.want == "" {
				if !apperr.Is(err, apperr.TooLarge) || len(w.kept.kept(t)) != 0 {
					t.Errorf("%v, %v", err, w.kept.kept(t))
				}
				return
			}
			w.must(err)
			if got := strings.Join(w.statuses(id), ", "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// SES has said yes: the mail is kept and marked, and a person may release it.
func TestSizeOfStoredMail(t *testing.T) {
	w := newSized(t)
	raw := letter(t, "ses", inbox.MinEmailBytes+1)
	w.must(w.kept.Put(t.Context(), "ses/one", strings.NewReader(raw), int64(len(raw))))
	to := []inbox.Recipient{w.box("small@acme.test"), w.box("large@globex.test"), w.box("too@acme.test")}
	to[2].Door = inbox.HeldBlocked
	ids, err := w.intake.AcceptStored(t.Context(), inbox.Stored{Source: "ses/one", Key: "ses/one", ReceivedAt: w.now(), Recipients: to})
	w.must(err)
	got := map[string]string{}
	for _, m := range w.arrived(ids[0]) {
		got[m.Envelope.To] = m.Reason
	}
	if len(got) != 3 || got["small@acme.test"] != inbox.HeldTooLarge || got["large@globex.test"] != "" || got["too@acme.test"] != inbox.HeldBlocked {
		t.Errorf("%v", got)
	}
}

func TestSizeOfImports(t *testing.T) {
	w := newSized(t)
	for _, c := range []struct {
		to string
		n  int
		ok bool
	}{{"small@acme.test", inbox.MinEmailBytes, true}, {"small@acme.test", inbox.MinEmailBytes + 1, false}, {"large@globex.test", inbox.MinEmailBytes + 1, true}} {
		raw := []byte("Subject: x\n\n" + letter(t, "x", c.n-12))
		_, err := w.intake.Import(t.Context(), inbox.ImportedMail{To: w.box(c.to), Raw: raw, Source: "file", ReceivedAt: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)})
		if (err == nil) != c.ok || err != nil && !apperr.Is(err, apperr.TooLarge) {
			t.Errorf("%d bytes to %s: %v", c.n, c.to, err)
		}
	}
}
