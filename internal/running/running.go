// Package running starts the local process inside a test.
package running

import (
	"context"
	"io"
	"maps"
	"testing"

	"github.com/buzon-mail/buzon/shared/app/local"
	"github.com/buzon-mail/buzon/shared/config"
)

// Serve runs the service with the demo in a folder, on ports of the system's choice and with env over that, until the test ends. The
// channel has why it ended; whoever takes that out before the end of the test puts it back.
func Serve(t testing.TB, dir string, env map[string]string) (ended chan error) {
	t.Helper()
	all := map[string]string{"BUZON_HTTP_ADDR": "127.0.0.1:0", "BUZON_SMTP_ADDR": "127.0.0.1:0", "BUZON_DATA_DIR": dir, "BUZON_DEMO": "1"}
	maps.Copy(all, env)
	cfg, err := config.LoadLocal(func(name string) string { return all[name] })
	if err != nil {
		t.Fatal(err)
	}
	service, err := local.New(cfg, local.Options{Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended = make(chan error, 1)
	go func() { ended <- service.Run(ctx, io.Discard) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the service ended: %v", err)
		}
	})
	return ended
}
