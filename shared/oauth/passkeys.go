package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/oauth/page"
	"github.com/buzon-mail/buzon/shared/oauth/passkey"
	"github.com/buzon-mail/buzon/shared/store"
)

const (
	passkeyFormat = 1
	maxPasskeys   = 20 // of one person
)

// passkeyRow is a registered passkey.
type passkeyRow struct {
	passkey.Key
	Created time.Time `json:"created"`
	Used    time.Time `json:"used,omitzero"`

	revision uint64
}

func passkeyKey(person, id string) store.Key {
	return store.Key{Table: store.Core, Partition: "oauth/person/" + person, Sort: "passkey/" + id}
}

func (k passkeyRow) put(person string, revision uint64, cond store.Condition) (store.Op, error) {
	item, err := store.Encode(passkeyKey(person, k.ID), passkeyFormat, revision, k)
	if err != nil {
		return store.Op{}, err //nolint:wrapcheck // the store names the step
	}
	return store.Put(item, cond), nil
}

// passkeysOf lists what a person registered.
func (s *Server) passkeysOf(ctx context.Context, person string) ([]passkeyRow, error) {
	from, to := store.Prefix("passkey/")
	found, err := s.Store.Query(ctx, store.Query{
		Table: store.Core, Partition: "oauth/person/" + person, From: from, To: to, Limit: maxPasskeys,
	})
	if err != nil {
		return nil, fmt.Errorf("list passkeys: %w", err)
	}
	rows := make([]passkeyRow, 0, len(found.Items))
	for _, item := range found.Items {
		row, err := store.Decode[passkeyRow](item, passkeyFormat)
		if err != nil {
			return nil, err //nolint:wrapcheck // the store names the step
		}
		row.revision = item.Revision
		rows = append(rows, row)
	}
	return rows, nil
}

func holder(p Person, rows []passkeyRow) passkey.Holder {
	h := passkey.Holder{ID: p.ID, Name: p.Email}
	for _, row := range rows {
		h.Keys = append(h.Keys, row.Key)
	}
	return h
}

// ceremony begins one and seals its state for a browser or a session.
func (s *Server) ceremony(begin func() (options, state []byte, err error), bound string) (page.Ceremony, error) {
	if s.passkeys == nil {
		return page.Ceremony{}, nil
	}
	options, state, err := begin()
	if err != nil {
		return page.Ceremony{}, err
	}
	sealed, err := s.ceremonies.Seal(state, []byte(bound), sealedTime)
	if err != nil {
		return page.Ceremony{}, err //nolint:wrapcheck // seal names the step
	}
	return page.Ceremony{Options: string(options), State: sealed, Script: PasskeyScriptPath}, nil
}

// openCeremony returns the state, and the op that notes its use: a challenge answers once (WebAuthn section 13.4.3), or an
// overheard answer would sign in again.
func (s *Server) openCeremony(sealed, bound string) ([]byte, store.Op, error) {
	stale := showProblem(http.StatusForbidden, page.StaleForm, "passkey form of another browser, or too old")
	if s.passkeys == nil || bound == "" {
		return nil, store.Op{}, stale
	}
	state, err := s.ceremonies.Open(sealed, []byte(bound))
	if err != nil {
		return nil, store.Op{}, stale
	}
	key := store.Key{Table: store.Ephemeral, Partition: "oauth/challenge/" + fingerprint(passkey.Challenge(state)), Sort: "used"}
	used := store.Item{Key: key, Format: passkeyFormat, Revision: 1, Expires: s.Clock().Add(sealedTime + time.Minute)}
	return state, store.Put(used, store.Absent()), nil
}

// signInByPasskey is the answer to the challenge on the sign-in page.
func (s *Server) signInByPasskey(w http.ResponseWriter, r *http.Request) error {
	f, err := s.pageForm(r)
	if err != nil {
		return err
	}
	browser := s.cookie(r, browserCookie)
	waiting, err := s.openRequest(f["request"], browser)
	if err != nil {
		return &pageError{status: http.StatusForbidden, text: page.StaleForm, reason: "sign-in form of another browser", cause: err}
	}
	state, noted, err := s.openCeremony(f["state"], browser)
	if err != nil {
		return err
	}
	if err := s.count(r, limitSignIn); err != nil {
		return err
	}
	id, err := s.usePasskey(r.Context(), state, noted, f["response"])
	if errors.Is(err, passkey.ErrRefused) {
		s.logRefusal(r, "sign-in", codeInvalidGrant, err)
		return s.signInPage(w, r, http.StatusBadRequest, waiting, page.SignIn{BadPasskey: true})
	}
	if err != nil {
		return err
	}
	return s.welcome(w, r, id, waiting)
}

// usePasskey verifies an answer and makes a session, in one transaction with the challenge's use and the passkey's counter.
func (s *Server) usePasskey(ctx context.Context, state []byte, noted store.Op, response string) (string, error) {
	var rows []passkeyRow
	var who Person
	person, key, err := s.passkeys.SignedIn(state, []byte(response), func(id string) (passkey.Holder, error) {
		// Any authenticator can be made to say any id.
		if len(id) > 64 || strings.Trim(id, unreserved) != "" {
			return passkey.Holder{}, fmt.Errorf("%w: not an id", passkey.ErrRefused)
		}
		p, err := s.People.Person(ctx, id)
		if apperr.Is(err, apperr.NotFound) {
			return passkey.Holder{}, fmt.Errorf("%w: nobody", passkey.ErrRefused)
		}
		if err != nil {
			return passkey.Holder{}, err //nolint:wrapcheck // the directory names the step
		}
		who = p
		rows, err = s.passkeysOf(ctx, p.ID)
		return holder(p, rows), err
	})
	if err != nil {
		return "", err //nolint:wrapcheck // the ceremony names the step
	}
	id, made, err := s.newSession(person)
	if err != nil {
		return "", err
	}
	used, err := s.usedPasskey(person, key, rows)
	if err != nil {
		return "", err
	}
	e := who.event("signed-in")
	e.Reason = "by passkey"
	err = s.commit(ctx, e, noted, made, used)
	if errors.Is(err, store.ErrConflict) {
		return "", fmt.Errorf("%w: used twice, or removed", passkey.ErrRefused)
	}
	if err != nil {
		return "", fmt.Errorf("sign in by passkey: %w", err)
	}
	return id, nil
}

// usedPasskey writes the new counter over the row that was read: a passkey that is removed meanwhile signs nobody in.
func (s *Server) usedPasskey(person string, key passkey.Key, rows []passkeyRow) (store.Op, error) {
	for _, row := range rows {
		if row.ID == key.ID {
			row.Key, row.Used = key, s.Clock().UTC()
			return row.put(person, row.revision+1, store.RevisionIs(row.revision))
		}
	}
	return store.Op{}, fmt.Errorf("%w: unknown passkey", passkey.ErrRefused)
}

// addPasskey registers one for the person who is signed in.
func (s *Server) addPasskey(w http.ResponseWriter, r *http.Request) error {
	f, ses, err := s.sessionForm(r)
	if err != nil {
		return err
	}
	state, noted, err := s.openCeremony(f["state"], ses.hash)
	if err != nil {
		return err
	}
	rows, err := s.passkeysOf(r.Context(), ses.Person)
	if err != nil {
		return err
	}
	key, err := s.passkeys.Registered(holder(ses.person, rows), state, []byte(f["response"]))
	if errors.Is(err, passkey.ErrRefused) || err == nil && len(rows) >= maxPasskeys {
		return &pageError{status: http.StatusBadRequest, text: page.BadRequest, reason: "passkey registration", cause: err}
	}
	if err != nil {
		return err //nolint:wrapcheck // the ceremony names the step
	}
	op, err := passkeyRow{Key: key, Created: s.Clock().UTC()}.put(ses.Person, 1, store.Absent())
	if err != nil {
		return err
	}
	if err := s.answer(r.Context(), ses.person.event("passkey.added"), noted, op); err != nil {
		return err
	}
	see(w, SignInPath)
	return nil
}

// removePasskey forgets one of the person's own: the key names it within their partition.
func (s *Server) removePasskey(w http.ResponseWriter, r *http.Request) error {
	f, ses, err := s.sessionForm(r)
	if err != nil {
		return err
	}
	if id := f["passkey"]; len(id) == 43 {
		err := s.commit(r.Context(), ses.person.event("passkey.removed"), store.Delete(passkeyKey(ses.Person, id), store.Exists()))
		if err != nil && !errors.Is(err, store.ErrConflict) { // it is gone already
			return fmt.Errorf("remove passkey: %w", err)
		}
	}
	see(w, SignInPath)
	return nil
}

// servePasskeyScript is the only script there is: it asks the browser for a passkey and puts the answer into the form.
func (s *Server) servePasskeyScript(w http.ResponseWriter, r *http.Request) {
	if !onlyGet(w, r) {
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/javascript; charset=utf-8")
	h.Set("Cache-Control", "public, max-age=300")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(page.PasskeyScript()) // a client that went away is nobody's problem
}
