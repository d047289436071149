// Package tokens estimates what a text costs a model's context, so that a test can hold the list of tools to its budget without the
// megabytes of a tokenizer's vocabulary in the product's module. make bench counts the same list with the real vocabulary
// (cl100k_base) and says whether the estimate still lies above it. It must not know what the text is about.
package tokens

import "unicode"

// ListBudget is what the whole list of tools, as the owner of an organization gets it in revision 2026-07-28, may cost.
const ListBudget = 10_000

const (
	wordLetters = 10 // in one token of an English word, at most, nearly always
	punctuation = 4  // marks in one token of JSON
	digits      = 3  // in one token, always
	margin      = 64 // one token on top for so many: what the other figures are short of, twice
)

// Estimate is about how many cl100k tokens an English text or compact JSON with English names has, and a little more. The text is cut
// where the tokenizer cuts it before it merges anything: words with the one mark or space before them, runs of marks, three digits
// at a time. What a piece costs then is guessed by its length, and words in camel case by their parts. A single line may be a
// tenth off; over a list of sixty tools it evens out, and make bench says by how much.
func Estimate(text string) int {
	runes, n := []rune(text), 0
	for at := 0; at < len(runes); {
		r := runes[at]
		switch {
		case unicode.IsLetter(r), at+1 < len(runes) && unicode.IsLetter(runes[at+1]) && !unicode.IsDigit(r):
			end := at + 1
			for end < len(runes) && unicode.IsLetter(runes[end]) {
				end++
			}
			n += word(runes[at:end])
			at = end
		case unicode.IsDigit(r):
			end := span(runes, at, unicode.IsDigit)
			n += pieces(end-at, digits)
			at = end
		default:
			end := span(runes, at+1, func(r rune) bool { return r != ' ' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
			n += pieces(end-at, punctuation)
			at = end
		}
	}
	return n + pieces(n, margin)
}

func pieces(length, each int) int { return (length + each - 1) / each }

func span(runes []rune, from int, in func(rune) bool) int {
	for from < len(runes) && in(runes[from]) {
		from++
	}
	return from
}

// word is the cost of letters and of what stands before them, part by part.
func word(letters []rune) int {
	n, part := 0, 0
	for i, r := range letters {
		if i > 0 && unicode.IsUpper(r) && unicode.IsLower(letters[i-1]) {
			n += pieces(part, wordLetters)
			part = 0
		}
		if unicode.IsLetter(r) {
			part++
		}
	}
	return n + pieces(part, wordLetters)
}
