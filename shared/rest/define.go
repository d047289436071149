package rest

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/buzon-mail/buzon/shared/op"
)

// binding is what Define leaves in an operation: the typed handler, closed over, in the two forms in which huma takes it.
type binding struct {
	// serve registers the operation for serving only: the output is opaque, so no output schema is built.
	serve func(api huma.API, o huma.Operation, failed failure)
	// describe registers the operation with its full schemas, for documents.
	describe func(api huma.API, o huma.Operation)
}

// failure turns the error of a handler into what huma writes.
type failure func(ctx context.Context, err error) error

// Define makes an operation from its declaration and the function that serves it. Fields of I carry huma's tags (path,
// query, header), the field Body is the JSON body. O has a field Body, may have Status, and header fields with a header tag.
// The handler finds caller and workspace in its context (op.CallerFrom, op.TenantFrom).
func Define[I, O any](spec op.Spec, handle func(context.Context, *I) (*O, error)) op.Operation {
	if spec.Status == 0 {
		spec.Status = http.StatusOK
	}
	return op.Operation{
		Spec:   spec,
		Input:  reflect.TypeFor[I](),
		Output: reflect.TypeFor[O](),
		Binding: &binding{
			serve: func(api huma.API, o huma.Operation, failed failure) {
				huma.Register(api, o, func(ctx context.Context, in *I) (*O, error) {
					out, err := handle(ctx, in)
					if err != nil {
						return nil, failed(ctx, err)
					}
					return out, nil
				})
			},
			describe: func(api huma.API, o huma.Operation) { huma.Register(api, o, handle) },
		},
	}
}
