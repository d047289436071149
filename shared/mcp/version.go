package mcp

// Version is a protocol revision.
type Version string

// The revisions that are served, newest first.
const (
	V20260728 Version = "2026-07-28"
	V20251125 Version = "2025-11-25"
	V20250618 Version = "2025-06-18"
	V20250326 Version = "2025-03-26"
	V20241105 Version = "2024-11-05"
)

// Versions lists what is served in the order in which it is announced (supportedVersions, data.supported).
func Versions() []Version {
	return []Version{V20260728, V20251125, V20250618, V20250326, V20241105}
}
