package mcp_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/mcp"
)

// counter is a source of bytes that is the same in each rig, so that what is sealed can stand in a scenario.
type counter struct{ n byte }

func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = c.n
		c.n++
	}
	return len(p), nil
}

// sealer signs and hides nothing: a scenario shows what is sealed. It forgets expiry: mcp has to judge it by itself.
type sealer struct{}

func (sealer) tag(head, ad []byte) []byte {
	m := hmac.New(sha256.New, []byte("test"))
	_, _ = m.Write(binary.BigEndian.AppendUint64(nil, uint64(len(ad))))
	_, _ = m.Write(append(ad, head...))
	return m.Sum(nil)[:8]
}

func (s sealer) Seal(plaintext, ad []byte, ttl time.Duration) (string, error) {
	head := append(binary.BigEndian.AppendUint32(nil, uint32(ttl/time.Second)), plaintext...)
	return base64.RawURLEncoding.EncodeToString(append(s.tag(head, ad), head...)), nil
}

func (s sealer) Open(token string, ad []byte) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || strings.ContainsAny(token, "\r\n") || len(b) < 12 || !hmac.Equal(b[:8], s.tag(b[8:], ad)) {
		return nil, errors.New("sealer: " + errCanary.Error())
	}
	return b[12:], nil
}

// shelf has a resource for each way to answer.
type shelf struct{}

func ptr[T any](v T) *T { return &v }

func (shelf) ListResources(_ context.Context, r *mcp.ListRequest) (mcp.Page[mcp.Resource], error) {
	all := []mcp.Resource{
		{
			URI: "test://one", Name: "one", Title: "One", Description: "The \"first\".", MIMEType: "text/plain", Size: 3,
			Annotations: &mcp.Annotations{Audience: []string{"user"}, Priority: ptr(0.5), LastModified: "2026-11-30T12:00:00Z"},
			Icons:       []mcp.Icon{{Src: "https://buzon.test/i.png", MIMEType: "image/png", Sizes: []string{"48x48"}, Theme: "dark"}},
		},
		{URI: "test://two", Name: "two", Annotations: &mcp.Annotations{LastModified: "2026-11-30T12:00:00Z"}},
		{URI: "test://three", Name: "three"},
	}
	if r.Limit == 0 {
		r.Limit = 2
	}
	from, to, next, err := r.Page(len(all))
	return mcp.Page[mcp.Resource]{Items: all[from:to], Next: next}, err
}

func (shelf) ListTemplates(_ context.Context, r *mcp.ListRequest) (mcp.Page[mcp.ResourceTemplate], error) {
	all := []mcp.ResourceTemplate{{
		URITemplate: "test://item/{id}", Name: "item", Title: "Item", Description: "One item.", MIMEType: "application/json",
		Annotations: &mcp.Annotations{Audience: []string{"assistant"}}, Icons: []mcp.Icon{{Src: "https://buzon.test/i.png"}},
	}}
	from, to, next, err := r.Page(len(all))
	return mcp.Page[mcp.ResourceTemplate]{Items: all[from:to], Next: next}, err
}

func (shelf) ReadResource(_ context.Context, r *mcp.ReadRequest) (*mcp.ReadResult, error) {
	switch r.URI {
	case "test://one":
		return &mcp.ReadResult{Contents: []mcp.ResourceContents{{URI: r.URI, MIMEType: "text/plain", Text: "one\n"}}}, nil
	case "test://two":
		return &mcp.ReadResult{
			Contents: []mcp.ResourceContents{{URI: r.URI, MIMEType: "image/png", Blob: []byte{0}}, {URI: r.URI, Text: ""}},
			Meta:     []byte(`"io.github.buzon-mail/untrusted":["/contents/0"]`),
		}, nil
	case "test://nothing":
		return nil, nil //nolint:nilnil // the fault under test
	case "test://empty":
		return &mcp.ReadResult{}, nil
	case "test://scoped":
		return nil, &mcp.ScopeError{Scopes: []string{"emails:read"}}
	case "test://internal":
		return nil, errCanary
	case "test://asks":
		e, err := r.Input.Form("who", who)
		switch {
		case err != nil:
			return nil, err
		case e.Action != mcp.Accepted || !r.Input.Verified():
			return nil, &mcp.Ask{Questions: []mcp.Question{mcp.AskForm("who", "Who?", who)}}
		}
		return &mcp.ReadResult{Contents: []mcp.ResourceContents{{URI: r.URI, Text: "for " + e.Text("name")}}}, nil
	case "test://slow":
		if err := r.Notify.Progress(1, 2, "half"); err != nil {
			return nil, err
		}
		return &mcp.ReadResult{Contents: []mcp.ResourceContents{{URI: r.URI, Text: "slow"}}}, nil
	}
	return nil, mcp.ErrUnknown
}

// book has a prompt for each way to answer.
type book struct{}

func (book) ListPrompts(_ context.Context, r *mcp.ListRequest) (mcp.Page[mcp.Prompt], error) {
	switch r.Cursor {
	case "":
		return mcp.Page[mcp.Prompt]{Items: []mcp.Prompt{{
			Name: "greet", Title: "Greet", Description: "Greets.", Icons: []mcp.Icon{{Src: "data:image/png;base64,AA=="}},
			Arguments: []mcp.PromptArgument{{Name: "name", Title: "Name", Description: "Whom.", Required: true}, {Name: "tone"}},
		}}, Next: "second"}, nil
	case "second":
		return mcp.Page[mcp.Prompt]{Items: []mcp.Prompt{{Name: "kinds"}}, Next: "broken"}, nil
	}
	return mcp.Page[mcp.Prompt]{}, errCanary
}

func (book) GetPrompt(_ context.Context, r *mcp.PromptRequest) (*mcp.PromptResult, error) {
	text := func(s string) (*mcp.PromptResult, error) {
		return &mcp.PromptResult{Messages: []mcp.Message{{Role: "user", Content: mcp.Text(s)}}}, nil
	}
	switch r.Name {
	case "greet":
		if r.Arguments["name"] == "" {
			return nil, apperr.New(apperr.Invalid, "argument_missing", "name is missing.", "Send name.").Because(errCanary)
		}
		return text("Greet " + r.Arguments["name"] + ".")
	case "kinds":
		c := mcp.Text("annotated")
		c.Annotations = &mcp.Annotations{Priority: ptr(1.0)}
		return &mcp.PromptResult{Description: "All kinds.", Meta: []byte(`"a":1`), Messages: []mcp.Message{
			{Role: "user", Content: c},
			{Role: "assistant", Content: mcp.Image([]byte{0}, "image/png")},
			{Role: "user", Content: mcp.Audio([]byte{0}, "audio/wav")},
			{Role: "user", Content: mcp.EmbedText("test://one", "text/plain", "one")},
			{Role: "user", Content: mcp.EmbedBlob("test://two", "image/png", nil)},
			{Role: "user", Content: mcp.Link("test://three", "three", "text/plain")},
		}}, nil
	case "internal":
		return nil, errCanary
	case "nothing":
		return nil, nil //nolint:nilnil // the fault under test
	case "latin1":
		return &mcp.PromptResult{Meta: []byte("\"a\":\"\xf1\"")}, nil
	case "system":
		return &mcp.PromptResult{Messages: []mcp.Message{{Role: "system", Content: mcp.Text("x")}}}, nil
	case "hollow":
		return &mcp.PromptResult{Messages: []mcp.Message{{Role: "user"}}}, nil
	case "asks":
		roots, ok, err := r.Input.Roots("roots")
		switch {
		case err != nil:
			return nil, err
		case !ok:
			return nil, &mcp.Ask{Questions: []mcp.Question{mcp.AskRoots("roots")}, Reason: "roots_needed"}
		}
		return text(roots[0].URI + roots[0].Name)
	}
	return nil, mcp.ErrUnknown
}

type guesser struct{}

func (guesser) Complete(_ context.Context, r *mcp.CompleteRequest) (mcp.Completion, error) {
	switch r.Prompt + r.Template {
	case "greet":
		if r.Argument != "name" {
			return mcp.Completion{}, nil
		}
		return mcp.Completion{Values: []string{r.Value + "a", r.Value + "\"b" + r.Context["tone"]}, Total: 7, HasMore: true}, nil
	case "test://item/{id}":
		var c mcp.Completion
		for i := range 150 {
			c.Values = append(c.Values, strconv.Itoa(i))
		}
		return c, nil
	case "asks":
		return mcp.Completion{}, &mcp.Ask{Questions: []mcp.Question{mcp.AskRoots("r")}}
	case "broken":
		return mcp.Completion{}, errCanary
	}
	return mcp.Completion{}, mcp.ErrUnknown
}

var who = mcp.Form{{Name: "name", Required: true, MinLength: 1, MaxLength: 20}} //nolint:gochecknoglobals // constant

var confirmation = mcp.Form{{Name: "confirm", Title: "Delete it?", Type: mcp.BooleanField, Required: true, Default: &mcp.Value{}}} //nolint:gochecknoglobals // constant

type tool = func(context.Context, *mcp.CallRequest) (*mcp.CallResult, error)

func answer(text string) (*mcp.CallResult, error) { return &mcp.CallResult{JSON: []byte(text)}, nil }

// askers are the tools that ask or tell.
func askers() map[string]tool {
	return map[string]tool{
		"delete": deleteTool, "login": loginTool, "many": manyTool, "rounds": roundsTool, "think": thinkTool,
		"resume": func(_ context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
			if !r.Input.Verified() {
				return nil, &mcp.Ask{State: []byte("later")}
			}
			return answer(`{"state":"` + string(r.Input.State) + `"}`)
		},
		"faulty": func(_ context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
			return nil, faultyAsks()[string(bytes.Trim(r.Arguments, `{"} :1`))]
		},
		"refuses": func(context.Context, *mcp.CallRequest) (*mcp.CallResult, error) {
			return nil, &mcp.ParamsError{Message: "Done already.", Reason: "already_done", Facts: map[string]string{"id": "inb_1", "kind": "forged"}}
		},
		"region": func(_ context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
			return answer(string(r.Arguments))
		},
		"progress": progressTool,
	}
}

func deleteTool(_ context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
	if r.Version.Stateless() != r.CanAsk(0) {
		return nil, errors.New("CanAsk differs from the era")
	}
	e, err := r.Input.Form("confirm", confirmation)
	switch {
	case err != nil:
		return nil, err
	case e.Action == mcp.Missing || !r.Input.Verified():
		return nil, &mcp.Ask{
			Questions: []mcp.Question{mcp.AskForm("confirm", "Delete \"facturas\"?", confirmation)},
			State:     []byte("v7"), Reason: "confirmation_required",
		}
	case e.Action == mcp.Accepted && e.Bool("confirm"):
		return answer(`{"deleted":"` + string(r.Input.State) + `","nonce":"` + r.Input.Nonce[:8] + `"}`)
	}
	return &mcp.CallResult{JSON: []byte(`{"code":"declined"}`), IsError: true}, nil
}

func loginTool(_ context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
	action, err := r.Input.URL("login")
	switch {
	case err != nil:
		return nil, err
	case action == mcp.Missing:
		return nil, &mcp.Ask{Questions: []mcp.Question{mcp.AskURL("login", "Sign in there.", "https://buzon.test/connect")}}
	}
	return answer(`{"action":` + strconv.Itoa(int(action)) + `}`)
}

func thinkTool(_ context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
	s, ok, err := r.Input.Model("think")
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, &mcp.Ask{Questions: []mcp.Question{mcp.AskModel("think", mcp.Sampling{
			Messages:  []mcp.Message{{Role: "user", Content: mcp.Text("Why?")}},
			MaxTokens: 100, SystemPrompt: "Short.", Temperature: ptr(0.5), Stop: []string{"."}, Context: "thisServer",
			Preferences: json.RawMessage("{\n \"speedPriority\":1}"), Tools: json.RawMessage(`[{"name":"t","inputSchema":{"type":"object"}}]`),
			ToolChoice: json.RawMessage(`{"mode":"auto"}`),
		})}}
	}
	return answer(`{"text":"` + s.Text + `","by":"` + s.Role + " " + s.Model + " " + s.StopReason + `"}`)
}

func manyTool(_ context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
	e, err1 := r.Input.Form("who", who)
	s, thought, err2 := r.Input.Model("think")
	roots, listed, err3 := r.Input.Roots("roots")
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	if e.Action == mcp.Missing || !thought || !listed {
		return nil, &mcp.Ask{Questions: []mcp.Question{
			mcp.AskForm("who", "Who?", who),
			mcp.AskModel("think", mcp.Sampling{Messages: []mcp.Message{{Role: "user", Content: mcp.Text("Why?")}}, MaxTokens: 9}),
			mcp.AskRoots("roots"),
		}}
	}
	return answer(`{"who":"` + e.Text("name") + `","text":"` + s.Text + `","roots":` + strconv.Itoa(len(roots)) + `}`)
}

func roundsTool(_ context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
	first := ""
	if r.Input.Verified() {
		first = string(r.Input.State)
	}
	if first == "" {
		e, err := r.Input.Form("one", who)
		if err != nil || e.Action != mcp.Accepted {
			return nil, cmpErr(err, &mcp.Ask{Questions: []mcp.Question{mcp.AskForm("one", "First?", who)}})
		}
		return nil, &mcp.Ask{Questions: []mcp.Question{mcp.AskForm("two", "Second?", who)}, State: []byte(e.Text("name"))}
	}
	e, err := r.Input.Form("two", who)
	if err != nil || e.Action != mcp.Accepted {
		return nil, cmpErr(err, &mcp.Ask{Questions: []mcp.Question{mcp.AskForm("two", "Second?", who)}, State: []byte(first)})
	}
	return answer(`{"both":"` + first + " " + e.Text("name") + `"}`)
}

func cmpErr(err error, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// faultyAsks are asks that are a fault of the handler's.
func faultyAsks() map[string]*mcp.Ask {
	q := mcp.AskRoots("r")
	return map[string]*mcp.Ask{
		"empty":   {},
		"twice":   {Questions: []mcp.Question{q, q}},
		"no key":  {Questions: []mcp.Question{mcp.AskRoots("")}},
		"no kind": {Questions: []mcp.Question{{}}},
		"state":   {State: bytes.Repeat([]byte("x"), 5<<10)},
		"form":    {Questions: []mcp.Question{mcp.AskForm("f", "?", mcp.Form{{}})}},
		"url":     {Questions: []mcp.Question{mcp.AskURL("u", "?", "javascript:alert(1)")}},
		"user":    {Questions: []mcp.Question{mcp.AskURL("u", "?", "https://u:p@buzon.test/")}},
		"tokens":  {Questions: []mcp.Question{mcp.AskModel("m", mcp.Sampling{})}},
		"role":    {Questions: []mcp.Question{mcp.AskModel("m", mcp.Sampling{MaxTokens: 1, Messages: []mcp.Message{{}}})}},
		"json":    {Questions: []mcp.Question{mcp.AskModel("m", mcp.Sampling{MaxTokens: 1, Tools: json.RawMessage("[")})}},
	}
}

// progressTool does what its steps say: a number reports it, the rest end the call.
func progressTool(_ context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
	var a struct{ Steps []string }
	if err := json.Unmarshal(r.Arguments, &a); err != nil {
		return nil, err
	}
	refused := 0
	for _, step := range a.Steps {
		switch n, err := strconv.ParseFloat(step, 64); {
		case err == nil:
			if err := r.Notify.Progress(n, 10, "at "+step); errors.Is(err, mcp.ErrProgress) {
				refused++
			} else if err != nil {
				return nil, err
			}
		case strings.HasPrefix(step, "log "):
			if err := r.Notify.Message("info", "test", json.RawMessage(`"`+step[4:]+`"`)); err != nil {
				return nil, err
			}
		case step == "fail":
			return nil, errCanary
		case step == "panic":
			panic(errCanary)
		case step == "unknown":
			return nil, mcp.ErrUnknown
		case step == "ask":
			return nil, &mcp.Ask{Questions: []mcp.Question{mcp.AskRoots("roots")}}
		}
	}
	return answer(`{"refused":` + strconv.Itoa(refused) + `,"notifier":` + strconv.FormatBool(r.Notify != nil) + `}`)
}

const regionSchema = `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer","x-mcp-header":"level"},` +
	`"dry":{"type":"boolean","x-mcp-header":"Dry-Run"},"at":{"type":"object","properties":{"zone":{"type":"string","x-mcp-header":"Zone"}}}}}`

func (*toolbox) ToolHeaders(_ context.Context, _ mcp.Caller, name string) *mcp.HeaderParams {
	if name != "region" {
		return nil
	}
	h, err := mcp.ParseHeaderParams(json.RawMessage(regionSchema))
	if err != nil {
		panic(err)
	}
	return h
}
