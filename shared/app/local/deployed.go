package local

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/buzon-mail/buzon/shared/app/deployed"
	"github.com/buzon-mail/buzon/shared/app/web"
	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/oauth"
)

// onAWS does a verb over the tables of a deployed service, with the credentials of the environment. Only what needs the tables
// alone can be done so: the rest belongs to the process that has the keys.
func (p *Process) onAWS(ctx context.Context, verb string, in any, out io.Writer) error {
	if !slices.Contains([]string{"org-create", "domain-add", "user-link", "user-prove"}, verb) {
		return apperr.New(apperr.Invalid, "", "This verb is for a local service, and BUZON_STORE is dynamo.",
			"Leave BUZON_STORE out to work on the local service.")
	}
	names, err := config.LoadAdmin(p.Getenv)
	if err != nil {
		return err
	}
	a, err := deployed.Here(names)
	if err != nil {
		return err
	}
	store, err := a.Store()
	if err != nil {
		return err
	}
	rows, err := a.Engine()
	if err != nil {
		return err
	}
	return (&admin{store: store, clock: time.Now, signInLink: func(ctx context.Context, person string) (string, time.Time, error) {
		issuer, err := config.LoadOrigin(p.Getenv)
		if err != nil {
			return "", time.Time{}, err
		}
		p, err := store.Principal(ctx, person)
		if err != nil {
			return "", time.Time{}, err
		}
		line, err := web.NewJournal(store, time.Now, rand.Reader).Line(ctx, oauth.LinkEvent(p.Member.Organization, person))
		if err != nil {
			return "", time.Time{}, err
		}
		return oauth.KeepLink(ctx, rows, issuer, person, time.Now(), rand.Reader, line)
	}}).do(ctx, verb, in, out)
}

type secretCommand struct {
	New secretNewCommand `cmd:"" help:"Print a fresh secret, to be written into Secrets Manager."`
}

type secretNewCommand struct {
	What string `arg:"" enum:"roots,keys" help:"roots (of sealed state) or keys (that sign access tokens)."`
}

// Run prints the secret alone, so that it can be captured and never touches a disk.
func (c secretNewCommand) Run(p *Process) error {
	var text []byte
	switch c.What {
	case "roots":
		var b [32]byte
		if _, err := rand.Read(b[:]); err != nil {
			return fmt.Errorf("random: %w", err)
		}
		text = []byte("r1:" + base64.StdEncoding.EncodeToString(b[:]))
	case "keys":
		set, err := oauth.NewKeySet(rand.Reader, time.Now())
		if err != nil {
			return fmt.Errorf("new key set: %w", err)
		}
		if text, err = set.Secret(); err != nil {
			return fmt.Errorf("new key set: %w", err)
		}
	}
	_, err := fmt.Fprintln(p.Stdout, string(text))
	return err
}
