package inbox

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// Act is what a write does beside the change: the yes that it uses up, who is to be named for it and the idempotency key that it is
// done under. All are written in the transaction of the change itself; when nothing changes none is.
type Act struct {
	Confirmed *Confirmation // nil: nobody was asked
	Audit     *Audit        // nil: nothing to tell, as of what the pipeline does with a mail it received
	Key       IdempotencyKey
}

// Audit is one line of the audit but for what was changed, which the store adds: who did what, when, how they came.
type Audit struct {
	ID           string     `json:"id"` // aud_ + ULID of the time, so ids sort by it
	At           time.Time  `json:"at"`
	Actor        AuditActor `json:"actor"`
	Action       string     `json:"action"` // name of the operation
	Organization string     `json:"organization"`
	Workspace    string     `json:"workspace,omitempty"` // empty: an act on the organization, as on its members
	Request      string     `json:"request,omitempty"`   // id, as the log has it
	Source       string     `json:"source,omitempty"`    // IP address, as the edge of the service knows it
	Surface      string     `json:"surface,omitempty"`   // rest, mcp; empty: the service itself
	Reason       string     `json:"reason,omitempty"`    // words of ours
}

// AuditActor is who acted.
type AuditActor struct {
	Type     ActorType `json:"type"`
	ID       string    `json:"id"`              // of the person, the service account, the API key; of the system: which part
	Email    string    `json:"email,omitempty"` // of the person, or of whoever made the key, as it was then
	Client   string    `json:"client,omitempty"`
	Software string    `json:"software,omitempty"` // what an MCP client says it is: a claim
	Grant    string    `json:"grant,omitempty"`
}

// ActorType tells kinds of actors apart.
type ActorType string

// The types of actors.
const (
	ActorPerson  ActorType = "person"
	ActorService ActorType = "service" // a service account
	ActorKey     ActorType = "key"     // an API key
	ActorSystem  ActorType = "system"  // the service itself: a rule, retention
)

// auditPrefix is of the ids of lines.
const auditPrefix = "aud"

// AuditRetention is how long a line of the audit is kept.
const AuditRetention = 400 * 24 * time.Hour

// AuditEvent is a whole line of the audit. Digests are the hexadecimal SHA-256 of the row in canonical JSON: two that differ show that
// something changed, and whoever has the row can prove what. The line holds nothing of the row itself.
type AuditEvent struct {
	Audit
	Targets []string `json:"targets,omitempty"` // ids
	Before  string   `json:"before,omitempty"`  // empty: it did not exist, or nothing was changed
	After   string   `json:"after,omitempty"`   // empty: it does not exist any more, or nothing was changed
}

// act is what a write of this actor does beside the change. Each write has an Act of its own: its id is the line's in the audit.
func (d Deps) act(a Actor) (Act, error) {
	by := a.auditActor()
	act, err := NewAct(d.Rand, Audit{
		At: d.now(), Actor: by, Action: a.Operation, Organization: a.Organization, Workspace: a.Workspace,
		Request: a.Request, Source: a.Source, Surface: a.Surface,
	})
	act.Confirmed = a.Confirmed
	if act.Key = a.Key; act.Key.ID != "" {
		act.Key.Until = d.now().Add(KeyLife)
	}
	return act, err
}

// auditActor is who acts, as the audit names it.
func (a Actor) auditActor() AuditActor {
	by := a.By
	if by.ID == "" {
		by.ID = a.Subject
	}
	return by
}

// record writes the line of a read that is audited, before its answer is given.
func (d Deps) record(ctx context.Context, a Actor, targets ...string) error {
	act, err := d.act(a)
	if err != nil {
		return err
	}
	if err := d.Audit.Record(ctx, act, targets...); err != nil {
		return fmt.Errorf("audit %s: %w", a.Operation, err)
	}
	return nil
}

// SystemAct is an act of the service itself: part is which of its parts ("retention"), or the id of the rule that wanted it.
func SystemAct(at time.Time, rand io.Reader, part, action, organization, workspace string) (Act, error) {
	return NewAct(rand, Audit{
		At: at, Actor: AuditActor{Type: ActorSystem, ID: part}, Action: action,
		Organization: organization, Workspace: workspace,
	})
}

// NewAct is an act with a line that its caller fills in but for the id. Nobody was asked to confirm it.
func NewAct(rand io.Reader, line Audit) (Act, error) {
	line.At = line.At.UTC().Truncate(time.Millisecond)
	id, err := NewID(auditPrefix, line.At, rand)
	if err != nil {
		return Act{}, err
	}
	line.ID = id
	line.Request, line.Source = shortText(line.Request), shortText(line.Source)
	line.Actor.Client, line.Actor.Software = shortText(line.Actor.Client), shortText(line.Actor.Software)
	return Act{Audit: &line}, nil
}

// maxAuditText bounds, in bytes, each text of a line that somebody outside may have made long.
const maxAuditText = 256

func shortText(s string) string {
	if len(s) > maxAuditText {
		s = s[:maxAuditText]
	}
	return strings.ToValidUTF8(s, "")
}
