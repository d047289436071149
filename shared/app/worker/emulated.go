package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/app/emulator"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/outmail"
	"github.com/buzon-mail/buzon/shared/webhook"
)

// What waits for the emulated function: the mail that events/sqs-jobs.json names.
const (
	waitingIntake  = "intake_01KDT0000000000000000EM101"
	waitingMail    = "email_01KDT0000000000000000EM101"
	waitingAddress = "facturas@acme.test"
	waitingText    = "From: Papeleria Sol <facturas@papeleria.example>\r\nTo: facturas@acme.test\r\nSubject: Factura F-2026-118\r\n" +
		"Date: Mon, 30 Nov 2026 11:15:03 +0100\r\nMessage-ID: <emulated.1@papeleria.example>\r\n\r\nAdjunto la factura F-2026-118.\r\n"
)

// emulated stands the function on the embedded engine, with one mail accepted and not processed.
func emulated(ctx context.Context, clock func() time.Time) (*Engines, error) {
	e, err := emulator.Open(ctx, clock)
	if err != nil {
		return nil, err
	}
	if err := waiting(ctx, e); err != nil {
		return nil, fmt.Errorf("%w (and closing: %w)", err, e.Close())
	}
	out, err := outmail.NewFolder(filepath.Join(e.Folder(), "outbox"))
	if err != nil {
		return nil, fmt.Errorf("%w (and closing: %w)", err, e.Close())
	}
	box := e.Seal.Purpose(inbox.WebhookSecretPurpose)
	return &Engines{
		Secrets: func(context.Context) (webhook.Secrets, error) { return box, nil }, Origin: e.Origin,
		Store: e.Store, Rows: e.Engine, Blobs: e.Blobs, Outlet: out, Queue: e.Queue, Source: e.Queue, Close: e.Close,
	}, nil
}

func waiting(ctx context.Context, e *emulator.Emulation) error {
	to, err := e.Store.Recipient(ctx, waitingAddress)
	if err != nil {
		return err
	}
	key, sum := "raw/"+strings.ToLower(waitingIntake)+".eml", sha256.Sum256([]byte(waitingText))
	if err := e.Put(ctx, key, []byte(waitingText)); err != nil {
		return err
	}
	return e.Store.PutIntake(ctx, inbox.Intake{
		ID: waitingIntake, ReceivedAt: inbox.IDTime(waitingIntake), RawKey: key, RawSHA256: hex.EncodeToString(sum[:]),
		Size: int64(len(waitingText)), From: "bounces@papeleria.example",
		Recipients: []inbox.Delivery{{Email: waitingMail, Address: to.Address, Organization: to.Organization, Workspace: to.Workspace, Inbox: to.Inbox}},
	})
}
