package local

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/buzon-mail/buzon/shared/app/deployed"
	"github.com/buzon-mail/buzon/shared/app/vault"
	"github.com/buzon-mail/buzon/shared/app/web"
	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/store/dynamo"
)

// onAWS does a verb over a deployed service, with the credentials of the environment. Tokens belong to the process that has the keys,
// and a backup is DynamoDB's.
func (p *Process) onAWS(ctx context.Context, verb string, in any, out io.Writer) error {
	if !slices.Contains([]string{"org-create", "domain-add", "user-link", "user-prove", "keys-rotate", "service-create", "service-list", "service-revoke"}, verb) {
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
	return p.onAccount(ctx, a, verb, in, out)
}

// deployedAdmin is a deployed service as the command line reaches it: with an administrator's credentials and none of its keys.
type deployedAdmin struct {
	*Process
	account deployed.Account
	store   *inboxstore.Store
	rows    *dynamo.Engine
}

func (p *Process) onAccount(ctx context.Context, a deployed.Account, verb string, in any, out io.Writer) error {
	store, err := a.Store()
	if err != nil {
		return err
	}
	rows, err := a.Engine()
	if err != nil {
		return err
	}
	d := &deployedAdmin{p, a, store, rows}
	return (&admin{store: store, clock: a.Clock, signInLink: d.signInLink, changeKeys: d.changeKeys, server: d.server}).do(ctx, verb, in, out)
}

func (d *deployedAdmin) signInLink(ctx context.Context, person string) (string, time.Time, error) {
	issuer, err := config.LoadOrigin(d.Getenv)
	if err != nil {
		return "", time.Time{}, err
	}
	p, err := d.store.Principal(ctx, person)
	if err != nil {
		return "", time.Time{}, err
	}
	line, err := web.NewJournal(d.store, d.account.Clock, rand.Reader).Line(ctx, oauth.LinkEvent(p.Member.Organization, person))
	if err != nil {
		return "", time.Time{}, err
	}
	return oauth.KeepLink(ctx, d.rows, issuer, person, d.account.Clock(), rand.Reader, line)
}

// changeKeys changes the secret that the functions read the key set from.
func (d *deployedAdmin) changeKeys(ctx context.Context, change func([]byte) ([]byte, error)) error {
	name, err := config.LoadKeySet(d.Getenv)
	if err != nil {
		return err
	}
	reader, err := vault.New(d.account.AWS)
	if err != nil {
		return err
	}
	err = reader.Replace(ctx, name, change)
	if errors.Is(err, vault.ErrChanged) {
		return apperr.New(apperr.Conflict, "", "Somebody else changed the key set at the same moment. Nothing was changed by this.", "Look at it, and try again.").Because(err)
	}
	return err
}

// server is an authorization server over the deployed rows, with keys of its own that die with this process: a service account's row
// depends on none.
func (d *deployedAdmin) server() (*oauth.Server, error) {
	origin, err := config.LoadOrigin(d.Getenv)
	if err != nil {
		return nil, err
	}
	var root [32]byte
	if _, err := rand.Read(root[:]); err != nil {
		return nil, fmt.Errorf("random: %w", err)
	}
	keyring, err := seal.New([]seal.Root{{ID: "r1", Secret: root[:]}}, seal.Options{Clock: d.account.Clock, Rand: rand.Reader})
	if err != nil {
		return nil, err
	}
	set, err := oauth.NewKeySet(rand.Reader, d.account.Clock())
	if err != nil {
		return nil, fmt.Errorf("new key set: %w", err)
	}
	api, err := web.New(web.Deps{
		Store: d.store, Engine: d.rows, Blobs: web.Blobs{}, Downloads: web.Downloads{}, // nobody is served
		Seal: keyring, Permanent: keyring, Keys: oauth.StaticKeys(set, d.account.Clock), Logger: slog.New(slog.DiscardHandler), Clock: d.account.Clock, Random: rand.Reader,
	}, web.Options{Origin: origin, Version: web.Unreleased})
	if err != nil {
		return nil, err
	}
	return api.OAuth, nil
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
