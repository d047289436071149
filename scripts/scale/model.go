package main

import (
	"cmp"
	"maps"
	"slices"
)

func (u usage) plus(v usage) usage {
	by := maps.Clone(u.by)
	if by == nil {
		by = map[string]float64{}
	}
	for k, n := range v.by {
		by[k] += n
	}
	return usage{u.trips + v.trips, u.reads + v.reads, u.writes + v.writes, u.gets + v.gets, u.puts + v.puts, u.sends + v.sends, by}
}

func (u usage) over(n float64) usage {
	by := map[string]float64{}
	for k, v := range u.by {
		by[k] = v / n
	}
	return usage{u.trips / n, u.reads / n, u.writes / n, u.gets / n, u.puts / n, u.sends / n, by}
}

// waits is what the work waits for AWS, one request after the other.
func (u usage) waits() float64 {
	return u.trips*tripMS + u.gets*getMS + u.puts*putMS + u.sends*sendMS
}

func (u usage) usd() float64 {
	return u.reads*dynamoRead + u.writes*dynamoWrite + u.gets*s3Get + u.puts*s3Put + u.sends*sqsRequest
}

// call is one kind of call, by the call.
type call struct {
	name string
	usage
}

func (c call) ms() float64  { return apiMS + c.waits() }
func (c call) gbs() float64 { return c.ms() / 1e3 * apiGB }
func (c call) usd() float64 { return lambdaRequest + c.gbs()*lambdaGBSecond + c.usage.usd() }

// stage is one function of a mail's way, by the mail.
type stage struct {
	name string
	usage
	gb, cpu float64
	sqs     float64
}

// ms is how long one message takes; an invocation works on several at once.
func (s stage) ms() float64 { return s.cpu + s.waits() }

// gbs is the mail's share of an invocation: ten messages, eight at once, take two turns.
func (s stage) gbs() float64 {
	const turns = (batch + parallel - 1) / parallel
	return s.ms() * turns / batch / 1e3 * s.gb
}

// usd has the requests of the event source too: a receive and a delete for each batch.
func (s stage) usd() float64 {
	return lambdaRequest/batch + s.gbs()*lambdaGBSecond + s.usage.usd() + 2*sqsRequest/batch
}

// mailCost is one mail.
type mailCost struct{ inbound, worker stage }

// ses is receiving it, storing it and telling the queue.
func (mailCost) ses() float64 { return sesMail + sesChunk + s3Put + snsPublish + sqsRequest }

func (m mailCost) usd() float64 { return m.ses() + m.inbound.usd() + m.worker.usd() }

// hot is one kind of partition.
type hot struct {
	kind  string
	units float64
}

// partitions are those that many mails write to, the most written first. A mail's own partition is never hot, so a kind of which
// every second mail has one is left out.
func (m mailCost) partitions() []hot {
	most, number := map[string]float64{}, map[string]int{}
	for partition, n := range m.inbound.plus(m.worker.usage).by {
		k := kind(partition)
		most[k] = max(most[k], n)
		number[k]++
	}
	var list []hot
	for k, n := range most {
		if number[k] < someMails/2 {
			list = append(list, hot{k, n})
		}
	}
	slices.SortFunc(list, func(a, b hot) int { return cmp.Or(cmp.Compare(b.units, a.units), cmp.Compare(a.kind, b.kind)) })
	return list
}

// load is a rate of calls and of mails, by the second, spread over workspaces.
type load struct {
	name         string
	calls, mails float64
	workspaces   float64
}

func loads() []load {
	return []load{
		{"10 calls/s, 1 mail/s, 10 workspaces", 10, 1, 10},
		{"1,000 calls/s, 12 mails/s, 1,000 workspaces", 1000, 12, 1000},
		{"10,000 calls/s, 12 mails/s, 10,000 workspaces", 10_000, 12, 10_000},
		{"1,000,000 mails a day (58/s in a busy minute), 100 calls/s, 1,000 workspaces", 100, 1e6 / 86400, 1000},
		{"1,000,000 mails a day, all to one workspace", 100, 1e6 / 86400, 1},
	}
}

// mix is what callers do: an agent looks, reads, and now and then changes.
func mix(calls []call) call {
	share := map[string]float64{"emails_list, 20": 0.5, "emails_get": 0.3, "emails_update": 0.1, "session_get": 0.09, "emails_list, cold": 0.01}
	out := call{name: "mix"}
	for _, c := range calls {
		out.usage = out.plus(c.over(1 / max(share[c.name], 1e-9)))
	}
	return out
}

// check is a need against a default limit.
type check struct {
	what        string
	need, limit float64
	raise       string
}

// demand is what a load needs and costs.
type demand struct {
	checks                             []check
	lambda, dynamo, storage, logs, out float64 // USD a month
}

func (d demand) usd() float64 { return d.lambda + d.dynamo + d.storage + d.logs + d.out }

func demandOf(l load, calls []call, m mailCost) demand {
	c := mix(calls)
	burst := l.mails * peak
	both := m.inbound.plus(m.worker.usage)
	hottest := m.partitions()[0]
	reads, writes := l.calls*c.reads+burst*both.reads, l.calls*c.writes+burst*both.writes
	per := max(l.workspaces, 1)
	d := demand{checks: []check{
		{"instances of api at once", l.calls * c.ms() / 1e3, accountConcurrency, "Lambda's account concurrency (a request to AWS)"},
		{"instances of worker at once", burst * m.worker.ms() / 1e3 / parallel, background, "BackgroundConcurrency"},
		{"instances of inbound at once", burst * m.inbound.ms() / 1e3 / parallel, background, "BackgroundConcurrency"},
		{"calls/s through the HTTP API", l.calls, httpAPIThrottle, "DefaultRouteSettings in template.yaml, or the function URL, which has none"},
		{"read units/s of a table", reads, tableUnits, "the quota of a table (a request to AWS)"},
		{"write units/s of a table", writes, tableUnits, "the quota of a table (a request to AWS)"},
		{"read units/s of a fresh table", reads, freshReads, "warm throughput, before the load comes; else minutes of throttling"},
		{"write units/s of a fresh table", writes, freshWrites, "warm throughput, before the load comes; else minutes of throttling"},
		{"read units/s of one workspace's list", l.calls * 0.5 * c.reads / per, partitionReads, "nothing can: fewer lists of that workspace, webhooks in place of polling"},
		{"write units/s of " + hottest.kind, burst * hottest.units / per, partitionWrites, "nothing can: mail waits in the queue, none is lost; split it over workspaces"},
		{"PUT/s of the bucket", burst * (both.puts + 1), bucketPuts, "nothing: S3 splits the prefix within minutes"},
		{"GET/s of the bucket", burst*both.gets + l.calls*c.gets, bucketGets, "nothing: S3 splits the prefix within minutes"},
	}}
	nCalls, nMails := l.calls*month, l.mails*month
	d.lambda = nCalls*(lambdaRequest+c.gbs()*lambdaGBSecond) +
		nMails*(2*lambdaRequest/batch+(m.inbound.gbs()+m.worker.gbs())*lambdaGBSecond)
	d.dynamo = nCalls*(c.reads*dynamoRead+c.writes*dynamoWrite) + nMails*(both.reads*dynamoRead+both.writes*dynamoWrite)
	d.storage = nCalls*c.gets*s3Get + nMails*(m.ses()+both.gets*s3Get+both.puts*s3Put+(both.sends+4.0/batch)*sqsRequest)
	instances := l.calls * c.ms() / 1e3
	d.logs = (nCalls*lineBytes+nMails*2*lineBytes+min(instances, l.calls)*month*metricBytes)/1e9*logGB + metrics*metricMonth
	d.out = nCalls * replyBytes / 1e9 * outGB
	return d
}
