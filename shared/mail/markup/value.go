package markup

import (
	"strconv"
	"strings"
)

// length reads a CSS length in pixels; em is the font size that em and % refer to.
func length(s string, em float64) (float64, bool) {
	n := 0
	for n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n] == '.' || s[n] == '-' || s[n] == '+') {
		n++
	}
	v, err := strconv.ParseFloat(s[:n], 64)
	if err != nil {
		return 0, false
	}
	switch strings.TrimSpace(s[n:]) {
	case "px", "":
		return v, true
	case "pt":
		return v * 4 / 3, true
	case "pc", "rem":
		return v * 16, true
	case "em", "ch", "ex", "lh":
		return v * em, true
	case "%":
		return v / 100 * em, true
	case "in":
		return v * 96, true
	case "cm":
		return v * 37.8, true
	case "mm":
		return v * 3.78, true
	case "vw", "vh", "vmin", "vmax":
		return v * viewport / 100, true
	default:
		return 0, false
	}
}

// color is an opaque colour; ok is false for one that is not known (an image, an unknown name, half transparent).
type color struct {
	r, g, b uint8
	ok      bool
}

//nolint:gochecknoglobals // constant table
var (
	black = color{0, 0, 0, true}
	white = color{255, 255, 255, true}
	blue  = color{0, 0, 238, true}
	named = map[string]color{
		"white": white, "black": black, "snow": {255, 250, 250, true}, "ivory": {255, 255, 240, true}, "ghostwhite": {248, 248, 255, true},
		"whitesmoke": {245, 245, 245, true}, "floralwhite": {255, 250, 240, true}, "azure": {240, 255, 255, true}, "mintcream": {245, 255, 250, true},
		"gray": {128, 128, 128, true}, "grey": {128, 128, 128, true}, "silver": {192, 192, 192, true}, "lightgray": {211, 211, 211, true},
		"lightgrey": {211, 211, 211, true}, "gainsboro": {220, 220, 220, true}, "red": {255, 0, 0, true}, "blue": {0, 0, 255, true}, "green": {0, 128, 0, true},
		"yellow": {255, 255, 0, true}, "orange": {255, 165, 0, true}, "navy": {0, 0, 128, true}, "purple": {128, 0, 128, true},
	}
)

// parseColor reads one colour; transparent says that it shows nothing.
func parseColor(s string) (c color, transparent bool) {
	s = strings.TrimSpace(strings.ToLower(s))
	switch {
	case s == "transparent":
		return color{}, true
	case strings.HasPrefix(s, "#"):
		return hexColor(s[1:])
	case strings.HasPrefix(s, "rgb"):
		return rgbColor(s)
	case strings.HasPrefix(s, "hsl"):
		args := colorArgs(s)
		if len(args) == 4 && alpha(args[3]) < 0.05 {
			return color{}, true
		}
		if len(args) >= 3 { // only the ends of the lightness scale are worth knowing
			switch l, _ := strings.CutSuffix(args[2], "%"); l {
			case "100":
				return white, false
			case "0":
				return black, false
			}
		}
		return color{}, false
	default:
		return named[s], false
	}
}

func hexColor(h string) (color, bool) {
	if len(h) == 3 || len(h) == 4 {
		long := make([]byte, 0, 8)
		for i := range len(h) {
			long = append(long, h[i], h[i])
		}
		h = string(long)
	}
	v, err := strconv.ParseUint(h, 16, 32)
	switch {
	case err != nil:
		return color{}, false
	case len(h) == 8:
		if v&0xff < 0x0d {
			return color{}, true
		}
		return color{uint8(v >> 24), uint8(v >> 16), uint8(v >> 8), v&0xff > 0xe0}, false
	case len(h) == 6:
		return color{uint8(v >> 16), uint8(v >> 8), uint8(v), true}, false
	default:
		return color{}, false
	}
}

func colorArgs(s string) []string {
	_, args, _ := strings.Cut(s, "(")
	args, _, _ = strings.Cut(args, ")")
	return strings.FieldsFunc(args, func(r rune) bool { return r == ',' || r == ' ' || r == '/' })
}

func alpha(s string) float64 {
	v, ok := length(s, 1)
	if !ok {
		return 1
	}
	return v
}

func rgbColor(s string) (color, bool) {
	args := colorArgs(s)
	if len(args) < 3 {
		return color{}, false
	}
	var v [3]uint8
	for i := range v {
		f, ok := length(args[i], 255)
		if !ok {
			return color{}, false
		}
		v[i] = uint8(max(0, min(255, f)))
	}
	c := color{v[0], v[1], v[2], true}
	if len(args) > 3 {
		a := alpha(args[3])
		if a < 0.05 {
			return color{}, true
		}
		c.ok = a > 0.9
	}
	return c, false
}

// same reports whether text in one colour cannot be read on the other.
func same(a, b color) bool {
	const near = 16
	diff := func(x, y uint8) bool { return max(x, y)-min(x, y) <= near }
	return a.ok && b.ok && diff(a.r, b.r) && diff(a.g, b.g) && diff(a.b, b.b)
}
