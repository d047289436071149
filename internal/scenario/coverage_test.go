package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/internal/house"
	"github.com/buzon-mail/buzon/shared/op"
)

// kindOf is the kind of failure behind each status that the OpenAPI document declares.
//
//nolint:gochecknoglobals // constant table
var kindOf = map[string]string{
	"400": "invalid", "401": "unauthenticated", "403": "forbidden", "404": "not_found", "409": "conflict", "412": "stale", "413": "too_large",
	"415": "unsupported_media", "429": "rate_limited", "500": "internal", "503": "unavailable",
}

// excuse is an outcome that no conversation can bring about, and the test that holds it instead.
type excuse struct {
	outcome    string
	operations []string // nil: every one, and codes
	reason     string
	tests      []string // package.Test, all of which must be there
}

func (x excuse) covers(o *op.Operation, outcome string) bool {
	return x.outcome == outcome && (x.operations == nil || slices.Contains(x.operations, o.Name))
}

// excuses is everything that the conversations leave to other tests.
func excuses() []excuse {
	const full, race = "as many of them as fit would make this suite slow", "it takes two calls that meet, or one that ends early"
	return []excuse{
		{outcome: "conflict/too_many_keys", reason: full, tests: []string{"shared/inboxops.TestTooManyKeys"}},
		{outcome: "conflict/too_many_workspaces", reason: full, tests: []string{"shared/inboxops.TestTooManyWorkspaces"}},
		{outcome: "conflict/too_many_deleted", reason: full, tests: []string{"shared/inbox.TestTooManyDeleted"}},
		{outcome: "conflict/too_many_webhooks", reason: full, tests: []string{"shared/inboxops.TestTooManyWebhooks"}},
		{outcome: "conflict/too_many_uploads", reason: full, tests: []string{"shared/inboxops.TestUploadsAndImports"}},
		{outcome: "conflict/rules_full", reason: full, tests: []string{"shared/inbox.TestRuleBounds"}},
		{outcome: "conflict/zone_full", reason: full, tests: []string{"shared/inbox.TestSenderZoneIsBounded"}},
		{outcome: "rate_limited/too_many_waits", reason: race, tests: []string{"shared/inbox.TestWaitPlaces"}},
		{outcome: "conflict/idempotency_in_flight", reason: race, tests: []string{"shared/rest.TestCallsAtOnceWithOneKey"}},
		{outcome: "unavailable/interrupted", reason: race, tests: []string{"shared/optool.TestCancelledContextIsPassedOn"}},
		{
			outcome: "conflict/confirmation_outdated", reason: "it never leaves: whoever asked asks again",
			tests: []string{"shared/inbox.TestConfirmationOfAnotherState", "shared/inboxops.TestEveryConfirmedActWritesItsNonce", "shared/optool.TestTargetChangedMeanwhile"},
		},
		{outcome: "invalid/invalid_domain", reason: "the command line alone takes domains", tests: []string{"shared/app/local.TestVerbsRefuse"}},
	}
}

// expected is what must have been seen of an operation on a surface.
func (l *ledger) expected(o *op.Operation, surface string) []string {
	var want []string
	for status := range l.declared[o.Name] {
		switch kind := kindOf[status]; {
		case kind == "" && surface == overREST:
			want = append(want, status)
		case kind == "unsupported_media" && surface == asTool: // a tool has arguments, no body and no type of it
		case kind == "forbidden" && surface == asTool && o.Scope == "": // then it is hidden
		case kind != "":
			want = append(want, kind)
		}
	}
	want = append(want, success, tenant)
	if o.Role > op.Viewer || o.AnyTenant {
		want = append(want, role)
	}
	if !o.Confines {
		want = append(want, confined)
	}
	if o.Scope != "" {
		want = append(want, scope)
	}
	if o.Asks && surface == asTool {
		want = append(want, asked, confirmed, declined, cantAsk, cantOld)
	}
	slices.Sort(want)
	return want
}

// compare is what is missing, one line for each operation, surface and engine.
func (l *ledger) compare(x []excuse) []string {
	missing := append(sorted(l.wrong), l.codes(x)...)
	for i := range l.catalogue {
		o := &l.catalogue[i]
		for _, surface := range []string{overREST, asTool} {
			for _, engine := range []string{embedded, standIns} {
				if lacks := l.lacks(o, place{o.Name, surface, engine}, x); len(lacks) > 0 {
					missing = append(missing, fmt.Sprintf("%s, %s, %s: never seen: %s", o.Name, surface, engine, strings.Join(lacks, ", ")))
				}
			}
		}
	}
	return missing
}

// codes are those that buzon://inbox/errors explains and nobody was answered, on either engine.
func (l *ledger) codes(x []excuse) (missing []string) {
	for _, engine := range []string{embedded, standIns} {
		for _, code := range l.explained {
			seen := false
			for p, outcomes := range l.seen {
				seen = seen || p.engine == engine && outcomes[code]
			}
			excused := slices.ContainsFunc(x, func(e excuse) bool { return e.outcome == code })
			if seen && excused {
				missing = append(missing, fmt.Sprintf("%s: %s was answered: it needs no excuse", engine, code))
			}
			if !seen && !excused {
				missing = append(missing, fmt.Sprintf("%s: no operation ever answered %s", engine, code))
			}
		}
	}
	return missing
}

func (l *ledger) lacks(o *op.Operation, p place, x []excuse) []string {
	var lacks []string
	for _, outcome := range l.expected(o, p.surface) {
		if !l.has(p, outcome) && !slices.ContainsFunc(x, func(e excuse) bool { return e.covers(o, outcome) }) {
			lacks = append(lacks, outcome)
		}
	}
	return lacks
}

// needs fails unless the whole suite ran: of a part of it nothing can be said.
func (l *ledger) needs(t *testing.T, files []string, doors []door) {
	t.Helper()
	parts := []string{owedBy(embedded), owedBy(standIns)}
	for _, d := range doors {
		for _, file := range files {
			parts = append(parts, d.plays(file))
		}
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return l.played[part] })
	if len(parts) > 0 {
		t.Fatalf("%d parts did not run to their end, %s the first of them: run the whole of TestScenarios", len(parts), parts[0])
	}
}

// owedBy is the part that plays what every operation owes on an engine.
func owedBy(engine string) string { return "owed/" + engine }

// plays is the part that plays a scenario through the door.
func (d door) plays(file string) string {
	return d.name + "/" + strings.TrimSuffix(filepath.Base(file), ".txtar")
}

// checkExcuses: an excuse names operations and tests that exist, and is needed.
func (l *ledger) checkExcuses(t *testing.T, x []excuse) {
	t.Helper()
	tests := testsOf(t)
	for _, e := range x {
		if e.reason == "" || len(e.tests) == 0 {
			t.Errorf("the excuse for %s gives no reason or names no test", e.outcome)
		}
		for _, name := range e.tests {
			if !tests[name] {
				t.Errorf("the excuse for %s names the test %s, and there is none", e.outcome, name)
			}
		}
		for _, name := range e.operations {
			if l.declared[name] == nil {
				t.Errorf("the excuse for %s names the operation %s, and there is none", e.outcome, name)
			}
		}
	}
}

// testsOf are the tests of the module, as directory.Test.
func testsOf(t *testing.T) map[string]bool {
	t.Helper()
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	root, err := house.Root(wd)
	if err != nil {
		t.Fatal(err)
	}
	files, err := house.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	for _, f := range files {
		if !f.Test {
			continue
		}
		for line := range strings.SplitSeq(string(f.Source), "\n") {
			if name, ok := strings.CutPrefix(line, "func Test"); ok {
				name, _, _ = strings.Cut(name, "(")
				tests[f.Package()+".Test"+name] = true
			}
		}
	}
	return tests
}
