package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/oauth/page"
	"github.com/buzon-mail/buzon/shared/oauth/upstream"
)

// What must survive the way to the provider and back travels in the browser: sealed, bound to it, in two cookies, for a store
// row would be one that strangers can write, and one cookie is too small for the longest request.
const (
	tripTime   = 10 * time.Minute
	tripCookie = 3000 // bytes of one; browsers keep 4,096 with name and attributes
)

// tripNames are the cookies, in order.
//
//nolint:gochecknoglobals // constant table
var tripNames = [2]string{"trip0", "trip1"}

type trip struct {
	upstream.Trip
	Form form `json:"f"`
}

// signInUpstream sends a person to the provider.
func (s *Server) signInUpstream(w http.ResponseWriter, r *http.Request) error {
	f, err := s.pageForm(r)
	if err != nil {
		return err
	}
	browser := s.cookie(r, browserCookie)
	waiting, err := s.openRequest(f["request"], browser)
	if err != nil {
		return &pageError{status: http.StatusForbidden, text: page.StaleForm, reason: "sign-in form of another browser", cause: err}
	}
	if err := s.count(r, limitSignIn); err != nil {
		return err
	}
	t := trip{Form: waiting}
	for _, secret := range []*string{&t.State, &t.Nonce, &t.Verifier} {
		if *secret, err = s.random256(); err != nil {
			return err
		}
	}
	address, err := s.upstream.Address(r.Context(), t.Trip)
	if err != nil {
		return err //nolint:wrapcheck // the provider names the step
	}
	if err := s.packTrip(w, t, browser); err != nil {
		return err
	}
	see(w, address)
	return nil
}

// packTrip writes the cookies. A request that does not fit is refused here rather than lost on the way.
func (s *Server) packTrip(w http.ResponseWriter, t trip, browser string) error {
	text, err := json.Marshal(t)
	if err != nil {
		return err //nolint:wrapcheck // texts
	}
	sealed, err := s.trips.Seal(text, []byte(browser), tripTime)
	if err != nil || len(sealed) > len(tripNames)*tripCookie {
		return &pageError{status: http.StatusBadRequest, text: page.BadRequest, reason: "request too large for the way to the provider", cause: err}
	}
	for i, name := range tripNames {
		part := sealed[min(i*tripCookie, len(sealed)):min((i+1)*tripCookie, len(sealed))]
		life := tripTime
		if part == "" {
			life = 0
		}
		s.setCookie(w, name, part, life)
	}
	return nil
}

// unpackTrip reads and forgets it: an answer is used once. A browser without it did not start this sign-in, or somebody else
// is signing in through it.
func (s *Server) unpackTrip(w http.ResponseWriter, r *http.Request) (trip, error) {
	var t trip
	sealed := ""
	for _, name := range tripNames {
		found := r.CookiesNamed(s.cookieName(name))
		if len(found) == 1 {
			sealed += found[0].Value
		}
		s.setCookie(w, name, "", 0)
	}
	stale := &pageError{status: http.StatusForbidden, text: page.StaleForm, reason: "a sign-in that this browser did not start"}
	browser := s.cookie(r, browserCookie)
	if browser == "" || sealed == "" {
		return t, stale
	}
	text, err := s.trips.Open(sealed, []byte(browser))
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil {
		stale.cause = err
		return t, stale
	}
	return t, nil
}

// serveUpstream is where the provider sends people back to.
func (s *Server) serveUpstream(w http.ResponseWriter, r *http.Request) {
	if !onlyGet(w, r) {
		return
	}
	if err := s.returned(w, r); err != nil {
		s.showError(w, r, err)
	}
}

func (s *Server) returned(w http.ResponseWriter, r *http.Request) error {
	f, err := authorizationlessForm(r.URL.RawQuery)
	if err != nil {
		return err
	}
	t, err := s.unpackTrip(w, r)
	if err != nil {
		return err
	}
	if err := s.count(r, limitSignIn); err != nil {
		return err
	}
	person, err := s.upstreamPerson(r.Context(), t, f)
	if errors.Is(err, upstream.ErrRefused) {
		return &pageError{status: http.StatusForbidden, text: page.NotInvited, reason: "upstream sign-in", cause: err}
	}
	if err != nil {
		return err
	}
	id, made, err := s.newSession(person.ID)
	if err != nil {
		return err
	}
	e := person.event("signed-in")
	e.Reason = "by the upstream provider"
	if err := s.commit(r.Context(), e, made); err != nil {
		return fmt.Errorf("sign in upstream: %w", err)
	}
	return s.welcome(w, r, id, t.Form)
}

func (s *Server) upstreamPerson(ctx context.Context, t trip, f form) (Person, error) {
	email, err := s.upstream.Email(ctx, t.Trip, upstream.Answer{Code: f["code"], State: f["state"], Issuer: f["iss"], Error: f["error"]})
	if err != nil {
		return Person{}, err //nolint:wrapcheck // the provider names the step
	}
	p, err := s.People.PersonByEmail(ctx, email)
	if apperr.Is(err, apperr.NotFound) {
		return Person{}, fmt.Errorf("%w: nobody here has the address", upstream.ErrRefused)
	}
	return p, err //nolint:wrapcheck // the directory names the step
}
