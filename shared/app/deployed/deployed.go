// Package deployed is what stands behind a function on AWS: the engines in the tables, the bucket and the queue that its
// environment names. Opening asks AWS nothing. Each engine is a function of its own, so that a function links
// only those that it uses.
package deployed

import (
	"time"

	"github.com/buzon-mail/buzon/shared/awsclient"
	bucket "github.com/buzon-mail/buzon/shared/blob/s3"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/store/dynamo"
)

// Account is where the engines are and with whose credentials.
type Account struct {
	AWS   awsclient.Config
	Names config.AWS
	Clock func() time.Time
	// WebhookKey names the secret that seals signing secrets of webhooks, and Origin is the public one: for the worker.
	WebhookKey config.Secret
	Origin     string
}

// Here is the account that the environment names.
func Here(names config.AWS) (Account, error) {
	c, err := awsclient.Static(names.Region, names.KeyID, names.KeySecret.Reveal(), names.Session.Reveal())
	if err != nil {
		return Account{}, err
	}
	return Account{AWS: c, Names: names, Clock: time.Now}, nil
}

// Engine is the two tables.
func (a Account) Engine() (*dynamo.Engine, error) {
	return dynamo.New(dynamo.Options{AWS: a.AWS, Core: a.Names.CoreTable, Ephemeral: a.Names.EphemeralTable, Clock: a.Clock})
}

// Store is the inbox in the two tables.
func (a Account) Store() (*inboxstore.Store, error) {
	engine, err := a.Engine()
	if err != nil {
		return nil, err
	}
	return inboxstore.New(engine, a.Clock)
}

// Blobs is the bucket.
func (a Account) Blobs() (*bucket.Store, error) {
	return bucket.New(bucket.Options{AWS: a.AWS, Bucket: a.Names.Bucket, Clock: a.Clock, PathStyle: a.AWS.Endpoint != ""})
}
