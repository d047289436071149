package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// chromium is a browser that starts: its program and what its environment needs.
type chromium struct {
	program string
	env     []string
}

// names are those that distributions and vendors give it, in the order in which they are tried.
func names() []string {
	return []string{"chromium", "chromium-browser", "google-chrome-stable", "google-chrome"}
}

// findChromium takes the machine's browser. Without one, root installs Debian's package; anybody else unpacks it, with the
// libraries that the machine lacks, into a folder. Both use the machine's own package sources and ask nothing.
func findChromium(ctx context.Context, folder string) (chromium, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return chromium{}, fmt.Errorf("chromium: %w", err)
	}
	var failed []error
	for _, name := range names() {
		if path, err := exec.LookPath(name); err == nil {
			c := chromium{program: path}
			if err = c.starts(ctx); err == nil {
				return c, nil
			}
			failed = append(failed, err) // Ubuntu has a chromium-browser that only asks for a snap
		}
	}
	if c := unpacked(folder); c.starts(ctx) == nil {
		return c, nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return chromium{}, errors.Join(append(failed, errors.New("no Chromium here and no apt-get to get one: install Chromium or Chrome, and put it on PATH"))...)
	}
	c := chromium{program: "/usr/bin/chromium"}
	if os.Geteuid() == 0 {
		err = install(ctx)
	} else {
		err = unpack(ctx, folder)
		c = unpacked(folder)
	}
	if err == nil {
		err = c.starts(ctx)
	}
	if err != nil {
		failed = append(failed, fmt.Errorf("%w\nInstall Chromium or Chrome, and put it on PATH (Ubuntu has no package of Chromium that is not a snap)", err))
		return chromium{}, errors.Join(failed...)
	}
	return c, nil
}

// starts tells whether it is a browser whose libraries are all there.
func (c chromium) starts(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.program, "--version") //nolint:gosec // found or installed here
	cmd.Env = append(os.Environ(), c.env...)
	out, err := cmd.CombinedOutput()
	if err == nil && regexp.MustCompile(`Chrom(e|ium)\D+\d+\.`).Match(out) {
		return nil
	}
	return fmt.Errorf("%s does not start: %w\n%s", c.program, err, out)
}

// install is what an administrator would type.
func install(ctx context.Context) error {
	wait := []string{"-o", "DPkg::Lock::Timeout=120"} // somebody else may be installing
	if err := apt(ctx, ".", wait, "update"); err != nil {
		return err
	}
	return apt(ctx, ".", wait, "install", "--yes", "--no-install-recommends", "chromium")
}

// unpacked is the browser below a folder, whether it is there or not.
func unpacked(folder string) chromium {
	root := filepath.Join(folder, "root")
	library := filepath.Join(root, "usr", "lib", "chromium")
	libraries := []string{library}
	for _, depth := range []string{"lib", "lib/*", "usr/lib/*", "usr/lib/*/*"} { // some packages have a folder of their own
		found, err := filepath.Glob(filepath.Join(root, depth, "lib*.so*"))
		if err != nil {
			continue // the patterns are right
		}
		for _, file := range found {
			if dir := filepath.Dir(file); !slices.Contains(libraries, dir) {
				libraries = append(libraries, dir)
			}
		}
	}
	env := []string{
		"LD_LIBRARY_PATH=" + strings.Join(libraries, ":"),
		"XDG_DATA_HOME=" + filepath.Join(root, "usr", "share"), // fontconfig looks for fonts there
	}
	// A machine without any font has no configuration of fontconfig either.
	if _, err := os.Stat("/etc/fonts/fonts.conf"); err != nil {
		env = append(env, "FONTCONFIG_PATH="+filepath.Join(root, "etc", "fonts"))
	}
	return chromium{program: filepath.Join(library, "chromium"), env: env}
}

// unpack lays the package and what the machine lacks of its dependencies below a folder. apt keeps its lists there too: the
// machine's own may be missing, and only root can fetch them.
func unpack(ctx context.Context, folder string) error {
	debs, lists, cache := filepath.Join(folder, "debs"), filepath.Join(folder, "lists"), filepath.Join(folder, "cache")
	for _, dir := range []string{debs, filepath.Join(lists, "partial"), filepath.Join(cache, "archives", "partial"), filepath.Join(folder, "root")} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("chromium: %w", err)
		}
	}
	own := []string{"-o", "Dir::State::lists=" + lists, "-o", "Dir::Cache=" + cache, "-o", "Debug::NoLocking=1"}
	if err := apt(ctx, debs, own, "update"); err != nil {
		return err
	}
	plan, err := aptOutput(ctx, debs, own, "--simulate", "install", "--no-install-recommends", "chromium")
	if err != nil {
		return err
	}
	wanted := packages(plan)
	if len(wanted) == 0 {
		return fmt.Errorf("chromium: apt-get would install nothing:\n%s", plan)
	}
	if err := apt(ctx, debs, own, append([]string{"download"}, wanted...)...); err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return fmt.Errorf("chromium: %w", err)
	}
	for _, archive := range archives {
		cmd := exec.CommandContext(ctx, "dpkg-deb", "--extract", archive, filepath.Join(folder, "root")) //nolint:gosec // what apt-get downloaded
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("unpack %s: %w\n%s", filepath.Base(archive), err, out)
		}
	}
	if err := os.RemoveAll(debs); err != nil {
		return fmt.Errorf("chromium: %w", err)
	}
	return nil
}

// packages reads a simulation: "Inst NAME (VERSION ...)" or "Inst NAME [OLD] (VERSION ...)", in versions that are exact.
func packages(plan string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^Inst (\S+) (?:\[\S+\] )?\((\S+) `).FindAllStringSubmatch(plan, -1) {
		all = append(all, m[1]+"="+m[2])
	}
	return all
}

func apt(ctx context.Context, dir string, options []string, args ...string) error {
	_, err := aptOutput(ctx, dir, options, args...)
	return err
}

func aptOutput(ctx context.Context, dir string, options []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "apt-get", append(append([]string{"-q", "-o", "Acquire::Retries=3"}, options...), args...)...) //nolint:gosec // words of this file
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
