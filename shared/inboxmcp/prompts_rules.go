package inboxmcp

import (
	"context"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/mcp"
)

func rulePrompts() []prompt {
	return []prompt{
		{
			mcp.Prompt{
				Name: "extract_fields", Title: "Extract fields from an email",
				Description: "Fills the fields of an extraction template from one email, with the words each value stands in, and leaves out what is in doubt.",
				Arguments: []mcp.PromptArgument{
					{Name: argEmail, Description: "Id of the email.", Required: true},
					{Name: argTemplate, Description: "Slug of the extraction template.", Required: true},
				},
			}, []string{toolEmail, toolTemplates}, (*Offers).extractFields,
		},
		{
			mcp.Prompt{
				Name: "draft_rule", Title: "Draft a rule",
				Description: "Drafts a rule for a goal, tried on the newest emails of an inbox. Stores nothing by itself.",
				Arguments: []mcp.PromptArgument{
					{Name: argInbox, Description: "Slug or id of the inbox.", Required: true},
					{Name: argGoal, Description: "What the rule is to do, in your words.", Required: true},
					{Name: argLabel, Description: "Label that it is to add."},
				},
			}, []string{toolEmails, toolRules, toolRuleTest}, (*Offers).draftRule,
		},
	}
}

// maxGoal is in characters.
const maxGoal = 500

// sentence holds for a text that a user may put into the instructions: it is the user's own, so only its shape is judged. What turns or
// hides text is refused, for the user would not see it either.
func sentence(s string) bool {
	for _, r := range s {
		if r == utf8.RuneError || r != ' ' && !unicode.IsGraphic(r) || unicode.In(r, unicode.Cf, unicode.Co) {
			return false
		}
	}
	return utf8.RuneCountInString(s) <= maxGoal
}

// extractFields embeds the template and the email.
func (o *Offers) extractFields(ctx context.Context, r mcp.CallRequest, arguments map[string]string) (*mcp.PromptResult, error) {
	tf, tv := o.family("extraction_template"), values{argSlug: arguments[argTemplate]}
	template, err := o.read(ctx, r, tf, tv)
	if err != nil {
		return nil, err
	}
	ef, ev := o.family("email"), values{argID: arguments[argEmail]}
	mail, err := o.call(ctx, r, toolEmail, map[string]any{
		argID: arguments[argEmail], "include": []string{inbox.TextPlain, inbox.ViewExtractions}, "max_chars": threadChars,
	})
	if err != nil {
		return nil, err
	}
	return o.conversation("", []mcp.Content{
		mcp.EmbedText(tf.fill(tv), typeJSON, template.json), mcp.EmbedText(ef.fill(ev), typeJSON, mail.json),
	},
		"Fill the fields of the extraction template "+arguments[argTemplate]+", the first resource, from the email "+arguments[argEmail]+", the second.",
		"Give one JSON object of the shape of json_schema, then a table with field, value and the exact words of the email that it stands in.",
		"Where a value is missing or could be read in two ways, leave the field out and say why. Never guess and never compute.",
		"If untrusted.extractions has other values than yours, say which and what speaks for each."), nil
}

// draftRule embeds the newest emails of the inbox.
func (o *Offers) draftRule(ctx context.Context, r mcp.CallRequest, arguments map[string]string) (*mcp.PromptResult, error) {
	got, err := o.call(ctx, r, toolEmails, map[string]any{argInbox: arguments[argInbox], argLimit: defaultTriage})
	if err != nil {
		return nil, err
	}
	label := ""
	if arguments[argLabel] != "" {
		label = " It is to add the label " + arguments[argLabel] + "."
	}
	uri := o.family("inbox_emails").fill(values{argSlug: arguments[argInbox]})
	return o.conversation("", []mcp.Content{mcp.EmbedText(uri, typeJSON, got.json)},
		"Draft a rule for the inbox "+arguments[argInbox]+". My goal, in my words: "+strconv.Quote(arguments[argGoal])+"."+label,
		"The resource that follows has the newest emails of the inbox, as examples of what arrives. Read the rules that exist with rules_list.",
		"Prefer conditions that a sender can't forge: trust, listed and auth beside from or domain; few words in subject or text; a pattern only where words do not do.",
		"Try the draft with rules_test (rule, email_id) on emails that it should match and on some that it should not, and mend it until it is right.",
		"Then show me the arguments of rules_upsert, which emails it matches, what it misses, and who could misuse it. Store nothing before I agree; then "+
			"store it disabled unless I say otherwise."), nil
}
