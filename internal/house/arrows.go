package house

import (
	"fmt"
	"slices"
	"strings"
)

// room is what a part of the module may import of the others, each with its reason, and why it may not know more.
type room struct {
	may map[string]string
	why string // shown when an import breaks the rule
}

// anything is for the rooms that join the others.
const anything = "*"

// kinds is the reason that nearly every room has for apperr.
const kinds = "the vocabulary of failures"

// arrows: imports point one way. A room that is not here does not exist, one without arrows stands on
// the standard library. It is the one list: rooms have no tests of their own for this.
//
//nolint:gochecknoglobals // constant table
var arrows = map[string]room{
	"apperr":       {nil, "every room speaks its kinds, so it can know none"},
	"jsonwalk":     {nil, "it reads text and knows no meaning"},
	"tracecontext": {nil, "it reads what callers say of their traces and decides nothing"},
	"seal":         {nil, "it seals bytes for a purpose and knows no purpose; keys touch the standard library only"},
	"store":        {map[string]string{"awsclient": "DynamoDB"}, "an engine knows rows, not whose"},
	"config":       {nil, "it reads the environment and starts nothing"},
	"mail":         {nil, "it reads hostile bytes and must have nothing within reach"},
	"mailauth":     {map[string]string{"mail": "From as it is shown"}, "it checks hostile bytes against DNS and judges nobody"},
	"op":           {map[string]string{"apperr": kinds}, "the vocabulary of a catalogue knows no transport and no domain"},
	"safehttp":     {map[string]string{"apperr": kinds}, "it fetches addresses that others chose"},
	"rest": {map[string]string{"apperr": kinds, "op": "what it serves", "jsonwalk": "strict bodies"},
		"it serves any catalogue over HTTP: others put their own API behind it"},
	"mcp": {map[string]string{"apperr": kinds, "jsonwalk": "strict frames", "tracecontext": "the caller's trace in _meta"},
		"it is the protocol only: no HTTP API, no catalogue, no inbox"},
	"mcpcheck": {nil, "it judges any server from outside: what it shared with ours, both would misread alike"},
	"optool": {map[string]string{"apperr": kinds, "op": "what it offers", "mcp": "as what it offers it", "jsonwalk": "strict arguments"},
		"it is the only room that knows op and mcp, and it knows nothing else; a route is an http.Handler to it"},
	"inbox": {map[string]string{"apperr": kinds}, "the domain is at the centre: no transport, no engine, no protocol"},
	"inboxops": {map[string]string{"apperr": kinds, "op": "the vocabulary", "inbox": "the services",
		"rest": "a declaration is generic in its input and output types"}, "it binds declarations to services"},
	"inboxmcp": {map[string]string{"apperr": kinds, "mcp": "what it offers", "inbox": "of what"},
		"resources and prompts of the inbox need the protocol and the domain"},
	"inboxstore": {map[string]string{"apperr": kinds, "inbox": "implements its interfaces", "store": "keeps the rows"},
		"storage knows the domain and the interface of an engine"},
	"pipeline": {map[string]string{"apperr": kinds, "inbox": "what a mail becomes", "mail": "reads it", "mailauth": "who vouches for it", "blob": "keeps bytes", "queue": "keeps work"},
		"stages know the domain, the parser and the interfaces of what keeps bytes and work; mail comes in whatever brought it"},
	"webhook": {map[string]string{"apperr": kinds, "inbox": "what is told to whom", "queue": "keeps work", "safehttp": "addresses that others chose"},
		"it tells receivers of events; who asked for that, and where rows lie, is not its business"},
	"smtpd": {map[string]string{"apperr": kinds, "inbox": "what it hands on"},
		"it speaks SMTP to whoever accepts mail"},
	"outmail": {map[string]string{"apperr": kinds, "safehttp": "addresses that others chose", "awsclient": "SES"}, "what leaves is bytes and an envelope"},
	"oauth": {map[string]string{"apperr": kinds, "store": "codes and grants", "seal": "steps that travel", "safehttp": "client metadata"},
		"tokens and clients, never what a scope opens"},
	"awsclient":  {nil, "it says how requests go to AWS and knows no service"},
	"blob":       {map[string]string{"seal": "a local download is sealed text", "awsclient": "S3"}, "an engine knows bytes, not whose"},
	"queue":      {map[string]string{"store": "the durable local one keeps rows", "awsclient": "SQS"}, "an engine knows messages, not whose"},
	"ratelimit":  {map[string]string{"mcp": "the shape of a limit", "store": "the counter that instances share"}, "it counts keys"},
	"lambdaedge": {map[string]string{"apperr": kinds, "tracecontext": "the door's trace id"}, "it serves any http.Handler"},
	"demo":       {map[string]string{"apperr": kinds, "inbox": "the sample world is made of its types"}, "whoever starts a process stores the sample world"},
	"app":        {map[string]string{anything: "the wiring joins every room"}, "what starts a process is called by functions"},
	"testkit":    {map[string]string{anything: "tests join what they test"}, "tests only; nothing imports it"},
	"functions":  {map[string]string{"app": "starts it", "config": "reads it"}, "an entry point reads the configuration, makes the app and starts it"},
	"internal":   {map[string]string{anything: "generators and rules"}, "nothing that is shipped imports them"},
	"scripts":    {map[string]string{anything: "programs that check the others"}, "nothing that is shipped imports them"},
}

// BadImports lists the imports of a file that point the wrong way. What only a test imports may come from anywhere but an
// entry point.
func BadImports(f *File) []string {
	var bad []string
	from, known := arrows[f.Room()]
	if !known {
		return []string{fmt.Sprintf("%s: %q is no room; add it to the table in internal/house/arrows.go with its arrows", f.Path, f.Room())}
	}
	for _, path := range f.Imports() {
		inner, ours := strings.CutPrefix(path, Module+"/")
		switch {
		case ours:
			bad = append(bad, from.refuseInner(f, inner)...)
		case !f.Test && f.Room() != "internal" && f.Room() != "scripts":
			bad = append(bad, refuseLibrary(f, path)...)
		}
	}
	return bad
}

func (from room) refuseInner(f *File, inner string) []string {
	to := (&File{Path: inner + "/x.go"}).Room()
	switch {
	case to == "functions", (to == "internal" || to == "scripts") && f.Room() != to:
		return []string{f.Path + " imports " + inner + ": nothing imports an entry point or a tool"}
	case f.Test:
		return nil
	case (to == "testkit" || inner == frontDoors) && !slices.Contains([]string{"testkit", "internal", "scripts"}, f.Room()):
		return []string{f.Path + " imports " + inner + ": it is for tests only"}
	case isEngine(inner) && !slices.Contains([]string{"app", "internal", "scripts"}, f.Room()):
		return []string{f.Path + " imports " + inner + ": engines are chosen by the wiring; import the interface"}
	case to == f.Room(), from.may[to] != "", from.may[anything] != "":
		return nil
	}
	return []string{fmt.Sprintf("%s imports %s: %s", f.Path, inner, from.why)}
}

// frontDoors emulates what AWS runs, so no function carries it.
const frontDoors = "shared/lambdaedge/gateway"

// isEngine tells an implementation, or its suite, from the interface above it.
func isEngine(inner string) bool {
	for _, room := range []string{"shared/store/", "shared/blob/", "shared/queue/"} {
		if strings.HasPrefix(inner, room) {
			return true
		}
	}
	return false
}
