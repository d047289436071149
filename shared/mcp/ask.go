package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"unicode/utf8"
)

// Needs is a set of things that a client must have declared before it is asked for them.
type Needs uint8

// What a client can be asked for (MCP 2026-07-28, ClientCapabilities).
const (
	NeedForm            Needs = 1 << iota // elicitation in form mode: elicitation {} or {form: {}}
	NeedURL                               // elicitation in URL mode: elicitation {url: {}}
	NeedSampling                          // sampling {}
	NeedSamplingTools                     // sampling {tools: {}}
	NeedSamplingContext                   // sampling {context: {}}
	NeedRoots                             // roots {}
)

func (n Needs) have(all Needs) bool { return n&all == all }

// canAsk reports whether a client can be asked; nobody before 2026-07-28 can, not even for nothing.
func canAsk(v Version, capabilities json.RawMessage, n Needs) bool {
	return v.Stateless() && declared(capabilities).have(n)
}

// declared reads what a client declared. What is there twice or is not an object counts as not declared: nobody is asked what they may
// not have offered.
func declared(capabilities json.RawMessage) Needs {
	var n Needs
	if e := objectMember(capabilities, "elicitation"); e != nil {
		form, url := objectMember(e, "form"), objectMember(e, "url")
		if url != nil {
			n |= NeedURL
		}
		if form != nil || url == nil { // MCP 2026-07-28, elicitation, "Capabilities": an empty object is form mode
			n |= NeedForm
		}
	}
	if s := objectMember(capabilities, "sampling"); s != nil {
		n |= NeedSampling
		if objectMember(s, "tools") != nil {
			n |= NeedSamplingTools
		}
		if objectMember(s, "context") != nil {
			n |= NeedSamplingContext
		}
	}
	if objectMember(capabilities, "roots") != nil {
		n |= NeedRoots
	}
	return n
}

// appendRequired renders the part of ClientCapabilities that is missing.
func appendRequired(dst []byte, missing, have Needs) []byte {
	dst = append(dst, `"requiredCapabilities":{`...)
	comma := ""
	open := func(name string) {
		dst = append(append(append(append(dst, comma...), '"'), name...), `":{`...)
		comma = ""
	}
	leaf := func(n Needs, name string) {
		if missing&n != 0 {
			open(name)
			dst = append(dst, '}')
			comma = ","
		}
	}
	if missing&(NeedForm|NeedURL) != 0 {
		open("elicitation")
		if missing&NeedURL != 0 || have&NeedURL != 0 { // otherwise {} says form
			leaf(NeedForm, "form")
		}
		leaf(NeedURL, "url")
		dst, comma = append(dst, '}'), ","
	}
	if missing&(NeedSampling|NeedSamplingTools|NeedSamplingContext) != 0 {
		open("sampling")
		leaf(NeedSamplingTools, "tools")
		leaf(NeedSamplingContext, "context")
		dst, comma = append(dst, '}'), ","
	}
	leaf(NeedRoots, "roots")
	return append(dst, '}')
}

// Ask ends a tools/call, prompts/get or resources/read without a result: the handler returns it as its error, the client gets
// input_required (MCP 2026-07-28, multi round-trip requests) and sends the same request again with the answers. Nothing may have happened
// yet when it is returned, and nobody promises that the client comes back.
//
// A client that did not declare what is asked gets -32021 instead, one of the 2025 era an error; CanAsk tells beforehand.
type Ask struct {
	Questions []Question
	// State comes back with the answers, as Input.State: sealed for this caller, method, name and arguments for five minutes. The
	// client can't read it, and it holds at most 4 KiB. One round's state can be sent back more than once: an act that must happen once
	// writes Input.Nonce in its own transaction.
	State []byte
	// Reason is data.reason of the error where the client can't be asked; empty: none.
	Reason string
}

// Error is for logs.
func (a *Ask) Error() string { return "mcp: input required" }

// Question is one input request. Build it with AskForm, AskURL, AskModel or AskRoots.
type Question struct {
	key    string
	kind   questionKind
	needs  Needs
	method string
	params []byte
	fault  error // found while it was built; answered as an internal error
}

// questionKind is what an answer must look like. It travels in the sealed state: never renumber.
type questionKind uint8

const (
	kindForm questionKind = iota + 1
	kindURL
	kindModel
	kindRoots
)

// AskForm asks the user to fill in a form. Never for secrets: they pass through the client. key names the answer.
func AskForm(key, message string, f Form) Question {
	q := Question{key: key, kind: kindForm, needs: NeedForm, method: "elicitation/create", fault: f.Check()}
	if q.fault != nil {
		return q
	}
	q.params = appendQuoted([]byte(`{"mode":"form","message":`), message)
	q.params = append(f.append(append(q.params, `,"requestedSchema":`...)), '}')
	return q
}

// AskURL asks the user to open an address, for what must not pass through the client. An accepted answer says that the user agreed, not that
// anything was done there. The address must not let whoever opens it in: the page has to establish who that is.
func AskURL(key, message, address string) Question {
	q := Question{key: key, kind: kindURL, needs: NeedURL, method: "elicitation/create"}
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		q.fault = errors.New("mcp: the address of a question is not an absolute http or https URL")
	}
	q.params = appendQuoted([]byte(`{"mode":"url","message":`), message)
	q.params = append(appendQuoted(append(q.params, `,"url":`...), address), '}')
	return q
}

// AskRoots asks for the client's roots.
func AskRoots(key string) Question {
	return Question{key: key, kind: kindRoots, needs: NeedRoots, method: "roots/list", params: []byte("{}")}
}

// Sampling is what a model is asked for through the client.
type Sampling struct {
	Messages     []Message
	SystemPrompt string
	MaxTokens    int // above 0
	Temperature  *float64
	Stop         []string
	Preferences  json.RawMessage // modelPreferences, an object; nil: none
	Context      string          // includeContext: none, thisServer, allServers; empty: not said
	Tools        json.RawMessage // tools, an array; nil: none
	ToolChoice   json.RawMessage // toolChoice, an object; nil: none
}

// AskModel asks for a completion of the client's model.
func AskModel(key string, s Sampling) Question {
	q := Question{key: key, kind: kindModel, needs: NeedSampling, method: "sampling/createMessage", fault: s.check()}
	if s.Tools != nil || s.ToolChoice != nil {
		q.needs |= NeedSamplingTools
	}
	if s.Context != "" && s.Context != "none" {
		q.needs |= NeedSamplingContext
	}
	if q.fault == nil {
		q.params = s.append(nil)
	}
	return q
}

func (s Sampling) check() error {
	for name, raw := range map[string]json.RawMessage{"modelPreferences": s.Preferences, "tools": s.Tools, "toolChoice": s.ToolChoice} {
		if raw != nil && (!json.Valid(raw) || !utf8.Valid(raw)) {
			return fmt.Errorf("mcp: %s of a question is not JSON", name)
		}
	}
	if err := checkMessages(s.Messages); err != nil {
		return err
	}
	switch {
	case s.MaxTokens <= 0:
		return errors.New("mcp: a question to a model needs MaxTokens")
	case s.Temperature != nil && !finite(*s.Temperature):
		return errors.New("mcp: the temperature of a question is no number")
	}
	return nil
}

func (s Sampling) append(dst []byte) []byte {
	dst = append(dst, `{"messages":`...)
	dst = append(appendMessages(dst, V20260728, s.Messages), `,"maxTokens":`...)
	dst = appendNumber(dst, float64(s.MaxTokens))
	dst = appendText(dst, "systemPrompt", s.SystemPrompt)
	dst = appendText(dst, "includeContext", s.Context)
	if s.Temperature != nil {
		dst = appendNumber(append(dst, `,"temperature":`...), *s.Temperature)
	}
	if len(s.Stop) > 0 {
		dst = appendTexts(append(dst, `,"stopSequences":`...), s.Stop)
	}
	for _, m := range [...]struct {
		name string
		raw  json.RawMessage
	}{{"modelPreferences", s.Preferences}, {"tools", s.Tools}, {"toolChoice", s.ToolChoice}} {
		if m.raw != nil {
			raw, _ := oneLine(m.raw) //nolint:errcheck // check has read it
			dst = append(append(append(append(dst, `,"`...), m.name...), `":`...), raw...)
		}
	}
	return append(dst, '}')
}

// checkMessages finds faults of the handler: a client would refuse the whole message.
func checkMessages(messages []Message) error {
	for i, m := range messages {
		if m.Role != "user" && m.Role != "assistant" || m.Content.kind == "" {
			return fmt.Errorf("mcp: message %d has no role or no content", i)
		}
	}
	return nil
}

func appendMessages(dst []byte, v Version, messages []Message) []byte {
	dst = append(dst, '[')
	for i, m := range messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendQuoted(append(dst, `{"role":`...), m.Role)
		dst = append(m.Content.append(append(dst, `,"content":`...), v), '}')
	}
	return append(dst, ']')
}
