package mcp

import (
	"context"
	"encoding/json"
	"net/http"
)

// Resources is what a server offers as resources. Deps without it serves none of resources/*.
type Resources interface {
	// ListResources returns a page of the resources that the caller may read, in a fixed order. ErrUnknown: no such position.
	ListResources(ctx context.Context, r *ListRequest) (Page[Resource], error)
	// ListTemplates returns a page of the URI templates that the caller may fill in. ErrUnknown: no such position.
	ListTemplates(ctx context.Context, r *ListRequest) (Page[ResourceTemplate], error)
	// ReadResource returns at least one part. ErrUnknown: no such resource for this caller. *ScopeError, *Ask, *ParamsError and ErrAnswer as
	// for tools; anything else is internal.
	ReadResource(ctx context.Context, r *ReadRequest) (*ReadResult, error)
}

// Prompts is what a server offers as prompts. Deps without it serves none of prompts/*.
type Prompts interface {
	// ListPrompts returns a page of the prompts that the caller may get, in a fixed order. ErrUnknown: no such position.
	ListPrompts(ctx context.Context, r *ListRequest) (Page[Prompt], error)
	// GetPrompt fills in one prompt. ErrUnknown: no such prompt for this caller. An *apperr.Error of kind invalid or a *ParamsError: an argument
	// is missing or wrong. *ScopeError, *Ask and ErrAnswer as for tools; anything else is internal.
	GetPrompt(ctx context.Context, r *PromptRequest) (*PromptResult, error)
}

// Completer completes arguments of prompts and of resource templates. Deps without it does not serve completion/complete.
type Completer interface {
	// Complete returns the values that begin the way the client's does. ErrUnknown: no such prompt or template for this caller.
	Complete(ctx context.Context, r *CompleteRequest) (Completion, error)
}

// Page is one page of a list.
type Page[T any] struct {
	Items []T
	Next  string // the position of the next page, any text; the client sees it sealed. Empty: this is the last page.
}

// Resource is something that can be read. What a revision does not know of it is left out.
type Resource struct {
	URI         string
	Name        string
	Title       string
	Description string
	MIMEType    string
	Size        int64 // bytes; 0: not said
	Annotations *Annotations
	Icons       []Icon
}

// ResourceTemplate is a family of resources, by a URI template (RFC 6570).
type ResourceTemplate struct {
	URITemplate string
	Name        string
	Title       string
	Description string
	MIMEType    string
	Annotations *Annotations
	Icons       []Icon
}

// Prompt is a prompt that can be got.
type Prompt struct {
	Name        string
	Title       string
	Description string
	Arguments   []PromptArgument
	Icons       []Icon
}

// PromptArgument is an argument of a prompt.
type PromptArgument struct {
	Name        string
	Title       string
	Description string
	Required    bool
}

// Annotations are hints on how to use a resource or a content block.
type Annotations struct {
	Audience     []string // user, assistant
	Priority     *float64 // 0 to 1
	LastModified string   // ISO 8601
}

// Icon is an image for a list.
type Icon struct {
	Src      string   // https: or data:
	MIMEType string   // empty: not said
	Sizes    []string // "48x48", "any"
	Theme    string   // light, dark or empty
}

// ReadRequest is one resources/read.
type ReadRequest struct {
	Caller       Caller
	Version      Version
	URI          string
	Capabilities json.RawMessage // of the client; nil in the 2025 era
	Header       http.Header     // of the HTTP request; read only
	Input        *Input          // what the client answered; nil on a first round
	Notify       *Notifier       // nil when the client asked for no notifications
}

// CanAsk reports whether the client can be asked all of this; see Ask.
func (r *ReadRequest) CanAsk(n Needs) bool { return canAsk(r.Version, r.Capabilities, n) }

// ReadResult is what a resource holds.
type ReadResult struct {
	Contents []ResourceContents
	Meta     []byte // rendered members for the result's _meta without braces; empty for none
}

// ResourceContents is one part of a resource: text, or bytes when Blob is not nil.
type ResourceContents struct {
	URI      string
	MIMEType string
	Text     string
	Blob     []byte
}

// PromptRequest is one prompts/get.
type PromptRequest struct {
	Caller       Caller
	Version      Version
	Name         string
	Arguments    map[string]string
	Capabilities json.RawMessage // of the client; nil in the 2025 era
	Header       http.Header     // of the HTTP request; read only
	Input        *Input          // what the client answered; nil on a first round
	Notify       *Notifier       // nil when the client asked for no notifications
}

// CanAsk reports whether the client can be asked all of this; see Ask.
func (r *PromptRequest) CanAsk(n Needs) bool { return canAsk(r.Version, r.Capabilities, n) }

// PromptResult is a prompt filled in.
type PromptResult struct {
	Description string
	Messages    []Message
	Meta        []byte // rendered members for the result's _meta without braces; empty for none
}

// Message is a part of a conversation.
type Message struct {
	Role    string // user or assistant
	Content Content
}

// CompleteRequest is one completion/complete. Exactly one of Prompt and Template is set.
type CompleteRequest struct {
	Caller   Caller
	Version  Version
	Header   http.Header       // of the HTTP request; read only
	Prompt   string            // name of a prompt
	Template string            // URI template, or a URI
	Argument string            // which argument or variable
	Value    string            // what was typed so far
	Context  map[string]string // arguments that are settled already; nil when none was sent or the revision has none
}

// Completion is a list of suggestions. A client sees 100 at most.
type Completion struct {
	Values  []string
	Total   int // of all values; 0: not said
	HasMore bool
}

// LegacyMethod serves a method of the 2025 era that this package knows by name only. The result is always empty.
type LegacyMethod func(ctx context.Context, r *LegacyRequest) error

// LegacyRequest is one request for a LegacyMethod.
type LegacyRequest struct {
	Caller  Caller
	Version Version
	Params  json.RawMessage // an object, or nil; valid until the call returns
}
