package oauth

import (
	"slices"
	"strings"
)

const maxScope = 2048 // bytes of a scope parameter

// defaultScopes are those that a client which names none asks for.
func (s *Server) defaultScopes() []string {
	var names []string
	for _, scope := range s.Scopes {
		if !scope.Reserved {
			names = append(names, scope.Name)
		}
	}
	return names
}

// requestedScopes reads a scope parameter: the known names, in the vocabulary's order, each once. Unknown ones are dropped
// (RFC 6749 section 3.3 lets the server ignore part of a request, and says what was granted in the answer); false when nothing
// is left of a parameter that named something. offline_access alone asks for nothing in particular.
func (s *Server) requestedScopes(parameter string) ([]string, bool) {
	asked := strings.Fields(parameter)
	if len(parameter) > maxScope {
		return nil, false
	}
	asked = slices.DeleteFunc(asked, func(name string) bool { return name == scopeOffline })
	if len(asked) == 0 {
		return s.defaultScopes(), true
	}
	names := s.ordered(asked)
	return names, len(names) > 0
}

// ordered keeps what the vocabulary has, in its order.
func (s *Server) ordered(names []string) []string {
	var out []string
	for _, scope := range s.Scopes {
		if slices.Contains(names, scope.Name) {
			out = append(out, scope.Name)
		}
	}
	return out
}

// both keeps the names of a that stand in b.
func both(a, b []string) []string {
	var out []string
	for _, name := range a {
		if slices.Contains(b, name) {
			out = append(out, name)
		}
	}
	return out
}

// overlap is what a scope parameter and an account have in common: false when that is nothing. Silence means all of it. More
// than the account has is not refused, unlike at a refresh: no person could be asked, and clients ask for every scope that the
// resource's metadata names (RFC 6749 section 3.3 lets the server ignore part of a request).
func overlap(parameter string, granted []string) ([]string, bool) {
	asked := slices.DeleteFunc(strings.Fields(parameter), func(name string) bool { return name == scopeOffline })
	if len(asked) == 0 {
		return granted, true
	}
	out := both(granted, asked)
	return out, len(out) > 0
}

// narrowed reads the scope parameter of a token request against what was granted: false when it asks for more (RFC 6749
// section 6, MUST NOT). Silence means all of it. A client told invalid_scope asks the person again, one that got the old
// scopes would not know to.
func narrowed(parameter string, granted []string) ([]string, bool) {
	var out []string
	for name := range strings.FieldsSeq(parameter) {
		if name == scopeOffline {
			continue
		}
		if !slices.Contains(granted, name) {
			return nil, false
		}
		out = append(out, name)
	}
	if out == nil {
		return granted, true
	}
	return out, true
}
