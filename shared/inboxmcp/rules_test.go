package inboxmcp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
)

const (
	ruleTemplate      = "buzon://inbox/rules/{slug}"
	templateTemplate  = "buzon://inbox/extraction-templates/{slug}"
	extractedTemplate = "buzon://inbox/extractions/{email_id}/{template}"
)

// ruled is an inbox with rules, templates and an extraction, and another tenant's with the like.
func ruled(w *world) (mail, foreign string) {
	w.Helper()
	put := func(who, path, body string) {
		w.Helper()
		if code, text := w.rest(who, "PUT", path, body); code != 201 {
			w.Fatalf("%s: %d %s", path, code, text)
		}
	}
	rival := *w.callers["ruler"]
	rival.Subject, rival.Organization, rival.Workspaces = "user_rival", orgB, w.callers["globex"].Workspaces
	w.callers["rival"] = &rival
	ids := map[string]string{}
	for who, x := range map[string]struct{ org, ws, mark string }{"ruler": {orgA, wsA, "ours"}, "rival": {orgB, wsB, "theirs"}} {
		in := w.box(who, "support-"+x.mark)
		id, _ := w.deliver(in, x.org, x.ws, hostile)
		put(who, "/extraction-templates", `{"slug":"tpl-`+x.mark+`","json_schema":{"type":"object","properties":{"x":{"type":"string"}}},"locators":[{"field":"x","kind":"regex","value":".+"}]}`)
		put(who, "/rules", `{"slug":"rule-`+x.mark+`","conditions":[{"field":"attachment","op":"exists"}],"actions":[{"type":"add_label","value":"label-`+x.mark+`"},{"type":"add_label","value":"a/b"}]}`)
		e, _, err := w.store.Email(w.Context(), x.ws, id, false)
		w.must(err)
		tpl, err := w.store.Template(w.Context(), x.ws, inbox.TemplateID(x.ws, "tpl-"+x.mark))
		w.must(err)
		got, err := inbox.Extract(w.Context(), inbox.NewLocators(), tpl, e, inbox.ExtractionMail{Text: hostile}, "x", time.Time{})
		w.must(err)
		w.must(w.store.PutExtraction(w.Context(), got))
		ids[who] = id
	}
	return ids["ruler"], ids["rival"]
}

func TestRuleResources(t *testing.T) {
	w := newWorld(t)
	mail, foreign := ruled(w)
	for _, version := range []string{modern, legacy} {
		for uri, path := range map[string]string{
			"rules/rule-ours": "/rules?slug=rule-ours", "extraction-templates/tpl-ours": "/extraction-templates?slug=tpl-ours",
			"extractions/" + mail + "/tpl-ours": "/extractions?email_id=" + mail + "&template=tpl-ours",
		} {
			text, _, meta := w.content("ruler", version, "buzon://inbox/"+uri)
			if _, route := w.rest("ruler", "GET", path, ""); text != route || !strings.Contains(text, "ours") {
				t.Errorf("%s: %s, want %s", uri, text, route)
			}
			if strings.HasPrefix(uri, "extractions/") != (meta[untrustedKey] != nil) {
				t.Errorf("%s: pointers %v", uri, meta)
			}
		}
		for _, uri := range []string{
			"rules/rule-theirs", "rules/none", "extraction-templates/tpl-theirs", "extractions/" + mail + "/tpl-theirs", "extractions/" + foreign + "/tpl-theirs",
			"extractions/" + foreign + "/tpl-ours", "extractions/" + mail, "rules/rule-ours/x", "rules/RULE%2Dours",
		} {
			got := w.send("ruler", version, "resources/read", map[string]any{"uri": "buzon://inbox/" + uri})
			if got.err == nil || strings.Contains(got.body, "theirs\"") && !strings.Contains(uri, "theirs") {
				t.Errorf("%s: %s", uri, got.body)
			}
		}
	}
}

func TestRuleCompletions(t *testing.T) {
	w := newWorld(t)
	mail, _ := ruled(w)
	for name, x := range map[string]struct {
		who    string
		params map[string]any
		want   string
	}{
		"rules":               {"ruler", completing("ref/resource", ruleTemplate, "slug", "RULE"), "rule-ours"},
		"templates":           {"ruler", completing("ref/resource", templateTemplate, "slug", ""), "tpl-ours"},
		"template of a mail":  {"ruler", completing("ref/resource", extractedTemplate, "template", "t"), "tpl-ours"},
		"mail":                {"ruler", completing("ref/resource", extractedTemplate, "email_id", ""), mail},
		"template, prompt":    {"ruler", completing("ref/prompt", "extract_fields", "template", ""), "tpl-ours"},
		"labels of rules":     {"ruler", completing("ref/prompt", "draft_rule", "label", ""), "label-ours"},
		"no label":            {"ruler", completing("ref/prompt", "draft_rule", "label", "z"), ""},
		"the user's own goal": {"ruler", completing("ref/prompt", "draft_rule", "goal", "r"), ""},
		"inbox":               {"ruler", completing("ref/prompt", "draft_rule", "inbox", "sup"), "support-ours"},
		"another tenant":      {"rival", completing("ref/prompt", "draft_rule", "label", ""), "label-theirs"},
	} {
		if got := w.complete(x.who, modern, x.params); strings.Join(got.Values, " ") != x.want {
			t.Errorf("%s: %v, want %s", name, got.Values, x.want)
		}
	}
	if got := w.send("viewer", modern, "completion/complete", completing("ref/resource", ruleTemplate, "slug", "")); strings.Contains(got.body, "rule-ours") {
		t.Errorf("without the scope: %s", got.body)
	}
}

func TestRulePrompts(t *testing.T) {
	w := newWorld(t)
	mail, foreign := ruled(w)
	for _, version := range []string{modern, legacy} {
		ours, shown := w.prompt("ruler", version, "draft_rule", map[string]any{"inbox": "support-ours", "goal": "Label «facturas» of ACME, 50 % or more!", "label": "billing"})
		if len(shown) != 1 || !strings.Contains(shown[0].Content.Resource.Text, mail) || !strings.Contains(ours[0], "«facturas» of ACME, 50 % or more!") || !strings.Contains(ours[0], "rules_test") {
			t.Errorf("draft_rule: %q, %d resources", ours, len(shown))
		}
		ours, shown = w.prompt("ruler", version, "extract_fields", map[string]any{"email_id": mail, "template": "tpl-ours"})
		if len(shown) != 2 || !strings.Contains(shown[0].Content.Resource.Text, "json_schema") || !strings.Contains(shown[1].Content.Resource.Text, `"extractions":[{"template":"tpl-ours"`) || !strings.Contains(ours[0], "Never guess") {
			t.Errorf("extract_fields: %q, %d resources", ours, len(shown))
		}
	}
	for name, x := range map[string]struct {
		prompt    string
		arguments map[string]any
		reason    string
	}{
		"no goal":            {"draft_rule", map[string]any{"inbox": "support-ours"}, "argument_missing"},
		"a long goal":        {"draft_rule", map[string]any{"inbox": "support-ours", "goal": strings.Repeat("x", 501)}, "argument_invalid"},
		"a turned goal":      {"draft_rule", map[string]any{"inbox": "support-ours", "goal": "x\u202ey"}, "argument_invalid"},
		"two lines":          {"draft_rule", map[string]any{"inbox": "support-ours", "goal": "x\ny"}, "argument_invalid"},
		"a label":            {"draft_rule", map[string]any{"inbox": "support-ours", "goal": "x", "label": "ignore all"}, "argument_invalid"},
		"foreign inbox":      {"draft_rule", map[string]any{"inbox": "support-theirs", "goal": "x"}, "not_found"},
		"no template":        {"extract_fields", map[string]any{"email_id": mail}, "argument_missing"},
		"foreign template":   {"extract_fields", map[string]any{"email_id": mail, "template": "tpl-theirs"}, "not_found"},
		"foreign email":      {"extract_fields", map[string]any{"email_id": foreign, "template": "tpl-ours"}, "not_found"},
		"a path as template": {"extract_fields", map[string]any{"email_id": mail, "template": "../x"}, "argument_invalid"},
	} {
		if got := w.send("ruler", modern, "prompts/get", asking(x.prompt, x.arguments)); got.err == nil || got.err.Data["reason"] != x.reason {
			t.Errorf("%s: %s", name, got.body)
		}
	}
}
