package scenario

import (
	"context"
	"encoding/json"
	"net/smtp"
	"strings"
	"testing"
	"time"
)

// TestMailArrives is the main job: a mail that any SMTP client sends is processed and read through MCP in both eras, and
// REST returns the very bytes that the tool returns.
func TestMailArrives(t *testing.T) {
	d := startLocal(t)
	client := d.client
	client.Token = d.token("owner@acme.test")
	const subject = "Pedido de cuatro sillas"
	mail := "From: Ada <ada@example.org>\r\nTo: soporte@acme.test\r\nSubject: " + subject + "\r\n" +
		"Message-ID: <sillas@example.org>\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nNecesito cuatro sillas. Código: 55 21 09.\r\n"
	if err := smtp.SendMail(d.smtp, nil, "ada@example.org", []string{"soporte@acme.test"}, []byte(mail)); err != nil {
		t.Fatalf("send: %v", err)
	}
	id := awaitMail(t, d, subject)

	get := `{"name":"emails_get","arguments":{"id":"` + id + `","include":["text","markdown","headers"]}}`
	rest, err := client.Do(t.Context(), "GET", "/api/v1/emails/"+id+"?include=text,markdown,headers", "")
	if err != nil || rest.Status != 200 {
		t.Fatalf("REST: %v %+v", err, rest)
	}
	if !strings.Contains(string(rest.Body), "Necesito cuatro sillas") {
		t.Errorf("the text is missing: %s", rest.Body)
	}
	for era, call := range map[string]func() (text string){
		"2026-07-28": func() string {
			r, err := client.Stateless(t.Context(), "tools/call", get)
			return toolText(t, r.Body, err)
		},
		"2025-11-25": func() string {
			r, err := client.Handshake(t.Context(), "2025-11-25", "tools/call", get)
			return toolText(t, r.Body, err)
		},
		"no version": func() string {
			r, err := client.Handshake(t.Context(), "", "tools/call", get)
			return toolText(t, r.Body, err)
		},
	} {
		if text := call(); text != string(rest.Body) {
			t.Errorf("%s: the tool's text is not REST's body:\n%s\n%s", era, text, rest.Body)
		}
	}
}

// TestWaitMeetsMail: a call that waits is answered by a mail that comes meanwhile, with its code, and the next one goes on behind it.
func TestWaitMeetsMail(t *testing.T) {
	d := startLocal(t)
	client := d.client
	client.Token = d.token("operator@acme.test")
	wait := func(body string) (out struct {
		Data struct {
			TimedOut  bool `json:"timed_out"`
			Cursor    string
			Untrusted struct{ Codes []struct{ Value string } }
		}
	}) {
		t.Helper()
		r, err := client.Do(t.Context(), "POST", "/api/v1/email-waits", body)
		if err != nil || r.Status != 200 || json.Unmarshal(r.Body, &out) != nil {
			t.Fatalf("wait: %v %+v", err, r)
		}
		return out
	}
	const query = `"inbox":"soporte","want":"code","from":"ada@example.org"`
	look := wait(`{` + query + `,"timeout_s":0}`)
	if !look.Data.TimedOut {
		t.Fatalf("before: %+v", look)
	}
	go func() {
		mail := "From: Ada <ada@example.org>\r\nTo: soporte@acme.test\r\nSubject: Acceso\r\nMessage-ID: <acceso@example.org>\r\n\r\nTu código de verificación es 552109.\r\n"
		if err := smtp.SendMail(d.smtp, nil, "ada@example.org", []string{"soporte@acme.test"}, []byte(mail)); err != nil {
			t.Errorf("send: %v", err)
		}
	}()
	got := wait(`{` + query + `,"after":"` + look.Data.Cursor + `","timeout_s":25}`)
	if got.Data.TimedOut || len(got.Data.Untrusted.Codes) != 1 || got.Data.Untrusted.Codes[0].Value != "552109" {
		t.Fatalf("got %+v", got)
	}
	if next := wait(`{` + query + `,"after":"` + got.Data.Cursor + `","timeout_s":0}`); !next.Data.TimedOut {
		t.Errorf("the same mail again: %+v", next)
	}
}

func TestMailToNobodyIsRefused(t *testing.T) {
	d := startLocal(t)
	for name, to := range map[string]string{
		"unknown inbox": "nadie@acme.test", "foreign domain": "someone@example.net", "relay by percent": "a%example.net@acme.test",
	} {
		t.Run(name, func(t *testing.T) {
			err := smtp.SendMail(d.smtp, nil, "ada@example.org", []string{to}, []byte("Subject: x\r\n\r\nx\r\n"))
			if err == nil || !strings.HasPrefix(err.Error(), "550") {
				t.Errorf("got %v, want 550 at RCPT", err)
			}
		})
	}
}

// awaitMail lists until the mail with the subject is processed and returns its id.
func awaitMail(t *testing.T, d door, subject string) string {
	t.Helper()
	return await(t, d, subject, "processed")
}

func await(t *testing.T, d door, subject, status string) string {
	t.Helper()
	client := d.client
	client.Token = d.token("owner@acme.test")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		r, err := client.Stateless(ctx, "tools/call", `{"name":"emails_list","arguments":{"status":"`+status+`","limit":5}}`)
		text := toolText(t, r.Body, err)
		var page struct {
			Data []struct {
				ID        string
				Untrusted struct{ Subject string }
			}
		}
		if err := json.Unmarshal([]byte(text), &page); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		for _, m := range page.Data {
			if m.Untrusted.Subject == subject {
				return m.ID
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the mail was not processed")
	return ""
}

func toolText(t *testing.T, body []byte, err error) string {
	t.Helper()
	var reply struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
	}
	if err != nil || json.Unmarshal(body, &reply) != nil || len(reply.Result.Content) != 1 || reply.Result.IsError {
		t.Fatalf("not a good tool result: %v %s", err, body)
	}
	return reply.Result.Content[0].Text
}

// TestSendersAtTheDoor: whom an inbox does not take is refused at RCPT or held back, and a person lets a held mail go.
func TestSendersAtTheDoor(t *testing.T) {
	d := startLocal(t)
	client := d.client
	client.Token = d.token("owner@acme.test")
	put := func(path, body string) {
		t.Helper()
		if r, err := client.Do(t.Context(), "PUT", "/api/v1/inboxes/soporte"+path, body, "Content-Type", "application/json"); err != nil || r.Status/100 != 2 {
			t.Fatalf("PUT %s: %v %+v", path, err, r)
		}
	}
	send := func(from, subject string) error {
		mail := "From: " + from + "\r\nSubject: " + subject + "\r\nMessage-ID: <" + subject + "@x.example>\r\n\r\nHola.\r\n"
		return smtp.SendMail(d.smtp, nil, from, []string{"soporte@acme.test"}, []byte(mail))
	}
	put("/allowed-senders", `{"kind":"address","value":"eve@malo.example","effect":"block"}`)
	put("/allowed-senders", `{"kind":"address","value":"ana@bueno.example","require":"none"}`)
	if err := send("Eve@Malo.example", "bloqueada"); err == nil || !strings.HasPrefix(err.Error(), "550") {
		t.Errorf("blocked: %v, want 550", err)
	}
	put("/sender-policy", `{"sender_policy":"listed","on_unlisted":"reject"}`)
	if err := send("otro@bueno.example", "rechazada"); err == nil || !strings.HasPrefix(err.Error(), "550") {
		t.Errorf("not listed: %v, want 550", err)
	}
	put("/sender-policy", `{"on_unlisted":"quarantine"}`)
	for from, subject := range map[string]string{"ana@bueno.example": "aceptada", "otro@bueno.example": "retenida"} {
		if err := send(from, subject); err != nil {
			t.Fatal(err)
		}
	}
	awaitMail(t, d, "aceptada")
	id := await(t, d, "retenida", "quarantined")
	r, err := client.Do(t.Context(), "POST", "/api/v1/emails/"+id+"/release", "")
	if err != nil || r.Status != 200 || !strings.Contains(string(r.Body), `"status":"processed"`) || !strings.Contains(string(r.Body), `"trust":"unverified"`) {
		t.Fatalf("release: %v %s", err, r.Body)
	}
	if got := awaitMail(t, d, "retenida"); got != id {
		t.Errorf("released %s, found %s", id, got)
	}
}
