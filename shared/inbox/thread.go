package inbox

import (
	"slices"
	"strings"
	"time"
)

// threadPeople is how many addresses a thread's row remembers.
const threadPeople = 10

// Thread is a conversation within one inbox, as its row tells it. Subject, Participants and Snippet are third-party text, cut to
// bounds. Deleted mail is not counted; quarantined and failed mail is, as in a list of mail.
type Thread struct {
	ID           string    `json:"id"`
	Workspace    string    `json:"workspace"`
	Inbox        string    `json:"inbox"`
	Subject      string    `json:"subject,omitempty"`      // of its first mail
	Participants []Address `json:"participants,omitempty"` // without the inbox; may name those of mail that was deleted
	Snippet      string    `json:"snippet,omitempty"`      // of its newest mail
	First        string    `json:"first"`                  // positions of its first and its newest mail
	Last         string    `json:"last"`
	Emails       int       `json:"emails"` // approximate, as are the two below
	Unhandled    int       `json:"unhandled,omitempty"`
	Quarantined  int       `json:"quarantined,omitempty"`
	Secrets      Secrets   `json:"secrets,omitempty"` // those that occur in the texts above
}

// StartedAt is when its first mail was received.
func (t Thread) StartedAt() time.Time { return PositionTime(t.First) }

// UpdatedAt is when its newest mail was received: what lists of threads order by.
func (t Thread) UpdatedAt() time.Time { return PositionTime(t.Last) }

// Newest is the id of its newest mail.
func (t Thread) Newest() string { return positionID(t.Last) }

// Position is the place of the thread in lists.
func (t Thread) Position() string { return Position(t.UpdatedAt(), t.ID) }

// positionID is the id in a position; empty when it is not one.
func positionID(position string) string {
	if len(position) < 10 {
		return ""
	}
	return position[10:]
}

// Add counts a mail in and takes over what it changes of the texts. A thread of nobody is one with this mail.
func (t *Thread) Add(e Email) {
	s, place := Summarize(e), Position(e.ReceivedAt, e.ID)
	if t.ID == "" {
		t.ID, t.Workspace, t.Inbox = e.Thread, e.Workspace, e.Inbox
	}
	t.Emails++
	t.count(e, 1)
	if t.First == "" || place < t.First {
		t.First, t.Subject = place, s.Subject
	}
	if place > t.Last {
		t.Last, t.Snippet = place, s.Snippet
	}
	for _, list := range [][]Address{s.From, s.To} {
		for _, a := range list {
			t.takesPart(a, e.Envelope.To)
		}
	}
	t.keepSecrets(SecretsOf(e))
}

// Remove counts a mail out. first and last are the mails that are left at both ends, as far as they are needed: when it stood at
// that end itself.
func (t *Thread) Remove(e Email, first, last *Summary) {
	t.Emails = max(t.Emails-1, 1) // one is left, or the thread would go; a row that was begun late may have counted less
	t.count(e, -1)
	if first != nil {
		t.First, t.Subject = Position(first.ReceivedAt, first.ID), first.Subject
		t.keepSecrets(first.Secrets)
	}
	if last != nil {
		t.Last, t.Snippet = Position(last.ReceivedAt, last.ID), last.Snippet
		t.keepSecrets(last.Secrets)
	}
}

// Recount follows a mail that stays and is handled, taken up again, held or released.
func (t *Thread) Recount(old, next Email) {
	t.count(old, -1)
	t.count(next, 1)
}

func (t *Thread) count(e Email, delta int) {
	if e.HandledAt.IsZero() {
		t.Unhandled = max(t.Unhandled+delta, 0)
	}
	if e.Status == StatusQuarantined {
		t.Quarantined = max(t.Quarantined+delta, 0)
	}
}

func (t *Thread) takesPart(a Address, own string) {
	if a.Address == "" || len(t.Participants) == threadPeople || strings.EqualFold(a.Address, own) {
		return
	}
	for _, known := range t.Participants {
		if strings.EqualFold(known.Address, a.Address) {
			return
		}
	}
	t.Participants = append(t.Participants, a)
}

// keepSecrets adds secrets and forgets those that no text shows any more.
func (t *Thread) keepSecrets(more Secrets) {
	t.Secrets = slices.Concat(t.Secrets, more).In(t.texts()...)
}

func (t *Thread) texts() []string {
	texts := []string{t.Subject, t.Snippet}
	for _, a := range t.Participants {
		texts = append(texts, a.Name, a.Address)
	}
	return texts
}

// masked is the thread as a caller sees it who must not read codes: see Summary.masked.
func (t Thread) masked() Thread {
	m := t.Secrets.Masker()
	t.Subject, t.Snippet, t.Participants = m.Mask(t.Subject), m.Mask(t.Snippet), m.addresses(t.Participants)
	t.Secrets = nil
	return t
}
