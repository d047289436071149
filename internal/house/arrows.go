package house

import (
	"fmt"
	"slices"
	"strings"
)

// room is what a part of the module may import of the others, and why not more.
type room struct {
	may []string
	why string // the reason, shown when an import breaks the rule
}

// anything is for the rooms that join the others.
const anything = "*"

// arrows is DESIGN.md section 1: imports point one way. A room that is not here does not exist.
//
//nolint:gochecknoglobals // constant table
var arrows = map[string]room{
	"apperr":     {nil, "every room speaks its kinds, so it can know none"},
	"jsonwalk":   {nil, "it reads text and knows no meaning"},
	"op":         {[]string{"apperr"}, "the vocabulary of a catalogue knows no transport and no domain"},
	"rest":       {[]string{"apperr", "op", "jsonwalk"}, "it serves any catalogue over HTTP: others put their own API behind it"},
	"mcp":        {[]string{"apperr", "jsonwalk"}, "it is the protocol only: no HTTP API, no catalogue, no inbox"},
	"optool":     {[]string{"apperr", "op", "mcp", "jsonwalk"}, "it is the only room that knows op and mcp, and it knows nothing else"},
	"inbox":      {[]string{"apperr"}, "the domain is at the centre: no transport, no engine, no protocol"},
	"inboxops":   {[]string{"apperr", "op", "inbox", "rest"}, "it binds declarations to services; rest only for its generic rest.Define"},
	"inboxmcp":   {[]string{"apperr", "mcp", "inbox"}, "resources and prompts of the inbox need the protocol and the domain"},
	"inboxstore": {[]string{"apperr", "inbox", "store", "pipeline"}, "keys and rows; pipeline only for the interfaces that it implements"},
	"mail":       {[]string{"apperr"}, "it reads hostile bytes and must have nothing within reach"},
	"pipeline":   {[]string{"apperr", "inbox", "mail", "blob", "queue"}, "stages know the domain, the parser and the interfaces of what keeps bytes and messages"},
	"smtpd":      {[]string{"apperr", "inbox", "pipeline"}, "it accepts mail and hands it to the intake"},
	"outmail":    {[]string{"apperr", "safehttp", "awsclient"}, "what leaves is bytes and an envelope"},
	"oauth":      {[]string{"apperr", "store", "seal", "safehttp"}, "tokens and clients, never what a scope opens"},
	"seal":       {[]string{"apperr"}, "it seals bytes for a purpose and knows no purpose"},
	"safehttp":   {[]string{"apperr"}, "it fetches addresses that others chose"},
	"awsclient":  {nil, "it says how requests go to AWS and knows no service"},
	"store":      {[]string{"apperr", "awsclient"}, "an engine knows rows, not whose"},
	"blob":       {[]string{"apperr", "seal", "awsclient"}, "an engine knows bytes, not whose; seal only for the signature of a local download"},
	"queue":      {[]string{"apperr", "store", "awsclient"}, "an engine knows messages, not whose; store only for the durable local one"},
	"ratelimit":  {[]string{"apperr", "mcp", "store"}, "it counts keys; mcp only for the Limit that it answers"},
	"lambdaedge": {[]string{"apperr"}, "it serves any http.Handler"},
	"config":     {nil, "it reads the environment with the standard library only"},
	"demo":       {[]string{"apperr", "inbox", "inboxops", "inboxstore", "pipeline", "op", "oauth", "mail", "outmail", "store", "blob", "queue"}, "demonstration data goes through the real rooms, not through a process"},
	"app":        {[]string{anything}, "the wiring joins every room"},
	"testkit":    {[]string{anything}, "tests only; nothing imports it"},
	"functions":  {[]string{"app", "config", "lambdaedge"}, "an entry point reads the configuration, makes the app and starts it"},
	"internal":   {[]string{anything}, "generators and rules: nothing that is shipped imports them"},
	"scripts":    {[]string{anything}, "programs that check the others: nothing that is shipped imports them"},
}

// libraries says who may import a library, and why nobody else. The longest matching prefix counts.
//
//nolint:gochecknoglobals // constant table
var libraries = map[string]room{
	"github.com/aws/aws-sdk-go-v2":               {[]string{"awsclient", "store/dynamo", "blob/bucket", "queue/sqsqueue", "outmail", "app"}, "AWS types do not leave the engines"},
	"github.com/aws/smithy-go":                   {[]string{"awsclient"}, "failures are told apart in one place"},
	"github.com/truora/minidyn":                  {nil, "a stand-in for tests"},
	"github.com/johannesboyne/gofakes3":          {nil, "a stand-in for tests"},
	"github.com/aws/aws-sdk-go-v2/config":        {[]string{"app/local"}, "it costs 1 ms of start-up; functions make clients from options"},
	"github.com/aws/aws-lambda-go":               {[]string{"lambdaedge"}, "Lambda's types do not leave the edge"},
	"github.com/awslabs/aws-lambda-go-api-proxy": {[]string{"lambdaedge"}, "Lambda's types do not leave the edge"},
	"github.com/danielgtaylor/huma":              {[]string{"rest", "optool"}, "routes come from the catalogue; optool calls the route objects"},
	"github.com/go-jose/go-jose":                 {[]string{"oauth"}, "tokens are signed and verified in one place"},
	"github.com/coreos/go-oidc":                  {[]string{"oauth"}, "sign-in is in one place"},
	"github.com/go-webauthn":                     {[]string{"oauth"}, "sign-in is in one place"},
	"github.com/alecthomas/kong":                 {[]string{"app/local", "functions/local"}, "only the command line parses arguments"},
	"github.com/emersion/go-smtp":                {[]string{"smtpd", "outmail", "testkit"}, "SMTP is spoken at its edge"},
	"github.com/jhillyerd/enmime":                {[]string{"mail"}, "only after the bounded scan: its time doubles with each unclosed level"},
	"github.com/microcosm-cc/bluemonday":         {[]string{"mail"}, "hostile HTML is cleaned in one place"},
	"github.com/JohannesKaufmann":                {[]string{"mail"}, "hostile HTML is read in one place"},
	"go.etcd.io/bbolt":                           {[]string{"store", "queue"}, "engines only"},
	"github.com/santhosh-tekuri/jsonschema":      {[]string{"testkit"}, "2.5 ms of start-up: tests only"},
	"net/http":                                   {[]string{"awsclient", "op", "rest", "mcp", "optool", "oauth", "safehttp", "lambdaedge", "inboxops", "app", "testkit", "functions", "scripts", "outmail", "blob", "store", "queue"}, "the domain, the mail parser and the pipeline know no HTTP"},
	"text/template":                              {nil, "it switches off the linker's dead-method removal; pages are constant strings and escaping"},
	"html/template":                              {nil, "it switches off the linker's dead-method removal; pages are constant strings and escaping"},
	"log":                                        {nil, "log/slog, handed in"},
	"log/slog":                                   {[]string{anything}, "of everybody"},
	"unsafe":                                     {nil, "nothing here needs it"},
	"C":                                          {nil, "binaries are static"},
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
		case !f.Test && f.Room() != "internal":
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
	case to == f.Room(), f.Test:
		return nil
	case inner == frontDoors && !slices.Contains([]string{"testkit", "internal", "scripts"}, f.Room()):
		return []string{f.Path + " imports " + inner + ": it is for tests only"}
	case to == "testkit":
		return []string{f.Path + " imports " + inner + ": it is for tests only"}
	case isEngine(inner) && !slices.Contains([]string{"app", "demo", "internal"}, f.Room()):
		return []string{f.Path + " imports " + inner + ": engines are chosen by the wiring; import the interface"}
	case slices.Contains(from.may, to), slices.Contains(from.may, anything):
		return nil
	}
	return []string{fmt.Sprintf("%s imports %s: %s", f.Path, inner, from.why)}
}

// frontDoors emulates what AWS runs, so no function carries it.
const frontDoors = "shared/lambdaedge/gateway"

// isEngine tells an implementation from the interface above it.
func isEngine(inner string) bool {
	for _, room := range []string{"shared/store/", "shared/blob/", "shared/queue/"} {
		if strings.HasPrefix(inner, room) {
			return true
		}
	}
	return false
}

func refuseLibrary(f *File, path string) []string {
	longest := ""
	for prefix := range libraries {
		if (path == prefix || strings.HasPrefix(path, prefix+"/")) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	if longest == "" {
		return nil
	}
	who := libraries[longest]
	inShared := strings.TrimPrefix(f.Package(), "shared/")
	for _, allowed := range who.may {
		if allowed == anything || inShared == allowed || strings.HasPrefix(inShared, allowed+"/") {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s imports %s: %s", f.Path, path, who.why)}
}
