package inbox

import "time"

// Recipient is the inbox behind an address, as the accept path needs it.
type Recipient struct {
	Address      string // lower case, as it is stored
	Organization string
	Workspace    string
	Inbox        string
	State        State
}

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
}

// Authentication is one check of a mail's origin by a receiver of ours. What a header of the mail says of such checks is the
// word of whoever wrote the header, and never stands here.
type Authentication struct {
	Method string `json:"method"` // spf, dkim, dmarc, spam, virus
	Result string `json:"result"` // pass, fail, neutral, temperror
	From   string `json:"from"`   // who checked, by an authserv-id of ours (RFC 8601 section 2.5): ses
}

// Delivery is one recipient of an Intake. The id of its mail is chosen when it is accepted, so that a second run of the
// worker makes the same mail and not another one.
type Delivery struct {
	Email        string `json:"email"` // the id the mail will have
	Address      string `json:"address"`
	Organization string `json:"organization"`
	Workspace    string `json:"workspace"`
	Inbox        string `json:"inbox"`
}

// Processed is all that the pipeline learned of a mail, to be stored in one step.
type Processed struct {
	Email       Email // with its final status
	Body        *Body // nil when it is in a blob (Email.BodyKey) or could not be read
	Attachments []Attachment
	References  []string // message ids that the mail answers, oldest first: they find its thread
}
