package local

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/seal"
)

// Names of the files in the data folder.
const (
	storeFile  = "buzon.db"
	blobFolder = "blobs"
	rootsFile  = "roots"     // root secrets of what travels for a day at most
	keysFile   = "keys.json" // signing keys of access tokens
	// permanentFile is the root secret of what clients keep for months, their ids and refresh tokens. It is not rotated: a
	// new one disconnects every client.
	permanentFile = "permanent"
	demoFile      = "demo.json"
	adminFile     = "admin.sock"
)

// prepare makes the data folder, for its owner only: it holds everybody's mail and the keys to it.
func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the data folder (BUZON_DATA_DIR): %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a folder needs its x bit
		return fmt.Errorf("close the data folder (BUZON_DATA_DIR) to others: %w", err)
	}
	return nil
}

// keyring reads the root secrets of a file, or makes them on first use.
func keyring(dir, file string, clock func() time.Time) (*seal.Keyring, error) {
	text, err := secret(filepath.Join(dir, file), func() ([]byte, error) {
		var b [32]byte
		if _, err := rand.Read(b[:]); err != nil {
			return nil, fmt.Errorf("random: %w", err)
		}
		return []byte("r1:" + base64.StdEncoding.EncodeToString(b[:]) + "\n"), nil
	})
	if err != nil {
		return nil, err
	}
	roots, err := seal.ParseRoots(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return seal.New(roots, seal.Options{Clock: clock, Rand: rand.Reader})
}

// signingKeys reads the key set of access tokens, or makes it on first use. The file is read again as keys rotate.
func signingKeys(dir string, clock func() time.Time) (*oauth.KeyRing, error) {
	load := func(context.Context) (*oauth.KeySet, error) {
		text, err := secret(filepath.Join(dir, keysFile), func() ([]byte, error) {
			set, err := oauth.NewKeySet(rand.Reader, clock())
			if err != nil {
				return nil, fmt.Errorf("new key set: %w", err)
			}
			return set.Secret()
		})
		if err != nil {
			return nil, err
		}
		set, err := oauth.ParseKeySet(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", keysFile, err)
		}
		return set, nil
	}
	if _, err := load(context.Background()); err != nil {
		return nil, err
	}
	return oauth.NewKeyRing(load, clock), nil
}

// secret reads a file that only its owner may read. When it is missing it is made: written whole under another name and
// linked into place, so that two processes end with one secret and a crash never leaves half of one.
func secret(path string, fresh func() ([]byte, error)) ([]byte, error) {
	text, err := os.ReadFile(path) //nolint:gosec // a fixed name in the data folder
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	if text, err = fresh(); err != nil {
		return nil, err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", filepath.Base(path), err)
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	_, err = temporary.Write(text)
	err = errors.Join(err, temporary.Sync(), temporary.Close())
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	if err := os.Link(temporary.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("keep %s: %w", filepath.Base(path), err)
	}
	return os.ReadFile(path) //nolint:gosec // a fixed name in the data folder
}
