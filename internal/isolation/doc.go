// Package isolation holds one property of the whole service: whatever one organization asks, in whatever way, nothing of another's
// is in the answer, and what is another's answers as what does not exist. It is tests only.
package isolation
