package main

import "testing"

func TestCheck(t *testing.T) {
	const refused = `{"errorType":"errorString","errorMessage":"not an event of this function"}`
	const letsAll = `{"batchItemFailures":[]}`
	for _, x := range []struct {
		function, event, reply string
		ok                     bool
	}{
		{"api", "function-url-get-mcp", `{"statusCode":405}`, true},
		{"api", "function-url-get-mcp", `{"statusCode":200}`, false},
		{"api", "http-api-tools-list-2026", `{"statusCode":200}`, true},
		{"api", "http-api-tools-list-2026", `{"statusCode":502}`, false},
		{"api", "http-api-tools-list-2026", refused, false},
		{"api", "http-api-tools-list-2026", `garbage`, false},
		{"api", "sqs-jobs", refused, true},
		{"api", "sqs-jobs", letsAll, false},
		{"api", "sqs-jobs", `{"statusCode":200}`, false},
		{"api", "schedule-minute", `null`, false},
		{"api", "ses-inbound", `{"errorType":"x"}`, false},
		{"worker", "sqs-jobs", letsAll, true},
		{"worker", "sqs-jobs", `{"batchItemFailures":[{"itemIdentifier":"a1"}]}`, false},
		{"worker", "sqs-jobs", refused, false},
		{"worker", "ses-inbound", letsAll, false},
		{"worker", "ses-inbound", `{"batchItemFailures":[{"itemIdentifier":"a1"}]}`, true},
		{"worker", "schedule-minute", `null`, true},
		{"worker", "schedule-minute", refused, false},
		{"worker", "rest-api-tools-list-2026", refused, true},
		{"worker", "rest-api-tools-list-2026", letsAll, false},
		{"inbound", "ses-inbound", letsAll, true},
		{"inbound", "ses-inbound-poisoned", letsAll, false},
		{"inbound", "schedule-minute", refused, true},
		{"inbound", "schedule-minute", `null`, false},
	} {
		if err := check(x.function, x.event, x.reply); (err == nil) != x.ok {
			t.Errorf("%s, %s, %s: %v", x.function, x.event, x.reply, err)
		}
	}
}
