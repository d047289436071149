package mcp

import (
	"encoding/json"
	"strconv"
)

// texts is what a server says of itself, rendered once.
type texts struct {
	discover   []byte             // members of the discover result
	initialize map[Version][]byte // members of the initialize result
	cacheable  []byte             // end of a stateless list
	meta       []byte             // "_meta" of a stateless result, left open
}

// noCache: MCP 2026-07-28, caching. What a caller sees follows from its grant, so nothing is kept and nothing shared.
const noCache = `,"ttlMs":0,"cacheScope":"private"`

type implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"` // since 2025-06-18
	Version string `json:"version"`
}

func newTexts(d Deps, o Options) texts {
	info := implementation{o.Name, o.Title, o.Version}
	meta := append([]byte(`,"_meta":{"io.modelcontextprotocol/serverInfo":`), info.json()...)
	t := texts{meta: meta, initialize: map[Version][]byte{}}
	t.cacheable = append(append([]byte(noCache), meta...), '}')
	instructions := []byte(nil)
	if o.Instructions != "" {
		instructions = appendQuoted([]byte(`,"instructions":`), o.Instructions)
	}
	t.discover = append(t.discover, `"resultType":"complete","supportedVersions":`...)
	t.discover = append(append(appendVersions(t.discover), ','), capabilities(d, V20260728)...)
	t.discover = append(append(t.discover, instructions...), t.cacheable...)
	for _, v := range Versions() {
		if v.Stateless() {
			continue
		}
		own := info
		if !v.AtLeast(V20250618) {
			own.Title = ""
		}
		b := appendQuoted([]byte(`"protocolVersion":`), string(v))
		b = append(append(b, ','), capabilities(d, v)...)
		b = append(b, `,"serverInfo":`...)
		t.initialize[v] = append(append(b, own.json()...), instructions...)
	}
	return t
}

func (i implementation) json() []byte {
	b, err := json.Marshal(i)
	if err != nil {
		return []byte("{}") // three strings: can't fail
	}
	return b
}

// appendVersions appends what is served as an array.
func appendVersions(dst []byte) []byte {
	for i, v := range Versions() {
		dst = append(dst, "[,"[min(i, 1)])
		dst = appendQuoted(dst, string(v))
	}
	return append(dst, ']')
}

// capabilities says what is offered. In the stateless era an empty object declares all of it; before, what is not kept is said outright.
func capabilities(d Deps, v Version) string {
	flags := func(s string) string {
		if v.Stateless() {
			return "{}"
		}
		return s
	}
	c := `"capabilities":{"tools":` + flags(`{"listChanged":false}`)
	if d.Resources != nil {
		subscribe := strconv.FormatBool(d.Legacy[methodSubscribe] != nil)
		c += `,"resources":` + flags(`{"listChanged":false,"subscribe":`+subscribe+`}`)
	}
	if d.Prompts != nil {
		c += `,"prompts":` + flags(`{"listChanged":false}`)
	}
	if d.Completer != nil && v.AtLeast(V20250326) { // 2024-11-05 has the method and no capability for it
		c += `,"completions":{}`
	}
	if d.Legacy[methodSetLevel] != nil && !v.Stateless() {
		c += `,"logging":{}`
	}
	if d.Tasks != nil && v.Stateless() {
		c += `,"extensions":{"` + TasksExtension + `":{}}`
	}
	return c + "}"
}
