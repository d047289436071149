package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/buzon-mail/buzon/shared/oauth/page"
	"github.com/buzon-mail/buzon/shared/store"
)

const pendingFormat = 1

// pendingRow is a question that a person was asked, bound to their session and answered once. The answer names it; client,
// redirect and scopes are read from here and never from the form. Consent is asked every time: a remembered one is what
// lets an attacker's client pass for the one that was approved.
type pendingRow struct {
	authorization
	Session string `json:"session"` // hash
	Person  string `json:"person"`
}

func pendingKey(id string) store.Key {
	return store.Key{Table: store.Ephemeral, Partition: "oauth/pending/" + fingerprint(id), Sort: "pending"}
}

// askConsent keeps the question and shows it.
func (s *Server) askConsent(w http.ResponseWriter, r *http.Request, a authorization, ses *session) error {
	id, err := s.random256()
	if err != nil {
		return err
	}
	item, err := store.Encode(pendingKey(id), pendingFormat, 1, pendingRow{a, ses.hash, ses.Person})
	if err != nil {
		return err //nolint:wrapcheck // the store names the step
	}
	item.Expires = s.Clock().Add(pendingTime)
	if err := s.Store.Put(r.Context(), item, store.Absent()); err != nil {
		return fmt.Errorf("keep authorization request: %w", err)
	}
	s.show(w, http.StatusOK, s.consentPage(id, a, ses, language(r)).Write(language(r)))
	return nil
}

func (s *Server) consentPage(id string, a authorization, ses *session, lang string) page.Consent {
	days := func(d time.Duration) string { return strconv.Itoa(int(d / (24 * time.Hour))) }
	p := page.Consent{
		Service: s.Name, Action: ConsentPath, SignOut: SignOutPath, Token: s.sessionToken(ses), Request: id,
		Redirect: redirectHost(a.Redirect), Local: onThisComputer(a.Redirect), Loopback: a.Client.Loopback,
		Name: a.Client.Name, Host: a.Client.Host, Account: ses.person.Email, Group: ses.person.OrganizationName,
		Resource: s.Resource, Days: days(grantLife), Idle: days(grantIdle),
	}
	for _, workspace := range ses.person.Workspaces {
		p.Workspaces = append(p.Workspaces, page.Choice{ID: workspace.ID, Name: workspace.Name, Role: inWords(workspace.Role, lang)})
	}
	allowed := both(a.Scopes, ses.person.Scopes)
	p.Lost = len(a.Scopes) - len(allowed)
	for _, name := range allowed {
		scope := s.known[name]
		p.Scopes = append(p.Scopes, page.Permission{Name: name, Text: inWords(scope.Text, lang), Removable: scope.Write})
	}
	return p
}

// inWords is a text in the page's language, or else in English.
func inWords(text map[string]string, lang string) string {
	if s := text[lang]; s != "" {
		return s
	}
	return text[page.English]
}

// pending finds a question of this session.
func (s *Server) pending(ctx context.Context, id string, ses *session) (*pendingRow, uint64, error) {
	gone := showProblem(http.StatusForbidden, page.StaleForm, "unknown question")
	if len(id) != 43 {
		return nil, 0, gone
	}
	item, err := s.Store.Get(ctx, pendingKey(id))
	if errors.Is(err, store.ErrNotFound) {
		return nil, 0, gone
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read authorization request: %w", err)
	}
	p, err := store.Decode[pendingRow](item, pendingFormat)
	if err != nil {
		return nil, 0, err //nolint:wrapcheck // the store names the step
	}
	// A form of an attacker's own, posted from a victim's browser, names a question of the attacker's session.
	if ses == nil || p.Session != ses.hash || p.Person != ses.Person {
		return nil, 0, showProblem(http.StatusForbidden, page.StaleForm, "question of another session")
	}
	return &p, item.Revision, nil
}

// consent takes the answer.
func (s *Server) consent(w http.ResponseWriter, r *http.Request) error {
	f, err := s.pageForm(r)
	if err != nil {
		return err
	}
	ses, err := s.session(r)
	if err != nil {
		return err
	}
	p, revision, err := s.pending(r.Context(), f["request"], ses)
	if err != nil {
		return err
	}
	answered := store.Delete(pendingKey(f["request"]), store.RevisionIs(revision))
	switch f["answer"] {
	case "deny":
		e := ses.person.event("authorization.denied")
		e.Client = p.Client.ID
		if err := s.answer(r.Context(), e, answered); err != nil {
			return err
		}
		s.redirect(w, r, p.authorization, url.Values{"error": {"access_denied"}, "error_description": {redirectText("access_denied")}})
		return nil
	case "allow":
		return s.approve(w, r, f, p, ses, answered)
	}
	return showProblem(http.StatusBadRequest, page.BadRequest, "no answer")
}

// answer writes what an answer means, once: a second one, from another tab or a thief, conflicts.
func (s *Server) answer(ctx context.Context, e Event, ops ...store.Op) error {
	err := s.commit(ctx, e, ops...)
	if errors.Is(err, store.ErrConflict) {
		return showProblem(http.StatusForbidden, page.StaleForm, "answered already")
	}
	if err != nil {
		return fmt.Errorf("answer authorization request: %w", err)
	}
	return nil
}

// approve makes the code. What is granted is what was asked for, known, of use to the person's role now, and not taken out.
func (s *Server) approve(w http.ResponseWriter, r *http.Request, f form, p *pendingRow, ses *session, answered store.Op) error {
	g := Grant{
		Person: ses.Person, Organization: ses.person.Organization, Client: p.Client.ID, ClientName: p.Client.Name, ClientHost: p.Client.Host,
	}
	for _, name := range both(p.Scopes, ses.person.Scopes) {
		if !s.known[name].Write || f["scope."+name] != "" {
			g.Scopes = append(g.Scopes, name)
		}
	}
	if len(g.Scopes) == 0 {
		return showProblem(http.StatusBadRequest, page.BadRequest, "nothing is granted")
	}
	if err := choose(&g, f, ses.person.Workspaces); err != nil {
		return err
	}
	var err error
	if g.ID, err = s.newID(grantPrefix); err != nil {
		return err
	}
	code, err := s.random256()
	if err != nil {
		return err
	}
	row := codeRow{Grant: g, Redirect: p.Redirect, Challenge: p.Challenge, Issued: s.Clock().UTC()}
	made, err := row.put(codeKey(code), 1, store.Absent())
	if err != nil {
		return err
	}
	e := g.event("authorization.approved")
	e.Email = ses.person.Email
	if err := s.answer(r.Context(), e, answered, made); err != nil {
		return err
	}
	s.redirect(w, r, p.authorization, url.Values{"code": {code}})
	return nil
}

// choose reads the workspaces: one of the person's as the default, and all of them only when the person says so.
func choose(g *Grant, f form, workspaces []Workspace) error {
	if len(workspaces) == 0 {
		g.Only = true // of none: what the person reaches later was not asked for
		return nil
	}
	for _, w := range workspaces {
		if w.ID == f["workspace"] {
			g.Workspace, g.Only = w.ID, f["all"] == ""
			return nil
		}
	}
	return showProblem(http.StatusBadRequest, page.BadRequest, "no such workspace")
}
