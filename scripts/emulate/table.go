package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// owner is the function that an event is for.
func owner(name string) string {
	switch trigger, _, _ := strings.Cut(name, "-"); trigger {
	case "ses":
		return "inbound"
	case "sqs", "schedule":
		return "worker"
	}
	return "api"
}

// status is what a front door's event is answered with.
func status(name string) int {
	switch strings.TrimPrefix(name, "function-url-") {
	case "get-mcp":
		return 405
	case "malformed":
		return 400
	case "options":
		return 204
	case "unauthenticated":
		return 401
	}
	return 200
}

// again are the last letters of the messages that come again; nil: the event is no batch. Jobs in the queue of notices, and notices
// in that of jobs, are poison each.
func again(function, name string) []string {
	table := map[string][]string{
		"inbound ses-inbound": {}, "inbound ses-inbound-many-recipients": {}, "inbound ses-inbound-unknown": {},
		"inbound ses-inbound-poisoned": {"1", "2", "4", "5"}, "inbound sqs-jobs": {"1", "2", "3", "4"},
		"worker sqs-jobs": {},
	}
	return table[function+" "+name]
}

// reply is any function's.
type reply struct {
	StatusCode int    `json:"statusCode"`
	Type       string `json:"errorType"`
	Message    string `json:"errorMessage"`
	Failures   []struct {
		ID string `json:"itemIdentifier"`
	} `json:"batchItemFailures"`
}

func check(function, name, text string) error {
	var r reply
	if text != "null" {
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return fmt.Errorf("not a reply: %w: %.300q", err, text)
		}
	}
	batch := strings.HasPrefix(name, "ses-") || strings.HasPrefix(name, "sqs-")
	switch {
	case function == "api" && owner(name) == "api":
		if want := status(name); r.StatusCode != want {
			return fmt.Errorf("status %d, want %d: %.300s", r.StatusCode, want, text)
		}
	case function != "api" && batch:
		var ids []string
		for _, f := range r.Failures {
			ids = append(ids, f.ID[max(0, len(f.ID)-1):])
		}
		if want := again(function, name); want != nil && !slices.Equal(ids, want) || want == nil && len(ids) == 0 || r.Type != "" {
			return fmt.Errorf("messages %q come again, want %q: %.300s", ids, want, text)
		}
	case function == "worker" && owner(name) == "worker":
		if r.Type != "" {
			return fmt.Errorf("failed: %.300s", text)
		}
	case r.Type == "" || r.Message == "" || r.StatusCode != 0:
		return fmt.Errorf("another function's event, want an error with words: %.300s", text)
	}
	return nil
}
