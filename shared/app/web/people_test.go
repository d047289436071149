package web

import (
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/inboxops"
)

// TestScopesAreSpokenInBothLanguages: a scope without its Spanish words would be shown in English on a Spanish page.
func TestScopesAreSpokenInBothLanguages(t *testing.T) {
	v, err := inboxops.Vocabulary()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range v.All() {
		if scopesInSpanish[s.Name] == "" {
			t.Errorf("%s has no Spanish text", s.Name)
		}
	}
	if len(scopesInSpanish) != len(v.All()) {
		t.Errorf("%d texts for %d scopes", len(scopesInSpanish), len(v.All()))
	}
}

// TestWhatChangesAnythingCanBeTakenOut: reading is what an app is for; the rest is the person's choice.
func TestWhatChangesAnythingCanBeTakenOut(t *testing.T) {
	c, err := inboxops.Catalogue(nil)
	if err != nil {
		t.Fatal(err)
	}
	scopes := newMembers(nil, c).grantable(c.Vocabulary)
	if len(scopes) < 5 {
		t.Fatalf("%d scopes", len(scopes))
	}
	for _, s := range scopes {
		if want := !strings.HasSuffix(s.Name, ":read") || s.Name == "codes:read"; s.Write != want {
			t.Errorf("%s: removable %t", s.Name, s.Write)
		}
	}
}
