package oauth

import (
	"errors"
	"net/http"

	"github.com/buzon-mail/buzon/shared/oauth/page"
)

// show writes a page with the headers that every page has. Cross-Origin-Opener-Policy is left out: connectors open consent in
// a pop-up and watch it close.
func (s *Server) show(w http.ResponseWriter, status int, body []byte) {
	s.showUnder(w, status, body, page.ContentSecurityPolicy)
}

func (s *Server) showUnder(w http.ResponseWriter, status int, body []byte, policy string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer") // addresses of these pages hold links and requests
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept-Language")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that went away is nobody's problem
}

// showCeremony is show for a page that may ask for a passkey.
func (s *Server) showCeremony(w http.ResponseWriter, status int, body []byte) {
	if s.passkeys == nil {
		s.show(w, status, body)
		return
	}
	s.showUnder(w, status, body, page.ScriptPolicy(s.Issuer+PasskeyScriptPath))
}

func language(r *http.Request) string { return page.Language(r.Header.Get("Accept-Language")) }

// showError shows a problem and logs why. What is not a pageError is ours to mend.
func (s *Server) showError(w http.ResponseWriter, r *http.Request, err error) {
	p, ok := errors.AsType[*pageError](err)
	if !ok {
		p = &pageError{status: http.StatusServiceUnavailable, text: page.Unavailable, reason: "unexpected", cause: err}
		if e, ok := errors.AsType[*wireError](err); ok && e.status == http.StatusTooManyRequests {
			p.status, p.text = e.status, page.TooMany
		}
	}
	code := codeInvalidRequest
	if p.status == http.StatusServiceUnavailable {
		code = codeTooManyRequests
	}
	s.logRefusal(r, "page", code, p)
	s.show(w, p.status, page.Error(language(r), s.Name, p.text))
}

// serveStart is the page at the root.
func (s *Server) serveStart(w http.ResponseWriter, r *http.Request) {
	if !onlyGet(w, r) {
		return
	}
	s.show(w, http.StatusOK, page.Start{Service: s.Name, Key: s.Key, URL: s.Resource, SignIn: SignInPath}.Write(language(r)))
}

func onlyGet(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	w.WriteHeader(http.StatusMethodNotAllowed)
	return false
}

// samePage refuses a POST that another site's page sent. Browsers say where a request comes from; who says nothing is no
// browser, and must still hold the cookie and what is bound to it.
func (s *Server) samePage(r *http.Request) error {
	if err := s.origins.Check(r); err != nil {
		return &pageError{status: http.StatusForbidden, text: page.StaleForm, reason: "posted from another site", cause: err}
	}
	return nil
}

// pageForm reads a form that one of our pages posted.
func (s *Server) pageForm(r *http.Request) (form, error) {
	if err := s.samePage(r); err != nil {
		return nil, err
	}
	f, err := postedForm(r)
	if err != nil {
		return nil, &pageError{status: http.StatusBadRequest, text: page.BadRequest, reason: "form", cause: err}
	}
	return f, nil
}

// posted serves a path that only our own forms post to.
func (s *Server) posted(answer func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", "POST")
			s.showError(w, r, showProblem(http.StatusMethodNotAllowed, page.BadRequest, "method"))
			return
		}
		if err := answer(w, r); err != nil {
			s.showError(w, r, err)
		}
	})
}

// sessionToken ties a form to a session: another session's value is refused, and it says nothing about the cookie.
func (s *Server) sessionToken(ses *session) string {
	return encode(mac(s.addresses, "session", ses.hash))
}

// see redirects within the service.
func see(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusSeeOther)
}
