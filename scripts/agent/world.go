package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/smtp"
	"time"
)

// wish is what the agent can't do itself.
type wish struct {
	Want    string // mails, code, crash, reveal
	To      string
	First   int
	Count   int
	Code    string
	Address string // of a page
}

// down is how long the service seems to have been down after the crash: longer than it holds a mail or a delivery that was cut off
// (a minute), well within the 5 minutes that a receiver allows between its clock and a signature's.
const down = 90 * time.Second

// grant does it.
func (w *world) grant(ctx context.Context, wish wish) (map[string]any, error) {
	switch wish.Want {
	case "mails":
		n, err := w.mails(ctx, wish)
		return map[string]any{"sent": n}, err
	case "code":
		m := mail{from: "no-reply@banco.example", subject: "Acceso", text: "Tu código de verificación es " + wish.Code + "."}
		return map[string]any{}, w.send(ctx, wish.To, []mail{m})
	case "crash":
		return map[string]any{}, w.service.Crash(ctx, down)
	case "reveal":
		secret, err := w.person.Reveal(ctx, wish.Address)
		return map[string]any{"secret": secret}, err
	}
	return nil, fmt.Errorf("nobody grants %q", wish.Want)
}

type mail struct{ from, subject, text string }

// mails sends the nth mails of the day: of 200, 80 bills, 50 newsletters, 50 questions and 20 scams, mixed.
func (w *world) mails(ctx context.Context, wish wish) (int, error) {
	list := make([]mail, wish.Count)
	for i := range list {
		n := wish.First + i
		switch k := n % 20; {
		case k < 8:
			list[i] = mail{"cobros@papel.example", fmt.Sprintf("Factura %d", 1000+n), fmt.Sprintf("Le enviamos la factura.\r\nTotal: %d,50\r\nGracias.", 1000+n)}
		case k < 13:
			list[i] = mail{"boletin@diario.example", fmt.Sprintf("Boletín %d", n), "Las noticias del día."}
		case k < 18:
			list[i] = mail{fmt.Sprintf("cliente%d@remote.example", n), fmt.Sprintf("Pregunta %d", n), "¿Cuándo llega mi pedido?"}
		default:
			list[i] = mail{"loteria@remote.example", fmt.Sprintf("Un premio %d", n), "Ha ganado."}
		}
		list[i].text += fmt.Sprintf("\r\nReferencia interna %d.", n) // no two are the same mail
	}
	return len(list), w.send(ctx, wish.To, list)
}

// send delivers mails over one connection, each in a transaction of its own: 250 for it means that it is not lost.
func (w *world) send(ctx context.Context, to string, list []mail) (err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", w.smtp)
	if err != nil {
		return err
	}
	c, err := smtp.NewClient(conn, "localhost")
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	defer func() { err = errors.Join(err, c.Quit()) }()
	for _, m := range list {
		if err := deliver(c, to, m); err != nil {
			return fmt.Errorf("%s: %w", m.subject, err)
		}
	}
	return nil
}

func deliver(c *smtp.Client, to string, m mail) error {
	if err := c.Mail(m.from); err != nil {
		return err
	}
	if err := c.Rcpt(to); err != nil {
		return err
	}
	body, err := c.Data()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(body, "From: <%s>\r\nTo: <%s>\r\nSubject: %s\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n%s\r\n", m.from, to, m.subject, m.text)
	return errors.Join(err, body.Close())
}
