package mailauth

import (
	"context"
	"errors"
	"net"
	"strings"
)

// maxTXT bounds one TXT record. A key of 16,384 bits fits; longer ones would make each check of a signature cost seconds.
const maxTXT = 4096

// absolute asks for whole names only: a resolver's search list would let whoever owns a name in it answer for others. Every
// failure is either "there is none" or temporary, also a context that ended.
type absolute struct{ next Resolver }

func full(name string) string { return strings.TrimSuffix(name, ".") + "." }

// LookupTXT drops records that are too long.
func (a absolute) LookupTXT(ctx context.Context, name string) ([]string, error) {
	list, err := a.next.LookupTXT(ctx, full(name))
	if err != nil {
		return nil, failed(name, err)
	}
	kept := make([]string, 0, len(list))
	for _, txt := range list {
		if len(txt) <= maxTXT {
			kept = append(kept, txt)
		}
	}
	return kept, nil
}

// LookupMX asks for mail hosts.
func (a absolute) LookupMX(ctx context.Context, name string) ([]*net.MX, error) {
	list, err := a.next.LookupMX(ctx, full(name))
	return list, failed(name, err)
}

// LookupIPAddr asks for addresses.
func (a absolute) LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error) {
	list, err := a.next.LookupIPAddr(ctx, full(host))
	return list, failed(host, err)
}

// LookupAddr asks for the names of an address.
func (a absolute) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	list, err := a.next.LookupAddr(ctx, addr)
	return list, failed(addr, err)
}

func failed(name string, err error) error {
	if err == nil {
		return nil
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return dns
	}
	return &net.DNSError{Err: "no answer", Name: name, IsTemporary: true}
}

func notFound(err error) bool {
	dns, ok := errors.AsType[*net.DNSError](err)
	return ok && dns.IsNotFound
}
