// Package rest serves a catalogue of operations as an HTTP API: huma on net/http's mux, problem documents (RFC 9457),
// OpenAPI 3.1. Each operation is one route object, which is mounted on the mux and which other rooms may call in process:
// whatever guards an operation lies inside it. The package knows what an operation is and nothing of what it is about.
package rest
