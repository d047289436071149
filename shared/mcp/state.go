package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

const (
	// stateLife is how long an answer is accepted.
	stateLife = 5 * time.Minute
	// stateTold is how long a caller is told that its state is over and not that it does not verify: the token outlives the state.
	stateTold = time.Hour
	// maxState bounds in bytes what a handler may seal: the token travels twice.
	maxState = 4 << 10
	// maxAnswers bounds the members of inputResponses.
	maxAnswers = 64
)

// round is what requestState holds, sealed for the caller's grant (MCP 2026-07-28, multi round-trip requests, "Server Requirements": principal,
// expiry and originating request SHOULD be verified). Its method, name and arguments keep a person's word for one request from being spent on
// another. Added fields must leave states of the running five minutes valid.
type round struct {
	Method  string                  `json:"m"`
	Name    []byte                  `json:"n"` // SHA-256 of the name or URI, which may be long
	Digest  []byte                  `json:"a"` // of the canonical arguments
	Version Version                 `json:"v"`
	Asked   int64                   `json:"t"` // Unix seconds
	Nonce   []byte                  `json:"x"`
	Kinds   map[string]questionKind `json:"k"`
	State   []byte                  `json:"s,omitempty"`
}

// input reads inputResponses and requestState, nil when there is neither: a first round. A state that does not verify in every respect ends the
// request.
func (s *Server) input(x *exchange, name string) (*Input, *reply) {
	f := &x.frame
	if f.answers == nil && f.state == nil || !x.version.Stateless() {
		return nil, nil //nolint:nilnil // a first round is the common case, not a fault
	}
	in := &Input{}
	if f.state != nil {
		r, refused := s.openState(x, name)
		if refused != nil {
			return nil, refused
		}
		nonce := sha256.Sum256(r.Nonce)
		in.State, in.Nonce, in.kinds = r.State, hex.EncodeToString(nonce[:]), r.Kinds
		in.Asked = time.Unix(r.Asked, 0)
		in.Expires = in.Asked.Add(stateLife)
	}
	if f.answers == nil {
		return in, nil
	}
	if err := in.take(f.answers); err != nil {
		return nil, malformedInput(err)
	}
	return in, nil
}

// openState verifies requestState. The reason says which respect was at fault only of a state that this caller was given.
func (s *Server) openState(x *exchange, name string) (*round, *reply) {
	const again = ": call again without it"
	f := &x.frame
	if !isText(f.state) {
		return nil, badParams("Invalid params: requestState must be a string")
	}
	invalid := badParamsFor("invalid_state", "Invalid params: requestState does not verify"+again)
	if s.sealer == nil {
		return nil, invalid
	}
	plain, err := s.sealer.Open(string(unquote(f.state)), binding(purposeState, x.caller.GrantID()))
	if err != nil {
		return nil, invalid
	}
	r := &round{}
	if err := json.Unmarshal(plain, r); err != nil || len(r.Nonce) == 0 || r.Kinds == nil {
		return nil, invalid
	}
	own, called := digest(f.arguments), sha256.Sum256([]byte(name))
	switch {
	case s.now().Sub(time.Unix(r.Asked, 0)) >= stateLife:
		return nil, badParamsFor("expired_state", "Invalid params: requestState has expired"+again)
	case r.Method != x.method.name || !bytes.Equal(r.Name, called[:]) || r.Version != x.version:
		return nil, badParamsFor("other_request", "Invalid params: requestState belongs to another request"+again)
	case !bytes.Equal(r.Digest, own[:]): // both are known to the caller: nothing to time
		return nil, badParamsFor("other_arguments", "Invalid params: requestState belongs to other arguments"+again)
	}
	return r, nil
}

// take reads inputResponses. Answers that nobody asked for are ignored (MCP 2026-07-28, multi round-trip requests, "Error Handling").
func (in *Input) take(raw []byte) error {
	if !isObject(raw) {
		return answerError{"", "inputResponses must be an object"}
	}
	in.answers = map[string][]byte{}
	var err error
	count := 0
	eachMember(raw, func(name, value []byte) {
		key := string(name)
		count++
		kind := in.kinds[key]
		switch _, twice := in.answers[key]; {
		case err != nil:
		case count > maxAnswers:
			err = answerError{"", "inputResponses has too many members"}
		case twice:
			err = answerError{key, "it occurs twice"}
		case in.kinds != nil && kind == 0:
		default:
			err = checkAnswer(key, kind, value)
			in.answers[key] = value
		}
	})
	return err
}

// answerError is an ErrAnswer whose text may be shown.
type answerError struct{ key, what string }

func (e answerError) Error() string        { return ErrAnswer.Error() + ": " + e.public() }
func (e answerError) Is(target error) bool { return target == ErrAnswer } //nolint:errorlint // the contract of Is

func (e answerError) public() string {
	if e.key == "" {
		return e.what
	}
	return "answer to " + cut(e.key, maxEchoed) + ": " + e.what
}

func malformedInput(err error) *reply {
	message := "Invalid params: malformed answer"
	if e, ok := errors.AsType[answerError](err); ok {
		message = "Invalid params: " + e.public()
	}
	return badParamsFor("malformed_answer", message)
}

// handlerFailure answers an error of a handler that may ask. It is the one way in which a question leaves.
func (s *Server) handlerFailure(x *exchange, name string, err error) *reply {
	if ask, ok := errors.AsType[*Ask](err); ok {
		return s.ask(x, name, ask)
	}
	if errors.Is(err, ErrAnswer) {
		return malformedInput(err)
	}
	if errors.Is(err, ErrTaskOnly) {
		return noTasks()
	}
	if e, ok := errors.AsType[*ParamsError](err); ok {
		return e.reply()
	}
	return s.failure(x, err)
}

func (e *ParamsError) reply() *reply {
	r := badParams(e.Message)
	r.data = appendKind(nil, r.kind)
	if e.Reason != "" {
		r.data = appendQuoted(append(r.data, `,"reason":`...), e.Reason)
	}
	return withFacts(r, e.Facts)
}

// ask answers input_required, or that this client can't be asked.
func (s *Server) ask(x *exchange, name string, a *Ask) *reply {
	switch x.method.name {
	case "tools/call", "prompts/get", "resources/read": // MCP 2026-07-28, multi round-trip requests: MUST NOT on any other
	default:
		return s.internal(x, errors.New("mcp: "+x.method.name+" can't ask"))
	}
	if !x.version.Stateless() {
		reason := a.Reason
		if reason == "" {
			reason = "input_required"
		}
		return badParamsFor(reason, cannotAsk(a))
	}
	need, err := a.check()
	if err != nil {
		return s.internal(x, err)
	}
	if have := declared(x.frame.capabilities); !have.have(need) {
		return missingCapability(a, need&^have, have)
	}
	token, err := s.sealState(x, name, a)
	if err != nil {
		return s.internal(x, err)
	}
	x.asked = true
	x.open()
	x.out = append(x.out, `"resultType":"input_required"`...)
	if len(a.Questions) > 0 {
		x.out = append(appendQuestions(append(x.out, `,"inputRequests":{`...), a.Questions), '}')
	}
	x.out = appendQuoted(append(x.out, `,"requestState":`...), token)
	return s.rendered(x, s.closeMeta(x, nil))
}

// appendQuestions writes the members of inputRequests.
func appendQuestions(dst []byte, questions []Question) []byte {
	for i, q := range questions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendQuoted(append(appendQuoted(dst, q.key), `:{"method":`...), q.method)
		dst = append(append(append(dst, `,"params":`...), q.params...), '}')
	}
	return dst
}

// check finds faults of the handler.
func (a *Ask) check() (Needs, error) {
	var need Needs
	if len(a.Questions) == 0 && a.State == nil || len(a.Questions) > maxAnswers || len(a.State) > maxState {
		return 0, fmt.Errorf("mcp: an Ask of %d questions and %d bytes of state", len(a.Questions), len(a.State))
	}
	keys := map[string]bool{}
	for _, q := range a.Questions {
		switch {
		case q.kind == 0 || q.key == "" || keys[q.key]:
			return 0, fmt.Errorf("mcp: question %q has no key of its own", q.key)
		case q.fault != nil:
			return 0, fmt.Errorf("mcp: question %q: %w", q.key, q.fault)
		}
		keys[q.key] = true
		need |= q.needs
	}
	return need, nil
}

func (s *Server) sealState(x *exchange, name string, a *Ask) (string, error) {
	if s.sealer == nil {
		return "", errors.New("mcp: asking needs a Sealer")
	}
	sum, called := digest(x.frame.arguments), sha256.Sum256([]byte(name))
	r := round{
		Method: x.method.name, Name: called[:], Digest: sum[:], Version: x.version, Asked: s.now().Unix(),
		Nonce: make([]byte, 16), Kinds: make(map[string]questionKind, len(a.Questions)), State: a.State,
	}
	if _, err := io.ReadFull(s.rand, r.Nonce); err != nil {
		return "", fmt.Errorf("mcp: read a nonce: %w", err)
	}
	for _, q := range a.Questions {
		r.Kinds[q.key] = q.kind
	}
	plain, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	return s.sealer.Seal(plain, binding(purposeState, x.caller.GrantID()), stateTold)
}

// missingCapability: MCP 2026-07-28 basic, "_meta": MUST be -32021 and 400.
func missingCapability(a *Ask, missing, have Needs) *reply {
	r := refusal(http.StatusBadRequest, codeMissingCapability, apperr.Invalid, "The client did not declare a capability that this request needs")
	r.data = appendRequired(nil, missing, have)
	if a.Reason != "" {
		r.data = appendQuoted(append(r.data, `,"reason":`...), a.Reason)
	}
	return r
}

// cannotAsk tells a client of the 2025 era why a handler that asks has no result. Handlers that look at CanAsk say it better.
func cannotAsk(a *Ask) string {
	text := "This request needs an answer from the user, and the server can ask only clients of revision 2026-07-28. Nothing was done."
	if a.Reason != "" {
		text = a.Reason + ": " + text
	}
	return text
}
