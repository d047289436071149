package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/tiktoken-go/tokenizer"

	"github.com/buzon-mail/buzon/internal/tokens"
)

// cost prints what the list of tools costs a model's context: the owner's whole list of revision 2026-07-28, in tokens of the real
// vocabulary. The estimate by which go test refuses a list over the budget must lie above it.
func cost(out io.Writer, w *world) error {
	p, err := newPoster(w.api, w.calls()["tools/list"])
	if err != nil {
		return err
	}
	var reply struct {
		Result struct{ Tools json.RawMessage }
	}
	if err := json.Unmarshal(p.answer(), &reply); err != nil {
		return err
	}
	var tools []struct{ Description, InputSchema json.RawMessage }
	if err := json.Unmarshal(reply.Result.Tools, &tools); err != nil || len(tools) == 0 {
		return fmt.Errorf("tools/list has no tools: %w", err)
	}
	codec, err := tokenizer.Get(tokenizer.Cl100kBase)
	if err != nil {
		return err
	}
	count := func(text string) int {
		n, failed := codec.Count(text)
		if failed != nil {
			err = failed
		}
		return n
	}
	all, descriptions, inputs := count(string(reply.Result.Tools)), 0, 0
	for _, t := range tools {
		descriptions += count(string(t.Description))
		inputs += count(string(t.InputSchema))
	}
	if err != nil {
		return err
	}
	whole := line{cells: []string{fmt.Sprintf("%d tools, %d bytes", len(tools), len(reply.Result.Tools)), fmt.Sprint(all)}}
	whole.judge(float64(all), budget{what: "tokens", limit: tokens.ListBudget})
	guess := tokens.Estimate(string(reply.Result.Tools))
	estimate := line{cells: []string{"the estimate of go test", fmt.Sprint(guess)}}
	estimate.judge(float64(guess), budget{what: "tokens", limit: float64(all), least: true})
	table(out, "What tools/list costs a model, whole catalogue of an owner, cl100k tokens", []string{"of", "tokens"}, []line{
		whole, {cells: []string{"descriptions", fmt.Sprint(descriptions)}}, {cells: []string{"input schemas", fmt.Sprint(inputs)}}, estimate,
	})
	return nil
}
