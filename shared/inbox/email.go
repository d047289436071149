package inbox

import "time"

// MaxEmailBytes is how large an email may be; a workspace may say less, down to MinEmailBytes: below that ordinary mail would be refused.
const (
	MaxEmailBytes = 25 << 20
	MinEmailBytes = 64 << 10
)

// Status is where a mail is in its life. It only moves forward, but for a new run of the pipeline that was asked for.
type Status string

// The statuses of a mail.
const (
	StatusReceived    Status = "received"    // accepted, waiting for the worker
	StatusProcessing  Status = "processing"  // the worker is at it
	StatusProcessed   Status = "processed"   // final
	StatusFailed      Status = "failed"      // final: could not be read; the raw mail is kept
	StatusQuarantined Status = "quarantined" // final until a person releases it
)

// Address is a mailbox as a header names it. Name is third-party text.
type Address struct {
	Name    string `json:"name,omitempty"`
	Address string `json:"address"`
}

// Envelope is what the transport said; unlike headers it is not the sender's word alone.
type Envelope struct {
	From     string `json:"from"`      // MAIL FROM; empty for bounces
	To       string `json:"to"`        // the RCPT address that led here
	RemoteIP string `json:"remote_ip"` // of the client; empty for imports
	HELO     string `json:"helo,omitempty"`
	// Imported: no transport brought it but a person's own file, so there is nothing that could vouch for its sender.
	Imported bool `json:"imported,omitempty"`
}

// Warning is something about a mail that was repaired, cut or refused.
type Warning struct {
	Code   string `json:"code"`
	Detail string `json:"detail,omitempty"` // our words, never the mail's
}

// Code is a one-time code found in a mail.
type Code struct {
	Value      string  `json:"value"`
	Kind       string  `json:"kind"`
	Confidence float64 `json:"confidence"` // 0..1
}

// Link is a link found in a mail.
type Link struct {
	URL     string   `json:"url"`
	Text    string   `json:"text,omitempty"`
	Kind    string   `json:"kind,omitempty"`    // verify, reset, sign_in, unsubscribe or empty
	Signals []string `json:"signals,omitempty"` // text_mismatch, punycode, ip_host, ...
}

// Email is one mail in one inbox without its bodies. Everything that the sender wrote stands in Content.
type Email struct {
	ID           string      `json:"id"` // email_ + ULID of the time of receipt, so ids sort by it
	Organization string      `json:"organization"`
	Workspace    string      `json:"workspace"`
	Inbox        string      `json:"inbox"`
	Thread       string      `json:"thread,omitempty"`
	Status       Status      `json:"status"`
	Reason       string      `json:"reason,omitempty"` // why it failed or was quarantined: a code of ours
	Labels       []string    `json:"labels,omitempty"`
	Category     string      `json:"category,omitempty"`
	HandledAt    time.Time   `json:"handled_at,omitzero"`
	ReceivedAt   time.Time   `json:"received_at"`
	ProcessedAt  time.Time   `json:"processed_at,omitzero"`
	Size         int64       `json:"size"`               // bytes of the raw mail
	RawSHA256    string      `json:"raw_sha256"`         // hex
	RawKey       string      `json:"raw_key"`            // blob
	BodyKey      string      `json:"body_key,omitempty"` // blob of the Body when it is too large for a row
	Envelope     Envelope    `json:"envelope"`
	Content      Content     `json:"content"`
	Auth         []AuthCheck `json:"auth,omitempty"`
	Trust        Trust       `json:"trust,omitzero"`
	ReleasedAt   time.Time   `json:"released_at,omitzero"` // from quarantine, by a person
	Flags        []string    `json:"flags,omitempty"`      // auto_reply, bounce, list, loop, encrypted, signed, calendar, truncated
	Warnings     []Warning   `json:"warnings,omitempty"`
	Signals      []Signal    `json:"signals,omitempty"` // what was hidden in it
	Codes        []Code      `json:"codes,omitempty"`
	OtherCodes   []string    `json:"other_codes,omitempty"` // never shown: only what masking must hide besides Codes
	Links        []Link      `json:"links,omitempty"`
	Attachments  int         `json:"attachments,omitempty"` // how many
	Pipeline     int         `json:"pipeline,omitempty"`    // version of the pipeline that read it
	Quiet        bool        `json:"quiet,omitempty"`       // nobody is told that it came: an import that did not ask for it
	UpdatedAt    time.Time   `json:"updated_at"`
	DeletedAt    time.Time   `json:"deleted_at,omitzero"`
	PurgeAt      time.Time   `json:"purge_at,omitzero"` // of a deleted mail; see PurgesAt
	Version      uint64      `json:"version"`           // moved by operations only, never by the pipeline

	Authentication []Authentication `json:"authentication,omitempty"` // what the transport checked, if it did
	Door           string           `json:"door,omitempty"`           // of its Delivery

	Rules      []RuleRef      `json:"rules,omitempty"`      // those that matched it, in their order
	CategoryBy RuleRef        `json:"category_by,omitzero"` // the rule that set the category; zero: none
	Notify     []Notification `json:"notify,omitempty"`     // webhooks that rules want told of it

	// RuleLabels and RuleHandled are what a reading set and nobody has changed since: the next reading may take it back.
	RuleLabels  []string `json:"rule_labels,omitempty"`
	RuleHandled bool     `json:"rule_handled,omitempty"`
	Settled     Settled  `json:"settled,omitzero"`

	// RawOwn: no other mail has this RawKey, or ever will. Of others a row names who has.
	RawOwn bool `json:"raw_own,omitempty"`
	// Claims are the rows by which later mail finds this one, which go with it: digests of its message and of message ids.
	Claims []string `json:"claims,omitempty"`
}

// Content is third-party text: data, never instructions.
type Content struct {
	Subject   string    `json:"subject,omitempty"`
	From      []Address `json:"from,omitempty"`
	Sender    *Address  `json:"sender,omitempty"`
	ReplyTo   []Address `json:"reply_to,omitempty"`
	To        []Address `json:"to,omitempty"`
	CC        []Address `json:"cc,omitempty"`
	MessageID string    `json:"message_id,omitempty"`
	Date      time.Time `json:"date,omitzero"`
	Snippet   string    `json:"snippet,omitempty"`
}

// Signal counts one kind of hidden or deceptive content that was removed.
type Signal struct {
	Code  string `json:"code"`
	Count int    `json:"count"`
}

// Body is what can be read of a mail, beside its Email. All of it is third-party text.
type Body struct {
	Text      string   `json:"text,omitempty"`
	ReplyText string   `json:"reply_text,omitempty"` // without quoted text and signature
	Markdown  string   `json:"markdown,omitempty"`
	HTML      string   `json:"html,omitempty"` // sanitised
	Headers   []Header `json:"headers,omitempty"`
}

// Header is one header field in the order of the raw mail.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Attachment is the metadata of one part that is a file. The names are third-party text.
type Attachment struct {
	ID               string   `json:"id"` // att_...
	Workspace        string   `json:"workspace"`
	Inbox            string   `json:"inbox"`
	Email            string   `json:"email"`
	PartPath         string   `json:"part_path"` // 1.2.3
	Kind             string   `json:"kind"`      // file, inline, calendar, message, tnef, signature
	Filename         string   `json:"filename,omitempty"`
	FilenameOriginal string   `json:"filename_original,omitempty"`
	ContentType      string   `json:"content_type"`  // as declared
	DetectedType     string   `json:"detected_type"` // by its first bytes
	Disposition      string   `json:"disposition,omitempty"`
	ContentID        string   `json:"content_id,omitempty"`
	Size             int64    `json:"size"` // bytes, decoded
	SHA256           string   `json:"sha256"`
	BlobKey          string   `json:"blob_key"`
	Flags            []string `json:"flags,omitempty"` // double_extension, macro, encrypted_archive, ...
}
