package inboxstore

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

func sample() inbox.Summary {
	at := time.Date(2026, 7, 28, 1, 2, 3, 4e6, time.UTC)
	return inbox.Summary{
		ID: "email_1", Inbox: "inbox_1", Thread: "thread_1", Status: inbox.StatusProcessed, Reason: "r", Labels: []string{"a", ""},
		Category: "c", HandledAt: at, ReceivedAt: at.Add(1e6), Size: 1 << 40, Subject: "ñ\x00\"", From: []inbox.Address{{Name: "n", Address: "a@b"}},
		To: []inbox.Address{{}, {Address: "x"}}, Snippet: "s", Flags: []string{"list"}, Attachments: 3, Codes: 4, Links: 5,
		DeletedAt: at.Add(2e6), Version: 1<<64 - 1, Secrets: inbox.Secrets{"482913"},
		Trust: inbox.Trust{Level: inbox.Suspicious, Reasons: []string{"several_from"}},
	}
}

func TestSummaryCodec(t *testing.T) {
	full := reflect.ValueOf(sample())
	for i := range full.NumField() {
		if full.Field(i).IsZero() {
			t.Errorf("the sample leaves %s empty, so its loss would not be seen", full.Type().Field(i).Name)
		}
	}
	for name, s := range map[string]inbox.Summary{"full": sample(), "empty": {}} {
		item := encodeSummary(store.Key{}, s)
		got, err := decodeSummary(item)
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, s)
		}
	}
	if _, err := decodeSummary(store.Item{Format: format + 1}); err == nil {
		t.Error("a newer format was read")
	}
	item := encodeSummary(store.Key{}, sample())
	item.Data = item.Data[:30]
	if _, err := decodeSummary(item); err == nil {
		t.Error("half a row was read")
	}
}

func FuzzSummary(f *testing.F) {
	f.Add(encodeSummary(store.Key{}, sample()).Data)
	f.Add([]byte{})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decodeSummary(store.Item{Format: format, Data: data})
		if err != nil {
			return
		}
		again, err := decodeSummary(encodeSummary(store.Key{}, s))
		if err != nil {
			t.Fatal(err)
		}
		third, err := decodeSummary(encodeSummary(store.Key{}, again))
		if err != nil || !reflect.DeepEqual(again, third) {
			t.Errorf("%+v, %v; want %+v", third, err, again)
		}
	})
}

func BenchmarkSummary(b *testing.B) {
	item := encodeSummary(store.Key{}, sample())
	text, err := json.Marshal(sample())
	if err != nil {
		b.Fatal(err)
	}
	b.Run("row", func(b *testing.B) {
		for b.Loop() {
			if _, err := decodeSummary(item); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		for b.Loop() {
			var s inbox.Summary
			if err := json.Unmarshal(text, &s); err != nil {
				b.Fatal(err)
			}
		}
	})
}
