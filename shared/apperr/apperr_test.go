package apperr_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/buzon-mail/buzon/shared/apperr"
)

func TestFromHidesUnexpectedErrors(t *testing.T) {
	err := fmt.Errorf("load user: %w", errors.New("password=canary"))
	e := apperr.From(err)
	if e.Kind != apperr.Internal || e.Public != "Something went wrong on our side." {
		t.Fatalf("From(plain) = %v %q, want internal with the fixed text", e.Kind, e.Public)
	}
	if !errors.Is(e, err) {
		t.Error("the cause is lost: it could not be logged")
	}
}

func TestFromKeepsKindThroughWraps(t *testing.T) {
	want := apperr.New(apperr.Conflict, "deleted_exists", "It is deleted.", "Restore it.")
	got := apperr.From(fmt.Errorf("upsert: %w", want))
	if got != want {
		t.Fatalf("From = %v, want the very error", got)
	}
	if !apperr.Is(fmt.Errorf("x: %w", want), apperr.Conflict) || apperr.Is(want, apperr.Stale) {
		t.Error("Is does not see the kind")
	}
}

func TestAtAndBecauseDoNotShareState(t *testing.T) {
	base := apperr.New(apperr.Invalid, "", "Bad input.").At("a", "1")
	one, two := base.At("b", "2"), base.At("c", "3")
	if len(base.Details) != 1 || one.Details[1].Location != "b" || two.Details[1].Location != "c" {
		t.Fatalf("details are shared: %v %v %v", base.Details, one.Details, two.Details)
	}
	if base.Because(errors.New("x")).Unwrap() == nil || base.Unwrap() != nil {
		t.Error("Because must not change the receiver")
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range apperr.Kinds() {
		if n := k.String(); n == "" || seen[n] {
			t.Errorf("kind %d has the name %q, which is empty or taken", k, n)
		} else {
			seen[n] = true
		}
	}
	if got := apperr.Kind(200).String(); got != "internal" {
		t.Errorf("unknown kind is %q, want internal", got)
	}
	if got := apperr.New(apperr.NotFound, "", "x").Name(); got != "not_found" {
		t.Errorf("Name without code = %q", got)
	}
}
