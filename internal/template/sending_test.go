package template

import (
	"slices"
	"strings"
	"testing"
)

// mailIdentity is what mail may be sent as.
const mailIdentity = "arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:identity/${MailDomain}"

// Only the worker sends mail, as the one domain, from addresses of that domain.
func TestSending(t *testing.T) {
	template := load(t)
	for name, role := range resources(t, template, "AWS::IAM::Role") {
		statements := 0
		for _, p := range list(at(role, "Properties", "Policies")) {
			for _, s := range list(at(p, "PolicyDocument", "Statement")) {
				sends := slices.ContainsFunc(list(at(s, "Action")), func(a node) bool { return strings.HasPrefix(text(a), "ses:") })
				if !sends {
					if strings.Contains(jsonOf(t, at(s, "Resource")), ":identity/") {
						t.Errorf("%s: an identity for something else than sending", name)
					}
					continue
				}
				statements++
				if got := jsonOf(t, at(s, "Action")); got != `["ses:SendEmail","ses:SendRawEmail"]` {
					t.Errorf("%s may %s", name, got)
				}
				if r := list(at(s, "Resource")); len(r) != 1 || text(at(r[0], "Fn::Sub")) != mailIdentity {
					t.Errorf("%s may send as %s", name, jsonOf(t, at(s, "Resource")))
				}
				if got := jsonOf(t, at(s, "Condition")); got != `{"StringLike":{"ses:FromAddress":{"Fn::Sub":"*@${MailDomain}"}}}` {
					t.Errorf("%s may send from %s", name, got)
				}
			}
		}
		if want := map[string]int{"WorkerRole": 1}[name]; statements != want {
			t.Errorf("%s has %d permissions to send, want %d", name, statements, want)
		}
	}
}

// Uploads: the function of the doors signs addresses for that folder and can't read it; the worker reads and removes, and puts nothing there.
func TestUploadPermissions(t *testing.T) {
	template := load(t)
	roles := resources(t, template, "AWS::IAM::Role")
	for role, want := range map[string][]string{"ApiRole": {"s3:PutObject"}, "WorkerRole": {"s3:DeleteObject", "s3:GetObject"}, "InboundRole": nil} {
		var got []string
		for _, p := range list(at(roles[role], "Properties", "Policies")) {
			for _, s := range list(at(p, "PolicyDocument", "Statement")) {
				for _, r := range list(at(s, "Resource")) {
					if text(at(r, "Fn::Sub")) == "${MailBucket.Arn}/upload/*" {
						for _, a := range list(at(s, "Action")) {
							got = append(got, text(a))
						}
					}
				}
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s may %v on uploads, want %v", role, got, want)
		}
	}
}
