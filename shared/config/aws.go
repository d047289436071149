package config

import (
	"net/url"
	"strings"
)

// AWS is where the service keeps what it keeps, and as whom it asks.
type AWS struct {
	Region                    string
	KeyID                     string
	KeySecret, Session        Secret
	CoreTable, EphemeralTable string // DynamoDB
	Bucket                    string // S3
	JobsQueue                 string // URL in SQS; empty where nothing is sent
	Function                  string // the name of this function; empty where it is none
}

const lower = "abcdefghijklmnopqrstuvwxyz"

// aws reads what Lambda and the template set.
func (r *reader) aws() AWS {
	c := r.tables()
	c.Bucket = r.resource(varBucket, lower+"0123456789.-", "a bucket")
	c.Function = r.getenv(varSelf)
	return c
}

// tables reads region, credentials and the two tables, which is all that the command line needs.
func (r *reader) tables() AWS {
	const letters = lower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
	c := AWS{
		Region: r.set(varRegion), KeyID: r.set(varKeyID), KeySecret: Secret(r.set(varSecret)), Session: Secret(r.getenv(varSession)),
		CoreTable: r.resource(varCoreTable, letters, "a table"), EphemeralTable: r.resource(varEphemeralTable, letters, "a table"),
	}
	if c.CoreTable != "" && c.CoreTable == c.EphemeralTable {
		r.fault(varEphemeralTable, "the same table as %s; one is backed up and the other is not.", varCoreTable)
	}
	return c
}

// set reads what Lambda sets itself.
func (r *reader) set(variable string) string {
	v := r.getenv(variable)
	if v == "" {
		r.fault(variable, "missing; Lambda sets it. Elsewhere, set region and credentials as for the AWS command line.")
	}
	return v
}

// resource reads the name of a resource that the template makes.
func (r *reader) resource(variable, letters, what string) string {
	v := r.getenv(variable)
	switch {
	case v == "":
		r.fault(variable, "missing; set it to the name of %s.", what)
	case len(v) < 3 || len(v) > 255 || strings.Trim(v, letters) != "":
		r.fault(variable, "%s is not the name of %s.", quote(v), what)
	}
	return v
}

// Worker configures the worker function, deployed or emulated.
type Worker struct {
	Emulated bool // as in API: nothing of AWS is read then
	AWS      AWS
	// WebhookKey names the secret that seals signing secrets of webhooks; empty: nothing is sent to webhooks.
	WebhookKey Secret
	PublicURL  string // canonical origin, which webhooks are told; empty: they are told paths alone
}

// Inbound configures the function that takes mail from SES, deployed or emulated.
type Inbound struct {
	Emulated bool // as in API: nothing of AWS is read then
	AWS      AWS
}

// LoadWorker reads the environment of the worker function. The error is Problems.
func LoadWorker(getenv Getenv) (*Worker, error) {
	emulated, names, err := loadBackground(getenv)
	if err != nil {
		return nil, err
	}
	c := &Worker{Emulated: emulated, AWS: names}
	if !emulated {
		r := &reader{getenv: getenv}
		c.WebhookKey, c.PublicURL = r.webhookKey(), r.publicURL()
		if err := r.err(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// LoadInbound reads the environment of the inbound function. The error is Problems.
func LoadInbound(getenv Getenv) (*Inbound, error) {
	emulated, names, err := loadBackground(getenv)
	if err != nil {
		return nil, err
	}
	return &Inbound{Emulated: emulated, AWS: names}, nil
}

// OnAWS tells whether the command line is meant for a deployed service.
func OnAWS(getenv Getenv) bool { return getenv(varStore) == "dynamo" }

// LoadAdmin reads the environment of the command line for a deployed service: credentials and tables alone. The error is Problems.
func LoadAdmin(getenv Getenv) (AWS, error) {
	r := &reader{getenv: getenv}
	names := r.tables()
	if err := r.err(); err != nil {
		return AWS{}, err
	}
	return names, nil
}

// LoadImport reads what an import into a deployed service needs: the bucket and the queue of jobs too. The error is Problems.
func LoadImport(getenv Getenv) (AWS, error) {
	r := &reader{getenv: getenv}
	names := r.aws()
	names.JobsQueue = r.queueURL(varJobsQueue)
	if err := r.err(); err != nil {
		return AWS{}, err
	}
	return names, nil
}

// LoadOrigin reads the public URL of a deployed service, which a sign-in link begins with. The error is Problems.
func LoadOrigin(getenv Getenv) (string, error) {
	r := &reader{getenv: getenv}
	origin := r.publicURL()
	if getenv(varPublicURL) == "" {
		r.fault(varPublicURL, "missing; set it to the origin that the service was deployed with, as https://mail.example.com.")
	}
	return origin, r.err()
}

// LoadKeySet reads the name of the secret that holds a deployed service's key set. The error is Problems.
func LoadKeySet(getenv Getenv) (Secret, error) {
	r := &reader{getenv: getenv}
	name := r.secretName(varKeySet)
	return name, r.err()
}

// loadBackground is for the functions that nobody calls from outside: they know no secret and no origin.
func loadBackground(getenv Getenv) (emulated bool, names AWS, err error) {
	r := &reader{getenv: getenv}
	emulated = r.emulated()
	if !emulated {
		r.dynamoOnly()
		names = r.aws()
		names.JobsQueue = r.queueURL(varJobsQueue)
	}
	return emulated, names, r.err()
}

// emulated reads the switches of emulation and refuses them on Lambda.
func (r *reader) emulated() bool {
	emulator, sam := r.flag(varEmulator), r.flag(varSAMLocal)
	if r.onLambda() {
		r.refuseOnLambda(emulator, sam)
	}
	return emulator || sam
}

// dynamoOnly refuses every other store.
func (r *reader) dynamoOnly() {
	switch store := r.or(varStore, "dynamo"); {
	case store == "dynamo":
	case store == "embedded" && r.onLambda():
		r.fault(varStore, "this is Lambda, whose disk is lost with each instance; embedded is for one machine.")
	case store == "embedded":
		r.fault(varStore, "the function takes the embedded store only when emulated; set %s=1.", varEmulator)
	default:
		r.fault(varStore, "%s is no store; leave it out for dynamo.", quote(store))
	}
}

// queueURL reads the address of a queue.
func (r *reader) queueURL(variable string) string {
	v := r.getenv(variable)
	u, err := url.Parse(v)
	switch {
	case v == "":
		r.fault(variable, "missing; set it to the URL of the SQS queue (an output of the stack).")
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || len(u.Path) < 2,
		u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		r.fault(variable, "not the URL of an SQS queue, as https://sqs.eu-west-1.amazonaws.com/123456789012/buzon-jobs.")
	}
	return v
}
