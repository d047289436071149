package inbox

import "slices"

// Settled is what people decided of a mail beside what its own fields show. No reading undoes it. Mail that was changed before this was
// kept has none: then a label, category or mark that no rule is known to have set counts as a person's.
type Settled struct {
	Unlabeled []string `json:"unlabeled,omitempty"` // labels that they took off, the latest last; at most MaxLabels
	Category  bool     `json:"category,omitempty"`  // they set it, or that there is none
	Handled   bool     `json:"handled,omitempty"`   // they set the mark, or took it off
}

// OwnLabels are the labels that no reading set, in their order.
func (e Email) OwnLabels() []string {
	return slices.DeleteFunc(slices.Clone(e.Labels), func(l string) bool { return slices.Contains(e.RuleLabels, l) })
}

// SetLabels gives the mail the labels of people and those of a reading, but for what people took off.
func (e *Email) SetLabels(own, read []string) {
	e.RuleLabels = nil
	for _, l := range read {
		if !slices.Contains(own, l) && !slices.Contains(e.Settled.Unlabeled, l) && !slices.Contains(e.RuleLabels, l) {
			e.RuleLabels = append(e.RuleLabels, l)
		}
	}
	e.Labels = slices.Concat(own, e.RuleLabels)
	slices.Sort(e.Labels)
	slices.Sort(e.RuleLabels)
}

// OwnCategory reports whether the category, or that there is none, is a person's word.
func (e Email) OwnCategory() bool {
	return e.Settled.Category || e.Category != "" && e.CategoryBy == (RuleRef{})
}

// OwnHandled reports whether the mark, or that there is none, is a person's word.
func (e Email) OwnHandled() bool { return e.Settled.Handled || !e.HandledAt.IsZero() && !e.RuleHandled }

// settle notes what a patch decided. e has the labels still that it had before. Lists are cloned: the stored mail is compared with
// this one.
func (p EmailPatch) settle(e *Email) {
	added := func(l string) bool { return slices.Contains(p.AddLabels, l) }
	off := slices.DeleteFunc(slices.Clone(e.Settled.Unlabeled), added)
	for _, l := range p.RemoveLabels {
		if slices.Contains(e.Labels, l) && !added(l) && !slices.Contains(off, l) {
			off = append(off, l)
		}
	}
	e.Settled.Unlabeled = off[max(0, len(off)-MaxLabels):]
	e.RuleLabels = slices.DeleteFunc(slices.Clone(e.RuleLabels), func(l string) bool { return added(l) || slices.Contains(p.RemoveLabels, l) })
	e.Settled.Category = e.Settled.Category || p.Category.Present
	if p.Category.Present {
		e.CategoryBy = RuleRef{}
	}
	if p.Handled.Present {
		e.Settled.Handled, e.RuleHandled = true, false
	}
}
