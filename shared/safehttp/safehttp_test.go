package safehttp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// script is a resolver that gives its answers in turn, the last one again and again.
type script struct {
	mu      sync.Mutex
	answers [][]netip.Addr
	asked   []string
}

func (s *script) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, host)
	a := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	return a, nil
}

func addrs(list ...string) []netip.Addr {
	out := make([]netip.Addr, 0, len(list))
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

// world is a client whose connections all end at one TLS server, and a note of which literals were dialled.
type world struct {
	*Client
	resolver *script
	dialled  []string
	names    []string // TLS server names
}

const public = "93.184.216.34"

func newWorld(t *testing.T, h http.HandlerFunc, answers ...[]netip.Addr) *world {
	t.Helper()
	w := &world{resolver: &script{answers: answers}}
	server := httptest.NewUnstartedServer(h)
	server.TLS = &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		w.names = append(w.names, hello.ServerName)
		return nil, nil //nolint:nilnil // crypto/tls: keep the configuration
	}}
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	w.Client = New(Options{
		Resolver: w.resolver, Roots: roots, Timeout: 2 * time.Second,
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			w.dialled = append(w.dialled, addr)
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	})
	return w
}

func get(t *testing.T, c *Client, url string) (*Response, error) {
	t.Helper()
	return c.Do(t.Context(), Request{Method: http.MethodGet, URL: url, MaxBody: 64})
}

// TestAddresses is the table of special addresses: each class that reaches something that is not a stranger's server, and
// the neighbours that are.
func TestAddresses(t *testing.T) {
	for _, c := range []struct{ name, refuse string }{
		{"this network", "0.0.0.0 0.1.2.3"},
		{"private", "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.1 192.168.255.255"},
		{"carrier NAT, Alibaba metadata", "100.64.0.0 100.100.100.200 100.127.255.255"},
		{"loopback", "127.0.0.1 127.255.255.254"},
		{"link local, metadata, Lambda, ECS, time", "169.254.1.1 169.254.169.254 169.254.170.2 169.254.169.123"},
		{"protocol assignments, Oracle metadata", "192.0.0.170 192.0.0.192"},
		{"documentation", "192.0.2.1 198.51.100.1 203.0.113.1"},
		{"6to4 relay", "192.88.99.1"},
		{"benchmarks", "198.18.0.1 198.19.255.255"},
		{"multicast, reserved, broadcast", "224.0.0.1 240.0.0.1 255.255.255.255"},
		{"IPv6 unspecified and loopback", ":: ::1"},
		{"IPv4 written as IPv6", "::ffff:127.0.0.1 ::ffff:169.254.169.254 ::127.0.0.1 ::ffff:0:7f00:1"},
		{"translation", "64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1"},
		{"discard, Teredo, benchmarks, ORCHID", "100::1 2001::1 2001:2::1 2001:10::1 2001:20::1"},
		{"documentation, 6to4, segment routing", "2001:db8::1 2002:7f00:1::1 2002:a9fe:a9fe::1 3fff::1 5f00::1"},
		{"unique local, AWS metadata", "fc00::1 fd00:ec2::254"},
		{"link local, with a zone, site local, multicast", "fe80::1 fe80::1%lo fec0::1 ff02::1"},
		{"not given out", "4000::1"},
	} {
		for _, a := range strings.Fields(c.refuse) {
			t.Run(c.name+"/"+a, func(t *testing.T) {
				w := newWorld(t, ok, addrs(a))
				if _, err := get(t, w.Client, "https://client.example/"); !errors.Is(err, ErrRefused) {
					t.Errorf("err = %v, want ErrRefused", err)
				}
				if len(w.dialled) > 0 {
					t.Errorf("dialled %v", w.dialled)
				}
			})
		}
	}
	for _, a := range strings.Fields("9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0 8.8.8.8 ::ffff:8.8.8.8 2606:4700::1111") {
		t.Run("passes/"+a, func(t *testing.T) {
			w := newWorld(t, ok, addrs(a))
			if _, err := get(t, w.Client, "https://example.com/"); err != nil {
				t.Fatal(err)
			}
			want := net.JoinHostPort(netip.MustParseAddr(a).Unmap().String(), "443")
			if len(w.dialled) != 1 || w.dialled[0] != want {
				t.Errorf("dialled %v, want %s", w.dialled, want)
			}
		})
	}
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("fine")) }

// TestURLs: what has the wrong form never reaches the resolver.
func TestURLs(t *testing.T) {
	for _, c := range []struct{ name, url string }{
		{"http", "http://example.com/"},
		{"another scheme", "file:///etc/passwd"},
		{"no scheme", "//example.com/"},
		{"opaque", "https:example.com"},
		{"no host", "https:///x"},
		{"another port", "https://example.com:8443/"},
		{"empty port", "https://example.com:/"},
		{"user", "https://example.com@127.0.0.1/"},
		{"user and password", "https://a:b@example.com/"},
		{"fragment", "https://example.com/#x"},
		{"empty fragment", "https://example.com/#"},
		{"localhost", "https://localhost/"},
		{"below localhost", "https://app.localhost/"},
		{"link-local name", "https://printer.local/"},
		{"internal name", "https://metadata.google.internal/"},
		{"single label", "https://intranet/"},
		{"trailing dot", "https://example.com./"},
		{"empty label", "https://example..com/"},
		{"literal", "https://93.184.216.34/"},
		{"loopback literal", "https://127.0.0.1/"},
		{"short", "https://127.1/"},
		{"hex", "https://0x7f000001/"},
		{"dotted hex", "https://0x7f.0.0.0x1/"},
		{"decimal", "https://2130706433/"},
		{"octal", "https://017700000001/"},
		{"IPv6", "https://[::1]/"},
		{"IPv6 with a zone", "https://[fe80::1%25lo]/"},
		{"not an A-label", "https://exämple.com/"},
		{"full-width digits", "https://１２７.0.0.1/"},
		{"percent in the host", "https://exam%70le.com/"},
		{"backslash", "https://example.com\\@127.0.0.1/"},
		{"line break", "https://example.com/\r\nHost: x"},
		{"space", "https://example.com/a b"},
		{"too long", "https://example.com/" + strings.Repeat("a", maxURL)},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, ok, addrs(public))
			if _, err := get(t, w.Client, c.url); !errors.Is(err, ErrRefused) {
				t.Errorf("err = %v, want ErrRefused", err)
			}
			if len(w.resolver.asked) > 0 || len(w.dialled) > 0 {
				t.Errorf("asked %v, dialled %v", w.resolver.asked, w.dialled)
			}
		})
	}
}

func TestAnswerSets(t *testing.T) {
	var hundred []netip.Addr
	for i := range 100 {
		hundred = append(hundred, netip.MustParseAddr(fmt.Sprintf("93.184.216.%d", i)))
	}
	for _, c := range []struct {
		name    string
		answers []netip.Addr
		want    error
	}{
		{"public and private", addrs(public, "10.0.0.1"), ErrRefused},
		{"private and public", addrs("169.254.169.254", public), ErrRefused},
		{"the last of many", addrs(public, public, public, public, public, "127.0.0.1"), ErrRefused},
		{"none", nil, ErrUnreachable},
		{"a hundred", hundred, ErrRefused},
		{"an invalid one", []netip.Addr{{}}, ErrRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, ok, c.answers)
			if _, err := get(t, w.Client, "https://example.com/"); !errors.Is(err, c.want) {
				t.Errorf("err = %v, want %v", err, c.want)
			}
			if len(w.dialled) > 0 {
				t.Errorf("dialled %v", w.dialled)
			}
		})
	}
}

// TestRebinding: the name is asked once, and what was checked is what is dialled, whatever the name says next.
func TestRebinding(t *testing.T) {
	w := newWorld(t, ok, addrs(public), addrs("127.0.0.1"))
	if _, err := get(t, w.Client, "https://example.com/"); err != nil {
		t.Fatal(err)
	}
	if len(w.resolver.asked) != 1 || w.resolver.asked[0] != "example.com." || len(w.dialled) != 1 || w.dialled[0] != public+":443" {
		t.Errorf("asked %v, dialled %v", w.resolver.asked, w.dialled)
	}
	if len(w.names) != 1 || w.names[0] != "example.com" {
		t.Errorf("TLS server name %v, want example.com", w.names)
	}
	// No connection is kept: the second request is resolved and checked anew.
	if _, err := get(t, w.Client, "https://example.com/"); !errors.Is(err, ErrRefused) {
		t.Errorf("second request: %v, want ErrRefused", err)
	}
}

func TestCertificateProvesTheName(t *testing.T) {
	w := newWorld(t, ok, addrs(public))
	if _, err := get(t, w.Client, "https://other.test/"); !errors.Is(err, ErrUnreachable) { // the certificate is example.com's
		t.Errorf("err = %v, want ErrUnreachable", err)
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		serve  http.HandlerFunc
		status int
		want   error
	}{
		{"a redirect is not followed", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://example.com/next", http.StatusFound)
		}, http.StatusFound, nil},
		{"as large as allowed", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 64)) }, http.StatusOK, nil},
		{"one byte more", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 65)) }, 0, ErrTooLarge},
		{"headers without end", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("a", 2*maxHeader))
		}, 0, ErrUnreachable},
		{"compressed stays compressed", func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "" {
				w.WriteHeader(http.StatusTeapot)
			}
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte{0x1f, 0x8b})
		}, http.StatusOK, nil},
		{"closes the connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, ErrUnreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.serve, addrs(public))
			res, err := get(t, w.Client, "https://example.com/")
			if !errors.Is(err, c.want) || err == nil && res.Status != c.status {
				t.Errorf("response %+v, err %v; want %d, %v", res, err, c.status, c.want)
			}
			if len(w.dialled) != 1 {
				t.Errorf("dialled %v", w.dialled)
			}
		})
	}
}

func TestProxyOfTheEnvironmentIsIgnored(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	w := newWorld(t, ok, addrs(public))
	if _, err := get(t, w.Client, "https://example.com/"); err != nil {
		t.Error(err)
	}
}

func TestLoopbackReceiver(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(ok))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	resolver := &script{answers: [][]netip.Addr{addrs(public)}}
	open, closed := New(Options{Loopback: true, Resolver: resolver}), New(Options{Resolver: resolver})
	if res, err := get(t, open, "http://localhost:"+port+"/"); err != nil || string(res.Body) != "fine" {
		t.Errorf("localhost where it is allowed: %v", err)
	}
	if _, err := get(t, closed, "http://localhost:"+port+"/"); !errors.Is(err, ErrRefused) {
		t.Errorf("localhost where it is not: %v", err)
	}
	for _, url := range []string{"http://127.0.0.1:" + port + "/", "http://[::1]:" + port + "/", "http://example.com/"} {
		if _, err := get(t, open, url); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v, want ErrRefused", url, err)
		}
	}
	if len(resolver.asked) > 0 {
		t.Errorf("asked %v", resolver.asked)
	}
}

func TestARequestNeedsABound(t *testing.T) {
	if _, err := New(Options{}).Do(t.Context(), Request{Method: http.MethodGet, URL: "https://example.com/"}); err == nil {
		t.Error("a request without a bound was sent")
	}
}

func FuzzCheck(f *testing.F) {
	c := New(Options{})
	for _, s := range []string{"https://example.com/", "https://0x7f.1/", "https://[::1]/", "https://a.b:443/x?y#z", "https://exam%70le.com"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if c.Check(raw) != nil {
			return
		}
		if !strings.HasPrefix(strings.ToLower(raw), "https://") || strings.ContainsAny(raw, "#\\ \r\n") {
			t.Fatalf("%q passes", raw)
		}
		rest := raw[len("https://"):]
		authority := rest[:min(len(rest), strings.IndexFunc(rest+"/", func(r rune) bool { return r == '/' || r == '?' }))]
		host := strings.TrimSuffix(authority, ":443")
		if _, err := netip.ParseAddr(host); err == nil || strings.Contains(host, "@") || !isPublicName(host) {
			t.Fatalf("%q passes with host %q", raw, host)
		}
	})
}
