// Package mcpcheck looks at an MCP server over HTTP from outside, as a careful client would, and says what a strict client
// will stumble on: the authorization documents, the challenge, the order of checks at the door, headers against body, both
// eras. It follows MCP 2026-07-28 (and 2025-11-25 for the initialize era), RFC 9728 and RFC 8414. It must not know this
// project's own server, nor share code with it: what both misread it could not see.
//
// It is safe to point at a server in use: a bounded number of bounded requests, one after the other; no tool is called but
// the one that was named, and that only when the server marks it as read-only; no redirect is followed; the token goes to the
// endpoint's own origin alone and is never shown.
package mcpcheck

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The reasons for which nothing could be checked.
var (
	ErrTarget      = errors.New("mcpcheck: not an address that can be checked")
	ErrToken       = errors.New("mcpcheck: not a bearer token")
	ErrUnreachable = errors.New("mcpcheck: the server does not answer")
)

// Options says what to check, and how.
type Options struct {
	URL      string        // of the endpoint, as a client would be given it
	Token    string        // an access token; empty: only what a stranger sees
	Call     string        // the tool to call, if the server marks it read-only; empty: none
	Insecure bool          // allow plain http for hosts that are not loopback
	Timeout  time.Duration // of one request; 0: 10 seconds
	Version  string        // of this program, for clientInfo
}

// Check runs every check. The error is ErrTarget, ErrToken or ErrUnreachable, or the context's; a server that fails is not an error.
func Check(ctx context.Context, o Options) (*Report, error) {
	target, err := parseTarget(o.URL, o.Insecure)
	if err != nil {
		return nil, err
	}
	if !isHeaderSafe(o.Token) {
		return nil, fmt.Errorf("%w: it holds characters that no header may carry", ErrToken)
	}
	r := &run{options: o, asker: newAsker(target, o)}
	defer r.close()
	if err := r.arrive(ctx); err != nil {
		return nil, err
	}
	r.authorization(ctx)
	r.stateless(ctx)
	r.tasks(ctx)
	r.handshake(ctx)
	r.shapes(ctx)
	r.call(ctx)
	r.observed()
	r.leave(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return r.report(), nil
}

// parseTarget: credentials in an address would end up in reports, and a token over plain http is everybody's.
func parseTarget(text string, insecure bool) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: it does not parse", ErrTarget) // the parser's own words repeat the address
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("%w: give the whole address, as https://example.com/mcp", ErrTarget)
	case u.User != nil:
		return nil, fmt.Errorf("%w: it carries a user name; give a token apart", ErrTarget)
	case u.Fragment != "":
		return nil, fmt.Errorf("%w: it has a fragment", ErrTarget)
	case u.Scheme == "http" && !insecure && !isLoopback(u.Hostname()):
		return nil, fmt.Errorf("%w: plain http is for loopback hosts, unless you allow it", ErrTarget)
	}
	return u, nil
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// isHeaderSafe is wider than b64token of RFC 6750 section 2.1: the server judges the token, we only keep it on its line. Empty is
// none.
func isHeaderSafe(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// run is one check of one server: what was found out so far, and the results.
type run struct {
	*asker
	options Options
	results []Result

	protected bool                    // the endpoint asks for a token
	modern    bool                    // it speaks 2026-07-28
	legacy    bool                    // it answers initialize
	versions  []string                // what it says that it serves
	server    string                  // its name and version
	session   string                  // a session of the handshake era, where the server makes them
	stranger  answer                  // what a request without a token was answered
	discover  *answer                 // the best answer to server/discover
	list      *answer                 // the best answer to tools/list
	posts     []answer                // every answer to a request of 2026-07-28
	sessions  []string                // to be ended
	offers    map[string]bool         // capabilities
	hasTasks  bool                    // the tasks extension is among them
	tools     []tool                  // of the first page
	cursor    string                  // of the next
	documents map[string]resourceInfo // by address
}

// send asks once and remembers.
func (r *run) send(ctx context.Context, q ask) answer {
	a := r.do(ctx, q)
	if q.modern {
		r.posts = append(r.posts, a)
	}
	if s := a.header.Get(sessionHeader); s != "" && q.opens {
		r.sessions = append(r.sessions, s)
	}
	return a
}

// try asks, judges and notes. Silence fails every check, a full limit none: it says nothing of the server's protocol.
func (r *run) try(ctx context.Context, id string, q ask, judge func(answer) (Status, string)) answer {
	a := r.send(ctx, q)
	r.judge(id, q.sent, a, judge)
	return a
}

func (r *run) judge(id, sent string, a answer, judge func(answer) (Status, string)) {
	switch {
	case errors.Is(a.err, errBudget):
		r.skip(id, "the limit of requests was reached")
	case a.err != nil:
		r.note(id, Fail, sent, a.words())
	case a.status == http.StatusTooManyRequests:
		r.skip(id, "429: rate limited; try again later")
	default:
		status, got := judge(a)
		if got == "" {
			got = a.words()
		}
		r.note(id, status, sent, got)
	}
}

func (r *run) note(id string, s Status, sent, got string) {
	r.results = append(r.results, Result{ID: id, Status: s, Sent: r.plain(sent), Got: r.plain(got)})
}

func (r *run) skip(id, why string) { r.note(id, Skipped, "", why) }

// closed says why what lies behind the door can't be seen; empty when it can.
func (r *run) closed() string {
	if r.protected && r.options.Token == "" {
		return "needs a token"
	}
	return ""
}

// unspoken is closed, for what only a server of 2026-07-28 has.
func (r *run) unspoken() string {
	if why := r.closed(); why != "" {
		return why
	}
	if !r.modern {
		return "the server does not speak 2026-07-28"
	}
	return ""
}

// report puts the results in the order of the catalogue, with what the catalogue says of each.
func (r *run) report() *Report {
	out := &Report{
		Format: format, URL: r.shown(), Token: r.options.Token != "", Revision: revision, Server: r.plain(r.server),
		Versions: []string{}, Requests: r.made, Results: make([]Result, 0, len(catalogue)),
	}
	for _, v := range r.versions {
		out.Versions = append(out.Versions, r.plain(v))
	}
	for i := range catalogue {
		k := &catalogue[i]
		at := slices.IndexFunc(r.results, func(n Result) bool { return n.ID == k.id })
		n := Result{ID: k.id, Status: Skipped, Got: "not reached"}
		if at >= 0 {
			n = r.results[at]
		}
		n.Title, n.Point, n.Spec, n.Page = k.title, k.point, k.says, k.page
		if n.Status == Fail || n.Status == Warn {
			n.Mend = k.mend
		}
		out.Results = append(out.Results, n)
		out.Summary.count(n.Status)
	}
	return out
}

// refuseInside keeps a server on the internet from choosing addresses of the machine or the cloud instance that we run on.
func refuseInside(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("split %q: %w", address, err)
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return fmt.Errorf("parse %q: %w", host, err)
	}
	if a := addr.Unmap(); a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() {
		return errInside
	}
	return nil
}
