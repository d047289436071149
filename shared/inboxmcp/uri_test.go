package inboxmcp

import (
	"strings"
	"testing"
)

// FuzzURI: what is found is filled in to the same bytes again, so a resource has one spelling; no value holds anything
// that could lead out of its place.
func FuzzURI(f *testing.F) {
	for _, uri := range []string{
		"buzon://inbox/guide", "buzon://inbox/emails", "buzon://inbox/emails/email_01KDT0000000000000000MA101",
		"buzon://inbox/emails/email_01KDT0000000000000000MA101/text", "buzon://inbox/inboxes/facturas", "buzon://inbox/attachments/a-b_C9",
		"buzon://inbox/inboxes/facturas/emails", "buzon://inbox/threads/thread_01KDT0000000000000000MA101/emails", "buzon://inbox/emails?inbox=a",
		"buzon://inbox/emails/%2e%2e/guide", "buzon://inbox//guide", "buzon://inbox/{id}", "buzon://inbox/emails/{id}", "buzon://inbox/inboxes/é",
	} {
		f.Add(uri)
	}
	o := &Offers{}
	for _, fam := range families(documents{}) {
		fam.parse()
		o.templates = append(o.templates, fam)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		fam, v, ok := o.find(uri)
		if !ok {
			return
		}
		if again := fam.fill(v); again != uri {
			t.Fatalf("%q is filled in to %q", uri, again)
		}
		for name, value := range v {
			if value == "" || strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
				t.Fatalf("%q: %s is %q", uri, name, value)
			}
		}
	})
}

// Each template means itself only: no URI is one of two families.
func TestFamiliesDoNotOverlap(t *testing.T) {
	all := families(documents{})
	for i := range all {
		all[i].parse()
	}
	for i := range all {
		v := values{}
		for _, name := range all[i].variables() {
			v[name] = "text"
		}
		rest := strings.TrimPrefix(all[i].fill(v), root)
		if len(v) > 1 && all[i].argument != "" || len(v) == 0 && all[i].argument != "" {
			t.Errorf("%s has %d variables for one argument", all[i].uri, len(v))
		}
		for j := range all {
			if got, ok := all[j].match(strings.Split(rest, "/")); ok != (i == j) || ok && len(got) != len(v) {
				t.Errorf("%s by %s: %v %v", rest, all[j].uri, got, ok)
			}
		}
	}
}
