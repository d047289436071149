package telling_test

import (
	"testing"

	"github.com/buzon-mail/buzon/shared/app/telling"
	"github.com/buzon-mail/buzon/shared/inboxops"
)

// Receivers are told addresses of routes that are there.
func TestBasePath(t *testing.T) {
	if telling.BasePath != inboxops.BasePath {
		t.Errorf("%s, and routes lie at %s", telling.BasePath, inboxops.BasePath)
	}
}
