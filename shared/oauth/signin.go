package oauth

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/oauth/page"
	"github.com/buzon-mail/buzon/shared/store"
)

const (
	linkLifetime = 15 * time.Minute
	// invitationLifetime is longer: an invitation is handed from one person to another, who may read it tomorrow.
	invitationLifetime = 72 * time.Hour
	linkFormat         = 1
)

// linkRow is a one-time sign-in link, stored under its hash.
type linkRow struct {
	Person string    `json:"person"`
	Made   time.Time `json:"made,omitzero"`
}

func linkKey(token string) store.Key {
	return store.Key{Table: store.Ephemeral, Partition: "oauth/link/" + fingerprint(token), Sort: "link"}
}

// SignInLink makes an address that signs a person in, once, for 15 minutes. Whoever may read it is that person: print it
// where the person, or who answers for them, reads.
func (s *Server) SignInLink(ctx context.Context, person string) (address string, expires time.Time, err error) {
	p, err := s.People.Person(ctx, person)
	if err != nil {
		return "", time.Time{}, err //nolint:wrapcheck // the directory's own errors are for callers
	}
	return s.printLink(ctx, p, linkLifetime, LinkEvent(p.Organization, p.ID))
}

// printLink makes a link with the line that tells of it.
func (s *Server) printLink(ctx context.Context, p Person, life time.Duration, e Event) (address string, expires time.Time, err error) {
	var lines []store.Op
	if s.Journal != nil {
		line, err := s.Journal.Line(ctx, e)
		if err != nil {
			return "", time.Time{}, fmt.Errorf("line of %s: %w", e.Name, err)
		}
		lines = append(lines, line)
	}
	now := s.Clock()
	address, expires, err = keepLink(ctx, s.Store, s.Issuer, linkRow{p.ID, now.UTC()}, now.Add(life), s.Random, lines...)
	if err == nil {
		s.audit(ctx, e)
	}
	return address, expires, err
}

// LinkEvent is that a sign-in link was printed for a person.
func LinkEvent(organization, person string) Event {
	return Event{Name: "link.created", Organization: organization, By: ByCommandLine, Target: person}
}

// KeepLink makes a sign-in link with nothing but the rows of the server that will take it: for an administrator who can write
// them anyway. lines are what is written with it, to tell of it. That the person exists is the caller's to know.
func KeepLink(
	ctx context.Context, rows store.Engine, issuer, person string, now time.Time, random io.Reader, lines ...store.Op,
) (address string, expires time.Time, err error) {
	return keepLink(ctx, rows, issuer, linkRow{person, now.UTC()}, now.Add(linkLifetime), random, lines...)
}

func keepLink(
	ctx context.Context, rows store.Engine, issuer string, row linkRow, until time.Time, random io.Reader, lines ...store.Op,
) (address string, expires time.Time, err error) {
	token, err := draw256(random)
	if err != nil {
		return "", time.Time{}, err
	}
	item, err := store.Encode(linkKey(token), linkFormat, 1, row)
	if err != nil {
		return "", time.Time{}, err //nolint:wrapcheck // the store names the step
	}
	item.Expires = until
	if err := rows.Transact(ctx, append([]store.Op{store.Put(item, store.Absent())}, lines...)...); err != nil {
		return "", time.Time{}, fmt.Errorf("keep sign-in link: %w", err)
	}
	return issuer + SignInPath + "?link=" + token, item.Expires, nil
}

// link reads whose a link is, and changes nothing: previews and scanners open links too.
func (s *Server) link(ctx context.Context, token string) (linkRow, error) {
	if len(token) != 43 {
		return linkRow{}, errNoLink
	}
	item, err := s.Store.Get(ctx, linkKey(token))
	if errors.Is(err, store.ErrNotFound) {
		return linkRow{}, errNoLink
	}
	if err != nil {
		return linkRow{}, fmt.Errorf("read sign-in link: %w", err)
	}
	return store.Decode[linkRow](item, linkFormat) //nolint:wrapcheck // the store names the step
}

var errNoLink = errors.New("oauth: no such sign-in link")

// pasted takes the token out of what a person pasted: the link, or its last part.
func pasted(s string) string {
	s = strings.TrimSpace(s)
	if u, err := url.Parse(s); err == nil && u.Query().Get("link") != "" {
		return u.Query().Get("link")
	}
	return s
}

// askSignIn shows the sign-in page to somebody whose authorization request has to wait.
func (s *Server) askSignIn(w http.ResponseWriter, r *http.Request, f form) error {
	return s.signInPage(w, r, http.StatusOK, f, page.SignIn{})
}

func (s *Server) signInPage(w http.ResponseWriter, r *http.Request, status int, f form, p page.SignIn) error {
	browser, err := s.browser(w, r)
	if err != nil {
		return err
	}
	if p.Request, err = s.sealRequest(f, browser); err != nil {
		return &pageError{status: http.StatusBadRequest, text: page.BadRequest, reason: "seal request", cause: err}
	}
	p.Service, p.Action = s.Name, SignInPath
	if next := f.next(); next != SignInPath {
		p.Again = next
	}
	if p.Passkey, err = s.ceremony(s.passkeys.SignIn, browser); err != nil {
		return err
	}
	p.Passkey.Action = PasskeyPath
	if s.upstream != nil {
		p.Upstream, p.UpstreamPath = s.upstream.Name, UpstreamPath
	}
	s.showCeremony(w, status, p.Write(language(r)))
	return nil
}

// serveSignIn is the page without an authorization: a link that was opened, or a person who wants to see what is connected.
func (s *Server) serveSignIn(w http.ResponseWriter, r *http.Request) {
	s.servePage(w, r, s.signInStart, s.signIn)
}

// servePage serves a page that is looked at and sent back.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request, get, post func(http.ResponseWriter, *http.Request) error) {
	var err error
	switch r.Method {
	case http.MethodPost:
		err = post(w, r)
	case http.MethodGet, http.MethodHead:
		err = get(w, r)
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		err = showProblem(http.StatusMethodNotAllowed, page.BadRequest, "method")
	}
	if err != nil {
		s.showError(w, r, err)
	}
}

func (s *Server) signInStart(w http.ResponseWriter, r *http.Request) error {
	f, err := authorizationlessForm(r.URL.RawQuery)
	if err != nil {
		return err
	}
	token := f["link"]
	if token == "" {
		ses, err := s.session(r)
		if err != nil {
			return err
		}
		if ses != nil {
			return s.signedIn(w, r, ses)
		}
		return s.signInPage(w, r, http.StatusOK, form{}, page.SignIn{})
	}
	row, err := s.link(r.Context(), token)
	if errors.Is(err, errNoLink) {
		return showProblem(http.StatusNotFound, page.BadLink, "unknown link opened")
	}
	if err != nil {
		return err
	}
	p, err := s.People.Person(r.Context(), row.Person)
	if err != nil {
		return notThere(err)
	}
	if row.Made.Before(p.Since) {
		return showProblem(http.StatusNotFound, page.BadLink, "a link from before the person was removed")
	}
	return s.signInPage(w, r, http.StatusOK, form{}, page.SignIn{Link: token, Account: p.Email})
}

func authorizationlessForm(query string) (form, error) {
	if len(query) > maxQuery {
		return nil, showProblem(http.StatusRequestURITooLong, page.BadRequest, "query too long")
	}
	f, err := decodeForm(query)
	if err != nil {
		return nil, &pageError{status: http.StatusBadRequest, text: page.BadRequest, reason: "query", cause: err}
	}
	return f, nil
}

// notThere turns a person who is gone into a link that does not work.
func notThere(err error) error {
	if apperr.Is(err, apperr.NotFound) {
		return showProblem(http.StatusNotFound, page.BadLink, "the person is gone")
	}
	return err
}

// signIn consumes a link. The hidden field opens only with this browser's cookie, so another site can't sign a person in as
// somebody else (the attacker, who would then own what the person connects).
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) error {
	f, err := s.pageForm(r)
	if err != nil {
		return err
	}
	waiting, err := s.openRequest(f["request"], s.cookie(r, browserCookie))
	if err != nil {
		return &pageError{status: http.StatusForbidden, text: page.StaleForm, reason: "sign-in form of another browser", cause: err}
	}
	if err := s.count(r, limitSignIn); err != nil {
		return err
	}
	id, err := s.consumeLink(r.Context(), pasted(f["link"]))
	if errors.Is(err, errNoLink) {
		s.logRefusal(r, "sign-in", codeInvalidGrant, err)
		return s.signInPage(w, r, http.StatusBadRequest, waiting, page.SignIn{BadLink: true})
	}
	if err != nil {
		return err
	}
	return s.welcome(w, r, id, waiting)
}

// welcome puts the session into the browser and goes on with what waited.
func (s *Server) welcome(w http.ResponseWriter, r *http.Request, id string, waiting form) error {
	s.dropSession(r)
	s.setCookie(w, sessionCookie, id, sessionLife)
	see(w, waiting.next())
	return nil
}

// consumeLink turns a link into a session in one transaction: of two at once one gets it, and a crash loses neither.
func (s *Server) consumeLink(ctx context.Context, token string) (string, error) {
	row, err := s.link(ctx, token)
	if err != nil {
		return "", err
	}
	p, err := s.People.Person(ctx, row.Person)
	if err != nil {
		if apperr.Is(err, apperr.NotFound) {
			return "", errNoLink
		}
		return "", err //nolint:wrapcheck // the directory names the step
	}
	if row.Made.Before(p.Since) {
		return "", errNoLink
	}
	id, made, err := s.newSession(row.Person)
	if err != nil {
		return "", err
	}
	e := p.event("signed-in")
	e.Reason = "by link"
	err = s.commit(ctx, e, store.Delete(linkKey(token), store.Exists()), made)
	if errors.Is(err, store.ErrConflict) {
		return "", errNoLink
	}
	if err != nil {
		return "", fmt.Errorf("consume sign-in link: %w", err)
	}
	return id, nil
}

// dropSession forgets the session that the browser had. If that fails the row ends by itself.
func (s *Server) dropSession(r *http.Request) {
	if id := s.cookie(r, sessionCookie); id != "" {
		_ = s.Store.Delete(r.Context(), sessionKey(fingerprint(id)), store.Condition{})
	}
}

// signedIn shows what is connected.
func (s *Server) signedIn(w http.ResponseWriter, r *http.Request, ses *session) error {
	grants, err := s.Grants(r.Context(), ses.Person)
	if err != nil {
		return err
	}
	p := page.SignedIn{
		Service: s.Name, Account: ses.person.Email, Group: ses.person.OrganizationName,
		SignOut: SignOutPath, Revoke: DisconnectPath, Token: s.sessionToken(ses),
	}
	for _, g := range grants {
		p.Connection = append(p.Connection, page.Connection{
			ID: g.ID, Name: g.ClientName, Host: g.ClientHost, Since: g.Created.Format(time.DateOnly),
		})
	}
	rows, err := s.passkeysOf(r.Context(), ses.Person)
	if err != nil {
		return err
	}
	for _, row := range rows {
		p.Passkeys = append(p.Passkeys, page.Passkey{ID: row.ID, Since: row.Created.Format(time.DateOnly)})
	}
	begin := func() ([]byte, []byte, error) { return s.passkeys.Register(holder(ses.person, rows)) }
	if p.Passkey, err = s.ceremony(begin, ses.hash); err != nil {
		return err
	}
	p.Passkey.Action, p.Remove = PasskeyAddPath, PasskeyRemovePath
	s.showCeremony(w, http.StatusOK, p.Write(language(r)))
	return nil
}

// sessionForm reads a form that is tied to the session.
func (s *Server) sessionForm(r *http.Request) (form, *session, error) {
	f, err := s.pageForm(r)
	if err != nil {
		return nil, nil, err
	}
	ses, err := s.session(r)
	if err != nil {
		return nil, nil, err
	}
	if ses == nil || !hmac.Equal([]byte(f["token"]), []byte(s.sessionToken(ses))) {
		return nil, nil, showProblem(http.StatusForbidden, page.StaleForm, "form of another session")
	}
	return f, ses, nil
}

// signOut ends the session. With a question open it starts that over, for another account.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request) error {
	f, ses, err := s.sessionForm(r)
	if err != nil {
		return err
	}
	next := SignInPath
	if f["request"] != "" {
		if p, _, err := s.pending(r.Context(), f["request"], ses); err == nil {
			next = p.Form.again()
		}
	}
	s.dropSession(r)
	s.setCookie(w, sessionCookie, "", 0)
	see(w, next)
	return nil
}

// disconnect revokes a grant of the person's own.
func (s *Server) disconnect(w http.ResponseWriter, r *http.Request) error {
	f, ses, err := s.sessionForm(r)
	if err != nil {
		return err
	}
	g, _, err := s.grant(r.Context(), f["grant"])
	if err != nil && !errors.Is(err, errNoGrant) {
		return err
	}
	if err == nil && g.Person == ses.Person {
		if err := s.revokeGrant(r.Context(), g.ID, Event{Person: ses.Person, Email: ses.person.Email, Reason: "disconnected by the person"}); err != nil {
			return err
		}
	}
	see(w, SignInPath)
	return nil
}
