package inbox

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// Upload is a file that somebody is going to put, has put or has used. Its bytes are a blob that came by a signed address, bound to
// the size and the digest.
type Upload struct {
	ID           string    `json:"id"` // upload_ + ULID of the time
	Organization string    `json:"organization"`
	Workspace    string    `json:"workspace"`
	Purpose      string    `json:"purpose"`
	Size         int64     `json:"size"`   // bytes
	SHA256       string    `json:"sha256"` // hex
	Key          string    `json:"key"`    // of the blob
	Subject      string    `json:"subject"`
	Job          string    `json:"job,omitempty"` // that reads it
	CreatedAt    time.Time `json:"created_at"`
	ExpiresAt    time.Time `json:"expires_at"` // row and bytes are gone then
}

// PurposeImport is the one purpose of uploads.
const PurposeImport = "import"

// Bounds of uploads.
const (
	MaxUpload = 256 << 20 // bytes
	// MaxUploads is how many a workspace has at once: what they may take up in all is bounded by it.
	MaxUploads = 20
	// PutLife is how long the address works.
	PutLife = 15 * time.Minute
	// UploadLife is how long the file waits for the job that reads it.
	UploadLife = 24 * time.Hour
	// UploadInUse is how long it stays when a job has begun to read it, which is longer than a job may wait for what it needs.
	UploadInUse = 7 * 24 * time.Hour
)

// PutTicket is how a file is put.
type PutTicket struct {
	Upload  Upload
	URL     string
	Headers map[string]string // the request must carry exactly these
	Expires time.Time         // of the address
}

// Puts makes addresses that take one file.
type Puts interface {
	// PutURL returns an address that takes exactly the bytes of this upload, once, with these headers, until it expires.
	PutURL(ctx context.Context, u Upload, ttl time.Duration) (url string, headers map[string]string, expires time.Time, err error)
}

// UploadStore keeps what is known of uploads. Everything is found under its workspace.
type UploadStore interface {
	// CreateUpload stores a new one with what act brings.
	CreateUpload(ctx context.Context, u Upload, act Act) error
	// Upload finds one; not_found when there is none, or when it has expired.
	Upload(ctx context.Context, workspace, id string) (Upload, error)
	// Uploads lists the first of a workspace that have not expired.
	Uploads(ctx context.Context, workspace string, limit int) ([]Upload, error)
	// StartUploadJob stores a job with its outbox row, that the upload is the job's, and what act brings, in one transaction. start
	// makes the job of the upload as it is and is called again when something came between; its error is returned as it is.
	StartUploadJob(ctx context.Context, workspace, id string, act Act, start func(*Upload) (Job, error)) (Job, error)
}

// NoUpload is the one answer for an upload that is missing, expired or another tenant's.
func NoUpload() *apperr.Error {
	return apperr.New(apperr.NotFound, "", "There is no such upload.", "An upload is kept for a day. Call uploads_create for a new one.")
}

// UploadRequest announces a file.
type UploadRequest struct {
	Purpose string
	Size    int64
	SHA256  string // hex
}

func (r *UploadRequest) check() error {
	if r.Purpose != PurposeImport {
		return invalid("body.purpose", PurposeImport)
	}
	if r.Size < 1 || r.Size > MaxUpload {
		return invalid("body.size", fmt.Sprintf("1 to %d bytes; split a larger mbox file", MaxUpload))
	}
	r.SHA256 = strings.ToLower(r.SHA256)
	if sum, err := hex.DecodeString(r.SHA256); err != nil || len(sum) != 32 {
		return invalid("body.sha256", "the SHA-256 of the file in 64 hexadecimal digits")
	}
	return nil
}

// Imports are the operations that bring in mail which was received elsewhere.
type Imports struct{ d Deps }

// CreateUpload makes an address for a file.
func (s *Imports) CreateUpload(ctx context.Context, a Actor, r UploadRequest) (PutTicket, error) {
	if err := r.check(); err != nil {
		return PutTicket{}, err
	}
	there, err := s.d.Uploads.Uploads(ctx, a.Workspace, MaxUploads)
	if err != nil {
		return PutTicket{}, fmt.Errorf("uploads of %s: %w", a.Workspace, err)
	}
	if len(there) >= MaxUploads { // approximate: two at once may both be the last
		return PutTicket{}, apperr.New(apperr.Conflict, "too_many_uploads", fmt.Sprintf("This workspace has %d uploads that were not used or are in use.", MaxUploads),
			"Import them with emails_import, or wait: what is not used is gone after a day.")
	}
	now := s.d.now()
	id, err := NewID("upload", now, s.d.Rand)
	if err != nil {
		return PutTicket{}, err
	}
	u := Upload{
		ID: id, Organization: a.Organization, Workspace: a.Workspace, Purpose: r.Purpose, Size: r.Size, SHA256: r.SHA256, Subject: a.Subject,
		Key: "upload/" + strings.ToLower(a.Workspace) + "/" + strings.ToLower(id), CreatedAt: now, ExpiresAt: now.Add(UploadLife),
	}
	ticket := PutTicket{Upload: u}
	if ticket.URL, ticket.Headers, ticket.Expires, err = s.d.Puts.PutURL(ctx, u, PutLife); err != nil {
		return PutTicket{}, fmt.Errorf("address of %s: %w", id, err)
	}
	act, err := s.d.act(a)
	if err != nil {
		return PutTicket{}, err
	}
	if err := s.d.Uploads.CreateUpload(ctx, u, act); err != nil {
		return PutTicket{}, fmt.Errorf("create %s: %w", id, err)
	}
	return ticket, nil
}
