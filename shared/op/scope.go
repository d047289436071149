package op

import (
	"fmt"
	"math/bits"
	"strings"
)

// ScopeSet is a set of the scopes of one Vocabulary, one bit each.
type ScopeSet uint64

// Has reports whether every scope of want is in s.
func (s ScopeSet) Has(want ScopeSet) bool { return s&want == want }

// ScopeInfo describes one scope.
type ScopeInfo struct {
	Name        string // noun:verb
	Description string // for the person who grants it
	// Reserved scopes are left out of the challenge and of the resource metadata: clients ask for what they read there.
	Reserved bool
	// Strong: what it opens is never opened by a role or a grant that was read earlier, see Caller.Again.
	Strong bool
}

// Vocabulary is the closed list of scopes, at most 64. Its order decides the bits, so entries are only appended.
type Vocabulary struct {
	scopes []ScopeInfo
	bit    map[string]ScopeSet
}

// NewVocabulary checks the list: at most 64 scopes, each once.
func NewVocabulary(scopes []ScopeInfo) (*Vocabulary, error) {
	if len(scopes) > 64 {
		return nil, fmt.Errorf("op: %d scopes, at most 64", len(scopes))
	}
	v := &Vocabulary{scopes: scopes, bit: make(map[string]ScopeSet, len(scopes))}
	for i, s := range scopes {
		if v.bit[s.Name] != 0 {
			return nil, fmt.Errorf("op: scope %q twice", s.Name)
		}
		v.bit[s.Name] = 1 << i
	}
	return v, nil
}

// Bit is the set of that one scope; ok is false for a name that is not in the vocabulary.
func (v *Vocabulary) Bit(name string) (set ScopeSet, ok bool) {
	set, ok = v.bit[name]
	return set, ok
}

// Parse reads a space-separated list (RFC 6749 section 3.3). Unknown names are dropped. x:write implies x:read and
// nothing else is implied.
func (v *Vocabulary) Parse(list string) ScopeSet {
	var set ScopeSet
	for name := range strings.FieldsSeq(list) {
		set |= v.bit[name]
		if noun, ok := strings.CutSuffix(name, ":write"); ok {
			set |= v.bit[noun+":read"]
		}
	}
	return set
}

// Names lists the scopes of a set in the vocabulary's order.
func (v *Vocabulary) Names(set ScopeSet) []string {
	names := make([]string, 0, bits.OnesCount64(uint64(set)))
	for i, s := range v.scopes {
		if set&(1<<i) != 0 {
			names = append(names, s.Name)
		}
	}
	return names
}

// Strong tells whether an operation must know who calls at this moment: what it does can't be undone, or its scope says so.
func (v *Vocabulary) Strong(o *Operation) bool {
	if o.Effect == Destructive {
		return true
	}
	for _, s := range v.scopes {
		if s.Name == o.Scope {
			return s.Strong
		}
	}
	return false
}

// All lists the whole vocabulary.
func (v *Vocabulary) All() []ScopeInfo { return v.scopes }

// Advertised names the scopes that a challenge and the resource metadata list: all but the reserved ones.
func (v *Vocabulary) Advertised() []string {
	var names []string
	for _, s := range v.scopes {
		if !s.Reserved {
			names = append(names, s.Name)
		}
	}
	return names
}
