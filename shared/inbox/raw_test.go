package inbox_test

import (
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

func TestRawURL(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	e := w.deliver(in, nil)
	foreign := w.deliver(w.inbox(globex(), "theirs"), nil)
	a := acme()
	a.Operation = "emails_raw_url"
	w.advance(time.Second) // lines of the audit are in the order of their times
	d, err := w.services.Emails.RawURL(t.Context(), a, e.ID, time.Minute)
	w.must(err)
	if d.URL != "https://files.test/raw/"+e.ID || !d.ExpiresAt.Equal(w.now().Add(time.Minute)) || d.SHA256 != e.RawSHA256 || d.Size != 10 {
		t.Errorf("%+v", d)
	}
	page, err := w.engine.Query(t.Context(), store.Query{Table: store.Core, Partition: "audit/" + wsAcme, Descending: true, Limit: 1})
	w.must(err)
	line, err := store.Decode[inbox.AuditEvent](page.Items[0], 1)
	if err != nil || line.Action != "emails_raw_url" || line.Targets[0] != e.ID {
		t.Errorf("the audit says %+v, %v", line, err)
	}
	_, err = w.services.Emails.Delete(t.Context(), acme(), e.ID)
	w.must(err)
	for _, id := range []string{e.ID, foreign.ID, "email_00000000000000000000000001", "x"} {
		_, err := w.services.Emails.RawURL(t.Context(), acme(), id, 0)
		sameAnswer(t, id, err, inbox.NoEmail())
	}
	blind := acme()
	blind.ReadCodes = false
	for _, id := range []string{foreign.ID, "x"} { // whether it exists is not told either
		_, err = w.services.Emails.RawURL(t.Context(), blind, id, 0)
		wantKind(t, err, apperr.Forbidden, "codes_hidden")
	}
	for _, ttl := range []time.Duration{-1, time.Millisecond, 301 * time.Second} {
		_, err = w.services.Emails.RawURL(t.Context(), acme(), e.ID, ttl)
		wantKind(t, err, apperr.Invalid, "")
	}
}

// A file is no way around the mask.
func TestDownloadsAndCodes(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	for name, c := range map[string]struct {
		fill  func(*inbox.Attachment)
		codes bool
		open  bool // without codes:read
	}{
		"a PDF":                            {func(*inbox.Attachment) {}, true, true},
		"text of a mail without codes":     {func(a *inbox.Attachment) { a.ContentType = "text/plain" }, false, true},
		"text":                             {func(a *inbox.Attachment) { a.ContentType = "Text/Plain; charset=utf-8" }, true, false},
		"text by its bytes":                {func(a *inbox.Attachment) { a.DetectedType = "text/html" }, true, false},
		"JSON":                             {func(a *inbox.Attachment) { a.ContentType = "application/json" }, true, false},
		"XHTML":                            {func(a *inbox.Attachment) { a.ContentType = "application/xhtml+xml" }, true, false},
		"a calendar":                       {func(a *inbox.Attachment) { a.Kind = "calendar" }, true, false},
		"a mail":                           {func(a *inbox.Attachment) { a.Kind = "message" }, false, false},
		"a mail by its type":               {func(a *inbox.Attachment) { a.ContentType = "message/rfc822" }, false, false},
		"a mail of Outlook's, by its type": {func(a *inbox.Attachment) { a.ContentType = "application/ms-tnef" }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			var id string
			w.deliver(in, func(p *inbox.Processed) {
				at := attachment(p.Email, "x", 1)
				c.fill(&at)
				id, p.Attachments = at.ID, []inbox.Attachment{at}
				if c.codes {
					p.Email.Codes = []inbox.Code{{Value: "482913"}}
				}
			})
			blind := acme()
			blind.ReadCodes = false
			_, err := w.services.Attachments.DownloadURL(t.Context(), blind, id, 0)
			if c.open {
				w.must(err)
			} else {
				wantKind(t, err, apperr.Forbidden, "codes_hidden")
			}
			_, err = w.services.Attachments.DownloadURL(t.Context(), acme(), id, 0)
			w.must(err)
		})
	}
}

func TestUsage(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	w.deliver(in, nil)
	w.deliver(in, func(p *inbox.Processed) { p.Email.Status = inbox.StatusQuarantined })
	w.received(in)
	w.deliver(w.inbox(globex(), "theirs"), nil)
	get := func(a inbox.Actor, month string) inbox.Usage {
		t.Helper()
		u, err := w.services.Usage.Get(t.Context(), a, month)
		w.must(err)
		return u
	}
	if u := get(acme(), ""); u.Month != "2026-07" || u.Counts != (inbox.UsageCounts{Processed: 1, Quarantined: 1}) || u.Counts.Received() != 2 || u.Waits != 3 || u.Rate != nil {
		t.Errorf("%+v", u)
	}
	if u := get(acme(), "2026-06"); u.Counts != (inbox.UsageCounts{}) {
		t.Errorf("the month before: %+v", u)
	}
	w.advance(4 * 24 * time.Hour)
	w.deliver(in, func(p *inbox.Processed) { p.Email.Status = inbox.StatusFailed })
	if u := get(acme(), "2026-08"); u.Counts != (inbox.UsageCounts{Failed: 1}) {
		t.Errorf("the month after: %+v", u)
	}
	for _, month := range []string{"2026-09", "1999-12", "2026-7", "2026-13", "July", "2026-07-01"} {
		_, err := w.services.Usage.Get(t.Context(), acme(), month)
		wantKind(t, err, apperr.Invalid, "")
	}
}
