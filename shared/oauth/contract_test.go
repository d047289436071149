package oauth_test

import (
	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/oauth"
)

// The resource is what the protocol asks for challenges; only a test may know both rooms.
var _ mcp.Challenger = (*oauth.Resource)(nil)
