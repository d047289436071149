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

// TestDeployedUpstream: a function gets the secret's name, and never the secret.
func TestDeployedUpstream(t *testing.T) {
	const name = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:buzon-oidc-AbCdEf"
	good := map[string]string{
		varLambda: "on-demand", varRegion: "eu-west-1", varKeyID: "A", varSecret: "s", varCoreTable: "core", varEphemeralTable: "ephemeral", varBucket: "mail-bucket",
		varRootSecrets: "roots", varKeySet: "keys",
		varOIDCIssuer: "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_x", varOIDCClient: "id", varOIDCSecretName: name, varOIDCAllow: "@acme.test",
	}
	load := func(changes map[string]string) (*API, error) {
		env := maps.Clone(good)
		maps.Copy(env, changes)
		return LoadAPI(func(name string) string { return env[name] })
	}
	c, err := load(nil)
	if err != nil || c.Upstream == nil || c.Upstream.Secret.Reveal() != name {
		t.Fatalf("%+v, %v", c, err)
	}
	none := map[string]string{varOIDCIssuer: "", varOIDCClient: "", varOIDCSecretName: "", varOIDCAllow: ""}
	if c, err := load(none); err != nil || c.Upstream != nil {
		t.Errorf("without variables: %+v, %v", c, err)
	}
	emulated := maps.Clone(good)
	emulated[varLambda], emulated[varEmulator] = "", "1"
	if c, err := LoadAPI(func(name string) string { return emulated[name] }); err != nil || c.Upstream != nil {
		t.Errorf("emulated: %+v, %v", c, err)
	}
	for name, changes := range map[string]map[string]string{
		varOIDCSecret:                   {varOIDCSecret: "hush-hush"},
		varOIDCSecretName + " missing":  {varOIDCSecretName: ""},
		varOIDCSecretName + " a secret": {varOIDCSecretName: "hush hush!"},
		varOIDCIssuer + " plain text":   {varOIDCIssuer: "http://login.example"},
		varOIDCAllow + " everybody":     {varOIDCAllow: "*"},
	} {
		_, err := load(changes)
		problems, ok := errors.AsType[Problems](err)
		if !ok || len(problems) != 1 || problems[0].Variable != strings.Fields(name)[0] || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
