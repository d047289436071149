package mail

import (
	"testing"
)

func TestCutReply(t *testing.T) {
	for _, c := range []struct{ name, text, fresh, quoted, signature string }{
		{"nothing to cut", "Hello\n\nthere", "Hello\n\nthere", "", ""},
		{"english", "Yes.\n\nOn Mon, 2 Mar 2026, Bob <b@c.test> wrote:\n> old", "Yes.", "On Mon, 2 Mar 2026, Bob <b@c.test> wrote:\n> old", ""},
		{"spanish", "Sí.\n\nEl lun, 2 mar 2026, Bob escribió:\n> viejo", "Sí.", "El lun, 2 mar 2026, Bob escribió:\n> viejo", ""},
		{"portuguese", "Sim.\nEm 2 de mar. de 2026, Bob escreveu:\nvelho", "Sim.", "Em 2 de mar. de 2026, Bob escreveu:\nvelho", ""},
		{"french", "Oui.\nLe 2 mars 2026, Bob a écrit :\n> vieux", "Oui.", "Le 2 mars 2026, Bob a écrit :\n> vieux", ""},
		{"german", "Ja.\nAm 02.03.2026 schrieb Bob <b@c.test>:\n> alt", "Ja.", "Am 02.03.2026 schrieb Bob <b@c.test>:\n> alt", ""},
		{"italian", "Sì.\nIl 2 marzo 2026 Bob ha scritto:\n> vecchio", "Sì.", "Il 2 marzo 2026 Bob ha scritto:\n> vecchio", ""},
		{"folded attribution", "Yes.\n\nOn Mon, 2 Mar 2026 at 09:00 Bob\n<b@c.test> wrote:\n> old", "Yes.", "On Mon, 2 Mar 2026 at 09:00 Bob\n<b@c.test> wrote:\n> old", ""},
		{"outlook", "Yes.\n\nFrom: Bob\nSent: Monday\nTo: Ana\nSubject: x\n\nold", "Yes.", "From: Bob\nSent: Monday\nTo: Ana\nSubject: x\n\nold", ""},
		{"outlook with a rule", "Yes.\n________________________________\nDe: Bob\nEnviado: lunes\nPara: Ana\n\nold", "Yes.", "________________________________\nDe: Bob\nEnviado: lunes\nPara: Ana\n\nold", ""},
		{"separator", "Yes.\n-----Original Message-----\nold", "Yes.", "-----Original Message-----\nold", ""},
		{"quote at the end", "Yes.\n\n> old\n> older", "Yes.", "> old\n> older", ""},
		{"answer below", "On Mon, 2 Mar 2026, Bob wrote:\n> old\n\nNew below.", "New below.", "On Mon, 2 Mar 2026, Bob wrote:\n> old", ""},
		{"quote alone", "On Mon, 2 Mar 2026, Bob wrote:\n> old", "", "On Mon, 2 Mar 2026, Bob wrote:\n> old", ""},
		{"signature", "Hello\n-- \nAna\nAcme", "Hello", "", "-- \nAna\nAcme"},
		{"phone", "Hello\n\nSent from my iPhone", "Hello", "", "Sent from my iPhone"},
		{"forward", "FYI\n\n---------- Forwarded message ---------\nFrom: Bob\nDate: x\nSubject: y\nTo: z\n\nold", "FYI\n\n---------- Forwarded message ---------\nFrom: Bob\nDate: x\nSubject: y\nTo: z\n\nold", "", ""},
		{"prose that starts like an attribution", "On Monday we wrote\nthe report.", "On Monday we wrote\nthe report.", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := cutReply(c.text)
			if got != (reply{c.fresh, c.quoted, c.signature}) {
				t.Errorf("cutReply = %+q", got)
			}
		})
	}
}

func TestFlowed(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		delSp          bool
	}{
		{"joined", "a \nb\nc", "a b\nc", false},
		{"deleted space", "a \nb", "ab", true},
		{"quote depth", "> a \n> b\nc", "> a b\nc", false},
		{"depth changes", "> a \n>> b", "> a \n>> b", false},
		{"signature is not joined", "a\n-- \nAna", "a\n-- \nAna", false},
		{"stuffed", " > a", "> a", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := unflow(c.in, c.delSp); got != c.want {
				t.Errorf("unflow = %q, want %q", got, c.want)
			}
		})
	}
}
