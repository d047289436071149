package template

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/config"
)

const functionKind = "AWS::Serverless::Function"

// loaders are the load functions of the processes that the template starts.
//
//nolint:gochecknoglobals // constant table
var loaders = map[string]func(config.Getenv) error{
	"ApiFunction":     func(g config.Getenv) error { _, err := config.LoadAPI(g); return err },
	"WorkerFunction":  func(g config.Getenv) error { _, err := config.LoadWorker(g); return err },
	"InboundFunction": func(g config.Getenv) error { _, err := config.LoadInbound(g); return err },
}

// sample stands for what CloudFormation would put.
func sample(template map[string]node, value node) string {
	if s, ok := value.(string); ok {
		return s
	}
	if branches := list(at(value, "Fn::If")); len(branches) == 3 {
		return sample(template, branches[2])
	}
	name := named(value)
	if p := at(template, "Parameters", name); p != nil {
		switch d := at(p, "Default").(type) {
		case string:
			return d
		case int:
			out, _ := json.Marshal(d)
			return string(out)
		}
	}
	switch text(at(template, "Resources", name, "Type")) {
	case "AWS::SQS::Queue":
		return "https://sqs.eu-west-1.amazonaws.com/123456789012/" + name
	case "AWS::SecretsManager::Secret":
		return "arn:aws:secretsmanager:eu-west-1:123456789012:secret:" + name + "-AbCdEf"
	}
	return "buzon-" + strings.ToLower(name)
}

// Every variable that the template sets is one that the function's configuration reads, with a value that it takes; and
// nothing of one machine is among them.
func TestEnvironment(t *testing.T) {
	template := load(t)
	functions := resources(t, template, functionKind)
	if got, want := slices.Sorted(maps.Keys(functions)), slices.Sorted(maps.Keys(loaders)); !slices.Equal(got, want) {
		t.Fatalf("functions %q, want %q", got, want)
	}
	for name, f := range functions {
		variables, ok := at(f, "Properties", "Environment", "Variables").(map[string]node)
		if !ok {
			t.Fatalf("%s has no variables", name)
		}
		values := map[string]string{ // Lambda's own
			"AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand", "AWS_REGION": "eu-west-1",
			"AWS_ACCESS_KEY_ID": "ASIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "session",
		}
		for variable, value := range variables {
			values[variable] = sample(template, value)
		}
		read := map[string]bool{}
		if err := loaders[name](func(v string) string { read[v] = true; return values[v] }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for variable := range variables {
			if variable != "GOMEMLIMIT" && !read[variable] { // the Go runtime's
				t.Errorf("%s sets %s, which its configuration does not read", name, variable)
			}
		}
	}
	whole, err := os.ReadFile("../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for word, why := range map[string]string{
		"BUZON_EMULATOR":                 "an emulated function accepts tokens that anybody can sign",
		"AWS_SAM_LOCAL":                  "an emulated function accepts tokens that anybody can sign",
		"BUZON_DEMO":                     "demonstration data is for one machine",
		"embedded":                       "the disk of a function is lost with it",
		"AWS_LAMBDA_INITIALIZATION_TYPE": "it is Lambda's own, and what tells a deployed function",
		"BUZON_DATA_DIR":                 "it is the local process's",
	} {
		if strings.Contains(string(whole), word) {
			t.Errorf("the template says %s: %s", word, why)
		}
	}
}

// A message is out of sight for six times as long as a function may take, and failures are named one by one.
func TestQueues(t *testing.T) {
	template := load(t)
	timeout := number(at(template, "Globals", "Function", "Timeout"))
	if timeout != 29 {
		t.Errorf("timeout %d, want 29: the doors give up after 30 seconds", timeout)
	}
	queues := resources(t, template, "AWS::SQS::Queue")
	dead := map[string]bool{}
	for name, q := range queues {
		if target := named(at(q, "Properties", "RedrivePolicy", "deadLetterTargetArn")); target != "" {
			dead[target] = true
			if n := number(at(q, "Properties", "RedrivePolicy", "maxReceiveCount")); n < 5 || n > 20 {
				t.Errorf("%s is given up after %d times", name, n)
			}
		}
	}
	for name, q := range queues {
		if at(q, "Properties", "SqsManagedSseEnabled") != true {
			t.Errorf("%s is not encrypted", name)
		}
		if dead[name] {
			if number(at(q, "Properties", "MessageRetentionPeriod")) != 14*24*3600 {
				t.Errorf("%s keeps the dead for less than 14 days", name)
			}
		} else if at(q, "Properties", "RedrivePolicy") == nil {
			t.Errorf("%s has no dead-letter queue", name)
		}
	}
	mappings := resources(t, template, "AWS::Lambda::EventSourceMapping")
	served := map[string]bool{}
	for name, m := range mappings {
		queue := named(at(m, "Properties", "EventSourceArn"))
		served[queue] = true
		if v := number(at(queues[queue], "Properties", "VisibilityTimeout")); v < 6*timeout {
			t.Errorf("%s: %s hides messages for %d s, want six times the timeout", name, queue, v)
		}
		if r := list(at(m, "Properties", "FunctionResponseTypes")); len(r) != 1 || r[0] != "ReportBatchItemFailures" {
			t.Errorf("%s: one bad message would give its whole batch back", name)
		}
		if at(m, "Properties", "FilterCriteria") != nil {
			t.Errorf("%s: what fails a filter is deleted", name)
		}
	}
	for name := range queues {
		if !dead[name] && !served[name] {
			t.Errorf("nobody reads %s", name)
		}
	}
	for name, s := range resources(t, template, "AWS::SNS::Subscription") {
		if at(s, "Properties", "Protocol") == "sqs" && at(s, "Properties", "RedrivePolicy") == nil {
			t.Errorf("%s has no dead-letter queue", name)
		}
	}
}

// Each function may do what it needs on what it needs.
func TestRoles(t *testing.T) {
	template := load(t)
	roles := resources(t, template, "AWS::IAM::Role")
	for name, f := range resources(t, template, functionKind) {
		if roles[named(at(f, "Properties", "Role"))] == nil {
			t.Errorf("%s: SAM would make a role with managed policies, which name every resource of the account", name)
		}
		if at(f, "Properties", "Policies") != nil || at(f, "Properties", "Events") != nil {
			t.Errorf("%s has Policies or Events, which SAM makes permissions of", name)
		}
	}
	for name, r := range roles {
		if at(r, "Properties", "ManagedPolicyArns") != nil {
			t.Errorf("%s has managed policies", name)
		}
		for _, p := range list(at(r, "Properties", "Policies")) {
			for _, s := range list(at(p, "PolicyDocument", "Statement")) {
				checkStatement(t, name, s)
			}
		}
	}
	// Nobody but the function of the doors reads a secret, but for the one that webhooks are signed with, and nobody writes one.
	whole := jsonOf(t, template["Resources"])
	worker := jsonOf(t, roles["WorkerRole"])
	if n := strings.Count(whole, "secretsmanager:"); n != 2 || !strings.Contains(jsonOf(t, roles["ApiRole"]), "secretsmanager:GetSecretValue") {
		t.Errorf("%d permissions on secrets", n)
	}
	if !strings.Contains(worker, "WebhookKey") || strings.Contains(worker, "RootSecrets") || strings.Contains(worker, "KeySet") {
		t.Errorf("the worker reads other secrets than its own: %s", worker)
	}
}

// Jobs start in the function of the doors and end in the worker: the one sends and takes nothing out, the inbound function neither
// takes nor sees what the other sends.
func TestJobsQueuePermissions(t *testing.T) {
	template := load(t)
	roles := resources(t, template, "AWS::IAM::Role")
	for role, want := range map[string][]string{
		"ApiRole":     {"sqs:SendMessage"},
		"InboundRole": {"sqs:SendMessage"},
		"WorkerRole": {
			"sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage", "sqs:SendMessage",
		},
	} {
		var got []string
		for _, p := range list(at(roles[role], "Properties", "Policies")) {
			for _, s := range list(at(p, "PolicyDocument", "Statement")) {
				for _, r := range list(at(s, "Resource")) {
					if named(r) != "JobsQueue" {
						continue
					}
					for _, a := range list(at(s, "Action")) {
						got = append(got, text(a))
					}
				}
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s may %v on the queue of jobs, want %v", role, got, want)
		}
	}
}

func jsonOf(t *testing.T, n node) string {
	t.Helper()
	out, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func checkStatement(t *testing.T, name string, s node) {
	t.Helper()
	if at(s, "Effect") != "Allow" || at(s, "NotAction") != nil || at(s, "NotResource") != nil || at(s, "Principal") != nil {
		t.Errorf("%s: an odd statement %s", name, jsonOf(t, s))
	}
	for _, a := range list(at(s, "Action")) {
		if strings.Contains(text(a), "*") || !regexp.MustCompile(`^[a-z0-9]+:[A-Za-z]+$`).MatchString(text(a)) {
			t.Errorf("%s may do %v", name, a)
		}
		if strings.HasSuffix(text(a), ":Scan") {
			t.Errorf("%s may scan: nothing does", name)
		}
	}
	if len(list(at(s, "Resource"))) == 0 {
		t.Errorf("%s: a statement without a resource", name)
	}
	folder := regexp.MustCompile(`^\$\{MailBucket\.Arn\}/[a-z]+/\*$`)
	for _, r := range list(at(s, "Resource")) {
		if text(at(r, "Fn::Sub")) == mailIdentity { // TestSending looks at it
			continue
		}
		if branches := list(at(r, "Fn::If")); len(branches) == 3 && named(branches[2]) == "AWS::NoValue" {
			r = branches[1] // there, or nothing
			if at(r, "Fn::Sub") == "${OidcSecretArn}" {
				continue
			}
		}
		if sub := text(at(r, "Fn::Sub")); sub != "" && !folder.MatchString(sub) || sub == "" && named(r) == "" {
			t.Errorf("%s may act on %s", name, jsonOf(t, r))
		}
	}
}

// What others may do here: Allow names a service and the very resource that acts for it, Deny is for plain text.
func TestResourcePolicies(t *testing.T) {
	template := load(t)
	closed := map[string]bool{}
	for _, kind := range []string{"AWS::S3::BucketPolicy", "AWS::SQS::QueuePolicy", "AWS::SNS::TopicPolicy"} {
		for name, p := range resources(t, template, kind) {
			for _, s := range list(at(p, "Properties", "PolicyDocument", "Statement")) {
				switch at(s, "Effect") {
				case "Deny":
					if at(s, "Principal") != "*" || at(s, "Condition", "Bool", "aws:SecureTransport") != "false" {
						t.Errorf("%s: an odd refusal %s", name, jsonOf(t, s))
					}
					for _, q := range append(list(at(p, "Properties", "Queues")), list(at(p, "Properties", "Bucket"))...) {
						closed[named(q)] = true
					}
				case "Allow":
					condition := jsonOf(t, at(s, "Condition"))
					if text(at(s, "Principal", "Service")) == "" || !strings.Contains(condition, "aws:SourceArn") {
						t.Errorf("%s lets in more than one: %s", name, jsonOf(t, s))
					}
					if at(s, "Principal", "Service") == "ses.amazonaws.com" && !strings.Contains(condition, "aws:SourceAccount") {
						t.Errorf("%s takes SES for anybody's sake", name)
					}
					if strings.Contains(text(at(s, "Action")), "*") {
						t.Errorf("%s allows %v", name, at(s, "Action"))
					}
				}
			}
		}
	}
	for _, kind := range []string{"AWS::SQS::Queue", "AWS::S3::Bucket"} {
		for name := range resources(t, template, kind) {
			if !closed[name] {
				t.Errorf("%s can be reached in plain text", name)
			}
		}
	}
}

// A public function URL needs both permissions since October 2025, and no other permission is public.
func TestFrontDoors(t *testing.T) {
	template := load(t)
	public := map[string]node{}
	for name, p := range resources(t, template, "AWS::Lambda::Permission") {
		switch at(p, "Properties", "Principal") {
		case "*":
			public[text(at(p, "Properties", "Action"))] = p
			if named(at(p, "Properties", "FunctionName")) != "ApiFunction" || at(p, "Condition") != "HasFunctionUrl" {
				t.Errorf("%s opens more than the function URL", name)
			}
		default:
			if at(p, "Properties", "SourceArn") == nil {
				t.Errorf("%s lets in every resource of a service", name)
			}
		}
	}
	if len(public) != 2 || at(public["lambda:InvokeFunctionUrl"], "Properties", "FunctionUrlAuthType") != "NONE" ||
		at(public["lambda:InvokeFunction"], "Properties", "InvokedViaFunctionUrl") != true {
		t.Errorf("public permissions %v", public)
	}
	for name, u := range resources(t, template, "AWS::Lambda::Url") {
		if at(u, "Properties", "AuthType") != "NONE" || at(u, "Condition") != "HasFunctionUrl" {
			t.Errorf("%s: %s", name, jsonOf(t, u))
		}
		// The function can't see how the URL invokes it: where the two differ every reply is broken.
		told := at(template, "Resources", "ApiFunction", "Properties", "Environment", "Variables", "BUZON_INVOKE_MODE")
		if mode := named(at(u, "Properties", "InvokeMode")); mode != "InvokeMode" || named(told) != mode {
			t.Errorf("%s invokes by %q, and the function is told %q", name, mode, named(told))
		}
	}
	modes := list(at(template, "Parameters", "InvokeMode", "AllowedValues"))
	if at(template, "Parameters", "InvokeMode", "Default") != "BUFFERED" || len(modes) != 2 {
		t.Errorf("invoke modes %v", modes)
	}
	for _, mode := range modes {
		env := map[string]string{"BUZON_EMULATOR": "1", "BUZON_INVOKE_MODE": text(mode)}
		if c, err := config.LoadAPI(func(v string) string { return env[v] }); err != nil || c.Stream != (mode == "RESPONSE_STREAM") {
			t.Errorf("the function reads %v as %+v, %v", mode, c, err)
		}
	}
	for name, i := range resources(t, template, "AWS::ApiGatewayV2::Integration") {
		if at(i, "Properties", "PayloadFormatVersion") != "2.0" {
			t.Errorf("%s has another payload format than lambdaedge reads", name)
		}
	}
	for name, s := range resources(t, template, "AWS::ApiGatewayV2::Stage") {
		if at(s, "Properties", "StageName") != "$default" {
			t.Errorf("%s would put a prefix before every path", name)
		}
	}
	if strings.Contains(strings.ToLower(jsonOf(t, template)), "cors") {
		t.Error("CORS is the function's: two answers to a preflight break browsers")
	}
	doors := list(at(template, "Parameters", "FrontDoor", "AllowedValues"))
	if at(template, "Parameters", "FrontDoor", "Default") != "FunctionUrl" || len(doors) != 3 {
		t.Errorf("front doors %v", doors)
	}
}

// What is kept is kept: through a deleted stack, a mistake, and a reader who should not be one.
func TestStorage(t *testing.T) {
	template := load(t)
	tables := resources(t, template, "AWS::DynamoDB::Table")
	for name, table := range tables {
		p := at(table, "Properties")
		if at(p, "BillingMode") != "PAY_PER_REQUEST" || at(p, "TimeToLiveSpecification", "AttributeName") != "exp" || at(p, "TimeToLiveSpecification", "Enabled") != true {
			t.Errorf("%s: %s", name, jsonOf(t, p))
		}
		keys := jsonOf(t, at(p, "KeySchema"))
		if keys != `[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]` {
			t.Errorf("%s has the keys %s", name, keys)
		}
	}
	core := tables["CoreTable"]
	if at(core, "Properties", "DeletionProtectionEnabled") != true || at(core, "DeletionPolicy") != "Retain" || at(core, "UpdateReplacePolicy") != "Retain" ||
		at(core, "Properties", "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled") != true {
		t.Error("the core table can be lost")
	}
	for _, kind := range []string{"AWS::S3::Bucket", "AWS::SecretsManager::Secret"} {
		for name, r := range resources(t, template, kind) {
			if at(r, "DeletionPolicy") != "Retain" || at(r, "UpdateReplacePolicy") != "Retain" {
				t.Errorf("%s can be lost", name)
			}
		}
	}
	for name, b := range resources(t, template, "AWS::S3::Bucket") {
		for _, block := range []string{"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"} {
			if at(b, "Properties", "PublicAccessBlockConfiguration", block) != true {
				t.Errorf("%s lacks %s", name, block)
			}
		}
		if at(b, "Properties", "BucketEncryption") == nil {
			t.Errorf("%s is not encrypted", name)
		}
		for _, rule := range list(at(b, "Properties", "LifecycleConfiguration", "Rules")) {
			prefix, days := text(at(rule, "Prefix")), number(at(rule, "ExpirationInDays"))
			if days > 0 && (prefix != "unknown/" || days != 7) && (prefix != "try/" || days != 30) && (prefix != "upload/" || days != 10) {
				t.Errorf("%s loses what lies under %q after %d days", name, prefix, days)
			}
		}
	}
}

// SES puts mail where the inbound function looks for it, tells the topic, and scans.
func TestMailIn(t *testing.T) {
	template := load(t)
	for name, r := range resources(t, template, "AWS::SES::ReceiptRule") {
		rule := at(r, "Properties", "Rule")
		actions := list(at(rule, "Actions"))
		if len(actions) != 1 || at(actions[0], "S3Action", "ObjectKeyPrefix") != "ses/" || named(at(actions[0], "S3Action", "TopicArn")) != "MailTopic" {
			t.Errorf("%s: %s", name, jsonOf(t, rule))
		}
		if at(rule, "ScanEnabled") != true || at(rule, "Enabled") != true || len(list(at(rule, "Recipients"))) != 1 {
			t.Errorf("%s: %s", name, jsonOf(t, rule))
		}
		if !slices.Contains(list(at(r, "DependsOn")), node("MailBucketPolicy")) {
			t.Errorf("%s: SES tries the bucket when the rule is made, before its policy is there", name)
		}
	}
}

// Logs end, are JSON, and are a group of the function's own.
func TestLogs(t *testing.T) {
	template := load(t)
	groups := resources(t, template, "AWS::Logs::LogGroup")
	for name, g := range groups {
		if at(g, "Properties", "RetentionInDays") == nil {
			t.Errorf("%s is kept for ever", name)
		}
	}
	seen := map[string]bool{}
	for name, f := range resources(t, template, functionKind) {
		group := named(at(f, "Properties", "LoggingConfig", "LogGroup"))
		if at(f, "Properties", "LoggingConfig", "LogFormat") != "JSON" || groups[group] == nil || seen[group] {
			t.Errorf("%s logs to %q", name, group)
		}
		seen[group] = true
		if text(at(f, "Metadata", "BuildMethod")) != "makefile" {
			t.Errorf("%s is not built by the Makefile", name)
		}
	}
}

// Somebody is woken by every function's errors, throttles and duration, by both dead-letter queues and by old messages.
func TestAlarms(t *testing.T) {
	template := load(t)
	watched := map[string]bool{}
	for name, a := range resources(t, template, "AWS::CloudWatch::Alarm") {
		p := at(a, "Properties")
		if len(list(at(p, "AlarmActions"))) == 0 || at(p, "TreatMissingData") == nil {
			t.Errorf("%s wakes nobody", name)
		}
		of := ""
		for _, d := range list(at(p, "Dimensions")) {
			of = named(at(d, "Value"))
		}
		if text(at(p, "Namespace")) == "Buzon" && at(list(at(p, "Dimensions"))[0], "Name") != "FunctionName" {
			t.Errorf("%s has not the dimension of our metrics", name)
		}
		metric := text(at(p, "MetricName"))
		if metric == "" {
			metric = text(at(p, "MetricName", "Fn::Sub"))
		}
		watched[metric+" "+of] = true
	}
	var want []string
	for name := range loaders {
		want = append(want, "Errors "+name, "Throttles "+name, "Duration "+name)
	}
	for name, q := range resources(t, template, "AWS::SQS::Queue") {
		if at(q, "Properties", "RedrivePolicy") == nil {
			want = append(want, "ApproximateNumberOfMessagesVisible "+name)
		} else {
			want = append(want, "ApproximateAgeOfOldestMessage "+name)
		}
	}
	for _, w := range append(want, "AuthFailures ApiFunction", "Faults ApiFunction", "MailsFailed WorkerFunction") {
		if !watched[w] {
			t.Errorf("no alarm for %s", w)
		}
	}
}

// What the Makefile builds for each function is what its process is.
func TestBuildTargets(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for name := range loaders {
		folder := strings.ToLower(strings.TrimSuffix(name, "Function"))
		if _, err := os.Stat("../../functions/" + folder + "/main.go"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(string(makefile), "build-"+name) {
			t.Errorf("the Makefile does not build %s", name)
		}
	}
}

// Sign-in at a provider: all of it or nothing, and the secret only by its ARN.
func TestProvider(t *testing.T) {
	template := load(t)
	variables, _ := at(template, "Resources", "ApiFunction", "Properties", "Environment", "Variables").(map[string]node)
	given := map[string]string{
		"OidcIssuer": "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_x", "OidcClientId": "id", "OidcAllow": "@example.com", "OidcName": "Example",
		"OidcSecretArn": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:oidc-AbCdEf",
	}
	values := map[string]string{
		"AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand", "AWS_REGION": "eu-west-1",
		"AWS_ACCESS_KEY_ID": "ASIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "session",
	}
	for variable, value := range variables {
		if branches := list(at(value, "Fn::If")); len(branches) == 3 && branches[0] == "HasProvider" {
			if branches[2] != "" {
				t.Errorf("%s without a provider: %v", variable, branches[2])
			}
			value = branches[1]
		}
		if values[variable] = given[named(value)]; values[variable] == "" {
			values[variable] = sample(template, value)
		}
	}
	c, err := config.LoadAPI(func(v string) string { return values[v] })
	if err != nil || c.Upstream == nil || c.Upstream.Name != "Example" || c.Upstream.Secret.Reveal() != given["OidcSecretArn"] {
		t.Errorf("%+v, %v", c, err)
	}
	pattern := regexp.MustCompile(text(at(template, "Parameters", "OidcSecretArn", "AllowedPattern")))
	for value, ok := range map[string]bool{given["OidcSecretArn"]: true, "": true, "hush-hush": false, "arn:aws:s3:::bucket": false} {
		if pattern.MatchString(value) != ok {
			t.Errorf("OidcSecretArn takes %q: %t", value, !ok)
		}
	}
	whole := jsonOf(t, template)
	if strings.Contains(whole, "BUZON_OIDC_CLIENT_SECRET") || !strings.Contains(jsonOf(t, at(template, "Resources", "ApiRole")), "OidcSecretArn") {
		t.Error("the secret stands in the clear, or can't be read")
	}
}
