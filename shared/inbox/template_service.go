package inbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// Templates are the operations on extraction templates.
type Templates struct{ d Deps }

// TemplateQuery filters a list of templates.
type TemplateQuery struct {
	Q    string // in the slug
	Slug string
}

// TemplatePage is one page of templates.
type TemplatePage struct {
	Rows   []ExtractionTemplate
	Next   string  // cursor
	Window *Window // nil when the keys serve the list
}

// List returns the templates of the workspace in the order of their ids.
func (s *Templates) List(ctx context.Context, a Actor, q TemplateQuery, p PageRequest) (TemplatePage, error) {
	limit, err := p.limit()
	if err != nil {
		return TemplatePage{}, err
	}
	if err := checkFilter("query.q", q.Q); err != nil {
		return TemplatePage{}, err
	}
	c := newCursors(s.d.Cursors, a, "extraction_templates_list", q)
	after, err := c.open(p.Cursor)
	if err != nil {
		return TemplatePage{}, err
	}
	if q.Slug != "" {
		return s.bySlug(ctx, a, q)
	}
	l := lister[ExtractionTemplate]{
		after: after, limit: limit,
		key:  func(t *ExtractionTemplate) string { return t.ID },
		size: (*ExtractionTemplate).size,
		read: func(ctx context.Context, after string, n int) ([]ExtractionTemplate, string, error) {
			return s.d.Templates.Templates(ctx, TemplateRange{a.Workspace, after, n})
		},
	}
	if needle := strings.ToLower(q.Q); needle != "" {
		l.match = func(t *ExtractionTemplate) bool { return contains(t.Slug, needle) }
	}
	rows, next, err := l.collect(ctx)
	if err != nil {
		return TemplatePage{}, fmt.Errorf("list templates of %s: %w", a.Workspace, err)
	}
	page := TemplatePage{Rows: rows}
	if l.match != nil {
		page.Window = &Window{Examined: l.examined, Complete: next == ""}
	}
	page.Next, err = c.seal(next)
	return page, err
}

func (s *Templates) bySlug(ctx context.Context, a Actor, q TemplateQuery) (TemplatePage, error) {
	t, err := s.d.Templates.Template(ctx, a.Workspace, TemplateID(a.Workspace, q.Slug))
	if apperr.Is(err, apperr.NotFound) || err == nil && (!t.DeletedAt.IsZero() || !contains(t.Slug, strings.ToLower(q.Q))) {
		return TemplatePage{}, nil
	}
	if err != nil {
		return TemplatePage{}, fmt.Errorf("template of %s: %w", a.Workspace, err)
	}
	return TemplatePage{Rows: []ExtractionTemplate{t}}, nil
}

// TemplatePatch is what an upsert sets: a merge-patch of the template whose natural key is workspace and slug.
type TemplatePatch struct {
	Slug      string
	Schema    json.RawMessage // nil: as it is
	Locators  []Locator       // nil: as they are
	Decimal   Field[string]
	DateOrder Field[string]
	Restore   bool
	IfVersion uint64
}

func (p TemplatePatch) apply(a Actor, t *ExtractionTemplate, id string, now time.Time) error {
	switch {
	case p.IfVersion != 0 && p.IfVersion != t.Version:
		return staleVersion(t.Version, "extraction_templates_list")
	case !t.DeletedAt.IsZero() && !p.Restore:
		return apperr.New(apperr.Conflict, "deleted_exists", "A template of this slug was deleted and can still be restored.",
			"Repeat the call with restore true to take it back with what you send now, or choose another slug.")
	}
	next := *t
	if t.Version == 0 {
		next = ExtractionTemplate{ID: id, Workspace: a.Workspace, Slug: p.Slug, CreatedAt: now}
	}
	next.DeletedAt = time.Time{}
	next.Decimal, next.DateOrder = p.Decimal.or(t.Decimal), p.DateOrder.or(t.DateOrder)
	if p.Locators != nil {
		next.Locators = slices.Clone(p.Locators)
	}
	if p.Schema != nil {
		next.Schema = p.Schema
	}
	if _, err := readyTemplateOf(next); err != nil {
		return err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, next.Schema); err != nil {
		return invalid("body.json_schema", "JSON") // the parser has read it
	}
	next.Schema = compact.Bytes()
	if reflect.DeepEqual(next, *t) {
		return nil
	}
	next.UpdatedAt, next.Version = now, t.Version+1
	*t = next
	return nil
}

// Upsert makes the template of a slug or changes the one that is there; created tells which. What was extracted with an older
// version stays, and says with which.
func (s *Templates) Upsert(ctx context.Context, a Actor, p TemplatePatch) (t ExtractionTemplate, created bool, err error) {
	if err := checkSlug("body.slug", p.Slug); err != nil {
		return ExtractionTemplate{}, false, err
	}
	id := TemplateID(a.Workspace, p.Slug)
	t, err = s.update(ctx, a, id, func(t *ExtractionTemplate) error {
		created = t.Version == 0
		return p.apply(a, t, id, s.d.now())
	})
	return t, created && err == nil, err
}

// ref is the id of a template that a path names by id or slug.
func (s *Templates) ref(a Actor, ref string) (string, error) {
	switch {
	case validID("template", ref):
		return ref, nil
	case ValidSlug(ref):
		return TemplateID(a.Workspace, ref), nil
	}
	return "", NoTemplate()
}

// AskDelete says what a person is asked before Delete; nil when the template is deleted already.
func (s *Templates) AskDelete(ctx context.Context, a Actor, ref string) (*Question, error) {
	id, err := s.ref(a, ref)
	if err != nil {
		return nil, err
	}
	t, err := s.d.Templates.Template(ctx, a.Workspace, id)
	if err != nil || !t.DeletedAt.IsZero() {
		return nil, err //nolint:wrapcheck // the store names the step
	}
	return &Question{
		Text:   "Delete extraction template {}: mail that arrives is no longer read by it; what it extracted stays",
		Values: []string{t.Slug}, Targets: map[string]string{id: Version(t.Version)},
	}, nil
}

// Delete takes a template away; an upsert with Restore brings it back. Repeating it answers the same.
func (s *Templates) Delete(ctx context.Context, a Actor, ref string) (ExtractionTemplate, error) {
	id, err := s.ref(a, ref)
	if err != nil {
		return ExtractionTemplate{}, err
	}
	return s.update(ctx, a, id, func(t *ExtractionTemplate) error {
		if t.Version == 0 {
			return NoTemplate()
		}
		if err := a.confirm(id, t.Version, t.DeletedAt.IsZero()); err != nil {
			return err
		}
		if t.DeletedAt.IsZero() {
			t.DeletedAt = s.d.now()
			t.UpdatedAt, t.Version = t.DeletedAt, t.Version+1
		}
		return nil
	})
}

func (s *Templates) update(ctx context.Context, a Actor, id string, change func(*ExtractionTemplate) error) (ExtractionTemplate, error) {
	act, err := s.d.act(a)
	if err != nil {
		return ExtractionTemplate{}, err
	}
	t, err := s.d.Templates.UpdateTemplate(ctx, a.Workspace, id, act, change)
	if err != nil {
		return ExtractionTemplate{}, fmt.Errorf("change template %s: %w", id, err)
	}
	return t, nil
}
