package pipeline

import (
	"context"
	"encoding/json"
	"unicode/utf8"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// The bounds of what one row may hold of a mail beside its body. Engines refuse a row over 350 KB, of which the body may
// have 100; a sender must not be able to make a mail that cannot be stored.
const (
	maxRow    = 150_000 // bytes of the JSON
	maxList   = 200     // entries of each list
	maxText   = 2000    // bytes of each text
	maxShort  = 300     // bytes of names
	maxParent = 100     // references, the last of which count
)

// fit cuts lists and texts until the row fits. The raw mail has all of it, and the mail says that it was cut.
func (r *run) fit(context.Context) error {
	cut := false
	for limit := maxList; ; limit /= 2 {
		cut = r.cut(limit) || cut
		encoded, err := json.Marshal(r.email)
		if err != nil {
			return err
		}
		if len(encoded) <= maxRow || limit == 0 {
			break
		}
	}
	if cut {
		r.addFlag("truncated")
		r.warn("fields_cut", "Lists or texts of this mail were cut; the raw mail has all of them")
	}
	return nil
}

func (r *run) cut(limit int) bool {
	e, cut := &r.email, false
	c := &e.Content
	for _, list := range []*[]inbox.Address{&c.From, &c.ReplyTo, &c.To, &c.CC} {
		cut = shorten(list, limit) || cut
		for i := range *list {
			cut = clip(&(*list)[i].Name, maxShort) || cut
			cut = clip(&(*list)[i].Address, maxShort) || cut
		}
	}
	if c.Sender != nil {
		s := *c.Sender
		cut = clip(&s.Name, maxShort) || cut
		cut = clip(&s.Address, maxShort) || cut
		c.Sender = &s
	}
	for _, text := range []*string{&c.Subject, &c.MessageID, &c.Snippet} {
		cut = clip(text, maxText) || cut
	}
	cut = shorten(&e.Warnings, limit) || cut
	cut = shorten(&e.Signals, limit) || cut
	cut = shorten(&e.Codes, limit) || cut
	cut = shorten(&e.OtherCodes, limit) || cut
	cut = shorten(&e.Links, limit) || cut
	cut = shorten(&e.Flags, limit+1) || cut
	for i := range e.Links {
		cut = clip(&e.Links[i].Text, maxShort) || cut
	}
	return cut
}

func shorten[T any](list *[]T, limit int) bool {
	if len(*list) <= limit {
		return false
	}
	*list = (*list)[:limit:limit]
	return true
}

// clip cuts a text at a character's end.
func clip(s *string, limit int) bool {
	if len(*s) <= limit {
		return false
	}
	for limit > 0 && !utf8.RuneStart((*s)[limit]) {
		limit--
	}
	*s = (*s)[:limit]
	return true
}
