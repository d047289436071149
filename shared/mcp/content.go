package mcp

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
)

// Content is a block of content. Build one with Text, Image, Audio, EmbedText, EmbedBlob or Link.
type Content struct {
	kind        string
	text        string
	data        []byte
	mime        string
	uri         string
	name        string
	Annotations *Annotations
}

// Text is a block of text.
func Text(text string) Content { return Content{kind: "text", text: text} }

// Image is an image, not yet in base64.
func Image(data []byte, mimeType string) Content {
	return Content{kind: "image", data: data, mime: mimeType}
}

// Audio is a sound, not yet in base64. A 2024-11-05 client, whose revision has none, sees a line of text in its place.
func Audio(data []byte, mimeType string) Content {
	return Content{kind: "audio", data: data, mime: mimeType}
}

// EmbedText is a resource with its text.
func EmbedText(uri, mimeType, text string) Content {
	return Content{kind: "resource", uri: uri, mime: mimeType, text: text}
}

// EmbedBlob is a resource with its bytes, not yet in base64.
func EmbedBlob(uri, mimeType string, data []byte) Content {
	return Content{kind: "resource", uri: uri, mime: mimeType, data: append([]byte{}, data...)}
}

// Link points to a resource. Clients before 2025-06-18, whose revisions have none, see its URI as text.
func Link(uri, name, mimeType string) Content {
	return Content{kind: "resource_link", uri: uri, name: name, mime: mimeType}
}

// Contents renders blocks as a content array in the shape of revision v, for CallResult.Content.
func Contents(v Version, blocks ...Content) json.RawMessage {
	dst := []byte{'['}
	for i, c := range blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = c.append(dst, v)
	}
	return append(dst, ']')
}

func (c Content) append(dst []byte, v Version) []byte {
	switch {
	case c.kind == "audio" && !v.AtLeast(V20250326):
		c = Content{kind: "text", text: "[audio, " + c.mime + "]", Annotations: c.Annotations}
	case c.kind == "resource_link" && !v.AtLeast(V20250618):
		c = Content{kind: "text", text: c.uri, Annotations: c.Annotations}
	}
	dst = appendQuoted(append(dst, `{"type":`...), c.kind)
	switch c.kind {
	case "text":
		dst = appendQuoted(append(dst, `,"text":`...), c.text)
	case "image", "audio":
		dst = appendBase64(append(dst, `,"data":`...), c.data)
		dst = appendQuoted(append(dst, `,"mimeType":`...), c.mime)
	case "resource":
		dst = ResourceContents{URI: c.uri, MIMEType: c.mime, Text: c.text, Blob: c.data}.append(append(dst, `,"resource":`...))
	case "resource_link":
		dst = appendQuoted(append(dst, `,"uri":`...), c.uri)
		dst = appendQuoted(append(dst, `,"name":`...), c.name)
		dst = appendText(dst, "mimeType", c.mime)
	}
	return append(c.Annotations.append(dst, v), '}')
}

func (c ResourceContents) append(dst []byte) []byte {
	dst = appendQuoted(append(dst, `{"uri":`...), c.URI)
	dst = appendText(dst, "mimeType", c.MIMEType)
	if c.Blob != nil {
		return append(appendBase64(append(dst, `,"blob":`...), c.Blob), '}')
	}
	return append(appendQuoted(append(dst, `,"text":`...), c.Text), '}')
}

// Append renders the resource in the shape of revision v.
func (r Resource) Append(dst []byte, v Version) []byte {
	dst = appendQuoted(append(dst, `{"uri":`...), r.URI)
	dst = appendText(dst, "name", r.Name)
	dst = appendLabels(dst, v, r.Title, r.Description)
	dst = appendText(dst, "mimeType", r.MIMEType)
	dst = r.Annotations.append(dst, v)
	if r.Size > 0 {
		dst = strconv.AppendInt(append(dst, `,"size":`...), r.Size, 10)
	}
	return append(appendIcons(dst, v, r.Icons), '}')
}

// Append renders the template in the shape of revision v.
func (t ResourceTemplate) Append(dst []byte, v Version) []byte {
	dst = appendQuoted(append(dst, `{"uriTemplate":`...), t.URITemplate)
	dst = appendText(dst, "name", t.Name)
	dst = appendLabels(dst, v, t.Title, t.Description)
	dst = appendText(dst, "mimeType", t.MIMEType)
	dst = t.Annotations.append(dst, v)
	return append(appendIcons(dst, v, t.Icons), '}')
}

// Append renders the prompt in the shape of revision v.
func (p Prompt) Append(dst []byte, v Version) []byte {
	dst = appendQuoted(append(dst, `{"name":`...), p.Name)
	dst = appendLabels(dst, v, p.Title, p.Description)
	for i, a := range p.Arguments {
		if i == 0 {
			dst = append(dst, `,"arguments":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = appendQuoted(append(dst, `{"name":`...), a.Name)
		dst = appendLabels(dst, v, a.Title, a.Description)
		if a.Required {
			dst = append(dst, `,"required":true`...)
		}
		dst = append(dst, '}')
	}
	if len(p.Arguments) > 0 {
		dst = append(dst, ']')
	}
	return append(appendIcons(dst, v, p.Icons), '}')
}

// appendLabels: titles exist since 2025-06-18.
func appendLabels(dst []byte, v Version, title, description string) []byte {
	if v.AtLeast(V20250618) {
		dst = appendText(dst, "title", title)
	}
	return appendText(dst, "description", description)
}

// append: lastModified exists since 2025-06-18.
func (a *Annotations) append(dst []byte, v Version) []byte {
	if a == nil {
		return dst
	}
	dst = append(dst, `,"annotations":{`...)
	start := len(dst)
	if len(a.Audience) > 0 {
		dst = appendTexts(append(dst, `,"audience":`...), a.Audience)
	}
	if a.Priority != nil && finite(*a.Priority) {
		dst = appendNumber(append(dst, `,"priority":`...), *a.Priority)
	}
	if v.AtLeast(V20250618) {
		dst = appendText(dst, "lastModified", a.LastModified)
	}
	if len(dst) > start { // without the first comma
		dst = append(dst[:start], dst[start+1:]...)
	}
	return append(dst, '}')
}

// appendIcons: icons exist since 2025-11-25.
func appendIcons(dst []byte, v Version, icons []Icon) []byte {
	if len(icons) == 0 || !v.AtLeast(V20251125) {
		return dst
	}
	dst = append(dst, `,"icons":[`...)
	for i, icon := range icons {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendQuoted(append(dst, `{"src":`...), icon.Src)
		dst = appendText(dst, "mimeType", icon.MIMEType)
		if len(icon.Sizes) > 0 {
			dst = appendTexts(append(dst, `,"sizes":`...), icon.Sizes)
		}
		dst = append(appendText(dst, "theme", icon.Theme), '}')
	}
	return append(dst, ']')
}

// appendText appends a member that is left out when empty.
func appendText(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(append(append(dst, `,"`...), name...), `":`...)
	return appendQuoted(dst, value)
}

func appendTexts(dst []byte, values []string) []byte {
	dst = append(dst, '[')
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendQuoted(dst, v)
	}
	return append(dst, ']')
}

func appendBase64(dst, data []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), data), '"')
}

// appendNumber appends a finite number.
func appendNumber(dst []byte, n float64) []byte { return strconv.AppendFloat(dst, n, 'g', -1, 64) }
