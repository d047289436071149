// Package deployed is what stands behind a function on AWS: the engines in the tables, the bucket and the queue that its
// environment names, and the secrets. Opening asks AWS nothing. Each engine is a function of its own, so that a function links
// only those that it uses.
package deployed

import (
	"time"

	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/blob/bucket"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/store/dynamo"
)

// Account is where the engines are and with whose credentials.
type Account struct {
	AWS   awsclient.Config
	Names config.AWS
	Clock func() time.Time
	// PathStyle has the bucket's name in the path: for stand-ins that have no host for each.
	PathStyle bool
}

// Here is the account of the process: region and credentials as Lambda sets them.
func Here(getenv config.Getenv, names config.AWS) (Account, error) {
	c, err := awsclient.Environment(getenv)
	if err != nil {
		return Account{}, err
	}
	return Account{AWS: c, Names: names, Clock: time.Now}, nil
}

// Engine is the two tables.
func (a Account) Engine() (*dynamo.Engine, error) {
	return dynamo.New(dynamo.Options{AWS: a.AWS, Core: a.Names.TableCore, Ephemeral: a.Names.TableEphemeral, Clock: a.Clock})
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
	return bucket.New(bucket.Options{AWS: a.AWS, Bucket: a.Names.Bucket, Clock: a.Clock, PathStyle: a.PathStyle})
}
