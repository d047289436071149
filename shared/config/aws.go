package config

import "strings"

// AWS is where the service keeps what it keeps, and as whom it asks.
type AWS struct {
	Region                    string
	KeyID                     string
	KeySecret, Session        Secret
	CoreTable, EphemeralTable string // DynamoDB
	Bucket                    string // S3
}

// aws reads what Lambda and the template set.
func (r *reader) aws() AWS {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	const upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	c := AWS{
		Region: r.set(varRegion), KeyID: r.set(varKeyID), KeySecret: Secret(r.set(varSecret)), Session: Secret(r.getenv(varSession)),
		CoreTable: r.resource(varCoreTable, letters+upper+"0123456789_.-", "a table"), EphemeralTable: r.resource(varEphemeralTable, letters+upper+"0123456789_.-", "a table"),
		Bucket: r.resource(varBucket, letters+"0123456789.-", "a bucket"),
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
