package inbox

import "time"

// Recipient is the inbox behind an address, as the accept path needs it.
type Recipient struct {
	Address      string // lower case, as it is stored
	Organization string
	Workspace    string
	Inbox        string
	State        State
	SenderPolicy SenderPolicy // see Policy
	OnUnlisted   OnUnlisted
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
