package lambdaedge

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/buzon-mail/buzon/shared/apperr"
)

var errReplyTooLarge = errors.New("lambdaedge: reply over the limit of the door")

// problem is a reply of the edge itself, a problem document of RFC 9457.
type problem struct {
	Type      string   `json:"type"`
	Title     string   `json:"title"`
	Status    int      `json:"status"`
	Kind      string   `json:"kind"`
	Code      string   `json:"code"`
	Detail    string   `json:"detail"`
	Fixes     []string `json:"fixes,omitempty"`
	RequestID string   `json:"request_id,omitempty"`
}

// refusal says which problem.
type refusal uint8

const (
	badRequest refusal = iota
	crashed
	replyTooLarge
)

func (r refusal) problem() problem {
	switch r {
	case badRequest:
		return problem{Status: http.StatusBadRequest, Kind: apperr.Invalid.String(), Code: "bad_request_target",
			Detail: "The request's method, path, query or base64 body can't be read.",
			Fixes:  []string{"Escape the path and the query as RFC 3986 says and send the request again."}}
	case replyTooLarge:
		return problem{Status: http.StatusRequestEntityTooLarge, Kind: apperr.TooLarge.String(), Code: "reply_too_large",
			Detail: "The answer is larger than this front door can carry (6 MB).",
			Fixes:  []string{"Ask for fewer items, with limit.", "Ask for one part at a time, or for a download URL."}}
	default:
		return problem{Status: http.StatusInternalServerError, Kind: apperr.Internal.String(), Code: apperr.Internal.String(),
			Detail: "Something went wrong on our side."}
	}
}

// refuse drops whatever the handler wrote and returns a problem document instead.
func (w *writer) refuse(why refusal, requestID string) []byte {
	body, header := why.render(requestID)
	fresh := writer{door: w.door, limit: maxReply, header: header}
	fresh.WriteHeader(why.problem().Status)
	fresh.body = body
	reply, _ := fresh.reply()
	return reply
}

// render is the document and what goes before it.
func (r refusal) render(requestID string) ([]byte, http.Header) {
	p := r.problem()
	p.Type, p.Title, p.RequestID = "about:blank", http.StatusText(p.Status), requestID
	body, err := json.Marshal(p)
	if err != nil {
		body = []byte(`{}`) // strings and a number always render
	}
	return body, http.Header{"Content-Type": {"application/problem+json"}, "Cache-Control": {"no-store"}}
}
