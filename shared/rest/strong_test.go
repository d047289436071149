package rest_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/op"
)

// TestDestructiveOperationsReadTheCallerAnew: what was true half a minute ago deletes nothing now, and costs reads nothing.
func TestDestructiveOperationsReadTheCallerAnew(t *testing.T) {
	gone := apperr.New(apperr.Unauthenticated, "invalid_token", "Revoked.")
	for name, c := range map[string]struct {
		method, path, body string
		change             func(*op.Caller) // what the second look finds
		err                error
		status, looks      int
		acts               int64
	}{
		"a read of a revoked grant":   {http.MethodGet, "/api/v1/parcels/" + parcelID, "", nil, gone, 200, 0, 1},
		"a write of a revoked grant":  {http.MethodPut, "/api/v1/parcels", `{"slug":"a"}`, nil, gone, 201, 0, 1},
		"destructive, nothing new":    {http.MethodPost, "/api/v1/parcels/" + parcelID + "/ship", "", func(*op.Caller) {}, nil, 202, 1, 1},
		"destructive, grant revoked":  {http.MethodPost, "/api/v1/parcels/" + parcelID + "/ship", "", nil, gone, 401, 1, 0},
		"destructive, role lowered":   {http.MethodPost, "/api/v1/parcels/" + parcelID + "/ship", "", func(c *op.Caller) { c.Workspaces = []op.Workspace{{ID: workA, Role: op.Viewer}} }, nil, 403, 1, 0},
		"destructive, left workspace": {http.MethodPost, "/api/v1/parcels/" + parcelID + "/ship", "", func(c *op.Caller) { c.Workspaces, c.Default = []op.Workspace{{ID: workB, Role: op.Operator}}, workA }, nil, 404, 1, 0},
		"destructive, store is down":  {http.MethodPost, "/api/v1/parcels/" + parcelID + "/ship", "", nil, apperr.New(apperr.Unavailable, "", "Later."), 503, 1, 0},
		"role raised just now":        {http.MethodDelete, "/api/v1/parcels/" + parcelID, "", func(c *op.Caller) { c.Workspaces = []op.Workspace{{ID: workA, Role: op.Admin}} }, nil, 204, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			known := *w.token["operator"]
			looks := 0
			w.token["operator"].Again = func(context.Context) (*op.Caller, error) {
				looks++
				if c.err != nil {
					return nil, c.err
				}
				now := known
				c.change(&now)
				return &now, nil
			}
			got := w.do(c.method, c.path, "operator", c.body)
			if got.Code != c.status || looks != c.looks || w.calls.Load() != c.acts {
				t.Errorf("status %d, %d looks, %d acts; want %d, %d, %d: %s", got.Code, looks, w.calls.Load(), c.status, c.looks, c.acts, got.Body)
			}
			if got.Code == 401 && got.Header().Get("WWW-Authenticate") == "" {
				t.Error("no challenge")
			}
		})
	}
	t.Run("a token without the scope costs no look", func(t *testing.T) {
		w := newWorld(t)
		w.token["reader"].Again = func(context.Context) (*op.Caller, error) {
			t.Error("looked")
			return nil, gone
		}
		if got := w.do(http.MethodPost, "/api/v1/parcels/"+parcelID+"/ship", "reader", ""); got.Code != 403 {
			t.Errorf("status %d", got.Code)
		}
	})
}
