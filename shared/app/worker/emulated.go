package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
func emulated(clock func() time.Time) (*Engines, error) {
	e, err := emulator.New(clock, emulator.Options{Fill: waiting})
	if err != nil {
		return nil, err
	}
	box := e.Seal.Purpose(inbox.WebhookSecretPurpose)
	return &Engines{
		Secrets: func(context.Context) (webhook.Secrets, error) { return box, nil }, Origin: e.Origin,
		Store: e.Store, Rows: e.Engine, Blobs: e.Blobs, Outlet: outbox{e}, Queue: e.Queue, Source: e.Queue, Close: e.Close,
	}, nil
}

// outbox is a folder of outgoing mail beside the store.
type outbox struct{ e *emulator.Emulation }

// Send implements outmail.Outlet.
func (o outbox) Send(ctx context.Context, m outmail.Message) error {
	w, err := o.e.World(ctx)
	if err != nil {
		return err
	}
	to, err := outmail.NewFolder(filepath.Join(w.Folder, "outbox"))
	if err != nil {
		return err
	}
	return to.Send(ctx, m)
}

func waiting(ctx context.Context, w *emulator.World) error {
	to, err := w.Store.Recipient(ctx, waitingAddress)
	if err != nil {
		return err
	}
	key, sum := "raw/"+strings.ToLower(waitingIntake)+".eml", sha256.Sum256([]byte(waitingText))
	if err := w.Put(ctx, key, []byte(waitingText)); err != nil {
		return err
	}
	return w.Store.PutIntake(ctx, inbox.Intake{
		ID: waitingIntake, ReceivedAt: inbox.IDTime(waitingIntake), RawKey: key, RawSHA256: hex.EncodeToString(sum[:]),
		Size: int64(len(waitingText)), From: "bounces@papeleria.example",
		Recipients: []inbox.Delivery{{Email: waitingMail, Address: to.Address, Organization: to.Organization, Workspace: to.Workspace, Inbox: to.Inbox}},
	})
}
