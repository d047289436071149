package inboxops

import (
	"context"
	"net/http"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// UploadTicket is where and how a file is put.
type UploadTicket struct {
	ID        string            `json:"upload_id"`
	PutURL    string            `json:"put_url" doc:"PUT exactly the announced bytes here, once, without credentials."`
	Headers   map[string]string `json:"put_headers" doc:"Headers that the PUT must carry."`
	ExpiresAt rest.Time         `json:"expires_at" doc:"Of put_url."`
	KeptUntil rest.Time         `json:"kept_until" doc:"An import must have begun by then."`
}

// UploadTicketOutput is the reply of uploads_create.
type UploadTicketOutput struct{ Body UploadTicketBody }

// UploadTicketBody is its JSON.
type UploadTicketBody struct {
	Data UploadTicket `json:"data"`
}

// UploadCreate is the body of uploads_create.
type UploadCreate struct {
	Purpose string `json:"purpose" enum:"import"`
	Size    int64  `json:"size" minimum:"1" maximum:"268435456" doc:"Bytes." tool:""`
	SHA256  string `json:"sha256" minLength:"64" maxLength:"64" doc:"Hexadecimal." tool:"-"`
}

type uploadsCreateInput struct{ Body UploadCreate }

// EmailImport is the body of emails_import.
type EmailImport struct {
	Inbox  string `json:"inbox" doc:"Id or slug." tool:"-"`
	Upload string `json:"upload_id"`
	Format string `json:"format" enum:"message/rfc822,mbox"`
	Notify bool   `json:"notify,omitempty" doc:"Tell webhooks as of new mail." tool:"Tell webhooks as of new mail."`
}

type emailsImportInput struct {
	rest.RequiredKey
	Body EmailImport
}

func (o *operations) imports() []op.Operation {
	return []op.Operation{
		rest.Define(op.Spec{
			Name: "uploads_create", Method: http.MethodPost, Path: "/uploads",
			Title:       "Announce a file",
			Description: "Returns an address to PUT a file to, for emails_import.",
			Scope:       scopeEmailsWrite, Role: op.Operator, Effect: op.Write, Status: http.StatusCreated,
			Errors: []apperr.Kind{apperr.Conflict},
		}, o.uploadsCreate),
		rest.Define(op.Spec{
			Name: inbox.KindImport, Method: http.MethodPost, Path: "/email-imports",
			Title: "Import emails from a file",
			Description: "Starts a job that brings an uploaded mail or mbox file into an inbox and counts what was imported, known or refused. " +
				"Senders count as unverified. Follow it with jobs_get.",
			Scope: scopeEmailsWrite, Role: op.Operator, Effect: op.Write, Outward: true, Job: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict, apperr.TooLarge},
		}, o.emailsImport),
	}
}

func (o *operations) uploadsCreate(ctx context.Context, in *uploadsCreateInput) (*UploadTicketOutput, error) {
	t, err := o.services.Imports.CreateUpload(ctx, o.actor(ctx), inbox.UploadRequest{
		Purpose: in.Body.Purpose, Size: in.Body.Size, SHA256: in.Body.SHA256,
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &UploadTicketOutput{UploadTicketBody{UploadTicket{
		ID: t.Upload.ID, PutURL: t.URL, Headers: t.Headers, ExpiresAt: at(t.Expires), KeptUntil: at(t.Upload.ExpiresAt),
	}}}, nil
}

func (o *operations) emailsImport(ctx context.Context, in *emailsImportInput) (*rest.StartedOutput, error) {
	return started(o.services.Imports.Import(ctx, o.actor(ctx), inbox.ImportRequest{
		Inbox: in.Body.Inbox, Upload: in.Body.Upload, Format: in.Body.Format, Notify: in.Body.Notify,
	}))
}
