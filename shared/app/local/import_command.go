package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/pipeline"
	"github.com/buzon-mail/buzon/shared/pipeline/parsing"
	"github.com/buzon-mail/buzon/shared/pipeline/reading"
)

type importCommand struct {
	Paths     []string `arg:"" name:"path" help:"Files (.eml, mbox) and folders (of such files, or Maildir)."`
	Inbox     string   `required:"" help:"Slug or address of the inbox."`
	Workspace string   `help:"Id, or the slugs ORGANIZATION/WORKSPACE; not needed when the inbox is named by its address."`
	Notify    bool     `help:"Tell webhooks of each mail, as of mail that comes now."`
}

// reportRefusals is how many refused mails are named.
const reportRefusals = 20

// Run imports. What was interrupted is repeated: what is there already is only counted.
func (c importCommand) Run(ctx context.Context, p *Process) error {
	files, err := mailFiles(c.Paths)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return apperr.New(apperr.Invalid, "", "There are no mails under these paths.",
			"Of a folder, files ending in .eml, .mbox and .mbx are taken, and Maildir folders; name other files one by one.")
	}
	take, done, err := p.importer(ctx)
	if err != nil {
		return err
	}
	run := &importRun{take: take, target: importTarget{c.Inbox, c.Workspace, c.Notify}, out: p.Stderr, bar: newBar(p.Stderr, files)}
	err = run.files(ctx, files)
	run.bar.clear()
	err = errors.Join(err, done())
	_, _ = fmt.Fprintf(p.Stdout, "Imported %d, known already %d, refused %d.\n", run.imported, run.known, run.refused)
	switch {
	case errors.Is(err, context.Canceled):
		return apperr.New(apperr.Unavailable, "", "The import was interrupted.", "Repeat the command: what is there already is only counted.")
	case err != nil:
		return err
	case run.refused > 0:
		return apperr.New(apperr.Conflict, "", "Not everything was taken.", "See above for what and why; the rest was imported.")
	}
	return nil
}

// importRun is one import.
type importRun struct {
	take                     takeMail
	target                   importTarget
	out                      io.Writer
	bar                      *bar
	imported, known, refused int64
}

func (r *importRun) files(ctx context.Context, files []mailFile) error {
	for _, f := range files {
		if err := r.file(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// file reads one. A file that can't be read is refused as a whole, but for the mails before the fault.
func (r *importRun) file(ctx context.Context, f mailFile) error {
	file, err := os.Open(f.path)
	if err != nil {
		r.refuse(f.path, 0, err.Error()) //nolint:leakederror // the terminal of whoever named the file
		return nil
	}
	defer file.Close() //nolint:errcheck // it was only read
	start := bufio.NewReaderSize(&counter{Reader: file, bar: r.bar}, 64<<10)
	format := inbox.FormatMail
	if head, _ := start.Peek(5); string(head) == "From " {
		format = inbox.FormatMbox
	}
	mails := parsing.Cut(start, format, pipeline.MaxRaw)
	for n := int64(0); ; n++ {
		raw, err := mails.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, reading.ErrTooLarge):
			r.refuse(f.path, n, "larger than 25 MiB")
		case err != nil:
			r.refuse(f.path, n, err.Error()) //nolint:leakederror // the same
			return nil
		default:
			if err := r.mail(ctx, f.path, n, raw); err != nil {
				return err
			}
		}
		r.bar.show(r.imported, r.known, r.refused)
	}
}

// mail hands one over. A refusal of the mail is noted; anything else ends the import, which can be repeated.
func (r *importRun) mail(ctx context.Context, path string, n int64, raw []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	reply, err := r.take(ctx, r.target, raw)
	var refusal *apperr.Error
	switch {
	case errors.As(err, &refusal) && (refusal.Code == "empty" || refusal.Code == "not_a_mail" || refusal.Code == "too_large"):
		r.refuse(path, n, refusal.Public)
	case err != nil:
		return err
	case reply.Duplicate:
		r.known++
	default:
		r.imported++
	}
	return nil
}

func (r *importRun) refuse(path string, n int64, why string) {
	r.refused++
	if r.refused > reportRefusals {
		return
	}
	r.bar.clear()
	_, _ = fmt.Fprintf(r.out, "%s, mail %d: %s\n", path, n+1, why)
	if r.refused == reportRefusals {
		_, _ = fmt.Fprintln(r.out, "Further refusals are only counted.")
	}
}

// counter tells the bar how much was read.
type counter struct {
	io.Reader
	bar *bar
}

// Read implements io.Reader.
func (c *counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.bar.done += int64(n)
	return n, err
}

// bar shows how far an import is: one line that is written over on a terminal, and elsewhere a line now and then. (The libraries for it
// bring six to eight modules, for ten lines.)
type bar struct {
	w           io.Writer
	terminal    bool
	done, total int64
	next        time.Time
	shown       bool
}

func newBar(w io.Writer, files []mailFile) *bar {
	b := &bar{w: w}
	for _, f := range files {
		b.total += f.size
	}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		b.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return b
}

func (b *bar) show(imported, known, refused int64) {
	now := time.Now()
	if now.Before(b.next) {
		return
	}
	b.next = now.Add(10 * time.Second)
	part := int64(0)
	if b.total > 0 {
		part = min(100*b.done/b.total, 100)
	}
	text := fmt.Sprintf("%3d%%  %d imported, %d known, %d refused", part, imported, known, refused)
	if !b.terminal {
		_, _ = fmt.Fprintln(b.w, text)
		return
	}
	b.next, b.shown = now.Add(100*time.Millisecond), true
	_, _ = fmt.Fprintf(b.w, "\r[%-25s] %s", strings.Repeat("#", int(part/4)), text)
}

// clear makes room for another line.
func (b *bar) clear() {
	if b.shown {
		_, _ = fmt.Fprint(b.w, "\r\x1b[K")
		b.shown = false
	}
}
