package inbox

import (
	"unicode"
	"unicode/utf8"
)

// matcher finds many secrets in a text in one pass (Aho and Corasick, 1975): a mail may hold hundreds of links that begin
// alike and a text that repeats their beginning, and comparing each secret at each place would take minutes.
type matcher struct {
	nodes []node
	roots map[rune]int32 // children of the root: the only node that may have many
}

// node is one beginning of a secret, as letters and digits. Zero is the root and means none.
type node struct {
	char    rune
	child   int32 // first child
	sibling int32 // next child of the same parent
	fail    int32 // the longest beginning that this one ends with
	depth   int32 // characters
	secret  int32 // index of the secret that this is, plus one
	longest int32 // the longest secret that this ends with, as a node; its own if it is one
	number  bool  // begins with a digit
}

func newMatcher(s Secrets) *matcher {
	m := &matcher{nodes: make([]node, 1, 1+len(s)*8), roots: map[rune]int32{}}
	for i, one := range s {
		m.insert(foldSecret(one), int32(i)+1)
	}
	m.link()
	return m
}

func (m *matcher) insert(folded []rune, secret int32) {
	at := int32(0)
	for depth, c := range folded {
		next := m.next(at, c)
		if next == 0 {
			next = int32(len(m.nodes)) //nolint:gosec // a mail's secrets have far fewer characters
			n := node{char: c, depth: int32(depth) + 1, number: unicode.IsDigit(folded[0])}
			if at == 0 {
				m.roots[c] = next
			} else {
				n.sibling = m.nodes[at].child
				m.nodes[at].child = next
			}
			m.nodes = append(m.nodes, n)
		}
		at = next
	}
	if at != 0 && m.nodes[at].secret == 0 {
		m.nodes[at].secret, m.nodes[at].longest = secret, at
	}
}

// next is the child of a node by a character; 0 without one.
func (m *matcher) next(at int32, c rune) int32 {
	if at == 0 {
		return m.roots[c]
	}
	for n := m.nodes[at].child; n != 0; n = m.nodes[n].sibling {
		if m.nodes[n].char == c {
			return n
		}
	}
	return 0
}

// step follows a character from a node, over shorter and shorter endings of it.
func (m *matcher) step(at int32, c rune) int32 {
	for {
		if n := m.next(at, c); n != 0 || at == 0 {
			return n
		}
		at = m.nodes[at].fail
	}
}

// link sets fail and longest, level by level.
func (m *matcher) link() {
	level := make([]int32, 0, len(m.nodes))
	for _, n := range m.roots {
		level = append(level, n)
	}
	for i := 0; i < len(level); i++ {
		at := level[i]
		for n := m.nodes[at].child; n != 0; n = m.nodes[n].sibling {
			fail := m.step(m.nodes[at].fail, m.nodes[n].char)
			m.nodes[n].fail = fail
			if m.nodes[n].longest == 0 {
				m.nodes[n].longest = m.nodes[fail].longest
			}
			level = append(level, n)
		}
	}
}

// find reports the longest secret that ends at each place, as the bytes it takes, and then, if the text ends inside secrets
// that begin with a digit, each beginning of minCut characters or more: a snippet was cut there. Links are left to maskLinks,
// their first characters are those of any link. cut may be nil.
func (m *matcher) find(text string, whole func(start, end int, node int32), cut func(node int32)) {
	if len(m.nodes) == 1 {
		return
	}
	var starts []int // byte offsets of the letters and digits
	at, gap, end := int32(0), 0, 0
	for i, r := range text {
		c, ok := fold(r)
		if !ok {
			if gap++; gap > maxGap {
				at = 0
			}
			continue
		}
		gap = 0
		starts = append(starts, i)
		at = m.step(at, c)
		end = i + utf8.RuneLen(r)
		if n := m.nodes[at].longest; n != 0 {
			whole(starts[len(starts)-int(m.nodes[n].depth)], end, n)
		}
	}
	for ; at != 0; at = m.nodes[at].fail {
		if n := &m.nodes[at]; n.number && n.depth >= minCut {
			whole(starts[len(starts)-int(n.depth)], end, at)
			if cut != nil {
				cut(at)
			}
		}
	}
}

// mark notes the secrets that end with a node.
func (m *matcher) mark(found []bool, at int32) {
	for n := m.nodes[at].longest; n != 0; n = m.nodes[m.nodes[n].fail].longest {
		s := m.nodes[n].secret - 1
		if found[s] {
			return // and so are the shorter ones
		}
		found[s] = true
	}
}

// markBelow notes the secrets that begin with a node.
func (m *matcher) markBelow(found []bool, at int32) {
	if s := m.nodes[at].secret; s != 0 {
		found[s-1] = true
	}
	for n := m.nodes[at].child; n != 0; n = m.nodes[n].sibling {
		m.markBelow(found, n)
	}
}
