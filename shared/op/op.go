// Package op is the vocabulary of a catalogue: one declaration says what an operation is called, where its route lies, what
// it needs and what it does; the REST route, the MCP tool and the documents are all derived from it. The package knows
// neither a transport nor what the operations are about.
package op

import (
	"reflect"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// Role is what a person may do in a workspace. Roles are ordered: a greater one includes the lesser.
type Role uint8

// The roles. NoRole is the zero value, so that a forgotten role opens nothing.
const (
	NoRole Role = iota
	Viewer
	Operator
	Admin
	Owner
)

//nolint:gochecknoglobals // constant table
var roleNames = [...]string{"none", "viewer", "operator", "admin", "owner"}

// String is the role's name on every wire.
func (r Role) String() string {
	if int(r) >= len(roleNames) {
		return roleNames[NoRole]
	}
	return roleNames[r]
}

// Effect is what an operation does to the world. The annotations of its tool follow from it.
type Effect uint8

// The effects. Destructive is the zero value: an operation that forgets to say is treated as the worst.
const (
	// Destructive deletes, sends outward, rotates a secret, changes who may reach what, at least for some arguments: an
	// in-process caller asks the operation first whether a person must confirm these (Operation.Asks).
	Destructive Effect = iota
	Write              // changes state in a way that can be undone
	Read               // changes nothing
)

// Spec is the declaration of one operation.
type Spec struct {
	Name        string // noun_verb, as emails_list: the tool's name and the OpenAPI operationId
	Method      string // an HTTP method
	Path        string // below the base path; {id} names a path parameter
	Title       string // for people, a few words
	Description string // for models and people: what it does, when to use it, what it returns
	Scope       string // the OAuth scope it needs; empty: any caller
	Role        Role   // the least role
	Effect      Effect
	Idempotent  bool // repeating the call has the same effect
	Outward     bool // something leaves the service; counted against the outward limit too
	Audited     bool // a read that is audited, as of a file; what is no read always is
	Job         bool // answers 202 with a job, which goes on after the reply
	Secret      bool // the reply carries a secret: it is never kept for a repetition
	// Confines: it keeps a confined caller (Caller.Within) within its parts. An operation that does not say so refuses such a caller.
	Confines  bool
	AnyTenant bool          // acts on the organization or the caller, so no workspace is resolved
	Status    int           // of success; 0 is 200
	Creates   bool          // an upsert: 201 when it made something, else Status
	Errors    []apperr.Kind // beyond those that every operation can answer
}

// Traced reports whether calls of the operation leave a line in the audit.
func (s *Spec) Traced() bool { return s.Effect != Read || s.Audited }

// Operation is a Spec with the types of its input and output and the function that serves it.
type Operation struct {
	Spec
	Input  reflect.Type // a struct whose fields carry path, query, header tags, or are named Body
	Output reflect.Type // a struct with a Body field
	// Asks: it can say what a person is to be asked before it acts. Exactly the destructive operations can.
	Asks bool
	// Binding is made and read by the room that serves routes (rest): the typed handler, opaque to everybody else.
	Binding any
}
