package config

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
)

func TestUpstream(t *testing.T) {
	good := map[string]string{
		varOIDCIssuer: "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_x", varOIDCClient: "id", varOIDCSecret: "hush-hush",
		varOIDCAllow: "@acme.test, guest@example.com", varOIDCName: "Acme",
	}
	load := func(changes map[string]string) (*Local, error) {
		env := maps.Clone(good)
		maps.Copy(env, changes)
		return LoadLocal(func(name string) string { return env[name] })
	}
	c, err := load(nil)
	if err != nil || c.Upstream == nil || len(c.Upstream.Allow) != 2 || c.Upstream.Secret.Reveal() != "hush-hush" {
		t.Fatalf("%+v, %v", c, err)
	}
	if text := fmt.Sprintf("%+v %v", *c.Upstream, c.Upstream.Secret); strings.Contains(text, "hush") {
		t.Errorf("the secret is printed: %s", text)
	}
	if c, err := LoadLocal(func(string) string { return "" }); err != nil || c.Upstream != nil {
		t.Errorf("without variables: %+v, %v", c, err)
	}
	for name, changes := range map[string]map[string]string{
		varOIDCIssuer:               {varOIDCIssuer: ""},
		varOIDCClient:               {varOIDCClient: ""},
		varOIDCSecret:               {varOIDCSecret: ""},
		varOIDCAllow:                {varOIDCAllow: ""},
		varOIDCIssuer + " http":     {varOIDCIssuer: "http://login.example"},
		varOIDCIssuer + " text":     {varOIDCIssuer: "login.example"},
		varOIDCIssuer + " query":    {varOIDCIssuer: "https://login.example/?x"},
		varOIDCIssuer + " password": {varOIDCIssuer: "https://u:hush-hush@login.example"},
		varOIDCAllow + " everybody": {varOIDCAllow: "*"},
		varOIDCAllow + " no domain": {varOIDCAllow: "ana@"},
	} {
		_, err := load(changes)
		problems, ok := errors.AsType[Problems](err)
		if !ok || len(problems) != 1 || problems[0].Variable != strings.Fields(name)[0] || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
