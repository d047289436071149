package lambdaedge

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// bodiesOf are the message bodies of an event file.
func bodiesOf(t testing.TB, name string) (bodies []string) {
	t.Helper()
	var e events.SQSEvent
	if err := json.Unmarshal(triggerFile(t, name), &e); err != nil {
		t.Fatal(err)
	}
	for _, r := range e.Records {
		bodies = append(bodies, r.Body)
	}
	return bodies
}

// notice changes a member of the notice inside an envelope.
func notice(t testing.TB, path string, value any) string {
	t.Helper()
	var outer, inner map[string]any
	if err := json.Unmarshal([]byte(bodiesOf(t, "ses-inbound")[0]), &outer); err != nil {
		t.Fatal(err)
	}
	text, _ := outer["Message"].(string)
	if err := json.Unmarshal([]byte(text), &inner); err != nil {
		t.Fatal(err)
	}
	at, parts := inner, strings.Split(path, ".")
	for _, part := range parts[:len(parts)-1] {
		at, _ = at[part].(map[string]any)
	}
	at[parts[len(parts)-1]] = value
	changed, err := json.Marshal(inner)
	if err != nil {
		t.Fatal(err)
	}
	outer["Message"] = string(changed)
	out, err := json.Marshal(outer)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestParseReceived(t *testing.T) {
	const id = "d6iitobk75ur44p8kdnnp7g2n800000000000001"
	at := time.Date(2026, 11, 30, 10, 15, 4, 512e6, time.UTC)
	got, err := ParseReceived(bodiesOf(t, "ses-inbound")[0])
	want := Received{
		MessageID: id, At: at, Source: "bounces+77@papeleria.example", Recipients: []string{"facturas@acme.test"},
		Bucket: "buzon-mail-123456789012-eu-west-1", Key: "ses/" + id,
		Verdicts: []Verdict{{"spf", "pass"}, {"dkim", "none"}, {"dmarc", "pass"}, {"spam", "pass"}, {"virus", "pass"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	got, err = ParseReceived(bodiesOf(t, "ses-inbound-unknown")[0])
	if err != nil || got.Policy != "reject" || !reflect.DeepEqual(got.Verdicts, []Verdict{{"spf", "fail"}, {"dkim", "pass"}, {"dmarc", "fail"}, {"spam", "fail"}, {"virus", "pass"}}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Headers say that the mail went to globex and that every check passed; the receipt knows better.
func TestParseReceivedTakesNothingFromHeaders(t *testing.T) {
	body := notice(t, "receipt.spfVerdict.status", "FAIL")
	plain, err := ParseReceived(body)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"mail.headers", "mail.commonHeaders", "mail.destination"} {
		got, err := ParseReceived(notice(t, path, []any{map[string]any{"name": "Delivered-To", "value": "orders@globex.test"}}))
		if path == "mail.commonHeaders" {
			got, err = ParseReceived(notice(t, path, map[string]any{"to": []string{"orders@globex.test"}, "returnPath": "x@y.example"}))
		}
		got.Verdicts[0].Result = "fail"
		if err != nil || !reflect.DeepEqual(got, plain) {
			t.Errorf("%s changes what is read: %+v, %v", path, got, err)
		}
	}
	if len(plain.Recipients) != 1 || plain.Recipients[0] != "facturas@acme.test" {
		t.Errorf("recipients %q", plain.Recipients)
	}
}

func TestVerdictWords(t *testing.T) {
	for status, want := range map[string]string{
		"PASS": "pass", "FAIL": "fail", "GRAY": "none", "PROCESSING_FAILED": "temperror", "DISABLED": "temperror", "pass": "temperror",
	} {
		got, err := ParseReceived(notice(t, "receipt.dmarcVerdict.status", status))
		if err != nil || got.Verdicts[2] != (Verdict{"dmarc", want}) {
			t.Errorf("%s: %+v, %v", status, got.Verdicts, err)
		}
	}
	got, err := ParseReceived(notice(t, "receipt.spamVerdict.status", "GRAY"))
	if err != nil || got.Verdicts[3] != (Verdict{"spam", "neutral"}) {
		t.Errorf("a scanner that could not decide: %+v, %v", got.Verdicts, err)
	}
	for want, policy := range map[string][]any{
		"reject":     {"reject", "REJECT", map[string]any{"status": "REJECT"}},
		"quarantine": {"quarantine"}, "none": {"none", "NONE"},
		"": {nil, "", "pass", 7, []any{"reject"}, true, map[string]any{"x": "reject"}},
	} {
		for _, p := range policy {
			if got, err := ParseReceived(notice(t, "receipt.dmarcPolicy", p)); err != nil || got.Policy != want {
				t.Errorf("policy %v: %q, %v; want %q", p, got.Policy, err, want)
			}
		}
	}
	got, err = ParseReceived(notice(t, "receipt.virusVerdict", nil))
	if err != nil || len(got.Verdicts) != 4 {
		t.Errorf("a verdict that SES did not give: %+v, %v", got.Verdicts, err)
	}
	got, err = ParseReceived(notice(t, "mail.source", "<>"))
	if err != nil || got.Source != "" {
		t.Errorf("a bounce's sender is %q, %v", got.Source, err)
	}
}

func TestParseReceivedRefuses(t *testing.T) {
	tests := map[string]string{
		"empty":                   "",
		"garbage":                 "secret-canary",
		"null":                    "null",
		"too long":                strings.Repeat(" ", maxNotice+1),
		"no envelope":             `{"notificationType":"Received"}`,
		"a confirmation":          `{"Type":"SubscriptionConfirmation","Message":"secret-canary","SubscribeURL":"https://x.example"}`,
		"message no JSON":         `{"Type":"Notification","Message":"secret-canary"}`,
		"message null":            `{"Type":"Notification","Message":"null"}`,
		"message no text":         `{"Type":"Notification","Message":{"notificationType":"Received"}}`,
		"a bounce's notice":       notice(t, "notificationType", "Bounce"),
		"the Lambda action":       notice(t, "receipt.action.type", "Lambda"),
		"the SNS action":          notice(t, "receipt.action.type", "SNS"),
		"no bucket":               notice(t, "receipt.action.bucketName", ""),
		"no key":                  notice(t, "receipt.action.objectKey", ""),
		"no id":                   notice(t, "mail.messageId", ""),
		"no time":                 notice(t, "mail.timestamp", ""),
		"a time before all mail":  notice(t, "mail.timestamp", "0001-01-01T00:00:00Z"),
		"no recipients":           notice(t, "receipt.recipients", []string{}),
		"recipients of one text":  notice(t, "receipt.recipients", "facturas@acme.test"),
		"recipients null":         notice(t, "receipt.recipients", nil),
		"verdict of another type": notice(t, "receipt.spfVerdict", "PASS"),
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseReceived(body)
			if !errors.Is(err, ErrNotNotice) || !reflect.DeepEqual(got, Received{}) {
				t.Errorf("got %+v, %v", got, err)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("the error quotes the message: %v", err)
			}
		})
	}
}

func FuzzParseReceived(f *testing.F) {
	for name := range triggerFiles {
		for _, body := range bodiesOf(f, name) {
			f.Add(body)
		}
	}
	f.Add(`{"Type":"Notification","Message":"{\"notificationType\":\"Received\"}"}`)
	f.Fuzz(func(t *testing.T, body string) {
		got, err := ParseReceived(body)
		if (err == nil) == reflect.DeepEqual(got, Received{}) {
			t.Fatalf("%+v with error %v", got, err)
		}
		if err == nil && (got.MessageID == "" || got.Key == "" || got.Bucket == "" || len(got.Recipients) == 0 || got.At.IsZero()) {
			t.Fatalf("incomplete: %+v", got)
		}
	})
}
