package inbox

import "slices"

// maxPageSize is how many bytes the rows of a page may have in all, where one row can be long. A page ends before the row that would go
// over it, but has one row at least; what follows is read with its cursor as ever.
const maxPageSize = 50_000

// bound cuts the lists of a mail as its texts are cut: a sender can write hundreds of addresses and links, and each costs the model that
// reads them. What is not whole is named among the texts: links read on from their Next, addresses are whole among the headers, and the
// extractions of one mail have a list of their own.
func (v *EmailView) bound(from, most int) {
	var links, found TextView
	v.Links, links = cutEntries(ViewLinks, v.Links, func(l Link) int { return runes(l.URL) + runes(l.Text) }, from, most)
	if links.Returned < links.Total {
		v.Texts = append(v.Texts, links)
	}
	addresses := TextView{Name: ViewAddresses}
	c := &v.Content
	for _, list := range []*[]Address{&c.From, &c.ReplyTo, &c.To, &c.CC} {
		kept, part := cutEntries("", *list, func(a Address) int { return runes(a.Name) + runes(a.Address) }, 0, most-addresses.Returned)
		*list, addresses.Total = kept, addresses.Total+part.Total
		addresses.Returned, addresses.Truncated = addresses.Returned+part.Returned, addresses.Truncated || part.Truncated
	}
	if addresses.Truncated {
		v.Texts = append(v.Texts, addresses)
	}
	v.Extractions, found = cutEntries(ViewExtractions, v.Extractions, func(e Extraction) int { return e.size() }, 0, most)
	if found.Truncated {
		found.Next = 0
		v.Texts = append(v.Texts, found)
	}
}

// cutEntries keeps whole entries alone, from the one that from lies in: the first whatever its size, further ones while they fit.
func cutEntries[T any](name string, list []T, size func(T) int, from, most int) ([]T, TextView) {
	t := TextView{Name: name, From: from}
	first, end := len(list), len(list)
	for i, entry := range list {
		start, n := t.Total, size(entry)
		t.Total += n
		switch {
		case t.Truncated, t.Total <= from && from > 0:
		case first == len(list) || t.Returned+n <= most:
			first, t.Returned = min(first, i), t.Returned+n
		default:
			end, t.Truncated, t.Next = i, true, start
		}
	}
	return slices.Clip(list[first:end]), t
}

// size is about how many bytes an extraction has on the wire.
func (e *Extraction) size() int {
	const place = 100 // one piece of evidence, or why a field has no value
	return len(e.Data) + place*(len(e.Evidence)+len(e.Errors))
}

// size is about how many bytes a template has on the wire.
func (t *ExtractionTemplate) size() int {
	const members = 50 // names of a locator's members
	n := len(t.Schema)
	for _, l := range t.Locators {
		n += members + len(l.Field) + len(l.Value)
	}
	return n
}
