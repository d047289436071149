package house

import (
	"fmt"
	"strings"
)

// library is who may import what is not ours, and why nobody else.
type library struct {
	may []string // rooms, or packages of a room
	why string
}

// libraries are all the modules that something shipped may import, and the packages of the standard library that reach out of
// the process or are dear. The longest matching prefix counts; a module that is not here is refused.
//
//nolint:gochecknoglobals // constant table
var libraries = map[string]library{
	"github.com/aws/aws-sdk-go-v2":               {[]string{"awsclient", "store/dynamo", "blob/s3", "queue/sqs", "outmail", "app", "testkit"}, "AWS types do not leave the engines"},
	"github.com/aws/smithy-go":                   {[]string{"awsclient"}, "failures of AWS are told apart in one place"},
	"github.com/aws/aws-sdk-go-v2/config":        {[]string{"app/local"}, "it costs 1 ms of start-up; functions make clients from options"},
	"github.com/aws/aws-lambda-go":               {[]string{"lambdaedge"}, "Lambda's types do not leave the edge"},
	"github.com/awslabs/aws-lambda-go-api-proxy": {[]string{"lambdaedge"}, "Lambda's types do not leave the edge"},
	"github.com/danielgtaylor/huma":              {[]string{"rest", "optool"}, "routes come from the catalogue; optool renders its schemas"},
	"github.com/go-jose/go-jose":                 {[]string{"oauth"}, "tokens are signed and verified in one place"},
	"code.dny.dev/ssrf":                          {[]string{"safehttp"}, "addresses that others chose are judged in one place"},
	"github.com/coreos/go-oidc":                  {[]string{"oauth"}, "sign-in is in one place"},
	"golang.org/x/oauth2":                        {[]string{"oauth"}, "go-oidc's half that redeems the code; sign-in is in one place"},
	"github.com/go-webauthn":                     {[]string{"oauth"}, "sign-in is in one place"},
	"github.com/alecthomas/kong":                 {[]string{"app/local"}, "only the command line parses arguments"},
	"github.com/emersion/go-smtp":                {[]string{"smtpd", "outmail", "testkit"}, "SMTP is spoken at its edge"},
	"github.com/emersion/go-sasl":                {[]string{"outmail"}, "go-smtp's half that signs in"},
	"github.com/emersion/go-msgauth":             {[]string{"mailauth"}, "senders are checked in one place"},
	"blitiri.com.ar/go/spf":                      {[]string{"mailauth"}, "senders are checked in one place"},
	"golang.org/x/net/publicsuffix":              {[]string{"mailauth"}, "senders are checked in one place; the table is 150 KB"},
	"github.com/microcosm-cc/bluemonday":         {[]string{"mail"}, "hostile HTML is cleaned in one place"},
	"github.com/gogs/chardet":                    {[]string{"mail"}, "bytes without a charset are guessed in one place"},
	"golang.org/x/net/html":                      {[]string{"mail", "testkit"}, "hostile HTML is read in one place; the robot reads our own pages"},
	"golang.org/x/net/html/atom":                 {nil, "html is used for its tokenizer only: its parser is not linear"},
	"golang.org/x/net/idna":                      {[]string{"mail", "smtpd", "inbox"}, "domains have one spelling where they are compared"},
	"golang.org/x/net/netutil":                   {[]string{"app"}, "a listener that counts its connections; in the module that is there anyway, BSD"},
	"golang.org/x/text":                          {[]string{"mail"}, "charsets end where a mail is read"},
	"golang.org/x/sync":                          {[]string{"pipeline", "mailauth", "webhook"}, "the worker bounds what it holds in memory, and what it sends at once; DNS is waited for by few"},
	"github.com/oklog/ulid":                      {[]string{"pipeline"}, "ids that mails get at the door"},
	"go.etcd.io/bbolt":                           {[]string{"store/embedded"}, "the file of one engine"},
	"github.com/truora/minidyn":                  {[]string{"testkit"}, "DynamoDB in process: tests only"},
	"github.com/johannesboyne/gofakes3":          {[]string{"testkit"}, "S3 in process: tests only"},
	"github.com/santhosh-tekuri/jsonschema":      {[]string{"testkit"}, "2.5 ms of start-up: tests only"},

	"net/http":      {[]string{"awsclient", "webhook", "op", "rest", "mcp", "mcpcheck", "optool", "oauth", "safehttp", "lambdaedge", "inboxops", "app", "testkit", "functions", "outmail", "blob", "store", "queue"}, "the domain, the mail parser and the pipeline know no HTTP"},
	"net":           {[]string{"awsclient", "mcpcheck", "app", "config", "lambdaedge", "mcp", "smtpd", "safehttp", "outmail", "testkit", "mailauth"}, "only what serves or dials opens connections"},
	"net/netip":     {[]string{anything}, "addresses are values"},
	"net/url":       {[]string{anything}, "so are these"},
	"net/mail":      {[]string{anything}, "its dates and addresses are values"},
	"net/textproto": {[]string{anything}, "names of headers are values"},
	"mime":          {[]string{anything}, "types are values"},
	"os":            {[]string{"app", "functions", "store/embedded", "blob/dir", "blob/s3", "outmail", "smtpd", "testkit"}, "files belong to engines, the environment to config's caller"},
	"os/exec":       {[]string{"testkit"}, "nothing here starts a program"},
	"plugin":        {nil, "what runs is what was built"},
	"text/template": {nil, "it switches off the linker's dead-method removal; pages are constant strings and escaping"},
	"html/template": {nil, "it switches off the linker's dead-method removal; pages are constant strings and escaping"},
	"encoding/gob":  {nil, "stored rows have a format that is written down"},
	"math/rand":     {nil, "what is random is handed in, or is a secret"},
	"log":           {nil, "log/slog, handed in"},
	"log/slog":      {[]string{anything}, "of everybody"},
	"unsafe":        {nil, "nothing here needs it"},
	"C":             {nil, "binaries are static"},
}

func refuseLibrary(f *File, path string) []string {
	longest := ""
	for prefix := range libraries {
		if (path == prefix || strings.HasPrefix(path, prefix+"/")) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	if longest == "" {
		if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
			return nil // the standard library
		}
		return []string{fmt.Sprintf("%s imports %s: it is in no list; add it to internal/house/libraries.go with who may import it and why", f.Path, path)}
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
