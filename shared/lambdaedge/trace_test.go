package lambdaedge

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/buzon-mail/buzon/shared/tracecontext"
)

// TestTraceOfTheDoor: X-Amzn-Trace-Id puts the request into AWS's trace; what is malformed puts it nowhere and harms nothing.
func TestTraceOfTheDoor(t *testing.T) {
	for header, want := range map[string]string{
		"Root=1-5759e988-bd862e3fe1be46a994272793": "5759e988bd862e3fe1be46a994272793",
		"Root=1-x": "",
		"":         "",
	} {
		got := "unset"
		h := New(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = tracecontext.From(r.Context()).TraceID }), Options{Logger: quiet()})
		r := invoke(t, h, get(func(e *events.APIGatewayV2HTTPRequest) { e.Headers["x-amzn-trace-id"] = header }))
		if r.StatusCode != 200 || got != want {
			t.Errorf("%q: %d, trace %q, want %q", header, r.StatusCode, got, want)
		}
	}
}

// TestTraceOfMessages: a message stands in its sender's trace, and its neighbour does not.
func TestTraceOfMessages(t *testing.T) {
	traces := map[string]string{}
	tr := NewTriggers(TriggerOptions{Logger: quiet(), Message: func(ctx context.Context, m Message) error {
		traces[m.ID] = tracecontext.From(ctx).TraceID
		return nil
	}})
	const record = `{"messageId":"ID","body":"{}","eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:eu-west-1:1:q","attributes":{TRACE}}`
	first := strings.NewReplacer("ID", "a", "TRACE", `"AWSTraceHeader":"Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8"`).Replace(record)
	second := strings.NewReplacer("ID", "b", "TRACE", "").Replace(record)
	if _, err := tr.Invoke(t.Context(), []byte(`{"Records":[`+first+","+second+`]}`)); err != nil {
		t.Fatal(err)
	}
	if len(traces) != 2 || traces["a"] != "5759e988bd862e3fe1be46a994272793" || traces["b"] != "" {
		t.Errorf("%v", traces)
	}
}
