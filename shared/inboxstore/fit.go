package inboxstore

import (
	"slices"
	"strings"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// Bounds of a mail's row, in bytes; the raw mail has everything. The budgets count what JSON makes of a text, which for some
// characters is six bytes.
const (
	fitText         = 1000
	fitName         = 200
	fitAddress      = 320
	fitAddresses    = 100 // of each header
	addressBudget   = 60 << 10
	fitLinks        = 200
	fitURL          = 2048
	linkBudget      = 150 << 10
	fitCodes        = 50
	fitOtherCodes   = 100
	fitList         = 100
	maxFilenameSize = 255
)

// fitter cuts and remembers that it did.
type fitter struct {
	cut  bool
	left int // of the budget of what is being cut
}

// fit cuts what a sender can make long, so that the row stays below the engine's bound whatever was sent: a mail whose row
// is refused would fail for ever. A warning says so.
func fit(e inbox.Email, attachmentsCut bool) inbox.Email {
	f := &fitter{left: addressBudget}
	c := &e.Content
	f.text(&c.Subject, fitText)
	f.text(&c.MessageID, fitText)
	f.text(&c.Snippet, fitText)
	c.From, c.ReplyTo, c.To, c.CC = f.addresses(c.From), f.addresses(c.ReplyTo), f.addresses(c.To), f.addresses(c.CC)
	if c.Sender != nil {
		if s := f.addresses([]inbox.Address{*c.Sender}); len(s) > 0 {
			c.Sender = &s[0]
		}
	}
	f.left = linkBudget
	e.Links = f.links(e.Links)
	e.Codes = slices.Clone(e.Codes[:min(len(e.Codes), fitCodes)])
	e.OtherCodes = slices.Clone(e.OtherCodes[:min(len(e.OtherCodes), fitOtherCodes)])
	for i := range e.OtherCodes {
		f.text(&e.OtherCodes[i], fitName)
	}
	for i := range e.Codes {
		f.text(&e.Codes[i].Value, fitName)
	}
	e.Warnings = slices.Clone(e.Warnings[:min(len(e.Warnings), fitList)])
	if f.cut {
		e.Warnings = append(e.Warnings, inbox.Warning{
			Code: "row_cut", Detail: "Long names, addresses or links were cut; the raw mail has them.",
		})
	}
	if attachmentsCut {
		e.Warnings = append(e.Warnings, inbox.Warning{
			Code: "attachments_cut", Detail: "Not all attachments are listed; the raw mail has them.",
		})
	}
	return e
}

func (f *fitter) text(s *string, n int) {
	if len(*s) > n {
		*s, f.cut = cutBytes(*s, n), true
	}
}

// spend takes a text's size from the budget; false when it is exhausted.
func (f *fitter) spend(texts ...string) bool {
	n := 60 // names of members
	for _, s := range texts {
		n += encodedSize(s)
	}
	if n > f.left {
		f.cut = true
		return false
	}
	f.left -= n
	return true
}

func (f *fitter) addresses(list []inbox.Address) []inbox.Address {
	var out []inbox.Address
	for i, a := range list {
		f.text(&a.Name, fitName)
		f.text(&a.Address, fitAddress)
		if i == fitAddresses || !f.spend(a.Name, a.Address) {
			f.cut = true
			break
		}
		out = append(out, a)
	}
	return out
}

// links keeps whole ones only: half a link is worse than none.
func (f *fitter) links(list []inbox.Link) []inbox.Link {
	var out []inbox.Link
	for _, l := range list {
		f.text(&l.Text, fitName)
		if len(out) == fitLinks || len(l.URL) > fitURL || !f.spend(l.URL, l.Text) {
			f.cut = true
			continue
		}
		out = append(out, l)
	}
	return out
}

// encodedSize is the length of a text as encoding/json writes it.
func encodedSize(s string) int {
	n := len(s)
	for _, c := range []byte(s) {
		switch {
		case c < 0x20, c == '<', c == '>', c == '&', c >= 0x80: // the last: U+2028 and invalid bytes; too much for all others
			n += 5
		case c == '"', c == '\\':
			n++
		}
	}
	return n
}

// bounded cuts what a sender can make long of an attachment. Control characters go: they are no part of a name and cost six
// bytes each.
func bounded(a inbox.Attachment) inbox.Attachment {
	for _, s := range []*string{&a.Filename, &a.FilenameOriginal, &a.ContentType, &a.ContentID, &a.Disposition} {
		*s = cutBytes(strings.Map(printable, cutBytes(*s, 4*maxFilenameSize)), maxFilenameSize)
	}
	return a
}

func printable(r rune) rune {
	if r < 0x20 || r == 0x7f {
		return -1
	}
	return r
}

func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
