package awsclient

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
)

// Code is AWS's name of the failure, without a namespace; empty where no service answered.
func Code(err error) string {
	if err == nil {
		return ""
	}
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return ""
	}
	code := api.ErrorCode()
	return code[strings.LastIndexByte(code, '#')+1:]
}

// Status is the HTTP status of the answer; 0 where no service answered.
func Status(err error) int {
	var r interface{ HTTPStatusCode() int }
	if errors.As(err, &r) {
		return r.HTTPStatusCode()
	}
	return 0
}

// throttled reports that the service refused because of the rate. Nothing was done.
func throttled(err error) bool {
	_, known := retry.DefaultThrottleErrorCodes[Code(err)]
	return known || Status(err) == http.StatusTooManyRequests
}

// Refused reports that a request surely changed nothing: the service answered that it will not do it, or was never reached.
// What is left is unknown: a timeout or a lost connection after the request was sent, a 5xx, an answer that can't be read.
func Refused(err error) bool {
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return true
	}
	code, status := Code(err), Status(err)
	if code == "RequestTimeout" || code == "TransactionInProgressException" { // 400 by number; the work may be under way
		return false
	}
	return code != "" && (throttled(err) || status >= 400 && status < 500)
}

// Explain returns what an engine may say of a failure, to the log and to no caller: the service's code, status and request id
// and, where it helps whoever has to mend it, the message. AWS's own error does not go out, and neither does the message of a
// validation: it can repeat what was sent.
func Explain(err error) error {
	text := Brief(err).Error()
	if api, ok := errors.AsType[smithy.APIError](err); ok && !strings.HasPrefix(Code(err), "Validation") && api.ErrorMessage() != "" {
		text += ": " + bounded(api.ErrorMessage())
	}
	return errors.New(text)
}

// Brief is Explain without the service's message, for calls whose arguments no log may show.
func Brief(err error) error {
	code, status := Code(err), Status(err)
	if code == "" {
		return fmt.Errorf("no usable answer (HTTP status %d): %s", status, bounded(cause(err)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (HTTP status %d", code, status)
	var r interface{ ServiceRequestID() string }
	if errors.As(err, &r) && r.ServiceRequestID() != "" {
		fmt.Fprintf(&b, ", request %s", bounded(r.ServiceRequestID()))
	}
	b.WriteString(")")
	if hint := hint(code); hint != "" {
		b.WriteString(": " + hint)
	}
	return errors.New(b.String())
}

// hint says what to do about the failures that no retry mends.
func hint(code string) string {
	switch code {
	case "ExpiredToken", "ExpiredTokenException":
		return "the credentials of this process have expired"
	case "UnrecognizedClientException", "InvalidAccessKeyId", "InvalidClientTokenId", "MissingAuthenticationToken", "MissingAuthenticationTokenException":
		return "AWS does not know the credentials of this process"
	case "AccessDenied", "AccessDeniedException", "AccessDeniedFault":
		return "the role of this process lacks a permission"
	case "RequestTimeTooSkewed", "InvalidSignatureException", "SignatureDoesNotMatch":
		return "the signature was refused: compare clock, region and credentials"
	case "ResourceNotFoundException", "NoSuchBucket", "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue":
		return "the resource that the configuration names does not exist in this region and account"
	}
	return ""
}

// cause is the innermost text of a failure without an answer: what wraps it repeats the operation and the whole URL.
func cause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		if net, ok := err.(*net.OpError); ok { //nolint:errorlint // walks the chain itself
			return net.Error()
		}
		err = inner
	}
}

func bounded(s string) string {
	const most = 300
	if len(s) > most {
		s = s[:most] + "..."
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "?")
	}
	return s
}
