package jsonlog

import (
	"log/slog"
	"strconv"
	"time"
)

const (
	// namespace is that of the metrics in CloudWatch (template.yaml, docs/deploy.md).
	namespace = "Buzon"
	// flushEvery is how long metrics are added up at most while requests come. An instance that is idle is frozen, and may never wake
	// again, so what comes after a pause is written at once.
	flushEvery = time.Second
	// maxValues is what the embedded metric format lets an array hold.
	maxValues = 100
)

// meter makes metrics of the log's own lines and writes them, in CloudWatch's embedded metric format, into the same log: what the lines
// say and what the metrics count can't differ, and nothing is sent anywhere else. Lines are added up for a second. Dimensions are
// bounded: the function, and the method out of a closed list; never a name that a caller chose.
type meter struct {
	function string
	methods  []series // the order of the first seen; their number is bounded by method
	counts   [counters]int64
	any      bool
	last     time.Time // when it was last written
}

// series is the requests of one method since the last flush.
type series struct {
	method                                     string
	requests, faults, toolErrors, authFailures int64
	latency                                    []int64 // microseconds, at most maxValues
}

// counter is a metric without a method.
type counter int

const (
	mailsTaken counter = iota
	mailsProcessed
	mailsFailed
	jobsUnfinished
	unknownRecipients
	refusedSenders
	deliveries
	deliveriesFailed
	counters
)

// name is the metric's.
func (c counter) name() string {
	return [counters]string{
		"MailsTaken", "MailsProcessed", "MailsFailed", "JobsUnfinished", "UnknownRecipients", "RefusedSenders", "Deliveries", "DeliveriesFailed",
	}[c]
}

// line is what the metrics need of a log line.
type line struct {
	method, door, kind, outcome  string
	status, us, unknown, refused int64
	isError                      bool
}

func (l *line) read(a *slog.Attr) {
	switch a.Key {
	case "mcp.method.name":
		l.method = a.Value.String()
	case "door":
		l.door = a.Value.String()
	case "error.type":
		l.kind = a.Value.String()
	case "outcome":
		l.outcome = a.Value.String()
	case "http.response.status_code":
		l.status = integer(a.Value)
	case "us":
		l.us = integer(a.Value)
	case "recipients_unknown":
		l.unknown = integer(a.Value)
	case "senders_refused":
		l.refused = integer(a.Value)
	case "is_error":
		l.isError = a.Value.Kind() == slog.KindBool && a.Value.Bool()
	}
}

func integer(v slog.Value) int64 {
	if v.Kind() == slog.KindInt64 {
		return v.Int64()
	}
	return 0
}

// add counts a line, and reports whether it is time to write. The writer's lock is held, as for everything here.
func (m *meter) add(at time.Time, message string, attrs []slog.Attr) (due bool) {
	switch message {
	case "mcp request", "request", "mail taken", "pipeline: mail", "job not finished", "pipeline: job not finished", "recipients unknown", "senders refused", "webhook: attempt":
	default:
		return false
	}
	var l line
	for i := range attrs {
		l.read(&attrs[i])
	}
	switch message {
	case "mcp request":
		m.request(method(l.method), &l)
	case "request":
		m.request(method(l.door), &l)
	case "mail taken":
		m.counts[mailsTaken]++
	case "pipeline: mail":
		m.counts[mailsProcessed]++
		if l.outcome == "failed" {
			m.counts[mailsFailed]++
		}
	case "recipients unknown":
		m.counts[unknownRecipients] += l.unknown
	case "senders refused":
		m.counts[refusedSenders] += l.refused
	case "webhook: attempt":
		m.counts[deliveries]++
		if l.outcome != "succeeded" {
			m.counts[deliveriesFailed]++
		}
	default:
		m.counts[jobsUnfinished]++
	}
	m.any = true
	return at.Sub(m.last) >= flushEvery || at.Before(m.last) || m.full()
}

func (m *meter) request(name string, l *line) {
	s := m.of(name)
	s.requests++
	switch {
	case l.status == 401:
		s.authFailures++
	case l.status >= 500, l.kind == "internal", l.kind == "unavailable": // the older revisions of MCP answer these with 200
		s.faults++
	}
	if l.isError {
		s.toolErrors++
	}
	s.latency = append(s.latency, l.us)
}

func (m *meter) of(name string) *series {
	for i := range m.methods {
		if m.methods[i].method == name {
			return &m.methods[i]
		}
	}
	m.methods = append(m.methods, series{method: name})
	return &m.methods[len(m.methods)-1]
}

func (m *meter) full() bool {
	for i := range m.methods {
		if len(m.methods[i].latency) >= maxValues {
			return true
		}
	}
	return false
}

// method is a name out of a closed list: those that MCP has, the kinds of message without one, and our own doors. Anything else, as a
// method that a later protocol brings and nobody entered here, is other.
func method(name string) string {
	switch name {
	case "initialize", "ping", "server/discover", "tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read",
		"prompts/list", "prompts/get", "completion/complete", "tasks/get", "tasks/update", "tasks/cancel", "logging/setLevel",
		"resources/subscribe", "resources/unsubscribe", "notification", "response",
		"rest", "oauth", "metadata", "download":
		return name
	case "", "unknown":
		return "none" // no message of MCP, or no path of ours
	}
	return "other"
}

// render appends everything that was counted since the last time, a line for each method and one for what has none, and forgets it.
func (m *meter) render(b []byte, at time.Time) []byte {
	if !m.any {
		return b
	}
	for i := range m.methods {
		s := &m.methods[i]
		if s.requests > 0 {
			b = m.renderSeries(b, at, s)
		}
		*s = series{method: s.method, latency: s.latency[:0]}
	}
	b = m.renderCounts(b, at)
	m.counts, m.any, m.last = [counters]int64{}, false, at
	return b
}

// value is one metric of a line.
type value struct {
	name string
	n    int64
}

func (m *meter) renderSeries(b []byte, at time.Time, s *series) []byte {
	// What did not happen is no metric: CloudWatch charges for each one by the month.
	list := []value{{"Requests", s.requests}}
	for _, v := range []value{{"Faults", s.faults}, {"ToolErrors", s.toolErrors}, {"AuthFailures", s.authFailures}} {
		if v.n > 0 {
			list = append(list, v)
		}
	}
	b = m.head(b, at)
	b = appendDirective(b, `["FunctionName"]`, list, "Count")
	b = append(b, ',')
	b = appendDirective(b, `["FunctionName","Method"]`, []value{{name: "Latency"}}, "Microseconds")
	b = append(b, `]},"FunctionName":`...)
	b = append(appendQuoted(b, m.function), `,"Method":`...)
	b = appendValues(appendQuoted(b, s.method), list)
	b = append(b, `,"Latency":[`...)
	for i, us := range s.latency {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, us, 10)
	}
	return append(b, "]}\n"...)
}

func (m *meter) renderCounts(b []byte, at time.Time) []byte {
	var list []value
	for i, n := range m.counts {
		if n > 0 {
			list = append(list, value{counter(i).name(), n})
		}
	}
	if len(list) == 0 {
		return b
	}
	b = appendDirective(m.head(b, at), `["FunctionName"]`, list, "Count")
	b = append(b, `]},"FunctionName":`...)
	return append(appendValues(appendQuoted(b, m.function), list), "}\n"...)
}

// head opens a line up to its list of directives.
func (m *meter) head(b []byte, at time.Time) []byte {
	b = append(b, `{"time":"`...)
	b = at.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","level":"INFO","msg":"metrics","_aws":{"Timestamp":`...)
	b = strconv.AppendInt(b, at.UnixMilli(), 10)
	return append(b, `,"CloudWatchMetrics":[`...)
}

func appendDirective(b []byte, dimensions string, metrics []value, unit string) []byte {
	b = append(b, `{"Namespace":"`+namespace+`","Dimensions":[`...)
	b = append(append(b, dimensions...), `],"Metrics":[`...)
	for i, v := range metrics {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"Name":"`...)
		b = append(append(b, v.name...), `","Unit":"`...)
		b = append(append(b, unit...), `"}`...)
	}
	return append(b, "]}"...)
}

func appendValues(b []byte, list []value) []byte {
	for _, v := range list {
		b = append(append(append(b, `,"`...), v.name...), `":`...)
		b = strconv.AppendInt(b, v.n, 10)
	}
	return b
}

// appendQuoted takes a name that Lambda gave or this file has; what would need an escape is left out.
func appendQuoted(b []byte, s string) []byte {
	if out, ok := appendText(b, s); ok {
		return out
	}
	return append(b, `"unknown"`...)
}
