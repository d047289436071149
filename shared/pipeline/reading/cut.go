package reading

import "errors"

// Cutter cuts a file into mails. Next returns io.EOF behind the last, ErrTooLarge for one that was read over, ErrFormat for a file that
// is something else, and the errors of whatever the file is read from.
type Cutter interface{ Next() ([]byte, error) }

// What a Cutter says beside the file's own errors.
var (
	ErrTooLarge = errors.New("reading: a mail of the file is too large")
	ErrFormat   = errors.New("reading: the file has another format")
)
