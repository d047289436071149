package mcp

import (
	"encoding/json"
	"sync"
)

// Notifier sends notifications that belong to one running request. Several goroutines may use it; when the request was answered it sends
// nothing more. All methods take a nil *Notifier and then do nothing.
type Notifier struct {
	token []byte // progressToken, raw; nil: progress was not asked for
	logs  bool   // notifications/message may be sent

	mu   sync.Mutex
	x    *exchange // nil once the request was answered
	s    *Server
	last float64
	any  bool // last is set
}

// Progress tells the client how far the request is; total 0: unknown. It must increase (MCP 2026-07-28, progress), or it is ErrProgress
// and nothing is sent. Nothing limits its rate: the handler does. Any other error means that the client is gone.
func (n *Notifier) Progress(progress, total float64, message string) error {
	return nil
}

// Message sends notifications/message to a client of the 2025 era, where the server serves logging/setLevel; elsewhere it does nothing. data
// is JSON.
func (n *Notifier) Message(level, logger string, data json.RawMessage) error {
	return nil
}
