package lambdaedge

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrNotNotice is a message that is no notice of a received mail. It never becomes one by trying again.
var ErrNotNotice = errors.New("lambdaedge: not a notice of received mail")

// maxNotice is a little over what SNS carries (256 KiB), escaped.
const maxNotice = 1 << 20

// Received is what SES says of a mail that it stored. Nothing in it comes from a header of the mail: SES repeats those too,
// and a sender writes them as they like.
type Received struct {
	MessageID  string    // SES's own, also on redelivery
	At         time.Time // when SES took the mail
	Source     string    // MAIL FROM; empty for bounces
	Recipients []string  // RCPT TO, those that the rule matched
	Bucket     string
	Key        string
	Verdicts   []Verdict // in a fixed order; those that SES gave
	// Policy is what the domain of From asks for when DMARC fails: none, quarantine or reject. SES tells it only then.
	Policy string
}

// Verdict is one of SES's checks.
type Verdict struct {
	Method string // spf, dkim, dmarc, spam, virus
	Result string // pass, fail, none, neutral or temperror (RFC 8601 section 2.7)
}

// snsEnvelope is what a queue gets that is subscribed to a topic.
type snsEnvelope struct {
	Type    string `json:"Type"`    //nolint:tagliatelle // AWS's name
	Message string `json:"Message"` //nolint:tagliatelle // AWS's name
}

type sesNotice struct {
	Type string `json:"notificationType"`
	Mail struct {
		Timestamp string `json:"timestamp"`
		Source    string `json:"source"`
		MessageID string `json:"messageId"`
	} `json:"mail"`
	Receipt struct {
		Recipients []string  `json:"recipients"`
		SPF        sesResult `json:"spfVerdict"`
		DKIM       sesResult `json:"dkimVerdict"`
		DMARC      sesResult `json:"dmarcVerdict"`
		// Policy is a text in SES's guide of today and was an object in an older one; a mail is not lost over it.
		Policy json.RawMessage `json:"dmarcPolicy"`
		Spam   sesResult       `json:"spamVerdict"`
		Virus  sesResult       `json:"virusVerdict"`
		Action struct {
			Type   string `json:"type"`
			Bucket string `json:"bucketName"`
			Key    string `json:"objectKey"`
		} `json:"action"`
	} `json:"receipt"`
}

type sesResult struct {
	Status string `json:"status"`
}

// ParseReceived reads the body of a queue message that SNS wrote for SES. Every failure is ErrNotNotice, and quotes nothing.
func ParseReceived(body string) (Received, error) {
	var outer snsEnvelope
	if len(body) > maxNotice {
		return Received{}, fmt.Errorf("%w: %d bytes", ErrNotNotice, len(body))
	}
	if err := json.Unmarshal([]byte(body), &outer); err != nil {
		return Received{}, fmt.Errorf("%w: envelope: %s", ErrNotNotice, jsonFault(err))
	}
	if outer.Type != "Notification" {
		return Received{}, fmt.Errorf("%w: SNS sent no notification", ErrNotNotice)
	}
	var n sesNotice
	if err := json.Unmarshal([]byte(outer.Message), &n); err != nil {
		return Received{}, fmt.Errorf("%w: notice: %s", ErrNotNotice, jsonFault(err))
	}
	at, err := time.Parse(time.RFC3339, n.Mail.Timestamp)
	switch {
	case n.Type != "Received":
		return Received{}, fmt.Errorf("%w: SES tells of something else", ErrNotNotice)
	case n.Receipt.Action.Type != "S3" || n.Receipt.Action.Bucket == "" || n.Receipt.Action.Key == "":
		return Received{}, fmt.Errorf("%w: the rule's action did not store the mail in S3", ErrNotNotice)
	case n.Mail.MessageID == "" || err != nil || at.Year() < 2000 || at.Year() > 9999:
		return Received{}, fmt.Errorf("%w: no id or no time", ErrNotNotice)
	case len(n.Receipt.Recipients) == 0:
		return Received{}, fmt.Errorf("%w: no recipients", ErrNotNotice)
	}
	r := Received{
		MessageID: n.Mail.MessageID, At: at.UTC(), Source: bounceless(n.Mail.Source), Recipients: n.Receipt.Recipients,
		Bucket: n.Receipt.Action.Bucket, Key: n.Receipt.Action.Key, Policy: policyOf(n.Receipt.Policy),
	}
	for _, v := range []struct {
		method string
		sesResult
	}{
		{"spf", n.Receipt.SPF}, {"dkim", n.Receipt.DKIM}, {"dmarc", n.Receipt.DMARC}, {"spam", n.Receipt.Spam}, {"virus", n.Receipt.Virus},
	} {
		if result := v.result(v.method); result != "" {
			r.Verdicts = append(r.Verdicts, Verdict{v.method, result})
		}
	}
	return r, nil
}

// result is SES's status in the words of RFC 8601. A status that nobody knows is no pass.
func (r sesResult) result(method string) string {
	switch r.Status {
	case "":
		return ""
	case "PASS":
		return "pass"
	case "FAIL":
		return "fail"
	case "GRAY": // there is nothing to check: no record of SPF, no signature, no policy of DMARC
		if method == "spam" || method == "virus" { // the scanner could not decide
			return "neutral"
		}
		return "none"
	}
	return "temperror" // PROCESSING_FAILED
}

// policyOf reads dmarcPolicy as a text or as the object with a status of SES's older guide; anything else is none at all.
func policyOf(raw json.RawMessage) string {
	var text string
	var object sesResult
	if json.Unmarshal(raw, &text) != nil && json.Unmarshal(raw, &object) == nil {
		text = object.Status
	}
	switch text = strings.ToLower(text); text {
	case "none", "quarantine", "reject":
		return text
	}
	return ""
}

// bounceless is MAIL FROM without the brackets of the empty path.
func bounceless(source string) string {
	if strings.TrimSpace(source) == "<>" {
		return ""
	}
	return source
}
