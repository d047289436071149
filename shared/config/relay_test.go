package config_test

import (
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/config"
)

func TestRelay(t *testing.T) {
	load := func(v string) (*config.Local, error) {
		return config.LoadLocal(func(name string) string {
			if name == "BUZON_SMTP_RELAY" {
				return v
			}
			return ""
		})
	}
	for v, want := range map[string]config.Relay{
		"smtps://me:s3cret@relay.test":              {Host: "relay.test", Port: 465, Implicit: true, User: "me", Password: "s3cret"},
		"smtps://me%40x.test:a%2Fb@relay.test:4650": {Host: "relay.test", Port: 4650, Implicit: true, User: "me@x.test", Password: "a/b"},
		"smtp+starttls://relay.test":                {Host: "relay.test", Port: 587},
		"smtp://localhost:1025":                     {Host: "localhost", Port: 1025, Plain: true},
		"smtp://127.0.0.1/":                         {Host: "127.0.0.1", Port: 25, Plain: true},
	} {
		c, err := load(v)
		if err != nil || c.Relay == nil || *c.Relay != want {
			t.Errorf("%s: %v, %v", v, c, err)
		}
	}
	if c, err := load(""); err != nil || c.Relay != nil {
		t.Errorf("none: %v", err)
	}
	for _, v := range []string{
		"relay.test:25", "smtp://me:s3cret@relay.test", "smtp://relay.test:25", "http://me:s3cret@relay.test", "smtps://", "smtps://me:s3cret@relay.test:0",
		"smtps://me:s3cret@relay.test:99999", "smtps://me@relay.test", "smtps://:s3cret@relay.test", "smtps://me:s3cret@relay.test/x", "smtps://me:s3cret@relay.test?tls=no",
		"smtps://me:s3cret@relay.test#x", "smtp://127.0.0.1.relay.test", "smtps://me:s3c%zzret@relay.test",
	} {
		_, err := load(v)
		if err == nil || !strings.Contains(err.Error(), "BUZON_SMTP_RELAY") || strings.Contains(err.Error(), "s3c") {
			t.Errorf("%s: %v", v, err)
		}
	}
}
