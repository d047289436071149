package lambdaedge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
)

// open starts a streamed reply and reads its prelude.
func open(t *testing.T, h *Handler, payload []byte) (reply, *Reply) {
	t.Helper()
	out, err := h.Stream(t.Context(), payload)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	if out.ContentType() != StreamType {
		t.Fatalf("content type %q", out.ContentType())
	}
	var raw []byte
	for b := make([]byte, 1); !bytes.HasSuffix(raw, []byte(preludeEnd)); raw = append(raw, b[0]) {
		if _, err := io.ReadFull(out, b); err != nil {
			t.Fatalf("prelude %q: %v", raw, err)
		}
	}
	return decodeReply(t, bytes.TrimSuffix(raw, []byte(preludeEnd))), out
}

// stream is a whole streamed reply.
func stream(t *testing.T, h *Handler, payload []byte) reply {
	t.Helper()
	r, out := open(t, h, payload)
	body, err := io.ReadAll(out)
	if err != nil {
		t.Fatalf("body %q: %v", body, err)
	}
	r.Body = string(body)
	return r
}

func flowing(h http.HandlerFunc) *Handler { return New(h, Options{Logger: quiet(), Stream: true}) }

// TestStreamArrivesAsWritten: each flush reaches the reader before the handler goes on.
func TestStreamArrivesAsWritten(t *testing.T) {
	next := make(chan struct{})
	h := flowing(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		control := http.NewResponseController(w)
		if err := control.Flush(); err != nil { // status and headers alone
			t.Error(err)
		}
		for _, text := range []string{"one", "two"} {
			<-next
			_, _ = io.WriteString(w, "data: "+text+"\n\n")
			if err := control.Flush(); err != nil {
				t.Error(err)
			}
		}
	})
	r, out := open(t, h, get(nil))
	if r.StatusCode != 200 || r.Headers["Content-Type"] != "text/event-stream" {
		t.Errorf("%+v", r)
	}
	for _, want := range []string{"data: one\n\n", "data: two\n\n"} {
		next <- struct{}{}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(out, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	if rest, err := io.ReadAll(out); len(rest) > 0 || err != nil {
		t.Errorf("after the end: %q, %v", rest, err)
	}
}

// TestStreamBuffers: what is small leaves in one piece, and what is large does not wait for its end.
func TestStreamBuffers(t *testing.T) {
	for _, size := range []int{0, 1, streamBuffer - 1, streamBuffer, streamBuffer + 1, 5*streamBuffer + 7} {
		got := stream(t, flowing(func(w http.ResponseWriter, _ *http.Request) {
			for left := size; left > 0; {
				n := min(left, 1000)
				_, _ = w.Write(bytes.Repeat([]byte("a"), n))
				left -= n
			}
		}), get(nil))
		if got.StatusCode != 200 || len(got.Body) != size {
			t.Errorf("%d bytes: %d, %d bytes", size, got.StatusCode, len(got.Body))
		}
	}
}

// TestStreamPanics: before the first byte has left a panic is a 500; after it the reply breaks off and does not look whole. The process
// lives on.
func TestStreamPanics(t *testing.T) {
	var log bytes.Buffer
	h := New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Partial", "1")
		_, _ = io.WriteString(w, "half a reply")
		switch r.URL.Path {
		case "/after":
			_ = http.NewResponseController(w).Flush()
		case "/long":
			_, _ = w.Write(make([]byte, streamBuffer))
		}
		panic(errors.New("password=secret-canary"))
	}), Options{Logger: slog.New(slog.NewJSONHandler(&log, nil)), Stream: true})
	event := func(path string) []byte {
		return get(func(e *events.APIGatewayV2HTTPRequest) { e.RawPath = path })
	}
	r := stream(t, h, event("/before"))
	wantProblem(t, r, 500, "internal", "internal")
	if r.Headers["X-Partial"] != "" || strings.Contains(r.Body, "half") {
		t.Errorf("a half reply was sent: %+v", r)
	}
	for _, path := range []string{"/after", "/long"} {
		r, out := open(t, h, event(path))
		body, err := io.ReadAll(out)
		if r.StatusCode != 200 || !bytes.HasPrefix(body, []byte("half a reply")) || !errors.Is(err, errCut) {
			t.Errorf("%s: %d, %d bytes, %v", path, r.StatusCode, len(body), err)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines != 3 || strings.Contains(log.String(), "canary") {
		t.Errorf("log %q", log.String())
	}
}

// TestStreamNobodyReads: Close ends the handler's context and its writes, and returns when the handler has.
func TestStreamNobodyReads(t *testing.T) {
	for name, first := range map[string]bool{"before the first byte": false, "after it": true} {
		t.Run(name, func(t *testing.T) {
			began := make(chan struct{})
			ended := false
			h := flowing(func(w http.ResponseWriter, r *http.Request) {
				if first {
					_, _ = io.WriteString(w, "x")
					_ = http.NewResponseController(w).Flush()
				}
				close(began)
				<-r.Context().Done()
				_, _ = io.WriteString(w, "more")
				if err := http.NewResponseController(w).Flush(); !errors.Is(err, errGone) {
					t.Errorf("Flush = %v, want errGone: the handler must learn that it may stop", err)
				}
				if _, err := w.Write([]byte("x")); !errors.Is(err, errGone) {
					t.Errorf("Write = %v", err)
				}
				ended = true
			})
			out, err := h.Stream(t.Context(), get(nil))
			if err != nil {
				t.Fatal(err)
			}
			if first {
				if _, err := out.Read(make([]byte, 512)); err != nil {
					t.Fatal(err)
				}
			}
			<-began
			_ = out.Close()
			if !ended {
				t.Error("Close returned before the handler")
			}
			_ = out.Close() // twice is as good as once
		})
	}
}

// TestStreamDoors: only a function URL is streamed, and only where the function was told; an event of no door fails.
func TestStreamDoors(t *testing.T) {
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hi") })
	const api = "a1.execute-api.eu-west-1.amazonaws.com"
	for name, c := range map[string]struct {
		h     *Handler
		event []byte
	}{
		"buffered function URL": {New(hello, Options{Logger: quiet()}), get(nil)},
		"HTTP API":              {flowing(hello), get(func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.DomainName = api })},
		"REST API":              {flowing(hello), rest(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := c.h.Stream(t.Context(), c.event)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := io.ReadAll(out)
			if r := decodeReply(t, whole); err != nil || out.ContentType() != "application/json" || r.StatusCode != 200 || r.Body != "hi" || out.Close() != nil {
				t.Errorf("%s %s, %v", out.ContentType(), whole, err)
			}
		})
	}
	for _, payload := range []string{"", "null", `{"Records":[{"messageId":"m","body":"secret-canary","eventSource":"aws:sqs"}]}`} {
		if out, err := flowing(hello).Stream(t.Context(), []byte(payload)); !errors.Is(err, ErrNotHTTP) || out != nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%.20q: %v, %v", payload, out, err)
		}
	}
	never := flowing(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
	wantProblem(t, stream(t, never, get(func(e *events.APIGatewayV2HTTPRequest) { e.RawPath = "/%zz" })), 400, "invalid", "bad_request_target")
}

func TestStreamLimit(t *testing.T) {
	var failed error
	write := func(flush bool) *Handler {
		h := flowing(func(w http.ResponseWriter, _ *http.Request) {
			for failed = nil; failed == nil; {
				if _, failed = w.Write(make([]byte, 1000)); flush && failed == nil {
					_ = http.NewResponseController(w).Flush()
				}
			}
		})
		h.maxStream = 5500
		return h
	}
	wantProblem(t, stream(t, write(false), get(nil)), 413, "too_large", "reply_too_large")
	_, out := open(t, write(true), get(nil))
	if body, err := io.ReadAll(out); len(body) != 5000 || !errors.Is(err, errReplyTooLarge) || !errors.Is(failed, errReplyTooLarge) {
		t.Errorf("%d bytes, %v, %v: a reply over the limit must not look whole", len(body), err, failed)
	}
}

// TestStreamInTheRuntime: aws-lambda-go reads the reply and does not encode it, of either kind.
func TestStreamInTheRuntime(t *testing.T) {
	h := flowing(func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "1"})
		_, _ = io.WriteString(w, r.URL.Path)
	})
	got, err := lambda.NewHandler(h.Stream).Invoke(t.Context(), get(nil))
	prelude, body, ok := strings.Cut(string(got), preludeEnd)
	if err != nil || !ok || body != "/" || !json.Valid([]byte(prelude)) || !strings.Contains(prelude, `"cookies":["a=1"]`) {
		t.Errorf("%q, %v", got, err)
	}
	got, err = lambda.NewHandler(h.Stream).Invoke(t.Context(), rest(nil))
	if r := decodeReply(t, got); err != nil || r.StatusCode != 200 || r.Body != "/" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := lambda.NewHandler(h.Stream).Invoke(t.Context(), []byte(`{}`)); !errors.Is(err, ErrNotHTTP) {
		t.Errorf("%v", err)
	}
}

// TestStreamDeadline: the handler's time ends before Lambda's, in time for an answer.
func TestStreamDeadline(t *testing.T) {
	end := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), end)
	defer cancel()
	h := flowing(func(_ http.ResponseWriter, r *http.Request) {
		if got, ok := r.Context().Deadline(); !ok || !got.Equal(end.Add(-margin)) {
			t.Errorf("deadline %v %t, want %v", got, ok, end.Add(-margin))
		}
	})
	out, err := h.Stream(ctx, get(nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(out); err != nil {
		t.Error(err)
	}
}
