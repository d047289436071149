package mcp

import (
	"strings"
	"time"
)

// Input is what a client answered to an Ask. All methods take a nil *Input: then nothing was asked yet.
//
// Answers without a verified state are whatever the client made up: nobody may have been asked. An act that needs a person's word
// needs Verified too.
type Input struct {
	// State is the State of the Ask that is answered, nil without one.
	State []byte
	// Nonce is the hex SHA-256 of the round's nonce, empty when no state came back. Every Ask has another one. Written in the act's own
	// transaction it makes the act happen once.
	Nonce string
	// Asked is when the Ask was answered, Expires when its state stops being accepted.
	Asked, Expires time.Time

	kinds   map[string]questionKind // what was asked, by the verified state; nil without one
	answers map[string][]byte       // raw; only those that were asked when kinds is known
}

// Verified reports whether the answers belong to an Ask of this server for this caller, method, name and arguments.
func (in *Input) Verified() bool { return in != nil && in.Nonce != "" }

// answer returns the raw answer to a question, nil when there is none. An answer to a question of another kind is none either.
func (in *Input) answer(key string, k questionKind) []byte {
	if in == nil || in.kinds != nil && in.kinds[key] != k {
		return nil
	}
	return in.answers[key]
}

// Action is what a user did with a question.
type Action uint8

// The actions. Missing is the zero value: an answer that is not there never counts as a yes.
const (
	Missing   Action = iota // no answer: ask again
	Accepted                // the user agreed and submitted
	Declined                // the user said no
	Cancelled               // the user closed the question without deciding
)

// Elicited is the answer to a form.
type Elicited struct {
	Action Action
	values map[string]Value
}

// Get returns a field's value, and whether it was filled in. There are values only when the form was accepted.
func (e Elicited) Get(name string) (Value, bool) {
	v, ok := e.values[name]
	return v, ok
}

// Text returns the value of a TextField or ChoiceField, empty when it was left out.
func (e Elicited) Text(name string) string { return e.values[name].Text }

// Bool returns the value of a BooleanField, false when it was left out.
func (e Elicited) Bool(name string) bool { return e.values[name].Bool }

// Form reads the answer to AskForm(key, _, f). What is accepted is whole: all required fields, each within its bounds; fields that the form
// does not have are ignored. ErrAnswer: the client sent something else.
func (in *Input) Form(key string, f Form) (Elicited, error) {
	raw := in.answer(key, kindForm)
	action, err := readAction(key, raw)
	if err != nil || action != Accepted {
		return Elicited{Action: action}, err
	}
	content, times := member(raw, "content")
	if times > 1 || times == 1 && !isObject(content) {
		return Elicited{}, malformedAnswer(key, "content must be an object")
	}
	e := Elicited{Action: Accepted, values: make(map[string]Value, len(f))}
	for _, field := range f {
		value, times := member(content, field.Name)
		switch {
		case times > 1:
			return Elicited{}, malformedAnswer(key, field.Name+" occurs twice")
		case times == 0 && field.Required:
			return Elicited{}, malformedAnswer(key, field.Name+" is missing")
		case times == 0:
			continue
		}
		v, ok := field.read(value)
		if !ok {
			return Elicited{}, malformedAnswer(key, field.Name+" is not what was asked for")
		}
		e.values[field.Name] = v
	}
	return e, nil
}

// URL reads the answer to AskURL(key, ...).
func (in *Input) URL(key string) (Action, error) {
	return readAction(key, in.answer(key, kindURL))
}

// Sampled is what a model answered.
type Sampled struct {
	Role       string
	Model      string
	StopReason string
	Text       string // of all text blocks
	Content    []byte // raw: a block or an array of blocks; valid until the call returns
}

// Model reads the answer to AskModel(key, ...); false: there is none.
func (in *Input) Model(key string) (Sampled, bool, error) {
	raw := in.answer(key, kindModel)
	if raw == nil {
		return Sampled{}, false, nil
	}
	if err := checkAnswer(key, kindModel, raw); err != nil {
		return Sampled{}, false, err
	}
	s := Sampled{Content: soleMember(raw, "content")}
	s.Role = string(unquote(soleMember(raw, "role")))
	s.Model = string(unquote(soleMember(raw, "model")))
	s.StopReason = string(unquote(soleMember(raw, "stopReason")))
	var text strings.Builder
	block := func(b []byte) {
		if string(unquote(soleMember(b, "type"))) == "text" {
			text.Write(unquote(soleMember(b, "text")))
		}
	}
	block(s.Content)
	eachElement(s.Content, block)
	s.Text = text.String()
	return s, true, nil
}

// Root is a root of the client.
type Root struct{ URI, Name string }

// Roots reads the answer to AskRoots(key); false: there is none.
func (in *Input) Roots(key string) ([]Root, bool, error) {
	raw := in.answer(key, kindRoots)
	if raw == nil {
		return nil, false, nil
	}
	if err := checkAnswer(key, kindRoots, raw); err != nil {
		return nil, false, err
	}
	roots := []Root{}
	eachElement(soleMember(raw, "roots"), func(r []byte) {
		roots = append(roots, Root{string(unquote(soleMember(r, "uri"))), string(unquote(soleMember(r, "name")))})
	})
	return roots, true, nil
}

// readAction reads the action of an elicitation's answer.
func readAction(key string, raw []byte) (Action, error) {
	if raw == nil {
		return Missing, nil
	}
	switch string(unquote(soleMember(raw, "action"))) {
	case "accept":
		return Accepted, nil
	case "decline":
		return Declined, nil
	case "cancel":
		return Cancelled, nil
	}
	return Missing, malformedAnswer(key, "action must be accept, decline or cancel")
}

// checkAnswer holds a raw answer against what its question asks for: ElicitResult, CreateMessageResult or ListRootsResult.
func checkAnswer(key string, k questionKind, raw []byte) error {
	switch k {
	case kindForm, kindURL:
		_, err := readAction(key, raw)
		return err
	case kindModel:
		role := string(unquote(soleMember(raw, "role")))
		content := soleMember(raw, "content")
		if role != "user" && role != "assistant" || !isText(soleMember(raw, "model")) || !areBlocks(content) {
			return malformedAnswer(key, "role, model and content are needed")
		}
	case kindRoots:
		roots := soleMember(raw, "roots")
		ok := len(roots) > 0 && roots[0] == '['
		eachElement(roots, func(r []byte) { ok = ok && isText(soleMember(r, "uri")) })
		if !ok {
			return malformedAnswer(key, "roots must be an array of roots")
		}
	}
	return nil
}

// areBlocks: one content block, or an array of them.
func areBlocks(content []byte) bool {
	isBlock := func(b []byte) bool { return isText(soleMember(b, "type")) }
	if len(content) == 0 || content[0] != '[' {
		return isBlock(content)
	}
	ok := true
	eachElement(content, func(b []byte) { ok = ok && isBlock(b) })
	return ok
}

// malformedAnswer names the question by the server's own key and what is wrong in the server's own words: nothing of the answer is echoed.
func malformedAnswer(key, what string) error {
	return answerError{key, what}
}
