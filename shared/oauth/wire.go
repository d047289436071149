package oauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"
)

// wireError is an answer of /token, /revoke and /register (RFC 6749 section 5.2, RFC 7591 section 3.2.2). The code is of a
// closed set and the description dull on purpose: what exactly was wrong helps a forger. reason is for logs and tests.
type wireError struct {
	status      int
	code        string
	description string
	reason      string
	retry       time.Duration // of a 429 or 503
	cause       error
}

// Error is for logs.
func (e *wireError) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("oauth: %s: %s: %v", e.code, e.reason, e.cause)
	}
	return "oauth: " + e.code + ": " + e.reason
}

// Unwrap is the private cause.
func (e *wireError) Unwrap() error { return e.cause }

// The closed set of codes. RFC 6749 section 5.2, RFC 7009 section 2.2.1, RFC 8707 section 2, RFC 7591 section 3.2.2.
const (
	codeInvalidRequest       = "invalid_request"
	codeInvalidClient        = "invalid_client"
	codeInvalidGrant         = "invalid_grant"
	codeUnauthorizedClient   = "unauthorized_client"
	codeUnsupportedGrantType = "unsupported_grant_type"
	codeInvalidScope         = "invalid_scope"
	codeInvalidTarget        = "invalid_target"
	codeInvalidRedirect      = "invalid_redirect_uri"
	codeInvalidMetadata      = "invalid_client_metadata"
	codeTooManyRequests      = "temporarily_unavailable"
)

// descriptions is one text for each code, so that two causes can't be told apart by it.
//
//nolint:gochecknoglobals // constant table
var descriptions = map[string]string{
	codeInvalidRequest:       "The request is malformed, lacks a parameter or repeats one.",
	codeInvalidClient:        "The client is unknown or did not authenticate as it registered.",
	codeInvalidGrant:         "The code or token is invalid, expired, revoked or of another client.",
	codeUnauthorizedClient:   "The client may not use this grant type.",
	codeUnsupportedGrantType: "The grant type is not authorization_code, refresh_token or client_credentials.",
	codeInvalidScope:         "The scope is unknown or wider than what was granted; ask the person again.",
	codeInvalidTarget:        "The resource is not this server's.",
	codeInvalidRedirect:      "A redirect URI is neither https, nor http on loopback, nor of a private scheme.",
	codeInvalidMetadata:      "The client metadata can't be used.",
	codeTooManyRequests:      "The service can't answer now; try again later.",
}

func refuse(code, reason string) *wireError {
	status := http.StatusBadRequest
	if code == codeInvalidClient {
		status = http.StatusUnauthorized
	}
	return &wireError{status: status, code: code, description: descriptions[code], reason: reason}
}

// later is the answer when a dependency is down: 503, never 500 (a client that reads 500 gives up for good).
func later(step string, cause error) *wireError {
	return &wireError{
		status: http.StatusServiceUnavailable, code: codeTooManyRequests, description: descriptions[codeTooManyRequests],
		reason: step, retry: 5 * time.Second, cause: cause,
	}
}

// asWire makes any error one that can be answered.
func asWire(err error) *wireError {
	if e, ok := errors.AsType[*wireError](err); ok {
		return e
	}
	return later("unexpected", err)
}

// anyOrigin opens an endpoint that never reads a cookie to every page (preflight included), and says whether that was all.
func anyOrigin(w http.ResponseWriter, r *http.Request, methods string) (done bool) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Retry-After")
	if r.Method != http.MethodOptions {
		return false
	}
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Allow-Headers", allowedHeaders)
	h.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// answerJSON writes a reply that no cache may keep (RFC 6749 section 5.1, MUST).
func answerJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // our own types: can't happen, and must not become a half-written reply
		status, body = http.StatusServiceUnavailable, []byte(`{"error":"`+codeTooManyRequests+`"}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Pragma", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that went away is nobody's problem
}

// refuseWith answers an error and logs why.
func (s *Server) refuseWith(w http.ResponseWriter, r *http.Request, door string, err error) {
	e := asWire(err)
	s.logRefusal(r, door, e.code, e)
	if e.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(e.retry/time.Second)))
	}
	// RFC 6749 section 5.2 asks for the scheme when the client used the header, RFC 9110 section 15.5.2 always.
	if e.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="token", charset="UTF-8"`)
	}
	answerJSON(w, e.status, struct {
		Error       string `json:"error"`
		Description string `json:"error_description,omitempty"`
	}{e.code, e.description})
}

// logRefusal writes one line: reasons are of our own making and never carry what the caller sent.
func (s *Server) logRefusal(r *http.Request, door, code string, err error) {
	level := slog.LevelInfo
	if code == codeTooManyRequests {
		level = slog.LevelWarn
	}
	s.Logger.LogAttrs(r.Context(), level, "oauth refusal", slog.String("door", door), slog.String("code", code), slog.String("reason", err.Error()))
}

// onlyPost refuses other methods in JSON.
func onlyPost(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodPost {
		return true
	}
	w.Header().Set("Allow", "POST, OPTIONS")
	answerJSON(w, http.StatusMethodNotAllowed, map[string]string{
		"error": codeInvalidRequest, "error_description": "This endpoint takes POST.",
	})
	return false
}

// readBody reads at most limit bytes.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFormMalformed, err)
	}
	if int64(len(body)) > limit {
		return nil, errFormTooLarge
	}
	return body, nil
}
