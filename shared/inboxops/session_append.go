package inboxops

import (
	"github.com/buzon-mail/buzon/shared/rest"
)

// The JSON of session_get by hand, most of it ready: FuzzSessionJSON and TestSessionJSON hold it against encoding/json's.

var _ rest.Appender = (*SessionBody)(nil)

// AppendJSON implements rest.Appender.
func (b *SessionBody) AppendJSON(dst []byte) (_ []byte, err error) {
	if dst, err = b.Data.appendJSON(append(dst, `{"data":`...), b.opened); err != nil {
		return dst, err
	}
	dst = append(dst, `,"meta":{`...)
	if b.Meta.Masked {
		dst = append(dst, `"masked":true`...)
	}
	return append(dst, "}}"...), nil
}

// appendJSON takes the scopes and the tools from ready, where that is not nil: it is what the fields were made of.
func (s *Session) appendJSON(dst []byte, ready *opened) (_ []byte, err error) {
	dst = rest.AppendString(append(dst, `{"subject":`...), s.Subject)
	dst = rest.AppendString(append(dst, `,"kind":`...), s.Kind)
	dst = appendOrNull(append(dst, `,"email":`...), s.Email)
	if k := s.Key; k != nil {
		dst = rest.AppendString(append(dst, `,"key":{"id":`...), k.ID)
		dst = rest.AppendString(append(dst, `,"name":`...), k.Name)
		dst = append(rest.AppendStrings(append(dst, `,"inbox_ids":`...), k.InboxIDs), '}')
	} else {
		dst = append(dst, `,"key":null`...)
	}
	if s.Client != "" {
		dst = rest.AppendString(append(dst, `,"client":`...), s.Client)
	}
	dst = rest.AppendString(append(dst, `,"organization":`...), s.Organization)
	dst = rest.AppendString(append(dst, `,"organization_slug":`...), s.OrganizationSlug)
	dst = rest.AppendString(append(dst, `,"organization_name":`...), s.OrganizationName)
	dst = rest.AppendString(append(dst, `,"role":`...), s.Role)
	dst = append(dst, `,"scopes":`...)
	if ready != nil {
		dst = append(dst, ready.scopesJSON...)
	} else {
		dst = rest.AppendStrings(dst, s.Scopes)
	}
	dst = appendWorkspaces(append(dst, `,"workspaces":`...), s.Workspaces)
	dst = appendOrNull(append(dst, `,"default_workspace":`...), s.DefaultWorkspace)
	if dst, err = s.ExpiresAt.AppendJSON(append(dst, `,"expires_at":`...)); err != nil {
		return dst, err //nolint:wrapcheck // the route says what was encoded
	}
	if ready != nil {
		dst = append(dst, ready.toolsJSON...)
	} else {
		dst = appendTools(dst, s.HiddenTools, s.Reconnect, s.ConfirmedTools)
	}
	return append(dst, '}'), nil
}

// appendTools writes the members from hidden_tools on.
func appendTools(dst []byte, hidden []HiddenTool, reconnect string, confirmed []string) []byte {
	if hidden == nil {
		dst = append(dst, `,"hidden_tools":null`...)
	} else {
		dst = append(dst, `,"hidden_tools":[`...)
		for i, h := range hidden {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = rest.AppendString(append(dst, `{"name":`...), h.Name)
			dst = append(rest.AppendString(append(dst, `,"scope":`...), h.Scope), '}')
		}
		dst = append(dst, ']')
	}
	if reconnect != "" {
		dst = rest.AppendString(append(dst, `,"reconnect":`...), reconnect)
	}
	return rest.AppendStrings(append(dst, `,"confirmed_tools":`...), confirmed)
}

func appendWorkspaces(dst []byte, list []Workspace) []byte {
	if list == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		w := &list[i]
		dst = rest.AppendString(append(dst, `{"id":`...), w.ID)
		dst = rest.AppendString(append(dst, `,"slug":`...), w.Slug)
		dst = rest.AppendString(append(dst, `,"name":`...), w.Name)
		dst = append(rest.AppendString(append(dst, `,"role":`...), w.Role), '}')
	}
	return append(dst, ']')
}

func appendOrNull(dst []byte, s *string) []byte {
	if s == nil {
		return append(dst, "null"...)
	}
	return rest.AppendString(dst, *s)
}
