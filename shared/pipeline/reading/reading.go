// Package reading is what a parser makes of a mail, in the domain's words: the seam between the pipeline and the parser, so
// that whoever only accepts mail links no parser. It knows the domain's types and nothing else.
package reading

import (
	"context"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// Reading is all that a parser made of a mail's bytes, in the domain's words.
type Reading struct {
	Content    inbox.Content
	Body       inbox.Body
	Files      []File
	References []string // message ids, oldest first
	Flags      []string
	Warnings   []inbox.Warning
	Signals    []inbox.Signal
	Codes      []inbox.Code
	OtherCodes []string // secrets that are not listed
	Links      []inbox.Link
	Unreadable bool // nothing in it could be read as a mail; what there is stays
}

// File is one attachment with its bytes.
type File struct {
	Meta inbox.Attachment // without ids, keys, size and hash
	Data []byte
}

// Parse reads a mail. It must be bounded in memory, heed the context, and return an error only when nothing can be read.
type Parse func(ctx context.Context, raw []byte) (Reading, error)
