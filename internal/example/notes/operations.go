package main

import (
	"net/http"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// named is the input of an operation on one note. A parameter of a path is an id or a slug, by its name: {id}, {..._id}, {slug}.
type named struct {
	Slug string `path:"slug" doc:"Name of the note."`
}

// writing is a note's name and its new text.
type writing struct {
	Slug string `path:"slug" doc:"Name of the note."`
	Body struct {
		Text string `json:"text" maxLength:"10000"`
	}
}

// written is one note.
type written struct {
	Body struct {
		Data note `json:"data"`
	}
}

// listed is many.
type listed struct {
	Body struct {
		Data []note `json:"data"`
	}
}

// scopes are what a token can be limited to; notes:write implies notes:read.
func scopes() (*op.Vocabulary, error) {
	return op.NewVocabulary([]op.ScopeInfo{
		{Name: "notes:read", Description: "Read notes"}, {Name: "notes:write", Description: "Write and delete notes"},
	})
}

// catalogue declares every operation: each is a route, a tool and its documents.
func catalogue(n *notes) (*op.Catalogue, error) {
	v, err := scopes()
	if err != nil {
		return nil, err
	}
	return op.NewCatalogue(v, []op.Operation{
		rest.Define(op.Spec{
			Name: "notes_list", Method: http.MethodGet, Path: "/notes", Title: "List notes", Description: "Lists the first 100 notes, by name.",
			Scope: "notes:read", Role: op.Viewer, Effect: op.Read, AnyTenant: true,
		}, n.list),
		rest.Define(op.Spec{
			Name: "notes_write", Method: http.MethodPut, Path: "/notes/{slug}", Title: "Write a note", Description: "Creates a note or replaces its text.",
			Scope: "notes:write", Role: op.Operator, Effect: op.Write, Idempotent: true, AnyTenant: true, Errors: []apperr.Kind{apperr.Stale},
		}, n.write),
		rest.DefineDestructive(op.Spec{
			Name: "notes_delete", Method: http.MethodDelete, Path: "/notes/{slug}", Title: "Delete a note", Description: "Deletes a note for good. A person confirms it.",
			Scope: "notes:write", Role: op.Operator, Idempotent: true, AnyTenant: true, Status: http.StatusNoContent,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict, apperr.Stale},
		}, n.ask, n.remove),
	})
}
