package inboxmcp

import (
	"slices"
	"strings"
)

const (
	root   = "buzon://inbox/"
	maxURI = 512 // bytes; ours are far shorter
)

// values are the variables of a template, filled in.
type values map[string]string

// parse splits a family's URI once.
func (f *family) parse() { f.segments = strings.Split(f.uri, "/") }

func (f *family) isTemplate() bool { return strings.Contains(f.uri, "{") }

// variables names those of the template in its order.
func (f *family) variables() []string {
	var names []string
	for _, s := range f.segments {
		if name, ok := variable(s); ok {
			names = append(names, name)
		}
	}
	return names
}

// find is the family of a URI and its variables.
func (o *Offers) find(uri string) (*family, values, bool) {
	path, ok := strings.CutPrefix(uri, root)
	if !ok || len(uri) > maxURI {
		return nil, nil, false
	}
	segments := strings.Split(path, "/")
	for _, list := range [][]family{o.fixed, o.templates} {
		for i := range list {
			if v, ok := list[i].match(segments); ok {
				return &list[i], v, true
			}
		}
	}
	return nil, nil, false
}

// match compares byte by byte. Nothing is normalised and nothing is decoded: a resource has one spelling, so that what a
// gateway allows or a log shows by its URI is what is read.
func (f *family) match(segments []string) (values, bool) {
	if len(segments) != len(f.segments) {
		return nil, false
	}
	v := values{}
	for i, s := range segments {
		name, open := variable(f.segments[i])
		switch {
		case open && word(s):
			v[name] = s
		case open || s != f.segments[i]:
			return nil, false
		}
	}
	return v, true
}

// fill is the URI of a family with these variables, the inverse of find.
func (f *family) fill(v values) string {
	segments := slices.Clone(f.segments)
	for i, s := range segments {
		if name, open := variable(s); open {
			segments[i] = v[name]
		}
	}
	return root + strings.Join(segments, "/")
}

func variable(segment string) (string, bool) {
	name, ok := strings.CutPrefix(segment, "{")
	return strings.TrimSuffix(name, "}"), ok
}

// word holds for ids, slugs and names of ours, and for nothing that carries a sentence or leads elsewhere: it has neither
// space nor dot, slash, percent sign or control character. Whether such a thing exists is the operation's to say.
func word(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}
