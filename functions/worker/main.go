// Command worker is the Lambda function that processes accepted mail from a queue, and what is due each minute.
package main

import (
	"fmt"
	"os"

	"github.com/buzon-mail/buzon/shared/app/worker"
	"github.com/buzon-mail/buzon/shared/config"
)

func main() {
	cfg, err := config.LoadWorker(os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
	function, err := worker.New(cfg, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	function.Start()
}
