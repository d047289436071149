package rest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// inside is an in-process caller that keeps the failure.
type inside struct {
	*httptest.ResponseRecorder
	failure *apperr.Error
}

func (i *inside) Failed(e *apperr.Error) { i.failure = e }

// inquire asks the route of an operation what a person must be asked.
func (w *world) inquire(t *testing.T, name, who, id, body string) (*op.Inquiry, *inside) {
	t.Helper()
	o := &op.Inquiry{}
	ctx := op.WithInquiry(op.WithCaller(t.Context(), w.token[who], op.SurfaceMCP), o)
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(body))
	r.SetPathValue("id", id)
	out := &inside{ResponseRecorder: httptest.NewRecorder()}
	w.api.Route(name).ServeHTTP(out, r)
	return o, out
}

func TestInquiry(t *testing.T) {
	w := newWorld(t)
	got, out := w.inquire(t, "parcels_ship", "operator", "a", "")
	if !got.Answered || got.Question == nil || got.Question.Targets["a"] != "1" || out.Code != 204 || out.failure != nil {
		t.Errorf("question: %+v, %d %v", got, out.Code, out.failure)
	}
	got, out = w.inquire(t, "parcels_ship", "operator", "free", "")
	if !got.Answered || got.Question != nil || out.Code != 204 {
		t.Errorf("no question: %+v, %d", got, out.Code)
	}
	if w.calls.Load() != 0 {
		t.Error("an inquiry acted")
	}
}

func TestInquiryIsGuardedAsTheActIs(t *testing.T) {
	w := newWorld(t)
	for name, tt := range map[string]struct {
		operation, who, id, body string
		code                     string
	}{
		"scope":               {"parcels_ship", "reader", "a", "", "insufficient_scope"},
		"role":                {"parcels_delete", "operator", "a", "", "insufficient_role"},
		"tenant":              {"parcels_ship", "two", "a", "", "workspace_required"},
		"no role anywhere":    {"parcels_ship", "nobody", "a", "", "workspace_required"},
		"hostile id":          {"parcels_ship", "operator", "../x", "", "not_found"},
		"a body where no one": {"parcels_ship", "operator", "a", `{"x":1}`, "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			got, out := w.inquire(t, tt.operation, tt.who, tt.id, tt.body)
			if got.Answered || got.Question != nil || out.failure == nil || out.failure.Name() != tt.code || !strings.Contains(out.Body.String(), tt.code) {
				t.Errorf("got %+v, %d %s", got, out.Code, out.Body)
			}
		})
	}
	w.fail = apperr.New(apperr.NotFound, "", "None.")
	if got, out := w.inquire(t, "parcels_ship", "operator", "a", ""); got.Answered || out.Code != 404 {
		t.Errorf("a question that fails: %+v, %d", got, out.Code)
	}
	if w.calls.Load() != 0 {
		t.Error("a handler ran")
	}
}

// An operation without a question must not act because it was asked for one.
func TestInquiryOfWhatAsksNothing(t *testing.T) {
	w := newWorld(t)
	got, out := w.inquire(t, "parcels_get", "operator", "a", "")
	if got.Answered || out.Code != 500 || w.calls.Load() != 0 {
		t.Errorf("got %+v, %d, %d calls", got, out.Code, w.calls.Load())
	}
	if out.failure == nil || out.failure.Kind != apperr.Internal || strings.Contains(out.failure.Error(), "parcels_get") {
		t.Errorf("the text of a fault went to the caller: %v", out.failure)
	}
}

func TestInquiryLetsNothingOut(t *testing.T) {
	outward := &gate{}
	outward.left.Store(1)
	w := newWorld(t, func(d *rest.Deps, _ *rest.Options) { d.Outward = outward })
	for range 3 {
		w.inquire(t, "parcels_ship", "operator", "a", "")
	}
	if outward.left.Load() != 1 {
		t.Error("questions were counted as acts")
	}
}

// A request of the network brings neither a yes nor an inquiry, whatever its context holds.
func TestNetworkRequestsAct(t *testing.T) {
	w := newWorld(t)
	asked := &op.Inquiry{}
	ctx := op.WithInquiry(op.WithConfirmation(t.Context(), &op.Confirmation{NonceHash: "n"}), asked)
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://api.example/api/v1/parcels/a/ship", nil)
	r.Header.Set("Authorization", "Bearer operator")
	out := httptest.NewRecorder()
	w.api.ServeHTTP(out, r)
	if out.Code != 202 || asked.Answered || w.calls.Load() != 1 {
		t.Errorf("%d, %+v, %d calls", out.Code, asked, w.calls.Load())
	}
}
