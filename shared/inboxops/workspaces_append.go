package inboxops

import (
	"strconv"

	"github.com/buzon-mail/buzon/shared/rest"
)

// The JSON of a list of workspaces by hand; FuzzWorkspacesJSON holds it against encoding/json's.

var _ rest.Appender = (*WorkspacesBody)(nil)

// AppendJSON implements rest.Appender.
func (b *WorkspacesBody) AppendJSON(dst []byte) ([]byte, error) {
	return appendPage(dst, b.Data, func(dst []byte, w *WorkspaceDetail) ([]byte, error) { return w.appendJSON(dst) }, &b.Meta)
}

func (w *WorkspaceDetail) appendJSON(dst []byte) (_ []byte, err error) {
	dst = append(w.Workspace.appendMembers(append(dst, '{')), `,"retention_days":`...)
	if w.Retention != nil {
		dst = strconv.AppendInt(dst, int64(*w.Retention), 10)
	} else {
		dst = append(dst, "null"...)
	}
	dst = rest.AppendString(append(dst, `,"timezone":`...), w.Timezone)
	dst = strconv.AppendInt(append(dst, `,"max_message_bytes":`...), w.MaxBytes, 10)
	if dst, err = w.CreatedAt.AppendJSON(append(dst, `,"created_at":`...)); err != nil {
		return dst, err //nolint:wrapcheck // the route says what was encoded
	}
	if dst, err = w.UpdatedAt.AppendJSON(append(dst, `,"updated_at":`...)); err != nil {
		return dst, err //nolint:wrapcheck // the same
	}
	return append(strconv.AppendUint(append(dst, `,"version":`...), w.Version, 10), '}'), nil
}

func (w *Workspace) appendMembers(dst []byte) []byte {
	dst = rest.AppendString(append(dst, `"id":`...), w.ID)
	dst = rest.AppendString(append(dst, `,"slug":`...), w.Slug)
	dst = rest.AppendString(append(dst, `,"name":`...), w.Name)
	return rest.AppendString(append(dst, `,"role":`...), w.Role)
}
