package tokens_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/internal/tokens"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/optool"
)

// modern is the tail that a segment has in the revisions since 2025-06-18; an owner with every scope gets all segments.
const modern = 2

// TestListFitsTheBudget: every conversation of an agent starts with the list, so a new operation, argument or description that pushes it
// over the budget must take something out elsewhere.
func TestListFitsTheBudget(t *testing.T) {
	segments, err := optool.ParseSegments(inboxops.Tools())
	if err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	costs := map[string]int{}
	for _, s := range segments {
		text := string(s.Head[1:]) + string(s.Tails[modern])
		costs[s.Name] = tokens.Estimate(text)
		list.WriteString("," + text)
	}
	if n := tokens.Estimate("[" + list.String()[1:] + "]"); n > tokens.ListBudget {
		slices.SortFunc(segments, func(a, b optool.Segment) int { return costs[b.Name] - costs[a.Name] })
		t.Errorf("tools/list costs about %d tokens, which is more than %d; the dearest tools:", n, tokens.ListBudget)
		for _, s := range segments[:10] {
			t.Errorf("%5d %s", costs[s.Name], s.Name)
		}
		t.Error(`Shorten what a tool says (struct tag tool), not what OpenAPI says (doc); make bench counts exactly.`)
	}
}

// TestEstimate compares with what the vocabulary says (cl100k_base, counted once): a text of a line is a tenth off at most.
func TestEstimate(t *testing.T) {
	for _, tt := range []struct {
		text string
		true int
	}{
		{"", 0},
		{`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"],"additionalProperties":false}`, 23},
		{`"outputSchema":{"type":"object","required":["data","meta"]},"annotations":{"readOnlyHint":false,"destructiveHint":true,` +
			`"idempotentHint":true,"openWorldHint":false}`, 41},
		{"Deletes an inbox: it takes no more mail and all its mail is hidden at once; for 30 days inboxes_restore undoes it. A person confirms.", 33},
		{`"status":{"enum":["received","processing","processed","failed","quarantined"],"type":"string"},` +
			`"received_after":{"format":"date-time","type":"string"}`, 34},
		{"emails_list reads a page, newest first. Counterintuitively, internationalization costs more.", 19},
		{"268435456 bytes, 2026-07-28", 12},
	} {
		if n := tokens.Estimate(tt.text); 10*n < 9*tt.true || 10*n > 11*tt.true {
			t.Errorf("%q: %d, want about %d", tt.text, n, tt.true)
		}
	}
}

// TestEstimateGrows: a longer text never costs less, so nothing can be hidden from the budget in a long word or a row of marks.
func TestEstimateGrows(t *testing.T) {
	for name, unit := range map[string]string{"letters": "a", "marks": "}", "digits": "7", "camel case": "aB", "words": "a ", "not ASCII": "\u00f3"} {
		last := 0
		for n := range 200 {
			got := tokens.Estimate(strings.Repeat(unit, n))
			if got < last {
				t.Errorf("%s: %d of them cost %d, one less %d", name, n, got, last)
			}
			last = got
		}
		if last < 200/wordLetters {
			t.Errorf("%s: 199 of them cost %d", name, last)
		}
	}
}

const wordLetters = 10
