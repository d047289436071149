package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/store"
)

const (
	sessionIdle    = 12 * time.Hour
	sessionLife    = 7 * 24 * time.Hour
	sessionRefresh = 30 * time.Minute // how stale the time of last use may be: not every page writes
	sessionFormat  = 1

	sessionCookie = "session" // who is signed in
	browserCookie = "browser" // which browser a sign-in page was shown in
)

// session is a browser in which a person is signed in. Its id is a random secret in a cookie; only the hash is stored.
type session struct {
	Person  string    `json:"person"`
	Created time.Time `json:"created"`
	Used    time.Time `json:"used"`

	hash   string
	person Person
}

func sessionKey(hash string) store.Key {
	return store.Key{Table: store.Ephemeral, Partition: "oauth/session/" + hash, Sort: "session"}
}

// session finds who is signed in; nil when nobody is. A person who is gone is not.
func (s *Server) session(r *http.Request) (*session, error) {
	id := s.cookie(r, sessionCookie)
	if id == "" {
		return nil, nil //nolint:nilnil // nobody is no error
	}
	hash := fingerprint(id)
	item, err := s.Store.Get(r.Context(), sessionKey(hash))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // nobody is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	ses, err := store.Decode[session](item, sessionFormat)
	if err != nil {
		return nil, err //nolint:wrapcheck // the store names the step
	}
	ses.hash = hash
	if ses.person, err = s.People.Person(r.Context(), ses.Person); err != nil {
		if apperr.Is(err, apperr.NotFound) {
			return nil, nil //nolint:nilnil // nobody is no error
		}
		return nil, err //nolint:wrapcheck // the directory names the step
	}
	if ses.Created.Before(ses.person.Since) {
		return nil, nil //nolint:nilnil // nobody is no error
	}
	s.touch(r.Context(), &ses, item.Revision)
	return &ses, nil
}

// touch moves the idle time. That it failed costs the person a sign-in some hours sooner, no more.
func (s *Server) touch(ctx context.Context, ses *session, revision uint64) {
	now := s.Clock().UTC()
	if now.Sub(ses.Used) < sessionRefresh {
		return
	}
	ses.Used = now
	if op, err := putSession(*ses, revision+1, store.RevisionIs(revision)); err == nil {
		_ = s.Store.Transact(ctx, op)
	}
}

func putSession(ses session, revision uint64, cond store.Condition) (store.Op, error) {
	item, err := store.Encode(sessionKey(ses.hash), sessionFormat, revision, ses)
	if err != nil {
		return store.Op{}, err //nolint:wrapcheck // the store names the step
	}
	item.Expires = ses.Used.Add(sessionIdle)
	if end := ses.Created.Add(sessionLife); end.Before(item.Expires) {
		item.Expires = end
	}
	return store.Put(item, cond), nil
}

// newSession makes the row of a fresh session. The id is always new: one that was there before sign-in could be known to
// whoever planted it (session fixation).
func (s *Server) newSession(person string) (id string, op store.Op, err error) {
	if id, err = s.random256(); err != nil {
		return "", store.Op{}, err
	}
	now := s.Clock().UTC()
	op, err = putSession(session{Person: person, Created: now, Used: now, hash: fingerprint(id)}, 1, store.Absent())
	return id, op, err
}

// cookieName has the __Host- prefix, which browsers accept only with Secure, without Domain and for the whole host, so that
// no neighbouring host can plant one (RFC 6265bis section 4.1.3.2). Browsers refuse it over plain http: a loopback issuer
// goes without.
func (s *Server) cookieName(name string) string {
	if s.insecure {
		return name
	}
	return "__Host-" + name
}

// cookie reads one of our cookies. Two of one name: somebody tossed the second one in, and neither is believed.
func (s *Server) cookie(r *http.Request, name string) string {
	found := r.CookiesNamed(s.cookieName(name))
	if len(found) != 1 || len(found[0].Value) != 43 {
		return ""
	}
	return found[0].Value
}

// setCookie sets one for this browser; without a value it is removed. SameSite is Lax, for a person arrives from the client's
// site and must still be signed in.
func (s *Server) setCookie(w http.ResponseWriter, name, value string, life time.Duration) {
	c := &http.Cookie{
		Name: s.cookieName(name), Value: value, Path: "/", HttpOnly: true, Secure: !s.insecure, SameSite: http.SameSiteLaxMode,
		MaxAge: int(life / time.Second),
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// browser is the random id of this browser before anybody signed in, made on first use. It is kept: two tabs with two sign-in
// pages must both work.
func (s *Server) browser(w http.ResponseWriter, r *http.Request) (string, error) {
	if id := s.cookie(r, browserCookie); id != "" {
		return id, nil
	}
	id, err := s.random256()
	if err != nil {
		return "", err
	}
	s.setCookie(w, browserCookie, id, sealedTime*2)
	return id, nil
}
