package outmail

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// Folder is an Outlet that sends nothing: each message is an .eml file for a person, or a test, to look at. A message that is sent twice
// is one file.
type Folder struct{ path string }

var _ Outlet = (*Folder)(nil)

// NewFolder makes the folder, for its owner alone.
func NewFolder(path string) (*Folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of outgoing mail: %w", err)
	}
	if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // a folder needs x
		return nil, fmt.Errorf("close %s to others: %w", path, err)
	}
	return &Folder{path}, nil
}

// Send implements Outlet: a file under another name, synced, renamed into place.
func (f *Folder) Send(ctx context.Context, m Message) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("outmail: folder: %w", err)
	}
	b, err := m.Bytes(true)
	if err != nil {
		return err
	}
	to := sha256.Sum256([]byte(strings.ToLower(m.Recipient)))
	name := m.ID + "-" + hex.EncodeToString(to[:4]) + ".eml"
	b = append([]byte("X-Buzon-Envelope-To: "+m.Recipient+crlf), b...)
	if err := f.write(name, b); err != nil {
		return apperr.New(apperr.Unavailable, "outbox", "The message can't be written now.").Because(err)
	}
	return nil
}

func (f *Folder) write(name string, b []byte) (err error) {
	t, err := os.CreateTemp(f.path, ".new-") // 0600
	if err != nil {
		return fmt.Errorf("make a file of outgoing mail: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(t.Name())
		}
	}()
	_, err = t.Write(b)
	if err = errors.Join(err, t.Sync(), t.Close()); err != nil {
		return fmt.Errorf("write outgoing mail: %w", err)
	}
	if err := os.Rename(t.Name(), filepath.Join(f.path, name)); err != nil {
		return fmt.Errorf("name outgoing mail: %w", err)
	}
	return nil
}
