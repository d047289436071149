// Command api is the Lambda function that answers MCP and REST behind a function URL.
package main

import (
	"fmt"
	"os"

	"github.com/buzon-mail/buzon/shared/app/api"
	"github.com/buzon-mail/buzon/shared/config"
)

// version is written by the linker.
var version string //nolint:gochecknoglobals // set by -ldflags -X

func main() {
	cfg, err := config.LoadAPI(os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
	function, err := api.New(cfg, os.Stderr, version)
	if err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
	function.Start()
}
