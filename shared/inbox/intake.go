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

// Recipient is the inbox behind an address, as the accept path needs it.
type Recipient struct {
	Address      string // lower case, as it is stored
	Organization string
	Workspace    string
	Inbox        string
	State        State
	SenderPolicy SenderPolicy // see Policy
	OnUnlisted   OnUnlisted
	Door         string // of the Delivery
	// MaxBytes of a mail to it; 0: what the transport takes. It is the workspace's, read with each look-up, and stored nowhere else.
	MaxBytes int64 `json:"-"`
}

// TooLarge reports whether a mail is larger than the recipient takes.
func (r Recipient) TooLarge(size int64) bool { return r.MaxBytes > 0 && size > r.MaxBytes }

// Intake is one accepted mail before anything was read of it: the outbox row that is stored before 250 is said.
type Intake struct {
	ID         string     `json:"id"` // intake_ + ULID
	ReceivedAt time.Time  `json:"received_at"`
	RawKey     string     `json:"raw_key"`
	RawSHA256  string     `json:"raw_sha256"` // hex
	Size       int64      `json:"size"`
	From       string     `json:"from"` // MAIL FROM
	RemoteIP   string     `json:"remote_ip,omitempty"`
	HELO       string     `json:"helo,omitempty"`
	Recipients []Delivery `json:"recipients"`        // at most 50
	Repairs    []Warning  `json:"repairs,omitempty"` // what the transport saw: bare LF, NUL, ...
	// Shared says that other intakes have the same RawKey, or will, so that the bytes may not be removed for this one's sake.
	Shared         bool             `json:"shared,omitempty"`
	Authentication []Authentication `json:"authentication,omitempty"` // what the transport checked, if it did
	Imported       bool             `json:"imported,omitempty"`       // see Envelope
	Quiet          bool             `json:"quiet,omitempty"`          // see Email
	// Announced says that a row has its bytes removed unless this one takes it away: see AcceptTime.
	Announced bool `json:"announced,omitempty"`
}

// Authentication is one check of a mail's origin by a receiver of ours. What a header of the mail says of such checks is the
// word of whoever wrote the header, and never stands here.
type Authentication struct {
	Method string `json:"method"`           // spf, dkim, dmarc, spam, virus
	Result string `json:"result"`           // pass, fail, none, neutral, temperror
	From   string `json:"from"`             // who checked, by an authserv-id of ours (RFC 8601 section 2.5): CheckedBySES
	Reason string `json:"reason,omitempty"` // of dmarc: the policy of the domain of From, where it was told
}

// CheckedBySES is the authserv-id of ours for what Amazon SES found out as it took the mail.
const CheckedBySES = "ses"

// Delivery is one recipient of an Intake. The id of its mail is chosen when it is accepted, so that a second run of the
// worker makes the same mail and not another one.
type Delivery struct {
	Email        string `json:"email"` // the id the mail will have
	Address      string `json:"address"`
	Organization string `json:"organization"`
	Workspace    string `json:"workspace"`
	Inbox        string `json:"inbox"`
	// Door is why the mail would have been refused, by a transport that can't refuse it for this recipient: HeldBlocked or HeldUnlisted
	// for the envelope's sender, HeldTooLarge; the mail is quarantined for it.
	Door string `json:"door,omitempty"`
}

// Processed is all that the pipeline learned of a mail, to be stored in one step.
type Processed struct {
	Email       Email // with its final status
	Body        *Body // nil when it is in a blob (Email.BodyKey) or could not be read
	Attachments []Attachment
	References  []string // message ids that the mail answers, oldest first: they find its thread
}
