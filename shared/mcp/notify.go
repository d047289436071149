package mcp

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Notifier sends notifications that belong to one running request. Several goroutines may use it; when the request was answered it sends
// nothing more. All methods take a nil *Notifier and then do nothing.
type Notifier struct {
	token   []byte // progressToken, raw; nil: progress was not asked for
	logs    bool   // notifications/message may be sent
	version Version
	server  *Server

	mu   sync.Mutex // guards what follows, and the exchange's writer while the request runs
	x    *exchange  // nil once the request was answered
	last float64
	sent bool // last is set
}

// notifier is nil unless the client asked for notifications and reads event streams.
func (s *Server) notifier(x *exchange) *Notifier {
	token := x.frame.progress
	if !validID(token) {
		token = nil // judged already in the stateless era; before, it is as good as absent
	}
	logs := s.logs && !x.version.Stateless()
	if token == nil && !logs || !acceptsStream(x.r.Header) {
		return nil
	}
	// The token is copied: a goroutine of the handler may outlive the body's buffer.
	x.notify = &Notifier{token: append([]byte(nil), token...), logs: logs, version: x.version, server: s, x: x}
	return x.notify
}

// Progress tells the client how far the request is; total 0: unknown. It must increase (MCP 2026-07-28, progress), or it is ErrProgress
// and nothing is sent. Nothing limits its rate: the handler does. Any other error means that the client is gone.
func (n *Notifier) Progress(progress, total float64, message string) error {
	if n == nil || len(n.token) == 0 {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.x == nil || !finite(progress) || !finite(total) || n.sent && progress <= n.last {
		return ErrProgress
	}
	n.last, n.sent = progress, true
	b := append([]byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`), n.token...)
	b = appendNumber(append(b, `,"progress":`...), progress)
	if total > 0 {
		b = appendNumber(append(b, `,"total":`...), total)
	}
	if n.version.AtLeast(V20250326) { // 2024-11-05 has no message
		b = appendText(b, "message", message)
	}
	return n.send(append(b, "}}"...))
}

// Message sends notifications/message to a client of the 2025 era, where the server serves logging/setLevel; elsewhere it does nothing. level is
// one of RFC 5424's names in lower case, data is JSON.
func (n *Notifier) Message(level, logger string, data json.RawMessage) error {
	if n == nil || !n.logs {
		return nil
	}
	if !json.Valid(data) {
		return errors.New("mcp: the data of a message is not JSON")
	}
	data, err := oneLine(data)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.x == nil {
		return ErrProgress
	}
	b := appendQuoted([]byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":`), level)
	b = append(append(appendText(b, "logger", logger), `,"data":`...), data...)
	return n.send(append(b, "}}"...))
}

// send writes one event and begins the stream with the first. n.mu is held.
func (n *Notifier) send(message []byte) error {
	x := n.x
	if err := x.ctx.Err(); err != nil {
		return err
	}
	if !x.streaming {
		x.streaming = true
		h := n.server.head(x, 0)
		h["Content-Type"] = streamType
		h["X-Accel-Buffering"] = unbuffered // MCP 2026-07-28, transports, "Receiving Messages"
		x.w.WriteHeader(http.StatusOK)
	}
	return x.event(message, nil, nil)
}

// close waits for a notification that is being written; none comes after it.
func (n *Notifier) close() {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.x = nil
}

// event writes one message as a server-sent event. Messages are one line, so one data field holds it. A writer that can't flush sends the
// whole body at once, which is all that a buffered front door can do anyway.
func (x *exchange) event(head []byte, items [][]byte, tail []byte) error {
	parts := append(append([][]byte{[]byte("data: "), head}, items...), tail, []byte("\n\n"))
	for _, part := range parts {
		n, err := x.w.Write(part)
		x.written += n
		if err != nil {
			return err
		}
	}
	err := http.NewResponseController(x.w).Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// acceptsStream reports whether a client said that it reads event streams. A wildcard is not enough: programs send it that know nothing of
// them.
func acceptsStream(h http.Header) bool {
	v, _ := field(h, "Accept")
	for part := range strings.SplitSeq(v, ",") {
		media, params, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(media), streamType[0]) {
			continue
		}
		q, found := strings.CutPrefix(strings.TrimSpace(strings.ToLower(params)), "q=")
		weight, err := strconv.ParseFloat(q, 64)
		return !found || err == nil && weight > 0
	}
	return false
}
