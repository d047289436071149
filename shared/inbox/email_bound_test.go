package inbox_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// crowded is a mail whose sender wrote many long links and addresses.
func crowded(p *inbox.Processed) {
	for i := range 60 {
		p.Email.Links = append(p.Email.Links, inbox.Link{URL: fmt.Sprintf("https://remote.test/%03d/%s", i, strings.Repeat("x", 1000))})
		p.Email.Content.CC = append(p.Email.Content.CC, inbox.Address{Name: strings.Repeat("n", 190), Address: strings.Repeat("a", 200) + "@remote.test"})
	}
}

// part finds what a view says of a text or list.
func part(v inbox.EmailView, name string) (inbox.TextView, bool) {
	i := slices.IndexFunc(v.Texts, func(t inbox.TextView) bool { return t.Name == name })
	if i < 0 {
		return inbox.TextView{}, false
	}
	return v.Texts[i], true
}

// TestListsOfAMailAreBounded: whatever a sender wrote, no call returns more of a list than it was asked for, and reading on finds the rest.
func TestListsOfAMailAreBounded(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "a")
	small, large := w.deliver(in, nil), w.deliver(in, crowded)
	get := func(a inbox.Actor, id string, r inbox.EmailRead) inbox.EmailView {
		v, err := w.services.Emails.Get(t.Context(), a, id, r)
		w.must(err)
		return v
	}
	if v := get(acme(), small.ID, inbox.EmailRead{Include: []string{inbox.TextPlain}}); len(v.Texts) != 1 {
		t.Errorf("a mail of which everything is there: %+v", v.Texts)
	}
	for _, most := range []int{0, 1, 5000, inbox.MaxChars} {
		var urls []string
		bound := most
		if bound == 0 {
			bound = inbox.DefaultChars
		}
		for from, calls := 0, 0; calls == 0 || from > 0; calls++ {
			v := get(acme(), large.ID, inbox.EmailRead{MaxChars: most, FromChar: from})
			size := 0
			for _, l := range v.Links {
				urls, size = append(urls, l.URL), size+len(l.URL)
			}
			links, named := part(v, inbox.ViewLinks)
			whole := calls == 0 && len(v.Links) == len(large.Links)
			if size > bound && len(v.Links) > 1 || len(v.Links) == 0 || named == whole || calls > len(large.Links) || links.Truncated != (links.Next > 0) {
				t.Fatalf("%d of %d from %d: %d links of %d bytes, %+v", calls, most, from, len(v.Links), size, links)
			}
			from = links.Next
		}
		if len(urls) != len(large.Links) || !slices.IsSorted(urls) {
			t.Errorf("%d characters at once: %d links in all, want %d", most, len(urls), len(large.Links))
		}
	}
	v := get(acme(), large.ID, inbox.EmailRead{})
	if a, _ := part(v, inbox.ViewAddresses); !a.Truncated || a.Next != 0 || len(v.Content.CC) >= 60 || len(v.Content.From) != 1 || a.Returned > inbox.DefaultChars {
		t.Errorf("%d addresses, %+v", len(v.Content.CC), a)
	}
	if v := get(acme(), large.ID, inbox.EmailRead{FromChar: 100}); len(v.Links) == 0 || v.Links[0].URL != large.Links[0].URL {
		t.Error("from the middle of a link on, that link is left out")
	}
	headed := w.deliver(in, func(p *inbox.Processed) {
		p.Body.Headers = []inbox.Header{{Name: "A", Value: "1234"}, {Name: "B", Value: "5678"}}
	})
	for from, want := range map[int]int{0: 2, 4: 2, 5: 1, 9: 1, 10: 0} {
		if v := get(acme(), headed.ID, inbox.EmailRead{Include: []string{inbox.TextHeaders}, FromChar: from}); len(v.Headers) != want {
			t.Errorf("from character %d on: %d headers, want %d", from, len(v.Headers), want)
		}
	}
	changed, err := w.services.Emails.Update(t.Context(), acme(), large.ID, inbox.EmailPatch{Handled: inbox.Set(true)})
	w.must(err)
	if _, cut := part(changed, inbox.ViewLinks); !cut || len(changed.Links) > 20 {
		t.Errorf("a change answers with %d links", len(changed.Links))
	}
	if stored, _, err := w.store.Email(t.Context(), wsAcme, large.ID, false); err != nil || len(stored.Links) != len(large.Links) || len(stored.Content.CC) < 50 {
		t.Errorf("the mail itself was cut: %d links, %v", len(stored.Links), err)
	}
	blind := acme()
	blind.ReadCodes = false
	if v := get(blind, large.ID, inbox.EmailRead{}); len(v.Links) != len(large.Links) || v.Links[0].URL != inbox.Masked {
		t.Errorf("masked links are short: %d of them", len(v.Links))
	}
}

// TestArrivalIsBounded: the mail that ends a wait was written by whoever sent it.
func TestArrivalIsBounded(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "a")
	w.arrives(in, true, crowded)
	got, err := w.services.Waits.Wait(t.Context(), acme(), inbox.WaitRequest{Query: inbox.WaitQuery{Inbox: "a", Want: inbox.WantLink}})
	w.must(err)
	if !got.Cut || len(got.Links) == 0 || len(got.Links) > 20 {
		t.Errorf("%d links, cut %t", len(got.Links), got.Cut)
	}
}

// TestLongRowsMakeShortPages: where one row can be long, a page ends early and its cursor goes on; no row is lost or shown twice.
func TestLongRowsMakeShortPages(t *testing.T) {
	w := newWorld(t)
	mail := w.deliver(w.inbox(acme(), "a"), nil)
	const rows = 9
	for i := range rows {
		slug := fmt.Sprintf("t%d", i)
		_, _, err := w.services.Templates.Upsert(t.Context(), acme(), inbox.TemplatePatch{
			Slug: slug, Locators: []inbox.Locator{{Field: "x", Kind: inbox.LocateRegex, Value: ".+"}},
			Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}},"description":"` + strings.Repeat("d", 15_000) + `"}`),
		})
		w.must(err)
		w.must(w.store.PutExtraction(t.Context(), inbox.Extraction{
			ID: inbox.ExtractionID(wsAcme, mail.ID, slug), Workspace: wsAcme, Inbox: mail.Inbox, Email: mail.ID,
			ReceivedAt: mail.ReceivedAt, Template: slug, Status: inbox.ExtractionOK, ExtractedAt: w.now(),
			Data: json.RawMessage(`{"x":"` + strings.Repeat("v", 15_000) + `"}`),
		}))
	}
	for name, list := range map[string]func(inbox.PageRequest) (ids []string, next string, err error){
		"extraction_templates_list": func(p inbox.PageRequest) (ids []string, next string, err error) {
			page, err := w.services.Templates.List(t.Context(), acme(), inbox.TemplateQuery{}, p)
			for _, row := range page.Rows {
				ids = append(ids, row.ID)
			}
			return ids, page.Next, err
		},
		"extractions_list": func(p inbox.PageRequest) (ids []string, next string, err error) {
			page, err := w.services.Extractions.List(t.Context(), acme(), inbox.ExtractionQuery{}, p)
			for _, row := range page.Rows {
				ids = append(ids, row.ID)
			}
			return ids, page.Next, err
		},
		"extractions_list, filtered": func(p inbox.PageRequest) (ids []string, next string, err error) {
			page, err := w.services.Extractions.List(t.Context(), acme(), inbox.ExtractionQuery{Email: mail.ID, Status: inbox.ExtractionOK}, p)
			for _, row := range page.Rows {
				ids = append(ids, row.ID)
			}
			return ids, page.Next, err
		},
	} {
		seen, pages := map[string]bool{}, 0
		for p := (inbox.PageRequest{Limit: 50}); pages == 0 || p.Cursor != ""; pages++ {
			ids, next, err := list(p)
			w.must(err)
			if len(ids) == 0 || len(ids) > 3 {
				t.Fatalf("%s: a page of %d rows of 15 KB", name, len(ids))
			}
			for _, id := range ids {
				if seen[id] {
					t.Errorf("%s: %s twice", name, id)
				}
				seen[id] = true
			}
			p.Cursor = next
		}
		if len(seen) != rows || pages != 3 {
			t.Errorf("%s: %d rows on %d pages", name, len(seen), pages)
		}
	}
	v, err := w.services.Emails.Get(t.Context(), acme(), mail.ID, inbox.EmailRead{Include: []string{inbox.ViewExtractions}})
	w.must(err)
	if found, cut := part(v, inbox.ViewExtractions); !cut || !found.Truncated || found.Next != 0 || len(v.Extractions) != 1 {
		t.Errorf("%d extractions, %+v", len(v.Extractions), found)
	}
}

// TestStaleNamesTheRead: who lost a race is told what reads the present state.
func TestStaleNamesTheRead(t *testing.T) {
	w := newWorld(t)
	mail := w.deliver(w.inbox(acme(), "a"), nil)
	_, err := w.services.Emails.Update(t.Context(), acme(), mail.ID, inbox.EmailPatch{Handled: inbox.Set(true), IfVersion: 99})
	if e := apperr.From(err); e.Kind != apperr.Stale || len(e.Fixes) != 1 || !strings.Contains(e.Fixes[0], "emails_get") {
		t.Errorf("%v %q", err, e.Fixes)
	}
}
