package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/buzon-mail/buzon/shared/oauth/page"
	"github.com/buzon-mail/buzon/shared/store"
)

// A secret that was made for somebody behind an MCP client must not stand in the conversation: it would be in transcripts and in
// front of every tool. So the reply carries the address of a page, and the secret waits here. Opening the page shows that there is
// something (previews and scanners open links too); the button shows it, once, and only to the person who asked for it, signed in
// in this browser. Whoever else gets the address gets nothing.

// SecretPath is the page of a secret.
const SecretPath = "/secret"

const (
	secretWait   = 15 * time.Minute
	secretFormat = 1
)

type secretRow struct {
	Person string `json:"person"`
	What   string `json:"what"`
	Sealed string `json:"sealed"` // bound to the row's key: who can write rows can't move it to another person's
}

func secretKey(token string) store.Key {
	return store.Key{Table: store.Ephemeral, Partition: "oauth/secret/" + fingerprint(token), Sort: "secret"}
}

// KeepSecret holds a secret for 15 minutes and returns the address of its page. what says in our words what it is, as "webhook
// orders".
func (s *Server) KeepSecret(ctx context.Context, person, what, secret string) (address string, until time.Time, err error) {
	if person == "" || secret == "" {
		return "", time.Time{}, errors.New("oauth: a secret page needs a person and a secret")
	}
	token, err := s.random256()
	if err != nil {
		return "", time.Time{}, err
	}
	key := secretKey(token)
	sealed, err := s.secrets.Seal([]byte(secret), []byte(key.Partition+"\x00"+person), secretWait)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("seal a secret: %w", err)
	}
	item, err := store.Encode(key, secretFormat, 1, secretRow{person, what, sealed})
	if err != nil {
		return "", time.Time{}, err //nolint:wrapcheck // the store names the step
	}
	item.Expires = s.Clock().Add(secretWait)
	if err := s.Store.Put(ctx, item, store.Absent()); err != nil {
		return "", time.Time{}, fmt.Errorf("keep a secret: %w", err)
	}
	s.audit(ctx, Event{Name: "secret.kept", Person: person}) // the operation that made it is in the audit
	return s.Issuer + secretAddress(token), item.Expires, nil
}

func secretAddress(token string) string { return SecretPath + "?" + url.Values{"id": {token}}.Encode() }

// secretOf finds what waits for this person. Gone, unknown and somebody else's are one answer.
func (s *Server) secretOf(ctx context.Context, token string, ses *session) (secretRow, error) {
	gone := func(reason string) error { return showProblem(http.StatusNotFound, page.SecretGone, reason) }
	if len(token) != 43 {
		return secretRow{}, gone("not the address of a secret")
	}
	item, err := s.Store.Get(ctx, secretKey(token))
	if errors.Is(err, store.ErrNotFound) {
		return secretRow{}, gone("no such secret")
	}
	if err != nil {
		return secretRow{}, fmt.Errorf("read a secret: %w", err)
	}
	row, err := store.Decode[secretRow](item, secretFormat)
	if err != nil {
		return secretRow{}, err //nolint:wrapcheck // the store names the step
	}
	if row.Person != ses.Person {
		return secretRow{}, gone("a secret of another person")
	}
	return row, nil
}

func (s *Server) serveSecret(w http.ResponseWriter, r *http.Request) {
	s.servePage(w, r, s.secretPage, s.revealSecret)
}

// secretPage changes nothing.
func (s *Server) secretPage(w http.ResponseWriter, r *http.Request) error {
	f, err := authorizationlessForm(r.URL.RawQuery)
	if err != nil {
		return err
	}
	ses, err := s.session(r)
	if err != nil {
		return err
	}
	if ses == nil { // whether there is such a secret is not for strangers
		return s.signInPage(w, r, http.StatusOK, form{waitingSecret: f["id"]}, page.SignIn{})
	}
	row, err := s.secretOf(r.Context(), f["id"], ses)
	if err != nil {
		return err
	}
	s.show(w, http.StatusOK, page.Secret{
		Service: s.Name, What: row.What, Account: ses.person.Email, Action: SecretPath, ID: f["id"], Token: s.sessionToken(ses),
	}.Write(language(r)))
	return nil
}

// revealSecret shows it and forgets it. The row goes first: of two at once one sees it, and a page that was lost on its way has to
// be asked for anew where the secret was made.
func (s *Server) revealSecret(w http.ResponseWriter, r *http.Request) error {
	f, ses, err := s.sessionForm(r)
	if err != nil {
		return err
	}
	row, err := s.secretOf(r.Context(), f["id"], ses)
	if err != nil {
		return err
	}
	key := secretKey(f["id"])
	secret, err := s.secrets.Open(row.Sealed, []byte(key.Partition+"\x00"+row.Person))
	if err != nil {
		return &pageError{status: http.StatusNotFound, text: page.SecretGone, reason: "a secret that does not open", cause: err}
	}
	err = s.commit(r.Context(), ses.person.event("secret.shown"), store.Delete(key, store.Exists()))
	if errors.Is(err, store.ErrConflict) {
		return showProblem(http.StatusNotFound, page.SecretGone, "shown a moment ago")
	}
	if err != nil {
		return fmt.Errorf("forget a secret: %w", err)
	}
	s.show(w, http.StatusOK, page.Secret{Service: s.Name, What: row.What, Account: ses.person.Email, Value: string(secret)}.Write(language(r)))
	return nil
}

// waitingSecret names, in what waits for a sign-in, the secret that the person wants to see.
const waitingSecret = "secret"

// next is where a person goes who has signed in: on with what waited.
func (f form) next() string {
	switch {
	case f["client_id"] != "":
		return f.again()
	case f[waitingSecret] != "":
		return secretAddress(f[waitingSecret])
	}
	return SignInPath
}
