package deployed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/config"
)

const (
	secretTimeout = 3 * time.Second
	maxSecret     = 256 << 10 // bytes of a reply; a secret has at most 64 KiB, escaped
)

// ErrSecret is a secret that can't be read. The error says what AWS said, never what the secret holds.
var ErrSecret = errors.New("deployed: secret")

// Secret reads the current value of a secret in Secrets Manager. It is one call of one operation, which AWS's own client for the
// service would need a module and 0.4 MiB for.
func (a Account) Secret(ctx context.Context, name config.Secret) ([]byte, error) {
	body, err := json.Marshal(map[string]string{"SecretId": name.Reveal()})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSecret, err)
	}
	retries := a.AWS.NewRetries()
	client := a.AWS.Client(secretTimeout, secretTimeout)
	for attempt := 1; ; attempt++ {
		value, again, err := a.fetchSecret(ctx, client, body)
		if err == nil {
			return value, nil
		}
		if !again || attempt == awsclient.MaxAttempts || ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %w", ErrSecret, err)
		}
		if err := retries.Wait(ctx, attempt); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSecret, err)
		}
	}
}

// fetchSecret makes one attempt and tells whether another may fare better.
func (a Account) fetchSecret(ctx context.Context, client interface {
	Do(r *http.Request) (*http.Response, error)
}, body []byte,
) (value []byte, again bool, err error) {
	r, err := a.secretRequest(ctx, body)
	if err != nil {
		return nil, false, err
	}
	reply, err := client.Do(r)
	if err != nil {
		return nil, true, awsclient.Explain(err)
	}
	defer reply.Body.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxSecret+1))
	if err != nil {
		return nil, true, errors.New("the answer broke off")
	}
	if reply.StatusCode != http.StatusOK {
		return nil, reply.StatusCode >= 500 || reply.StatusCode == http.StatusTooManyRequests || throttles(text), refusedSecret(reply.StatusCode, text)
	}
	var answer struct {
		Text string `json:"SecretString"` //nolint:tagliatelle // AWS's name
	}
	if len(text) > maxSecret || json.Unmarshal(text, &answer) != nil || answer.Text == "" {
		return nil, false, errors.New("the answer holds no text")
	}
	return []byte(answer.Text), false, nil
}

func (a Account) secretRequest(ctx context.Context, body []byte) (*http.Request, error) {
	endpoint := a.AWS.Endpoint
	if endpoint == "" {
		endpoint = "https://secretsmanager." + a.AWS.Region + ".amazonaws.com"
		if strings.HasPrefix(a.AWS.Region, "cn-") {
			endpoint += ".cn"
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint+"/", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "secretsmanager.GetSecretValue")
	credentials, err := a.AWS.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, credentials, r, hex.EncodeToString(sum[:]), "secretsmanager", a.AWS.Region, a.Clock()); err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return r, nil
}

// secretFailure is the code of an error reply; nothing else of it is repeated.
func secretFailure(text []byte) string {
	var e struct {
		Type string `json:"__type"`
	}
	_ = json.Unmarshal(text, &e)
	code := e.Type[strings.LastIndexByte(e.Type, '#')+1:]
	if len(code) > 64 || strings.Trim(code, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return ""
	}
	return code
}

func throttles(text []byte) bool {
	return strings.HasPrefix(secretFailure(text), "Throttl")
}

func refusedSecret(status int, text []byte) error {
	code := secretFailure(text)
	hint := map[string]string{
		"ResourceNotFoundException": ": it does not exist in this account and region",
		"AccessDeniedException":     ": the role of this function may not read it",
		"DecryptionFailure":         ": the role of this function may not use its key",
	}[code]
	return fmt.Errorf("HTTP status %d %s%s", status, code, hint)
}
