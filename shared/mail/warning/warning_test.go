package warning

import "testing"

func TestListCountsPerCode(t *testing.T) {
	var l List
	l.Add(BadBase64, "1")
	l.AddN(BadBase64, "2", 3)
	l.AddN(BadDate, "", 0)
	if got := l.All(); len(got) != 1 || got[0] != (Warning{BadBase64, "1", 4}) || l.Truncated() {
		t.Errorf("warnings %v, truncated %v", got, l.Truncated())
	}
	l.Add(PartLimit, "")
	if !l.Truncated() || !l.Has(PartLimit) || l.Has(BadDate) {
		t.Errorf("warnings %v", l.All())
	}
}

func TestCodesAreDistinct(t *testing.T) {
	seen := map[Code]bool{}
	for _, c := range Codes() {
		if c == "" || seen[c] {
			t.Errorf("code %q twice or empty", c)
		}
		seen[c] = true
	}
}
