package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"time"
)

// Bounds of extraction.
const (
	MaxFields       = 50        // of a template
	MaxLocators     = 50        // of a template
	maxSchema       = 16 << 10  // bytes of its JSON
	maxFound        = 20        // places of one locator of a single value; more say nothing
	maxListItems    = 100       // of one field
	maxFieldText    = 1000      // characters of one value
	maxData         = 16 << 10  // bytes of all values of one extraction
	maxCells        = 100       // of one line of a table
	maxEvidence     = 400       // places of one extraction
	maxExtractFiles = 100       // attachments whose names are looked at
	maxExtractText  = maxWindow // bytes of a text
	// searchWork bounds what patterns may spend on a mail beyond their first look at it, in bytes times instructions.
	searchWork = 2 * ruleWork
)

// LocatorKind says how a locator finds a value.
type LocatorKind string

// The kinds.
const (
	LocateLabel      LocatorKind = "label"           // what follows a label on its line, or stands on the next
	LocateRegex      LocatorKind = "regex"           // RE2: the group named value, else the first group, else the match
	LocateTable      LocatorKind = "table"           // the column below a header
	LocateAttachment LocatorKind = "attachment_name" // as regex, in the names of attachments
)

// Locator says where a field may stand. Several of one field are tried in order until one finds something.
type Locator struct {
	Field string      `json:"field"`
	Kind  LocatorKind `json:"kind"`
	Value string      `json:"value"`        // label, pattern or header
	In    string      `json:"in,omitempty"` // PartText, PartSubject; empty: PartText
}

// The parts of a mail that values come from.
const (
	PartText       = "text"
	PartSubject    = "subject"
	PartAttachment = "attachment_name"
)

// ExtractionTemplate says what to take from a mail: the fields of Schema, found by Locators.
type ExtractionTemplate struct {
	ID        string          `json:"id"` // template_ + digest of workspace and slug
	Workspace string          `json:"workspace"`
	Slug      string          `json:"slug"`
	Schema    json.RawMessage `json:"json_schema"` // what parseSchema takes
	Locators  []Locator       `json:"locators"`
	Decimal   string          `json:"decimal,omitempty"`    // "." or ",": of numbers that could be read both ways
	DateOrder string          `json:"date_order,omitempty"` // dmy or mdy: of dates that could be read both ways
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
	DeletedAt time.Time       `json:"deleted_at,omitzero"`
	Version   uint64          `json:"version"`
}

// TemplateID is the id of a workspace's template.
func TemplateID(workspace, slug string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{workspace, slug}, "\x00")))
	return DerivedID("template", [16]byte(sum[:16]))
}

// ExtractionStatus says what came of an extraction.
type ExtractionStatus string

// The statuses.
const (
	ExtractionOK        ExtractionStatus = "ok"        // every required field is there, nothing was in doubt
	ExtractionPartial   ExtractionStatus = "partial"   // some values, but a required field is missing or one was in doubt
	ExtractionAbstained ExtractionStatus = "abstained" // no value at all
	ExtractionInvalid   ExtractionStatus = "invalid"   // something was found that the schema does not allow; it is left out
)

// ExtractionStatuses lists them.
func ExtractionStatuses() []ExtractionStatus {
	return []ExtractionStatus{ExtractionOK, ExtractionPartial, ExtractionAbstained, ExtractionInvalid}
}

// Extraction is what a template found in a mail. There is one of each mail and template: the latest.
type Extraction struct {
	ID          string           `json:"id"` // extraction_ + digest of mail and template
	Workspace   string           `json:"workspace"`
	Inbox       string           `json:"inbox"`
	Email       string           `json:"email"`
	ReceivedAt  time.Time        `json:"received_at"` // of the mail: its place
	Template    string           `json:"template"`    // slug
	Version     uint64           `json:"version"`     // of the template
	Extractor   string           `json:"extractor"`   // name and version
	Status      ExtractionStatus `json:"status"`
	Data        json.RawMessage  `json:"data"` // an object; third-party text
	Evidence    []Evidence       `json:"evidence,omitempty"`
	Errors      []FieldError     `json:"errors,omitempty"`
	Cut         bool             `json:"cut,omitempty"` // the text was longer than what is looked at
	By          string           `json:"by"`            // id of a rule, "default_template", or the subject who asked
	ExtractedAt time.Time        `json:"extracted_at"`
	Secrets     Secrets          `json:"secrets,omitempty"` // of the mail, those that occur in Data
}

// ByDefault is the By of what an inbox extracts from every mail.
const ByDefault = "default_template"

// ExtractionID is the id of the extraction of a mail by a template.
func ExtractionID(workspace, email, template string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{workspace, email, template}, "\x00")))
	return DerivedID("extraction", [16]byte(sum[:16]))
}

// Evidence says where a value stands.
type Evidence struct {
	Field      string `json:"field"`
	Item       int    `json:"item,omitempty"`       // of a list, from 0
	Part       string `json:"part"`                 // PartText, PartSubject, PartAttachment
	Attachment string `json:"attachment,omitempty"` // id
	Start      int    `json:"start"`                // characters, as emails_get counts them with codes:read
	End        int    `json:"end"`                  // exclusive
	Locator    int    `json:"locator"`              // index in the template; -1: another extractor's
}

// FieldError says why a field has no value. It never quotes the mail.
type FieldError struct {
	Field  string `json:"field"`
	Reason string `json:"reason"` // ambiguous, absent, invalid
	Detail string `json:"detail,omitempty"`
}

// Why a field has no value.
const (
	FieldAmbiguous = "ambiguous" // several values, or one that could be read in two ways
	FieldAbsent    = "absent"
	FieldInvalid   = "invalid" // not of the field's type, or not allowed by the schema
)

// What an extractor says of it; nothing else is taken over, for it could be the mail's words.
const (
	detailSeveral  = "several values"
	detailReadings = "it can be read in more than one way"
	detailType     = "what stands there is not of the field's type"
	detailMany     = "too many places"
)

// ExtractionMail is what an extractor sees of a mail.
type ExtractionMail struct {
	Subject     string
	Text        string
	Attachments []Attachment
}

// Finding is the value of one field, as JSON in the shape that the schema asks for.
type Finding struct {
	Field    string
	Value    json.RawMessage
	Evidence []Evidence
}

// Findings is what an extractor returns: at most one Finding or FieldError of each field.
type Findings struct {
	Found  []Finding
	Errors []FieldError
	Cut    bool
}

// Extractor finds the fields of a template in a mail. What it returns is checked against the schema by whoever calls it, so one
// that makes values up, as a model may, gets no further than one that does not.
type Extractor interface {
	// Name is a word and a version that results are stored with, as locators/2.
	Name() string
	// Extract abstains rather than guess. Its errors are the extractor's own; what is wrong with the mail stands in Findings.
	Extract(ctx context.Context, t ExtractionTemplate, m ExtractionMail) (Findings, error)
}
