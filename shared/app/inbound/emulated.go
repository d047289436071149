package inbound

import (
	"context"
	"fmt"
	"time"

	"github.com/buzon-mail/buzon/shared/app/emulator"
)

// What SES has stored for the emulated function: the mails that events/ses-inbound*.json name.
const (
	emulatedBucket = "buzon-mail-123456789012-eu-west-1"
	emulatedID     = "d6iitobk75ur44p8kdnnp7g2n8000000000000%02d"
	emulatedMails  = 3
	emulatedText   = "From: Papeleria Sol <facturas@papeleria.example>\r\nTo: facturas@acme.test\r\nSubject: Emulado %d\r\n" +
		"Date: Mon, 30 Nov 2026 11:15:03 +0100\r\nMessage-ID: <20261130.%[1]d@papeleria.example>\r\n\r\nHola.\r\n"
)

// emulated stands the function on the embedded engine.
func emulated(clock func() time.Time) (*Engines, error) {
	e, err := emulator.New(clock, emulator.Options{Fill: sesStored})
	if err != nil {
		return nil, err
	}
	return &Engines{Store: e.Store, Blobs: e.Blobs, Queue: e.Queue, Bucket: emulatedBucket, Close: e.Close}, nil
}

// sesStored puts the mails where SES would.
func sesStored(ctx context.Context, w *emulator.World) error {
	for i := 1; i <= emulatedMails; i++ {
		if err := w.Put(ctx, sesFolder+fmt.Sprintf(emulatedID, i), fmt.Appendf(nil, emulatedText, i)); err != nil {
			return err
		}
	}
	return nil
}
