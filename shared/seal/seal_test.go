package seal

import (
	"bytes"
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

func secret(c byte) []byte { return bytes.Repeat([]byte{c}, 32) }

func keyring(tb testing.TB, opts Options, roots ...Root) *Keyring {
	tb.Helper()
	if len(roots) == 0 {
		roots = []Root{{"k1", secret(1)}}
	}
	k, err := New(roots, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func mustSeal(tb testing.TB, s *Sealer, plaintext, ad string) string {
	tb.Helper()
	tok, err := s.Seal([]byte(plaintext), []byte(ad), time.Hour)
	if err != nil {
		tb.Fatal(err)
	}
	return tok
}

func TestRoundTrip(t *testing.T) {
	s := keyring(t, Options{}).Purpose("p")
	for _, plaintext := range []string{"", "x", strings.Repeat("long ", 1000)} {
		for _, ad := range []string{"", "tenant"} {
			tok := mustSeal(t, s, plaintext, ad)
			got, err := s.Open(tok, []byte(ad))
			if err != nil || string(got) != plaintext {
				t.Errorf("Open = %q, %v, want %q", got, err, plaintext)
			}
			if strings.Trim(tok, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
				t.Errorf("token %q needs escaping in a URL", tok)
			}
			if again := mustSeal(t, s, plaintext, ad); again == tok {
				t.Error("the same token twice: the nonce does not vary")
			}
		}
	}
}

// knownToken was sealed by format 1 under keyring's root. Live tokens must survive a new version of this package.
const knownToken = "AQJrMQAAAABrSeAQBwcHBwcHBwcHBwcHUISMhrMwMc4NYkzpY6cLcPyAYeK0"

func TestKnownToken(t *testing.T) {
	clock := func() time.Time { return time.Unix(1_800_000_000, 0) }
	s := keyring(t, Options{Clock: clock, Rand: bytes.NewReader(secret(7))}).Purpose("test/known")
	if tok := mustSeal(t, s, "state", "bound"); tok != knownToken {
		t.Errorf("token = %s, want %s", tok, knownToken)
	}
	if got, err := s.Open(knownToken, []byte("bound")); err != nil || string(got) != "state" {
		t.Errorf("Open = %q, %v", got, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	k := keyring(t, Options{})
	s := k.Purpose("p")
	tok := mustSeal(t, s, "state1", "ad")
	raw, err := base64.RawURLEncoding.DecodeString(tok)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw)%3 == 0 {
		t.Fatal("the token has no loose bits to set")
	}
	loose := tok[:len(tok)-1] + string(tok[len(tok)-1]+1)
	newer := bytes.Clone(raw)
	newer[0] = 2
	for name, c := range map[string]struct {
		s     *Sealer
		token string
		ad    string
	}{
		"another purpose":       {k.Purpose("q"), tok, "ad"},
		"purpose with a prefix": {k.Purpose("p/"), tok, "ad"},
		"another root":          {keyring(t, Options{}, Root{"k1", secret(2)}).Purpose("p"), tok, "ad"},
		"unknown root":          {keyring(t, Options{}, Root{"k2", secret(1)}).Purpose("p"), tok, "ad"},
		"other data":            {s, tok, "AD"},
		"no data":               {s, tok, ""},
		"more data":             {s, tok, "ad "},
		"empty":                 {s, "", "ad"},
		"padding":               {s, tok + "=", "ad"},
		"line break inside":     {s, tok[:8] + "\n" + tok[8:], "ad"},
		"line break behind":     {s, tok + "\r\n", "ad"},
		"space":                 {s, " " + tok, "ad"},
		"loose bits":            {s, loose, "ad"},
		"standard alphabet":     {s, strings.Repeat("+/", 40), "ad"},
		"cut":                   {s, tok[:len(tok)-4], "ad"},
		"head alone":            {s, tok[:12], "ad"},
		"text behind":           {s, tok + "AAAA", "ad"},
		"newer format":          {s, base64.RawURLEncoding.EncodeToString(newer), "ad"},
		"id longer than token":  {s, base64.RawURLEncoding.EncodeToString(append([]byte{1, 255}, raw[2:]...)), "ad"},
		"not a token":           {s, "../../etc/passwd", "ad"},
		"NUL":                   {s, tok + "\x00", "ad"},
		"too long":              {s, strings.Repeat("A", MaxToken+1), "ad"},
		"5 MB":                  {s, strings.Repeat("A", 5<<20), "ad"},
	} {
		if got, err := c.s.Open(c.token, []byte(c.ad)); !errors.Is(err, ErrInvalid) || got != nil {
			t.Errorf("%s: %q, %v, want ErrInvalid", name, got, err)
		}
	}
	if _, err := s.Open(tok, []byte("ad")); err != nil {
		t.Errorf("the token itself: %v", err)
	}
}

// No byte of the head may slide into the data: the two are authenticated as one string.
func TestHeadAndDataDontSlide(t *testing.T) {
	clock := func() time.Time { return time.Unix(1_800_000_000, 0) }
	s := keyring(t, Options{Clock: clock}, Root{"k", secret(1)}, Root{"kk", secret(1)}).Purpose("p")
	tok := mustSeal(t, s, "x", "kad")
	raw, err := base64.RawURLEncoding.DecodeString(tok)
	if err != nil {
		t.Fatal(err)
	}
	forged := append([]byte{1, 2, 'k', 'k'}, raw[3:]...)
	if _, err := s.Open(base64.RawURLEncoding.EncodeToString(forged), []byte("ad")); !errors.Is(err, ErrInvalid) {
		t.Errorf("err = %v", err)
	}
}

func TestEveryBitCounts(t *testing.T) {
	s := keyring(t, Options{}).Purpose("p")
	tok := mustSeal(t, s, "some state", "ad")
	raw, err := base64.RawURLEncoding.DecodeString(tok)
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(raw) * 8 {
		bad := bytes.Clone(raw)
		bad[i/8] ^= 1 << (i % 8)
		if _, err := s.Open(base64.RawURLEncoding.EncodeToString(bad), []byte("ad")); !errors.Is(err, ErrInvalid) {
			t.Fatalf("bit %d flipped: %v", i, err)
		}
	}
	for i := range len(tok) {
		for _, c := range []byte("A_-z9=\n") {
			if bad := tok[:i] + string(c) + tok[i+1:]; bad != tok {
				if _, err := s.Open(bad, []byte("ad")); !errors.Is(err, ErrInvalid) {
					t.Fatalf("byte %d made %q: %v", i, c, err)
				}
			}
		}
	}
}

func TestExpiry(t *testing.T) {
	now := time.Unix(1_800_000_000, 900_000_000)
	s := keyring(t, Options{Clock: func() time.Time { return now }}).Purpose("p")
	tok, err := s.Seal(nil, nil, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	forever, err := s.Seal(nil, nil, NoExpiry)
	if err != nil {
		t.Fatal(err)
	}
	until, err := s.SealUntil(nil, nil, time.Unix(1_800_000_010, 5))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		at   time.Time
		want error
	}{
		{"at once", now, nil},
		{"last moment", time.Unix(1_800_000_009, 999_999_999), nil},
		{"exact second", time.Unix(1_800_000_010, 0), ErrExpired},
		{"long after", time.Unix(1_900_000_000, 0), ErrExpired},
	} {
		now = c.at
		for _, x := range []string{tok, until} {
			if _, err := s.Open(x, nil); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, err, c.want)
			}
		}
		if _, err := s.Open(forever, nil); err != nil {
			t.Errorf("%s, no expiry: %v", c.name, err)
		}
	}
	// Authenticity comes first: an expired token with other data is invalid, not expired.
	if _, err := s.Open(tok, []byte("other")); !errors.Is(err, ErrInvalid) {
		t.Errorf("expired and not authentic: %v", err)
	}
	for _, ttl := range []time.Duration{0, -1, time.Second - 1, -time.Hour} {
		if tok, err := s.Seal(nil, nil, ttl); err == nil {
			t.Errorf("ttl %v gave %q", ttl, tok)
		}
	}
	for _, at := range []time.Time{{}, time.Unix(0, 0), time.Unix(-1, 0)} {
		if tok, err := s.SealUntil(nil, nil, at); err == nil {
			t.Errorf("expiry %v gave %q", at, tok)
		}
	}
}

func TestRotation(t *testing.T) {
	k1, k2 := Root{"k1", secret(1)}, Root{"k2", secret(2)}
	before := keyring(t, Options{}, k1).Purpose("p")
	added := keyring(t, Options{}, k1, k2).Purpose("p")
	moved := keyring(t, Options{}, k2, k1).Purpose("p")
	after := keyring(t, Options{}, k2).Purpose("p")
	for _, c := range []struct {
		name   string
		seals  *Sealer
		opens  *Sealer
		accept bool
	}{
		{"old token after adding", before, added, true},
		{"old token after moving", before, moved, true},
		{"old token after dropping", before, after, false},
		{"added still seals with the old", added, before, true},
		{"new token where it was only added", moved, added, true},
		{"new token before adding", moved, before, false},
		{"new token after dropping", moved, after, true},
	} {
		_, err := c.opens.Open(mustSeal(t, c.seals, "x", ""), nil)
		if accepted := err == nil; accepted != c.accept || !accepted && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestSize(t *testing.T) {
	s := keyring(t, Options{}).Purpose("p")
	n := 0
	for n = MaxToken; ; n-- {
		tok, err := s.Seal(make([]byte, n), nil, time.Hour)
		if err == nil {
			if len(tok) > MaxToken || len(tok) < MaxToken-2 {
				t.Errorf("the longest token has %d bytes", len(tok))
			}
			if got, err := s.Open(tok, nil); err != nil || len(got) != n {
				t.Errorf("the longest token: %v", err)
			}
			return
		}
		if !errors.Is(err, ErrTooLarge) || n < 6000 {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

func TestNonceFails(t *testing.T) {
	s := keyring(t, Options{Rand: io.LimitReader(bytes.NewReader(secret(1)), 5)}).Purpose("p")
	if tok, err := s.Seal([]byte("x"), nil, time.Hour); err == nil || tok != "" {
		t.Errorf("sealed %q without randomness", tok)
	}
}

func TestDerive(t *testing.T) {
	k := keyring(t, Options{}, Root{"k2", secret(2)}, Root{"k1", secret(1)})
	a, b := k.Derive("a", 32), k.Derive("b", 32)
	if len(a) != 32 || hmac.Equal(a, b) {
		t.Errorf("labels share a key")
	}
	if hmac.Equal(a, derive(k.roots[0], "seal/1/purpose/", "a", 32)) {
		t.Error("Derive and Purpose share a key")
	}
	all := k.DeriveAll("a", 32)
	if len(all) != 2 || !hmac.Equal(all[0], a) || hmac.Equal(all[1], a) ||
		!hmac.Equal(all[1], keyring(t, Options{}, Root{"x", secret(1)}).Derive("a", 32)) {
		t.Errorf("DeriveAll does not go through the roots")
	}
	for name, act := range map[string]func(){
		"no label":    func() { k.Derive("", 32) },
		"no purpose":  func() { k.Purpose("") },
		"long label":  func() { k.Purpose(strings.Repeat("x", maxLabel+1)) },
		"no bytes":    func() { k.Derive("a", 0) },
		"minus bytes": func() { k.Derive("a", -1) },
		"beyond HKDF": func() { k.Derive("a", 255*32+1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			act()
		}()
	}
}

func TestParseRoots(t *testing.T) {
	enc := base64.StdEncoding.EncodeToString
	a, b := "k1:"+enc(secret(1)), "k2:"+enc(bytes.Repeat([]byte{2}, 40))
	for name, text := range map[string]string{
		"lines":           b + "\n" + a + "\n",
		"commas":          b + "," + a,
		"blanks":          "\n  " + b + " ,\r\n\t" + a + "\r\n\n",
		"comments":        "# newest first\n" + b + "\n#" + a + "\n" + a,
		"trailing commas": "," + b + ",," + a + ",",
	} {
		roots, err := ParseRoots(text)
		if err != nil || len(roots) != 2 || roots[0].ID != "k2" || roots[1].ID != "k1" || len(roots[0].Secret) != 40 {
			t.Errorf("%s: %v, %v", name, roots, err)
		}
	}
	var many []string
	for i := range maxRoots + 1 {
		many = append(many, fmt.Sprintf("k%d:%s", i, enc(secret(1))))
	}
	for name, text := range map[string]string{
		"nothing":       "",
		"comment alone": "# k1",
		"no id":         enc(secret(1)),
		"empty id":      ":" + enc(secret(1)),
		"upper id":      "K1:" + enc(secret(1)),
		"long id":       strings.Repeat("k", maxID+1) + ":" + enc(secret(1)),
		"space in id":   "k 1:" + enc(secret(1)),
		"short":         "k1:" + enc(make([]byte, 31)),
		"no padding":    "k1:" + strings.TrimRight(enc(secret(1)), "="),
		"hex":           "k1:" + strings.Repeat("zz!", 32),
		"twice":         a + "," + a,
		"many":          strings.Join(many, ","),
		"one of them":   a + ",k2:short",
	} {
		roots, err := ParseRoots(text)
		if err == nil || roots != nil {
			t.Errorf("%s: accepted %v", name, roots)
		} else if strings.Contains(err.Error(), enc(secret(1))[:8]) {
			t.Errorf("%s: the error tells the secret: %v", name, err)
		}
	}
	if _, err := New(nil, Options{}); err == nil {
		t.Error("New accepted no roots")
	}
	if _, err := New([]Root{{"k1", secret(1)[:31]}}, Options{}); err == nil {
		t.Error("New accepted a short root")
	}
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	root := Root{"k1", []byte("hunter2-hunter2-hunter2-hunter2-")}
	k := keyring(t, Options{}, root)
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, nil))
	log.Info("x", "root", root, "keyring", k, "sealer", k.Purpose("p"), "roots", []Root{root})
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "root", root, "keyring", k, "roots", []Root{root})
	for _, v := range []any{root, &root, []Root{root}, struct{ R Root }{root}, k, k.Purpose("p")} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	b, err := json.Marshal(map[string]any{"r": root, "k": k, "s": []Root{root}})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(b)
	for _, leak := range []string{"hunter2", fmt.Sprintf("%x", "hunter2"), "104 117 110 116", base64.StdEncoding.EncodeToString([]byte("hunter2-hunter2"))[:16]} {
		if strings.Contains(strings.ToLower(out.String()), strings.ToLower(leak)) {
			t.Errorf("%q was printed:\n%s", leak, out.String())
		}
	}
}

// The pool of scratch memory is shared: concurrent tokens must not mix.
func TestConcurrent(t *testing.T) {
	s := keyring(t, Options{}).Purpose("p")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 200 {
				want := strings.Repeat(fmt.Sprintf("%d.%d ", i, n), n%40)
				tok, err := s.Seal([]byte(want), []byte(want), time.Hour)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := s.Open(tok, []byte(want)); err != nil || string(got) != want {
					t.Errorf("got %q, %v", got, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func FuzzOpen(f *testing.F) {
	s := keyring(f, Options{Clock: func() time.Time { return time.Unix(1_800_000_000, 0) }}).Purpose("test/known")
	f.Add(knownToken, []byte("bound"))
	f.Add("", []byte(nil))
	f.Add(strings.Repeat("A", 100), []byte("bound"))
	f.Fuzz(func(t *testing.T, tok string, ad []byte) {
		got, err := s.Open(tok, ad)
		if err == nil && (tok != knownToken || string(ad) != "bound") {
			t.Fatalf("forged %q: %q", tok, got)
		}
		if err != nil && (got != nil || !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrExpired)) {
			t.Fatalf("%q, %v", got, err)
		}
	})
}

func FuzzParseRoots(f *testing.F) {
	f.Add("k1:" + base64.StdEncoding.EncodeToString(secret(1)) + ",#x\nk2:AAAA")
	f.Add(":,:\n::")
	f.Fuzz(func(t *testing.T, text string) {
		roots, err := ParseRoots(text)
		if err != nil {
			return
		}
		var lines []string
		for _, r := range roots {
			lines = append(lines, r.ID+":"+base64.StdEncoding.EncodeToString(r.Secret))
		}
		again, err := ParseRoots(strings.Join(lines, "\n"))
		if err != nil || len(again) != len(roots) {
			t.Fatalf("%v, %v", again, err)
		}
		for i := range roots {
			if again[i].ID != roots[i].ID || !bytes.Equal(again[i].Secret, roots[i].Secret) {
				t.Fatalf("root %d changed", i)
			}
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	s := keyring(b, Options{}).Purpose("p")
	plaintext, ad := bytes.Repeat([]byte("s"), 120), []byte("tenant|filters")
	b.Run("seal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Seal(plaintext, ad, time.Hour); err != nil {
				b.Fatal(err)
			}
		}
	})
	tok := mustSeal(b, s, string(plaintext), string(ad))
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Open(tok, ad); err != nil {
				b.Fatal(err)
			}
		}
	})
	// The floor: the cipher, a nonce and base64 alone, into memory that is there.
	aead, nonce := s.keys[0].aead, make([]byte, nonceSize)
	sealed, text := make([]byte, 0, 512), make([]byte, 0, 512)
	b.Run("floor", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := io.ReadFull(s.rand, nonce); err != nil {
				b.Fatal(err)
			}
			sealed = aead.Seal(sealed[:0], nonce, plaintext, ad)
			text = base64.RawURLEncoding.AppendEncode(text[:0], sealed)
		}
	})
}
