package pipeline

import "github.com/buzon-mail/buzon/shared/pipeline/reading"

// Version is the version of the pipeline. It moves when a stage changes what it makes of a mail, and stands in the keys of
// what is derived, so that a new reading never lies over the bytes of an old one.
const Version = 1

// What a parser makes of a mail.
type (
	Reading = reading.Reading
	File    = reading.File
	Parse   = reading.Parse
)
