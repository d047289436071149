package cue

import (
	"strings"
	"testing"
)

func TestCodes(t *testing.T) {
	for _, c := range []struct {
		name, subject, text, want string
		kind                      CodeKind
	}{
		{"english", "Sign in", "Your verification code is 482913. It expires in 10 minutes.", "482913", Verification},
		{"code first", "", "482913 is your verification code.", "482913", Verification},
		{"full-width digits", "", "Your verification code is ４８２９１３.", "482913", Verification},
		{"arabic digits", "", "Your verification code is ٤٨٢٩١٣.", "482913", Verification},
		{"alone on a line", "Your login code", "Hello,\n\n482913\n\nIf you did not ask, ignore this.", "482913", OneTime},
		{"spanish", "Código de verificación", "Tu código es: 5521", "5521", Verification},
		{"portuguese", "", "Seu código de verificação é 883201", "883201", Verification},
		{"french", "", "Votre code de vérification : 019283", "019283", Verification},
		{"german", "", "Ihr Bestätigungscode lautet 771902", "771902", Verification},
		{"italian", "", "Il tuo codice di verifica è 402918", "402918", Verification},
		{"pin", "", "Your PIN: 4821", "4821", PIN},
		{"two factor", "", "Your 2FA code: 118822", "118822", TwoFactor},
		{"otp", "", "OTP 118822", "118822", OneTime},
		{"grouped", "", "Your code: 123 456", "123456", OneTime},
		{"dashed", "", "Your code: 123-456", "123456", OneTime},
		{"prefixed", "", "G-482913 is your verification code", "G-482913", Verification},
		{"letters and digits", "", "Enter this code: 7KQ2XB", "7KQ2XB", OneTime},
		{"reset", "Reset your password", "Use code 99120 to continue", "99120", Reset},
		{"in the subject", "482913 is your code", "Welcome.", "482913", OneTime},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Codes(c.subject, c.text)
			if len(got) == 0 || got[0].Value != c.want || got[0].Kind != c.kind {
				t.Fatalf("codes = %+v, want %s %s", got, c.want, c.kind)
			}
			if got[0].Confidence < 0.5 || got[0].Confidence > 1 {
				t.Errorf("confidence %v", got[0].Confidence)
			}
		})
	}
}

func TestNoCodes(t *testing.T) {
	for _, c := range []struct{ name, subject, text string }{
		{"order", "Your order", "Order 482913 has shipped"},
		{"invoice", "Factura", "Factura 20231 por 1200 EUR"},
		{"phone", "", "Call us: phone 555 0100 or tel 5550100"},
		{"international phone", "", "+34 600 123 456"},
		{"year", "", "Copyright 2024 Example"},
		{"year beside the word code", "", "Our code of conduct 2024"},
		{"price", "", "total 48291 USD"},
		{"zip", "", "Springfield, zip 90210"},
		{"plain number", "", "We counted 482913 birds"},
		{"in an address", "", "See https://a.test/482913/code"},
		{"word", "", "The code is READY"},
		{"empty", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Codes(c.subject, c.text); len(got) > 0 {
				t.Errorf("codes = %+v", got)
			}
		})
	}
}

func TestCodesAreBounded(t *testing.T) {
	if got := Codes("Your code", strings.Repeat("code 123456 code 654321\n", 10000)); len(got) != 2 {
		t.Errorf("%d codes", len(got))
	}
	var b strings.Builder
	for i := range 1000 {
		b.WriteString("code: " + string(rune('A'+i%26)) + "K" + strings.Repeat("7", 3+i%5) + "\n")
	}
	if got := Codes("", b.String()); len(got) > Listed {
		t.Errorf("%d codes", len(got))
	}
}

func TestLink(t *testing.T) {
	for _, c := range []struct {
		name, url, text string
		want            LinkKind
	}{
		{"verify by text", "https://a.test/x", "Verify your email", LinkVerify},
		{"verify by path", "https://a.test/confirm?t=1", "Click here", LinkVerify},
		{"reset", "https://a.test/r", "Restablecer contraseña", LinkReset},
		{"magic", "https://a.test/magic/abc", "", LinkMagic},
		{"sign in", "https://a.test/x", "Sign in to Example", LinkMagic},
		{"unsubscribe", "https://a.test/u", "Unsubscribe", LinkUnsubscribe},
		{"invite", "https://a.test/invite/1", "Open", LinkInvite},
		{"host says nothing", "https://verify.test/", "Home", LinkOther},
		{"other", "https://a.test/news", "Read more", LinkOther},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Link(c.url, c.text); got != c.want {
				t.Errorf("Link = %s, want %s", got, c.want)
			}
		})
	}
}
