package config

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// deployedPairs is what the template sets for a function behind a queue.
func deployedPairs(more ...string) []string {
	return append([]string{
		varRegion, "eu-west-1", varKeyID, "ASIAEXAMPLE", varSecret, "key-secret", varCoreTable, "buzon-core", varEphemeralTable, "buzon-ephemeral", varBucket, "buzon-mail-123456789012-eu-west-1",
		varJobsQueue, "https://sqs.eu-west-1.amazonaws.com/123456789012/buzon-jobs", varLambda, "on-demand",
	}, more...)
}

// background loads either function.
func background(name string, e Getenv) (emulated bool, names AWS, err error) {
	if name == "worker" {
		c, err := LoadWorker(e)
		if c == nil {
			return false, AWS{}, err
		}
		return c.Emulated, c.AWS, err
	}
	c, err := LoadInbound(e)
	if c == nil {
		return false, AWS{}, err
	}
	return c.Emulated, c.AWS, err
}

func TestBackgroundFunctions(t *testing.T) {
	want := AWS{
		Region: "eu-west-1", KeyID: "ASIAEXAMPLE", KeySecret: "key-secret", CoreTable: "buzon-core", EphemeralTable: "buzon-ephemeral",
		Bucket: "buzon-mail-123456789012-eu-west-1", JobsQueue: "https://sqs.eu-west-1.amazonaws.com/123456789012/buzon-jobs",
	}
	for _, name := range []string{"worker", "inbound"} {
		for _, more := range [][]string{nil, {varStore, "dynamo"}} {
			emulated, names, err := background(name, env(deployedPairs(more...)...))
			if err != nil || emulated || names != want {
				t.Errorf("%s: %v %+v, %v", name, emulated, names, err)
			}
		}
		emulated, names, err := background(name, underRIE(varEmulator, "1", varCoreTable, "x", varJobsQueue, "bad", varStore, "else"))
		if err != nil || !emulated || names != (AWS{}) {
			t.Errorf("%s emulated: %v %+v, %v", name, emulated, names, err)
		}
	}
}

func TestBackgroundFunctionsRefuse(t *testing.T) {
	tests := []struct {
		name string
		env  Getenv
		want []string
	}{
		{"nothing", env(), []string{varRegion, varKeyID, varSecret, varCoreTable, varEphemeralTable, varBucket, varJobsQueue}},
		{"emulator on Lambda", env(deployedPairs(varEmulator, "1")...), []string{varEmulator}},
		{"SAM's flag on Lambda", env(deployedPairs(varSAMLocal, "1")...), []string{varSAMLocal}},
		{"demo on Lambda", env(deployedPairs(varDemo, "1")...), []string{varDemo}},
		{"embedded on Lambda", env(deployedPairs(varStore, "embedded")...), []string{varStore}},
		{"embedded without emulation", env(deployedPairs(varLambda, "", varStore, "embedded")...), []string{varStore}},
		{"another store", env(deployedPairs(varStore, "postgres")...), []string{varStore}},
		{"one table for both", env(deployedPairs(varEphemeralTable, "buzon-core")...), []string{varEphemeralTable}},
		{"an ARN", env(deployedPairs(varCoreTable, "arn:aws:dynamodb:eu-west-1:123456789012:table/buzon-core")...), []string{varCoreTable}},
		{"a name too short", env(deployedPairs(varBucket, "ab")...), []string{varBucket}},
		{"a name too long", env(deployedPairs(varBucket, strings.Repeat("a", 256))...), []string{varBucket}},
		{"a queue's name", env(deployedPairs(varJobsQueue, "buzon-jobs")...), []string{varJobsQueue}},
		{"a queue in plain text", env(deployedPairs(varJobsQueue, "http://sqs.eu-west-1.amazonaws.com/1/buzon-jobs")...), []string{varJobsQueue}},
		{"a queue with a password", env(deployedPairs(varJobsQueue, "https://u:canary@sqs.example/1/q")...), []string{varJobsQueue}},
		{"a queue with a query", env(deployedPairs(varJobsQueue, "https://sqs.example/1/q?canary")...), []string{varJobsQueue}},
		{"a queue without a path", env(deployedPairs(varJobsQueue, "https://sqs.example/")...), []string{varJobsQueue}},
	}
	for _, tt := range tests {
		for _, function := range []string{"worker", "inbound"} {
			t.Run(function+"/"+tt.name, func(t *testing.T) {
				_, names, err := background(function, tt.env)
				wantProblems(t, err, tt.want...)
				if names != (AWS{}) || strings.Contains(err.Error(), "canary") {
					t.Errorf("%+v beside %v", names, err)
				}
			})
		}
	}
	if c, err := LoadAdmin(env(varRegion, "r", varKeyID, "k", varSecret, "s", varCoreTable, "core", varEphemeralTable, "ephemeral")); err != nil || c.CoreTable != "core" {
		t.Errorf("the command line: %+v, %v", c, err)
	}
	if origin, err := LoadOrigin(env(varPublicURL, "https://mail.example.com")); err != nil || origin != "https://mail.example.com" {
		t.Errorf("LoadOrigin = %q, %v", origin, err)
	}
	for _, bad := range []string{"", "mail.example.com", "https://mail.example.com/x", "http://mail.example.com"} {
		if origin, err := LoadOrigin(env(varPublicURL, bad)); err == nil {
			t.Errorf("LoadOrigin(%q) = %q, want an error", bad, origin)
		}
	}
	if _, err := LoadAdmin(env(varRegion, "r")); err == nil {
		t.Error("the command line needs tables and credentials")
	}
	c, err := LoadWorker(env(deployedPairs(varLambda, "", varJobsQueue, "http://127.0.0.1:9324/1/jobs")...))
	if err != nil || !reflect.DeepEqual(c.AWS.JobsQueue, "http://127.0.0.1:9324/1/jobs") {
		t.Errorf("a stand-in on this machine: %v", errors.Unwrap(err))
	}
}
