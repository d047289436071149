package gateway

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/buzon-mail/buzon/shared/lambdaedge"
)

// replyOf is the union of what the three doors take from a function.
type replyOf struct {
	StatusCode      int                 `json:"statusCode"`
	Headers         map[string]string   `json:"headers"`
	MultiHeaders    map[string][]string `json:"multiValueHeaders"`
	Cookies         []string            `json:"cookies"`
	Body            string              `json:"body"`
	IsBase64Encoded bool                `json:"isBase64Encoded"`
}

// remapped is the name under which a caller finds the challenge.
const remapped = "X-Amzn-Remapped-Www-Authenticate"

// answer is what the door makes of the function's reply. A reply without a status is taken for a broken one: the real payload
// format 2.0 would guess a 200, which no server of ours means.
func (g *Gateway) answer(r *http.Request, raw []byte) answer {
	var reply replyOf
	if len(raw) > maxPayload || json.Unmarshal(raw, &reply) != nil || reply.StatusCode < 200 || reply.StatusCode > 599 {
		return g.failed()
	}
	header, ok := g.headersOut(reply)
	if !ok {
		return g.refusal(http.StatusInternalServerError, "Internal Server Error")
	}
	body, ok := g.bodyOut(r, reply)
	if !ok {
		return g.failed()
	}
	if header.Get("Content-Type") == "" && len(body) > 0 {
		header.Set("Content-Type", "application/json") // the doors say so of anything that says nothing of itself
	}
	if reply.StatusCode == http.StatusNoContent || reply.StatusCode == http.StatusNotModified {
		body = nil
	}
	return answer{status: reply.StatusCode, header: header, body: body}
}

// headersOut is the headers as the client sees them; ok is false where the door chokes on one.
func (g *Gateway) headersOut(reply replyOf) (header http.Header, ok bool) {
	header = http.Header{}
	for name, value := range reply.Headers {
		header[http.CanonicalHeaderKey(name)] = []string{value}
	}
	if g.door == lambdaedge.RESTAPI {
		for name, values := range reply.MultiHeaders {
			header[http.CanonicalHeaderKey(name)] = values
		}
	} else {
		header.Del("Set-Cookie")
		for _, cookie := range reply.Cookies {
			header.Add("Set-Cookie", cookie)
		}
	}
	if g.door == lambdaedge.FunctionURL && hasRemapped(header) {
		return nil, false
	}
	if challenges := header["Www-Authenticate"]; challenges != nil {
		header.Del("Www-Authenticate")
		header[remapped] = challenges
	}
	for _, name := range []string{"Content-Length", "Connection", "Keep-Alive", "Transfer-Encoding", "Upgrade"} {
		header.Del(name)
	}
	return header, true
}

// bodyOut decodes base64. A REST API does it only when the client asked, first, for one of its binary types.
func (g *Gateway) bodyOut(r *http.Request, reply replyOf) ([]byte, bool) {
	if !reply.IsBase64Encoded {
		return []byte(reply.Body), true
	}
	first, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	if g.door == lambdaedge.RESTAPI && !matches(g.o.BinaryTypes, strings.TrimSpace(first)) {
		return []byte(reply.Body), true
	}
	body, err := base64.StdEncoding.DecodeString(reply.Body)
	return body, err == nil
}

func hasRemapped(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(strings.ToLower(name), "x-amzn-remapped-") {
			return true
		}
	}
	return false
}
