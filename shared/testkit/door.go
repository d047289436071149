package testkit

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// FunctionURL is an http.RoundTripper that does what a Lambda function URL does: it turns the request into an event of
// payload version 2.0, invokes, and turns the reply back, with that door's quirks (header names in lower case, repeated
// headers joined, WWW-Authenticate renamed).
type FunctionURL struct {
	Invoke func(ctx context.Context, event []byte) ([]byte, error)
	Host   string // the function URL's own domain
}

type urlEvent struct {
	Version         string            `json:"version"`
	RouteKey        string            `json:"routeKey"`
	RawPath         string            `json:"rawPath"`
	RawQueryString  string            `json:"rawQueryString"`
	Cookies         []string          `json:"cookies,omitempty"`
	Headers         map[string]string `json:"headers"`
	RequestContext  urlContext        `json:"requestContext"`
	Body            string            `json:"body,omitempty"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

type urlContext struct {
	AccountID    string            `json:"accountId"`
	APIID        string            `json:"apiId"`
	DomainName   string            `json:"domainName"`
	DomainPrefix string            `json:"domainPrefix"`
	HTTP         map[string]string `json:"http"`
	RequestID    string            `json:"requestId"`
	RouteKey     string            `json:"routeKey"`
	Stage        string            `json:"stage"`
	Time         string            `json:"time"`
	TimeEpoch    int64             `json:"timeEpoch"`
}

type urlReply struct {
	StatusCode      int               `json:"statusCode"`
	Headers         map[string]string `json:"headers"`
	Cookies         []string          `json:"cookies"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

// Event is the event that the door makes of a request.
func (f *FunctionURL) Event(r *http.Request) ([]byte, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, fmt.Errorf("read body: %w", err)
		}
	}
	e := urlEvent{
		Version: "2.0", RouteKey: "$default", RawPath: r.URL.EscapedPath(), RawQueryString: r.URL.RawQuery,
		Headers: map[string]string{"host": f.Host, "x-forwarded-proto": "https", "x-forwarded-port": "443"},
		RequestContext: urlContext{
			AccountID: "anonymous", APIID: "abc", DomainName: f.Host, DomainPrefix: strings.SplitN(f.Host, ".", 2)[0],
			HTTP: map[string]string{
				"method": r.Method, "path": r.URL.Path, "protocol": "HTTP/1.1", "sourceIp": "203.0.113.7",
				"userAgent": r.UserAgent(),
			},
			RequestID: "00000000-0000-4000-8000-000000000000", RouteKey: "$default", Stage: "$default",
			Time: time.Unix(0, 0).UTC().Format("02/Jan/2006:15:04:05 -0700"),
		},
	}
	for name, values := range r.Header {
		e.Headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	for _, c := range r.Cookies() {
		e.Cookies = append(e.Cookies, c.String())
	}
	// A function URL leaves text alone and encodes what its content type does not name as text.
	if kind := r.Header.Get("Content-Type"); strings.HasPrefix(kind, "application/json") || strings.HasPrefix(kind, "text/") {
		e.Body = string(body)
	} else if len(body) > 0 {
		e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	return json.Marshal(e)
}

// RoundTrip sends one request through the door.
func (f *FunctionURL) RoundTrip(r *http.Request) (*http.Response, error) {
	event, err := f.Event(r)
	if err != nil {
		return nil, err
	}
	raw, err := f.Invoke(r.Context(), event)
	if err != nil {
		return nil, err
	}
	var reply urlReply
	if err := json.Unmarshal(raw, &reply); err != nil {
		return nil, fmt.Errorf("reply %.200q: %w", raw, err)
	}
	body := []byte(reply.Body)
	if reply.IsBase64Encoded {
		if body, err = base64.StdEncoding.DecodeString(reply.Body); err != nil {
			return nil, fmt.Errorf("reply body: %w", err)
		}
	}
	header := http.Header{}
	for name, value := range reply.Headers {
		if strings.EqualFold(name, "WWW-Authenticate") {
			name = "x-amzn-Remapped-www-authenticate"
		}
		header.Set(name, value)
	}
	for _, c := range reply.Cookies {
		header.Add("Set-Cookie", c)
	}
	return &http.Response{
		StatusCode: reply.StatusCode, Status: http.StatusText(reply.StatusCode), Header: header, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}
