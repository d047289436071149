package jsonwalk_test

import (
	"encoding/json"
	"testing"

	"github.com/buzon-mail/buzon/shared/jsonwalk"
)

const sample = `{"slug":"invoices","conditions":[{"field":"from","words":["a","b"],"inner":{"depth":3}},{"field":"to","words":["c"]}],"enabled":true}`

func BenchmarkDecode(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := jsonwalk.Decode([]byte(sample)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodingJSON(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		var v any
		if err := json.Unmarshal([]byte(sample), &v); err != nil {
			b.Fatal(err)
		}
	}
}
