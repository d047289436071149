// Package template holds tests of template.yaml: what must be true of a deployment and no linter knows.
package template

import (
	"os"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// node is a part of the template with CloudFormation's short functions spelled out: !Ref X is {"Ref": X}, !Sub X is
// {"Fn::Sub": X}, and so on.
type node = any

// load reads the template.
func load(t *testing.T) map[string]node {
	t.Helper()
	text, err := os.ReadFile("../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	out, ok := spell(t, root.Content[0]).(map[string]node)
	if !ok {
		t.Fatal("the template is no map")
	}
	return out
}

// spell turns a YAML node into plain values.
func spell(t *testing.T, n *yaml.Node) node {
	t.Helper()
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		t.Fatalf("line %d: CloudFormation knows no aliases", n.Line)
	}
	var v node
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]node{}
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if _, twice := m[key]; twice {
				t.Fatalf("line %d: %s stands twice", n.Content[i].Line, key)
			}
			m[key] = spell(t, n.Content[i+1])
		}
		v = m
	case yaml.SequenceNode:
		list := []node{}
		for _, c := range n.Content {
			list = append(list, spell(t, c))
		}
		v = list
	default:
		if n.Tag == "!!bool" || n.Tag == "!!int" {
			if err := n.Decode(&v); err != nil {
				t.Fatal(err)
			}
			break
		}
		v = n.Value
	}
	if function, short := strings.CutPrefix(n.Tag, "!"); short && !strings.HasPrefix(function, "!") {
		if function != "Ref" && function != "Condition" {
			function = "Fn::" + function
		}
		return map[string]node{function: v}
	}
	return v
}

// at walks down by keys; absent is nil.
func at(n node, keys ...string) node {
	for _, k := range keys {
		m, ok := n.(map[string]node)
		if !ok {
			return nil
		}
		n = m[k]
	}
	return n
}

// list makes a list of what may be one thing.
func list(n node) []node {
	if n == nil {
		return nil
	}
	if l, ok := n.([]node); ok {
		return l
	}
	return []node{n}
}

// text is a value as a string; "" when it is none.
func text(n node) string {
	s, _ := n.(string)
	return s
}

// number is a value as a number; -1 when it is none.
func number(n node) int {
	if i, ok := n.(int); ok {
		return i
	}
	return -1
}

// resources are those of a type, by name.
func resources(t *testing.T, template map[string]node, kind string) map[string]node {
	t.Helper()
	found := map[string]node{}
	all, ok := template["Resources"].(map[string]node)
	if !ok {
		t.Fatal("no resources")
	}
	for name, r := range all {
		if text(at(r, "Type")) == kind {
			found[name] = r
		}
	}
	if len(found) == 0 {
		t.Fatalf("no %s", kind)
	}
	return found
}

// named is the name in a !Ref or !GetAtt of this template.
func named(n node) string {
	if name := text(at(n, "Ref")); name != "" {
		return name
	}
	name, _, _ := strings.Cut(text(at(n, "Fn::GetAtt")), ".")
	return name
}
