package inboxops

import (
	"github.com/buzon-mail/buzon/shared/rest"
)

// The JSON of session_get by hand, most of it ready: FuzzSessionJSON and TestSessionJSON hold it against encoding/json's.

var _ rest.EscapedAppender = (*SessionBody)(nil)

// AppendJSON implements rest.Appender. What b was opened for it takes as it stands there: that is what the fields were made of.
func (b *SessionBody) AppendJSON(dst []byte) (_ []byte, err error) {
	dst = b.Data.appendWho(append(dst, `{"data":{`...))
	if b.opened != nil {
		dst = append(dst, b.opened.scopesJSON...)
	} else {
		dst = rest.AppendStrings(dst, b.Data.Scopes)
	}
	if dst, err = b.Data.appendWhere(dst); err != nil {
		return dst, err
	}
	if b.opened != nil {
		dst = append(dst, b.opened.toolsJSON...)
	} else {
		dst = appendTools(dst, b.Data.HiddenTools, b.Data.Reconnect, b.Data.ConfirmedTools)
	}
	return b.Meta.appendEnd(dst), nil
}

// AppendEscaped implements rest.EscapedAppender.
func (b *SessionBody) AppendEscaped(dst []byte) (_ []byte, ok bool) {
	if b.opened == nil {
		return dst, false
	}
	var room [1 << 10]byte // on the stack
	whole := dst
	who := b.Data.appendWho(append(room[:0], `{"data":{`...))
	dst = append(rest.AppendEscaped(dst, who), b.opened.scopesText...)
	where, err := b.Data.appendWhere(room[:0])
	if err != nil {
		return whole, false
	}
	dst = append(rest.AppendEscaped(dst, where), b.opened.toolsText...)
	return rest.AppendEscaped(dst, b.Meta.appendEnd(room[:0])), true
}

// appendWho writes the members up to the value of scopes.
func (s *Session) appendWho(dst []byte) []byte {
	dst = rest.AppendString(append(dst, `"subject":`...), s.Subject)
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
	return append(dst, `,"scopes":`...)
}

// appendWhere writes the members between scopes and hidden_tools.
func (s *Session) appendWhere(dst []byte) ([]byte, error) {
	dst = appendWorkspaces(append(dst, `,"workspaces":`...), s.Workspaces)
	dst = appendOrNull(append(dst, `,"default_workspace":`...), s.DefaultWorkspace)
	return s.ExpiresAt.AppendJSON(append(dst, `,"expires_at":`...)) //nolint:wrapcheck // the route says what was encoded
}

// appendEnd writes what is behind the session.
func (m ItemMeta) appendEnd(dst []byte) []byte {
	if m.Masked {
		return append(dst, `},"meta":{"masked":true}}`...)
	}
	return append(dst, `},"meta":{}}`...)
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
		dst = append(list[i].appendMembers(append(dst, '{')), '}')
	}
	return append(dst, ']')
}

func appendOrNull(dst []byte, s *string) []byte {
	if s == nil {
		return append(dst, "null"...)
	}
	return rest.AppendString(dst, *s)
}
