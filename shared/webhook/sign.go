package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The headers of Standard Webhooks ("Webhook Headers").
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// secretPrefix begins a symmetric secret's text form ("Signature scheme").
const secretPrefix = "whsec_"

var errSecret = errors.New("webhook: not a signing secret")

// sign is the value of the signature header: HMAC-SHA256 over id, timestamp and body, joined by dots, once for each secret. Two stand
// there while a secret is being changed, so that a receiver that knows either accepts ("Multiple signatures").
func sign(id string, at time.Time, body []byte, secrets ...string) (string, error) {
	signatures := make([]string, 0, len(secrets))
	for _, secret := range secrets {
		encoded, ok := strings.CutPrefix(secret, secretPrefix)
		if !ok {
			return "", errSecret
		}
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(key) < 24 {
			return "", errSecret // its text would be in the message
		}
		h := hmac.New(sha256.New, key)
		_, _ = fmt.Fprintf(h, "%s.%s.", id, stamp(at))
		_, _ = h.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil)))
	}
	return strings.Join(signatures, " "), nil
}

func stamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
