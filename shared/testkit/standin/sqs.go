package standin

import (
	"crypto/md5" //nolint:gosec // SQS's digest of a body, which the SDK checks
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// SQS is standard queues: at least once, in no order, a message that was received too often goes to the queue's dead-letter queue. It
// gives out the newest first, so that nobody comes to rely on an order that SQS does not promise.
type SQS struct {
	clock func() time.Time
	max   int               // receives, then a message is dead
	dead  map[string]string // of a queue

	mu     sync.Mutex
	queues map[string][]*sqsMessage // guarded by mu
	serial int                      // guarded by mu
	twice  int                      // guarded by mu; every so manieth message that is received stays in sight
}

type sqsMessage struct {
	id, body string
	receives int
	handle   string // of the last receive; older ones are void
	visible  time.Time
}

// NewSQS makes these queues, each with its dead-letter queue. max is the redrive policy's maxReceiveCount.
func NewSQS(clock func() time.Time, max int, dead map[string]string) *SQS {
	s := &SQS{clock: clock, max: max, dead: dead, queues: map[string][]*sqsMessage{}}
	for queue, its := range dead {
		s.queues[queue], s.queues[its] = nil, nil
	}
	return s
}

// Duplicate has every nth message that is received stay in sight of the next consumer too; 0: none.
func (s *SQS) Duplicate(nth int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.twice = nth
}

// Len is how many messages a queue holds, in sight or not.
func (s *SQS) Len(queue string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queues[queue])
}

// sqsRequest is the members of all requests that are known here.
type sqsRequest struct {
	QueueURL          string `json:"QueueUrl"` //nolint:tagliatelle // AWS's name
	Entries           []sqsEntry
	MaxMessages       int `json:"MaxNumberOfMessages"` //nolint:tagliatelle // AWS's name
	VisibilityTimeout int
	ReceiptHandle     string
}

type sqsEntry struct {
	ID                string `json:"Id"` //nolint:tagliatelle // AWS's name
	MessageBody       string
	DelaySeconds      int
	ReceiptHandle     string
	VisibilityTimeout int
}

// ServeHTTP answers one request of the JSON protocol.
func (s *SQS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var in sqsRequest
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, "SerializationException")
		return
	}
	if _, known := s.queues[in.QueueURL]; !known {
		refuse(w, "QueueDoesNotExist")
		return
	}
	switch _, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); op {
	case "SendMessageBatch":
		s.send(w, in)
	case "ReceiveMessage":
		s.receive(w, in)
	case "DeleteMessageBatch":
		s.remove(w, in)
	case "ChangeMessageVisibility":
		if !s.change(in.QueueURL, in.ReceiptHandle, in.VisibilityTimeout) {
			refuse(w, "MessageNotInflight")
			return
		}
		reply(w, struct{}{})
	case "ChangeMessageVisibilityBatch":
		s.changeAll(w, in)
	default:
		refuse(w, "AccessDeniedException")
	}
}

func digest(body string) string {
	sum := md5.Sum([]byte(body)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

func (s *SQS) send(w http.ResponseWriter, in sqsRequest) {
	if len(in.Entries) == 0 || len(in.Entries) > 10 {
		refuse(w, "TooManyEntriesInBatchRequest")
		return
	}
	type sent struct{ Id, MessageId, MD5OfMessageBody string } //nolint:revive,staticcheck // AWS's names
	var done []sent
	for _, e := range in.Entries {
		s.serial++
		m := &sqsMessage{id: fmt.Sprintf("message-%d", s.serial), body: e.MessageBody, visible: s.clock().Add(time.Duration(e.DelaySeconds) * time.Second)}
		s.queues[in.QueueURL] = append(s.queues[in.QueueURL], m)
		done = append(done, sent{e.ID, m.id, digest(e.MessageBody)})
	}
	reply(w, map[string]any{"Successful": done})
}

func (s *SQS) receive(w http.ResponseWriter, in sqsRequest) {
	type received struct {
		MessageId, ReceiptHandle, Body, MD5OfBody string //nolint:revive,staticcheck // AWS's names
		Attributes                                map[string]string
	}
	now := s.clock()
	got, all := []received{}, s.queues[in.QueueURL]
	var kept []*sqsMessage
	for i := len(all) - 1; i >= 0; i-- {
		m := all[i]
		hidden := m.visible.After(now) || len(got) >= max(in.MaxMessages, 1)
		if dead := s.dead[in.QueueURL]; !hidden && dead != "" && m.receives >= s.max {
			s.queues[dead] = append(s.queues[dead], &sqsMessage{id: m.id, body: m.body, receives: m.receives})
			continue
		}
		kept = append(kept, m)
		if hidden {
			continue
		}
		s.serial++
		m.receives++
		m.handle = fmt.Sprintf("receipt-%d", s.serial)
		if s.twice == 0 || s.serial%s.twice != 0 {
			m.visible = now.Add(time.Duration(in.VisibilityTimeout) * time.Second)
		}
		got = append(got, received{m.id, m.handle, m.body, digest(m.body), map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.receives)}})
	}
	for i, j := 0, len(kept)-1; i < j; i, j = i+1, j-1 {
		kept[i], kept[j] = kept[j], kept[i]
	}
	s.queues[in.QueueURL] = kept
	reply(w, map[string]any{"Messages": got})
}

// remove ends messages by their receipts. As SQS says of an old one, the request succeeds and the message may stay: it stays.
func (s *SQS) remove(w http.ResponseWriter, in sqsRequest) {
	type done struct{ Id string } //nolint:revive,staticcheck // AWS's name
	var out []done
	for _, e := range in.Entries {
		for i, m := range s.queues[in.QueueURL] {
			if m.handle == e.ReceiptHandle {
				s.queues[in.QueueURL] = append(s.queues[in.QueueURL][:i:i], s.queues[in.QueueURL][i+1:]...)
				break
			}
		}
		out = append(out, done{e.ID})
	}
	reply(w, map[string]any{"Successful": out})
}

func (s *SQS) change(queue, handle string, timeout int) bool {
	for _, m := range s.queues[queue] {
		if m.handle == handle && m.visible.After(s.clock()) {
			m.visible = s.clock().Add(time.Duration(timeout) * time.Second)
			return true
		}
	}
	return false
}

func (s *SQS) changeAll(w http.ResponseWriter, in sqsRequest) {
	type done struct{ Id string } //nolint:revive,staticcheck // AWS's name
	type failed struct {
		Id, Code    string //nolint:revive,staticcheck // AWS's names
		SenderFault bool
	}
	var ok []done
	var not []failed
	for _, e := range in.Entries {
		if s.change(in.QueueURL, e.ReceiptHandle, e.VisibilityTimeout) {
			ok = append(ok, done{e.ID})
		} else {
			not = append(not, failed{e.ID, "MessageNotInflight", true})
		}
	}
	reply(w, map[string]any{"Successful": ok, "Failed": not})
}
