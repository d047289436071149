package inboxops

import (
	"slices"
	"strings"
	"sync"

	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// gate is what opens one operation.
type gate struct {
	name, scope string
	bit         op.ScopeSet
	role        op.Role
	asks        bool
	confines    bool
}

// gatesOf reads them off the catalogue once: a declaration is some hundred bytes, and each new sort of caller is held against all.
func gatesOf(c *op.Catalogue) []gate {
	gates := make([]gate, len(c.Operations()))
	for i, x := range c.Operations() {
		bit, _ := c.Vocabulary.Bit(x.Scope)
		gates[i] = gate{x.Name, x.Scope, bit, x.Role, x.Asks, x.Confines}
	}
	return gates
}

// rights is all of a caller that the tools it has depend on, and nothing that is its own: callers whose rights are equal are told
// the same, whoever they are.
type rights struct {
	scopes   op.ScopeSet
	role     op.Role // the caller's
	greatest op.Role // of that and of its roles in workspaces
	confined bool
	key      bool // an API key, which can't be granted more
}

func rightsOf(c *op.Caller) rights {
	r := rights{scopes: c.Scopes, role: c.Role, greatest: c.Role, confined: c.Confined(), key: c.Key != ""}
	for _, w := range c.Workspaces {
		r.greatest = max(r.greatest, w.Role)
	}
	return r
}

// opened is what rights come to, and its JSON. It is shared between replies and never changed.
type opened struct {
	scopes    []string
	hidden    []HiddenTool
	confirmed []string
	reconnect string
	masked    bool

	scopesJSON, scopesText []byte // the list, and the same as the inside of a JSON string
	toolsJSON, toolsText   []byte // the members from hidden_tools on, and these
}

// maxOpened bounds what is kept: a consent picks scopes one by one, so there may be many sorts of callers. It comes to 1.5 MB at most.
const maxOpened = 128

// openings keeps what rights come to: to count up every tool and encode 1 KB of names was a third of session_get.
type openings struct {
	mu   sync.RWMutex
	made map[rights]*opened // guarded by mu
}

func (o *operations) opened(c *op.Caller) *opened {
	r := rightsOf(c)
	m := &o.openings
	m.mu.RLock()
	known := m.made[r]
	m.mu.RUnlock()
	if known != nil {
		return known
	}
	made := o.open(r)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made == nil || len(m.made) >= maxOpened {
		m.made = make(map[rights]*opened) // a new start costs less than keeping an order of use
	}
	m.made[r] = made
	return made
}

// open tells of the operations that a role of the caller opens: hidden are those that the token's scopes do not open, confirmed
// are those of the others that can ask a person first.
func (o *operations) open(r rights) *opened {
	out := &opened{
		scopes: o.catalogue.Vocabulary.Names(r.scopes), hidden: []HiddenTool{}, confirmed: []string{}, masked: !o.readsCodes(r.role, r.scopes),
	}
	for i := range o.gates {
		switch g := &o.gates[i]; {
		case r.greatest < g.role, r.confined && !g.confines:
		case !r.scopes.Has(g.bit):
			out.hidden = append(out.hidden, HiddenTool{g.name, g.scope})
		case g.asks:
			out.confirmed = append(out.confirmed, g.name)
		}
	}
	missing := mapped(out.hidden, func(h HiddenTool) string { return h.Scope })
	if r.role >= codesRole && !r.scopes.Has(o.codes) {
		missing = append(missing, scopeCodesRead)
	}
	if !r.key { // a key is what it was made
		out.reconnect = reconnect(missing)
	}
	out.scopesJSON = rest.AppendStrings(nil, out.scopes)
	out.toolsJSON = appendTools(nil, out.hidden, out.reconnect, out.confirmed)
	out.scopesText, out.toolsText = rest.AppendEscaped(nil, out.scopesJSON), rest.AppendEscaped(nil, out.toolsJSON)
	return out
}

func reconnect(missing []string) string {
	if len(missing) == 0 {
		return ""
	}
	slices.Sort(missing)
	return "Ask the person to disconnect this server in the client and connect it again, granting: " +
		strings.Join(slices.Compact(missing), " ") + "."
}
