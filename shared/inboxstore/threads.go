package inboxstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// Bounds of threading.
const (
	maxReferences     = 10 // looked up for one mail: the newest ones and the oldest
	subjectDays       = 30 * 24 * time.Hour
	subjectThreads    = 8 // conversations that one subject remembers
	subjectPeople     = 8 // participants of each
	participantDigest = 8 // bytes
	maxPrefixes       = 20
)

type threadRow struct {
	Thread string `json:"thread"`
}

// subjectRow remembers the latest conversations of one subject.
type subjectRow struct {
	Threads []subjectThread `json:"threads"`
}

type subjectThread struct {
	Thread string    `json:"thread"`
	At     time.Time `json:"at"`
	People []string  `json:"people"` // digests of addresses
}

// thread finds the conversation of a mail within its inbox and adds to b what later mails need to find it. In order: the
// thread of a mail that it answers; the one that an answer to it, which arrived first, has named; for an answer without
// references one of the same subject with a shared participant in the last 30 days; else a new one, whose id is the digest of
// the oldest message known of it: two workers with two mails of one conversation choose the same id without talking.
func (s *Store) thread(ctx context.Context, b *batch, e inbox.Email, references []string) (thread string, claims []string, err error) {
	t := threading{s, e, map[string]bool{}}
	refs := trimReferences(references)
	found, err := t.known(ctx, refs)
	if err != nil {
		return "", nil, err
	}
	own := normalID(e.Content.MessageID)
	if found == "" && own != "" {
		if found, err = t.lookup(ctx, own); err != nil {
			return "", nil, err
		}
	}
	row, read, err := t.subject(ctx)
	if err != nil {
		return "", nil, err
	}
	if found == "" && len(refs) == 0 && isAnswer(e.Content.Subject) {
		found = row.match(e)
	}
	if found == "" {
		found = t.derive(refs, own)
	}
	claims = t.remember(b, found, own, refs)
	if subject := baseSubject(e.Content.Subject); subject != "" {
		row.add(e, found)
		b.forgetful(threadingKey(e.Workspace, e.Inbox, "subject", subject), read, row, row.until())
	}
	return found, claims, nil
}

type threading struct {
	s      *Store
	e      inbox.Email
	looked map[string]bool // message id -> has a thread
}

func (t *threading) lookup(ctx context.Context, id string) (string, error) {
	row, _, ok, err := find[threadRow](ctx, t.s, threadingKey(t.e.Workspace, t.e.Inbox, "msg", id))
	t.looked[id] = ok
	return row.Thread, err
}

// known looks the references up, the newest first.
func (t *threading) known(ctx context.Context, refs []string) (string, error) {
	for _, id := range slices.Backward(refs) {
		if thread, err := t.lookup(ctx, id); err != nil || thread != "" {
			return thread, err
		}
	}
	return "", nil
}

// remember claims, for the thread, the mail's own message id and, of what it answers, the oldest and the newest that no mail
// has named yet: when they arrive late they find the thread. The claims are conditional: who loses the race reads again. It returns
// the sort keys of those that go with the mail when it is purged.
func (t *threading) remember(b *batch, thread, own string, refs []string) (keys []string) {
	claims := []string{}
	if own != "" {
		claims = append(claims, own)
	}
	if n := len(refs); n > 0 {
		claims = append(claims, refs[0], refs[n-1])
	}
	slices.Sort(claims)
	for _, id := range slices.Compact(claims) {
		k := threadingKey(t.e.Workspace, t.e.Inbox, "msg", id)
		switch taken, asked := t.looked[id]; {
		case asked && !taken:
			b.create(k, threadRow{thread})
		case !asked && id == own:
			// What it answers told the thread; an early answer to it may have claimed another, which answers to come must not join.
			b.set(k, threadRow{thread})
		case id != own:
			continue
		}
		keys = append(keys, k.Sort)
	}
	return keys
}

func (t *threading) subject(ctx context.Context) (subjectRow, uint64, error) {
	subject := baseSubject(t.e.Content.Subject)
	if subject == "" {
		return subjectRow{}, 0, nil
	}
	row, read, err := get[subjectRow](ctx, t.s, threadingKey(t.e.Workspace, t.e.Inbox, "subject", subject))
	if errors.Is(err, store.ErrNotFound) {
		return subjectRow{}, 0, nil
	}
	return row, read, err
}

func (t *threading) derive(refs []string, own string) string {
	root := "email:" + t.e.ID
	switch {
	case len(refs) > 0:
		root = "message:" + refs[0]
	case own != "":
		root = "message:" + own
	}
	sum := sha256.Sum256([]byte(t.e.Workspace + "\x00" + t.e.Inbox + "\x00" + root))
	return inbox.DerivedID("thread", [16]byte(sum[:16]))
}

// until is when the row can match nothing any more: then it goes by itself, and no purge has to find it.
func (r subjectRow) until() time.Time {
	var newest time.Time
	for _, t := range r.Threads {
		if t.At.After(newest) {
			newest = t.At
		}
	}
	return newest.Add(subjectDays + 24*time.Hour)
}

func (r subjectRow) match(e inbox.Email) string {
	people := participants(e)
	for _, t := range slices.Backward(r.Threads) {
		if e.ReceivedAt.Sub(t.At).Abs() > subjectDays {
			continue
		}
		if slices.ContainsFunc(t.People, func(p string) bool { return slices.Contains(people, p) }) {
			return t.Thread
		}
	}
	return ""
}

func (r *subjectRow) add(e inbox.Email, thread string) {
	entry := subjectThread{thread, e.ReceivedAt, participants(e)}
	if i := slices.IndexFunc(r.Threads, func(t subjectThread) bool { return t.Thread == thread }); i >= 0 {
		for _, p := range r.Threads[i].People {
			if !slices.Contains(entry.People, p) && len(entry.People) < subjectPeople {
				entry.People = append(entry.People, p)
			}
		}
		if r.Threads[i].At.After(entry.At) {
			entry.At = r.Threads[i].At
		}
		r.Threads = slices.Delete(r.Threads, i, i+1)
	}
	r.Threads = append(r.Threads, entry)
	r.Threads = r.Threads[max(len(r.Threads)-subjectThreads, 0):]
}

// participants are the people of a mail without the inbox itself, whom every mail here shares.
func participants(e inbox.Email) []string {
	var people []string
	lists := [][]inbox.Address{e.Content.From, e.Content.ReplyTo, e.Content.To, e.Content.CC}
	for _, list := range lists {
		for _, a := range list {
			address := strings.ToLower(a.Address)
			if address == "" || address == strings.ToLower(e.Envelope.To) || len(people) == subjectPeople {
				continue
			}
			sum := sha256.Sum256([]byte(address))
			if p := inbox.ShortDigest(sum)[:2*participantDigest]; !slices.Contains(people, p) {
				people = append(people, p)
			}
		}
	}
	return people
}

func normalID(id string) string { return strings.Trim(strings.TrimSpace(id), "<>") }

// trimReferences keeps the oldest and the newest of a long list, without repeats.
func trimReferences(list []string) []string {
	var refs []string
	for _, id := range list {
		if id = normalID(id); id != "" && !slices.Contains(refs, id) {
			refs = append(refs, id)
		}
		if len(refs) > 4*maxReferences { // a hostile list: the middle is of no use
			refs = slices.Delete(refs, 1, 2)
		}
	}
	if n := len(refs); n > maxReferences {
		refs = append(refs[:1], refs[n-maxReferences+1:]...)
	}
	return refs
}

//nolint:gochecknoglobals // constant table
var answerPrefixes = []string{"re", "aw", "sv", "vs", "r", "rif", "res", "antw", "odp", "fw", "fwd", "wg", "rv", "tr", "enc", "i", "回复", "答复", "转发"}

// baseSubject is a subject without the marks of answering and forwarding, with one space where there were several.
func baseSubject(s string) string {
	s = strings.ToLower(strings.Join(strings.FieldsFunc(s, unicode.IsSpace), " "))
	for range maxPrefixes {
		rest, ok := cutPrefix(s)
		if !ok {
			break
		}
		s = rest
	}
	return cutBytes(s, fitText)
}

// isAnswer tells an answer or forward from a new mail: machines send many mails of one subject that are no conversation.
func isAnswer(s string) bool {
	_, ok := cutPrefix(strings.ToLower(strings.TrimSpace(s)))
	return ok
}

// cutPrefix takes off one mark such as "re:", "fwd :", "re[2]:" in lower case.
func cutPrefix(s string) (string, bool) {
	i := strings.IndexAny(s, ":：")
	if i < 1 || i > 12 {
		return s, false
	}
	head := strings.TrimRight(strings.TrimSpace(s[:i]), "[](0123456789) ")
	if !slices.Contains(answerPrefixes, head) {
		return s, false
	}
	return strings.TrimSpace(strings.TrimLeft(s[i:], ":：")), true
}
