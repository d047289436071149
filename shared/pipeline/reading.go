package pipeline

import (
	"context"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// Version is the version of the pipeline. It moves when a stage changes what it makes of a mail, and stands in the keys of
// what is derived, so that a new reading never lies over the bytes of an old one.
const Version = 1

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
