// Command local is buzon: the whole service in one process, and its command line.
package main

import (
	"context"
	"os"

	"github.com/buzon-mail/buzon/shared/app/local"
)

// version is written by the linker.
var version string //nolint:gochecknoglobals // set by -ldflags -X

func main() {
	os.Exit(local.Main(context.Background(), local.Process{
		Args: os.Args[1:], Getenv: os.Getenv, Stdout: os.Stdout, Stderr: os.Stderr, Build: version, Program: os.Args[0],
	}))
}
