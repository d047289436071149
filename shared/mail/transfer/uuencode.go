package transfer

import "bytes"

// Block is one uuencoded file inside a text.
type Block struct {
	Start, End int // the span in the text, from "begin" to behind "end"
	Name       string
	Data       []byte
	Repairs    int
}

// Blocks finds at most limit uuencoded files in text: "begin", three or four octal digits, a name, lines that decode, "end". Prose
// that starts a line with "begin" is not one: the first line after it must be a valid data line.
func Blocks(text []byte, limit int) []Block {
	var found []Block
	for at := 0; len(found) < limit; {
		name, body, span, ok := FindUuencoded(text[at:])
		if !ok {
			break
		}
		data, repairs := decodeUuencode(body)
		found = append(found, Block{Start: at + span[0], End: at + span[1], Name: name, Data: data, Repairs: repairs})
		at += span[1]
	}
	return found
}

// FindUuencoded finds the first uuencoded file in text: its name, its data lines and its span.
func FindUuencoded(text []byte) (name string, body []byte, span [2]int, ok bool) {
	for at := 0; at < len(text); {
		i := bytes.Index(text[at:], []byte("begin "))
		if i < 0 {
			return "", nil, span, false
		}
		start := at + i
		at = start + len("begin ")
		if start > 0 && text[start-1] != '\n' {
			continue
		}
		eol := bytes.IndexByte(text[at:], '\n')
		if eol < 0 {
			return "", nil, span, false
		}
		mode, file, _ := bytes.Cut(bytes.TrimRight(text[at:at+eol], "\r"), []byte(" "))
		first := at + eol + 1
		if !octal(mode) || len(file) == 0 || !dataLine(text[first:]) {
			continue
		}
		size, used := dataLines(text[first:])
		return string(file), text[first : first+size], [2]int{start, first + used}, true
	}
	return "", nil, span, false
}

func octal(mode []byte) bool {
	for _, c := range mode {
		if c < '0' || c > '7' {
			return false
		}
	}
	return len(mode) == 3 || len(mode) == 4
}

// dataLine reports whether text starts with a line whose length character fits its length.
func dataLine(text []byte) bool {
	line, _, _ := bytes.Cut(text[:min(len(text), 100)], []byte("\n"))
	line = bytes.TrimRight(line, "\r")
	if len(line) < 2 || line[0] < ' ' || line[0] > '`' {
		return false
	}
	n := int(line[0]-' ') & 63
	return n > 0 && len(line) >= 1+(n*4+2)/3
}

// dataLines returns the length of the data lines and of what the block uses with its "end" line.
func dataLines(text []byte) (size, used int) {
	for line := range bytes.Lines(text) {
		trimmed := bytes.TrimRight(line, "\r\n")
		if bytes.Equal(trimmed, []byte("end")) {
			return used, used + len(line)
		}
		if len(trimmed) > 0 && (trimmed[0] < ' ' || trimmed[0] > '`' || len(trimmed) > 90) {
			return used, used
		}
		used += len(line)
	}
	return used, used
}

func decodeUuencode(body []byte) ([]byte, int) {
	out := make([]byte, 0, len(body)*3/4)
	repairs := 0
	for line := range bytes.Lines(body) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			continue
		}
		want := len(out) + int(line[0]-' ')&63
		var acc uint32
		for i, c := range line[1:] {
			acc = acc<<6 | uint32(c-' ')&63
			if i%4 == 3 {
				out = append(out, byte(acc>>16), byte(acc>>8), byte(acc))
				acc = 0
			}
		}
		if tail := (len(line) - 1) % 4; tail > 0 {
			acc <<= 6 * uint32(4-tail)
			out = append(out, byte(acc>>16), byte(acc>>8), byte(acc))
		}
		if len(out) < want {
			repairs++ // a line that lost its trailing spaces
			out = append(out, make([]byte, min(want-len(out), 3))...)
		}
		out = out[:min(len(out), want)]
	}
	return out, repairs
}
