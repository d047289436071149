package rest

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/buzon-mail/buzon/shared/op"
)

// binding is what Define leaves in an operation: the typed handler, closed over, in the form in which huma takes it. The output is
// opaque to huma: serving builds no schema of it, and huma's Register, which the linker holds once for each pair of types, is there
// once for each operation. The describer reads the output by reflection.
type binding struct {
	register func(api huma.API, o huma.Operation)
}

// nothing is the output that huma sees: results and errors pass it by, in the call.
type nothing struct{}

// Define makes an operation from its declaration and the function that serves it. Fields of I carry huma's tags (path,
// query, header), the field Body is the JSON body; cookies and forms are not read. O has a field Body, may have Status (an
// int; 0 is the declared one), and fields with a header tag (string, int, time.Time, fmt.Stringer; empty: not sent). The
// handler finds caller and workspace in its context (op.CallerFrom, op.TenantFrom). An input that embeds Key or RequiredKey takes an
// idempotency key: the route looks it up before anything else, and the service writes op.IdempotencyKeyFrom in the transaction of
// the act. An operation with op.Spec.Job returns what Started makes. What it returns belongs to the route from
// then on: a nil slice that is a member of Body becomes an empty one, so that a list is never null.
func Define[I, O any](spec op.Spec, handle func(context.Context, *I) (*O, error)) op.Operation {
	return define(spec, nil, handle)
}

// DefineDestructive is Define for an operation that a person may have to confirm first. question gets the same input and
// context as handle and says what to ask; nil when these arguments need no question. It changes nothing. It is asked for
// in-process callers only (op.Inquiry); what it reads can change before the act, so handle compares op.ConfirmationFrom itself.
func DefineDestructive[I, O any](
	spec op.Spec, question func(context.Context, *I) (*op.Question, error), handle func(context.Context, *I) (*O, error),
) op.Operation {
	return define(spec, question, handle)
}

func define[I, O any](
	spec op.Spec, question func(context.Context, *I) (*op.Question, error), handle func(context.Context, *I) (*O, error),
) op.Operation {
	switch {
	case spec.Status != 0:
	case spec.Job:
		spec.Status = http.StatusAccepted
	default:
		spec.Status = http.StatusOK
	}
	return op.Operation{
		Spec:    spec,
		Input:   reflect.TypeFor[I](),
		Output:  reflect.TypeFor[O](),
		Asks:    question != nil,
		Binding: &binding{func(api huma.API, o huma.Operation) { huma.Register(api, o, pass(question, handle)) }},
	}
}

// pass runs the handler, or answers the inquiry of the context, and leaves what came of it in the call.
func pass[I, O any](
	question func(context.Context, *I) (*op.Question, error), handle func(context.Context, *I) (*O, error),
) func(context.Context, *I) (*nothing, error) {
	return func(ctx context.Context, in *I) (*nothing, error) {
		c := ctx.(*carrier).call // huma hands on what call.Context returned
		if done, err := c.begin(in); done || err != nil {
			c.err = err
			return nil, nil //nolint:nilnil // as below
		}
		if inquiry := op.InquiryFrom(c.ctx); inquiry != nil {
			inquiry.Question, c.err = question(c.ctx, in)
			inquiry.Answered = c.err == nil
			return nil, nil //nolint:nilnil // as below
		}
		out, err := handle(c.ctx, in)
		if out != nil {
			c.out = out
		}
		c.err = err
		return nil, nil //nolint:nilnil // huma then writes nothing
	}
}
