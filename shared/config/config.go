// Package config is the one reader of the environment. Each process has a load function that returns every problem at once,
// each with its variable and what to do, so that nobody mends a deployment one restart at a time. It reads variables and
// nothing else: no files, no network, no clock. It depends on the standard library only and knows no other room.
//
// A new variable must work when it is absent: old configuration runs new code.
package config

import (
	"fmt"
	"strings"
)

// Getenv looks a variable up, as os.Getenv: empty and unset are the same.
type Getenv func(name string) string

// Problem is one fault of the environment.
type Problem struct {
	Variable string
	Message  string // what is wrong and what to do
}

// Problems is every fault of the environment, in the order in which the variables are read.
type Problems []Problem

// Error lists one problem a line.
func (p Problems) Error() string {
	var b strings.Builder
	b.WriteString("the environment is not usable:")
	for _, one := range p {
		b.WriteString("\n  " + one.Variable + ": " + one.Message)
	}
	return b.String()
}

// Rates bounds what one grant may do.
type Rates struct {
	PerMinute        int // requests; 0 is off
	OutwardPerMinute int // of them, those that send something out; 0 is off
}

// The variables. They are listed in the README.
const (
	varHTTPAddr       = "BUZON_HTTP_ADDR"
	varSMTPAddr       = "BUZON_SMTP_ADDR"
	varDataDir        = "BUZON_DATA_DIR"
	varPublicURL      = "BUZON_PUBLIC_URL"
	varDemo           = "BUZON_DEMO"
	varRate           = "BUZON_RATE_PER_MINUTE"
	varOutward        = "BUZON_OUTWARD_PER_MINUTE"
	varConcurrency    = "BUZON_CONCURRENCY"
	varOrigins        = "BUZON_ALLOWED_ORIGINS"
	varTLSCert        = "BUZON_SMTP_TLS_CERT"
	varTLSKey         = "BUZON_SMTP_TLS_KEY"
	varSMTPDomain     = "BUZON_SMTP_DOMAIN"
	varRelay          = "BUZON_SMTP_RELAY"
	varPublicDiscover = "BUZON_PUBLIC_DISCOVER"
	varOIDCIssuer     = "BUZON_OIDC_ISSUER"
	varOIDCClient     = "BUZON_OIDC_CLIENT_ID"
	varOIDCSecret     = "BUZON_OIDC_CLIENT_SECRET"
	varOIDCSecretName = "BUZON_OIDC_SECRET" //nolint:gosec // a name
	varOIDCAllow      = "BUZON_OIDC_ALLOW"
	varOIDCName       = "BUZON_OIDC_NAME"
	varStore          = "BUZON_STORE"
	varRootSecrets    = "BUZON_ROOT_SECRETS"
	varKeySet         = "BUZON_KEY_SET"
	varWebhookKey     = "BUZON_WEBHOOK_KEY"
	varCoreTable      = "BUZON_CORE_TABLE"
	varEphemeralTable = "BUZON_EPHEMERAL_TABLE"
	varBucket         = "BUZON_BUCKET"
	varJobsQueue      = "BUZON_JOBS_QUEUE"
	varInvokeMode     = "BUZON_INVOKE_MODE"
	varEmulator       = "BUZON_EMULATOR"
	varSAMLocal       = "AWS_SAM_LOCAL"
	// varLambda is set by Lambda itself and by no emulator in its usual mode: neither SAM nor the Runtime Interface Emulator
	// (which sets it only when AWS_LAMBDA_MAX_CONCURRENCY is set, its mode for managed instances).
	varLambda = "AWS_LAMBDA_INITIALIZATION_TYPE"
	// Lambda sets these in every function.
	varRegion  = "AWS_REGION"
	varSelf    = "AWS_LAMBDA_FUNCTION_NAME"
	varKeyID   = "AWS_ACCESS_KEY_ID"
	varSecret  = "AWS_SECRET_ACCESS_KEY" //nolint:gosec // a name
	varSession = "AWS_SESSION_TOKEN"     //nolint:gosec // a name
)

// reader collects problems while values are read.
type reader struct {
	getenv   Getenv
	problems Problems
}

func (r *reader) fault(variable, format string, args ...any) {
	r.problems = append(r.problems, Problem{variable, fmt.Sprintf(format, args...)})
}

// err is nil when there was no problem; a nil Problems in an error would not be.
func (r *reader) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return r.problems
}

func (r *reader) or(variable, fallback string) string {
	if v := r.getenv(variable); v != "" {
		return v
	}
	return fallback
}

// flag reads a switch. Anything but the words it knows is a problem: a typo must not open or close something silently.
func (r *reader) flag(variable string) bool {
	switch v := r.getenv(variable); strings.ToLower(v) {
	case "", "0", "false":
		return false
	case "1", "true":
		return true
	default:
		r.fault(variable, "%s is neither 1 nor 0.", quote(v))
		return false
	}
}

// onLambda reports real Lambda, where everything meant for one machine is refused.
func (r *reader) onLambda() bool { return r.getenv(varLambda) != "" }

// quote shows a value in a message, cut so that a pasted file does not fill the log.
func quote(v string) string {
	if len(v) > 80 {
		return fmt.Sprintf("%.80q...", v)
	}
	return fmt.Sprintf("%q", v)
}
