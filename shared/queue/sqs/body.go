package sqsqueue

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/buzon-mail/buzon/shared/queue"
)

// body is what a message holds. Whoever adds a member keeps in mind that messages of both versions wait at a deployment.
type body struct {
	ID string `json:"id"`
}

// Encode writes a message's body: JSON in ASCII alone, for SQS refuses some characters that an id may have.
func Encode(id string) string {
	b, err := json.Marshal(body{id})
	if err != nil {
		panic(err) // a struct of one string
	}
	var out strings.Builder
	for _, r := range string(b) {
		switch {
		case r < utf8.RuneSelf && r != 0x7f:
			out.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		}
	}
	return out.String()
}

// Decode reads a message's body, be it received here or handed to a function as an event.
func Decode(s string) (id string, err error) {
	var b body
	if err := json.Unmarshal([]byte(s), &b); err != nil {
		return "", fmt.Errorf("%w: a message that is not of this program", queue.ErrInvalid)
	}
	if err := queue.CheckSend([]queue.Message{{ID: b.ID}}); err != nil {
		return "", err
	}
	return b.ID, nil
}
