package op

import (
	"fmt"
	"net/http"
	"strings"
)

// Catalogue is the checked list of operations in the order in which they were declared.
type Catalogue struct {
	Vocabulary *Vocabulary
	operations []Operation
	byName     map[string]int
}

// NewCatalogue checks what the whole depends on: unique names and routes, known scopes, a role, a description, a question
// for every destructive operation, and no literal segment beside a path parameter, so that an id can never reach another route.
func NewCatalogue(v *Vocabulary, operations []Operation) (*Catalogue, error) {
	c := &Catalogue{Vocabulary: v, operations: operations, byName: make(map[string]int, len(operations))}
	routes := make(map[string]string, len(operations))
	for i, o := range operations {
		if err := o.check(v); err != nil {
			return nil, err
		}
		if _, ok := c.byName[o.Name]; ok {
			return nil, fmt.Errorf("op: operation %q twice", o.Name)
		}
		c.byName[o.Name] = i
		route := o.Method + " " + o.Path
		if other, ok := routes[route]; ok {
			return nil, fmt.Errorf("op: %s and %s are both %s", other, o.Name, route)
		}
		routes[route] = o.Name
	}
	return c, c.checkSiblings()
}

// Operations lists the declarations in order.
func (c *Catalogue) Operations() []Operation { return c.operations }

// Lookup finds an operation by its name.
func (c *Catalogue) Lookup(name string) (Operation, bool) {
	i, ok := c.byName[name]
	if !ok {
		return Operation{}, false
	}
	return c.operations[i], true
}

func (o Operation) check(v *Vocabulary) error {
	switch {
	case o.Name == "" || strings.Trim(o.Name, "abcdefghijklmnopqrstuvwxyz_") != "":
		return fmt.Errorf("op: %q is not a name (noun_verb in lower case)", o.Name)
	case o.Role == NoRole:
		return fmt.Errorf("op: %s names no role", o.Name)
	case o.Title == "" || o.Description == "":
		return fmt.Errorf("op: %s has no title or description", o.Name)
	case !strings.HasPrefix(o.Path, "/"):
		return fmt.Errorf("op: %s: path %q", o.Name, o.Path)
	case o.Method == http.MethodGet && o.Effect != Read, o.Effect == Read && o.Method != http.MethodGet && o.Method != http.MethodPost:
		return fmt.Errorf("op: %s: a GET only reads, and what only reads is a GET, or a POST that carries its question in a body", o.Name)
	case o.Asks != (o.Effect == Destructive):
		return fmt.Errorf("op: %s: a destructive operation, and no other, says what a person is asked first", o.Name)
	}
	if o.Scope == "" {
		return nil
	}
	if _, ok := v.Bit(o.Scope); !ok {
		return fmt.Errorf("op: %s: scope %q is not in the vocabulary", o.Name, o.Scope)
	}
	return nil
}

// checkSiblings refuses a literal segment beside a parameter: GET /emails/wait beside GET /emails/{id} would let the id
// "wait" reach another operation.
func (c *Catalogue) checkSiblings() error {
	type child struct {
		param bool
		name  string
	}
	seen := map[string]child{}
	for _, o := range c.operations {
		prefix := ""
		for segment := range strings.SplitSeq(strings.Trim(o.Path, "/"), "/") {
			param := strings.HasPrefix(segment, "{")
			key := prefix
			if first, ok := seen[key]; ok && (first.param || param) && (first.param != param || first.name != segment) {
				return fmt.Errorf("op: %s: %q is a sibling of %q below %q", o.Name, segment, first.name, prefix)
			}
			seen[key] = child{param, segment}
			prefix += "/" + segment
		}
	}
	return nil
}
