package scenario

// sample is how an operation is called so that it succeeds. {{name}} stands for one of the tenant's things (party.things), {{new}} for a
// word that nothing has yet, {{soon}} for a time to come.
type sample struct {
	arguments string   // of the tool
	before    []string // METHOD PATH BODY over REST, by the tenant's owner: they undo what the operation did the last time
	fresh     string   // a thing that is made anew each time
	stale     string   // arguments of what is there, for if_version; empty: those above
	other     string   // what differs in a call that may not have the same idempotency key; empty: it takes none
}

// samples has every operation of the catalogue: a new one fails TestScenarios until it stands here.
func samples() map[string]sample {
	all := map[string]sample{}
	for _, some := range []map[string]sample{organizationSamples(), inboxSamples(), emailSamples(), ruleSamples(), webhookSamples()} {
		for name, s := range some {
			all[name] = s
		}
	}
	return all
}

func organizationSamples() map[string]sample {
	return map[string]sample{
		"session_get":       {arguments: `{}`},
		"workspaces_list":   {arguments: `{}`},
		"workspaces_upsert": {arguments: `{"slug":"w{{new}}","name":"Otra"}`, stale: `{"slug":"{{workspace_slug}}"}`},
		"members_list":      {arguments: `{}`},
		"members_upsert": {other: `{"role":"operator"}`,
			arguments: `{"email":"{{new}}@new.example","role":"viewer","workspace_roles":[{"workspace":"{{workspace}}","role":"operator"}]}`,
			stale:     `{"email":"{{member_email}}"}`,
		},
		"members_delete": {arguments: `{"id":"{{member}}"}`, before: []string{`PUT /members {"email":"{{member_email}}","restore":true}`}},
		"api_keys_list":  {arguments: `{}`},
		"api_keys_create": {other: `{"name":"otro"}`,
			arguments: `{"name":"k{{new}}","scopes":["emails:read"],"workspaces":["{{workspace}}"],"inboxes":["{{inbox}}"],"expires_at":"{{soon}}"}`,
		},
		"api_keys_rotate":   {other: `{"overlap_h":3}`, arguments: `{"id":"{{key}}"}`},
		"api_keys_revoke":   {arguments: `{"id":"{{key}}"}`, fresh: "key"},
		"jobs_list":         {arguments: `{}`},
		"jobs_get":          {arguments: `{"id":"{{job}}"}`},
		"jobs_cancel":       {arguments: `{"id":"{{job}}"}`, fresh: "job"},
		"usage_get":         {arguments: `{}`},
		"audit_events_list": {arguments: `{}`},
	}
}

func inboxSamples() map[string]sample {
	return map[string]sample{
		"inboxes_list": {arguments: `{}`},
		"inboxes_get":  {arguments: `{"id":"{{inbox}}"}`},
		"inboxes_upsert": {
			arguments: `{"id":"{{inbox}}","retention_days":7}`, before: []string{`PUT /inboxes {"id":"{{inbox}}","retention_days":null}`},
		},
		"inboxes_delete":  {arguments: `{"id":"{{spare_inbox}}"}`, before: []string{`POST /inboxes/{{spare_inbox}}/restore`}},
		"inboxes_restore": {arguments: `{"id":"{{spare_inbox}}"}`, before: []string{`DELETE /inboxes/{{spare_inbox}}`}},
		"inboxes_set_sender_policy": {
			arguments: `{"id":"{{inbox}}","sender_policy":"listed"}`, before: []string{`PUT /inboxes/{{inbox}}/sender-policy {"sender_policy":"open"}`},
		},
		"allowed_senders_list":   {arguments: `{"id":"{{inbox}}"}`},
		"allowed_senders_upsert": {arguments: `{"id":"{{inbox}}","kind":"domain","value":"{{new}}.example"}`, stale: `{"id":"{{inbox}}","kind":"domain","value":"listed.example"}`},
		"allowed_senders_delete": {
			arguments: `{"id":"{{inbox}}","sender_id":"{{sender}}"}`,
			before:    []string{`PUT /inboxes/{{inbox}}/allowed-senders {"kind":"domain","value":"listed.example","restore":true}`},
		},
		"allowed_senders_check": {arguments: `{"id":"{{inbox}}","from":"a@listed.example"}`},
	}
}

func emailSamples() map[string]sample {
	return map[string]sample{
		"emails_list":      {arguments: `{"inbox":"{{inbox}}","thread_id":"{{thread}}"}`},
		"emails_get":       {arguments: `{"id":"{{email}}"}`},
		"emails_update":    {arguments: `{"id":"{{email}}","add_labels":["l{{new}}"]}`},
		"emails_release":   {arguments: `{"id":"{{held}}"}`, fresh: "held"},
		"emails_delete":    {arguments: `{"id":"{{spare_email}}"}`, before: []string{`POST /emails/{{spare_email}}/restore`}},
		"emails_restore":   {arguments: `{"id":"{{spare_email}}"}`, before: []string{`DELETE /emails/{{spare_email}}`}},
		"emails_reprocess": {other: `{"notify":true}`, arguments: `{"idempotency_key":"k{{new}}","id":"{{email}}"}`},
		"emails_forward":   {other: `{"note":"otra"}`, arguments: `{"idempotency_key":"k{{new}}","id":"{{email}}","to":["{{owner}}"]}`},
		"emails_raw_url":   {arguments: `{"id":"{{email}}"}`},
		"emails_claim":     {arguments: `{"inbox":"{{inbox}}"}`},
		"emails_wait":      {arguments: `{"inbox":"{{inbox}}","timeout_s":0}`},
		"uploads_create":   {arguments: `{"purpose":"import","size":20,"sha256":"{{sha256}}"}`},
		"emails_import": {other: `{"notify":true}`,
			arguments: `{"idempotency_key":"k{{new}}","inbox":"{{inbox}}","upload_id":"{{upload}}","format":"message/rfc822"}`, fresh: "upload",
		},
		"threads_list":             {arguments: `{"inbox":"{{inbox}}"}`},
		"threads_get":              {arguments: `{"id":"{{thread}}"}`},
		"attachments_list":         {arguments: `{"email_id":"{{email}}"}`},
		"attachments_get":          {arguments: `{"id":"{{att}}"}`},
		"attachments_download_url": {arguments: `{"id":"{{att}}"}`},
	}
}

func ruleSamples() map[string]sample {
	const schema = `"json_schema":{"type":"object","properties":{"total":{"type":"string"}}},"locators":[{"field":"total","kind":"label","value":"Total:"}]`
	return map[string]sample{
		"rules_list": {arguments: `{"inbox":"{{inbox}}"}`},
		"rules_upsert": {
			arguments: `{"slug":"r{{new}}","inbox":"{{inbox}}","enabled":true,"conditions":[{"field":"subject","op":"contains","value":"x"}],"actions":[{"type":"quarantine"}]}`,
			stale:     `{"slug":"{{rule_slug}}"}`,
		},
		"rules_delete":                {arguments: `{"id":"{{rule}}"}`, before: []string{`PUT /rules {"slug":"{{rule_slug}}","restore":true}`}},
		"rules_test":                  {arguments: `{"email_id":"{{email}}"}`},
		"extraction_templates_list":   {arguments: `{}`},
		"extraction_templates_upsert": {arguments: `{"slug":"t{{new}}",` + schema + `}`, stale: `{"slug":"{{template}}",` + schema + `}`},
		"extraction_templates_delete": {
			arguments: `{"id":"{{template_id}}"}`, before: []string{`PUT /extraction-templates {"slug":"{{template}}","restore":true}`},
		},
		"extractions_run":  {other: `{"email_ids":["{{spare_email}}"]}`, arguments: `{"idempotency_key":"k{{new}}","email_ids":["{{email}}"],"template":"{{template}}"}`},
		"extractions_list": {arguments: `{"email_id":"{{email}}","template":"{{template}}"}`},
	}
}

func webhookSamples() map[string]sample {
	return map[string]sample{
		"webhooks_list": {arguments: `{"inbox":"{{inbox}}"}`},
		"webhooks_get":  {arguments: `{"id":"{{webhook}}"}`},
		"webhooks_upsert": {other: `{"enabled":false}`,
			arguments: `{"name":"h{{new}}","url":"https://hooks.example/{{new}}","events":["email.processed"],"inboxes":["{{inbox}}"]}`,
			stale:     `{"id":"{{webhook}}","enabled":true}`,
		},
		"webhooks_delete":          {arguments: `{"id":"{{spare_webhook}}"}`, before: []string{`POST /webhooks/{{spare_webhook}}/restore`}},
		"webhooks_restore":         {arguments: `{"id":"{{spare_webhook}}"}`, before: []string{`DELETE /webhooks/{{spare_webhook}}`}},
		"webhooks_test":            {other: `{"event":"email.failed"}`, arguments: `{"idempotency_key":"k{{new}}","id":"{{webhook}}"}`},
		"webhooks_rotate_secret":   {other: `{"overlap_h":3}`, arguments: `{"idempotency_key":"k{{new}}","id":"{{webhook}}"}`},
		"webhook_deliveries_list":  {arguments: `{"webhook":"{{webhook}}","email_id":"{{email}}"}`},
		"webhook_deliveries_get":   {arguments: `{"id":"{{delivery}}"}`},
		"webhook_deliveries_retry": {other: `{"id":"{{other_delivery}}"}`, arguments: `{"idempotency_key":"k{{new}}","id":"{{delivery}}"}`},
	}
}
