// Command inbound is the Lambda function that takes mail that SES has received.
package main

import (
	"fmt"
	"os"

	"github.com/buzon-mail/buzon/shared/app/inbound"
	"github.com/buzon-mail/buzon/shared/config"
)

func main() {
	cfg, err := config.LoadInbound(os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, "inbound:", err)
		os.Exit(1)
	}
	function, err := inbound.New(cfg, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	function.Start()
}
