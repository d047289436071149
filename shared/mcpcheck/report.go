package mcpcheck

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// format names the shape of the JSON document; members may be added under the same name, never changed.
const format = "mcpcheck/1"

// Status is the outcome of one check.
type Status string

// The outcomes. A warning is a departure that clients can live with; it does not fail a run.
const (
	Pass    Status = "pass"
	Warn    Status = "warn"
	Fail    Status = "fail"
	Skipped Status = "skipped"
)

// Report is everything that was found, in a fixed order. Its JSON form is stable.
type Report struct {
	Format   string   `json:"format"`
	URL      string   `json:"url"`
	Token    bool     `json:"token"`              // whether one was given
	Revision string   `json:"revision"`           // that was checked against
	Server   string   `json:"server"`             // what it calls itself
	Versions []string `json:"supported_versions"` // what it says that it serves
	Requests int      `json:"requests"`
	Summary  Summary  `json:"summary"`
	Results  []Result `json:"results"`
}

// Summary counts outcomes.
type Summary struct {
	Pass    int `json:"pass"`
	Warn    int `json:"warn"`
	Fail    int `json:"fail"`
	Skipped int `json:"skipped"`
}

// Result is one check.
type Result struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Point  int    `json:"point,omitempty"` // of the eight-point list of the 2026-07-28 guide; 0: a check beside it
	Status Status `json:"status"`
	Sent   string `json:"sent"`
	Got    string `json:"got"`
	Spec   string `json:"spec"` // what it says, in our words
	Page   string `json:"page"` // where
	Mend   string `json:"mend,omitempty"`
}

func (s *Summary) count(status Status) {
	switch status {
	case Pass:
		s.Pass++
	case Warn:
		s.Warn++
	case Fail:
		s.Fail++
	default:
		s.Skipped++
	}
}

// OK reports whether nothing failed.
func (r *Report) OK() bool { return r.Summary.Fail == 0 }

// WriteJSON writes the report as one JSON document.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes the report for a person. verbose says of passed checks too what the specification demands.
func (r *Report) WriteText(w io.Writer, verbose bool) error {
	var b strings.Builder
	token := "without a token"
	if r.Token {
		token = "with a token"
	}
	fmt.Fprintf(&b, "%s\n", r.URL)
	if r.Server != "" {
		fmt.Fprintf(&b, "%s, serves %s\n", r.Server, strings.Join(r.Versions, ", "))
	}
	fmt.Fprintf(&b, "checked against MCP %s, %s, %d requests\n\n", r.Revision, token, r.Requests)
	for i := range r.Results {
		r.Results[i].write(&b, verbose)
	}
	fmt.Fprintf(&b, "\n%d passed, %d warned, %d failed, %d skipped\n", r.Summary.Pass, r.Summary.Warn, r.Summary.Fail, r.Summary.Skipped)
	_, err := io.WriteString(w, b.String())
	return err
}

func (n *Result) write(b *strings.Builder, verbose bool) {
	mark := map[Status]string{Pass: "pass", Warn: "WARN", Fail: "FAIL", Skipped: "skip"}[n.Status]
	title := n.Title
	if n.Point > 0 {
		title = fmt.Sprintf("%s [point %d]", title, n.Point)
	}
	fmt.Fprintf(b, "%s  %-28s %s\n", mark, n.ID, title)
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(b, "        %-5s %s\n", name, text)
		}
	}
	if n.Status == Skipped {
		line("why", n.Got)
	} else {
		line("sent", n.Sent)
		line("got", n.Got)
	}
	if n.Status == Fail || n.Status == Warn || verbose {
		line("spec", n.Spec+" "+n.Page)
	}
	line("mend", n.Mend)
}
