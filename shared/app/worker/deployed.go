package worker

import (
	"context"
	"errors"
	"time"

	"github.com/buzon-mail/buzon/shared/config"
)

// deployed stands the function on AWS.
func deployed(context.Context, *config.Worker, func() time.Time) (*Engines, error) {
	return nil, errors.New("there is no engine for a deployed function in this version: set BUZON_EMULATOR=1")
}
