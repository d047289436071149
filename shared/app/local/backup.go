package local

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Backup writes a tar archive of the whole service: the store as it is at one moment, every blob, the secrets. The store
// comes first: blobs are written before the rows that name them, so every row of the snapshot finds its blob. Unpacked into
// an empty folder it is a data folder.
func (a *admin) Backup(ctx context.Context, w io.Writer) error {
	archive := tar.NewWriter(w)
	if err := a.backupStore(ctx, archive); err != nil {
		return err
	}
	for _, name := range []string{rootsFile, permanentFile, keysFile} {
		if err := addFile(archive, filepath.Join(a.dir, name), name); err != nil {
			return err
		}
	}
	root := filepath.Join(a.dir, blobFolder)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		name, err := filepath.Rel(a.dir, path)
		if err != nil || !entry.Type().IsRegular() || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		err = addFile(archive, path, filepath.ToSlash(name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil // purged meanwhile
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("back up the blobs: %w", err)
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("finish the archive: %w", err)
	}
	return nil
}

// backupStore goes through a file, for tar wants the size first.
func (a *admin) backupStore(ctx context.Context, archive *tar.Writer) error {
	snapshot, err := os.CreateTemp(a.dir, ".backup-*")
	if err != nil {
		return fmt.Errorf("make the snapshot: %w", err)
	}
	defer func() {
		_ = snapshot.Close()
		_ = os.Remove(snapshot.Name())
	}()
	if err := a.engine.Backup(ctx, snapshot); err != nil {
		return fmt.Errorf("snapshot the store: %w", err)
	}
	return addFile(archive, snapshot.Name(), storeFile)
}

func addFile(archive *tar.Writer, path, name string) error {
	f, err := os.Open(path) //nolint:gosec // a file of the data folder
	if err != nil {
		return fmt.Errorf("back up %s: %w", name, err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("back up %s: %w", name, err)
	}
	header := &tar.Header{
		Name: name, Mode: 0o600, Size: info.Size(), ModTime: info.ModTime(), Typeflag: tar.TypeReg, Format: tar.FormatPAX,
	}
	if err := archive.WriteHeader(header); err != nil {
		return fmt.Errorf("back up %s: %w", name, err)
	}
	if _, err := io.CopyN(archive, f, info.Size()); err != nil {
		return fmt.Errorf("back up %s: %w", name, err)
	}
	return nil
}
