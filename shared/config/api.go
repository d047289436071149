package config

import "strings"

// API configures the api function on Lambda or emulated.
type API struct {
	// Emulated selects the embedded store in a temporary folder, demonstration data and the development issuer, with no AWS
	// behind it. Every variable that names something in AWS, and the public URL, is ignored then.
	Emulated       bool
	PublicURL      string // canonical origin; empty: the door's own name
	RootSecrets    Secret // name of the secret that holds the root secrets; empty when emulated
	WebhookKey     Secret // name of the secret that seals signing secrets of webhooks; empty: no webhooks can be made
	KeySet         Secret // name of the secret that holds the signing keys; empty when emulated
	AWS            AWS    // zero when emulated
	Rates          Rates
	Waits          int       // calls that may wait for mail at once
	AllowedOrigins []string  // canonical
	PublicDiscover bool      // server/discover without a token
	Stream         bool      // the function URL's InvokeMode is RESPONSE_STREAM
	Upstream       *Upstream // where people may sign in too; nil: nowhere. Emulated there is none
}

// LoadAPI reads the environment of the api function. The error is Problems.
func LoadAPI(getenv Getenv) (*API, error) {
	r := &reader{getenv: getenv}
	c := &API{Emulated: r.emulated(), AllowedOrigins: r.origins(), PublicDiscover: r.flag(varPublicDiscover)}
	c.Rates, c.Stream = r.rates(c.Emulated), r.stream()
	concurrency := localConcurrency
	if !c.Emulated {
		concurrency = deployedConcurrency
		r.deployed(c)
	}
	c.Waits = r.waits(concurrency)
	if err := r.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// stream reads how the function URL invokes. No event tells, so a value that differs from the URL's breaks every reply: the
// template sets both by one parameter.
func (r *reader) stream() bool {
	switch v := r.getenv(varInvokeMode); v {
	case "", "BUFFERED":
		return false
	case "RESPONSE_STREAM":
		return true
	default:
		r.fault(varInvokeMode, "%s is neither BUFFERED nor RESPONSE_STREAM; set it to the InvokeMode of the function URL.", quote(v))
		return false
	}
}

// refuseOnLambda: tokens of the development issuer can be signed by anybody, so a deployed function that accepted them would
// be open to the world.
func (r *reader) refuseOnLambda(emulator, sam bool) {
	const why = "this is Lambda, where emulation would accept tokens that anybody can sign; remove the variable."
	if emulator {
		r.fault(varEmulator, why)
	}
	if sam {
		r.fault(varSAMLocal, why)
	}
	if r.flag(varDemo) {
		r.fault(varDemo, "this is Lambda; demonstration data is for one machine. Remove the variable.")
	}
}

// deployed reads what names things in AWS.
func (r *reader) deployed(c *API) {
	c.PublicURL = r.publicURL()
	r.dynamoOnly()
	c.AWS = r.aws()
	if r.getenv(varJobsQueue) != "" { // without it the worker's schedule brings jobs to the queue
		c.AWS.JobsQueue = r.queueURL(varJobsQueue)
	}
	c.RootSecrets = r.secretName(varRootSecrets)
	c.KeySet = r.secretName(varKeySet)
	c.Upstream = r.deployedUpstream()
	c.WebhookKey = r.webhookKey()
}

// webhookKey works when it is absent: a service without it has no webhooks.
func (r *reader) webhookKey() Secret {
	if r.getenv(varWebhookKey) == "" {
		return ""
	}
	return r.secretName(varWebhookKey)
}

// secretName reads the name or ARN of a secret. People paste the secret itself here, so the value is of a type that never
// prints and no message repeats it.
func (r *reader) secretName(variable string) Secret {
	v := r.getenv(variable)
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_+=.@:-"
	switch {
	case v == "":
		r.fault(variable, "missing; set it to the name or ARN of the secret in Secrets Manager.")
	case len(v) > 512 || strings.Trim(v, allowed) != "":
		r.fault(variable, "not the name of a secret; set it to the name or ARN, never to the secret itself.")
	}
	return Secret(v)
}
