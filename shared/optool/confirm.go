package optool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/op"
)

const (
	// confirmKey names the one question, and its one field.
	confirmKey = "confirm"
	// purpose keeps this state apart from any other that a handler of this program seals for the same caller.
	purpose = "optool/confirm/1"
	// rounds bounds how often one call looks anew at a target that others keep changing.
	rounds = 3
)

// confirmForm is what a person fills in. The box is empty before they touch it.
//
//nolint:gochecknoglobals // constant
var confirmForm = mcp.Form{{
	Name: confirmKey, Title: "Yes, do it", Type: mcp.BooleanField, Required: true, Default: &mcp.Value{},
}}

// sealed is the state of a question: what mcp does not bind by itself. That seals grant, tool, arguments, time and nonce.
type sealed struct {
	Purpose   string            `json:"p"`
	Person    string            `json:"s"`
	Client    string            `json:"c"`
	Workspace string            `json:"w"`
	Targets   map[string]string `json:"t"`
}

// confirmed runs a destructive operation. Without a yes the operation is asked first what a person must be asked; arguments that
// need no question run at once, for clients that can't be asked too. With a yes it acts, and itself compares the targets. A yes
// that does not fit the present state is put aside, and the question is asked anew with the facts of now.
func (t *Tools) confirmed(ctx context.Context, own *tool, p *plan, c *call, r *mcp.CallRequest) (*mcp.CallResult, error) {
	state := t.stateOf(own, op.CallerFrom(ctx), r.Header)
	yes, refused, err := t.heard(ctx, state, r)
	if refused != nil || err != nil {
		return refused, err
	}
	for range rounds {
		if yes == nil {
			q, refused, err := t.inquire(ctx, own, p, c, r.Header)
			if refused != nil || err != nil {
				return refused, err
			}
			if q != nil {
				return t.ask(ctx, own, state, q, r)
			}
		}
		rec := t.run(op.WithConfirmation(ctx, yes), own, p, c, r.Header)
		switch e := rec.failure; {
		case e == nil:
			return t.answer(own, c, rec)
		case e.Code == op.CodeDone:
			rec.release()
			return nil, done(e)
		case e.Code != op.CodeChanged && e.Code != op.CodeUnconfirmed:
			return t.answer(own, c, rec)
		}
		rec.release()
		yes = nil
	}
	return t.refuse(ctx, apperr.New(apperr.Conflict, "busy", "Others are changing the same thing right now. Nothing was done.",
		"Repeat the call.")), nil
}

// stateOf is what a question's state binds beside its targets.
func (t *Tools) stateOf(own *tool, caller *op.Caller, h http.Header) sealed {
	s := sealed{Purpose: purpose, Person: caller.Subject, Client: caller.Client}
	if own.op.AnyTenant {
		return s
	}
	named := ""
	if values := h[t.options.WorkspaceHeader]; len(values) > 0 {
		named = values[0]
	}
	if w, err := caller.Workspace(named); err == nil { // else the route says what is wrong, on every path
		s.Workspace = w.ID
	}
	return s
}

// heard reads the answer to a question: a yes, a refusal to show, or neither when nothing was asked or answered yet.
func (t *Tools) heard(ctx context.Context, want sealed, r *mcp.CallRequest) (*op.Confirmation, *mcp.CallResult, error) {
	if !r.Input.Verified() {
		return nil, nil, nil // answers that nobody was asked for are worth nothing
	}
	var got sealed
	if err := json.Unmarshal(r.Input.State, &got); err != nil || len(got.Targets) == 0 || got.Purpose != want.Purpose ||
		got.Person != want.Person || got.Client != want.Client || got.Workspace != want.Workspace {
		return nil, nil, &mcp.ParamsError{
			Reason: "invalid_state", Message: "Invalid params: requestState does not verify: call again without it",
		}
	}
	answer, err := r.Input.Form(confirmKey, confirmForm)
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // mcp.ErrAnswer with a text for the client
	}
	switch {
	case answer.Action == mcp.Missing:
		return nil, nil, nil
	case answer.Action == mcp.Accepted && answer.Bool(confirmKey):
		return &op.Confirmation{NonceHash: r.Input.Nonce, Targets: got.Targets, Expires: r.Input.Expires}, nil, nil
	}
	return nil, t.refuse(ctx, declined(answer.Action)), nil
}

func declined(a mcp.Action) error {
	how := "The person declined. Nothing was done."
	if a == mcp.Cancelled {
		how = "The person closed the question without an answer. Nothing was done."
	}
	return apperr.New(apperr.Conflict, "declined", how, "Do not repeat the call unless the person asks for it again.")
}

// inquire asks the operation, through its route, what a person must be asked; neither question nor refusal: nothing.
func (t *Tools) inquire(
	ctx context.Context, own *tool, p *plan, c *call, client http.Header,
) (*op.Question, *mcp.CallResult, error) {
	var i op.Inquiry
	rec := t.run(op.WithInquiry(ctx, &i), own, p, c, client)
	if i.Answered {
		rec.release()
		return i.Question, nil, nil
	}
	if i.Replayed { // it was confirmed and done before, under the same idempotency key
		replayed, err := t.answer(own, c, rec)
		return nil, replayed, err
	}
	if rec.status < http.StatusMultipleChoices {
		status := rec.status
		rec.release()
		return nil, nil, fmt.Errorf("tool %s: the route answered %d and no inquiry", own.op.Name, status)
	}
	refused, err := t.answer(own, c, rec)
	return nil, refused, err
}

// ask puts the question to the person, or says that it can't be put. It comes after scope, role, tenant and input, so that
// nobody is asked about a call that would be refused.
func (t *Tools) ask(
	ctx context.Context, own *tool, s sealed, q *op.Question, r *mcp.CallRequest,
) (*mcp.CallResult, error) {
	if !r.Version.Stateless() {
		return t.refuse(ctx, unconfirmed(own.op)), nil
	}
	message, err := q.Message()
	if err != nil {
		return nil, fmt.Errorf("question of %s: %w", own.op.Name, err)
	}
	s.Targets = q.Targets
	state, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("question of %s: %w", own.op.Name, err)
	}
	// A client without elicitation gets -32021 from mcp, with this reason.
	return nil, &mcp.Ask{
		Questions: []mcp.Question{mcp.AskForm(confirmKey, message, confirmForm)}, State: state, Reason: op.CodeUnconfirmed,
	}
}

// unconfirmed is the answer to clients that nobody can be asked through. It runs nothing.
func unconfirmed(o *op.Operation) error {
	return apperr.New(apperr.Conflict, op.CodeUnconfirmed,
		o.Title+": this act needs the confirmation of a person, which can't be asked for over this connection. Nothing was done.",
		"Do not repeat this call: it will be answered the same way.",
		"Ask the person to do it: "+o.Method+" "+o.Path+" of the HTTP API.")
}

// done answers a yes that was used before. It is no result: the client repeats a request that has had its answer.
func done(e *apperr.Error) error {
	fault := &mcp.ParamsError{
		Reason: op.CodeDone, Message: "Invalid params: this confirmation was used already, and what it confirmed was done",
	}
	if outcome, ok := errors.AsType[op.Outcome](e); ok {
		fault.Facts = map[string]string{"id": outcome.Outcome()}
	}
	return fault
}
