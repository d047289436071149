package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/app/emulator"
	"github.com/buzon-mail/buzon/shared/app/jsonlog"
	"github.com/buzon-mail/buzon/shared/app/web"
	"github.com/buzon-mail/buzon/shared/demo"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/mail"
	"github.com/buzon-mail/buzon/shared/mailauth"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/pipeline"
	"github.com/buzon-mail/buzon/shared/pipeline/parsing"
)

const (
	mailBytes = 20 << 10
	warmCalls = 200 // of each kind: enough for the leases of the rate limit to show
	someMails = 50
	perMinute = 6000
)

// world is the service with the sample data, over counted engines.
type world struct {
	*emulator.Emulation
	made  *emulator.World
	c     counter
	rows  *inboxstore.Store
	blobs bucket
	api   *web.API
	token string
	now   time.Time
}

func newWorld(ctx context.Context) (*world, error) {
	w := &world{now: time.Now()}
	clock := func() time.Time { return w.now }
	var err error
	if w.Emulation, err = emulator.New(clock, emulator.Options{}); err != nil {
		return nil, err
	}
	if w.made, err = w.World(ctx); err != nil { // what it costs is not counted
		return nil, err
	}
	engine := counted{w.Engine, &w.c}
	w.blobs = bucket{w.made.Blobs, &w.c}
	if w.rows, err = inboxstore.New(engine, clock); err != nil {
		return nil, err
	}
	w.api, err = web.New(web.Deps{
		Store: w.rows, Blobs: web.Blobs{Opener: w.blobs}, Downloads: web.Downloads{Signer: w.blobs}, Engine: engine,
		Seal: w.Seal, Permanent: w.Seal, Keys: w.Keys, Logger: jsonlog.New(io.Discard), Clock: clock, Random: rand.Reader,
	}, web.Options{
		Origin: w.Origin, Issuer: w.Issuer, Audience: w.Audience, Development: true, PerMinute: perMinute, OutwardMinute: perMinute,
		SharedLimits: true, Version: web.Unreleased,
	})
	if err != nil {
		return nil, err
	}
	acme := demo.World()[0]
	w.token, err = w.api.Issuer.Mint(ctx, oauth.Claims{
		Subject: acme.Members[0].User, ClientID: web.CommandLine, Grant: "grant_scale", Organization: acme.Org.ID, Workspace: acme.Workspaces[0].ID,
		Scope: strings.Join(w.api.Scopes.Advertised(), " "),
	}, 24*time.Hour)
	return w, err
}

func (w *world) close() { _ = w.Close() }

// calls counts each kind of call, warm but for the first.
func (w *world) calls(ctx context.Context) ([]call, error) {
	list, err := w.ask(ctx, "emails_list", map[string]any{"limit": 5})
	if err != nil {
		return nil, err
	}
	cold := call{name: "emails_list, cold", usage: w.c.taken()}
	email, err := firstID(list)
	if err != nil {
		return nil, err
	}
	out := []call{cold}
	labels := 0
	for _, k := range []struct {
		tool, name string
		arguments  func() map[string]any
	}{
		{"session_get", "session_get", func() map[string]any { return map[string]any{} }},
		{"emails_list", "emails_list, 20", func() map[string]any { return map[string]any{"limit": 20} }},
		{"emails_get", "emails_get", func() map[string]any { return map[string]any{"id": email} }},
		{"emails_update", "emails_update", func() map[string]any {
			labels++
			return map[string]any{"id": email, "add_labels": []string{fmt.Sprint("l", labels%2)}, "remove_labels": []string{fmt.Sprint("l", (labels+1)%2)}}
		}},
	} {
		for range warmCalls {
			if _, err := w.ask(ctx, k.tool, k.arguments()); err != nil {
				return nil, err
			}
		}
		out = append(out, call{name: k.name, usage: w.c.taken().over(warmCalls)})
	}
	return out, nil
}

func firstID(list json.RawMessage) (string, error) {
	var page struct {
		Data []struct{ ID string }
	}
	if err := json.Unmarshal(list, &page); err != nil || len(page.Data) == 0 {
		return "", fmt.Errorf("no mail in %.200s: %w", list, err)
	}
	return page.Data[0].ID, nil
}

// ask is one tools/call that must succeed.
func (w *world) ask(ctx context.Context, tool string, arguments map[string]any) (json.RawMessage, error) {
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": arguments},
	})
	if err != nil {
		return nil, err
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, w.Origin+"/mcp", bytes.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+w.token)
	r.Header.Set("Content-Type", "application/json")
	reply := httptest.NewRecorder()
	w.api.ServeHTTP(reply, r)
	var message struct {
		Result struct {
			IsError           bool
			StructuredContent json.RawMessage
		}
	}
	if err := json.Unmarshal(reply.Body.Bytes(), &message); err != nil || reply.Code != http.StatusOK || message.Result.IsError {
		return nil, fmt.Errorf("%s: %d %.300s", tool, reply.Code, reply.Body)
	}
	return message.Result.StructuredContent, nil
}

// mails counts what mails cost from the notice of SES to processed.
func (w *world) mails(ctx context.Context) (mailCost, error) {
	clock := func() time.Time { return w.now }
	q := sender{&w.c}
	log := jsonlog.New(io.Discard)
	intake, err := pipeline.NewIntake(pipeline.IntakeDeps{
		Recipients: w.rows, Outbox: w.rows, Blobs: w.blobs, Queue: q, Logger: log, Clock: clock, Stored: w.blobs, Holding: w.rows,
	}, pipeline.IntakeOptions{})
	if err != nil {
		return mailCost{}, err
	}
	worker, err := pipeline.NewWorker(pipeline.WorkerDeps{
		Outbox: w.rows, Mails: w.rows, Blobs: w.blobs, Queue: q, Parse: parsing.Mail(mail.Limits{}), Logger: log, Clock: clock,
		Authenticate: parsing.Senders(nil), SameOrganization: mailauth.SameOrganization, Senders: w.rows,
	}, pipeline.WorkerOptions{})
	if err != nil {
		return mailCost{}, err
	}
	m := mailCost{inbound: stage{name: "inbound", gb: inboundGB, cpu: inboundMS}, worker: stage{name: "worker", gb: workerGB, cpu: parseMS}}
	for i := range someMails {
		w.now = w.now.Add(time.Second)
		key := fmt.Sprintf("ses/scale%04d", i)
		if err := w.made.Put(ctx, key, letter(i)); err != nil {
			return mailCost{}, err
		}
		w.c.taken()
		to, err := intake.Recipient(ctx, "facturas@acme.test")
		if err != nil {
			return mailCost{}, err
		}
		ids, err := intake.AcceptStored(ctx, inbox.Stored{
			Source: key, Key: key, ReceivedAt: w.now, From: fmt.Sprintf("s%d@sender.example", i), Recipients: []inbox.Recipient{to},
		})
		if err != nil {
			return mailCost{}, err
		}
		m.inbound.usage = m.inbound.plus(w.c.taken())
		for _, id := range ids {
			if err := worker.Handle(ctx, id, 1); err != nil {
				return mailCost{}, err
			}
		}
		m.worker.usage = m.worker.plus(w.c.taken())
	}
	m.inbound.usage, m.worker.usage = m.inbound.over(someMails), m.worker.over(someMails)
	if m.worker.writes == 0 || m.inbound.writes == 0 {
		return mailCost{}, errors.New("no mail was processed")
	}
	return m, nil
}

// letter is a mail of mailBytes: a third is its text, the rest the same with markup.
func letter(i int) []byte {
	const (
		edge = "=scale="
		line = "Line of an order, with a number 1234 and a name.\r\n"
		cell = `<tr><td style="color:#333;font:14px sans-serif">Line of an order, with a number 1234 and a name.</td></tr>` + "\r\n"
	)
	var b strings.Builder
	fmt.Fprintf(&b, "From: Sender %d <s%d@sender.example>\r\nTo: facturas@acme.test\r\nSubject: Order %d\r\nMessage-ID: <scale.%d@sender.example>\r\n"+
		"Date: Mon, 30 Nov 2026 11:15:03 +0100\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=\"%s\"\r\n\r\n", i, i, i, i, edge)
	fmt.Fprintf(&b, "--%s\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n%s", edge, strings.Repeat(line, mailBytes/3/len(line)))
	fmt.Fprintf(&b, "--%s\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<table>%s</table>\r\n--%s--\r\n", edge, strings.Repeat(cell, mailBytes*2/3/len(cell)), edge)
	return []byte(b.String())
}
