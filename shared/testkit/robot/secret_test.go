package robot_test

import (
	"testing"
)

// TestReveal: the robot sees a secret once, and only its own person's.
func TestReveal(t *testing.T) {
	origin, server, r := serve(t)
	address, _, err := server.KeepSecret(t.Context(), "user_ana", "webhook orders", "whsec_canary")
	must(t, err)
	others, _, err := server.KeepSecret(t.Context(), "user_beto", "webhook orders", "whsec_other")
	must(t, err)
	if got, err := r.Reveal(t.Context(), others); err == nil {
		t.Errorf("another person's: %q", got)
	}
	if got, err := r.Reveal(t.Context(), address); err != nil || got != "whsec_canary" {
		t.Fatalf("got %q, %v", got, err)
	}
	for name, again := range map[string]string{"shown": address, "never made": origin + "/secret?id=x", "no page of secrets": origin + "/account"} {
		if got, err := r.Reveal(t.Context(), again); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}
