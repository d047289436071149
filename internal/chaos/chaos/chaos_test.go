package chaos

import "testing"

// TestChaos is the command in small; make chaos runs it with 2,000 mails and 20,000 calls, and other seeds.
func TestChaos(t *testing.T) {
	report, err := Run(t.Context(), Options{Seed: 1, Mails: 200, Calls: 2000, Tenants: 4})
	t.Logf("seed %d: %s", report.Seed, report)
	if err != nil {
		t.Fatal(err)
	}
	if report.Kills == 0 || report.Refused == 0 || report.Lost == 0 || report.Again == 0 || report.Shown == 0 || report.Twice == 0 || report.Stored < report.Accepted {
		t.Errorf("it proves little: %s", report)
	}
}
