package inbox

import (
	"io"
	"time"
)

// Incoming is one mail as a transport hands it over, before anything of it is stored.
type Incoming struct {
	From       string      // MAIL FROM; empty for bounces
	RemoteIP   string      // of the client; empty for imports
	HELO       string      // what the client called itself; not checked
	Recipients []Recipient // 1 to 50, each inbox once
	Body       io.Reader   // the raw mail; read once, to its end
	// Repairs, when set, is asked after Body was read to its end: what the transport saw (bare line feeds, NUL).
	Repairs func() []Warning
}

// Stored is one mail that its transport put into the blob store by itself, as SES does.
type Stored struct {
	// Source is the transport and its own name of the mail, as ses/o3vrnil0e2ic: every id follows from it, so that a second
	// notice of the same mail makes nothing new.
	Source         string
	Key            string // of the blob
	ReceivedAt     time.Time
	From           string      // MAIL FROM; empty for bounces
	Recipients     []Recipient // any number; an inbox that comes twice counts once
	Authentication []Authentication
}

// CodeStorageFull is the apperr code of the unavailable error for a store without room: the sender keeps the mail and comes
// again.
const CodeStorageFull = "storage_full"
