package inboxstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
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
		DeletedAt: at.Add(2e6), PurgeAt: at.Add(3e6), Version: 1<<64 - 1, Secrets: inbox.Secrets{"482913"},
		Trust: inbox.Trust{Level: inbox.Suspicious, Reasons: []string{"several_from"}},
	}
}

func decodeSummary(item store.Item) (s inbox.Summary, err error) {
	if err = newSummaries([]store.Item{item}).decode(&item, &s); err != nil {
		return inbox.Summary{}, err
	}
	return s, nil
}

// The rows of a page share their memory: none may show in another, nor grow into it.
func TestSummariesOfAPage(t *testing.T) {
	want := make([]inbox.Summary, 100)
	items := make([]store.Item, len(want))
	for i := range want {
		want[i] = sample()
		want[i].ID, want[i].Labels = fmt.Sprint("email_", i), []string{fmt.Sprint("l", i), "x"}
		if i%7 == 0 {
			want[i] = inbox.Summary{ID: want[i].ID}
		}
		items[i] = encodeSummary(store.Key{}, want[i])
	}
	got, texts := make([]inbox.Summary, len(want)), newSummaries(items)
	for i := range items {
		if err := texts.decode(&items[i], &got[i]); err != nil {
			t.Fatal(err)
		}
		clear(items[i].Data)
		got[i].Labels = append(got[i].Labels, "added")
		got[i].From = append(got[i].From, inbox.Address{Name: "added"})
	}
	for i := range want {
		want[i].Labels = append(want[i].Labels, "added")
		want[i].From = append(want[i].From, inbox.Address{Name: "added"})
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("row %d: %+v; want %+v", i, got[i], want[i])
		}
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

func TestBodyCodec(t *testing.T) {
	full := inbox.Body{Text: "t\x00é\"", ReplyText: "r", Markdown: "m", HTML: "<p>", Headers: []inbox.Header{{Name: "Subject", Value: "s"}, {}}}
	for i := range reflect.TypeFor[inbox.Body]().NumField() {
		if reflect.ValueOf(full).Field(i).IsZero() {
			t.Errorf("the sample leaves %s empty, so its loss would not be seen", reflect.TypeFor[inbox.Body]().Field(i).Name)
		}
	}
	for name, body := range map[string]inbox.Body{
		"full": full, "empty": {},
		"all the same":      {Text: "t", ReplyText: "t", Markdown: "t", HTML: "t"},
		"a part, and more":  {Text: "text", ReplyText: "te", Markdown: "text\n", HTML: "ext"},
		"without a text":    {Markdown: "m"},
		"in a character":    {Text: "é", ReplyText: "\xc3"},
		"the reply is none": {Text: "> quoted", Markdown: "> quoted"},
	} {
		got, err := decodeBody(encodeBody(store.Key{}, &body))
		if err != nil || !reflect.DeepEqual(*got, body) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, body)
		}
	}
	old, err := store.Encode(store.Key{}, 1, 1, inbox.Body{Text: "t", Headers: full.Headers})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodeBody(old); err != nil || got.Text != "t" || len(got.Headers) != 2 {
		t.Errorf("a row of format 1: %+v, %v", got, err)
	}
	second := store.Item{Format: 2, Data: []byte("\x01t\x01r\x01m\x03<p>\x02\x07Subject\x01s\x00\x00")}
	if got, err := decodeBody(second); err != nil || got.Text != "t" || got.ReplyText != "r" || got.Markdown != "m" || got.HTML != "<p>" || !reflect.DeepEqual(got.Headers, full.Headers) {
		t.Errorf("a row of format 2: %+v, %v", got, err)
	}
	long := strings.Repeat("x", 1000)
	if item := encodeBody(store.Key{}, &inbox.Body{Text: long, ReplyText: long[:900], Markdown: long}); len(item.Data) > 1100 {
		t.Errorf("%d bytes for a text of %d and what it begins with", len(item.Data), len(long))
	}
	if _, err := decodeBody(store.Item{Format: bodyFormat, Data: []byte("\x01t\x03\x01\x01\x00")}); err == nil {
		t.Error("more of a text than there is was read")
	}
	item := encodeBody(store.Key{}, &full)
	if _, err := decodeBody(store.Item{Format: bodyFormat + 1, Data: item.Data}); !errors.Is(err, store.ErrFormat) {
		t.Errorf("a newer format: %v", err)
	}
	if _, err := decodeBody(store.Item{Format: bodyFormat, Data: item.Data[:5]}); err == nil {
		t.Error("half a row was read")
	}
}

func FuzzBody(f *testing.F) {
	f.Add(encodeBody(store.Key{}, &inbox.Body{Text: "t", Headers: []inbox.Header{{Name: "n", Value: "v"}}}).Data)
	f.Add([]byte{})
	f.Add([]byte{0, 1, 1, 1, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Add([]byte("\x02tt\x02\x00\x02tx\x03\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		body, err := decodeBody(store.Item{Format: bodyFormat, Data: data})
		if err != nil {
			return
		}
		again, err := decodeBody(encodeBody(store.Key{}, body))
		if err != nil || !reflect.DeepEqual(again, body) {
			t.Errorf("%+v, %v; want %+v", again, err, body)
		}
	})
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
