// Package faults is an HTTP client for AWS's SDK that goes wrong as told: it refuses, loses answers, hangs and lies, one step a
// request, and remembers what was asked. Tests only. It knows the protocols' shape of an error and no service.
package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Step answers one request; pass sends it on.
type Step func(r *http.Request, pass func() (*http.Response, error)) (*http.Response, error)

// Client sends requests to a server in process, but for those that a step takes.
type Client struct {
	// Server answers; nil is for tests whose steps answer everything.
	Server http.Handler

	mu    sync.Mutex
	steps []Step
	asked []Request
}

// Request is what was asked.
type Request struct {
	Op     string // the operation of a JSON protocol, or method and path
	Header http.Header
	Body   []byte
}

// Do implements the SDK's HTTP client.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	body := []byte{}
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, fmt.Errorf("read the request: %w", err)
		}
	}
	c.mu.Lock()
	c.asked = append(c.asked, Request{Op: op(r), Header: r.Header.Clone(), Body: body})
	var step Step
	if len(c.steps) > 0 {
		step, c.steps = c.steps[0], c.steps[1:]
	}
	c.mu.Unlock()
	pass := func() (*http.Response, error) {
		if c.Server == nil {
			return nil, errors.New("faults: no step for this request, and no server")
		}
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		rec, in := httptest.NewRecorder(), r.Clone(r.Context())
		in.Body, in.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		in.Header.Set("Content-Length", strconv.Itoa(len(body))) // as a server finds it
		in.RequestURI, in.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:1"
		if in.Host == "" {
			in.Host = r.URL.Host
		}
		c.Server.ServeHTTP(rec, in)
		return rec.Result(), nil
	}
	if step == nil {
		return pass()
	}
	return step(r, pass)
}

func op(r *http.Request) string {
	if _, name, ok := strings.Cut(r.Header.Get("X-Amz-Target"), "."); ok {
		return name
	}
	return r.Method + " " + r.URL.Path
}

// Then sets the steps of the next requests and forgets those before.
func (c *Client) Then(steps ...Step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps, c.asked = steps, nil
}

// Asked returns the requests since Then.
func (c *Client) Asked() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Request(nil), c.asked...)
}

// WantOps fails the test unless these operations were asked, in this order.
func (c *Client) WantOps(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, r := range c.Asked() {
		got = append(got, r.Op)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("requests %v, want %v", got, want)
	}
}

// Repeat is n times the same step.
func Repeat(n int, s Step) []Step {
	out := make([]Step, n)
	for i := range out {
		out[i] = s
	}
	return out
}

// Pass lets a request through.
func Pass() Step {
	return func(_ *http.Request, pass func() (*http.Response, error)) (*http.Response, error) { return pass() }
}

// Timeout is a request that never reached the service and was given up.
func Timeout() Step {
	return func(*http.Request, func() (*http.Response, error)) (*http.Response, error) { return nil, timeout{} }
}

// Lost is a request that the service carried out, and whose answer never came.
func Lost() Step {
	return func(_ *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
		resp, err := pass()
		if err != nil {
			return nil, err
		}
		_ = resp.Body.Close()
		return nil, timeout{}
	}
}

// timeout is what net/http says of a server that does not answer.
type timeout struct{}

func (timeout) Error() string   { return "net/http: timeout awaiting response headers" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

// Hang runs then and waits until the caller gives up.
func Hang(then func()) Step {
	return func(r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
		then()
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
}

// Answer is a whole answer.
func Answer(status int, body string, headers ...string) Step {
	return func(r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
		h := http.Header{"X-Amzn-Requestid": {"REQ123"}, "X-Amz-Request-Id": {"REQ123"}}
		for i := 0; i+1 < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		return &http.Response{
			StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h,
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
		}, nil
	}
}

// Refuse is the answer by which AWS refuses, in the protocol of the request.
func Refuse(status int, code, message string, headers ...string) Step {
	return func(r *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
		body := fmt.Sprintf("<Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
		if r.Header.Get("X-Amz-Target") != "" {
			b, err := json.Marshal(map[string]string{"__type": "com.amazonaws.service#" + code, "message": message})
			if err != nil {
				return nil, err
			}
			body = string(b)
		}
		return Answer(status, body, headers...)(r, pass)
	}
}

// Skewed refuses a signature because the service's clock is ahead by this much.
func Skewed(ahead time.Duration, code string) Step {
	return func(r *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
		date := time.Now().Add(ahead).UTC().Format(http.TimeFormat)
		return Refuse(http.StatusForbidden, code, "Signature expired", "Date", date)(r, pass)
	}
}
