package oauth

// The grant types (RFC 6749 sections 4.1.3, 4.4.2, 6).
const (
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
	grantClient  = "client_credentials"
)
