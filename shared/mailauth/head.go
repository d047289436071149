package mailauth

import (
	"bytes"
	"strings"

	"github.com/buzon-mail/buzon/shared/mail/header"
	"github.com/buzon-mail/buzon/shared/mail/warning"
)

// The bounds of a header block that is given to the DKIM library, which joins folded lines one by one and looks through all
// fields for each name that a signature lists: unbounded, a few megabytes of header would cost hours.
const (
	maxHead      = 256 << 10
	maxField     = 64 << 10
	maxFields    = 1000
	maxLines     = 10_000
	maxSignature = 8 << 10
)

// head is the header block as the DKIM library reads it (lines end at LF, the first empty one ends the block), not as the
// parser repairs it: where the two differ, a signature would vouch for another From than the one that is shown.
type head struct {
	from       [][]byte // the values of From fields
	results    []byte   // the value of the topmost Authentication-Results field; nil: there is none
	signatures int
	tooLarge   bool
}

func readHead(raw []byte) head {
	var h head
	var name string
	var field []byte
	fields, lines, size := 0, 0, 0
	end := func() {
		switch {
		case strings.EqualFold(name, "From"):
			h.from = append(h.from, field)
		case strings.EqualFold(name, "Authentication-Results") && h.results == nil:
			h.results = append([]byte{}, field...)
		case strings.EqualFold(name, "DKIM-Signature"):
			h.signatures++
			h.tooLarge = h.tooLarge || len(field) > maxSignature
		}
		h.tooLarge = h.tooLarge || len(field) > maxField
		name, field = "", nil
	}
	for len(raw) > 0 && !h.tooLarge {
		line, rest, _ := bytes.Cut(raw, []byte("\n"))
		size += len(line) + 1
		line, raw = bytes.TrimSuffix(line, []byte("\r")), rest
		if len(line) == 0 {
			break
		}
		if lines++; (line[0] == ' ' || line[0] == '\t') && fields > 0 {
			field = append(append(field, ' '), line...)
		} else {
			end()
			fields++
			key, value, _ := bytes.Cut(line, []byte(":"))
			name, field = strings.TrimSpace(string(key[:min(len(key), 128)])), bytes.Clone(value)
		}
		h.tooLarge = h.tooLarge || fields > maxFields || lines > maxLines || size > maxHead
	}
	end()
	return h
}

// author is the one mailbox of the one From field. With several, each reader shows another, so none may be trusted
// (RFC 7489 section 6.6.1).
func (h head) author() (header.Address, string) {
	switch {
	case h.tooLarge:
		return header.Address{}, ReasonHeader
	case len(h.from) == 0:
		return header.Address{}, ReasonNoFrom
	case len(h.from) > 1:
		return header.Address{}, ReasonSeveralFrom
	}
	list := (&header.Decoder{Warn: &warning.List{}}).Addresses(h.from[0], 2)
	switch {
	case len(list) == 0:
		return header.Address{}, ReasonNoFrom
	case len(list) > 1:
		return header.Address{}, ReasonSeveralFrom
	case !list[0].Valid || strings.HasPrefix(list[0].Domain, "["):
		return header.Address{}, ReasonBadFrom
	}
	return list[0], ""
}
