// Package demo is the sample world that a newcomer meets: two organizations with their people, inboxes and mails, under
// fixed ids. The local process sends the mails through the real pipeline; the emulated Lambda function, which links no mail
// parser, loads what the pipeline made of them (processed.json, generated). It knows the domain's types, no storage.
package demo

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// Organization is one customer of the sample world.
type Organization struct {
	Org        inbox.Organization
	Domain     string // where its inboxes have their addresses
	Workspaces []inbox.Workspace
	Members    []inbox.Member
	Inboxes    []inbox.Inbox
}

// How the sample mails came.
const (
	RemoteIP = "192.0.2.25"
	HELO     = "demo.example"
)

// Mail is one sample mail.
type Mail struct {
	Intake string        // fixed id
	ID     string        // the id that the mail will have
	Inbox  string        // the address it was sent to
	From   string        // MAIL FROM
	Age    time.Duration // received_at is the start minus this
	Raw    []byte
}

//go:embed mails/*.eml
var mails embed.FS

// created is when the sample world was made; any fixed time does.
func created() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// id makes a fixed id that has the shape of a ULID.
func id(prefix, name string) string {
	return prefix + "_" + "01KDT0" + strings.Repeat("0", 20-len(name)) + name
}

func workspace(org, name, slug, title string) inbox.Workspace {
	return inbox.Workspace{ID: id("ws", name), Organization: org, Slug: slug, Name: title, CreatedAt: created()}
}

func member(org, domain string, role inbox.Role) inbox.Member {
	label, _, _ := strings.Cut(domain, ".")
	name := crockford(label + string(role))
	return inbox.Member{
		User: id("user", name), Email: string(role) + "@" + domain, Organization: org, Role: role, CreatedAt: created(),
		Proven: string(role) + "@" + domain,
	}
}

// crockford maps a word to the alphabet of ULIDs, which has no I, L, O and U.
func crockford(word string) string {
	return strings.NewReplacer("I", "1", "L", "1", "O", "0", "U", "V").Replace(strings.ToUpper(word))
}

func box(w inbox.Workspace, name, slug, domain, title string) inbox.Inbox {
	return inbox.Inbox{
		ID: id("inbox", name), Organization: w.Organization, Workspace: w.ID, Slug: slug, Address: slug + "@" + domain,
		DisplayName: title, State: inbox.StateActive, CreatedAt: created(), UpdatedAt: created(), Version: 1,
	}
}

// World is the sample world without its mails.
func World() []Organization {
	acme, globex := id("org", "ACME"), id("org", "G10BEX")
	main := workspace(acme, "ACMEMA1N", "principal", "Principal")
	sales := workspace(globex, "G10BEXSA1ES", "sales", "Sales")
	legal := workspace(globex, "G10BEX1EGA1", "legal", "Legal")
	return []Organization{
		{
			Org:        inbox.Organization{ID: acme, Slug: "acme", Name: "Acme", CreatedAt: created()},
			Domain:     "acme.test",
			Workspaces: []inbox.Workspace{main},
			Members: []inbox.Member{
				member(acme, "acme.test", inbox.RoleOwner), member(acme, "acme.test", inbox.RoleAdmin),
				member(acme, "acme.test", inbox.RoleOperator), member(acme, "acme.test", inbox.RoleViewer),
			},
			Inboxes: []inbox.Inbox{
				box(main, "FACTVRAS", "facturas", "acme.test", "Facturas"),
				box(main, "S0P0RTE", "soporte", "acme.test", "Soporte"),
			},
		},
		{
			Org:        inbox.Organization{ID: globex, Slug: "globex", Name: "Globex", CreatedAt: created()},
			Domain:     "globex.test",
			Workspaces: []inbox.Workspace{sales, legal},
			Members:    []inbox.Member{member(globex, "globex.test", inbox.RoleOwner)},
			Inboxes: []inbox.Inbox{
				box(sales, "0RDERS", "orders", "globex.test", "Orders"),
				box(legal, "C0NTRACTS", "contracts", "globex.test", "Contracts"),
			},
		},
	}
}

// Mails lists the sample mails, oldest first.
func Mails() ([]Mail, error) {
	list := []struct {
		file, to, from string
		age            time.Duration
	}{
		{"invoice", "facturas@acme.test", "billing@papeleria.example", 72 * time.Hour},
		{"question", "soporte@acme.test", "lucia@cliente.example", 50 * time.Hour},
		{"answer", "soporte@acme.test", "lucia@cliente.example", 26 * time.Hour},
		{"order", "orders@globex.test", "buyer@initech.example", 20 * time.Hour},
		{"code", "soporte@acme.test", "no-reply@banco.example", 5 * time.Hour},
		{"contract", "contracts@globex.test", "notary@umbrella.example", 4 * time.Hour},
		{"injection", "facturas@acme.test", "promo@ganga.example", 90 * time.Minute},
	}
	out := make([]Mail, len(list))
	for i, m := range list {
		raw, err := mails.ReadFile("mails/" + m.file + ".eml")
		if err != nil {
			return nil, fmt.Errorf("demo mail %s: %w", m.file, err)
		}
		n := fmt.Sprintf("MA1%02d", i+1)
		out[i] = Mail{
			Intake: id("intake", n), ID: id("email", n), Inbox: m.to, From: m.from, Age: m.age,
			Raw: []byte(strings.ReplaceAll(string(raw), "\n", "\r\n")),
		}
	}
	return out, nil
}

// Directory is what Seed fills.
type Directory interface {
	CreateOrganization(ctx context.Context, o inbox.Organization) error
	CreateWorkspace(ctx context.Context, w inbox.Workspace) error
	CreateMember(ctx context.Context, m inbox.Member) error
	// MemberKnown reports whether somebody is, or was, a member.
	MemberKnown(ctx context.Context, user string) (bool, error)
	AddDomain(ctx context.Context, org, domain string) (string, error)
	// Inbox finds one by id or slug; not_found is an *apperr.Error.
	Inbox(ctx context.Context, workspace, ref string) (inbox.Inbox, error)
	CreateInbox(ctx context.Context, in inbox.Inbox, act inbox.Act) error
}

// Seed makes the sample world without its mails. What is there stays as it is, also what a person changed since.
func Seed(ctx context.Context, d Directory) error {
	for _, o := range World() {
		if err := d.CreateOrganization(ctx, o.Org); err != nil {
			return fmt.Errorf("demo organization %s: %w", o.Org.Slug, err)
		}
		if _, err := d.AddDomain(ctx, o.Org.ID, o.Domain); err != nil {
			return fmt.Errorf("demo domain %s: %w", o.Domain, err)
		}
		for _, w := range o.Workspaces {
			if err := d.CreateWorkspace(ctx, w); err != nil {
				return fmt.Errorf("demo workspace %s: %w", w.Slug, err)
			}
		}
		for _, m := range o.Members {
			known, err := d.MemberKnown(ctx, m.User)
			if err == nil && !known {
				err = d.CreateMember(ctx, m)
			}
			if err != nil {
				return fmt.Errorf("demo member %s: %w", m.Email, err)
			}
		}
		for _, in := range o.Inboxes {
			_, err := d.Inbox(ctx, in.Workspace, in.ID)
			if apperr.Is(err, apperr.NotFound) {
				err = d.CreateInbox(ctx, in, inbox.Act{}) // nobody asked for it
			}
			if err != nil {
				return fmt.Errorf("demo inbox %s: %w", in.Slug, err)
			}
		}
	}
	return nil
}
