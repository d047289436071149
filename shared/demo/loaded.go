package demo

import (
	"context"
	_ "embed" // the sample mails, as the pipeline read them
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

//go:embed processed.json
var processed []byte

// Loaded is what the pipeline made of one sample mail: every step that it asked of storage, and the blobs.
type Loaded struct {
	Intake    inbox.Intake      `json:"intake"`
	Mails     []inbox.Email     `json:"mails"`
	Processed inbox.Processed   `json:"processed"`
	Key       string            `json:"key"`
	Blobs     map[string][]byte `json:"blobs"`
}

// Mailbox is where LoadMails puts the mails.
type Mailbox interface {
	PutIntake(ctx context.Context, in inbox.Intake) error
	FanOut(ctx context.Context, in inbox.Intake, mails []inbox.Email) error
	ClaimMail(ctx context.Context, id string) (inbox.Email, error)
	Finish(ctx context.Context, p inbox.Processed, key string) error
}

// Shelf is where LoadMails puts blobs; putting the same key again is fine.
type Shelf func(ctx context.Context, key string, bytes []byte) error

// LoadMails stores the sample mails as they were read once, for a process that links no mail parser. start is the time that
// their age is counted from.
func LoadMails(ctx context.Context, box Mailbox, shelf Shelf, start time.Time) error {
	var all []Loaded
	if err := json.Unmarshal(processed, &all); err != nil {
		return fmt.Errorf("demo mails: %w", err)
	}
	mails, err := Mails()
	if err != nil {
		return err
	}
	if len(mails) != len(all) {
		return errors.New("demo mails: processed.json is not of these mails: run make generate")
	}
	for i, l := range all {
		l.date(start.Add(-mails[i].Age).UTC().Truncate(time.Millisecond))
		if err := l.load(ctx, box, shelf); err != nil {
			return fmt.Errorf("demo mail %s: %w", mails[i].ID, err)
		}
	}
	return nil
}

func (l *Loaded) date(at time.Time) {
	l.Intake.ReceivedAt, l.Intake.Announced = at, false // its blobs are there already
	for i := range l.Mails {
		l.Mails[i].ReceivedAt, l.Mails[i].UpdatedAt = at, at
	}
	e := &l.Processed.Email
	e.ReceivedAt, e.UpdatedAt, e.ProcessedAt = at, at, at
}

func (l *Loaded) load(ctx context.Context, box Mailbox, shelf Shelf) error {
	for key, bytes := range l.Blobs {
		if err := shelf(ctx, key, bytes); err != nil {
			return err
		}
	}
	if err := box.PutIntake(ctx, l.Intake); err != nil {
		return err
	}
	if err := box.FanOut(ctx, l.Intake, l.Mails); err != nil {
		return err
	}
	if _, err := box.ClaimMail(ctx, l.Processed.Email.ID); err != nil && !apperr.Is(err, apperr.NotFound) {
		return err
	}
	return box.Finish(ctx, l.Processed, l.Key)
}
