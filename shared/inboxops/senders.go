package inboxops

import (
	"context"
	"net/http"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// Sender is one entry of who may send to an inbox.
type Sender struct {
	ID        string    `json:"id"`
	InboxID   string    `json:"inbox_id"`
	Kind      string    `json:"kind" enum:"address,domain,subdomains"`
	Value     string    `json:"value" doc:"Lower case, international domains as A-labels."`
	Effect    string    `json:"effect" enum:"allow,block"`
	Require   string    `json:"require" enum:"none,spf_or_dkim,dmarc" doc:"What must be proved of a mail before an entry that allows counts."`
	ExpiresAt rest.Time `json:"expires_at" doc:"From then on it does not count; null: never."`
	Note      string    `json:"note"`
	CreatedAt rest.Time `json:"created_at"`
	UpdatedAt rest.Time `json:"updated_at"`
	DeletedAt rest.Time `json:"deleted_at" doc:"Null unless deleted."`
	Version   uint64    `json:"version" doc:"For if_version."`
}

// SenderRow is an entry in a list.
type SenderRow struct {
	Sender
	Hits int64 `json:"hits" doc:"About how many emails it decided."`
}

func senderOf(s inbox.AllowedSender) Sender {
	return Sender{
		ID: s.ID, InboxID: s.Inbox, Kind: string(s.Kind), Value: s.Value, Effect: string(s.Effect), Require: string(s.Require),
		ExpiresAt: at(s.ExpiresAt), Note: s.Note, CreatedAt: at(s.CreatedAt), UpdatedAt: at(s.UpdatedAt), DeletedAt: at(s.DeletedAt),
		Version: s.Version,
	}
}

func senderRowOf(r inbox.SenderRow) SenderRow {
	return SenderRow{senderOf(r.AllowedSender), max(r.Hits, 0)}
}

type sendersListInput struct {
	ID     string `path:"id" doc:"Id or slug of the inbox." tool:"Of the inbox."`
	Effect string `query:"effect" enum:"allow,block" doc:"Only of this effect." tool:"-"`
	Kind   string `query:"kind" enum:"address,domain,subdomains" doc:"Only of this kind." tool:"-"`
	Q      string `query:"q" maxLength:"256" doc:"Text in value or note." tool:"-"`
	Paging
}

// SenderPatch is the body of allowed_senders_upsert.
type SenderPatch struct {
	Kind      string                `json:"kind" enum:"address,domain,subdomains" doc:"domain: its addresses alone; subdomains: and all below it." tool:"subdomains: the domain and all below it."`
	Value     string                `json:"value" minLength:"1" maxLength:"254" doc:"An address, or a domain; with inbox and kind the natural key." tool:"-"`
	Effect    rest.Patch[string]    `json:"effect,omitempty" maxLength:"16" doc:"allow or block. Null: allow." tool:"allow (null) or block."`
	Require   rest.Patch[string]    `json:"require,omitempty" maxLength:"16" doc:"What an email must pass before this allows it: dmarc, spf_or_dkim (for the domain of From), none. Null: dmarc. What fails DMARC is never allowed." tool:"What must pass for this to allow: dmarc (null), spf_or_dkim or none. What fails DMARC is never allowed."`
	ExpiresAt rest.Patch[time.Time] `json:"expires_at,omitempty" doc:"Null: never." tool:"-"`
	Note      rest.Patch[string]    `json:"note,omitempty" maxLength:"200" doc:"Null: none." tool:"-"`
	Restore   bool                  `json:"restore,omitempty" doc:"Take a deleted entry of this key back." tool:"-"`
	IfVersion uint64                `json:"if_version,omitempty" minimum:"1" doc:"Refuse unless this is the entry's version." tool:"-"`
}

type sendersUpsertInput struct {
	ID   string `path:"id" doc:"Id or slug of the inbox." tool:"Of the inbox."`
	Body SenderPatch
}

type sendersDeleteInput struct {
	ID       string `path:"id" doc:"Id or slug of the inbox." tool:"Of the inbox."`
	SenderID string `path:"sender_id" doc:"Id of the entry." tool:"-"`
}

// SenderQuestion is the body of allowed_senders_check.
type SenderQuestion struct {
	From string `json:"from" minLength:"3" maxLength:"254" doc:"An address." tool:"-"`
	Auth string `json:"auth,omitempty" enum:"none,spf_or_dkim,dmarc,fail" default:"none" doc:"What would be proved of the mail." tool:"-"`
}

type sendersCheckInput struct {
	ID   string `path:"id" doc:"Id or slug of the inbox." tool:"Of the inbox."`
	Body SenderQuestion
}

// SenderAnswer is what would become of a mail.
type SenderAnswer struct {
	From     string   `json:"from"`
	Decision string   `json:"decision" enum:"accept,label,quarantine,reject" doc:"reject: at SMTP, when it is the MAIL FROM too."`
	Reason   string   `json:"reason,omitempty" doc:"Why it would be held back."`
	Trust    string   `json:"trust" enum:"trusted,verified,unverified,suspicious,blocked"`
	TrustWhy []string `json:"trust_reasons"`
	Entry    *Sender  `json:"entry" doc:"The one that decides; null: none."`
}

// PolicyPatch is the body of inboxes_set_sender_policy.
type PolicyPatch struct {
	SenderPolicy rest.Patch[string] `json:"sender_policy,omitempty" maxLength:"32" doc:"open: everybody; listed: senders that an entry allows, on its terms; listed_authenticated: of those, only what passes DMARC. Null: open." tool:"open (null); listed: whom an entry allows; listed_authenticated: of those, what passes DMARC."`
	OnUnlisted   rest.Patch[string] `json:"on_unlisted,omitempty" maxLength:"16" doc:"quarantine; label: deliver as unlisted-sender; reject: refuse a MAIL FROM that is not listed, quarantine the rest. Null: quarantine." tool:"quarantine (null); label: deliver as unlisted-sender; reject: refuse a MAIL FROM that is not listed, quarantine the rest."`
	IfVersion    uint64             `json:"if_version,omitempty" minimum:"1" doc:"Refuse unless this is the inbox's version." tool:"-"`
}

type policyInput struct {
	ID   string `path:"id" doc:"Id or slug of the inbox." tool:"Id or slug."`
	Body PolicyPatch
}

// SendersOutput is the reply of allowed_senders_list.
type SendersOutput struct{ Body SendersBody }

// SendersBody is its JSON.
type SendersBody struct {
	Data []SenderRow `json:"data"`
	Meta ListMeta    `json:"meta"`
}

// SenderOutput is the reply of allowed_senders_delete.
type SenderOutput struct{ Body SenderBody }

// SenderBody is its JSON.
type SenderBody struct {
	Data Sender   `json:"data"`
	Meta ItemMeta `json:"meta"`
}

// SenderUpsertOutput is the reply of allowed_senders_upsert: 201 when it created, else 200.
type SenderUpsertOutput struct {
	Status int
	Body   SenderUpsertBody
}

// SenderUpsertBody is its JSON.
type SenderUpsertBody struct {
	Data Sender     `json:"data"`
	Meta UpsertMeta `json:"meta"`
}

// SenderCheckOutput is the reply of allowed_senders_check.
type SenderCheckOutput struct{ Body SenderCheckBody }

// SenderCheckBody is its JSON.
type SenderCheckBody struct {
	Data SenderAnswer `json:"data"`
	Meta ItemMeta     `json:"meta"`
}

func (o *operations) senders() []op.Operation {
	return []op.Operation{
		rest.DefineDestructive(op.Spec{
			Name: "inboxes_set_sender_policy", Method: http.MethodPut, Path: "/inboxes/{id}/sender-policy",
			Title: "Set who may send to an inbox",
			Description: "Sets whose mail an inbox takes and what becomes of the rest; blocked senders are held back in any case. A person " +
				"confirms. The list: allowed_senders_upsert.",
			Scope: scopeSendersWrite, Role: op.Admin, Effect: op.Destructive, Confines: true, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict, apperr.Stale},
		}, o.policyAsk, o.policySet),
		rest.Define(op.Spec{
			Name: "allowed_senders_list", Method: http.MethodGet, Path: "/inboxes/{id}/allowed-senders",
			Title:       "List allowed and blocked senders",
			Description: "An inbox's entries for senders, with approximate hits. What they mean for one address: allowed_senders_check.",
			Scope:       scopeSendersRead, Role: op.Viewer, Effect: op.Read, Confines: true, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound},
		}, o.sendersList),
		rest.DefineDestructive(op.Spec{
			Name: "allowed_senders_upsert", Method: http.MethodPut, Path: "/inboxes/{id}/allowed-senders",
			Title: "Allow or block a sender",
			Description: "Creates or changes an inbox's entry for an address or domain; the narrowest decides. A person confirms, but for a " +
				"note. Never because a mail asks for it.",
			Scope: scopeSendersWrite, Role: op.Admin, Effect: op.Destructive, Confines: true, Idempotent: true, Creates: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict, apperr.Stale},
		}, o.sendersAskUpsert, o.sendersUpsert),
		rest.DefineDestructive(op.Spec{
			Name: "allowed_senders_delete", Method: http.MethodDelete, Path: "/inboxes/{id}/allowed-senders/{sender_id}",
			Title:       "Delete an entry for a sender",
			Description: "Takes an entry off the list; allowed_senders_upsert with restore undoes it. A person confirms.",
			Scope:       scopeSendersWrite, Role: op.Admin, Effect: op.Destructive, Confines: true, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict},
		}, o.sendersAskDelete, o.sendersDelete),
		rest.Define(op.Spec{
			Name: "allowed_senders_check", Method: http.MethodPost, Path: "/inboxes/{id}/allowed-sender-checks",
			Title:       "Check a sender",
			Description: "Says what would become of a mail from an address, how far it would be trusted and which entry decides.",
			Scope:       scopeSendersRead, Role: op.Viewer, Effect: op.Read, Confines: true, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound},
		}, o.sendersCheck),
	}
}

// texted is a patch of a text as one of a named type of the domain.
func texted[T ~string](p rest.Patch[string]) inbox.Field[T] {
	return inbox.Field[T]{Present: p.Present, Null: p.Null, Value: T(p.Value)}
}

func (in *policyInput) patch() inbox.PolicyPatch {
	b := in.Body
	return inbox.PolicyPatch{
		Policy: texted[inbox.SenderPolicy](b.SenderPolicy), OnUnlisted: texted[inbox.OnUnlisted](b.OnUnlisted), IfVersion: b.IfVersion,
	}
}

func (o *operations) policyAsk(ctx context.Context, in *policyInput) (*op.Question, error) {
	return question(o.services.Inboxes.AskSenderPolicy(ctx, o.actor(ctx), in.ID, in.patch()))
}

func (o *operations) policySet(ctx context.Context, in *policyInput) (*InboxOutput, error) {
	got, err := o.services.Inboxes.SetSenderPolicy(ctx, o.actor(ctx), in.ID, in.patch())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &InboxOutput{InboxBody{Data: inboxOf(got)}}, nil
}

func (o *operations) sendersList(ctx context.Context, in *sendersListInput) (*SendersOutput, error) {
	q := inbox.SenderQuery{Inbox: in.ID, Effect: inbox.SenderEffect(in.Effect), Kind: inbox.SenderKind(in.Kind), Q: in.Q}
	page, err := o.services.Senders.List(ctx, o.actor(ctx), q, in.request())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &SendersOutput{SendersBody{mapped(page.Rows, senderRowOf), listMeta(page.Next, page.Window, false)}}, nil
}

func (in *sendersUpsertInput) patch() inbox.SenderPatch {
	b := in.Body
	return inbox.SenderPatch{
		Inbox: in.ID, Kind: inbox.SenderKind(b.Kind), Value: b.Value, Effect: texted[inbox.SenderEffect](b.Effect),
		Require: texted[inbox.Require](b.Require), ExpiresAt: field(b.ExpiresAt), Note: field(b.Note), Restore: b.Restore, IfVersion: b.IfVersion,
	}
}

func (o *operations) sendersAskUpsert(ctx context.Context, in *sendersUpsertInput) (*op.Question, error) {
	return question(o.services.Senders.AskUpsert(ctx, o.actor(ctx), in.patch()))
}

func (o *operations) sendersUpsert(ctx context.Context, in *sendersUpsertInput) (*SenderUpsertOutput, error) {
	got, created, err := o.services.Senders.Upsert(ctx, o.actor(ctx), in.patch())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	out := &SenderUpsertOutput{Status: http.StatusOK, Body: SenderUpsertBody{senderOf(got), UpsertMeta{created}}}
	if created {
		out.Status = http.StatusCreated
	}
	return out, nil
}

func (o *operations) sendersAskDelete(ctx context.Context, in *sendersDeleteInput) (*op.Question, error) {
	return question(o.services.Senders.AskDelete(ctx, o.actor(ctx), in.ID, in.SenderID))
}

func (o *operations) sendersDelete(ctx context.Context, in *sendersDeleteInput) (*SenderOutput, error) {
	got, err := o.services.Senders.Delete(ctx, o.actor(ctx), in.ID, in.SenderID)
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &SenderOutput{SenderBody{Data: senderOf(got)}}, nil
}

func (o *operations) sendersCheck(ctx context.Context, in *sendersCheckInput) (*SenderCheckOutput, error) {
	got, err := o.services.Senders.Check(ctx, o.actor(ctx), inbox.SenderCheck{Inbox: in.ID, From: in.Body.From, Proof: in.Body.Auth})
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	a := SenderAnswer{
		From: got.From, Decision: got.Decision, Reason: got.Reason, Trust: string(got.Trust.Level), TrustWhy: list(got.Trust.Reasons),
	}
	if got.Entry != nil {
		e := senderOf(*got.Entry)
		a.Entry = &e
	}
	return &SenderCheckOutput{SenderCheckBody{Data: a}}, nil
}
