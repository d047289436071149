package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/buzon-mail/buzon/shared/oauth/page"
)

// The two ways in which an authorization request is refused are different types, so that no mistake turns one into the
// other: before client and redirect URI are proven nothing may be redirected (RFC 6749 section 4.1.2.1, MUST NOT), or the
// server would send people wherever an attacker wrote.

// pageError is shown to the person, here.
type pageError struct {
	status int
	text   page.Problem
	reason string // for logs
	cause  error
}

// Error is for logs.
func (e *pageError) Error() string {
	if e.cause != nil {
		return e.reason + ": " + e.cause.Error()
	}
	return e.reason
}

// Unwrap is the private cause.
func (e *pageError) Unwrap() error { return e.cause }

func showProblem(status int, text page.Problem, reason string) *pageError {
	return &pageError{status: status, text: text, reason: reason}
}

// redirectError goes back to the client (RFC 6749 section 4.1.2.1).
type redirectError struct {
	code   string
	reason string
}

// Error is for logs.
func (e *redirectError) Error() string { return e.code + ": " + e.reason }

// authorization is a request whose client and redirect are proven.
type authorization struct {
	Client    client   `json:"client"`
	Redirect  string   `json:"redirect"`  // where to answer, exactly as requested
	Requested bool     `json:"requested"` // the request named it, so the token request must not name another
	State     string   `json:"state,omitempty"`
	Challenge string   `json:"challenge"`
	Scopes    []string `json:"scopes"` // asked for and known
	Form      form     `json:"form"`   // as it came, to start over
}

// parameters are those that we read; others are ignored (RFC 6749 section 3.1, MUST) and not carried along.
//
//nolint:gochecknoglobals // constant table
var parameters = []string{
	"client_id", "redirect_uri", "response_type", "response_mode", "state", "scope", "resource", "code_challenge",
	"code_challenge_method", "prompt", "request", "request_uri",
}

func (s *Server) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		s.showError(w, r, showProblem(http.StatusMethodNotAllowed, page.BadRequest, "method"))
		return
	}
	f, err := authorizationForm(r.URL.RawQuery)
	if err == nil {
		err = s.authorize(w, r, f)
	}
	if err != nil {
		s.showError(w, r, err)
	}
}

func authorizationForm(query string) (form, error) {
	if len(query) > maxQuery {
		return nil, showProblem(http.StatusRequestURITooLong, page.BadRequest, "query too long")
	}
	f, err := decodeForm(query)
	if err != nil {
		return nil, &pageError{status: http.StatusBadRequest, text: page.BadRequest, reason: "query", cause: err}
	}
	kept := form{}
	for _, name := range parameters {
		if v, ok := f[name]; ok {
			kept[name] = v
		}
	}
	if len(kept["state"]) > maxState {
		return nil, showProblem(http.StatusBadRequest, page.BadRequest, "state too long")
	}
	return kept, nil
}

// authorize answers a request with a page or a redirect. Order: client, redirect URI, the rest, person, consent.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request, f form) error {
	ses, err := s.session(r)
	if err != nil {
		return err
	}
	c, err := s.client(r.Context(), f, ses)
	if err != nil {
		return err
	}
	if c == nil { // a document that is not fetched for strangers
		return s.askSignIn(w, r, f)
	}
	a := authorization{Client: *c, State: f["state"], Form: f, Requested: f["redirect_uri"] != ""}
	var ok bool
	if a.Redirect, ok = c.redirect(f["redirect_uri"]); !ok {
		return showProblem(http.StatusBadRequest, page.BadRedirect, "redirect URI is not registered")
	}
	err = s.checkRequest(&a, f)
	if err == nil {
		err = checkPrompt(f["prompt"], ses)
	}
	if refused, ok := errors.AsType[*redirectError](err); ok {
		// Anybody can register a client, so a stranger who opens a link of ours must not land at its redirect at once: the
		// person signs in first (RFC 9700 section 4.11.2, MUST, with the exception of prompt=none).
		if ses == nil && !hasPrompt(f["prompt"], "none") {
			return s.askSignIn(w, r, f)
		}
		s.logRefusal(r, "authorize", refused.code, refused)
		s.redirect(w, r, a, url.Values{"error": {refused.code}, "error_description": {redirectText(refused.code)}})
		return nil
	}
	if err != nil {
		return err
	}
	if ses == nil {
		return s.askSignIn(w, r, f)
	}
	return s.askConsent(w, r, a, ses)
}

// client finds who asks. nil without an error: it takes a signed-in person to find out.
func (s *Server) client(ctx context.Context, f form, ses *session) (*client, error) {
	id := f["client_id"]
	switch {
	case id == "":
		return nil, showProblem(http.StatusBadRequest, page.BadRequest, "no client_id")
	case !isDocumentID(id):
		if c, ok := s.registeredClient(id); ok {
			return c, nil
		}
		return nil, showProblem(http.StatusBadRequest, page.UnknownClient, "unknown client")
	case !s.documentID(id):
		return nil, showProblem(http.StatusBadRequest, page.UnknownClient, "malformed client document address")
	case ses != nil:
		c, err := s.documentClient(ctx, id, ses.Person)
		if errors.Is(err, errDocument) {
			return nil, &pageError{status: http.StatusBadRequest, text: page.ClientDocument, reason: "client document", cause: err}
		}
		return c, err
	case hasPrompt(f["prompt"], "none"):
		return nil, showProblem(http.StatusBadRequest, page.SignInNeeded, "prompt=none before sign-in")
	}
	return nil, nil //nolint:nilnil // documented
}

// checkRequest reads what may be answered by redirect.
func (s *Server) checkRequest(a *authorization, f form) error {
	deny := func(code, reason string) error { return &redirectError{code, reason} }
	switch {
	case f["request"] != "":
		return deny("request_not_supported", "request object")
	case f["request_uri"] != "":
		return deny("request_uri_not_supported", "request object by reference")
	case f["response_type"] == "":
		return deny(codeInvalidRequest, "no response_type")
	case f["response_type"] != "code":
		return deny("unsupported_response_type", "response_type is not code")
	case f["response_mode"] != "" && f["response_mode"] != "query":
		return deny(codeInvalidRequest, "response_mode is not query")
	case f["code_challenge_method"] != methodS256: // absent means plain (RFC 7636 section 4.3)
		return deny(codeInvalidRequest, "code_challenge_method is not S256")
	case !validChallenge(f["code_challenge"]):
		return deny(codeInvalidRequest, "code_challenge is not an S256 challenge")
	case f["resource"] != "" && !namesResource(f["resource"], s.Resource):
		return deny(codeInvalidTarget, "another resource")
	}
	var ok bool
	if a.Scopes, ok = s.requestedScopes(f["scope"]); !ok {
		return deny(codeInvalidScope, "no known scope")
	}
	a.Challenge = f["code_challenge"]
	return nil
}

// checkPrompt: consent is always asked, so prompt=none can't succeed (OpenID Connect Core section 3.1.2.6). Other values are
// what happens anyway, or unknown and ignored.
func checkPrompt(prompt string, ses *session) error {
	switch {
	case !hasPrompt(prompt, "none"):
		return nil
	case ses == nil:
		return &redirectError{"login_required", "prompt=none"}
	}
	return &redirectError{"interaction_required", "prompt=none"}
}

func hasPrompt(prompt, value string) bool { return slices.Contains(strings.Fields(prompt), value) }

func redirectText(code string) string {
	switch code {
	case "access_denied":
		return "The person did not approve."
	case "login_required", "interaction_required":
		return "A person has to sign in and approve."
	case "unsupported_response_type":
		return "The response type is not code."
	case "request_not_supported", "request_uri_not_supported":
		return "Request objects are not supported."
	}
	return descriptions[code]
}

// redirect sends the browser back to the client. iss is on every answer, errors too (RFC 9207 section 2). 303: the browser
// must not repeat a POST, which would carry our form to the client.
func (s *Server) redirect(w http.ResponseWriter, _ *http.Request, a authorization, q url.Values) {
	q.Set("iss", s.Issuer)
	if a.State != "" {
		q.Set("state", a.State)
	}
	h := w.Header()
	h.Set("Location", withParameters(a.Redirect, q))
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusSeeOther)
}

// sealRequest makes the hidden field that carries a request through sign-in, bound to this browser: another browser's, or an
// attacker's own, does not open.
func (s *Server) sealRequest(f form, browser string) (string, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return "", err //nolint:wrapcheck // a map of texts
	}
	return s.requests.Seal(text, []byte(browser), sealedTime) //nolint:wrapcheck // seal names the step
}

func (s *Server) openRequest(field, browser string) (form, error) {
	if browser == "" {
		return nil, errors.New("no browser cookie")
	}
	text, err := s.requests.Open(field, []byte(browser))
	if err != nil {
		return nil, err //nolint:wrapcheck // seal names the step
	}
	var f form
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, err //nolint:wrapcheck // what we sealed
	}
	return f, nil
}

// again is the address that repeats an authorization request.
func (f form) again() string {
	q := url.Values{}
	for name, value := range f {
		q.Set(name, value)
	}
	return AuthorizePath + "?" + q.Encode()
}
