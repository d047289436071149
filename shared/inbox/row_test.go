package inbox

import (
	"sync"
	"testing"
)

func TestRowIsShownToEachCallerAsItMay(t *testing.T) {
	row := &Row{Summary: Summary{ID: "email_1", Subject: "Your code is 482913", Secrets: Secrets{"482913"}}}
	reads, reader := Actor{ReadCodes: true}, Actor{}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if seen := row.shown(reads); seen != row || seen.Subject != "Your code is 482913" {
					t.Errorf("who may read codes sees %q", seen.Subject)
				}
				seen := row.shown(reader)
				if contains(seen.Subject, "482913") || len(seen.Secrets) > 0 || seen != row.shown(reader) {
					t.Errorf("who may not sees %q, %q", seen.Subject, seen.Secrets)
				}
			}
		})
	}
	all.Wait()
	for _, one := range []*Row{row, row.shown(reader)} {
		for i, want := range []bool{false, true, true} {
			if view, again := one.View(); view != nil || again != want {
				t.Errorf("time %d: %v, again %v", i, view, again)
			}
		}
		one.Keep(one.Subject)
	}
	if view, _ := row.View(); view != row.Subject {
		t.Errorf("the view of one is that of the other: %v", view)
	}
}
