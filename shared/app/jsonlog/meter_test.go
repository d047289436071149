package jsonlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
)

// metered is a logger with metrics, driven at times of the test's own.
type metered struct {
	*handler
	out bytes.Buffer
	at  time.Time
}

func newMetered() *metered {
	m := &metered{at: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	m.handler = newHandler(&m.out, Allowed, &meter{function: "buzon-ApiFunction-1A2B"})
	return m
}

func (m *metered) log(t *testing.T, message string, attrs ...slog.Attr) {
	t.Helper()
	if err := m.HandleAttrs(t.Context(), m.at, slog.LevelInfo, message, attrs); err != nil {
		t.Fatal(err)
	}
}

func (m *metered) request(t *testing.T, method string, status, us int, more ...slog.Attr) {
	t.Helper()
	m.log(t, "mcp request", append(more, slog.String("mcp.method.name", method), slog.Int("http.response.status_code", status), slog.Int64("us", int64(us)))...)
}

// metrics are the lines of metrics, each checked against the published rules of the embedded metric format.
func (m *metered) metrics(t *testing.T) (lines []map[string]any) {
	t.Helper()
	for text := range strings.SplitSeq(strings.TrimSpace(m.out.String()), "\n") {
		var root map[string]any
		if err := json.Unmarshal([]byte(text), &root); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if root["_aws"] == nil {
			continue
		}
		if fault := emfFault([]byte(text)); fault != "" {
			t.Errorf("%s: %s", text, fault)
		}
		lines = append(lines, root)
	}
	return lines
}

// emfFault holds a line against "Specification: Embedded metric format" (CloudWatch user guide): the structure that its JSON schema
// requires, no member that it does not know, and that every name stands for a member of the root of the right type.
func emfFault(text []byte) string {
	var doc struct {
		AWS json.RawMessage `json:"_aws"`
	}
	var meta struct {
		Timestamp         *int64
		CloudWatchMetrics []struct {
			Namespace  string
			Dimensions [][]string
			Metrics    []struct{ Name, Unit string }
		}
	}
	var root map[string]any
	if json.Unmarshal(text, &doc) != nil || json.Unmarshal(text, &root) != nil {
		return "not an object"
	}
	strict := json.NewDecoder(bytes.NewReader(doc.AWS))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&meta); err != nil || meta.Timestamp == nil || *meta.Timestamp <= 0 || len(meta.CloudWatchMetrics) == 0 {
		return fmt.Sprintf("_aws: %v", err)
	}
	units := []string{"Count", "Microseconds"}
	for _, d := range meta.CloudWatchMetrics {
		if len(d.Namespace) < 1 || len(d.Namespace) > 1024 || len(d.Dimensions) == 0 || len(d.Metrics) == 0 || len(d.Metrics) > 100 {
			return "directive out of bounds"
		}
		for _, set := range d.Dimensions {
			if len(set) > 30 {
				return "more than 30 dimensions"
			}
			for _, name := range set {
				if v, ok := root[name].(string); !ok || v == "" || len(v) > 1024 || len(name) > 250 {
					return "dimension " + name + " is no text of the root"
				}
			}
		}
		for _, metric := range d.Metrics {
			if len(metric.Name) < 1 || len(metric.Name) > 1024 || !slices.Contains(units, metric.Unit) {
				return "metric " + metric.Name + " in " + metric.Unit
			}
			switch v := root[metric.Name].(type) {
			case float64:
			case []any:
				if len(v) == 0 || len(v) > 100 {
					return fmt.Sprintf("%d values", len(v))
				}
				for _, n := range v {
					if _, ok := n.(float64); !ok {
						return "a value that is no number"
					}
				}
			default:
				return "metric " + metric.Name + " is no number of the root"
			}
		}
	}
	return ""
}

func TestFormatIsJudged(t *testing.T) {
	good := `{"_aws":{"Timestamp":1,"CloudWatchMetrics":[{"Namespace":"N","Dimensions":[["D"]],"Metrics":[{"Name":"M","Unit":"Count"}]}]},"D":"d","M":[1,2]}`
	if fault := emfFault([]byte(good)); fault != "" {
		t.Fatal(fault)
	}
	for _, change := range [][2]string{
		{`"Timestamp":1,`, ``}, {`"D":"d"`, `"E":"d"`}, {`"D":"d"`, `"D":7`}, {`[1,2]`, `[]`}, {`[1,2]`, `"x"`}, {`[1,2]`, `[` + strings.Repeat("1,", 100) + `1]`},
		{`"Count"`, `"Seconds per day"`}, {`"Namespace":"N",`, ``}, {`[["D"]]`, `[]`}, {`"Namespace"`, `"More":1,"Namespace"`}, {`"Name":"M"`, `"Name":"X"`},
	} {
		if emfFault([]byte(strings.Replace(good, change[0], change[1], 1))) == "" {
			t.Errorf("%v passes", change)
		}
	}
}

func TestMetrics(t *testing.T) {
	m := newMetered()
	m.request(t, "tools/call", 200, 900) // after a pause: at once
	if got := m.metrics(t); len(got) != 1 || got[0]["Requests"] != 1.0 || got[0]["Method"] != "tools/call" || got[0]["AuthFailures"] != nil {
		t.Fatalf("the first: %v", got)
	}
	m.out.Reset()
	m.request(t, "tools/call", 200, 100, slog.Bool("is_error", true))
	m.request(t, "tools/call", 200, 300, slog.String("error.type", "internal"))
	m.request(t, "tools/call", 503, 200, slog.String("error.type", "unavailable"))
	m.request(t, "tools/list", 401, 50, slog.String("error.type", "unauthenticated"))
	m.request(t, "tools/list", 400, 50, slog.String("error.type", "invalid"))
	m.log(t, "request", slog.String("door", "rest"), slog.Int("http.response.status_code", 500), slog.Int64("us", 70))
	m.log(t, "pipeline: mail", slog.String("outcome", "processed"), slog.Int64("us", 5))
	m.log(t, "pipeline: mail", slog.String("outcome", "failed"))
	m.log(t, "mail taken", slog.Int("recipients", 2))
	m.log(t, "recipients unknown", slog.Int("recipients_unknown", 3))
	m.log(t, "senders refused", slog.Int("senders_refused", 2))
	m.log(t, "job not finished", slog.String("job", "x"))
	m.log(t, "webhook: attempt", slog.String("outcome", "succeeded"))
	m.log(t, "webhook: attempt", slog.String("outcome", "pending"))
	m.log(t, "swept expired rows", slog.Int("rows", 1))
	if got := m.metrics(t); len(got) != 0 {
		t.Fatalf("within the second: %v", got)
	}
	m.at = m.at.Add(time.Second)
	m.request(t, "ping", 200, 1)
	want := []string{
		`tools/call Requests=3 Faults=2 ToolErrors=1 AuthFailures=<nil> Latency=[100 300 200]`,
		`tools/list Requests=2 Faults=<nil> ToolErrors=<nil> AuthFailures=1 Latency=[50 50]`,
		`rest Requests=1 Faults=1 ToolErrors=<nil> AuthFailures=<nil> Latency=[70]`,
		`ping Requests=1 Faults=<nil> ToolErrors=<nil> AuthFailures=<nil> Latency=[1]`,
		`MailsTaken=1 MailsProcessed=2 MailsFailed=1 JobsUnfinished=1 UnknownRecipients=3 RefusedSenders=2 Deliveries=2 DeliveriesFailed=1`,
	}
	var got []string
	for _, l := range m.metrics(t) {
		if l["FunctionName"] != "buzon-ApiFunction-1A2B" {
			t.Errorf("%v", l)
		}
		text := ""
		if l["Method"] != nil {
			text = fmt.Sprint(l["Method"])
			for _, name := range []string{"Requests", "Faults", "ToolErrors", "AuthFailures", "Latency"} {
				text += fmt.Sprintf(" %s=%v", name, l[name])
			}
		} else {
			for c := range counters {
				text += fmt.Sprintf(" %s=%v", c.name(), l[c.name()])
			}
		}
		got = append(got, strings.TrimSpace(text))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestMetricsUnderLoad: an array never holds more than the format lets it, nothing is lost between two lines, and a busy
// second costs few lines.
func TestMetricsUnderLoad(t *testing.T) {
	m := newMetered()
	for range 1000 {
		m.at = m.at.Add(time.Millisecond)
		m.request(t, "tools/call", 200, 7)
	}
	m.at = m.at.Add(time.Second)
	m.request(t, "tools/call", 200, 7)
	lines, sum := m.metrics(t), 0.0
	for _, l := range lines {
		n, _ := l["Requests"].(float64)
		values, _ := l["Latency"].([]any)
		if float64(len(values)) != n {
			t.Errorf("%v requests, %d latencies", n, len(values))
		}
		sum += n
	}
	if sum != 1001 || len(lines) > 13 {
		t.Errorf("%v requests in %d lines", sum, len(lines))
	}
}

// TestDimensionsAreBounded: whatever a caller sends, there are only so many metrics to pay for.
func TestDimensionsAreBounded(t *testing.T) {
	m := newMetered()
	for i := range 500 {
		m.request(t, fmt.Sprint("attack/", i), 404, 1)
		m.log(t, "request", slog.String("door", fmt.Sprint("door", i)))
	}
	m.request(t, `evil","FunctionName":"x`, 404, 1)
	m.at = m.at.Add(time.Second)
	m.request(t, "", 404, 1)
	methods := map[any]bool{}
	for _, l := range m.metrics(t) {
		methods[l["Method"]] = true
	}
	if len(methods) != 2 || !methods["other"] || !methods["none"] {
		t.Errorf("methods %v", methods)
	}
}

// TestOnlyAllowedFields: a field that is not on the list is left out of its line and counted, by either way into the log.
func TestOnlyAllowedFields(t *testing.T) {
	for name, log := range map[string]func(h *handler, attrs []slog.Attr) error{
		"lent": func(h *handler, attrs []slog.Attr) error {
			return h.HandleAttrs(t.Context(), time.Unix(1, 0), slog.LevelInfo, "x", attrs)
		},
		"record": func(h *handler, attrs []slog.Attr) error {
			r := slog.NewRecord(time.Unix(1, 0), slog.LevelInfo, "x", 0)
			r.AddAttrs(attrs...)
			return h.Handle(t.Context(), r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			h := newHandler(&out, Allowed, nil)
			attrs := []slog.Attr{
				slog.String("authorization", "Bearer canary"), slog.Int("attempt", 1), slog.String("subject", "canary"), slog.Any("error", "é"),
				slog.Group("body", slog.String("email", "canary")), slog.String("", "canary"),
			}
			before := slices.Clone(attrs)
			if err := log(h, attrs); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); strings.Contains(got, "canary") || !strings.Contains(got, `"attempt":1,"error":"é","dropped_fields":4}`) {
				t.Errorf("%s", got)
			}
			if !slices.EqualFunc(attrs, before, slog.Attr.Equal) {
				t.Error("what was lent has changed")
			}
		})
	}
}

func TestForFunction(t *testing.T) {
	var out bytes.Buffer
	ForFunction(&out, "").Info("mcp request", "mcp.method.name", "ping")
	if strings.Contains(out.String(), "_aws") {
		t.Error("metrics without a function")
	}
	out.Reset()
	ForFunction(&out, `a"b`).Info("mcp request", "mcp.method.name", "ping")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || emfFault([]byte(lines[1])) != "" || !strings.Contains(lines[1], `"FunctionName":"unknown"`) {
		t.Errorf("%s", out.String())
	}
}
