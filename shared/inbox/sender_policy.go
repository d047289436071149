package inbox

import (
	"context"
	"slices"
)

// PolicyPatch is what SetSenderPolicy sets. Absent stays, null is the default: open, quarantine.
type PolicyPatch struct {
	Policy     Field[SenderPolicy]
	OnUnlisted Field[OnUnlisted]
	IfVersion  uint64 // 0: whatever it is
}

func (p PolicyPatch) check() error {
	if s := p.Policy; s.Present && !s.Null && !slices.Contains(SenderPolicies(), s.Value) {
		return invalid("body.sender_policy", "open, listed or listed_authenticated")
	}
	u := p.OnUnlisted
	if u.Present && !u.Null && !slices.Contains([]OnUnlisted{UnlistedQuarantine, UnlistedLabel, UnlistedReject}, u.Value) {
		return invalid("body.on_unlisted", "reject, quarantine or label")
	}
	if !p.Policy.Present && !u.Present {
		return invalid("body", "sender_policy or on_unlisted is needed")
	}
	return nil
}

// of is the policy that the patch leads to.
func (p PolicyPatch) of(in Inbox) (SenderPolicy, OnUnlisted) {
	policy, unlisted := in.Policy()
	return defaults(p.Policy.or(policy), p.OnUnlisted.or(unlisted))
}

// SetSenderPolicy sets whose mail an inbox takes. Repeating it changes nothing.
func (s *Inboxes) SetSenderPolicy(ctx context.Context, a Actor, ref string, p PolicyPatch) (Inbox, error) {
	if err := p.check(); err != nil {
		return Inbox{}, err
	}
	in, err := s.d.live(ctx, a, ref)
	if err != nil {
		return Inbox{}, err
	}
	return s.update(ctx, a, in.ID, func(in *Inbox) error {
		if !in.DeletedAt.IsZero() {
			return NoInbox()
		}
		if p.IfVersion != 0 && p.IfVersion != in.Version {
			return staleVersion(in.Version, "inboxes_get")
		}
		policy, unlisted := in.Policy()
		next, nextUnlisted := p.of(*in)
		changes := next != policy || nextUnlisted != unlisted
		if err := a.confirm(in.ID, in.Version, changes); err != nil || !changes {
			return err
		}
		in.SenderPolicy, in.OnUnlisted = next, nextUnlisted
		in.UpdatedAt, in.Version = s.d.now(), in.Version+1
		return nil
	})
}

// AskSenderPolicy says what a person is asked before SetSenderPolicy; nil when it changes nothing.
func (s *Inboxes) AskSenderPolicy(ctx context.Context, a Actor, ref string, p PolicyPatch) (*Question, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	in, err := s.d.live(ctx, a, ref)
	if err != nil {
		return nil, err
	}
	if p.IfVersion != 0 && p.IfVersion != in.Version {
		return nil, staleVersion(in.Version, "inboxes_get")
	}
	policy, unlisted := in.Policy()
	next, nextUnlisted := p.of(in)
	if next == policy && nextUnlisted == unlisted {
		return nil, nil //nolint:nilnil // no question
	}
	return &Question{
		Text:    "Set whose mail inbox {} takes to {} (now {}); mail of others: {} (now {})",
		Values:  []string{in.Slug, string(next), string(policy), string(nextUnlisted), string(unlisted)},
		Targets: map[string]string{in.ID: Version(in.Version)},
	}, nil
}
