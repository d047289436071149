package inboxmcp

import (
	"context"
	"slices"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/mcp"
)

// listedSenders offers what persons put on the list of the inbox that is settled already: never who merely wrote to it, for anybody can.
func (o *Offers) listedSenders(ctx context.Context, call mcp.CallRequest, r *mcp.CompleteRequest) (mcp.Completion, error) {
	in := r.Context[argInbox]
	if !word(in) || len(r.Value) > maxTyped {
		return mcp.Completion{}, nil // entries are listed by inbox only
	}
	arguments := map[string]any{argID: in, argLimit: inbox.MaxLimit}
	if r.Value != "" {
		arguments["q"] = r.Value
	}
	var found []string
	for range maxPages {
		var p struct {
			Data []struct{ Value string }
			Meta struct {
				Next *string `json:"next_cursor"`
			}
		}
		if _, err := o.get(ctx, call, toolSenders, arguments, &p); err != nil {
			return mcp.Completion{}, err
		}
		for _, row := range p.Data {
			found = append(found, row.Value)
		}
		if p.Meta.Next == nil {
			slices.Sort(found)
			all := matchingThat(listable, found, r.Value)
			return mcp.Completion{Values: all, Total: len(all), HasMore: len(all) > maxValues}, nil // the protocol's room cuts them
		}
		arguments["cursor"] = *p.Meta.Next
	}
	slices.Sort(found)
	return mcp.Completion{Values: matchingThat(listable, found, r.Value), HasMore: true}, nil
}

// maxTyped is what a search takes, in bytes.
const maxTyped = 254

// listable holds for an address or a domain in the spelling that entries have.
func listable(value string) bool {
	who, ok := senderOf(value)
	return ok && who.text() == value
}

// ownJobs offers the newest jobs that the caller started; the operation lists everybody's to an admin.
func (o *Offers) ownJobs(ctx context.Context, call mcp.CallRequest, typed string) (mcp.Completion, error) {
	var me struct{ Data struct{ Subject string } }
	if _, err := o.get(ctx, call, toolSession, nil, &me); err != nil {
		return mcp.Completion{}, err
	}
	var p struct {
		Data []struct {
			ID      string
			Starter struct{ Subject string } `json:"started_by"`
		}
		Meta struct {
			Next *string `json:"next_cursor"`
		}
	}
	if _, err := o.get(ctx, call, toolJobs, map[string]any{argLimit: inbox.MaxLimit}, &p); err != nil {
		return mcp.Completion{}, err
	}
	var own []string
	for _, row := range p.Data {
		if row.Starter.Subject == me.Data.Subject {
			own = append(own, row.ID)
		}
	}
	own = matching(own, typed)
	return mcp.Completion{Values: own[:min(len(own), newest)], HasMore: p.Meta.Next != nil || len(own) > newest}, nil
}
