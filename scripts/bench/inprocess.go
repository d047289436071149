package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// entry is one case of the table of calls.
type entry struct {
	title   string
	run     func()
	reply   int // bytes
	floor   int // index of its floor; its own: it is one
	budgets [3]budget
}

// suite collects cases, each kind of request with its floor.
type suite struct {
	entries []entry
	errs    []error
}

// add takes a case that is compared with the floor of the same request, made here when it is the first.
func (s *suite) add(title string, h http.Handler, q request, floorAt int, budgets ...budget) (at int, reply []byte) {
	p, err := newPoster(h, q)
	if err != nil {
		s.errs = append(s.errs, fmt.Errorf("%s: %w", title, err))
		return 0, nil
	}
	reply = p.answer()
	if floorAt < 0 {
		floorAt = len(s.entries)
		s.entries = append(s.entries, entry{
			title: "floor of " + q.method + " " + q.name + " in " + q.version, run: floor(q.body(), reply), reply: len(reply), floor: floorAt,
		})
	}
	e := entry{title: title, run: p.send, reply: len(reply), floor: floorAt}
	copy(e.budgets[:], budgets)
	s.entries = append(s.entries, e)
	return floorAt, reply
}

// walk takes a page of other mails with every call, so many in all that none is kept until it comes again.
func (s *suite) walk(title string, w *world, floorAt int) {
	var posters []*poster
	for at := w.mails - 20; at >= 20; at -= 20 {
		q := w.calls()["emails_list"]
		q.arguments = q.arguments[:len(q.arguments)-1] + `,"received_before":"` + w.start.Add(time.Duration(at)*time.Second).UTC().Format(time.RFC3339) + `"}`
		p, err := newPoster(w.api, q)
		if err != nil {
			s.errs = append(s.errs, fmt.Errorf("%s: %w", title, err))
			return
		}
		posters = append(posters, p)
	}
	next := 0
	s.entries = append(s.entries, entry{title: title, reply: len(posters[0].answer()), floor: floorAt, run: func() {
		posters[next].send()
		next = (next + 1) % len(posters)
	}})
}

// product adds the product's own calls, and the peers' behind them.
func (s *suite) product(w *world, peers bool) error {
	trivial := []budget{{what: "x", limit: 2}, {what: "KB", limit: 6}, {what: "allocs", limit: 45}}
	calls := w.calls()
	echo, err := w.echo()
	if err != nil {
		return err
	}
	s.add("echo on op+rest+optool+mcp", echo, calls["echo"], -1, trivial...)
	var session, list []byte
	var at2026, at2025, list2026, list2025 int
	at2026, session = s.add("session_get", w.api, calls["session_get"], -1, trivial...)
	s.add("workspaces_list, one read", w.api, calls["workspaces_list"], -1, trivial[1:]...) // not trivial: it asks the store
	atList, _ := s.add("emails_list, 20 mails, 4 filters", w.api, calls["emails_list"], -1, budget{what: "x", limit: 6})
	s.walk("the same, other mails each time", w, atList)
	s.add("emails_get, mail of 2.5 KB", w.api, calls["emails_get"], -1)
	at2025, _ = s.add("session_get, 2025 era", w.api, calls["session_get 2025"], -1)
	s.add("workspaces_list, 2025 era", w.api, calls["workspaces_list 2025"], -1)
	list2026, list = s.add("tools/list, whole catalogue", w.api, calls["tools/list"], -1, budget{what: "x", limit: 1})
	list2025, _ = s.add("tools/list, 2025 era", w.api, calls["tools/list 2025"], -1) // budgets are for the stateless era
	if len(s.errs) > 0 {
		return s.errs[0]
	}
	if !peers {
		return nil
	}
	return s.peers(calls, session, list, at2026, at2025, list2026, list2025)
}

// peers adds the two Go SDKs with the same tools and the same reply text as ours.
func (s *suite) peers(calls map[string]request, session, list []byte, at2026, at2025, list2026, list2025 int) error {
	var result struct {
		Result struct {
			Content []struct{ Text string }
			Tools   []tool
		}
	}
	if err := json.Unmarshal(list, &result); err != nil {
		return err
	}
	tools := result.Result.Tools
	if err := json.Unmarshal(session, &result); err != nil || len(result.Result.Content) != 1 {
		return fmt.Errorf("session_get has no text: %w", err)
	}
	text := result.Result.Content[0].Text
	for _, peer := range []struct {
		name  string
		make  func([]tool, string, bool) (http.Handler, error)
		typed bool
	}{
		{"go-sdk 1.8.0, raw tools", officialSDK, false}, {"go-sdk 1.8.0, typed tools", officialSDK, true},
		{"mcp-go 1.2.1, raw tools", markThree, false}, {"mcp-go 1.2.1, typed tools", markThree, true},
	} {
		h, err := peer.make(tools, text, peer.typed)
		if err != nil {
			return fmt.Errorf("%s: %w", peer.name, err)
		}
		s.add(peer.name+": call", h, calls["session_get"], at2026)
		s.add(peer.name+": call, 2025 era", h, calls["session_get 2025"], at2025)
		s.add(peer.name+": list", h, calls["tools/list"], list2026)
		s.add(peer.name+": list, 2025 era", h, calls["tools/list 2025"], list2025)
	}
	if len(s.errs) > 0 {
		return s.errs[0]
	}
	return nil
}

// inProcess prints the table of calls.
func inProcess(out io.Writer, w *world, o options) error {
	var s suite
	if err := s.product(w, !o.alone); err != nil {
		return err
	}
	runs := make([]func(), len(s.entries))
	for i, e := range s.entries {
		runs[i] = e.run
	}
	results := measure(o.rounds, runs)
	lines := make([]line, 0, len(results))
	for i, r := range results {
		e := s.entries[i]
		x := r.over(results[e.floor])
		l := line{cells: []string{e.title, number(r.us), number(x), number(r.bytes), number(r.allocs), fmt.Sprint(e.reply)}}
		for j, figure := range []float64{x, r.bytes / 1024, r.allocs} {
			l.judge(figure, e.budgets[j])
		}
		lines = append(lines, l)
	}
	table(out, fmt.Sprintf("Calls in process, one core, %d mails in the inbox; x = of the floor above it (encoding/json decodes the request, the same reply is written, nothing is checked)", w.mails),
		[]string{"case", "us", "x", "B", "allocs", "reply B"}, lines)
	return reads(out, w)
}

// reads prints how often a warm call reads the store.
func reads(out io.Writer, w *world) error {
	calls := w.calls()
	var lines []line
	for _, name := range []string{"session_get", "workspaces_list", "emails_list", "emails_get", "tools/list"} {
		n, err := w.roundTrips(calls[name])
		if err != nil {
			return err
		}
		l := line{cells: []string{name, fmt.Sprint(n)}}
		l.judge(float64(n), budget{what: "reads", limit: 2})
		lines = append(lines, l)
	}
	table(out, "Store round trips of a warm call", []string{"case", "reads"}, lines)
	return cost(out, w)
}
