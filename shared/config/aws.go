package config

import (
	"net/url"
	"strings"
)

// The variables that name things in AWS. The template sets them; region and credentials are Lambda's own.
const (
	varTableCore      = "BUZON_TABLE_CORE"
	varTableEphemeral = "BUZON_TABLE_EPHEMERAL"
	varBucket         = "BUZON_BUCKET"
	varJobsQueue      = "BUZON_JOBS_QUEUE_URL"
)

// AWS names what a deployed process stores things in.
type AWS struct {
	TableCore      string
	TableEphemeral string
	Bucket         string
	JobsQueueURL   string
}

// Worker configures the worker function, deployed or emulated.
type Worker struct {
	Emulated bool // as in API: nothing of AWS is read then
	AWS      AWS
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
	return &Worker{Emulated: emulated, AWS: names}, nil
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

// LoadAdmin reads the environment of the command line for a deployed service: the tables alone. The error is Problems.
func LoadAdmin(getenv Getenv) (AWS, error) {
	r := &reader{getenv: getenv}
	names := r.tables()
	if err := r.err(); err != nil {
		return AWS{}, err
	}
	return names, nil
}

// loadBackground is for the functions that nobody calls from outside: they know no secret and no origin.
func loadBackground(getenv Getenv) (emulated bool, names AWS, err error) {
	r := &reader{getenv: getenv}
	emulated = r.emulated()
	if !emulated {
		r.dynamoOnly()
		names = r.storage()
		names.JobsQueueURL = r.queueURL(varJobsQueue)
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

// storage reads the names of all but the queue.
func (r *reader) storage() AWS {
	names := r.tables()
	names.Bucket = r.name(varBucket, "S3 bucket")
	return names
}

func (r *reader) tables() AWS {
	names := AWS{TableCore: r.name(varTableCore, "DynamoDB table"), TableEphemeral: r.name(varTableEphemeral, "DynamoDB table")}
	if names.TableCore != "" && names.TableCore == names.TableEphemeral {
		r.fault(varTableEphemeral, "the same table as %s; rows of the two must not meet.", varTableCore)
	}
	return names
}

// name reads the name of a table or bucket: 3 to 255 of the characters that either may have.
func (r *reader) name(variable, what string) string {
	v := r.getenv(variable)
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
	switch {
	case v == "":
		r.fault(variable, "missing; set it to the name of the %s (an output of the stack).", what)
	case len(v) < 3 || len(v) > 255 || strings.Trim(v, allowed) != "":
		r.fault(variable, "%s is not the name of a %s.", quote(v), what)
	}
	return v
}

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
