package chaos

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/blob/dir"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/queue/embedded"
	"github.com/buzon-mail/buzon/shared/seal"
	store "github.com/buzon-mail/buzon/shared/store/embedded"

	"github.com/buzon-mail/buzon/shared/app/web"
)

// origin is the service's.
const origin = "https://chaos.buzon.example"

// fast is a clock on which leases, retries and ages that a person would wait for are over soon.
type fast struct{ began time.Time }

const speed = 200

func (f fast) now() time.Time { return f.began.Add(speed * time.Since(f.began)) }

// tenant is one organization.
type tenant struct {
	index     int
	org       inbox.Organization
	workspace inbox.Workspace
	owner     inbox.Member
	inboxes   []inbox.Inbox
	token     string
}

// world is what outlives the instances.
type world struct {
	folder  string
	clock   fast
	engine  *store.Engine
	store   *inboxstore.Store // in good weather
	blobs   *dir.Store
	queue   *embedded.Queue
	seal    *seal.Keyring
	keys    *oauth.KeyRing
	tenants []*tenant
}

func newWorld(ctx context.Context, tenants int) (*world, error) {
	folder, err := os.MkdirTemp("", "buzon-chaos-")
	if err != nil {
		return nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	w := &world{folder: folder, clock: fast{time.Now()}}
	if err := w.open(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	for i := range tenants {
		t, err := w.tenant(ctx, i)
		if err != nil {
			w.close()
			return nil, fmt.Errorf("tenant %d: %w", i, err)
		}
		w.tenants = append(w.tenants, t)
	}
	return w, nil
}

func (w *world) open() (err error) {
	roots := []seal.Root{{ID: "r1", Secret: bytes.Repeat([]byte{7}, 32)}}
	if w.seal, err = seal.New(roots, seal.Options{Clock: w.clock.now, Rand: rand.Reader}); err != nil {
		return err
	}
	set, err := oauth.NewKeySet(rand.Reader, w.clock.now())
	if err != nil {
		return err
	}
	w.keys = oauth.StaticKeys(set, w.clock.now)
	if w.engine, err = store.Open(filepath.Join(w.folder, "store"), store.Options{Clock: w.clock.now, NoSync: true}); err != nil {
		return err
	}
	if w.store, err = inboxstore.New(w.engine, w.clock.now); err != nil {
		return err
	}
	if w.queue, err = embedded.New(w.engine, "mail", embedded.Options{Clock: w.clock.now}); err != nil {
		return err
	}
	w.blobs, err = dir.Open(filepath.Join(w.folder, "blobs"), dir.Options{BaseURL: origin, Keys: w.seal, Clock: w.clock.now, NoSync: true})
	return err
}

func (w *world) close() { _ = errors.Join(w.engine.Close(), os.RemoveAll(w.folder)) }

// id makes a fixed id that has the shape of a ULID.
func id(prefix string, n ...int) string {
	name := ""
	for _, i := range n {
		name += fmt.Sprintf("%03d", i)
	}
	return prefix + "_01KDT0" + strings.Repeat("0", 20-len(name)) + name
}

func (w *world) tenant(ctx context.Context, n int) (*tenant, error) {
	at := w.clock.now()
	domain := fmt.Sprintf("tenant%d.test", n)
	t := &tenant{index: n, org: inbox.Organization{ID: id("org", n), Slug: fmt.Sprintf("tenant%d", n), Name: domain, CreatedAt: at}}
	t.workspace = inbox.Workspace{ID: id("ws", n), Organization: t.org.ID, Slug: "main", Name: "Main", CreatedAt: at}
	t.owner = inbox.Member{User: id("user", n), Email: "owner@" + domain, Organization: t.org.ID, Role: inbox.RoleOwner, CreatedAt: at}
	if err := errors.Join(w.store.CreateOrganization(ctx, t.org), w.store.CreateWorkspace(ctx, t.workspace), w.store.CreateMember(ctx, t.owner)); err != nil {
		return nil, err
	}
	if _, err := w.store.AddDomain(ctx, t.org.ID, domain); err != nil {
		return nil, err
	}
	for i := range 3 {
		slug := fmt.Sprintf("box%d", i)
		in := inbox.Inbox{
			ID: id("inbox", n, i), Organization: t.org.ID, Workspace: t.workspace.ID, Slug: slug, Address: slug + "@" + domain,
			DisplayName: slug, State: inbox.StateActive, CreatedAt: at, UpdatedAt: at, Version: 1,
		}
		if err := w.store.CreateInbox(ctx, in, inbox.Act{}); err != nil {
			return nil, err
		}
		t.inboxes = append(t.inboxes, in)
	}
	issuer, err := oauth.NewIssuer(w.keys, origin, origin+"/mcp", w.clock.now, rand.Reader)
	if err != nil {
		return nil, err
	}
	scopes, err := inboxops.ScopesOf(inboxops.RoleOf(t.owner.Role))
	if err != nil {
		return nil, err
	}
	t.token, err = issuer.Mint(ctx, oauth.Claims{
		Subject: t.owner.User, ClientID: web.CommandLine, Scope: strings.Join(scopes, " "), Grant: "grant_cli_" + t.owner.User,
		Organization: t.org.ID, Workspace: t.workspace.ID,
	}, oauth.MaxLifetime)
	return t, err
}
