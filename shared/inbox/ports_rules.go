package inbox

import "context"

// RuleStore keeps rules. Everything is found under its workspace, so another tenant's id is a missing one.
type RuleStore interface {
	// Rulebook reads the live rules of a workspace in their order, in one read. known is a revision that the caller holds: while
	// it is the present one the book comes back empty, undecoded. A workspace without rules has an empty book of revision 0.
	Rulebook(ctx context.Context, workspace string, known uint64) (book Rulebook, revision uint64, err error)
	// DeletedRule finds a deleted one; not_found when there is none.
	DeletedRule(ctx context.Context, workspace, id string) (Rule, error)
	// RuleMatches are the approximate numbers of mails that the rules of a workspace matched, by id.
	RuleMatches(ctx context.Context, workspace string) (map[string]int64, error)
	// UpdateRules works like InboxStore.UpdateInbox on the book, for the sake of one rule. gone is that rule as long as it is
	// deleted, else a zero one: change deletes it by moving it there and restores it by moving it back. A book that is too
	// large for its row: ErrRulesFull.
	UpdateRules(ctx context.Context, workspace, id string, act Act, change func(book *Rulebook, gone *Rule) error) error
}

// TemplateStore keeps extraction templates, by workspace and id.
type TemplateStore interface {
	// Templates reads one page of the live ones by id, behind r.After; next is empty at the end.
	Templates(ctx context.Context, r TemplateRange) (rows []ExtractionTemplate, next string, err error)
	// Template finds one, deleted or not; not_found when there is none.
	Template(ctx context.Context, workspace, id string) (ExtractionTemplate, error)
	// UpdateTemplate works like SenderStore.UpdateSender.
	UpdateTemplate(ctx context.Context, workspace, id string, act Act, change func(*ExtractionTemplate) error) (ExtractionTemplate, error)
}

// TemplateRange is one page of a workspace's templates.
type TemplateRange struct {
	Workspace string
	After     string
	Limit     int
}

// ExtractionStore keeps what was extracted, one of each mail and template.
type ExtractionStore interface {
	// Extractions reads one page, the newest mail first, behind r.After; next is empty at the end. A page may be short. Those of
	// deleted mails are left out.
	Extractions(ctx context.Context, r ExtractionRange) (rows []Extraction, next string, err error)
	// PutExtraction stores one, over an older one of its mail and template; not over one of a newer version of the template.
	PutExtraction(ctx context.Context, e Extraction) error
}

// ExtractionRange is what the keys can serve of a list: Email wins over Template.
type ExtractionRange struct {
	Workspace string
	Template  string // slug
	Email     string // position of one mail; then those of a deleted one are not left out
	After     string // the Key of a row
	Limit     int
}

// Key is the place of an extraction in every list.
func (e Extraction) Key() string { return Position(e.ReceivedAt, e.Email) + "/" + e.Template }
