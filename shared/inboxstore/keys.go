package inboxstore

import (
	"crypto/sha256"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// only is the sort key of a partition that holds one row.
const only = "-"

// shards spreads the outbox and what is due: every mail writes the outbox about seven times, and one DynamoDB partition takes 1,000
// writes a second.
const shards = 8

func key(partition, sort string) store.Key {
	return store.Key{Table: store.Core, Partition: partition, Sort: sort}
}

func orgKey(org, sort string) store.Key        { return key("org/"+org, sort) }
func orgSlugKey(slug string) store.Key         { return key("org-slug/"+slug, only) }
func domainKey(domain string) store.Key        { return key("domain/"+domain, only) }
func memberKey(user string) store.Key          { return key("user/"+user, "member") }
func userEmailKey(email string) store.Key      { return key("user-email/"+email, only) }
func slugKey(ws, slug string) store.Key        { return key("inbox-slugs/"+ws, slug) }
func addressKey(address string) store.Key      { return key("address/"+address, only) }
func hiddenKey(ws string) store.Key            { return key("hidden/"+ws, only) }
func countsKey(in string) store.Key            { return key("counts/"+in, only) }
func mailKey(ws, email, sort string) store.Key { return key("mail/"+ws+"/"+email, sort) }
func attKey(ws, att string) store.Key          { return key("att/"+ws, att) }
func dupKey(ws, in, digest string) store.Key   { return key("dup/"+ws+"/"+in, digest) }

func threadingKey(ws, in, kind, text string) store.Key {
	return key("threading/"+ws+"/"+in, kind+"/"+inbox.ShortDigest(sha256.Sum256([]byte(text))))
}

func inboxesPartition(ws string, deleted bool) string {
	return "inboxes/" + ws + deletedSuffix(deleted)
}

func attsPartition(ws, in string, deleted bool) string {
	return "atts/" + ws + "/" + in + deletedSuffix(deleted)
}

func sendersPartition(ws, in string, deleted bool) string {
	return "senders/" + ws + "/" + in + deletedSuffix(deleted)
}

func senderKey(ws, in, id string, deleted bool) store.Key {
	return key(sendersPartition(ws, in, deleted), id)
}

func hitsPartition(ws, in string) string { return "sender-hits/" + ws + "/" + in }

func rulesKey(ws string) store.Key           { return key("rules/"+ws, only) }
func deletedRuleKey(ws, id string) store.Key { return key("rules/"+ws+deletedSuffix(true), id) }
func ruleMatchesPartition(ws string) string  { return "rule-matches/" + ws }
func templatesPartition(ws string, deleted bool) string {
	return "templates/" + ws + deletedSuffix(deleted)
}

// extractionsPartition holds those of a workspace, or of one template of it.
func extractionsPartition(ws, template string) string {
	if template == "" {
		return "extractions/" + ws
	}
	return "extractions/" + ws + "/t/" + template
}

// zoneKey is a digest, for a zone is what a domain of any length looks like.
func zoneKey(ws, in, domain string) store.Key {
	return key("sender-zones/"+ws+"/"+in, inbox.ShortDigest(sha256.Sum256([]byte(inbox.SenderZone(domain)))))
}

func webhooksPartition(ws string, deleted bool) string {
	return "webhooks/" + ws + deletedSuffix(deleted)
}

func webhookSetKey(ws string) store.Key         { return key("webhook-set/"+ws, only) }
func healthKey(ws, webhook string) store.Key    { return key("webhook-health/"+ws, webhook) }
func keptEventKey(ws, event string) store.Key   { return key("events/"+ws, event) }
func deliveryKey(ws, delivery string) store.Key { return key("delivery/"+ws, delivery) }

// deliveriesPartition lists those of a workspace, or of one webhook of it.
func deliveriesPartition(ws, webhook string) string {
	if webhook == "" {
		return "deliveries/" + ws
	}
	return "deliveries/" + ws + "/w/" + webhook
}

func duePartition(shard int) string { return "webhook-due/" + string(rune('0'+shard)) }

// auditPartition holds the lines of a workspace, or of what was done to the organization itself, in the order of their ids.
func auditPartition(org, ws string) string {
	if ws == "" {
		return "audit-org/" + org
	}
	return "audit/" + ws
}

func threadKey(ws, thread string) store.Key { return key("thread/"+ws, thread) }

func threadsPartition(ws, in string) string {
	if in == "" {
		return "threads/" + ws
	}
	return "threads/" + ws + "/i/" + in
}

// workKey is where a mail waits for work from a time on.
func workKey(e inbox.Email, free time.Time) store.Key {
	return key(workPartition(e.Workspace, e.Inbox), inbox.Position(free, e.ID))
}

func workPartition(ws, in string) string { return "work/" + ws + "/" + in }

func usageKey(ws, month string) store.Key { return key("usage/"+ws, month) }

func deletedSuffix(deleted bool) string {
	if deleted {
		return "/deleted"
	}
	return ""
}

// inboxKey is where the inbox itself lies: deleting moves it.
func inboxKey(in inbox.Inbox) store.Key {
	return key(inboxesPartition(in.Workspace, !in.DeletedAt.IsZero()), in.ID)
}

// indexKeys are the rows of a mail in the lists that it belongs to, each of which carries its Summary.
func indexKeys(e inbox.Email) []store.Key {
	ws, place := "mails/"+e.Workspace, inbox.Position(e.ReceivedAt, e.ID)
	in := ws + "/i/" + e.Inbox
	if !e.DeletedAt.IsZero() {
		return []store.Key{key(ws+"/deleted", place), key(in+"/deleted", place)}
	}
	status := "/s/" + string(e.Status)
	keys := []store.Key{key(ws, place), key(ws+status, place), key(in, place), key(in+status, place)}
	if e.Thread != "" {
		keys = append(keys, key(ws+"/t/"+e.Thread, place))
	}
	return keys
}

// listPartitions are the partitions that serve a range: the live one, and the deleted one when it is included.
func listPartitions(r inbox.EmailRange) []string {
	base := "mails/" + r.Workspace
	live, deleted := base, base+"/deleted"
	if r.Inbox != "" {
		live = base + "/i/" + r.Inbox
		deleted = live + "/deleted"
	}
	switch {
	case r.Thread != "":
		live = base + "/t/" + r.Thread
	case r.Status != "":
		live += "/s/" + string(r.Status)
	}
	if !r.Deleted {
		return []string{live}
	}
	return []string{live, deleted}
}

// outboxKey orders by the time in the id's ULID, and finds a row by its id alone.
func outboxKey(id string) store.Key {
	kind, ulid, _ := strings.Cut(id, "_")
	return key(outboxPartition(shardOf(id)), ulid+"/"+kind)
}

// shardOf spreads ids by their last digit, which is random.
func shardOf(id string) int {
	if id == "" {
		return 0
	}
	return int(id[len(id)-1]) % shards
}

func outboxPartition(shard int) string { return "outbox/" + string(rune('0'+shard)) }

// outboxID is the inverse of outboxKey.
func outboxID(sort string) string {
	ulid, kind, _ := strings.Cut(sort, "/")
	return kind + "_" + ulid
}
