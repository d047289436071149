package mcp

// Version is a protocol revision.
type Version string

// The revisions that are served, newest first.
const (
	V20260728 Version = "2026-07-28"
	V20251125 Version = "2025-11-25"
	V20250618 Version = "2025-06-18"
	V20250326 Version = "2025-03-26"
	V20241105 Version = "2024-11-05"
)

// assumed is the revision of a request that names none.
const assumed = V20250618

// Versions lists what is served in the order in which it is announced (supportedVersions, data.supported).
func Versions() []Version {
	return []Version{V20260728, V20251125, V20250618, V20250326, V20241105}
}

// AtLeast reports whether v is revision o or a later one. Revisions are dates, so their text orders them.
func (v Version) AtLeast(o Version) bool { return v >= o }

// Stateless reports whether v is of the era without a handshake, in which each request carries its own envelope.
func (v Version) Stateless() bool { return v >= V20260728 }

// served returns the revision of this name.
func served[T string | []byte](name T) (Version, bool) {
	switch string(name) {
	case string(V20260728):
		return V20260728, true
	case string(V20251125):
		return V20251125, true
	case string(V20250618):
		return V20250618, true
	case string(V20250326):
		return V20250326, true
	case string(V20241105):
		return V20241105, true
	}
	return "", false
}

// verdict is what the version rule says of a request. Each one is answered at its own place in the order of checks.
type verdict uint8

const (
	agreed         verdict = iota // served as the version that was determined
	unserved                      // -32022, before authentication
	noEnvelope                    // the header says 2026-07-28, the body carries no envelope: -32602
	notText                       // the envelope's version is not a string: -32602
	useInitialize                 // the envelope names a revision of the handshake era: -32602
	headerMismatch                // header and envelope differ: -32020
)

// ruling is the outcome of the version rule.
type ruling struct {
	verdict   verdict
	version   Version // what the request is answered as
	requested string  // what was asked for, when unserved
}

// byHeader rules for notifications and posted responses, which need no envelope, and for bodies that declare nothing.
func byHeader(header string) ruling {
	if header == "" {
		return ruling{agreed, assumed, ""}
	}
	v, ok := served(header)
	if !ok {
		return ruling{unserved, V20260728, header}
	}
	return ruling{agreed, v, ""}
}

// rule decides the version of a request from its header (empty: absent) and its envelope (nil: absent; raw otherwise).
// The body decides the era and the header is the cross-check: a server that believed the header would run a message that a
// proxy read as another one.
func rule(header string, envelope []byte) ruling {
	if envelope == nil {
		r := byHeader(header)
		if r.version.Stateless() && r.verdict == agreed {
			r.verdict = noEnvelope
		}
		return r
	}
	if !isText(envelope) {
		return ruling{notText, V20260728, ""}
	}
	asked := unquote(envelope)
	v, ok := served(asked)
	same := header == string(asked)
	switch {
	case ok && v.Stateless() && same:
		return ruling{agreed, v, ""}
	case ok && v.Stateless(), header != "" && !same:
		return ruling{headerMismatch, V20260728, ""}
	case ok:
		return ruling{useInitialize, V20260728, ""}
	}
	return ruling{unserved, V20260728, string(asked)}
}
