package robot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/buzon-mail/buzon/shared/oauth"
)

// Reveal opens the page of a secret, signs in where it has to, presses its button and returns the secret, which no page shows
// again.
func (r *Robot) Reveal(ctx context.Context, address string) (string, error) {
	start, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("robot: %w", err)
	}
	p, err := r.send(ctx, http.MethodGet, start, nil)
	for range maxSteps {
		if err != nil {
			return "", err
		}
		switch {
		case p.location != nil:
			p, err = r.send(ctx, http.MethodGet, p.location, nil)
		case p.forms[oauth.SignInPath] != nil:
			p, err = r.signIn(ctx, p)
		case p.forms[oauth.SecretPath] != nil:
			p, err = r.send(ctx, http.MethodPost, p.at.ResolveReference(&url.URL{Path: oauth.SecretPath}), p.forms[oauth.SecretPath].values)
		case p.at.Path == oauth.SecretPath && p.status == http.StatusOK && p.code != "":
			return p.code, nil
		default:
			return "", fmt.Errorf("robot: %s answers %d and shows no secret: %s", p.at.Path, p.status, p.title)
		}
	}
	return "", errors.Join(errors.New("robot: the pages lead nowhere"), err)
}
